/* number.c: digits to a value, exactly.
 *
 * A decimal number D * 10^e becomes a quotient of two big integers; its first 64 bits and whether
 * anything is left decide the correctly rounded double. There is no floating-point operation in
 * here, so neither rounding mode nor locale matters. At most 768 digits can decide a rounding; of
 * a longer number the tail counts only as being there. */
#include <string.h>

#include "frontend/lex.h"

enum {
	WORDS = 192,       /* 6144 bits: 10^(800 + 400) and a little */
	MAX_DIGITS = 800,
	MAX_DECIMAL = 400, /* beyond 10^+-400 the answer is known */
	MAX_EXP = 100000000
};

typedef struct {
	uint32_t w[WORDS]; /* low first */
	uint32_t n;        /* no leading zero words */
} Big;

static void
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

static int
big_compare(const Big *a, const Big *b)
{
	if (a->n != b->n)
		return a->n < b->n ? -1 : 1;
	for (uint32_t k = a->n; k-- > 0;)
		if (a->w[k] != b->w[k])
			return a->w[k] < b->w[k] ? -1 : 1;
	return 0;
}

/* a -= b, for a >= b. */
static void
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

/* The double nearest to q * 2^(top - 63), plus a little where sticky; q has its highest bit set. */
static bool
round_to_double(uint64_t q, int64_t top, bool sticky, double *out)
{
	int64_t keep = top >= -1022 ? 53 : 53 - (-1022 - top);
	if (keep < 0)
		keep = 0, q >>= 1, sticky = true; /* below half of the smallest */
	uint64_t m = keep ? q >> (64 - keep) : 0;
	uint64_t rest = keep ? q << keep : q, half = (uint64_t)1 << 63;
	if (rest > half || (rest == half && (sticky || (m & 1))))
		m++;
	uint64_t bits = m;
	if (top >= -1022)
		bits += (uint64_t)(top + 1022) << 52;
	if (top > 1023 || bits >= (uint64_t)0x7ff << 52)
		return false;
	memcpy(out, &bits, sizeof bits);
	return true;
}

/* num / den, both not zero. */
static bool
divide(Big *num, Big *den, double *out)
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
	return round_to_double(q, top, num->n > 0, out);
}

typedef struct {
	Big digits;      /* the first MAX_DIGITS, as an integer */
	int64_t ndigit;  /* in `digits`, from the first that is not 0 */
	int64_t exp10;
	bool plain;      /* neither point nor exponent */
} Decimal;

static void
read_decimal(Decimal *d, const char *s, size_t n)
{
	bool point = false;
	size_t i = 0;
	d->plain = true;
	for (; i < n && s[i] != 'e' && s[i] != 'E'; i++) {
		if (s[i] == '.') {
			point = true;
			d->plain = false;
			continue;
		}
		uint32_t digit = (uint32_t)(s[i] - '0');
		d->exp10 -= point;
		if (d->ndigit > MAX_DIGITS) { /* the last digit kept stands for all that follow */
			d->exp10++;
			if (digit && d->digits.w[0] % 2 == 0)
				d->digits.w[0] |= 1;
			continue;
		}
		if (digit || d->ndigit) {
			if (d->ndigit == MAX_DIGITS)
				digit = digit ? 1 : 0;
			big_mul_add(&d->digits, 10, digit);
			d->ndigit++;
		}
	}
	if (i == n)
		return;
	d->plain = false;
	bool minus = s[++i] == '-';
	if (s[i] == '-' || s[i] == '+')
		i++;
	int64_t e = 0;
	for (; i < n; i++)
		if (e < MAX_EXP)
			e = e * 10 + (s[i] - '0');
	d->exp10 += minus ? -e : e;
}

static bool
decimal_to_double(Decimal *d, double *out)
{
	*out = 0;
	if (d->ndigit == 0 || d->ndigit + d->exp10 < -MAX_DECIMAL)
		return true;
	if (d->ndigit + d->exp10 > MAX_DECIMAL)
		return false;
	Big den = {.w = {1}, .n = 1};
	Big *scaled = d->exp10 < 0 ? &den : &d->digits;
	for (int64_t e = d->exp10 < 0 ? -d->exp10 : d->exp10; e > 0; e--)
		big_mul_add(scaled, 10, 0);
	return divide(&d->digits, &den, out);
}

static NumberResult
read_hex(const char *s, size_t n, Number *out)
{
	uint64_t v = 0;
	for (size_t i = 2; i < n; i++) {
		char c = s[i];
		uint64_t digit = (uint64_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
		if (v >> 59)
			return NUMBER_WIDE_HEX;
		v = v << 4 | digit;
	}
	out->is_int = true;
	out->value.i = (int64_t)v;
	return NUMBER_OK;
}

NumberResult
number_read(const char *s, size_t n, Number *out)
{
	*out = (Number){0};
	if (n > 2 && (s[1] == 'x' || s[1] == 'X'))
		return read_hex(s, n, out);
	Decimal d = {0};
	read_decimal(&d, s, n);
	if (d.plain && d.digits.n <= 2) {
		uint64_t v = (uint64_t)d.digits.w[1] << 32 | d.digits.w[0];
		out->is_int = v <= INT64_MAX;
		if (out->is_int) {
			out->value.i = (int64_t)v;
			return NUMBER_OK;
		}
		out->wide = v;
	}
	return decimal_to_double(&d, &out->value.f) ? NUMBER_OK : NUMBER_TOO_LARGE;
}
