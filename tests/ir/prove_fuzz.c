/* prove_fuzz.c: random facts and goals. Whatever prove() and prove_bound() say must hold under every
 * small assignment that satisfies the facts; found by trying them all.
 *
 * usage: prove_fuzz CASES [SEED] */
#include <stdio.h>
#include <stdlib.h>

#include "int_value.h"
#include "ir/prove.h"

enum { LOW = -2, VALUES = 7, DIMS = 2, IVARS = 3 };

typedef struct {
	Graph *g;
	Random *r;
	ExprId leaf[DIMS + IVARS];
} Make;

typedef struct {
	ExprId fact[12];
	unsigned nfact;
	ExprId v[IVARS], lo[IVARS], hi[IVARS];
	unsigned nrange;
} Case;

static ExprId
num(Make *m, int64_t v)
{
	return expr_int(m->g, DT_I64, v);
}

static ExprId
random_leaf(Make *m)
{
	return m->leaf[random_below(m->r, DIMS + IVARS)];
}

static ExprId
random_int(Make *m, unsigned depth)
{
	static const Op ops[] = {OP_ADD, OP_ADD, OP_SUB, OP_SUB, OP_MUL, OP_MUL, OP_IDIV, OP_IMOD, OP_MIN, OP_MAX};
	unsigned kind = random_below(m->r, 16);
	if (depth == 0 || kind < 4)
		return kind == 0 || kind == 5 ? num(m, (int64_t)random_below(m->r, 7) - 2) : random_leaf(m);
	if (kind == 4)
		return expr_unary(m->g, OP_ABS, random_int(m, depth - 1));
	if (kind == 5) {
		ExprId c = expr_binary(m->g, OP_LT, random_leaf(m), random_leaf(m));
		return expr_select(m->g, c, random_int(m, depth - 1), random_int(m, depth - 1));
	}
	if (kind == 6) {
		ExprId sub = random_leaf(m);
		return expr_read(m->g, 1, &sub, 1, 0);
	}
	ExprId a = random_int(m, depth - 1);
	Op op = ops[random_below(m->r, sizeof ops / sizeof *ops)];
	bool constant = (op == OP_IDIV || op == OP_IMOD || op == OP_MUL) && random_below(m->r, 2);
	ExprId b = constant ? num(m, (int64_t)random_below(m->r, 6) - 1) : random_int(m, depth - 1);
	return expr_binary(m->g, op, a, b);
}

static ExprId
random_cond(Make *m, unsigned depth)
{
	static const Op ops[] = {OP_LT, OP_LE, OP_LT, OP_LE, OP_EQ, OP_NE};
	unsigned kind = random_below(m->r, 10);
	if (depth > 0 && kind < 2)
		return expr_binary(m->g, kind ? OP_AND : OP_OR, random_cond(m, depth - 1), random_cond(m, depth - 1));
	if (depth > 0 && kind == 2)
		return expr_unary(m->g, OP_NOT, random_cond(m, depth - 1));
	return expr_binary(m->g, ops[random_below(m->r, 6)], random_int(m, 2), random_int(m, random_below(m->r, 3)));
}

/* Divisibility, equalities and simple bounds come up as often as anything else. */
static ExprId
random_fact(Make *m)
{
	ExprId zero = num(m, 0), a = random_leaf(m), b = random_leaf(m);
	switch (random_below(m->r, 6)) {
	case 0: return expr_binary(m->g, OP_EQ, expr_binary(m->g, OP_IMOD, a, num(m, 1 + random_below(m->r, 4))), zero);
	case 1: return expr_binary(m->g, OP_EQ, expr_binary(m->g, OP_IMOD, a, b), zero);
	case 2: return expr_binary(m->g, OP_EQ, a, random_int(m, 1));
	case 3: return expr_binary(m->g, OP_LE, zero, a);
	}
	return random_cond(m, 2);
}

static void
make_case(Make *m, Facts *f, Case *c)
{
	*c = (Case){0};
	c->nrange = random_below(m->r, IVARS + 1);
	for (unsigned k = 0; k < c->nrange; k++) {
		c->v[k] = m->leaf[DIMS + k];
		c->lo[k] = random_below(m->r, 3) ? num(m, 0) : random_int(m, 1);
		c->hi[k] = random_below(m->r, 3) ? m->leaf[random_below(m->r, DIMS)] : random_int(m, 2);
		facts_push_range(f, c->v[k], c->lo[k], c->hi[k]);
	}
	for (unsigned n = random_below(m->r, 4); c->nfact < n;) {
		c->fact[c->nfact] = random_fact(m);
		facts_push(f, c->fact[c->nfact++]);
	}
}

static int64_t
read_table(const int64_t *sub, unsigned nsub, TensorId t)
{
	(void)nsub;
	(void)t;
	return ((sub[0] * 37 + 11) % 13 + 13) % 13 - 4;
}

static bool
satisfied(Make *m, IntEnv *env, const Case *c, bool ranges_only)
{
	for (unsigned k = 0; k < c->nrange; k++) {
		int64_t v = int_value(m->g, env, c->v[k]);
		if (v < int_value(m->g, env, c->lo[k]) || v >= int_value(m->g, env, c->hi[k]))
			return false;
	}
	for (unsigned k = 0; k < c->nfact && !ranges_only; k++)
		if (!int_value(m->g, env, c->fact[k]))
			return false;
	return true;
}

static void
assign(IntEnv *env, unsigned long code)
{
	*env = (IntEnv){.read = read_table};
	for (int k = 0; k < DIMS + IVARS; k++, code /= VALUES)
		*(k < DIMS ? &env->dim[k + 1] : &env->ivar[k - DIMS]) = (int64_t)(code % VALUES) + LOW;
}

static unsigned long
assignments(void)
{
	unsigned long n = 1;
	for (int k = 0; k < DIMS + IVARS; k++)
		n *= VALUES;
	return n;
}

static void
print_expr(const Graph *g, ExprId e)
{
	const Expr *p = expr_get(g, e);
	if (p->op == OP_CONST)
		printf("%lld", (long long)p->imm.i);
	else if (p->narg == 0)
		printf("%c", (int)(p->op == OP_DIM ? 'A' + p->ref : 'i' + p->ref));
	else {
		printf("%s(", op_info[p->op].text);
		for (unsigned k = 0; k < p->narg; k++) {
			printf("%s", k ? ", " : "");
			print_expr(g, g->arg.at[p->arg + k]);
		}
		printf(")");
	}
}

static void
complain(Make *m, const Case *c, ExprId goal, const char *what)
{
	for (unsigned k = 0; k < c->nrange; k++) {
		print_expr(m->g, c->v[k]);
		printf(" in ");
		print_expr(m->g, c->lo[k]);
		printf(" .. ");
		print_expr(m->g, c->hi[k]);
		printf("\n");
	}
	for (unsigned k = 0; k < c->nfact; k++) {
		print_expr(m->g, c->fact[k]);
		printf("\n");
	}
	printf("%s: ", what);
	print_expr(m->g, goal);
	printf("\n");
}

/* Every assignment that satisfies the facts: goal holds; got >= e (upper) or <= e. */
static bool
holds(Make *m, const Case *c, ExprId goal, ExprId e, ExprId got, bool upper)
{
	for (unsigned long code = 0; code < assignments(); code++) {
		IntEnv env;
		assign(&env, code);
		if (!satisfied(m, &env, c, false))
			continue;
		bool fine = true;
		if (goal)
			fine = int_value(m->g, &env, goal);
		else {
			int64_t x = int_value(m->g, &env, e), b = int_value(m->g, &env, got);
			fine = upper ? x <= b : x >= b;
		}
		if (!fine && !env.overflow) {
			complain(m, c, goal ? goal : e, goal ? "UNSOUND goal" : "UNSOUND bound");
			return false;
		}
	}
	return true;
}

static bool
one_case(unsigned long seed, unsigned *proved, unsigned *bounded)
{
	Unwind unwind;
	Arena arena;
	Random r = {seed * 2654435761u + 12345};
	arena_init(&arena, &host_default()->memory, &unwind);
	if (setjmp(unwind.env)) {
		printf("unwound: %s\n", unwind.text);
		return false;
	}
	Graph *g = graph_new(&arena, names_new(&arena));
	Make m = {.g = g, .r = &r};
	ExprId extent = expr_int(g, DT_I64, 1000);
	tensor_new(g, TENSOR_INPUT, 0, (Span){0}, DT_I64, 1, &extent);
	for (int k = 0; k < DIMS + IVARS; k++)
		m.leaf[k] = k < DIMS ? expr_dim(g, (DimId)k + 1) : expr_ivar(g, (uint32_t)(k - DIMS));
	Facts *f = facts_new(g, &arena);
	Case c;
	make_case(&m, f, &c);
	ExprId goal = random_cond(&m, 1), e = random_int(&m, 2);
	bool ok = true;
	if (prove(f, goal)) {
		++*proved;
		ok = holds(&m, &c, goal, 0, 0, false);
	}
	bool upper = random_below(&r, 2);
	ExprId got = random_below(&r, 4) ? 0 : prove_bound(f, e, upper);
	if (got && got != index_norm(g, e)) {
		++*bounded;
		ok &= holds(&m, &c, 0, e, got, upper);
	}
	arena_free(&arena);
	return ok;
}

int
main(int argc, char **argv)
{
	unsigned long cases = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
	unsigned long seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
	unsigned proved = 0, bounded = 0, wrong = 0;
	for (unsigned long k = 0; k < cases && wrong < 5; k++)
		if (!one_case(seed + k, &proved, &bounded)) {
			printf("case %lu\n", seed + k);
			wrong++;
		}
	printf("%lu cases from seed %lu: %u proved, %u bounds, %u wrong\n", cases, seed, proved, bounded, wrong);
	return wrong > 0 || proved < cases / 50 || bounded < cases / 200;
}
