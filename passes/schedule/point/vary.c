/* vary.c: a hash table from expressions to small numbers, so that what a kernel knows of its
 * expressions costs memory by the kernel, not by the graph. */
#include "passes/schedule/point/vary.h"

static uint32_t
slot_of(const Point *l, ExprId e)
{
	uint32_t s = e * 2654435761u & (l->nmap - 1);
	while (l->map[s].from && l->map[s].from != e)
		s = (s + 1) & (l->nmap - 1);
	return s;
}

static void
grow_map(Point *l)
{
	uint32_t old = l->nmap;
	const PointNumber *p = l->map;
	l->nmap = old ? old * 2 : 64;
	l->map = ARENA_ARRAY(l->scratch, PointNumber, l->nmap);
	for (uint32_t s = 0; s < old; s++)
		if (p[s].from)
			l->map[slot_of(l, p[s].from)] = p[s];
}

/* How a sum or difference varies; operands known. */
static uint8_t
vary_sum(Op op, uint8_t a, uint8_t b)
{
	if (a == VARY_NOT && b == VARY_NOT)
		return VARY_NOT;
	if (a == VARY_UNIT && b == VARY_NOT)
		return VARY_UNIT;
	if ((a == VARY_NOT || a == VARY_ROWS) && (b == VARY_NOT || b == VARY_ROWS))
		return VARY_ROWS;
	return op == OP_ADD && a == VARY_NOT ? b : VARY_ANY;
}

static uint8_t
vary(Point *l, ExprId e)
{
	const Expr *p = expr_get(l->g, e);
	if (!l->lanes)
		return VARY_NOT;
	if (p->op == OP_AXIS)
		return l->lane_axes >> p->ref & 1 ? VARY_UNIT : l->row_axes >> p->ref & 1 ? VARY_ROWS : VARY_NOT;
	if (p->op == OP_ACC || p->op == OP_TOUCHED || p->op == OP_IVAR)
		return VARY_ANY;
	if ((p->op == OP_ADD || p->op == OP_SUB) && p->dtype == DT_I64)
		return vary_sum((Op)p->op, l->varies.at[number_of(l, expr_arg(l->g, e, 0))],
		                l->varies.at[number_of(l, expr_arg(l->g, e, 1))]);
	uint8_t all = VARY_NOT;
	for (unsigned k = 0; k < p->narg; k++) {
		uint8_t v = l->varies.at[number_of(l, expr_arg(l->g, e, k))];
		if (v != VARY_NOT)
			all = v == VARY_ROWS && all != VARY_ANY ? VARY_ROWS : VARY_ANY;
	}
	return all;
}

bool
number_add(Point *l, ExprId e)
{
	if (l->nnumber * 2 >= l->nmap)
		grow_map(l);
	uint32_t s = slot_of(l, e);
	if (l->map[s].from)
		return false;
	l->map[s] = (PointNumber){e, ++l->nnumber};
	vec_push(l->scratch, &l->numbered, e);
	vec_push(l->scratch, &l->varies, vary(l, e));
	vec_grow(l->scratch, &l->strict, 1);
	for (unsigned at = 0; at < AT_COUNT; at++)
		vec_grow(l->scratch, &l->slot[at], 1);
	return true;
}

void
point_set_lane_axes(Point *l, unsigned lanes, uint32_t axes)
{
	l->lanes = lanes;
	l->lane_axes = axes;
	for (uint32_t k = 0; k < l->numbered.n; k++)
		l->varies.at[k + 1] = vary(l, l->numbered.at[k]);
}

void
point_set_lanes(Point *l, unsigned lanes, unsigned axis)
{
	point_set_lane_axes(l, lanes, 1u << axis);
}

int
point_lane_axis(const Point *l)
{
	for (int k = 0; l->lanes && k < TG_MAX_AXES; k++)
		if (l->lane_axes >> k & 1)
			return k;
	return -1;
}

uint32_t
number_of(Point *l, ExprId e)
{
	uint32_t s = l->nmap ? slot_of(l, e) : 0;
	if (!l->nmap || !l->map[s].from)
		bug(l->g->arena, "expression e%u was not declared", e);
	return l->map[s].number;
}
