/* cuda_boxes.c: the copies that tensor maps are made of where a tensor's rows begin at places that a map can't have
 * (map_rows.c), of all maps of a kernel in one launch. A thread copies a piece of 16 bytes of a row, which in the copy is
 * aligned; it reads the two aligned pieces that have it, of which neighbours read the same, and shifts it out of them.
 * These may have bytes of other rows, and of what lies between: only where they reach beyond the tensor's first or last
 * byte does it go element by element. What is behind a row's end in its last piece is of no account. */
#include <pthread.h>

#include "runtime/cuda.h"
#include "runtime/cuda_program.h"

enum { THREADS = 256, AXES = IMAGE_MAP_RANK - 1 };

/* What is copied of one map; the text below has these places by their bytes. */
typedef struct {
	uint64_t to, from, lo, hi; /* hi: behind the last byte */
	uint64_t pitch, row;       /* bytes: between rows of the copy, of a row */
	uint32_t pieces, all;      /* of a row, of all rows */
	uint32_t axes, pad;        /* of rows, the innermost first: */
	uint32_t extent[AXES];
	uint64_t stride[AXES];
} Job;

typedef struct {
	uint32_t jobs, pad;
	Job job[IMAGE_CUDA_MAX_MAPS];
} Jobs;

/* The row's index along axis k, unless the axis is the last one: then all that is left. */
#define AXIS(k, extent, stride)                                                                        \
	"ld.param.u64 %h, [%j+" stride "]; setp.eq.u32 %p, %axes, " k "; @%p bra $last;\n"              \
	"ld.param.u32 %e, [%j+" extent "]; div.u32 %q, %r, %e; mul.lo.u32 %i, %q, %e; sub.u32 %i, %r, %i;\n" \
	"cvt.u64.u32 %t, %i; mad.lo.u64 %from, %t, %h, %from; mov.u32 %r, %q;\n"
#define ELEMENT(at)                                                                           \
	"mov.u16 %v, 0; @%p ld.global.u16 %v, [%from+" at "]; st.global.u16 [%to+" at "], %v;\n" \
	"sub.s64 %left, %left, 2; setp.gt.s64 %p, %left, 0;\n"
#define SELECT(to, with, without) "selp.b32 " to ", " with ", " without ", %p; "
#define SHIFT(to, low, high) "shf.r.wrap.b32 " to ", " low ", " high ", %s; "

static const char text[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
	".visible .entry texo_boxes(.param .align 8 .b8 jobs[904])\n{\n"
	".reg .u64 %j, %h, %t, %from, %to, %first, %second; .reg .s64 %left; .reg .u16 %v; .reg .pred %p, %beyond;\n"
	".reg .u32 %n, %b, %c, %e, %i, %q, %r, %s, %axes; .reg .b32 %a<8>, %u<6>, %w<5>;\n"
	"mov.u32 %b, %ctaid.x; ld.param.u32 %n, [jobs]; div.u32 %q, %b, %n; mul.lo.u32 %i, %q, %n; sub.u32 %i, %b, %i;\n"
	"mov.u64 %j, jobs; mul.wide.u32 %t, %i, 112; add.u64 %j, %j, %t; add.u64 %j, %j, 8;\n"
	"mov.u32 %n, %ntid.x; mov.u32 %i, %tid.x; mad.lo.u32 %c, %q, %n, %i;\n"
	"ld.param.u32 %e, [%j+52]; setp.ge.u32 %p, %c, %e; @%p bra $end;\n"
	"ld.param.u32 %e, [%j+48]; div.u32 %r, %c, %e; mul.lo.u32 %i, %r, %e; sub.u32 %c, %c, %i;\n"
	"ld.param.u64 %to, [%j]; ld.param.u64 %h, [%j+32]; cvt.u64.u32 %t, %r; mad.lo.u64 %to, %t, %h, %to;\n"
	"mul.wide.u32 %t, %c, 16; add.u64 %to, %to, %t;\n"
	"ld.param.u64 %left, [%j+40]; sub.s64 %left, %left, %t;\n"
	"ld.param.u64 %from, [%j+8]; add.u64 %from, %from, %t; ld.param.u32 %axes, [%j+56];\n"
	AXIS("1", "64", "80") AXIS("2", "68", "88") AXIS("3", "72", "96") "ld.param.u64 %h, [%j+104];\n"
	"$last: cvt.u64.u32 %t, %r; mad.lo.u64 %from, %t, %h, %from;\n"
	"cvta.to.global.u64 %from, %from; cvta.to.global.u64 %to, %to;\n"
	"and.b64 %first, %from, -16; add.u64 %second, %from, 15; and.b64 %second, %second, -16;\n"
	"ld.param.u64 %h, [%j+16]; setp.lt.u64 %beyond, %first, %h;\n"
	"ld.param.u64 %h, [%j+24]; add.u64 %t, %second, 16; setp.gt.or.u64 %beyond, %t, %h, %beyond; @%beyond bra $each;\n"
	"ld.global.nc.v4.b32 {%a0, %a1, %a2, %a3}, [%first]; ld.global.nc.v4.b32 {%a4, %a5, %a6, %a7}, [%second];\n"
	"cvt.u32.u64 %s, %from; and.b32 %i, %s, 8; setp.ne.u32 %p, %i, 0;\n"
	SELECT("%u0", "%a2", "%a0") SELECT("%u1", "%a3", "%a1") SELECT("%u2", "%a4", "%a2")
	SELECT("%u3", "%a5", "%a3") SELECT("%u4", "%a6", "%a4") SELECT("%u5", "%a7", "%a5")
	"and.b32 %i, %s, 4; setp.ne.u32 %p, %i, 0;\n"
	SELECT("%w0", "%u1", "%u0") SELECT("%w1", "%u2", "%u1") SELECT("%w2", "%u3", "%u2") SELECT("%w3", "%u4", "%u3")
	SELECT("%w4", "%u5", "%u4") "and.b32 %s, %s, 2; shl.b32 %s, %s, 3;\n"
	SHIFT("%a0", "%w0", "%w1") SHIFT("%a1", "%w1", "%w2") SHIFT("%a2", "%w2", "%w3") SHIFT("%a3", "%w3", "%w4")
	"st.global.v4.b32 [%to], {%a0, %a1, %a2, %a3};\n$end: ret;\n"
	"$each: setp.gt.s64 %p, %left, 0;\n"
	ELEMENT("0") ELEMENT("2") ELEMENT("4") ELEMENT("6") ELEMENT("8") ELEMENT("10") ELEMENT("12") ELEMENT("14")
	"ret;\n}\n";

_Static_assert(sizeof(Job) == 112 && offsetof(Job, pieces) == 48 && offsetof(Job, extent) == 64 && offsetof(Job, stride) == 80 &&
               sizeof(Jobs) == 904, "the text has these places");

texo_status
cuda_boxes_load(texo_kernel *k)
{
	Cuda *c = k->program->rt->cuda;
	pthread_mutex_lock(&c->rows_lock); /* kernels of other threads may want it too */
	texo_status s = c->boxes ? TEXO_OK : cuda_may_load(k);
	if (!s && !c->boxes_module)
		s = cuda_load_text(c, text, &c->boxes_module);
	if (!s && !c->boxes)
		s = cuda_find_function(c, c->boxes_module, "texo_boxes", &c->boxes);
	pthread_mutex_unlock(&c->rows_lock);
	return s;
}

static Job
job_of(const CudaBoxes *b)
{
	const MapRows *r = b->rows;
	Job j = {.to = (uintptr_t)b->to, .from = (uintptr_t)b->from, .lo = (uintptr_t)b->from, .pitch = (uint64_t)r->pitch,
	         .row = (uint64_t)(r->extent[0] * r->stride[0]), .pieces = (uint32_t)r->pieces, .axes = r->rank - 1};
	uint64_t rows = 1;
	j.hi = j.from + j.row;
	for (uint32_t a = 1; a < r->rank; a++) {
		j.extent[a - 1] = (uint32_t)r->extent[a];
		j.stride[a - 1] = (uint64_t)r->stride[a];
		j.hi += (uint64_t)(r->extent[a] - 1) * (uint64_t)r->stride[a];
		rows *= (uint64_t)r->extent[a];
	}
	j.all = (uint32_t)(rows * j.pieces);
	return j;
}

/* Blocks take the maps in turn. */
texo_status
cuda_boxes_copy(texo_kernel *k, const CudaBoxes *boxes, uint32_t n, void *stream)
{
	Cuda *c = k->program->rt->cuda;
	Jobs jobs = {.jobs = n};
	uint32_t most = 0;
	for (uint32_t b = 0; b < n; b++) {
		jobs.job[b] = job_of(&boxes[b]);
		most = jobs.job[b].all > most ? jobs.job[b].all : most;
	}
	void *parameter[] = {&jobs};
	unsigned blocks = ((most - 1) / THREADS + 1) * n;
	return cuda_result(c, c->driver.launch(c->boxes, blocks, 1, 1, THREADS, 1, 1, 0, stream, parameter, NULL), "launch a copy");
}
