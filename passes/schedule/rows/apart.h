/* apart.h: what is not the same for lanes side by side: apart.c. */
#ifndef TEXO_PASSES_SCHEDULE_ROWS_APART_H
#define TEXO_PASSES_SCHEDULE_ROWS_APART_H

#include "passes/schedule/rows/rows.h"

/* The words that each lane along these axes takes beside what it holds. */
unsigned apart_words(const Graph *g, Arena *scratch, const Rows *r, uint32_t lanes);
/* The same of lanes that are rows of columns, along the last row axis, where `along` is that axis. */
unsigned apart_columns_words(const Graph *g, Arena *scratch, const Rows *r, uint32_t along);
/* Whether a function with branches of many steps is computed for each, as of an angle that may have any size. */
bool apart_turns(const Graph *g, Arena *scratch, const Rows *r, uint32_t lanes);
/* Whether each has an index that is made of the thread's number; *addresses: or an address. */
bool apart_by_number(const Graph *g, Arena *scratch, const Rows *r, uint32_t lanes, bool *addresses);
/* Whether elements of a few bits are read along these axes, several of which share a byte: each lane finds its own. And whether rows
 * are found by more than sums of axes. */
bool apart_packed(const Graph *g, Arena *scratch, const Rows *r, uint32_t lanes, bool *divides);

#endif
