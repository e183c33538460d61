/* run_interp.c: --device=interp, and the other side of every comparison: the evaluator. */
#include "driver/results.h"

#include <string.h>

bool
results_prepare(Session *s, const Binding *b, Results *out)
{
	const Graph *g = b->graph;
	*out = (Results){.at = ARENA_ARRAY(&s->arena, ResultTensor, g->result.n + 1), .n = g->result.n};
	for (uint32_t i = 0; i < g->result.n; i++) {
		const Result *r = &g->result.at[i];
		const Tensor *t = &g->tensor.at[r->inout ? r->inout : r->tensor];
		ResultTensor *to = &out->at[i];
		to->name = name_text(g->names, r->name);
		to->dtype = t->dtype;
		to->rank = t->rank;
		for (unsigned k = 0; k < t->rank; k++) {
			if (!launch_value(&b->env, t->extent[k], &to->shape[k]))
				return problem(&s->problem, EXIT_INPUT, "the length of axis %u of %s is not known", k, to->name);
			if (to->shape[k] < 0) /* an empty range */
				to->shape[k] = 0;
		}
		if (!shape_count(to->dtype, to->rank, to->shape, &to->count, &to->bytes))
			return problem(&s->problem, EXIT_INPUT, "%s of shape %s is larger than any memory", to->name,
			               shape_text(&s->arena, to->rank, to->shape));
	}
	return true;
}

static void
report_check(Session *s, const Graph *g, uint32_t k, Diags *diags, DiagCode *failed)
{
	const Check *c = &g->check.at[k];
	*failed = c->code;
	Diag *d = diag_add(diags, c->code, c->at, "this does not hold for these inputs: %s", c->text);
	d->label = arena_text(&s->arena, "checked at launch");
}

static void
report_access(Session *s, const Graph *g, AccessId id, Diags *diags, DiagCode *failed)
{
	const Access *a = &g->access.at[id];
	*failed = DIAG_E0790;
	Diag *d = diag_add(diags, DIAG_E0790, a->at, "`%s` is outside its tensor for these inputs", a->text);
	d->help = arena_text(&s->arena, "`?[` makes the access optional");
}

bool
run_oracle(Session *s, const Binding *b, Diags *diags, EvalOutputs *out, DiagCode *failed)
{
	const Graph *g = b->graph;
	const void **data = ARENA_ARRAY(&s->arena, const void *, b->nparam + 1);
	const int64_t **shape = ARENA_ARRAY(&s->arena, const int64_t *, b->nparam + 1);
	for (uint32_t k = 0; k < b->nparam; k++) {
		data[k] = b->param[k].data;
		shape[k] = b->param[k].shape;
	}
	EvalInputs in = {.data = data, .shape = shape};
	*failed = DIAG_NONE;
	switch (graph_eval(g, &s->data, &in, 0, out)) {
	case EVAL_OK:
		if (out->fault)
			report_access(s, g, out->fault, diags, failed);
		else if (out->cut)
			diag_add(diags, DIAG_W0791, g->access.at[out->cut].at, "the range `%s` was cut for these inputs",
			         g->access.at[out->cut].text);
		return true;
	case EVAL_CHECK_FAILED:
		report_check(s, g, out->failed, diags, failed);
		return true;
	case EVAL_BAD_INPUT:
		return problem(&s->problem, EXIT_INPUT, "%s", out->message);
	case EVAL_TOO_LARGE:
		return problem(&s->problem, EXIT_INPUT, "too much for the evaluator: %s", out->message);
	}
	return false;
}

bool
results_of_oracle(Session *s, const Binding *b, const EvalOutputs *values, Results *out)
{
	if (!results_prepare(s, b, out))
		return false;
	for (uint32_t i = 0; i < out->n; i++) {
		ResultTensor *r = &out->at[i];
		r->data = tensor_memory(&s->data, &s->subject, &s->arena, r->name, r->rank, r->shape, r->bytes + 16);
		for (int64_t n = 0; n < r->count; n++)
			eval_store(r->dtype, r->data, n, values->result[i].at[n]);
	}
	return true;
}
