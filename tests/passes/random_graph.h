/* random_graph.h: a random graph of verified nodes of every kind, from a seed. */
#ifndef TEXO_TESTS_PASSES_RANDOM_GRAPH_H
#define TEXO_TESTS_PASSES_RANDOM_GRAPH_H

#include "graph_case.h"

typedef struct {
	unsigned pointwise, reductions, scatters, recurrences, domains, gathers, optional, ranges, inouts, empty;
} RandomCounts;

void random_graph(Case *c, uint64_t seed, RandomCounts *counts);

#endif
