/* contraction_test.c: usage: contraction_test [[-]PATTERN]: the tests of such names, or all others
 *
 * Sums of products through the CONTRACT template, against the oracle and, in strict mode to the bit,
 * against NEST. A case is written as its operands' and its output's indices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "graph_case.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

typedef struct {
	const char *a, *b, *terms, *out; /* index letters; terms: outermost first */
	int64_t size[26];                /* by letter */
	DType in, to;                    /* DT_NONE: f32 */
	enum { PLAIN, SHIFTED, EPILOGUE, OLD, PROLOGUE } form;
} Product;

static const Product *now;
static uint64_t extremes; /* operands are bf16 of extreme sizes, chosen by this; 0: common ones */
static const uint16_t (*edge)[2]; /* or a repeats the first two bf16, b the next */
static uint64_t splits;           /* how tasks become calls */

/* --- a product as a graph --- */

static ExprId
extent(Case *c, char letter)
{
	return case_dim(c, (char[]){(char)(letter - 'a' + 'A'), 0}, now->size[letter - 'a']);
}

/* Axis of a letter: its place in the output, else behind it among the terms. */
static ExprId
index_of(Case *c, char letter)
{
	const char *at = strchr(now->out, letter);
	if (at)
		return ax(c, (unsigned)(at - now->out));
	ExprId i = ax(c, (unsigned)(strlen(now->out) + (size_t)(strchr(now->terms, letter) - now->terms)));
	return i;
}

static unsigned
extents(Case *c, const char *letters, ExprId *e)
{
	unsigned n = 0;
	for (; letters[n]; n++)
		e[n] = extent(c, letters[n]);
	return n;
}

/* Subnormals, zeros, what is a subnormal when multiplied, and what makes subnormals matter. */
static void
fill_with_extremes(Case *c, uint32_t param, const char *letters)
{
	enum { SUBNORMAL = 4 };
	static const uint16_t bits[] = {0x0001, 0x8040, 0x007f, 0x0002, 0x0000, 0x8000, 0x3f80, 0xbfa5, 0x1e00, 0x9e7f,
	                                0x0080, 0x5a00, 0xda01, 0x1fc0, 0x4001};
	size_t from = extremes % 3 ? 0 : SUBNORMAL, kinds = sizeof bits / sizeof *bits - from;
	uint64_t state = extremes * 0x9e3779b97f4a7c15u + param;
	size_t count = 1;
	for (const char *l = letters; *l; l++)
		count *= (size_t)now->size[*l - 'a'];
	uint16_t *data = ARENA_ARRAY(c->arena, uint16_t, count + 1);
	for (size_t k = 0; k < count; k++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		data[k] = edge ? edge[param][k % 2] : extremes % 2 && state >> 60 ? 0x3f80 : bits[from + (state >> 33) % kinds];
	}
	c->given[param] = data;
}

static TensorId
operand(Case *c, const char *letters, const char *name, DType t)
{
	ExprId e[TG_MAX_RANK];
	unsigned n = extents(c, letters, e);
	if (extremes || edge)
		fill_with_extremes(c, c->g->param.n, letters);
	return case_input(c, TENSOR_INPUT, name, t, n, e);
}

static ExprId
element(Case *c, TensorId t, const char *letters)
{
	ExprId sub[TG_MAX_RANK];
	unsigned n = 0;
	for (; letters[n]; n++)
		sub[n] = index_of(c, letters[n]);
	ExprId e = expr_read(c->g, t, sub, n, 0);
	return expr_cast(c->g, dtype_info[c->g->tensor.at[t].dtype].arith, e);
}

static ExprId
finish(Case *c, DType sum, TensorId old)
{
	ExprId acc = expr_make(c->g, OP_ACC, sum, 0, 0, NULL, 0);
	if (now->form == OLD)
		return BIN(ADD, element(c, old, now->out), acc);
	TensorId bias = operand(c, now->out + strlen(now->out) - 1, "bias", sum);
	TensorId rest = operand(c, now->out, "rest", sum);
	ExprId v = BIN(MAX, BIN(ADD, acc, element(c, bias, now->out + strlen(now->out) - 1)), element(c, rest, now->out));
	return expr_cast(c->g, now->to ? now->to : sum, v);
}

static void
build_product(Case *c)
{
	DType in = now->in ? now->in : DT_F32, sum = dtype_info[in].arith, to = now->to ? now->to : sum;
	TensorId a = operand(c, now->a, "a", in), b = operand(c, now->b, "b", in), old = 0;
	ExprId e[TG_MAX_RANK], x = element(c, a, now->a), y = element(c, b, now->b);
	unsigned rank = extents(c, now->out, e);
	c->splits = splits;
	if (now->form == PROLOGUE) {
		ExprId zero = expr_cast(c->g, sum, case_int(c, 0));
		x = expr_select(c->g, BIN(LT, zero, x), BIN(MUL, x, x), BIN(SUB, zero, x));
		y = BIN(ADD, y, expr_cast(c->g, sum, index_of(c, now->terms[0])));
	}
	if (now->form == OLD)
		old = case_input(c, TENSOR_INOUT, "old", to, rank, e);
	Node n = case_node(rank, BIN(MUL, x, y));
	for (const char *t = now->terms; *t; t++) {
		ExprId end = extent(c, *t);
		case_reduce(&n, MON_SUM, case_int(c, now->form == SHIFTED ? 2 : 0), end);
	}
	if (now->form == EPILOGUE || now->form == OLD)
		n.finish = finish(c, sum, old);
	else if (to != sum)
		n.finish = expr_cast(c->g, to, expr_make(c->g, OP_ACC, sum, 0, 0, NULL, 0));
	case_result(c, "z", case_add(c, &n, "z", to, e), old);
}

static void
try_product(const Product *p)
{
	now = p;
	CaseRun r = case_try(build_product);
	assert_int_equal(r.kernels, 1);
	if (r.tmpl != TMPL_CONTRACT)
		fail_msg("%s,%s->%s is no contraction: %s", p->a, p->b, p->out, r.remarks);
}

/* Tiles of DOT, by either unit, or none of it. */
static void
try_pairs(Product p, bool pairs)
{
	now = &p;
	for (unsigned vectors = 0; vectors < 2; vectors++) {
		CaseRun r = case_try_dot(build_product, vectors ? TIR_DOT_VECTORS : TIR_DOT_TILES);
		assert_int_equal(r.tmpl, TMPL_CONTRACT);
		assert_int_equal(r.pairs, pairs ? (vectors ? 8 : 16) : 0);
		assert_int_equal(r.chained, pairs && vectors);
	}
	now = NULL;
}

/* --- shapes --- */

#define IJK(m, n, k) {[8] = m, [9] = n, [10] = k}

static const char *const layouts[][3] = {
	{"ik", "kj", "ij"}, {"ik", "jk", "ij"}, {"ki", "kj", "ij"}, {"ki", "jk", "ij"}, {"ik", "kj", "ji"},
	{"jk", "ki", "ij"},
};

static void
test_layouts(void **state)
{
	(void)state;
	static const int64_t sizes[][3] = {{7, 19, 11}, {29, 35, 17}, {1, 1, 1}, {14, 32, 16}, {16, 17, 1}, {1, 33, 5}};
	for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++)
		for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
			Product p = {layouts[l][0], layouts[l][1], "k", layouts[l][2],
			             IJK(sizes[s][0], sizes[s][1], sizes[s][2]), DT_NONE, DT_NONE, PLAIN};
			try_product(&p);
		}
}

/* Whichever way they lie, both factors are fetched while what lies before them is packed. */
static void
test_more_fetched(void **state)
{
	(void)state;
	static const DType in[] = {DT_F32, DT_F16};
	for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++)
		for (size_t k = 0; k < sizeof in / sizeof *in; k++) {
			now = &(Product){layouts[l][0], layouts[l][1], "k", layouts[l][2], IJK(17, 35, 18), in[k], DT_NONE, PLAIN};
			assert_int_equal(case_try(build_product).ahead, 2);
		}
	now = &(Product){"ik", "kj", "k", "ij", IJK(17, 35, 18), DT_BF16, DT_NONE, PLAIN};
	assert_int_equal(case_try_dot(build_product, TIR_DOT_VECTORS).ahead, 2);
	assert_int_equal(case_try_dot(build_product, TIR_DOT_TILES).ahead, 2);
}

/* Nothing to compute, and the sum of nothing, which is +0. */
static void
test_empty(void **state)
{
	(void)state;
	now = &(Product){"ik", "kj", "k", "ij", IJK(3, 5, 0), DT_NONE, DT_NONE, PLAIN};
	try_product(now);
	CaseRun r = case_try(build_product);
	for (int k = 0; k < 15; k++)
		assert_int_equal(((const uint32_t *)r.first_result)[k], 0);
	try_product(&(Product){"irs", "rsj", "rs", "ij", {[8] = 3, [9] = 5, [17] = 4, [18] = 0}, DT_NONE, DT_NONE, PLAIN});
	try_product(&(Product){"irs", "rsj", "rs", "ij", {[8] = 3, [9] = 5, [17] = 0, [18] = 4}, DT_NONE, DT_NONE, PLAIN});
	try_product(&(Product){"ik", "kj", "k", "ij", IJK(9, 9, 1), DT_NONE, DT_NONE, SHIFTED});
	/* no batch, of so many rows that columns of one batch would be packed ahead */
	now = &(Product){"kib", "jbk", "k", "bij", {[1] = 0, [8] = 40, [9] = 17, [10] = 17}, DT_NONE, DT_NONE, PLAIN};
	case_try_nothing(build_product);
}

/* More than one block of rows, of columns, of terms. */
static void
test_more_blocks(void **state)
{
	(void)state;
	try_product(&(Product){"ik", "kj", "k", "ij", IJK(351, 3, 2), DT_NONE, DT_NONE, PLAIN});
	try_product(&(Product){"ik", "kj", "k", "ij", IJK(3, 4200, 2), DT_NONE, DT_NONE, PLAIN});
	try_product(&(Product){"ik", "kj", "k", "ij", IJK(97, 4200, 1), DT_NONE, DT_NONE, PLAIN});
	try_pairs((Product){"ik", "kj", "k", "ij", IJK(40, 600, 3), DT_BF16, DT_NONE, PLAIN}, true);
	try_product(&(Product){"ik", "kj", "k", "ij", IJK(15, 37, 560), DT_NONE, DT_NONE, PLAIN});
	try_product(&(Product){"ik", "kj", "k", "ij", IJK(104, 290, 3), DT_NONE, DT_NONE, PLAIN}); /* strips ahead */
	try_product(&(Product){"ik", "kj", "k", "ij", IJK(20, 290, 530), DT_NONE, DT_NONE, PLAIN}); /* rows of one task */
	try_product(&(Product){"ki", "jk", "k", "ij", IJK(2, 3, 1050), DT_NONE, DT_NONE, EPILOGUE});
	try_product(&(Product){"ik", "kj", "k", "ij", IJK(2, 290, 1030), DT_NONE, DT_NONE, PLAIN});
	try_product(&(Product){"ik", "kj", "k", "ij", IJK(2, 290, 1030), DT_BF16, DT_NONE, PLAIN});
	try_product(&(Product){"irs", "rsj", "rs", "ij", {[8] = 4, [9] = 3, [17] = 40, [18] = 5}, DT_NONE, DT_NONE, PLAIN});
	try_product(&(Product){"ris", "jrs", "rs", "ij", {[8] = 4, [9] = 3, [17] = 2, [18] = 530}, DT_NONE, DT_NONE, PLAIN});
}

/* However tasks become calls: one that goes on in an earlier call's scratch takes its columns, one with
 * scratch of its own packs them. */
static void
test_splits(void **state)
{
	(void)state;
	for (splits = 1; splits <= 20; splits++) {
		try_product(&(Product){"ik", "kj", "k", "ij", IJK(70, 17, 3), DT_NONE, DT_NONE, PLAIN});
		try_pairs((Product){"bik", "kj", "k", "bij", {[1] = 2, [8] = 97, [9] = 5, [10] = 3}, DT_BF16, DT_NONE, PLAIN}, true);
	}
	splits = 0;
}

/* Batches, broadcast on either side, in any order; several indices of rows, columns and terms. */
static void
try_axes(int form, int64_t rows_of_i)
{
	static const char *const rows[][4] = {
		{"bik", "bkj", "k", "bij"}, {"bik", "kj", "k", "bij"}, {"ik", "bkj", "k", "bij"}, {"bik", "bjk", "k", "ibj"},
		{"bki", "bkj", "k", "ijb"}, {"bik", "kjc", "k", "bijc"}, {"ibk", "kcj", "k", "bcij"}, {"kib", "ckj", "k", "bijc"},
		{"irs", "rsj", "rs", "ij"}, {"irs", "srj", "rs", "ij"}, {"ris", "jrs", "sr", "ij"}, {"birs", "rsjc", "rs", "bicj"},
		{"rsi", "jsr", "rs", "ij"}, {"ik", "j", "k", "ij"}, {"i", "kj", "k", "ij"}, {"i", "j", "k", "ij"},
	};
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
		try_product(&(Product){rows[k][0], rows[k][1], rows[k][2], rows[k][3],
		                       {[1] = 3, [2] = 5, [8] = rows_of_i, [9] = 17, [10] = 18, [17] = 3, [18] = 17}, DT_NONE, DT_NONE, form});
}

static void
test_axes(void **state)
{
	(void)state;
	try_axes(PLAIN, 8);
}

static void
test_more_axes(void **state)
{
	(void)state;
	try_axes(SHIFTED, 8);
	try_axes(SHIFTED, 11); /* not few rows */
}

static void
test_types(void **state)
{
	(void)state;
	static const DType in[] = {DT_F64, DT_F16, DT_BF16, DT_F8E4M3, DT_I64, DT_I32, DT_U32, DT_U64, DT_I8, DT_U16, DT_U4};
	for (size_t k = 0; k < sizeof in / sizeof *in; k++)
		try_product(&(Product){"ik", "jk", "k", "ij", IJK(9, 21, 18), in[k], DT_NONE, k % 2 ? PLAIN : PROLOGUE});
	try_product(&(Product){"ik", "kj", "k", "ij", IJK(9, 21, 18), DT_BF16, DT_BF16, EPILOGUE});
	try_product(&(Product){"ki", "kj", "k", "ij", IJK(9, 21, 18), DT_F16, DT_F16, PLAIN});
	try_product(&(Product){"ik", "kj", "k", "ij", IJK(9, 21, 18), DT_F32, DT_I8, EPILOGUE});
}

static void
test_more_pairs(void **state)
{
	(void)state;
	static const int64_t sizes[][3] = {{7, 19, 11}, {40, 35, 33}, {1, 1, 1}, {32, 32, 32}, {33, 17, 0}, {65, 96, 64}};
	for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++)
		for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
			try_pairs((Product){layouts[l][0], layouts[l][1], "k", layouts[l][2],
			                    IJK(sizes[s][0], sizes[s][1], sizes[s][2]), DT_BF16, s % 2 ? DT_BF16 : DT_F32, PLAIN}, true);
	try_pairs((Product){"bik", "bkj", "k", "bij", {[1] = 3, [8] = 8, [9] = 17, [10] = 18}, DT_BF16, DT_NONE, PLAIN}, true);
	try_pairs((Product){"bik", "kjc", "k", "bijc", {[1] = 3, [2] = 5, [8] = 8, [9] = 17, [10] = 18}, DT_BF16, DT_NONE, PLAIN}, true);
	try_pairs((Product){"kib", "ckj", "k", "bijc", {[1] = 3, [2] = 5, [8] = 8, [9] = 17, [10] = 18}, DT_BF16, DT_NONE, PLAIN}, true);
	try_pairs((Product){"ik", "kj", "k", "ij", IJK(9, 9, 40), DT_BF16, DT_NONE, SHIFTED}, true);
	try_pairs((Product){"ik", "j", "k", "ij", IJK(9, 9, 40), DT_BF16, DT_NONE, PLAIN}, true);
	try_pairs((Product){"ik", "kj", "k", "ij", IJK(37, 33, 1050), DT_BF16, DT_NONE, EPILOGUE}, true);
	try_pairs((Product){"ik", "kj", "k", "ij", IJK(150, 33, 300), DT_BF16, DT_NONE, PLAIN}, true); /* two blocks of rows */
	/* several ranges of terms, and factors that are computed in f32 */
	try_pairs((Product){"irs", "rsj", "rs", "ij", {[8] = 4, [9] = 3, [17] = 2, [18] = 40}, DT_BF16, DT_NONE, PLAIN}, false);
	try_pairs((Product){"ik", "kj", "k", "ij", IJK(9, 9, 40), DT_BF16, DT_NONE, PROLOGUE}, false);
}

/* What DOT takes for 0 is not 0, whichever block of terms it stands in. */
static void
test_subnormal_pairs(void **state)
{
	(void)state;
	for (extremes = 1; extremes <= 12; extremes++)
		for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l += 1 + extremes % 3)
			try_pairs((Product){layouts[l][0], layouts[l][1], "k", layouts[l][2],
			                    IJK(extremes % 2 ? 34 : 3, 5 + (int64_t)extremes, 1 + extremes % 4), DT_BF16, DT_NONE, PLAIN}, true);
	try_pairs((Product){"ik", "kj", "k", "ij", IJK(2, 3, 530), DT_BF16, DT_NONE, PLAIN}, true);
	try_pairs((Product){"ik", "jk", "k", "ij", IJK(70, 3, 1030), DT_BF16, DT_NONE, PLAIN}, true);
	extremes = 0;
}

/* 129 x 131 - 130 x 130 = -1: in units of 2^-126 DOT computes it, of 2^-127 it would give 0. */
static void
test_least_normal(void **state)
{
	(void)state;
	static const uint16_t data[][2][2] = {{{0x2381, 0xa382}, {0x2383, 0x2382}}, {{0x2381, 0xa382}, {0x2303, 0x2302}},
	                                      {{0x2301, 0xa302}, {0x2383, 0x2382}}};
	for (size_t n = 0; n < sizeof data / sizeof *data; n++) {
		edge = data[n];
		try_pairs((Product){"ik", "jk", "k", "ij", IJK(33, 5, 2), DT_BF16, DT_NONE, PLAIN}, true);
	}
	edge = NULL;
}

static void
test_fused(void **state)
{
	(void)state;
	for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++) {
		Product p = {layouts[l][0], layouts[l][1], "k", layouts[l][2], IJK(17, 35, 18), DT_NONE, DT_NONE, EPILOGUE};
		try_product(&p);
		p.form = OLD;
		try_product(&p);
		p.form = PROLOGUE;
		try_product(&p);
	}
}

/* --- what is not taken --- */

static enum { ROW_OF_COLUMN, TRIANGLE, GATHERED, MASKED, ONE_SIDED, COMPLEX, NIBBLES } unfit;

static void
build_unfit(Case *c)
{
	DType t = unfit == COMPLEX ? DT_C64 : DT_F32, to = unfit == NIBBLES ? DT_I4 : t;
	ExprId e[2] = {case_int(c, 5), case_int(c, 5)};
	TensorId a = case_input(c, TENSOR_INPUT, "a", t, 2, e), b = case_input(c, TENSOR_INPUT, "b", t, 2, e);
	ExprId i = ax(c, 0), j = ax(c, 1), k = ax(c, 2);
	ExprId x = read_at(c, a, 2, i, unfit == ROW_OF_COLUMN ? j : k);
	if (unfit == GATHERED)
		x = gather_at(c, case_access(c, ACCESS_GATHER), a, 2, i, k);
	Node n = case_node(2, BIN(MUL, x, read_at(c, b, 2, unfit == ONE_SIDED ? i : k, unfit == ONE_SIDED ? k : j)));
	case_reduce(&n, MON_SUM, case_int(c, 0), unfit == TRIANGLE ? BIN(ADD, i, case_int(c, 1)) : e[0]);
	if (unfit == MASKED)
		n.guard = BIN(LT, k, j);
	if (to != t)
		n.finish = expr_cast(c->g, to, expr_make(c->g, OP_ACC, t, 0, 0, NULL, 0));
	case_result(c, "z", case_add(c, &n, "z", to, e), 0);
}

static void
test_refusals(void **state)
{
	(void)state;
	static const char *const why[] = {"contract_sides", "contract_range", "contract_checked", "contract_absent",
	                                  "contract_sides", "contract_type", "contract_type"};
	for (size_t k = 0; k < sizeof why / sizeof *why; k++) {
		unfit = (unsigned)k;
		CaseRun r = case_try(build_unfit);
		assert_int_not_equal(r.tmpl, TMPL_CONTRACT);
		char text[64];
		snprintf(text, sizeof text, "remark[%s]: z ", why[k]);
		if (!strstr(r.remarks, text))
			fail_msg("%s, not %s", r.remarks, why[k]);
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_layouts, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_more_fetched, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_empty, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_more_blocks, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_splits, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_axes, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_more_axes, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_types, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_more_pairs, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_subnormal_pairs, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_least_normal, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_fused, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_refusals, case_setup, case_teardown),
	};
	case_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
