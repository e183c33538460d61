/* steps.c: see steps.h. */
#include "passes/schedule/point/steps.h"

static void
loop(TirKernel *k, ValId lo, ValId hi, unsigned step, ValId *carried, unsigned n, StepsBody *body, void *user)
{
	ValId i = tir_for(k, lo, hi, tir_int(k, DT_I64, step), carried, n);
	for (unsigned s = 0; s < step; s++)
		body(user, s ? tir_binary(k, OP_ADD, i, tir_int(k, DT_I64, s)) : i, carried);
	tir_end_for(k, carried, n);
}

void
steps_for(TirKernel *k, ValId hi, unsigned step, ValId *carried, unsigned n, StepsBody *body, void *user)
{
	const TirInst *x = tir_inst(k, hi);
	ValId zero = tir_int(k, DT_I64, 0);
	if (step == 1 || (x->op == OP_CONST && x->imm.i % step == 0)) {
		loop(k, zero, hi, step, carried, n, body, user);
		return;
	}
	ValId whole = tir_binary(k, OP_BAND, tir_cast(k, DT_U64, hi), tir_int(k, DT_U64, -(int64_t)step));
	whole = tir_cast(k, DT_I64, whole);
	loop(k, zero, whole, step, carried, n, body, user);
	loop(k, whole, hi, 1, carried, n, body, user);
}
