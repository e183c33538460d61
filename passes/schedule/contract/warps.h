/* warps.h: a contraction of factors of 16 bits, in fast mode also of f32, by tiles of a block's warps, with their matrix
 * instructions: warps.c says how it works. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_WARPS_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_WARPS_H

#include "passes/schedule/contract/absent.h"
#include "passes/schedule/contract/contract.h"
#include "passes/schedule/contract/indices.h"
#include "passes/schedule/contract/window_rows.h"
#include "ir/warp_mma.h"

/* Whether node t is of that kind, wherever its tensors will live, and its sizes may be worth a tile. */
bool contract_warps_could(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o);
/* Whether it would be if some factors were elements of tensors, by all of their axes' indices from 0 on; factor[k] is such a
 * one, f32(x) with x of 16 bits or, in fast mode, any of f32, or 0. */
bool contract_warps_would(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o, ExprId *factor);
enum { WARPS_MOST_PLANS = 5 };
/* The plans of its kernels, and how many there are, in the order in which a launch asks for one that suits its sizes and
 * memory; another kernel has to take all others. windows: kernels of windows are asked before, and leave small sizes. */
unsigned contract_warps_take(const Graph *g, Arena *scratch, const Places *places, TensorId t, const PassOptions *o, bool windows,
                             KernelPlan *plan);
void contract_warps_build(Graph *g, Arena *scratch, const Places *places, const PassOptions *o, Kernel *kernel);
static inline bool
contract_is_warps(const KernelPlan *p)
{
	return p->threads && p->pairs && !p->lanes && !p->halo;
}
unsigned contract_warps_tiles(void);

/* --- for the files of this template --- */

enum {
	WARPS_ACROSS = 2, /* warps of a tile along either side */
	WARPS_SLICES = 2, /* of the terms, each of which has such warps */
	WARPS_THREADS = WARPS_SLICES * WARPS_ACROSS * WARPS_ACROSS * TIR_WARP,
	/* in words of shared memory, of two elements of 16 bits or one of f32: */
	WARPS_SHARE = 16, /* of a panel's terms, of a slice */
	WARPS_TERMS = WARPS_SLICES * WARPS_SHARE,
	WARPS_CHUNK = 4,  /* what is copied at once */
	WARPS_DEPTH = 8,  /* terms of what a warp loads at once, */
	WARPS_BLOCK = 16, /* and rows or columns */
	WARPS_SLOTS = 3,
	WARPS_CHUNKS = 4, /* of a panel, of a thread, at most */
	WARPS_BLOCKS = 4, /* of a warp along a side, at most */
	WARPS_FROM = 4,   /* places of a lane in a slot, of a side */
	WARPS_PARTS = WARPS_SHARE / WARPS_DEPTH,
	WARPS_SUMS = WARPS_BLOCKS * WARPS_BLOCKS * 2 * WARP_MMA_C
};

/* A factor, an element of a tensor, and its panels in shared memory. */
typedef struct {
	ExprId read;
	ExprId there;             /* where it is to be asked for; 0: everywhere */
	DType dtype;
	unsigned word;            /* elements of one */
	bool turned;              /* memory runs along its own axes, not along the terms */
	unsigned own, first;      /* the tile's rows or columns; where a slot has the panel, in words */
	const Indices *indices;   /* of its own axes */
	unsigned chunks, step;    /* of a thread, so many rows, columns or terms apart */
	ValId own_at, term_at;    /* where the first of them begins in the panel, */
	ValId to;                 /* and in the slot, in words, and how many of these they are apart there */
	unsigned to_step;
	ValId at[WARPS_CHUNKS][TG_MAX_AXES]; /* of the tile, by chunk: its own axes */
	ValId from[WARPS_FROM];   /* where what the lane loads is in a slot: warps_panel.c says of what */
} WarpsSide;

typedef struct {
	Point l;
	const KernelPlan *plan;
	Indices batch, rows, columns, terms;
	Absent absent;
	const Window *window;     /* NULL: rows are counted through; else a tile has a box of them (halo.c) */
	WarpsSide side[2];        /* of the rows, of the columns */
	ValId row_tiles, column_tiles, panels;
	ValId thread, lane, warp, slice, down, across;
	ValId ring, staged;       /* views of shared memory: (slot, word), (row, column) */
	ValId row_steps;          /* with a window, there too: where a lane's rows are in the output, from its first one on */
	unsigned words;           /* of a slot */
	ValId row0, column0;      /* of the task's tile */
} Warps;

static inline ValId
warps_int(Warps *x, int64_t v)
{
	return tir_int(x->l.tir, DT_I64, v);
}
static inline ValId
warps_op(Warps *x, Op o, ValId a, ValId b)
{
	return tir_binary(x->l.tir, o, a, b);
}
/* Terms of a panel. */
static inline unsigned
warps_terms(const Warps *x)
{
	return WARPS_TERMS * x->side[0].word;
}
/* Blocks of a warp along a side. */
static inline unsigned
warps_blocks(const WarpsSide *s)
{
	return s->own / WARPS_ACROSS / WARPS_BLOCK;
}
void warps_barrier(Warps *x);
/* Where the thread is; time: what is made of it is not kept for another time, nor for another turn of a loop (tir.h); 0: it is. */
void warps_place_threads(Warps *x, int64_t time);
/* A block of rows by half of one of columns, added to sums: words 2 h + half of the latter are of its terms 4 h on. */
void warps_multiply(TirKernel *k, const ValId *rows, const ValId *columns, unsigned half, ValId *sum);

/* --- panels (warps_panel.c) --- */
/* The factor of node n, of its columns or rows, as an element that is copied in chunks, whose elements are absent together;
 * false: it is none. */
bool warps_side_find(const Graph *g, Arena *scratch, const Node *n, const Factors *f, const Absent *a, bool column, WarpsSide *s);
/* Places the threads, whose warp has this part of the side, and its slice of the terms. */
void warps_side_place(Warps *x, WarpsSide *s, ValId part);
/* The thread's chunks in a tile that begins at this row or column. */
void warps_side_enter(Warps *x, WarpsSide *s, ValId first);
/* Begins to copy the thread's chunks of the panel that begins with this term; terms that there are not are 0. */
void warps_side_copy(Warps *x, const WarpsSide *s, ValId slot, ValId term);
/* Block n of the warp's, for part `part` of its slice of the panel's terms: WARPS_ELEMENTS words' elements, as LOAD_MATRIX has
 * them. */
enum { WARPS_ELEMENTS = 4 };
void warps_side_load(Warps *x, const WarpsSide *s, ValId slot, unsigned n, unsigned part, ValId *out);

/* What is made of the warps' sums (warps_finish.c): by block of rows, tile of 8 columns, element of a lane. */
unsigned warps_staged_elements(const Warps *x);
void warps_bind_staged(Warps *x, unsigned buffer);
void warps_place_rows(Warps *x); /* with a window, before */
void warps_finish(Warps *x, const ValId *acc);
/* Of sums that are staged, where the output's memory goes along the rows (warps_finish_rows.c); whether it does. */
bool warps_go_along_rows(const Warps *x);
void warps_finish_rows(Warps *x);

#endif
