/* spread_columns.c: rows of columns (ir/tir.h) while they are folded into one, and one in all rows again (spread.c).
 *
 * Where a vector has a group of V lanes for each of T threads it lies as any does: a thread has V columns of a row, C / V
 * threads the row. Of fewer lanes a thread has one column, that of its number mod C. Such threads are units: n lanes are
 * n / C rows, of which, with U units in B blocks,
 *
 *     n / C >= U         a unit has  n / C / U, side by side, a register each
 *     U > n / C >= B     all units of a block have  n / C / B
 *     B > n / C          all have all
 *
 * So a fold takes three steps. What a unit's threads have of its V rows is turned, through memory: each thread has a column
 * of them all. Then each has what all units of its block have of the column, then what all blocks have. As an element is
 * stored once and read by those that need it, in the order of the rows, results have the same bits in every run. */
#include "passes/tile/spread.h"

static ValId
column_of(Spread *s)
{
	return tir_binary(s->to, OP_IMOD, spread_thread(s), spread_int(s, s->columns));
}

/* The element of this thread's column in row r of a buffer of rows of columns. */
static ValId
of_column(Spread *s, ValId row)
{
	return tir_binary(s->to, OP_ADD, tir_binary(s->to, OP_MUL, row, spread_int(s, s->columns)), column_of(s));
}

static unsigned
units(const Spread *s)
{
	return s->threads / s->columns;
}

unsigned
spread_columns_registers(const Spread *s, unsigned lanes)
{
	unsigned rows = lanes / s->columns;
	return rows >= s->blocks ? rows / s->blocks : rows;
}

/* The rows that a unit has a group each of: a column of all of them. */
static Regs
turned(Spread *s, ValId v)
{
	unsigned each = s->from->group;
	ValId thread = spread_thread(s), unit = tir_binary(s->to, OP_IDIV, thread, spread_int(s, s->columns));
	unsigned buffer = spread_exchange(s, (DType)tir_inst(s->from, v)->type.dtype, s->threads / s->blocks * each);
	Regs all = spread_regs(s, each);
	spread_put_row(s, buffer, tir_binary(s->to, OP_MUL, thread, spread_int(s, each)), &s->map[v]);
	ValId first = tir_binary(s->to, OP_MUL, unit, spread_int(s, each));
	for (unsigned r = 0; r < each; r++)
		all.reg[r] = spread_get(s, buffer, 0, of_column(s, tir_binary(s->to, OP_ADD, first, spread_int(s, r))));
	return all;
}

/* A row of each unit: those of all of the block. */
static Regs
of_units(Spread *s, ValId v)
{
	Regs all = spread_regs(s, units(s) / s->blocks);
	unsigned buffer = spread_exchange(s, (DType)tir_inst(s->from, v)->type.dtype, s->threads / s->blocks);
	spread_put(s, buffer, 0, spread_thread(s), s->map[v].reg[0], 0);
	for (unsigned r = 0; r < all.n; r++)
		all.reg[r] = spread_get(s, buffer, 0, of_column(s, spread_int(s, r)));
	return all;
}

/* A row of each block: those of all of the cluster. A unit hands over its block's to one of them. */
static Regs
of_blocks(Spread *s, ValId v)
{
	Regs all = spread_regs(s, s->blocks);
	unsigned buffer = spread_cluster_exchange(s, (DType)tir_inst(s->from, v)->type.dtype, s->columns, true);
	ValId own = spread_rank(s), thread = spread_thread(s), to = tir_binary(s->to, OP_IDIV, thread, spread_int(s, s->columns));
	ValId hands = units(s) == s->blocks * s->blocks ? 0 : tir_binary(s->to, OP_LT, to, spread_int(s, s->blocks));
	to = tir_binary(s->to, OP_IMOD, to, spread_int(s, s->blocks));
	spread_hand_over(s, buffer, to, of_column(s, own), s->map[v].reg[0], hands);
	for (unsigned r = 0; r < all.n; r++)
		all.reg[r] = spread_get(s, buffer, own, of_column(s, spread_int(s, r)));
	return all;
}

/* Every other row, from the first or the second on. */
Regs
spread_columns_half(Spread *s, ValId v, unsigned side)
{
	unsigned n = tir_inst(s->from, v)->type.lanes, rows = n / s->columns;
	if (rows < 2)
		bug(s->arena, "spread: a row of %u columns halved", n);
	if (!s->whole[v].n) {
		if (n == s->threads * s->from->group && s->from->group > 1)
			s->whole[v] = turned(s, v);
		else if (rows == units(s) && rows > s->blocks)
			s->whole[v] = of_units(s, v);
		else if (rows == s->blocks)
			s->whole[v] = of_blocks(s, v);
		else
			s->whole[v] = s->map[v];
	}
	Regs all = s->whole[v], half = spread_regs(s, all.n / 2);
	for (unsigned r = 0; r < half.n; r++)
		half.reg[r] = all.reg[2 * r + side];
	return half;
}

/* One row, which all threads have a column of: a group of it. */
static Regs
grouped(Spread *s, DType t, ValId column)
{
	unsigned group = s->from->group, buffer = spread_exchange(s, t, s->columns);
	ValId thread = spread_thread(s), columns = spread_int(s, s->columns);
	ValId first = tir_binary(s->to, OP_IMOD, tir_binary(s->to, OP_MUL, thread, spread_int(s, group)), columns);
	spread_put(s, buffer, 0, column_of(s), column, tir_binary(s->to, OP_LT, thread, columns));
	return spread_get_row(s, buffer, first, group);
}

Regs
spread_columns_weave(Spread *s, ValId a, unsigned lanes)
{
	unsigned whole = s->threads * s->from->group;
	Regs v = s->map[a], both = spread_regs(s, spread_registers(s, lanes));
	if (lanes == whole && s->from->group > 1)
		return grouped(s, (DType)tir_inst(s->from, a)->type.dtype, v.reg[0]);
	for (unsigned r = 0; r < both.n; r++)
		both.reg[r] = v.reg[lanes > whole ? r % v.n : 0];
	return both;
}
