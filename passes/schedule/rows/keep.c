/* keep.c: what a MAP kernel of blocks reads along its lanes and finds again in the next row, such as a bias, or
 * a maximum of columns: a task takes several rows, and what they share is loaded once, before them. Else each row
 * would get it from the L2 cache again.
 *
 * A task has as many rows as leave tasks enough for all of a GPU, at most KEPT_ROWS. Threads that go through rows one after
 * the other wait for each of them; where tasks are short, others begin meanwhile. So there are more tasks where a row
 * reads as much beside what is kept, which then comes from the L2 cache more often. As in tile.c, only what can't fault is
 * read before it is wanted, under the test of its own bounds. */
#include "passes/schedule/rows/build.h"
#include "passes/schedule/rows/plan.h"

#include "passes/cost/cost.h"
#include "passes/expr_map.h"
#include "ir/bugs.h"

enum {
	KEPT_ROWS = 16,
	KEPT_TASKS = 32, /* for each multiprocessor: four blocks after one another at each of its places */
	LESS_KEPT_TASKS = 64 /* where no more is kept than read beside it */
};

typedef struct {
	RowsPlan *p;
	unsigned axis;  /* of the rows, along which it is the same */
	unsigned other; /* bits of an element of other reads along the lanes */
} Find;

static void
find_read(void *user, ExprId e)
{
	Find *f = user;
	Rows *r = f->p->r;
	const Expr *read = expr_get(f->p->g, e);
	if (read->op != OP_READ || read->narg == 0)
		return;
	uint32_t in = expr_axes(f->p->g, f->p->scratch, e), lane = 1u << (r->nrow - 1u);
	if (!(in & lane) || (in >> f->axis & 1)) {
		f->other += in & lane ? dtype_info[read->dtype].bits : 0;
		if (!BUG(kept_though_rows_differ) || !(in & lane))
			return;
	}
	for (unsigned k = 0; k < r->nkept; k++)
		if (r->kept[k] == e)
			return;
	if (r->nkept < ROWS_MAX_KEPT && rows_may_read_early(f->p, e))
		r->kept[r->nkept++] = e;
}

/* Of the rows' axes the last that shares something, while other things differ along it. */
void
rows_find_kept(RowsPlan *p)
{
	Rows *r = p->r;
	if (!p->facts->blocks || r->tmpl != TMPL_MAP || r->block || r->nrow < 2)
		return;
	for (unsigned k = r->nrow - 1u; k-- > 0 && !r->nkept;) {
		Find f = {.p = p, .axis = k};
		for (unsigned m = 0; m < r->nmember; m++)
			node_walk(p->g, p->scratch, &r->member[m].node, find_read, &f);
		unsigned kept = 0;
		for (unsigned n = 0; n < r->nkept; n++)
			kept += dtype_info[expr_get(p->g, r->kept[n])->dtype].bits;
		if (r->nkept && f.other)
			r->block = (uint8_t)(k + 1);
		else
			r->nkept = 0;
		r->less_kept = kept <= f.other;
	}
}

ExprId
rows_kept_rows(Graph *g, const Rows *r, ExprId strips)
{
	ExprId tasks = strips, one = expr_int(g, DT_I64, 1);
	for (unsigned k = 0; k + 1u < r->nrow; k++)
		tasks = expr_binary(g, OP_MUL, tasks, r->extent[k]);
	int64_t most = (r->less_kept ? LESS_KEPT_TASKS : KEPT_TASKS) * (int64_t)cost_machine(true, 0)->threads;
	ExprId rows = expr_binary(g, OP_IDIV, tasks, expr_int(g, DT_I64, most));
	return expr_binary(g, OP_MAX, one, expr_binary(g, OP_MIN, rows, expr_int(g, DT_I64, KEPT_ROWS)));
}

void
rows_load_kept(RowBuild *b)
{
	Point *l = b->l;
	l->axis[rows_lane_axis(b)] = b->base;
	l->axis[b->r->block - 1u] = b->block_lo;
	for (unsigned k = 0; k < b->r->nkept; k++)
		point_place(l, rows_stand_in(l->g, b->r, ROWS_MAX_TILES + k), point_value(l, b->r->kept[k], false).re);
}
