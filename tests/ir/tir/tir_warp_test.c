/* tir_warp_test.c: WARP_MMA: where its operands' elements are, as fragments.def says; in text, verified and run, by warps of a
 * block and of groups that multiply; and what is wrong with it when one thing is changed. */
#include "ir/fragment.h"
#include "ir/tir_slot.h"
#include "ir/warp_mma.h"
#include "tir_fixture.h"

/* --- places --- */

typedef unsigned PlaceFn(unsigned e, unsigned lane, unsigned word);

static unsigned
column_of_b(unsigned e, unsigned lane, unsigned word)
{
	(void)e, (void)word;
	return warp_mma_b_column(lane);
}

static unsigned
row_of_c(unsigned e, unsigned lane, unsigned word)
{
	(void)word;
	return warp_mma_c_row(e, lane);
}

static unsigned
column_of_c(unsigned e, unsigned lane, unsigned word)
{
	(void)word;
	return warp_mma_c_column(e, lane);
}

static void
check_places(Fixture *f, Fragment of, unsigned elements, unsigned word, PlaceFn *row, PlaceFn *column)
{
	Layout l = fragment_atom(&f->arena, of);
	for (unsigned lane = 0; lane < TIR_WARP; lane++)
		for (unsigned e = 0; e < elements; e++) {
			uint64_t at = layout_at(&l, &(Place){{[AXIS_REG] = e, [AXIS_LANE] = lane}});
			assert_int_equal(coord_get(at, 0), row(e, lane, word));
			assert_int_equal(coord_get(at, 1), column(e, lane, word));
		}
}

static void
elements_are_where_fragments_say(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	check_places(f, FRAGMENT_MMA_A16, WARP_MMA_A, 2, warp_mma_a_row, warp_mma_a_term);
	check_places(f, FRAGMENT_MMA_B16, WARP_MMA_B, 2, warp_mma_b_term, column_of_b);
	check_places(f, FRAGMENT_MMA_A32, WARP_MMA_A_WORDS, 1, warp_mma_a_row, warp_mma_a_term);
	check_places(f, FRAGMENT_MMA_B32, WARP_MMA_B_WORDS, 1, warp_mma_b_term, column_of_b);
	check_places(f, FRAGMENT_MMA_C, WARP_MMA_C, 2, row_of_c, column_of_c);
}

/* --- a product --- */

enum { GROUPS = 2, GROUP_WARPS = TIR_GROUP / TIR_WARP, WARPS = GROUPS * GROUP_WARPS };

/* What is changed: nothing; the factors' type; how many they are; one factor's type; the sums'; the lanes of what comes out; who meets
 * it; the role that does. */
typedef enum { NOTHING, I32_FACTORS, FEW_FACTORS, MIXED, BF16_SUMS, TWO_LANES, UNDER_BRANCH, WHILE_LOADING } Change;

static ValId
number(TirKernel *k, int64_t v)
{
	return tir_int(k, DT_I64, v);
}

static ValId
view_of(TirKernel *k, unsigned buffer, int64_t rows, int64_t columns)
{
	const ValId extent[3] = {number(k, WARPS), number(k, rows), number(k, columns)};
	const ValId stride[3] = {number(k, rows * columns), number(k, columns), number(k, 1)};
	return tir_view(k, buffer, 3, extent, stride);
}

/* The thread's place along a matrix, as a value: that of element e of lane 0, and the lane's share. */
static ValId
place(TirKernel *k, unsigned first, ValId share)
{
	return tir_binary(k, OP_ADD, number(k, first), share);
}

/* out[w, i, j] = c[w, i, j] + sum[t] a[w, i, t] b[w, t, j], by warp w; groups: that multiply, of a kernel of roles; 0: it has none. */
static TirKernel *
product_by(Fixture *f, DType t, Change change, unsigned groups)
{
	TirKernel *k = fixture_kernel(f);
	DType a_type = change == I32_FACTORS ? DT_I32 : t, b_type = change == I32_FACTORS || change == MIXED ? DT_I32 : t;
	unsigned word = 32u / dtype_info[t].bits, terms = WARP_MMA_TERM_WORDS * word, n = 0;
	DType c_type = change == BF16_SUMS ? DT_BF16 : DT_F32;
	k->form = TIR_SPREAD;
	k->threads = groups ? (groups + 1) * TIR_GROUP : WARPS * TIR_WARP;
	k->group = 1;
	tir_add_buffer(k, name_cstr(f->names, "a"), a_type, false);
	tir_add_buffer(k, name_cstr(f->names, "b"), b_type, false);
	tir_add_buffer(k, name_cstr(f->names, "c"), c_type, false);
	tir_add_buffer(k, name_cstr(f->names, "out"), DT_F32, true);
	ValId a = view_of(k, 0, WARP_MMA_ROWS, terms), b = view_of(k, 1, terms, WARP_MMA_COLUMNS);
	ValId c = view_of(k, 2, WARP_MMA_ROWS, WARP_MMA_COLUMNS), out = view_of(k, 3, WARP_MMA_ROWS, WARP_MMA_COLUMNS);
	ValId thread = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0), four = number(k, 4);
	ValId warp = tir_binary(k, OP_IDIV, thread, number(k, TIR_WARP)), lane = tir_binary(k, OP_IMOD, thread, number(k, TIR_WARP));
	ValId row = tir_binary(k, OP_IDIV, lane, four), quad = tir_binary(k, OP_IMOD, lane, four);
	ValId in_word = tir_binary(k, OP_MUL, quad, number(k, word)), pair = tir_binary(k, OP_MUL, quad, number(k, 2));
	if (groups) {
		tir_add_channel(k, &(TirChannel){.slots = 1, .nparts = 1, .part = {{.dtype = DT_BF16, .rows = 64, .terms = TIR_PART_TERMS}}});
		tir_open_roles(k, TIR_ROLES(groups, 240, 24));
		if (change == WHILE_LOADING)
			tir_other_role(k);
	}
	ValId arg[WARP_MMA_OPERANDS];
	for (unsigned e = 0; e < WARP_MMA_A_WORDS * word; e++)
		arg[n++] = tir_load(k, a, (ValId[]){warp, place(k, warp_mma_a_row(e, 0, word), row), place(k, warp_mma_a_term(e, 0, word), in_word)}, 0, 0, 0);
	for (unsigned e = 0; e < WARP_MMA_B_WORDS * word; e++)
		arg[n++] = tir_load(k, b, (ValId[]){warp, place(k, warp_mma_b_term(e, 0, word), in_word), row}, 0, 0, 0);
	for (unsigned e = 0; e < WARP_MMA_C; e++)
		arg[n++] = tir_load(k, c, (ValId[]){warp, place(k, warp_mma_c_row(e, 0), row), place(k, warp_mma_c_column(e, 0), pair)}, 0, 0, 0);
	if (change == UNDER_BRANCH)
		tir_if(k, tir_binary(k, OP_LT, lane, four));
	ValId all = tir_emit(k, OP_WARP_MMA, tir_vector(DT_F32, change == TWO_LANES ? 2 : WARP_MMA_C), 0, arg, change == FEW_FACTORS ? n - 1 : n);
	for (unsigned e = 0; e < (change == TWO_LANES ? 2 : WARP_MMA_C); e++)
		tir_store(k, out, tir_emit(k, OP_LANE, tir_scalar(DT_F32), e, &all, 1), (ValId[]){warp, place(k, warp_mma_c_row(e, 0), row), place(k, warp_mma_c_column(e, 0), pair)}, 0, 0);
	if (change == UNDER_BRANCH) {
		tir_else(k, NULL, 0);
		tir_end_if(k, NULL, 0);
	}
	if (groups && change != WHILE_LOADING)
		tir_other_role(k);
	if (groups)
		tir_end_roles(k);
	return k;
}

static TirKernel *
product(Fixture *f, DType t, Change change)
{
	return product_by(f, t, change, 0);
}

/* Of 16 bits, or of f32, which are half as many. */
typedef struct {
	uint16_t a[WARPS * WARP_MMA_ROWS * WARP_MMA_TERMS], b[WARPS * WARP_MMA_TERMS * WARP_MMA_COLUMNS];
	float c[WARPS][WARP_MMA_ROWS][WARP_MMA_COLUMNS], out[WARPS][WARP_MMA_ROWS][WARP_MMA_COLUMNS];
} Data;

/* Small whole numbers, whose sums are exact in any order. */
static int
whole(unsigned n)
{
	return (int)(n * 2654435761u >> 28) - 8;
}

static bool
run(Fixture *f, const TirKernel *k, Data *d, const char **error)
{
	const TirMemory buffer[4] = {{d->a, sizeof d->a}, {d->b, sizeof d->b}, {d->c, sizeof d->c}, {d->out, sizeof d->out}};
	TirRun r = {.buffer = buffer, .task_lo = 0, .task_hi = 1};
	return tir_interpret(k, &f->arena, &r, error);
}

/* By the warps of a block, or of both groups of one. */
static void
products_are_right(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	static Data d;
	const char *error = "";
	static const DType types[] = {DT_BF16, DT_F16, DT_F32};
	for (unsigned type = 0; type < 2 * sizeof types / sizeof *types; type++) {
		DType t = types[type / 2];
		unsigned terms = t == DT_F32 ? 8 : 16;
		TirKernel *k = product_by(f, t, NOTHING, type % 2 * GROUPS);
		memset(d.out, 0, sizeof d.out);
		fixture_round_trip(f, k);
		for (unsigned n = 0; n < WARPS * WARP_MMA_ROWS * terms; n++)
			slot_store(t, d.a, n, slot_encode(t, whole(n)));
		for (unsigned n = 0; n < WARPS * WARP_MMA_COLUMNS * terms; n++)
			slot_store(t, d.b, n, slot_encode(t, whole(n + 1000)));
		for (unsigned n = 0; n < sizeof d.c / sizeof(float); n++)
			(&d.c[0][0][0])[n] = (float)whole(n + 2000);
		if (!run(f, k, &d, &error))
			fail_msg("%s", error);
		for (unsigned w = 0; w < WARPS; w++)
			for (unsigned i = 0; i < WARP_MMA_ROWS; i++)
				for (unsigned j = 0; j < WARP_MMA_COLUMNS; j++) {
					double want = d.c[w][i][j];
					for (unsigned n = 0; n < terms; n++)
						want += slot_decode(t, slot_load(t, d.a, (w * WARP_MMA_ROWS + i) * terms + n)) *
						        slot_decode(t, slot_load(t, d.b, (w * terms + n) * WARP_MMA_COLUMNS + j));
					assert_true((double)d.out[w][i][j] == want);
				}
	}
}

/* Factors of f32 are rounded, once each, to 11 bits: none is cut off. */
static void
factors_are_rounded(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	static const struct {
		float x, want;
	} of[] = {{2049, 2050}, {-2049, -2050}, {2048.99f, 2048}, {2051, 2052}, {0x1.ffcp0f, 0x1.ffcp0f}, {0x1.ffep0f, 2},
	          {0x1.004p-126f, 0x1.004p-126f}, {0x1.002p-126f, 0x1.004p-126f}, {0, 0}, {INFINITY, INFINITY}};
	static Data d;
	const char *error = "";
	for (unsigned n = 0; n < sizeof of / sizeof *of; n++) {
		assert_true(warp_mma_rounded(of[n].x) == of[n].want);
		memset(&d, 0, sizeof d);
		slot_store(DT_F32, d.a, 0, slot_encode(DT_F32, (double)of[n].x));
		slot_store(DT_F32, d.b, 0, slot_encode(DT_F32, 1));
		if (!run(f, product(f, DT_F32, NOTHING), &d, &error))
			fail_msg("%s", error);
		assert_true(d.out[0][0][0] == of[n].want);
	}
	assert_true(isnan(warp_mma_rounded(NAN)));
}

static void
what_is_wrong_is_refused(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	static const char *const why[] = {[I32_FACTORS] = "multiplies no scalars", [FEW_FACTORS] = "takes 16 operands", [MIXED] = "operand 8 is of another type",
	                                  [BF16_SUMS] = "operand 12 is of another type", [TWO_LANES] = "gives no vector"};
	for (Change c = I32_FACTORS; c <= TWO_LANES; c++) {
		const char *error = "";
		assert_false(tir_verify(product(f, DT_BF16, c), &f->arena, &error));
		if (!strstr(error, why[c]))
			fail_msg("%s", error);
	}
	const char *error = "";
	assert_false(tir_verify(product_by(f, DT_BF16, WHILE_LOADING, 1), &f->arena, &error));
	assert_non_null(strstr(error, "warp_mma: is met by other threads than those of its role"));
}

/* All threads of a warp have to meet it: that some do not is known as it runs. */
static void
branches_are_found(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	static Data d;
	const char *error = "";
	for (unsigned groups = 0; groups <= GROUPS; groups++) {
		TirKernel *k = product_by(f, DT_BF16, UNDER_BRANCH, groups);
		fixture_verify(f, k);
		assert_false(run(f, k, &d, &error));
		assert_non_null(strstr(error, "not all threads meet it"));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(elements_are_where_fragments_say),
		TEST(products_are_right),
		TEST(factors_are_rounded),
		TEST(what_is_wrong_is_refused),
		TEST(branches_are_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
