/* cuda_memory.c: see cuda.h. Addresses of a device are numbers that fit a pointer; nothing here reads
 * them as one. */
#include "runtime/cuda.h"

static uint64_t
address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

texo_status
cuda_memory_alloc(Rt *rt, size_t bytes, void **out)
{
	uint64_t at = 0;
	*out = NULL;
	texo_status s = cuda_enter(rt->cuda);
	if (s)
		return s;
	s = cuda_result(rt->cuda, rt->cuda->driver.memory_alloc(&at, bytes > 0 ? bytes : 1), "allocate memory");
	if (!s && !at)
		s = rt_fail(TEXO_INTERNAL, "CUDA gives no memory");
	s = cuda_leave(rt->cuda, s);
	if (s && at)
		cuda_memory_free(rt, (void *)(uintptr_t)at);
	else
		*out = (void *)(uintptr_t)at;
	return s;
}

/* Also in a lost context, whose memory the driver may or may not take back. */
void
cuda_memory_free(Rt *rt, void *at)
{
	void *left;
	Cuda *c = rt->cuda;
	if (!at)
		return;
	bool entered = c->driver.context_push(c->context) == 0;
	c->driver.memory_free(address(at));
	if (entered)
		c->driver.context_pop(&left);
}

texo_status
cuda_copy_in(Rt *rt, void *to, const void *from, size_t bytes)
{
	texo_status s = cuda_enter(rt->cuda);
	if (s)
		return s;
	if (bytes)
		s = cuda_result(rt->cuda, rt->cuda->driver.copy_in(address(to), from, bytes), "copy to the device");
	return cuda_leave(rt->cuda, s);
}

texo_status
cuda_copy_out(Rt *rt, void *to, const void *from, size_t bytes)
{
	texo_status s = cuda_enter(rt->cuda);
	if (s)
		return s;
	if (bytes)
		s = cuda_result(rt->cuda, rt->cuda->driver.copy_out(to, address(from), bytes), "copy from the device");
	return cuda_leave(rt->cuda, s);
}

texo_status
cuda_stream_alloc(Rt *rt, size_t bytes, void *stream, void **out)
{
	uint64_t at = 0;
	*out = NULL;
	texo_status s = cuda_enter(rt->cuda);
	if (s)
		return s;
	s = cuda_result(rt->cuda, rt->cuda->driver.stream_alloc(&at, bytes, stream), "allocate memory on the stream");
	if (!s && !at)
		s = rt_fail(TEXO_INTERNAL, "CUDA gives no memory");
	*out = (void *)(uintptr_t)at;
	return cuda_leave(rt->cuda, s);
}

texo_status
cuda_stream_free(Rt *rt, void *at, void *stream)
{
	texo_status s = cuda_enter(rt->cuda);
	int result = rt->cuda->driver.stream_free(address(at), stream); /* also where nothing else works */
	return s ? s : cuda_leave(rt->cuda, cuda_result(rt->cuda, result, "free memory on the stream"));
}

texo_status
cuda_wait(Rt *rt, void *stream)
{
	texo_status s = cuda_enter(rt->cuda);
	if (s)
		return s;
	s = cuda_result(rt->cuda, rt->cuda->driver.stream_wait(stream), "finish what was launched");
	return cuda_leave(rt->cuda, s);
}
