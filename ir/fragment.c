/* fragment.c: the rows of fragments.def as layouts, and the four swizzles of shared memory operands. */
#include "ir/fragment.h"

#include <string.h>

const FragmentInfo fragment_info[FRAGMENT_COUNT] = {
#define FRAGMENT(id, text, bits, atom, what) [FRAGMENT_##id] = {text, bits, atom, what},
#include "ir/fragments.def"
};

bool
fragment_named(const char *text, size_t n, Fragment *f)
{
	for (unsigned i = 0; i < FRAGMENT_COUNT; i++)
		if (strlen(fragment_info[i].text) == n && memcmp(fragment_info[i].text, text, n) == 0) {
			*f = (Fragment)i;
			return true;
		}
	return false;
}

Layout
fragment_atom(Arena *a, Fragment f)
{
	Layout l;
	const char *error, *text = fragment_info[f].atom;
	if (!layout_read(a, text, strlen(text), &l, &error))
		bug(a, "ir/fragments.def: %s: %s", fragment_info[f].text, error);
	return l;
}

bool
fragment_layout(Arena *a, Fragment f, const unsigned *shape, const unsigned *order, Layout *l)
{
	*l = fragment_atom(a, f);
	for (unsigned k = 0; k < l->rank; k++) {
		unsigned d = order[k], have = l->shape[d];
		if (shape[d] == 0 || shape[d] % have || !layout_grow(l, AXIS_REG, d, shape[d] / have))
			return false;
	}
	return true;
}

/* --- shared memory --- */

enum { UNIT_BYTES = 16, ATOM_ROWS = 8, XOR_FROM = 7 }; /* bits 7.. of the address are xored onto 4.. */

static bool
span_divides(unsigned columns, unsigned bits, unsigned span)
{
	return columns && (uint64_t)columns * bits % (span * 8) == 0;
}

unsigned
swizzle_span(unsigned columns, unsigned bits)
{
	return span_divides(columns, bits, 128) ? 128 : span_divides(columns, bits, 64) ? 64 : 0;
}

/* In units: from one panel to the next, where rows are terms; from 8 rows to the next ones. Then which swizzle. */
uint64_t
swizzled_descriptor(unsigned rows, unsigned span, bool turned)
{
	uint64_t panel = turned ? rows * span / UNIT_BYTES : 1, down = ATOM_ROWS * span / UNIT_BYTES;
	uint64_t swizzle = span == 128 ? 1 : span == 64 ? 2 : span == 32 ? 3 : 0;
	return panel << 16 | down << 32 | swizzle << 62;
}

bool
swizzled_layout(unsigned rows, unsigned columns, unsigned bits, unsigned span, Layout *l)
{
	unsigned in_span = span * 8 / bits, unit = UNIT_BYTES * 8 / bits;
	const char *error;
	if ((span != 16 && span != 32 && span != 64 && span != 128) || unit * bits != UNIT_BYTES * 8 ||
	    rows == 0 || rows % ATOM_ROWS || !span_divides(columns, bits, span))
		return false;
	*l = layout_new(2, (unsigned[]){ATOM_ROWS, in_span});
	for (unsigned step = 1; step < in_span; step *= 2)
		layout_add_bit(l, AXIS_OFFSET, coord_along(1, step));
	for (unsigned row = 1; row < ATOM_ROWS; row *= 2) {
		unsigned address = row * span, onto = (address >> XOR_FROM) * unit;
		uint64_t swizzle = onto && onto < in_span ? coord_along(1, onto) : 0;
		layout_add_bit(l, AXIS_OFFSET, coord_along(0, row) | swizzle);
	}
	return layout_grow(l, AXIS_OFFSET, 0, rows / ATOM_ROWS) &&
	       layout_grow(l, AXIS_OFFSET, 1, columns / in_span) && layout_verify(l, &error);
}
