/* layout_split.c: the common digits of two layouts.
 *
 * The strides of a tower, and its extent, divide one another in turn. Two towers have a common
 * refinement if and only if all their strides together do; its digits lie between neighbours. */
#include "ir/layout_split.h"

enum { BOUNDS = 96 };

typedef struct {
	unsigned n;
	uint32_t at[BOUNDS];
} Bounds;

static void
add_bound(Bounds *b, uint32_t v)
{
	unsigned i = 0;
	while (i < b->n && b->at[i] < v)
		i++;
	if (b->n == BOUNDS || (i < b->n && b->at[i] == v))
		return;
	for (unsigned k = b->n++; k > i; k--)
		b->at[k] = b->at[k - 1];
	b->at[i] = v;
}

static void
bounds_of(const Layout *l, unsigned dim, Bounds *b)
{
	add_bound(b, 1);
	add_bound(b, l->shape[dim]);
	for (unsigned a = 0; a < AXIS_COUNT; a++)
		for (unsigned i = 0; i < l->nbit[a]; i++)
			for (uint32_t bit = 1; bit < 0x10000; bit *= 2)
				if (coord_get(l->col[a][i], dim) & bit) {
					add_bound(b, bit);
					add_bound(b, bit * 2);
				}
	for (unsigned i = 0; i < l->nrepeat; i++) {
		const LayoutRepeat *r = &l->repeat[i];
		if (r->dim != dim)
			continue;
		uint32_t stride = r->stride, count = r->count;
		add_bound(b, stride * count);
		for (add_bound(b, stride); (stride & (stride - 1)) == 0 && count % 2 == 0; count /= 2)
			add_bound(b, stride *= 2);
	}
}

static bool
bounds_nest(const Bounds *b)
{
	for (unsigned i = 1; i < b->n; i++)
		if (b->at[i] % b->at[i - 1])
			return false;
	return true;
}

static uint32_t
bound_above(const Bounds *b, uint32_t v)
{
	for (unsigned i = 0; i < b->n; i++)
		if (b->at[i] > v)
			return b->at[i];
	return 0;
}

static void
insert_digit(Split *s, SplitDigit g)
{
	unsigned i = s->ndigit++;
	for (; i > 0; i--) {
		const SplitDigit *p = &s->digit[i - 1];
		if (p->dim < g.dim || (p->dim == g.dim && p->stride < g.stride))
			break;
		s->digit[i] = *p;
	}
	s->digit[i] = g;
}

static void
split_one(const Layout *l, const Bounds *bounds, Split *s)
{
	uint32_t weight = 1;
	*s = (Split){0};
	for (unsigned i = 0; i < l->nbit[AXIS_REG]; i++, weight *= 2) {
		s->reg[s->nreg] = l->col[AXIS_REG][i];
		s->weight[s->nreg++] = weight;
	}
	for (unsigned i = 0; i < l->nrepeat; i++) {
		const LayoutRepeat *r = &l->repeat[i];
		uint32_t stride = r->stride, end = stride * r->count;
		while (stride < end) {
			uint32_t next = bound_above(&bounds[r->dim], stride), count = next / stride;
			if (count == 2 && (stride & (stride - 1)) == 0) {
				s->reg[s->nreg] = coord_along(r->dim, stride);
				s->weight[s->nreg++] = weight;
			} else {
				insert_digit(s, (SplitDigit){r->dim, count, stride, weight});
			}
			weight *= count;
			stride = next;
		}
	}
}

static bool
same_shape(const Layout *a, const Layout *b)
{
	bool same = a->rank == b->rank;
	for (unsigned d = 0; same && d < a->rank; d++)
		same = a->shape[d] == b->shape[d];
	return same;
}

static bool
common_bounds(const Layout *a, const Layout *b, Bounds *bounds)
{
	for (unsigned d = 0; d < a->rank; d++) {
		bounds[d].n = 0;
		bounds_of(a, d, &bounds[d]);
		bounds_of(b, d, &bounds[d]);
		if (!bounds_nest(&bounds[d]))
			return false;
	}
	return true;
}

bool
layout_split(const Layout *a, const Layout *b, Split *sa, Split *sb)
{
	Bounds bounds[LAYOUT_RANK];
	if (!same_shape(a, b) || layout_size(a, AXIS_OFFSET) > 1 || layout_size(b, AXIS_OFFSET) > 1 ||
	    !common_bounds(a, b, bounds))
		return false;
	split_one(a, bounds, sa);
	split_one(b, bounds, sb);
	return true;
}
