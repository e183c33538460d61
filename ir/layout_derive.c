/* layout_derive.c: layouts made from layouts. Each function says false, or appends nothing, where the
 * result would need digits that a Layout has not; what they return true for, layout_verify accepts. */
#include "ir/layout.h"

static bool
is_power(uint32_t v)
{
	return v && (v & (v - 1)) == 0;
}

static bool
axis_repeats(const Layout *l, unsigned axis)
{
	for (unsigned i = 0; i < l->nrepeat; i++)
		if (l->repeat[i].axis == axis)
			return true;
	return false;
}

static bool
add_repeat(Layout *l, unsigned axis, unsigned dim, uint32_t count, uint32_t stride)
{
	if (!axis_info[axis].repeats || l->nrepeat == LAYOUT_REPEATS || count * stride > LAYOUT_EXTENT + 1)
		return false;
	layout_add_repeat(l, (LayoutAxis)axis, dim, count, stride);
	return true;
}

static bool
add_bit(Layout *l, unsigned axis, uint64_t column)
{
	if (l->nbit[axis] == LAYOUT_BITS)
		return false;
	layout_add_bit(l, (LayoutAxis)axis, column);
	return true;
}

/* A digit of radix 2 on top of the axis: a bit, or a repeat where repeats are below it or its step is
 * not one bit. */
static bool
add_pair(Layout *l, unsigned axis, unsigned dim, uint32_t step)
{
	if (is_power(step) && step <= LAYOUT_EXTENT && !axis_repeats(l, axis))
		return add_bit(l, axis, coord_along(dim, step));
	return add_repeat(l, axis, dim, 2, step);
}

bool
layout_grow(Layout *l, LayoutAxis axis, unsigned dim, unsigned count)
{
	uint32_t extent = l->shape[dim];
	const char *error;
	if (count == 0 || (uint64_t)extent * count > LAYOUT_EXTENT)
		return false;
	l->shape[dim] = (uint16_t)(extent * count);
	if (count > 1 && axis_info[axis].repeats && !add_repeat(l, axis, dim, count, extent))
		return false;
	for (uint32_t c = count; !axis_info[axis].repeats && c > 1; c /= 2, extent *= 2)
		if (c % 2 || !is_power(extent) || !add_pair(l, axis, dim, extent))
			return false;
	layout_canonical(l);
	return layout_verify(l, &error);
}

/* --- product --- */

static bool
add_scaled_bit(Layout *out, const Layout *a, unsigned axis, uint64_t column)
{
	uint64_t scaled = 0;
	for (unsigned d = 0; d < a->rank; d++) {
		uint32_t field = coord_get(column, d), step = field * a->shape[d];
		if (is_power(field) && column == coord_along(d, field))
			return add_pair(out, axis, d, step);
		if (field && (!is_power(a->shape[d]) || step > LAYOUT_EXTENT))
			return false;
		scaled |= coord_along(d, step);
	}
	return !axis_repeats(out, axis) && add_bit(out, axis, scaled);
}

bool
layout_product(const Layout *a, const Layout *b, Layout *out)
{
	const char *error;
	Layout above = *b;
	if (a->rank != b->rank)
		return false;
	*out = *a;
	layout_canonical(out);
	layout_canonical(&above);
	for (unsigned d = 0; d < a->rank; d++) {
		if ((uint32_t)a->shape[d] * b->shape[d] > LAYOUT_EXTENT)
			return false;
		out->shape[d] = (uint16_t)(a->shape[d] * b->shape[d]);
	}
	for (unsigned x = 0; x < AXIS_COUNT; x++)
		for (unsigned i = 0; i < above.nbit[x]; i++)
			if (!add_scaled_bit(out, a, x, above.col[x][i]))
				return false;
	for (unsigned i = 0; i < above.nrepeat; i++) {
		const LayoutRepeat *r = &above.repeat[i];
		if (!add_repeat(out, r->axis, r->dim, r->count, (uint32_t)r->stride * a->shape[r->dim]))
			return false;
	}
	layout_canonical(out);
	return layout_verify(out, &error);
}

/* --- composition --- */

/* The digit of the memory's offset that has this weight or contains it: how many steps of the weight it
 * still takes, and what one adds to the coordinate. */
typedef struct {
	uint32_t count;
	bool bit;
	uint64_t column;
	unsigned dim;
	uint32_t stride;
} OffsetDigit;

static bool
offset_digit(const Layout *outer, uint32_t weight, OffsetDigit *g)
{
	uint32_t w = UINT32_C(1) << outer->nbit[AXIS_OFFSET];
	*g = (OffsetDigit){0};
	if (weight < w) {
		if (!is_power(weight))
			return false;
		Place p = {{0}};
		p.at[AXIS_OFFSET] = weight;
		*g = (OffsetDigit){.count = 2, .bit = true, .column = layout_at(outer, &p)};
		return true;
	}
	for (unsigned i = 0; i < outer->nrepeat; w *= outer->repeat[i++].count) {
		const LayoutRepeat *r = &outer->repeat[i];
		uint32_t end = w * r->count;
		if (weight >= end)
			continue;
		if (weight % w || end % weight)
			return false;
		g->count = end / weight;
		g->dim = r->dim;
		g->stride = weight / w * r->stride;
		g->column = coord_along(r->dim, g->stride);
		return true;
	}
	return false;
}

static bool
compose_bit(const Layout *outer, unsigned axis, uint64_t offset, Layout *out)
{
	uint64_t column = 0;
	for (unsigned k = 0; k < 16; k++) {
		OffsetDigit g;
		if (!(offset >> k & 1))
			continue;
		if (!offset_digit(outer, UINT32_C(1) << k, &g) || (!g.bit && (g.count % 2 || !is_power(g.stride))))
			return false;
		column ^= g.column;
	}
	return add_bit(out, axis, column);
}

static bool
compose_repeat(const Layout *outer, const LayoutRepeat *r, Layout *out)
{
	uint32_t weight = r->stride, left = r->count;
	while (left > 1) {
		OffsetDigit g;
		if (!offset_digit(outer, weight, &g))
			return false;
		uint32_t piece = g.count < left ? g.count : left;
		if (left % piece || g.count % piece)
			return false;
		if (!g.bit) {
			if (!add_repeat(out, r->axis, g.dim, piece, g.stride))
				return false;
		} else if (!axis_repeats(out, r->axis)) {
			if (!add_bit(out, r->axis, g.column))
				return false;
		} else {
			unsigned d = 0;
			while (d + 1 < outer->rank && !coord_get(g.column, d))
				d++;
			uint32_t step = coord_get(g.column, d);
			if (!is_power(step) || g.column != coord_along(d, step) ||
			    !add_repeat(out, r->axis, d, 2, step))
				return false;
		}
		weight *= piece;
		left /= piece;
	}
	return true;
}

bool
layout_compose(const Layout *outer, const Layout *inner, Layout *out)
{
	const char *error;
	Layout from = *inner, memory = *outer;
	layout_canonical(&from);
	layout_canonical(&memory);
	if (from.rank != 1 || from.shape[0] != layout_size(&memory, AXIS_OFFSET))
		return false;
	for (unsigned a = 0; a < AXIS_COUNT; a++)
		if (a != AXIS_OFFSET && layout_size(&memory, (LayoutAxis)a) > 1)
			return false;
	*out = (Layout){.rank = memory.rank};
	for (unsigned d = 0; d < memory.rank; d++)
		out->shape[d] = memory.shape[d];
	for (unsigned a = 0; a < AXIS_COUNT; a++)
		for (unsigned i = 0; i < from.nbit[a]; i++)
			if (!compose_bit(&memory, a, from.col[a][i], out))
				return false;
	for (unsigned i = 0; i < from.nrepeat; i++)
		if (!compose_repeat(&memory, &from.repeat[i], out))
			return false;
	layout_canonical(out);
	return layout_verify(out, &error);
}

/* --- dimensions --- */

Layout
layout_permute(const Layout *l, const unsigned *order)
{
	Layout out = *l;
	for (unsigned d = 0; d < l->rank; d++)
		out.shape[d] = l->shape[order[d]];
	for (unsigned a = 0; a < AXIS_COUNT; a++)
		for (unsigned i = 0; i < l->nbit[a]; i++) {
			out.col[a][i] = 0;
			for (unsigned d = 0; d < l->rank; d++)
				out.col[a][i] |= coord_along(d, coord_get(l->col[a][i], order[d]));
		}
	for (unsigned i = 0; i < l->nrepeat; i++)
		for (unsigned d = 0; d < l->rank; d++)
			if (order[d] == l->repeat[i].dim)
				out.repeat[i].dim = (uint8_t)d;
	return out;
}

static uint64_t
without_dim(uint64_t column, unsigned dim)
{
	uint64_t below = column & (coord_along(dim, 1) - 1);
	uint64_t above = dim + 1 < LAYOUT_RANK ? column >> (16 * (dim + 1)) << (16 * dim) : 0;
	return below | above;
}

Layout
layout_project(const Layout *l, unsigned dim)
{
	Layout out = {.rank = l->rank};
	for (unsigned d = 0, k = 0; d < l->rank; d++)
		if (d != dim)
			out.shape[k++] = l->shape[d];
	if (l->rank > 1)
		out.rank--;
	else
		out.shape[0] = 1;
	for (unsigned a = 0; a < AXIS_COUNT; a++) {
		F2Basis seen = {0};
		for (unsigned i = 0; i < l->nbit[a]; i++) {
			uint64_t column = without_dim(l->col[a][i], dim);
			if (!axis_info[a].repeats || f2_add(&seen, column, 0))
				layout_add_bit(&out, (LayoutAxis)a, column);
		}
	}
	for (unsigned i = 0; i < l->nrepeat; i++) {
		const LayoutRepeat *r = &l->repeat[i];
		if (r->dim != dim)
			layout_add_repeat(&out, (LayoutAxis)r->axis, r->dim - (r->dim > dim), r->count, r->stride);
	}
	return out;
}
