/* compile.c: see compile.h. */
#include "driver/assembler.h"
#include "driver/compile.h"
#include "driver/input_spec.h"
#include "driver/isolation.h"
#include "driver/near.h"
#include "driver/source.h"
#include "driver/tune_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* -D values are NAME=N; whether the file has such a dim is the frontend's to say. */
static bool
check_statics(Session *s)
{
	const Options *o = s->options;
	for (uint32_t i = 0; i < o->use.n; i++) {
		const char *name, *value, *v = o->use.at[i].value;
		char *end = NULL;
		if (o->use.at[i].id != OPT_DEFINE)
			continue;
		errno = 0;
		if (!input_split(&s->arena, v, &name, &value) || strtoll(value, &end, 10) < 0 || end == value || *end || errno)
			return problem(&s->problem, EXIT_USAGE, "-D takes DIM=N, not '%s'", v);
		for (uint32_t k = 0; k < i; k++)
			if (o->use.at[k].id == OPT_DEFINE && statics_differ(o->use.at[k].value, v))
				return problem(&s->problem, EXIT_USAGE, "-D %s and -D %s: a dim has one length", o->use.at[k].value, v);
	}
	return true;
}

void
compile_begin(Session *s, const char *path, const char *text, size_t n, SourceUnit *out)
{
	s->subject = path;
	unit_begin(&s->arena, path, text, n, out);
}

bool
compile_open(Session *s, const char *path, SourceUnit *out)
{
	const char *text;
	size_t n;
	if (!check_statics(s))
		return false;
	s->subject = path;
	if (!source_read(&s->host->files, &s->data, path, MAX_SOURCE, &text, &n, &s->problem))
		return false;
	compile_begin(s, strcmp(path, "-") == 0 ? "<stdin>" : path, text, n, out);
	return true;
}

void
compile_unit(Session *s, SourceUnit *u, const FpMode *fp)
{
	const Options *o = s->options;
	VEC(const char *) statics = {0};
	for (uint32_t i = 0; i < o->use.n; i++)
		if (o->use.at[i].id == OPT_DEFINE)
			vec_push(&s->arena, &statics, o->use.at[i].value);
	FpMode mode;
	fp_named(option_value(o, OPT_FP), &mode); /* one of the option's choices */
	FrontendOptions fo = {
		.fp = fp ? *fp : mode,
		.statics = statics.at,
		.nstatics = statics.n,
		.host = s->host,
	};
	unit_check(&s->arena, u, &fo, option_on(o, OPT_WERROR));
}

Graph *
compile_pick(Session *s, const SourceUnit *u, const char *name)
{
	const Unit *unit = u->unit;
	if (unit->graph.n == 0) {
		problem(&s->problem, EXIT_INPUT, "%s has no graph", u->path);
		return NULL;
	}
	if (!name)
		return unit->graph.at[unit->graph.n - 1];
	Near near = {.word = name};
	for (uint32_t i = 0; i < unit->graph.n; i++) {
		const char *have = name_text(u->names, unit->graph.at[i]->name);
		if (strcmp(have, name) == 0)
			return unit->graph.at[i];
		near_offer(&near, have);
	}
	const char *mend = near_or_all(&near, &s->arena, "its graphs are");
	problem(&s->problem, EXIT_USAGE, "%s has no graph '%s'", u->path, name);
	if (mend)
		problem_help(&s->problem, "%s", mend);
	return NULL;
}

static bool
pass_of(Session *s, const char *option, const char *name, PassId *out)
{
	*out = pass_named(name);
	if (*out != PASS_NONE)
		return true;
	Near near = {.word = name};
	const char *all = "";
	for (int id = 1; id < PASS_COUNT; id++) {
		near_offer(&near, pass_info[id].name);
		all = arena_text(&s->arena, "%s%s%s", all, id > 1 ? ", " : "", pass_info[id].name);
	}
	problem(&s->problem, EXIT_USAGE, "--%s: there is no pass '%s'", option, name);
	const char *mend = near_text(&near, &s->arena);
	return problem_help(&s->problem, "%s%s", mend ? "" : "the passes are ", mend ? mend : all);
}

static bool
add_fuel(Session *s, const char *value, PassOptions *out)
{
	const char *colon = strrchr(value, ':');
	char *end = NULL;
	errno = 0;
	long long n = colon ? strtoll(colon + 1, &end, 10) : 0;
	if (!colon || end == colon + 1 || *end || errno || n < 0)
		return problem(&s->problem, EXIT_USAGE, "--fuel takes PASS:N, not '%s'", value);
	if (out->nfuel == sizeof out->fuel / sizeof out->fuel[0])
		return problem(&s->problem, EXIT_USAGE, "--fuel is given too often");
	PassFuel *f = &out->fuel[out->nfuel++];
	f->count = n;
	return pass_of(s, "fuel", arena_copy(&s->arena, value, (size_t)(colon - value)), &f->pass);
}

const char *
compile_cpu_named(Session *s, const char *target)
{
	const char *cpu;
	switch (target_parse(&s->arena, target, &cpu)) {
	case TARGET_CPU:
	case TARGET_CUDA:
		return cpu;
	case TARGET_NO_SUCH_CPU:
		problem(&s->problem, EXIT_USAGE, "--target=%s: there is no such processor", target);
		problem_help(&s->problem, "the processors are %s", codegen_cpu_names(&s->arena));
		return NULL;
	case TARGET_NO_SUCH_GPU:
		problem(&s->problem, EXIT_USAGE, "--target=%s: there is no such GPU", target);
		problem_help(&s->problem, "the GPUs are %s", codegen_sm_names(&s->arena));
		return NULL;
	case TARGET_NONE:
		problem(&s->problem, EXIT_USAGE, "--target is cpu, cpu:NAME, cuda or cuda:NAME, not '%s'", target);
		break;
	}
	problem_help(&s->problem, "'texo targets' lists what can be compiled for");
	return NULL;
}

const char *
compile_cpu_name(Session *s)
{
	const char *target = option_value(s->options, OPT_TARGET);
	return s->gpu && !target ? s->gpu : compile_cpu_named(s, target);
}

bool
compile_pass_options(Session *s, PassOptions *out)
{
	const char *cpu = compile_cpu_name(s);
	return cpu && compile_pass_options_for(s, cpu, out);
}

bool
compile_pass_options_for(Session *s, const char *cpu, PassOptions *out)
{
	const Options *o = s->options;
	const char *verify = option_value(o, OPT_VERIFY);
	pass_options_for(cpu, s->host, out);
	for (uint32_t i = 0; i < o->use.n; i++) {
		const char *v = o->use.at[i].value;
		PassId id = PASS_NONE;
		if (o->use.at[i].id == OPT_DUMP && strcmp(v, "all") == 0)
			out->dump_all = true;
		else if (o->use.at[i].id == OPT_DUMP) {
			if (!pass_of(s, "dump", v, &id))
				return false;
			out->dump[id] = true;
		} else if (o->use.at[i].id == OPT_SKIP) {
			if (!pass_of(s, "skip", v, &id))
				return false;
			out->skip[id] = true;
		} else if (o->use.at[i].id == OPT_STOP) {
			if (!pass_of(s, "stop", v, &out->stop))
				return false;
		} else if (o->use.at[i].id == OPT_FUEL && !add_fuel(s, v, out)) {
			return false;
		}
	}
	out->remarks = option_on(o, OPT_REMARKS);
	out->time = option_on(o, OPT_TIME);
	out->verify_each = verify && strcmp(verify, "each") == 0;
	fuse_named(option_value(o, OPT_FUSE), &out->fuse); /* one of the option's choices */
	return tune_take(s, cpu, out);
}

Program *
compile_program(Session *s, Graph *g, const PassOptions *o)
{
	Text log;
	text_init(&log, &s->arena);
	Program *p = compile_graph(g, o, &log);
	if (log.n)
		say_text(s, log.at);
	if (p && o->nchoice)
		tune_report(s, p, o);
	return p;
}

bool
compile_code(Session *s, const Program *p, const CodegenOptions *o, CodegenResult *out)
{
	CodegenOptions with = *o;
	if (codegen_is_sm(o->cpu) && !o->assemble && !assembler_choose(s, false, &with))
		return false;
	with.elsewhere = isolation_elsewhere(s);
	switch (codegen_cpu(&s->arena, &p, 1, &with, out)) {
	case CODEGEN_OK:
		return true;
	case CODEGEN_ILLEGAL:
		return problem(&s->problem, EXIT_INPUT, "the target can't run this graph: %s", out->message);
	case CODEGEN_FAILED:
		if (out->unanswered) /* a problem already */
			return false;
		return problem(&s->problem, out->unassembled ? EXIT_DEVICE : EXIT_BUG, "code generation failed: %s", out->message);
	}
	return false;
}
