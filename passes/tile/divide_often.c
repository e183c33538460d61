/* divide_often: quotients by what a loop does not change, from one reciprocal, with the bits of the quotient.
 *
 * in     a kernel of tasks, for a target whose comparisons are masks
 * out    no quotient of a vector of f32 by a scalar from outside of its loop, but in arms that are rarely taken
 * fp     exact: the float nearest to the quotient, as before
 * tests  tests/tile/divide_often_test.c
 *
 *     y = 1/b,  q = a y,  r = a - b q,  result = q + r y        each rounded once, the last two by FMA
 *
 * Let A and B be the significands of a and b as integers of 24 bits, and an ulp be q's. y is off by the factor 1 + d, |d| <= B 2^-48,
 * so q is within 3/2 ulp of a/b. Then r is less than 3/2 B, in units of which it is a multiple, and rounded by 1 at most. So q + r y, before
 * it is rounded, is within 3/2 |d| + 1/B ulp of a/b, less than 5 / (2 B). From the middle between two floats, M + 1/2 ulp, a/b is
 * N / (2 B) away, where N = 2^e A - (2 M + 1) B, e = 24 or 25, is an integer and not 0. So a result can be another float than the nearest
 * one only where |N| < 5, or 10 next to a power of two. There are few such A for each B; the test has tried all of them
 * up to |N| = 16, and none is.
 *
 * All of it holds while nothing overflows or is rounded below 2^-126: 2^-30 <= |b| <= 2^30 and 2^-70 <= |a| < 2^90, where q is at least
 * 2^-100, and r a multiple of 2^-118. A vector of which a lane lies elsewhere, 0 included, is divided; by another b, all are. */
#include "passes/tile/expand.h"
#include "passes/tile/loops.h"
#include "passes/tile/tile.h"

enum { EXPONENT = 23, BIAS = 127, LEAST_A = -70, MOST_A = 90, LEAST_B = -30, MOST_B = 30 };

static bool
is_taken(const TirKernel *k, const Loops *l, ValId v)
{
	const TirInst *p = tir_inst(k, v);
	if (p->op != OP_FDIV || p->type.dtype != DT_F32 || !p->type.lanes || !l->owner[v] || l->owner[v] != l->loop[v])
		return false;
	ValId b = tir_arg(k, v, 1);
	return tir_inst(k, b)->op == OP_SPLAT && !loops_has(l, l->loop[v], tir_arg(k, b, 0));
}

/* Bits of 2^n. */
static ValId
power_bits(const Ex *x, int n)
{
	return ex_bits(x, (uint64_t)(n + BIAS) << EXPONENT);
}

/* How far |a| is beyond 2^least, as bits; of those below it, and of NaN, more than of any float that is not. */
static ValId
beyond(const Ex *x, ValId a, int least)
{
	return ex_sub(x, ex_to_bits(x, ex_abs(x, a)), power_bits(x, least));
}

typedef struct {
	ValId y, minus_b;
	ValId outside;       /* whether a lane of a is where it is not enough, or b is */
} Reciprocal;

static ValId
splat(const Ex *x, ValId v)
{
	DType t = (DType)tir_inst(x->k, v)->type.dtype;
	return tir_emit(x->k, OP_SPLAT, tir_vector(t, x->lanes), 0, &v, 1);
}

static Reciprocal
reciprocal(const Ex *x, ValId a, ValId b)
{
	const Ex one = ex_of(x->k, tir_scalar(DT_F32));
	ValId minus_b = ex_neg(&one, b), y = tir_binary(x->k, OP_FDIV, ex_float(&one, 1), b);
	ValId range_b = ex_bits(&one, (uint64_t)(MOST_B - LEAST_B) << EXPONENT);
	ValId range_a = ex_bits(&one, (uint64_t)(MOST_A - LEAST_A) << EXPONENT);
	range_a = ex_select(&one, tir_binary(x->k, OP_LE, beyond(&one, b, LEAST_B), range_b), range_a, ex_bits(&one, 0));
	ValId inside = tir_binary(x->k, OP_LT, beyond(x, a, LEAST_A), splat(x, range_a)); /* below 0 is none */
	ValId lanes = tir_unary(x->k, OP_NOT, inside);
	return (Reciprocal){splat(x, y), splat(x, minus_b), ex_any(x, lanes)};
}

static ValId
divide(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	if (!is_taken(from, user, v))
		return tir_copy_inst(to, from, v, arg);
	const Ex x = ex_of(to, tir_inst(from, v)->type);
	Reciprocal p = reciprocal(&x, arg[0], tir_arg(to, arg[1], 0));
	tir_if(to, p.outside);
	ValId quotient = tir_binary(to, OP_FDIV, arg[0], arg[1]);
	tir_else(to, &quotient, 1);
	ValId q = ex_mul(&x, arg[0], p.y);
	quotient = ex_fma(&x, ex_fma(&x, p.minus_b, q, arg[0]), p.y, q);
	tir_end_if(to, &quotient, 1);
	return quotient;
}

TirKernel *
tile_divide_often(const TirKernel *k, Arena *a)
{
	Loops l = {0};
	bool any = false;
	if (k->form == TIR_TASKS)
		l = loops_find(k, a);
	for (ValId v = 1; l.loop && !any && v < k->inst.n; v++)
		any = is_taken(k, &l, v);
	return any ? tir_rewrite(k, a, divide, &l) : (TirKernel *)(uintptr_t)k;
}
