/* roles_finish.c: the elements of a tile of sums, of a kernel of roles (roles.c).
 *
 * They are finished a panel at a time, 64 rows by so many columns of the group's, through shared memory: lanes have pieces of
 * the accumulator where the hardware puts them, and read what they are to finish along a row of the output: one element, or
 * a few side by side, which are then read and stored at once wherever finish reads a tensor, and the output has its columns,
 * along memory. A warp's 16 rows stay with the warp. Several go side by side, what they read before what they store, so
 * that their reads wait together. What a panel's elements read by their rows, of memory that answers late while products go
 * on, is read before the panel is staged, where a thread has the registers.
 *
 * Elements of 16 bits that ask for nothing but their sum are finished where the hardware has that, and change lanes as they are
 * stored, by matrices through shared memory (ir/convert.h): half as much goes there, and a lane stores 16 bytes at once. On an
 * H200 64 products of 1024 x 1024 x 128 took 56 us, and 50 (cuBLAS 52) where two elements at a time went there.
 *
 * Blocks that have parts of the terms put all of a tile's sums where the others of the cluster reach them; then each block
 * adds those of its rows, in the order of the parts, and finishes them. */
#include "ir/bugs.h"
#include "passes/schedule/contract/roles_own.h"

#include <string.h>

enum {
	GAP = 8,      /* between rows in shared memory: pairs of 8 lanes meet all banks */
	AT_ONCE = 8,  /* elements of a lane that are finished together, */
	MOST_AT_ONCE = 32, /* where that takes few instructions: */
	FEW = 24,
	PACKED_REGISTERS = 4, /* that ROLES_PACKED_SIDE elements lie in, which a lane stores at once */
	OTHER_REGISTERS = 4, /* of a thread, beside sums, what is read and what is finished; */
	AHEAD_REGISTERS = 24, /* where some of that is read ahead, with what is finished, */
	ASIDE_REGISTERS = 28, /* and where some operands are a routine's */
	SPARE_REGISTERS = 12, /* of those, that hold the lane's place */
	JOINT_REGISTERS = 8 /* of a block that has a part in common with another: which one it is, and where that one has its words */
};

/* Of a row of sums that are staged: of a panel, or where the cluster reaches them. */
static unsigned
pitch(const Roles *r)
{
	return (r->tile.parts ? r->tile.columns : (1u + r->of.beside) * r->tile.panel) + GAP;
}

/* Where no cluster has a tile. */
uint32_t
roles_staged_bytes(const Roles *r)
{
	return (uint32_t)r->tile.groups * TIR_MMA_ROWS * pitch(r) * (uint32_t)sizeof(float);
}

void
roles_bind_staged(Roles *r)
{
	TirKernel *k = r->l.tir;
	if (r->tile.parts) {
		unsigned all = r->tile.rows * pitch(r), wide = tir_add_buffer(k, 0, DT_F32, true);
		k->buffer.at[wide].shared = all;
		k->buffer.at[wide].wide = true;
		r->staged = tir_view(k, wide, 2, (ValId[]){roles_int(r, r->tile.parts), roles_int(r, all)}, (ValId[]){roles_int(r, all), roles_int(r, 1)});
		return;
	}
	DType t = DT_F32;
	unsigned rows = (unsigned)r->tile.groups * TIR_MMA_ROWS, each = pitch(r);
	if (r->packed) {
		r->to_rows = roles_to_rows(r);
		r->flat = side_flat_output(&r->l, point_launch_expr(&r->l, r->ncolumn));
		t = (DType)r->l.g->tensor.at[r->l.node->out].dtype;
		rows = (unsigned)r->tile.groups * (TIR_GROUP / TIR_WARP);
		each = r->to_rows->scratch;
	}
	unsigned buffer = tir_add_buffer(k, 0, t, true);
	k->buffer.at[buffer].shared = rows * each;
	r->staged = tir_view(k, buffer, 2, (ValId[]){roles_int(r, rows), roles_int(r, each)}, (ValId[]){roles_int(r, each), roles_int(r, 1)});
}

/* The sums side by side, of a row of those that are staged. */
static void
load_sums(Roles *r, const Side *side, ValId row, ValId right, ValId *sum)
{
	if (!r->tile.parts) {
		side_load(side, r->staged, (ValId[]){row, right}, 2, DT_F32, sum);
		return;
	}
	ValId at = roles_op(r, OP_ADD, roles_op(r, OP_MUL, row, roles_int(r, pitch(r))), right);
	for (unsigned p = 0; p < r->tile.parts; p++) {
		ValId part[MOST_SIDE];
		side_load(side, r->staged, (ValId[]){roles_int(r, p), at}, 2, DT_F32, part);
		for (unsigned c = 0; c < r->tile.side; c++)
			sum[c] = p ? roles_op(r, OP_ADD, sum[c], part[c]) : part[c];
	}
}

/* --- panels --- */

static bool
goes_by_rows(const Roles *r, const Side *s, unsigned n)
{
	bool by_rows = false;
	for (unsigned a = 0; a < r->l.g->tensor.at[s->at[n].tensor].rank; a++)
		by_rows |= s->at[n].axis[a] == r->of.row_axis;
	return by_rows;
}

/* How many values of a tensor the lane reads ahead of a panel. */
static unsigned
values_ahead(const Roles *r, const Own *own, unsigned n)
{
	return goes_by_rows(r, &own->side, n) ? own->window : 1;
}

/* What the lane reads where it has read ahead: of the row that is so many behind the first of those. */
static Side
side_at(const Roles *r, const Own *own, const ValId *ahead, unsigned behind)
{
	Side s = own->side;
	for (unsigned n = 0; ahead && n < s.n; n++) {
		s.at[n].ahead = ahead[goes_by_rows(r, &s, n) ? behind : 0];
		ahead += values_ahead(r, own, n);
	}
	return s;
}

/* The same of several sums, whose panels are staged side by side. */
static void
finish_members(Roles *r, const Own *own, ValId row, unsigned n, const ValId *ahead)
{
	enum { MOST = AT_ONCE * MOST_SIDE * MEMBERS_MOST_RESULTS };
	Point *l = &r->l;
	PointVal done[MOST];
	ValId at[AT_ONCE];
	unsigned each = r->members->nresult * MOST_SIDE;
	for (unsigned i = 0; i < n; i++) {
		ValId down = roles_op(r, OP_ADD, row, roles_int(r, (int64_t)i * own->down)), sum[MEMBERS_MOST_SUMS * MOST_SIDE];
		at[i] = l->axis[r->of.row_axis] = roles_op(r, OP_ADD, own->row0, down);
		for (unsigned s = 0; s < r->members->nsum; s++) {
			ValId right = roles_op(r, OP_ADD, own->right, roles_int(r, (int64_t)s * r->tile.panel));
			load_sums(r, &own->side, roles_op(r, OP_ADD, own->first, down), right, sum + s * MOST_SIDE);
		}
		const Side side = side_at(r, own, ahead, i);
		members_finish(r->members, &side, sum, done + i * each);
	}
	for (unsigned i = 0; i < n; i++) {
		l->axis[r->of.row_axis] = at[i];
		members_store(r->members, &own->side, done + i * each);
	}
}

/* The elements at so many of the lane's rows, from this one of the warp's on; ahead: NULL, or what is read of these and those
 * behind. */
static void
finish_rows(Roles *r, const Own *own, ValId row, unsigned n, const ValId *ahead)
{
	Point *l = &r->l;
	PointVal done[MOST_AT_ONCE];
	ValId at[MOST_AT_ONCE];
	if (r->members) {
		finish_members(r, own, row, n, ahead);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		ValId down = roles_op(r, OP_ADD, row, roles_int(r, (int64_t)i * own->down));
		at[i] = l->axis[r->of.row_axis] = roles_op(r, OP_ADD, own->row0, down);
		ValId sum[MOST_SIDE];
		load_sums(r, &own->side, roles_op(r, OP_ADD, own->first, down), own->right, sum);
		const Side side = side_at(r, own, ahead, i);
		side_finish(&side, sum, done + i * r->tile.side);
	}
	for (unsigned i = 0; i < n; i++) {
		l->axis[r->of.row_axis] = at[i];
		side_store(&own->side, done + i * r->tile.side);
	}
}

static ValId
below(Roles *r, ValId i, ValId end)
{
	return BUG(tile_ends_unmasked) ? tir_int(r->l.tir, DT_BOOL, 1) : roles_op(r, OP_LT, i, end);
}

/* Whether no tile before this one, which begins at `begin`, has i: it has so many of the first ones. */
static ValId
is_own(Roles *r, ValId i, ValId begin, ValId skip)
{
	TirKernel *k = r->l.tir;
	return BUG(tile_begins_unmasked) ? tir_int(k, DT_BOOL, 1) : roles_op(r, OP_LE, skip, tir_cast(k, DT_U32, roles_op(r, OP_SUB, i, begin)));
}

/* Whether the rows from `first` to `last` are the tile's own, and the output's. */
static ValId
has_rows(Roles *r, const Own *own, ValId first, ValId last)
{
	return roles_op(r, OP_AND, is_own(r, first, r->row0, r->skip_rows), below(r, last, own->row_end));
}

/* The same of the lane's columns. */
static ValId
has_columns(Roles *r, const Own *own)
{
	return roles_op(r, OP_AND, is_own(r, own->column, r->column0, r->skip_columns), below(r, own->column, own->column_end));
}

/* Those of the rows from `first` to `end` that the output has, one after the other. */
static void
finish_last_rows(Roles *r, const Own *own, ValId first, ValId end)
{
	TirKernel *k = r->l.tir;
	ValId row = tir_for(k, first, end, roles_int(r, own->down), NULL, 0);
	ValId at = roles_op(r, OP_ADD, own->row0, row);
	tir_if(k, has_rows(r, own, at, at));
	finish_rows(r, own, row, 1, NULL);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
}

/* What the lane reads of tensor n, at so many of its rows behind this one, where the panel has them. */
static ValId
read_behind(Roles *r, const Own *own, unsigned n, ValId row, unsigned behind)
{
	ValId at = roles_op(r, OP_ADD, row, roles_int(r, (int64_t)behind * own->down));
	ValId there = tir_binary(r->l.tir, OP_AND, own->whole, roles_op(r, OP_LT, at, roles_int(r, own->end)));
	r->l.axis[r->of.row_axis] = roles_op(r, OP_ADD, own->row0, at);
	return side_read(&own->side, n, there);
}

/* All of the lane's rows, what the first ones read being there: a turn of the loop finds its own in front, and reads as many
 * more, if there are some that have not been. */
static void
finish_read_ahead(Roles *r, const Own *own)
{
	TirKernel *k = r->l.tir;
	unsigned rows = own->rows, at = 0;
	bool all = own->window == own->end / own->down;
	ValId carried[MOST_AHEAD], next[MOST_AHEAD], step = roles_int(r, (int64_t)rows * own->down);
	memcpy(carried, own->ahead, own->nahead * sizeof *carried);
	ValId row = tir_for(k, roles_int(r, 0), roles_int(r, own->end), step, carried, own->nahead);
	for (unsigned n = 0; n < own->side.n; n++) {
		const ValId *front = carried + at;
		if (!goes_by_rows(r, &own->side, n))
			next[at++] = *front;
		else
			for (unsigned i = rows; i < own->window + rows; i++)
				next[at++] = i < own->window ? front[i] : all ? front[i - own->window] : read_behind(r, own, n, row, i);
	}
	finish_rows(r, own, row, rows, carried);
	tir_end_for(k, next, own->nahead);
}

/* Whether none of the warp's sums in this panel is one of those that cancel. */
static ValId
holds_in(Roles *r, ValId doubt, ValId panel)
{
	TirKernel *k = r->l.tir;
	ValId bit = tir_binary(k, OP_BAND, tir_binary(k, OP_SHR, doubt, tir_cast(k, DT_U32, panel)), tir_int(k, DT_U32, 1));
	return tir_binary(k, OP_EQ, bit, tir_int(k, DT_U32, 0));
}

/* The rows of the lane's that the output has, where it has the lane's columns. */
static void
finish_panel(Roles *r, const Own *own)
{
	TirKernel *k = r->l.tir;
	if (own->nahead) {
		tir_if(k, own->whole);
		finish_read_ahead(r, own);
		tir_else(k, NULL, 0);
		tir_if(k, has_columns(r, own));
		finish_last_rows(r, own, roles_int(r, 0), roles_int(r, own->end));
		tir_else(k, NULL, 0);
		tir_end_if(k, NULL, 0);
		tir_end_if(k, NULL, 0);
		return;
	}
	ValId step = roles_int(r, (int64_t)own->rows * own->down);
	tir_if(k, has_columns(r, own));
	ValId row = tir_for(k, roles_int(r, 0), roles_int(r, own->end), step, NULL, 0), end = roles_op(r, OP_ADD, row, step);
	ValId last = roles_op(r, OP_ADD, own->row0, roles_op(r, OP_SUB, end, roles_int(r, own->down)));
	tir_if(k, has_rows(r, own, roles_op(r, OP_ADD, own->row0, row), last));
	finish_rows(r, own, row, own->rows, NULL);
	tir_else(k, NULL, 0);
	finish_last_rows(r, own, row, end);
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

/* --- panels of elements --- */

/* From one of the output's indices along an axis to the next, in elements. */
static ValId
stride_of(Roles *r, unsigned axis)
{
	const Point *l = &r->l;
	return tir_arg(l->tir, point_tensor(&r->l, l->node->out)->data, 1u + l->g->tensor.at[l->node->out].rank + axis);
}

/* Where a row of the output begins in it. */
static ValId
place_of_row(Roles *r, ValId row)
{
	ValId at = roles_op(r, OP_MUL, row, stride_of(r, r->of.row_axis));
	for (unsigned a = 0; a < r->l.node->npar; a++)
		if (a != r->of.row_axis && a != r->of.column_axis)
			at = roles_op(r, OP_ADD, at, roles_op(r, OP_MUL, r->l.axis[a], stride_of(r, a)));
	return at;
}

/* What the lane has of a row that is so many below its first one. */
static void
store_elements(Roles *r, const Own *own, ValId down, ValId elements)
{
	ValId place = roles_op(r, OP_ADD, place_of_row(r, own->row0), roles_op(r, OP_MUL, stride_of(r, r->of.row_axis), down));
	tir_store(r->l.tir, r->flat, elements, (ValId[]){place, own->column}, 0, TIR_LANES_ALONG(1));
}

/* So many of the lane's rows from number `first` on. */
static void
copy_rows(Roles *r, const Own *own, unsigned first, unsigned n)
{
	ValId all[WARP_ROWS];
	for (unsigned i = 0; i < n; i++)
		all[i] = convert_take(&r->take, first + i);
	for (unsigned i = 0; i < n; i++)
		store_elements(r, own, roles_int(r, (int64_t)(first + i) * own->down), all[i]);
}

/* Those from `first` to `end` below its first one that the output has, one after the other. */
static void
copy_last_rows(Roles *r, const Own *own, ValId first, ValId end)
{
	TirKernel *k = r->l.tir;
	ValId down = tir_for(k, first, end, roles_int(r, own->down), NULL, 0), at = roles_op(r, OP_ADD, own->row0, down);
	tir_if(k, has_rows(r, own, at, at));
	store_elements(r, own, down, convert_take_any(&r->take, roles_op(r, OP_IDIV, down, roles_int(r, own->down))));
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
}

static void
finish_elements(Roles *r, const Own *own)
{
	TirKernel *k = r->l.tir;
	unsigned step = own->rows * own->down;
	tir_if(k, has_columns(r, own));
	for (unsigned first = 0; first < own->end; first += step) {
		ValId from = roles_int(r, first), last = roles_int(r, first + step - own->down);
		tir_if(k, has_rows(r, own, roles_op(r, OP_ADD, own->row0, from), roles_op(r, OP_ADD, own->row0, last)));
		copy_rows(r, own, first / own->down, own->rows);
		tir_else(k, NULL, 0);
		copy_last_rows(r, own, from, roles_int(r, first + step));
		tir_end_if(k, NULL, 0);
	}
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

/* --- how many rows --- */

/* Registers of a lane beside sums and what it reads by its rows; *each: of what it reads of one of those. */
static unsigned
registers_beside(const Roles *r, const Own *own, unsigned *each)
{
	const Graph *g = r->l.g;
	unsigned flags = r->members ? members_flags(&r->l, r->members) : side_expr_flags(g, r->l.scratch, r->l.node->finish);
	unsigned words = OTHER_REGISTERS + (flags & F_ASIDE ? ASIDE_REGISTERS : 0);
	*each = 0;
	for (unsigned n = 0; n < own->side.n; n++) {
		unsigned bits = dtype_info[g->tensor.at[own->side.at[n].tensor].dtype].bits;
		*(goes_by_rows(r, &own->side, n) ? each : &words) += (bits * r->tile.side + 31) / 32;
	}
	return words;
}

/* How many rows are finished together, and how many values the lane reads ahead of a panel, where so many registers have sums:
 * as many as there are registers for. None is read ahead where nothing goes by rows, or they are too few. */
static void
find_rows(Roles *r, Own *own, unsigned sums)
{
	const Graph *g = r->l.g;
	unsigned each, words = sums + registers_beside(r, own, &each), all = own->end / own->down;
	own->nahead = 0;
	own->anew = false;
	if (r->packed) {
		for (own->rows = all; own->rows > 1 && words + PACKED_REGISTERS * own->rows > r->tile.registers;)
			own->rows /= 2;
		return;
	}
	bool few = !r->members && side_cost(&r->l) <= FEW;
	own->rows = (few ? MOST_AT_ONCE : AT_ONCE) / r->tile.side;
	unsigned finished = r->tile.side;
	if (r->members && own->side.n) { /* what is read of each row meets all of its sums */
		words += AHEAD_REGISTERS;
		finished *= r->members->nsum + r->members->nresult;
	}
	while (own->rows > 1 && (own->rows > all || words + (each + finished) * own->rows > r->tile.registers))
		own->rows /= 2;
	for (unsigned n = 0; n < own->side.n; n++) {
		DType t = (DType)g->tensor.at[own->side.at[n].tensor].dtype;
		if (!dtype_is_float(t) || dtype_info[t].bits < 16)
			return;
	}
	unsigned rows = own->rows < AT_ONCE / r->tile.side ? own->rows : AT_ONCE / r->tile.side;
	words += r->members && own->side.n ? 0 : AHEAD_REGISTERS;
	own->window = all;
	while (own->window >= rows && words + each * own->window > r->tile.registers)
		own->window /= 2;
	if (!each || own->window < rows)
		return;
	unsigned values = 0;
	for (unsigned n = 0; n < own->side.n; n++)
		values += values_ahead(r, own, n);
	if (values > MOST_AHEAD)
		return;
	own->nahead = values;
	own->rows = rows;
	own->anew = words + each * own->window + SPARE_REGISTERS > r->tile.registers;
}

/* Reads it, of the panel whose first row and column the lane has. */
static void
read_ahead(Roles *r, Own *own)
{
	TirKernel *k = r->l.tir;
	ValId last = roles_op(r, OP_ADD, own->row0, roles_int(r, own->end - own->down));
	unsigned at = 0;
	own->whole = tir_binary(k, OP_AND, has_columns(r, own), has_rows(r, own, own->row0, last));
	for (unsigned n = 0; n < own->side.n; n++)
		for (unsigned i = 0; i < values_ahead(r, own, n); i++) {
			r->l.axis[r->of.row_axis] = roles_op(r, OP_ADD, own->row0, roles_int(r, (int64_t)i * own->down));
			own->ahead[at++] = side_read(&own->side, n, own->whole);
		}
}

/* A warp has panel / side lanes along a row, so that several of its rows are met at once. */
static Own
own_place(Roles *r)
{
	Own own;
	unsigned side = r->packed ? ROLES_PACKED_SIDE : r->tile.side, panel = roles_panel(&r->tile, r->packed), across = panel / side;
	ValId rest, warp = roles_divide(r, r->thread, roles_int(r, TIR_WARP), &own.lane);
	ValId below = roles_divide(r, own.lane, roles_int(r, across), &own.right);
	own.right = roles_op(r, OP_MUL, own.right, roles_int(r, side));
	own.down = TIR_WARP / across;
	own.end = WARP_ROWS;
	own.row_end = point_launch_expr(&r->l, r->nrow);
	if (r->tile.rows < TIR_MMA_ROWS)
		own.row_end = roles_op(r, OP_MIN, own.row_end, roles_op(r, OP_ADD, r->row0, roles_int(r, r->tile.rows)));
	own.column_end = point_launch_expr(&r->l, r->ncolumn);
	if (r->tile.columns % panel)
		own.column_end = roles_op(r, OP_MIN, own.column_end, roles_op(r, OP_ADD, r->column0, roles_int(r, r->tile.columns)));
	own.first = roles_op(r, OP_ADD, roles_op(r, OP_MUL, warp, roles_int(r, WARP_ROWS)), below);
	roles_divide(r, own.first, roles_int(r, TIR_MMA_ROWS), &rest);
	if (!r->tile.turns)
		rest = roles_op(r, OP_ADD, rest, roles_op(r, OP_MUL, r->group, roles_int(r, (int64_t)roles_repeats(r) * TIR_MMA_ROWS)));
	own.row0 = roles_op(r, OP_ADD, r->row0, rest);
	if (r->members)
		members_begin(&own.side, &r->l, r->members, side, r->of.column_axis);
	else
		side_begin(&own.side, &r->l, r->packed ? 1 : side, r->of.column_axis);
	find_rows(r, &own, roles_repeats(r) * r->tile.columns / 2 * (1 + r->of.beside) + (r->tile.joint ? JOINT_REGISTERS : 0));
	return own;
}

/* The same, and the warp, by the thread's number as it is looked up in each turn of a loop: nothing of it is held over those. */
static Own
place_anew(Roles *r, ValId *warp)
{
	ValId rest, thread = r->thread, group = r->group;
	r->thread = tir_emit(r->l.tir, OP_THREAD, tir_scalar(DT_I64), 1, NULL, 0);
	r->group = roles_divide(r, r->thread, roles_int(r, TIR_GROUP), &rest);
	*warp = roles_divide(r, r->thread, roles_int(r, TIR_WARP), &rest);
	Own own = own_place(r);
	r->thread = thread;
	r->group = group;
	return own;
}

/* --- parts of the terms --- */

/* All that the lane holds, two elements side by side at a time. */
static void
stage_tile(Roles *r)
{
	TirKernel *k = r->l.tir;
	unsigned columns = r->tile.columns, group_rows = roles_repeats(r) * TIR_MMA_ROWS;
	ValId lane, quad, warp = roles_divide(r, r->thread, roles_int(r, TIR_WARP), &lane);
	ValId row = roles_op(r, OP_ADD, roles_divide(r, lane, roles_int(r, 4), &quad), roles_op(r, OP_MUL, r->group, roles_int(r, group_rows)));
	roles_divide(r, warp, roles_int(r, TIR_GROUP / TIR_WARP), &warp);
	row = roles_op(r, OP_ADD, row, roles_op(r, OP_MUL, warp, roles_int(r, WARP_ROWS)));
	ValId from = roles_op(r, OP_ADD, roles_op(r, OP_MUL, row, roles_int(r, pitch(r))), roles_op(r, OP_MUL, quad, roles_int(r, 2)));
	for (unsigned piece = 0; piece < group_rows / TIR_MMA_ROWS * columns / 2; piece += 2) {
		ValId pair[2];
		for (unsigned i = 0; i < 2; i++)
			pair[i] = tir_emit(k, OP_PIECE, tir_scalar(DT_F32), piece + i, NULL, 0);
		ValId both = tir_emit(k, OP_JOIN, tir_vector(DT_F32, 2), 0, pair, 2);
		int64_t on = (int64_t)tir_piece_row(piece, 0, columns) * pitch(r) + tir_piece_column(piece, 0, columns);
		const ValId at[2] = {r->rank, roles_op(r, OP_ADD, from, roles_int(r, on))};
		tir_store(k, r->staged, both, at, 0, TIR_LANES_ALONG(1));
	}
}

/* The block's rows: in turn each warp of each block of the cluster has one or a few, with all of the tile's columns. */
static Own
place_of_part(Roles *r)
{
	Own own;
	unsigned side = r->tile.side, across = r->tile.columns / side, below = TIR_WARP / across;
	unsigned warps = r->tile.groups * (TIR_GROUP / TIR_WARP), rows = r->tile.rows;
	ValId warp = roles_divide(r, r->thread, roles_int(r, TIR_WARP), &own.lane);
	warp = roles_op(r, OP_ADD, warp, roles_op(r, OP_MUL, r->rank, roles_int(r, warps)));
	own.first = roles_op(r, OP_ADD, roles_op(r, OP_MUL, warp, roles_int(r, below)), roles_divide(r, own.lane, roles_int(r, across), &own.right));
	own.right = roles_op(r, OP_MUL, own.right, roles_int(r, side));
	own.row0 = roles_op(r, OP_ADD, r->row0, own.first);
	own.column = roles_op(r, OP_ADD, r->column0, own.right);
	own.down = r->tile.parts * warps * below;
	own.end = (rows + own.down - 1) / own.down * own.down;
	own.row_end = roles_op(r, OP_MIN, point_launch_expr(&r->l, r->nrow), roles_op(r, OP_ADD, r->row0, roles_int(r, rows)));
	own.column_end = point_launch_expr(&r->l, r->ncolumn);
	side_begin(&own.side, &r->l, r->tile.side, r->of.column_axis);
	find_rows(r, &own, 0);
	own.nahead = 0;
	return own;
}

static void
finish_parts(Roles *r)
{
	Point *l = &r->l;
	Own own = place_of_part(r);
	for (unsigned a = 0; a < l->node->npar; a++)
		l->axis[a] = r->coord[a];
	l->axis[r->of.column_axis] = own.column;
	stage_tile(r);
	tir_emit(l->tir, OP_BARRIER, (TirType){0}, 1, NULL, 0);
	finish_panel(r, &own);
	tir_emit(l->tir, OP_BARRIER, (TirType){0}, 1, NULL, 0);
}

void
roles_finish(Roles *r)
{
	if (r->tile.parts) {
		finish_parts(r);
		return;
	}
	Point *l = &r->l;
	TirKernel *k = l->tir;
	Own own = own_place(r);
	ValId right, row0 = own.row0, warp = roles_divide(r, r->thread, roles_int(r, TIR_WARP), &right);
	unsigned across = roles_across(&r->tile, r->packed);
	for (unsigned a = 0; a < l->node->npar; a++)
		l->axis[a] = r->coord[a];
	if (r->packed) {
		r->put = convert_place(k, l->scratch, &r->to_rows->step.at[0], r->staged, warp, own.lane);
		r->take = convert_place(k, l->scratch, &r->to_rows->step.at[2], r->staged, warp, own.lane);
	}
	ValId doubt = r->of.of_row ? roles_expand(r) : 0, finite = r->tile.thirds && !doubt ? roles_are_finite(r) : 0;
	ValId panel = tir_for(k, roles_int(r, 0), roles_int(r, roles_repeats(r) * across), roles_int(r, 1), NULL, 0);
	ValId down = roles_divide(r, panel, roles_int(r, across), &right);
	if (own.anew) {
		own = place_anew(r, &warp);
		row0 = own.row0;
	}
	own.row0 = roles_op(r, OP_ADD, row0, roles_op(r, OP_MUL, down, roles_int(r, TIR_MMA_ROWS)));
	own.column = roles_op(r, OP_ADD, roles_op(r, OP_ADD, r->column0, roles_op(r, OP_MUL, right, roles_int(r, roles_panel(&r->tile, r->packed)))), own.right);
	l->axis[r->of.column_axis] = own.column;
	if (own.nahead)
		read_ahead(r, &own);
	roles_stage_one_of(r, own.lane, roles_op(r, OP_MUL, warp, roles_int(r, WARP_ROWS)), panel, 0, roles_repeats(r) * across);
	tir_emit(k, OP_BARRIER, (TirType){0}, TIR_WARP_BARRIER, NULL, 0);
	if (r->tile.thirds)
		roles_mend(r, &own, doubt ? holds_in(r, doubt, panel) : finite);
	(r->packed ? finish_elements : finish_panel)(r, &own);
	tir_emit(k, OP_BARRIER, (TirType){0}, TIR_WARP_BARRIER, NULL, 0);
	tir_end_for(k, NULL, 0);
}
