/* nvptx_units.c: what TIR leaves to a unit of the GPU, one intrinsic each (codegen/units.def). What LLVM makes of them is one
 * instruction of PTX; none is contracted or computed in advance. */
#include "codegen/lower.h"

enum { PLAIN, OVER };

static const struct {
	const char *name;
	int over;
} units[OP_COUNT] = {
#define UNIT(id, name, over) [OP_##id] = {name, over},
#include "codegen/units.def"
};

Val
lower_unit(Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	const char *name = units[x->op].name;
	if (!units[x->op].over) {
		Val arg[2];
		for (uint32_t n = 0; n < x->narg; n++)
			arg[n] = lower_arg(l, v, n);
		return lower_call(l, name, NULL, 0, arg, x->narg);
	}
	Val made = lower_intrinsic(l, v, name);
	if (LLVMCanValueUseFastMathFlags(made))
		LLVMSetFastMathFlags(made, LLVMFastMathApproxFunc);
	return made;
}
