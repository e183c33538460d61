/* module_code.h: functions that a test has generated, for this processor. */
#ifndef TEXO_TESTS_CODEGEN_MODULE_CODE_H
#define TEXO_TESTS_CODEGEN_MODULE_CODE_H

#include <llvm-c/Core.h>

#include "runtime/inside.h"

/* Loads the module's code for a processor of this name until the process ends; false: it can't be. */
bool module_load(LLVMModuleRef m, const char *cpu, Code *code);

#endif
