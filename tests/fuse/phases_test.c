/* phases_test.c: which expressions two phases of a kernel share, and that their results are what they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/passes/graph_case.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)
#define UN(op, a) expr_unary(c->g, OP_##op, a)

static enum { SOFTMAX, NARROW, COLUMNS, TWO, THREE_PHASES, INTO_PART, CHEAP, SINGLE, HIDDEN, GATHERED, OTHER_RANGE, UNSHARED } form;

typedef struct {
	TensorId x, ids, max;
	bool columns;
} In;

/* The expression that is computed twice, at the row and the place in it. */
static ExprId
value_at(Case *c, const In *in, ExprId row, ExprId at)
{
	ExprId r = in->columns ? at : row, col = in->columns ? row : at;
	if (form == SINGLE)
		return UN(EXP, read_at(c, in->x, 1, at));
	if (form == HIDDEN)
		return expr_select(c->g, BIN(LT, at, case_int(c, 1)), expr_float(c->g, DT_F32, 1),
		                   UN(EXP, read_at(c, in->x, 2, row, BIN(SUB, at, case_int(c, 1)))));
	if (form == GATHERED)
		return UN(EXP, gather_at(c, 1, in->x, 2, row, read_at(c, in->ids, 2, row, at)));
	ExprId x = expr_cast(c->g, DT_F32, read_at(c, in->x, 2, r, col));
	ExprId d = BIN(SUB, x, read_at(c, in->max, 1, row));
	return form == CHEAP ? BIN(MUL, d, d) : UN(EXP, d);
}

static TensorId
fold_rows(Case *c, const char *name, Monoid m, ExprId body, ExprId rows, ExprId hi)
{
	bool single = form == SINGLE;
	Node n = case_node(!single, body);
	case_reduce(&n, m, case_int(c, 0), hi);
	return case_add(c, &n, name, DT_F32, &rows);
}

/* s[i] = sum[j](f(i, j)), y[i, j] = f(i, j) / s[i], and what the form adds to it */
static void
build(Case *c)
{
	ExprId n = case_dim(c, "N", 7), m = case_dim(c, "M", 37), e[2] = {n, m};
	bool single = form == SINGLE;
	In in = {.columns = form == COLUMNS};
	in.x = case_input(c, TENSOR_INPUT, "x", form == NARROW ? DT_BF16 : DT_F32, single ? 1 : 2, single ? &m : e);
	in.ids = case_input(c, TENSOR_INPUT, "ids", DT_I64, 2, e);
	case_range(c, in.ids, 0, 37);
	if (form == GATHERED)
		case_access(c, ACCESS_GATHER);
	ExprId rows = in.columns ? m : n, hi = in.columns ? n : m;
	ExprId i = ax(c, 0), j = ax(c, single ? 0 : 1);
	ExprId x = single ? 0 : expr_cast(c->g, DT_F32, in.columns ? read_at(c, in.x, 2, j, i) : read_at(c, in.x, 2, i, j));
	if (!single)
		in.max = fold_rows(c, "m", MON_MAX, x, rows, hi);
	ExprId last = form == OTHER_RANGE ? BIN(SUB, hi, case_int(c, 1)) : hi;
	TensorId s = fold_rows(c, "s", MON_SUM, value_at(c, &in, i, j), rows, last);
	ExprId row = in.columns ? ax(c, 1) : i, at = in.columns ? ax(c, 0) : j;
	ExprId sum = single ? read_at(c, s, 0) : read_at(c, s, 1, row), y = BIN(FDIV, value_at(c, &in, row, at), sum);
	if (form == UNSHARED)
		y = BIN(FDIV, UN(TANH, read_at(c, in.x, 2, i, j)), sum);
	if (form == TWO || form == THREE_PHASES) {
		TensorId t = fold_rows(c, "t", MON_SUM, form == TWO ? UN(SIN, x) : BIN(FDIV, value_at(c, &in, i, j), read_at(c, s, 1, i)), rows, hi);
		y = BIN(ADD, form == TWO ? BIN(MUL, y, UN(SIN, x)) : y, read_at(c, t, 1, i));
	}
	if (form == INTO_PART)
		y = expr_select(c->g, BIN(LT, j, i), y, x);
	Node out = case_node(single ? 1 : 2, y);
	case_result(c, "y", case_add(c, &out, "y", DT_F32, single ? &m : e), 0);
}

/* The kernel has a member more for each expression that is shared. */
static void
test_forms(void **state)
{
	(void)state;
	static const struct { uint32_t kernels, members; } rows[] = {
		[SOFTMAX] = {1, 4}, [NARROW] = {1, 4}, [COLUMNS] = {1, 4}, [TWO] = {1, 6}, [THREE_PHASES] = {1, 6},
		[INTO_PART] = {1, 4}, [CHEAP] = {1, 3}, [SINGLE] = {3, 1}, [HIDDEN] = {1, 2}, [GATHERED] = {1, 2},
		[OTHER_RANGE] = {1, 3}, [UNSHARED] = {1, 3},
	};
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		form = (unsigned)k;
		CaseRun r = case_try(build);
		if (r.kernels != rows[k].kernels || r.members != rows[k].members)
			fail_msg("form %zu: %u kernels, the first of %u nodes", k, r.kernels, r.members);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_forms, case_setup, case_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
