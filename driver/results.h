/* results.h: what a graph computed: packed tensors, one per Graph.result, from whichever device. */
#ifndef TEXO_DRIVER_RESULTS_H
#define TEXO_DRIVER_RESULTS_H

#include "driver/binding.h"
#include "driver/cache/store.h"
#include "driver/compile.h"
#include "ir/eval.h"

typedef struct {
	const char *name;
	DType dtype;
	unsigned rank;
	int64_t shape[TG_MAX_RANK];
	int64_t count, bytes;
	void *data;
} ResultTensor;

typedef struct {
	ResultTensor *at;
	uint32_t n;
	DiagCode failed; /* a launch check or access that failed: nothing in `at` counts; else DIAG_NONE */
} Results;

/* Names, types and shapes of the graph's results; data stays NULL. */
bool results_prepare(Session *s, const Binding *b, Results *out);

/* The evaluator on the bound inputs, which it only reads. A failed check or access is added to
 * diags, out->failed set, and true returned. */
bool run_oracle(Session *s, const Binding *b, Diags *diags, EvalOutputs *out, DiagCode *failed);
/* Its values, rounded to the results' types. Inouts of the binding keep their old values. */
bool results_of_oracle(Session *s, const Binding *b, const EvalOutputs *values, Results *out);

/* What is launched: an artefact, and where the code of its kernels is kept that is made when they are prepared (NULL:
 * nowhere). */
typedef struct {
	const CodegenResult *code;
	const Store *kept;
} LaunchCode;

/* Compiled code on this machine's processor, or a GPU. Inouts of the binding get their new values. */
bool run_cpu(Session *s, const Binding *b, const LaunchCode *code, Diags *diags, Results *out);

#endif
