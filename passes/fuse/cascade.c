/* cascade.c: the plan of a group of reductions over one index (algebra.h).
 *
 * in     a graph after its tensor pipeline; members in an order where what is read comes first
 * out    passes, each a product of accumulators; every member has a value over its pass's state
 *
 * Members are taken in order. One that reads no result of its pass is folded as it stands; a sum or an
 * extreme that does is factored (P3, P4), confirmed by sampling, and kept at anchors where its terms
 * need one (P5). What is refused is folded one pass later, when what it reads is finished, and says why.
 * Strict mode changes no order of terms: whoever reads an earlier result is late. */
#include <string.h>

#include "passes/fuse/formula.h"
#include "passes/fuse/frame.h"

enum { MAX_BODY = 1000 }; /* expressions of a body that is factored */

static Side
side_in_pass(void *user, const Graph *g, ExprId e)
{
	const Frame *f = user;
	const Expr *p = expr_get(g, e);
	if (p->op == OP_AXIS)
		return p->ref >= f->out->npar ? SIDE_X : SIDE_NONE;
	int r = frame_member_read(f, e);
	return r >= 0 && f->out->member[r].pass == f->pass ? SIDE_Y : SIDE_NONE;
}

typedef struct {
	const Frame *f;
	unsigned pass;
	bool met;
} Latest;

static void
note_pass(void *user, ExprId e)
{
	Latest *l = user;
	int r = frame_member_read(l->f, e);
	if (r < 0)
		return;
	unsigned p = l->f->out->member[r].pass;
	l->pass = p > l->pass ? p : l->pass;
	l->met = true;
}

static bool
record_terms(Frame *f, Algebra *a, ExprId body, CascadeMember *m)
{
	Terms t = {0};
	if (!factor_moving(f->g, f->scratch, body, side_in_pass, f, a->move_narrowed, &t, &a->why))
		return false;
	m->rank = t.rank;
	m->nterms = t.n;
	memcpy(m->terms_g, t.g, sizeof t.g);
	memcpy(m->terms_h, t.h, sizeof t.h);
	return true;
}

static void
count_one(void *user, ExprId e)
{
	(void)e;
	++*(unsigned *)user;
}

static bool
is_small(const Frame *f, ExprId e)
{
	unsigned n = 0;
	expr_walk(f->g, f->scratch, e, count_one, &n);
	return n <= MAX_BODY;
}

static ExprId
derive_dependent(Frame *f, Algebra *a, ExprId body, CascadeMember *m)
{
	Monoid monoid = tensor_node(f->g, m->tensor)->monoid;
	DType t = (DType)expr_get(f->g, body)->dtype;
	if (f->g->fp == FP_STRICT) {
		algebra_refuse(a, REMARK_cascade_strict, 0);
		return 0;
	}
	if ((t != DT_F32 && t != DT_F64) || (monoid != MON_SUM && monoid != MON_MAX && monoid != MON_MIN)) {
		algebra_refuse(a, REMARK_cascade_distributes, body);
		return 0;
	}
	if (!is_small(f, body)) {
		algebra_refuse(a, REMARK_cascade_rank, body);
		return 0;
	}
	if (!record_terms(f, a, body, m))
		return 0;
	return monoid == MON_SUM ? derive_sum(f, a, body, m) : derive_extreme(f, a, body, m);
}

/* The node's finish, with the reduced value and whether there was one put in. */
static ExprId
finish_of(Frame *f, Algebra *a, unsigned q, ExprId value)
{
	ExprId finish = f->finish[q];
	DType t = (DType)expr_get(f->g, value)->dtype;
	if (!finish)
		return value;
	ExprId touched = expr_make(f->g, OP_TOUCHED, DT_BOOL, 0, 0, NULL, 0), seen = seen_of(f, a);
	Swap swap[2] = {{expr_make(f->g, OP_ACC, t, 0, 0, NULL, 0), value}, {touched, seen}};
	return seen ? with_values(f, formula_swap(f->g, f->scratch, finish, swap, 2)) : 0;
}

/* Tries to fold member q in the pass f->pass; what was added to the pass is taken back when it fails. */
static bool
try_pass(Frame *f, unsigned q)
{
	CascadeMember *m = &f->out->member[q];
	CascadePass *p = &f->out->pass[f->pass], before = *p;
	ExprId body = f->body[q];
	Algebra a;
	algebra_init(&a, f->g, f->scratch, side_in_pass, f, body);
	a.move_narrowed = f->options->move_narrowed;
	m->pass = f->pass;
	m->policy = FOLD_PLAIN;
	m->rank = 1;
	m->nterms = 0;
	if (side_of(&a, body) & SIDE_Y)
		m->value = derive_dependent(f, &a, body, m);
	else
		m->value = add_acc(f, &a, tensor_node(f->g, m->tensor)->monoid, a.type, body);
	if (m->value)
		m->value = finish_of(f, &a, q, with_values(f, m->value));
	if (m->value)
		return true;
	*p = before;
	m->late = a.why;
	m->late.member = m->tensor;
	return false;
}

static bool
place_member(Frame *f, unsigned q)
{
	CascadeMember *m = &f->out->member[q];
	Latest l = {f, 0, false};
	expr_walk(f->g, f->scratch, f->body[q], note_pass, &l);
	if (f->finish[q])
		expr_walk(f->g, f->scratch, f->finish[q], note_pass, &l);
	f->member = q;
	f->pass = l.pass;
	if (!try_pass(f, q)) {
		if (!l.met)
			return frame_refuse(f, m->late.why, m->late.at, m->tensor);
		f->pass = l.pass + 1;
		Refusal late = m->late;
		if (!try_pass(f, q))
			return frame_refuse(f, m->late.why, m->late.at, m->tensor);
		m->late = late;
	}
	if (f->out->npass <= f->pass)
		f->out->npass = f->pass + 1;
	return true;
}

/* Extremes have no unit, and what is kept at anchors none at them: such a state says whether it holds
 * anything. */
static bool
complete_pass(Frame *f, unsigned pass)
{
	CascadePass *p = &f->out->pass[pass];
	bool needs = p->nanchor > 0;
	Algebra a = {.g = f->g, .scratch = f->scratch};
	f->pass = pass;
	for (unsigned k = 0; k < p->nacc; k++) {
		needs |= monoid_info[p->acc[k].monoid].unit == UNIT_NONE;
		p->ordered |= f->g->fp == FP_STRICT && !monoid_info[p->acc[k].monoid].exact &&
		              !dtype_is_int(p->acc[k].dtype);
	}
	if (needs && p->seen < 0 && !seen_of(f, &a))
		return frame_refuse(f, a.why.why, 0, f->out->member[0].tensor);
	return true;
}

bool
cascade_derive(Graph *g, Arena *scratch, const TensorId *members, unsigned n, const CascadeOptions *o, Cascade *out,
               Refusal *why)
{
	static const CascadeOptions plain = {0};
	Frame *f = ARENA_NEW(scratch, Frame);
	memset(out, 0, sizeof *out);
	*f = (Frame){.g = g, .scratch = scratch, .options = o ? o : &plain, .out = out};
	for (unsigned k = 0; k < MAX_MEMBERS; k++)
		out->pass[k].seen = -1;
	bool ok = frame_build(f, members, n);
	for (unsigned q = 0; ok && q < n; q++)
		ok = place_member(f, q);
	for (unsigned k = 0; ok && k < out->npass; k++)
		ok = complete_pass(f, k);
	*why = f->why;
	memcpy(why->axis, out->name, sizeof why->axis);
	for (unsigned q = 0; q < n && q < MAX_MEMBERS; q++)
		memcpy(out->member[q].late.axis, out->name, sizeof why->axis);
	return ok;
}
