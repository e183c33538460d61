/* binding.c: see binding.h. The order: names, files' headers, shapes that are given, dims they
 * give, sizes for the rest, a check of every shape, then data. */
#include "driver/binding.h"
#include "driver/near.h"
#include "driver/npy.h"
#include "driver/npy_cast.h"
#include "driver/random_fill.h"
#include "ir/eval.h"
#include "ir/gpu_facts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct {
	const Graph *graph;
	const BindOptions *o;
	Binding *out;
	Problem *problem;
	bool *has_shape;  /* by parameter */
	NpyFile *file;    /* by parameter: open while fd > 0 or "-" */
	Npy *npy;
	bool *open;
} Bind;

bool
shape_count(DType t, unsigned rank, const int64_t *shape, int64_t *count, int64_t *bytes)
{
	*count = 1;
	for (unsigned k = 0; k < rank; k++)
		if (shape[k] < 0 || __builtin_mul_overflow(*count, shape[k], count))
			return false;
	return dtype_bytes(t, *count, bytes);
}

const char *
shape_text(Arena *a, unsigned rank, const int64_t *shape)
{
	const char *s = "[";
	for (unsigned k = 0; k < rank; k++)
		s = arena_text(a, "%s%s%lld", s, k ? ", " : "", (long long)shape[k]);
	return arena_text(a, "%s]", s);
}

static const Tensor *
param_tensor(const Graph *g, uint32_t k)
{
	return &g->tensor.at[g->param.at[k]];
}

static bool
unknown_name(Bind *s, const char *name)
{
	const Graph *g = s->graph;
	Near near = {.word = name};
	for (uint32_t k = 0; k < g->param.n; k++)
		near_offer(&near, name_text(g->names, param_tensor(g, k)->name));
	for (DimId d = 1; d < g->dim.n; d++)
		near_offer(&near, name_text(g->names, g->dim.at[d].name));
	problem(s->problem, EXIT_USAGE, "graph %s has no input, scalar or dim '%s'", name_text(g->names, g->name), name);
	const char *mend = near_or_all(&near, s->o->arena, "its inputs and dims are");
	return mend ? problem_help(s->problem, "%s", mend) : false;
}

static bool
bind_dim(Bind *s, DimId d, const InputSpec *spec)
{
	LaunchEnv *env = &s->out->env;
	const LiteralItem *v = spec->literal.item.at;
	if (spec->kind != INPUT_LITERAL || spec->literal.rank || v->kind != LITERAL_INT || v->negative || v->u > INT64_MAX)
		return problem(s->problem, EXIT_INPUT, "the dim %s takes a whole number, such as %s=16", spec->name, spec->name);
	if (env->dim_known[d] && env->dim[d] != (int64_t)v->u)
		return problem(s->problem, EXIT_INPUT, "the dim %s is %lld and can't be %lld as well", spec->name,
		               (long long)env->dim[d], (long long)v->u);
	env->dim[d] = (int64_t)v->u;
	env->dim_known[d] = true;
	return true;
}

static bool
match_names(Bind *s, InputSpec *spec, uint32_t nspec)
{
	const Graph *g = s->graph;
	for (uint32_t i = 0; i < nspec; i++) {
		bool found = false;
		for (uint32_t k = 0; k < g->param.n && !found; k++) {
			if (strcmp(name_text(g->names, param_tensor(g, k)->name), spec[i].name) != 0)
				continue;
			found = true;
			if (s->out->param[k].spec)
				return problem(s->problem, EXIT_USAGE, "%s is given twice", spec[i].name);
			s->out->param[k].spec = &spec[i];
		}
		for (DimId d = 1; d < g->dim.n && !found; d++)
			if (strcmp(name_text(g->names, g->dim.at[d].name), spec[i].name) == 0) {
				found = true;
				if (!bind_dim(s, d, &spec[i]))
					return false;
			}
		if (!found)
			return unknown_name(s, spec[i].name);
		spec[i].used = true;
	}
	return true;
}

/* The signature contradicts what is given for a parameter. */
__attribute__((format(printf, 3, 4))) static bool
contradicts(Bind *s, const Tensor *t, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	problem(s->problem, EXIT_INPUT, "%s", text);
	diag_add(s->o->diags, DIAG_E0708, t->at, "%s", text);
	s->problem->diags = s->o->diags;
	return false;
}

static bool
wrong_rank(Bind *s, uint32_t k, const char *what, unsigned rank)
{
	const BoundParam *b = &s->out->param[k];
	return contradicts(s, param_tensor(s->graph, k), "%s has %u %s, but %s has %u", what, rank, rank == 1 ? "axis" : "axes",
	                   b->spec->name, b->rank);
}

/* The header of the file, and the shape it gives. */
static bool
open_file(Bind *s, uint32_t k)
{
	BoundParam *b = &s->out->param[k];
	Npy *npy = &s->npy[k];
	unsigned rank;
	int64_t shape[NPY_MAX_RANK];
	if (param_tensor(s->graph, k)->kind == TENSOR_SCALAR)
		return problem(s->problem, EXIT_INPUT, "%s is a scalar: give its value, as in %s=2", b->spec->name,
		               b->spec->name);
	if (!npy_open(s->o->files, b->spec->path, &s->file[k], npy, s->o->arena, s->problem))
		return false;
	s->open[k] = true;
	bool holds = npy_holds(npy, b->dtype);
	if (!holds && !(s->o->cast && npy_can_cast(npy, b->dtype))) {
		problem(s->problem, EXIT_INPUT, "%s holds '%s', but %s is %s, which travels as '%s'", b->spec->path, npy->descr,
		        b->spec->name, dtype_info[b->dtype].text, dtype_info[b->dtype].npy);
		if (npy_can_cast(npy, b->dtype))
			return problem_help(s->problem, "--cast converts it");
		return problem_help(s->problem, "save an array of that type, as x.astype('%s') makes it of x",
		                    dtype_info[b->dtype].npy);
	}
	if (!holds) {
		rank = npy->rank;
		memcpy(shape, npy->shape, sizeof shape);
	} else if (!npy_shape(npy, b->dtype, &rank, shape)) {
		return problem(s->problem, EXIT_INPUT, "%s holds %s two to a byte and so needs an axis", b->spec->path,
		               dtype_info[b->dtype].text);
	}
	if (rank != b->rank)
		return wrong_rank(s, k, b->spec->path, rank);
	memcpy(b->shape, shape, sizeof b->shape);
	s->has_shape[k] = true;
	return true;
}

static bool
written_shape(Bind *s, uint32_t k)
{
	BoundParam *b = &s->out->param[k];
	const InputSpec *spec = b->spec;
	if (spec->dtype && spec->dtype != b->dtype)
		return problem(s->problem, EXIT_INPUT, "%s is %s, not %s", spec->name, dtype_info[b->dtype].text,
		               dtype_info[spec->dtype].text);
	bool literal = spec->kind == INPUT_LITERAL;
	if (!literal && !spec->has_shape)
		return true;
	unsigned rank = literal ? spec->literal.rank : spec->rank;
	const int64_t *shape = literal ? spec->literal.shape : spec->shape;
	if (literal && spec->has_shape && (spec->rank != rank || memcmp(spec->shape, shape, rank * sizeof *shape)))
		return problem(s->problem, EXIT_INPUT, "the literal of %s has shape %s, not %s", spec->name,
		               shape_text(s->o->arena, rank, shape), shape_text(s->o->arena, spec->rank, spec->shape));
	if (rank != b->rank)
		return wrong_rank(s, k, arena_text(s->o->arena, "the value of %s", spec->name), rank);
	memcpy(b->shape, shape, sizeof b->shape);
	s->has_shape[k] = true;
	return true;
}

/* An integer scalar's value takes part in extents and facts, so it is read early. */
static bool
known_scalar(Bind *s, uint32_t k)
{
	BoundParam *b = &s->out->param[k];
	TensorId t = s->graph->param.at[k];
	bool integer = dtype_is_int(b->dtype) || b->dtype == DT_BOOL;
	bool literal = b->spec->kind == INPUT_LITERAL;
	const char *error;
	if (b->rank != 0 || !literal)
		return true;
	if (b->spec->literal.rank != 0)
		return problem(s->problem, EXIT_INPUT, "%s is a scalar", b->spec->name);
	b->data = arena_alloc(s->o->data, 16);
	if (!literal_pack(s->o->arena, &b->spec->literal, b->dtype, b->data, &error))
		return problem(s->problem, EXIT_INPUT, "%s: %s", b->spec->name, error);
	if (!integer)
		return true;
	s->out->env.scalar[t] = eval_load(b->dtype, b->data, 0).i;
	s->out->env.scalar_known[t] = true;
	return true;
}

/* The axis of a given shape that the program's extents contradict. */
static bool
shape_differs(Bind *s, uint32_t k, unsigned axis)
{
	const Graph *g = s->graph;
	const LaunchEnv *env = &s->out->env;
	const BoundParam *b = &s->out->param[k];
	const char *dims = "";
	int64_t want;
	for (DimId d = 1; d < g->dim.n; d++)
		if (env->dim_known[d])
			dims = arena_text(s->o->arena, "%s%s%s = %lld", dims, *dims ? ", " : " with ",
			                  name_text(g->names, g->dim.at[d].name), (long long)env->dim[d]);
	if (!launch_value(env, param_tensor(g, k)->extent[axis], &want))
		return contradicts(s, param_tensor(g, k), "axis %u of %s can't have length %lld", axis, b->spec->name,
		                   (long long)b->shape[axis]);
	return contradicts(s, param_tensor(g, k), "axis %u of %s has length %lld, but the graph makes it %lld%s", axis,
	                   b->spec->name, (long long)b->shape[axis], (long long)want, dims);
}

/* Dims from fixed values, scalars and given shapes, again until nothing new is learnt. */
static bool
solve_dims(Bind *s)
{
	const Graph *g = s->graph;
	LaunchEnv *env = &s->out->env;
	for (DimId d = 1; d < g->dim.n; d++) {
		const Dim *dim = &g->dim.at[d];
		TensorId t = !dim->fixed && dim->axis == -1 && dim->param >= 0 ? g->param.at[dim->param] : 0;
		if (t && env->scalar_known[t] && env->scalar[t] < 0)
			return contradicts(s, &g->tensor.at[t], "the dim %s is %lld, and a dim is at least 0",
			                   name_text(g->names, dim->name), (long long)env->scalar[t]);
		if (t && env->scalar_known[t]) {
			env->dim[d] = env->scalar[t];
			env->dim_known[d] = true;
		}
	}
	for (uint32_t round = 0; round <= g->dim.n; round++)
		for (uint32_t k = 0; k < g->param.n; k++)
			for (unsigned a = 0; s->has_shape[k] && a < s->out->param[k].rank; a++)
				if (!sizes_solve_axis(env, param_tensor(g, k)->extent[a], s->out->param[k].shape[a]))
					return shape_differs(s, k, a);
	return true;
}

static bool
settle_shapes(Bind *s)
{
	const Graph *g = s->graph;
	for (uint32_t k = 0; k < g->param.n; k++) {
		BoundParam *b = &s->out->param[k];
		for (unsigned a = 0; a < b->rank; a++) {
			int64_t n;
			if (!launch_value(&s->out->env, param_tensor(g, k)->extent[a], &n))
				return problem(s->problem, EXIT_INPUT, "the length of axis %u of %s is not known", a, b->spec->name);
			if (s->has_shape[k] && n != b->shape[a])
				return shape_differs(s, k, a);
			if (n < 0)
				return contradicts(s, param_tensor(g, k), "axis %u of %s would have length %lld", a, b->spec->name,
				                   (long long)n);
			b->shape[a] = n;
		}
		if (dtype_info[b->dtype].bits == 4 && b->rank && b->shape[b->rank - 1] % 2)
			return problem(s->problem, EXIT_INPUT, "%s holds %s two to a byte, so its last axis must be even, not %lld",
			               b->spec->name, dtype_info[b->dtype].text, (long long)b->shape[b->rank - 1]);
		if (!shape_count(b->dtype, b->rank, b->shape, &b->count, &b->bytes))
			return problem(s->problem, EXIT_INPUT, "%s of shape %s is larger than any memory", b->spec->name,
			               shape_text(s->o->arena, b->rank, b->shape));
	}
	return true;
}

void *
tensor_memory(Arena *data, const char **subject, Arena *a, const char *name, unsigned rank, const int64_t *shape, int64_t n)
{
	const char *before = subject ? *subject : NULL;
	if (subject)
		*subject = arena_text(a, "%s of shape %s", name, shape_text(a, rank, shape));
	void *at = arena_alloc(data, (size_t)n);
	if (subject)
		*subject = before;
	return at;
}

static bool
read_file(Bind *s, uint32_t k)
{
	BoundParam *b = &s->out->param[k];
	Npy *npy = &s->npy[k];
	s->open[k] = false;
	if (!npy_read_data(&s->file[k], npy, s->o->data, s->problem))
		return false;
	if (npy_holds(npy, b->dtype)) {
		b->data = (void *)npy->data; /* ours: the arena's, read for this */
		return true;
	}
	b->data = tensor_memory(s->o->data, s->o->subject, s->o->arena, b->spec->name, b->rank, b->shape, b->bytes);
	return npy_cast(npy, b->dtype, b->data, b->spec->path, s->problem);
}

static bool
make_data(Bind *s, uint32_t k)
{
	BoundParam *b = &s->out->param[k];
	TensorId t = s->graph->param.at[k];
	LaunchEnv *env = &s->out->env;
	const char *error;
	if (b->spec->kind == INPUT_FILE)
		return read_file(s, k);
	if (b->data)
		return true;
	b->data = tensor_memory(s->o->data, s->o->subject, s->o->arena, b->spec->name, b->rank, b->shape, b->bytes + 16);
	if (b->spec->kind == INPUT_LITERAL)
		return literal_pack(s->o->arena, &b->spec->literal, b->dtype, b->data, &error) ||
		       problem(s->problem, EXIT_INPUT, "%s: %s", b->spec->name, error);
	if (b->rank == 0 && env->scalar_known[t]) {
		eval_store(b->dtype, b->data, 0, (EvalValue){.i = env->scalar[t]});
		return true;
	}
	ValueRange range = {0, 1, false, 0};
	if (dtype_is_int(b->dtype))
		range = subscript_range(env, s->o->arena, t);
	random_fill(b->spec, b->dtype, b->rank, b->shape, b->count, &range, b->data);
	return true;
}

static bool
bind_all(Bind *s, InputSpec *spec, uint32_t nspec)
{
	const Graph *g = s->graph;
	if (!match_names(s, spec, nspec))
		return false;
	for (uint32_t k = 0; k < g->param.n; k++) {
		BoundParam *b = &s->out->param[k];
		if (!b->spec) {
			InputSpec *by_default = ARENA_NEW(s->o->arena, InputSpec);
			by_default->name = name_text(g->names, param_tensor(g, k)->name);
			b->spec = by_default;
		}
		b->dtype = param_tensor(g, k)->dtype;
		b->rank = param_tensor(g, k)->rank;
		if (!(b->spec->kind == INPUT_FILE ? open_file(s, k) : written_shape(s, k) && known_scalar(s, k)))
			return false;
	}
	if (!solve_dims(s) || !sizes_choose(&s->out->env, s->o->hints, s->o->arena, &s->out->chosen, s->problem) ||
	    !settle_shapes(s))
		return false;
	for (uint32_t k = 0; k < g->param.n && !s->o->shapes_only; k++)
		if (!make_data(s, k))
			return false;
	return true;
}

bool
bind_inputs(const Graph *g, InputSpec *spec, uint32_t nspec, const BindOptions *o, Binding *out, Problem *p)
{
	Bind s = {.graph = g, .o = o, .out = out, .problem = p};
	uint32_t n = g->param.n + 1;
	*out = (Binding){.graph = g, .nparam = g->param.n, .param = ARENA_ARRAY(o->arena, BoundParam, n)};
	launch_env_init(&out->env, g, o->arena);
	s.has_shape = ARENA_ARRAY(o->arena, bool, n);
	s.open = ARENA_ARRAY(o->arena, bool, n);
	s.file = ARENA_ARRAY(o->arena, NpyFile, n);
	s.npy = ARENA_ARRAY(o->arena, Npy, n);
	for (DimId d = 1; d < g->dim.n; d++)
		if (g->dim.at[d].fixed) {
			out->env.dim[d] = g->dim.at[d].value;
			out->env.dim_known[d] = true;
		}
	bool ok = bind_all(&s, spec, nspec);
	for (uint32_t k = 0; k < g->param.n; k++)
		if (s.open[k])
			npy_close(&s.file[k]);
	return ok;
}

const char *
binding_chosen_text(const Binding *b, Arena *a)
{
	const Graph *g = b->graph;
	const char *s = NULL;
	for (DimId d = 1; d < g->dim.n && dim_is_users(g, d); d++)
		if (b->chosen.dim[d])
			s = arena_text(a, "%s%s%s = %lld", s ? s : "", s ? ", " : "", name_text(g->names, g->dim.at[d].name),
			               (long long)b->env.dim[d]);
	for (TensorId t = 1; t < g->tensor.n; t++)
		if (b->chosen.scalar[t])
			s = arena_text(a, "%s%s%s = %lld", s ? s : "", s ? ", " : "", name_text(g->names, g->tensor.at[t].name),
			               (long long)b->env.scalar[t]);
	return s;
}

const char *
binding_dims_text(const Binding *b, Arena *a, bool mark)
{
	const Graph *g = b->graph;
	const char *s = "";
	for (DimId d = 1; d < g->dim.n && dim_is_users(g, d); d++)
		s = arena_text(a, "%s, %s = %lld%s", s, name_text(g->names, g->dim.at[d].name), (long long)b->env.dim[d],
		               mark && b->chosen.dim[d] ? " (chosen)" : "");
	return s;
}

void
binding_dims_json(const Binding *b, Text *out)
{
	const Graph *g = b->graph;
	for (DimId d = 1; d < g->dim.n && dim_is_users(g, d); d++)
		text_printf(out, "%s\"%s\":%lld", d > 1 ? "," : "{", name_text(g->names, g->dim.at[d].name),
		            (long long)b->env.dim[d]);
	text_printf(out, g->dim.n > 1 && dim_is_users(g, 1) ? "}" : "{}");
}
