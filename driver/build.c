/* build.c: texo build: all graphs of a file (or the one that --graph names), compiled ahead of time. Each
 * level of processors has passes of its own, so the text is compiled once for each. -o PATH is what the
 * names of the files begin with. All files appear, or none. */
#include "driver/archive.h"
#include "driver/compile.h"
#include "driver/forms.h"
#include "driver/output_file.h"
#include "driver/shared_object.h"

#include <string.h>

#include "codegen/object_file.h"
#include "runtime/alone/bitcode.h"

enum { MAX_LEVELS = 16 };

typedef struct {
	Session *s;
	SourceUnit unit;             /* as first compiled: its diagnostics are the program's */
	ObjectLevel level[MAX_LEVELS];
	uint32_t nlevel, nprogram;
	ObjectResult result;
} Build;

/* The files that --emit can ask for, and what is behind PATH in their names. */
typedef struct {
	const char *form, *ending;
	bool is_text;
} FileForm;

static const FileForm file_forms[] = {
	{"obj", ".o", false}, {"header", ".h", true}, {"lib", ".a", false}, {"so", ".so", false}, {"manifest", ".json", true},
};

enum { FILE_FORMS = sizeof file_forms / sizeof *file_forms };

static bool
wants(const Build *b, const FileForm *f)
{
	const Options *o = b->s->options;
	if (option_value(o, OPT_EMIT))
		return option_lists(o, OPT_EMIT, f->form);
	return strcmp(f->form, "obj") == 0 || strcmp(f->form, "header") == 0;
}

/* --- processors --- */

static bool
add_cpu(Build *b, const char *cpu)
{
	for (uint32_t k = 0; k < b->nlevel; k++)
		if (strcmp(b->level[k].cpu, cpu) == 0)
			return true;
	if (b->nlevel == MAX_LEVELS)
		return problem(&b->s->problem, EXIT_USAGE, "--target names more than %d processors", MAX_LEVELS);
	b->level[b->nlevel++].cpu = cpu;
	return true;
}

/* One item of --target. */
static bool
add_target(Build *b, const char *item)
{
	const char *cpu = NULL;
	if (strcmp(item, "cpu") != 0)
		return (cpu = compile_cpu_named(b->s, item)) &&
		       (!codegen_is_sm(cpu) || problem(&b->s->problem, EXIT_INPUT,
		                                       "--target=%s: code for CUDA in objects is not built yet", item)) &&
		       add_cpu(b, cpu);
	for (const char *const *c = codegen_object_cpus(); *c; c++)
		if (!add_cpu(b, *c))
			return false;
	return true;
}

static bool
choose_cpus(Build *b)
{
	const char *list = option_value(b->s->options, OPT_TARGET);
	for (const char *at = list ? list : "cpu";;) {
		size_t n = strcspn(at, ",");
		if (!add_target(b, arena_copy(&b->s->arena, at, n)))
			return false;
		at += n;
		if (!*at++)
			return true;
	}
}

/* --- programs --- */

/* The graphs to build, of a unit that checked. */
static bool
pick_graphs(Build *b, const SourceUnit *u, Graph ***graph)
{
	const char *name = option_value(b->s->options, OPT_GRAPH);
	*graph = u->unit->graph.at;
	b->nprogram = u->unit->graph.n;
	if (!name && b->nprogram)
		return true;
	Graph *one = compile_pick(b->s, u, name);
	*graph = arena_copy(&b->s->arena, &one, sizeof one);
	b->nprogram = 1;
	return one != NULL;
}

/* Passes speak for the first level alone. */
static bool
build_level(Build *b, uint32_t n, const SourceUnit *u)
{
	Session *s = b->s;
	PassOptions po;
	Graph **graph;
	if (!pick_graphs(b, u, &graph) || !compile_pass_options_for(s, b->level[n].cpu, &po))
		return false;
	if (n > 0) {
		po.remarks = po.time = po.dump_all = false;
		memset(po.dump, 0, sizeof po.dump);
	}
	const Program **program = ARENA_ARRAY(&s->arena, const Program *, b->nprogram);
	for (uint32_t g = 0; g < b->nprogram; g++) {
		program[g] = compile_program(s, graph[g], &po);
		if (!program[g])
			return problem(&s->problem, EXIT_USAGE, "--stop ends before there is code");
	}
	b->level[n].program = program;
	return true;
}

static bool
build_levels(Build *b)
{
	if (!build_level(b, 0, &b->unit))
		return false;
	for (uint32_t n = 1; n < b->nlevel; n++) {
		SourceUnit again;
		compile_begin(b->s, b->unit.path, b->unit.text, b->unit.n, &again);
		compile_unit(b->s, &again, NULL);
		if (!build_level(b, n, &again))
			return false;
	}
	return true;
}

static bool
generate(Build *b)
{
	Session *s = b->s;
	ObjectInput in = {b->level, b->nlevel, b->nprogram, NULL, 2};
	if (option_value(s->options, OPT_POOL)) {
		uint32_t n = 0;
		while (runtime_bitcode[n].n)
			n++;
		ObjectBitcode *launch = ARENA_ARRAY(&s->arena, ObjectBitcode, n + 1);
		for (uint32_t k = 0; k < n; k++)
			launch[k] = (ObjectBitcode){runtime_bitcode[k].bytes, runtime_bitcode[k].n};
		in.launch = launch;
	}
	switch (codegen_object(&s->arena, &in, &b->result)) {
	case CODEGEN_OK:
		return true;
	case CODEGEN_ILLEGAL:
		return problem(&s->problem, EXIT_INPUT, "%s can't be built: %s", b->unit.path, b->result.message);
	case CODEGEN_FAILED:
		return problem(&s->problem, EXIT_BUG, "code generation failed: %s", b->result.message);
	}
	return false;
}

/* --- files --- */

static bool
add_file(Build *b, const FileForm *f, const char *path)
{
	Session *s = b->s;
	const ObjectResult *r = &b->result;
	const HostFiles *files = &s->host->files;
	Text text;
	text_init(&text, &s->arena);
	if (strcmp(f->form, "obj") == 0)
		return output_add(files, path, r->object, r->size, &s->problem);
	if (strcmp(f->form, "so") == 0) {
		const char *aside;
		return output_add(files, path, "", 0, &s->problem) && (aside = output_aside(path)) != NULL &&
		       shared_object_link(files, r->object, r->size, option_value(s->options, OPT_POOL) != NULL, aside, &s->problem);
	}
	if (strcmp(f->form, "lib") == 0)
		archive_write(r->object, r->size, r->symbol, r->nsymbol, &text);
	else
		text_printf(&text, "%s", strcmp(f->form, "header") == 0 ? r->header : r->manifest);
	if (strcmp(path, "-") == 0)
		text_add(&s->out, text_get(&text), text.n);
	else
		return output_add(files, path, text_get(&text), text.n, &s->problem);
	return true;
}

/* -o is there, unless the one form is a text for standard output. */
static bool
check_path(Build *b, const char **path)
{
	unsigned n = 0, texts = 0;
	for (unsigned k = 0; k < FILE_FORMS; k++) {
		n += wants(b, &file_forms[k]);
		texts += wants(b, &file_forms[k]) && file_forms[k].is_text;
	}
	*path = option_value(b->s->options, OPT_OUTPUT);
	bool is_stdout = !*path || strcmp(*path, "-") == 0;
	if (is_stdout && (n > 1 || texts != 1)) {
		problem(&b->s->problem, EXIT_USAGE, "texo build needs -o PATH");
		return problem_help(&b->s->problem, "-o build/mlp writes build/mlp.o and build/mlp.h");
	}
	*path = is_stdout ? "-" : *path;
	if ((*path)[strlen(*path) - 1] != '/')
		return true;
	problem(&b->s->problem, EXIT_USAGE, "-o %s is a folder; it names what the files begin with", *path);
	return problem_help(&b->s->problem, "-o build/mlp writes build/mlp.o and build/mlp.h");
}

static bool
write_files(Build *b, const char *path)
{
	Session *s = b->s;
	for (unsigned k = 0; k < FILE_FORMS; k++) {
		if (!wants(b, &file_forms[k]))
			continue;
		bool is_stdout = strcmp(path, "-") == 0;
		const char *file = is_stdout ? path : arena_text(&s->arena, "%s%s", path, file_forms[k].ending);
		if (!add_file(b, &file_forms[k], file))
			return false;
		if (!is_stdout)
			say_detail(s, "%s", file);
	}
	return output_commit(&s->host->files, &s->problem);
}

/* --- the command --- */

static ExitCode
build_files(Build *b)
{
	Session *s = b->s;
	const char *path;
	if (!check_path(b, &path) || !choose_cpus(b) || !compile_open(s, s->options->operand.at[0], &b->unit))
		return session_fail(s);
	compile_unit(s, &b->unit, NULL);
	session_diags(s, &b->unit.diags);
	if (b->unit.failed)
		return EXIT_INPUT;
	if (!build_levels(b) || !generate(b) || !write_files(b, path))
		return session_fail(s);
	return EXIT_OK;
}

/* Whether --emit lists files, texts of stages, or both. */
static bool
check_forms(Build *b, bool *files)
{
	const Options *o = b->s->options;
	const char *list = option_value(o, OPT_EMIT);
	*files = !list;
	if (!list)
		return true;
	unsigned n = 1, nfile = 0;
	for (const char *c = list; *c; c++)
		n += *c == ',';
	for (unsigned k = 0; k < FILE_FORMS; k++)
		nfile += wants(b, &file_forms[k]);
	*files = nfile > 0;
	if (option_lists(o, OPT_EMIT, "cubin"))
		return problem(&b->s->problem, EXIT_INPUT, "--emit=cubin is not built yet");
	if (nfile && nfile != n)
		return problem(&b->s->problem, EXIT_USAGE, "--emit lists obj, header, lib, so, manifest, or other forms, not both");
	return true;
}

ExitCode
command_build(Session *s, void *arg)
{
	Build b = {.s = s};
	bool files;
	(void)arg;
	if (!check_forms(&b, &files))
		return session_fail(s);
	if (files)
		return build_files(&b);
	if (!compile_open(s, s->options->operand.at[0], &b.unit))
		return session_fail(s);
	return emit_forms(s, &b.unit);
}
