/* near.h: "did you mean": the known words closest to a misspelt one. */
#ifndef TEXO_DRIVER_NEAR_H
#define TEXO_DRIVER_NEAR_H

#include "ir/arena.h"

typedef struct {
	const char *word; /* what was written */
	const char *best[3];
	unsigned n, distance[3];
	const char *first[8]; /* those offered first */
	unsigned noffered;
} Near;

/* Offers a candidate; it is kept if few edits lead to it (a third of its length, at least one) and it
 * is among the three closest so far. Case does not count. */
void near_offer(Near *near, const char *candidate);
/* "did you mean 'a', 'b' or 'c'?" or NULL when nothing is close. */
const char *near_text(const Near *near, Arena *a);
/* The same, or what was offered where nothing is close: "its results are a, b"; lead is "its results are". */
const char *near_or_all(const Near *near, Arena *a, const char *lead);

#endif
