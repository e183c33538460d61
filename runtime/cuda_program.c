/* cuda_program.c: programs on a GPU: the module that the driver makes of an artefact's text, its
 * functions, and the status words on the device, two of 64 bits a kernel. */
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda.h"
#include "runtime/cuda_program.h"

enum { JIT_ERROR_LOG = 5, JIT_ERROR_LOG_BYTES = 6, LOG_BYTES = 300 };

/* --- loading --- */

static texo_status
load_module(Cuda *c, const Image *im, void **module)
{
	char log[LOG_BYTES] = "";
	int option[] = {JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES};
	void *value[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
	int result = c->driver.module_load(module, im->code, 2, option, value);
	if (result == 0)
		return *module ? TEXO_OK : rt_fail(TEXO_INTERNAL, "CUDA gives no module");
	texo_status s = cuda_result(c, result, "load the program");
	log[sizeof log - 1] = 0;
	if (!log[0])
		return s;
	char said[200];
	memcpy(said, texo_last_error(), sizeof said - 1);
	said[sizeof said - 1] = 0;
	return rt_fail(s, "%s: %s", said, log);
}

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
	Cuda *c = p->rt->cuda;
	texo_status s = image_open_cuda(&p->image, n);
	if (!s)
		s = fits(c, &p->image);
	if (s || p->image.header->kernel.n == 0 || (s = cuda_enter(c)))
		return s;
	return cuda_leave(c, load_module(c, &p->image, &p->module));
}

static texo_status
fill_kernel(texo_kernel *k, CudaKernel *x)
{
	const texo_program *p = k->program;
	Cuda *c = p->rt->cuda;
	for (uint32_t n = 0; n < k->graph->nkernel; n++) {
		const char *name = p->image.text + p->image.kernel[k->graph->kernel0 + n].entry;
		texo_status s = cuda_result(c, c->driver.module_function(&x->function[n], p->module, name),
		                            "find a function of the program");
		if (s)
			return s;
		if (!x->function[n])
			return rt_fail(TEXO_INTERNAL, "CUDA gives no function");
	}
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
	x->function = rt_alloc(rt, k->graph->nkernel, sizeof *x->function);
	x->met = rt_alloc(rt, k->graph->nkernel, sizeof *x->met);
	x->parameter = rt_alloc(rt, IMAGE_CUDA_MAX_ARGUMENTS + 2, sizeof *x->parameter);
	if (!x->function || !x->met || !x->parameter)
		return rt_fail(TEXO_NO_MEMORY, "out of memory");
	texo_status s = cuda_enter(rt->cuda);
	return s ? s : cuda_leave(rt->cuda, fill_kernel(k, x));
}

/* --- unloading: whatever was made, also in a lost context --- */

static void
free_kernel(texo_kernel *k)
{
	Rt *rt = k->program->rt;
	CudaKernel *x = k->cuda;
	if (!x)
		return;
	cuda_memory_free(rt, (void *)(uintptr_t)x->words);
	rt_release(rt, x->function);
	rt_release(rt, x->met);
	rt_release(rt, x->parameter);
	rt_release(rt, x);
	k->cuda = NULL;
}

static void
unload(texo_program *p)
{
	Cuda *c = p->rt->cuda;
	void *left;
	if (!p->module)
		return;
	bool entered = c->driver.context_push(c->context) == 0;
	c->driver.module_unload(p->module);
	if (entered)
		c->driver.context_pop(&left);
	p->module = NULL;
}

static void
detach(Rt *rt)
{
	cuda_close(rt->cuda);
	rt_release(rt, rt->cuda);
	rt->cuda = NULL;
}

/* --- the runtime --- */

static const Device cuda_device = {
	.type = kDLCUDA,
	.load = load,
	.unload = unload,
	.make_kernel = make_kernel,
	.free_kernel = free_kernel,
	.run = cuda_run,
	.fetch = cuda_fetch,
	.detach = detach,
};

texo_status
cuda_attach(Rt *rt, const char *device)
{
	const char *number = device + strlen("cuda");
	char *end = (char *)(uintptr_t)number;
	long ordinal = 0;
	if (*number == ':')
		ordinal = strtol(number + 1, &end, 10);
	if (*number ? *number != ':' || end == number + 1 || *end || number[1] < '0' || number[1] > '9' || ordinal > 1 << 16
	            : false)
		return rt_fail(TEXO_INVALID, "there is no device '%s'; there are cpu, cuda and cuda:N", device);
	rt->cuda = rt_alloc(rt, 1, sizeof *rt->cuda);
	if (!rt->cuda)
		return rt_fail(TEXO_NO_MEMORY, "out of memory");
	texo_status s = cuda_open(rt->cuda, (int)ordinal);
	if (s) {
		rt_release(rt, rt->cuda);
		rt->cuda = NULL;
		return s;
	}
	rt->device = &cuda_device;
	rt->ordinal = (int32_t)ordinal;
	rt->calls = 1;
	return TEXO_OK;
}
