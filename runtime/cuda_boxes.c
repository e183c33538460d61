/* cuda_boxes.c: the copies that tensor maps are made of where a tensor's rows begin at places that a map can't have
 * (map_rows.c), of all maps of a kernel in one launch. A thread copies a piece of 16 bytes of a row, which in the copy is
 * aligned; it reads the two aligned pieces that have it, of which neighbours read the same, and shifts it out of them.
 * These may have bytes of other rows, and of what lies between: only where they reach beyond the tensor's first or last
 * byte does it go element by element. What is behind a row's end in its last piece is of no account.
 *
 * Copies of the thirds of f32 (ir/channel.h) are another launch: a thread cuts the 8 elements of a piece. */
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
	uint64_t each;             /* bytes from a piece of first thirds to that of the next ones */
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

/* To the job's piece that the thread has, and its row's first byte: %to, %from; %c: its number in the row; %t: so many bytes before it. */
#define BEGIN                                                                                                    \
	".reg .u64 %j, %h, %t, %from, %to; .reg .s64 %left; .reg .pred %p; .reg .u32 %n, %b, %c, %e, %i, %q, %r, %axes;\n" \
	"mov.u32 %b, %ctaid.x; ld.param.u32 %n, [jobs]; div.u32 %q, %b, %n; mul.lo.u32 %i, %q, %n; sub.u32 %i, %b, %i;\n"  \
	"mov.u64 %j, jobs; mul.wide.u32 %t, %i, 120; add.u64 %j, %j, %t; add.u64 %j, %j, 8;\n"                         \
	"mov.u32 %n, %ntid.x; mov.u32 %i, %tid.x; mad.lo.u32 %c, %q, %n, %i;\n"                                        \
	"ld.param.u32 %e, [%j+52]; setp.ge.u32 %p, %c, %e; @%p bra $end;\n"                                            \
	"ld.param.u32 %e, [%j+48]; div.u32 %r, %c, %e; mul.lo.u32 %i, %r, %e; sub.u32 %c, %c, %i;\n"                   \
	"ld.param.u64 %to, [%j]; ld.param.u64 %h, [%j+32]; cvt.u64.u32 %t, %r; mad.lo.u64 %to, %t, %h, %to;\n"         \
	"mul.wide.u32 %t, %c, 16; add.u64 %to, %to, %t;\n"
/* Where the row is. */
#define ROW                                                                                                    \
	"add.u64 %from, %from, %t; ld.param.u32 %axes, [%j+56];\n"                                                    \
	AXIS("1", "64", "80") AXIS("2", "68", "88") AXIS("3", "72", "96") "ld.param.u64 %h, [%j+104];\n"             \
	"$last: cvt.u64.u32 %t, %r; mad.lo.u64 %from, %t, %h, %from;\n"                                               \
	"cvta.to.global.u64 %from, %from; cvta.to.global.u64 %to, %to;\n"

#define LOAD(k, at) "@%p ld.global.nc.f32 %f" k ", [%from+" at "]; sub.s64 %left, %left, 4; setp.gt.s64 %p, %left, 0;\n"
/* The thirds of a pair, each with its bits in the upper half. */
#define CUT(a, b)                                                                                              \
	"and.b32 %a0, %f" a ", 0xffff0000; and.b32 %b0, %f" b ", 0xffff0000; sub.f32 %u, %f" a ", %a0; sub.f32 %v, %f" b ", %b0;\n" \
	"mul.f32 %u, %u, 0f43800000; mul.f32 %v, %v, 0f43800000; and.b32 %a1, %u, 0xffff0000; and.b32 %b1, %v, 0xffff0000;\n"       \
	"sub.f32 %u, %u, %a1; sub.f32 %v, %v, %b1; mul.f32 %u, %u, 0f43800000; mul.f32 %v, %v, 0f43800000;\n"
#define CUT_TO(a, b, n)                                                                                        \
	CUT(a, b) "prmt.b32 %x" n ", %a0, %b0, 0x7632; prmt.b32 %y" n ", %a1, %b1, 0x7632; prmt.b32 %z" n ", %u, %v, 0x7632;\n"

static const char text[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
	".visible .entry texo_boxes(.param .align 8 .b8 jobs[968])\n{\n" BEGIN
	".reg .u64 %first, %second; .reg .u16 %v; .reg .pred %beyond; .reg .u32 %s; .reg .b32 %a<8>, %u<6>, %w<5>;\n"
	"ld.param.u64 %left, [%j+40]; sub.s64 %left, %left, %t;\n"
	"ld.param.u64 %from, [%j+8];\n" ROW
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
	"ret;\n}\n"
	".visible .entry texo_thirds(.param .align 8 .b8 jobs[968])\n{\n" BEGIN
	".reg .b32 %f<8>, %a0, %a1, %b0, %b1, %u, %v, %x<4>, %y<4>, %z<4>;\n"
	"add.u64 %t, %t, %t; ld.param.u64 %left, [%j+40]; sub.s64 %left, %left, %t; ld.param.u64 %from, [%j+8];\n" ROW
	"and.b64 %h, %from, 15; setp.ne.u64 %p, %h, 0; setp.lt.or.s64 %p, %left, 32, %p; @%p bra $each;\n"
	"ld.global.nc.v4.b32 {%f0, %f1, %f2, %f3}, [%from]; ld.global.nc.v4.b32 {%f4, %f5, %f6, %f7}, [%from+16]; bra $cut;\n"
	"$each: mov.b32 %f0, 0; mov.b32 %f1, 0; mov.b32 %f2, 0; mov.b32 %f3, 0; mov.b32 %f4, 0; mov.b32 %f5, 0; mov.b32 %f6, 0; mov.b32 %f7, 0;\n"
	"setp.gt.s64 %p, %left, 0;\n"
	LOAD("0", "0") LOAD("1", "4") LOAD("2", "8") LOAD("3", "12") LOAD("4", "16") LOAD("5", "20") LOAD("6", "24") LOAD("7", "28")
	"$cut:\n" CUT_TO("0", "1", "0") CUT_TO("2", "3", "1") CUT_TO("4", "5", "2") CUT_TO("6", "7", "3")
	"ld.param.u64 %h, [%j+112]; st.global.v4.b32 [%to], {%x0, %x1, %x2, %x3}; add.u64 %to, %to, %h;\n"
	"st.global.v4.b32 [%to], {%y0, %y1, %y2, %y3}; add.u64 %to, %to, %h;\n"
	"st.global.v4.b32 [%to], {%z0, %z1, %z2, %z3};\n$end: ret;\n}\n";

_Static_assert(sizeof(Job) == 120 && offsetof(Job, pieces) == 48 && offsetof(Job, extent) == 64 && offsetof(Job, stride) == 80 &&
               offsetof(Job, each) == 112 && sizeof(Jobs) == 968, "the text has these places");

texo_status
cuda_boxes_load(texo_kernel *k)
{
	Cuda *c = k->program->rt->cuda;
	pthread_mutex_lock(&c->rows_lock); /* kernels of other threads may want it too */
	texo_status s = c->boxes ? TEXO_OK : cuda_may_load(k);
	if (!s && !c->boxes_module)
		s = cuda_load_text(c, text, &c->boxes_module);
	if (!s && !c->boxes)
		s = cuda_find_function(c, c->boxes_module, "texo_thirds", &c->thirds);
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
	         .row = (uint64_t)(r->extent[0] * r->stride[0]), .pieces = (uint32_t)r->pieces, .axes = r->rank - 1, .each = (uint64_t)r->each};
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

/* Those of one kind. Blocks take the maps in turn. */
static texo_status
copy_those(texo_kernel *k, const CudaBoxes *boxes, uint32_t n, bool thirds, void *stream)
{
	Cuda *c = k->program->rt->cuda;
	Jobs jobs = {0};
	uint32_t most = 0;
	for (uint32_t b = 0; b < n; b++) {
		if (boxes[b].rows->thirds != thirds)
			continue;
		Job *j = &jobs.job[jobs.jobs++];
		*j = job_of(&boxes[b]);
		most = j->all > most ? j->all : most;
	}
	if (!jobs.jobs)
		return TEXO_OK;
	void *parameter[] = {&jobs};
	unsigned blocks = ((most - 1) / THREADS + 1) * jobs.jobs;
	void *function = thirds ? c->thirds : c->boxes;
	return cuda_result(c, c->driver.launch(function, blocks, 1, 1, THREADS, 1, 1, 0, stream, parameter, NULL), "launch a copy");
}

texo_status
cuda_boxes_copy(texo_kernel *k, const CudaBoxes *boxes, uint32_t n, void *stream)
{
	texo_status s = copy_those(k, boxes, n, false, stream);
	return s ? s : copy_those(k, boxes, n, true, stream);
}
