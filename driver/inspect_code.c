/* inspect_code.c: the graphs in an object, library, program or artefact. Whatever the file is, what it knows
 * of its graphs are the tables of a launch (ir/image.h), which say of themselves where they end and whether
 * they are whole: they are found by how they begin, so that a stripped library is as good as an object.
 * The sizes of kernels come from the symbols, where there are any. */
#include "driver/inspection.h"
#include "runtime/inside.h"

#include <string.h>

enum { MAX_DAMAGED = 16, MAX_SHAPE = 200 };

typedef struct {
	Session *s;
	Inspection *out;
	CodeSymbols symbols;
	uint32_t damaged;
} Search;

/* --- launch expressions as text --- */

static const char *
infix_of(uint32_t op)
{
	switch (op) {
	case IMG_ADD: return " + ";
	case IMG_SUB: return " - ";
	case IMG_MUL: return " * ";
	case IMG_DIV: case IMG_UDIV: return " div ";
	case IMG_MOD: case IMG_UMOD: return " mod ";
	default: return NULL;
	}
}

static const char *const op_name[IMG_OP_COUNT] = {
#define IMAGE_OP(id, pops, what) #id,
#include "ir/image_ops.def"
};

static const uint8_t op_pops[IMG_OP_COUNT] = {
#define IMAGE_OP(id, pops, what) pops,
#include "ir/image_ops.def"
};

/* A text on the stack, and whether it needs parentheses inside another. */
typedef struct {
	const char *text;
	bool compound;
} Term;

static const char *
inner(Arena *a, const Term *t)
{
	return t->compound ? arena_text(a, "(%s)", t->text) : t->text;
}

static Term
operation(Arena *a, uint32_t op, const Term *arg)
{
	const char *between = infix_of(op), *list = "";
	if (between)
		return (Term){arena_text(a, "%s%s%s", inner(a, &arg[0]), between, inner(a, &arg[1])), true};
	for (unsigned k = 0; k < op_pops[op]; k++)
		list = arena_text(a, "%s%s%s", list, k ? ", " : "", arg[k].text);
	char *text = arena_text(a, "%s(%s)", op_name[op], list);
	for (char *c = text; *c != '('; c++)
		*c |= 0x20;
	return (Term){text, false};
}

/* The expression was checked: its stack never runs empty. */
static const char *
expression(Arena *a, const Image *im, const ImageGraph *g, uint32_t at)
{
	Term *stack = ARENA_ARRAY(a, Term, im->stack + 1);
	uint32_t n = 0;
	for (;; at++) {
		uint32_t op = im->words[at] & 0xff, operand = im->words[at] >> 8;
		if (op == IMG_END)
			return stack[0].text;
		n -= op_pops[op];
		if (op == IMG_CONST) {
			int64_t v = (int64_t)(im->words[at + 1] | (uint64_t)im->words[at + 2] << 32);
			stack[n] = (Term){arena_text(a, "%lld", (long long)v), false};
			at += 2;
		} else if (op == IMG_DIM) {
			stack[n] = (Term){im->text + im->dim[g->dim0 + operand].name, false};
		} else if (op == IMG_PARAM) {
			stack[n] = (Term){im->text + im->param[g->param0 + operand].name, false};
		} else {
			stack[n] = operation(a, op, &stack[n]);
		}
		if (strlen(stack[n].text) > MAX_SHAPE)
			stack[n].text = "...";
		n++;
	}
}

/* --- one graph of one image --- */

static void
add_param(Arena *a, const Image *im, const ImageGraph *g, const ImageParam *p, InspectGraph *to)
{
	static const char *const kind[] = {
		[IMG_INPUT] = "input", [IMG_INOUT] = "inout", [IMG_SCALAR] = "scalar", [IMG_RESULT] = "result"};
	const char *shape = p->rank ? "[" : "";
	for (uint32_t k = 0; k < p->rank; k++)
		shape = arena_text(a, "%s%s%s", shape, k ? ", " : "", expression(a, im, g, p->extent[k]));
	InspectParam param = {im->text + p->name, kind[p->kind], element_of(p->dtype)->text,
	                      p->rank ? arena_text(a, "%s]", shape) : shape};
	vec_push(a, &to->param, param);
}

static void
describe(Arena *a, const Image *im, const ImageGraph *g, InspectGraph *to)
{
	*to = (InspectGraph){.name = im->text + g->name, .signature = im->text + g->signature};
	for (uint32_t k = 0; k < g->nparam; k++)
		add_param(a, im, g, &im->param[g->param0 + k], to);
	for (uint32_t k = 0; k < g->ndim; k++) {
		const ImageDim *d = &im->dim[g->dim0 + k];
		if (d->param < 0 && d->axis <= GPU_FACT_AXIS)
			continue;
		InspectDim dim = {im->text + d->name, NULL, d->axis, d->scale, d->offset, d->value, 0, d->turn > 0};
		if (d->param >= 0)
			dim.param = im->text + im->param[g->param0 + (uint32_t)d->param].name;
		vec_push(a, &to->dim, dim);
	}
	for (uint32_t k = 0; k < g->ncheck; k++) {
		const ImageCheck *c = &im->check[g->check0 + k];
		vec_push(a, &to->check, ((InspectCheck){im->text + c->text, c->line, c->col}));
	}
}

static void
add_code(const CodeSymbols *symbols, InspectKernel *k)
{
	for (uint32_t n = 0; n < symbols->n; n++) {
		const CodeSymbol *s = &symbols->at[n];
		if (strcmp(s->name, k->symbol) != 0)
			continue;
		k->bytes = (int64_t)s->bytes;
		k->registers = s->registers;
		k->stack = s->stack;
	}
}

/* The machine code that the tables have for a GPU's kernel. */
static void
add_modules(Arena *a, const Image *im, uint32_t kernel, InspectKernel *k)
{
	for (uint64_t n = 0; n < im->header->module.n; n++) {
		const ImageModule *m = &im->module[n];
		CodeSymbols symbols = {0};
		if (m->kernel != kernel || m->form != IMG_CUBIN)
			continue;
		code_symbols(a, im->code + m->at, (size_t)m->n, &symbols);
		add_code(&symbols, k);
	}
}

/* "sm_90a": what the tables of a GPU are for. */
static const char *
gpu_name(Arena *a, const ImageHeader *h)
{
	return arena_text(a, "sm_%llu%s", (unsigned long long)h->needs[0], h->needs[1] ? "a" : "");
}

static void
add_level(Search *x, const Image *im, const ImageGraph *g, const CodeSymbols *symbols, InspectGraph *to)
{
	Arena *a = &x->s->arena;
	bool gpu = im->header->target == IMG_TARGET_CUDA;
	InspectLevel level = {.cpu = gpu ? gpu_name(a, im->header) : "", .features = gpu ? 0 : im->header->needs[0],
	                      .tables = im->header->bytes - im->header->code.n};
	for (uint32_t k = 0; k < g->nkernel; k++) {
		const ImageKernel *from = &im->kernel[g->kernel0 + k];
		const char *symbol = im->text + from->entry, *dot = strrchr(symbol, '.');
		InspectKernel kernel = {im->text + from->name, im->text + from->template_name, symbol, -1, -1, -1};
		add_code(symbols, &kernel);
		add_modules(a, im, g->kernel0 + k, &kernel);
		vec_push(a, &level.kernel, kernel);
		if (!gpu && dot && im->header->code.n == 0) /* an object's: graph.number.processor */
			level.cpu = dot + 1;
	}
	vec_push(a, &to->level, level);
}

/* A graph is the same in all tables that hold it, one a processor. */
static void
add_graph(Search *x, const Image *im, const ImageGraph *g, const CodeSymbols *symbols)
{
	Inspection *out = x->out;
	Arena *a = &x->s->arena;
	InspectGraph *to = NULL;
	for (uint32_t k = 0; k < out->graph.n; k++)
		if (strcmp(out->graph.at[k].name, im->text + g->name) == 0 &&
		    strcmp(out->graph.at[k].signature, im->text + g->signature) == 0)
			to = &out->graph.at[k];
	if (!to) {
		vec_grow(a, &out->graph, 1);
		to = &out->graph.at[out->graph.n - 1];
		describe(a, im, g, to);
	}
	add_level(x, im, g, symbols, to);
}

/* --- finding them --- */

/* Reads the tables that begin here; how many bytes they have, 0 when they can't be read. */
static size_t
read_image(Search *x, const uint8_t *at, size_t n)
{
	ImageHeader h;
	Image im = {0};
	if (n < sizeof h)
		return 0;
	memcpy(&h, at, sizeof h);
	if (h.bytes > n || h.bytes < sizeof h)
		return 0;
	im.bytes = arena_copy(&x->s->data, at, (size_t)h.bytes); /* aligned */
	if (image_read(&im, (size_t)h.bytes) != TEXO_OK)
		return 0;
	CodeSymbols own = {0};
	if (im.header->target == IMG_TARGET_CPU)
		code_symbols(&x->s->arena, im.code, (size_t)h.code.n, &own);
	for (uint64_t k = 0; k < h.graph.n; k++)
		add_graph(x, &im, &im.graph[k], h.code.n ? &own : &x->symbols);
	return (size_t)h.bytes;
}

/* The kernels of machine code for a GPU. */
static void
add_functions(Session *s, const CodeSymbols *symbols, Inspection *out)
{
	for (uint32_t k = 0; k < symbols->n; k++) {
		const CodeSymbol *f = &symbols->at[k];
		if (f->registers < 0) /* a part of one, such as a division */
			continue;
		InspectKernel kernel = {f->name, "", f->name, (int64_t)f->bytes, f->registers, f->stack};
		vec_push(&s->arena, &out->kernel, kernel);
	}
}

static void
add_entry(Session *s, const char *symbol, const void *machine, size_t n, Inspection *out)
{
	CodeSymbols symbols = {0};
	if (machine)
		code_symbols(&s->arena, machine, n, &symbols);
	add_functions(s, &symbols, out);
	if (!out->kernel.n)
		vec_push(&s->arena, &out->kernel, ((InspectKernel){symbol, "", symbol, -1, -1, -1}));
}

bool
inspect_code(Session *s, const void *bytes, size_t n, Inspection *out)
{
	Search x = {.s = s, .out = out};
	const uint8_t *at = bytes, *end = at + n;
	const size_t magic = strlen(IMAGE_MAGIC);
	const char *kernel;
	const void *machine;
	size_t machine_bytes;
	if (strcmp(out->kind, "cache entry") == 0 && inspect_entry_of_kernel(bytes, out, &kernel, &machine, &machine_bytes)) {
		add_entry(s, kernel, machine, machine_bytes, out);
		return true;
	}
	code_symbols(&s->arena, bytes, n, &x.symbols);
	if (strcmp(out->kind, "cubin") == 0)
		add_functions(s, &x.symbols, out);
	if (out->kernel.n)
		return true;
	while (x.damaged < MAX_DAMAGED && (at = memchr(at, IMAGE_MAGIC[0], (size_t)(end - at)))) {
		size_t left = (size_t)(end - at), step = 1;
		if (left >= magic && memcmp(at, IMAGE_MAGIC, magic) == 0) {
			step = read_image(&x, at, left);
			x.damaged += step == 0;
			step += step == 0;
		}
		at += step;
	}
	if (out->graph.n)
		return true;
	if (x.damaged && strcmp(out->kind, "artefact") == 0)
		return problem(&s->problem, EXIT_INPUT, "%s: %s", out->path, texo_last_error());
	return problem(&s->problem, EXIT_INPUT, "%s holds no graph that texo compiled", out->path);
}
