/* gen_definition.c: random definitions: plain, with domains, recurrences, scatters, scans. */
#include <stdio.h>
#include <string.h>

#include "generator.h"

enum { MAX_ELEMENTS = 1500 };

RpTensor *
gen_tensor(Gen *g, const char *stem, DType t)
{
	RpTensor *x = &g->p->tensor[g->p->ntensor];
	memset(x, 0, sizeof *x);
	snprintf(x->name, sizeof x->name, "%s%u", stem, g->p->ntensor);
	x->dtype = t;
	x->into = -1;
	x->magnitude = 3;
	return x;
}

static double
elements(const Gen *g, const RpTensor *t)
{
	double n = 1;
	for (unsigned a = 0; a < t->rank; a++)
		n *= (double)g->p->size[t->dim[a]];
	return n;
}

/* Axes of distinct or repeated dims, within a number of elements. */
static void
choose_axes(Gen *g, RpTensor *t, unsigned rank)
{
	for (t->rank = 0; t->rank < rank;) {
		t->dim[t->rank++] = below(g, g->p->ndim);
		if (elements(g, t) > MAX_ELEMENTS)
			t->rank--, rank--;
	}
}

/* 4-bit types pack two to a byte along the last axis, which must be even. */
static void
check_packing(Gen *g, RpTensor *t)
{
	if (dtype_info[t->dtype].bits != 4)
		return;
	if (t->rank == 0 || g->p->size[t->dim[t->rank - 1]] % 2 != 0)
		t->dtype = dtype_is_float(t->dtype) ? DT_F8E4M3 : DT_I8;
}

static DType
random_dtype(Gen *g, bool result)
{
	static const DType common[] = {DT_F32, DT_F32, DT_F32, DT_BF16, DT_F16, DT_F64, DT_I32, DT_I64, DT_BOOL};
	DType t = chance(g, 60) ? common[below(g, sizeof common / sizeof *common)] : (DType)(1 + below(g, DT_COUNT - 1));
	if (g->p->exact && dtype_is_float(t) && (result || t == DT_E8M0))
		t = chance(g, 70) ? DT_F32 : DT_F64;
	if (g->p->exact && t == DT_C64)
		t = DT_F32;
	return t;
}

static const char *
left_side(Gen *g, const RpTensor *t, Scope *sc)
{
	const char *text = "";
	for (unsigned a = 0; a < t->rank; a++) {
		const char *i = new_index(g, sc, t->dim[a], false);
		text = arena_text(g->a, t->result || t->inout ? "%s%s%s" : "%s%s%s in 0..N%u", text, a ? ", " : "", i, t->dim[a]);
	}
	return t->rank ? arena_text(g->a, "[%s]", text) : "";
}

static const char *
default_of(DType t)
{
	Cls c = class_of(t);
	return c == CLS_BOOL ? "true" : c == CLS_COMPLEX ? "root(0, 1)" : "2";
}

static Piece
present(Gen *g, Piece p, DType t)
{
	if (p.absent)
		p.text = arena_text(g->a, "(%s ?? %s)", p.text, default_of(t));
	p.absent = false;
	return p;
}

static void
emit(Gen *g, RpTensor *t, const char *left, const char *op, Piece e, const char *where, bool absent)
{
	const char *stored = !t->result && !t->inout && chance(g, 25) && op[0] == '=' ? dtype_info[t->dtype].text : NULL;
	if (dtype_info[t->dtype].kind == KIND_UINT) /* a negative number has no unsigned type */
		e.text = arena_text(g->a, "i64(%s)", e.text);
	bool needs = absent && (t->result || t->inout);
	bool other = needs || (absent && chance(g, 60));
	text_printf(&g->p->text, "  %s%s%s%s%s %s %s%s%s%s%s\n", t->name, stored && !t->rank ? " : " : stored ? ": " : "",
	            stored ? stored : "", left, "", op, e.text, where ? " where " : "", where ? where : "",
	            other ? " else " : "", other ? default_of(t->dtype) : "");
	t->absent = absent && !other;
	t->magnitude = e.mag > 3 ? e.mag : 3;
}

static void
plain(Gen *g, RpTensor *t)
{
	Scope sc = {0};
	const char *left = left_side(g, t, &sc);
	bool masked = chance(g, 25);
	Piece where = {0};
	if (masked) {
		where = gen_cond(g, &sc, 2);
		trait(g, RP_DOMAIN);
	}
	Piece e = gen_expr(g, class_of(t->dtype), &sc, chance(g, 12) ? 0 : 1 + below(g, 4));
	if (!g->p->exact && dtype_is_float(t->dtype) && dtype_info[t->dtype].bits <= 16 && chance(g, 50))
		e = gen_gated(g, e);
	if (masked && where.absent)
		where = present(g, where, DT_BOOL);
	if (e.absent)
		trait(g, RP_DOMAIN);
	emit(g, t, left, "=", e, masked ? where.text : NULL, e.absent || masked);
}

static void
recurrence(Gen *g, RpTensor *t)
{
	Scope sc = {0};
	const char *left = left_side(g, t, &sc);
	bool flt = class_of(t->dtype) == CLS_FLOAT, back = chance(g, 40);
	const char *i = sc.at[0].name, *rest = "";
	trait(g, RP_RECURRENCE);
	Piece e = present(g, gen_expr(g, flt ? CLS_FLOAT : CLS_INT, &sc, 2), t->dtype);
	for (unsigned a = 1; a < t->rank; a++)
		rest = arena_text(g->a, "%s, %s", rest, sc.at[a].name);
	const char *step = arena_text(g->a, "(%s?[%s %c %u%s] ?? 1)", t->name, i, back ? '+' : '-', 1 + below(g, 2), rest);
	if (t->rank > 1 && chance(g, 40)) {
		const char *tail = "", *index = arena_text(g->a, "i%u", g->nindex++);
		for (unsigned a = 2; a < t->rank; a++)
			tail = arena_text(g->a, "%s, %s", tail, sc.at[a].name);
		step = arena_text(g->a, "(sum[%s in 0..N%u](%s?[%s %c 1, %s%s]) ?? 1)", index, t->dim[1], t->name, i, back ? '+' : '-',
		                  index, tail);
		trait(g, RP_REDUCTION);
	} else if (t->rank > 1 && chance(g, 40)) {
		const char *tail = "";
		for (unsigned a = 2; a < t->rank; a++)
			tail = arena_text(g->a, "%s, %s", tail, sc.at[a].name);
		step = arena_text(g->a, "max(%s, (%s?[%s, %s - 1%s] ?? 0))", step, t->name, i, sc.at[1].name, tail);
	}
	if (!flt)
		e.text = arena_text(g->a, "i64(%s) + %s", e.text, step);
	else if (g->p->exact)
		e.text = arena_text(g->a, "max(min(%s + %s, 50), -50)", e.text, step);
	else
		e.text = arena_text(g->a, "tanh(%s) * %s + tanh(%s)", e.text, chance(g, 50) ? "0.75" : step, step);
	e.mag = g->p->exact ? 50 : 40;
	text_printf(&g->p->text, "  %s%s%s%s = %s\n", t->name, t->result ? "" : ": ", t->result ? "" : dtype_info[t->dtype].text,
	            left, e.text);
	t->magnitude = e.mag;
}

/* g[ids[t], d] += e: the first axis gathered, the others plain. False if no positions fit. */
static bool
scatter(Gen *g, RpTensor *t)
{
	const RpTensor *ids = NULL;
	for (unsigned k = 0, seen = 0; k < g->p->ntensor; k++) {
		const RpTensor *x = &g->p->tensor[k];
		if (x->input && x->into >= 0 && x->rank > 0 && x->rank < 3 && (unsigned)x->into == t->dim[0] && below(g, ++seen) == 0)
			ids = x;
	}
	if (!ids || t->rank == 0 || class_of(t->dtype) == CLS_BOOL || class_of(t->dtype) == CLS_COMPLEX)
		return false;
	Scope sc = {0};
	const char *subs = "", *left = "";
	for (unsigned a = 0; a < ids->rank; a++) {
		const char *i = new_index(g, &sc, ids->dim[a], false);
		subs = arena_text(g->a, "%s%s%s", subs, a ? ", " : "", i);
	}
	left = arena_text(g->a, t->result || t->inout ? "[%s[%s]" : "[%s[%s] in 0..N%u", ids->name, subs, t->dim[0]);
	for (unsigned a = 1; a < t->rank; a++) {
		const char *i = new_index(g, &sc, t->dim[a], false);
		left = arena_text(g->a, t->result || t->inout ? "%s, %s" : "%s, %s in 0..N%u", left, i, t->dim[a]);
	}
	trait(g, RP_SCATTER);
	trait(g, RP_GATHER);
	bool masked = chance(g, 30);
	Piece where = {0};
	if (masked) {
		where = present(g, gen_cond(g, &sc, 1), DT_BOOL);
		trait(g, RP_DOMAIN);
	}
	Piece e = gen_expr(g, class_of(t->dtype), &sc, 2);
	if (class_of(t->dtype) == CLS_FLOAT && e.mag > 100)
		e.text = arena_text(g->a, g->p->exact ? "max(min(%s, 50), -50)" : "tanh(%s)", e.text);
	unsigned op = below(g, 3);
	e.mag = e.mag * (double)g->p->size[ids->dim[0]] * (ids->rank > 1 ? (double)g->p->size[ids->dim[1]] : 1) + 3;
	emit(g, t, arena_text(g->a, "%s]", left), op == 0 ? "+=" : op == 1 ? "max=" : "min=", e, masked ? where.text : NULL,
	     op != 0 && !t->inout);
	return true;
}

bool
gen_definition(Gen *g)
{
	RandomProgram *p = g->p;
	if (p->ntensor + 1 >= RP_MAX_TENSOR)
		return false;
	bool result = p->ntensor >= RP_MAX_TENSOR - 3 || chance(g, 45);
	RpTensor *t = gen_tensor(g, result ? "y" : "t", random_dtype(g, result));
	t->result = result;
	static const uint8_t rank[] = {0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6};
	choose_axes(g, t, rank[below(g, sizeof rank)]);
	check_packing(g, t);
	g->budget = 3;
	unsigned roll = below(g, 100);
	bool numeric = class_of(t->dtype) == CLS_FLOAT || class_of(t->dtype) == CLS_INT;
	if (roll < 9 && t->rank > 0 && numeric)
		recurrence(g, t);
	else if (roll >= 24 || !scatter(g, t))
		plain(g, t);
	if (dtype_info[t->dtype].bits < 32)
		trait(g, RP_NARROW);
	/* an undeclared intermediate has the type of its expression; what matters later is the class */
	if (!result && dtype_info[t->dtype].bits == 4)
		t->dtype = dtype_info[t->dtype].arith;
	if (result && t->rank > p->rank)
		p->rank = t->rank;
	p->ntensor++;
	return true;
}

/* The range of k up to index j, or from it, over the dim, in one of the ways to write it. */
static const char *
prefix_of(Gen *g, const char *k, const char *j, unsigned dim, bool *conditional)
{
	unsigned form = below(g, 9);
	*conditional = form >= 5;
	switch (form) {
	case 0: case 1: return arena_text(g->a, "%s in 0..%s+1", k, j);
	case 2: return arena_text(g->a, "%s in 0..%s", k, j);
	case 3: return arena_text(g->a, "%s in %s..N%u", k, j, dim);
	case 4: return arena_text(g->a, "%s in %s+1..N%u", k, j, dim);
	case 5: return arena_text(g->a, "%s in 0..N%u where %s <= %s", k, dim, k, j);
	case 6: return arena_text(g->a, "%s in 0..N%u where %s < %s", k, dim, k, j);
	case 7: return arena_text(g->a, "%s in 1..N%u where %s == %s", k, dim, k, j);
	default: return arena_text(g->a, "%s in 0..N%u where %s <= %s", k, dim, j, k);
	}
}

/* The fold itself: its terms know every index but the one that the range ends at. */
static Piece
prefix_fold(Gen *g, Cls c, const Scope *sc, unsigned at)
{
	static const char *const fold[][4] = {
		[CLS_FLOAT] = {"sum", "max", "min", "sum"}, [CLS_INT] = {"sum", "argmax", "argmin", "prod"}, [CLS_BOOL] = {"any", "all", "any", "all"}};
	Scope in = *sc;
	unsigned f = below(g, 4), dim = sc->at[at].dim;
	bool conditional, unit = c == CLS_BOOL || f == 0 || f == 3;
	in.at[at] = in.at[--in.n];
	const char *k = new_index(g, &in, dim, false), *range = prefix_of(g, k, sc->at[at].name, dim, &conditional);
	Piece e = gen_expr(g, c, &in, 1 + below(g, 2));
	if (c == CLS_FLOAT && e.mag > 50)
		e.text = arena_text(g->a, g->p->exact ? "max(min(%s, 50), -50)" : "tanh(%s)", e.text);
	if (conditional && chance(g, 30))
		range = arena_text(g->a, "%s && %s mod 3 != 1", range, k);
	Piece p = {.mag = c == CLS_FLOAT ? 50 * ((double)g->p->size[dim] + 1) : e.mag, .absent = e.absent || !unit, .reduced = true};
	p.text = arena_text(g->a, "%s[%s](%s)", fold[c][f], range, e.text);
	return p;
}

void
gen_scan(Gen *g)
{
	RpTensor *t = gen_tensor(g, "y", random_dtype(g, true));
	if (class_of(t->dtype) == CLS_COMPLEX)
		t->dtype = DT_F32;
	t->result = true;
	choose_axes(g, t, 1 + below(g, 3));
	check_packing(g, t);
	if (t->rank == 0)
		return;
	Scope sc = {0};
	const char *left = left_side(g, t, &sc);
	Cls c = class_of(t->dtype);
	g->budget = 0;
	Piece e = present(g, prefix_fold(g, c, &sc, below(g, t->rank)), t->dtype);
	if (c == CLS_FLOAT && chance(g, 30)) {
		Piece more = present(g, gen_expr(g, c, &sc, 1), t->dtype);
		e.text = arena_text(g->a, "%s + %s", e.text, more.text);
		e.mag += more.mag;
	}
	emit(g, t, left, "=", e, NULL, false);
	trait(g, RP_SCAN);
	trait(g, RP_REDUCTION);
	if (t->rank > g->p->rank)
		g->p->rank = t->rank;
	g->p->ntensor++;
}

Piece
gen_factor(Gen *g, const Scope *sc)
{
	Piece e = present(g, gen_expr(g, CLS_FLOAT, sc, below(g, 3)), DT_F32);
	const Index *own = &sc->at[sc->n - 2], *term = &sc->at[sc->n - 1];
	e.text = arena_text(g->a, "(f32(%s) + 0.25 * f32((%s + 2 * %s) mod 5))", e.mag > 100 ? arena_text(g->a, "tanh(%s)", e.text) : e.text,
	                    own->name, term->name);
	e.mag = (e.mag > 100 ? 1 : e.mag) + 1;
	return e;
}

/* A factor times something that one of its axes has no part in. */
static Piece
scale_factor(Gen *g, Piece e, const Scope *sc)
{
	Scope fewer = *sc;
	if (chance(g, 60))
		return e;
	fewer.at[below(g, sc->n)] = fewer.at[--fewer.n];
	Piece p = present(g, gen_expr(g, CLS_FLOAT, &fewer, below(g, 3)), DT_F32);
	e.text = arena_text(g->a, "(%s * rsqrt(1 + sq(%s(%s))))", e.text, p.mag > 100 ? "tanh" : "f32", p.text);
	return e;
}

/* A factor, as often as not as a definition of its own, over the scope. */
static Piece
name_factor(Gen *g, Piece e, const RpTensor *t, const char *side, const Scope *sc)
{
	const char *ranges = "", *at = "", *name = arena_text(g->a, "%s%s", t->name, side);
	if (chance(g, 50))
		return e;
	for (unsigned k = 0; k < sc->n; k++) {
		ranges = arena_text(g->a, "%s%s%s in 0..N%u", ranges, k ? ", " : "", sc->at[k].name, sc->at[k].dim);
		at = arena_text(g->a, "%s%s%s", at, k ? ", " : "", sc->at[k].name);
	}
	text_printf(&g->p->text, "  %s[%s] = %s(%s)\n", name, ranges, chance(g, 30) ? "bf16" : "f32", e.text);
	e.text = arena_text(g->a, "%s[%s]", name, at);
	return e;
}

/* Which terms are there, as often as not: by what the terms' index has to do with an index of either factor, or with both. */
static const char *
term_domain(Gen *g, const char *k, const Index *row, const Index *column)
{
	static const char *const form[] = {"$ <= @", "@ <= $", "$ + @ < 9", "$ + @ < N#", "($ + @) mod 2 == 0", "@ - $ < 4", "2 * $ <= @ + 3",
	                                   "$ <= @ && $ <= %", "@ <= $ && $ + % < 12", "$ + @ + % < 20", "$ mod 3 != 1"};
	const char *text = " where ";
	if (chance(g, 50))
		return "";
	bool turned = chance(g, 50);
	for (const char *s = form[below(g, sizeof form / sizeof *form)]; *s; s++)
		text = *s == '$'   ? arena_text(g->a, "%s%s", text, k)
		       : *s == '#' ? arena_text(g->a, "%s%u", text, row->dim)
		       : *s == '@' ? arena_text(g->a, "%s%s", text, turned ? column->name : row->name)
		       : *s == '%' ? arena_text(g->a, "%s%s", text, turned ? row->name : column->name)
		                   : arena_text(g->a, "%s%c", text, *s);
	trait(g, RP_DOMAIN);
	return text;
}

void
gen_product(Gen *g)
{
	static const DType dtype[] = {DT_F32, DT_F32, DT_F32, DT_F64, DT_BF16, DT_F16};
	RpTensor *t = gen_tensor(g, "y", dtype[below(g, sizeof dtype / sizeof *dtype)]);
	Scope sc = {0}, side[2];
	t->result = true;
	choose_axes(g, t, 2 + chance(g, 30));
	if (t->rank < 2)
		return;
	const char *left = left_side(g, t, &sc);
	unsigned terms = below(g, g->p->ndim);
	side[0] = side[1] = sc;
	side[0].n--; /* the last two axes of the result belong to one factor each, those before to both */
	side[1].at[sc.n - 2] = sc.at[sc.n - 1];
	side[1].n--;
	const char *k = new_index(g, &side[0], terms, false);
	side[1].at[side[1].n++] = side[0].at[side[0].n - 1];
	g->budget = 0;
	Piece a = scale_factor(g, gen_factor(g, &side[0]), &side[0]), b = scale_factor(g, gen_factor(g, &side[1]), &side[1]);
	a = name_factor(g, a, t, "a", &side[0]);
	b = name_factor(g, b, t, "b", &side[1]);
	bool finished = chance(g, 40);
	const char *where = term_domain(g, k, &sc.at[sc.n - 2], &sc.at[sc.n - 1]);
	Piece e = {.text = arena_text(g->a, "sum[%s in 0..N%u%s](%s * %s)", k, terms, where, a.text, b.text)};
	e.mag = a.mag * b.mag * (double)g->p->size[terms] + 1;
	if (finished)
		e.text = arena_text(g->a, "tanh(%s) + 0.5", e.text);
	emit(g, t, left, "=", e, NULL, false);
	trait(g, RP_REDUCTION);
	if (t->rank > g->p->rank)
		g->p->rank = t->rank;
	g->p->ntensor++;
}
