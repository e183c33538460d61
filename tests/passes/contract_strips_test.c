/* contract_strips_test.c: products with few rows or columns by strips (schedule/contract/strips.c), run by the tile
 * interpreter, which finds races, and compared with the oracle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph_case.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

/* LESS: GROUPS, of weights less a zero point of the group; APART: the same, whose factors stand one after another in the term. */
typedef enum { PLAIN, EPILOGUE, WIDENED, WEIGHTS, GROUPS, LESS, APART, SCALED_ROWS, SHORTER } Form;

enum { UNLESS_ROLES = 2 };

/* The weights, or what they are made of, and the few: by their indices; b is a batch. */
typedef struct {
	const char *weights, *few, *out;
	int64_t size[26]; /* by letter */
	DType in, quantised, to;
	Form form;
	bool fixed;
	uint8_t strips; /* UNLESS_ROLES: where there are none */
	bool split;
} Product;

static const Product *now;
static int64_t processors; /* 0: as many as usual */
static int64_t group_terms = 64; /* that have a scale in common */
static bool rows;

static ExprId
extent(Case *c, char letter)
{
	int64_t size = now->size[letter - 'a'];
	return now->fixed ? case_int(c, size) : case_dim(c, (char[]){(char)(letter - 'a' + 'A'), 0}, size);
}

static ExprId
index_of(Case *c, char letter)
{
	const char *at = strchr(now->out, letter);
	return ax(c, at ? (unsigned)(at - now->out) : (unsigned)strlen(now->out));
}

static TensorId
operand(Case *c, const char *letters, const char *name, DType t)
{
	ExprId e[TG_MAX_RANK];
	unsigned n = 0;
	for (; letters[n]; n++)
		e[n] = extent(c, letters[n]);
	return case_input(c, TENSOR_INPUT, name, t, n, e);
}

static ExprId
element(Case *c, TensorId t, const char *letters)
{
	ExprId sub[TG_MAX_RANK];
	unsigned n = 0;
	for (; letters[n]; n++)
		sub[n] = index_of(c, letters[n]);
	return expr_cast(c->g, DT_F32, expr_read(c->g, t, sub, n, 0));
}

static ExprId
narrowed(Case *c, ExprId e)
{
	return expr_cast(c->g, DT_F32, expr_cast(c->g, now->in, e));
}

/* With WEIGHTS, GROUPS and the like times the scale of the row and of a group of its terms, which stands in *scale if it is apart;
 * rounded, or as it is. */
static ExprId
weights_of(Case *c, ExprId *scale)
{
	if (now->form == WIDENED)
		return narrowed(c, element(c, operand(c, now->weights, "q", now->quantised), now->weights));
	if (now->form < WEIGHTS || now->form > APART)
		return element(c, operand(c, now->weights, "w", now->in), now->weights);
	TensorId q = operand(c, now->weights, "q", now->quantised);
	ExprId count[2] = {extent(c, 'n'), case_int(c, (now->size['k' - 'a'] + group_terms - 1) / group_terms)};
	ExprId sub[2] = {index_of(c, 'n'), BIN(IDIV, index_of(c, 'k'), case_int(c, group_terms))}, weight = element(c, q, now->weights);
	int64_t least = dtype_info[now->quantised].kind == KIND_UINT ? 0 : -8;
	case_range(c, q, least, 8);
	TensorId s = case_input(c, TENSOR_INPUT, "s", now->in, 2, count);
	if (now->form == LESS || now->form == APART) {
		TensorId zero = case_input(c, TENSOR_INPUT, "zero", DT_I8, 2, count);
		case_range(c, zero, least, 8);
		weight = BIN(SUB, weight, expr_cast(c->g, DT_F32, expr_read(c->g, zero, sub, 2, 0)));
	}
	ExprId of_group = expr_cast(c->g, DT_F32, expr_read(c->g, s, sub, 2, 0));
	if (now->form == APART) {
		*scale = of_group;
		return weight;
	}
	ExprId scaled = BIN(MUL, weight, of_group);
	return now->form == WEIGHTS ? narrowed(c, scaled) : scaled;
}

static ExprId
few_of(Case *c)
{
	DType t = now->form == SCALED_ROWS ? now->quantised : now->in; /* what is wide is stored */
	ExprId x = element(c, operand(c, now->few, "x", t), now->few);
	if (now->form != SCALED_ROWS)
		return x;
	TensorId g = operand(c, "k", "g", now->in);
	return narrowed(c, BIN(ADD, BIN(MUL, x, element(c, g, "k")), expr_cast(c->g, DT_F32, index_of(c, 'm'))));
}

static void
build_product(Case *c)
{
	ExprId e[TG_MAX_RANK], few = few_of(c), scale = 0, weights = weights_of(c, &scale);
	unsigned rank = 0;
	c->processors = processors;
	c->rows = rows;
	for (; now->out[rank]; rank++)
		e[rank] = extent(c, now->out[rank]);
	Node n = case_node(rank, scale ? BIN(MUL, BIN(MUL, few, weights), scale) : BIN(MUL, few, weights));
	ExprId end = extent(c, 'k');
	case_reduce(&n, MON_SUM, case_int(c, 0), now->form == SHORTER ? BIN(SUB, end, case_int(c, 16)) : end);
	ExprId acc = expr_make(c->g, OP_ACC, DT_F32, 0, 0, NULL, 0);
	if (now->form == EPILOGUE) {
		TensorId bias = operand(c, "n", "bias", now->in), rest = operand(c, now->out, "rest", DT_F32);
		acc = BIN(MUL, BIN(ADD, acc, element(c, bias, "n")), element(c, rest, now->out));
	}
	n.finish = expr_cast(c->g, now->to, acc);
	case_result(c, "z", case_add(c, &n, "z", now->to, e), 0);
}

#define SIZE(letter) [letter - 'a']
#define SIZES(m, n, k) {SIZE('m') = (m), SIZE('n') = (n), SIZE('k') = (k)}
#define BATCH(b, m, n, k) {SIZE('b') = (b), SIZE('m') = (m), SIZE('n') = (n), SIZE('k') = (k)}

static const Product products[] = {
	{"nk", "mk", "mn", SIZES(16, 64, 512), DT_BF16, 0, DT_F32, PLAIN, false, UNLESS_ROLES, false},
	{"nk", "mk", "mn", SIZES(1, 131, 136), DT_BF16, 0, DT_BF16, EPILOGUE, false, true, true},
	{"nk", "mk", "mn", SIZES(5, 65, 1000), DT_F16, 0, DT_F16, PLAIN, false, true, true},
	{"kn", "mk", "mn", SIZES(16, 128, 512), DT_BF16, 0, DT_BF16, PLAIN, false, UNLESS_ROLES, false},
	{"kn", "mk", "mn", SIZES(9, 136, 584), DT_F16, 0, DT_F32, EPILOGUE, false, true, true},
	{"kn", "km", "mn", SIZES(7, 72, 160), DT_BF16, 0, DT_F32, PLAIN, false, true, false},
	{"nk", "mk", "mn", SIZES(8, 64, 512), DT_BF16, 0, DT_F32, PLAIN, false, true, false},
	{"nk", "km", "mn", SIZES(16, 64, 136), DT_BF16, 0, DT_F32, PLAIN, false, true, false},
	/* the few as columns: where that is known */
	{"nk", "mk", "nm", SIZES(12, 70, 136), DT_BF16, 0, DT_BF16, EPILOGUE, true, true, true},
	{"kn", "km", "nm", SIZES(3, 64, 136), DT_BF16, 0, DT_F32, PLAIN, true, true, false},
	{"bnk", "bmk", "bmn", BATCH(3, 4, 66, 136), DT_BF16, 0, DT_F32, PLAIN, false, true, true},
	{"bkn", "mbk", "mbn", BATCH(2, 10, 64, 128), DT_BF16, 0, DT_BF16, EPILOGUE, false, UNLESS_ROLES, false},
	{"nk", "mk", "mn", SIZES(3, 64, 528), DT_BF16, 0, DT_F32, SHORTER, false, true, true},
	/* computed factors */
	{"nk", "mk", "mn", SIZES(6, 65, 1024), DT_BF16, DT_I8, DT_F32, WEIGHTS, true, true, false},
	{"kn", "mk", "mn", SIZES(16, 64, 512), DT_BF16, DT_I8, DT_F32, WEIGHTS, true, true, true},
	{"nk", "mk", "mn", SIZES(16, 65, 512), DT_BF16, DT_I4, DT_F32, WEIGHTS, true, true, false},
	{"kn", "mk", "mn", SIZES(7, 64, 512), DT_F16, DT_I4, DT_F32, WEIGHTS, true, true, false},
	{"nk", "mk", "mn", SIZES(3, 66, 520), DT_BF16, DT_F8E4M3, DT_F32, SCALED_ROWS, false, true, false},
	{"nk", "mk", "mn", SIZES(16, 65, 1040), DT_BF16, DT_I4, DT_F32, WIDENED, false, true, true},
	{"nk", "mk", "nm", SIZES(5, 64, 512), DT_F16, DT_U4, DT_F16, WIDENED, true, true, false},
	/* by scales of groups, in chunks of whole rounds and not */
	{"nk", "mk", "mn", SIZES(16, 65, 1024), DT_BF16, DT_I8, DT_F32, GROUPS, true, true, false},
	{"nk", "mk", "mn", SIZES(5, 65, 576), DT_F16, DT_I4, DT_F16, GROUPS, false, true, true},
	{"nk", "mk", "mn", SIZES(1, 64, 512), DT_BF16, DT_U4, DT_BF16, GROUPS, true, true, false},
	{"nk", "mk", "mn", SIZES(9, 64, 512), DT_BF16, DT_U8, DT_BF16, GROUPS, false, true, false},
	{"kn", "mk", "mn", SIZES(16, 64, 576), DT_BF16, DT_I8, DT_F32, GROUPS, false, true, false},
	{"kn", "mk", "nm", SIZES(4, 72, 512), DT_F16, DT_I4, DT_F32, GROUPS, true, true, true},
	{"nk", "mk", "mn", SIZES(2, 64, 512), DT_BF16, DT_F8E4M3, DT_F32, GROUPS, false, true, false},
	{"bnk", "bmk", "bmn", BATCH(2, 4, 66, 512), DT_BF16, DT_I8, DT_F32, GROUPS, false, true, false},
	/* more of the few, of elements alone */
	{"nk", "mk", "mn", SIZES(32, 64, 512), DT_BF16, 0, DT_F32, PLAIN, false, UNLESS_ROLES, false},
	{"nk", "mk", "mn", SIZES(17, 131, 1008), DT_F16, 0, DT_BF16, EPILOGUE, false, UNLESS_ROLES, true},
	{"kn", "mk", "mn", SIZES(25, 136, 592), DT_BF16, 0, DT_F32, EPILOGUE, false, true, false},
	{"kn", "km", "nm", SIZES(31, 72, 160), DT_BF16, 0, DT_F32, PLAIN, true, true, true},
	{"bnk", "bmk", "bmn", BATCH(2, 20, 66, 144), DT_BF16, 0, DT_F16, PLAIN, false, UNLESS_ROLES, false},
	{"nk", "mk", "mn", SIZES(17, 64, 512), DT_BF16, DT_I8, DT_F32, WEIGHTS, true, false, false},
	/* not worth it, or not possible */
	{"nk", "mk", "mn", SIZES(33, 64, 128), DT_BF16, 0, DT_F32, PLAIN, false, false, false},
	{"nk", "mk", "mn", SIZES(16, 63, 128), DT_BF16, 0, DT_F32, PLAIN, false, false, false},
	{"nk", "mk", "mn", SIZES(16, 64, 120), DT_BF16, 0, DT_F32, PLAIN, false, false, false},
	{"nk", "mk", "mn", SIZES(16, 64, 132), DT_BF16, 0, DT_F32, PLAIN, false, false, false},
	{"kn", "mk", "mn", SIZES(16, 68, 128), DT_BF16, 0, DT_F32, PLAIN, false, false, false},
	{"nk", "mk", "mn", SIZES(16, 64, 0), DT_BF16, 0, DT_F32, PLAIN, false, false, false},
};

static void
products_are_right(void **state)
{
	(void)state;
	for (unsigned n = 0; n < sizeof products / sizeof *products; n++) {
		now = &products[n];
		CaseRun r = case_try_roles(build_product, now->split, 0);
		if (r.strips != (now->strips == 1) || (now->strips == UNLESS_ROLES && !r.roles))
			fail_msg("product %u is %staken by strips: %s", n, r.strips ? "" : "not ", r.remarks);
	}
}

/* Where there are more strips than processors, memory of which runs along the long side, each has two blocks. */
static void
many_strips_have_two_blocks(void **state)
{
	static const struct {
		Product product;
		unsigned threads;
	} many[] = {
		{{"kn", "mk", "mn", SIZES(3, 200, 152), DT_BF16, 0, DT_F32, EPILOGUE, false, true, true}, 256},
		{{"kn", "mk", "mn", SIZES(3, 192, 152), DT_BF16, 0, DT_F32, EPILOGUE, false, true, true}, 512},
		{{"nk", "mk", "mn", SIZES(3, 200, 152), DT_BF16, 0, DT_F32, EPILOGUE, false, true, true}, 512},
		{{"bkn", "bmk", "bmn", BATCH(2, 2, 72, 264), DT_BF16, 0, DT_BF16, PLAIN, false, true, false}, 256},
	};
	(void)state;
	for (unsigned n = 0; n < sizeof many / sizeof *many; n++) {
		now = &many[n].product;
		processors = 3;
		CaseRun r = case_try_roles(build_product, now->split, 0);
		processors = 0;
		assert_true(r.strips);
		assert_int_equal(r.threads, many[n].threads);
	}
}

/* Weights of 4 bits by blocks of 384 threads, but for those of 64 columns, of whatever number of rows: the blocks of a cluster with parts of the terms, one
 * with all, and one of more columns if they are all that is read of the long side group by group, by how many strips there are
 * for a processor; where rows let it, with what some groups take read at once. */
static void
weights_come_through_a_ring(void **state)
{
	static const struct {
		Product product;
		int64_t processors;
		unsigned cluster, columns;
		int64_t group;
		unsigned at_once; /* 0: one */
	} of[] = {
		{{"nk", "mk", "mn", SIZES(16, 65, 1088), DT_BF16, DT_I4, DT_F32, WIDENED, false, true, true}, 132, 4, 128, 64, 0},
		{{"nk", "mk", "mn", SIZES(3, 130, 160), DT_F16, DT_U4, DT_F16, WIDENED, false, true, false}, 132, 4, 128, 64, 0},
		{{"nk", "mk", "mn", SIZES(5, 65, 576), DT_BF16, DT_I4, DT_BF16, GROUPS, false, true, true}, 3, 2, 128, 64, 0},
		{{"nk", "mk", "mn", SIZES(16, 140, 544), DT_BF16, DT_U4, DT_F32, LESS, false, true, true}, 3, 0, 128, 32, 0},
		{{"nk", "mk", "mn", SIZES(9, 390, 288), DT_BF16, DT_I4, DT_F32, APART, false, true, false}, 3, 0, 128, 32, 0},
		{{"nk", "mk", "mn", SIZES(16, 65, 512), DT_BF16, DT_I4, DT_F32, WEIGHTS, true, true, false}, 132, 4, 128, 64, 0},
		{{"nk", "mk", "mn", SIZES(9, 390, 288), DT_F16, DT_I4, DT_F32, WIDENED, false, true, false}, 3, 0, 256, 64, 0},
		/* what is computed of them may be no number of what is beyond the end */
		{{"nk", "mk", "mn", SIZES(16, 65, 544), DT_BF16, DT_I4, DT_F32, WEIGHTS, true, true, false}, 132, 0, 64, 64, 0},
		/* more rows than a task has */
		{{"nk", "mk", "mn", SIZES(17, 65, 320), DT_BF16, DT_I4, DT_F32, WIDENED, false, true, true}, 132, 4, 128, 64, 0},
		{{"nk", "mk", "mn", SIZES(70, 65, 288), DT_F16, DT_U4, DT_F32, APART, false, true, true}, 3, 0, 128, 32, 0},
		{{"nk", "mk", "mn", SIZES(40, 390, 160), DT_BF16, DT_U4, DT_BF16, LESS, false, true, false}, 3, 0, 128, 128, 0},
		{{"nk", "mk", "mn", SIZES(33, 260, 256), DT_BF16, DT_I4, DT_F32, WIDENED, false, true, false}, 2, 0, 256, 64, 0},
		{{"nk", "mk", "nm", SIZES(50, 65, 288), DT_BF16, DT_I4, DT_F32, GROUPS, true, true, true}, 132, 4, 128, 32, 0},
		{{"bnk", "bmk", "bmn", BATCH(2, 20, 66, 160), DT_BF16, DT_I4, DT_F32, GROUPS, false, true, true}, 3, 0, 128, 32, 0},
		/* groups at once: 2 of a narrow strip's, 4 or 2 of a wide one's */
		{{"nk", "mk", "mn", SIZES(16, 140, 1024), DT_BF16, DT_U4, DT_F32, LESS, false, true, true}, 3, 0, 128, 32, 2},
		{{"nk", "mk", "mn", SIZES(5, 65, 1536), DT_F16, DT_I4, DT_F16, APART, false, true, false}, 132, 4, 128, 32, 2},
		{{"nk", "mk", "mn", SIZES(33, 390, 512), DT_BF16, DT_U4, DT_F32, LESS, false, true, false}, 3, 0, 256, 32, 4},
		{{"nk", "mk", "mn", SIZES(9, 390, 256), DT_BF16, DT_I4, DT_BF16, GROUPS, false, true, true}, 3, 0, 256, 32, 4},
		{{"nk", "mk", "mn", SIZES(9, 390, 512), DT_BF16, DT_I4, DT_BF16, GROUPS, false, true, true}, 3, 0, 256, 64, 2},
		{{"nk", "mk", "mn", SIZES(9, 130, 512), DT_BF16, DT_I4, DT_BF16, GROUPS, false, true, false}, 3, 0, 128, 64, 0},
	};
	(void)state;
	for (unsigned n = 0; n < sizeof of / sizeof *of; n++) {
		now = &of[n].product;
		processors = of[n].processors;
		group_terms = of[n].group;
		rows = true;
		CaseRun r = case_try_roles(build_product, now->split, 0);
		processors = 0;
		group_terms = 64;
		rows = false;
		unsigned at_once = of[n].at_once ? of[n].at_once : 1;
		if (!r.strips || r.threads != (of[n].columns > 64 ? 384 : 256) || r.cluster != of[n].cluster || r.block_columns != of[n].columns || r.unroll != at_once)
			fail_msg("product %u: strips %d, %u threads, clusters of %u, %u columns, %u groups: %s", n, r.strips, r.threads, r.cluster, r.block_columns, r.unroll, r.remarks);
	}
}

/* Where there are no roles, in fewer threads. */
static void
many_products_without_roles_are_right(void **state)
{
	(void)state;
	for (unsigned n = 0; n < sizeof products / sizeof *products; n += 3) {
		now = &products[n];
		CaseRun r = case_try_warps(build_product, FP_RELAXED, 0, now->split, 0);
		if (r.strips != (now->strips != 0))
			fail_msg("product %u is %staken by strips: %s", n, now->strips ? "not " : "", r.remarks);
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(products_are_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(many_strips_have_two_blocks, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(weights_come_through_a_ring, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(many_products_without_roles_are_right, case_setup, case_teardown),
	};
	case_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
