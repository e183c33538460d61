/* ahead_cuda.c: graphs compiled ahead of time on GPUs. The object file holds artefacts, one for each kind
 * of GPU; the first call on a context loads the best of them that its device can run, and keeps it to
 * the end of the process. Calls of one graph on one context take turns while they put their work on
 * the stream. */
#include <pthread.h>
#include <stdio.h>

#include "runtime/ahead.h"
#include "runtime/cuda.h"

/* One for each context that code was called on, and for each such and each object. */
typedef struct Gpu Gpu;
struct Gpu {
	Gpu *next;
	void *context; /* NULL: threads without one */
	Rt *rt;
};

typedef struct Loaded Loaded;
struct Loaded {
	Loaded *next;
	const Gpu *gpu;
	texo_program *program;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the lists */
static Gpu *gpus;

static texo_status
new_gpu(void *context, Gpu **out)
{
	int ordinal = 0;
	char device[32];
	texo_rt_options o = {.struct_size = sizeof o, .threads = 1, .device = device, .context = context};
	texo_rt *rt;
	texo_status s = context ? cuda_current_device(&ordinal) : TEXO_OK;
	snprintf(device, sizeof device, "cuda:%d", ordinal);
	if (!s)
		s = texo_rt_create(&o, &rt);
	if (s)
		return s;
	Gpu *g = rt_alloc(rt, 1, sizeof *g);
	if (!g) {
		texo_rt_destroy(rt);
		return rt_fail(TEXO_NO_MEMORY, "out of memory");
	}
	rt->usual_room = true; /* GRAPH_workspace knows no device */
	*g = (Gpu){gpus, context, rt};
	*out = gpus = g;
	return TEXO_OK;
}

/* Of the calling thread. */
static texo_status
find_gpu(Gpu **out)
{
	void *context;
	texo_status s = cuda_current(gpus ? &gpus->rt->cuda->driver : NULL, &context);
	*out = gpus;
	while (!s && *out && (*out)->context != context)
		*out = (*out)->next;
	return s || *out ? s : new_gpu(context, out);
}

/* The first artefact that the GPU can run, best first. */
static texo_status
load(const ImageObject *o, const Gpu *gpu, texo_program **out)
{
	texo_status s = rt_fail(TEXO_NO_DEVICE, "the object has no code for GPUs");
	if (o->version != IMAGE_VERSION)
		return rt_fail(TEXO_BAD_ARTEFACT, "the code is for another version of libtexo-rt");
	for (uint64_t n = 0; n < o->ngpu; n++) {
		const ImageHeader *h = o->gpu[n].image;
		uint64_t sm = (uint64_t)gpu->rt->cuda->sm;
		bool last = n + 1 == o->ngpu; /* whose refusal says why */
		if (last || (h->needs[1] ? sm == h->needs[0] : sm >= h->needs[0]))
			return texo_rt_load(gpu->rt, o->gpu[n].image, (size_t)o->gpu[n].bytes, out);
	}
	return s;
}

static texo_status
find_loaded(const ImageObject *o, Loaded **out)
{
	Gpu *gpu;
	texo_program *program;
	texo_status s = find_gpu(&gpu);
	*out = *o->loaded;
	while (!s && *out && (*out)->gpu != gpu)
		*out = (*out)->next;
	if (!s && !*out)
		s = load(o, gpu, &program);
	if (s || *out)
		return s;
	Loaded *l = rt_alloc(gpu->rt, 1, sizeof *l);
	if (!l) {
		texo_program_destroy(program);
		return rt_fail(TEXO_NO_MEMORY, "out of memory");
	}
	*l = (Loaded){*o->loaded, gpu, program};
	*out = *o->loaded = l;
	return TEXO_OK;
}

static texo_status
find_kernel(const texo_object *object, uint32_t graph, texo_kernel **out)
{
	Loaded *l;
	pthread_mutex_lock(&lock);
	texo_status s = find_loaded((const ImageObject *)(const void *)object, &l);
	pthread_mutex_unlock(&lock);
	if (!s)
		*out = &l->program->kernel[graph];
	return s;
}

int
texo_object_call_cuda(const texo_object *object, uint32_t graph, const uint64_t *word, const int64_t *dim,
                      void *workspace, void *stream, void *room)
{
	texo_kernel *k;
	Call *c = room;
	texo_status s = find_kernel(object, graph, &k);
	if (s)
		return (int)s;
	ahead_open(k->program->image.header, graph, k->program->rt, room);
	s = ahead_take_words(c, word, dim);
	return (int)(s ? s : texo_kernel_launch(k, c->arg, k->graph->nparam, workspace, stream));
}

int
texo_object_status_cuda(const texo_object *object, uint32_t graph)
{
	texo_kernel *k;
	texo_fault f = {.struct_size = sizeof f};
	texo_status s = find_kernel(object, graph, &k);
	if (!s)
		s = texo_kernel_status(k, &f);
	if (!s && f.failed)
		s = rt_fail(TEXO_FAULT, "%u:%u: the access %s went outside", f.line, f.col, f.access);
	return (int)s;
}

/* --- arguments as tensors --- */

static texo_status
launch_with_workspace(texo_kernel *k, const Call *c, size_t n, void *stream)
{
	size_t bytes;
	void *workspace = NULL;
	texo_status s = texo_kernel_prepare(k, c->arg, n);
	if (!s)
		s = texo_kernel_workspace(k, c->arg, n, &bytes);
	if (!s && bytes)
		s = cuda_stream_alloc(k->program->rt, bytes, stream, &workspace);
	if (!s)
		s = texo_kernel_launch(k, c->arg, n, workspace, stream);
	if (!workspace)
		return s;
	texo_status freed = cuda_stream_free(k->program->rt, workspace, stream);
	return s ? s : freed;
}

static bool
is_on_gpu(const DLTensor *const *args, size_t n)
{
	for (size_t k = 0; args && k < n; k++)
		if (args[k] && args[k]->device.device_type == kDLCUDA)
			return true;
	return false;
}

int
texo_object_call_any(const texo_object *object, uint32_t graph, const DLTensor *const *args, size_t n, void *stream,
                     void *room)
{
	const ImageObject *o = (const ImageObject *)(const void *)object;
	texo_kernel *k;
	if (o->nlevel > 0 && !is_on_gpu(args, n))
		return texo_object_call_dl(object, graph, args, n, stream, room);
	texo_status s = find_kernel(object, graph, &k);
	if (s)
		return (int)s;
	ahead_open(k->program->image.header, graph, k->program->rt, room);
	s = ahead_take_tensors(room, args, n);
	return (int)(s ? s : launch_with_workspace(k, room, n, stream));
}
