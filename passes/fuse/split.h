/* split.h: what the files of the pass split_folds share: split_folds.c finds folds that are done in parts and makes
 * parts of one fold, split_cascade.c of several that read one another, split_stream.c of
 * those that sums of products are folded by as these are computed. */
#ifndef TEXO_PASSES_FUSE_SPLIT_H
#define TEXO_PASSES_FUSE_SPLIT_H

#include "passes/fuse/algebra.h"

typedef struct {
	Graph *g;
	PassCtx *cx;
	uint32_t nnode;        /* that there were */
	VEC(uint32_t) owner;   /* by new node: the node that it comes before */
	/* the fold at work */
	uint32_t at;
	Node n;
	unsigned cut;          /* the axis of which parts are made */
	ExprId chunk, count;   /* its terms in a part; the parts */
	bool maybe_empty;
	bool again;             /* its terms are gone through once more, by folds that read it */
	bool with_rows;         /* a fold of columns of what is folded along rows as well */
	const bool *row_reads;  /* by TensorId: what folds along rows read */
	bool reads, reads_more; /* tensors; others than folds */
} Split;

/* Whether the fold s->at is done in parts, along its one range, and no part is ever empty. */
bool split_has_full_parts(Split *s);
/* Split.chunk and Split.count, by the sizes of the fold alone. */
void split_choose_parts(Split *s);
/* An expression of the fold at work, over the axes of its parts: these come first. */
ExprId split_moved(const Split *s, ExprId e);
/* The fold of this body, which is over the parts' axes, over each part; present: which parts have a term, 0 for those
 * that all have. */
TensorId split_add_part(Split *s, Monoid monoid, ExprId body, DType t, TensorId present, const char *what);
/* Keeps a fold of columns as it is, for kernels that hold them. */
void split_keep_whole(Split *s, const Node *n);
/* A new node before node s->at, named after the fold at work. */
TensorId split_add_node(Split *s, const Node *n, const char *what, DType t, const ExprId *extent);

/* Folds that are done in the same parts. */
typedef struct {
	uint32_t at[MAX_MEMBERS]; /* nodes, ascending */
	unsigned n;
	Cascade cascade;          /* of one pass, along one range, the same for all rows */
	uint32_t base;            /* axes that everything of it has, as bits */
	ExprId lo, hi;            /* in its axes: which terms a row has of that range; 0: all */
	bool always;              /* in parts; else a launch may have the folds whole */
} SplitChain;

/* The same for the members of such a cascade. */
bool split_is_chain(const Graph *g, const Cascade *c);
/* Does them, where the fold at work is the first and its parts are chosen. */
void split_chain(Split *s, const SplitChain *c);

/* Does the folds of what a GPU streams by roles; how many groups of them, and by node whether it is in one. */
uint32_t split_streams(Split *s, bool *taken);
/* Does the folds that read one another; how many groups of them, and by node whether it is in one. */
uint32_t split_cascades(Split *s, bool *taken);

#endif
