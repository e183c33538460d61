/* range.c: which elements a row of a stream has.
 *
 * A condition that is linear in the streamed index, with a factor of 1 or -1, is an end of the row's range:
 * so tiles without any element are never visited, and only tiles across an end need a mask. What is left
 * of the guard is asked for each element.
 *
 * Ends are i64 arithmetic that must not wrap: of indices, dims and data of 32 bits or less; or whatever the index itself is
 * compared with, as far as it lies in the range. */
#include "passes/expr_map.h"
#include "passes/schedule/stream/stream.h"

/* e = coef * axis + rest */
typedef struct {
	int64_t coef;
	ExprId rest;
} Linear;

static bool
linear(Graph *g, Arena *scratch, ExprId e, unsigned axis, Linear *out)
{
	Expr p = *expr_get(g, e);
	Linear a, b;
	*out = (Linear){0, e};
	if (!(expr_axes(g, scratch, e) >> axis & 1))
		return true;
	if (p.op == OP_AXIS) {
		*out = (Linear){1, expr_int(g, DT_I64, 0)};
		return true;
	}
	if (p.dtype != DT_I64 || (p.op != OP_ADD && p.op != OP_SUB))
		return false;
	if (!linear(g, scratch, expr_arg(g, e, 0), axis, &a) || !linear(g, scratch, expr_arg(g, e, 1), axis, &b))
		return false;
	*out = (Linear){p.op == OP_ADD ? a.coef + b.coef : a.coef - b.coef, expr_binary(g, (Op)p.op, a.rest, b.rest)};
	return true;
}

typedef struct {
	const Graph *g;
	bool wild;
} Tame;

static void
note_wild(void *user, ExprId e)
{
	Tame *t = user;
	const Expr *p = expr_get(t->g, e);
	if (p->op == OP_READ)
		t->wild |= !dtype_is_int((DType)p->dtype) || dtype_info[p->dtype].bits > 32;
	t->wild |= dtype_is_float((DType)p->dtype);
}

static bool
is_tame(const Graph *g, Arena *scratch, ExprId e)
{
	Tame t = {g, false};
	expr_walk(g, scratch, e, note_wild, &t);
	return !t.wild;
}

/* Any number as one of those that bound the range as it does: the range's own elements, and one at either side. */
static ExprId
near(Graph *g, const Stream *s, ExprId e)
{
	const Axis *x = &s->c.axis[s->stream];
	ExprId before = expr_binary(g, OP_SUB, x->lo, expr_int(g, DT_I64, 1));
	return expr_binary(g, OP_MAX, expr_binary(g, OP_MIN, e, x->hi), before);
}

/* Takes a condition as an end of the range; false: it is none. */
static bool
take_end(Graph *g, Arena *scratch, Stream *s, ExprId cond)
{
	Expr p = *expr_get(g, cond);
	Linear a, b;
	if (p.op != OP_LE && p.op != OP_LT)
		return false;
	ExprId x = expr_arg(g, cond, 0), y = expr_arg(g, cond, 1);
	if (expr_get(g, x)->dtype != DT_I64 || !linear(g, scratch, x, s->stream, &a) || !linear(g, scratch, y, s->stream, &b))
		return false;
	if (!is_tame(g, scratch, cond)) {
		if (expr_get(g, a.coef ? x : y)->op != OP_AXIS || (a.coef && b.coef))
			return false;
		ExprId *other = a.coef ? &b.rest : &a.rest;
		*other = near(g, s, *other);
	}
	/* 0 <= coef * j + slack */
	int64_t coef = b.coef - a.coef;
	ExprId slack = expr_binary(g, OP_SUB, b.rest, a.rest), one = expr_int(g, DT_I64, 1);
	if (p.op == OP_LT)
		slack = expr_binary(g, OP_SUB, slack, one);
	if (coef == -1)
		s->hi = expr_binary(g, OP_MIN, s->hi, expr_binary(g, OP_ADD, slack, one));
	else if (coef == 1)
		s->lo = expr_binary(g, OP_MAX, s->lo, expr_binary(g, OP_SUB, expr_int(g, DT_I64, 0), slack));
	else
		return false;
	return true;
}

static void
take_condition(Graph *g, Arena *scratch, Stream *s, ExprId cond)
{
	if (expr_get(g, cond)->op == OP_AND) {
		take_condition(g, scratch, s, expr_arg(g, cond, 0));
		take_condition(g, scratch, s, expr_arg(g, cond, 1));
	} else if (!take_end(g, scratch, s, cond)) {
		s->rest = expr_and(g, s->rest, cond);
	}
}

bool
stream_is_natural(const Graph *g, ExprId e)
{
	const Expr *p = expr_get(g, e);
	switch ((int)p->op) {
	case OP_CONST:
		return p->dtype == DT_I64 && p->imm.i >= 0;
	case OP_AXIS:
		return true;
	case OP_DIM:
		return g->dim.at[p->ref].axis >= 0;
	case OP_MAX:
		return stream_is_natural(g, expr_arg(g, e, 0)) || stream_is_natural(g, expr_arg(g, e, 1));
	case OP_ADD: case OP_MUL: case OP_IDIV: case OP_MIN:
		return stream_is_natural(g, expr_arg(g, e, 0)) && stream_is_natural(g, expr_arg(g, e, 1));
	}
	return false;
}

void
stream_ranges(Graph *g, Arena *scratch, Stream *s)
{
	s->lo = s->c.axis[s->stream].lo;
	s->hi = s->c.axis[s->stream].hi;
	s->rest = 0;
	if (s->c.guard)
		take_condition(g, scratch, s, s->c.guard);
	s->ragged = (expr_axes(g, scratch, s->lo) | expr_axes(g, scratch, s->hi)) >> s->lane & 1;
}

static bool
is_multiple(const Graph *g, ExprId e, int64_t of)
{
	const Expr *p = expr_get(g, e);
	if (p->op == OP_CONST)
		return p->imm.i % of == 0;
	return p->op == OP_MUL && (is_multiple(g, expr_arg(g, e, 0), of) || is_multiple(g, expr_arg(g, e, 1), of));
}

bool
stream_ends_with_tile(Graph *g, const Stream *s, ExprId all, unsigned elements)
{
	const Expr *p = expr_get(g, s->hi);
	if (index_norm(g, all) == s->hi)
		return true;
	for (unsigned k = 0; k < 2 && p->op == OP_MIN; k++) {
		ExprId end = expr_arg(g, s->hi, 1 - k);
		if (index_norm(g, all) != expr_arg(g, s->hi, k) || expr_get(g, end)->op != OP_ADD)
			continue;
		for (unsigned i = 0; i < 2; i++)
			if (expr_arg(g, end, i) == s->lo && is_multiple(g, expr_arg(g, end, 1 - i), elements))
				return true;
	}
	return false;
}
