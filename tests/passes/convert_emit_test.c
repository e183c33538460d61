/* convert_emit_test.c: conversions between random register layouts of a warp, as TIR, run for all threads at once: every
 * register of the result has the element that its layout says, and no two lanes of an access of vectors, or of fragments as
 * matrices, meet in a bank. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "passes/schedule/convert_emit.h"

enum { WARPS = 2, THREADS = WARPS * TIR_WARP, LANE_BITS = 5, MOST_BITS = 12, MOST = 1 << MOST_BITS };

typedef struct {
	Unwind unwind;
	Arena arena;
} Fixture;

typedef struct {
	unsigned matrices, vectors, singles, shuffles, renames;
} Count;

/* What a plan may have. */
typedef enum { VECTORS, MATRICES, REGISTERS } Way;

static uint32_t
below(uint64_t *seed, uint32_t n)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(*seed >> 33) % n;
}

/* Bits of rows and columns in any order, five of them lanes; some lanes have sums. */
static Layout
random_layout(uint64_t *seed, unsigned rows, unsigned columns)
{
	Layout l = layout_new(2, (unsigned[]){1u << rows, 1u << columns});
	uint64_t bit[MOST_BITS];
	unsigned n = rows + columns;
	for (unsigned i = 0; i < n; i++)
		bit[i] = i < columns ? coord_along(1, UINT64_C(1) << i) : coord_along(0, UINT64_C(1) << (i - columns));
	for (unsigned i = n; i > 1; i--) {
		unsigned k = below(seed, i);
		uint64_t other = bit[k];
		bit[k] = bit[i - 1];
		bit[i - 1] = other;
	}
	for (unsigned i = 0; i < n; i++) {
		bool lane = i < LANE_BITS;
		layout_add_bit(&l, lane ? AXIS_LANE : AXIS_REG, lane && below(seed, 4) == 0 ? bit[i] ^ bit[n - 1] : bit[i]);
	}
	return l;
}

static ValId
number(TirKernel *k, int64_t v)
{
	return tir_int(k, DT_I64, v);
}

static ValId
view_of(TirKernel *k, unsigned buffer, int64_t rows, int64_t columns)
{
	return tir_view(k, buffer, 2, (ValId[]){number(k, rows), number(k, columns)}, (ValId[]){number(k, columns), number(k, 1)});
}

/* By what the plan has of memory; every other entry is taken as one that is known later. */
static void
through_memory(Arena *a, TirKernel *k, const ConvertPlan *p, ValId warp, ValId lane, const ValId *from, ValId *to)
{
	const ConvertStep *first = &p->step.at[0], *last = &p->step.at[p->step.n - 1];
	DType t = (DType)k->buffer.at[0].dtype;
	unsigned buffer = tir_add_buffer(k, 0, t, true);
	k->buffer.at[buffer].shared = WARPS * p->scratch;
	ValId scratch = view_of(k, buffer, WARPS, p->scratch);
	ConvertPlace put = convert_place(k, a, first, scratch, warp, lane), take = convert_place(k, a, last, scratch, warp, lane);
	for (unsigned e = 0; e < first->n; e++)
		convert_put(&put, e, from);
	tir_emit(k, OP_BARRIER, (TirType){0}, TIR_WARP_BARRIER, NULL, 0);
	for (unsigned e = 0; e < last->n; e++) {
		ValId all = e % 2 ? convert_take_any(&take, number(k, e)) : convert_take(&take, e);
		for (unsigned n = 0; n < last->width; n++)
			to[last->reg[e * last->width + n] - p->result] = last->width > 1 ? tir_emit(k, OP_LANE, tir_scalar(t), n, &all, 1) : all;
	}
}

/* out[t] = the result's registers of thread t, whose source's are a[t]. */
static TirKernel *
conversion(Arena *a, Names *names, const ConvertPlan *p, DType t)
{
	TirKernel *k = tir_new(a, names, name_cstr(names, "k"));
	unsigned nsource = p->result, nresult = p->nreg - p->result;
	k->form = TIR_SPREAD;
	k->threads = THREADS;
	k->group = 8;
	tir_add_buffer(k, name_cstr(names, "a"), t, false);
	tir_add_buffer(k, name_cstr(names, "out"), t, true);
	ValId in = view_of(k, 0, THREADS, nsource), out = view_of(k, 1, THREADS, nresult);
	ValId *from = ARENA_ARRAY(a, ValId, nsource), *to = ARENA_ARRAY(a, ValId, nresult);
	ValId thread = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0);
	ValId warp = tir_binary(k, OP_IDIV, thread, number(k, TIR_WARP)), lane = tir_binary(k, OP_IMOD, thread, number(k, TIR_WARP));
	for (unsigned n = 0; n < nsource; n++)
		from[n] = tir_load(k, in, (ValId[]){thread, number(k, n)}, 0, 0, 0);
	if (p->cls < CONVERT_MATRIX)
		convert_in_registers(k, a, p, lane, from, to);
	else
		through_memory(a, k, p, warp, lane, from, to);
	for (unsigned n = 0; n < nresult; n++)
		tir_store(k, out, to[n], (ValId[]){thread, number(k, n)}, 0, 0);
	return k;
}

/* What the register of the thread is an element of, as a number. */
static unsigned
element_at(const Layout *l, unsigned thread, unsigned reg)
{
	uint64_t c = layout_at(l, &(Place){{[AXIS_REG] = reg, [AXIS_LANE] = thread % TIR_WARP}});
	return thread / TIR_WARP * MOST + coord_get(c, 0) * l->shape[1] + coord_get(c, 1);
}

static void
check(Arena *a, const ConvertPlan *p, const Layout *src, const Layout *dst, DType t)
{
	unsigned bytes = dtype_info[t].bits / 8, nsource = p->result, nresult = p->nreg - p->result;
	uint8_t *in = arena_alloc(a, (size_t)THREADS * nsource * bytes), *out = arena_alloc(a, (size_t)THREADS * nresult * bytes);
	for (unsigned n = 0; n < THREADS * nsource; n++) {
		uint32_t v = element_at(src, n / nsource, n % nsource);
		memcpy(in + (size_t)n * bytes, &v, bytes);
	}
	const TirMemory memory[2] = {{in, THREADS * nsource * bytes}, {out, THREADS * nresult * bytes}};
	TirRun run = {.buffer = memory, .task_lo = 0, .task_hi = 1};
	const char *error = "";
	const TirKernel *k = conversion(a, names_new(a), p, t);
	if (!tir_verify(k, a, &error) || !tir_interpret(k, a, &run, &error))
		fail_msg("%s", error);
	for (unsigned n = 0; n < THREADS * nresult; n++) {
		uint32_t v = 0;
		memcpy(&v, out + (size_t)n * bytes, bytes);
		assert_int_equal(v, element_at(dst, n / nresult, n % nresult));
	}
}

static void
check_conflicts(const ConvertPlan *p)
{
	for (uint32_t n = 0; n < p->step.n; n++)
		assert_int_equal(p->step.at[n].wavefronts, p->step.at[n].groups);
}

static void
convert(const Layout *src, const Layout *dst, DType t, Way way, bool fragment, Count *count)
{
	static Fixture f;
	const ConvertMeans means = {.bits = dtype_info[t].bits, .shuffle = way == REGISTERS, .store_matrix = way == MATRICES, .scratch_bytes = UINT32_MAX};
	const char *error = "";
	f = (Fixture){0};
	arena_init(&f.arena, &host_default()->memory, &f.unwind);
	if (setjmp(f.unwind.env))
		fail_msg("%s", f.unwind.text);
	const ConvertPlan *p = layout_convert(&f.arena, src, dst, &means, &error);
	if (!p)
		fail_msg("%s", error);
	check(&f.arena, p, src, dst, t);
	if (fragment || p->cls == CONVERT_MEMORY)
		check_conflicts(p);
	count->matrices += p->cls == CONVERT_MATRIX;
	count->vectors += p->cls > CONVERT_SHUFFLE && p->step.at[2].width > 1;
	count->singles += p->cls > CONVERT_SHUFFLE && p->step.at[2].width == 1;
	count->shuffles += p->cls == CONVERT_SHUFFLE;
	count->renames += p->cls == CONVERT_RENAME;
	arena_free(&f.arena);
}

static void
random_layouts(void **state)
{
	uint64_t seed = 7;
	Count count = {0};
	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		unsigned rows = 1 + below(&seed, 4), columns = 5 + below(&seed, 3);
		Layout src = random_layout(&seed, rows, columns), dst = random_layout(&seed, rows, columns);
		bool matrices = round % 4 == 0 && rows + columns >= LANE_BITS + 3; /* of four at once */
		convert(&src, &dst, round % 2 ? DT_F32 : DT_BF16, matrices ? MATRICES : VECTORS, false, &count);
	}
	assert_true(count.vectors > 20 && count.singles > 20);
}

/* A bit of registers changes places with one of lanes, and with another of registers. */
static void
registers_and_lanes(void **state)
{
	uint64_t seed = 5;
	Count count = {0};
	(void)state;
	for (unsigned round = 0; round < 100; round++) {
		Layout src = random_layout(&seed, 2, 5 + below(&seed, 2)), dst;
		uint64_t *reg = src.col[AXIS_REG], other;
		unsigned n = src.nbit[AXIS_REG];
		for (unsigned i = 0; i < LANE_BITS; i++) /* no sums */
			src.col[AXIS_LANE][i] &= ~reg[n - 1];
		dst = src;
		if (round % 3) {
			unsigned lane = round % LANE_BITS;
			dst.col[AXIS_REG][0] = src.col[AXIS_LANE][lane];
			dst.col[AXIS_LANE][lane] = reg[0];
		}
		other = dst.col[AXIS_REG][0];
		dst.col[AXIS_REG][0] = dst.col[AXIS_REG][n - 1];
		dst.col[AXIS_REG][n - 1] = other;
		convert(&src, &dst, DT_F32, REGISTERS, false, &count);
	}
	assert_int_equal(count.shuffles + count.renames, 100);
	assert_true(count.shuffles > 50 && count.renames > 20);
}

/* Lanes have so many elements of a row side by side, and the rows that are left. */
static Layout
rows_of_lanes(unsigned columns, unsigned side)
{
	Layout l = layout_new(2, (unsigned[]){16, columns});
	unsigned lanes = 1;
	for (unsigned c = 1; c < columns; c *= 2) {
		bool lane = c >= side && lanes < TIR_WARP;
		layout_add_bit(&l, lane ? AXIS_LANE : AXIS_REG, coord_along(1, c));
		lanes *= lane ? 2 : 1;
	}
	for (unsigned row = 1; row < 16; row *= 2, lanes *= 2)
		layout_add_bit(&l, lanes < TIR_WARP ? AXIS_LANE : AXIS_REG, coord_along(0, row));
	return l;
}

/* Sums of mma.sync and wgmma, as 16 bits and as 32, to lanes with 16 bytes of a row. */
static void
fragments_to_rows(void **state)
{
	Count count = {0};
	(void)state;
	for (unsigned columns = 16; columns <= 256; columns *= 2)
		for (unsigned way = 0; way < 4; way++) {
			Layout src = layout_new(2, (unsigned[]){16, 8}), dst = rows_of_lanes(columns, way % 2 ? 4 : 8);
			layout_add_bit(&src, AXIS_REG, coord_along(1, 1));
			layout_add_bit(&src, AXIS_REG, coord_along(0, 8));
			for (unsigned bit = 0; bit < LANE_BITS; bit++)
				layout_add_bit(&src, AXIS_LANE, bit < 2 ? coord_along(1, UINT64_C(2) << bit) : coord_along(0, UINT64_C(1) << (bit - 2)));
			assert_true(layout_grow(&src, AXIS_REG, 1, columns / 8));
			convert(&src, &dst, way % 2 ? DT_F32 : DT_F16, way == 0 ? MATRICES : VECTORS, true, &count);
		}
	assert_int_equal(count.matrices, 5);
	assert_int_equal(count.singles, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_layouts),
		cmocka_unit_test(fragments_to_rows),
		cmocka_unit_test(registers_and_lanes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
