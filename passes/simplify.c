/* simplify.c: algebraic identities that hold to the bit, in every mode.
 *
 * in     any graph
 * out    the same values and faults, fewer operations
 * needs  FACT_FAULTS: an operand that can fault is not dropped where it was evaluated
 * fp     exact
 * tests  tests/passes/simplify_test.c
 *
 * simplify_arith.c   x*1, x + -0, --x, x / 2^k (a product, but in strict mode) …
 * simplify_logic.c   select, && and || with constants, double negation; casts of casts
 * simplify_arms.c    a select of two exponentials: one of a select
 * simplify_decide.c  comparisons that the prover decides from ranges, domain and guard
 *
 * x*0 and x-x stay in every mode, and so does x + 0, which turns -0 into 0. */
#include "passes/simplify.h"

#include "passes/expr_map.h"

static ExprId
once(Simplify *s, Graph *g, ExprId e)
{
	ExprId to = simplify_arith(s, g, e);
	if (to == e)
		to = simplify_logic(s, g, e);
	if (to == e)
		to = simplify_arms(s, g, e);
	if (to == e)
		to = simplify_cast(g, e);
	if (to == e)
		to = simplify_index(s, g, e);
	return to;
}

/* Each identity makes the expression smaller or its operation cheaper, so this ends soon. */
static ExprId
simplify_step(void *user, Graph *g, ExprId e)
{
	enum { MOST = 16 };
	Simplify *s = user;
	for (int k = 0; k < MOST; k++) {
		ExprId to = once(s, g, e);
		if (to == e || !spend(s->cx))
			return e;
		s->done++;
		e = to;
	}
	return e;
}

ExprId
simplify_index(Simplify *s, Graph *g, ExprId e)
{
	Expr p = *expr_get(g, e);
	ExprId sub[TG_MAX_RANK];
	bool changed = false;
	if (p.op != OP_READ || p.narg > TG_MAX_RANK)
		return e;
	for (unsigned k = 0; k < p.narg; k++) {
		ExprId x = expr_arg(g, e, k);
		sub[k] = expr_is_index(g, s->cx->scratch, x) ? index_norm(g, x) : x;
		changed |= sub[k] != x;
	}
	return changed ? expr_read(g, p.ref, sub, p.narg, p.access) : e;
}

/* Conditions that are always true need not be there. */
static void
drop_true(Graph *g, ExprId *cond)
{
	if (*cond && expr_get(g, *cond)->op == OP_CONST && expr_get(g, *cond)->imm.i)
		*cond = 0;
}

static void
drop_checks(Simplify *s, Graph *g)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < g->check.n; k++) {
		const Expr *p = expr_get(g, g->check.at[k].cond);
		if (p->op == OP_CONST && p->imm.i && spend(s->cx))
			s->done++;
		else
			g->check.at[n++] = g->check.at[k];
	}
	g->check.n = n;
}

uint32_t
pass_simplify(Graph *g, PassCtx *cx)
{
	Simplify s = {.cx = cx, .faulty = cx->faulty};
	graph_map(g, cx->scratch, simplify_step, &s);
	uint32_t before = s.done;
	simplify_decided(&s, g);
	if (s.done > before) /* selects of what is decided now */
		graph_map(g, cx->scratch, simplify_step, &s);
	for (uint32_t i = 0; i < g->node.n; i++) {
		drop_true(g, &g->node.at[i].domain);
		drop_true(g, &g->node.at[i].guard);
	}
	drop_checks(&s, g);
	return s.done;
}
