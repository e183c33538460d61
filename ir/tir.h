/* tir.h: the tile IR, shared by CPU and GPU. SSA in structured regions; a value is an instruction's
 * id; operands have smaller ids.
 *
 * Types: a dtype and a tile shape of rank 0 (a scalar) or 1 (a vector of lanes, in registers).
 * Matrix tiles, layouts, spaces and channels join here as templates need them. There is no c64:
 * a template splits it into two f32.
 *
 * Arithmetic is exact to the bit: every operation but SCALE is defined for every input (op rows in ops.def,
 * casts as in LANGUAGE.md), both operands of && and || are evaluated, nothing is contracted or
 * reordered by later stages. So interpreter, CPU and GPU agree to the bit on the same TIR, but for units of the target (F_UNIT), as
 * near as their rows say, of f32. EX2 and RCP, within 2^-22.6 (2.06 ulp) and 2^-23 (1 ulp) of themselves, are 0 below 2^-126, and RCP
 * of what is smaller is infinite; the interpreter's values are the nearest. The others take and give subnormal numbers, or 0 for such
 * a quotient, and have the values of what they approximate at 0, at infinities and at NaN, but for FLUSH_MUL, which is exact as it
 * is defined; the interpreter's are about as far off as they may be. Only the passes for targets that have units write them.
 *
 * EXP, EXP2 and TANH of f32 are narrowed (tg.h) where imm is a type, BF16 or F16, not 0.
 *
 * Operands of the structural operations:
 *   BUFFER   imm = k: the kernel's k-th buffer. Type: none.
 *   SCALAR   imm = k: the kernel's k-th scalar argument (i64, or the dtype of a scalar parameter)
 *   TASK_LO, TASK_HI   i64: the half-open range of tasks this call runs
 *   VIEW     buffer, extent[0..rank), stride[0..rank) (i64, strides in elements); imm = rank.
 *            Type: the buffer's dtype, but it is no value: only LOAD, STORE, FETCH and DOT take it.
 *   LOAD     view, index[0..rank), [mask bool]; imm = LoadFlags. Where the mask is false nothing is
 *            read and the value is 0. Type of the view's dtype. Each index is i64, scalar or a
 *            vector of the result's lanes. With TIR_LANES_ALONG(a), result lane l reads index[a] + l.
 *   STORE    view, value, index[0..rank), [mask]; imm as LOAD. 4-bit stores keep the other nibble.
 *   FETCH    view, index[0..rank), i64 scalars: the element there will be wanted soon, if it exists. No effect.
 *   DOT      adds a product of matrices to one in memory. Views c (f32), a and b (u32: two bf16 each, the
 *            low half first), n (i64), then the leading indices (i64) of c, a and b, in this order: all
 *            but the last two of c (row, column), the last three of a (group, row, pair) and of b
 *            (group, pair, column). imm = TIR_DOT(rows, columns, pairs), the extents from the leading
 *            indices on. For each group 0 .. n-1 in turn, c += the sum of a's low halves by b's plus
 *            the sum of a's high halves by b's: each of the two is one fma a pair, from +0. With
 *            TIR_DOT_CHAINED, for each pair of each group in turn, c takes the product of the high halves
 *            by one fma, then that of the low ones by another. With TIR_DOT_ANEW c is not read: sums start
 *            from +0. Subnormal operands count as 0 and subnormal results become 0. c lies in a buffer of its own.
 *   FAULT    id (u32, scalar or vector): low 16 bits a failed AccessId, high 16 bits a cut one, each 0
 *            for none. The launch keeps the first nonzero of each. Fault planes hold the same words.
 *   FOR      lo, hi, step (i64; step > 0), init…; region[0] has BLOCKARGs: the index, then the carried values,
 *            and ends in YIELD of the carried values. RESULT k is the k-th carried value at the end.
 *            imm: TIR_ROLLED, or 0: the code of a turn is not to be written for several
 *   IF       cond (scalar bool); region[0] then, region[1] else, both ending in YIELD of equal types.
 *   BLOCKARG imm = k; RESULT: operand FOR or IF, imm = k
 *   IOTA     vector 0, 1, …, each rounded down to a multiple of imm where imm is not 0
 *   SPLAT    scalar -> vector
 *   LANE     vector -> its lane imm or, of a vector type, its lanes imm, imm + 1, … (fewer than all)
 *   JOIN     n > 1 scalars of one type -> the vector of them
 *   HALF     vector of 2n lanes, n > 1 -> the n lanes in whose number bit imm / 2 is imm mod 2, in order
 *   WEAVE    a, b, vectors of n lanes of one type -> 2n lanes, of which HALF by imm / 2 gives a (0) and b (1); imm is even
 *   SLIDE    a, b, vectors of one type of n lanes: lanes by .. by + n - 1 of a followed by b; 0 < by < n. With a
 *            segment of m lanes, m a divisor of n, 0 < by < m, so for each m lanes side by side of a and b by
 *            themselves. imm = by, or TIR_SLIDE(by, m)
 *   PICK     a, a vector of n lanes of a type of 32 bits, n a power of two; b, u32 -> for each lane of b, or for the scalar,
 *            lane b mod n of a
 *   ANY      vector of bool -> bool: whether a lane of it is true
 *   CONST    imm as in TG; a vector type means splat
 *
 * Blocks. On a GPU the threads of a block may take a task together. Such a kernel is written as any other,
 * with vectors that are as long as a block can hold (`threads` of TirKernel; BLOCK); then spread
 * (passes/tile/spread.c) gives each thread its lanes, and it is a kernel of what one thread does (SPREAD).
 * Control flow is the same for all threads wherever a BARRIER stands, and for those of a warp where a SHUFFLE does. There are then also
 *   THREAD   i64: the number of the thread in its block. imm, if it is not 0: it is looked up anew, for each such number and
 *            in each turn of a loop, so that nothing that is made of it is kept where registers are few
 *   RANK     i64: the number of the block in its cluster
 *   SHUFFLE  a scalar -> what the thread whose number differs in the bits imm (1 .. 31) has; with TIR_BEFORE(n) and
 *            TIR_AFTER(n), 0 < n < 32, what the thread by n before or after it in its warp has, itself where there is none;
 *            with TIR_SAME, of 32 bits, what all threads of the warp have, who must have the same: one register for all of them
 *   WARP_MMA a[8], b[4], bf16 or f16, and c[4], f32, scalars -> a vector of 4 f32: the threads of each warp, which all meet it,
 *            add the product of two matrices to a third. What a thread has of a (16 rows, 16 terms), b (16 terms, 8
 *            columns), c and the result (16 rows, 8 columns) say the rows MMA_A16, MMA_B16 and MMA_C of ir/fragments.def. Or
 *            a[4], b[2], f32, of matrices with 8 terms (MMA_A32, MMA_B32): each is rounded to the nearest of 11 bits first, away
 *            from 0 in the middle of two, with f32's exponents (tf32). The products are exact; the sums are of f32, in an order and with a rounding that are the target's (the
 *            interpreter: term after term, by fma), subnormals kept.
 *   LOAD_MATRIX  view, index[0..rank) (i64 scalars); imm: 1 turned, else 0 -> a vector of 8 bf16 or f16: the threads of each
 *            warp, which all meet it, load four matrices of 8 by 8 elements from a shared buffer, whatever type it has. Thread
 *            8 m + r says where row r of matrix m begins, at a multiple of 16 bytes: it goes 16 bytes along the view's last axis.
 *            Thread t gets, as lanes 2 m and 2 m + 1, elements c and c + 1 of row t div 4 of matrix m or, turned, of its
 *            column t div 4, where c = 2 (t mod 4). Or a vector of 4 f32, not turned: the matrices are of 8 by 4 elements, and
 *            lane m is element t mod 4 of row t div 4 of matrix m
 *   STORE_MATRIX  view, value, index[0..rank); imm: 1 turned, else 0: the opposite, of a vector of 8 bf16 or f16: the threads of
 *            each warp, which all meet it, store what LOAD_MATRIX with the same view, indices and imm gives them
 *   ASYNC_COPY  to, from, there (bool), the indices of `to`, those of `from` (i64 scalars): begins to copy 16 bytes to a view of
 *            a shared buffer, from one of a buffer that nobody writes to, along the last axes of both, whose strides are 1, and from
 *            multiples of 16 bytes on; or, where `there` does not hold, 16 bytes of 0, and reads nothing. Until the thread has
 *            waited for it, nobody touches the place. A kernel ends with all of them waited for
 *   ASYNC_WAIT  imm = k: what the thread has begun to copy since the last one is a group; waits until at most k of its groups
 *            are on their way. Other threads see what has come after a barrier
 *   BARRIER  all threads of the block, or with imm = 1 of the cluster, arrive before any goes on; what they stored
 *            before is then seen by all of them. With imm = TIR_WARP_BARRIER the same of each warp's threads alone, all of which
 *            meet it. With imm = TIR_HANDED(k) it is none: all threads meet it, and each goes on when
 *            every block of the cluster has stored to the block, since the last such wait, its share of the elements of the wide buffer
 *            k, which have 8 to 32 bits: as many for each block, by rank, each once. It sees them then, and nothing else.
 *            What threads of a block read of wide buffers before a barrier of theirs, behind which it stored those, is not read
 *            later by them. Such elements are stored by STOREs of a scalar to blocks by number, and loaded by those of RANK; who
 *            stores them again knows by a later wait, or a barrier of the cluster, that all threads have waited for them
 * and shared buffers, which a block has for itself, with anything in them at first.
 *
 * Tasks may post words to later ones: a `posted` buffer has u64 elements that are 0 when the kernel begins. A STORE there is
 * of a scalar that is not 0, to an element that none has stored to; a LOAD waits until its elements are not 0. A task
 * waits for what tasks before it post alone, and they begin in their order. Posts order nothing else in memory, but in kernels
 * with channels: there who meets a BARRIER behind the load of a word sees what threads had stored before a BARRIER that they met with
 * the one that posts it, if it did so behind that. Such a kernel loads nothing else that it has stored to a buffer that is handed over.
 *
 * Sets. A kernel may do the same with several sets of buffers and scalars (`sets` of TirKernel), of which each has tasks of its
 * own, counted from 0. A launch then hands over the buffers of all sets, one set after another, their scalars in the same
 * way, and for each set but the first the number of tasks that those before it have. Nothing that is written with one
 * set is accessed with another.
 *
 * Clusters. Several blocks may take a task together (`cluster` of TirKernel), with vectors that are as long as all
 * of them hold. The blocks of a cluster reach each other's `wide` shared buffers: a view of one has two axes, of the
 * cluster's blocks by rank and of the buffer's elements.
 *
 * Columns. The lanes of a kernel of blocks may be rows of so many columns (`columns` of TirKernel): then TIR_LANES_ALONG(a) is
 * index[a] + l mod columns, and a vector has as many lanes as its threads have in a group each, a multiple of them, or fewer:
 * what is left when HALF, by the lowest bit of a row's number, has parted rows, down to one; WEAVE of such with itself, by
 * the highest bit, puts it into more rows again. */
#ifndef TEXO_IR_TIR_H
#define TEXO_IR_TIR_H

#include "ir/arena.h"
#include "ir/channel.h"
#include "ir/names.h"
#include "ir/op.h"
#include "ir/text.h"

typedef uint32_t ValId; /* 0: none */

enum { TIR_MAX_RANK = 9, TIR_MAX_LANES = 256, TIR_MAX_BLOCK_LANES = 32768, TIR_WARP = 32, TIR_MAX_THREADS = 1024, TIR_MATRIX = 8, TIR_MATRIX_BITS = 128, TIR_ASYNC_BYTES = 16, TIR_MAX_ASYNC = 8, TIR_MAX_CLUSTER = 8, TIR_MAX_SETS = 64 };

typedef struct {
	uint32_t dtype : 8;  /* DType; DT_NONE for what has no value */
	uint32_t lanes : 24; /* 0: scalar; else a vector */
} TirType;

enum {
	TIR_MASKED = 1, /* the last operand of LOAD or STORE is a mask */
	TIR_STREAM = 2  /* STORE of a vector along an axis: nothing reads it soon, so a large view may go past
	                 * the caches. LOAD, of a scalar as well: nothing reads it again soon */
};
/* LOAD of a vector along an axis: the one with the next index along axis a follows soon, or with the n-th from here */
#define TIR_AHEAD(a) (((a) + 1) << 4)
#define TIR_AHEAD_AXIS(imm) ((int)((imm) >> 4 & 15) - 1) /* -1: not known to */
#define TIR_AHEAD_BY(n) ((n) << 12) /* 1 < n <= TIR_MAX_AHEAD */
#define TIR_AHEAD_COUNT(imm) ((imm) >> 12 ? (imm) >> 12 : 1)
enum { TIR_MAX_AHEAD = 65535 };
#define TIR_LOOKS_AHEAD (~(int64_t)0xf0f) /* the bits of these */
#define TIR_LANES_ALONG(a) (((a) + 1) << 8)
#define TIR_DOT(rows, columns, pairs) ((int64_t)(rows) | (int64_t)(columns) << 16 | (int64_t)(pairs) << 32)
#define TIR_DOT_CHAINED ((int64_t)1 << 48)
#define TIR_DOT_ANEW ((int64_t)1 << 49)
#define TIR_SLIDE(by, segment) ((int64_t)(by) | (int64_t)(segment) << 16)
#define TIR_SLIDE_BY(imm) ((unsigned)((imm) & 0xffff))
#define TIR_SLIDE_SEGMENT(imm) ((unsigned)((imm) >> 16)) /* 0: all lanes */
#define TIR_WARP_BARRIER (-2) /* BARRIER */
#define TIR_HANDED(buffer) (2 + (int64_t)(buffer))
#define TIR_HANDED_BUFFER(imm) ((imm) - 2) /* negative: none */
#define TIR_BEFORE(n) (TIR_WARP + (n))
#define TIR_AFTER(n) (2 * TIR_WARP + (n))
#define TIR_SAME (3 * TIR_WARP)
/* Of a SHUFFLE, the thread of a warp that this one asks. */
static inline unsigned
tir_shuffle_from(int64_t imm, unsigned thread)
{
	unsigned by = (unsigned)imm % TIR_WARP;
	if (imm == TIR_SAME)
		return thread;
	if (imm < TIR_WARP)
		return thread ^ by;
	if (imm < 2 * TIR_WARP)
		return thread < by ? thread : thread - by;
	return thread + by < TIR_WARP ? thread + by : thread;
}
enum { TIR_MAX_DOT = 64 }; /* rows, columns and pairs, each */
typedef struct {
	unsigned rows, columns, pairs;
	bool chained, anew;
} TirDot;
/* How a target multiplies pairs of bf16: not; by tiles, a group at a time; by vectors, pair after pair. */
typedef enum { TIR_NO_DOT, TIR_DOT_TILES, TIR_DOT_VECTORS } TirDotUnit;
static inline TirDot
tir_dot_shape(int64_t imm)
{
	return (TirDot){imm & 0xffff, imm >> 16 & 0xffff, imm >> 32 & 0xffff, (imm & TIR_DOT_CHAINED) != 0,
	                (imm & TIR_DOT_ANEW) != 0};
}
/* Of an operation that may be narrowed (F_NARROW): to what, DT_NONE if it is not; and that its operand is known to be no
 * more than 0, or NaN: what it gives of another is nobody's business */
#define TIR_NARROW(imm) ((DType)((imm) & 0xff))
enum { TIR_NO_MORE_THAN_0 = 256 };
/* Of an FDIV: both operands and the quotient are known to have magnitudes from 2^-100 to 2^100, or one is NaN; what it gives of
 * others is nobody's business */
enum { TIR_MIDDLE = 1 };
/* Or that the divisor has a magnitude from 2^-64 to 2^64, or is 0, infinite or NaN. */
enum { TIR_NEAR = 2 };
/* Or, of a NEAR_DIV as well, that the divisor is 1 or more, or NaN. */
enum { TIR_FROM_1 = 4 };
enum { TIR_ROLLED = 1 }; /* FOR */
#define TIR_LANE_AXIS(imm) ((int)((imm) >> 8 & 15) - 1) /* -1: none */

typedef struct {
	VEC(ValId) inst; /* in order; BLOCKARGs first, YIELD last (kernel bodies have neither) */
} TirRegion;

typedef struct {
	uint8_t op; /* Op */
	TirType type;
	uint16_t nregion;
	uint32_t narg, arg;  /* operands: TirKernel.arg[arg .. arg+narg) */
	uint32_t region;     /* first region: TirKernel.region[region] */
	union {
		int64_t i;
		double f;
	} imm;
} TirInst;

typedef struct {
	Name name;
	DType dtype;
	bool written;
	uint32_t same;   /* 1 + an earlier buffer in whose memory it may lie; 0: it has its own */
	uint32_t shared; /* elements, of a buffer that the block has for itself; else 0 */
	bool wide;       /* shared: the other blocks of the cluster reach it too */
	bool posted;     /* by tasks, to later ones */
} TirBuffer;

typedef struct {
	Name name;
	DType dtype; /* i64 or a scalar parameter's dtype */
	uint32_t multiple; /* of this number, a power of two, if it is not 0 */
	bool few;          /* while a task runs it is from 1 to 2^31 - 1, and so is the number of tasks */
} TirScalar;

typedef enum { TIR_TASKS, TIR_BLOCK, TIR_SPREAD } TirForm;

typedef struct TirKernel {
	Arena *arena;
	Names *names;
	Name name;
	TirForm form;
	uint16_t threads; /* BLOCK and SPREAD: of a block, a power of two, at least a warp; with channels groups of TIR_GROUP */
	uint16_t cluster; /* the blocks that take a task together, a power of two but with ROLES; 0: one */
	uint16_t resident; /* a thread may take registers until so many blocks fill a multiprocessor; 0: as many as it is
	                    * thought to need */
	uint16_t group;   /* lanes side by side that one thread has, a power of two: then every view's start and its
	                   * strides but the last are multiples of so many elements as have 16 bytes */
	uint16_t columns; /* BLOCK: of a row of lanes, a power of two, no fewer than a group and no more than a block's threads; 0: no rows */
	uint16_t sets;    /* BLOCK and SPREAD: of buffers and scalars, each with tasks of its own; 0: one */
	bool anywhere;    /* BLOCK, SPREAD: views lie anywhere, and masks part groups: warps access their lanes in turns */
	bool tight;       /* BLOCK: registers are short, so that a thread looks its number up anew behind each barrier */
	bool fp8;         /* SPREAD: threads convert between f32 and the 8-bit floats themselves */
	bool halves;      /* TASKS: the processor converts between f32 and f16 itself */
	VEC(TirBuffer) buffer;
	VEC(TirScalar) scalar;
	VEC(TirChannel) channel; /* SPREAD, with ROLES: ir/channel.h */
	VEC(TirInst) inst;   /* [0] unused */
	VEC(ValId) arg;
	VEC(TirRegion) region; /* [0] is the body */
	VEC(uint32_t) open;    /* while building: the stack of open regions, the body first */
} TirKernel;

/* --- building --- */
TirKernel *tir_new(Arena *a, Names *names, Name name);
static inline TirType
tir_scalar(DType t)
{
	return (TirType){(uint8_t)t, 0};
}
static inline TirType
tir_vector(DType t, unsigned lanes)
{
	return (TirType){t, lanes};
}
unsigned tir_add_buffer(TirKernel *k, Name name, DType t, bool written);
unsigned tir_add_scalar(TirKernel *k, Name name, DType t);
/* Appends to the open region. Scalar operands next to vector ones are splatted by these helpers. */
ValId tir_emit(TirKernel *k, Op op, TirType type, int64_t imm, const ValId *arg, unsigned narg);
ValId tir_int(TirKernel *k, DType t, int64_t v);
ValId tir_float(TirKernel *k, DType t, double v);
ValId tir_unary(TirKernel *k, Op op, ValId a);
ValId tir_binary(TirKernel *k, Op op, ValId a, ValId b);
ValId tir_select(TirKernel *k, ValId c, ValId a, ValId b);
ValId tir_cast(TirKernel *k, DType to, ValId a);
ValId tir_bitcast(TirKernel *k, DType to, ValId a);
ValId tir_fma(TirKernel *k, ValId a, ValId b, ValId c);
ValId tir_view(TirKernel *k, unsigned buffer, unsigned rank, const ValId *extent, const ValId *stride);
ValId tir_load(TirKernel *k, ValId view, const ValId *index, ValId mask, int64_t flags, unsigned lanes);
void tir_store(TirKernel *k, ValId view, ValId value, const ValId *index, ValId mask, int64_t flags);
void tir_fetch(TirKernel *k, ValId view, const ValId *index);
void tir_fault(TirKernel *k, ValId id);
ValId tir_load_matrix(TirKernel *k, DType t, ValId view, const ValId *index, bool turned);
void tir_store_matrix(TirKernel *k, ValId view, ValId value, const ValId *index, bool turned);
void tir_async_copy(TirKernel *k, ValId to, const ValId *at, ValId from, const ValId *index, ValId there);
void tir_async_wait(TirKernel *k, unsigned most);
/* index: the leading indices of c, then a's, then b's. */
void tir_dot(TirKernel *k, int64_t shape, ValId c, ValId a, ValId b, ValId n, const ValId *index);
/* a as vectors of another width: all its bits as lanes of `to`. */
ValId tir_recast(TirKernel *k, DType to, ValId a);
/* Lanes lo of all of v and the other half of them, by the bit of their numbers that is cheapest for the kernel:
 * folding them onto each other again and again leaves one lane, as scalars. */
void tir_halves(TirKernel *k, ValId v, ValId *lo, ValId *hi);
/* Opens a loop: returns the index; carried[0..n) are replaced by their values inside. */
ValId tir_for(TirKernel *k, ValId lo, ValId hi, ValId step, ValId *carried, unsigned n);
/* Closes it with the next values, which are replaced by the values after the loop. */
void tir_end_for(TirKernel *k, ValId *carried, unsigned n);
void tir_if(TirKernel *k, ValId cond);
void tir_else(TirKernel *k, const ValId *value, unsigned n); /* ends `then` with its values */
void tir_end_if(TirKernel *k, ValId *value, unsigned n);     /* ends `else`; replaced by the results */
unsigned tir_add_channel(TirKernel *k, const TirChannel *c);
void tir_open_roles(TirKernel *k, int64_t roles); /* opens the multiplying one; ROLES ends the body */
void tir_other_role(TirKernel *k);                /* opens the loading one */
void tir_end_roles(TirKernel *k);
/* Whether blocks of a cluster have parts of channels in common. */
bool tir_has_joint(const TirKernel *k);
/* How many tensor maps COPYs take; bytes of all slots and of what says who has them; where shared buffer b lies behind
 * these, or for the number of buffers where the last one ends. */
unsigned tir_maps(const TirKernel *k);
/* Whether COPY v is the first by its map, which all that copy boxes of one shape of its view have; the number of a copy's. */
bool tir_makes_map(const TirKernel *k, ValId v);
unsigned tir_map_of(const TirKernel *k, ValId copy);
uint32_t tir_ring_bytes(const TirKernel *k);
uint32_t tir_shared_at(const TirKernel *k, uint32_t b);
/* Where behind its elements, words of 32 bits, the word lies that counts those that come to a wide buffer. */
static inline uint32_t
tir_handed_word(const TirBuffer *b)
{
	return (b->shared * 4 + 7) / 8 * 8;
}
/* By buffer: whether a BARRIER waits for elements that blocks hand to each other there. */
bool *tir_waited_for(const TirKernel *k, Arena *a);
bool tir_hands(const TirKernel *k); /* whether one does anywhere */
/* Whether a launch gives the block its shared memory: there are channels, or more of it than the code of a kernel may say. */
enum { TIR_OWN_SHARED = 48 << 10 };
static inline bool
tir_shared_at_launch(const TirKernel *k)
{
	return k->channel.n || tir_shared_at(k, k->buffer.n) > (uint32_t)TIR_OWN_SHARED;
}
void tir_copy(TirKernel *k, int64_t part, ValId view, ValId n, const ValId *index);
/* third: 0, or of a view of f32 the index of what is copied of each element. */
void tir_copy_third(TirKernel *k, int64_t part, ValId view, ValId n, const ValId *index, ValId third);
/* Whether COPY v brings thirds: its last operand says which. */
bool tir_copies_thirds(const TirKernel *k, ValId v);
/* With a count and a step for each axis. */
void tir_copy_box(TirKernel *k, int64_t part, ValId view, ValId n, const ValId *index, const ValId *count, const ValId *step);
/* Those of axis a of a COPY; 0: it has none. */
ValId tir_box_count(const TirKernel *k, ValId copy, unsigned a);
ValId tir_box_step(const TirKernel *k, ValId copy, unsigned a);

/* Whether tasks wait for those before them. */
static inline bool
tir_posts(const TirKernel *k)
{
	for (uint32_t b = 0; b < k->buffer.n; b++)
		if (k->buffer.at[b].posted)
			return true;
	return false;
}

static inline unsigned
tir_sets(const TirKernel *k)
{
	return k->sets ? k->sets : 1;
}

/* The buffers of a set that a launch hands over; shared ones come last. */
static inline uint32_t
tir_handed_buffers(const TirKernel *k)
{
	uint32_t n = k->buffer.n;
	while (n > 0 && k->buffer.at[n - 1].shared)
		n--;
	return n;
}

/* The scalars of a launch: those of all sets, and where the tasks of each but the first begin. */
static inline uint32_t
tir_launch_scalars(const TirKernel *k)
{
	return (k->scalar.n + 1) * tir_sets(k) - 1;
}

/* The blocks, and the threads, that take a task together. */
static inline unsigned
tir_blocks(const TirKernel *k)
{
	return k->cluster ? k->cluster : 1;
}
static inline unsigned
tir_all_threads(const TirKernel *k)
{
	return k->threads * tir_blocks(k);
}

static inline const TirInst *
tir_inst(const TirKernel *k, ValId v)
{
	return &k->inst.at[v];
}
static inline ValId
tir_arg(const TirKernel *k, ValId v, unsigned n)
{
	return k->arg.at[k->inst.at[v].arg + n];
}

/* --- rewriting: copies a kernel, each instruction through emit(), which appends what replaces it to
 * `to` and returns the value, given its operands already mapped; tir_copy_inst is the identity.
 * Structure (FOR, IF, YIELD, BLOCKARG, RESULT) is copied by tir_rewrite itself. --- */
typedef ValId TirEmitFn(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg);
ValId tir_copy_inst(TirKernel *to, const TirKernel *from, ValId v, const ValId *arg);
TirKernel *tir_rewrite(const TirKernel *from, Arena *a, TirEmitFn *emit, void *user);

/* --- text, rules, meaning --- */
void tir_print(const TirKernel *k, Text *out);
/* Checks the syntax only, for any text; NULL with a message that names the line. */
TirKernel *tir_read(Arena *a, Names *names, const char *text, size_t n, const char **error);
bool tir_verify(const TirKernel *k, Arena *scratch, const char **error);

typedef struct {
	void *data;      /* packed storage of the buffer's dtype */
	int64_t bytes;   /* an access outside is reported */
} TirMemory;

typedef struct {
	const TirMemory *buffer;
	const void *const *scalar; /* each points to one value of the scalar's dtype */
	int64_t task_lo, task_hi, task_step; /* task_step 0: 1 */
	uint32_t fault, cut;       /* out: the accesses recorded first, or 0 */
	int64_t max_steps;         /* 0: 2^40 */
	bool verified;             /* that the kernel is correct is known */
} TirRun;

/* Verifies and runs. False with a message when the kernel does what it must not: reads or writes
 * outside a buffer or a view, or runs too long. */
bool tir_interpret(const TirKernel *k, Arena *scratch, TirRun *run, const char **error);

/* --- registers of roles (tir_banks.c) --- */
/* Accumulator `bank` of a kernel of roles: its columns, and registers of a thread; 0 where there is none. How many terms of
 * a factor are kept. Whether threads read fills of the channel. */
unsigned tir_bank_columns(const TirKernel *k, unsigned bank, unsigned *registers);
unsigned tir_kept_terms(const TirKernel *k);
bool tir_is_held(const TirKernel *k, unsigned channel);

#endif
