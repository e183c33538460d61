/* gen_cascade.c: reductions that depend on one another and read sums of products that nobody else reads:
 * what one kernel folds in a pass over tiles (passes/schedule/stream/stream.h), and what is just no such thing. */
#include <string.h>

#include "generator.h"

enum { MOST_PRODUCTS = 30000, MOST_OF_UNITS = 300000, MOST_RESULTS = 1500, MOST_TENSORS = 7 };

typedef struct {
	Gen *g;
	unsigned head, row, stream, wide, term; /* dims; the head's is RP_MAX_DIM without one */
	const char *h, *i, *j, *e;              /* indices; h is "" without a head */
	const char *left;   /* "h in 0..N0, i in 0..N1" */
	const char *axes;   /* "h, i" */
	const char *score;  /* an element of it at h, i, j */
	bool masked, sure;  /* sure: there is an element in each row */
	const char *over;   /* the range of j */
} Cascade;

static bool
choose_dims(Cascade *c)
{
	Gen *g = c->g;
	const int64_t *size = g->p->size;
	unsigned n = g->p->ndim;
	c->row = below(g, n);
	c->stream = below(g, n);
	c->wide = below(g, n);
	c->term = below(g, n);
	c->head = chance(g, 40) ? below(g, n) : RP_MAX_DIM;
	int64_t scores = size[c->row] * size[c->stream], rows = size[c->row], most = g->p->units ? MOST_OF_UNITS : MOST_PRODUCTS;
	if (c->head < n && scores * size[c->head] * (size[c->term] + size[c->wide]) > most)
		c->head = RP_MAX_DIM;
	if (c->head < n) {
		scores *= size[c->head];
		rows *= size[c->head];
	}
	return scores * (size[c->term] + size[c->wide]) <= most && (g->p->units || rows * size[c->wide] <= MOST_RESULTS);
}

static void
name_indices(Cascade *c)
{
	Gen *g = c->g;
	Scope sc = {0};
	bool head = c->head < RP_MAX_DIM;
	c->h = head ? new_index(g, &sc, c->head, false) : "";
	c->h = arena_text(g->a, "%s", c->h);
	c->i = arena_text(g->a, "%s", new_index(g, &sc, c->row, false));
	c->j = arena_text(g->a, "%s", new_index(g, &sc, c->stream, false));
	c->e = arena_text(g->a, "%s", new_index(g, &sc, c->wide, false));
	c->axes = head ? arena_text(g->a, "%s, %s", c->h, c->i) : c->i;
	c->left = head ? arena_text(g->a, "%s in 0..N%u, %s in 0..N%u", c->h, c->head, c->i, c->row)
	               : arena_text(g->a, "%s in 0..N%u", c->i, c->row);
	c->over = arena_text(g->a, "%s in 0..N%u", c->j, c->stream);
}

/* An input of its own with these axes, in any order, and how an element is read. */
static Piece
own_input(Cascade *c, const Scope *sc)
{
	static const DType dtype[] = {DT_F32, DT_F32, DT_BF16, DT_F16};
	Gen *g = c->g;
	DType t = dtype[below(g, sizeof dtype / sizeof *dtype)];
	RpTensor *x = gen_tensor(g, "x", g->p->units && t == DT_F32 ? DT_BF16 : t);
	const char *subs = "";
	x->input = true;
	x->magnitude = 2;
	for (unsigned left = (1u << sc->n) - 1; left;) {
		unsigned k = below(g, sc->n);
		if (!(left >> k & 1))
			continue;
		left &= ~(1u << k);
		x->dim[x->rank++] = sc->at[k].dim;
		subs = arena_text(g->a, "%s%s%s", subs, *subs ? ", " : "", sc->at[k].name);
	}
	g->p->ntensor++;
	return (Piece){.text = arena_text(g->a, "%s[%s]", x->name, subs), .mag = 2};
}

/* A factor with an index of its own and that of the terms; of each head, or of all. */
static Piece
side(Cascade *c, const char *own, unsigned dim, const char *term, unsigned term_dim, bool shared)
{
	Scope sc = {0};
	const char *name[3] = {c->h, own, term};
	unsigned of[3] = {c->head, dim, term_dim};
	for (unsigned k = shared || c->head == RP_MAX_DIM ? 1 : 0; k < 3; k++) {
		Index *x = &sc.at[sc.n++];
		strncpy(x->name, name[k], sizeof x->name - 1);
		x->dim = of[k];
	}
	return chance(c->g, 70) || c->g->p->units ? own_input(c, &sc) : gen_factor(c->g, &sc);
}

static const char *
mask(Cascade *c)
{
	static const char *const form[] = {"$ <= @", "@ <= $", "$ < @", "$ != @", "@ + $ < 20", "2 <= $", "$ <= @ && @ - $ < 5",
	                                   "($ + @) mod 3 != 1"};
	const char *text = "", *from = form[below(c->g, sizeof form / sizeof *form)];
	for (; *from; from++)
		text = *from == '$'   ? arena_text(c->g->a, "%s%s", text, c->j)
		       : *from == '@' ? arena_text(c->g->a, "%s%s", text, c->i)
		                      : arena_text(c->g->a, "%s%c", text, *from);
	return text;
}

/* The scores' definition. They stay small, so that bounds of their exponentials say something. */
static void
define_score(Cascade *c)
{
	static const char *const form[] = {"0.05 * %s", "2 * tanh(%s / 8)", "%s / 64", "%s / sqrt(f32(N%u) + 900)", "%s"};
	Gen *g = c->g;
	const char *d = arena_text(g->a, "i%u", g->nindex++);
	g->budget = 0;
	Piece q = side(c, c->i, c->row, d, c->term, false), k = side(c, c->j, c->stream, d, c->term, chance(g, 40));
	const char *dot = arena_text(g->a, "sum[%s in 0..N%u](%s * %s)", d, c->term, q.text, k.text);
	unsigned f = below(g, 12);
	const char *e = arena_text(g->a, form[f < 4 ? f : f < 11 ? 0 : 4], dot, c->term);
	c->masked = chance(g, 40);
	c->sure = !c->masked && chance(g, 70);
	if (c->sure)
		g->p->fact = arena_text(g->a, "N%u >= 1", c->stream);
	if (c->masked)
		trait(g, RP_DOMAIN);
	text_printf(&g->p->text, "  cs[%s, %s] = %s%s%s\n", c->left, c->over, e, c->masked ? " where " : "", c->masked ? mask(c) : "");
	c->score = arena_text(g->a, "cs[%s, %s]", c->axes, c->j);
}

/* A result over the row's axes, and the columns. */
static void
result(Cascade *c, bool wide, const char *expression)
{
	static const DType dtype[] = {DT_F32, DT_F32, DT_F32, DT_F64, DT_BF16, DT_F16};
	Gen *g = c->g;
	RpTensor *t = gen_tensor(g, "y", dtype[below(g, sizeof dtype / sizeof *dtype)]);
	t->result = true;
	if (c->head < RP_MAX_DIM)
		t->dim[t->rank++] = c->head;
	t->dim[t->rank++] = c->row;
	if (wide)
		t->dim[t->rank++] = c->wide;
	text_printf(&g->p->text, "  %s[%s%s%s] = %s\n", t->name, c->axes, wide ? ", " : "", wide ? c->e : "", expression);
	if (t->rank > g->p->rank)
		g->p->rank = t->rank;
	g->p->ntensor++;
}

static const char *
value(Cascade *c)
{
	return side(c, c->e, c->wide, c->j, c->stream, chance(c->g, 30)).text;
}

/* An extreme or the mean of a row: what the others are relative to. */
static void
define_anchor(Cascade *c, const char *fold)
{
	Gen *g = c->g;
	const char *none = c->sure || strcmp(fold, "sum") == 0 ? "" : " ?? 0.5";
	text_printf(&g->p->text, "  cm[%s] = %s[%s](%s)%s%s\n", c->left, fold, c->over, c->score, none,
	            strcmp(fold, "sum") == 0 ? arena_text(g->a, " / (f32(N%u) + 1)", c->stream) : "");
}

/* A weight, which some programs round themselves; the others' text does not depend on that. */
static const char *
weight(Cascade *c, const char *w)
{
	static const char *const type[] = {"bf16", "bf16", "f16", "f8e4m3"};
	Gen *g = c->g;
	uint64_t rng = g->rng;
	g->rng = ~g->p->seed * 7;
	if (chance(g, 30))
		w = arena_text(g->a, "%s(%s)", type[below(g, sizeof type / sizeof *type)], w);
	g->rng = rng;
	return w;
}

static const char *
sum(Cascade *c, const char *term)
{
	return arena_text(c->g->a, "sum[%s](%s)", c->over, term);
}

static void
about_a_maximum(Cascade *c)
{
	Gen *g = c->g;
	bool low = chance(g, 20);
	define_anchor(c, low ? "min" : "max");
	const char *off = arena_text(g->a, "(%s - cm[%s])", c->score, c->axes);
	const char *w = weight(c, arena_text(g->a, low ? "exp(-%s)" : "exp(%s)", off));
	switch (below(g, 6)) {
	case 0: /* how many there are, as weighed */
		result(c, false, sum(c, w));
		break;
	case 1: /* the entropy: two terms */
		result(c, false, sum(c, arena_text(g->a, "%s * %s", w, off)));
		result(c, false, sum(c, w));
		break;
	case 2: /* of columns, and divided */
		text_printf(&g->p->text, "  cl[%s] = %s\n", c->left, sum(c, w));
		result(c, true, arena_text(g->a, "%s / (cl[%s] + 0.5)", sum(c, arena_text(g->a, "%s * %s", w, value(c))), c->axes));
		break;
	case 3: /* and of columns as they are */
		result(c, true, sum(c, arena_text(g->a, "%s * %s", w, value(c))));
		result(c, false, sum(c, w));
		break;
	case 4: /* what can't be moved to another maximum */
		result(c, false, sum(c, arena_text(g->a, "tanh(%s)", off)));
		break;
	default:
		result(c, false, arena_text(g->a, "cm[%s] + log(%s + 0.5)", c->axes, sum(c, w)));
	}
	if (chance(g, 30))
		result(c, false, arena_text(g->a, "cm[%s]", c->axes));
}

static void
about_a_mean(Cascade *c)
{
	Gen *g = c->g;
	define_anchor(c, "sum");
	const char *off = arena_text(g->a, "(%s - cm[%s])", c->score, c->axes);
	result(c, false, sum(c, weight(c, arena_text(g->a, chance(g, 70) ? "sq(%s)" : "%s * 2", off))));
	if (chance(g, 50))
		result(c, true, sum(c, arena_text(g->a, "%s * %s", off, value(c))));
}

/* One more fold, of scores that it scales itself; the others' text does not depend on whether there is one. */
static void
about_scaled_scores(Cascade *c)
{
	static const char *const form[] = {"exp(0.1 * %s)", "sq(0.05 * %s)", "abs(%s / 8)", "tanh(%s * 0.25)"};
	Gen *g = c->g;
	g->rng = ~g->p->seed * 11;
	if (g->p->ntensor < RP_MAX_TENSOR && chance(g, 25))
		result(c, false, sum(c, arena_text(g->a, form[below(g, sizeof form / sizeof *form)], c->score)));
}

void
gen_cascade(Gen *g)
{
	Cascade c = {.g = g};
	if (g->p->ntensor + MOST_TENSORS > RP_MAX_TENSOR || !choose_dims(&c))
		return;
	name_indices(&c);
	define_score(&c);
	unsigned roll = below(g, 100);
	if (roll < 40)
		result(&c, true, sum(&c, arena_text(g->a, "%s * %s", weight(&c, arena_text(g->a, "softmax[%s](%s)", c.over, c.score)), value(&c))));
	else if (roll < 80)
		about_a_maximum(&c);
	else
		about_a_mean(&c);
	about_scaled_scores(&c);
	trait(g, RP_STD);
	trait(g, RP_REDUCTION);
	trait(g, RP_DEPENDENT);
}
