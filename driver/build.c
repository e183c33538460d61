/* build.c: texo build: all graphs of a file (or the one that --graph names), compiled ahead of time. Each
 * level of processors, and each GPU, has passes of its own, so the text is compiled once for each. -o PATH is what the
 * names of the files begin with. All files appear, or none. */
#include "driver/archive.h"
#include "driver/assembler.h"
#include "driver/compile.h"
#include "driver/forms.h"
#include "driver/isolation.h"
#include "driver/output_file.h"
#include "driver/shared_object.h"

#include <string.h>

#include "codegen/object_file.h"
#include "runtime/alone/bitcode.h"

enum { MAX_LEVELS = 16 };

typedef struct {
	Session *s;
	SourceUnit unit;             /* as first compiled: its diagnostics are the program's */
	ObjectLevel level[MAX_LEVELS], gpu[MAX_LEVELS];
	uint32_t nlevel, ngpu, nprogram;
	CodegenOptions machine;      /* its assembler, for GPUs */
	ObjectResult result;
	Text written, forms;         /* the files, and what went to standard output: as lists of JSON */
} Build;

/* The files that --emit can ask for, and what is behind PATH in their names. */
typedef struct {
	const char *form, *ending;
	bool is_text, of_gpu; /* of_gpu: a file for each GPU */
} FileForm;

static const FileForm file_forms[] = {
	{"obj", ".o", false, false},        {"header", ".h", true, false}, {"lib", ".a", false, false},
	{"so", ".so", false, false},        {"manifest", ".json", true, false},
	{"deps", ".d", false, false},       {"ptx", ".ptx", false, true},  {"cubin", ".cubin", false, true},
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

/* --- processors and GPUs --- */

static bool
add_name(Build *b, ObjectLevel *at, uint32_t *n, const char *name)
{
	for (uint32_t k = 0; k < *n; k++)
		if (strcmp(at[k].cpu, name) == 0)
			return true;
	if (*n == MAX_LEVELS)
		return problem(&b->s->problem, EXIT_USAGE, "--target names more than %d processors", MAX_LEVELS);
	at[(*n)++].cpu = name;
	return true;
}

/* One item of --target. Plain cpu and cuda are several. */
static bool
add_target(Build *b, const char *item)
{
	Arena *a = &b->s->arena;
	if (strcmp(item, "cuda") == 0) {
		for (const char *n = codegen_sm_names(a); *n; n += strcspn(n, ","), n += strspn(n, ", "))
			if (!add_name(b, b->gpu, &b->ngpu, arena_copy(a, n, strcspn(n, ","))))
				return false;
		return true;
	}
	if (strcmp(item, "cpu") != 0) {
		const char *cpu = compile_cpu_named(b->s, item);
		if (cpu && codegen_is_sm(cpu))
			return add_name(b, b->gpu, &b->ngpu, cpu);
		return cpu && add_name(b, b->level, &b->nlevel, cpu);
	}
	for (const char *const *c = codegen_object_cpus(); *c; c++)
		if (!add_name(b, b->level, &b->nlevel, *c))
			return false;
	return true;
}

/* What --target asks for can be had, and what is for GPUs has some. */
static bool
check_gpus(Build *b)
{
	Session *s = b->s;
	if (b->ngpu && option_value(s->options, OPT_POOL))
		return problem(&s->problem, EXIT_USAGE, "--threads=1 is for processors: code for GPUs needs libtexo-rt");
	for (unsigned k = 0; k < FILE_FORMS; k++)
		if (file_forms[k].of_gpu && wants(b, &file_forms[k]) && !b->ngpu)
			return problem(&s->problem, EXIT_USAGE, "--emit=%s needs --target=cuda or cuda:NAME", file_forms[k].form);
	if (option_lists(s->options, OPT_EMIT, "cubin"))
		return assembler_need(s, &b->machine);
	return !b->ngpu || assembler_choose(s, true, &b->machine);
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
			return check_gpus(b);
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

/* Passes speak for the first alone. */
static bool
build_level(Build *b, ObjectLevel *level, bool first, const SourceUnit *u)
{
	Session *s = b->s;
	PassOptions po;
	Graph **graph;
	if (!pick_graphs(b, u, &graph) || !compile_pass_options_for(s, level->cpu, &po))
		return false;
	if (!first) {
		po.remarks = po.time = po.dump_all = false;
		memset(po.dump, 0, sizeof po.dump);
	}
	const Program **program = ARENA_ARRAY(&s->arena, const Program *, b->nprogram);
	for (uint32_t g = 0; g < b->nprogram; g++) {
		program[g] = compile_program(s, graph[g], &po);
		if (!program[g])
			return problem(&s->problem, EXIT_USAGE, "--stop ends before there is code");
	}
	level->program = program;
	return true;
}

static bool
build_levels(Build *b)
{
	for (uint32_t n = 0; n < b->nlevel + b->ngpu; n++) {
		ObjectLevel *level = n < b->nlevel ? &b->level[n] : &b->gpu[n - b->nlevel];
		SourceUnit again = b->unit;
		if (n > 0) {
			compile_begin(b->s, b->unit.path, b->unit.text, b->unit.n, &again);
			compile_unit(b->s, &again, NULL);
		}
		if (!build_level(b, level, n == 0, &again))
			return false;
	}
	return true;
}

static bool
generate(Build *b)
{
	Session *s = b->s;
	ObjectInput in = {.level = b->level, .nlevel = b->nlevel, .nprogram = b->nprogram, .gpu = b->gpu, .ngpu = b->ngpu,
	                  .assemble = b->machine.assemble, .user = b->machine.user, .opt_level = 2, .elsewhere = isolation_elsewhere(s)};
	in.want_ptx = option_lists(s->options, OPT_EMIT, "ptx");
	in.want_cubin = option_lists(s->options, OPT_EMIT, "cubin");
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
		if (b->result.unanswered) /* a problem already */
			return false;
		return problem(&s->problem, b->result.unassembled ? EXIT_DEVICE : EXIT_BUG, "code generation failed: %s", b->result.message);
	}
	return false;
}

/* --- files --- */

/* A path as a rule of make has it. */
static void
print_make_path(const char *path, Text *out)
{
	for (const char *c = path; *c; c++)
		text_printf(out, "%s%c", *c == '$' ? "$" : strchr(" #", *c) ? "\\" : "", *c);
}

/* The rule that the first of the files written beside it, PATH.d, depends on all texts that were read. */
static void
print_deps(const Build *b, const char *path, Text *out)
{
	const Diags *d = &b->unit.diags;
	const FileForm *first = &file_forms[0];
	size_t stem = strlen(path) - strlen(".d");
	for (unsigned k = FILE_FORMS; k-- > 0;)
		if (wants(b, &file_forms[k]) && !file_forms[k].of_gpu && strcmp(file_forms[k].form, "deps") != 0)
			first = &file_forms[k];
	print_make_path(arena_text(&b->s->arena, "%.*s%s", (int)stem, path, first->ending), out);
	text_printf(out, ":");
	for (uint32_t k = 0; k < d->files.n; k++) {
		if (d->files.at[k].text == std_text)
			continue;
		text_printf(out, " \\\n  ");
		print_make_path(d->files.at[k].path, out);
	}
	text_printf(out, "\n");
}

static void
note_written(Build *b, const char *file)
{
	say_detail(b->s, "%s", file);
	text_printf(&b->written, "%s", b->written.n ? "," : "");
	text_json(&b->written, file, strlen(file));
}

static bool
add_file(Build *b, const FileForm *f, const char *path)
{
	Session *s = b->s;
	const ObjectResult *r = &b->result;
	const HostFiles *files = &s->host->files;
	Text text;
	text_init(&text, &s->arena);
	if (!output_spares(path, s->options->operand.at[0], &s->problem))
		return false;
	if (strcmp(f->form, "obj") == 0)
		return output_add(files, path, r->object, r->size, &s->problem);
	if (strcmp(f->form, "so") == 0) {
		const char *aside;
		return output_add(files, path, "", 0, &s->problem) && (aside = output_aside(path)) != NULL &&
		       shared_object_link(files, r->object, r->size, option_value(s->options, OPT_POOL) == NULL, aside, &s->problem);
	}
	if (strcmp(f->form, "lib") == 0)
		archive_write(r->object, r->size, r->symbol, r->nsymbol, &text);
	else if (strcmp(f->form, "deps") == 0)
		print_deps(b, path, &text);
	else
		text_printf(&text, "%s", strcmp(f->form, "header") == 0 ? r->header : r->manifest);
	if (strcmp(path, "-") != 0)
		return output_add(files, path, text_get(&text), text.n, &s->problem);
	if (option_on(s->options, OPT_JSON))
		form_json(&b->forms, f->form, text_get(&text), text.n);
	else
		text_add(&s->out, text_get(&text), text.n);
	return true;
}

/* PATH.ptx, or where there are several GPUs PATH.sm_90a.ptx and so on. */
static bool
add_gpu_files(Build *b, const FileForm *f, const char *path)
{
	Session *s = b->s;
	for (uint32_t n = 0; n < b->ngpu; n++) {
		const ObjectGpu *g = &b->result.gpu[n];
		const char *file = b->ngpu == 1 ? arena_text(&s->arena, "%s%s", path, f->ending)
		                                : arena_text(&s->arena, "%s.%s%s", path, g->name, f->ending);
		bool cubin = strcmp(f->form, "cubin") == 0;
		if (!output_spares(file, s->options->operand.at[0], &s->problem) ||
		    !output_add(&s->host->files, file, cubin ? g->cubin : g->ptx, cubin ? g->cubin_bytes : strlen(g->ptx), &s->problem))
			return false;
		note_written(b, file);
	}
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
	const char *slash = strrchr(*path, '/'), *last = slash ? slash + 1 : *path;
	if (*last && strcmp(last, ".") != 0 && strcmp(last, "..") != 0)
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
		if (file_forms[k].of_gpu) {
			if (!add_gpu_files(b, &file_forms[k], path))
				return false;
			continue;
		}
		bool is_stdout = strcmp(path, "-") == 0;
		const char *file = is_stdout ? path : arena_text(&s->arena, "%s%s", path, file_forms[k].ending);
		if (!add_file(b, &file_forms[k], file))
			return false;
		if (!is_stdout)
			note_written(b, file);
	}
	if (!output_commit(&s->host->files, &s->problem))
		return false;
	if (option_on(s->options, OPT_JSON))
		text_printf(&s->out, "{\"%s\":[%s]}\n", b->forms.n ? "forms" : "files", text_get(b->forms.n ? &b->forms : &b->written));
	return true;
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
	unsigned n = 1, nfile = 0, ngpu = 0;
	for (const char *c = list; *c; c++)
		n += *c == ',';
	for (unsigned k = 0; k < FILE_FORMS; k++) {
		nfile += wants(b, &file_forms[k]);
		ngpu += wants(b, &file_forms[k]) && file_forms[k].of_gpu;
	}
	/* for one GPU, without an object, they are forms as others are */
	const char *target = option_value(o, OPT_TARGET);
	*files = nfile > ngpu || (nfile && target && strchr(target, ','));
	if (*files && nfile != n)
		return problem(&b->s->problem, EXIT_USAGE,
		               "--emit lists obj, header, lib, so, manifest, deps, ptx, cubin, or other forms, not both");
	return true;
}

ExitCode
command_build(Session *s, void *arg)
{
	Build b = {.s = s};
	bool files;
	(void)arg;
	text_init(&b.written, &s->arena);
	text_init(&b.forms, &s->arena);
	if (!check_forms(&b, &files))
		return session_fail(s);
	if (files)
		return build_files(&b);
	if (!compile_open(s, s->options->operand.at[0], &b.unit))
		return session_fail(s);
	return emit_forms(s, &b.unit);
}
