/* tune.c: texo tune F [name=value...]: tries the plans that the kernels of a graph could have at these sizes, each in a process
 * of its own, and keeps what is best in F.tune, which run, build, bench and explain take with --tune. */
#include "driver/cache/key.h"
#include "driver/cpu_launch.h"
#include "driver/output_file.h"
#include "driver/source.h"
#include "driver/tune.h"
#include "ir/gpu_facts.h"
#include "runtime/cuda.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the machine, in a process: looking for a GPU makes a context that no later process could have --- */

/* What /proc calls the processor. */
static const char *
processor_name(Session *s)
{
	enum { ENOUGH = 4096 };
	static const char key[] = "model name\t: ";
	char *text = ARENA_ARRAY(&s->arena, char, ENOUGH + 1);
	int fd = s->host->files.open(s->host->files.user, "/proc/cpuinfo", O_RDONLY, 0);
	if (fd >= 0) {
		read_fully(&s->host->files, fd, text, ENOUGH);
		s->host->files.close(s->host->files.user, fd);
	}
	const char *at = strstr(text, key);
	return at ? arena_copy(&s->arena, at + sizeof key - 1, strcspn(at + sizeof key - 1, "\n")) : "a processor without a name";
}

static bool
look_at_machine(Session *s, void *arg, int to)
{
	TuneMessage m = {.step = TUNE_DONE};
	texo_rt *rt;
	(void)arg;
	if (!device_parse(s, &m.device))
		return false;
	if (m.device == DEVICE_INTERP)
		return problem(&s->problem, EXIT_USAGE, "'texo tune' times compiled code: --device=cpu or --device=cuda");
	if (m.device == DEVICE_CPU) {
		if (!roof_measure(s, cpu_threads(s), &m.roof))
			return false;
		snprintf(m.text, sizeof m.text, "%s", processor_name(s));
		tune_tell(to, &m);
		return true;
	}
	texo_rt_options o = {.struct_size = sizeof o, .device = s->device};
	if (texo_rt_create(&o, &rt) != TEXO_OK || roof_measure_cuda(rt, &m.roof) != TEXO_OK)
		return problem(&s->problem, EXIT_DEVICE, "--device=%s: %s", s->device, texo_last_error());
	snprintf(m.text, sizeof m.text, "%s", rt->cuda->name);
	snprintf(m.help, sizeof m.help, "%s", s->gpu);
	tune_tell(to, &m);
	return true;
}

static bool
find_machine(Tune *t)
{
	Session *s = t->s;
	TuneMessage m;
	const char *device = option_value(s->options, OPT_DEVICE);
	if (!tune_process(s, look_at_machine, NULL, NULL, NULL, &m))
		return problem(&s->problem, EXIT_INTERRUPTED, "stopped before anything was timed");
	if (m.step != TUNE_DONE) {
		problem(&s->problem, m.exit, "%s", arena_text(&s->arena, "%s", m.text));
		return *m.help ? problem_help(&s->problem, "%s", arena_text(&s->arena, "%s", m.help)) : false;
	}
	t->device = m.device;
	t->roof = m.roof;
	t->entry.machine = arena_text(&s->arena, "%s", m.text);
	if (m.device != DEVICE_CUDA)
		return true;
	s->device = device ? device : "cuda";
	s->gpu = arena_text(&s->arena, "%s", m.help);
	return true;
}

/* --- what is tuned --- */

/* The same graph, as it was checked. */
static Graph *
graph_anew(Tune *t)
{
	SourceUnit *u = ARENA_NEW(&t->s->arena, SourceUnit);
	compile_begin(t->s, t->unit.path, t->unit.text, t->unit.n, u);
	compile_unit(t->s, u, NULL);
	return compile_pick(t->s, u, option_value(t->s->options, OPT_GRAPH));
}

static bool
bind(Tune *t)
{
	Session *s = t->s;
	const Options *o = s->options;
	InputSpec *spec;
	BindOptions bo = {.files = &s->host->files, .diags = &t->unit.diags, .arena = &s->arena, .data = &s->data, .hints = true, .cast = option_on(o, OPT_CAST),
	                  .subject = &s->subject};
	UseTable uses;
	if (!session_specs(s, o->operand.at + 1, o->operand.n - 1, &spec) ||
	    !bind_inputs(t->graph, spec, o->operand.n - 1, &bo, &t->binding, &s->problem))
		return false;
	const char *chosen = binding_chosen_text(&t->binding, &s->arena);
	if (chosen)
		say_note(s, "%s (chosen; name=value sets them)", chosen);
	use_table_init(&uses, t->graph, &s->arena);
	t->work = work_of_signature(&t->binding.env, &uses);
	return true;
}

/* The sizes that a choice made at v is for: a quarter of the way from one power of two to the next, small ones alone. */
static TuneRange
bucket_of(const char *dim, int64_t v)
{
	enum { ALONE = 8, PARTS = 4 };
	int64_t power = ALONE;
	if (v <= ALONE)
		return (TuneRange){dim, v, v};
	while (power <= INT64_MAX / 4 && 2 * power < v)
		power *= 2;
	int64_t step = power / PARTS, part = (v - power + step - 1) / step;
	return (TuneRange){dim, power + (part - 1) * step + 1, power + part * step};
}

static bool
begin_entry(Tune *t)
{
	Session *s = t->s;
	const Graph *g = t->graph;
	TuneEntry *e = &t->entry;
	const char *cpu = compile_cpu_name(s);
	if (!cpu)
		return false;
	e->graph = name_text(g->names, g->name);
	e->target = tune_target(&s->arena, cpu);
	e->build = build_id;
	e->threads = t->device == DEVICE_CPU ? cpu_threads(s) : 0;
	for (DimId d = 1; d < g->dim.n && dim_is_users(g, d); d++) {
		const char *name = name_text(g->names, g->dim.at[d].name);
		int64_t v = t->binding.env.dim[d];
		vec_push(&s->arena, &e->dim, ((TuneDim){name, v}));
		vec_push(&s->arena, &e->range, g->dim.at[d].fixed ? ((TuneRange){name, v, v}) : bucket_of(name, v));
	}
	return true;
}

/* --- the file --- */

/* -o PATH, else F.tune for F.tex. */
static const char *
tune_path(Session *s)
{
	const char *given = option_value(s->options, OPT_OUTPUT), *file = s->options->operand.at[0];
	size_t n = strlen(file);
	if (given)
		return given;
	if (strcmp(file, "-") == 0) {
		problem(&s->problem, EXIT_USAGE, "a program from standard input has no place for its plans: -o PATH gives one");
		return NULL;
	}
	n -= n > 4 && strcmp(file + n - 4, ".tex") == 0 ? 4 : 0;
	return arena_text(&s->arena, "%.*s.tune", (int)n, file);
}

/* What is there already; a file that is not is an empty one. */
static bool
read_file(Session *s, const char *path, TuneFile *out)
{
	int64_t size;
	int regular;
	*out = (TuneFile){0};
	bool there = strcmp(path, "-") != 0 && s->host->files.stat(s->host->files.user, path, &size, &regular) == 0 && regular;
	return !there || tune_file_read(s, path, out);
}

static bool
same_measuring(const TuneEntry *a, const TuneEntry *b)
{
	bool same = strcmp(a->machine, b->machine) == 0 && strcmp(a->build, b->build) == 0 && a->threads == b->threads && a->dim.n == b->dim.n;
	for (uint32_t k = 0; same && k < a->dim.n; k++)
		same = strcmp(a->dim.at[k].name, b->dim.at[k].name) == 0 && a->dim.at[k].value == b->dim.at[k].value;
	return same;
}

/* What an earlier search of the same has tried. */
static void
resume(Tune *t, const TuneEntry *before)
{
	if (!before || !same_measuring(before, &t->entry)) {
		say_note(t->s, "nothing to go on with: no search of these sizes, on this machine, by this texo");
		return;
	}
	for (uint32_t k = 0; k < before->tried.n; k++)
		for (uint32_t i = 0; i < t->candidate.n; i++) {
			TuneCandidate *c = &t->candidate.at[i];
			const TunePlan *p = &before->tried.at[k];
			if (c->tried || c->unit != p->unit || strcmp(c->plan, p->plan) != 0)
				continue;
			c->tried = true;
			c->us = p->us;
			c->failed = p->failed;
			t->ntried++;
			t->nfailed += p->failed != NULL;
		}
}

static void
end_entry(Tune *t)
{
	Arena *a = &t->s->arena;
	TuneEntry *e = &t->entry;
	for (uint32_t k = 0; k < t->candidate.n; k++) {
		const TuneCandidate *c = &t->candidate.at[k];
		TunePlan p = {c->kernel, c->plan, c->unit, c->us, c->failed};
		if (c->tried)
			vec_push(a, &e->tried, p);
		if (t->group.at[c->group].best == k + 1)
			vec_push(a, &e->choice, p);
	}
	e->default_us = t->default_us;
	e->tuned_us = t->best_us;
	e->checked = t->reference.text;
}

static bool
write_file(Tune *t, const char *path, TuneFile *f)
{
	Session *s = t->s;
	TuneEntry *before = tune_file_entry(f, &t->entry);
	Text out;
	if (before)
		*before = t->entry;
	else
		vec_push(&s->arena, &f->entry, t->entry);
	text_init(&out, &s->arena);
	tune_file_print(f, &out);
	return output_add(&s->host->files, path, out.at, out.n, &s->problem) && output_commit(&s->host->files, &s->problem);
}

/* --- the command --- */

/* "60", "60s", "2m" */
static bool
budget(Session *s, double *out)
{
	const char *text = option_value(s->options, OPT_BUDGET);
	char *end = NULL;
	*out = 60;
	if (!text)
		return true;
	*out = strtod(text, &end);
	double times = strcmp(end, "m") == 0 ? 60 : 1;
	if (end == text || (*end && strcmp(end, "s") != 0 && strcmp(end, "m") != 0) || !(*out > 0 && *out < 1e6))
		return problem(&s->problem, EXIT_USAGE, "--budget takes seconds, 60 or 60s, or minutes, 2m, not '%s'", text);
	*out *= times;
	return true;
}

static bool
tune_graph(Tune *t, const char *path, TuneFile *f)
{
	Session *s = t->s;
	const char *seed = option_value(s->options, OPT_SEED);
	t->graph = compile_pick(s, &t->unit, option_value(s->options, OPT_GRAPH));
	if (!t->graph || !find_machine(t) || !bind(t) || !begin_entry(t) ||
	    !tune_list(t, graph_anew(t), seed ? strtoull(seed, NULL, 10) : 1))
		return false;
	if (option_on(s->options, OPT_RESUME))
		resume(t, tune_file_entry(f, &t->entry));
	tune_announce(t, path);
	if (t->candidate.n == 0)
		return true;
	if (!tune_reference_make(s, &t->binding, graph_anew(t), &t->unit.diags, &t->reference) || !tune_search(t))
		return false;
	end_entry(t);
	return write_file(t, path, f);
}

ExitCode
command_tune(Session *s, void *arg)
{
	Tune t = {.s = s, .start_s = tune_now(s)};
	TuneFile f;
	const char *path = tune_path(s);
	(void)arg;
	if (!path || !budget(s, &t.budget_s) || !compile_open(s, s->options->operand.at[0], &t.unit) ||
	    !output_spares(path, s->options->operand.at[0], &s->problem) || !read_file(s, path, &f))
		return session_fail(s);
	compile_unit(s, &t.unit, NULL);
	if (t.unit.failed) {
		session_diags(s, &t.unit.diags);
		return EXIT_INPUT;
	}
	tune_listen();
	uint32_t before = t.unit.diags.list.n;
	bool ok = tune_graph(&t, path, &f);
	if (t.unit.diags.list.n > before && !s->problem.diags)
		session_diags(s, &t.unit.diags);
	if (!ok)
		return session_fail(s);
	if (option_on(s->options, OPT_JSON))
		tune_print_json(&t, path);
	else if (t.candidate.n)
		tune_print(&t, path);
	else
		text_printf(&s->out, "at these sizes every kernel has one plan alone: there is nothing to tune\n");
	return EXIT_OK;
}
