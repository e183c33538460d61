/* eval_op.c: one operation of the oracle on operands that are present. Each row of ops.def of the
 * tensor graph's level has its case; SELECT, AND, OR and READ are run by eval_expr.c. */
#include "ir/eval_run.h"

static DTypeKind
kind_of(unsigned t)
{
	return dtype_info[t].kind;
}

static Val
binary(const Run *r, Op op, DType t, DType narrow, Val a, Val b)
{
	FpMode fp = r->g->fp;
	if (kind_of(t) == KIND_COMPLEX)
		return complex_binary(fp, op, a, b);
	if (kind_of(t) != KIND_FLOAT)
		return int_binary(op, t, a, b);
	if (op == OP_MIN || op == OP_MAX)
		return arith_extreme(a, b, op == OP_MAX);
	if (op == OP_ADD || op == OP_SUB)
		return op == OP_ADD ? arith_add(fp, t, a, b) : arith_sub(fp, t, a, b);
	if (op == OP_POW)
		return math_pow(fp, t, narrow, a, b);
	return op == OP_MUL ? arith_mul(fp, t, a, b) : arith_div(fp, t, a, b);
}

static Val
unary(Op op, DType t, Val a)
{
	if (kind_of(t) == KIND_COMPLEX) { /* NEG */
		a.re = -a.re;
		a.im = -a.im;
		return a;
	}
	if (kind_of(t) != KIND_FLOAT)
		return int_unary(op, t, a);
	return op == OP_NEG ? arith_neg(a) : arith_step(op, a);
}

static int
order(DType t, const Val *a, const Val *b)
{
	if (kind_of(t) == KIND_FLOAT)
		return arith_order(*a, *b);
	if (kind_of(t) != KIND_COMPLEX)
		return int_order(t, *a, *b);
	Val ai = {.re = a->im, .err = a->ierr}, bi = {.re = b->im, .err = b->ierr};
	Val ar = {.re = a->re, .err = a->err}, br = {.re = b->re, .err = b->err};
	int re = arith_order(ar, br), im = arith_order(ai, bi);
	bool differ = (re != 0 && re != 3) || (im != 0 && im != 3);
	return differ ? 2 : re == 3 || im == 3 ? 3 : 0;
}

/* What the reference values say; for when the bounds do not tell. */
static int
order_of_values(DType t, const Val *a, const Val *b)
{
	Val x = *a, y = *b;
	x.err = y.err = x.ierr = y.ierr = 0;
	return order(t, &x, &y);
}

static Val
compare(Op op, DType t, const Val *a, const Val *b)
{
	int o = order(t, a, b);
	Val r = {0};
	if (o == 3) {
		o = order_of_values(t, a, b);
		r.err = 1;
	}
	r.i = op == OP_EQ ? o == 0 : op == OP_NE ? o != 0 : op == OP_LT ? o == -1 : o == 0 || o == -1;
	return r;
}

static Val
isnan_of(Val a)
{
	Val r = val_int(val_is_nan(&a));
	r.err = !isfinite(a.err);
	return r;
}

static Val
complex_of(Val re, Val im)
{
	re = val_hard(re), im = val_hard(im);
	re.im = im.re;
	re.ierr = im.err;
	re.ambiguous |= im.ambiguous;
	return re;
}

static Val
imaginary(Val a)
{
	return (Val){.re = a.im, .err = a.ierr};
}

static Val
random_value(const Run *r, const Instr *p, const Val *const *a)
{
	int64_t index[4];
	bool uncertain = false;
	for (unsigned k = 0; k < p->narg; k++)
		uncertain |= a[k]->err > 0;
	for (unsigned k = 1; k < p->narg && k <= 4; k++)
		index[k - 1] = a[k]->i;
	if (uncertain)
		return val_unknown();
	if (p->narg < 2 || p->narg > 5)
		bug(r->arena, "eval: rand with %u indices", p->narg - 1u);
	if (p->op == OP_RAND)
		return rand_uniform((uint64_t)a[0]->i, index, p->narg - 1u);
	return rand_normal(r->g->fp, (uint64_t)a[0]->i, index, p->narg - 1u);
}

static Val
root_of(const Val *a, const Val *n)
{
	return a->err > 0 || n->err > 0 ? val_unknown() : complex_root(a->i, n->i);
}

static Val
not_of(Val a)
{
	a.i = !a.i;
	return a;
}

static Val
conjugate(Val a)
{
	a.im = -a.im;
	return a;
}

static Val
apply(const Run *r, const Instr *p, const Val *const *a)
{
	DType t = (DType)p->dtype;
	switch ((Op)p->op) {
	case OP_AXIS:
		return val_int(r->axis[p->ref]);
	case OP_DIM:
		return val_int(r->dim[p->ref]);
	case OP_ACC:
		return number_convert(r->acc_type, t, r->acc);
	case OP_TOUCHED:
		return r->touched;
	case OP_ADD: case OP_SUB: case OP_MUL: case OP_FDIV: case OP_IDIV: case OP_IMOD: case OP_POW:
	case OP_MIN: case OP_MAX:
		return binary(r, (Op)p->op, t, op_info[p->op].flags & F_NARROW ? (DType)p->ref : DT_NONE, *a[0], *a[1]);
	case OP_NEG: case OP_ABS: case OP_SIGN: case OP_FLOOR: case OP_CEIL: case OP_ROUND: case OP_TRUNC:
		return unary((Op)p->op, t, *a[0]);
	case OP_SQRT: case OP_RSQRT: case OP_EXP: case OP_EXP2: case OP_EXPM1: case OP_LOG: case OP_LOG2:
	case OP_LOG1P: case OP_TANH: case OP_ERF: case OP_SIN: case OP_COS:
		return math_unary(r->g->fp, (Op)p->op, t, op_info[p->op].flags & F_NARROW ? (DType)p->ref : DT_NONE, *a[0]);
	case OP_EQ: case OP_NE: case OP_LT: case OP_LE:
		return compare((Op)p->op, (DType)p->from, a[0], a[1]);
	case OP_NOT:
		return not_of(*a[0]);
	case OP_ISNAN:
		return isnan_of(*a[0]);
	case OP_CAST:
		return p->ref ? number_narrow_free(t, *a[0]) : number_cast((DType)p->from, t, *a[0]);
	case OP_CPLX:
		return complex_of(*a[0], *a[1]);
	case OP_RE:
		return (Val){.re = a[0]->re, .err = a[0]->err};
	case OP_IM:
		return imaginary(*a[0]);
	case OP_CONJ:
		return conjugate(*a[0]);
	case OP_ROOT:
		return root_of(a[0], a[1]);
	case OP_RAND: case OP_RANDN:
		return random_value(r, p, a);
	case OP_NONE: case OP_CONST: case OP_IVAR: case OP_READ: case OP_AND: case OP_OR: case OP_SELECT:
	case OP_FMA: case OP_SCALE: case OP_EX2: case OP_RCP:
	case OP_LG2: case OP_NEAR_DIV: case OP_NEAR_SQRT: case OP_NEAR_RSQRT: case OP_NEAR_TANH: case OP_NEAR_SIN: case OP_NEAR_COS: case OP_FLUSH_MUL:
	case OP_BITCAST: case OP_SHL: case OP_SHR: case OP_BAND: case OP_BOR: case OP_BXOR:
	case OP_BUFFER: case OP_SCALAR: case OP_TASK_LO: case OP_TASK_HI: case OP_BLOCKARG: case OP_IOTA:
	case OP_SPLAT: case OP_LANE: case OP_SLIDE: case OP_JOIN: case OP_HALF: case OP_WEAVE: case OP_PICK: case OP_ANY: case OP_THREAD: case OP_RANK:
	case OP_SHUFFLE: case OP_WARP_MMA: case OP_LOAD_MATRIX: case OP_STORE_MATRIX: case OP_ASYNC_COPY: case OP_ASYNC_WAIT: case OP_BARRIER: case OP_VIEW: case OP_LOAD: case OP_STORE: case OP_FETCH:
	case OP_DOT: case OP_FAULT: case OP_TASK_STEP: case OP_ACQUIRE: case OP_COPY: case OP_WAIT: case OP_RELEASE:
	case OP_MMA: case OP_PRODUCT: case OP_KEEP: case OP_PUT: case OP_SETTLE: case OP_TURN: case OP_PIECE: case OP_HELD: case OP_TAKE: case OP_ROLES: case OP_FOR:
	case OP_IF: case OP_YIELD: case OP_RESULT:
		break;
	}
	bug(r->arena, "eval: %s in the body of a node", op_info[p->op].id);
}

/* v of a step that may be joined with others: another rounding of it is possible where it is rounded at all, and where it
 * overflows another way may not. Products and quotients of f32 that have an f32's value in 64 bits are exact; a sum may have lost
 * all of its lesser term there. */
static void
loosen(Op op, DType t, const Val *const *a, Val *v)
{
	long double x = a[0]->re, y = op == OP_SUB ? -a[1]->re : a[1]->re;
	bool sum = op == OP_ADD || op == OP_SUB;
	long double whole = sum ? x + y : op == OP_MUL ? x * y : x / y;
	v->soft = false;
	if (v->err == 0 && isfinite(v->re) && whole == v->re && (!sum || (whole - x == y && whole - y == x)))
		return;
	if (isfinite(v->re))
		v->err += number_ulp(t, (double)fabsl(v->re) + v->err);
	else
		*v = val_unknown();
}

/* Products of exact numbers and the casts of their factors to f32 are most of what there is to do: they are put where they
 * belong at once, as copies of what has just been stored in pieces would take longer than the rest. */
void
op_apply(const Run *r, const Instr *p, const Val *const *a, Val *v)
{
	bool is_float = kind_of(p->dtype) == KIND_FLOAT;
	if (is_float && p->op == OP_MUL && val_is_exact(a[0]) && val_is_exact(a[1])) {
		arith_mul_exact((DType)p->dtype, a[0]->re, a[1]->re, v);
	} else if (p->op == OP_CAST && !p->ref && p->dtype == DT_F32 && kind_of(p->from) == KIND_FLOAT && p->from != DT_F64 && val_is_exact(a[0])) {
		*v = (Val){0};
		v->re = a[0]->re;
	} else {
		*v = apply(r, p, a);
	}
	if (p->joined && is_float && (p->op == OP_ADD || p->op == OP_SUB || p->op == OP_MUL || p->op == OP_FDIV))
		loosen((Op)p->op, (DType)p->dtype, a, v);
}
