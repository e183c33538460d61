/* cleanup_multiple.c: quotients and remainders by a power of two of sums whose terms are multiples of it but
 * for a constant, see cleanup.h. Lanes side by side in a thread stand a constant apart, so those that have
 * one quotient find it to be one value: four elements share the words of rand. Of terms that are multiples of a
 * smaller power, what the constant has below that is lost in the quotient: rows of a thread's group share theirs. */
#include "passes/tile/cleanup.h"

#include "ir/tir_slot.h"

enum { MOST_TERMS = 8, MOST_DEPTH = 8 };

typedef struct {
	ValId term[MOST_TERMS];
	unsigned n;
	uint64_t rest; /* the sum of the constants */
	bool whole;    /* all terms are here */
} Terms;

static const TirInst *
int_constant(const TirKernel *k, ValId v)
{
	const TirInst *p = tir_inst(k, v);
	return p->op == OP_CONST && dtype_is_int((DType)p->type.dtype) ? p : NULL;
}

/* A power of two, at most `most`, that divides v, as integers wrap. */
static uint64_t
multiple_of(const TirKernel *k, ValId v, uint64_t most, unsigned depth)
{
	const TirInst *p = tir_inst(k, v);
	uint64_t n = 1, a, b;
	if (depth == 0 || !dtype_is_int((DType)p->type.dtype))
		return 1;
	switch (p->op) {
	case OP_CONST:
		while (n < most && !((uint64_t)p->imm.i & n))
			n *= 2;
		return n;
	case OP_BLOCKARG: /* a loop's index, whose place is behind the loop */
		if (p->imm.i != 0 || tir_inst(k, v - 1)->op != OP_FOR)
			return 1;
		a = multiple_of(k, tir_arg(k, v - 1, 0), most, depth - 1);
		b = multiple_of(k, tir_arg(k, v - 1, 2), most, depth - 1);
		return a < b ? a : b;
	case OP_SCALAR:
		n = k->scalar.at[p->imm.i].multiple;
		return n == 0 ? 1 : n < most ? n : most;
	case OP_CAST: /* the low bits stay */
		return dtype_is_int((DType)tir_inst(k, tir_arg(k, v, 0))->type.dtype) && dtype_info[p->type.dtype].bits >= 32
		               ? multiple_of(k, tir_arg(k, v, 0), most, depth - 1) : 1;
	case OP_SPLAT:
		return multiple_of(k, tir_arg(k, v, 0), most, depth - 1);
	case OP_ADD: case OP_SUB: case OP_MUL:
		a = multiple_of(k, tir_arg(k, v, 0), most, depth - 1);
		b = multiple_of(k, tir_arg(k, v, 1), most, depth - 1);
		if (p->op == OP_MUL)
			return a * b < most ? a * b : most;
		return a < b ? a : b;
	default:
		return 1;
	}
}

static void
add_terms(const TirKernel *k, ValId v, Terms *t, unsigned depth)
{
	const TirInst *p = tir_inst(k, v), *c = int_constant(k, v);
	if (c) {
		t->rest += (uint64_t)c->imm.i;
	} else if (p->op == OP_ADD && depth > 0) {
		add_terms(k, tir_arg(k, v, 0), t, depth - 1);
		add_terms(k, tir_arg(k, v, 1), t, depth - 1);
	} else if (t->n < MOST_TERMS) {
		t->term[t->n++] = v;
	} else {
		t->whole = false;
	}
}

bool
cleanup_split_multiple(TirKernel *to, const TirInst *p, const ValId *arg, CleanupEmitFn *emit, void *user, ValId *rounded,
                       int64_t *rest)
{
	const TirInst *by = p->narg == 2 ? int_constant(to, arg[1]) : NULL;
	if ((p->op != OP_IDIV && p->op != OP_IMOD) || !by || by->imm.i <= 1 || by->imm.i > 1 << 16 ||
	    (by->imm.i & (by->imm.i - 1)) || dtype_info[p->type.dtype].bits < 32)
		return false;
	uint64_t d = (uint64_t)by->imm.i, step = d; /* that divides all terms */
	Terms t = {.whole = true};
	add_terms(to, arg[0], &t, MOST_DEPTH);
	for (unsigned n = 0; n < t.n; n++)
		step = multiple_of(to, t.term[n], step, MOST_DEPTH);
	*rest = (int64_t)(t.rest & (step - 1));
	if (!t.whole || t.n == 0 || (step < d && (p->op == OP_IMOD || *rest == 0)))
		return false;
	TirInst sum = {.op = OP_ADD, .type = p->type, .narg = 2};
	TirInst constant = {.op = OP_CONST, .type = p->type,
	                    .imm.i = slot_wrap((DType)p->type.dtype, (int64_t)(t.rest & ~(step - 1)))};
	*rounded = t.term[0];
	for (unsigned n = 1; n < t.n; n++)
		*rounded = emit(user, to, &sum, (ValId[]){*rounded, t.term[n]});
	if (constant.imm.i)
		*rounded = emit(user, to, &sum, (ValId[]){*rounded, emit(user, to, &constant, NULL)});
	return true;
}
