/* nvptx_posts.c: words that other tasks of a GPU's kernel post, as a thread waits for them.
 *
 * It looks until they are there, by an operation that leaves them as they are: what loads bring to a multiprocessor comes in their
 * order, and one of them would wait for all that other blocks have on their way from memory. All words that are waited for
 * one after another under one condition are asked for together, so that a turn of looking takes as long as for one.
 *
 * A word says by itself that it is there, and is all that it says, but where groups hand over what they have stored: the fence
 * and their barriers order that. */
#include "codegen/lower.h"

enum { MOST_WORDS = 8, MOST_WORK = 64 };

static bool
is_posted(const Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	return x->op == OP_LOAD && !x->type.lanes && l->k->buffer.at[lower_inst(l, lower_arg_id(l, lower_arg_id(l, v, 0), 0))->imm.i].posted;
}

static ValId
mask_of(const Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	return x->imm.i & TIR_MASKED ? lower_arg_id(l, v, x->narg - 1u) : 0;
}

/* Whether all that the access wants has been lowered, or waits. */
static bool
is_ready(const Lower *l, ValId v)
{
	ValId view = lower_arg_id(l, v, 0);
	unsigned work = MOST_WORK;
	bool ready = true;
	for (unsigned n = 1; ready && n < lower_inst(l, view)->narg; n++)
		ready = lower_only_waits(l, lower_arg_id(l, view, n), &work);
	for (unsigned n = 1; ready && n < lower_inst(l, v)->narg; n++)
		ready = lower_only_waits(l, lower_arg_id(l, v, n), &work);
	return ready;
}

/* The at-th instruction and those behind it that wait under its condition, where nothing else happens between; how many. */
static unsigned
find_words(const Lower *l, const TirRegion *r, uint32_t at, ValId *word)
{
	unsigned n = 0;
	word[n++] = r->inst.at[at];
	for (uint32_t i = at + 1; i < r->inst.n && n < MOST_WORDS; i++) {
		ValId v = r->inst.at[i];
		Op op = (Op)lower_inst(l, v)->op;
		if (is_posted(l, v) && mask_of(l, v) == mask_of(l, word[0]) && is_ready(l, v))
			word[n++] = v;
		else if (op_info[op].cls != CLASS_MAP && op_info[op].cls != CLASS_LEAF && op != OP_VIEW)
			break;
	}
	return n;
}

static Val
address_of(Lower *l, const TirRegion *r, ValId v)
{
	ValId view = lower_arg_id(l, v, 0);
	for (unsigned n = 1; n < lower_inst(l, view)->narg; n++)
		lower_now(l, r, lower_arg_id(l, view, n));
	for (unsigned n = 1; n < lower_inst(l, v)->narg; n++)
		lower_now(l, r, lower_arg_id(l, v, n));
	return lower_address(l, view, l->k->arg.at + lower_inst(l, v)->arg + 1);
}

static LLVMBasicBlockRef
new_block(Lower *l)
{
	return LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
}

bool
lower_posted(Lower *l, const TirRegion *r, uint32_t at)
{
	ValId v[MOST_WORDS];
	Val p[MOST_WORDS], word[MOST_WORDS], all = NULL;
	if (!is_posted(l, r->inst.at[at]))
		return false;
	unsigned n = find_words(l, r, at, v), device = LLVMGetSyncScopeID(l->ctx, "device", 6);
	LLVMTypeRef type = lower_dtype(l, DT_U64);
	for (unsigned k = 0; k < n; k++)
		p[k] = address_of(l, r, v[k]);
	ValId mask = mask_of(l, v[0]);
	LLVMBasicBlockRef from = LLVMGetInsertBlock(l->b), look = new_block(l), seen = new_block(l), exit = new_block(l);
	if (mask)
		LLVMBuildCondBr(l->b, l->val[mask], look, exit);
	else
		LLVMBuildBr(l->b, look);
	LLVMPositionBuilderAtEnd(l->b, look);
	for (unsigned k = 0; k < n; k++) {
		word[k] = LLVMBuildAtomicRMW(l->b, LLVMAtomicRMWBinOpOr, p[k], LLVMConstNull(type), LLVMAtomicOrderingMonotonic, false);
		LLVMSetAtomicSyncScopeID(word[k], device);
		Val there = LLVMBuildICmp(l->b, LLVMIntNE, word[k], LLVMConstNull(type), "");
		all = all ? LLVMBuildAnd(l->b, all, there, "") : there;
	}
	LLVMBuildCondBr(l->b, all, seen, look);
	LLVMPositionBuilderAtEnd(l->b, seen);
	if (l->k->channel.n)
		LLVMBuildFenceSyncScope(l->b, LLVMAtomicOrderingAcquire, device, "");
	LLVMBuildBr(l->b, exit);
	LLVMPositionBuilderAtEnd(l->b, exit);
	for (unsigned k = 0; k < n; k++) {
		l->val[v[k]] = mask ? LLVMBuildPhi(l->b, type, "") : word[k];
		if (mask)
			LLVMAddIncoming(l->val[v[k]], (Val[]){LLVMConstNull(type), word[k]}, (LLVMBasicBlockRef[]){from, seen}, 2);
	}
	return true;
}
