/* real_eval.c: see real_eval.h. */
#include "real_eval.h"

#include <math.h>
#include <stdlib.h>

#include "ir/tg_types.h"

static double
extreme(double a, double b, bool most)
{
	return isnan(a) || isnan(b) ? NAN : most ? fmax(a, b) : fmin(a, b);
}

static double
operation(const Expr *p, double a, double b)
{
	switch ((int)p->op) {
	case OP_ADD: return a + b;
	case OP_SUB: return a - b;
	case OP_MUL: return a * b;
	case OP_FDIV: return a / b;
	case OP_POW: return pow(a, b);
	case OP_NEG: return -a;
	case OP_ABS: return fabs(a);
	case OP_MIN: return extreme(a, b, false);
	case OP_MAX: return extreme(a, b, true);
	case OP_SQRT: return sqrt(a);
	case OP_RSQRT: return 1 / sqrt(a);
	case OP_EXP: return exp(a);
	case OP_EXP2: return exp2(a);
	case OP_LOG: return log(a);
	case OP_LOG2: return log2(a);
	case OP_TANH: return tanh(a);
	case OP_ERF: return erf(a);
	case OP_EQ: return a == b;
	case OP_NE: return a != b;
	case OP_LT: return a < b;
	case OP_LE: return a <= b;
	case OP_NOT: return a == 0;
	case OP_ISNAN: return isnan(a) != 0;
	case OP_CAST: return p->dtype == DT_F32 || !dtype_is_float((DType)p->dtype) ? a : tg_round((DType)p->dtype, a);
	}
	abort(); /* an operation that no test's formula has */
}

static double
evaluate(const Graph *g, ExprId e, LeafFn *leaf, void *user, bool typed)
{
	const Expr *p = expr_get(g, e);
	double v;
	if (p->op == OP_CONST)
		return dtype_is_float((DType)p->dtype) ? p->imm.f : (double)p->imm.i;
	if (p->narg == 0 || p->op == OP_READ)
		return leaf(user, g, e);
	double a = evaluate(g, expr_arg(g, e, 0), leaf, user, typed);
	if (p->op == OP_SELECT)
		return evaluate(g, expr_arg(g, e, a != 0 ? 1 : 2), leaf, user, typed);
	if (p->op == OP_AND || p->op == OP_OR)
		return (a != 0) == (p->op == OP_AND) ? evaluate(g, expr_arg(g, e, 1), leaf, user, typed) : a;
	v = operation(p, a, p->narg > 1 ? evaluate(g, expr_arg(g, e, 1), leaf, user, typed) : 0);
	return typed && p->dtype == DT_F32 ? (float)v : v;
}

double
real_eval(const Graph *g, ExprId e, LeafFn *leaf, void *user)
{
	return evaluate(g, e, leaf, user, false);
}

double
typed_eval(const Graph *g, ExprId e, LeafFn *leaf, void *user)
{
	return evaluate(g, e, leaf, user, true);
}
