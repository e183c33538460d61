/* held.h: how much the lanes of a held row take of a thread's registers: held.c. */
#ifndef TEXO_PASSES_SCHEDULE_ROWS_HELD_H
#define TEXO_PASSES_SCHEDULE_ROWS_HELD_H

#include "passes/schedule/rows/plan.h"

/* The region's axes along the lanes. */
uint32_t held_lane_axes(const Rows *r);
/* The words of an element; those of the widest value that is computed for each lane. */
unsigned held_words_of(const Graph *g, TensorId t);
unsigned held_computed_words(const Graph *g, Arena *scratch, const Rows *r, uint32_t lanes);
/* By tensor, the phases that read it along the lanes, as bits; of one that is computed along them, that too. */
uint32_t *held_phases(const Graph *g, Arena *scratch, const Rows *r, uint32_t lanes);
/* The words that a lane has at once. */
unsigned held_words(const Graph *g, Arena *scratch, const Rows *r, uint32_t lanes, unsigned computed);
/* The registers of a thread that has so many lanes of a row that a cluster holds. */
unsigned held_registers(const Graph *g, Arena *scratch, const Rows *r, uint32_t lanes, unsigned each);
/* Of rows that blocks of a cluster hold: how many bits a lane may read before they are needed. */
unsigned held_early_bits(const Graph *g, Arena *scratch, const Rows *r, const KernelPlan *p);

#endif
