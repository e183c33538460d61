/* threads_panel.c: brings a contraction's factors into shared memory, a panel at a time.
 *
 * A factor is any expression. What it reads of memory, at indices that are known without memory, is read while the panel
 * before is multiplied; the rest is computed when that is done, from stand-ins for what was read. Groups of elements side by
 * side in memory are read at once where a launch has found them aligned.
 *
 * What terms that may be absent have in a factor is read as far as there is such an element, one by one.
 *
 * Rows and columns beyond the last one are that one again; nothing of them is stored. Terms beyond the last one are 0, one
 * factor +0 and the other -0: their product is -0, which leaves every sum as it is, to the bit. */
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/contract/threads.h"

#include "ir/bugs.h"

enum {
	GROUP_BYTES = 16,
	TERMS_APART = 2 /* side by side, read one by one: fewer rows have fewer addresses */
};

/* --- what is read early --- */

/* Whether elements side by side along the panel's axis are side by side in memory. */
static bool
is_in_a_row(const Graph *g, Arena *scratch, const Panel *p, ExprId read)
{
	const Expr *x = expr_get(g, read);
	if (!x->narg || x->dtype == DT_BOOL || dtype_info[x->dtype].bits < 8)
		return false;
	const Expr *last = expr_get(g, expr_arg(g, read, x->narg - 1u));
	for (unsigned k = 0; k + 1u < x->narg; k++)
		if (expr_axes(g, scratch, expr_arg(g, read, k)) >> p->axis & 1)
			return false;
	return last->op == OP_AXIS && last->ref == p->axis;
}

static EarlyHow
how_read(void *user, const Graph *g, Arena *scratch, ExprId read)
{
	Panel *p = user;
	if (!is_in_a_row(g, scratch, p, read))
		return expr_axes(g, scratch, read) & p->axes ? EARLY_EACH : EARLY_ONCE;
	unsigned fit = GROUP_BYTES / (dtype_info[expr_get(g, read)->dtype].bits / 8u);
	unsigned most = p->group ? p->group : QUAD;
	p->group = fit < most ? fit : most;
	return EARLY_GROUP;
}

/* With groups along the terms, or along the own axes. */
static Panel
find_along(const Graph *g, Arena *scratch, ExprId factor, bool along_terms, uint32_t axes)
{
	Panel p = {.factor = factor, .along_terms = along_terms, .axes = axes, .axis = 31u - (unsigned)__builtin_clz(axes)};
	early_reads_find(g, scratch, factor, how_read, &p, &p.reads);
	return p;
}

/* Groups that are other ones for each row or column and for each term. */
static unsigned
count_groups(const Graph *g, Arena *scratch, const Panel *p, unsigned term, uint32_t own)
{
	unsigned n = 0;
	for (unsigned r = 0; r < p->reads.n; r++) {
		uint32_t axes = expr_axes(g, scratch, p->reads.at[r].read);
		n += p->reads.at[r].how == EARLY_GROUP && (axes & own) && (axes >> term & 1);
	}
	return n;
}

void
panel_find(const Graph *g, Arena *scratch, const Node *n, const Factors *f, const Absent *a, bool columns, Panel *p)
{
	ExprId factor = columns ? f->column : f->row;
	uint32_t own = columns ? f->column_axes : f->row_axes;
	unsigned term = n->npar + n->nred - 1u;
	uint32_t all = ((UINT32_C(1) << n->nred) - 1) << n->npar;
	Panel along = find_along(g, scratch, factor, true, all), across = find_along(g, scratch, factor, false, own);
	unsigned terms = count_groups(g, scratch, &along, term, own), owns = count_groups(g, scratch, &across, term, own);
	bool by_terms = terms != owns ? terms > owns : columns ? f->columns_along_terms : f->rows_along_terms;
	const Expr *lo = expr_get(g, n->axis[term].lo);
	*p = by_terms ? along : across;
	p->reads.stand_in = columns ? EARLY_READS : 0;
	p->absent = absent_is(a, columns);
	if (!p->group || p->absent || (p->along_terms && (lo->op != OP_CONST || lo->imm.i != 0)))
		p->group = 1;
}

void
panel_declare(Threads *x, Panel *p, unsigned group)
{
	Point *l = &x->l;
	unsigned threads = threads_of_slice(x->plan);
	p->group = p->group < group ? p->group : group;
	p->whole = p->group > 1;
	if (!p->whole && p->along_terms)
		p->group = TERMS_APART;
	p->ngroup = p->own * THREADS_TERMS / p->group / threads;
	p->step = threads / ((p->along_terms ? THREADS_TERMS : p->own) / p->group);
	if (p->ngroup == 0 || p->ngroup > THREADS_GROUPS || p->step == 0)
		bug(l->g->arena, "a panel of %u by %u for %u threads", p->own, (unsigned)THREADS_TERMS, threads);
	p->value = early_reads_replace(l->g, l->scratch, p->factor, &p->reads);
	p->value = absent_value(l->g, &x->absent, p == &x->panel[1], p->value);
	point_declare(l, p->value);
}

/* --- groups --- */

void
panel_enter(Threads *x, Panel *p, ValId first)
{
	Point *l = &x->l;
	unsigned per = (p->along_terms ? THREADS_TERMS : p->own) / p->group;
	ValId inner, outer = raster_divide(l->tir, x->inside, threads_int(x, per), &inner);
	inner = threads_op(x, OP_MUL, inner, threads_int(x, p->group));
	p->own_at = p->along_terms ? outer : inner;
	p->term_at = p->along_terms ? inner : outer;
	if (threads_slices(x->plan) > 1)
		p->term_at = threads_op(x, OP_ADD, p->term_at, x->term_at);
	ValId last = threads_op(x, OP_SUB, p->indices->all, threads_int(x, p->along_terms ? 1 : p->group));
	ValId own = threads_op(x, OP_ADD, first, p->own_at);
	for (unsigned n = 0; n < (p->along_terms ? p->ngroup : 1); n++) {
		ValId i = threads_op(x, OP_ADD, own, threads_int(x, n * p->step));
		indices_at(&x->l, p->indices, threads_op(x, OP_MIN, i, last));
		for (unsigned k = 0; k < p->indices->naxis; k++)
			p->at[n][k] = l->axis[p->indices->axis[k]];
	}
}

/* Makes element j of group n of the panel from `term` on the point, or that of another term if there may be no such one:
 * whether there is, else 0. Terms have 32 bits. */
static ValId
enter_element(Threads *x, const Panel *p, unsigned n, unsigned j, ValId term, bool clamped)
{
	Point *l = &x->l;
	TirKernel *k = l->tir;
	ValId t = threads_op(x, OP_ADD, tir_cast(k, DT_U32, term), tir_cast(k, DT_U32, p->term_at)), there = 0;
	unsigned more = !p->along_terms ? n * p->step : p->whole ? 0 : j;
	if (clamped) {
		t = threads_op(x, OP_ADD, t, tir_int(k, DT_U32, more));
		bool part = x->plan->cluster && !BUG(part_takes_others);
		ValId from = part ? threads_op(x, OP_SUB, t, tir_cast(k, DT_U32, x->begin)) : t;
		there = threads_op(x, OP_LT, from, tir_cast(k, DT_U32, part ? x->count : x->terms.all));
		t = tir_cast(k, DT_I64, tir_select(k, there, t, tir_int(k, DT_U32, 0)));
	} else /* so that terms' addresses are seen to be a stride apart */
		t = threads_op(x, OP_ADD, tir_cast(k, DT_I64, t), threads_int(x, more));
	indices_at(&x->l, &x->terms, t);
	for (unsigned i = 0; i < p->indices->naxis; i++)
		l->axis[p->indices->axis[i]] = p->at[p->along_terms ? n : 0][i];
	if (j && p->whole)
		l->axis[p->axis] = threads_op(x, OP_ADD, l->axis[p->axis], threads_int(x, j));
	return there;
}

static unsigned
values_of(const Panel *p, const EarlyRead *r)
{
	return r->how == EARLY_ONCE ? 1 : p->group;
}

unsigned
panel_reads(const Panel *p)
{
	unsigned n = 0;
	for (unsigned r = 0; r < p->reads.n; r++)
		n += p->ngroup * values_of(p, &p->reads.at[r]);
	return n;
}

/* What is read for group n. */
static void
read_group(Threads *x, const Panel *p, const EarlyRead *r, unsigned n, ValId term, bool clamped, ValId *raw)
{
	Point *l = &x->l;
	enter_element(x, p, n, 0, term, clamped);
	if (r->how != EARLY_GROUP || !p->whole || p->group == 1) {
		for (unsigned j = 0; j < values_of(p, r); j++) {
			if (j)
				enter_element(x, p, n, j, term, clamped);
			raw[j] = early_value(l, r->read, !p->absent);
		}
		return;
	}
	early_group(l, r->read, p->group, p->axis, raw);
}

void
panel_load(Threads *x, Panel *p, ValId term, bool clamped, ValId *raw)
{
	for (unsigned n = 0; n < p->ngroup; n++)
		for (unsigned r = 0; r < p->reads.n; r++) {
			read_group(x, p, &p->reads.at[r], n, term, clamped, raw);
			raw += values_of(p, &p->reads.at[r]);
		}
}

/* --- shared memory --- */

static void
store_group(Threads *x, const Panel *p, unsigned n, ValId slot, const ValId *v)
{
	TirKernel *k = x->l.tir;
	ValId step = threads_int(x, n * p->step), own = threads_op(x, OP_ADD, p->own_at, threads_int(x, p->first));
	ValId at[3] = {slot, own, p->term_at};
	at[p->along_terms ? 1 : 2] = threads_op(x, OP_ADD, at[p->along_terms ? 1 : 2], step);
	if (!p->along_terms && p->group > 1) {
		ValId all = tir_emit(k, OP_JOIN, tir_vector(x->fold.type, p->group), 0, v, p->group);
		tir_store(k, x->panels, all, at, 0, TIR_LANES_ALONG(1));
		return;
	}
	ValId term = at[2];
	for (unsigned j = 0; j < p->group; j++) {
		at[2] = threads_op(x, OP_ADD, term, threads_int(x, j));
		tir_store(k, x->panels, v[j], at, 0, 0);
	}
}

void
panel_stage(Threads *x, Panel *p, ValId slot, ValId term, bool clamped, const ValId *raw)
{
	Point *l = &x->l;
	for (unsigned n = 0; n < p->ngroup; n++) {
		ValId v[QUAD];
		for (unsigned j = 0; j < p->group; j++) {
			const ValId *at = raw;
			ValId there = enter_element(x, p, n, j, term, clamped);
			for (unsigned r = 0; r < p->reads.n; at += values_of(p, &p->reads.at[r]), r++)
				point_place(l, early_stand_in(l->g, &p->reads, r), at[p->reads.at[r].how == EARLY_ONCE ? 0 : j]);
			v[j] = early_value(l, p->value, true);
			v[j] = there && !BUG(panel_tail_taken) ? tir_select(l->tir, there, v[j], p->fill) : v[j];
		}
		for (unsigned r = 0; r < p->reads.n; r++)
			raw += values_of(p, &p->reads.at[r]);
		store_group(x, p, n, slot, v);
	}
}
