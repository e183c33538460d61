/* image_expr.c: launch expressions as postfix words. Integers of every width are held in i64, wrapped
 * to their type after each operation that can leave it (also to u64, which changes nothing and says that
 * it may); && || and select may evaluate everything,
 * since all operations are total. What stands in several places is written once, and its value shared: a launch of new sizes
 * evaluates each once. */
#include "codegen/image_write.h"

enum {
	MAX_WORDS = 1 << 20,  /* of an expression */
	LEAST_SHARED = 4,     /* operations that are worth it */
	MAX_SIZE = 1 << 20
};

ExprWriter
image_expr_writer(Arena *a, const Graph *g, Words *words, const int32_t *param, uint32_t *deepest)
{
	uint32_t n = g->expr.n;
	ExprWriter w = {.arena = a, .graph = g, .words = words, .param = param, .deepest = deepest};
	uint32_t **const by_expr[] = {&w.at, &w.apart, &w.uses, &w.size, &w.slot};
	for (unsigned k = 0; k < sizeof by_expr / sizeof *by_expr; k++)
		*by_expr[k] = ARENA_ARRAY(a, uint32_t, n);
	for (ExprId e = 1; e < n; e++) { /* operands are made before what has them */
		uint64_t size = 1;
		for (unsigned k = 0; k < expr_get(g, e)->narg; k++) {
			ExprId arg = expr_arg(g, e, k);
			w.uses[arg]++;
			size += w.size[arg];
		}
		w.size[e] = size < MAX_SIZE ? (uint32_t)size : MAX_SIZE;
	}
	return w;
}

static void
put(ExprWriter *w, uint32_t op, uint32_t operand)
{
	static const uint8_t pops[IMG_OP_COUNT] = {
#define IMAGE_OP(id, pops, what) pops,
#include "ir/image_ops.def"
	};
	w->depth = w->depth - pops[op] + (op != IMG_END);
	if (w->depth > *w->deepest)
		*w->deepest = w->depth;
	vec_push(w->arena, w->words, op | operand << 8);
}

static void
put_const(ExprWriter *w, int64_t v)
{
	put(w, IMG_CONST, 0);
	vec_push(w->arena, w->words, (uint32_t)v);
	vec_push(w->arena, w->words, (uint32_t)((uint64_t)v >> 32));
}

/* --- one expression --- */

static bool
is_whole(DType t)
{
	return dtype_is_int(t) || t == DT_BOOL;
}

static void
put_leaf(ExprWriter *w, const Expr *e)
{
	if (e->op == OP_CONST)
		put_const(w, e->imm.i);
	else if (e->op == OP_DIM)
		put(w, IMG_DIM, e->ref - 1);
	else if (e->op == OP_READ && w->graph->tensor.at[e->ref].kind == TENSOR_SCALAR)
		put(w, IMG_PARAM, (uint32_t)w->param[e->ref]);
	else
		w->why = arena_text(w->arena, "a launch expression can't use '%s'", op_info[e->op].text);
}

/* The image's operation for op on operands of type t, signed and narrow unsigned ones as i64. */
static uint32_t
image_op(Op op, DType t)
{
	static const uint8_t as_i64[OP_COUNT] = {
		[OP_ADD] = IMG_ADD, [OP_SUB] = IMG_SUB, [OP_MUL] = IMG_MUL, [OP_IDIV] = IMG_DIV,
		[OP_IMOD] = IMG_MOD, [OP_MIN] = IMG_MIN, [OP_MAX] = IMG_MAX, [OP_NEG] = IMG_NEG,
		[OP_ABS] = IMG_ABS, [OP_EQ] = IMG_EQ, [OP_NE] = IMG_NE, [OP_LT] = IMG_LT,
		[OP_LE] = IMG_LE, [OP_AND] = IMG_AND, [OP_OR] = IMG_OR, [OP_NOT] = IMG_NOT,
		[OP_SELECT] = IMG_SELECT, [OP_POW] = IMG_POW, [OP_SIGN] = IMG_SIGN};
	static const uint8_t as_u64[OP_COUNT] = {
		[OP_IDIV] = IMG_UDIV, [OP_IMOD] = IMG_UMOD, [OP_MIN] = IMG_UMIN, [OP_MAX] = IMG_UMAX,
		[OP_LT] = IMG_ULT, [OP_LE] = IMG_ULE, [OP_POW] = IMG_UPOW};
	return t == DT_U64 && as_u64[op] ? as_u64[op] : as_i64[op];
}

static void
put_cast(ExprWriter *w, DType to)
{
	if (to == DT_BOOL) {
		put_const(w, 0);
		put(w, IMG_NE, 0);
	} else if (to != DT_I64) {
		put(w, IMG_WRAP, (uint32_t)to);
	}
}

/* The operation of e; its operands have been pushed. */
static void
put_op(ExprWriter *w, const Expr *e)
{
	Op op = (Op)e->op;
	DType t = (DType)w->graph->expr.at[w->graph->arg.at[e->arg + e->narg - 1]].dtype;
	uint32_t image = image_op(op, t);
	bool is_unsigned = dtype_info[t].kind == KIND_UINT;
	if (op == OP_CAST)
		put_cast(w, (DType)e->dtype);
	else if (is_unsigned && op == OP_SIGN)
		put_cast(w, DT_BOOL);
	else if (is_unsigned && op == OP_ABS)
		return;
	else if (image == IMG_END)
		w->why = arena_text(w->arena, "a launch expression can't use '%s'", op_info[op].text);
	else {
		put(w, image, 0);
		if (dtype_is_int((DType)e->dtype) && op != OP_SELECT)
			put_cast(w, (DType)e->dtype);
	}
}

typedef struct {
	ExprId e;
	uint32_t next; /* operand to visit */
} Visit;

/* All of root, but for what is shared already. */
static void
put_expr(ExprWriter *w, ExprId root)
{
	const Graph *g = w->graph;
	uint32_t first = w->words->n;
	VEC(Visit) stack = {0};
	vec_push(w->arena, &stack, ((Visit){root, 0}));
	while (stack.n && !w->why) {
		Visit *top = &stack.at[stack.n - 1];
		const Expr *e = expr_get(g, top->e);
		if (!is_whole((DType)e->dtype))
			w->why = arena_text(w->arena, "a launch expression can't have type %s",
			                    dtype_info[e->dtype].text);
		else if (w->words->n - first > MAX_WORDS)
			w->why = "a launch expression is too large";
		else if (w->shares && w->slot[top->e])
			put(w, IMG_SHARED, w->slot[top->e] - 1), stack.n--;
		else if (e->narg == 0)
			put_leaf(w, e), stack.n--;
		else if (top->next == e->narg)
			put_op(w, e), stack.n--;
		else {
			ExprId child = expr_arg(g, top->e, top->next++);
			vec_push(w->arena, &stack, ((Visit){child, 0}));
		}
	}
}

static void
share(ExprWriter *w, ExprId e)
{
	uint32_t first = w->words->n;
	put_expr(w, e);
	put(w, IMG_END, 0);
	vec_push(w->arena, &w->shared, first);
	w->slot[e] = w->shared.n;
}

/* What is worth it of root, its operands before it: before a word of what shares it is written. */
static void
share_parts(ExprWriter *w, ExprId root)
{
	const Graph *g = w->graph;
	VEC(Visit) stack = {0};
	if (w->size[root] > LEAST_SHARED)
		vec_push(w->arena, &stack, ((Visit){root, 0}));
	while (stack.n && !w->why && w->shares) {
		Visit *top = &stack.at[stack.n - 1];
		ExprId e = top->e;
		if (w->slot[e] || top->next == expr_get(g, e)->narg) {
			if (!w->slot[e] && w->uses[e] > 1)
				share(w, e);
			stack.n--;
			continue;
		}
		ExprId child = expr_arg(g, e, top->next++);
		if (w->size[child] > LEAST_SHARED && !w->slot[child])
			vec_push(w->arena, &stack, ((Visit){child, 0}));
	}
}

static uint32_t
write_expr(ExprWriter *w, ExprId e, bool shares)
{
	uint32_t *at = shares ? w->at : w->apart;
	if (at[e])
		return at[e] - 1;
	w->shares = shares;
	share_parts(w, e);
	uint32_t first = w->words->n;
	put_expr(w, e);
	put(w, IMG_END, 0);
	if (w->why)
		return 0;
	at[e] = first + 1;
	return first;
}

uint32_t
image_expr(ExprWriter *w, ExprId e)
{
	return write_expr(w, e, true);
}

uint32_t
image_expr_apart(ExprWriter *w, ExprId e)
{
	return write_expr(w, e, false);
}

uint32_t
image_number(ExprWriter *w, int64_t v)
{
	uint32_t first = w->words->n;
	put_const(w, v);
	put(w, IMG_END, 0);
	return first;
}

uint32_t
image_product(ExprWriter *w, const ExprId *e, unsigned n)
{
	w->shares = true;
	for (unsigned k = 0; k < n; k++)
		share_parts(w, e[k]);
	uint32_t first = w->words->n;
	put_const(w, 1);
	for (unsigned k = 0; k < n; k++) {
		put_expr(w, e[k]);
		put(w, IMG_MUL, 0);
	}
	put(w, IMG_END, 0);
	return w->why ? 0 : first;
}
