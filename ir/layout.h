/* layout.h: where the elements of a tile are.
 *
 * A Layout sends a place, one number along each axis of layout_axes.def, to a coordinate of a tile of
 * static shape. Along an axis a place's number is bits, low first, and above them mixed-radix digits, the
 * repeats. Each bit has a column, a coordinate; the columns of the bits set are xored, and each repeat
 * adds digit * stride along one dimension:
 *
 *     coordinate = xor of columns + sum of digit * stride
 *
 * Bits make fragments, transposes and swizzles; repeats make the sizes that are no powers of two.
 * A coordinate is a u64 with 16 bits a dimension, dimension 0 lowest; columns look the same.
 *
 * What layout_verify holds, and everything else needs:
 *   - the columns span the coordinates over a mask: their rank is the number of bits set in any of them;
 *   - along each dimension the bits of the mask (as digits of radix 2) and the repeats, sorted by stride,
 *     form a tower: the first stride is 1, each next is the stride times the count of the one before, and
 *     the last product is the extent.
 * So every element is held, its digits are unique, and several places hold it only by dependent columns:
 * the places are then one of them xored with the kernel of the columns.
 *
 * Text, as in `wgmma.d` for 64 x 176 (columns in the letters i j k l, a repeat as stride * count):
 *     64x176 reg j1 i8 j8 j16*11 lane j2 j4 i1 i2 i4 warp i16 i32
 * Sums are `i1^j8`, a column that holds nothing new is `0`. layout_read(layout_print(x)) == x. */
#ifndef TEXO_IR_LAYOUT_H
#define TEXO_IR_LAYOUT_H

#include "ir/f2.h"
#include "ir/text.h"

typedef enum {
#define AXIS(id, text, repeats, what) AXIS_##id,
#include "ir/layout_axes.def"
} LayoutAxis;

enum { /* kept out of LayoutAxis, so that -Wswitch stays useful */
	AXIS_COUNT = 0
#define AXIS(id, text, repeats, what) +1
#include "ir/layout_axes.def"
};

typedef struct {
	const char *text;
	bool repeats;
	const char *what;
} AxisInfo;

extern const AxisInfo axis_info[AXIS_COUNT];

enum {
	LAYOUT_RANK = 4,
	LAYOUT_BITS = 20,       /* of one axis */
	LAYOUT_ALL_BITS = 48,   /* of all axes, repeats rounded down */
	LAYOUT_REPEATS = 16,
	LAYOUT_EXTENT = 65535,  /* largest extent of a dimension */
	LAYOUT_PLACES = 1 << 20 /* largest size of an axis */
};

typedef struct {
	uint8_t axis, dim;
	uint16_t count, stride;
} LayoutRepeat;

typedef struct {
	uint8_t rank, nrepeat, nbit[AXIS_COUNT];
	uint16_t shape[LAYOUT_RANK];
	uint64_t col[AXIS_COUNT][LAYOUT_BITS];
	LayoutRepeat repeat[LAYOUT_REPEATS]; /* of one axis: the fastest first */
} Layout;

typedef struct {
	uint32_t at[AXIS_COUNT];
} Place;

/* --- coordinates --- */
static inline uint64_t
coord_along(unsigned dim, uint64_t value)
{
	return value << (16 * dim);
}
static inline unsigned
coord_get(uint64_t c, unsigned dim)
{
	return (unsigned)(c >> (16 * dim)) & 0xffff;
}

/* --- building: layout_new is one element held by one place; then bits and repeats are added. They only
 * append; what came out is layout_verify's to say. --- */
Layout layout_new(unsigned rank, const unsigned *shape);
void layout_add_bit(Layout *l, LayoutAxis axis, uint64_t column);
void layout_add_repeat(Layout *l, LayoutAxis axis, unsigned dim, unsigned count, unsigned stride);
/* The layout `count` times along dim: the extent grows, and the axis has a new slowest digit. On an
 * axis without repeats, or to keep bits, count is a power of two. False where it cannot be said. */
bool layout_grow(Layout *l, LayoutAxis axis, unsigned dim, unsigned count);
/* False with the reason, which needs no arena. */
bool layout_verify(const Layout *l, const char **error);

/* --- form --- */
/* As many bits as there can be, and repeats that cannot be merged: equal maps become equal structs. */
void layout_canonical(Layout *l);
bool layout_equal(const Layout *a, const Layout *b); /* the same map of the same shape */
void layout_print(const Layout *l, Text *out);
/* Any text: a layout that layout_verify accepts, or false with a message in the arena. */
bool layout_read(Arena *a, const char *text, size_t n, Layout *l, const char **error);

/* --- the map and its inverse --- */
uint32_t layout_size(const Layout *l, LayoutAxis axis);
uint64_t layout_at(const Layout *l, const Place *p);
/* A place that holds the coordinate, with the bits of dependent columns clear; false when none does. */
bool layout_find(const Layout *l, uint64_t coord, Place *p);
/* The bits as one map: the axes in order, low bits first. */
F2Map layout_bits(const Layout *l);

/* --- banks of shared memory --- */
typedef struct {
	unsigned nlane;            /* bits of the lane's number */
	uint32_t lane[LAYOUT_BITS]; /* what each adds, by xor, to the offset, in elements */
	unsigned bits;             /* of an element, 8 .. 64 */
	unsigned width;            /* elements a lane moves at once; at most 128 bits */
} BankAccess;

/* How many times a shared memory of 32 banks of 4 bytes is gone through: lanes in groups of 32, or as
 * many as move 128 bytes; in a group a bank gives one word each time, to all that ask for it. */
unsigned bank_wavefronts(const BankAccess *a);
/* The least there could be: the groups, had none a conflict. */
unsigned bank_groups(const BankAccess *a);

#endif
