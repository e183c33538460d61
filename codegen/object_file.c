/* object_file.c: see object_file.h. What is checked and known before LLVM, the artefacts, and the texts beside the
 * object, which object_make.c makes. */
#include "codegen/object_file.h"

#include <string.h>

#include "codegen/image_write.h"
#include "codegen/job.h"
#include "codegen/legal.h"
#include "ir/image.h"

typedef struct {
	Arena *arena;
	const ObjectInput *in;
	ObjectLevel *level;     /* in->nlevel, those with most features first */
	ObjectLevel *gpu;       /* in->ngpu, best first */
	ObjectGpu *gpu_code;
	CodegenResult *image;   /* by GPU */
	ObjectResult *out;
	Target *target;         /* by level */
	CSignature *signature;  /* by program */
	ObjectJob job;
	JobMade made;
	Emit emit;
} Job;

static CodegenStatus
failed(Job *j, const char *message)
{
	j->out->message = arena_text(j->arena, "%s", message);
	return CODEGEN_FAILED;
}

const char *const *
codegen_object_cpus(void)
{
	static const char *const best_first[] = {"sapphirerapids", "x86-64-v4", "x86-64-v3", "x86-64", NULL};
	return best_first;
}

/* --- before LLVM --- */

static unsigned
feature_count(const char *cpu)
{
	Target t;
	unsigned n = 0;
	for (uint64_t f = target_named(cpu, &t) ? t.features : 0; f; f &= f - 1)
		n++;
	return n;
}

static void
order_gpus(Job *j)
{
	j->gpu = ARENA_ARRAY(j->arena, ObjectLevel, j->in->ngpu + 1);
	for (uint32_t n = 0; n < j->in->ngpu; n++) {
		uint32_t at = n;
		for (; at > 0 && codegen_sm_before(j->in->gpu[n].cpu, j->gpu[at - 1].cpu); at--)
			j->gpu[at] = j->gpu[at - 1];
		j->gpu[at] = j->in->gpu[n];
	}
}

static void
order_levels(Job *j)
{
	j->level = ARENA_ARRAY(j->arena, ObjectLevel, j->in->nlevel + 1);
	for (uint32_t n = 0; n < j->in->nlevel; n++) {
		uint32_t at = n;
		for (; at > 0 && feature_count(j->level[at - 1].cpu) < feature_count(j->in->level[n].cpu); at--)
			j->level[at] = j->level[at - 1];
		j->level[at] = j->in->level[n];
	}
}

static CodegenStatus
check_level(Job *j, uint32_t n)
{
	const ObjectLevel *level = &j->level[n];
	if (strcmp(level->cpu, "host") == 0 || !target_named(level->cpu, &j->target[n]) ||
	    j->target[n].arch != ARCH_X86)
		return failed(j, arena_text(j->arena, "no processor '%s' for an object", level->cpu));
	return programs_legal(level->program, j->in->nprogram, &j->target[n], j->arena, &j->out->message);
}

static CodegenStatus
check(Job *j)
{
	const ObjectInput *in = j->in;
	uint32_t all = in->nlevel + in->ngpu;
	const Program *const **program = ARENA_ARRAY(j->arena, const Program *const *, all + 1);
	order_levels(j);
	order_gpus(j);
	j->target = ARENA_ARRAY(j->arena, Target, in->nlevel + 1);
	j->signature = ARENA_ARRAY(j->arena, CSignature, in->nprogram);
	for (uint32_t n = 0; n < in->nlevel; n++) {
		CodegenStatus status = check_level(j, n);
		if (status != CODEGEN_OK)
			return status;
		program[n] = j->level[n].program;
	}
	for (uint32_t n = 0; n < in->ngpu; n++)
		program[in->nlevel + n] = j->gpu[n].program;
	for (uint32_t p = 0; p < in->nprogram; p++)
		if (!c_signature(j->arena, program, all, p, &j->signature[p], &j->out->message))
			return CODEGEN_ILLEGAL;
	return c_names_differ(j->arena, j->signature, in->nprogram, &j->out->message) ? CODEGEN_OK : CODEGEN_ILLEGAL;
}

/* --- GPUs --- */

/* The artefact, which has its kernels apart, and what else is asked for: one text of all kernels, and its code. */
static CodegenStatus
generate_gpu(Job *j, uint32_t n)
{
	const ObjectInput *in = j->in;
	const ObjectLevel *level = &j->gpu[n];
	ObjectGpu *code = &j->gpu_code[n];
	CodegenOptions o = {.cpu = level->cpu, .want_asm = in->want_ptx || in->want_cubin, .opt_level = in->opt_level,
	                    .assemble = in->assemble, .user = in->user, .elsewhere = in->elsewhere};
	CodegenStatus status = codegen_cpu(j->arena, level->program, in->nprogram, &o, &j->image[n]);
	j->out->message = j->image[n].message;
	j->out->unassembled = j->image[n].unassembled;
	j->out->unanswered = j->image[n].unanswered;
	if (status != CODEGEN_OK)
		return status;
	code->name = level->cpu;
	code->ptx = j->image[n].assembly;
	if (!in->want_cubin || in->assemble(in->user, j->arena, code->ptx, level->cpu, &code->cubin, &code->cubin_bytes,
	                                  &j->out->message))
		return CODEGEN_OK;
	j->out->unassembled = true;
	return CODEGEN_FAILED;
}

static CodegenStatus
generate_gpus(Job *j)
{
	CodegenStatus status = CODEGEN_OK;
	j->gpu_code = ARENA_ARRAY(j->arena, ObjectGpu, j->in->ngpu + 1);
	j->image = ARENA_ARRAY(j->arena, CodegenResult, j->in->ngpu + 1);
	j->out->gpu = j->gpu_code;
	for (uint32_t n = 0; status == CODEGEN_OK && n < j->in->ngpu; n++)
		status = generate_gpu(j, n);
	return status;
}

/* --- what LLVM makes of it --- */

/* The kernels of a level, and the artefact, without code. */
static bool
add_level(Job *j, uint32_t n)
{
	const ObjectLevel *level = &j->level[n];
	const char ***symbol = ARENA_ARRAY(j->arena, const char **, j->in->nprogram);
	JobLevel to = {.cpu = level->cpu};
	const char *why = NULL;
	for (uint32_t p = 0; p < j->in->nprogram; p++) {
		const Program *from = level->program[p];
		symbol[p] = ARENA_ARRAY(j->arena, const char *, from->kernel.n);
		for (uint32_t k = 0; k < from->kernel.n; k++) {
			symbol[p][k] = arena_text(j->arena, "%s.%u.%s", j->signature[p].name, k, level->cpu);
			JobKernel kernel = {from->kernel.at[k].tir, symbol[p][k], from->kernel.at[k].serial};
			vec_push(j->arena, &to.kernel, kernel);
		}
	}
	ImageInput in = {.program = level->program, .nprogram = j->in->nprogram, .symbol = (const char *const *const *)symbol,
	                 .target = IMG_TARGET_CPU, .needs = {j->target[n].features}};
	if (!image_write(j->arena, &in, &to.tables.bytes, &to.tables.n, &why)) {
		failed(j, why);
		return false;
	}
	vec_push(j->arena, &j->job.level, to);
	return true;
}

static bool
plan(Job *j)
{
	const ObjectInput *in = j->in;
	j->job.opt_level = in->opt_level;
	for (uint32_t n = 0; n < in->nlevel; n++)
		if (!add_level(j, n))
			return false;
	for (uint32_t n = 0; n < in->ngpu; n++)
		vec_push(j->arena, &j->job.gpu, ((ObjectBitcode){j->image[n].image, j->image[n].image_size}));
	for (const ObjectBitcode *b = in->launch; b && b->n; b++)
		vec_push(j->arena, &j->job.launch, *b);
	j->job.signature = j->signature;
	j->job.nsignature = in->nprogram;
	return true;
}

/* --- texts --- */

static const char *
level_names(Job *j)
{
	Text out;
	text_init(&out, j->arena);
	for (uint32_t n = 0; n < j->in->nlevel; n++)
		text_printf(&out, "%s%s", n ? ", " : "", j->level[n].cpu);
	for (uint32_t n = 0; n < j->in->ngpu; n++)
		text_printf(&out, "%s%s", out.n ? ", " : "", j->gpu[n].cpu);
	return text_get(&out);
}

static void
put_kernels(const Program *from, Text *out)
{
	text_printf(out, "\"kernels\":[");
	for (uint32_t k = 0; k < from->kernel.n; k++) {
		const Kernel *kernel = &from->kernel.at[k];
		const char *name = name_text(kernel->tir->names, kernel->tir->name);
		text_printf(out, "%s{\"name\":", k ? "," : "");
		text_json(out, name, strlen(name));
		text_printf(out, ",\"template\":\"%s\"}", template_info[kernel->plan.tmpl].text);
	}
	text_printf(out, "]}");
}

static void
put_levels(Job *j, uint32_t p, Text *out)
{
	for (uint32_t n = 0; n < j->in->nlevel; n++) {
		text_printf(out, "%s{\"cpu\":\"%s\",\"features\":\"%s\",", n ? "," : "", j->level[n].cpu,
		            target_feature_words(j->target[n].features, j->arena));
		put_kernels(j->level[n].program[p], out);
	}
	for (uint32_t n = 0; n < j->in->ngpu; n++) {
		text_printf(out, "%s{\"gpu\":\"%s\",\"code\":[%s\"ptx\"],", n || j->in->nlevel ? "," : "", j->gpu[n].cpu,
		            j->in->assemble ? "\"cubin\"," : "");
		put_kernels(j->gpu[n].program[p], out);
	}
}

static const char *
manifest(Job *j)
{
	Text out;
	text_init(&out, j->arena);
	text_printf(&out, "{\"format\":1,\"links\":\"%s\",\"graphs\":[", j->in->launch ? "m" : "texo-rt");
	for (uint32_t p = 0; p < j->in->nprogram; p++) {
		text_printf(&out, "%s{\"signature\":%s,\"levels\":[", p ? "," : "",
		            signature_json(j->arena, j->signature[p].graph));
		put_levels(j, p, &out);
		text_printf(&out, "]}");
	}
	text_printf(&out, "]}\n");
	return text_get(&out);
}

static void
list_symbols(Job *j)
{
	VEC(const char *) symbol = {0};
	for (uint32_t p = 0; p < j->in->nprogram; p++)
		for (const CEnding *e = c_endings(); e->ending; e++)
			if ((e->cpu && j->in->nlevel) || (e->gpu && j->in->ngpu))
				vec_push(j->arena, &symbol, (const char *)arena_text(j->arena, "%s%s", j->signature[p].name, e->ending));
	j->out->symbol = symbol.at;
	j->out->nsymbol = symbol.n;
}

/* --- the whole --- */

static CodegenStatus
make_here(void *user)
{
	Job *j = user;
	Target baseline;
	target_named(OBJECT_CPU, &baseline);
	return emit_open(&j->emit, j->arena, &baseline, j->in->opt_level, NULL) && object_make(&j->emit, &j->job, &j->made)
	       ? CODEGEN_OK : failed(j, j->emit.error);
}

static CodegenStatus
generate(Job *j)
{
	CodegenStatus status;
	if (!plan(j))
		return CODEGEN_FAILED;
	if (j->in->elsewhere) {
		status = object_elsewhere(j->arena, j->in->elsewhere, &j->job, &j->made, &j->out->message);
		j->out->unanswered = !j->out->message;
	} else {
		status = emit_inside(&j->emit, j->arena, make_here, j);
	}
	if (status != CODEGEN_OK)
		return status;
	j->out->object = j->made.code;
	j->out->size = j->made.n;
	j->out->header = c_header(j->arena, j->signature, j->in->nprogram, level_names(j), j->in->nlevel > 0,
	                          j->in->ngpu > 0);
	j->out->manifest = manifest(j);
	list_symbols(j);
	return CODEGEN_OK;
}

CodegenStatus
codegen_object(Arena *a, const ObjectInput *in, ObjectResult *out)
{
	Job *j = ARENA_NEW(a, Job);
	*j = (Job){.arena = a, .in = in, .out = out};
	*out = (ObjectResult){0};
	CodegenStatus status = check(j);
	if (status == CODEGEN_OK)
		status = generate_gpus(j);
	return status == CODEGEN_OK ? generate(j) : status;
}
