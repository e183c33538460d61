/* turns.c: reduces an angle of any size to a quarter turn, a = q (pi/2) + r.
 *
 * Below a limit: q is a * 2/pi rounded, and q (pi/2) is taken off in three parts. The first
 * subtraction cancels exactly; the second keeps its error; the third is below what r can show.
 *
 * Above it (Payne and Hanek): |a| = M 2^e with an integer M, and the fraction of |a| / (2 pi) comes
 * from M times those bits of 1/(2 pi) whose product is neither whole turns nor too small to matter.
 * That is integer arithmetic on 32-bit words held in u64. It stands in an IF, entered when any lane
 * needs it, and covers every finite a; lanes below the limit keep the first result. */
#include "passes/tile/expand.h"

#include <math.h>

enum { TURN_WORDS = 40, MAX_WINDOW = 8 };

/* Arithmetic on u64 words, for either float type. */
static ValId
word(const Ex *x, uint64_t v)
{
	TirType type = {DT_U64, x->lanes};
	return tir_emit(x->k, OP_CONST, type, (int64_t)v, NULL, 0);
}

static ValId
word_shl(const Ex *x, ValId a, unsigned n)
{
	return tir_binary(x->k, OP_SHL, a, word(x, n));
}

static ValId
word_shr(const Ex *x, ValId a, unsigned n)
{
	return tir_binary(x->k, OP_SHR, a, word(x, n));
}

static ValId
low_half(const Ex *x, ValId a)
{
	return ex_and(x, a, word(x, 0xffffffffu));
}

static ExTurns
reduce_small(const Ex *x, ValId a)
{
	ValId magic = ex_float(x, ex_magic(x));
	ValId t = ex_fma(x, a, ex_float(x, 0x1.45f306dc9c883p-1), magic);
	ValId n = ex_sub(x, t, magic);
	ValId top = ex_fma(x, n, ex_float(x, -half_pi.c[x->wide][0]), a);
	Ex2 p = ex_two_mul(x, n, ex_float(x, -half_pi.c[x->wide][1]));
	Ex2 r = ex_two_sum(x, top, p.hi);
	r.lo = ex_add(x, r.lo, ex_fma(x, n, ex_float(x, -half_pi.c[x->wide][2]), p.lo));
	return (ExTurns){ex_to_bits(x, t), r};
}

/* window[i] = the word w[at + i] of 1/(2 pi), shifted left by `bit` bits, for i < n; w has one zero
 * word in front. Selects halve the table by one bit of `at` at a time. */
static void
choose_window(const Ex *x, ValId at, ValId bit, unsigned stages, unsigned n, ValId *window)
{
	ValId w[TURN_WORDS + 1 + MAX_WINDOW];
	unsigned have = (1u << stages) + n;
	for (unsigned i = 0; i < have; i++)
		w[i] = word(x, i == 0 || i > TURN_WORDS ? 0 : turn_word[i - 1]);
	for (unsigned s = stages; s-- > 0;) {
		ValId set = word(x, 1u << s);
		ValId up = ex_eq(x, ex_and(x, at, set), set);
		have = (1u << s) + n;
		for (unsigned i = 0; i < have; i++)
			w[i] = ex_select(x, up, w[i + (1u << s)], w[i]);
	}
	for (unsigned i = 0; i < n; i++) {
		ValId pair = ex_or(x, word_shl(x, w[i], 32), w[i + 1]);
		window[i] = word_shr(x, tir_binary(x->k, OP_SHL, pair, bit), 32);
	}
}

/* frac[0..n): the first words of the fraction of M * window; M = high 2^32 + low; high 0: none. */
static void
multiply(const Ex *x, ValId low, ValId high, const ValId *window, unsigned n, ValId *frac)
{
	ValId carry = word(x, 0);
	ValId below = ex_mul(x, low, window[n]); /* low's product one word further down */
	ValId below_high = high ? ex_mul(x, high, window[n + 1]) : 0;
	for (unsigned i = n; i-- > 0;) {
		ValId p = ex_mul(x, low, window[i]);
		ValId sum = ex_add(x, ex_add(x, low_half(x, p), word_shr(x, below, 32)), carry);
		below = p;
		if (high) {
			ValId q = ex_mul(x, high, window[i + 1]);
			sum = ex_add(x, sum, ex_add(x, low_half(x, q), word_shr(x, below_high, 32)));
			below_high = q;
		}
		frac[i] = low_half(x, sum);
		carry = word_shr(x, sum, 32);
	}
}

/* The signed fraction of a quarter turn, in units of 2^-62 quarters, as a float sum. */
static Ex2
fraction(const Ex *x, ValId quarter, const ValId *frac)
{
	ValId whole = tir_bitcast(x->k, DT_I64, ex_or(x, word_shl(x, quarter, 32), frac[1]));
	ValId hi = tir_cast(x->k, x->f, whole);
	ValId lo = tir_cast(x->k, x->f, ex_sub(x, whole, tir_cast(x->k, DT_I64, hi)));
	if (x->wide) {
		ValId more = ex_or(x, word_shl(x, frac[2], 31), word_shr(x, frac[3], 1));
		ValId part = tir_cast(x->k, x->f, tir_bitcast(x->k, DT_I64, more));
		lo = ex_fma(x, part, ex_float(x, 0x1p-63), lo);
	}
	return ex_fast_sum(x, hi, lo);
}

static ExTurns
reduce_huge(const Ex *x, ValId a)
{
	unsigned words = x->wide ? 4 : 2;
	ValId bits = ex_to_bits(x, a);
	uint64_t frac_mask = (UINT64_C(1) << x->mant) - 1;
	ValId m = ex_or(x, ex_and(x, bits, ex_bits(x, frac_mask)), ex_bits(x, frac_mask + 1));
	m = tir_cast(x->k, DT_U64, m);
	ValId e = ex_and(x, ex_shr(x, bits, (unsigned)x->mant), ex_bits(x, x->wide ? 2047 : 255));
	/* 32 zero bits stand in front of the table, so the position is e - bias - mant + 32 >= 0. */
	ValId at = ex_sub(x, tir_cast(x->k, DT_U64, e), word(x, (uint64_t)(x->bias + x->mant - 32)));
	ValId window[MAX_WINDOW], frac[MAX_WINDOW];
	choose_window(x, word_shr(x, at, 5), ex_and(x, at, word(x, 31)), x->wide ? 5 : 3,
	              words + 2, window);
	multiply(x, x->wide ? low_half(x, m) : m, x->wide ? word_shr(x, m, 32) : 0, window, words, frac);
	/* Round to the nearest quarter; what is left is signed. */
	ValId eighth = word(x, 0x20000000u);
	ValId top = ex_add(x, frac[0], eighth);
	ValId left = ex_sub(x, ex_and(x, top, word(x, 0x3fffffffu)), eighth);
	Ex2 f = fraction(x, left, frac);
	Ex2 unit = {ex_sum(x, &half_pi_62, 0), ex_sum(x, &half_pi_62, 1)};
	Ex2 r = ex_mul2(x, f, unit);
	ValId sign = ex_sign_bit(x, a);
	ValId q = tir_cast(x->k, x->u, ex_and(x, word_shr(x, top, 30), word(x, 3)));
	ValId negative = ex_lt(x, a, ex_float(x, 0));
	q = ex_select(x, negative, ex_sub(x, ex_bits(x, 0), q), q);
	return (ExTurns){q, {ex_flip(x, r.hi, sign), ex_flip(x, r.lo, sign)}};
}

ExTurns
ex_turns(const Ex *x, ValId a)
{
	ExTurns s = reduce_small(x, a);
	ValId limit = ex_float(x, x->wide ? 0x1p20 : 0x1p17);
	ValId size = ex_abs(x, a);
	ValId huge = ex_lt(x, limit, size);
	ValId result[3] = {s.q, s.r.hi, s.r.lo};
	tir_if(x->k, ex_any(x, huge));
	ExTurns h = reduce_huge(x, a);
	/* Infinity minus itself: NaN. */
	ValId finite = ex_lt(x, size, ex_float(x, (double)INFINITY));
	h.r.hi = ex_select(x, finite, h.r.hi, ex_sub(x, a, a));
	ValId chosen[3] = {ex_select(x, huge, h.q, s.q), ex_select(x, huge, h.r.hi, s.r.hi),
	                   ex_select(x, huge, h.r.lo, s.r.lo)};
	tir_else(x->k, chosen, 3);
	tir_end_if(x->k, result, 3);
	return (ExTurns){result[0], {result[1], result[2]}};
}
