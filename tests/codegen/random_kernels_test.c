/* random_kernels_test.c: random kernels of the tile IR through passes/tile and code generation. The
 * interpreter must give the same before and after each pass, and compiled code the same as the
 * interpreter, bit for bit (all NaNs being one); each buffer ends where a page begins that must not be
 * touched. Usage: random_kernels_test [count [first seed [cpu]]] */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "passes/tile/tile.h"
#include "tests/codegen/rig.h"
#include "tir_random.h"

enum { GUARDED_BYTES = 1 << 20, PAGE = 4096, SKIPPED = 77 };

static uint64_t count = 80, first = 1;
static const char *cpu = "host";
static uint64_t seed; /* at hand; 0 when all is well */
static char *guarded[RIG_MAX];

static const char *
print_kernel(Rig *r, const TirKernel *k)
{
	Text t;
	text_init(&t, &r->arena);
	tir_print(k, &t);
	return text_get(&t);
}

static TirMemory *
interpret(Rig *r, const RandomCase *c, const TirKernel *k, TirRun *run)
{
	const char *error = "";
	TirMemory *memory = random_copy_buffers(&r->arena, c);
	*run = (TirRun){.buffer = memory, .scalar = c->scalar, .task_lo = c->task_lo, .task_hi = c->task_hi,
	                .max_steps = 100000000};
	if (!tir_interpret(k, &r->arena, run, &error))
		fail_msg("%s\n%s", error, print_kernel(r, k));
	return memory;
}

static void
same_or_fail(Rig *r, const RandomCase *c, const TirMemory *x, const TirMemory *y, const char *what,
             const TirKernel *k)
{
	const char *where = "";
	if (!random_same(&r->arena, c, x, y, &where))
		fail_msg("%s: %s\n%s", what, where, print_kernel(r, k));
}

/* What compiled code leaves; the buffers against guard pages. */
static TirMemory *
launch(Rig *r, const RandomCase *c, RigRun *run)
{
	TirMemory *memory = random_copy_buffers(&r->arena, c);
	for (uint32_t b = 0; b < c->kernel->buffer.n; b++) {
		size_t n = (size_t)memory[b].bytes;
		run->data[b] = guarded[b] + GUARDED_BYTES - n;
		run->count[b] = memory[b].bytes * 8 / dtype_info[c->kernel->buffer.at[b].dtype].bits;
		memcpy(run->data[b], memory[b].data, n);
	}
	for (uint32_t s = 0; s < c->kernel->scalar.n; s++)
		run->scalar[s] = c->scalar[s];
	rig_launch(r, run);
	for (uint32_t b = 0; b < c->kernel->buffer.n; b++)
		memcpy(memory[b].data, run->data[b], (size_t)memory[b].bytes);
	return memory;
}

static void
check_seed(Rig *r, bool math)
{
	TirRun before, expanded, lowered;
	RigRun run = {0};
	if (setjmp(r->unwind.env))
		fail_msg("unwound: %s", r->unwind.text);
	RandomCase c = tir_random(&r->arena, r->names, seed, (RandomOptions){.math = math, .scale = codegen_target_offer(cpu).scale});
	TirKernel *e = tile_expand_math(c.kernel, &r->arena), *l = tile_legalize(e, &r->arena);
	TirMemory *x = interpret(r, &c, e, &expanded), *y = interpret(r, &c, l, &lowered);
	if (!math)
		same_or_fail(r, &c, interpret(r, &c, c.kernel, &before), x, "expand_math", c.kernel);
	same_or_fail(r, &c, x, y, "legalize", e);
	r->k = l;
	rig_load(r, cpu, c.task_hi);
	same_or_fail(r, &c, y, launch(r, &c, &run), "compiled", l);
	assert_int_equal(expanded.fault, lowered.fault);
	assert_int_equal(run.fault, lowered.fault);
	assert_int_equal(run.cut, lowered.fault ? 0 : lowered.cut);
}

static void
random_kernels(void **state)
{
	(void)state;
	Rig r;
	print_message("seeds %llu to %llu\n", (unsigned long long)first, (unsigned long long)(first + count - 1));
	for (uint64_t i = 0; i < count; i++) {
		seed = first + i;
		rig_init(&r, "random");
		check_seed(&r, seed % 4 == 0);
		rig_close(&r);
	}
	seed = 0;
}

/* y[0] = u8(x[0]) as one lane of sixteen: LLVM 22 would write four bytes. */
static void
known_lane_of_a_truncation(void **state)
{
	(void)state;
	Rig r;
	rig_open(&r, "lane");
	TirKernel *k = r.k;
	ValId one = tir_int(k, DT_I64, 1), zero = tir_int(k, DT_I64, 0), n = tir_int(k, DT_I64, 16);
	tir_add_buffer(k, name_cstr(r.names, "x"), DT_I32, false);
	tir_add_buffer(k, name_cstr(r.names, "y"), DT_U8, true);
	ValId x = tir_view(k, 0, 1, &n, &one), y = tir_view(k, 1, 1, &one, &one);
	ValId v = tir_cast(k, DT_U8, tir_load(k, x, &zero, 0, TIR_LANES_ALONG(0), 16));
	ValId lane = tir_emit(k, OP_IOTA, tir_vector(DT_I64, 16), 0, NULL, 0);
	tir_store(k, y, v, &zero, tir_binary(k, OP_LT, lane, one), TIR_LANES_ALONG(0));
	int32_t in[16] = {0x12345678};
	char *out = guarded[0] + GUARDED_BYTES - 1;
	RigRun run = {.data = {in, out}, .count = {16, 1}, .ntask = 1};
	rig_load(&r, cpu, 1);
	rig_launch(&r, &run);
	assert_int_equal(*out, 0x78);
	rig_close(&r);
}

/* y[l] = x[l] where c[l] and l < 2, of sixteen lanes, and z[2 l] = 1 where c[l]: LLVM 22 would read x[8..16). */
static void
known_half_of_a_mask(void **state)
{
	(void)state;
	Rig r;
	rig_open(&r, "half");
	TirKernel *k = r.k;
	ValId zero = tir_int(k, DT_I64, 0), one = tir_int(k, DT_I64, 1), two = tir_int(k, DT_I64, 2), n = tir_int(k, DT_I64, 16);
	ValId even = tir_int(k, DT_I64, 32);
	tir_add_buffer(k, name_cstr(r.names, "c"), DT_BOOL, false);
	tir_add_buffer(k, name_cstr(r.names, "x"), DT_I32, false);
	tir_add_buffer(k, name_cstr(r.names, "y"), DT_I32, true);
	tir_add_buffer(k, name_cstr(r.names, "z"), DT_U8, true);
	ValId c = tir_load(k, tir_view(k, 0, 1, &n, &one), &zero, 0, TIR_LANES_ALONG(0), 16);
	ValId lane = tir_emit(k, OP_IOTA, tir_vector(DT_I64, 16), 0, NULL, 0);
	ValId x = tir_load(k, tir_view(k, 1, 1, &two, &one), &zero, tir_binary(k, OP_AND, c, tir_binary(k, OP_LT, lane, two)),
	                   TIR_LANES_ALONG(0), 16);
	ValId twice = tir_binary(k, OP_MUL, lane, two);
	tir_store(k, tir_view(k, 3, 1, &even, &one), tir_int(k, DT_U8, 1), &twice, c, 0);
	tir_store(k, tir_view(k, 2, 1, &n, &one), x, &zero, 0, TIR_LANES_ALONG(0));
	const int32_t in[2] = {7, 9}, want[16] = {7};
	int32_t out[16];
	bool cond[16] = {true, false, true, [9] = true, [15] = true};
	uint8_t ones[32] = {0};
	char *end = guarded[0] + GUARDED_BYTES - sizeof in;
	memcpy(end, in, sizeof in);
	RigRun run = {.data = {cond, end, out, ones}, .count = {16, 2, 16, 32}, .ntask = 1};
	rig_load(&r, cpu, 1);
	rig_launch(&r, &run);
	assert_memory_equal(out, want, sizeof want);
	for (unsigned l = 0; l < 16; l++)
		assert_int_equal(ones[2 * l], cond[l]);
	rig_close(&r);
}

static int
map_guarded(void **state)
{
	(void)state;
	for (unsigned b = 0; b < RIG_MAX; b++) {
		guarded[b] = mmap(NULL, GUARDED_BYTES + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (guarded[b] == MAP_FAILED || mprotect(guarded[b] + GUARDED_BYTES, PAGE, PROT_NONE))
			return -1;
	}
	return 0;
}

static int
tell_seed(void **state)
{
	(void)state;
	if (seed)
		print_message("at seed %llu\n", (unsigned long long)seed);
	return 0;
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_lane_of_a_truncation),
		cmocka_unit_test(known_half_of_a_mask),
		cmocka_unit_test_teardown(random_kernels, tell_seed),
	};
	if (argc > 1)
		count = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		first = strtoull(argv[2], NULL, 10);
	if (argc > 3)
		cpu = argv[3];
	if (!rig_can_run(cpu)) {
		print_message("skipped: this machine does not run code for %s\n", cpu);
		return SKIPPED;
	}
	return cmocka_run_group_tests(tests, map_guarded, NULL);
}
