/* columns_test.c: folds of rows that many tasks have, each its own ones, as a sparse matrix times a dense one has: as
 * few threads as the columns fill, in groups where these divide them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph_case.h"

typedef struct {
	DType in;
	int64_t tasks, terms, columns;
	unsigned threads;
} Shape;

/* Of 300 tasks with 100 columns, one a thread, more warps would come than there are multiprocessors to have to themselves. */
static const Shape shapes[] = {{DT_F32, 300, 9, 100, 32}, {DT_F32, 300, 9, 128, 32}, {DT_F32, 150, 9, 132, 128}, {DT_BF16, 180, 5, 128, 32},
                               {DT_F32, 300, 3, 99, 128}, {DT_F64, 300, 6, 64, 32}, {DT_F32, 5, 40, 100, 32}, {DT_F32, 600, 4, 20, 32},
                               {DT_BF16, 20, 140, 128, 32}, {DT_F32, 150, 290, 132, 128}};
static const Shape *now;

/* y[i, d] = sum[l in 0 .. count[i]](w[i, l] * x[ids[i, l], d]) */
static void
gathered(Case *c)
{
	ExprId n = case_dim(c, "N", now->tasks), l = case_dim(c, "L", now->terms), m = case_dim(c, "M", now->columns);
	ExprId rows = case_dim(c, "R", 17);
	TensorId ids = case_input(c, TENSOR_INPUT, "ids", DT_I64, 2, (ExprId[]){n, l});
	TensorId x = case_input(c, TENSOR_INPUT, "x", now->in, 2, (ExprId[]){rows, m});
	TensorId w = case_input(c, TENSOR_INPUT, "w", now->in, 2, (ExprId[]){n, l});
	DType wide = now->in == DT_F64 ? DT_F64 : DT_F32;
	TensorId count = case_input(c, TENSOR_INPUT, "count", DT_I64, 1, &n);
	case_range(c, ids, 0, 17);
	case_range(c, count, 0, now->terms + 1);
	ExprId at = read_at(c, ids, 2, ax(c, 0), ax(c, 2));
	ExprId row = expr_cast(c->g, wide, gather_at(c, case_access(c, ACCESS_GATHER), x, 2, at, ax(c, 1)));
	ExprId weight = expr_cast(c->g, wide, read_at(c, w, 2, ax(c, 0), ax(c, 2)));
	Node y = case_node(2, expr_binary(c->g, OP_MUL, weight, row));
	case_reduce(&y, MON_SUM, case_int(c, 0), read_at(c, count, 1, ax(c, 0)));
	y.axis[2].clamp = l;
	y.axis[2].cut = case_access(c, ACCESS_CUT);
	case_result(c, "y", case_add(c, &y, "y", wide, (ExprId[]){n, m}), 0);
}

static void
test_gathered(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
		now = &shapes[k];
		CaseRun r = case_try_blocks(gathered);
		assert_int_equal(r.tmpl, TMPL_COLRED);
		assert_int_equal(r.threads, now->threads);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_gathered, case_setup, case_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
