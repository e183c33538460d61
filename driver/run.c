/* run.c: texo run F [name=value...]: compile, bind, run, compare, then print or save. With
 * --compare the evaluator runs first: it only reads the inputs, compiled code overwrites inouts. */
#include "driver/compare.h"
#include "driver/disk_cache.h"
#include "driver/element_text.h"
#include "driver/forms.h"
#include "driver/isolation.h"
#include "driver/npy.h"
#include "driver/output_file.h"
#include "driver/near.h"
#include "driver/run_parts.h"
#include "driver/tune_file.h"
#include "runtime/cuda.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
	Session *s;
	SourceUnit unit;
	Graph *graph;
	RunDevice device;
	Binding binding;
	EvalOutputs oracle;
	bool has_oracle;
	Results results;
	bool differs;
	bool stopped; /* --stop: there is nothing to run */
} Run;

/* Looks the device up, for what code it takes. When there is none, or none that texo makes code for: *why. */
static texo_status
find_gpu(Session *s, const char *device, const char **why)
{
	texo_rt_options o = {.struct_size = sizeof o, .device = device};
	texo_rt *rt;
	texo_status st = texo_rt_create(&o, &rt);
	*why = texo_last_error();
	if (st != TEXO_OK)
		return st;
	s->gpu = codegen_sm_for((uint32_t)rt->cuda->sm);
	s->device = s->gpu ? device : NULL;
	*why = arena_text(&s->arena, "%s is too old: compute capability %d.%d", rt->cuda->name, rt->cuda->sm / 10, rt->cuda->sm % 10);
	texo_rt_destroy(rt);
	return s->gpu ? TEXO_OK : TEXO_NO_DEVICE;
}

static bool
need_gpu(Session *s, const char *device)
{
	const char *why;
	if (find_gpu(s, device, &why) == TEXO_OK)
		return true;
	problem(&s->problem, EXIT_DEVICE, "--device=%s: %s", device, why);
	return problem_help(&s->problem, "--device=cpu runs on this processor; 'texo doctor' says what is here");
}

/* A GPU where there is one, if code is not asked for a processor. */
static RunDevice
device_here(Session *s)
{
	const char *target = option_value(s->options, OPT_TARGET), *why;
	bool cpu = target && strncmp(target, "cpu", 3) == 0;
	return !cpu && find_gpu(s, "cuda", &why) == TEXO_OK ? DEVICE_CUDA : DEVICE_CPU;
}

bool
device_parse(Session *s, RunDevice *out)
{
	const char *d = option_value(s->options, OPT_DEVICE);
	if (!d) {
		*out = device_here(s);
		return true;
	}
	if (strcmp(d, "cpu") == 0) {
		*out = DEVICE_CPU;
		return true;
	}
	*out = DEVICE_INTERP;
	if (strcmp(d, "interp") == 0)
		return true;
	if (strcmp(d, "cuda") != 0 && (strncmp(d, "cuda:", 5) != 0 || !d[5] || d[5 + strspn(d + 5, "0123456789")]))
		return problem(&s->problem, EXIT_USAGE, "--device is interp, cpu, cuda or cuda:N, not '%s'", d);
	*out = DEVICE_CUDA;
	return need_gpu(s, d);
}

static bool
not_a_value(Session *s, const char *operand)
{
	problem(&s->problem, EXIT_USAGE, "'%s' is no name=value", operand);
	return problem_help(&s->problem, "inputs are given as x=@x.npy, x=random or x=[1, 2], dims as N=16");
}

bool
session_specs(Session *s, const char *const *operand, uint32_t n, InputSpec **out)
{
	*out = ARENA_ARRAY(&s->arena, InputSpec, n + 1);
	for (uint32_t i = 0; i < n; i++) {
		const char *name, *value;
		if (!input_split(&s->arena, operand[i], &name, &value))
			return not_a_value(s, operand[i]);
		if (!input_spec_parse(&s->arena, name, value, NULL, &(*out)[i], &s->problem))
			return false;
	}
	return true;
}

static bool
bind(Run *r)
{
	Session *s = r->s;
	const Options *o = s->options;
	InputSpec *spec;
	BindOptions bo = {.files = &s->host->files, .diags = &r->unit.diags, .arena = &s->arena, .data = &s->data, .cast = option_on(o, OPT_CAST), .subject = &s->subject};
	if (!session_specs(s, o->operand.at + 1, o->operand.n - 1, &spec) ||
	    !bind_inputs(r->graph, spec, o->operand.n - 1, &bo, &r->binding, &s->problem))
		return false;
	const char *chosen = binding_chosen_text(&r->binding, &s->arena);
	if (chosen)
		say_note(s, "%s (chosen; name=value sets them)", chosen);
	return true;
}

/* Out of the cache, or by a compilation, which rewrites the graph. */
static bool
make_code(Run *r, DiskCache *cache, CodegenResult *code)
{
	Session *s = r->s;
	PassOptions po;
	if (!compile_pass_options(s, &po))
		return false;
	po.late = true;
	disk_cache_open(s, &r->unit, r->graph, &po, cache);
	if (disk_cache_get(s, cache, code))
		return true;
	isolation_expect(s);
	Program *p = compile_program(s, r->graph, &po);
	r->stopped = !p;
	if (!p)
		return false;
	cache->used = cache->used && tune_taken(p, &po); /* what found no place is said each time */
	CodegenOptions co = {.cpu = compile_cpu_name(s), .opt_level = 2, .late = true};
	if (!compile_code(s, p, &co, code))
		return false;
	say_detail(s, "%u kernel%s, %zu bytes of code and tables", p->kernel.n, p->kernel.n == 1 ? "" : "s", code->image_size);
	disk_cache_put(s, cache, code);
	return true;
}

/* Runs on the device; when something failed at launch the diagnostics say so. */
static bool
execute(Run *r)
{
	Session *s = r->s;
	DiagCode failed;
	if (r->device == DEVICE_INTERP || option_on(s->options, OPT_COMPARE)) {
		if (!run_oracle(s, &r->binding, &r->unit.diags, &r->oracle, &failed))
			return false;
		r->has_oracle = true;
		r->results.failed = failed;
		if (failed)
			return true;
	}
	if (r->device == DEVICE_INTERP)
		return results_of_oracle(s, &r->binding, &r->oracle, &r->results);
	CodegenResult code;
	DiskCache cache;
	if (!make_code(r, &cache, &code))
		return false;
	const LaunchCode launched = {&code, cache.used ? &cache.store : NULL};
	return run_cpu(s, &r->binding, &launched, &r->unit.diags, &r->results);
}

static ResultTensor *
result_named(Run *r, const char *name)
{
	Near near = {.word = name};
	for (uint32_t i = 0; i < r->results.n; i++) {
		if (strcmp(r->results.at[i].name, name) == 0)
			return &r->results.at[i];
		near_offer(&near, r->results.at[i].name);
	}
	const char *mend = near_or_all(&near, &r->s->arena, "its results are");
	problem(&r->s->problem, EXIT_USAGE, "graph %s has no result '%s'", name_text(r->graph->names, r->graph->name), name);
	if (mend)
		problem_help(&r->s->problem, "%s", mend);
	return NULL;
}

/* Results that --out and --expect name must exist; said before anything runs. */
static bool
check_names(Run *r)
{
	const Options *o = r->s->options;
	const Graph *g = r->graph;
	r->results = (Results){.at = ARENA_ARRAY(&r->s->arena, ResultTensor, g->result.n + 1), .n = g->result.n};
	for (uint32_t i = 0; i < g->result.n; i++)
		r->results.at[i].name = name_text(g->names, g->result.at[i].name);
	for (uint32_t i = 0; i < o->use.n; i++) {
		OptionId id = o->use.at[i].id;
		const char *name, *value;
		if (id != OPT_OUT && id != OPT_EXPECT)
			continue;
		if (!input_split(&r->s->arena, o->use.at[i].value, &name, &value) || !*value ||
		    (id == OPT_EXPECT && (value[0] != '@' || !value[1])))
			return problem(&r->s->problem, EXIT_USAGE, "--%s takes NAME=%s, not '%s'", id == OPT_OUT ? "out" : "expect",
			               id == OPT_OUT ? "PATH" : "@PATH", o->use.at[i].value);
		if (!result_named(r, name))
			return false;
		if (id == OPT_OUT && strcmp(value, "-") == 0 && option_on(o, OPT_JSON))
			return problem(&r->s->problem, EXIT_USAGE, "--out %s=- and --json both want standard output", name);
	}
	return true;
}

static bool
save(Run *r, const char *value)
{
	const char *name, *path, *header;
	size_t n;
	input_split(&r->s->arena, value, &name, &path);
	ResultTensor *t = result_named(r, name);
	if (!output_spares(path, r->s->options->operand.at[0], &r->s->problem))
		return false;
	if (!npy_header(&r->s->arena, t->dtype, t->rank, t->shape, &header, &n, &r->s->problem))
		return false;
	char *file = arena_alloc(&r->s->data, n + (size_t)t->bytes);
	memcpy(file, header, n);
	if (t->bytes)
		memcpy(file + n, t->data, (size_t)t->bytes);
	return output_add(&r->s->host->files, path, file, n + (size_t)t->bytes, &r->s->problem);
}

/* Comparisons go to standard output, unless .npy bytes do. */
static void
say_comparison(Run *r, const Comparison *c, bool to_stdout)
{
	r->differs |= c->differs;
	if (to_stdout && !option_on(r->s->options, OPT_JSON))
		text_printf(&r->s->out, "%s\n", c->text);
	else
		say_note(r->s, "%s", c->text);
}

static bool
compare_all(Run *r, bool to_stdout)
{
	const Options *o = r->s->options;
	const char *rtol = option_value(o, OPT_RTOL), *atol = option_value(o, OPT_ATOL);
	Comparison c;
	for (uint32_t i = 0; i < o->use.n; i++) {
		const char *name, *value;
		if (o->use.at[i].id != OPT_EXPECT)
			continue;
		input_split(&r->s->arena, o->use.at[i].value, &name, &value);
		if (!compare_file(r->s, result_named(r, name), value + 1, rtol ? strtod(rtol, NULL) : 0,
		                  atol ? strtod(atol, NULL) : 0, &c))
			return false;
		say_comparison(r, &c, to_stdout);
	}
	for (uint32_t i = 0; option_on(o, OPT_COMPARE) && i < r->results.n; i++) {
		c = compare_oracle(&r->s->arena, &r->results.at[i], &r->oracle.result[i]);
		say_comparison(r, &c, to_stdout);
	}
	return true;
}

static void
print_results(Run *r)
{
	Text *out = &r->s->out;
	bool json = option_on(r->s->options, OPT_JSON);
	const char *graph = name_text(r->graph->names, r->graph->name);
	if (json) {
		text_printf(out, "{\"graph\":");
		text_json(out, graph, strlen(graph));
		text_printf(out, ",\"device\":\"%s\",\"results\":[", r->device == DEVICE_CPU ? "cpu" : r->device == DEVICE_CUDA ? "cuda" : "interp");
	}
	for (uint32_t i = 0; i < r->results.n; i++) {
		const ResultTensor *t = &r->results.at[i];
		const char *shape = shape_text(out->arena, t->rank, t->shape), *dtype = dtype_info[t->dtype].text;
		if (json)
			text_printf(out, "%s{\"name\":\"%s\",\"dtype\":\"%s\",\"shape\":%s,\"values\":", i ? "," : "", t->name, dtype,
			            shape);
		else
			text_printf(out, "%s: %s%s\n  ", t->name, dtype, t->rank ? shape : "");
		tensor_print(t->dtype, t->rank, t->shape, t->data, 8, json, out);
		text_printf(out, json ? "}" : "\n");
	}
	if (json)
		text_printf(out, "],\"differs\":%s}\n", r->differs ? "true" : "false");
}

static bool
deliver(Run *r)
{
	const Options *o = r->s->options;
	bool saved = false, to_stdout = false;
	for (uint32_t i = 0; i < o->use.n; i++) {
		const char *eq = o->use.at[i].id == OPT_OUT ? strchr(o->use.at[i].value, '=') : NULL;
		to_stdout |= eq && strcmp(eq + 1 + strspn(eq + 1, " "), "-") == 0;
	}
	for (uint32_t i = 0; i < o->use.n; i++)
		if (o->use.at[i].id == OPT_OUT) {
			saved = true;
			if (!save(r, o->use.at[i].value))
				return false;
		}
	if (!compare_all(r, !to_stdout) || !output_commit(&r->s->host->files, &r->s->problem))
		return false;
	if (!saved || option_on(o, OPT_JSON))
		print_results(r);
	return true;
}

static ExitCode
run_graph(Run *r)
{
	Session *s = r->s;
	bool ran = device_parse(s, &r->device) && (r->graph = compile_pick(s, &r->unit, option_value(s->options, OPT_GRAPH)))
	           && check_names(r) && bind(r);
	uint32_t before = r->unit.diags.list.n;
	if (!ran || !execute(r))
		return r->stopped ? EXIT_OK : session_fail(s);
	if (r->unit.diags.list.n > before)
		session_diags(s, &r->unit.diags);
	if (r->results.failed)
		return EXIT_INPUT;
	if (!deliver(r))
		return session_fail(s);
	return r->differs ? EXIT_DIFFERS : EXIT_OK;
}

ExitCode
command_run(Session *s, void *arg)
{
	Run r = {.s = s};
	(void)arg;
	if (!compile_open(s, s->options->operand.at[0], &r.unit))
		return session_fail(s);
	if (option_value(s->options, OPT_EMIT))
		return emit_forms(s, &r.unit);
	compile_unit(s, &r.unit, NULL);
	if (r.unit.failed) {
		session_diags(s, &r.unit.diags);
		return EXIT_INPUT;
	}
	return run_graph(&r);
}
