/* narrow_math.c: a transcendental whose results are rounded to a narrow float need not have all bits of f32.
 *
 * in     any graph in relaxed or fast mode
 * out    functions of f32 that have a short form (F_NARROW), all of whose paths end in a narrow float, bear the
 *        mark of the widest such type (tg.h): they are within 1/16 ulp of it
 * fp     reassociates: LANGUAGE.md's relaxed mode says that it is so, for every schedule. It is decided
 *        here alone, before fusion, and the oracle sees the graph after it
 * tests  tests/passes/pass_graphs.c, tests/text/pass_narrow_math.tex
 *
 * A path ends where its value is cast to a narrow float, free casts (the operands of contractions) included, and a
 * value that nobody casts ends as what it is: a result of f32, a condition, a subscript, an integer. On the way it
 * may only pass what hands a relative error on as it is: factors, quotients, roots, the greatest of several, arms of
 * selects, sums of which all terms have one sign. LANGUAGE.md allows more; but a difference, a logarithm, or an
 * exponent would make 1/16 ulp of a narrow float many ulps of it (1 + erf(x) at x = -3: hundreds). So does a
 * recurrence, by its many steps.
 *
 * A function that occurs in several nodes as one expression is marked if all nodes agree, so that it stays one. Marks
 * change no path: running it again finds the same. */
#include "passes/expr_map.h"

#include <math.h>

#include "ir/bugs.h"
#include "passes/fuse/interval.h"
#include "passes/pass_ctx.h"

enum { MAX_ASKED = 1000 }; /* intervals in a graph, each of which may take a while */

/* Where paths end, as bits. */
enum { END_BF16 = 1, END_F16 = 2, END_NARROW = 3, END_WIDE = 4, END_DECIDES = 8, END_MAGNIFIED = 16 };

typedef struct {
	Graph *g;
	PassCtx *cx;
	uint8_t *tensor; /* by TensorId: the ends of its readers' paths */
	uint8_t *ends;   /* by ExprId: in the node at hand, else 0 */
	uint8_t *all;    /* by ExprId: of functions, in all nodes */
	uint8_t acc;     /* of ACC in the finish at hand */
	unsigned asked;
	VEC(ExprId) order;
} Paths;

static void
list_expr(void *user, ExprId e)
{
	Paths *p = user;
	vec_push(p->cx->scratch, &p->order, e);
}

/* Where the values of e lie, as far as there is time to tell. */
static Interval
interval(Paths *p, ExprId e)
{
	return p->asked++ < MAX_ASKED ? interval_of(p->g, e) : (Interval){-INFINITY, INFINITY};
}

/* Whether a + b, or a - b, is at least as large as either. */
static bool
is_sum_of_one_sign(Paths *p, ExprId e)
{
	Interval a = interval(p, expr_arg(p->g, e, 0)), b = interval(p, expr_arg(p->g, e, 1));
	if (expr_get(p->g, e)->op == OP_SUB)
		b = (Interval){-b.hi, -b.lo};
	return (a.lo >= 0 && b.lo >= 0) || (a.hi <= 0 && b.hi <= 0);
}

static uint8_t
end_of_cast(const Graph *g, ExprId e, uint8_t ends)
{
	DType to = (DType)expr_get(g, e)->dtype, from = (DType)expr_get(g, expr_arg(g, e, 0))->dtype;
	if (to == from)
		return ends;
	if (!dtype_is_float(to))
		return to == DT_C64 ? END_WIDE : END_DECIDES;
	return to == DT_F16 ? END_F16 : dtype_info[to].bits <= 16 ? END_BF16 : END_WIDE;
}

/* The ends of the paths from operand k of e through e, whose own paths have these. */
static uint8_t
ends_through(Paths *p, ExprId e, unsigned k, uint8_t ends)
{
	const Graph *g = p->g;
	switch (expr_get(g, e)->op) {
	case OP_CAST:
		return end_of_cast(g, e, ends);
	case OP_MUL: case OP_FDIV: case OP_NEG: case OP_ABS: case OP_MIN: case OP_MAX: case OP_SQRT: case OP_RSQRT:
	case OP_TANH: case OP_ERF:
		return ends;
	case OP_SELECT:
		return k == 0 ? END_DECIDES : ends;
	case OP_ADD: case OP_SUB:
		return (ends & END_NARROW) && !is_sum_of_one_sign(p, e) ? ends | END_MAGNIFIED : ends;
	case OP_LOG1P: /* below 0 it has a pole */
		return (ends & END_NARROW) && !(interval(p, expr_arg(g, e, 0)).lo >= 0) ? ends | END_MAGNIFIED : ends;
	case OP_EXP: case OP_EXP2: case OP_EXPM1: case OP_LOG: case OP_LOG2: case OP_SIN: case OP_COS: case OP_POW:
		return ends | END_MAGNIFIED;
	case OP_CPLX: case OP_RE: case OP_IM: case OP_CONJ:
		return ends | END_WIDE;
	}
	return END_DECIDES;
}

/* Follows one expression of a node from its value down to what it reads. */
static void
follow(Paths *p, ExprId root, uint8_t ends)
{
	Graph *g = p->g;
	p->order.n = 0;
	if (!root)
		return;
	expr_walk(g, p->cx->scratch, root, list_expr, p);
	p->ends[root] = ends;
	for (uint32_t i = p->order.n; i-- > 0;) {
		ExprId e = p->order.at[i];
		const Expr *x = expr_get(g, e);
		uint8_t own = p->ends[e];
		p->ends[e] = 0;
		if (x->op == OP_READ)
			p->tensor[x->ref] |= own;
		else if (x->op == OP_ACC)
			p->acc |= own;
		else if (op_info[x->op].flags & F_NARROW && x->dtype == DT_F32)
			p->all[e] |= own;
		for (unsigned k = 0; k < x->narg; k++)
			p->ends[expr_arg(g, e, k)] |= ends_through(p, e, k, own);
	}
}

/* The ends of a term's paths, given those of what is folded. */
static uint8_t
ends_of_term(Paths *p, const Node *n, uint8_t ends)
{
	if (n->scatter || n->monoid == MON_PROD)
		return ends | END_MAGNIFIED;
	if (n->monoid == MON_SUM && (ends & END_NARROW)) {
		Interval x = interval(p, n->body);
		return x.lo >= 0 || x.hi <= 0 ? ends : ends | END_MAGNIFIED;
	}
	return n->monoid == MON_ARGMAX || n->monoid == MON_ARGMIN ? END_DECIDES : ends;
}

static void
follow_node(Paths *p, const Node *n)
{
	uint8_t ends = p->tensor[n->out];
	if (n->recur)
		ends |= END_MAGNIFIED;
	p->acc = 0;
	follow(p, n->finish, ends);
	follow(p, n->body, n->monoid == MON_NONE ? ends : ends_of_term(p, n, n->finish ? p->acc : ends));
	follow(p, n->domain, END_DECIDES);
	follow(p, n->guard, END_DECIDES);
	follow(p, n->init, ends | END_MAGNIFIED);
	for (unsigned k = 0; k < n->npar + n->nred; k++) {
		follow(p, n->axis[k].lo, END_DECIDES);
		follow(p, n->axis[k].hi, END_DECIDES);
		follow(p, n->axis[k].clamp, END_DECIDES);
	}
	for (unsigned k = 0; k < TG_MAX_RANK; k++)
		follow(p, n->target[k], END_DECIDES);
}

static DType
mark_of(const Paths *p, ExprId e)
{
	uint8_t ends = p->all[e];
	if (BUG(narrow_of_some_paths))
		ends &= END_NARROW;
	return ends == 0 || ends > END_NARROW ? DT_NONE : ends & END_F16 ? DT_F16 : DT_BF16;
}

/* Why a node's functions, whose paths end so, are marked or not; one that no path of a narrow float meets is no news. */
static void
explain(Paths *p, TensorId t, uint8_t ends)
{
	if (!(ends & END_NARROW))
		return;
	remark(p->cx, ends & END_MAGNIFIED ? REMARK_math_magnified : ends & END_DECIDES ? REMARK_math_decides :
	       ends & END_WIDE ? REMARK_math_is_wide : REMARK_math_narrowed, t);
}

static void
explain_nodes(Paths *p)
{
	for (uint32_t i = 0; i < p->g->node.n; i++) {
		const Node *n = &p->g->node.at[i];
		uint8_t ends = 0;
		for (unsigned part = 0; part < 2; part++) {
			p->order.n = 0;
			if (part ? n->finish : n->body)
				expr_walk(p->g, p->cx->scratch, part ? n->finish : n->body, list_expr, p);
			for (uint32_t k = 0; k < p->order.n; k++)
				ends |= p->all[p->order.at[k]];
		}
		explain(p, n->out, ends);
	}
}

typedef struct {
	ExprId *to; /* by ExprId */
} Marked;

static void
replace(void *user, Graph *g, ExprId *root)
{
	(void)g;
	*root = ((const Marked *)user)->to[*root];
}

/* Operands have smaller ids. */
static uint32_t
mark_all(Paths *p, uint32_t nexpr)
{
	Graph *g = p->g;
	Marked m = {ARENA_ARRAY(p->cx->scratch, ExprId, nexpr)};
	uint32_t done = 0;
	for (ExprId e = 1; e < nexpr; e++) {
		Expr x = *expr_get(g, e);
		ExprId arg[TG_MAX_AXES];
		bool changed = false;
		for (unsigned k = 0; k < x.narg; k++) {
			arg[k] = m.to[expr_arg(g, e, k)];
			changed |= arg[k] != expr_arg(g, e, k);
		}
		DType mark = mark_of(p, e);
		if (mark != DT_NONE && mark != expr_narrow_type(g, e) && spend(p->cx)) {
			x.ref = mark;
			changed = true;
			done++;
		}
		m.to[e] = changed ? expr_make(g, (Op)x.op, (DType)x.dtype, x.ref, x.access, arg, x.narg) : e;
	}
	if (done)
		graph_each_root(g, replace, &m);
	return done;
}

static bool
has_function(const Graph *g)
{
	for (ExprId e = 1; e < g->expr.n; e++)
		if (op_info[expr_get(g, e)->op].flags & F_NARROW && expr_get(g, e)->dtype == DT_F32)
			return true;
	return false;
}

uint32_t
pass_narrow_math(Graph *g, PassCtx *cx)
{
	if (g->fp == FP_STRICT || !has_function(g))
		return 0;
	uint32_t nexpr = g->expr.n;
	Paths p = {.g = g, .cx = cx, .tensor = ARENA_ARRAY(cx->scratch, uint8_t, g->tensor.n),
	           .ends = ARENA_ARRAY(cx->scratch, uint8_t, nexpr), .all = ARENA_ARRAY(cx->scratch, uint8_t, nexpr)};
	for (uint32_t k = 0; k < g->result.n; k++)
		p.tensor[g->result.at[k].tensor] |= END_WIDE;
	for (uint32_t i = g->node.n; i-- > 0;)
		follow_node(&p, &g->node.at[i]);
	if (cx->options->remarks)
		explain_nodes(&p);
	return mark_all(&p, nexpr);
}
