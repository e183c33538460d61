/* contract: a * b + c becomes one FMA.
 *
 * in     a kernel of a graph whose mode allows it, on a target that has FMA
 * out    ADD and SUB of floats take a product that nothing else uses into an FMA; the product's own
 *        instruction is left behind without users
 * fp     reassoc: one rounding less
 * tests  tests/tile/contract_test.c
 *
 * Runs before expand_math, whose sums must keep their roundings. Where both operands are such products
 * the second one is contracted: in a running sum, acc + a * b, that is the new term. */
#include "passes/tile/tile.h"
#include "ir/bugs.h"

typedef struct {
	const uint32_t *uses; /* by ValId of the old kernel */
} Contract;

static const uint32_t *
count_uses(const TirKernel *k, Arena *a)
{
	uint32_t *uses = ARENA_ARRAY(a, uint32_t, k->inst.n);
	for (uint32_t n = 0; n < k->arg.n; n++)
		uses[k->arg.at[n]]++;
	return uses;
}

static bool
is_product(const Contract *c, const TirKernel *from, ValId v)
{
	return tir_inst(from, v)->op == OP_MUL && c->uses[v] == 1;
}

static bool
is_sum(const TirInst *p)
{
	return (p->op == OP_ADD || p->op == OP_SUB) && dtype_is_float((DType)p->type.dtype);
}

/* The operand of sum v that is a product which it alone reads, the second one of two; 2: there is none. */
static unsigned
product_in(const Contract *c, const TirKernel *from, ValId v)
{
	for (unsigned n = 2; n-- > 0;)
		if (is_product(c, from, tir_arg(from, v, n)))
			return n;
	return 2;
}

/* product + rest, or with either negated, where `product` is a MUL of the new kernel. */
static ValId
fuse(TirKernel *to, ValId product, bool minus_product, ValId rest, bool minus_rest)
{
	ValId a = tir_arg(to, product, 0), b = tir_arg(to, product, 1);
	if (minus_product)
		a = tir_unary(to, OP_NEG, a);
	if (minus_rest)
		rest = tir_unary(to, OP_NEG, rest);
	return tir_fma(to, a, b, rest);
}

static ValId
contract(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	const Contract *c = user;
	const TirInst *p = tir_inst(from, v);
	unsigned n = is_sum(p) ? product_in(c, from, v) : 2;
	if (n == 2)
		return tir_copy_inst(to, from, v, arg);
	bool sub = p->op == OP_SUB;
	return fuse(to, arg[n], sub && n == 1 && !BUG(contract_loses_sign), arg[1 - n], sub && n == 0);
}

TirKernel *
tile_contract(const TirKernel *k, Arena *a)
{
	Contract c = {.uses = count_uses(k, a)};
	for (ValId v = 1; v < k->inst.n; v++)
		if (is_sum(tir_inst(k, v)) && product_in(&c, k, v) < 2)
			return tir_rewrite(k, a, contract, &c);
	return (TirKernel *)(uintptr_t)k;
}
