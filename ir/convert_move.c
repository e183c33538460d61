/* convert_move.c: registers to and from memory: vectors, or rows of 8 x 8 matrices.
 *
 * The memory is given as what its first offsets are, the vector, and as a basis that says of every
 * coordinate its offset. A vector move takes as much of the vector as the side has in registers; a matrix
 * move fits when the vector is a row as the side's fragment has it: 32 bits of a register and lanes 0 and 1,
 * or transposed lanes 2 to 4. */
#include "ir/bugs.h"
#include "ir/convert_inside.h"

static F2Basis
registers_of(const Side *s)
{
	F2Basis b = {0};
	for (unsigned i = 0; i < s->split.nreg; i++)
		f2_add(&b, s->split.reg[i], UINT64_C(1) << i);
	return b;
}

static uint64_t
register_bits(const F2Basis *registers, uint64_t v)
{
	uint64_t how = 0;
	f2_reduce(registers, v, &how);
	return how;
}

/* --- how a side moves, given the vector --- */

static bool
independent_with(const Side *s, const uint64_t *v, unsigned n)
{
	F2Basis b = {0};
	f2_add_all(&b, s->lane, s->nlane);
	for (unsigned i = 0; i < n; i++)
		if (!f2_add(&b, v[i], 0))
			return false;
	return b.n == s->nlane + n;
}

/* A fragment's row: what 32 bits of a register hold, then lanes 0 and 1; its rows are lanes 2 to 4. */
static bool
moves_rows(const Conversion *c, const Scratch *t, const Side *s, const F2Basis *registers, Move *m)
{
	unsigned npack = log2_of(32 / (c->means->bits > 32 ? 32 : c->means->bits));
	if (c->means->bits > 32 || s->nlane != WARP_BITS || t->nvec != npack + 2)
		return false;
	for (unsigned i = 0; i < npack; i++)
		if (!f2_has(registers, t->vec[i]))
			return false;
	if (t->vec[npack] != s->lane[0] || t->vec[npack + 1] != s->lane[1] || !independent_with(s, t->vec, npack))
		return false;
	*m = (Move){.kind = MOVE_MATRIX, .npack = npack, .nphase = 3};
	for (unsigned i = 0; i < npack; i++)
		m->pack[i] = t->vec[i];
	for (unsigned i = 0; i < 3; i++)
		m->phase[i] = s->lane[2 + i];
	return true;
}

/* Transposed: lanes 2 to 4 are along the row in memory, the pair and lanes 0 and 1 number the rows. */
static bool
moves_columns(const Conversion *c, const Scratch *t, const Side *s, Move *m)
{
	if (c->means->bits != 16 || s->nlane != WARP_BITS || t->nvec != 3)
		return false;
	for (unsigned i = 0; i < 3; i++)
		if (t->vec[i] != s->lane[2 + i])
			return false;
	for (unsigned i = 0; i < s->split.nreg; i++)
		if (independent_with(s, &s->split.reg[i], 1)) {
			*m = (Move){.kind = MOVE_TRANSPOSED, .npack = 1, .pack = {s->split.reg[i]}, .nphase = 3,
			            .phase = {s->split.reg[i], s->lane[0], s->lane[1]}};
			return true;
		}
	return false;
}

void
move_choose(const Conversion *c, const Scratch *t, const Side *s, bool matrix, Move *m)
{
	F2Basis registers = registers_of(s);
	if (matrix && (moves_rows(c, t, s, &registers, m) || moves_columns(c, t, s, m)))
		return;
	*m = (Move){.kind = MOVE_VECTOR};
	while (m->width < t->nvec && f2_has(&registers, t->vec[m->width]))
		m->width++;
	unsigned bytes = c->means->bits / 8 << m->width;
	m->nphase = bytes > 8 ? 3 : bytes > 4 ? 4 : WARP_BITS;
	if (m->nphase > s->nlane)
		m->nphase = s->nlane;
	for (unsigned i = 0; i < m->nphase; i++)
		m->phase[i] = s->lane[i];
}

/* --- fitting --- */

static uint32_t
offset_of(const Scratch *t, uint64_t v)
{
	uint64_t how = 0;
	f2_reduce(&t->place, v, &how);
	return (uint32_t)how;
}

static uint64_t
without_passes(const Scratch *t, uint64_t v)
{
	uint64_t how = 0;
	f2_reduce(&t->place, v, &how);
	for (unsigned i = 0; i < t->npass; i++)
		if (how >> (PASS_SHIFT + i) & 1)
			v ^= t->pass[i];
	return v;
}

/* An access starts where its lanes, warp and registers say, at a whole unit: vectors of the width, for
 * matrices rows. What reaches into a unit narrows it; a row cannot be narrowed. */
static bool
starts_whole(const Scratch *t, const uint64_t *v, unsigned n, Move *m)
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t offset = offset_of(t, without_passes(t, v[i]));
		if (m->kind != MOVE_VECTOR && offset % (UINT32_C(1) << t->nvec))
			return false;
		while (m->kind == MOVE_VECTOR && !BUG(unit_unfitted) && offset % (UINT32_C(1) << m->width))
			m->width--;
	}
	return true;
}

/* Fits the move to the basis, and lists the registers that its unit does not have. */
bool
move_fit(const Scratch *t, const Side *s, Move *m)
{
	F2Basis own = {0};
	bool vector = m->kind == MOVE_VECTOR;
	for (unsigned i = 0; i < m->npack; i++)
		m->pack[i] = without_passes(t, m->pack[i]);
	if (!starts_whole(t, s->warp, s->nwarp, m) ||
	    !(vector ? starts_whole(t, s->lane, s->nlane, m) : starts_whole(t, m->phase, m->nphase, m)))
		return false;
	const uint64_t *unit = vector ? t->vec : m->pack;
	unsigned nunit = vector ? m->width : m->npack;
	f2_add_all(&own, unit, nunit);
	for (unsigned i = 0; i < s->split.nreg; i++) {
		uint64_t v = without_passes(t, s->split.reg[i]);
		for (unsigned k = 0; k < nunit && m->kind != MOVE_TRANSPOSED; k++)
			if (offset_of(t, v) >> k & 1)
				v ^= unit[k];
		if (!f2_add(&own, v, 0))
			continue;
		if (!starts_whole(t, &v, 1, m))
			return false;
		m->rest[m->nrest++] = v;
	}
	return true;
}

/* --- the steps --- */

static uint64_t
sum_of(const uint64_t *v, uint64_t which)
{
	uint64_t sum = 0;
	for (unsigned i = 0; which >> i; i++)
		if (which >> i & 1)
			sum ^= v[i];
	return sum;
}

/* The address columns of the lanes, and what one entry costs. */
static void
address_lanes(const Conversion *c, const Scratch *t, const Side *s, const Move *m, unsigned nmatrix,
              ConvertStep *step)
{
	BankAccess access = {.nlane = s->nlane, .bits = c->means->bits, .width = 1u << m->width};
	if (m->kind == MOVE_VECTOR) {
		for (unsigned i = 0; i < s->nlane; i++)
			step->lane[i] = offset_of(t, s->lane[i]);
	} else {
		for (unsigned i = 0; i < 3; i++)
			step->lane[i] = offset_of(t, without_passes(t, m->phase[i]));
		for (unsigned i = 0; i < nmatrix; i++)
			step->lane[3 + i] = offset_of(t, m->rest[i]);
		access.nlane = 3 + nmatrix;
		access.width = VECTOR_BITS / c->means->bits;
	}
	for (unsigned i = 0; i < access.nlane; i++)
		access.lane[i] = step->lane[i];
	for (unsigned i = 0; i < s->nwarp; i++)
		step->warp[i] = offset_of(t, s->warp[i]);
	step->wavefronts = bank_wavefronts(&access);
	step->groups = bank_groups(&access);
}

/* Register bits of the unit's vectors, then of the rest's: item n of the step takes those that n's bits
 * select. Returns what the pass adds to each. */
static uint64_t
item_bits(const Scratch *t, const Side *s, const Move *m, uint64_t pass, uint64_t *bits)
{
	F2Basis registers = registers_of(s);
	unsigned n = 0;
	for (unsigned i = 0; i < m->width; i++)
		bits[n++] = register_bits(&registers, t->vec[i]);
	for (unsigned i = 0; i < m->npack; i++)
		bits[n++] = register_bits(&registers, m->pack[i]);
	for (unsigned i = 0; i < m->nrest; i++)
		bits[n++] = register_bits(&registers, m->rest[i]);
	return register_bits(&registers, sum_of(t->pass, pass));
}

ConvertStep *
move_add(const Conversion *c, const Scratch *t, bool load, uint64_t pass, uint32_t digits, ConvertPlan *p)
{
	const Side *s = load ? &c->dst : &c->src;
	const Move *m = load ? &t->dst : &t->src;
	bool vector = m->kind == MOVE_VECTOR;
	uint64_t bits[COMMON + 4], always = item_bits(t, s, m, pass, bits);
	unsigned nmatrix = vector ? 0 : m->nrest < 2 ? m->nrest : 2;
	uint32_t entries = UINT32_C(1) << (m->nrest - nmatrix);
	uint32_t items = UINT32_C(1) << nmatrix << (m->width + m->npack), first = load ? c->result : 0;
	ConvertStepKind kind = vector ? (load ? STEP_LOAD : STEP_STORE) : load ? STEP_LOAD_MATRIX : STEP_STORE_MATRIX;
	ConvertStep *step = plan_add(c->arena, p, kind, entries, items);
	step->width = vector ? items : UINT32_C(1) << nmatrix;
	step->trans = m->kind == MOVE_TRANSPOSED;
	address_lanes(c, t, s, m, nmatrix, step);
	for (uint64_t e = 0; e < entries; e++)
		step->at[e] = offset_of(t, sum_of(m->rest + nmatrix, e));
	for (uint64_t n = 0; n < (uint64_t)entries * items; n++)
		step->reg[n] = first + split_register(&s->split, always ^ sum_of(bits, n), digits);
	p->cost += entries * (COST_ISSUE + step->wavefronts * COST_PIPE);
	return step;
}

void
move_duplicates(const Conversion *c, ConvertPlan *p)
{
	const Split *s = &c->dst.split;
	F2Basis registers = registers_of(&c->dst);
	if (registers.n == s->nreg)
		return;
	uint32_t digits = split_digits(s), n = 0;
	ConvertStep *step = plan_add(c->arena, p, STEP_MOVE, digits << s->nreg, 1);
	for (uint64_t x = 0; x >> s->nreg == 0; x++) {
		uint64_t held = register_bits(&registers, sum_of(s->reg, x));
		for (uint32_t v = 0; v < digits && held != x; v++, n++) {
			step->reg[n] = c->result + split_register(s, x, v);
			step->from[n] = c->result + split_register(s, held, v);
		}
	}
	step->n = n;
}
