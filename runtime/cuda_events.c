/* cuda_events.c: see cuda.h. Each makes the context current around its calls. */
#include "runtime/cuda.h"

enum { ATTRIBUTE_CACHE_BYTES = 38 };

/* One call of the driver, in the context. */
#define IN_CONTEXT(rt, call, what)                              \
	do {                                                    \
		Cuda *c = (rt)->cuda;                           \
		texo_status s = cuda_enter(c);                  \
		if (s)                                          \
			return s;                               \
		return cuda_leave(c, cuda_result(c, call, what)); \
	} while (0)

static uint64_t
address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

texo_status
cuda_event_new(Rt *rt, void **event)
{
	*event = NULL;
	IN_CONTEXT(rt, c->driver.event_new(event, 0), "make an event");
}

void
cuda_event_free(Rt *rt, void *event)
{
	void *left;
	Cuda *c = rt->cuda;
	if (!event)
		return;
	bool entered = c->driver.context_push(c->context) == 0;
	c->driver.event_free(event);
	if (entered)
		c->driver.context_pop(&left);
}

texo_status
cuda_event_record(Rt *rt, void *event, void *stream)
{
	IN_CONTEXT(rt, c->driver.event_record(event, stream), "record an event");
}

texo_status
cuda_event_between(Rt *rt, void *from, void *to, double *us)
{
	Cuda *c = rt->cuda;
	float ms = 0;
	texo_status s = cuda_enter(c);
	if (s)
		return s;
	s = cuda_result(c, c->driver.event_wait(to), "finish what was launched");
	if (!s)
		s = cuda_result(c, c->driver.event_elapsed(&ms, from, to), "tell the time between events");
	*us = (double)ms * 1e3;
	return cuda_leave(c, s);
}

texo_status
cuda_cache_bytes(Rt *rt, size_t *bytes)
{
	int n = 0;
	texo_status s = cuda_result(rt->cuda, rt->cuda->driver.device_attribute(&n, ATTRIBUTE_CACHE_BYTES, rt->cuda->device),
	                            "tell the device's cache");
	*bytes = n > 0 ? (size_t)n : 0;
	return s;
}

texo_status
cuda_fill(Rt *rt, void *at, unsigned char byte, size_t bytes, void *stream)
{
	IN_CONTEXT(rt, c->driver.fill_bytes(address(at), byte, bytes, stream), "fill memory");
}

texo_status
cuda_copy_inside(Rt *rt, void *to, const void *from, size_t bytes, void *stream)
{
	IN_CONTEXT(rt, c->driver.copy_inside(address(to), address(from), bytes, stream), "copy on the device");
}

texo_status
cuda_function_new(Rt *rt, const char *ptx, const char *name, void **module, void **function)
{
	Cuda *c = rt->cuda;
	*module = *function = NULL;
	texo_status s = cuda_enter(c);
	if (s)
		return s;
	s = cuda_load_text(c, ptx, module);
	if (!s)
		s = cuda_find_function(c, *module, name, function);
	return cuda_leave(c, s);
}

texo_status
cuda_function_of(Rt *rt, void *module, const char *name, void **function)
{
	texo_status s = cuda_enter(rt->cuda);
	return s ? s : cuda_leave(rt->cuda, cuda_find_function(rt->cuda, module, name, function));
}

void
cuda_function_free(Rt *rt, void *module)
{
	void *left;
	Cuda *c = rt->cuda;
	if (!module)
		return;
	bool entered = c->driver.context_push(c->context) == 0;
	c->driver.module_unload(module);
	if (entered)
		c->driver.context_pop(&left);
}

texo_status
cuda_launch_function(Rt *rt, void *function, unsigned blocks, unsigned threads, void **parameter, void *stream)
{
	IN_CONTEXT(rt, c->driver.launch(function, blocks, 1, 1, threads, 1, 1, 0, stream, parameter, NULL), "launch a function");
}
