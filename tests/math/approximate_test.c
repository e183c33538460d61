/* approximate_test.c: what fast mode writes with the target's units is within what the oracle allows, at special values too, where
 * the interpreter's units are as far off as they may be; and that it is units, for f32 alone. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/eval_value.h"
#include "passes/tile/tile.h"
#include "tests/math/kernel.h"
#include "tests/math/points.h"

enum { N = 8192, ROUNDS = 16, LANES = 8 };

typedef struct Form Form;
struct Form {
	const char *name;
	ValId (*made)(TirKernel *k, const Form *f, ValId x, ValId y);
	Val (*allowed)(const Form *f, Val x, Val y); /* of the oracle */
	Op op;
	double c, n;
	const char *units; /* the operations in it that are units, by their names */
};

static ValId
number(TirKernel *k, double c)
{
	return tir_float(k, DT_F32, c);
}

/* --- what is made, and what the oracle says --- */

static ValId
made_function(TirKernel *k, const Form *f, ValId x, ValId y)
{
	(void)y;
	return tir_unary(k, f->op, x);
}

static Val
allowed_function(const Form *f, Val x, Val y)
{
	(void)y;
	return math_unary(FP_FAST, f->op, DT_F32, DT_NONE, x);
}

static ValId
made_quotient(TirKernel *k, const Form *f, ValId x, ValId y)
{
	(void)f;
	return tir_binary(k, OP_FDIV, x, y);
}

static Val
allowed_quotient(const Form *f, Val x, Val y)
{
	(void)f;
	return arith_div(FP_FAST, DT_F32, x, y);
}

static ValId
made_by_number(TirKernel *k, const Form *f, ValId x, ValId y)
{
	(void)y;
	return tir_binary(k, OP_FDIV, x, number(k, f->c));
}

static Val
allowed_by_number(const Form *f, Val x, Val y)
{
	(void)y;
	return arith_div(FP_FAST, DT_F32, x, val_float((float)f->c));
}

static ValId
made_power(TirKernel *k, const Form *f, ValId x, ValId y)
{
	(void)y;
	return tir_binary(k, OP_POW, x, number(k, f->n));
}

static Val
allowed_power(const Form *f, Val x, Val y)
{
	(void)y;
	return math_pow(FP_FAST, DT_F32, DT_NONE, x, val_float(f->n));
}

static ValId
made_over_power(TirKernel *k, const Form *f, ValId x, ValId y)
{
	return tir_binary(k, OP_FDIV, number(k, f->c), made_power(k, f, x, y));
}

static Val
allowed_over_power(const Form *f, Val x, Val y)
{
	return arith_div(FP_FAST, DT_F32, val_float((float)f->c), allowed_power(f, x, y));
}

static ValId
made_over_root(TirKernel *k, const Form *f, ValId x, ValId y)
{
	return tir_binary(k, OP_FDIV, f->c ? number(k, f->c) : y, tir_unary(k, OP_SQRT, x));
}

static Val
allowed_over_root(const Form *f, Val x, Val y)
{
	return arith_div(FP_FAST, DT_F32, f->c ? val_float((float)f->c) : y, math_unary(FP_FAST, OP_SQRT, DT_F32, DT_NONE, x));
}

/* By 1 + x^2, which is known to be 1 or more, as the graph would tell. */
static ValId
made_from_1(TirKernel *k, const Form *f, ValId x, ValId y)
{
	ValId v = tir_binary(k, OP_FDIV, f->c ? number(k, f->c) : y, tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, x, x), number(k, 1)));
	k->inst.at[v].imm.i = TIR_FROM_1;
	return v;
}

static Val
allowed_from_1(const Form *f, Val x, Val y)
{
	Val b = val_float((float)((float)x.re * (float)x.re) + 1.0f);
	return arith_div(FP_FAST, DT_F32, f->c ? val_float((float)f->c) : y, b);
}

#define FUNCTION(op, units) {#op, made_function, allowed_function, OP_##op, 0, 0, units}
#define POWER(n, units) {"x^" #n, made_power, allowed_power, OP_NONE, 0, n, units}
#define OVER(c, n, units) {#c " / x^" #n, made_over_power, allowed_over_power, OP_NONE, c, n, units}
static const Form forms[] = {
	FUNCTION(SQRT, "near_sqrt "), FUNCTION(RSQRT, "near_rsqrt "), FUNCTION(EXP, "ex2 "), FUNCTION(EXP2, "ex2 "), FUNCTION(EXPM1, "ex2 "),
	FUNCTION(LOG, "lg2 "), FUNCTION(LOG2, "lg2 "), FUNCTION(LOG1P, "lg2 "), FUNCTION(TANH, "near_tanh "), FUNCTION(SIN, "near_sin "),
	FUNCTION(COS, "near_cos "), FUNCTION(ERF, ""),
	{"x / y", made_quotient, allowed_quotient, OP_NONE, 0, 0, ""},
	{"x / 3", made_by_number, allowed_by_number, OP_NONE, 3, 0, ""},
	{"x / -1e-30", made_by_number, allowed_by_number, OP_NONE, -1e-30, 0, ""},
	{"x / 3e38", made_by_number, allowed_by_number, OP_NONE, 3e38, 0, ""},
	POWER(2, ""), POWER(3, ""), POWER(4, ""), POWER(7, ""), POWER(12, ""), POWER(17, ""), POWER(-1, "near_div "),
	POWER(-2, "rcp flush_mul "), POWER(-3, "rcp flush_mul flush_mul "), POWER(-4, "rcp flush_mul flush_mul flush_mul "),
	POWER(-5, "rcp flush_mul flush_mul flush_mul "), POWER(-6, "rcp flush_mul flush_mul "),
	POWER(-7, "rcp rcp flush_mul flush_mul flush_mul "), POWER(-8, "rcp flush_mul flush_mul flush_mul "), POWER(-9, "near_div "), POWER(-13, "near_div "),
	POWER(0.5, ""),
	OVER(1, 2, "rcp flush_mul "), OVER(1, 4, "rcp flush_mul flush_mul flush_mul "),
	OVER(2, 7, "rcp flush_mul flush_mul flush_mul flush_mul flush_mul flush_mul "), OVER(1.5, 7, "rcp rcp flush_mul flush_mul flush_mul flush_mul "),
	OVER(-0.3, 6, "rcp flush_mul flush_mul flush_mul flush_mul flush_mul "), OVER(1, 9, "rcp rcp flush_mul flush_mul flush_mul flush_mul "),
	OVER(2.5, 3, ""), OVER(1, 17, ""), OVER(1e-38, 3, ""),
	{"1 / sqrt(x)", made_over_root, allowed_over_root, OP_NONE, 1, 0, "near_sqrt near_rsqrt "},
	{"y / sqrt(x)", made_over_root, allowed_over_root, OP_NONE, 0, 0, "near_sqrt near_rsqrt "},
	{"1 / (1 + x^2)", made_from_1, allowed_from_1, OP_NONE, 1, 0, "rcp "},
	{"0.7 / (1 + x^2)", made_from_1, allowed_from_1, OP_NONE, 0.7, 0, ""},
	{"7 / (1 + x^2)", made_from_1, allowed_from_1, OP_NONE, 7, 0, ""},
	{"y / (1 + x^2)", made_from_1, allowed_from_1, OP_NONE, 0, 0, ""},
};
enum { NFORM = sizeof forms / sizeof forms[0] };

/* --- inputs --- */

/* Of all kinds, those of powers mostly where results are no infinity and no zero. */
static void
fill(const Form *f, uint64_t first, float *x, float *y)
{
	static const float edge[] = {0, 1, 2, 0.5f, 3, INFINITY, NAN, 0x1p-149f, 0x1.8p-148f, 0x1p-126f, 0x1.fffffep-127f, 0x1p-127f, 0x1p126f,
	                             0x1.8p126f, 0x1.fffffep127f, 0x1p127f, 0x1.000002p0f, 0x1.fffffep-1f, 0x1p64f, 0x1p-64f, 0x1p18f,
	                             0x1p-18f, 0x1p-63f, 0x1.8p-64f, 0x1.921fb6p1f, 0x1p17f, 0x1.00001p17f, 88.7f, 88.73f, 89.5f, -104, 1e-5f};
	enum { NEDGE = sizeof edge / sizeof edge[0] };
	double n = fmax(fabs(f->n), 1), reach = 130 / n;
	points(f->op ? f->op : OP_EXP, DT_F32, first, N, x, y);
	for (uint64_t i = 0; i < N; i++) {
		uint64_t h = mix_bits(first + i), g = mix_bits(h);
		uint32_t any = (uint32_t)g;
		if (f->n != 0 && i % 8)
			x[i] = (float)ldexp(1 + (double)(h >> 12) * 0x1p-52, (int)(reach * ((double)(g >> 11) * 0x1p-52 - 1)));
		memcpy(&y[i], &any, sizeof any);
		if (i % 4 == 1) /* quotients of all sizes and not of infinite ones alone */
			y[i] = x[i] * (float)(0.5 + (double)(g >> 12) * 0x1p-52);
	}
	for (unsigned i = 0; first == 0 && i < NEDGE * NEDGE * 4 && i < N; i++) {
		x[i] = i & 1 ? -edge[i / 4 % NEDGE] : edge[i / 4 % NEDGE];
		y[i] = i & 2 ? -edge[i / 4 / NEDGE] : edge[i / 4 / NEDGE];
	}
}

/* --- the kernel --- */

static void
make(Rig *r, const Form *f, DType t)
{
	TirKernel *k = r->k;
	for (unsigned b = 0; b < 3; b++)
		tir_add_buffer(k, name_cstr(r->names, b == 0 ? "x" : b == 1 ? "y" : "z"), t, b == 2);
	ValId size = tir_int(k, DT_I64, N), one = tir_int(k, DT_I64, 1), step = tir_int(k, DT_I64, LANES), view[3], in[2];
	for (unsigned b = 0; b < 3; b++)
		view[b] = tir_view(k, b, 1, &size, &one);
	ValId i = tir_for(k, tir_int(k, DT_I64, 0), size, step, NULL, 0);
	for (unsigned b = 0; b < 2; b++)
		in[b] = tir_load(k, view[b], &i, 0, TIR_LANES_ALONG(0), LANES);
	tir_store(k, view[2], f->made(k, f, in[0], in[1]), &i, 0, TIR_LANES_ALONG(0));
	tir_end_for(k, NULL, 0);
}

static void
list_units(const TirKernel *k, char *out, size_t n)
{
	out[0] = 0;
	for (ValId v = 1; v < k->inst.n; v++)
		if (op_info[tir_inst(k, v)->op].flags & F_UNIT)
			snprintf(out + strlen(out), n - strlen(out), "%s ", op_info[tir_inst(k, v)->op].text);
}

/* --- tests --- */

static void
check_points(const Form *f, const float *x, const float *y, const float *z)
{
	for (unsigned i = 0; i < N; i++) {
		Val w = f->allowed(f, val_float(x[i]), val_float(y[i]));
		double got = z[i];
		bool fine = !isfinite(w.err) || (isnan(w.re) ? isnan(got) : !isfinite(w.re) ? got == w.re : fabsl(got - w.re) <= w.err);
		if (!fine)
			fail_msg("%s of %a, %a: %a, not %La within %a", f->name, (double)x[i], (double)y[i], got, w.re, w.err);
		/* zeros have their signs, as far as they are known */
		if (w.err == 0 && w.re == 0 && signbit(got) != signbit((double)w.re))
			fail_msg("%s of %a, %a: %a", f->name, (double)x[i], (double)y[i], got);
	}
}

static void
try_form(Rig *r, const void *arg)
{
	static float x[N], y[N], z[N];
	const Form *f = arg;
	int64_t count = N;
	RigRun run = {.data = {x, y, z}, .count = {count, count, count}, .ntask = 1};
	make(r, f, DT_F32);
	r->k = tile_approximate(r->k, &r->arena);
	kernel_lower_ex2(r);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		fill(f, round * N, x, y);
		rig_interpret(r, &run);
		check_points(f, x, y, z);
	}
}

static void
within_what_is_allowed(void **state)
{
	(void)state;
	for (unsigned n = 0; n < NFORM; n++)
		rig_run("f", try_form, &forms[n]);
}

static void
list_form(Rig *r, const void *arg)
{
	const Form *f = arg;
	char units[256];
	make(r, f, DT_F32);
	list_units(tile_approximate(r->k, &r->arena), units, sizeof units);
	if (strcmp(units, f->units) != 0)
		fail_msg("%s has the units %s", f->name, units);
}

static void
leave_f64(Rig *r, const void *arg)
{
	make(r, arg, DT_F64);
	assert_ptr_equal(tile_approximate(r->k, &r->arena), r->k);
}

static void
by_units_of_f32(void **state)
{
	(void)state;
	for (unsigned n = 0; n < NFORM; n++) {
		rig_run("f", list_form, &forms[n]);
		if (forms[n].op) /* the others have numbers of f32 in them */
			rig_run("f", leave_f64, &forms[n]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(within_what_is_allowed), cmocka_unit_test(by_units_of_f32)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
