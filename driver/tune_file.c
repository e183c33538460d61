/* tune_file.c: see tune_file.h. Reading is jansson's, which says where a text is no JSON; what the values are is checked
 * here, and said by their path. */
#include "driver/tune_file.h"
#include "driver/cache/key.h"
#include "driver/source.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 16 << 20, VERSION = 1 };

typedef struct {
	Session *s;
	const char *path;
	const char *at; /* which value: "entries[0].bucket" */
} Reader;

static bool
wrong(Reader *r, const char *key, const char *wanted)
{
	const char *dot = *r->at && *key && *key != '[' ? "." : "";
	problem(&r->s->problem, EXIT_INPUT, "%s: %s%s%s is %s", r->path, r->at, dot, key, wanted);
	return problem_help(&r->s->problem, "'texo tune' writes such files; mend the line, or make it anew");
}

static const char *
copy_of(Reader *r, const json_t *v)
{
	return arena_copy(&r->s->arena, json_string_value(v), json_string_length(v));
}

/* The text under a key. */
static bool
take_text(Reader *r, const json_t *object, const char *key, const char **out)
{
	const json_t *v = json_object_get(object, key);
	if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v))
		return wrong(r, key, v ? "no text" : "missing");
	*out = copy_of(r, v);
	return true;
}

static bool
take_number(Reader *r, const json_t *object, const char *key, double *out)
{
	const json_t *v = json_object_get(object, key);
	*out = json_number_value(v);
	return (json_is_number(v) && *out >= 0) || wrong(r, key, v ? "no number from 0 on" : "missing");
}

static bool
take_count(Reader *r, const json_t *object, const char *key, int64_t *out)
{
	const json_t *v = json_object_get(object, key);
	*out = json_integer_value(v);
	return (json_is_integer(v) && *out >= 0) || wrong(r, key, v ? "no whole number from 0 on" : "missing");
}

/* Says which keys of the object are none of those in the list, which commas divide. */
static void
note_others(Reader *r, json_t *object, const char *known)
{
	const char *key;
	json_t *v;
	json_object_foreach(object, key, v) {
		size_t n = strlen(key);
		const char *at = known;
		while (*at && !(strncmp(at, key, n) == 0 && (at[n] == ',' || at[n] == 0))) {
			at += strcspn(at, ",");
			at += *at == ',';
		}
		if (!*at)
			say_note(r->s, "%s: %s%s%s is not known here, and left out", r->path, r->at, *r->at ? "." : "", key);
	}
}

/* --- entries --- */

static bool
read_bucket(Reader *r, const json_t *object, TuneEntry *e)
{
	const char *key;
	json_t *v, *bucket = json_object_get(object, "bucket");
	if (!json_is_object(bucket))
		return wrong(r, "bucket", bucket ? "no object: {\"M\": [from, to]}" : "missing");
	json_object_foreach(bucket, key, v) {
		const json_t *from = json_array_get(v, 0), *to = json_array_get(v, 1);
		TuneRange range = {arena_text(&r->s->arena, "%s", key), json_integer_value(from), json_integer_value(to)};
		if (json_array_size(v) != 2 || !json_is_integer(from) || !json_is_integer(to) || range.least < 0 || range.most < range.least)
			return wrong(r, arena_text(&r->s->arena, "bucket.%s", key), "no pair of whole numbers, from and to");
		vec_push(&r->s->arena, &e->range, range);
	}
	return true;
}

static bool
read_plan(Reader *r, json_t *object, bool tried, TunePlan *out)
{
	*out = (TunePlan){0};
	if (!json_is_object(object))
		return wrong(r, "", "no object");
	if (!take_text(r, object, "kernel", &out->kernel) || !take_text(r, object, "plan", &out->plan))
		return false;
	const char *digest = strrchr(out->kernel, '@');
	char *end = NULL;
	out->unit = digest ? strtoull(digest + 1, &end, 16) : 0;
	if (!digest || strlen(digest + 1) != 16 || *end || strspn(digest + 1, "0123456789abcdef") != 16)
		return wrong(r, "kernel", "not a name, an @ and 16 hexadecimal digits");
	note_others(r, object, tried ? "kernel,plan,us,failed" : "kernel,plan");
	if (!tried)
		return true;
	return json_object_get(object, "failed") ? take_text(r, object, "failed", &out->failed) : take_number(r, object, "us", &out->us);
}

static bool
read_plans(Reader *r, const json_t *object, const char *key, bool tried, TuneEntry *e)
{
	json_t *list = json_object_get(object, key), *v;
	const char *at = r->at;
	size_t n;
	if (!list && tried)
		return true;
	if (!json_is_array(list))
		return wrong(r, key, list ? "no list" : "missing");
	json_array_foreach(list, n, v) {
		TunePlan plan;
		r->at = arena_text(&r->s->arena, "%s.%s[%zu]", at, key, n);
		if (!read_plan(r, v, tried, &plan))
			return false;
		if (tried)
			vec_push(&r->s->arena, &e->tried, plan);
		else
			vec_push(&r->s->arena, &e->choice, plan);
	}
	r->at = at;
	return true;
}

static bool
read_measured(Reader *r, const json_t *object, TuneEntry *e)
{
	json_t *m = json_object_get(object, "measured"), *dims, *v;
	const char *at = r->at, *key;
	if (!json_is_object(m))
		return wrong(r, "measured", m ? "no object" : "missing");
	r->at = arena_text(&r->s->arena, "%s.measured", at);
	note_others(r, m, "dims,default_us,tuned_us,threads,checked");
	dims = json_object_get(m, "dims");
	if (!json_is_object(dims))
		return wrong(r, "dims", dims ? "no object" : "missing");
	json_object_foreach(dims, key, v) {
		TuneDim d = {arena_text(&r->s->arena, "%s", key), 0};
		if (!take_count(r, dims, d.name, &d.value))
			return false;
		vec_push(&r->s->arena, &e->dim, d);
	}
	bool ok = take_number(r, m, "default_us", &e->default_us) && take_number(r, m, "tuned_us", &e->tuned_us) &&
	          take_count(r, m, "threads", &e->threads) && take_text(r, m, "checked", &e->checked);
	r->at = at;
	return ok;
}

static bool
read_entry(Reader *r, json_t *object, TuneEntry *e)
{
	*e = (TuneEntry){0};
	if (!json_is_object(object))
		return wrong(r, "", "no object");
	note_others(r, object, "graph,target,bucket,choices,measured,machine,build,tried");
	return take_text(r, object, "graph", &e->graph) && take_text(r, object, "target", &e->target) && read_bucket(r, object, e) &&
	       read_plans(r, object, "choices", false, e) && read_measured(r, object, e) && take_text(r, object, "machine", &e->machine) &&
	       take_text(r, object, "build", &e->build) && read_plans(r, object, "tried", true, e);
}

static bool
read_root(Reader *r, json_t *root, TuneFile *out)
{
	int64_t version;
	json_t *entries = json_object_get(root, "entries"), *v;
	size_t n;
	if (!json_is_object(root))
		return wrong(r, "the file", "no object");
	if (!take_count(r, root, "texo-tune", &version))
		return false;
	if (version != VERSION) {
		problem(&r->s->problem, EXIT_INPUT, "%s: texo-tune is %" PRId64 ", and this texo reads %d", r->path, version, VERSION);
		return problem_help(&r->s->problem, "'texo tune' of this texo makes it anew");
	}
	if (!json_is_array(entries))
		return wrong(r, "entries", entries ? "no list" : "missing");
	note_others(r, root, "texo-tune,entries");
	json_array_foreach(entries, n, v) {
		TuneEntry e;
		r->at = arena_text(&r->s->arena, "entries[%zu]", n);
		if (!read_entry(r, v, &e))
			return false;
		vec_push(&r->s->arena, &out->entry, e);
	}
	return true;
}

bool
tune_file_read(Session *s, const char *path, TuneFile *out)
{
	const char *text;
	size_t n;
	json_error_t error;
	Reader r = {s, path, ""};
	*out = (TuneFile){0};
	if (!source_read(&s->host->files, &s->arena, path, MOST_BYTES, &text, &n, &s->problem))
		return false;
	if (n > MOST_BYTES)
		return problem(&s->problem, EXIT_INPUT, "%s: more than %d bytes are no tuning file", path, MOST_BYTES);
	json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
	if (!root) {
		problem(&s->problem, EXIT_INPUT, "%s:%d:%d: %s", path, error.line, error.column, error.text);
		return problem_help(&s->problem, "a tuning file is JSON, as 'texo tune' writes it");
	}
	bool ok = read_root(&r, root, out);
	json_decref(root);
	return ok;
}

/* --- writing --- */

static void
put_key(Text *out, const char *before, const char *key, const char *value)
{
	text_printf(out, "%s\"%s\": ", before, key);
	text_json(out, value, strlen(value));
}

static void
put_plans(Text *out, const char *key, const TunePlan *at, uint32_t n, bool tried)
{
	text_printf(out, "      \"%s\": [", key);
	for (uint32_t k = 0; k < n; k++) {
		put_key(out, k ? ",\n        {" : "\n        {", "kernel", at[k].kernel);
		put_key(out, ", ", "plan", at[k].plan);
		if (tried && at[k].failed)
			put_key(out, ", ", "failed", at[k].failed);
		else if (tried)
			text_printf(out, ", \"us\": %.3f", at[k].us);
		text_printf(out, "}");
	}
	text_printf(out, n ? "\n      ]" : "]");
}

static void
put_entry(Text *out, const TuneEntry *e)
{
	put_key(out, "    {\n      ", "graph", e->graph);
	put_key(out, ",\n      ", "target", e->target);
	text_printf(out, ",\n      \"bucket\": {");
	for (uint32_t k = 0; k < e->range.n; k++)
		text_printf(out, "%s\"%s\": [%" PRId64 ", %" PRId64 "]", k ? ", " : "", e->range.at[k].dim, e->range.at[k].least, e->range.at[k].most);
	text_printf(out, "},\n");
	put_plans(out, "choices", e->choice.at, e->choice.n, false);
	text_printf(out, ",\n      \"measured\": {\"dims\": {");
	for (uint32_t k = 0; k < e->dim.n; k++)
		text_printf(out, "%s\"%s\": %" PRId64, k ? ", " : "", e->dim.at[k].name, e->dim.at[k].value);
	text_printf(out, "}, \"default_us\": %.3f, \"tuned_us\": %.3f, \"threads\": %" PRId64, e->default_us, e->tuned_us, e->threads);
	put_key(out, ", ", "checked", e->checked);
	put_key(out, "},\n      ", "machine", e->machine);
	put_key(out, ",\n      ", "build", e->build);
	text_printf(out, ",\n");
	put_plans(out, "tried", e->tried.at, e->tried.n, true);
	text_printf(out, "\n    }");
}

void
tune_file_print(const TuneFile *f, Text *out)
{
	text_printf(out, "{\n  \"texo-tune\": %d,\n  \"entries\": [\n", VERSION);
	for (uint32_t k = 0; k < f->entry.n; k++) {
		put_entry(out, &f->entry.at[k]);
		text_printf(out, k + 1 < f->entry.n ? ",\n" : "\n");
	}
	text_printf(out, "  ]\n}\n");
}

static bool
same_bucket(const TuneEntry *a, const TuneEntry *b)
{
	bool same = a->range.n == b->range.n;
	for (uint32_t k = 0; same && k < a->range.n; k++) {
		bool found = false;
		for (uint32_t i = 0; i < b->range.n; i++)
			found |= strcmp(a->range.at[k].dim, b->range.at[i].dim) == 0 && a->range.at[k].least == b->range.at[i].least &&
			         a->range.at[k].most == b->range.at[i].most;
		same = found;
	}
	return same;
}

TuneEntry *
tune_file_entry(TuneFile *f, const TuneEntry *like)
{
	for (uint32_t k = 0; k < f->entry.n; k++) {
		TuneEntry *e = &f->entry.at[k];
		if (strcmp(e->graph, like->graph) == 0 && strcmp(e->target, like->target) == 0 && same_bucket(e, like))
			return e;
	}
	return NULL;
}
