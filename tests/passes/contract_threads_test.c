/* contract_threads_test.c: products by tiles of a GPU's threads, run by the tile interpreter, which finds races, and compared
 * with the oracle. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "letters.h"
#include "passes/schedule/contract/threads.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

typedef enum { PLAIN, EPILOGUE, OLD, RANGE, SCALED, LAZY, QUOTIENT } Form;

/* Operands and output by their indices; those that the output has not are the terms'. */
typedef struct {
	const char *a, *b, *out, *terms;
	int64_t size[26]; /* by letter */
	DType in, to;
	Form form;
	unsigned least, tile, group; /* PassOptions.least_tile; the kernel that takes it */
	unsigned how; /* SPLIT, ABSENT */
} Product;

/* Tasks go to several blocks; some terms are absent, of either factor, and some of b's elements infinite; but in strict mode
 * the tile has slices. */
enum { SPLIT = 1, ABSENT = 2, SLICED = 4 };

static const Product *now;
static Letters by;

static DType
arith(DType t)
{
	return dtype_info[t].arith;
}

/* A factor that is more than an element. */
static ExprId
factor(Case *c, const char *letters, TensorId t, const char *name)
{
	ExprId x = (now->how & ABSENT) && letters == now->a ? letters_moved(c, &by, t, letters, 'm') : letters_element(c, &by, t, letters);
	DType type = arith(now->in);
	if (now->form == SCALED) { /* by what is the same for all terms, and by an index */
		TensorId scale = letters_operand(c, &by, (char[]){letters[0], 0}, name, now->in);
		return BIN(ADD, BIN(MUL, x, letters_element(c, &by, scale, (char[]){letters[0], 0})), expr_cast(c->g, type, letters_index(c, &by, letters[1])));
	}
	if (now->form == LAZY) { /* read only where its index is even: the others' are not there */
		ExprId k = letters_index(c, &by, letters[1]), even = BIN(EQ, BIN(IMOD, k, case_int(c, 2)), case_int(c, 0));
		return expr_select(c->g, even, x, dtype_is_float(type) ? expr_float(c->g, type, 0.5) : expr_int(c->g, type, 3));
	}
	return x;
}

static void
reduce(Case *c, Node *n)
{
	for (const char *k = now->terms; *k; k++) {
		ExprId end = letters_extent(c, &by, *k), lo = case_int(c, now->form == RANGE ? 3 : 0);
		case_reduce(n, MON_SUM, lo, now->form == RANGE ? BIN(SUB, end, case_int(c, 2)) : end);
	}
}

/* Asks for some terms of each factor. */
static void
leave_some_out(Case *c, Node *n, TensorId b)
{
	ExprId column = BIN(ADD, letters_index(c, &by, 'n'), letters_index(c, &by, now->terms[0]));
	n->guard = BIN(AND, letters_inside(c, &by, 'm'), BIN(NE, BIN(IMOD, column, case_int(c, 3)), case_int(c, 0)));
	if (dtype_is_float(now->in) && now->form != QUOTIENT)
		case_given(c, b, letters_infinite(c, &by, now->b, now->in));
}

static void
build_product(Case *c)
{
	ExprId e[TG_MAX_RANK];
	DType type = arith(now->in);
	by = (Letters){.out = now->out, .terms = now->terms, .size = now->size};
	TensorId a = letters_operand(c, &by, now->a, "a", now->in), b = letters_operand(c, &by, now->b, "b", now->in), old = 0;
	unsigned rank = letters_extents(c, &by, now->out, e);
	Node n = case_node(rank, BIN(MUL, factor(c, now->a, a, "p"), factor(c, now->b, b, "q")));
	reduce(c, &n);
	if (now->how & ABSENT)
		leave_some_out(c, &n, b);
	ExprId acc = expr_make(c->g, OP_ACC, type, 0, 0, NULL, 0);
	if (now->form == OLD) {
		old = case_input(c, TENSOR_INOUT, "old", now->to, rank, e);
		acc = BIN(ADD, letters_element(c, &by, old, now->out), acc);
	}
	if (now->form == EPILOGUE) {
		const char *last = now->out + rank - 1;
		TensorId bias = letters_operand(c, &by, last, "bias", now->in), rest = letters_operand(c, &by, now->out, "rest", now->in);
		acc = BIN(MUL, BIN(ADD, acc, letters_element(c, &by, bias, last)), letters_element(c, &by, rest, now->out));
	}
	if (now->form == QUOTIENT)
		acc = BIN(FDIV, expr_float(c->g, type, 1), acc);
	n.finish = expr_cast(c->g, now->to, acc);
	case_result(c, "z", case_add(c, &n, "z", now->to, e), old);
}

static const Product products[] = {
	/* what a launch takes: small tiles, as there are few */
	{"mk", "kn", "mn", "k", SIZES(64, 64, 32), DT_F32, DT_F32, PLAIN, 0, 64, 1, SLICED},
	{"mk", "kn", "mn", "k", SIZES(64, 64, 28), DT_F32, DT_F32, PLAIN, 0, 64, 1, 0},
	{"bmk", "bnk", "bmn", "k", {SIZE('b') = 3, SIZE('m') = 36, SIZE('n') = 68, SIZE('k') = 132}, DT_F32, DT_BF16, EPILOGUE, 0, 64, 1, SLICED},
	{"mk", "nk", "mn", "k", SIZES(70, 33, 17), DT_F32, DT_F32, EPILOGUE, 0, 64, 1, SPLIT},
	{"mk", "kn", "mn", "k", SIZES(31, 64, 32), DT_F32, DT_F32, PLAIN, 0, 0, 0, 0},
	{"mk", "kn", "mn", "k", SIZES(64, 64, 15), DT_F32, DT_F32, PLAIN, 0, 0, 0, 0},
	{"mk", "kn", "mn", "k", SIZES(64, 64, 0), DT_F32, DT_F32, PLAIN, 0, 0, 0, 0},
	/* each way to lie, in groups and not */
	{"mk", "kn", "mn", "k", SIZES(132, 136, 20), DT_F32, DT_F32, PLAIN, 1, 128, 4, SPLIT},
	{"mk", "nk", "mn", "k", SIZES(127, 129, 36), DT_F32, DT_F32, PLAIN, 1, 128, 4, 0},
	{"km", "kn", "mn", "k", SIZES(128, 4, 13), DT_F32, DT_F32, EPILOGUE, 1, 128, 4, 0},
	{"km", "nk", "mn", "k", SIZES(100, 7, 8), DT_F32, DT_F32, PLAIN, 1, 128, 4, 0},
	{"mk", "kn", "mn", "k", SIZES(129, 130, 17), DT_F32, DT_F32, OLD, 1, 128, 1, SPLIT},
	{"mk", "nk", "mn", "k", SIZES(1, 127, 9), DT_F32, DT_F32, PLAIN, 1, 128, 1, 0},
	{"km", "kn", "mn", "k", SIZES(131, 1, 8), DT_F32, DT_F32, PLAIN, 1, 128, 1, 0},
	{"km", "nk", "mn", "k", SIZES(5, 3, 10), DT_F32, DT_F32, PLAIN, 1, 128, 1, 0},
	/* batches, several rows' and contracted indices, ranges that do not begin at 0 */
	{"bmk", "nbk", "mbn", "k", {SIZE('b') = 3, SIZE('m') = 5, SIZE('n') = 9, SIZE('k') = 12}, DT_F32, DT_F32, PLAIN, 1, 128, 4, SPLIT},
	{"bmk", "jkn", "bmnj", "jk", {SIZE('b') = 3, SIZE('m') = 7, SIZE('n') = 9, SIZE('k') = 6, SIZE('j') = 3}, DT_F32, DT_F32, PLAIN, 1, 128, 1, 0},
	{"amk", "nk", "amn", "k", {SIZE('a') = 3, SIZE('m') = 47, SIZE('n') = 66, SIZE('k') = 16}, DT_F32, DT_F32, PLAIN, 1, 128, 4, SPLIT},
	{"mjk", "jkn", "mn", "jk", {SIZE('m') = 20, SIZE('n') = 12, SIZE('k') = 4, SIZE('j') = 5}, DT_F32, DT_F32, PLAIN, 1, 128, 4, 0},
	{"mk", "nk", "mn", "k", SIZES(20, 24, 25), DT_F32, DT_F32, RANGE, 1, 128, 1, 0},
	{"mk", "kn", "mn", "k", SIZES(20, 24, 25), DT_F32, DT_F32, RANGE, 1, 128, 4, 0},
	/* factors that are more than elements, and other types */
	{"mk", "nk", "mn", "k", SIZES(20, 24, 28), DT_F32, DT_F32, SCALED, 1, 128, 4, 0},
	{"km", "kn", "mn", "k", SIZES(20, 24, 27), DT_F32, DT_F32, SCALED, 1, 128, 4, 0},
	{"mk", "nk", "mn", "k", SIZES(20, 24, 27), DT_F32, DT_F32, LAZY, 1, 128, 1, 0},
	{"mk", "kn", "mn", "k", SIZES(40, 44, 20), DT_BF16, DT_BF16, EPILOGUE, 1, 128, 4, 0},
	{"km", "nk", "mn", "k", SIZES(32, 20, 12), DT_F16, DT_F32, PLAIN, 1, 128, 4, 0},
	{"mk", "kn", "mn", "k", SIZES(33, 17, 11), DT_I8, DT_I32, PLAIN, 1, 128, 1, 0},
	{"mk", "kn", "mn", "k", SIZES(33, 20, 12), DT_I32, DT_I32, LAZY, 1, 128, 1, 0},
	{"mk", "kn", "mn", "k", SIZES(65, 17, 11), DT_F64, DT_F64, EPILOGUE, 1, 64, 1, SPLIT},
	{"mk", "nk", "mn", "k", SIZES(66, 64, 12), DT_I64, DT_I64, PLAIN, 1, 64, 1, 0},
	/* terms that may be absent: factors are read one by one */
	{"mk", "kn", "mn", "k", SIZES(20, 24, 28), DT_F32, DT_F32, PLAIN, 1, 128, 1, SPLIT | ABSENT},
	{"km", "nk", "mn", "k", SIZES(70, 40, 80), DT_F32, DT_F32, EPILOGUE, 0, 64, 1, ABSENT},
	{"mk", "nk", "mn", "k", SIZES(20, 24, 27), DT_F32, DT_F32, SCALED, 1, 128, 1, ABSENT},
	{"mjk", "njk", "mn", "jk", {SIZE('m') = 20, SIZE('n') = 12, SIZE('k') = 4, SIZE('j') = 17}, DT_BF16, DT_BF16, PLAIN, 1, 128, 1, ABSENT},
	{"bmk", "bkn", "bmn", "k", {SIZE('b') = 2, SIZE('m') = 33, SIZE('n') = 9, SIZE('k') = 20}, DT_F32, DT_F32, OLD, 1, 128, 1, SPLIT | ABSENT},
	{"mk", "kn", "mn", "k", SIZES(33, 17, 21), DT_I32, DT_I32, LAZY, 1, 128, 1, ABSENT},
	{"mk", "kn", "mn", "k", SIZES(65, 17, 23), DT_F64, DT_F64, PLAIN, 1, 64, 1, ABSENT},
};

static const FpMode modes[] = {FP_STRICT, FP_RELAXED, FP_FAST};

static void
run_product(unsigned n, FpMode mode)
{
	now = &products[n];
	CaseRun r = case_try_tiles(build_product, mode, now->least, now->how & SPLIT, 0);
	bool sliced = (now->how & SLICED) && mode != FP_STRICT;
	if (r.tile != (sliced ? 32 : now->tile) || r.group != (sliced ? 4 : now->group))
		fail_msg("product %u is taken by tiles of %u rows and groups of %u: %s", n, r.tile, r.group, r.remarks);
}

static void
products_are_right(void **state)
{
	(void)state;
	for (unsigned n = 0; n < sizeof products / sizeof *products; n++) {
		run_product(n, modes[n % 3]);
		run_product(n, modes[(n + 1) % 3]);
	}
}

/* A product in each way to lie, in each tile: some of either side, and an end of each; several panels, and the first is not
 * full, of each block of a cluster in another way. In strict mode sums have one slice. */
static void
many_tiles_are_right(void **state)
{
	static const Product ways[] = {
		{"mk", "kn", "mn", "k", SIZES(132, 136, 520), DT_F32, DT_F32, PLAIN, 1, 1, 4, SPLIT},
		{"mk", "nk", "mn", "k", SIZES(129, 132, 524), DT_F32, DT_F32, EPILOGUE, 1, 1, 4, 0},
		{"km", "kn", "mn", "k", SIZES(36, 68, 513), DT_F32, DT_F32, OLD, 1, 1, 4, SPLIT},
		{"km", "nk", "mn", "k", SIZES(68, 36, 572), DT_BF16, DT_F32, PLAIN, 1, 1, 4, 0},
		{"bmjk", "jkn", "bmn", "jk", {SIZE('b') = 2, SIZE('m') = 34, SIZE('n') = 36, SIZE('k') = 60, SIZE('j') = 9}, DT_F32, DT_F32, SCALED, 1, 1, 4, SPLIT},
	};
	static const Product strict = {"mk", "kn", "mn", "k", SIZES(64, 64, 512), DT_F32, DT_F32, PLAIN, 1, 1, 4, 0};
	(void)state;
	for (unsigned tile = 1; tile <= CONTRACT_THREADS_PLANS; tile++)
		for (unsigned way = 0; way < sizeof ways / sizeof *ways && !threads_tile(tile - 1).pairs; way++) {
			now = &ways[way];
			CaseRun r = case_try_tiles(build_product, FP_RELAXED, 1, now->how & SPLIT, tile);
			if (!r.tile)
				fail_msg("tile %u does not take product %u: %s", tile, way, r.remarks);
		}
	now = &strict;
	for (unsigned tile = 1; tile <= CONTRACT_THREADS_PLANS; tile++) {
		bool none = threads_tile(tile - 1).slices > 1 || threads_tile(tile - 1).pairs;
		assert_int_equal(case_try_tiles(build_product, FP_STRICT, 1, false, tile).tile == 0, none);
	}
}

/* --- any products --- */

static Product
random_product(uint64_t *rng)
{
	static const struct {
		const char *a, *b, *out, *terms;
	} ways[] = {{"mk", "kn", "mn", "k"}, {"km", "kn", "mn", "k"}, {"mk", "nk", "mn", "k"}, {"km", "nk", "nm", "k"},
	            {"bmk", "bkn", "bmn", "k"}, {"mbk", "nk", "bmn", "k"}, {"mjk", "njk", "mn", "jk"}, {"jmk", "nkj", "nm", "jk"}};
	static const DType types[][2] = {{DT_F32, DT_F32}, {DT_F32, DT_BF16}, {DT_BF16, DT_F32}, {DT_F16, DT_F16}, {DT_F64, DT_F64},
	                                 {DT_I32, DT_I32}, {DT_U8, DT_I32}, {DT_F8E4M3, DT_F32}};
	static const Form forms[] = {PLAIN, PLAIN, EPILOGUE, OLD, RANGE, SCALED, LAZY};
	unsigned way = case_below(rng, sizeof ways / sizeof *ways), type = case_below(rng, sizeof types / sizeof *types);
	Product p = {.a = ways[way].a, .b = ways[way].b, .out = ways[way].out, .terms = ways[way].terms, .in = types[type][0],
	             .to = types[type][1], .form = forms[case_below(rng, sizeof forms / sizeof *forms)], .least = 1, .how = case_below(rng, 2)};
	if (case_below(rng, 3) == 0)
		p.how |= ABSENT;
	uint32_t multiple = case_below(rng, 2) ? 4 : 1, most = case_below(rng, 4) ? 40 : 160;
	p.size['m' - 'a'] = (1 + case_below(rng, most / multiple)) * multiple;
	p.size['n' - 'a'] = (1 + case_below(rng, 40 / multiple)) * multiple;
	p.size['k' - 'a'] = 13 + case_below(rng, 20);
	p.size['b' - 'a'] = 1 + case_below(rng, 3);
	p.size['j' - 'a'] = 6 + case_below(rng, 3);
	return p;
}

static void
random_products_are_right(void **state)
{
	enum { COUNT = 40 };
	uint64_t rng = 7;
	unsigned tiled = 0;
	(void)state;
	for (unsigned n = 0; n < COUNT; n++) {
		Product p = random_product(&rng);
		now = &p;
		CaseRun r = case_try_tiles(build_product, modes[n % 3], now->least, now->how & SPLIT, 0);
		tiled += r.tile > 0;
	}
	assert_int_equal(tiled, COUNT);
}

/* Strict sums are the same bits whichever kernel computes them. */
static void
kernels_agree(void **state)
{
	static const Product same[] = {
		{"mk", "nk", "mn", "k", SIZES(66, 72, 44), DT_F32, DT_F32, PLAIN, 1, 128, 4, 0},
		{"mk", "nk", "mn", "k", SIZES(66, 72, 44), DT_F32, DT_F32, PLAIN, 0, 64, 1, 0},
		{"mk", "nk", "mn", "k", SIZES(66, 72, 44), DT_F32, DT_F32, PLAIN, 1000, 0, 0, 0},
	};
	const void *first = NULL;
	(void)state;
	for (unsigned n = 0; n < sizeof same / sizeof *same; n++) {
		now = &same[n];
		CaseRun r = case_try_tiles(build_product, FP_STRICT, now->least, false, 0);
		assert_int_equal(r.tile, now->tile);
		if (first)
			assert_memory_equal(first, r.first_result, 66 * 72 * sizeof(float));
		first = r.first_result;
	}
}

/* A sum of -0 alone is -0: terms beyond the last one, and absent ones, add nothing. */
static float zeros[5 * 9], ones[9 * 6];

static void
build_zeros(Case *c)
{
	build_product(c);
	case_given(c, c->g->param.at[0], zeros);
	case_given(c, c->g->param.at[1], ones);
}

static void
zeros_keep_their_sign(void **state)
{
	static const Product negative[] = {{"mk", "kn", "mn", "k", SIZES(5, 6, 9), DT_F32, DT_F32, QUOTIENT, 1, 128, 1, 0},
	                                   {"mk", "kn", "mn", "k", SIZES(5, 6, 9), DT_F32, DT_F32, QUOTIENT, 1, 128, 1, ABSENT}};
	(void)state;
	for (unsigned n = 0; n < sizeof zeros / sizeof *zeros; n++)
		zeros[n] = -0.0f;
	for (unsigned n = 0; n < sizeof ones / sizeof *ones; n++)
		ones[n] = 1;
	for (unsigned k = 0; k < 2; k++) {
		now = &negative[k];
		CaseRun r = case_try_tiles(build_zeros, FP_STRICT, now->least, false, 0);
		assert_int_equal(r.tile, 128);
		for (unsigned n = 0; n < 5 * 6; n++)
			assert_true(((const float *)r.first_result)[n] == -INFINITY);
	}
}

/* What a condition of the terms keeps inside of its tensor, for either factor; and what the rows' one keeps inside of the columns',
 * of which their panels know nothing. */
typedef enum { COLUMNS_ASK, BOTH_ASK, ROWS_KNOW } Asks;
static Asks asks;

static void
build_beyond(Case *c)
{
	static const int64_t size[26] = {SIZE('m') = 9, SIZE('n') = 12, SIZE('k') = 22, SIZE('p') = 17, SIZE('q') = 11};
	ExprId e[TG_MAX_RANK];
	by = (Letters){.out = "mn", .terms = "k", .size = size};
	TensorId a = letters_operand(c, &by, asks == BOTH_ASK ? "mq" : "mk", "a", DT_F32), b = letters_operand(c, &by, "pn", "b", DT_F32);
	ExprId k = letters_index(c, &by, 'k'), m = letters_index(c, &by, 'm');
	ExprId twice = BIN(SUB, BIN(MUL, k, case_int(c, 2)), case_int(c, 1)), less = BIN(SUB, k, case_int(c, 6));
	ExprId row = asks == BOTH_ASK ? less : k, term = asks == ROWS_KNOW ? k : twice, last = asks == ROWS_KNOW ? BIN(ADD, k, m) : twice;
	ExprId read_a = expr_read(c->g, a, (ExprId[]){m, row}, 2, 0), read_b = expr_read(c->g, b, (ExprId[]){term, letters_index(c, &by, 'n')}, 2, 0);
	Node n = case_node(letters_extents(c, &by, "mn", e), BIN(MUL, read_a, read_b));
	case_reduce(&n, MON_SUM, case_int(c, 0), letters_extent(c, &by, 'k'));
	n.guard = BIN(AND, BIN(LE, case_int(c, 0), term), BIN(LT, last, letters_extent(c, &by, 'p')));
	if (asks == BOTH_ASK)
		n.guard = BIN(AND, n.guard, BIN(AND, BIN(LE, case_int(c, 0), less), BIN(LT, less, letters_extent(c, &by, 'q'))));
	case_result(c, "z", case_add(c, &n, "z", DT_F32, e), 0);
}

static void
absent_elements_are_not_read(void **state)
{
	(void)state;
	for (asks = COLUMNS_ASK; asks <= ROWS_KNOW; asks++) {
		CaseRun r = case_try_tiles(build_beyond, FP_RELAXED, 1, false, 0);
		assert_int_equal(r.tile > 0, asks != ROWS_KNOW);
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(absent_elements_are_not_read, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(products_are_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(many_tiles_are_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(random_products_are_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(kernels_agree, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(zeros_keep_their_sign, case_setup, case_teardown),
	};
	case_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
