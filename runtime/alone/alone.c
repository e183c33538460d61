/* alone.c: what stands in for the rest of the runtime in an object that is compiled to need no
 * library: one thread, and no text of errors. The parts of the runtime that such an object contains
 * (runtime/CMakeLists.txt lists them) are linked with this. */
#include "runtime/inside.h"

texo_status
rt_fail(texo_status s, const char *fmt, ...)
{
	(void)fmt;
	return s;
}

void
pool_run(Pool *p, uint32_t n, PoolBody *body, void *arg)
{
	(void)p;
	(void)n;
	body(arg, 0);
}

void
pool_yield(void)
{
}

void
pool_start(Pool *p)
{
	(void)p;
}

Rt *
rt_shared(void)
{
	static Rt rt = {.calls = 1};
	return &rt;
}
