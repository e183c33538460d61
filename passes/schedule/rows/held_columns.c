/* held_columns.c: which kernels one that holds columns (columns.c), or that streams (stream.h), can do the work of.
 *
 * A fold of columns was split into parts, which a second kernel joins for those that read it (passes/fuse/split_folds.c), or
 * folds of what is streamed were (split_stream.c). The graph kept it whole as well (Graph.whole). Units that follow one another in the launch order, which compute the parts,
 * join them and read the folds, are then nodes of columns: those that are needed where the folds are whole, without the
 * parts. Where they are a plan by columns, a launch takes it for sizes that can be held; where they are a stream, for sizes
 * of which there is one part.
 *
 * Elements of columns that are written where they are read are left alone: who else reads them is not looked at. */
#include "passes/schedule/rows/held_columns.h"

#include <string.h>

#include "passes/schedule/rows/rows.h"

enum { MOST_UNITS = 4 };

typedef struct {
	Graph *g;
	PassCtx *cx;
	const Places *places;
	const uint32_t *unit;
	uint32_t first, end;  /* units */
	bool *inside, *read, *wanted; /* by TensorId: a member; read by a node of another unit; is to be a member */
	bool ok, ready, more, reads; /* reads: there is a member that is no fold */
	HeldColumns *out;
} Find;

/* Or of no unit: a fold that is needed by whole ones alone. */
static bool
is_of_units(const Find *f, TensorId t)
{
	if (f->g->tensor.at[t].kind != TENSOR_NODE)
		return false;
	return (f->unit[t] >= f->first && f->unit[t] < f->end) || (f->unit[t] == UINT32_MAX && whole_node(f->g, t));
}

static void
note_read(void *user, ExprId e)
{
	Find *f = user;
	const Expr *p = expr_get(f->g, e);
	if (p->op == OP_READ)
		f->read[p->ref] = true;
}

/* Of a node that is to be a member: it reads what is in memory before, and other members; those are wanted, and first. */
static void
check_read(void *user, ExprId e)
{
	Find *f = user;
	const Expr *p = expr_get(f->g, e);
	if (p->op != OP_READ || f->g->tensor.at[p->ref].kind != TENSOR_NODE)
		return;
	bool own = is_of_units(f, p->ref);
	f->ok &= own || (f->unit[p->ref] < f->first && f->places->stored[p->ref]);
	f->more |= own && !f->wanted[p->ref];
	f->wanted[p->ref] |= own;
	f->ready &= !own || f->inside[p->ref];
}

static bool
is_inout(const Find *f, TensorId t)
{
	uint32_t r = f->places->result[t];
	return r && f->g->result.at[r - 1].inout;
}

/* Makes a wanted node a member once those that it reads are. */
static void
take_node(Find *f, const Node *n)
{
	HeldColumns *c = f->out;
	const Node *whole = whole_node(f->g, n->out);
	if (f->inside[n->out] || !f->wanted[n->out])
		return;
	f->ready = true;
	node_walk(f->g, f->cx->scratch, whole ? whole : n, check_read, f);
	f->ok &= !n->parts && !n->recur && !n->scatter && !f->places->faulty[n->out] && !is_inout(f, n->out) && c->plan.nnode < ROWS_MAX_MEMBERS;
	if (!f->ready || !f->ok)
		return;
	f->inside[n->out] = f->more = true;
	c->plan.node[c->plan.nnode++] = n->out;
	f->reads |= !whole && n->nred == 0;
	if (whole)
		c->fold[c->nfold++] = *whole;
}

/* Those that the results, and what others read, need: with whole folds, so that nobody needs parts. */
static bool
find_nodes(Find *f)
{
	const Graph *g = f->g;
	*f->out = (HeldColumns){.places = *f->places};
	for (uint32_t i = 0; i < g->node.n; i++)
		if (!is_of_units(f, g->node.at[i].out) && f->unit[g->node.at[i].out] != UINT32_MAX)
			node_walk(g, f->cx->scratch, &g->node.at[i], note_read, f);
	for (uint32_t i = 0; i < g->node.n; i++) {
		TensorId t = g->node.at[i].out;
		f->wanted[t] = is_of_units(f, t) && (f->read[t] || f->places->result[t] || g->node.at[i].reports);
	}
	for (f->more = true; f->more && f->ok;) {
		f->more = false;
		for (uint32_t i = 0; i < g->node.n && f->ok; i++)
			take_node(f, &g->node.at[i]);
	}
	for (uint32_t i = 0; i < g->node.n; i++)
		f->ok &= f->inside[g->node.at[i].out] || !f->wanted[g->node.at[i].out];
	return f->ok && f->out->nfold > 0;
}

/* What it leaves in memory: results, and what others read. */
static void
find_stored(Find *f)
{
	bool *stored = ARENA_ARRAY(f->cx->scratch, bool, f->g->tensor.n);
	memcpy(stored, f->places->stored, f->g->tensor.n * sizeof *stored);
	for (unsigned k = 0; k < f->out->plan.nnode; k++) {
		TensorId t = f->out->plan.node[k];
		stored[t] = f->places->result[t] || f->read[t];
	}
	f->out->places.stored = stored;
}

static bool
plan_held(Find *f)
{
	HeldColumns *c = f->out;
	RemarkId why;
	Rows *r = ARENA_NEW(f->cx->scratch, Rows);
	RowsFacts facts = {.stored = c->places.stored, .faulty = c->places.faulty, .streams = c->places.streams,
	                   .lanes = f->cx->options->lanes, .blocks = true, .held = true};
	if (!f->reads || !rows_plan(f->g, f->cx->scratch, &facts, c->plan.node, c->plan.nnode, TMPL_NONE, r, &why) || r->tmpl != TMPL_COLRED)
		return false;
	for (unsigned m = 0; m < r->nmember; m++)
		if (r->member[m].parked)
			return false;
	c->plan.tmpl = TMPL_COLRED;
	c->shapes = block_column_shapes(f->g, f->cx->scratch, f->cx->options, r);
	return c->shapes.n > 0;
}

static bool
plan_stream(Find *f)
{
	HeldColumns *c = f->out;
	Refusal why;
	Stream *s = ARENA_NEW(f->cx->scratch, Stream);
	RowsFacts facts = {.stored = c->places.stored, .faulty = c->places.faulty, .lanes = f->cx->options->lanes, .blocks = true};
	for (uint32_t i = 0; i < f->g->node.n; i++)
		if (f->g->node.at[i].parts && is_of_units(f, f->g->node.at[i].out))
			c->parts = f->g->tensor.at[f->g->node.at[i].out].extent[0];
	if (!c->parts || !stream_plan(f->g, f->cx->scratch, &facts, c->plan.node, c->plan.nnode, s, &why))
		return false;
	c->stream = s;
	c->plan.unroll = 1;
	return stream_size(f->g, f->cx->scratch, s, f->cx->options, &c->plan);
}

unsigned
columns_find(Graph *g, PassCtx *cx, const Places *places, const uint32_t *unit, uint32_t units_there, uint32_t place, HeldColumns *out)
{
	if (!g->whole.n || !cx->options->blocks || cx->options->fuse != FUSE_ALL)
		return 0;
	for (unsigned n = MOST_UNITS; n > 1; n--) {
		Find f = {.g = g, .cx = cx, .places = places, .unit = unit, .first = place, .end = place + n, .ok = true, .out = out};
		if (f.end > units_there)
			continue;
		f.inside = ARENA_ARRAY(cx->scratch, bool, g->tensor.n);
		f.read = ARENA_ARRAY(cx->scratch, bool, g->tensor.n);
		f.wanted = ARENA_ARRAY(cx->scratch, bool, g->tensor.n);
		if (!find_nodes(&f))
			continue;
		find_stored(&f);
		columns_swap(g, out);
		bool held = plan_held(&f) || plan_stream(&f);
		columns_swap(g, out);
		if (held)
			return n;
	}
	return 0;
}

void
columns_swap(Graph *g, HeldColumns *c)
{
	for (uint32_t k = 0; k < c->nfold; k++) {
		Node *n = &g->node.at[g->tensor.at[c->fold[k].out].node];
		Node other = *n;
		*n = c->fold[k];
		c->fold[k] = other;
	}
}
