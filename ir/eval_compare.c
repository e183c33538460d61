/* eval_compare.c: holds packed storage against the oracle. What the oracle knows exactly must be
 * met exactly; else the bound and one spacing of the dtype are allowed. What it does not know is
 * accepted and counted as ambiguous. */
#include "ir/eval_value.h"

typedef struct {
	bool wrong;
	double ratio, bound, ulp;
} Distance;

static Distance
float_distance(DType t, double want, double err, double got)
{
	Distance d = {0};
	if (isinf(err))
		return d;
	if (!isfinite(want) || !isfinite(got)) {
		bool same = isnan(want) ? isnan(got) : want == got;
		d.wrong = !same;
		d.ratio = same ? 0 : INFINITY;
		return d;
	}
	double gap = fabs(got - want), spacing = number_ulp(t, want);
	d.bound = err > 0 ? err + spacing : 0;
	d.ulp = gap / spacing;
	d.wrong = gap > d.bound;
	d.ratio = gap > 0 ? gap / d.bound : 0;
	return d;
}

static Distance
int_distance(DType t, const EvalValue *want, int64_t got)
{
	Distance d = {.bound = want->err};
	double gap = number_distance(t, got, want->i);
	d.ulp = gap;
	d.wrong = gap > want->err * (1 + 0x1p-40);
	d.ratio = gap > 0 ? gap / want->err : 0;
	return d;
}

static Distance
element_distance(DType t, const EvalValue *want, const EvalValue *got)
{
	switch (dtype_info[t].kind) {
	case KIND_FLOAT:
		return float_distance(t, want->re, want->err, got->re);
	case KIND_COMPLEX: {
		Distance re = float_distance(t, want->re, want->err, got->re);
		Distance im = float_distance(t, want->im, want->ierr, got->im);
		re.wrong |= im.wrong;
		return im.ratio > re.ratio ? (im.wrong = re.wrong, im) : re;
	}
	case KIND_INT:
	case KIND_UINT:
	case KIND_BOOL:
		break;
	}
	return int_distance(t, want, got->i);
}

double
eval_integer(DType t, int64_t i)
{
	return t == DT_U64 ? (double)(uint64_t)i : (double)i;
}

void
eval_compare(const EvalTensor *want, const void *got, EvalCompare *out)
{
	*out = (EvalCompare){.worst = -1};
	for (int64_t n = 0; n < want->count; n++) {
		const EvalValue *w = &want->at[n];
		if (w->skip || w->fault)
			continue;
		EvalValue g = eval_load(want->dtype, got, n);
		Distance d = element_distance(want->dtype, w, &g);
		bool integer = dtype_info[want->dtype].kind != KIND_FLOAT &&
		               dtype_info[want->dtype].kind != KIND_COMPLEX;
		out->count++;
		out->mismatches += d.wrong;
		out->ambiguous += w->ambiguous;
		if (out->worst >= 0 && !(d.ratio > out->worst_ratio))
			continue;
		out->worst = n;
		out->worst_got = integer ? eval_integer(want->dtype, g.i) : g.re;
		out->worst_want = integer ? eval_integer(want->dtype, w->i) : w->re;
		out->worst_bound = d.bound;
		out->worst_ratio = d.ratio;
		out->worst_ulp = d.ulp;
	}
}
