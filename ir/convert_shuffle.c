/* convert_shuffle.c: conversion inside of each warp, without memory.
 *
 * X sends a place of the result to one of the source, in register and lane bits:
 *     register = A r + B l,    lane = C r + D l.
 * A shuffle lets every lane name the lane it reads, but not the register there. So lane l takes in round
 * k not what belongs in register k but in k + E l. It reads lane s = C k + G l, G = D + C E, and there
 * register (A + H C) k + H s, if H G = A E + B: a register of the round, exchanged by what lane s is.
 * Hence: exchange the source's registers by H, one shuffle a round, exchange the result's by E.
 * H exists when G sends nothing to 0 that needs another register; E is chosen to give G the largest rank,
 * which is full, and so enough, wherever the source holds every element once. */
#include "ir/bugs.h"
#include "ir/convert_inside.h"

enum { LANE_SHIFT = 40 }; /* in `how`: register bits below, lane bits above */

typedef struct {
	unsigned nreg, nlane;
	uint64_t A[2 * LAYOUT_BITS], C[2 * LAYOUT_BITS]; /* of the result's register bits */
	uint64_t B[LAYOUT_BITS], D[LAYOUT_BITS];         /* of lane bits, as the rest */
	uint64_t E[LAYOUT_BITS], G[LAYOUT_BITS], H[LAYOUT_BITS];
} Factors;

static uint64_t
apply(const uint64_t *col, unsigned n, uint64_t x)
{
	uint64_t y = 0;
	for (unsigned i = 0; i < n; i++)
		if (x >> i & 1)
			y ^= col[i];
	return y;
}

/* X, as close to the identity on lanes as the source's duplicates allow. */
static bool
solve_places(const Conversion *c, Factors *f)
{
	F2Basis registers = {0}, all = {0};
	uint64_t low = (UINT64_C(1) << LANE_SHIFT) - 1;
	for (unsigned i = 0; i < c->src.split.nreg; i++) {
		f2_add(&registers, c->src.split.reg[i], UINT64_C(1) << i);
		f2_add(&all, c->src.split.reg[i], UINT64_C(1) << i);
	}
	for (unsigned i = 0; i < c->src.nlane; i++)
		f2_add(&all, c->src.lane[i], UINT64_C(1) << (LANE_SHIFT + i));
	f->nreg = c->dst.split.nreg;
	f->nlane = c->dst.nlane;
	for (unsigned i = 0; i < f->nreg; i++) {
		uint64_t how = 0;
		if (f2_reduce(&all, c->dst.split.reg[i], &how))
			return false;
		f->A[i] = how & low;
		f->C[i] = how >> LANE_SHIFT;
	}
	for (unsigned i = 0; i < f->nlane; i++) {
		uint64_t how = 0;
		if (f2_reduce(&registers, c->dst.lane[i] ^ c->src.lane[i], &how) == 0) {
			f->B[i] = how;
			f->D[i] = UINT64_C(1) << i;
			continue;
		}
		how = 0;
		if (f2_reduce(&all, c->dst.lane[i], &how))
			return false;
		f->B[i] = how & low;
		f->D[i] = how >> LANE_SHIFT;
	}
	return true;
}

/* E pairs what D forgets with register bits whose C reaches what D does not. */
static void
choose_exchange(Factors *f)
{
	F2Map d = {.n = f->nlane};
	F2Basis image = {0}, lanes = {0};
	uint64_t lost[F2_MAX];
	for (unsigned i = 0; i < f->nlane; i++) {
		d.col[i] = f->D[i];
		f2_add(&image, f->D[i], 0);
	}
	unsigned nlost = f2_kernel(&d, lost), used = 0;
	for (unsigned i = 0; i < f->nreg && used < nlost; i++)
		if (f2_add(&image, f->C[i], 0))
			f2_add(&lanes, lost[used++], UINT64_C(1) << i);
	while (used < nlost)
		f2_add(&lanes, lost[used++], 0);
	for (unsigned i = 0; i < f->nlane; i++)
		f2_add(&lanes, UINT64_C(1) << i, 0);
	for (unsigned i = 0; i < f->nlane; i++) {
		f->E[i] = 0;
		f2_reduce(&lanes, UINT64_C(1) << i, &f->E[i]);
		f->G[i] = f->D[i] ^ apply(f->C, f->nreg, f->E[i]);
	}
}

static bool
solve_source(Factors *f)
{
	F2Basis reached = {0};
	for (unsigned i = 0; i < f->nlane; i++) {
		uint64_t want = apply(f->A, f->nreg, f->E[i]) ^ f->B[i], have = 0;
		if (f2_reduce(&reached, f->G[i], &have) == 0) {
			if (have != want)
				return false;
		} else {
			f2_add(&reached, f->G[i], want);
		}
	}
	for (unsigned i = 0; i < f->nlane; i++) {
		uint64_t how = 0;
		/* what G does not reach may have any source register: none */
		f2_add(&reached, UINT64_C(1) << i, 0);
		f2_reduce(&reached, UINT64_C(1) << i, &how);
		f->H[i] = how;
	}
	return true;
}

static uint32_t
words(const Conversion *c, uint32_t n)
{
	return (uint32_t)(((uint64_t)n * c->means->bits + 31) / 32);
}

/* reg[x] takes what is in reg[x + by l], l the lane: one exchange for each direction in by's image. */
static void
exchange(const Conversion *c, ConvertPlan *p, const Split *s, uint32_t first, const uint64_t *by, unsigned nlane)
{
	F2Basis image = {0};
	uint64_t direction[LAYOUT_BITS];
	uint32_t mask[LAYOUT_BITS] = {0}, digits = split_digits(s);
	for (unsigned i = 0; i < nlane; i++) {
		uint64_t how = 0;
		if (f2_reduce(&image, by[i], &how)) {
			direction[image.n] = by[i];
			how = UINT64_C(1) << image.n;
			f2_add(&image, by[i], how);
		}
		for (unsigned t = 0; t < image.n; t++)
			if (how >> t & 1)
				mask[t] |= UINT32_C(1) << i;
	}
	for (unsigned t = 0; t < image.n; t++) {
		uint32_t pairs = digits << (s->nreg - 1), n = 0;
		ConvertStep *step = plan_add(c->arena, p, STEP_EXCHANGE, pairs, 2);
		step->mask = mask[t];
		for (uint32_t v = 0; v < digits; v++)
			for (uint64_t x = 0; x >> s->nreg == 0; x++)
				if (x < (x ^ direction[t])) {
					step->reg[n++] = first + split_register(s, x, v);
					step->reg[n++] = first + split_register(s, x ^ direction[t], v);
				}
		p->cost += words(c, 2 * pairs) * COST_REGISTER;
	}
}

static bool
lanes_stay(const Factors *f)
{
	bool stay = true;
	for (unsigned i = 0; i < f->nreg; i++)
		stay = stay && f->C[i] == 0;
	for (unsigned i = 0; i < f->nlane; i++)
		stay = stay && f->G[i] == UINT64_C(1) << i;
	return stay;
}

/* A 32-bit register carries several elements if their rounds read the same lane. */
static uint32_t
shuffles(const Conversion *c, const Factors *f, uint32_t n)
{
	uint32_t packed = 1, alike = UINT32_C(1) << (f->nreg - f2_rank(f->C, f->nreg));
	while (packed < alike && packed * c->means->bits < 32)
		packed *= 2;
	return c->means->bits > 32 ? 2 * n : n / packed;
}

bool
convert_by_shuffle(const Conversion *c, ConvertPlan *p)
{
	Factors f = {0};
	const Split *src = &c->src.split, *dst = &c->dst.split;
	if (!solve_places(c, &f))
		return false;
	choose_exchange(&f);
	if (!solve_source(&f))
		return false;
	exchange(c, p, src, 0, f.H, f.nlane);
	uint32_t digits = split_digits(dst), rounds = digits << dst->nreg, n = 0;
	bool stay = lanes_stay(&f);
	ConvertStep *s = plan_add(c->arena, p, stay ? STEP_MOVE : STEP_SHUFFLE, rounds, 1);
	for (uint32_t v = 0; v < digits; v++)
		for (uint64_t k = 0; k >> dst->nreg == 0; k++, n++) {
			uint64_t lane = apply(f.C, f.nreg, k);
			uint64_t from = apply(f.A, f.nreg, k) ^ apply(f.H, f.nlane, lane);
			s->reg[n] = c->result + split_register(dst, k, v);
			s->from[n] = split_register(src, from, v);
			s->at[n] = (uint32_t)lane;
		}
	for (unsigned i = 0; i < f.nlane; i++)
		s->lane[i] = (uint32_t)f.G[i];
	if (!stay)
		p->cost += shuffles(c, &f, rounds) * (COST_ISSUE + COST_PIPE);
	if (!BUG(exchange_missing))
		exchange(c, p, dst, c->result, f.E, f.nlane);
	p->cls = CONVERT_SHUFFLE;
	return true;
}
