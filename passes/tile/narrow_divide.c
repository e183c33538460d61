/* narrow_divide: a narrowed power over what others are divided by too becomes its product with a reciprocal.
 *
 * in     a kernel of a graph in relaxed or fast mode, before narrow_*
 * out    no quotient of f32 of an EXP or EXP2 that bears the mark of a type (tir.h) by a value that comes from outside of
 *        its loop, or divides another such power; the reciprocals are cleanup's to share and to hoist. Of a thread, no
 *        quotient of 1 or such a power, by a condition, by the sum of a number and such a power
 * fp     reassociates: within the bound that the power's mark gives the quotient
 * tests  tests/tile/narrow_divide_test.c, tests/text/narrow_divide.tex
 *
 * Where it is right. A marked power may be wrong by 1/16 ulp of its type, 2^-12 of it for bf16 and 2^-15 for f16, and the
 * quotient by as much. expand_narrow.c takes a third of that at most (docs/accuracy.md). A quotient is rounded once, by
 * 2^-24; the reciprocal and two products by less than 2^-22 together, which the rest has room for many times over.
 *
 * 1 / b has no bits to spare where b is near the ends of f32, so it is taken of b s, s being 2^64 below 2^-64 and 2^-64
 * beyond 2^64, else 1: (a r) s with r = 1 / (b s). With s = 1, r is within 2^-64 .. 2^64, and the product is rounded as the
 * quotient is. With 2^-64 both vanish or neither does, for what a r loses below 2^-126 is below 2^-150 in the end. With 2^64 r is 1 and
 * more, and a product that is too large is one of a quotient that is; a subnormal a r is wrong by 2^-150 where a itself
 * may be by 2^-149. Of a b that is known to be near (TIR_NEAR), as the sum of a softmax is, s is 1. A b of 0, infinity or NaN, of either
 * sign, makes r infinite, 0 or NaN, as it makes the quotient.
 *
 * Another b would need a reciprocal for each quotient, which takes as long. But threads divide quickly only what is not
 * near 0, and all of a warp wait where one of them does not (codegen/nvptx_quotients.c). Of a sigmoid, x < 0 ? e / (1 + e)
 * : 1 / (1 + e) with e the power of -|x|, only e is: so it becomes x < 0 ? e r : r, r = 1 / (1 + e). In general it is
 * c ? e r : r with r = 1 / b and b = k + e', k from 2^-64 to 2^64. r is rounded as the quotient of 1 is. It is at most 2^64,
 * and not below 2^-128, where it has 22 bits and e r uses few of them; of an infinite b it is 0, which makes e r the NaN
 * or 0 that the quotient is. Of a power that is known to be at most 1 (TIR_NO_MORE_THAN_0), as a sigmoid's is, b and 1 / b are
 * middle (tir.h): threads ask for nothing. */
#include "passes/tile/expand.h"
#include "passes/tile/loops.h"
#include "passes/tile/tile.h"

#include "ir/bugs.h"

typedef struct {
	Loops loops;
	uint32_t *over; /* by ValId: how many marked powers it divides */
} Divisors;

static bool
is_quotient(const TirKernel *k, ValId v)
{
	return tir_inst(k, v)->op == OP_FDIV && tir_inst(k, v)->type.dtype == DT_F32;
}

static bool
is_power(const TirKernel *k, ValId v)
{
	const TirInst *p = tir_inst(k, v);
	return (p->op == OP_EXP || p->op == OP_EXP2) && TIR_NARROW(p->imm.i) != DT_NONE;
}

static bool
is_taken(const TirKernel *k, ValId v)
{
	return is_quotient(k, v) && is_power(k, tir_arg(k, v, 0));
}

static bool
is_number(const TirKernel *k, ValId v, double least, double most)
{
	const TirInst *c = ex_constant(k, v);
	return c && c->imm.f >= least && c->imm.f <= most;
}

/* Whether v, of a thread, is (c ? power : 1) / (number + power), in any order. */
static bool
is_power_or_one(const TirKernel *k, ValId v)
{
	if (k->form != TIR_SPREAD || !is_quotient(k, v))
		return false;
	ValId a = tir_arg(k, v, 0), b = tir_arg(k, v, 1);
	if (tir_inst(k, a)->op != OP_SELECT || tir_inst(k, b)->op != OP_ADD)
		return false;
	bool turned = is_number(k, tir_arg(k, a, 1), 1, 1), second = is_power(k, tir_arg(k, b, 1));
	return is_power(k, tir_arg(k, a, turned ? 2 : 1)) && is_number(k, tir_arg(k, a, turned ? 1 : 2), 1, 1) &&
	       is_power(k, tir_arg(k, b, second)) && is_number(k, tir_arg(k, b, !second), 0x1p-64, 0x1p64);
}

/* Whether the power in that sum is at most 1. */
static bool
is_middle_sum(const TirKernel *k, ValId sum)
{
	ValId power = tir_arg(k, sum, is_power(k, tir_arg(k, sum, 1)));
	return tir_inst(k, power)->imm.i & TIR_NO_MORE_THAN_0;
}

static bool
is_shared(const Divisors *d, const TirKernel *k, ValId v)
{
	ValId b = tir_arg(k, v, 1);
	return d->over[b] > 1 || d->loops.loop[b] != d->loops.loop[v];
}

/* 2^64 where |b| is below 2^-64, 2^-64 where it is beyond 2^64; else, and for NaN, 1. */
static ValId
scale_for(const Ex *x, ValId b)
{
	const double up = 0x1p64, down = 0x1p-64;
	ValId size = ex_abs(x, b), one = ex_float(x, 1);
	ValId s = ex_select(x, ex_lt(x, ex_float(x, up), size), ex_float(x, down), one);
	return BUG(reciprocal_unscaled) ? one : ex_select(x, ex_lt(x, size, ex_float(x, down)), ex_float(x, up), s);
}

/* Its selection, of which one arm becomes the power times the reciprocal, the other that one. */
static ValId
select_reciprocal(TirKernel *to, const ValId *arg, bool middle)
{
	const Ex x = ex_of(to, tir_inst(to, arg[1])->type);
	ValId c = tir_arg(to, arg[0], 0), one = tir_arg(to, arg[0], 1), power = tir_arg(to, arg[0], 2);
	bool turned = is_number(to, one, 1, 1);
	ValId r = middle ? ex_middle_quotient(&x, turned ? one : power, arg[1]) : tir_binary(to, OP_FDIV, turned ? one : power, arg[1]);
	ValId product = ex_mul(&x, turned ? power : one, r);
	return turned ? ex_select(&x, c, r, product) : ex_select(&x, c, product, r);
}

static ValId
divide(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	if (is_power_or_one(from, v))
		return select_reciprocal(to, arg, is_middle_sum(from, tir_arg(from, v, 1)));
	if (!is_taken(from, v) || !is_shared(user, from, v))
		return tir_copy_inst(to, from, v, arg);
	bool splat = tir_inst(to, arg[1])->op == OP_SPLAT;
	ValId b = splat ? tir_arg(to, arg[1], 0) : arg[1];
	Ex x = ex_of(to, tir_inst(to, b)->type);
	bool near = tir_inst(from, v)->imm.i == TIR_NEAR;
	ValId s = near ? 0 : scale_for(&x, b), r = tir_binary(to, OP_FDIV, ex_float(&x, 1), near ? b : ex_mul(&x, b, s));
	ValId product = tir_binary(to, OP_MUL, arg[0], r);
	return near ? product : tir_binary(to, OP_MUL, product, s);
}

TirKernel *
tile_narrow_divide(const TirKernel *k, Arena *a)
{
	bool any = false;
	ValId first = 1;
	while (first < k->inst.n && !is_taken(k, first) && !is_power_or_one(k, first))
		first++;
	if (first == k->inst.n) /* as in most kernels */
		return (TirKernel *)(uintptr_t)k;
	Divisors d = {loops_find(k, a), ARENA_ARRAY(a, uint32_t, k->inst.n)};
	for (ValId v = 1; v < k->inst.n; v++)
		if (is_taken(k, v))
			d.over[tir_arg(k, v, 1)]++;
	for (ValId v = 1; !any && v < k->inst.n; v++)
		any = is_power_or_one(k, v) || (is_taken(k, v) && is_shared(&d, k, v));
	return any ? tir_rewrite(k, a, divide, &d) : (TirKernel *)(uintptr_t)k;
}
