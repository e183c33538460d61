/* contract_siblings_test.c: usage: contract_siblings_test [[-]PATTERN]: the tests of such names, or all others. Sums of
 * products that share a factor, in one kernel of roles: run by the tile interpreter and compared with the oracle; and which
 * are no such sums, and what is said of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "letters.h"
#include "passes/schedule/contract/roles_build.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

enum { MOST = 5 };

/* The common factor, the others, and the sums, by their indices; k is the terms'. */
typedef struct {
	const char *common, *own, *out;
	int64_t size[26]; /* by letter */
	DType in, to;
	unsigned sums;
	enum {
		APART,   /* each sum is a result */
		GATE,    /* the last is finished by the others, and the result */
		POINTS,  /* two pointwise nodes of all are results; so is the first sum */
		OLD,     /* GATE, which reads what the result is written over */
		COMPUTED /* GATE of a common factor that is computed */
	} form;
	bool split;
	bool other_terms, other_rows, chain; /* of the last sum: fewer terms; another common factor; that is made of the first sum */
} Sums;

static const Sums *now;
static Letters by;

static TensorId
operand(Case *c, const char *letters, const char *name, unsigned number, DType t)
{
	return letters_operand(c, &by, letters, (char[]){name[0], (char)('0' + number), 0}, t);
}

/* Sum number s, finished by those before it or as it is. */
static TensorId
add_sum(Case *c, ExprId common, unsigned s, TensorId w, const TensorId *before, TensorId old)
{
	ExprId e[TG_MAX_RANK];
	bool last = s + 1 == now->sums;
	unsigned rank = letters_extents(c, &by, now->out, e);
	Node n = case_node(rank, BIN(MUL, common, letters_element(c, &by, last && now->chain ? before[0] : w, now->own)));
	ExprId end = letters_extent(c, &by, 'k');
	case_reduce(&n, MON_SUM, case_int(c, 0), last && now->other_terms ? BIN(SUB, end, case_int(c, 5)) : end);
	ExprId acc = expr_make(c->g, OP_ACC, DT_F32, 0, 0, NULL, 0);
	for (unsigned k = 0; last && now->form != APART && now->form != POINTS && k < s; k++)
		acc = BIN(MUL, acc, BIN(MAX, letters_element(c, &by, before[k], now->out), expr_float(c->g, DT_F32, 0.5)));
	if (last && old)
		acc = BIN(ADD, acc, letters_element(c, &by, old, now->out));
	n.finish = expr_cast(c->g, now->to, acc);
	return case_add(c, &n, (char[]){'s', (char)('0' + s), 0}, now->to, e);
}

/* Two nodes of all the sums; the second reads the first, and a row of numbers. */
static void
add_points(Case *c, const TensorId *sum, TensorId bias)
{
	ExprId e[TG_MAX_RANK];
	const char *last = now->out + strlen(now->out) - 1;
	TensorId first = 0;
	for (unsigned k = 0; k < 2; k++) {
		ExprId all = k ? BIN(ADD, letters_element(c, &by, first, now->out), letters_element(c, &by, bias, last)) : expr_float(c->g, DT_F32, 1);
		unsigned rank = letters_extents(c, &by, now->out, e);
		for (unsigned s = 0; s < now->sums; s++)
			all = k ? BIN(ADD, all, letters_element(c, &by, sum[s], now->out)) : BIN(MUL, all, letters_element(c, &by, sum[s], now->out));
		Node n = case_node(rank, expr_cast(c->g, now->to, all));
		first = case_add(c, &n, k ? "q" : "p", now->to, e);
		case_result(c, k ? "q" : "p", first, 0);
	}
}

static void
build_sums(Case *c)
{
	ExprId e[TG_MAX_RANK];
	TensorId sum[MOST], w[MOST], old = 0;
	by = (Letters){.out = now->out, .terms = "k", .size = now->size};
	c->g->fp = FP_RELAXED;
	ExprId common = letters_element(c, &by, operand(c, now->common, "x", 0, now->in), now->common);
	ExprId other = now->other_rows ? letters_element(c, &by, operand(c, now->common, "x", 1, now->in), now->common) : common;
	for (unsigned s = 0; s < now->sums; s++)
		w[s] = operand(c, now->own, "w", s, now->in);
	TensorId bias = now->form == POINTS ? operand(c, now->out + strlen(now->out) - 1, "b", 0, now->in) : 0;
	if (now->form == COMPUTED)
		common = expr_cast(c->g, DT_F32, expr_cast_free(c->g, now->in, BIN(MUL, common, BIN(ADD, common, expr_float(c->g, DT_F32, 1)))));
	if (now->form == OLD)
		old = case_input(c, TENSOR_INOUT, "old", now->to, letters_extents(c, &by, now->out, e), e);
	for (unsigned s = 0; s < now->sums; s++)
		sum[s] = add_sum(c, s + 1 == now->sums && now->other_rows ? other : common, s, w[s], sum, old);
	if (now->form == POINTS)
		add_points(c, sum, bias);
	for (unsigned s = 0; s < now->sums; s++)
		if (now->form == APART || (now->form == POINTS && s == 0) || (now->form != POINTS && s + 1 == now->sums))
			case_result(c, (char[]){'z', (char)('0' + s), 0}, sum[s], old);
}

static const Sums sums[] = {
	{.common = "mk", .own = "kn", .out = "mn", .size = {SIZE('m') = 130, SIZE('n') = 72, SIZE('k') = 72}, .in = DT_BF16, .to = DT_F32, .sums = 2, .form = GATE},
	{.common = "mk", .own = "nk", .out = "mn", .size = {SIZE('m') = 64, SIZE('n') = 132, SIZE('k') = 136}, .in = DT_F16, .to = DT_F16, .sums = 2, .form = POINTS, .split = true},
	{.common = "nk", .own = "mk", .out = "mn", .size = {SIZE('m') = 130, SIZE('n') = 68, SIZE('k') = 64}, .in = DT_BF16, .to = DT_BF16, .sums = 2, .form = GATE},
	{.common = "mk", .own = "kn", .out = "mn", .size = {SIZE('m') = 65, SIZE('n') = 72, SIZE('k') = 64}, .in = DT_BF16, .to = DT_F32, .sums = 2, .form = OLD},
	{.common = "bmk", .own = "bkn", .out = "bmn", .size = {SIZE('b') = 2, SIZE('m') = 66, SIZE('n') = 64, SIZE('k') = 72}, .in = DT_BF16, .to = DT_F32, .sums = 2, .form = COMPUTED, .split = true},
	{.common = "bkm", .own = "nbk", .out = "mbn", .size = {SIZE('b') = 2, SIZE('m') = 66, SIZE('n') = 67, SIZE('k') = 72}, .in = DT_BF16, .to = DT_F32, .sums = 2, .form = APART},
	{.common = "mk", .own = "kn", .out = "mn", .size = {SIZE('m') = 66, SIZE('n') = 72, SIZE('k') = 72}, .in = DT_BF16, .to = DT_BF16, .sums = 3, .form = APART, .split = true},
	{.common = "mk", .own = "nk", .out = "mn", .size = {SIZE('m') = 130, SIZE('n') = 68, SIZE('k') = 65}, .in = DT_BF16, .to = DT_F32, .sums = 3, .form = POINTS},
	{.common = "kn", .own = "km", .out = "mn", .size = {SIZE('m') = 65, SIZE('n') = 64, SIZE('k') = 72}, .in = DT_F16, .to = DT_F32, .sums = 3, .form = GATE},
};

enum { ODD = 5, FIRST_THREE = 6, NSUMS = sizeof sums / sizeof *sums };

/* In the tile that the sizes ask for, or in that number less one alone. */
static void
sums_are_right(unsigned n, unsigned tile)
{
	now = &sums[n];
	CaseRun r = case_try_roles(build_sums, now->split, tile);
	unsigned members = now->sums + (now->form == POINTS ? 2 : 0);
	if (!r.roles || (r.members != members && now->form != COMPUTED))
		fail_msg("sums %u, tile %u are not in one kernel: %u nodes; %s", n, tile, r.members, r.remarks);
}

static void
they_are_right(void **state)
{
	(void)state;
	for (unsigned n = 0; n < NSUMS; n++)
		sums_are_right(n, 0);
}

/* Whether these sums have a kernel of the tile: one of few rows has one factor of rows. */
static bool
has_tile(const Sums *x, RolesTile t)
{
	return t.sums == x->sums && (t.rows >= TIR_MMA_ROWS || strchr(x->common, 'm'));
}

static void
every_tile_is_right(void **state)
{
	unsigned two = 0, three = 0, run = 0;
	(void)state;
	for (unsigned tile = 1; tile <= roles_tiles(); tile++) {
		RolesTile t = roles_tile(tile - 1);
		for (unsigned k = 0; k < 2 && t.sums; k++) {
			unsigned n = t.sums == 3 ? FIRST_THREE + three++ % (NSUMS - FIRST_THREE) : t.side == 1 && k ? ODD : two++ % FIRST_THREE;
			if (has_tile(&sums[n], t)) {
				sums_are_right(n, tile);
				run |= 1u << tile;
			}
		}
		if (t.sums && !(run >> tile & 1))
			fail_msg("none of the sums has tile %u", tile);
	}
}

/* --- any sums --- */

static uint32_t state_of;

static unsigned
any(unsigned n)
{
	state_of = state_of * 1664525u + 1013904223u;
	return (state_of >> 16) % n;
}

static Sums
any_sums(void)
{
	static const char *const left[] = {"mk", "km", "bmk", "bkm", "mbk"}, *const right[] = {"kn", "nk", "bkn", "bnk", "nbk"};
	static const char *const out[] = {"mn", "mn", "bmn", "mbn", "bmn"};
	static const DType type[] = {DT_BF16, DT_F16, DT_F32};
	bool batch = any(3) == 0, by_row = any(2) == 0;
	const char *a = left[batch ? 2 + any(3) : any(2)], *b = right[batch ? 2 + any(3) : any(2)];
	Sums x = {.common = by_row ? a : b, .own = by_row ? b : a, .out = out[batch ? 2 + any(3) : 0], .sums = 2 + any(2), .form = (int)any(COMPUTED + 1),
	          .split = any(2)};
	x.size[1] = 1 + any(2);
	x.size['m' - 'a'] = 64 + any(80);
	x.size['n' - 'a'] = 64 + any(80);
	x.size['k' - 'a'] = 64 + any(20);
	x.in = type[any(2)];
	x.to = type[any(2) ? 2 : x.in == DT_F16];
	return x;
}

/* In one of the tiles, or in that which the sizes ask for. */
static void
any_are_right(unsigned from, unsigned n)
{
	for (unsigned seed = from; seed < from + n; seed++) {
		state_of = seed;
		Sums x = any_sums();
		unsigned tile = 1 + any(roles_tiles());
		bool fits = has_tile(&x, roles_tile(tile - 1)) && (roles_tile(tile - 1).side == 1 || x.size['n' - 'a'] % 4 == 0);
		now = &x;
		CaseRun r = case_try_roles(build_sums, x.split, fits ? tile : 0);
		if (!r.roles || (r.members < x.sums && x.form != COMPUTED))
			fail_msg("seed %u is not in one kernel: %u nodes; %s", seed, r.members, r.remarks);
	}
}

static void
random_sums_are_right(void **state)
{
	(void)state;
	any_are_right(1, 4);
}

static void
every_tile_of_random_sums_is_right(void **state)
{
	(void)state;
	any_are_right(1000, 60);
}

static void
is_declined(const Sums *no, const char *why)
{
	now = no;
	CaseRun r = case_try_roles(build_sums, false, 0);
	if (r.members != 1 || !strstr(r.remarks, why))
		fail_msg("%u nodes in the first kernel, and no %s: %s", r.members, why, r.remarks);
}

static void
others_are_told(void **state)
{
	(void)state;
	Sums many = sums[0], terms = sums[5], units = sums[5], order = sums[5];
	many.sums = 4;
	is_declined(&many, "siblings_many");
	terms.other_terms = true;
	is_declined(&terms, "siblings_shape");
	units.in = DT_F32;
	is_declined(&units, "siblings_units");
	order = (Sums){.common = "mk", .own = "kn", .out = "mn", .size = {SIZE('m') = 72, SIZE('n') = 72, SIZE('k') = 72},
	               .in = DT_BF16, .to = DT_BF16, .sums = 2, .form = APART, .chain = true};
	is_declined(&order, "siblings_order");
}

/* Nothing is said of sums with nothing in common. */
static void
strangers_are_apart(void **state)
{
	Sums other = sums[5];
	(void)state;
	other.other_rows = true;
	now = &other;
	CaseRun r = case_try_roles(build_sums, false, 0);
	assert_int_equal(r.members, 1);
	assert_null(strstr(r.remarks, "siblings"));
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(they_are_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(every_tile_is_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(random_sums_are_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(every_tile_of_random_sums_is_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(others_are_told, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(strangers_are_apart, case_setup, case_teardown),
	};
	case_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
