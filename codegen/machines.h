/* machines.h: see machines.c. */
#ifndef TEXO_CODEGEN_MACHINES_H
#define TEXO_CODEGEN_MACHINES_H

#include <llvm-c/TargetMachine.h>

#include "codegen/codegen.h"
#include "codegen/target.h"

/* One for this target, which is the caller's now; NULL: there is none, or no m. */
LLVMTargetMachineRef machines_take(CodegenMachines *m, const Target *t, int level);
/* Keeps it, or disposes of what has been idle longest; without m, of this. */
void machines_give(CodegenMachines *m, const Target *t, int level, LLVMTargetMachineRef machine);

#endif
