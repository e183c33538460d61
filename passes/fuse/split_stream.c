/* split_stream.c: folds of sums of products that are folded as they come, in parts that a GPU's blocks compute at the same time.
 *
 * in     folds that are streamed together (stream_group.c)
 * out    as split_cascade.c has it: each fold is one over parts of the elements, which are streamed, and a join of those
 *
 * A block of such a kernel has a few rows, whose elements it goes through. Of few rows there are fewer blocks than processors;
 * with parts there are as many tasks as are wanted, in any order. How many parts follows from sizes alone.
 *
 * Where groups of threads multiply and leave values of rows alone, blocks that are at work at once read the rows' factor for each
 * tile of elements, which the cache does not hold of all rows: then there always are parts. A part is some whole tiles: as many
 * as make its end, which writes the state, not count, as long as there is a task for each processor, and as few as let all
 * processors end at the same time.
 *
 * Anything else is in parts where its rows make tasks for no more than half the processors: as many as there are processors for,
 * since to begin and to end a task takes as long as some tiles. Else there is one, and a launch has the kernel of the whole
 * folds, which the graph keeps (Graph.whole), in place of all that computes and joins parts (schedule/rows/held_columns.c). All
 * rows of a block may have elements between the same ends; parts beyond these have none. Whole stay folds of which a condition
 * leaves elements out inside, which are not known; those of which each row of a block has other ends, since threads have no
 * registers for these beside a part's, nor for columns of 64 bits; and those with a row for each element, of which few rows have few.
 *
 * The processors are those of the table's first GPU, so that parts, and results to the last bit, are the same on all. */
#include "passes/fuse/split.h"

#include "ir/gpu_facts.h"
#include "passes/fuse/group.h"
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/schedule.h"
#include "passes/schedule/stream/roles.h"
#include "passes/schedule/stream/threads.h"

enum {
	ROWS = SR_ROWS,
	TERMS = 4096,     /* of all tiles of a part, beside which its end does not count */
	WAVES = 32,       /* of parts: the last one is all that some processors may lack */
	MOST_PARTS = 128, /* that one thread joins */
	TILE = 128,       /* elements, of which a part of few rows is a multiple */
	LEAST_TILES = 4   /* of such a part, for which it is worth while to join several */
};

typedef struct {
	Stream stream;
	SplitChain chain;
	ExprId terms;     /* of its sums of products */
	unsigned tile;    /* of elements, where there are many terms */
} Streamed;

static ExprId
num(const Split *s, int64_t v)
{
	return expr_int(s->g, DT_I64, v);
}

static int64_t
processors(void)
{
	return gpu_row_usual()->fact[GPU_PROCESSORS];
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

static ExprId
elements_of(const Split *s, const Axis *cut)
{
	return index_norm(s->g, expr_binary(s->g, OP_SUB, cut->hi, cut->lo));
}

/* Of the fold at work. */
static void
choose_parts(Split *s, ExprId terms, unsigned tile)
{
	Graph *g = s->g;
	ExprId one = num(s, 1), rows = one;
	ExprId elements = most(s, elements_of(s, &s->n.axis[s->cut]), num(s, 0));
	for (unsigned a = 0; a < s->n.npar; a++)
		rows = expr_binary(g, OP_MUL, rows, g->tensor.at[s->n.out].extent[a]);
	ExprId tiles = launch_ceil_div(g, elements, tile), all = expr_binary(g, OP_MUL, launch_ceil_div(g, rows, ROWS), tiles);
	ExprId enough = expr_binary(g, OP_ADD, expr_binary(g, OP_IDIV, num(s, TERMS - 1), most(s, terms, one)), one);
	ExprId least = expr_binary(g, OP_MIN, enough, over(s, all, processors()));
	ExprId each = most(s, most(s, least, over(s, all, processors() * WAVES)), launch_ceil_div(g, tiles, MOST_PARTS));
	if (s->cx->options->part_terms)
		each = num(s, s->cx->options->part_terms / tile);
	s->chunk = expr_binary(g, OP_MUL, most(s, each, one), num(s, tile));
	ExprId more = expr_binary(g, OP_SUB, s->chunk, one);
	s->count = expr_binary(g, OP_IDIV, expr_binary(g, OP_ADD, elements, more), s->chunk);
}

static bool
by_roles(const Split *s, const Stream *x)
{
	return s->cx->options->roles && x->factors;
}

/* Whether parts of it have a kernel as good as that of the whole: 1, 0, or what a launch makes of its sizes. */
static ExprId
suits_parts(const Split *s, const Stream *x)
{
	Graph *g = s->g;
	ExprId one = num(s, 1), terms = x->score[0].node.axis[x->score[0].node.npar].hi;
	if (x->wide < 0)
		return one;
	if (!by_roles(s, x))
		return dtype_info[x->type].bits > 32 ? num(s, 0) : one;
	ExprId few_terms = expr_binary(g, OP_SUB, one, raster_reaches(g, most(s, terms, num(s, 0)), SR_PARTS_TERMS + 1));
	ExprId few_columns = expr_binary(g, OP_SUB, one, raster_reaches(g, x->c.extent[x->wide], SR_PARTS_COLUMNS + 1));
	return index_norm(g, expr_binary(g, OP_MUL, few_terms, few_columns));
}

/* Of folds whose rows are few: parts for all processors, or one. */
static void
choose_few_parts(Split *s, const Stream *x)
{
	Graph *g = s->g;
	ExprId one = num(s, 1), elements = most(s, elements_of(s, &x->c.axis[x->stream]), num(s, 0));
	ExprId blocks = most(s, stream_blocks(g, x, by_roles(s, x) ? SR_ROWS : ST_ROWS), one);
	ExprId each_block = expr_binary(g, OP_IDIV, num(s, processors()), blocks);
	ExprId parts = most(s, expr_binary(g, OP_MUL, suits_parts(s, x), each_block), one), tiles = launch_ceil_div(g, elements, TILE);
	ExprId each = expr_binary(g, OP_IDIV, expr_binary(g, OP_ADD, tiles, expr_binary(g, OP_SUB, parts, one)), parts);
	s->chunk = expr_binary(g, OP_MUL, most(s, each, num(s, LEAST_TILES)), num(s, TILE));
	if (s->cx->options->part_terms)
		s->chunk = num(s, s->cx->options->part_terms);
	s->count = expr_binary(g, OP_IDIV, expr_binary(g, OP_ADD, elements, expr_binary(g, OP_SUB, s->chunk, one)), s->chunk);
}

/* Whether fold `at` can be one of parts, along its one range. What a stream has in states it computes where no one asks for a member
 * as well, and so do parts. */
static bool
has_parts(Split *s, uint32_t at, bool pieces)
{
	const Node *n = &s->g->node.at[at];
	const Axis *x = &n->axis[n->npar];
	if (n->nred != 1 || n->parts || (pieces && (n->domain || n->guard)) || x->clamp || n->npar >= TG_MAX_RANK || n->npar + 3u >= TG_MAX_AXES)
		return false;
	ExprId both = expr_binary(s->g, OP_SUB, x->hi, x->lo);
	return expr_is_of_launch(s->g, s->cx->scratch, both) && stream_is_natural(s->g, x->lo);
}

/* Why all of its launches have it whole; REMARK_NONE: some have not. */
static RemarkId
why_whole(const Split *s, const Stream *x, bool always)
{
	const Expr *suits = expr_get(s->g, suits_parts(s, x));
	if (x->rest)
		return REMARK_split_inside;
	if (x->ragged)
		return REMARK_split_ends;
	if (!always && elements_of(s, &x->c.axis[x->stream]) == index_norm(s->g, x->c.extent[x->lane]))
		return REMARK_split_square;
	return suits->op == OP_CONST && suits->imm.i == 0 ? REMARK_split_units : REMARK_NONE;
}

/* The folds of a group, and of what they are. */
static bool
find_chain(Split *s, const Group *group, Streamed *f)
{
	PassCtx *cx = s->cx;
	RowsFacts facts = {.stored = ARENA_ARRAY(cx->scratch, bool, s->g->tensor.n), .faulty = cx->faulty, .lanes = cx->options->lanes, .blocks = true};
	SplitChain *c = &f->chain;
	const Stream *x = &f->stream;
	KernelPlan plan[STREAM_ROLES_PLANS];
	TensorId member[MAX_MEMBERS];
	Refusal why;
	c->n = 0;
	if (!stream_plan(s->g, cx->scratch, &facts, group->member.at, group->member.n, &f->stream, &why))
		return false;
	unsigned nplan = stream_roles_take(s->g, cx->scratch, x, NULL, cx->options, plan);
	f->tile = nplan ? plan[nplan - 1].block_terms : 0;
	c->always = nplan && x->wide < 0;
	for (unsigned q = 0; q < x->c.nmember; q++) {
		member[q] = x->c.member[q].tensor;
		c->at[c->n++] = s->g->tensor.at[member[q]].node;
		if (!has_parts(s, c->at[q], c->always))
			return false;
	}
	f->terms = x->score[0].node.axis[x->score[0].node.npar].hi;
	RemarkId no = why_whole(s, x, c->always);
	if (no)
		remark(cx, no, member[c->n - 1]);
	if (no || !cascade_derive(s->g, cx->scratch, member, c->n, NULL, &c->cascade, &why) || c->cascade.npass != 1)
		return false;
	bool ends = c->cascade.guard != 0;
	c->base = x->base;
	c->lo = ends ? x->lo : 0;
	c->hi = ends ? x->hi : 0;
	return !c->always || split_is_chain(s->g, &c->cascade);
}

typedef struct {
	const Groups *groups;
	uint32_t group;
	const Stream *stream;
} Points;

static ExprId
take_point(void *user, Graph *g, ExprId e)
{
	const Points *x = user;
	const Expr *p = expr_get(g, e);
	if (p->op != OP_READ || x->groups->of[p->ref] != x->group || p->access || tensor_node(g, p->ref)->monoid != MON_NONE)
		return e;
	for (unsigned k = 0; k < x->stream->nscore; k++)
		if (x->stream->score[k].t == p->ref)
			return e;
	return expr_at_read(g, expr_rewrite(g, tensor_node(g, p->ref)->body, take_point, user), e);
}

/* What whole folds read does not go when parts no longer need it: but for scores, pointwise nodes of the group become theirs. */
static void
take_points(Split *s, const Groups *groups, uint32_t group, const Streamed *f)
{
	Points x = {groups, group, &f->stream};
	for (unsigned q = 0; q < f->chain.n; q++) {
		ExprId body = expr_rewrite(s->g, s->g->node.at[f->chain.at[q]].body, take_point, &x);
		s->g->node.at[f->chain.at[q]].body = body;
	}
}

uint32_t
split_streams(Split *s, bool *taken)
{
	uint32_t done = 0;
	if (!s->cx->options->blocks || s->cx->options->fuse != FUSE_ALL || s->g->fp == FP_STRICT)
		return 0;
	Groups groups = stream_groups(s->g, s->cx);
	Streamed *f = ARENA_NEW(s->cx->scratch, Streamed);
	for (uint32_t k = 0; k < groups.group.n; k++) {
		const SplitChain *c = &f->chain;
		if (!find_chain(s, &groups.group.at[k], f))
			continue;
		if (!spend(s->cx))
			break;
		take_points(s, &groups, k + 1, f);
		s->at = c->at[0];
		s->n = s->g->node.at[s->at];
		s->cut = s->n.npar;
		if (c->always)
			choose_parts(s, f->terms, f->tile);
		else
			choose_few_parts(s, &f->stream);
		split_chain(s, c);
		for (unsigned q = 0; q < c->n; q++)
			taken[c->at[q]] = true;
		done++;
	}
	return done;
}
