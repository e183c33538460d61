/* forms.c: see forms.h. Each form says how far the program must have come for it. */
#include "driver/assembler.h"
#include "driver/forms.h"
#include "driver/output_file.h"

#include <string.h>

typedef enum { NEEDS_TEXT, NEEDS_GRAPH, NEEDS_PROGRAM, NEEDS_CODE, NEEDS_BUILD } Needs;

static const struct {
	const char *name;
	Needs needs;
} forms[] = {
	{"tokens", NEEDS_TEXT},  {"ast", NEEDS_TEXT},   {"tg", NEEDS_GRAPH},  {"dot", NEEDS_GRAPH},
	{"plan", NEEDS_PROGRAM}, {"tir", NEEDS_PROGRAM}, {"llvm", NEEDS_CODE}, {"asm", NEEDS_CODE},
	{"ptx", NEEDS_CODE},     {"cubin", NEEDS_CODE}, {"obj", NEEDS_BUILD}, {"lib", NEEDS_BUILD},
	{"so", NEEDS_BUILD},     {"header", NEEDS_BUILD}, {"manifest", NEEDS_BUILD}, {"deps", NEEDS_BUILD},
};

enum { NFORM = sizeof forms / sizeof forms[0] };

typedef struct {
	Session *s;
	SourceUnit *u;
	Graph *graph;
	Program *program;
	CodegenResult code;
	const void *cubin;
	size_t cubin_bytes;
	Needs reached;
	bool json; /* for standard output: an entry for each form */
} Emission;

/* tokens and ast parse on their own, so that a program in error shows them. */
static void
emit_text(Emission *e, const char *form, Text *out)
{
	Ast *ast = ast_new(&e->s->arena, e->u->names, &e->u->diags);
	if (strcmp(form, "tokens") == 0)
		lex_print(ast, e->u->file, out);
	else
		ast_print(ast, parse_file(ast, e->u->file), out);
}

static bool
reach_graph(Emission *e)
{
	compile_unit(e->s, e->u, NULL);
	session_diags(e->s, &e->u->diags);
	if (e->u->failed)
		return problem(&e->s->problem, EXIT_INPUT, "%s has errors", e->u->path);
	e->graph = compile_pick(e->s, e->u, option_value(e->s->options, OPT_GRAPH));
	return e->graph != NULL;
}

static bool
reach_program(Emission *e)
{
	PassOptions po;
	if (!compile_pass_options(e->s, &po))
		return false;
	e->program = compile_program(e->s, e->graph, &po);
	return e->program || problem(&e->s->problem, EXIT_USAGE, "--stop ends before the form that --emit asks for");
}

/* The text of all kernels, assembled. */
static bool
assemble(Emission *e, const char *sm)
{
	CodegenOptions co = {.cpu = sm};
	const char *why = "";
	if (!assembler_need(e->s, &co))
		return false;
	return co.assemble(co.user, &e->s->arena, e->code.assembly, sm, &e->cubin, &e->cubin_bytes, &why) ||
	       problem(&e->s->problem, EXIT_DEVICE, "%s", why);
}

static bool
reach_code(Emission *e)
{
	const Options *o = e->s->options;
	bool ptx = option_lists(o, OPT_EMIT, "ptx"), cubin = option_lists(o, OPT_EMIT, "cubin");
	CodegenOptions co = {
		.cpu = compile_cpu_name(e->s),
		.want_llvm = option_lists(o, OPT_EMIT, "llvm"),
		.want_asm = option_lists(o, OPT_EMIT, "asm") || ptx || cubin,
		.no_code = true,
		.opt_level = 2,
	};
	if (co.cpu && (ptx || cubin) && !codegen_is_sm(co.cpu))
		return problem(&e->s->problem, EXIT_USAGE, "--emit=%s needs --target=cuda or cuda:NAME", ptx ? "ptx" : "cubin");
	return co.cpu && compile_code(e->s, e->program, &co, &e->code) && (!cubin || assemble(e, co.cpu));
}

static bool
reach(Emission *e, Needs needs)
{
	while (e->reached < needs) {
		Needs next = (Needs)(e->reached + 1);
		if (next == NEEDS_GRAPH ? !reach_graph(e) : next == NEEDS_PROGRAM ? !reach_program(e) : !reach_code(e))
			return false;
		e->reached = next;
	}
	return true;
}

static void
emit_form(Emission *e, const char *form, Text *out)
{
	if (strcmp(form, "tokens") == 0 || strcmp(form, "ast") == 0)
		emit_text(e, form, out);
	else if (strcmp(form, "tg") == 0)
		graph_print(e->graph, out);
	else if (strcmp(form, "dot") == 0)
		dot_print(e->graph, out);
	else if (strcmp(form, "plan") == 0)
		program_print_plan(e->program, out);
	else if (strcmp(form, "tir") == 0)
		program_print_tir(e->program, out);
	else if (strcmp(form, "cubin") == 0)
		text_add(out, e->cubin, e->cubin_bytes);
	else
		text_printf(out, "%s", strcmp(form, "llvm") == 0 ? e->code.llvm : e->code.assembly);
}

/* --emit=tg --stop=PASS shows the graph after that pass: the passes run first. */
static bool
run_to_stop(Emission *e)
{
	PassOptions po;
	if (!option_value(e->s->options, OPT_STOP) || e->reached != NEEDS_GRAPH)
		return true;
	if (!compile_pass_options(e->s, &po))
		return false;
	compile_program(e->s, e->graph, &po);
	return true;
}

void
form_json(Text *list, const char *form, const char *text, size_t n)
{
	text_printf(list, "%s{\"form\":\"%s\",\"text\":", list->n ? "," : "", form);
	text_json(list, text, n);
	text_printf(list, "}");
}

static void
add_form(Emission *e, const char *form, Text *out)
{
	Text one;
	if (!e->json) {
		emit_form(e, form, out);
		return;
	}
	text_init(&one, &e->s->arena);
	emit_form(e, form, &one);
	form_json(out, form, text_get(&one), one.n);
}

static bool
emit_all(Emission *e, Text *out)
{
	const Options *o = e->s->options;
	if (e->json && option_lists(o, OPT_EMIT, "cubin")) {
		problem(&e->s->problem, EXIT_USAGE, "a cubin is no text that --json can hold");
		return problem_help(&e->s->problem, "-o PATH writes it to a file");
	}
	for (unsigned k = 0; k < NFORM; k++) {
		if (!option_lists(o, OPT_EMIT, forms[k].name))
			continue;
		if (forms[k].needs == NEEDS_BUILD)
			return problem(&e->s->problem, EXIT_USAGE, "--emit=%s is for texo build", forms[k].name);
		bool first_graph = forms[k].needs == NEEDS_GRAPH && e->reached < NEEDS_GRAPH;
		if (!reach(e, forms[k].needs) || (first_graph && !run_to_stop(e)))
			return false;
		add_form(e, forms[k].name, out);
	}
	return true;
}

ExitCode
emit_forms(Session *s, SourceUnit *u)
{
	Emission e = {.s = s, .u = u};
	const char *path = option_value(s->options, OPT_OUTPUT);
	bool json = option_on(s->options, OPT_JSON), is_stdout = !path || strcmp(path, "-") == 0;
	Text out;
	text_init(&out, &s->arena);
	e.json = json && is_stdout;
	if (!emit_all(&e, &out))
		return session_fail(s);
	if (e.reached == NEEDS_TEXT) { /* the parser's own findings */
		session_diags(s, &u->diags);
		if (u->diags.nerror)
			return EXIT_INPUT;
	}
	if (e.json)
		text_printf(&s->out, "{\"forms\":[%s]}\n", text_get(&out));
	else if (is_stdout)
		text_add(&s->out, text_get(&out), out.n);
	if (is_stdout)
		return EXIT_OK;
	if (!output_spares(path, s->options->operand.at[0], &s->problem) ||
	    !output_add(&s->host->files, path, text_get(&out), out.n, &s->problem) ||
	    !output_commit(&s->host->files, &s->problem))
		return session_fail(s);
	if (json) {
		text_printf(&s->out, "{\"files\":[");
		text_json(&s->out, path, strlen(path));
		text_printf(&s->out, "]}\n");
	}
	return EXIT_OK;
}
