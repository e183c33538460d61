/* roles_once.c: what elements of a stream take that is the same for all of a task, as a head's decay (roles.c).
 *
 * in     a score's finish, or a weight, reads T[..], whose subscripts are a task's
 * out    it is read once a task, and is in a register for all its tiles
 *
 * A tile's loop waits for copies and products, over which nobody moves a load: each of a thread's elements would load it anew. Of
 * more than there are places for, the others do. Who makes a row anew (exact.c) has what is named too. */
#include "passes/schedule/stream/roles.h"

#include "passes/expr_map.h"

typedef struct {
	StreamRoles *x;
	const Stream *s;
} Once;

static void
note_read(void *user, ExprId e)
{
	StreamRoles *x = ((Once *)user)->x;
	const Stream *s = ((Once *)user)->s;
	const Graph *g = x->s.b.l.g;
	const Expr *p = expr_get(g, e);
	uint32_t own = s->base & ~(1u << s->lane);
	bool once = p->op == OP_READ && p->narg > 0 && !p->access && !(expr_axes(g, x->s.b.l.scratch, e) & ~own);
	for (unsigned k = 0; k < x->nonce && once; k++)
		once = x->once[k] != e;
	if (once && x->nonce < SR_ONCE)
		x->once[x->nonce++] = e;
}

static ExprId
once_name(StreamRoles *x, unsigned k)
{
	return expr_make(x->s.b.l.g, OP_IVAR, expr_get(x->s.b.l.g, x->once[k])->dtype, STREAM_ONCE + k, 0, NULL, 0);
}

unsigned
sr_of_elements(Stream *s, ExprId **at)
{
	unsigned n = 0;
	at[n++] = &s->score[0].quick.finish;
	for (unsigned k = 0; k < s->pass->nacc; k++)
		at[n++] = s->acc[k].wide ? &s->acc[k].weight : &s->acc[k].term;
	return n;
}

void
sr_name_once(StreamRoles *x, Stream *s)
{
	Point *l = &x->s.b.l;
	ExprId *at[SR_OF_ELEMENTS];
	unsigned n = sr_of_elements(s, at);
	for (unsigned i = 0; i < n; i++)
		if (*at[i])
			expr_walk(l->g, l->scratch, *at[i], note_read, &(Once){.x = x, .s = s});
	for (unsigned i = 0; i < n && x->nonce; i++) {
		for (unsigned k = 0; k < x->nonce && *at[i]; k++)
			*at[i] = expr_replace(l->g, l->scratch, *at[i], x->once[k], once_name(x, k));
		if (*at[i])
			point_declare(l, *at[i]);
	}
}

void
sr_place_once(StreamRoles *x)
{
	for (unsigned k = 0; k < x->nonce; k++)
		point_place(&x->s.b.l, once_name(x, k), point_value(&x->s.b.l, x->once[k], true).re);
}
