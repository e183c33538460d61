/* prove_refute.c: do facts contradict one another?
 *
 * Entries become rows; what does not hang together with the seed is left out. Compound atoms add what
 * they say about themselves (prove_atoms.c), equations between an index or dim and something else are
 * put into the operands of div and mod, equations between atoms into everything. Then linear questions,
 * each with more rows than the one before: as it is; with rows multiplied by products of atoms known
 * not to be negative, as far as that meets a product that occurs; with products of rows. At last,
 * cases: a disjunction is split, each case being such a question again. */
#include "ir/prove_facts.h"
#include "ir/bugs.h"

#include <string.h>

enum { MAX_SUBST = 8 };

static ExprId
subst_leaf(void *user, Graph *g, ExprId e)
{
	const Facts *f = user;
	(void)g;
	for (uint32_t k = 0; k < f->subst.n; k++)
		if (f->subst.at[k].leaf == e)
			return f->subst.at[k].by;
	return e;
}

ExprId
facts_canonical(Facts *f, ExprId e)
{
	if (f->subst.n)
		e = expr_rewrite(f->g, e, subst_leaf, f);
	return index_norm(f->g, e);
}

/* b - a - strict >= 0, or b - a == 0 */
static void
add_difference(Facts *f, ExprId a, ExprId b, int64_t strict, bool eq)
{
	IndexTerm t[2 * INDEX_MAX_TERMS];
	unsigned n = index_terms(f->g, facts_canonical(f, b), t);
	unsigned m = index_terms(f->g, facts_canonical(f, a), t + n);
	for (unsigned k = n; k < n + m; k++) {
		if (t[k].coef == INT64_MIN)
			return;
		t[k].coef = -t[k].coef;
	}
	system_add(&f->sys, t, n + m, -strict, eq);
}

static void
add_entry(Facts *f, const Entry *e)
{
	if (e->kind == ENTRY_RANGE) {
		add_difference(f, e->lo, e->v, 0, false);
		add_difference(f, e->v, e->hi, BUG(range_end_closed) ? 2 : 1, false);
	} else if (e->kind == ENTRY_CMP)
		add_difference(f, e->a, e->b, e->op == OP_LT || (BUG(equality_is_strict) && e->op == OP_LE),
		               e->op == OP_EQ);
}

/* --- relevance: a set of atoms in the system's slots; substitutes would hide how things hang together --- */

static bool atom_known(Facts *f, ExprId e, bool add, unsigned depth);

/* Whether the canonical expression mentions an atom of the set; with add, puts all of its atoms in. */
static bool
mentions(Facts *f, ExprId e, bool add, unsigned depth)
{
	IndexTerm t[INDEX_MAX_TERMS];
	ExprId factor[INDEX_MAX_FACTORS];
	unsigned n = index_terms(f->g, e, t);
	bool any = false;
	for (unsigned k = 0; k < n && (add || !any); k++) {
		unsigned m = t[k].mono ? index_factors(f->g, t[k].mono, factor) : 0;
		for (unsigned j = 0; j < m && (add || !any); j++)
			any |= atom_known(f, factor[j], add, depth);
	}
	return any;
}

static bool
atom_known(Facts *f, ExprId e, bool add, unsigned depth)
{
	enum { DEEP = 12 };
	uint32_t v;
	bool any = system_slot(&f->sys, e, &v);
	if (any || depth > DEEP)
		return any;
	const Expr *p = expr_get(f->g, e);
	for (unsigned k = 0; k < p->narg && p->op != OP_READ && (add || !any); k++) {
		ExprId x = f->g->arg.at[p->arg + k];
		if (expr_get(f->g, x)->dtype == DT_I64)
			any |= mentions(f, x, add, depth + 1);
	}
	if (add)
		system_set_slot(&f->sys, e, 1);
	return any;
}

static bool
entry_mentions(Facts *f, const Entry *e, bool add)
{
	ExprId part[3] = {0};
	if (e->kind == ENTRY_RANGE) {
		part[0] = e->v;
		part[1] = e->lo;
		part[2] = e->hi;
	} else if (e->kind == ENTRY_CMP) {
		part[0] = e->a;
		part[1] = e->b;
	}
	bool any = false;
	for (int k = 0; k < 3 && part[k] && (add || !any); k++)
		any |= mentions(f, index_norm(f->g, part[k]), add, 0);
	return any;
}

/* Rows of all entries that hang together with those from seed on. */
static void
gather(Facts *f, uint32_t seed)
{
	enum { MANY = 512 };
	bool taken[MANY] = {false};
	uint32_t n = f->entry.n < MANY ? f->entry.n : MANY, skip = f->entry.n - n;
	system_clear_slots(&f->sys);
	for (bool grown = true; grown;) {
		grown = false;
		for (uint32_t k = 0; k < n; k++) {
			const Entry *e = &f->entry.at[k + skip];
			bool is_seed = k + skip >= seed;
			if (taken[k] || (!is_seed && !entry_mentions(f, e, false)))
				continue;
			entry_mentions(f, e, true);
			taken[k] = grown = true;
		}
	}
	for (uint32_t k = 0; k < n; k++)
		if (taken[k])
			add_entry(f, &f->entry.at[k + skip]);
}

/* --- atoms --- */

static bool
is_expanded(const Facts *f, ExprId e)
{
	for (uint32_t k = 0; k < f->expanded.n; k++)
		if (f->expanded.at[k] == e)
			return true;
	return false;
}

typedef struct {
	unsigned n;
	ExprId at[48]; /* ascending: parts first */
} AtomList;

static void list_atoms_in(Facts *f, ExprId e, AtomList *list, unsigned depth);

static void
list_atom(Facts *f, ExprId e, AtomList *list, unsigned depth)
{
	enum { DEEP = 12 };
	const Expr *p = expr_get(f->g, e);
	if (p->narg == 0 || p->op == OP_READ || depth > DEEP)
		return;
	unsigned k = list->n;
	while (k > 0 && list->at[k - 1] >= e)
		k--;
	if (k < list->n && list->at[k] == e)
		return;
	if (list->n == sizeof list->at / sizeof *list->at)
		return;
	for (unsigned j = list->n++; j > k; j--)
		list->at[j] = list->at[j - 1];
	list->at[k] = e;
	for (unsigned j = 0; j < p->narg; j++) {
		ExprId x = f->g->arg.at[p->arg + j];
		if (expr_get(f->g, x)->dtype == DT_I64)
			list_atoms_in(f, x, list, depth + 1);
	}
}

static void
list_atoms_in(Facts *f, ExprId e, AtomList *list, unsigned depth)
{
	IndexTerm t[INDEX_MAX_TERMS];
	ExprId factor[INDEX_MAX_FACTORS];
	unsigned n = index_terms(f->g, e, t);
	for (unsigned k = 0; k < n; k++) {
		unsigned m = t[k].mono ? index_factors(f->g, t[k].mono, factor) : 0;
		for (unsigned j = 0; j < m; j++)
			list_atom(f, factor[j], list, depth);
	}
}

/* The compound atoms of the rows of this region. */
static void
list_atoms(Facts *f, AtomList *list)
{
	list->n = 0;
	for (uint32_t i = f->sys.base; i < f->sys.row.n; i++)
		for (unsigned k = 0; k < f->sys.row.at[i].n; k++)
			list_atoms_in(f, f->sys.term.at[f->sys.row.at[i].at + k].mono, list, 0);
}

bool
prove_mentions(const Graph *g, ExprId e, ExprId what, unsigned depth)
{
	enum { DEEP = 24 };
	if (e == what || depth > DEEP)
		return true;
	const Expr *p = expr_get(g, e);
	for (unsigned k = 0; k < p->narg; k++)
		if (g->arg.at[p->arg + k] >= what && prove_mentions(g, g->arg.at[p->arg + k], what, depth + 1))
			return true;
	return false;
}

/* From an equation, leaf == rest; false when there is no such leaf. */
static bool
solve_leaf(Facts *f, const Row *r, Subst *out)
{
	for (unsigned k = 0; k < r->n; k++) {
		IndexTerm t = f->sys.term.at[r->at + k], rest[SYSTEM_MAX_TERMS + 1];
		const Expr *p = expr_get(f->g, t.mono);
		if ((t.coef != 1 && t.coef != -1) || (p->narg && p->op != OP_READ))
			continue;
		unsigned n = 0;
		for (unsigned j = 0; j < r->n; j++) {
			IndexTerm x = f->sys.term.at[r->at + j];
			if (j != k)
				rest[n++] = (IndexTerm){-t.coef * x.coef, x.mono};
		}
		rest[n++] = (IndexTerm){-t.coef * r->c, 0};
		ExprId by = index_from_terms(f->g, rest, n);
		if (prove_mentions(f->g, by, t.mono, 0))
			continue;
		*out = (Subst){t.mono, by};
		return true;
	}
	return false;
}

/* Puts equations for leaves to use inside compound atoms. True when there is a new one. */
static bool
find_substitutes(Facts *f, const AtomList *atoms)
{
	for (uint32_t i = f->sys.base; i < f->sys.row.n && f->subst.n < MAX_SUBST; i++) {
		Subst s;
		if (!f->sys.row.at[i].eq || f->sys.row.at[i].dead || !solve_leaf(f, &f->sys.row.at[i], &s))
			continue;
		bool used = false;
		for (unsigned k = 0; k < atoms->n && !used; k++)
			used = prove_mentions(f->g, atoms->at[k], s.leaf, 0);
		if (!used)
			continue;
		uint32_t first = f->subst.n;
		vec_push(f->arena, &f->subst, s);
		for (uint32_t k = 0; k < first; k++) {
			Facts one = {.g = f->g, .subst = {&f->subst.at[first], 1, 1}};
			f->subst.at[k].by = expr_rewrite(f->g, f->subst.at[k].by, subst_leaf, &one);
		}
		return true;
	}
	return false;
}

static bool
expand_atoms(Facts *f, const AtomList *atoms, unsigned depth)
{
	bool any = false;
	for (unsigned k = 0; k < atoms->n; k++)
		if (!is_expanded(f, atoms->at[k]))
			any |= prove_expand_atom(f, atoms->at[k], depth);
	return any;
}

/* --- products --- */

/* Whether a row says it, or the rows do together. */
static bool
is_nonnegative(Facts *f, ExprId atom)
{
	System *s = &f->sys;
	for (uint32_t i = s->base; i < s->row.n; i++) {
		const Row *r = &s->row.at[i];
		if (!r->dead && r->n == 1 && s->term.at[r->at].mono == atom && s->term.at[r->at].coef > 0 &&
		    (r->c <= 0 || r->eq))
			return r->c <= 0;
	}
	if (f->steps == 0)
		return false;
	f->steps--;
	Row negative = {.at = s->term.n, .n = 1, .c = -1};
	vec_push(s->arena, &s->term, ((IndexTerm){-1, atom}));
	vec_push(s->arena, &s->row, negative);
	bool yes = system_infeasible(s);
	s->row.n--;
	s->term.n--;
	return yes;
}

/* The atoms of mono are all known not to be negative; answers are kept in a list. */
typedef struct {
	unsigned n;
	ExprId atom[64];
	bool yes[64];
} Signs;

static bool
atom_sign(Facts *f, Signs *s, ExprId atom)
{
	for (unsigned k = 0; k < s->n; k++)
		if (s->atom[k] == atom)
			return s->yes[k];
	if (s->n == sizeof s->atom / sizeof *s->atom)
		return false;
	bool yes = is_nonnegative(f, atom);
	s->atom[s->n] = atom;
	s->yes[s->n++] = yes;
	return yes;
}

static bool
mono_sign(Facts *f, Signs *s, ExprId mono)
{
	ExprId factor[INDEX_MAX_FACTORS];
	unsigned n = index_factors(f->g, mono, factor);
	for (unsigned k = 0; k < n; k++)
		if (!atom_sign(f, s, factor[k]))
			return false;
	return true;
}

typedef struct {
	unsigned n;
	ExprId at[64];
} Targets;

/* The products that occur; they are also put into the slots. */
static void
list_targets(Facts *f, Targets *to)
{
	System *s = &f->sys;
	uint32_t v;
	to->n = 0;
	system_clear_slots(s);
	for (uint32_t i = s->base; i < s->row.n; i++)
		for (unsigned k = 0; k < s->row.at[i].n && !s->row.at[i].dead; k++) {
			ExprId m = s->term.at[s->row.at[i].at + k].mono;
			if (expr_get(s->g, m)->op != OP_MUL || system_slot(s, m, &v))
				continue;
			system_set_slot(s, m, 1);
			if (to->n < sizeof to->at / sizeof *to->at)
				to->at[to->n++] = m;
		}
}

/* row * u for every u that turns a mono of the row into one of the targets. */
static void
scale_row(Facts *f, uint32_t i, const Targets *to, Signs *signs)
{
	System *s = &f->sys;
	ExprId used[32];
	unsigned nused = 0;
	Row r = s->row.at[i];
	for (unsigned k = 0; k < r.n; k++)
		for (unsigned j = 0; j < to->n; j++) {
			ExprId u = index_mono_div(s->g, to->at[j], s->term.at[r.at + k].mono);
			bool again = !u || nused == sizeof used / sizeof *used;
			for (unsigned m = 0; m < nused && !again; m++)
				again = used[m] == u;
			if (again || (!r.eq && !mono_sign(f, signs, u)))
				continue;
			used[nused++] = u;
			system_add_scaled(s, i, u);
		}
}

static bool
is_target(System *s, ExprId mono)
{
	uint32_t v;
	return system_slot(s, mono, &v);
}

static void
multiply_rows(Facts *f, uint32_t end)
{
	enum { MOST = 40 };
	System *s = &f->sys;
	uint32_t first = end - s->base > MOST ? end - MOST : s->base;
	for (uint32_t i = first; i < end; i++)
		for (uint32_t j = i; j < end; j++)
			if (!s->row.at[i].dead && !s->row.at[j].dead && !s->row.at[i].eq && !s->row.at[j].eq)
				system_add_product(s, i, j, is_target);
}

static bool
ask(Facts *f)
{
	if (f->steps == 0)
		return false;
	f->steps--;
	return system_infeasible(&f->sys);
}

static bool
rows_contradict(Facts *f)
{
	System *s = &f->sys;
	Targets to;
	if (ask(f))
		return true;
	system_solve(s);
	if (ask(f))
		return true;
	uint32_t original = s->row.n;
	Signs signs = {0};
	for (int round = 0; round < 3; round++) {
		list_targets(f, &to);
		if (to.n == 0)
			return false;
		uint32_t end = s->row.n;
		for (uint32_t i = s->base; i < end; i++)
			if (!s->row.at[i].dead)
				scale_row(f, i, &to, &signs);
		if (s->row.n == end)
			break;
		if (ask(f))
			return true;
	}
	uint32_t end = s->row.n;
	list_targets(f, &to);
	multiply_rows(f, original);
	return s->row.n > end && ask(f);
}

/* --- cases --- */

static bool
case_contradicts(Facts *f, ExprId cond, bool positive, uint32_t seed, unsigned depth)
{
	uint32_t mark = facts_mark(f);
	facts_push_literal(f, cond, positive);
	bool yes = prove_refute(f, seed, depth);
	facts_pop(f, mark);
	return yes;
}

/* The two cases of a disjunctive entry are refuted. */
static bool
cases_contradict(Facts *f, const Entry *e, uint32_t seed, unsigned depth)
{
	Graph *g = f->g;
	const Expr *p = expr_get(g, e->cond);
	ExprId a = expr_arg(g, e->cond, 0), b = expr_arg(g, e->cond, 1);
	if (p->op == OP_SELECT) {
		ExprId c = expr_arg(g, e->cond, 2), no = expr_unary(g, OP_NOT, a);
		ExprId yes = expr_binary(g, OP_AND, a, e->positive ? b : expr_unary(g, OP_NOT, b));
		no = expr_binary(g, OP_AND, no, e->positive ? c : expr_unary(g, OP_NOT, c));
		return case_contradicts(f, yes, true, seed, depth) && case_contradicts(f, no, true, seed, depth);
	}
	if (p->op == OP_EQ || p->op == OP_NE)
		return case_contradicts(f, expr_binary(g, OP_LT, a, b), true, seed, depth) &&
		       case_contradicts(f, expr_binary(g, OP_LT, b, a), true, seed, depth);
	return case_contradicts(f, a, e->positive, seed, depth) && case_contradicts(f, b, e->positive, seed, depth);
}

static bool
split_cases(Facts *f, uint32_t seed, unsigned depth)
{
	for (uint32_t k = f->entry.n; k-- > 0 && f->steps > 0;) {
		Entry e = f->entry.at[k];
		if (e.kind != ENTRY_ANY || e.split)
			continue;
		f->entry.at[k].split = true;
		bool yes = cases_contradict(f, &e, seed, depth);
		f->entry.at[k].split = false;
		if (yes)
			return true;
	}
	return false;
}

static bool
literals_contradict(const Facts *f)
{
	for (uint32_t i = 0; i < f->entry.n; i++) {
		const Entry *a = &f->entry.at[i];
		if (a->kind != ENTRY_BOOL)
			continue;
		const Expr *p = expr_get(f->g, a->cond);
		if (p->op == OP_CONST && (p->imm.i != 0) != a->positive)
			return true;
		for (uint32_t j = i + 1; j < f->entry.n; j++)
			if (f->entry.at[j].kind == ENTRY_BOOL && f->entry.at[j].cond == a->cond &&
			    f->entry.at[j].positive != a->positive)
				return true;
	}
	return false;
}

bool
prove_refute(Facts *f, uint32_t seed, unsigned depth)
{
	enum { ROUNDS = 10 };
	if (f->steps == 0)
		return false;
	if (literals_contradict(f))
		return true;
	uint32_t mark = f->entry.n, nexpanded = f->expanded.n, nsubst = f->subst.n;
	Subst saved[MAX_SUBST]; /* new ones are put into the old ones, for as long as they hold */
	if (nsubst)
		memcpy(saved, f->subst.at, nsubst * sizeof *saved);
	SystemMark outer = system_enter(&f->sys);
	AtomList atoms;
	bool yes = false;
	for (int round = 0; round < ROUNDS; round++) {
		gather(f, seed);
		yes = f->sys.absurd;
		if (yes)
			break;
		list_atoms(f, &atoms);
		bool more = depth > 0 && expand_atoms(f, &atoms, depth);
		if (!more && atoms.n) {
			system_solve(&f->sys);
			more = find_substitutes(f, &atoms);
		}
		if (!more || f->sys.absurd)
			break;
		system_leave(&f->sys, outer);
		outer = system_enter(&f->sys);
	}
	yes = yes || rows_contradict(f);
	system_leave(&f->sys, outer);
	yes = yes || (depth > 0 && split_cases(f, seed, depth - 1));
	f->entry.n = mark;
	f->expanded.n = nexpanded;
	f->subst.n = nsubst;
	if (nsubst)
		memcpy(f->subst.at, saved, nsubst * sizeof *saved);
	return yes;
}
