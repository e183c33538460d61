/* layout_relabel.c: the free choice of a contraction's numbering.
 *
 * sum_k a[k] b[k] does not change when k is replaced by map(k) in both. So a fragment that wants its
 * elements along k elsewhere in the lanes than an earlier result has them may be fed with another order
 * of k. The map is linear: it must send what each lane, warp and block bit of dst adds to what the same
 * bit of src adds, which fixes it on their span; the rest is free and is chosen so that registers go to
 * registers, one to one. */
#include "ir/bugs.h"
#include "ir/layout.h"
#include "ir/layout_split.h"

typedef struct {
	unsigned dim;
	F2Basis known;  /* of dst's numbers; how: the image */
	F2Basis images;
} Solver;

static uint64_t
others(uint64_t column, unsigned dim)
{
	return column & ~coord_along(dim, 0xffff);
}

/* map(from) = to: false when that contradicts what is known, or two would meet. */
static bool
demand(Solver *s, uint64_t from, uint64_t to)
{
	uint64_t image = 0;
	if (f2_reduce(&s->known, from, &image) == 0)
		return image == to;
	return f2_add(&s->images, to, 0) && f2_add(&s->known, from, to);
}

static bool
demand_lanes(Solver *s, const Layout *src, const Layout *dst)
{
	for (unsigned a = AXIS_LANE; a <= AXIS_BLOCK; a++) {
		if (src->nbit[a] != dst->nbit[a])
			return false;
		for (unsigned i = 0; i < dst->nbit[a]; i++) {
			uint64_t from = dst->col[a][i], to = src->col[a][i];
			if (others(from, s->dim) != others(to, s->dim) ||
			    (!BUG(lanes_relabelled) && !demand(s, coord_get(from, s->dim), coord_get(to, s->dim))))
				return false;
		}
	}
	return true;
}

/* Pairs each register bit of dst that is still free with one of src; both lists keep their order, so
 * equal layouts give the identity. */
static void
pair_registers(Solver *s, const Split *src, const Split *dst)
{
	for (unsigned i = 0; i < dst->nreg; i++) {
		uint64_t from = dst->reg[i];
		if (f2_has(&s->known, coord_get(from, s->dim)))
			continue;
		for (unsigned k = 0; k < src->nreg; k++) {
			uint64_t to = src->reg[k];
			if (others(from, s->dim) == others(to, s->dim) &&
			    !f2_has(&s->images, coord_get(to, s->dim)) &&
			    demand(s, coord_get(from, s->dim), coord_get(to, s->dim)))
				break;
		}
	}
}

static bool
registers_suffice(const Split *src, const Split *dst, unsigned dim, const F2Map *map)
{
	F2Basis have = {0};
	for (unsigned i = 0; i < src->nreg; i++)
		f2_add(&have, src->reg[i], 0);
	for (unsigned i = 0; i < dst->nreg; i++) {
		uint64_t number = f2_apply(map, coord_get(dst->reg[i], dim));
		if (!f2_has(&have, others(dst->reg[i], dim) | coord_along(dim, number)))
			return false;
	}
	return true;
}

bool
layout_relabel(const Layout *src, const Layout *dst, unsigned dim, F2Map *map)
{
	Layout from = *src, to = *dst;
	Solver s = {.dim = dim};
	Split a, b;
	layout_canonical(&from);
	layout_canonical(&to);
	if (dim >= from.rank || !layout_split(&from, &to, &a, &b) || !demand_lanes(&s, &from, &to))
		return false;
	pair_registers(&s, &a, &b);
	*map = (F2Map){.n = layout_split_bits(&from, &to, dim)};
	for (unsigned i = 0; i < map->n; i++)
		if (f2_reduce(&s.known, UINT64_C(1) << i, &map->col[i]))
			return false;
	return f2_rank(map->col, map->n) == map->n && registers_suffice(&a, &b, dim, map);
}

bool
layout_relabelled(const Layout *l, unsigned dim, const F2Map *map, Layout *out)
{
	uint64_t low = (UINT64_C(1) << map->n) - 1;
	const char *error;
	*out = *l;
	for (unsigned a = 0; a < AXIS_COUNT; a++)
		for (unsigned i = 0; i < l->nbit[a]; i++) {
			uint64_t c = l->col[a][i], number = coord_get(c, dim);
			number = (number & ~low) | f2_apply(map, number & low);
			out->col[a][i] = others(c, dim) | coord_along(dim, number);
		}
	for (unsigned i = 0; i < l->nrepeat; i++)
		for (unsigned k = 0; k < map->n && l->repeat[i].dim == dim; k++)
			if (UINT64_C(1) << k >= l->repeat[i].stride && map->col[k] != UINT64_C(1) << k)
				return false;
	layout_canonical(out);
	return layout_verify(out, &error);
}
