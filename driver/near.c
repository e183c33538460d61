/* near.c: Levenshtein distance with transpositions, over words of up to 63 bytes. */
#include "driver/near.h"

#include <string.h>

enum { MAX_WORD = 63 };

static unsigned char
lower(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static unsigned
smallest(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;
	return m < c ? m : c;
}

static unsigned
distance(const char *a, size_t n, const char *b, size_t m)
{
	unsigned row[3][MAX_WORD + 1];
	unsigned *above2 = row[0], *above = row[1], *here = row[2];
	for (size_t j = 0; j <= m; j++)
		above[j] = above2[j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		here[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned differ = lower(a[i - 1]) != lower(b[j - 1]);
			here[j] = smallest(above[j] + 1, here[j - 1] + 1, above[j - 1] + differ);
			if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
				here[j] = smallest(here[j], above2[j - 2] + 1, here[j]);
		}
		unsigned *free_row = above2;
		above2 = above;
		above = here;
		here = free_row;
	}
	return above[m];
}

void
near_offer(Near *near, const char *candidate)
{
	size_t n = strlen(near->word), m = strlen(candidate);
	if (near->noffered++ < sizeof near->first / sizeof *near->first)
		near->first[near->noffered - 1] = candidate;
	if (n == 0 || n > MAX_WORD || m > MAX_WORD)
		return;
	unsigned d = distance(near->word, n, candidate, m);
	if (d > (m < 3 ? 1 : (m + 2) / 3) || d >= m)
		return;
	unsigned at = near->n;
	while (at > 0 && near->distance[at - 1] > d)
		at--;
	if (at == 3)
		return;
	unsigned last = near->n < 3 ? near->n++ : 2;
	for (unsigned i = last; i > at; i--) {
		near->best[i] = near->best[i - 1];
		near->distance[i] = near->distance[i - 1];
	}
	near->best[at] = candidate;
	near->distance[at] = d;
}

const char *
near_text(const Near *near, Arena *a)
{
	switch (near->n) {
	case 0:
		return NULL;
	case 1:
		return arena_text(a, "did you mean '%s'?", near->best[0]);
	case 2:
		return arena_text(a, "did you mean '%s' or '%s'?", near->best[0], near->best[1]);
	}
	return arena_text(a, "did you mean '%s', '%s' or '%s'?", near->best[0], near->best[1], near->best[2]);
}

const char *
near_or_all(const Near *near, Arena *a, const char *lead)
{
	enum { SHOWN = sizeof near->first / sizeof *near->first };
	const char *s = near_text(near, a);
	if (s || near->noffered == 0)
		return s;
	s = lead;
	for (unsigned k = 0; k < near->noffered && k < SHOWN; k++)
		s = arena_text(a, "%s%s %s", s, k ? "," : "", near->first[k]);
	return near->noffered > SHOWN ? arena_text(a, "%s, ...", s) : s;
}
