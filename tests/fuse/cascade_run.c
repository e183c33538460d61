/* cascade_run.c: see cascade_run.h. */
#include "cascade_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "real_eval.h"

typedef struct {
	CascadeRun *r;
	int64_t at;                      /* of the stream */
	unsigned nred_base;              /* axes from this one on are streamed */
	const double *a, *b;             /* states */
	const double *member;            /* values of members, by place; of the definition */
	double acc;
	bool touched;
} Point;

typedef struct {
	double at[MAX_ACCS];
} State;

uint32_t
run_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

static int
member_index(const CascadeRun *r, TensorId t)
{
	for (unsigned k = 0; k < r->c.nmember; k++)
		if (r->c.member[k].tensor == t)
			return (int)k;
	return -1;
}

static double
point_leaf(void *user, const Graph *g, ExprId e);

/* A pointwise node read at the point: its axes are what it is read at, so it is followed by name. */
static double
read_value(Point *p, const Graph *g, ExprId e)
{
	const Expr *x = expr_get(g, e);
	int m = member_index(p->r, x->ref);
	if (m >= 0)
		return p->member[m];
	const Node *n = tensor_node(g, x->ref);
	if (n) {
		Point inner = *p;
		inner.nred_base = n->npar;
		for (unsigned k = 0; k < x->narg; k++) {
			const Expr *s = expr_get(g, expr_arg(g, e, k));
			if (s->op == OP_AXIS && s->ref >= p->nred_base)
				inner.nred_base = k;
		}
		return real_eval(g, n->body, point_leaf, &inner);
	}
	for (unsigned k = 0; k < x->narg; k++) {
		const Expr *s = expr_get(g, expr_arg(g, e, k));
		if (s->op == OP_AXIS && s->ref >= p->nred_base)
			return p->r->data[x->ref][p->at];
	}
	return p->r->data[x->ref][0];
}

static double
point_leaf(void *user, const Graph *g, ExprId e)
{
	Point *p = user;
	const Expr *x = expr_get(g, e);
	switch ((int)x->op) {
	case OP_AXIS: return x->ref >= p->nred_base ? (double)p->at : 0;
	case OP_DIM: return g->dim.at[x->ref].hint ? (double)g->dim.at[x->ref].hint : p->r->n;
	case OP_ACC: return p->acc;
	case OP_TOUCHED: return p->touched;
	case OP_READ: return read_value(p, g, e);
	case OP_IVAR:
		if (x->ref >= STATE_B && x->ref < ANCHOR_OLD)
			return p->b[x->ref - STATE_B];
		if (x->ref >= STATE_A && x->ref < STATE_B)
			return p->a[x->ref - STATE_A];
	}
	fail_msg("a leaf that no state has: %s", op_info[x->op].text);
	return NAN;
}

void
run_begin(CascadeRun *r, Arena *a, const char *text, const CascadeOptions *o)
{
	const char *error = NULL;
	TensorId member[64];
	unsigned n = 0;
	memset(r, 0, sizeof *r);
	r->arena = a;
	r->g = graph_read(a, names_new(a), text, strlen(text), &error);
	if (!r->g || !graph_verify(r->g, a, &error))
		fail_msg("%s in\n%s", error, text);
	for (uint32_t k = 0; k < r->g->node.n; k++)
		if (r->g->node.at[k].monoid != MON_NONE)
			member[n++] = r->g->node.at[k].out;
	r->data = arena_alloc(a, r->g->tensor.n * sizeof *r->data);
	r->derived = cascade_derive(r->g, a, member, n, o, &r->c, &r->why);
}

const char *
run_text(const CascadeRun *r)
{
	Text t;
	text_init(&t, r->arena);
	if (r->derived)
		cascade_print(r->g, &r->c, &t);
	else
		refusal_print(r->g, &r->why, &t);
	return text_get(&t);
}

/* cmocka cuts long messages short. */
void
run_fail(const CascadeRun *r, const char *fmt, ...)
{
	va_list list;
	va_start(list, fmt);
	vfprintf(stderr, fmt, list);
	va_end(list);
	fprintf(stderr, "\n%s", run_text(r));
	fail();
}

double *
run_input(const CascadeRun *r, const char *name)
{
	for (TensorId t = 1; t < r->g->tensor.n; t++)
		if (strcmp(name_text(r->g->names, r->g->tensor.at[t].name), name) == 0)
			return r->data[t];
	fail_msg("no tensor %s", name);
	return NULL;
}

unsigned
run_member(const CascadeRun *r, const char *name)
{
	for (unsigned k = 0; k < r->c.nmember; k++)
		if (strcmp(name_text(r->g->names, r->g->tensor.at[r->c.member[k].tensor].name), name) == 0)
			return k;
	fail_msg("no member %s", name);
	return 0;
}

/* --- the definition --- */

static double
fold(Monoid m, double a, double b, bool first)
{
	switch (m) {
	case MON_SUM: return first ? b : a + b;
	case MON_PROD: return first ? b : a * b;
	case MON_MAX: return first ? b : isnan(a) || isnan(b) ? NAN : fmax(a, b);
	case MON_MIN: return first ? b : isnan(a) || isnan(b) ? NAN : fmin(a, b);
	case MON_ANY: return (!first && a != 0) || b != 0;
	case MON_ALL: return (first || a != 0) && b != 0;
	case MON_NONE: case MON_ARGMAX: case MON_ARGMIN: break;
	}
	abort(); /* no test has these */
}

static bool
is_in(const Point *p, const Node *n)
{
	Point q = *p;
	return !n->guard || real_eval(p->r->g, n->guard, point_leaf, &q) != 0;
}

void
run_definition(CascadeRun *r)
{
	for (unsigned k = 0; k < r->c.nmember; k++) {
		const Node *n = tensor_node(r->g, r->c.member[k].tensor);
		Point p = {.r = r, .nred_base = n->npar, .member = r->want};
		double units[] = {NAN, 0, 1, 0, 1};
		p.acc = units[monoid_info[n->monoid].unit];
		long double sum = 0, size = 0;
		for (p.at = 0; p.at < (int64_t)r->n; p.at++) {
			if (!is_in(&p, n))
				continue;
			double t = real_eval(r->g, n->body, point_leaf, &p);
			p.acc = fold(n->monoid, p.acc, t, !p.touched);
			p.touched = true;
			sum += t;
			size += fabs(t);
		}
		if (n->monoid == MON_SUM)
			p.acc = (double)sum;
		r->want[k] = n->finish ? real_eval(r->g, n->finish, point_leaf, &p) : p.acc;
		r->size[k] = (double)size;
	}
}

/* --- what derivation says of the definition --- */

static bool
is_kept(const CascadeRun *r, int64_t at)
{
	Point p = {.r = (CascadeRun *)r, .at = at, .nred_base = r->c.npar, .member = r->want};
	return !r->c.guard || real_eval(r->g, r->c.guard, point_leaf, &p) != 0;
}

unsigned
run_elements(const CascadeRun *r)
{
	unsigned n = 0;
	for (unsigned k = 0; k < r->n; k++)
		n += is_kept(r, k);
	return n;
}

static double
sum_of_terms(const CascadeRun *r, unsigned member, bool with_h)
{
	const CascadeMember *m = &r->c.member[member];
	Point p = {.r = (CascadeRun *)r, .nred_base = r->c.npar, .member = r->want};
	double sum = m->nterms ? 0 : r->size[member];
	for (p.at = 0; p.at < (int64_t)r->n; p.at++)
		for (unsigned k = 0; k < m->nterms && is_kept(r, p.at); k++)
			sum += fabs(real_eval(r->g, m->terms_g[k], point_leaf, &p) *
			            (with_h ? real_eval(r->g, m->terms_h[k], point_leaf, &p) : 1));
	return sum;
}

double
run_terms(const CascadeRun *r, unsigned member)
{
	return sum_of_terms(r, member, true);
}

double
run_factors(const CascadeRun *r, unsigned member)
{
	return sum_of_terms(r, member, false);
}

/* --- states --- */

typedef struct {
	CascadeRun *r;
	const CascadePass *p;
	ExprId init[MAX_ACCS], lift[MAX_ACCS], step[MAX_ACCS], step1[MAX_ACCS], merge[MAX_ACCS], merge1[MAX_ACCS];
	uint64_t seed;
	const int64_t *at; /* elements in the order of the tree */
} Machine;

static void
compute(Machine *m, const ExprId *e, const State *a, const State *b, int64_t at, State *out)
{
	Point p = {.r = m->r, .at = at, .nred_base = m->r->c.npar, .a = a ? a->at : NULL, .b = b ? b->at : NULL,
	           .member = m->r->got};
	State s;
	for (unsigned k = 0; k < m->p->nacc; k++)
		s.at[k] = (m->r->typed ? typed_eval : real_eval)(m->r->g, e[k], point_leaf, &p);
	*out = s;
}

static bool
holds_any(const Machine *m, const State *s)
{
	return m->p->seen < 0 || s->at[m->p->seen] != 0;
}

static bool
is_element(Machine *m, int64_t at)
{
	Point p = {.r = m->r, .at = at, .nred_base = m->r->c.npar, .member = m->r->got};
	return !m->r->c.guard || real_eval(m->r->g, m->r->c.guard, point_leaf, &p) != 0;
}

/* Of elements [lo, hi): by steps, or from two parts, now and then with an empty one between. */
static State
state_of(Machine *m, unsigned lo, unsigned hi)
{
	State s, t;
	compute(m, m->init, NULL, NULL, 0, &s);
	if (hi - lo <= 1 + run_random(&m->seed) % 8) {
		for (unsigned k = lo; k < hi; k++) {
			if (!is_element(m, m->at[k]))
				continue;
			if (run_random(&m->seed) % 3 == 0) {
				compute(m, m->lift, NULL, NULL, m->at[k], &t);
				compute(m, m->merge, &s, &t, 0, &s);
			} else {
				compute(m, m->p->seen >= 0 && holds_any(m, &s) ? m->step1 : m->step, &s, NULL, m->at[k], &s);
			}
		}
		return s;
	}
	unsigned mid = lo + run_random(&m->seed) % (hi - lo + 1);
	State left = state_of(m, lo, mid);
	if (run_random(&m->seed) % 4 == 0)
		compute(m, m->merge, &left, &s, 0, &left);
	State right = state_of(m, mid, hi);
	bool full = m->p->seen >= 0 && holds_any(m, &left) && holds_any(m, &right);
	compute(m, full ? m->merge1 : m->merge, &left, &right, 0, &t);
	return t;
}

static void
shuffle(CascadeRun *r, uint64_t *seed, int64_t *at)
{
	for (unsigned k = 0; k < r->n; k++)
		at[k] = k;
	for (unsigned k = r->n; k > 1; k--) {
		unsigned j = run_random(seed) % k;
		int64_t t = at[k - 1];
		at[k - 1] = at[j];
		at[j] = t;
	}
}

static Machine *
machine_new(CascadeRun *r, unsigned pass, uint64_t seed)
{
	const CascadePass *p = &r->c.pass[pass];
	Machine *m = ARENA_NEW(r->arena, Machine);
	int64_t *at = ARENA_ARRAY(r->arena, int64_t, MAX_ELEMENTS);
	m->r = r;
	m->p = p;
	m->seed = seed + pass;
	m->at = at;
	shuffle(r, &m->seed, at);
	cascade_init(r->g, p, m->init);
	cascade_lift(r->g, r->arena, p, m->lift);
	cascade_step(r->g, r->arena, p, STATE_A, false, m->step);
	cascade_step(r->g, r->arena, p, STATE_A, true, m->step1);
	cascade_merge(r->g, r->arena, p, STATE_A, STATE_B, false, m->merge);
	cascade_merge(r->g, r->arena, p, STATE_A, STATE_B, true, m->merge1);
	return m;
}

static void
finish_pass(CascadeRun *r, unsigned pass, const State *s, double *out)
{
	for (unsigned k = 0; k < r->c.nmember; k++) {
		Point q = {.r = r, .nred_base = r->c.npar, .a = s->at, .member = r->got};
		if (r->c.member[k].pass == pass)
			out[k] = (r->typed ? typed_eval : real_eval)(r->g, r->c.member[k].value, point_leaf, &q);
	}
}

void
run_merged(CascadeRun *r, uint64_t seed)
{
	for (unsigned pass = 0; pass < r->c.npass; pass++) {
		Machine *m = machine_new(r, pass, seed);
		State s = state_of(m, 0, r->n);
		finish_pass(r, pass, &s, r->got);
	}
}

static bool
same_state(const Machine *m, const State *a, const State *b)
{
	return memcmp(a->at, b->at, m->p->nacc * sizeof *a->at) == 0;
}

bool
run_laws(CascadeRun *r, uint64_t seed, double *right)
{
	bool unit = true;
	for (unsigned pass = 0; pass < r->c.npass; pass++) {
		Machine *m = machine_new(r, pass, seed);
		unsigned i = run_random(&m->seed) % (r->n + 1), j = i + run_random(&m->seed) % (r->n - i + 1);
		State a = state_of(m, 0, i), b = state_of(m, i, j), c = state_of(m, j, r->n), none, x, y;
		compute(m, m->init, NULL, NULL, 0, &none);
		const State *one[3] = {&a, &b, &c};
		for (int k = 0; k < 3; k++) {
			compute(m, m->merge, one[k], &none, 0, &x);
			compute(m, m->merge, &none, one[k], 0, &y);
			unit = unit && same_state(m, one[k], &x) && same_state(m, one[k], &y);
		}
		compute(m, m->merge, &a, &b, 0, &x);
		compute(m, m->merge, &x, &c, 0, &x);
		compute(m, m->merge, &b, &c, 0, &y);
		compute(m, m->merge, &a, &y, 0, &y);
		finish_pass(r, pass, &y, right);
		finish_pass(r, pass, &x, r->got);
	}
	return unit;
}
