/* cancel.h: what may be far less than its parts, inside passes/fuse only. */
#ifndef TEXO_PASSES_FUSE_CANCEL_H
#define TEXO_PASSES_FUSE_CANCEL_H

#include "passes/fuse/frame.h"

/* Whether terms of one element may cancel that would be summed apart. */
bool terms_cancel(const Algebra *a, const Sum *s);
/* The body as one term, all of it closed; refuses where some of its terms are no plain ones. */
bool close_terms(Algebra *a, ExprId body, Sum *s);
/* Whether a part of y has a function in it, whose bound is never 0. */
bool is_inexact(const Algebra *a, ExprId e);
/* How an anchor of this part of y is kept finite. */
AnchorEnd end_of(const Frame *f, ExprId atom);
/* Whether a mixed factor's sums may be kept at anchors of its parts of y; refuses where not. */
bool keeps_at_anchors(Frame *f, Algebra *a, ExprId base);

#endif
