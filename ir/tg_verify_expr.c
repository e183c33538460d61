/* tg_verify_expr.c: the part of the graph verifier that looks into expressions. */
#include "ir/tg_types.h"
#include "ir/tg_verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool
verify_fail(Verify *x, const char *fmt, ...)
{
	char what[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	if (!x->error)
		x->error = arena_text(x->scratch, "%s: %s", x->where, what);
	return false;
}

#define NEED(cond, ...)                             \
	do {                                        \
		if (!(cond))                        \
			return verify_fail(x, __VA_ARGS__); \
	} while (0)

static uint64_t
imm_bits(const Expr *p)
{
	uint64_t b;
	memcpy(&b, &p->imm, sizeof b);
	return b;
}

static bool
same_expr(const Graph *g, ExprId a, ExprId b)
{
	const Expr *p = expr_get(g, a), *q = expr_get(g, b);
	if (p->op != q->op || p->dtype != q->dtype || p->narg != q->narg || p->ref != q->ref ||
	    p->access != q->access || imm_bits(p) != imm_bits(q))
		return false;
	for (unsigned k = 0; k < p->narg; k++)
		if (expr_arg(g, a, k) != expr_arg(g, b, k))
			return false;
	return true;
}

static uint32_t
hash_expr(const Graph *g, ExprId e)
{
	const Expr *p = expr_get(g, e);
	uint64_t h = ((uint64_t)p->op << 8 | p->dtype) ^ (uint64_t)p->ref << 20 ^ imm_bits(p) * 0x9e3779b97f4a7c15u;
	for (unsigned k = 0; k < p->narg; k++)
		h = (h ^ expr_arg(g, e, k)) * 0x9e3779b97f4a7c15u;
	return (uint32_t)(h >> 32) ^ p->access;
}

/* Equal expressions have equal ids. */
static bool
verify_distinct(Verify *x)
{
	const Graph *g = x->g;
	uint32_t n = 64;
	while (n < 2 * g->expr.n)
		n *= 2;
	ExprId *slot = ARENA_ARRAY(x->scratch, ExprId, n);
	for (ExprId e = 1; e < g->expr.n; e++) {
		uint32_t s = hash_expr(g, e) & (n - 1);
		for (; slot[s]; s = (s + 1) & (n - 1))
			NEED(!same_expr(g, slot[s], e), "expressions %u and %u are equal", slot[s], e);
		slot[s] = e;
	}
	return true;
}

bool
verify_pool(Verify *x)
{
	const Graph *g = x->g;
	x->where = "the pool";
	for (ExprId e = 1; e < g->expr.n; e++) {
		const Expr *p = expr_get(g, e);
		NEED(p->op > OP_NONE && p->op < OP_COUNT, "expression %u has no operation", e);
		NEED(p->dtype > DT_NONE && p->dtype < DT_COUNT, "expression %u has no type", e);
		NEED(p->narg <= TG_MAX_AXES && p->arg <= g->arg.n && p->narg <= g->arg.n - p->arg,
		     "expression %u has its operands outside the pool", e);
		for (unsigned k = 0; k < p->narg; k++)
			NEED(expr_arg(g, e, k) && expr_arg(g, e, k) < e, "expression %u has an operand with no smaller id", e);
	}
	return verify_distinct(x);
}

/* e == AXIS axis + offset? */
static bool
is_shifted_axis(const Graph *g, ExprId e, unsigned axis, int64_t *offset)
{
	*offset = 0;
	for (;;) {
		const Expr *p = expr_get(g, e);
		if (p->op == OP_AXIS)
			return p->ref == axis;
		if (p->op != OP_ADD && p->op != OP_SUB)
			return false;
		const Expr *a = expr_get(g, expr_arg(g, e, 0)), *b = expr_get(g, expr_arg(g, e, 1));
		bool right = b->op == OP_CONST;
		if (!right && (a->op != OP_CONST || p->op == OP_SUB))
			return false;
		int64_t c = right ? b->imm.i : a->imm.i;
		if (p->op == OP_SUB ? __builtin_sub_overflow(*offset, c, offset) : __builtin_add_overflow(*offset, c, offset))
			return false;
		e = expr_arg(g, e, right ? 0 : 1);
	}
}

/* A read of one member of a recurrence by another must meet an earlier step, or the same step and an
 * earlier member. */
static bool
verify_recur_read(Verify *x, ExprId e, const Node *reader)
{
	const Graph *g = x->g;
	const Expr *p = expr_get(g, e);
	const Node *read = tensor_node(g, p->ref);
	const Recur *r = &g->recur.at[reader->recur];
	for (unsigned k = 0; k < r->nseq; k++) {
		int64_t offset;
		NEED(is_shifted_axis(g, expr_arg(g, e, read->seq[k]), reader->seq[k], &offset),
		     "reads %%%u at more than a constant distance along sequential axis %u", p->ref, k);
		if (offset == 0)
			continue;
		NEED((offset < 0) == (r->dir[k] > 0), "reads a later step of %%%u", p->ref);
		return true;
	}
	NEED(x->recur_step[p->ref] < x->recur_step[reader->out],
	     "reads %%%u, which comes no earlier within a step", p->ref);
	return true;
}

static bool
verify_read(Verify *x, ExprId e, const Place *at)
{
	const Graph *g = x->g;
	const Expr *p = expr_get(g, e);
	NEED(p->ref > 0 && p->ref < g->tensor.n, "reads a tensor that does not exist");
	const Tensor *t = &g->tensor.at[p->ref];
	NEED(p->narg == t->rank, "reads %%%u of rank %u with %u subscripts", p->ref, t->rank, p->narg);
	NEED(p->dtype == t->dtype, "a read of %%%u is not of its type", p->ref);
	for (unsigned k = 0; k < p->narg; k++)
		NEED(expr_get(g, expr_arg(g, e, k))->dtype == DT_I64, "a subscript of %%%u is not i64", p->ref);
	NEED(p->access == 0 || (p->access < g->access.n && g->access.at[p->access].kind == ACCESS_GATHER),
	     "a read of %%%u names an access that is no gather", p->ref);
	if (!at->node) {
		NEED(t->rank == 0 && t->kind != TENSOR_NODE, "only rank-0 parameters may be read here");
		return true;
	}
	if (t->kind != TENSOR_NODE)
		return true;
	const Node *read = &g->node.at[t->node];
	if (read->recur && read->recur == at->node->recur)
		return verify_recur_read(x, e, at->node);
	NEED(p->ref < at->node->out, "reads %%%u, which comes later", p->ref);
	return true;
}

static bool
verify_types(Verify *x, ExprId e)
{
	const Graph *g = x->g;
	const Expr *p = expr_get(g, e);
	DType arg[TG_MAX_AXES];
	if (x->typed[e])
		return true;
	for (unsigned k = 0; k < p->narg; k++)
		arg[k] = (DType)expr_get(g, expr_arg(g, e, k))->dtype;
	const char *wrong = tg_type_error((Op)p->op, (DType)p->dtype, arg, p->narg);
	NEED(!wrong, "%s: %s", op_info[p->op].text, wrong);
	NEED(p->op != OP_CONST || tg_is_value((DType)p->dtype, p), "a constant is not a value of its type");
	x->typed[e] = true;
	return true;
}

/* What extents and launch checks are made of. */
static bool
is_launch_op(const Expr *p)
{
	return !dtype_is_float((DType)p->dtype) && p->dtype != DT_C64;
}

static bool
verify_one(Verify *x, ExprId e, const Place *at)
{
	const Expr *p = expr_get(x->g, e);
	if (!verify_types(x, e))
		return false;
	NEED(at->node || is_launch_op(p), "%s of %s where only integers may be", op_info[p->op].text,
	     dtype_info[p->dtype].text);
	if (p->op == OP_AXIS)
		NEED(p->ref >= at->axis_lo && p->ref < at->axis_hi, "%s uses axis %u, which it may not", at->part, p->ref);
	NEED(p->op != OP_IVAR, "%s has an index that is no axis", at->part);
	if (p->op == OP_DIM)
		NEED(p->ref > 0 && p->ref < x->g->dim.n, "a dim that does not exist");
	if (p->op == OP_ACC)
		NEED(at->acc != DT_NONE && p->dtype == at->acc, "acc, or of another type than what is reduced");
	if (p->op == OP_CAST && p->ref)
		NEED(expr_get(x->g, expr_arg(x->g, e, 0))->dtype == DT_F32 && dtype_is_float((DType)p->dtype) &&
		     dtype_info[p->dtype].bits < 32, "a free cast that does not round f32");
	if (op_info[p->op].flags & F_NARROW && p->ref)
		NEED(p->dtype == DT_F32 && (p->ref == DT_BF16 || p->ref == DT_F16), "a narrowed function, not of f32 or to no narrow float");
	if (p->op == OP_TOUCHED)
		NEED(at->acc != DT_NONE, "touched outside finish");
	return p->op != OP_READ || verify_read(x, e, at);
}

typedef struct {
	Verify *x;
	const Place *at;
	bool ok;
} Visit;

static void
visit(void *user, ExprId e)
{
	Visit *v = user;
	v->ok = v->ok && verify_one(v->x, e, v->at);
}

bool
verify_expr(Verify *x, ExprId e, DType want, const Place *at)
{
	NEED(e > 0 && e < x->g->expr.n, "%s is not an expression", at->part);
	Visit v = {x, at, true};
	expr_walk(x->g, x->scratch, e, visit, &v);
	if (!v.ok)
		return false;
	NEED(want == DT_NONE || expr_get(x->g, e)->dtype == want, "%s is %s, not %s", at->part,
	     dtype_info[expr_get(x->g, e)->dtype].text, dtype_info[want].text);
	return true;
}
