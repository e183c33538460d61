/* exact.c: what a GPU's thread stores of a state: the elements at a point (slots.h).
 *
 * Products of tiles give absent elements a weight of 0. Where such an element's value is infinite or no number, so is the
 * product, and then the sum is no number. So a sum that is none, of a row that may have absent elements, is made anew of
 * those that are present, at the anchors of the row's whole state. Threads go through the elements of all of the task's rows,
 * so that they go together.
 *
 * Scores are then summed in another order, and where they are large, powers of what they are off an anchor are others. A sum of
 * such weights that the state has is made anew too: results are quotients of the two, and what both have of the difference
 * cancels. */
#include "passes/schedule/stream/slots.h"

#include <math.h>

#include "ir/bugs.h"

static ValId
score_at(StreamBuild *b, unsigned n)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	const StreamScore *s = &b->s->score[n];
	ValId terms = point_launch_expr(l, b->terms[n]), zero = stream_int(b, 0);
	ValId some = tir_binary(k, OP_LT, zero, terms), sum = tir_select(k, some, tir_float(k, b->s->type, -0.0), tir_float(k, b->s->type, 0));
	uint32_t mark = point_mark(l);
	ValId t = tir_for(k, zero, terms, stream_int(b, 1), &sum, 1);
	l->axis[s->term] = stream_term_at(b, n, t);
	ValId x = point_value(l, s->query, false).re, y = point_value(l, s->key, false).re;
	sum = tir_binary(k, OP_ADD, sum, tir_binary(k, OP_MUL, x, y));
	point_release(l, mark);
	tir_end_for(k, &sum, 1);
	return stream_finished_as(b, &s->node, n, sum);
}

static void
place_anchors(StreamBuild *b)
{
	for (unsigned k = 0; k < b->s->pass->nanchor; k++) {
		uint32_t mark = point_mark(&b->l);
		stream_place_state(b, b->run, 0, 0);
		b->anchor_new[k][0] = point_value(&b->l, b->s->pass->anchor[k].value, true).re;
		point_release(&b->l, mark);
	}
	stream_place_anchors(b, ANCHOR_NEW, b->anchor_new, 0);
}

/* The accumulator that adds up the weights of this wide one; -1: none does. */
static int
sum_of_weights(const StreamBuild *b, unsigned acc)
{
	const CascadePass *p = b->s->pass;
	for (unsigned k = 0; k < p->nacc; k++)
		if (!b->s->acc[k].wide && p->acc[k].monoid == MON_SUM && p->acc[k].dtype == b->s->type && b->s->acc[k].term == b->s->acc[acc].weight)
			return (int)k;
	return -1;
}

/* What the element at the point, whose scores are placed, adds; and its weight. */
static ValId
term(StreamBuild *b, unsigned acc, ValId *weight)
{
	Point *l = &b->l;
	for (unsigned down = 0; down < 2; down++)
		if (b->apart[down])
			point_place(l, stream_apart(b, down), point_value(l, b->apart[down], false).re);
	for (unsigned k = 0; k < b->s->pass->nacc; k++)
		if (b->s->acc[k].kept)
			point_place(l, stream_kept(b, k), point_value(l, b->s->acc[k].term, false).re);
	for (unsigned n = 0; n < b->s->nscore; n++)
		if (b->power[n])
			point_place(l, stream_power(b, n), point_value(l, b->power[n], false).re);
	*weight = point_value(l, b->s->acc[acc].weight, false).re;
	return tir_binary(l->tir, OP_MUL, *weight, point_value(l, b->s->acc[acc].value, false).re);
}

/* Of what was added up anew, a wide accumulator and the weights, the former as if number `of`, their sum, were what it is; it may be
 * raised. -1: none is their sum. */
static ValId
weighed_anew(StreamBuild *b, int of, const ValId *sum)
{
	TirKernel *k = b->l.tir;
	if (BUG(stream_anew_not_raised))
		return sum[0];
	if (of < 0)
		return b->raised > 0 ? tir_binary(k, OP_MUL, sum[0], tir_float(k, b->s->type, ldexp(1, (int)b->raised))) : sum[0];
	ValId all = tir_binary(k, OP_MUL, sum[0], tir_binary(k, OP_FDIV, b->run[of][0], sum[1]));
	return tir_select(k, tir_binary(k, OP_LT, tir_float(k, b->s->type, 0), sum[1]), all, sum[0]);
}

ValId
slots_wide_anew(StreamBuild *b, unsigned acc)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	bool masked = b->masked;
	uint32_t mark = point_mark(l);
	b->masked = true;
	int of = sum_of_weights(b, acc);
	ValId lo = point_value(l, b->s->lo, true).re, hi = point_value(l, b->s->hi, true).re, unit = tir_float(k, b->s->type, b->from_zero ? 0 : -0.0);
	ValId sum[2] = {unit, unit};
	place_anchors(b);
	ValId j = tir_for(k, b->begin, b->end, stream_int(b, 1), sum, 2);
	uint32_t at = point_mark(l);
	l->axis[b->s->stream] = j;
	ValId before[2] = {sum[0], sum[1]}, weight, in = tir_binary(k, OP_AND, tir_binary(k, OP_LE, lo, j), tir_binary(k, OP_LT, j, hi));
	for (unsigned n = 0; n < b->s->nscore; n++)
		point_tensor(l, b->s->score[n].t)->value[0] = (PointVal){.re = score_at(b, n)};
	in = b->s->rest ? tir_binary(k, OP_AND, in, point_value(l, b->s->rest, false).re) : in;
	tir_if(k, in);
	sum[0] = tir_binary(k, OP_ADD, sum[0], term(b, acc, &weight));
	sum[1] = of < 0 ? sum[1] : tir_binary(k, OP_ADD, sum[1], weight);
	tir_else(k, sum, 2);
	tir_end_if(k, before, 2);
	point_release(l, at);
	tir_end_for(k, before, 2);
	point_release(l, mark);
	b->masked = masked;
	return weighed_anew(b, of, before);
}

bool
slots_may_be_none(const StreamBuild *b)
{
	return (b->s->ragged || b->s->rest || b->beyond) && !BUG(stream_absent_terms);
}

ValId
slots_wide(StreamBuild *b, unsigned acc, ValId v)
{
	TirKernel *k = b->l.tir;
	if (!slots_may_be_none(b))
		return v;
	tir_if(k, tir_unary(k, OP_ISNAN, v));
	ValId again = slots_wide_anew(b, acc);
	tir_else(k, &again, 1);
	tir_end_if(k, &v, 1);
	return v;
}

/* --- results --- */

bool
slots_stores(const StreamBuild *b, bool wide)
{
	bool any = false;
	for (unsigned n = 0; n < b->s->nout; n++)
		any |= b->l.places->stored[b->s->out[n].t] && b->s->out[n].wide == wide;
	return any;
}

/* Of the out that the state at the point has. */
static ValId
out_value(StreamBuild *b, const StreamOut *m)
{
	Point *l = &b->l;
	ValId v = point_value(l, m->value, !m->domain).re;
	if (m->domain)
		v = tir_select(l->tir, point_value(l, m->domain, true).re, v, point_zero(l, l->g->tensor.at[m->t].dtype).re);
	return v;
}

static void
out_place(const StreamBuild *b, const StreamOut *m, ValId *at)
{
	for (unsigned a = 0; a < b->l.g->tensor.at[m->t].rank; a++)
		at[a] = b->l.axis[m->axis[a]];
}

static bool
is_stored(const StreamBuild *b, unsigned n, bool wide)
{
	return b->l.places->stored[b->s->out[n].t] && b->s->out[n].wide == wide;
}

void
slots_store_outs(StreamBuild *b, bool wide, ValId column)
{
	ValId at[TG_MAX_RANK];
	uint32_t mark = point_mark(&b->l);
	stream_place_state(b, b->run, 0, column);
	for (unsigned n = 0; n < b->s->nout; n++) {
		if (!is_stored(b, n, wide))
			continue;
		out_place(b, &b->s->out[n], at);
		point_store(&b->l, b->s->out[n].t, (PointVal){.re = out_value(b, &b->s->out[n])}, at, -1);
	}
	point_release(&b->l, mark);
}

bool
slots_side_by_side(const Graph *g, const Stream *s, const bool *stored)
{
	for (unsigned n = 0; n < s->nout; n++) {
		const StreamOut *m = &s->out[n];
		const Tensor *t = &g->tensor.at[m->t];
		unsigned bits = dtype_info[t->dtype].bits;
		if (stored[m->t] && m->wide && (t->dtype == DT_C64 || bits < 8 || bits > 32 || m->axis[t->rank - 1] != (unsigned)s->wide))
			return false;
	}
	return true;
}

bool
slots_leave_pieces(const StreamBuild *b)
{
	const Graph *g = b->l.g;
	for (unsigned n = 0; n < b->s->nout; n++) {
		const StreamOut *m = &b->s->out[n];
		unsigned bits = dtype_info[g->tensor.at[m->t].dtype].bits;
		uint32_t axes = expr_axes(g, b->l.scratch, m->value) | (m->domain ? expr_axes(g, b->l.scratch, m->domain) : 0);
		if (is_stored(b, n, true) && ((bits != 16 && bits != 32) || axes >> b->s->wide & 1))
			return false;
	}
	return true;
}

unsigned
slots_out_values(StreamBuild *b, unsigned acc, const ValId *v, unsigned side, ValId *to)
{
	ValId column = b->l.axis[b->s->wide];
	unsigned count = 0;
	for (unsigned c = 0; c < side; c++) {
		uint32_t mark = point_mark(&b->l);
		b->l.axis[b->s->wide] = tir_binary(b->l.tir, OP_ADD, column, stream_int(b, c));
		b->column[acc] = v[c];
		stream_place_state(b, b->run, 0, b->l.axis[b->s->wide]);
		count = 0;
		for (unsigned n = 0; n < b->s->nout; n++)
			if (is_stored(b, n, true))
				to[count++ * side + c] = out_value(b, &b->s->out[n]);
		b->column[acc] = 0;
		point_release(&b->l, mark);
	}
	b->l.axis[b->s->wide] = column;
	return count;
}

void
slots_store_nth(StreamBuild *b, unsigned nth, ValId v)
{
	ValId at[TG_MAX_RANK];
	unsigned n = 0;
	while (!is_stored(b, n, true) || nth--)
		n++;
	TensorId t = b->s->out[n].t;
	out_place(b, &b->s->out[n], at);
	if (tir_inst(b->l.tir, v)->type.lanes)
		tir_store(b->l.tir, point_tensor(&b->l, t)->data, v, at, 0, TIR_LANES_ALONG(b->l.g->tensor.at[t].rank - 1));
	else
		point_store(&b->l, t, (PointVal){.re = v}, at, -1);
}

void
slots_store_side(StreamBuild *b, const ValId *v, unsigned count, unsigned side)
{
	TirKernel *k = b->l.tir;
	for (unsigned n = 0; n < count; n++, v += side) {
		DType t = (DType)tir_inst(k, *v)->type.dtype;
		slots_store_nth(b, n, side == 1 ? *v : tir_emit(k, OP_JOIN, tir_vector(t, side), 0, v, side));
	}
}
