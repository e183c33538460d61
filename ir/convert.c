/* convert.c: which class of conversion, and the two that need no plan of a scratch: renaming, and element
 * by element for layouts whose digits do not nest. */
#include "ir/convert_inside.h"

ConvertStep *
plan_add(Arena *a, ConvertPlan *p, ConvertStepKind kind, uint32_t n, uint32_t width)
{
	vec_grow(a, &p->step, 1);
	ConvertStep *s = &p->step.at[p->step.n - 1];
	s->kind = kind;
	s->n = n;
	s->width = width;
	s->reg = ARENA_ARRAY(a, uint32_t, (size_t)n * width);
	s->from = ARENA_ARRAY(a, uint32_t, n);
	s->at = ARENA_ARRAY(a, uint32_t, n);
	return s;
}

uint32_t
split_digits(const Split *s)
{
	uint32_t n = 1;
	for (unsigned i = 0; i < s->ndigit; i++)
		n *= s->digit[i].count;
	return n;
}

uint32_t
split_register(const Split *s, uint64_t bits, uint32_t v)
{
	uint32_t r = 0;
	for (unsigned i = 0; i < s->nreg; i++)
		if (bits >> i & 1)
			r += s->weight[i];
	for (unsigned i = 0; i < s->ndigit; v /= s->digit[i++].count)
		r += v % s->digit[i].count * s->digit[i].weight;
	return r;
}

/* --- renaming --- */

static bool
same_columns(const Layout *a, const Layout *b, LayoutAxis axis)
{
	for (unsigned i = 0; i < a->nbit[axis]; i++)
		if (a->col[axis][i] != b->col[axis][i])
			return false;
	return true;
}

/* Lanes and warps add the same on both sides; so what holds for lane 0 of warp 0 holds everywhere. */
bool
convert_by_rename(const Conversion *c, ConvertPlan *p)
{
	const Layout *src = c->src.layout, *dst = c->dst.layout;
	if (!same_columns(src, dst, AXIS_LANE) || !same_columns(src, dst, AXIS_WARP))
		return false;
	Layout registers = *src;
	for (unsigned a = 0; a < AXIS_COUNT; a++)
		if (a != AXIS_REG)
			registers.nbit[a] = 0;
	uint32_t n = layout_size(dst, AXIS_REG);
	ConvertStep *s = plan_add(c->arena, p, STEP_MOVE, n, 1);
	for (uint32_t r = 0; r < n; r++) {
		Place at = {{[AXIS_REG] = r}}, found;
		if (!layout_find(&registers, layout_at(dst, &at), &found)) {
			p->step.n--;
			return false;
		}
		s->reg[r] = c->result + r;
		s->from[r] = found.at[AXIS_REG];
	}
	return true;
}

/* --- element by element --- */

static uint32_t
row_major(const Layout *l, uint64_t coord, unsigned *bits)
{
	uint32_t offset = 0;
	*bits = 0;
	for (unsigned d = l->rank; d-- > 0;) {
		offset |= coord_get(coord, d) << *bits;
		for (uint32_t extent = l->shape[d] - 1u; extent; extent /= 2)
			++*bits;
	}
	return offset;
}

static void
element_step(const Conversion *c, ConvertPlan *p, const Side *side, uint32_t first, ConvertStepKind kind)
{
	unsigned bits = 0;
	uint32_t n = layout_size(side->layout, AXIS_REG);
	BankAccess access = {.nlane = side->nlane, .bits = c->means->bits, .width = 1};
	ConvertStep *s = plan_add(c->arena, p, kind, n, 1);
	for (uint32_t r = 0; r < n; r++) {
		Place at = {{[AXIS_REG] = r}};
		s->reg[r] = first + r;
		s->at[r] = row_major(side->layout, layout_at(side->layout, &at), &bits);
	}
	for (unsigned i = 0; i < side->nlane; i++)
		s->lane[i] = access.lane[i] = row_major(side->layout, side->lane[i], &bits);
	for (unsigned i = 0; i < side->nwarp; i++)
		s->warp[i] = row_major(side->layout, side->warp[i], &bits);
	s->wavefronts = bank_wavefronts(&access);
	s->groups = bank_groups(&access);
	p->cost += n * (COST_ISSUE + s->wavefronts * COST_PIPE);
	p->scratch = UINT32_C(1) << bits;
}

/* The steps of repeats are multiples of every bit of a column along their dimension, so a register's
 * place and a lane's may be xored. */
void
convert_by_element(const Conversion *c, ConvertPlan *p)
{
	element_step(c, p, &c->src, 0, STEP_STORE);
	plan_add(c->arena, p, STEP_BARRIER, 0, 1)->block = c->src.nwarp > 0;
	element_step(c, p, &c->dst, c->result, STEP_LOAD);
	p->cost += c->src.nwarp ? COST_BLOCK_BARRIER : COST_WARP_BARRIER;
	p->cls = CONVERT_MEMORY;
}

/* --- the choice --- */

static void
span_of(const Side *s, bool warps, F2Basis *b)
{
	*b = (F2Basis){0};
	for (unsigned i = 0; i < s->split.nreg; i++)
		f2_add(b, s->split.reg[i], 0);
	for (unsigned i = 0; i < s->nlane; i++)
		f2_add(b, s->lane[i], 0);
	for (unsigned i = 0; warps && i < s->nwarp; i++)
		f2_add(b, s->warp[i], 0);
}

static bool
same_span(const Side *a, const Side *b, bool warps)
{
	F2Basis x, y;
	span_of(a, warps, &x);
	span_of(b, warps, &y);
	bool same = x.n == y.n;
	for (unsigned i = 0; same && i < y.n; i++)
		same = f2_has(&x, y.row[i]);
	return same;
}

/* No two warps hold the same element. */
static bool
warps_differ(const Side *s)
{
	F2Basis own, all;
	span_of(s, false, &own);
	span_of(s, true, &all);
	return all.n == own.n + s->nwarp;
}

static const char *
refusal(const Conversion *c, bool nests)
{
	const Layout *src = c->src.layout, *dst = c->dst.layout;
	unsigned bits = c->means->bits;
	bool same = src->rank == dst->rank, blocks = false;
	for (unsigned d = 0; same && d < src->rank; d++)
		same = src->shape[d] == dst->shape[d];
	if (!same)
		return "the layouts have different shapes";
	if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
		return "elements of 8, 16, 32 or 64 bits are converted";
	if (layout_size(src, AXIS_OFFSET) > 1 || layout_size(dst, AXIS_OFFSET) > 1)
		return "one of the layouts is of a memory";
	for (unsigned a = AXIS_LANE; a <= AXIS_BLOCK; a++)
		if (src->nbit[a] != dst->nbit[a])
			return "the layouts have different numbers of lanes, warps or blocks";
	for (unsigned i = 0; i < src->nbit[AXIS_BLOCK]; i++)
		blocks = blocks || src->col[AXIS_BLOCK][i] || dst->col[AXIS_BLOCK][i];
	if (blocks && (!same_columns(src, dst, AXIS_BLOCK) || !nests || !same_span(&c->src, &c->dst, true)))
		return "elements change blocks";
	return NULL;
}

Side
convert_side(const Layout *l)
{
	return (Side){.layout = l, .nlane = l->nbit[AXIS_LANE], .nwarp = l->nbit[AXIS_WARP],
	              .lane = l->col[AXIS_LANE], .warp = l->col[AXIS_WARP]};
}

static const ConvertPlan *
cheapest(Conversion *c, bool nests)
{
	ConvertPlan *plan[3];
	for (unsigned i = 0; i < 3; i++) {
		plan[i] = ARENA_NEW(c->arena, ConvertPlan);
		plan[i]->result = c->result;
		plan[i]->nreg = c->result + layout_size(c->dst.layout, AXIS_REG);
	}
	if (convert_by_rename(c, plan[0]))
		return plan[0];
	if (!nests) {
		convert_by_element(c, plan[2]);
		return plan[2];
	}
	bool shuffles = c->means->shuffle && c->one_warp && convert_by_shuffle(c, plan[1]);
	bool stores = convert_by_memory(c, plan[2]);
	if (shuffles && (!stores || plan[1]->cost <= plan[2]->cost))
		return plan[1];
	if (!stores)
		bug(c->arena, "ir/convert: no scratch for a tile that has a layout");
	return plan[2];
}

const ConvertPlan *
layout_convert(Arena *a, const Layout *src_layout, const Layout *dst_layout, const ConvertMeans *means,
               const char **error)
{
	Layout *src = arena_copy(a, src_layout, sizeof *src), *dst = arena_copy(a, dst_layout, sizeof *dst);
	Conversion *c = ARENA_NEW(a, Conversion);
	layout_canonical(src);
	layout_canonical(dst);
	c->arena = a;
	c->means = means;
	c->src = convert_side(src);
	c->dst = convert_side(dst);
	bool nests = layout_split(src, dst, &c->src.split, &c->dst.split);
	*error = refusal(c, nests);
	if (*error)
		return NULL;
	c->result = layout_size(src, AXIS_REG);
	c->one_warp = nests && same_columns(src, dst, AXIS_WARP) && same_span(&c->src, &c->dst, false);
	c->own_scratch = c->one_warp && warps_differ(&c->src);
	return cheapest(c, nests);
}
