/* serve.c: a job that another process sent (job_elsewhere.c), done here. Its tile IR is verified and checked for its
 * processor again, since LLVM ends the process on what it can't select. */
#include "codegen/job.h"
#include "codegen/legal.h"

typedef struct {
	Arena *arena;
	CodegenMachines *machines;
	PartReader bytes;
	ModuleJob module;
	ObjectJob object;
	Target target;
	JobMade made;
	const char *why; /* NULL: it was done, or LLVM says */
	Emit emit;
} Serve;

static bool
kernels_legal(Serve *s, const JobKernels *k, const char *cpu, Target *t)
{
	if (!target_named(cpu, t)) {
		s->why = arena_text(s->arena, "there is no processor '%s'", cpu);
		return false;
	}
	for (uint32_t n = 0; n < k->n; n++)
		if (!tir_verify(k->at[n].tir, s->arena, &s->why) || !kernel_legal(k->at[n].tir, t, s->arena, &s->why))
			return false;
	return true;
}

static CodegenStatus
make_module(void *user)
{
	Serve *s = user;
	return emit_open(&s->emit, s->arena, &s->target, s->module.level, s->machines) &&
	       module_make(&s->emit, &s->module, &s->made) ? CODEGEN_OK : CODEGEN_FAILED;
}

static CodegenStatus
make_object(void *user)
{
	Serve *s = user;
	target_named(OBJECT_CPU, &s->target);
	return emit_open(&s->emit, s->arena, &s->target, s->object.opt_level, NULL) &&
	       object_make(&s->emit, &s->object, &s->made) ? CODEGEN_OK : CODEGEN_FAILED;
}

static bool
serve_module(Serve *s)
{
	if (!module_read(s->arena, &s->bytes, &s->module, &s->why))
		return false;
	return kernels_legal(s, &s->module.kernel, s->module.cpu, &s->target) &&
	       emit_inside(&s->emit, s->arena, make_module, s) == CODEGEN_OK;
}

static bool
serve_object(Serve *s)
{
	Target t;
	if (!object_read(s->arena, &s->bytes, &s->object, &s->why))
		return false;
	for (uint32_t n = 0; n < s->object.level.n; n++)
		if (!kernels_legal(s, &s->object.level.at[n].kernel, s->object.level.at[n].cpu, &t))
			return false;
	return emit_inside(&s->emit, s->arena, make_object, s) == CODEGEN_OK;
}

bool
codegen_serve(Arena *a, const void *job, size_t n, CodegenMachines *machines, Text *answer)
{
	Serve *s = ARENA_NEW(a, Serve);
	*s = (Serve){.arena = a, .machines = machines, .bytes = {job, n, false}};
	uint64_t kind = part_get_number(&s->bytes);
	bool done = kind == JOB_MODULE ? serve_module(s) : kind == JOB_OBJECT && serve_object(s);
	if (!done && !s->why && !s->emit.error[0])
		return false;
	part_put_number(answer, done);
	part_put_text(answer, done ? "" : s->why ? s->why : s->emit.error);
	part_put_text(answer, s->made.llvm);
	part_put_text(answer, s->made.assembly);
	part_put(answer, s->made.code, s->made.n);
	return true;
}
