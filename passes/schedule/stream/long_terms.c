/* long_terms.c: powers that are terms of a stream's long sums need not have all bits of f32 (point/long_sums.c).
 *
 * The whole sum is of all parts that a stream is one of (fuse/split_stream.c). Of n terms, each goes through no more additions
 * than there are in a thread, n / 13 where it has 48 elements of a tile of 192 in 4 chains and joins these, a few that join lanes,
 * and those that join parts, of which there are n / 192 and one at most: h = n / 13 + n / 192 + 20, and n - h is more than the 1025
 * that are asked for, for n = 2048 and more. Terms that may be absent are not counted on. */
#include "passes/schedule/point/long_sums.h"
#include "passes/schedule/stream/stream.h"

static bool
is_sum(const Stream *s, unsigned acc)
{
	const CascadeAcc *a = &s->pass->acc[acc];
	return a->monoid == MON_SUM && a->dtype == DT_F32 && !s->acc[acc].wide && !s->acc[acc].kept;
}

static void
find_power(void *user, ExprId e)
{
	const Graph **g = user;
	if (*g && expr_get(*g, e)->op == OP_EXP)
		*g = NULL;
}

bool
stream_long_sums_gain(const Graph *g, const Stream *s)
{
	const Graph *none = g;
	Arena *scratch = g->arena;
	for (unsigned k = 0; k < s->pass->nacc && !s->c.guard; k++)
		if (is_sum(s, k))
			expr_walk(g, scratch, s->acc[k].term, find_power, &none);
	return !none;
}

void
stream_mark_long_sums(Graph *g, Stream *s)
{
	for (unsigned k = 0; k < s->pass->nacc; k++)
		if (is_sum(s, k))
			s->acc[k].term = long_sums_term(g, s->acc[k].term);
}

/* Of the first of several parts, as often as there are whole ones; parts are counted by the first axis. */
ExprId
stream_least_elements(StreamBuild *b)
{
	Graph *g = b->l.g;
	const Stream *s = b->s;
	const Axis *x = &s->c.axis[s->stream];
	ExprId zero = expr_int(g, DT_I64, 0), one = expr_int(g, DT_I64, 1), sub[TG_MAX_AXES];
	uint32_t axes = expr_axes(g, b->l.scratch, x->lo) | expr_axes(g, b->l.scratch, x->hi);
	ExprId first = expr_binary(g, OP_SUB, x->hi, x->lo);
	if (!axes)
		return first;
	for (unsigned a = 0; a < s->c.npar; a++)
		sub[a] = expr_axis(g, a);
	unsigned part = (unsigned)__builtin_ctz(axes);
	sub[part] = zero;
	if (axes != 1u << part || !tensor_node(g, s->c.member[0].tensor)->parts)
		return zero;
	first = expr_subst_axes(g, first, sub, s->c.npar);
	return expr_binary(g, OP_MUL, first, expr_binary(g, OP_SUB, s->c.extent[part], one));
}
