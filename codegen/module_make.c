/* module_make.c: a module of kernels by LLVM. The texts come before the code, which spends the module. */
#include "codegen/job.h"
#include "codegen/lower.h"

bool
module_make(Emit *e, const ModuleJob *j, JobMade *out)
{
	emit_new_module(e);
	for (uint32_t k = 0; k < j->kernel.n; k++) {
		const JobKernel *x = &j->kernel.at[k];
		e->hands |= e->gpu && tir_hands(x->tir);
		lower_kernel(e->arena, e->module, e->builder, &e->target, x->tir, x->symbol, x->serial);
	}
	if (!emit_optimise(e))
		return false;
	if (j->want_llvm)
		out->llvm = emit_llvm(e);
	if (j->want_asm && !emit_assembly(e, &out->assembly))
		return false;
	if (!j->want_code)
		return true;
	return e->gpu ? emit_ptx(e, &out->code, &out->n) : emit_object(e, &out->code, &out->n);
}
