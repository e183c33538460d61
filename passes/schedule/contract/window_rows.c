/* window_rows.c: the box of pixels that a tile of window.c has: how many indices of each axis, which ones,
 * and which of them is a row.
 *
 * Counts are powers of two, and the tile's rows in all, so that a row's indices are its bits. A launch takes of the inner
 * two axes what divides their extents, at most 2^INNER of each, and the rest of the outermost one, where that has as many;
 * else 2^INNER of the inner two. */
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/contract/roles_build.h"

enum { INNER = 3, INNER_OF_TWO = 6 };

/* --- the box --- */

static ExprId
number(Roles *r, int64_t v)
{
	return expr_int(r->l.g, DT_I64, v);
}

static ExprId
binary(Roles *r, Op op, ExprId a, ExprId b)
{
	return expr_binary(r->l.g, op, a, b);
}

static ExprId
row_extent(const Roles *r, unsigned k)
{
	return roles_extent(r, r->window->axis[k]);
}

/* The largest power of two that divides e, at most 2^most. */
static ExprId
twos(Roles *r, ExprId e, unsigned most)
{
	Graph *g = r->l.g;
	ExprId all = number(r, 1);
	for (unsigned k = 1; k <= most; k++) {
		ExprId power = number(r, INT64_C(1) << k);
		all = expr_select(g, binary(r, OP_EQ, binary(r, OP_IMOD, e, power), number(r, 0)), power, all);
	}
	return all;
}

/* The box's counts, over dims, and how many boxes there are. What they are made of is written out each time, so it is
 * short. */
static ExprId
choose_box(Roles *r, ExprId *box)
{
	Graph *g = r->l.g;
	unsigned n = r->window->naxis, rows = r->tile.rows;
	ExprId inner = number(r, 1), whole = number(r, 1), cut = number(r, 1), even[WINDOW_AXES], otherwise[WINDOW_AXES];
	for (unsigned k = n; k-- > 1;) {
		bool first = k + 1 == n, second = k + 2 == n;
		unsigned most = n == 2 ? INNER_OF_TWO : second || first ? INNER : 0;
		even[k] = twos(r, row_extent(r, k), most);
		otherwise[k] = number(r, INT64_C(1) << most);
		inner = first ? even[k] : most ? binary(r, OP_MUL, inner, even[k]) : inner;
		rows >>= most;
		whole = binary(r, OP_MUL, whole, most ? binary(r, OP_IDIV, row_extent(r, k), even[k]) : row_extent(r, k));
		cut = binary(r, OP_MUL, cut, launch_ceil_div(g, row_extent(r, k), INT64_C(1) << most));
	}
	even[0] = n > 1 ? binary(r, OP_IDIV, number(r, r->tile.rows), inner) : number(r, rows);
	otherwise[0] = number(r, rows);
	cut = binary(r, OP_MUL, cut, launch_ceil_div(g, row_extent(r, 0), rows));
	ExprId up = binary(r, OP_SUB, binary(r, OP_ADD, row_extent(r, 0), even[0]), number(r, 1));
	whole = binary(r, OP_MUL, whole, binary(r, OP_IDIV, up, even[0]));
	ExprId good = binary(r, OP_LE, even[0], row_extent(r, 0));
	for (unsigned k = 0; k < n; k++)
		box[k] = n > 1 ? expr_select(g, good, even[k], otherwise[k]) : otherwise[k];
	return n > 1 ? expr_select(g, good, whole, cut) : cut;
}

static ValId
u32(Roles *r, ValId v)
{
	return tir_cast(r->l.tir, DT_U32, v);
}

/* v << by, and v >> by, of what is below 2^32. */
static ValId
shifted(Roles *r, Op op, ValId v, ValId by)
{
	return tir_cast(r->l.tir, DT_I64, roles_op(r, op, u32(r, v), by));
}

/* The logarithm of a power of two, at most that of a tile's rows: u32. */
static ValId
logarithm(Roles *r, ValId v)
{
	TirKernel *k = r->l.tir;
	ValId log = tir_int(k, DT_U32, 0);
	for (int64_t power = 2; power <= r->tile.rows; power *= 2)
		log = tir_select(k, roles_op(r, OP_LE, roles_int(r, power), v), tir_int(k, DT_U32, __builtin_ctzll((uint64_t)power)), log);
	return log;
}

/* How many boxes there are along axis k. */
static ValId
boxes(Roles *r, unsigned k)
{
	const Window *w = r->window;
	ValId last = roles_op(r, OP_SUB, w->box[k], roles_int(r, 1));
	return shifted(r, OP_SHR, roles_op(r, OP_ADD, point_launch_expr(&r->l, row_extent(r, k)), last), w->log[k]);
}

ExprId
window_bind_rows(Roles *r)
{
	Window *w = r->window;
	ExprId box[WINDOW_AXES], all = choose_box(r, box);
	r->rows = 0;
	for (unsigned k = 0; k < w->naxis; k++) {
		w->box[k] = point_launch_expr(&r->l, box[k]);
		w->log[k] = logarithm(r, w->box[k]);
		r->rows = k ? roles_op(r, OP_MUL, r->rows, boxes(r, k)) : boxes(r, k);
	}
	return all;
}

/* --- tiles and rows --- */

void
window_enter_tile(Roles *r, ValId tile)
{
	Window *w = r->window;
	TirKernel *k = r->l.tir;
	w->whole = tir_int(k, DT_BOOL, 1);
	for (unsigned n = w->naxis; n-- > 0;) {
		ValId at = tile;
		if (n)
			tile = roles_divide(r, tile, boxes(r, n), &at);
		w->first[n] = shifted(r, OP_SHL, at, w->log[n]);
		ValId end = roles_op(r, OP_ADD, w->first[n], w->box[n]);
		w->whole = roles_op(r, OP_AND, w->whole, roles_op(r, OP_LE, end, point_launch_expr(&r->l, row_extent(r, n))));
	}
}

void
window_enter_row(Roles *r, ValId row)
{
	const Window *w = r->window;
	for (unsigned n = w->naxis; n-- > 0;) {
		ValId at = row;
		if (n) {
			at = roles_op(r, OP_BAND, u32(r, row), u32(r, roles_op(r, OP_SUB, w->box[n], roles_int(r, 1))));
			at = tir_cast(r->l.tir, DT_I64, at);
			row = shifted(r, OP_SHR, row, w->log[n]);
		}
		r->l.axis[w->axis[n]] = roles_op(r, OP_ADD, w->first[n], at);
	}
}

ValId
window_has_row(Roles *r, ValId row)
{
	const Window *w = r->window;
	ValId has = tir_int(r->l.tir, DT_BOOL, 1);
	window_enter_row(r, row);
	for (unsigned n = 0; n < w->naxis; n++)
		has = roles_op(r, OP_AND, has, roles_op(r, OP_LT, r->l.axis[w->axis[n]], point_launch_expr(&r->l, row_extent(r, n))));
	return has;
}
