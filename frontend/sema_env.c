/* sema_env.c: names. Environments are chains of bindings inside an expression; a graph instance has a
 * table of entities; indices are numbered. */
#include "frontend/sema.h"

#include <string.h>

Env *
env_index(Sema *s, Env *up, Name name, const IvarId *ivar, uint32_t n)
{
	Env *e = ARENA_NEW(s->arena, Env);
	*e = (Env){.up = up, .scope = up->scope, .name = name, .what = BIND_INDEX, .n = n, .ngroup = n,
	           .file = up->file, .depth = up->depth};
	memcpy(e->ivar, ivar, n * sizeof *ivar);
	return e;
}

Env *
env_find(Env *env, Name name)
{
	for (; env; env = env->up)
		if (env->name == name)
			return env;
	return NULL;
}

static uint32_t
slot_of(const Scope *sc, Name name)
{
	uint32_t i = name * 2654435761u & (sc->nslot - 1);
	while (sc->slot[i].entity && sc->slot[i].name != name)
		i = (i + 1) & (sc->nslot - 1);
	return i;
}

Entity *
scope_find(const Scope *sc, Name name)
{
	return sc && sc->nslot ? sc->slot[slot_of(sc, name)].entity : NULL;
}

Entity *
scope_add(Sema *s, Scope *sc, EntityKind kind, Name name, Span at)
{
	if (sc->nentity * 2 >= sc->nslot) {
		Scope old = *sc;
		sc->nslot = old.nslot ? old.nslot * 2 : 32;
		sc->slot = arena_array(s->arena, sizeof *sc->slot, sc->nslot);
		for (uint32_t i = 0; i < old.nslot; i++)
			if (old.slot[i].entity)
				sc->slot[slot_of(sc, old.slot[i].name)] = old.slot[i];
	}
	Entity *e = ARENA_NEW(s->arena, Entity);
	*e = (Entity){.kind = kind, .name = name, .at = at};
	uint32_t i = slot_of(sc, name);
	sc->slot[i].name = name;
	sc->slot[i].entity = e;
	sc->nentity++;
	return e;
}

IvarId
ivar_new(Sema *s, Name name, Span at)
{
	vec_push(s->arena, &s->ivar, ((Ivar){.name = name, .at = at}));
	return s->ivar.n - 1;
}

/* Edit distance, cut off beyond 2. */
static unsigned
distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	unsigned row[66];
	if (n > 64 || m > 64 || n + 2 < m || m + 2 < n)
		return 99;
	for (size_t j = 0; j <= m; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned diagonal = row[0];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned best = diagonal + (a[i - 1] != b[j - 1]);
			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[m];
}

NearName
near_begin(const char *want)
{
	return (NearName){want, NULL, strlen(want) < 4 ? 2 : 3};
}

void
near_offer_name(NearName *n, const char *text)
{
	unsigned d = *text ? distance(n->want, text) : 99;
	if (d > 0 && d < n->score && d < strlen(n->want)) { /* something of it is left */
		n->score = d;
		n->best = text;
	}
}

const char *
near_function(Sema *s, uint32_t module, Name name, bool has_brackets)
{
	NearName n = near_begin(name_text(s->names, name));
	for (uint32_t i = 0; i < s->item.n; i++)
		if (item_find(s, module, s->item.at[i].name) == &s->item.at[i])
			near_offer_name(&n, name_text(s->names, s->item.at[i].name));
	if (has_brackets)
		near_reductions(&n);
	else
		near_calls(&n);
	return n.best ? arena_text(s->arena, "did you mean `%s`?", n.best) : NULL;
}

const char *
near_name(Sema *s, Env *env, Name name)
{
	NearName n = near_begin(name_text(s->names, name));
	const Scope *sc = env ? env->scope : NULL;
	uint32_t file = env ? env->file : 0;
	for (; env; env = env->up)
		if (env->name)
			near_offer_name(&n, name_text(s->names, env->name));
	for (uint32_t i = 0; sc && i < sc->nslot; i++)
		if (sc->slot[i].entity)
			near_offer_name(&n, name_text(s->names, sc->slot[i].name));
	for (uint32_t i = 0; i < s->item.n; i++)
		if (s->item.at[i].module == file)
			near_offer_name(&n, name_text(s->names, s->item.at[i].name));
	return n.best;
}
