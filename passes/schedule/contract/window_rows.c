/* window_rows.c: the box of pixels that a tile of rows of several axes has (window_rows.h): how many indices of each axis, which
 * ones, and which of them is a row.
 *
 * Counts are powers of two, and the tile's rows in all, so that a row's indices are its bits. A launch takes of the inner
 * two axes what divides their extents, at most 2^INNER of each, and the rest of the outermost one, where that has as many;
 * else 2^INNER of the inner two. Where what windows reach beyond a box is to be little, and boxes need not be full, it takes
 * one of three ways, the one with the fewest boxes. */
#include "passes/schedule/contract/window_rows.h"

#include "passes/expr_map.h"
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/point/affine.h"

enum { INNER = 3, INNER_OF_TWO = 6 };

/* --- which rows, and which terms --- */

bool
window_add_axis(Window *w, const Node *n, unsigned k, const int64_t *coef, uint32_t rows, int64_t most, uint32_t *seen)
{
	bool found = false;
	for (unsigned a = 0; a < n->npar; a++) {
		if (!coef[a] || !(rows >> a & 1))
			continue;
		if (found || *seen >> a & 1 || coef[a] < 1 || coef[a] > most || w->naxis == WINDOW_AXES)
			return false;
		found = true;
		*seen |= UINT32_C(1) << a;
		w->place[w->naxis] = (uint8_t)k;
		w->axis[w->naxis] = (uint8_t)a;
		w->step[w->naxis++] = (uint8_t)coef[a];
	}
	return true;
}

bool
window_asks_for_range(const Graph *g, Arena *scratch, const Window *w, ExprId e)
{
	const Expr *p = expr_get(g, e);
	Affine asked = {.constant = p->op == OP_LT ? -1 : 0};
	if (expr_is_true(g, e))
		return true;
	if (p->op == OP_AND)
		return window_asks_for_range(g, scratch, w, expr_arg(g, e, 0)) && window_asks_for_range(g, scratch, w, expr_arg(g, e, 1));
	if ((p->op != OP_LE && p->op != OP_LT) || !affine_add(g, scratch, &asked, expr_arg(g, e, 1), 1) ||
	    !affine_add(g, scratch, &asked, expr_arg(g, e, 0), -1))
		return false;
	for (unsigned k = 0; k < w->rank; k++) { /* that it be at least 0, or below the extent */
		Affine low = {0}, high = {.constant = -1};
		if (affine_add(g, scratch, &low, w->sub[k], 1) && affine_same(&asked, &low))
			return true;
		if (affine_add(g, scratch, &high, g->tensor.at[w->tensor].extent[k], 1) && affine_add(g, scratch, &high, w->sub[k], -1) &&
		    affine_same(&asked, &high))
			return true;
	}
	return false;
}

bool
window_ranges_are_plain(const Graph *g, Arena *scratch, const Node *n)
{
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++) {
		const Axis *x = &n->axis[a];
		const Expr *lo = expr_get(g, x->lo);
		if (x->clamp || x->cut || lo->op != OP_CONST || lo->imm.i != 0 || !expr_is_of_launch(g, scratch, x->hi))
			return false;
	}
	return n->nred > 0;
}

/* --- the box --- */

static ExprId
number(const Window *w, int64_t v)
{
	return expr_int(w->l->g, DT_I64, v);
}

static ExprId
binary(const Window *w, Op o, ExprId a, ExprId b)
{
	return expr_binary(w->l->g, o, a, b);
}

static ExprId
row_extent(const Window *w, unsigned k)
{
	return w->l->g->tensor.at[w->l->node->out].extent[w->axis[k]];
}

/* The largest power of two that divides e, at most 2^most. */
static ExprId
twos(const Window *w, ExprId e, unsigned most)
{
	Graph *g = w->l->g;
	ExprId all = number(w, 1);
	for (unsigned k = 1; k <= most; k++) {
		ExprId power = number(w, INT64_C(1) << k);
		all = expr_select(g, binary(w, OP_EQ, binary(w, OP_IMOD, e, power), number(w, 0)), power, all);
	}
	return all;
}

/* The box's counts, over dims, and how many boxes there are. What they are made of is written out each time, so it is
 * short. */
static ExprId
choose_box(const Window *w, ExprId *box)
{
	Graph *g = w->l->g;
	unsigned n = w->naxis, rows = w->rows;
	ExprId inner = number(w, 1), whole = number(w, 1), cut = number(w, 1), even[WINDOW_AXES], otherwise[WINDOW_AXES];
	for (unsigned k = n; k-- > 1;) {
		bool first = k + 1 == n, second = k + 2 == n;
		unsigned most = n == 2 ? INNER_OF_TWO : second || first ? INNER : 0;
		even[k] = twos(w, row_extent(w, k), most);
		otherwise[k] = number(w, INT64_C(1) << most);
		inner = first ? even[k] : most ? binary(w, OP_MUL, inner, even[k]) : inner;
		rows >>= most;
		whole = binary(w, OP_MUL, whole, most ? binary(w, OP_IDIV, row_extent(w, k), even[k]) : row_extent(w, k));
		cut = binary(w, OP_MUL, cut, launch_ceil_div(g, row_extent(w, k), INT64_C(1) << most));
	}
	even[0] = n > 1 ? binary(w, OP_IDIV, number(w, w->rows), inner) : number(w, rows);
	otherwise[0] = number(w, rows);
	cut = binary(w, OP_MUL, cut, launch_ceil_div(g, row_extent(w, 0), rows));
	ExprId up = binary(w, OP_SUB, binary(w, OP_ADD, row_extent(w, 0), even[0]), number(w, 1));
	whole = binary(w, OP_MUL, whole, binary(w, OP_IDIV, up, even[0]));
	ExprId good = binary(w, OP_LE, even[0], row_extent(w, 0));
	for (unsigned k = 0; k < n; k++)
		box[k] = n > 1 ? expr_select(g, good, even[k], otherwise[k]) : otherwise[k];
	return n > 1 ? expr_select(g, good, whole, cut) : cut;
}

/* --- a box whose windows reach little beyond --- */

/* Whether windows go along axis k of the rows. */
static bool
has_windows(const Window *w, unsigned k)
{
	const Node *n = w->l->node;
	uint32_t terms = ((UINT32_C(1) << n->nred) - 1) << n->npar;
	return expr_axes(w->l->g, w->l->scratch, w->sub[w->place[k]]) & terms;
}

enum { NEAR = 3, NEAR_ROWS = 128 }; /* ways to choose, and axes that have more than an index in one */

/* Counts, over dims: as few boxes as any of the ways gives, by the first such way. */
static ExprId
choose_near_box(const Window *w, ExprId *box)
{
	static const uint8_t sides[NEAR][NEAR] = {{1, 8, 16}, {1, 16, 8}, {2, 8, 8}}, of_two[NEAR][NEAR] = {{1, 8, 16}, {1, 16, 8}, {1, 4, 32}},
	                     line[NEAR][NEAR] = {{1, 1, 128}, {1, 2, 64}, {1, 8, 16}};
	Graph *g = w->l->g;
	unsigned n = w->naxis;
	const uint8_t(*way)[NEAR] = n < 2 || !has_windows(w, n - 2) ? line : n == 2 ? of_two : sides;
	ExprId count[NEAR], least = 0;
	if (w->rows != NEAR_ROWS)
		bug(g->arena, "a box of %u rows", w->rows);
	for (unsigned i = 0; i < (n > 1 ? NEAR : 1u); i++) {
		count[i] = number(w, 1);
		for (unsigned k = 0; k < n; k++)
			count[i] = binary(w, OP_MUL, count[i], launch_ceil_div(g, row_extent(w, k), k + NEAR < n ? 1 : way[i][k + NEAR - n]));
		least = least ? binary(w, OP_MIN, least, count[i]) : count[i];
	}
	for (unsigned k = 0; k < n; k++) {
		unsigned of = k + NEAR - n;
		if (k + NEAR < n || n == 1) {
			box[k] = number(w, n == 1 ? w->rows : 1);
			continue;
		}
		box[k] = number(w, way[NEAR - 1][of]);
		for (unsigned i = NEAR - 1; i-- > 0;)
			box[k] = expr_select(g, binary(w, OP_LE, count[i], least), number(w, way[i][of]), box[k]);
	}
	return least;
}

/* --- in the kernel --- */

static ValId
num(const Window *w, int64_t v)
{
	return tir_int(w->l->tir, DT_I64, v);
}

static ValId
op(const Window *w, Op o, ValId a, ValId b)
{
	return tir_binary(w->l->tir, o, a, b);
}

static ValId
u32(const Window *w, ValId v)
{
	return tir_cast(w->l->tir, DT_U32, v);
}

/* v << by, and v >> by, of what is below 2^32. */
static ValId
shifted(const Window *w, Op o, ValId v, ValId by)
{
	return tir_cast(w->l->tir, DT_I64, op(w, o, u32(w, v), by));
}

/* The logarithm of a power of two, at most that of a tile's rows: u32. */
static ValId
logarithm(const Window *w, ValId v)
{
	TirKernel *k = w->l->tir;
	ValId log = tir_int(k, DT_U32, 0);
	for (int64_t power = 2; power <= w->rows; power *= 2)
		log = tir_select(k, op(w, OP_LE, num(w, power), v), tir_int(k, DT_U32, __builtin_ctzll((uint64_t)power)), log);
	return log;
}

/* How many boxes there are along axis k. */
static ValId
boxes(const Window *w, unsigned k)
{
	ValId last = op(w, OP_SUB, w->box[k], num(w, 1));
	return shifted(w, OP_SHR, op(w, OP_ADD, point_launch_expr(w->l, row_extent(w, k)), last), w->log[k]);
}

ExprId
window_bind_rows(Window *w, Point *l, unsigned rows, bool near, ExprId *box)
{
	w->l = l;
	w->rows = rows;
	ExprId all = near ? choose_near_box(w, box) : choose_box(w, box);
	for (unsigned k = 0; k < w->naxis; k++) {
		w->box[k] = point_launch_expr(w->l, box[k]);
		w->log[k] = logarithm(w, w->box[k]);
		w->count = k ? op(w, OP_MUL, w->count, boxes(w, k)) : boxes(w, k);
	}
	return all;
}

/* --- tiles and rows --- */

void
window_enter_tile(Window *w, ValId tile)
{
	TirKernel *k = w->l->tir;
	w->whole = tir_int(k, DT_BOOL, 1);
	for (unsigned n = w->naxis; n-- > 0;) {
		ValId at = tile;
		if (n)
			tile = raster_divide(w->l->tir, tile, boxes(w, n), &at);
		w->first[n] = shifted(w, OP_SHL, at, w->log[n]);
		ValId end = op(w, OP_ADD, w->first[n], w->box[n]);
		w->whole = op(w, OP_AND, w->whole, op(w, OP_LE, end, point_launch_expr(w->l, row_extent(w, n))));
	}
}

void
window_row_at(const Window *w, ValId row, ValId *at)
{
	for (unsigned n = w->naxis; n-- > 0;) {
		at[n] = row;
		if (n) {
			at[n] = op(w, OP_BAND, u32(w, row), u32(w, op(w, OP_SUB, w->box[n], num(w, 1))));
			at[n] = tir_cast(w->l->tir, DT_I64, at[n]);
			row = shifted(w, OP_SHR, row, w->log[n]);
		}
	}
}

void
window_enter_row(const Window *w, ValId row)
{
	ValId at[WINDOW_AXES];
	window_row_at(w, row, at);
	for (unsigned n = w->naxis; n-- > 0;)
		w->l->axis[w->axis[n]] = op(w, OP_ADD, w->first[n], at[n]);
}

ValId
window_has_row(const Window *w, ValId row)
{
	ValId has = tir_int(w->l->tir, DT_BOOL, 1);
	window_enter_row(w, row);
	for (unsigned n = 0; n < w->naxis; n++)
		has = op(w, OP_AND, has, op(w, OP_LT, w->l->axis[w->axis[n]], point_launch_expr(w->l, row_extent(w, n))));
	return has;
}
