/* fill_panels.c: a pointwise node that contractions alone read is computed as their panels are filled, where that takes less
 * time than to store it and to read it back.
 *
 * in     groups of nodes, each a kernel by rows (group.c), for a processor, whose contractions evaluate their factors into
 *        panels (schedule/contract/pack.c): once for each block of the other side, however many products an element is in
 * out    no read of the node; it stays, unused, for dce. Where nothing is left to do, the groups' edges from what is read to
 *        contractions say why it was not done
 * fp     exact: an element is the same expression, rounded to the same type, wherever it is computed
 * tests  tests/fuse/kernels.tex, tests/text/explain_panels.tex, tests/fuse/cost_test.c, tests/random
 *
 * Why a read may become the body at its subscripts is in inline_points.c. Whether it pays is the cost model's to say, of the
 * contractions, and of the kernel that the node was in with and without it. Sizes that are known at launch alone are taken to
 * be usual ones, large ones, for which panels are filled more often, and large ones with few products of an element, for
 * which memory counts most (regions.h): the part of the time before that it takes has to be less than 1 in
 * the geometric mean of the three. */
#include "passes/expr_map.h"
#include "passes/fuse/regions.h"
#include "passes/schedule/schedule.h"

#include <math.h>

enum { MAX_SIZE = 1000 /* expressions of a contraction's body */ };

typedef enum { USUAL, LARGE, FEW, NSIZES } Sizes;

typedef struct {
	TensorId t;
	ExprId body; /* as it was */
} Reader;

typedef struct {
	Graph *g;
	PassCtx *cx;
	const bool *faulty, *results;
	Groups *groups;
	Regions at[NSIZES];
	bool *gone;        /* by TensorId: computed in panels now, or tried so */
	RemarkId *why;     /* by TensorId: of a pointwise node that contractions read */
	double *together, *apart; /* by TensorId: microseconds, where these are why */
	const Group *group; /* at work */
	VEC(TensorId) point; /* of the group, which are tried; and the contractions that read them */
	VEC(Reader) reader;
	uint32_t axes;     /* that reads of it go along, as bits */
	uint32_t size;     /* of an expression */
	bool plain;        /* it is read nowhere with a check */
} Panelling;

/* --- who reads it --- */

static bool
is_contraction(const Panelling *s, TensorId t)
{
	return s->at[USUAL].uses.panels[t] && !s->groups->of[t];
}

static void
note_read(void *user, ExprId e)
{
	Panelling *s = user;
	s->plain &= expr_get(s->g, e)->access == 0;
}

static bool
reads_outside_body(const Panelling *s, Node n, TensorId t)
{
	n.body = expr_int(s->g, DT_I64, 0);
	return node_reads(s->g, s->cx->scratch, &n, t);
}

/* Whether contractions alone read the node, as factors; else why that is no question. */
static bool
feeds_panels(Panelling *s, TensorId t)
{
	const TensorList *readers = &s->at[USUAL].readers[t];
	bool some = false, all = true;
	s->plain = true;
	for (uint32_t k = 0; k < readers->list.n; k++) {
		const Node *to = tensor_node(s->g, readers->list.at[k]);
		bool factor = is_contraction(s, to->out) && !reads_outside_body(s, *to, t);
		some |= factor;
		all &= factor;
		node_each_read(s->g, s->cx->scratch, to, t, note_read, s);
	}
	if (!some || !point_may_move(s->g, tensor_node(s->g, t)))
		return false;
	s->why[t] = REMARK_panels_stored;
	return all && s->plain && !s->results[t];
}

/* --- the rewrite --- */

static ExprId
replace_read(void *user, Graph *g, ExprId e)
{
	const Panelling *s = user;
	const Expr p = *expr_get(g, e);
	bool tried = false;
	for (uint32_t k = 0; k < s->point.n && p.op == OP_READ; k++)
		tried |= p.ref == s->point.at[k];
	return tried ? expr_at_read(g, tensor_node(g, p.ref)->body, e) : e;
}

static void
count_expr(void *user, ExprId e)
{
	Panelling *s = user;
	(void)e;
	s->size++;
}

static void
set_body(Panelling *s, TensorId t, ExprId body)
{
	s->g->node.at[s->g->tensor.at[t].node].body = body;
	cost_note_panels_of(&s->at[USUAL].uses, s->g, s->faulty, t, s->cx->options);
	for (unsigned z = 1; z < NSIZES; z++)
		s->at[z].uses.panels[t] = s->at[USUAL].uses.panels[t];
}

/* Whether all readers are contractions with the nodes' bodies in theirs too. */
static bool
take_in(Panelling *s)
{
	bool all = true;
	for (uint32_t k = 0; k < s->point.n; k++)
		s->gone[s->point.at[k]] = true;
	for (uint32_t k = 0; k < s->reader.n; k++) {
		TensorId t = s->reader.at[k].t;
		s->reader.at[k].body = tensor_node(s->g, t)->body;
		set_body(s, t, expr_rewrite(s->g, s->reader.at[k].body, replace_read, s));
		s->size = 0;
		expr_walk(s->g, s->cx->scratch, tensor_node(s->g, t)->body, count_expr, s);
		all &= s->at[USUAL].uses.panels[t] && s->size <= MAX_SIZE;
	}
	return all;
}

static void
leave_out(Panelling *s)
{
	for (uint32_t k = 0; k < s->point.n; k++)
		s->gone[s->point.at[k]] = false;
	for (uint32_t k = 0; k < s->reader.n; k++)
		set_body(s, s->reader.at[k].t, s->reader.at[k].body);
}

/* --- whether it pays --- */

/* Of what is left of the group, and of the readers. */
static double
time_us(const Panelling *s, Regions *r)
{
	TensorId *left = ARENA_ARRAY(s->cx->scratch, TensorId, s->group->member.n);
	uint32_t n = 0;
	RemarkId why;
	for (uint32_t k = 0; k < s->group->member.n; k++)
		if (!s->gone[s->group->member.at[k]])
			left[n++] = s->group->member.at[k];
	double us = n ? regions_us(r, left, n, INFINITY, &why) : 0;
	for (uint32_t k = 0; k < s->reader.n; k++)
		us += regions_contraction_us(r, s->reader.at[k].t);
	return us;
}

static void
note_axes(void *user, ExprId e)
{
	Panelling *s = user;
	s->axes |= expr_axes(s->g, s->cx->scratch, e);
}

static void
make_few(void *user, ExprId e)
{
	Regions *r = user;
	const Expr *p = expr_get(r->g, e);
	if (p->op == OP_DIM && !r->g->dim.at[p->ref].fixed && r->g->dim.at[p->ref].hint <= 0)
		r->env.dim[p->ref] = REGION_FEW;
}

/* Few elements of the readers need the same element of a node. */
static void
take_few(Panelling *s)
{
	Regions *r = &s->at[FEW];
	regions_take_sizes(r, REGION_LARGE_SIZE);
	for (uint32_t k = 0; k < s->reader.n; k++) {
		const Node *n = tensor_node(s->g, s->reader.at[k].t);
		s->axes = 0;
		for (uint32_t p = 0; p < s->point.n; p++)
			node_each_read(s->g, s->cx->scratch, n, s->point.at[p], note_axes, s);
		for (unsigned a = 0; a < n->npar; a++)
			if (!(s->axes >> a & 1))
				expr_walk(s->g, s->cx->scratch, s->g->tensor.at[n->out].extent[a], make_few, r);
	}
}

static void
say_times(Panelling *s, double together, double apart)
{
	for (uint32_t k = 0; k < s->point.n; k++) {
		s->together[s->point.at[k]] = together;
		s->apart[s->point.at[k]] = apart;
	}
}

/* Takes in the points that are tried, if that pays. */
static bool
try_points(Panelling *s)
{
	double before[NSIZES], all = 0, worst = 0;
	take_few(s);
	for (unsigned z = 0; z < NSIZES; z++)
		before[z] = time_us(s, &s->at[z]);
	bool yes = take_in(s);
	for (uint32_t k = 0; k < s->point.n; k++)
		s->why[s->point.at[k]] = yes ? REMARK_group_cost : REMARK_panels_sides;
	for (unsigned z = 0; z < NSIZES && yes; z++) {
		double after = time_us(s, &s->at[z]), ratio = after / before[z];
		all += log(ratio);
		if (ratio > worst)
			say_times(s, after, before[z]);
		worst = ratio > worst ? ratio : worst;
	}
	yes = yes && all < -1e-9 && spend(s->cx);
	if (!yes)
		leave_out(s);
	return yes;
}

static void
add_point(Panelling *s, TensorId t)
{
	const TensorList *readers = &s->at[USUAL].readers[t];
	vec_push(s->cx->scratch, &s->point, t);
	for (uint32_t k = 0; k < readers->list.n; k++) {
		bool there = false;
		for (uint32_t r = 0; r < s->reader.n; r++)
			there |= s->reader.at[r].t == readers->list.at[k];
		if (!there)
			vec_push(s->cx->scratch, &s->reader, ((Reader){.t = readers->list.at[k]}));
	}
}

/* All points of the group that feed panels, else each by itself; how many. */
static uint32_t
fill_from_group(Panelling *s)
{
	const TensorId *member = s->group->member.at;
	uint32_t n = s->group->member.n, done = 0;
	s->point.n = s->reader.n = 0;
	for (uint32_t k = 0; k < n; k++)
		if (feeds_panels(s, member[k]))
			add_point(s, member[k]);
	if (!s->point.n || try_points(s))
		return s->point.n;
	TensorId *point = arena_copy(s->cx->scratch, s->point.at, s->point.n * sizeof *point);
	n = s->point.n;
	for (uint32_t k = 0; k < n && n > 1; k++) {
		s->point.n = s->reader.n = 0;
		add_point(s, point[k]);
		done += try_points(s);
	}
	return done;
}

/* --- all of it --- */

static void
begin(Panelling *s)
{
	const PassOptions *o = s->cx->options;
	Arena *a = s->cx->scratch;
	RowsFacts facts = {.stored = s->results, .faulty = s->faulty, .streams = s->results, .lanes = o->lanes,
	                   .blocks = o->blocks};
	Groups closed = {0};
	for (uint32_t k = 0; k < s->groups->group.n; k++)
		if (group_is_closed(&s->groups->group.at[k]))
			vec_push(a, &closed.group, s->groups->group.at[k]);
	for (unsigned z = 0; z < NSIZES; z++)
		regions_init(&s->at[z], s->g, s->cx, &facts, &closed);
	regions_take_sizes(&s->at[LARGE], REGION_LARGE_SIZE);
	s->gone = ARENA_ARRAY(a, bool, s->g->tensor.n);
	s->why = ARENA_ARRAY(a, RemarkId, s->g->tensor.n);
	s->together = ARENA_ARRAY(a, double, s->g->tensor.n);
	s->apart = ARENA_ARRAY(a, double, s->g->tensor.n);
}

/* What keeps nodes out of panels, said of the edges. */
static void
say_why(Panelling *s)
{
	for (uint32_t k = 0; k < s->groups->unfused.n; k++) {
		Unfused *u = &s->groups->unfused.at[k];
		if (!is_contraction(s, u->to) || !s->why[u->from])
			continue;
		u->why = s->why[u->from];
		u->together = s->together[u->from];
		u->apart = s->apart[u->from];
		u->text = NULL;
		vec_push(s->cx->scratch, &s->groups->note, ((GroupNote){u->to, u->why, unfused_text(s->cx->scratch, u)}));
	}
}

uint32_t
fill_panels(Graph *g, PassCtx *cx, const bool *faulty, const bool *results, Groups *groups)
{
	Panelling s = {.g = g, .cx = cx, .faulty = faulty, .results = results, .groups = groups};
	uint32_t done = 0;
	begin(&s);
	for (uint32_t k = 0; k < groups->group.n; k++) {
		s.group = &groups->group.at[k];
		if (!group_is_closed(s.group))
			done += fill_from_group(&s);
	}
	if (!done)
		say_why(&s);
	return done;
}
