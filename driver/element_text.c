/* element_text.c: see element_text.h. */
#include "driver/element_text.h"
#include "ir/eval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether storing v gives the very same element. */
static bool
same_element(DType t, double want, double v)
{
	char a[16] = {0}, b[16] = {0};
	eval_store(t, a, 0, (EvalValue){.re = want});
	eval_store(t, b, 0, (EvalValue){.re = v});
	return memcmp(a, b, sizeof a) == 0;
}

static void
real_print(DType t, double v, bool json, Text *out)
{
	char s[40];
	if (isnan(v) || isinf(v)) {
		const char *q = json ? "\"" : "";
		text_printf(out, "%s%s%s", q, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf", q);
		return;
	}
	bool plain = fabs(v) >= 1e-4 && fabs(v) < 1e16; /* 10, not 1e+01 */
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(s, sizeof s, "%.*g", digits, v);
		if (same_element(t, v, strtod(s, NULL)) && !(plain && strchr(s, 'e')))
			break;
	}
	text_printf(out, "%s", s);
}

void
element_print(DType t, const void *packed, int64_t n, bool json, Text *out)
{
	EvalValue v = eval_load(t, packed, n);
	switch (dtype_info[t].kind) {
	case KIND_BOOL:
		text_printf(out, "%s", v.i ? "true" : "false");
		return;
	case KIND_INT:
		text_printf(out, "%lld", (long long)v.i);
		return;
	case KIND_UINT:
		text_printf(out, "%llu", (unsigned long long)v.i);
		return;
	case KIND_FLOAT:
		real_print(t, v.re, json, out);
		return;
	case KIND_COMPLEX:
		text_printf(out, json ? "[" : "(");
		real_print(DT_F32, v.re, json, out);
		text_printf(out, ", ");
		real_print(DT_F32, v.im, json, out);
		text_printf(out, json ? "]" : ")");
		return;
	}
}

static int64_t
inner_count(unsigned rank, const int64_t *shape, unsigned axis)
{
	int64_t n = 1;
	for (unsigned k = axis + 1; k < rank; k++)
		n *= shape[k];
	return n;
}

/* One axis and all below it; `at` is the position of its first element. */
static void
axis_print(DType t, unsigned rank, const int64_t *shape, unsigned axis, const void *packed, int64_t at, int64_t most,
           bool json, Text *out)
{
	if (axis == rank) {
		element_print(t, packed, at, json, out);
		return;
	}
	int64_t inner = inner_count(rank, shape, axis), shown = most && shape[axis] > most ? most : shape[axis];
	text_printf(out, "[");
	for (int64_t i = 0; i < shown; i++) {
		if (i && !json && axis + 1 < rank)
			text_printf(out, ",\n%*s", (int)axis + 3, "");
		else if (i)
			text_printf(out, ", ");
		axis_print(t, rank, shape, axis + 1, packed, at + i * inner, most, json, out);
	}
	if (shown < shape[axis])
		text_printf(out, json ? ", \"...\"" : ", ...");
	text_printf(out, "]");
}

void
tensor_print(DType t, unsigned rank, const int64_t *shape, const void *packed, int64_t most, bool json, Text *out)
{
	axis_print(t, rank, shape, 0, packed, 0, most, json, out);
}

void
position_print(unsigned rank, const int64_t *shape, int64_t n, Text *out)
{
	text_printf(out, "[");
	for (unsigned k = 0; k < rank; k++) {
		int64_t inner = inner_count(rank, shape, k);
		text_printf(out, "%s%lld", k ? ", " : "", (long long)(n / inner % shape[k]));
	}
	text_printf(out, "]");
}
