/* layout_banks.c: how often an access of lanes goes through the banks of shared memory. */
#include "ir/layout.h"

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
