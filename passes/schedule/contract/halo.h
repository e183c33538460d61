/* halo.h: a contraction of 16-bit factors, one of which is read by windows whose elements lie in no chunks, by a block's warps:
 * halo.c says how it works. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_HALO_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_HALO_H

#include "passes/schedule/contract/warps.h"
#include "passes/schedule/point/affine.h"

enum { HALO_MOST_PLANS = 2 };
/* The plans of the kernels of node t, if it is of that kind, and how many there are, in the order in which a launch asks for one that
 * suits its sizes and memory; another kernel has to take all others. */
unsigned contract_halo_take(const Graph *g, Arena *scratch, const Places *places, TensorId t, const PassOptions *o, KernelPlan *plan);
void contract_halo_build(Graph *g, Arena *scratch, const Places *places, const PassOptions *o, Kernel *kernel);

/* --- for the files of this template --- */

enum {
	HALO_ROWS = 128, HALO_COLUMNS = 64,
	HALO_ELEMENTS = 12288, /* of the box, at most, with what fills its lines up, */
	HALO_LINES = 384,      /* its lines, */
	HALO_LINES_MORE = 24,  /* and as many beyond the last one as are read at once, */
	HALO_PAIRS = 512,      /* and pairs of terms of a sum */
	HALO_STEP = 8,         /* pairs of an instruction, */
	HALO_SHARE = 128,      /* and of the columns' panel */
	HALO_GAP = 8           /* elements between its columns: 8 of them meet all banks */
};

/* The factor that is read by windows. A run of its terms lies side by side in memory: those of the innermost axis and, where
 * images have their channels last, of the axis of the pixels. */
typedef struct {
	Factors f;         /* its axes are the rows' */
	Absent absent;
	Window window;
	Affine sub[TG_MAX_RANK];
	unsigned whole;    /* so many subscripts, the last ones, go along a line of the box */
	unsigned inner;    /* the axis of the last one's terms; */
	int pixels;        /* the one before's that a run has too; -1: none */
	bool padded;       /* an odd number of elements of the last axis is made even, */
	bool twice;        /* or the box is there again, an element further on */
} HaloFactor;

typedef struct {
	Warps w;
	HaloFactor of;
	/* over dims: */
	ExprId pixel, run, line, lines, pairs; /* elements of a pixel, terms of a run, elements of a line; lines; pairs of terms of all runs */
	ExprId nstep;                          /* and instructions, as many for each slice */
	ValId npixel, nrun, nline, nlines, npairs, run_pairs;
	ValId steps, rounds;                   /* of all terms */
	ValId boxes, box_run;                  /* how many there are; of a task, at most */
	ValId extent[TG_MAX_RANK], pitch[TG_MAX_RANK]; /* of the box, by subscript: indices, and elements from one to the next */
	ValId from[TG_MAX_RANK];               /* of the tile: the first index */
	ValId halo, columns, table, where;     /* views of shared memory: elements; (column, term); pairs; lines */
	ValId row_at[WARPS_BLOCKS][2];         /* u32: where the lane's rows begin in the box */
} Halo;

/* --- the box and the panel (halo_panel.c) --- */
/* Fills the table of where pairs of terms are from where a row begins. */
void halo_place_pairs(Halo *h);
/* The lane's rows. */
void halo_place_rows(Halo *h);
/* Brings the box of the tile that is entered to shared memory; there is a barrier between. */
void halo_stage_box(Halo *h);
/* And the columns' factor of one round of the terms. */
void halo_stage_columns(Halo *h, ValId round);

#endif
