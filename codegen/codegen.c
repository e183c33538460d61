/* codegen.c: programs to an artefact. LLVM's objects live inside emit_inside. */
#include "codegen/codegen.h"

#include "codegen/emit.h"
#include "codegen/image_write.h"
#include "codegen/legal.h"
#include "codegen/lower.h"

typedef struct {
	Arena *arena;
	const Program *const *program;
	uint32_t nprogram;
	const CodegenOptions *options;
	CodegenResult *out;
	Target target;
	const char ***symbol; /* [program][kernel] */
	Emit emit;
} Job;

static CodegenStatus
failed(Job *j, const char *message)
{
	j->out->message = arena_text(j->arena, "%s", message);
	return CODEGEN_FAILED;
}

static void
lower_programs(Job *j)
{
	j->symbol = ARENA_ARRAY(j->arena, const char **, j->nprogram);
	for (uint32_t p = 0; p < j->nprogram; p++) {
		const Program *from = j->program[p];
		const char *graph = name_text(from->graph->names, from->graph->name);
		j->symbol[p] = ARENA_ARRAY(j->arena, const char *, from->kernel.n);
		for (uint32_t k = 0; k < from->kernel.n; k++) {
			/* a name of PTX has no dot */
			bool dots = j->target.arch == ARCH_X86;
			j->symbol[p][k] = arena_text(j->arena, dots ? "%s.%u.%u" : "%s_%u_%u", graph, p, k);
			lower_kernel(j->arena, j->emit.module, j->emit.builder, &j->target, from->kernel.at[k].tir,
			             j->symbol[p][k], from->kernel.at[k].serial);
		}
	}
}

static bool
write_image(Job *j)
{
	ImageInput in = {.program = j->program, .nprogram = j->nprogram, .symbol = (const char *const *const *)j->symbol};
	const char *why = NULL;
	bool gpu = j->target.arch == ARCH_NVPTX;
	in.target = gpu ? IMG_TARGET_CUDA : IMG_TARGET_CPU;
	in.needs[0] = gpu ? j->target.sm : j->target.features;
	in.needs[1] = j->target.sm_only;
	if (!(gpu ? emit_ptx(&j->emit, &in.code, &in.code_size) : emit_object(&j->emit, &in.code, &in.code_size))) {
		failed(j, j->emit.error);
		return false;
	}
	if (image_write(j->arena, &in, &j->out->image, &j->out->image_size, &why))
		return true;
	failed(j, why);
	return false;
}

static CodegenStatus
generate(void *user)
{
	Job *j = user;
	const CodegenOptions *o = j->options;
	if (!emit_open(&j->emit, j->arena, &j->target, o->opt_level))
		return failed(j, j->emit.error);
	lower_programs(j);
	if (!emit_optimise(&j->emit))
		return failed(j, j->emit.error);
	if (o->want_llvm)
		j->out->llvm = emit_llvm(&j->emit);
	if (o->want_asm && !emit_assembly(&j->emit, &j->out->assembly))
		return failed(j, j->emit.error);
	if (!o->no_code && !write_image(j))
		return CODEGEN_FAILED;
	return CODEGEN_OK;
}

CodegenStatus
codegen_cpu(Arena *a, const Program *const *program, uint32_t nprogram, const CodegenOptions *o,
            CodegenResult *out)
{
	Job *j = ARENA_NEW(a, Job);
	*j = (Job){.arena = a, .program = program, .nprogram = nprogram, .options = o, .out = out};
	*out = (CodegenResult){0};
	if (!target_named(o->cpu, &j->target)) {
		out->message = arena_text(a, "no processor '%s'; there are %s", o->cpu, target_names(a));
		return CODEGEN_FAILED;
	}
	CodegenStatus status = programs_legal(program, nprogram, &j->target, a, &out->message);
	return status == CODEGEN_OK ? emit_inside(&j->emit, a, generate, j) : status;
}
