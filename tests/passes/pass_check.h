/* pass_check.h: one tensor pass on a graph given as text. The oracle evaluates the graph before and
 * after the pass on the same random inputs, many times; results must be the same: values, mostly to the bit
 * (a NaN is a NaN), faults and cuts.
 *
 * A dim's value is its hint. Inputs are small integers and fractions, with zeros of both signs,
 * infinities and NaN among floats. */
#ifndef TEXO_TESTS_PASSES_PASS_CHECK_H
#define TEXO_TESTS_PASSES_PASS_CHECK_H

#include "passes/pass_ctx.h"

typedef struct {
	uint32_t done;     /* what the pass returned */
	const char *after; /* the graph after it, as text */
	const char *again; /* after a second run; NULL: the same */
	const char *log;   /* remarks */
} PassResult;

/* Of the values: nothing, that both lie within the bounds of both, or their bits. */
typedef enum { PASS_KEEPS_NOTHING, PASS_KEEPS_BOUNDS, PASS_KEEPS_BITS } PassKeeps;

/* Fails the test when the text is no graph, the graph after the pass does not verify, or values are not what
 * the pass keeps. Everything is in a. fuel < 0: no limit. */
PassResult pass_check(Arena *a, TensorPassFn *pass, const char *text, int64_t fuel, PassKeeps keeps);
/* The same for a pass one body long: f(x...) is `body`, of type t, in graphs of the given mode; the body
 * afterwards, as text. See body_graph in pass_check.c for what a body may read. */
const char *body_after(Arena *a, TensorPassFn *pass, FpMode fp, const char *t, const char *body);

#endif
