/* big.c: natural numbers of a bounded length (big.h).
 *
 * The first 64 bits of a quotient and whether anything is left decide the double. There is no floating-point operation in
 * here, so neither rounding mode nor locale matters. */
#include "frontend/big.h"

#include <string.h>

void
big_mul_add(Big *b, uint32_t m, uint32_t add)
{
	uint64_t carry = add;
	for (uint32_t k = 0; k < b->n; k++) {
		carry += (uint64_t)b->w[k] * m;
		b->w[k] = (uint32_t)carry;
		carry >>= 32;
	}
	if (carry)
		b->w[b->n++] = (uint32_t)carry;
}

static uint32_t
big_bits(const Big *b)
{
	uint32_t bits = b->n * 32;
	for (uint32_t top = b->w[b->n - 1]; !(top & 0x80000000u); top <<= 1)
		bits--;
	return bits;
}

static void
big_shift(Big *b, uint32_t by)
{
	uint32_t words = by / 32, bits = by % 32;
	if (bits)
		big_mul_add(b, 1u << bits, 0);
	memmove(b->w + words, b->w, b->n * sizeof b->w[0]);
	memset(b->w, 0, words * sizeof b->w[0]);
	b->n += words;
}

int
big_compare(const Big *a, const Big *b)
{
	if (a->n != b->n)
		return a->n < b->n ? -1 : 1;
	for (uint32_t k = a->n; k-- > 0;)
		if (a->w[k] != b->w[k])
			return a->w[k] < b->w[k] ? -1 : 1;
	return 0;
}

void
big_add(Big *a, const Big *b)
{
	uint64_t carry = 0;
	for (uint32_t k = 0; k < b->n || (carry && k < BIG_WORDS); k++) {
		if (k == a->n)
			a->w[a->n++] = 0;
		carry += (uint64_t)a->w[k] + (k < b->n ? b->w[k] : 0);
		a->w[k] = (uint32_t)carry;
		carry >>= 32;
	}
}

bool
big_product(const Big *a, const Big *b, Big *out)
{
	if (a->n + b->n >= BIG_WORDS)
		return false;
	memset(out->w, 0, (a->n + b->n) * sizeof out->w[0]);
	for (uint32_t i = 0; i < a->n; i++) {
		uint64_t carry = 0;
		for (uint32_t k = 0; k < b->n; k++) {
			carry += (uint64_t)a->w[i] * b->w[k] + out->w[i + k];
			out->w[i + k] = (uint32_t)carry;
			carry >>= 32;
		}
		out->w[i + b->n] = (uint32_t)carry;
	}
	out->n = a->n + b->n;
	while (out->n > 0 && out->w[out->n - 1] == 0)
		out->n--;
	return true;
}

void
big_subtract(Big *a, const Big *b)
{
	uint64_t borrow = 0;
	for (uint32_t k = 0; k < a->n; k++) {
		uint64_t d = (uint64_t)a->w[k] - (k < b->n ? b->w[k] : 0) - borrow;
		a->w[k] = (uint32_t)d;
		borrow = d >> 63;
	}
	while (a->n > 0 && a->w[a->n - 1] == 0)
		a->n--;
}

void
big_divide(Big *num, const Big *den, Big *quotient)
{
	Big rest = {0};
	memset(quotient->w, 0, num->n * sizeof quotient->w[0]);
	for (uint32_t k = num->n; k-- > 0;)
		for (uint32_t bit = 32; bit-- > 0;) {
			uint32_t next = num->w[k] >> bit & 1;
			big_mul_add(&rest, 2, next);
			if (big_compare(&rest, den) < 0)
				continue;
			big_subtract(&rest, den);
			quotient->w[k] |= 1u << bit;
		}
	quotient->n = num->n;
	while (quotient->n > 0 && quotient->w[quotient->n - 1] == 0)
		quotient->n--;
	*num = rest;
}

/* q * 2^(top - 63), plus a little where sticky, as a double; q has its highest bit set. */
static bool
round_to_double(uint64_t q, int64_t top, bool sticky, BigRounding how, double *out)
{
	int64_t keep = top >= -1022 ? 53 : 53 - (-1022 - top);
	if (keep < 0)
		keep = 0, q >>= 1, sticky = true; /* below half of the smallest */
	uint64_t m = keep ? q >> (64 - keep) : 0;
	uint64_t rest = keep ? q << keep : q, half = (uint64_t)1 << 63;
	if (how == ROUND_ODD)
		m |= rest || sticky;
	else if (rest > half || (rest == half && (sticky || (m & 1))))
		m++;
	uint64_t bits = m;
	if (top >= -1022)
		bits += (uint64_t)(top + 1022) << 52;
	if (top > 1023 || bits >= (uint64_t)0x7ff << 52)
		return false;
	memcpy(out, &bits, sizeof bits);
	return true;
}

bool
big_quotient(Big *num, Big *den, BigRounding how, double *out)
{
	uint32_t nb = big_bits(num), db = big_bits(den);
	int64_t top = (int64_t)nb - db;
	if (nb < db)
		big_shift(num, db - nb);
	else
		big_shift(den, nb - db);
	if (big_compare(num, den) < 0) {
		big_shift(num, 1);
		top--;
	}
	uint64_t q = 0;
	for (int k = 0; k < 64; k++) {
		q <<= 1;
		if (big_compare(num, den) >= 0) {
			big_subtract(num, den);
			q |= 1;
		}
		if (num->n)
			big_mul_add(num, 2, 0);
	}
	return round_to_double(q, top, num->n > 0, how, out);
}
