/* number.c: digits to a value, exactly.
 *
 * A decimal number D * 10^e becomes a quotient of two big integers (big.h), and that the nearest double. At most 768
 * digits can decide a rounding; of a longer number the tail counts only as being there. */
#include "frontend/big.h"
#include "frontend/lex.h"

enum {
	MAX_DIGITS = 800,
	MAX_DECIMAL = 400, /* beyond 10^+-400 the answer is known */
	MAX_EXP = 100000000
};

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

/* The number is d->digits / den. */
static void
scale(Decimal *d, Big *den)
{
	*den = (Big){.w = {1}, .n = 1};
	Big *scaled = d->exp10 < 0 ? den : &d->digits;
	for (int64_t e = d->exp10 < 0 ? -d->exp10 : d->exp10; e > 0; e--)
		big_mul_add(scaled, 10, 0);
}

bool
number_quotient(const char *s, size_t n, Big *num, Big *den)
{
	Decimal d = {0};
	read_decimal(&d, s, n);
	if (d.ndigit >= MAX_DIGITS || d.exp10 < -MAX_DECIMAL || d.exp10 > MAX_DECIMAL)
		return false;
	if (d.ndigit == 0)
		d.exp10 = 0;
	scale(&d, den);
	*num = d.digits;
	return true;
}

static bool
decimal_to_double(Decimal *d, double *out)
{
	*out = 0;
	if (d->ndigit == 0 || d->ndigit + d->exp10 < -MAX_DECIMAL)
		return true;
	if (d->ndigit + d->exp10 > MAX_DECIMAL)
		return false;
	Big den;
	scale(d, &den);
	return big_quotient(&d->digits, &den, ROUND_NEAREST, out);
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
