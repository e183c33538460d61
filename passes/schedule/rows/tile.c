/* tile.c: which tensors a MAP kernel reads across its lanes tile by tile (rows.h). Those of a kernel of blocks
 * go through shared memory; turn.c has a processor's.
 *
 * A task is a tile, as long along the blocked axis as along the lanes. First the reads across are done with
 * lanes along the blocked axis, along which their memory runs, and put into shared memory row by row; then the
 * rows of the result are computed with what shared memory has of their column. So both sides of memory are met
 * along their rows.
 *
 * A row of the tile is one element longer than it needs to be. A thread has V elements side by side, which fill 4
 * bytes; of a column it takes V rows, and the next thread the next ones: V (n + 1) elements further on, n + 1 words
 * of 4 bytes. That is odd, so 32 threads meet 32 banks; those that write a row meet them as well.
 *
 * What comes once, each element of it, goes past the first level's cache, of which tiles leave too little for the lines that
 * all warps have on their way.
 *
 * What is read here is read whether the result wants it or not, so only what can't fault is: a read without an
 * access, of a tensor without faults, each under the test of its own bounds. */
#include "passes/schedule/rows/build.h"
#include "passes/schedule/rows/plan.h"

#include "passes/expr_map.h"
#include "ir/bugs.h"

enum {
	TILE_BYTES = 20480, /* of shared memory: some ten blocks a multiprocessor */
	TILE_LOADS = 16,    /* rows that are on their way at once */
	TILE_ROWS = 16      /* rows of the result side by side, whose other reads are on their way at once */
};

/* --- which reads --- */

typedef struct {
	RowsPlan *p;
} Find;

bool
rows_may_read_early(const RowsPlan *p, ExprId e)
{
	const Expr read = *expr_get(p->g, e);
	bool ok = read.op == OP_READ && !read.access && !p->facts->faulty[read.ref] && rows_member_of(p->r, read.ref) < 0 &&
	          p->g->tensor.at[read.ref].kind != TENSOR_SCALAR && read.dtype != DT_C64 && dtype_info[read.dtype].bits >= 8;
	for (unsigned k = 0; ok && k < read.narg; k++)
		ok = expr_is_index(p->g, p->scratch, expr_arg(p->g, e, k));
	return ok;
}

static bool
is_read_across(const RowsPlan *p, ExprId e)
{
	const Rows *r = p->r;
	Graph *g = p->g;
	const Expr read = *expr_get(g, e);
	uint32_t lane = 1u << (r->nrow - 1u), block = 1u << (r->block - 1u), before = 0;
	int64_t coef[TG_MAX_AXES];
	ExprId rest;
	if (!rows_may_read_early(p, e) || read.narg < 2)
		return false;
	for (unsigned k = 0; k + 1u < read.narg; k++)
		before |= expr_axes(g, p->scratch, expr_arg(g, e, k));
	ExprId last = expr_arg(g, e, read.narg - 1u);
	return (before & lane) && !(before & block) && !(expr_axes(g, p->scratch, last) & lane) &&
	       index_affine(g, last, r->nrow, coef, &rest) && coef[r->block - 1u] == 1;
}

static unsigned
bytes_of(const Graph *g, ExprId e)
{
	return dtype_info[expr_get(g, e)->dtype].bits / 8u;
}

/* The bytes of the tiles of the reads found, and of one more (0: none), with V lanes side by side. */
static unsigned
tile_bytes(const RowsPlan *p, ExprId more, unsigned v)
{
	unsigned n = TIR_WARP * v, all = more ? bytes_of(p->g, more) : 0;
	for (unsigned k = 0; k < p->r->ntile; k++)
		all += bytes_of(p->g, p->r->tile[k]);
	return n * (n + 1) * all;
}

static void
find_read(void *user, ExprId e)
{
	RowsPlan *p = ((Find *)user)->p;
	Rows *r = p->r;
	for (unsigned k = 0; k < r->ntile; k++)
		if (r->tile[k] == e)
			return;
	if (r->ntile < ROWS_MAX_TILES && is_read_across(p, e) && tile_bytes(p, e, 1) <= TILE_BYTES)
		r->tile[r->ntile++] = e;
}

/* What else is read: a store holds up every load behind it, so the loads of several rows come before their stores. */
static void
find_other(void *user, ExprId e)
{
	RowsPlan *p = ((Find *)user)->p;
	Rows *r = p->r;
	for (unsigned k = 0; k < r->ntile + r->nkept; k++)
		if ((k < r->ntile ? r->tile[k] : r->kept[k - r->ntile]) == e)
			return;
	if (r->nkept < ROWS_MAX_KEPT && rows_may_read_early(p, e))
		r->kept[r->nkept++] = e;
}

void
rows_find_tiles(RowsPlan *p)
{
	Rows *r = p->r;
	Find f = {p};
	unsigned narrow = 4;
	if (!r->block || (!p->facts->blocks && (p->facts->lanes < 4 || p->facts->lanes > 16)))
		return;
	for (unsigned m = 0; m < r->nmember; m++)
		node_walk(p->g, p->scratch, &r->member[m].node, find_read, &f);
	if (!p->facts->blocks || !r->ntile)
		return;
	for (unsigned m = 0; m < r->nmember; m++)
		node_walk(p->g, p->scratch, &r->member[m].node, find_other, &f);
	for (unsigned k = 0; k < r->ntile; k++)
		narrow = bytes_of(p->g, r->tile[k]) < narrow ? bytes_of(p->g, r->tile[k]) : narrow;
	for (unsigned m = 0; m < r->nmember; m++) {
		unsigned bytes = dtype_info[p->g->tensor.at[r->member[m].t].dtype].bits / 8u;
		narrow = r->member[m].stored && bytes < narrow ? bytes : narrow;
	}
	r->tile_group = (uint8_t)(4 / narrow);
	while (r->tile_group > 1 && tile_bytes(p, 0, r->tile_group) > TILE_BYTES)
		r->tile_group /= 2;
}

/* --- what stands for them --- */

ExprId
rows_stand_in(Graph *g, const Rows *r, unsigned k)
{
	ExprId e = k < ROWS_MAX_TILES ? r->tile[k] : r->kept[k - ROWS_MAX_TILES];
	return expr_make(g, OP_IVAR, (DType)expr_get(g, e)->dtype, k, 0, NULL, 0);
}

static ExprId
replace_read(void *user, Graph *g, ExprId e)
{
	const Rows *r = user;
	for (unsigned k = 0; k < r->ntile; k++)
		if (r->tile[k] == e)
			return rows_stand_in(g, r, k);
	for (unsigned k = 0; k < r->nkept; k++)
		if (r->kept[k] == e)
			return rows_stand_in(g, r, ROWS_MAX_TILES + k);
	return e;
}

void
rows_replace_reads(RowBuild *b)
{
	Rows *r = b->r;
	for (unsigned m = 0; r->ntile + r->nkept && m < r->nmember; m++) {
		Node *n = &r->member[m].node;
		n->domain = expr_map(b->l->g, b->l->scratch, n->domain, replace_read, r);
		n->body = expr_map(b->l->g, b->l->scratch, n->body, replace_read, r);
		n->finish = expr_map(b->l->g, b->l->scratch, n->finish, replace_read, r);
	}
}

void
rows_declare_tiles(RowBuild *b)
{
	Point *l = b->l;
	unsigned n = l->lanes, all = n * (n + 1);
	for (unsigned k = 0; k < b->r->ntile; k++)
		point_declare(l, b->r->tile[k]);
	for (unsigned k = 0; k < b->r->nkept; k++)
		point_declare(l, b->r->kept[k]);
	if (!b->kernel->plan.threads) {
		rows_declare_squares(b);
		return;
	}
	for (unsigned k = 0; k < b->r->ntile; k++) {
		const Expr read = *expr_get(l->g, b->r->tile[k]);
		unsigned buffer = tir_add_buffer(l->tir, l->g->tensor.at[read.ref].name, (DType)read.dtype, true);
		ValId extent = rows_int(b, all), one = rows_int(b, 1);
		l->tir->buffer.at[buffer].shared = all;
		b->tile[k] = tir_view(l->tir, buffer, 1, &extent, &one);
	}
}

/* --- a task --- */

/* A tile that has all of its elements needs no masks; another one is gone through row by row. */
typedef struct {
	ValId begin, end;         /* of the lanes */
	bool whole;
	unsigned loads, rows;     /* at once */
} Tile;

/* The lanes of this row that there are; 0: all. */
static ValId
row_mask(RowBuild *b, const Tile *t, ValId mask, ValId row, ValId end)
{
	TirKernel *k = b->l->tir;
	return t->whole ? 0 : tir_binary(k, OP_AND, mask, tir_binary(k, OP_LT, row, end));
}

static ValId
iota(RowBuild *b)
{
	return tir_emit(b->l->tir, OP_IOTA, tir_vector(DT_I64, b->l->lanes), 0, NULL, 0);
}

/* Whether a tile's points are that many elements of what e reads, in rows along this axis: it is in the last subscript
 * alone, and the other one in those before alone. */
static bool
comes_once(const RowBuild *b, ExprId e, unsigned along, unsigned other)
{
	Graph *g = b->l->g;
	const Expr read = *expr_get(g, e);
	int64_t coef[TG_MAX_AXES];
	ExprId rest;
	bool row = false;
	if (!read.narg || !index_affine(g, expr_arg(g, e, read.narg - 1u), b->r->nrow, coef, &rest) || coef[along] != 1 || coef[other])
		return false;
	for (unsigned k = 0; k + 1u < read.narg; k++) {
		if (!index_affine(g, expr_arg(g, e, k), b->r->nrow, coef, &rest) || coef[along])
			return false;
		row |= coef[other] != 0;
	}
	return row;
}

static ValId
past_the_cache(RowBuild *b, ValId v, bool once)
{
	if (once && tir_inst(b->l->tir, v)->op == OP_LOAD)
		b->l->tir->inst.at[v].imm.i |= TIR_STREAM;
	return v;
}

/* Some rows of tile k, from `row` on: loaded, then put where they are looked for. */
static void
fill_rows(RowBuild *b, const Tile *t, unsigned k, ValId row, ValId mask)
{
	Point *l = b->l;
	TirKernel *to = l->tir;
	ValId value[TILE_LOADS], exists[TILE_LOADS], *at = &l->axis[rows_lane_axis(b)];
	bool once = comes_once(b, b->r->tile[k], b->r->block - 1u, rows_lane_axis(b));
	ValId place = tir_binary(to, OP_MUL, tir_binary(to, OP_SUB, row, t->begin), rows_int(b, l->lanes + 1));
	for (unsigned u = 0; u < t->loads; u++) {
		uint32_t mark = point_mark(l);
		*at = u ? tir_binary(to, OP_ADD, row, rows_int(b, u)) : row;
		l->mask = exists[u] = row_mask(b, t, mask, *at, t->end);
		value[u] = past_the_cache(b, point_value(l, b->r->tile[k], false).re, once);
		point_release(l, mark);
	}
	for (unsigned u = 0; u < t->loads; u++) {
		ValId first = tir_binary(to, OP_ADD, place, rows_int(b, (int64_t)u * (l->lanes + 1)));
		ValId index = tir_binary(to, OP_ADD, first, iota(b));
		tir_store(to, b->tile[k], value[u], &index, exists[u], 0);
	}
}

static void
fill_tiles(RowBuild *b, const Tile *t)
{
	Point *l = b->l;
	unsigned block = b->r->block - 1u, lane = rows_lane_axis(b);
	point_set_lanes(l, l->lanes, block);
	l->axis[block] = b->block_lo;
	ValId mask = t->whole ? 0 : point_block_mask(b->l, b->block_lo, b->block_hi);
	for (unsigned k = 0; k < b->r->ntile; k++) {
		ValId row = tir_for(l->tir, t->begin, t->end, rows_int(b, t->loads), NULL, 0);
		fill_rows(b, t, k, row, mask);
		tir_end_for(l->tir, NULL, 0);
	}
	l->mask = 0;
	l->axis[lane] = t->begin;
	point_set_lanes(l, l->lanes, lane);
}

/* The column that the blocked axis is at. */
static void
take_column(RowBuild *b)
{
	Point *l = b->l;
	TirKernel *k = l->tir;
	ValId column = tir_binary(k, OP_SUB, l->axis[b->r->block - 1u], b->block_lo);
	ValId pitch = rows_int(b, BUG(tile_rows_unpadded) ? l->lanes : l->lanes + 1);
	ValId index = tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, iota(b), pitch), column);
	for (unsigned n = 0; n < b->r->ntile; n++)
		point_place(l, rows_stand_in(l->g, b->r, n), tir_load(k, b->tile[n], &index, l->mask, 0, l->lanes));
}

/* Goes to row u of some. */
static void
enter_row(RowBuild *b, const Tile *t, ValId row, unsigned u, ValId mask, ValId hi)
{
	Point *l = b->l;
	ValId *at = &l->axis[b->r->block - 1u];
	*at = u ? tir_binary(l->tir, OP_ADD, row, rows_int(b, u)) : row;
	l->mask = row_mask(b, t, mask, *at, hi);
}

/* Some rows of the result, from `row` on: what they read beside the tiles, then the rows. */
static void
run_tile_rows(RowBuild *b, const Tile *t, ValId row, ValId mask, ValId hi)
{
	Point *l = b->l;
	Rows *r = b->r;
	ValId other[TILE_ROWS][ROWS_MAX_KEPT];
	bool once[ROWS_MAX_KEPT];
	for (unsigned n = 0; n < r->nkept; n++)
		once[n] = comes_once(b, r->kept[n], rows_lane_axis(b), r->block - 1u);
	for (unsigned u = 0; r->nkept && u < t->rows; u++) {
		uint32_t mark = point_mark(l);
		enter_row(b, t, row, u, mask, hi);
		for (unsigned n = 0; n < r->nkept; n++)
			other[u][n] = point_widen(l, past_the_cache(b, point_value(l, r->kept[n], false).re, once[n]));
		point_release(l, mark);
	}
	for (unsigned u = 0; u < t->rows; u++) {
		uint32_t mark = point_mark(l);
		enter_row(b, t, row, u, mask, hi);
		for (unsigned n = 0; n < r->nkept; n++)
			point_place(l, rows_stand_in(l->g, r, ROWS_MAX_TILES + n), other[u][n]);
		take_column(b);
		rows_run_phases(b, 1);
		point_release(l, mark);
	}
	l->mask = 0;
}

static void
run_tile(RowBuild *b, const Tile *t)
{
	Point *l = b->l;
	uint32_t start = point_mark(l);
	fill_tiles(b, t);
	ValId hi = t->whole ? tir_binary(l->tir, OP_ADD, b->block_lo, rows_int(b, l->lanes)) : b->block_hi;
	ValId mask = t->whole ? 0 : point_block_mask(b->l, t->begin, t->end);
	ValId row = tir_for(l->tir, b->block_lo, hi, rows_int(b, t->rows), NULL, 0);
	run_tile_rows(b, t, row, mask, hi);
	tir_end_for(l->tir, NULL, 0);
	point_release(l, start);
}

void
rows_run_tile(RowBuild *b, ValId begin, ValId end)
{
	TirKernel *k = b->l->tir;
	ValId n = rows_int(b, b->l->lanes);
	ValId lanes = tir_binary(k, OP_EQ, tir_binary(k, OP_SUB, end, begin), n);
	ValId rows = tir_binary(k, OP_EQ, tir_binary(k, OP_SUB, b->block_hi, b->block_lo), n);
	Tile whole = {begin, tir_binary(k, OP_ADD, begin, n), true, TILE_LOADS, TILE_ROWS}, other = {begin, end, false, 1, 1};
	tir_if(k, tir_binary(k, OP_AND, lanes, rows));
	run_tile(b, &whole);
	tir_else(k, NULL, 0);
	run_tile(b, &other);
	tir_end_if(k, NULL, 0);
}
