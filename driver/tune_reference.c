/* tune_reference.c: what results must be.
 *
 * The evaluator says it of every element, with a bound, where that takes no more than ALL_TERMS. Else of SAMPLES elements
 * of each result: a result's definition, and those that it reads at its own point, are evaluated at these points alone. So
 * a large product is checked at its own size, by its own kernel. What is left that takes too long is refused: sizes at which
 * nothing can be checked are not tuned. */
#include "driver/tune.h"

#include <string.h>

enum { SAMPLES = 256 };
static const int64_t ALL_TERMS = (int64_t)1 << 20, SAMPLE_TERMS = (int64_t)1 << 22;

/* --- some elements --- */

typedef struct {
	Graph *g;
	Arena *arena;
	unsigned rank;
	TensorId index[TG_MAX_RANK];   /* inputs: the points' coordinates */
	ExprId at[TG_MAX_RANK];        /* those of point AXIS 0 */
	TensorId *made;                /* by tensor: its elements at these points, or 0 */
} Points;

static TensorId at_points(Points *p, TensorId t);

static bool
can_be_at_points(const Graph *g, TensorId t, unsigned rank)
{
	const Node *n = tensor_node(g, t);
	return n && !n->scatter && !n->recur && n->npar == rank;
}

/* Axes become those at the points; a tensor that is read there is one of them too. */
static ExprId
leaf(void *user, Graph *g, ExprId e)
{
	Points *p = user;
	const Expr x = *expr_get(g, e);
	if (x.op == OP_AXIS)
		return x.ref < p->rank ? p->at[x.ref] : expr_axis(g, x.ref - p->rank + 1);
	if (x.op != OP_READ || x.narg != p->rank || !can_be_at_points(g, x.ref, p->rank))
		return e;
	for (unsigned a = 0; a < p->rank; a++)
		if (expr_arg(g, e, a) != p->at[a])
			return e;
	TensorId t = at_points(p, x.ref);
	ExprId point = expr_axis(g, 0);
	return expr_read(g, t, &point, 1, 0);
}

static ExprId
moved(Points *p, ExprId e)
{
	return e ? expr_rewrite(p->g, e, leaf, p) : 0;
}

static TensorId
at_points(Points *p, TensorId t)
{
	Graph *g = p->g;
	if (p->made[t])
		return p->made[t];
	Node n = *tensor_node(g, t), to = n;
	ExprId count = expr_int(g, DT_I64, SAMPLES);
	to.npar = 1;
	to.domain = moved(p, n.domain);
	to.guard = moved(p, n.guard);
	to.body = moved(p, n.body);
	to.finish = moved(p, n.finish);
	for (unsigned a = 0; a < n.nred; a++) {
		Axis x = n.axis[n.npar + a];
		x.lo = moved(p, x.lo);
		x.hi = moved(p, x.hi);
		x.clamp = moved(p, x.clamp);
		to.axis[1 + a] = x;
	}
	const Tensor out = g->tensor.at[t];
	TensorId made = node_add(g, &to, out.name, out.at, out.dtype, &count);
	p->made[t] = made;
	return made;
}

/* The points of result k: the first and the last element, and others anywhere. */
static int64_t *
choose_points(Arena *a, uint32_t k, int64_t count)
{
	int64_t *at = ARENA_ARRAY(a, int64_t, SAMPLES);
	uint64_t state = k + 1;
	for (unsigned n = 0; n < SAMPLES; n++) {
		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		at[n] = n == 0 ? 0 : n == 1 ? count - 1 : (int64_t)((state >> 11) % (uint64_t)count);
	}
	return at;
}

/* The inputs of the graph with what the points are. */
typedef struct {
	VEC(const void *) data;
	VEC(const int64_t *) shape;
} Inputs;

static void
add_index(Points *p, unsigned axis, const int64_t *sample, const ResultTensor *of, Inputs *in)
{
	Graph *g = p->g;
	int64_t *at = ARENA_ARRAY(p->arena, int64_t, SAMPLES), *shape = ARENA_ARRAY(p->arena, int64_t, 1), step = 1;
	for (unsigned a = axis + 1; a < of->rank; a++)
		step *= of->shape[a];
	for (unsigned n = 0; n < SAMPLES; n++)
		at[n] = sample[n] / step % of->shape[axis];
	shape[0] = SAMPLES;
	ExprId count = expr_int(g, DT_I64, SAMPLES), point = expr_axis(g, 0);
	p->index[axis] = tensor_new(g, TENSOR_INPUT, name_cstr(g->names, "points"), g->at, DT_I64, 1, &count);
	vec_push(g->arena, &g->param, p->index[axis]);
	vec_push(p->arena, &in->data, at);
	vec_push(p->arena, &in->shape, shape);
	p->at[axis] = expr_read(g, p->index[axis], &point, 1, 0);
}

static void
take_samples(Graph *g, Arena *a, const Results *shapes, Inputs *in, TuneReference *out)
{
	out->sample = ARENA_ARRAY(a, int64_t *, g->result.n + 1);
	for (uint32_t k = 0; k < g->result.n; k++) {
		const ResultTensor *r = &shapes->at[k];
		TensorId t = g->result.at[k].tensor;
		Points p = {.g = g, .arena = a, .rank = r->rank, .made = ARENA_ARRAY(a, TensorId, g->tensor.n + g->node.n + TG_MAX_RANK)};
		if (r->count <= SAMPLES || r->rank == 0 || !can_be_at_points(g, t, r->rank))
			continue;
		out->sample[k] = choose_points(a, k, r->count);
		for (unsigned axis = 0; axis < r->rank; axis++)
			add_index(&p, axis, out->sample[k], r, in);
		g->result.at[k].tensor = at_points(&p, t);
	}
}

/* --- the evaluation --- */

static EvalStatus
evaluate(Session *s, const Graph *g, const Inputs *in, int64_t most, TuneReference *out)
{
	EvalInputs inputs = {.data = in->data.at, .shape = in->shape.at};
	return graph_eval(g, &s->data, &inputs, most, &out->want);
}

/* What a run would say of these inputs. */
static bool
refuse(Session *s, const Binding *b, Diags *diags, const TuneReference *r, EvalStatus status)
{
	DiagCode failed = DIAG_NONE;
	EvalOutputs again;
	if (status == EVAL_TOO_LARGE) {
		problem(&s->problem, EXIT_INPUT, "too much for the evaluator, which must check what is tuned: %s", r->want.message);
		return problem_help(&s->problem, "tune at smaller sizes; the buckets in the file can be made wider");
	}
	if (status == EVAL_BAD_INPUT)
		return problem(&s->problem, EXIT_INPUT, "%s", r->want.message);
	if (status == EVAL_CHECK_FAILED && !run_oracle(s, b, diags, &again, &failed))
		return false;
	return problem(&s->problem, EXIT_INPUT, "the graph fails on these inputs, so there is nothing to time");
}

bool
tune_reference_make(Session *s, const Binding *b, Graph *again, Diags *diags, TuneReference *out)
{
	Arena *a = &s->arena;
	Inputs in = {0};
	Results shapes;
	*out = (TuneReference){.text = "evaluator"};
	for (uint32_t k = 0; k < b->nparam; k++) {
		vec_push(a, &in.data, b->param[k].data);
		vec_push(a, &in.shape, b->param[k].shape);
	}
	EvalStatus status = evaluate(s, b->graph, &in, ALL_TERMS, out);
	if (status == EVAL_TOO_LARGE) {
		if (!results_prepare(s, b, &shapes))
			return false;
		take_samples(again, a, &shapes, &in, out);
		out->nsample = SAMPLES;
		out->text = arena_text(a, "evaluator, %d elements of each large result", SAMPLES);
		status = evaluate(s, again, &in, SAMPLE_TERMS, out);
	}
	if (status != EVAL_OK || out->want.fault)
		return refuse(s, b, diags, out, status);
	return true;
}

/* --- comparing --- */

bool
tune_reference_agrees(const TuneReference *r, Arena *a, const Results *got, const char **why)
{
	for (uint32_t k = 0; k < got->n; k++) {
		const ResultTensor *x = &got->at[k];
		const int64_t *sample = r->sample ? r->sample[k] : NULL;
		const void *data = x->data;
		EvalCompare c;
		if (sample) {
			void *some = arena_alloc(a, SAMPLES * 16);
			memset(some, 0, SAMPLES * 16);
			for (unsigned n = 0; n < SAMPLES; n++)
				eval_store(x->dtype, some, n, eval_load(x->dtype, x->data, sample[n]));
			data = some;
		}
		eval_compare(&r->want.result[k], data, &c);
		if (c.mismatches == 0)
			continue;
		*why = arena_text(a, "%lld elements of %s differ from the evaluator: got %.9g, want %.9g, bound %.3g", (long long)c.mismatches, x->name,
		                  c.worst_got, c.worst_want, c.worst_bound);
		return false;
	}
	return true;
}
