/* in_place.c: whether a member of a kernel by rows may write over an inout's old value (rows.h).
 *
 * A row's phases run in order, an iteration's members in the order of the region, and no task sees another's
 * rows. So the old value is safe with a reader that comes before the writer: in an earlier phase when it
 * reads of the row at work, in the same phase when it reads at the point at work. Scans are left out. */
#include "passes/schedule/schedule.h"

#include "ir/bugs.h"
#include "passes/expr_map.h"
#include "passes/schedule/rows/rows.h"

typedef struct {
	const Graph *g;
	const RowMember *writer;
	unsigned nrow;
	bool reads, off_row, off_point;
} OldReads;

static void
note_read(void *user, ExprId e)
{
	OldReads *o = user;
	const Expr *p = expr_get(o->g, e);
	o->reads = true;
	for (unsigned a = 0; a < p->narg; a++) {
		const Expr *sub = expr_get(o->g, expr_arg(o->g, e, a));
		bool own = sub->op == OP_AXIS && sub->ref == o->writer->axis[a];
		o->off_point |= !own;
		o->off_row |= !own && o->writer->axis[a] < o->nrow;
	}
}

/* Whether reader has the old value at every place before writer is through with it. */
static bool
reads_before(const Graph *g, Arena *scratch, const Rows *r, unsigned writer, unsigned reader, TensorId old)
{
	const RowMember *w = &r->member[writer], *m = &r->member[reader];
	OldReads o = {.g = g, .writer = w, .nrow = r->nrow};
	node_each_read(g, scratch, &m->node, old, note_read, &o);
	if (!o.reads)
		return true;
	if (m->scans || w->scans)
		return false;
	if (m->phase != w->phase)
		return m->phase < w->phase && !o.off_row;
	/* what folds is finished when the loops have run, and what is written in them has gone */
	bool later = rows_is_folded(m) && !rows_is_folded(w) && w->is_row;
	return (reader <= writer || BUG(inout_read_late)) && !o.off_point && !later;
}

bool
rows_write_in_place(Graph *g, Arena *scratch, const RowsFacts *facts, const TensorId *node, unsigned n,
                    const Result *result)
{
	Rows *r = ARENA_NEW(scratch, Rows);
	RemarkId why = REMARK_NONE;
	unsigned writer = 0;
	if (!rows_plan(g, scratch, facts, node, n, TMPL_NONE, r, &why) || r->across)
		return false;
	while (writer < n && node[writer] != result->tensor)
		writer++;
	for (unsigned m = 0; m < n; m++)
		if (!reads_before(g, scratch, r, writer, m, result->inout))
			return false;
	return writer < n;
}
