/* sema_call.c: f(x, y): scalar functions (calls.def), casts, and functions without indices. */
#include "frontend/sema.h"

#include <math.h>
#include <string.h>

typedef enum { TAKES_FLOAT, TAKES_ARITH, TAKES_OWN } Takes;

typedef enum {
#define CALL(name, op, nmin, nmax, takes) CALL_##name,
#include "frontend/calls.def"
} CallId;

static const struct {
	const char *name;
	Op op;
	uint8_t nmin, nmax, takes;
} call_row[] = {
#define CALL(name, op, nmin, nmax, takes) {#name, OP_##op, nmin, nmax, TAKES_##takes},
#include "frontend/calls.def"
};

enum { NCALL = sizeof call_row / sizeof *call_row, MAX_ARGS = 8 };

static int
call_named(const char *text)
{
	for (int i = 0; i < NCALL; i++)
		if (strcmp(call_row[i].name, text) == 0)
			return i;
	return -1;
}

bool
is_builtin_call(Sema *s, Name name)
{
	const char *t = name_text(s->names, name);
	return call_named(t) >= 0 || dtype_named(t, strlen(t)) != DT_NONE;
}

void
near_calls(NearName *n)
{
	for (int i = 0; i < NCALL; i++)
		near_offer_name(n, call_row[i].name);
}

static double
fold_float(Op op, double x)
{
	switch (op) {
	case OP_EXP: return exp(x);
	case OP_EXP2: return exp2(x);
	case OP_EXPM1: return expm1(x);
	case OP_LOG: return log(x);
	case OP_LOG2: return log2(x);
	case OP_LOG1P: return log1p(x);
	case OP_SQRT: return sqrt(x);
	case OP_RSQRT: return 1 / sqrt(x);
	case OP_TANH: return tanh(x);
	case OP_ERF: return erf(x);
	case OP_SIN: return sin(x);
	case OP_COS: return cos(x);
	case OP_FLOOR: return floor(x);
	case OP_CEIL: return ceil(x);
	case OP_ROUND: return nearbyint(x);
	case OP_TRUNC: return trunc(x);
	default: return NAN;
	}
}

static DType
float_type(DType t)
{
	DType a = dtype_info[t].arith;
	return dtype_is_float(a) ? a : DT_F32;
}

static bool
refuse_complex(Sema *s, const Val *v, Span at, const char *name)
{
	if (v->lit || val_dtype(s, v) != DT_C64)
		return false;
	diag_add(s->diags, DIAG_E0504, at, "`%s` is not defined for complex numbers", name)->help =
		"take `re(…)` or `im(…)` first";
	return true;
}

static Val
float_of_number(Sema *s, const Val *v, Op op)
{
	(void)s;
	return (Val){.lit = LIT_FLOAT, .f = fold_float(op, v->lit == LIT_INT ? (double)v->i : v->f), .dom = v->dom};
}

static Val
call_float(Sema *s, Op op, Val v, Span at, const char *name)
{
	if (val_bad(&v) || refuse_complex(s, &v, at, name))
		return val_error;
	if (is_number(&v) && op != OP_ISNAN)
		return number_map(s, &v, float_of_number, op, at);
	v = val_typed(s, v);
	return val_expr(expr_unary(s->g, op, val_as(s, &v, float_type(val_dtype(s, &v)), at)), v.dom);
}

/* Unary and binary arithmetic functions; min and max of several fold from the left. */
static Val
call_arith(Sema *s, Op op, Val *v, unsigned n, Span at, const char *name)
{
	for (unsigned k = 0; k < n; k++)
		if (val_bad(&v[k]) || refuse_complex(s, &v[k], at, name))
			return val_error;
	if (n == 1) {
		if (is_number(v) && (op == OP_ABS || op == OP_SIGN))
			return number_map(s, v, number_sign, op, at);
		Val t = val_typed(s, *v);
		return val_expr(expr_unary(s->g, op, val_as(s, &t, dtype_info[val_dtype(s, &t)].arith, at)), t.dom);
	}
	Val r = v[0];
	for (unsigned k = 1; k < n; k++)
		r = elab_arith(s, op, r, v[k], at);
	return r;
}

static Val
call_complex_part(Sema *s, Op op, Val v, Span at)
{
	if (val_bad(&v))
		return v;
	v = val_typed(s, v);
	ExprId c = val_as(s, &v, DT_C64, at);
	return c ? val_expr(expr_unary(s->g, op, c), v.dom) : val_error;
}

/* extent(j): the length of the index's range. */
static Val
call_extent(Sema *s, AstId arg, Env *env)
{
	const AstNode *n = ast_get(s->ast, arg);
	Env *b = n->kind == AST_NAME ? env_find(env, n->name) : NULL;
	if (!b || b->what != BIND_INDEX) {
		diag_add(s->diags, DIAG_E0205, n->at, "extent takes the name of an index bound here");
		return val_error;
	}
	ExprId e = 0;
	for (uint32_t k = 0; k < b->n; k++) {
		Ivar v = s->ivar.at[b->ivar[k]];
		if (!v.lo)
			return val_error;
		ExprId one = expr_binary(s->g, OP_SUB, v.hi, v.lo);
		e = e ? expr_binary(s->g, OP_MUL, e, one) : one;
	}
	return val_expr(tidy_index(s, e), dom_none);
}

static Val
call_rand(Sema *s, Op op, AstId args, unsigned n, Env *env)
{
	ExprId arg[MAX_ARGS];
	Dom d = dom_none;
	for (unsigned k = 0; k < n; k++) {
		arg[k] = elab_index(s, ast_kid(s->ast, args, k), env, &d, k ? "an index of rand" : "a seed");
		if (!arg[k])
			return val_error;
	}
	arg[0] = expr_cast(s->g, DT_U64, arg[0]);
	return val_expr(expr_make(s->g, op, DT_F32, 0, 0, arg, n), d);
}

static Val
call_root(Sema *s, AstId args, Env *env)
{
	Dom d = dom_none;
	ExprId a = elab_index(s, ast_kid(s->ast, args, 0), env, &d, "the first argument of root");
	ExprId n = elab_index(s, ast_kid(s->ast, args, 1), env, &d, "the second argument of root");
	return a && n ? val_expr(expr_binary(s->g, OP_ROOT, a, n), d) : val_error;
}

/* A cast written as a call. */
/* An exact number as an integer of type t. */
static ExprId
exact_as_integer(Sema *s, DType t, const Exact *x)
{
	bool is_signed = dtype_info[t].kind == KIND_INT;
	Whole half = (Whole)1 << (dtype_info[t].bits - 1), least = is_signed ? -half : 0, most = is_signed ? half - 1 : 2 * half - 1;
	return expr_int(s->g, t, (int64_t)exact_truncated(s->arena, x, least, most));
}

static Val
call_cast(Sema *s, DType t, Val v, Span at)
{
	if (val_bad(&v))
		return v;
	if (v.choice && !dtype_is_float(t) && t != DT_C64) {
		Val a = call_cast(s, t, v.choice->arm[0], at), b = call_cast(s, t, v.choice->arm[1], at);
		return val_expr(expr_select(s->g, v.choice->c, a.e, b.e), v.dom);
	}
	if (v.lit == LIT_FLOAT && v.exact && dtype_is_int(t))
		return val_expr(exact_as_integer(s, t, v.exact), v.dom);
	if (v.lit && dtype_is_int(t) && dtype_is_float(literal_type(&v)))
		return val_expr(expr_cast(s->g, t, literal_as(s, &v, DT_F64, at)), v.dom);
	if (v.lit && t == DT_BOOL)
		return val_expr(expr_int(s->g, DT_BOOL, v.lit == LIT_INT ? v.i != 0 : v.exact ? !exact_is_zero(v.exact) : v.f != 0), v.dom);
	if (v.lit == LIT_INT && dtype_is_int(t))
		return val_expr(expr_int(s->g, t, (int64_t)v.i), v.dom);
	if (!v.lit && val_dtype(s, &v) == DT_C64 && t != DT_C64) {
		diag_add(s->diags, DIAG_E0504, at, "a complex value has no single %s value", dtype_info[t].text)->help =
			"take `re(…)` or `im(…)`";
		return val_error;
	}
	ExprId e = val_as(s, &v, t, at);
	return e ? val_expr(e, v.dom) : val_error;
}

static Val
call_builtin(Sema *s, int row, AstId id, AstId args, unsigned n, Env *env)
{
	Span at = ast_get(s->ast, id)->at;
	const char *name = call_row[row].name;
	Op op = call_row[row].op;
	switch ((CallId)row) {
	case CALL_extent:
		return call_extent(s, ast_kid(s->ast, args, 0), env);
	case CALL_root:
		return call_root(s, args, env);
	case CALL_rand: case CALL_randn:
		return call_rand(s, op, args, n, env);
	default:
		break;
	}
	Val v[MAX_ARGS];
	for (unsigned k = 0; k < n; k++)
		v[k] = elab(s, ast_kid(s->ast, args, k), env);
	if (call_row[row].takes == TAKES_FLOAT)
		return call_float(s, op, v[0], at, name);
	if (call_row[row].takes == TAKES_ARITH)
		return call_arith(s, op, v, n, at, name);
	if ((CallId)row == CALL_sq)
		return elab_arith(s, OP_MUL, v[0], v[0], at);
	return call_complex_part(s, op, v[0], at);
}

static void
wrong_count(Sema *s, const AstNode *n, unsigned got, unsigned nmin, unsigned nmax)
{
	if (nmin == nmax)
		diag_add(s->diags, DIAG_E0206, n->at, "`%s` takes %u argument%s, not %u", name_text(s->names, n->name),
		         nmin, nmin == 1 ? "" : "s", got);
	else
		diag_add(s->diags, DIAG_E0206, n->at, "`%s` takes %u to %u arguments, not %u",
		         name_text(s->names, n->name), nmin, nmax, got);
}

static Val
call_function(Sema *s, AstId id, Item *fn, Env *env)
{
	Inlined in;
	if (!inline_function(s, id, fn, env, false, &in))
		return val_error;
	return elab_body(s, &in);
}

static Val
unknown_function(Sema *s, const AstNode *n, Env *env)
{
	Diag *d;
	if (is_reduction(s, n->name)) {
		d = diag_add(s->diags, DIAG_E0208, n->at, "`%s` needs an index: `%s[i](…)`", name_text(s->names, n->name),
		             name_text(s->names, n->name));
		d->help = "name the index it runs over in brackets";
		return val_error;
	}
	d = diag_add(s->diags, DIAG_E0207, n->name_at, "there is no function `%s`", name_text(s->names, n->name));
	const char *hint = item_std_hint(s, env->file, n->name);
	d->help = hint ? hint : near_function(s, env->file, n->name, false);
	return val_error;
}

Val
elab_call(Sema *s, AstId id, Env *env)
{
	AstNode n = *ast_get(s->ast, id);
	AstId args = ast_kid(s->ast, id, 0);
	unsigned nargs = ast_get(s->ast, args)->nkid;
	const char *text = name_text(s->names, n.name);
	int row = call_named(text);
	if (row >= 0 && !(is_reduction(s, n.name) && nargs == 1)) {
		if (nargs < call_row[row].nmin || nargs > call_row[row].nmax) {
			wrong_count(s, &n, nargs, call_row[row].nmin, call_row[row].nmax);
			return val_error;
		}
		return call_builtin(s, row, id, args, nargs, env);
	}
	DType t = dtype_named(text, strlen(text));
	if (t != DT_NONE) {
		if (nargs != 1) {
			wrong_count(s, &n, nargs, 1, 1);
			return val_error;
		}
		return call_cast(s, t, elab(s, ast_kid(s->ast, args, 0), env), n.at);
	}
	Item *fn = item_find(s, env->file, n.name);
	if (fn && ast_get(s->ast, fn->ast)->kind == AST_FN)
		return call_function(s, id, fn, env);
	return unknown_function(s, &n, env);
}
