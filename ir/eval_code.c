/* eval_code.c: compiles an expression into slots and blocks (eval_run.h).
 *
 * Slots come in postorder, so operands have smaller slots, arms of a select included: when a lazy
 * operation runs in the root's block, all of the root's block below it has run, and the blocks of
 * its arms need not repeat it. */
#include "ir/eval_run.h"

static bool
is_lazy(Op op)
{
	return op == OP_SELECT || op == OP_AND || op == OP_OR;
}

static unsigned
own_depth(const Run *r, const Expr *e, unsigned npar, RecurId recur)
{
	if (e->op == OP_AXIS)
		return e->ref + 1;
	if (e->op == OP_ACC || e->op == OP_TOUCHED)
		return r->naxis + 1;
	const Node *n = e->op == OP_READ ? tensor_node(r->g, e->ref) : NULL;
	return n && n->recur && n->recur == recur ? npar : 0;
}

/* Whether steps of the recurrence may be joined, as terms of a reduction are: of one f32, along one axis, where the mode does
 * not keep them in order. */
static bool
may_join(const Run *r, RecurId recur)
{
	const Recur *c = &r->g->recur.at[recur];
	return recur && r->g->fp != FP_STRICT && c->nseq == 1 && c->member.n == 1 && r->g->tensor.at[c->member.at[0]].dtype == DT_F32;
}

static void
add_instr(Run *r, Code *c, ExprId x, unsigned npar, RecurId recur)
{
	const Expr *e = expr_get(r->g, x);
	Instr p = {.op = e->op, .dtype = e->dtype, .narg = e->narg, .ref = e->ref, .access = e->access};
	unsigned depth = own_depth(r, e, npar, recur);
	p.arg = c->arg.n;
	p.joined = e->op == OP_READ && depth && may_join(r, recur);
	for (unsigned k = 0; k < e->narg; k++) {
		uint32_t s = r->slot[expr_arg(r->g, x, k)] - 1;
		p.joined |= c->instr.at[s].joined;
		vec_push(r->arena, &c->arg, s);
		if (c->instr.at[s].depth > depth)
			depth = c->instr.at[s].depth;
	}
	if (e->narg)
		p.from = expr_get(r->g, expr_arg(r->g, x, 0))->dtype;
	p.depth = (uint8_t)depth;
	vec_push(r->arena, &c->instr, p);
	r->slot[x] = c->instr.n;
}

/* Pushes the operands that are not yet compiled; true if there was none. */
static bool
operands_ready(Run *r, ExprId x)
{
	const Expr *e = expr_get(r->g, x);
	uint32_t before = r->stack.n;
	for (unsigned k = e->narg; k-- > 0;) {
		ExprId operand = expr_arg(r->g, x, k);
		if (!r->slot[operand])
			vec_push(r->arena, &r->stack, operand);
	}
	return r->stack.n == before;
}

static Val
constant(const Expr *e)
{
	DTypeKind k = dtype_info[e->dtype].kind;
	return k == KIND_FLOAT || k == KIND_COMPLEX ? val_float(e->imm.f) : val_int(e->imm.i);
}

static void
add_all(Run *r, Code *c, ExprId root, unsigned npar, RecurId recur)
{
	VEC(ExprId) seen = {0};
	r->stack.n = 0;
	vec_push(r->arena, &r->stack, root);
	while (r->stack.n) {
		ExprId x = r->stack.at[r->stack.n - 1];
		if (!r->slot[x] && !operands_ready(r, x))
			continue;
		r->stack.n--;
		if (r->slot[x])
			continue;
		add_instr(r, c, x, npar, recur);
		vec_push(r->arena, &seen, x);
	}
	c->val = ARENA_ARRAY(r->arena, Val, seen.n);
	c->stamp = ARENA_ARRAY(r->arena, uint64_t, seen.n);
	for (uint32_t k = 0; k < seen.n; k++) { /* seen.at[k] has slot k */
		const Expr *e = expr_get(r->g, seen.at[k]);
		r->slot[seen.at[k]] = 0;
		if (e->op == OP_CONST) {
			c->val[k] = constant(e);
			c->stamp[k] = RUN_CONSTANT;
		}
	}
}

typedef struct {
	uint32_t *mark;   /* by slot: 1 + the block it was listed for */
	uint32_t *of;     /* by slot: 1 + the block that demands it, 0 none */
	VEC(uint32_t) stack;
} Blocks;

static void
push_strict(Run *r, const Code *c, Blocks *b, uint32_t s)
{
	const Instr *p = &c->instr.at[s];
	unsigned n = is_lazy((Op)p->op) ? 1 : p->narg;
	for (unsigned k = n; k-- > 0;)
		vec_push(r->arena, &b->stack, c->arg.at[p->arg + k]);
}

/* Lists what root demands strictly and the root's block does not have, operands first: a slot is
 * met twice on the stack, once to push its operands, once to list it. */
static void
list_block(Run *r, Code *c, Blocks *b, uint32_t id, uint32_t root)
{
	const uint32_t opened = UINT32_C(1) << 31;
	uint32_t begin = c->list.n;
	vec_push(r->arena, &b->stack, root);
	while (b->stack.n) {
		uint32_t s = b->stack.at[--b->stack.n];
		if (s & opened) {
			s &= ~opened;
			vec_push(r->arena, &c->list, s);
			continue;
		}
		if (b->mark[s] == id + 1 || b->mark[s] == 1 || c->instr.at[s].op == OP_CONST)
			continue;
		b->mark[s] = id + 1;
		uint32_t open = s | opened;
		vec_push(r->arena, &b->stack, open);
		push_strict(r, c, b, s);
	}
	c->block.at[id] = (CodeBlock){begin, c->list.n - begin};
}

static uint32_t
block_for(Run *r, Code *c, Blocks *b, uint32_t slot)
{
	if (!b->of[slot]) {
		vec_grow(r->arena, &c->block, 1);
		uint32_t id = c->block.n - 1;
		b->of[slot] = id + 1;
		list_block(r, c, b, id, slot);
	}
	return b->of[slot] - 1;
}

/* Blocks may list lazy operations of their own, so the list grows while it is walked. */
static void
make_blocks(Run *r, Code *c)
{
	Blocks b = {.mark = ARENA_ARRAY(r->arena, uint32_t, c->instr.n),
	            .of = ARENA_ARRAY(r->arena, uint32_t, c->instr.n)};
	vec_grow(r->arena, &c->block, 1);
	list_block(r, c, &b, 0, c->root);
	c->list.n = 0;
	for (uint32_t s = 0; s < c->instr.n; s++) /* in slot order, which the arms rely on */
		if (b.mark[s])
			vec_push(r->arena, &c->list, s);
	for (uint32_t k = 0; k < c->list.n; k++) {
		uint32_t s = c->list.at[k];
		Instr *p = &c->instr.at[s];
		for (unsigned arm = 1; is_lazy((Op)p->op) && arm < p->narg; arm++)
			p->block[arm - 1] = block_for(r, c, &b, c->arg.at[p->arg + arm]);
	}
}

/* How the value of a slot depends on the state: not at all; as a linear function of it; or in another way. */
typedef enum { FREE, LINEAR, BENT } Dependence;

static Dependence
dependence(const Code *c, const uint8_t *of, const Instr *p)
{
	uint8_t a[2] = {0}, most = FREE;
	for (unsigned k = 0; k < p->narg; k++) {
		uint8_t d = of[c->arg.at[p->arg + k]];
		most = d > most ? d : most;
		if (k < 2)
			a[k] = d;
	}
	if (most != LINEAR)
		return (Dependence)most;
	switch (p->op) {
	case OP_ADD: case OP_SUB: case OP_NEG: return LINEAR;
	case OP_MUL: return a[0] && a[1] ? BENT : LINEAR;
	case OP_FDIV: return a[1] ? BENT : LINEAR;
	case OP_SELECT: return a[0] ? BENT : LINEAR;
	default: return BENT;
	}
}

/* The slot of the one state that the root is linear in. */
static void
find_state(Run *r, Code *c)
{
	uint8_t *of = ARENA_ARRAY(r->arena, uint8_t, c->instr.n);
	uint32_t states = 0, state = 0;
	for (uint32_t s = 0; s < c->instr.n; s++) {
		const Instr *p = &c->instr.at[s];
		of[s] = (uint8_t)dependence(c, of, p);
		if (p->op != OP_READ || !p->joined)
			continue;
		states++;
		state = s;
		of[s] = of[s] == FREE ? LINEAR : BENT;
	}
	c->state = states == 1 && of[c->root] == LINEAR ? state + 1 : 0;
}

Code *
code_new(Run *r, ExprId e, unsigned npar, RecurId recur)
{
	if (!e)
		return NULL;
	Code *c = ARENA_NEW(r->arena, Code);
	add_all(r, c, e, npar, recur);
	c->root = c->instr.n - 1;
	make_blocks(r, c);
	find_state(r, c);
	return c;
}
