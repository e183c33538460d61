/* roles_tile.c: which tile a block of roles has, by the sizes of a launch: each tile is a kernel of its own, which
 * runs where it is predicted to take the least time.
 *
 * Tiles come in waves of one on each processor. A tile's step takes what was measured on an H200, in cycles of 1.4 GHz, to
 * which large products bring it: the largest is at the rate of the multipliers, the others are at that of the L2 cache, or
 * wait. On other GPUs it takes longer by what that one's cache, or its multipliers, are slower (gpu_time.c). Those of three groups
 * are for sizes that fill the processors once: 1536 cubed took 15.1 us in tiles of 128 x 192, and 13.8 in those of 192 x 96; 2056
 * cubed 37.9 in the former in common, and 32.0 in those of 192 x 192 (cuBLAS: 12.7 and 27.4). Tiles of 256 x 160 and 256 x 192 by two groups, whose
 * elements are finished while nothing multiplies, took longer wherever they were timed (5000 and 8192 cubed). Elements are
 * finished at the instructions of a group's four warps, which wait more than they compute; other sums go on
 * meanwhile where a processor has more groups that finish for themselves than one. A small output is bound by how long memory takes
 * to answer: the rings that are as long as there is memory for ask for most at once. The steps of pieces of
 * terms (roles_pieces.c), and what those take who join them, are from the same GPU: 512 x 512 x 8192 took 13.0 us in tiles of 128 x 128
 * and of 64 x 128, 15.5 in those of 64 x 64, 17.5 in tiles of 128 x 256, which have twice as many pieces to join, 14.1 where two blocks have
 * columns in common; 65536 terms 60, 72, 106, 63 and 64 us (cuBLAS 58); 256 x 256 x 65536 25.7, 23.6 and 27.3 (24.0).
 * One group's tile of 64 x 128 waits where no cache has its factors: 256 x 4096 x 8192 took 34 us in those and 32.3 in two parts
 * (cuBLAS 29), 4096 x 256 x 8192 33.5 and 33.2 (30); with factors in the cache both take as long.
 *
 * Several sums that share a factor are one product of a wider tile. Of two, the steps of tiles of 128 rows and more were measured
 * on an H100, beside each other and the kernels of one sum; the other ones are those of one sum's tiles of that width. What
 * lies between the kernels of one sum is taken to be at the rate of memory.
 *
 * Tiles of factors of f32 (roles_thirds.c) go through six products a step, or three, and have each step's sums beside their
 * accumulators: there is no room for turns. With five slots those of 128 x 128 took 1484 us of 4096 cubed, and 1332 with four, 1603 with
 * three. Smaller ones than 64 x 128 were behind others, or behind multiply-adds, wherever they were timed.
 *
 * Rows of factors that begin at no multiples of 16 bytes are copied to where they do, whatever the sizes: any other kernel
 * takes longer. Those that begin at multiples of 16 bytes but not of the cache's 32 can be taken as they are: then a processor
 * brings half as many in the same time, and what it brings may bound a step. Tiles of two blocks that have columns in common
 * bring less (load alone of 5000 cubed on an H200, tiles of 128 x 256: 459 us, in common 328; of rows that begin with lines 239
 * and 249). Those of 128 x 128 are faster in common where rows begin with lines, too: 4096 cubed 209 us, and 200, where those of
 * 128 x 192 took 227. Or they are copied, where that is predicted to take less than what is lost. */
#include "passes/schedule/contract/gpu_time.h"
#include "passes/schedule/contract/roles_build.h"

enum {
	LANES_A_CYCLE = 128,
	WIDE_PANEL = 64,
	WAIT = 17, LONG_WAIT = 36, ALONE_WAIT = 48, /* cycles that those of an element wait: in wide panels, in others, one by one */
	PACKED = 8, PACKED_ALONE = 22, PACKED_LONG = 40, /* cycles of an element that is finished where its sum is (roles_packs): for each
	                       * of several groups that do so at once, of a group alone, in panels that are not wide */
	START = 1500,         /* cycles until the first products go on, and for what is left behind the last */
	MEET_FIRST = 1400,    /* cycles until blocks that have columns in common know each other, and until both may end */
	SIDE = 4,
	SECTOR_BYTES = 32,    /* of the cache */
	LEAST_BYTES = 16,     /* at multiples of which rows have to begin */
	BRING = 26, BRING_OFF = 52, /* sixteenths of a cycle that a processor takes to bring 128 bytes of a row, where rows begin with
	                       * sectors, and where they do not: 112 and 56 to 59 bytes in a nanosecond on an H200 */
	BEYOND = 3,           /* cycles that a step takes longer for each row or column of a tile that the output does not have: where
	                       * there are no more, since other tiles begin before */
	JOIN = 4200,          /* cycles that the kernel takes which joins pieces, beside what it reads */
	NEVER = 1 << 30,      /* cycles */
	MEET = 4500           /* cycles until blocks of a cluster have added up their parts */
};

static const RolesTile tile[] = {
	{.rows = 128, .columns = 192, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 4, .panel = 64, .turns = true, .side = SIDE, .step = 768},
	{.rows = 128, .columns = 128, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 5, .panel = 64, .turns = true, .side = SIDE, .step = 541},
	{.rows = 128, .columns = 192, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 4, .panel = 64, .side = SIDE, .step = 780},
	{.rows = 128, .columns = 128, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 5, .panel = 64, .side = SIDE, .step = 541},
	/* fewer waves */
	{.rows = 192, .columns = 96, .groups = 3, .registers = 160, .rest = 24, .resident = 1, .slots = 4, .panel = 64, .side = SIDE, .step = 610},
	{.rows = 64, .columns = 128, .groups = 1, .registers = 208, .rest = 24, .resident = 2, .slots = 4, .panel = 32, .side = SIDE, .step = 330},
	{.rows = 64, .columns = 128, .groups = 1, .registers = 240, .rest = 24, .resident = 1, .slots = 8, .panel = 64, .side = SIDE, .step = 325},
	{.rows = 64, .columns = 64, .groups = 1, .registers = 128, .rest = 24, .resident = 3, .slots = 4, .panel = 32, .side = SIDE, .step = 290},
	{.rows = 64, .columns = 64, .groups = 1, .registers = 240, .rest = 24, .resident = 1, .slots = 8, .panel = 64, .side = SIDE, .step = 250},
	/* few rows: an instruction multiplies 64, of which none but these are brought */
	{.rows = 32, .columns = 64, .groups = 1, .registers = 240, .rest = 24, .resident = 1, .slots = 8, .panel = 64, .side = SIDE, .step = 220},
	/* few tiles: the blocks of a cluster divide the terms */
	{.rows = 128, .columns = 128, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 4, .parts = 2, .clusters = 66, .side = SIDE, .step = 545},
	{.rows = 128, .columns = 128, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 4, .parts = 3, .clusters = 39, .side = SIDE, .step = 545},
	{.rows = 128, .columns = 128, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 4, .parts = 4, .clusters = 30, .side = SIDE, .step = 545},
	{.rows = 128, .columns = 128, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 4, .parts = 6, .clusters = 17, .side = SIDE, .step = 545},
	/* tasks are pieces of terms */
	{.rows = 128, .columns = 128, .groups = 2, .registers = 232, .rest = 40, .resident = 1, .slots = 6, .panel = 64, .pieces = 128, .side = SIDE, .step = 581},
	{.rows = 64, .columns = 128, .groups = 1, .registers = 232, .rest = 40, .resident = 1, .slots = 8, .panel = 64, .pieces = 128, .side = SIDE, .step = 375},
	{.rows = 64, .columns = 64, .groups = 1, .registers = 232, .rest = 40, .resident = 1, .slots = 8, .panel = 64, .pieces = 128, .side = SIDE, .step = 265},
	/* two blocks have columns in common */
	{.rows = 128, .columns = 192, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 4, .panel = 64, .turns = true, .joint = 2, .side = SIDE, .step = 795},
	{.rows = 192, .columns = 192, .groups = 3, .registers = 160, .rest = 24, .resident = 1, .slots = 3, .panel = 64, .joint = 2, .side = SIDE, .step = 1210},
	{.rows = 64, .columns = 128, .groups = 1, .registers = 240, .rest = 24, .resident = 1, .slots = 8, .panel = 64, .joint = 2, .side = SIDE, .step = 310},
	{.rows = 128, .columns = 128, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 5, .panel = 64, .turns = true, .joint = 2, .side = SIDE, .step = 520},
	/* where the output's rows do not begin at multiples of 16 bytes */
	{.rows = 128, .columns = 128, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 4, .panel = 32, .turns = true, .side = 1, .step = 541},
	{.rows = 64, .columns = 64, .groups = 1, .registers = 128, .rest = 24, .resident = 3, .slots = 4, .panel = 32, .side = 1, .step = 290},
	/* factors of f32, by their thirds: steps are of all products of those; in fast mode of two of them */
	{.rows = 128, .columns = 192, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 4, .panel = 64, .side = SIDE, .thirds = 3, .step = 4770},
	{.rows = 128, .columns = 128, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 4, .panel = 64, .side = SIDE, .thirds = 3, .step = 3410},
	{.rows = 64, .columns = 128, .groups = 1, .registers = 240, .rest = 24, .resident = 1, .slots = 8, .panel = 64, .side = SIDE, .thirds = 3, .step = 2120},
	{.rows = 128, .columns = 128, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 4, .panel = 32, .side = 1, .thirds = 3, .step = 3410},
	{.rows = 128, .columns = 128, .groups = 2, .registers = 232, .rest = 40, .resident = 1, .slots = 4, .panel = 64, .pieces = 128, .side = SIDE, .thirds = 3, .step = 3410},
	{.rows = 64, .columns = 128, .groups = 1, .registers = 232, .rest = 40, .resident = 1, .slots = 8, .panel = 64, .pieces = 128, .side = SIDE, .thirds = 3, .step = 2120},
	{.rows = 128, .columns = 192, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 4, .panel = 64, .side = SIDE, .thirds = 2, .step = 2430},
	{.rows = 128, .columns = 128, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 4, .panel = 64, .side = SIDE, .thirds = 2, .step = 1790},
	{.rows = 64, .columns = 128, .groups = 1, .registers = 240, .rest = 24, .resident = 1, .slots = 8, .panel = 64, .side = SIDE, .thirds = 2, .step = 1110},
	{.rows = 128, .columns = 128, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 4, .panel = 32, .side = 1, .thirds = 2, .step = 1790},
	{.rows = 128, .columns = 128, .groups = 2, .registers = 232, .rest = 40, .resident = 1, .slots = 4, .panel = 64, .pieces = 128, .side = SIDE, .thirds = 2, .step = 1790},
	{.rows = 64, .columns = 128, .groups = 1, .registers = 232, .rest = 40, .resident = 1, .slots = 8, .panel = 64, .pieces = 128, .side = SIDE, .thirds = 2, .step = 1110},
	/* several sums, with so many rows and columns each */
	{.rows = 128, .columns = 128, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 3, .panel = 64, .side = SIDE, .sums = 2, .step = 1024},
	{.rows = 192, .columns = 64, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 4, .panel = 32, .turns = true, .side = SIDE, .sums = 2, .step = 781},
	{.rows = 128, .columns = 64, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 4, .panel = 64, .turns = true, .side = SIDE, .sums = 2, .step = 554},
	{.rows = 64, .columns = 64, .groups = 1, .registers = 208, .rest = 24, .resident = 2, .slots = 3, .panel = 32, .side = SIDE, .sums = 2, .step = 330},
	{.rows = 32, .columns = 64, .groups = 1, .registers = 240, .rest = 24, .resident = 1, .slots = 8, .panel = 32, .side = SIDE, .sums = 2, .step = 300},
	{.rows = 128, .columns = 64, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 4, .panel = 32, .turns = true, .side = 1, .sums = 2, .step = 541},
	{.rows = 128, .columns = 64, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 4, .panel = 32, .side = SIDE, .sums = 3, .step = 768},
	{.rows = 64, .columns = 64, .groups = 1, .registers = 240, .rest = 24, .resident = 1, .slots = 5, .panel = 32, .side = SIDE, .sums = 3, .step = 400},
	{.rows = 32, .columns = 64, .groups = 1, .registers = 240, .rest = 24, .resident = 1, .slots = 6, .panel = 32, .side = SIDE, .sums = 3, .step = 380},
	{.rows = 64, .columns = 64, .groups = 1, .registers = 240, .rest = 24, .resident = 1, .slots = 5, .panel = 32, .side = 1, .sums = 3, .step = 400},
};

_Static_assert(sizeof tile / sizeof *tile <= ROLES_MOST_PLANS, "each may be a plan");

unsigned
roles_tiles(void)
{
	return sizeof tile / sizeof *tile;
}

RolesTile
roles_tile(unsigned n)
{
	return tile[n];
}

unsigned
roles_tile_of(const KernelPlan *p)
{
	unsigned n = 0;
	while (tile[n].rows != p->tile_rows || tile[n].columns != p->tile_columns || tile[n].side != p->group ||
	       tile[n].turns != p->turns || (tile[n].pieces > 0) != p->pieces || (tile[n].joint > 0) != p->joint ||
	       (tile[n].joint ? tile[n].joint : tile[n].parts) != p->cluster ||
	       tile[n].resident != p->resident || tile[n].sums != p->sums || tile[n].thirds != p->thirds)
		n++;
	return n;
}

unsigned
roles_task_rows(const RolesTile *t)
{
	return (unsigned)t->rows * (t->joint ? t->joint : 1u);
}

unsigned
roles_tile_products(const RolesTile *t)
{
	return (unsigned)t->columns * (t->sums ? t->sums : 1u) * (t->thirds ? roles_third_pairs(t->thirds) : 1u);
}

ExprId
roles_tile_count(Roles *r, const RolesTile *t)
{
	Graph *g = r->l.g;
	const Node *n = r->l.node;
	ExprId count = expr_binary(g, OP_MUL, launch_ceil_div(g, r->nrow, roles_task_rows(t)), launch_ceil_div(g, r->ncolumn, t->columns));
	for (unsigned a = 0; a < n->npar; a++)
		if (a != r->of.row_axis && a != r->of.column_axis)
			count = expr_binary(g, OP_MUL, count, g->tensor.at[n->out].extent[a]);
	return count;
}

/* Of a tile of so many rows or columns, those that an output with fewer does not have. */
static ExprId
beyond(Graph *g, unsigned size, ExprId end)
{
	return expr_binary(g, OP_SUB, expr_int(g, DT_I64, size), expr_binary(g, OP_MIN, end, expr_int(g, DT_I64, size)));
}

/* Over dims: 1 where the factor's rows, in memory without gaps, are taken as they are and do not all begin with sectors, else 0. */
static ExprId
is_off(Roles *r, const BoxFactor *e)
{
	Graph *g = r->l.g;
	ExprId one = expr_int(g, DT_I64, 1), least = expr_int(g, DT_I64, LEAST_BYTES / 2), inner = roles_extent(r, e->axis[e->naxis - 1]);
	ExprId odd = expr_binary(g, OP_IDIV, expr_binary(g, OP_IMOD, inner, expr_int(g, DT_I64, SECTOR_BYTES / 2)), least);
	ExprId copied = expr_binary(g, OP_MIN, one, expr_binary(g, OP_IMOD, inner, least));
	return expr_binary(g, OP_MUL, odd, expr_binary(g, OP_SUB, one, copied));
}

/* What a step takes longer than `step` where rows that are not copied have to be brought. */
static ExprId
bring_off(Roles *r, const RolesTile *t, ExprId step)
{
	Graph *g = r->l.g;
	ExprId all = expr_int(g, DT_I64, 0), any = all;
	for (unsigned p = 0; p < 2 + r->of.beside; p++) {
		unsigned own;
		const BoxFactor *e = roles_part(r, p, &own);
		int64_t rows = own == r->of.row_axis ? t->rows : t->columns / (t->joint ? t->joint : 1);
		ExprId off = is_off(r, e), more = expr_binary(g, OP_MUL, off, expr_int(g, DT_I64, rows * (BRING_OFF - BRING)));
		any = expr_binary(g, OP_MAX, any, off);
		all = expr_binary(g, OP_ADD, all, expr_binary(g, OP_ADD, more, expr_int(g, DT_I64, rows * BRING)));
	}
	all = expr_binary(g, OP_IDIV, expr_binary(g, OP_MUL, all, any), expr_int(g, DT_I64, 16));
	return expr_binary(g, OP_MAX, step, all);
}

ExprId
roles_step(Roles *r, const RolesTile *t, bool copied)
{
	Graph *g = r->l.g;
	ExprId all = expr_binary(g, OP_ADD, beyond(g, t->rows, r->nrow), beyond(g, t->columns, r->ncolumn));
	all = expr_binary(g, OP_MUL, all, expr_int(g, DT_I64, BEYOND));
	ExprId step = gpu_step(g, t->rows, roles_tile_products(t), t->step);
	return expr_binary(g, OP_ADD, all, copied || t->thirds ? step : bring_off(r, t, step));
}

static ExprId
waves_of(Roles *r, const RolesTile *t)
{
	return gpu_waves(r->l.g, roles_tile_count(r, t), t->parts ? t->clusters : t->joint ? GPU_ALL / t->joint : GPU_ALL);
}

static ExprId
steps_of_tile(Roles *r, const RolesTile *t)
{
	return launch_ceil_div(r->l.g, r->nterm, (int64_t)(t->parts ? t->parts : 1) * TIR_PART_TERMS);
}

ExprId
roles_steps(Roles *r, const RolesTile *t)
{
	RolesPieces x;
	if (!t->pieces)
		return expr_binary(r->l.g, OP_MUL, waves_of(r, t), steps_of_tile(r, t));
	roles_count_pieces(r, t, &x);
	return x.steps;
}

/* What memory takes for all factors: where all processors are at work on few tiles, that may bound them. */
static ExprId
bringing(Roles *r)
{
	Graph *g = r->l.g;
	ExprId all = expr_int(g, DT_I64, 0);
	for (unsigned p = 0; p < 2; p++) {
		unsigned own;
		const BoxFactor *e = roles_part(r, p, &own);
		ExprId count = expr_int(g, DT_I64, r->of.thirds ? 2 * r->of.thirds : 2);
		for (unsigned n = 0; n < e->naxis; n++)
			count = expr_binary(g, OP_MUL, count, roles_extent(r, e->axis[n]));
		all = expr_binary(g, OP_ADD, all, count);
	}
	return gpu_moving(g, all);
}

/* A task's piece, and what the kernel behind it takes, through which all pieces go. */
static ExprId
cycles_of_pieces(Roles *r, const RolesTile *t, ExprId step)
{
	Graph *g = r->l.g;
	RolesPieces x;
	roles_count_pieces(r, t, &x);
	ExprId elements = expr_binary(g, OP_MUL, expr_binary(g, OP_MUL, roles_rows_of_output(r), r->ncolumn), x.pieces);
	ExprId moved = gpu_moving(g, expr_binary(g, OP_MUL, elements, expr_int(g, DT_I64, 2 * sizeof(float))));
	ExprId brought = expr_binary(g, OP_ADD, bringing(r), step); /* and multiplied, the last of it */
	ExprId all = expr_binary(g, OP_ADD, expr_binary(g, OP_MAX, expr_binary(g, OP_MUL, x.steps, step), brought), moved);
	all = expr_binary(g, OP_ADD, all, expr_int(g, DT_I64, START + JOIN));
	return expr_select(g, expr_binary(g, OP_LE, expr_int(g, DT_I64, 2), x.pieces), all, expr_int(g, DT_I64, NEVER));
}

/* One of few rows would bring the other factor several times for an output of more. */
static ExprId
unless_many_rows(Roles *r, const RolesTile *t, ExprId cycles)
{
	Graph *g = r->l.g;
	if (t->rows >= TIR_MMA_ROWS)
		return cycles;
	return expr_select(g, expr_binary(g, OP_LE, r->nrow, expr_int(g, DT_I64, t->rows)), cycles, expr_int(g, DT_I64, NEVER));
}

/* Of a tile's elements, of which each lane has some. */
static unsigned
finish_cycles(Roles *r, const RolesTile *t)
{
	bool packed = roles_packs(r, t), wide = t->parts || t->panel >= WIDE_PANEL;
	unsigned columns = t->parts || packed ? t->columns : roles_across(t, false) * t->panel;
	unsigned lane = (unsigned)t->rows * columns / (t->turns ? 1u : t->groups) / LANES_A_CYCLE;
	if (packed)
		return lane * (!wide ? PACKED_LONG : t->turns || t->groups == 1 ? PACKED_ALONE : PACKED * t->groups);
	unsigned wait = t->side == 1 ? ALONE_WAIT : wide ? WAIT : LONG_WAIT;
	return lane * ((r->members ? members_cost(&r->l, r->members) : side_cost(&r->l)) + wait);
}

/* With `copied` of factors whose rows begin with sectors. */
static ExprId
cycles_of(Roles *r, const RolesTile *t, bool copied)
{
	Graph *g = r->l.g;
	ExprId step = roles_step(r, t, copied);
	unsigned finish = finish_cycles(r, t);
	if (t->pieces)
		return cycles_of_pieces(r, t, step);
	unsigned parts = t->parts ? t->parts : 1, at_once = t->turns ? t->groups : t->resident;
	finish = t->parts ? finish / parts + MEET : finish;
	ExprId waves = waves_of(r, t), each = expr_binary(g, OP_MUL, steps_of_tile(r, t), step);
	ExprId both = expr_binary(g, OP_IDIV, expr_binary(g, OP_ADD, each, expr_int(g, DT_I64, finish)), expr_int(g, DT_I64, at_once));
	ExprId all = expr_binary(g, OP_MUL, waves, expr_binary(g, OP_MAX, each, both));
	unsigned start = START + (t->joint ? MEET_FIRST : 0);
	return unless_many_rows(r, t, expr_binary(g, OP_ADD, all, expr_int(g, DT_I64, (at_once > 1 ? finish : 0) + start)));
}

/* What it takes to copy the factors whose rows do not all begin with sectors, or to cut them into thirds. */
static ExprId
copying(Roles *r)
{
	Graph *g = r->l.g;
	ExprId all = expr_int(g, DT_I64, 0);
	for (unsigned p = 0; p < 2 + r->of.beside; p++) {
		unsigned own;
		const BoxFactor *e = roles_part(r, p, &own);
		ExprId count = r->of.thirds ? expr_int(g, DT_I64, 1) : is_off(r, e);
		for (unsigned n = 0; n < e->naxis; n++)
			count = expr_binary(g, OP_MUL, count, roles_extent(r, e->axis[n]));
		all = expr_binary(g, OP_ADD, all, count);
	}
	ExprId bytes = expr_binary(g, OP_MUL, all, expr_int(g, DT_I64, r->of.thirds ? ROLES_THIRD_BYTES : 2 * 2)); /* of each, read and written */
	return expr_binary(g, OP_ADD, gpu_moving(g, bytes), gpu_launch(g));
}

ExprId
roles_cycles(Roles *r, const RolesTile *t)
{
	Graph *g = r->l.g;
	ExprId copied = expr_binary(g, OP_ADD, cycles_of(r, t, true), copying(r));
	return t->thirds ? copied : expr_binary(g, OP_MIN, cycles_of(r, t, false), copied);
}

ExprId
roles_tile_suits(Roles *r, unsigned n, unsigned only)
{
	Graph *g = r->l.g;
	ExprId one = expr_int(g, DT_I64, 1), rest = expr_binary(g, OP_IMOD, r->ncolumn, expr_int(g, DT_I64, tile[n].side));
	ExprId suits = expr_binary(g, OP_SUB, one, expr_binary(g, OP_MIN, one, rest)), own = only ? 0 : expr_binary(g, OP_ADD, roles_cycles(r, &tile[n]), one);
	/* pieces want memory wherever they suit: they are compared with those before too */
	for (unsigned k = tile[n].pieces ? 0 : n + 1; k < roles_tiles() && !only; k++) {
		if (k == n || tile[k].side != tile[n].side || tile[k].sums != tile[n].sums || tile[k].thirds != tile[n].thirds ||
		    !roles_tile_fits(r, &tile[k]))
			continue;
		ExprId other = expr_binary(g, OP_ADD, roles_cycles(r, &tile[k]), expr_int(g, DT_I64, k > n));
		suits = expr_binary(g, OP_MIN, suits, expr_binary(g, OP_IDIV, other, own));
	}
	return suits;
}

bool
roles_tile_fits(const Roles *r, const RolesTile *t)
{
	if (t->pieces && r->of.of_row) /* whoever joins pieces has no sums as they are expanded */
		return false;
	return t->rows >= TIR_MMA_ROWS || !r->of.beside || r->of.columns;
}

ExprId
roles_least_cycles(Roles *r, unsigned sums, unsigned side)
{
	ExprId least = 0;
	for (unsigned n = 0; n < roles_tiles(); n++) {
		if (tile[n].sums != sums || tile[n].thirds || tile[n].side != side || (sums && !roles_tile_fits(r, &tile[n])))
			continue;
		ExprId own = roles_cycles(r, &tile[n]);
		least = least ? expr_binary(r->l.g, OP_MIN, least, own) : own;
	}
	return least;
}

ExprId
roles_apart_cycles(Roles *r, unsigned side)
{
	Graph *g = r->l.g;
	const Members *m = r->members;
	const Node *entered = r->l.node;
	ExprId all = gpu_moving(g, members_saved(g, r->l.scratch, m));
	r->members = NULL;
	for (unsigned k = 0; k < m->n; k++) {
		r->l.node = tensor_node(g, m->node[k]);
		all = expr_binary(g, OP_ADD, all, m->sum[k] >= 0 ? roles_least_cycles(r, 0, side) : expr_int(g, DT_I64, START));
	}
	r->l.node = entered;
	r->members = m;
	return all;
}

ExprId
roles_together_suits(Roles *r)
{
	Graph *g = r->l.g;
	ExprId one = expr_int(g, DT_I64, 1), more = expr_binary(g, OP_ADD, roles_cycles(r, &r->tile), one);
	ExprId suits = expr_binary(g, OP_MIN, one, expr_binary(g, OP_IDIV, roles_apart_cycles(r, r->tile.side), more));
	if (r->tile.side > 1 || !members_side_possible(g, r->members, r->of.column_axis))
		return suits;
	/* where several can be, the tiles that finish them so have decided */
	return expr_binary(g, OP_MUL, suits, expr_binary(g, OP_MIN, one, expr_binary(g, OP_IMOD, r->ncolumn, expr_int(g, DT_I64, SIDE))));
}

/* --- rows that begin where copies want none: what a launch does about them, over dims --- */

ExprId
roles_pitch(Roles *r)
{
	Graph *g = r->l.g;
	if (r->tile.thirds) /* of which maps are of copies anyway */
		return expr_int(g, DT_I64, 0);
	ExprId lost = expr_binary(g, OP_SUB, cycles_of(r, &r->tile, false), cycles_of(r, &r->tile, true));
	return expr_select(g, expr_binary(g, OP_LT, copying(r), lost), expr_int(g, DT_I64, SECTOR_BYTES), expr_int(g, DT_I64, LEAST_BYTES));
}
