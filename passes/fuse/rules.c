/* rules.c: an expression as a sum of products (product.h), by the rules of factor.
 *
 *     a + b, a - b    the products of both             a * b    both, as factors
 *     a / b           if b is one product              a^c      the powers times c; closed sums for whole c
 *     exp(a)          a factor; opened, its argument must be x part + y part
 *     sqrt, abs, pow, log of one product, where signs are known
 *     c ? a : b       c on one side: the products of both under a condition
 *     a cast          that widens; any other is in the way */
#include <math.h>

#include "passes/fuse/formula.h"
#include "passes/fuse/interval.h"
#include "passes/fuse/product.h"

enum { MAX_POWER = 4 };

static bool
sum_single(Algebra *f, Sum *out, const Product *p)
{
	out->n = 0;
	return sum_add(f, out, p);
}

static bool
add_all(Algebra *f, ExprId a, ExprId b, double sign, Sum *out)
{
	Sum *y = sum_new(f);
	if (!sum_of(f, a, out) || !sum_of(f, b, y))
		return false;
	for (unsigned k = 0; k < y->n; k++) {
		y->at[k].coef *= sign;
		if (!sum_add(f, out, &y->at[k]))
			return false;
	}
	return true;
}

static ExprId
opened_log(Algebra *f, ExprId e);

/* What stands for e where it is a sum that stays closed. */
static ExprId
closed_form(Algebra *f, ExprId e)
{
	Op op = (Op)expr_get(f->g, e)->op;
	return (op == OP_LOG || op == OP_LOG2) && side_of(f, e) == SIDE_BOTH ? opened_log(f, e) : e;
}

/* e as one product: a sum of several stays closed. */
static bool
product_of(Algebra *f, ExprId e, Product *out)
{
	Sum *s = sum_new(f);
	if (!sum_of(f, e, s))
		return false;
	*out = product_one(1);
	if (s->n == 1)
		*out = s->at[0];
	else if (s->n == 0)
		out->coef = 0;
	else
		return product_factor(f, out, closed_form(f, e), 1, side_of(f, e));
	return true;
}

/* Whether each factor may be raised to any power: nothing closed in it but exponentials. */
static bool
is_open(const Algebra *f, const Product *p)
{
	for (unsigned k = 0; k < p->nfactor; k++)
		if (p->factor[k].side == SIDE_BOTH && !exponential_of(f->g, p->factor[k].base))
			return false;
	return true;
}

static bool
is_nonnegative(const Algebra *f, const Product *p)
{
	for (unsigned k = 0; k < p->nfactor; k++)
		if (fmod(p->factor[k].power, 2) != 0 && !(interval_of(f->g, p->factor[k].base).lo >= 0))
			return false;
	return p->coef >= 0;
}

/* p^power; an even power that becomes odd is of the magnitude. */
static void
raise(Algebra *f, Product *p, double power)
{
	p->coef = pow(p->coef, power);
	for (unsigned k = 0; k < p->nfactor; k++) {
		Factor *x = &p->factor[k];
		bool even = fmod(x->power, 2) == 0;
		x->power *= power;
		if (even && fmod(x->power, 2) != 0 && !(interval_of(f->g, x->base).lo >= 0))
			x->base = expr_unary(f->g, OP_ABS, x->base);
	}
	for (unsigned k = 0; k < p->nexponent; k++)
		p->exponent[k].coef *= power;
}

static bool
rule_multiply(Algebra *f, ExprId a, ExprId b, Sum *out)
{
	Product p, q;
	return product_of(f, a, &p) && product_of(f, b, &q) && product_times(f, &p, &q) && sum_single(f, out, &p);
}

static bool
rule_divide(Algebra *f, ExprId e, ExprId a, ExprId b, Sum *out)
{
	Product q;
	if (!product_of(f, b, &q))
		return false;
	if (!is_open(f, &q) || !product_is_unconditional(&q) || q.coef == 0)
		return algebra_refuse(f, REMARK_cascade_mixes, e);
	raise(f, &q, -1);
	Product p;
	return product_of(f, a, &p) && product_times(f, &p, &q) && sum_single(f, out, &p);
}

/* e = a^power. */
static bool
rule_power(Algebra *f, ExprId e, ExprId a, double power, Sum *out)
{
	Product p;
	bool whole = power == floor(power);
	if (!product_of(f, a, &p))
		return false;
	if (whole && power >= 1 && power <= MAX_POWER) {
		raise(f, &p, power);
		return sum_single(f, out, &p);
	}
	if (!is_open(f, &p) || !product_is_unconditional(&p) || p.coef == 0 || (!whole && !is_nonnegative(f, &p)))
		return algebra_refuse(f, REMARK_cascade_mixes, e);
	raise(f, &p, power);
	return sum_single(f, out, &p);
}

static bool
rule_magnitude(Algebra *f, ExprId e, ExprId a, Sum *out)
{
	Product p, q;
	if (!product_of(f, a, &p))
		return false;
	if (!is_open(f, &p))
		return algebra_refuse(f, REMARK_cascade_mixes, e);
	q = product_one(fabs(p.coef));
	q.xcond = p.xcond;
	q.ycond = p.ycond;
	for (unsigned k = 0; k < p.nfactor; k++) {
		Factor *x = &p.factor[k];
		bool plain = x->side == SIDE_BOTH || interval_of(f->g, x->base).lo >= 0;
		if (!product_factor(f, &q, plain ? x->base : expr_unary(f->g, OP_ABS, x->base), x->power, x->side))
			return false;
	}
	return sum_single(f, out, &q);
}

/* log of a product with known signs as the sum of logs and exponents; 0: it is none. */
static ExprId
opened_log(Algebra *f, ExprId e)
{
	Graph *g = f->g;
	Product p;
	Op op = (Op)expr_get(g, e)->op;
	bool two = op == OP_LOG2;
	if (!product_of(f, expr_arg(g, e, 0), &p) || !is_open(f, &p) || !product_is_unconditional(&p) || !(p.coef > 0) ||
	    !is_nonnegative(f, &p))
		return 0;
	ExprId sum = formula_number(g, (DType)expr_get(g, e)->dtype, two ? log2(p.coef) : log(p.coef));
	for (unsigned k = 0; k < p.nfactor; k++) {
		Factor *x = &p.factor[k];
		ExprId inner = exponential_of(g, x->base);
		bool inverse = inner && inner == x->base && (expr_get(g, inner)->op == OP_EXP2) == two;
		if (!inverse && x->side == SIDE_BOTH)
			return 0;
		ExprId part = inverse ? expr_arg(g, inner, 0) : expr_unary(g, op, x->base);
		sum = formula_add(g, sum, formula_scale(g, x->power, part));
	}
	return sum;
}

static bool
rule_log(Algebra *f, ExprId e, Sum *out)
{
	ExprId x = opened_log(f, e);
	return x ? sum_of(f, x, out) : algebra_refuse(f, REMARK_cascade_mixes, e);
}

static bool
rule_select(Algebra *f, ExprId e, Sum *out)
{
	ExprId c = expr_arg(f->g, e, 0);
	Side side = side_of(f, c);
	Sum *arm = sum_new(f);
	if (side == SIDE_BOTH)
		return algebra_refuse(f, REMARK_cascade_mixes, e);
	out->n = 0;
	for (unsigned k = 1; k <= 2; k++) {
		ExprId cond = k == 1 ? c : expr_unary(f->g, OP_NOT, c);
		if (!sum_of(f, expr_arg(f->g, e, k), arm))
			return false;
		for (unsigned j = 0; j < arm->n; j++) {
			Product *p = &arm->at[j];
			ExprId *at = side & SIDE_Y ? &p->ycond : &p->xcond;
			*at = expr_and(f->g, cond, *at);
			if (!sum_add(f, out, p))
				return false;
		}
	}
	return true;
}

/* cast:f32(cast:bf16(a)): the rounding of an operand that the mode decided; 0: e is none. */
static ExprId
narrowed_in(const Algebra *f, ExprId e)
{
	ExprId inner = expr_arg(f->g, e, 0);
	const Expr *p = expr_get(f->g, inner);
	if (p->op != OP_CAST || !cast_widens((DType)p->dtype, (DType)expr_get(f->g, e)->dtype))
		return 0;
	ExprId a = expr_arg(f->g, inner, 0);
	return expr_get(f->g, a)->dtype == expr_get(f->g, e)->dtype ? a : 0;
}

/* The rounding moves to the anchor with the factors that it was of. */
static bool
rule_narrowed(Algebra *f, ExprId e, Sum *out)
{
	Product p;
	if (!product_of(f, narrowed_in(f, e), &p))
		return false;
	if (p.narrow != DT_NONE)
		return algebra_refuse(f, REMARK_cascade_rounds, e);
	p.narrow = (DType)expr_get(f->g, expr_arg(f->g, e, 0))->dtype;
	for (unsigned k = 0; k < p.nfactor; k++)
		p.inside[p.ninside++] = p.factor[k].base;
	return sum_single(f, out, &p);
}

static bool
rule_cast(Algebra *f, ExprId e, Sum *out)
{
	DType to = (DType)expr_get(f->g, e)->dtype;
	ExprId a = expr_arg(f->g, e, 0);
	if (f->move_narrowed && narrowed_in(f, e))
		return rule_narrowed(f, e, out);
	if (!cast_widens((DType)expr_get(f->g, a)->dtype, to))
		return algebra_refuse(f, REMARK_cascade_rounds, e);
	if (!sum_of(f, a, out))
		return false;
	for (unsigned k = 0; k < out->n; k++) {
		Product old = out->at[k];
		out->at[k].nfactor = 0;
		for (unsigned j = 0; j < old.nfactor; j++)
			if (!product_factor(f, &out->at[k], expr_cast(f->g, to, old.factor[j].base), old.factor[j].power,
			                    old.factor[j].side))
				return false;
	}
	return true;
}

static bool
rule_mixed(Algebra *f, ExprId e, Sum *out)
{
	Expr p = *expr_get(f->g, e);
	ExprId a = expr_arg(f->g, e, 0), b = p.narg > 1 ? expr_arg(f->g, e, 1) : 0;
	double c;
	switch ((int)p.op) {
	case OP_ADD: return add_all(f, a, b, 1, out);
	case OP_SUB: return add_all(f, a, b, -1, out);
	case OP_NEG: return rule_multiply(f, expr_float(f->g, (DType)p.dtype, -1), a, out);
	case OP_MUL: return rule_multiply(f, a, b, out);
	case OP_FDIV: return rule_divide(f, e, a, b, out);
	case OP_SQRT: return rule_power(f, e, a, 0.5, out);
	case OP_RSQRT: return rule_power(f, e, a, -0.5, out);
	case OP_POW:
		return formula_number_of(f->g, b, &c) ? rule_power(f, e, a, c, out) : algebra_refuse(f, REMARK_cascade_mixes, e);
	case OP_ABS: return rule_magnitude(f, e, a, out);
	case OP_LOG: case OP_LOG2: return rule_log(f, e, out);
	case OP_SELECT: return rule_select(f, e, out);
	case OP_CAST: return rule_cast(f, e, out);
	case OP_EXP: case OP_EXP2: {
		Product x = product_one(1);
		return product_factor(f, &x, e, 1, SIDE_BOTH) && sum_single(f, out, &x);
	}
	}
	return algebra_refuse(f, REMARK_cascade_mixes, e);
}

/* An expression of one side: its products are opened, its sums only when deep. */
static bool
rule_pure(Algebra *f, ExprId e, Side side, Sum *out)
{
	Expr p = *expr_get(f->g, e);
	double v;
	Product x = product_one(1);
	if (formula_number_of(f->g, e, &v) && isfinite(v)) {
		x.coef = v;
		return sum_single(f, out, &x);
	}
	switch ((int)p.op) {
	case OP_MUL: return rule_multiply(f, expr_arg(f->g, e, 0), expr_arg(f->g, e, 1), out);
	case OP_NEG: return rule_multiply(f, expr_float(f->g, (DType)p.dtype, -1), expr_arg(f->g, e, 0), out);
	case OP_FDIV:
		if (!formula_number_of(f->g, expr_arg(f->g, e, 1), &v) || v != 0)
			return rule_divide(f, e, expr_arg(f->g, e, 0), expr_arg(f->g, e, 1), out);
		break;
	case OP_ADD: case OP_SUB:
		if (f->deep)
			return add_all(f, expr_arg(f->g, e, 0), expr_arg(f->g, e, 1), p.op == OP_ADD ? 1 : -1, out);
		break;
	}
	return product_factor(f, &x, e, 1, side) && sum_single(f, out, &x);
}

bool
sum_of(Algebra *f, ExprId e, Sum *out)
{
	if (f->steps == 0)
		return algebra_refuse(f, REMARK_cascade_rank, e);
	f->steps--;
	Side side = side_of(f, e);
	DType t = (DType)expr_get(f->g, e)->dtype;
	if (side != SIDE_BOTH)
		return t == DT_F32 || t == DT_F64 ? rule_pure(f, e, side, out) : (out->n = 1, out->at[0] = product_one(1),
		                                                                product_factor(f, &out->at[0], e, 1, side));
	if (!dtype_is_float(t))
		return algebra_refuse(f, REMARK_cascade_mixes, e);
	return rule_mixed(f, e, out);
}
