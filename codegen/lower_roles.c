/* lower_roles.c: roles, channels and products of matrices (ir/channel.h) on sm_90a: TMA, mbarriers and wgmma, by inline
 * assembly, since LLVM has no wgmma and its other intrinsics ask for later versions of PTX.
 *
 * In the block's dynamic shared memory lie the slots of all channels, 1024-byte aligned, each part as TMA writes it and
 * wgmma reads it with the 128-byte swizzle: rows of 128 bytes, or panels of 64 x 64 elements where it is turned. Behind
 * them are two words a slot, `full` and `empty`. Fill n waits for the phase n / slots of either; the empty ones are at
 * first as if they had been released.
 *
 * A group's turn is a barrier of the hardware that both groups come to: one waits there for the other, which does not.
 *
 * An accumulator is a bank of PTX registers that is declared once and named in the text, so that LLVM never moves what a
 * product still adds to. */
#include <string.h>

#include "codegen/lower.h"
#include "ir/text.h"

enum { SHARED = 3, MAP_BYTES = 128, MAP_ALIGN = 64, SPAN = 128, WORD = 8, UNIT = 16 };

typedef struct LowerRoles {
	Val ring;       /* i32: where it begins */
	Val group;      /* i32, the same in a warp */
	Val first;      /* i32: 1 in the first thread of the group, else 0 */
	unsigned first_map, shares; /* shares: in how many parts the first factor's rows are */
} Roles;

static LLVMTypeRef
i32(Lower *l)
{
	return LLVMInt32TypeInContext(l->ctx);
}

static Val
number(Lower *l, uint64_t v)
{
	return LLVMConstInt(i32(l), v, 0);
}

/* Code that stays where it stands. */
static Val
assembly(Lower *l, LLVMTypeRef result, const char *code, const char *constraints, const Val *arg, unsigned narg)
{
	LLVMTypeRef type[8];
	Val own[8];
	for (unsigned n = 0; n < narg; n++) {
		own[n] = arg[n];
		type[n] = LLVMTypeOf(arg[n]);
	}
	const char *all = arena_text(l->arena, "%s%s~{memory}", constraints, *constraints ? "," : "");
	LLVMTypeRef f = LLVMFunctionType(result ? result : LLVMVoidTypeInContext(l->ctx), type, narg, 0);
	Val code_of = LLVMGetInlineAsm(f, code, strlen(code), all, strlen(all), 1, 0, LLVMInlineAsmDialectATT, 0);
	Val call = LLVMBuildCall2(l->b, f, code_of, own, narg, "");
	static const char *const attribute[] = {"convergent", "nounwind"};
	for (unsigned n = 0; n < 2; n++)
		LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
		                         LLVMCreateEnumAttribute(l->ctx, LLVMGetEnumAttributeKindForName(attribute[n], strlen(attribute[n])), 0));
	return call;
}

/* --- places --- */

/* Where channel c has its slots, in the ring. */
static uint32_t
slots_at(const TirKernel *k, unsigned c)
{
	uint32_t at = 0;
	for (unsigned n = 0; n < c; n++)
		at += k->channel.at[n].slots * tir_slot_bytes(&k->channel.at[n]);
	return at;
}

/* Its words: first the full ones. */
static uint32_t
words_at(const TirKernel *k, unsigned c)
{
	uint32_t at = slots_at(k, k->channel.n);
	for (unsigned n = 0; n < c; n++)
		at += 2 * WORD * k->channel.at[n].slots;
	return at;
}

static uint32_t
part_at(const TirChannel *c, unsigned part)
{
	uint32_t at = 0;
	for (unsigned n = 0; n < part; n++)
		at += tir_part_bytes(&c->part[n]);
	return at;
}

static const TirChannel *
channel_of(const Lower *l, ValId v)
{
	return &l->k->channel.at[TIR_CHANNEL_OF(lower_inst(l, v)->imm.i)];
}

/* base + number of the slot that fill n has * size, in shared memory. */
static Val
at_slot(Lower *l, const TirChannel *c, Val n, uint32_t base, uint32_t size)
{
	Val slot = LLVMBuildAnd(l->b, LLVMBuildTrunc(l->b, n, i32(l), ""), number(l, c->slots - 1u), "");
	Val at = LLVMBuildAdd(l->b, LLVMBuildMul(l->b, slot, number(l, size), ""), number(l, base), "");
	return LLVMBuildAdd(l->b, l->roles->ring, at, "");
}

static Val
full_word(Lower *l, ValId v, Val n)
{
	return at_slot(l, channel_of(l, v), n, words_at(l->k, TIR_CHANNEL_OF(lower_inst(l, v)->imm.i)), WORD);
}

static Val
empty_word(Lower *l, ValId v, Val n)
{
	const TirChannel *c = channel_of(l, v);
	return at_slot(l, c, n, words_at(l->k, TIR_CHANNEL_OF(lower_inst(l, v)->imm.i)) + c->slots * WORD, WORD);
}

/* --- the kernel --- */

static LLVMTypeRef
map_type(Lower *l)
{
	return LLVMArrayType2(LLVMInt8TypeInContext(l->ctx), MAP_BYTES);
}

static void
mark_maps(Lower *l, unsigned first)
{
	unsigned byval = LLVMGetEnumAttributeKindForName("byval", 5), align = LLVMGetEnumAttributeKindForName("align", 5);
	for (unsigned p = first; p < first + tir_maps(l->k); p++) {
		LLVMAddAttributeAtIndex(l->fn, p + 1, LLVMCreateTypeAttribute(l->ctx, byval, map_type(l)));
		LLVMAddAttributeAtIndex(l->fn, p + 1, LLVMCreateEnumAttribute(l->ctx, align, MAP_ALIGN));
		LLVMAddAttributeAtIndex(l->fn, p + 1, LLVMCreateStringAttribute(l->ctx, "nvvm.grid_constant", 18, "", 0));
	}
}

void
lower_begin_roles(Lower *l, unsigned first_map)
{
	Roles *r = l->roles = ARENA_NEW(l->arena, Roles);
	LLVMTypeRef bytes = LLVMArrayType2(LLVMInt8TypeInContext(l->ctx), 0);
	Val ring = LLVMAddGlobalInAddressSpace(l->module, bytes, "ring", SHARED);
	LLVMSetLinkage(ring, LLVMExternalLinkage);
	LLVMSetAlignment(ring, 1024);
	r->ring = LLVMConstPtrToInt(ring, i32(l));
	r->first_map = first_map;
	mark_maps(l, first_map);
}

/* The registers of the largest accumulator. */
static unsigned
accumulator(const TirKernel *k, unsigned shares)
{
	unsigned most = 0;
	for (ValId v = 1; v < k->inst.n; v++)
		if (k->inst.at[v].op == OP_MMA) {
			int64_t imm = k->inst.at[v].imm.i;
			const TirChannel *c = &k->channel.at[TIR_CHANNEL_OF(imm)];
			unsigned n = c->part[TIR_PART_OF(imm)].rows / (TIR_MMA_ROWS * shares) * (c->part[TIR_SECOND_PART_OF(imm)].rows / 2);
			most = n > most ? n : most;
		}
	return most;
}

static LLVMBasicBlockRef
new_block(Lower *l)
{
	return LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
}

/* Opens what runs where cond, an i32, is not 0, and gives where it goes on. */
static LLVMBasicBlockRef
open_if(Lower *l, Val cond)
{
	LLVMBasicBlockRef then = new_block(l), after = new_block(l);
	LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntNE, cond, number(l, 0), ""), then, after);
	LLVMPositionBuilderAtEnd(l->b, then);
	return after;
}

static void
close_if(Lower *l, LLVMBasicBlockRef after)
{
	LLVMBuildBr(l->b, after);
	LLVMPositionBuilderAtEnd(l->b, after);
}

/* The first thread makes the words; then all know them. */
static void
make_words(Lower *l, Val thread)
{
	const TirKernel *k = l->k;
	LLVMBasicBlockRef after = open_if(l, LLVMBuildZExt(l->b, LLVMBuildICmp(l->b, LLVMIntEQ, thread, number(l, 0), ""), i32(l), ""));
	for (uint32_t c = 0; c < k->channel.n; c++)
		for (unsigned s = 0; s < 2u * k->channel.at[c].slots; s++) {
			Val at = LLVMBuildAdd(l->b, l->roles->ring, number(l, words_at(k, c) + s * WORD), "");
			Val arg[2] = {at, number(l, s < k->channel.at[c].slots ? 1 : l->roles->shares)};
			assembly(l, NULL, "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r", arg, 2);
		}
	assembly(l, NULL, "fence.mbarrier_init.release.cluster;", "", NULL, 0);
	close_if(l, after);
	lower_barrier(l, 0);
}

/* Barriers of both groups: one waits for its turn, the other gives it. */
enum { TURN_BARRIER = 8, BOTH = 2 * TIR_GROUP };

/* As if the second group had had one before. */
static void
first_turn(Lower *l)
{
	LLVMBasicBlockRef after = open_if(l, l->roles->group);
	assembly(l, NULL, arena_text(l->arena, "barrier.cta.arrive.aligned %d, %d;", TURN_BARRIER, BOTH), "", NULL, 0);
	close_if(l, after);
}

void
lower_turn(Lower *l, ValId v)
{
	bool gives = lower_inst(l, v)->imm.i != 0;
	Val group = gives ? LLVMBuildXor(l->b, l->roles->group, number(l, 1), "") : l->roles->group;
	Val id = LLVMBuildAdd(l->b, group, number(l, TURN_BARRIER), "");
	assembly(l, NULL, arena_text(l->arena, "barrier.cta.%s.aligned $0, %d;", gives ? "arrive" : "sync", BOTH), "r", &id, 1);
}

void
lower_roles(Lower *l, ValId v)
{
	Roles *r = l->roles;
	TirRoles roles = tir_roles(lower_inst(l, v)->imm.i);
	Val thread = LLVMBuildTrunc(l->b, lower_thread(l), i32(l), "");
	r->shares = roles.shares;
	assembly(l, NULL, arena_text(l->arena, ".reg .f32 acc<%u>;", accumulator(l->k, roles.shares)), "", NULL, 0);
	make_words(l, thread);
	Val group = LLVMBuildLShr(l->b, thread, number(l, 7), "");
	r->group = assembly(l, i32(l), "shfl.sync.idx.b32 $0, $1, 0, 31, -1;", "=r,r", &group, 1);
	Val in_group = LLVMBuildAnd(l->b, thread, number(l, TIR_GROUP - 1), "");
	r->first = LLVMBuildZExt(l->b, LLVMBuildICmp(l->b, LLVMIntEQ, in_group, number(l, 0), ""), i32(l), "");
	LLVMBasicBlockRef multiply = new_block(l), load = new_block(l);
	Val loads = LLVMBuildICmp(l->b, LLVMIntEQ, r->group, number(l, roles.groups), "");
	LLVMBuildCondBr(l->b, loads, load, multiply);
	LLVMPositionBuilderAtEnd(l->b, multiply);
	assembly(l, NULL, arena_text(l->arena, "setmaxnreg.inc.sync.aligned.u32 %u;", roles.registers), "", NULL, 0);
	if (roles.turns)
		first_turn(l);
	lower_role(l, lower_inst(l, v)->region);
	LLVMBuildRetVoid(l->b);
	LLVMPositionBuilderAtEnd(l->b, load);
	assembly(l, NULL, arena_text(l->arena, "setmaxnreg.dec.sync.aligned.u32 %u;", roles.rest), "", NULL, 0);
	LLVMBasicBlockRef after = open_if(l, r->first);
	lower_role(l, lower_inst(l, v)->region + 1);
	close_if(l, after);
}

/* --- channels --- */

/* Until the word at `at` is through with phase n / slots, or where it is `before`, with the one before that. */
static void
wait_for(Lower *l, const TirChannel *c, Val at, Val n, bool before)
{
	unsigned shift = (unsigned)__builtin_ctz(c->slots);
	Val phase = LLVMBuildLShr(l->b, LLVMBuildTrunc(l->b, n, i32(l), ""), number(l, shift), "");
	phase = LLVMBuildAnd(l->b, phase, number(l, 1), "");
	if (before)
		phase = LLVMBuildXor(l->b, phase, number(l, 1), "");
	LLVMBasicBlockRef poll = new_block(l), there = new_block(l);
	LLVMBuildBr(l->b, poll);
	LLVMPositionBuilderAtEnd(l->b, poll);
	Val done = assembly(l, i32(l), "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [$1], $2; selp.b32 $0, 1, 0, p; }",
	                    "=r,r,r", (Val[]){at, phase}, 2);
	LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntNE, done, number(l, 0), ""), there, poll);
	LLVMPositionBuilderAtEnd(l->b, there);
}

/* The slot's bytes are announced as soon as it is empty. */
void
lower_acquire(Lower *l, ValId v)
{
	const TirChannel *c = channel_of(l, v);
	Val n = lower_arg(l, v, 0);
	wait_for(l, c, empty_word(l, v, n), n, true);
	assembly(l, NULL, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r",
	         (Val[]){full_word(l, v, n), number(l, tir_slot_bytes(c))}, 2);
}

void
lower_wait(Lower *l, ValId v)
{
	Val n = lower_arg(l, v, 0);
	wait_for(l, channel_of(l, v), full_word(l, v, n), n, false);
}

/* Without a branch: those divide a warp, and products in flight would be waited for. */
void
lower_release(Lower *l, ValId v)
{
	Val cond = LLVMBuildAnd(l->b, LLVMBuildZExt(l->b, lower_arg(l, v, 1), i32(l), ""), l->roles->first, "");
	assembly(l, NULL, "{ .reg .pred p; setp.ne.b32 p, $1, 0; @p mbarrier.arrive.shared::cta.b64 _, [$0]; }", "r,r",
	         (Val[]){empty_word(l, v, lower_arg(l, v, 0)), cond}, 2);
}

/* The tensor map of a COPY. */
static Val
map_of(Lower *l, ValId copy)
{
	unsigned n = 0;
	for (ValId v = 1; v < copy; v++)
		n += lower_inst(l, v)->op == OP_COPY;
	return LLVMGetParam(l->fn, l->roles->first_map + n);
}

static void
copy_box(Lower *l, Val to, Val map, Val word, const Val *at, unsigned rank)
{
	Val arg[8] = {to, map, word};
	Text code, constraints;
	text_init(&code, l->arena);
	text_init(&constraints, l->arena);
	text_printf(&code, "cp.async.bulk.tensor.%ud.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1, {", rank);
	text_printf(&constraints, "r,l,r");
	for (unsigned n = 0; n < rank; n++) {
		text_printf(&code, "%s$%u", n ? ", " : "", 3 + n);
		text_printf(&constraints, ",r");
		arg[3 + n] = at[n];
	}
	text_printf(&code, "}], [$2];");
	assembly(l, NULL, text_get(&code), text_get(&constraints), arg, 3 + rank);
}

/* Coordinates are those of the view, the last one first. */
void
lower_copy(Lower *l, ValId v)
{
	const TirChannel *c = channel_of(l, v);
	unsigned number_of_part = TIR_PART_OF(lower_inst(l, v)->imm.i), rank = lower_inst(l, v)->narg - 2;
	const TirPart *p = &c->part[number_of_part];
	Val n = lower_arg(l, v, 1), word = full_word(l, v, n), at[5], map = map_of(l, v);
	uint32_t base = slots_at(l->k, TIR_CHANNEL_OF(lower_inst(l, v)->imm.i)) + part_at(c, number_of_part);
	Val to = at_slot(l, c, n, base, tir_slot_bytes(c));
	for (unsigned k = 0; k < rank; k++)
		at[k] = LLVMBuildTrunc(l->b, lower_arg(l, v, 1 + rank - k), i32(l), "");
	unsigned panels = p->turned ? p->rows / TIR_PART_TERMS : 1;
	Val first = at[0];
	for (unsigned k = 0; k < panels; k++) {
		at[0] = LLVMBuildAdd(l->b, first, number(l, k * TIR_PART_TERMS), "");
		copy_box(l, LLVMBuildAdd(l->b, to, number(l, k * SPAN * p->terms), ""), map, word, at, rank);
	}
}

/* --- products --- */

/* What wgmma takes for a part of fill n, `past` bytes in: the address and the distances of its rows and panels, in units
 * of 16 bytes, and the swizzle. */
static Val
descriptor(Lower *l, const TirChannel *c, unsigned part, uint32_t base, Val n, Val past)
{
	uint64_t panel = c->part[part].turned ? SPAN * TIR_PART_TERMS / UNIT : 1;
	uint64_t fixed = panel << 16 | (uint64_t)(8 * SPAN / UNIT) << 32 | UINT64_C(1) << 62;
	Val at = at_slot(l, c, n, base + part_at(c, part), tir_slot_bytes(c));
	if (past)
		at = LLVMBuildAdd(l->b, at, past, "");
	at = LLVMBuildLShr(l->b, at, number(l, 4), "");
	return LLVMBuildOr(l->b, LLVMBuildZExt(l->b, at, lower_i64(l), ""), LLVMConstInt(lower_i64(l), fixed, 0), "");
}

/* From one instruction's terms to the next one's; from 64 rows to the next ones. In units. */
static uint64_t
term_step(const TirPart *p)
{
	return p->turned ? TIR_MMA_TERMS * SPAN / UNIT : TIR_MMA_TERMS * 2 / UNIT;
}

static uint64_t
row_step(const TirPart *p)
{
	return p->turned ? SPAN * TIR_PART_TERMS / UNIT : TIR_MMA_ROWS * SPAN / UNIT;
}

/* One instruction: 64 rows from register `first` of the bank on. */
static void
multiply(Lower *l, const TirPart *a, const TirPart *b, unsigned first, Val da, Val db, Val more)
{
	Text code;
	const char *type = dtype_info[a->dtype].text;
	text_init(&code, l->arena);
	text_printf(&code, "{ .reg .pred p; setp.ne.b32 p, $2, 0; wgmma.mma_async.sync.aligned.m64n%uk16.f32.%s.%s {", b->rows, type, type);
	for (unsigned n = 0; n < b->rows / 2u; n++)
		text_printf(&code, "%sacc%u", n ? ", " : "", first + n);
	text_printf(&code, "}, $0, $1, p, 1, 1, %d, %d; }", a->turned, b->turned);
	assembly(l, NULL, text_get(&code), "l,l,r", (Val[]){da, db, more}, 3);
}

void
lower_mma(Lower *l, ValId v)
{
	int64_t imm = lower_inst(l, v)->imm.i;
	const TirChannel *c = channel_of(l, v);
	const TirPart *a = &c->part[TIR_PART_OF(imm)], *b = &c->part[TIR_SECOND_PART_OF(imm)];
	uint32_t base = slots_at(l->k, TIR_CHANNEL_OF(imm));
	unsigned repeats = a->rows / (TIR_MMA_ROWS * l->roles->shares);
	Val n = lower_arg(l, v, 0), own = NULL;
	if (l->roles->shares > 1)
		own = LLVMBuildMul(l->b, l->roles->group, number(l, repeats * row_step(a) * UNIT), "");
	Val da = descriptor(l, c, TIR_PART_OF(imm), base, n, own), db = descriptor(l, c, TIR_SECOND_PART_OF(imm), base, n, NULL);
	Val more = LLVMBuildZExt(l->b, lower_arg(l, v, 1), i32(l), "");
	assembly(l, NULL, "wgmma.fence.sync.aligned;", "", NULL, 0);
	for (unsigned t = 0; t < a->terms / (unsigned)TIR_MMA_TERMS; t++)
		for (unsigned m = 0; m < repeats; m++) {
			Val pa = LLVMBuildAdd(l->b, da, LLVMConstInt(lower_i64(l), t * term_step(a) + m * row_step(a), 0), "");
			Val pb = LLVMBuildAdd(l->b, db, LLVMConstInt(lower_i64(l), t * term_step(b), 0), "");
			multiply(l, a, b, m * (b->rows / 2), pa, pb, t ? number(l, 1) : more);
		}
	assembly(l, NULL, "wgmma.commit_group.sync.aligned;", "", NULL, 0);
}

void
lower_settle(Lower *l, ValId v)
{
	assembly(l, NULL, arena_text(l->arena, "wgmma.wait_group.sync.aligned %d;", (int)lower_inst(l, v)->imm.i), "", NULL, 0);
}

Val
lower_piece(Lower *l, ValId v)
{
	const char *code = arena_text(l->arena, "mov.f32 $0, acc%d;", (int)lower_inst(l, v)->imm.i);
	return assembly(l, LLVMFloatTypeInContext(l->ctx), code, "=f", NULL, 0);
}

void
lower_group_barrier(Lower *l)
{
	Val id = LLVMBuildAdd(l->b, l->roles->group, number(l, 1), "");
	assembly(l, NULL, "barrier.sync.aligned $0, 128;", "r", &id, 1);
}
