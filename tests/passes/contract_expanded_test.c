/* contract_expanded_test.c: usage: contract_expanded_test [[-]PATTERN]: the tests of such names, or all others. Sums of squares of
 * differences that are expanded to products, run by the tile interpreter and compared with the oracle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "letters.h"
#include "passes/schedule/contract/roles_build.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

/* Points by their indices; k is the terms'. */
typedef struct {
	const char *a, *b, *out;
	int64_t size[26]; /* by letter */
	DType in;
	/* SCALED: over what each term has; POWER: a power of 2, times a constant; FINISHED: of which something is made; GUARDED, WEIGHTED:
	 * no such sum, since it lacks terms, and since weights may have any sign */
	enum { SQUARE, SCALED, POWER, FINISHED, GUARDED, WEIGHTED } form;
	enum { RANDOM, NEAR, CROWDED, WHOLE, FAR, ODD } points; /* NEAR, CROWDED: few, or half, nearly one another; FAR: with much in common; ODD: some are no finite numbers */
} Squares;

static const Squares *now;
static Letters by;

static double
coordinate(int64_t i, bool second)
{
	double v = fmod((double)(i + 1) * (second ? 0.7548776662466927 : 0.6180339887498949), 1) * 4 - 2;
	switch (now->points) {
	case NEAR: case CROWDED: return i / now->size['k' - 'a'] % (now->points == NEAR ? 7 : 2) == 1 ? fmod((double)(i % now->size['k' - 'a']) * 0.37, 1) + (second ? 1e-3 * v : 0) : v;
	case WHOLE: return (double)(i * (second ? 5 : 7) % 13 - 6);
	case FAR: return v + 100;
	case ODD: return i % 211 == 5 ? (const double[]){HUGE_VAL, NAN, 0x1.fffffep127, -0x1p64, 0x1p-149}[i / 211 % 5] : v;
	case RANDOM: break;
	}
	return v;
}

static void
give_points(Case *c, TensorId t, const char *index, bool second)
{
	DType dtype = (DType)c->g->tensor.at[t].dtype;
	int64_t n = 1, bytes;
	for (const char *p = index; *p; p++)
		n *= now->size[*p - 'a'];
	dtype_bytes(dtype, n, &bytes);
	uint8_t *packed = arena_alloc(c->arena, (size_t)bytes);
	for (int64_t i = 0; i < n; i++)
		eval_store(dtype, packed, i, (EvalValue){.re = (double)(float)coordinate(i, second)});
	case_given(c, t, packed);
}

static ExprId
number(Case *c, double v)
{
	return expr_float(c->g, DT_F32, v);
}

static void
build_squares(Case *c)
{
	ExprId e[TG_MAX_RANK], term;
	c->g->fp = FP_RELAXED;
	by = (Letters){.out = now->out, .terms = "k", .size = now->size};
	TensorId a = letters_operand(c, &by, now->a, "a", now->in), b = letters_operand(c, &by, now->b, "b", now->in);
	give_points(c, a, now->a, false);
	give_points(c, b, now->b, true);
	unsigned rank = letters_extents(c, &by, now->out, e);
	ExprId difference = BIN(SUB, letters_element(c, &by, a, now->a), letters_element(c, &by, b, now->b)), one = 0;
	if (now->form == SCALED || now->form == WEIGHTED) {
		TensorId of_term = letters_operand(c, &by, "k", "l", DT_F32);
		one = letters_element(c, &by, of_term, "k");
	}
	if (now->form == SCALED)
		difference = BIN(FDIV, difference, BIN(ADD, BIN(MUL, one, one), number(c, 1)));
	term = BIN(MUL, difference, difference);
	if (now->form == POWER)
		term = BIN(MUL, number(c, 0.75), BIN(POW, difference, number(c, 2)));
	if (now->form == WEIGHTED)
		term = BIN(MUL, one, term);
	Node n = case_node(rank, term);
	case_reduce(&n, MON_SUM, case_int(c, 0), letters_extent(c, &by, 'k'));
	if (now->form == GUARDED)
		n.guard = BIN(LE, letters_index(c, &by, 'k'), letters_index(c, &by, now->out[0]));
	if (now->form == FINISHED) {
		ExprId acc = expr_make(c->g, OP_ACC, DT_F32, 0, 0, NULL, 0);
		TensorId bias = letters_operand(c, &by, now->out + rank - 1, "bias", DT_F32);
		n.finish = BIN(FDIV, letters_element(c, &by, bias, now->out + rank - 1), BIN(ADD, number(c, 1), acc));
	}
	case_result(c, "z", case_add(c, &n, "z", DT_F32, e), 0);
}

static const Squares squares[] = {
	{"mk", "nk", "mn", {SIZE('m') = 70, SIZE('n') = 132, SIZE('k') = 64}, DT_F32, SQUARE, RANDOM},
	{"mk", "nk", "mn", {SIZE('m') = 130, SIZE('n') = 72, SIZE('k') = 65}, DT_F32, SQUARE, NEAR},
	{"mk", "nk", "mn", {SIZE('m') = 68, SIZE('n') = 130, SIZE('k') = 66}, DT_F32, SQUARE, CROWDED},
	{"bmk", "bnk", "bmn", {SIZE('b') = 2, SIZE('m') = 65, SIZE('n') = 64, SIZE('k') = 90}, DT_F32, SCALED, CROWDED},
	{"mk", "kn", "mn", {SIZE('m') = 64, SIZE('n') = 196, SIZE('k') = 70}, DT_F32, FINISHED, NEAR},
	{"bmk", "nbk", "mbn", {SIZE('b') = 2, SIZE('m') = 66, SIZE('n') = 72, SIZE('k') = 96}, DT_F32, SCALED, NEAR},
	{"mk", "nk", "mn", {SIZE('m') = 66, SIZE('n') = 68, SIZE('k') = 129}, DT_BF16, POWER, FAR},
	{"mk", "nk", "mn", {SIZE('m') = 65, SIZE('n') = 67, SIZE('k') = 80}, DT_F32, POWER, RANDOM},
	{"mk", "nk", "mn", {SIZE('m') = 72, SIZE('n') = 64, SIZE('k') = 100}, DT_F32, SQUARE, FAR},
	{"km", "nk", "nm", {SIZE('m') = 72, SIZE('n') = 66, SIZE('k') = 64}, DT_F32, SQUARE, ODD},
};

static void
try(unsigned n, unsigned tile)
{
	CaseRun r = case_try_roles(build_squares, n % 2, tile);
	if (!r.roles)
		fail_msg("sum %u, tile %u has no roles: %s", n, tile, r.remarks);
}

static void
squares_are_right(void **state)
{
	(void)state;
	for (unsigned n = 0; n < sizeof squares / sizeof *squares; n++)
		for (unsigned tile = 1; tile <= roles_tiles(); tile++) {
			now = &squares[n];
			const RolesTile t = roles_tile(tile - 1);
			unsigned columns = (unsigned)now->size[now->out[(now->out[2] != 0) + 1] - 'a'];
			bool last = t.rows < 128 || t.side == 1; /* two of four tiles are enough */
			if (t.thirds == TIR_THIRDS && !t.pieces && columns % t.side == 0 && (last || n == 1))
				try(n, tile);
		}
}

/* In every tile for them, off by no more than so much of the bound. */
static void
are_off_by(const Squares *of, double most)
{
	now = of;
	for (unsigned tile = 1; tile <= roles_tiles(); tile++) {
		if (roles_tile(tile - 1).thirds != TIR_THIRDS || roles_tile(tile - 1).pieces)
			continue;
		CaseRun r = case_try_roles(build_squares, false, tile);
		if (!r.roles || r.ratio > most)
			fail_msg("tile %u: roles %d, off by %g of the bound", tile, r.roles, r.ratio);
	}
}

static void
squares_of_whole_numbers_are_exact(void **state)
{
	static const Squares of = {"mk", "nk", "mn", {SIZE('m') = 70, SIZE('n') = 132, SIZE('k') = 72}, DT_F32, SQUARE, WHOLE};
	(void)state;
	are_off_by(&of, 0);
}

/* Where points are not near, the product's sums are what is stored, and they are off by far less than the definition may be. */
static void
squares_are_near(void **state)
{
	static const Squares of = {"mk", "nk", "mn", {SIZE('m') = 64, SIZE('n') = 64, SIZE('k') = 64}, DT_F32, SQUARE, RANDOM};
	(void)state;
	are_off_by(&of, 0.5);
}

static void
others_are_not_expanded(void **state)
{
	static const Squares no[] = {
		{"mk", "nk", "mn", {SIZE('m') = 64, SIZE('n') = 64, SIZE('k') = 64}, DT_F32, GUARDED, RANDOM},
		{"mk", "nk", "mn", {SIZE('m') = 64, SIZE('n') = 64, SIZE('k') = 64}, DT_F32, WEIGHTED, RANDOM},
	};
	(void)state;
	for (unsigned n = 0; n < sizeof no / sizeof *no; n++) {
		now = &no[n];
		assert_false(case_try_roles(build_squares, false, 0).roles);
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(squares_are_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(squares_of_whole_numbers_are_exact, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(squares_are_near, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(others_are_not_expanded, case_setup, case_teardown),
	};
	case_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
