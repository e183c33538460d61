/* stream.h: the STREAM template: a cascade of reductions over one index whose terms read sums of products
 * that nobody else needs (scores), folded in one pass over tiles of the index. stream.c says how it works.
 *
 * What is folded, and how a state moves from one anchor to the next, are the expressions of
 * passes/fuse/algebra.h; the template knows loops and memory alone. */
#ifndef TEXO_PASSES_SCHEDULE_STREAM_STREAM_H
#define TEXO_PASSES_SCHEDULE_STREAM_STREAM_H

#include "passes/fuse/algebra.h"
#include "passes/schedule/rows/rows.h"
#include "passes/schedule/schedule.h"

enum {
	STREAM_MAX_SCORES = 2, STREAM_MAX_WIDE = 2, STREAM_MAX_OUT = MAX_MEMBERS + 12,
	STREAM_MAX_VECTORS = 8, /* of a strip; of a thread of a block: its rows */
	STREAM_KEPT = 5u << 20,  /* IVAR STREAM_KEPT + k: the term of accumulator k, kept from the stage before */
	STREAM_POWER = 6u << 20, /* IVAR STREAM_POWER + k: a power of what score k is off its extreme by (slots.c) */
	STREAM_MOVE = 7u << 20,  /* IVAR STREAM_MOVE + k: the same power of what its extreme was off what it is */
	STREAM_BESIDE = 8u << 20, /* IVAR STREAM_BESIDE: an element that scores take of a tensor of rows and elements (roles_beside.c) */
	STREAM_ONCE = 9u << 20,  /* IVAR STREAM_ONCE + k: what is the same for all of a task (roles_once.c) */
	STREAM_APART = 10u << 20 /* IVAR STREAM_APART: f32(element - row); and + 1: f32(row - element) (roles_apart.c) */
};

/* A node that is computed a tile at a time: t = finish(sum of query * key). */
typedef struct {
	TensorId t, source; /* source: the sum of products, which is t itself or what the pointwise node t reads */
	Node node;         /* over the cascade's axes, its own reduced axis behind them */
	unsigned term;     /* that axis */
	ExprId query, key; /* factors of the body: of the row; of the streamed element */
	ExprId divisor;    /* finish divides by what is known at launch: by this; 0: by nothing such */
	Node scaled;       /* then the node, where finish multiplies by its reciprocal */
	Node quick;        /* the same, and where it divides that product once more, by the reciprocal of that too; else the node */
	ExprId scale;      /* what quick multiplies the sum by, if it does nothing else: a number, or a reciprocal; else 0 */
	bool again;        /* read after the first stage as well */
} StreamScore;

typedef struct {
	ExprId term;       /* narrow: as in the cascade, with kept terms as IVARs */
	ExprId weight, value; /* wide: term = weight * value; weight of row and element, value of element and column */
	ExprId factor;     /* wide: moving to a new anchor is a multiplication by this; 0: it is something else, or nothing */
	bool wide, kept;
} StreamAcc;

/* A reduction of the cascade, or a pointwise node of such: an element of it, when the state is complete. */
typedef struct {
	TensorId t;
	uint8_t axis[TG_MAX_RANK]; /* its axes as axes of the cascade */
	bool wide;
	ExprId value, domain;      /* over the state, and the axes; 0: everywhere */
} StreamOut;

typedef struct {
	Cascade c;
	const CascadePass *pass;
	unsigned stream, lane, last_stage; /* axes: streamed; along the vectors. The largest stage of an accumulator */
	ExprId group;             /* of the rows along `lane`, so many one after the other have the same elements; 0: all have */
	uint32_t base;            /* the axes of a row, as bits */
	int wide;                 /* the axis of columns; -1: none */
	DType type;               /* in which scores and columns are summed */
	unsigned nscore;
	StreamScore score[STREAM_MAX_SCORES];
	StreamAcc acc[MAX_ACCS];
	unsigned nout;
	StreamOut out[STREAM_MAX_OUT];
	ExprId lo, hi;            /* of the streamed axis, for a row */
	ExprId rest;              /* what else must hold for a term to exist; 0: nothing */
	bool ragged;              /* lo and hi vary along the lanes */
	DType factors;            /* bf16 or f16: all factors of both products are so, or may be rounded to it; else none */
	bool narrow;              /* that is bf16: DOT takes them */
} Stream;

/* Whether it leaves the states of parts (fuse/split_stream.c), which another kernel joins. */
static inline bool
stream_is_parts(const Graph *g, const Stream *s)
{
	return tensor_node(g, s->c.member[0].tensor)->parts;
}

/* Plans the kernel of these nodes, in topological order: sums of products and pointwise nodes of them that are
 * scores, reductions that read these, pointwise nodes of what is reduced; false with the reason. */
bool stream_plan(Graph *g, Arena *scratch, const RowsFacts *facts, const TensorId *node, unsigned n, Stream *out,
                 Refusal *why);
/* What such a kernel folds, for explain; false: it is none such. */
bool stream_derivation(Graph *g, Arena *scratch, const TensorId *node, unsigned n, Cascade *out);
/* Whether t is a pointwise node that reads source at its own point alone. */
bool stream_reads_source(const Graph *g, Arena *scratch, TensorId t, TensorId source);
/* Tiles for such a kernel; false: the target has no vectors for it. */
bool stream_size(const Graph *g, Arena *scratch, const Stream *s, const PassOptions *o, KernelPlan *p);

/* --- lane.c --- */
/* Chooses lane and group, of a stream that has its scores, accumulators and factors; false: rows have nothing in common. */
bool stream_choose_lane(Graph *g, Arena *scratch, const RowsFacts *facts, Stream *s);
/* --- out.c --- */
/* Adds the pointwise node t, which reads what is there already. */
bool stream_add_point(Graph *g, Arena *scratch, Stream *s, TensorId t, RemarkId *why);
void stream_add_member(Graph *g, Stream *s, const CascadeMember *m);
/* --- scale.c --- */
/* How the score is scaled, by what is known at launch, if so wherever the cascade reads it, which then reads it unscaled; by 0: it
 * is not. */
typedef struct {
	Op op; /* FDIV or MUL */
	ExprId by;
} StreamScale;
StreamScale stream_take_scale(Graph *g, Arena *scratch, Stream *s, ExprId read);
/* Whether e is the same for all points of a launch, of whose tensors it needs none. */
bool stream_known_at_launch(const Graph *g, Arena *scratch, ExprId e);
/* Finds the divisor and scale of a score whose node is complete. */
void stream_find_scale(Graph *g, Arena *scratch, StreamScore *s);
/* --- tasks.c --- */
ExprId stream_group_rows(Graph *g, const Stream *s);
/* How many blocks of a GPU its rows make, of at most so many rows each. */
ExprId stream_blocks(Graph *g, const Stream *s, unsigned rows);
/* --- range.c --- */
/* Splits the cascade's range and guard into lo, hi and rest. */
void stream_ranges(Graph *g, Arena *scratch, Stream *s);
/* Whether an end of a range is seen to be no less than 0. */
bool stream_is_natural(const Graph *g, ExprId e);
/* Whether a row's range ends where `all` elements do, or a whole tile: then tiles have no element more, but those that copies
 * make 0. */
bool stream_ends_with_tile(Graph *g, const Stream *s, ExprId all, unsigned elements);

/* --- long_terms.c --- */
/* Whether sums of powers take less where they are long (point/long_sums.h); makes the terms those of such. */
bool stream_long_sums_gain(const Graph *g, const Stream *s);
void stream_mark_long_sums(Graph *g, Stream *s);

/* --- while a kernel is built --- */
typedef struct {
	Point l;
	const Stream *s;
	const KernelPlan *plan;
	unsigned vectors;         /* of a strip of rows; of a thread of a block: its rows, as scalars */
	ValId row_of[STREAM_MAX_VECTORS]; /* of such a thread: which they are */
	bool masked;              /* some terms may be absent in the tile at work */
	/* sizes as launch expressions */
	ExprId rows, terms[STREAM_MAX_SCORES], columns, padded;
	ExprId power[STREAM_MAX_SCORES]; /* what STREAM_POWER + k stands for; 0: for nothing */
	ValId move[STREAM_MAX_SCORES][STREAM_MAX_VECTORS]; /* what STREAM_MOVE + k is for the row; 0: nothing is named so */
	ExprId apart[2];          /* what STREAM_APART and the next stand for; 0: for nothing */
	double raised;            /* results are made of sums that are so many powers of 2 too large, as quotients (quotient.c) */
	bool from_zero;           /* wide accumulators begin with +0, as they are without terms */
	bool beyond;              /* products take values behind a row's last element, with a weight of 0 */
	ExprId group;             /* rows of a group, at least 1 and no more than there are; 0: all have the same elements */
	uint32_t shared;          /* axes of a row, as bits: blocks of a GPU that differ in these alone read the same of what they don't keep */
	/* views of scratch memory */
	ValId query[STREAM_MAX_SCORES]; /* (strip, term, row) */
	ValId unturned[STREAM_MAX_SCORES]; /* of a strip (row, term), where memory has it so; 0: it has not */
	ValId key[STREAM_MAX_SCORES];   /* (piece of elements, piece of terms, element, term) */
	ValId panel[STREAM_MAX_SCORES]; /* (element, row) */
	ValId value[MAX_ACCS];          /* wide: (element, column) */
	ValId weight[MAX_ACCS];         /* wide: (element, row); kept: the same */
	ValId state[MAX_ACCS];          /* (strip, row); wide: (strip, column, row) */
	ValId factor[MAX_ACCS];         /* wide: (row), by which the columns move when they are loaded next */
	ValId value_tiles[MAX_ACCS], state_tiles[MAX_ACCS]; /* the same with columns as pieces of a tile's */
	ValId turned[STREAM_MAX_OUT];   /* of a strip (column, row), where memory has rows of columns; else 0 */
	ValId ends;                     /* (lo or hi, strip, row) */
	ValId hull;                     /* (strip, least lo, most hi, most lo, least hi) */
	ValId scaled[STREAM_MAX_SCORES]; /* bool: the divisor is a power of two, so its reciprocal gives the same bits */
	ValId finite;                   /* bool: the values of the tile are */
	/* with plan->pairs, there too: pairs of bf16 and least magnitudes (pairs.c) */
	ValId query_pairs[STREAM_MAX_SCORES];  /* (strip, group, pair, row) */
	ValId key_pairs[STREAM_MAX_SCORES];    /* (piece of elements, group, element, pair) */
	ValId panel_tiles[STREAM_MAX_SCORES];  /* the panel with elements as pieces of a tile's */
	ValId value_pairs[MAX_ACCS];           /* (pair of elements, column), or as value_dot */
	ValId value_dot[MAX_ACCS];             /* the same (piece of columns, group, column, pair) */
	ValId weight_pairs, weight_dot;        /* of a strip: (pair of elements, row), (group, pair, row) */
	ValId product;                         /* of a tile: (column, row) */
	ValId query_least[STREAM_MAX_SCORES];  /* (strip) */
	ValId key_least[STREAM_MAX_SCORES], value_least[MAX_ACCS];
	/* at work */
	ValId row0, row1, strip, nstrip; /* the task's rows; the strip, and how many there are */
	ValId first, count;       /* the tile's first element, and how many it has */
	ValId begin, end;         /* of the task's range of elements */
	ValId some[STREAM_MAX_VECTORS]; /* once all are in: bool, whether the row had an element; 0: not asked */
	ValId lo[STREAM_MAX_VECTORS], hi[STREAM_MAX_VECTORS]; /* of the strip's rows, where ragged */
	ValId run[MAX_ACCS][STREAM_MAX_VECTORS], old[MAX_ACCS][STREAM_MAX_VECTORS]; /* accumulators */
	ValId anchor_new[MAX_ANCHORS][STREAM_MAX_VECTORS], anchor_old[MAX_ANCHORS][STREAM_MAX_VECTORS];
	ValId column[MAX_ACCS];   /* wide, of a thread of a block: the state at the column at work */
} StreamBuild;

static inline ValId
stream_int(const StreamBuild *b, int64_t v)
{
	return tir_int(b->l.tir, DT_I64, v);
}

/* The plan of the kernel's nodes, and everything that they read, declared; every launch expression that regions use,
 * bound where all of them see it. */
Stream *stream_begin(StreamBuild *b, Graph *g, Arena *scratch, const Places *places, Kernel *kernel);
void stream_bind_launch(StreamBuild *b);
/* Whether rows may lack elements of a tile that is visited. */
static inline bool
stream_may_lack_terms(const StreamBuild *b)
{
	return b->s->ragged || b->s->rest;
}
/* Vectors along the rows again; the v-th of the strip: sets the row axis and the mask. */
void stream_by_rows(StreamBuild *b);
void stream_at_vector(StreamBuild *b, unsigned v);
/* Elements are those of the task's group of rows, if they are any group's. */
void stream_at_group(StreamBuild *b);
/* A vector of the type, whatever it is. */
ValId stream_vector(StreamBuild *b, ValId v);
/* --- scale.c --- */
void stream_bind_divisors(StreamBuild *b);
/* Which score accumulator acc is the greatest or least of, if finish only scales the sum by a number above 0 wherever there are
 * least .. most terms: the greatest sum is then the greatest score's; -1: none such. */
int stream_extreme_of(StreamBuild *b, unsigned acc, int64_t least, int64_t most);
/* Whether no score k is 2^127 or more whose sum is a number, with so many terms. */
bool stream_scores_are_small(StreamBuild *b, unsigned k, int64_t least, int64_t most);
/* What finish makes of the sum of score k, at the point; as this node of it, where that is known to be right. */
ValId stream_finished(StreamBuild *b, unsigned k, ValId sum);
ValId stream_finished_as(StreamBuild *b, const Node *node, unsigned k, ValId sum);
/* --- low.c --- */
/* Notes the differences that are no more than 0, whatever the data. */
void stream_note_low(StreamBuild *b);
/* --- memory.c --- */
void stream_bind_sizes(StreamBuild *b);
void stream_bind_memory(StreamBuild *b);
/* --- turn.c --- */
/* Whether vectors of rows lie across the memory of the factor, or of the result, and others do not. */
bool stream_turns_query(StreamBuild *b, unsigned score);
bool stream_turns_out(const StreamBuild *b, const StreamOut *out);
/* unturned to query, for the strip; turned to the result itself. */
void stream_turn_query(StreamBuild *b, unsigned score);
void stream_turn_out(StreamBuild *b, unsigned out);
/* --- pack.c --- */
void stream_pack_queries(StreamBuild *b);
void stream_pack_keys(StreamBuild *b);
void stream_clear_values(StreamBuild *b);
void stream_pack_values(StreamBuild *b);
ValId stream_below(StreamBuild *b, ValId i, ValId end); /* i + 0, 1, … < end, a mask of the lanes */
ValId stream_term_at(StreamBuild *b, unsigned score, ValId t); /* term t as an index of its axis */
/* How many elements the sums have at least, of all parts together, over dims (long_terms.c). */
ExprId stream_least_elements(StreamBuild *b);
/* --- tile.c: register tiles --- */
void stream_scores(StreamBuild *b);
void stream_columns(StreamBuild *b, unsigned acc);
void stream_vector_columns(StreamBuild *b, unsigned acc);
/* Rows of a register tile of vectors, a divisor of the plan's. */
unsigned stream_vector_rows(const KernelPlan *p);
/* --- pairs.c: the same by DOT, where plan->pairs --- */
/* Pairs of elements in a group of the columns' product, and the terms in one of a score's. */
unsigned stream_element_pairs(const StreamBuild *b);
unsigned stream_group_terms(const StreamBuild *b);
/* A strip's queries and a tile's values, from the panels that are packed already; a tile's keys as they are. */
void stream_pair_queries(StreamBuild *b, unsigned score);
void stream_pair_keys(StreamBuild *b, unsigned score);
void stream_pair_values(StreamBuild *b, unsigned acc);
void stream_dot_scores(StreamBuild *b, unsigned score);
void stream_dot_columns(StreamBuild *b, unsigned acc);
/* --- fold.c --- */
/* What an accumulator holds of no terms; two of them joined; one as it was, at the anchors as they are. */
ValId stream_unit(StreamBuild *b, unsigned acc);
ValId stream_joined(StreamBuild *b, unsigned acc, ValId x, ValId y);
ValId stream_moved(StreamBuild *b, unsigned acc, unsigned v, ValId old);
/* The narrow accumulators of a stage, so moved; the anchors that are made of those of a stage. */
void stream_move_narrow(StreamBuild *b, unsigned stage);
void stream_make_anchors(StreamBuild *b, unsigned stage);
void stream_place_anchors(StreamBuild *b, uint32_t base, ValId (*value)[STREAM_MAX_VECTORS], unsigned v);
/* What places all that a move is made of; the factor of a wide accumulator's, of one that has it. */
void stream_place_move(StreamBuild *b, unsigned v, ValId column);
ValId stream_move_factor(StreamBuild *b, unsigned acc, unsigned v);
/* Whether the v-th vector's rows have element j, the one at the point; 0: all do. */
ValId stream_present(StreamBuild *b, unsigned v, ValId j);
/* Whether what else must hold does, at the point; 0: nothing else must. */
ValId stream_rest(StreamBuild *b);
/* STREAM_KEPT + acc. */
ExprId stream_kept(StreamBuild *b, unsigned acc);
/* STREAM_POWER + score; STREAM_MOVE + score. */
ExprId stream_power(StreamBuild *b, unsigned score);
ExprId stream_move(StreamBuild *b, unsigned score);
/* Sets `some`. */
void stream_find_some(StreamBuild *b);
void stream_start(StreamBuild *b);
void stream_load_state(StreamBuild *b);
/* One tile into the strip's state, but for the columns; then those, with absent terms left out one by one. */
void stream_fold(StreamBuild *b);
void stream_columns_where(StreamBuild *b, unsigned acc);
/* What a wide accumulator's columns are multiplied by before the tile's are added. */
ValId stream_factor(StreamBuild *b, unsigned acc, unsigned v);
/* IVARs of the state at this vector of rows: run or old, and wide ones at the column where there is one. */
void stream_place_state(StreamBuild *b, ValId (*narrow)[STREAM_MAX_VECTORS], unsigned v, ValId column);
/* --- finish.c --- */
void stream_finish(StreamBuild *b);

#endif
