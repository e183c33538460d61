/* warp_ptx_test.c: what a warp multiplies, in PTX: one instruction, whose words are those that were loaded, at once and past
 * the first cache, where there is such a load; whole numbers of 4 bits come by two from where they are half a word apart. And
 * matrices that come from what was copied to shared memory meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "ir/warp_mma.h"
#include "tests/codegen/rig.h"

enum { LANES = 8 };

typedef struct {
	DType from;
	bool apart; /* pairs are of lanes n and n + 4, else of lanes side by side */
} Weights;

/* z[4 i ..] = the warp's product of w[8 i ..], as bf16, with itself. */
static void
build(Rig *r, const Weights *w)
{
	TirKernel *k = r->k;
	ValId arg[WARP_MMA_OPERANDS], one = tir_int(k, DT_I64, 1), n = tir_int(k, DT_I64, 4096);
	k->form = TIR_SPREAD;
	k->threads = TIR_WARP;
	k->group = LANES;
	tir_add_buffer(k, name_cstr(r->names, "w"), w->from, false);
	tir_add_buffer(k, name_cstr(r->names, "z"), DT_F32, true);
	ValId from = tir_view(k, 0, 1, &n, &one), to = tir_view(k, 1, 1, &n, &one);
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0), hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId i = tir_for(k, lo, hi, one, NULL, 0), thread = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0);
	i = tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, i, tir_int(k, DT_I64, TIR_WARP)), thread);
	ValId at = tir_binary(k, OP_MUL, i, tir_int(k, DT_I64, LANES));
	ValId all = tir_load(k, from, &at, 0, TIR_LANES_ALONG(0) | TIR_STREAM, LANES);
	for (unsigned e = 0; e < WARP_MMA_A; e++) {
		unsigned lane = w->apart ? e / 2 + e % 2 * 4 : e;
		arg[e] = tir_emit(k, OP_LANE, tir_scalar(w->from), lane, &all, 1);
		if (w->from != DT_BF16)
			arg[e] = tir_cast(k, DT_BF16, tir_cast(k, DT_F32, arg[e]));
	}
	for (unsigned e = WARP_MMA_A; e < WARP_MMA_OPERANDS; e++)
		arg[e] = e < WARP_MMA_A + WARP_MMA_B ? arg[e - WARP_MMA_A] : tir_float(k, DT_F32, 0);
	ValId sum = tir_emit(k, OP_WARP_MMA, tir_vector(DT_F32, WARP_MMA_C), 0, arg, WARP_MMA_OPERANDS);
	at = tir_binary(k, OP_MUL, i, tir_int(k, DT_I64, WARP_MMA_C));
	tir_store(k, to, sum, &at, 0, TIR_LANES_ALONG(0));
	tir_end_for(k, NULL, 0);
}

typedef struct {
	Weights weights;
	const char *sm, *load;
	unsigned conversions, sums, moves; /* to floats; of two at once; of halves */
} Expected;

static const char *
text_of(Rig *r, const Program *p, const char *sm)
{
	CodegenOptions o = {.cpu = sm, .opt_level = 2, .want_asm = true};
	if (codegen_cpu(&r->arena, &p, 1, &o, &r->out) != CODEGEN_OK)
		fail_msg("codegen: %s", r->out.message);
	return r->out.assembly;
}

static void
has(Rig *r, const void *arg)
{
	const Expected *x = arg;
	build(r, &x->weights);
	Program *p = rig_program(r, 8);
	const char *text = text_of(r, p, x->sm);
	assert_int_equal(rig_count(text, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"), 1);
	assert_int_equal(rig_count(text, x->load), 1);
	assert_int_equal(rig_count(text, "cvt.rn."), x->conversions);
	assert_int_equal(rig_count(text, "add.rn.bf16x2"), x->sums);
	assert_int_equal(rig_count(text, ".b16"), x->moves);
}

static void
words(void **state)
{
	static const Expected elements = {{DT_BF16, false}, "sm_90a", "ld.global.nc.L1::no_allocate.L2::128B.v4.b32", 0, 0, 0};
	static const Expected older = {{DT_BF16, false}, "sm_80", "ld.global.v4.b32", 0, 0, 0};
	static const Expected apart = {{DT_I4, true}, "sm_90a", "ld.global.nc.L1::no_allocate.L2::128B.b32", 0, WARP_MMA_A / 2, 0};
	(void)state;
	rig_run("k", has, &elements);
	rig_run("k", has, &older);
	rig_run("k", has, &apart);
}

/* --- matrices --- */

/* z[4 i ..] = the warp's product of 16 rows of 16 terms, of w, with the first 8 of them, turned. */
static void
build_matrices(Rig *r)
{
	TirKernel *k = r->k;
	ValId arg[WARP_MMA_OPERANDS], one = tir_int(k, DT_I64, 1), n = tir_int(k, DT_I64, 4096), words = tir_int(k, DT_I64, 4);
	k->form = TIR_SPREAD;
	k->threads = TIR_WARP;
	k->group = LANES;
	tir_add_buffer(k, name_cstr(r->names, "w"), DT_BF16, false);
	tir_add_buffer(k, name_cstr(r->names, "z"), DT_F32, true);
	unsigned shared = tir_add_buffer(k, 0, DT_F32, true);
	k->buffer.at[shared].shared = TIR_WARP * 4;
	ValId from = tir_view(k, 0, 1, &n, &one), to = tir_view(k, 1, 1, &n, &one);
	ValId rows = tir_view(k, shared, 2, (ValId[]){tir_int(k, DT_I64, TIR_WARP), words}, (ValId[]){words, one});
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0), hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId i = tir_for(k, lo, hi, one, NULL, 0), thread = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0);
	i = tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, i, tir_int(k, DT_I64, TIR_WARP)), thread);
	ValId at[2] = {thread, tir_int(k, DT_I64, 0)}, index = tir_binary(k, OP_MUL, i, tir_int(k, DT_I64, LANES));
	tir_async_copy(k, rows, at, from, &index, tir_binary(k, OP_LT, index, n));
	tir_async_wait(k, 0);
	tir_emit(k, OP_BARRIER, (TirType){0}, 0, NULL, 0);
	ValId all = tir_load_matrix(k, DT_BF16, rows, at, false), turned = tir_load_matrix(k, DT_BF16, rows, at, true);
	for (unsigned e = 0; e < WARP_MMA_OPERANDS; e++)
		arg[e] = e < WARP_MMA_A ? tir_emit(k, OP_LANE, tir_scalar(DT_BF16), e, &all, 1)
		         : e < WARP_MMA_A + WARP_MMA_B ? tir_emit(k, OP_LANE, tir_scalar(DT_BF16), e - WARP_MMA_A, &turned, 1) : tir_float(k, DT_F32, 0);
	ValId sum = tir_emit(k, OP_WARP_MMA, tir_vector(DT_F32, WARP_MMA_C), 0, arg, WARP_MMA_OPERANDS);
	index = tir_binary(k, OP_MUL, i, tir_int(k, DT_I64, WARP_MMA_C));
	tir_store(k, to, sum, &index, 0, TIR_LANES_ALONG(0));
	tir_emit(k, OP_BARRIER, (TirType){0}, 0, NULL, 0);
	tir_end_for(k, NULL, 0);
}

static void
has_matrices(Rig *r, const void *arg)
{
	build_matrices(r);
	const char *text = text_of(r, rig_program(r, 8), arg);
	assert_int_equal(rig_count(text, "cp.async.cg.shared.global"), 1);
	assert_int_equal(rig_count(text, "cp.async.commit_group"), 1);
	assert_int_equal(rig_count(text, "cp.async.wait_group"), 1);
	assert_int_equal(rig_count(text, "ldmatrix.sync.aligned.m8n8.x4.shared.b16"), 1);
	assert_int_equal(rig_count(text, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"), 1);
	assert_int_equal(rig_count(text, ".extern .shared"), 0);
	assert_int_equal(rig_count(text, "prmt"), 0);
	assert_int_equal(rig_count(text, "mov.b32 \t{"), 0);
}

/* Rows of f32, rounded and stored as matrices, and as turned ones. */
static void
build_stored(Rig *r)
{
	TirKernel *k = r->k;
	ValId elements = tir_int(k, DT_I64, TIR_MATRIX), one = tir_int(k, DT_I64, 1), lines = tir_int(k, DT_I64, TIR_WARP), x[TIR_MATRIX];
	k->form = TIR_SPREAD;
	k->threads = TIR_WARP;
	k->group = 4;
	tir_add_buffer(k, name_cstr(r->names, "w"), DT_F32, false);
	tir_add_buffer(k, name_cstr(r->names, "z"), DT_BF16, true);
	unsigned shared = tir_add_buffer(k, 0, DT_BF16, true);
	k->buffer.at[shared].shared = TIR_WARP * TIR_MATRIX;
	const ValId extent[2] = {lines, elements}, stride[2] = {elements, one}, thread = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0);
	ValId from = tir_view(k, 0, 2, extent, stride), to = tir_view(k, 1, 2, extent, stride), rows = tir_view(k, shared, 2, extent, stride);
	for (unsigned e = 0; e < TIR_MATRIX; e++)
		x[e] = tir_cast(k, DT_BF16, tir_load(k, from, (ValId[]){thread, tir_int(k, DT_I64, e)}, 0, 0, 0));
	const ValId at[2] = {thread, tir_int(k, DT_I64, 0)}, all = tir_emit(k, OP_JOIN, tir_vector(DT_BF16, TIR_MATRIX), 0, x, TIR_MATRIX);
	for (unsigned turned = 0; turned < 2; turned++) {
		tir_store_matrix(k, rows, all, at, turned);
		tir_emit(k, OP_BARRIER, (TirType){0}, 0, NULL, 0);
		tir_store(k, to, tir_load(k, rows, at, 0, TIR_LANES_ALONG(1), TIR_MATRIX), at, 0, TIR_LANES_ALONG(1));
		tir_emit(k, OP_BARRIER, (TirType){0}, 0, NULL, 0);
	}
}

static void
has_stored(Rig *r, const void *arg)
{
	build_stored(r);
	const char *text = text_of(r, rig_program(r, 8), arg);
	assert_int_equal(rig_count(text, "stmatrix.sync.aligned.m8n8.x4.shared.b16"), 1);
	assert_int_equal(rig_count(text, "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16"), 1);
	assert_int_equal(rig_count(text, "cvt.rn.bf16x2.f32"), 4);
	assert_int_equal(rig_count(text, "prmt"), 0);
	assert_int_equal(rig_count(text, "mov.b32 \t{"), 0);
}

static void
has_none_stored(Rig *r, const void *arg)
{
	build_stored(r);
	const Program *p = rig_program(r, 8);
	CodegenOptions o = {.cpu = arg, .opt_level = 2, .want_asm = true};
	assert_int_not_equal(codegen_cpu(&r->arena, &p, 1, &o, &r->out), CODEGEN_OK);
	assert_non_null(strstr(r->out.message, "'store_matrix' can't be asked of sm_80"));
}

/* The same of f32: 16 rows of 8 terms, with the first 8 of them, each of whose words is rounded once, however often it is met. */
static void
build_words(Rig *r)
{
	enum { A = WARP_MMA_A_WORDS, B = WARP_MMA_B_WORDS };
	TirKernel *k = r->k;
	ValId arg[A + B + WARP_MMA_C], one = tir_int(k, DT_I64, 1), words = tir_int(k, DT_I64, 4), lines = tir_int(k, DT_I64, TIR_WARP);
	k->form = TIR_SPREAD;
	k->threads = TIR_WARP;
	k->group = 4;
	tir_add_buffer(k, name_cstr(r->names, "z"), DT_F32, true);
	unsigned shared = tir_add_buffer(k, 0, DT_F32, true);
	k->buffer.at[shared].shared = TIR_WARP * 4;
	ValId to = tir_view(k, 0, 2, (ValId[]){lines, words}, (ValId[]){words, one}), rows = tir_view(k, shared, 2, (ValId[]){lines, words}, (ValId[]){words, one});
	ValId at[2] = {tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0), tir_int(k, DT_I64, 0)};
	ValId all = tir_load_matrix(k, DT_F32, rows, at, false);
	for (unsigned e = 0; e < A + B; e++)
		arg[e] = tir_emit(k, OP_LANE, tir_scalar(DT_F32), e % A, &all, 1);
	for (unsigned e = 0; e < WARP_MMA_C; e++)
		arg[A + B + e] = tir_float(k, DT_F32, 0);
	tir_store(k, to, tir_emit(k, OP_WARP_MMA, tir_vector(DT_F32, WARP_MMA_C), 0, arg, A + B + WARP_MMA_C), at, 0, TIR_LANES_ALONG(1));
}

static void
has_rounded_words(Rig *r, const void *arg)
{
	build_words(r);
	const char *text = text_of(r, rig_program(r, 8), arg);
	assert_int_equal(rig_count(text, "ldmatrix.sync.aligned.m8n8.x4.shared.b16"), 1);
	assert_int_equal(rig_count(text, "cvt.rna.tf32.f32"), 4);
	assert_int_equal(rig_count(text, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"), 1);
}

/* More shared memory than a kernel's text may say. */
static void
has_launch_memory(Rig *r, const void *arg)
{
	build_matrices(r);
	r->k->buffer.at[2].shared = (64 << 10) / 4;
	const char *text = text_of(r, rig_program(r, 8), arg);
	assert_int_equal(rig_count(text, ".extern .shared .align 16 .b8 launch_shared[]"), 1);
}

static void
matrices(void **state)
{
	(void)state;
	rig_run("k", has_launch_memory, "sm_80");
	rig_run("k", has_matrices, "sm_80");
	rig_run("k", has_matrices, "sm_90a");
	rig_run("k", has_stored, "sm_90a");
	rig_run("k", has_none_stored, "sm_80");
	rig_run("k", has_matrices, "sm_120");
	rig_run("k", has_rounded_words, "sm_80");
	rig_run("k", has_rounded_words, "sm_90a");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(words), cmocka_unit_test(matrices)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
