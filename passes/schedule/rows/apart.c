/* apart.c: what a lane takes of a thread's registers beside the values that it holds (apart.h).
 *
 * Where the lanes of a tensor do not lie side by side in memory, as along a stride that is known at launch or by an index
 * that is read or divided for, each has an address of its own. One along a stride is made where it is used, but where rows
 * are gone through in several phases: then it is found early and kept. An operation that is written out with branches is
 * done for one lane after the other, and the assembler moves nothing from before one of them to behind it: so what was
 * computed for the lanes to come waits. */
#include "passes/schedule/rows/apart.h"

#include "passes/expr_map.h"
#include "passes/schedule/point/affine.h"

enum { ADDRESS_WORDS = 2, WAITING_WORDS = 1 };

typedef struct {
	const Graph *g;
	Arena *scratch;
	uint32_t lanes;
	bool strided, computed; /* addresses: along a stride; by what is not a sum of axes */
	bool numbers;           /* an index is asked for, other than to find what is read */
	bool packed;            /* elements of a few bits are read along them */
	bool waits, turns;
} Apart;

static bool
is_along(const Apart *a, ExprId e)
{
	return (expr_axes(a->g, a->scratch, e) & a->lanes) != 0;
}

/* Lanes that are constants apart in memory have one address: along the last axis, whose stride is 1. */
static void
note_read(Apart *a, ExprId read)
{
	const Expr *p = expr_get(a->g, read);
	for (unsigned n = 0; n < p->narg; n++) {
		ExprId sub = expr_arg(a->g, read, n);
		Affine sum = {0};
		if (!is_along(a, sub))
			continue;
		a->strided |= n + 1 < p->narg;
		a->packed |= n + 1 == p->narg && dtype_info[p->dtype].bits < 8;
		a->computed |= !affine_add(a->g, a->scratch, &sum, sub, 1);
	}
}

/* A condition on a lane's index, or a number made of it. */
static bool
takes_number(const Apart *a, ExprId e)
{
	const Expr *p = expr_get(a->g, e);
	bool any = false;
	for (unsigned n = 0; p->op != OP_READ && p->dtype != DT_I64 && n < p->narg; n++) {
		ExprId from = expr_arg(a->g, e, n);
		any |= expr_get(a->g, from)->dtype == DT_I64 && is_along(a, from) && expr_is_index(a->g, a->scratch, from);
	}
	return any;
}

static void
note_apart(void *user, ExprId e)
{
	Apart *a = user;
	const Expr *p = expr_get(a->g, e);
	a->numbers |= takes_number(a, e);
	switch ((int)p->op) {
	case OP_READ:
		note_read(a, e);
		break;
	case OP_FDIV:
		a->waits |= is_along(a, expr_arg(a->g, e, 1));
		break;
	case OP_SQRT:
		a->waits |= is_along(a, e);
		break;
	}
	a->turns |= (op_info[p->op].flags & F_TURNS) && is_along(a, e);
}

static Apart
find_apart(const Graph *g, Arena *scratch, const Rows *r, uint32_t lanes)
{
	Apart a = {.g = g, .scratch = scratch, .lanes = lanes};
	for (unsigned m = 0; m < r->nmember; m++)
		node_walk(g, scratch, &r->member[m].node, note_apart, &a);
	return a;
}

unsigned
apart_words(const Graph *g, Arena *scratch, const Rows *r, uint32_t lanes)
{
	Apart a = find_apart(g, scratch, r, lanes);
	return (a.computed || (a.strided && r->nphase > 1) ? ADDRESS_WORDS : 0) + (a.waits || a.turns ? WAITING_WORDS : 0);
}

/* A group of a row's columns has one address, and rows are divided by the same. */
unsigned
apart_columns_words(const Graph *g, Arena *scratch, const Rows *r, uint32_t along)
{
	Apart columns = find_apart(g, scratch, r, along), rows = find_apart(g, scratch, r, ((1u << r->nloop) - 1) << r->nrow);
	return (columns.computed || columns.strided || rows.computed ? ADDRESS_WORDS : 0) + (rows.waits || rows.turns ? WAITING_WORDS : 0);
}

bool
apart_turns(const Graph *g, Arena *scratch, const Rows *r, uint32_t lanes)
{
	return find_apart(g, scratch, r, lanes).turns;
}

bool
apart_by_number(const Graph *g, Arena *scratch, const Rows *r, uint32_t lanes, bool *addresses)
{
	Apart a = find_apart(g, scratch, r, lanes);
	*addresses = a.computed || a.strided;
	return a.numbers;
}

bool
apart_packed(const Graph *g, Arena *scratch, const Rows *r, uint32_t lanes, bool *divides)
{
	Apart rows = find_apart(g, scratch, r, ((1u << r->nloop) - 1) << r->nrow);
	*divides = rows.computed;
	return find_apart(g, scratch, r, lanes).packed;
}
