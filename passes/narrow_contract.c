/* narrow_contract.c: a contraction with one narrow operand may round the other to the same type.
 *
 * in     any graph in relaxed or fast mode
 * out    in a sum of products of a widened narrow float x and an f32 expression y, y is under a free
 *        cast to the type of x (tg.h): kernels with matrix units round it, as every attention kernel does
 *        with its probabilities, and those that multiply in f32 anyway, or that move y's anchor after the
 *        product, leave it as it is. In fast mode so is the program's own cast of y to bf16 or f16, where a fold of the row has a
 *        part in y, as in attention's bf16(softmax[j](s)): factors of the row may move across it. What is not free stays where it
 *        is: with a factor moved away, what is rounded may be beyond the type's range
 * fp     reassociates: LANGUAGE.md's relaxed mode says that it is so, for every schedule. It is decided
 *        here alone, before fusion, and the oracle sees the graph after it
 * tests  tests/passes/narrow_contract_test.c
 *
 * It is a contraction when both operands depend on a reduced axis and one of them has a parallel axis
 * that the other lacks. A second widened factor makes two narrow operands: nothing to do. So running
 * it again changes nothing. */
#include "passes/expr_map.h"
#include "ir/bugs.h"
#include "passes/pass_ctx.h"

enum { MAX_FACTORS = 16 };

typedef struct {
	unsigned n;
	ExprId at[MAX_FACTORS]; /* left to right */
} Factors;

static bool
list_factors(const Graph *g, ExprId e, Factors *f)
{
	if (expr_get(g, e)->op == OP_MUL)
		return list_factors(g, expr_arg(g, e, 0), f) && list_factors(g, expr_arg(g, e, 1), f);
	if (f->n == MAX_FACTORS)
		return false;
	f->at[f->n++] = e;
	return true;
}

/* The type of x in f32(x), a float that products of are taken in; DT_NONE for anything else. */
static DType
widened(const Graph *g, ExprId e)
{
	if (expr_get(g, e)->op != OP_CAST)
		return DT_NONE;
	DType t = (DType)expr_get(g, expr_arg(g, e, 0))->dtype;
	return t == DT_F16 || t == DT_BF16 || t == DT_F8E4M3 || t == DT_F8E5M2 ? t : DT_NONE;
}

static ExprId
product_of(Graph *g, const Factors *f, unsigned without)
{
	ExprId e = 0;
	for (unsigned k = 0; k < f->n; k++)
		if (k != without)
			e = e ? expr_binary(g, OP_MUL, e, f->at[k]) : f->at[k];
	return e;
}

static bool
is_contraction(const Node *n, uint32_t x, uint32_t y)
{
	uint32_t par = n->npar < 32 ? (1u << n->npar) - 1 : ~0u, red = ~par;
	return (x & red) && (y & red) && ((x ^ y) & par);
}

typedef struct {
	const Graph *g;
	Arena *scratch;
	bool *seen; /* by TensorId: a pointwise node that was looked through */
	bool found;
} FoldSearch;

static void
find_fold(void *user, ExprId e)
{
	FoldSearch *s = user;
	const Expr *p = expr_get(s->g, e);
	const Node *n = p->op == OP_READ ? tensor_node(s->g, p->ref) : NULL;
	if (!n || n->recur || n->scatter || s->seen[p->ref])
		return;
	s->seen[p->ref] = true;
	s->found |= n->monoid != MON_NONE;
	if (n->monoid == MON_NONE)
		expr_walk(s->g, s->scratch, n->body, find_fold, s);
}

/* Whether a fold has a part in e, itself or by pointwise nodes. */
static bool
is_of_fold(const Graph *g, Arena *scratch, ExprId e)
{
	FoldSearch s = {g, scratch, ARENA_ARRAY(scratch, bool, g->tensor.n), BUG(casts_freed_of_any)};
	expr_walk(g, scratch, e, find_fold, &s);
	return s.found;
}

/* y in f32(t(y)), t bf16 or f16, where the program rounds it; 0: e is none. */
static ExprId
rounded(const Graph *g, ExprId e)
{
	DType t = widened(g, e);
	if (t != DT_BF16 && t != DT_F16)
		return 0;
	ExprId inner = expr_arg(g, e, 0);
	if (expr_get(g, inner)->op != OP_CAST || expr_is_free_cast(g, inner))
		return 0;
	ExprId y = expr_arg(g, inner, 0);
	return expr_get(g, y)->dtype == DT_F32 ? y : 0;
}

/* The body with the casts that fast mode makes free; 0: there are none. */
static ExprId
freed_casts(Graph *g, Arena *scratch, const Node *n)
{
	Factors f = {0};
	bool any = false;
	if (g->fp != FP_FAST || n->monoid != MON_SUM || n->scatter || expr_get(g, n->body)->dtype != DT_F32 ||
	    expr_get(g, n->body)->op != OP_MUL || !list_factors(g, n->body, &f))
		return 0;
	for (unsigned k = 0; k < f.n; k++) {
		ExprId y = rounded(g, f.at[k]);
		if (!y || !is_contraction(n, expr_axes(g, scratch, product_of(g, &f, k)), expr_axes(g, scratch, y)) || !is_of_fold(g, scratch, y))
			continue;
		f.at[k] = expr_cast(g, DT_F32, expr_cast_free(g, widened(g, f.at[k]), y));
		any = true;
	}
	return any ? product_of(g, &f, f.n) : 0;
}

ExprId
narrowed_contraction(Graph *g, Arena *scratch, const Node *n)
{
	Factors f = {0};
	unsigned narrow = 0, which = 0;
	if (n->monoid != MON_SUM || n->scatter || expr_get(g, n->body)->dtype != DT_F32 ||
	    expr_get(g, n->body)->op != OP_MUL || !list_factors(g, n->body, &f))
		return 0;
	for (unsigned k = 0; k < f.n; k++)
		if (widened(g, f.at[k]) != DT_NONE) {
			narrow++;
			which = k;
		}
	if (narrow != 1)
		return 0;
	ExprId x = f.at[which], y = product_of(g, &f, which);
	DType t = widened(g, x);
	if (!is_contraction(n, expr_axes(g, scratch, x), expr_axes(g, scratch, y)))
		return 0;
	y = expr_cast(g, DT_F32, expr_cast_free(g, t, y));
	return which == 0 ? expr_binary(g, OP_MUL, x, y) : expr_binary(g, OP_MUL, y, x);
}

uint32_t
pass_narrow_contract(Graph *g, PassCtx *cx)
{
	uint32_t done = 0;
	for (uint32_t i = 0; i < g->node.n && g->fp != FP_STRICT && !BUG(narrow_contract_missing); i++) {
		Node n = g->node.at[i];
		ExprId freed = freed_casts(g, cx->scratch, &n);
		n.body = freed ? freed : n.body;
		ExprId narrowed = narrowed_contraction(g, cx->scratch, &n), body = narrowed ? narrowed : freed;
		if (!body)
			continue;
		if (!spend(cx))
			break;
		remark(cx, REMARK_operand_narrowed, n.out);
		g->node.at[i].body = body;
		done++;
	}
	return done;
}

void
graph_decide(Graph *g)
{
	PassOptions none = {0};
	PassCtx cx = {.options = &none, .scratch = g->arena, .graph = g, .fuel = -1};
	pass_narrow_contract(g, &cx);
	pass_narrow_math(g, &cx);
}
