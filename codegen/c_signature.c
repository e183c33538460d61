/* c_signature.c: see c_signature.h. */
#include "codegen/c_signature.h"

#include <string.h>

#include "codegen/image_write.h"

typedef struct {
	Arena *arena;
	const Graph *g;
	CSignature *out;
	bool *seen;        /* by DimId: in dim already */
	VEC(DimId) dim;    /* in order of first mention */
	bool *read;        /* by TensorId: a scalar that the workspace's sizes read */
} Signature;

static bool
is_reserved(const char *name, bool for_function)
{
	static const struct {
		const char *text;
		bool of_function, of_parameter;
	} word[] = {
#define C_WORD(text, of_function, of_parameter) {text, of_function, of_parameter},
#include "codegen/c_words.def"
#define IMPORT(id, summary) {#id, true, false},
#include "codegen/link_imports.def"
#define IMPORT(id, summary) {#id, true, false},
#include "ir/image_imports.def"
	};
	if (for_function && strncmp(name, "texo_", strlen("texo_")) == 0) /* libtexo-rt's */
		return true;
	for (unsigned k = 0; k < sizeof word / sizeof *word; k++)
		if (strcmp(name, word[k].text) == 0 && (for_function ? word[k].of_function : word[k].of_parameter))
			return true;
	return false;
}

/* --- dims --- */

static void
mention(Signature *x, DimId d)
{
	if (x->seen[d])
		return;
	x->seen[d] = true;
	if (!x->g->dim.at[d].fixed && x->g->dim.at[d].param >= 0)
		vec_push(x->arena, &x->dim, d);
}

static void
visit_dim(void *user, ExprId e)
{
	Signature *x = user;
	if (expr_get(x->g, e)->op == OP_DIM)
		mention(x, expr_get(x->g, e)->ref);
}

static void
order_dims(Signature *x)
{
	const Graph *g = x->g;
	for (uint32_t p = 0; p < g->param.n; p++) {
		const Tensor *t = &g->tensor.at[g->param.at[p]];
		for (unsigned k = 0; k < t->rank; k++)
			expr_walk(g, x->arena, t->extent[k], visit_dim, x);
		for (DimId d = 1; d < g->dim.n; d++)
			if (g->dim.at[d].param == (int32_t)p && g->dim.at[d].axis < 0)
				mention(x, d);
	}
	for (DimId d = 1; d < g->dim.n; d++)
		mention(x, d);
}

/* --- what the sizes of the workspace read --- */

typedef struct {
	const Graph *g;
	bool *read;
} SizeReads;

static void
visit_read(void *user, ExprId e)
{
	SizeReads *x = user;
	const Expr *r = expr_get(x->g, e);
	if (r->op == OP_READ)
		x->read[r->ref] = true;
}

/* Tensors and scratch of the program; parameters have the same ids at every level. */
static void
find_size_reads(Signature *x, const Program *p)
{
	const Graph *g = p->graph;
	SizeReads r = {g, ARENA_ARRAY(x->arena, bool, g->tensor.n)};
	for (TensorId t = 1; t < g->tensor.n; t++)
		for (unsigned k = 0; k < g->tensor.at[t].rank; k++)
			expr_walk(g, x->arena, g->tensor.at[t].extent[k], visit_read, &r);
	for (uint32_t k = 0; k < p->kernel.n; k++)
		for (uint32_t b = 0; b < p->kernel.at[k].buffer.n; b++)
			if (p->kernel.at[k].buffer.at[b].elements)
				expr_walk(g, x->arena, p->kernel.at[k].buffer.at[b].elements, visit_read, &r);
	for (uint32_t k = 0; k < g->param.n; k++)
		if (r.read[g->param.at[k]])
			x->read[x->g->param.at[k]] = true;
}

static bool
gives_dim(const Graph *g, uint32_t param)
{
	for (DimId d = 1; d < g->dim.n; d++)
		if (g->dim.at[d].param == (int32_t)param && g->dim.at[d].axis < 0 && !g->dim.at[d].fixed)
			return true;
	return false;
}

/* --- arguments --- */

/* The name, or with underscores behind it what no argument before has. */
static const char *
free_name(const Signature *x, const char *name)
{
	bool taken = true;
	name = is_reserved(name, false) ? arena_text(x->arena, "%s_", name) : name;
	while (taken) {
		taken = false;
		for (uint32_t k = 0; k < x->out->call.n; k++)
			taken = taken || strcmp(x->out->call.at[k].name, name) == 0;
		if (taken)
			name = arena_text(x->arena, "%s_", name);
	}
	return name;
}

static void
put_arg(Signature *x, CArg a, Name name)
{
	a.name = free_name(x, name_text(x->g->names, name));
	vec_push(x->arena, &x->out->call, a);
}

static void
put_dims(Signature *x)
{
	const Graph *g = x->g;
	for (uint32_t k = 0; k < g->param.n; k++)
		if (x->read[g->param.at[k]] && !gives_dim(g, k))
			vec_push(x->arena, &x->out->sizes, x->out->call.at[k]);
	for (uint32_t k = 0; k < x->dim.n; k++) {
		const Dim *d = &g->dim.at[x->dim.at[k]];
		CArg a = {.kind = CARG_DIM, .slot = x->dim.at[k] - 1};
		if (d->axis >= 0) {
			put_arg(x, a, d->name);
			a = x->out->call.at[x->out->call.n - 1];
		} else {
			a.name = x->out->call.at[d->param].name;
			a.is_word = true;
			a.slot = (uint32_t)d->param;
		}
		vec_push(x->arena, &x->out->sizes, a);
	}
}

static void
put_args(Signature *x)
{
	const Graph *g = x->g;
	uint32_t word = 0;
	for (uint32_t k = 0; k < g->param.n; k++) {
		const Tensor *t = &g->tensor.at[g->param.at[k]];
		CArgKind kind = t->kind == TENSOR_SCALAR ? CARG_VALUE : CARG_DATA;
		put_arg(x, (CArg){kind, NULL, t->dtype, t->kind == TENSOR_INPUT, true, word++}, t->name);
	}
	for (uint32_t k = 0; k < g->result.n; k++) {
		const Result *r = &g->result.at[k];
		if (!r->inout)
			put_arg(x, (CArg){CARG_DATA, NULL, g->tensor.at[r->tensor].dtype, false, true, word++}, r->name);
	}
	put_dims(x);
	CArg workspace = {.kind = CARG_WORKSPACE, .name = free_name(x, "workspace")};
	vec_push(x->arena, &x->out->call, workspace);
	x->out->stream = (CArg){.kind = CARG_STREAM, .name = free_name(x, "stream")};
	x->out->nword = word;
	x->out->ndim = g->dim.n - 1;
}

/* Where the graph is defined; nothing for one that has no source. */
static const char *
where(Arena *a, const Graph *g)
{
	return g->at.line ? arena_text(a, "line %u: ", g->at.line) : "";
}

bool
c_signature(Arena *a, const Program *const *const *program, uint32_t nlevel, uint32_t p, CSignature *out,
            const char **why)
{
	const Graph *g = program[0][p]->graph;
	Signature x = {.arena = a, .g = g, .out = out};
	*out = (CSignature){.graph = g, .name = name_text(g->names, g->name), .json = signature_json(a, g)};
	if (is_reserved(out->name, true)) {
		*why = arena_text(a, "%sno C function can be called '%s'; give the graph another name", where(a, g), out->name);
		return false;
	}
	x.seen = ARENA_ARRAY(a, bool, g->dim.n);
	x.read = ARENA_ARRAY(a, bool, g->tensor.n);
	for (uint32_t n = 0; n < nlevel; n++)
		find_size_reads(&x, program[n][p]);
	order_dims(&x);
	put_args(&x);
	return true;
}

const CEnding *
c_endings(void)
{
	static const CEnding ending[] = {
		{"", true, false},           {"_cuda", false, true},    {"_cuda_status", false, true}, {"_dl", true, true},
		{"_workspace", true, true}, {"_signature_json", true, true}, {NULL, false, false},
	};
	return ending;
}

bool
c_names_differ(Arena *a, const CSignature *s, uint32_t n, const char **why)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < n; j++)
			for (const CEnding *e = c_endings(); e->ending; e++)
				if (*e->ending && strcmp(s[j].name, arena_text(a, "%s%s", s[i].name, e->ending)) == 0) {
					*why = arena_text(a, "%sthe graph %s has the name of a function of the graph %s; give it another",
					                  where(a, s[j].graph), s[j].name, s[i].name);
					return false;
				}
	return true;
}
