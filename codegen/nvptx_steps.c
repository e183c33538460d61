/* nvptx_steps.c: where a thread of a GPU steps from row to row, each address is the one before and a step.
 *
 * A thread of a transpose has 16 rows of a tile at once, some rows apart, one of a column's sum as many. Each address by a product of
 * its own is a multiplication of 64 bits, a shift and an addition, eight instructions to assemble, where the step is the same for all:
 * a product that leaves the loop. LLVM's strength reduction finds that too, but takes a fifth of its time, and registers elsewhere
 * (target.c). Its straight-line one takes a sixth of that of a product, more of a transpose's, and stays: without it four products of
 * the suite, which have no register to spare, spilled.
 *
 * Known are the last addresses of a few views, where nothing but computing and memory was between, also under masks, in one basic
 * block or what such masks cut it into. A view's next one is a step away where all indices are the same but one, which is by a constant
 * larger, or by a multiple of a value, as before. */
#include "codegen/lower.h"

#include <string.h>

#include "ir/bugs.h"

enum { OPERANDS = 2 };

typedef struct {
	ValId of[OPERANDS], times; /* times: of what `more` is a multiple; 0: of 1 */
	int64_t more;
} Sum;

/* The constant of i + c. */
static bool
is_beyond(const Lower *l, ValId v)
{
	return lower_inst(l, v)->op == OP_ADD && lower_inst(l, lower_arg_id(l, v, 1))->op == OP_CONST;
}

/* Of s * c, which is added to the other operand. */
static bool
is_multiple(const Lower *l, ValId v)
{
	return lower_inst(l, v)->op == OP_MUL && lower_inst(l, lower_arg_id(l, v, 1))->op == OP_CONST;
}

/* i + c, (i + c) + j, i + (j + c), i + s * c and i + j taken apart. */
static Sum
parts_of(const Lower *l, ValId index)
{
	Sum sum = {.of = {index}};
	if (lower_inst(l, index)->op != OP_ADD)
		return sum;
	for (unsigned n = 0; n < 2; n++)
		sum.of[n] = lower_arg_id(l, index, n);
	for (unsigned n = 0; n < 2; n++) {
		ValId v = is_beyond(l, index) ? index : lower_arg_id(l, index, n);
		if (v != index && is_multiple(l, v))
			return (Sum){{sum.of[1 - n]}, lower_arg_id(l, v, 0), lower_inst(l, lower_arg_id(l, v, 1))->imm.i};
		if (!is_beyond(l, v))
			continue;
		sum.of[n] = lower_arg_id(l, v, 0);
		sum.of[1] = v == index ? 0 : sum.of[1];
		sum.more = lower_inst(l, lower_arg_id(l, v, 1))->imm.i;
		break;
	}
	return sum;
}

/* By how much index b is larger than a, times a value or 1; 0: that is not known. */
static int64_t
distance(const Lower *l, ValId a, ValId b, ValId *times)
{
	Sum x = parts_of(l, a), y = parts_of(l, b);
	*times = y.times;
	if (y.of[0] == a && !y.of[1])
		return y.more;
	return x.of[0] == y.of[0] && x.of[1] == y.of[1] && (x.times == y.times || BUG(step_of_any_multiple)) ? y.more - x.more : 0;
}

/* The axis along which the indices are a step beyond the last ones, and its length; false: there is none, or several. */
static bool
one_axis(const Lower *l, const LowerStep *s, const ValId *index, unsigned rank, LowerStep *next)
{
	next->far = 0;
	for (unsigned a = 0; a < rank; a++) {
		if (index[a] == s->index[a])
			continue;
		if (next->far)
			return false;
		next->axis = a;
		next->far = distance(l, s->index[a], index[a], &next->times);
		if (next->far <= 0)
			return false;
	}
	return next->far > 0;
}

static LowerStep *
last_of(Lower *l, ValId view, Val base)
{
	for (unsigned n = 0; n < LOWER_MOST_STEPS; n++)
		if (l->step[n].view == view && l->step[n].base == base && l->step[n].block == LLVMGetInsertBlock(l->b))
			return &l->step[n];
	return NULL;
}

/* From one to the next, in bytes; NULL: that is known while compiling, as that of addresses in shared memory. */
static Val
step_of(Lower *l, ValId view, const LowerStep *next, int64_t far, DType t)
{
	ValId stride = lower_arg_id(l, view, 1 + (unsigned)lower_inst(l, view)->imm.i + next->axis);
	bool known = lower_inst(l, stride)->op == OP_CONST;
	if (known && !next->times)
		return NULL;
	uint64_t more = (uint64_t)far * (dtype_info[t].bits / 8u) * (known ? (uint64_t)lower_inst(l, stride)->imm.i : 1);
	Val of = next->times ? l->val[next->times] : l->val[stride];
	if (next->times && !known)
		of = LLVMBuildMul(l->b, of, l->val[stride], "");
	return LLVMBuildMul(l->b, of, lower_int(l, lower_i64(l), more), "");
}

Val
lower_step(Lower *l, ValId view, Val base, const ValId *index, DType t)
{
	unsigned rank = (unsigned)lower_inst(l, view)->imm.i;
	LowerStep *s = last_of(l, view, base), next = {.far = 0};
	if (!s || !one_axis(l, s, index, rank, &next))
		return NULL;
	bool same = s->far == next.far && s->axis == next.axis && s->times == next.times;
	if (s->far && !same && !BUG(step_as_before))
		return NULL;
	Val bytes = step_of(l, view, &next, BUG(step_as_before) && s->far ? s->far : next.far, t);
	if (!bytes)
		return NULL;
	s->p = LLVMBuildGEP2(l->b, LLVMInt8TypeInContext(l->ctx), s->p, &bytes, 1, "");
	s->far = s->far ? s->far : next.far;
	s->axis = next.axis;
	s->times = next.times;
	memcpy(s->index, index, rank * sizeof *index);
	return s->p;
}

void
lower_steps_go_on(Lower *l, LLVMBasicBlockRef from)
{
	for (unsigned n = 0; n < LOWER_MOST_STEPS; n++)
		if (l->step[n].block == from)
			l->step[n].block = LLVMGetInsertBlock(l->b);
}

void
lower_step_from(Lower *l, ValId view, Val base, const ValId *index, Val p)
{
	unsigned rank = (unsigned)lower_inst(l, view)->imm.i;
	if (rank > LOWER_MOST_AXES)
		return;
	LowerStep *s = last_of(l, view, base);
	if (!s)
		s = &l->step[l->nstep++ % LOWER_MOST_STEPS];
	*s = (LowerStep){.view = view, .base = base, .p = p, .block = LLVMGetInsertBlock(l->b)};
	memcpy(s->index, index, rank * sizeof *index);
}
