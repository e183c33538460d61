/* stream_finish.c: what a stream makes of a strip's state, and where it goes. */
#include "passes/schedule/stream.h"

/* The element at the point; the state it is made of has been placed. */
static void
store_out(StreamBuild *b, const StreamOut *m)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	unsigned rank = l->g->tensor.at[m->t].rank;
	PointVal x = {.re = stream_vector(b, point_value(l, m->value, !m->domain).re)};
	ValId p[TG_MAX_RANK];
	int along = -1;
	if (m->domain) {
		ValId zero = point_zero(l, l->g->tensor.at[m->t].dtype).re;
		x.re = tir_select(k, stream_vector(b, point_value(l, m->domain, true).re), x.re, stream_vector(b, zero));
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
				store_out(b, &b->s->out[k]);
		point_release(l, mark);
	}
}

void
stream_finish(StreamBuild *b)
{
	TirKernel *k = b->l.tir;
	stream_load_state(b);
	store_outs(b, false, 0);
	if (b->s->wide < 0)
		return;
	ValId column = tir_for(k, stream_int(b, 0), point_launch_expr(&b->l, b->columns), stream_int(b, 1), NULL, 0);
	b->l.axis[b->s->wide] = column;
	store_outs(b, true, column);
	tir_end_for(k, NULL, 0);
}
