/* lists.c: the numbers of the rows that a loop of a warp gathers (rows.h). The loop goes through the rows of columns
 * side by side, and which rows these are is read from a tensor along the loop: all threads would read the same number,
 * wait for it, and then for the row. So the threads read the numbers of TURNS turns at once, each some of them, put them
 * into shared memory and find them there; other elements that turns read alike, such as a weight, go with them. That is
 * one wait for all of these rows, and registers for theirs alone. Where several warps have the columns they would wait for one
 * another, which takes longer than is gained.
 *
 * As in tile.c, only what can't fault is read before it is wanted, under the test of its own bounds. What lies beyond the
 * loop's end is not read, nor found. */
#include "passes/schedule/rows/build.h"
#include "passes/schedule/rows/plan.h"

#include "ir/bugs.h"

enum { TURNS = 64 };

typedef struct {
	RowBuild *b;
	unsigned phase, axis; /* the loop */
	bool found;           /* a row whose number is read along it */
} Find;

static bool
is_listed(const RowBuild *b, ExprId e)
{
	for (unsigned k = 0; k < b->nlist; k++)
		if (b->list[k].read == e)
			return true;
	return false;
}

/* Whether the read is the same for all lanes, and goes along the loop from element to element. */
static bool
goes_along(const RowBuild *b, unsigned axis, ExprId e)
{
	const Graph *g = b->l->g;
	const Expr *x = expr_get(g, e);
	if (x->op != OP_READ || x->narg == 0 || x->access || b->l->places->faulty[x->ref] || rows_member_of(b->r, x->ref) >= 0 ||
	    g->tensor.at[x->ref].kind == TENSOR_SCALAR || x->dtype == DT_C64 || x->dtype == DT_BOOL || dtype_info[x->dtype].bits < 8)
		return false;
	for (unsigned k = 0; k < x->narg; k++) {
		ExprId sub = expr_arg(g, e, k);
		uint32_t axes = expr_axes(g, b->l->scratch, sub);
		bool last = k + 1u == x->narg, along = expr_get(g, sub)->op == OP_AXIS && expr_get(g, sub)->ref == axis;
		if (last ? !along : !expr_is_index(g, b->l->scratch, sub) || (axes & (1u << axis | 1u << rows_lane_axis(b))))
			return false;
	}
	return true;
}

static void
note_list(void *user, ExprId e)
{
	Find *f = user;
	RowBuild *b = f->b;
	if (b->nlist < ROWS_MAX_LISTS && !is_listed(b, e) && goes_along(b, f->axis, e))
		b->list[b->nlist++] = (RowsList){.read = e, .phase = f->phase};
}

static void
note_number(void *user, ExprId e)
{
	Find *f = user;
	f->found |= goes_along(f->b, f->axis, e);
}

/* Of a read that may fail, whether its subscripts have such a read. */
static void
note_gather(void *user, ExprId e)
{
	Find *f = user;
	const Expr *x = expr_get(f->b->l->g, e);
	for (unsigned k = 0; x->op == OP_READ && x->access && k < x->narg; k++)
		expr_walk(f->b->l->g, f->b->l->scratch, expr_arg(f->b->l->g, e, k), note_number, f);
}

/* The last loop of a phase, where folds alone go by it. */
static void
find_lists(RowBuild *b, unsigned phase)
{
	const RowPhase *p = &b->r->phase[phase];
	if (!p->nloop || p->dir < 0)
		return;
	Find f = {.b = b, .phase = phase, .axis = p->loop[p->nloop - 1u]};
	for (unsigned k = 0; k < b->r->nmember; k++) {
		const RowMember *m = &b->r->member[k];
		if (m->phase == phase && !rows_is_folded(m))
			return;
		if (m->phase == phase)
			expr_walk(b->l->g, b->l->scratch, m->node.body, note_gather, &f);
	}
	for (unsigned k = 0; f.found && k < b->r->nmember; k++)
		if (b->r->member[k].phase == phase)
			expr_walk(b->l->g, b->l->scratch, b->r->member[k].node.body, note_list, &f);
}

void
rows_declare_lists(RowBuild *b)
{
	const KernelPlan *plan = &b->kernel->plan;
	TirKernel *k = b->l->tir;
	if (plan->threads != TIR_WARP || plan->columns || plan->cluster || !b->r->lanes_by_row || b->r->scans || b->r->ntile)
		return;
	for (unsigned phase = 0; phase < b->r->nphase; phase++)
		find_lists(b, phase);
	for (unsigned n = 0; n < b->nlist; n++) {
		unsigned buffer = tir_add_buffer(k, name_cstr(k->names, "turns"), (DType)expr_get(b->l->g, b->list[n].read)->dtype, true);
		ValId extent = rows_int(b, TURNS), one = rows_int(b, 1);
		k->buffer.at[buffer].shared = TURNS;
		b->list[n].view = tir_view(k, buffer, 1, &extent, &one);
	}
}

bool
rows_has_lists(const RowBuild *b, unsigned phase)
{
	for (unsigned n = 0; n < b->nlist; n++)
		if (b->list[n].phase == phase)
			return true;
	return false;
}

/* Lists what the turns from..to read. */
static void
fill(RowBuild *b, unsigned phase, unsigned axis, ValId from, ValId to)
{
	Point *l = b->l;
	TirKernel *k = l->tir;
	unsigned lanes = l->lanes;
	uint32_t axes = l->lane_axes;
	ValId mask = l->mask, zero = rows_int(b, 0);
	PointHidden hidden = point_hide(l);
	point_set_lanes(l, TURNS, axis);
	ValId iota = tir_emit(k, OP_IOTA, tir_vector(DT_I64, TURNS), 0, NULL, 0);
	l->axis[axis] = from;
	l->mask = tir_binary(k, OP_LT, iota, tir_binary(k, OP_SUB, to, from));
	for (unsigned n = 0; n < b->nlist; n++)
		if (b->list[n].phase == phase)
			tir_store(k, b->list[n].view, point_widen(l, point_value(l, b->list[n].read, false).re), &zero, l->mask, TIR_LANES_ALONG(0));
	l->mask = mask;
	point_release(l, 0);
	point_set_lane_axes(l, lanes, axes);
	point_show(l, &hidden);
}

void
rows_run_lists(RowBuild *b, unsigned phase, ValId position, ValId lo, ValId hi, RowsPartFn *part)
{
	TirKernel *k = b->l->tir;
	const RowPhase *p = &b->r->phase[phase];
	unsigned axis = p->loop[p->nloop - 1u];
	ValId carried[ROWS_MAX_CARRIED], step = rows_int(b, TURNS);
	unsigned ncarried = rows_pack_phase(b, phase, carried);
	uint32_t mark = point_mark(b->l);
	ValId from = tir_for(k, lo, hi, step, carried, ncarried), to = tir_binary(k, OP_MIN, tir_binary(k, OP_ADD, from, step), hi);
	rows_unpack_phase(b, phase, carried);
	fill(b, phase, axis, from, to);
	for (unsigned n = 0; n < b->nlist; n++)
		if (b->list[n].phase == phase)
			point_list(b->l, (PointListed){b->list[n].read, b->list[n].view, BUG(lists_begin_alike) ? lo : from, axis});
	part(b, phase, p->nloop - 1u, position, (ValId[]){from, to, lo, hi});
	for (unsigned n = 0; n < b->nlist; n++)
		if (b->list[n].phase == phase)
			point_list(b->l, (PointListed){.e = b->list[n].read});
	rows_pack_phase(b, phase, carried);
	tir_end_for(k, carried, ncarried);
	rows_unpack_phase(b, phase, carried);
	point_release(b->l, mark);
}
