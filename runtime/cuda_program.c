/* cuda_program.c: programs on a GPU: whether the GPU can run them, what their kernels keep, and the status
 * words on the device, two of 64 bits a kernel. */
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda.h"
#include "runtime/cuda_program.h"

/* --- loading --- */

static texo_status
fits(const Cuda *c, const Image *im)
{
	uint64_t need = im->header->needs[0], only = im->header->needs[1];
	if (only ? (uint64_t)c->sm != need : (uint64_t)c->sm < need)
		return rt_fail(TEXO_BAD_ARTEFACT, "the artefact is for compute capability %llu.%llu%s; %s has %d.%d",
		               (unsigned long long)(need / 10), (unsigned long long)(need % 10), only ? " alone" : " and later",
		               c->name, c->sm / 10, c->sm % 10);
	return TEXO_OK;
}

static texo_status
load(texo_program *p, size_t n)
{
	texo_status s = image_open_cuda(&p->image, n);
	return s ? s : fits(p->rt->cuda, &p->image);
}

static texo_status
make_words(texo_kernel *k, CudaKernel *x)
{
	Cuda *c = k->program->rt->cuda;
	if (k->graph->nkernel == 0)
		return TEXO_OK;
	texo_status s = cuda_result(c, c->driver.memory_alloc(&x->words, k->graph->nkernel * sizeof(CudaWords)),
	                            "allocate memory");
	return s || x->words ? s : rt_fail(TEXO_INTERNAL, "CUDA gives no memory");
}

static texo_status
make_kernel(texo_kernel *k)
{
	Rt *rt = k->program->rt;
	CudaKernel *x = k->cuda = rt_alloc(rt, 1, sizeof *x);
	if (!x)
		return rt_fail(TEXO_NO_MEMORY, "out of memory");
	x->code = rt_alloc(rt, k->graph->nkernel, sizeof *x->code);
	x->met = rt_alloc(rt, k->graph->nkernel, sizeof *x->met);
	x->ntask = rt_alloc(rt, k->graph->nkernel, sizeof *x->ntask);
	x->pitch = rt_alloc(rt, k->graph->nkernel, sizeof *x->pitch);
	x->run = rt_alloc(rt, k->graph->nkernel, sizeof *x->run);
	x->parameter = rt_alloc(rt, IMAGE_CUDA_MAX_ARGUMENTS + 2 + IMAGE_CUDA_MAX_MAPS, sizeof *x->parameter);
	x->map_memory = rt_alloc(rt, IMAGE_CUDA_MAX_MAPS * CUDA_MAP_BYTES + CUDA_MAP_ALIGN, 1);
	if (x->map_memory)
		x->map = (unsigned char *)x->map_memory + (CUDA_MAP_ALIGN - (uintptr_t)x->map_memory % CUDA_MAP_ALIGN) % CUDA_MAP_ALIGN;
	if (!x->code || !x->met || !x->ntask || !x->pitch || !x->run || !x->parameter || !x->map_memory)
		return rt_fail(TEXO_NO_MEMORY, "out of memory");
	texo_status s = cuda_enter(rt->cuda);
	return s ? s : cuda_leave(rt->cuda, make_words(k, x));
}

/* --- unloading: whatever was made, also in a lost context --- */

static void
free_kernel(texo_kernel *k)
{
	Rt *rt = k->program->rt;
	CudaKernel *x = k->cuda;
	if (!x)
		return;
	if (x->code)
		cuda_unload_kernels(k);
	cuda_memory_free(rt, (void *)(uintptr_t)x->words);
	rt_release(rt, x->code);
	rt_release(rt, x->met);
	rt_release(rt, x->ntask);
	rt_release(rt, x->pitch);
	rt_release(rt, x->run);
	rt_release(rt, x->parameter);
	rt_release(rt, x->map_memory);
	rt_release(rt, x);
	k->cuda = NULL;
}

static void
detach(Rt *rt)
{
	cuda_close(rt->cuda);
	pthread_mutex_destroy(&rt->cuda->rows_lock);
	rt_release(rt, rt->cuda);
	rt->cuda = NULL;
}

/* --- the runtime --- */

static const Device cuda_device = {
	.type = kDLCUDA,
	.load = load,
	.make_kernel = make_kernel,
	.free_kernel = free_kernel,
	.prepare = cuda_prepare,
	.run = cuda_run,
	.fetch = cuda_fetch,
	.detach = detach,
};

texo_status
cuda_attach(Rt *rt, const char *device, void *context)
{
	const char *number = device + strlen("cuda");
	char *end = (char *)(uintptr_t)number;
	long ordinal = 0;
	if (*number == ':')
		ordinal = strtol(number + 1, &end, 10);
	if (*number ? *number != ':' || end == number + 1 || *end || number[1] < '0' || number[1] > '9' || ordinal > 1 << 16
	            : false)
		return rt_fail(TEXO_INVALID, "options: there is no device '%s'; there are cpu, cuda and cuda:N", device);
	rt->cuda = rt_alloc(rt, 1, sizeof *rt->cuda);
	if (!rt->cuda)
		return rt_fail(TEXO_NO_MEMORY, "out of memory");
	pthread_mutex_init(&rt->cuda->rows_lock, NULL); /* can't fail with default attributes on Linux */
	texo_status s = cuda_open(rt->cuda, (int)ordinal, context);
	if (s) {
		pthread_mutex_destroy(&rt->cuda->rows_lock);
		rt_release(rt, rt->cuda);
		rt->cuda = NULL;
		return s;
	}
	rt->device = &cuda_device;
	rt->ordinal = (int32_t)ordinal;
	rt->fact = rt->cuda->fact;
	rt->calls = 1;
	return TEXO_OK;
}
