/* kp.h: the kernel plan. A KernelPlan is plain data: which template runs which nodes with which
 * parameters. A Program is a graph with its kernels in launch order: what codegen turns into an
 * artefact. */
#ifndef TEXO_IR_KP_H
#define TEXO_IR_KP_H

#include "ir/tg.h"
#include "ir/tir.h"

typedef enum {
	TMPL_NONE = 0,
#define TEMPLATE(id, text, summary) TMPL_##id,
#include "ir/templates.def"
} Template;

enum {
	TMPL_COUNT = 1
#define TEMPLATE(id, text, summary) +1
#include "ir/templates.def"
};

typedef struct {
	const char *text, *summary;
} TemplateInfo;
extern const TemplateInfo template_info[TMPL_COUNT];

enum { KP_MAX_NODES = 64 };

typedef struct {
	uint8_t tmpl;           /* Template */
	bool free_masks;        /* CONTRACT: a mask that a loop does not change costs nothing there */
	uint8_t pairs;          /* CONTRACT, STREAM: of bf16, in a group of DOT; 0: tiles are of vectors */
	bool chained;           /* that DOT is */
	uint32_t lanes;         /* vector width along the innermost parallel axis; 0: scalar */
	uint16_t unroll;
	uint16_t threads, group; /* of a block, which takes a task together; lanes side by side of a thread. 0: no block */
	uint16_t cluster;       /* of so many such blocks; 0: one */
	uint16_t columns;       /* COLRED, held, or MAP by tiles: lanes are rows of so many columns; 0: a row of columns */
	uint16_t resident;      /* as TirKernel has it */
	bool anywhere;          /* as TirKernel has it */
	bool held;              /* a row fits into a vector: so does each phase, which later ones find in registers */
	bool filled;            /* by most of it */
	bool short_axis;        /* the axis along the lanes does */
	bool flat;              /* MAP: all row axes are one, as the rows of all tensors lie one after another */
	bool long_sums;         /* rows have 2048 elements and more (passes/schedule/point/long_sums.c) */
	bool beside;            /* STREAM: what scores take of a tensor of rows and elements comes through a channel (stream/roles_beside.c) */
	uint32_t once;          /* folds of a row that wait for each other are gone through together, where there are so many
	                         * rows; 0: they are not */
	uint32_t posts;         /* SCAN: a task is a vector of a row, and posts what it folds to those behind it; rows have at
	                         * least so many elements. 0: a task is a row */
	/* CONTRACT: a register tile of tile_rows x tile_columns elements, kept while block_terms terms are
	 * added to it; at most block_rows x block_columns elements at a time, the rows of block_tasks tasks.
	 * STREAM: register tiles of tile_rows elements or columns by tile_columns rows; a task folds block_terms
	 * elements at a time into block_rows rows
	 * PAIRWISE: a thread has tile_rows rows of a task's block_rows, which take block_columns of a tile of block_terms elements
	 * at a time; tile_columns: which of the short extents that it may be for */
	bool turns;             /* CONTRACT: groups of threads take turns with a tile each */
	bool pieces;            /* CONTRACT: tasks are pieces of the terms of tiles (contract/roles_pieces.c) */
	bool joins;             /* CONTRACT: it adds up what the kernel before it has of those (contract/roles_join.c) */
	bool joint;            /* CONTRACT: blocks of a cluster have a tile each, and one factor in common */
	uint8_t thirds;         /* CONTRACT: products are those of so many thirds of the factors (contract/roles_thirds.c); 0: of factors */
	bool halo;              /* CONTRACT: what a tile reads by windows is a box in shared memory (contract/halo.c) */
	uint8_t sums;           /* CONTRACT: so many sums that share a factor, with what is made of them; 0: one */
	uint16_t tile_rows, tile_columns, block_tasks;
	uint32_t block_terms, block_rows, block_columns;
	uint16_t nnode;
	TensorId node[KP_MAX_NODES]; /* the region, in topological (or step) order */
} KernelPlan;

/* One line: "nest lanes=0 unroll=1 nodes=%7,%8", "contract lanes=16 unroll=1 tile=14x32
 * block=224x768x768 tasks=4 nodes=%7" (rows, columns, terms), "rowred lanes=4096 unroll=1 threads=128 group=4 held
 * nodes=%7"; where tiles are DOT's, pairs=16 before the nodes, or pairs=8 chained; where groups of threads
 * take turns with tiles, turns; where tasks are pieces of terms, pieces, and of what adds them up, joins; where a cluster's blocks have a tile
 * each and one factor in common, joint; where products are of thirds, thirds=3; where what tiles read by windows is a box, halo; of several
 * sums, sums=2; and back. */
void kp_print(const KernelPlan *kp, Text *out);
bool kp_read(KernelPlan *kp, const char *text, size_t n, const char **error);

typedef enum { BIND_DATA, BIND_FAULT, BIND_WORK, BIND_SCRATCH, BIND_SHARED, BIND_CLEARED, BIND_PASSED } BindKind;

/* What a kernel's buffer is.
 *   BIND_DATA   the elements of a tensor, where the tensor lives:
 *               an input or inout      the parameter's buffer (an inout: read as its old value)
 *               a node that is Result.tensor of result r
 *                                      r's buffer: the parameter's when r.inout, else the result's own
 *               any other node         the workspace, row-major
 *   BIND_FAULT  the tensor's fault plane: u32 an element as TIR's FAULT takes it, in the workspace,
 *               row-major; shared by the kernels that name it
 *   BIND_WORK   a plane of the tensor's extents and the TIR buffer's dtype, in the workspace,
 *               row-major, private to this bind: two binds are two planes
 *   BIND_SCRATCH  `elements` elements of the TIR buffer's dtype, aligned to 64 bytes, private to each
 *               running call of the kernel: calls at the same time have different memory. A task finds
 *               there what the tasks before it in the same call left; the first one what an earlier
 *               call left in this run of the kernel, or else anything after 64 bytes of 0. That
 *               goes for all scratch of the kernel at once: each bind has what the same call left there
 *   BIND_SHARED  where Kernel.ahead is 0, the same; else one memory for all calls of this run, which only the tasks
 *               ahead write
 *   BIND_CLEARED  of a kernel of blocks: `elements` elements whose bytes are 0 when the kernel begins, one memory for all tasks
 *   BIND_PASSED  of a kernel of blocks: the same, with anything in them at first. Of a kernel that follows the one before it (Kernel.follows):
 *               what that one has left there. The bind is the first of either's that wants such memory, with the same elements
 * In a Program every Result.tensor is a node, and a different one for each result: scheduling adds
 * copy nodes for results that are parameters or used twice, and for inouts whose old value is still
 * read while the new one is computed. So a kernel that writes an inout in place has the same buffer
 * bound as the TENSOR_INOUT (reads) and as the Result's node (writes); it reads each element only
 * before it writes it, in the same task. Workspace is never taken to be zero.
 *
 * A c64 tensor's TIR buffer is f32: views of it have a last axis more, of extent 2 and stride 1, and
 * strides twice the bound ones (ScalarBind counts in elements of the tensor: c64). */
typedef struct {
	BindKind kind;
	TensorId tensor;
	ExprId elements;        /* BIND_SCRATCH, BIND_SHARED, BIND_CLEARED, BIND_PASSED: over dims */
	bool unit;              /* BIND_DATA in a parameter's or result's buffer: the code takes its last stride for 1.
	                         * A launch whose stride there is another hands all kernels a row-major copy */
} BufferBind;

/* What a kernel's scalar is: an expression over dims and scalar parameters (extents, a parameter
 * itself), or the stride in elements of an axis of a tensor that lives in a parameter's or result's
 * buffer (what lives in the workspace has row-major strides, which kernels get as extents). A c64
 * parameter's TIR scalar is u64: its 64 bits, the real part in the low half. */
typedef struct {
	ExprId expr;            /* 0: a stride */
	TensorId tensor;
	uint8_t axis;
} ScalarBind;

typedef struct {
	KernelPlan plan;
	TirKernel *tir;
	VEC(BufferBind) buffer; /* one per tir->buffer */
	VEC(ScalarBind) scalar; /* one per tir->scalar */
	ExprId ntask;           /* over dims: tasks 0 .. ntask-1, split anywhere and in any order, but where some wait for others */
	bool serial;            /* tasks must run as one call */
	ExprId grain;           /* over dims: tasks that are worth a call of their own; 0: one */
	/* over dims: so many tasks, the first, are finished before any other begins; each is worth a call. 0: none */
	ExprId ahead;
	/* Of a kernel of blocks: it is one of several that do the same, of which a launch runs one. `aligned`: only where
	 * what it accesses in groups is aligned for them, and where its plan is flat, tensors are row-major; `otherwise`: only
	 * where the kernel before it is not run.
	 * An alternative is no kernel more. */
	bool aligned, otherwise, alternative;
	/* It runs where the kernel before it does, after it, and has what that one left (BIND_PASSED): the two are one alternative, which
	 * needs what either asks of memory. It is an alternative too, so no kernel more */
	bool follows;
	/* It, with all that are so and follow one another, does what the alternatives before them do: of several nodes, each on
	 * its own. They run where none of those does. They are no kernels more. */
	bool covered;
	/* Of one that is covered, over dims: 0 where it does not run whatever is launched, so what only it and others such have in the
	 * workspace takes none; else 1. 0: not known */
	ExprId room;
	/* Of a kernel that copies boxes, over dims: rows of a tensor that begin at no multiples of so many bytes are brought to
	 * memory where they do, first. 0: such rows are not, and those that boxes can't be copied of are another kernel's */
	ExprId pitch;
	/* Of an alternative that the cost model may leave out, over dims: its tasks wherever it is right. 0: ntask says that */
	ExprId could;
	bool tuned; /* a choice of a tuning file is in its conditions */
	/* The kernel before the passes over tile IR, which are run when its code is wanted; tir is then what is known of it for the
	 * tables of a launch, and not to be made code of. NULL: tir has been through all of them */
	const TirKernel *early;
} Kernel;

/* A tensor that goes from one kernel to another, and why the two are not one. */
typedef struct {
	TensorId from, to;      /* nodes: to reads from */
	const char *code, *reason;
} UnfusedEdge;

/* What else could compute a unit's nodes, and where, over dims. */
typedef struct {
	const char *text;       /* the plan without its nodes; what is beside it */
	ExprId model, could;    /* tasks: where the model is asked; wherever it is right */
	bool threads;           /* it matters where there are several */
} PlanAlternative;

/* The nodes of a kernel, by what they say (passes/schedule/alternatives.h). */
typedef struct {
	uint64_t digest;
	TensorId node;          /* which names it */
	VEC(PlanAlternative) at; /* in the order in which a launch asks */
} PlanUnit;

/* What became of a choice. */
typedef enum { TUNE_NO_UNIT, TUNE_NO_DIM, TUNE_NO_PLAN, TUNE_TAKEN } TuneOutcome;

typedef struct Program {
	Graph *graph;
	VEC(PlanUnit) unit;       /* where PassOptions.alternatives asks for them */
	uint8_t *tuned;           /* TuneOutcome of each of PassOptions.choice; NULL: there are none */
	VEC(UnfusedEdge) unfused; /* in the order of the readers */
	VEC(Kernel) kernel;     /* launch order */
} Program;

/* By buffer: whether a kernel of threads accesses several elements of it at once. What boxes are copied of, its maps tell. */
const bool *kernel_groups(const Kernel *k, Arena *a);
/* The value of an extent at some sizes; false: it is not known. */
typedef bool ExtentFn(void *user, ExprId extent, int64_t *out);
/* Whether an aligned kernel may run where arguments begin at such places, and their rows lie one after another: these must then be
 * whole groups of 16 bytes where it accesses groups. Others always may. */
bool kernel_takes_rows(const Kernel *k, const Graph *g, ExtentFn *value, void *user, Arena *a);

/* Whether the kernel stands in for what another one before it does as well. */
static inline bool
kernel_is_spare(const Kernel *k)
{
	return k->alternative || k->covered;
}

/* How many kernels behind this one are left out where it runs, since it does what they do; 0 for those among them. */
static inline uint32_t
program_covers(const Program *p, uint32_t kernel)
{
	uint32_t n = kernel + 1, end;
	while (n < p->kernel.n && p->kernel.at[n].alternative && !p->kernel.at[n].covered)
		n++;
	for (end = n; end < p->kernel.n && p->kernel.at[end].covered; end++)
		;
	return p->kernel.at[kernel].covered || end == n ? 0 : end - kernel - 1;
}

/* The kernels that a launch runs: of alternatives one. */
static inline uint32_t
program_kernels(const Program *p)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < p->kernel.n; k++)
		n += !kernel_is_spare(&p->kernel.at[k]);
	return n;
}

#endif
