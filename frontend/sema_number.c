/* sema_number.c: numbers that have not met a type: exact as long as that is short (exact.h), else doubles. A choice of two
 * is one of them too: what is computed of it is computed of both (LANGUAGE.md, Dtypes and numerics). */
#include "frontend/sema.h"
#include "ir/bugs.h"

#include <math.h>
#include <string.h>

static Whole
floor_div(Whole a, Whole b)
{
	if (b == 0)
		return -1;
	Whole q = a / b;
	return a % b != 0 && (a < 0) != (b < 0) && !BUG(fold_truncates) ? q - 1 : q;
}

static Val
number_int(Whole i, Dom d)
{
	return (Val){.lit = LIT_INT, .i = i, .f = (double)i, .dom = d};
}

static Val
number_float(double f, Dom d)
{
	return (Val){.lit = LIT_FLOAT, .f = f, .dom = d};
}

static Val
number_exact(const Exact *x, Dom d)
{
	return (Val){.lit = LIT_FLOAT, .f = exact_double(x, ROUND_NEAREST), .exact = x, .dom = d};
}

/* An integer of any length. */
static bool
is_whole(const Val *v)
{
	return v->lit == LIT_INT || v->whole;
}

static Val
number_whole(const Exact *x, Dom d)
{
	Whole i;
	if (exact_as_whole(x, &i))
		return number_int(i, d);
	Val v = number_exact(x, d);
	v.whole = true;
	return v;
}

static const Exact *
exact_of(Sema *s, const Val *v)
{
	return v->lit == LIT_INT ? exact_whole(s->arena, v->i) : v->exact;
}

Val
number_node(Sema *s, const AstNode *n)
{
	if (n->is_int)
		return number_int(n->num.i, dom_none);
	if (n->wide)
		return number_int(n->wide, dom_none);
	Val v = number_float(n->num.f, dom_none);
	const char *text = s->diags->files.at[n->at.file - 1].text + n->at.begin;
	size_t digits = n->at.end - n->at.begin;
	v.exact = exact_decimal(s->arena, text, digits);
	v.whole = !memchr(text, '.', digits) && !memchr(text, 'e', digits) && !memchr(text, 'E', digits);
	return v;
}

/* A double that rounds to what the number does, in any type that is narrower. Where the nearest one may lie in the middle
 * between two of that type it is a neighbour, which shows on which side the number is. */
double
number_to_narrow(const Val *v)
{
	double f = v->lit == LIT_INT ? (double)v->i : v->f;
	uint64_t bits;
	memcpy(&bits, &f, sizeof bits);
	bool middle = (bits & ((1u << 28) - 1)) == 0;
	return middle && v->exact && !exact_is_zero(v->exact) ? exact_double(v->exact, ROUND_ODD) : f;
}

static double
number(const Val *v)
{
	return v->lit == LIT_INT ? (double)v->i : v->f;
}

static Val
truth(Sema *s, bool b, Dom d)
{
	return val_expr(expr_int(s->g, DT_BOOL, b), d);
}

/* r, or where it has no room, its value as a float. */
static Val
whole_or(Whole r, bool lost, double f, Dom d)
{
	return lost || r > WHOLE_MAX / 2 || r < -WHOLE_MAX / 2 ? number_float(f, d) : number_int(r, d);
}

static Val
fold_power(Whole a, Whole b, Dom d)
{
	Whole r = 1;
	bool lost = b < 0;
	Whole times = a >= -1 && a <= 1 && b > 2 ? 2 - b % 2 : b; /* 0, 1 and -1 go round */
	for (Whole k = 0; !lost && k < times; k++)
		lost = __builtin_mul_overflow(r, a, &r);
	return whole_or(r, lost, pow((double)a, (double)b), d);
}

static Val
fold_ints(Op op, Whole a, Whole b, Dom d)
{
	Whole r = 0;
	bool lost;
	switch (op) {
	case OP_ADD:
		lost = __builtin_add_overflow(a, b, &r);
		return whole_or(r, lost, (double)a + (double)b, d);
	case OP_SUB:
		lost = __builtin_sub_overflow(a, b, &r);
		return whole_or(r, lost, (double)a - (double)b, d);
	case OP_MUL:
		lost = __builtin_mul_overflow(a, b, &r);
		return whole_or(r, lost, (double)a * (double)b, d);
	case OP_IDIV:
		return number_int(floor_div(a, b), d);
	case OP_IMOD:
		return number_int(b == 0 ? a : a - floor_div(a, b) * b, d);
	case OP_MIN:
		return number_int(a < b ? a : b, d);
	case OP_MAX:
		return number_int(a > b ? a : b, d);
	default:
		return fold_power(a, b, d);
	}
}

/* a op b, as doubles have it, and of whole numbers. */
static Val
fold_rounded(Sema *s, Op op, const Val *a, const Val *b, Dom d)
{
	double x = number(a), y = number(b);
	bool ints = a->lit == LIT_INT && b->lit == LIT_INT;
	switch (op) {
	case OP_EQ:
		return truth(s, ints ? a->i == b->i : x == y, d);
	case OP_NE:
		return truth(s, ints ? a->i != b->i : x != y, d);
	case OP_LT:
		return truth(s, ints ? a->i < b->i : x < y, d);
	case OP_LE:
		return truth(s, ints ? a->i <= b->i : x <= y, d);
	case OP_FDIV:
		return number_float(x / y, d);
	default:
		break;
	}
	if (ints)
		return fold_ints(op, a->i, b->i, d);
	return number_float(op == OP_ADD   ? x + y
	                    : op == OP_SUB ? x - y
	                    : op == OP_MUL ? x * y
	                    : op == OP_POW ? pow(x, y)
	                    : op == OP_MIN ? (isnan(x) || x < y ? x : y)
	                                   : (isnan(x) || x > y ? x : y),
	                    d);
}

/* div and mod, where one of the two has no room as an integer. */
static Val
fold_division(Sema *s, Op op, const Val *a, const Val *b, Dom d, Span at)
{
	if (!is_whole(a) || !is_whole(b)) {
		diag_add(s->diags, DIAG_E0504, at, "`%s` takes integers", op_info[op].text);
		return val_error;
	}
	const Exact *x = exact_of(s, a), *y = exact_of(s, b), *r = x && y ? exact_arith(s->arena, op, x, y) : NULL;
	if (r)
		return number_whole(r, d);
	diag_add(s->diags, DIAG_E0504, at, "`%s` takes integers, and of one this long only the nearest double is known",
	         op_info[op].text)->help = "numbers are exact up to some 900 digits";
	return val_error;
}

static bool
gives_integer(Op op, const Val *a, const Val *b)
{
	bool closed = op == OP_ADD || op == OP_SUB || op == OP_MUL || op == OP_MIN || op == OP_MAX;
	return is_whole(a) && is_whole(b) && (closed || (op == OP_POW && b->lit == LIT_INT && b->i >= 0));
}

/* a op b where both are known exactly and it is a quotient of whole numbers too; else as it was rounded. The sign of a zero
 * is the one that doubles have, but for a difference that these don't see. */
static Val
fold_quotients(Sema *s, Op op, const Val *a, const Val *b, Val rounded)
{
	if (a->lit == LIT_INT && b->lit == LIT_INT && rounded.lit != LIT_FLOAT)
		return rounded;
	const Exact *x = exact_of(s, a), *y = exact_of(s, b), *r = NULL;
	rounded.whole = rounded.lit == LIT_FLOAT && gives_integer(op, a, b);
	if (!x || !y)
		return rounded;
	bool comparison = op == OP_EQ || op == OP_NE || op == OP_LT || op == OP_LE;
	int order = comparison || op == OP_MIN || op == OP_MAX ? exact_compare(x, y) : 0;
	if (comparison)
		return truth(s, op == OP_EQ ? order == 0 : op == OP_NE ? order != 0 : op == OP_LT ? order < 0 : order <= 0, rounded.dom);
	if (op == OP_MIN || op == OP_MAX)
		r = order == 0 && exact_is_zero(x) ? NULL : (order < 0) == (op == OP_MIN) ? x : y;
	else if (op == OP_POW)
		r = b->lit == LIT_INT ? exact_power(s->arena, x, b->i) : NULL;
	else if (op == OP_ADD || op == OP_SUB || op == OP_MUL || op == OP_FDIV)
		r = exact_arith(s->arena, op, x, y);
	if (!r)
		return rounded;
	if (rounded.whole)
		return number_whole(r, rounded.dom);
	Val v = number_exact(r, rounded.dom);
	if (exact_is_zero(r) && (op == OP_MUL || op == OP_FDIV))
		v.f = signbit(number(a)) != signbit(number(b)) ? -0.0 : 0.0;
	else if (exact_is_zero(r) && rounded.f == 0)
		v.f = rounded.f;
	return v;
}

/* --- choices: c ? 0.1 : 0.2 --- */

bool
is_number(const Val *v)
{
	return v->lit || v->choice;
}

enum { MAX_LEAVES = 16 };

static unsigned
leaves(const Val *v)
{
	return v->choice ? leaves(&v->choice->arm[0]) + leaves(&v->choice->arm[1]) : 1;
}

static bool
are_known_integers(const Val *v)
{
	if (v->choice)
		return are_known_integers(&v->choice->arm[0]) && are_known_integers(&v->choice->arm[1]);
	return v->lit == LIT_INT || (v->whole && v->exact);
}

/* div and mod of what no type of integers holds. */
static bool
divides_beyond_types(Sema *s, Op op, const Val *a, const Val *b)
{
	return (op == OP_IDIV || op == OP_IMOD) && is_number(a) && is_number(b) && dtype_is_float(common_type(s, a, b)) &&
	       are_known_integers(a) && are_known_integers(b);
}

Val
number_choice(Sema *s, ExprId c, const Val arm[2], Dom d, Span at)
{
	const Expr *e = expr_get(s->g, c);
	if (e->op == OP_CONST) {
		Val taken = arm[e->imm.i ? 0 : 1];
		taken.dom = d;
		return taken;
	}
	Choice numbers = {c, {arm[0], arm[1]}};
	const Choice *kept = arena_copy(s->arena, &numbers, sizeof numbers);
	DType t = common_type(s, &arm[0], &arm[1]);
	ExprId typed = choice_as(s, kept, t, at);
	if (!typed)
		return val_error;
	Val v = val_expr(typed, d);
	v.choice = kept;
	return v;
}

/* a op b for each of their numbers. */
static Val
fold_choices(Sema *s, Op op, const Val *a, const Val *b, Dom d, Span at)
{
	const Val *split = a->choice ? a : b;
	Val arm[2];
	for (unsigned k = 0; k < 2; k++) {
		const Val *part = &split->choice->arm[k];
		arm[k] = fold_numbers(s, op, split == a ? part : a, split == a ? b : part, dom_none, at);
		if (val_bad(&arm[k]))
			return val_error;
	}
	return number_choice(s, split->choice->c, arm, d, at);
}

/* An error without a report where there is a choice, and the operation is better done on typed values. */
Val
fold_numbers(Sema *s, Op op, const Val *a, const Val *b, Dom d, Span at)
{
	if (a->lit && b->lit && (op == OP_IDIV || op == OP_IMOD) && !(a->lit == LIT_INT && b->lit == LIT_INT))
		return fold_division(s, op, a, b, d, at);
	if (a->lit && b->lit)
		return fold_quotients(s, op, a, b, fold_rounded(s, op, a, b, d));
	bool arithmetic = op == OP_ADD || op == OP_SUB || op == OP_MUL || op == OP_FDIV || op == OP_POW || op == OP_MIN ||
	                  op == OP_MAX || divides_beyond_types(s, op, a, b);
	if (!arithmetic || leaves(a) * leaves(b) > MAX_LEAVES)
		return val_error;
	return fold_choices(s, op, a, b, d, at);
}

Val
number_map(Sema *s, const Val *v, Val (*f)(Sema *, const Val *, Op), Op op, Span at)
{
	if (!v->choice)
		return f(s, v, op);
	Val arm[2] = {number_map(s, &v->choice->arm[0], f, op, at), number_map(s, &v->choice->arm[1], f, op, at)};
	return number_choice(s, v->choice->c, arm, v->dom, at);
}

Val
number_sign(Sema *s, const Val *v, Op op)
{
	double x = number(v);
	bool flip = op == OP_NEG || (op == OP_ABS && signbit(x));
	if (op == OP_SIGN && is_whole(v))
		return number_int((x > 0) - (x < 0), v->dom);
	if (op == OP_SIGN)
		return number_float(x > 0 ? 1 : x < 0 ? -1 : x, v->dom);
	if (v->lit == LIT_INT)
		return number_int(flip ? -v->i : v->i, v->dom);
	Val r = *v;
	r.f = flip ? -x : x;
	r.exact = flip && v->exact ? exact_negated(s->arena, v->exact) : v->exact;
	return r;
}
