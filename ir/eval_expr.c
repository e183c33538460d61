/* eval_expr.c: runs compiled expressions by demand, with its own stack, as expressions may be deep.
 *
 * A value carries the first fault, and the first cut, of what it demanded, in the order of its
 * operands. What is absent is so only where it is demanded. Where an uncertain condition decides,
 * both outcomes are evaluated and the value covers both. */
#include "ir/eval_run.h"

void
run_set_axis(Run *r, unsigned k, int64_t v)
{
	r->axis[k] = v;
	r->clock++;
	for (unsigned d = k + 1; d <= r->naxis + 1; d++)
		r->epoch[d] = r->clock;
}

void
run_finish_point(Run *r, DType type, Val acc, Val touched)
{
	r->acc = acc;
	r->acc_type = type;
	r->touched = touched;
	r->epoch[r->naxis + 1] = ++r->clock;
}

static bool
is_fresh(const Run *r, const Code *c, uint32_t s)
{
	return c->stamp[s] == r->epoch[c->instr.at[s].depth];
}

static void
inherit(Val *v, const Val *from)
{
	if (!v->fault)
		v->fault = from->fault;
	if (!v->cut)
		v->cut = from->cut;
	v->ambiguous |= from->ambiguous;
}

/* Whether operand k is there; if not, its block is made to run next. */
static bool
demand(Run *r, Code *c, const Instr *p, unsigned k)
{
	if (is_fresh(r, c, c->arg.at[p->arg + k]))
		return true;
	RunFrame f = {p->block[k - 1], 0};
	vec_push(r->arena, &r->frame, f);
	return false;
}

static bool
run_select(Run *r, Code *c, const Instr *p, Val *v)
{
	const Val *cond = &c->val[c->arg.at[p->arg]];
	*v = (Val){.absent = true};
	if (cond->absent)
		return true;
	unsigned taken = cond->i ? 1 : 2;
	if (!demand(r, c, p, taken) || (cond->err > 0 && !demand(r, c, p, 3 - taken)))
		return false;
	const Val *a = &c->val[c->arg.at[p->arg + taken]], *b = &c->val[c->arg.at[p->arg + 3 - taken]];
	*v = *a;
	v->fault = v->cut = 0;
	if (cond->err > 0)
		*v = val_hull((DType)p->dtype, *v, *b);
	inherit(v, cond);
	inherit(v, a);
	return true;
}

static bool
run_logic(Run *r, Code *c, const Instr *p, Val *v)
{
	const Val *a = &c->val[c->arg.at[p->arg]], *b = &c->val[c->arg.at[p->arg + 1]];
	bool settles = p->op == OP_OR;
	*v = *a;
	if (a->absent || (a->err == 0 && (a->i != 0) == settles))
		return true;
	if (!demand(r, c, p, 1))
		return false;
	if (a->err == 0) {
		*v = *b;
		v->fault = v->cut = 0;
	} else if (!b->absent && b->err == 0 && (b->i != 0) == settles) {
		v->i = settles;
		v->err = 0;
	} else {
		v->i = settles ? a->i || b->i : a->i && b->i;
	}
	v->fault = v->cut = 0;
	inherit(v, a);
	inherit(v, b);
	return true;
}

/* A check that failed gives 0 and its access; without a check the value is absent. */
static void
run_read(const Run *r, const Instr *p, const Val *const *sub, Val *v)
{
	const RunTensor *t = &r->tensor[p->ref];
	int64_t at = 0;
	bool uncertain = false, outside = false;
	for (unsigned k = 0; k < p->narg; k++) {
		uncertain |= sub[k]->err > 0;
		outside |= sub[k]->i < 0 || sub[k]->i >= t->extent[k];
		if (!outside)
			at = at * t->extent[k] + sub[k]->i;
	}
	if (outside && !uncertain)
		r->failing[p->access] = true;
	if (uncertain)
		*v = val_unknown();
	else if (outside)
		*v = (Val){.fault = p->access, .absent = !p->access};
	else if (t->at)
		*v = t->at[at], v->skip = false;
	else
		number_load(r->g->tensor.at[p->ref].dtype, t->packed, at, v);
}

static bool
is_plain(const Val *v)
{
	return !(v->fault | v->cut | (AccessId)v->ambiguous | (AccessId)v->absent);
}

/* v inherits what the operands carry, before what it carries itself. */
static void
inherit_all(Val *v, const Val *const *a, unsigned n)
{
	Val from = {0};
	for (unsigned k = 0; k < n; k++)
		inherit(&from, a[k]);
	inherit(&from, v);
	v->fault = from.fault;
	v->cut = from.cut;
	v->ambiguous = from.ambiguous;
}

static void
run_strict(const Run *r, const Code *c, const Instr *p, Val *v)
{
	const Val *a[TG_MAX_AXES];
	bool plain = true, absent = false;
	a[0] = NULL;
	for (unsigned k = 0; k < p->narg; k++) {
		a[k] = &c->val[c->arg.at[p->arg + k]];
		plain &= is_plain(a[k]);
		absent |= a[k]->absent;
	}
	if (absent) {
		*v = (Val){.absent = true};
	} else if (p->op == OP_READ) {
		run_read(r, p, a, v);
		if (p->joined && r->state != STATE_AS_IT_IS) {
			v->re += r->state == STATE_ABOVE ? v->err : r->state == STATE_BELOW ? -(long double)v->err : 0;
			v->err = 0;
		}
	} else {
		op_apply(r, p, a, v);
		if (p->narg)
			v->fault = v->cut = 0;
	}
	if (!plain)
		inherit_all(v, a, p->narg);
}

static bool
run_slot(Run *r, Code *c, uint32_t s)
{
	const Instr *p = &c->instr.at[s];
	Val *v = &c->val[s];
	bool done = true;
	if (p->op == OP_AXIS)
		v->i = r->axis[p->ref]; /* the rest of it is 0 and stays so */
	else if (p->op == OP_SELECT)
		done = run_select(r, c, p, v);
	else if (p->op == OP_AND || p->op == OP_OR)
		done = run_logic(r, c, p, v);
	else
		run_strict(r, c, p, v);
	if (done)
		c->stamp[s] = r->epoch[p->depth];
	return done;
}

/* Runs the blocks demanded, the last one first; each demands before it is left. */
static void
run_demanded(Run *r, Code *c)
{
	while (r->frame.n) {
		uint32_t top = r->frame.n - 1;
		RunFrame *f = &r->frame.at[top];
		const CodeBlock *b = &c->block.at[f->block];
		if (f->at == b->n) {
			r->frame.n--;
			continue;
		}
		uint32_t s = c->list.at[b->begin + f->at];
		if (is_fresh(r, c, s) || run_slot(r, c, s))
			r->frame.at[top].at++;
	}
}

const Val *
code_run(Run *r, Code *c)
{
	const CodeBlock *b = &c->block.at[0];
	const uint32_t *list = c->list.at + b->begin;
	for (uint32_t k = 0; k < b->n; k++)
		while (!is_fresh(r, c, list[k]) && !run_slot(r, c, list[k]))
			run_demanded(r, c);
	return &c->val[c->root];
}
