/* machines.c: LLVM's target machines, kept for the next compilation. One takes a tenth of a small kernel's
 * compilation to make and to fill, and what it was filled with is of no one LLVM context. A machine serves one
 * compilation at a time: who takes it owns it until it is given back. */
#include "codegen/machines.h"

#include <string.h>

void
codegen_machines_init(CodegenMachines *m)
{
	*m = (CodegenMachines){0};
	pthread_mutex_init(&m->lock, NULL); /* can't fail with default attributes on Linux */
}

void
codegen_machines_free(CodegenMachines *m)
{
	for (unsigned k = 0; k < m->n; k++)
		LLVMDisposeTargetMachine(m->idle[k].machine);
	pthread_mutex_destroy(&m->lock);
}

static bool
is_for(const CodegenMachine *i, const Target *t, int level)
{
	return i->arch == (int)t->arch && i->features == t->features && i->sm == t->sm && i->level == level &&
	       strcmp(i->tune, t->tune) == 0;
}

static void
remove_at(CodegenMachines *m, unsigned k)
{
	m->n--;
	memmove(&m->idle[k], &m->idle[k + 1], (m->n - k) * sizeof *m->idle);
}

LLVMTargetMachineRef
machines_take(CodegenMachines *m, const Target *t, int level)
{
	LLVMTargetMachineRef found = NULL;
	if (!m)
		return NULL;
	pthread_mutex_lock(&m->lock);
	for (unsigned k = m->n; !found && k-- > 0;)
		if (is_for(&m->idle[k], t, level)) {
			found = m->idle[k].machine;
			remove_at(m, k);
		}
	pthread_mutex_unlock(&m->lock);
	return found;
}

void
machines_give(CodegenMachines *m, const Target *t, int level, LLVMTargetMachineRef machine)
{
	LLVMTargetMachineRef out = machine;
	if (m) {
		pthread_mutex_lock(&m->lock);
		out = m->n == CODEGEN_MACHINES ? m->idle[0].machine : NULL; /* given back longest ago */
		if (out)
			remove_at(m, 0);
		m->idle[m->n++] = (CodegenMachine){machine, t->tune, t->features, t->sm, (int)t->arch, level};
		pthread_mutex_unlock(&m->lock);
	}
	if (out)
		LLVMDisposeTargetMachine(out);
}
