/* contract_warps_test.c: usage: contract_warps_test [[-]PATTERN]: the tests of such names, or all others. Products by tiles of a GPU's warps (schedule/contract/warps.c), run by the tile interpreter, which finds
 * races and copies that nobody waits for, and compared with the oracle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "letters.h"
#include "passes/schedule/contract/warps.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

/* BACKWARDS: rows of a are met from the last to the first. RANGE: terms from 8 on. SHORT: but for the last 8. UNEVEN: from 3 on.
 * COMPUTED: a is narrowed from what is computed. LAZY: a is read for even rows alone. WHOLE: of whole numbers. */
typedef enum { PLAIN, EPILOGUE, OLD, BACKWARDS, RANGE, SHORT, UNEVEN, COMPUTED, LAZY, WHOLE } Form;

/* Operands and output by their indices; those that the output has not are the terms'. */
typedef struct {
	const char *a, *b, *out, *terms;
	int64_t size[26]; /* by letter */
	DType in, to;
	Form form;
	unsigned least, tile, side; /* PassOptions.least_tile; rows of the tile that takes it, and elements that a lane finishes at once */
	unsigned how; /* SPLIT, ABSENT */
} Product;

/* Tasks go to several blocks; some terms are absent, of either factor, and some of b's elements infinite. */
enum { SPLIT = 1, ABSENT = 2 };

static const Product *now;
static Letters by;

/* Small whole numbers, whose sums are exact in any order. */
static const void *
whole_numbers(Case *c, const char *letters)
{
	int64_t count = 1;
	for (const char *l = letters; *l; l++)
		count *= now->size[*l - 'a'];
	void *x = arena_alloc(c->arena, (size_t)count * (dtype_info[now->in].bits / 8));
	for (int64_t i = 0; i < count; i++)
		eval_store(now->in, x, i, (EvalValue){.re = (double)((uint32_t)(i + *letters) * 2654435761u >> 29) - 3});
	return x;
}

static TensorId
operand(Case *c, const char *letters, const char *name, DType t)
{
	TensorId x = letters_operand(c, &by, letters, name, t);
	if (now->form == WHOLE)
		case_given(c, x, whole_numbers(c, letters));
	return x;
}

/* A factor's element at the last of its first indices for the first one, and so on. */
static ExprId
backwards(Case *c, TensorId a)
{
	ExprId sub[TG_MAX_RANK];
	unsigned n = 0;
	for (; now->a[n]; n++)
		sub[n] = letters_index(c, &by, now->a[n]);
	sub[0] = BIN(SUB, BIN(SUB, letters_extent(c, &by, now->a[0]), case_int(c, 1)), sub[0]);
	return expr_cast(c->g, DT_F32, expr_read(c->g, a, sub, n, 0));
}

static ExprId
row_factor(Case *c)
{
	TensorId a = operand(c, now->a, "a", now->in);
	ExprId x = now->form == BACKWARDS ? backwards(c, a) : now->how & ABSENT ? letters_moved(c, &by, a, now->a, 'm') : letters_element(c, &by, a, now->a);
	if (now->form == COMPUTED)
		return expr_cast(c->g, DT_F32, expr_cast(c->g, now->in, BIN(MUL, x, BIN(ADD, x, expr_float(c->g, DT_F32, 1)))));
	if (now->form == LAZY) {
		ExprId even = BIN(EQ, BIN(IMOD, letters_index(c, &by, now->a[1]), case_int(c, 2)), case_int(c, 0));
		return expr_select(c->g, even, x, expr_float(c->g, DT_F32, 0.5));
	}
	return x;
}

static void
reduce(Case *c, Node *n)
{
	for (const char *k = now->terms; *k; k++) {
		ExprId end = letters_extent(c, &by, *k);
		int64_t lo = now->form == RANGE ? 8 : now->form == UNEVEN ? 3 : 0;
		case_reduce(n, MON_SUM, case_int(c, lo), now->form == SHORT ? BIN(SUB, end, case_int(c, 8)) : end);
	}
}

/* Asks for some terms of each factor, as far as what lies side by side in memory goes together. */
static void
leave_some_out(Case *c, Node *n, TensorId b)
{
	ExprId column = BIN(ADD, letters_index(c, &by, 'n'), letters_index(c, &by, now->terms[0]));
	n->guard = letters_inside(c, &by, 'm');
	if (now->b[strlen(now->b) - 1] != 'n')
		n->guard = BIN(AND, n->guard, BIN(NE, BIN(IMOD, column, case_int(c, 3)), case_int(c, 0)));
	if (now->form != WHOLE)
		case_given(c, b, letters_infinite(c, &by, now->b, now->in));
}

static void
build_product(Case *c)
{
	by = (Letters){.out = now->out, .terms = now->terms, .size = now->size};
	ExprId e[TG_MAX_RANK], row = row_factor(c);
	TensorId b = operand(c, now->b, "b", now->in);
	ExprId column = letters_element(c, &by, b, now->b);
	unsigned rank = letters_extents(c, &by, now->out, e);
	TensorId old = 0;
	Node n = case_node(rank, BIN(MUL, row, column));
	reduce(c, &n);
	if (now->how & ABSENT)
		leave_some_out(c, &n, b);
	ExprId acc = expr_make(c->g, OP_ACC, DT_F32, 0, 0, NULL, 0);
	if (now->form == OLD) {
		old = case_input(c, TENSOR_INOUT, "old", now->to, rank, e);
		acc = BIN(ADD, letters_element(c, &by, old, now->out), acc);
	}
	if (now->form == EPILOGUE) {
		const char *last = now->out + rank - 1;
		TensorId bias = operand(c, last, "bias", now->in), rest = operand(c, now->out, "rest", DT_F32);
		acc = BIN(MUL, BIN(ADD, acc, letters_element(c, &by, bias, last)), letters_element(c, &by, rest, now->out));
	}
	n.finish = expr_cast(c->g, now->to, acc);
	case_result(c, "z", case_add(c, &n, "z", now->to, e), old);
}

static const Product products[] = {
	/* what a launch takes: small tiles, as there are few */
	{"mk", "kn", "mn", "k", SIZES(64, 64, 64), DT_BF16, DT_F32, PLAIN, 0, 64, 4, 0},
	{"mk", "nk", "mn", "k", SIZES(70, 33, 96), DT_BF16, DT_BF16, EPILOGUE, 0, 64, 1, SPLIT},
	{"km", "kn", "mn", "k", SIZES(16, 16, 64), DT_F16, DT_F32, PLAIN, 0, 64, 4, 0},
	{"mk", "nk", "mn", "k", SIZES(15, 64, 64), DT_BF16, DT_F32, PLAIN, 0, 0, 0, 0},
	{"mk", "nk", "mn", "k", SIZES(64, 64, 56), DT_BF16, DT_F32, PLAIN, 0, 0, 0, 0},
	/* rows of factors that do not end at multiples of 16 bytes */
	{"mk", "nk", "mn", "k", SIZES(64, 64, 68), DT_BF16, DT_F32, PLAIN, 0, 0, 0, 0},
	{"mk", "kn", "mn", "k", SIZES(64, 68, 64), DT_BF16, DT_F32, PLAIN, 0, 0, 0, 0},
	{"km", "nk", "mn", "k", SIZES(62, 64, 64), DT_BF16, DT_F32, PLAIN, 0, 0, 0, 0},
	{"mk", "nk", "mn", "k", SIZES(64, 64, 64), DT_BF16, DT_F32, UNEVEN, 0, 0, 0, 0},
	/* each way to lie, of whole numbers */
	{"mk", "kn", "mn", "k", SIZES(132, 136, 40), DT_BF16, DT_F32, WHOLE, 1, 64, 4, SPLIT},
	{"mk", "nk", "mn", "k", SIZES(127, 129, 104), DT_F16, DT_F32, WHOLE, 1, 64, 1, 0},
	{"km", "kn", "mn", "k", SIZES(128, 8, 13), DT_BF16, DT_BF16, WHOLE, 1, 64, 4, 0},
	{"km", "nk", "mn", "k", SIZES(104, 7, 8), DT_BF16, DT_F32, WHOLE, 1, 64, 1, 0},
	/* and of others */
	{"mk", "kn", "mn", "k", SIZES(1, 8, 200), DT_BF16, DT_F32, EPILOGUE, 1, 64, 4, 0},
	{"km", "kn", "mn", "k", SIZES(72, 72, 33), DT_BF16, DT_F16, OLD, 1, 64, 4, SPLIT},
	{"mk", "nk", "mn", "k", SIZES(65, 66, 72), DT_F16, DT_F16, OLD, 1, 64, 1, 0},
	/* batches, several rows' and contracted indices, ranges that do not begin at 0 */
	{"bmk", "nbk", "mbn", "k", {SIZE('b') = 3, SIZE('m') = 5, SIZE('n') = 12, SIZE('k') = 40}, DT_BF16, DT_F32, PLAIN, 1, 64, 4, SPLIT},
	{"bmk", "nk", "bmn", "k", {SIZE('b') = 3, SIZE('m') = 47, SIZE('n') = 68, SIZE('k') = 64}, DT_BF16, DT_BF16, EPILOGUE, 0, 64, 4, SPLIT},
	{"mk", "bkn", "bmn", "k", {SIZE('b') = 2, SIZE('m') = 20, SIZE('n') = 24, SIZE('k') = 72}, DT_BF16, DT_F32, PLAIN, 0, 64, 4, 0},
	{"bmk", "jkn", "bmjn", "k", {SIZE('b') = 3, SIZE('m') = 7, SIZE('n') = 16, SIZE('k') = 8, SIZE('j') = 3}, DT_BF16, DT_F32, PLAIN, 1, 64, 4, 0},
	{"mjk", "jkn", "mn", "jk", {SIZE('m') = 20, SIZE('n') = 16, SIZE('k') = 16, SIZE('j') = 5}, DT_F16, DT_F32, WHOLE, 0, 64, 4, 0},
	{"jmk", "nkj", "nm", "jk", {SIZE('m') = 20, SIZE('n') = 16, SIZE('k') = 16, SIZE('j') = 8}, DT_F16, DT_F32, PLAIN, 0, 0, 0, 0},
	{"kma", "kn", "amn", "k", {SIZE('a') = 8, SIZE('m') = 11, SIZE('n') = 40, SIZE('k') = 37}, DT_BF16, DT_F32, PLAIN, 0, 0, 0, 0},
	{"kma", "kn", "man", "k", {SIZE('a') = 8, SIZE('m') = 11, SIZE('n') = 40, SIZE('k') = 71}, DT_BF16, DT_F32, WHOLE, 0, 64, 4, SPLIT},
	{"mk", "nk", "mn", "k", SIZES(40, 48, 72), DT_BF16, DT_F32, RANGE, 0, 64, 4, 0},
	{"mk", "kn", "mn", "k", SIZES(40, 48, 72), DT_BF16, DT_F32, SHORT, 0, 64, 4, 0},
	{"km", "kn", "mn", "k", SIZES(40, 48, 79), DT_BF16, DT_F32, UNEVEN, 0, 64, 4, 0},
	/* factors that are more than elements */
	{"mk", "nk", "mn", "k", SIZES(40, 48, 64), DT_BF16, DT_F32, BACKWARDS, 0, 64, 4, 0},
	{"amk", "nk", "amn", "k", {SIZE('a') = 2, SIZE('m') = 21, SIZE('n') = 32, SIZE('k') = 64}, DT_BF16, DT_F32, LAZY, 0, 0, 0, 0},
	/* of f32, which fast mode rounds: each way to lie, of whole numbers and others; rows that do not end at multiples of 16 bytes; few
	 * terms; batches, several indices, other ranges */
	{"mk", "kn", "mn", "k", SIZES(64, 64, 64), DT_F32, DT_F32, PLAIN, 0, 64, 4, 0},
	{"mk", "nk", "mn", "k", SIZES(70, 33, 36), DT_F32, DT_BF16, EPILOGUE, 0, 64, 1, SPLIT},
	{"km", "kn", "mn", "k", SIZES(16, 20, 33), DT_F32, DT_F32, OLD, 0, 64, 4, 0},
	{"km", "nk", "mn", "k", SIZES(36, 17, 44), DT_F32, DT_F32, PLAIN, 0, 64, 1, SPLIT},
	{"mk", "kn", "mn", "k", SIZES(132, 136, 40), DT_F32, DT_F32, WHOLE, 1, 64, 4, SPLIT},
	{"mk", "nk", "mn", "k", SIZES(127, 129, 76), DT_F32, DT_F32, WHOLE, 1, 64, 1, 0},
	{"km", "kn", "mn", "k", SIZES(128, 8, 13), DT_F32, DT_F32, WHOLE, 1, 64, 4, 0},
	{"km", "nk", "mn", "k", SIZES(104, 7, 8), DT_F32, DT_F32, WHOLE, 1, 64, 1, 0},
	{"mk", "nk", "mn", "k", SIZES(64, 64, 66), DT_F32, DT_F32, PLAIN, 0, 0, 0, 0},
	{"mk", "kn", "mn", "k", SIZES(64, 66, 64), DT_F32, DT_F32, PLAIN, 0, 0, 0, 0},
	{"mk", "nk", "mn", "k", SIZES(64, 64, 28), DT_F32, DT_F32, PLAIN, 0, 0, 0, 0},
	{"bmk", "nbk", "mbn", "k", {SIZE('b') = 3, SIZE('m') = 5, SIZE('n') = 12, SIZE('k') = 36}, DT_F32, DT_F32, PLAIN, 1, 64, 4, SPLIT},
	{"mjk", "jkn", "mn", "jk", {SIZE('m') = 20, SIZE('n') = 16, SIZE('k') = 12, SIZE('j') = 5}, DT_F32, DT_F32, WHOLE, 0, 64, 4, 0},
	{"kma", "kn", "man", "k", {SIZE('a') = 4, SIZE('m') = 11, SIZE('n') = 40, SIZE('k') = 71}, DT_F32, DT_F32, WHOLE, 0, 64, 4, SPLIT},
	{"mk", "nk", "mn", "k", SIZES(40, 48, 72), DT_F32, DT_F32, RANGE, 0, 64, 4, 0},
	{"mk", "nk", "mn", "k", SIZES(40, 48, 64), DT_F32, DT_F32, BACKWARDS, 0, 64, 4, 0},
	/* terms that may be absent; where they are within a chunk, other kernels take them */
	{"mjk", "njk", "mn", "jk", {SIZE('m') = 20, SIZE('n') = 16, SIZE('k') = 16, SIZE('j') = 19}, DT_BF16, DT_F32, PLAIN, 0, 64, 4, ABSENT},
	{"mjk", "jkn", "mn", "jk", {SIZE('m') = 70, SIZE('n') = 24, SIZE('k') = 8, SIZE('j') = 60}, DT_F16, DT_F16, EPILOGUE, 0, 64, 4, SPLIT | ABSENT},
	{"jkma", "njk", "man", "jk", {SIZE('a') = 8, SIZE('m') = 11, SIZE('n') = 33, SIZE('k') = 8, SIZE('j') = 9}, DT_BF16, DT_BF16, OLD, 0, 64, 1, ABSENT},
	{"bmjk", "njk", "bmn", "jk", {SIZE('b') = 2, SIZE('m') = 33, SIZE('n') = 16, SIZE('k') = 12, SIZE('j') = 33}, DT_F32, DT_F32, PLAIN, 0, 64, 4, SPLIT | ABSENT},
	{"mjk", "njk", "mn", "jk", {SIZE('m') = 20, SIZE('n') = 16, SIZE('k') = 16, SIZE('j') = 19}, DT_BF16, DT_F32, WHOLE, 0, 64, 4, ABSENT},
	{"mk", "nk", "mn", "k", SIZES(40, 48, 64), DT_BF16, DT_F32, PLAIN, 0, 0, 0, ABSENT},
};

static void
run_product(const Product *p, FpMode mode, unsigned tile)
{
	now = p;
	CaseRun r = case_try_warps(build_product, p->in == DT_F32 ? FP_FAST : mode, now->least, now->how & SPLIT, tile);
	if (r.warps != (now->tile > 0) || (r.warps && !tile && (r.tile != now->tile || r.group != now->side)))
		fail_msg("%s by %s, %lld terms, is taken by %s of %u rows and groups of %u: %s", p->a, p->b, (long long)p->size['k' - 'a'],
		         r.warps ? "warps" : "others", r.tile, r.group, r.remarks);
}

static void
products_are_right(void **state)
{
	(void)state;
	for (unsigned n = 0; n < sizeof products / sizeof *products; n++)
		run_product(&products[n], n % 2 ? FP_FAST : FP_RELAXED, 0);
}

/* A product in each way to lie, in each tile: two tiles of either side, and an end of each. */
static void
many_tiles_are_right(void **state)
{
	static const Product ways[] = {
		{"mk", "kn", "mn", "k", SIZES(140, 136, 72), DT_BF16, DT_F32, WHOLE, 1, 1, 4, 0},
		{"mk", "nk", "mn", "k", SIZES(129, 132, 40), DT_BF16, DT_BF16, EPILOGUE, 1, 1, 4, SPLIT},
		{"km", "kn", "mn", "k", SIZES(136, 144, 50), DT_F16, DT_F32, OLD, 1, 1, 4, 0},
		{"km", "nk", "mn", "k", SIZES(144, 140, 104), DT_BF16, DT_F32, WHOLE, 1, 1, 4, SPLIT},
		{"mk", "kn", "mn", "k", SIZES(140, 136, 36), DT_F32, DT_F32, WHOLE, 1, 1, 4, SPLIT},
		{"mk", "nk", "mn", "k", SIZES(129, 132, 20), DT_F32, DT_BF16, EPILOGUE, 1, 1, 4, SPLIT},
		{"km", "kn", "mn", "k", SIZES(136, 144, 25), DT_F32, DT_F32, OLD, 1, 1, 4, 0},
		{"km", "nk", "mn", "k", SIZES(144, 140, 52), DT_F32, DT_F32, WHOLE, 1, 1, 4, SPLIT},
		{"mjk", "njk", "mn", "jk", {SIZE('m') = 129, SIZE('n') = 132, SIZE('k') = 8, SIZE('j') = 9}, DT_BF16, DT_BF16, PLAIN, 1, 1, 4, ABSENT},
		{"mjk", "jkn", "mn", "jk", {SIZE('m') = 140, SIZE('n') = 136, SIZE('k') = 8, SIZE('j') = 9}, DT_F16, DT_F32, OLD, 1, 1, 4, SPLIT | ABSENT},
	};
	(void)state;
	for (unsigned tile = 1; tile <= contract_warps_tiles(); tile++)
		for (unsigned way = 0; way < sizeof ways / sizeof *ways; way++)
			run_product(&ways[way], FP_RELAXED, tile);
}

/* A narrowed factor that is computed is stored first, and so is one that fast mode rounds. */
static void
computed_factors_are_stored(void **state)
{
	static const Product computed = {"amk", "nk", "amn", "k", {SIZE('a') = 2, SIZE('m') = 21, SIZE('n') = 32, SIZE('k') = 64}, DT_BF16, DT_F32, COMPUTED, 0, 64, 4, 0};
	(void)state;
	now = &computed;
	CaseRun r = case_try_warps(build_product, FP_RELAXED, 0, false, 0);
	assert_int_equal(r.tmpl, TMPL_MAP);
	Product wide = computed;
	wide.in = DT_F32;
	now = &wide;
	assert_int_equal(case_try_warps(build_product, FP_FAST, 0, false, 0).tmpl, TMPL_MAP);
	assert_int_not_equal(case_try_warps(build_product, FP_RELAXED, 0, false, 0).tmpl, TMPL_MAP);
}

static void
strict_sums_are_others(void **state)
{
	(void)state;
	now = &products[0];
	assert_false(case_try_warps(build_product, FP_STRICT, 0, false, 0).warps);
	Product wide = products[0];
	wide.in = DT_F32;
	now = &wide;
	assert_false(case_try_warps(build_product, FP_STRICT, 0, false, 0).warps);
	assert_false(case_try_warps(build_product, FP_RELAXED, 0, false, 0).warps);
	assert_true(case_try_warps(build_product, FP_FAST, 0, false, 0).warps);
}

/* --- any products --- */

static Product
random_product(uint64_t *rng)
{
	static const struct {
		const char *a, *b, *out, *terms;
	} ways[] = {{"mk", "kn", "mn", "k"}, {"km", "kn", "mn", "k"}, {"mk", "nk", "mn", "k"}, {"km", "nk", "nm", "k"},
	            {"bmk", "bkn", "bmn", "k"}, {"mbk", "nk", "bmn", "k"}, {"mjk", "njk", "mn", "jk"}, {"jmk", "njk", "nm", "jk"}};
	static const DType in[] = {DT_BF16, DT_F16, DT_F32};
	static const DType to[] = {DT_F32, DT_BF16, DT_F16, DT_F32};
	static const Form forms[] = {PLAIN, WHOLE, EPILOGUE, OLD, BACKWARDS};
	unsigned way = case_below(rng, sizeof ways / sizeof *ways), type = case_below(rng, sizeof to / sizeof *to);
	Product p = {.a = ways[way].a, .b = ways[way].b, .out = ways[way].out, .terms = ways[way].terms, .in = in[case_below(rng, sizeof in / sizeof *in)],
	             .to = to[type], .form = forms[case_below(rng, sizeof forms / sizeof *forms)], .least = 1, .tile = 1, .how = case_below(rng, 2)};
	p.size['m' - 'a'] = (3 + case_below(rng, case_below(rng, 4) ? 10 : 18)) * 8;
	p.size['n' - 'a'] = (3 + case_below(rng, 10)) * 8;
	p.size['k' - 'a'] = (1 + case_below(rng, 16)) * 8;
	p.size['b' - 'a'] = 1 + case_below(rng, 3);
	p.size['j' - 'a'] = 1 + case_below(rng, 3);
	return p;
}

static void
many_products_are_right(void **state)
{
	enum { COUNT = 60 };
	uint64_t rng = 11;
	(void)state;
	for (unsigned n = 0; n < COUNT; n++) {
		Product p = random_product(&rng);
		run_product(&p, n % 2 ? FP_FAST : FP_RELAXED, 1 + case_below(&rng, contract_warps_tiles()));
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(products_are_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(many_tiles_are_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(computed_factors_are_stored, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(strict_sums_are_others, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(many_products_are_right, case_setup, case_teardown),
	};
	case_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
