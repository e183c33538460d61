/* eval.c: the oracle's entry: binds dims to the inputs' shapes, checks them and the launch's
 * conditions, evaluates the nodes, hands out the results. */
#include <fenv.h>

#include "ir/eval_run.h"

static const int64_t default_max_values = INT64_C(1) << 32;

typedef struct {
	Run run;
	EvalOutputs *out;
} Launch;

static const char *
tensor_name(const Graph *g, TensorId t)
{
	return name_text(g->names, g->tensor.at[t].name);
}

static EvalStatus
bad_input(Launch *l, const char *message)
{
	l->out->message = message;
	return EVAL_BAD_INPUT;
}

/* --- dims --- */

/* The value that makes an extent linear in the dim what the argument has. */
static EvalStatus
solve_dim(Launch *l, DimId id)
{
	Run *r = &l->run;
	const Dim *d = &r->g->dim.at[id];
	const char *name = name_text(r->g->names, d->name);
	TensorId t = r->g->param.at[d->param];
	ExprId e = r->g->tensor.at[t].extent[d->axis];
	int64_t extent = r->in->shape[d->param][d->axis], step, rest;
	r->dim[id] = 0;
	int64_t none = run_integer(r, e);
	r->dim[id] = 1;
	bool fits = !__builtin_sub_overflow(run_integer(r, e), none, &step) && step != 0 &&
	            !__builtin_sub_overflow(extent, none, &rest) && !(step == -1 && rest == INT64_MIN);
	if (!fits || rest % step != 0 || rest / step < 0)
		return bad_input(l, arena_text(r->arena, "parameter %s: axis %d has extent %lld, which does not say what %s is",
		                               tensor_name(r->g, t), (int)d->axis, (long long)extent, name));
	r->dim[id] = rest / step;
	return EVAL_OK;
}

static EvalStatus
bind_dim(Launch *l, DimId id)
{
	Run *r = &l->run;
	const Dim *d = &r->g->dim.at[id];
	const char *name = name_text(r->g->names, d->name);
	if (d->fixed) {
		r->dim[id] = d->value;
		return EVAL_OK;
	}
	if (d->param < 0 || (uint32_t)d->param >= r->g->param.n)
		bug(r->arena, "eval: dim %s has no source", name);
	TensorId t = r->g->param.at[d->param];
	if (d->axis < 0) {
		Val v;
		number_load(r->g->tensor.at[t].dtype, r->in->data[d->param], 0, &v);
		if (v.i < 0)
			return bad_input(l, arena_text(r->arena, "the dim %s is %lld", name, (long long)v.i));
		r->dim[id] = v.i;
		return EVAL_OK;
	}
	if (d->turn)
		return solve_dim(l, id);
	int64_t extent = r->in->shape[d->param][d->axis], rest;
	bool fits = d->scale != 0 && !__builtin_sub_overflow(extent, d->offset, &rest) && rest % d->scale == 0 &&
	            !(d->scale == -1 && rest == INT64_MIN);
	if (!fits || rest / d->scale < 0)
		return bad_input(l, arena_text(r->arena,
			"parameter %s: axis %d has extent %lld, which is not %lld*%s + %lld for any %s >= 0",
			tensor_name(r->g, t), (int)d->axis, (long long)extent, (long long)d->scale, name,
			(long long)d->offset, name));
	r->dim[id] = rest / d->scale;
	return EVAL_OK;
}

static EvalStatus
bind_dims(Launch *l)
{
	EvalStatus s = EVAL_OK;
	uint32_t n = l->run.g->dim.n;
	for (uint32_t turn = 0; turn < n; turn++)
		for (DimId d = 1; d < n && s == EVAL_OK; d++)
			if (l->run.g->dim.at[d].turn == turn)
				s = bind_dim(l, d);
	return s;
}

/* --- parameters --- */

static EvalStatus
check_param(Launch *l, uint32_t k)
{
	Run *r = &l->run;
	TensorId t = r->g->param.at[k];
	RunTensor *x = &r->tensor[t];
	run_extents(r, t);
	if (r->too_large)
		return EVAL_TOO_LARGE;
	for (unsigned a = 0; a < x->rank; a++)
		if (x->extent[a] != r->in->shape[k][a])
			return bad_input(l, arena_text(r->arena,
				"parameter %s: axis %u has extent %lld where the graph has %lld",
				tensor_name(r->g, t), a, (long long)r->in->shape[k][a], (long long)x->extent[a]));
	if (!x->packed && x->count > 0)
		return bad_input(l, arena_text(r->arena, "parameter %s has no data", tensor_name(r->g, t)));
	return EVAL_OK;
}

/* Data first, as extents may read rank-0 parameters. */
static EvalStatus
bind_params(Launch *l)
{
	Run *r = &l->run;
	const Graph *g = r->g;
	EvalStatus s = EVAL_OK;
	for (uint32_t k = 0; k < g->param.n; k++) {
		TensorId t = g->param.at[k];
		r->tensor[t].packed = r->in->data[k];
		r->tensor[t].rank = g->tensor.at[t].rank;
		bool lacks = g->tensor.at[t].rank == 0 ? !r->in->data[k] : !r->in->shape[k];
		if (lacks)
			return bad_input(l, arena_text(r->arena, "parameter %s has no %s", tensor_name(g, t),
			                               g->tensor.at[t].rank ? "shape" : "data"));
	}
	s = bind_dims(l);
	for (uint32_t k = 0; k < g->param.n && s == EVAL_OK; k++)
		s = check_param(l, k);
	return s;
}

static EvalStatus
check_facts(Launch *l)
{
	Run *r = &l->run;
	for (uint32_t k = 0; k < r->g->check.n; k++) {
		int64_t holds;
		if (run_exact(r, r->g->check.at[k].cond, &holds) && holds)
			continue;
		l->out->failed = k;
		l->out->message = arena_text(r->arena, "the check %s does not hold", r->g->check.at[k].text);
		return EVAL_CHECK_FAILED;
	}
	return EVAL_OK;
}

/* --- results --- */

static double
widen(double err, long double exact, double given)
{
	if (isfinite(exact) && exact != given)
		err = (err + (double)fabsl(exact - given)) * (1 + 0x1p-40);
	return err;
}

/* Both parts as a store sees them: a double, and a bound that covers what that took. */
static EvalValue
hand_out(DType t, Val v)
{
	v = val_hard(v);
	bool parts = dtype_info[t].kind == KIND_FLOAT || dtype_info[t].kind == KIND_COMPLEX;
	bool ambiguous = v.err + v.ierr > 0 && (v.ambiguous || !parts);
	EvalValue r = {.re = (double)v.re, .im = (double)v.im, .err = v.err, .ierr = v.ierr, .i = v.i,
	               .fault = v.fault, .cut = v.cut, .ambiguous = ambiguous, .skip = v.skip};
	r.err = widen(v.err, v.re, r.re);
	r.ierr = widen(v.ierr, v.im, r.im);
	return r;
}

static void
copy_result(Launch *l, uint32_t k)
{
	Run *r = &l->run;
	const Graph *g = r->g;
	TensorId t = g->result.at[k].tensor;
	const RunTensor *x = &r->tensor[t];
	EvalTensor *out = &l->out->result[k];
	out->dtype = g->tensor.at[t].dtype;
	out->rank = x->rank;
	for (unsigned a = 0; a < x->rank; a++)
		out->extent[a] = x->extent[a];
	out->count = x->count;
	out->at = ARENA_ARRAY(r->arena, EvalValue, (size_t)x->count);
	for (int64_t n = 0; n < x->count; n++) {
		Val v;
		if (x->at)
			v = x->at[n];
		else
			number_load(out->dtype, x->packed, n, &v);
		if (v.absent && !v.skip && !v.fault)
			bug(r->arena, "eval: element %lld of result %s is absent", (long long)n,
			    name_text(g->names, g->result.at[k].name));
		if (v.absent && v.fault) {
			AccessId fault = v.fault;
			v = val_unknown();
			v.fault = fault;
		}
		out->at[n] = hand_out(out->dtype, v);
		if (!l->out->fault && !v.skip)
			l->out->fault = v.fault;
		if (!l->out->cut && !v.skip)
			l->out->cut = v.cut;
	}
}

static void
copy_results(Launch *l)
{
	Run *r = &l->run;
	l->out->result = ARENA_ARRAY(r->arena, EvalTensor, r->g->result.n);
	for (uint32_t k = 0; k < r->g->result.n; k++)
		copy_result(l, k);
	if (!l->out->fault)
		l->out->fault = r->fault;
	if (!l->out->cut)
		l->out->cut = r->cut;
}

static EvalStatus
launch_run(Launch *l)
{
	Run *r = &l->run;
	EvalStatus s = bind_params(l);
	if (s == EVAL_OK)
		s = check_facts(l);
	if (s == EVAL_OK)
		run_nodes(r);
	if (r->too_large) {
		l->out->message = arena_text(r->arena, "the evaluation takes more than %lld values",
		                             (long long)r->max_values);
		return EVAL_TOO_LARGE;
	}
	if (s == EVAL_OK)
		copy_results(l);
	return s;
}

EvalStatus
graph_eval(const Graph *g, Arena *a, const EvalInputs *in, int64_t max_values, EvalOutputs *out)
{
	*out = (EvalOutputs){0};
	Launch l = {.out = out};
	Run *r = &l.run;
	r->g = g;
	r->arena = a;
	r->in = in;
	r->tensor = ARENA_ARRAY(a, RunTensor, g->tensor.n);
	r->dim = out->dim = ARENA_ARRAY(a, int64_t, g->dim.n);
	r->failing = out->failing = ARENA_ARRAY(a, bool, g->access.n);
	r->slot = ARENA_ARRAY(a, uint32_t, g->expr.n);
	r->max_values = max_values > 0 ? max_values : default_max_values;
	r->clock = r->epoch[0] = RUN_CONSTANT;
	int rounding = fegetround();
	fesetround(FE_TONEAREST);
	EvalStatus s = launch_run(&l);
	fesetround(rounding);
	return s;
}
