/* roles_build.h: what the files of the kernels of roles share. roles.c says how they work. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_ROLES_BUILD_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_ROLES_BUILD_H

#include "passes/schedule/contract/boxes.h"
#include "passes/schedule/contract/contract.h"
#include "passes/schedule/contract/members.h"
#include "passes/schedule/contract/roles.h"
#include "passes/schedule/contract/side.h"
#include "passes/schedule/contract/window_rows.h"
#include "passes/schedule/convert_emit.h"

/* Sums that share one factor: each of those beside the first has another one of its own, for rows or for columns. */
typedef struct {
	BoxFactor row, column;
	unsigned row_axis, column_axis, term_axis;
	unsigned beside;
	bool columns;
	unsigned thirds; /* factors are f32, of which so many thirds are multiplied (roles_thirds.c); 0: they are not */
	ExprId of_row, of_column; /* of what is expanded (Node.expanded): the elements from whose sum that of the products is taken; else 0 */
	BoxFactor own[MEMBERS_MOST_SUMS - 1];
} RolesProduct;

/* What a block has of the output at a time: one tile that its groups share, or with `turns` each group one of its own.
 * With `parts` the blocks of a cluster have one tile, and each a part of its terms. With `joint` they have a tile each, of rows
 * that follow one another, and the factor of columns in common. */
typedef struct {
	uint16_t rows, columns, groups, registers, rest, resident;
	uint8_t slots;    /* of the ring: as many as there is memory for, so that copies are begun early */
	bool turns;
	uint8_t panel;    /* columns that are finished at a time, at most: 32, 64 or 128. The last ones may be fewer */
	uint8_t parts;    /* 0: one */
	uint8_t joint;   /* blocks of such a cluster; 0: none */
	uint8_t pieces;   /* of a tile's terms, at most, which are a task each (roles_pieces.c); 0: tasks are tiles */
	uint8_t clusters; /* of so many blocks that there are at a time on an H200, where each has its own processor */
	uint8_t side;     /* elements side by side that a lane finishes: it accesses them at once */
	uint8_t thirds;   /* for factors of which so many are multiplied */
	uint8_t sums;     /* so many have rows and columns like these each; 0: one */
	uint16_t step;    /* cycles of a processor for TIR_PART_TERMS of the terms, where blocks have all that they need */
} RolesTile;

/* Over dims, of tiles whose pieces are tasks: how many tiles, pieces of each, and the most steps that a piece has. */
typedef struct {
	ExprId tiles, pieces, steps;
} RolesPieces;

typedef struct {
	ValId tiles, pieces;
	ValId rows;           /* of the output, whose axes but the columns' are one */
	ValId sums;           /* view: (piece and row, column) */
	ValId piece;          /* of the task */
} PieceValues;

typedef struct {
	Point l;
	const KernelPlan *plan;
	RolesTile tile;
	Window *window; /* NULL: rows are along one axis */
	const Members *members; /* NULL: one sum, finished as its node says */
	RolesProduct of;
	ExprId nrow, ncolumn, nterm;  /* extents */
	ValId rows, columns, steps;   /* of tiles; of terms */
	ValId step0, step_end;        /* the block's of them */
	ValId rank;                   /* of the block, in a cluster */
	PieceValues pieces;           /* where those of tiles are tasks */
	ValId view[1 + MEMBERS_MOST_SUMS], staged;
	bool packed;                  /* elements are finished where the sums are, and change lanes as they are stored: */
	const ConvertPlan *to_rows;   /* of a warp's rows of a panel, by which */
	ConvertPlace put, take;       /* they are staged and taken */
	ValId flat;                   /* with a window, and several elements at once, or where they are packed: the output, by offset and column */
	ValId *total;                 /* of factors of f32: the sums that the thread has of the tile, in the order of its accumulator; else NULL */
	ValId task, thread, group;
	ValId row0, column0, coord[TG_MAX_AXES]; /* of the tile; the batch axes' */
	ValId skip_rows, skip_columns; /* u32: so many of its first ones a tile before it has (roles.c) */
} Roles;

static inline ValId
roles_int(Roles *r, int64_t v)
{
	return tir_int(r->l.tir, DT_I64, v);
}

static inline ValId
roles_op(Roles *r, Op o, ValId a, ValId b)
{
	return tir_binary(r->l.tir, o, a, b);
}

/* Of an axis of the node: those that are summed over begin at 0. */
static inline ExprId
roles_extent(const Roles *r, unsigned axis)
{
	const Node *n = r->l.node;
	return axis < n->npar ? r->l.g->tensor.at[n->out].extent[axis] : n->axis[axis].hi;
}

/* --- for other kernels of roles (roles.c) --- */
/* Whether node t may have a kernel of roles, whatever its factors are. */
bool roles_possible(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o);
/* Whether node t is a product along one axis each of rows, columns and terms, of two elements of a 16-bit type or of f32. */
bool roles_find_elements(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, RolesProduct *r);
/* The same of several sums that share a factor (roles_siblings.c). */
bool roles_find_siblings(const Graph *g, Arena *scratch, const bool *faulty, const TensorId *sum, unsigned n, RolesProduct *r, RemarkId *why);
/* Of these nodes, what tiles are chosen by: nothing of a kernel. False: they are no such sums. */
bool roles_begin_siblings(Roles *r, Graph *g, Arena *scratch, const bool *faulty, const TensorId *node, unsigned n, Members *m);
/* Sets nrow, ncolumn and nterm, of the node entered. */
void roles_find_sizes(Roles *r);
/* The plan of this tile for these nodes. */
KernelPlan roles_plan(const RolesTile *tile, const TensorId *node, unsigned n);
/* e as a bf16 or f16 element that is widened, with one plain index for each axis of its tensor. */
bool roles_element(const Graph *g, ExprId e, unsigned own, unsigned term, BoxFactor *to);
/* A factor as far as the node reads it: what a copy takes beyond is 0. */
ValId roles_view(Roles *r, const BoxFactor *e, unsigned own);
/* Of the fill, from index own0 and this term on, at coord. third: 0, or which of its elements'. */
void roles_copy(Roles *r, unsigned part, const BoxFactor *e, unsigned own, ValId own0, ValId term, ValId third, ValId fill);
/* All of a fill, of this step of the terms; third[0] and [1]: the same of rows' and columns' factors. */
void roles_load_step(Roles *r, ValId step, ValId fill, const ValId *third);
/* Where cond holds, the fill before this one may be others'. */
void roles_release(Roles *r, ValId fill, ValId cond);
/* All of the block's; with `own` those of the group, which with turns are every other one, and as many fills are others'. */
ValId roles_open_tasks(Roles *r, ValId *fill, bool own);
/* Finds the block's part of the terms, a multiple of what a slot has, before roles are opened. */
void roles_divide_terms(Roles *r);
/* All steps of a tile. One product goes on while the next slot is waited for, and the last one while another group has its
 * turn. */
void roles_multiply(Roles *r, ValId *fill);

/* --- rows that are a box (window_rows.h) --- */
/* The elements of a tile, of which the group has the sums (window_finish.c). */
void window_bind_staged(Roles *r);
void window_finish(Roles *r);

/* Quotient and remainder of what is below 2^32: of 64 bits they are calls. */
ValId roles_divide(Roles *r, ValId a, ValId b, ValId *rest);

/* --- the tile for the sizes (roles_tile.c) --- */
unsigned roles_tiles(void);
RolesTile roles_tile(unsigned n);
/* The number of the plan's. */
unsigned roles_tile_of(const KernelPlan *p);
/* Over dims: 1 where the output's columns let tile n be used, and it is predicted to take no longer than those behind it
 * that finish elements in the same way, with pieces less than any of those, else 0. `only`: 0, or 1 + the only tile that there is. */
ExprId roles_tile_suits(Roles *r, unsigned n, unsigned only);
/* Whether the factors are some that a kernel of this tile multiplies: those with few rows have one factor of rows. */
bool roles_tile_fits(const Roles *r, const RolesTile *t);
/* Over dims: cycles, about, of all tiles; the steps that one processor goes through for them, and the cycles
 * of a step, with `copied` of factors whose rows begin with the cache's sectors. */
ExprId roles_cycles(Roles *r, const RolesTile *t);
ExprId roles_steps(Roles *r, const RolesTile *t);
ExprId roles_step(Roles *r, const RolesTile *t, bool copied);
/* Over dims: cycles, about, of the tile that takes fewest of those for so many sums (0: one) that finish as many elements side
 * by side. */
ExprId roles_least_cycles(Roles *r, unsigned sums, unsigned side);
/* The same of several sums where their nodes have kernels of their own; 1 where that is more than the kernel's tile takes,
 * else 0. */
ExprId roles_apart_cycles(Roles *r, unsigned side);
ExprId roles_together_suits(Roles *r);
/* Over dims: Kernel.pitch. */
ExprId roles_pitch(Roles *r);
/* How many tasks of such tiles the output has, and the rows of one. */
ExprId roles_tile_count(Roles *r, const RolesTile *t);
unsigned roles_task_rows(const RolesTile *t);
/* Products that a step has of each of its rows' elements. */
unsigned roles_tile_products(const RolesTile *t);

/* --- factors of f32 (roles_thirds.c) --- */
enum { ROLES_THIRD_BYTES = 10 }; /* read and written of an element to have its thirds */
/* How many products those of so many have that count. */
static inline unsigned
roles_third_pairs(unsigned thirds)
{
	return thirds * (thirds + 1) / 2;
}
/* All steps of a tile: what loads them, and what multiplies. */
void roles_load_thirds(Roles *r, ValId *fill);
void roles_multiply_thirds(Roles *r, ValId *fill);
/* Whether a sum is a finite number; whether all of the warp's are. */
ValId roles_is_finite(Roles *r, ValId sum);
ValId roles_are_finite(Roles *r);
/* Over dims: 1 where the tile is predicted to take no longer than multiply-adds, and its thirds don't take too much memory, else 0. */
ExprId roles_thirds_pay(Roles *r, const PassOptions *o);
/* Over dims, bool: whether they don't. */
ExprId roles_thirds_fit(Roles *r);

/* --- of what is expanded to a product (roles_expanded.c) --- */
/* Makes the thread's sums of the tile those of the node. A bit for each panel: whether the warp has some in it that cancel. */
ValId roles_expand(Roles *r);
/* Whether this sum, which is that of the element at the point, does not. */
ValId roles_expanded_holds(Roles *r, ValId whole);

/* --- tasks that are pieces of terms (roles_pieces.c) --- */
void roles_count_pieces(Roles *r, const RolesTile *t, RolesPieces *to);
/* Over dims: rows of the output, whose axes but the columns' are one. */
ExprId roles_rows_of_output(const Roles *r);
/* Before roles are opened: what is handed over, and what is known at the launch; the same of the kernel that has it then. */
void roles_bind_pieces(Roles *r, Kernel *kernel);
/* Of task r->task: sets task, of the tile, and the steps. */
void roles_enter_piece(Roles *r);
/* The sums of the piece, to where the kernel that follows finds them (roles_join.c). */
void roles_hand_over(Roles *r);
enum { ROLES_JOIN_THREADS = 256 }; /* of that one's blocks */

/* --- panels of sums in shared memory (roles_panel.c) --- */
/* How many times 64 rows of a sum a group has. */
unsigned roles_repeats(const Roles *r);
/* Whether the tile's elements are finished where the hardware has the sums: of 16 bits, where that takes few instructions and
 * asks for nothing that depends on a row or a column. They change lanes as they are stored then, two panels of sums as one. */
bool roles_packs(const Roles *r, const RolesTile *t);
/* How those of a warp do: from where the hardware has the sums to lanes with ROLES_PACKED_SIDE elements of a row each, as many side
 * by side as a panel has; a lane's rows, which the last step has in order, are as far apart as there are rows of lanes. */
enum { ROLES_PACKED_SIDE = 8 };
const ConvertPlan *roles_to_rows(const Roles *r);
/* Columns of a panel, and panels side by side in a tile. */
unsigned roles_panel(const RolesTile *t, bool packed);
unsigned roles_across(const RolesTile *t, bool packed);
/* Part p of a slot: its factor, and that one's axis. Those of rows come first. */
const BoxFactor *roles_part(const Roles *r, unsigned p, unsigned *own);
/* Stages one of the panels from `first` on, n of them: which one is known as the code runs; which registers it has is not. */
void roles_stage_one_of(Roles *r, ValId lane, ValId row, ValId panel, unsigned first, unsigned n);

/* --- the elements of a tile, of which the group has the sums (roles_finish.c) --- */
void roles_bind_staged(Roles *r);
uint32_t roles_staged_bytes(const Roles *r);
void roles_finish(Roles *r);

#endif
