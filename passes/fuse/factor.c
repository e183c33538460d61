/* factor.c: e = sum of G(x) * H(y), with as few terms as there can be (algebra.h).
 *
 * in     an expression whose leaves have sides
 * out    the terms; their number is the rank of e on sampled points, so none is left out and none is
 *        too many: with too many, sums of one side are opened as well and the products gathered again
 *
 * Products with equal G share a term, then those with equal H. */
#include "passes/fuse/formula.h"
#include "passes/fuse/product.h"

typedef struct {
	ExprId g, h; /* without numbers */
	double coef;
} Piece;

enum { MAX_PIECES = 4 * MAX_PRODUCTS };

typedef struct {
	unsigned n;
	Piece at[MAX_PIECES];
} Pieces;

static ExprId
part_of(const Algebra *f, Product p, bool x_part)
{
	p.coef = 1;
	return product_expr(f, &p, x_part);
}

static bool
add_piece(Algebra *f, Pieces *all, const Product *p)
{
	ExprId g = part_of(f, *p, true), h = part_of(f, *p, false);
	for (unsigned k = 0; k < all->n; k++)
		if (all->at[k].g == g && all->at[k].h == h) {
			all->at[k].coef += p->coef;
			return true;
		}
	if (all->n == MAX_PIECES)
		return algebra_refuse(f, REMARK_cascade_rank, g);
	all->at[all->n++] = (Piece){g, h, p->coef};
	return true;
}

static bool
gather(Algebra *f, ExprId e, Pieces *all)
{
	Sum *s = ARENA_NEW(f->scratch, Sum), *open = ARENA_NEW(f->scratch, Sum);
	all->n = 0;
	if (!sum_of(f, e, s))
		return false;
	for (unsigned k = 0; k < s->n; k++) {
		if (!product_open(f, &s->at[k], open))
			return false;
		for (unsigned j = 0; j < open->n; j++)
			if (!add_piece(f, all, &open->at[j]))
				return false;
	}
	unsigned kept = 0;
	for (unsigned k = 0; k < all->n; k++)
		if (all->at[k].coef != 0)
			all->at[kept++] = all->at[k];
	all->n = kept;
	return true;
}

/* Adds the pieces with at[k]'s G, or H, to at[k], as far as they are alone in theirs. */
static unsigned
merge_equal(Graph *g, Pieces *all, bool by_g)
{
	unsigned kept = 0;
	for (unsigned k = 0; k < all->n; k++) {
		Piece p = all->at[k];
		unsigned j = 0;
		while (j < kept && (by_g ? all->at[j].g != p.g : all->at[j].h != p.h))
			j++;
		if (j == kept) {
			all->at[kept++] = p;
			continue;
		}
		Piece *q = &all->at[j];
		ExprId *own = by_g ? &q->h : &q->g;
		*own = formula_add(g, formula_scale(g, q->coef, *own), formula_scale(g, p.coef, by_g ? p.h : p.g));
		q->coef = 1;
	}
	return kept;
}

static bool
list_terms(Algebra *f, ExprId e, unsigned rank, Terms *out)
{
	Pieces *all = ARENA_NEW(f->scratch, Pieces);
	if (!gather(f, e, all))
		return false;
	all->n = merge_equal(f->g, all, true);
	all->n = merge_equal(f->g, all, false);
	if (all->n != rank || rank > MAX_TERMS)
		return algebra_refuse(f, REMARK_cascade_rank, e);
	out->n = out->rank = all->n;
	for (unsigned k = 0; k < all->n; k++) {
		out->g[k] = all->at[k].g;
		out->h[k] = formula_scale(f->g, all->at[k].coef, all->at[k].h);
	}
	return true;
}

bool
factor(Graph *g, Arena *scratch, ExprId e, SideFn *side, void *user, Terms *out, Refusal *why)
{
	return factor_moving(g, scratch, e, side, user, false, out, why);
}

bool
factor_moving(Graph *g, Arena *scratch, ExprId e, SideFn *side, void *user, bool move_narrowed, Terms *out, Refusal *why)
{
	Algebra f;
	*why = (Refusal){0};
	unsigned rank = 0;
	for (int deep = 0; deep < 2; deep++) {
		algebra_init(&f, g, scratch, side, user, e);
		f.deep = deep != 0;
		f.move_narrowed = move_narrowed;
		rank = rank ? rank : sampled_rank(g, scratch, e, side, user);
		if (list_terms(&f, e, rank, out))
			return true;
		if (f.why.why != REMARK_cascade_rank)
			break;
	}
	*why = f.why;
	return false;
}
