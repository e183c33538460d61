/* once_plan.c: whether all that is folded along the lanes of a row can be folded as it goes by (once.h).
 *
 * in     a kernel by rows of blocks of threads
 * out    the cascade of its folds (passes/fuse/algebra.h), over the region's axes
 *
 * It takes folds along one loop, of all that it has, in a cascade of one pass, which the algebra derives; what they read
 * of the row besides is what was there before any of them. */
#include "passes/schedule/rows/once.h"

#include "passes/expr_map.h"
#include "passes/schedule/rows/plan.h"
#include "passes/schedule/schedule.h"

#include <string.h>

typedef struct {
	Graph *g;
	Arena *scratch;
	const Rows *r;
	RowsOnce *out;
	unsigned q;  /* the cascade's member whose axes are meant */
	bool reads;  /* an expression reads a member of the kernel */
} Planning;

/* --- which folds --- */

/* Whether m is a fold of the phase into one value, of all terms, that nothing can go wrong with. */
static bool
is_plain(const Graph *g, const RowMember *m, const bool *faulty)
{
	const Node *n = &m->node;
	DType t = (DType)expr_get(g, n->body)->dtype;
	bool folds = rows_is_folded(m) && !m->is_row && !m->scans && n->nred == 1 && !monoid_info[n->monoid].index;
	return folds && t == DT_F32 && !faulty[m->t] && !n->reports && !n->axis[n->npar].clamp && !n->axis[n->npar].cut &&
	       expr_is_true(g, n->guard) && expr_is_true(g, n->domain);
}

/* The folds along the lanes, in their order; how many phases they have; 0: something else is there too. */
static unsigned
find_folds(Planning *p, const bool *faulty, TensorId *fold, unsigned *n)
{
	const Rows *r = p->r;
	unsigned phases = 0;
	*n = 0;
	for (unsigned f = 0; f < r->nphase; f++) {
		if (!r->phase[f].lanes)
			continue;
		if (r->phase[f].nloop != 1 || (phases && r->phase[f].loop[0] != p->out->axis))
			return 0;
		p->out->axis = r->phase[f].loop[0];
		p->out->phases |= UINT32_C(1) << f;
		phases++;
	}
	for (unsigned m = 0; m < r->nmember; m++) {
		if (!(p->out->phases >> r->member[m].phase & 1))
			continue;
		if (*n == MAX_MEMBERS || !is_plain(p->g, &r->member[m], faulty))
			return 0;
		p->out->member[*n] = m;
		fold[(*n)++] = r->member[m].t;
	}
	return phases;
}

/* --- over the region's axes --- */

static void
note_member(void *user, ExprId e)
{
	Planning *p = user;
	const Expr *x = expr_get(p->g, e);
	p->reads |= x->op == OP_READ && rows_member_of(p->r, x->ref) >= 0;
}

static bool
map_axes(Planning *p, ExprId *sub, unsigned *n)
{
	const Cascade *c = &p->out->c;
	memset(sub, 0, TG_MAX_AXES * sizeof *sub);
	for (unsigned q = 0; q < c->nmember; q++) {
		const RowMember *m = &p->r->member[p->out->member[q]];
		for (unsigned a = 0; a < m->node.npar; a++)
			sub[c->member[q].axis[a]] = expr_axis(p->g, m->axis[a]);
	}
	sub[c->npar] = expr_axis(p->g, p->out->axis);
	*n = c->npar + 1u;
	for (unsigned k = 0; k < *n; k++)
		if (!sub[k])
			return false;
	return true;
}

static ExprId
mapped(Planning *p, const ExprId *sub, unsigned n, ExprId e)
{
	if (!e)
		return 0;
	e = expr_subst_axes(p->g, e, sub, n);
	expr_walk(p->g, p->scratch, e, note_member, p);
	return e;
}

static void
map_all(Planning *p, const ExprId *sub, unsigned n)
{
	RowsOnce *o = p->out;
	for (unsigned k = 0; k < o->pass->nacc; k++) {
		o->term[k] = mapped(p, sub, n, o->pass->acc[k].term);
		o->rebase[k] = mapped(p, sub, n, o->pass->acc[k].rebase);
		if (o->pass->acc[k].stage > o->last_stage)
			o->last_stage = o->pass->acc[k].stage;
	}
	for (unsigned k = 0; k < o->pass->nanchor; k++)
		o->anchor[k] = mapped(p, sub, n, o->pass->anchor[k].value);
	for (unsigned q = 0; q < o->c.nmember; q++)
		o->value[q] = mapped(p, sub, n, o->c.member[q].value);
}

/* Whether all accumulators are words, or say whether there was a term. */
static bool
has_words(const CascadePass *p)
{
	for (unsigned k = 0; k < p->nacc; k++)
		if (p->acc[k].dtype != DT_F32 && p->acc[k].dtype != DT_BOOL)
			return false;
	return !p->counted && !p->ordered;
}

bool
rows_once_plan(Graph *g, Arena *scratch, const Rows *r, const bool *faulty, RowsOnce *out)
{
	Planning p = {.g = g, .scratch = scratch, .r = r, .out = out};
	TensorId fold[MAX_MEMBERS];
	ExprId sub[TG_MAX_AXES];
	Refusal why;
	unsigned n;
	memset(out, 0, sizeof *out);
	if (g->fp == FP_STRICT || r->lanes_by_row || r->scans || r->across || r->block || find_folds(&p, faulty, fold, &n) < 2)
		return false;
	if (!cascade_derive(g, scratch, fold, n, NULL, &out->c, &why) || out->c.npass != 1 || out->c.nred != 1 || out->c.guard)
		return false;
	out->pass = &out->c.pass[0];
	if (!has_words(out->pass) || !map_axes(&p, sub, &n))
		return false;
	map_all(&p, sub, n);
	return !p.reads;
}
