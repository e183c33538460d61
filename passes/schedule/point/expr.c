/* expr.c: TG expressions as TIR values (point.h says what of: points, demand, faults).
 *
 * Expressions are lowered operands first from a stack of our own, as they may be deep, and each once
 * in the region that needs it. */
#include "passes/schedule/point/point.h"

#include "passes/expr_map.h"
#include "passes/fuse/interval.h"

#include "passes/schedule/point/read.h"
#include "passes/schedule/point/vary.h"

/* --- fault words --- */

static ValId
word(Point *l, uint32_t v)
{
	return tir_int(l->tir, DT_U32, v);
}

ValId
point_word(Point *l, ValId first, ValId then)
{
	if (!first || first == then)
		return then;
	if (!then)
		return first;
	return tir_select(l->tir, tir_binary(l->tir, OP_NE, first, word(l, 0)), first, then);
}

void
point_join(Point *l, PointVal *v, PointVal from)
{
	v->fail = point_word(l, v->fail, from.fail);
	v->cut = point_word(l, v->cut, from.cut);
}

ValId
point_pack(Point *l, PointVal v)
{
	if (!v.cut)
		return v.fail;
	ValId high = tir_binary(l->tir, OP_SHL, v.cut, word(l, 16));
	return v.fail ? tir_binary(l->tir, OP_BOR, v.fail, high) : high;
}

/* c ? a : b, where each may be impossible. */
static ValId
select_word(Point *l, ValId c, ValId a, ValId b)
{
	if (!a && !b)
		return 0;
	return tir_select(l->tir, c, a ? a : word(l, 0), b ? b : word(l, 0));
}

/* --- single operations --- */

PointVal
point_zero(Point *l, DType dtype)
{
	if (dtype == DT_C64) {
		ValId zero = tir_float(l->tir, DT_F32, 0);
		return (PointVal){.re = zero, .im = zero};
	}
	return (PointVal){.re = dtype_is_float(dtype) ? tir_float(l->tir, dtype, 0) : tir_int(l->tir, dtype, 0)};
}

static PointVal
point_const(Point *l, const Expr *p)
{
	DType t = (DType)p->dtype;
	if (t == DT_C64)
		return (PointVal){.re = tir_float(l->tir, DT_F32, p->imm.f), .im = tir_float(l->tir, DT_F32, 0)};
	return (PointVal){.re = dtype_is_float(t) ? tir_float(l->tir, t, p->imm.f) : tir_int(l->tir, t, p->imm.i)};
}

ValId
point_lanes(Point *l, DType t)
{
	ValId iota = tir_emit(l->tir, OP_IOTA, tir_vector(t, l->lanes), 0, NULL, 0);
	return l->tir->columns ? tir_binary(l->tir, OP_IMOD, iota, tir_int(l->tir, t, l->tir->columns)) : iota;
}

static PointVal
point_axis(Point *l, unsigned k, PointAt at)
{
	if (!l->axis[k])
		bug(l->g->arena, "axis %u is not open", k);
	if (at == AT_BASE || !(l->lane_axes >> k & 1))
		return (PointVal){.re = l->axis[k]};
	return (PointVal){.re = tir_binary(l->tir, OP_ADD, l->axis[k], point_lanes(l, DT_I64))};
}

static PointVal
point_bound_scalar(Point *l, ExprId e)
{
	for (uint32_t k = 0; k < l->scalar.n; k++)
		if (l->scalar.at[k].e == e)
			return l->scalar.at[k].val;
	bug(l->g->arena, "scalar e%u was not declared", e);
}

void
point_place(Point *l, ExprId e, ValId v)
{
	for (uint32_t k = 0; k < l->placed.n; k++)
		if (l->placed.at[k].e == e) {
			l->placed.at[k].val = v;
			return;
		}
	vec_grow(l->scratch, &l->placed, 1);
	l->placed.at[l->placed.n - 1].e = e;
	l->placed.at[l->placed.n - 1].val = v;
}

static PointVal
point_placed(Point *l, ExprId e)
{
	for (uint32_t k = 0; k < l->placed.n; k++)
		if (l->placed.at[k].e == e && l->placed.at[k].val)
			return (PointVal){.re = l->placed.at[k].val};
	bug(l->g->arena, "?%u stands for nothing", expr_get(l->g, e)->ref);
}

static PointVal
point_acc(Point *l, DType to)
{
	PointVal v = l->acc;
	if (!v.re)
		bug(l->g->arena, "acc where nothing was folded");
	if (to != l->acc_type)
		v.re = tir_cast(l->tir, to, v.re);
	return v;
}

static PointVal
point_cast(Point *l, DType from, DType to, PointVal v)
{
	if (from == DT_C64 && to == DT_BOOL) {
		ValId zero = tir_float(l->tir, DT_F32, 0);
		v.re = tir_binary(l->tir, OP_OR, tir_binary(l->tir, OP_NE, v.re, zero),
		                  tir_binary(l->tir, OP_NE, v.im, zero));
		v.im = 0;
	} else if (from == DT_C64 && to != DT_C64) {
		v.re = tir_cast(l->tir, to, v.re);
		v.im = 0;
	} else if (from != DT_C64 && to == DT_C64) {
		v.re = tir_cast(l->tir, DT_F32, v.re);
		v.im = tir_float(l->tir, DT_F32, 0);
	} else if (from != to) {
		v.re = tir_cast(l->tir, to, v.re);
	}
	return v;
}

/* Whether e is an axis of 32 bits, or how far it is from another one: at most 2^31 - 1, at least -2^31. */
static bool
is_short(const Point *l, ExprId e)
{
	const Expr *p = expr_get(l->g, e);
	if (p->op == OP_AXIS)
		return l->short_axes >> p->ref & 1;
	if (p->op != OP_SUB)
		return false;
	const Expr *a = expr_get(l->g, expr_arg(l->g, e, 0)), *b = expr_get(l->g, expr_arg(l->g, e, 1));
	return a->op == OP_AXIS && b->op == OP_AXIS && l->short_axes >> a->ref & l->short_axes >> b->ref & 1;
}

/* To a float of 32 bits that is the same: on a GPU one of 64 takes four times as long, beside powers, and pairs of registers. */
static PointVal
cast_short(Point *l, DType to, PointVal v)
{
	return point_cast(l, DT_I32, to, point_cast(l, DT_I64, DT_I32, v));
}

static PointVal
point_select(Point *l, PointVal c, PointVal a, PointVal b)
{
	PointVal v = {.re = tir_select(l->tir, c.re, a.re, b.re)};
	if (a.im)
		v.im = tir_select(l->tir, c.re, a.im, b.im);
	v.fail = point_word(l, c.fail, select_word(l, c.re, a.fail, b.fail));
	v.cut = point_word(l, c.cut, select_word(l, c.re, a.cut, b.cut));
	return v;
}

static PointVal
point_logic(Point *l, Op op, PointVal a, PointVal b)
{
	PointVal v = {.re = tir_binary(l->tir, op, a.re, b.re)};
	bool and = op == OP_AND;
	v.fail = point_word(l, a.fail, select_word(l, a.re, and ? b.fail : 0, and ? 0 : b.fail));
	v.cut = point_word(l, a.cut, select_word(l, a.re, and ? b.cut : 0, and ? 0 : b.cut));
	return v;
}

static bool
is_low(const Point *l, ExprId e)
{
	for (uint32_t k = 0; k < l->low.n; k++)
		if (l->low.at[k] == e)
			return true;
	return interval_of(l->g, e).hi <= 0;
}

/* What expansions know of a power's operand is what the graph and the template do. */
static PointVal
point_narrowed(Point *l, ExprId e, ValId a)
{
	int64_t imm = (int64_t)expr_narrow_type(l->g, e);
	if (expr_get(l->g, e)->op != OP_TANH && is_low(l, expr_arg(l->g, e, 0)))
		imm |= TIR_NO_MORE_THAN_0;
	return (PointVal){.re = tir_emit(l->tir, (Op)expr_get(l->g, e)->op, tir_inst(l->tir, a)->type, imm, &a, 1)};
}

/* What is known of a divisor, and of use: TIR_NEAR, TIR_FROM_1, or 0. */
static int64_t
divisor_is(const Point *l, ExprId e)
{
	if (is_sum_of_powers(l->g, e))
		return TIR_NEAR;
	if (l->g->fp != FP_FAST) /* which alone asks for more */
		return 0;
	Interval b = interval_of(l->g, e);
	return b.lo >= 0x1p-64 && b.hi <= 0x1p64 ? TIR_NEAR : b.lo >= 1 ? TIR_FROM_1 : 0;
}

/* What is the same operation in TIR, on reals. */
static PointVal
point_plain(Point *l, ExprId e, const PointVal *arg)
{
	const Expr *p = expr_get(l->g, e);
	ValId v = p->narg == 1 ? tir_unary(l->tir, (Op)p->op, arg[0].re) : tir_binary(l->tir, (Op)p->op, arg[0].re, arg[1].re);
	if (p->op == OP_FDIV)
		l->tir->inst.at[v].imm.i = divisor_is(l, expr_arg(l->g, e, 1));
	if (p->op == OP_POW)
		l->tir->inst.at[v].imm.i = (int64_t)expr_narrow_type(l->g, e);
	return (PointVal){.re = v};
}

/* Whether e asks of an index that counts the lanes if it is, or is not, what is the same in all of them. */
static bool
is_lane_match(Point *l, ExprId e)
{
	const Expr *p = expr_get(l->g, e);
	if ((p->op != OP_EQ && p->op != OP_NE) || expr_get(l->g, expr_arg(l->g, e, 0))->dtype != DT_I64)
		return false;
	uint8_t a = l->varies.at[number_of(l, expr_arg(l->g, e, 0))], b = l->varies.at[number_of(l, expr_arg(l->g, e, 1))];
	return (a == VARY_UNIT && b == VARY_NOT) || (a == VARY_NOT && b == VARY_UNIT);
}

/* In 32 bits: the lane where it is, or one that there is not. */
static PointVal
lane_match(Point *l, ExprId e, const PointVal *arg)
{
	bool first = l->varies.at[number_of(l, expr_arg(l->g, e, 0))] == VARY_UNIT;
	ValId lane = tir_binary(l->tir, OP_SUB, arg[first].re, arg[!first].re);
	lane = tir_binary(l->tir, OP_MIN, tir_cast(l->tir, DT_U64, lane), tir_int(l->tir, DT_U64, l->lanes));
	return (PointVal){.re = tir_binary(l->tir, (Op)expr_get(l->g, e)->op, point_lanes(l, DT_U32), tir_cast(l->tir, DT_U32, lane))};
}

static PointVal
point_random(Point *l, Op op, const PointVal *arg, unsigned narg)
{
	ValId v[TG_MAX_AXES];
	for (unsigned k = 0; k < narg; k++)
		v[k] = arg[k].re;
	return (PointVal){.re = point_rand(l, op, v, narg)};
}

/* The value alone; the caller joins the operands' words, except where the case says it did. */
static PointVal
point_op(Point *l, ExprId e, const PointVal *arg, PointAt at, bool *joined)
{
	const Expr p = *expr_get(l->g, e);
	DType operand = p.narg ? (DType)expr_get(l->g, expr_arg(l->g, e, p.narg - 1))->dtype : DT_NONE;
	bool complex = operand == DT_C64;
	switch ((Op)p.op) {
	case OP_CONST: return point_const(l, &p);
	case OP_AXIS: return point_axis(l, p.ref, at);
	case OP_DIM: return point_bound_scalar(l, e);
	case OP_IVAR: return point_placed(l, e);
	case OP_ACC: return point_acc(l, (DType)p.dtype);
	case OP_TOUCHED: return (PointVal){.re = l->touched, .fail = l->acc.fail, .cut = l->acc.cut};
	case OP_READ:
		if (l->g->tensor.at[p.ref].kind == TENSOR_SCALAR)
			return point_bound_scalar(l, e);
		*joined = true;
		return point_read(l, e, arg, at);
	case OP_SELECT:
		*joined = true;
		return point_select(l, arg[0], arg[1], arg[2]);
	case OP_AND: case OP_OR:
		*joined = true;
		return point_logic(l, (Op)p.op, arg[0], arg[1]);
	case OP_CAST:
		if (dtype_is_float((DType)p.dtype) && is_short(l, expr_arg(l->g, e, 0)))
			return cast_short(l, (DType)p.dtype, arg[0]);
		return point_cast(l, operand, (DType)p.dtype, arg[0]);
	case OP_CPLX: return (PointVal){.re = arg[0].re, .im = arg[1].re};
	case OP_RE: return (PointVal){.re = arg[0].re};
	case OP_IM: return (PointVal){.re = arg[0].im};
	case OP_CONJ: return (PointVal){.re = arg[0].re, .im = tir_unary(l->tir, OP_NEG, arg[0].im)};
	case OP_ROOT: return point_root(l, arg[0].re, arg[1].re);
	case OP_RAND: case OP_RANDN: return point_random(l, (Op)p.op, arg, p.narg);
	case OP_ADD: case OP_SUB: case OP_MUL: case OP_FDIV: case OP_NEG: case OP_EQ: case OP_NE:
		if (at == AT_VECTOR && is_lane_match(l, e))
			return lane_match(l, e, arg);
		if (complex)
			return point_complex(l, (Op)p.op, arg[0], arg[p.narg - 1]);
		return point_plain(l, e, arg);
	case OP_EXP: case OP_EXP2: case OP_TANH:
		return point_narrowed(l, e, arg[0].re);
	case OP_IDIV: case OP_IMOD: case OP_POW: case OP_ABS: case OP_SIGN: case OP_MIN: case OP_MAX:
	case OP_FLOOR: case OP_CEIL: case OP_ROUND: case OP_TRUNC: case OP_SQRT: case OP_RSQRT: case OP_EXPM1:
	case OP_LOG: case OP_LOG2: case OP_LOG1P: case OP_ERF: case OP_SIN:
	case OP_COS: case OP_LT: case OP_LE: case OP_NOT: case OP_ISNAN:
		return point_plain(l, e, arg);
	case OP_NONE: case OP_FMA: case OP_SCALE: case OP_EX2: case OP_RCP:
	case OP_LG2: case OP_NEAR_DIV: case OP_NEAR_SQRT: case OP_NEAR_RSQRT: case OP_NEAR_TANH: case OP_NEAR_SIN: case OP_NEAR_COS: case OP_FLUSH_MUL:
	case OP_BITCAST: case OP_SHL: case OP_SHR: case OP_BAND:
	case OP_BOR: case OP_BXOR: case OP_BUFFER: case OP_SCALAR: case OP_TASK_LO: case OP_TASK_HI:
	case OP_BLOCKARG: case OP_IOTA: case OP_SPLAT: case OP_LANE: case OP_SLIDE: case OP_JOIN: case OP_HALF: case OP_WEAVE: case OP_PICK: case OP_ANY:
	case OP_THREAD: case OP_RANK: case OP_SHUFFLE: case OP_WARP_MMA: case OP_LOAD_MATRIX: case OP_STORE_MATRIX: case OP_ASYNC_COPY: case OP_ASYNC_WAIT: case OP_BARRIER: case OP_VIEW: case OP_LOAD: case OP_STORE:
	case OP_FETCH: case OP_DOT: case OP_FAULT: case OP_TASK_STEP: case OP_ACQUIRE: case OP_COPY: case OP_WAIT: case OP_RELEASE:
	case OP_MMA: case OP_PRODUCT: case OP_KEEP: case OP_PUT: case OP_SETTLE: case OP_TURN: case OP_PIECE: case OP_HELD: case OP_TAKE: case OP_ROLES: case OP_FOR: case OP_IF: case OP_YIELD: case OP_RESULT:
		break;
	}
	bug(l->g->arena, "%s in a graph", op_info[p.op].text);
}

/* --- walking --- */

/* Where operand k of e is wanted: what does not vary, and the subscript that runs along the lanes,
 * as scalars. */
static PointAt
operand_at(Point *l, ExprId e, unsigned k, PointAt at)
{
	ExprId x = expr_arg(l->g, e, k);
	if (at == AT_BASE || l->varies.at[number_of(l, x)] == VARY_NOT || is_lane_match(l, e))
		return AT_BASE;
	return expr_get(l->g, e)->op == OP_READ && point_lane_subscript(l, e) == (int)k ? AT_BASE : AT_VECTOR;
}

static PointSlot *
slot_of(Point *l, ExprId e, PointAt at)
{
	return &l->slot[at].at[number_of(l, e)];
}

static void
finish_expr(Point *l, ExprId e, PointAt at)
{
	const Expr p = *expr_get(l->g, e);
	PointVal arg[TG_MAX_AXES];
	bool joined = false;
	for (unsigned k = 0; k < p.narg; k++)
		arg[k] = slot_of(l, expr_arg(l->g, e, k), operand_at(l, e, k, at))->val;
	PointVal v = point_op(l, e, arg, at, &joined);
	for (unsigned k = 0; k < p.narg && !joined; k++)
		point_join(l, &v, arg[k]);
	*slot_of(l, e, at) = (PointSlot){v, true};
	vec_push(l->scratch, &l->undo, ((PointUndo){number_of(l, e), at}));
}

/* Marks what is evaluated whenever e is, without going into lazy operands. */
static void
mark_strict(Point *l, ExprId e)
{
	VEC(ExprId) stack = {0};
	vec_push(l->scratch, &stack, e);
	while (stack.n) {
		ExprId x = stack.at[--stack.n];
		const Expr *p = expr_get(l->g, x);
		uint32_t *mark = &l->strict.at[number_of(l, x)];
		if (*mark == l->root)
			continue;
		*mark = l->root;
		unsigned n = op_info[p->op].flags & F_LAZY ? 1 : p->narg;
		for (unsigned k = 0; k < n; k++)
			vec_push(l->scratch, &stack, expr_arg(l->g, x, k));
	}
}

PointVal
point_value(Point *l, ExprId e, bool always)
{
	PointAt top = l->one || l->varies.at[number_of(l, e)] == VARY_NOT ? AT_BASE : AT_VECTOR;
	l->root++;
	if (always)
		mark_strict(l, e);
	l->stack.n = 0;
	vec_push(l->scratch, &l->stack, ((PointJob){e, top}));
	while (l->stack.n) {
		PointJob job = l->stack.at[l->stack.n - 1];
		bool ready = true;
		for (unsigned k = 0; !slot_of(l, job.e, job.at)->done && k < expr_get(l->g, job.e)->narg; k++) {
			ExprId x = expr_arg(l->g, job.e, k);
			PointAt at = operand_at(l, job.e, k, job.at);
			if (!slot_of(l, x, at)->done) {
				vec_push(l->scratch, &l->stack, ((PointJob){x, at}));
				ready = false;
			}
		}
		if (!ready)
			continue;
		l->stack.n--;
		if (!slot_of(l, job.e, job.at)->done)
			finish_expr(l, job.e, job.at);
	}
	return slot_of(l, e, top)->val;
}

uint32_t
point_mark(const Point *l)
{
	return l->undo.n;
}

void
point_release(Point *l, uint32_t mark)
{
	while (l->undo.n > mark) {
		PointUndo u = l->undo.at[--l->undo.n];
		l->slot[u.at].at[u.number].done = false;
	}
}

void
point_release_axis(Point *l, uint32_t mark, unsigned axis)
{
	uint32_t kept = mark;
	for (uint32_t k = mark; k < l->undo.n; k++) {
		PointUndo u = l->undo.at[k];
		if (expr_axes(l->g, l->scratch, l->numbered.at[u.number - 1]) >> axis & 1)
			l->slot[u.at].at[u.number].done = false;
		else
			l->undo.at[kept++] = u;
	}
	l->undo.n = kept;
}

PointHidden
point_hide(Point *l)
{
	PointHidden h = {.n = l->undo.n, .undo = ARENA_ARRAY(l->scratch, PointUndo, l->undo.n), .val = ARENA_ARRAY(l->scratch, PointVal, l->undo.n)};
	for (uint32_t k = 0; k < h.n; k++) {
		h.undo[k] = l->undo.at[k];
		h.val[k] = l->slot[h.undo[k].at].at[h.undo[k].number].val;
	}
	point_release(l, 0);
	return h;
}

void
point_show(Point *l, const PointHidden *hidden)
{
	point_release(l, 0);
	for (uint32_t k = 0; k < hidden->n; k++) {
		vec_push(l->scratch, &l->undo, hidden->undo[k]);
		l->slot[hidden->undo[k].at].at[hidden->undo[k].number] = (PointSlot){hidden->val[k], true};
	}
}

void
point_enter_node(Point *l, TensorId t)
{
	l->node = tensor_node(l->g, t);
	for (unsigned k = 0; k < TG_MAX_AXES; k++)
		l->axis[k] = l->run[k] = 0;
	for (unsigned k = 0; k < l->node->npar && !l->node->scatter; k++)
		l->run[k] = l->g->tensor.at[t].extent[k];
	for (unsigned k = l->node->npar; k < (unsigned)l->node->npar + l->node->nred; k++) {
		const Expr *lo = expr_get(l->g, l->node->axis[k].lo);
		if (lo->op == OP_CONST && lo->imm.i >= 0)
			l->run[k] = l->node->axis[k].hi;
	}
	l->acc = (PointVal){0};
	l->touched = 0;
}
