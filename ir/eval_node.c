/* eval_node.c: evaluates nodes: every element of the box, its reduction, its finish; scatters; and
 * recurrences step by step.
 *
 * Elements outside the domain are skipped; one that is inside but demanded something absent is
 * absent itself, which matters only if a result does (eval.c). Nodes run in the order of their
 * ids, later where they read a recurrence that is not complete yet. */
#include "ir/eval_run.h"

typedef struct {
	const Node *n;
	Code *domain, *guard, *body, *finish, *init;
	Code *lo[TG_MAX_AXES], *hi[TG_MAX_AXES], *clamp[TG_MAX_AXES];
	Code *target[TG_MAX_RANK];
	DType value_type; /* of what is stored, before conversion to the tensor's */
	bool ordered;
	bool products, factors; /* the terms are; their factors are the body's operands */
	unsigned moved;   /* roundings (eval_order.c) */
	VEC(TensorId) reads;
	Fold *fold;       /* scatter: one an element */
	bool done;
} NodeRun;

typedef struct {
	Run *r;
	NodeRun **node;   /* by index in Graph.node; NULL: no result needs it */
	VEC(uint32_t) todo;
} Needed;

int64_t
run_integer(Run *r, ExprId e)
{
	r->naxis = 0;
	return code_run(r, code_new(r, e, 0, 0))->i;
}

typedef struct {
	Run *r;
	bool exact;
} Exact;

/* Whether a^b, b >= 0, is no i64. */
static bool
power_overflows(int64_t a, int64_t b)
{
	for (int64_t p = 1; b > 0; b >>= 1)
		if ((b & 1 && __builtin_mul_overflow(p, a, &p)) || (b > 1 && __builtin_mul_overflow(a, a, &a)))
			return true;
	return false;
}

static void
visit_exact(void *user, ExprId e)
{
	Exact *x = user;
	const Graph *g = x->r->g;
	const Expr *p = expr_get(g, e);
	int64_t a, b, c;
	if (p->dtype != DT_I64 || p->narg == 0 || p->narg > 2 || expr_get(g, expr_arg(g, e, 0))->dtype != DT_I64)
		return;
	a = run_integer(x->r, expr_arg(g, e, 0));
	b = p->narg == 2 ? run_integer(x->r, expr_arg(g, e, 1)) : -1;
	switch (p->op) {
	case OP_ADD: x->exact &= !__builtin_add_overflow(a, b, &c); break;
	case OP_SUB: x->exact &= !__builtin_sub_overflow(a, b, &c); break;
	case OP_MUL: x->exact &= !__builtin_mul_overflow(a, b, &c); break;
	case OP_POW: x->exact &= !power_overflows(a, b); break;
	case OP_NEG:
	case OP_ABS:
	case OP_IDIV: x->exact &= !(a == INT64_MIN && b == -1); break;
	}
}

bool
run_exact(Run *r, ExprId e, int64_t *v)
{
	Exact x = {r, true};
	expr_walk(r->g, r->arena, e, visit_exact, &x);
	*v = run_integer(r, e);
	return x.exact;
}

void
run_extents(Run *r, TensorId t)
{
	const Tensor *p = &r->g->tensor.at[t];
	RunTensor *out = &r->tensor[t];
	bool empty = false;
	out->rank = p->rank;
	out->count = 1;
	for (unsigned a = 0; a < p->rank; a++) {
		int64_t n;
		if (!run_exact(r, p->extent[a], &n)) {
			r->too_large = true;
			return;
		}
		out->extent[a] = n < 0 ? 0 : n;
		empty |= n <= 0;
	}
	for (unsigned a = 0; a < p->rank && !empty; a++)
		if (__builtin_mul_overflow(out->count, out->extent[a], &out->count) ||
		    (r->g->tensor.at[t].kind == TENSOR_NODE && out->count > r->max_values)) {
			r->too_large = true;
			return;
		}
	out->count = empty ? 0 : out->count;
}

/* --- what a node needs --- */

static Code *
node_code(Run *r, NodeRun *nr, ExprId e)
{
	Code *c = code_new(r, e, nr->n->npar, nr->n->recur);
	for (uint32_t k = 0; c && k < c->instr.n; k++)
		if (c->instr.at[k].op == OP_READ)
			vec_push(r->arena, &nr->reads, c->instr.at[k].ref);
	return c;
}

/* Or the value of a node that is one: fusion may put the product in its place. */
static bool
is_product(const Graph *g, ExprId e)
{
	const Expr *p = expr_get(g, e);
	const Node *n = p->op == OP_READ ? tensor_node(g, p->ref) : NULL;
	return p->op == OP_MUL || (n && n->monoid == MON_NONE && !n->recur && is_product(g, n->body));
}

static NodeRun *
node_prepare(Run *r, const Node *n)
{
	NodeRun *nr = ARENA_NEW(r->arena, NodeRun);
	const Graph *g = r->g;
	nr->n = n;
	r->naxis = (unsigned)n->npar + n->nred;
	nr->domain = node_code(r, nr, n->domain);
	nr->guard = node_code(r, nr, n->guard);
	nr->body = node_code(r, nr, n->body);
	nr->finish = node_code(r, nr, n->finish);
	nr->init = node_code(r, nr, n->init);
	for (unsigned k = n->npar; k < r->naxis; k++) {
		nr->lo[k] = node_code(r, nr, n->axis[k].lo);
		nr->hi[k] = node_code(r, nr, n->axis[k].hi);
		nr->clamp[k] = node_code(r, nr, n->axis[k].clamp);
	}
	for (unsigned a = 0; n->scatter && a < n->npar; a++)
		nr->target[a] = node_code(r, nr, n->target[a]);
	const Expr *body = expr_get(g, n->body);
	nr->products = is_product(g, n->body);
	nr->factors = nr->products && body->op == OP_MUL;
	nr->moved = run_moved_roundings(g, n);
	nr->ordered = g->fp == FP_STRICT || (n->scatter && g->fp != FP_FAST);
	nr->value_type = n->finish ? (DType)expr_get(g, n->finish)->dtype : (DType)body->dtype;
	if (!n->finish && n->monoid != MON_NONE)
		nr->value_type = monoid_info[n->monoid].index ? DT_I64
		                                              : fold_accumulator(n->monoid, (DType)body->dtype);
	return nr;
}

static void
need_tensor(Needed *d, TensorId t)
{
	const Graph *g = d->r->g;
	if (g->tensor.at[t].kind != TENSOR_NODE || d->node[g->tensor.at[t].node])
		return;
	uint32_t i = g->tensor.at[t].node;
	d->node[i] = node_prepare(d->r, &g->node.at[i]);
	vec_push(d->r->arena, &d->todo, i);
}

static void
need_results(Needed *d)
{
	const Graph *g = d->r->g;
	for (uint32_t k = 0; k < g->result.n; k++)
		need_tensor(d, g->result.at[k].tensor);
	for (uint32_t i = 0; i < g->node.n; i++)
		if (g->node.at[i].reports)
			need_tensor(d, g->node.at[i].out);
	while (d->todo.n) {
		const NodeRun *nr = d->node[d->todo.at[--d->todo.n]];
		for (uint32_t k = 0; k < nr->reads.n; k++)
			need_tensor(d, nr->reads.at[k]);
		const Recur *c = nr->n->recur ? &g->recur.at[nr->n->recur] : NULL;
		for (uint32_t k = 0; c && k < c->member.n; k++)
			need_tensor(d, c->member.at[k]);
	}
}

/* --- one reduction --- */

typedef struct {
	int64_t lo, n, at;
} Range;

static bool
spend_term(Run *r)
{
	if (++r->terms > r->max_values)
		r->too_large = true;
	return !r->too_large;
}

static const Val always = {.i = 1}, never = {.i = 0};

static void
fold_inherit(Fold *f, const Val *v)
{
	if (!f->fault)
		f->fault = v->fault;
	if (!f->cut)
		f->cut = v->cut;
	f->ambiguous |= v->ambiguous;
	f->absent |= v->absent;
}

static void
fold_unknown(Fold *f)
{
	const Val unknown = val_unknown();
	fold_term(f, &always, &unknown, 0);
}

static Val
range_value(Run *r, Fold *f, Code *c, bool *certain)
{
	Val v = c ? *code_run(r, c) : val_int(0);
	fold_inherit(f, &v);
	*certain &= v.err == 0 && !v.absent;
	return v;
}

/* The range of reduced axis k here. An uncertain one makes the whole value unknown. */
static Range
open_range(Run *r, NodeRun *nr, Fold *f, unsigned k)
{
	const Axis *x = &nr->n->axis[k];
	bool certain = true;
	int64_t lo = range_value(r, f, nr->lo[k], &certain).i, hi = range_value(r, f, nr->hi[k], &certain).i;
	int64_t top = nr->clamp[k] ? range_value(r, f, nr->clamp[k], &certain).i : hi;
	if (!certain) {
		fold_unknown(f);
		return (Range){0};
	}
	if (hi <= lo)
		return (Range){0};
	if (nr->clamp[k] && (lo < 0 || hi > top)) {
		f->cut = f->cut ? f->cut : x->cut;
		lo = lo < 0 ? 0 : lo;
		hi = hi > top ? top : hi;
	}
	return (Range){lo, hi > lo ? hi - lo : 0, 0};
}

typedef void TermFn(Run *r, NodeRun *nr, Fold *f, int64_t position);

/* Calls term at every point of the reduced axes, ascending; f takes what the ranges carry. */
static void
each_term(Run *r, NodeRun *nr, Fold *f, TermFn *term)
{
	Range range[TG_MAX_AXES];
	int64_t position[TG_MAX_AXES + 1] = {0};
	unsigned npar = nr->n->npar, nred = nr->n->nred;
	if (nred == 0) {
		term(r, nr, f, 0);
		return;
	}
	unsigned level = 0;
	range[0] = open_range(r, nr, f, npar);
	while (!r->too_large) {
		Range *x = &range[level];
		if (x->at == x->n) {
			if (level == 0)
				return;
			range[--level].at++;
			continue;
		}
		run_set_axis(r, npar + level, x->lo + x->at);
		position[level + 1] = (int64_t)((uint64_t)position[level] * (uint64_t)x->n + (uint64_t)x->at);
		if (level + 1 < nred) {
			level++;
			range[level] = open_range(r, nr, f, npar + level);
			continue;
		}
		term(r, nr, f, position[level + 1]);
		x->at++;
	}
}

/* The guard's value; where it may hold the body's too. */
static const Val *
term_value(Run *r, NodeRun *nr, Fold *f, const Val **body)
{
	const Val *present = &always;
	if (nr->guard) {
		present = code_run(r, nr->guard);
		fold_inherit(f, present);
		if (present->absent || (present->err == 0 && !present->i))
			return &never;
	}
	*body = code_run(r, nr->body);
	return present;
}

/* Of a product that is another node's, no more is known than that its factors have no more bits than it has. */
static void
note_factors(const NodeRun *nr, Fold *f, const Val *product)
{
	const Code *c = nr->body;
	const uint32_t *arg = c->arg.at + c->instr.at[c->root].arg;
	if (product->absent)
		return;
	if (nr->factors)
		fold_factors(f, &c->val[arg[0]], &c->val[arg[1]]);
	else
		fold_factors(f, product, product);
}

static void
reduce_term(Run *r, NodeRun *nr, Fold *f, int64_t position)
{
	const Val *body;
	if (!spend_term(r))
		return;
	const Val *present = term_value(r, nr, f, &body);
	if (present->err == 0 && !present->i)
		return;
	if (f->contracts)
		note_factors(nr, f, body);
	fold_term(f, present, body, position);
}

/* --- scatter --- */

static void
scatter_term(Run *r, NodeRun *nr, Fold *all, int64_t position)
{
	const Val *body;
	if (!spend_term(r))
		return;
	const Val *present = term_value(r, nr, all, &body);
	if (present->err == 0 && !present->i)
		return;
	const RunTensor *out = &r->tensor[nr->n->out];
	int64_t at = 0;
	for (unsigned a = 0; a < nr->n->npar; a++) {
		Val v = *code_run(r, nr->target[a]);
		fold_inherit(all, &v);
		if (v.err > 0)
			all->uncertain = true;
		if (v.i < 0 || v.i >= out->extent[a]) {
			r->failing[nr->n->target_access[a]] = true;
			if (!all->fault && present->i && !v.absent && v.err == 0)
				all->fault = nr->n->target_access[a];
			all->absent |= !nr->n->target_access[a];
			return;
		}
		at = at * out->extent[a] + v.i;
	}
	fold_term(&nr->fold[at], present, body, position);
}

/* Fills nr->fold. A fault or cut of a term that reaches no element belongs to the launch, and to
 * every element, as any of them may be the one it should have reached. */
static void
scatter_run(Run *r, NodeRun *nr)
{
	const Node *n = nr->n;
	const RunTensor *out = &r->tensor[n->out];
	Fold all;
	DType type = (DType)expr_get(r->g, n->body)->dtype;
	nr->fold = ARENA_ARRAY(r->arena, Fold, (size_t)out->count);
	for (int64_t k = 0; k < out->count; k++)
		fold_start(&nr->fold[k], n->monoid, r->g->fp, type, nr->ordered, nr->products);
	for (int64_t k = 0; nr->init && k < out->count; k++) {
		int64_t rest = k;
		for (unsigned a = n->npar; a-- > 0; rest /= out->extent[a])
			run_set_axis(r, a, rest % out->extent[a]);
		DType from = (DType)expr_get(r->g, n->init)->dtype;
		fold_init(&nr->fold[k], number_convert(from, nr->fold[k].dtype, *code_run(r, nr->init)));
	}
	fold_start(&all, n->monoid, r->g->fp, type, true, false);
	each_term(r, nr, &all, scatter_term);
	if (!r->fault)
		r->fault = all.fault;
	if (!r->cut)
		r->cut = all.cut;
	for (int64_t k = 0; k < out->count; k++) {
		Fold *f = &nr->fold[k];
		f->fault = f->fault ? f->fault : all.fault;
		f->cut = f->cut ? f->cut : all.cut;
		f->absent |= all.absent;
		if (all.uncertain) /* a target that is not certain */
			fold_unknown(f);
	}
}

/* --- elements --- */

/* The value of a step that is linear in its state. An error of that counts once, whatever number of times the step reads it: of
 * y + k (x - y) only 1 - k of it is left, where a bound on each operation would have 1 + k. What the step makes of an exact
 * state is within a bound that is largest at an end of what the state may be, as magnitudes of linear functions are. */
static Val
step_value(Run *r, const NodeRun *nr)
{
	Code *c = nr->body;
	Val v = *code_run(r, c);
	const Val *state = &c->val[c->state - 1];
	const unsigned last = nr->n->npar - 1u;
	double err = 0;
	if (c->stamp[c->state - 1] != r->epoch[nr->n->npar] || v.absent || !(v.err > 0) || !isfinite(v.err) || !(state->err > 0))
		return v;
	for (r->state = STATE_VALUE; r->state < STATE_COUNT; r->state++) {
		run_set_axis(r, last, r->axis[last]); /* anew */
		const Val *at = code_run(r, c);
		double far = (double)fabsl(at->re - v.re) + at->err;
		err = at->absent || !isfinite(far) ? INFINITY : fmax(err, far * (1 + 0x1p-50));
	}
	r->state = STATE_AS_IT_IS;
	v.err = fmin(v.err, err);
	return v;
}

static Val
element_value(Run *r, NodeRun *nr, int64_t at)
{
	const Node *n = nr->n;
	if (n->monoid == MON_NONE)
		return nr->body->state ? step_value(r, nr) : *code_run(r, nr->body);
	Fold own, *f = &own;
	if (n->scatter) {
		f = &nr->fold[at];
	} else {
		fold_start(f, n->monoid, r->g->fp, (DType)expr_get(r->g, n->body)->dtype, nr->ordered,
		           nr->products);
		f->moved = nr->moved;
		each_term(r, nr, f, reduce_term);
	}
	Val acc = fold_result(f), touched = f->touched;
	if (!nr->finish)
		return acc;
	Val from = {.fault = acc.fault, .cut = acc.cut};
	run_finish_point(r, fold_dtype(f), acc, touched);
	acc = *code_run(r, nr->finish);
	/* the reduction was demanded, whatever finish does with it */
	acc.fault = from.fault ? from.fault : acc.fault;
	acc.cut = from.cut ? from.cut : acc.cut;
	acc.absent |= f->absent;
	return acc;
}

static void
run_element(Run *r, NodeRun *nr, int64_t at)
{
	RunTensor *out = &r->tensor[nr->n->out];
	Val domain = nr->domain ? *code_run(r, nr->domain) : val_int(1);
	if (domain.absent || (domain.err == 0 && !domain.i)) {
		out->at[at] = (Val){.absent = true, .skip = !domain.absent};
		return;
	}
	Val v = element_value(r, nr, at);
	if (domain.err > 0 && v.absent)
		v = val_unknown();
	v.skip = false;
	out->at[at] = number_convert(nr->value_type, r->g->tensor.at[nr->n->out].dtype, v);
}

/* Every element of the box lo <= p < hi. */
static void
run_box(Run *r, NodeRun *nr, const int64_t *lo, const int64_t *hi)
{
	const RunTensor *out = &r->tensor[nr->n->out];
	unsigned rank = out->rank;
	int64_t p[TG_MAX_RANK];
	r->naxis = (unsigned)nr->n->npar + nr->n->nred;
	for (unsigned a = 0; a < rank; a++) {
		if (hi[a] <= lo[a])
			return;
		p[a] = lo[a];
		run_set_axis(r, a, p[a]);
	}
	for (;;) {
		int64_t at = 0;
		for (unsigned a = 0; a < rank; a++)
			at = at * out->extent[a] + p[a];
		if (!spend_term(r))
			return;
		run_element(r, nr, at);
		unsigned a = rank;
		for (; a > 0 && ++p[a - 1] == hi[a - 1]; a--)
			p[a - 1] = lo[a - 1];
		if (a == 0)
			return;
		for (a--; a < rank; a++)
			run_set_axis(r, a, p[a]);
	}
}

static void
node_allocate(Run *r, const NodeRun *nr, bool absent)
{
	RunTensor *out = &r->tensor[nr->n->out];
	run_extents(r, nr->n->out);
	if (r->too_large)
		return;
	out->at = ARENA_ARRAY(r->arena, Val, (size_t)out->count);
	for (int64_t k = 0; absent && k < out->count; k++)
		out->at[k].absent = true;
}

static void
node_run(Run *r, NodeRun *nr)
{
	static const int64_t zero[TG_MAX_RANK] = {0};
	node_allocate(r, nr, false);
	if (r->too_large)
		return;
	if (nr->n->scatter) {
		r->naxis = (unsigned)nr->n->npar + nr->n->nred;
		scatter_run(r, nr);
	}
	run_box(r, nr, zero, r->tensor[nr->n->out].extent);
}

/* --- recurrences --- */

static void
recur_step(Run *r, Needed *d, const Recur *c, const int64_t *step)
{
	for (uint32_t m = 0; m < c->member.n && !r->too_large; m++) {
		NodeRun *nr = d->node[r->g->tensor.at[c->member.at[m]].node];
		const RunTensor *out = &r->tensor[nr->n->out];
		int64_t lo[TG_MAX_RANK] = {0}, hi[TG_MAX_RANK];
		for (unsigned a = 0; a < out->rank; a++)
			hi[a] = out->extent[a];
		bool inside = true;
		for (unsigned k = 0; k < c->nseq; k++) {
			unsigned a = nr->n->seq[k];
			inside &= step[k] < out->extent[a];
			lo[a] = step[k];
			hi[a] = step[k] + 1;
		}
		if (inside)
			run_box(r, nr, lo, hi);
	}
}

static void
recur_run(Run *r, Needed *d, const Recur *c)
{
	int64_t extent[TG_MAX_SEQ] = {0}, at[TG_MAX_SEQ] = {0}, step[TG_MAX_SEQ];
	for (uint32_t m = 0; m < c->member.n; m++) {
		NodeRun *nr = d->node[r->g->tensor.at[c->member.at[m]].node];
		node_allocate(r, nr, true);
		if (r->too_large)
			return;
		for (unsigned k = 0; k < c->nseq; k++) {
			int64_t n = r->tensor[nr->n->out].extent[nr->n->seq[k]];
			extent[k] = n > extent[k] ? n : extent[k];
		}
	}
	for (unsigned k = 0; k < c->nseq; k++)
		if (extent[k] == 0)
			return;
	for (;;) {
		for (unsigned k = 0; k < c->nseq; k++)
			step[k] = c->dir[k] < 0 ? extent[k] - 1 - at[k] : at[k];
		recur_step(r, d, c, step);
		unsigned k = c->nseq;
		for (; k > 0 && ++at[k - 1] == extent[k - 1]; k--)
			at[k - 1] = 0;
		if (k == 0 || r->too_large)
			return;
	}
}

/* --- all nodes --- */

static bool
reads_ready(const Needed *d, const NodeRun *nr)
{
	const Graph *g = d->r->g;
	for (uint32_t k = 0; k < nr->reads.n; k++) {
		const Tensor *t = &g->tensor.at[nr->reads.at[k]];
		if (t->kind != TENSOR_NODE)
			continue;
		const NodeRun *other = d->node[t->node];
		if (!other->done && !(nr->n->recur && other->n->recur == nr->n->recur))
			return false;
	}
	return true;
}

static bool
recur_ready(const Needed *d, const Recur *c)
{
	for (uint32_t m = 0; m < c->member.n; m++)
		if (!reads_ready(d, d->node[d->r->g->tensor.at[c->member.at[m]].node]))
			return false;
	return true;
}

/* Runs the node, or the recurrence it is in, if what it reads is there. */
static bool
try_node(Needed *d, NodeRun *nr)
{
	Run *r = d->r;
	if (!nr->n->recur) {
		if (!reads_ready(d, nr))
			return false;
		node_run(r, nr);
		nr->done = true;
		return true;
	}
	const Recur *c = &r->g->recur.at[nr->n->recur];
	if (!recur_ready(d, c))
		return false;
	recur_run(r, d, c);
	for (uint32_t m = 0; m < c->member.n; m++)
		d->node[r->g->tensor.at[c->member.at[m]].node]->done = true;
	return true;
}

void
run_nodes(Run *r)
{
	const Graph *g = r->g;
	Needed d = {.r = r, .node = ARENA_ARRAY(r->arena, NodeRun *, g->node.n)};
	need_results(&d);
	bool left = true;
	while (left && !r->too_large) {
		bool progress = false;
		left = false;
		for (uint32_t i = 0; i < g->node.n && !r->too_large; i++) {
			if (!d.node[i] || d.node[i]->done)
				continue;
			bool ran = try_node(&d, d.node[i]);
			progress |= ran;
			left |= !ran;
		}
		if (left && !progress && !r->too_large)
			bug(r->arena, "eval: nodes read one another outside a recurrence");
	}
}
