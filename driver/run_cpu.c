/* run_cpu.c: see cpu_launch.h; and --device=cpu, which is one launch. */
#include "driver/api/objects.h"
#include "driver/assembler.h"
#include "driver/compile.h"
#include "driver/cpu_launch.h"
#include "driver/disk_cache.h"
#include "driver/isolation.h"
#include "runtime/cuda.h"
#include "runtime/pool.h"

#include <stdlib.h>
#include <string.h>

/* The code of each kind of element in DLPack; bits come from the dtype's row. */
static DLDataType
dl_type(DType t)
{
	uint8_t code = kDLInt;
	switch (dtype_info[t].kind) {
	case KIND_INT: code = kDLInt; break;
	case KIND_UINT: code = kDLUInt; break;
	case KIND_BOOL: code = kDLBool; break;
	case KIND_COMPLEX: code = kDLComplex; break;
	case KIND_FLOAT:
		code = t == DT_BF16 ? kDLBfloat : t == DT_F8E4M3 ? kDLFloat8_e4m3fn : t == DT_F8E5M2 ? kDLFloat8_e5m2
		     : t == DT_E8M0 ? kDLFloat8_e8m0fnu : t == DT_F4E2M1 ? kDLFloat4_e2m1fn : kDLFloat;
		break;
	}
	return (DLDataType){code, dtype_info[t].bits, 1};
}

static DLDevice
dl_device(const CpuLaunch *l)
{
	const char *colon = l->device ? strchr(l->device, ':') : NULL;
	return (DLDevice){l->device ? kDLCUDA : kDLCPU, colon ? (int32_t)strtol(colon + 1, NULL, 10) : 0};
}

static void
add_tensor(CpuLaunch *l, DType t, unsigned rank, int64_t *shape, void *data, DeviceMemory m)
{
	DLTensor *d = &l->tensor[l->ntensor];
	*d = (DLTensor){.data = data, .device = dl_device(l), .ndim = (int32_t)rank, .dtype = dl_type(t), .shape = shape};
	l->memory[l->ntensor++] = m;
	l->arg[l->narg++].tensor = d;
}

/* Inputs with inouts, then results that are no inouts, in source order. */
static void
collect_args(Session *s, const Binding *b, Results *r, CpuLaunch *l)
{
	const Graph *g = b->graph;
	l->tensor = ARENA_ARRAY(&s->arena, DLTensor, b->nparam + r->n + 1);
	l->arg = ARENA_ARRAY(&s->arena, texo_arg, b->nparam + r->n + 1);
	l->memory = ARENA_ARRAY(&s->arena, DeviceMemory, b->nparam + r->n + 1);
	l->device = s->device;
	for (uint32_t k = 0; k < b->nparam; k++) {
		BoundParam *p = &b->param[k];
		if (g->tensor.at[g->param.at[k]].kind == TENSOR_SCALAR)
			l->arg[l->narg++].scalar = p->data;
		else
			add_tensor(l, p->dtype, p->rank, p->shape, p->data,
			           (DeviceMemory){.bytes = (size_t)p->bytes, .in = true,
			                          .out = g->tensor.at[g->param.at[k]].kind == TENSOR_INOUT});
	}
	for (uint32_t i = 0; i < r->n; i++) {
		ResultTensor *t = &r->at[i];
		if (g->result.at[i].inout) {
			for (uint32_t k = 0; k < b->nparam; k++)
				if (g->param.at[k] == g->result.at[i].inout)
					t->data = b->param[k].data;
			continue;
		}
		t->data = tensor_memory(&s->data, &s->subject, &s->arena, t->name, t->rank, t->shape, t->bytes + 16);
		add_tensor(l, t->dtype, t->rank, t->shape, t->data, (DeviceMemory){.bytes = (size_t)t->bytes, .out = true});
	}
}

static bool
refused(Session *s, texo_status status)
{
	const char *text = texo_last_error();
	ExitCode code = EXIT_BUG;
	switch (status) {
	case TEXO_OK:
	case TEXO_INVALID:
	case TEXO_COMPILE_ERROR:
	case TEXO_CHECK_FAILED:
	case TEXO_FAULT:
	case TEXO_NOT_BUILT:
	case TEXO_LIMIT:
		code = EXIT_INPUT;
		break;
	case TEXO_NO_MEMORY:
	case TEXO_IO:
		code = EXIT_IO;
		break;
	case TEXO_NO_DEVICE:
	case TEXO_DEVICE_LOST:
		code = EXIT_DEVICE;
		break;
	case TEXO_BAD_ARTEFACT: /* ours is whole, so it is for another processor, as --target asked */
		code = option_value(s->options, OPT_TARGET) ? EXIT_DEVICE : EXIT_BUG;
		break;
	case TEXO_NOT_FOUND:
	case TEXO_INTERNAL:
		break;
	}
	text = text && *text ? text : "no details";
	if (code != EXIT_DEVICE || status != TEXO_BAD_ARTEFACT) {
		problem(&s->problem, code, "%s: %s", texo_status_name(status), text);
		const char *help = strstr(text, "worker") ? isolation_help(s, status) : NULL;
		return help && problem_help(&s->problem, "%s", help);
	}
	problem(&s->problem, code, "--target=%s: %s", option_value(s->options, OPT_TARGET), text);
	return problem_help(&s->problem, "without --target the code is for this processor");
}

/* The place of the failed access in the source, from the runtime's line and column. */
static texo_status
report_fault(Session *s, CpuLaunch *l, const Graph *g, Diags *diags, Results *out)
{
	texo_fault f = {.struct_size = sizeof f};
	texo_status st = texo_kernel_status(l->kernel, &f);
	if (st != TEXO_OK || !(f.failed || f.cut))
		return st;
	Span at = {0};
	for (AccessId a = 1; a < g->access.n; a++)
		if (g->access.at[a].at.line == f.line && g->access.at[a].at.col == f.col)
			at = g->access.at[a].at;
	if (!f.failed) {
		diag_add(diags, DIAG_W0791, at, "the range `%s` was cut for these inputs", f.access);
		return st;
	}
	out->failed = DIAG_E0790;
	Diag *d = diag_add(diags, DIAG_E0790, at, "`%s` is outside its tensor for these inputs", f.access);
	d->help = arena_text(&s->arena, "`?[` makes the access optional");
	return st;
}

/* The check that the runtime refused: its message ends with the check's text. */
static void
report_check(Session *s, const Graph *g, Diags *diags, Results *out)
{
	const char *text = texo_last_error();
	size_t n = strlen(text);
	out->failed = DIAG_E0790;
	for (uint32_t k = 0; k < g->check.n; k++) {
		size_t m = strlen(g->check.at[k].text);
		if (m <= n && strcmp(text + n - m, g->check.at[k].text) == 0) {
			out->failed = g->check.at[k].code;
			Diag *d = diag_add(diags, g->check.at[k].code, g->check.at[k].at, "this does not hold for these inputs: %s",
			                   g->check.at[k].text);
			d->label = arena_text(&s->arena, "checked at launch");
			return;
		}
	}
	diag_add(diags, DIAG_E0790, g->at, "%s", text);
}

uint32_t
cpu_threads(const Session *s)
{
	const char *jobs = option_value(s->options, OPT_THREADS);
	return jobs ? (uint32_t)strtoul(jobs, NULL, 10) : pool_processors();
}

texo_status
cpu_prepare(Session *s, CpuLaunch *l)
{
	texo_status st = texo_kernel_prepare(l->kernel, l->arg, l->narg);
	if (st == TEXO_OK)
		st = texo_kernel_workspace(l->kernel, l->arg, l->narg, &l->bytes);
	if (st == TEXO_OK && l->device)
		return device_move_in(l);
	if (st == TEXO_OK && l->bytes) {
		char *room = arena_alloc(&s->data, l->bytes + 64);
		l->workspace = room + (64 - (uintptr_t)room % 64) % 64;
	}
	return st;
}

texo_status
cpu_launch(CpuLaunch *l)
{
	texo_status st = texo_kernel_launch(l->kernel, l->arg, l->narg, l->workspace, NULL);
	return st == TEXO_OK && l->device ? cuda_wait(l->rt, NULL) : st;
}

bool
cpu_outcome(Session *s, CpuLaunch *l, texo_status status, const Graph *g, Diags *diags, Results *out)
{
	if (status == TEXO_CHECK_FAILED) {
		report_check(s, g, diags, out);
		return true;
	}
	if (status == TEXO_OK || status == TEXO_FAULT)
		status = report_fault(s, l, g, diags, out);
	return status == TEXO_OK || refused(s, status);
}

/* --- late code --- */

static void
say_made(void *session, texo_log_level level, const char *text)
{
	(void)level;
	say_detail(session, "%s", text);
}

/* As much of a context as making code needs (driver/api/late.c). What it takes is its own: an unwinding of the session's
 * arena must not pass through the runtime. */
static LateCode *
new_late(Session *s, const Store *kept)
{
	CodegenOptions co = {.cpu = compile_cpu_name(s)};
	if (!co.cpu || !assembler_choose(s, false, &co))
		return NULL;
	texo_ctx *ctx = ARENA_NEW(&s->arena, texo_ctx);
	LateCode *late = ARENA_NEW(&s->arena, LateCode);
	memset(ctx, 0, sizeof *ctx);
	ctx->host = *s->host;
	ctx->log = say_made;
	ctx->log_user = s;
	ctx->compile_bytes = LOWERING_LIMIT;
	isolation_lend(s, ctx);
	if (kept)
		ctx->store = *kept;
	*late = (LateCode){.ctx = ctx, .cpu = co.cpu, .kept = kept != NULL, .assemble = co.assemble, .user = co.user,
	                   .assembler = assembler_version(&s->arena, &co)};
	return late;
}

/* --- loading --- */

static bool
load(Session *s, const LaunchCode *code, CpuLaunch *l)
{
	const HostMemory *m = &s->host->memory;
	texo_rt_options ro = {.struct_size = sizeof ro, .threads = cpu_threads(s), .device = s->device ? s->device : "cpu", .alloc = m->alloc,
	                      .resize = m->resize, .release = m->release, .user = m->user};
	LateCode *late = s->device ? new_late(s, code->kept) : NULL;
	if (s->device && !late)
		return false;
	texo_private_maker maker = {0};
	if (late)
		maker = late_maker(late);
	int64_t start = s->host->clock.now_ns(s->host->clock.user);
	texo_status st = texo_rt_create(&ro, &l->rt);
	if (st == TEXO_OK && s->device)
		disk_cache_figures(s, l->rt);
	if (st == TEXO_OK)
		st = texo_private_load(l->rt, code->code->image, code->code->image_size, &maker, &l->program);
	if (st == TEXO_OK)
		st = texo_program_get_kernel(l->program, NULL, &l->kernel);
	l->load_ns = s->host->clock.now_ns(s->host->clock.user) - start;
	return st == TEXO_OK || refused(s, st);
}

static void
release(Session *s, CpuLaunch *l)
{
	if (l->device && l->rt)
		device_free(l);
	texo_program_destroy(l->program);
	texo_rt_destroy(l->rt);
	s->arena.unwind = s->data.unwind = &s->unwind;
}

/* What the runtime owns is given back before an unwinding goes on. */
bool
cpu_loaded(Session *s, const Binding *b, const LaunchCode *code, Results *out, CpuLaunchFn *body, void *user)
{
	CpuLaunch *l = ARENA_NEW(&s->arena, CpuLaunch); /* not locals: they change between setjmp and longjmp */
	Unwind *inner = ARENA_NEW(&s->arena, Unwind);
	if (!results_prepare(s, b, out))
		return false;
	collect_args(s, b, out, l);
	if (setjmp(inner->env)) {
		release(s, l);
		arena_unwind(&s->arena, inner->why, "%s", inner->text);
	}
	s->arena.unwind = s->data.unwind = inner;
	bool ok = load(s, code, l) && body(s, l, user);
	release(s, l);
	return ok;
}

/* --- one launch --- */

typedef struct {
	const Graph *graph;
	Diags *diags;
	Results *out;
} Once;

static bool
launch_once(Session *s, CpuLaunch *l, void *user)
{
	const Once *once = user;
	texo_status st = cpu_prepare(s, l);
	if (st == TEXO_OK) {
		int64_t start = s->host->clock.now_ns(s->host->clock.user);
		st = cpu_launch(l);
		int64_t took = s->host->clock.now_ns(s->host->clock.user) - start;
		say_detail(s, "ran in %.3f ms, %zu bytes of workspace", (double)took / 1e6, l->bytes);
	}
	if (st == TEXO_OK && l->device)
		st = device_move_out(l);
	return cpu_outcome(s, l, st, once->graph, once->diags, once->out);
}

bool
run_cpu(Session *s, const Binding *b, const LaunchCode *code, Diags *diags, Results *out)
{
	Once once = {b->graph, diags, out};
	return cpu_loaded(s, b, code, out, launch_once, &once);
}
