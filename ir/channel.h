/* channel.h: how groups of a block's threads work on different things at the same time, and hand each other pieces of
 * tensors: roles, channels and products of matrices that go on meanwhile.
 *
 * A kernel of threads (tir.h) may end in ROLES, before which it reaches no memory. Its threads are then groups of TIR_GROUP; all but the last run the first
 * region, the multiplying role, with `registers` each, and the first thread of the last group runs the second one, the
 * loading role, whose threads have `rest`; or its first warp does (TIR_ROLES_WARP): its threads find out together what is to be
 * loaded, and take the same way wherever one of the operations below stands, which they do once. Inside of a role the groups meet none of the others but by a channel, and the
 * threads of a group take the same way wherever one of the operations below stands, but for PIECE and PUT. Tasks may post words to
 * later ones, and with them what groups have stored (tir.h): multiplying groups post, and wait.
 *
 * A channel is a ring of slots in the block's shared memory, which the loading role fills and each multiplying group
 * reads, one slot after the other: fill n, n = 0, 1, …, lies in slot n mod slots. A slot has parts, each the piece of a
 * factor: `rows` x `terms` elements, which in memory run along the terms or, where it is turned, along the rows. What products
 * multiply has 16 bits; what threads TAKE may have 8 or 4, and then as many more terms: a row has 128 bytes.
 *
 * Groups share every fill: each has its part of the first factor's rows, and releases what all read. Or they take turns
 * (TIR_ROLES_TURNS, two groups): a fill is one group's, which has all its rows and alone releases it; while one multiplies,
 * the other finishes its sums. Groups that share fills may take turns too (TIR_ROLES_ORDER), which then are an order alone.
 *
 * Roles count their tasks from one number on, which a GPU's thread has in one register before it knows its role. Where any of
 * them has none to spare, the loading one looks it up anew (TIR_ROLES_ANEW).
 *
 * Blocks of a cluster (tir.h) have channels and accumulators of their own, and take no turns. They meet where their
 * multiplying groups do; their loading roles have then ended, so that a call of such a kernel has one task.
 *
 * Or they have parts in common, which are `joint`: what a COPY brings to such a part is the block's share of it, by its rank,
 * for all blocks, of its rows or, where it is turned, of its terms; the indices are those of the whole. A fill is there when all have brought their
 * shares, and a slot is released when the groups of all have. So each block goes through as many fills as the others; they take
 * turns if they like, meet nowhere else, and a call has any number of tasks, the same of all blocks.
 *
 *   ROLES    imm = TIR_ROLES(groups, registers, rest), with turns | TIR_ROLES_TURNS, with numbers looked up anew
 *            | TIR_ROLES_ANEW, with a warp that loads | TIR_ROLES_WARP; two regions, which yield nothing; ends the kernel's body
 *   TASK_STEP  i64: the tasks of a call are TASK_LO, TASK_LO + TASK_STEP, … below TASK_HI; without roles 1
 *   ACQUIRE  n; imm = channel. Waits until all groups have released what slot n mod slots had. In turn: n = 0, 1, …
 *   COPY     view, n, index[0..rank) (i64 scalars); imm = TIR_COPY(channel, part). Begins to copy a box of the view, from
 *            these indices on, to the part: its last two axes are the part's rows and terms or, turned, its terms and
 *            rows, and run through; elements outside of the view are 0. Where they have fewer
 *            than 16 bits, the last index is a multiple of as many as fill 16. Each part of a fill once, after its ACQUIRE.
 *            The view's extents and strides are constants or scalars, the last stride is 1, and nobody writes to it.
 *            COPY view, n, index[0..rank), count[0..rank), step[0..rank): a box of count[a] indices of axis a, each step[a] from
 *            the one before, to a part that is not turned: its terms are those of the last axis, count as many and step 1, its
 *            rows those of the others, counted through the first ones last. Counts and steps are constants or scalars from 1
 *            on, steps at most TIR_MAX_BOX_STEP, and count * step at most TIR_MAX_PART_ROWS; the rows are the part's.
 *            COPY view, n, index[0..rank), third: of a view of f32, to a part of bf16: of each element that one of its thirds
 *            (tir_third); third is 0 .. TIR_THIRDS - 1
 *   TURN     with turns or order; imm = 0: waits until it is the group's turn, the first one's at first; 1: gives it to the next
 *            one. With turns, the group waits in its turn for as many fills as are its own, from the first that nobody has waited for
 *   WAIT     n; imm = channel. Waits until fill n is there. In turn
 *   RELEASE  n, cond (bool); imm = channel. Where cond holds, the group is done with fill n. In turn
 *   MMA      n, more (bool); imm = TIR_MMA(channel, a, b). Begins to add the product of two parts of fill n to the group's
 *            accumulator, or to 0 unless `more`: row i, column j takes the sum over the terms of a's row i by b's row j. Of
 *            a's rows a group has its share, as many as the others, in their order; with turns it has them all. Who has them
 *            all may have fewer than TIR_MMA_ROWS: what the accumulator has beyond may be anything, and other parts of the slot, of
 *            that many rows at least, lie behind. Factors are bf16 or f16, and their
 *            products exact; the sums are of f32, in an order and with a rounding that are the target's (the
 *            interpreter: TIR_MMA_TERMS terms and the sum at once, aligned to the largest and cut off below as wgmma does),
 *            subnormals kept.
 *   PRODUCT  n, m, more; imm = TIR_PRODUCT(channel, a, other, b, bank): the same of part a of fill n and part b of fill m
 *            of another channel, or of the same one, to one of TIR_MAX_BANKS accumulators, each of one shape (MMA's is the
 *            first). With TIR_PRODUCT_KEPT(piece, other, b, bank) the first factor is what threads keep: its rows are the
 *            group's own 64, its terms those from TIR_PART_TERMS * piece on; n means nothing. With | TIR_PRODUCT_ROWS(k) the
 *            first factor is the k parts from a on, of one shape: of each the group has its share, and the accumulator has
 *            these rows one after another. With | TIR_PRODUCT_COLUMNS(k) the second one is the k parts from b on, of one
 *            shape, and the accumulator has their columns side by side. With | TIR_PRODUCT_TERMS(k) either factor is k parts, or
 *            what is kept of k pieces, one's terms behind the other's: one product all the same
 *   KEEP     two f32; imm = TIR_KEEP(k, dtype): rounded to bf16 or f16, elements 2 k and 2 k + 1 of those that the thread has
 *            of a kept factor, as if it were an accumulator's, while no product reads it
 *   SETTLE   imm = k: waits until at most k of the group's products go on
 *   PIECE    f32; imm = TIR_PIECE(k, bank): element k of those that the thread has of the accumulator, while no product
 *            adds to it: tir_piece_row and tir_piece_column say which
 *   PUT      f32; imm = TIR_PIECE(k, bank): what that element becomes
 *   HELD     n; imm = TIR_HELD(channel, k) -> a vector of 8 of the channel's type: elements 8 k to 8 k + 7 of those that the
 *            thread would have of an accumulator with what fill n has, whose parts, of one shape and not turned, are its
 *            columns side by side. Of the rows a group has its share, as of a first factor's. Who releases the fill has
 *            what it has read
 *   TAKE     n, row, term (i64 scalars, of each thread its own); imm = TIR_COPY(channel, part) -> a vector of 4, 8 or 16 bytes of
 *            the part's type: elements of this row of fill n that lie side by side from this term on, a multiple of as many, whose terms
 *            go on with those of parts of the same shape behind it. The part is not turned. Who releases the fill has what it has read
 *   BARRIER  in the first role, with imm = TIR_GROUP_BARRIER: the threads of the group; with TIR_WARP_BARRIER: those of each of
 *            its warps alone; with imm = 1: those of all
 *            multiplying groups of the cluster, when all loading roles have ended. A role ends with one if it has
 *            reached memory of other blocks since the last */
#ifndef TEXO_IR_CHANNEL_H
#define TEXO_IR_CHANNEL_H

#include "ir/dtype.h"

enum {
	TIR_GROUP = 128,        /* threads, four warps */
	TIR_MAX_PARTS = 5,
	TIR_MAX_SLOTS = 8,
	TIR_PART_TERMS = 64,    /* 128 bytes: as far as a swizzle reaches */
	TIR_MMA_ROWS = 64,      /* of one instruction */
	TIR_MMA_TERMS = 16,
	TIR_MAX_PART_ROWS = 256,
	TIR_MAX_BOX_STEP = 8,
	TIR_MAX_BANKS = 2,      /* accumulators of a group */
	TIR_MAX_KEPT = 256,     /* terms of a kept factor */
	TIR_HELD_LANES = 8,
	TIR_THIRDS = 3,         /* bf16 that an f32 is cut into */
	TIR_THIRD_BITS = 8,     /* of a significand, that each has */
	TIR_MAX_ORDER = 4,      /* groups, each of which has a barrier of its own for its turn */
	TIR_GROUP_BARRIER = -1,
	TIR_BLOCK_REGISTERS = 65536
};

typedef struct {
	DType dtype;
	uint16_t rows, terms;
	bool turned, joint; /* joint: to the blocks of the cluster */
} TirPart;

typedef struct {
	uint16_t slots, nparts;
	TirPart part[TIR_MAX_PARTS];
} TirChannel;

#define TIR_ROLES(groups, registers, rest) ((int64_t)(groups) | (int64_t)(registers) << 16 | (int64_t)(rest) << 32)
#define TIR_ROLES_TURNS (INT64_C(1) << 48)
#define TIR_ROLES_ORDER (INT64_C(1) << 49) /* 2 .. TIR_MAX_ORDER groups, without turns */
#define TIR_ROLES_ANEW (INT64_C(1) << 50)
#define TIR_ROLES_WARP (INT64_C(1) << 51)
typedef struct {
	unsigned groups, registers, rest;
	bool turns, order, anew, warp;
	unsigned shares; /* in how many parts the first factor's rows are */
} TirRoles;
static inline TirRoles
tir_roles(int64_t imm)
{
	bool turns = (imm & TIR_ROLES_TURNS) != 0;
	return (TirRoles){.groups = imm & 0xffff, .registers = imm >> 16 & 0xffff, .rest = imm >> 32 & 0xffff, .turns = turns,
	                  .order = (imm & TIR_ROLES_ORDER) != 0, .anew = (imm & TIR_ROLES_ANEW) != 0, .warp = (imm & TIR_ROLES_WARP) != 0,
	                  .shares = turns ? 1 : imm & 0xffff};
}

/* An f32 number is the sum of its thirds t = 0, 1, 2, each a bf16 times 2^(-TIR_THIRD_BITS t), exactly, and all of its sign: the bits of the
 * significand are cut, not rounded. What is no number, or infinite, has a third that is no number. */
float tir_third(float x, unsigned third);

#define TIR_COPY(channel, part) ((int64_t)(channel) | (int64_t)(part) << 8)
#define TIR_MMA(channel, a, b) ((int64_t)(channel) | (int64_t)(a) << 8 | (int64_t)(b) << 16)
#define TIR_PRODUCT(channel, a, other, b, bank) (TIR_MMA(channel, a, b) | (int64_t)(other) << 24 | (int64_t)(bank) << 32)
#define TIR_PRODUCT_KEPT(piece, other, b, bank) (TIR_PRODUCT(other, piece, other, b, bank) | INT64_C(1) << 40)
#define TIR_PRODUCT_ROWS(k) ((int64_t)((k) - 1) << 41)
#define TIR_PRODUCT_COLUMNS(k) ((int64_t)((k) - 1) << 43)
#define TIR_PRODUCT_TERMS(k) ((int64_t)((k) - 1) << 45)
#define TIR_KEEP(k, dtype) ((int64_t)(k) | (int64_t)(dtype) << 16)
#define TIR_PIECE(k, bank) ((int64_t)(k) | (int64_t)(bank) << 16)
#define TIR_HELD(channel, k) ((int64_t)(channel) | (int64_t)(k) << 8)
#define TIR_HELD_OF(imm) ((unsigned)((imm) >> 8 & 0xffff))
typedef struct {
	unsigned channel, a, other, b, bank; /* a: of what is kept, the piece */
	bool kept;
	unsigned na, nb; /* parts of either factor */
	unsigned nterms; /* parts of both, along the terms */
} TirProduct;
static inline TirProduct
tir_product(int64_t imm)
{
	return (TirProduct){imm & 0xff, imm >> 8 & 0xff, imm >> 24 & 0xff, imm >> 16 & 0xff, imm >> 32 & 0xff, (imm >> 40 & 1) != 0,
	                    1 + (imm >> 41 & 3), 1 + (imm >> 43 & 3), 1 + (imm >> 45 & 3)};
}
/* The same of an MMA. */
static inline TirProduct
tir_mma(int64_t imm)
{
	return tir_product(TIR_PRODUCT(imm & 0xff, imm >> 8 & 0xff, imm & 0xff, imm >> 16 & 0xff, 0));
}
#define TIR_CHANNEL_OF(imm) ((unsigned)((imm) & 0xff))
#define TIR_PART_OF(imm) ((unsigned)((imm) >> 8 & 0xff))
#define TIR_SECOND_PART_OF(imm) ((unsigned)((imm) >> 16 & 0xff))

/* Element k of a thread's, in an accumulator of so many columns: its row among those of its warp's group that are no
 * multiple of TIR_MMA_ROWS away, and its column. thread: its number in the group. */
static inline unsigned
tir_piece_row(unsigned k, unsigned thread, unsigned columns)
{
	return k / (columns / 2) * TIR_MMA_ROWS + thread / 32 * 16 + thread % 32 / 4 + 8 * (k / 2 % 2);
}
static inline unsigned
tir_piece_column(unsigned k, unsigned thread, unsigned columns)
{
	return k % (columns / 2) / 4 * 8 + 2 * (thread % 4) + k % 2;
}

/* Rows of the accumulator of products with a part as first factor. */
static inline unsigned
tir_accumulator_rows(const TirPart *p, unsigned shares)
{
	return p->rows < TIR_MMA_ROWS ? TIR_MMA_ROWS : p->rows / shares;
}

/* What one of so many blocks brings of a part: rows and terms. */
static inline unsigned
tir_brought_rows(const TirPart *p, unsigned blocks)
{
	return p->joint && !p->turned ? p->rows / blocks : p->rows;
}
static inline unsigned
tir_brought_terms(const TirPart *p, unsigned blocks)
{
	return p->joint && p->turned ? p->terms / blocks : p->terms;
}
static inline bool
tir_is_joint(const TirChannel *c)
{
	for (unsigned n = 0; n < c->nparts; n++)
		if (c->part[n].joint)
			return true;
	return false;
}

/* How often a slot is released before it may be filled again: by each of `shares` groups, or by each of their warps, of each block
 * that has a part of it in common. */
static inline unsigned
tir_releases(const TirChannel *c, unsigned shares, unsigned blocks, bool by_warps)
{
	return (tir_is_joint(c) ? blocks : 1) * shares * (by_warps ? TIR_GROUP / 32u : 1u);
}

/* Elements that a copy brings side by side, which are a row of 128 bytes or of 64, and swizzled by as many: the terms or,
 * turned, rows, where 64 at a time do not divide them 32. */
static inline unsigned
tir_part_along(const TirPart *p)
{
	return (p->turned && p->rows % TIR_PART_TERMS ? TIR_PART_TERMS / 2u : TIR_PART_TERMS) * 16u / dtype_info[p->dtype].bits;
}

/* How many parts there are from this one on, of one shape. */
static inline unsigned
tir_parts_alike(const TirChannel *c, unsigned from)
{
	unsigned n = 1;
	for (const TirPart *p = &c->part[from]; from + n < c->nparts && c->part[from + n].dtype == p->dtype && c->part[from + n].rows == p->rows &&
	                                        c->part[from + n].turned == p->turned;)
		n++;
	return n;
}

/* Bytes of a part, and of a slot. */
static inline unsigned
tir_part_bytes(const TirPart *p)
{
	return (unsigned)p->rows * p->terms * dtype_info[p->dtype].bits / 8u;
}
static inline unsigned
tir_slot_bytes(const TirChannel *c)
{
	unsigned bytes = 0;
	for (unsigned n = 0; n < c->nparts; n++)
		bytes += tir_part_bytes(&c->part[n]);
	return bytes;
}

#endif
