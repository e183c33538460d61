/* arena.c: blocks of doubling size from the host's allocator, which gives large ones as large pages (host.c): beyond SMALL_BLOCK the
 * next one is as large as such a page. The last allocation can grow in place, which makes growing arrays cheap. */
#include "ir/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct ArenaBlock {
	ArenaBlock *below;
	size_t n, cap;
	/* cap bytes follow, aligned to 16 */
};

enum { ALIGN = 16, FIRST_BLOCK = 16 * 1024, SMALL_BLOCK = 256 * 1024, LARGE_BLOCK = 2 * 1024 * 1024, LAST_BLOCK = 8 * 1024 * 1024 };

static size_t
header_size(void)
{
	return (sizeof(ArenaBlock) + ALIGN - 1) / ALIGN * ALIGN;
}

static char *
block_data(ArenaBlock *b)
{
	return (char *)b + header_size();
}

void
arena_init(Arena *a, const HostMemory *m, Unwind *u)
{
	*a = (Arena){.memory = m, .unwind = u};
}

void
arena_free(Arena *a)
{
	while (a->top) {
		ArenaBlock *below = a->top->below;
		a->memory->release(a->memory->user, a->top);
		a->top = below;
	}
	a->used = 0;
}

void
arena_unwind(Arena *a, UnwindWhy why, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(a->unwind->text, sizeof a->unwind->text, fmt, ap);
	va_end(ap);
	a->unwind->why = why;
	longjmp(a->unwind->env, 1);
}

static void
push_block(Arena *a, size_t need)
{
	size_t cap = a->top ? a->top->cap * 2 : FIRST_BLOCK;
	if (cap > SMALL_BLOCK && cap < LARGE_BLOCK)
		cap = LARGE_BLOCK;
	if (cap > LAST_BLOCK)
		cap = LAST_BLOCK;
	if (cap < need)
		cap = need;
	ArenaBlock *b = NULL;
	if (cap <= SIZE_MAX - header_size())
		b = a->memory->alloc(a->memory->user, header_size() + cap);
	if (!b)
		arena_unwind(a, UNWIND_NO_MEMORY, "out of memory for %zu bytes", cap);
	*b = (ArenaBlock){a->top, 0, cap};
	a->top = b;
}

void *
arena_alloc(Arena *a, size_t n)
{
	if (n > SIZE_MAX - ALIGN)
		arena_unwind(a, UNWIND_NO_MEMORY, "out of memory");
	n = (n + ALIGN - 1) / ALIGN * ALIGN;
	if (a->limit && (n > a->limit || a->used > a->limit - n))
		arena_unwind(a, UNWIND_LIMIT, "the memory limit of %zu %s was reached", a->limit >> (a->limit >> 20 ? 20 : 0),
		             a->limit >> 20 ? "MiB" : "bytes");
	if (!a->top || a->top->cap - a->top->n < n)
		push_block(a, n);
	void *p = block_data(a->top) + a->top->n;
	a->top->n += n;
	a->used += n;
	return memset(p, 0, n);
}

void *
arena_array(Arena *a, size_t size, size_t n)
{
	if (size && n > SIZE_MAX / size)
		arena_unwind(a, UNWIND_NO_MEMORY, "out of memory");
	return arena_alloc(a, size * n);
}

void *
arena_copy(Arena *a, const void *p, size_t n)
{
	void *q = arena_alloc(a, n + 1);
	if (n)
		memcpy(q, p, n);
	return q;
}

char *
arena_text(Arena *a, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *s = arena_alloc(a, (size_t)(n < 0 ? 0 : n) + 1);
	if (n > 0)
		vsnprintf(s, (size_t)n + 1, fmt, again);
	va_end(again);
	return s;
}

void *
arena_grow(Arena *a, void *at, size_t size, uint32_t n, uint32_t *cap, size_t extra)
{
	if (extra > UINT32_MAX - n)
		arena_unwind(a, UNWIND_LIMIT, "more than 2^32 entries in one table");
	if (n + extra <= *cap)
		return at;
	uint64_t want = (uint64_t)*cap * 2;
	if (want < n + extra)
		want = n + extra;
	if (want < 8)
		want = 8;
	if (want > UINT32_MAX)
		want = UINT32_MAX;
	void *p = arena_array(a, size, want);
	if (n)
		memcpy(p, at, size * n);
	*cap = (uint32_t)want;
	return p;
}
