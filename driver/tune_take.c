/* tune_take.c: --tune: what a tuning file has for what is compiled, and what of it found no place there. Nothing of it is left
 * out without a word, but what is for other graphs and targets beside something for these. */
#include "driver/tune_file.h"
#include "driver/cache/key.h"
#include "codegen/codegen.h"

#include <inttypes.h>
#include <string.h>

const char *
tune_target(Arena *a, const char *cpu)
{
	if (codegen_is_sm(cpu))
		return arena_text(a, "cuda:%s", cpu);
	const char *text = codegen_target_text(a, cpu), *name = text ? strstr(text, ", ") : NULL;
	if (strcmp(cpu, "host") != 0 || !name)
		return arena_text(a, "cpu:%s", cpu);
	name += 2;
	return arena_text(a, "cpu:%.*s", (int)strcspn(name, ":"), name);
}

const char *
tune_bucket_text(Arena *a, const TuneRange *range, uint32_t n)
{
	Text t;
	text_init(&t, a);
	for (uint32_t k = 0; k < n; k++)
		if (range[k].least == range[k].most)
			text_printf(&t, "%s%s = %" PRId64, k ? ", " : "", range[k].dim, range[k].least);
		else
			text_printf(&t, "%s%s in %" PRId64 "..%" PRId64, k ? ", " : "", range[k].dim, range[k].least, range[k].most);
	return n ? text_get(&t) : "any sizes";
}

static void
note_targets(Session *s, const char *path, const TuneFile *f, const char *target)
{
	const char *others = "";
	for (uint32_t k = 0; k < f->entry.n; k++)
		if (!strstr(others, f->entry.at[k].target))
			others = arena_text(&s->arena, "%s%s%s", others, *others ? ", " : "", f->entry.at[k].target);
	say_note(s, "%s has nothing for %s%s%s", path, target, *others ? ", only for " : "", others);
}

typedef struct {
	Session *s;
	const char *path, *target;
	VEC(TuneChoice) choice;
	bool any;
} Taking;

static void
take_entry(Taking *t, const TuneEntry *e)
{
	Session *s = t->s;
	const char *sizes = tune_bucket_text(&s->arena, e->range.at, e->range.n);
	t->any = true;
	if (e->choice.n && strcmp(e->build, build_id) != 0)
		say_note(s, "%s: graph %s, %s, was tuned with another build of texo; it is used all the same", t->path, e->graph, sizes);
	if (e->choice.n && strcmp(e->target, t->target) != 0)
		say_note(s, "%s: graph %s, %s, was tuned for %s; it is used for %s all the same", t->path, e->graph, sizes, e->target, t->target);
	for (uint32_t i = 0; i < e->choice.n; i++)
		vec_push(&s->arena, &t->choice,
		         ((TuneChoice){e->graph, e->choice.at[i].unit, e->choice.at[i].kernel, e->choice.at[i].plan, e->range.at, e->range.n}));
}

bool
tune_take(Session *s, const char *cpu, PassOptions *o)
{
	Taking t = {.s = s, .path = option_value(s->options, OPT_TUNE), .target = tune_target(&s->arena, cpu)};
	TuneFile f;
	if (!t.path || s->options->command == CMD_TUNE)
		return true;
	if (!tune_file_read(s, t.path, &f))
		return false;
	for (uint32_t k = 0; k < f.entry.n; k++)
		if (strcmp(f.entry.at[k].target, t.target) == 0)
			take_entry(&t, &f.entry.at[k]);
	/* what another processor found goes behind that: vectors as wide and blocks as large are the same plan */
	for (uint32_t k = 0; k < f.entry.n; k++)
		if (strncmp(t.target, "cpu:", 4) == 0 && strncmp(f.entry.at[k].target, "cpu:", 4) == 0 && strcmp(f.entry.at[k].target, t.target) != 0)
			take_entry(&t, &f.entry.at[k]);
	if (!t.any)
		note_targets(s, t.path, &f, t.target);
	o->choice = t.choice.at;
	o->nchoice = t.choice.n;
	return true;
}

/* Whether the choice is about the program's graph, and found no place. */
static bool
has_no_place(const Program *p, const PassOptions *o, uint32_t k)
{
	return p->tuned[k] != TUNE_TAKEN && strcmp(o->choice[k].graph, name_text(p->graph->names, p->graph->name)) == 0;
}

bool
tune_taken(const Program *p, const PassOptions *o)
{
	bool all = true;
	for (uint32_t k = 0; k < o->nchoice; k++)
		all = all && !has_no_place(p, o, k);
	return all;
}

void
tune_report(Session *s, const Program *p, const PassOptions *o)
{
	static const char *const why[] = {
		[TUNE_NO_UNIT] = "no kernel has definitions that say this",
		[TUNE_NO_DIM] = "its bucket names a dim that the graph does not have",
		[TUNE_NO_PLAN] = "the kernel has no such plan",
	};
	for (uint32_t k = 0; k < o->nchoice; k++)
		if (has_no_place(p, o, k))
			say_note(s, "%s: graph %s, kernel %s: %s, so the cost model decides", option_value(s->options, OPT_TUNE),
			         o->choice[k].graph, o->choice[k].kernel, why[p->tuned[k]]);
}

const char *
tune_key(Arena *a, const PassOptions *o)
{
	Text t;
	text_init(&t, a);
	for (uint32_t k = 0; k < o->nchoice; k++)
		text_printf(&t, "%s %016" PRIx64 " %s, %s\n", o->choice[k].graph, o->choice[k].unit, o->choice[k].plan,
		            tune_bucket_text(a, o->choice[k].range, o->choice[k].nrange));
	return text_get(&t);
}
