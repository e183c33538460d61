/* fragment.h: where the hardware's matrix operations want their operands: fragments.def as layouts. */
#ifndef TEXO_IR_FRAGMENT_H
#define TEXO_IR_FRAGMENT_H

#include "ir/layout.h"

typedef enum {
#define FRAGMENT(id, text, bits, atom, what) FRAGMENT_##id,
#include "ir/fragments.def"
} Fragment;

enum { /* kept out of Fragment, so that -Wswitch stays useful */
	FRAGMENT_COUNT = 0
#define FRAGMENT(id, text, bits, atom, what) +1
#include "ir/fragments.def"
};

typedef struct {
	const char *text;
	unsigned bits;    /* of an element; 0: the layout is the same for any */
	const char *atom; /* the smallest tile, as a layout's text */
	const char *what;
} FragmentInfo;

extern const FragmentInfo fragment_info[FRAGMENT_COUNT];

/* The atom alone. */
Layout fragment_atom(Arena *a, Fragment f);
/* A tile of that shape: the atom repeated in registers along one dimension after the other, first along
 * order[0]. False where the shape is no multiple of the atom's. */
bool fragment_layout(Arena *a, Fragment f, const unsigned *shape, const unsigned *order, Layout *l);

/* What wgmma's descriptor says, but where it begins, of a tile in shared memory as TMA writes it: panels of span bytes of each row
 * (32, 64 or 128; 16: no swizzle), row after row, panel after panel; in a panel the 16-byte units are xored with the row. The
 * columns are the terms or, turned, the rows are. */
uint64_t swizzled_descriptor(unsigned rows, unsigned span, bool turned);

#endif
