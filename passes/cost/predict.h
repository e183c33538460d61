/* predict.h: which of the plans that a program has for the same nodes a launch takes at known sizes, how long that is
 * predicted to take, and what it waits for: what `texo explain` shows, by the same expressions that a launch evaluates. */
#ifndef TEXO_PASSES_COST_PREDICT_H
#define TEXO_PASSES_COST_PREDICT_H

#include "passes/cost/cost.h"

typedef struct {
	const Machine *machine;
	const Program *program;
	const LaunchEnv *env; /* every dim is known; its figures are the machine's */
	UseTable *uses;
	const bool *faulty;   /* by tensor */
	Arena *scratch;
	unsigned threads;
} Predict;

typedef struct {
	uint32_t kernel; /* which runs; with `more` the first of them, of several nodes, each on its own */
	uint32_t more;
	double us;
	CostBound bound; /* of the one that takes longest */
} Predicted;

/* Of kernel k and those behind it that stand in for it; where memory lies as they ask. */
Predicted predict_unit(const Predict *x, uint32_t k);

#endif
