/* convert_emit.c: steps of conversion plans as TIR of one thread. */
#include "passes/schedule/convert_emit.h"

#include <string.h>

enum { WARP_BITS = 5, WORD_BITS = 32 };

static ValId
word(TirKernel *k, uint32_t v)
{
	return tir_int(k, DT_U32, v);
}

/* What the bits of `number` add: those that go as far to the left, or to the right, go together. */
static ValId
sum_of_bits(TirKernel *k, const uint32_t *add, int nbit, ValId number)
{
	ValId sum = 0;
	for (int left = 1 - nbit; left < WORD_BITS; left++) {
		uint32_t mask = 0;
		for (int i = 0; i < nbit; i++)
			if (i + left >= 0 && i + left < WORD_BITS && add[i] >> (i + left) & 1)
				mask |= UINT32_C(1) << i;
		if (!mask)
			continue;
		ValId part = tir_binary(k, OP_BAND, number, word(k, mask));
		if (left)
			part = tir_binary(k, left > 0 ? OP_SHL : OP_SHR, part, word(k, (uint32_t)(left > 0 ? left : -left)));
		sum = sum ? tir_binary(k, OP_BXOR, sum, part) : part;
	}
	return sum ? sum : word(k, 0);
}

static unsigned
find_bits(const ConvertPlace *p, uint32_t bits)
{
	unsigned n = 0;
	while (n < p->n && p->bits[n] != bits)
		n++;
	return n;
}

ConvertPlace
convert_place(TirKernel *k, Arena *a, const ConvertStep *step, ValId scratch, ValId warp, ValId lane)
{
	ConvertPlace p = {.k = k, .step = step, .scratch = scratch, .warp = warp};
	for (unsigned i = 0; i < LAYOUT_BITS; i++)
		if (step->warp[i])
			bug(a, "a conversion of warps that have a scratch of their own takes elements to others");
	p.own = sum_of_bits(k, step->lane, WARP_BITS, tir_cast(k, DT_U32, lane));
	p.bits = ARENA_ARRAY(a, uint32_t, step->n);
	p.from = ARENA_ARRAY(a, ValId, step->n);
	for (unsigned i = 0; i < WARP_BITS; i++)
		p.reach |= step->lane[i];
	for (uint32_t e = 0; e < step->n; e++) {
		uint32_t bits = step->at[e] & p.reach;
		if (find_bits(&p, bits) < p.n)
			continue;
		p.bits[p.n] = bits;
		p.from[p.n++] = tir_cast(k, DT_I64, bits ? tir_binary(k, OP_BXOR, p.own, word(k, bits)) : p.own);
	}
	return p;
}

static ValId
offset_of(const ConvertPlace *p, unsigned e)
{
	uint32_t at = p->step->at[e], beyond = at & ~p->reach;
	ValId from = p->from[find_bits(p, at & p->reach)];
	return beyond ? tir_binary(p->k, OP_ADD, from, tir_int(p->k, DT_I64, beyond)) : from;
}

void
convert_put(const ConvertPlace *p, unsigned e, const ValId *reg)
{
	enum { MOST = 16 };
	const ConvertStep *s = p->step;
	DType t = (DType)tir_inst(p->k, p->scratch)->type.dtype;
	bool matrices = s->kind == STEP_STORE_MATRIX;
	unsigned n = matrices ? s->width * 32 / dtype_info[t].bits : s->width;
	ValId own[MOST];
	for (unsigned i = 0; i < n; i++)
		own[i] = reg[s->reg[e * n + i]];
	const ValId at[2] = {p->warp, offset_of(p, e)};
	ValId all = n > 1 ? tir_emit(p->k, OP_JOIN, tir_vector(t, n), 0, own, n) : own[0];
	if (matrices)
		tir_store_matrix(p->k, p->scratch, all, at, s->trans);
	else
		tir_store(p->k, p->scratch, all, at, 0, n > 1 ? TIR_LANES_ALONG(1) : 0);
}

static ValId
take_at(const ConvertPlace *p, ValId offset)
{
	unsigned n = p->step->width;
	const ValId at[2] = {p->warp, offset};
	return tir_load(p->k, p->scratch, at, 0, n > 1 ? TIR_LANES_ALONG(1) : 0, n > 1 ? n : 0);
}

ValId
convert_take(const ConvertPlace *p, unsigned e)
{
	return take_at(p, offset_of(p, e));
}

/* Entries are sums as well: number 2^i has what bit i of an entry's number adds. */
ValId
convert_take_any(const ConvertPlace *p, ValId e)
{
	uint32_t add[WORD_BITS];
	int nbit = 0;
	for (; UINT32_C(1) << nbit < p->step->n; nbit++)
		add[nbit] = p->step->at[UINT32_C(1) << nbit];
	ValId more = sum_of_bits(p->k, add, nbit, tir_cast(p->k, DT_U32, e));
	return take_at(p, tir_cast(p->k, DT_I64, tir_binary(p->k, OP_BXOR, p->own, more)));
}

/* --- without memory --- */

/* Whether the lane's number has an odd number of the mask's bits. */
static ValId
is_odd(TirKernel *k, ValId lane, uint32_t mask)
{
	ValId sum = 0;
	for (unsigned i = 0; i < WARP_BITS; i++)
		if (mask >> i & 1) {
			ValId bit = i ? tir_binary(k, OP_SHR, lane, word(k, i)) : lane;
			sum = sum ? tir_binary(k, OP_BXOR, sum, bit) : bit;
		}
	return tir_binary(k, OP_EQ, tir_binary(k, OP_BAND, sum, word(k, 1)), word(k, 1));
}

/* What such a selection of the same condition selects there. */
static ValId
arm(const TirKernel *k, ValId v, ValId condition, bool holds)
{
	const TirInst *p = tir_inst(k, v);
	return p->op == OP_SELECT && tir_arg(k, v, 0) == condition ? tir_arg(k, v, holds ? 1 : 2) : v;
}

static void
exchange(TirKernel *k, const ConvertStep *s, ValId odd, ValId *reg)
{
	for (uint32_t e = 0; e < s->n; e++) {
		ValId *first = &reg[s->reg[2 * e]], *second = &reg[s->reg[2 * e + 1]], a = *first, b = *second;
		*first = tir_select(k, odd, arm(k, b, odd, true), arm(k, a, odd, false));
		*second = tir_select(k, odd, arm(k, a, odd, true), arm(k, b, odd, false));
	}
}

static void
move(TirKernel *k, Arena *a, const ConvertStep *s, ValId *reg)
{
	for (unsigned i = 0; i < WARP_BITS && s->kind == STEP_SHUFFLE; i++)
		if (s->lane[i] != UINT32_C(1) << i)
			bug(a, "a conversion shuffles lanes that differ in bits that are not known");
	for (uint32_t e = 0; e < s->n; e++) { /* from registers of the source to others, of the result */
		ValId own = reg[s->from[e]];
		reg[s->reg[e]] = s->kind == STEP_SHUFFLE && s->at[e] ? tir_emit(k, OP_SHUFFLE, tir_inst(k, own)->type, s->at[e], &own, 1) : own;
	}
}

void
convert_in_registers(TirKernel *k, Arena *a, const ConvertPlan *p, ValId lane, const ValId *from, ValId *to)
{
	ValId *reg = ARENA_ARRAY(a, ValId, p->nreg), odd = 0, number = tir_cast(k, DT_U32, lane);
	uint32_t mask = 0;
	memcpy(reg, from, p->result * sizeof *reg);
	for (uint32_t n = 0; n < p->step.n; n++) {
		const ConvertStep *s = &p->step.at[n];
		if (s->kind == STEP_EXCHANGE) {
			odd = s->mask == mask ? odd : is_odd(k, number, s->mask);
			mask = s->mask;
			exchange(k, s, odd, reg);
		} else if (s->kind == STEP_MOVE || s->kind == STEP_SHUFFLE) {
			move(k, a, s, reg);
		} else {
			bug(a, "a conversion in registers goes through memory");
		}
	}
	memcpy(to, reg + p->result, (p->nreg - p->result) * sizeof *to);
}
