/* gen_expr.c: random expressions. Values are kept finite and well away from poles, so that the
 * oracle's bound says something; magnitudes are tracked for that, and for exactness. */
#include "generator.h"

#include <stdio.h>
#include <string.h>

unsigned
below(Gen *g, unsigned n)
{
	return rp_below(&g->rng, n);
}

bool
chance(Gen *g, unsigned percent)
{
	return below(g, 100) < percent;
}

void
trait(Gen *g, RpTrait t)
{
	g->p->traits |= 1u << t;
}

Cls
class_of(DType t)
{
	if (t == DT_BOOL)
		return CLS_BOOL;
	if (t == DT_C64)
		return CLS_COMPLEX;
	return dtype_is_float(t) ? CLS_FLOAT : CLS_INT;
}

const char *
new_index(Gen *g, Scope *sc, unsigned dim, bool may_shadow)
{
	Index *x = &sc->at[sc->n < MAX_INDEX ? sc->n : MAX_INDEX - 1];
	if (may_shadow && sc->n && chance(g, 10)) {
		x = &sc->at[below(g, sc->n)]; /* an inner binder of an outer name */
	} else {
		snprintf(x->name, sizeof x->name, "i%u", g->nindex++);
		sc->n += sc->n < MAX_INDEX;
	}
	x->dim = dim;
	return x->name;
}

/* An index of the scope that runs over the dim, or NULL. */
static const Index *
index_over(Gen *g, const Scope *sc, unsigned dim)
{
	unsigned n = 0, pick;
	for (unsigned k = 0; k < sc->n; k++)
		n += sc->at[k].dim == dim;
	if (n == 0)
		return NULL;
	pick = below(g, n);
	for (unsigned k = 0; k < sc->n; k++)
		if (sc->at[k].dim == dim && pick-- == 0)
			return &sc->at[k];
	return NULL;
}

static const Index *
any_index(Gen *g, const Scope *sc)
{
	return sc->n ? &sc->at[below(g, sc->n)] : NULL;
}

/* A tensor of positions in the dim all of whose axes have an index in scope. */
static const RpTensor *
positions(Gen *g, const Scope *sc, unsigned dim)
{
	const RpTensor *found = NULL;
	for (unsigned k = 0, seen = 0; k < g->p->ntensor; k++) {
		const RpTensor *t = &g->p->tensor[k];
		bool ok = t->input && t->into == (int)dim;
		for (unsigned a = 0; a < t->rank && ok; a++)
			ok = index_over(g, sc, t->dim[a]) != NULL;
		if (ok && below(g, ++seen) == 0)
			found = t;
	}
	return found;
}

/* One subscript of an axis over dim; *optional is set where only x?[…] is legal. */
static const char *
subscript(Gen *g, const Scope *sc, unsigned dim, bool plain_only, bool *optional)
{
	const Index *i = index_over(g, sc, dim);
	if (i && (plain_only || chance(g, g->p->stray ? 40 : 70)))
		return i->name;
	const RpTensor *ids = plain_only ? NULL : positions(g, sc, dim);
	if (ids && chance(g, g->p->stray ? 85 : 60)) {
		trait(g, RP_GATHER);
		return gen_read(g, ids, sc, true).text;
	}
	if (i) {
		trait(g, RP_GATHER);
		switch (below(g, 4)) {
		case 0:
			return arena_text(g->a, "(%s + %u) mod N%u", i->name, below(g, 3), dim);
		case 1:
			return arena_text(g->a, "N%u - 1 - %s", dim, i->name);
		case 2:
			return arena_text(g->a, "%s div %u", i->name, 1 + below(g, 3));
		default:
			break;
		}
		*optional = true;
		return arena_text(g->a, "%s %c %u", i->name, chance(g, 50) ? '+' : '-', 1 + below(g, 2));
	}
	*optional = true;
	i = any_index(g, sc);
	if (!i || chance(g, 20))
		return arena_text(g->a, "%u", below(g, 3));
	return chance(g, 50) ? arena_text(g->a, "%s", i->name) : arena_text(g->a, "2*%s - 1", i->name);
}

Piece
gen_read(Gen *g, const RpTensor *t, const Scope *sc, bool plain_only)
{
	Piece p = {.mag = t->magnitude, .absent = t->absent};
	const char *subs = "";
	bool optional = false;
	for (unsigned a = 0; a < t->rank; a++)
		subs = arena_text(g->a, "%s%s%s", subs, a ? ", " : "", subscript(g, sc, t->dim[a], plain_only, &optional));
	if (optional) {
		trait(g, RP_OPTIONAL);
		trait(g, RP_DOMAIN);
		p.absent = true;
	}
	p.text = t->rank ? arena_text(g->a, "%s%s[%s]", t->name, optional ? "?" : "", subs) : t->name;
	return p;
}

static Piece
literal(Gen *g, Cls c)
{
	unsigned n = below(g, 7);
	Piece p = {.mag = 3};
	if (c == CLS_BOOL)
		p.text = "true"; /* false && … would be a condition without any index */
	else if (c == CLS_COMPLEX)
		p.text = arena_text(g->a, "root(%u, 8)", n);
	else if (c == CLS_FLOAT && !g->p->exact)
		p.text = arena_text(g->a, "%s%u.%u", n > 4 ? "-" : "", below(g, 3), below(g, 10));
	else if (c == CLS_FLOAT)
		p.text = arena_text(g->a, "%s%u.0", n > 4 ? "-" : "", below(g, 4));
	else
		p.text = arena_text(g->a, n > 3 ? "(-%u)" : "%u", n > 3 ? n - 3 : n);
	return p;
}

static Piece
scalar_value(Gen *g, const Scope *sc)
{
	const Index *i = any_index(g, sc);
	Piece p = {.mag = 40};
	if (i && chance(g, 60))
		p.text = i->name;
	else
		p.text = arena_text(g->a, "N%u", below(g, g->p->ndim));
	return p;
}

/* What is read of t, next to negative numbers. */
static const char *
with_sign(Gen *g, const RpTensor *t, const char *read)
{
	return t->dtype == DT_U32 || t->dtype == DT_U64 ? arena_text(g->a, "i64(%s)", read) : read;
}

static Piece
leaf(Gen *g, Cls c, const Scope *sc)
{
	for (unsigned tries = 0; tries < 6; tries++) {
		const RpTensor *t = &g->p->tensor[below(g, g->p->ntensor)];
		if (class_of(t->dtype) != c || t->result)
			continue;
		if (t->inout)
			trait(g, RP_INOUT);
		Piece p = gen_read(g, t, sc, chance(g, 40));
		p.text = with_sign(g, t, p.text);
		if (p.absent && chance(g, 60)) {
			p.text = arena_text(g->a, "(%s ?? %s)", p.text, literal(g, c).text);
			p.absent = false;
		}
		return p;
	}
	if (c == CLS_INT && chance(g, 50))
		return scalar_value(g, sc);
	return literal(g, c);
}

/* Keeps values small enough for the next operation. */
static Piece
tamed(Gen *g, Piece p, double most)
{
	if (p.mag <= most)
		return p;
	if (g->p->exact)
		p.text = arena_text(g->a, "max(min(%s, 50), -50)", p.text);
	else
		p.text = arena_text(g->a, "tanh(%s)", p.text);
	p.mag = g->p->exact ? 50 : 1;
	return p;
}

static Piece
join(Gen *g, const char *fmt, Piece a, Piece b, double mag)
{
	Piece p = {.mag = mag, .absent = a.absent || b.absent, .reduced = a.reduced || b.reduced};
	const char *text = "";
	for (const char *s = fmt; *s; s++)
		text = *s == '$' ? arena_text(g->a, "%s%s", text, a.text)
		       : *s == '@' ? arena_text(g->a, "%s%s", text, b.text)
		                   : arena_text(g->a, "%s%c", text, *s);
	p.text = text;
	return p;
}

static Piece
float_unary(Gen *g, const Scope *sc, unsigned depth)
{
	static const char *const form[] = {
		"exp(-abs($))", "tanh($)", "log(abs($) + 0.5)", "sqrt(abs($))", "rsqrt(abs($) + 0.25)", "erf($)", "sin($)",
		"cos($)", "log1p(abs($))", "expm1(-abs($))", "exp2(-abs($))", "log2(abs($) + 0.5)", "abs($)", "-$", "floor($)",
		"round($)", "ceil($)", "trunc($)", "sq(tanh($))", "sign($)", "pow(abs($) + 0.5, 0.75)",
	};
	static const char *const exact[] = {"abs($)", "-$", "floor($)", "sign($)", "sq(sign($))", "round($)"};
	static const char *const library[] = {"relu($)", "sigmoid($)", "silu($)", "gelu($)", "gelu_tanh($)", "softplus($)"};
	Piece a = tamed(g, gen_expr(g, CLS_FLOAT, sc, depth - 1), 60);
	if (g->p->exact)
		return join(g, exact[below(g, sizeof exact / sizeof *exact)], a, a, a.mag);
	if (chance(g, 20)) {
		trait(g, RP_STD);
		return join(g, library[below(g, sizeof library / sizeof *library)], a, a, a.mag + 1);
	}
	return join(g, form[below(g, sizeof form / sizeof *form)], a, a, a.mag + 2);
}

static Piece
float_binary(Gen *g, const Scope *sc, unsigned depth)
{
	static const char *const form[] = {"$ + @", "$ - @", "$ * @", "max($, @)", "min($, @)", "$ / (abs(@) + 0.5)"};
	Piece a = tamed(g, gen_expr(g, CLS_FLOAT, sc, depth - 1), g->p->exact ? 1000 : 100);
	Piece b = tamed(g, gen_expr(g, CLS_FLOAT, sc, depth - 1), g->p->exact ? 1000 : 100);
	unsigned f = below(g, g->p->exact ? 5 : 6);
	double mag = f == 2 ? a.mag * b.mag : f == 5 ? a.mag * 2 : a.mag + b.mag;
	return join(g, arena_text(g->a, "(%s)", form[f]), a, b, mag);
}

Piece
gen_gated(Gen *g, Piece a)
{
	static const char *const form[] = {"exp(-abs($))", "exp2($ - abs($))", "(1.0 / (1.0 + exp(-$)))", "max(exp($), 0.5)"};
	a = tamed(g, a, 3);
	return join(g, form[below(g, 4)], a, a, a.mag + 20);
}

static Piece
conversion(Gen *g, const Scope *sc, unsigned depth)
{
	static const char *const narrow[] = {"bf16", "f16", "f8e4m3", "f8e5m2"};
	if (!g->p->exact && chance(g, 30)) {
		trait(g, RP_NARROW);
		const char *to = narrow[below(g, 4)];
		Piece a = tamed(g, gen_expr(g, CLS_FLOAT, sc, depth - 1), 100);
		a = chance(g, 40) ? gen_gated(g, a) : a;
		return join(g, arena_text(g->a, "%s($)", to), a, a, a.mag * 1.1);
	}
	if (chance(g, 40)) {
		Piece c = gen_cond(g, sc, depth - 1);
		return join(g, "f32($)", c, c, 1);
	}
	Piece a = gen_expr(g, CLS_INT, sc, depth - 1);
	/* integers may be anything: folded into a small range */
	return join(g, "f32(($) mod 7)", a, a, 7);
}

static Piece
conditional(Gen *g, Cls c, const Scope *sc, unsigned depth)
{
	Piece k = gen_cond(g, sc, depth - 1), a = gen_expr(g, c, sc, depth - 1), b = gen_expr(g, c, sc, depth - 1);
	Piece p = join(g, "$ : @)", a, b, a.mag > b.mag ? a.mag : b.mag);
	p.text = arena_text(g->a, "(%s ? %s", k.text, p.text);
	p.absent |= k.absent;
	p.reduced |= k.reduced;
	return p;
}

/* Whether the name occurs in the text as a whole word. */
static bool
mentions(const char *text, const char *name)
{
	size_t n = strlen(name);
	for (const char *s = strstr(text, name); s; s = strstr(s + 1, name))
		if (s[n] < '0' || s[n] > '9')
			return true;
	return false;
}

/* sum[k where c](e) and its kin; a max or mean of nothing gets a default most of the time. */
static Piece
reduction(Gen *g, Cls c, const Scope *sc, unsigned depth)
{
	static const char *const of_float[] = {"sum", "max", "min", "mean"};
	static const char *const of_int[] = {"sum", "max", "min", "prod", "count", "argmax", "argmin"};
	static const char *const of_bool[] = {"any", "all"};
	Scope in = *sc;
	unsigned dim = below(g, g->p->ndim);
	const char *index = new_index(g, &in, dim, true);
	bool masked = chance(g, 40);
	Piece where = {.text = ""};
	if (masked) {
		where = gen_cond(g, &in, 1);
		trait(g, RP_DOMAIN);
	}
	unsigned f = c == CLS_FLOAT ? below(g, g->p->exact ? 3 : 4) : c == CLS_INT ? below(g, 7) : c == CLS_BOOL ? below(g, 2) : 0;
	const char *name = c == CLS_FLOAT ? of_float[f] : c == CLS_INT ? of_int[f] : c == CLS_BOOL ? of_bool[f] : "sum";
	Piece e = gen_expr(g, c, &in, depth - 1);
	if (c == CLS_FLOAT)
		e = tamed(g, e, g->p->exact ? 1e5 : 100);
	trait(g, RP_REDUCTION);
	if (e.reduced || where.reduced)
		trait(g, RP_DEPENDENT);
	double n = (double)g->p->size[dim] + 1;
	Piece p = {.mag = c == CLS_FLOAT && f == 0 ? e.mag * n : e.mag, .reduced = true};
	p.text = arena_text(g->a, "%s[%s in 0..N%u%s%s](%s)", name, index, dim, masked ? " where " : "", where.text, e.text);
	bool unit = c == CLS_BOOL || c == CLS_COMPLEX || strcmp(name, "sum") == 0 || strcmp(name, "prod") == 0 ||
	            strcmp(name, "count") == 0;
	/* a condition without the index says where the whole reduction is present */
	p.absent = e.absent || where.absent || !unit || (masked && (!mentions(where.text, index) || strchr(where.text, '&') ||
	                       strchr(where.text, '|') || strstr(where.text, "in 0..")));
	if (!unit && chance(g, 80)) {
		p.text = arena_text(g->a, "(%s ?? %s)", p.text, literal(g, c).text);
		p.absent = false;
	}
	return p;
}

/* An input over the dim alone, of the class; NULL when there is none. */
static const RpTensor *
line_over(const Gen *g, Cls c, unsigned dim)
{
	for (unsigned k = 0; k < g->p->ntensor; k++) {
		const RpTensor *t = &g->p->tensor[k];
		if (t->input && t->rank == 1 && t->dim[0] == dim && class_of(t->dtype) == c && !t->inout && t->into < 0)
			return t;
	}
	return NULL;
}

/* sum[e in p[i]..q[j]](x[e] + …): the range is what positions say, and is cut to x where they stray. */
static Piece
ragged(Gen *g, Cls c, const Scope *sc, unsigned depth)
{
	static const char *const form[] = {[CLS_FLOAT] = "sum[%s in %s..%s](%s + %s)", [CLS_INT] = "sum[%s in %s..%s](%s * %s)",
	                                   [CLS_BOOL] = "any[%s in %s..%s](%s || %s)"};
	unsigned dim = below(g, g->p->ndim);
	const RpTensor *from = positions(g, sc, dim), *to = positions(g, sc, dim), *x = line_over(g, c, dim);
	if (!from || !x || c == CLS_COMPLEX)
		return reduction(g, c, sc, depth);
	Scope in = *sc;
	const char *index = new_index(g, &in, dim, false);
	const char *lo = arena_text(g->a, "i64(%s)", gen_read(g, from, sc, true).text);
	const char *hi = chance(g, 40) ? arena_text(g->a, "i64(%s)", gen_read(g, to, sc, true).text)
	                               : arena_text(g->a, "%s + %u", lo, below(g, 5));
	Piece e = gen_expr(g, c, &in, depth - 1);
	if (c == CLS_FLOAT)
		e = tamed(g, e, g->p->exact ? 1e5 : 100);
	trait(g, RP_REDUCTION);
	trait(g, RP_DATA_RANGE);
	trait(g, RP_GATHER);
	if (e.reduced)
		trait(g, RP_DEPENDENT);
	Piece p = {.mag = (e.mag + x->magnitude) * ((double)g->p->size[dim] + 1), .absent = e.absent, .reduced = true};
	p.text = arena_text(g->a, form[c], index, lo, hi, with_sign(g, x, arena_text(g->a, "%s[%s]", x->name, index)), e.text);
	return p;
}

/* softmax and other functions of the library, whose value still has the index: summed again. */
static Piece
library_reduction(Gen *g, const Scope *sc, unsigned depth)
{
	static const char *const fn[] = {"softmax", "log_softmax", "layernorm", "rmsnorm"};
	Scope in = *sc;
	unsigned dim = below(g, g->p->ndim);
	const char *index = new_index(g, &in, dim, false);
	Piece e = tamed(g, gen_expr(g, CLS_FLOAT, &in, depth - 1), 30);
	Piece w = tamed(g, gen_expr(g, CLS_FLOAT, &in, 1), 30);
	if (e.absent)
		e.text = arena_text(g->a, "(%s ?? 0.5)", e.text);
	trait(g, RP_STD);
	trait(g, RP_REDUCTION);
	trait(g, RP_DEPENDENT);
	Piece p = {.mag = (w.mag + 3) * ((double)g->p->size[dim] + 1), .absent = w.absent, .reduced = true};
	p.text = arena_text(g->a, "sum[%s in 0..N%u](%s[%s in 0..N%u](%s) * %s)", index, dim,
	                    fn[below(g, sizeof fn / sizeof *fn)], index, dim, e.text, w.text);
	return p;
}

static Piece
random_number(Gen *g, const Scope *sc)
{
	const Index *i = any_index(g, sc), *j = any_index(g, sc);
	trait(g, RP_RANDOM_NUMBERS);
	Piece p = {.mag = 6};
	p.text = i && chance(g, 50) ? arena_text(g->a, "%s(%u, %s, %s)", chance(g, 70) ? "rand" : "randn", below(g, 99), i->name, j->name)
	         : i                ? arena_text(g->a, "rand(%u, %s)", below(g, 99), i->name)
	                            : arena_text(g->a, "rand(%u, 3)", below(g, 99));
	return p;
}

static Piece
gen_float(Gen *g, const Scope *sc, unsigned depth)
{
	unsigned roll = below(g, 100);
	if (roll < 18 && g->budget) {
		g->budget--;
		if (chance(g, g->p->stray ? 70 : 25))
			return ragged(g, CLS_FLOAT, sc, depth);
		return !g->p->exact && chance(g, 35) ? library_reduction(g, sc, depth) : reduction(g, CLS_FLOAT, sc, depth);
	}
	if (roll < 40)
		return float_unary(g, sc, depth);
	if (roll < 78)
		return float_binary(g, sc, depth);
	if (roll < 86)
		return conditional(g, CLS_FLOAT, sc, depth);
	if (roll < 93 || g->p->exact)
		return conversion(g, sc, depth);
	if (roll < 96)
		return random_number(g, sc);
	Piece a = gen_expr(g, CLS_COMPLEX, sc, depth - 1);
	return tamed(g, join(g, chance(g, 50) ? "re($)" : "im($)", a, a, a.mag), 100);
}

static Piece
gen_int(Gen *g, const Scope *sc, unsigned depth)
{
	static const char *const form[] = {
		"($ + @)", "($ - @)", "($ * @)", "($ div @)", "($ mod @)", "max($, @)", "min($, @)", "abs($)", "-($)", "sign($)",
		"(($) ** 2)", "i32(i8($))", "i32(u16($))", "i64($)", "i64(u32($))",
	};
	unsigned roll = below(g, 100);
	if (roll < 15 && g->budget) {
		g->budget--;
		return chance(g, g->p->stray ? 70 : 25) ? ragged(g, CLS_INT, sc, depth) : reduction(g, CLS_INT, sc, depth);
	}
	if (roll < 25)
		return conditional(g, CLS_INT, sc, depth);
	Piece a = gen_expr(g, CLS_INT, sc, depth - 1), b = gen_expr(g, CLS_INT, sc, depth - 1);
	return join(g, form[below(g, sizeof form / sizeof *form)], a, b, 1e9);
}

static Piece
gen_complex(Gen *g, const Scope *sc, unsigned depth)
{
	static const char *const form[] = {"($ + @)", "($ - @)", "($ * @)", "conj($)", "-($)"};
	trait(g, RP_COMPLEX);
	if (chance(g, 15) && g->budget) {
		g->budget--;
		return reduction(g, CLS_COMPLEX, sc, depth);
	}
	Piece a = gen_expr(g, CLS_COMPLEX, sc, depth - 1), b = gen_expr(g, CLS_COMPLEX, sc, depth - 1);
	if (a.mag * b.mag > 1e6)
		return leaf(g, CLS_COMPLEX, sc);
	return join(g, form[below(g, sizeof form / sizeof *form)], a, b, a.mag * b.mag + a.mag + b.mag);
}

Piece
gen_cond(Gen *g, const Scope *sc, unsigned depth)
{
	const Index *i = any_index(g, sc), *j = any_index(g, sc);
	unsigned roll = below(g, 100);
	Piece p = {.mag = 1};
	if (i && roll < 45) {
		static const char *const form[] = {"%s <= %s", "%s != %s", "%s < %s + 1", "(%s + %s) mod 2 == 0", "%s >= %s - 1"};
		switch (below(g, 5)) {
		case 0: p.text = arena_text(g->a, form[0], i->name, j->name); break;
		case 1: p.text = arena_text(g->a, form[1], i->name, j->name); break;
		case 2: p.text = arena_text(g->a, form[2], i->name, j->name); break;
		case 3: p.text = arena_text(g->a, form[3], i->name, j->name); break;
		default: p.text = arena_text(g->a, form[4], i->name, j->name); break;
		}
		return p;
	}
	if (i && roll < 60) {
		p.text = arena_text(g->a, "%s < %u", i->name, below(g, 9));
		return p;
	}
	if (depth == 0 || roll < 70)
		return leaf(g, CLS_BOOL, sc);
	if (roll < 80) {
		Piece a = gen_cond(g, sc, depth - 1), b = gen_cond(g, sc, depth - 1);
		return join(g, chance(g, 50) ? "($ && @)" : "($ || @)", a, b, 1);
	}
	if (roll < 85) {
		Piece a = gen_cond(g, sc, depth - 1);
		return join(g, strcmp(a.text, "true") ? "!($)" : "$", a, a, 1);
	}
	if (roll < 90 && g->budget) {
		g->budget--;
		return reduction(g, CLS_BOOL, sc, depth);
	}
	bool ints = chance(g, 50);
	Piece a = gen_expr(g, ints ? CLS_INT : CLS_FLOAT, sc, depth - 1), b = gen_expr(g, ints ? CLS_INT : CLS_FLOAT, sc, depth - 1);
	return join(g, chance(g, 50) ? "($ < @)" : "($ >= @)", a, b, 1);
}

Piece
gen_expr(Gen *g, Cls c, const Scope *sc, unsigned depth)
{
	if (depth == 0 || chance(g, 12))
		return leaf(g, c, sc);
	switch (c) {
	case CLS_FLOAT:
		return gen_float(g, sc, depth);
	case CLS_INT:
		return gen_int(g, sc, depth);
	case CLS_BOOL:
		return gen_cond(g, sc, depth);
	case CLS_COMPLEX:
		break;
	}
	return gen_complex(g, sc, depth);
}
