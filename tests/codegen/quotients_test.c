/* quotients_test.c [all]: the quotients of a thread of a GPU (codegen/nvptx_quotients.c), generated for this processor: eight by one
 * divisor, and eight each by its own. The GPU's approximation of 1 / b is an argument: the nearest float and those beside it, as
 * far as they are within 2^-23, and 0 or infinity for what is subnormal; that of f64, which the slow way begins with (nvptx_exact.c),
 * is cut off after 19 bits. All are to be the nearest floats: next to the middle between two by some divisors (all: by every one),
 * around all powers of two, and beside what takes the slow way. So are roots, and both of a lane alone. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/lower.h"
#include "tests/codegen/module_code.h"
#include "tests/codegen/rig.h"
#include "tests/math/hard_dividends.h"

enum { LANES = 8, ONE = 0, EACH, ALONE, QUOTIENTS, ROOTS = QUOTIENTS, ROOT_ALONE, FORMS, MANY = 1000000 };

typedef void Divide(const float *a, const float *b, const float *r, float *q);

static const char *const form_name[FORMS] = {"one", "each", "alone", "roots", "root alone"};
static Divide *divide[FORMS];
static uint32_t seed = 1, divisors = 509; /* one of so many */

static uint32_t
next(void)
{
	seed = seed * 1664525u + 1013904223u;
	return seed;
}

static bool
is_alone(unsigned form)
{
	return form == ALONE || form == ROOT_ALONE;
}

static void
compute(unsigned form, const float *a, const float *b, const float *r, float *got)
{
	for (unsigned n = 0; n < (is_alone(form) ? LANES : 1); n++)
		divide[form](a + n, b + n, r + n, got + n);
}

/* What the GPU may take for 1 / b at first, or 0 where nothing is so many floats away. */
static float
approximation(float b, int away)
{
	float r = fabsf(b) < 0x1p-126f ? copysignf(INFINITY, b) : 1 / b;
	if (isfinite(r) && away)
		r = nextafterf(r, away > 0 ? INFINITY : -INFINITY);
	return fabsf(r) < 0x1p-126f ? copysignf(0, b) : r;
}

/* Within 2^-23, but for 2 - 2^-23: of that the GPU's is the nearest, since 1 / b gives the right float (scripts/gpu-exact.py). */
static bool
is_near(float b, float r, int away)
{
	int place;
	bool last = fabsf(frexpf(b, &place)) == 1 - 0x1p-24f;
	return !away || (isfinite(r) && fabs((double)r * (double)b - 1) <= 0x1p-23 && !last);
}

static void
check(const float *a, const float *b, int away)
{
	float r[LANES], got[LANES];
	for (unsigned n = 0; n < LANES; n++) {
		r[n] = approximation(b[n], away);
		if (!is_near(b[n], r[n], away))
			return;
	}
	for (unsigned form = 0; form < QUOTIENTS; form++) {
		compute(form, a, b, r, got);
		for (unsigned n = 0; n < LANES; n++) {
			float by = b[form == ONE ? 0 : n], want = a[n] / by;
			if (memcmp(&got[n], &want, sizeof want) != 0 && !(isnan(got[n]) && isnan(want)))
				fail_msg("%s: %a / %a: %a, not %a", form_name[form], (double)a[n], (double)by, (double)got[n], (double)want);
		}
	}
}

/* a / b in a lane among others that need no slow way. */
static void
check_among(float a, float b, unsigned lane)
{
	float dividend[LANES], divisor[LANES];
	for (unsigned n = 0; n < LANES; n++) {
		dividend[n] = (fabsf(b) < 0x1p-98f ? 0x1p-98f : b) * (1 + (float)n / 8);
		divisor[n] = b;
	}
	dividend[lane % LANES] = a;
	for (int away = -1; away < 2; away++)
		check(dividend, divisor, away);
}

static void
edges(void **state)
{
	float value[280 * 4 + 8] = {0, -0.0f, INFINITY, -INFINITY, NAN};
	unsigned n = 5;
	(void)state;
	for (int place = -149; place < 128; place++) {
		const float near[] = {1, 1 + 0x1p-23f, 2 - 0x1p-23f, 1.3f};
		for (unsigned k = 0; k < 4; k++)
			value[n++] = ldexpf(near[k], place) * (place % 2 ? -1 : 1);
	}
	for (unsigned a = 0; a < n; a++)
		for (unsigned b = 0; b < n; b++)
			check_among(value[a], value[b], a + b);
}

static void
many(void **state)
{
	(void)state;
	for (unsigned k = 0; k < MANY; k++) {
		float a[LANES], b[LANES];
		for (unsigned n = 0; n < LANES; n++) {
			uint32_t bits[2] = {next(), next()};
			memcpy(&a[n], &bits[0], sizeof a[n]);
			memcpy(&b[n], &bits[1], sizeof b[n]);
			if (k % 2) { /* most pairs of any numbers have no quotient in the middle */
				int place;
				a[n] = ldexpf(frexpf(a[n], &place), (int)(bits[1] % 64) - 32);
				b[n] = ldexpf(frexpf(b[n], &place), (int)(bits[0] % 64) - 32);
			}
		}
		check(a, b, (int)(k / 2 % 3) - 1);
	}
}

/* Of one divisor as many together as there are lanes, at places where all takes the quick way. */
static void
hard(void **state)
{
	uint64_t significand[HARD_MOST], tried = 0;
	(void)state;
	for (uint32_t s = HARD_FIRST; s < HARD_END; s += divisors) {
		unsigned n = hard_dividends(s, significand);
		assert_true(n < HARD_MOST);
		tried += n;
		int low = (int)(next() >> 8) % 227 - 126, least = low < 0 ? -100 : low - 100, most = low < 0 ? low + 126 : 126;
		float b = ldexpf((float)s, low - 23);
		for (unsigned first = 0; first < n; first += LANES) {
			float a[LANES], divisor[LANES];
			for (unsigned k = 0; k < LANES; k++) {
				int place = least + 1 + (int)((next() >> 8) % (unsigned)(most - least - 1));
				a[k] = ldexpf((float)significand[(first + k) % n], place - 23);
				divisor[k] = b;
			}
			for (int away = -1; away < 2; away++)
				check(a, divisor, away);
		}
	}
	print_message("%llu dividends\n", (unsigned long long)tried);
	assert_true(tried > (HARD_END - HARD_FIRST) / divisors * 8);
}

static void
check_roots(const float *a)
{
	float r[LANES], got[LANES];
	for (unsigned n = 0; n < LANES; n++)
		r[n] = fabsf(a[n]) < 0x1p-126f ? copysignf(INFINITY, a[n]) : (float)(1 / sqrt((double)a[n]));
	for (unsigned form = ROOTS; form < FORMS; form++) {
		compute(form, a, a, r, got);
		for (unsigned n = 0; n < LANES; n++) {
			float want = sqrtf(a[n]);
			if (memcmp(&got[n], &want, sizeof want) != 0 && !(isnan(got[n]) && isnan(want)))
				fail_msg("%s of %a: %a, not %a", form_name[form], (double)a[n], (double)got[n], (double)want);
		}
	}
}

/* Of any numbers, of those next to squares and to what is in the middle of two roots, in ways of both kinds. */
static void
roots(void **state)
{
	(void)state;
	const float special[LANES] = {0, -0.0f, INFINITY, -INFINITY, NAN, -1, 1, 0x1p-149f};
	check_roots(special);
	for (unsigned k = 0; k < MANY; k++) {
		float a[LANES];
		for (unsigned n = 0; n < LANES; n++) {
			uint32_t bits = next();
			memcpy(&a[n], &bits, sizeof a[n]);
			if (k % 4 == 0)
				a[n] = fabsf(a[n]);
			if (k % 4 == 1) {
				double half = 1 + (double)(2 * (bits >> 8) + 1) * 0x1p-24;
				a[n] = ldexpf((float)(half * half), (int)(next() >> 8) % 250 - 140);
			}
			if (k % 4 == 2)
				a[n] = ldexpf(1 + (float)(bits >> 9) * 0x1p-23f, -(int)(100 + next() % 49));
		}
		check_roots(a);
	}
}

/* From an approximation that is wrong by much only the slow way comes to the right quotient. */
static bool
is_quick(unsigned form, float a, float b)
{
	float dividend[LANES], divisor[LANES], r[LANES], got[LANES];
	for (unsigned n = 0; n < LANES; n++) {
		dividend[n] = a;
		divisor[n] = b;
		r[n] = 0.75f * approximation(b, 0);
	}
	compute(form, dividend, divisor, r, got);
	return got[0] != a / b && !isnan(got[0]);
}

static void
which(void **state)
{
	static const struct {
		float a, b;
		bool quick;
	} row[] = {
		{1, 3, true}, {-5, 0x1p-12f, true}, {0x1p-98f, 3, true}, {0x1p-99f, 3, false}, {0x1p-99f, 0x1p-20f, true}, {0x1p-99f, 0x1p-98f, true},
		{0x1p-101f, 0x1p-20f, false}, {0x1p100f, 0x1p-20f, true}, {0x1p100f, 0x1p-40f, false}, {0x1p-80f, 0x1p40f, false}, {0x1p20f, 0x1p110f, true},
		{0, 3, false}, {-0.0f, 3, false}, {0x1p-149f, 0x1p-149f, false}, {INFINITY, 3, false}, {3, INFINITY, false}, {NAN, 3, false}, {3, 0, false},
		{3, NAN, false}, {1, 0x1p127f, false}, {0x1p127f, 0x1p127f, false}, {0x1p-100f, 0x1p-126f, true},
	};
	(void)state;
	for (unsigned n = 0; n < sizeof row / sizeof *row; n++)
		for (unsigned form = 0; form < QUOTIENTS; form++)
			if (is_quick(form, row[n].a, row[n].b) != row[n].quick)
				fail_msg("%s: %a / %a is %squick", form_name[form], (double)row[n].a, (double)row[n].b, row[n].quick ? "not " : "");
}

/* --- the functions --- */

static Val
element(Lower *l, unsigned param, unsigned n)
{
	LLVMTypeRef f32 = LLVMFloatTypeInContext(l->ctx);
	Val at = LLVMBuildGEP2(l->b, f32, LLVMGetParam(l->fn, param), (Val[]){lower_int(l, lower_i64(l), n)}, 1, "");
	return param == 3 ? at : LLVMBuildLoad2(l->b, f32, at, "");
}

/* What begins with a in f64: 1 / a or 1 / sqrt(a), of which 19 bits are left. */
static Val
few_bits(Lower *l, Val a, bool is_root)
{
	LLVMTypeRef f64 = LLVMDoubleTypeInContext(l->ctx), i64 = lower_i64(l);
	Val whole = LLVMBuildFDiv(l->b, LLVMConstReal(f64, 1), is_root ? lower_call(l, "llvm.sqrt", &f64, 1, &a, 1) : a, "");
	Val kept = LLVMBuildAnd(l->b, LLVMBuildBitCast(l->b, whole, i64, ""), lower_int(l, i64, ~UINT64_C(0) << 33), "");
	return LLVMBuildBitCast(l->b, kept, f64, "");
}

/* The n-th of the function's approximations of f32 becomes the n-th of its argument. */
static unsigned
take_approximations(Lower *l)
{
	static const char *const name[] = {"llvm.nvvm.rcp.approx.ftz.f", "llvm.nvvm.rsqrt.approx.ftz.f", "llvm.nvvm.rcp.approx.ftz.d",
	                                   "llvm.nvvm.rsqrt.approx.ftz.d"};
	unsigned n = 0;
	for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(l->fn); b; b = LLVMGetNextBasicBlock(b))
		for (Val i = LLVMGetFirstInstruction(b), following; i; i = following) {
			following = LLVMGetNextInstruction(i);
			unsigned which = 0;
			while (which < 4 && !(LLVMIsACallInst(i) && LLVMGetCalledValue(i) == LLVMGetNamedFunction(l->module, name[which])))
				which++;
			if (which == 4)
				continue;
			LLVMPositionBuilderBefore(l->b, i);
			LLVMReplaceAllUsesWith(i, which < 2 ? element(l, 2, n++) : few_bits(l, LLVMGetOperand(i, 0), which == 3));
			LLVMInstructionEraseFromParent(i);
		}
	return n;
}

static bool
generate_form(Arena *a, LLVMContextRef ctx, LLVMModuleRef module, unsigned form)
{
	static const Target gpu = {.arch = ARCH_NVPTX, .doubles = true};
	Names *names = names_new(a);
	TirKernel *k = tir_new(a, names, name_cstr(names, "k"));
	Lower l = {.arena = a, .ctx = ctx, .module = module, .b = LLVMCreateBuilderInContext(ctx), .k = k, .target = &gpu};
	ValId arg[2][LANES], v[LANES];
	bool root = form >= ROOTS;
	unsigned lanes = is_alone(form) ? 1 : LANES;
	k->group = LANES;
	LLVMTypeRef pointer = LLVMPointerTypeInContext(ctx, 0), type[4] = {pointer, pointer, pointer, pointer};
	l.fn = LLVMAddFunction(module, form_name[form], LLVMFunctionType(LLVMVoidTypeInContext(ctx), type, 4, 0));
	LLVMPositionBuilderAtEnd(l.b, LLVMAppendBasicBlockInContext(ctx, l.fn, ""));
	for (unsigned n = 0; n < 2 * LANES; n++) {
		unsigned scalar = tir_add_scalar(k, name_cstr(names, "s"), DT_F32);
		arg[n % 2][n / 2] = tir_emit(k, OP_SCALAR, tir_scalar(DT_F32), scalar, NULL, 0);
	}
	for (unsigned n = 0; n < lanes; n++)
		v[n] = root ? tir_unary(k, OP_SQRT, arg[0][n]) : tir_binary(k, OP_FDIV, arg[0][n], arg[1][form == ONE ? 0 : n]);
	l.val = ARENA_ARRAY(a, Val, k->inst.n);
	for (unsigned n = 0; n < 2 * LANES; n++)
		l.val[arg[n % 2][n / 2]] = element(&l, n % 2, n / 2);
	bool together = true;
	for (unsigned n = 0; n < lanes; n++) {
		together = together && (l.val[v[n]] || lower_quotients(&l, &k->region.at[0], v[n]));
		if (together)
			LLVMBuildStore(l.b, l.val[v[n]], element(&l, 3, n));
	}
	LLVMBuildRetVoid(l.b);
	unsigned reciprocals = take_approximations(&l);
	LLVMDisposeBuilder(l.b);
	return together && reciprocals == (form == ONE ? 1 : lanes);
}

static int
load(void **state)
{
	static Arena a;
	static Unwind u;
	static Code code;
	(void)state;
	arena_init(&a, &host_default()->memory, &u);
	if (setjmp(u.env))
		return 1;
	LLVMContextRef ctx = LLVMContextCreate();
	LLVMModuleRef module = LLVMModuleCreateWithNameInContext("k", ctx);
	bool loaded = true;
	for (unsigned form = 0; form < FORMS; form++)
		loaded = loaded && generate_form(&a, ctx, module, form);
	loaded = loaded && module_load(module, "x86-64-v3", &code);
	LLVMDisposeModule(module);
	LLVMContextDispose(ctx);
	if (!loaded)
		return 1;
	for (unsigned form = 0; form < FORMS; form++) {
		ImageCpuKernel *f = code_symbol(&code, form_name[form]);
		if (!f)
			return 1;
		memcpy(&divide[form], &f, sizeof f);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "all") == 0)
		divisors = 1;
	if (!rig_can_run("x86-64-v3")) {
		print_message("skipped: this processor has no FMA\n");
		return 77;
	}
	const struct CMUnitTest tests[] = {cmocka_unit_test(edges), cmocka_unit_test(many), cmocka_unit_test(hard), cmocka_unit_test(which),
	                                   cmocka_unit_test(roots)};
	return cmocka_run_group_tests(tests, load, NULL);
}
