/* fragment.c: the rows of fragments.def as layouts, and what describes operands in shared memory. */
#include "ir/fragment.h"

#include <string.h>

const FragmentInfo fragment_info[FRAGMENT_COUNT] = {
#define FRAGMENT(id, text, bits, atom, what) [FRAGMENT_##id] = {text, bits, atom, what},
#include "ir/fragments.def"
};

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

enum { UNIT_BYTES = 16, ATOM_ROWS = 8 };

/* In units: from one panel to the next, where rows are terms; from 8 rows to the next ones. Then which swizzle. */
uint64_t
swizzled_descriptor(unsigned rows, unsigned span, bool turned)
{
	uint64_t panel = turned ? rows * span / UNIT_BYTES : 1, down = ATOM_ROWS * span / UNIT_BYTES;
	uint64_t swizzle = span == 128 ? 1 : span == 64 ? 2 : span == 32 ? 3 : 0;
	return panel << 16 | down << 32 | swizzle << 62;
}
