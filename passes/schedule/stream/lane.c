/* lane.c: along which axis a stream's rows are taken together, and how many of them (stream.h).
 *
 * Rows that differ in an axis that neither the elements' factors nor the values have meet the same elements, which are read
 * once for all of them: vectors, or a block's rows, run along such an axis.
 *
 * Where there is none, a block of a GPU takes rows whose elements are the same by what they divide the axis by: query heads
 * h of which n / m after one another share the keys of h div (n div m). So it does with one new row for each text. Rows that
 * share their elements with no other are a group of one: of bf16 and f16, for which matrix units leave the time that it takes
 * to read the elements as it is, however few rows there are. */
#include "passes/expr_map.h"
#include "passes/schedule/stream/stream.h"

typedef struct {
	Graph *g;
	Arena *scratch;
	unsigned axis;
	ExprId by;   /* what the axis is divided by; 0: by nothing yet */
	bool others; /* or by something else, too */
} Divided;

/* Quotients of the axis by a size are as good as indices of their own. */
static ExprId
take_quotient(void *user, Graph *g, ExprId e)
{
	Divided *d = user;
	const Expr *p = expr_get(g, e);
	if (p->op != OP_IDIV)
		return e;
	ExprId by = expr_arg(g, e, 1);
	const Expr *of = expr_get(g, expr_arg(g, e, 0));
	if (of->op != OP_AXIS || of->ref != d->axis || expr_axes(g, d->scratch, by) || !expr_is_index(g, d->scratch, by))
		return e;
	d->others |= d->by && d->by != by;
	d->by = by;
	return expr_int(g, DT_I64, 0);
}

/* Whether e has the axis in quotients alone, all by the same size, if it has it. */
static bool
has_quotients(Divided *d, ExprId e)
{
	ExprId without = expr_map(d->g, d->scratch, e, take_quotient, d);
	return !d->others && !(expr_axes(d->g, d->scratch, without) >> d->axis & 1);
}

/* The size of the groups along the axis; 0: there are none. */
static ExprId
group_along(Graph *g, Arena *scratch, const Stream *s, unsigned axis)
{
	Divided d = {.g = g, .scratch = scratch, .axis = axis};
	bool only = true;
	for (unsigned k = 0; k < s->nscore; k++)
		only = only && has_quotients(&d, s->score[k].key);
	for (unsigned k = 0; k < s->pass->nacc; k++)
		only = only && (!s->acc[k].wide || has_quotients(&d, s->acc[k].value));
	return only ? d.by : 0;
}

static unsigned
last_of(uint32_t axes)
{
	unsigned a = 31;
	while (!(axes >> a & 1))
		a--;
	return a;
}

bool
stream_choose_lane(Graph *g, Arena *scratch, const RowsFacts *facts, Stream *s)
{
	uint32_t rows = s->base, elements = 0;
	for (unsigned k = 0; k < s->nscore; k++) {
		rows &= expr_axes(g, scratch, s->score[k].query);
		elements |= expr_axes(g, scratch, s->score[k].key);
	}
	for (unsigned k = 0; k < s->pass->nacc; k++)
		if (s->acc[k].wide)
			elements |= expr_axes(g, scratch, s->acc[k].value);
	s->group = 0;
	if (rows & ~elements) {
		s->lane = last_of(rows & ~elements);
		return true;
	}
	for (uint32_t left = facts->blocks ? rows : 0; left && !s->group; left &= ~(1u << s->lane)) {
		s->lane = last_of(left);
		s->group = group_along(g, scratch, s, s->lane);
	}
	if (!s->group && facts->blocks && rows && s->factors) {
		s->lane = last_of(rows);
		s->group = expr_int(g, DT_I64, 1);
	}
	return s->group != 0;
}
