/* scatter.h: what the files of scatters share; scatter.c says what it does. */
#ifndef TEXO_PASSES_SCHEDULE_INDEX_SCATTER_H
#define TEXO_PASSES_SCHEDULE_INDEX_SCATTER_H

#include "passes/schedule/index/index.h"

/* What a block has of its terms (scatter_list.c): views of shared memory, of i32; all but `term` may be 0. */
typedef struct {
	unsigned asked, room;  /* so many terms are asked at once; so many it can hold, at least as many */
	ValId term, key;       /* from the first that it may have on; the element of each */
	ValId by_key, key_of;  /* terms by their elements, and those */
} TermList;

typedef struct {
	Point *l;
	const IndexTask *task;
	TensorId t;
	DType type;               /* of the accumulators */
	bool direct;
	bool runs;                /* the terms of a list are taken by their elements */
	ValId acc, acc_im, touched, words; /* views; all but acc may be 0 */
	ValId to[TG_MAX_RANK];    /* where the term at work goes */
	ValId met;                /* the word that its subscripts met */
	ValId away;               /* whether a term goes nowhere, as its guard then says in every lane; 0: none does */
	TermList list;            /* of a block; else nothing */
} Scatter;

static inline ValId
scatter_int(const Scatter *s, int64_t v)
{
	return tir_int(s->l->tir, DT_I64, v);
}

/* The reduced axes that are no axes of the task's, in order; how many. */
unsigned scatter_loops(const Scatter *s, unsigned *loop);
/* Where the term, or the vector of terms, goes, and what its subscripts met; the condition that it is an element of the
 * task, or 0 when that is known. */
ValId scatter_aim(Scatter *s, PointVal *words);
/* The same; what they met is reported. */
ValId scatter_target(Scatter *s);
/* Whether the term at the point may go to an element of the task, or to none at all. */
ValId scatter_may_take(Scatter *s);
/* Takes the term at the point, if it is the task's. */
void scatter_term(Scatter *s);

/* Of a block of so many threads. */
TermList scatter_list_size(unsigned threads);
/* Whether the node's terms can be taken by their elements, once the planes that it needs are known. */
bool scatter_has_runs(const Scatter *s);
/* Shared memory for a list, after all other buffers. */
void scatter_open_list(Scatter *s);
/* The innermost loop's terms from lo to hi, by lists. */
void scatter_take_lists(Scatter *s, unsigned axis, ValId lo, ValId hi);
/* The task's terms from lo to hi as one list: how many; *fits: whether it holds them all. */
ValId scatter_list_all(Scatter *s, unsigned axis, ValId lo, ValId hi, ValId *fits);
/* Takes a list of n terms, which count from `origin`, by their elements. */
void scatter_take_runs(Scatter *s, unsigned axis, ValId origin, ValId n);

#endif
