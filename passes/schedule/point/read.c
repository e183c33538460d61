/* read.c: reads and writes of tensor elements, with their bounds tests and fault words. */
#include "passes/schedule/point/read.h"
#include "ir/bugs.h"

#include "passes/schedule/point/vary.h"

enum { FETCH_BYTES = 64 }; /* a line of memory */

int
point_lane_subscript(Point *l, ExprId e)
{
	int along = -1;
	const Expr *p = expr_get(l->g, e);
	if (l->g->tensor.at[p->ref].kind == TENSOR_SCALAR)
		return -1;
	for (unsigned k = 0; k < p->narg; k++) {
		uint8_t v = l->varies.at[number_of(l, expr_arg(l->g, e, k))];
		if (v == VARY_ANY || (v == VARY_UNIT && along >= 0))
			return -1;
		if (v == VARY_UNIT)
			along = (int)k;
	}
	return along;
}

/* Whether subscript a of the read is an axis that runs inside the tensor's axis a anyway. */
static bool
runs_inside(const Point *l, const Tensor *t, unsigned a, ExprId sub)
{
	const Expr *p = expr_get(l->g, sub);
	return p->op == OP_AXIS && l->run[p->ref] == t->extent[a];
}

/* 0 <= i < extent, in one comparison. */
static ValId
inside(Point *l, ValId i, ValId extent)
{
	return tir_binary(l->tir, OP_LT, tir_cast(l->tir, DT_U64, i), tir_cast(l->tir, DT_U64, extent));
}

static ValId
both(Point *l, ValId a, ValId b)
{
	if (!a || !b)
		return a ? a : b;
	return tir_binary(l->tir, OP_AND, a, b);
}

typedef struct {
	ValId index[TG_MAX_RANK]; /* as LOAD takes them */
	ValId ok;                 /* all subscripts inside; 0: known */
	ValId mask;
	int64_t flags;
	unsigned lanes;
	unsigned rank;
} ReadAt;

static ValId
lane_values(Point *l, ValId base)
{
	return tir_binary(l->tir, OP_ADD, base, point_lanes(l, DT_I64));
}

static ReadAt
read_at(Point *l, ExprId e, const PointVal *sub, PointAt at)
{
	const Expr *p = expr_get(l->g, e);
	const Tensor *t = &l->g->tensor.at[p->ref];
	const TensorArg *arg = point_tensor(l, p->ref);
	bool varies = at == AT_VECTOR;
	int along = varies ? point_lane_subscript(l, e) : -1;
	bool test = p->access || l->strict.at[number_of(l, e)] != l->root;
	ReadAt r = {.rank = p->narg, .lanes = varies ? l->lanes : 0};
	for (unsigned a = 0; a < p->narg; a++) {
		r.index[a] = sub[a].re;
		if (!test || runs_inside(l, t, a, expr_arg(l->g, e, a)))
			continue;
		ValId i = along == (int)a ? lane_values(l, sub[a].re) : sub[a].re;
		r.ok = both(l, r.ok, inside(l, i, arg->extent[a]));
	}
	r.mask = varies ? both(l, l->mask, r.ok) : r.ok;
	r.flags = along >= 0 ? TIR_LANES_ALONG(along) : 0;
	return r;
}

PointVal
point_load(Point *l, ValId view, DType dtype, const ValId *p, unsigned rank, ValId mask, int64_t flags,
           unsigned lanes)
{
	ValId index[POINT_MAX_RANK];
	if (dtype != DT_C64)
		return (PointVal){.re = tir_load(l->tir, view, p, mask, flags, lanes)};
	for (unsigned a = 0; a < rank; a++)
		index[a] = p[a];
	PointVal v = {0};
	index[rank] = tir_int(l->tir, DT_I64, 0);
	v.re = tir_load(l->tir, view, index, mask, flags, lanes);
	index[rank] = tir_int(l->tir, DT_I64, 1);
	v.im = tir_load(l->tir, view, index, mask, flags, lanes);
	return v;
}

void
point_put(Point *l, ValId view, DType dtype, PointVal v, const ValId *p, unsigned rank, ValId mask,
          int64_t flags)
{
	ValId index[POINT_MAX_RANK];
	for (unsigned a = 0; a < rank; a++)
		index[a] = p[a];
	index[rank] = dtype == DT_C64 ? tir_int(l->tir, DT_I64, 0) : 0;
	tir_store(l->tir, view, v.re, index, mask, flags);
	if (dtype == DT_C64) {
		index[rank] = tir_int(l->tir, DT_I64, 1);
		tir_store(l->tir, view, v.im, index, mask, flags);
	}
}

/* Splits what a fault plane says. Without cut ranges in the graph a word is a failed access. */
static PointVal
plane_words(Point *l, ValId w)
{
	if (!l->places->cuts)
		return (PointVal){.fail = w};
	return (PointVal){.fail = tir_binary(l->tir, OP_BAND, w, tir_int(l->tir, DT_U32, 0xffff)),
	                .cut = tir_binary(l->tir, OP_SHR, w, tir_int(l->tir, DT_U32, 16))};
}

/* Where the vector of the copy at work begins on a panel's last axis. */
static ValId
panel_lane(Point *l)
{
	return tir_int(l->tir, DT_I64, BUG(copies_share_panel) ? 0 : (int64_t)l->copy * l->lanes);
}

/* The subscripts that index the panel. */
static void
keep_panel_axes(Point *l, const TensorArg *arg, ReadAt *r)
{
	int along = TIR_LANE_AXIS(r->flags), kept = -1;
	for (unsigned k = 0; k < arg->npanel; k++) {
		r->index[k] = r->index[arg->panel_axis[k]];
		if (along == (int)arg->panel_axis[k])
			kept = (int)k;
	}
	r->rank = arg->npanel;
	if (arg->panel_lanes) {
		r->index[r->rank] = panel_lane(l);
		kept = l->lanes ? (int)r->rank : -1;
		r->rank++;
		r->lanes = l->lanes;
	}
	r->flags = kept >= 0 ? TIR_LANES_ALONG(kept) : 0;
}

/* The hint that the element with a later value of the axis ahead follows soon; 0: it is not read there. */
static int64_t
ahead_of(const Point *l, ExprId e)
{
	const Expr *p = expr_get(l->g, e);
	for (unsigned k = 0; l->ahead && k < p->narg; k++) {
		const Expr *sub = expr_get(l->g, expr_arg(l->g, e, k));
		if (sub->op == OP_AXIS && sub->ref == l->ahead - 1)
			return TIR_AHEAD(k) | (l->ahead_by > 1 ? TIR_AHEAD_BY((int64_t)l->ahead_by) : 0);
	}
	return 0;
}

/* The same where the kernel knows how many values further on: each line of memory once. */
static void
fetch_ahead(Point *l, ValId view, DType t, const ReadAt *r, int64_t ahead)
{
	ValId index[TG_MAX_RANK];
	unsigned bytes = dtype_info[t].bits / 8u * l->lanes, axis = (unsigned)TIR_AHEAD_AXIS(ahead);
	if (bytes < FETCH_BYTES && l->copy * bytes % FETCH_BYTES)
		return;
	for (unsigned a = 0; a < r->rank; a++)
		index[a] = r->index[a];
	index[axis] = tir_binary(l->tir, OP_ADD, index[axis], l->ahead_rows);
	tir_fetch(l->tir, view, index);
}

/* Whether the value at the point is meant: of a recurrence, another step is in memory. */
static bool
is_value(const Point *l, const TensorArg *arg, ExprId e)
{
	if (arg->where != IN_VALUE)
		return false;
	for (unsigned k = 0; arg->steps && !BUG(step_of_point) && k < expr_get(l->g, e)->narg; k++) {
		const Expr *sub = expr_get(l->g, expr_arg(l->g, e, k));
		if (sub->op != OP_AXIS || sub->ref != arg->point_axis[k])
			return false;
	}
	return true;
}

void
point_list(Point *l, PointListed read)
{
	uint32_t k = 0;
	while (k < l->listed.n && l->listed.at[k].e != read.e)
		k++;
	if (k == l->listed.n)
		vec_push(l->scratch, &l->listed, read);
	l->listed.at[k] = read;
}

/* What a list has of the read; 0: none has it. */
static ValId
listed_value(Point *l, ExprId e)
{
	for (uint32_t k = 0; k < l->listed.n; k++) {
		const PointListed *read = &l->listed.at[k];
		if (read->e != e || !read->view)
			continue;
		ValId at = tir_binary(l->tir, OP_SUB, l->axis[read->axis], read->from);
		return tir_load(l->tir, read->view, &at, 0, 0, 0);
	}
	return 0;
}

PointVal
point_read(Point *l, ExprId e, const PointVal *sub, PointAt at)
{
	const Expr p = *expr_get(l->g, e);
	ValId listed = listed_value(l, e);
	if (listed)
		return (PointVal){.re = listed};
	const TensorArg *arg = point_tensor(l, p.ref);
	if (is_value(l, arg, e))
		return arg->value[l->copy];
	ReadAt r = read_at(l, e, sub, at);
	if (arg->where == IN_PANEL)
		keep_panel_axes(l, arg, &r);
	bool last = TIR_LANE_AXIS(r.flags) == (int)r.rank - 1;
	int64_t ahead = arg->where == IN_MEMORY && last && r.lanes ? ahead_of(l, e) : 0;
	ValId view = arg->where == IN_PANEL ? arg->panel : arg->data;
	if (ahead && l->ahead_rows && p.dtype != DT_C64)
		fetch_ahead(l, view, (DType)p.dtype, &r, ahead);
	else
		r.flags |= ahead;
	PointVal v = point_load(l, view, (DType)p.dtype, r.index, r.rank, r.mask, r.flags, r.lanes);
	for (unsigned k = 0; k < p.narg; k++)
		point_join(l, &v, sub[k]);
	if (p.access && r.ok)
		v.fail = point_word(l, v.fail, tir_select(l->tir, r.ok, tir_int(l->tir, DT_U32, 0),
		                                          tir_int(l->tir, DT_U32, p.access)));
	if (arg->fault && !BUG(fault_not_passed_on))
		point_join(l, &v, plane_words(l, tir_load(l->tir, arg->fault, r.index, r.mask, r.flags & ~TIR_LOOKS_AHEAD, r.lanes)));
	return v;
}

ValId
point_widen(Point *l, ValId v)
{
	if (!v || !l->lanes || tir_inst(l->tir, v)->type.lanes)
		return v;
	return tir_emit(l->tir, OP_SPLAT, tir_vector((DType)tir_inst(l->tir, v)->type.dtype, l->lanes), 0, &v, 1);
}

void
point_store(Point *l, TensorId t, PointVal v, const ValId *p, int along)
{
	const Tensor *tensor = &l->g->tensor.at[t];
	const TensorArg *arg = point_tensor(l, t);
	int64_t flags = along >= 0 ? TIR_LANES_ALONG(along) : 0;
	bool last = along + 1 == (int)tensor->rank;
	ValId mask = along >= 0 ? l->mask : 0;
	if (arg->streams && along >= 0 && last)
		flags |= TIR_STREAM;
	if (along >= 0) {
		v.re = point_widen(l, v.re);
		v.im = point_widen(l, v.im);
	}
	point_put(l, arg->data, tensor->dtype, v, p, tensor->rank, mask, flags);
	ValId w = point_pack(l, v), none = tir_int(l->tir, DT_U32, 0);
	if (arg->fault)
		tir_store(l->tir, arg->fault, along >= 0 ? point_widen(l, w ? w : none) : w ? w : none, p, mask,
		          flags & ~(int64_t)TIR_STREAM);
	if (w && l->places->result[t])
		tir_fault(l->tir, mask ? tir_select(l->tir, mask, w, none) : w);
}

void
point_put_panel(Point *l, TensorId t, PointVal v, const ValId *p, int along)
{
	const TensorArg *arg = point_tensor(l, t);
	ValId index[POINT_MAX_RANK];
	unsigned rank = arg->npanel;
	int lane = -1;
	for (unsigned k = 0; k < rank; k++) {
		index[k] = p[arg->panel_axis[k]];
		if (along == (int)arg->panel_axis[k])
			lane = (int)k;
	}
	if (arg->panel_lanes) {
		index[rank] = panel_lane(l);
		lane = l->lanes ? (int)rank : -1;
		rank++;
	}
	if (lane >= 0) {
		v.re = point_widen(l, v.re);
		v.im = point_widen(l, v.im);
	}
	point_put(l, arg->panel, l->g->tensor.at[t].dtype, v, index, rank, lane >= 0 ? l->mask : 0,
	          lane >= 0 ? TIR_LANES_ALONG(lane) : 0);
}
