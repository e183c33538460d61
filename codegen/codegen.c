/* codegen.c: programs to an artefact, or one kernel of it to its code. LLVM's objects live inside emit_inside, or in
 * another process. An artefact that is made `late` needs none of them. */
#include "codegen/codegen.h"

#include "codegen/equal_kernels.h"
#include "codegen/image_write.h"
#include "codegen/job.h"
#include "codegen/legal.h"

enum { LATE_LEVEL = 2 }; /* of LLVM, as CodegenOptions.opt_level */

typedef struct {
	Arena *arena;
	const Program *const *program;
	uint32_t nprogram;
	const CodegenOptions *options;
	CodegenResult *out;
	Target target;
	const char ***symbol; /* [program][kernel] */
	const char ***entry;  /* the same in the artefact: on a GPU equal kernels have one */
	ImageModules module;  /* on a GPU */
	PlainKernels plain;
	Emit emit;
} Job;

static CodegenStatus
failed(Job *j, const char *message)
{
	j->out->message = arena_text(j->arena, "%s", message);
	return CODEGEN_FAILED;
}

static void
name_kernels(Job *j)
{
	bool dots = j->target.arch == ARCH_X86; /* a name of PTX has none */
	j->symbol = ARENA_ARRAY(j->arena, const char **, j->nprogram);
	for (uint32_t p = 0; p < j->nprogram; p++) {
		const Program *from = j->program[p];
		const char *graph = name_text(from->graph->names, from->graph->name);
		j->symbol[p] = ARENA_ARRAY(j->arena, const char *, from->kernel.n);
		for (uint32_t k = 0; k < from->kernel.n; k++)
			j->symbol[p][k] = arena_text(j->arena, dots ? "%s.%u.%u" : "%s_%u_%u", graph, p, k);
	}
}

static void
add_kernel(Job *j, ModuleJob *m, uint32_t p, uint32_t k)
{
	const Kernel *kernel = &j->program[p]->kernel.at[k];
	if (kernel->early)
		bug(j->arena, "code of kernel %s, whose passes are to come", j->symbol[p][k]);
	vec_push(j->arena, &m->kernel, ((JobKernel){kernel->tir, j->symbol[p][k], kernel->serial}));
}

/* By LLVM here, where j->emit is open, or elsewhere. */
static bool
make_module(Job *j, const ModuleJob *m, JobMade *made)
{
	const CodegenOptions *o = j->options;
	if (!o->elsewhere)
		return module_make(&j->emit, m, made) || failed(j, j->emit.error) == CODEGEN_OK;
	if (module_elsewhere(j->arena, o->elsewhere, m, made, &j->out->message) == CODEGEN_OK)
		return true;
	j->out->unanswered = !j->out->message;
	return false;
}

/* All kernels in the one module. */
static bool
make_together(Job *j, JobMade *made)
{
	const CodegenOptions *o = j->options;
	ModuleJob m = {.cpu = o->cpu, .level = o->opt_level, .want_llvm = o->want_llvm, .want_asm = o->want_asm};
	m.want_code = !o->no_code && j->target.arch == ARCH_X86;
	for (uint32_t p = 0; p < j->nprogram; p++)
		for (uint32_t k = 0; k < j->program[p]->kernel.n; k++)
			add_kernel(j, &m, p, k);
	return make_module(j, &m, made);
}

/* --- a GPU's modules, a kernel each --- */

/* What equal kernels share. */
typedef struct {
	const void *text, *machine;
	size_t text_bytes, machine_bytes;
} Made;

static bool
assemble(Job *j, Made *m)
{
	const CodegenOptions *o = j->options;
	const char *why = "";
	if (!o->assemble || o->assemble(o->user, j->arena, m->text, j->target.tune, &m->machine, &m->machine_bytes, &why))
		return true;
	j->out->message = why;
	j->out->unassembled = true;
	return false;
}

static bool
make(Job *j, uint32_t p, uint32_t k, Made *m)
{
	ModuleJob job = {.cpu = j->options->cpu, .level = j->options->opt_level, .want_code = true};
	JobMade made = {0};
	add_kernel(j, &job, p, k);
	if (!make_module(j, &job, &made))
		return false;
	m->text = made.code;
	m->text_bytes = made.n;
	return assemble(j, m);
}

/* A late one is kept as it is. */
static bool
add_modules(Job *j, uint32_t p, uint32_t k, uint32_t number)
{
	PlainKernel *x = kernel_plain(j->arena, &j->plain, &j->program[p]->kernel.at[k], j->program[p]->graph->fp, j->symbol[p][k]);
	j->entry[p][k] = x->symbol;
	if (j->options->late) {
		vec_push(j->arena, &j->module, ((ImageModuleInput){number, IMG_TIR, x->tir, x->n + 1}));
		return true;
	}
	Made *m = x->made ? x->made : ARENA_NEW(j->arena, Made);
	if (!x->made && !make(j, p, k, m))
		return false;
	x->made = m;
	if (m->machine)
		vec_push(j->arena, &j->module, ((ImageModuleInput){number, IMG_CUBIN, m->machine, m->machine_bytes}));
	vec_push(j->arena, &j->module, ((ImageModuleInput){number, IMG_PTX, m->text, m->text_bytes}));
	return true;
}

static bool
lower_apart(Job *j)
{
	uint32_t number = 0;
	j->entry = ARENA_ARRAY(j->arena, const char **, j->nprogram);
	for (uint32_t p = 0; p < j->nprogram; p++) {
		j->entry[p] = ARENA_ARRAY(j->arena, const char *, j->program[p]->kernel.n);
		for (uint32_t k = 0; k < j->program[p]->kernel.n; k++)
			if (!add_modules(j, p, k, number++))
				return false;
	}
	return true;
}

/* --- the whole --- */

static bool
write_image(Job *j, const JobMade *made)
{
	ImageInput in = {.program = j->program, .nprogram = j->nprogram, .code = made->code, .code_size = made->n};
	const char *why = NULL;
	bool gpu = j->target.arch == ARCH_NVPTX;
	in.target = gpu ? IMG_TARGET_CUDA : IMG_TARGET_CPU;
	in.needs[0] = gpu ? j->target.sm : j->target.features;
	in.needs[1] = j->target.sm_only;
	in.module = &j->module;
	if (gpu && !lower_apart(j))
		return false;
	in.symbol = (const char *const *const *)(gpu ? j->entry : j->symbol);
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
	JobMade made = {0};
	bool together = o->want_llvm || o->want_asm || j->target.arch != ARCH_NVPTX;
	if (!o->elsewhere && (together || !o->late) && !emit_open(&j->emit, j->arena, &j->target, o->opt_level, o->machines))
		return failed(j, j->emit.error);
	name_kernels(j);
	if (together && !make_together(j, &made))
		return CODEGEN_FAILED;
	j->out->llvm = made.llvm;
	j->out->assembly = made.assembly;
	return o->no_code || write_image(j, &made) ? CODEGEN_OK : CODEGEN_FAILED;
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

/* --- one kernel of a late artefact --- */

typedef struct {
	Arena *arena;
	const LateKernel *kernel;
	const char *cpu;
	const TirKernel *tir;
	Target target;
	Emit emit;
	JobMade made;
} LateJob;

static CodegenStatus
generate_late(void *user)
{
	LateJob *j = user;
	const LateKernel *k = j->kernel;
	ModuleJob m = {.level = LATE_LEVEL, .want_code = true};
	vec_push(j->arena, &m.kernel, ((JobKernel){j->tir, k->symbol, k->serial}));
	return emit_open(&j->emit, j->arena, &j->target, LATE_LEVEL, k->machines) && module_make(&j->emit, &m, &j->made)
	       ? CODEGEN_OK : CODEGEN_FAILED;
}

/* The text was written here, and is checked all the same: it may have been in a file meanwhile. */
static CodegenStatus
read_late(LateJob *j, const char **why)
{
	const LateKernel *k = j->kernel;
	FpMode fp = FP_STRICT;
	bool early;
	j->tir = kernel_plain_read(j->arena, k->tir, k->n, &early, &fp, why);
	if (!j->tir || !tir_verify(j->tir, j->arena, why))
		return CODEGEN_FAILED;
	if (early && !k->finish)
		bug(j->arena, "code of kernel %s, whose passes are to come", k->symbol);
	if (early) /* the passes' manager verifies what they leave */
		j->tir = k->finish(j->cpu, fp, j->tir, j->arena);
	return kernel_legal(j->tir, &j->target, j->arena, why) ? CODEGEN_OK : CODEGEN_ILLEGAL;
}

CodegenStatus
codegen_kernel(Arena *a, const char *cpu, const LateKernel *k, const char **ptx, size_t *n, const char **why)
{
	LateJob *j = ARENA_NEW(a, LateJob);
	*j = (LateJob){.arena = a, .kernel = k, .cpu = cpu};
	if (!target_named(cpu, &j->target) || j->target.arch != ARCH_NVPTX) {
		*why = arena_text(a, "'%s' is no GPU", cpu);
		return CODEGEN_FAILED;
	}
	CodegenStatus status = read_late(j, why);
	if (status == CODEGEN_OK)
		status = emit_inside(&j->emit, a, generate_late, j);
	if (j->emit.error[0])
		*why = arena_text(a, "%s", j->emit.error);
	*ptx = j->made.code;
	*n = j->made.n;
	return status;
}
