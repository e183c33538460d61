/* nvptx_order.c: the order in which a thread of a GPU computes.
 *
 * TIR has one operation of all lanes of a thread, then the next one. Lowered like that, and the assembler changes
 * little of it across branches, all lanes of many values have registers at once. So what only computes waits until a
 * store, a loop or another region wants it, and a group of lanes is done with before the next one is begun. What a
 * region inside might want is lowered before it, so that it dominates all its uses. Where something is folded
 * everything is done with where it comes: what waited would have registers for all terms; but for what is packed to be stored. */
#include "codegen/lower.h"

bool
lower_only_computes(const Lower *l, ValId v)
{
	Op op = (Op)lower_inst(l, v)->op;
	return op_info[op].cls == CLASS_MAP || op == OP_CONST || op == OP_LANE;
}

bool
lower_may_wait(const Lower *l, const TirRegion *r)
{
	for (uint32_t i = 0; i < r->inst.n; i++) {
		const TirInst *x = lower_inst(l, r->inst.at[i]);
		if (x->op == OP_FOR || x->op == OP_SHUFFLE || x->op == OP_BARRIER || (x->op == OP_YIELD && x->narg))
			return false;
	}
	return true;
}

bool
lower_only_waits(const Lower *l, ValId v, unsigned *work)
{
	if (l->val[v])
		return true;
	if (!*work || !lower_only_computes(l, v) || lower_is_quotient(l, v))
		return false;
	--*work;
	for (unsigned n = 0; n < lower_inst(l, v)->narg; n++)
		if (!lower_only_waits(l, lower_arg_id(l, v, n), work))
			return false;
	return true;
}

void
lower_now(Lower *l, const TirRegion *r, ValId v)
{
	if (l->val[v] || !lower_only_computes(l, v))
		return;
	for (unsigned n = 0; n < lower_inst(l, v)->narg; n++)
		lower_now(l, r, lower_arg_id(l, v, n));
	if (!lower_is_quotient(l, v) || !lower_quotients(l, r, v))
		l->val[v] = lower_value(l, v);
}

/* Two conversions are one instruction where they stand in one block with what joins them. LLVM takes them behind the condition of a
 * store only from right in front of it. */
static bool
is_packed(const Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	bool half = dtype_is_float((DType)x->type.dtype) && dtype_info[x->type.dtype].bits == 16;
	return half && (x->op == OP_JOIN || (x->op == OP_CAST && !x->type.lanes));
}

bool
lower_waits(Lower *l, const TirRegion *r, uint32_t at, bool waits)
{
	ValId v = r->inst.at[at];
	const TirInst *x = lower_inst(l, v);
	if (!waits && lower_only_computes(l, v) && !is_packed(l, v)) {
		lower_hold(l, v);
		lower_now(l, r, v);
	}
	if (lower_only_computes(l, v))
		return true;
	for (uint32_t k = 0; x->nregion && k < at; k++)
		lower_now(l, r, r->inst.at[k]);
	for (unsigned n = 0; n < x->narg; n++)
		lower_now(l, r, lower_arg_id(l, v, n));
	return false;
}
