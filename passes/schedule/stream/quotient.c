/* quotient.c: results of a stream that divide one sum of powers by another (slots.h).
 *
 * A softmax's weighted sum is (W f) / (L f): W and L are sums of powers e^(s - a), and f = e^(a - m) moves both from their anchor a,
 * which is a row's greatest score m or, where no score is above it, the least number, to m. f is 1 wherever m is a number above
 * that. Where it is not, m is -inf, or no number: then L is 0, or none, and so is W, and either quotient is no number. So the
 * result is W / L, in the same bits. What asks for a sum of no elements, in an arm that has some, is not asked.
 *
 * Where results are made of such sums in no other way, it doesn't matter that powers are 2^LIFT times larger (powers.c): W and L
 * are divided as they are. */
#include "passes/expr_map.h"
#include "passes/schedule/stream/slots.h"

typedef struct {
	StreamSlots *x;
	ExprId condition; /* known to hold */
	bool found;
} Out;

static ExprId
take_arm(void *user, Graph *g, ExprId e)
{
	const Out *o = user;
	return expr_get(g, e)->op == OP_SELECT && expr_arg(g, e, 0) == o->condition ? expr_arg(g, e, 1) : e;
}

/* In the arm of a select, what else its condition chooses is chosen. */
static ExprId
choose(void *user, Graph *g, ExprId e)
{
	Out inner = *(const Out *)user;
	if (expr_get(g, e)->op != OP_SELECT)
		return e;
	inner.condition = expr_arg(g, e, 0);
	ExprId arm[3] = {inner.condition, expr_map(g, inner.x->b.l.scratch, expr_arg(g, e, 1), take_arm, &inner), expr_arg(g, e, 2)};
	return arm[1] == expr_arg(g, e, 1) ? e : expr_make(g, OP_SELECT, (DType)expr_get(g, e)->dtype, 0, 0, arm, 3);
}

/* Whether e is e^(a - m), as above. */
static bool
is_last_move(StreamSlots *x, ExprId e)
{
	const CascadePass *p = x->b.s->pass;
	const Graph *g = x->b.l.g;
	if (expr_get(g, e)->op != OP_EXP || expr_get(g, expr_arg(g, e, 0))->op != OP_SUB)
		return false;
	ExprId from = expr_arg(g, expr_arg(g, e, 0), 0), to = expr_arg(g, expr_arg(g, e, 0), 1);
	for (unsigned n = 0; n < p->nanchor; n++)
		if (p->anchor[n].value == from && expr_get(g, from)->op == OP_MAX && expr_arg(g, from, 0) == to && slots_is_greatest(x, n))
			return true;
	return false;
}

/* Whether e is an accumulator that adds up powers as they are. */
static bool
is_power_sum(const StreamSlots *x, ExprId e)
{
	const Expr *p = expr_get(x->b.l.g, e);
	return p->op == OP_IVAR && p->ref >= STATE_A && p->ref < STATE_A + MAX_ACCS && slots_takes_power(x, p->ref - STATE_A);
}

/* Such an accumulator that e moves, and by what; 0: e is something else. */
static ExprId
unmoved(StreamSlots *x, ExprId e, ExprId *move)
{
	const Graph *g = x->b.l.g;
	for (unsigned i = 0; i < 2 && expr_get(g, e)->op == OP_MUL; i++) {
		*move = expr_arg(g, e, 1 - i);
		if (is_power_sum(x, expr_arg(g, e, i)) && is_last_move(x, *move))
			return expr_arg(g, e, i);
	}
	return 0;
}

static bool
is_reciprocal(const Graph *g, ExprId e)
{
	const Expr *p = expr_get(g, e), *one = p->op == OP_FDIV ? expr_get(g, expr_arg(g, e, 0)) : p;
	return p->op == OP_FDIV && one->op == OP_CONST && one->imm.f == 1;
}

/* What e divides, and by what: a / b, or a (1 / b). */
static bool
is_quotient(const Graph *g, ExprId e, ExprId *a, ExprId *b)
{
	const Expr *p = expr_get(g, e);
	if (p->op != OP_FDIV && p->op != OP_MUL)
		return false;
	unsigned i = p->op == OP_MUL && is_reciprocal(g, expr_arg(g, e, 0));
	*a = expr_arg(g, e, i);
	*b = expr_arg(g, e, 1 - i);
	if (p->op == OP_FDIV)
		return true;
	bool is = is_reciprocal(g, *b);
	*b = is ? expr_arg(g, *b, 1) : 0;
	return is;
}

static ExprId
leave_sums(void *user, Graph *g, ExprId e)
{
	StreamSlots *x = ((Out *)user)->x;
	ExprId a, b, move[2];
	if (!is_quotient(g, e, &a, &b))
		return e;
	ExprId of[2] = {unmoved(x, a, &move[0]), unmoved(x, b, &move[1])};
	if (!of[0] || !of[1] || move[0] != move[1])
		return e;
	if (expr_get(g, e)->op == OP_FDIV)
		return expr_binary(g, OP_FDIV, of[0], of[1]);
	bool first = is_reciprocal(g, expr_arg(g, e, 0));
	ExprId one = expr_arg(g, expr_arg(g, e, first ? 0 : 1), 0), r = expr_binary(g, OP_FDIV, one, of[1]);
	return expr_binary(g, OP_MUL, first ? r : of[0], first ? of[0] : r);
}

/* --- sums as they are --- */

static ExprId
drop_quotient(void *user, Graph *g, ExprId e)
{
	const StreamSlots *x = ((Out *)user)->x;
	ExprId a, b;
	return is_quotient(g, e, &a, &b) && is_power_sum(x, a) && is_power_sum(x, b) ? expr_float(g, DT_F32, 1) : e;
}

static void
note_sum(void *user, ExprId e)
{
	Out *o = user;
	o->found |= is_power_sum(o->x, e);
}

/* Whether e has such a sum, but for quotients of two. */
static bool
has_sum(StreamSlots *x, ExprId e)
{
	Graph *g = x->b.l.g;
	Out o = {.x = x};
	if (e)
		expr_walk(g, x->b.l.scratch, expr_map(g, x->b.l.scratch, e, drop_quotient, &o), note_sum, &o);
	return o.found;
}

void
slots_divide(StreamSlots *x, Stream *s)
{
	StreamBuild *b = &x->b;
	Graph *g = b->l.g;
	Out o = {.x = x};
	bool raised = s->nscore == 1 && x->lift[0] > 0;
	for (unsigned n = 0; n < s->nout; n++) {
		StreamOut *m = &s->out[n];
		if (!b->l.places->stored[m->t])
			continue;
		m->value = expr_map(g, b->l.scratch, expr_map(g, b->l.scratch, m->value, choose, &o), leave_sums, &o);
		point_declare(&b->l, m->value);
		raised &= !has_sum(x, m->value) && !has_sum(x, m->domain);
	}
	b->raised = raised ? x->lift[0] : 0;
}
