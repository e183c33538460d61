/* gen_chain.c: folds over one index each of which may read all before it, of scores that data says are there
 * or not, in ranges that data or another index ends, with results of several shapes, some of which nobody reads. */
#include <string.h>

#include "generator.h"

enum { MOST_PRODUCTS = 30000, MOST_RESULTS = 1500, MOST_TENSORS = 12, MOST_LINKS = 5 };

typedef struct {
	Gen *g;
	unsigned row, stream, term, wide;
	const char *i, *j, *over;  /* indices of the row and the stream; the binder of the stream */
	const char *score;         /* an element of it at i, j; present everywhere within the binder, or not */
	const char *link[MOST_LINKS]; /* floats, present everywhere, of each row */
	unsigned n;
} Chain;

static RpTensor *
input(Chain *c, DType t, unsigned dim, unsigned other)
{
	RpTensor *x = gen_tensor(c->g, "x", t);
	x->input = true;
	x->magnitude = 2;
	x->dim[x->rank++] = dim;
	if (other < RP_MAX_DIM)
		x->dim[x->rank++] = other;
	c->g->p->ntensor++;
	return x;
}

static const char *
fresh(Chain *c)
{
	return arena_text(c->g->a, "i%u", c->g->nindex++);
}

static DType
float_type(Gen *g)
{
	static const DType dtype[] = {DT_F32, DT_F32, DT_F32, DT_BF16, DT_F16, DT_F64};
	return dtype[below(g, sizeof dtype / sizeof *dtype)];
}

/* Which elements there are: by what data says of both, of one, or by where they are; NULL: all. */
static const char *
mask(Chain *c)
{
	Gen *g = c->g;
	switch (below(g, 9)) {
	case 0: {
		const RpTensor *a = input(c, DT_I32, c->row, RP_MAX_DIM), *b = input(c, DT_I8, c->stream, RP_MAX_DIM);
		return arena_text(g->a, "%s[%s] mod 3 == i32(%s[%s]) mod 3", a->name, c->i, b->name, c->j);
	}
	case 1:
		return arena_text(g->a, "%s[%s]", input(c, DT_BOOL, c->stream, RP_MAX_DIM)->name, c->j);
	case 2:
		return arena_text(g->a, "%s[%s, %s]", input(c, DT_BOOL, c->row, c->stream)->name, c->i, c->j);
	case 3: {
		RpTensor *len = input(c, DT_I32, c->row, RP_MAX_DIM);
		len->into = (int)c->stream;
		return arena_text(g->a, "%s < %s[%s]", c->j, len->name, c->i);
	}
	case 4:
		return arena_text(g->a, "%s <= %s && %s[%s] > -1", c->j, c->i, input(c, DT_F32, c->stream, RP_MAX_DIM)->name, c->j);
	case 5:
		return arena_text(g->a, "abs(%s - %s) < 4", c->i, c->j);
	default:
		return NULL;
	}
}

/* An end that data says, or the row's index; else the whole axis. */
static void
choose_range(Chain *c)
{
	Gen *g = c->g;
	unsigned roll = below(g, 8);
	if (roll == 0) {
		RpTensor *from = input(c, DT_I32, c->row, RP_MAX_DIM);
		from->into = (int)c->stream;
		c->over = arena_text(g->a, "%s in %s[%s]..%s[%s] + %u", c->j, from->name, c->i, from->name, c->i, below(g, 7));
		trait(g, RP_DATA_RANGE);
	} else if (roll == 1 && c->row == c->stream) {
		c->over = arena_text(g->a, chance(g, 50) ? "%s in 0..%s + 1" : "%s in 0..%s", c->j, c->i);
	} else {
		c->over = arena_text(g->a, "%s in 0..N%u", c->j, c->stream);
	}
}

/* cs[i, j]: of a product, or of an input; the range of a fold is the fold's own. */
static void
define_score(Chain *c)
{
	static const char *const form[] = {"0.25 * %s", "%s", "tanh(%s)", "-abs(%s)", "floor(%s)", "%s + 50"};
	Gen *g = c->g;
	const char *e, *where = mask(c);
	if (chance(g, 60)) {
		const char *d = fresh(c);
		const RpTensor *q = input(c, float_type(g), c->row, c->term), *k = input(c, float_type(g), c->stream, c->term);
		e = arena_text(g->a, "(0.25 * sum[%s in 0..N%u](%s[%s, %s] * %s[%s, %s]))", d, c->term, q->name, c->i, d, k->name, c->j, d);
	} else {
		e = arena_text(g->a, "%s[%s, %s]", input(c, float_type(g), c->row, c->stream)->name, c->i, c->j);
	}
	e = arena_text(g->a, form[below(g, sizeof form / sizeof *form)], e);
	if (chance(g, 20)) {
		const char *at = input(c, float_type(g), c->stream, RP_MAX_DIM)->name;
		e = arena_text(g->a, "%s + %s[%s]", e, at, c->j);
	}
	text_printf(&g->p->text, "  ch[%s in 0..N%u, %s in 0..N%u] = %s%s%s\n", c->i, c->row, c->j, c->stream, e, where ? " where " : "",
	            where ? where : "");
	if (where)
		trait(g, RP_DOMAIN);
	c->score = arena_text(g->a, "ch[%s, %s]", c->i, c->j);
}

/* What is folded: of the score and two of the links before. */
static const char *
body(Chain *c)
{
	static const char *const form[] = {"$", "exp($ - max(@, -1))", "sq($ - @)", "($ - @) * %", "exp(-abs($ - @)) / (1 + sq(%))", "$ * @",
	                                   "(exp($) * ($ - @))", "abs($ - @) ** 1.5", "relu($ - @)", "(exp(min($ - @, 2)) * sq($ - %))",
	                                   "($ < @ ? $ : %)", "(tanh($) * (($ - @) - %))", "($ - @)", "(($ - @) - tanh(%))"};
	Gen *g = c->g;
	const char *text = "", *a = c->link[c->n ? below(g, c->n) : 0], *b = c->link[c->n ? below(g, c->n) : 0];
	for (const char *s = form[c->n ? below(g, sizeof form / sizeof *form) : 0]; *s; s++)
		text = *s == '$'   ? arena_text(g->a, "%s%s", text, c->score)
		       : *s == '@' ? arena_text(g->a, "%s%s", text, a)
		       : *s == '%' ? arena_text(g->a, "%s%s", text, b)
		                   : arena_text(g->a, "%s%c", text, *s);
	return text;
}

/* The binder, by a threshold among the scores themselves now and then. */
static const char *
binder(Chain *c)
{
	Gen *g = c->g;
	if (c->n && chance(g, 15))
		return arena_text(g->a, "%s where %s > %s - 0.5", c->over, c->score, c->link[below(g, c->n)]);
	return c->over;
}

static void
give(Chain *c, DType t, const char *columns, const char *e)
{
	Gen *g = c->g;
	RpTensor *y = gen_tensor(g, "y", t);
	y->result = true;
	y->dim[y->rank++] = c->row;
	if (columns)
		y->dim[y->rank++] = c->wide;
	text_printf(&g->p->text, "  %s[%s%s%s] = %s\n", y->name, c->i, columns ? ", " : "", columns ? columns : "", e);
	if (y->rank > g->p->rank)
		g->p->rank = y->rank;
	g->p->ntensor++;
}

static void
add_link(Chain *c)
{
	static const char *const fold[] = {"max", "max", "min", "sum", "sum", "mean", "mean", "argmax", "count"};
	Gen *g = c->g;
	const char *f = fold[below(g, sizeof fold / sizeof *fold)];
	bool number = strcmp(f, "argmax") == 0 || strcmp(f, "count") == 0;
	const char *e = arena_text(g->a, "%s[%s](%s) ?? %s", f, binder(c), body(c), number ? "1" : "0.5");
	e = number ? arena_text(g->a, "f32(%s) / 8", arena_text(g->a, "(%s)", e)) : e;
	if (!number && chance(g, 25))
		e = arena_text(g->a, "tanh(%s) + 0.25", arena_text(g->a, "(%s)", e));
	text_printf(&g->p->text, "  cl%u[%s in 0..N%u] = %s\n", c->n, c->i, c->row, e);
	c->link[c->n] = arena_text(g->a, "cl%u[%s]", c->n, c->i);
	c->n++;
	if (chance(g, 40))
		give(c, float_type(g), NULL, c->link[c->n - 1]);
}

/* What the last fold makes of columns: weighed sums, or those of the element that is picked. */
static void
finish(Chain *c)
{
	Gen *g = c->g;
	const char *e = fresh(c), *v = input(c, float_type(g), c->stream, c->wide)->name;
	unsigned roll = below(g, 10);
	const char *at = arena_text(g->a, "%s[%s, %s]", v, c->j, e);
	if (roll < 6)
		give(c, float_type(g), e, arena_text(g->a, "sum[%s](%s * %s) ?? 0.5", binder(c), body(c), at));
	else if (roll < 8)
		give(c, float_type(g), e, arena_text(g->a, "%s[%s](%s * %s) ?? 0.5", roll == 6 ? "max" : "mean", binder(c), body(c), at));
	else
		give(c, float_type(g), e, arena_text(g->a, "%s?[argmax[%s](%s) ?? -1, %s] ?? 0.5", v, binder(c), body(c), e));
}

void
gen_chain(Gen *g)
{
	Chain c = {.g = g, .row = below(g, g->p->ndim), .stream = below(g, g->p->ndim), .term = below(g, g->p->ndim), .wide = below(g, g->p->ndim)};
	const int64_t *size = g->p->size;
	if (g->p->ntensor + MOST_TENSORS > RP_MAX_TENSOR || size[c.row] * size[c.wide] > MOST_RESULTS ||
	    size[c.row] * size[c.stream] * (size[c.term] + size[c.wide]) > MOST_PRODUCTS)
		return;
	c.i = fresh(&c);
	c.j = fresh(&c);
	choose_range(&c);
	define_score(&c);
	unsigned before = g->p->ntensor;
	for (unsigned n = 2 + below(g, MOST_LINKS - 1); c.n < n;)
		add_link(&c);
	if (g->p->ntensor == before || chance(g, 60))
		finish(&c);
	trait(g, RP_STD);
	trait(g, RP_REDUCTION);
	trait(g, RP_DEPENDENT);
}
