/* random_graph.c: small tensors, extents 0 to 9, ranks 0 to 4, every dtype. Expressions are typed as
 * they grow; reads are plain where axes have the tensor's extents, else checked or optional. A tensor
 * with a domain is read where its domain holds. max, min and arg always have a default. */
#include "random_graph.h"

enum { MAX_TENSORS = 16 };

typedef struct {
	TensorId id;
	ExprId domain; /* over its axes; 0 everywhere */
} Known;

typedef struct {
	Case *c;
	Graph *g;
	uint64_t state;
	RandomCounts *counts;
	ExprId extent[5];        /* to choose from */
	Known tensor[MAX_TENSORS];
	unsigned ntensor;
	ExprId axis_extent[TG_MAX_AXES]; /* of the node being made; 0: a range of its own */
	unsigned first, naxis;   /* axes that may be used */
	TensorId self;           /* not to be read */
	unsigned nested;         /* subscripts of subscripts being made */
} Gen;

static uint64_t
roll(Gen *r, uint64_t n)
{
	r->state += 0x9e3779b97f4a7c15u;
	uint64_t z = (r->state ^ (r->state >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (z ^ (z >> 31)) % n;
}

static bool
chance(Gen *r, unsigned percent)
{
	return roll(r, 100) < percent;
}

static ExprId
bin(Gen *r, Op op, ExprId a, ExprId b)
{
	return expr_binary(r->g, op, a, b);
}

static ExprId
num(Gen *r, int64_t v)
{
	return expr_int(r->g, DT_I64, v);
}

static ExprId value(Gen *r, DType t, unsigned depth);

/* --- reads --- */

static ExprId
index_value(Gen *r)
{
	ExprId e = num(r, (int64_t)roll(r, 6) - 1);
	if (r->naxis == r->first || chance(r, 10))
		return e;
	ExprId a = expr_axis(r->g, r->first + (unsigned)roll(r, r->naxis - r->first));
	switch (roll(r, 5)) {
	case 0: return bin(r, OP_ADD, a, e);
	case 1: return bin(r, OP_SUB, e, a);
	case 2: return bin(r, OP_ADD, bin(r, OP_MUL, a, num(r, 2)), e);
	case 3: return bin(r, OP_IDIV, a, num(r, 2));
	default: return a;
	}
}

/* An index from data, if not too deep. */
static ExprId
data_index(Gen *r)
{
	if (r->nested > 1 || chance(r, 50))
		return index_value(r);
	r->nested++;
	ExprId e = expr_cast(r->g, DT_I64, value(r, DT_I32, 1));
	r->nested--;
	return e;
}

static ExprId
inside(Gen *r, ExprId i, ExprId extent)
{
	return bin(r, OP_AND, bin(r, OP_LE, num(r, 0), i), bin(r, OP_LT, i, extent));
}

/* An axis that runs over exactly this extent, or 0. */
static ExprId
axis_over(Gen *r, ExprId extent)
{
	unsigned n = r->naxis - r->first, start = n ? (unsigned)roll(r, n) : 0;
	for (unsigned k = 0; k < n; k++) {
		unsigned a = r->first + (start + k) % n;
		if (r->axis_extent[a] == extent)
			return expr_axis(r->g, a);
	}
	return 0;
}

static ExprId
zero_of(Gen *r, DType t)
{
	if (t == DT_C64)
		return bin(r, OP_CPLX, expr_float(r->g, DT_F32, 0.5), expr_float(r->g, DT_F32, 1));
	return dtype_is_float(t) ? expr_float(r->g, t, 1) : expr_int(r->g, t, 1);
}

static ExprId
read_tensor(Gen *r, const Known *k)
{
	const Tensor t = r->g->tensor.at[k->id];
	ExprId sub[TG_MAX_RANK], cond = 0;
	bool plain = true, optional = chance(r, 40);
	for (unsigned a = 0; a < t.rank; a++) {
		sub[a] = chance(r, 75) ? axis_over(r, t.extent[a]) : 0;
		if (sub[a])
			continue;
		sub[a] = data_index(r);
		if (!optional && chance(r, 95))
			sub[a] = bin(r, OP_IMOD, sub[a], t.extent[a]);
		plain = false;
		if (optional)
			cond = expr_and(r->g, cond, inside(r, sub[a], t.extent[a]));
	}
	AccessId id = plain || optional ? 0 : case_access(r->c, ACCESS_GATHER);
	r->counts->gathers += id != 0;
	r->counts->optional += cond != 0;
	if (k->domain && id) /* outside, a check would not save the domain's subscripts */
		for (unsigned a = 0; a < t.rank; a++)
			cond = expr_and(r->g, cond, inside(r, sub[a], t.extent[a]));
	if (k->domain)
		cond = expr_and(r->g, cond, expr_subst_axes(r->g, k->domain, sub, t.rank));
	ExprId e = expr_read(r->g, k->id, sub, t.rank, id);
	return cond ? expr_select(r->g, cond, e, zero_of(r, t.dtype)) : e;
}

static ExprId
convert(Gen *r, DType to, ExprId e)
{
	DType from = (DType)expr_get(r->g, e)->dtype;
	if (from == DT_C64 && to != DT_C64)
		return convert(r, to, expr_unary(r->g, chance(r, 50) ? OP_RE : OP_IM, e));
	if (to == DT_C64 && from != DT_C64)
		return bin(r, OP_CPLX, expr_cast(r->g, DT_F32, e), expr_float(r->g, DT_F32, -0.25));
	return expr_cast(r->g, to, e);
}

/* --- expressions --- */

static ExprId
leaf(Gen *r, DType t)
{
	if (r->ntensor && chance(r, 70)) {
		const Known *k = &r->tensor[roll(r, r->ntensor)];
		if (k->id != r->self)
			return convert(r, t, read_tensor(r, k));
	}
	if (t != DT_BOOL && t != DT_C64 && r->naxis > r->first && chance(r, 40))
		return convert(r, t, expr_axis(r->g, r->first + (unsigned)roll(r, r->naxis - r->first)));
	if (t == DT_C64)
		return zero_of(r, t);
	if (dtype_is_float(t))
		return expr_float(r->g, t, (double)roll(r, 17) / 4 - 2);
	return expr_int(r->g, t, t == DT_BOOL ? (int64_t)roll(r, 2) : (int64_t)roll(r, 7) - (dtype_info[t].kind == KIND_INT ? 3 : 0));
}

static DType
any_arith(Gen *r)
{
	static const DType types[] = {DT_F32, DT_F32, DT_F64, DT_I32, DT_I64, DT_U32, DT_U64};
	return types[roll(r, sizeof types / sizeof *types)];
}

static ExprId
bool_value(Gen *r, unsigned depth)
{
	static const Op compare[] = {OP_EQ, OP_NE, OP_LT, OP_LE};
	DType t = any_arith(r);
	switch (roll(r, 6)) {
	case 0: return bin(r, OP_AND, value(r, DT_BOOL, depth - 1), value(r, DT_BOOL, depth - 1));
	case 1: return bin(r, OP_OR, value(r, DT_BOOL, depth - 1), value(r, DT_BOOL, depth - 1));
	case 2: return expr_unary(r->g, OP_NOT, value(r, DT_BOOL, depth - 1));
	case 3: return expr_unary(r->g, OP_ISNAN, value(r, DT_F32, depth - 1));
	default: return bin(r, compare[roll(r, 4)], value(r, t, depth - 1), value(r, t, depth - 1));
	}
}

static ExprId
complex_value(Gen *r, unsigned depth)
{
	static const Op op[] = {OP_ADD, OP_SUB, OP_MUL};
	if (chance(r, 20))
		return expr_unary(r->g, chance(r, 50) ? OP_CONJ : OP_NEG, value(r, DT_C64, depth - 1));
	if (chance(r, 20))
		return bin(r, OP_CPLX, value(r, DT_F32, depth - 1), value(r, DT_F32, depth - 1));
	return bin(r, op[roll(r, 3)], value(r, DT_C64, depth - 1), value(r, DT_C64, depth - 1));
}

static ExprId
real_value(Gen *r, DType t, unsigned depth)
{
	static const Op float2[] = {OP_ADD, OP_SUB, OP_MUL, OP_MIN, OP_MAX, OP_FDIV};
	static const Op float1[] = {OP_NEG, OP_ABS, OP_FLOOR, OP_TANH, OP_SIN, OP_SIGN, OP_ERF, OP_TRUNC};
	static const Op int2[] = {OP_ADD, OP_SUB, OP_MUL, OP_MIN, OP_MAX, OP_IDIV, OP_IMOD};
	static const Op int1[] = {OP_NEG, OP_ABS, OP_SIGN};
	bool real = dtype_is_float(t);
	if (chance(r, 25))
		return expr_unary(r->g, real ? float1[roll(r, 8)] : int1[roll(r, 3)], value(r, t, depth - 1));
	if (chance(r, 10))
		return convert(r, t, value(r, any_arith(r), depth - 1));
	return bin(r, real ? float2[roll(r, 6)] : int2[roll(r, 7)], value(r, t, depth - 1), value(r, t, depth - 1));
}

static ExprId
value(Gen *r, DType t, unsigned depth)
{
	DType arith = t == DT_BOOL ? DT_BOOL : dtype_info[t].arith;
	if (arith != t)
		return convert(r, t, value(r, arith, depth));
	if (depth == 0 || chance(r, 15))
		return leaf(r, t);
	if (chance(r, 20))
		return expr_select(r->g, value(r, DT_BOOL, depth - 1), value(r, t, depth - 1), value(r, t, depth - 1));
	if (t == DT_BOOL)
		return bool_value(r, depth);
	return t == DT_C64 ? complex_value(r, depth) : real_value(r, t, depth);
}

/* --- nodes --- */

static DType
any_dtype(Gen *r)
{
	return (DType)(1 + roll(r, DT_COUNT - 1));
}

static unsigned
shape(Gen *r, Node *n, ExprId *extent, unsigned max_rank)
{
	n->npar = (uint8_t)roll(r, max_rank + 1);
	for (unsigned a = 0; a < n->npar; a++)
		r->axis_extent[a] = extent[a] = r->extent[roll(r, 5)];
	r->first = 0;
	r->naxis = n->npar;
	r->self = 0;
	return n->npar;
}

static void
learn(Gen *r, TensorId t, ExprId domain)
{
	if (r->ntensor < MAX_TENSORS)
		r->tensor[r->ntensor++] = (Known){t, domain};
}

/* Integers over the axes alone, so that readers can ask the same. */
static void
maybe_domain(Gen *r, Node *n)
{
	if (n->npar == 0 || !chance(r, 25))
		return;
	r->counts->domains++;
	n->domain = bin(r, chance(r, 50) ? OP_LE : OP_NE, index_value(r), index_value(r));
}

static TensorId
add(Gen *r, const Node *n, DType t, const ExprId *extent)
{
	TensorId id = case_add(r->c, n, "t", t, extent);
	learn(r, id, n->domain);
	return id;
}

static void
pointwise(Gen *r)
{
	Node n = {0};
	ExprId extent[TG_MAX_RANK];
	DType t = any_dtype(r);
	shape(r, &n, extent, 4);
	maybe_domain(r, &n);
	n.body = value(r, t, 4);
	r->counts->pointwise++;
	add(r, &n, t, extent);
}

static Monoid
any_monoid(Gen *r, DType *body, bool scatter)
{
	static const Monoid scatters[] = {MON_SUM, MON_MAX, MON_MIN};
	Monoid m = scatter ? scatters[roll(r, 3)] : (Monoid)(1 + roll(r, MON_COUNT - 1));
	*body = any_arith(r);
	if (m == MON_ANY || m == MON_ALL)
		*body = DT_BOOL;
	else if ((m == MON_SUM || m == MON_PROD) && chance(r, 15))
		*body = DT_C64;
	return m;
}

/* An integer from data, 0 to 7. */
static ExprId
data_bound(Gen *r)
{
	return bin(r, OP_IMOD, value(r, DT_I64, 1), num(r, 8));
}

static void
add_range(Gen *r, Node *n)
{
	unsigned k = n->npar + n->nred++;
	Axis *a = &n->axis[k];
	a->lo = num(r, 0);
	r->axis_extent[k] = a->hi = r->extent[roll(r, 5)];
	if (chance(r, 30)) {
		r->axis_extent[k] = 0;
		a->lo = chance(r, 50) ? data_bound(r) : a->lo;
		a->hi = chance(r, 50) ? data_bound(r) : bin(r, OP_ADD, index_value(r), num(r, 2));
		a->clamp = num(r, (int64_t)roll(r, 6));
		a->cut = chance(r, 60) ? case_access(r->c, ACCESS_CUT) : 0;
		r->counts->ranges++;
	}
	r->naxis = k + 1;
}

/* Always with a default where nothing arrives. */
static DType
add_finish(Gen *r, Node *n, DType acc)
{
	r->first = 0;
	r->naxis = n->npar;
	if (monoid_info[n->monoid].unit != UNIT_NONE && chance(r, 60))
		return acc;
	ExprId touched = expr_make(r->g, OP_TOUCHED, DT_BOOL, 0, 0, NULL, 0);
	ExprId e = expr_make(r->g, OP_ACC, acc, 0, 0, NULL, 0);
	e = expr_select(r->g, touched, e, value(r, acc, 1));
	DType out = any_dtype(r);
	n->finish = convert(r, out, e);
	return out;
}

static void
reduction(Gen *r)
{
	Node n = {0};
	ExprId extent[TG_MAX_RANK];
	DType body;
	shape(r, &n, extent, 3);
	maybe_domain(r, &n);
	n.monoid = any_monoid(r, &body, false);
	for (unsigned k = 1 + (unsigned)roll(r, 2); k > 0; k--)
		add_range(r, &n);
	if (chance(r, 40))
		n.guard = value(r, DT_BOOL, 2);
	n.body = value(r, body, 3);
	DType t = add_finish(r, &n, monoid_info[n.monoid].index ? DT_I64 : body);
	r->counts->reductions++;
	add(r, &n, t, extent);
}

static void
scatter(Gen *r)
{
	Node n = {0};
	ExprId extent[TG_MAX_RANK];
	DType body;
	shape(r, &n, extent, 3);
	n.scatter = true;
	n.monoid = any_monoid(r, &body, true);
	if (chance(r, 40))
		n.init = value(r, body, 2);
	r->first = r->naxis = n.npar;
	for (unsigned k = 1 + (unsigned)roll(r, 2); k > 0; k--)
		add_range(r, &n);
	if (chance(r, 40))
		n.guard = value(r, DT_BOOL, 2);
	n.body = value(r, body, 2);
	for (unsigned a = 0; a < n.npar; a++) {
		n.target[a] = chance(r, 50) ? axis_over(r, extent[a]) : 0;
		if (n.target[a])
			continue;
		n.target[a] = chance(r, 50) ? data_bound(r) : index_value(r);
		if (chance(r, 95))
			n.target[a] = bin(r, OP_IMOD, n.target[a], extent[a]);
		n.target_access[a] = case_access(r->c, ACCESS_SCATTER);
	}
	DType t = add_finish(r, &n, body);
	r->counts->scatters++;
	add(r, &n, t, extent);
}

static void
recurrence(Gen *r)
{
	Node n = {0};
	ExprId extent[TG_MAX_RANK], sub[TG_MAX_RANK];
	DType t = any_arith(r);
	if (shape(r, &n, extent, 3) == 0)
		return;
	Recur rec = {.nseq = 1, .dir = {chance(r, 50) ? 1 : -1}};
	unsigned s = (unsigned)roll(r, n.npar);
	TensorId self = r->g->tensor.n;
	vec_push(r->c->arena, &rec.member, self);
	vec_push(r->c->arena, &r->g->recur, rec);
	n.recur = r->g->recur.n - 1;
	n.seq[0] = (uint8_t)s;
	for (unsigned a = 0; a < n.npar; a++)
		sub[a] = expr_axis(r->g, a);
	sub[s] = bin(r, OP_ADD, sub[s], num(r, -rec.dir[0] * (1 + (int64_t)roll(r, 2))));
	ExprId rest = value(r, t, 2);
	add(r, &n, t, extent);
	r->self = self;
	ExprId before = expr_select(r->g, inside(r, sub[s], extent[s]), expr_read(r->g, self, sub, n.npar, 0),
	                            value(r, t, 1));
	tensor_node(r->g, self)->body = bin(r, chance(r, 50) ? OP_ADD : OP_MAX, before, rest);
	r->counts->recurrences++;
}

/* A new value for an inout, of its own shape. */
static void
overwrite(Gen *r, TensorId old)
{
	const Tensor t = r->g->tensor.at[old];
	Node n = {.npar = t.rank};
	ExprId sub[TG_MAX_RANK];
	for (unsigned a = 0; a < t.rank; a++) {
		r->axis_extent[a] = t.extent[a];
		sub[a] = expr_axis(r->g, a);
	}
	r->first = 0;
	r->naxis = t.rank;
	r->self = chance(r, 50) ? old : 0;
	n.body = value(r, t.dtype, 2);
	if (chance(r, 50))
		n.body = expr_select(r->g, value(r, DT_BOOL, 1), expr_read(r->g, old, sub, t.rank, 0), n.body);
	TensorId id = case_add(r->c, &n, "n", t.dtype, t.extent);
	case_result(r->c, "x", id, old);
	r->counts->inouts++;
}

static void
parameters(Gen *r, TensorId *inout)
{
	static const char *const dims[] = {"A", "B", "C"};
	for (unsigned k = 0; k < 3; k++) {
		int64_t v = chance(r, 5) ? 0 : 1 + (int64_t)roll(r, 6);
		r->counts->empty += v == 0;
		r->extent[k] = case_dim(r->c, dims[k], v);
	}
	r->extent[3] = num(r, 3);
	r->extent[4] = num(r, 1 + (int64_t)roll(r, 9));
	for (unsigned k = 0; k < 4; k++) {
		ExprId extent[TG_MAX_RANK];
		bool overwritten = k == 0 && chance(r, 40), scalar = k == 3;
		unsigned rank = scalar ? 0 : (unsigned)roll(r, 4);
		for (unsigned a = 0; a < rank; a++)
			extent[a] = r->extent[roll(r, 5)];
		DType t = scalar ? any_arith(r) : any_dtype(r);
		TensorId id = case_input(r->c, scalar ? TENSOR_SCALAR : overwritten ? TENSOR_INOUT : TENSOR_INPUT,
		                         "p", t, rank, extent);
		case_range(r->c, id, dtype_info[t].kind == KIND_UINT ? 0 : -3, 6);
		learn(r, id, 0);
		*inout = overwritten ? id : *inout;
	}
}

void
random_graph(Case *c, uint64_t seed, RandomCounts *counts)
{
	Gen r = {.c = c, .g = c->g, .state = seed * 0x2545f4914f6cdd1du, .counts = counts};
	TensorId inout = 0;
	c->any_fault = true;
	parameters(&r, &inout);
	for (unsigned k = 1 + (unsigned)roll(&r, 3); k > 0; k--) {
		uint64_t kind = roll(&r, 10);
		if (kind < 4)
			pointwise(&r);
		else if (kind < 7)
			reduction(&r);
		else if (kind < 8)
			scatter(&r);
		else
			recurrence(&r);
	}
	if (inout)
		overwrite(&r, inout);
	for (unsigned k = 4; k < r.ntensor; k++)
		if (k + 1 == r.ntensor || chance(&r, 50))
			case_result(c, "r", r.tensor[k].id, 0);
	if (c->g->result.n == 0)
		case_result(c, "r", c->g->param.at[0], 0);
}
