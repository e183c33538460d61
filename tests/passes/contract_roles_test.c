/* contract_roles_test.c: usage: contract_roles_test [[-]PATTERN]: the tests of such names, or all others. Products of 16-bit
 * factors by roles, run by the tile interpreter and compared with the oracle: few small shapes, since a tile is large. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "letters.h"
#include "passes/schedule/contract/roles_build.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

/* Operands and output by their indices; k is the terms'. */
typedef struct {
	const char *a, *b, *out;
	int64_t size[26]; /* by letter */
	DType in, to;
	enum { PLAIN, EPILOGUE, GELU, OLD, SHORTER, COMPUTED } form; /* COMPUTED: the first factor */
	bool split, otherwise; /* otherwise: it is for other kernels */
} Product;

static const Product *now;
static Letters by;

static FpMode mode;
static int64_t processors; /* 0: as many as usual */
static bool whole;         /* factors are small whole numbers, some with bits for all thirds: sums are exact */
static bool even;          /* they are between 0.5 and 1.5, with bits for all thirds */
static bool odd;           /* some are not finite, some nearly so, some subnormal */

static void
give_whole_numbers(Case *c, TensorId t, const char *index)
{
	DType dtype = (DType)c->g->tensor.at[t].dtype;
	int64_t n = 1, bytes;
	for (const char *p = index; *p; p++)
		n *= now->size[*p - 'a'];
	dtype_bytes(dtype, n, &bytes);
	uint8_t *packed = arena_alloc(c->arena, (size_t)bytes);
	int64_t first = n * 7 % 13; /* whatever there are of others */
	for (int64_t i = 0; i < n; i++) {
		double v = (double)(i * 7 % 13 - 6);
		if (dtype == DT_F32 && whole && n % 2) /* one factor's */
			v = (double)(i * 70001 % 131071 - 65536);
		if (even)
			v = (double)(float)(0.5 + fmod((double)(i + first) * 0.6180339887498949, 1));
		if (odd && i % 97 == first)
			v = (const double[]){HUGE_VAL, -HUGE_VAL, NAN, 0x1.fffffep127, -0x1.fffffep127, 0x1p-149, 0x1.23456p-126}[i / 97 % 7];
		eval_store(dtype, packed, i, (EvalValue){.re = v});
	}
	case_given(c, t, packed);
}

static void
build_product(Case *c)
{
	ExprId e[TG_MAX_RANK];
	c->g->fp = mode;
	c->processors = processors;
	by = (Letters){.out = now->out, .terms = "k", .size = now->size};
	TensorId a = letters_operand(c, &by, now->a, "a", now->in), b = letters_operand(c, &by, now->b, "b", now->in), old = 0;
	if (whole || odd || even) {
		give_whole_numbers(c, a, now->a);
		give_whole_numbers(c, b, now->b);
	}
	unsigned rank = letters_extents(c, &by, now->out, e);
	ExprId left = letters_element(c, &by, a, now->a);
	if (now->form == COMPUTED)
		left = expr_cast(c->g, DT_F32, expr_cast_free(c->g, now->in, BIN(MUL, left, BIN(ADD, left, case_int(c, 0) ? expr_float(c->g, DT_F32, 1) : 0))));
	Node n = case_node(rank, BIN(MUL, left, letters_element(c, &by, b, now->b)));
	ExprId end = letters_extent(c, &by, 'k');
	case_reduce(&n, MON_SUM, case_int(c, 0), now->form == SHORTER ? BIN(SUB, end, case_int(c, 5)) : end);
	ExprId acc = expr_make(c->g, OP_ACC, DT_F32, 0, 0, NULL, 0);
	if (now->form == OLD) {
		old = case_input(c, TENSOR_INOUT, "old", now->to, rank, e);
		acc = BIN(ADD, letters_element(c, &by, old, now->out), acc);
	}
	if (now->form == EPILOGUE) {
		const char *last = now->out + rank - 1;
		TensorId bias = letters_operand(c, &by, last, "bias", now->in), rest = letters_operand(c, &by, now->out, "rest", DT_F32);
		acc = BIN(MUL, BIN(MAX, BIN(ADD, acc, letters_element(c, &by, bias, last)), case_int(c, 0) ? expr_float(c->g, DT_F32, 0) : 0),
		          letters_element(c, &by, rest, now->out));
	}
	if (now->form == GELU) {
		const char *last = now->out + rank - 1;
		TensorId bias = letters_operand(c, &by, last, "bias", DT_F32);
		ExprId x = BIN(ADD, acc, letters_element(c, &by, bias, last)), half = expr_float(c->g, DT_F32, 0.5);
		ExprId erf = expr_unary(c->g, OP_ERF, BIN(MUL, x, expr_float(c->g, DT_F32, (double)0.70710678f)));
		acc = BIN(MUL, BIN(MUL, half, x), BIN(ADD, expr_float(c->g, DT_F32, 1), erf));
	}
	n.finish = expr_cast(c->g, now->to, acc);
	case_result(c, "z", case_add(c, &n, "z", now->to, e), old);
}

static const Product products[] = {
	{"mk", "nk", "mn", {SIZE('m') = 64, SIZE('n') = 64, SIZE('k') = 64}, DT_BF16, DT_F32, PLAIN, false, false},
	{"mk", "nk", "mn", {SIZE('m') = 130, SIZE('n') = 64, SIZE('k') = 136}, DT_BF16, DT_BF16, PLAIN, false, false}, /* 4 tiles a block */
	{"mk", "kn", "mn", {SIZE('m') = 64, SIZE('n') = 260, SIZE('k') = 66}, DT_F16, DT_F32, EPILOGUE, true, false},
	{"km", "kn", "mn", {SIZE('m') = 129, SIZE('n') = 64, SIZE('k') = 65}, DT_BF16, DT_F32, OLD, false, false},
	{"km", "nk", "mn", {SIZE('m') = 65, SIZE('n') = 67, SIZE('k') = 70}, DT_BF16, DT_F32, SHORTER, false, false},
	{"bmk", "nbk", "mbn", {SIZE('b') = 3, SIZE('m') = 66, SIZE('n') = 72, SIZE('k') = 64}, DT_BF16, DT_F32, PLAIN, true, false},
	{"bmk", "bnk", "bmn", {SIZE('b') = 2, SIZE('m') = 66, SIZE('n') = 72, SIZE('k') = 72}, DT_BF16, DT_F32, COMPUTED, false, false},
	/* terms for the parts of blocks: two tiles; steps that they do not divide */
	{"mk", "nk", "mn", {SIZE('m') = 130, SIZE('n') = 68, SIZE('k') = 390}, DT_BF16, DT_F32, EPILOGUE, true, false},
	{"km", "kn", "mn", {SIZE('m') = 65, SIZE('n') = 72, SIZE('k') = 450}, DT_BF16, DT_BF16, PLAIN, false, false},
	{"bmk", "nbk", "mbn", {SIZE('b') = 2, SIZE('m') = 66, SIZE('n') = 72, SIZE('k') = 385}, DT_F16, DT_F32, OLD, false, false},
	/* too few rows, columns or terms */
	{"mk", "nk", "mn", {SIZE('m') = 63, SIZE('n') = 64, SIZE('k') = 64}, DT_BF16, DT_F32, PLAIN, false, true},
	{"mk", "nk", "mn", {SIZE('m') = 64, SIZE('n') = 64, SIZE('k') = 1}, DT_BF16, DT_F32, PLAIN, false, true},
};

enum { FIRST_LONG = 7 }; /* of those with terms for parts */

/* In the tile that the sizes ask for, or in that number less one alone. */
static void
product_is_right(unsigned n, unsigned tile)
{
	now = &products[n];
	mode = n % 2 ? FP_FAST : FP_RELAXED;
	CaseRun r = case_try_roles(build_product, now->split, tile);
	if (!r.roles)
		fail_msg("product %u, tile %u has no roles: %s", n, tile, r.remarks);
}

static void
products_are_right(void **state)
{
	(void)state;
	for (unsigned n = 0; n < sizeof products / sizeof *products; n++)
		product_is_right(n, 0);
}

/* A product in each. */
static void
every_tile_is_right(void **state)
{
	(void)state;
	for (unsigned tile = 1; tile <= roles_tiles(); tile++)
		if (!roles_tile(tile - 1).sums && !roles_tile(tile - 1).thirds) /* contract_siblings_test.c has the former */
			product_is_right(roles_tile(tile - 1).parts ? FIRST_LONG + tile % 3 : tile % 6, tile);
}

/* Each of these products in this tile, by its number less one. */
static void
all_are_right_in(unsigned tile, const Product *all, unsigned n)
{
	mode = FP_FAST;
	for (unsigned k = 0; k < n; k++) {
		now = &all[k];
		CaseRun r = case_try_roles(build_product, now->split, tile);
		if (!r.roles)
			fail_msg("product %u of %s %s, tile %u has no roles: %s", k, now->a, now->b, tile, r.remarks);
	}
}

/* Elements of 16 bits that change lanes by matrices: in several panels, with rows and columns that are not whole ones. */
static void
every_tile_is_right_that_packs(void **state)
{
	static const Product all[] = {
		{"mk", "kn", "mn", {SIZE('m') = 70, SIZE('n') = 200, SIZE('k') = 64}, DT_F16, DT_F16, PLAIN, false, false},
		{"bmk", "bnk", "bmn", {SIZE('b') = 2, SIZE('m') = 129, SIZE('n') = 104, SIZE('k') = 72}, DT_BF16, DT_BF16, PLAIN, true, false},
	};
	(void)state;
	for (unsigned tile = 1; tile <= roles_tiles(); tile++)
		if (!roles_tile(tile - 1).sums && !roles_tile(tile - 1).thirds && !roles_tile(tile - 1).parts && roles_tile(tile - 1).side > 1)
			all_are_right_in(tile, all, sizeof all / sizeof *all);
}

/* Tiles of blocks that have columns in common: several tasks, tiles of rows of an odd number, columns along either axis. */
static void
columns_in_common_are_right(void **state)
{
	static const Product all[] = {
		{"mk", "kn", "mn", {SIZE('m') = 300, SIZE('n') = 200, SIZE('k') = 200}, DT_BF16, DT_BF16, EPILOGUE, true, false},
		{"km", "nk", "mn", {SIZE('m') = 140, SIZE('n') = 72, SIZE('k') = 390}, DT_F16, DT_F32, OLD, false, false},
		{"bmk", "nbk", "mbn", {SIZE('b') = 3, SIZE('m') = 66, SIZE('n') = 264, SIZE('k') = 136}, DT_BF16, DT_F32, PLAIN, true, false},
	};
	(void)state;
	for (unsigned tile = 1; tile <= roles_tiles(); tile++)
		if (roles_tile(tile - 1).joint)
			all_are_right_in(tile, all, sizeof all / sizeof *all);
}

/* Larger ones than the products above fill: of columns that no panel and, turned, no box of 64 divides, and of three groups; several
 * tiles, of which the last begin inside, and sizes that are below one. */
static void
every_tile_is_right_that_is_large(void **state)
{
	static const Product all[] = {
		{"mk", "kn", "mn", {SIZE('m') = 200, SIZE('n') = 260, SIZE('k') = 130}, DT_BF16, DT_BF16, EPILOGUE, true, false},
		{"km", "kn", "mn", {SIZE('m') = 264, SIZE('n') = 100, SIZE('k') = 66}, DT_F16, DT_F32, GELU, false, false},
		{"km", "nk", "mn", {SIZE('m') = 200, SIZE('n') = 204, SIZE('k') = 70}, DT_BF16, DT_F32, OLD, true, false},
		{"bmk", "bkn", "bmn", {SIZE('b') = 2, SIZE('m') = 72, SIZE('n') = 168, SIZE('k') = 72}, DT_F16, DT_F16, PLAIN, true, false},
		{"mk", "nk", "mn", {SIZE('m') = 193, SIZE('n') = 96, SIZE('k') = 320}, DT_BF16, DT_F32, SHORTER, true, false},
	};
	(void)state;
	for (unsigned tile = 1; tile <= roles_tiles(); tile++)
		if (!roles_tile(tile - 1).sums && !roles_tile(tile - 1).thirds && roles_tile(tile - 1).rows > 2 * TIR_MMA_ROWS)
			all_are_right_in(tile, all, sizeof all / sizeof *all);
}

/* Products whose terms are in pieces, from one up to one for each step; the first ones are small. */
static const struct {
	int64_t processors;
	Product of;
} in_pieces[] = {
	{6, {"mk", "kn", "mn", {SIZE('m') = 72, SIZE('n') = 68, SIZE('k') = 450}, DT_F16, DT_F32, OLD, true, false}},
	{17, {"mk", "nk", "mn", {SIZE('m') = 65, SIZE('n') = 64, SIZE('k') = 200}, DT_BF16, DT_F32, PLAIN, false, false}}, /* fewer steps than processors */
	{2, {"bmk", "nbk", "mbn", {SIZE('b') = 7, SIZE('m') = 66, SIZE('n') = 72, SIZE('k') = 130}, DT_F16, DT_F32, PLAIN, false, false}},
	{15, {"mk", "nk", "mn", {SIZE('m') = 72, SIZE('n') = 136, SIZE('k') = 456}, DT_BF16, DT_BF16, GELU, true, false}},
	{20, {"mk", "nk", "mn", {SIZE('m') = 64, SIZE('n') = 64, SIZE('k') = 1200}, DT_BF16, DT_F32, PLAIN, false, false}}, /* several warps join an element */
	{40, {"mk", "nk", "mn", {SIZE('m') = 40, SIZE('n') = 560, SIZE('k') = 300}, DT_BF16, DT_BF16, EPILOGUE, false, false}},
	{19, {"km", "kn", "mn", {SIZE('m') = 130, SIZE('n') = 200, SIZE('k') = 390}, DT_BF16, DT_F32, PLAIN, true, false}},
	{24, {"mk", "nk", "mn", {SIZE('m') = 200, SIZE('n') = 72, SIZE('k') = 650}, DT_BF16, DT_F32, PLAIN, true, false}},
	{41, {"bmk", "nbk", "mbn", {SIZE('b') = 5, SIZE('m') = 66, SIZE('n') = 72, SIZE('k') = 260}, DT_F16, DT_F32, EPILOGUE, true, false}},
	{33, {"mk", "nk", "mn", {SIZE('m') = 65, SIZE('n') = 64, SIZE('k') = 2600}, DT_BF16, DT_F32, PLAIN, true, false}},
};

enum { FEW_PIECES = 5 };

/* Sums of whole numbers have the oracle's bits. Tiles of thirds have the same products, of factors of f32. */
static void
run_in_pieces(unsigned from, unsigned to)
{
	for (unsigned tile = 1; tile <= roles_tiles(); tile++)
		for (unsigned n = from; roles_tile(tile - 1).pieces && n < to; n++) {
			unsigned thirds = roles_tile(tile - 1).thirds;
			Product of = in_pieces[n].of;
			of.in = thirds ? DT_F32 : of.in;
			now = &of;
			mode = thirds == TIR_THIRDS ? FP_RELAXED : FP_FAST;
			processors = in_pieces[n].processors;
			whole = now->form == PLAIN && (!thirds || (thirds == TIR_THIRDS && of.to == DT_F32));
			CaseRun r = case_try_roles(build_product, now->split, tile);
			if (!r.roles || !r.follows)
				fail_msg("product %u, tile %u has no pieces: %s", n, tile, r.remarks);
			if (whole && r.ratio > 0)
				fail_msg("product %u, tile %u is not exact", n, tile);
		}
	processors = 0;
	whole = false;
}

static void
pieces_are_right(void **state)
{
	(void)state;
	run_in_pieces(0, FEW_PIECES);
}

static void
every_tile_is_right_in_pieces(void **state)
{
	(void)state;
	run_in_pieces(FEW_PIECES, sizeof in_pieces / sizeof *in_pieces);
}

/* Factors of f32. */
static const Product of_f32[] = {
	{"mk", "nk", "mn", {SIZE('m') = 65, SIZE('n') = 68, SIZE('k') = 65}, DT_F32, DT_F32, PLAIN, false, false},
	{"mk", "kn", "mn", {SIZE('m') = 131, SIZE('n') = 200, SIZE('k') = 70}, DT_F32, DT_F32, EPILOGUE, true, false},
	{"km", "nk", "mn", {SIZE('m') = 66, SIZE('n') = 67, SIZE('k') = 129}, DT_F32, DT_BF16, PLAIN, false, false},
	{"bkm", "nbk", "mbn", {SIZE('b') = 3, SIZE('m') = 72, SIZE('n') = 72, SIZE('k') = 64}, DT_F32, DT_F32, OLD, true, false},
	{"mk", "nk", "mn", {SIZE('m') = 200, SIZE('n') = 196, SIZE('k') = 131}, DT_F32, DT_F32, PLAIN, true, false},
};

/* In every tile for them, of all thirds or, in fast mode, of the first two. */
static void
thirds_are_right_of(bool exact)
{
	for (unsigned tile = 1; tile <= roles_tiles(); tile++)
		for (unsigned n = 0; roles_tile(tile - 1).thirds && n < sizeof of_f32 / sizeof *of_f32; n++) {
			unsigned thirds = roles_tile(tile - 1).thirds;
			if (roles_tile(tile - 1).pieces && !odd) /* pieces_are_right has the others */
				continue;
			now = &of_f32[n];
			mode = thirds == TIR_THIRDS ? FP_RELAXED : FP_FAST;
			if (now->size['n' - 'a'] % roles_tile(tile - 1).side || (exact && (now->to != DT_F32 || thirds < TIR_THIRDS)))
				continue;
			CaseRun r = case_try_roles(build_product, now->split, tile);
			if (!r.roles)
				fail_msg("product %u, tile %u has no roles: %s", n, tile, r.remarks);
			if (exact && r.ratio > 0)
				fail_msg("product %u, tile %u is not exact", n, tile);
		}
}

static void
thirds_are_right(void **state)
{
	(void)state;
	thirds_are_right_of(false);
}

static void
thirds_of_whole_numbers_are_exact(void **state)
{
	(void)state;
	whole = true;
	thirds_are_right_of(true);
	whole = false;
}

static void
thirds_of_odd_numbers_are_right(void **state)
{
	(void)state;
	odd = true;
	thirds_are_right_of(false);
	odd = false;
}

/* What instructions cut off adds up where all terms have one sign, but not where sums are taken out of them step by step (docs/gpu.md: an
 * H200 was wrong by 2.6 units of S after 128 such terms, by 13 after 4096). Here it is 4.4, and 24 where they are not taken out. */
static void
thirds_of_one_sign_lose_little(void **state)
{
	enum { TERMS = 1024 };
	static const Product of = {"mk", "nk", "mn", {SIZE('m') = 64, SIZE('n') = 64, SIZE('k') = TERMS}, DT_F32, DT_F32, PLAIN, false, false};
	(void)state;
	now = &of;
	even = true;
	for (unsigned tile = 1; tile <= roles_tiles(); tile++) {
		if (roles_tile(tile - 1).thirds != TIR_THIRDS)
			continue;
		mode = FP_RELAXED;
		CaseRun r = case_try_roles(build_product, false, tile);
		if (!r.roles || r.ratio * TERMS > 10)
			fail_msg("tile %u: roles %d, %g units of S", tile, r.roles, r.ratio * TERMS);
	}
	even = false;
}

/* A number is the sum of its thirds, which are bf16 and of its sign. */
static void
numbers_are_their_thirds(void **state)
{
	static const float number[] = {0, -0.0f, 1, 0x1.fffffep0f, -0x1.abcdefp-3f, 0x1p-149f, -0x1.23456p-126f, 0x1.fffffep127f, 0x1.01p100f, 0x1.00fffep-120f};
	(void)state;
	for (unsigned n = 0; n < sizeof number / sizeof *number; n++) {
		double sum = 0;
		for (unsigned third = 0; third < TIR_THIRDS; third++) {
			uint8_t packed[4];
			float part = tir_third(number[n], third);
			eval_store(DT_BF16, packed, 0, (EvalValue){.re = (double)part});
			assert_true(eval_load(DT_BF16, packed, 0).re == (double)part);
			assert_true(part == 0 || signbit(part) == signbit(number[n]));
			sum += ldexp((double)part, -(int)(TIR_THIRD_BITS * third));
		}
		assert_true(sum == (double)number[n]);
	}
	assert_true(isnan(tir_third(NAN, 0)) && isnan(tir_third(INFINITY, 1)));
}

static void
others_have_none(void **state)
{
	static const Product no = {"mk", "nk", "mn", {SIZE('m') = 64, SIZE('n') = 64, SIZE('k') = 64}, DT_F32, DT_F32, PLAIN, false, true};
	(void)state;
	now = &no;
	mode = FP_STRICT;
	assert_false(case_try_roles(build_product, false, 0).roles);
	now = &products[0];
	mode = FP_STRICT;
	assert_false(case_try_roles(build_product, false, 0).roles);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(products_are_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(every_tile_is_right_that_packs, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(every_tile_is_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(columns_in_common_are_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(every_tile_is_right_that_is_large, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(pieces_are_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(every_tile_is_right_in_pieces, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(thirds_are_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(thirds_of_whole_numbers_are_exact, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(thirds_of_odd_numbers_are_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(thirds_of_one_sign_lose_little, case_setup, case_teardown),
		cmocka_unit_test(numbers_are_their_thirds),
		cmocka_unit_test_setup_teardown(others_have_none, case_setup, case_teardown),
	};
	case_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
