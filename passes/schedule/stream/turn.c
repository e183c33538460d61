/* turn.c: what a stream has by vectors of rows, and memory by terms or columns (stream.h).
 *
 * A vector of rows then lies across memory: its elements are loaded, or stored, one by one through vectors
 * of addresses, at several times the cost of a number each. So vectors run along the memory, and a block of
 * scratch memory, as wide as a strip, is turned number by number. */
#include "passes/expr_map.h"
#include "passes/schedule/point/read.h"
#include "passes/schedule/stream/stream.h"

enum { AT_ONCE = 8 }; /* numbers between two looks at the end of a loop */

typedef struct {
	Point *l;
	unsigned across;
} Across;

static void
note_across(void *user, ExprId e)
{
	Across *a = user;
	Point *l = a->l;
	const Expr *p = expr_get(l->g, e);
	if (p->op == OP_READ && expr_axes(l->g, l->scratch, e) & l->lane_axes)
		a->across += point_lane_subscript(l, e) != (int)p->narg - 1;
}

/* How many reads in e lie across memory, by vectors along the axis. */
static unsigned
across(StreamBuild *b, ExprId e, unsigned axis)
{
	Across a = {&b->l, 0};
	point_set_lanes(&b->l, b->plan->lanes, axis);
	expr_walk(b->l.g, b->l.scratch, e, note_across, &a);
	return a.across;
}

bool
stream_turns_query(StreamBuild *b, unsigned n)
{
	const StreamScore *s = &b->s->score[n];
	return across(b, s->query, b->s->lane) > 0 && across(b, s->query, s->term) == 0;
}

bool
stream_turns_out(const StreamBuild *b, const StreamOut *m)
{
	unsigned rank = b->l.g->tensor.at[m->t].rank;
	return m->wide && rank > 0 && m->axis[rank - 1] == b->s->wide && b->l.places->stored[m->t];
}

/* The strip's rows that are there. */
static ValId
rows_of(StreamBuild *b, ValId *first)
{
	TirKernel *k = b->l.tir;
	ValId width = stream_int(b, b->plan->tile_columns);
	*first = tir_binary(k, OP_ADD, b->row0, tir_binary(k, OP_MUL, b->strip, width));
	return tir_binary(k, OP_MIN, width, tir_binary(k, OP_SUB, b->row1, *first));
}

/* --- queries --- */

void
stream_turn_query(StreamBuild *b, unsigned n)
{
	TirKernel *k = b->l.tir;
	ValId zero = stream_int(b, 0), one = stream_int(b, 1);
	ValId t = tir_for(k, zero, point_launch_expr(&b->l, b->terms[n]), one, NULL, 0);
	for (unsigned r = 0; r < b->plan->tile_columns; r++) {
		const ValId from[2] = {stream_int(b, r), t}, to[3] = {b->strip, t, stream_int(b, r)};
		tir_store(k, b->query[n], tir_load(k, b->unturned[n], from, 0, 0, 0), to, 0, 0);
	}
	tir_end_for(k, NULL, 0);
}

/* --- results --- */

static void
turn_column(StreamBuild *b, unsigned n, ValId column, ValId r, ValId *p, unsigned last)
{
	const ValId from[2] = {column, r};
	p[last] = column;
	ValId x = tir_load(b->l.tir, b->turned[n], from, 0, 0, 0);
	point_store(&b->l, b->s->out[n].t, (PointVal){.re = x}, p, -1);
}

void
stream_turn_out(StreamBuild *b, unsigned n)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	const StreamOut *m = &b->s->out[n];
	unsigned rank = l->g->tensor.at[m->t].rank;
	ValId zero = stream_int(b, 0), one = stream_int(b, 1), many = stream_int(b, AT_ONCE), first, p[TG_MAX_RANK];
	ValId columns = point_launch_expr(l, b->columns), rows = rows_of(b, &first);
	ValId whole = tir_binary(k, OP_MUL, tir_binary(k, OP_IDIV, columns, many), many);
	ValId r = tir_for(k, zero, rows, one, NULL, 0);
	for (unsigned a = 0; a < rank; a++)
		p[a] = m->axis[a] == b->s->lane ? tir_binary(k, OP_ADD, first, r) : l->axis[m->axis[a]];
	ValId column = tir_for(k, zero, whole, many, NULL, 0);
	for (unsigned c = 0; c < AT_ONCE; c++)
		turn_column(b, n, tir_binary(k, OP_ADD, column, stream_int(b, c)), r, p, rank - 1);
	tir_end_for(k, NULL, 0);
	column = tir_for(k, whole, columns, one, NULL, 0);
	turn_column(b, n, column, r, p, rank - 1);
	tir_end_for(k, NULL, 0);
	tir_end_for(k, NULL, 0);
}
