/* lower.h: the state of lowering one TIR kernel to an LLVM function, shared by lower*.c.
 *
 * How values are held: f32 and f64 as themselves; integers of 8 bits and more as iN; bool as i1 (a
 * byte in memory, nonzero is true); narrow floats as integers of their width, since they are only
 * moved; 4-bit types as i8, i4 sign-extended and u4, f4e2m1 zero-extended. A vector is <lanes x T>.
 * No instruction carries a fast-math, nsw, nuw, exact or inbounds flag. */
#ifndef TEXO_CODEGEN_LOWER_H
#define TEXO_CODEGEN_LOWER_H

#include <llvm-c/Core.h>

#include "codegen/target.h"
#include "ir/tir.h"

typedef LLVMValueRef Val;

enum { LOWER_MOST_HELD = 4, LOWER_MOST_STEPS = 4, LOWER_MOST_AXES = 8 };

/* A buffer whose elements blocks of a cluster hand to each other: where in it the word of shared memory is that counts what
 * comes, 0: it is none; and which bit of Lower.phases says which of the word's two phases is the next one to be waited for. */
typedef struct {
	uint32_t word, bit;
} LowerHanded;

/* Where a view was last accessed; how far that was from the time before, times a value or 1, along which axis; far 0: it was no step. */
typedef struct {
	ValId view, index[LOWER_MOST_AXES], times;
	Val base, p;
	LLVMBasicBlockRef block;
	int64_t far;
	unsigned axis;
} LowerStep;

typedef struct {
	Arena *arena;
	LLVMContextRef ctx;
	LLVMModuleRef module;
	LLVMBuilderRef b;
	const Target *target;
	const TirKernel *k;
	Val fn, status, task_lo, task_hi, task_step;
	Val task; /* on a GPU: the number that status words give it */
	Val *buffer, *scalar;
	Val *val;       /* by ValId */
	Val **result;   /* by ValId of a FOR or IF: its results */
	const Val *block_arg; /* of the innermost open region */
	bool one_task;  /* of a GPU's kernel, whose threads go from task to task around its body */
	Val entered, phases; /* of a cluster: whether the block knows that all others are there; LowerHanded */
	LowerHanded *handed; /* of a GPU's kernel, by buffer */
	ValId last;     /* of a GPU's kernel: a barrier that its body ends with, which parts a task from the next; 0: none */
	struct LowerRoles *roles; /* lower_roles.c */
	struct LowerApart *apart; /* lower_apart.c */
	struct {                  /* the last quotient and remainder of nvptx_divide.c, and the block that knows them */
		Val a, b, quotient, remainder;
		LLVMBasicBlockRef known;
	} divided;
	LowerStep step[LOWER_MOST_STEPS]; /* of a GPU's thread (nvptx_steps.c) */
	unsigned nstep;
	enum { LOWER_UNKNOWN, LOWER_STEPS, LOWER_NO_STEPS } steps;
	ValId *held_at, *held_next; /* by branch: the last of what is held before it; by value: the next one (nvptx_hold.c) */
	unsigned nquotient;       /* of the kernel (nvptx_quotients.c); 0: nobody has asked */
	struct {                  /* streaming stores that wait for others, all alike (lower_stream.c) */
		unsigned n, bytes, align;
		uint32_t buffer;
		Val large, value[LOWER_MOST_HELD], p[LOWER_MOST_HELD];
	} held;
} Lower;

/* lower.c */
/* Adds the kernel to m as the function `symbol`, of type ImageCpuKernel or, for a GPU, as the entry that
 * ir/image.h tells of; b is any builder of m's context. serial: all its tasks are one call. */
void lower_kernel(Arena *a, LLVMModuleRef m, LLVMBuilderRef b, const Target *t, const TirKernel *k,
                  const char *symbol, bool serial);
/* The kernel's body, at the builder's place; its n-th scalar, from the word in which it is handed over. */
void lower_body(Lower *l);
Val lower_scalar(Lower *l, uint32_t n, Val word);
/* The value of an instruction, NULL for what has none. */
Val lower_value(Lower *l, ValId v);
void lower_attribute(Lower *l, const char *name, const char *value);
void lower_flag(Lower *l, const char *name, uint64_t value);
/* What every function has. */
void lower_function_attributes(Lower *l);
LLVMTypeRef lower_dtype(Lower *l, DType t);
LLVMTypeRef lower_type(Lower *l, TirType t);
/* c in every lane of type t. */
Val lower_int(Lower *l, LLVMTypeRef t, uint64_t c);
Val lower_splat(Lower *l, Val scalar, unsigned lanes);
Val lower_call(Lower *l, const char *intrinsic, LLVMTypeRef *overload, unsigned noverload, const Val *arg,
               unsigned narg);
/* Lanes at, at + 1, … of x as a vector of n lanes; where x has ended, a lane of `beyond`, a vector of its type. */
Val lower_lanes_from(Lower *l, Val x, Val beyond, unsigned at, unsigned n);
/* all, a vector of n lanes, with those of part from lane `at` on; all = NULL: the others are anything. */
Val lower_put_lanes(Lower *l, Val all, Val part, unsigned at, unsigned n);
static inline LLVMTypeRef
lower_i64(Lower *l)
{
	return LLVMInt64TypeInContext(l->ctx);
}
static inline const TirInst *
lower_inst(const Lower *l, ValId v)
{
	return &l->k->inst.at[v];
}
static inline ValId
lower_arg_id(const Lower *l, ValId v, unsigned n)
{
	return l->k->arg.at[l->k->inst.at[v].arg + n];
}
static inline Val
lower_arg(const Lower *l, ValId v, unsigned n)
{
	return l->val[lower_arg_id(l, v, n)];
}

/* lower_apart.c: lowers an arm of an IF, its values to out, if it becomes a function of its own. */
bool lower_apart(Lower *l, const TirRegion *r, Val *out);

/* lower_const.c: the bits of v, a value of the narrow float type t. */
uint32_t narrow_bits(DType t, double v);
Val lower_const(Lower *l, const TirInst *x);

/* lower_math.c: the operation v, by family */
Val lower_plain(Lower *l, ValId v, LLVMOpcode on_ints, LLVMOpcode on_floats); /* one instruction */
Val lower_intrinsic(Lower *l, ValId v, const char *name);
Val lower_scale(Lower *l, ValId v);
Val lower_divide(Lower *l, ValId v, bool want_quotient);
Val lower_shift(Lower *l, ValId v, bool left);
Val lower_rounded_bf16(Lower *l, ValId v); /* NULL: it is no such number */
Val lower_bounded(Lower *l, ValId v);      /* the same */
Val lower_negate(Lower *l, ValId v);
Val lower_abs(Lower *l, ValId v);
Val lower_sign(Lower *l, ValId v);
Val lower_extreme(Lower *l, ValId v, bool smaller);
Val lower_round(Lower *l, ValId v);
Val lower_compare(Lower *l, ValId v);
Val lower_isnan(Lower *l, ValId v);
/* lower_lanes.c */
Val lower_lane(Lower *l, ValId v);
Val lower_any(Lower *l, ValId v);
Val lower_slide(Lower *l, ValId v);
Val lower_half(Lower *l, ValId v);
Val lower_weave(Lower *l, ValId v);
Val lower_pick(Lower *l, ValId v);
/* lower_stream.c */
/* For views that streaming stores take: whether the view is large enough; else NULL. */
Val lower_view(Lower *l, ValId v);
/* Stores a whole vector of so many bytes into the buffer, past the caches where `large` holds and p is aligned for it, else as
 * any other, with `align`. */
void lower_stream_store(Lower *l, Val value, Val p, Val large, uint32_t buffer, unsigned bytes, unsigned align);
/* Those so far, before what is not sure to leave memory alone. */
void lower_stream_flush(Lower *l);
/* Whether v touches no memory, or is such a store. */
bool lower_stream_passes(const Lower *l, ValId v);
/* Whether the target takes hints about loads to come. */
bool lower_looks_ahead(const Lower *l);
/* Fetches the lines of so many bytes at p + step bytes into a near cache. */
void lower_ahead(Lower *l, Val p, Val step, unsigned bytes);
/* At the end of the kernel. */
void lower_stream_end(Lower *l);
/* lower_cast.c */
Val lower_cast(Lower *l, Val a, DType from, TirType to);
Val lower_bitcast(Lower *l, Val a, DType from, TirType to);
/* A JOIN of casts to f8e4m3 on a GPU, whose instruction makes two at once; NULL: it is another. */
Val lower_join_fp8(Lower *l, ValId v);
/* lower_masked.c */
bool lower_masks_by_sign(const Lower *l, LLVMTypeRef vector);
Val lower_masked_load(Lower *l, LLVMTypeRef vector, Val p, Val mask);
void lower_masked_store(Lower *l, Val value, Val p, Val mask);
/* lower_memory.c */
Val lower_tile_load(Lower *l, ValId v);
void lower_tile_store(Lower *l, ValId v);
/* Computes where store v goes, which is found again where it is. */
void lower_tell_address(Lower *l, ValId v);
void lower_fetch(Lower *l, ValId v);
void lower_fault(Lower *l, ValId v);
/* The address of an element of a view. */
Val lower_address(Lower *l, ValId view, const ValId *index);
/* lower_dot.c: around the body of a kernel; one DOT */
void lower_tiles_begin(Lower *l);
void lower_tiles_end(Lower *l);
void lower_dot(Lower *l, ValId v);
/* nvptx_order.c */
/* Whether what only computes is lowered when it is wanted, in this region. */
bool lower_may_wait(const Lower *l, const TirRegion *r);
/* Whether the at-th instruction has been lowered, or is when it is wanted. Of another, all that it wants is lowered. */
bool lower_waits(Lower *l, const TirRegion *r, uint32_t at, bool waits);
/* v, and what it wants, if it waits. */
void lower_now(Lower *l, const TirRegion *r, ValId v);
/* Whether v has a value, or waits, and all that it wants does too, and that is at most so much work. */
bool lower_only_waits(const Lower *l, ValId v, unsigned *work);
/* Whether v touches nothing, and waits where there is no order. */
bool lower_only_computes(const Lower *l, ValId v);
/* nvptx_hold.c: for a region where nothing waits; before instruction v of it */
void lower_hold_region(Lower *l, const TirRegion *r);
void lower_hold(Lower *l, ValId v);
/* nvptx_posts.c: whether the at-th instruction waits for a word that another task posts; then that, with others of the region */
bool lower_posted(Lower *l, const TirRegion *r, uint32_t at);
/* nvptx_divide.c: whether IDIV or IMOD v divides what no data tells; it, and the other of the two for nothing */
bool lower_divides_indices(const Lower *l, ValId v);
/* Whether it divides the number of a task, or what comes of dividing one, by what is known to be as small. */
bool lower_divides_few(const Lower *l, ValId v);
Val lower_divide_indices(Lower *l, ValId v, bool want_quotient);
/* nvptx_quotients.c */
/* Says that a conditional branch mostly goes to its first block. */
void lower_expect_first(Lower *l, Val branch);
/* Whether v is a quotient or a root that lower_quotients takes. */
bool lower_is_quotient(const Lower *l, ValId v);
/* Lowers v, whose operands have values, together with others of the region if there are; false: it is the assembler's. */
bool lower_quotients(Lower *l, const TirRegion *r, ValId v);
/* Whether v is one of a GPU that needs no slow path; and that. */
bool lower_is_middle(const Lower *l, ValId v);
Val lower_middle_quotient(Lower *l, ValId v);
/* nvptx_steps.c: the address of what has these indices, by the view's last one; NULL: it is no step beyond that. And the last one */
Val lower_step(Lower *l, ValId view, Val base, const ValId *index, DType t);
void lower_step_from(Lower *l, ValId view, Val base, const ValId *index, Val p);
/* The builder's block comes after `from` and what is between them, whichever way is taken. */
void lower_steps_go_on(Lower *l, LLVMBasicBlockRef from);
/* nvptx_exact.c: of f32, whatever the exponents */
Val lower_exact_quotient(Lower *l, Val dividend, Val divisor);
Val lower_exact_root(Lower *l, Val of);
/* nvptx_units.c: an operation that is a unit's */
Val lower_unit(Lower *l, ValId v);

/* lower_roles.c: around a kernel with roles, whose parameters from first_map on are tensor maps, one for each COPY; and what
 * stands in it */
void lower_begin_roles(Lower *l, unsigned first_map);
/* Where shared buffer b of a kernel of roles lies. */
Val lower_role_memory(Lower *l, unsigned b);
void lower_roles(Lower *l, ValId v);
void lower_acquire(Lower *l, ValId v);
void lower_copy(Lower *l, ValId v);
void lower_wait(Lower *l, ValId v);
void lower_release(Lower *l, ValId v);
void lower_mma(Lower *l, ValId v);
void lower_registers(Lower *l, ValId v); /* PRODUCT, KEEP, PUT, SETTLE */
void lower_turn(Lower *l, ValId v);
/* So many elements of 4 bits that lie side by side: `all` is their bits, in words or, of fewer than 8, in less than one. */
Val lower_nibbles(Lower *l, DType t, Val all, unsigned lanes);
Val lower_piece(Lower *l, ValId v); /* PIECE, HELD, TAKE */
void lower_role_barrier(Lower *l, int64_t kind); /* imm of a BARRIER in a role */
/* lower.c: a region without block arguments or values */
void lower_role(Lower *l, uint32_t region);
/* nvptx_entry.c */
void lower_nvptx_kernel(Lower *l, const char *symbol, bool serial);
void lower_nvptx_fault(Lower *l, Val word);
Val lower_thread(Lower *l);
Val lower_thread_anew(Lower *l);
void lower_tasks_anew(Lower *l);
Val lower_rank(Lower *l);
Val lower_of_block(Lower *l, Val at, Val rank);
Val lower_shuffle(Lower *l, ValId v);
/* lower_warp.c */
Val lower_warp_mma(Lower *l, ValId v);
void lower_rolled(Lower *l, Val back); /* the loop of that branch stays one */
void lower_keep_rolled(Lower *l, ValId v, Val back);
/* lower_async.c */
Val lower_meanwhile(Lower *l, ValId v); /* LOAD_MATRIX, STORE_MATRIX, ASYNC_COPY, ASYNC_WAIT */
/* lower_stream.c */
bool lower_is_stored(const Lower *l, uint32_t b);
Val lower_load_once(Lower *l, Val p, unsigned bytes);
void lower_barrier(Lower *l, int64_t kind);
/* Before a block of a cluster reaches others. */
void lower_enter_cluster(Lower *l);
/* Where element n of a buffer whose elements are handed over is, each a word of 32 bits, of a block whose buffer begins at base. */
static inline Val
lower_handed_at(Lower *l, Val base, Val n)
{
	return LLVMBuildGEP2(l->b, LLVMInt32TypeInContext(l->ctx), base, &n, 1, "");
}
/* lower_roles.c: code that stays where it stands. */
Val lower_assembly(Lower *l, LLVMTypeRef result, const char *code, const char *constraints, const Val *arg, unsigned narg);

#endif
