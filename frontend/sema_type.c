/* sema_type.c: the types of values: promotion, conversions, operators
 * (LANGUAGE.md, Dtypes and numerics). */
#include "frontend/sema.h"
#include "ir/bugs.h"

const Val val_error;

bool
val_bad(const Val *v)
{
	return v->e == 0 && v->lit == LIT_NONE;
}

Val
val_expr(ExprId e, Dom dom)
{
	return (Val){.e = e, .dom = dom};
}

DType
val_dtype(const Sema *s, const Val *v)
{
	return v->e ? (DType)expr_get(s->g, v->e)->dtype : DT_NONE;
}

static const char *
type_text(DType t)
{
	return dtype_info[t].text;
}

static void
int_range(DType t, Whole *lo, Whole *hi)
{
	unsigned bits = dtype_info[t].bits;
	if (dtype_info[t].kind == KIND_INT) {
		*hi = bits == 64 ? INT64_MAX : (1ll << (bits - 1)) - 1;
		*lo = -*hi - 1;
	} else {
		*lo = 0;
		*hi = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
	}
}

/* An exact number as a constant of type t. */
ExprId
literal_as(Sema *s, const Val *v, DType t, Span at)
{
	Graph *g = s->g;
	double f = v->lit == LIT_INT ? (double)v->i : v->f;
	if (t == DT_C64)
		return expr_binary(g, OP_CPLX, literal_as(s, v, DT_F32, at), expr_float(g, DT_F32, 0));
	if (t == DT_F64)
		return expr_float(g, t, f);
	if (t == DT_F32)
		return expr_float(g, t, v->lit == LIT_INT ? (double)(float)v->i : (double)(float)number_to_narrow(v));
	if (dtype_is_float(t))
		return expr_cast(g, t, expr_float(g, DT_F64, number_to_narrow(v)));
	Whole lo, hi;
	if (t == DT_BOOL) {
		diag_add(s->diags, DIAG_E0501, at, "a number where a bool is needed")->help =
			"compare it: `x != 0`";
		return 0;
	}
	int_range(t, &lo, &hi);
	if (v->lit == LIT_FLOAT || v->i < lo || v->i > hi) {
		Diag *d = diag_add(s->diags, DIAG_E0502, at, "the number does not fit in %s", type_text(t));
		d->help = arena_text(s->arena, "write a cast for the operation you mean, such as `%s(…)` or `f32(…)`",
		                     type_text(t));
		return 0;
	}
	return expr_int(g, t, (int64_t)v->i);
}

/* What an exact number is that meets no type. Integers beyond those of 64 bits are floats. */
DType
literal_type(const Val *v)
{
	if (v->lit == LIT_FLOAT || v->i < INT64_MIN || v->i > UINT64_MAX)
		return DT_F32;
	if (v->i > INT64_MAX)
		return DT_U64;
	return v->i > INT32_MAX || v->i < INT32_MIN ? DT_I64 : DT_I32;
}

/* The value in type t, by promotion: to a wider type, or a cast the language allows implicitly. */
ExprId
val_as(Sema *s, const Val *v, DType t, Span at)
{
	if (val_bad(v))
		return 0;
	if (v->lit)
		return literal_as(s, v, t, at);
	if (v->choice && dtype_is_float(t))
		return choice_as(s, v->choice, t, at);
	if (t == DT_C64 && val_dtype(s, v) != DT_C64)
		return expr_binary(s->g, OP_CPLX, expr_cast(s->g, DT_F32, v->e), expr_float(s->g, DT_F32, 0));
	return expr_cast(s->g, t, v->e);
}

ExprId
choice_as(Sema *s, const Choice *c, DType t, Span at)
{
	DType part = t == DT_C64 ? DT_F32 : t;
	ExprId a = val_as(s, &c->arm[0], part, at), b = val_as(s, &c->arm[1], part, at);
	if (!a || !b)
		return 0;
	ExprId e = expr_select(s->g, c->c, a, b);
	return t == DT_C64 ? expr_binary(s->g, OP_CPLX, e, expr_float(s->g, DT_F32, 0)) : e;
}

static DType
common_of(DType a, DType b)
{
	a = dtype_info[a].arith;
	b = dtype_info[b].arith;
	if (a == b)
		return a;
	if (a == DT_C64 || b == DT_C64)
		return DT_C64;
	bool fa = dtype_is_float(a), fb = dtype_is_float(b);
	if (fa && fb)
		return DT_F64; /* the two arithmetic floats differ */
	if (fa || fb)
		return fa ? a : b;
	unsigned wa = dtype_info[a].bits, wb = dtype_info[b].bits;
	if (wa != wb)
		return (wa > wb) != BUG(promotion_narrows) ? a : b;
	return dtype_info[a].kind == KIND_UINT ? a : b;
}

DType
common_type(Sema *s, const Val *a, const Val *b)
{
	if (a->lit && b->lit)
		return common_of(literal_type(a), literal_type(b));
	if (!a->lit && !b->lit)
		return common_of(val_dtype(s, a), val_dtype(s, b));
	const Val *typed = a->lit ? b : a, *number = a->lit ? a : b;
	DType t = dtype_info[val_dtype(s, typed)].arith;
	DType own = literal_type(number);
	if (dtype_is_float(own) && dtype_is_int(t))
		return DT_F32;
	return number->lit == LIT_INT && t == DT_I32 ? own : t;
}

Val
val_typed(Sema *s, Val v)
{
	if (!v.lit)
		return v;
	return val_expr(literal_as(s, &v, literal_type(&v), (Span){0}), v.dom);
}

ExprId
val_store(Sema *s, const Val *v, DType t, Span at)
{
	if (val_bad(v))
		return 0;
	if (v->lit) {
		if (v->lit == LIT_FLOAT && !v->whole && dtype_is_int(t)) {
			diag_add(s->diags, DIAG_E0503, at, "a number with a point can't be stored as %s", type_text(t))->help =
				arena_text(s->arena, "write `%s(…)` to truncate it", type_text(t));
			return 0;
		}
		return literal_as(s, v, t, at);
	}
	if (v->choice && (dtype_is_float(t) || t == DT_C64))
		return choice_as(s, v->choice, t, at);
	DType from = val_dtype(s, v);
	bool same_kind = from == t || (dtype_is_float(from) && dtype_is_float(t)) ||
	                 (dtype_is_int(from) && dtype_is_int(t));
	if (same_kind)
		return expr_cast(s->g, t, v->e);
	Diag *d = diag_add(s->diags, DIAG_E0503, at, "a %s value can't be stored as %s", type_text(from), type_text(t));
	d->label = arena_text(s->arena, "this is %s", type_text(from));
	d->help = from == DT_C64 ? "take `re(…)` or `im(…)`"
	          : t == DT_C64  ? "add an imaginary part: `x + root(1, 4) * y`, or multiply by `root(0, 1)`"
	                         : arena_text(s->arena, "write the conversion you mean: `%s(…)`", type_text(t));
	return 0;
}

static bool
type_allows(Sema *s, Op op, DType t, Span at)
{
	const char *why = NULL;
	if ((op == OP_IDIV || op == OP_IMOD) && !dtype_is_int(t))
		why = "takes integers; use `/` or floor(a / b)";
	else if (t == DT_C64 && (op_info[op].sig == SIG_ORDERED || op == OP_LT || op == OP_LE))
		why = "has no meaning for complex numbers";
	if (why)
		diag_add(s->diags, DIAG_E0504, at, "`%s` %s", op_info[op].text, why);
	return !why;
}

/* Index arithmetic in canonical form. Data may wrap where indices can't, so it is left alone. */
ExprId
tidy_index(Sema *s, ExprId e)
{
	return expr_get(s->g, e)->dtype == DT_I64 && !expr_has_read(s, e) ? index_norm(s->g, e) : e;
}

/* a op b for the arithmetic and comparison operations, after promotion. */
Val
elab_arith(Sema *s, Op op, Val a, Val b, Span at)
{
	if (val_bad(&a) || val_bad(&b))
		return val_error;
	Dom d = dom_join(s, a.dom, b.dom);
	if (is_number(&a) && is_number(&b)) {
		Val n = fold_numbers(s, op, &a, &b, d, at);
		if (!val_bad(&n) || (a.lit && b.lit))
			return n;
	}
	DType ta = val_dtype(s, &a), tb = val_dtype(s, &b);
	bool equality = op == OP_EQ || op == OP_NE;
	DType t = equality && ta == DT_BOOL && tb == DT_BOOL ? DT_BOOL : common_type(s, &a, &b);
	if (op == OP_FDIV && dtype_is_int(t))
		t = DT_F32;
	if (!type_allows(s, op, t, at))
		return val_error;
	ExprId x = val_as(s, &a, t, at), y = val_as(s, &b, t, at);
	if (!x || !y)
		return val_error;
	ExprId e = expr_binary(s->g, op, x, y);
	return val_expr(tidy_index(s, e), d);
}

static Op
arith_op(AstOp op)
{
	switch (op) {
	case AB_ADD: return OP_ADD;
	case AB_SUB: return OP_SUB;
	case AB_MUL: return OP_MUL;
	case AB_FDIV: return OP_FDIV;
	case AB_IDIV: return OP_IDIV;
	case AB_IMOD: return OP_IMOD;
	case AB_POW: return OP_POW;
	case AB_EQ: return OP_EQ;
	case AB_NE: return OP_NE;
	case AB_LT: case AB_GT: return OP_LT;
	case AB_LE: case AB_GE: return OP_LE;
	case AB_NONE: case AB_AND: case AB_OR: case AB_COALESCE: case AB_NEG: case AB_NOT: case AB_SET:
	case AB_ADDSET: case AB_MAXSET: case AB_MINSET: break;
	}
	return OP_NONE;
}

/* && and ||: the right side is read only where the left leaves it open. */
static Val
elab_logic(Sema *s, AstId id, Env *env)
{
	bool is_and = ast_get(s->ast, id)->op == AB_AND;
	Dom d = dom_none, right = dom_none;
	ExprId a = elab_cond(s, ast_kid(s->ast, id, 0), env, &d);
	PathMark mark = path_mark(s);
	path_push_dom(s, d);
	if (a)
		path_push(s, is_and ? a : cond_not(s, a));
	ExprId b = elab_cond(s, ast_kid(s->ast, id, 1), env, &right);
	path_reset(s, mark);
	if (!a || !b)
		return val_error;
	duties_limit(s, mark, right);
	return val_expr(expr_binary(s->g, is_and ? OP_AND : OP_OR, a, b),
	                dom_join(s, d, dom_imply(s, a, !is_and, right)));
}

/* e ?? v */
static Val
elab_default(Sema *s, AstId id, Env *env)
{
	PathMark mark = path_mark(s);
	Val e = elab(s, ast_kid(s->ast, id, 0), env);
	duties_limit(s, mark, e.dom);
	Span at = ast_get(s->ast, ast_kid(s->ast, id, 0))->at;
	ExprId present = val_bad(&e) ? 0 : dom_expr(s, e.dom);
	if (!val_bad(&e) && !present)
		diag_add(s->diags, DIAG_W0301, at, "this is present everywhere: the default after `??` is never used");
	mark = path_mark(s);
	if (present)
		path_push(s, cond_not(s, present));
	Val v = elab(s, ast_kid(s->ast, id, 1), env);
	path_reset(s, mark);
	duties_limit(s, mark, v.dom);
	if (val_bad(&e) || val_bad(&v))
		return val_error;
	if (!present)
		return e;
	DType t = !e.lit && !v.lit && val_dtype(s, &e) == val_dtype(s, &v) ? val_dtype(s, &e)
	                                                                  : common_type(s, &e, &v);
	ExprId x = val_as(s, &e, t, at), y = val_as(s, &v, t, ast_get(s->ast, ast_kid(s->ast, id, 1))->at);
	if (!x || !y)
		return val_error;
	Dom d = dom_none;
	if (v.dom.n)
		d = dom_add(s, d, expr_binary(s->g, OP_OR, present, dom_expr(s, v.dom)));
	return val_expr(expr_select(s->g, present, x, y), d);
}

Val
elab_binary(Sema *s, AstId id, Env *env)
{
	const AstNode *n = ast_get(s->ast, id);
	AstOp op = (AstOp)n->op;
	if (op == AB_AND || op == AB_OR)
		return elab_logic(s, id, env);
	if (op == AB_COALESCE)
		return elab_default(s, id, env);
	Span at = n->at;
	Val a = elab(s, ast_kid(s->ast, id, 0), env);
	Val b = elab(s, ast_kid(s->ast, id, 1), env);
	bool swap = op == AB_GT || op == AB_GE;
	return elab_arith(s, arith_op(op), swap ? b : a, swap ? a : b, at);
}

Val
elab_unary(Sema *s, AstId id, Env *env)
{
	if (ast_get(s->ast, id)->op == AB_NOT) {
		Dom d = dom_none;
		ExprId c = elab_cond(s, ast_kid(s->ast, id, 0), env, &d);
		return c ? val_expr(cond_not(s, c), d) : val_error;
	}
	Val v = elab(s, ast_kid(s->ast, id, 0), env);
	if (v.lit || v.choice)
		return number_map(s, &v, number_sign, OP_NEG, ast_get(s->ast, id)->at);
	if (val_bad(&v))
		return v;
	DType t = dtype_info[val_dtype(s, &v)].arith;
	ExprId e = expr_unary(s->g, OP_NEG, val_as(s, &v, t, ast_get(s->ast, id)->at));
	return val_expr(tidy_index(s, e), v.dom);
}
