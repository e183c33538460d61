/* tile.c: which tensors a MAP kernel reads across its lanes tile by tile (rows.h). Those of a kernel of blocks
 * go through shared memory; turn.c has a processor's.
 *
 * A task is a tile, as long along the blocked axis as along the lanes. First the reads across are done with
 * lanes along the blocked axis, along which their memory runs, and put into shared memory row by row; then the
 * rows of the result are computed with what shared memory has of their column. So both sides of memory are met
 * along their rows.
 *
 * A small tile is a warp's. A row of it is one element longer than it needs to be. A thread has V elements side by side, which
 * fill 4 bytes; of a column it takes V rows, and the next thread the next ones: V (n + 1) elements further on, n + 1 words
 * of 4 bytes. That is odd, so 32 threads meet 32 banks; those that write a row meet them as well.
 *
 * A large tile is four warps', with V elements that fill 8 bytes, so that fewer accesses have as much on its way. Lanes are
 * rows of columns (ir/tir.h), several rows of the tile at once. A row's length is odd as well; of words of 4 bytes a thread
 * has two side by side, so of 32 threads two would meet in each bank: each 32 words of a row, and 32 words' number of rows,
 * are followed by a word that is nobody's. Elements that are less than a word are written a word at once, so that a row's
 * length is an odd number of words. Of a column a thread takes V rows, which would be an even number of words for the next
 * thread; so rows are in V classes by what V leaves of their number, and the next thread's are the next ones of each class.
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
	TILE_ROWS = 16,     /* rows of the result side by side, whose other reads are on their way at once, */
	ALONE_ROWS = 4,     /* and where nothing else is read */
	LARGE_BYTES = 36864, /* of a large tile: six of them are a multiprocessor's */
	LARGE_SIDE = 128,
	WORD = 4, BANKS = 32
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

/* The longest side of large tiles of all reads found, of V lanes side by side; 0: there are none. Single lanes gain nothing. */
static unsigned
large_side(const RowsPlan *p, unsigned v)
{
	const Rows *r = p->r;
	unsigned n = LARGE_SIDE < TIR_WARP * v * 2 ? LARGE_SIDE : TIR_WARP * v * 2, all = 0;
	for (unsigned k = 0; k < r->ntile; k++) {
		if (expr_get(p->g, r->tile[k])->dtype == DT_BOOL)
			return 0;
		all += bytes_of(p->g, r->tile[k]);
	}
	while (n * n * all > LARGE_BYTES)
		n /= 2;
	return r->nloop || v == 1 || n < TIR_WARP ? 0 : n;
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
	unsigned narrow = 2 * WORD;
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
	r->tile_group = (uint8_t)(narrow < WORD ? WORD / narrow : 1);
	while (r->tile_group > 1 && tile_bytes(p, 0, r->tile_group) > TILE_BYTES)
		r->tile_group /= 2;
	r->large_group = (uint8_t)(2 * WORD / narrow);
	r->large_side = (uint8_t)large_side(p, r->large_group);
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

/* --- where an element is --- */

static unsigned
side(const RowBuild *b)
{
	return b->kernel->plan.columns ? b->kernel->plan.columns : b->l->lanes;
}

/* The rows of a tile that a vector has. */
static unsigned
rows_together(const RowBuild *b)
{
	return b->l->lanes / side(b);
}

/* Elements of tile k, each so many of which are followed by a word that is nobody's; 0: none are. */
static unsigned
before_gap(const RowBuild *b, unsigned k, unsigned *gap)
{
	unsigned bytes = bytes_of(b->l->g, b->r->tile[k]), word = bytes < WORD ? WORD : bytes;
	*gap = word / bytes;
	return b->kernel->plan.columns && b->kernel->plan.group * bytes > word ? BANKS * *gap : 0;
}

/* What gaps add to the place of column or row `at`. */
static unsigned
gaps_before(const RowBuild *b, unsigned k, unsigned at)
{
	unsigned gap, every = before_gap(b, k, &gap);
	return every ? at / every * gap : 0;
}

/* The elements of a word, where tile k's rows are in classes and written by words; 1: they are not. */
static unsigned
pair_of(const RowBuild *b, unsigned k)
{
	unsigned bytes = bytes_of(b->l->g, b->r->tile[k]), v = b->kernel->plan.group;
	return b->kernel->plan.columns && bytes < WORD && v * bytes > WORD && rows_together(b) % v == 0 ? WORD / bytes : 1;
}

static unsigned
pitch_of(const RowBuild *b, unsigned k)
{
	unsigned pair = pair_of(b, k);
	return ((side(b) + gaps_before(b, k, side(b) - 1)) / pair | 1) * pair;
}

/* Elements from a class of rows to the next one, with a word that is nobody's. */
static unsigned
class_elements(const RowBuild *b, unsigned k)
{
	return (side(b) / b->kernel->plan.group - BUG(tile_classes_overlap)) * pitch_of(b, k) + pair_of(b, k);
}

/* What is in pairs begins behind a word: by that a store sees how many elements lie side by side from where. */
static unsigned
tile_elements(const RowBuild *b, unsigned k)
{
	if (pair_of(b, k) > 1)
		return pair_of(b, k) + b->kernel->plan.group * class_elements(b, k);
	return side(b) * pitch_of(b, k) + gaps_before(b, k, side(b) - 1);
}

/* The gaps before column or row `at`; 0: there are none. */
static ValId
gaps(RowBuild *b, unsigned k, ValId at)
{
	TirKernel *to = b->l->tir;
	unsigned gap, every = before_gap(b, k, &gap);
	return every ? tir_binary(to, OP_MUL, tir_binary(to, OP_IDIV, at, rows_int(b, every)), rows_int(b, gap)) : 0;
}

/* Column `at` times the pitch, with the gaps before it. */
static ValId
placed(RowBuild *b, unsigned k, ValId at, unsigned pitch)
{
	TirKernel *to = b->l->tir;
	ValId skipped = gaps(b, k, at), place = tir_binary(to, OP_MUL, at, rows_int(b, pitch));
	return skipped ? tir_binary(to, OP_ADD, place, skipped) : place;
}

/* Of each lane, the place of the group that it is in. */
static ValId
group_place(RowBuild *b)
{
	TirKernel *k = b->l->tir;
	return tir_emit(k, OP_IOTA, tir_vector(DT_I64, b->l->lanes), k->group > 1 ? k->group : 0, NULL, 0);
}

/* The same of each lane's column; no gap parts a group. */
static ValId
lane_placed(RowBuild *b, unsigned k, unsigned pitch)
{
	TirKernel *to = b->l->tir;
	ValId iota = tir_emit(to, OP_IOTA, tir_vector(DT_I64, b->l->lanes), 0, NULL, 0);
	if (!b->kernel->plan.columns)
		return placed(b, k, iota, pitch);
	ValId first = tir_binary(to, OP_IMOD, group_place(b), rows_int(b, side(b))), more = tir_binary(to, OP_SUB, iota, group_place(b));
	if (pair_of(b, k) > 1) {
		ValId next = tir_binary(to, OP_MUL, tir_binary(to, OP_IDIV, first, rows_int(b, b->kernel->plan.group)), rows_int(b, pitch));
		ValId class = tir_binary(to, OP_MUL, more, rows_int(b, class_elements(b, k)));
		return tir_binary(to, OP_ADD, tir_binary(to, OP_ADD, next, class), rows_int(b, pair_of(b, k)));
	}
	return tir_binary(to, OP_ADD, placed(b, k, first, pitch), tir_binary(to, OP_MUL, more, rows_int(b, pitch)));
}

/* The row of each lane, of those that a vector has. */
static ValId
lane_row(RowBuild *b)
{
	return tir_binary(b->l->tir, OP_IDIV, group_place(b), rows_int(b, side(b)));
}

void
rows_declare_tiles(RowBuild *b)
{
	Point *l = b->l;
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
		unsigned all = tile_elements(b, k);
		ValId extent = rows_int(b, all), one = rows_int(b, 1);
		l->tir->buffer.at[buffer].shared = all;
		b->tile[k] = tir_view(l->tir, buffer, 1, &extent, &one);
		if (pair_of(b, k) > 1)
			b->tile_rows[k] = tir_view(l->tir, buffer, 2, (ValId[]){extent, rows_int(b, side(b) + pair_of(b, k))}, (ValId[]){one, one});
	}
}

/* --- a task --- */

/* A tile that has all of its elements needs no masks; another one is gone through row by row. */
typedef struct {
	ValId begin, end;         /* of the lanes */
	ValId lane_row;           /* 0: a vector is one row */
	bool whole;
	unsigned loads, rows;     /* vectors at once */
} Tile;

/* Lanes lie along one axis; where a vector is several rows of a tile, those follow the other one. */
static void
set_lanes(RowBuild *b, unsigned along, unsigned across)
{
	b->l->row_axes = b->kernel->plan.columns ? UINT32_C(1) << across : 0;
	point_set_lanes(b->l, b->l->lanes, along);
}

/* Row u of some vectors'. */
static ValId
row_after(RowBuild *b, ValId row, unsigned u)
{
	return u ? tir_binary(b->l->tir, OP_ADD, row, rows_int(b, (int64_t)u * rows_together(b))) : row;
}

/* The row of each lane, where the first one's is `row`. */
static ValId
rows_from(RowBuild *b, const Tile *t, ValId row)
{
	return t->lane_row ? tir_binary(b->l->tir, OP_ADD, row, t->lane_row) : row;
}

/* The lanes of this row that there are; 0: all. */
static ValId
row_mask(RowBuild *b, const Tile *t, ValId mask, ValId row, ValId end)
{
	TirKernel *k = b->l->tir;
	return t->whole ? 0 : tir_binary(k, OP_AND, mask, tir_binary(k, OP_LT, row, end));
}

/* Of a row that is [begin, end), the lanes that there are; 0: all. */
static ValId
column_mask(RowBuild *b, const Tile *t, ValId begin, ValId end)
{
	return t->whole ? 0 : b->kernel->plan.columns ? rows_columns_of(b, begin, end) : point_block_mask(b->l, begin, end);
}

/* The place of vector u's first row, where the first vector's is `row`, times the pitch, with gaps. */
static ValId
row_place(RowBuild *b, unsigned k, ValId row, unsigned u, unsigned vectors, unsigned pitch)
{
	TirKernel *to = b->l->tir;
	unsigned gap, every = before_gap(b, k, &gap), n = rows_together(b), later = u * n;
	bool apart = every && vectors * n % every; /* where gaps of the first and of those behind it do not just add up */
	ValId place = placed(b, k, apart ? row_after(b, row, u) : row, pitch);
	return apart || !u ? place : tir_binary(to, OP_ADD, place, rows_int(b, (int64_t)later * pitch + gaps_before(b, k, later)));
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

/* Where each lane's row of tile k begins among the first rows, if those are in classes, behind the gaps before its column. */
static ValId
class_place(RowBuild *b, const Tile *t, unsigned k)
{
	TirKernel *to = b->l->tir;
	ValId v = rows_int(b, b->kernel->plan.group), column = tir_binary(to, OP_IMOD, group_place(b), rows_int(b, side(b))), skipped = gaps(b, k, column);
	ValId class = tir_binary(to, OP_MUL, tir_binary(to, OP_IMOD, t->lane_row, v), rows_int(b, class_elements(b, k)));
	ValId place = tir_binary(to, OP_ADD, class, tir_binary(to, OP_MUL, tir_binary(to, OP_IDIV, t->lane_row, v), rows_int(b, pitch_of(b, k))));
	return skipped ? tir_binary(to, OP_ADD, place, skipped) : place;
}

/* The value of vector u, whose first row is `from` for the first vector, put where it is looked for. */
static void
put_rows(RowBuild *b, const Tile *t, unsigned k, unsigned u, ValId from, ValId place, ValId value, ValId exists)
{
	TirKernel *to = b->l->tir;
	unsigned pair = pair_of(b, k), pitch = pitch_of(b, k), v = b->kernel->plan.group;
	if (pair == 1) {
		ValId index = tir_binary(to, OP_ADD, row_place(b, k, from, u, t->loads, pitch), place);
		tir_store(to, b->tile[k], value, &index, exists, 0);
		return;
	}
	ValId row = tir_binary(to, OP_MUL, tir_binary(to, OP_IDIV, from, rows_int(b, v)), rows_int(b, pitch));
	ValId later = tir_binary(to, OP_ADD, row, rows_int(b, (int64_t)u * (rows_together(b) / v) * pitch));
	tir_store(to, b->tile_rows[k], value, (ValId[]){tir_binary(to, OP_ADD, later, place), rows_int(b, pair)}, exists, TIR_LANES_ALONG(1));
}

/* Some rows of tile k, from `row` on: loaded, then put where they are looked for, from `place` on for the first row. */
static void
fill_rows(RowBuild *b, const Tile *t, unsigned k, ValId row, ValId mask, ValId place)
{
	Point *l = b->l;
	TirKernel *to = l->tir;
	ValId value[TILE_LOADS], exists[TILE_LOADS], *at = &l->axis[rows_lane_axis(b)];
	bool once = comes_once(b, b->r->tile[k], b->r->block - 1u, rows_lane_axis(b));
	ValId from = tir_binary(to, OP_SUB, row, t->begin);
	for (unsigned u = 0; u < t->loads; u++) {
		uint32_t mark = point_mark(l);
		*at = rows_from(b, t, row_after(b, row, u));
		l->mask = exists[u] = row_mask(b, t, mask, *at, t->end);
		value[u] = past_the_cache(b, point_value(l, b->r->tile[k], false).re, once);
		point_release(l, mark);
	}
	for (unsigned u = 0; u < t->loads; u++)
		put_rows(b, t, k, u, from, place, value[u], exists[u]);
}

static void
fill_tiles(RowBuild *b, const Tile *t)
{
	Point *l = b->l;
	TirKernel *to = l->tir;
	unsigned block = b->r->block - 1u, lane = rows_lane_axis(b);
	set_lanes(b, block, lane);
	l->axis[block] = b->block_lo;
	ValId mask = column_mask(b, t, b->block_lo, b->block_hi);
	for (unsigned k = 0; k < b->r->ntile; k++) {
		ValId place = pair_of(b, k) > 1 ? class_place(b, t, k) : lane_placed(b, k, 1);
		if (t->lane_row && pair_of(b, k) == 1)
			place = tir_binary(to, OP_ADD, place, tir_binary(to, OP_MUL, t->lane_row, rows_int(b, pitch_of(b, k))));
		ValId row = tir_for(to, t->begin, t->end, rows_int(b, (int64_t)t->loads * rows_together(b)), NULL, 0);
		fill_rows(b, t, k, row, mask, place);
		tir_end_for(to, NULL, 0);
	}
	l->mask = 0;
	l->axis[lane] = t->begin;
	set_lanes(b, lane, block);
}

/* The columns that vector u is at, where the first vector's first one is `column`; place: by tile, of the first. */
static void
take_columns(RowBuild *b, const Tile *t, ValId column, unsigned u, const ValId *place)
{
	Point *l = b->l;
	TirKernel *k = l->tir;
	for (unsigned n = 0; n < b->r->ntile; n++) {
		ValId index = tir_binary(k, OP_ADD, place[n], row_place(b, n, column, u, t->rows, 1));
		point_place(l, rows_stand_in(l->g, b->r, n), tir_load(k, b->tile[n], &index, l->mask, 0, l->lanes));
	}
}

/* Goes to vector u of some. */
static void
enter_row(RowBuild *b, const Tile *t, ValId row, unsigned u, ValId mask, ValId hi)
{
	Point *l = b->l;
	ValId *at = &l->axis[b->r->block - 1u];
	*at = rows_from(b, t, row_after(b, row, u));
	l->mask = row_mask(b, t, mask, *at, hi);
}

/* Some rows of the result, from `row` on: what they read beside the tiles, then the rows. */
static void
run_tile_rows(RowBuild *b, const Tile *t, ValId row, ValId mask, ValId hi, const ValId *place)
{
	Point *l = b->l;
	Rows *r = b->r;
	ValId other[TILE_ROWS][ROWS_MAX_KEPT], column = tir_binary(l->tir, OP_SUB, row, b->block_lo);
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
		take_columns(b, t, column, u, place);
		rows_run_phases(b, 1);
		point_release(l, mark);
	}
	l->mask = 0;
}

/* Where a lane's rows of the tiles are, which are its places in rows of the result. */
static void
find_columns(RowBuild *b, const Tile *t, ValId *place)
{
	TirKernel *k = b->l->tir;
	for (unsigned n = 0; n < b->r->ntile; n++) {
		place[n] = lane_placed(b, n, BUG(tile_rows_unpadded) ? side(b) : pitch_of(b, n));
		if (t->lane_row)
			place[n] = tir_binary(k, OP_ADD, place[n], t->lane_row);
	}
}

static void
run_tile(RowBuild *b, Tile t)
{
	Point *l = b->l;
	ValId place[ROWS_MAX_TILES];
	uint32_t start = point_mark(l);
	t.lane_row = b->kernel->plan.columns ? lane_row(b) : 0;
	fill_tiles(b, &t);
	ValId hi = t.whole ? tir_binary(l->tir, OP_ADD, b->block_lo, rows_int(b, side(b))) : b->block_hi;
	ValId mask = column_mask(b, &t, t.begin, t.end);
	find_columns(b, &t, place);
	ValId row = tir_for(l->tir, b->block_lo, hi, rows_int(b, (int64_t)t.rows * rows_together(b)), NULL, 0);
	run_tile_rows(b, &t, row, mask, hi, place);
	tir_end_for(l->tir, NULL, 0);
	point_release(l, start);
}

void
rows_run_tile(RowBuild *b, ValId begin, ValId end)
{
	TirKernel *k = b->l->tir;
	unsigned vectors = side(b) / rows_together(b);
	unsigned rows_at_once = b->r->nkept ? TILE_ROWS : ALONE_ROWS;
	ValId n = rows_int(b, side(b));
	ValId lanes = tir_binary(k, OP_EQ, tir_binary(k, OP_SUB, end, begin), n);
	ValId rows = tir_binary(k, OP_EQ, tir_binary(k, OP_SUB, b->block_hi, b->block_lo), n);
	Tile whole = {.begin = begin, .end = tir_binary(k, OP_ADD, begin, n), .whole = true,
	              .loads = vectors < TILE_LOADS ? vectors : TILE_LOADS, .rows = vectors < rows_at_once ? vectors : rows_at_once};
	Tile other = {.begin = begin, .end = end, .loads = 1, .rows = 1};
	tir_if(k, tir_binary(k, OP_AND, lanes, rows));
	run_tile(b, whole);
	tir_else(k, NULL, 0);
	run_tile(b, other);
	tir_end_if(k, NULL, 0);
}
