/* out.c: the elements that a stream leaves (stream.h): what each reduction makes of the state, and
 * pointwise nodes of those, whose reads are replaced by what is read. */
#include <string.h>

#include "passes/expr_map.h"
#include "passes/schedule/stream/stream.h"

static ExprId
over_axes(Graph *g, const Node *n, const uint8_t *axis, ExprId e)
{
	ExprId sub[TG_MAX_AXES];
	unsigned npar = n->npar;
	for (unsigned a = 0; a < npar; a++)
		sub[a] = expr_axis(g, axis[a]);
	return e ? expr_subst_axes(g, e, sub, npar) : 0;
}

static void
finish_out(Graph *g, Stream *s, StreamOut *out)
{
	const Node n = *tensor_node(g, out->t);
	out->domain = expr_is_true(g, n.domain) ? 0 : over_axes(g, &n, out->axis, n.domain);
	for (unsigned a = 0; a < n.npar; a++)
		out->wide |= (int)out->axis[a] == s->wide;
	s->nout++;
}

void
stream_add_member(Graph *g, Stream *s, const CascadeMember *m)
{
	StreamOut *out = &s->out[s->nout];
	*out = (StreamOut){.t = m->tensor, .value = m->value};
	memcpy(out->axis, m->axis, sizeof out->axis);
	finish_out(g, s, out);
}

/* --- pointwise nodes --- */

typedef struct {
	const Graph *g;
	const Stream *s;
	int axis[TG_MAX_RANK]; /* of the node; -1: not known */
	bool elsewhere;
} Match;

static const StreamOut *
out_of(const Stream *s, TensorId t)
{
	for (unsigned k = 0; k < s->nout; k++)
		if (s->out[k].t == t)
			return &s->out[k];
	return NULL;
}

static void
match_read(void *user, ExprId e)
{
	Match *m = user;
	const Expr *p = expr_get(m->g, e);
	const StreamOut *out = p->op == OP_READ ? out_of(m->s, p->ref) : NULL;
	for (unsigned k = 0; k < m->s->nscore && p->op == OP_READ; k++)
		m->elsewhere |= p->ref == m->s->score[k].t || p->ref == m->s->score[k].source;
	for (unsigned a = 0; out && a < p->narg; a++) {
		const Expr *sub = expr_get(m->g, expr_arg(m->g, e, a));
		if (sub->op != OP_AXIS || p->access) {
			m->elsewhere = true;
			return;
		}
		m->elsewhere |= m->axis[sub->ref] >= 0 && m->axis[sub->ref] != out->axis[a];
		m->axis[sub->ref] = out->axis[a];
	}
}

static ExprId
take_value(void *user, Graph *g, ExprId e)
{
	const Expr *p = expr_get(g, e);
	const StreamOut *out = p->op == OP_READ ? out_of(user, p->ref) : NULL;
	return out ? out->value : e;
}

/* Whether every axis has a different one of the cascade, of the same extent. */
static bool
axes_match(Graph *g, const Stream *s, TensorId t, const int *axis)
{
	uint32_t seen = 0;
	for (unsigned a = 0; a < g->tensor.at[t].rank; a++) {
		if (axis[a] < 0 || seen >> axis[a] & 1 || index_norm(g, g->tensor.at[t].extent[a]) != s->c.extent[axis[a]])
			return false;
		seen |= 1u << axis[a];
	}
	return true;
}

bool
stream_add_point(Graph *g, Arena *scratch, Stream *s, TensorId t, RemarkId *why)
{
	const Node n = *tensor_node(g, t);
	StreamOut *out = &s->out[s->nout];
	Match m = {.g = g, .s = s};
	memset(m.axis, -1, sizeof m.axis);
	*why = REMARK_stream_rows;
	if (s->nout == STREAM_MAX_OUT || n.monoid != MON_NONE || n.recur || n.scatter || n.finish || n.reports)
		return false;
	expr_walk(g, scratch, n.body, match_read, &m);
	expr_walk(g, scratch, n.domain, match_read, &m);
	if (m.elsewhere || !axes_match(g, s, t, m.axis))
		return false;
	*out = (StreamOut){.t = t};
	for (unsigned a = 0; a < n.npar; a++)
		out->axis[a] = (uint8_t)m.axis[a];
	out->value = expr_map(g, scratch, over_axes(g, &n, out->axis, n.body), take_value, s);
	finish_out(g, s, out);
	*why = REMARK_NONE;
	return true;
}
