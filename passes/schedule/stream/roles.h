/* roles.h: the STREAM template for a GPU with wgmma, by roles (ir/channel.h): roles.c. */
#ifndef TEXO_PASSES_SCHEDULE_STREAM_ROLES_H
#define TEXO_PASSES_SCHEDULE_STREAM_ROLES_H

#include "passes/schedule/stream/factors.h"
#include "passes/schedule/stream/quads.h"

enum { STREAM_ROLES_TILES = 10, STREAM_ROLES_PLANS = 2 * STREAM_ROLES_TILES };

/* Of more terms and columns a thread has no registers for where a part's state goes (fuse/split_stream.c). */
enum { SR_PARTS_TERMS = 192, SR_PARTS_COLUMNS = 128 };

/* The plans of its kernels and how many there are, in the order in which a launch asks for one that suits its sizes and
 * memory; another kernel has to take all others. plan->node says which nodes. stored: by TensorId; NULL: not known yet, which
 * changes the plans and not how many. */
unsigned stream_roles_take(const Graph *g, Arena *scratch, const Stream *s, const bool *stored, const PassOptions *o, KernelPlan *plan);
void stream_roles_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel);

/* --- for the files of this template --- */

enum { SR_GROUPS = 2, SR_ROWS = SR_GROUPS * TIR_MMA_ROWS }; /* of parts, and of most plans */
enum { SR_ONCE = 2, SR_OF_ELEMENTS = 1 + MAX_ACCS };
enum { SR_MOST_OF_TASK = TG_MAX_AXES + 6 + 2 * STREAM_MAX_VECTORS };

typedef struct {
	StreamSlots s;
	StreamElement of[NOF];
	unsigned rows;             /* of a task, 64 of each group */
	unsigned terms, columns, elements; /* of a tile: as many as its products have; columns 0: none */
	bool pieces;               /* terms, of which a tile has any number, come so many at a time (roles_pieces.c) */
	ValId steps;               /* then: how many times */
	unsigned acc;              /* the wide accumulator, if there is one */
	ExprId beside;             /* what scores take of OF_BESIDE, by name; 0: nothing that comes through a channel */
	unsigned beside_channel;
	ValId of_beside[SLOTS_MAX / TIR_HELD_LANES]; /* what the thread has of the tile's, in vectors */
	ExprId once[SR_ONCE];      /* reads that are the same for all of a task */
	unsigned nonce;
	ValId view[NOF];
	ValId thread, group, lane, warp, in_group; /* the thread's number in its group */
	ValId right;               /* its first element, or column, of a tile's */
	StreamQuads quads;         /* what is made of the state */
	ValId row_last;
	/* the task at work */
	bool asks, ahead, folds;   /* data says which elements it has; which is asked while the one before is at work; of whom folds */
	ValId core[2];             /* then: of the elements that all of its rows have, begin and end; 0: not known */
	ValId task, hi, step;
	ValId next[SR_MOST_OF_TASK]; /* what the next one is */
	unsigned nnext;
} StreamRoles;

static inline ValId
sr_int(StreamRoles *x, int64_t v)
{
	return tir_int(x->s.b.l.tir, DT_I64, v);
}
static inline ValId
sr_op(StreamRoles *x, Op o, ValId a, ValId b)
{
	return tir_binary(x->s.b.l.tir, o, a, b);
}

/* --- tasks (roles_tasks.c) --- */
void sr_bind_tasks(StreamRoles *x);
/* None where the sizes are none of the plan's. */
void sr_count_tasks(StreamRoles *x, Kernel *kernel);
/* Opens the loop of a block's tasks, which carries n fills, of tiles and, where queries stay, of those; and its task, for those
 * that fold with their rows. */
void sr_open_tasks(StreamRoles *x, ValId *fills, unsigned n, bool folds);
/* Where data says what a task has: finds that out for the next one, before sr_close_tasks, which ends the loop. */
void sr_find_next(StreamRoles *x);
void sr_close_tasks(StreamRoles *x, ValId *fills, unsigned n);
/* Of the elements that all rows of the task have, begin and end; 0: not known. */
void sr_core(StreamRoles *x, ValId *begin, ValId *end);
/* Where the last tile of the task begins, if it has one: tiles begin where its elements do. */
ValId sr_last_tile(StreamRoles *x);

/* --- factors --- */
/* The view that copies take boxes of. */
void sr_bind_view(StreamRoles *x, unsigned which);
/* A part of a fill: its own axis from own0 on, TIR_PART_TERMS terms from `term` on. */
void sr_copy_part(StreamRoles *x, unsigned channel, unsigned part, unsigned which, ValId own0, ValId term, ValId fill);
void sr_acquire(StreamRoles *x, unsigned channel, ValId fill);

/* --- a tensor of rows and elements (roles_beside.c) --- */
/* What scores take of one, if they do, as OF_BESIDE; 0: nothing. */
ExprId sr_find_beside(const Graph *g, Arena *scratch, const Stream *s, StreamElement *to);
/* Adds the channel of OF_BESIDE, if there is memory for one beside what the kernel shares, which it has by then; what s makes of
 * sums has a name in the place of the read. */
void sr_add_beside(StreamRoles *x, Stream *s, ExprId read);
/* The tile at b.first: brought to the fill; read from it by a group; an element of it at the point. */
void sr_load_beside(StreamRoles *x, ValId fill);
void sr_take_beside(StreamRoles *x, ValId fill);
void sr_place_beside(StreamRoles *x, unsigned k);

/* --- what is the same for all of a task (roles_once.c) --- */
/* Where s has what is made of each element: SR_OF_ELEMENTS at most, some of them 0; how many. */
unsigned sr_of_elements(Stream *s, ExprId **at);
/* Finds it in what s makes of elements, which then has it by name; for the task at work. */
void sr_name_once(StreamRoles *x, Stream *s);
void sr_place_once(StreamRoles *x);

/* --- how far elements are from the row (roles_apart.c) --- */
/* Finds it likewise, of fewer than SR_MOST_APART rows and elements. */
enum { SR_MOST_APART = 1 << 23 };
void sr_name_apart(StreamRoles *x, Stream *s);

/* --- terms piece by piece (roles_pieces.c) --- */
void sr_add_piece_channel(StreamRoles *x);
/* All that the tile at b.first, or the task's rows, take of it, from this fill on, which becomes the one behind them. */
void sr_load_pieces(StreamRoles *x, ValId *fill);
void sr_multiply_pieces(StreamRoles *x, ValId *fill);

#endif
