/* stream_pairs_test.c: streams of bf16 by DOT, in tiles and chained, through the tile interpreter, against the oracle:
 * sizes about those of tiles and groups, conditions, and data that DOT may not be given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/passes/graph_case.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

typedef struct {
	int64_t rows, elements, terms, columns;
	bool causal, wide_scores; /* keys and queries are f32, so DOT takes nothing */
	float scale;            /* of the scores */
	uint16_t query, key, value; /* bits that every 37th number has; 0: none */
} Attention;

static const Attention *now;

static TensorId
operand(Case *c, const char *name, DType t, ExprId rows, ExprId columns, uint16_t odd, size_t count)
{
	const ExprId e[2] = {rows, columns};
	TensorId id = case_input(c, TENSOR_INPUT, name, t, 2, e);
	if (!odd)
		return id;
	uint16_t *data = ARENA_ARRAY(c->arena, uint16_t, count + 1);
	for (size_t k = 0; k < count; k++)
		data[k] = k % 37 == 11 ? odd : (uint16_t)(0x3e80 + k * 2654435761u % 0x180 + (k & 8) * 0x1000);
	case_given(c, id, data);
	return id;
}

static ExprId
element(Case *c, TensorId t, ExprId i, ExprId j)
{
	return expr_cast(c->g, DT_F32, read_at(c, t, 2, i, j));
}

static TensorId
fold(Case *c, const char *name, Monoid m, unsigned npar, ExprId body, ExprId hi, const ExprId *extent, DType to)
{
	Node n = case_node(npar, body);
	case_reduce(&n, m, case_int(c, 0), hi);
	n.guard = now->causal ? BIN(LE, ax(c, npar), ax(c, 0)) : 0;
	n.finish = to == DT_F32 ? 0 : expr_cast(c->g, to, expr_make(c->g, OP_ACC, DT_F32, 0, 0, NULL, 0));
	return case_add(c, &n, name, to, extent);
}

/* o[i, e] = sum[j](softmax[j](scale * s[i, j]) * v[j, e]) */
static void
build(Case *c)
{
	const Attention *a = now;
	ExprId rows = case_dim(c, "T", a->rows), elements = case_dim(c, "S", a->elements);
	ExprId terms = case_dim(c, "D", a->terms), columns = case_dim(c, "E", a->columns);
	TensorId q = operand(c, "q", a->wide_scores ? DT_F32 : DT_BF16, rows, terms, a->query, (size_t)(a->rows * a->terms));
	TensorId k = operand(c, "k", a->wide_scores ? DT_F32 : DT_BF16, elements, terms, a->key, (size_t)(a->elements * a->terms));
	TensorId v = operand(c, "v", DT_BF16, elements, columns, a->value, (size_t)(a->elements * a->columns));
	const ExprId score[2] = {rows, elements}, out[2] = {rows, columns};
	Node n = case_node(2, BIN(MUL, element(c, q, ax(c, 0), ax(c, 2)), element(c, k, ax(c, 1), ax(c, 2))));
	case_reduce(&n, MON_SUM, case_int(c, 0), terms);
	n.finish = BIN(MUL, expr_make(c->g, OP_ACC, DT_F32, 0, 0, NULL, 0), expr_float(c->g, DT_F32, (double)a->scale));
	n.domain = a->causal ? BIN(LE, ax(c, 1), ax(c, 0)) : 0;
	TensorId s = case_add(c, &n, "s", DT_F32, score);
	TensorId m = fold(c, "m", MON_MAX, 1, read_at(c, s, 2, ax(c, 0), ax(c, 1)), elements, &rows, DT_F32);
	ExprId x = BIN(SUB, read_at(c, s, 2, ax(c, 0), ax(c, 1)), read_at(c, m, 1, ax(c, 0)));
	TensorId l = fold(c, "l", MON_SUM, 1, expr_unary(c->g, OP_EXP, x), elements, &rows, DT_F32);
	x = BIN(SUB, read_at(c, s, 2, ax(c, 0), ax(c, 2)), read_at(c, m, 1, ax(c, 0)));
	ExprId p = BIN(FDIV, expr_unary(c->g, OP_EXP, x), read_at(c, l, 1, ax(c, 0)));
	p = BIN(MUL, p, element(c, v, ax(c, 2), ax(c, 1)));
	case_result(c, "o", fold(c, "o", MON_SUM, 2, p, elements, out, DT_BF16), 0);
}

static void
try(const Attention *a)
{
	now = a;
	for (unsigned vectors = 0; vectors < 2; vectors++) {
		CaseRun r = case_try_dot(build, vectors ? TIR_DOT_VECTORS : TIR_DOT_TILES);
		assert_int_equal(r.kernels, 1);
		assert_int_equal(r.tmpl, TMPL_STREAM);
		assert_int_equal(r.pairs, a->wide_scores ? 0 : vectors ? 8 : 16);
		assert_int_equal(r.chained, vectors && !a->wide_scores);
	}
}

static void
test_sizes(void **state)
{
	(void)state;
	static const int64_t size[][4] = {{1, 1, 1, 1}, {33, 14, 17, 13}, {5, 33, 32, 32}, {40, 157, 16, 33}, {3, 200, 40, 65},
	                                  {7, 390, 5, 2}, {2, 31, 33, 14}, {9, 12, 1, 27}};
	for (size_t k = 0; k < sizeof size / sizeof *size; k++)
		for (unsigned form = 0; form < 2; form++)
			try(&(Attention){size[k][0], size[k][1], size[k][2], size[k][3], form == 1, false, 0.5f, 0, 0, 0});
	for (int64_t rows = 16383; rows <= 16900; rows += 517) /* blocks of rows of either size */
		try(&(Attention){.rows = rows, .elements = 3, .terms = 1, .columns = 1, .causal = rows % 2, .scale = 1});
	try(&(Attention){.rows = 20, .elements = 40, .terms = 9, .columns = 5, .wide_scores = true, .scale = 1});
}

/* What DOT takes for 0, in each operand: numbers of which it has to be asked, subnormals, and infinities, which a term
 * that is absent does not meet; weights that vanish. */
static void
test_extremes(void **state)
{
	(void)state;
	static const uint16_t odd[] = {0x0001, 0x8040, 0x0080, 0x1e00};
	for (size_t k = 0; k < sizeof odd / sizeof *odd; k++)
		for (unsigned of = 0; of < 3; of++)
			try(&(Attention){35, 170, 18, 15, k % 2 == 0, false, 0.1f, of == 0 ? odd[k] : 0, of == 1 ? odd[k] : 0,
			                 of == 2 ? odd[k] : 0});
	try(&(Attention){35, 170, 18, 15, true, false, 0.1f, 0, 0, 0x7f80});
	try(&(Attention){35, 170, 18, 15, false, false, 0.1f, 0, 0, 0xff80});
	try(&(Attention){35, 170, 18, 15, true, false, 7, 0, 0, 0});
	try(&(Attention){35, 170, 18, 15, false, false, 9, 0, 0, 0x0400});
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sizes, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_extremes, case_setup, case_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
