/* nvptx_steps.c: where a thread of a GPU steps from row to row, each address is the one before and a step.
 *
 * A thread of a transpose has 16 rows of a tile at once, some rows apart. Each address by a product of its own is a multiplication of
 * 64 bits, a shift and an addition, eight instructions to assemble, where the step is the same for all: a product that leaves the
 * loop. LLVM's strength reduction finds that too, but takes a fifth of its time, and registers elsewhere (target.c).
 *
 * Known are the last addresses of a few views, where nothing but computing and memory was between, in one basic block. A view's next
 * one is a step away where all indices are the same but one, which is by a constant larger, as before. */
#include "codegen/lower.h"

#include <string.h>

#include "ir/bugs.h"

enum { OPERANDS = 2 };

typedef struct {
	ValId of[OPERANDS];
	int64_t more;
} Sum;

/* The constant of i + c. */
static bool
is_beyond(const Lower *l, ValId v)
{
	return lower_inst(l, v)->op == OP_ADD && lower_inst(l, lower_arg_id(l, v, 1))->op == OP_CONST;
}

/* i + c, (i + c) + j, i + (j + c) and i + j taken apart. */
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
		if (!is_beyond(l, v))
			continue;
		sum.of[n] = lower_arg_id(l, v, 0);
		sum.of[1] = v == index ? 0 : sum.of[1];
		sum.more = lower_inst(l, lower_arg_id(l, v, 1))->imm.i;
		break;
	}
	return sum;
}

/* By how much index b is larger than a; 0: that is not known. */
static int64_t
distance(const Lower *l, ValId a, ValId b)
{
	Sum x = parts_of(l, a), y = parts_of(l, b);
	if (y.of[0] == a && !y.of[1])
		return y.more;
	return x.of[0] == y.of[0] && x.of[1] == y.of[1] ? y.more - x.more : 0;
}

/* The axis along which the indices are a step beyond the last ones, and its length; false: there is none, or several. */
static bool
one_axis(const Lower *l, const LowerStep *s, const ValId *index, unsigned rank, unsigned *axis, int64_t *far)
{
	*far = 0;
	for (unsigned a = 0; a < rank; a++) {
		if (index[a] == s->index[a])
			continue;
		if (*far)
			return false;
		*axis = a;
		*far = distance(l, s->index[a], index[a]);
		if (*far <= 0)
			return false;
	}
	return *far > 0;
}

static LowerStep *
last_of(Lower *l, ValId view, Val base)
{
	for (unsigned n = 0; n < LOWER_MOST_STEPS; n++)
		if (l->step[n].view == view && l->step[n].base == base && l->step[n].block == LLVMGetInsertBlock(l->b))
			return &l->step[n];
	return NULL;
}

Val
lower_step(Lower *l, ValId view, Val base, const ValId *index, DType t)
{
	unsigned rank = (unsigned)lower_inst(l, view)->imm.i, axis = 0;
	LowerStep *s = last_of(l, view, base);
	int64_t far;
	if (!s || !one_axis(l, s, index, rank, &axis, &far) || (s->far && !BUG(step_as_before) && (s->far != far || s->axis != axis)))
		return NULL;
	ValId stride = lower_arg_id(l, view, 1 + rank + axis);
	if (lower_inst(l, stride)->op == OP_CONST)
		return NULL;
	LLVMTypeRef i8 = LLVMInt8TypeInContext(l->ctx);
	Val bytes = LLVMBuildMul(l->b, l->val[stride], lower_int(l, lower_i64(l), (uint64_t)(BUG(step_as_before) && s->far ? s->far : far) * (dtype_info[t].bits / 8u)), "");
	s->p = LLVMBuildGEP2(l->b, i8, s->p, &bytes, 1, "");
	s->far = s->far ? s->far : far;
	s->axis = axis;
	memcpy(s->index, index, rank * sizeof *index);
	return s->p;
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
