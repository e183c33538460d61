/* exact.c: quotients of whole numbers (exact.h).
 *
 * They are not reduced: what a program writes is short, and where a chain of operations is not, its result is no longer
 * exact. The numerator and the denominator are HALF words at most, so that the product of two fits a Big, and so does a
 * sum of two such products. */
#include "frontend/exact.h"

#include <math.h>
#include <string.h>

enum { HALF = BIG_WORDS / 2 - 1, MAX_TIMES = 1 << 16 };

struct Exact {
	bool minus;
	uint32_t nnum, nden;
	uint32_t word[]; /* the numerator, then the denominator */
};

static const Exact *
make(Arena *a, bool minus, const Big *num, const Big *den)
{
	if (num->n > HALF || den->n > HALF)
		return NULL;
	Exact *x = arena_alloc(a, sizeof *x + (num->n + den->n) * sizeof x->word[0]);
	*x = (Exact){.minus = minus && num->n, .nnum = num->n, .nden = den->n};
	memcpy(x->word, num->w, num->n * sizeof x->word[0]);
	memcpy(x->word + num->n, den->w, den->n * sizeof x->word[0]);
	return x;
}

static Big
numerator(const Exact *x)
{
	Big b = {.n = x->nnum};
	memcpy(b.w, x->word, x->nnum * sizeof b.w[0]);
	return b;
}

static Big
denominator(const Exact *x)
{
	Big b = {.n = x->nden};
	memcpy(b.w, x->word + x->nnum, x->nden * sizeof b.w[0]);
	return b;
}

const Exact *
exact_decimal(Arena *a, const char *text, size_t n)
{
	Big num, den;
	return number_quotient(text, n, &num, &den) ? make(a, false, &num, &den) : NULL;
}

const Exact *
exact_whole(Arena *a, Whole i)
{
	unsigned __int128 u = i < 0 ? -(unsigned __int128)i : (unsigned __int128)i;
	Big num = {0}, one = {.w = {1}, .n = 1};
	for (; u; u >>= 32)
		num.w[num.n++] = (uint32_t)u;
	return make(a, i < 0, &num, &one);
}

/* Over 1. A quotient that happens to be a whole number is none. */
static bool
is_whole(const Exact *x)
{
	return x->nden == 1 && x->word[x->nnum] == 1;
}

bool
exact_as_whole(const Exact *x, Whole *out)
{
	unsigned __int128 u = 0;
	if (!is_whole(x) || x->nnum > sizeof u / sizeof x->word[0])
		return false;
	for (uint32_t k = x->nnum; k-- > 0;)
		u = u << 32 | x->word[k];
	if (u > (unsigned __int128)(WHOLE_MAX / 2))
		return false;
	*out = x->minus ? -(Whole)u : (Whole)u;
	return true;
}

const Exact *
exact_negated(Arena *a, const Exact *x)
{
	Big num = numerator(x), den = denominator(x);
	return make(a, !x->minus, &num, &den);
}

bool
exact_is_zero(const Exact *x)
{
	return x->nnum == 0;
}

/* Both over one denominator. */
typedef struct {
	Big x, y, den;
} Pair;

static void
pair(const Exact *x, const Exact *y, Pair *p)
{
	Big xd = denominator(x), yd = denominator(y);
	p->x = numerator(x);
	p->y = numerator(y);
	p->den = xd;
	if (big_compare(&xd, &yd) == 0)
		return;
	Big num = p->x;
	big_product(&num, &yd, &p->x);
	num = p->y;
	big_product(&num, &xd, &p->y);
	big_product(&xd, &yd, &p->den);
}

int
exact_compare(const Exact *x, const Exact *y)
{
	if (x->minus != y->minus)
		return x->minus ? -1 : 1;
	Pair p;
	pair(x, y, &p);
	int order = big_compare(&p.x, &p.y);
	return x->minus ? -order : order;
}

static const Exact *
sum(Arena *a, const Exact *x, const Exact *y, bool flip)
{
	Pair p;
	pair(x, y, &p);
	bool y_minus = y->minus != flip;
	if (x->minus == y_minus) {
		big_add(&p.x, &p.y);
		return make(a, x->minus, &p.x, &p.den);
	}
	if (big_compare(&p.x, &p.y) < 0) {
		big_subtract(&p.y, &p.x);
		return make(a, y_minus, &p.y, &p.den);
	}
	big_subtract(&p.x, &p.y);
	return make(a, x->minus, &p.x, &p.den);
}

static const Exact *
product(Arena *a, const Exact *x, bool minus, const Big *num, const Big *den)
{
	Big xn = numerator(x), xd = denominator(x), n, d;
	big_product(&xn, num, &n);
	big_product(&xd, den, &d);
	return make(a, x->minus != minus, &n, &d);
}

/* Towards below, as integers of a type have it; by 0 it is -1, and leaves the dividend. */
static const Exact *
whole_division(Arena *a, Op op, const Exact *x, const Exact *y)
{
	if (!is_whole(x) || !is_whole(y))
		return NULL;
	if (y->nnum == 0)
		return op == OP_IMOD ? x : exact_whole(a, -1);
	Big left = numerator(x), by = numerator(y), quotient, one = {.w = {1}, .n = 1};
	big_divide(&left, &by, &quotient);
	bool below = x->minus != y->minus && left.n > 0;
	if (op == OP_IDIV) {
		if (below)
			big_add(&quotient, &one);
		return make(a, x->minus != y->minus, &quotient, &one);
	}
	if (!below)
		return make(a, y->minus, &left, &one);
	big_subtract(&by, &left);
	return make(a, y->minus, &by, &one);
}

const Exact *
exact_arith(Arena *a, Op op, const Exact *x, const Exact *y)
{
	if (op == OP_IDIV || op == OP_IMOD)
		return whole_division(a, op, x, y);
	Big num = numerator(y), den = denominator(y);
	if (op == OP_ADD || op == OP_SUB)
		return sum(a, x, y, op == OP_SUB);
	if (op == OP_MUL)
		return product(a, x, y->minus, &num, &den);
	return op == OP_FDIV && num.n ? product(a, x, y->minus, &den, &num) : NULL;
}

const Exact *
exact_power(Arena *a, const Exact *x, Whole times)
{
	const Exact *one = exact_whole(a, 1), *r = one, *square = x;
	if (times > MAX_TIMES || times < -MAX_TIMES)
		return NULL;
	for (Whole k = times < 0 ? -times : times; r && k; k >>= 1) {
		if (k & 1)
			r = square ? exact_arith(a, OP_MUL, r, square) : NULL;
		if (k > 1 && square)
			square = exact_arith(a, OP_MUL, square, square);
	}
	return r && times < 0 ? exact_arith(a, OP_FDIV, one, r) : r;
}

Whole
exact_truncated(Arena *a, const Exact *x, Whole least, Whole most)
{
	Whole nearer = 0, beyond = x->minus ? least - 1 : most + 1; /* x is between them, or further */
	while (nearer - beyond > 1 || beyond - nearer > 1) {
		Whole middle = nearer + (beyond - nearer) / 2;
		int order = exact_compare(x, exact_whole(a, middle));
		if (x->minus ? order <= 0 : order >= 0)
			nearer = middle;
		else
			beyond = middle;
	}
	return nearer;
}

double
exact_double(const Exact *x, BigRounding how)
{
	double d = 0;
	Big num = numerator(x), den = denominator(x);
	if (num.n && !big_quotient(&num, &den, how, &d))
		d = INFINITY;
	return x->minus ? -d : d;
}
