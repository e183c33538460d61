/* split_stream.c: folds of sums of products that are folded as they come, in parts that a GPU's blocks compute at the same time.
 *
 * in     folds that are streamed together (stream_group.c) by groups of threads that multiply, and leave values of rows alone
 * out    as split_cascade.c has it: each fold is one over parts of the elements, which are streamed, and a join of those
 *
 * A block of such a kernel has a few rows, whose elements it goes through. Of few rows there are fewer blocks than processors;
 * and blocks that are at work at once read the rows' factor for each tile of elements, which the cache does not hold of all rows.
 * With parts there are as many tasks as are wanted, in any order. A part is some whole tiles of elements: as many as make its
 * end, which writes the state, not count, as long as there is a task for each processor, and as few as let all
 * processors end at the same time. How many follows from sizes alone. */
#include "passes/fuse/split.h"

#include "passes/fuse/group.h"
#include "passes/schedule/schedule.h"
#include "passes/schedule/stream/roles.h"

enum {
	ROWS = SR_ROWS,
	PROCESSORS = 132, /* of an H100 or H200 */
	TERMS = 4096,     /* of all tiles of a part, beside which its end does not count */
	WAVES = 32,       /* of parts: the last one is all that some processors may lack */
	MOST_PARTS = 128  /* that one thread joins */
};

static ExprId
num(const Split *s, int64_t v)
{
	return expr_int(s->g, DT_I64, v);
}

static ExprId
over(const Split *s, ExprId a, int64_t b)
{
	return expr_binary(s->g, OP_IDIV, a, num(s, b));
}

static ExprId
most(const Split *s, ExprId a, ExprId b)
{
	return expr_binary(s->g, OP_MAX, a, b);
}

/* Of the fold at work. */
static void
choose_parts(Split *s, ExprId terms, unsigned tile)
{
	Graph *g = s->g;
	const Axis *cut = &s->n.axis[s->cut];
	ExprId one = num(s, 1), rows = one;
	ExprId elements = most(s, index_norm(g, expr_binary(g, OP_SUB, cut->hi, cut->lo)), num(s, 0));
	for (unsigned a = 0; a < s->n.npar; a++)
		rows = expr_binary(g, OP_MUL, rows, g->tensor.at[s->n.out].extent[a]);
	ExprId tiles = launch_ceil_div(g, elements, tile), all = expr_binary(g, OP_MUL, launch_ceil_div(g, rows, ROWS), tiles);
	ExprId enough = expr_binary(g, OP_ADD, expr_binary(g, OP_IDIV, num(s, TERMS - 1), most(s, terms, one)), one);
	ExprId least = expr_binary(g, OP_MIN, enough, over(s, all, PROCESSORS));
	ExprId each = most(s, most(s, least, over(s, all, (int64_t)PROCESSORS * WAVES)), launch_ceil_div(g, tiles, MOST_PARTS));
	if (s->cx->options->part_terms)
		each = num(s, s->cx->options->part_terms / tile);
	s->chunk = expr_binary(g, OP_MUL, most(s, each, one), num(s, tile));
	ExprId more = expr_binary(g, OP_SUB, s->chunk, one);
	s->count = expr_binary(g, OP_IDIV, expr_binary(g, OP_ADD, elements, more), s->chunk);
}

/* Whether fold `at` can be one of parts, along its one range. */
static bool
has_parts(Split *s, uint32_t at)
{
	const Node *n = &s->g->node.at[at];
	const Axis *x = &n->axis[n->npar];
	if (n->nred != 1 || n->parts || n->domain || n->guard || x->clamp || n->npar >= TG_MAX_RANK || n->npar + 2u >= TG_MAX_AXES)
		return false;
	ExprId both = expr_binary(s->g, OP_SUB, x->hi, x->lo);
	return expr_is_index(s->g, s->cx->scratch, both) && !expr_axes(s->g, s->cx->scratch, both) && stream_is_natural(s->g, x->lo);
}

/* The folds of a group, and of what they are; terms: of the sums of products; tile: of elements, where there are many terms. */
static bool
find_chain(Split *s, const Group *group, SplitChain *c, ExprId *terms, unsigned *tile)
{
	static const CascadeOptions options = {.anchor_linear = true};
	PassCtx *cx = s->cx;
	RowsFacts facts = {.stored = ARENA_ARRAY(cx->scratch, bool, s->g->tensor.n), .faulty = cx->faulty, .lanes = cx->options->lanes, .blocks = true};
	Stream *stream = ARENA_NEW(cx->scratch, Stream);
	KernelPlan plan[STREAM_ROLES_PLANS];
	TensorId member[MAX_MEMBERS];
	Refusal why;
	unsigned nplan;
	c->n = 0;
	if (!stream_plan(s->g, cx->scratch, &facts, group->member.at, group->member.n, stream, &why) || stream->wide >= 0 ||
	    !(nplan = stream_roles_take(s->g, cx->scratch, stream, NULL, cx->options, plan)))
		return false;
	*tile = plan[nplan - 1].block_terms;
	for (unsigned q = 0; q < stream->c.nmember; q++) {
		member[q] = stream->c.member[q].tensor;
		c->at[c->n++] = s->g->tensor.at[member[q]].node;
		if (!has_parts(s, c->at[q]))
			return false;
	}
	*terms = stream->score[0].node.axis[stream->score[0].node.npar].hi;
	return cascade_derive(s->g, cx->scratch, member, c->n, &options, &c->cascade, &why) && split_is_chain(s->g, &c->cascade);
}

uint32_t
split_streams(Split *s, bool *taken)
{
	uint32_t done = 0;
	if (!s->cx->options->blocks || !s->cx->options->roles || s->g->fp == FP_STRICT)
		return 0;
	Groups groups = stream_groups(s->g, s->cx);
	SplitChain *c = ARENA_NEW(s->cx->scratch, SplitChain);
	for (uint32_t k = 0; k < groups.group.n; k++) {
		ExprId terms;
		unsigned tile;
		if (!find_chain(s, &groups.group.at[k], c, &terms, &tile))
			continue;
		if (!spend(s->cx))
			break;
		s->at = c->at[0];
		s->n = s->g->node.at[s->at];
		s->cut = s->n.npar;
		choose_parts(s, terms, tile);
		split_chain(s, c);
		for (unsigned q = 0; q < c->n; q++)
			taken[c->at[q]] = true;
		done++;
	}
	return done;
}
