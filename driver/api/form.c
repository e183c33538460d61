/* form.c: the forms of a module, each made by a run of the stages as far as it needs. So a module costs
 * nothing for the forms that nobody asks for, and two runs of one request are alike. */
#include "driver/api/objects.h"
#include "driver/api/worker.h"

#include <string.h>

typedef enum { NEEDS_TEXT, NEEDS_GRAPHS, NEEDS_PROGRAMS, NEEDS_CODE, NEEDS_OBJECT } Needs;

typedef enum {
#define FORM(id, needs, text) FORM_##id,
#include "driver/api/forms.def"
} FormId;

typedef struct {
	const char *kind;
	Needs needs;
} FormInfo;

static const FormInfo form_info[] = {
#define FORM(id, needs, text) [FORM_##id] = {#id, NEEDS_##needs},
#include "driver/api/forms.def"
};

enum { FORMS = sizeof form_info / sizeof *form_info };

typedef struct {
	Compiled *compiled;
	const char *kind;
	Form *made;
} Making;

/* Parsing on its own, so that a program in error shows them. */
static void
source_form(Compilation *x, FormId id, Text *out)
{
	Ast *ast = ast_new(&x->arena, x->unit.names, &x->unit.diags);
	if (id == FORM_tokens)
		lex_print(ast, x->unit.file, out);
	else
		ast_print(ast, parse_file(ast, x->unit.file), out);
}

static void
graph_forms(Compilation *x, FormId id, Text *out)
{
	const Unit *u = x->unit.unit;
	for (uint32_t g = 0; g < u->graph.n; g++)
		if (id == FORM_dot)
			dot_print(u->graph.at[g], out);
		else
			graph_print(u->graph.at[g], out);
}

static void
program_forms(Compilation *x, FormId id, Text *out)
{
	for (uint32_t g = 0; g < x->unit.unit->graph.n; g++)
		if (id == FORM_plan)
			program_print_plan(x->program[g], out);
		else
			program_print_tir(x->program[g], out);
}

static texo_status
reach(Compilation *x, FormId id, ObjectResult *object)
{
	Needs needs = form_info[id].needs;
	if (needs == NEEDS_OBJECT)
		return compilation_object(x, object);
	texo_status s = compilation_source(x);
	if (!s && needs >= NEEDS_GRAPHS)
		s = compilation_check(x);
	if (!s && needs >= NEEDS_PROGRAMS)
		s = compilation_lower(x, false);
	if (s || needs < NEEDS_CODE)
		return s;
	CodegenOptions co = {.cpu = x->cpu, .opt_level = 2, .want_llvm = id == FORM_llvm, .want_asm = id == FORM_asm || id == FORM_ptx,
	                     .no_code = id != FORM_image};
	if (id == FORM_ptx && !x->gpu)
		return texo_private_fail(TEXO_INVALID, "kind is 'ptx', and the target is no GPU");
	if (x->unit.unit->graph.n == 0)
		return texo_private_fail(TEXO_NOT_FOUND, "%s has no graph", x->request->name);
	return compilation_code(x, &co);
}

static texo_status
form_named(const char *kind, FormId *id)
{
	for (unsigned k = 0; k < FORMS; k++)
		if (strcmp(kind, form_info[k].kind) == 0) {
			*id = (FormId)k;
			return TEXO_OK;
		}
	return texo_private_fail(TEXO_INVALID, "kind is '%.200s', which is no form of a module", kind);
}

/* What a worker is asked for, and texo_module_emit is not: for a program that has graphs. */
static texo_status
write_tables(Compilation *x, Text *out)
{
	texo_status s = compilation_source(x);
	CodegenOptions co = {.cpu = x->cpu, .opt_level = 2, .late = true};
	if (!s)
		s = compilation_check(x);
	if (!s)
		s = compilation_lower(x, true);
	if (!s)
		s = compilation_code(x, &co);
	if (!s)
		text_add(out, x->code.image, x->code.image_size);
	return s;
}

texo_status
form_write(Compilation *x, const char *kind, Text *out)
{
	FormId id = FORM_tokens;
	ObjectResult object;
	if (strcmp(kind, WORKER_TABLES) == 0)
		return write_tables(x, out);
	if (strcmp(kind, WORKER_KERNEL) == 0 || strcmp(kind, WORKER_SERIAL_KERNEL) == 0)
		return late_write(x, strcmp(kind, WORKER_SERIAL_KERNEL) == 0, out);
	texo_status s = form_named(kind, &id);
	if (!s)
		s = reach(x, id, &object);
	if (s)
		return s;
	switch (id) {
	case FORM_tokens:
	case FORM_ast: source_form(x, id, out); break;
	case FORM_tg:
	case FORM_dot: graph_forms(x, id, out); break;
	case FORM_plan:
	case FORM_tir: program_forms(x, id, out); break;
	case FORM_llvm: text_printf(out, "%s", x->code.llvm); break;
	case FORM_asm:
	case FORM_ptx: text_printf(out, "%s", x->code.assembly); break;
	case FORM_image: text_add(out, x->code.image, x->code.image_size); break;
	case FORM_obj: text_add(out, object.object, object.size); break;
	case FORM_header: text_printf(out, "%s", object.header); break;
	case FORM_manifest: text_printf(out, "%s", object.manifest); break;
	}
	return TEXO_OK;
}

/* In a worker, if the context wants that, when LLVM takes part. */
static texo_status
write_where_asked(Compilation *x, const char *kind, Text *out)
{
	FormId id = FORM_tokens;
	texo_status s = form_named(kind, &id);
	if (s || form_info[id].needs < NEEDS_CODE || x->ctx->isolation == TEXO_IN_PROCESS)
		return s ? s : form_write(x, kind, out);
	const char *bytes;
	size_t n;
	s = compilation_source(x);
	if (!s)
		s = compilation_check(x);
	if (!s)
		s = worker_ask(x, kind, &bytes, &n);
	if (!s)
		text_add(out, bytes, n);
	return s;
}

static texo_status
make(Compilation *x)
{
	Making *m = x->user;
	Arena *keep = &m->compiled->forms;
	Text out;
	text_init(&out, &x->arena);
	texo_status s = write_where_asked(x, m->kind, &out);
	if (s)
		return s;
	Form *f = ARENA_NEW(keep, Form);
	*f = (Form){m->compiled->form, arena_copy(keep, m->kind, strlen(m->kind)),
	            arena_copy(keep, text_get(&out), out.n), out.n};
	m->made = f;
	return TEXO_OK;
}

static const Form *
form_known(const Compiled *c, const char *kind)
{
	const Form *f = c->form;
	while (f && strcmp(f->kind, kind) != 0)
		f = f->next;
	return f;
}

texo_status
form_make(Compiled *c, const char *kind, const Form **out)
{
	Making m = {.compiled = c, .kind = kind};
	texo_status s = TEXO_OK;
	pthread_mutex_lock(&c->lock);
	*out = form_known(c, kind);
	if (!*out) {
		Compilation x = {.ctx = c->ctx, .request = c->request, .user = &m};
		s = compilation_run(&x, make, &c->forms);
		if (!s)
			*out = c->form = m.made;
	}
	pthread_mutex_unlock(&c->lock);
	return s;
}
