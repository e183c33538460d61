/* memory_test.c: loads and stores of every type in every form of address, against the interpreter, in
 * buffers that end at a page nobody may touch. Arguments: processors; `all` before them for all widths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/codegen/guard.h"
#include "tests/codegen/rig.h"
#include "tests/codegen/values.h"

enum { COUNT = 512, SHORT = 203 }; /* SHORT: no multiple of any width */

static const char *cpu;
static unsigned nwidth;

typedef struct {
	DType t;
	unsigned lanes;
} Case;

typedef struct {
	Rig *r;
	DType t;
	unsigned lanes;
	int64_t along; /* flags: lanes along axis 0 */
	ValId i, one, n, wide;
} Build;

/* --- building --- */

static ValId
int64(Build *b, int64_t v)
{
	return tir_int(b->r->k, DT_I64, v);
}

static unsigned
add_buffer(Build *b, DType t, bool written)
{
	TirKernel *k = b->r->k;
	return tir_add_buffer(k, name_cstr(b->r->names, arena_text(&b->r->arena, "b%u", k->buffer.n)), t, written);
}

static ValId
plain_view(Build *b, unsigned buffer, ValId extent)
{
	return tir_view(b->r->k, buffer, 1, &extent, &b->one);
}

static ValId
view_2d(Build *b, unsigned buffer, ValId s0, ValId s1)
{
	return tir_view(b->r->k, buffer, 2, (ValId[]){b->wide, b->wide}, (ValId[]){s0, s1});
}

static Build
open_loop(Rig *r, const Case *c, int64_t count)
{
	TirKernel *k = r->k;
	Build b = {.r = r, .t = c->t, .lanes = c->lanes, .along = c->lanes ? TIR_LANES_ALONG(0) : 0};
	ValId step = int64(&b, c->lanes ? c->lanes : 1), lo, hi;
	b.one = int64(&b, 1);
	b.n = int64(&b, count);
	b.wide = int64(&b, 2 * COUNT);
	lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	b.i = tir_for(k, tir_binary(k, OP_MUL, lo, step), tir_binary(k, OP_MUL, hi, step), step, NULL, 0);
	return b;
}

static ValId
load_here(Build *b, unsigned buffer, ValId mask)
{
	return tir_load(b->r->k, plain_view(b, buffer, b->n), &b->i, mask, b->along, b->lanes);
}

static ValId
as_lanes(Build *b, ValId scalar)
{
	TirType t = {tir_inst(b->r->k, scalar)->type.dtype, (uint16_t)b->lanes};
	return b->lanes ? tir_emit(b->r->k, OP_SPLAT, t, 0, &scalar, 1) : scalar;
}

static void
store_here(Build *b, ValId value, ValId mask)
{
	ValId view = plain_view(b, add_buffer(b, b->t, true), b->n);
	tir_store(b->r->k, view, value, &b->i, mask, b->along);
}

/* --- running --- */

static uint64_t
mixed(uint64_t x)
{
	x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
	return x ^ x >> 33;
}

/* i64 buffers hold indices below COUNT, others any bits. */
static void
fill(DType t, bool written, void *data, int64_t count, unsigned buffer)
{
	if (t == DT_I64 && !written)
		for (int64_t i = 0; i < count; i++)
			((int64_t *)data)[i] = (int64_t)(mixed((uint64_t)i * 5 + buffer) % COUNT);
	else
		fill_values(t, data, count, 0, buffer + 1);
}

static void
compare(Rig *r, const RigRun *got, const RigRun *want)
{
	for (uint32_t b = 0; b < r->k->buffer.n; b++) {
		DType t = r->k->buffer.at[b].dtype;
		int64_t at = rig_differ(t, got->data[b], want->data[b], got->count[b]);
		if (at < 0)
			continue;
		Text text;
		text_init(&text, &r->arena);
		tir_print(r->k, &text);
		fail_msg("%s: buffer %u (%s), element %lld differs in\n%s", cpu, b, dtype_info[t].text, (long long)at,
		         text_get(&text));
	}
	assert_int_equal(got->fault, want->fault);
	assert_int_equal(got->cut, want->cut);
}

static void
check(Rig *r, const int64_t *count, int64_t ntask, const void *scalar)
{
	RigRun got = {.ntask = ntask}, want = {.ntask = ntask};
	Guard page[2][RIG_MAX];
	got.scalar[0] = want.scalar[0] = scalar;
	rig_load(r, cpu, ntask);
	for (uint32_t b = 0; b < r->k->buffer.n; b++) {
		const TirBuffer *x = &r->k->buffer.at[b];
		got.count[b] = want.count[b] = count[b];
		for (unsigned side = 0; side < 2; side++) {
			guard_open(&page[side][b], rig_bytes(x->dtype, count[b]));
			fill(x->dtype, x->written, page[side][b].data, count[b], b);
		}
		got.data[b] = page[0][b].data;
		want.data[b] = page[1][b].data;
	}
	rig_launch(r, &got);
	rig_interpret(r, &want);
	compare(r, &got, &want);
	for (uint32_t b = 0; b < r->k->buffer.n; b++)
		for (unsigned side = 0; side < 2; side++)
			guard_close(&page[side][b]);
}

static void
check_all_long(Rig *r, unsigned long_buffer, unsigned lanes, const void *scalar)
{
	int64_t count[RIG_MAX];
	for (unsigned b = 0; b < RIG_MAX; b++)
		count[b] = b == long_buffer ? 2 * COUNT : COUNT;
	check(r, count, COUNT / (lanes ? lanes : 1), scalar);
}

/* --- loads --- */

static void
all_loads(Rig *r, const void *arg)
{
	const Case *c = arg;
	unsigned stride = tir_add_scalar(r->k, name_cstr(r->names, "s"), DT_I64);
	Build b = open_loop(r, c, COUNT);
	unsigned src = add_buffer(&b, c->t, false), flag = add_buffer(&b, DT_BOOL, false),
		 where = add_buffer(&b, DT_I64, false);
	ValId s = tir_emit(r->k, OP_SCALAR, tir_scalar(DT_I64), stride, NULL, 0);
	ValId mask = load_here(&b, flag, 0), idx = load_here(&b, where, 0), zero = int64(&b, 0);
	ValId minus = int64(&b, -1), last = int64(&b, COUNT - 1), four = int64(&b, 4);
	ValId wide = plain_view(&b, src, b.wide), back = view_2d(&b, src, b.one, minus);
	ValId twice = view_2d(&b, src, zero, s), rows = view_2d(&b, src, four, b.one);
	int64_t along1 = c->lanes ? TIR_LANES_ALONG(1) : 0;
	ValId quarter = tir_binary(r->k, OP_IMOD, idx, as_lanes(&b, int64(&b, COUNT / 4)));
	store_here(&b, tir_load(r->k, wide, &b.i, mask, b.along, c->lanes), 0);
	store_here(&b, tir_load(r->k, wide, &b.i, 0, b.along, c->lanes), mask);
	store_here(&b, tir_load(r->k, wide, &b.i, 0, 0, c->lanes), 0);
	store_here(&b, tir_load(r->k, wide, &idx, 0, 0, c->lanes), 0);
	store_here(&b, tir_load(r->k, wide, &idx, mask, 0, c->lanes), 0);
	store_here(&b, tir_load(r->k, back, (ValId[]){last, b.i}, mask, along1, c->lanes), 0);
	store_here(&b, tir_load(r->k, twice, (ValId[]){zero, b.i}, 0, along1, c->lanes), 0);
	store_here(&b, tir_load(r->k, twice, (ValId[]){zero, b.i}, mask, along1, c->lanes), mask);
	store_here(&b, tir_load(r->k, rows, (ValId[]){quarter, b.i}, 0, along1, c->lanes), 0);
	store_here(&b, tir_load(r->k, rows, (ValId[]){zero, b.i}, mask, along1, c->lanes), 0);
	int64_t ahead = c->lanes ? along1 | TIR_AHEAD(0) : 0; /* far outside, too */
	store_here(&b, tir_load(r->k, rows, (ValId[]){zero, b.i}, 0, ahead, c->lanes), 0);
	ValId far = view_2d(&b, src, int64(&b, INT64_C(1) << 40), b.one);
	store_here(&b, tir_load(r->k, far, (ValId[]){zero, b.i}, 0, ahead, c->lanes), mask);
	tir_fetch(r->k, far, (ValId[]){b.i, zero});
	tir_end_for(r->k, NULL, 0);
	check_all_long(r, src, c->lanes, &(int64_t){2});
}

/* --- stores --- */

static void
all_stores(Rig *r, const void *arg)
{
	const Case *c = arg;
	unsigned stride = tir_add_scalar(r->k, name_cstr(r->names, "s"), DT_I64);
	Build b = open_loop(r, c, COUNT);
	unsigned src = add_buffer(&b, c->t, false), flag = add_buffer(&b, DT_BOOL, false),
		 where = add_buffer(&b, DT_I64, false);
	ValId s = tir_emit(r->k, OP_SCALAR, tir_scalar(DT_I64), stride, NULL, 0);
	ValId mask = load_here(&b, flag, 0), idx = load_here(&b, where, 0), v = load_here(&b, src, 0);
	ValId zero = int64(&b, 0), minus = int64(&b, -1), last = int64(&b, COUNT - 1);
	int64_t along1 = c->lanes ? TIR_LANES_ALONG(1) : 0;
	unsigned to[6];
	for (unsigned n = 0; n < 6; n++)
		to[n] = add_buffer(&b, c->t, true);
	tir_store(r->k, plain_view(&b, to[0], b.n), v, &idx, 0, 0);
	tir_store(r->k, plain_view(&b, to[1], b.n), v, &idx, mask, 0);
	tir_store(r->k, plain_view(&b, to[2], b.n), v, &b.i, 0, 0);
	tir_store(r->k, plain_view(&b, to[3], b.n), v, &b.i, mask, 0);
	tir_store(r->k, view_2d(&b, to[4], b.one, minus), v, (ValId[]){last, b.i}, mask, along1);
	tir_store(r->k, view_2d(&b, to[5], zero, s), v, (ValId[]){zero, b.i}, 0, along1);
	tir_end_for(r->k, NULL, 0);
	check_all_long(r, to[5], c->lanes, &(int64_t){2});
}

/* --- stores past the caches: to views that say they are large, and to one that is not --- */

static void
all_streams(Rig *r, const void *arg)
{
	const Case *c = arg;
	int64_t count[RIG_MAX];
	if (!c->lanes)
		return;
	Build b = open_loop(r, c, COUNT);
	unsigned src = add_buffer(&b, c->t, false);
	ValId v = load_here(&b, src, 0), zero = int64(&b, 0), large = int64(&b, 1 << 20);
	for (int64_t n = 0; n < 4; n++) {
		ValId extent[2] = {n < 3 ? large : b.one, b.wide}, stride[2] = {b.wide, b.one};
		ValId view = tir_view(r->k, add_buffer(&b, c->t, true), 2, extent, stride);
		ValId at = tir_binary(r->k, OP_ADD, b.i, int64(&b, n < 2 ? n : 2 * n + 4));
		tir_store(r->k, view, v, (ValId[]){zero, at}, 0, TIR_LANES_ALONG(1) | TIR_STREAM);
	}
	tir_end_for(r->k, NULL, 0);
	for (unsigned n = 0; n < RIG_MAX; n++)
		count[n] = 2 * COUNT;
	check(r, count, COUNT / c->lanes, NULL);
}

/* Several to one view, which wait for one another: over one another, and read in between. */
static void
all_waits(Rig *r, const void *arg)
{
	const Case *c = arg;
	int64_t count[RIG_MAX], along = TIR_LANES_ALONG(1);
	if (!c->lanes)
		return;
	Build b = open_loop(r, c, COUNT);
	ValId v = load_here(&b, add_buffer(&b, c->t, false), 0), w = load_here(&b, add_buffer(&b, c->t, false), 0);
	ValId zero = int64(&b, 0), later = tir_binary(r->k, OP_ADD, b.i, int64(&b, COUNT));
	for (unsigned n = 0; n < 2; n++) {
		ValId extent[2] = {n ? b.one : int64(&b, 1 << 20), b.wide}, stride[2] = {b.wide, b.one};
		ValId view = tir_view(r->k, add_buffer(&b, c->t, true), 2, extent, stride);
		const ValId here[2] = {zero, b.i}, there[2] = {zero, later};
		tir_store(r->k, view, v, here, 0, along | TIR_STREAM);
		tir_store(r->k, view, w, there, 0, along | TIR_STREAM);
		ValId seen = tir_load(r->k, view, here, 0, along, c->lanes);
		tir_store(r->k, view, w, here, 0, along | TIR_STREAM);
		tir_store(r->k, view, seen, there, 0, along | TIR_STREAM);
	}
	tir_end_for(r->k, NULL, 0);
	for (unsigned n = 0; n < RIG_MAX; n++)
		count[n] = 2 * COUNT;
	check(r, count, COUNT / c->lanes, NULL);
}

/* Loads of other memory between them, and one of what they have stored. */
static void
all_passes(Rig *r, const void *arg)
{
	const Case *c = arg;
	int64_t count[RIG_MAX], along = TIR_LANES_ALONG(1);
	if (!c->lanes)
		return;
	Build b = open_loop(r, c, COUNT);
	unsigned to = add_buffer(&b, c->t, true);
	ValId extent[2] = {int64(&b, 1 << 20), b.wide}, stride[2] = {b.wide, b.one};
	ValId view = tir_view(r->k, to, 2, extent, stride), zero = int64(&b, 0);
	for (int64_t n = 0; n < 6; n++) {
		ValId at[2] = {zero, n % 2 ? tir_binary(r->k, OP_ADD, b.i, int64(&b, COUNT)) : b.i};
		ValId v = n == 4 ? tir_load(r->k, view, at, 0, along, c->lanes) : load_here(&b, add_buffer(&b, c->t, false), 0);
		if (n == 4)
			at[1] = tir_binary(r->k, OP_ADD, b.i, int64(&b, COUNT));
		tir_store(r->k, view, v, at, 0, along | TIR_STREAM);
	}
	tir_end_for(r->k, NULL, 0);
	for (unsigned n = 0; n < RIG_MAX; n++)
		count[n] = 2 * COUNT;
	check(r, count, COUNT / c->lanes, NULL);
}

/* --- the last, partial vector --- */

static void
all_tails(Rig *r, const void *arg)
{
	const Case *c = arg;
	int64_t count[RIG_MAX];
	Build b = open_loop(r, c, SHORT);
	unsigned src = add_buffer(&b, c->t, false);
	ValId at = as_lanes(&b, b.i);
	if (c->lanes)
		at = tir_binary(r->k, OP_ADD, at, tir_emit(r->k, OP_IOTA, tir_vector(DT_I64, c->lanes), 0, NULL, 0));
	ValId mask = tir_binary(r->k, OP_LT, at, as_lanes(&b, b.n));
	ValId v = load_here(&b, src, mask);
	ValId gathered = tir_load(r->k, plain_view(&b, src, b.n), &at, mask, 0, c->lanes);
	store_here(&b, v, mask);
	tir_store(r->k, plain_view(&b, add_buffer(&b, c->t, true), b.n), gathered, &at, mask, 0);
	tir_end_for(r->k, NULL, 0);
	for (unsigned n = 0; n < RIG_MAX; n++)
		count[n] = dtype_info[c->t].bits == 4 ? SHORT + 1 : SHORT;
	check(r, count, SHORT / (c->lanes ? c->lanes : 1) + 1, NULL);
}

/* --- scalars --- */

static void
a_scalar(Rig *r, const void *arg)
{
	const Case *c = arg;
	int64_t count[RIG_MAX];
	uint64_t word[4] = {0};
	for (unsigned n = 0; n < RIG_MAX; n++)
		count[n] = COUNT;
	tir_add_scalar(r->k, name_cstr(r->names, "s"), c->t);
	Build b = open_loop(r, c, COUNT);
	store_here(&b, as_lanes(&b, tir_emit(r->k, OP_SCALAR, tir_scalar(c->t), 0, NULL, 0)), 0);
	tir_end_for(r->k, NULL, 0);
	fill_values(c->t, word, 2, 0, 3);
	memset(word, 0xc7, 1); /* a negative i4, a true bool that is not 1 */
	check(r, count, COUNT / (c->lanes ? c->lanes : 1), word);
}

static void
each_case(RigBody *body, const char *name)
{
	static const unsigned widths[] = {0, 16, 4, 8};
	for (int t = 1; t < DT_C64; t++)
		for (unsigned w = 0; w < nwidth; w++)
			rig_run(name, body, &(Case){(DType)t, widths[w]});
}

static void
loads(void **state)
{
	(void)state;
	each_case(all_loads, "loads");
}

static void
stores(void **state)
{
	(void)state;
	each_case(all_stores, "stores");
}

static void
streams(void **state)
{
	(void)state;
	each_case(all_streams, "streams");
	each_case(all_waits, "waits");
	each_case(all_passes, "passes");
}

static void
tails(void **state)
{
	(void)state;
	each_case(all_tails, "tails");
}

static void
scalars(void **state)
{
	(void)state;
	each_case(a_scalar, "scalars");
}

int
main(int argc, char **argv)
{
	int failed = 0, ran = 0;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loads),
		cmocka_unit_test(stores),
		cmocka_unit_test(streams),
		cmocka_unit_test(tails),
		cmocka_unit_test(scalars),
	};
	nwidth = argc > 1 && strcmp(argv[1], "all") == 0 ? 4 : 2;
	for (int a = nwidth == 4 ? 2 : 1; a < argc; a++) {
		cpu = argv[a];
		if (!rig_can_run(cpu)) {
			printf("%s: not here\n", cpu);
			continue;
		}
		failed += cmocka_run_group_tests_name(cpu, tests, NULL, NULL);
		ran++;
	}
	return failed != 0 || ran == 0;
}
