/* cuda_rows.c: what aside.c does, on a GPU: arguments of which kernels take the last stride for 1, but which
 * are launched with another, have a row-major copy in the workspace. A thread copies an element at a
 * time: from its number it has the index along each axis, the last one first, and ends with the axis
 * from which on all are 0. Extents that fit 32 bits, as most do, are divided by in 32. */
#include <pthread.h>

#include "runtime/cuda.h"
#include "runtime/cuda_program.h"

/* Of axis k, whose extent, bytes of a step on the side that is written and on the other are at these places. */
#define AXIS(k, extent, to, from)                                                                  \
	"setp.eq.u64 %p, %n, 0; @%p bra $move;\n"                                                  \
	"ld.param.u64 %e, [axes+" extent "]; or.b64 %h, %n, %e; shr.u64 %h, %h, 32;\n"             \
	"setp.ne.u64 %p, %h, 0; @%p bra $wide" k ";\n"                                             \
	"cvt.u32.u64 %r0, %n; cvt.u32.u64 %r1, %e; div.u32 %r0, %r0, %r1; cvt.u64.u32 %q, %r0;\n" \
	"bra.uni $have" k ";\n$wide" k ": div.u64 %q, %n, %e;\n"                                   \
	"$have" k ": mul.lo.u64 %h, %q, %e; sub.u64 %i, %n, %h; mov.u64 %n, %q;\n"                 \
	"ld.param.u64 %s, [axes+" to "]; mad.lo.u64 %a, %i, %s, %a;\n"                             \
	"ld.param.u64 %s, [axes+" from "]; mad.lo.u64 %b, %i, %s, %b;\n"
#define ROWS(bytes, bits, register)                                                                          \
	".visible .entry texo_rows_" bytes "(.param .u64 to, .param .u64 from, .param .u64 count,\n" \
	".param .align 8 .b8 axes[192])\n{\n"                                                      \
	".reg .u64 %a, %b, %n, %e, %h, %q, %i, %s, %t, %step, %count, %to, %from;\n"               \
	".reg .u32 %r<4>; .reg .b" register " %v; .reg .pred %p;\n"                                    \
	"mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mov.u32 %r3, %nctaid.x;\n" \
	"cvt.u64.u32 %t, %r2; mul.wide.u32 %h, %r0, %r1; add.u64 %t, %t, %h; mul.wide.u32 %step, %r3, %r1;\n" \
	"ld.param.u64 %to, [to]; ld.param.u64 %from, [from]; ld.param.u64 %count, [count];\n"      \
	"cvta.to.global.u64 %to, %to; cvta.to.global.u64 %from, %from;\n"                          \
	"$next:\nsetp.ge.u64 %p, %t, %count; @%p bra $end;\n"                                      \
	"mov.u64 %n, %t; mov.u64 %a, %to; mov.u64 %b, %from;\n"                                    \
	AXIS("0", "0", "8", "16") AXIS("1", "24", "32", "40") AXIS("2", "48", "56", "64")          \
	AXIS("3", "72", "80", "88") AXIS("4", "96", "104", "112") AXIS("5", "120", "128", "136")   \
	AXIS("6", "144", "152", "160") AXIS("7", "168", "176", "184")                              \
	"$move:\nld.global.b" bits " %v, [%b]; st.global.b" bits " [%a], %v;\n"                    \
	"add.u64 %t, %t, %step; bra.uni $next;\n$end:\nret;\n}\n"

/* A register has 16 bits or more. */
static const char text[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
	ROWS("1", "8", "16") ROWS("2", "16", "16") ROWS("4", "32", "32") ROWS("8", "64", "64");

enum { THREADS = 256, BLOCKS_A_PROCESSOR = 16 };

typedef struct {
	uint64_t extent, to, from; /* strides in bytes */
} Axis;

/* --- loading --- */

static bool
is_aside(const texo_kernel *k, uint32_t p)
{
	const ImageParam *param = &k->program->image.param[k->graph->param0 + p];
	return param->kind != IMG_SCALAR && aside_needed(&k->frame.arg[p], param);
}

enum { LAST_FUNCTION = sizeof((Cuda *)0)->rows / sizeof(void *) - 1 };

static texo_status
load(Cuda *c)
{
	static const char *const name[] = {"texo_rows_1", "texo_rows_2", "texo_rows_4", "texo_rows_8"};
	texo_status s = TEXO_OK;
	if (!c->rows_module)
		s = cuda_load_text(c, text, &c->rows_module);
	for (unsigned n = 0; !s && n < sizeof name / sizeof *name; n++)
		if (!c->rows[n])
			s = cuda_find_function(c, c->rows_module, name[n], &c->rows[n]);
	return s;
}

texo_status
cuda_rows_load(texo_kernel *k)
{
	Cuda *c = k->program->rt->cuda;
	if (!k->frame.asides)
		return TEXO_OK;
	pthread_mutex_lock(&c->rows_lock); /* kernels of other threads may want it too */
	texo_status s = c->rows[LAST_FUNCTION] ? TEXO_OK : cuda_may_load(k);
	if (!s)
		s = load(c);
	pthread_mutex_unlock(&c->rows_lock);
	return s;
}

/* --- copies --- */

static unsigned
log2_of(unsigned bytes)
{
	return bytes == 8 ? 3 : bytes == 4 ? 2 : bytes == 2 ? 1 : 0;
}

static texo_status
copy_argument(Cuda *c, const Arg *a, const ImageParam *p, uint8_t *workspace, bool out, void *stream)
{
	Axis axes[IMAGE_MAX_RANK];
	uint64_t bytes = element_of(p->dtype)->bits / 8, count = (uint64_t)a->count;
	uint64_t strided = (uint64_t)(uintptr_t)a->data, row = (uint64_t)(uintptr_t)(workspace + a->aside);
	for (uint32_t k = 0; k < IMAGE_MAX_RANK; k++)
		axes[k] = (Axis){1, 0, 0};
	for (uint32_t k = 0; k < p->rank; k++) {
		uint64_t s = (uint64_t)a->stride[k] * bytes, r = (uint64_t)a->row[k] * bytes;
		axes[p->rank - 1 - k] = (Axis){(uint64_t)a->extent[k], out ? s : r, out ? r : s};
	}
	void *parameter[] = {out ? &strided : &row, out ? &row : &strided, &count, axes};
	uint64_t blocks = (count - 1) / THREADS + 1, most = (uint64_t)(c->processors > 0 ? c->processors : 1) * BLOCKS_A_PROCESSOR;
	return cuda_result(c, c->driver.launch(c->rows[log2_of((unsigned)bytes)], (unsigned)(blocks < most ? blocks : most), 1, 1,
	                                       THREADS, 1, 1, 0, stream, parameter, NULL),
	                   "launch a copy");
}

texo_status
cuda_rows_copy(texo_kernel *k, uint8_t *workspace, bool out, void *stream)
{
	const ImageParam *param = k->program->image.param + k->graph->param0;
	texo_status s = TEXO_OK;
	for (uint32_t p = 0; !s && k->frame.asides && p < k->graph->nparam; p++) {
		bool wanted = out ? param[p].kind != IMG_INPUT : param[p].kind != IMG_RESULT;
		if (wanted && is_aside(k, p))
			s = copy_argument(k->program->rt->cuda, &k->frame.arg[p], &param[p], workspace, out, stream);
	}
	return s;
}
