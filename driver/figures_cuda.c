/* figures_cuda.c: measures the figures of ir/gpus.def on a GPU, beside those that roof_cuda.c has: products on tensor cores,
 * reads of the L2 cache, and launches.
 *
 * Products go on for as long as it takes until the clock is what they let it be, of numbers that are not 0, which take the
 * power that others' do; the last launches count. Where there is wgmma two groups of 128 threads multiply what lies in
 * shared memory; else warps multiply what is in registers. The values are of no use, but stored, so that they are needed. */
#include "driver/roof.h"
#include "runtime/cuda.h"

#include <stdio.h>

enum { GAP_LAUNCHES = 250, WARM = 100, COUNTED = 20, TURNS = 6, READ_ROUNDS = 64, READ_THREADS = 512, READ_BLOCKS = 4 };
enum { GROUPS_ROUNDS = 4000, WARPS_ROUNDS = 4000, GROUPS_THREADS = 256, WARPS_THREADS = 256, WARPS_BLOCKS = 2 };
enum { STEPS = 4, CHAINS = 8, ACCUMULATORS = 128, TEXT_BYTES = 1 << 16 };

/* Parameters of both kernels of products: where to store, and how many rounds. */
#define ENTRY(name) ".visible .entry " name "(.param .u64 out, .param .u32 rounds)\n{\n"
#define LOOP ".reg .u64 %a<3>; .reg .u32 %r<12>; .reg .pred %p;\nmov.u32 %r0, %tid.x; ld.param.u32 %r1, [rounds];\n"
#define AGAIN "sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0; @%p bra $again;\n"
#define STORE                                                                                                                        \
	"ld.param.u64 %a0, [out]; cvta.to.global.u64 %a0, %a0; mul.wide.u32 %a1, %r0, 4; add.u64 %a2, %a0, %a1;\n"                       \
	"st.global.f32 [%a2], %f0;\nret;\n}\n"
/* %r2 = two numbers of bf16 in +-[0.5, 1), by %r3 */
#define NUMBERS "mul.lo.u32 %r3, %r3, 1664525; add.u32 %r3, %r3, 1013904223; shr.u32 %r2, %r3, 3;\nand.b32 %r2, %r2, 0x807f807f; or.b32 %r2, %r2, 0x3f003f00;\n"

static const char other_text[] =
	".version 7.0\n.target sm_80\n.address_size 64\n"
	".visible .entry texo_nothing(.param .u64 out)\n{\nret;\n}\n"
	".visible .entry texo_read(.param .u64 at, .param .u64 mask, .param .u64 out, .param .u32 rounds)\n{\n"
	".reg .u64 %b<6>; .reg .u32 %v<8>;\n" LOOP
	"mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %nctaid.x; mad.lo.u32 %r5, %r2, %r3, %r0; mul.lo.u32 %r6, %r3, %r4;\n"
	"mul.wide.u32 %b0, %r5, 16; mul.wide.u32 %b1, %r6, 16; ld.param.u64 %b2, [at]; cvta.to.global.u64 %b2, %b2; ld.param.u64 %b3, [mask];\n"
	"mov.u32 %v4, 0;\n$again:\n"
#define READ                                                                                                                         \
	"and.b64 %b4, %b0, %b3; add.u64 %b4, %b4, %b2; ld.global.cg.v4.u32 {%v0, %v1, %v2, %v3}, [%b4]; add.u64 %b0, %b0, %b1;\n"        \
	"xor.b32 %v0, %v0, %v1; xor.b32 %v2, %v2, %v3; xor.b32 %v0, %v0, %v2; xor.b32 %v4, %v4, %v0;\n"
	READ READ READ READ AGAIN
	"ld.param.u64 %a0, [out]; cvta.to.global.u64 %a0, %a0; mul.wide.u32 %a1, %r0, 4; add.u64 %a2, %a0, %a1;\n"
	"st.global.u32 [%a2], %v4;\nret;\n}\n";

typedef struct {
	texo_rt *rt;
	void *event[2], *other, *products, *nothing, *read, *multiply, *at;
	size_t bytes;
	double launch_us, read_us, products_us;
} Measure;

/* --- the kernels' texts --- */

typedef struct {
	char *at;
	size_t n;
} Builder;

static void
put(Builder *b, const char *text)
{
	b->n += (size_t)snprintf(b->at + b->n, TEXT_BYTES - b->n, "%s", text);
}

static void
put_number(Builder *b, const char *before, unsigned n, const char *after)
{
	b->n += (size_t)snprintf(b->at + b->n, TEXT_BYTES - b->n, "%s%u%s", before, n, after);
}

static void
put_list(Builder *b, const char *prefix, unsigned first, unsigned n)
{
	put(b, "{");
	for (unsigned k = 0; k < n; k++)
		put_number(b, prefix, first + k, k + 1 < n ? ", " : "}");
}

static void
put_zeros(Builder *b, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		put_number(b, "mov.f32 %f", k, ", 0f00000000;\n");
}

/* 64 x 256 x 16 by a group, of rows of 128 bytes, swizzled: 8 KB of the first factor, 32 of the second. */
static void
groups_text(Builder *b)
{
	put(b, ".version 8.0\n.target sm_90a\n.address_size 64\n" ENTRY("texo_products") LOOP
	       ".reg .f32 %f<128>; .reg .u64 %d<8>; .shared .align 1024 .b8 tile[40960];\n"
	       "mov.u32 %r3, %r0; mov.u32 %r4, tile; shl.b32 %r5, %r0, 2; add.u32 %r5, %r5, %r4; add.u32 %r6, %r4, 40960;\n$fill:\n" NUMBERS
	       "st.shared.u32 [%r5], %r2; add.u32 %r5, %r5, 1024; setp.lt.u32 %p, %r5, %r6; @%p bra $fill;\n"
	       "fence.proxy.async.shared::cta; bar.sync 0;\n"
	       "shr.u32 %r7, %r4, 4; cvt.u64.u32 %d0, %r7; mov.u64 %d1, 0x4000004000010000; or.b64 %d2, %d0, %d1; add.u64 %d3, %d2, 512;\n");
	put_zeros(b, ACCUMULATORS);
	put(b, "$again:\nwgmma.fence.sync.aligned;\n");
	for (unsigned k = 0; k < STEPS; k++) {
		put_number(b, "add.u64 %d4, %d2, ", 2 * k, "; ");
		put_number(b, "add.u64 %d5, %d3, ", 2 * k, ";\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 ");
		put_list(b, "%f", 0, ACCUMULATORS);
		put(b, ", %d4, %d5, 1, 1, 1, 0, 0;\n");
	}
	put(b, "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n" AGAIN STORE);
}

/* 16 x 8 x 16 by a warp, in chains. */
static void
warps_text(Builder *b)
{
	put(b, ".version 7.0\n.target sm_80\n.address_size 64\n" ENTRY("texo_products") LOOP ".reg .f32 %f<32>; .reg .b32 %x<6>;\nmov.u32 %r3, %r0;\n");
	for (unsigned k = 0; k < 6; k++) {
		put(b, NUMBERS);
		put_number(b, "mov.b32 %x", k, ", %r2;\n");
	}
	put_zeros(b, 4 * CHAINS);
	put(b, "$again:\n");
	for (unsigned k = 0; k < CHAINS * STEPS; k++) {
		put(b, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 ");
		put_list(b, "%f", k % CHAINS * 4, 4);
		put(b, ", {%x0, %x1, %x2, %x3}, {%x4, %x5}, ");
		put_list(b, "%f", k % CHAINS * 4, 4);
		put(b, ";\n");
	}
	put(b, AGAIN);
	for (unsigned k = 1; k < 4 * CHAINS; k++)
		put_number(b, "add.f32 %f0, %f0, %f", k, ";\n");
	put(b, STORE);
}

static bool
has_groups(const Measure *m)
{
	return m->rt->cuda->sm == 90;
}

static texo_status
load_products(Measure *m)
{
	Builder b = {.at = rt_alloc(m->rt, TEXT_BYTES, 1)};
	if (!b.at)
		return TEXO_NO_MEMORY;
	if (has_groups(m))
		groups_text(&b);
	else
		warps_text(&b);
	texo_status st = cuda_function_new(m->rt, b.at, "texo_products", &m->products, &m->multiply);
	rt_release(m->rt, b.at);
	return st;
}

/* --- measuring --- */

static texo_status
begin(Measure *m)
{
	size_t cache = 0, n = 1;
	texo_status st = cuda_cache_bytes(m->rt, &cache);
	while (2 * n <= cache / 3)
		n *= 2;
	m->bytes = n < 1 << 20 ? 1 << 20 : n;
	for (int k = 0; !st && k < 2; k++)
		st = cuda_event_new(m->rt, &m->event[k]);
	if (!st)
		st = cuda_memory_alloc(m->rt, m->bytes, &m->at);
	if (!st)
		st = cuda_fill(m->rt, m->at, 1, m->bytes, NULL);
	if (!st)
		st = cuda_function_new(m->rt, other_text, "texo_read", &m->other, &m->read);
	if (!st)
		st = cuda_function_of(m->rt, m->other, "texo_nothing", &m->nothing);
	return st ? st : load_products(m);
}

/* The mean of n launches, one after another, behind some that do not count. */
static texo_status
time_launches(Measure *m, void *function, unsigned blocks, unsigned threads, void **parameter, unsigned warm, unsigned n, double *us)
{
	texo_status st = TEXO_OK;
	for (unsigned k = 0; !st && k < warm; k++)
		st = cuda_launch_function(m->rt, function, blocks, threads, parameter, NULL);
	if (!st)
		st = cuda_event_record(m->rt, m->event[0], NULL);
	for (unsigned k = 0; !st && k < n; k++)
		st = cuda_launch_function(m->rt, function, blocks, threads, parameter, NULL);
	if (!st)
		st = cuda_event_record(m->rt, m->event[1], NULL);
	if (!st)
		st = cuda_event_between(m->rt, m->event[0], m->event[1], us);
	*us /= n;
	return st;
}

static texo_status
measure(Measure *m)
{
	unsigned processors = (unsigned)m->rt->cuda->processors;
	uint32_t reads = READ_ROUNDS, rounds = has_groups(m) ? GROUPS_ROUNDS : WARPS_ROUNDS;
	uint64_t mask = m->bytes - 1;
	void *nothing[] = {&m->at}, *read[] = {&m->at, &mask, &m->at, &reads}, *multiply[] = {&m->at, &rounds};
	texo_status st = TEXO_OK;
	for (int k = 0; !st && k < TURNS; k++) {
		double gap = 0, us = 0;
		st = time_launches(m, m->nothing, 1, 32, nothing, COUNTED, GAP_LAUNCHES, &gap);
		if (!st)
			st = time_launches(m, m->read, processors * READ_BLOCKS, READ_THREADS, read, 1, COUNTED, &us);
		m->launch_us = k == 0 || gap < m->launch_us ? gap : m->launch_us;
		m->read_us = k == 0 || us < m->read_us ? us : m->read_us;
	}
	if (!st)
		st = time_launches(m, m->multiply, has_groups(m) ? processors : processors * WARPS_BLOCKS, has_groups(m) ? GROUPS_THREADS : WARPS_THREADS,
		                   multiply, WARM, COUNTED, &m->products_us);
	return st;
}

/* Operations of one multiprocessor in a launch. */
static double
operations(const Measure *m)
{
	if (has_groups(m))
		return 2.0 * 64 * 256 * 16 * STEPS * GROUPS_ROUNDS * (GROUPS_THREADS / 128);
	return 2.0 * 16 * 8 * 16 * CHAINS * STEPS * WARPS_ROUNDS * (WARPS_THREADS / 32) * WARPS_BLOCKS;
}

texo_status
figures_measure_cuda(texo_rt *rt, int64_t fact[GPU_FACTS])
{
	Measure m = {.rt = rt};
	Roof roof;
	double processors = rt->cuda->processors;
	texo_status st = begin(&m);
	if (!st)
		st = measure(&m);
	cuda_event_free(rt, m.event[0]);
	cuda_event_free(rt, m.event[1]);
	cuda_memory_free(rt, m.at);
	cuda_function_free(rt, m.other);
	cuda_function_free(rt, m.products);
	if (!st)
		st = roof_measure_cuda(rt, &roof);
	if (st)
		return st;
	fact[GPU_PROCESSORS] = rt->cuda->processors;
	fact[GPU_PRODUCTS] = (int64_t)(operations(&m) / m.products_us * 1e-3);
	fact[GPU_ARITHMETIC] = (int64_t)(roof.tflops * 1e3 / processors);
	fact[GPU_CACHE] = (int64_t)(16.0 * 4 * READ_ROUNDS * READ_THREADS * READ_BLOCKS / m.read_us);
	fact[GPU_MEMORY] = (int64_t)roof.gbps;
	fact[GPU_LAUNCH] = (int64_t)(m.launch_us * 1e3);
	return TEXO_OK;
}
