/* threads.h: a contraction by tiles of a GPU's threads, with multiply-adds: threads.c says how it works. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_THREADS_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_THREADS_H

#include "passes/schedule/contract/absent.h"
#include "passes/schedule/contract/contract.h"
#include "passes/schedule/contract/indices.h"
#include "passes/schedule/point/early_reads.h"

/* Whether node t is of that kind, wherever its tensors will live, and its sizes may be worth a tile. */
bool contract_threads_could(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o);
enum { CONTRACT_THREADS_PLANS = 8 }; /* the tiles of threads_tile.c */
/* The plans of its kernels, and how many there are, in the order in which a launch asks for one that suits its sizes and
 * memory; another kernel has to take all others. matrices: kernels of roles or of
 * warps, which want groups as well, are asked before. */
unsigned contract_threads_take(const Graph *g, Arena *scratch, const Places *places, TensorId t, const PassOptions *o,
                               bool matrices, KernelPlan *p);
void contract_threads_build(Graph *g, Arena *scratch, const Places *places, const PassOptions *o, Kernel *kernel);

/* --- for the files of this template --- */

enum {
	THREADS_TERMS = 8, /* of a slice of a panel */
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
	ExprId term, value[2];     /* of a pair: with stand-ins for its values, and those; 0: a product of factors */
	Panel panel[2];            /* of the rows, of the columns */
	ValId row_tiles, column_tiles;
	ValId rest, end;           /* terms of the first panel, 1 .. block_terms; the terms' number and a panel's */
	/* Where a cluster has a tile: the terms' number in pieces of THREADS_TERMS; of a block the panels, how many terms, and from which
	 * one on. There `end` is how many terms the panels have room for */
	ValId units, npanel, count, begin;
	ValId first, last;         /* the first terms of the block's first and last panel */
	ValId lane, warp;
	ValId inside, term_at;     /* the thread's number among those of its slice of a panel, and the slice's first term there */
	ValId rank;                /* of the block in its cluster */
	ValId row_at, column_at;   /* the thread's first row and column in the tile, by quads */
	ValId panels, staged;      /* views of shared memory: (slot, row or column, term), (row, column) */
	ValId sums;                /* of a cluster: (block, element of the tile) */
	ValId row0, column0;       /* of the task's tile */
} Threads;

/* A tile, and what is known of blocks that have it (threads_tile.c). */
typedef struct {
	uint16_t rows, columns, threads;
	uint8_t slices;    /* of a panel's terms; if there are several, a warp multiplies each */
	uint8_t cluster;   /* blocks that divide a tile's terms; 0: one block has it */
	bool groups;       /* for factors of which one is read in groups */
	bool large;        /* not for sums of 64 bits */
	bool products, pairs; /* for them alone */
	uint8_t resident;  /* as TirKernel has it, */
	uint8_t computed;  /* where factors are more than elements, which takes registers; */
	uint8_t functions; /* or functions of them, which take more: where nothing is said assemblers spill to have three blocks; 0: as computed */
	uint8_t bytes;     /* or made of elements of 8 bits and fewer; 0: as computed */
	uint8_t absent;    /* and where terms may be absent, which takes more; 0: there are too few */
	uint8_t fit;       /* so many blocks are on a processor at a time */
	uint8_t clusters;  /* and so many clusters on a GPU of GPU_ALL processors */
	uint16_t step, alone, finish; /* cycles of 64 terms where all blocks are there that fit, or one; of the rest of a block */
} ThreadsTile;

ThreadsTile threads_tile(unsigned n);
/* Of a plan. */
unsigned threads_tile_of(const KernelPlan *p);
/* Whether there are kernels of it, in the graph's mode; both: of its factors are read in groups; pair: terms are no products. */
bool threads_tile_exists(const Graph *g, const PassOptions *o, unsigned n, bool both, bool pair);
/* Fewer terms are not worth it. */
int64_t threads_least_terms(const PassOptions *o, const ThreadsTile *t);
/* Launch expressions: how many tiles there are; whether none that is asked for later takes less time, 1 or 0. */
ExprId threads_tile_count(Threads *x, const ThreadsTile *t);
ExprId threads_tile_suits(Threads *x, const PassOptions *o, unsigned n);
/* Launch expression: cycles, about, of the tile that takes least for a product whose factors are read in groups. Of x no more is asked
 * than the graph and how many rows, columns, terms and batches there are. */
ExprId threads_least_cycles(Threads *x, const PassOptions *o);

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
/* Into how many slices a panel's terms are divided, and how many threads multiply each. */
static inline unsigned
threads_slices(const KernelPlan *p)
{
	return p->block_terms / THREADS_TERMS;
}
static inline unsigned
threads_of_slice(const KernelPlan *p)
{
	return p->threads / threads_slices(p);
}
/* Rows and columns of a thread. */
static inline unsigned
threads_columns(const KernelPlan *p)
{
	unsigned n = QUAD;
	while (2 * n * n * threads_of_slice(p) < (unsigned)p->tile_rows * p->tile_columns)
		n *= 2;
	return n;
}
static inline unsigned
threads_rows(const KernelPlan *p)
{
	return (unsigned)p->tile_rows * p->tile_columns / threads_of_slice(p) / threads_columns(p);
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
