/* memory.c: the scratch memory of a stream (stream.h): panels that stay in the nearest cache while a
 * tile is folded, and the states of the strips of a task.
 *
 * Where a panel's element is read for the last time just before another's is written at the same place,
 * the two share memory: scores, what is kept of them, and weights. */
#include "passes/schedule/stream/stream.h"

static ExprId
number(StreamBuild *b, int64_t v)
{
	return expr_int(b->l.g, DT_I64, v);
}

static ExprId
times(Graph *g, ExprId a, ExprId b)
{
	const Expr *x = expr_get(g, a), *y = expr_get(g, b);
	if (x->op == OP_CONST && y->op == OP_CONST)
		return expr_int(g, DT_I64, x->imm.i * y->imm.i);
	return expr_binary(g, OP_MUL, a, b);
}

/* A row-major view of a buffer; with rows, axis `axis` is two: pieces of so many. */
static ValId
view(StreamBuild *b, unsigned buffer, unsigned rank, const ExprId *extent, unsigned axis, unsigned rows)
{
	Point *l = &b->l;
	ValId size[TIR_MAX_RANK], stride[TIR_MAX_RANK];
	ExprId below = number(b, 1);
	for (unsigned k = rank; k-- > 0;) {
		unsigned at = rows && k > axis ? k + 1 : k;
		size[at] = point_launch_expr(l, extent[k]);
		stride[at] = point_launch_expr(l, below);
		if (rows && k == axis) {
			size[k] = point_launch_expr(l, launch_ceil_div(l->g, extent[k], rows));
			size[k + 1] = stream_int(b, rows);
			stride[k + 1] = stride[k];
			stride[k] = point_launch_expr(l, times(l->g, below, number(b, rows)));
		}
		below = times(l->g, extent[k], below);
	}
	return tir_view(l->tir, buffer, rows ? rank + 1 : rank, size, stride);
}

static unsigned
buffer(StreamBuild *b, DType dtype, unsigned rank, const ExprId *extent)
{
	ExprId elements = number(b, 1);
	for (unsigned k = rank; k-- > 0;)
		elements = times(b->l.g, extent[k], elements);
	vec_push(b->l.g->arena, &b->l.kernel->buffer, ((BufferBind){.kind = BIND_SCRATCH, .elements = elements}));
	return tir_add_buffer(b->l.tir, 0, dtype, true);
}

static ValId
scratch(StreamBuild *b, DType dtype, unsigned rank, const ExprId *extent)
{
	return view(b, buffer(b, dtype, rank, extent), rank, extent, 0, 0);
}

/* Columns, filled up for register tiles and for vectors. */
static ExprId
padded(StreamBuild *b, ExprId columns)
{
	Graph *g = b->l.g;
	int64_t rows = b->plan->tile_rows, lanes = b->plan->lanes;
	ExprId tiles = times(g, launch_ceil_div(g, columns, rows), number(b, rows));
	return times(g, launch_ceil_div(g, tiles, lanes), number(b, lanes));
}

void
stream_bind_sizes(StreamBuild *b)
{
	const Stream *s = b->s;
	Graph *g = b->l.g;
	b->rows = s->c.extent[s->lane];
	b->group = stream_group_rows(g, s);
	b->columns = s->wide < 0 ? number(b, 1) : s->c.extent[s->wide];
	b->padded = b->plan->lanes ? padded(b, b->columns) : b->columns;
	for (unsigned k = 0; k < s->nscore; k++) {
		const Axis *x = &s->score[k].node.axis[s->score[k].node.npar];
		b->terms[k] = expr_binary(g, OP_MAX, expr_binary(g, OP_SUB, x->hi, x->lo), number(b, 0));
	}
}

static void
bind_scores(StreamBuild *b)
{
	const Stream *s = b->s;
	const KernelPlan *p = b->plan;
	for (unsigned k = 0; k < s->nscore; k++) {
		ExprId strips = number(b, p->block_rows / p->tile_columns), width = number(b, p->tile_columns);
		ExprId some = expr_binary(b->l.g, OP_MAX, b->terms[k], number(b, 1));
		ExprId pieces = launch_ceil_div(b->l.g, some, p->lanes);
		b->query[k] = scratch(b, s->type, 3, (ExprId[]){strips, some, width});
		if (stream_turns_query(b, k))
			b->unturned[k] = scratch(b, s->type, 2, (ExprId[]){width, times(b->l.g, pieces, number(b, p->lanes))});
		if (!p->pairs)
			b->key[k] = scratch(b, s->type, 4, (ExprId[]){number(b, p->block_terms / p->tile_rows), pieces,
			                                             number(b, p->tile_rows), number(b, p->lanes)});
		const ExprId panel[2] = {number(b, p->block_terms), width};
		unsigned of_panel = buffer(b, s->type, 2, panel);
		b->panel[k] = view(b, of_panel, 2, panel, 0, 0);
		if (p->pairs)
			b->panel_tiles[k] = view(b, of_panel, 2, panel, 0, p->tile_rows);
	}
}

/* A panel whose memory has been used up: that of a score read no more; 0: none is free. */
static ValId
free_panel(StreamBuild *b, bool *taken)
{
	for (unsigned k = 0; k < b->s->nscore; k++)
		if (!taken[k] && !b->s->score[k].again) {
			taken[k] = true;
			return b->panel[k];
		}
	return 0;
}

static void
bind_panels(StreamBuild *b)
{
	const Stream *s = b->s;
	const KernelPlan *p = b->plan;
	bool taken[STREAM_MAX_SCORES] = {0};
	const ExprId panel[2] = {number(b, p->block_terms), number(b, p->tile_columns)};
	unsigned nkept = 0, kept = 0, nwide = 0;
	for (unsigned k = 0; k < s->pass->nacc; k++) {
		if (!s->acc[k].kept)
			continue;
		b->weight[k] = free_panel(b, taken);
		b->weight[k] = b->weight[k] ? b->weight[k] : scratch(b, s->type, 2, panel);
		nkept++;
		kept = k;
	}
	for (unsigned k = 0; k < s->pass->nacc; k++) {
		if (!s->acc[k].wide)
			continue;
		bool last = s->pass->acc[k].stage == s->last_stage && s->last_stage > 0;
		b->weight[k] = nkept == 1 && last && nwide++ == 0 ? b->weight[kept] : scratch(b, s->type, 2, panel);
		const ExprId value[2] = {panel[0], b->padded};
		unsigned of_value = buffer(b, s->type, 2, value);
		b->value[k] = view(b, of_value, 2, value, 0, 0);
		b->value_tiles[k] = view(b, of_value, 2, value, 1, stream_vector_rows(p));
	}
}

/* --- pairs of bf16 --- */

static void
bind_score_pairs(StreamBuild *b)
{
	const KernelPlan *p = b->plan;
	ExprId strips = number(b, p->block_rows / p->tile_columns), width = number(b, p->tile_columns), one = number(b, 1);
	ExprId pairs = number(b, p->pairs), rows = number(b, p->tile_rows), pieces = number(b, p->block_terms / p->tile_rows);
	for (unsigned k = 0; k < b->s->nscore; k++) {
		ExprId groups = launch_ceil_div(b->l.g, b->terms[k], stream_group_terms(b));
		groups = expr_binary(b->l.g, OP_MAX, groups, one);
		b->query_pairs[k] = scratch(b, DT_U32, 4, (ExprId[]){strips, groups, pairs, width});
		b->query_least[k] = scratch(b, DT_U32, 1, &strips);
		b->key_pairs[k] = scratch(b, DT_U32, 4, (ExprId[]){pieces, groups, rows, pairs});
		b->key_least[k] = scratch(b, DT_U32, 1, &one);
	}
}

/* Chained, a group is one pair of elements, and columns lie side by side; else pairs of a column do. */
static void
bind_column_pairs(StreamBuild *b)
{
	Graph *g = b->l.g;
	const KernelPlan *p = b->plan;
	unsigned group = stream_element_pairs(b);
	ExprId one = number(b, 1), rows = number(b, p->tile_rows), pieces = launch_ceil_div(g, b->padded, p->tile_rows);
	const ExprId weight[2] = {number(b, p->block_terms / 2), number(b, p->tile_columns)};
	const ExprId flat[2] = {weight[0], times(g, pieces, rows)};
	const ExprId tiled[4] = {pieces, number(b, p->block_terms / 2 / group), rows, number(b, group)};
	unsigned of_weight = buffer(b, DT_U32, 2, weight);
	b->weight_pairs = view(b, of_weight, 2, weight, 0, 0);
	b->weight_dot = view(b, of_weight, 2, weight, 0, group);
	b->product = scratch(b, b->s->type, 2, (ExprId[]){rows, weight[1]});
	for (unsigned k = 0; k < b->s->pass->nacc; k++) {
		if (!b->s->acc[k].wide)
			continue;
		b->value_least[k] = scratch(b, DT_U32, 1, &one);
		if (!p->chained) {
			b->value_pairs[k] = b->value_dot[k] = scratch(b, DT_U32, 4, tiled);
			continue;
		}
		unsigned of_value = buffer(b, DT_U32, 2, flat);
		ValId size[4], stride[4] = {stream_int(b, p->tile_rows), point_launch_expr(&b->l, flat[1]), stream_int(b, 1),
		                            stream_int(b, 1)};
		for (unsigned a = 0; a < 4; a++)
			size[a] = point_launch_expr(&b->l, tiled[a]);
		b->value_pairs[k] = view(b, of_value, 2, flat, 0, 0);
		b->value_dot[k] = tir_view(b->l.tir, of_value, 4, size, stride);
	}
}

void
stream_bind_memory(StreamBuild *b)
{
	const Stream *s = b->s;
	const KernelPlan *p = b->plan;
	ExprId strips = number(b, p->block_rows / p->tile_columns), width = number(b, p->tile_columns);
	stream_bind_sizes(b);
	bind_scores(b);
	bind_panels(b);
	for (unsigned k = 0; k < s->pass->nacc; k++) {
		const ExprId columns[3] = {strips, b->padded, width};
		if (!s->acc[k].wide) {
			b->state[k] = scratch(b, s->pass->acc[k].dtype, 2, (ExprId[]){strips, width});
			continue;
		}
		if (s->acc[k].factor)
			b->factor[k] = scratch(b, s->type, 1, &width);
		unsigned of_state = buffer(b, s->type, 3, columns);
		b->state[k] = view(b, of_state, 3, columns, 0, 0);
		b->state_tiles[k] = view(b, of_state, 3, columns, 1, stream_vector_rows(p));
	}
	for (unsigned k = 0; k < s->nout; k++)
		if (stream_turns_out(b, &s->out[k]))
			b->turned[k] = scratch(b, b->l.g->tensor.at[s->out[k].t].dtype, 2, (ExprId[]){b->columns, width});
	if (s->ragged) {
		b->ends = scratch(b, DT_I64, 3, (ExprId[]){number(b, 2), strips, width});
		b->hull = scratch(b, DT_I64, 2, (ExprId[]){strips, number(b, 4)});
	}
	if (stream_may_lack_terms(b))
		b->finite = scratch(b, DT_BOOL, 1, (ExprId[]){number(b, 1)});
	if (p->pairs)
		bind_score_pairs(b);
	if (p->pairs && s->wide >= 0)
		bind_column_pairs(b);
}
