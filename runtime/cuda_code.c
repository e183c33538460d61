/* cuda_code.c: the code of a graph's kernels on a GPU: each is a module of its own, which the driver is
 * given when the kernel is to run for the first time, at texo_kernel_prepare or else at a launch; and which
 * then is made, where the artefact has the kernel's tile IR alone. Kernels that have no tasks at the sizes
 * that are used, and those of alternatives that are never chosen, cost nothing. The graph's lock is held all
 * the while, so that of several threads that want a kernel one makes it and the others find it. */
#include "runtime/cuda.h"
#include "runtime/cuda_program.h"

enum { MAX_DYNAMIC_SHARED = 8 }; /* of a function */

/* Machine code runs where the major number is its own and the minor one no less. */
static bool
runs_machine_code(const Cuda *c, const Image *im)
{
	int need = (int)im->header->needs[0];
	return c->sm / 10 == need / 10 && c->sm >= need;
}

static texo_status
load_made(const texo_program *p, const texo_private_code *made, void **module)
{
	Cuda *c = p->rt->cuda;
	texo_status s = TEXO_BAD_ARTEFACT;
	if (made->machine && (made->assembled || runs_machine_code(c, &p->image)))
		s = cuda_load_text(c, made->machine, module);
	if (s == TEXO_BAD_ARTEFACT && made->text)
		s = cuda_load_text(c, made->text, module);
	return s;
}

static texo_status
make_code(const texo_program *p, const ImageKernel *kernel, const ImageModule *m, void **module)
{
	const Image *im = &p->image;
	const texo_private_maker *maker = &p->maker;
	const texo_private_kernel wanted = {im->text + kernel->entry, (const char *)im->code + m->at, (size_t)m->n - 1,
	                                    kernel->serial != 0, p->rt->cuda->assembler};
	texo_private_code made = {0};
	if (!maker->make)
		return TEXO_BAD_ARTEFACT;
	texo_status s = maker->make(maker->user, &wanted, &made);
	if (s)
		return s;
	s = load_made(p, &made, module);
	if (!s && made.keeps)
		cuda_keep_code(p, &wanted, &made, kernel->threads ? kernel->threads : kernel->serial ? 1 : IMAGE_CUDA_BLOCK, *module);
	maker->release(maker->user, &made);
	return s;
}

static texo_status
load_module(const texo_program *p, const ImageKernel *kernel, const ImageModule *m, void **module)
{
	if (m->form == IMG_TIR)
		return make_code(p, kernel, m, module);
	if (m->form == IMG_CUBIN && !runs_machine_code(p->rt->cuda, &p->image))
		return TEXO_BAD_ARTEFACT;
	return cuda_load_text(p->rt->cuda, (const char *)p->image.code + m->at, module);
}

/* The first of its forms that the driver takes: it may know another version of machine code, and then
 * there is the text. */
static texo_status
load_code(texo_kernel *k, uint32_t kernel, void **module)
{
	const Image *im = &k->program->image;
	Cuda *c = k->program->rt->cuda;
	texo_status s = rt_fail(TEXO_BAD_ARTEFACT, "the artefact has no code for kernel %.200s on %s",
	                        im->text + im->kernel[kernel].name, c->name);
	for (uint64_t n = 0; n < im->header->module.n; n++) {
		const ImageModule *m = &im->module[n];
		if (m->kernel == kernel)
			s = load_module(k->program, &im->kernel[kernel], m, module);
		if (s != TEXO_BAD_ARTEFACT)
			return s;
	}
	return s;
}

/* The driver's results about captures, such as: another stream's forbids to use this one. */
enum { LEAST_CAPTURE_RESULT = 900, MOST_CAPTURE_RESULT = 909 };

texo_status
cuda_may_load(texo_kernel *k)
{
	Cuda *c = k->program->rt->cuda;
	int capturing = 0, result;
	if (!k->cuda->launching)
		return TEXO_OK;
	result = c->driver.stream_capturing(k->cuda->stream, &capturing);
	if (!capturing && (result < LEAST_CAPTURE_RESULT || result > MOST_CAPTURE_RESULT))
		return cuda_result(c, result, "tell whether the stream is being captured");
	return rt_fail(TEXO_INVALID, "the stream is being captured, and code that this launch needs is not loaded: prepare such a "
	                             "launch before the capture, with texo_kernel_prepare()");
}

/* That of a kernel whose code is the same, if it was loaded; the module stays that one's. */
static void *
shared_function(const texo_kernel *k, uint32_t n)
{
	const ImageKernel *kernel = &k->program->image.kernel[k->graph->kernel0];
	for (uint32_t m = 0; m < k->graph->nkernel; m++)
		if (kernel[m].entry == kernel[n].entry && k->cuda->code[m].function)
			return k->cuda->code[m].function;
	return NULL;
}

texo_status
cuda_load_kernel(texo_kernel *k, uint32_t n)
{
	const Image *im = &k->program->image;
	Cuda *c = k->program->rt->cuda;
	CudaCode *code = &k->cuda->code[n];
	texo_status s = TEXO_OK;
	if (code->function)
		return TEXO_OK;
	code->function = shared_function(k, n);
	if (code->function)
		return TEXO_OK;
	s = cuda_may_load(k);
	if (!s && !code->module)
		s = load_code(k, k->graph->kernel0 + n, &code->module);
	if (s)
		return s;
	const ImageKernel *kernel = &im->kernel[k->graph->kernel0 + n];
	void *function = NULL;
	s = cuda_find_function(c, code->module, im->text + kernel->entry, &function);
	if (!s && kernel->shared)
		s = cuda_result(c, c->driver.function_set(function, MAX_DYNAMIC_SHARED, (int)kernel->shared), "give a kernel its shared memory");
	code->function = s ? NULL : function;
	return s;
}

void
cuda_unload_kernels(texo_kernel *k)
{
	Cuda *c = k->program->rt->cuda;
	CudaCode *code = k->cuda->code;
	void *left;
	bool entered = c->driver.context_push(c->context) == 0;
	for (uint32_t n = 0; n < k->graph->nkernel; n++)
		if (code[n].module)
			c->driver.module_unload(code[n].module);
	if (entered)
		c->driver.context_pop(&left);
}
