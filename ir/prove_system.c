/* prove_system.c: see prove_system.h. */
#include "ir/prove_system.h"
#include "ir/bugs.h"

#include <string.h>

#include "ir/simplex.h"

enum { COEF_BITS = 61 };

SystemMark
system_enter(System *s)
{
	SystemMark m = {s->row.n, s->term.n, s->base, s->absurd};
	s->base = s->row.n;
	s->absurd = false;
	return m;
}

void
system_leave(System *s, SystemMark m)
{
	s->row.n = m.row;
	s->term.n = m.term;
	s->base = m.base;
	s->absurd = m.absurd;
}

void
system_clear_slots(System *s)
{
	s->epoch++;
}

static void
reach_slot(System *s, ExprId e)
{
	if (e >= s->slot.n)
		vec_grow(s->arena, &s->slot, e + 1 - s->slot.n);
}

bool
system_slot(System *s, ExprId e, uint32_t *value)
{
	if (e >= s->slot.n || s->slot.at[e].epoch != s->epoch)
		return false;
	*value = s->slot.at[e].value;
	return true;
}

void
system_set_slot(System *s, ExprId e, uint32_t value)
{
	reach_slot(s, e);
	s->slot.at[e] = (StampedSlot){s->epoch, value};
}

static bool
small(int64_t v)
{
	return v < 1ll << COEF_BITS && v > -(1ll << COEF_BITS);
}

/* Sorted insertion; false when it does not fit. */
static bool
collect(IndexTerm *to, unsigned *n, int64_t *c, IndexTerm t)
{
	if (!small(t.coef))
		return false;
	if (!t.mono)
		return !__builtin_add_overflow(*c, t.coef, c) && small(*c);
	unsigned k = *n;
	while (k > 0 && to[k - 1].mono > t.mono)
		k--;
	if (k > 0 && to[k - 1].mono == t.mono) {
		to[k - 1].coef += t.coef;
		if (to[k - 1].coef == 0) {
			memmove(to + k - 1, to + k, (*n - k) * sizeof *to);
			--*n;
			return true;
		}
		return small(to[k - 1].coef);
	}
	if (t.coef == 0)
		return true;
	if (*n == SYSTEM_MAX_TERMS)
		return false;
	memmove(to + k + 1, to + k, (*n - k) * sizeof *to);
	to[k] = t;
	++*n;
	return true;
}

static bool
same_terms(const System *s, const Row *r, const IndexTerm *t, unsigned n)
{
	if (r->n != n)
		return false;
	for (unsigned k = 0; k < n; k++)
		if (s->term.at[r->at + k].coef != t[k].coef || s->term.at[r->at + k].mono != t[k].mono)
			return false;
	return true;
}

/* A row with the same terms says as much already, or is made to say more. */
static bool
known(System *s, const IndexTerm *t, unsigned n, int64_t c, bool eq, bool *stronger)
{
	for (uint32_t i = s->base; i < s->row.n; i++) {
		Row *r = &s->row.at[i];
		if (r->dead || r->eq != eq || !same_terms(s, r, t, n))
			continue;
		if (eq && r->c != c)
			s->absurd = true;
		*stronger = !eq && c < r->c;
		if (*stronger)
			r->c = c;
		return true;
	}
	return false;
}

RowAdded
system_add(System *s, const IndexTerm *t, unsigned n, int64_t c, bool eq)
{
	IndexTerm own[SYSTEM_MAX_TERMS];
	unsigned count = 0;
	int64_t d = 0;
	for (unsigned k = 0; k < n; k++)
		if (!collect(own, &count, &c, t[k]))
			return ROW_LEFT_OUT;
	if (!small(c))
		return ROW_LEFT_OUT;
	for (unsigned k = 0; k < count; k++)
		d = index_gcd(own[k].coef, d);
	if (count == 0 || (eq && c % d != 0)) {
		s->absurd |= eq ? c != 0 : c < 0;
		return ROW_SAID;
	}
	if (eq && own[0].coef < 0) {
		d = -d;
		c = -c;
	}
	for (unsigned k = 0; k < count; k++)
		own[k].coef /= d;
	c = index_floor_div(c, d < 0 ? -d : d) - BUG(tightened_too_far);
	bool stronger = false;
	if (known(s, own, count, c, eq, &stronger))
		return stronger ? ROW_NEW : ROW_SAID;
	if (s->row.n - s->base >= SYSTEM_MAX_ROWS)
		return ROW_LEFT_OUT;
	Row r = {s->term.n, count, c, eq, false};
	vec_grow(s->arena, &s->term, count);
	memcpy(s->term.at + r.at, own, count * sizeof *own);
	vec_push(s->arena, &s->row, r);
	return ROW_NEW;
}

static unsigned
degree(const Graph *g, ExprId mono)
{
	ExprId f[INDEX_MAX_FACTORS];
	return index_factors(g, mono, f);
}

/* One term of a product; false when it does not fit. */
static bool
multiply(System *s, IndexTerm a, IndexTerm b, IndexTerm *out)
{
	out->mono = a.mono && b.mono ? index_mono_mul(s->g, a.mono, b.mono) : a.mono ? a.mono : b.mono;
	if (a.mono && b.mono && (!out->mono || degree(s->g, out->mono) > SYSTEM_MAX_DEGREE))
		return false;
	return !__builtin_mul_overflow(a.coef, b.coef, &out->coef) && small(out->coef);
}

RowAdded
system_add_scaled(System *s, uint32_t row, ExprId mono)
{
	IndexTerm t[SYSTEM_MAX_TERMS + 1];
	Row r = s->row.at[row];
	for (unsigned k = 0; k < r.n; k++)
		if (!multiply(s, s->term.at[r.at + k], (IndexTerm){1, mono}, &t[k]))
			return ROW_LEFT_OUT;
	t[r.n] = (IndexTerm){r.c, mono};
	return system_add(s, t, r.n + 1, 0, r.eq);
}

RowAdded
system_add_product(System *s, uint32_t a, uint32_t b, bool (*wanted)(System *s, ExprId mono))
{
	enum { MOST = 7 };
	IndexTerm t[MOST * MOST];
	Row x = s->row.at[a], y = s->row.at[b];
	unsigned n = 0;
	if (x.n + 1 > MOST || y.n + 1 > MOST)
		return ROW_LEFT_OUT;
	for (unsigned i = 0; i <= x.n; i++)
		for (unsigned j = 0; j <= y.n; j++) {
			IndexTerm l = i < x.n ? s->term.at[x.at + i] : (IndexTerm){x.c, 0};
			IndexTerm r = j < y.n ? s->term.at[y.at + j] : (IndexTerm){y.c, 0};
			if (!multiply(s, l, r, &t[n]) || (i < x.n && j < y.n && !wanted(s, t[n].mono)))
				return ROW_LEFT_OUT;
			n++;
		}
	return system_add(s, t, n, 0, x.eq || y.eq);
}

/* --- equations --- */

static bool
divides(Graph *g, ExprId mono, ExprId atom)
{
	ExprId f[INDEX_MAX_FACTORS];
	unsigned n = index_factors(g, mono, f);
	for (unsigned k = 0; k < n; k++)
		if (f[k] == atom)
			return true;
	return false;
}

/* An atom that occurs in the row once, alone, with coefficient 1 or -1; 0 when there is none. */
static ExprId
solvable_atom(System *s, const Row *r, int64_t *coef)
{
	for (unsigned k = 0; k < r->n; k++) {
		IndexTerm t = s->term.at[r->at + k];
		if ((t.coef != 1 && t.coef != -1) || expr_get(s->g, t.mono)->op == OP_MUL)
			continue;
		bool alone = true;
		for (unsigned j = 0; j < r->n && alone; j++)
			alone = j == k || !divides(s->g, s->term.at[r->at + j].mono, t.mono);
		*coef = t.coef;
		if (alone)
			return t.mono;
	}
	return 0;
}

/* Replaces one factor `atom` in every term of row i, atom = -sign * (the other terms of by). True when
 * the row was rewritten, false when it is without the atom or does not fit. */
static bool
substitute(System *s, uint32_t i, ExprId atom, const Row *by, int64_t sign)
{
	IndexTerm t[SYSTEM_MAX_TERMS * 2];
	Row r = s->row.at[i];
	unsigned n = 0;
	bool found = false;
	for (unsigned k = 0; k < r.n; k++) {
		IndexTerm x = s->term.at[r.at + k];
		if (!divides(s->g, x.mono, atom)) {
			if (n == SYSTEM_MAX_TERMS * 2)
				return false;
			t[n++] = x;
			continue;
		}
		found = true;
		IndexTerm rest = {x.coef, x.mono == atom ? 0 : index_mono_div(s->g, x.mono, atom)};
		for (unsigned j = 0; j <= by->n; j++) {
			IndexTerm y = j < by->n ? s->term.at[by->at + j] : (IndexTerm){by->c, 0};
			y.coef *= -sign;
			if (y.mono == atom)
				continue;
			if (n == SYSTEM_MAX_TERMS * 2 || !multiply(s, rest, y, &t[n]))
				return false;
			n++;
		}
	}
	if (!found)
		return false;
	s->row.at[i].dead = true;
	bool done = system_add(s, t, n, r.c, r.eq) != ROW_LEFT_OUT;
	s->row.at[i].dead = done;
	return done;
}

static void
eliminate(System *s, uint32_t at, ExprId atom, int64_t sign)
{
	Row by = s->row.at[at];
	for (uint32_t i = s->base; i < s->row.n && !s->absurd; i++)
		if (i != at && !s->row.at[i].dead)
			substitute(s, i, atom, &by, sign); /* what it adds comes later in this loop */
}

static void
join_opposites(System *s)
{
	for (uint32_t i = s->base; i < s->row.n; i++)
		for (uint32_t j = i + 1; j < s->row.n; j++) {
			Row a = s->row.at[i], b = s->row.at[j];
			bool opposite = !a.dead && !b.dead && !a.eq && !b.eq && a.n == b.n && a.c == -b.c;
			for (unsigned k = 0; k < a.n && opposite; k++) {
				IndexTerm x = s->term.at[a.at + k], y = s->term.at[b.at + k];
				opposite = x.mono == y.mono && x.coef == -y.coef;
			}
			if (!opposite)
				continue;
			IndexTerm t[SYSTEM_MAX_TERMS];
			memcpy(t, s->term.at + a.at, a.n * sizeof *t);
			s->row.at[i].dead = s->row.at[j].dead = true;
			system_add(s, t, a.n, a.c, true);
			break;
		}
}

void
system_solve(System *s)
{
	enum { MAX_SOLVED = 24, MOST_TERMS = 8 };
	join_opposites(s);
	ExprId done[MAX_SOLVED];
	unsigned ndone = 0;
	for (uint32_t i = s->base; i < s->row.n && ndone < MAX_SOLVED && !s->absurd; i++) {
		Row *r = &s->row.at[i];
		int64_t sign = 0;
		if (r->dead || !r->eq || r->n > MOST_TERMS)
			continue;
		ExprId atom = solvable_atom(s, r, &sign);
		for (unsigned k = 0; k < ndone; k++)
			if (done[k] == atom)
				atom = 0;
		if (!atom)
			continue;
		done[ndone++] = atom;
		eliminate(s, i, atom, sign);
		if (ndone % 4 == 0)
			join_opposites(s);
	}
}

/* --- the question --- */

static unsigned
number_columns(System *s, unsigned *rows)
{
	uint32_t v;
	unsigned cols = 0;
	system_clear_slots(s);
	*rows = 0;
	for (uint32_t i = s->base; i < s->row.n; i++) {
		const Row *r = &s->row.at[i];
		*rows += !r->dead;
		for (unsigned k = 0; k < r->n && !r->dead; k++) {
			ExprId m = s->term.at[r->at + k].mono;
			if (!system_slot(s, m, &v))
				system_set_slot(s, m, cols++);
		}
	}
	return cols;
}

#define room(s, v, count) \
	((count) > (v)->n ? (void)vec_grow((s)->arena, (v), (count) - (v)->n) : (void)0)

bool
system_infeasible(System *s)
{
	enum { MOST_COLUMNS = 400 };
	if (s->absurd)
		return true;
	unsigned rows, cols = number_columns(s, &rows), at = 0;
	if (cols > MOST_COLUMNS)
		return false;
	room(s, &s->tableau, rows * (cols + 1));
	room(s, &s->ids, rows + cols);
	room(s, &s->eq, rows);
	if (rows)
		memset(s->tableau.at, 0, (size_t)rows * (cols + 1) * sizeof *s->tableau.at);
	for (uint32_t i = s->base; i < s->row.n; i++) {
		const Row *r = &s->row.at[i];
		if (r->dead)
			continue;
		int64_t *to = s->tableau.at + (size_t)at * (cols + 1);
		for (unsigned k = 0; k < r->n; k++) {
			uint32_t c = 0;
			system_slot(s, s->term.at[r->at + k].mono, &c);
			to[c] = s->term.at[r->at + k].coef;
		}
		to[cols] = r->c;
		s->eq.at[at++] = r->eq;
	}
	Simplex lp = {rows, cols, s->tableau.at, s->eq.at, s->ids.at, s->ids.at + rows};
	return simplex_infeasible(&lp);
}
