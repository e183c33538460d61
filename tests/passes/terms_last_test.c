/* terms_last_test.c: products by windows whose terms do not lie side by side in memory (fuse/terms_last.c): which copies are made,
 * and whether what is computed of them, for a GPU with roles and for one whose warps multiply matrices, is what the oracle has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph_case.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

enum { TAPS = 3, OTHER_TAPS = 5, IMAGES = 3, LENGTH = 41, CHANNELS = 16, MIDDLE = 24, RESULTS = 17 };

/* Channels of the images and of the weights: the last axis of both, or the one before. */
static bool first, chained, dilated, apart; /* apart: what is made of a sum is another node */
static int64_t taps, channels;
static DType type;

static TensorId
image(Case *c, const char *name, ExprId images, ExprId length, ExprId of)
{
	const ExprId e[3] = {images, first ? of : length, first ? length : of};
	return case_input(c, TENSOR_INPUT, name, type, 3, e);
}

static ExprId
element(Case *c, TensorId t, ExprId a, ExprId along, ExprId of)
{
	return expr_cast(c->g, DT_F32, read_at(c, t, 3, a, first ? of : along, first ? along : of));
}

/* y[n, o, p] = max(sum[c, r](x[n, c, p + r - 1] * w[o, c, r]), 0), absent outside of x; with the channels last y[n, p, o]. */
static TensorId
layer(Case *c, TensorId x, TensorId w, ExprId images, ExprId length, ExprId of, ExprId results, const char *name, DType to)
{
	ExprId e[3] = {images, first ? results : length, first ? length : results};
	ExprId n = ax(c, 0), o = ax(c, first ? 1 : 2), p = ax(c, first ? 2 : 1), term = ax(c, first ? 3 : 4), tap = ax(c, first ? 4 : 3);
	ExprId at = BIN(SUB, BIN(ADD, p, dilated ? BIN(MUL, tap, case_int(c, 2)) : tap), case_int(c, 1));
	Node k = case_node(3, BIN(MUL, element(c, x, n, at, term), element(c, w, o, tap, term)));
	case_reduce(&k, MON_SUM, case_int(c, 0), first ? of : case_int(c, taps));
	case_reduce(&k, MON_SUM, case_int(c, 0), first ? case_int(c, taps) : of);
	k.guard = BIN(AND, BIN(LE, case_int(c, 0), at), BIN(LT, at, length));
	if (!apart) {
		k.finish = expr_cast(c->g, to, BIN(MAX, expr_make(c->g, OP_ACC, DT_F32, 0, 0, NULL, 0), expr_float(c->g, DT_F32, 0)));
		return case_add(c, &k, name, to, e);
	}
	TensorId sum = case_add(c, &k, "sum", DT_F32, e);
	Node point = case_node(3, expr_cast(c->g, to, BIN(MAX, read_at(c, sum, 3, ax(c, 0), ax(c, 1), ax(c, 2)), expr_float(c->g, DT_F32, 0))));
	return case_add(c, &point, name, to, e);
}

static void
build(Case *c)
{
	ExprId images = case_dim(c, "N", IMAGES), length = case_dim(c, "H", LENGTH), of = case_dim(c, "C", channels);
	TensorId x = image(c, "x", images, length, of), v = 0;
	ExprId middle = case_dim(c, "M", MIDDLE), results = 0;
	TensorId w = image(c, "w", middle, case_int(c, taps), of);
	if (chained) {
		results = case_dim(c, "O", RESULTS);
		v = image(c, "v", results, case_int(c, taps), middle);
	}
	TensorId y = layer(c, x, w, images, length, of, middle, "y", chained ? type : DT_F32);
	case_result(c, "result", chained ? layer(c, y, v, images, length, middle, results, "z", DT_F32) : y, 0);
}

static int
set_up(void **state)
{
	first = true;
	chained = dilated = apart = false;
	taps = TAPS;
	channels = CHANNELS;
	type = DT_BF16;
	return case_setup(state);
}

/* Of each factor and of the output. */
static void
channels_are_put_last(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 4; k++) {
		dilated = k & 1;
		taps = k & 2 ? OTHER_TAPS : TAPS;
		type = k & 2 ? DT_F16 : DT_BF16;
		CaseRun r = case_try_roles(build, k & 1, 0);
		assert_true(r.roles);
		assert_int_equal(r.nodes, 4);
	}
}

/* Which finish rows of the output as they lie. */
static void
warps_need_no_output(void **state)
{
	(void)state;
	CaseRun r = case_try_warps(build, FP_RELAXED, 0, false, 0);
	assert_int_equal(r.nodes, 3);
	type = DT_F32;
	assert_int_equal(case_try_warps(build, FP_FAST, 0, true, 0).nodes, 3);
	assert_int_equal(case_try_warps(build, FP_RELAXED, 0, true, 0).nodes, 1);
}

/* What a second product reads of the first is what that stores. */
static void
copies_are_shared(void **state)
{
	(void)state;
	chained = true;
	assert_int_equal(case_try_roles(build, false, 0).nodes, 6);
	apart = true; /* and is not computed anew for each tap: inline_points */
	assert_int_equal(case_try_roles(build, true, 0).nodes, 6);
	assert_int_equal(case_try_warps(build, FP_RELAXED, 0, false, 0).nodes, 6);
	first = false;
	assert_int_equal(case_try_roles(build, false, 0).nodes, 2);
}

static void
others_stay(void **state)
{
	(void)state;
	first = false;
	assert_int_equal(case_try_roles(build, false, 0).nodes, 1); /* they are last */
	first = true;
	channels = 3;
	case_try_roles(build, false, 0); /* as many as a launch says */
	channels = 0;
	case_try_roles(build, false, 0);
	channels = CHANNELS;
	assert_int_equal(case_try_warps(build, FP_STRICT, 0, false, 0).nodes, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(channels_are_put_last, set_up, case_teardown),
		cmocka_unit_test_setup_teardown(warps_need_no_output, set_up, case_teardown),
		cmocka_unit_test_setup_teardown(copies_are_shared, set_up, case_teardown),
		cmocka_unit_test_setup_teardown(others_stay, set_up, case_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
