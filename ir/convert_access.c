/* convert_access.c: a register layout against a memory whose layout is given, such as a panel that TMA
 * copies.
 *
 * Offsets are xors of what the bits of a coordinate contribute, when each of these is a bit of the offset
 * or, below the memory's repeats, one of its columns; mixed digits then lie above all bits, and are added
 * by setting bits that are clear. */
#include "ir/convert_inside.h"

#include <stddef.h>

static uint32_t
offset_in(const Layout *memory, uint64_t coord)
{
	Place p = {{0}};
	layout_find(memory, coord, &p);
	return p.at[AXIS_OFFSET];
}

/* The basis of the memory's bits, also those it keeps as repeats. */
static bool
place_bits(const Layout *registers, const Layout *memory, Scratch *t)
{
	for (unsigned i = 0; i < memory->nbit[AXIS_OFFSET]; i++)
		if (!f2_add(&t->place, memory->col[AXIS_OFFSET][i], UINT64_C(1) << i))
			return false;
	for (unsigned d = 0; d < memory->rank; d++)
		for (unsigned b = 0; b < layout_split_bits(registers, memory, d); b++) {
			uint64_t unit = coord_along(d, UINT64_C(1) << b);
			uint32_t offset = offset_in(memory, unit);
			if (f2_add(&t->place, unit, offset) && (offset & (offset - 1)))
				return false;
		}
	return true;
}

static const char *
prepare(Conversion *c, const Layout *memory, Scratch *t)
{
	unsigned bits = c->means->bits;
	if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
		return "elements of 8, 16, 32 or 64 bits are moved";
	if (!layout_split_memory(c->src.layout, memory, &c->src.split))
		return "the layouts have different shapes, or their digits do not nest";
	for (unsigned i = 0; i < c->src.layout->nbit[AXIS_BLOCK]; i++)
		if (c->src.layout->col[AXIS_BLOCK][i])
			return "a block has only a part of the tile";
	if (!place_bits(c->src.layout, memory, t))
		return "the memory holds an element twice, or offsets are no sums of bits";
	while (t->nvec < memory->nbit[AXIS_OFFSET] && bits << (t->nvec + 1) <= VECTOR_BITS) {
		t->vec[t->nvec] = memory->col[AXIS_OFFSET][t->nvec];
		t->nvec++;
	}
	return NULL;
}

static uint64_t
digits_coordinate(const Split *s, uint32_t v)
{
	uint64_t coord = 0;
	for (unsigned i = 0; i < s->ndigit; v /= s->digit[i++].count)
		coord += coord_along(s->digit[i].dim, (uint64_t)(v % s->digit[i].count) * s->digit[i].stride);
	return coord;
}

const ConvertPlan *
layout_access(Arena *a, const Layout *registers, const Layout *memory_layout, bool load, const ConvertMeans *means,
              const char **error)
{
	Layout *regs = arena_copy(a, registers, sizeof *regs), *memory = arena_copy(a, memory_layout, sizeof *memory);
	Conversion *c = ARENA_NEW(a, Conversion);
	Scratch *t = ARENA_NEW(a, Scratch);
	ConvertPlan *p = ARENA_NEW(a, ConvertPlan);
	layout_canonical(regs);
	layout_canonical(memory);
	c->arena = a;
	c->means = means;
	c->src = convert_side(regs);
	*error = prepare(c, memory, t);
	if (*error)
		return NULL;
	c->dst = c->src;
	Move *m = load ? &t->dst : &t->src;
	move_choose(c, t, &c->src, load ? means->load_matrix : means->store_matrix, m);
	if (!move_fit(t, &c->src, m)) {
		move_choose(c, t, &c->src, false, m);
		move_fit(t, &c->src, m);
	}
	for (uint32_t v = 0; v < split_digits(&c->src.split); v++) {
		ConvertStep *s = move_add(c, t, load, 0, v, p);
		uint32_t base = offset_in(memory, digits_coordinate(&c->src.split, v));
		for (uint32_t e = 0; e < s->n; e++)
			s->at[e] ^= base;
	}
	if (load)
		move_duplicates(c, p);
	p->cls = m->kind == MOVE_VECTOR ? CONVERT_MEMORY : CONVERT_MATRIX;
	p->nreg = layout_size(regs, AXIS_REG);
	p->scratch = layout_size(memory, AXIS_OFFSET);
	return p;
}
