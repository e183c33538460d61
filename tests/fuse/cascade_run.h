/* cascade_run.h: a cascade computed two ways on the same data, in double: as the graph defines it, member
 * after member, and by the expressions that passes/fuse made, over random trees of merges.
 *
 * A graph is text as graph_read takes it; its members are all its reductions. Every dim but those of the
 * streamed axis has one value, and parallel axes are 0. */
#ifndef TEXO_TESTS_FUSE_CASCADE_RUN_H
#define TEXO_TESTS_FUSE_CASCADE_RUN_H

#include "passes/fuse/algebra.h"

enum { MAX_ELEMENTS = 512 };

typedef struct {
	Graph *g;
	Arena *arena;
	Cascade c;
	Refusal why;
	bool derived;
	bool typed;                /* states in the types they have, not over the reals */
	unsigned n;                /* elements of the stream */
	double (*data)[MAX_ELEMENTS]; /* by TensorId: inputs, along the stream or [0] */
	double want[MAX_MEMBERS], size[MAX_MEMBERS]; /* of the definition; the sum of |terms| */
	double got[MAX_MEMBERS];
} CascadeRun;

void run_begin(CascadeRun *r, Arena *a, const char *text, const CascadeOptions *o);
/* What the refusal or the plan says. */
const char *run_text(const CascadeRun *r);
/* Fails the test with this message and what the plan says. */
void run_fail(const CascadeRun *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Fills `want` and `size`. */
void run_definition(CascadeRun *r);
/* Fills `got` from states merged along a random tree with empty blocks; the same for the same seed. */
void run_merged(CascadeRun *r, uint64_t seed);
/* Three states of random parts, some of them empty: the members' values by (a b) c in `got`, by a (b c) in
 * `right`; false when the empty state is no unit, to the bit. */
bool run_laws(CascadeRun *r, uint64_t seed, double *right);
uint32_t run_random(uint64_t *seed);
/* How many elements the guard leaves. */
unsigned run_elements(const CascadeRun *r);
/* The sum over the stream of |G * H| of a member's terms at the definition's values; of |term| without. And
 * of |G| alone: what an absolute error of H is multiplied with. */
double run_terms(const CascadeRun *r, unsigned member);
double run_factors(const CascadeRun *r, unsigned member);
/* The input of this name. */
double *run_input(const CascadeRun *r, const char *name);
/* The place of the member of this name. */
unsigned run_member(const CascadeRun *r, const char *name);

#endif
