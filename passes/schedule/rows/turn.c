/* turn.c: tensors that a MAP kernel of a processor reads across its lanes are read along their memory, a
 * square of as many vectors as each has lanes, and turned in registers (rows.h).
 *
 * A vector of elements that lie a row apart is as many loads as lanes, and rows that are a multiple of 4096 bytes
 * apart share a set of the first cache, which then keeps none of them for the next vector. A square is one load a
 * vector, each of a whole line, and one shuffle a vector for each bit of a lane's number.
 *
 * Where a vector is a line of the result or more, the vectors that a square feeds are written one after the other, if
 * little is computed of them. Where it is less, a line that is written by parts, with others between them, is written
 * twice where it goes past the caches: so squares that fill lines are put side by side into scratch memory, and from
 * there a loop takes a line of each of the result's rows, as it does where much is computed, with one copy of the code.
 * What is left beside the squares is read as it lies, under a mask.
 *
 * What a square reads is read before anything of it is written, and whether the result wants it or not: tile.c
 * says which reads allow that. */
#include "passes/schedule/rows/build.h"

#include "passes/expr_map.h"
#include "ir/bugs.h"

enum {
	MOST_LANES = 16,
	LINE_BYTES = 64,
	MOST_SQUARES = 2, /* that registers hold */
	MOST_WORK = 24,   /* operations of an element, of which a square has one for each lane side by side */
	AT_ONCE = 4,      /* stores, one after the other */
	LANE_BITS = 32,   /* a register has as many lanes of so many bits as vectors have */
	PIECE_BITS = 128 /* of a vector, between which a processor's shuffles go at more cost */
};

/* --- turning --- */

static unsigned
bits_of(unsigned n)
{
	return (unsigned)__builtin_ctz(n);
}

/* The lanes of a, then of b, in whose number this bit is `side`; they alternate by bit `at` of their new number. */
static ValId
weave_halves(TirKernel *k, ValId a, ValId b, unsigned bit, bool side, unsigned at)
{
	TirType whole = tir_inst(k, a)->type, half = tir_vector((DType)whole.dtype, whole.lanes / 2);
	const ValId part[2] = {tir_emit(k, OP_HALF, half, 2 * (int64_t)bit + side, &a, 1),
	                       tir_emit(k, OP_HALF, half, 2 * (int64_t)bit + side, &b, 1)};
	return tir_emit(k, OP_WEAVE, whole, 2 * (int64_t)at, part, 2);
}

/* Bit `row` of a vector's number, among n vectors, and bit `bit` of a lane's change places; what was the vector's becomes bit
 * `at`, and the lane's bits between them move by one. */
static void
turn_bit(TirKernel *k, ValId *v, unsigned n, unsigned row, unsigned bit, unsigned at)
{
	for (unsigned u = 0; u < n; u++) {
		ValId a = v[u], b = v[u | 1u << row];
		if (u >> row & 1)
			continue;
		v[u] = weave_halves(k, a, b, bit, false, at);
		v[u | 1u << row] = weave_halves(k, a, b, bit, true, at);
	}
}

/* How many rows of a square are turned by themselves, once the halves that are other registers have changed places. */
static unsigned
rows_apart(unsigned lanes, unsigned bits)
{
	return bits > LANE_BITS ? lanes * LANE_BITS / bits : lanes;
}

/* Lane m of vector n becomes lane n of vector m. The bits are taken in an order in which each step is one instruction:
 * between registers that a vector needs several of halves are but named otherwise; within pieces elements of two vectors
 * alternate, between them two vectors' pieces follow one another. */
static void
turn(TirKernel *k, ValId *v, unsigned n)
{
	unsigned bits = dtype_info[tir_inst(k, v[0])->type.dtype].bits, all = bits_of(n);
	unsigned within = bits_of(PIECE_BITS / bits), own = bits_of(rows_apart(n, bits));
	within = within < own ? within : own;
	for (unsigned row = all; row-- > own;)
		turn_bit(k, v, n, row, row, row);
	for (unsigned first = 0; first < n; first += 1u << own) {
		for (unsigned row = within; row-- > (BUG(square_bit_unturned) ? 1u : 0u);)
			turn_bit(k, v + first, 1u << own, row, within - 1u, 0);
		for (unsigned row = within; row < own; row++)
			turn_bit(k, v + first, 1u << own, row, within, own - 1u);
	}
}

/* --- squares --- */

/* How many squares side by side along the lanes fill lines of the result. */
static unsigned
squares_of_line(const RowBuild *b)
{
	unsigned bytes = LINE_BYTES;
	for (unsigned m = 0; m < b->r->nmember; m++) {
		unsigned own = dtype_info[b->l->g->tensor.at[b->r->member[m].t].dtype].bits / 8u * b->l->lanes;
		bytes = b->r->member[m].stored && own < bytes ? own : bytes;
	}
	return LINE_BYTES / bytes;
}

static void
count_work(void *user, ExprId e)
{
	(void)e;
	++*(unsigned *)user;
}

static bool
stays_in_registers(const RowBuild *b)
{
	unsigned work = 0, registers = 0;
	for (unsigned n = 0; n < b->r->ntile; n++)
		registers += dtype_info[expr_get(b->l->g, b->r->tile[n])->dtype].bits > LANE_BITS ? 2 : 1;
	for (unsigned m = 0; m < b->r->nmember; m++)
		node_walk(b->l->g, b->l->scratch, &b->r->member[m].node, count_work, &work);
	return squares_of_line(b) == 1 && registers <= MOST_SQUARES && work <= MOST_WORK;
}

void
rows_declare_squares(RowBuild *b)
{
	Point *l = b->l;
	unsigned lanes = l->lanes, width = squares_of_line(b) * lanes;
	if (stays_in_registers(b))
		return;
	const ValId extent[2] = {rows_int(b, lanes), rows_int(b, width)}, stride[2] = {extent[1], rows_int(b, 1)};
	for (unsigned n = 0; n < b->r->ntile; n++) {
		const Expr read = *expr_get(l->g, b->r->tile[n]);
		unsigned buffer = tir_add_buffer(l->tir, l->g->tensor.at[read.ref].name, (DType)read.dtype, true);
		vec_push(l->g->arena, &b->kernel->buffer,
		         ((BufferBind){.kind = BIND_SCRATCH, .tensor = read.ref, .elements = expr_int(l->g, DT_I64, (int64_t)lanes * width)}));
		b->tile[n] = tir_view(l->tir, buffer, 2, extent, stride);
	}
}

/* The rows of tile n's square at (base, column), as vectors along the blocked axis. */
static void
load_square(RowBuild *b, unsigned n, ValId base, ValId column, ValId *row)
{
	Point *l = b->l;
	unsigned lane = rows_lane_axis(b), block = b->r->block - 1u;
	point_set_lanes(l, l->lanes, block);
	l->axis[block] = column;
	for (unsigned u = 0; u < l->lanes; u++) {
		uint32_t mark = point_mark(l);
		l->axis[lane] = u ? tir_binary(l->tir, OP_ADD, base, rows_int(b, u)) : base;
		row[u] = point_value(l, b->r->tile[n], false).re;
		point_release(l, mark);
	}
	point_set_lanes(l, l->lanes, lane);
}

/* A square of each of the tensors at (base, column), turned. */
static void
load_squares(RowBuild *b, ValId base, ValId column, ValId row[][MOST_LANES])
{
	for (unsigned n = 0; n < b->r->ntile; n++) {
		load_square(b, n, base, column, row[n]);
		turn(b->l->tir, row[n], b->l->lanes);
	}
	b->l->axis[rows_lane_axis(b)] = b->base = base;
}

/* The result's vector at the point, of what its squares have there. */
static void
run_vector(RowBuild *b, const ValId *value)
{
	for (unsigned n = 0; n < b->r->ntile; n++)
		point_place(b->l, rows_stand_in(b->l->g, b->r, n), value[n]);
	rows_run_phases(b, 1);
}

/* A square whose vectors are lines: those go to the result as they are. Where its rows are no multiple of a line, every
 * other one or every fourth begins a line: those come one after the other, as stores that follow one another go past the
 * caches if all of them can. */
static void
run_square(RowBuild *b, ValId base, ValId column)
{
	Point *l = b->l;
	ValId row[ROWS_MAX_TILES][MOST_LANES], value[ROWS_MAX_TILES];
	unsigned rows = l->lanes;
	for (unsigned n = 0; n < b->r->ntile; n++) {
		unsigned own = rows_apart(l->lanes, dtype_info[expr_get(l->g, b->r->tile[n])->dtype].bits);
		rows = own < rows ? own : rows;
	}
	load_squares(b, base, column, row);
	for (unsigned k = 0; k < l->lanes; k++) {
		unsigned in = k % rows, u = k - in + in % AT_ONCE * (rows / AT_ONCE) + in / AT_ONCE;
		uint32_t mark = point_mark(l);
		l->axis[b->r->block - 1u] = u ? tir_binary(l->tir, OP_ADD, column, rows_int(b, u)) : column;
		for (unsigned n = 0; n < b->r->ntile; n++)
			value[n] = row[n][u];
		run_vector(b, value);
		point_release(l, mark);
	}
}

/* lo + the multiple of n that is nearest below hi - lo */
static ValId
last_whole(RowBuild *b, ValId lo, ValId hi, ValId n)
{
	TirKernel *k = b->l->tir;
	ValId whole = tir_binary(k, OP_IDIV, tir_binary(k, OP_SUB, hi, lo), n);
	return tir_binary(k, OP_ADD, lo, tir_binary(k, OP_MUL, whole, n));
}

/* The squares of a line, into scratch memory. */
static void
fill_line(RowBuild *b, ValId first, ValId end, ValId column)
{
	TirKernel *k = b->l->tir;
	ValId row[ROWS_MAX_TILES][MOST_LANES], base = tir_for(k, first, end, rows_int(b, b->l->lanes), NULL, 0);
	uint32_t mark = point_mark(b->l);
	load_squares(b, base, column, row);
	for (unsigned n = 0; n < b->r->ntile; n++)
		for (unsigned u = 0; u < b->l->lanes; u++) {
			const ValId index[2] = {rows_int(b, u), tir_binary(k, OP_SUB, base, first)};
			tir_store(k, b->tile[n], row[n][u], index, 0, TIR_LANES_ALONG(1));
		}
	point_release(b->l, mark);
	tir_end_for(k, NULL, 0);
}

/* So many vectors of a line from `base` on; what they read is loaded first, so that their stores follow one another. */
static void
run_part(RowBuild *b, ValId first, ValId base, ValId row, unsigned count)
{
	Point *l = b->l;
	ValId at[AT_ONCE], value[AT_ONCE][ROWS_MAX_TILES];
	for (unsigned s = 0; s < count; s++) {
		at[s] = s ? tir_binary(l->tir, OP_ADD, base, rows_int(b, (int64_t)s * l->lanes)) : base;
		const ValId index[2] = {row, tir_binary(l->tir, OP_SUB, at[s], first)};
		for (unsigned n = 0; n < b->r->ntile; n++)
			value[s][n] = tir_load(l->tir, b->tile[n], index, 0, TIR_LANES_ALONG(1), l->lanes);
	}
	for (unsigned s = 0; s < count; s++) {
		uint32_t mark = point_mark(l);
		b->base = l->axis[rows_lane_axis(b)] = at[s];
		run_vector(b, value[s]);
		point_release(l, mark);
	}
}

/* And from there, a line of each of the result's rows. */
static void
run_line(RowBuild *b, ValId first, ValId end, ValId column)
{
	Point *l = b->l;
	TirKernel *k = l->tir;
	unsigned count = squares_of_line(b) < AT_ONCE ? squares_of_line(b) : AT_ONCE;
	ValId row = tir_for(k, rows_int(b, 0), rows_int(b, l->lanes), rows_int(b, 1), NULL, 0);
	uint32_t mark = point_mark(l);
	l->axis[b->r->block - 1u] = tir_binary(k, OP_ADD, column, row);
	ValId step = rows_int(b, (int64_t)count * l->lanes), whole = last_whole(b, first, end, step);
	ValId base = tir_for(k, first, whole, step, NULL, 0);
	run_part(b, first, base, row, count);
	tir_end_for(k, NULL, 0);
	if (count > 1) {
		base = tir_for(k, whole, end, rows_int(b, l->lanes), NULL, 0);
		run_part(b, first, base, row, 1);
		tir_end_for(k, NULL, 0);
	}
	point_release(l, mark);
	tir_end_for(k, NULL, 0);
}

/* --- a task --- */

/* One vector of each value of the blocked axis from lo to hi, read across. */
static void
run_columns(RowBuild *b, ValId lo, ValId hi)
{
	Point *l = b->l;
	ValId *column = &l->axis[b->r->block - 1u];
	*column = tir_for(l->tir, lo, hi, rows_int(b, 1), NULL, 0);
	uint32_t mark = point_mark(l);
	l->axis[rows_lane_axis(b)] = b->base;
	for (unsigned n = 0; n < b->r->ntile; n++)
		point_place(l, rows_stand_in(l->g, b->r, n), point_value(l, b->r->tile[n], false).re);
	rows_run_phases(b, 1);
	point_release(l, mark);
	tir_end_for(l->tir, NULL, 0);
}

/* A vector that has all its lanes is left with the columns behind the last square, another one with all of them. */
static void
run_rest(RowBuild *b, ValId begin, ValId end, ValId columns)
{
	Point *l = b->l;
	TirKernel *k = l->tir;
	ValId n = rows_int(b, l->lanes);
	b->base = tir_for(k, begin, end, n, NULL, 0);
	uint32_t mark = point_mark(l);
	ValId whole = tir_binary(k, OP_LE, tir_binary(k, OP_ADD, b->base, n), end);
	l->mask = point_block_mask(l, b->base, end);
	run_columns(b, tir_select(k, whole, columns, b->block_lo), b->block_hi);
	l->mask = 0;
	point_release(l, mark);
	tir_end_for(k, NULL, 0);
}

void
rows_run_squares(RowBuild *b, ValId begin, ValId end)
{
	Point *l = b->l;
	TirKernel *k = l->tir;
	ValId n = rows_int(b, l->lanes), line = rows_int(b, (int64_t)squares_of_line(b) * l->lanes);
	ValId whole = last_whole(b, begin, end, n), columns = last_whole(b, b->block_lo, b->block_hi, n);
	ValId first = tir_for(k, begin, whole, line, NULL, 0);
	uint32_t mark = point_mark(l);
	ValId last = tir_binary(k, OP_MIN, tir_binary(k, OP_ADD, first, line), whole);
	ValId column = tir_for(k, b->block_lo, columns, n, NULL, 0);
	if (stays_in_registers(b)) {
		run_square(b, first, column);
	} else {
		fill_line(b, first, last, column);
		run_line(b, first, last, column);
	}
	tir_end_for(k, NULL, 0);
	point_release(l, mark);
	tir_end_for(k, NULL, 0);
	run_rest(b, begin, end, columns);
}
