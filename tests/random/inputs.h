/* inputs.h: random data for a random program, and memory that notices strangers. */
#ifndef TEXO_TESTS_RANDOM_INPUTS_H
#define TEXO_TESTS_RANDOM_INPUTS_H

#include "ir/eval.h"
#include "program.h"

/* Elements of a tensor at the program's sizes. */
int64_t rp_count(const RandomProgram *p, const RpTensor *t);
/* Packed random data of an input: floats in -2..2 (small integers for exact programs), positions
 * inside their dim (but for stray programs), any integers else. */
void *rp_fill(const RandomProgram *p, const RpTensor *t, Arena *a, uint64_t *rng);

enum { FENCE_SLOTS = 40, FENCE_BYTES = 2 << 20 };

/* Slots between pages that nobody may touch. */
typedef struct {
	uint8_t *base;
	size_t page;
} Fence;

void fence_open(Fence *f);
/* n bytes in a slot, ending at the page after it or beginning at the page before it, with a known
 * pattern on the open side; filled with `fill`. */
void *fence_place(Fence *f, unsigned slot, size_t n, size_t align, bool at_end, uint8_t fill);
/* Whether the pattern still stands. */
bool fence_intact(const Fence *f, unsigned slot, const void *data, size_t n);

#endif
