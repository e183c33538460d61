/* contract_pairs_test.c: folds of terms that are made of a row's and a column's value, by tiles of a GPU's threads, run by the tile
 * interpreter, which finds races, and compared with the oracle. */
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

/* What a term is made of: the square of the difference, its size, the sum, that over the sizes, a function of it. */
typedef enum { SQUARE, APART, TOGETHER, SHARE, CURVE, SCALED } Form;

typedef struct {
	const char *a, *b, *out, *terms;
	int64_t size[26]; /* by letter */
	DType in, to;
	Monoid monoid;
	Form form;
	unsigned least, tile, group; /* PassOptions.least_tile; the kernel that takes it */
	bool split, finish;          /* tasks go to several blocks; what is folded is not the output yet */
} Pair;

static const Pair *now;
static Letters by;

static ExprId
size_of(Case *c, ExprId e)
{
	return expr_make(c->g, OP_ABS, (DType)expr_get(c->g, e)->dtype, 0, 0, &e, 1);
}

static ExprId
term_of(Case *c, ExprId x, ExprId z)
{
	DType t = (DType)expr_get(c->g, x)->dtype;
	ExprId apart = BIN(SUB, x, z);
	switch (now->form) {
	case SQUARE: return BIN(MUL, apart, apart);
	case APART: return size_of(c, apart);
	case TOGETHER: return BIN(ADD, x, z);
	case SHARE: return BIN(FDIV, size_of(c, apart), BIN(ADD, BIN(ADD, size_of(c, x), size_of(c, z)), expr_float(c->g, t, 1)));
	case CURVE: {
		ExprId of = BIN(MUL, apart, expr_float(c->g, t, 0.25));
		return expr_make(c->g, OP_EXP, t, 0, 0, &of, 1);
	}
	case SCALED: { /* by an index: a value is more than an element */
		ExprId row = BIN(MUL, x, expr_cast(c->g, t, letters_index(c, &by, now->a[0])));
		return BIN(MAX, row, z);
	}
	}
	return 0;
}

static void
build_pair(Case *c)
{
	ExprId e[TG_MAX_RANK];
	by = (Letters){.out = now->out, .terms = now->terms, .size = now->size};
	TensorId a = letters_operand(c, &by, now->a, "a", now->in), b = letters_operand(c, &by, now->b, "b", now->in);
	unsigned rank = letters_extents(c, &by, now->out, e);
	Node n = case_node(rank, term_of(c, letters_element(c, &by, a, now->a), letters_element(c, &by, b, now->b)));
	for (const char *k = now->terms; *k; k++)
		case_reduce(&n, now->monoid, case_int(c, 0), letters_extent(c, &by, *k));
	DType type = dtype_info[now->in].arith;
	ExprId acc = expr_make(c->g, OP_ACC, type, 0, 0, NULL, 0);
	if (now->finish) {
		TensorId rest = letters_operand(c, &by, now->out, "rest", now->in);
		acc = BIN(ADD, acc, letters_element(c, &by, rest, now->out));
	}
	n.finish = expr_cast(c->g, now->to, acc);
	case_result(c, "z", case_add(c, &n, "z", now->to, e), 0);
}

static const Pair pairs[] = {
	/* what a launch takes */
	{"mk", "nk", "mn", "k", SIZES(64, 64, 32), DT_F32, DT_F32, MON_SUM, SQUARE, 0, 64, 1, false, false},
	{"mk", "nk", "mn", "k", SIZES(31, 64, 32), DT_F32, DT_F32, MON_SUM, SQUARE, 0, 0, 0, false, false},
	{"mk", "nk", "mn", "k", SIZES(64, 64, 15), DT_F32, DT_F32, MON_SUM, SQUARE, 0, 0, 0, false, false},
	/* each way to lie, in groups and not; one panel, full ones alone, a part of one before them */
	{"mk", "nk", "mn", "k", SIZES(132, 136, 20), DT_F32, DT_F32, MON_SUM, SQUARE, 1, 128, 4, true, false},
	{"mk", "nk", "mn", "k", SIZES(20, 24, 8), DT_F32, DT_F32, MON_SUM, SQUARE, 1, 128, 4, false, true},
	{"mk", "kn", "mn", "k", SIZES(28, 24, 16), DT_F32, DT_F32, MON_MIN, TOGETHER, 1, 128, 4, true, false},
	{"km", "kn", "mn", "k", SIZES(100, 8, 9), DT_F32, DT_F32, MON_MAX, TOGETHER, 1, 128, 4, false, true},
	{"km", "nk", "mn", "k", SIZES(5, 131, 23), DT_F32, DT_F32, MON_SUM, APART, 1, 128, 1, true, false},
	{"km", "nk", "nm", "k", SIZES(70, 33, 17), DT_F32, DT_F32, MON_MAX, APART, 1, 128, 1, true, true},
	/* batches, several rows' and contracted indices */
	{"bmk", "bnk", "bmn", "k", {SIZE('b') = 3, SIZE('m') = 36, SIZE('n') = 20, SIZE('k') = 13}, DT_F32, DT_BF16, MON_SUM, SQUARE, 1, 128, 1, true, true},
	{"amk", "nk", "amn", "k", {SIZE('a') = 3, SIZE('m') = 7, SIZE('n') = 40, SIZE('k') = 16}, DT_F32, DT_F32, MON_SUM, APART, 1, 128, 4, false, false},
	{"mjk", "njk", "mn", "jk", {SIZE('m') = 20, SIZE('n') = 12, SIZE('k') = 4, SIZE('j') = 5}, DT_F32, DT_F32, MON_MIN, APART, 1, 128, 4, true, false},
	/* terms that are a loop, of what is read; values that are more; other types */
	{"mk", "nk", "mn", "k", SIZES(33, 40, 20), DT_F32, DT_F32, MON_SUM, SHARE, 1, 128, 4, true, false},
	{"mk", "nk", "mn", "k", SIZES(9, 34, 19), DT_F32, DT_F32, MON_SUM, SHARE, 1, 128, 1, false, true},
	{"mk", "nk", "mn", "k", SIZES(17, 20, 12), DT_F32, DT_F32, MON_SUM, CURVE, 1, 128, 4, false, false},
	{"mk", "nk", "mn", "k", SIZES(20, 24, 28), DT_F32, DT_F32, MON_SUM, SCALED, 1, 128, 4, true, false},
	{"mk", "nk", "mn", "k", SIZES(40, 44, 24), DT_BF16, DT_F32, MON_SUM, SQUARE, 1, 128, 4, true, true},
	{"mk", "kn", "mn", "k", SIZES(33, 20, 11), DT_I8, DT_I32, MON_MAX, TOGETHER, 1, 128, 1, false, false},
	{"mk", "kn", "mn", "k", SIZES(12, 17, 10), DT_I32, DT_I32, MON_PROD, TOGETHER, 1, 128, 1, false, false},
	{"mk", "nk", "mn", "k", SIZES(65, 17, 11), DT_F64, DT_F64, MON_SUM, SQUARE, 1, 64, 1, true, false},
};

static void
run_pair(const Pair *p, FpMode mode)
{
	now = p;
	CaseRun r = case_try_tiles(build_pair, mode, p->least, p->split, 0);
	if (r.tile != p->tile || r.group != p->group)
		fail_msg("pair %ld is taken by tiles of %u rows and groups of %u: %s", (long)(p - pairs), r.tile, r.group, r.remarks);
}

static void
pairs_are_right(void **state)
{
	static const FpMode modes[] = {FP_STRICT, FP_RELAXED, FP_FAST};
	(void)state;
	for (unsigned n = 0; n < sizeof pairs / sizeof *pairs; n++) {
		run_pair(&pairs[n], modes[n % 3]);
		run_pair(&pairs[n], modes[(n + 1) % 3]);
	}
}

/* In each tile that has them, none of those for products. */
static void
tiles_of_pairs_are_right(void **state)
{
	static const Pair way = {"mk", "nk", "mn", "k", SIZES(132, 136, 28), DT_F32, DT_F32, MON_SUM, SQUARE, 1, 1, 4, true, true};
	(void)state;
	now = &way;
	for (unsigned tile = 1; tile <= CONTRACT_THREADS_PLANS; tile++)
		assert_int_equal(case_try_tiles(build_pair, FP_RELAXED, 1, true, tile).tile > 0, !threads_tile(tile - 1).products);
}

/* Strict sums are the same bits whichever kernel computes them. */
static void
kernels_of_pairs_agree(void **state)
{
	static const Pair same[] = {
		{"mk", "nk", "mn", "k", SIZES(66, 72, 44), DT_F32, DT_F32, MON_SUM, SQUARE, 1, 128, 4, false, false},
		{"mk", "nk", "mn", "k", SIZES(66, 72, 44), DT_F32, DT_F32, MON_SUM, SQUARE, 0, 64, 1, false, false},
		{"mk", "nk", "mn", "k", SIZES(66, 72, 44), DT_F32, DT_F32, MON_SUM, SQUARE, 1000, 0, 0, false, false},
	};
	const void *first = NULL;
	(void)state;
	for (unsigned n = 0; n < sizeof same / sizeof *same; n++) {
		now = &same[n];
		CaseRun r = case_try_tiles(build_pair, FP_STRICT, now->least, false, 0);
		assert_int_equal(r.tile, now->tile);
		if (first)
			assert_memory_equal(first, r.first_result, 66 * 72 * sizeof(float));
		first = r.first_result;
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pairs_are_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(tiles_of_pairs_are_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(kernels_of_pairs_agree, case_setup, case_teardown),
	};
	case_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
