/* kernel_args.c: what a kernel is handed. Walks the expressions of the kernel's nodes once, numbers
 * them, and binds each tensor, extent, stride, dim and scalar parameter they use, as instructions at
 * the top of the kernel's body, where every region sees them; and each quotient of dims. */
#include "passes/schedule/point/point.h"
#include "ir/bugs.h"

#include <string.h>

#include "passes/expr_map.h"
#include "passes/schedule/point/vary.h"

enum { MOST_MULTIPLE = 64 }; /* elements: more than are ever accessed at once */

void
point_begin(Point *l, Graph *g, Arena *scratch, const Places *places, Kernel *kernel)
{
	*l = (Point){.g = g, .scratch = scratch, .places = places, .kernel = kernel, .tir = kernel->tir};
	vec_grow(scratch, &l->varies, 1);
	vec_grow(scratch, &l->strict, 1);
	for (unsigned at = 0; at < AT_COUNT; at++)
		vec_grow(scratch, &l->slot[at], 1);
}

/* --- scalars --- */

static ValId
bind_scalar(Point *l, DType dtype, Name name, ScalarBind bind)
{
	unsigned k = tir_add_scalar(l->tir, name, dtype), multiple = bind.expr ? expr_multiple(l->g, bind.expr, MOST_MULTIPLE) : 1;
	if (multiple > 1)
		l->tir->scalar.at[k].multiple = multiple;
	vec_push(l->g->arena, &l->kernel->scalar, bind);
	return tir_emit(l->tir, OP_SCALAR, tir_scalar(dtype), k, NULL, 0);
}

static PointVal *
find_scalar(Point *l, ExprId e)
{
	for (uint32_t k = 0; k < l->scalar.n; k++)
		if (l->scalar.at[k].e == e)
			return &l->scalar.at[k].val;
	return NULL;
}

static void
remember_scalar(Point *l, ExprId e, PointVal v)
{
	vec_grow(l->scratch, &l->scalar, 1);
	l->scalar.at[l->scalar.n - 1].e = e;
	l->scalar.at[l->scalar.n - 1].val = v;
}

ValId
point_launch_expr(Point *l, ExprId e)
{
	const Expr *p = expr_get(l->g, e);
	const PointVal *known = find_scalar(l, e);
	if (known)
		return known->re;
	ValId v;
	if (p->op == OP_CONST)
		v = tir_int(l->tir, DT_I64, p->imm.i);
	else
		v = bind_scalar(l, DT_I64, p->op == OP_DIM ? l->g->dim.at[p->ref].name : 0, (ScalarBind){.expr = e});
	remember_scalar(l, e, (PointVal){.re = v});
	return v;
}

/* A scalar parameter. A c64 one travels as its 64 bits. */
static void
bind_parameter(Point *l, ExprId e)
{
	DType dtype = (DType)expr_get(l->g, e)->dtype;
	if (find_scalar(l, e))
		return;
	Name name = l->g->tensor.at[expr_get(l->g, e)->ref].name;
	ScalarBind bind = {.expr = e};
	PointVal v = {0};
	if (dtype == DT_C64) {
		ValId bits = bind_scalar(l, DT_U64, name, bind);
		ValId high = tir_binary(l->tir, OP_SHR, bits, tir_int(l->tir, DT_U64, 32));
		v.re = tir_bitcast(l->tir, DT_F32, tir_cast(l->tir, DT_U32, bits));
		v.im = tir_bitcast(l->tir, DT_F32, tir_cast(l->tir, DT_U32, high));
	} else {
		v.re = bind_scalar(l, dtype, name, bind);
	}
	remember_scalar(l, e, v);
}

/* --- tensors --- */

static bool
in_workspace(const Point *l, TensorId t)
{
	return l->g->tensor.at[t].kind == TENSOR_NODE && !l->places->result[t];
}

ExprId
point_extent(const Point *l, TensorId t, unsigned axis)
{
	const Tensor *x = &l->g->tensor.at[t];
	if (!l->flat)
		return x->extent[axis];
	return axis + 1u < x->rank ? expr_int(l->g, DT_I64, 1) : l->flat;
}

/* Row-major strides as launch expressions. */
static void
bind_row_major(Point *l, TensorId t, ValId *stride)
{
	ExprId product = expr_int(l->g, DT_I64, 1);
	for (unsigned a = l->g->tensor.at[t].rank; a-- > 0;) {
		ExprId extent = point_extent(l, t, a);
		stride[a] = point_launch_expr(l, product);
		if (expr_get(l->g, product)->op == OP_CONST && expr_get(l->g, product)->imm.i == 1)
			product = extent;
		else
			product = expr_binary(l->g, OP_MUL, extent, product);
	}
}

static unsigned
bind_buffer(Point *l, BindKind kind, TensorId t, DType dtype, bool written)
{
	unsigned k = tir_add_buffer(l->tir, l->g->tensor.at[t].name, dtype, written);
	vec_push(l->g->arena, &l->kernel->buffer, ((BufferBind){.kind = kind, .tensor = t}));
	return k;
}

/* A view with the given strides, of pairs when the tensor is complex. */
static ValId
view_of(Point *l, unsigned buffer, DType dtype, unsigned rank, const ValId *extent, const ValId *stride)
{
	if (dtype != DT_C64)
		return tir_view(l->tir, buffer, rank, extent, stride);
	ValId e[POINT_MAX_RANK], s[POINT_MAX_RANK], two = tir_int(l->tir, DT_I64, 2);
	for (unsigned a = 0; a < rank; a++) {
		e[a] = extent[a];
		s[a] = tir_binary(l->tir, OP_MUL, stride[a], two);
	}
	e[rank] = two;
	s[rank] = tir_int(l->tir, DT_I64, 1);
	return tir_view(l->tir, buffer, rank + 1, e, s);
}

static TensorArg *
find_tensor(Point *l, TensorId t)
{
	for (uint32_t k = 0; k < l->arg.n; k++)
		if (l->arg.at[k].tensor == t)
			return &l->arg.at[k];
	return NULL;
}

TensorArg *
point_tensor(Point *l, TensorId t)
{
	TensorArg *a = find_tensor(l, t);
	if (!a)
		bug(l->g->arena, "point_tensor: %%%u was not declared", t);
	return a;
}

static ValId
bind_stride(Point *l, TensorId t, unsigned axis)
{
	return bind_scalar(l, DT_I64, l->g->tensor.at[t].name, (ScalarBind){.tensor = t, .axis = (uint8_t)axis});
}

/* Whether the kernel takes t's last stride for 1, though a launch may have it otherwise. Complex elements
 * are pairs, whose parts are never side by side in a vector. */
static bool
takes_unit(const Point *l, TensorId t)
{
	const Tensor *tensor = &l->g->tensor.at[t];
	return l->unit && !in_workspace(l, t) && tensor->rank && tensor->dtype != DT_C64;
}

static void
bind_shape(Point *l, TensorArg *arg)
{
	const Tensor t = l->g->tensor.at[arg->tensor];
	for (unsigned a = 0; a < t.rank; a++)
		arg->extent[a] = point_launch_expr(l, point_extent(l, arg->tensor, a));
	if (l->flat || in_workspace(l, arg->tensor))
		bind_row_major(l, arg->tensor, arg->stride);
	else
		for (unsigned a = 0; a < t.rank; a++)
			arg->stride[a] = bind_stride(l, arg->tensor, BUG(strides_swapped) ? t.rank - 1u - a : a);
	if (takes_unit(l, arg->tensor))
		arg->stride[t.rank - 1] = tir_int(l->tir, DT_I64, 1);
}

static void
bind_data(Point *l, TensorArg *arg, bool written)
{
	const Tensor t = l->g->tensor.at[arg->tensor];
	DType dtype = t.dtype == DT_C64 ? DT_F32 : t.dtype;
	unsigned buffer = bind_buffer(l, BIND_DATA, arg->tensor, dtype, written);
	l->kernel->buffer.at[buffer].unit = takes_unit(l, arg->tensor);
	arg->data = view_of(l, buffer, t.dtype, t.rank, arg->extent, arg->stride);
}

static ValId
row_major_view(Point *l, unsigned buffer, const TensorArg *arg)
{
	const Tensor t = l->g->tensor.at[arg->tensor];
	ValId stride[TG_MAX_RANK];
	bind_row_major(l, arg->tensor, stride);
	return tir_view(l->tir, buffer, t.rank, arg->extent, stride);
}

static void
bind_tensor(Point *l, TensorId t, bool written)
{
	if (!find_tensor(l, t)) {
		vec_push(l->scratch, &l->arg, ((TensorArg){.tensor = t}));
		TensorArg *arg = &l->arg.at[l->arg.n - 1];
		bool plane = l->places->faulty[t] && l->places->read[t];
		bind_shape(l, arg);
		bind_data(l, arg, written);
		if (plane)
			arg->fault = row_major_view(l, bind_buffer(l, BIND_FAULT, t, DT_U32, written), arg);
	}
}

void
point_declare_local(Point *l, TensorId t)
{
	const Tensor tensor = l->g->tensor.at[t];
	vec_push(l->scratch, &l->arg, ((TensorArg){.tensor = t, .where = IN_VALUE}));
	for (unsigned a = 0; a < tensor.rank; a++)
		point_tensor(l, t)->extent[a] = point_launch_expr(l, point_extent(l, t, a));
}

void
point_bind_panel(Point *l, TensorId t, const uint8_t *axis, unsigned naxis, unsigned vectors)
{
	const Tensor tensor = l->g->tensor.at[t];
	DType dtype = tensor.dtype == DT_C64 ? DT_F32 : tensor.dtype;
	ExprId extent[POINT_MAX_RANK], count = expr_int(l->g, DT_I64, tensor.dtype == DT_C64 ? 2 : 1);
	ValId size[POINT_MAX_RANK], stride[POINT_MAX_RANK];
	unsigned rank = naxis + (vectors > 0);
	TensorArg *arg = point_tensor(l, t);
	if (naxis > TG_MAX_RANK)
		bug(l->g->arena, "point_bind_panel: %u axes", naxis);
	arg->npanel = (uint8_t)naxis;
	arg->panel_lanes = vectors > 0;
	memcpy(arg->panel_axis, axis, naxis);
	for (unsigned k = 0; k < naxis; k++)
		extent[k] = tensor.extent[axis[k]];
	if (vectors)
		extent[naxis] = expr_int(l->g, DT_I64, (int64_t)vectors * l->lanes);
	ExprId below = expr_int(l->g, DT_I64, 1);
	for (unsigned k = rank; k-- > 0;) {
		size[k] = point_launch_expr(l, extent[k]);
		stride[k] = point_launch_expr(l, below);
		below = expr_binary(l->g, OP_MUL, extent[k], below);
	}
	unsigned buffer = tir_add_buffer(l->tir, tensor.name, dtype, true);
	vec_push(l->g->arena, &l->kernel->buffer,
	         ((BufferBind){.kind = BIND_SCRATCH, .tensor = t, .elements = expr_binary(l->g, OP_MUL, below, count)}));
	arg->panel = view_of(l, buffer, tensor.dtype, rank, size, stride);
}

ValId
point_plane(Point *l, TensorId t, DType dtype)
{
	return row_major_view(l, bind_buffer(l, BIND_WORK, t, dtype, true), point_tensor(l, t));
}

/* --- blocks --- */

ValId
point_block_mask(Point *l, ValId base, ValId end)
{
	TirKernel *k = l->tir;
	unsigned unit = k->anywhere ? 1 : k->group;
	ValId iota = tir_emit(k, OP_IOTA, tir_vector(DT_I32, l->lanes), unit > 1 ? unit : 0, NULL, 0);
	ValId left = tir_binary(k, OP_MIN, tir_binary(k, OP_SUB, end, base), tir_int(k, DT_I64, l->lanes));
	return tir_binary(k, OP_LT, iota, tir_cast(k, DT_I32, tir_binary(k, OP_MAX, left, tir_int(k, DT_I64, 0))));
}

TensorId
places_memory(const Graph *g, const Places *places, TensorId t)
{
	uint32_t r = places->result[t];
	return r && g->result.at[r - 1].inout ? g->result.at[r - 1].inout : t;
}

void
point_say_same_memory(Point *l)
{
	const Kernel *k = l->kernel;
	for (uint32_t b = 0; b < k->buffer.n; b++)
		for (uint32_t a = 0; a < b && !l->tir->buffer.at[b].same; a++)
			if (k->buffer.at[a].kind == BIND_DATA && k->buffer.at[b].kind == BIND_DATA &&
			    places_memory(l->g, l->places, k->buffer.at[a].tensor) == places_memory(l->g, l->places, k->buffer.at[b].tensor))
				l->tir->buffer.at[b].same = a + 1;
}

/* --- expressions --- */

/* Whether a launch divides, once, what each thread would otherwise. */
static bool
is_launch_quotient(Point *l, ExprId e)
{
	const Expr *p = expr_get(l->g, e);
	if ((p->op != OP_IDIV && p->op != OP_IMOD) || p->dtype != DT_I64 || expr_get(l->g, expr_arg(l->g, e, 1))->op == OP_CONST)
		return false;
	return expr_is_of_launch(l->g, l->scratch, e);
}

static void
declare(void *user, ExprId e)
{
	Point *l = user;
	const Expr *p = expr_get(l->g, e);
	if (!number_add(l, e))
		return;
	if (is_launch_quotient(l, e))
		l->slot[AT_BASE].at[number_of(l, e)] = (PointSlot){{.re = point_launch_expr(l, e)}, true};
	else if (p->op == OP_DIM)
		point_launch_expr(l, e);
	else if (p->op == OP_READ && l->g->tensor.at[p->ref].kind == TENSOR_SCALAR)
		bind_parameter(l, e);
	else if (p->op == OP_READ)
		bind_tensor(l, p->ref, false);
}

void
point_declare(Point *l, ExprId e)
{
	expr_walk(l->g, l->scratch, e, declare, l);
}

void
point_declare_output(Point *l, TensorId t)
{
	bind_tensor(l, t, true);
}

void
point_declare_exprs(Point *l, const Node *n)
{
	point_declare(l, n->domain);
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++) {
		point_declare(l, n->axis[a].lo);
		point_declare(l, n->axis[a].hi);
		point_declare(l, n->axis[a].clamp);
	}
	point_declare(l, n->guard);
	point_declare(l, n->body);
	for (unsigned a = 0; n->scatter && a < n->npar; a++)
		point_declare(l, n->target[a]);
	point_declare(l, n->init);
	point_declare(l, n->finish);
	point_declare(l, n->factor);
}

void
point_declare_node(Point *l, TensorId t)
{
	const Node n = *tensor_node(l->g, t);
	point_declare_output(l, t);
	point_declare_exprs(l, &n);
}
