/* roof_cuda.c: the two measurements of roof.h on a GPU: a copy on the device, through memory much larger
 * than its cache, and multiply-adds in registers by as many threads as hide their latency. The fastest
 * of some turns counts. */
#include "driver/roof.h"
#include "runtime/cuda.h"

enum { TURNS = 6, ROUNDS = 1024, THREADS = 256, BLOCKS_A_PROCESSOR = 16, CHAINS = 8, STEPS = 4 };
static const size_t MOST = (size_t)1 << 30, LEAST = (size_t)16 << 20;

/* x = x * 0.5 + 1 in eight registers, four times a round; the sum is stored, so that it is needed. */
#define STEP                                                                                       \
	"fma.rn.f32 %f0,%f0,%f8,%f9; fma.rn.f32 %f1,%f1,%f8,%f9; fma.rn.f32 %f2,%f2,%f8,%f9;\n"     \
	"fma.rn.f32 %f3,%f3,%f8,%f9; fma.rn.f32 %f4,%f4,%f8,%f9; fma.rn.f32 %f5,%f5,%f8,%f9;\n"     \
	"fma.rn.f32 %f6,%f6,%f8,%f9; fma.rn.f32 %f7,%f7,%f8,%f9;\n"
static const char loop_text[] =
	".version 7.0\n.target sm_80\n.address_size 64\n"
	".visible .entry texo_multiply_add(.param .u64 out, .param .u32 rounds)\n{\n"
	".reg .f32 %f<10>; .reg .u32 %r<4>; .reg .u64 %a<3>; .reg .pred %p;\n"
	"mov.u32 %r0, %tid.x; cvt.rn.f32.u32 %f0, %r0;\n"
	"mov.f32 %f8, 0f3F000000; mov.f32 %f9, 0f3F800000;\n"
	"add.f32 %f1,%f0,%f9; add.f32 %f2,%f1,%f9; add.f32 %f3,%f2,%f9; add.f32 %f4,%f3,%f9;\n"
	"add.f32 %f5,%f4,%f9; add.f32 %f6,%f5,%f9; add.f32 %f7,%f6,%f9;\n"
	"ld.param.u32 %r1, [rounds];\n"
	"$again:\n" STEP STEP STEP STEP
	"sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0; @%p bra $again;\n"
	"add.f32 %f0,%f0,%f1; add.f32 %f2,%f2,%f3; add.f32 %f4,%f4,%f5; add.f32 %f6,%f6,%f7;\n"
	"add.f32 %f0,%f0,%f2; add.f32 %f4,%f4,%f6; add.f32 %f0,%f0,%f4;\n"
	"ld.param.u64 %a0, [out]; cvta.to.global.u64 %a0, %a0; mul.wide.u32 %a1, %r0, 4; add.u64 %a2, %a0, %a1;\n"
	"st.global.f32 [%a2], %f0;\nret;\n}\n";

typedef struct {
	texo_rt *rt;
	void *event[2], *module, *function, *a, *b;
	size_t bytes; /* of a and of b */
	double copy_us, flops_us;
} Measure;

static texo_status
take_memory(Measure *m)
{
	texo_status st = TEXO_NO_MEMORY;
	for (m->bytes = MOST; st == TEXO_NO_MEMORY && m->bytes >= LEAST; m->bytes /= 2) {
		st = cuda_memory_alloc(m->rt, m->bytes, &m->a);
		if (!st)
			st = cuda_memory_alloc(m->rt, m->bytes, &m->b);
		if (!st)
			break;
		cuda_memory_free(m->rt, m->a);
		m->a = NULL;
	}
	return st ? st : cuda_fill(m->rt, m->a, 1, m->bytes, NULL);
}

static texo_status
begin(Measure *m)
{
	texo_status st = cuda_function_new(m->rt, loop_text, "texo_multiply_add", &m->module, &m->function);
	for (int k = 0; !st && k < 2; k++)
		st = cuda_event_new(m->rt, &m->event[k]);
	return st ? st : take_memory(m);
}

static texo_status
multiply_add(Measure *m)
{
	uint32_t rounds = ROUNDS;
	void *parameter[] = {&m->a, &rounds};
	unsigned blocks = (unsigned)m->rt->cuda->processors * BLOCKS_A_PROCESSOR;
	return cuda_launch_function(m->rt, m->function, blocks, THREADS, parameter, NULL);
}

static texo_status
turn(Measure *m, bool copy, double *best)
{
	double us;
	texo_status st = cuda_event_record(m->rt, m->event[0], NULL);
	if (!st)
		st = copy ? cuda_copy_inside(m->rt, m->b, m->a, m->bytes, NULL) : multiply_add(m);
	if (!st)
		st = cuda_event_record(m->rt, m->event[1], NULL);
	if (!st)
		st = cuda_event_between(m->rt, m->event[0], m->event[1], &us);
	if (!st && (*best == 0 || us < *best))
		*best = us;
	return st;
}

texo_status
roof_measure_cuda(texo_rt *rt, Roof *out)
{
	Measure m = {.rt = rt};
	texo_status st = begin(&m);
	for (int k = 0; !st && k < TURNS; k++) {
		st = turn(&m, true, &m.copy_us);
		if (!st)
			st = turn(&m, false, &m.flops_us);
	}
	cuda_event_free(rt, m.event[0]);
	cuda_event_free(rt, m.event[1]);
	cuda_memory_free(rt, m.a);
	cuda_memory_free(rt, m.b);
	cuda_function_free(rt, m.module);
	double flops = 2.0 * CHAINS * STEPS * ROUNDS * THREADS * BLOCKS_A_PROCESSOR * rt->cuda->processors;
	if (!st)
		*out = (Roof){.gbps = 2 * (double)m.bytes / m.copy_us * 1e-3, .tflops = flops / m.flops_us * 1e-6};
	return st;
}
