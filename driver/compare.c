/* compare.c: see compare.h. */
#include "driver/compare.h"
#include "driver/element_text.h"
#include "driver/npy.h"

#include <math.h>
#include <string.h>

typedef struct {
	int64_t differ, worst;
	double worst_gap, worst_got, worst_want, worst_bound;
} Tally;

static bool
is_float_kind(DType t)
{
	return dtype_info[t].kind == KIND_FLOAT || dtype_info[t].kind == KIND_COMPLEX;
}

static const char *
position(Arena *a, const ResultTensor *r, int64_t n)
{
	Text t;
	text_init(&t, a);
	position_print(r->rank, r->shape, n, &t);
	return text_get(&t);
}

Comparison
compare_oracle(Arena *a, const ResultTensor *got, const EvalTensor *want)
{
	EvalCompare c;
	Text t;
	text_init(&t, a);
	eval_compare(want, got->data, &c);
	bool unsure = c.ambiguous * 100 > c.count;
	text_printf(&t, "%s: %lld of %lld elements differ from the evaluator", got->name, (long long)c.mismatches,
	            (long long)c.count);
	if (c.worst >= 0)
		text_printf(&t, "; worst at %s: got %.9g, want %.9g, bound %.3g, %.3g of the bound, %.3g ulp",
		            position(a, got, c.worst), c.worst_got, c.worst_want, c.worst_bound, c.worst_ratio, c.worst_ulp);
	if (unsure)
		text_printf(&t, "; %lld are decided by comparisons within their own error: choose other inputs",
		            (long long)c.ambiguous);
	return (Comparison){c.mismatches > 0 || unsure, text_get(&t)};
}

static Comparison
report(Arena *a, const ResultTensor *got, const Tally *t, const char *what)
{
	if (t->differ == 0)
		return (Comparison){false, arena_text(a, "%s: all %lld elements agree with %s", got->name,
		                                      (long long)got->count, what)};
	return (Comparison){true, arena_text(a, "%s: %lld of %lld elements differ from %s; worst at %s: got %.9g, want %.9g, "
	                                        "bound %.3g, %.3g ulp",
	                                     got->name, (long long)t->differ, (long long)got->count, what,
	                                     position(a, got, t->worst), t->worst_got, t->worst_want, t->worst_bound,
	                                     is_float_kind(got->dtype)
	                                         ? t->worst_gap / eval_ulp(got->dtype == DT_C64 ? DT_F32 : got->dtype, t->worst_want)
	                                         : t->worst_gap)};
}

static void
count_difference(Tally *t, int64_t n, double got, double want, double gap, double bound)
{
	if (t->differ == 0 || !(gap <= t->worst_gap)) {
		t->worst = n;
		t->worst_gap = gap;
		t->worst_got = got;
		t->worst_want = want;
		t->worst_bound = bound;
	}
	t->differ++;
}

/* Counts one pair of numbers; equal infinities and NaNs agree. */
static void
tally(Tally *t, int64_t n, double got, double want, double bound)
{
	double gap = got == want || (isnan(got) && isnan(want)) ? 0 : fabs(got - want);
	if (gap != 0 && !(gap <= bound))
		count_difference(t, n, got, want, gap, bound);
}

/* Counts two integers that differ, though not always as doubles. */
static void
tally_integers(Tally *t, DType type, int64_t n, int64_t got, int64_t want)
{
	double g = eval_integer(type, got), w = eval_integer(type, want);
	count_difference(t, n, g, w, fmax(fabs(g - w), 1), 0);
}

static void
tally_element(Tally *t, const ResultTensor *got, DType ref_type, const void *ref, int64_t n, double rtol, double atol)
{
	EvalValue g = eval_load(got->dtype, got->data, n), w = eval_load(ref_type, ref, n);
	if (!is_float_kind(got->dtype)) {
		if (g.i != w.i)
			tally_integers(t, got->dtype, n, g.i, w.i);
		return;
	}
	int64_t before = t->differ;
	tally(t, n, g.re, w.re, atol + rtol * fabs(w.re));
	if (got->dtype == DT_C64 && t->differ == before)
		tally(t, n, g.im, w.im, atol + rtol * fabs(w.im));
}

/* The type of the file's elements as a reference for a result of type t. */
static DType
reference_type(const Npy *npy, DType t)
{
	if (npy_holds(npy, t))
		return t;
	DType plain = npy_plain_dtype(npy->descr);
	return dtype_is_float(plain) && dtype_is_float(t) ? plain : DT_NONE;
}

bool
compare_file(Session *s, const ResultTensor *got, const char *path, double rtol, double atol, Comparison *out)
{
	NpyFile f;
	Npy npy;
	unsigned rank;
	int64_t shape[NPY_MAX_RANK];
	if (!npy_open(&s->host->files, path, &f, &npy, &s->arena, &s->problem))
		return false;
	DType t = reference_type(&npy, got->dtype);
	bool fits = t && npy_shape(&npy, t, &rank, shape) && rank == got->rank;
	for (unsigned k = 0; fits && k < rank; k++)
		fits = shape[k] == got->shape[k];
	if (!fits) {
		npy_close(&f);
		return problem(&s->problem, EXIT_INPUT, "%s holds '%s' of shape %s, which %s: %s%s can't be compared with", path,
		               npy.descr, shape_text(&s->arena, npy.rank < TG_MAX_RANK ? npy.rank : TG_MAX_RANK, npy.shape),
		               got->name, dtype_info[got->dtype].text, shape_text(&s->arena, got->rank, got->shape));
	}
	if (!npy_read_data(&f, &npy, &s->data, &s->problem))
		return false;
	Tally all = {0};
	for (int64_t n = 0; n < got->count; n++)
		tally_element(&all, got, t, npy.data, n, rtol, atol);
	*out = report(&s->arena, got, &all, path);
	return true;
}

static void
tally_literal(Tally *t, DType type, const EvalValue *w, const LiteralItem *v, int64_t n)
{
	if (type == DT_C64) {
		int64_t before = t->differ;
		tally(t, n, w->re, v->re, w->err + v->half + eval_ulp(DT_F32, w->re));
		if (t->differ == before)
			tally(t, n, w->im, v->im, w->ierr + v->ihalf + eval_ulp(DT_F32, w->im));
		return;
	}
	double rounding = w->err > 0 || v->half > 0 ? eval_ulp(type, w->re) : 0;
	tally(t, n, w->re, v->re, w->err + v->half + rounding);
}

/* An integer result has the literal's value exactly, u64 by its bits. */
static void
tally_integer(Tally *t, DType type, const EvalValue *w, const LiteralItem *v, int64_t n)
{
	int64_t want = v->negative ? (int64_t)(0 - v->u) : (int64_t)v->u;
	bool kind_ok = v->kind == (type == DT_BOOL ? LITERAL_BOOL : LITERAL_INT) ||
	               (type == DT_BOOL && v->kind == LITERAL_INT && v->u < 2);
	if (w->i != want || !kind_ok)
		tally_integers(t, type, n, w->i, want);
}

bool
compare_literal(Session *s, const EvalTensor *want, const ResultTensor *shape, const Literal *lit, Comparison *out)
{
	bool fits = lit->rank == shape->rank;
	for (unsigned k = 0; fits && k < lit->rank; k++)
		fits = lit->shape[k] == shape->shape[k];
	if (!fits)
		return problem(&s->problem, EXIT_INPUT, "the literal of %s has shape %s, the result %s", shape->name,
		               shape_text(&s->arena, lit->rank, lit->shape), shape_text(&s->arena, shape->rank, shape->shape));
	Tally all = {0};
	for (int64_t n = 0; n < want->count; n++) {
		const EvalValue *w = &want->at[n];
		if (w->skip)
			continue;
		if (is_float_kind(want->dtype))
			tally_literal(&all, want->dtype, w, &lit->item.at[n], n);
		else
			tally_integer(&all, want->dtype, w, &lit->item.at[n], n);
	}
	*out = report(&s->arena, shape, &all, "what is expected");
	return true;
}
