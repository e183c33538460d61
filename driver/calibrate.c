/* calibrate.c: texo calibrate: measures what is known of a GPU where one plan of several is chosen, shows it beside the
 * built-in row, and keeps it in the cache, from where whatever runs on such a device takes it. */
#include "driver/cache/figures.h"
#include "driver/disk_cache.h"
#include "driver/roof.h"
#include "driver/run_parts.h"
#include "ir/gpu_facts.h"
#include "runtime/cuda.h"

#include <string.h>

typedef struct {
	Session *s;
	texo_rt *rt;
	Store store;
	int64_t built_in[GPU_FACTS], fact[GPU_FACTS];
} Calibrate;

static void
print_text(const Calibrate *x)
{
	Text *out = &x->s->out;
	const Cuda *c = x->rt->cuda;
	text_printf(out, "%s, %s; built in: %s\n%-12s %10s %10s\n", x->s->device, c->name, c->row->name, "", "measured", "built in");
	for (unsigned k = 0; k < GPU_FACTS; k++) {
		const GpuFactInfo *f = &gpu_fact_info[k];
		text_printf(out, "%-12s %10lld %10lld  %s%s%s\n", f->text, (long long)x->fact[k], (long long)x->built_in[k], f->unit,
		            *f->unit ? ", " : "", f->what);
	}
	say_note(x->s, "kept in %s", x->store.path);
}

static void
json_figures(Text *out, const char *name, const int64_t *fact)
{
	text_printf(out, ",\"%s\":", name);
	for (unsigned k = 0; k < GPU_FACTS; k++)
		text_printf(out, "%s\"%s\":%lld", k ? "," : "{", gpu_fact_info[k].text, (long long)fact[k]);
	text_printf(out, "}");
}

static void
print_json(const Calibrate *x)
{
	Text *out = &x->s->out;
	const Cuda *c = x->rt->cuda;
	text_printf(out, "{\"device\":");
	text_json(out, x->s->device, strlen(x->s->device));
	text_printf(out, ",\"name\":");
	text_json(out, c->name, strlen(c->name));
	text_printf(out, ",\"row\":\"%s\"", c->row->name);
	json_figures(out, "measured", x->fact);
	json_figures(out, "built_in", x->built_in);
	text_printf(out, ",\"cache\":");
	text_json(out, x->store.path, strlen(x->store.path));
	text_printf(out, "}\n");
}

static bool
open_device(Calibrate *x)
{
	Session *s = x->s;
	RunDevice device;
	if (!device_parse(s, &device))
		return false;
	if (device != DEVICE_CUDA && option_value(s->options, OPT_DEVICE))
		return problem(&s->problem, EXIT_USAGE, "'texo calibrate' measures GPUs: --device=cuda");
	texo_rt_options o = {.struct_size = sizeof o, .device = device == DEVICE_CUDA ? s->device : "cuda"};
	if (texo_rt_create(&o, &x->rt) == TEXO_OK && device == DEVICE_CUDA)
		return true;
	problem(&s->problem, EXIT_DEVICE, "there is no GPU to measure: %s", texo_last_error());
	return problem_help(&s->problem, "'texo doctor' says what is here");
}

static bool
measure(Calibrate *x)
{
	Session *s = x->s;
	const char *why = NULL;
	if (!disk_cache_place(s, &x->store)) {
		problem(&s->problem, EXIT_USAGE, "there is no place for what is measured: HOME and XDG_CACHE_HOME name none");
		return problem_help(&s->problem, "--cache-dir=PATH or TEXO_CACHE names one");
	}
	cuda_row_facts(x->rt->cuda->row, x->rt->cuda->processors, x->built_in);
	if (figures_measure_cuda(x->rt, x->fact) != TEXO_OK)
		return problem(&s->problem, EXIT_DEVICE, "--device=%s: %s", s->device, texo_last_error());
	if (!cuda_facts_possible(x->fact))
		return problem(&s->problem, EXIT_DEVICE, "--device=%s: what was measured is no device's; nothing is kept", s->device);
	return figures_put(&x->store, &s->arena, x->rt, x->fact, &why) ||
	       problem(&s->problem, EXIT_IO, "what was measured can't be kept: %s", why ? why : x->store.path);
}

ExitCode
command_calibrate(Session *s, void *arg)
{
	Calibrate x = {.s = s};
	(void)arg;
	bool ok = open_device(&x) && measure(&x);
	if (ok && option_on(s->options, OPT_JSON))
		print_json(&x);
	else if (ok)
		print_text(&x);
	texo_rt_destroy(x.rt);
	return ok ? EXIT_OK : session_fail(s);
}
