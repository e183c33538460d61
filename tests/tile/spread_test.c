/* spread_test.c: kernels of a block before and after tile_spread give the same bits, whatever the block; and the
 * interpreter of threads finds what threads must not do. */
#include "passes/tile/tile.h"
#include "tests/ir/tir/tir_fixture.h"

#include <string.h>

enum { ELEMENTS = 2048, TASKS = 3 };

typedef struct {
	unsigned threads, group, lanes, cluster;
} Shape;

static const Shape shapes[] = {
	{32, 1, 32, 0}, {32, 1, 64, 0}, {32, 4, 512, 0}, {64, 1, 64, 0}, {64, 2, 256, 0}, {128, 8, 1024, 0}, {128, 4, 128, 0},
	{512, 1, 512, 0}, {512, 4, 2048, 0},
	{32, 1, 64, 2}, {32, 4, 1024, 8}, {64, 2, 512, 4}, {128, 1, 2048, 8}, {128, 4, 256, 2},
};

static TirKernel *
block_kernel(Fixture *f, const Shape *s, ValId *x, ValId *in, ValId *out)
{
	TirKernel *k = tir_new(&f->arena, f->names, name_cstr(f->names, "k"));
	k->form = TIR_BLOCK;
	k->threads = (uint16_t)s->threads;
	k->group = (uint16_t)s->group;
	k->cluster = (uint16_t)s->cluster;
	tir_add_buffer(k, name_cstr(f->names, "x"), DT_F32, false);
	tir_add_buffer(k, name_cstr(f->names, "y"), DT_F32, true);
	ValId n = tir_int(k, DT_I64, ELEMENTS), one = tir_int(k, DT_I64, 1), zero = tir_int(k, DT_I64, 0);
	*in = tir_view(k, 0, 1, &n, &one);
	*out = tir_view(k, 1, 1, &n, &one);
	ValId iota = tir_emit(k, OP_IOTA, tir_vector(DT_I32, s->lanes), s->group > 1 ? s->group : 0, NULL, 0);
	ValId mask = tir_binary(k, OP_LT, iota, tir_int(k, DT_I32, (int64_t)s->lanes - (int64_t)s->lanes / 4));
	*x = tir_load(k, *in, &zero, mask, TIR_LANES_ALONG(0), s->lanes);
	return k;
}

static void
run(Fixture *f, const TirKernel *k, const float *x, float *y)
{
	const char *error = NULL;
	TirMemory memory[8] = {{(void *)(uintptr_t)x, ELEMENTS * 4}, {y, ELEMENTS * 4}};
	TirRun r = {.buffer = memory, .task_lo = 0, .task_hi = TASKS};
	memset(y, 0, ELEMENTS * 4);
	if (!tir_interpret(k, &f->arena, &r, &error))
		fail_msg("%s", error);
}

/* The same bits before and after, and something in them. */
static void
same(Fixture *f, TirKernel *k)
{
	float *x = ARENA_ARRAY(&f->arena, float, ELEMENTS), *before = ARENA_ARRAY(&f->arena, float, ELEMENTS);
	float *after = ARENA_ARRAY(&f->arena, float, ELEMENTS);
	for (unsigned n = 0; n < ELEMENTS; n++)
		x[n] = (float)((n * 2654435761u >> 8) % 1000003u) / 1000.0f - 400;
	fixture_round_trip(f, k);
	TirKernel *to = tile_spread(k, &f->arena);
	fixture_round_trip(f, to);
	fixture_verify(f, to);
	run(f, k, x, before);
	run(f, to, x, after);
	assert_memory_equal(before, after, ELEMENTS * 4);
	assert_true(before[0] != 0);
	run(f, tile_cleanup(to, &f->arena), x, after);
	assert_memory_equal(before, after, ELEMENTS * 4);
}

typedef void Body(Fixture *f, TirKernel *k, const Shape *s, ValId x, ValId in, ValId out);

static void
one_shape(void **state, const Shape *s, bool tight, Body *body)
{
	fixture_teardown(state);
	fixture_setup(state);
	Fixture *f = *state;
	GUARD(f);
	ValId x, in, out;
	TirKernel *k = block_kernel(f, s, &x, &in, &out);
	k->tight = tight;
	body(f, k, s, x, in, out);
	same(f, k);
}

static void
each_shape(void **state, bool clusters, Body *body)
{
	for (unsigned n = 0; n < sizeof shapes / sizeof *shapes; n++)
		for (unsigned tight = 0; tight < 2 && (clusters || !shapes[n].cluster); tight++)
			one_shape(state, &shapes[n], tight, body);
}

static void
sum(Fixture *f, TirKernel *k, const Shape *s, ValId x, ValId in, ValId out)
{
	(void)f, (void)in;
	for (unsigned n = s->lanes; n > 1; n /= 2) {
		ValId lo, hi;
		tir_halves(k, x, &lo, &hi);
		/* a difference too, whose halves can't change places */
		x = tir_binary(k, OP_SUB, tir_binary(k, OP_ADD, lo, hi), tir_binary(k, OP_MUL, tir_binary(k, OP_SUB, lo, hi),
		                                                                   tir_float(k, DT_F32, 0.25)));
	}
	ValId zero = tir_int(k, DT_I64, 0);
	tir_store(k, out, x, &zero, 0, 0);
}

static void
sums(void **state)
{
	each_shape(state, true, sum);
}

/* Twice in a loop: what one turn read is not written by the next too early. */
static void
looped_sum(Fixture *f, TirKernel *k, const Shape *s, ValId x, ValId in, ValId out)
{
	ValId zero = tir_int(k, DT_I64, 0), all = tir_float(k, DT_F32, 1);
	(void)f, (void)in;
	ValId i = tir_for(k, zero, tir_int(k, DT_I64, 3), tir_int(k, DT_I64, 1), &all, 1);
	ValId v = tir_binary(k, OP_MUL, x, all);
	for (unsigned n = s->lanes; n > 1; n /= 2) {
		ValId lo, hi;
		tir_halves(k, v, &lo, &hi);
		v = tir_binary(k, OP_MAX, lo, hi);
	}
	tir_store(k, out, v, &i, 0, 0);
	ValId next = tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, v, tir_float(k, DT_F32, 0.001)), tir_cast(k, DT_F32, i));
	tir_end_for(k, &next, 1);
}

static void
loops(void **state)
{
	each_shape(state, true, looped_sum);
}

/* The same for task after task: one is parted from the next where there is one. */
static void
task_sum(Fixture *f, TirKernel *k, const Shape *s, ValId x, ValId in, ValId out)
{
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0), hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	(void)f, (void)in;
	ValId i = tir_for(k, lo, hi, tir_int(k, DT_I64, 1), NULL, 0), v = tir_binary(k, OP_SUB, x, tir_cast(k, DT_F32, i));
	for (unsigned n = s->lanes; n > 1; n /= 2) {
		ValId low, high;
		tir_halves(k, v, &low, &high);
		v = tir_binary(k, OP_ADD, low, high);
	}
	tir_store(k, out, v, &i, 0, 0);
	tir_end_for(k, NULL, 0);
	TirKernel *to = tile_spread(k, &f->arena);
	ValId last = (ValId)to->inst.n - 1;
	unsigned inside = 0, n = to->region.at[0].inst.n;
	for (ValId v_if = 1; v_if < to->inst.n; v_if++)
		inside += tir_inst(to, v_if)->op == OP_IF;
	bool parts = tir_inst(to, last)->op == OP_BARRIER && to->region.at[0].inst.at[n - 1] == last;
	assert_int_equal(inside, parts);
	assert_true(parts || s->threads == TIR_WARP);
}

static void
tasks(void **state)
{
	each_shape(state, true, task_sum);
}

/* Lanes slid both ways, one lane to all, and what was stored read back elsewhere. */
static void
moves_of(Fixture *f, TirKernel *k, const Shape *s, ValId x, ValId in, ValId out)
{
	(void)f, (void)in;
	ValId zero = tir_int(k, DT_I64, 0), one = tir_emit(k, OP_LANE, tir_scalar(DT_F32), s->lanes / 2 + 1, &x, 1);
	ValId all = tir_emit(k, OP_SPLAT, tir_vector(DT_F32, s->lanes), 0, &one, 1);
	ValId up[2] = {all, x}, down[2] = {x, all}, v = tir_binary(k, OP_SUB, x, all);
	if (!s->cluster) { /* they slide in a block alone */
		v = tir_emit(k, OP_SLIDE, tir_vector(DT_F32, s->lanes), s->lanes - 1, up, 2);
		v = tir_binary(k, OP_ADD, v, tir_emit(k, OP_SLIDE, tir_vector(DT_F32, s->lanes), 3, down, 2));
	}
	tir_store(k, out, v, &zero, 0, TIR_LANES_ALONG(0));
	ValId iota = tir_emit(k, OP_IOTA, tir_vector(DT_I64, s->lanes), 0, NULL, 0);
	ValId back = tir_binary(k, OP_SUB, tir_int(k, DT_I64, (int64_t)s->lanes - 1), iota);
	ValId turned = tir_load(k, out, &back, 0, 0, s->lanes);
	tir_store(k, out, tir_binary(k, OP_ADD, turned, x), &zero, 0, TIR_LANES_ALONG(0));
}

static void
moves(void **state)
{
	each_shape(state, true, moves_of);
}

/* Each lane and all before it in its thread, its warp, the block: as a scan moves them. */
static void
scan_of(Fixture *f, TirKernel *k, const Shape *s, ValId x, ValId in, ValId out)
{
	unsigned group = s->lanes / s->threads < s->group ? s->lanes / s->threads : s->group, warps = s->threads / TIR_WARP;
	unsigned n = s->threads * group;
	ValId zero = tir_int(k, DT_I64, 0), part = x, total, none = tir_float(k, DT_F32, 1), part_of[TIR_MAX_THREADS / TIR_WARP];
	(void)f, (void)in;
	if (n < s->lanes)
		part = tir_emit(k, OP_LANE, tir_vector(DT_F32, n), s->lanes - n, &x, 1);
	ValId odd = part;
	for (unsigned v = group; v > 1; v /= 2)
		odd = tir_emit(k, OP_HALF, tir_vector(DT_F32, s->threads * v / 2), 1, &odd, 1);
	ValId unit = tir_emit(k, OP_SPLAT, tir_vector(DT_F32, s->threads), 0, &none, 1), up[2] = {unit, odd}, down[2] = {odd, unit};
	total = tir_emit(k, OP_SLIDE, tir_vector(DT_F32, s->threads), TIR_SLIDE(TIR_WARP - 3, TIR_WARP), up, 2);
	total = tir_binary(k, OP_SUB, total, tir_emit(k, OP_SLIDE, tir_vector(DT_F32, s->threads), TIR_SLIDE(4, TIR_WARP), down, 2));
	ValId turned[2] = {total, odd};
	total = tir_emit(k, OP_SLIDE, tir_vector(DT_F32, s->threads), TIR_SLIDE(5, TIR_WARP), turned, 2);
	total = tir_binary(k, OP_ADD, total, tir_emit(k, OP_SLIDE, tir_vector(DT_F32, s->threads), TIR_SLIDE(3, TIR_WARP / 2), up, 2));
	if (warps > 1) {
		ValId last = total;
		for (unsigned bit = 5; bit-- > 0;)
			last = tir_emit(k, OP_HALF, tir_vector(DT_F32, warps << bit), 2 * bit + 1, &last, 1);
		for (unsigned w = 0; w < warps; w++)
			part_of[w] = tir_emit(k, OP_LANE, tir_scalar(DT_F32), w, &last, 1);
		last = tir_emit(k, OP_JOIN, tir_vector(DT_F32, warps), 0, part_of, warps);
		for (unsigned bit = 0; bit < 5; bit++)
			last = tir_emit(k, OP_WEAVE, tir_vector(DT_F32, warps << (bit + 1)), 2 * bit, (ValId[]){last, last}, 2);
		total = tir_binary(k, OP_SUB, total, last);
	}
	for (unsigned v = 1; v < s->lanes / s->threads; v *= 2) {
		unsigned bit = v < group ? 0 : (unsigned)__builtin_ctz(s->threads * v);
		ValId both[2] = {total, tir_binary(k, OP_MUL, total, tir_float(k, DT_F32, 2))};
		total = tir_emit(k, OP_WEAVE, tir_vector(DT_F32, s->threads * v * 2), 2 * bit, both, 2);
	}
	tir_store(k, out, total, &zero, 0, TIR_LANES_ALONG(0));
}

static void
scans(void **state)
{
	each_shape(state, false, scan_of);
}

/* How many barriers of warps a kernel has that slides what it has of so many lanes of type t. */
static unsigned
warp_barriers(void **state, DType t, unsigned lanes)
{
	enum { THREADS = 64, GROUP = 4 };
	fixture_teardown(state);
	fixture_setup(state);
	Fixture *f = *state;
	GUARD(f);
	TirKernel *k = tir_new(&f->arena, f->names, name_cstr(f->names, "k"));
	k->form = TIR_BLOCK;
	k->threads = THREADS;
	k->group = GROUP;
	unsigned found = 0, from = tir_add_buffer(k, name_cstr(f->names, "x"), t, false), to = tir_add_buffer(k, name_cstr(f->names, "y"), t, true);
	ValId n = tir_int(k, DT_I64, ELEMENTS), one = tir_int(k, DT_I64, 1), zero = tir_int(k, DT_I64, 0);
	ValId in = tir_view(k, from, 1, &n, &one), out = tir_view(k, to, 1, &n, &one);
	ValId v = tir_load(k, in, &zero, 0, TIR_LANES_ALONG(0), lanes);
	for (unsigned have = lanes; have > THREADS; have /= 2) {
		ValId other;
		tir_halves(k, v, &v, &other);
		v = tir_binary(k, OP_BOR, v, other);
	}
	for (unsigned by = 1; by < TIR_WARP; by *= 2)
		v = tir_emit(k, OP_SLIDE, tir_vector(t, THREADS), TIR_SLIDE(by, TIR_WARP), (ValId[]){v, v}, 2);
	tir_store(k, out, v, &zero, 0, TIR_LANES_ALONG(0));
	const TirKernel *spread = tile_spread(k, &f->arena);
	fixture_verify(f, spread);
	for (ValId i = 1; i < spread->inst.n; i++)
		found += tir_inst(spread, i)->op == OP_BARRIER && tir_inst(spread, i)->imm.i == TIR_WARP_BARRIER;
	return found;
}

/* One, behind narrow groups that a thread has several of. */
static void
brings(void **state)
{
	assert_int_equal(warp_barriers(state, DT_U16, 1024), 1);
	assert_int_equal(warp_barriers(state, DT_U16, 256), 0);
	assert_int_equal(warp_barriers(state, DT_U32, 1024), 0);
}

/* Lanes that begin anywhere, which warps take in turns: under masks and without, in place, read back elsewhere; but those of
 * which a mask is read, which threads take one at a time. */
static void
turns_of(void **state, const Shape *s, DType t)
{
	fixture_teardown(state);
	fixture_setup(state);
	Fixture *f = *state;
	GUARD(f);
	TirKernel *k = tir_new(&f->arena, f->names, name_cstr(f->names, "k"));
	k->form = TIR_BLOCK;
	k->threads = (uint16_t)s->threads;
	k->group = (uint16_t)s->group;
	k->anywhere = true;
	tir_add_buffer(k, name_cstr(f->names, "x"), t, false);
	tir_add_buffer(k, name_cstr(f->names, "y"), DT_F32, true);
	ValId zero = tir_int(k, DT_I64, 0), one = tir_int(k, DT_I64, 1), three = tir_int(k, DT_I64, 3);
	ValId n = tir_int(k, DT_I64, ELEMENTS / 2), in = tir_view(k, 0, 1, &n, &one), out = tir_view(k, 1, 1, &n, &one);
	ValId iota = tir_emit(k, OP_IOTA, tir_vector(DT_I32, s->lanes), 0, NULL, 0), most = tir_int(k, DT_I32, (int64_t)s->lanes - 5);
	ValId mask = tir_binary(k, OP_AND, tir_binary(k, OP_LT, iota, most), tir_unary(k, OP_NOT, tir_binary(k, OP_LT, iota, tir_int(k, DT_I32, 2))));
	ValId a = tir_cast(k, DT_F32, tir_load(k, in, &one, mask, TIR_LANES_ALONG(0), s->lanes));
	ValId b = tir_cast(k, DT_F32, tir_load(k, in, &three, 0, TIR_LANES_ALONG(0), s->lanes));
	ValId i = tir_for(k, zero, three, one, NULL, 0), had = tir_load(k, out, &three, mask, TIR_LANES_ALONG(0), s->lanes);
	had = tir_binary(k, OP_ADD, tir_binary(k, OP_ADD, had, a), tir_binary(k, OP_MUL, b, tir_cast(k, DT_F32, i)));
	tir_store(k, out, had, &three, mask, TIR_LANES_ALONG(0));
	tir_end_for(k, NULL, 0);
	ValId back = tir_binary(k, OP_SUB, tir_int(k, DT_I64, (int64_t)s->lanes + 1), tir_cast(k, DT_I64, iota));
	ValId there = tir_binary(k, OP_LT, tir_load(k, out, &back, 0, 0, s->lanes), b);
	there = tir_binary(k, OP_OR, there, tir_binary(k, OP_LT, iota, tir_int(k, DT_I32, 1)));
	tir_store(k, out, tir_binary(k, OP_SUB, a, b), &zero, there, TIR_LANES_ALONG(0));
	same(f, k);
	const TirKernel *to = tile_spread(k, &f->arena);
	unsigned taken = 0, each = s->lanes / s->threads < s->group ? s->lanes / s->threads : s->group, vectors = s->lanes / s->threads / each;
	for (ValId v = 1; v < to->inst.n; v++)
		taken += tir_inst(to, v)->op == OP_BARRIER && tir_inst(to, v)->imm.i == TIR_WARP_BARRIER;
	assert_int_equal(taken, each > 1 ? 4 * 2 * vectors : 0);
}

static void
turns(void **state)
{
	static const DType types[] = {DT_F32, DT_U8, DT_I16, DT_I64, DT_F8E4M3, DT_BF16};
	for (unsigned n = 0; n < sizeof shapes / sizeof *shapes; n++)
		for (unsigned t = 0; t < sizeof types / sizeof *types && !shapes[n].cluster; t++)
			if (shapes[n].lanes <= ELEMENTS / 4)
				turns_of(state, &shapes[n], types[t]);
}

/* Rows of columns, folded into one, by halves that can't change places, which all rows take from themselves; what the columns
 * of a row beyond the last have is left out. */
static void
fold_columns(void **state, const Shape *s, unsigned columns)
{
	ValId x, in, out, views[2];
	fixture_teardown(state);
	fixture_setup(state);
	Fixture *f = *state;
	GUARD(f);
	TirKernel *k = block_kernel(f, &(Shape){s->threads, s->group, s->threads * s->group * (s->cluster ? s->cluster : 1), s->cluster}, &x, &in, &out);
	k->columns = (uint16_t)columns;
	k->tight = s->group > 1;
	ValId zero = tir_int(k, DT_I64, 0), c = tir_int(k, DT_I64, columns);
	const ValId extent[2] = {tir_int(k, DT_I64, s->lanes / columns), c}, stride[2] = {c, tir_int(k, DT_I64, 1)};
	for (unsigned b = 0; b < 2; b++)
		views[b] = tir_view(k, b, 2, extent, stride);
	ValId iota = tir_emit(k, OP_IOTA, tir_vector(DT_I64, s->lanes), s->group > 1 ? s->group : 0, NULL, 0);
	const ValId at[2] = {tir_binary(k, OP_IDIV, iota, c), zero};
	ValId mask = tir_binary(k, OP_LT, tir_binary(k, OP_IMOD, iota, c), tir_int(k, DT_I64, columns - s->group));
	ValId all = tir_load(k, views[0], at, mask, TIR_LANES_ALONG(1), s->lanes), v = all;
	for (unsigned n = s->lanes; n > columns; n /= 2) {
		ValId lo, hi;
		tir_halves(k, v, &lo, &hi);
		v = tir_binary(k, OP_SUB, lo, tir_binary(k, OP_MUL, hi, tir_float(k, DT_F32, 0.75)));
	}
	for (unsigned n = columns; n < s->lanes; n *= 2)
		v = tir_emit(k, OP_WEAVE, tir_vector(DT_F32, 2 * n), 2 * (int64_t)__builtin_ctz(n), (ValId[]){v, v}, 2);
	tir_store(k, views[1], tir_binary(k, OP_SUB, all, v), at, 0, TIR_LANES_ALONG(1));
	same(f, k);
}

static void
columns(void **state)
{
	static const Shape row[] = {{64, 1, 512, 0},  {64, 4, 1024, 0}, {128, 8, 2048, 0}, {64, 2, 512, 2}, {256, 1, 2048, 4},
	                            {256, 4, 2048, 2}, {32, 1, 64, 0},   {32, 4, 128, 0},   {128, 1, 512, 4}};
	for (unsigned n = 0; n < sizeof row / sizeof *row; n++)
		for (unsigned c = TIR_WARP; c * (row[n].cluster ? row[n].cluster : 1) <= row[n].threads; c *= 2)
			fold_columns(state, &row[n], c);
}

/* --- barriers --- */

/* A fold of all lanes, `folds` times in each task: the blocks of a cluster have read what the first handed to them when
 * they hand out for the second, so that it alone needs no other barrier of the cluster from task to task. */
static unsigned
cluster_barriers(void **state, const Shape *s, unsigned folds)
{
	ValId x, in, out;
	fixture_teardown(state);
	fixture_setup(state);
	Fixture *f = *state;
	GUARD(f);
	TirKernel *k = block_kernel(f, s, &x, &in, &out);
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0), hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId i = tir_for(k, lo, hi, tir_int(k, DT_I64, 1), NULL, 0), v = tir_cast(k, DT_F32, i);
	for (unsigned fold = 0; fold < folds; fold++) {
		v = tir_binary(k, OP_SUB, x, v);
		for (unsigned n = s->lanes; n > 1; n /= 2) {
			ValId low, high;
			tir_halves(k, v, &low, &high);
			v = tir_binary(k, fold ? OP_ADD : OP_MAX, low, high);
		}
	}
	tir_store(k, out, v, &i, 0, 0);
	tir_end_for(k, NULL, 0);
	same(f, k);
	k = tile_spread(k, &f->arena);
	unsigned barriers = 0;
	for (ValId b = 1; b < k->inst.n; b++)
		barriers += tir_inst(k, b)->op == OP_BARRIER && tir_inst(k, b)->imm.i == 1;
	return barriers;
}

static void
barriers_of_clusters(void **state)
{
	static const Shape two = {128, 4, 512, 2}, eight = {64, 2, 1024, 8}, warps = {32, 4, 256, 2}; /* which hand over at once what they have */
	for (unsigned folds = 1; folds < 5; folds++) {
		assert_int_equal(cluster_barriers(state, &two, folds) > 0, folds % 2);
		assert_int_equal(cluster_barriers(state, &eight, folds) > 0, folds % 2);
		assert_int_equal(cluster_barriers(state, &warps, folds) > 0, folds % 2);
	}
}

/* In the loop of a block that doubles 32 elements in place in each of three turns, from this value on. */
static unsigned
barriers_of_turns(Fixture *f, const char *from)
{
	const char *text = arena_text(&f->arena,
	                              "kernel k block 32 by 1\nbuffer 0 y : f32 written\n{\n  %%1:i64 = const 64 %%2:i64 = const 1\n"
	                              "  %%3 = buffer 0 %%4:f32 = view %%3, %%1, %%2 %%5:i64 = const 0 %%6:i64 = const 3\n"
	                              "  %%7 = for %%5, %%6, %%2 {\n  %%8:i64 = blockarg 0\n  %%9:f32x32 = load %%4, %s along 0\n"
	                              "  %%10:f32x32 = + %%9, %%9\n  %%11 = store %%4, %%10, %s along 0\n  %%12 = yield\n  }\n}\n",
	                              from, from);
	const TirKernel *k = tile_spread(fixture_read(f, text), &f->arena);
	float y[64] = {0};
	const char *error = NULL;
	TirMemory memory = {y, sizeof y};
	TirRun r = {.buffer = &memory, .task_hi = 1};
	unsigned n = 0;
	if (!tir_interpret(k, &f->arena, &r, &error))
		fail_msg("%s", error);
	for (uint32_t i = 0; i < k->region.at[1].inst.n; i++)
		n += tir_inst(k, k->region.at[1].inst.at[i])->op == OP_BARRIER;
	return n;
}

/* What is a thread's own in all turns needs none. */
static void
barriers(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	assert_int_equal(barriers_of_turns(f, "%5"), 0);
	assert_int_equal(barriers_of_turns(f, "%8"), 1);
}

/* --- what threads must not do --- */

#define THREADS                                                                                                       \
	"kernel k threads 32 by 1\nbuffer 0 y : f32 written\nbuffer 1 s : f32 written shared 32\n{\n"                  \
	"  %1:i64 = thread\n  %2:i64 = const 32\n  %3:i64 = const 1\n  %4 = buffer 0\n  %5:f32 = view %4, %2, %3\n"      \
	"  %6 = buffer 1\n  %7:f32 = view %6, %2, %3\n  %8:f32 = cast %1\n  %9:i64 = const 31\n  %10:i64 = - %9, %1\n"

/* Two warps: the mirror image of a thread in the other one is %10, in its own %16; that one begins with thread %15. */
#define WARPS                                                                                                         \
	"kernel k threads 64 by 1\nbuffer 0 y : f32 written\nbuffer 1 s : f32 written shared 64\n{\n"                  \
	"  %1:i64 = thread\n  %2:i64 = const 64\n  %3:i64 = const 1\n  %4 = buffer 0\n  %5:f32 = view %4, %2, %3\n"      \
	"  %6 = buffer 1\n  %7:f32 = view %6, %2, %3\n  %8:f32 = cast %1\n  %9:i64 = const 63\n  %10:i64 = - %9, %1\n"    \
	"  %11:i64 = const 32\n  %12:i64 = mod %1, %11\n  %13:i64 = const 31\n  %14:i64 = - %13, %12\n"                  \
	"  %15:i64 = - %1, %12\n  %16:i64 = + %15, %14\n  %17:i64 = const 0\n"

/* Two blocks: s is reached by both, o is each one's own; y's element is %11, that of the other block's thread %13. */
#define CLUSTER                                                                                                       \
	"kernel k threads 32 by 1 cluster 2\nbuffer 0 y : f32 written\nbuffer 1 s : f32 written shared 32 wide\n"       \
	"buffer 2 o : f32 written shared 32\nbuffer 3 h : f32 written shared 2 wide\nbuffer 4 m : f32 written shared 4 wide\n{\n" \
	"  %1:i64 = thread\n  %2:i64 = const 32\n  %3:i64 = const 1\n  %4:i64 = const 2\n  %5 = buffer 0\n"             \
	"  %6:i64 = const 64\n  %7:f32 = view %5, %6, %3\n  %8 = buffer 1\n  %9:f32 = view %8, %4, %2, %2, %3\n"        \
	"  %10:i64 = rank\n  %11:i64 = * %10, %2\n  %12:i64 = + %11, %1\n  %13:i64 = - %3, %10\n  %14:f32 = cast %12\n" \
	"  %15 = buffer 2\n  %16:f32 = view %15, %2, %3\n  %17:i64 = const 31\n  %18:i64 = - %17, %1\n"

/* Each block has an element of h for each of both. */
#define HANDED "%20 = buffer 3 %21:f32 = view %20, %4, %4, %4, %3 %22:bool = < %1, %4 %23 = store %21, %14, %1, %10, %22 masked "
#define HANDED_AFTER "%21 = buffer 3 %22:f32 = view %21, %4, %4, %4, %3 %23:bool = < %1, %4 %24 = store %22, %14, %1, %10, %23 masked "
/* And of m, where each has two. */
#define HANDED_HALF                                                                                                             \
	"%20 = buffer 4 %21:i64 = const 4 %22:f32 = view %20, %4, %21, %21, %3 %23:bool = < %1, %4 %24:i64 = * %10, %4 %25 = store " \
	"%22, %14, %1, %24, %23 masked "

/* The same as they are waited for. */
#define HANDED_TWO                                                                                                              \
	"%30 = buffer 4 %31:i64 = const 4 %32:f32 = view %30, %4, %31, %31, %3 %33:i64 = * %10, %4 %34 = store %32, %14, %1, %33, "      \
	"%22 masked %35:i64 = + %33, %3 %36 = store %32, %14, %1, %35, %22 masked %37 = barrier 6 "
#define AGAIN "store %21, %14, %1, %10, %22 masked "

#define POSTS                                                                                                         \
	"kernel k threads 32 by 1\nbuffer 0 w : u64 written posted\n{\n  %1:i64 = thread\n  %2:i64 = const 32\n"       \
	"  %3:i64 = const 1\n  %4 = buffer 0\n  %5:u64 = view %4, %2, %3\n  %6:u64 = const 7\n  %7:u64 = const 0\n"     \
	"  %8:i64 = const 0\n  %9:bool = == %1, %8\n"

typedef struct {
	const char *body, *error;
} Found;

static void
find_each(void **state, const char *head, const Found *row, unsigned nrow)
{
	for (unsigned n = 0; n < nrow; n++) {
		fixture_teardown(state);
		fixture_setup(state);
		Fixture *f = *state;
		GUARD(f);
		TirKernel *k = fixture_read(f, arena_text(&f->arena, "%s%s\n}\n", head, row[n].body));
		float y[64] = {0};
		const char *error = NULL;
		TirMemory memory[3] = {{y, sizeof y}};
		TirRun r = {.buffer = memory, .task_hi = 1};
		bool ok = tir_interpret(k, &f->arena, &r, &error);
		if (row[n].error)
			assert_string_equal(ok ? "runs" : error, row[n].error);
		else if (!ok)
			fail_msg("%s", error);
	}
}

static void
finds(void **state)
{
	static const Found row[] = {
		{"%20 = store %7, %8, %1 %21 = barrier %22:f32 = load %7, %10 %23 = store %5, %22, %1", NULL},
		{"%20:f32 = shuffle 5 %8 %21 = store %5, %20, %1", NULL},
		{"%20:f32 = cast %2 %21:f32 = shuffle 96 %20 %22 = store %5, %21, %1", NULL},
		{"%20:f32 = shuffle 96 %8", "kernel k: %20 shuffle: threads of a warp do not have the same"},
		{"%20:i64 = shuffle 96 %2", "kernel k: %20 shuffle: is not of 32 bits"},
		{"%20:f32 = shuffle 97 %8", "kernel k: %20 shuffle: leaves the warp"},
		{"%20 = store %7, %8, %1 %21:f32 = load %7, %10",
		 "kernel k: %21 load: thread 0 reads byte 124 of s, which thread 31 wrote since the last barrier"},
		{"%20:f32 = load %5, %10 %21 = store %5, %8, %1",
		 "kernel k: %21 store: thread 0 writes byte 0 of y, which another one read since the last barrier"},
		{"%20 = store %5, %8, %3", "kernel k: %20 store: thread 1 writes byte 4 of y, which thread 0 wrote since the last barrier"},
		{"%20:f32 = load %7, %1", "kernel k: %20 load: thread 0 reads byte 0 of s, which nobody wrote"},
		{"%20:bool = < %1, %3 %21 = if %20 { %22 = barrier %23 = yield } else { %24 = yield }",
		 "kernel k: %22 barrier: not all threads meet it"},
		{"%20 = for %3, %1, %3 { %21:i64 = blockarg 0 %22 = yield }",
		 "kernel k: %20 for: threads differ in how often they run it"},
		{"%20 = store %5, %8, %2", "kernel k: %20 store: index 0 of thread 0 is 32, the extent 32"},
	};
	find_each(state, THREADS, row, sizeof row / sizeof *row);
}

static void
finds_what_warps_share(void **state)
{
	static const Found row[] = {
		{"%20 = store %7, %8, %1 %21 = barrier -2 %22:f32 = load %7, %16 %23 = store %5, %22, %1", NULL},
		{"%20 = store %7, %8, %1 %21 = barrier -2 %22:f32 = load %7, %15 %23 = barrier -2 %24 = store %7, %22, %1", NULL},
		{"%20 = store %7, %8, %1 %21 = barrier -2 %22:f32 = load %7, %10",
		 "kernel k: %22 load: thread 0 reads byte 252 of s, which thread 63 wrote since the last barrier"},
		{"%20 = store %7, %8, %1 %21 = barrier -2 %22:f32 = load %7, %15 %24 = store %7, %22, %1",
		 "kernel k: %24 store: thread 0 writes byte 0 of s, which another one read since the last barrier"},
		{"%20 = store %7, %8, %1 %21 = barrier %22:f32 = load %7, %17 %23 = barrier -2 %24 = store %7, %22, %1",
		 "kernel k: %24 store: thread 0 writes byte 0 of s, which another one read since the last barrier"},
		{"%20:bool = < %1, %3 %21 = if %20 { %22 = barrier -2 %23 = yield } else { %24 = yield }",
		 "kernel k: %22 barrier: not all threads meet it"},
	};
	find_each(state, WARPS, row, sizeof row / sizeof *row);
}

static void
finds_posts(void **state)
{
	static const Found row[] = {
		{"%20 = store %5, %6, %8, %9 masked %21:u64 = load %5, %8", NULL},
		{"%20 = store %5, %6, %1 %21:u64 = load %5, %8", NULL},
		{"%20:u64 = load %5, %8", "kernel k: %20 load: waits for what no task has posted"},
		{"%20 = store %5, %6, %8", "kernel k: %20 store: posts 0, or once more"},
		{"%20 = store %5, %7, %1", "kernel k: %20 store: posts 0, or once more"},
		{"%20:u64x2 = splat %6 %21 = store %5, %20, %1", "kernel k: %21 store: posts a vector"},
	};
	find_each(state, POSTS, row, sizeof row / sizeof *row);
}

static void
finds_what_is_handed(void **state)
{
	static const Found row[] = {
		{HANDED "%24 = barrier 5 %25:f32 = load %21, %10, %13 %26 = barrier 1 %27 = " AGAIN "%28 = barrier 5", NULL},
		{HANDED "%24 = barrier 5 %25:f32 = load %21, %10, %13 %26 = barrier " HANDED_TWO "%38 = " AGAIN "%39 = barrier 5", NULL},
		/* no wait */
		{HANDED "%26 = barrier %27:f32 = load %21, %10, %13 %28 = barrier 5",
		 "kernel k: %27 load: thread 0 reads byte 4 of h, which thread 32 handed over, and nobody has waited for"},
		{HANDED "%27:f32 = load %21, %10, %10 %28 = barrier 5",
		 "kernel k: %27 load: thread 0 reads byte 0 of h, which thread 0 handed over, and nobody has waited for"},
		{HANDED "%24 = barrier 5 %26 = barrier 1 %27 = " AGAIN, "kernel k: ends before elements of h have come"},
		{"%20 = barrier 5", "kernel k: %20 barrier: an element of block 0 has not come to block 0"},
		/* more than are counted */
		{HANDED "%24 = " AGAIN "%25 = barrier 5",
		 "kernel k: %24 store: thread 0 writes byte 0 of h, which thread 0 handed over, and nobody has waited for"},
		/* before what was there has been read, as all know, and waited for */
		{HANDED "%24 = barrier 5 %25 = barrier %26 = " AGAIN "%27 = barrier 5",
		 "kernel k: %26 store: thread 0 writes byte 0 of h, which another block may still wait for or read"},
		{HANDED "%24 = barrier 5 %25:f32 = load %21, %10, %13 " HANDED_TWO "%38 = " AGAIN "%39 = barrier 5",
		 "kernel k: %38 store: thread 0 writes byte 0 of h, which another block may still wait for or read"},
		{HANDED "%24 = barrier 5 %25 = barrier %26:f32 = load %21, %10, %13 " HANDED_TWO "%38 = " AGAIN "%39 = barrier 5",
		 "kernel k: %38 store: thread 0 writes byte 0 of h, which another block may still wait for or read"},
		/* a wait shows nothing else */
		{"%19 = store %16, %14, %1 " HANDED "%24 = barrier 5 %25:f32 = load %16, %18",
		 "kernel k: %25 load: thread 0 reads byte 124 of o, which thread 31 wrote since the last barrier"},
		{"%19 = store %9, %14, %13, %1 " HANDED "%24 = barrier 5 %25 = barrier %26:f32 = load %9, %10, %18",
		 "kernel k: %26 load: thread 0 reads byte 124 of s, which thread 63 wrote since the last barrier of the cluster"},
		/* how they are reached */
		{HANDED "%24 = barrier 5 %25:f32 = load %21, %13, %13", "kernel k: %25 load: is handed to another block"},
		{HANDED "%24 = store %21, %14, %10, %10 %25 = barrier 5", "kernel k: %24 store: hands an element to the own block alone"},
		{HANDED "%24 = barrier 5 %25:f32x2 = load %21, %10, %13 along 1", "kernel k: %25 load: is of no single element that blocks hand to each other"},
		{HANDED "%24 = barrier 5 %25 = fetch %21, %10, %13", "kernel k: %25 fetch: reaches elements that blocks hand to each other"},
	};
	find_each(state, CLUSTER, row, sizeof row / sizeof *row);
}

static void
finds_in_clusters(void **state)
{
	static const Found row[] = {
		{"%20 = store %9, %14, %13, %1 %21 = barrier 1 %22:f32 = load %9, %10, %18 %23 = store %7, %22, %12", NULL},
		{"%20 = store %16, %14, %1 %21 = barrier %22:f32 = load %16, %18 %23 = store %7, %22, %12", NULL},
		{"%20 = store %9, %14, %13, %1 %21 = barrier %22:f32 = load %9, %10, %18",
		 "kernel k: %22 load: thread 0 reads byte 124 of s, which thread 63 wrote since the last barrier of the cluster"},
		{"%20 = store %9, %14, %10, %1 %21 = barrier 1 %22:f32 = load %9, %13, %1 %23 = barrier %24 = store %9, %14, %10, %1",
		 "kernel k: %24 store: thread 0 writes byte 0 of s, which another block read since the last barrier of the cluster"},
		{"%20:f32 = load %7, %12 %21 = barrier %22:i64 = - %6, %3 %23:i64 = - %22, %12 %24 = store %7, %14, %23",
		 "kernel k: %24 store: thread 0 writes byte 252 of y, which another block read since the last barrier of the cluster"},
		{"%20 = store %7, %14, %1", "kernel k: %20 store: thread 32 writes byte 0 of y, which thread 0 wrote since the last barrier"},
		{"%20:f32 = load %9, %13, %1", "kernel k: %20 load: thread 0 reads byte 128 of s, which nobody wrote"},
		{HANDED "%24 = barrier 5 %25:f32 = load %21, %10, %13 %26 = store %7, %25, %12", NULL},
		{HANDED "%24 = barrier 5 %25 = barrier 5", "kernel k: %25 barrier: an element of block 0 has not come to block 0"},
		{HANDED_HALF "%26 = barrier 6", "kernel k: %26 barrier: an element of block 0 has not come to block 0"},
		{HANDED_HALF "%26:i64 = + %24, %3 %27 = store %22, %14, %1, %26, %23 masked %28 = barrier 6", NULL},
		{"%20 = store %7, %14, %12 " HANDED_AFTER "%25 = barrier 5 %26:i64 = * %13, %2 %27:i64 = + %26, %1 %28:f32 = load %7, %27",
		 "kernel k: %28 load: thread 0 reads byte 128 of y, which thread 32 wrote since the last barrier"},
		{"%20 = barrier 2", "kernel k: %20 barrier: is for no elements of blocks"},
		{"%20 = barrier 7", "kernel k: %20 barrier: is for no buffer"},
		{"%20:f32 = view %8, %6, %3", "kernel k: %20 view: is not by rank and element"},
	};
	find_each(state, CLUSTER, row, sizeof row / sizeof *row);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {TEST(sums), TEST(loops), TEST(tasks), TEST(moves), TEST(scans), TEST(brings), TEST(turns), TEST(columns), TEST(barriers),
	                                   TEST(barriers_of_clusters), TEST(finds), TEST(finds_what_warps_share), TEST(finds_in_clusters), TEST(finds_what_is_handed), TEST(finds_posts)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
