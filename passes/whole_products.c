/* whole_products.c: a sum of products that is asked for in part is computed everywhere, where tiles then take it.
 *
 * in     a sum of products over a domain, as of masked scores that are stored: z[i, j] = sum[d](q[i, d] * k[j, d]) where j <= i
 * out    the same without the domain, if the target then has tiles for it; and so what is computed of it point by point. What was
 *        not asked for is computed and not read
 * needs  FACT_FAULTS
 * fp     exact: the elements that are asked for have the same terms
 * tests  tests/passes/pass_graphs.c, tests/fuse/masked.tex
 *
 * A domain is what keeps some reads within their tensors, so all that the factors read must be shown to lie inside without it.
 * Tiles multiply ten to sixty times as fast as rows do, so computing all is wrong only where few elements are asked for: below a
 * diagonal are half of them, of those that data choose nothing is known, but an equation leaves one of many, two bounds on the same
 * indices leave a band, and a bound on one index alone may leave a few rows. These domains stay. Attention's, which are
 * folded as they come, are skipped by tiles, which ask the folds' own conditions. */
#include "ir/bugs.h"
#include "ir/prove.h"
#include "passes/expr_map.h"
#include "passes/pass_ctx.h"
#include "passes/schedule/schedule.h"

/* --- whether a domain may be large --- */

typedef struct {
	Graph *g;
	Arena *scratch;
	const bool *faulty;
	const Node *node;
	Facts *facts;
	const PassOptions *options;
	bool data, inside, finishes; /* of the expression that is walked: it reads data; all that it reads lies inside; it reads a product */
	uint32_t bounded[TG_MAX_AXES];
	unsigned nbounded; /* sets of axes that have a bound so far */
} Product;

static void
note_data(void *user, ExprId e)
{
	Product *p = user;
	const Expr *x = expr_get(p->g, e);
	p->data |= x->op == OP_READ && x->narg > 0;
}

static bool
reads_data(Product *p, ExprId e)
{
	p->data = false;
	expr_walk(p->g, p->scratch, e, note_data, p);
	return p->data;
}

static bool
is_first_bound(Product *p, uint32_t axes)
{
	bool several = (axes & (axes - 1)) != 0;
	for (unsigned k = 0; k < p->nbounded && several; k++)
		several = p->bounded[k] != axes;
	if (several && p->nbounded < TG_MAX_AXES)
		p->bounded[p->nbounded++] = axes;
	return several;
}

/* Whether each conjunct may leave much. */
static bool
is_wide(Product *p, ExprId e)
{
	const Expr *x = expr_get(p->g, e);
	if (x->op == OP_AND)
		return is_wide(p, expr_arg(p->g, e, 0)) && is_wide(p, expr_arg(p->g, e, 1));
	if (x->op == OP_NOT)
		return expr_get(p->g, expr_arg(p->g, e, 0))->op == OP_READ;
	if (x->op == OP_NE || x->op == OP_READ)
		return true;
	return (x->op == OP_LT || x->op == OP_LE) && (reads_data(p, e) || is_first_bound(p, expr_axes(p->g, p->scratch, e)));
}

/* --- whether its factors are there everywhere --- */

static void
note_range(Product *p, unsigned axis, ExprId lo, ExprId hi)
{
	facts_push_range(p->facts, expr_axis(p->g, axis), lo, hi);
}

static void
push_facts(Product *p)
{
	const Node *n = p->node;
	p->facts = facts_new(p->g, p->scratch);
	for (uint32_t k = 0; k < p->g->check.n; k++)
		facts_push(p->facts, p->g->check.at[k].cond);
	for (unsigned a = 0; a < n->npar; a++)
		note_range(p, a, expr_int(p->g, DT_I64, 0), p->g->tensor.at[n->out].extent[a]);
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++)
		note_range(p, a, n->axis[a].lo, n->axis[a].hi);
}

static bool
lies_inside(Product *p, ExprId sub, ExprId extent)
{
	Graph *g = p->g;
	return prove(p->facts, expr_and(g, expr_binary(g, OP_LE, expr_int(g, DT_I64, 0), sub), expr_binary(g, OP_LT, sub, extent)));
}

static void
note_read(void *user, ExprId e)
{
	Product *p = user;
	const Expr x = *expr_get(p->g, e);
	if (x.op != OP_READ || !p->inside)
		return;
	p->inside = !x.access && !p->faulty[x.ref] && (!tensor_node(p->g, x.ref) || expr_is_true(p->g, tensor_node(p->g, x.ref)->domain));
	for (unsigned k = 0; k < x.narg && p->inside; k++)
		p->inside = lies_inside(p, expr_arg(p->g, e, k), p->g->tensor.at[x.ref].extent[k]);
}

static bool
is_whole(Product *p)
{
	p->inside = true;
	push_facts(p);
	expr_walk(p->g, p->scratch, p->node->body, note_read, p);
	if (p->node->finish)
		expr_walk(p->g, p->scratch, p->node->finish, note_read, p);
	return p->inside || BUG(product_beyond_domain);
}

/* --- what reads them --- */

/* Whether it is computed point by point of such a product, which then finishes by it (epilogue.c). */
static void
note_product(void *user, ExprId e)
{
	Product *p = user;
	const Expr *x = expr_get(p->g, e);
	const Node *n = x->op == OP_READ ? tensor_node(p->g, x->ref) : NULL;
	bool own = n && n->nred > 0 && expr_is_true(p->g, n->domain) && x->narg == p->node->npar;
	for (unsigned k = 0; k < x->narg && own; k++)
		own = expr_arg(p->g, e, k) == expr_axis(p->g, k);
	p->finishes |= own && contract_has_tiles(p->g, p->scratch, p->faulty, x->ref, p->options);
}

static bool
finishes_product(Product *p)
{
	p->finishes = false;
	if (p->node->nred == 0)
		expr_walk(p->g, p->scratch, p->node->body, note_product, p);
	return p->finishes;
}

uint32_t
pass_whole_products(Graph *g, PassCtx *cx)
{
	uint32_t done = 0;
	for (uint32_t i = 0; i < g->node.n; i++) {
		Node n = g->node.at[i];
		Product p = {.g = g, .scratch = cx->scratch, .faulty = cx->faulty, .node = &n, .options = cx->options};
		if (expr_is_true(g, n.domain) || n.recur || n.scatter || !is_wide(&p, n.domain))
			continue;
		g->node.at[i].domain = 0;
		bool tiles = contract_has_tiles(g, cx->scratch, cx->faulty, n.out, cx->options) || finishes_product(&p);
		if (tiles && is_whole(&p) && spend(cx))
			done++;
		else
			g->node.at[i].domain = n.domain;
	}
	return done;
}
