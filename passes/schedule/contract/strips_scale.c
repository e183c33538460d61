/* strips_scale.c: weights of few bits, by scales that groups of terms have in common (strips.c).
 *
 *     sum[k](x[m, k] * ((q[n, k] - z[n, k div 64]) * s[n, k div 64]))
 *
 * The terms of a group are summed without their scale: q is a whole number of 8 bits, or another type whose every number is
 * one of the 16 bits that are multiplied, or a difference of such whole numbers that is, so each product is exact, as in a contraction
 * of two such factors. The sums are
 * multiplied by the scale, and added to those of the groups before, by fma. So a weight is converted and nothing else,
 * and a scale is applied once for each of its groups' sums. */
#include "passes/schedule/contract/strips.h"

#include "ir/bugs.h"
#include "ir/warp_mma.h"

enum {
	MOST_WHOLE = 256 /* below which bf16 has all whole numbers, and f16 */
};

/* Whether e is the same for all terms of a group of so many, the first of which is a multiple of it. */
static bool
is_same_in_group(const Graph *g, Arena *scratch, ExprId e, unsigned axis, unsigned group)
{
	if (!(expr_axes(g, scratch, e) >> axis & 1))
		return true;
	const Expr *p = expr_get(g, e);
	if (p->op == OP_IDIV) {
		const Expr *of = expr_get(g, expr_arg(g, e, 0)), *by = expr_get(g, expr_arg(g, e, 1));
		return of->op == OP_AXIS && by->op == OP_CONST && by->imm.i > 0 && by->imm.i % group == 0;
	}
	if (p->op == OP_AXIS)
		return false;
	for (unsigned k = 0; k < p->narg; k++)
		if (!is_same_in_group(g, scratch, expr_arg(g, e, k), axis, group))
			return false;
	return true;
}

/* Whether e is f32(q), q a whole number of few bits: between which it is. */
static bool
is_whole(const Graph *g, ExprId e, int *lo, int *hi)
{
	const Expr *p = expr_get(g, e);
	if (p->op != OP_CAST || p->dtype != DT_F32)
		return false;
	DType from = (DType)expr_get(g, expr_arg(g, e, 0))->dtype;
	unsigned bits = dtype_info[from].bits;
	if (!dtype_is_int(from) || bits > 8)
		return false;
	bool is_signed = dtype_info[from].kind == KIND_INT;
	*lo = is_signed ? -(1 << (bits - 1)) : 0;
	*hi = (1 << (bits - is_signed)) - 1;
	return true;
}

/* Whether e is an f32 that type t has as well, whatever it is. */
static bool
is_exact(const Graph *g, ExprId e, DType t)
{
	const Expr *p = expr_get(g, e);
	int lo[2], hi[2];
	if (p->op == OP_SUB && is_whole(g, expr_arg(g, e, 0), &lo[0], &hi[0]) && is_whole(g, expr_arg(g, e, 1), &lo[1], &hi[1]))
		return lo[0] - hi[1] >= -MOST_WHOLE && hi[0] - lo[1] <= MOST_WHOLE;
	if (p->op != OP_CAST || p->dtype != DT_F32)
		return false;
	DType from = (DType)expr_get(g, expr_arg(g, e, 0))->dtype;
	return from == t || (dtype_is_int(from) && dtype_info[from].bits <= 8) || from == DT_F8E4M3 || from == DT_F8E5M2 || from == DT_F4E2M1;
}

bool
strip_factors_list(const Graph *g, ExprId e, ExprId *at, unsigned *n)
{
	if (expr_get(g, e)->op == OP_MUL)
		return strip_factors_list(g, expr_arg(g, e, 0), at, n) && strip_factors_list(g, expr_arg(g, e, 1), at, n);
	if (*n == STRIPS_FACTORS)
		return false;
	at[(*n)++] = e;
	return true;
}

static bool
part_factors(const Graph *g, Arena *scratch, const ExprId *at, unsigned n, unsigned term_axis, unsigned group, DType t, StripScales *out)
{
	*out = (StripScales){.group = group};
	for (unsigned k = 0; k < n; k++) {
		bool same = is_same_in_group(g, scratch, at[k], term_axis, group);
		if (same && out->n < STRIPS_SCALES)
			out->at[out->n++] = at[k];
		else if (same || out->exact || !is_exact(g, at[k], t))
			return false;
		else
			out->exact = at[k];
	}
	return out->exact && out->n;
}

static EarlyHow
once(void *user, const Graph *g, Arena *scratch, ExprId read)
{
	(void)user, (void)g, (void)scratch, (void)read;
	return EARLY_ONCE;
}

/* What the scales read, of all of them. */
static void
find_reads(const Graph *g, Arena *scratch, StripScales *s)
{
	for (unsigned n = 0; n < s->n; n++) {
		EarlyReads own;
		early_reads_find(g, scratch, s->at[n], once, NULL, &own);
		for (unsigned r = 0, k; r < own.n && s->reads.n < EARLY_READS; r++) {
			for (k = 0; k < s->reads.n && s->reads.at[k].read != own.at[r].read;)
				k++;
			if (k == s->reads.n)
				s->reads.at[s->reads.n++] = own.at[r];
		}
	}
}

bool
strip_scales_find(const Graph *g, Arena *scratch, const ExprId *at, unsigned n, unsigned term_axis, DType t, StripScales *out)
{
	for (unsigned group = STRIPS_GROUP; group >= STRIPS_RING_GROUP; group /= 2)
		if (part_factors(g, scratch, at, n, term_axis, group, t, out)) {
			find_reads(g, scratch, out);
			return true;
		}
	return false;
}

void
strip_scales_declare(Strips *s)
{
	s->scales.reads.stand_in = 2 * EARLY_READS; /* behind those of both factors */
	for (unsigned n = 0; n < s->scales.n; n++) {
		s->scales.made[n] = early_reads_replace(s->l.g, s->l.scratch, s->scales.at[n], &s->scales.reads);
		point_declare(&s->l, s->scales.at[n]);
		point_declare(&s->l, s->scales.made[n]);
	}
}

ValId
strip_scale_of(Strips *s, unsigned row, ValId term, const ValId *read)
{
	Point *l = &s->l;
	ValId scale = 0;
	l->axis[s->side[0].own_axis] = s->side[0].own[row];
	l->axis[s->term_axis] = term;
	for (unsigned r = 0; r < s->scales.reads.n; r++)
		point_place(l, early_stand_in(l->g, &s->scales.reads, r), read[r]);
	for (unsigned n = 0; n < s->scales.n; n++) {
		ValId v = early_value(l, s->scales.made[n], true);
		scale = n ? strips_op(s, OP_MUL, scale, v) : v;
	}
	return scale;
}

void
strip_scales_read(Strips *s, ValId term, ValId *scale)
{
	ValId read[STRIPS_ROWS][EARLY_READS];
	for (unsigned row = 0; row < s->side[0].rows; row++) {
		s->l.axis[s->side[0].own_axis] = s->side[0].own[row];
		s->l.axis[s->term_axis] = term;
		for (unsigned r = 0; r < s->scales.reads.n; r++)
			read[row][r] = early_value(&s->l, s->scales.reads.at[r].read, true);
	}
	for (unsigned row = 0; row < s->side[0].rows; row++)
		scale[row] = strip_scale_of(s, row, term, read[row]);
}

void
strip_scales_add(Strips *s, const ValId *scale, const ValId *sums, ValId there, ValId *acc)
{
	TirKernel *k = s->l.tir;
	for (unsigned n = 0; n < s->few_tiles * WARP_MMA_C; n++) {
		unsigned row = n / 2 % 2;
		ValId sum = tir_fma(k, BUG(strip_scales_alike) ? scale[0] : scale[row], sums[n], acc[n]);
		acc[n] = there ? tir_select(k, there, sum, acc[n]) : sum;
	}
}
