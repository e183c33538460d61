/* retired.c: the kernels of programs that were destroyed. A caller who goes on using one made a mistake
 * that deserves a status. So the handles of the last programs stay, without what they led to, until
 * others take their place or the runtime goes; they are few and small. */
#include "runtime/inside.h"

void
rt_retire(Rt *rt, void *kernels)
{
	if (!kernels)
		return;
	unsigned place = atomic_fetch_add(&rt->retiring, 1) % RETIRED;
	rt_release(rt, atomic_exchange(&rt->retired[place], kernels));
}

void
rt_release_retired(Rt *rt)
{
	for (unsigned k = 0; k < RETIRED; k++)
		rt_release(rt, atomic_exchange(&rt->retired[k], NULL));
}

texo_status
kernel_gone(void)
{
	return rt_fail(TEXO_INVALID, "k: the program or module of this kernel was destroyed");
}
