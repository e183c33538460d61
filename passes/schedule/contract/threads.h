/* threads.h: a contraction by tiles of a GPU's threads, with multiply-adds: threads.c says how it works. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_THREADS_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_THREADS_H

#include "passes/schedule/contract/absent.h"
#include "passes/schedule/contract/contract.h"
#include "passes/schedule/contract/indices.h"
#include "passes/schedule/point/early_reads.h"

/* Whether node t is of that kind, wherever its tensors will live, and its sizes may be worth a tile. */
bool contract_threads_could(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o);
enum { CONTRACT_THREADS_PLANS = 3 };
/* The plans of its kernels, and how many there are, in the order in which a launch asks for one that suits its sizes and
 * memory; another kernel has to take all others. matrices: kernels of roles or of
 * warps, which want groups as well, are asked before. */
unsigned contract_threads_take(const Graph *g, Arena *scratch, const Places *places, TensorId t, const PassOptions *o,
                               bool matrices, KernelPlan *p);
void contract_threads_build(Graph *g, Arena *scratch, const Places *places, const PassOptions *o, Kernel *kernel);

/* --- for the files of this template --- */

enum {
	THREADS_TERMS = 8, /* of a panel */
	THREADS_ROWS = 16, /* of a thread, at most */
	QUAD = 4,          /* elements side by side */
	THREADS_COLUMNS = 8,
	THREADS_GROUPS = 8, /* of a panel that a thread brings, at most */
	THREADS_RAW = EARLY_READS * THREADS_GROUPS * QUAD
};

/* A factor, and its panel in shared memory. Each thread brings some groups of it. */
typedef struct {
	ExprId factor, value;      /* value: with stand-ins for what is read early */
	EarlyReads reads;
	bool along_terms;          /* memory, and groups, run along the terms, else along the own axes */
	uint32_t axes;             /* those, as bits */
	unsigned axis, group;      /* the innermost of them; elements side by side in a group */
	bool absent;               /* some terms' factor is not to be asked for: reads see to it that there is what they read */
	bool whole;                /* groups are read at once: all of their elements are there, or none */
	unsigned own, first;       /* the tile's rows or columns; where they are in a row of shared memory */
	const Indices *indices;    /* of its own axes */
	unsigned ngroup, step;     /* groups of a thread, so many rows, columns or terms apart */
	ValId own_at, term_at;     /* where the thread's first group is in the panel */
	ValId at[THREADS_GROUPS][TG_MAX_AXES]; /* by group, of the tile: its own axes */
	ValId fill;                /* what stands for a term that is none */
} Panel;

typedef struct {
	Point l;
	const KernelPlan *plan;
	Reduction fold;
	Indices batch, rows, columns, terms;
	Absent absent;
	Panel panel[2];            /* of the rows, of the columns */
	ValId row_tiles, column_tiles;
	ValId rest, end;           /* terms of the first panel, 1 .. THREADS_TERMS; the terms' number and a panel's */
	ValId thread, lane, warp;
	ValId row_at, column_at;   /* the thread's first row and column in the tile, by quads */
	ValId panels, staged;      /* views of shared memory: (slot, row or column, term), (row, column) */
	ValId row0, column0;       /* of the task's tile */
} Threads;

static inline ValId
threads_int(Threads *x, int64_t v)
{
	return tir_int(x->l.tir, DT_I64, v);
}
static inline ValId
threads_op(Threads *x, Op o, ValId a, ValId b)
{
	return tir_binary(x->l.tir, o, a, b);
}
/* Rows and columns of a thread. */
static inline unsigned
threads_columns(const KernelPlan *p)
{
	unsigned n = QUAD;
	while (2 * n * n * p->threads < (unsigned)p->tile_rows * p->tile_columns)
		n *= 2;
	return n;
}
static inline unsigned
threads_rows(const KernelPlan *p)
{
	return (unsigned)p->tile_rows * p->tile_columns / p->threads / threads_columns(p);
}
void threads_barrier(Threads *x);

/* --- panels (threads_panel.c) --- */
/* The factor of the node's rows or columns, and what of it can be read early; groups as large as its reads allow. */
void panel_find(const Graph *g, Arena *scratch, const Node *n, const Factors *f, const Absent *a, bool columns, Panel *p);
/* Groups of at most so many elements that are read at once; declares what stands for reads. */
void panel_declare(Threads *x, Panel *p, unsigned group);
/* The thread's groups in a tile that begins at this row or column. */
void panel_enter(Threads *x, Panel *p, ValId first);
/* What is read early of the panel that begins with this term, panel_reads values; clamped: there may be no such terms,
 * and others are read for them. */
unsigned panel_reads(const Panel *p);
void panel_load(Threads *x, Panel *p, ValId term, bool clamped, ValId *raw);
/* The panel of what has been read, into this slot. */
void panel_stage(Threads *x, Panel *p, ValId slot, ValId term, bool clamped, const ValId *raw);

/* What is made of the thread's sums (threads_finish.c). */
void threads_finish(Threads *x, const ValId *acc);
/* How many rows of each thread are finished at a time, where shared memory has so many elements. */
unsigned threads_finish_rows(const KernelPlan *p, unsigned elements);

#endif
