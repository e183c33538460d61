/* module_code.c: see module_code.h. */
#include "tests/codegen/module_code.h"

#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

static LLVMMemoryBufferRef
object_of(LLVMModuleRef m, const char *cpu)
{
	char *triple = LLVMGetDefaultTargetTriple(), *error = NULL;
	LLVMTargetRef target;
	LLVMMemoryBufferRef buffer;
	LLVMInitializeX86TargetInfo();
	LLVMInitializeX86Target();
	LLVMInitializeX86TargetMC();
	LLVMInitializeX86AsmPrinter();
	if (LLVMGetTargetFromTriple(triple, &target, &error))
		return NULL;
	LLVMTargetMachineRef machine = LLVMCreateTargetMachine(target, triple, cpu, "", LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelSmall);
	bool failed = LLVMTargetMachineEmitToMemoryBuffer(machine, m, LLVMObjectFile, &error, &buffer);
	LLVMDisposeTargetMachine(machine);
	LLVMDisposeMessage(triple);
	return failed ? NULL : buffer;
}

bool
module_load(LLVMModuleRef m, const char *cpu, Code *code)
{
	texo_rt *rt;
	if (texo_rt_create(NULL, &rt))
		return false;
	LLVMMemoryBufferRef object = object_of(m, cpu);
	return object && !code_load(rt, (const uint8_t *)LLVMGetBufferStart(object), LLVMGetBufferSize(object), code);
}
