/* pairwise_finish.c: what a block makes of the folds of its rows (pairwise.c): those of all warps are joined through shared
 * memory, by a thread a row, in the order of the warps. */
#include "passes/schedule/pairwise/pairwise_build.h"

static void
stage_folds(PairwiseBuild *b)
{
	for (unsigned f = 0; f < b->w->nfold; f++)
		for (unsigned r = 0; r < b->lane_rows; r++) {
			ValId row = pw_op(b, OP_ADD, b->lane, pw_int(b, r * TIR_WARP));
			ValId at = pw_op(b, OP_ADD, pw_op(b, OP_MUL, b->warp, pw_int(b, b->rows)), row);
			tir_store(b->l.tir, b->part[f], b->run[f * b->lane_rows + r], &at, 0, 0);
		}
}

/* Whether the row has an element. A sum is -0 of -0 alone, and of none; that one is looked at again. */
static ValId
touched(PairwiseBuild *b, const PairwiseMember *m, unsigned c, ValId sum)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	ValId some = pw_op(b, OP_LT, b->lo, b->hi), no = tir_int(k, DT_BOOL, 0), found = no;
	if (!m->keep[c])
		return some;
	DType bits = dtype_info[m->type].bits > 32 ? DT_U64 : DT_U32;
	ValId minus = tir_bitcast(k, bits, tir_float(k, m->type, -0.0));
	tir_if(k, pw_op(b, OP_EQ, tir_bitcast(k, bits, sum), minus));
	uint32_t mark = point_mark(l);
	l->axis[b->w->nrow] = tir_for(k, b->lo, b->hi, pw_int(b, 1), &found, 1);
	ExprId keep = m->keep[c];
	for (unsigned v = 0; v < b->w->nrow_value; v++)
		point_place(l, pairwise_ivar(l->g, PAIRWISE_OF_ROW, v, (DType)expr_get(l->g, b->w->row_value[v])->dtype),
		            point_value(l, b->w->row_value[v], false).re);
	for (unsigned v = 0; v < b->w->nelement_value; v++)
		point_place(l, pairwise_ivar(l->g, PAIRWISE_OF_ELEMENT, v, (DType)expr_get(l->g, b->w->element_value[v])->dtype),
		            point_value(l, b->w->element_value[v], false).re);
	found = pw_op(b, OP_OR, found, point_value(l, keep, true).re);
	point_release(l, mark);
	tir_end_for(k, &found, 1);
	tir_else(k, &found, 1);
	tir_end_if(k, &some, 1);
	return some;
}

/* Whether the short axis may end before c in a launch: what is read for that value may not exist either. */
static bool
may_lack(const PairwiseBuild *b, const PairwiseMember *m, unsigned c)
{
	return m->beyond && c >= b->w->least;
}

/* Whether all that value c reads exists, in every row. */
static bool
reads_exist(const PairwiseBuild *b, const PairwiseMember *m, unsigned c)
{
	return !m->domain[c] && !may_lack(b, m, c);
}

static ValId
folded(PairwiseBuild *b, const PairwiseMember *m, unsigned c, unsigned f, ValId row)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	ValId v = tir_load(k, b->part[f], &row, 0, 0, 0);
	for (unsigned n = 1; n < PW_WARPS; n++) {
		ValId at = pw_op(b, OP_ADD, row, pw_int(b, (int64_t)n * b->rows));
		v = pairwise_joined(b, m, v, tir_load(k, b->part[f], &at, 0, 0, 0));
	}
	if (m->monoid == MON_SUM && dtype_is_float(m->type))
		v = tir_select(k, touched(b, m, c, v), v, tir_float(k, m->type, 0));
	if (!m->finish[c])
		return v;
	l->acc = (PointVal){.re = v};
	l->acc_type = m->type;
	uint32_t mark = point_mark(l);
	v = point_value(l, m->finish[c], reads_exist(b, m, c)).re;
	point_release(l, mark);
	return v;
}

static void
store_value(PairwiseBuild *b, const PairwiseMember *m, unsigned c, ValId v)
{
	Point *l = &b->l;
	ValId at[TG_MAX_RANK];
	if (!l->places->stored[m->t])
		return;
	for (unsigned a = 0; a < l->g->tensor.at[m->t].rank; a++)
		at[a] = m->axis[a] < 0 ? pw_int(b, c) : l->axis[m->axis[a]];
	bool asked = may_lack(b, m, c);
	if (asked)
		tir_if(l->tir, pw_op(b, OP_LT, pw_int(b, c), point_launch_expr(l, m->beyond)));
	point_store(l, m->t, (PointVal){.re = v}, at, -1);
	if (asked) {
		tir_else(l->tir, NULL, 0);
		tir_end_if(l->tir, NULL, 0);
	}
}

static void
finish_row(PairwiseBuild *b, ValId row)
{
	Point *l = &b->l;
	unsigned f = 0;
	for (unsigned m = 0; m < b->w->nmember; m++) {
		const PairwiseMember *x = &b->w->member[m];
		const Tensor t = l->g->tensor.at[x->t];
		for (unsigned c = 0; c < x->count; c++) {
			ValId v = x->monoid ? folded(b, x, c, f, row) : point_value(l, x->body[c], reads_exist(b, x, c)).re;
			f += x->monoid != MON_NONE;
			v = tir_cast(l->tir, t.dtype, v);
			if (x->domain[c])
				v = tir_select(l->tir, point_value(l, x->domain[c], !may_lack(b, x, c)).re, v, point_zero(l, t.dtype).re);
			point_place(l, pairwise_ivar(l->g, PAIRWISE_RESULT, m * PAIRWISE_SHORT + c, t.dtype), v);
			store_value(b, x, c, v);
		}
	}
}

void
pairwise_finish(PairwiseBuild *b)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	pairwise_find_thread(b, 2);
	stage_folds(b);
	pw_barrier(b);
	ValId row = pw_op(b, OP_ADD, b->row0, b->thread);
	tir_if(k, pw_op(b, OP_AND, pw_op(b, OP_LT, b->thread, pw_int(b, b->rows)), pw_op(b, OP_LE, row, b->row_last)));
	uint32_t mark = point_mark(l);
	l->axis[b->w->nrow - 1] = row;
	finish_row(b, b->thread);
	point_release(l, mark);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	pw_barrier(b); /* where there is nothing to fold the next task stages its own at once */
}
