/* layout.c: building, the rules, the one form of equal layouts, the map and its inverse. */
#include "ir/layout.h"

#include <stddef.h>

#include "ir/bugs.h"

const AxisInfo axis_info[AXIS_COUNT] = {
#define AXIS(id, text, repeats, what) [AXIS_##id] = {text, repeats, what},
#include "ir/layout_axes.def"
};

Layout
layout_new(unsigned rank, const unsigned *shape)
{
	Layout l = {0};
	l.rank = (uint8_t)rank;
	for (unsigned d = 0; d < rank && d < LAYOUT_RANK; d++)
		l.shape[d] = (uint16_t)shape[d];
	return l;
}

void
layout_add_bit(Layout *l, LayoutAxis axis, uint64_t column)
{
	if (l->nbit[axis] < LAYOUT_BITS)
		l->col[axis][l->nbit[axis]] = column;
	l->nbit[axis]++;
}

void
layout_add_repeat(Layout *l, LayoutAxis axis, unsigned dim, unsigned count, unsigned stride)
{
	if (l->nrepeat < LAYOUT_REPEATS)
		l->repeat[l->nrepeat] =
			(LayoutRepeat){(uint8_t)axis, (uint8_t)dim, (uint16_t)count, (uint16_t)stride};
	l->nrepeat++;
}

/* --- the rules --- */

static uint64_t
mask_of(const Layout *l)
{
	uint64_t mask = 0;
	for (unsigned a = 0; a < AXIS_COUNT; a++)
		for (unsigned i = 0; i < l->nbit[a]; i++)
			mask |= l->col[a][i];
	return mask;
}

static const char *
limits_error(const Layout *l)
{
	if (l->rank < 1 || l->rank > LAYOUT_RANK)
		return "a layout has 1 to 4 dimensions";
	for (unsigned d = 0; d < l->rank; d++)
		if (l->shape[d] == 0)
			return "an extent is 0";
	for (unsigned a = 0; a < AXIS_COUNT; a++)
		if (l->nbit[a] > LAYOUT_BITS)
			return "an axis has more than 20 bits";
	if (l->nrepeat > LAYOUT_REPEATS)
		return "a layout has more than 16 repeats";
	return NULL;
}

static const char *
repeats_error(const Layout *l)
{
	for (unsigned i = 0; i < l->nrepeat; i++) {
		const LayoutRepeat *r = &l->repeat[i];
		if (r->axis >= AXIS_COUNT || !axis_info[r->axis].repeats)
			return "an axis that only has bits repeats";
		if (r->dim >= l->rank)
			return "a repeat along a dimension that is not there";
		if (r->count < 2 || r->stride < 1)
			return "a repeat counts at least 2 and steps at least 1";
	}
	uint64_t all = 1;
	for (unsigned a = 0; a < AXIS_COUNT; a++) {
		uint64_t size = UINT64_C(1) << l->nbit[a];
		for (unsigned i = 0; i < l->nrepeat; i++)
			if (l->repeat[i].axis == a && (size *= l->repeat[i].count) > LAYOUT_PLACES)
				break;
		if (size > LAYOUT_PLACES)
			return "an axis has more than 2^20 places";
		if ((all *= size) > UINT64_C(1) << LAYOUT_ALL_BITS)
			return "a layout has more than 2^48 places";
	}
	return NULL;
}

/* What comes next in the tower of a dimension after the product so far; 0 when nothing has that stride. */
static unsigned
digit_at(const Layout *l, uint64_t mask, unsigned dim, uint32_t stride, uint32_t *used)
{
	unsigned field = coord_get(mask, dim), count = 0;
	if (stride <= field && (field & stride) && (stride & (stride - 1)) == 0)
		count = 2;
	for (unsigned i = 0; i < l->nrepeat; i++)
		if (l->repeat[i].dim == dim && l->repeat[i].stride == stride) {
			if (count)
				return 0;
			count = l->repeat[i].count;
			*used |= UINT32_C(1) << i;
		}
	return count;
}

static const char *
tower_error(const Layout *l, uint64_t mask)
{
	uint32_t used = 0;
	for (unsigned d = 0; d < l->rank; d++) {
		uint32_t product = 1, seen = 0;
		while (product < l->shape[d]) {
			unsigned count = digit_at(l, mask, d, product, &used);
			if (!count)
				return "the digits along a dimension leave a gap or overlap";
			if (count == 2 && (coord_get(mask, d) & product))
				seen |= product;
			product *= count;
		}
		if (product != l->shape[d] || seen != coord_get(mask, d))
			return "the digits along a dimension do not end with its extent";
	}
	if (used != (UINT32_C(1) << l->nrepeat) - 1)
		return "a repeat beyond the extent";
	for (unsigned d = l->rank; d < LAYOUT_RANK; d++)
		if (coord_get(mask, d))
			return "a column along a dimension that is not there";
	return NULL;
}

bool
layout_verify(const Layout *l, const char **error)
{
	*error = limits_error(l);
	if (!*error)
		*error = repeats_error(l);
	if (*error)
		return false;
	F2Map m = layout_bits(l);
	uint64_t mask = mask_of(l);
	*error = tower_error(l, mask);
	if (!*error && f2_rank(m.col, m.n) != f2_weight(mask) && !BUG(columns_unspanned))
		*error = "the columns do not reach every coordinate";
	return !*error;
}

/* --- the one form --- */

static void
remove_repeat(Layout *l, unsigned i)
{
	l->nrepeat--;
	for (; i < l->nrepeat; i++)
		l->repeat[i] = l->repeat[i + 1];
}

static void
sort_by_axis(Layout *l)
{
	for (unsigned i = 1; i < l->nrepeat; i++)
		for (unsigned k = i; k > 0 && l->repeat[k - 1].axis > l->repeat[k].axis; k--) {
			LayoutRepeat r = l->repeat[k];
			l->repeat[k] = l->repeat[k - 1];
			l->repeat[k - 1] = r;
		}
}

static void
merge_repeats(Layout *l)
{
	for (unsigned i = 0; i + 1 < l->nrepeat;) {
		LayoutRepeat *r = &l->repeat[i], *next = r + 1;
		if (next->axis == r->axis && next->dim == r->dim && next->stride == r->stride * r->count &&
		    !BUG(repeats_unmerged)) {
			r->count = (uint16_t)(r->count * next->count);
			remove_repeat(l, i + 1);
		} else {
			i++;
		}
	}
}

/* The lowest repeat of an axis gives its factors of two, where its step is one bit, to the bits. */
static void
absorb_repeats(Layout *l)
{
	for (unsigned i = 0; i < l->nrepeat;) {
		LayoutRepeat *r = &l->repeat[i];
		bool first = i == 0 || l->repeat[i - 1].axis != r->axis;
		if (!first || r->count % 2 || (r->stride & (r->stride - 1)) || l->nbit[r->axis] >= LAYOUT_BITS) {
			i++;
			continue;
		}
		layout_add_bit(l, (LayoutAxis)r->axis, coord_along(r->dim, r->stride));
		r->count /= 2;
		r->stride = (uint16_t)(r->stride * 2);
		if (r->count == 1)
			remove_repeat(l, i);
	}
}

void
layout_canonical(Layout *l)
{
	sort_by_axis(l);
	merge_repeats(l);
	absorb_repeats(l);
}

static bool
same_fields(const Layout *a, const Layout *b)
{
	bool same = a->rank == b->rank && a->nrepeat == b->nrepeat;
	for (unsigned d = 0; same && d < a->rank; d++)
		same = a->shape[d] == b->shape[d];
	for (unsigned x = 0; same && x < AXIS_COUNT; x++) {
		same = a->nbit[x] == b->nbit[x];
		for (unsigned i = 0; same && i < a->nbit[x]; i++)
			same = a->col[x][i] == b->col[x][i];
	}
	for (unsigned i = 0; same && i < a->nrepeat; i++) {
		const LayoutRepeat *p = &a->repeat[i], *q = &b->repeat[i];
		same = p->axis == q->axis && p->dim == q->dim && p->count == q->count && p->stride == q->stride;
	}
	return same;
}

bool
layout_equal(const Layout *a, const Layout *b)
{
	Layout x = *a, y = *b;
	layout_canonical(&x);
	layout_canonical(&y);
	return same_fields(&x, &y);
}

/* --- the map and its inverse --- */

uint32_t
layout_size(const Layout *l, LayoutAxis axis)
{
	uint32_t n = UINT32_C(1) << l->nbit[axis];
	for (unsigned i = 0; i < l->nrepeat; i++)
		if (l->repeat[i].axis == axis)
			n *= l->repeat[i].count;
	return n;
}

uint64_t
layout_at(const Layout *l, const Place *p)
{
	uint64_t c = 0;
	uint32_t rest[AXIS_COUNT];
	for (unsigned a = 0; a < AXIS_COUNT; a++) {
		for (unsigned i = 0; i < l->nbit[a]; i++)
			if (p->at[a] >> i & 1)
				c ^= l->col[a][i];
		rest[a] = p->at[a] >> l->nbit[a];
	}
	for (unsigned i = 0; i < l->nrepeat; i++) {
		const LayoutRepeat *r = &l->repeat[i];
		c += coord_along(r->dim, (uint64_t)(rest[r->axis] % r->count) * r->stride);
		rest[r->axis] /= r->count;
	}
	return c;
}

F2Map
layout_bits(const Layout *l)
{
	F2Map m = {0};
	for (unsigned a = 0; a < AXIS_COUNT; a++)
		for (unsigned i = 0; i < l->nbit[a]; i++)
			m.col[m.n++] = l->col[a][i];
	return m;
}

static Place
place_of_bits(const Layout *l, uint64_t bits)
{
	Place p = {{0}};
	for (unsigned a = 0; a < AXIS_COUNT; a++) {
		p.at[a] = (uint32_t)(bits & ((UINT64_C(1) << l->nbit[a]) - 1));
		bits >>= l->nbit[a];
	}
	return p;
}

bool
layout_find(const Layout *l, uint64_t coord, Place *p)
{
	uint64_t left = coord, bits = 0;
	uint32_t digit[LAYOUT_REPEATS], weight[AXIS_COUNT];
	for (unsigned d = 0; d < LAYOUT_RANK; d++)
		if (coord_get(coord, d) >= l->shape[d] && (d < l->rank || coord_get(coord, d)))
			return false;
	for (unsigned i = 0; i < l->nrepeat; i++) {
		const LayoutRepeat *r = &l->repeat[i];
		digit[i] = coord_get(coord, r->dim) / r->stride % r->count;
		left -= coord_along(r->dim, (uint64_t)digit[i] * r->stride);
	}
	F2Map m = layout_bits(l);
	F2Basis b = {0};
	for (unsigned i = 0; i < m.n; i++)
		f2_add(&b, m.col[i], UINT64_C(1) << i);
	if (f2_reduce(&b, left, &bits))
		return false;
	*p = place_of_bits(l, bits);
	for (unsigned a = 0; a < AXIS_COUNT; a++)
		weight[a] = UINT32_C(1) << l->nbit[a];
	for (unsigned i = 0; i < l->nrepeat; i++) {
		unsigned a = l->repeat[i].axis;
		p->at[a] += digit[i] * weight[a];
		weight[a] *= l->repeat[i].count;
	}
	return true;
}
