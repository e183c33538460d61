/* select_to_domain.c: terms of a reduction that are the monoid's neutral value become absent.
 *
 * in     any graph
 * out    sum of (c ? a : 0), max of (c ? a : -inf) and the like reduce a where c holds
 * needs  FACT_FAULTS: c must not fault, as a guard it decides more than a value
 * fp     exact
 * tests  tests/passes/select_to_domain_test.c
 *
 * The bits are the same: a sum starts at +0, so it is never -0 and adding a zero of either sign changes
 * nothing; 1 changes no product; -inf (or the least integer) changes no max, as a NaN wins over both.
 * A max or min of which all terms were neutral is now untouched, so its finish takes the neutral value
 * there; one that looks at TOUCHED itself is left alone. Whole tiles can be skipped then, and guards
 * narrow loops, where a select would compute. arg is left: among neutral terms it names the first. */
#include <math.h>

#include "passes/expr_map.h"
#include "ir/bugs.h"
#include "passes/pass_ctx.h"

/* The neutral value of the monoid is the constant e. */
static bool
is_neutral(const Graph *g, Monoid m, ExprId e)
{
	const Expr *p = expr_get(g, e);
	if (p->op != OP_CONST)
		return false;
	DType t = (DType)p->dtype;
	bool is_float = t == DT_F32 || t == DT_F64, most = m == MON_MIN;
	unsigned bits = dtype_info[t].bits;
	bool sign = dtype_info[t].kind == KIND_INT;
	switch ((Monoid)m) {
	case MON_SUM:
		return is_float ? p->imm.f == 0 : p->imm.i == 0;
	case MON_PROD:
		return is_float ? p->imm.f == 1 : p->imm.i == 1;
	case MON_ANY: case MON_ALL:
		return (p->imm.i != 0) == (m == MON_ALL);
	case MON_MAX: case MON_MIN:
		if (is_float)
			return isinf(p->imm.f) && (p->imm.f > 0) == (most != BUG(neutral_of_other_end));
		if (!dtype_is_int(t))
			return false;
		if (sign)
			return p->imm.i == (most ? (int64_t)((1ull << (bits - 1)) - 1) : (int64_t)(0 - (1ull << (bits - 1))));
		return (uint64_t)p->imm.i == (most ? ~0ull >> (64 - bits) : 0);
	case MON_NONE: case MON_ARGMAX: case MON_ARGMIN:
		return false;
	}
	return false;
}

typedef struct {
	ExprId cond, value, neutral;
} Split;

/* body == (cond ? value : neutral) */
static bool
split_body(Graph *g, const Node *n, Split *s)
{
	const Expr *p = expr_get(g, n->body);
	bool any = n->monoid == MON_ANY && p->op == OP_AND, all = n->monoid == MON_ALL && p->op == OP_OR;
	if (any || all) {
		ExprId c = expr_arg(g, n->body, 0), value = expr_arg(g, n->body, 1);
		*s = (Split){all ? expr_unary(g, OP_NOT, c) : c, value, expr_int(g, DT_BOOL, all)};
		return true;
	}
	if (p->op != OP_SELECT)
		return false;
	ExprId c = expr_arg(g, n->body, 0), a = expr_arg(g, n->body, 1), b = expr_arg(g, n->body, 2);
	if (is_neutral(g, n->monoid, b)) {
		*s = (Split){c, a, b};
		return true;
	}
	if (!is_neutral(g, n->monoid, a))
		return false;
	*s = (Split){expr_unary(g, OP_NOT, c), b, a};
	return true;
}

typedef struct {
	const Graph *g;
	bool touched;
} Search;

static void
find_touched(void *user, ExprId e)
{
	Search *s = user;
	s->touched |= expr_get(s->g, e)->op == OP_TOUCHED;
}

static bool
uses_touched(const Graph *g, Arena *scratch, ExprId e)
{
	Search s = {g, false};
	expr_walk(g, scratch, e, find_touched, &s);
	return s.touched;
}

static ExprId
acc_leaf(void *user, Graph *g, ExprId e)
{
	return expr_get(g, e)->op == OP_ACC ? *(const ExprId *)user : e;
}

/* The finish for a max or min that may now be untouched. */
static ExprId
finish_with(Graph *g, ExprId finish, ExprId neutral)
{
	DType t = (DType)expr_get(g, neutral)->dtype;
	ExprId acc = expr_make(g, OP_ACC, t, 0, 0, NULL, 0);
	ExprId touched = expr_make(g, OP_TOUCHED, DT_BOOL, 0, 0, NULL, 0);
	ExprId value = expr_select(g, touched, acc, neutral);
	return finish ? expr_rewrite(g, finish, acc_leaf, &value) : value;
}

uint32_t
pass_select_to_domain(Graph *g, PassCtx *cx)
{
	uint32_t done = 0;
	for (uint32_t i = 0; i < g->node.n; i++) {
		Node n = g->node.at[i];
		Split s;
		if (n.monoid == MON_NONE || n.scatter || (n.finish && uses_touched(g, cx->scratch, n.finish)) ||
		    !split_body(g, &n, &s))
			continue;
		if (expr_can_fault(g, cx->scratch, cx->faulty, s.cond)) {
			remark(cx, REMARK_select_faults, n.out);
			continue;
		}
		if (!spend(cx))
			break;
		n.guard = expr_and(g, n.guard, s.cond);
		n.body = s.value;
		if (monoid_info[n.monoid].unit == UNIT_NONE)
			n.finish = finish_with(g, n.finish, s.neutral);
		g->node.at[i] = n;
		done++;
	}
	return done;
}
