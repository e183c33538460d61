/* inspect_key.c: what the code in a cache entry was compiled from. */
#include "driver/cache/entry.h"
#include "driver/cache/key.h"
#include "driver/inspection.h"

#include <string.h>

bool
inspect_key(Session *s, const void *bytes, size_t n, Inspection *out)
{
	KeyReader r;
	size_t key_bytes;
	if (strcmp(out->kind, "cache entry") != 0)
		return true;
	const void *key = entry_is_whole(bytes, n) ? entry_part(bytes, ENTRY_KEY, &key_bytes) : NULL;
	if (!key)
		return problem(&s->problem, EXIT_INPUT, "%s is damaged", out->path);
	key_open(&r, key, key_bytes);
	while (key_next(&r)) {
		InspectField f = {arena_copy(&s->arena, r.name, r.name_bytes), arena_copy(&s->arena, r.value, r.value_bytes)};
		if (strcmp(f.name, "file") == 0 || strcmp(f.name, "tir") == 0)
			f.value = arena_text(&s->arena, "%zu bytes", r.value_bytes);
		vec_push(&s->arena, &out->key, f);
	}
	return true;
}

bool
inspect_entry_of_kernel(const void *bytes, const Inspection *x, const char **kernel, const void **machine, size_t *n)
{
	*kernel = NULL;
	for (uint32_t k = 0; k < x->key.n; k++)
		if (strcmp(x->key.at[k].name, "kernel") == 0)
			*kernel = x->key.at[k].value;
	*machine = *kernel ? entry_part(bytes, ENTRY_CUBIN, n) : NULL;
	return *kernel != NULL;
}
