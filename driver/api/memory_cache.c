/* memory_cache.c: compiled programs by request, the least recently used dropped first. The key is
 * compared in full, so that a hash says where to look and nothing else. What is dropped lives on while
 * modules hold it. */
#include "driver/api/objects.h"

#include <string.h>

static void
unlink_use(MemoryCache *m, Compiled *c)
{
	*(c->newer ? &c->newer->older : &m->newest) = c->older;
	*(c->older ? &c->older->newer : &m->oldest) = c->newer;
	c->newer = c->older = NULL;
}

static void
link_newest(MemoryCache *m, Compiled *c)
{
	c->newer = NULL;
	c->older = m->newest;
	*(m->newest ? &m->newest->newer : &m->oldest) = c;
	m->newest = c;
}

static Compiled **
place_of(MemoryCache *m, const Request *r)
{
	Compiled **at = &m->bucket[r->hash % CACHE_BUCKETS];
	while (*at && !request_equal((*at)->request, r))
		at = &(*at)->next;
	return at;
}

/* With the lock held; the caller releases the list that comes back, linked by next, without it. */
static Compiled *
drop_oldest(MemoryCache *m)
{
	Compiled *dropped = NULL;
	while (m->bytes > m->limit) {
		Compiled *c = m->oldest;
		*place_of(m, c->request) = c->next;
		unlink_use(m, c);
		m->bytes -= c->bytes;
		c->next = dropped;
		dropped = c;
	}
	return dropped;
}

static void
release_list(Compiled *c)
{
	while (c) {
		Compiled *next = c->next;
		compiled_release(c);
		c = next;
	}
}

Compiled *
cache_find(MemoryCache *m, const Request *r)
{
	if (m->limit == 0 || (r->flags & TEXO_NO_CACHE))
		return NULL;
	pthread_mutex_lock(&m->lock);
	Compiled *c = *place_of(m, r);
	if (c) {
		atomic_fetch_add(&c->refs, 1);
		unlink_use(m, c);
		link_newest(m, c);
	}
	pthread_mutex_unlock(&m->lock);
	return c;
}

Compiled *
cache_add(MemoryCache *m, Compiled *c)
{
	if (!c->cacheable || c->bytes > m->limit || (c->request->flags & TEXO_NO_CACHE))
		return c;
	pthread_mutex_lock(&m->lock);
	Compiled **at = place_of(m, c->request), *first = *at, *dropped = NULL;
	if (first) {
		atomic_fetch_add(&first->refs, 1);
	} else {
		atomic_fetch_add(&c->refs, 1);
		*at = c;
		link_newest(m, c);
		m->bytes += c->bytes;
		dropped = drop_oldest(m);
	}
	pthread_mutex_unlock(&m->lock);
	release_list(dropped);
	if (!first)
		return c;
	compiled_release(c);
	return first;
}

void
cache_clear(MemoryCache *m)
{
	Compiled *all = NULL;
	pthread_mutex_lock(&m->lock);
	for (unsigned b = 0; b < CACHE_BUCKETS; b++)
		while (m->bucket[b]) {
			Compiled *c = m->bucket[b];
			m->bucket[b] = c->next;
			c->next = all;
			all = c;
		}
	m->newest = m->oldest = NULL;
	m->bytes = 0;
	pthread_mutex_unlock(&m->lock);
	release_list(all);
}
