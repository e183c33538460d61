/* warps.h: the STREAM template for a GPU, by the matrix instructions that all warps have from sm_80 on: warps.c says how it works. */
#ifndef TEXO_PASSES_SCHEDULE_STREAM_WARPS_H
#define TEXO_PASSES_SCHEDULE_STREAM_WARPS_H

#include "ir/warp_mma.h"
#include "passes/schedule/stream/factors.h"
#include "passes/schedule/stream/quads.h"

enum { STREAM_WARPS_PLANS = 5 };

/* The plans of its kernels and how many there are, in the order in which a launch asks for one that suits its sizes and memory;
 * another kernel has to take all others. plan->node says which nodes. stored: by TensorId; NULL: not known yet, which changes
 * the plans and not how many. */
unsigned stream_warps_take(const Graph *g, Arena *scratch, const Stream *s, const bool *stored, const PassOptions *o, KernelPlan *plan);
void stream_warps_build(Graph *g, Arena *scratch, const Places *places, const PassOptions *o, Kernel *kernel);
static inline bool
stream_is_warps(const KernelPlan *p)
{
	return p->threads && p->pairs;
}

/* --- for the files of this template --- */

enum {
	SW_WARPS = 4,
	SW_BLOCK = 16,     /* rows, elements, columns or terms of what a warp loads at once, */
	SW_LANE = WARP_MMA_A, /* of which a lane has so many elements */
	SW_CHUNK = 8,      /* elements that are copied at once */
	SW_CHUNK_WORDS = SW_CHUNK / 2, /* words of shared memory */
	SW_DOWN = 2,       /* blocks of rows of a warp, at most */
	SW_FROM = 4,       /* places of a lane in a panel */
	SW_TILES = SLOTS_MAX / WARP_MMA_C, /* of scores of a warp, at most */
	SW_WIDE = 128      /* columns of a thread's rows, all together */
};

/* A panel of a factor in shared memory. */
typedef struct {
	const StreamElement *of;
	unsigned own, terms;    /* indices of its own axis, and terms, that it has */
	unsigned first;         /* where it begins, in words */
	unsigned line, unit;    /* chunks of a line; chunks that change places among one another */
	ValId down, right, to;  /* the thread's first chunk: its line, its place there; where it goes, in words */
	ValId from[SW_FROM];    /* where what the lane loads is: warps_panel.c says of what */
} SwPanel;

typedef struct {
	StreamSlots s;
	StreamElement of[NOF];
	SwPanel panel[NOF];
	unsigned rows, terms, columns, elements; /* of a tile; columns 0: none */
	unsigned down;          /* blocks of rows of a warp */
	unsigned acc;           /* the wide accumulator, if there is one */
	ValId lane, right;      /* right: the lane's first element, or column, of a tile of 8 */
	ValId row_last;
	ValId memory;           /* view of shared memory, by word */
	ValId noted;            /* (what, thread): what a thread has of its task, and no register for while tiles are at work */
	StreamQuads quads;
	ValId sum[SLOTS_MAX];   /* scores: by row of the lane's and element */
	ValId wide[SW_WIDE];    /* by row of the lane's and column, of a quarter of all */
} StreamWarps;

static inline ValId
sw_int(const StreamWarps *x, int64_t v)
{
	return tir_int(x->s.b.l.tir, DT_I64, v);
}
static inline ValId
sw_op(const StreamWarps *x, Op o, ValId a, ValId b)
{
	return tir_binary(x->s.b.l.tir, o, a, b);
}

/* --- panels (warps_panel.c) --- */
/* Of one that has its factor and sizes. */
void sw_shape_panel(SwPanel *p);
/* Places the threads for copies, or for loads, where a warp has so many blocks of the own axis, or 0: all of them. time: as THREAD's. */
void sw_place_copies(StreamWarps *x, SwPanel *p, int64_t time);
void sw_place_loads(StreamWarps *x, SwPanel *p, unsigned blocks, int64_t time);
typedef struct {
	ValId first, end; /* 0: no end but the panel's */
} SwRange;
/* Begins to copy the thread's chunks: those of these ranges; zeros for others. */
void sw_copy_panel(StreamWarps *x, const SwPanel *p, SwRange own, SwRange terms);
/* Block n along the own axis, from the warp's on, and block `part` of the terms, as LOAD_MATRIX has them. */
void sw_load_block(StreamWarps *x, const SwPanel *p, unsigned n, unsigned part, ValId *out);

/* --- products (warps_tile.c) --- */
/* The tile's scores, of keys that have come; its columns, of weights and values. */
void sw_scores(StreamWarps *x);
void sw_columns(StreamWarps *x);

#endif
