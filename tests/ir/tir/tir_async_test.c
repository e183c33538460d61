/* tir_async_test.c: LOAD_MATRIX, STORE_MATRIX, ASYNC_COPY and ASYNC_WAIT: in text, verified and run; and what is wrong with them when one
 * thing is changed. */
#include "ir/tir_slot.h"
#include "tir_fixture.h"

enum { WARPS = 2, THREADS = WARPS * TIR_WARP, WORDS = TIR_ASYNC_BYTES / 4, ABSENT = 5 };

/* What is changed. What the verifier finds comes first; from NO_WAIT on it is found as the kernel runs. */
typedef enum {
	NOTHING, WRITTEN_SOURCE, UNSHARED, STRIDED, FEW_LANES, F32_ELEMENTS, NO_CONDITION, FAR_WAIT, HALF_TURNED,
	NO_WAIT, EARLY_WAIT, NO_BARRIER, UNALIGNED, OUTSIDE, UNAWAITED, UNDER_BRANCH, OVERWRITTEN
} Change;

static ValId
number(TirKernel *k, int64_t v)
{
	return tir_int(k, DT_I64, v);
}

static ValId
rows_of(TirKernel *k, unsigned buffer, int64_t columns, int64_t last)
{
	return tir_view(k, buffer, 2, (ValId[]){number(k, THREADS), number(k, columns)}, (ValId[]){number(k, columns * last), number(k, last)});
}

/* What a thread copies: its row of a, or, of every so manieth thread, zeros. */
static void
copy_row(TirKernel *k, Change change, ValId thread, ValId shared)
{
	unsigned row_elements = TIR_MATRIX_BITS / dtype_info[k->buffer.at[0].dtype].bits;
	ValId zero = number(k, 0), a = rows_of(k, 0, row_elements, change == STRIDED ? 2 : 1);
	if (change == UNALIGNED) /* rows that reach into the next one */
		a = tir_view(k, 0, 2, (ValId[]){number(k, THREADS), number(k, TIR_MATRIX + 1)}, (ValId[]){number(k, TIR_MATRIX), number(k, 1)});
	ValId there = tir_binary(k, OP_LT, zero, tir_binary(k, OP_IMOD, thread, number(k, ABSENT)));
	ValId row = change == OUTSIDE ? tir_binary(k, OP_ADD, thread, number(k, 1)) : thread;
	tir_async_copy(k, shared, (ValId[]){thread, zero}, a, (ValId[]){row, change == UNALIGNED ? number(k, 1) : zero},
	               change == NO_CONDITION ? zero : there);
	if (change == EARLY_WAIT || change == UNAWAITED)
		tir_async_wait(k, 1);
	else if (change != NO_WAIT)
		tir_async_wait(k, change == FAR_WAIT ? TIR_MAX_ASYNC + 1 : 0);
}

/* out[t] = what thread t gets of the four matrices of its warp, whose rows its threads copied. */
static TirKernel *
matrices(Fixture *f, DType t, bool turned, Change change)
{
	TirKernel *k = fixture_kernel(f);
	DType type = change == F32_ELEMENTS ? DT_F32 : t;
	unsigned elements = TIR_MATRIX_BITS / dtype_info[t].bits;
	k->form = TIR_SPREAD;
	k->threads = THREADS;
	k->group = TIR_MATRIX;
	tir_add_buffer(k, name_cstr(f->names, "a"), t, change == WRITTEN_SOURCE);
	tir_add_buffer(k, name_cstr(f->names, "out"), type, true);
	unsigned buffer = tir_add_buffer(k, 0, DT_F32, true);
	k->buffer.at[buffer].shared = change == UNSHARED ? 0 : THREADS * WORDS;
	ValId shared = rows_of(k, buffer, WORDS, 1), out = rows_of(k, 1, elements, 1), zero = number(k, 0);
	ValId thread = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0);
	copy_row(k, change, thread, shared);
	if (change == OVERWRITTEN)
		copy_row(k, change, thread, shared);
	if (change == UNAWAITED)
		return k;
	if (change != NO_BARRIER)
		tir_emit(k, OP_BARRIER, (TirType){0}, 0, NULL, 0);
	if (change == UNDER_BRANCH)
		tir_if(k, tir_binary(k, OP_LT, thread, number(k, 4)));
	ValId arg[3] = {shared, thread, zero};
	ValId all = tir_emit(k, OP_LOAD_MATRIX, tir_vector(type, change == FEW_LANES ? 2 : elements), change == HALF_TURNED ? 2 : turned, arg, 3);
	tir_store(k, out, all, (ValId[]){thread, zero}, 0, TIR_LANES_ALONG(1));
	if (change == UNDER_BRANCH) {
		tir_else(k, NULL, 0);
		tir_end_if(k, NULL, 0);
	}
	return k;
}

static uint16_t a[THREADS][TIR_MATRIX], out[THREADS][TIR_MATRIX];

static bool
run(Fixture *f, const TirKernel *k, const char **error)
{
	const TirMemory buffer[2] = {{a, sizeof a}, {out, sizeof out}};
	TirRun r = {.buffer = buffer, .task_lo = 0, .task_hi = 1};
	return tir_interpret(k, &f->arena, &r, error);
}

/* Element (row, column) of matrix m of a warp. */
static uint16_t
element(unsigned warp, unsigned m, unsigned row, unsigned column)
{
	unsigned thread = warp * TIR_WARP + m * TIR_MATRIX + row;
	return thread % ABSENT ? a[thread][column] : 0;
}

static void
matrices_are_right(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned way = 0; way < 4; way++) {
		const char *error = "";
		bool turned = way % 2;
		TirKernel *k = matrices(f, way / 2 ? DT_F16 : DT_BF16, turned, NOTHING);
		fixture_round_trip(f, k);
		for (unsigned n = 0; n < sizeof a / sizeof **a; n++)
			a[n / TIR_MATRIX][n % TIR_MATRIX] = (uint16_t)(1 + n);
		if (!run(f, k, &error))
			fail_msg("%s", error);
		for (unsigned t = 0; t < THREADS; t++)
			for (unsigned e = 0; e < TIR_MATRIX; e++) {
				unsigned along = t % 4 * 2 + e % 2, across = t % TIR_WARP / 4;
				assert_int_equal(out[t][e], element(t / TIR_WARP, e / 2, turned ? along : across, turned ? across : along));
			}
	}
}

/* Of f32 a row has 4: the bytes of 8 others. */
static void
matrices_of_words_are_right(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	const char *error = "";
	TirKernel *k = matrices(f, DT_F32, false, NOTHING);
	fixture_round_trip(f, k);
	for (unsigned n = 0; n < THREADS * WORDS; n++)
		slot_store(DT_F32, a, n, slot_encode(DT_F32, 1 + n));
	if (!run(f, k, &error))
		fail_msg("%s", error);
	for (unsigned t = 0; t < THREADS; t++)
		for (unsigned m = 0; m < WORDS; m++) {
			unsigned row = t / TIR_WARP * TIR_WARP + m * TIR_MATRIX + t % TIR_WARP / 4;
			double want = row % ABSENT ? 1 + row * WORDS + t % 4 : 0;
			assert_true(slot_decode(DT_F32, slot_load(DT_F32, out, t * WORDS + m)) == want);
		}
	assert_false(tir_verify(matrices(f, DT_F32, true, NOTHING), &f->arena, &error));
	assert_non_null(strstr(error, "is turned or not"));
}

/* out[t] = row t of the matrices that the threads of its warp store, thread t what it has in a[t]. */
static TirKernel *
stored(Fixture *f, DType t, bool turned, Change change)
{
	TirKernel *k = fixture_kernel(f);
	DType type = change == F32_ELEMENTS ? DT_F32 : t;
	unsigned elements = change == FEW_LANES ? 4 : TIR_MATRIX, each = change == UNALIGNED ? 2 * TIR_MATRIX - 4 : TIR_MATRIX;
	k->form = TIR_SPREAD;
	k->threads = THREADS;
	k->group = TIR_MATRIX;
	tir_add_buffer(k, name_cstr(f->names, "a"), type, false);
	tir_add_buffer(k, name_cstr(f->names, "out"), type, true);
	unsigned buffer = tir_add_buffer(k, 0, type, true);
	k->buffer.at[buffer].shared = change == UNSHARED ? 0 : THREADS * each;
	ValId shared = rows_of(k, buffer, each, change == STRIDED ? 2 : 1), zero = number(k, 0), thread = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0);
	const ValId own[2] = {thread, zero}, at[2] = {change == OUTSIDE ? tir_binary(k, OP_ADD, thread, number(k, 1)) : thread, zero};
	ValId x = tir_load(k, rows_of(k, 0, TIR_MATRIX, 1), own, 0, TIR_LANES_ALONG(1), elements);
	if (change == UNDER_BRANCH)
		tir_if(k, tir_binary(k, OP_LT, thread, number(k, TIR_WARP + 1)));
	ValId arg[4] = {shared, x, at[0], at[1]};
	tir_emit(k, OP_STORE_MATRIX, (TirType){0}, change == HALF_TURNED ? 2 : turned, arg, 4);
	if (change == UNDER_BRANCH) {
		tir_else(k, NULL, 0);
		tir_end_if(k, NULL, 0);
	}
	if (change != NO_BARRIER)
		tir_emit(k, OP_BARRIER, (TirType){0}, 0, NULL, 0);
	if (change == OVERWRITTEN)
		tir_store_matrix(k, shared, x, at, turned);
	tir_store(k, rows_of(k, 1, TIR_MATRIX, 1), tir_load(k, shared, own, 0, TIR_LANES_ALONG(1), elements), own, 0, TIR_LANES_ALONG(1));
	return k;
}

static void
stored_matrices_are_right(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned way = 0; way < 4; way++) {
		const char *error = "";
		bool turned = way % 2;
		TirKernel *k = stored(f, way / 2 ? DT_F16 : DT_BF16, turned, NOTHING);
		fixture_round_trip(f, k);
		for (unsigned n = 0; n < sizeof a / sizeof **a; n++)
			a[n / TIR_MATRIX][n % TIR_MATRIX] = (uint16_t)(1 + n);
		if (!run(f, k, &error))
			fail_msg("%s", error);
		for (unsigned t = 0; t < THREADS; t++)
			for (unsigned c = 0; c < TIR_MATRIX; c++) {
				unsigned row = t % TIR_MATRIX, along = turned ? row : c, across = turned ? c : row;
				unsigned from = t / TIR_WARP * TIR_WARP + 4 * across + along / 2;
				assert_int_equal(out[t][c], a[from][t % TIR_WARP / TIR_MATRIX * 2 + along % 2]);
			}
	}
}

static void
what_is_stored_wrongly_is_found(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	static const char *const refused[] = {
		[UNSHARED] = "of no buffer of the block's own", [STRIDED] = "the last stride of operand 0 is not 1",
		[FEW_LANES] = "has no vector of 8", [F32_ELEMENTS] = "has no vector of 8", [HALF_TURNED] = "is turned or not"};
	static const char *const found[] = {
		[NO_BARRIER] = "since the last barrier", [UNALIGNED] = "no multiple of 16", [OUTSIDE] = "the extent 64",
		[UNDER_BRANCH] = "not all threads meet it", [OVERWRITTEN] = "since the last barrier"};
	for (Change c = WRITTEN_SOURCE; c <= OVERWRITTEN; c++) {
		const char *error = "", *why = c <= HALF_TURNED ? refused[c] : found[c];
		if (!why)
			continue;
		TirKernel *k = stored(f, DT_BF16, false, c);
		if (c > HALF_TURNED)
			fixture_verify(f, k);
		assert_false(c <= HALF_TURNED ? tir_verify(k, &f->arena, &error) : run(f, k, &error));
		if (!strstr(error, why))
			fail_msg("change %u: %s", (unsigned)c, error);
	}
}

static void
what_is_wrong_is_refused(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	static const char *const why[] = {
		[WRITTEN_SOURCE] = "of a buffer that is written", [UNSHARED] = "to no buffer of the block's own",
		[STRIDED] = "the last stride of operand 1 is not 1", [FEW_LANES] = "has no vector of 8", [F32_ELEMENTS] = "has no vector of 8",
		[NO_CONDITION] = "the condition is no bool", [FAR_WAIT] = "waits for all but", [HALF_TURNED] = "is turned or not"};
	for (Change c = WRITTEN_SOURCE; c <= HALF_TURNED; c++) {
		const char *error = "";
		assert_false(tir_verify(matrices(f, DT_BF16, false, c), &f->arena, &error));
		if (!strstr(error, why[c]))
			fail_msg("change %u: %s", (unsigned)c, error);
	}
}

/* Also where the interpreter's order of threads would hide it. */
static void
what_is_wrong_is_found(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	static const char *const why[] = {
		[NO_WAIT] = "copies and has not waited for", [EARLY_WAIT] = "copies and has not waited for", [NO_BARRIER] = "wrote since the last barrier",
		[UNALIGNED] = "no multiple of 16", [OUTSIDE] = "the extent 64", [UNAWAITED] = "is not waited for", [UNDER_BRANCH] = "not all threads meet it"};
	for (Change c = NO_WAIT; c <= UNDER_BRANCH; c++) {
		const char *error = "";
		TirKernel *k = matrices(f, DT_BF16, false, c);
		fixture_verify(f, k);
		assert_false(run(f, k, &error));
		if (!strstr(error, why[c]))
			fail_msg("change %u: %s", (unsigned)c, error);
	}
}

/* A place is copied to again when the copy before has been waited for. */
static void
places_are_used_again(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	const char *error = "";
	if (!run(f, matrices(f, DT_BF16, false, OVERWRITTEN), &error))
		fail_msg("%s", error);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(matrices_are_right),
		TEST(matrices_of_words_are_right),
		TEST(stored_matrices_are_right),
		TEST(what_is_stored_wrongly_is_found),
		TEST(what_is_wrong_is_refused),
		TEST(what_is_wrong_is_found),
		TEST(places_are_used_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
