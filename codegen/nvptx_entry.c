/* nvptx_entry.c: what the function of a kernel is on a GPU: an entry whose threads take tasks one at a
 * time, so that threads side by side have tasks side by side.
 *
 * Its parameters are 8 bytes each: the kernel's buffers, its scalars, those of all sets, the number of tasks, and where two
 * status words of 64 bits are. Any grid of one dimension computes all tasks; tasks that must run as one
 * call have one thread, which takes them all. A status word is the least of (task << 16 | access) that
 * any thread met, or all ones: of a task the first that it met, as on a processor. A kernel with roles goes through its
 * tasks itself, and has a tensor map for each COPY as its last parameters. */
#include "codegen/lower.h"
#include "ir/image.h"

#include <stdio.h>
#include <string.h>

enum {
	PTX_KERNEL = 71, GLOBAL = 1, SHARED = 3,
	SHORT_VALUES = 256, SHORT_BLOCKS = 6 /* 40 registers a thread */
};

static Val
special_register(Lower *l, const char *name)
{
	return LLVMBuildZExt(l->b, lower_call(l, name, NULL, 0, NULL, 0), lower_i64(l), "");
}

/* Named after the entry: the texts of several kernels may be one file. */
static Val
shared_memory(Lower *l, const char *symbol, const TirBuffer *b, bool is_handed)
{
	LLVMTypeRef byte = LLVMInt8TypeInContext(l->ctx);
	unsigned bits = dtype_info[b->dtype].bits, bytes = bits < 8 ? 1 : bits / 8;
	LLVMTypeRef type = LLVMArrayType2(byte, is_handed ? tir_handed_word(b) + 8 : (uint64_t)b->shared * bytes);
	Val at = LLVMAddGlobalInAddressSpace(l->module, type, arena_text(l->arena, "%s_shared", symbol), SHARED);
	LLVMSetLinkage(at, LLVMInternalLinkage);
	LLVMSetInitializer(at, LLVMGetUndef(type));
	LLVMSetAlignment(at, 16);
	return at;
}

/* The start of what a launch gives the block. */
static Val
launch_memory(Lower *l)
{
	Val at = LLVMAddGlobalInAddressSpace(l->module, LLVMArrayType2(LLVMInt8TypeInContext(l->ctx), 0), "launch_shared", SHARED);
	LLVMSetLinkage(at, LLVMExternalLinkage);
	LLVMSetAlignment(at, 16);
	return at;
}

/* Of the buffers for which it waits, the words that count what comes, which lie behind the elements. */
static void
find_handed(Lower *l)
{
	const TirKernel *k = l->k;
	const bool *waited = tir_waited_for(k, l->arena);
	l->handed = ARENA_ARRAY(l->arena, LowerHanded, k->buffer.n + 1);
	unsigned n = 0; /* no more than two of each type of at most 32 bits */
	for (uint32_t b = 0; b < k->buffer.n; b++)
		if (waited[b])
			l->handed[b] = (LowerHanded){.word = tir_handed_word(&k->buffer.at[b]), .bit = n++};
}

/* Where that of buffer b is. */
static Val
word_of(Lower *l, unsigned b)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx);
	return LLVMBuildAdd(l->b, LLVMBuildPtrToInt(l->b, l->buffer[b], i32, ""), lower_int(l, i32, l->handed[b].word), "");
}

static void
bind_shared(Lower *l, const char *symbol, unsigned first)
{
	const TirKernel *k = l->k;
	Val memory = !k->channel.n && tir_shared_at_launch(k) ? launch_memory(l) : NULL;
	for (unsigned b = first; b < k->buffer.n; b++) {
		Val at = lower_int(l, lower_i64(l), tir_shared_at(k, b));
		l->buffer[b] = k->channel.n ? lower_role_memory(l, b)
		               : memory ? LLVMConstGEP2(LLVMInt8TypeInContext(l->ctx), memory, &at, 1)
		                        : shared_memory(l, symbol, &k->buffer.at[b], l->handed[b].word > 0);
	}
}

/* How many the schedule counted on in registers of sm_90a. Other GPUs have other assemblers, which are given room where
 * a cluster's blocks would have no register to spare, or those that wait for one another. Of threads that each have a task
 * the assembler would have as many as there can be, in 32 registers: it keeps to that where a few more are needed. What
 * is long is not so few, and left to it. */
static unsigned
resident_blocks(const Lower *l, unsigned threads)
{
	unsigned fit = l->target->sm_threads / threads, n = l->k->resident;
	if (threads == IMAGE_CUDA_BLOCK && l->k->form == TIR_TASKS && l->k->inst.n <= SHORT_VALUES)
		n = SHORT_BLOCKS;
	if ((l->k->cluster || tir_posts(l->k)) && l->target->sm != 90)
		n = (n + 1) / 2;
	return n < fit ? n : fit;
}

static void
new_entry(Lower *l, const char *symbol, unsigned threads)
{
	const TirKernel *k = l->k;
	unsigned handed = tir_handed_buffers(k), nbuffer = handed * tir_sets(k), n = nbuffer + tir_launch_scalars(k) + 2, nmap = tir_maps(k);
	LLVMTypeRef *param = ARENA_ARRAY(l->arena, LLVMTypeRef, n + nmap);
	for (unsigned p = 0; p < n; p++)
		param[p] = p < nbuffer || p == n - 1 ? LLVMPointerTypeInContext(l->ctx, GLOBAL) : lower_i64(l);
	for (unsigned p = n; p < n + nmap; p++)
		param[p] = LLVMPointerTypeInContext(l->ctx, 0);
	l->fn = LLVMAddFunction(l->module, symbol, LLVMFunctionType(LLVMVoidTypeInContext(l->ctx), param, n + nmap, 0));
	LLVMSetFunctionCallConv(l->fn, PTX_KERNEL);
	char limit[32];
	snprintf(limit, sizeof limit, "%u", threads);
	lower_attribute(l, k->form == TIR_SPREAD ? "nvvm.reqntid" : "nvvm.maxntid", limit);
	snprintf(limit, sizeof limit, "%u", k->cluster);
	if (k->cluster)
		lower_attribute(l, "nvvm.cluster_dim", limit);
	unsigned resident = resident_blocks(l, threads);
	snprintf(limit, sizeof limit, "%u", resident);
	if (resident)
		lower_attribute(l, "nvvm.minctasm", limit);
	LLVMPositionBuilderAtEnd(l->b, LLVMAppendBasicBlockInContext(l->ctx, l->fn, ""));
	if (k->channel.n)
		lower_begin_roles(l, n);
	for (unsigned b = 0; b < handed; b++)
		l->buffer[b] = LLVMGetParam(l->fn, b);
	find_handed(l);
	bind_shared(l, symbol, handed);
	for (unsigned s = 0; s < k->scalar.n; s++)
		l->scalar[s] = lower_scalar(l, s, LLVMGetParam(l->fn, nbuffer + s));
	l->status = LLVMGetParam(l->fn, n - 1);
}

static void
all_tasks(Lower *l, Val ntask)
{
	l->task = l->task_lo = LLVMConstInt(lower_i64(l), 0, 0);
	l->task_hi = ntask;
	lower_body(l);
}

static LLVMBasicBlockRef
new_block(Lower *l)
{
	return LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
}

/* The blocks of the cluster must be there, and have said so, and count, before others hand them elements. */
static void
begin_cluster(Lower *l)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx), i1 = LLVMInt1TypeInContext(l->ctx);
	LLVMBasicBlockRef begin = new_block(l), ready = new_block(l);
	l->entered = LLVMBuildAlloca(l->b, i1, "");
	LLVMBuildStore(l->b, lower_int(l, i1, 0), l->entered);
	l->phases = LLVMBuildAlloca(l->b, i32, "");
	LLVMBuildStore(l->b, lower_int(l, i32, 0), l->phases);
	LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntEQ, lower_thread(l), lower_int(l, lower_i64(l), 0), ""), begin, ready);
	LLVMPositionBuilderAtEnd(l->b, begin);
	for (unsigned b = 0; b < l->k->buffer.n; b++)
		if (l->handed[b].word)
			lower_assembly(l, NULL, "mbarrier.init.shared::cta.b64 [$0], 1;", "r", (Val[]){word_of(l, b)}, 1);
	lower_assembly(l, NULL, "fence.mbarrier_init.release.cluster;", "", NULL, 0);
	LLVMBuildBr(l->b, ready);
	LLVMPositionBuilderAtEnd(l->b, ready);
	lower_call(l, "llvm.nvvm.barrier.cluster.arrive.relaxed.aligned", NULL, 0, NULL, 0);
}

/* Of the words that sets have at parameters first, first + step and so on, that of the task's set; is_later[n]: the task is
 * of set n or a later one. */
static Val
word_of_set(Lower *l, const Val *is_later, unsigned first, unsigned step)
{
	Val word = LLVMGetParam(l->fn, first);
	for (unsigned n = 1; n < l->k->sets; n++)
		word = LLVMBuildSelect(l->b, is_later[n], LLVMGetParam(l->fn, first + n * step), word, "");
	return word;
}

/* The buffers, scalars and number of a task, which is one of all sets'. */
static void
enter_set(Lower *l, Val task)
{
	const TirKernel *k = l->k;
	unsigned handed = tir_handed_buffers(k), scalars = handed * k->sets, begins = scalars + k->scalar.n * k->sets;
	Val *is_later = ARENA_ARRAY(l->arena, Val, k->sets), begin = lower_int(l, lower_i64(l), 0);
	for (unsigned n = 1; n < k->sets; n++) {
		Val at = LLVMGetParam(l->fn, begins + n - 1);
		is_later[n] = LLVMBuildICmp(l->b, LLVMIntSGE, task, at, "");
		begin = LLVMBuildSelect(l->b, is_later[n], at, begin, "");
	}
	for (unsigned b = 0; b < handed; b++)
		l->buffer[b] = word_of_set(l, is_later, b, handed);
	for (unsigned s = 0; s < k->scalar.n; s++)
		l->scalar[s] = lower_scalar(l, s, word_of_set(l, is_later, scalars + s, k->scalar.n));
	l->task_lo = LLVMBuildNSWSub(l->b, task, begin, "");
}

static ValId
barrier_at_end(const TirKernel *k)
{
	const TirRegion *body = &k->region.at[0];
	ValId last = body->inst.n ? body->inst.at[body->inst.n - 1] : 0;
	return last && tir_inst(k, last)->op == OP_BARRIER && TIR_HANDED_BUFFER(tir_inst(k, last)->imm.i) < 0 ? last : 0;
}

/* The kernels that were launched before it, whose results it may read, end while its blocks come (IMAGE_CUDA_WAITS). Every block waits,
 * also where it has no task: what is behind it waits for it alone. Where its own end, those behind it come, and no earlier: they
 * would find places beside its blocks, more on some processors than on others, and have tasks by those. */
static void
wait_for_others(Lower *l)
{
	if (l->target->sm < IMAGE_CUDA_WAITS)
		return;
	lower_assembly(l, NULL, "griddepcontrol.wait;", "", NULL, 0);
}

/* task = thread; task < ntask; task += threads; or blocks of threads, or clusters of blocks, that take them together. A
 * task's number is far below 2^63, so nothing wraps. */
static void
own_tasks(Lower *l, Val ntask)
{
	Val block = special_register(l, "llvm.nvvm.read.ptx.sreg.ctaid.x");
	Val blocks = special_register(l, "llvm.nvvm.read.ptx.sreg.nctaid.x");
	Val thread = special_register(l, "llvm.nvvm.read.ptx.sreg.tid.x");
	Val threads = special_register(l, "llvm.nvvm.read.ptx.sreg.ntid.x");
	bool together = l->k->form == TIR_SPREAD;
	if (l->k->cluster) { /* a launch has whole clusters */
		Val size = LLVMConstInt(lower_i64(l), l->k->cluster, 0);
		block = LLVMBuildUDiv(l->b, block, size, "");
		blocks = LLVMBuildUDiv(l->b, blocks, size, "");
		begin_cluster(l);
	}
	Val first = together ? block : LLVMBuildAdd(l->b, LLVMBuildMul(l->b, block, threads, ""), thread, "");
	Val step = together ? blocks : LLVMBuildMul(l->b, blocks, threads, "");
	LLVMBasicBlockRef before = LLVMGetInsertBlock(l->b);
	LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
	LLVMBasicBlockRef exit = LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
	LLVMBasicBlockRef none = l->k->cluster ? LLVMInsertBasicBlockInContext(l->ctx, exit, "") : exit;
	LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntSLT, first, ntask, ""), body, none);
	if (l->k->cluster) {
		LLVMPositionBuilderAtEnd(l->b, none);
		lower_enter_cluster(l);
		LLVMBuildBr(l->b, exit);
	}
	LLVMPositionBuilderAtEnd(l->b, body);
	Val task = LLVMBuildPhi(l->b, lower_i64(l), "");
	l->task = l->task_lo = task;
	if (l->k->sets)
		enter_set(l, task);
	l->task_hi = LLVMBuildNSWAdd(l->b, l->task_lo, LLVMConstInt(lower_i64(l), 1, 0), "");
	l->task_step = LLVMConstInt(lower_i64(l), 1, 0);
	l->one_task = true;
	l->last = barrier_at_end(l->k);
	lower_body(l);
	Val next = LLVMBuildNSWAdd(l->b, task, step, ""), more = LLVMBuildICmp(l->b, LLVMIntSLT, next, ntask, "");
	if (l->last) {
		LLVMBasicBlockRef again = LLVMInsertBasicBlockInContext(l->ctx, exit, "");
		LLVMBuildCondBr(l->b, more, again, exit);
		LLVMPositionBuilderAtEnd(l->b, again);
		lower_barrier(l, tir_inst(l->k, l->last)->imm.i);
	}
	LLVMBasicBlockRef latch = LLVMGetInsertBlock(l->b);
	if (l->last)
		LLVMBuildBr(l->b, body);
	else
		LLVMBuildCondBr(l->b, more, body, exit);
	LLVMAddIncoming(task, (Val[]){first, next}, (LLVMBasicBlockRef[]){before, latch}, 2);
	LLVMPositionBuilderAtEnd(l->b, exit);
}

static Val
task_count(Lower *l)
{
	return LLVMGetParam(l->fn, tir_handed_buffers(l->k) * tir_sets(l->k) + tir_launch_scalars(l->k));
}

/* From the block's number on, or that of the cluster, which has one task where its blocks have nothing in common. */
static void
bind_tasks(Lower *l, Val block, Val blocks)
{
	l->task_lo = block;
	l->task_hi = task_count(l);
	l->task_step = blocks;
	if (l->k->cluster) {
		Val size = lower_int(l, lower_i64(l), l->k->cluster);
		bool all = tir_has_joint(l->k);
		l->task_lo = LLVMBuildUDiv(l->b, block, size, "");
		l->task_step = all ? LLVMBuildUDiv(l->b, blocks, size, "") : lower_int(l, lower_i64(l), 1);
		l->task_hi = all ? l->task_hi : LLVMBuildAdd(l->b, l->task_lo, l->task_step, "");
	}
}

/* The kernel's own loops. */
static void
task_loops(Lower *l)
{
	Val block = special_register(l, "llvm.nvvm.read.ptx.sreg.ctaid.x"), blocks = special_register(l, "llvm.nvvm.read.ptx.sreg.nctaid.x");
	bind_tasks(l, block, blocks);
	l->task = l->task_lo;
	lower_body(l);
}

void
lower_nvptx_kernel(Lower *l, const char *symbol, bool serial)
{
	new_entry(l, symbol, serial ? 1 : l->k->threads ? l->k->threads : IMAGE_CUDA_BLOCK);
	if (l->k->channel.n) { /* its roles wait */
		task_loops(l);
		return;
	}
	wait_for_others(l);
	if (serial)
		all_tasks(l, task_count(l));
	else
		own_tasks(l, task_count(l));
}

/* --- threads of a block --- */

/* Code that looks as if it had an effect, so that nobody shares it, or takes it out of a loop. */
static Val
read_anew(Lower *l, const char *name)
{
	static const char out[] = "=r";
	const char *code = arena_text(l->arena, "mov.u32 $0, %s;", name);
	LLVMTypeRef f = LLVMFunctionType(LLVMInt32TypeInContext(l->ctx), NULL, 0, 0);
	Val text = LLVMGetInlineAsm(f, code, strlen(code), out, sizeof out - 1, 1, 0, LLVMInlineAsmDialectATT, 0);
	return LLVMBuildCall2(l->b, f, text, NULL, 0, "");
}

Val
lower_thread_anew(Lower *l)
{
	unsigned most = 1;
	while (most < l->k->threads)
		most *= 2;
	Val thread = LLVMBuildAnd(l->b, read_anew(l, "%tid.x"), lower_int(l, LLVMInt32TypeInContext(l->ctx), most - 1), "");
	return LLVMBuildZExt(l->b, thread, lower_i64(l), "");
}

void
lower_tasks_anew(Lower *l)
{
	Val block = LLVMBuildZExt(l->b, read_anew(l, "%ctaid.x"), lower_i64(l), "");
	Val blocks = LLVMBuildZExt(l->b, read_anew(l, "%nctaid.x"), lower_i64(l), "");
	bind_tasks(l, block, blocks);
}

Val
lower_thread(Lower *l)
{
	return special_register(l, "llvm.nvvm.read.ptx.sreg.tid.x");
}

Val
lower_rank(Lower *l)
{
	return special_register(l, "llvm.nvvm.read.ptx.sreg.cluster.ctarank");
}

/* Where block `rank` of the cluster has what the own block has at `at`. */
Val
lower_of_block(Lower *l, Val at, Val rank)
{
	const Val arg[2] = {at, LLVMBuildTrunc(l->b, rank, LLVMInt32TypeInContext(l->ctx), "")};
	return lower_call(l, "llvm.nvvm.mapa.shared.cluster", NULL, 0, arg, 2);
}

void
lower_enter_cluster(Lower *l)
{
	LLVMTypeRef i1 = LLVMInt1TypeInContext(l->ctx);
	LLVMBasicBlockRef wait = new_block(l), there = new_block(l);
	LLVMBuildCondBr(l->b, LLVMBuildLoad2(l->b, i1, l->entered, ""), there, wait);
	LLVMPositionBuilderAtEnd(l->b, wait);
	lower_call(l, "llvm.nvvm.barrier.cluster.wait.aligned", NULL, 0, NULL, 0);
	LLVMBuildStore(l->b, lower_int(l, i1, 1), l->entered);
	LLVMBuildBr(l->b, there);
	LLVMPositionBuilderAtEnd(l->b, there);
}

/* Goes on behind what has been counted where it has, else looks on: LLVM moves nothing into a loop, nor through one that all go
 * through, and what is wanted after it would have registers before. */
static void
go_where_counted(Lower *l, Val word, Val phase, LLVMBasicBlockRef look, LLVMBasicBlockRef come)
{
	static const char test[] = "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [$1], $2; selp.b32 $0, 1, 0, p; }";
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx);
	Val done = lower_assembly(l, i32, test, "=r,r,r", (Val[]){word, phase}, 2);
	LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntNE, done, lower_int(l, i32, 0), ""), come, look);
}

/* Every thread waits for the bytes of as many elements as the buffer has, which the first one announces. */
static void
wait_for_elements(Lower *l, unsigned buffer)
{
	static const char announce[] = "{ .reg .b32 own; .reg .pred first; mov.u32 own, %tid.x; setp.eq.u32 first, own, 0; "
	                               "@first mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1; }";
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx);
	LLVMBasicBlockRef look = new_block(l), come = new_block(l);
	Val word = word_of(l, buffer), phases = LLVMBuildLoad2(l->b, i32, l->phases, "");
	Val bit = lower_int(l, i32, l->handed[buffer].bit), one = lower_int(l, i32, 1);
	Val phase = LLVMBuildAnd(l->b, LLVMBuildLShr(l->b, phases, bit, ""), one, "");
	LLVMBuildStore(l->b, LLVMBuildXor(l->b, phases, LLVMBuildShl(l->b, one, bit, ""), ""), l->phases);
	lower_assembly(l, NULL, announce, "r,r", (Val[]){word, lower_int(l, i32, 4 * l->k->buffer.at[buffer].shared)}, 2);
	go_where_counted(l, word, phase, look, come);
	LLVMPositionBuilderAtEnd(l->b, look);
	go_where_counted(l, word, phase, look, come);
	LLVMPositionBuilderAtEnd(l->b, come);
}

void
lower_barrier(Lower *l, int64_t kind)
{
	Val zero = LLVMConstInt(LLVMInt32TypeInContext(l->ctx), 0, 0), all = LLVMConstInt(LLVMInt32TypeInContext(l->ctx), UINT32_MAX, 0);
	if (kind == 1) {
		lower_enter_cluster(l);
		lower_call(l, "llvm.nvvm.barrier.cluster.arrive.aligned", NULL, 0, NULL, 0);
		lower_call(l, "llvm.nvvm.barrier.cluster.wait.aligned", NULL, 0, NULL, 0);
	} else if (kind == TIR_WARP_BARRIER)
		lower_call(l, "llvm.nvvm.bar.warp.sync", NULL, 0, &all, 1);
	else if (kind)
		wait_for_elements(l, (unsigned)TIR_HANDED_BUFFER(kind));
	else
		lower_call(l, "llvm.nvvm.barrier.cta.sync.aligned.all", NULL, 0, &zero, 1);
}

static Val
shuffle_word(Lower *l, Val word, unsigned by)
{
	static const char *const name[] = {"llvm.nvvm.shfl.sync.bfly.i32", "llvm.nvvm.shfl.sync.up.i32", "llvm.nvvm.shfl.sync.down.i32"};
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx);
	const Val same[2] = {word, LLVMConstInt(i32, UINT32_MAX, 0)};
	if (by == TIR_SAME) /* its result is a uniform register */
		return lower_call(l, "llvm.nvvm.redux.sync.or", NULL, 0, same, 2);
	unsigned kind = by / TIR_WARP, last = kind == 1 ? 0 : TIR_WARP - 1;
	const Val arg[4] = {LLVMConstInt(i32, UINT32_MAX, 0), word, LLVMConstInt(i32, by % TIR_WARP, 0), LLVMConstInt(i32, last, 0)};
	return lower_call(l, name[kind], NULL, 0, arg, 4);
}

/* A word of 32 bits at a time. */
Val
lower_shuffle(Lower *l, ValId v)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx), i64 = lower_i64(l);
	Val own = lower_arg(l, v, 0);
	LLVMTypeRef type = LLVMTypeOf(own);
	unsigned by = (unsigned)lower_inst(l, v)->imm.i, bits = dtype_info[lower_inst(l, v)->type.dtype].bits;
	LLVMTypeRef whole = LLVMIntTypeInContext(l->ctx, LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : bits);
	Val word = LLVMBuildBitCast(l->b, own, whole, "");
	if (bits <= 32) {
		word = LLVMBuildZExtOrBitCast(l->b, word, i32, "");
		return LLVMBuildBitCast(l->b, LLVMBuildTruncOrBitCast(l->b, shuffle_word(l, word, by), whole, ""), type, "");
	}
	Val half = LLVMConstInt(i64, 32, 0);
	Val low = shuffle_word(l, LLVMBuildTrunc(l->b, word, i32, ""), by);
	Val high = shuffle_word(l, LLVMBuildTrunc(l->b, LLVMBuildLShr(l->b, word, half, ""), i32, ""), by);
	word = LLVMBuildShl(l->b, LLVMBuildZExt(l->b, high, i64, ""), half, "");
	word = LLVMBuildOr(l->b, word, LLVMBuildZExt(l->b, low, i64, ""), "");
	return LLVMBuildBitCast(l->b, word, type, "");
}

/* --- faults --- */

static LLVMBasicBlockRef
branch_if(Lower *l, Val cond)
{
	LLVMBasicBlockRef exit = LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
	LLVMBasicBlockRef then = LLVMInsertBasicBlockInContext(l->ctx, exit, "");
	LLVMBuildCondBr(l->b, cond, then, exit);
	LLVMPositionBuilderAtEnd(l->b, then);
	return exit;
}

static void
keep_least(Lower *l, unsigned n, Val id)
{
	LLVMTypeRef i64 = lower_i64(l);
	LLVMBasicBlockRef exit = branch_if(l, LLVMBuildICmp(l->b, LLVMIntNE, id, LLVMConstNull(LLVMTypeOf(id)), ""));
	Val at = LLVMConstInt(i64, n, 0), sixteen = LLVMConstInt(i64, 16, 0);
	Val p = LLVMBuildGEP2(l->b, i64, l->status, &at, 1, "");
	Val old = LLVMBuildLoad2(l->b, i64, p, "");
	LLVMSetAlignment(old, 8);
	LLVMSetOrdering(old, LLVMAtomicOrderingMonotonic);
	Val other = LLVMBuildICmp(l->b, LLVMIntNE, LLVMBuildLShr(l->b, old, sixteen, ""), l->task, "");
	LLVMBasicBlockRef done = branch_if(l, other);
	Val word = LLVMBuildOr(l->b, LLVMBuildShl(l->b, l->task, sixteen, ""), LLVMBuildZExt(l->b, id, i64, ""), "");
	LLVMBuildAtomicRMW(l->b, LLVMAtomicRMWBinOpUMin, p, word, LLVMAtomicOrderingMonotonic, 0);
	LLVMBuildBr(l->b, done);
	LLVMPositionBuilderAtEnd(l->b, done);
	LLVMBuildBr(l->b, exit);
	LLVMPositionBuilderAtEnd(l->b, exit);
}

void
lower_nvptx_fault(Lower *l, Val word)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx);
	LLVMBasicBlockRef exit = branch_if(l, LLVMBuildICmp(l->b, LLVMIntNE, word, LLVMConstNull(LLVMTypeOf(word)), ""));
	keep_least(l, 0, LLVMBuildAnd(l->b, word, LLVMConstInt(i32, 0xffff, 0), ""));
	keep_least(l, 1, LLVMBuildLShr(l->b, word, LLVMConstInt(i32, 16, 0), ""));
	LLVMBuildBr(l->b, exit);
	LLVMPositionBuilderAtEnd(l->b, exit);
}
