/* shared.c: the one runtime that all code compiled ahead of time in this process shares: what such code is
 * called with names none. It is what the host program gives, or is made by the first call, with every
 * processor; and it is kept, so that no call can find it gone. */
#include "runtime/inside.h"

static Rt alone = {.calls = 1}; /* where no other can be made */
static _Atomic(Rt *) shared;

Rt *
rt_shared(void)
{
	texo_rt *rt = atomic_load(&shared);
	if (rt)
		return rt;
	bool made = texo_rt_create(NULL, &rt) == TEXO_OK;
	Rt *other = NULL, *mine = made ? rt : &alone;
	if (atomic_compare_exchange_strong(&shared, &other, mine))
		return mine;
	if (made)
		texo_rt_destroy(rt);
	return other; /* another thread was first */
}

texo_status
texo_rt_share(texo_rt *rt)
{
	Rt *none = NULL;
	if (!rt)
		return rt_fail(TEXO_INVALID, "rt is NULL");
	if (rt->device)
		return rt_fail(TEXO_INVALID, "the code that was compiled ahead of time runs on the processor, and the runtime doesn't");
	atomic_fetch_add(&rt->refs, 1);
	if (atomic_compare_exchange_strong(&shared, &none, rt))
		return TEXO_OK;
	texo_rt_destroy(rt);
	return rt_fail(TEXO_INVALID, "the code that was compiled ahead of time has a runtime already");
}
