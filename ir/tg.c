/* tg.c: building a tensor graph: hash-consed expressions, tensors, nodes. */
#include "ir/tg.h"

#include "ir/tg_walk.h"

#include <math.h>
#include <string.h>

enum { DEFAULT_MAX_EXPR = 4000000 };

Graph *
graph_new(Arena *a, Names *names)
{
	Graph *g = ARENA_NEW(a, Graph);
	g->arena = a;
	g->names = names;
	g->fp = FP_RELAXED;
	vec_grow(a, &g->expr, 1);
	vec_grow(a, &g->tensor, 1);
	vec_grow(a, &g->recur, 1);
	vec_grow(a, &g->dim, 1);
	vec_grow(a, &g->access, 1);
	g->ncons = 256;
	g->cons = ARENA_ARRAY(a, uint32_t, g->ncons);
	g->memos = ARENA_NEW(a, ExprMemos);
	return g;
}

static uint32_t
mix(uint32_t h, uint64_t v)
{
	v = (v ^ h) * 0x9e3779b97f4a7c15u;
	return (uint32_t)(v >> 32) ^ (uint32_t)v;
}

static uint64_t
imm_bits(const Expr *e)
{
	uint64_t b;
	memcpy(&b, &e->imm, sizeof b);
	return b;
}

static uint32_t
hash_expr(const Expr *e, const ExprId *arg)
{
	uint32_t h = mix(e->op, e->dtype);
	h = mix(h, e->ref);
	h = mix(h, e->access);
	h = mix(h, imm_bits(e));
	for (unsigned k = 0; k < e->narg; k++)
		h = mix(h, arg[k]);
	return h;
}

static bool
same_expr(const Graph *g, const Expr *a, const Expr *b, const ExprId *arg)
{
	return a->op == b->op && a->dtype == b->dtype && a->ref == b->ref && a->access == b->access &&
	       a->narg == b->narg && imm_bits(a) == imm_bits(b) &&
	       (a->narg == 0 || memcmp(g->arg.at + a->arg, arg, a->narg * sizeof *arg) == 0);
}

static void
grow_cons(Graph *g)
{
	g->ncons *= 2;
	g->cons = ARENA_ARRAY(g->arena, uint32_t, g->ncons);
	for (uint32_t id = 1; id < g->expr.n; id++) {
		const Expr *e = &g->expr.at[id];
		uint32_t s = hash_expr(e, g->arg.at + e->arg) & (g->ncons - 1);
		while (g->cons[s])
			s = (s + 1) & (g->ncons - 1);
		g->cons[s] = id;
	}
}

/* The expression with this content; arg may lie in the graph's own table. */
ExprId
expr_intern(Graph *g, Expr e, const ExprId *arg)
{
	uint32_t s = hash_expr(&e, arg) & (g->ncons - 1);
	for (; g->cons[s]; s = (s + 1) & (g->ncons - 1))
		if (same_expr(g, &g->expr.at[g->cons[s]], &e, arg))
			return g->cons[s];
	uint32_t limit = g->max_expr ? g->max_expr : DEFAULT_MAX_EXPR;
	if (g->expr.n >= limit)
		arena_unwind(g->arena, UNWIND_LIMIT, "the program expands to more than %u expressions", limit);
	e.arg = g->arg.n;
	for (unsigned k = 0; k < e.narg; k++) {
		ExprId x = arg[k]; /* arg may lie in g->arg, which moves */
		vec_push(g->arena, &g->arg, x);
	}
	vec_push(g->arena, &g->expr, e);
	g->cons[s] = g->expr.n - 1;
	if (g->expr.n * 2 > g->ncons)
		grow_cons(g);
	return g->expr.n - 1;
}

ExprId
expr_make(Graph *g, Op op, DType dtype, uint32_t ref, AccessId access, const ExprId *arg, unsigned narg)
{
	ExprId own[TG_MAX_AXES] = {0};
	if (narg > TG_MAX_AXES)
		bug(g->arena, "expr_make: %u operands", narg);
	if (narg)
		memcpy(own, arg, narg * sizeof *arg);
	Expr e;
	memset(&e, 0, sizeof e);
	e.op = (uint8_t)op;
	e.dtype = (uint8_t)dtype;
	e.narg = (uint16_t)narg;
	e.ref = ref;
	e.access = access;
	return expr_intern(g, e, own);
}

static int64_t
wrap_int(DType t, int64_t v)
{
	unsigned bits = dtype_info[t].bits;
	if (t == DT_BOOL)
		return v != 0;
	if (bits == 64)
		return v;
	uint64_t low = (uint64_t)v & ((1ull << bits) - 1);
	if (dtype_info[t].kind == KIND_INT && (low >> (bits - 1)) & 1)
		low |= ~0ull << bits;
	return (int64_t)low;
}

ExprId
expr_int(Graph *g, DType dtype, int64_t v)
{
	Expr e;
	memset(&e, 0, sizeof e);
	e.op = OP_CONST;
	e.dtype = (uint8_t)dtype;
	e.imm.i = wrap_int(dtype, v);
	return expr_intern(g, e, NULL);
}

ExprId
expr_float(Graph *g, DType dtype, double v)
{
	Expr e;
	memset(&e, 0, sizeof e);
	e.op = OP_CONST;
	e.dtype = (uint8_t)dtype;
	e.imm.f = isnan(v) ? NAN : v; /* one NaN */
	return expr_intern(g, e, NULL);
}

static DType
result_type(const Graph *g, Op op, DType operand)
{
	(void)g;
	if (op_info[op].sig == SIG_CMP || op == OP_ISNAN)
		return DT_BOOL;
	if (op == OP_RE || op == OP_IM)
		return DT_F32;
	if (op == OP_CPLX || op == OP_ROOT)
		return DT_C64;
	return operand;
}

ExprId
expr_unary(Graph *g, Op op, ExprId a)
{
	return expr_make(g, op, result_type(g, op, (DType)expr_get(g, a)->dtype), 0, 0, &a, 1);
}

ExprId
expr_binary(Graph *g, Op op, ExprId a, ExprId b)
{
	ExprId arg[2] = {a, b};
	return expr_make(g, op, result_type(g, op, (DType)expr_get(g, a)->dtype), 0, 0, arg, 2);
}

ExprId
expr_select(Graph *g, ExprId c, ExprId a, ExprId b)
{
	ExprId arg[3] = {c, a, b};
	return expr_make(g, OP_SELECT, (DType)expr_get(g, a)->dtype, 0, 0, arg, 3);
}

ExprId
expr_cast(Graph *g, DType to, ExprId a)
{
	return expr_get(g, a)->dtype == to ? a : expr_make(g, OP_CAST, to, 0, 0, &a, 1);
}

ExprId
expr_cast_free(Graph *g, DType to, ExprId a)
{
	return expr_make(g, OP_CAST, to, 1, 0, &a, 1);
}

ExprId
expr_narrowed(Graph *g, ExprId e, DType t)
{
	Expr p = *expr_get(g, e);
	ExprId arg[2] = {expr_arg(g, e, 0), p.narg > 1 ? expr_arg(g, e, 1) : 0};
	return expr_make(g, (Op)p.op, (DType)p.dtype, (uint32_t)t, 0, arg, p.narg);
}

ExprId
expr_axis(Graph *g, unsigned k)
{
	return expr_make(g, OP_AXIS, DT_I64, k, 0, NULL, 0);
}

ExprId
expr_ivar(Graph *g, uint32_t id)
{
	return expr_make(g, OP_IVAR, DT_I64, id, 0, NULL, 0);
}

ExprId
expr_dim(Graph *g, DimId d)
{
	return expr_make(g, OP_DIM, DT_I64, d, 0, NULL, 0);
}

ExprId
expr_read(Graph *g, TensorId t, const ExprId *sub, unsigned nsub, AccessId access)
{
	return expr_make(g, OP_READ, g->tensor.at[t].dtype, t, access, sub, nsub);
}

ExprId
expr_and(Graph *g, ExprId a, ExprId b)
{
	if (!a || a == b)
		return b;
	return b ? expr_binary(g, OP_AND, a, b) : a;
}

TensorId
tensor_new(Graph *g, TensorKind kind, Name name, Span at, DType dtype, unsigned rank, const ExprId *extent)
{
	Tensor t = {.kind = kind, .name = name, .at = at, .dtype = dtype, .rank = (uint8_t)rank};
	if (rank > TG_MAX_RANK)
		bug(g->arena, "tensor_new: rank %u", rank);
	for (unsigned a = 0; a < rank; a++)
		t.extent[a] = extent[a];
	vec_push(g->arena, &g->tensor, t);
	return g->tensor.n - 1;
}

TensorId
node_add(Graph *g, const Node *node, Name name, Span at, DType dtype, const ExprId *extent)
{
	TensorId t = tensor_new(g, TENSOR_NODE, name, at, dtype, node->npar, extent);
	Node copy = *node;
	copy.out = t;
	vec_push(g->arena, &g->node, copy);
	g->tensor.at[t].node = g->node.n - 1;
	return t;
}

enum { UNKNOWN, CLEAN, FAULTY };

/* Whether evaluating e can meet a fault, given which tensors carry one; state memoises per ExprId. */
static bool
expr_may_fault(const Graph *g, ExprId e, const bool *faulty, uint8_t *state)
{
	if (!e)
		return false;
	if (state[e] == UNKNOWN) {
		const Expr *p = expr_get(g, e);
		bool f = p->op == OP_READ && (p->access || faulty[p->ref]);
		for (unsigned k = 0; k < p->narg; k++)
			f |= expr_may_fault(g, g->arg.at[p->arg + k], faulty, state);
		state[e] = f ? FAULTY : CLEAN;
	}
	return state[e] == FAULTY;
}

static bool
node_may_fault(const Graph *g, const Node *n, const bool *faulty, uint8_t *state)
{
	bool f = expr_may_fault(g, n->guard, faulty, state) || expr_may_fault(g, n->body, faulty, state) ||
	         expr_may_fault(g, n->finish, faulty, state) || expr_may_fault(g, n->init, faulty, state);
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++)
		f |= expr_may_fault(g, n->axis[a].lo, faulty, state) ||
		     expr_may_fault(g, n->axis[a].hi, faulty, state) || (n->axis[a].cut != 0);
	for (unsigned a = 0; n->scatter && a < n->npar; a++)
		f |= expr_may_fault(g, n->target[a], faulty, state) || (n->target_access[a] != 0);
	return f;
}

/* Within a recurrence a member may read a later one: what one member has, all get. */
bool *
graph_may_fault(const Graph *g, Arena *scratch)
{
	bool *faulty = ARENA_ARRAY(scratch, bool, g->tensor.n);
	uint8_t *state = ARENA_ARRAY(scratch, uint8_t, g->expr.n);
	for (bool changed = true; changed;) {
		changed = false;
		memset(state, UNKNOWN, g->expr.n);
		for (uint32_t i = 0; i < g->node.n; i++) {
			const Node *n = &g->node.at[i];
			if (faulty[n->out] || !node_may_fault(g, n, faulty, state))
				continue;
			faulty[n->out] = true;
			for (uint32_t m = 0; n->recur && m < g->recur.at[n->recur].member.n; m++)
				faulty[g->recur.at[n->recur].member.at[m]] = changed = true;
		}
	}
	return faulty;
}
