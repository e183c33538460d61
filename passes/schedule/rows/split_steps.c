/* split_steps.c: scans down few columns, of terms or of steps of a linear recurrence: the lanes of a block are rows of columns
 * (ir/tir.h), and in a turn each such row takes SPLIT_STEPS steps behind those of the row before.
 *
 * Steps wait for one another, and a warp that goes down its columns alone has no more on their way than its registers hold, so a
 * few of them do not keep memory busy. Here all rows' steps of a turn are asked for at once, a turn before if registers allow it.
 * Each thread joins its own, says in shared memory what they come to, and learns so what the turn's steps before its own make of
 * the state; then it takes its own as they are written. All rows carry the state behind the turn, that of a recurrence in f64 where its states are f32
 * (reduction/linear.c). Terms are regrouped, as by vectors along the scanned axis (scan.c), and never reordered. */
#include "passes/schedule/rows/build.h"

#include <string.h>

enum {
	SPLIT_STEPS = 16,
	AHEAD_WORDS = 1, AHEAD_READS = 1 /* of a step that comes a turn before: more leave a thread no registers */
};

typedef struct {
	RowBuild *b;
	unsigned axis, rows;
	ValId lo, hi, columns; /* columns: the lanes that exist */
	ValId row;             /* of a lane */
	ValId at[SPLIT_STEPS], there[SPLIT_STEPS];
	Reduction *step;       /* by member and step */
	ValId *state;          /* by member: before the turn */
	ValId *carried, *now;  /* from turn to turn: the states, where the thread's first step is, and the steps; in this turn */
} Split;

typedef struct {
	const Graph *g;
	unsigned n;
} Reads;

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

/* Where a turn's steps are, from the thread's first one on. */
static void
go_to_turn(Split *x, ValId own)
{
	RowBuild *b = x->b;
	TirKernel *k = b->l->tir;
	ValId left = tir_binary(k, OP_SUB, x->hi, own);
	for (unsigned s = 0; s < SPLIT_STEPS; s++) {
		x->at[s] = s ? tir_binary(k, OP_ADD, own, rows_int(b, s)) : own;
		x->there[s] = tir_binary(k, OP_AND, x->columns, tir_binary(k, OP_LT, rows_int(b, s), left));
		if (b->r->phase[0].dir < 0)
			x->at[s] = tir_binary(k, OP_SUB, tir_binary(k, OP_SUB, tir_binary(k, OP_ADD, x->lo, x->hi), rows_int(b, 1)), x->at[s]);
	}
}

/* Those steps, as values to carry; how many these are. */
static unsigned
read_steps(Split *x, ValId own, ValId *carried)
{
	RowBuild *b = x->b;
	Point *l = b->l;
	unsigned n = 0;
	go_to_turn(x, own);
	for (unsigned s = 0; s < SPLIT_STEPS; s++) {
		uint32_t mark = point_mark(l);
		l->axis[x->axis] = x->at[s];
		l->mask = x->there[s];
		for (unsigned m = 0; m < b->r->nmember; m++) {
			rows_enter(b, &b->r->member[m]);
			Reduction *step = &x->step[m * SPLIT_STEPS + s];
			*step = rows_scan_steps(b, &b->r->member[m], &b->fold[m][0], 0);
			n += reduction_pack(step, carried + n);
		}
		point_release(l, mark);
	}
	return n;
}

/* The steps as they were carried. */
static void
unpack_steps(Split *x, const ValId *carried)
{
	ValId v[REDUCTION_MAX_CARRIED];
	for (unsigned s = 0; s < SPLIT_STEPS; s++)
		for (unsigned m = 0; m < x->b->r->nmember; m++) {
			Reduction *step = &x->step[m * SPLIT_STEPS + s];
			reduction_unpack(step, carried);
			carried += reduction_pack(step, v);
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

static void
count_read(void *user, ExprId e)
{
	Reads *a = user;
	const Expr *p = expr_get(a->g, e);
	a->n += p->op == OP_READ && p->narg;
}

/* Whether a turn's steps are read in the one before. */
static bool
reads_ahead(const RowBuild *b)
{
	Reads reads = {.g = b->l->g};
	unsigned words = 0;
	for (unsigned m = 0; m < b->r->nmember; m++) {
		const RowMember *r = &b->r->member[m];
		unsigned bits = dtype_info[b->l->g->tensor.at[r->t].dtype].bits;
		words += (r->node.factor ? 2 : 1) * (bits > 32 ? bits / 32 : 1);
		node_walk(b->l->g, b->l->scratch, &r->node, count_read, &reads);
	}
	return words <= AHEAD_WORDS && reads.n <= AHEAD_READS;
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
	size_t most = 1 + (size_t)b->r->nmember * (1 + SPLIT_STEPS * REDUCTION_MAX_CARRIED); /* one for where the steps are */
	x->carried = ARENA_ARRAY(l->scratch, ValId, most);
	x->now = ARENA_ARRAY(l->scratch, ValId, most);
	rows_loop_ends(b, 0, &x->lo, &x->hi);
	x->row = rows_lane_row(b);
	l->axis[rows_lane_axis(b)] = b->base;
	unsigned members = b->r->nmember, n = members + 1;
	for (unsigned m = 0; m < members; m++)
		x->carried[m] = nothing(b, m, &b->fold[m][0]).re;
	ValId own = tir_binary(k, OP_ADD, x->lo, tir_binary(k, OP_MUL, x->row, rows_int(b, SPLIT_STEPS)));
	x->carried[members] = own;
	bool ahead = reads_ahead(b);
	if (ahead)
		n += read_steps(x, own, x->carried + n);
	uint32_t mark = point_mark(l);
	ValId turn = rows_int(b, (int64_t)x->rows * SPLIT_STEPS);
	tir_for(k, x->lo, x->hi, turn, x->carried, n);
	memcpy(x->now, x->carried, n * sizeof *x->now);
	memcpy(x->state, x->now, members * sizeof *x->state);
	own = x->now[members];
	x->carried[members] = tir_binary(k, OP_ADD, own, turn);
	if (ahead) {
		read_steps(x, x->carried[members], x->carried + members + 1);
		unpack_steps(x, x->now + members + 1);
		go_to_turn(x, own);
	} else {
		read_steps(x, own, x->carried + n);
	}
	for (unsigned m = 0; m < members; m++)
		take_steps(x, m);
	memcpy(x->carried, x->state, members * sizeof *x->state);
	tir_end_for(k, x->carried, n);
	l->mask = x->columns;
	point_release(l, mark);
}
