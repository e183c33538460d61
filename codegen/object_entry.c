/* object_entry.c: the functions that a program calls, in the C calling convention of x86-64: they put
 * their arguments into arrays of words and dims on the stack, and memory for the launch beside them,
 * and call the runtime (include/texo_rt.h, "for generated code"). */
#include "codegen/object_entry.h"

#include <string.h>

typedef LLVMValueRef Val;

typedef struct {
	Arena *arena;
	LLVMContextRef ctx;
	LLVMModuleRef module;
	LLVMBuilderRef b;
	LLVMTypeRef ptr, i32, i64;
	Val object, graph;
	const CSignature *s;
	Val fn;
} Entry;

/* --- types --- */

/* What passes as the types in the header do. Two floats pass as one double: in a vector register, or in 8
 * bytes of the stack. */
static LLVMTypeRef
c_value_type(const Entry *e, DType t)
{
	if (t == DT_F32)
		return LLVMFloatTypeInContext(e->ctx);
	if (t == DT_F64 || t == DT_C64)
		return LLVMDoubleTypeInContext(e->ctx);
	unsigned bits = dtype_info[t].bits;
	return LLVMIntTypeInContext(e->ctx, bits < 8 ? 8 : bits);
}

static LLVMTypeRef
arg_type(const Entry *e, const CArg *a)
{
	switch (a->kind) {
	case CARG_DATA: case CARG_WORKSPACE: case CARG_STREAM: return e->ptr;
	case CARG_VALUE: return c_value_type(e, a->dtype);
	case CARG_DIM: break;
	}
	return e->i64;
}

/* A function with a body to be built. A launch's memory may be larger than a page, so the stack is
 * touched page by page as it grows. */
static void
open_function(Entry *e, const char *ending, LLVMTypeRef result, LLVMTypeRef *param, unsigned n)
{
	unsigned nounwind = LLVMGetEnumAttributeKindForName("nounwind", 8);
	e->fn = LLVMAddFunction(e->module, arena_text(e->arena, "%s%s", e->s->name, ending),
	                        LLVMFunctionType(result, param, n, 0));
	LLVMAddAttributeAtIndex(e->fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
	                        LLVMCreateEnumAttribute(e->ctx, nounwind, 0));
	LLVMAddAttributeAtIndex(e->fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
	                        LLVMCreateStringAttribute(e->ctx, "probe-stack", 11, "inline-asm", 10));
	LLVMPositionBuilderAtEnd(e->b, LLVMAppendBasicBlockInContext(e->ctx, e->fn, ""));
}

static void
open_with_args(Entry *e, const char *ending, LLVMTypeRef result, const CArg *a, uint32_t n)
{
	LLVMTypeRef *param = ARENA_ARRAY(e->arena, LLVMTypeRef, n + 1);
	for (uint32_t k = 0; k < n; k++)
		param[k] = arg_type(e, &a[k]);
	open_function(e, ending, result, param, n);
}

/* --- bodies --- */

static Val
call_runtime(Entry *e, const char *name, LLVMTypeRef result, Val *arg, unsigned n)
{
	LLVMTypeRef param[8];
	for (unsigned k = 0; k < n; k++)
		param[k] = LLVMTypeOf(arg[k]);
	LLVMTypeRef type = LLVMFunctionType(result, param, n, 0);
	Val f = LLVMGetNamedFunction(e->module, name);
	if (!f)
		f = LLVMAddFunction(e->module, name, type);
	return LLVMBuildCall2(e->b, type, f, arg, n, "");
}

/* Memory for the launch, as much as the runtime asks for. */
static Val
room(Entry *e)
{
	Val n = call_runtime(e, "texo_object_room", e->i64, (Val[]){e->object, e->graph}, 2);
	Val at = LLVMBuildArrayAlloca(e->b, LLVMInt8TypeInContext(e->ctx), n, "");
	LLVMSetAlignment(at, 16);
	return at;
}

static Val
zeroed_array(Entry *e, uint32_t n)
{
	LLVMTypeRef type = LLVMArrayType2(e->i64, n > 0 ? n : 1);
	Val at = LLVMBuildAlloca(e->b, type, "");
	LLVMSetAlignment(at, 8);
	LLVMBuildStore(e->b, LLVMConstNull(type), at);
	return at;
}

/* The argument in the low bytes of a word. */
static Val
as_word(Entry *e, const CArg *a, Val v)
{
	if (a->kind == CARG_DIM)
		return v;
	if (a->kind == CARG_DATA)
		return LLVMBuildPtrToInt(e->b, v, e->i64, "");
	unsigned bits = dtype_info[a->dtype].bits;
	Val whole = LLVMBuildBitCast(e->b, v, LLVMIntTypeInContext(e->ctx, bits < 8 ? 8 : bits), "");
	return LLVMBuildZExt(e->b, whole, e->i64, "");
}

static void
store_args(Entry *e, const CArg *a, uint32_t n, Val word, Val dim)
{
	for (uint32_t k = 0; k < n; k++) {
		if (a[k].kind == CARG_WORKSPACE || a[k].kind == CARG_STREAM)
			continue;
		Val slot = LLVMConstInt(e->i64, a[k].slot, 0);
		Val at = LLVMBuildGEP2(e->b, e->i64, a[k].is_word ? word : dim, &slot, 1, "");
		LLVMBuildStore(e->b, as_word(e, &a[k], LLVMGetParam(e->fn, k)), at);
	}
}

static void
add_call(Entry *e)
{
	const CSignature *s = e->s;
	open_with_args(e, "", e->i32, s->call.at, s->call.n);
	Val word = zeroed_array(e, s->nword), dim = zeroed_array(e, s->ndim);
	store_args(e, s->call.at, s->call.n, word, dim);
	Val workspace = LLVMGetParam(e->fn, s->call.n - 1);
	Val arg[] = {e->object, e->graph, word, dim, workspace, room(e)};
	LLVMBuildRet(e->b, call_runtime(e, "texo_object_call", e->i32, arg, 6));
}

/* The same with a stream behind the arguments. */
static void
add_call_cuda(Entry *e)
{
	const CSignature *s = e->s;
	uint32_t n = s->call.n;
	CArg *with = ARENA_ARRAY(e->arena, CArg, n + 1);
	memcpy(with, s->call.at, n * sizeof *with);
	with[n] = s->stream;
	open_with_args(e, "_cuda", e->i32, with, n + 1);
	Val word = zeroed_array(e, s->nword), dim = zeroed_array(e, s->ndim);
	store_args(e, with, n + 1, word, dim);
	Val workspace = LLVMGetParam(e->fn, n - 1), stream = LLVMGetParam(e->fn, n);
	Val arg[] = {e->object, e->graph, word, dim, workspace, stream, room(e)};
	LLVMBuildRet(e->b, call_runtime(e, "texo_object_call_cuda", e->i32, arg, 7));
}

static void
add_status_cuda(Entry *e)
{
	open_function(e, "_cuda_status", e->i32, NULL, 0);
	LLVMBuildRet(e->b, call_runtime(e, "texo_object_status_cuda", e->i32, (Val[]){e->object, e->graph}, 2));
}

static void
add_workspace(Entry *e)
{
	const CSignature *s = e->s;
	open_with_args(e, "_workspace", e->i64, s->sizes.at, s->sizes.n);
	Val word = zeroed_array(e, s->nword), dim = zeroed_array(e, s->ndim);
	store_args(e, s->sizes.at, s->sizes.n, word, dim);
	Val arg[] = {e->object, e->graph, word, dim, room(e)};
	LLVMBuildRet(e->b, call_runtime(e, "texo_object_workspace", e->i64, arg, 5));
}

static void
add_call_dl(Entry *e, const char *runtime)
{
	LLVMTypeRef param[3] = {e->ptr, e->i64, e->ptr};
	open_function(e, "_dl", e->i32, param, 3);
	Val arg[] = {e->object, e->graph, LLVMGetParam(e->fn, 0), LLVMGetParam(e->fn, 1), LLVMGetParam(e->fn, 2), room(e)};
	LLVMBuildRet(e->b, call_runtime(e, runtime, e->i32, arg, 6));
}

static void
add_signature(Entry *e)
{
	const char *json = e->s->json;
	Val text = LLVMConstStringInContext2(e->ctx, json, strlen(json), 0);
	Val global = LLVMAddGlobal(e->module, LLVMTypeOf(text), arena_text(e->arena, "%s_signature_json", e->s->name));
	LLVMSetInitializer(global, text);
	LLVMSetGlobalConstant(global, 1);
}

void
entry_add(Arena *a, LLVMModuleRef m, LLVMBuilderRef b, LLVMValueRef object, uint32_t graph,
          const CSignature *s, bool cpu, bool gpu)
{
	LLVMContextRef ctx = LLVMGetModuleContext(m);
	Entry e = {.arena = a, .ctx = ctx, .module = m, .b = b, .object = object, .s = s};
	e.ptr = LLVMPointerTypeInContext(ctx, 0);
	e.i32 = LLVMInt32TypeInContext(ctx);
	e.i64 = LLVMInt64TypeInContext(ctx);
	e.graph = LLVMConstInt(e.i32, graph, 0);
	if (cpu)
		add_call(&e);
	if (gpu) {
		add_call_cuda(&e);
		add_status_cuda(&e);
	}
	add_workspace(&e);
	add_call_dl(&e, gpu ? "texo_object_call_any" : "texo_object_call_dl");
	add_signature(&e);
}
