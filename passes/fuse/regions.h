/* regions.h: what nodes cost as one kernel, and whether they can be one: what partition.c is told of a graph. */
#ifndef TEXO_PASSES_FUSE_REGIONS_H
#define TEXO_PASSES_FUSE_REGIONS_H

#include "passes/cost/cost.h"
#include "passes/fuse/group.h"
#include "passes/fuse/partition.h"
#include "passes/schedule/rows/rows.h"

enum {
	REGION_SIZE = 512,      /* of a dim that has no hint, and of a scalar that a range depends on */
	REGION_GPU_SIZE = 4096, /* of such a dim on a GPU, which is for much */
	REGION_LARGE_SIZE = 8192, REGION_FEW = 32, /* where it is asked of more than one size: of large ones; of few beside these */
	BLOCK_COLUMNS = 512     /* that a block of threads has side by side */
};

typedef struct {
	VEC(TensorId) list;
} TensorList;

/* Nodes that are one kernel whatever else happens: one, a recurrence's, a stream's, or a region's. */
typedef struct {
	TensorList member; /* in the graph's order */
} Unit;

/* What is known of a region: its nodes are node.at[first .. first + n). */
typedef struct {
	uint64_t hash;
	uint32_t first, n;
	double us;         /* INFINITY: it is no kernel, and why */
	RemarkId why;
} KnownRegion;

typedef struct {
	Graph *g;
	PassCtx *cx;
	RowsFacts facts;             /* stored: the results */
	bool *stored;                /* the same, but while a region is planned */
	const Machine *machine;
	LaunchEnv env;
	UseTable uses;
	TensorList *reads, *readers; /* by TensorId: what the node reads, parameters too; the nodes that read it */
	VEC(Unit) unit;
	uint32_t *unit_of;           /* by TensorId, of nodes */
	uint32_t *place;             /* by unit: in an order in which kernels could run */
	uint32_t *depth;             /* by unit: the units before it on the longest way */
	uint32_t *seen, stamp;       /* by unit: the search that last saw it */
	VEC(KnownRegion) known;
	uint32_t *slot, nslot;       /* hash table of 1 + index of known */
	VEC(TensorId) node;
} Regions;

/* Of a sum that shares a factor with others and is not grouped with them: the first of them, and why. */
typedef struct {
	TensorId first;
	RemarkId why;
} Sibling;

/* Adds the groups of sums that share a factor (siblings.c), after streams and before others; live[t]: t is needed. What is said of
 * those that are in none, by TensorId. */
const Sibling *group_siblings(Regions *r, Groups *out, const bool *live);

/* Every node a unit of its own, but for streams and recurrences. */
void regions_init(Regions *r, Graph *g, PassCtx *cx, const RowsFacts *facts, const Groups *streams);
/* What a kernel of these nodes takes, in the graph's order; INFINITY, and why: there is none. A time of `enough`
 * or more may be less than what it is. */
double regions_us(Regions *r, const TensorId *node, uint32_t n, double enough, RemarkId *why);
/* What CONTRACT's kernel of a sum of products takes, on a processor. */
double regions_contraction_us(Regions *r, TensorId t);
/* The size of a dim that has no hint, from now on. */
void regions_take_sizes(Regions *r, int64_t size);
/* Makes the units of these nodes one; and finds an order of all units anew. */
void regions_merge(Regions *r, const TensorId *node, uint32_t n);
void regions_order(Regions *r);
/* Whether a kernel outside of these nodes would have to run between two of them. */
bool regions_has_between(Regions *r, const TensorId *node, uint32_t n);

#endif
