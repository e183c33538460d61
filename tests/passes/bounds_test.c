/* bounds_test.c: what the oracle allows means something for what the project computes. For every row
 * of ops.def and monoids.def that makes floats, the tile interpreter's result comes to a twentieth of
 * what the oracle allows somewhere; and a sum whose kernel leaves out one term is always refused.
 *
 * Operands are sums of products, so that operations which only pass a value on have an error to pass.
 * Operations that jump get operands around their jumps. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "graph_case.h"

static Unwind unwind;
static Arena arena;

static int
setup(void **state)
{
	(void)state;
	arena_init(&arena, &host_default()->memory, &unwind);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

/* --- every operation comes near its bound --- */

enum { ROWS = 80, POINTS = 12 };

static struct {
	Op op;
	Monoid monoid;
	DType dtype;
} now;

/* A positive number with an error; with jumps, one around an integer. */
static ExprId
operand(Case *c, ExprId x, ExprId y, bool jumps)
{
	DType t = (DType)expr_get(c->g, x)->dtype;
	if (!jumps)
		return expr_binary(c->g, OP_ADD, expr_binary(c->g, OP_MUL, x, y), y);
	ExprId row = expr_binary(c->g, OP_MUL, ax(c, 0), case_int(c, POINTS));
	ExprId whole = expr_cast(c->g, t, expr_binary(c->g, OP_ADD, row, ax(c, 1)));
	ExprId by = expr_float(c->g, t, 49);
	return expr_binary(c->g, OP_MUL, expr_binary(c->g, OP_FDIV, whole, by), by);
}

static ExprId
random_draw(Case *c, Op op)
{
	ExprId arg[3] = {expr_int(c->g, DT_U64, 7), ax(c, 0), ax(c, 1)};
	return expr_make(c->g, op, DT_F32, 0, 0, arg, 3);
}

static bool
is_jump(Op op)
{
	return op == OP_FLOOR || op == OP_CEIL || op == OP_ROUND || op == OP_TRUNC || op == OP_SIGN || op == OP_CAST;
}

/* From around an integer to around a jump of the operation; the neighbours of 1024 in f16 are 1 apart. */
static ExprId
at_jump(Case *c, Op op, ExprId a)
{
	DType t = (DType)expr_get(c->g, a)->dtype;
	ExprId half = expr_binary(c->g, OP_ADD, a, expr_float(c->g, t, op == OP_CAST ? 1024.5 : 0.5));
	if (op == OP_SIGN)
		return expr_binary(c->g, OP_SUB, a, expr_unary(c->g, OP_FLOOR, half));
	return op == OP_ROUND || op == OP_CAST ? half : a;
}

/* op of a and b, which are of type now.dtype, as floats or a complex number. */
static ExprId
applied(Case *c, Op op, ExprId a, ExprId b)
{
	if (op == OP_SELECT)
		return expr_select(c->g, expr_binary(c->g, OP_LT, ax(c, 0), ax(c, 1)), a, b);
	if (op == OP_CAST)
		return expr_cast(c->g, DT_F16, at_jump(c, op, a));
	if (op == OP_ROOT) {
		ExprId n = expr_binary(c->g, OP_ADD, ax(c, 1), case_int(c, 3));
		return expr_make(c->g, op, DT_C64, 0, 0, (ExprId[]){ax(c, 0), n}, 2);
	}
	if (op == OP_RAND || op == OP_RANDN)
		return random_draw(c, op);
	if (is_jump(op))
		return expr_unary(c->g, op, at_jump(c, op, a));
	return op_info[op].arity == 1 ? expr_unary(c->g, op, a) : expr_binary(c->g, op, a, b);
}

static void
build(Case *c)
{
	static float data[2 * ROWS * POINTS];
	ExprId e[2] = {case_int(c, ROWS), case_int(c, POINTS)};
	bool complex = now.dtype == DT_C64;
	for (size_t k = 0; k < sizeof data / sizeof *data; k++)
		data[k] = 0.3f + (float)((k * 2654435761u >> 7) % 8191) / 8191;
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F32, 2, e), y = case_input(c, TENSOR_INPUT, "y", DT_F32, 2, e);
	case_given(c, x, data);
	case_given(c, y, data + ROWS * POINTS);
	ExprId p = read_at(c, x, 2, ax(c, 0), ax(c, 1)), q = read_at(c, y, 2, ax(c, 0), ax(c, 1));
	ExprId a = operand(c, p, q, is_jump(now.op)), b = operand(c, q, p, false);
	if (complex) {
		ExprId z = expr_binary(c->g, OP_CPLX, a, b);
		b = expr_binary(c->g, OP_CPLX, b, a);
		a = z;
	}
	ExprId v = now.op ? applied(c, now.op, a, b) : a;
	Node n = case_node(now.op ? 2 : 1, v);
	if (now.monoid)
		case_reduce(&n, now.monoid, case_int(c, 0), e[1]);
	case_result(c, "z", case_add(c, &n, "z", (DType)expr_get(c->g, v)->dtype, e), 0);
}

/* The largest part of what is allowed, over all configurations. */
static double
largest_ratio(Op op, Monoid m, DType t)
{
	now.op = op;
	now.monoid = m;
	now.dtype = t;
	if (setjmp(unwind.env))
		fail_msg("%s", unwind.text);
	double ratio = case_run(&arena, build).ratio;
	arena_free(&arena);
	return ratio;
}

/* The types that a row of ops.def is tried in; none where it makes no float. RAND is exact: its bits
 * are defined. */
static unsigned
types_of(Op op, DType *t)
{
	const OpInfo *o = &op_info[op];
	if (o->cls != CLASS_MAP || !(o->level & LEVEL_G))
		return 0;
	bool complex = op == OP_ADD || op == OP_SUB || op == OP_MUL || op == OP_FDIV || op == OP_NEG;
	bool real = o->sig == SIG_SAME || o->sig == SIG_FLOAT || o->sig == SIG_ORDERED || o->sig == SIG_SELECT;
	unsigned n = 0;
	if (real || op == OP_CAST || op == OP_CPLX || op == OP_ROOT || op == OP_RANDN)
		t[n++] = DT_F32;
	if (complex || op == OP_SELECT || op == OP_RE || op == OP_IM || op == OP_CONJ)
		t[n++] = DT_C64;
	return n;
}

static unsigned low, rows;

static void
expect_near(const char *what, DType t, double ratio)
{
	printf("  %-8s %-4s %.3f\n", what, dtype_info[t].text, ratio);
	low += !(ratio >= 0.05) || ratio > 1;
	rows++;
}

static void
every_operation_comes_near(void **state)
{
	(void)state;
	DType t[2];
	low = rows = 0;
	for (int op = 1; op < OP_COUNT; op++)
		for (unsigned n = types_of((Op)op, t), k = 0; k < n; k++)
			expect_near(op_info[op].id, t[k], largest_ratio((Op)op, MON_NONE, t[k]));
	static const Monoid real[] = {MON_SUM, MON_PROD, MON_MAX, MON_MIN};
	for (unsigned k = 0; k < sizeof real / sizeof *real; k++)
		expect_near(monoid_info[real[k]].text, DT_F32, largest_ratio(OP_NONE, real[k], DT_F32));
	for (unsigned k = 0; k < 2; k++)
		expect_near(monoid_info[real[k]].text, DT_C64, largest_ratio(OP_NONE, real[k], DT_C64));
	printf("%u rows, %u of them below a twentieth of their bound\n", rows, low);
	assert_int_equal(low, 0);
}

/* --- a dropped term is seen --- */

static struct {
	int64_t n;
	DType dtype;
	FpMode fp;
	Case c;
	TensorId x;
	uint8_t *packed;
} sum;

static const int64_t none = -1;

/* s = sum[i in 0..n](x[i]) where i != drop, drop a parameter. */
static Program *
build_sum(void)
{
	sum.c = (Case){.arena = &arena, .g = graph_new(&arena, names_new(&arena))};
	Case *c = &sum.c;
	int64_t bytes;
	c->g->fp = sum.fp;
	c->g->name = name_cstr(c->g->names, "t");
	ExprId n = case_int(c, sum.n);
	sum.x = case_input(c, TENSOR_INPUT, "x", sum.dtype, 1, &n);
	TensorId drop = case_input(c, TENSOR_SCALAR, "drop", DT_I64, 0, NULL);
	DType acc = dtype_info[sum.dtype].arith;
	Node node = case_node(0, expr_cast(c->g, acc, read_at(c, sum.x, 1, ax(c, 0))));
	case_reduce(&node, MON_SUM, case_int(c, 0), n);
	node.guard = expr_binary(c->g, OP_NE, ax(c, 0), expr_read(c->g, drop, NULL, 0, 0));
	node.finish = acc == sum.dtype ? 0 : expr_cast(c->g, sum.dtype, expr_make(c->g, OP_ACC, acc, 0, 0, NULL, 0));
	case_result(c, "s", case_add(c, &node, "s", sum.dtype, NULL), 0);
	dtype_bytes(sum.dtype, sum.n, &bytes);
	sum.packed = arena_alloc(&arena, (size_t)bytes);
	for (int64_t k = 0; k < sum.n; k++) { /* of either sign in turn, none of them near 0 */
		double v = (k % 2 ? -1 : 1) * (1 + (double)(k * 7919 % 64) / 64);
		eval_store(sum.dtype, sum.packed, k, (EvalValue){.re = v, .im = -v, .i = 1 + k % 3});
	}
	Text log;
	text_init(&log, &arena);
	PassOptions o = {.lanes = 8, .verify_each = true, .has_fma = true};
	return compile_graph(c->g, &o, &log);
}

static EvalInputs
sum_inputs(const int64_t *drop)
{
	const void **data = ARENA_ARRAY(&arena, const void *, 2);
	const int64_t **shape = ARENA_ARRAY(&arena, const int64_t *, 2);
	data[0] = sum.packed;
	data[1] = drop;
	shape[0] = shape[1] = &sum.n;
	return (EvalInputs){data, shape};
}

/* What the kernel makes of the sum without term `drop`, held against the sum of all. */
static int64_t
mismatches(const Program *p, const EvalOutputs *want, int64_t drop)
{
	EvalInputs in = sum_inputs(&drop);
	InterpOptions o = {.stride = 1};
	InterpRun got = interp_program(p, &arena, &in, sum.c.dim, &o);
	EvalCompare cmp;
	assert_null(got.error);
	eval_compare(&want->result[0], got.result[0], &cmp);
	return cmp.mismatches;
}

static unsigned
dropped_terms(void)
{
	EvalOutputs want;
	unsigned tried = 0;
	Program *p = build_sum();
	EvalInputs all = sum_inputs(&none);
	assert_int_equal(graph_eval(sum.c.g, &arena, &all, 0, &want), EVAL_OK);
	assert_int_equal(mismatches(p, &want, none), 0);
	int64_t step = sum.n <= 33 ? 1 : sum.n / 16;
	for (int64_t k = 0; k < sum.n; k += step, tried++)
		if (mismatches(p, &want, k) != 1)
			fail_msg("%s: term %lld of %lld left out, and nobody noticed", dtype_info[sum.dtype].text, (long long)k,
			         (long long)sum.n);
	arena_free(&arena);
	return tried;
}

static void
a_dropped_term_is_seen(void **state)
{
	(void)state;
	if (setjmp(unwind.env))
		fail_msg("%s", unwind.text);
	static const int64_t length[] = {1, 2, 3, 7, 8, 16, 33, 100, 257, 1000};
	static const DType types[] = {DT_F64, DT_F32, DT_F16, DT_BF16, DT_C64, DT_I64, DT_I32, DT_I8, DT_U64, DT_U8};
	static const FpMode modes[] = {FP_STRICT, FP_RELAXED};
	static unsigned tried; /* outlives a longjmp */
	for (unsigned n = 0; n < sizeof length / sizeof *length; n++)
		for (unsigned t = 0; t < sizeof types / sizeof *types; t++)
			for (unsigned m = 0; m < 2; m++) {
				sum.n = length[n];
				sum.dtype = types[t];
				sum.fp = modes[m];
				tried += dropped_terms();
			}
	printf("%u sums without one of their terms, all of them refused\n", tried);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_operation_comes_near, setup, teardown),
		cmocka_unit_test_setup_teardown(a_dropped_term_is_seen, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
