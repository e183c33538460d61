/* finish.c: what a stream makes of a strip's state, and where it goes. */
#include "passes/schedule/stream/stream.h"

/* The element at the point; the state it is made of has been placed. */
static void
store_out(StreamBuild *b, unsigned n, ValId column, unsigned v)
{
	Point *l = &b->l;
	const StreamOut *m = &b->s->out[n];
	TirKernel *k = l->tir;
	unsigned rank = l->g->tensor.at[m->t].rank;
	PointVal x = {.re = stream_vector(b, point_value(l, m->value, !m->domain).re)};
	ValId p[TG_MAX_RANK];
	int along = -1;
	if (m->domain) {
		ValId zero = point_zero(l, l->g->tensor.at[m->t].dtype).re;
		x.re = tir_select(k, stream_vector(b, point_value(l, m->domain, true).re), x.re, stream_vector(b, zero));
	}
	if (b->turned[n]) {
		const ValId at[2] = {column, stream_int(b, v * b->plan->lanes)};
		tir_store(k, b->turned[n], x.re, at, 0, TIR_LANES_ALONG(1));
		return;
	}
	for (unsigned a = 0; a < rank; a++) {
		p[a] = l->axis[m->axis[a]];
		along = m->axis[a] == b->s->lane ? (int)a : along;
	}
	point_store(l, m->t, x, p, along);
}

static void
store_outs(StreamBuild *b, bool columns, ValId column)
{
	Point *l = &b->l;
	for (unsigned v = 0; v < b->vectors; v++) {
		uint32_t mark = point_mark(l);
		stream_at_vector(b, v);
		stream_place_state(b, b->run, v, column);
		for (unsigned k = 0; k < b->s->nout; k++)
			if (l->places->stored[b->s->out[k].t] && b->s->out[k].wide == columns)
				store_out(b, k, column, v);
		point_release(l, mark);
	}
}

/* Whether each row had an element: as the state says, else by the ends of its range. */
void
stream_find_some(StreamBuild *b)
{
	TirKernel *k = b->l.tir;
	const CascadePass *p = b->s->pass;
	for (unsigned v = 0; v < b->vectors; v++) {
		ValId seen = p->seen < 0 ? 0 : b->run[p->seen][v];
		if (seen && p->counted)
			seen = tir_binary(k, OP_LT, stream_vector(b, stream_int(b, 0)), seen);
		if (!seen && b->s->rest)
			continue;
		if (!seen && b->s->ragged && !b->plan->lanes)
			seen = tir_binary(k, OP_LT, b->lo[v], b->hi[v]);
		else if (!seen && b->s->ragged) {
			const ValId lo[3] = {stream_int(b, 0), b->strip, stream_int(b, v * b->plan->lanes)};
			const ValId hi[3] = {stream_int(b, 1), b->strip, stream_int(b, v * b->plan->lanes)};
			seen = tir_binary(k, OP_LT, tir_load(k, b->ends, lo, 0, TIR_LANES_ALONG(2), b->plan->lanes),
			                  tir_load(k, b->ends, hi, 0, TIR_LANES_ALONG(2), b->plan->lanes));
		}
		b->some[v] = stream_vector(b, seen ? seen : tir_binary(k, OP_LT, b->begin, b->end));
	}
}

void
stream_finish(StreamBuild *b)
{
	TirKernel *k = b->l.tir;
	stream_load_state(b);
	stream_find_some(b);
	store_outs(b, false, 0);
	if (b->s->wide < 0)
		return;
	ValId column = tir_for(k, stream_int(b, 0), point_launch_expr(&b->l, b->columns), stream_int(b, 1), NULL, 0);
	b->l.axis[b->s->wide] = column;
	store_outs(b, true, column);
	tir_end_for(k, NULL, 0);
	for (unsigned n = 0; n < b->s->nout; n++)
		if (b->turned[n])
			stream_turn_out(b, n);
}
