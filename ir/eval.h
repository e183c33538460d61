/* eval.h: the oracle. Evaluates a graph on real data: for every element the value in f64 and a
 * bound on how far a correct implementation in the graph's mode may be from it
 * (RELIABILITY.md 3.2), in exact integers for integer types. Shares no access, domain or dtype code
 * with the code generator or the TIR interpreter. */
#ifndef TEXO_IR_EVAL_H
#define TEXO_IR_EVAL_H

#include "ir/tg.h"

typedef struct {
	double re, im;   /* floats: the value; c64: both parts */
	double err, ierr; /* |got - value| <= err for every correct implementation; 0: exactly it;
	                   * INFINITY: nothing is known. Integers: 0 unless ambiguous */
	int64_t i;       /* integers and bool: the value (u64 as bits) */
	AccessId fault;  /* the access whose failure this value carries, or 0 */
	bool ambiguous;  /* a comparison within its bounds decided it */
	bool skip;       /* outside the node's domain: unspecified */
	AccessId cut;    /* a range read from data that was cut for this value, or 0 */
} EvalValue;

typedef struct {
	DType dtype;
	unsigned rank;
	int64_t extent[TG_MAX_RANK];
	int64_t count;      /* product of the extents */
	EvalValue *at;      /* count values, row-major */
} EvalTensor;

typedef enum {
	EVAL_OK, EVAL_CHECK_FAILED, EVAL_BAD_INPUT, EVAL_TOO_LARGE
} EvalStatus;

typedef struct {
	/* in: one per Graph.param: row-major packed storage in the parameter's dtype, and its shape */
	const void *const *data;
	const int64_t *const *shape;
	/* Terms of a reduction are taken to be combined in any order; with strict, in ascending order. */
} EvalInputs;

typedef struct {
	EvalTensor *result;  /* one per Graph.result */
	int64_t *dim;        /* by DimId */
	uint32_t failed;     /* EVAL_CHECK_FAILED: index into Graph.check */
	AccessId fault;      /* the first fault of a result in row-major order, or 0 */
	bool *failing;       /* by AccessId: it failed where it was evaluated, needed there or not */
	AccessId cut;        /* a cut range that removed something where its value was needed, or 0 */
	const char *message;
} EvalOutputs;

/* Everything in `out` is allocated in a. max_values bounds the elements of any one tensor that is
 * computed and the terms evaluated (0: 2^32). */
EvalStatus graph_eval(const Graph *g, Arena *a, const EvalInputs *in, int64_t max_values, EvalOutputs *out);

/* Element n of packed storage of type t, as a value without error; and back (rounded once, nearest
 * even, LANGUAGE.md's casts). */
EvalValue eval_load(DType t, const void *packed, int64_t n);
/* An integer of type t, of which i has the bits. */
double eval_integer(DType t, int64_t i);
void eval_store(DType t, void *packed, int64_t n, EvalValue v);

/* The distance of neighbouring values of float type t at |x|. */
double eval_ulp(DType t, double x);

typedef struct {
	int64_t mismatches, ambiguous, count;
	int64_t worst;          /* linear index of the element with the largest err/bound ratio */
	double worst_got, worst_want, worst_bound, worst_ratio, worst_ulp;
} EvalCompare;

/* Compares packed storage with the oracle: |got - v| <= err + 1 ulp of the dtype; integers equal;
 * NaN and infinities must agree; elements that are skip are passed over. */
void eval_compare(const EvalTensor *want, const void *got, EvalCompare *out);

#endif
