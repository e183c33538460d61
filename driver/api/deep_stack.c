/* deep_stack.c: see deep_stack.h. The deepest program that the parser lets through, a tree of 1000 levels,
 * takes 0.7 MB; LLVM wants some of its own. */
#define _GNU_SOURCE /* pthread_getattr_np */
#include "driver/api/deep_stack.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/private.h"

enum { ENOUGH = 4 << 20, DEEP = 8 << 20 };

/* Also where the system does not tell. Of a process's first thread it is told by all of /proc/self/maps: it is asked once. */
static int
is_deep(void)
{
	static _Thread_local uintptr_t end; /* of this thread's stack; 0: not known yet */
	pthread_attr_t attr;
	void *base;
	size_t size;
	if (!end) {
		if (pthread_getattr_np(pthread_self(), &attr) != 0)
			return 1;
		int code = pthread_attr_getstack(&attr, &base, &size);
		pthread_attr_destroy(&attr);
		if (code)
			return 1;
		end = (uintptr_t)base;
	}
	return (uintptr_t)&base - end >= ENOUGH;
}

typedef struct {
	texo_status (*body)(void *arg);
	void *arg;
	texo_status status;
	char text[512]; /* as long as the last error can be */
} Call;

static void *
run(void *p)
{
	Call *c = p;
	c->status = c->body(c->arg);
	snprintf(c->text, sizeof c->text, "%s", texo_last_error());
	return NULL;
}

texo_status
on_deep_stack(texo_status (*body)(void *arg), void *arg)
{
	Call c = {.body = body, .arg = arg};
	pthread_attr_t attr;
	pthread_t thread;
	if (is_deep())
		return body(arg);
	if (pthread_attr_init(&attr) != 0)
		return texo_private_fail(TEXO_NO_MEMORY, "out of memory");
	pthread_attr_setstacksize(&attr, DEEP);
	int code = pthread_create(&thread, &attr, run, &c);
	pthread_attr_destroy(&attr);
	if (code)
		return texo_private_fail(TEXO_NO_MEMORY, "this thread has a small stack, and no other thread can be started");
	pthread_join(thread, NULL);
	return c.status ? texo_private_fail(c.status, "%s", c.text) : TEXO_OK;
}
