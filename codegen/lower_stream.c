/* lower_stream.c: hints about memory: stores that go past the caches (TIR_STREAM), and what follows a load
 * (TIR_AHEAD) or will be wanted (FETCH), which is fetched meanwhile, so that a loop that computes hides the traffic of the next row's.
 * A fetch of what is not there does nothing; on a GPU it has to name memory that is there.
 *
 * A streaming store writes whole lines without reading them first, which saves a third of the traffic of a
 * kernel that reads as much as it writes, and loses when the data would have stayed near. So it is taken where
 * the whole view is LARGE_BYTES or more, and where the address is aligned as the instruction demands; both are
 * asked as the kernel runs, once for the stores to a view that follow one another with nothing between them but computation and
 * loads of other memory: they wait for the last, and all of them stream, or none. Such stores are not ordered with what follows: a
 * kernel that has any ends in a fence, so that whoever sees it finished sees them. */
#include "codegen/lower.h"
#include "ir/bugs.h"

#include <string.h>

enum { LARGE_BYTES = 4 << 20, LINE_BYTES = 64, PREFETCH_SM = 90 /* LLVM's */, HINT_SM = 90,
       CACHE_A_THREAD = 64 /* half of a GPU's first cache, by the most threads of a multiprocessor */ };

static bool
streams(const TirInst *p)
{
	return p->op == OP_STORE && (p->imm.i & TIR_STREAM);
}

static bool
kernel_streams(const Lower *l)
{
	for (uint32_t v = 1; v < l->k->inst.n; v++)
		if (streams(&l->k->inst.at[v]))
			return true;
	return false;
}

static bool
view_streams(const Lower *l, ValId view)
{
	for (uint32_t v = 1; v < l->k->inst.n; v++)
		if (streams(&l->k->inst.at[v]) && lower_arg_id(l, v, 0) == view)
			return true;
	return false;
}

Val
lower_view(Lower *l, ValId v)
{
	unsigned rank = (unsigned)lower_inst(l, v)->imm.i;
	DType t = (DType)lower_inst(l, v)->type.dtype;
	if (l->target->arch == ARCH_NVPTX || !view_streams(l, v))
		return NULL;
	Val bytes = LLVMConstInt(lower_i64(l), dtype_info[t].bits / 8u, 0);
	for (unsigned a = 0; a < rank; a++)
		bytes = LLVMBuildMul(l->b, bytes, lower_arg(l, v, 1 + a), "");
	return LLVMBuildICmp(l->b, LLVMIntSGE, bytes, LLVMConstInt(lower_i64(l), LARGE_BYTES, 0), "");
}

static LLVMBasicBlockRef
block_before(Lower *l, LLVMBasicBlockRef next)
{
	return LLVMInsertBasicBlockInContext(l->ctx, next, "");
}

static LLVMBasicBlockRef
held_stores(Lower *l, LLVMBasicBlockRef at, unsigned align, bool past, LLVMBasicBlockRef next)
{
	LLVMMetadataRef one = LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(l->ctx), 1, 0));
	Val node = LLVMMetadataAsValue(l->ctx, LLVMMDNodeInContext2(l->ctx, &one, 1));
	LLVMPositionBuilderAtEnd(l->b, at);
	for (unsigned k = 0; k < l->held.n; k++) {
		Val store = LLVMBuildStore(l->b, l->held.value[k], l->held.p[k]);
		LLVMSetAlignment(store, align);
		if (past)
			LLVMSetMetadata(store, LLVMGetMDKindIDInContext(l->ctx, "nontemporal", 11), node);
	}
	LLVMBuildBr(l->b, next);
	return at;
}

void
lower_stream_flush(Lower *l)
{
	unsigned line = l->held.bytes < LINE_BYTES ? l->held.bytes : LINE_BYTES;
	LLVMTypeRef i64 = lower_i64(l);
	Val low = NULL;
	if (!l->held.n)
		return;
	for (unsigned k = 0; k < l->held.n; k++) {
		Val p = LLVMBuildPtrToInt(l->b, l->held.p[k], i64, "");
		low = low ? LLVMBuildOr(l->b, low, p, "") : p;
	}
	low = LLVMBuildAnd(l->b, low, LLVMConstInt(i64, line - 1, 0), "");
	Val whole = LLVMBuildICmp(l->b, LLVMIntEQ, low, LLVMConstInt(i64, 0, 0), "");
	LLVMBasicBlockRef from = LLVMGetInsertBlock(l->b), exit = LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
	LLVMBasicBlockRef past = held_stores(l, block_before(l, exit), line, true, exit);
	LLVMBasicBlockRef plain = held_stores(l, block_before(l, exit), l->held.align, false, exit);
	LLVMPositionBuilderAtEnd(l->b, from);
	LLVMBuildCondBr(l->b, BUG(stream_unaligned) ? l->held.large : LLVMBuildAnd(l->b, l->held.large, whole, ""), past, plain);
	LLVMPositionBuilderAtEnd(l->b, exit);
	l->held.n = 0;
}

/* Whether the load is of other memory than what waits is stored to. */
static bool
reads_elsewhere(const Lower *l, ValId v)
{
	const TirKernel *k = l->k;
	uint32_t from = (uint32_t)lower_inst(l, lower_arg_id(l, lower_arg_id(l, v, 0), 0))->imm.i, to = l->held.buffer;
	return (from != to && k->buffer.at[from].same != to + 1 && k->buffer.at[to].same != from + 1) || BUG(stream_waits_for_loads);
}

bool
lower_stream_passes(const Lower *l, ValId v)
{
	OpClass cls = op_info[lower_inst(l, v)->op].cls;
	if (l->held.n && lower_inst(l, v)->op == OP_LOAD)
		return reads_elsewhere(l, v);
	return cls == CLASS_LEAF || cls == CLASS_MAP || (streams(lower_inst(l, v)) && !(lower_inst(l, v)->imm.i & TIR_MASKED));
}

void
lower_stream_store(Lower *l, Val value, Val p, Val large, uint32_t buffer, unsigned bytes, unsigned align)
{
	bool alike = l->held.large == large && l->held.bytes == bytes && l->held.align == align;
	if (!alike || l->held.n == LOWER_MOST_HELD)
		lower_stream_flush(l);
	l->held.large = large;
	l->held.buffer = buffer;
	l->held.bytes = bytes;
	l->held.align = align;
	l->held.value[l->held.n] = value;
	l->held.p[l->held.n++] = p;
}

void
lower_stream_end(Lower *l)
{
	if (kernel_streams(l))
		lower_call(l, "llvm.x86.sse.sfence", NULL, 0, NULL, 0);
}

bool
lower_looks_ahead(const Lower *l)
{
	return l->target->arch == ARCH_X86 || (l->target->arch == ARCH_NVPTX && l->target->sm >= PREFETCH_SM);
}

void
lower_ahead(Lower *l, Val p, Val step, unsigned bytes)
{
	LLVMTypeRef i8 = LLVMInt8TypeInContext(l->ctx), i32 = LLVMInt32TypeInContext(l->ctx);
	if (l->target->arch == ARCH_NVPTX) { /* its threads' groups are lines together */
		const Val next = LLVMBuildGEP2(l->b, i8, p, &step, 1, "");
		lower_call(l, "llvm.nvvm.prefetch.global.L2", NULL, 0, &next, 1);
		return;
	}
	for (unsigned at = 0; at < bytes; at += LINE_BYTES) {
		Val offset = LLVMBuildAdd(l->b, step, LLVMConstInt(lower_i64(l), at, 0), "");
		Val next = LLVMBuildGEP2(l->b, i8, p, &offset, 1, "");
		LLVMTypeRef over = LLVMTypeOf(next);
		const Val arg[4] = {next, LLVMConstInt(i32, 0, 0), LLVMConstInt(i32, 2, 0), LLVMConstInt(i32, 1, 0)};
		lower_call(l, "llvm.prefetch", &over, 1, arg, 4);
	}
}

/* Whether the kernel stores to what buffer b has. */
bool
lower_is_stored(const Lower *l, uint32_t b)
{
	const TirKernel *k = l->k;
	for (uint32_t n = 0; n < k->buffer.n; n++)
		if (k->buffer.at[n].written && (n == b || k->buffer.at[n].same == b + 1 || k->buffer.at[b].same == n + 1))
			return true;
	return false;
}

/* Whether shared memory takes most of a GPU's first cache: the lines that are on their way have no room in the rest. */
static bool
has_little_cache(const TirKernel *k)
{
	return tir_shared_at(k, k->buffer.n) > CACHE_A_THREAD * k->threads;
}

/* On a GPU, so many bytes at p as words, past its first cache, which keeps what is read again; nobody stores there. Where that
 * has room, lines stay until all of them is read; else they have no place in it. NULL for a number that no access has, and
 * for GPUs whose text is of a version of PTX that has no such load. */
Val
lower_load_once(Lower *l, Val p, unsigned bytes)
{
	static const char *const code[] = {[1] = "b32 $0, [$1];", [2] = "v2.b32 {$0, $1}, [$2];", [4] = "v4.b32 {$0, $1, $2, $3}, [$4];"};
	static const char *const constraints[] = {[1] = "=r,l", [2] = "=r,=r,l", [4] = "=r,=r,=r,=r,l"};
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx), at = LLVMTypeOf(p), part[4] = {i32, i32, i32, i32};
	unsigned words = bytes / 4;
	if (l->target->arch != ARCH_NVPTX || l->target->sm < HINT_SM || bytes % 4 || (words != 1 && words != 2 && words != 4))
		return NULL;
	const char *text = arena_text(l->arena, has_little_cache(l->k) ? "ld.global.cg.%s" : "ld.global.nc.L1::no_allocate.L2::128B.%s", code[words]);
	LLVMTypeRef f = LLVMFunctionType(words > 1 ? LLVMStructTypeInContext(l->ctx, part, words, 0) : i32, &at, 1, 0);
	Val call = LLVMBuildCall2(l->b, f, LLVMGetInlineAsm(f, text, strlen(text), constraints[words], strlen(constraints[words]), 0, 0, LLVMInlineAsmDialectATT, 0), &p, 1, "");
	if (words == 1)
		return call;
	Val all = LLVMGetPoison(LLVMVectorType(i32, words));
	for (unsigned n = 0; n < words; n++)
		all = LLVMBuildInsertElement(l->b, all, LLVMBuildExtractValue(l->b, call, n, ""), LLVMConstInt(i32, n, 0), "");
	return all;
}
