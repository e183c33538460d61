/* low.c: what a stream knows to be no more than 0, for the powers of it (stream.h).
 *
 * An anchor that is the greatest term so far is no less than any term of the tile, once it is made of them, and moves up
 * alone; one that is the least, the other way round. Terms that the row has not are in neither, and no power of such is
 * looked at. A kept term has the bits that the extreme was taken of. */
#include "passes/schedule/stream/stream.h"

/* Whether the anchor is the accumulator, or beyond it: kept from an infinity. */
static bool
is_beyond(const Graph *g, ExprId anchor, ExprId acc, Op extreme)
{
	const Expr *p = expr_get(g, anchor);
	return anchor == acc || (p->op == extreme && (expr_arg(g, anchor, 0) == acc || expr_arg(g, anchor, 1) == acc));
}

static void
note_difference(StreamBuild *b, ExprId less, ExprId more)
{
	vec_push(b->l.scratch, &b->l.low, expr_binary(b->l.g, OP_SUB, less, more));
}

static void
note_anchor(StreamBuild *b, unsigned anchor, unsigned acc)
{
	Graph *g = b->l.g;
	const CascadePass *p = b->s->pass;
	const CascadeAnchor *a = &p->anchor[anchor];
	bool max = p->acc[acc].monoid == MON_MAX;
	if ((!max && p->acc[acc].monoid != MON_MIN) || p->acc[acc].rebase || p->acc[acc].dtype != a->dtype ||
	    !is_beyond(g, a->value, cascade_state(g, p, STATE_A, acc), max ? OP_MAX : OP_MIN))
		return;
	ExprId now = expr_make(g, OP_IVAR, a->dtype, ANCHOR_NEW + anchor, 0, NULL, 0);
	ExprId before = expr_make(g, OP_IVAR, a->dtype, ANCHOR_OLD + anchor, 0, NULL, 0);
	note_difference(b, max ? before : now, max ? now : before);
	if (b->s->acc[acc].kept)
		note_difference(b, max ? stream_kept(b, acc) : now, max ? now : stream_kept(b, acc));
}

void
stream_note_low(StreamBuild *b)
{
	for (unsigned k = 0; k < b->s->pass->nanchor; k++)
		for (unsigned n = 0; n < b->s->pass->nacc; n++)
			note_anchor(b, k, n);
}
