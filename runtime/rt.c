/* rt.c: the runtime's objects: made, shared and freed. A program holds a reference to its runtime, so
 * that they can be destroyed in any order. */
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda.h"
#include "runtime/inside.h"
#include "runtime/private.h"

static void *
libc_alloc(void *user, size_t n)
{
	(void)user;
	return malloc(n);
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
read_options(const texo_rt_options *given, Rt *rt)
{
	texo_rt_options taken, *o = &taken;
	*rt = (Rt){.alloc = libc_alloc, .release = libc_release, .calls = pool_processors()};
	if (!given)
		return TEXO_OK;
	texo_status s = texo_private_take_struct("options", given, offsetof(texo_rt_options, parallel_for), sizeof taken, &taken);
	if (s)
		return s;
	if (!o->alloc != !o->resize || !o->alloc != !o->release)
		return rt_fail(TEXO_INVALID, "options: alloc, resize and release must be given together");
	bool cuda = o->device && strncmp(o->device, "cuda", 4) == 0;
	if (o->device && !cuda && strcmp(o->device, "cpu") != 0)
		return rt_fail(TEXO_INVALID, "options: there is no device '%s'; there are cpu, cuda and cuda:N", o->device);
	if (o->context && !cuda)
		return rt_fail(TEXO_INVALID, "options: context is given, and device is not cuda");
	if (o->threads > POOL_MAX_THREADS)
		return rt_fail(TEXO_INVALID, "options: %u threads are asked for; %d are possible", o->threads, POOL_MAX_THREADS);
	if (o->alloc) {
		rt->alloc = o->alloc;
		rt->release = o->release;
	}
	rt->user = o->user;
	rt->calls = o->threads ? o->threads : rt->calls;
	rt->parallel_for = o->parallel_for;
	rt->parallel_user = o->parallel_user;
	return cuda ? cuda_attach(rt, o->device, o->context) : TEXO_OK;
}

texo_status
texo_rt_create(const texo_rt_options *options, texo_rt **out)
{
	Rt made;
	if (!out)
		return rt_fail(TEXO_INVALID, "out is NULL");
	*out = NULL;
	texo_status s = read_options(options, &made);
	if (s)
		return s;
	Rt *rt = rt_alloc(&made, 1, sizeof *rt);
	if (!rt) {
		if (made.device)
			made.device->detach(&made);
		return rt_fail(TEXO_NO_MEMORY, "out of memory");
	}
	*rt = made;
	atomic_init(&rt->refs, 1);
	pthread_t *thread = rt_alloc(rt, rt->calls, sizeof *thread);
	if (!thread || !pool_init(&rt->pool, thread, rt->calls)) {
		rt_release(rt, thread);
		if (rt->device)
			rt->device->detach(rt);
		rt_release(rt, rt);
		return rt_fail(TEXO_NO_MEMORY, "out of memory");
	}
	*out = rt;
	return TEXO_OK;
}

void
texo_rt_destroy(texo_rt *rt)
{
	if (!rt || atomic_fetch_sub(&rt->refs, 1) != 1)
		return;
	pool_end(&rt->pool);
	rt_release_retired(rt);
	rt_release(rt, rt->pool.thread);
	if (rt->device)
		rt->device->detach(rt);
	rt_release(rt, rt);
}

texo_status
texo_rt_get_device(const texo_rt *rt, texo_device *out)
{
	texo_device given;
	if (!rt || !out)
		return rt_fail(TEXO_INVALID, "%s is NULL", rt ? "out" : "rt");
	texo_status s = texo_private_take_struct("out", out, sizeof *out, sizeof given, &given);
	if (s)
		return s;
	*out = (texo_device){.struct_size = out->struct_size, .device = {kDLCPU, 0}, .processors = rt->calls, .name = ""};
	if (rt->device) {
		out->device = (DLDevice){rt->device->type, rt->ordinal};
		out->capability = (uint32_t)rt->cuda->sm;
		out->processors = (uint32_t)rt->cuda->processors;
		out->name = rt->cuda->name;
	}
	return TEXO_OK;
}

/* --- program --- */

static texo_status
find_code(texo_kernel *k)
{
	const texo_program *p = k->program;
	for (uint32_t n = 0; n < k->graph->nkernel; n++) {
		const char *name = p->image.text + p->image.kernel[k->graph->kernel0 + n].entry;
		k->entry[n] = code_symbol(&p->code, name);
		if (!k->entry[n])
			return rt_fail(TEXO_BAD_ARTEFACT, "the artefact's code has no function %.200s", name);
	}
	return TEXO_OK;
}

static texo_status
make_kernel(texo_program *p, const ImageGraph *g, texo_kernel *k)
{
	const Device *device = p->rt->device;
	k->program = p;
	k->graph = g;
	k->entry = rt_alloc(p->rt, g->nkernel, sizeof *k->entry);
	k->block = rt_alloc(p->rt, frame_place(&k->frame, &p->image, g, p->rt->calls, NULL), 1);
	if (!k->entry || !k->block || pthread_mutex_init(&k->lock, NULL) != 0)
		return rt_fail(TEXO_NO_MEMORY, "out of memory");
	k->lock_made = true;
	frame_place(&k->frame, &p->image, g, p->rt->calls, k->block);
	return device ? device->make_kernel(k) : find_code(k);
}

static texo_status
load_code(texo_program *p, size_t n)
{
	if (p->rt->device)
		return p->rt->device->load(p, n);
	texo_status s = image_open(&p->image, n);
	const ImageHeader *h = p->image.header;
	return s || !h->kernel.n ? s : code_load(p->rt, p->image.code, (size_t)h->code.n, &p->code);
}

static texo_status
fill_program(texo_program *p, const void *artefact, size_t n)
{
	p->image.bytes = rt_alloc(p->rt, n, 1);
	if (!p->image.bytes)
		return rt_fail(TEXO_NO_MEMORY, "out of memory");
	memcpy(p->image.bytes, artefact, n);
	texo_status s = load_code(p, n);
	const ImageHeader *h = p->image.header;
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
texo_private_load(texo_rt *rt, const void *artefact, size_t n, const texo_private_maker *maker, texo_program **out)
{
	if (!out)
		return rt_fail(TEXO_INVALID, "out is NULL");
	*out = NULL;
	if (!rt || !artefact)
		return rt_fail(TEXO_INVALID, "%s is NULL", rt ? "artefact" : "rt");
	texo_program *p = rt_alloc(rt, 1, sizeof *p);
	if (!p)
		return rt_fail(TEXO_NO_MEMORY, "out of memory");
	p->rt = rt;
	if (maker)
		p->maker = *maker;
	atomic_fetch_add(&rt->refs, 1);
	texo_status s = fill_program(p, artefact, n);
	if (s)
		texo_program_destroy(p);
	else
		*out = p;
	return s;
}

texo_status
texo_rt_load(texo_rt *rt, const void *artefact, size_t n, texo_program **out)
{
	return texo_private_load(rt, artefact, n, NULL, out);
}

void
texo_program_destroy(texo_program *p)
{
	if (!p)
		return;
	Rt *rt = p->rt;
	texo_kernel *kernel = p->kernel;
	for (uint64_t g = 0; p->kernel && g < p->image.header->graph.n; g++) {
		texo_kernel *k = &p->kernel[g];
		if (k->lock_made)
			pthread_mutex_destroy(&k->lock);
		if (rt->device && k->program)
			rt->device->free_kernel(k);
		rt_release(rt, k->block);
		rt_release(rt, k->entry);
		k->program = NULL;
	}
	rt_retire(rt, kernel);
	code_unload(rt, &p->code);
	rt_release(rt, p->image.bytes);
	rt_release(rt, p);
	texo_rt_destroy(rt);
}

texo_status
texo_program_get_kernel(const texo_program *p, const char *graph, texo_kernel **out)
{
	if (!out)
		return rt_fail(TEXO_INVALID, "out is NULL");
	*out = NULL;
	if (!p)
		return rt_fail(TEXO_INVALID, "p is NULL");
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
	if (!json)
		return rt_fail(TEXO_INVALID, "json is NULL");
	*json = NULL;
	if (!k)
		return rt_fail(TEXO_INVALID, "k is NULL");
	if (!k->program)
		return kernel_gone();
	*json = k->program->image.text + k->graph->signature;
	return TEXO_OK;
}
