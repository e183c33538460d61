/* epilogue_test.c: which pointwise nodes a contraction takes in, and what comes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/passes/graph_case.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

static enum { BIAS, TWICE, NARROW, CHAIN, GATED, SHOWN, MOVED, READ_BY_TWO, PART_OF, TRIANGLE } form;

static TensorId
product(Case *c, TensorId a, TensorId b, const ExprId *e, DType to)
{
	DType t = c->g->tensor.at[a].dtype;
	ExprId k = ax(c, 2);
	Node n = case_node(2, BIN(MUL, read_at(c, a, 2, ax(c, 0), k), read_at(c, b, 2, k, ax(c, 1))));
	case_reduce(&n, MON_SUM, case_int(c, 0), c->g->tensor.at[a].extent[1]);
	if (to != t)
		n.finish = expr_cast(c->g, to, expr_make(c->g, OP_ACC, t, 0, 0, NULL, 0));
	return case_add(c, &n, "p", to, e);
}

static void
add_second(Case *c, TensorId p, const ExprId *e)
{
	Node n = case_node(2, BIN(SUB, read_at(c, p, 2, ax(c, 0), ax(c, 1)), expr_float(c->g, DT_F32, 1)));
	case_result(c, "w", case_add(c, &n, "w", DT_F32, e), 0);
}

static ExprId
body(Case *c, ExprId x, TensorId v, TensorId a, TensorId b, const ExprId *e)
{
	ExprId y = BIN(ADD, x, read_at(c, v, 1, ax(c, 1)));
	if (form == TWICE)
		return expr_select(c->g, BIN(LT, x, y), BIN(MUL, x, x), y);
	if (form == GATED)
		return BIN(MUL, y, read_at(c, product(c, b, a, e, DT_F32), 2, ax(c, 0), ax(c, 1)));
	if (form == MOVED)
		return BIN(MUL, y, x);
	return y;
}

/* y[i, j] of p[i, j] = sum[k](a[i, k] * b[k, j]), all square so that everything can be read in every way */
static void
build(Case *c)
{
	ExprId n = case_dim(c, "N", 19), e[2] = {n, n};
	TensorId a = case_input(c, TENSOR_INPUT, "a", DT_F32, 2, e), b = case_input(c, TENSOR_INPUT, "b", DT_F32, 2, e);
	TensorId v = case_input(c, TENSOR_INPUT, "v", DT_F32, 1, e);
	TensorId p = product(c, a, b, e, form == NARROW ? DT_F16 : DT_F32);
	ExprId x = expr_cast(c->g, DT_F32, read_at(c, p, 2, ax(c, form == MOVED), ax(c, form != MOVED)));
	Node y = case_node(2, body(c, x, v, a, b, e));
	if (form == TRIANGLE)
		y.domain = BIN(LE, ax(c, 0), ax(c, 1));
	TensorId t = case_add(c, &y, "y", DT_F32, e);
	if (form == CHAIN) {
		Node z = case_node(2, BIN(MAX, read_at(c, t, 2, ax(c, 0), ax(c, 1)), expr_float(c->g, DT_F32, 0)));
		t = case_add(c, &z, "z", DT_F32, e);
	}
	if (form == TRIANGLE || form == PART_OF) {
		ExprId i = ax(c, 0), least = BIN(MIN, i, ax(c, 1));
		Node z = case_node(2, read_at(c, t, 2, least, form == TRIANGLE ? BIN(MAX, i, ax(c, 1)) : i));
		t = case_add(c, &z, "z", DT_F32, e);
	}
	case_result(c, "y", t, 0);
	if (form == SHOWN)
		case_result(c, "p", p, 0);
	if (form == READ_BY_TWO)
		add_second(c, p, e);
}

static void
test_forms(void **state)
{
	(void)state;
	static const struct { uint32_t kernels; Template first; } rows[] = {
		[BIAS] = {1, TMPL_CONTRACT}, [TWICE] = {1, TMPL_CONTRACT}, [NARROW] = {1, TMPL_CONTRACT},
		[CHAIN] = {1, TMPL_CONTRACT}, [GATED] = {2, TMPL_CONTRACT}, [SHOWN] = {2, TMPL_CONTRACT},
		[MOVED] = {2, TMPL_CONTRACT}, [READ_BY_TWO] = {2, TMPL_CONTRACT}, [PART_OF] = {2, TMPL_CONTRACT},
	};
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		form = (unsigned)k;
		CaseRun r = case_try(build);
		if (r.kernels != rows[k].kernels || r.tmpl != rows[k].first)
			fail_msg("form %zu: %u kernels, not %u", k, r.kernels, rows[k].kernels);
	}
}

/* y is wanted, and defined, for a part of the elements only. */
static void
test_domain(void **state)
{
	(void)state;
	form = TRIANGLE;
	assert_true(case_try(build).kernels >= 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_forms, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_domain, case_setup, case_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
