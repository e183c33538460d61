/* prove.c: the stack of facts and the way from a goal to a refutation; see prove.h. */
#include "ir/prove_facts.h"
#include "ir/bugs.h"

#include <string.h>

enum { MAX_NESTING = 200 };

Facts *
facts_new(Graph *g, Arena *a)
{
	Facts *f = ARENA_NEW(a, Facts);
	f->g = g;
	f->arena = a;
	f->sys.g = g;
	f->sys.arena = a;
	return f;
}

uint32_t
facts_mark(const Facts *f)
{
	return f->entry.n;
}

void
facts_pop(Facts *f, uint32_t mark)
{
	f->entry.n = mark;
}

void
facts_push_range(Facts *f, ExprId v, ExprId lo, ExprId hi)
{
	Entry e = {.kind = ENTRY_RANGE, .v = v, .lo = lo, .hi = hi};
	vec_push(f->arena, &f->entry, e);
}

/* Integers whose comparison is one of mathematical integers once they are cast to i64. */
static bool
is_integer(const Graph *g, ExprId e)
{
	DType t = (DType)expr_get(g, e)->dtype;
	return dtype_is_int(t) && t != DT_U64;
}

static void
push_compare(Facts *f, Op op, ExprId a, ExprId b, ExprId cond)
{
	Entry e = {.kind = ENTRY_CMP, .op = op, .positive = true, .cond = cond};
	e.a = expr_cast(f->g, DT_I64, a);
	e.b = expr_cast(f->g, DT_I64, b);
	vec_push(f->arena, &f->entry, e);
}

static void
push_any(Facts *f, EntryKind kind, ExprId cond, bool positive)
{
	Entry e = {.kind = kind, .cond = cond, .positive = positive};
	vec_push(f->arena, &f->entry, e);
}

/* A comparison or its negation; comparisons of anything but integers are opaque (NaN). */
static void
push_comparison(Facts *f, ExprId cond, bool positive)
{
	const Expr *p = expr_get(f->g, cond);
	Op op = (Op)p->op;
	ExprId a = expr_arg(f->g, cond, 0), b = expr_arg(f->g, cond, 1);
	if (!is_integer(f->g, a))
		push_any(f, ENTRY_BOOL, cond, positive);
	else if ((op == OP_EQ) != positive && (op == OP_EQ || op == OP_NE))
		push_any(f, ENTRY_ANY, cond, positive);
	else if (op == OP_EQ || op == OP_NE)
		push_compare(f, OP_EQ, a, b, positive ? cond : 0);
	else if (positive)
		push_compare(f, op, a, b, cond);
	else
		push_compare(f, op == OP_LT ? OP_LE : OP_LT, b, a, 0);
}

static void
push_literal(Facts *f, ExprId cond, bool positive, unsigned depth)
{
	const Expr *p = expr_get(f->g, cond);
	if (depth > MAX_NESTING || p->dtype != DT_BOOL)
		return;
	if (p->op == OP_NOT)
		push_literal(f, expr_arg(f->g, cond, 0), !positive, depth + 1);
	else if (p->op == (positive ? OP_AND : OP_OR)) {
		ExprId b = expr_arg(f->g, cond, 1);
		push_literal(f, expr_arg(f->g, cond, 0), positive, depth + 1);
		push_literal(f, b, positive, depth + 1);
	} else if (p->op == OP_AND || p->op == OP_OR || p->op == OP_SELECT)
		push_any(f, ENTRY_ANY, cond, positive);
	else if (p->op == OP_EQ || p->op == OP_NE || p->op == OP_LT || p->op == OP_LE)
		push_comparison(f, cond, positive);
	else
		push_any(f, ENTRY_BOOL, cond, positive);
}

void
facts_push_literal(Facts *f, ExprId cond, bool positive)
{
	push_literal(f, cond, positive, 0);
}

void
facts_push(Facts *f, ExprId cond)
{
	push_literal(f, cond, true, 0);
}

/* --- goals --- */

/* What a range or a fact says in so many words. */
static bool
is_stated(const Facts *f, ExprId cond)
{
	const Expr *p = expr_get(f->g, cond);
	ExprId a = p->narg == 2 ? f->g->arg.at[p->arg] : 0, b = p->narg == 2 ? f->g->arg.at[p->arg + 1] : 0;
	for (uint32_t k = f->entry.n; k-- > 0;) {
		const Entry *e = &f->entry.at[k];
		if (e->kind == ENTRY_RANGE) {
			if ((p->op == OP_LT && e->v == a && e->hi == b) || (p->op == OP_LE && e->v == b && e->lo == a))
				return true;
		} else if (e->positive && e->cond == cond)
			return true;
	}
	return false;
}

/* True or false where both sides are constants after all; -1 elsewhere. */
static int
compare_constants(Facts *f, Op op, ExprId a, ExprId b)
{
	a = index_norm(f->g, a);
	b = index_norm(f->g, b);
	if (a == b)
		return op == OP_LE || op == OP_EQ;
	const Expr *x = expr_get(f->g, a), *y = expr_get(f->g, b);
	if (x->op != OP_CONST || y->op != OP_CONST)
		return -1;
	return op == OP_LT ? x->imm.i < y->imm.i : op == OP_LE ? x->imm.i <= y->imm.i : op == OP_NE;
}

/* Assumes the opposite and looks for a contradiction. */
static bool
by_refutation(Facts *f, ExprId cond, bool positive, unsigned depth)
{
	uint32_t mark = facts_mark(f);
	push_literal(f, cond, positive == BUG(goal_not_negated), 0);
	bool proved = f->entry.n > mark && prove_refute(f, mark, depth);
	facts_pop(f, mark);
	return proved;
}

static bool prove_literal(Facts *f, ExprId cond, bool positive, unsigned depth, unsigned nesting);

/* a, then b where a holds. */
static bool
prove_both(Facts *f, ExprId cond, bool positive, unsigned depth, unsigned nesting)
{
	ExprId a = expr_arg(f->g, cond, 0), b = expr_arg(f->g, cond, 1);
	if (!prove_literal(f, a, positive, depth, nesting))
		return false;
	uint32_t mark = facts_mark(f);
	facts_push_literal(f, a, positive);
	bool proved = prove_literal(f, b, positive, depth, nesting);
	facts_pop(f, mark);
	return proved;
}

static bool
prove_comparison(Facts *f, ExprId cond, bool positive, unsigned depth)
{
	Op op = (Op)expr_get(f->g, cond)->op;
	ExprId a = expr_arg(f->g, cond, 0), b = expr_arg(f->g, cond, 1);
	if (!is_integer(f->g, a))
		return by_refutation(f, cond, positive, depth);
	int known = compare_constants(f, op, a, b);
	if (known >= 0)
		return known == positive || prove_refute(f, 0, depth);
	if ((op == OP_EQ) == positive && (op == OP_EQ || op == OP_NE))
		return by_refutation(f, expr_binary(f->g, OP_LE, a, b), true, depth) &&
		       by_refutation(f, expr_binary(f->g, OP_LE, b, a), true, depth);
	return by_refutation(f, cond, positive, depth);
}

static bool
prove_literal(Facts *f, ExprId cond, bool positive, unsigned depth, unsigned nesting)
{
	const Expr *p = expr_get(f->g, cond);
	if (p->dtype != DT_BOOL || nesting > MAX_NESTING)
		return false;
	if (p->op == OP_CONST)
		return (p->imm.i != 0) == positive || prove_refute(f, 0, depth);
	if (positive && is_stated(f, cond))
		return true;
	if (p->op == OP_NOT)
		return prove_literal(f, expr_arg(f->g, cond, 0), !positive, depth, nesting + 1);
	if (p->op == (positive ? OP_AND : OP_OR))
		return prove_both(f, cond, positive, depth, nesting + 1);
	if (p->op == OP_EQ || p->op == OP_NE || p->op == OP_LT || p->op == OP_LE)
		return prove_comparison(f, cond, positive, depth);
	return by_refutation(f, cond, positive, depth);
}

bool
prove_within(Facts *f, ExprId cond, unsigned depth)
{
	return prove_literal(f, cond, true, depth, 0);
}

bool
prove(Facts *f, ExprId cond)
{
	f->steps = PROVE_STEPS;
	return prove_literal(f, cond, true, PROVE_DEPTH, 0);
}

bool
prove_without(Facts *f, uint32_t from, uint32_t to, ExprId cond)
{
	uint32_t n = f->entry.n, hidden = to - from;
	Entry *kept = ARENA_ARRAY(f->arena, Entry, hidden);
	for (uint32_t k = 0; k < hidden; k++)
		kept[k] = f->entry.at[from + k];
	memmove(f->entry.at + from, f->entry.at + to, (n - to) * sizeof *kept);
	f->entry.n -= hidden;
	bool proved = prove(f, cond);
	memmove(f->entry.at + to, f->entry.at + from, (n - to) * sizeof *kept);
	for (uint32_t k = 0; k < hidden; k++)
		f->entry.at[from + k] = kept[k];
	f->entry.n = n;
	return proved;
}

bool
prove_absurd(Facts *f)
{
	f->steps = PROVE_STEPS;
	return prove_refute(f, 0, PROVE_DEPTH);
}
