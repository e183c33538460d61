/* names.c: an open-addressing table over texts in the arena. */
#include "ir/names.h"

#include <string.h>

typedef struct {
	const char *text;
	uint32_t n, hash;
} Entry;

struct Names {
	Arena *arena;
	VEC(Entry) entry; /* [0] is no name */
	uint32_t *slot, nslot;
};

static uint32_t
hash_text(const char *s, size_t n)
{
	uint32_t h = 2166136261u;
	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * 16777619u;
	return h;
}

Names *
names_new(Arena *a)
{
	Names *t = ARENA_NEW(a, Names);
	t->arena = a;
	vec_push(a, &t->entry, ((Entry){"", 0, 0}));
	t->nslot = 64;
	t->slot = ARENA_ARRAY(a, uint32_t, t->nslot);
	return t;
}

static void
grow_slots(Names *t)
{
	t->nslot *= 2;
	t->slot = ARENA_ARRAY(t->arena, uint32_t, t->nslot);
	for (uint32_t id = 1; id < t->entry.n; id++) {
		uint32_t s = t->entry.at[id].hash & (t->nslot - 1);
		while (t->slot[s])
			s = (s + 1) & (t->nslot - 1);
		t->slot[s] = id;
	}
}

Name
name_of(Names *t, const char *text, size_t n)
{
	if (n == 0)
		return 0;
	if (n > UINT32_MAX)
		arena_unwind(t->arena, UNWIND_LIMIT, "a name of more than 4 GiB");
	uint32_t h = hash_text(text, n), s = h & (t->nslot - 1);
	for (; t->slot[s]; s = (s + 1) & (t->nslot - 1)) {
		const Entry *e = &t->entry.at[t->slot[s]];
		if (e->hash == h && e->n == n && memcmp(e->text, text, n) == 0)
			return t->slot[s];
	}
	Entry e = {arena_copy(t->arena, text, n), (uint32_t)n, h};
	vec_push(t->arena, &t->entry, e);
	t->slot[s] = t->entry.n - 1;
	if (t->entry.n * 2 > t->nslot)
		grow_slots(t);
	return t->entry.n - 1;
}

Name
name_cstr(Names *t, const char *text)
{
	return name_of(t, text, strlen(text));
}

const char *
name_text(const Names *t, Name id)
{
	return t->entry.at[id].text;
}
