/* ahead.c: launches of graphs that were compiled ahead of time. The object file holds tables as an
 * artefact does, once for each level of processors it has code for, and functions; its entry points
 * call what is here. What a launch needs is on the caller's stack, so that any number of threads may
 * call at the same time and nothing is allocated. The tables come with the code that is running, so
 * they are not checked. */
#include <stdlib.h>
#include <string.h>

#include "runtime/ahead.h"

#define TABLE(field) im->field = (const void *)((const uint8_t *)tables + h->field.at)

static void
place_tables(Image *im, const void *tables)
{
	const ImageHeader *h = tables;
	*im = (Image){.header = h, .stack = h->stack};
	TABLE(graph);
	TABLE(param);
	TABLE(dim);
	TABLE(check);
	TABLE(tensor);
	TABLE(access);
	TABLE(kernel);
	TABLE(bind);
	TABLE(map);
	TABLE(words);
	TABLE(text);
}

/* The best level that this processor can run. */
static texo_status
find_level(const ImageObject *o, const ImageLevel **level)
{
	const char *lacks = NULL;
	if (o->version != IMAGE_VERSION)
		return rt_fail(TEXO_BAD_ARTEFACT, "the code is for another version of libtexo-rt");
	for (uint32_t n = 0; n < o->nlevel; n++) {
		const ImageHeader *h = o->level[n].tables;
		*level = &o->level[n];
		lacks = h->needs[1] ? "a processor feature that this runtime doesn't know" : cpu_lacks(h->needs[0]);
		if (!lacks)
			return TEXO_OK;
	}
	return rt_fail(TEXO_NO_DEVICE, "the code needs %s, which this processor lacks", lacks);
}

static size_t
round_up(size_t n)
{
	return (n + FRAME_ALIGN - 1) / FRAME_ALIGN * FRAME_ALIGN;
}

size_t
ahead_open(const void *tables, uint32_t graph, Rt *rt, uint8_t *room)
{
	Call measured, *c = room ? (Call *)(void *)room : &measured;
	memset(c, 0, sizeof *c);
	Image *im = &c->program.image;
	place_tables(im, tables);
	const ImageGraph *g = &im->graph[graph];
	c->program.rt = rt;
	c->kernel.program = &c->program;
	c->kernel.graph = g;
	size_t arg = round_up(sizeof *c), tensor = arg + round_up(g->nparam * sizeof *c->arg);
	size_t shape = tensor + round_up(g->nparam * sizeof *c->tensor);
	size_t frame = shape + g->nparam * IMAGE_MAX_RANK * sizeof *c->shape;
	if (room) {
		c->arg = (texo_arg *)(void *)(room + arg);
		c->tensor = (DLTensor *)(void *)(room + tensor);
		c->shape = (int64_t *)(void *)(room + shape);
	}
	return frame + frame_place(&c->kernel.frame, im, g, rt->calls, room ? room + frame : NULL);
}

/* A call of the best code for this processor. */
static texo_status
open_call(const texo_object *object, uint32_t graph, uint8_t *room)
{
	Call *c = (Call *)(void *)room;
	const ImageLevel *level = NULL;
	texo_status s = find_level((const ImageObject *)(const void *)object, &level);
	if (s)
		return s;
	ahead_open(level->tables, graph, rt_shared(), room);
	c->kernel.entry = level->entry + c->kernel.graph->kernel0;
	return TEXO_OK;
}

/* As much as the graph needs with any of the object's tables. */
size_t
texo_object_room(const texo_object *object, uint32_t graph)
{
	const ImageObject *o = (const ImageObject *)(const void *)object;
	const ImageLevel *level = NULL;
	bool here = o->nlevel > 0 && find_level(o, &level) == TEXO_OK;
	size_t most = here ? ahead_open(level->tables, graph, rt_shared(), NULL) : 0;
	for (uint64_t n = 0; n < o->ngpu; n++) {
		size_t bytes = ahead_open(o->gpu[n].image, graph, rt_shared(), NULL);
		most = bytes > most ? bytes : most;
	}
	return most;
}

/* --- arguments as words --- */

static texo_status
take_dims(Call *c, const uint64_t *word, const int64_t *dim)
{
	const Image *im = &c->program.image;
	const ImageGraph *g = c->kernel.graph;
	Frame *f = &c->kernel.frame;
	for (uint32_t p = 0; p < g->nparam; p++) {
		const ImageParam *x = &im->param[g->param0 + p];
		if (x->kind == IMG_SCALAR && element_of(x->dtype)->is_int)
			f->param[p] = element_int(element_of(x->dtype), &word[p]);
	}
	for (uint32_t d = 0; d < g->ndim; d++) {
		const ImageDim *x = &im->dim[g->dim0 + d];
		f->dim[d] = x->param < 0 ? dim_fixed(x, c->program.rt->fact) : x->axis < 0 ? f->param[x->param] : dim[d];
		if (f->dim[d] < 0)
			return rt_fail(TEXO_INVALID, "the dim %s is %lld", im->text + x->name, (long long)f->dim[d]);
	}
	return TEXO_OK;
}

/* A tensor whose extents the dims give. */
static texo_status
make_tensor(Call *c, uint32_t p, void *data)
{
	const Image *im = &c->program.image;
	const ImageParam *x = &im->param[c->kernel.graph->param0 + p];
	ExprEnv env = frame_env(&c->kernel);
	int64_t *shape = c->shape + (size_t)p * IMAGE_MAX_RANK;
	for (uint32_t k = 0; k < x->rank; k++) {
		if (!expr_exact(&env, x->extent[k], &shape[k]))
			return rt_fail(TEXO_LIMIT, "argument %s: the length of axis %u overflows", im->text + x->name, k);
		if (x->kind == IMG_RESULT && shape[k] < 0)
			shape[k] = 0;
	}
	const Rt *rt = c->program.rt;
	DLDevice device = {rt->device ? rt->device->type : kDLCPU, rt->ordinal};
	c->tensor[p] = (DLTensor){.data = data, .device = device, .ndim = (int32_t)x->rank,
	                          .dtype = element_of(x->dtype)->dl, .shape = shape};
	c->arg[p] = (texo_arg){&c->tensor[p], NULL};
	return TEXO_OK;
}

texo_status
ahead_take_words(Call *c, const uint64_t *word, const int64_t *dim)
{
	const ImageGraph *g = c->kernel.graph;
	texo_status s = take_dims(c, word, dim);
	for (uint32_t p = 0; !s && p < g->nparam; p++) {
		if (c->program.image.param[g->param0 + p].kind == IMG_SCALAR)
			c->arg[p] = (texo_arg){NULL, &word[p]};
		else
			s = make_tensor(c, p, (void *)(uintptr_t)word[p]);
	}
	return s;
}

int
texo_object_call(const texo_object *object, uint32_t graph, const uint64_t *word, const int64_t *dim,
                 void *workspace, void *room)
{
	Call *c = room;
	texo_status s = open_call(object, graph, room);
	if (!s)
		s = ahead_take_words(c, word, dim);
	if (!s)
		s = frame_fill(&c->kernel, c->arg, c->kernel.graph->nparam, true);
	return (int)(s ? s : frame_run(&c->kernel, workspace));
}

static size_t
call_workspace(Call *c, const uint64_t *word, const int64_t *dim)
{
	if (ahead_take_words(c, word, dim) || frame_fill(&c->kernel, c->arg, c->kernel.graph->nparam, false))
		return SIZE_MAX;
	return (size_t)c->kernel.frame.workspace;
}

size_t
texo_object_workspace(const texo_object *object, uint32_t graph, const uint64_t *word, const int64_t *dim,
                      void *room)
{
	const ImageObject *o = (const ImageObject *)(const void *)object;
	size_t most = 0;
	if (o->nlevel > 0)
		most = open_call(object, graph, room) ? SIZE_MAX : call_workspace(room, word, dim);
	for (uint64_t n = 0; n < o->ngpu; n++) {
		ahead_open(o->gpu[n].image, graph, rt_shared(), room);
		size_t bytes = call_workspace(room, word, dim);
		most = bytes > most ? bytes : most;
	}
	return most;
}

/* --- arguments as tensors --- */

/* A scalar travels as a tensor of rank 0. */
static texo_status
take_rank_0(Call *c, uint32_t p, const DLTensor *t)
{
	const ImageParam *x = &c->program.image.param[c->kernel.graph->param0 + p];
	const char *name = c->program.image.text + x->name;
	DLDataType want = element_of(x->dtype)->dl;
	if (t->ndim != 0 || t->dtype.code != want.code || t->dtype.bits != want.bits || t->dtype.lanes != want.lanes)
		return rt_fail(TEXO_INVALID, "argument %s: a tensor of rank 0 and type %s is expected", name,
		               element_of(x->dtype)->text);
	if (!t->data || (t->device.device_type != kDLCPU && t->device.device_type != kDLCUDAHost))
		return rt_fail(TEXO_INVALID, "argument %s: the tensor is not in this processor's memory", name);
	c->arg[p] = (texo_arg){NULL, (const uint8_t *)t->data + t->byte_offset};
	return TEXO_OK;
}

texo_status
ahead_take_tensors(Call *c, const DLTensor *const *args, size_t n)
{
	const Image *im = &c->program.image;
	const ImageGraph *g = c->kernel.graph;
	if (n != g->nparam || (n && !args))
		return rt_fail(TEXO_INVALID, "graph %s takes %u arguments, not %zu", im->text + g->name, g->nparam, n);
	for (uint32_t p = 0; p < g->nparam; p++) {
		const ImageParam *x = &im->param[g->param0 + p];
		if (!args[p])
			return rt_fail(TEXO_INVALID, "argument %s is NULL", im->text + x->name);
		texo_status s = TEXO_OK;
		if (x->kind == IMG_SCALAR)
			s = take_rank_0(c, p, args[p]);
		else
			c->arg[p] = (texo_arg){args[p], NULL};
		if (s)
			return s;
	}
	return TEXO_OK;
}

int
texo_object_call_dl(const texo_object *object, uint32_t graph, const DLTensor *const *args, size_t n,
                    void *stream, void *room)
{
	Call *c = room;
	if (stream)
		return (int)rt_fail(TEXO_INVALID, "the stream must be NULL on the CPU");
	texo_status s = open_call(object, graph, room);
	if (!s)
		s = ahead_take_tensors(c, args, n);
	if (!s)
		s = frame_fill(&c->kernel, c->arg, n, true);
	if (s)
		return (int)s;
	if (!c->kernel.frame.workspace)
		return (int)frame_run(&c->kernel, NULL);
	void *workspace = aligned_alloc(64, (size_t)c->kernel.frame.workspace);
	if (!workspace)
		return (int)rt_fail(TEXO_NO_MEMORY, "out of memory for %llu bytes of workspace",
		                    (unsigned long long)c->kernel.frame.workspace);
	s = frame_run(&c->kernel, workspace);
	free(workspace);
	return (int)s;
}
