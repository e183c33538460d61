/* plan.c: whether nodes are a stream, and what its kernel has to do (stream.h).
 *
 * in     nodes in topological order: scores, and the reductions that read them along what they fold
 * out    the cascade in one pass; each accumulator is narrow, of a row, or wide, of a row and a column, and
 *        then its terms are products of a weight (row, element) and a value (element, column)
 *
 * Rows that meet the same elements are taken together: lane.c says which. */
#include <string.h>

#include "passes/expr_map.h"
#include "passes/fuse/formula.h"
#include "passes/schedule/stream/threads.h"

typedef struct {
	Graph *g;
	Arena *scratch;
	const RowsFacts *facts;
	Stream *s;
	ExprId read[STREAM_MAX_SCORES]; /* how the cascade reads each score */
	Refusal why;
} Planning;

static bool
refuse(Planning *p, RemarkId why)
{
	if (!p->why.why)
		p->why = (Refusal){.why = why};
	return false;
}

static uint32_t
axes_of(const Planning *p, ExprId e)
{
	return expr_axes(p->g, p->scratch, e);
}

/* --- scores --- */

static int
score_of(const Stream *s, TensorId t)
{
	for (unsigned k = 0; k < s->nscore; k++)
		if (s->score[k].t == t)
			return (int)k;
	return -1;
}

typedef struct {
	const Graph *g;
	Arena *scratch;
	const Node *reader;
	TensorId t;
	bool along;
} Along;

static void
note_along(void *user, ExprId e)
{
	Along *a = user;
	const Expr *p = expr_get(a->g, e);
	if (p->op == OP_READ && p->ref == a->t)
		a->along |= (expr_axes(a->g, a->scratch, e) >> a->reader->npar) != 0;
}

/* Whether one of the nodes reads t along what it folds. */
static bool
is_score(const Planning *p, TensorId t, const TensorId *node, unsigned n)
{
	Along a = {p->g, p->scratch, NULL, t, false};
	for (unsigned k = 0; k < n; k++) {
		a.reader = tensor_node(p->g, node[k]);
		node_walk(p->g, p->scratch, a.reader, note_along, &a);
	}
	return a.along;
}

static void
note_own_point(void *user, ExprId e)
{
	Along *a = user;
	const Expr *p = expr_get(a->g, e);
	if (p->op == OP_READ && p->ref == a->t)
		a->along |= !reads_own_point(a->g, e, a->t) || p->access;
}

bool
stream_reads_source(const Graph *g, Arena *scratch, TensorId t, TensorId source)
{
	const Node *y = tensor_node(g, t);
	Along a = {.g = g, .t = source};
	if (y->monoid != MON_NONE || y->recur || y->scatter || y->finish || y->reports || y->npar != tensor_node(g, source)->npar)
		return false;
	expr_walk(g, scratch, y->body, note_own_point, &a);
	return !a.along;
}

/* The sum of products among the nodes that the pointwise score t is made of; 0: none. */
static TensorId
source_of(const Planning *p, TensorId t, const TensorId *node, unsigned n)
{
	Along a = {p->g, p->scratch, &(Node){0}, 0, false};
	if (contract_is_sum_of_products(p->g, t))
		return t;
	for (unsigned k = 0; k < n; k++) {
		a.t = node[k];
		a.along = false;
		expr_walk(p->g, p->scratch, tensor_node(p->g, t)->body, note_along, &a);
		if (a.along && contract_is_sum_of_products(p->g, node[k]) && stream_reads_source(p->g, p->scratch, t, node[k]))
			return node[k];
	}
	return 0;
}

static bool
add_score(Planning *p, TensorId t, TensorId source)
{
	const bool *stored = p->facts->stored, *faulty = p->facts->faulty;
	if (!source || p->s->nscore == STREAM_MAX_SCORES || stored[t] || stored[source] || faulty[t] || faulty[source])
		return refuse(p, REMARK_stream_score);
	p->s->score[p->s->nscore++] = (StreamScore){.t = t, .source = source};
	return true;
}

static bool
is_source(const Stream *s, TensorId t)
{
	for (unsigned k = 0; k < s->nscore; k++)
		if (s->score[k].source == t || s->score[k].t == t)
			return true;
	return false;
}

static bool
is_point(const Planning *p, TensorId t)
{
	return tensor_node(p->g, t)->monoid == MON_NONE;
}

static bool
find_members(Planning *p, const TensorId *node, unsigned n, TensorId *member, unsigned *nmember)
{
	*nmember = 0;
	for (unsigned k = 0; k < n; k++)
		if (is_score(p, node[k], node, n) && !add_score(p, node[k], source_of(p, node[k], node, n)))
			return false;
	for (unsigned k = 0; k < n; k++) {
		if (is_source(p->s, node[k]) || is_point(p, node[k]))
			continue;
		if (*nmember == MAX_MEMBERS)
			return refuse(p, REMARK_rows_many_members);
		member[(*nmember)++] = node[k];
	}
	return *nmember > 0 && p->s->nscore > 0 ? true : refuse(p, REMARK_stream_score);
}

static void
note_score(void *user, ExprId e)
{
	Planning *p = user;
	const Expr *x = expr_get(p->g, e);
	int k = x->op == OP_READ ? score_of(p->s, x->ref) : -1;
	if (k < 0)
		return;
	if (x->access || (p->read[k] && p->read[k] != e))
		refuse(p, REMARK_stream_score);
	p->read[k] = e;
}

/* The score's node over the axes at which the cascade reads it. */
static bool
place_score(Planning *p, unsigned k)
{
	Graph *g = p->g;
	StreamScore *score = &p->s->score[k];
	Node n = *tensor_node(g, score->source);
	if (score->t != score->source)
		n = epilogue_finished(g, p->scratch, score->source, tensor_node(g, score->t));
	ExprId sub[TG_MAX_AXES];
	score->term = p->s->stream + 1 + k;
	if (!p->read[k] || n.nred != 1 || score->term >= TG_MAX_AXES || !expr_is_true(g, n.guard) || n.axis[n.npar].clamp)
		return refuse(p, REMARK_stream_score);
	for (unsigned a = 0; a < n.npar; a++) {
		sub[a] = expr_arg(g, p->read[k], a);
		if (expr_get(g, sub[a])->op != OP_AXIS)
			return refuse(p, REMARK_stream_score);
	}
	sub[n.npar] = expr_axis(g, score->term);
	Axis *x = &n.axis[n.npar];
	if (axes_of(p, x->lo) | axes_of(p, x->hi) || !expr_is_index(g, p->scratch, x->lo) || !expr_is_index(g, p->scratch, x->hi))
		return refuse(p, REMARK_contract_range);
	n.body = expr_subst_axes(g, n.body, sub, n.npar + 1u);
	n.finish = n.finish ? expr_subst_axes(g, n.finish, sub, n.npar) : 0;
	n.domain = 0; /* it is read where it is defined */
	StreamScale scale = stream_take_scale(g, p->scratch, p->s, p->read[k]);
	if (scale.by) {
		ExprId sum = n.finish ? n.finish : expr_make(g, OP_ACC, (DType)expr_get(g, scale.by)->dtype, 0, 0, NULL, 0);
		n.finish = expr_binary(g, scale.op, sum, scale.by);
	}
	score->node = n;
	stream_find_scale(g, p->scratch, score);
	score->query = expr_arg(g, n.body, 0);
	score->key = expr_arg(g, n.body, 1);
	if (axes_of(p, score->query) >> p->s->stream & 1) {
		score->query = score->key;
		score->key = expr_arg(g, n.body, 0);
	}
	return true;
}

/* --- accumulators --- */

/* The factors of a product, by whether they have the axis of columns. */
static ExprId
factors_with(Planning *p, ExprId e, uint32_t axis, bool with)
{
	ExprId a, b;
	if (expr_get(p->g, e)->op != OP_MUL)
		return ((axes_of(p, e) & axis) != 0) == with ? e : 0;
	a = factors_with(p, expr_arg(p->g, e, 0), axis, with);
	b = factors_with(p, expr_arg(p->g, e, 1), axis, with);
	return a && b ? expr_binary(p->g, OP_MUL, a, b) : a ? a : b;
}

static void
note_ivar(void *user, ExprId e)
{
	Along *a = user;
	a->along |= expr_get(a->g, e)->op == OP_IVAR;
}

static bool
has_state(const Planning *p, ExprId e)
{
	Along a = {.g = p->g};
	expr_walk(p->g, p->scratch, e, note_ivar, &a);
	return a.along;
}

static bool
split_wide(Planning *p, unsigned k)
{
	const CascadeAcc *acc = &p->s->pass->acc[k];
	StreamAcc *a = &p->s->acc[k];
	uint32_t axis = 1u << p->s->wide;
	a->wide = true;
	a->weight = factors_with(p, acc->term, axis, false);
	a->value = factors_with(p, acc->term, axis, true);
	if (acc->monoid != MON_SUM || acc->dtype != p->s->type || !a->weight || !a->value || has_state(p, a->value))
		return refuse(p, REMARK_stream_value);
	return true;
}

static bool
find_columns(Planning *p)
{
	Stream *s = p->s;
	unsigned nwide = 0;
	s->wide = -1;
	for (unsigned k = 0; k < s->pass->nacc; k++) {
		uint32_t more = s->pass->acc[k].axes & ~s->base;
		if (!more)
			continue;
		for (unsigned a = 0; a < s->c.npar; a++)
			if (more == 1u << a && (s->wide < 0 || s->wide == (int)a))
				s->wide = (int)a;
		if (s->wide < 0 || more != 1u << s->wide || ++nwide > STREAM_MAX_WIDE)
			return refuse(p, REMARK_stream_value);
	}
	for (unsigned k = 0; k < s->pass->nacc; k++)
		if (s->pass->acc[k].axes & ~s->base && !split_wide(p, k))
			return false;
	return true;
}

static bool
reads_score(Planning *p, ExprId e)
{
	Along a = {.g = p->g, .scratch = p->scratch, .reader = &(Node){0}};
	for (unsigned k = 0; k < p->s->nscore; k++) {
		a.t = p->s->score[k].t;
		expr_walk(p->g, p->scratch, e, note_along, &a);
	}
	return a.along;
}

static void
note_again(void *user, ExprId e)
{
	Planning *p = user;
	const Expr *x = expr_get(p->g, e);
	int k = x->op == OP_READ ? score_of(p->s, x->ref) : -1;
	if (k >= 0)
		p->s->score[k].again = true;
	if (x->op == OP_IVAR && x->ref >= STREAM_KEPT)
		p->s->acc[x->ref - STREAM_KEPT].kept = true;
}

/* Terms of the first stage that later ones contain are kept, so that they are made once. */
static void
keep_terms(Planning *p)
{
	Stream *s = p->s;
	Swap swap[MAX_ACCS];
	unsigned n = 0;
	for (unsigned k = 0; k < s->pass->nacc; k++) {
		const CascadeAcc *a = &s->pass->acc[k];
		if (a->stage == 0 && !s->acc[k].wide && a->dtype == s->type && reads_score(p, a->term))
			swap[n++] = (Swap){a->term, expr_make(p->g, OP_IVAR, a->dtype, STREAM_KEPT + k, 0, NULL, 0)};
	}
	for (unsigned k = 0; k < s->pass->nacc; k++) {
		StreamAcc *a = &s->acc[k];
		a->term = s->pass->acc[k].term;
		if (s->pass->acc[k].stage == 0)
			continue;
		ExprId *at = a->wide ? &a->weight : &a->term;
		*at = formula_swap(p->g, p->scratch, *at, swap, n);
		expr_walk(p->g, p->scratch, *at, note_again, p);
	}
}

static bool
check_accs(Planning *p)
{
	const Stream *s = p->s;
	for (unsigned k = 0; k < s->pass->nacc; k++) {
		const CascadeAcc *a = &s->pass->acc[k];
		if (a->dtype != s->type && a->dtype != DT_I64 && a->dtype != DT_BOOL)
			return refuse(p, REMARK_stream_type);
		if (monoid_info[a->monoid].index)
			return refuse(p, REMARK_cascade_position);
	}
	return true;
}

typedef struct {
	Planning *p;
	bool wide;
} State;

static void
note_wide_state(void *user, ExprId e)
{
	State *s = user;
	const Expr *x = expr_get(s->p->g, e);
	if (x->op == OP_IVAR && x->ref >= STATE_A && x->ref < STATE_B)
		s->wide |= s->p->s->acc[x->ref - STATE_A].wide;
}

static bool
uses_wide(Planning *p, ExprId e)
{
	State s = {p, false};
	expr_walk(p->g, p->scratch, e, note_wide_state, &s);
	return s.wide;
}

/* What the state is multiplied by in state * factor, one of the row alone; 0 for any other expression. */
static ExprId
factor_of(Planning *p, ExprId e, unsigned acc)
{
	ExprId state = cascade_state(p->g, p->s->pass, STATE_A, acc);
	for (unsigned k = 0; e && expr_get(p->g, e)->op == OP_MUL && k < 2; k++) {
		ExprId factor = expr_arg(p->g, e, 1 - k);
		if (expr_arg(p->g, e, k) == state && !uses_wide(p, factor) && !(axes_of(p, factor) >> p->s->wide & 1))
			return factor;
	}
	return 0;
}

static void
find_factors(Planning *p)
{
	for (unsigned k = 0; k < p->s->pass->nacc; k++)
		if (p->s->acc[k].wide)
			p->s->acc[k].factor = factor_of(p, p->s->pass->acc[k].rebase, k);
}

/* The cascade's members, then the pointwise nodes. */
static bool
add_outs(Planning *p, const TensorId *node, unsigned n)
{
	for (unsigned k = 0; k < p->s->c.nmember; k++)
		stream_add_member(p->g, p->s, &p->s->c.member[k]);
	for (unsigned k = 0; k < n; k++) {
		RemarkId why = REMARK_NONE;
		if (is_point(p, node[k]) && !is_source(p->s, node[k]) && !stream_add_point(p->g, p->scratch, p->s, node[k], &why))
			return refuse(p, why);
	}
	return true;
}

/* Anchors and what is of a row must not depend on columns; every row writes elements of its own. */
static bool
check_outs(Planning *p)
{
	const Stream *s = p->s;
	for (unsigned k = 0; k < s->pass->nanchor; k++)
		if (uses_wide(p, s->pass->anchor[k].value))
			return refuse(p, REMARK_stream_value);
	for (unsigned k = 0; k < s->pass->nacc; k++)
		if (!s->acc[k].wide && s->pass->acc[k].rebase && uses_wide(p, s->pass->acc[k].rebase))
			return refuse(p, REMARK_stream_value);
	for (unsigned k = 0; k < s->nout; k++) {
		const StreamOut *out = &s->out[k];
		const Tensor *t = &p->g->tensor.at[out->t];
		uint32_t axes = 0, all = s->base | (s->wide < 0 ? 0 : 1u << s->wide);
		for (unsigned a = 0; a < t->rank; a++)
			axes |= 1u << out->axis[a];
		if ((axes & s->base) != s->base || axes & ~all || (!out->wide && uses_wide(p, out->value)))
			return refuse(p, REMARK_stream_rows);
		if (t->dtype == DT_C64 || dtype_info[t->dtype].bits < 8)
			return refuse(p, REMARK_contract_type);
	}
	return true;
}

/* --- axes --- */

/* Whether queries are of rows, and keys of elements and not of columns. */
static bool
check_sides(Planning *p)
{
	const Stream *s = p->s;
	uint32_t stream = 1u << s->stream, column = s->wide < 0 ? 0 : 1u << s->wide;
	for (unsigned k = 0; k < s->nscore; k++) {
		const StreamScore *x = &s->score[k];
		uint32_t q = axes_of(p, x->query), key = axes_of(p, x->key);
		if (q & (stream | column) || !(key & stream) || key & column || (DType)expr_get(p->g, x->node.body)->dtype != s->type)
			return refuse(p, REMARK_stream_sides);
	}
	return true;
}

static void
find_base(Planning *p)
{
	Stream *s = p->s;
	uint32_t par = (1u << s->c.npar) - 1;
	s->base = axes_of(p, s->c.axis[s->stream].lo) | axes_of(p, s->c.axis[s->stream].hi);
	if (s->c.guard)
		s->base |= axes_of(p, s->c.guard);
	for (unsigned k = 0; k < s->nscore; k++)
		s->base |= axes_of(p, p->read[k]);
	for (unsigned k = 0; k < s->pass->nanchor; k++)
		s->base |= s->pass->anchor[k].axes;
	s->base &= par;
	s->type = (DType)expr_get(p->g, s->score[0].node.body)->dtype;
	s->last_stage = 0;
	for (unsigned k = 0; k < s->pass->nacc; k++)
		if (s->pass->acc[k].stage > s->last_stage)
			s->last_stage = s->pass->acc[k].stage;
}

static bool
can_fault(const Planning *p)
{
	const Stream *s = p->s;
	bool fault = false;
	for (unsigned k = 0; k < s->nscore; k++)
		fault |= expr_can_fault(p->g, p->scratch, p->facts->faulty, s->score[k].node.body) ||
		         (s->score[k].node.finish && expr_can_fault(p->g, p->scratch, p->facts->faulty, s->score[k].node.finish));
	for (unsigned k = 0; k < s->pass->nacc; k++)
		fault |= expr_can_fault(p->g, p->scratch, p->facts->faulty, s->pass->acc[k].term);
	const ExprId ends[] = {s->c.axis[s->stream].lo, s->c.axis[s->stream].hi, s->c.guard};
	for (unsigned k = 0; k < 3; k++)
		fault |= ends[k] && expr_can_fault(p->g, p->scratch, p->facts->faulty, ends[k]);
	for (unsigned k = 0; k < s->nout; k++)
		fault |= p->facts->faulty[s->out[k].t] || expr_can_fault(p->g, p->scratch, p->facts->faulty, s->out[k].value);
	return fault;
}

/* --- pairs of bf16 --- */

/* The type of x in f32(x), where that is one of 16 bits. */
static DType
widened(const Graph *g, ExprId e)
{
	const Expr *x = expr_get(g, e);
	DType t = x->op == OP_CAST && x->dtype == DT_F32 ? (DType)expr_get(g, expr_arg(g, e, 0))->dtype : DT_NONE;
	return t == DT_BF16 || t == DT_F16 ? t : DT_NONE;
}

/* Whether the node sums products of such a one and what may be rounded to it, which narrow_contract.c has marked. */
static bool
may_round_weights(const Graph *g, const Node *n)
{
	if (expr_get(g, n->body)->op != OP_MUL)
		return false;
	ExprId a = expr_arg(g, n->body, 0), b = expr_arg(g, n->body, 1);
	if (!widened(g, a) || widened(g, a) != widened(g, b))
		return false;
	return expr_is_free_cast(g, expr_arg(g, a, 0)) != expr_is_free_cast(g, expr_arg(g, b, 0));
}

/* A member's rounding is its accumulator's where it has one alone, and that has its products' factors. */
static DType
factors_type(const Planning *p)
{
	const Stream *s = p->s;
	unsigned naccs = 0, nmembers = 0;
	DType t = s->type == DT_F32 ? widened(p->g, s->score[0].query) : DT_NONE;
	for (unsigned k = 0; k < s->nscore; k++)
		if (widened(p->g, s->score[k].query) != t || widened(p->g, s->score[k].key) != t)
			return DT_NONE;
	for (unsigned k = 0; k < s->pass->nacc; k++) {
		if (!s->acc[k].wide)
			continue;
		naccs++;
		if (widened(p->g, s->acc[k].value) != t || (s->pass->acc[k].rebase && !s->acc[k].factor))
			return DT_NONE;
	}
	for (unsigned q = 0; s->wide >= 0 && q < s->c.nmember; q++) {
		const CascadeMember *m = &s->c.member[q];
		const Node *n = tensor_node(p->g, m->tensor);
		bool wide = false;
		for (unsigned a = 0; a < n->npar; a++)
			wide |= m->axis[a] == s->wide;
		nmembers += wide;
		if (wide && (m->rank != 1 || !may_round_weights(p->g, n)))
			return DT_NONE;
	}
	return naccs == nmembers ? t : DT_NONE;
}

/* --- the plan --- */

static bool
derive(Planning *p, const TensorId *member, unsigned n)
{
	Stream *s = p->s;
	Refusal no;
	bool ok = cascade_derive(p->g, p->scratch, member, n, NULL, &s->c, &no);
	for (unsigned k = 0; ok && k < n; k++) {
		no = s->c.member[k].late;
		ok = no.why == REMARK_NONE;
	}
	if (!ok) {
		if (!p->why.why)
			p->why = no;
		return false;
	}
	s->pass = &s->c.pass[0];
	s->stream = s->c.npar;
	if (s->c.npass != 1 || s->c.nred != 1 || s->pass->ordered)
		return refuse(p, s->pass->ordered ? REMARK_cascade_strict : REMARK_stream_rows);
	if (s->c.axis[s->stream].clamp)
		return refuse(p, REMARK_contract_range);
	for (unsigned k = 0; k < s->pass->nacc; k++)
		expr_walk(p->g, p->scratch, s->pass->acc[k].term, note_score, p);
	if (s->c.guard)
		expr_walk(p->g, p->scratch, s->c.guard, note_score, p);
	return !p->why.why;
}

bool
stream_plan(Graph *g, Arena *scratch, const RowsFacts *facts, const TensorId *node, unsigned n, Stream *s, Refusal *why)
{
	Planning p = {.g = g, .scratch = scratch, .facts = facts, .s = s};
	TensorId member[MAX_MEMBERS];
	unsigned nmember;
	memset(s, 0, sizeof *s);
	bool ok = g->fp != FP_STRICT ? find_members(&p, node, n, member, &nmember) : refuse(&p, REMARK_cascade_strict);
	ok = ok && derive(&p, member, nmember);
	for (unsigned k = 0; ok && k < s->nscore; k++)
		ok = place_score(&p, k);
	if (ok) {
		find_base(&p);
		ok = s->type == DT_F32 || s->type == DT_F64 ? true : refuse(&p, REMARK_stream_type);
	}
	ok = ok && find_columns(&p) && check_accs(&p) && add_outs(&p, node, n) && check_outs(&p) && check_sides(&p);
	if (ok) {
		find_factors(&p);
		s->factors = factors_type(&p);
		s->narrow = s->factors == DT_BF16;
		ok = stream_choose_lane(g, scratch, facts, s) ? true : refuse(&p, REMARK_stream_sides);
	}
	if (ok && can_fault(&p))
		ok = refuse(&p, REMARK_contract_checked);
	if (ok) {
		keep_terms(&p);
		stream_ranges(g, scratch, s);
		if (s->rest)
			expr_walk(g, scratch, s->rest, note_again, &p);
	}
	*why = p.why;
	return ok;
}

bool
stream_derivation(Graph *g, Arena *scratch, const TensorId *node, unsigned n, Cascade *out)
{
	const bool *none = ARENA_ARRAY(scratch, bool, g->tensor.n);
	RowsFacts facts = {.stored = none, .faulty = none}; /* what the schedule has asked already */
	Planning p = {.g = g, .scratch = scratch, .facts = &facts, .s = ARENA_NEW(scratch, Stream)};
	TensorId member[MAX_MEMBERS];
	unsigned nmember;
	bool ok = find_members(&p, node, n, member, &nmember) && derive(&p, member, nmember);
	*out = p.s->c;
	return ok;
}

/* Tiles of DOT, as CONTRACT's; chained, those of vectors. Elements are whole groups. */
static void
choose_pairs(KernelPlan *p, TirDotUnit unit)
{
	enum { GROUP = 16, ROWS = 32, BLOCK = 6 };
	p->chained = unit == TIR_DOT_VECTORS;
	p->pairs = p->chained ? (uint8_t)(p->lanes / 2) : GROUP;
	if (p->chained)
		return;
	p->tile_rows = ROWS;
	p->block_terms = ROWS * BLOCK;
	p->block_columns = ROWS;
}

/* As CONTRACT's tiles, but for one row fewer: heads of 64 and 128 columns then fill them. So many elements at
 * a time that loading the columns for them does not count, and so many rows that packing the elements does not. */
bool
stream_size(const Graph *g, Arena *scratch, const Stream *s, const PassOptions *o, KernelPlan *p)
{
	bool wide = o->lanes >= 16, fused = o->has_fma;
	if (o->blocks)
		return stream_threads_size(g, scratch, s, p);
	p->tmpl = TMPL_STREAM;
	p->lanes = (uint16_t)(o->lanes * 32u / dtype_info[s->type].bits);
	p->tile_columns = (uint16_t)(2 * p->lanes);
	p->tile_rows = wide ? 13 : fused ? 6 : 4;
	p->block_terms = p->tile_rows * (wide ? 12u : 16u);
	p->block_rows = wide ? 512 : 256;
	p->block_columns = p->tile_rows;
	p->block_tasks = 1;
	if (s->narrow && o->dot && p->lanes == 16)
		choose_pairs(p, o->dot);
	return p->lanes >= 2;
}
