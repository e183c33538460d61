/* The bounds hold: random expressions and reductions are computed again in plain C floats, with
 * every freedom an implementation has (contraction, the order of sums, functions anywhere within
 * their budget), and no value may be further from the oracle's than it says. And they mean
 * something: for every operation the distance comes near the bound, and a dropped term is seen. */
#include "bench.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed;

static uint64_t
draw(void)
{
	seed += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = seed;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static unsigned
pick(unsigned n)
{
	return (unsigned)(draw() % n);
}

static double
uniform(void)
{
	return (double)(draw() >> 11) * 0x1p-53;
}

static double
number(DType t)
{
	static const double special[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, FLT_MAX, 1e-44, 0.5, -2};
	double sign = pick(2) ? 1 : -1, x;
	switch (pick(8)) {
	case 0:
		x = special[pick(sizeof special / sizeof special[0])];
		break;
	case 1:
		x = sign * ldexp(1 + uniform(), (int)pick(250) - 125);
		break;
	case 2:
		x = (double)pick(20) - 10;
		break;
	case 3:
		x = sign * (88 + uniform());
		break;
	default:
		x = sign * uniform() * 4;
	}
	return t == DT_F32 ? (float)x : x;
}

/* --- an implementation --- */

typedef struct {
	const Graph *g;
	const void *input[2];
	int64_t at;
	double f[256]; /* by ExprId */
	int64_t i[256];
} Machine;

static double
rounded(DType t, double x)
{
	return t == DT_F64 ? x : (float)x;
}

static double
budget(FpMode fp, Op op)
{
	bool strict = fp == FP_STRICT;
	switch ((int)op) {
	case OP_EXPM1: case OP_LOG1P: case OP_POW:
		return strict ? 1 : 2;
	case OP_TANH: case OP_ERF: case OP_SIN: case OP_COS:
		return strict ? 1 : 1.5;
	default:
		return strict ? 0.6 : 1;
	}
}

static long double
exact_function(Op op, long double x)
{
	switch ((int)op) {
	case OP_RSQRT: return 1 / sqrtl(x);
	case OP_EXP: return expl(x);
	case OP_EXP2: return exp2l(x);
	case OP_EXPM1: return expm1l(x);
	case OP_LOG: return logl(x);
	case OP_LOG2: return log2l(x);
	case OP_LOG1P: return log1pl(x);
	case OP_TANH: return tanhl(x);
	case OP_ERF: return erfl(x);
	case OP_SIN: return sinl(x);
	default: return cosl(x);
	}
}

/* Some number of the type within the budget of the exact one. */
static double
within(FpMode fp, Op op, DType t, long double exact)
{
	double r = rounded(t, (double)exact), allowed = budget(fp, op);
	if (t == DT_F64 && allowed < 1)
		allowed = 1;
	if (!isfinite(r) || exact == 0)
		return r;
	double c = r, to = pick(2) ? INFINITY : -INFINITY;
	for (unsigned k = pick(3); k > 0; k--)
		c = t == DT_F64 ? nextafter(c, to) : nextafterf((float)c, (float)to);
	bool fits = isfinite(c) && fabsl(c - exact) <= allowed * eval_ulp(t, (double)exact);
	return fits ? c : r;
}

static double
machine_extreme(double a, double b, bool max)
{
	if (isnan(a) || isnan(b))
		return NAN;
	if (a == b)
		return signbit(a) == (max ? 1 : 0) ? b : a;
	return (a > b) == max ? a : b;
}

static double
machine_add(const Machine *m, const Expr *e, const double *x, double sign)
{
	DType t = (DType)e->dtype;
	for (unsigned k = 0; k < 2; k++) { /* a product next to it may be contracted */
		ExprId p = m->g->arg.at[e->arg + k];
		if (m->g->fp == FP_STRICT || expr_get(m->g, p)->op != OP_MUL || pick(2))
			continue;
		double a = m->f[expr_arg(m->g, p, 0)], b = m->f[expr_arg(m->g, p, 1)], other = x[1 - k];
		if (k == 1)
			a *= sign;
		else
			other *= sign;
		return t == DT_F64 ? fma(a, b, other) : fmaf((float)a, (float)b, (float)other);
	}
	return rounded(t, x[0] + sign * x[1]);
}

static double
machine_step(Op op, double x)
{
	switch ((int)op) {
	case OP_NEG: return -x;
	case OP_ABS: return fabs(x);
	case OP_SIGN: return isnan(x) ? x : (x > 0) - (x < 0);
	case OP_FLOOR: return floor(x);
	case OP_CEIL: return ceil(x);
	case OP_ROUND: return rint(x);
	default: return trunc(x);
	}
}

static double
machine_cast(DType from, DType to, double x)
{
	unsigned char p[8];
	(void)from;
	eval_store(to, p, 0, (EvalValue){.re = x});
	return eval_load(to, p, 0).re;
}

/* What the mode may round: as it is, rounded, or rounded before it is scaled down. What the type holds stays. */
static double
machine_cast_free(DType to, double x)
{
	double whole = machine_cast(DT_F32, to, x), factor = 1 - 0.999 * uniform();
	unsigned way = x == whole ? 0 : pick(3);
	if (way == 2 && fabs(x / factor) <= 448) /* which all of them hold */
		return machine_cast(DT_F32, to, x / factor) * factor;
	return way ? whole : x;
}

static double
machine_float(Machine *m, const Expr *e, const double *x)
{
	DType t = (DType)e->dtype;
	switch ((int)e->op) {
	case OP_READ:
		return t == DT_F64 ? ((const double *)m->input[e->ref - 1])[m->at]
		                   : (double)((const float *)m->input[e->ref - 1])[m->at];
	case OP_ADD: return machine_add(m, e, x, 1);
	case OP_SUB: return machine_add(m, e, x, -1);
	case OP_MUL: return rounded(t, x[0] * x[1]);
	case OP_FDIV: return rounded(t, x[0] / x[1]);
	case OP_SQRT: return rounded(t, sqrt(x[0]));
	case OP_MIN: return machine_extreme(x[0], x[1], false);
	case OP_MAX: return machine_extreme(x[0], x[1], true);
	case OP_POW:
		if (x[0] == 1 || x[1] == 0 || isinf(x[0]) || isinf(x[1]))
			return pow(x[0], x[1]);
		return within(m->g->fp, OP_POW, t, powl(x[0], x[1]));
	case OP_NEG: case OP_ABS: case OP_SIGN: case OP_FLOOR: case OP_CEIL: case OP_ROUND: case OP_TRUNC:
		return machine_step((Op)e->op, x[0]);
	default:
		return isinf(x[0]) ? (double)exact_function((Op)e->op, x[0])
		                   : within(m->g->fp, (Op)e->op, t, exact_function((Op)e->op, x[0]));
	}
}

static void
machine_expr(Machine *m, ExprId id)
{
	const Expr *e = expr_get(m->g, id);
	double x[3] = {0};
	ExprId a[3] = {0};
	for (unsigned k = 0; k < e->narg && k < 3; k++) {
		a[k] = expr_arg(m->g, id, k);
		x[k] = m->f[a[k]];
	}
	DType from = e->narg ? (DType)expr_get(m->g, a[0])->dtype : DT_NONE;
	if (e->op == OP_CONST)
		m->f[id] = e->imm.f, m->i[id] = e->imm.i;
	else if (e->op == OP_AXIS)
		m->i[id] = m->at;
	else if (e->op == OP_LT)
		m->i[id] = x[0] < x[1];
	else if (e->op == OP_SELECT)
		m->f[id] = m->i[a[0]] ? x[1] : x[2];
	else if (e->op == OP_CAST && e->dtype == DT_I32)
		m->i[id] = isnan(x[0]) ? 0 : x[0] >= 0x1p31 ? INT32_MAX : x[0] <= -0x1p31 ? INT32_MIN : (int64_t)x[0];
	else if (e->op == OP_CAST && from == DT_I32)
		m->f[id] = rounded((DType)e->dtype, (double)m->i[a[0]]);
	else if (e->op == OP_CAST && e->ref)
		m->f[id] = machine_cast_free((DType)e->dtype, x[0]);
	else if (e->op == OP_CAST)
		m->f[id] = machine_cast(from, (DType)e->dtype, x[0]);
	else
		m->f[id] = machine_float(m, e, x);
}

static double
machine_run(Machine *m, ExprId root, int64_t at)
{
	m->at = at;
	for (ExprId e = 1; e <= root; e++)
		machine_expr(m, e);
	return m->f[root];
}

/* --- random expressions --- */

static const Op unary_ops[] = {OP_NEG, OP_ABS, OP_SIGN, OP_FLOOR, OP_CEIL, OP_ROUND, OP_TRUNC, OP_SQRT,
	OP_RSQRT, OP_EXP, OP_EXP2, OP_EXPM1, OP_LOG, OP_LOG2, OP_LOG1P, OP_TANH, OP_ERF, OP_SIN, OP_COS};
static const Op binary_ops[] = {OP_ADD, OP_ADD, OP_SUB, OP_MUL, OP_MUL, OP_FDIV, OP_MIN, OP_MAX,
	OP_POW};
static const DType narrow[] = {DT_F16, DT_BF16, DT_F8E4M3, DT_F8E5M2, DT_F4E2M1};

static ExprId
grow_expr(Bench *b, DType t, const ExprId *have, unsigned n)
{
	ExprId x = have[pick(n)], y = have[pick(n)], z = have[pick(n)], w = have[n - 1];
	switch (pick(10)) {
	case 0: case 1: case 2:
		return expr_unary(b->g, unary_ops[pick(sizeof unary_ops / sizeof unary_ops[0])],
			pick(2) ? x : w);
	case 3:
		return expr_select(b->g, expr_binary(b->g, OP_LT, x, w), y, z);
	case 4:
		if (t == DT_F32 && b->g->fp != FP_STRICT && pick(2))
			return expr_cast(b->g, t, expr_cast_free(b->g, narrow[pick(4)], w));
		return expr_cast(b->g, t, expr_cast(b->g, narrow[pick(5)], w));
	case 5:
		return expr_cast(b->g, t, expr_cast(b->g, DT_I32, w));
	default:
		return expr_binary(b->g, binary_ops[pick(sizeof binary_ops / sizeof binary_ops[0])], w, x);
	}
}

enum { POINTS = 16 };

static void
check_value(const EvalValue *want, double got, unsigned long program)
{
	if (isinf(want->err))
		return;
	bool ok = isfinite(want->re) ? fabs(got - want->re) <= want->err
	          : isnan(want->re)  ? isnan(got)
	                             : got == want->re;
	if (!ok)
		fail_msg("program %lu: got %.17g, oracle %.17g +- %g", program, got, want->re, want->err);
}

static void
random_program(DType t, FpMode fp, unsigned long program, unsigned *known)
{
	Bench b;
	double x64[2][POINTS];
	float x32[2][POINTS];
	bench_open(&b, fp);
	for (int k = 0; k < 2 * POINTS; k++)
		x32[k / POINTS][k % POINTS] = (float)(x64[k / POINTS][k % POINTS] = number(t));
	Machine m = {.g = b.g};
	for (int k = 0; k < 2; k++)
		m.input[k] = t == DT_F64 ? (const void *)x64[k] : (const void *)x32[k];
	ExprId have[16];
	unsigned n = 0, size = 2 + pick(10);
	ExprId i = expr_axis(b.g, 0);
	for (int k = 0; k < 2; k++)
		have[n++] = bench_read(&b, bench_input(&b, t, m.input[k], 1, POINTS, 0), 1, i, 0, 0);
	have[n++] = expr_float(b.g, t, rounded(t, uniform() * 3));
	while (n < size + 3)
		have[n] = grow_expr(&b, t, have, n), n++;
	Node node = {.npar = 1, .body = have[n - 1]};
	bench_result(&b, bench_node(&b, node, t, POINTS, 0));
	assert_int_equal(bench_eval(&b), EVAL_OK);
	for (int64_t p = 0; p < POINTS; p++) {
		*known += !isinf(bench_at(&b, 0, p)->err);
		for (int again = 0; again < 4; again++)
			check_value(bench_at(&b, 0, p), machine_run(&m, node.body, p), program);
	}
	bench_close(&b);
}

static void
random_expressions_stay_within(void **state)
{
	(void)state;
	enum { PROGRAMS = 3000 };
	static const FpMode modes[2] = {FP_STRICT, FP_RELAXED};
	unsigned known = 0;
	for (unsigned long program = 0; program < PROGRAMS; program++) {
		seed = program * 7919;
		random_program(program % 3 ? DT_F32 : DT_F64, modes[program % 2], program, &known);
	}
	assert_true(known > PROGRAMS * POINTS / 2); /* most values are claimed, not given up */
}

/* --- reductions --- */

enum { TERMS = 48 };

static float
any_order(float *p, unsigned n, bool product)
{
	while (n > 1) {
		unsigned a = pick(n);
		float x = p[a];
		p[a] = p[--n];
		unsigned c = pick(n);
		p[c] = product ? p[c] * x : p[c] + x;
	}
	return p[0];
}

static float
one_sum(const float *x, const float *y, bool free)
{
	float p[TERMS], acc = 0;
	if (free) {
		for (int k = 0; k < TERMS; k++)
			p[k] = x[k] * y[k];
		if (pick(2))
			return any_order(p, TERMS, false);
	}
	bool fused = pick(2);
	for (int k = 0; k < TERMS; k++)
		acc = fused ? fmaf(x[k], y[k], acc) : acc + x[k] * y[k];
	return acc;
}

static void
reduction(Bench *b, Monoid monoid, const float *x, const float *y)
{
	TensorId a = bench_input(b, DT_F32, x, 1, TERMS, 0), c = bench_input(b, DT_F32, y, 1, TERMS, 0);
	Node n = {.npar = 0, .monoid = monoid};
	ExprId k = bench_reduced(b, &n, TERMS);
	n.body = bench_read(b, a, 1, k, 0, 0);
	if (monoid == MON_SUM)
		n.body = expr_binary(b->g, OP_MUL, n.body, bench_read(b, c, 1, k, 0, 0));
	bench_result(b, bench_node(b, n, DT_F32, 0, 0));
	assert_int_equal(bench_eval(b), EVAL_OK);
}

static void
sums_stay_within(void **state)
{
	(void)state;
	double worst = 0;
	for (unsigned program = 0; program < 1500; program++) {
		Bench b;
		float x[TERMS], y[TERMS];
		FpMode fp = program % 2 ? FP_RELAXED : FP_STRICT;
		seed = program;
		bool special = program % 5 == 0;
		for (int k = 0; k < TERMS; k++) {
			x[k] = special && pick(8) == 0 ? (float)number(DT_F32) : (float)(uniform() - 0.3);
			y[k] = (float)(uniform() - 0.3);
		}
		bench_open(&b, fp);
		reduction(&b, MON_SUM, x, y);
		const EvalValue *want = bench_at(&b, 0, 0);
		for (int again = 0; again < 8; again++) {
			float got = one_sum(x, y, fp == FP_RELAXED);
			check_value(want, got, program);
			if (isfinite(want->re) && fabs(got - want->re) / want->err > worst)
				worst = fabs(got - want->re) / want->err;
		}
		bench_close(&b);
	}
	assert_true(worst >= 0.05);
}

static void
products_stay_within(void **state)
{
	(void)state;
	double worst = 0;
	for (unsigned program = 0; program < 600; program++) {
		Bench b;
		float x[TERMS], p[TERMS];
		seed = program;
		for (int k = 0; k < TERMS; k++)
			x[k] = program % 7 == 0 ? (float)number(DT_F32) : (float)(uniform() * 2 + 0.2) * (pick(2) ? 1 : -1);
		if (program % 5 == 0)
			x[pick(TERMS)] = program % 2 ? 1e-35f : 1e35f;
		bench_open(&b, FP_RELAXED);
		reduction(&b, MON_PROD, x, x);
		const EvalValue *want = bench_at(&b, 0, 0);
		for (int again = 0; again < 6; again++) {
			memcpy(p, x, sizeof p);
			float got = any_order(p, TERMS, true);
			check_value(want, got, program);
			if (isfinite(want->re) && isfinite(want->err) && want->err > 0 &&
			    fabs(got - want->re) / want->err > worst)
				worst = fabs(got - want->re) / want->err;
		}
		bench_close(&b);
	}
	assert_true(worst >= 0.05);
}

/* Any one term left out is further off than the bound and a spacing allow. */
static void
a_dropped_term_is_seen(void **state)
{
	(void)state;
	for (unsigned program = 0; program < 200; program++) {
		Bench b;
		float x[TERMS], y[TERMS];
		seed = program;
		for (int k = 0; k < TERMS; k++) {
			x[k] = (float)((pick(2) ? 1 : -1) * (0.2 + uniform()));
			y[k] = (float)((pick(2) ? 1 : -1) * (0.2 + uniform()));
		}
		bench_open(&b, program % 2 ? FP_RELAXED : FP_STRICT);
		reduction(&b, MON_SUM, x, y);
		for (int drop = 0; drop < TERMS; drop++) {
			float acc = 0;
			for (int k = 0; k < TERMS; k++)
				acc = k == drop ? acc : acc + x[k] * y[k];
			EvalCompare c;
			eval_compare(&b.out.result[0], &acc, &c);
			assert_int_equal(c.mismatches, 1);
		}
		bench_close(&b);
	}
}

/* --- every operation comes near its bound --- */

static ExprId
inexact(Bench *b, ExprId x, ExprId y)
{
	return expr_binary(b->g, OP_ADD, expr_binary(b->g, OP_MUL, x, y), y);
}

static double
nearest(Op op, bool two, bool direct)
{
	Bench b;
	float x[2][POINTS];
	double worst = 0;
	for (int k = 0; k < 2 * POINTS; k++)
		x[k / POINTS][k % POINTS] = (float)(0.3 + uniform());
	bench_open(&b, FP_RELAXED);
	Machine m = {.g = b.g, .input = {x[0], x[1]}};
	ExprId i = expr_axis(b.g, 0), in[2];
	for (int k = 0; k < 2; k++)
		in[k] = bench_read(&b, bench_input(&b, DT_F32, x[k], 1, POINTS, 0), 1, i, 0, 0);
	ExprId a = direct ? in[0] : inexact(&b, in[0], in[1]), c = in[0];
	Node node = {.npar = 1, .body = two ? expr_binary(b.g, op, a, c) : expr_unary(b.g, op, a)};
	bench_result(&b, bench_node(&b, node, DT_F32, POINTS, 0));
	assert_int_equal(bench_eval(&b), EVAL_OK);
	for (int64_t p = 0; p < POINTS; p++) {
		const EvalValue *want = bench_at(&b, 0, p);
		double gap = fabs(machine_run(&m, node.body, p) - want->re);
		assert_true(gap <= want->err);
		if (want->err > 0 && isfinite(want->err))
			worst = fmax(worst, gap / want->err);
	}
	bench_close(&b);
	return worst;
}

/* Steps (floor, sign, …) are exact here and so have no bound to come near to. */
static void
no_bound_is_padded(void **state)
{
	(void)state;
	static const Op unary[] = {OP_NEG, OP_ABS, OP_SQRT, OP_RSQRT, OP_EXP, OP_EXP2, OP_EXPM1, OP_LOG,
		OP_LOG2, OP_LOG1P, OP_TANH, OP_ERF, OP_SIN, OP_COS};
	static const Op binary[] = {OP_ADD, OP_SUB, OP_MUL, OP_FDIV, OP_MIN, OP_MAX, OP_POW};
	for (unsigned k = 0; k < sizeof unary / sizeof unary[0]; k++) {
		double worst = 0;
		for (unsigned s = 0; s < 40; s++)
			worst = fmax(worst, nearest(unary[k], false, s % 2));
		if (worst < 0.25)
			fail_msg("%s comes to %g of its bound at most", op_info[unary[k]].id, worst);
	}
	for (unsigned k = 0; k < sizeof binary / sizeof binary[0]; k++) {
		double worst = 0;
		for (unsigned s = 0; s < 40; s++)
			worst = fmax(worst, nearest(binary[k], true, false));
		if (worst < 0.25)
			fail_msg("%s comes to %g of its bound at most", op_info[binary[k]].id, worst);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_expressions_stay_within),
		cmocka_unit_test(sums_stay_within),
		cmocka_unit_test(products_stay_within),
		cmocka_unit_test(a_dropped_term_is_seen),
		cmocka_unit_test(no_bound_is_padded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
