/* object_make.c: an object by LLVM. One module holds the kernels of every level, each with the
 * instruction sets of its level as attributes, so that one object serves all processors; an artefact
 * without code for each level, as constants; an artefact with code for each GPU; and the C functions.
 * With `launch`, the runtime's part in a launch is linked in and nothing of it that isn't called is
 * kept. */
#include <string.h>

#include "codegen/job.h"
#include "codegen/lower.h"
#include "codegen/object_entry.h"
#include "ir/image.h"

typedef struct {
	Arena *arena;
	Emit *emit;
	const ObjectJob *job;
	LLVMTypeRef ptr, i32;
} Make;

/* --- constants --- */

static LLVMValueRef
constant(Make *m, const char *name, LLVMValueRef value)
{
	LLVMValueRef g = LLVMAddGlobal(m->emit->module, LLVMTypeOf(value), name);
	LLVMSetInitializer(g, value);
	LLVMSetGlobalConstant(g, 1);
	LLVMSetLinkage(g, LLVMInternalLinkage);
	LLVMSetAlignment(g, 8);
	return g;
}

static LLVMValueRef
constant_bytes(Make *m, const char *name, const ObjectBitcode *b)
{
	return constant(m, name, LLVMConstStringInContext2(m->emit->ctx, b->bytes, b->n, 1));
}

static LLVMValueRef
array_of(Make *m, const char *name, LLVMValueRef *at, uint32_t n)
{
	return n ? constant(m, name, LLVMConstArray2(LLVMTypeOf(at[0]), at, n)) : LLVMConstNull(m->ptr);
}

/* --- code --- */

static void
set_features(Make *m, LLVMValueRef f, const Target *t)
{
	const char *pair[2][2] = {{"target-cpu", OBJECT_CPU}, {"target-features", target_feature_string(t, m->arena)}};
	for (unsigned k = 0; k < 2; k++)
		LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
		                        LLVMCreateStringAttribute(m->emit->ctx, pair[k][0], (unsigned)strlen(pair[k][0]),
		                                                  pair[k][1], (unsigned)strlen(pair[k][1])));
	LLVMSetLinkage(f, LLVMInternalLinkage);
}

/* The kernels of a level; its ImageLevel. */
static LLVMValueRef
add_level(Make *m, uint32_t n)
{
	const JobLevel *level = &m->job->level.at[n];
	VEC(LLVMValueRef) entry = {0};
	Target target;
	if (!target_named(level->cpu, &target)) /* it was checked where the job comes from */
		bug(m->arena, "object_make: there is no processor '%s'", level->cpu);
	for (uint32_t k = 0; k < level->kernel.n; k++) {
		const JobKernel *x = &level->kernel.at[k];
		lower_kernel(m->arena, m->emit->module, m->emit->builder, &target, x->tir, x->symbol, x->serial);
		LLVMValueRef f = LLVMGetNamedFunction(m->emit->module, x->symbol);
		set_features(m, f, &target);
		vec_push(m->arena, &entry, f);
	}
	LLVMValueRef field[2];
	field[0] = constant_bytes(m, arena_text(m->arena, "texo.tables.%u", n), &level->tables);
	field[1] = constant(m, arena_text(m->arena, "texo.entry.%u", n), LLVMConstArray2(m->ptr, entry.at, entry.n));
	return LLVMConstStructInContext(m->emit->ctx, field, 2, 0);
}

/* The artefacts, and a pointer of the runtime's that is NULL at first. */
static void
add_gpus(Make *m, LLVMValueRef *field)
{
	uint32_t ngpu = m->job->gpu.n;
	LLVMTypeRef i64 = LLVMInt64TypeInContext(m->emit->ctx);
	LLVMValueRef *gpu = ARENA_ARRAY(m->arena, LLVMValueRef, ngpu + 1);
	for (uint32_t n = 0; n < ngpu; n++) {
		const ObjectBitcode *b = &m->job->gpu.at[n];
		LLVMValueRef pair[2];
		pair[0] = constant_bytes(m, arena_text(m->arena, "texo.gpu.%u", n), b);
		pair[1] = LLVMConstInt(i64, b->n, 0);
		gpu[n] = LLVMConstStructInContext(m->emit->ctx, pair, 2, 0);
	}
	field[0] = LLVMConstInt(i64, ngpu, 0);
	field[1] = array_of(m, "texo.gpus", gpu, ngpu);
	field[2] = LLVMConstNull(m->ptr);
	if (ngpu == 0)
		return;
	field[2] = LLVMAddGlobal(m->emit->module, m->ptr, "texo.loaded");
	LLVMSetInitializer(field[2], LLVMConstNull(m->ptr));
	LLVMSetLinkage(field[2], LLVMInternalLinkage);
	LLVMSetAlignment(field[2], 8);
}

static void
add_object(Make *m)
{
	const ObjectJob *j = m->job;
	uint32_t nlevel = j->level.n;
	LLVMValueRef *level = ARENA_ARRAY(m->arena, LLVMValueRef, nlevel + 1);
	for (uint32_t n = 0; n < nlevel; n++)
		level[n] = add_level(m, n);
	LLVMValueRef field[6] = {LLVMConstInt(m->i32, IMAGE_VERSION, 0), LLVMConstInt(m->i32, nlevel, 0)};
	field[2] = array_of(m, "texo.levels", level, nlevel);
	add_gpus(m, field + 3);
	LLVMValueRef object = constant(m, "texo.object", LLVMConstStructInContext(m->emit->ctx, field, 6, 0));
	for (uint32_t p = 0; p < j->nsignature; p++)
		entry_add(m->arena, m->emit->module, m->emit->builder, object, p, &j->signature[p], nlevel > 0, j->gpu.n > 0);
}

bool
object_make(Emit *e, const ObjectJob *j, JobMade *out)
{
	Make m = {.arena = e->arena, .emit = e, .job = j};
	m.ptr = LLVMPointerTypeInContext(e->ctx, 0);
	m.i32 = LLVMInt32TypeInContext(e->ctx);
	for (uint32_t n = 0; n < j->launch.n; n++)
		if (!emit_add_bitcode(e, j->launch.at[n].bytes, j->launch.at[n].n))
			return false;
	emit_make_internal(e);
	add_object(&m);
	return emit_drop_unused(e) && emit_optimise(e) && emit_linkable(e, &out->code, &out->n);
}
