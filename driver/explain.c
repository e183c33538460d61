/* explain.c: texo explain F: which kernels a graph becomes, what each holds, the bytes with and
 * without sharing kernels, the times that the cost model predicts for one thread, and why each remaining edge
 * between kernels is there. Dims that nothing gives take their hints, else small sizes, and are said. */
#include "driver/compile.h"
#include "driver/explain_code.h"
#include "driver/binding.h"
#include "driver/run_parts.h"
#include "driver/tensor_title.h"
#include "driver/tune_file.h"
#include "ir/launch_expr.h"
#include "passes/cost/predict.h"
#include "passes/schedule/alternatives.h"
#include "passes/schedule/stream/stream.h"
#include "runtime/cuda.h"

#include <stdlib.h>
#include <string.h>

static const UnfusedEdge copied = {0, 0, "result_copied", "is a copy, made when everything has run"};

typedef struct {
	Session *s;
	SourceUnit unit;
	Graph *graph;
	const char *target;
	PassOptions options;
	Machine gpu;
	const Machine *machine; /* NULL: one that the cost model does not know */
	double bytes_unfused, us_unfused;
	Binding binding;
	Program *program;
	UseTable uses;
	const char **title;  /* by tensor */
	uint32_t *kernel_of; /* by tensor: kernel index + 1 */
	double bytes_fused, us_fused;
	Work *work;          /* by kernel */
	Predicted *predicted;
} Explain;

/* What each definition costs as a kernel of its own: before the passes. */
static void
count_unfused(Explain *x, const PassOptions *o)
{
	Graph *g = x->graph;
	UseTable uses;
	use_table_init(&uses, g, &x->s->arena);
	cost_note_panels(&uses, g, graph_may_fault(g, &x->s->arena), o);
	for (uint32_t i = 0; i < g->node.n; i++) {
		TensorId t = g->node.at[i].out;
		Work w = work_count(&x->binding.env, &uses, &t, 1);
		x->bytes_unfused += w.bytes;
		if (x->machine)
			x->us_unfused += cost_alone_us(x->machine, g, t, &w, 1);
	}
}

static void
count_kernels(Explain *x)
{
	const Program *p = x->program;
	Arena *a = &x->s->arena;
	use_table_init(&x->uses, p->graph, a);
	x->title = tensor_titles(&x->uses, x->unit.file, a);
	cost_note_plans(&x->uses, p);
	x->kernel_of = ARENA_ARRAY(a, uint32_t, p->graph->tensor.n);
	x->work = ARENA_ARRAY(a, Work, p->kernel.n + 1);
	x->predicted = ARENA_ARRAY(a, Predicted, p->kernel.n + 1);
	Predict predict = {x->machine, p, &x->binding.env, &x->uses, graph_may_fault(p->graph, a), a, 1};
	for (uint32_t k = 0; k < p->kernel.n; k++) {
		const KernelPlan *kp = &p->kernel.at[k].plan;
		if (kernel_is_spare(&p->kernel.at[k]))
			continue;
		for (unsigned i = 0; i < kp->nnode; i++)
			x->kernel_of[kp->node[i]] = k + 1;
		x->work[k] = work_count(&x->binding.env, &x->uses, kp->node, kp->nnode);
		if (x->machine)
			x->predicted[k] = predict_unit(&predict, k);
		x->bytes_fused += x->work[k].bytes;
		x->us_fused += x->predicted[k].us;
	}
}

/* Calls f for each pair of kernels' nodes that hand a tensor over, once. */
static void
each_edge(Explain *x, void (*f)(Explain *, TensorId from, TensorId to, uint32_t n))
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < x->uses.use.n; i++) {
		TensorUse u = x->uses.use.at[i];
		bool again = false;
		if (!x->kernel_of[u.read] || !x->kernel_of[u.reader] || x->kernel_of[u.read] == x->kernel_of[u.reader])
			continue;
		for (uint32_t j = i; j-- > 0 && x->uses.use.at[j].reader == u.reader;)
			again |= x->uses.use.at[j].read == u.read;
		if (!again)
			f(x, u.read, u.reader, n++);
	}
}

/* Why the two nodes are in different kernels; the schedule said it of each edge but its own copies. */
static const UnfusedEdge *
edge_of(const Explain *x, TensorId from, TensorId to)
{
	const Program *p = x->program;
	for (uint32_t k = 0; k < p->unfused.n; k++)
		if (p->unfused.at[k].from == from && p->unfused.at[k].to == to)
			return &p->unfused.at[k];
	return &copied;
}

/* Without what goes without saying there. */
static const char *
why_apart(const UnfusedEdge *edge)
{
	static const char known[] = "is not fused: ";
	return strncmp(edge->reason, known, sizeof known - 1) == 0 ? edge->reason + sizeof known - 1 : edge->reason;
}

static const char *
size_text(Arena *a, double v, const char *unit)
{
	static const char *const prefix[] = {"", "k", "M", "G", "T"};
	unsigned k = 0;
	for (; v >= 10000 && k < 4; k++)
		v /= 1000;
	return arena_text(a, "%.4g %s%s", v, prefix[k], unit);
}

static void
print_edge(Explain *x, TensorId from, TensorId to, uint32_t n)
{
	if (n == 0)
		text_printf(&x->s->out, "not fused:\n");
	text_printf(&x->s->out, "  %s -> %s", x->title[from], x->title[to]);
	if (x->program->graph->tensor.at[to].name) /* else the title says it */
		text_printf(&x->s->out, " (line %u)", tensor_line(&x->uses, x->unit.file, to));
	text_printf(&x->s->out, ": %s\n", why_apart(edge_of(x, from, to)));
}

/* --- inputs that are read by one kernel after another --- */

typedef struct {
	TensorId input;
	VEC(uint32_t) kernel; /* that read it, in the order they run */
} ReadAgain;

static void
add_kernel(Explain *x, ReadAgain *r, uint32_t kernel)
{
	uint32_t at = r->kernel.n;
	for (uint32_t k = 0; k < r->kernel.n; k++)
		if (r->kernel.at[k] == kernel)
			return;
	vec_push(&x->s->arena, &r->kernel, kernel);
	for (; at > 0 && r->kernel.at[at - 1] > kernel; at--)
		r->kernel.at[at] = r->kernel.at[at - 1];
	r->kernel.at[at] = kernel;
}

/* Of the inputs that several kernels read. */
static void
each_read_again(Explain *x, void (*f)(Explain *, const ReadAgain *, uint32_t n))
{
	const Graph *g = x->program->graph;
	ReadAgain *by = ARENA_ARRAY(&x->s->arena, ReadAgain, g->tensor.n);
	uint32_t n = 0;
	for (uint32_t i = 0; i < x->uses.use.n; i++) {
		TensorUse u = x->uses.use.at[i];
		TensorKind kind = g->tensor.at[u.read].kind;
		if ((kind == TENSOR_INPUT || kind == TENSOR_INOUT) && x->kernel_of[u.reader])
			add_kernel(x, &by[u.read], x->kernel_of[u.reader] - 1);
	}
	for (TensorId t = 1; t < g->tensor.n; t++) {
		by[t].input = t;
		if (by[t].kernel.n > 1)
			f(x, &by[t], n++);
	}
}

/* Why the last of them is not the first: an edge that leads to it. */
static const char *
reason_to_read_again(const Explain *x, const ReadAgain *r)
{
	uint32_t last = r->kernel.at[r->kernel.n - 1] + 1;
	for (uint32_t i = 0; i < x->uses.use.n; i++) {
		TensorUse u = x->uses.use.at[i];
		if (x->kernel_of[u.reader] == last && x->kernel_of[u.read] && x->kernel_of[u.read] != last)
			return arena_text(&x->s->arena, "%s waits for %s: %s", x->title[u.reader], x->title[u.read],
			                  why_apart(edge_of(x, u.read, u.reader)));
	}
	return "nothing goes from one to the other";
}

static void
print_read_again(Explain *x, const ReadAgain *r, uint32_t n)
{
	Text *out = &x->s->out;
	text_printf(out, "%s  %s by", n ? "" : "read again:\n", x->title[r->input]);
	for (uint32_t k = 0; k < r->kernel.n; k++)
		text_printf(out, "%s k%u", k ? "," : "", r->kernel.at[k]);
	text_printf(out, ": %s\n", reason_to_read_again(x, r));
}

static void
json_read_again(Explain *x, const ReadAgain *r, uint32_t n)
{
	Text *out = &x->s->out;
	const char *input = x->title[r->input], *reason = reason_to_read_again(x, r);
	text_printf(out, "%s{\"input\":", n ? "," : "");
	text_json(out, input, strlen(input));
	text_printf(out, ",\"times\":%u,\"reason\":", r->kernel.n);
	text_json(out, reason, strlen(reason));
	text_printf(out, "}");
}

/* ", 1.5 us predicted", or nothing. */
static const char *
us_text(const Explain *x, double us, const char *what)
{
	return x->machine ? arena_text(&x->s->arena, ", %.3g us%s", us, what) : "";
}

/* ", 1.5 us, memory": what it waits for, and the plan that runs. */
static const char *
bound_text(const Explain *x, uint32_t k)
{
	const Predicted *is = &x->predicted[k];
	return x->machine ? arena_text(&x->s->arena, ", %.3g us: %s", is->us, cost_bound_text[is->bound]) : "";
}

static uint32_t
running(const Explain *x, uint32_t k)
{
	return x->machine ? x->predicted[k].kernel : k;
}

static const char *
us_json(const Explain *x, double us)
{
	return x->machine ? arena_text(&x->s->arena, "%.4g", us) : "null";
}

/* --- what is streamed, in parts --- */

/* Of a kernel that computes parts of what another one does whole: how many there are at these sizes; 0: it is none such. */
static int64_t
parts_of(const Explain *x, const Kernel *k)
{
	const Graph *g = x->program->graph;
	int64_t n = 0;
	for (unsigned i = 0; k->room && i < k->plan.nnode; i++)
		if (tensor_node(g, k->plan.node[i])->parts && !launch_value(&x->binding.env, g->tensor.at[k->plan.node[i]].extent[0], &n))
			n = 0;
	return n;
}

static void
print_parts(Explain *x)
{
	const Program *p = x->program;
	Text *out = &x->s->out;
	uint32_t whole = 0, n = 0;
	for (uint32_t k = 0; k < p->kernel.n; k++) {
		const Kernel *kernel = &p->kernel.at[k];
		if (!kernel_is_spare(kernel))
			whole = k;
		if (kernel->alternative || !parts_of(x, kernel))
			continue;
		text_printf(out, "%s  k%u: %s\n", n++ ? "" : "in parts, where there are few rows:\n", whole,
		            parts_of(x, kernel) > 1 ? arena_text(&x->s->arena, "%lld parts of what it folds, by k%u, and others that join them",
		                                                 (long long)parts_of(x, kernel), k)
		                                    : "whole at these sizes, whose rows are enough, or whose elements too few");
	}
}

/* --- what a tuning file chose --- */

/* Whether the sizes are in the bucket of the choice. */
static bool
is_in_bucket(const Explain *x, const TuneChoice *c)
{
	const Graph *g = x->program->graph;
	for (uint32_t k = 0; k < c->nrange; k++)
		for (DimId d = 1; d < g->dim.n; d++)
			if (strcmp(name_text(g->names, g->dim.at[d].name), c->range[k].dim) == 0 &&
			    (x->binding.env.dim[d] < c->range[k].least || x->binding.env.dim[d] > c->range[k].most))
				return false;
	return true;
}

static void
each_choice(Explain *x, void (*f)(Explain *, const TuneChoice *, bool here, uint32_t n))
{
	const Program *p = x->program;
	uint32_t n = 0;
	for (uint32_t k = 0; k < x->options.nchoice; k++)
		if (p->tuned[k] == TUNE_TAKEN && strcmp(x->options.choice[k].graph, name_text(p->graph->names, p->graph->name)) == 0)
			f(x, &x->options.choice[k], is_in_bucket(x, &x->options.choice[k]), n++);
}

static void
print_choice(Explain *x, const TuneChoice *c, bool here, uint32_t n)
{
	if (n == 0)
		text_printf(&x->s->out, "tuned by %s:\n", option_value(x->s->options, OPT_TUNE));
	text_printf(&x->s->out, "  %.*s: %s for %s%s\n", (int)strcspn(c->kernel, "@"), c->kernel, c->plan,
	            tune_bucket_text(&x->s->arena, c->range, c->nrange), here ? "" : ", not these sizes");
}

static void
json_choice(Explain *x, const TuneChoice *c, bool here, uint32_t n)
{
	Text *out = &x->s->out;
	text_printf(out, "%s{\"kernel\":", n ? "," : "");
	text_json(out, c->kernel, strlen(c->kernel));
	text_printf(out, ",\"plan\":");
	text_json(out, c->plan, strlen(c->plan));
	text_printf(out, ",\"at_these_sizes\":%s}", here ? "true" : "false");
}

static void
print_plan(Explain *x, uint32_t k)
{
	uint32_t runs = running(x, k);
	text_printf(&x->s->out, "       k%u %s", runs, plan_text(&x->s->arena, &x->program->kernel.at[runs].plan));
	if (x->machine && x->predicted[k].more)
		text_printf(&x->s->out, "; %u more, each on its own", x->predicted[k].more);
	text_printf(&x->s->out, "\n");
}

/* --- what is derived of folds that read one another --- */

static bool
derivation_of(Explain *x, const Kernel *k, Cascade *c)
{
	return (k->plan.tmpl == TMPL_STREAM || k->plan.tmpl == TMPL_PAIRWISE) &&
	       stream_derivation(x->program->graph, &x->s->arena, k->plan.node, k->plan.nnode, c);
}

static void
print_derivation(Explain *x, const Kernel *k)
{
	Cascade *c = ARENA_NEW(&x->s->arena, Cascade);
	if (derivation_of(x, k, c))
		cascade_explain(x->program->graph, c, x->title, "       ", &x->s->out);
}

static void
json_derivation(Explain *x, const Kernel *k)
{
	Cascade *c = ARENA_NEW(&x->s->arena, Cascade);
	if (!derivation_of(x, k, c))
		return;
	text_printf(&x->s->out, ",\"derivation\":{");
	cascade_json(x->program->graph, c, x->title, &x->s->out);
	text_printf(&x->s->out, "}");
}

static void
print_text(Explain *x)
{
	const Program *p = x->program;
	Arena *a = &x->s->arena;
	Text *out = &x->s->out;
	text_printf(out, "graph %s, target %s%s\n%u kernel%s, %s moved%s (each definition apart: %s%s)\n",
	            name_text(p->graph->names, p->graph->name), x->target, binding_dims_text(&x->binding, a, true), program_kernels(p),
	            program_kernels(p) == 1 ? "" : "s", size_text(a, x->bytes_fused, "B"),
	            us_text(x, x->us_fused, " predicted"), size_text(a, x->bytes_unfused, "B"), us_text(x, x->us_unfused, ""));
	for (uint32_t k = 0; k < p->kernel.n; k++) {
		const Kernel *kernel = &p->kernel.at[k];
		if (kernel_is_spare(kernel))
			continue;
		text_printf(out, "  k%-3u %-5s", k, template_info[kernel->plan.tmpl].text);
		for (unsigned i = 0; i < kernel->plan.nnode; i++)
			text_printf(out, "%s %s", i ? "," : "", x->title[kernel->plan.node[i]]);
		text_printf(out, ": %s, %s%s\n", size_text(a, x->work[k].bytes, "B"), size_text(a, x->work[k].flops, "flop"), bound_text(x, k));
		if (x->options.blocks) /* elsewhere there is one */
			print_plan(x, k);
		print_derivation(x, kernel);
	}
	print_parts(x);
	each_choice(x, print_choice);
	each_edge(x, print_edge);
	each_read_again(x, print_read_again);
}

static void
json_edge(Explain *x, TensorId from, TensorId to, uint32_t n)
{
	Text *out = &x->s->out;
	const char *a = x->title[from], *b = x->title[to];
	text_printf(out, "%s{\"from\":", n ? "," : "");
	text_json(out, a, strlen(a));
	text_printf(out, ",\"to\":");
	text_json(out, b, strlen(b));
	const UnfusedEdge *edge = edge_of(x, from, to);
	text_printf(out, ",\"code\":\"%s\",\"reason\":", edge->code);
	text_json(out, edge->reason, strlen(edge->reason));
	text_printf(out, ",\"line\":%u}", tensor_line(&x->uses, x->unit.file, to));
}

static void
json_kernel(Explain *x, uint32_t k)
{
	const Kernel *kernel = &x->program->kernel.at[k];
	Text *out = &x->s->out;
	const char *name = kernel->tir ? name_text(kernel->tir->names, kernel->tir->name) : "";
	text_printf(out, "%s{\"name\":", k ? "," : "");
	text_json(out, name, strlen(name));
	text_printf(out, ",\"template\":\"%s\",\"defs\":[", template_info[kernel->plan.tmpl].text);
	for (unsigned i = 0; i < kernel->plan.nnode; i++) {
		const char *def = x->title[kernel->plan.node[i]];
		text_printf(out, "%s", i ? "," : "");
		text_json(out, def, strlen(def));
	}
	text_printf(out, "],\"bytes\":%.0f,\"flops\":%.0f,\"predicted_us\":%s,\"bound\":", x->work[k].bytes, x->work[k].flops,
	            us_json(x, x->predicted[k].us));
	text_printf(out, x->machine ? "\"%s\"" : "null", x->machine ? cost_bound_text[x->predicted[k].bound] : "");
	text_printf(out, ",\"plan\":\"%s\"", plan_text(&x->s->arena, &x->program->kernel.at[running(x, k)].plan));
	json_derivation(x, kernel);
	text_printf(out, "}");
}

static void
print_json(Explain *x)
{
	const Graph *g = x->graph;
	Text *out = &x->s->out;
	const char *name = name_text(g->names, g->name);
	text_printf(out, "{\"graph\":");
	text_json(out, name, strlen(name));
	text_printf(out, ",\"target\":");
	text_json(out, x->target, strlen(x->target));
	text_printf(out, ",\"dims\":");
	binding_dims_json(&x->binding, out);
	text_printf(out, ",\"kernels\":[");
	for (uint32_t k = 0; k < x->program->kernel.n; k++)
		if (!kernel_is_spare(&x->program->kernel.at[k])) /* the first is none */
			json_kernel(x, k);
	text_printf(out, "],\"bytes_unfused\":%.0f,\"bytes_fused\":%.0f,\"predicted_us\":%s,\"predicted_us_unfused\":%s,\"refused\":[",
	            x->bytes_unfused, x->bytes_fused, us_json(x, x->us_fused), us_json(x, x->us_unfused));
	each_edge(x, json_edge);
	text_printf(out, "],\"read_again\":[");
	each_read_again(x, json_read_again);
	text_printf(out, "],\"tuned\":[");
	each_choice(x, json_choice);
	text_printf(out, "]}\n");
}

/* Of the GPUs that the code is for the one that is meant where none is known. */
static void
find_machine(Explain *x)
{
	const char *cpu = compile_cpu_name(x->s);
	x->machine = cost_machine(x->options.blocks, x->options.lanes);
	if (!x->options.blocks || !cpu || strncmp(cpu, "sm_", 3) != 0)
		return;
	x->binding.env.fact = cuda_row("", atoi(cpu + 3))->fact;
	x->gpu = cost_gpu(x->binding.env.fact);
	x->machine = &x->gpu;
}

static bool
plan(Explain *x)
{
	Session *s = x->s;
	const Options *o = s->options;
	InputSpec *spec;
	BindOptions bo = {.files = &s->host->files, .diags = &x->unit.diags, .arena = &s->arena, .data = &s->data, .hints = true, .shapes_only = true};
	const char *target = option_value(o, OPT_TARGET);
	x->target = target ? target : "cpu";
	x->graph = compile_pick(s, &x->unit, option_value(o, OPT_GRAPH));
	if (!x->graph || !compile_pass_options(s, &x->options) ||
	    !session_specs(s, o->operand.at + 1, o->operand.n - 1, &spec) ||
	    !bind_inputs(x->graph, spec, o->operand.n - 1, &bo, &x->binding, &s->problem))
		return false;
	find_machine(x);
	count_unfused(x, &x->options);
	x->program = compile_program(s, x->graph, &x->options);
	if (x->program)
		count_kernels(x);
	return true;
}

ExitCode
command_explain(Session *s, void *arg)
{
	Explain x = {.s = s};
	(void)arg;
	const char *first = s->options->operand.at[0];
	if (looks_like_code(first))
		return explain_code(s, first);
	if (!compile_open(s, first, &x.unit))
		return session_fail(s);
	compile_unit(s, &x.unit, NULL);
	session_diags(s, &x.unit.diags);
	if (x.unit.failed)
		return EXIT_INPUT;
	if (!plan(&x))
		return session_fail(s);
	if (!x.program) /* --stop */
		return EXIT_OK;
	if (option_on(s->options, OPT_JSON))
		print_json(&x);
	else
		print_text(&x);
	return EXIT_OK;
}
