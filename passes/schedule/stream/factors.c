/* factors.c: see factors.h. */
#include "passes/schedule/stream/factors.h"

bool
stream_take_element(const Graph *g, Arena *scratch, const Stream *s, ExprId read, unsigned own, unsigned term, StreamElement *to)
{
	bool grouped = s->group && own != s->lane;
	const Expr *p = expr_get(g, read);
	DType t = (DType)p->dtype;
	if (p->op != OP_READ || p->access || p->narg < 2 || p->narg > 5 || (t != DT_BF16 && t != DT_F16) || g->tensor.at[p->ref].kind == TENSOR_SCALAR)
		return false;
	uint32_t task = grouped ? s->base : s->base & ~(1u << s->lane);
	*to = (StreamElement){.tensor = p->ref, .dtype = t, .rank = p->narg, .own = TG_MAX_RANK, .term = TG_MAX_RANK};
	for (unsigned n = 0; n < p->narg; n++) {
		to->sub[n] = expr_arg(g, read, n);
		const Expr *sub = expr_get(g, to->sub[n]);
		bool axis = sub->op == OP_AXIS;
		if (axis && sub->ref == own)
			to->own = n;
		else if (axis && sub->ref == term)
			to->term = n;
		else if (expr_axes(g, scratch, to->sub[n]) & ~task)
			return false;
	}
	to->turned = to->own == p->narg - 1u;
	return to->own < p->narg && to->term < p->narg && (to->turned || to->term == p->narg - 1u);
}

static bool
find_element(const Graph *g, Arena *scratch, const Stream *s, ExprId e, unsigned own, unsigned term, StreamElement *to)
{
	const Expr *cast = expr_get(g, e);
	if (cast->op != OP_CAST || cast->dtype != DT_F32 || (DType)expr_get(g, expr_arg(g, e, 0))->dtype != s->factors)
		return false;
	return stream_take_element(g, scratch, s, expr_arg(g, e, 0), own, term, to);
}

int
stream_wide_acc(const Stream *s)
{
	int acc = -1;
	for (unsigned k = 0; k < s->pass->nacc; k++)
		if (s->acc[k].wide) {
			if (acc >= 0)
				return -2;
			acc = (int)k;
		}
	return acc;
}

bool
stream_find_elements(const Graph *g, Arena *scratch, const Stream *s, StreamElement *of)
{
	int acc = stream_wide_acc(s);
	const StreamScore *x = &s->score[0];
	const Expr *lo = expr_get(g, x->node.axis[x->node.npar].lo);
	if (s->nscore != 1 || acc == -2 || !s->factors || lo->op != OP_CONST || lo->imm.i != 0 || !stream_is_natural(g, s->c.axis[s->stream].lo))
		return false;
	return find_element(g, scratch, s, x->query, s->lane, x->term, &of[OF_QUERY]) &&
	       find_element(g, scratch, s, x->key, s->stream, x->term, &of[OF_KEY]) &&
	       (acc < 0 || find_element(g, scratch, s, s->acc[acc].value, (unsigned)s->wide, s->stream, &of[OF_VALUE]));
}

bool
stream_may_be_in(const Graph *g, ExprId e, int64_t lo, int64_t hi)
{
	const Expr *p = expr_get(g, e);
	return p->op != OP_CONST || (p->imm.i >= lo && p->imm.i <= hi);
}

ExprId
stream_unrounded(const Graph *g, ExprId weight, DType t)
{
	const Expr *wide = expr_get(g, weight);
	if (wide->op != OP_CAST || wide->dtype != DT_F32)
		return weight;
	ExprId inner = expr_arg(g, weight, 0);
	const Expr *narrow = expr_get(g, inner);
	bool rounds = narrow->op == OP_CAST && (DType)narrow->dtype == t && expr_get(g, expr_arg(g, inner, 0))->dtype == DT_F32;
	return rounds ? expr_arg(g, inner, 0) : weight;
}
