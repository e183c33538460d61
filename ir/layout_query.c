/* layout_query.c: what passes ask of a layout: runs, vectors, banks of shared memory. */
#include "ir/layout.h"

uint32_t
layout_run(const Layout *layout, LayoutAxis axis, unsigned dim)
{
	Layout l = *layout;
	uint32_t run = 1;
	layout_canonical(&l);
	for (unsigned i = 0; i < l.nbit[axis]; i++, run *= 2)
		if (l.col[axis][i] != coord_along(dim, run))
			return run;
	for (unsigned i = 0; i < l.nrepeat; i++)
		if (l.repeat[i].axis == axis) {
			if (l.repeat[i].dim == dim && l.repeat[i].stride == run)
				run *= l.repeat[i].count;
			break;
		}
	return run;
}

static uint32_t
power_in(uint32_t v)
{
	return v & (~v + 1);
}

/* Along dim a column of a lane steps a power of two, so where the registers miss no bit below the
 * extent's odd part, whatever is above is in registers too. */
uint32_t
layout_vector(const Layout *l, unsigned dim)
{
	F2Basis registers = {0};
	uint32_t width = power_in(l->shape[dim]), mask = 0;
	for (unsigned i = 0; i < l->nbit[AXIS_REG]; i++)
		f2_add(&registers, l->col[AXIS_REG][i], 0);
	for (unsigned a = 0; a < AXIS_COUNT; a++)
		for (unsigned i = 0; i < l->nbit[a]; i++)
			mask |= coord_get(l->col[a][i], dim);
	for (uint32_t bit = 1; bit < width; bit *= 2)
		if ((mask & bit) && !f2_has(&registers, coord_along(dim, bit)))
			return bit;
	for (unsigned i = 0; i < l->nrepeat; i++)
		if (l->repeat[i].dim == dim && l->repeat[i].axis != AXIS_REG && power_in(l->repeat[i].stride) < width)
			width = power_in(l->repeat[i].stride);
	return width;
}

/* --- banks --- */

enum { BANK_BYTES = 4, BANKS = 32 };

static unsigned
access_bytes(const BankAccess *a)
{
	return a->width * a->bits / 8;
}

/* Bits of the lane's number that one group of lanes has. */
static unsigned
group_bits(const BankAccess *a)
{
	unsigned n = access_bytes(a) > 8 ? 3 : access_bytes(a) > 4 ? 4 : 5;
	return n < a->nlane ? n : a->nlane;
}

unsigned
bank_groups(const BankAccess *a)
{
	return 1u << (a->nlane - group_bits(a));
}

/* Offsets are linear in the lane, so each bank that is asked at all is asked for equally many words:
 * the words are a space, the banks its image, and the words of one bank a coset of the kernel. */
unsigned
bank_wavefronts(const BankAccess *a)
{
	uint64_t word[LAYOUT_BITS], bank[LAYOUT_BITS];
	unsigned n = group_bits(a), unit = access_bytes(a) > BANK_BYTES ? access_bytes(a) : BANK_BYTES;
	for (unsigned i = 0; i < n; i++) {
		uint64_t byte = (uint64_t)a->lane[i] * a->bits / 8;
		word[i] = byte / unit;
		bank[i] = byte % (BANK_BYTES * BANKS) / unit;
	}
	return bank_groups(a) << (f2_rank(word, n) - f2_rank(bank, n));
}
