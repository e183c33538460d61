/* scratch.c: a first-fit list of idle blocks over an arena. */
#include "passes/scratch.h"

#include <string.h>

struct ScratchBlock {
	ScratchBlock *next;
	size_t n; /* usable bytes, which follow */
};

_Static_assert(sizeof(ScratchBlock) % 16 == 0, "blocks keep the arena's alignment");

static void *
pool_alloc(void *user, size_t n)
{
	ScratchPool *p = user;
	for (ScratchBlock **b = &p->idle; *b; b = &(*b)->next)
		if ((*b)->n >= n) {
			ScratchBlock *hit = *b;
			*b = hit->next;
			return hit + 1;
		}
	if (n > SIZE_MAX - sizeof(ScratchBlock))
		return NULL;
	ScratchBlock *fresh = arena_alloc(p->from, sizeof *fresh + n);
	fresh->n = n;
	return fresh + 1;
}

static void
pool_release(void *user, void *at)
{
	ScratchPool *p = user;
	if (!at)
		return;
	ScratchBlock *b = (ScratchBlock *)at - 1;
	b->next = p->idle;
	p->idle = b;
}

static void *
pool_resize(void *user, void *at, size_t n)
{
	if (at && ((ScratchBlock *)at - 1)->n >= n)
		return at;
	void *to = pool_alloc(user, n);
	if (to && at) {
		memcpy(to, at, ((ScratchBlock *)at - 1)->n);
		pool_release(user, at);
	}
	return to;
}

void
scratch_pool_init(ScratchPool *p, Arena *from)
{
	*p = (ScratchPool){.from = from, .memory = {pool_alloc, pool_resize, pool_release, p}};
}

void
scratch_arena_init(ScratchPool *p, Arena *scratch)
{
	arena_init(scratch, &p->memory, p->from->unwind);
}
