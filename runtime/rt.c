/* rt.c: the runtime's objects: made, shared and freed. A program holds a reference to its runtime, so
 * that they can be destroyed in any order. */
#include <stdlib.h>
#include <string.h>

#include "runtime/inside.h"

static void *
libc_alloc(void *user, size_t n)
{
	(void)user;
	return malloc(n);
}

static void *
libc_resize(void *user, void *p, size_t n)
{
	(void)user;
	return realloc(p, n);
}

static void
libc_release(void *user, void *p)
{
	(void)user;
	free(p);
}

void *
rt_alloc(Rt *rt, size_t count, size_t size)
{
	if (size && count > PTRDIFF_MAX / size)
		return NULL;
	size_t n = count * size;
	n = n > 0 ? n : 1;
	void *p = rt->alloc(rt->user, n);
	return p ? memset(p, 0, n) : NULL;
}

void
rt_release(Rt *rt, void *p)
{
	if (p)
		rt->release(rt->user, p);
}

/* --- runtime --- */

static texo_status
read_options(const texo_rt_options *o, Rt *rt)
{
	*rt = (Rt){.alloc = libc_alloc, .resize = libc_resize, .release = libc_release};
	if (!o)
		return TEXO_OK;
	if (o->struct_size < sizeof *o)
		return rt_fail(TEXO_INVALID, "struct_size of the options is %u", o->struct_size);
	if (!o->alloc != !o->resize || !o->alloc != !o->release)
		return rt_fail(TEXO_INVALID, "alloc, resize and release must be given together");
	if (o->device && strncmp(o->device, "cuda", 4) == 0)
		return rt_fail(TEXO_NOT_BUILT, "device %s is not built yet", o->device);
	if (o->device && strcmp(o->device, "cpu") != 0)
		return rt_fail(TEXO_INVALID, "there is no device '%s'; there are cpu and cuda", o->device);
	if (o->alloc) {
		rt->alloc = o->alloc;
		rt->resize = o->resize;
		rt->release = o->release;
	}
	rt->user = o->user;
	return TEXO_OK;
}

texo_status
texo_rt_create(const texo_rt_options *options, texo_rt **out)
{
	Rt made;
	if (!out)
		return rt_fail(TEXO_INVALID, "the place for the runtime is NULL");
	*out = NULL;
	texo_status s = read_options(options, &made);
	if (s)
		return s;
	Rt *rt = rt_alloc(&made, 1, sizeof *rt);
	if (!rt)
		return rt_fail(TEXO_NO_MEMORY, "out of memory");
	*rt = made;
	atomic_init(&rt->refs, 1);
	*out = rt;
	return TEXO_OK;
}

void
texo_rt_destroy(texo_rt *rt)
{
	if (rt && atomic_fetch_sub(&rt->refs, 1) == 1)
		rt_release(rt, rt);
}

/* --- program --- */

/* The most buffers (or scalars) a kernel of g has. */
static uint32_t
most(const Image *im, const ImageGraph *g, bool buffers)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < g->nkernel; k++) {
		const ImageKernel *x = &im->kernel[g->kernel0 + k];
		uint32_t have = buffers ? x->nbuffer : x->nscalar;
		if (have > n)
			n = have;
	}
	return n;
}

static bool
make_frame(Rt *rt, const Image *im, const ImageGraph *g, Frame *f)
{
	f->arg = rt_alloc(rt, g->nparam, sizeof *f->arg);
	f->param = rt_alloc(rt, g->nparam, sizeof *f->param);
	f->dim = rt_alloc(rt, g->ndim, sizeof *f->dim);
	f->stack = rt_alloc(rt, im->stack, sizeof *f->stack);
	f->piece = rt_alloc(rt, g->ntensor, sizeof *f->piece);
	f->buffer = rt_alloc(rt, most(im, g, true), sizeof *f->buffer);
	f->scalar = rt_alloc(rt, most(im, g, false), sizeof *f->scalar);
	return f->arg && f->param && f->dim && f->stack && f->piece && f->buffer && f->scalar;
}

static void
free_frame(Rt *rt, Frame *f)
{
	rt_release(rt, f->arg);
	rt_release(rt, f->param);
	rt_release(rt, f->dim);
	rt_release(rt, f->stack);
	rt_release(rt, f->piece);
	rt_release(rt, f->buffer);
	rt_release(rt, f->scalar);
}

static texo_status
make_kernel(texo_program *p, const ImageGraph *g, texo_kernel *k)
{
	k->program = p;
	k->graph = g;
	k->entry = rt_alloc(p->rt, g->nkernel, sizeof *k->entry);
	if (!k->entry || !make_frame(p->rt, &p->image, g, &k->frame) || pthread_mutex_init(&k->lock, NULL) != 0)
		return rt_fail(TEXO_NO_MEMORY, "out of memory");
	k->lock_made = true;
	for (uint32_t n = 0; n < g->nkernel; n++) {
		const char *name = p->image.text + p->image.kernel[g->kernel0 + n].entry;
		k->entry[n] = code_symbol(&p->code, name);
		if (!k->entry[n])
			return rt_fail(TEXO_BAD_ARTEFACT, "the artefact's code has no function %.200s", name);
	}
	return TEXO_OK;
}

static texo_status
fill_program(texo_program *p, const void *artefact, size_t n)
{
	p->image.bytes = rt_alloc(p->rt, n, 1);
	if (!p->image.bytes)
		return rt_fail(TEXO_NO_MEMORY, "out of memory");
	memcpy(p->image.bytes, artefact, n);
	texo_status s = image_open(&p->image, n);
	const ImageHeader *h = p->image.header;
	if (!s && h->kernel.n)
		s = code_load(p->rt, p->image.code, (size_t)h->code.n, &p->code);
	if (s)
		return s;
	p->kernel = rt_alloc(p->rt, (size_t)h->graph.n, sizeof *p->kernel);
	if (!p->kernel)
		return rt_fail(TEXO_NO_MEMORY, "out of memory");
	for (uint64_t g = 0; !s && g < h->graph.n; g++)
		s = make_kernel(p, &p->image.graph[g], &p->kernel[g]);
	return s;
}

texo_status
texo_rt_load(texo_rt *rt, const void *artefact, size_t n, texo_program **out)
{
	if (!rt || !artefact || !out)
		return rt_fail(TEXO_INVALID, "the runtime, the artefact or the place for the program is NULL");
	*out = NULL;
	texo_program *p = rt_alloc(rt, 1, sizeof *p);
	if (!p)
		return rt_fail(TEXO_NO_MEMORY, "out of memory");
	p->rt = rt;
	atomic_fetch_add(&rt->refs, 1);
	texo_status s = fill_program(p, artefact, n);
	if (s)
		texo_program_destroy(p);
	else
		*out = p;
	return s;
}

void
texo_program_destroy(texo_program *p)
{
	if (!p)
		return;
	Rt *rt = p->rt;
	for (uint64_t g = 0; p->kernel && g < p->image.header->graph.n; g++) {
		texo_kernel *k = &p->kernel[g];
		if (k->lock_made)
			pthread_mutex_destroy(&k->lock);
		free_frame(rt, &k->frame);
		rt_release(rt, k->entry);
	}
	rt_release(rt, p->kernel);
	code_unload(rt, &p->code);
	rt_release(rt, p->image.bytes);
	rt_release(rt, p);
	texo_rt_destroy(rt);
}

texo_status
texo_program_get_kernel(const texo_program *p, const char *graph, texo_kernel **out)
{
	if (!p || !out)
		return rt_fail(TEXO_INVALID, "the program or the place for the kernel is NULL");
	*out = NULL;
	uint64_t n = p->image.header->graph.n;
	for (uint64_t g = 0; graph && g < n; g++)
		if (strcmp(p->image.text + p->image.graph[g].name, graph) == 0)
			*out = &p->kernel[g];
	if (!graph)
		*out = &p->kernel[n - 1];
	return *out ? TEXO_OK : rt_fail(TEXO_NOT_FOUND, "the artefact has no graph %.200s", graph);
}

texo_status
texo_kernel_get_signature(const texo_kernel *k, const char **json)
{
	if (!k || !json)
		return rt_fail(TEXO_INVALID, "the kernel or the result is NULL");
	*json = k->program->image.text + k->graph->signature;
	return TEXO_OK;
}
