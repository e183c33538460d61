/* gen_window.c: results whose terms are read at sums of indices: convolutions with their steps, gaps, margins
 * and turns, correlations, pooling, and tensors that are others' elements in another order. */
#include <stdio.h>
#include <string.h>

#include "generator.h"

enum { MOST_TERMS = 40000, MOST_ELEMENTS = 1500, MOST_TENSORS = 6 };

/* An axis that a window runs along: what is read there, in terms of the result's index and the window's. */
typedef struct {
	unsigned out, span, in;      /* dims: of the result, the window, what is read */
	const char *i, *r;           /* indices over the first two */
	const char *at;              /* the subscript */
	const char *where;           /* what has to hold of the terms; NULL: nothing */
	bool optional;
} Line;

static int64_t
size_of(const Gen *g, unsigned dim)
{
	return g->p->size[dim];
}

static const char *
fresh(Gen *g)
{
	return arena_text(g->a, "i%u", g->nindex++);
}

/* The subscript that ends at the axis whatever it is: clamped, around the ends, or optional. */
static void
keep_inside(Gen *g, Line *l, const char *e)
{
	unsigned roll = below(g, 10);
	bool any = size_of(g, l->in) > 0;
	if (roll == 0 && any) {
		l->at = arena_text(g->a, "(%s) mod N%u", e, l->in);
		g->p->fact = arena_text(g->a, "%s%sN%u >= 1", g->p->fact ? g->p->fact : "", g->p->fact ? ", " : "", l->in);
	} else if (roll == 1) {
		l->where = arena_text(g->a, "0 <= %s && %s < N%u", e, e, l->in);
		l->at = e;
	} else if (roll == 2 && l->out == l->in) {
		l->where = arena_text(g->a, "%s <= %s", l->r, l->i);
		l->at = arena_text(g->a, "%s - %s", l->i, l->r);
	} else {
		l->at = e;
		l->optional = true;
	}
}

static void
make_line(Gen *g, Line *l)
{
	static const char *const step[] = {"", "", "", "2*", "3*", "-", "-2*"}, *const gap[] = {" + ", " + ", " + 2*", " - ", " - 3*"};
	unsigned n = g->p->ndim;
	*l = (Line){.out = below(g, n), .span = below(g, n), .in = below(g, n), .i = fresh(g), .r = fresh(g)};
	int shift = (int)below(g, 7) - 2;
	const char *e = arena_text(g->a, "%s%s%s%s", step[below(g, 7)], l->i, gap[below(g, 5)], l->r);
	e = shift ? arena_text(g->a, "%s %c %d", e, shift < 0 ? '+' : '-', shift < 0 ? -shift : shift) : e;
	if (chance(g, 12)) { /* of a transposed one: where the steps meet */
		l->where = arena_text(g->a, "(%s) mod 2 == 0", e);
		l->at = arena_text(g->a, "(%s) div 2", e);
		l->optional = true;
	} else if (chance(g, 8)) {
		l->at = arena_text(g->a, "(%s) div 2", e);
		l->optional = true;
	} else {
		keep_inside(g, l, e);
	}
}

/* An input of these axes in any order; its subscripts go to the text. */
static Piece
new_input(Gen *g, const unsigned *dim, const char *const *at, unsigned n, bool optional)
{
	static const DType dtype[] = {DT_F32, DT_F32, DT_BF16, DT_F16, DT_F64};
	RpTensor *x = gen_tensor(g, "x", dtype[below(g, g->p->exact ? 2 : 5)]);
	const char *subs = "";
	x->input = true;
	x->magnitude = g->p->exact ? 3 : 2;
	for (unsigned left = (1u << n) - 1; left;) {
		unsigned k = chance(g, 60) ? (unsigned)__builtin_ctz(left) : below(g, n);
		if (!(left >> k & 1))
			continue;
		left &= ~(1u << k);
		x->dim[x->rank++] = dim[k];
		subs = arena_text(g->a, "%s%s%s", subs, *subs ? ", " : "", at[k]);
	}
	x->scalar = x->rank == 0;
	g->p->ntensor++;
	Piece p = {.text = n ? arena_text(g->a, "%s%s[%s]", x->name, optional ? "?" : "", subs) : x->name, .mag = x->magnitude};
	return p;
}

/* What a factor may be besides an input's element: a function that is 0 at 0, or isn't. */
static Piece
dressed(Gen *g, Piece p)
{
	static const char *const form[] = {"relu(%s)", "(%s * 0.5)", "tanh(%s)", "bf16(%s)", "(%s + 1)", "(%s ?? 0.5)"};
	if (g->p->exact || chance(g, 65))
		return p;
	p.text = arena_text(g->a, form[below(g, strchr(p.text, '?') ? 6 : 5)], p.text);
	p.mag += 1;
	return p;
}

/* The result, whose axes are the batch's, the windows' and the weights' own. */
typedef struct {
	Line line[2];
	unsigned lines, batch, channel, filter;
	const char *b, *c, *f; /* their indices; NULL: there is none such axis */
} Window;

static bool
choose(Gen *g, Window *w)
{
	double terms = 1, elements = 1;
	w->lines = 1 + chance(g, 35);
	for (unsigned k = 0; k < w->lines; k++) {
		make_line(g, &w->line[k]);
		elements *= (double)size_of(g, w->line[k].out);
		terms *= (double)size_of(g, w->line[k].span);
	}
	w->batch = below(g, g->p->ndim);
	w->channel = below(g, g->p->ndim);
	w->filter = below(g, g->p->ndim);
	w->b = chance(g, 35) ? fresh(g) : NULL;
	w->c = chance(g, 60) ? fresh(g) : NULL;
	w->f = chance(g, 60) ? fresh(g) : NULL;
	elements *= (w->b ? (double)size_of(g, w->batch) : 1) * (w->f ? (double)size_of(g, w->filter) : 1);
	terms *= w->c ? (double)size_of(g, w->channel) : 1;
	return elements * terms <= MOST_TERMS && elements <= MOST_ELEMENTS;
}

/* x?[b, i + r - 1, c] */
static Piece
image(Gen *g, const Window *w)
{
	unsigned dim[4], n = 0;
	const char *at[4];
	bool optional = false;
	if (w->b)
		dim[n] = w->batch, at[n++] = w->b;
	for (unsigned k = 0; k < w->lines; k++) {
		dim[n] = w->line[k].in, at[n++] = w->line[k].at;
		optional |= w->line[k].optional;
	}
	if (w->c)
		dim[n] = w->channel, at[n++] = w->c;
	if (optional)
		trait(g, RP_OPTIONAL);
	return dressed(g, new_input(g, dim, at, n, optional));
}

/* w[r, c, f] */
static Piece
weights(Gen *g, const Window *w)
{
	unsigned dim[4], n = 0;
	const char *at[4];
	for (unsigned k = 0; k < w->lines; k++)
		dim[n] = w->line[k].span, at[n++] = w->line[k].r;
	if (w->c)
		dim[n] = w->channel, at[n++] = w->c;
	if (w->f)
		dim[n] = w->filter, at[n++] = w->f;
	return dressed(g, new_input(g, dim, at, n, false));
}

static const char *
binders(Gen *g, const Window *w)
{
	const char *text = "", *where = "";
	for (unsigned k = 0; k < w->lines; k++) {
		text = arena_text(g->a, "%s%s%s in 0..N%u", text, *text ? ", " : "", w->line[k].r, w->line[k].span);
		if (w->line[k].where)
			where = arena_text(g->a, "%s%s%s", where, *where ? " && " : " where ", w->line[k].where);
	}
	if (w->c)
		text = arena_text(g->a, "%s, %s in 0..N%u", text, w->c, w->channel);
	return arena_text(g->a, "%s%s", text, where);
}

static void
add_axis(RpTensor *t, const char **left, Arena *a, const char *index, unsigned dim)
{
	*left = arena_text(a, "%s%s%s", *left, t->rank ? ", " : "", index);
	t->dim[t->rank++] = dim;
}

void
gen_window(Gen *g)
{
	static const char *const pool[] = {"max", "min", "mean", "sum"}, *const finish[] = {"%s", "%s", "relu(%s)", "%s * 0.5 + 1", "tanh(%s / 8)"};
	static const DType dtype[] = {DT_F32, DT_F32, DT_F32, DT_F64, DT_BF16, DT_F16};
	Window w = {0};
	if (g->p->ntensor + MOST_TENSORS > RP_MAX_TENSOR || !choose(g, &w))
		return;
	bool pooled = chance(g, 25);
	Piece x = image(g, &w), y = pooled ? x : weights(g, &w);
	const char *fold = pooled ? pool[below(g, g->p->exact ? 2 : 4)] : "sum", *left = "";
	const char *e = arena_text(g->a, pooled ? "%s[%s](%s)" : "%s[%s](%s * %s)", fold, binders(g, &w), x.text, y.text);
	e = arena_text(g->a, "(%s ?? 1)", e);
	if (!g->p->exact)
		e = arena_text(g->a, finish[below(g, sizeof finish / sizeof *finish)], e);
	RpTensor *t = gen_tensor(g, "y", dtype[below(g, g->p->exact ? 4 : 6)]);
	t->result = true;
	if (w.b)
		add_axis(t, &left, g->a, w.b, w.batch);
	bool turned = w.f && chance(g, 30);
	if (turned)
		add_axis(t, &left, g->a, w.f, w.filter);
	for (unsigned k = 0; k < w.lines; k++)
		add_axis(t, &left, g->a, w.line[k].i, w.line[k].out);
	if (w.f && !turned)
		add_axis(t, &left, g->a, w.f, w.filter);
	text_printf(&g->p->text, "  %s[%s] = %s\n", t->name, left, e);
	trait(g, RP_STD);
	trait(g, RP_DOMAIN);
	trait(g, RP_GATHER);
	trait(g, RP_REDUCTION);
	if (t->rank > g->p->rank)
		g->p->rank = t->rank;
	g->p->ntensor++;
}
