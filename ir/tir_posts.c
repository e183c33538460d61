/* tir_posts.c: what groups of a kernel of roles hand over with words that they post (ir/tir.h), as the interpreter of threads
 * checks it. It runs one task after another, so that all that is handed over is there; whether another GPU's block would see
 * it, epochs tell: a word hands over what its group stored before the last barrier that it met, to a group that has loaded the
 * word and met a barrier since. */
#include "ir/tir_threads.h"

typedef struct Posts {
	unsigned groups;
	uint32_t *loaded, *seen; /* by who waits and who posted: in which epochs what was stored is not handed over, from which on;
	                          * by words that are loaded, and since the last barrier behind those */
} Posts;

static uint32_t *
between(const Posts *p, uint32_t *of, unsigned waits, unsigned posted)
{
	return &of[waits * p->groups + posted];
}

void
threads_posts_begin(Block *x)
{
	if (!tir_posts(x->k) || !x->k->channel.n)
		return;
	Posts *p = x->posts = ARENA_NEW(x->scratch, Posts);
	p->groups = x->threads / TIR_GROUP;
	p->loaded = ARENA_ARRAY(x->scratch, uint32_t, (size_t)p->groups * p->groups);
	p->seen = ARENA_ARRAY(x->scratch, uint32_t, (size_t)p->groups * p->groups);
}

void
threads_post(Block *x, unsigned thread, bool posts, Shadow *word)
{
	Posts *p = x->posts;
	unsigned group = thread / TIR_GROUP;
	if (!p)
		return;
	if (posts) {
		word->writer = (uint16_t)thread;
		word->wrote_at = x->group_epoch[group];
		return;
	}
	uint32_t *loaded = between(p, p->loaded, group, word->writer / TIR_GROUP);
	*loaded = word->wrote_at > *loaded ? word->wrote_at : *loaded;
}

void
threads_posts_met(Block *x, unsigned group)
{
	Posts *p = x->posts;
	for (unsigned n = 0; p && n < p->groups; n++)
		*between(p, p->seen, group, n) = *between(p, p->loaded, group, n);
}

bool
threads_was_handed(const Block *x, unsigned thread, const Shadow *h)
{
	const Posts *p = x->posts;
	return !h->wrote_at || h->wrote_at < *between(p, p->seen, thread / TIR_GROUP, h->writer / TIR_GROUP);
}
