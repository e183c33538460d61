/* state.c: the functions of a state (algebra.h), all made of two things that derivation leaves: the term
 * of each accumulator and how it moves to another anchor. Accumulators are taken in their order, so the
 * anchors that one uses are made of those before it. */
#include "passes/fuse/algebra.h"
#include "passes/fuse/formula.h"

enum { MAX_SWAPS = MAX_ACCS + 2 * MAX_ANCHORS };

typedef struct {
	Graph *g;
	Arena *scratch;
	const CascadePass *p;
} State;

static ExprId
ivar(Graph *g, uint32_t base, unsigned k, DType t)
{
	return expr_make(g, OP_IVAR, t, base + k, 0, NULL, 0);
}

ExprId
cascade_state(Graph *g, const CascadePass *p, uint32_t base, unsigned k)
{
	return ivar(g, base, k, p->acc[k].dtype);
}

/* e over STATE_A, where the first n accumulators are these. */
static ExprId
with_state(const State *s, ExprId e, const ExprId *acc, unsigned n)
{
	Swap swap[MAX_ACCS];
	for (unsigned k = 0; k < n; k++)
		swap[k] = (Swap){ivar(s->g, STATE_A, k, s->p->acc[k].dtype), acc[k]};
	return formula_swap(s->g, s->scratch, e, swap, n);
}

ExprId
cascade_at(Graph *g, Arena *scratch, const CascadePass *p, ExprId e, uint32_t base)
{
	State s = {g, scratch, p};
	ExprId acc[MAX_ACCS];
	for (unsigned k = 0; k < p->nacc; k++)
		acc[k] = cascade_state(g, p, base, k);
	return base == STATE_A ? e : with_state(&s, e, acc, p->nacc);
}

/* The anchors that accumulator k uses, of the state with these first accumulators, as swaps for `base`. */
static unsigned
anchor_swaps(const State *s, uint32_t anchors, uint32_t base, const ExprId *acc, unsigned n, Swap *out)
{
	unsigned m = 0;
	for (unsigned k = 0; k < s->p->nanchor; k++)
		if (anchors >> k & 1)
			out[m++] = (Swap){ivar(s->g, base, k, s->p->anchor[k].dtype),
			                  with_state(s, s->p->anchor[k].value, acc, n)};
	return m;
}

/* The term of accumulator k at the anchors of the state `acc`. */
static ExprId
term_at(const State *s, unsigned k, const ExprId *acc)
{
	Swap swap[MAX_SWAPS];
	unsigned n = anchor_swaps(s, s->p->acc[k].anchors, ANCHOR_NEW, acc, k, swap);
	return formula_swap(s->g, s->scratch, s->p->acc[k].term, swap, n);
}

/* Accumulator k of the state `own`, moved to the anchors of the state `to`, whose first k are known. */
static ExprId
moved_to(const State *s, unsigned k, const ExprId *own, const ExprId *to)
{
	const CascadeAcc *a = &s->p->acc[k];
	Swap swap[MAX_SWAPS];
	unsigned n = 0;
	if (!a->rebase)
		return own[k];
	for (unsigned j = 0; j < s->p->nacc; j++)
		swap[n++] = (Swap){ivar(s->g, STATE_A, j, s->p->acc[j].dtype), own[j]};
	n += anchor_swaps(s, a->anchors, ANCHOR_OLD, own, s->p->nacc, swap + n);
	n += anchor_swaps(s, a->anchors, ANCHOR_NEW, to, k, swap + n);
	return formula_swap(s->g, s->scratch, a->rebase, swap, n);
}

static ExprId
combined(Graph *g, Monoid m, ExprId a, ExprId b)
{
	switch (m) {
	case MON_SUM: return expr_binary(g, OP_ADD, a, b);
	case MON_PROD: return expr_binary(g, OP_MUL, a, b);
	case MON_MAX: return expr_binary(g, OP_MAX, a, b);
	case MON_MIN: return expr_binary(g, OP_MIN, a, b);
	case MON_ANY: return expr_binary(g, OP_OR, a, b);
	case MON_ALL: return expr_binary(g, OP_AND, a, b);
	case MON_NONE: case MON_ARGMAX: case MON_ARGMIN:
		break;
	}
	bug(g->arena, "cascade: %s has no merge", monoid_info[m].text);
}

/* Whether the unit of accumulator k stands for no element in a merge. */
static bool
has_unit(const CascadeAcc *a)
{
	return monoid_info[a->monoid].unit != UNIT_NONE && !a->anchors && !a->rebase;
}

/* The unit, or where there is none any number: the state says that it holds nothing. */
void
cascade_init(Graph *g, const CascadePass *p, ExprId *out)
{
	for (unsigned k = 0; k < p->nacc; k++) {
		DType t = p->acc[k].dtype;
		MonoidUnit u = (MonoidUnit)monoid_info[p->acc[k].monoid].unit;
		int v = u == UNIT_ONE || u == UNIT_TRUE;
		out[k] = dtype_is_float(t) ? expr_float(g, t, v) : expr_int(g, t, v);
	}
}

void
cascade_lift(Graph *g, Arena *scratch, const CascadePass *p, ExprId *out)
{
	State s = {g, scratch, p};
	for (unsigned k = 0; k < p->nacc; k++)
		out[k] = term_at(&s, k, out);
}

static ExprId
is_seen(Graph *g, const CascadePass *p, uint32_t base)
{
	ExprId e = p->seen < 0 ? 0 : cascade_state(g, p, base, (unsigned)p->seen);
	return !e || !p->counted ? e : expr_binary(g, OP_LT, expr_int(g, DT_I64, 0), e);
}

void
cascade_merge(Graph *g, Arena *scratch, const CascadePass *p, uint32_t a, uint32_t b, bool nonempty, ExprId *out)
{
	State s = {g, scratch, p};
	ExprId x[MAX_ACCS], y[MAX_ACCS], both[MAX_ACCS];
	ExprId in_a = is_seen(g, p, a), in_b = is_seen(g, p, b);
	for (unsigned k = 0; k < p->nacc; k++) {
		x[k] = cascade_state(g, p, a, k);
		y[k] = cascade_state(g, p, b, k);
	}
	for (unsigned k = 0; k < p->nacc; k++) {
		both[k] = combined(g, p->acc[k].monoid, moved_to(&s, k, x, both), moved_to(&s, k, y, both));
		out[k] = both[k];
		if (!nonempty && in_a && !has_unit(&p->acc[k]))
			out[k] = formula_select(g, in_a, formula_select(g, in_b, both[k], x[k]), y[k]);
	}
}

void
cascade_step(Graph *g, Arena *scratch, const CascadePass *p, uint32_t a, bool nonempty, ExprId *out)
{
	State s = {g, scratch, p};
	ExprId x[MAX_ACCS], one[MAX_ACCS], both[MAX_ACCS], in_a = is_seen(g, p, a);
	for (unsigned k = 0; k < p->nacc; k++)
		x[k] = cascade_state(g, p, a, k);
	cascade_lift(g, scratch, p, one);
	for (unsigned k = 0; k < p->nacc; k++) {
		both[k] = combined(g, p->acc[k].monoid, moved_to(&s, k, x, both), term_at(&s, k, both));
		out[k] = both[k];
		if (!nonempty && in_a && !has_unit(&p->acc[k]))
			out[k] = formula_select(g, in_a, both[k], one[k]);
	}
}
