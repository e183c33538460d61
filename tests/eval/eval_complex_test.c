/* The bounds of c64 hold for the usual algorithms: products with and without contraction,
 * quotients by the conjugate and by Smith's method, sums and products in any order, roots of unity
 * from an f32 sine of the exact fraction. */
#include "bench.h"

#include <math.h>

#include "ir/eval_value.h"

typedef struct {
	float re, im;
} C;

static uint64_t seed = 1;

static uint64_t
draw(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return seed >> 33;
}

static float
uniform(void)
{
	return (float)draw() * 0x1p-31f;
}

static C
draw_number(void)
{
	float scale = draw() % 4 ? 1 : ldexpf(1, (int)(draw() % 40) - 20);
	return (C){(uniform() - 0.5f) * scale, (uniform() - 0.5f) * scale};
}

static C
product(C a, C b, bool fused)
{
	if (fused)
		return (C){fmaf(a.re, b.re, -(a.im * b.im)), fmaf(a.re, b.im, a.im * b.re)};
	return (C){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static C
quotient(C a, C b, bool smith)
{
	if (!smith) {
		float d = b.re * b.re + b.im * b.im;
		return (C){(a.re * b.re + a.im * b.im) / d, (a.im * b.re - a.re * b.im) / d};
	}
	if (fabsf(b.re) >= fabsf(b.im)) {
		float r = b.im / b.re, d = b.re + b.im * r;
		return (C){(a.re + a.im * r) / d, (a.im - a.re * r) / d};
	}
	float r = b.re / b.im, d = b.re * r + b.im;
	return (C){(a.re * r + a.im) / d, (a.im * r - a.re) / d};
}

static Val
exact(C a)
{
	return (Val){.re = a.re, .im = a.im};
}

static double worst;

static void
check(const char *what, double re, double im, double err, double ierr, C got)
{
	if (!(fabs(got.re - re) <= err) || !(fabs(got.im - im) <= ierr))
		fail_msg("%s: got %.9g %.9g, oracle %.9g +- %g, %.9g +- %g", what, got.re, got.im, re, err,
			im, ierr);
	if (err > 0 && isfinite(err))
		worst = fmax(worst, fabs(got.re - re) / err);
}

static void
check_val(const char *what, Val want, C got)
{
	check(what, (double)want.re, (double)want.im, want.err, want.ierr, got);
}

static void
binary_operations(void **state)
{
	(void)state;
	double reached[2] = {0};
	for (int k = 0; k < 20000; k++) {
		C a = draw_number(), b = draw_number();
		Val p = complex_binary(FP_RELAXED, OP_MUL, exact(a), exact(b));
		Val q = complex_binary(FP_RELAXED, OP_FDIV, exact(a), exact(b));
		worst = reached[0];
		check_val("product", p, product(a, b, k % 2));
		reached[0] = worst, worst = reached[1];
		check_val("quotient", q, quotient(a, b, k % 2));
		reached[1] = worst;
	}
	assert_true(reached[0] >= 0.25 && reached[1] >= 0.05);
}

enum { TERMS = 20 };

static const EvalValue *
reduced(Bench *b, Monoid m, const C *x)
{
	bench_open(b, FP_RELAXED);
	TensorId t = bench_input(b, DT_C64, x, 1, TERMS, 0);
	Node n = {.monoid = m};
	n.body = bench_read(b, t, 1, bench_reduced(b, &n, TERMS), 0, 0);
	bench_result(b, bench_node(b, n, DT_C64, 0, 0));
	assert_int_equal(bench_eval(b), EVAL_OK);
	return bench_at(b, 0, 0);
}

static void
reductions_in_any_order(void **state)
{
	(void)state;
	for (int k = 0; k < 600; k++) {
		Bench b;
		C x[TERMS], p[TERMS];
		Monoid m = k % 2 ? MON_SUM : MON_PROD;
		for (int e = 0; e < TERMS; e++) {
			x[e] = draw_number();
			if (m == MON_PROD)
				x[e] = (C){x[e].re + (draw() % 2 ? 1 : -1), uniform() - 0.5f};
		}
		const EvalValue *want = reduced(&b, m, x);
		for (int again = 0; again < 6; again++) {
			unsigned n = TERMS;
			for (unsigned e = 0; e < n; e++)
				p[e] = x[e];
			while (n > 1) {
				unsigned i = (unsigned)(draw() % n);
				C y = p[i];
				p[i] = p[--n];
				unsigned j = (unsigned)(draw() % n);
				p[j] = m == MON_SUM ? (C){p[j].re + y.re, p[j].im + y.im} : product(p[j], y,
					draw() % 2);
			}
			check(m == MON_SUM ? "sum" : "prod", want->re, want->im, want->err, want->ierr, p[0]);
		}
		bench_close(&b);
	}
}

static void
roots_of_unity(void **state)
{
	(void)state;
	worst = 0;
	for (int64_t n = 1; n < 200; n++)
		for (int64_t a = -n; a < 2 * n; a += 1 + n / 20) {
			int64_t r = ((a % n) + n) % n;
			double angle = 6.283185307179586 * (double)r / (double)n;
			C got = {(float)cos(angle), (float)sin(angle)};
			if (draw() % 2)
				got.re = nextafterf(got.re, 2);
			check_val("root", complex_root(a, n), got);
		}
	assert_true(worst >= 0.05);
	Val none = complex_root(3, 0);
	assert_true(isnan(none.re) && isnan(none.im));
}

/* Powers of two and their sums lose nothing, so nothing may differ. */
static void
exact_operations_have_no_bound(void **state)
{
	(void)state;
	C a = {3, -4}, b = {0.5f, 2};
	Val p = complex_binary(FP_RELAXED, OP_MUL, exact(a), exact(b));
	assert_true(p.re == 9.5 && p.im == 4 && p.err == 0 && p.ierr == 0);
	C x[TERMS];
	for (int e = 0; e < TERMS; e++)
		x[e] = (C){(float)e, (float)-e};
	Bench bench;
	const EvalValue *want = reduced(&bench, MON_SUM, x);
	assert_true(want->re == 190 && want->im == -190 && want->err == 0 && want->ierr == 0);
	bench_close(&bench);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(binary_operations),
		cmocka_unit_test(reductions_in_any_order),
		cmocka_unit_test(roots_of_unity),
		cmocka_unit_test(exact_operations_have_no_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
