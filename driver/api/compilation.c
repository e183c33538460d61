/* compilation.c: one run of the stages with all that it needs around it. What the host program has set
 * for its own arithmetic and text (rounding, flushing, the decimal point) is put aside meanwhile, in
 * this thread only: constants that are folded and numbers that are printed must not depend on it. */
#include "driver/api/deep_stack.h"
#include "driver/api/objects.h"

#include <fenv.h>
#include <locale.h>
#include <string.h>

static texo_status
unwound(const Compilation *c)
{
	switch (c->unwind.why) {
	case UNWIND_NO_MEMORY:
		return texo_private_fail(TEXO_NO_MEMORY, "out of memory");
	case UNWIND_LIMIT:
		return texo_private_fail(TEXO_LIMIT, "%s: %s", c->request ? c->request->name : "", c->unwind.text);
	case UNWIND_NONE:
	case UNWIND_BUG:
		break;
	}
	return texo_private_fail(TEXO_INTERNAL, "this is a bug of texo, please report it: %s", c->unwind.text);
}

/* Apart, so that no local lives across the longjmp. */
static texo_status
guarded(Compilation *c, CompilationFn *body)
{
	if (setjmp(c->unwind.env) == 0)
		return body(c);
	return unwound(c);
}

typedef struct {
	Compilation *compilation;
	CompilationFn *body;
} Run;

static texo_status
run(void *arg)
{
	const Run *r = arg;
	fenv_t floats;
	locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = (locale_t)0;
	fegetenv(&floats);
	fesetenv(FE_DFL_ENV);
	if (plain)
		before = uselocale(plain);
	texo_status s = guarded(r->compilation, r->body);
	if (plain) {
		uselocale(before);
		freelocale(plain);
	}
	fesetenv(&floats);
	return s;
}

texo_status
compilation_run(Compilation *c, CompilationFn *body, Arena *owned)
{
	Run r = {c, body};
	arena_init(&c->arena, &c->ctx->host.memory, &c->unwind);
	c->arena.limit = c->ctx->compile_bytes;
	if (owned)
		owned->unwind = &c->unwind;
	texo_status s = on_deep_stack(run, &r);
	arena_free(&c->arena);
	return s;
}

/* --- the steps --- */

/* "cuda" is the GPU that is here, if we have code for it. */
static void
take_gpu(Compilation *c, const char *target)
{
	texo_device d = {.struct_size = sizeof d};
	texo_rt *rt;
	c->gpu = true;
	if (strcmp(target, "cuda") != 0 || ctx_gpu(c->ctx, &rt) || texo_rt_get_device(rt, &d))
		return;
	const char *name = codegen_sm_for(d.capability);
	c->cpu = name ? name : c->cpu;
}

static texo_status
take_target(Compilation *c)
{
	const char *target = c->request->target;
	switch (target_parse(&c->arena, target, &c->cpu)) {
	case TARGET_CPU:
		return TEXO_OK;
	case TARGET_CUDA:
		take_gpu(c, target);
		return TEXO_OK;
	case TARGET_NO_SUCH_GPU:
		return texo_private_fail(TEXO_INVALID, "options: target is '%s'; the GPUs are %s", target, codegen_sm_names(&c->arena));
	case TARGET_NO_SUCH_CPU:
		return texo_private_fail(TEXO_INVALID, "options: target is '%s'; the processors are %s", target,
		                         codegen_cpu_names(&c->arena));
	case TARGET_NONE:
		break;
	}
	return texo_private_fail(TEXO_INVALID, "options: target is '%s'; it can be cpu, cpu:NAME, cuda or cuda:NAME", target);
}

texo_status
compilation_source(Compilation *c)
{
	const Request *r = c->request;
	texo_status s = take_target(c);
	if (!s)
		unit_begin(&c->arena, r->name, r->text, r->n, &c->unit);
	return s;
}

texo_status
compilation_check(Compilation *c)
{
	const Request *r = c->request;
	FrontendOptions fo = {.fp = r->fp, .statics = r->statics, .nstatics = r->nstatics,
	                      .host = r->flags & TEXO_NO_FILES ? NULL : &c->ctx->host};
	unit_check(&c->arena, &c->unit, &fo, (r->flags & TEXO_WERROR) != 0);
	if (c->unit.failed)
		return texo_private_fail(TEXO_COMPILE_ERROR, "%s has errors; the module's diagnostics say which", r->name);
	return TEXO_OK;
}

texo_status
compilation_lower(Compilation *c, bool late)
{
	PassOptions po;
	Text log;
	text_init(&log, &c->arena);
	pass_options_for(c->cpu, &c->ctx->host, &po);
	fuse_named(c->request->fuse, &po.fuse); /* checked, or a worker's request of our own */
	po.late = late;
	po.verify_each = (c->request->flags & TEXO_VERIFY) != 0;
	po.remarks = (c->request->flags & TEXO_REMARKS) != 0;
	c->program = programs_of(&c->arena, c->unit.unit, &po, &log);
	if (log.n)
		ctx_log(c->ctx, TEXO_LOG_NOTE, "%s", text_get(&log));
	return TEXO_OK;
}

texo_status
compilation_code(Compilation *c, const CodegenOptions *o)
{
	CodegenOptions with = *o;
	with.machines = &c->ctx->machines;
	switch (codegen_cpu(&c->arena, c->program, c->unit.unit->graph.n, &with, &c->code)) {
	case CODEGEN_OK:
		return TEXO_OK;
	case CODEGEN_ILLEGAL:
		return texo_private_fail(TEXO_NOT_BUILT, "%s: the target can't run this: %s", c->request->name, c->code.message);
	case CODEGEN_FAILED:
		break;
	}
	return texo_private_fail(TEXO_INTERNAL, "%s: code generation failed: %s", c->request->name, c->code.message);
}
