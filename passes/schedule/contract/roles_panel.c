/* roles_panel.c: how the two ways to finish a tile of sums stage panels of them in shared memory (roles_finish.c,
 * window_finish.c). */
#include "passes/schedule/contract/roles_build.h"

#include "ir/fragment.h"

enum { WARP_ROWS = 16 };

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
	if (r->members || r->window || t->parts || t->pieces || t->thirds || t->side == 1 || dtype_info[g->tensor.at[n->out].dtype].bits != 16)
		return false;
	if (n->finish)
		expr_walk(g, r->l.scratch, n->finish, note_place, &asks);
	return !asks.any && side_expr_cost(g, r->l.scratch, n->finish) <= FEW;
}

/* The lanes along a row first; what is left of their number is along rows. */
static Layout
rows_of_lanes(unsigned columns)
{
	Layout l = layout_new(2, (unsigned[]){WARP_ROWS, columns});
	unsigned lanes = 1;
	for (unsigned c = 1; c < columns; c *= 2) {
		layout_add_bit(&l, c < ROLES_PACKED_SIDE ? AXIS_REG : AXIS_LANE, coord_along(1, c));
		lanes *= c < ROLES_PACKED_SIDE ? 1 : 2;
	}
	for (unsigned row = 1; row < WARP_ROWS; row *= 2, lanes *= 2)
		layout_add_bit(&l, lanes < TIR_WARP ? AXIS_LANE : AXIS_REG, coord_along(0, row));
	return l;
}

/* Not by shuffles: a group's instructions are what its time goes to, and those take five times as many. */
const ConvertPlan *
roles_to_rows(const Roles *r)
{
	Arena *a = r->l.scratch;
	unsigned columns = roles_panel(&r->tile, true);
	const ConvertMeans means = {.bits = 16, .store_matrix = true, .scratch_bytes = WARP_ROWS * columns * 2};
	Layout sums, rows = rows_of_lanes(columns);
	const char *error = "is no tile of fragments";
	const ConvertPlan *p = NULL;
	if (fragment_layout(a, FRAGMENT_MMA_C, (unsigned[]){WARP_ROWS, columns}, (unsigned[]){1, 0}, &sums))
		p = layout_convert(a, &sums, &rows, &means, &error);
	if (!p || p->step.n != 3 || p->step.at[0].kind != STEP_STORE_MATRIX || p->step.at[2].kind != STEP_LOAD)
		bug(a, "a panel of %u columns: %s", columns, p ? "is not stored at once" : error);
	for (unsigned row = 0; row < p->step.at[2].n; row++)
		if (p->step.at[2].reg[row * ROLES_PACKED_SIDE] != p->result + row * ROLES_PACKED_SIDE)
			bug(a, "a panel of %u columns: rows are not in order", columns);
	return p;
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

static ValId
sum_of(Roles *r, unsigned piece)
{
	return r->total ? r->total[piece] : tir_emit(r->l.tir, OP_PIECE, tir_scalar(DT_F32), piece, NULL, 0);
}

/* The elements of what the lanes hold of a panel, which may have fewer columns than the plan. */
static void
stage_elements(Roles *r, unsigned panel)
{
	const ConvertStep *s = r->put.step;
	unsigned columns, width, from = first_piece(r, 0, panel, &width, &columns), each = s->width * 2;
	ValId *done = ARENA_ARRAY(r->l.scratch, ValId, width / 2);
	for (unsigned e = 0; e < s->n; e++) {
		if (s->reg[e * each] >= width / 2)
			continue;
		for (unsigned i = 0; i < each; i++) {
			uint32_t mark = point_mark(&r->l), piece = s->reg[e * each + i];
			done[piece] = element_finish(&r->l, (PointVal){.re = sum_of(r, from + piece)}, tir_int(r->l.tir, DT_BOOL, 1), true).re;
			point_release(&r->l, mark);
		}
		convert_put(&r->put, e, done);
	}
}

/* What the lanes hold of a panel of a sum, to where its rows are: two elements side by side at a time. */
static void
stage_panel_of(Roles *r, ValId lane, ValId first, unsigned panel, unsigned s)
{
	TirKernel *k = r->l.tir;
	unsigned columns, width, from = first_piece(r, s, panel, &width, &columns), most = roles_panel(&r->tile, false);
	ValId quad, row = roles_op(r, OP_ADD, first, roles_divide(r, lane, roles_int(r, 4), &quad));
	ValId column = roles_op(r, OP_MUL, quad, roles_int(r, 2));
	for (unsigned n = 0; n < width / 2; n += 2) {
		unsigned piece = from + n;
		ValId pair[2];
		for (unsigned i = 0; i < 2; i++)
			pair[i] = sum_of(r, piece + i);
		ValId both = tir_emit(k, OP_JOIN, tir_vector(DT_F32, 2), 0, pair, 2);
		unsigned down = tir_piece_row(piece, 0, columns) % TIR_MMA_ROWS, right = tir_piece_column(piece, 0, columns) % most + s * most;
		const ValId at[2] = {roles_op(r, OP_ADD, row, roles_int(r, down)), roles_op(r, OP_ADD, column, roles_int(r, right))};
		tir_store(k, r->staged, both, at, 0, TIR_LANES_ALONG(1));
	}
}

static void
stage_panel(Roles *r, ValId lane, ValId first, unsigned panel)
{
	for (unsigned s = 0; s <= r->of.beside && !r->packed; s++)
		stage_panel_of(r, lane, first, panel, s);
	if (r->packed)
		stage_elements(r, panel);
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
