/* group_ptx_test.c: groups of narrow elements on a GPU: two 8-bit floats come of one conversion, four make a word; what a
 * loop carries stays a group; what is not read again goes past the first cache, where it is words; where stores behind conditions go
 * is computed once. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/codegen/rig.h"

enum { GROUP = 8 };

/* z[8 i .. 8 i + 7] = x[8 i .. 8 i + 7], bf16, as what 8-bit float. */
static void
build(Rig *r)
{
	TirKernel *k = r->k;
	ValId part[GROUP], one = tir_int(k, DT_I64, 1), n = tir_int(k, DT_I64, 64);
	k->form = TIR_SPREAD;
	k->threads = TIR_WARP;
	k->group = GROUP;
	tir_add_buffer(k, name_cstr(r->names, "x"), DT_BF16, false);
	tir_add_buffer(k, name_cstr(r->names, "z"), DT_F8E4M3, true);
	ValId from = tir_view(k, 0, 1, &n, &one), to = tir_view(k, 1, 1, &n, &one);
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	ValId hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId i = tir_binary(k, OP_MUL, tir_for(k, lo, hi, one, NULL, 0), tir_int(k, DT_I64, GROUP));
	ValId x = tir_load(k, from, &i, 0, TIR_LANES_ALONG(0), GROUP);
	for (unsigned lane = 0; lane < GROUP; lane++) {
		ValId v = tir_emit(k, OP_LANE, tir_scalar(DT_BF16), lane, &x, 1);
		v = tir_cast(k, DT_U32, tir_bitcast(k, DT_U16, v));
		v = tir_bitcast(k, DT_F32, tir_binary(k, OP_SHL, v, tir_int(k, DT_U32, 16)));
		part[lane] = tir_cast(k, DT_F8E4M3, v);
	}
	tir_store(k, to, tir_emit(k, OP_JOIN, tir_vector(DT_F8E4M3, GROUP), 0, part, GROUP), &i, 0, TIR_LANES_ALONG(0));
	tir_end_for(k, NULL, 0);
}

/* z[4 i .. 4 i + 3] = x[4 (i - 1) .. 4 (i - 1) + 3], bf16: what the turn before has read. */
static void
build_carried(Rig *r)
{
	TirKernel *k = r->k;
	ValId one = tir_int(k, DT_I64, 1), n = tir_int(k, DT_I64, 64), four = tir_int(k, DT_I64, 4);
	k->form = TIR_SPREAD;
	k->threads = TIR_WARP;
	k->group = 4;
	tir_add_buffer(k, name_cstr(r->names, "x"), DT_BF16, false);
	tir_add_buffer(k, name_cstr(r->names, "z"), DT_BF16, true);
	ValId from = tir_view(k, 0, 1, &n, &one), to = tir_view(k, 1, 1, &n, &one);
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	ValId hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId at = tir_binary(k, OP_MUL, lo, four);
	ValId x = tir_load(k, from, &at, 0, TIR_LANES_ALONG(0), 4);
	at = tir_binary(k, OP_MUL, tir_for(k, lo, hi, one, &x, 1), four);
	tir_store(k, to, x, &at, 0, TIR_LANES_ALONG(0));
	x = tir_load(k, from, &at, 0, TIR_LANES_ALONG(0), 4);
	tir_end_for(k, &x, 1);
}

/* z[i] = what x has at i, or z, neither of which is read again. */
static void
build_once(Rig *r, DType t, unsigned shared, bool same)
{
	TirKernel *k = r->k;
	ValId one = tir_int(k, DT_I64, 1), n = tir_int(k, DT_I64, 64);
	k->form = TIR_SPREAD;
	k->threads = TIR_WARP;
	k->group = 1;
	tir_add_buffer(k, name_cstr(r->names, "x"), t, false);
	tir_add_buffer(k, name_cstr(r->names, "z"), t, true);
	k->buffer.at[1].same = same;
	if (shared)
		k->buffer.at[tir_add_buffer(k, 0, DT_F32, true)].shared = shared;
	ValId from = tir_view(k, 0, 1, &n, &one), to = tir_view(k, 1, 1, &n, &one);
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0), hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId i = tir_for(k, lo, hi, one, NULL, 0), x = tir_load(k, from, &i, 0, TIR_STREAM, 0), z = tir_load(k, to, &i, 0, TIR_STREAM, 0);
	tir_store(k, to, tir_select(k, tir_binary(k, OP_LT, i, one), x, z), &i, 0, 0);
	tir_end_for(k, NULL, 0);
}

/* z[i, i, i, 8 j] = i, of those of SOME that n has. */
static void
build_some(Rig *r)
{
	enum { SOME = 4, OUTER = 3 };
	TirKernel *k = r->k;
	ValId one = tir_int(k, DT_I64, 1), rows = tir_int(k, DT_I64, 64), scalar[OUTER + 1], index[OUTER + 1];
	k->form = TIR_SPREAD;
	k->threads = TIR_WARP;
	k->group = 1;
	tir_add_buffer(k, name_cstr(r->names, "z"), DT_I64, true);
	for (unsigned n = 0; n <= OUTER; n++)
		scalar[n] = tir_emit(k, OP_SCALAR, tir_scalar(DT_I64), tir_add_scalar(k, name_cstr(r->names, arena_text(&r->arena, "s%u", n)), DT_I64), NULL, 0);
	ValId n = scalar[OUTER];
	ValId to = tir_view(k, 0, OUTER + 1, (ValId[]){rows, rows, rows, n}, (ValId[]){scalar[0], scalar[1], scalar[2], one});
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0), hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	index[0] = index[1] = index[2] = tir_for(k, lo, hi, one, NULL, 0);
	for (unsigned j = 0; j < SOME; j++) {
		index[OUTER] = tir_int(k, DT_I64, 8 * j);
		tir_if(k, tir_binary(k, OP_LT, index[OUTER], n));
		tir_store(k, to, index[0], index, 0, 0);
		tir_else(k, NULL, 0);
		tir_end_if(k, NULL, 0);
	}
	tir_end_for(k, NULL, 0);
}

static void
pairs(Rig *r, const void *arg)
{
	(void)arg;
	build(r);
	rig_ptx(r, "sm_90a", 8);
	assert_int_equal(rig_count(r->out.assembly, "e4m3x2"), GROUP / 2);
	assert_int_equal(rig_count(r->out.assembly, "st.global.v2.b32"), 1);
}

static void
carries(Rig *r, const void *arg)
{
	(void)arg;
	build_carried(r);
	rig_ptx(r, "sm_90a", 8);
	assert_int_equal(rig_count(r->out.assembly, "ld.global.v2.b32"), 2);
	assert_int_equal(rig_count(r->out.assembly, "st.global.v2.b32"), 1);
	assert_int_equal(rig_count(r->out.assembly, ".b16"), 0);
}

static void
some(Rig *r, const void *arg)
{
	(void)arg;
	build_some(r);
	rig_ptx(r, "sm_90a", 8);
	assert_int_equal(rig_count(r->out.assembly, "st.global.b64"), 4);
	assert_int_equal(rig_count(r->out.assembly, "mul.lo.s64"), 3);
	assert_int_equal(rig_count(r->out.assembly, "add.s64"), 3 + 1); /* one leads to the next task */
}

typedef struct {
	DType t;
	unsigned shared; /* floats of shared memory */
	const char *past, *plain;
	bool same; /* x may lie in z's memory, as an inout does before and after */
} Once;

static void
loads_once(Rig *r, const void *arg)
{
	const Once *x = arg;
	build_once(r, x->t, x->shared, x->same);
	rig_ptx(r, "sm_90a", 8);
	unsigned past = rig_count(r->out.assembly, "ld.global.nc.L1::no_allocate") + rig_count(r->out.assembly, "ld.global.cg");
	assert_int_equal(past, x->past != NULL);
	assert_int_equal(x->past ? rig_count(r->out.assembly, x->past) : 1, 1);
	assert_int_equal(rig_count(r->out.assembly, x->plain), 1); /* of halves both are one, of the address that is wanted */
}

static void
once(void **state)
{
	static const Once words = {DT_F32, 512, "ld.global.nc.L1::no_allocate.L2::128B.b32", "ld.global.b32", false};
	static const Once two = {DT_F64, 0, "ld.global.nc.L1::no_allocate.L2::128B.v2.b32", "ld.global.b64", false};
	static const Once crowded = {DT_F32, 513, "ld.global.cg.b32", "ld.global.b32", false}, halves = {DT_F16, 513, NULL, "ld.global.b16", false};
	static const Once inout = {DT_F32, 512, NULL, "ld.global.b32", true};
	(void)state;
	rig_run("k", loads_once, &words);
	rig_run("k", loads_once, &two);
	rig_run("k", loads_once, &crowded);
	rig_run("k", loads_once, &halves);
	rig_run("k", loads_once, &inout);
}

static void
groups(void **state)
{
	(void)state;
	rig_run("k", pairs, NULL);
}

static void
carried(void **state)
{
	(void)state;
	rig_run("k", carries, NULL);
}

static void
conditional(void **state)
{
	(void)state;
	rig_run("k", some, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(groups), cmocka_unit_test(carried), cmocka_unit_test(once),
	                                   cmocka_unit_test(conditional)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
