/* object_file.c: see object_file.h. One LLVM module holds the kernels of every level, each with the
 * instruction sets of its level as attributes, so that one object serves all processors; an artefact
 * without code for each level, as constants; an artefact with code for each GPU; and the C functions.
 * With `launch`, the runtime's part in a launch is linked in and nothing of it that isn't called is
 * kept. */
#include "codegen/object_file.h"

#include <string.h>

#include "codegen/c_signature.h"
#include "codegen/emit.h"
#include "codegen/image_write.h"
#include "codegen/legal.h"
#include "codegen/lower.h"
#include "codegen/object_entry.h"
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
	LLVMTypeRef ptr, i32;
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

/* The artefact, and what else can be asked for: one text of all kernels, and its code. */
static CodegenStatus
generate_gpu(Job *j, uint32_t n)
{
	const ObjectInput *in = j->in;
	const ObjectLevel *level = &j->gpu[n];
	ObjectGpu *code = &j->gpu_code[n];
	CodegenOptions o = {.cpu = level->cpu, .want_asm = true, .opt_level = in->opt_level, .assemble = in->assemble,
	                    .user = in->user};
	CodegenStatus status = codegen_cpu(j->arena, level->program, in->nprogram, &o, &j->image[n]);
	j->out->message = j->image[n].message;
	j->out->unassembled = j->image[n].unassembled;
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

/* --- constants --- */

static LLVMValueRef
constant(Job *j, const char *name, LLVMValueRef value)
{
	LLVMValueRef g = LLVMAddGlobal(j->emit.module, LLVMTypeOf(value), name);
	LLVMSetInitializer(g, value);
	LLVMSetGlobalConstant(g, 1);
	LLVMSetLinkage(g, LLVMInternalLinkage);
	LLVMSetAlignment(g, 8);
	return g;
}

/* The artefact of a level, without code. */
static bool
add_tables(Job *j, uint32_t n, const char *const *const *symbol, LLVMValueRef *out)
{
	ImageInput in = {.program = j->level[n].program, .nprogram = j->in->nprogram, .symbol = symbol,
	                 .target = IMG_TARGET_CPU, .needs = {j->target[n].features}};
	const void *bytes;
	const char *why = NULL;
	size_t size;
	if (!image_write(j->arena, &in, &bytes, &size, &why)) {
		failed(j, why);
		return false;
	}
	LLVMValueRef text = LLVMConstStringInContext2(j->emit.ctx, bytes, size, 1);
	*out = constant(j, arena_text(j->arena, "texo.tables.%u", n), text);
	return true;
}

/* --- code --- */

static void
set_features(Job *j, LLVMValueRef f, const Target *t)
{
	const char *pair[2][2] = {{"target-cpu", "x86-64"}, {"target-features", target_feature_string(t, j->arena)}};
	for (unsigned k = 0; k < 2; k++)
		LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
		                        LLVMCreateStringAttribute(j->emit.ctx, pair[k][0], (unsigned)strlen(pair[k][0]),
		                                                  pair[k][1], (unsigned)strlen(pair[k][1])));
	LLVMSetLinkage(f, LLVMInternalLinkage);
}

/* The kernels of a level, and an ImageLevel in *out. */
static bool
add_level(Job *j, uint32_t n, LLVMValueRef *out)
{
	const ObjectLevel *level = &j->level[n];
	const char ***symbol = ARENA_ARRAY(j->arena, const char **, j->in->nprogram);
	VEC(LLVMValueRef) entry = {0};
	for (uint32_t p = 0; p < j->in->nprogram; p++) {
		const Program *from = level->program[p];
		symbol[p] = ARENA_ARRAY(j->arena, const char *, from->kernel.n);
		for (uint32_t k = 0; k < from->kernel.n; k++) {
			symbol[p][k] = arena_text(j->arena, "%s.%u.%s", j->signature[p].name, k, level->cpu);
			lower_kernel(j->arena, j->emit.module, j->emit.builder, &j->target[n], from->kernel.at[k].tir, symbol[p][k],
			             from->kernel.at[k].serial);
			LLVMValueRef f = LLVMGetNamedFunction(j->emit.module, symbol[p][k]);
			set_features(j, f, &j->target[n]);
			vec_push(j->arena, &entry, f);
		}
	}
	LLVMValueRef field[2];
	if (!add_tables(j, n, (const char *const *const *)symbol, &field[0]))
		return false;
	field[1] = constant(j, arena_text(j->arena, "texo.entry.%u", n), LLVMConstArray2(j->ptr, entry.at, entry.n));
	*out = LLVMConstStructInContext(j->emit.ctx, field, 2, 0);
	return true;
}

static LLVMValueRef
array_of(Job *j, const char *name, LLVMValueRef *at, uint32_t n)
{
	return n ? constant(j, name, LLVMConstArray2(LLVMTypeOf(at[0]), at, n)) : LLVMConstNull(j->ptr);
}

/* The artefacts, and a pointer of the runtime's that is NULL at first. */
static void
add_gpus(Job *j, LLVMValueRef *field)
{
	LLVMTypeRef i64 = LLVMInt64TypeInContext(j->emit.ctx);
	LLVMValueRef *gpu = ARENA_ARRAY(j->arena, LLVMValueRef, j->in->ngpu + 1);
	for (uint32_t n = 0; n < j->in->ngpu; n++) {
		size_t size = j->image[n].image_size;
		LLVMValueRef bytes = LLVMConstStringInContext2(j->emit.ctx, j->image[n].image, size, 1);
		LLVMValueRef pair[2] = {constant(j, arena_text(j->arena, "texo.gpu.%u", n), bytes), LLVMConstInt(i64, size, 0)};
		gpu[n] = LLVMConstStructInContext(j->emit.ctx, pair, 2, 0);
	}
	field[0] = LLVMConstInt(i64, j->in->ngpu, 0);
	field[1] = array_of(j, "texo.gpus", gpu, j->in->ngpu);
	field[2] = LLVMConstNull(j->ptr);
	if (j->in->ngpu == 0)
		return;
	field[2] = LLVMAddGlobal(j->emit.module, j->ptr, "texo.loaded");
	LLVMSetInitializer(field[2], LLVMConstNull(j->ptr));
	LLVMSetLinkage(field[2], LLVMInternalLinkage);
	LLVMSetAlignment(field[2], 8);
}

static bool
add_object(Job *j)
{
	uint32_t nlevel = j->in->nlevel;
	LLVMValueRef *level = ARENA_ARRAY(j->arena, LLVMValueRef, nlevel + 1);
	for (uint32_t n = 0; n < nlevel; n++)
		if (!add_level(j, n, &level[n]))
			return false;
	LLVMValueRef field[6] = {LLVMConstInt(j->i32, IMAGE_VERSION, 0), LLVMConstInt(j->i32, nlevel, 0)};
	field[2] = array_of(j, "texo.levels", level, nlevel);
	add_gpus(j, field + 3);
	LLVMValueRef object = constant(j, "texo.object", LLVMConstStructInContext(j->emit.ctx, field, 6, 0));
	for (uint32_t p = 0; p < j->in->nprogram; p++)
		entry_add(j->arena, j->emit.module, j->emit.builder, object, p, &j->signature[p], nlevel > 0, j->in->ngpu > 0);
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
generate(void *user)
{
	Job *j = user;
	Target baseline;
	target_named("x86-64", &baseline);
	if (!emit_open(&j->emit, j->arena, &baseline, j->in->opt_level, NULL))
		return failed(j, j->emit.error);
	j->ptr = LLVMPointerTypeInContext(j->emit.ctx, 0);
	j->i32 = LLVMInt32TypeInContext(j->emit.ctx);
	for (const ObjectBitcode *b = j->in->launch; b && b->n; b++)
		if (!emit_add_bitcode(&j->emit, b->bytes, b->n))
			return failed(j, j->emit.error);
	emit_make_internal(&j->emit);
	if (!add_object(j))
		return CODEGEN_FAILED;
	if (!emit_drop_unused(&j->emit) || !emit_optimise(&j->emit) ||
	    !emit_linkable(&j->emit, &j->out->object, &j->out->size))
		return failed(j, j->emit.error);
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
	return status == CODEGEN_OK ? emit_inside(&j->emit, a, generate, j) : status;
}
