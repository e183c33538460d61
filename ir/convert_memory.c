/* convert_memory.c: conversion through shared memory with a computed swizzle.
 *
 * The scratch is an ordered basis: vector, bank, segment; what is left over, common registers, is gone
 * through in passes. Coordinates in that basis are offsets, so addresses are xors. Several choices of
 * the vector compete by cost: the registers common to both sides; and for each side the row of an 8 x 8
 * matrix as its fragment would have it, plain or transposed.
 *
 * Two lanes of one access conflict when the sum of what they reach lies in vector + segments but not in
 * the vector. With P and R what the lanes of an access reach on either side, modulo vector and passes,
 * the segments are taken from a common complement of both: a complement of P + R, and sums of one
 * vector of P and one of R that are independent of P and R's common part. Its dimension is that of all
 * less the larger of P and R, so no conflict remains unless the access reaches more than all banks. */
#include "ir/bugs.h"
#include "ir/convert_inside.h"

enum { ROW_BITS = 1024 };

/* --- the basis --- */

/* Registers common to both that no lane or warp reaches: as many as bring the scratch below the limit. */
static void
choose_passes(const Conversion *c, Scratch *t, const uint64_t *common, unsigned ncommon)
{
	F2Basis held = {0}, all = {0};
	f2_add_all(&held, t->vec, t->nvec);
	const Side *side[2] = {&c->src, &c->dst};
	for (unsigned i = 0; i < 2 && !BUG(passes_share_lanes); i++) {
		f2_add_all(&held, side[i]->lane, side[i]->nlane);
		f2_add_all(&held, side[i]->warp, side[i]->nwarp);
	}
	f2_add_all(&all, c->src.split.reg, c->src.split.nreg);
	f2_add_all(&all, c->src.lane, c->src.nlane);
	f2_add_all(&all, c->src.warp, c->src.nwarp);
	t->n = all.n;
	for (unsigned i = 0; i < ncommon; i++) {
		if ((UINT64_C(1) << t->n) * c->means->bits / 8 <= c->means->scratch_bytes)
			break;
		if (f2_add(&held, common[i], 0)) {
			t->pass[t->npass++] = common[i];
			t->n--;
		}
	}
}

/* What spans the scratch, from which vectors are taken in this order: lanes, warps, other registers. */
static unsigned
generators(const Conversion *c, const Scratch *t, uint64_t *out)
{
	F2Basis b = {0};
	unsigned n = 0;
	const uint64_t *list[6] = {c->src.lane, c->dst.lane, c->src.warp, c->dst.warp, c->src.split.reg,
	                           c->dst.split.reg};
	unsigned count[6] = {c->src.nlane, c->dst.nlane, c->src.nwarp, c->dst.nwarp, c->src.split.nreg,
	                     c->dst.split.nreg};
	f2_add_all(&b, t->vec, t->nvec);
	f2_add_all(&b, t->pass, t->npass);
	for (unsigned k = 0; k < 6; k++)
		for (unsigned i = 0; i < count[k]; i++)
			if (f2_add(&b, list[k][i], 0))
				out[n++] = list[k][i];
	return n;
}

/* Those of v that are independent of b and one another; b takes them. */
static unsigned
new_ones(F2Basis *b, const uint64_t *v, unsigned n, uint64_t *out)
{
	unsigned k = 0;
	for (unsigned i = 0; i < n; i++)
		if (f2_add(b, v[i], 0))
			out[k++] = v[i];
	return k;
}

/* seg[0 .. nfree): a common complement, modulo vector and passes, of what either side's lanes reach. */
static void
free_of_conflicts(Scratch *t, const uint64_t *gen, unsigned ngen)
{
	F2Basis base = {0};
	uint64_t both[WARP_BITS], p[WARP_BITS], r[WARP_BITS];
	f2_add_all(&base, t->vec, t->nvec);
	f2_add_all(&base, t->pass, t->npass);
	unsigned nboth = f2_meet(&base, t->src.phase, t->src.nphase, t->dst.phase, t->dst.nphase, both);
	F2Basis with_src = base, with_dst = base, all = base;
	f2_add_all(&with_src, both, nboth);
	f2_add_all(&with_dst, both, nboth);
	unsigned np = new_ones(&with_src, t->src.phase, t->src.nphase, p);
	unsigned nr = new_ones(&with_dst, t->dst.phase, t->dst.nphase, r);
	f2_add_all(&all, t->src.phase, t->src.nphase);
	f2_add_all(&all, t->dst.phase, t->dst.nphase);
	t->nfree = new_ones(&all, gen, ngen, t->seg);
	for (unsigned i = 0; i < np && i < nr; i++)
		t->seg[t->nfree++] = p[i] ^ r[i];
}

static void
choose_basis(const Conversion *c, Scratch *t)
{
	uint64_t gen[F2_MAX];
	unsigned ngen = generators(c, t, gen), row = log2_of(ROW_BITS / c->means->bits) - t->nvec;
	F2Basis taken = {0};
	if (!BUG(segments_anywhere))
		free_of_conflicts(t, gen, ngen);
	t->nbank = row < ngen ? row : ngen;
	t->nseg = ngen - t->nbank;
	f2_add_all(&taken, t->vec, t->nvec);
	f2_add_all(&taken, t->pass, t->npass);
	/* What is free and not a segment comes first among the banks: there lie the parts of a word. */
	unsigned nown = t->nseg < t->nfree ? t->nseg : t->nfree, n = 0;
	f2_add_all(&taken, t->seg, nown);
	n = new_ones(&taken, t->seg + nown, t->nfree - nown, t->basis);
	n += new_ones(&taken, gen, ngen, t->basis + n);
	for (unsigned i = 0; i < nown; i++)
		t->basis[n++] = t->seg[i];
	for (unsigned i = 0; i < t->nvec; i++)
		f2_add(&t->place, t->vec[i], UINT64_C(1) << i);
	for (unsigned i = 0; i < n; i++)
		f2_add(&t->place, t->basis[i], UINT64_C(1) << (t->nvec + i));
	for (unsigned i = 0; i < t->npass; i++)
		f2_add(&t->place, t->pass[i], UINT64_C(1) << (PASS_SHIFT + i));
}

static void
add_barrier(const Conversion *c, ConvertPlan *p)
{
	plan_add(c->arena, p, STEP_BARRIER, 0, 1)->block = !c->own_scratch;
	p->cost += c->own_scratch ? COST_WARP_BARRIER : COST_BLOCK_BARRIER;
}

static bool
plan_with_vector(const Conversion *c, Scratch *t, const uint64_t *common, unsigned ncommon, ConvertPlan *p)
{
	move_choose(c, t, &c->src, c->means->store_matrix, &t->src);
	move_choose(c, t, &c->dst, c->means->load_matrix, &t->dst);
	choose_passes(c, t, common, ncommon);
	choose_basis(c, t);
	if (!move_fit(t, &c->src, &t->src) || !move_fit(t, &c->dst, &t->dst))
		return false;
	uint32_t digits = split_digits(&c->src.split);
	for (uint32_t v = 0; v < digits; v++)
		for (uint64_t pass = 0; pass >> t->npass == 0; pass++) {
			if (p->step.n)
				add_barrier(c, p);
			move_add(c, t, false, pass, v, p);
			add_barrier(c, p);
			move_add(c, t, true, pass, v, p);
		}
	move_duplicates(c, p);
	p->scratch = UINT32_C(1) << t->n;
	bool matrix = t->src.kind != MOVE_VECTOR || t->dst.kind != MOVE_VECTOR;
	p->cls = matrix ? CONVERT_MATRIX : CONVERT_MEMORY;
	return true;
}

/* --- the choices of the vector --- */

/* As a fragment's row: the common registers where they do, else any. */
static bool
row_vector(const Conversion *c, const Side *s, const uint64_t *common, unsigned ncommon, Scratch *t)
{
	F2Basis b = {0};
	if (c->means->bits > 32 || s->nlane != WARP_BITS)
		return false;
	unsigned npack = log2_of(32 / c->means->bits);
	f2_add_all(&b, s->lane, s->nlane);
	if (b.n != WARP_BITS)
		return false;
	for (unsigned i = 0; i < ncommon && t->nvec < npack; i++)
		if (f2_add(&b, common[i], 0))
			t->vec[t->nvec++] = common[i];
	for (unsigned i = 0; i < s->split.nreg && t->nvec < npack; i++)
		if (f2_add(&b, s->split.reg[i], 0))
			t->vec[t->nvec++] = s->split.reg[i];
	if (t->nvec < npack)
		return false;
	t->vec[t->nvec++] = s->lane[0];
	t->vec[t->nvec++] = s->lane[1];
	return true;
}

static bool
column_vector(const Conversion *c, const Side *s, Scratch *t)
{
	if (c->means->bits != 16 || s->nlane != WARP_BITS || f2_rank(s->lane, WARP_BITS) != WARP_BITS)
		return false;
	for (unsigned i = 0; i < 3; i++)
		t->vec[t->nvec++] = s->lane[2 + i];
	return true;
}

/* What both have in registers and no lane or warp reaches, so that it starts whole everywhere. */
static void
common_vector(const Conversion *c, const uint64_t *common, unsigned ncommon, Scratch *t)
{
	F2Basis reached = {0};
	f2_add_all(&reached, c->src.lane, c->src.nlane);
	f2_add_all(&reached, c->dst.lane, c->dst.nlane);
	f2_add_all(&reached, c->src.warp, c->src.nwarp);
	f2_add_all(&reached, c->dst.warp, c->dst.nwarp);
	for (unsigned i = 0; i < ncommon && c->means->bits << (t->nvec + 1) <= VECTOR_BITS; i++)
		if (f2_add(&reached, common[i], 0))
			t->vec[t->nvec++] = common[i];
}

enum { CHOICES = 5 };

/* Choice 0 always is one. */
static bool
choose_vector(const Conversion *c, unsigned choice, const uint64_t *common, unsigned ncommon, Scratch *t)
{
	const Side *s = choice <= 2 ? &c->src : &c->dst;
	bool matrix = choice <= 2 ? c->means->store_matrix : c->means->load_matrix;
	*t = (Scratch){0};
	if (choice == 0) {
		common_vector(c, common, ncommon, t);
		return true;
	}
	if (!matrix)
		return false;
	return choice % 2 ? row_vector(c, s, common, ncommon, t) : column_vector(c, s, t);
}

bool
convert_by_memory(const Conversion *c, ConvertPlan *p)
{
	uint64_t common[COMMON];
	unsigned ncommon = f2_meet(NULL, c->src.split.reg, c->src.split.nreg, c->dst.split.reg, c->dst.split.nreg,
	                           common);
	bool any = false;
	for (unsigned choice = 0; choice < CHOICES; choice++) {
		Scratch *t = ARENA_NEW(c->arena, Scratch);
		ConvertPlan q = {.nreg = p->nreg, .result = p->result};
		if (!choose_vector(c, choice, common, ncommon, t) || !plan_with_vector(c, t, common, ncommon, &q))
			continue;
		if (!any || q.cost < p->cost)
			*p = q;
		any = true;
	}
	return any;
}
