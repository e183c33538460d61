/* index.c: canonical integer expressions; see index_norm in tg.h and index.h.
 *
 * Sums, differences and products are exact under wraparound too (a ring); div and mod by a positive
 * constant are rewritten by identities of the integers, (q*c + r) div c = q + r div c and the like.
 * Results are memoised in Graph.norm, so that a shared part is visited once. */
#include "ir/index.h"
#include "ir/bugs.h"

#include <string.h>

typedef struct {
	unsigned n;
	bool over; /* does not fit; the expression stays as it is */
	IndexTerm at[INDEX_MAX_TERMS];
} Poly;

static uint64_t
order_key(const Graph *g, ExprId e)
{
	const Expr *p = expr_get(g, e);
	if (p->op == OP_AXIS)
		return p->ref;
	if (p->op == OP_IVAR)
		return 1ull << 32 | p->ref;
	if (p->op == OP_DIM)
		return 2ull << 32 | p->ref;
	return 3ull << 32 | e;
}

bool
index_before(const Graph *g, ExprId a, ExprId b)
{
	return order_key(g, a) < order_key(g, b);
}

static int64_t
wrap_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t
wrap_mul(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* floor division by c > 0 */
int64_t
index_floor_div(int64_t a, int64_t c)
{
	int64_t q = a / c;
	return a % c < 0 ? q - 1 : q;
}

static int64_t
floor_mod(int64_t a, int64_t c)
{
	int64_t r = a % c;
	return r < 0 ? r + c : r;
}

int64_t
index_gcd(int64_t a, int64_t b)
{
	while (b) {
		int64_t t = a % b;
		a = b;
		b = t;
	}
	return a < 0 ? -a : a;
}

/* Keeps the terms ordered, the constant (mono 0) first, and drops zeros. */
static void
poly_add(const Graph *g, Poly *p, int64_t coef, ExprId mono)
{
	unsigned k = 0;
	if (mono && p->n) {
		uint64_t key = order_key(g, mono);
		for (k = p->n; k > 0; k--)
			if (!p->at[k - 1].mono || order_key(g, p->at[k - 1].mono) <= key)
				break;
		k = k > 0 && p->at[k - 1].mono == mono ? k - 1 : k;
	}
	if (k < p->n && p->at[k].mono == mono) {
		p->at[k].coef = wrap_add(p->at[k].coef, coef);
		if (p->at[k].coef == 0) {
			memmove(p->at + k, p->at + k + 1, (p->n - k - 1) * sizeof *p->at);
			p->n--;
		}
		return;
	}
	if (coef == 0)
		return;
	if (p->n == INDEX_MAX_TERMS) {
		p->over = true;
		return;
	}
	memmove(p->at + k + 1, p->at + k, (p->n - k) * sizeof *p->at);
	p->at[k] = (IndexTerm){coef, mono};
	p->n++;
}

static bool
is_const(const Graph *g, ExprId e, int64_t *v)
{
	const Expr *p = expr_get(g, e);
	if (p->op != OP_CONST || p->dtype != DT_I64)
		return false;
	*v = p->imm.i;
	return true;
}

/* A term of a canonical sum: constant, mono, or mono * constant. */
static IndexTerm
split_term(const Graph *g, ExprId e)
{
	int64_t c;
	if (is_const(g, e, &c))
		return (IndexTerm){c, 0};
	if (expr_get(g, e)->op == OP_MUL && is_const(g, expr_arg(g, e, 1), &c))
		return (IndexTerm){c, expr_arg(g, e, 0)};
	return (IndexTerm){1, e};
}

static void
terms_of(const Graph *g, ExprId e, Poly *out)
{
	ExprId whole = e;
	out->n = 0;
	out->over = false;
	for (unsigned k = 0; !out->over; k++) {
		Op op = (Op)expr_get(g, e)->op;
		bool chain = (op == OP_ADD || op == OP_SUB) && k < INDEX_MAX_TERMS;
		IndexTerm t = split_term(g, op == OP_NEG || !chain ? e : expr_arg(g, e, 1));
		if (op == OP_NEG)
			t = split_term(g, expr_arg(g, e, 0));
		poly_add(g, out, op == OP_SUB || op == OP_NEG ? wrap_mul(t.coef, -1) : t.coef, t.mono);
		if (!chain)
			break;
		e = expr_arg(g, e, 0);
	}
	if (out->over) {
		out->over = false;
		out->n = 1;
		out->at[0] = (IndexTerm){1, whole};
	}
}

unsigned
index_terms(const Graph *g, ExprId e, IndexTerm *out)
{
	Poly p;
	terms_of(g, e, &p);
	memcpy(out, p.at, p.n * sizeof *out);
	return p.n;
}

unsigned
index_factors(const Graph *g, ExprId mono, ExprId *out)
{
	unsigned n = 0;
	ExprId e = mono;
	for (; expr_get(g, e)->op == OP_MUL; e = expr_arg(g, e, 0)) {
		if (n == INDEX_MAX_FACTORS - 1) {
			out[0] = mono;
			return 1;
		}
		out[n++] = expr_arg(g, e, 1);
	}
	out[n++] = e;
	for (unsigned k = 0; k < n / 2; k++) {
		ExprId t = out[k];
		out[k] = out[n - 1 - k];
		out[n - 1 - k] = t;
	}
	return n;
}

static ExprId
product(Graph *g, const ExprId *factor, unsigned n)
{
	ExprId e = 0;
	for (unsigned k = 0; k < n; k++)
		e = e ? expr_binary(g, OP_MUL, e, factor[k]) : factor[k];
	return e;
}

ExprId
index_mono_mul(Graph *g, ExprId a, ExprId b)
{
	ExprId fa[INDEX_MAX_FACTORS], fb[INDEX_MAX_FACTORS], f[INDEX_MAX_FACTORS];
	unsigned na = index_factors(g, a, fa), nb = index_factors(g, b, fb);
	if (na + nb > INDEX_MAX_FACTORS)
		return 0;
	for (unsigned i = 0, j = 0; i + j < na + nb;) {
		bool left = j == nb || (i < na && !index_before(g, fb[j], fa[i]));
		f[i + j] = left ? fa[i] : fb[j];
		if (left)
			i++;
		else
			j++;
	}
	return product(g, f, na + nb);
}

ExprId
index_mono_div(Graph *g, ExprId a, ExprId b)
{
	ExprId fa[INDEX_MAX_FACTORS], fb[INDEX_MAX_FACTORS], f[INDEX_MAX_FACTORS];
	unsigned na = index_factors(g, a, fa), nb = index_factors(g, b, fb), n = 0, j = 0;
	for (unsigned i = 0; i < na; i++)
		if (j < nb && fa[i] == fb[j])
			j++;
		else
			f[n++] = fa[i];
	return j == nb ? product(g, f, n) : 0;
}

static ExprId
scaled(Graph *g, ExprId mono, uint64_t coef)
{
	if (!mono)
		return expr_int(g, DT_I64, (int64_t)coef);
	return coef == 1 ? mono : expr_binary(g, OP_MUL, mono, expr_int(g, DT_I64, (int64_t)coef));
}

static ExprId
build(Graph *g, const Poly *p)
{
	ExprId e = 0;
	for (unsigned k = 0; k < p->n; k++)
		if (p->at[k].mono && p->at[k].coef > 0) {
			ExprId t = scaled(g, p->at[k].mono, (uint64_t)p->at[k].coef);
			e = e ? expr_binary(g, OP_ADD, e, t) : t;
		}
	bool constant = p->n && !p->at[0].mono;
	int64_t c = constant ? p->at[0].coef : 0;
	if (!e && c > 0) {
		e = expr_int(g, DT_I64, c);
		c = 0;
	}
	for (unsigned k = constant; k < p->n; k++)
		if (p->at[k].coef < 0) {
			ExprId t = scaled(g, p->at[k].mono, -(uint64_t)p->at[k].coef);
			e = e ? expr_binary(g, OP_SUB, e, t) : expr_unary(g, OP_NEG, t);
		}
	if (c > 0)
		e = expr_binary(g, OP_ADD, e, expr_int(g, DT_I64, c));
	else if (c < 0)
		e = e ? expr_binary(g, OP_SUB, e, scaled(g, 0, -(uint64_t)c)) : expr_int(g, DT_I64, c);
	return e ? e : expr_int(g, DT_I64, 0);
}

ExprId
index_from_terms(Graph *g, const IndexTerm *term, unsigned n)
{
	Poly p = {0};
	for (unsigned k = 0; k < n; k++)
		poly_add(g, &p, term[k].coef, term[k].mono);
	if (p.over)
		bug(g->arena, "index_from_terms: %u terms", n);
	return build(g, &p);
}

static void
poly_add_scaled(const Graph *g, Poly *to, const Poly *p, int64_t coef)
{
	for (unsigned k = 0; k < p->n; k++)
		poly_add(g, to, wrap_mul(p->at[k].coef, coef), p->at[k].mono);
}

static void
poly_mul(Graph *g, Poly *to, const Poly *a, const Poly *b)
{
	for (unsigned i = 0; i < a->n; i++)
		for (unsigned j = 0; j < b->n && !to->over; j++) {
			ExprId x = a->at[i].mono, y = b->at[j].mono;
			ExprId m = x && y ? index_mono_mul(g, x, y) : x ? x : y;
			if (x && !m)
				to->over = true;
			else
				poly_add(g, to, wrap_mul(a->at[i].coef, b->at[j].coef), m);
		}
}

/* Whether mono is `x op a` with a constant a >= 1. */
static bool
is_op_const(const Graph *g, ExprId mono, Op op, int64_t *a)
{
	return mono && expr_get(g, mono)->op == op && is_const(g, expr_arg(g, mono, 1), a) && *a >= 1;
}

/* The only non-constant term is one mono with coefficient 1? Then it and the constant. */
static bool
is_single(const Poly *p, ExprId *mono, int64_t *constant)
{
	bool c = p->n && !p->at[0].mono;
	*constant = c ? p->at[0].coef : 0;
	if (p->n != 1u + c || p->at[c].coef != 1)
		return false;
	*mono = p->at[c].mono;
	return true;
}

/* rest = scale * rest' + (what is left over in the constant), scale the gcd of c and the coefficients;
 * returns the scale and the left-over constant. */
static int64_t
take_gcd(const Graph *g, Poly *rest, int64_t *c, int64_t *left)
{
	int64_t s = *c, constant = 0;
	for (unsigned k = 0; k < rest->n; k++)
		if (rest->at[k].mono)
			s = index_gcd(s, rest->at[k].coef);
		else
			constant = rest->at[k].coef;
	*left = floor_mod(constant, s);
	Poly p = {0};
	for (unsigned k = 0; k < rest->n; k++)
		poly_add(g, &p, index_floor_div(rest->at[k].coef, s), rest->at[k].mono);
	*rest = p;
	*c /= s;
	return s;
}

/* v as one of 0 .. c - 1, by multiples of c. Where c is that large, one above 2^62 is written below 0: what it is added to
 * is an index, and the sum must be an i64 as well. */
static int64_t
residue(int64_t v, int64_t c)
{
	int64_t r = floor_mod(v, c);
	return r > INT64_C(1) << 62 ? r - c : r;
}

static void norm_div(Graph *g, const Poly *a, int64_t c, Poly *out);

/* rest div c, where no coefficient of rest reaches c and no common factor is left. */
static void
norm_div_rest(Graph *g, const Poly *rest, int64_t c, Poly *out)
{
	ExprId mono;
	int64_t k, inner, both, lift;
	if (is_single(rest, &mono, &k)) {
		if (is_op_const(g, mono, OP_IMOD, &inner) && k >= 0 && ((inner <= c && k <= c - inner) || BUG(mod_div_vanishes)))
			return;
		if (is_op_const(g, mono, OP_IDIV, &inner) && !__builtin_mul_overflow(c, inner, &both) &&
		    !__builtin_mul_overflow(k, inner, &lift)) {
			Poly x;
			terms_of(g, expr_arg(g, mono, 0), &x);
			int64_t own = x.n && !x.at[0].mono ? x.at[0].coef : 0, sum;
			bool fits = !__builtin_add_overflow(own, lift, &sum);
			poly_add(g, &x, lift, 0);
			if (fits && !x.over) {
				norm_div(g, &x, both, out);
				return;
			}
		}
	}
	poly_add(g, out, 1, expr_binary(g, OP_IDIV, build(g, rest), expr_int(g, DT_I64, c)));
}

/* Adds a div c, c >= 1, to out. */
static void
norm_div(Graph *g, const Poly *a, int64_t c, Poly *out)
{
	Poly rest = {0};
	for (unsigned k = 0; k < a->n; k++) {
		int64_t v = a->at[k].coef, r = a->at[k].mono ? v % c : residue(v, c), q = index_floor_div(v, c);
		poly_add(g, out, r == floor_mod(v, c) ? q : q + 1, a->at[k].mono);
		poly_add(g, &rest, r, a->at[k].mono);
	}
	if (rest.n == 0 || (rest.n == 1 && !rest.at[0].mono))
		return;
	int64_t left, s = take_gcd(g, &rest, &c, &left);
	if (s > 1)
		norm_div(g, &rest, c, out);
	else
		norm_div_rest(g, &rest, c, out);
}

/* Coefficients mod c, between -c and c. */
static void
reduce_coefs(const Graph *g, const Poly *a, int64_t c, Poly *out)
{
	for (unsigned t = 0; t < a->n; t++) {
		int64_t v = a->at[t].coef;
		poly_add(g, out, a->at[t].mono ? v % c : residue(v, c), a->at[t].mono);
	}
}

/* Adds scale * (a mod c), c >= 1, to out. (y mod m*c) mod c is y mod c; c is small there, so that the
 * products of coefficients stay exact. */
static void
norm_mod(Graph *g, const Poly *a, int64_t c, int64_t scale, Poly *out)
{
	enum { SMALL = 1 << 28 };
	Poly rest = {0}, open = {0};
	int64_t inner, left, k;
	reduce_coefs(g, a, c, &rest);
	bool opened = false;
	for (unsigned t = 0; t < rest.n; t++) {
		Poly x, y = {.n = 1, .at = {{1, rest.at[t].mono}}};
		if (c <= SMALL && is_op_const(g, rest.at[t].mono, OP_IMOD, &inner) && inner % c == 0) {
			terms_of(g, expr_arg(g, rest.at[t].mono, 0), &x);
			y.n = 0;
			reduce_coefs(g, &x, c, &y);
			opened = true;
		}
		poly_add_scaled(g, &open, &y, rest.at[t].coef);
	}
	if (opened) {
		out->over |= open.over;
		if (!open.over)
			norm_mod(g, &open, c, scale, out);
		return;
	}
	int64_t s = take_gcd(g, &rest, &c, &left);
	poly_add(g, out, wrap_mul(left, scale), 0);
	if (c == 1)
		return;
	ExprId mono;
	scale = wrap_mul(scale, s);
	if (s > 1)
		norm_mod(g, &rest, c, scale, out);
	else if (is_single(&rest, &mono, &k) && k == 0 && is_op_const(g, mono, OP_IMOD, &inner) && inner <= c)
		poly_add(g, out, scale, mono);
	else
		poly_add(g, out, scale, expr_binary(g, OP_IMOD, build(g, &rest), expr_int(g, DT_I64, c)));
}

static ExprId
norm_divmod(Graph *g, Op op, ExprId a, ExprId b)
{
	int64_t x, c;
	if (is_const(g, b, &c) && c == 0)
		return op == OP_IDIV ? expr_int(g, DT_I64, -1) : a;
	if (is_const(g, a, &x) && is_const(g, b, &c) && c != -1) {
		int64_t r = x % c;
		bool adjust = r != 0 && (r < 0) != (c < 0);
		return expr_int(g, DT_I64, op == OP_IDIV ? x / c - adjust : adjust ? r + c : r);
	}
	if (is_const(g, b, &c) && c >= 1) {
		Poly p, out = {0};
		terms_of(g, a, &p);
		if (op == OP_IDIV)
			norm_div(g, &p, c, &out);
		else
			norm_mod(g, &p, c, 1, &out);
		if (!out.over)
			return build(g, &out);
	}
	const Expr *p = expr_get(g, a);
	if (op == OP_IMOD && p->op == OP_IMOD && expr_arg(g, a, 1) == b)
		return a; /* also for b <= 0 */
	return expr_binary(g, op, a, b);
}

static ExprId
norm_ring(Graph *g, Op op, ExprId a, ExprId b)
{
	Poly x, y, out = {0};
	terms_of(g, a, &x);
	if (b)
		terms_of(g, b, &y);
	if (op == OP_MUL)
		poly_mul(g, &out, &x, &y);
	else {
		poly_add_scaled(g, &out, &x, op == OP_NEG ? -1 : 1);
		if (op != OP_NEG)
			poly_add_scaled(g, &out, &y, op == OP_SUB ? -1 : 1);
	}
	if (!out.over)
		return build(g, &out);
	return b ? expr_binary(g, op, a, b) : expr_unary(g, op, a);
}

static ExprId
norm_minmax(Graph *g, Op op, ExprId a, ExprId b)
{
	int64_t x, y;
	if (a == b)
		return a;
	if (is_const(g, a, &x) && is_const(g, b, &y))
		return (op == OP_MIN) == (x < y) ? a : b;
	return index_before(g, a, b) ? expr_binary(g, op, a, b) : expr_binary(g, op, b, a);
}

static void
memo_put(Graph *g, ExprId e, ExprId to)
{
	uint32_t top = e > to ? e : to;
	if (top >= g->norm.n)
		vec_grow(g->arena, &g->norm, top + 1 - g->norm.n);
	g->norm.at[e] = to;
	g->norm.at[to] = to;
}

static ExprId
memo_get(const Graph *g, ExprId e)
{
	return e < g->norm.n ? g->norm.at[e] : 0;
}

/* e with its operands, all memoised, replaced by their canonical forms. */
static ExprId
norm_step(Graph *g, ExprId e)
{
	Expr p = *expr_get(g, e);
	ExprId arg[TG_MAX_AXES];
	bool changed = false;
	for (unsigned k = 0; k < p.narg; k++) {
		ExprId operand = g->arg.at[p.arg + k];
		arg[k] = memo_get(g, operand);
		changed |= arg[k] != operand;
	}
	if (p.dtype == DT_I64)
		switch (p.op) {
		case OP_ADD: case OP_SUB: case OP_MUL:
			return norm_ring(g, (Op)p.op, arg[0], arg[1]);
		case OP_NEG:
			return norm_ring(g, OP_NEG, arg[0], 0);
		case OP_IDIV: case OP_IMOD:
			return norm_divmod(g, (Op)p.op, arg[0], arg[1]);
		case OP_MIN: case OP_MAX:
			return norm_minmax(g, (Op)p.op, arg[0], arg[1]);
		case OP_CAST:
			if (expr_get(g, arg[0])->op == OP_CONST && !dtype_is_float((DType)expr_get(g, arg[0])->dtype))
				return expr_int(g, DT_I64, expr_get(g, arg[0])->imm.i);
			break;
		}
	return changed ? expr_make(g, (Op)p.op, (DType)p.dtype, p.ref, p.access, arg, p.narg) : e;
}

typedef struct {
	Graph *g;
} NormWalk;

static void
norm_visit(void *user, ExprId e)
{
	Graph *g = ((NormWalk *)user)->g;
	if (!memo_get(g, e))
		memo_put(g, e, norm_step(g, e));
}

static ExprId
norm_at(Graph *g, ExprId e, unsigned depth)
{
	enum { MAX_DEPTH = 200 };
	ExprId known = memo_get(g, e);
	if (known)
		return known;
	if (expr_get(g, e)->narg == 0)
		return e;
	if (depth > MAX_DEPTH) {
		NormWalk w = {g};
		expr_walk(g, g->arena, e, norm_visit, &w);
		return memo_get(g, e);
	}
	unsigned narg = expr_get(g, e)->narg;
	for (unsigned k = 0; k < narg; k++) {
		ExprId x = expr_arg(g, e, k);
		if (!memo_get(g, x))
			memo_put(g, x, norm_at(g, x, depth + 1));
	}
	ExprId to = norm_step(g, e);
	memo_put(g, e, to);
	return to;
}

ExprId
index_norm(Graph *g, ExprId e)
{
	return e ? norm_at(g, e, 0) : 0;
}

typedef struct {
	const Graph *g;
	bool found;
} FindAxis;

static void
find_axis(void *user, ExprId e)
{
	FindAxis *f = user;
	f->found |= expr_get(f->g, e)->op == OP_AXIS;
}

static bool
has_axis(Graph *g, ExprId e)
{
	FindAxis f = {g, expr_get(g, e)->op == OP_AXIS};
	if (expr_get(g, e)->narg)
		expr_walk(g, g->arena, e, find_axis, &f);
	return f.found;
}

bool
index_affine(Graph *g, ExprId e, unsigned naxis, int64_t *coef, ExprId *rest)
{
	Poly p, left = {0};
	terms_of(g, index_norm(g, e), &p);
	memset(coef, 0, naxis * sizeof *coef);
	for (unsigned k = 0; k < p.n; k++) {
		ExprId m = p.at[k].mono;
		if (m && expr_get(g, m)->op == OP_AXIS && expr_get(g, m)->ref < naxis)
			coef[expr_get(g, m)->ref] = p.at[k].coef;
		else if (m && has_axis(g, m))
			return false;
		else
			poly_add(g, &left, p.at[k].coef, m);
	}
	*rest = build(g, &left);
	return true;
}
