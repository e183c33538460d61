/* disk_cache.c: see disk_cache.h. A cache that can't be used is no error: the code is made anew. What is wrong is
 * said with -v, and by texo doctor. */
#include "driver/disk_cache.h"
#include "driver/cache/figures.h"
#include "driver/cache/key.h"
#include "driver/tune_file.h"

#include <stdlib.h>
#include <string.h>

/* XDG's rule: a path that is not absolute counts as none. */
static const char *
folder_of(const char *variable)
{
	const char *path = getenv(variable);
	return path && *path == '/' ? path : NULL;
}

bool
disk_cache_place(Session *s, Store *out)
{
	const char *given = option_value(s->options, OPT_CACHE_DIR), *limit = option_value(s->options, OPT_CACHE_LIMIT);
	const char *xdg = folder_of("XDG_CACHE_HOME"), *home = folder_of("HOME");
	*out = (Store){.host = s->host, .path = given, .limit = STORE_LIMIT};
	if (limit)
		out->limit = strtoull(limit, NULL, 10) << 20;
	if (!given && xdg)
		out->path = arena_text(&s->arena, "%s/texo", xdg);
	else if (!given && home)
		out->path = arena_text(&s->arena, "%s/.cache/texo", home);
	return out->path != NULL;
}

static bool
wants_compilation(const Options *o)
{
	static const OptionId id[] = {OPT_NO_CACHE, OPT_DUMP, OPT_STOP, OPT_SKIP, OPT_FUEL, OPT_REMARKS, OPT_TIME, OPT_VERIFY};
	for (unsigned k = 0; k < sizeof id / sizeof *id; k++)
		if (option_on(o, id[k]))
			return true;
	return false;
}

void
disk_cache_open(Session *s, const SourceUnit *u, const Graph *g, const PassOptions *po, DiskCache *out)
{
	Text key;
	const Options *o = s->options;
	VEC(const char *) statics = {0};
	*out = (DiskCache){0};
	const char *cpu = compile_cpu_name(s), *target = cpu ? codegen_target_text(&s->arena, cpu) : NULL;
	if (!target || wants_compilation(o) || !disk_cache_place(s, &out->store))
		return;
	for (uint32_t i = 0; i < o->use.n; i++)
		if (o->use.at[i].id == OPT_DEFINE)
			vec_push(&s->arena, &statics, o->use.at[i].value);
	CacheKey k = {.target = target, .graph = name_text(g->names, g->name), .statics = statics.at,
	              .nstatics = statics.n, .tuned = tune_key(&s->arena, po), .files = &u->diags};
	fp_named(option_value(o, OPT_FP), &k.fp);
	fuse_named(option_value(o, OPT_FUSE), &k.fuse);
	text_init(&key, &s->arena);
	key_write(&k, &key);
	out->key = key.at;
	out->key_bytes = key.n;
	out->used = true;
}

bool
disk_cache_get(Session *s, const DiskCache *c, CodegenResult *code)
{
	const char *why = NULL;
	*code = (CodegenResult){0};
	if (!c->used)
		return false;
	code->image = store_get(&c->store, &s->arena, c->key, c->key_bytes, ENTRY_IMAGE, &code->image_size, &why);
	if (why)
		say_detail(s, "%s", why);
	if (code->image)
		say_detail(s, "%zu bytes of code and tables, from the cache", code->image_size);
	return code->image != NULL;
}

void
disk_cache_put(Session *s, const DiskCache *c, const CodegenResult *code)
{
	const char *why = NULL;
	if (c->used && !store_put(&c->store, &s->arena, c->key, c->key_bytes, ENTRY_IMAGE, code->image, code->image_size, &why) && why)
		say_detail(s, "%s", why);
}

/* A broken entry is said: it is another choice than the one that was measured for. */
void
disk_cache_figures(Session *s, texo_rt *rt)
{
	Store store;
	const char *why = NULL;
	if (option_on(s->options, OPT_NO_CACHE) || !disk_cache_place(s, &store))
		return;
	if (figures_take(&store, &s->arena, rt, &why))
		say_detail(s, "plans are chosen by what was measured of the GPU");
	else if (why)
		say_note(s, "the GPU's built-in figures are taken: %s", why);
}
