/* roles_side.c: what the two ways to finish a tile of sums have in common (roles_finish.c, window_finish.c): panels of sums are
 * staged in shared memory, and a lane finishes elements side by side, which it reads and stores at once. */
#include "passes/schedule/contract/roles_build.h"

/* --- panels --- */

unsigned
roles_repeats(const Roles *r)
{
	return r->tile.rows / (unsigned)TIR_MMA_ROWS / (r->tile.turns ? 1 : r->tile.groups);
}

/* What the lanes hold of a panel, to where its rows are: two elements side by side at a time. */
static void
stage_panel(Roles *r, ValId lane, ValId first, unsigned panel)
{
	TirKernel *k = r->l.tir;
	unsigned columns = r->tile.columns;
	ValId quad, row = roles_op(r, OP_ADD, first, roles_divide(r, lane, roles_int(r, 4), &quad));
	ValId column = roles_op(r, OP_MUL, quad, roles_int(r, 2));
	for (unsigned n = 0; n < r->tile.panel / 2; n += 2) {
		unsigned piece = panel * r->tile.panel / 2 + n;
		ValId pair[2];
		for (unsigned i = 0; i < 2; i++)
			pair[i] = tir_emit(k, OP_PIECE, tir_scalar(DT_F32), piece + i, NULL, 0);
		ValId both = tir_emit(k, OP_JOIN, tir_vector(DT_F32, 2), 0, pair, 2);
		unsigned down = tir_piece_row(piece, 0, columns) % TIR_MMA_ROWS, right = tir_piece_column(piece, 0, columns) % r->tile.panel;
		const ValId at[2] = {roles_op(r, OP_ADD, row, roles_int(r, down)), roles_op(r, OP_ADD, column, roles_int(r, right))};
		tir_store(k, r->staged, both, at, 0, TIR_LANES_ALONG(1));
	}
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

/* --- what is read and stored several elements at once --- */

static bool
is_wide(const Graph *g, TensorId t)
{
	DType dtype = (DType)g->tensor.at[t].dtype;
	return dtype != DT_C64 && dtype_info[dtype].bits >= 8 && dtype_info[dtype].bits <= 32;
}

/* A tensor that is read along its memory as the column goes on. */
static void
note_wide(void *user, ExprId e)
{
	struct { Roles *r; WideReads *wide; } *x = user;
	const Graph *g = x->r->l.g;
	const Expr *p = expr_get(g, e);
	if (p->op != OP_READ || p->access || !p->narg || g->tensor.at[p->ref].kind == TENSOR_SCALAR || !is_wide(g, p->ref) ||
	    x->wide->n == MOST_WIDE)
		return;
	for (unsigned k = 0; k < x->wide->n; k++)
		if (x->wide->at[k].tensor == p->ref)
			return;
	for (unsigned a = 0; a < p->narg; a++) {
		const Expr *sub = expr_get(g, expr_arg(g, e, a));
		if (sub->op != OP_AXIS || (sub->ref == x->r->of.column_axis) != (a + 1u == p->narg))
			return;
		x->wide->at[x->wide->n].axis[a] = (uint8_t)sub->ref;
	}
	x->wide->at[x->wide->n++].tensor = p->ref;
}

void
side_find(Roles *r, WideReads *wide)
{
	struct { Roles *r; WideReads *wide; } x = {r, wide};
	wide->n = 0;
	if (r->tile.side > 1 && r->l.node->finish)
		expr_walk(r->l.g, r->l.scratch, r->l.node->finish, note_wide, &x);
}

void
side_load(Roles *r, ValId view, const ValId *at, unsigned rank, DType t, ValId *to)
{
	TirKernel *k = r->l.tir;
	unsigned side = r->tile.side;
	ValId x = tir_load(k, view, at, 0, side > 1 ? TIR_LANES_ALONG(rank - 1) : 0, side > 1 ? side : 0);
	for (unsigned c = 0; c < side; c++)
		to[c] = side > 1 ? tir_emit(k, OP_LANE, tir_scalar(t), c, &x, 1) : x;
}

/* The values of the wide tensors at the point, a copy for each of the elements side by side. */
static void
load_wide(Roles *r, const WideReads *wide)
{
	Point *l = &r->l;
	for (unsigned n = 0; n < wide->n; n++) {
		TensorArg *arg = point_tensor(l, wide->at[n].tensor);
		unsigned rank = l->g->tensor.at[arg->tensor].rank;
		ValId at[TG_MAX_RANK], value[MOST_SIDE];
		for (unsigned a = 0; a < rank; a++) {
			arg->point_axis[a] = wide->at[n].axis[a];
			at[a] = l->axis[wide->at[n].axis[a]];
		}
		side_load(r, arg->data, at, rank, (DType)l->g->tensor.at[arg->tensor].dtype, value);
		for (unsigned c = 0; c < r->tile.side; c++)
			arg->value[c] = (PointVal){.re = value[c]};
	}
}

static void
say_where(Roles *r, const WideReads *wide, bool value)
{
	for (unsigned n = 0; n < wide->n; n++) {
		TensorArg *arg = point_tensor(&r->l, wide->at[n].tensor);
		arg->where = value ? IN_VALUE : IN_MEMORY;
		arg->steps = value;
	}
}

void
side_finish(Roles *r, const WideReads *wide, const ValId *sum, PointVal *done)
{
	Point *l = &r->l;
	ValId column = l->axis[r->of.column_axis];
	load_wide(r, wide);
	say_where(r, wide, true);
	for (l->copy = 0; l->copy < r->tile.side; l->copy++) {
		uint32_t mark = point_mark(l);
		l->axis[r->of.column_axis] = l->copy ? roles_op(r, OP_ADD, column, roles_int(r, l->copy)) : column;
		done[l->copy] = element_finish(l, (PointVal){.re = sum[l->copy]}, tir_int(l->tir, DT_BOOL, 1), true);
		point_release(l, mark);
	}
	say_where(r, wide, false);
	l->copy = 0;
	l->axis[r->of.column_axis] = column;
}

ValId
side_join(Roles *r, const PointVal *done)
{
	ValId value[MOST_SIDE];
	for (unsigned c = 0; c < r->tile.side; c++)
		value[c] = done[c].re;
	DType t = (DType)r->l.g->tensor.at[r->l.node->out].dtype;
	return tir_emit(r->l.tir, OP_JOIN, tir_vector(t, r->tile.side), 0, value, r->tile.side);
}

bool
roles_finish_side(const Graph *g, const Node *n, unsigned column_axis)
{
	return is_wide(g, n->out) && column_axis + 1 == g->tensor.at[n->out].rank;
}
