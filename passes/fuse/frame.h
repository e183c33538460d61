/* frame.h: a cascade while it is derived, inside passes/fuse only. */
#ifndef TEXO_PASSES_FUSE_FRAME_H
#define TEXO_PASSES_FUSE_FRAME_H

#include "passes/fuse/product.h"

typedef struct {
	Graph *g;
	Arena *scratch;
	const CascadeOptions *options;
	Cascade *out;
	ExprId body[MAX_MEMBERS], finish[MAX_MEMBERS]; /* in the cascade's axes, pointwise nodes inlined */
	ExprId read[MAX_MEMBERS];    /* how a member's element is read, in the cascade's axes */
	bool narrowed[MAX_MEMBERS];  /* a factor of the member may be rounded, which its body here doesn't say */
	uint8_t *meets;              /* by TensorId: whether it depends on a member; see frame.c */
	int8_t index[MAX_MEMBERS][TG_MAX_AXES]; /* axes of members as axes of the cascade; -1: not known yet */
	unsigned member, pass;       /* what is being derived */
	Refusal why;
} Frame;

/* Fills the axes, ranges and guard of the cascade, and body, finish and read of each member. */
bool frame_build(Frame *f, const TensorId *members, unsigned n);
/* The member that e, a READ in the cascade's axes, reads; -1: none. */
int frame_member_read(const Frame *f, ExprId e);
bool frame_refuse(Frame *f, RemarkId why, ExprId at, TensorId member); /* false */

/* --- derive_sum.c, derive_extreme.c: the value of the member being derived, over STATE_A and reads of
 * members; 0 when refused --- */
ExprId derive_sum(Frame *f, Algebra *a, ExprId body, CascadeMember *m);
ExprId derive_extreme(Frame *f, Algebra *a, ExprId body, CascadeMember *m);

/* --- accumulate.c --- */
/* The placeholder of an accumulator of the pass with this term; an equal one is shared. 0: no room. */
ExprId add_acc(Frame *f, Algebra *a, Monoid monoid, DType t, ExprId term);
void set_rebase(Frame *f, ExprId acc, ExprId rebase);
/* The number of elements so far, i64; and whether there was any. */
ExprId count_of(Frame *f, Algebra *a);
ExprId seen_of(Frame *f, Algebra *a);
/* How an anchor is kept finite, so that differences of infinite ones are not NaN: above the least number, below the largest, or the
 * least number for what is no greater and for no number; or as it is. */
typedef enum { END_BELOW = -1, END_NONE, END_ABOVE, END_UNKNOWN } AnchorEnd;
/* The anchor for y-expression t, as ANCHOR_NEW + k. -1: no room. */
int add_anchor(Frame *f, Algebra *a, ExprId t, AnchorEnd end);
/* e with reads of members replaced by their values. */
ExprId with_values(Frame *f, ExprId e);
ExprId placeholder(Graph *g, uint32_t base, unsigned k, DType t);

#endif
