/* pairwise_whole.c: which tiles of a kernel of pairs lie within its conditions for all of a block's rows (pairwise.c): those that
 * compare affine indices are at their least and most where rows and elements are. */
#include "passes/schedule/pairwise/pairwise_build.h"

typedef struct {
	ValId least, most;
} Reach;

typedef struct {
	const Graph *g;
	bool found;
} StandsIn;

static void
note_stand_in(void *user, ExprId e)
{
	StandsIn *s = user;
	s->found |= expr_get(s->g, e)->op == OP_IVAR;
}

/* Whether it is of the sizes alone: no number that a row or an element has. */
static bool
is_of_sizes(const PairwiseBuild *b, ExprId e)
{
	StandsIn s = {.g = b->l.g};
	expr_walk(b->l.g, b->l.scratch, e, note_stand_in, &s);
	return !s.found && expr_is_index(b->l.g, b->l.scratch, e);
}

/* Of an affine expression over the block's rows and the tile's elements; false: it is none. */
static bool
reach(PairwiseBuild *b, ExprId e, ValId last, Reach *out)
{
	Pairwise *w = b->w;
	int64_t coef[TG_MAX_AXES];
	ExprId rest;
	unsigned lane = w->nrow - 1;
	if (expr_get(b->l.g, e)->dtype != DT_I64 || !index_affine(b->l.g, e, w->nrow + 1, coef, &rest))
		return false;
	if (!is_of_sizes(b, rest))
		return false;
	ValId at[2][2] = {{b->row0, b->row_last}, {b->first, last}};
	point_declare(&b->l, rest);
	out->least = out->most = point_value(&b->l, rest, true).re;
	for (unsigned a = 0; a <= w->nrow; a++) {
		bool down = coef[a] < 0;
		const ValId *ends = a == lane ? at[0] : at[1], fixed[2] = {b->l.axis[a], b->l.axis[a]};
		ends = a < lane ? fixed : ends;
		out->least = pw_op(b, OP_ADD, out->least, pw_op(b, OP_MUL, pw_int(b, coef[a]), ends[down]));
		out->most = pw_op(b, OP_ADD, out->most, pw_op(b, OP_MUL, pw_int(b, coef[a]), ends[!down]));
	}
	return true;
}

/* Whether the condition holds for all of the block's rows and the tile's elements; 0: it is not known. */
static ValId
holds(PairwiseBuild *b, ExprId e, ValId last)
{
	TirKernel *k = b->l.tir;
	const Expr x = *expr_get(b->l.g, e);
	Reach p, q;
	if (x.op == OP_AND) {
		ValId first = holds(b, expr_arg(b->l.g, e, 0), last), second = holds(b, expr_arg(b->l.g, e, 1), last);
		return first && second ? pw_op(b, OP_AND, first, second) : 0;
	}
	if ((x.op != OP_NE && x.op != OP_LT && x.op != OP_LE) || !reach(b, expr_arg(b->l.g, e, 0), last, &p) ||
	    !reach(b, expr_arg(b->l.g, e, 1), last, &q))
		return 0;
	ValId below = tir_binary(k, x.op == OP_LE ? OP_LE : OP_LT, p.most, q.least);
	return x.op == OP_NE ? pw_op(b, OP_OR, below, pw_op(b, OP_LT, q.most, p.least)) : below;
}

ValId
pairwise_all_hold(PairwiseBuild *b, bool *any)
{
	ValId all = 0, last = pw_op(b, OP_SUB, pw_op(b, OP_MIN, pw_op(b, OP_ADD, b->first, pw_int(b, PW_TILE)), b->hi), pw_int(b, 1));
	*any = false;
	for (unsigned m = 0; m < b->w->nmember && b->w->member[m].monoid; m++)
		for (unsigned c = 0; c < b->w->member[m].count; c++) {
			ExprId keep = b->w->member[m].keep[c];
			ValId one = keep ? holds(b, keep, last) : 0;
			*any |= keep != 0;
			if (keep && !one)
				return 0;
			all = all && one ? pw_op(b, OP_AND, all, one) : one ? one : all;
		}
	return all;
}
