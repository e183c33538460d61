/* lower_memory.c: loads, stores and the fault words.
 *
 * An address is the buffer's start plus sum(index[a] * stride[a]) elements, computed in wrapping
 * i64, by GEPs that promise nothing: what all sizes have, so that no size needs another kernel. (On a GPU 32 bits
 * were tried where they are known to be enough, in shared memory and in tensors of known sizes: up to a fifth of the
 * instructions, spills in kernels that need all registers, and kernels that wait for memory took .96 to 1.11 of the time.)
 * Vectors whose lane axis has the constant stride 1 are one (masked) vector access; all other vectors are gathers and
 * scatters, which LLVM splits where the processor has none. Memory is never touched where the mask is false. Lanes that store to one
 * element do so in ascending order. Two 4-bit elements share a byte: their stores go lane by lane. */
#include "codegen/lower.h"
#include "ir/bugs.h"

enum { MOST_CARRIED = 32 /* values of a loop, beside which a step has a register */ };

typedef struct {
	DType dtype;
	unsigned lanes;
	uint32_t buffer;
	Val base;      /* its start */
	Val offset;    /* in elements: i64, or a vector of them */
	bool in_a_row; /* lane i is at offset + i */
	bool wide;     /* other blocks store there, which LLVM does not see */
	uint32_t handed; /* not 0: blocks hand elements to each other there, and where in it they are counted */
	Val rank;      /* with it: of the block that is handed one */
	bool posted;   /* by tasks to later ones */
	Val mask;      /* NULL: all */
	Val every;     /* with it, not NULL: what it is in every lane */
	bool once;     /* what is loaded is not loaded again soon, and nothing stores there */
	Val large;     /* not NULL: goes past the caches where it holds */
	Val ahead;     /* not NULL: what is so many bytes further on follows soon */
	Val more;      /* with it: whether that exists */
} MemAccess;

/* --- addresses --- */

static Val
add(Lower *l, Val a, Val b)
{
	return a ? LLVMBuildAdd(l->b, a, b, "") : b;
}

static bool
has_lanes(Lower *l, ValId v)
{
	return lower_inst(l, v)->type.lanes != 0;
}

static bool
is_one(Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	return x->op == OP_CONST && x->imm.i == 1;
}

static Val
lane_numbers(Lower *l, unsigned lanes)
{
	Val *n = ARENA_ARRAY(l->arena, Val, lanes);
	for (unsigned i = 0; i < lanes; i++)
		n[i] = LLVMConstInt(lower_i64(l), i, 0);
	return LLVMConstVector(n, lanes);
}

static unsigned
element_bytes(DType t)
{
	return dtype_info[t].bits < 8 ? 1 : dtype_info[t].bits / 8u;
}

/* bool is a byte in memory. */
static LLVMTypeRef
memory_type(Lower *l, DType t, unsigned lanes)
{
	LLVMTypeRef e = t == DT_BOOL ? LLVMInt8TypeInContext(l->ctx) : lower_dtype(l, t);
	return lanes ? LLVMVectorType(e, lanes) : e;
}

static Val
address(Lower *l, DType t, Val base, Val offset)
{
	return LLVMBuildGEP2(l->b, memory_type(l, t, 0), base, &offset, 1, "");
}

/* The index of an axis of this stride, without the constant of i + c or i + (j + c), which is added to known in elements: so
 * that many addresses share the rest. LLVM's passes for a GPU find that out themselves. */
static Val
without_constant(Lower *l, ValId index, ValId stride, uint64_t *known)
{
	const TirInst *x = lower_inst(l, index);
	if (l->target->arch == ARCH_NVPTX || lower_inst(l, stride)->op != OP_CONST || x->op != OP_ADD)
		return l->val[index];
	ValId a = lower_arg_id(l, index, 0), b = lower_arg_id(l, index, 1);
	const TirInst *y = lower_inst(l, b), *c = y->op == OP_ADD ? lower_inst(l, lower_arg_id(l, b, 1)) : y;
	if (c->op != OP_CONST)
		return l->val[index];
	*known += (uint64_t)c->imm.i * (uint64_t)lower_inst(l, stride)->imm.i;
	return y->op == OP_ADD ? LLVMBuildAdd(l->b, l->val[a], lower_arg(l, b, 0), "") : l->val[a];
}

/* Whether accumulators of products leave no registers for a step. */
static bool
accumulates(Lower *l)
{
	bool found = l->roles != NULL;
	for (ValId v = 1; l->steps == LOWER_UNKNOWN && v < l->k->inst.n && !found; v++)
		found = lower_inst(l, v)->op == OP_WARP_MMA || (lower_inst(l, v)->op == OP_FOR && lower_inst(l, v)->narg > 3 + MOST_CARRIED);
	if (l->steps == LOWER_UNKNOWN)
		l->steps = found ? LOWER_NO_STEPS : LOWER_STEPS;
	return l->steps == LOWER_NO_STEPS;
}

/* Whether where it goes is one place, in whole bytes, that later ones may be steps away from. */
static bool
may_step(Lower *l, const MemAccess *x, ValId view, const ValId *id, int along)
{
	unsigned rank = (unsigned)lower_inst(l, view)->imm.i;
	bool may = l->target->arch == ARCH_NVPTX && dtype_info[x->dtype].bits >= 8 && rank > 1 && !accumulates(l);
	may = may && (!x->lanes || (along >= 0 && is_one(l, lower_arg_id(l, view, 1 + rank + (unsigned)along))));
	for (unsigned a = 0; may && a < rank; a++)
		may = !has_lanes(l, id[a]);
	return may;
}

/* The offset of indices id[0..rank) into a view; those with lanes are summed apart. The index along
 * the lanes is a scalar. */
static void
set_offset(Lower *l, MemAccess *x, ValId view, const ValId *id, int along)
{
	unsigned rank = (unsigned)lower_inst(l, view)->imm.i;
	bool lanewise = along >= 0 && x->lanes, steps_on = may_step(l, x, view, id, along);
	Val from = x->base, stepped = steps_on ? lower_step(l, view, from, id, x->dtype) : NULL;
	if (stepped) {
		x->base = stepped;
		x->offset = LLVMConstInt(lower_i64(l), 0, 0);
		x->in_a_row = lanewise;
		return;
	}
	uint64_t known = 0;
	Val same = NULL, varying = NULL;
	for (unsigned a = 0; a < rank; a++) {
		Val stride = l->val[lower_arg_id(l, view, 1 + rank + a)];
		if (has_lanes(l, id[a])) {
			varying = add(l, varying, LLVMBuildMul(l->b, l->val[id[a]], lower_splat(l, stride, x->lanes), ""));
			continue;
		}
		Val index = without_constant(l, id[a], lower_arg_id(l, view, 1 + rank + a), &known);
		Val steps = LLVMBuildMul(l->b, index, stride, "");
		if (same && dtype_info[x->dtype].bits >= 8) { /* so that the outer axes leave the inner ones' loops */
			x->base = address(l, x->dtype, x->base, same);
			same = steps;
		} else
			same = add(l, same, steps);
	}
	same = same ? same : LLVMConstInt(lower_i64(l), 0, 0);
	if (known && dtype_info[x->dtype].bits >= 8) {
		x->base = address(l, x->dtype, x->base, same);
		same = LLVMConstInt(lower_i64(l), known, 0);
	} else if (known)
		same = add(l, same, LLVMConstInt(lower_i64(l), known, 0));
	if (steps_on)
		lower_step_from(l, view, from, id, address(l, x->dtype, x->base, same));
	ValId step = lanewise ? lower_arg_id(l, view, 1 + rank + (unsigned)along) : 0;
	x->in_a_row = lanewise && !varying && is_one(l, step);
	x->offset = same;
	if (!x->lanes || x->in_a_row)
		return;
	if (lanewise)
		varying = add(l, varying, LLVMBuildMul(l->b, lane_numbers(l, x->lanes),
		                                       lower_splat(l, l->val[step], x->lanes), ""));
	x->offset = lower_splat(l, same, x->lanes);
	if (varying)
		x->offset = LLVMBuildAdd(l->b, x->offset, varying, "");
}

/* Whether the view has so many indices more along this axis. */
static Val
has_more(Lower *l, ValId view, const ValId *index, int axis, int64_t count)
{
	if (l->target->arch != ARCH_NVPTX)
		return NULL;
	Val at = LLVMBuildAdd(l->b, l->val[index[axis]], lower_int(l, lower_i64(l), (uint64_t)count), "");
	return LLVMBuildICmp(l->b, LLVMIntSLT, at, lower_arg(l, view, 1 + (unsigned)axis), "");
}

static MemAccess
access_of(Lower *l, ValId v, unsigned lanes)
{
	const TirInst *x = lower_inst(l, v);
	ValId view = lower_arg_id(l, v, 0), buffer = lower_arg_id(l, view, 0);
	unsigned rank = (unsigned)lower_inst(l, view)->imm.i, first = x->op == OP_STORE ? 2 : 1;
	uint32_t k = (uint32_t)lower_inst(l, buffer)->imm.i;
	MemAccess at = {.dtype = l->k->buffer.at[k].dtype, .lanes = lanes, .buffer = k, .base = l->buffer[k], .wide = l->k->buffer.at[k].wide,
	                .handed = l->handed ? l->handed[k].word : 0, .posted = l->k->buffer.at[k].posted};
	const ValId *index = l->k->arg.at + x->arg + first;
	if (at.wide) {
		bool own = lower_inst(l, index[0])->op == OP_RANK;
		at.rank = own ? NULL : l->val[index[0]];
		at.base = own || at.handed ? at.base : lower_of_block(l, at.base, at.rank);
		at.offset = l->val[index[1]];
	} else
		set_offset(l, &at, view, index, TIR_LANE_AXIS(x->imm.i));
	if (x->imm.i & TIR_MASKED) {
		ValId mask = lower_arg_id(l, v, first + rank);
		at.mask = lanes && !has_lanes(l, mask) ? lower_splat(l, l->val[mask], lanes) : l->val[mask];
		if (lanes && lower_inst(l, mask)->op == OP_SPLAT)
			at.every = lower_arg(l, mask, 0);
	}
	if (x->op == OP_STORE && (x->imm.i & TIR_STREAM))
		at.large = l->val[view];
	at.once = x->op == OP_LOAD && (x->imm.i & TIR_STREAM) && !lower_is_stored(l, k);
	if (TIR_AHEAD_AXIS(x->imm.i) >= 0 && lower_looks_ahead(l)) {
		Val stride = lower_arg(l, view, 1 + rank + (unsigned)TIR_AHEAD_AXIS(x->imm.i));
		Val bytes = LLVMConstInt(lower_i64(l), dtype_info[at.dtype].bits / 8u * (uint64_t)TIR_AHEAD_COUNT(x->imm.i), 0);
		at.ahead = LLVMBuildMul(l->b, stride, bytes, "");
		at.more = has_more(l, view, index, TIR_AHEAD_AXIS(x->imm.i), TIR_AHEAD_COUNT(x->imm.i));
	}
	return at;
}

Val
lower_address(Lower *l, ValId view, const ValId *index)
{
	uint32_t k = (uint32_t)lower_inst(l, lower_arg_id(l, view, 0))->imm.i;
	MemAccess x = {.dtype = l->k->buffer.at[k].dtype, .base = l->buffer[k]};
	set_offset(l, &x, view, index, -1);
	return address(l, x.dtype, x.base, x.offset);
}

/* --- under a condition --- */

typedef struct {
	LLVMBasicBlockRef from, exit;
} Guard;

static Guard
guard_open(Lower *l, Val cond)
{
	Guard g = {LLVMGetInsertBlock(l->b), LLVMAppendBasicBlockInContext(l->ctx, l->fn, "")};
	LLVMBasicBlockRef then = LLVMInsertBasicBlockInContext(l->ctx, g.exit, "");
	LLVMBuildCondBr(l->b, cond, then, g.exit);
	LLVMPositionBuilderAtEnd(l->b, then);
	return g;
}

/* Ends the guarded part. value, if any, becomes 0 where the condition was false. */
static Val
guard_close(Lower *l, Guard g, Val value)
{
	LLVMBasicBlockRef end = LLVMGetInsertBlock(l->b);
	LLVMBuildBr(l->b, g.exit);
	LLVMPositionBuilderAtEnd(l->b, g.exit);
	lower_steps_go_on(l, g.from);
	if (!value)
		return NULL;
	Val phi = LLVMBuildPhi(l->b, LLVMTypeOf(value), "");
	LLVMAddIncoming(phi, (Val[]){LLVMConstNull(LLVMTypeOf(value)), value},
	                (LLVMBasicBlockRef[]){g.from, end}, 2);
	return phi;
}

/* --- whole elements --- */

static Val
first_lane(Lower *l, Val v)
{
	return LLVMBuildExtractElement(l->b, v, LLVMConstInt(lower_i64(l), 0, 0), "");
}

static Val
aligned(Val access, DType t)
{
	LLVMSetAlignment(access, element_bytes(t));
	return access;
}

static void
align_argument(Lower *l, Val call, unsigned n, DType t)
{
	unsigned kind = LLVMGetEnumAttributeKindForName("align", 5);
	LLVMAddCallSiteAttribute(call, n + 1, LLVMCreateEnumAttribute(l->ctx, kind, element_bytes(t)));
}

static Val
all_lanes(Lower *l, unsigned lanes)
{
	return lower_int(l, LLVMVectorType(LLVMInt1TypeInContext(l->ctx), lanes), 1);
}

enum { SPARE_THREADS = 1024 }; /* of a multiprocessor, from which on a thread has 64 registers and fewer */

/* Of a cluster's blocks, which hold rows and wait for each other. */
static bool
has_spare_registers(const TirKernel *k)
{
	return !k->cluster || (k->resident && k->resident * k->threads < SPARE_THREADS);
}

static Val
load_once(Lower *l, const MemAccess *x, LLVMTypeRef type, Val p, unsigned bytes)
{
	Val once = x->once && !x->ahead ? lower_load_once(l, p, bytes) : NULL;
	return once ? LLVMBuildBitCast(l->b, once, type, "") : NULL;
}

static Val
load_whole(Lower *l, const MemAccess *x, LLVMTypeRef type, Val p, unsigned bytes)
{
	Val once = load_once(l, x, type, p, bytes);
	if (once)
		return once;
	Val r = LLVMBuildLoad2(l->b, type, p, "");
	LLVMSetAlignment(r, bytes);
	return r;
}

/* On a GPU a vector is what one access takes, all of it or nothing, at a multiple of its size. Elements of 16 bits
 * come as the words they are in (lower_lane), but of global memory where blocks have no registers to spare. */
static Val
load_group(Lower *l, const MemAccess *x)
{
	Guard g = {0};
	LLVMTypeRef type = memory_type(l, x->dtype, x->lanes), own = type;
	if (element_bytes(x->dtype) == 2 && (has_spare_registers(l->k) || l->k->buffer.at[x->buffer].shared))
		type = LLVMVectorType(LLVMInt32TypeInContext(l->ctx), x->lanes / 2);
	if (x->mask)
		g = guard_open(l, first_lane(l, x->mask));
	Val p = address(l, x->dtype, x->base, x->offset);
	Val r = load_whole(l, x, type, p, x->lanes * element_bytes(x->dtype));
	if (x->ahead) { /* elsewhere even a hint has to name memory that exists */
		Guard more = guard_open(l, x->more);
		lower_ahead(l, p, x->ahead, x->lanes * element_bytes(x->dtype));
		guard_close(l, more, NULL);
	}
	r = x->mask ? guard_close(l, g, r) : r;
	return type == own ? r : LLVMBuildBitCast(l->b, r, own, "");
}

static void
store_group(Lower *l, const MemAccess *x, Val value)
{
	Guard g = {0};
	if (x->mask)
		g = guard_open(l, first_lane(l, x->mask));
	Val store = LLVMBuildStore(l->b, value, address(l, x->dtype, x->base, x->offset));
	LLVMSetAlignment(store, x->lanes * element_bytes(x->dtype));
	if (x->mask)
		guard_close(l, g, NULL);
}

static Val
load_vector(Lower *l, const MemAccess *x)
{
	if (l->target->arch == ARCH_NVPTX)
		return load_group(l, x);
	LLVMTypeRef type = memory_type(l, x->dtype, x->lanes);
	Val p = address(l, x->dtype, x->base, x->offset);
	if (x->in_a_row && x->every) { /* a loop's branches take one way, or a kernel finds a fault */
		Guard g = guard_open(l, x->every);
		return guard_close(l, g, aligned(LLVMBuildLoad2(l->b, type, p, ""), x->dtype));
	}
	if (x->in_a_row && x->ahead && !x->mask)
		lower_ahead(l, p, x->ahead, x->lanes * element_bytes(x->dtype));
	if (x->in_a_row && !x->mask)
		return aligned(LLVMBuildLoad2(l->b, type, p, ""), x->dtype);
	if (x->in_a_row && lower_masks_by_sign(l, type))
		return lower_masked_load(l, type, p, x->mask);
	LLVMTypeRef over[2] = {type, LLVMTypeOf(p)};
	Val arg[3] = {p, x->mask ? x->mask : all_lanes(l, x->lanes), LLVMConstNull(type)};
	Val r = lower_call(l, x->in_a_row ? "llvm.masked.load" : "llvm.masked.gather", over, 2, arg, 3);
	align_argument(l, r, 0, x->dtype);
	return r;
}

/* Where a mask is found to be one known lane and the value a truncation, LLVM 22 stores that lane of
 * what was truncated, whole (llvm-project issue 179489). So the mask of such a store is never known:
 * it also asks whether the task range ends at the least integer, which it does not. */
static Val
store_mask(Lower *l, const MemAccess *x, Val value)
{
	Val mask = x->mask ? x->mask : all_lanes(l, x->lanes);
	LLVMTypeRef element = LLVMGetElementType(LLVMTypeOf(value));
	if (!x->in_a_row || LLVMGetTypeKind(element) != LLVMIntegerTypeKind)
		return mask;
	Val least = LLVMConstInt(lower_i64(l), (uint64_t)INT64_MIN, 0);
	Val yes = LLVMBuildICmp(l->b, LLVMIntNE, l->task_hi, least, "");
	return LLVMBuildAnd(l->b, mask, lower_splat(l, yes, x->lanes), "");
}

static void
store_vector(Lower *l, const MemAccess *x, Val value)
{
	if (l->target->arch == ARCH_NVPTX) {
		store_group(l, x, value);
		return;
	}
	Val p = address(l, x->dtype, x->base, x->offset);
	if (x->in_a_row && !x->mask && x->large) {
		lower_stream_store(l, value, p, x->large, x->buffer, x->lanes * element_bytes(x->dtype), element_bytes(x->dtype));
		return;
	}
	lower_stream_flush(l);
	if (x->in_a_row && (!x->mask || BUG(store_unmasked))) {
		aligned(LLVMBuildStore(l->b, value, p), x->dtype);
		return;
	}
	if (x->in_a_row && lower_masks_by_sign(l, LLVMTypeOf(value))) {
		lower_masked_store(l, value, p, x->mask);
		return;
	}
	LLVMTypeRef over[2] = {LLVMTypeOf(value), LLVMTypeOf(p)};
	Val arg[3] = {value, p, store_mask(l, x, value)};
	Val r = lower_call(l, x->in_a_row ? "llvm.masked.store" : "llvm.masked.scatter", over, 2, arg, 3);
	align_argument(l, r, 1, x->dtype);
}

static Val
load_handed(Lower *l, const MemAccess *x)
{
	LLVMTypeRef type = memory_type(l, x->dtype, 0), bits = LLVMIntTypeInContext(l->ctx, 8 * element_bytes(x->dtype));
	Val word = LLVMBuildLoad2(l->b, LLVMInt32TypeInContext(l->ctx), lower_handed_at(l, x->base, x->offset), "");
	LLVMSetVolatile(word, true);
	return LLVMBuildBitCast(l->b, LLVMBuildTrunc(l->b, word, bits, ""), type, "");
}

/* The store is counted where it arrives, when it has. Where that is takes no register from turn to turn. */
static void
hand_over(Lower *l, const MemAccess *x, Val value)
{
	const char *code = arena_text(l->arena, "{ .reg .b32 there, at; mapa.shared::cluster.u32 there, $0, $3; add.u32 at, there, $1; "
	                                        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [at], $2, [there+%u]; }", x->handed);
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx), bits = LLVMIntTypeInContext(l->ctx, 8 * element_bytes(x->dtype));
	Val offset = LLVMBuildShl(l->b, LLVMBuildTrunc(l->b, x->offset, i32, ""), lower_int(l, i32, 2), "");
	const Val arg[4] = {LLVMBuildPtrToInt(l->b, x->base, i32, ""), offset,
	                    LLVMBuildZExt(l->b, LLVMBuildBitCast(l->b, value, bits, ""), i32, ""), LLVMBuildTrunc(l->b, x->rank, i32, "")};
	lower_assembly(l, NULL, code, "r,r,r,r", arg, 4);
}

static unsigned
of_device(Lower *l)
{
	return LLVMGetSyncScopeID(l->ctx, "device", 6);
}

static void
post(Lower *l, Val store)
{
	LLVMSetOrdering(store, l->k->channel.n ? LLVMAtomicOrderingRelease : LLVMAtomicOrderingMonotonic);
	LLVMSetAtomicSyncScopeID(store, of_device(l));
}

static Val
load_scalar(Lower *l, const MemAccess *x)
{
	Guard g = {0};
	if (x->mask)
		g = guard_open(l, x->mask);
	Val r = NULL;
	if (x->handed)
		r = load_handed(l, x);
	else {
		LLVMTypeRef type = memory_type(l, x->dtype, 0);
		Val p = address(l, x->dtype, x->base, x->offset);
		r = load_once(l, x, type, p, element_bytes(x->dtype));
		if (!r) {
			r = aligned(LLVMBuildLoad2(l->b, type, p, ""), x->dtype);
			LLVMSetVolatile(r, x->wide && !l->k->channel.n); /* roles meet at barriers alone */
		}
	}
	return x->mask ? guard_close(l, g, r) : r;
}

static void
store_scalar(Lower *l, const MemAccess *x, Val value)
{
	Guard g = {0};
	if (x->wide && !l->k->channel.n)
		lower_enter_cluster(l);
	if (x->mask)
		g = guard_open(l, x->mask);
	if (x->handed)
		hand_over(l, x, value);
	else {
		Val store = aligned(LLVMBuildStore(l->b, value, address(l, x->dtype, x->base, x->offset)), x->dtype);
		if (x->posted)
			post(l, store);
	}
	if (x->mask)
		guard_close(l, g, NULL);
}

/* --- 4-bit elements --- */

/* Element n lies in byte n / 2, at bit 4 * (n mod 2). */
static MemAccess
byte_of(Lower *l, const MemAccess *x, Val *shift)
{
	MemAccess byte = *x;
	if (x->in_a_row)
		byte.offset = LLVMBuildAdd(l->b, lower_splat(l, x->offset, x->lanes), lane_numbers(l, x->lanes), "");
	LLVMTypeRef wide = LLVMTypeOf(byte.offset);
	Val odd = LLVMBuildAnd(l->b, byte.offset, lower_int(l, wide, 1), "");
	if (BUG(nibbles_swapped))
		odd = LLVMBuildXor(l->b, odd, lower_int(l, wide, 1), "");
	Val bits = LLVMBuildShl(l->b, odd, lower_int(l, wide, 2), "");
	*shift = LLVMBuildTrunc(l->b, bits, memory_type(l, DT_U8, x->lanes), "");
	byte.offset = LLVMBuildAShr(l->b, byte.offset, lower_int(l, wide, 1), "");
	byte.in_a_row = false;
	return byte;
}

Val
lower_nibbles(Lower *l, DType t, Val all, unsigned lanes)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx), i8 = LLVMInt8TypeInContext(l->ctx);
	bool is_signed = dtype_info[t].kind == KIND_INT;
	Val lane = LLVMGetPoison(LLVMVectorType(i8, lanes)), word = NULL;
	for (unsigned k = 0; k < lanes; k++) {
		if (k % 8 == 0)
			word = lanes > 8 ? LLVMBuildExtractElement(l->b, all, lower_int(l, i32, k / 8), "") : LLVMBuildZExt(l->b, all, i32, "");
		Val up = LLVMBuildShl(l->b, word, lower_int(l, i32, 28 - 4 * (k % 8)), ""), down = lower_int(l, i32, 28);
		Val held = is_signed ? LLVMBuildAShr(l->b, up, down, "") : LLVMBuildLShr(l->b, up, down, "");
		lane = LLVMBuildInsertElement(l->b, lane, LLVMBuildTrunc(l->b, held, i8, ""), lower_int(l, i32, k), "");
	}
	return lane;
}

/* A GPU's thread has several that are side by side, at a multiple of their size, by one access: in words, or in less. */
static Val
load_nibble_group(Lower *l, const MemAccess *x)
{
	unsigned bits = x->lanes * 4;
	LLVMTypeRef type = bits > 32 ? LLVMVectorType(LLVMInt32TypeInContext(l->ctx), bits / 32) : LLVMIntTypeInContext(l->ctx, bits);
	Val byte = LLVMBuildAShr(l->b, x->offset, lower_int(l, lower_i64(l), 1), "");
	return lower_nibbles(l, (DType)x->dtype, load_whole(l, x, type, address(l, DT_U8, x->base, byte), bits / 8), x->lanes);
}

static Val
load_nibble(Lower *l, const MemAccess *x)
{
	Val shift;
	if (l->target->arch == ARCH_NVPTX && x->lanes && x->in_a_row && !x->mask && x->lanes % 2 == 0)
		return load_nibble_group(l, x);
	MemAccess byte = byte_of(l, x, &shift);
	Val r = x->lanes ? load_vector(l, &byte) : load_scalar(l, &byte);
	return lower_bitcast(l, LLVMBuildLShr(l->b, r, shift, ""), DT_U8, (TirType){(uint8_t)x->dtype, 0});
}

static void
store_one_nibble(Lower *l, const MemAccess *x, Val value)
{
	Val shift;
	MemAccess byte = byte_of(l, x, &shift);
	LLVMTypeRef i8 = LLVMInt8TypeInContext(l->ctx);
	Guard g = {0};
	if (x->mask)
		g = guard_open(l, x->mask);
	Val p = address(l, x->dtype, byte.base, byte.offset);
	Val old = aligned(LLVMBuildLoad2(l->b, i8, p, ""), x->dtype);
	Val mine = LLVMBuildShl(l->b, LLVMConstInt(i8, 15, 0), shift, "");
	Val kept = LLVMBuildAnd(l->b, old, LLVMBuildNot(l->b, mine, ""), "");
	Val low = LLVMBuildAnd(l->b, value, LLVMConstInt(i8, 15, 0), "");
	Val both = LLVMBuildOr(l->b, kept, LLVMBuildShl(l->b, low, shift, ""), "");
	aligned(LLVMBuildStore(l->b, both, p), x->dtype);
	if (x->mask)
		guard_close(l, g, NULL);
}

static void
store_nibbles(Lower *l, const MemAccess *x, Val value)
{
	for (unsigned i = 0; i < x->lanes; i++) {
		Val n = LLVMConstInt(lower_i64(l), i, 0);
		MemAccess one = {.dtype = x->dtype, .base = x->base};
		one.offset = x->in_a_row ? LLVMBuildAdd(l->b, x->offset, n, "")
		                         : LLVMBuildExtractElement(l->b, x->offset, n, "");
		if (x->mask)
			one.mask = LLVMBuildExtractElement(l->b, x->mask, n, "");
		store_one_nibble(l, &one, LLVMBuildExtractElement(l->b, value, n, ""));
	}
	if (!x->lanes)
		store_one_nibble(l, x, value);
}

/* --- the instructions --- */

Val
lower_tile_load(Lower *l, ValId v)
{
	MemAccess x = access_of(l, v, lower_inst(l, v)->type.lanes);
	if (dtype_info[x.dtype].bits < 8)
		return load_nibble(l, &x);
	Val r = x.lanes ? load_vector(l, &x) : load_scalar(l, &x);
	if (x.dtype == DT_BOOL)
		r = LLVMBuildICmp(l->b, LLVMIntNE, r, LLVMConstNull(LLVMTypeOf(r)), "");
	return r;
}

void
lower_tell_address(Lower *l, ValId v)
{
	MemAccess x = access_of(l, v, lower_inst(l, lower_arg_id(l, v, 1))->type.lanes);
	address(l, x.dtype, x.base, x.offset);
}

void
lower_tile_store(Lower *l, ValId v)
{
	ValId from = lower_arg_id(l, v, 1);
	MemAccess x = access_of(l, v, lower_inst(l, from)->type.lanes);
	Val value = l->val[from];
	if (x.dtype == DT_BOOL)
		value = LLVMBuildZExt(l->b, value, memory_type(l, DT_BOOL, x.lanes), "");
	if (dtype_info[x.dtype].bits < 8)
		store_nibbles(l, &x, value);
	else if (x.lanes)
		store_vector(l, &x, value);
	else
		store_scalar(l, &x, value);
}

void
lower_fetch(Lower *l, ValId v)
{
	MemAccess x = access_of(l, v, 0);
	if (dtype_info[x.dtype].bits >= 8 && l->target->arch == ARCH_X86)
		lower_ahead(l, address(l, x.dtype, x.base, x.offset), LLVMConstInt(lower_i64(l), 0, 0), 1);
}

/* status[n] = status[n] ? status[n] : word, for one lane's word. */
static void
keep_first(Lower *l, unsigned n, Val word)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx);
	Val at = LLVMConstInt(lower_i64(l), n, 0);
	Val p = LLVMBuildGEP2(l->b, i32, l->status, &at, 1, "");
	Val old = LLVMBuildLoad2(l->b, i32, p, "");
	Val none = LLVMBuildICmp(l->b, LLVMIntEQ, old, LLVMConstInt(i32, 0, 0), "");
	LLVMBuildStore(l->b, LLVMBuildSelect(l->b, none, word, old, ""), p);
}

void
lower_fault(Lower *l, ValId v)
{
	Val id = lower_arg(l, v, 0), any = id;
	unsigned lanes = lower_inst(l, lower_arg_id(l, v, 0))->type.lanes;
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx), type = LLVMTypeOf(id);
	if (l->target->arch == ARCH_NVPTX) {
		lower_nvptx_fault(l, id);
		return;
	}
	if (lanes)
		any = lower_call(l, "llvm.vector.reduce.or", &type, 1, &id, 1);
	Guard g = guard_open(l, LLVMBuildICmp(l->b, LLVMIntNE, any, LLVMConstInt(i32, 0, 0), ""));
	for (unsigned i = 0; i < (lanes ? lanes : 1); i++) {
		Val n = LLVMConstInt(lower_i64(l), i, 0);
		Val word = lanes ? LLVMBuildExtractElement(l->b, id, n, "") : id;
		keep_first(l, 0, LLVMBuildAnd(l->b, word, LLVMConstInt(i32, 0xffff, 0), ""));
		keep_first(l, 1, LLVMBuildLShr(l->b, word, LLVMConstInt(i32, 16, 0), ""));
	}
	guard_close(l, g, NULL);
}
