/* layout_grow.c: a layout several times along a dimension. False where the result would need digits that a Layout has not;
 * what it returns true for, layout_verify accepts. */
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
