/* prove_bound.c: the extreme of an index expression over the box of ranges; see prove_bound.
 *
 * The canonical expression is A*z + B in each atom z it mentions. Where the sign of A is known, z can
 * be put at its own extreme: compound atoms first (div is monotone, mod lies between 0 and its
 * divisor), then indices, the innermost first, as its range may mention the outer ones. A box that is
 * empty has no extreme, so facts that hold inside the box may be used. */
#include "ir/prove_facts.h"

enum { UNKNOWN_SIGN = 2, MAX_STEPS = 64 };

static ExprId bound(Facts *f, ExprId e, bool upper, unsigned depth);

/* The coefficient of an atom in canonical e, which may mention the atom again; 0 when it does not
 * occur outside other atoms. */
static ExprId
coefficient(Facts *f, ExprId e, ExprId atom)
{
	IndexTerm t[INDEX_MAX_TERMS], part[INDEX_MAX_TERMS];
	unsigned n = index_terms(f->g, e, t), m = 0;
	for (unsigned k = 0; k < n; k++) {
		ExprId rest = t[k].mono && t[k].mono != atom ? index_mono_div(f->g, t[k].mono, atom) : 0;
		if (rest || (t[k].mono && t[k].mono == atom))
			part[m++] = (IndexTerm){t[k].coef, rest};
	}
	return m ? index_from_terms(f->g, part, m) : 0;
}

static int
sign_of(Facts *f, ExprId e)
{
	const Expr *p = expr_get(f->g, e);
	if (p->op == OP_CONST)
		return p->imm.i < 0 ? -1 : 1;
	ExprId zero = expr_int(f->g, DT_I64, 0);
	if (prove(f, expr_binary(f->g, OP_LE, zero, e)))
		return 1;
	return prove(f, expr_binary(f->g, OP_LE, e, zero)) ? -1 : UNKNOWN_SIGN;
}

/* Whether e mentions an index, or a value that is not known before the launch. */
static bool
is_open(const Graph *g, ExprId e, unsigned depth)
{
	enum { DEEP = 48 };
	const Expr *p = expr_get(g, e);
	if (p->op == OP_AXIS || p->op == OP_IVAR || p->op == OP_ACC || p->op == OP_TOUCHED || depth > DEEP)
		return true;
	if (p->op == OP_READ && (p->narg || g->tensor.at[p->ref].kind == TENSOR_NODE))
		return true;
	for (unsigned k = 0; k < p->narg; k++)
		if (is_open(g, g->arg.at[p->arg + k], depth + 1))
			return true;
	return false;
}

/* An integer that fits i64, as one. */
static ExprId
widen(Graph *g, ExprId e)
{
	const Expr *p = expr_get(g, e);
	return p->op == OP_CONST ? expr_int(g, DT_I64, p->imm.i) : expr_cast(g, DT_I64, e);
}

/* i64(min(a, b)) of narrower integers as min(i64(a), i64(b)), and max; all else as it is. */
static ExprId
without_cast(Graph *g, ExprId e)
{
	if (expr_get(g, e)->op != OP_CAST)
		return e;
	ExprId x = expr_arg(g, e, 0);
	Op op = (Op)expr_get(g, x)->op;
	DType t = (DType)expr_get(g, x)->dtype;
	if ((op != OP_MIN && op != OP_MAX) || !dtype_is_int(t) || t == DT_U64)
		return e;
	ExprId a = widen(g, expr_arg(g, x, 0)), b = widen(g, expr_arg(g, x, 1));
	return expr_binary(g, op, a, b);
}

/* The extreme of a compound atom with an open operand; 0 when none is found. */
static ExprId
atom_bound(Facts *f, ExprId e, bool upper, unsigned depth)
{
	Graph *g = f->g;
	e = without_cast(g, e);
	Op op = (Op)expr_get(g, e)->op;
	if (op != OP_IDIV && op != OP_IMOD && op != OP_MIN && op != OP_MAX)
		return 0;
	ExprId a = expr_arg(g, e, 0), b = expr_arg(g, e, 1), one = expr_int(g, DT_I64, 1);
	if (op == OP_MIN || op == OP_MAX) {
		bool either = (op == OP_MIN) == upper; /* it is at or below both, or at or above both */
		a = bound(f, a, upper, depth + 1);
		b = a || either ? bound(f, b, upper, depth + 1) : 0;
		return a && b ? expr_binary(g, op, a, b) : either ? (a ? a : b) : 0;
	}
	if (is_open(g, b, 0) || !prove(f, expr_binary(g, OP_LE, one, b)))
		return 0;
	if (op == OP_IMOD)
		return upper ? expr_binary(g, OP_SUB, b, one) : expr_int(g, DT_I64, 0);
	a = bound(f, a, upper, depth + 1);
	return a ? expr_binary(g, OP_IDIV, a, b) : 0;
}

/* The first compound atom of canonical e that is open, or 0. */
static ExprId
open_atom(Facts *f, ExprId e)
{
	IndexTerm t[INDEX_MAX_TERMS];
	ExprId factor[INDEX_MAX_FACTORS];
	unsigned n = index_terms(f->g, e, t);
	for (unsigned k = 0; k < n; k++) {
		unsigned m = t[k].mono ? index_factors(f->g, t[k].mono, factor) : 0;
		for (unsigned j = 0; j < m; j++)
			if (expr_get(f->g, factor[j])->narg && is_open(f->g, factor[j], 0))
				return factor[j];
	}
	return 0;
}

/* The atom of e put at `low` or `high`, whichever makes e extreme; 0 when its sign is not known. */
static ExprId
move_atom(Facts *f, ExprId e, ExprId atom, bool upper, unsigned depth, const Entry *range)
{
	Graph *g = f->g;
	ExprId a = coefficient(f, e, atom), to;
	if (!a || prove_mentions(g, a, atom, 0))
		return 0;
	int sign = sign_of(f, a);
	if (sign == UNKNOWN_SIGN)
		return 0;
	bool high = upper == (sign > 0);
	if (!range)
		to = atom_bound(f, atom, high, depth);
	else if (high)
		to = expr_binary(g, OP_SUB, range->hi, expr_int(g, DT_I64, 1));
	else
		to = range->lo;
	if (!to)
		return 0;
	ExprId delta = expr_binary(g, OP_MUL, a, expr_binary(g, OP_SUB, to, atom));
	ExprId moved = index_norm(g, expr_binary(g, OP_ADD, e, delta));
	return prove_mentions(g, moved, atom, 0) ? 0 : moved;
}

static ExprId
bound(Facts *f, ExprId e, bool upper, unsigned depth)
{
	enum { DEEP = 6 };
	unsigned steps = 0;
	e = index_norm(f->g, e);
	if (depth > DEEP)
		return 0;
	for (ExprId atom = open_atom(f, e); atom; atom = open_atom(f, e)) {
		e = steps++ < MAX_STEPS ? move_atom(f, e, atom, upper, depth, NULL) : 0;
		if (!e)
			return 0;
	}
	for (uint32_t k = f->entry.n; k-- > 0 && e && is_open(f->g, e, 0);) {
		Entry r = f->entry.at[k];
		if (r.kind == ENTRY_RANGE && prove_mentions(f->g, e, r.v, 0))
			e = move_atom(f, e, r.v, upper, depth, &r);
		if (e && open_atom(f, e)) /* the range of an index had one */
			return bound(f, e, upper, depth + 1);
	}
	return e && !is_open(f->g, e, 0) ? e : 0;
}

ExprId
prove_bound(Facts *f, ExprId e, bool upper)
{
	return bound(f, e, upper, 0);
}
