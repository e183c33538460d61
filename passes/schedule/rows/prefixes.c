/* prefixes.c: finds the prefix in a node (prefixes.h). It may be in the ends of the reduced range or be a
 * condition of the guard; everything else of the guard and the range stays as a condition on a step's
 * term, unless it holds at every step.
 *
 * Terms come in the order of the steps. That is ascending for a prefix. A suffix takes them from the
 * last to the first, which a strict sum of floats must not. */
#include "passes/schedule/rows/prefixes.h"

#include "passes/expr_map.h"
#include "passes/schedule/schedule.h"

enum { SCAN_CONDITIONS = 16 };

typedef struct {
	Graph *g;
	Arena *scratch;
	const Node *n;
	unsigned reduced;   /* the axis k */
	ExprId cond[SCAN_CONDITIONS]; /* the guard's conjuncts; the end found is taken out */
	unsigned ncond;
	ExprId inside;      /* what is left of the range; 0: nothing */
	/* the end: k <= axis + offset or, from above, axis + offset <= k */
	unsigned found, axis;
	int64_t offset;
	bool above, of_range; /* of_range: the end is one of the range's */
} Finder;

static ExprId
number(const Finder *f, int64_t v)
{
	return expr_int(f->g, DT_I64, v);
}

static bool
split_guard(Finder *f, ExprId e)
{
	const Expr *p = expr_get(f->g, e);
	if (p->op == OP_AND)
		return split_guard(f, expr_arg(f->g, e, 0)) && split_guard(f, expr_arg(f->g, e, 1));
	if (f->ncond == SCAN_CONDITIONS)
		return false;
	f->cond[f->ncond++] = e;
	return true;
}

/* Whether e is one parallel axis plus a constant. */
static bool
is_axis_end(const Finder *f, ExprId e, unsigned *axis, int64_t *offset)
{
	int64_t coef[TG_MAX_AXES];
	ExprId rest;
	unsigned found = 0;
	if (!index_affine(f->g, e, f->reduced + 1, coef, &rest) || coef[f->reduced] != 0)
		return false;
	for (unsigned a = 0; a < f->reduced; a++) {
		found += coef[a] != 0;
		if (coef[a] == 1)
			*axis = a;
		else if (coef[a] != 0)
			return false;
	}
	rest = index_norm(f->g, rest ? rest : number(f, 0));
	if (found != 1 || expr_get(f->g, rest)->op != OP_CONST)
		return false;
	*offset = expr_get(f->g, rest)->imm.i;
	return true;
}

static bool
take_end(Finder *f, ExprId e, int64_t more, bool above, bool of_range)
{
	unsigned axis;
	int64_t offset;
	if (!is_axis_end(f, e, &axis, &offset))
		return false;
	f->found++;
	f->axis = axis;
	f->offset = offset + more;
	f->above = above;
	f->of_range = of_range;
	return true;
}

/* A comparison of k with an axis: a <= b or a < b. */
static bool
take_condition(Finder *f, ExprId e)
{
	Op op = (Op)expr_get(f->g, e)->op;
	if (op != OP_LE && op != OP_LT)
		return false;
	int64_t less = op == OP_LT;
	ExprId a = expr_arg(f->g, e, 0), b = expr_arg(f->g, e, 1), k = expr_axis(f->g, f->reduced);
	if (expr_get(f->g, a)->dtype != DT_I64)
		return false;
	/* k + x <= b is k <= b - x; a <= k + x is a - x <= k */
	ExprId below = expr_binary(f->g, OP_SUB, b, expr_binary(f->g, OP_SUB, a, k));
	ExprId above = expr_binary(f->g, OP_SUB, a, expr_binary(f->g, OP_SUB, b, k));
	return take_end(f, below, -less, false, false) || take_end(f, above, less, true, false);
}

static void
find_end(Finder *f)
{
	const Axis *k = &f->n->axis[f->reduced];
	unsigned kept = 0;
	take_end(f, k->hi, -1, false, true);
	take_end(f, k->lo, 0, true, true);
	for (unsigned c = 0; c < f->ncond; c++)
		if (!take_condition(f, f->cond[c]))
			f->cond[kept++] = f->cond[c];
	f->ncond = kept;
}

static bool
mentions(const Finder *f, ExprId e, unsigned axis)
{
	return e && (expr_axes(f->g, f->scratch, e) >> axis & 1);
}

static bool
reads_its_axis(const Finder *f)
{
	const Axis *k = &f->n->axis[f->reduced];
	bool any = mentions(f, f->n->body, f->axis);
	for (unsigned c = 0; c < f->ncond; c++)
		any |= mentions(f, f->cond[c], f->axis);
	if (!(f->of_range && f->above))
		any |= mentions(f, k->lo, f->axis);
	if (!(f->of_range && !f->above))
		any |= mentions(f, k->hi, f->axis);
	return any;
}

/* e as a constant, when it is one. */
static bool
is_known(const Finder *f, ExprId e, int64_t *v)
{
	ExprId norm = index_norm(f->g, e);
	if (expr_get(f->g, norm)->op != OP_CONST)
		return false;
	*v = expr_get(f->g, norm)->imm.i;
	return true;
}

/* The terms of the first step are those of its index alone, and what is left of the range is a condition
 * on the index of a step, offset .. offset + extent - 1. */
static bool
bound_steps(Finder *f)
{
	const Axis *k = &f->n->axis[f->reduced];
	ExprId index = expr_axis(f->g, f->reduced), extent = f->g->tensor.at[f->n->out].extent[f->axis];
	ExprId end = expr_binary(f->g, OP_ADD, extent, number(f, f->offset));
	int64_t lo = 0, over = 0;
	bool lo_known = is_known(f, k->lo, &lo);
	bool hi_known = is_known(f, expr_binary(f->g, OP_SUB, k->hi, end), &over);
	if (!f->above && (!lo_known || lo < f->offset))
		return false;
	if (f->above && (!hi_known || over > 0))
		return false;
	if (!(f->above && f->of_range) && !(lo_known && lo <= f->offset))
		f->inside = expr_and(f->g, f->inside, expr_binary(f->g, OP_LE, k->lo, index));
	if (!(!f->above && f->of_range) && !(hi_known && over >= 0))
		f->inside = expr_and(f->g, f->inside, expr_binary(f->g, OP_LT, index, k->hi));
	return true;
}

static bool
needs_order(const Graph *g, const Node *n)
{
	DType t = dtype_info[expr_get(g, n->body)->dtype].arith;
	bool rounds = dtype_is_float(t) || t == DT_C64;
	return rounds && (n->monoid == MON_SUM || n->monoid == MON_PROD) && (g->fp == FP_STRICT || t == DT_C64);
}

static void
fill(const Finder *f, Scan *out)
{
	ExprId sub[TG_MAX_AXES], axis = expr_axis(f->g, f->axis);
	for (unsigned a = 0; a < f->reduced; a++)
		sub[a] = expr_axis(f->g, a);
	sub[f->reduced] = f->offset ? expr_binary(f->g, OP_ADD, axis, number(f, f->offset)) : axis;
	*out = (Scan){.node = *f->n, .axis = (uint8_t)f->axis, .reverse = f->above, .position = sub[f->reduced],
	              .first = f->n->axis[f->reduced].lo};
	out->node.nred = 0;
	out->node.guard = f->inside; /* first: the guard itself is asked of terms of the range alone */
	for (unsigned c = 0; c < f->ncond; c++)
		out->node.guard = expr_and(f->g, out->node.guard, f->cond[c]);
	if (out->node.guard)
		out->node.guard = expr_subst_axes(f->g, out->node.guard, sub, f->reduced + 1);
	out->node.body = expr_subst_axes(f->g, f->n->body, sub, f->reduced + 1);
}

bool
scan_derive(Graph *g, Arena *scratch, const Node *n, Scan *out, RemarkId *why)
{
	Finder f = {.g = g, .scratch = scratch, .n = n, .reduced = n->npar};
	*why = REMARK_NONE;
	if (n->monoid == MON_NONE || n->recur || n->scatter || n->nred == 0)
		return false;
	if (!expr_is_true(g, n->guard) && !split_guard(&f, n->guard))
		return false;
	find_end(&f);
	if (f.found == 0)
		return false;
	if (n->nred > 1 || n->axis[f.reduced].clamp)
		*why = REMARK_scan_ranges;
	else if (f.found > 1)
		*why = REMARK_scan_window;
	else if (reads_its_axis(&f))
		*why = REMARK_scan_mixed;
	else if (f.above && needs_order(g, n))
		*why = REMARK_scan_order;
	else if (!bound_steps(&f))
		*why = REMARK_scan_start;
	if (*why)
		return false;
	fill(&f, out);
	return true;
}
