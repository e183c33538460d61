/* divide_test.c: the quotients and remainders of indices on GPUs (codegen/nvptx_divide.c), generated for this processor:
 * all of 64 bits that 32 can't say, 0, and both signs, against the interpreter's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/lower.h"
#include "tests/codegen/module_code.h"

typedef void Divide(int64_t a, int64_t b, int64_t out[2]);

static Divide *divide;

/* As IDIV and IMOD are in ir/ops.def. */
static void
expect(int64_t a, int64_t b, int64_t out[2])
{
	if (b == 0 || b == -1) {
		out[0] = b ? (int64_t)(0 - (uint64_t)a) : -1;
		out[1] = b ? 0 : a;
		return;
	}
	out[0] = a / b - (a % b != 0 && (a % b < 0) != (b < 0));
	out[1] = (int64_t)((uint64_t)a - (uint64_t)out[0] * (uint64_t)b);
}

static void
check(int64_t a, int64_t b)
{
	int64_t want[2], got[2] = {0, 0};
	expect(a, b, want);
	divide(a, b, got);
	if (memcmp(want, got, sizeof want) != 0)
		fail_msg("%lld by %lld: %lld, %lld; not %lld, %lld", (long long)a, (long long)b, (long long)got[0], (long long)got[1],
		         (long long)want[0], (long long)want[1]);
}

static void
edges(void **state)
{
	int64_t value[64 * 6];
	unsigned n = 0;
	(void)state;
	for (unsigned bit = 0; bit < 64; bit++)
		for (int by = -1; by < 2; by++) {
			uint64_t v = (UINT64_C(1) << bit) + (uint64_t)(int64_t)by;
			value[n++] = (int64_t)v;
			value[n++] = (int64_t)(0 - v);
		}
	for (unsigned a = 0; a < n; a++)
		for (unsigned b = 0; b < n; b++)
			check(value[a], value[b]);
}

static void
many(void **state)
{
	uint64_t seed = 1;
	int64_t v[2];
	(void)state;
	for (unsigned k = 0; k < 1000000; k++) {
		for (int n = 0; n < 2; n++) {
			seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			v[n] = (int64_t)(seed ^ seed >> 29) >> (seed >> 58);
		}
		check(v[0], v[1]);
	}
}

/* What may be divided so: what is no less than 0 if scalars aren't. */
static void
which(void **state)
{
	Arena *a = calloc(1, sizeof *a);
	Unwind u;
	(void)state;
	arena_init(a, &host_default()->memory, &u);
	assert_int_equal(setjmp(u.env), 0);
	Names *names = names_new(a);
	TirKernel *k = tir_new(a, names, name_cstr(names, "k"));
	const Target gpu = {.arch = ARCH_NVPTX}, cpu = {.arch = ARCH_X86};
	ValId n = tir_emit(k, OP_SCALAR, tir_scalar(DT_I64), (int64_t)tir_add_scalar(k, name_cstr(names, "n"), DT_I64), NULL, 0);
	ValId task = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0), sum = tir_binary(k, OP_ADD, task, tir_int(k, DT_I64, 3));
	ValId difference = tir_binary(k, OP_SUB, task, tir_int(k, DT_I64, 3)), narrow = tir_cast(k, DT_I32, task);
	const struct {
		ValId v;
		bool on_gpu;
	} row[] = {
		{tir_binary(k, OP_IDIV, task, n), true}, {tir_binary(k, OP_IMOD, sum, n), true},
		{tir_binary(k, OP_IMOD, difference, n), false}, {tir_binary(k, OP_IDIV, task, tir_int(k, DT_I64, 7)), false},
		{tir_binary(k, OP_IDIV, tir_binary(k, OP_ADD, task, tir_int(k, DT_I64, -1)), n), false},
		{tir_binary(k, OP_IDIV, narrow, tir_cast(k, DT_I32, n)), false},
	};
	for (unsigned r = 0; r < sizeof row / sizeof *row; r++) {
		const Lower on_gpu = {.target = &gpu, .k = k}, on_cpu = {.target = &cpu, .k = k};
		assert_int_equal(lower_divides_indices(&on_gpu, row[r].v), row[r].on_gpu);
		assert_false(lower_divides_indices(&on_cpu, row[r].v));
	}
	arena_free(a);
	free(a);
}

/* Numbers of tasks and what comes of dividing them, all by scalars that say it, have no long way. */
static void
which_are_few(void **state)
{
	Arena *a = calloc(1, sizeof *a);
	Unwind u;
	(void)state;
	arena_init(a, &host_default()->memory, &u);
	assert_int_equal(setjmp(u.env), 0);
	Names *names = names_new(a);
	TirKernel *k = tir_new(a, names, name_cstr(names, "k"));
	ValId scalar[2], one = tir_int(k, DT_I64, 1);
	for (unsigned n = 0; n < 2; n++) {
		unsigned s = tir_add_scalar(k, name_cstr(names, n ? "n" : "few"), DT_I64);
		k->scalar.at[s].few = n == 0;
		scalar[n] = tir_emit(k, OP_SCALAR, tir_scalar(DT_I64), s, NULL, 0);
	}
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0), hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId task = tir_for(k, lo, hi, one, NULL, 0), row = tir_binary(k, OP_IDIV, task, scalar[0]), by_n = tir_binary(k, OP_IDIV, task, scalar[1]);
	ValId twice = tir_binary(k, OP_IMOD, row, scalar[0]), sum = tir_binary(k, OP_IDIV, tir_binary(k, OP_ADD, task, one), scalar[0]);
	ValId inner = tir_for(k, lo, scalar[1], one, NULL, 0), other = tir_binary(k, OP_IDIV, inner, scalar[0]);
	const Target gpu = {.arch = ARCH_NVPTX};
	const Lower l = {.target = &gpu, .k = k};
	const ValId few[] = {row, twice}, not[] = {by_n, sum, other, tir_binary(k, OP_IMOD, by_n, scalar[0])};
	for (unsigned n = 0; n < sizeof few / sizeof *few; n++)
		assert_true(lower_divides_few(&l, few[n]));
	for (unsigned n = 0; n < sizeof not / sizeof *not; n++)
		assert_false(lower_divides_few(&l, not[n]));
	arena_free(a);
	free(a);
}

/* --- the function --- */

static bool
generate(Arena *a, Code *code)
{
	Names *names = names_new(a);
	TirKernel *k = tir_new(a, names, name_cstr(names, "k"));
	ValId arg[2], v[2], scalar[2];
	Lower l = {.arena = a, .ctx = LLVMContextCreate(), .k = k};
	l.module = LLVMModuleCreateWithNameInContext("k", l.ctx);
	l.b = LLVMCreateBuilderInContext(l.ctx);
	LLVMTypeRef i64 = lower_i64(&l), type[3] = {i64, i64, LLVMPointerTypeInContext(l.ctx, 0)};
	l.fn = LLVMAddFunction(l.module, "divide", LLVMFunctionType(LLVMVoidTypeInContext(l.ctx), type, 3, 0));
	LLVMPositionBuilderAtEnd(l.b, LLVMAppendBasicBlockInContext(l.ctx, l.fn, ""));
	for (unsigned n = 0; n < 2; n++) {
		scalar[n] = tir_add_scalar(k, name_cstr(names, n ? "b" : "a"), DT_I64);
		arg[n] = tir_emit(k, OP_SCALAR, tir_scalar(DT_I64), scalar[n], NULL, 0);
	}
	v[0] = tir_binary(k, OP_IDIV, arg[0], arg[1]);
	v[1] = tir_binary(k, OP_IMOD, arg[0], arg[1]);
	l.val = ARENA_ARRAY(a, Val, k->inst.n);
	l.val[arg[0]] = LLVMGetParam(l.fn, 0);
	l.val[arg[1]] = LLVMGetParam(l.fn, 1);
	for (unsigned n = 0; n < 2; n++) {
		Val to = LLVMBuildGEP2(l.b, i64, LLVMGetParam(l.fn, 2), (Val[]){lower_int(&l, i64, n)}, 1, "");
		LLVMBuildStore(l.b, lower_divide_indices(&l, v[n], n == 0), to);
	}
	LLVMBuildRetVoid(l.b);
	bool loaded = module_load(l.module, "x86-64", code);
	LLVMDisposeBuilder(l.b);
	LLVMDisposeModule(l.module);
	LLVMContextDispose(l.ctx);
	return loaded;
}

static int
load(void **state)
{
	static Arena a;
	static Unwind u;
	static Code code;
	ImageCpuKernel *f;
	(void)state;
	arena_init(&a, &host_default()->memory, &u);
	if (setjmp(u.env) || !generate(&a, &code))
		return 1;
	f = code_symbol(&code, "divide");
	memcpy(&divide, &f, sizeof f);
	return !f;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(edges), cmocka_unit_test(many), cmocka_unit_test(which), cmocka_unit_test(which_are_few)};
	return cmocka_run_group_tests(tests, load, NULL);
}
