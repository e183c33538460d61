/* threads_tile.c: which tile a block of threads has, by the sizes of a launch: each tile is a kernel of its own, which runs
 * where it is predicted to take the least time.
 *
 * A processor has some blocks at a time. With all that fit, 64 terms of a tile take `step` cycles of 1.4 GHz; of a block alone no
 * less than `alone`, since its few warps wait for memory. `finish` is what a block takes besides, before its first panel is there
 * and for its sums. All were measured on an H200, other GPUs have other multipliers.
 *
 * Terms of pairs (pair_terms.c) have values of their own on the way: a thread has half as many of a tile. What they take is another
 * matter for each, so that they have one tile of each kind.
 *
 * Large tiles read each factor less often. Those with slices are for outputs that have few tiles: each warp of a block has all of the
 * tile and some of the terms. Where there are fewer of those than processors, the blocks of a cluster divide the terms as well.
 * Sums of the strict mode keep the order of their terms, and have neither: there large tiles are taken where each processor
 * has one. So are those of factors that are not both read in groups, which have more addresses, and fewer registers for sums. */
#include "ir/gpu_facts.h"
#include "passes/cost/cost.h"
#include "passes/schedule/contract/gpu_time.h"
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/contract/threads.h"

enum { LEAST_TERMS = 16, LEAST_SLICED = 32, SMALL = 64 };

/* In the order in which they are asked for. */
static const ThreadsTile tile[CONTRACT_THREADS_PLANS] = {
	{.rows = 128, .columns = 128, .threads = 128, .slices = 1, .products = true, .groups = true, .large = true, .fit = 2, .step = 7750, .alone = 9850, .finish = 2100},
	{.rows = 128, .columns = 128, .threads = 256, .slices = 1, .pairs = true, .groups = true, .large = true, .resident = 2, .fit = 2},
	{.rows = 32, .columns = 64, .threads = 128, .slices = 4, .products = true, .groups = true, .large = true, .computed = 2, .fit = 3, .step = 1025, .alone = 1400, .finish = 1600},
	{.rows = 32, .columns = 64, .threads = 256, .slices = 8, .products = true, .groups = true, .large = true, .resident = 1, .computed = 1, .fit = 1, .step = 1200, .alone = 1200, .finish = 2700},
	{.rows = 32, .columns = 64, .threads = 256, .slices = 8, .cluster = 2, .products = true, .groups = true, .large = true, .resident = 1, .computed = 1, .fit = 1, .clusters = 66, .step = 1200, .alone = 1200, .finish = 5000},
	{.rows = 32, .columns = 64, .threads = 256, .slices = 8, .cluster = 8, .products = true, .groups = true, .large = true, .resident = 1, .computed = 1, .fit = 1, .clusters = 14, .step = 1200, .alone = 1200, .finish = 6200},
	{.rows = 128, .columns = 64, .threads = 128, .slices = 1, .large = true, .functions = 2, .absent = 2},
	{.rows = 64, .columns = 64, .threads = 128, .slices = 1, .bytes = 4, .absent = 2},
};

ThreadsTile
threads_tile(unsigned n)
{
	return tile[n];
}

unsigned
threads_tile_of(const KernelPlan *p)
{
	unsigned n = 0;
	while (tile[n].rows != p->tile_rows || tile[n].columns != p->tile_columns || tile[n].threads != p->threads ||
	       tile[n].cluster != p->cluster || tile[n].groups != (p->group > 1))
		n++;
	return n;
}

bool
threads_tile_exists(const Graph *g, const PassOptions *o, unsigned n, bool both, bool pair)
{
	const ThreadsTile *t = &tile[n];
	if ((o->threads_tile && o->threads_tile != n + 1) || (pair ? t->products : t->pairs))
		return false;
	return t->cluster <= (o->threads_tile ? TIR_MAX_CLUSTER : o->cluster) && (t->slices == 1 || (both && g->fp != FP_STRICT));
}

ExprId
threads_tile_count(Threads *x, const ThreadsTile *t)
{
	Graph *g = x->l.g;
	ExprId n = expr_binary(g, OP_MUL, launch_ceil_div(g, x->rows.count, t->rows), launch_ceil_div(g, x->columns.count, t->columns));
	return x->batch.naxis ? expr_binary(g, OP_MUL, n, x->batch.count) : n;
}

int64_t
threads_least_terms(const PassOptions *o, const ThreadsTile *t)
{
	int64_t least = o->least_tile ? o->least_tile : LEAST_TERMS, panels = (t->cluster ? t->cluster : 1) * (int64_t)t->slices * THREADS_TERMS;
	return least > panels ? least : panels;
}

static ExprId
num(Graph *g, int64_t v)
{
	return expr_int(g, DT_I64, v);
}

/* Over dims: what a processor's blocks take for all terms, or those that begin last and are fewer. */
static ExprId
cycles(Threads *x, const ThreadsTile *t)
{
	Graph *g = x->l.g;
	ExprId each = gpu_waves(g, threads_tile_count(x, t), t->cluster ? t->clusters : GPU_ALL);
	ExprId full = expr_binary(g, OP_IDIV, each, num(g, t->fit)), left = expr_binary(g, OP_IMOD, each, num(g, t->fit));
	ExprId some = expr_binary(g, OP_MUL, expr_binary(g, OP_MIN, left, num(g, 1)), num(g, t->alone));
	some = expr_binary(g, OP_MAX, some, expr_binary(g, OP_MUL, left, num(g, t->step)));
	int64_t all = t->step * t->fit > t->alone ? t->step * t->fit : t->alone;
	ExprId steps = gpu_arithmetic(g, expr_binary(g, OP_ADD, expr_binary(g, OP_MUL, full, num(g, all)), some));
	steps = expr_binary(g, OP_IDIV, expr_binary(g, OP_MUL, steps, x->terms.count), num(g, GPU_TERMS * (t->cluster ? t->cluster : 1)));
	return expr_binary(g, OP_ADD, steps, expr_binary(g, OP_MUL, each, num(g, t->finish)));
}

/* Whether the tile takes no longer than this one does, or that has not enough terms; 1 or 0. */
static ExprId
is_no_worse(Threads *x, const PassOptions *o, const ThreadsTile *t, const ThreadsTile *other)
{
	Graph *g = x->l.g;
	ExprId others = expr_binary(g, OP_SUB, num(g, 1), raster_reaches(g, x->terms.count, threads_least_terms(o, other)));
	return expr_select(g, expr_binary(g, OP_LE, cycles(x, t), cycles(x, other)), num(g, 1), others);
}

ExprId
threads_tile_suits(Threads *x, const PassOptions *o, unsigned n)
{
	Graph *g = x->l.g;
	const ThreadsTile *t = &tile[n];
	ExprId suits = num(g, 1), many = raster_reaches(g, threads_tile_count(x, t), cost_machine(true, 0)->threads);
	bool both = x->panel[0].whole && x->panel[1].whole, sliced = both && g->fp != FP_STRICT && !x->term;
	if (o->threads_tile || o->least_tile)
		return suits;
	if (t->slices == 1 && t->rows > SMALL) /* not but for what is to have slices, which want more terms */
		suits = sliced ? expr_binary(g, OP_MAX, many, raster_reaches(g, x->terms.count, LEAST_SLICED)) : many;
	if (!sliced)
		return suits;
	for (unsigned k = n + 1; k < CONTRACT_THREADS_PLANS; k++)
		if (tile[k].groups && threads_tile_exists(g, o, k, both, false))
			suits = expr_binary(g, OP_MUL, suits, is_no_worse(x, o, t, &tile[k]));
	return suits;
}

ExprId
threads_least_cycles(Threads *x, const PassOptions *o)
{
	Graph *g = x->l.g;
	ExprId least = num(g, INT64_C(1) << 62);
	for (unsigned n = 0; n < CONTRACT_THREADS_PLANS; n++) {
		if (!tile[n].step || !threads_tile_exists(g, o, n, true, false))
			continue;
		ExprId enough = raster_reaches(g, x->terms.count, threads_least_terms(o, &tile[n])), all = expr_binary(g, OP_MIN, least, cycles(x, &tile[n]));
		least = expr_select(g, expr_binary(g, OP_EQ, enough, num(g, 1)), all, least);
	}
	return least;
}
