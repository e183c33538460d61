/* bench.c: texo bench F [name=value...]: compiles a graph, launches it again and again on the same
 * data, and holds the median against what the signature must move, what the graph computes, and
 * what a triad and a loop of multiply-adds reach here with as many threads; on a GPU a copy and such a
 * loop. Data that are all zeros are refused: memory that was never written reads faster than memory
 * is. */
#include "driver/cpu_launch.h"
#include "driver/roof.h"
#include "driver/run_parts.h"
#include "driver/timing.h"
#include "passes/cost/cost.h"
#include "runtime/cuda.h"

#include <string.h>

typedef struct {
	Session *s;
	SourceUnit unit;
	Graph *graph;
	const char *target;
	RunDevice device;
	texo_rt *held; /* so that a device's context is made once, before anything is timed */
	const Machine *machine; /* NULL: one that the cost model does not know */
	Binding binding;
	Work work;
	Results results;
	uint32_t kernels, threads;
	double compile_ms, predicted_us;
	Timing time;
	Roof roof;
	bool stopped; /* --stop: there is nothing to time */
} Bench;

static double
now_ms(const Session *s)
{
	return (double)s->host->clock.now_ns(s->host->clock.user) * 1e-6;
}

/* --- inputs --- */

static bool
is_all_zero(const BoundParam *b)
{
	const char *at = b->data;
	return b->bytes > 0 && at[0] == 0 && memcmp(at, at + 1, (size_t)b->bytes - 1) == 0;
}

static bool
check_data(Bench *x)
{
	const Graph *g = x->graph;
	for (uint32_t k = 0; k < x->binding.nparam; k++) {
		const BoundParam *b = &x->binding.param[k];
		bool given = b->spec->kind != INPUT_RANDOM && b->spec->kind != INPUT_NORMAL;
		if (!given || g->tensor.at[g->param.at[k]].kind == TENSOR_SCALAR || !is_all_zero(b))
			continue;
		problem(&x->s->problem, EXIT_INPUT, "%s is all zeros: a time on such data says little", b->spec->name);
		return problem_help(&x->s->problem, "%s=random, or nothing, gives it other values", b->spec->name);
	}
	return true;
}

static bool
bind(Bench *x)
{
	Session *s = x->s;
	const Options *o = s->options;
	InputSpec *spec;
	BindOptions bo = {.files = &s->host->files, .diags = &x->unit.diags, .arena = &s->arena, .data = &s->data, .hints = true,
	                  .cast = option_on(o, OPT_CAST), .subject = &s->subject};
	UseTable uses;
	if (!session_specs(s, o->operand.at + 1, o->operand.n - 1, &spec) ||
	    !bind_inputs(x->graph, spec, o->operand.n - 1, &bo, &x->binding, &s->problem) || !check_data(x))
		return false;
	const char *chosen = binding_chosen_text(&x->binding, &s->arena);
	if (chosen)
		say_note(s, "%s (chosen; name=value sets them)", chosen);
	use_table_init(&uses, x->graph, &s->arena);
	x->work = work_of_signature(&x->binding.env, &uses);
	return true;
}

/* --- compiling and timing --- */

/* Compiles a graph that is nobody's, so that the time of the next one has in it what every compilation
 * takes, not what the first in a process takes. */
static bool
warm_up(Session *s)
{
	static const char text[] = "graph warm(x: f32[N]) -> (y: f32[N]) { y[i] = exp(x[i]) }\n";
	SourceUnit u;
	PassOptions po;
	CodegenResult code;
	FrontendOptions fo = {.host = s->host};
	CodegenOptions co = {.cpu = compile_cpu_name(s), .opt_level = 2};
	if (!co.cpu)
		return false;
	unit_begin(&s->arena, "<warm-up>", text, sizeof text - 1, &u);
	unit_check(&s->arena, &u, &fo, false);
	pass_options_for(co.cpu, s->host, &po);
	return compile_code(s, compile_program(s, u.unit->graph.at[0], &po), &co, &code);
}

static bool
time_graph(Session *s, CpuLaunch *l, void *user)
{
	Bench *x = user;
	x->compile_ms += (double)l->load_ns * 1e-6 - now_ms(s);
	texo_status st = texo_kernel_prepare(l->kernel, l->arg, l->narg); /* a GPU's code is made here */
	x->compile_ms += now_ms(s);
	if (st == TEXO_OK)
		st = cpu_prepare(s, l);
	if (st == TEXO_OK)
		st = l->device ? timing_take_cuda(s, l, &x->binding, &x->time) : timing_take(s, l, &x->binding, &x->time);
	if (st == TEXO_OK && l->device)
		st = roof_measure_cuda(l->rt, &x->roof);
	return cpu_outcome(s, l, st, x->graph, &x->unit.diags, &x->results);
}

static bool
measure(Bench *x)
{
	Session *s = x->s;
	CodegenResult code;
	PassOptions po;
	if (!compile_pass_options(s, &po))
		return false;
	po.late = true;
	x->compile_ms -= now_ms(s);
	Program *p = compile_program(s, x->graph, &po);
	x->stopped = !p;
	if (!p)
		return false;
	x->kernels = program_kernels(p);
	double pause = now_ms(s); /* what is only for the report is no part of compiling */
	x->machine = cost_machine(po.blocks, po.lanes);
	if (x->machine)
		x->predicted_us = cost_program_us(x->machine, p, &x->binding.env, &s->arena, x->threads);
	x->compile_ms -= now_ms(s) - pause;
	CodegenOptions co = {.cpu = compile_cpu_name(s), .opt_level = 2, .late = true};
	const LaunchCode launched = {&code, NULL};
	if (!compile_code(s, p, &co, &code))
		return false;
	x->compile_ms += now_ms(s);
	return cpu_loaded(s, &x->binding, &launched, &x->results, time_graph, x) &&
	       (x->results.failed || x->device == DEVICE_CUDA || roof_measure(s, x->threads, &x->roof));
}

/* --- reports --- */

static double
per_second(double amount, double us)
{
	return us > 0 ? amount / us * 1e6 : 0;
}

static double
fraction_of_roof(const Bench *x)
{
	double bytes = per_second(x->work.bytes, x->time.median) / (x->roof.gbps * 1e9);
	double flops = per_second(x->work.flops, x->time.median) / (x->roof.tflops * 1e12);
	return bytes > flops ? bytes : flops;
}

static void
print_json(const Bench *x)
{
	const Graph *g = x->graph;
	Text *out = &x->s->out;
	const char *name = name_text(g->names, g->name);
	text_printf(out, "{\"graph\":");
	text_json(out, name, strlen(name));
	text_printf(out, ",\"target\":");
	text_json(out, x->target, strlen(x->target));
	if (x->device == DEVICE_CUDA)
		text_printf(out, ",\"device\":\"cuda\",\"dims\":");
	else
		text_printf(out, ",\"device\":\"cpu\",\"threads\":%u,\"dims\":", x->threads);
	binding_dims_json(&x->binding, out);
	text_printf(out, ",\"kernels\":%u,\"compile_ms\":%.3f,", x->kernels, x->compile_ms);
	text_printf(out, "\"time_us\":{\"median\":%.3f,\"min\":%.3f,\"max\":%.3f,\"n\":%u},", x->time.median, x->time.min,
	            x->time.max, x->time.n);
	text_printf(out, "\"predicted_us\":%s,", x->machine ? arena_text(out->arena, "%.4g", x->predicted_us) : "null");
	text_printf(out, "\"bytes\":%.0f,\"flops\":%.0f,\"gbps\":%.4g,\"tflops\":%.4g,", x->work.bytes, x->work.flops,
	            per_second(x->work.bytes, x->time.median) * 1e-9, per_second(x->work.flops, x->time.median) * 1e-12);
	text_printf(out, "\"roof\":{\"gbps\":%.4g,\"tflops\":%.4g},\"fraction_of_roof\":%.4g}\n", x->roof.gbps,
	            x->roof.tflops, fraction_of_roof(x));
}

static void
print_text(const Bench *x)
{
	Text *out = &x->s->out;
	Arena *a = out->arena;
	bool gpu = x->device == DEVICE_CUDA;
	text_printf(out, "graph %s, target %s%s, %s\n", name_text(x->graph->names, x->graph->name), x->target,
	            binding_dims_text(&x->binding, a, false),
	            gpu ? x->held->cuda->name : arena_text(a, "%u thread%s", x->threads, x->threads == 1 ? "" : "s"));
	text_printf(out, "%u kernel%s, compiled in %.2f ms\n", x->kernels, x->kernels == 1 ? "" : "s", x->compile_ms);
	text_printf(out, "median %.2f us (min %.2f, max %.2f) of %u%s\n", x->time.median, x->time.min, x->time.max, x->time.n,
	            x->machine ? arena_text(a, "; %.4g us were predicted", x->predicted_us) : "");
	text_printf(out, "bytes %.0f: %.4g GB/s of a %s's %.4g\n", x->work.bytes,
	            per_second(x->work.bytes, x->time.median) * 1e-9, gpu ? "copy" : "triad", x->roof.gbps);
	text_printf(out, "flops %.0f: %.4g TFLOP/s of a multiply-add loop's %.4g\n", x->work.flops,
	            per_second(x->work.flops, x->time.median) * 1e-12, x->roof.tflops);
	text_printf(out, "%.1f%% of roof\n", 100 * fraction_of_roof(x));
}

static bool
ready(Bench *x)
{
	Session *s = x->s;
	const char *target = option_value(s->options, OPT_TARGET);
	x->threads = cpu_threads(s);
	if (!device_parse(s, &x->device))
		return false;
	if (x->device == DEVICE_INTERP)
		return problem(&s->problem, EXIT_USAGE, "'texo bench' times compiled code: --device=cpu or --device=cuda");
	x->target = target ? target : x->device == DEVICE_CUDA ? arena_text(&s->arena, "cuda:%s", s->gpu) : "cpu";
	texo_rt_options o = {.struct_size = sizeof o, .device = s->device};
	if (x->device != DEVICE_CUDA || texo_rt_create(&o, &x->held) == TEXO_OK)
		return true;
	return problem(&s->problem, EXIT_DEVICE, "--device=%s: %s", s->device, texo_last_error());
}

static ExitCode
bench_graph(Bench *x)
{
	Session *s = x->s;
	x->graph = compile_pick(s, &x->unit, option_value(s->options, OPT_GRAPH));
	uint32_t before = x->unit.diags.list.n;
	if (!x->graph || !bind(x) || !measure(x))
		return x->stopped ? EXIT_OK : session_fail(s);
	if (x->unit.diags.list.n > before)
		session_diags(s, &x->unit.diags);
	if (x->results.failed)
		return EXIT_INPUT;
	if (option_on(s->options, OPT_JSON))
		print_json(x);
	else
		print_text(x);
	return EXIT_OK;
}

static ExitCode
bench_file(Bench *x)
{
	Session *s = x->s;
	if (!warm_up(s))
		return session_fail(s);
	x->compile_ms -= now_ms(s);
	compile_unit(s, &x->unit, NULL);
	x->compile_ms += now_ms(s);
	if (x->unit.failed) {
		session_diags(s, &x->unit.diags);
		return EXIT_INPUT;
	}
	return bench_graph(x);
}

ExitCode
command_bench(Session *s, void *arg)
{
	Bench x = {.s = s};
	(void)arg;
	if (!compile_open(s, s->options->operand.at[0], &x.unit) || !ready(&x))
		return session_fail(s);
	ExitCode code = bench_file(&x);
	texo_rt_destroy(x.held);
	return code;
}
