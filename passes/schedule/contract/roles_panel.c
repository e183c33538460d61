/* roles_panel.c: how the two ways to finish a tile of sums stage panels of them in shared memory (roles_finish.c,
 * window_finish.c). */
#include "passes/schedule/contract/roles_build.h"

unsigned
roles_repeats(const Roles *r)
{
	return r->tile.rows < TIR_MMA_ROWS ? 1 : r->tile.rows / (unsigned)TIR_MMA_ROWS / (r->tile.turns ? 1 : r->tile.groups);
}

/* Whether e asks where an element is. */
static void
note_place(void *user, ExprId e)
{
	struct { const Roles *r; bool any; } *x = user;
	const Expr *p = expr_get(x->r->l.g, e);
	x->any |= p->op == OP_AXIS && (p->ref == x->r->of.row_axis || p->ref == x->r->of.column_axis);
}

bool
roles_packs(const Roles *r, const RolesTile *t)
{
	enum { FEW = 8 }; /* beside what a sum alone takes: all of a group's elements are finished without a loop */
	const Graph *g = r->l.g;
	struct { const Roles *r; bool any; } asks = {r, false};
	const Node *n = r->l.node;
	if (r->members || r->window || t->parts || t->side == 1 || dtype_info[g->tensor.at[n->out].dtype].bits != 16)
		return false;
	if (n->finish)
		expr_walk(g, r->l.scratch, n->finish, note_place, &asks);
	return !asks.any && side_expr_cost(g, r->l.scratch, n->finish) <= FEW;
}

unsigned
roles_panel(const RolesTile *t, bool packed)
{
	return packed && t->columns > t->panel ? 2u * t->panel : t->panel;
}

unsigned
roles_across(const RolesTile *t, bool packed)
{
	return (t->columns + roles_panel(t, packed) - 1u) / roles_panel(t, packed);
}

/* Where a panel of sum number s, of so many columns, begins in the accumulator, which has those of all sums: side by side, or one
 * after another. */
static unsigned
first_piece(const Roles *r, unsigned s, unsigned panel, unsigned *width, unsigned *columns)
{
	unsigned most = roles_panel(&r->tile, r->packed), across = roles_across(&r->tile, r->packed);
	unsigned down = panel / across, right = panel % across * most;
	*width = r->tile.columns - right < most ? r->tile.columns - right : most;
	*columns = r->tile.columns * (r->of.columns ? 1 + r->of.beside : 1);
	if (r->of.columns)
		right += s * r->tile.columns;
	else
		down += s * roles_repeats(r);
	return down * (*columns / 2) + right / 2;
}

/* A sum that the lane holds, or its element. */
static ValId
staged_piece(Roles *r, unsigned piece)
{
	TirKernel *k = r->l.tir;
	ValId sum = tir_emit(k, OP_PIECE, tir_scalar(DT_F32), piece, NULL, 0);
	if (!r->packed)
		return sum;
	uint32_t mark = point_mark(&r->l);
	ValId done = element_finish(&r->l, (PointVal){.re = sum}, tir_int(k, DT_BOOL, 1), true).re;
	point_release(&r->l, mark);
	return done;
}

/* What the lanes hold of a panel of a sum, to where its rows are: two elements side by side at a time. */
static void
stage_panel_of(Roles *r, ValId lane, ValId first, unsigned panel, unsigned s)
{
	TirKernel *k = r->l.tir;
	const Graph *g = r->l.g;
	unsigned columns, width, from = first_piece(r, s, panel, &width, &columns), most = roles_panel(&r->tile, r->packed);
	ValId quad, row = roles_op(r, OP_ADD, first, roles_divide(r, lane, roles_int(r, 4), &quad));
	ValId column = roles_op(r, OP_MUL, quad, roles_int(r, 2));
	for (unsigned n = 0; n < width / 2; n += 2) {
		unsigned piece = from + n;
		ValId pair[2];
		for (unsigned i = 0; i < 2; i++)
			pair[i] = staged_piece(r, piece + i);
		ValId both = tir_emit(k, OP_JOIN, tir_vector(r->packed ? (DType)g->tensor.at[r->l.node->out].dtype : DT_F32, 2), 0, pair, 2);
		unsigned down = tir_piece_row(piece, 0, columns) % TIR_MMA_ROWS, right = tir_piece_column(piece, 0, columns) % most + s * most;
		const ValId at[2] = {roles_op(r, OP_ADD, row, roles_int(r, down)), roles_op(r, OP_ADD, column, roles_int(r, right))};
		tir_store(k, r->staged, both, at, 0, TIR_LANES_ALONG(1));
	}
}

static void
stage_panel(Roles *r, ValId lane, ValId first, unsigned panel)
{
	for (unsigned s = 0; s <= r->of.beside; s++)
		stage_panel_of(r, lane, first, panel, s);
}

void
roles_stage_one_of(Roles *r, ValId lane, ValId row, ValId panel, unsigned first, unsigned n)
{
	TirKernel *k = r->l.tir;
	if (n == 1) {
		stage_panel(r, lane, row, first);
		return;
	}
	tir_if(k, roles_op(r, OP_LT, panel, roles_int(r, first + n / 2)));
	roles_stage_one_of(r, lane, row, panel, first, n / 2);
	tir_else(k, NULL, 0);
	roles_stage_one_of(r, lane, row, panel, first + n / 2, n - n / 2);
	tir_end_if(k, NULL, 0);
}
