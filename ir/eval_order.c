/* eval_order.c: how many roundings the terms of a sum may have more than the formula has, for the oracle.
 *
 * Relaxed mode moves the factor of a row across a sum: of (a[j] * y) * b[j], where y is what other sums or maxima made, the sum of
 * a[j] * b[j] is multiplied with y. So each term's factors come in another order: with k operations it has k roundings here
 * and k + 1 there. A quotient may be a product with the inverse. */
#include "ir/eval_run.h"

enum { MAX_STEPS = 2000 }; /* where factors share much, what is left is taken to stay */

typedef struct {
	const Graph *g;
	unsigned ops, steps;
	bool moves; /* a factor is of the row alone, and computed */
} Factors;

/* Which of the axes in `of` are in e, as a bit; and whether it reads what a node makes. */
static bool
varies(Factors *f, ExprId e, uint32_t of, bool *computed)
{
	const Expr *p = expr_get(f->g, e);
	bool any = p->op == OP_AXIS && (of >> p->ref & 1);
	*computed |= p->op == OP_READ && tensor_node(f->g, p->ref) != NULL;
	for (unsigned k = 0; k < p->narg && f->steps++ < MAX_STEPS; k++)
		any |= varies(f, expr_arg(f->g, e, k), of, computed);
	return any;
}

static void
take_factors(Factors *f, ExprId e, uint32_t of)
{
	const Expr *p = expr_get(f->g, e);
	const Node *n = p->op == OP_READ ? tensor_node(f->g, p->ref) : NULL;
	bool computed = false;
	if (f->steps++ >= MAX_STEPS)
		return;
	if (p->op == OP_MUL || p->op == OP_FDIV) {
		f->ops += p->op == OP_FDIV ? 2 : 1;
		take_factors(f, expr_arg(f->g, e, 0), of);
		take_factors(f, expr_arg(f->g, e, 1), of);
	} else if (p->op == OP_CAST || p->op == OP_NEG) {
		take_factors(f, expr_arg(f->g, e, 0), of);
	} else if (n && n->monoid == MON_NONE && !n->recur && !n->scatter) {
		uint32_t inner = 0;
		for (unsigned k = 0; k < p->narg; k++)
			inner |= varies(f, expr_arg(f->g, e, k), of, &computed) ? 1u << k : 0;
		if (inner)
			take_factors(f, n->body, inner);
		else
			f->moves = true;
	} else if (!varies(f, e, of, &computed)) {
		f->moves |= computed;
	}
}

unsigned
run_moved_roundings(const Graph *g, const Node *n)
{
	Factors f = {.g = g};
	uint32_t reduced = ((1u << n->nred) - 1) << n->npar;
	if (n->monoid != MON_SUM || g->fp == FP_STRICT)
		return 0;
	take_factors(&f, n->body, reduced);
	return f.moves && f.ops > 1 ? 2 * f.ops + 1 : 0;
}
