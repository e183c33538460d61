/* roles_thirds.c: sums of products of f32 factors by roles (roles.c), as exact as by multiply-adds: each factor is cut into three
 * bf16, its thirds (ir/channel.h), with all bits of its significand, and its products are those of the thirds.
 *
 * Thirds t and u have a product that is 2^(-8 (t + u)) of the whole. The six with t + u < 3 are added, the least first: all terms
 * of the three with t + u = 2, then of the two with 1, then those of the first thirds, each sum with its scale. Each of
 * these goes through all terms, as if they were six times as many. What is left out, t + u = 3 and 4, is no more than 2^-21 and 2^-30
 * of a product, since a third is below 2^(1 - 8 t) of its number.
 *
 * An instruction cuts off what lies below its accumulator's last bit (roles.c), always towards 0: sums of terms of one sign would be
 * too small by half a unit for each of many instructions, which those of multiply-adds are not, whose errors have both signs. So each
 * step's sum of first thirds is taken out, and they are added up in f32 as multiply-adds would be: in a step a group waits for its
 * own products alone, while another multiplies. Those of lesser thirds are so much smaller that it is of no account (Ootomo and
 * Yokota, "Recovering single precision accuracy from Tensor Cores", 2022, take all of them out). With S the sum of the magnitudes and
 * u = 2^-24 the error of n >= 64 terms is below (17/2 + 2) n/16 u S for the instructions, 9 u S for what is left out, and u S for each
 * of n/64 steps: less than the n u S of any order (eval_fold.c). Thirds have the sign of their number, so no sum of magnitudes is more
 * than S: sums that are exact in any order are exact here.
 *
 * What is not finite has thirds that are no numbers, and a sum of the lesser thirds may overflow where that of the whole does not: a
 * sum that comes out as no finite number is folded again, term by term, with all that its warp finishes with it (roles_finish.c).
 *
 * In fast mode a factor may be rounded to 11 bits (tf32). There it is the first two thirds, of 16, and there are three products,
 * which take less than a warp's instructions of tf32 do (warps.c).
 *
 * Thirds are made by the launch, in memory of its own (runtime/map_rows.c): the tensor map of a factor is one of its copy. Where they
 * would take more than MOST_ROOM, which a GPU may not have beside the factors, it is multiply-adds, which take none. */
#include <math.h>
#include <string.h>

#include "ir/bugs.h"
#include "passes/schedule/contract/roles_build.h"
#include "passes/schedule/contract/threads.h"

static const int64_t MOST_ROOM = INT64_C(16) << 30; /* bytes */

/* Of a pair of thirds the rows' and the columns', two bits each, from the pair that is added first on. */
enum { ROWS_THIRD = 0 | 1 << 2 | 2 << 4 | 0 << 6 | 1 << 8 | 0 << 10, COLUMNS_THIRD = 2 | 1 << 2 | 0 << 4 | 1 << 6 | 0 << 8 | 0 << 10 };

static ValId
third_of(Roles *r, ValId pair, unsigned thirds)
{
	TirKernel *k = r->l.tir;
	ValId at = tir_cast(k, DT_U32, roles_op(r, OP_MUL, pair, roles_int(r, 2)));
	ValId bits = tir_binary(k, OP_SHR, tir_int(k, DT_U32, thirds), at);
	return tir_cast(k, DT_I64, tir_binary(k, OP_BAND, bits, tir_int(k, DT_U32, 3)));
}

void
roles_load_thirds(Roles *r, ValId *fill)
{
	TirKernel *k = r->l.tir;
	ValId one = roles_int(r, 1);
	unsigned all = roles_third_pairs(TIR_THIRDS), first = all - roles_third_pairs(r->tile.thirds);
	ValId pair = tir_for(k, roles_int(r, first), roles_int(r, all), one, fill, 1);
	const ValId third[2] = {third_of(r, pair, ROWS_THIRD), third_of(r, pair, COLUMNS_THIRD)};
	ValId step = tir_for(k, r->step0, r->step_end, one, fill, 1);
	roles_load_step(r, step, *fill, third);
	*fill = roles_op(r, OP_ADD, *fill, one);
	tir_end_for(k, fill, 1);
	tir_end_for(k, fill, 1);
}

static void
multiply(Roles *r, ValId fill, bool more)
{
	TirKernel *k = r->l.tir;
	tir_emit(k, OP_WAIT, (TirType){0}, 0, &fill, 1);
	tir_emit(k, OP_MMA, (TirType){0}, TIR_MMA(0, 0, 1), (ValId[]){fill, tir_int(k, DT_BOOL, more)}, 2);
}

/* The products that go on settle, but for so many; what the one before them read may be others' then. */
static void
settle(Roles *r, unsigned going_on, ValId fill)
{
	tir_emit(r->l.tir, OP_SETTLE, (TirType){0}, going_on, NULL, 0);
	roles_release(r, fill, tir_int(r->l.tir, DT_BOOL, 1));
}

/* So many steps. The first one is apart, so that accumulators are nothing before it. */
static void
multiply_steps(Roles *r, ValId steps, ValId *fill)
{
	TirKernel *k = r->l.tir;
	ValId one = roles_int(r, 1);
	multiply(r, *fill, false);
	*fill = roles_op(r, OP_ADD, *fill, one);
	tir_for(k, one, steps, one, fill, 1);
	multiply(r, *fill, true);
	settle(r, 1, *fill);
	*fill = roles_op(r, OP_ADD, *fill, one);
	tir_end_for(k, fill, 1);
	settle(r, 0, *fill);
}

static ValId
piece(Roles *r, unsigned n)
{
	return tir_emit(r->l.tir, OP_PIECE, tir_scalar(DT_F32), n, NULL, 0);
}

/* All that the accumulator has, to the thread's sums. */
static void
add_pieces(Roles *r, ValId *total, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		total[i] = roles_op(r, OP_ADD, total[i], piece(r, i));
}

void
roles_multiply_thirds(Roles *r, ValId *fill)
{
	enum { MOST = 128 };
	TirKernel *k = r->l.tir;
	unsigned n = roles_repeats(r) * r->tile.columns / 2;
	ValId carried[1 + MOST], *total = carried + 1, zero = roles_int(r, 0), one = roles_int(r, 1);
	ValId steps = r->tile.pieces ? roles_op(r, OP_SUB, r->step_end, r->step0) : r->steps;
	if (n > MOST)
		bug(r->l.g->arena, "a tile has %u sums of a thread, and as many more", n);
	for (unsigned pairs = r->tile.thirds; pairs > 1; pairs--) {
		ValId scale = tir_float(k, DT_F32, ldexp(1, -TIR_THIRD_BITS * ((int)pairs - 1)));
		multiply_steps(r, roles_op(r, OP_MUL, steps, roles_int(r, pairs)), fill);
		for (unsigned i = 0; i < n; i++) {
			ValId lesser = BUG(lesser_thirds_lost) ? tir_float(k, DT_F32, 0) : roles_op(r, OP_MUL, piece(r, i), scale);
			total[i] = pairs == r->tile.thirds ? lesser : roles_op(r, OP_ADD, total[i], lesser);
		}
	}
	carried[0] = *fill;
	if (BUG(first_thirds_left)) {
		multiply_steps(r, steps, carried);
		add_pieces(r, total, n);
	} else {
		tir_for(k, zero, steps, one, carried, 1 + n);
		multiply(r, carried[0], false);
		carried[0] = roles_op(r, OP_ADD, carried[0], one);
		settle(r, 0, carried[0]);
		add_pieces(r, total, n);
		tir_end_for(k, carried, 1 + n);
	}
	*fill = carried[0];
	r->total = ARENA_ARRAY(r->l.scratch, ValId, n);
	memcpy(r->total, total, n * sizeof *total);
}

/* v plus 0, or no number. */
static ValId
spoiled(Roles *r, ValId v, ValId sum)
{
	return roles_op(r, OP_ADD, v, roles_op(r, OP_MUL, sum, tir_float(r->l.tir, DT_F32, 0)));
}

ValId
roles_is_finite(Roles *r, ValId sum)
{
	ValId none = tir_float(r->l.tir, DT_F32, 0);
	return roles_op(r, OP_EQ, spoiled(r, none, sum), none);
}

ValId
roles_are_finite(Roles *r)
{
	TirKernel *k = r->l.tir;
	ValId none = tir_float(k, DT_F32, 0), all = none;
	for (unsigned n = 0; n < roles_repeats(r) * r->tile.columns / 2; n++)
		all = spoiled(r, all, r->total[n]);
	for (unsigned bit = 1; bit < TIR_WARP; bit *= 2)
		all = roles_op(r, OP_ADD, all, tir_emit(k, OP_SHUFFLE, tir_scalar(DT_F32), bit, &all, 1));
	return BUG(thirds_unmended) ? tir_int(k, DT_BOOL, 1) : roles_op(r, OP_EQ, all, none);
}

/* Over dims: the bytes of the thirds of a factor. */
static ExprId
bytes_of(Roles *r, const BoxFactor *e)
{
	ExprId all = expr_int(r->l.g, DT_I64, TIR_THIRDS * 2);
	for (unsigned n = 0; n < e->naxis; n++)
		all = expr_binary(r->l.g, OP_MUL, all, roles_extent(r, e->axis[n]));
	return all;
}

ExprId
roles_thirds_fit(Roles *r)
{
	ExprId room = expr_binary(r->l.g, OP_ADD, bytes_of(r, &r->of.row), bytes_of(r, &r->of.column));
	return expr_binary(r->l.g, OP_LE, room, expr_int(r->l.g, DT_I64, MOST_ROOM));
}

ExprId
roles_thirds_pay(Roles *r, const PassOptions *o)
{
	Graph *g = r->l.g;
	const Node *n = r->l.node;
	Threads *x = ARENA_NEW(r->l.scratch, Threads);
	x->l.g = g;
	x->rows.count = r->nrow;
	x->columns.count = r->ncolumn;
	x->terms.count = r->nterm;
	x->batch = (Indices){.naxis = n->npar - 2, .count = expr_int(g, DT_I64, 1)};
	for (unsigned a = 0; a < n->npar; a++)
		if (a != r->of.row_axis && a != r->of.column_axis)
			x->batch.count = expr_binary(g, OP_MUL, x->batch.count, g->tensor.at[n->out].extent[a]);
	ExprId others = threads_least_cycles(x, o);
	if (g->fp == FP_FAST) /* by which others there are that much faster */
		others = expr_binary(g, OP_IDIV, expr_binary(g, OP_MUL, others, expr_int(g, DT_I64, 2)), expr_int(g, DT_I64, 5));
	ExprId pays = expr_binary(g, OP_AND, expr_binary(g, OP_LE, roles_cycles(r, &r->tile), others), roles_thirds_fit(r));
	return expr_select(g, pays, expr_int(g, DT_I64, 1), expr_int(g, DT_I64, 0));
}
