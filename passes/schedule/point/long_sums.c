/* long_sums.c: a power or a tanh that is a term of a long sum of f32 need not have all bits of f32: it bears the mark of f16 (tg.h).
 *
 * In relaxed and fast mode the terms of a sum may be added in any order. So the bound of a sum of n terms x, which every
 * schedule keeps and the oracle allows, is gamma_n sum |x|, n u and more, u = 2^-24, beside the terms' own errors: that
 * of n additions one after the other. A kernel of blocks has accumulators for each of 32 lanes and more. It adds at most
 * n / 32 terms to each, then joins the lanes, of which there are 2^18 at most: no term goes through more than
 * h = n / 32 + 18 additions, which cost gamma_h sum |x|. What is left of the bound is for the terms. A mark makes a
 * function wrong by 1/16 ulp of f16 at most, 2^-14 of it or 1024 u, subnormal results by 2^-149 as all are; a factor or a
 * divisor of it hands that on as it is. So a sum with one such function in each term is within its bound if
 *
 *     1024 u (1 + gamma_h) + gamma_h <= gamma_n,   for which   n - n / 32 - 18 >= 1025   is enough,
 *
 * and 2048 terms are far more. Terms that may be absent are not counted on: there must be none. */
#include "passes/schedule/point/long_sums.h"
#include "passes/schedule/schedule.h"

enum { MAX_DEPTH = 64 }; /* of factors in factors */

static ExprId mark(Graph *g, ExprId e, unsigned depth);

/* e with some of its operands marked: one of two factors, for errors add up; both arms of a select. */
static ExprId
mark_operands(Graph *g, ExprId e, unsigned first, unsigned last, bool one, unsigned depth)
{
	const Expr p = *expr_get(g, e);
	ExprId arg[TG_MAX_AXES];
	bool changed = false;
	for (unsigned k = 0; k < p.narg; k++) {
		arg[k] = expr_arg(g, e, k);
		if (k < first || k > last || (changed && one))
			continue;
		arg[k] = mark(g, arg[k], depth + 1);
		changed |= arg[k] != expr_arg(g, e, k);
	}
	return changed ? expr_make(g, (Op)p.op, (DType)p.dtype, p.ref, p.access, arg, p.narg) : e;
}

static ExprId
mark(Graph *g, ExprId e, unsigned depth)
{
	const Expr *p = expr_get(g, e);
	if (p->dtype != DT_F32 || depth > MAX_DEPTH)
		return e;
	if (op_info[p->op].flags & F_NARROW && p->narg == 1)
		return expr_narrow_type(g, e) == DT_NONE ? expr_narrowed(g, e, DT_F16) : e;
	switch (p->op) {
	case OP_NEG: case OP_FDIV:
		return mark_operands(g, e, 0, 0, true, depth);
	case OP_MUL:
		return mark_operands(g, e, 0, 1, true, depth);
	case OP_SELECT:
		return mark_operands(g, e, 1, 2, false, depth);
	}
	return e;
}

/* The terms of member m, marked; 0: they stay as they are. */
static ExprId
marked_terms(Graph *g, const Rows *r, const RowMember *m)
{
	const Node *n = &m->node;
	bool sum = n->monoid == MON_SUM && rows_is_folded(m) && !m->scans && !m->across && r->phase[m->phase].lanes;
	if (!sum || !expr_is_true(g, n->guard))
		return 0;
	ExprId body = mark(g, n->body, 0);
	return body == n->body ? 0 : body;
}

ExprId
long_sums_term(Graph *g, ExprId e)
{
	return mark(g, e, 0);
}

bool
long_sums_gain(Graph *g, const Rows *r)
{
	unsigned lanes = 0;
	for (unsigned k = 0; k < r->nloop; k++)
		lanes += r->loop[k].lanes;
	if (g->fp == FP_STRICT || lanes != 1 || r->lanes_by_row || r->scans || r->across)
		return false;
	for (unsigned m = 0; m < r->nmember; m++)
		if (marked_terms(g, r, &r->member[m]))
			return true;
	return false;
}

void
long_sums_mark(Graph *g, Rows *r)
{
	for (unsigned m = 0; m < r->nmember; m++) {
		ExprId body = marked_terms(g, r, &r->member[m]);
		if (body)
			r->member[m].node.body = body;
	}
}
