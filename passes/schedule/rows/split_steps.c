/* split_steps.c: scans down few columns, of terms or of steps of a linear recurrence: the lanes of a block are rows of columns
 * (ir/tir.h), and in a turn each such row takes SPLIT_STEPS steps behind those of the row before.
 *
 * Steps wait for one another, and a warp that goes down its columns alone has no more on their way than its registers hold, so a
 * few of them do not keep memory busy. Here all rows' steps of a turn are asked for at once. Each thread joins its own, says
 * in shared memory what they come to, and learns so what the turn's steps before its own make of the state; then it takes
 * its own as they are written. All rows carry the state behind the turn, that of a recurrence in f64 where its states are f32
 * (reduction/linear.c). Terms are regrouped, as by vectors along the scanned axis (scan.c), and never reordered. */
#include "passes/schedule/rows/build.h"

enum { SPLIT_STEPS = 16 };

typedef struct {
	RowBuild *b;
	unsigned axis, rows;
	ValId lo, hi, columns; /* columns: the lanes that exist */
	ValId row;             /* of a lane */
	ValId at[SPLIT_STEPS], there[SPLIT_STEPS];
	Reduction *step;       /* by member and step */
	ValId *state;          /* by member: before the turn */
} Split;

/* Of member m: nothing yet, in all lanes. */
static Reduction
nothing(RowBuild *b, unsigned m, const Reduction *state)
{
	Reduction unit = b->r->member[m].node.factor ? reduction_linear_begin(b->l, state) : *state;
	reduction_widen(b->l, &unit);
	return unit;
}

/* What is handed over, by member: views of a row of columns for each row of lanes. */
void
rows_declare_split(RowBuild *b)
{
	TirKernel *k = b->l->tir;
	ValId one = rows_int(b, 1), columns = rows_int(b, k->columns), extent[2] = {rows_int(b, b->l->lanes / k->columns), columns};
	for (unsigned m = 0; m < b->r->nmember; m++) {
		Reduction state = rows_begin_fold(b, &b->r->member[m]), unit = nothing(b, m, &state);
		ValId v[REDUCTION_MAX_CARRIED], stride[2] = {columns, one};
		unsigned n = reduction_pack(&unit, v);
		for (unsigned c = 0; c < n; c++) {
			unsigned buffer = tir_add_buffer(k, name_cstr(k->names, "steps"), (DType)tir_inst(k, v[c])->type.dtype, true);
			k->buffer.at[buffer].shared = b->l->lanes;
			b->split[m][c] = tir_view(k, buffer, 2, extent, stride);
		}
	}
}

static void
read_steps(Split *x, ValId first)
{
	RowBuild *b = x->b;
	Point *l = b->l;
	TirKernel *k = l->tir;
	ValId own = tir_binary(k, OP_ADD, first, tir_binary(k, OP_MUL, x->row, rows_int(b, SPLIT_STEPS)));
	for (unsigned s = 0; s < SPLIT_STEPS; s++) {
		uint32_t mark = point_mark(l);
		x->at[s] = s ? tir_binary(k, OP_ADD, own, rows_int(b, s)) : own;
		x->there[s] = tir_binary(k, OP_AND, x->columns, tir_binary(k, OP_LT, x->at[s], x->hi));
		if (b->r->phase[0].dir < 0)
			x->at[s] = tir_binary(k, OP_SUB, tir_binary(k, OP_SUB, tir_binary(k, OP_ADD, x->lo, x->hi), rows_int(b, 1)), x->at[s]);
		l->axis[x->axis] = x->at[s];
		l->mask = x->there[s];
		for (unsigned m = 0; m < b->r->nmember; m++) {
			rows_enter(b, &b->r->member[m]);
			x->step[m * SPLIT_STEPS + s] = rows_scan_steps(b, &b->r->member[m], &b->fold[m][0], 0);
		}
		point_release(l, mark);
	}
}

/* All that a thread has of a turn. */
static Reduction
join_steps(RowBuild *b, unsigned m, const Reduction *step)
{
	if (b->r->member[m].node.factor) {
		Reduction unit = nothing(b, m, &b->fold[m][0]);
		return reduction_linear_join(b->l, &unit, step, SPLIT_STEPS, false);
	}
	Reduction all = step[0];
	for (unsigned s = 1; s < SPLIT_STEPS; s++) {
		Reduction next = step[s];
		reduction_merge(b->l, &next, &all);
		all = next;
	}
	return all;
}

/* What there is after each step, in its place. */
static void
step_by_step(RowBuild *b, unsigned m, const Reduction *begin, Reduction *step)
{
	if (b->r->member[m].node.factor)
		reduction_linear_steps(b->l, begin, step, SPLIT_STEPS, false);
	else
		for (unsigned s = 0; s < SPLIT_STEPS; s++)
			reduction_merge(b->l, &step[s], s ? &step[s - 1] : begin);
}

/* What member m's steps begin with in each row, from its state on, which becomes that behind the turn. */
static Reduction
find_begin(Split *x, unsigned m)
{
	RowBuild *b = x->b;
	Point *l = b->l;
	TirKernel *k = l->tir;
	Reduction state = nothing(b, m, &b->fold[m][0]), begin, own = join_steps(b, m, x->step + (size_t)m * SPLIT_STEPS);
	ValId v[REDUCTION_MAX_CARRIED];
	unsigned n = reduction_pack(&own, v);
	for (unsigned c = 0; c < n; c++)
		tir_store(k, b->split[m][c], v[c], (const ValId[]){x->row, rows_int(b, 0)}, 0, TIR_LANES_ALONG(1));
	state.re = x->state[m];
	begin = state;
	for (unsigned r = 0; r < x->rows; r++) {
		Reduction steps = own;
		for (unsigned c = 0; c < n; c++)
			v[c] = tir_load(k, b->split[m][c], (const ValId[]){rows_int(b, r), rows_int(b, 0)}, 0, TIR_LANES_ALONG(1), l->lanes);
		reduction_unpack(&steps, v);
		if (r)
			begin.re = tir_select(k, tir_binary(k, OP_EQ, x->row, rows_int(b, r)), state.re, begin.re);
		reduction_merge(l, &steps, &state);
		state.re = steps.re;
	}
	x->state[m] = state.re;
	return begin;
}

static void
take_steps(Split *x, unsigned m)
{
	RowBuild *b = x->b;
	Point *l = b->l;
	Reduction begin = find_begin(x, m), *step = x->step + (size_t)m * SPLIT_STEPS;
	step_by_step(b, m, &begin, step);
	for (unsigned s = 0; s < SPLIT_STEPS; s++) {
		uint32_t mark = point_mark(l);
		l->axis[x->axis] = x->at[s];
		l->mask = x->there[s];
		rows_enter(b, &b->r->member[m]);
		rows_finish_scan(b, &b->r->member[m], &step[s]);
		point_release(l, mark);
	}
}

void
rows_run_split(RowBuild *b)
{
	Point *l = b->l;
	TirKernel *k = l->tir;
	Split *x = ARENA_NEW(l->scratch, Split);
	*x = (Split){.b = b, .axis = b->r->phase[0].loop[0], .rows = l->lanes / k->columns, .columns = l->mask,
	             .step = ARENA_ARRAY(l->scratch, Reduction, (size_t)b->r->nmember * SPLIT_STEPS),
	             .state = ARENA_ARRAY(l->scratch, ValId, b->r->nmember)};
	rows_loop_ends(b, 0, &x->lo, &x->hi);
	x->row = rows_lane_row(b);
	l->axis[rows_lane_axis(b)] = b->base;
	for (unsigned m = 0; m < b->r->nmember; m++)
		x->state[m] = nothing(b, m, &b->fold[m][0]).re;
	uint32_t mark = point_mark(l);
	ValId first = tir_for(k, x->lo, x->hi, rows_int(b, (int64_t)x->rows * SPLIT_STEPS), x->state, b->r->nmember);
	read_steps(x, first);
	for (unsigned m = 0; m < b->r->nmember; m++)
		take_steps(x, m);
	tir_end_for(k, x->state, b->r->nmember);
	l->mask = x->columns;
	point_release(l, mark);
}
