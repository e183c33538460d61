/* roles_apart.c: how far elements are from the row, as numbers: f32(j - i), as of scores that fall or decay with it (roles.c).
 *
 * in     a score's finish, or a weight, has f32(j - i), or f32(i - j), of the streamed index and of the row
 * out    one of them is made for each row of a thread and tile, and those of its other elements by adding how far they are from there
 *
 * A unit that makes floats of integers does so for 16 threads at a time, as the one for powers does, which such scores take as well.
 * Sums are as exact as long as no number takes more bits than an f32 has: of fewer than 2^23 rows and elements none does, and a launch
 * of more has another kernel (roles_tasks.c). */
#include "passes/schedule/stream/roles.h"

#include "ir/bugs.h"
#include "passes/expr_map.h"

typedef struct {
	StreamBuild *b;
	const Stream *s;
} Apart;

static void
note_apart(void *user, ExprId e)
{
	StreamBuild *b = ((Apart *)user)->b;
	const Stream *s = ((Apart *)user)->s;
	const Graph *g = b->l.g;
	const Expr *cast = expr_get(g, e), *p = cast->op == OP_CAST ? expr_get(g, expr_arg(g, e, 0)) : cast;
	if (cast->op != OP_CAST || cast->dtype != DT_F32 || cast->ref || p->op != OP_SUB || p->dtype != DT_I64)
		return;
	ExprId sub = expr_arg(g, e, 0);
	const Expr *from = expr_get(g, expr_arg(g, sub, 0)), *to = expr_get(g, expr_arg(g, sub, 1));
	if (from->op != OP_AXIS || to->op != OP_AXIS)
		return;
	bool up = from->ref == s->stream && to->ref == s->lane, down = from->ref == s->lane && to->ref == s->stream;
	if (up || down)
		b->apart[down] = e;
}

ExprId
stream_apart(const StreamBuild *b, unsigned down)
{
	return expr_make(b->l.g, OP_IVAR, DT_F32, STREAM_APART + down, 0, NULL, 0);
}

void
sr_name_apart(StreamRoles *x, Stream *s)
{
	StreamBuild *b = &x->s.b;
	Point *l = &b->l;
	ExprId *at[SR_OF_ELEMENTS];
	unsigned n = sr_of_elements(s, at);
	for (unsigned i = 0; i < n; i++)
		if (*at[i])
			expr_walk(l->g, l->scratch, *at[i], note_apart, &(Apart){b, s});
	for (unsigned i = 0; i < n; i++)
		for (unsigned down = 0; down < 2 && *at[i]; down++)
			if (b->apart[down])
				*at[i] = expr_replace(l->g, l->scratch, *at[i], b->apart[down], stream_apart(b, down));
	for (unsigned i = 0; i < n; i++)
		if (*at[i])
			point_declare(l, *at[i]);
}

void
slots_enter_apart(StreamSlots *x)
{
	StreamBuild *b = &x->b;
	for (unsigned down = 0; down < 2; down++)
		for (unsigned row = 0; b->apart[down] && row < b->vectors; row++) {
			uint32_t mark = point_mark(&b->l);
			stream_at_vector(b, row);
			b->l.axis[b->s->stream] = x->from;
			x->apart[down][row] = point_value(&b->l, b->apart[down], true).re;
			point_release(&b->l, mark);
		}
}

void
slots_place_apart(StreamSlots *x, unsigned row, unsigned element)
{
	StreamBuild *b = &x->b;
	double by = x->offset[element] + BUG(stream_apart_next);
	for (unsigned down = 0; down < 2; down++)
		if (b->apart[down])
			point_place(&b->l, stream_apart(b, down), tir_binary(b->l.tir, OP_ADD, x->apart[down][row], tir_float(b->l.tir, DT_F32, down ? -by : by)));
}
