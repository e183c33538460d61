/* approximate: functions of f32, and some quotients, by the units that the target has for them.
 *
 * in     a kernel of a graph in fast mode, for a target that has units (F_UNIT)
 * out    no operation of f32 that has a row in approximate.def, but powers and quotients of which it says so, and what angles beyond
 *        2^17 are for
 * fp     approximate: within what fast mode allows; approximate.def has the argument of each
 * tests  tests/math/approximate_test.c, tests/text/approximate.tex, tests/codegen/fast_ptx_test.py
 *
 * It comes before all that knows of marks (narrow_*): a narrowed function is the unit's as well. */
#include "passes/tile/expand.h"
#include "passes/tile/tile.h"

#include "ir/bugs.h"

#include <math.h>

/* Of the old kernel, by its ValIds. */
typedef struct {
	ValId *base;    /* of powers and roots, what they are of in the new kernel */
} Known;

typedef struct {
	Ex x;
	const TirKernel *from;
	const TirInst *p; /* the operation */
	ValId v;
	const ValId *arg; /* its operands in the new kernel */
	const Known *known;
} Near;

typedef ValId NearFn(const Near *a);

static ValId
unit(const Near *a, Op op, ValId of)
{
	return tir_unary(a->x.k, op, of);
}

static ValId
first_log2e(const Near *a, ValId of)
{
	return ex_mul(&a->x, of, ex_sum(&a->x, &log2e_sum, 0));
}

/* --- powers of 2 and of e --- */

static ValId
power_of_two(const Near *a)
{
	return unit(a, OP_EX2, a->arg[0]);
}

static ValId
power_of_e(const Near *a)
{
	if (TIR_NARROW(a->p->imm.i) != DT_NONE)
		return unit(a, OP_EX2, first_log2e(a, a->arg[0]));
	ValId low = ex_mul(&a->x, a->arg[0], ex_sum(&a->x, &log2e_sum, 1));
	return unit(a, OP_EX2, ex_fma(&a->x, a->arg[0], ex_sum(&a->x, &log2e_sum, 0), low));
}

/* `far`, or of small arguments those times 1 + c as many. */
static ValId
unless_small(const Near *a, double c, ValId far)
{
	const Ex *x = &a->x;
	ValId of = a->arg[0], near = ex_mul(x, of, ex_fma(x, of, ex_float(x, c), ex_float(x, 1)));
	return ex_select(x, ex_lt(x, ex_abs(x, of), ex_float(x, 0x1p-12)), near, far);
}

static ValId
power_less_1(const Near *a)
{
	const Ex *x = &a->x;
	ValId of = ex_between(x, a->arg[0], -30, 89), t = first_log2e(a, of), power = unit(a, OP_EX2, t);
	ValId lost = ex_fma(x, of, ex_sum(x, &log2e_sum, 0), ex_neg(x, t));
	lost = ex_fma(x, of, ex_sum(x, &log2e_sum, 1), lost);
	ValId more = ex_fma(x, lost, ex_sum(x, &ln2_sum, 0), ex_float(x, 1));
	return unless_small(a, 0.5, ex_fma(x, power, more, ex_float(x, -1)));
}

/* --- logarithms --- */

static ValId
logarithm(const Near *a)
{
	return unit(a, OP_LG2, a->arg[0]);
}

static ValId
natural_logarithm(const Near *a)
{
	return ex_mul(&a->x, logarithm(a), ex_sum(&a->x, &ln2_sum, 0));
}

static ValId
logarithm_from_1(const Near *a)
{
	const Ex *x = &a->x;
	ValId lg2 = unit(a, OP_LG2, ex_add(x, a->arg[0], ex_float(x, 1)));
	return unless_small(a, -0.5, ex_mul(x, lg2, ex_sum(x, &ln2_sum, 0)));
}

/* --- angles --- */

static ValId
hyperbolic_tangent(const Near *a)
{
	return unit(a, OP_NEAR_TANH, a->arg[0]);
}

/* The angle less whole turns, in two parts: the first subtraction is exact, and neither takes the sign of a 0. */
static ValId
within_turn(const Ex *x, ValId a)
{
	ValId magic = ex_float(x, ex_magic(x)), turns = ex_float(x, 0x1.45f306dc9c883p-3);
	ValId n = ex_sub(x, ex_fma(x, a, turns, magic), magic);
	ValId r = ex_fma(x, n, ex_float(x, -0x1.921fb4p2), a);
	return ex_fma(x, n, ex_float(x, -0x1.4442d2p-22), r);
}

typedef ValId AngleFn(const Ex *x, ValId a);

static ValId
of_angle(const Near *a, Op op, AngleFn *of_any)
{
	const Ex *x = &a->x;
	ValId v = unit(a, op, within_turn(x, a->arg[0]));
	ValId huge = ex_lt(x, ex_float(x, 0x1p17), ex_abs(x, a->arg[0]));
	tir_if(x->k, ex_any(x, huge));
	ValId any = ex_select(x, huge, of_any(x, a->arg[0]), v);
	tir_else(x->k, &any, 1);
	tir_end_if(x->k, &v, 1);
	return v;
}

static ValId
sine(const Near *a)
{
	return of_angle(a, OP_NEAR_SIN, ex_sin);
}

static ValId
cosine(const Near *a)
{
	return of_angle(a, OP_NEAR_COS, ex_cos);
}

/* --- roots --- */

static ValId
root(const Near *a)
{
	return unit(a, OP_NEAR_SQRT, a->arg[0]);
}

static ValId
reciprocal_root(const Near *a)
{
	return unit(a, OP_NEAR_RSQRT, a->arg[0]);
}

/* --- whole powers --- */

enum { MOST_PRODUCTS = 17, MOST_DIVIDED = 13, MOST_HALF_ULPS = 16 };

/* The number that an operand of the old kernel is; NaN: none. */
static double
number_of(const TirKernel *k, ValId v)
{
	const TirInst *c = ex_constant(k, v);
	return c ? c->imm.f : (double)NAN;
}

static bool
is_whole(double n)
{
	return n == floor(n) && fabs(n) <= MOST_PRODUCTS;
}

/* a^n with so many products as the bits of n ask for. */
static ValId
products(const Ex *x, Op mul, ValId a, unsigned n)
{
	ValId v = 0;
	for (; n; n >>= 1) {
		if (n & 1)
			v = v ? tir_binary(x->k, mul, v, a) : a;
		if (n > 1)
			a = tir_binary(x->k, mul, a, a);
	}
	return v;
}

/* c a b, where c is not 1 times the one that takes longer to be known last. */
static ValId
scaled_product(const Ex *x, Op mul, double c, ValId a, ValId b)
{
	if (c != 1)
		a = a ? tir_binary(x->k, mul, a, ex_float(x, c)) : ex_float(x, c);
	return a ? tir_binary(x->k, mul, a, b) : b;
}

/* c / a^n within so many u, c's product apart; 0: it is not. */
static ValId
over_power(const Ex *x, ValId a, unsigned n, double c, unsigned most)
{
	Op mul = BUG(power_over_not_flushed) ? OP_MUL : OP_FLUSH_MUL;
	if (3 * n - 1 <= most) {
		ValId r = tir_unary(x->k, OP_RCP, a);
		unsigned high = 1;
		while (2 * high < n)
			high *= 2;
		return scaled_product(x, mul, c, products(x, mul, r, n - high), products(x, mul, r, high));
	}
	if (2 * n - (n % 2 == 0) > most)
		return 0;
	ValId w = tir_unary(x->k, OP_RCP, ex_mul(x, a, a)), first = w;
	if (n % 2)
		first = tir_binary(x->k, mul, w, tir_unary(x->k, OP_RCP, a));
	unsigned left = (n - (n % 2 ? 3 : 2)) / 2;
	return scaled_product(x, mul, c, first, products(x, mul, w, left));
}

static ValId
constant_power(const Near *a)
{
	const Ex *x = &a->x;
	double n = number_of(x->k, a->arg[1]);
	ValId of = a->arg[0];
	if (n > 0)
		return products(x, OP_MUL, of, (unsigned)n);
	ValId v = n < -1 ? over_power(x, of, (unsigned)-n, 1, MOST_HALF_ULPS) : 0;
	return v ? v : tir_binary(x->k, OP_NEAR_DIV, ex_float(x, 1), products(x, OP_MUL, of, (unsigned)-n));
}

/* --- quotients --- */

static bool
is_power_of_two(double c)
{
	int ex;
	return fabs(frexp(c, &ex)) == 0.5;
}

/* A number by what was a power or a root in the old kernel; 0: it was neither. */
static ValId
by_function(const Near *a, double c)
{
	enum { LEFT = 17, LEFT_BY_TWO = 20 };
	ValId v = tir_arg(a->from, a->v, 1);
	const TirInst *b = tir_inst(a->from, v);
	if (b->op == OP_SQRT)
		return scaled_product(&a->x, OP_MUL, 1, c == 1 ? 0 : a->arg[0], unit(a, OP_NEAR_RSQRT, a->known->base[v]));
	double n = b->op == OP_POW ? number_of(a->from, tir_arg(a->from, v, 1)) : 0;
	if (!(n >= 2 && is_whole(n) && fabs(c) >= 0x1p-100 && fabs(c) <= 2))
		return 0;
	return over_power(&a->x, a->known->base[v], (unsigned)n, c, is_power_of_two(c) ? LEFT_BY_TWO : LEFT);
}

static ValId
quotient(const Near *a)
{
	const Ex *x = &a->x;
	double c = number_of(x->k, a->arg[0]), d = fabs(number_of(x->k, a->arg[1]));
	if (d >= 0x1p-126 && d <= 0x1p126)
		return ex_mul(x, a->arg[0], ex_float(x, 1 / number_of(x->k, a->arg[1])));
	ValId v = by_function(a, c);
	if (v)
		return v;
	bool known = a->p->imm.i == TIR_FROM_1 || a->p->imm.i == TIR_NEAR || a->p->imm.i == TIR_MIDDLE;
	if ((known && is_power_of_two(c) && fabs(c) <= 1) || BUG(near_reciprocal_of_any))
		return scaled_product(x, OP_MUL, 1, c == 1 ? 0 : a->arg[0], unit(a, OP_RCP, a->arg[1]));
	return tir_emit(x->k, OP_FDIV, a->p->type, a->p->imm.i == TIR_FROM_1 ? 0 : a->p->imm.i, a->arg, 2);
}

/* --- all --- */

static NearFn *const near_fn[OP_COUNT] = {
#define APPROXIMATE(id, function) [OP_##id] = function,
#include "passes/tile/approximate.def"
};

static bool
is_taken(const TirKernel *k, ValId v)
{
	const TirInst *p = tir_inst(k, v);
	if (!near_fn[p->op] || p->type.dtype != DT_F32)
		return false;
	double n = p->op == OP_POW ? number_of(k, tir_arg(k, v, 1)) : 2;
	return is_whole(n) && n >= -MOST_DIVIDED && n != 0 && n != 1;
}

static ValId
expand(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	Known *known = user;
	if (!is_taken(from, v))
		return tir_copy_inst(to, from, v, arg);
	const TirInst *p = tir_inst(from, v);
	known->base[v] = arg[0];
	const Near a = {.x = ex_of(to, p->type), .from = from, .p = p, .v = v, .arg = arg, .known = known};
	return near_fn[p->op](&a);
}

TirKernel *
tile_approximate(const TirKernel *k, Arena *a)
{
	ValId first = 1;
	while (first < k->inst.n && !is_taken(k, first))
		first++;
	if (first == k->inst.n)
		return (TirKernel *)(uintptr_t)k;
	Known known = {ARENA_ARRAY(a, ValId, k->inst.n)};
	return tir_rewrite(k, a, expand, &known);
}
