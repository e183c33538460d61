/* slots.h: a stream (stream.h) by the threads of a GPU's block: what a thread has of a tile, its slots, are some rows
 * by some elements, as scalars. Threads that have the same rows, and other elements, are lanes of a warp. */
#ifndef TEXO_PASSES_SCHEDULE_STREAM_SLOTS_H
#define TEXO_PASSES_SCHEDULE_STREAM_SLOTS_H

#include "passes/schedule/stream/stream.h"

enum { SLOTS_MAX_ELEMENTS = 48, SLOTS_MAX = 96 };

typedef struct StreamSlots {
	StreamBuild b;
	unsigned nelement;
	uint32_t across;          /* bits of a thread's number in which threads of the same rows differ */
	bool reciprocal;          /* scores are multiplied by the reciprocal of what they are divided by */
	int64_t least, most;      /* then: of how many terms */
	unsigned extreme[STREAM_MAX_SCORES]; /* the anchor that b.power is taken from */
	bool by_score[STREAM_MAX_SCORES]; /* it is taken of scores as they are: they are something else than sums by a number */
	bool plain[STREAM_MAX_SCORES]; /* such a power is one of 2 that has no subnormal results */
	ValId by[STREAM_MAX_SCORES];   /* by what its sums are multiplied, or half of that where it is not plain; 0: each tile makes it */
	double lift[STREAM_MAX_SCORES]; /* then: made so many powers of 2 larger, as what adds it up is: slots_lower takes it back, unless b.raised */
	int score_of[MAX_ACCS];   /* whose sums it folds, and finishes the one that is left (scale.c); -1: the scores themselves */
	bool by_sum[MAX_ACCS];    /* an absent element is nothing to it, and has a weight of 0, where its sum counts as -inf */
	unsigned nlate;           /* of a row's elements, the last so many whose powers wait for slots_late */
	bool joined[MAX_ACCS];    /* narrow: lanes have the sum over all of them; else each its own part until the end */
	/* of the tile; by row and element: row * nelement + element */
	ValId from;                        /* element e is from + offset[e] */
	unsigned offset[SLOTS_MAX_ELEMENTS];
	ValId apart[2][STREAM_MAX_VECTORS]; /* what b.apart is of the first */
	ValId at[SLOTS_MAX_ELEMENTS];      /* the same, or an element that there is in its place */
	bool exact;               /* of tiles, whether all their elements are there, and present for all rows */
	ValId weight[MAX_ACCS][SLOTS_MAX]; /* of wide accumulators: 0 where the element is absent; of late ones the power's exponent */
	ValId factor[MAX_ACCS][STREAM_MAX_VECTORS]; /* by which a wide accumulator's columns are multiplied; 0: by nothing */
} StreamSlots;

/* Finds out what lanes have to join, and which powers they make their own way: s, which is the stream, then has those by name. */
void slots_begin(StreamSlots *x, Stream *s);
/* Makes what sums are multiplied by for powers, which is the same for all tiles: where no loop has begun. */
void slots_scales(StreamSlots *x);
/* From then on the last elements of a row, so many, have the exponents of their powers for weights, and are in no sum of powers, if
 * such sums can wait for them: slots_late makes those powers, before the state is used or the next tile folded. */
void slots_delay(StreamSlots *x, unsigned nelement);
void slots_late(StreamSlots *x);
/* Whether the anchor is the greatest score, or of scores without end the least number. */
bool slots_is_greatest(const StreamSlots *x, unsigned anchor);
/* Whether acc's terms or weights are powers as they are, which it adds up. */
bool slots_takes_power(const StreamSlots *x, unsigned acc);
/* What powers of score n take: of a row, where m is the anchor; what sums move by between two of those; of all rows. By which power of
 * 2 one is, where that is taken of scores. */
ValId slots_power_from(StreamSlots *x, unsigned n, ValId m);
ValId slots_move_between(StreamSlots *x, unsigned n, ValId before, ValId now);
ValId slots_exponent(StreamSlots *x, unsigned n, ValId score, ValId from);
ValId slots_power_scale(StreamSlots *x, unsigned n);
/* The tile at work: its slots' elements begin at `from`. */
void slots_enter(StreamSlots *x, ValId from);
/* What b.apart names: of the tile; in a slot, which is the point; of the element and row at the point (roles_apart.c). */
void slots_enter_apart(StreamSlots *x);
void slots_place_apart(StreamSlots *x, unsigned row, unsigned element);
ExprId stream_apart(const StreamBuild *b, unsigned down);
/* The sum of score k in a slot, as long as the tile is folded. */
typedef ValId SlotSum(StreamSlots *x, unsigned score, unsigned row, unsigned element);
/* The tile's slots into the state of the thread's rows, which is b.run and becomes it; weights and factors of the wide. */
void slots_fold(StreamSlots *x, SlotSum *sum);
/* What a sum in accumulator acc is as it is meant, or, where b.raised says so, as results take it; and those of the narrow ones, when all tiles are in. */
ValId slots_lowered(StreamSlots *x, unsigned acc, ValId sum);
void slots_lower(StreamSlots *x);
/* What all lanes have of the narrow accumulators. */
void slots_join(StreamSlots *x);
/* A wide accumulator's state at the row and column, at the anchors as they are now; b.column has what all were before. */
ValId slots_moved(StreamSlots *x, unsigned acc, unsigned row);
/* Narrow accumulators, from or to what a loop carries; how many. */
unsigned slots_carry(StreamSlots *x, ValId *carried, bool back);

/* --- quotient.c --- */
/* Results that divide sums of powers by one another divide them as they are; sets b.raised. */
void slots_divide(StreamSlots *x, Stream *s);

/* --- tasks.c: a task is so many rows of one point of the outer axes, and of one of some strips --- */
ExprId slots_blocks(StreamBuild *b, unsigned rows);
/* Binds the launch expressions that opening a task takes, where all of a kernel's roles see them. */
void slots_bind_tasks(StreamBuild *b, unsigned rows, ExprId strips);
ExprId slots_task_count(StreamBuild *b, unsigned rows, ExprId strips);
/* Makes the task the one at work: row0, row1 and the outer axes. Which strip it is. Those of most elements come first. */
ValId slots_open_task(StreamBuild *b, ValId task, unsigned rows, ExprId strips);
/* The same of one strip, where what b.shared says that rows share is not kept: tasks that follow each other have rows and elements
 * in common. */
void slots_bind_raster(StreamBuild *b);
void slots_open_raster(StreamBuild *b, ValId task, unsigned rows);

/* --- ends.c --- */
/* Whether the ends of a block's rows are asked of all of them, by a warp. */
bool slots_ask_all(StreamBuild *b);
/* Over the rows first .. last of the task: where the least range begins, and the most one ends; lane: the thread's in a warp that
 * asks. */
void slots_hull(StreamBuild *b, ValId first, ValId last, unsigned rows, ValId lane, ValId *begin, ValId *end);
/* The same of elements that all of these rows have; 0: it is not known. */
void slots_core(StreamBuild *b, ValId first, ValId last, unsigned rows, ValId lane, ValId *begin, ValId *end);
/* Whether later rows have more elements. */
bool slots_grow(StreamBuild *b);

/* --- exact.c: of the row at the point, whose state is b.run[..][0] --- */
/* Wide accumulator acc at the column at the point, made anew of the row's elements, one after the other; so where v, which products
 * gave, is no number, as an absent element's value may be, which products take all the same. Whether that may be. */
ValId slots_wide_anew(StreamBuild *b, unsigned acc);
ValId slots_wide(StreamBuild *b, unsigned acc, ValId v);
bool slots_may_be_none(const StreamBuild *b);
/* Whether there are results of rows, or of rows and columns; stores those, of which the accumulators are in b.column. */
bool slots_stores(const StreamBuild *b, bool wide);
void slots_store_outs(StreamBuild *b, bool wide, ValId column);
/* Of rows and columns, some columns side by side: whether their memory has them so; those from the point on, of which products
 * gave v, how many tensors: SLOTS_SIDE values of each at most; and stores these. */
enum { SLOTS_SIDE = 4 };
bool slots_side_by_side(const Graph *g, const Stream *s, const bool *stored);
unsigned slots_out_values(StreamBuild *b, unsigned acc, const ValId *v, unsigned side, ValId *to);
void slots_store_side(StreamBuild *b, const ValId *v, unsigned count, unsigned side);
/* Those of the nth of these tensors from the point on, as a vector, or the one there. */
void slots_store_nth(StreamBuild *b, unsigned nth, ValId v);
/* Whether those are made of the state alone, whatever the column, and have 16 or 32 bits. */
bool slots_leave_pieces(const StreamBuild *b);

#endif
