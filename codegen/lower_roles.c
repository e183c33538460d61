/* lower_roles.c: roles, channels and products of matrices (ir/channel.h) on sm_90a: TMA, mbarriers and wgmma, by inline
 * assembly, since LLVM has no wgmma and its other intrinsics ask for later versions of PTX.
 *
 * In the block's dynamic shared memory lie the slots of all channels, 1024-byte aligned, each part as TMA writes it and
 * wgmma reads it with the 128-byte swizzle: rows of 128 bytes, or panels of 64 x 64 elements where it is turned, of which
 * those with 32 of the part's rows have the 64-byte swizzle (tir_part_along). Behind them are two words a slot, `full` and
 * `empty`, and the kernel's shared buffers. Fill n waits for the phase n / slots of either; the empty ones are at first as if
 * they had been released.
 *
 * What blocks of a cluster have in common each brings a share of, which the copy writes to all of them at the same place of their
 * memory, and counts there. A group that releases tells the words of all blocks. So blocks must know each other's words before, and
 * none may end while others may still tell it something. What it tells orders nothing but the block's own accesses: with the
 * scope of the cluster each release of an H200 takes half a microsecond.
 *
 * A group's turn is a barrier of the hardware that both groups come to: one waits there for the other, which does not.
 *
 * A kernel may begin before the one that was launched before it has ended, as the next one may before it has: it makes its
 * words, and then waits for all that was launched before. Nothing stands before ROLES that reaches memory.
 *
 * An accumulator is a bank of PTX registers that is declared once and named in the text, so that LLVM never moves what a
 * product still adds to. */
#include <string.h>

#include "codegen/lower.h"
#include "ir/bugs.h"
#include "ir/fragment.h"
#include "ir/text.h"

enum { SHARED = 3, MAP_BYTES = 128, OWN_BYTES = 1 << 18, MAP_ALIGN = 64, SPAN = 128, WORD = 8, UNIT = 16 };

typedef struct LowerRoles {
	Val memory;     /* the block's, from its start */
	Val ring;       /* i32: the same */
	Val group;      /* i32, the same in a warp */
	Val first;      /* i32: 1 in the first thread of the group, else 0 */
	bool warp;      /* a warp loads, whose first thread fills */
	Val thread;     /* i32 */
	unsigned first_map, groups, shares; /* shares: in how many parts the first factor's rows are */
} Roles;

enum { GROUP_WARPS = TIR_GROUP / TIR_WARP };

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
Val
lower_assembly(Lower *l, LLVMTypeRef result, const char *code, const char *constraints, const Val *arg, unsigned narg)
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

/* Number of the slot that fill n has. */
static Val
slot_of(Lower *l, const TirChannel *c, Val n)
{
	return LLVMBuildURem(l->b, LLVMBuildTrunc(l->b, n, i32(l), ""), number(l, c->slots), "");
}

/* base + that number * size, in shared memory. */
static Val
at_slot(Lower *l, const TirChannel *c, Val n, uint32_t base, uint32_t size)
{
	Val at = LLVMBuildAdd(l->b, LLVMBuildMul(l->b, slot_of(l, c, n), number(l, size), ""), number(l, base), "");
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

static const char *
bank_name(unsigned bank)
{
	return bank ? "more" : "acc";
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
	r->memory = ring;
	r->ring = LLVMConstPtrToInt(ring, i32(l));
	r->first_map = first_map;
	mark_maps(l, first_map);
}

Val
lower_role_memory(Lower *l, unsigned b)
{
	Val at = lower_int(l, lower_i64(l), tir_shared_at(l->k, b));
	return LLVMConstGEP2(LLVMInt8TypeInContext(l->ctx), l->roles->memory, &at, 1);
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

/* Whether threads read what the channel has, each for itself. */
static bool
is_read(const Lower *l, unsigned channel)
{
	return tir_is_held(l->k, channel) && !BUG(slot_not_read);
}

static unsigned
releases(const Lower *l, unsigned channel)
{
	return tir_releases(&l->k->channel.at[channel], l->roles->shares, tir_blocks(l->k), is_read(l, channel));
}

/* Of those that have parts in common: threads of a warp may come one by one. */
static void
meet_cluster(Lower *l)
{
	lower_assembly(l, NULL, "barrier.cluster.arrive.release;", "", NULL, 0);
	lower_assembly(l, NULL, "barrier.cluster.wait.acquire;", "", NULL, 0);
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
			Val arg[2] = {at, number(l, s < k->channel.at[c].slots ? 1 : releases(l, c))};
			lower_assembly(l, NULL, "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r", arg, 2);
		}
	lower_assembly(l, NULL, "fence.mbarrier_init.release.cluster;", "", NULL, 0);
	close_if(l, after);
	if (tir_has_joint(k))
		meet_cluster(l);
	else
		lower_barrier(l, 0);
}

/* Barriers of two groups, one for each that waits for its turn: another one gives it. */
enum { TURN_BARRIER = 8, BOTH = 2 * TIR_GROUP };

static Val
is_last_group(Lower *l)
{
	return LLVMBuildZExt(l->b, LLVMBuildICmp(l->b, LLVMIntEQ, l->roles->group, number(l, l->roles->groups - 1), ""), i32(l), "");
}

/* As if the last group had had one before. */
static void
first_turn(Lower *l)
{
	LLVMBasicBlockRef after = open_if(l, is_last_group(l));
	lower_assembly(l, NULL, arena_text(l->arena, "barrier.cta.arrive.aligned %d, %d;", TURN_BARRIER, BOTH), "", NULL, 0);
	close_if(l, after);
}

static Val
next_group(Lower *l)
{
	Val group = l->roles->group, next = LLVMBuildAdd(l->b, group, number(l, 1), "");
	if (l->roles->groups == 2)
		return LLVMBuildXor(l->b, group, number(l, 1), "");
	return LLVMBuildSelect(l->b, LLVMBuildICmp(l->b, LLVMIntEQ, next, number(l, l->roles->groups), ""), number(l, 0), next, "");
}

void
lower_turn(Lower *l, ValId v)
{
	bool gives = lower_inst(l, v)->imm.i != 0;
	Val id = LLVMBuildAdd(l->b, gives ? next_group(l) : l->roles->group, number(l, TURN_BARRIER), "");
	lower_assembly(l, NULL, arena_text(l->arena, "barrier.cta.%s.aligned $0, %d;", gives ? "arrive" : "sync", BOTH), "r", &id, 1);
}

/* Accumulators, and what is kept. */
static void
declare_registers(Lower *l)
{
	for (unsigned bank = 0; bank < TIR_MAX_BANKS; bank++) {
		unsigned n;
		if (tir_bank_columns(l->k, bank, &n))
			lower_assembly(l, NULL, arena_text(l->arena, ".reg .f32 %s<%u>;", bank_name(bank), n), "", NULL, 0);
	}
	if (tir_kept_terms(l->k))
		lower_assembly(l, NULL, arena_text(l->arena, ".reg .b32 kept<%u>;", tir_kept_terms(l->k) / 4), "", NULL, 0);
}

/* Of the group, which all threads of a warp know to be the same. */
static Val
is_first_warp(Lower *l)
{
	Val warp = LLVMBuildLShr(l->b, l->roles->thread, number(l, 5), "");
	warp = lower_assembly(l, i32(l), "shfl.sync.idx.b32 $0, $1, 0, 31, -1;", "=r,r", &warp, 1);
	return LLVMBuildZExt(l->b, LLVMBuildICmp(l->b, LLVMIntEQ, LLVMBuildAnd(l->b, warp, number(l, GROUP_WARPS - 1), ""), number(l, 0), ""), i32(l), "");
}

void
lower_roles(Lower *l, ValId v)
{
	Roles *r = l->roles;
	TirRoles roles = tir_roles(lower_inst(l, v)->imm.i);
	Val thread = LLVMBuildTrunc(l->b, lower_thread(l), i32(l), "");
	r->shares = roles.shares;
	r->groups = roles.groups;
	r->warp = roles.warp;
	r->thread = thread;
	declare_registers(l);
	if (l->k->resident == 1) /* those of the next kernel have places where its own end, one by one (nvptx_entry.c) */
		lower_assembly(l, NULL, "griddepcontrol.launch_dependents;", "", NULL, 0);
	make_words(l, thread);
	lower_assembly(l, NULL, "griddepcontrol.wait;", "", NULL, 0);
	Val group = LLVMBuildLShr(l->b, thread, number(l, 7), "");
	r->group = lower_assembly(l, i32(l), "shfl.sync.idx.b32 $0, $1, 0, 31, -1;", "=r,r", &group, 1);
	Val in_group = LLVMBuildAnd(l->b, thread, number(l, TIR_GROUP - 1), "");
	r->first = LLVMBuildZExt(l->b, LLVMBuildICmp(l->b, LLVMIntEQ, in_group, number(l, 0), ""), i32(l), "");
	LLVMBasicBlockRef multiply = new_block(l), load = new_block(l);
	Val loads = LLVMBuildICmp(l->b, LLVMIntEQ, r->group, number(l, roles.groups), "");
	LLVMBuildCondBr(l->b, loads, load, multiply);
	LLVMPositionBuilderAtEnd(l->b, multiply);
	lower_assembly(l, NULL, arena_text(l->arena, "setmaxnreg.inc.sync.aligned.u32 %u;", roles.registers), "", NULL, 0);
	if (roles.turns || roles.order)
		first_turn(l);
	lower_role(l, lower_inst(l, v)->region);
	if (tir_has_joint(l->k))
		meet_cluster(l);
	LLVMBuildRetVoid(l->b);
	LLVMPositionBuilderAtEnd(l->b, load);
	lower_assembly(l, NULL, arena_text(l->arena, "setmaxnreg.dec.sync.aligned.u32 %u;", roles.rest), "", NULL, 0);
	if (roles.anew)
		lower_tasks_anew(l);
	LLVMBasicBlockRef after = open_if(l, roles.warp ? is_first_warp(l) : r->first);
	lower_role(l, lower_inst(l, v)->region + 1);
	if (tir_has_joint(l->k))
		meet_cluster(l);
	close_if(l, after);
}

/* --- channels --- */

/* Until the word at `at` is through with phase n / slots, or where it is `before`, with the one before that. */
static void
wait_for(Lower *l, const TirChannel *c, Val at, Val n, bool before)
{
	Val phase = LLVMBuildUDiv(l->b, LLVMBuildTrunc(l->b, n, i32(l), ""), number(l, c->slots), "");
	phase = LLVMBuildAnd(l->b, phase, number(l, 1), "");
	if (before)
		phase = LLVMBuildXor(l->b, phase, number(l, 1), "");
	LLVMBasicBlockRef poll = new_block(l), there = new_block(l);
	LLVMBuildBr(l->b, poll);
	LLVMPositionBuilderAtEnd(l->b, poll);
	Val done = lower_assembly(l, i32(l), "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [$1], $2; selp.b32 $0, 1, 0, p; }",
	                    "=r,r,r", (Val[]){at, phase}, 2);
	LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntNE, done, number(l, 0), ""), there, poll);
	LLVMPositionBuilderAtEnd(l->b, there);
}

/* What fills, one thread does: of a warp that loads the first one, where it goes on. NULL: there is no other one. */
static LLVMBasicBlockRef
open_fill(Lower *l)
{
	return l->roles->warp ? open_if(l, l->roles->first) : NULL;
}

/* The slot's bytes are announced as soon as it is empty. */
void
lower_acquire(Lower *l, ValId v)
{
	const TirChannel *c = channel_of(l, v);
	Val n = lower_arg(l, v, 0);
	LLVMBasicBlockRef after = open_fill(l);
	wait_for(l, c, empty_word(l, v, n), n, true);
	lower_assembly(l, NULL, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r",
	         (Val[]){full_word(l, v, n), number(l, tir_slot_bytes(c))}, 2);
	if (after)
		close_if(l, after);
}

void
lower_wait(Lower *l, ValId v)
{
	Val n = lower_arg(l, v, 0);
	wait_for(l, channel_of(l, v), full_word(l, v, n), n, false);
}

/* Whether the thread speaks for what it releases: a group; or the warp, once all its threads have read. */
static Val
speaks(Lower *l, unsigned channel)
{
	if (!is_read(l, channel))
		return l->roles->first;
	lower_assembly(l, NULL, "bar.warp.sync -1;", "", NULL, 0);
	Val lane = LLVMBuildAnd(l->b, l->roles->thread, number(l, TIR_WARP - 1), "");
	return LLVMBuildZExt(l->b, LLVMBuildICmp(l->b, LLVMIntEQ, lane, number(l, 0), ""), i32(l), "");
}

/* Without a branch: those divide a warp, and products in flight would be waited for. */
void
lower_release(Lower *l, ValId v)
{
	Val first = speaks(l, TIR_CHANNEL_OF(lower_inst(l, v)->imm.i));
	Val cond = LLVMBuildAnd(l->b, LLVMBuildZExt(l->b, lower_arg(l, v, 1), i32(l), ""), first, "");
	Text code;
	text_init(&code, l->arena);
	text_printf(&code, "{ .reg .pred p; .reg .b32 at; setp.ne.b32 p, $1, 0; ");
	if (!tir_is_joint(channel_of(l, v)))
		text_printf(&code, "@p mbarrier.arrive.shared::cta.b64 _, [$0]; ");
	for (unsigned b = 0; tir_is_joint(channel_of(l, v)) && b < tir_blocks(l->k); b++)
		text_printf(&code, "mapa.shared::cluster.u32 at, $0, %u; @p mbarrier.arrive.shared::cluster.b64 _, [at]; ", b);
	text_printf(&code, "}");
	lower_assembly(l, NULL, text_get(&code), "r,r", (Val[]){empty_word(l, v, lower_arg(l, v, 0)), cond}, 2);
}

/* The tensor map of a COPY. */
static Val
map_of(Lower *l, ValId copy)
{
	return LLVMGetParam(l->fn, l->roles->first_map + tir_map_of(l->k, copy));
}

/* Bytes of a row of the part in shared memory. */
static unsigned
span(const TirPart *p)
{
	return tir_part_along(p) * dtype_info[p->dtype].bits / 8u;
}

/* to: of all blocks, where they have the part in common. */
static void
copy_box(Lower *l, Val to, Val map, Val word, const Val *at, unsigned rank, bool joint)
{
	Val arg[8] = {to, map, word};
	Text code, constraints;
	text_init(&code, l->arena);
	text_init(&constraints, l->arena);
	text_printf(&code, "cp.async.bulk.tensor.%ud.shared::cluster.global.mbarrier::complete_tx::bytes%s [$0], [$1, {", rank,
	            joint ? ".multicast::cluster" : "");
	text_printf(&constraints, "r,l,r");
	for (unsigned n = 0; n < rank; n++) {
		text_printf(&code, "%s$%u", n ? ", " : "", 3 + n);
		text_printf(&constraints, ",r");
		arg[3 + n] = at[n];
	}
	text_printf(&code, "}], [$2]%s;", joint ? arena_text(l->arena, ", %u", (1u << tir_blocks(l->k)) - 1) : "");
	lower_assembly(l, NULL, text_get(&code), text_get(&constraints), arg, 3 + rank);
}

/* Coordinates are those of the view, the last one first. */
void
lower_copy(Lower *l, ValId v)
{
	const TirChannel *c = channel_of(l, v);
	unsigned number_of_part = TIR_PART_OF(lower_inst(l, v)->imm.i), rank = (unsigned)lower_inst(l, tir_arg(l->k, v, 0))->imm.i;
	const TirPart *p = &c->part[number_of_part];
	Val n = lower_arg(l, v, 1), word = full_word(l, v, n), at[5], map = map_of(l, v);
	uint32_t base = slots_at(l->k, TIR_CHANNEL_OF(lower_inst(l, v)->imm.i)) + part_at(c, number_of_part);
	Val to = at_slot(l, c, n, base, tir_slot_bytes(c));
	for (unsigned k = 0; k < rank; k++)
		at[k] = LLVMBuildTrunc(l->b, lower_arg(l, v, 1 + rank - k), i32(l), "");
	if (dtype_info[p->dtype].bits < 16) /* its map has as many as fill 16 bits for one element; boxes may begin before the first */
		at[0] = (BUG(box_far_behind) ? LLVMBuildLShr : LLVMBuildAShr)(l->b, at[0], number(l, dtype_info[p->dtype].bits == 8 ? 1 : 2), "");
	if (tir_copies_thirds(l->k, v)) /* which are its map's outermost axis */
		at[rank] = LLVMBuildTrunc(l->b, lower_arg(l, v, 2 + rank), i32(l), "");
	unsigned axes = rank + tir_copies_thirds(l->k, v);
	if (p->joint) {
		unsigned share = p->turned ? tir_brought_terms(p, tir_blocks(l->k)) : tir_brought_rows(p, tir_blocks(l->k));
		Val own = LLVMBuildMul(l->b, LLVMBuildTrunc(l->b, lower_rank(l), i32(l), ""), number(l, share), "");
		at[1] = LLVMBuildAdd(l->b, at[1], own, "");
		to = LLVMBuildAdd(l->b, to, LLVMBuildMul(l->b, own, number(l, span(p)), ""), "");
	}
	unsigned panels = p->turned ? p->rows / tir_part_along(p) : 1;
	Val first = at[0];
	LLVMBasicBlockRef after = open_fill(l);
	for (unsigned k = 0; k < panels; k++) {
		at[0] = LLVMBuildAdd(l->b, first, number(l, k * tir_part_along(p)), "");
		copy_box(l, LLVMBuildAdd(l->b, to, number(l, k * span(p) * p->terms), ""), map, word, at, axes, p->joint);
	}
	if (after)
		close_if(l, after);
}

/* --- products --- */

/* What wgmma takes for a part of fill n, `past` bytes in: the address and the distances of its rows and panels, in units
 * of 16 bytes, and the swizzle. */
static Val
descriptor(Lower *l, const TirChannel *c, unsigned part, uint32_t base, Val n, Val past)
{
	const TirPart *p = &c->part[part];
	uint64_t fixed = swizzled_descriptor(p->terms, span(p), p->turned);
	Val first = LLVMBuildAdd(l->b, l->roles->ring, number(l, base + part_at(c, part)), "");
	if (past)
		first = LLVMBuildAdd(l->b, first, past, "");
	first = LLVMBuildAnd(l->b, first, number(l, OWN_BYTES - 1), ""); /* above is the block's place in its cluster */
	first = LLVMBuildZExt(l->b, LLVMBuildLShr(l->b, first, number(l, 4), ""), lower_i64(l), "");
	first = LLVMBuildOr(l->b, first, LLVMConstInt(lower_i64(l), fixed, 0), "");
	Val slots = LLVMBuildMul(l->b, slot_of(l, c, n), number(l, tir_slot_bytes(c) / UNIT), "");
	return LLVMBuildAdd(l->b, first, LLVMBuildZExt(l->b, slots, lower_i64(l), ""), "");
}

/* From one instruction's terms to the next one's; from 64 rows to the next ones. In units. */
static unsigned
term_step(const TirPart *p)
{
	return p->turned ? TIR_MMA_TERMS * span(p) / UNIT : TIR_MMA_TERMS * 2 / UNIT;
}

static unsigned
row_step(const TirPart *p)
{
	return p->turned ? SPAN * TIR_PART_TERMS / UNIT : TIR_MMA_ROWS * SPAN / UNIT;
}

/* One instruction: 64 rows from register `first` of a bank on; a, in shared memory, or what is kept from register `kept` on. */
typedef struct {
	const TirPart *a, *b; /* a: NULL: what is kept */
	unsigned columns, bank, first, kept; /* columns: of all of b's parts */
	Val da, db, more;
	unsigned further_a, further_b; /* from da, and from db, in units: added in the instruction's text */
} Step;

static void
multiply(Lower *l, const Step *x)
{
	Text code;
	const char *type = dtype_info[x->b->dtype].text;
	unsigned arg = x->a ? 1 : 0;
	text_init(&code, l->arena);
	text_printf(&code, "{ .reg .pred p; .reg .b64 a, b; add.u64 b, $%u, %u; ", arg, x->further_b);
	if (x->a)
		text_printf(&code, "add.u64 a, $0, %u; ", x->further_a);
	text_printf(&code, "setp.ne.b32 p, $%u, 0; wgmma.mma_async.sync.aligned.m64n%uk16.f32.%s.%s {", arg + 1, x->columns, type, type);
	for (unsigned n = 0; n < x->columns / 2u; n++)
		text_printf(&code, "%s%s%u", n ? ", " : "", bank_name(x->bank), x->first + n);
	if (x->a)
		text_printf(&code, "}, a, b, p, 1, 1, %d, %d; }", x->a->turned, x->b->turned);
	else
		text_printf(&code, "}, {kept%u, kept%u, kept%u, kept%u}, b, p, 1, 1, %d; }", x->kept, x->kept + 1, x->kept + 2, x->kept + 3, x->b->turned);
	Val all[3] = {x->da, x->db, x->more};
	lower_assembly(l, NULL, text_get(&code), x->a ? "l,l,r" : "l,r", all + 1 - arg, 2 + arg);
}

enum { HELD = 8 };

/* Of factors that come apart a stays for a whole loop: the descriptors of up to HELD instructions wait in uniform registers, so that
 * nothing stands between them; those of more would wait in others. What is not held is added in the instruction's text. Where
 * both factors are of one fill, descriptors are made anew with each. */
static void
go_further(Lower *l, Step *x, bool apart, bool held, unsigned a, unsigned b)
{
	x->further_a = apart && !held ? a : 0;
	x->further_b = apart ? b : 0;
	if (x->da && !x->further_a)
		x->da = LLVMBuildAdd(l->b, x->da, LLVMConstInt(lower_i64(l), a, 0), "");
	if (!apart)
		x->db = LLVMBuildAdd(l->b, x->db, LLVMConstInt(lower_i64(l), b, 0), "");
}

static void
build_product(Lower *l, TirProduct p, Val n, Val m, Val more)
{
	const TirChannel *c = &l->k->channel.at[p.channel], *other = &l->k->channel.at[p.other];
	Step x = {.a = p.kept ? NULL : &c->part[p.a], .b = &other->part[p.b], .columns = p.nb * other->part[p.b].rows, .bank = p.bank};
	unsigned repeats = p.kept ? 1 : tir_accumulator_rows(x.a, l->roles->shares) / TIR_MMA_ROWS;
	Val own = NULL, da, db;
	if (!p.kept && l->roles->shares > 1)
		own = LLVMBuildMul(l->b, l->roles->group, number(l, repeats * row_step(x.a) * UNIT), "");
	db = descriptor(l, other, p.b, slots_at(l->k, p.other), m, NULL);
	da = p.kept ? NULL : descriptor(l, c, p.a, slots_at(l->k, p.channel), n, own);
	more = LLVMBuildZExt(l->b, more, i32(l), "");
	unsigned units_a = p.kept ? 0 : tir_part_bytes(x.a) / UNIT, units_b = tir_part_bytes(x.b) / UNIT;
	const unsigned steps = TIR_PART_TERMS / TIR_MMA_TERMS;
	lower_assembly(l, NULL, "wgmma.fence.sync.aligned;", "", NULL, 0);
	for (unsigned t = 0; t < steps * p.nterms; t++)
		for (unsigned i = 0; i < p.na * repeats; i++) {
			x.first = i * (x.columns / 2);
			x.kept = (p.a * TIR_PART_TERMS + t * TIR_MMA_TERMS) / 4;
			x.da = da;
			x.db = db;
			go_further(l, &x, p.kept || p.channel != p.other, steps * p.nterms * p.na * repeats <= HELD,
			           p.kept ? 0 : t % steps * term_step(x.a) + (i / repeats + t / steps) * units_a + i % repeats * row_step(x.a),
			           t % steps * term_step(x.b) + t / steps * units_b);
			x.more = t ? number(l, 1) : more;
			multiply(l, &x);
		}
	lower_assembly(l, NULL, "wgmma.commit_group.sync.aligned;", "", NULL, 0);
}

void
lower_mma(Lower *l, ValId v)
{
	Val n = lower_arg(l, v, 0);
	build_product(l, tir_mma(lower_inst(l, v)->imm.i), n, n, lower_arg(l, v, 1));
}

static void
lower_product(Lower *l, ValId v)
{
	build_product(l, tir_product(lower_inst(l, v)->imm.i), lower_arg(l, v, 0), lower_arg(l, v, 1), lower_arg(l, v, 2));
}

/* The second source is the lower half. */
static void
lower_keep(Lower *l, ValId v)
{
	int64_t imm = lower_inst(l, v)->imm.i;
	const char *type = dtype_info[imm >> 16].text;
	Val arg[2] = {lower_arg(l, v, 0), lower_arg(l, v, 1)};
	lower_assembly(l, NULL, arena_text(l->arena, "cvt.rn.%sx2.f32 kept%d, $1, $0;", type, (int)(imm & 0xffff)), "f,f", arg, 2);
}

static void
lower_put(Lower *l, ValId v)
{
	int64_t imm = lower_inst(l, v)->imm.i;
	Val arg = lower_arg(l, v, 0);
	lower_assembly(l, NULL, arena_text(l->arena, "mov.f32 %s%d, $0;", bank_name((unsigned)(imm >> 16)), (int)(imm & 0xffff)), "f", &arg, 1);
}

static void
lower_settle(Lower *l, ValId v)
{
	lower_assembly(l, NULL, arena_text(l->arena, "wgmma.wait_group.sync.aligned %d;", (int)lower_inst(l, v)->imm.i), "", NULL, 0);
}

void
lower_registers(Lower *l, ValId v)
{
	if (lower_inst(l, v)->op == OP_PRODUCT)
		lower_product(l, v);
	else if (lower_inst(l, v)->op == OP_KEEP)
		lower_keep(l, v);
	else if (lower_inst(l, v)->op == OP_PUT)
		lower_put(l, v);
	else
		lower_settle(l, v);
}

/* Where row lane mod 16 of the warp's first sixteen in the fill begins, 16 bytes of it on in the upper half of the warp, as the
 * swizzle has it. */
static Val
held_from(Lower *l, const TirChannel *c, uint32_t base, Val n)
{
	unsigned share = c->part[0].rows / l->roles->shares;
	Val lane = LLVMBuildAnd(l->b, l->roles->thread, number(l, TIR_WARP - 1), "");
	Val warp = LLVMBuildAnd(l->b, LLVMBuildLShr(l->b, l->roles->thread, number(l, 5), ""), number(l, GROUP_WARPS - 1), "");
	Val row = LLVMBuildAdd(l->b, LLVMBuildMul(l->b, warp, number(l, 16), ""), LLVMBuildAnd(l->b, lane, number(l, 15), ""), "");
	Val chunk = LLVMBuildXor(l->b, LLVMBuildLShr(l->b, lane, number(l, 4), ""), LLVMBuildAnd(l->b, lane, number(l, 7), ""), "");
	Val own = LLVMBuildAdd(l->b, LLVMBuildMul(l->b, row, number(l, SPAN), ""), LLVMBuildMul(l->b, chunk, number(l, UNIT), ""), "");
	if (l->roles->shares > 1)
		own = LLVMBuildAdd(l->b, own, LLVMBuildMul(l->b, l->roles->group, number(l, share * SPAN), ""), "");
	return LLVMBuildAdd(l->b, at_slot(l, c, n, base, tir_slot_bytes(c)), own, "");
}

/* Four matrices of 8 rows of 16 bytes, as accumulators have them: two below each other, and the two right of those. */
static Val
lower_held(Lower *l, ValId v)
{
	const TirChannel *c = channel_of(l, v);
	int64_t imm = lower_inst(l, v)->imm.i;
	unsigned blocks = TIR_PART_TERMS / 16, k = TIR_HELD_OF(imm), across = c->nparts * blocks;
	Val from = held_from(l, c, slots_at(l->k, TIR_CHANNEL_OF(imm)), lower_arg(l, v, 0));
	from = LLVMBuildXor(l->b, from, number(l, k % blocks * 2 * UNIT), "");
	uint32_t on = part_at(c, k % across / blocks) + k / across * TIR_MMA_ROWS * SPAN;
	LLVMTypeRef word[4] = {i32(l), i32(l), i32(l), i32(l)}, four = LLVMStructTypeInContext(l->ctx, word, 4, 0);
	const char *code = arena_text(l->arena, "ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16 {$0, $1, $2, $3}, [$4 + %u];", on);
	Val got = lower_assembly(l, four, code, "=r,=r,=r,=r,r", &from, 1), all = LLVMGetPoison(LLVMVectorType(i32(l), 4));
	for (unsigned n = 0; n < 4; n++)
		all = LLVMBuildInsertElement(l->b, all, LLVMBuildExtractValue(l->b, got, n, ""), number(l, n), "");
	return LLVMBuildBitCast(l->b, all, lower_type(l, lower_inst(l, v)->type), "");
}

/* A row without its part that is a constant multiple of the swizzle's rows, so that those that lie so far apart have one address. */
static Val
row_of_pattern(Lower *l, ValId row, uint64_t *apart)
{
	const TirInst *p = lower_inst(l, row);
	*apart = 0;
	for (unsigned n = 0; p->op == OP_ADD && n < 2; n++) {
		const TirInst *c = lower_inst(l, tir_arg(l->k, row, n));
		if (c->op == OP_CONST && c->imm.i >= 0 && c->imm.i % (SPAN / UNIT) == 0) {
			*apart = (uint64_t)c->imm.i;
			return LLVMBuildTrunc(l->b, lower_arg(l, row, 1 - n), i32(l), "");
		}
	}
	return NULL;
}

/* Bytes of a row from this term on, where the swizzle has them. */
static Val
lower_take(Lower *l, ValId v)
{
	const TirChannel *c = channel_of(l, v);
	unsigned part = TIR_PART_OF(lower_inst(l, v)->imm.i), bits = dtype_info[c->part[part].dtype].bits, lanes = lower_inst(l, v)->type.lanes;
	unsigned words = lanes * bits / 32;
	uint64_t apart;
	Val row = row_of_pattern(l, tir_arg(l->k, v, 1), &apart), term = LLVMBuildTrunc(l->b, lower_arg(l, v, 2), i32(l), "");
	row = row ? row : LLVMBuildTrunc(l->b, lower_arg(l, v, 1), i32(l), "");
	Val byte = LLVMBuildLShr(l->b, LLVMBuildMul(l->b, term, number(l, bits), ""), number(l, 3), "");
	Val moved = LLVMBuildMul(l->b, LLVMBuildAnd(l->b, row, number(l, BUG(take_unswizzled) ? 0 : SPAN / UNIT - 1), ""), number(l, UNIT), "");
	Val at = LLVMBuildMul(l->b, row, number(l, SPAN), ""), inside = LLVMBuildAnd(l->b, byte, number(l, SPAN - 1), "");
	at = LLVMBuildAdd(l->b, at, LLVMBuildXor(l->b, inside, moved, ""), "");
	if (tir_parts_alike(c, part) > 1)
		at = LLVMBuildAdd(l->b, at, LLVMBuildMul(l->b, LLVMBuildUDiv(l->b, byte, number(l, SPAN), ""), number(l, tir_part_bytes(&c->part[part])), ""), "");
	at = LLVMBuildAdd(l->b, at, at_slot(l, c, lower_arg(l, v, 0), slots_at(l->k, TIR_CHANNEL_OF(lower_inst(l, v)->imm.i)), tir_slot_bytes(c)), "");
	Val p = LLVMBuildIntToPtr(l->b, at, LLVMPointerTypeInContext(l->ctx, SHARED), ""), on = number(l, part_at(c, part) + apart * SPAN);
	p = LLVMBuildInBoundsGEP2(l->b, LLVMInt8TypeInContext(l->ctx), p, &on, 1, "");
	Val all = LLVMBuildLoad2(l->b, words > 1 ? LLVMVectorType(i32(l), words) : i32(l), p, "");
	LLVMSetAlignment(all, 4 * words);
	return bits == 4 ? lower_nibbles(l, c->part[part].dtype, all, lanes) : LLVMBuildBitCast(l->b, all, lower_type(l, lower_inst(l, v)->type), "");
}

Val
lower_piece(Lower *l, ValId v)
{
	int64_t imm = lower_inst(l, v)->imm.i;
	if (lower_inst(l, v)->op == OP_TAKE)
		return lower_take(l, v);
	if (lower_inst(l, v)->op == OP_HELD)
		return lower_held(l, v);
	const char *code = arena_text(l->arena, "mov.f32 $0, %s%d;", bank_name((unsigned)(imm >> 16)), (int)(imm & 0xffff));
	return lower_assembly(l, LLVMFloatTypeInContext(l->ctx), code, "=f", NULL, 0);
}

void
lower_role_barrier(Lower *l, int64_t kind)
{
	if (kind == 1) {
		lower_assembly(l, NULL, "barrier.cluster.arrive.release.aligned;", "", NULL, 0);
		lower_assembly(l, NULL, "barrier.cluster.wait.acquire.aligned;", "", NULL, 0);
		return;
	}
	if (kind == TIR_WARP_BARRIER) {
		lower_barrier(l, kind);
		return;
	}
	Val id = LLVMBuildAdd(l->b, l->roles->group, number(l, 1), "");
	lower_assembly(l, NULL, "barrier.sync.aligned $0, 128;", "r", &id, 1);
}
