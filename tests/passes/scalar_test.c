/* scalar_test.c: every scalar operation, and the expressions whose lowering is more than one
 * operation: complex numbers, roots of unity, random numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "graph_case.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

/* --- complex --- */

static Op complex_op;

static void
build_complex(Case *c)
{
	ExprId e[2] = {case_dim(c, "N", 3), case_dim(c, "M", 21)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_C64, 2, e);
	TensorId y = case_input(c, TENSOR_INPUT, "y", DT_C64, 2, (ExprId[]){e[1], e[0]});
	ExprId a = read_at(c, x, 2, ax(c, 0), ax(c, 1)), b = read_at(c, y, 2, ax(c, 1), ax(c, 0));
	ExprId v = op_info[complex_op].arity == 2 ? expr_binary(c->g, complex_op, a, b)
	                                          : expr_unary(c->g, complex_op, a);
	Node n = case_node(2, v);
	case_result(c, "z", case_add(c, &n, "z", (DType)expr_get(c->g, v)->dtype, e), 0);
}

static void
test_complex(void **state)
{
	(void)state;
	static const Op ops[] = {OP_ADD, OP_SUB, OP_MUL, OP_FDIV, OP_NEG, OP_EQ, OP_NE, OP_RE, OP_IM, OP_CONJ};
	for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
		complex_op = ops[k];
		assert_true(case_try(build_complex).map);
	}
}

/* s[i] = sum[j](a * x[i, j] * select(j < 3, y[j, i], w)), with complex scalars a and w = 1 + 2i */
static void
build_complex_sum(Case *c)
{
	static const float a[2] = {0.5f, -2}, one[2] = {1, 2};
	ExprId e[2] = {case_dim(c, "N", 3), case_dim(c, "M", 8)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_C64, 2, e);
	TensorId s = case_input(c, TENSOR_SCALAR, "a", DT_C64, 0, NULL);
	case_given(c, s, a);
	ExprId w = BIN(CPLX, expr_float(c->g, DT_F32, one[0]), expr_float(c->g, DT_F32, one[1]));
	ExprId v = read_at(c, x, 2, ax(c, 0), ax(c, 1));
	ExprId pick = expr_select(c->g, BIN(LT, ax(c, 1), case_int(c, 3)), v, w);
	Node n = case_node(1, BIN(MUL, BIN(MUL, read_at(c, s, 0), v), pick));
	case_reduce(&n, MON_SUM, case_int(c, 0), e[1]);
	case_result(c, "s", case_add(c, &n, "s", DT_C64, e), 0);
}

static void
test_complex_sum(void **state)
{
	(void)state;
	case_try(build_complex_sum);
}

/* --- roots of unity --- */

static int64_t root_n, root_step;

static void
build_root(Case *c)
{
	ExprId e[1] = {case_int(c, 53)};
	ExprId k = BIN(MUL, BIN(SUB, ax(c, 0), case_int(c, 20)), case_int(c, root_step));
	Node n = case_node(1, expr_make(c->g, OP_ROOT, DT_C64, 0, 0, (ExprId[]){k, case_int(c, root_n)}, 2));
	case_result(c, "z", case_add(c, &n, "z", DT_C64, e), 0);
}

/* Within one ulp of f32 of the value in long double, and exact at the multiples of a quarter. */
static void
check_root(const float *z, int64_t k, int64_t n)
{
	const long double tau = 6.283185307179586476925286766559L;
	int64_t m = k % n < 0 ? k % n + n : k % n;
	bool quarter = m == 0 || (n % 2 == 0 && m == n / 2) || (n % 4 == 0 && (m == n / 4 || m == n / 4 * 3));
	bool fine = m < n / 2; /* keep the reference's own angle small: it is good to 1e-18 */
	long double angle = tau * (long double)(fine ? m : m - n) / (long double)n;
	long double want[2] = {cosl(angle), sinl(angle)};
	for (int part = 0; part < 2; part++) {
		long double ulp = ldexpl(1, (int)fmaxl(floorl(log2l(fmaxl(fabsl(want[part]), 1e-10L))), -126) - 23);
		if (quarter)
			assert_true(z[part] == roundl(want[part]));
		else
			assert_true(fabsl((long double)z[part] - want[part]) <= ulp);
	}
}

static void
test_root(void **state)
{
	(void)state;
	static const int64_t order[] = {1, 2, 3, 4, 5, 8, 12, 360, 1000003, INT64_C(1) << 40, INT64_MAX - 24};
	static const int64_t step[] = {1, 7, 1000000007, INT64_C(1) << 36};
	for (size_t n = 0; n < sizeof order / sizeof *order; n++)
		for (size_t s = 0; s < sizeof step / sizeof *step; s++) {
			root_n = order[n];
			root_step = step[s];
			const float *z = case_try(build_root).first_result;
			for (int64_t k = 0; k < 53; k++)
				check_root(z + 2 * k, (k - 20) * root_step, root_n);
		}
}

/* --- random numbers --- */

static Op random_op;
static unsigned random_rank;
static int64_t seed_value;

static void
build_random(Case *c)
{
	ExprId e[4] = {case_int(c, 2), case_int(c, 3), case_int(c, 2), case_int(c, 41)}, arg[5];
	ExprId extent[4];
	TensorId seed = case_input(c, TENSOR_SCALAR, "seed", DT_U64, 0, NULL);
	case_given(c, seed, &seed_value);
	arg[0] = read_at(c, seed, 0);
	for (unsigned a = 0; a < random_rank; a++) {
		extent[a] = e[4 - random_rank + a];
		arg[a + 1] = BIN(ADD, ax(c, a), case_int(c, -3 + (int64_t)a));
	}
	Node n = case_node(random_rank, expr_make(c->g, random_op, DT_F32, 0, 0, arg, random_rank + 1));
	case_result(c, "z", case_add(c, &n, "z", DT_F32, extent), 0);
}

static void
test_random(void **state)
{
	(void)state;
	for (random_rank = 1; random_rank <= 4; random_rank++)
		for (seed_value = -1; seed_value < 2; seed_value++) {
			random_op = OP_RAND;
			case_try(build_random);
			random_op = OP_RANDN;
			case_try(build_random);
		}
}

/* --- every operation on every type it takes --- */

static Op any_op;
static DType any_type;

static void
build_any(Case *c)
{
	ExprId e[2] = {case_int(c, 5), case_int(c, 37)}, arg[3];
	TensorId x = case_input(c, TENSOR_INPUT, "x", any_type, 2, e);
	TensorId y = case_input(c, TENSOR_INPUT, "y", any_type, 1, e + 1);
	if (dtype_info[any_type].kind == KIND_UINT) {
		case_range(c, x, 0, 9);
		case_range(c, y, 0, 5);
	}
	arg[0] = read_at(c, x, 2, ax(c, 0), ax(c, 1));
	arg[1] = read_at(c, y, 1, ax(c, 1));
	bool test = op_info[any_op].sig == SIG_CMP || any_op == OP_ISNAN;
	DType to = test ? DT_BOOL : any_type;
	Node n = case_node(2, expr_make(c->g, any_op, to, 0, 0, arg, (unsigned)op_info[any_op].arity));
	case_result(c, "z", case_add(c, &n, "z", to, e), 0);
}

static bool
op_takes(Op op, DType t)
{
	DTypeKind kind = dtype_info[t].kind;
	switch ((OpSig)op_info[op].sig) {
	case SIG_SAME: return op != OP_FDIV || kind == KIND_FLOAT;
	case SIG_ORDERED: case SIG_CMP: return true;
	case SIG_FLOAT: return kind == KIND_FLOAT;
	case SIG_INT: return kind != KIND_FLOAT;
	case SIG_FREE: return op == OP_ISNAN && kind == KIND_FLOAT;
	case SIG_LOGIC: case SIG_SELECT: case SIG_BITS: return false;
	}
	return false;
}

static void
test_every_op(void **state)
{
	(void)state;
	static const DType types[] = {DT_F32, DT_F64, DT_I32, DT_I64, DT_U32, DT_U64};
	for (int op = 1; op < OP_COUNT; op++)
		for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
			bool scalar_op = op_info[op].cls == CLASS_MAP && (op_info[op].level & LEVEL_G);
			if (!scalar_op || !op_takes((Op)op, types[t]))
				continue;
			any_op = (Op)op;
			any_type = types[t];
			case_try(build_any);
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_complex, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_complex_sum, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_root, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_random, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_every_op, case_setup, case_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
