/* launch.c: runs a graph's kernels. The floating-point environment is the default one while they run
 * (nearest even, subnormals kept), whatever the caller has set, so that results have the same bits. */
#include <string.h>
#include <xmmintrin.h>

#include "runtime/inside.h"
#include "ir/bugs.h"

enum { MXCSR_DEFAULT = 0x1f80 };

/* The buffers and scalars of a kernel, into the frame. */
static void
bind_arguments(texo_kernel *k, const ImageKernel *kernel, uint8_t *workspace)
{
	const Image *im = &k->program->image;
	Frame *f = &k->frame;
	ExprEnv env = {im->words, f->dim, f->param, f->stack};
	const ImageBind *b = im->bind + kernel->bind0;
	for (uint32_t n = 0; n < kernel->nbuffer; n++, b++) {
		if (b->kind == IMG_BIND_PARAM)
			f->buffer[n] = f->arg[b->a].data;
		else
			f->buffer[n] = workspace ? workspace + f->piece[b->a] : NULL;
	}
	for (uint32_t n = 0; n < kernel->nscalar; n++, b++) {
		if (b->kind == IMG_BIND_EXPR)
			f->scalar[n] = (uint64_t)expr_value(&env, b->a);
		else if (b->kind == IMG_BIND_SCALAR)
			f->scalar[n] = f->arg[b->a].word;
		else
			f->scalar[n] = (uint64_t)f->arg[b->a].stride[BUG(stride_of_first_axis) ? 0 : b->b];
	}
}

static void
run_kernels(texo_kernel *k, uint8_t *workspace)
{
	const Image *im = &k->program->image;
	Frame *f = &k->frame;
	ExprEnv env = {im->words, f->dim, f->param, f->stack};
	unsigned csr = _mm_getcsr();
	_mm_setcsr(MXCSR_DEFAULT);
	for (uint32_t n = 0; n < k->graph->nkernel; n++) {
		const ImageKernel *kernel = &im->kernel[k->graph->kernel0 + n];
		int64_t ntask = expr_value(&env, kernel->ntask);
		if (ntask <= 0)
			continue;
		bind_arguments(k, kernel, workspace);
		k->entry[n](f->buffer, f->scalar, 0, ntask, f->status);
	}
	_mm_setcsr(csr);
}

static const ImageAccess *
access_of(const texo_kernel *k, uint32_t id)
{
	return id && id <= k->graph->naccess ? &k->program->image.access[k->graph->access0 + id - 1] : NULL;
}

static texo_status
finish(texo_kernel *k)
{
	const char *text = k->program->image.text;
	if (!k->frame.status[0])
		return TEXO_OK;
	const ImageAccess *a = access_of(k, k->frame.status[0]);
	if (!a)
		return rt_fail(TEXO_FAULT, "an access went outside");
	return rt_fail(TEXO_FAULT, "%u:%u: the access %s went outside", a->line, a->col, text + a->text);
}

static texo_status
check_workspace(const texo_kernel *k, const void *workspace)
{
	const Frame *f = &k->frame;
	uintptr_t lo = (uintptr_t)workspace, hi = lo + (uintptr_t)f->workspace;
	if (f->workspace == 0)
		return TEXO_OK;
	if (!workspace)
		return rt_fail(TEXO_INVALID, "the workspace is NULL, and %llu bytes are needed",
		               (unsigned long long)f->workspace);
	if (lo % 64 || hi < lo)
		return rt_fail(TEXO_INVALID, "the workspace is not aligned to 64 bytes");
	const ImageParam *param = k->program->image.param + k->graph->param0;
	for (uint32_t p = 0; p < k->graph->nparam; p++)
		if (param[p].kind != IMG_SCALAR && f->arg[p].lo < hi && lo < f->arg[p].hi)
			return rt_fail(TEXO_INVALID, "argument %s shares memory with the workspace",
			               k->program->image.text + param[p].name);
	return TEXO_OK;
}

texo_status
texo_kernel_launch(texo_kernel *k, const texo_arg *args, size_t n, void *workspace, void *stream)
{
	if (!k)
		return rt_fail(TEXO_INVALID, "the kernel is NULL");
	if (stream)
		return rt_fail(TEXO_INVALID, "the stream must be NULL on the CPU");
	pthread_mutex_lock(&k->lock);
	texo_status s = frame_fill(k, args, n, true);
	if (!s)
		s = check_workspace(k, workspace);
	if (!s) {
		k->frame.status[0] = k->frame.status[1] = 0;
		run_kernels(k, workspace);
		s = finish(k);
	}
	pthread_mutex_unlock(&k->lock);
	return s;
}

texo_status
texo_kernel_prepare(texo_kernel *k, const texo_arg *args, size_t n)
{
	size_t bytes;
	return texo_kernel_workspace(k, args, n, &bytes);
}

texo_status
texo_kernel_workspace(texo_kernel *k, const texo_arg *args, size_t n, size_t *bytes)
{
	if (!k || !bytes)
		return rt_fail(TEXO_INVALID, "the kernel or the result is NULL");
	pthread_mutex_lock(&k->lock);
	texo_status s = frame_fill(k, args, n, false);
	if (!s)
		*bytes = (size_t)k->frame.workspace;
	pthread_mutex_unlock(&k->lock);
	return s;
}

texo_status
texo_kernel_status(texo_kernel *k, texo_fault *out)
{
	if (!k || !out || out->struct_size < sizeof *out)
		return rt_fail(TEXO_INVALID, "the kernel or the result is NULL, or struct_size is not set");
	pthread_mutex_lock(&k->lock);
	const uint32_t *status = k->frame.status;
	const ImageAccess *a = access_of(k, status[0] ? status[0] : status[1]);
	*out = (texo_fault){out->struct_size, status[0] != 0, status[1] != 0, a ? a->line : 0, a ? a->col : 0,
	                    a ? k->program->image.text + a->text : ""};
	pthread_mutex_unlock(&k->lock);
	return TEXO_OK;
}
