/* nvptx_hold.c: what keeps LLVM from computing behind branches what a thread of a GPU has computed before them.
 *
 * LLVM moves what only later blocks want into the last block before the one that wants it, one operation after the other. Behind
 * a row of masked stores each operation ends in another block than its operand, and so does it behind a loop: of all lanes what
 * the operations have between them, often two or three values, has registers, where the results would have one each. So where
 * everything is computed where it comes (nvptx_order.c), a result that lies in a block before all its uses, and of which
 * something is wanted twice on the way, is used in that block as well, by code that is nothing. Where each operation wants one
 * value a result takes no less than what it is made of, and LLVM may do as it likes. */
#include "codegen/lower.h"

#include <string.h>

enum { FEW = 8 }; /* have registers wherever they are computed */

typedef struct {
	Lower *l;
	ValId *end;      /* by value: the only result that it is for, itself if there are others or it is stored; 0: nothing wants it */
	ValId *user;     /* by value: one that wants it */
	uint32_t *block; /* by value of the region: how many branches are before it, + 1; 0: it is outside */
	uint32_t *first; /* by value: the block of its first use */
	bool *twice;     /* by value: whether several operations want it */
} Uses;

/* Whether what comes behind v may be in another block. */
static bool
branches(const Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	return x->nregion || lower_is_quotient(l, v) || ((x->op == OP_LOAD || x->op == OP_STORE) && (x->imm.i & TIR_MASKED));
}

/* `by`, 0 where it is not computed, wants v in this block. */
static void
note_use(Uses *u, ValId v, ValId by, uint32_t block)
{
	if (!u->block[v])
		return;
	bool near = by && u->block[by] == u->block[v];
	ValId end = near && lower_inst(u->l, by)->op != OP_JOIN ? u->end[by] : v;
	block = near ? u->first[by] : block;
	u->first[v] = u->first[v] && u->first[v] < block ? u->first[v] : block;
	u->end[v] = u->end[v] && u->end[v] != end ? v : end;
	u->twice[v] |= u->user[v] && u->user[v] != by;
	u->user[v] = by;
}

static void
note_inside(Uses *u, const TirInst *x, uint32_t block)
{
	const TirKernel *k = u->l->k;
	for (unsigned c = 0; c < x->nregion; c++) {
		const TirRegion *r = &k->region.at[x->region + c];
		for (uint32_t n = 0; n < r->inst.n; n++) {
			const TirInst *y = tir_inst(k, r->inst.at[n]);
			for (unsigned a = 0; a < y->narg; a++)
				note_use(u, tir_arg(k, r->inst.at[n], a), 0, block);
			note_inside(u, y, block);
		}
	}
}

/* From the last to the first, so that what wants a value comes before it. */
static void
note_uses(Uses *u, const TirRegion *r, uint32_t block)
{
	for (uint32_t n = r->inst.n; n-- > 0;) {
		ValId v = r->inst.at[n];
		const TirInst *x = lower_inst(u->l, v);
		block -= branches(u->l, v);
		note_inside(u, x, block);
		for (unsigned a = 0; a < x->narg; a++)
			note_use(u, lower_arg_id(u->l, v, a), lower_only_computes(u->l, v) && u->end[v] ? v : 0, block);
	}
}

static bool
is_held(const Uses *u, const bool *way, ValId v)
{
	const TirInst *x = lower_inst(u->l, v);
	return u->end[v] == v && way[v] && u->first[v] > u->block[v] && x->type.dtype == DT_F32 && !x->type.lanes && lower_only_computes(u->l, v);
}

/* For whose results something is wanted twice on the way. */
static bool *
find_ways(const Uses *u, const TirRegion *r)
{
	bool *way = ARENA_ARRAY(u->l->arena, bool, u->l->k->inst.n);
	for (uint32_t i = 0; i < r->inst.n; i++) {
		ValId v = r->inst.at[i], end = u->end[v];
		if (end && end != v && u->twice[v] && lower_only_computes(u->l, v))
			way[end] = true;
	}
	return way;
}

void
lower_hold_region(Lower *l, const TirRegion *r)
{
	uint32_t count = l->k->inst.n, block = 1, n = 0;
	for (uint32_t i = 0; i < r->inst.n; i++)
		block += branches(l, r->inst.at[i]);
	if (block == 1)
		return;
	Uses u = {.l = l, .end = ARENA_ARRAY(l->arena, ValId, count), .user = ARENA_ARRAY(l->arena, ValId, count)};
	u.block = ARENA_ARRAY(l->arena, uint32_t, count);
	u.first = ARENA_ARRAY(l->arena, uint32_t, count);
	u.twice = ARENA_ARRAY(l->arena, bool, count);
	block = 1;
	for (uint32_t i = 0; i < r->inst.n; i++) {
		block += branches(l, r->inst.at[i]);
		u.block[r->inst.at[i]] = block;
	}
	note_uses(&u, r, block);
	const bool *way = find_ways(&u, r);
	if (!l->held_at) {
		l->held_at = ARENA_ARRAY(l->arena, ValId, count);
		l->held_next = ARENA_ARRAY(l->arena, ValId, count);
	}
	for (uint32_t i = 0; i < r->inst.n; i++) {
		ValId at = r->inst.at[i], last = 0;
		unsigned held = 0;
		for (; branches(l, at) && n < i; n++) {
			ValId v = r->inst.at[n];
			if (!is_held(&u, way, v))
				continue;
			l->held_next[v] = last;
			last = v;
			held++;
		}
		l->held_at[at] = held > FEW ? last : 0;
	}
}

/* An instruction that is nothing, and stays where it stands, wants a. */
static void
want(Lower *l, Val a)
{
	LLVMTypeRef type = LLVMTypeOf(a), f = LLVMFunctionType(LLVMVoidTypeInContext(l->ctx), &type, 1, 0);
	Val call = LLVMBuildCall2(l->b, f, LLVMGetInlineAsm(f, "", 0, "f", 1, 1, 0, LLVMInlineAsmDialectATT, 0), &a, 1, "");
	static const char *const attribute[] = {"memory", "nounwind"};
	for (unsigned n = 0; n < 2; n++)
		LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
		                         LLVMCreateEnumAttribute(l->ctx, LLVMGetEnumAttributeKindForName(attribute[n], strlen(attribute[n])), 0));
}

void
lower_hold(Lower *l, ValId at)
{
	for (ValId v = l->held_at ? l->held_at[at] : 0; v; v = l->held_next[v])
		want(l, l->val[v]);
}
