/* doctor.c: texo doctor: what is present here, and what to do about what is not. texo targets: what
 * can be compiled for. Each finding is a row; a lacking optional part is no failure. */
#include "codegen/codegen.h"
#include "driver/assembler.h"
#include "driver/disk_cache.h"
#include "driver/isolation.h"
#include "runtime/cuda.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
	const char *part;
	bool present;
	const char *found; /* what it is, or what is lacking */
	const char *mend;  /* when it is not present */
} Finding;

static Finding
find_driver(Arena *a)
{
	Finding f = {"GPU driver", false, "libcuda.so.1 can't be loaded",
	             "install NVIDIA's driver; without it graphs run on the processor"};
	int (*version)(int *) = NULL;
	void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	int v = 0;
	if (!lib)
		return f;
	*(void **)&version = dlsym(lib, "cuDriverGetVersion");
	f.present = version && version(&v) == 0;
	f.found = f.present ? arena_text(a, "libcuda.so.1, CUDA %d.%d", v / 1000, v % 1000 / 10)
	                    : "libcuda.so.1 does not answer";
	dlclose(lib);
	return f;
}

static Finding
find_gpu(Arena *a)
{
	texo_rt_options o = {.struct_size = sizeof o, .device = "cuda"};
	texo_rt *rt;
	Finding f = {"GPU", texo_rt_create(&o, &rt) == TEXO_OK, "", "--device=cuda needs an NVIDIA GPU and its driver"};
	if (!f.present) {
		f.found = arena_text(a, "%s", texo_last_error());
		return f;
	}
	const char *code = codegen_sm_for((uint32_t)rt->cuda->sm);
	f.found = arena_text(a, "%s, compute capability %d.%d, %s", rt->cuda->name, rt->cuda->sm / 10, rt->cuda->sm % 10,
	                     code ? arena_text(a, "code for %s", code) : "too old for any code of ours");
	texo_rt_destroy(rt);
	return f;
}

/* Which one makes machine code: ptxas what is built ahead of time, the driver what is run. */
static Finding
find_assembler(Arena *a, bool driver)
{
	const char *ptxas = assembler_find(a), *jit = driver ? "the driver assembles what is run" : "no driver that could assemble";
	return (Finding){"GPU assembler", ptxas != NULL,
	                 ptxas ? arena_text(a, "%s, for texo build; %s", ptxas, jit) : arena_text(a, "no ptxas on PATH; %s", jit),
	                 "install the CUDA toolkit, or pip's nvidia-cuda-nvcc, and put its bin on PATH"};
}

/* Asks for a module of no kernel. */
static Finding
find_worker(Session *s)
{
	CodegenResult made;
	const CodegenOptions o = {.cpu = "host", .no_code = true, .opt_level = 2, .elsewhere = isolation_elsewhere(s)};
	bool ok = codegen_cpu(&s->arena, NULL, 0, &o, &made) == CODEGEN_OK;
	return (Finding){"worker", ok, ok ? "code is generated in a process that opens no file" : s->problem.text,
	                 "--in-process, or TEXO_IN_PROCESS=1, generates code without one, for programs that you trust"};
}

static Finding
find_temporary(Arena *a)
{
	const char *dir = getenv("TMPDIR");
	if (!dir || !*dir)
		dir = "/tmp";
	bool ok = access(dir, W_OK | X_OK) == 0;
	return (Finding){"temporary files", ok, ok ? dir : arena_text(a, "%s can't be written", dir), "set TMPDIR"};
}

static Finding
find_cache(Session *s)
{
	Store store;
	StoreList list;
	const char *why = NULL;
	if (!disk_cache_place(s, &store))
		return (Finding){"cache", false, "there is no place for it", "set HOME, XDG_CACHE_HOME or TEXO_CACHE"};
	if (!store_list(&store, &s->arena, &list, &why))
		return (Finding){"cache", false, why, "graphs are compiled in every run"};
	return (Finding){"cache", true, arena_text(&s->arena, "%s, %u entries, %.1f MiB", store.path, list.nentry, (double)list.bytes / 0x1p20), ""};
}

static void
json_pair(Text *out, const char *key, const char *value)
{
	text_printf(out, ",\"%s\":", key);
	text_json(out, value, strlen(value));
}

ExitCode
command_doctor(Session *s, void *arg)
{
	Arena *a = &s->arena;
	Text *out = &s->out;
	(void)arg;
	const Finding driver = find_driver(a);
	const Finding findings[] = {
		{"version", true, TEXO_VERSION, ""},
		{"processor", true, codegen_host_summary(a), ""},
		{"processors", true, arena_text(a, "%ld online", sysconf(_SC_NPROCESSORS_ONLN)), ""},
		driver,
		find_gpu(a),
		find_assembler(a, driver.present),
		find_worker(s),
		find_temporary(a),
		find_cache(s),
	};
	bool json = option_on(s->options, OPT_JSON);
	if (json)
		text_printf(out, "{\"findings\":[");
	for (unsigned i = 0; i < sizeof findings / sizeof findings[0]; i++) {
		const Finding *f = &findings[i];
		if (json) {
			text_printf(out, "%s{\"present\":%s", i ? "," : "", f->present ? "true" : "false");
			json_pair(out, "part", f->part);
			json_pair(out, "found", f->found);
			json_pair(out, "mend", f->present ? "" : f->mend);
			text_printf(out, "}");
			continue;
		}
		text_printf(out, "%-7s %-15s %s\n", f->present ? "ok" : "lacking", f->part, f->found);
		if (!f->present)
			text_printf(out, "%-23s %s\n", "", f->mend);
	}
	if (json)
		text_printf(out, "]}\n");
	return EXIT_OK;
}

/* Each of the comma-separated names, between the two. */
static void
list_targets(Text *out, const char *before, const char *names, const char *after)
{
	for (const char *n = names; *n; n += strspn(n, ", ")) {
		size_t k = strcspn(n, ",");
		text_printf(out, "%s%.*s%s", before, (int)k, n, after);
		n += k;
	}
}

ExitCode
command_targets(Session *s, void *arg)
{
	Arena *a = &s->arena;
	Text *out = &s->out;
	const char *names = codegen_cpu_names(a);
	(void)arg;
	if (option_on(s->options, OPT_JSON)) {
		text_printf(out, "{\"targets\":[\"cpu\"");
		list_targets(out, ",\"cpu:", names, "\"");
		text_printf(out, ",\"cuda\"");
		list_targets(out, ",\"cuda:", codegen_sm_names(a), "\"");
		text_printf(out, "]");
		json_pair(out, "host", codegen_host_summary(a));
		text_printf(out, "}\n");
		return EXIT_OK;
	}
	text_printf(out, "cpu                  this processor: %s\n", codegen_host_summary(a));
	list_targets(out, "cpu:", names, "\n");
	text_printf(out, "cuda                 the first of these GPUs\n");
	list_targets(out, "cuda:", codegen_sm_names(a), "\n");
	return EXIT_OK;
}
