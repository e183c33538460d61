/* share.c: what two phases of a kernel by rows would both compute at the same point, and what costs more
 * than a store and a load, is computed by the first and kept for the other: the exponentials of a softmax,
 * which are summed and then divided by the sum. So is what a row of folds would compute for each of its
 * elements, and always find the same: the weights of a sum of vectors.
 *
 * in     groups of nodes, each with a kernel by rows (group.c)
 * out    the shared expressions are nodes, members of their groups, which nothing else reads
 * fp     exact: a node has the type of its expression, so nothing is rounded on the way
 * tests  tests/fuse/phases_test.c, tests/fuse/kernels.tex, tests/random
 *
 * Phases are of region points (rows/rows.h), over which equal expressions have equal ids, whatever axes their
 * nodes have. A node of its own is evaluated at every point, so an expression may only become one if
 * nothing it reads can be out of bounds or fault: each subscript is an axis that runs along the
 * tensor's own extent. */
#include "passes/fuse/group.h"

#include "ir/bugs.h"
#include "passes/expr_map.h"
#include "passes/schedule/op_cost.h"
#include "passes/schedule/rows/rows.h"
#include "passes/schedule/schedule.h"

enum { KEEPING_UNITS = 2 * 4 /* a store and a load of a vector's element */ };

typedef struct {
	ExprId e;
	uint32_t phases; /* that compute it, as bits */
	unsigned first;  /* the first member that does */
	bool again;      /* some phase does so more than once at each point of the expression's loop */
} Seen;

/* Of an expression that was met, by ExprId. */
typedef struct {
	uint32_t axes; /* that it depends on, as bits */
	uint32_t at;   /* its place among those seen, if that is its */
} Met;

typedef struct {
	Graph *g;
	Arena *scratch;
	const RowsFacts *facts;
	const Rows *r;
	unsigned member; /* at work */
	VEC(Seen) seen;
	VEC(Met) met;
} Share;

/* --- what is met --- */

/* A walk meets operands first; what an expression depends on never changes. */
static void
meet(Share *s, ExprId e)
{
	const Expr *p = expr_get(s->g, e);
	uint32_t axes = p->op == OP_AXIS && p->ref < 32 ? 1u << p->ref : 0;
	for (unsigned k = 0; k < p->narg; k++)
		axes |= s->met.at[expr_arg(s->g, e, k)].axes;
	s->met.at[e].axes = axes;
}

/* --- what may be a node --- */

/* The extent of an axis of the region that starts at 0; 0: none such. */
static ExprId
axis_extent(const Share *s, unsigned axis)
{
	if (axis < s->r->nrow)
		return s->r->extent[axis];
	const RowLoop *loop = &s->r->loop[axis - s->r->nrow];
	const Expr *lo = expr_get(s->g, loop->lo);
	return lo->op == OP_CONST && lo->imm.i == 0 ? loop->hi : 0;
}

typedef struct {
	const Share *s;
	bool yes;
} Along;

static void
reads_along(void *user, ExprId e)
{
	Along *a = user;
	const Graph *g = a->s->g;
	const Expr *p = expr_get(g, e);
	for (unsigned k = 0; p->op == OP_READ && k < p->narg; k++)
		a->yes |= (a->s->met.at[expr_arg(g, e, k)].axes >> a->s->r->nrow) != 0;
}

/* Whether it reads something along a loop, and all that it reads is there everywhere. */
static bool
fits(const Share *s, ExprId e)
{
	ExprId extent[TG_MAX_RANK + TG_MAX_AXES] = {0};
	Along along = {.s = s};
	for (unsigned axis = 0; axis < (unsigned)s->r->nrow + s->r->nloop; axis++)
		extent[axis] = axis_extent(s, axis);
	expr_walk(s->g, s->scratch, e, reads_along, &along);
	return along.yes && expr_is_whole(s->g, s->scratch, s->facts->faulty, e, extent);
}

/* The only loop that e depends on; 0: e can't be a node. A kernel of a single row keeps nothing, as that
 * row may be larger than any cache; so axis 0 is a row's. */
static unsigned
loop_of(const Share *s, ExprId e)
{
	uint32_t loops = s->met.at[e].axes >> s->r->nrow;
	if (!s->r->nrow || !loops || (loops & (loops - 1)))
		return 0;
	unsigned axis = s->r->nrow;
	while (!(loops & 1))
		loops >>= 1, axis++;
	return fits(s, e) || BUG(shared_beyond_bounds) ? axis : 0;
}

typedef struct {
	const Share *s;
	unsigned units;
} Units;

static void
add_units(void *user, ExprId e)
{
	Units *u = user;
	if (u->s->met.at[e].axes >> u->s->r->nrow)
		u->units += expr_cost(u->s->g, e).vector;
}

/* What e costs at each point of its loop. */
static unsigned
units_of(const Share *s, ExprId e)
{
	Units u = {s, 0};
	expr_walk(s->g, s->scratch, e, add_units, &u);
	return u.units;
}

/* --- what is computed twice --- */

/* Whether the member at work folds anew for an axis that e does not know. */
static bool
computes_again(const Share *s, ExprId e)
{
	const RowMember *m = &s->r->member[s->member];
	const RowPhase *phase = &s->r->phase[m->phase];
	uint32_t axes = s->met.at[e].axes;
	for (unsigned k = 0; k < phase->nown; k++)
		if (!(axes >> phase->loop[k] & 1))
			return true;
	return false;
}

static void
see(void *user, ExprId e)
{
	Share *s = user;
	const Expr *p = expr_get(s->g, e);
	meet(s, e);
	if (op_info[p->op].cls != CLASS_MAP || !dtype_is_float((DType)p->dtype))
		return;
	Seen x = {e, 1u << s->r->member[s->member].phase, s->member, computes_again(s, e)};
	uint32_t k = s->met.at[e].at;
	if (k < s->seen.n && s->seen.at[k].e == e) {
		s->seen.at[k].phases |= x.phases;
		s->seen.at[k].again |= x.again;
		return;
	}
	s->met.at[e].at = s->seen.n;
	vec_push(s->scratch, &s->seen, x);
}

/* Members with ranges of their own inside a row's element compute at points that no phase has; so do
 * scans that take another term than that of their step. */
static bool
has_phase_points(const Graph *g, const RowMember *m)
{
	if (m->scans)
		return expr_get(g, m->position)->op == OP_AXIS;
	return !(m->is_row && m->node.nred) || m->folds_along;
}

/* The dearest expression that pays; false: none. */
static bool
find_shared(Share *s, Seen *best)
{
	unsigned most = KEEPING_UNITS;
	bool found = false;
	s->seen.n = 0;
	if (s->met.n < s->g->expr.n)
		vec_grow(s->scratch, &s->met, s->g->expr.n - s->met.n);
	for (s->member = 0; s->member < s->r->nmember; s->member++)
		if (has_phase_points(s->g, &s->r->member[s->member]))
			expr_walk(s->g, s->scratch, s->r->member[s->member].node.body, see, s);
	for (uint32_t k = 0; k < s->seen.n; k++) {
		const Seen *x = &s->seen.at[k];
		if ((!x->again && !(x->phases & (x->phases - 1))) || !loop_of(s, x->e))
			continue;
		unsigned units = units_of(s, x->e);
		if (units > most) {
			most = units;
			*best = *x;
			found = true;
		}
	}
	return found;
}

/* --- the node --- */

/* e, over the region's axes, as the value of a node of the row axes and the loop's. */
static TensorId
add_node(const Share *s, const Seen *x)
{
	Graph *g = s->g;
	const Tensor *reader = &g->tensor.at[s->r->member[x->first].t];
	unsigned loop = loop_of(s, x->e), nrow = s->r->nrow;
	ExprId sub[TG_MAX_AXES], extent[TG_MAX_RANK];
	Node n = {.npar = (uint8_t)(nrow + 1)};
	if (nrow + 1 > TG_MAX_RANK)
		return 0;
	for (unsigned k = 0; k < TG_MAX_AXES; k++)
		sub[k] = expr_axis(g, k < nrow ? k : nrow);
	for (unsigned k = 0; k <= nrow; k++)
		extent[k] = axis_extent(s, k < nrow ? k : loop);
	n.body = expr_subst_axes(g, x->e, sub, TG_MAX_AXES);
	return node_add(g, &n, 0, reader->at, (DType)expr_get(g, x->e)->dtype, extent);
}

/* The body of a member, over the axes of its node, with the shared expression read from t. */
static ExprId
body_with(const Share *s, unsigned index, const Seen *x, TensorId t)
{
	Graph *g = s->g;
	const RowMember *m = &s->r->member[index];
	unsigned nrow = s->r->nrow, loop = loop_of(s, x->e);
	ExprId sub[TG_MAX_AXES];
	for (unsigned k = 0; k <= nrow; k++)
		sub[k] = expr_axis(g, k < nrow ? k : loop);
	ExprId e = expr_replace(g, s->scratch, m->node.body, x->e, expr_read(g, t, sub, nrow + 1, 0));
	for (unsigned k = 0; k < TG_MAX_AXES; k++)
		sub[k] = expr_axis(g, k);
	for (unsigned a = 0; a < (unsigned)m->node.npar + m->node.nred; a++)
		sub[m->axis[a]] = expr_axis(g, a);
	if (m->scans) /* its node folds over a range, whose index the step's term has */
		sub[expr_get(g, m->position)->ref] = expr_axis(g, m->node.npar);
	return expr_subst_axes(g, e, sub, TG_MAX_AXES);
}

static bool
plan(const Share *s, const TensorId *member, unsigned n, Rows *rows)
{
	RemarkId why = REMARK_NONE;
	return rows_plan(s->g, s->scratch, s->facts, member, n, TMPL_NONE, rows, &why);
}

/* Makes the expression a member, if the kernel stays what it was but for that. */
static bool
share_one(Share *s, Group *group, const Seen *x)
{
	Graph *g = s->g;
	TensorId member[ROWS_MAX_MEMBERS + 1];
	ExprId old[ROWS_MAX_MEMBERS];
	unsigned n = s->r->nmember;
	TensorId t = n < ROWS_MAX_MEMBERS ? add_node(s, x) : 0;
	if (!t)
		return false;
	for (unsigned k = 0, at = 0; k < n; k++) {
		Node *node = &g->node.at[g->tensor.at[s->r->member[k].t].node];
		if (k == x->first)
			member[at++] = t;
		member[at++] = s->r->member[k].t;
		old[k] = node->body;
		if (has_phase_points(g, &s->r->member[k]))
			node->body = body_with(s, k, x, t);
	}
	Rows *after = ARENA_NEW(s->scratch, Rows);
	if (plan(s, member, n + 1, after) && after->tmpl == s->r->tmpl && after->nrow == s->r->nrow &&
	    after->nphase <= s->r->nphase + x->again) {
		group->member.n = 0;
		for (unsigned k = 0; k <= n; k++)
			vec_push(s->scratch, &group->member, member[k]);
		s->r = after;
		return true;
	}
	for (unsigned k = 0; k < n; k++)
		g->node.at[g->tensor.at[s->r->member[k].t].node].body = old[k];
	g->node.n--;
	g->tensor.n--;
	return false;
}

static void
share_group(Share *s, PassCtx *cx, Group *group)
{
	Rows *rows = ARENA_NEW(s->scratch, Rows);
	Seen x = {0};
	if (!plan(s, group->member.at, group->member.n, rows))
		return;
	s->r = rows;
	while (find_shared(s, &x) && spend(cx) && share_one(s, group, &x))
		;
}

void
share_in_groups(Graph *g, PassCtx *cx, const bool *faulty, const bool *results, Groups *groups)
{
	uint32_t n = g->tensor.n, room = groups->group.n * ROWS_MAX_MEMBERS;
	bool *stored = group_stored(g, cx->scratch, groups, results, room);
	RowsFacts facts = {.stored = stored, .faulty = group_facts(cx->scratch, faulty, n, room), .streams = group_facts(cx->scratch, results, n, room),
	                   .lanes = cx->options->lanes};
	if (cx->options->blocks) /* a held row has all expressions in registers */
		return;
	Share s = {.g = g, .scratch = cx->scratch, .facts = &facts};
	for (uint32_t k = 0; k < groups->group.n; k++)
		if (!group_is_closed(&groups->group.at[k]))
			share_group(&s, cx, &groups->group.at[k]);
	group_members(g, cx->scratch, groups);
}
