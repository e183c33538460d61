/* tile_test.c: what blocks of threads read across their lanes, through tiles in shared memory (rows/tile.c), and what a
 * task's rows share (rows/keep.c), against the oracle: tiles that are whole and that are not, of several types and
 * ranks; and what must not be read early. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph_case.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

typedef struct {
	DType in, other;     /* other: of a second operand; DT_NONE: none */
	int64_t n, m;        /* of the result */
	bool straight;       /* the second operand lies as the result does */
} Shape;

static const Shape *now;

static ExprId
as_f32(Case *c, ExprId e)
{
	return expr_cast(c->g, DT_F32, e);
}

/* y[i, j] = x[j, i], and the second operand added. */
static void
transpose(Case *c)
{
	ExprId n = case_dim(c, "N", now->n), m = case_dim(c, "M", now->m);
	TensorId x = case_input(c, TENSOR_INPUT, "x", now->in, 2, (ExprId[]){m, n});
	ExprId body = read_at(c, x, 2, ax(c, 1), ax(c, 0));
	DType to = now->in;
	if (now->other) {
		ExprId shape[2] = {now->straight ? n : m, now->straight ? m : n};
		TensorId r = case_input(c, TENSOR_INPUT, "r", now->other, 2, shape);
		body = BIN(ADD, as_f32(c, body), as_f32(c, read_at(c, r, 2, ax(c, !now->straight), ax(c, now->straight))));
		to = DT_F32;
	}
	Node y = case_node(2, body);
	case_result(c, "y", case_add(c, &y, "y", to, (ExprId[]){n, m}), 0);
}

static void
transposes(void **state)
{
	static const Shape shapes[] = {
		{DT_F32, DT_NONE, 64, 96, false}, {DT_F32, DT_NONE, 33, 31, false}, {DT_BF16, DT_NONE, 128, 64, false},
		{DT_BF16, DT_NONE, 130, 70, false}, {DT_BF16, DT_NONE, 5, 63, false}, {DT_F64, DT_NONE, 40, 32, false},
		{DT_U8, DT_NONE, 128, 132, false}, {DT_BF16, DT_BF16, 64, 66, true}, {DT_F32, DT_BF16, 65, 64, true},
		{DT_BF16, DT_F32, 64, 67, false}, {DT_U8, DT_F64, 70, 64, false}, {DT_BOOL, DT_NONE, 32, 140, false},
		{DT_C64, DT_NONE, 33, 34, false}, {DT_F32, DT_NONE, 1, 40, false},
	};
	(void)state;
	for (unsigned k = 0; k < sizeof shapes / sizeof *shapes; k++) {
		now = &shapes[k];
		CaseRun run = case_try_blocks(transpose);
		assert_true(run.map);
	}
}

/* Tiles of four warps, as large as all that are read across fit, whole ones and those at edges; none where a side is shorter,
 * or a group would end behind it. */
static void
large(void **state)
{
	static const struct {
		Shape shape;
		unsigned side;
	} c[] = {
		{{DT_BF16, DT_NONE, 256, 128, false}, 128}, {{DT_BF16, DT_NONE, 132, 260, false}, 128}, {{DT_BF16, DT_NONE, 124, 260, false}, 0},
		{{DT_BF16, DT_NONE, 130, 260, false}, 0}, {{DT_F32, DT_NONE, 66, 130, false}, 64}, {{DT_U8, DT_NONE, 264, 136, false}, 128},
		{{DT_F64, DT_NONE, 64, 128, false}, 0}, {{DT_F16, DT_F16, 128, 132, true}, 128}, {{DT_BF16, DT_F32, 68, 132, false}, 64},
		{{DT_U8, DT_F64, 72, 64, false}, 64}, {{DT_F32, DT_U8, 72, 136, true}, 64}, {{DT_BOOL, DT_NONE, 128, 128, false}, 0},
	};
	(void)state;
	for (unsigned k = 0; k < sizeof c / sizeof *c; k++) {
		now = &c[k].shape;
		assert_int_equal(case_try_blocks(transpose).columns, c[k].side);
	}
}

/* What is read once goes past the first cache: a whole tile's 16 rows at once, and the row of another tile; of a row or a column
 * that is read for all of the others nothing, nor of rows that come twice. */
static void
half_rows(Case *c)
{
	ExprId n = case_dim(c, "N", 70), m = case_dim(c, "M", 66), two = case_int(c, 2);
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F32, 2, (ExprId[]){m, n});
	Node y = case_node(2, read_at(c, x, 2, BIN(IDIV, ax(c, 1), two), ax(c, 0)));
	case_result(c, "y", case_add(c, &y, "y", DT_F32, (ExprId[]){n, m}), 0);
}

static void
with_bias(Case *c)
{
	ExprId n = case_dim(c, "N", 70), m = case_dim(c, "M", 66);
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F32, 2, (ExprId[]){m, n}), r = case_input(c, TENSOR_INPUT, "r", DT_F32, 1, &m);
	Node y = case_node(2, BIN(ADD, read_at(c, x, 2, ax(c, 1), ax(c, 0)), read_at(c, r, 1, ax(c, 1))));
	case_result(c, "y", case_add(c, &y, "y", DT_F32, (ExprId[]){n, m}), 0);
}

static void
past_the_cache(void **state)
{
	static const Shape one = {DT_F32, DT_NONE, 64, 96, false}, two = {DT_BF16, DT_BF16, 64, 66, true};
	static const Shape both = {DT_BF16, DT_F32, 64, 67, false};
	(void)state;
	now = &one;
	assert_int_equal(case_try_blocks(transpose).past, 17);
	now = &two;
	assert_int_equal(case_try_blocks(transpose).past, 2 * 17);
	now = &both; /* of which four warps have eight rows at once */
	assert_int_equal(case_try_blocks(transpose).past, 2 * 9);
	assert_int_equal(case_try_blocks(with_bias).past, 17);
	assert_int_equal(case_try_blocks(half_rows).past, 0);
}

/* A matrix and its own transpose. */
static void
symmetric(Case *c)
{
	ExprId n = case_dim(c, "N", 70);
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F32, 2, (ExprId[]){n, n});
	Node y = case_node(2, BIN(ADD, read_at(c, x, 2, ax(c, 0), ax(c, 1)), read_at(c, x, 2, ax(c, 1), ax(c, 0))));
	case_result(c, "y", case_add(c, &y, "y", DT_F32, (ExprId[]){n, n}), 0);
}

/* y[i, j, k] = x[k, i, j]: the last axis becomes the one before. */
static void
permuted(Case *c)
{
	ExprId e[3] = {case_dim(c, "A", 3), case_dim(c, "B", 37), case_dim(c, "C", 65)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F16, 3, (ExprId[]){e[2], e[0], e[1]});
	Node y = case_node(3, read_at(c, x, 3, ax(c, 2), ax(c, 0), ax(c, 1)));
	case_result(c, "y", case_add(c, &y, "y", DT_F16, e), 0);
}

/* What only some elements may read: y[i, j] = x[j - 3, i] where that is inside. */
static void
shifted(Case *c)
{
	ExprId n = case_dim(c, "N", 66), m = case_dim(c, "M", 40), three = case_int(c, 3);
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F32, 2, (ExprId[]){m, n});
	ExprId there = read_at(c, x, 2, BIN(SUB, ax(c, 1), three), ax(c, 0));
	Node y = case_node(2, expr_select(c->g, BIN(LE, three, ax(c, 1)), there, expr_float(c->g, DT_F32, 7)));
	case_result(c, "y", case_add(c, &y, "y", DT_F32, (ExprId[]){n, m}), 0);
}

/* A checked row: what may fail is not read before it is wanted. */
static void
gathered(Case *c)
{
	ExprId n = case_dim(c, "N", 40), m = case_dim(c, "M", 33);
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F32, 2, (ExprId[]){m, n});
	TensorId i = case_input(c, TENSOR_INPUT, "i", DT_I32, 1, &m);
	case_range(c, i, 0, 33);
	ExprId at = expr_cast(c->g, DT_I64, read_at(c, i, 1, ax(c, 1)));
	Node y = case_node(2, gather_at(c, case_access(c, ACCESS_GATHER), x, 2, at, ax(c, 0)));
	case_result(c, "y", case_add(c, &y, "y", DT_F32, (ExprId[]){n, m}), 0);
}

static void
forms(void **state)
{
	static CaseFn *const cases[] = {symmetric, permuted, shifted, gathered};
	(void)state;
	for (unsigned k = 0; k < sizeof cases / sizeof *cases; k++)
		case_try_blocks(cases[k]);
}

/* A row and a column, to rows enough that a task has several; the last has one. */
static void
bias(Case *c)
{
	ExprId n = case_dim(c, "N", 16897), m = case_dim(c, "M", 3);
	TensorId x = case_input(c, TENSOR_INOUT, "x", DT_F32, 2, (ExprId[]){n, m});
	TensorId r = case_input(c, TENSOR_INPUT, "r", DT_BF16, 1, &m), s = case_input(c, TENSOR_INPUT, "s", DT_F32, 1, &n);
	ExprId body = BIN(MUL, read_at(c, x, 2, ax(c, 0), ax(c, 1)), as_f32(c, read_at(c, r, 1, ax(c, 1))));
	Node y = case_node(2, BIN(ADD, body, read_at(c, s, 1, ax(c, 0))));
	case_result(c, "x", case_add(c, &y, "y", DT_F32, (ExprId[]){n, m}), x);
}

/* What rows share is a row of the inout, which is written. */
static void
first_row(Case *c)
{
	ExprId n = case_dim(c, "N", 16900), m = case_dim(c, "M", 4);
	TensorId x = case_input(c, TENSOR_INOUT, "x", DT_F32, 2, (ExprId[]){n, m});
	Node y = case_node(2, BIN(SUB, read_at(c, x, 2, ax(c, 0), ax(c, 1)), read_at(c, x, 2, case_int(c, 7), ax(c, 1))));
	case_result(c, "x", case_add(c, &y, "y", DT_F32, (ExprId[]){n, m}), x);
}

/* The middle axis' values share it, and a part of them has none. */
static void
middle(Case *c)
{
	ExprId e[3] = {case_dim(c, "A", 3), case_dim(c, "B", 2900), case_dim(c, "C", 3)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F16, 3, e);
	TensorId r = case_input(c, TENSOR_INPUT, "r", DT_F64, 2, (ExprId[]){e[0], e[2]});
	ExprId early = BIN(LT, ax(c, 0), case_int(c, 2)), next = BIN(ADD, ax(c, 0), case_int(c, 1));
	ExprId shared = expr_select(c->g, early, read_at(c, r, 2, next, ax(c, 2)), expr_float(c->g, DT_F64, 3));
	Node y = case_node(3, BIN(ADD, expr_cast(c->g, DT_F64, read_at(c, x, 3, ax(c, 0), ax(c, 1), ax(c, 2))), shared));
	case_result(c, "y", case_add(c, &y, "y", DT_F64, e), 0);
}

static void
kept(void **state)
{
	static CaseFn *const cases[] = {bias, first_row, middle};
	(void)state;
	for (unsigned k = 0; k < sizeof cases / sizeof *cases; k++)
		case_try_blocks(cases[k]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(transposes, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(large, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(past_the_cache, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(forms, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(kept, case_setup, case_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
