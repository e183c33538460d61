/* spread_next_test.c: kernels of a block whose rows are brought a turn before give the same bits as they do as a whole; which are. */
#include "passes/tile/tile.h"
#include "tests/ir/tir/tir_fixture.h"

#include <string.h>

enum { ROWS = 5, WIDTH = 2048, ELEMENTS = ROWS * WIDTH };

typedef struct {
	unsigned threads, group, lanes, cluster;
	bool tight, masked, written, apart, seen; /* written: what is read is stored to; apart: threads join nothing; seen: by a view in the loop */
} Shape;

/* y[i, l] = x[i, l] * the sum of row i, row after row: those before `rows`. */
static TirKernel *
rows_kernel(Fixture *f, const Shape *s, int64_t rows)
{
	TirKernel *k = tir_new(&f->arena, f->names, name_cstr(f->names, "k"));
	k->form = TIR_BLOCK;
	k->threads = (uint16_t)s->threads;
	k->group = (uint16_t)s->group;
	k->cluster = (uint16_t)s->cluster;
	k->tight = s->tight;
	k->resident = 2;
	tir_add_buffer(k, name_cstr(f->names, "x"), DT_F32, s->written);
	tir_add_buffer(k, name_cstr(f->names, "y"), DT_F32, true);
	const ValId extent[2] = {tir_int(k, DT_I64, ROWS), tir_int(k, DT_I64, WIDTH)}, stride[2] = {extent[1], tir_int(k, DT_I64, 1)};
	ValId in = tir_view(k, 0, 2, extent, stride), out = tir_view(k, 1, 2, extent, stride), zero = tir_int(k, DT_I64, 0), mask = 0;
	ValId at[2] = {tir_for(k, zero, tir_int(k, DT_I64, rows), stride[1], NULL, 0), zero};
	if (s->seen)
		in = tir_view(k, 0, 2, extent, stride);
	if (s->masked) { /* the later the row, the fewer */
		ValId iota = tir_emit(k, OP_IOTA, tir_vector(DT_I64, s->lanes), s->group > 1 ? s->group : 0, NULL, 0);
		mask = tir_binary(k, OP_LT, iota, tir_binary(k, OP_SUB, tir_int(k, DT_I64, s->lanes), tir_binary(k, OP_MUL, at[0], tir_int(k, DT_I64, 64))));
	}
	ValId x = tir_load(k, in, at, mask, TIR_LANES_ALONG(1), s->lanes), v = x;
	for (unsigned n = s->lanes; n > 1 && !s->apart; n /= 2) {
		ValId lo, hi;
		tir_halves(k, v, &lo, &hi);
		v = tir_binary(k, OP_ADD, lo, hi);
	}
	tir_store(k, out, tir_binary(k, OP_MUL, x, v), at, 0, TIR_LANES_ALONG(1));
	tir_end_for(k, NULL, 0);
	return k;
}

static void
run(Fixture *f, const TirKernel *k, float *x, float *y)
{
	const char *error = NULL;
	TirMemory memory[8] = {{x, ELEMENTS * 4}, {y, ELEMENTS * 4}};
	TirRun r = {.buffer = memory, .task_lo = 0, .task_hi = 1};
	memset(y, 0, ELEMENTS * 4);
	if (!tir_interpret(k, &f->arena, &r, &error))
		fail_msg("%s", error);
}

/* How many copies stand in the kernel: before the loop and in it. */
static unsigned
copies_of(void **state, const Shape *s, int64_t rows)
{
	fixture_teardown(state);
	fixture_setup(state);
	Fixture *f = *state;
	unsigned copies = 0;
	TirKernel *k = rows_kernel(f, s, rows), *to = tile_spread(k, &f->arena);
	float *x = ARENA_ARRAY(&f->arena, float, ELEMENTS), *before = ARENA_ARRAY(&f->arena, float, ELEMENTS);
	float *after = ARENA_ARRAY(&f->arena, float, ELEMENTS);
	for (unsigned n = 0; n < ELEMENTS; n++)
		x[n] = (float)((n * 2654435761u >> 8) % 1000003u) / 1000.0f - 400;
	fixture_round_trip(f, to);
	fixture_verify(f, to);
	run(f, k, x, before);
	run(f, to, x, after);
	assert_memory_equal(before, after, ELEMENTS * 4);
	assert_true(rows == 0 || before[0] != 0);
	run(f, tile_cleanup(to, &f->arena), x, after);
	assert_memory_equal(before, after, ELEMENTS * 4);
	for (ValId v = 1; v < to->inst.n; v++)
		copies += tir_inst(to, v)->op == OP_ASYNC_COPY;
	return copies;
}

static void
rows_come_before(void **state)
{
	static const Shape shape[] = {
		{32, 4, 256, 0, .masked = false}, {64, 4, 1024, 0, .masked = true}, {128, 4, 512, 0, .tight = true}, {256, 4, 1024, 0, .tight = true, .masked = true},
		{32, 4, 512, 2, .masked = true, .seen = true}, {64, 4, 2048, 4, .masked = false}, {32, 4, 1024, 8, .tight = true, .masked = true},
	};
	for (unsigned n = 0; n < sizeof shape / sizeof *shape; n++) {
		const Shape *s = &shape[n];
		unsigned loads = s->lanes / s->threads / s->group / (s->cluster ? s->cluster : 1);
		for (int64_t rows = 0; rows <= ROWS; rows += rows ? ROWS - 1 : 1)
			assert_int_equal(copies_of(state, s, rows), 2 * loads);
	}
}

/* Not what is no access of 16 bytes, nor what somebody writes to; and where nobody waits for anybody there is no need. */
static void
others_stay(void **state)
{
	static const Shape shape[] = {{64, 2, 512, 0, .masked = true}, {64, 1, 256, 0, .masked = false}, {64, 4, 512, 0, .written = true}, {64, 4, 512, 0, .apart = true}};
	for (unsigned n = 0; n < sizeof shape / sizeof *shape; n++)
		assert_int_equal(copies_of(state, &shape[n], ROWS), 0);
}

/* Nor more than a multiprocessor has room for. */
static void
room_is_limited(void **state)
{
	Shape s = {1024, 4, WIDTH * 2, 0, .masked = false};
	Fixture *f = *state;
	TirKernel *k = rows_kernel(f, &s, ROWS);
	for (unsigned resident = 1; resident <= 8; resident *= 8) {
		unsigned copies = 0;
		k->resident = (uint16_t)resident;
		const TirKernel *to = tile_spread(k, &f->arena);
		for (ValId v = 1; v < to->inst.n; v++)
			copies += tir_inst(to, v)->op == OP_ASYNC_COPY;
		assert_int_equal(copies, resident == 1 ? 2 : 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rows_come_before, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(others_stay, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(room_is_limited, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
