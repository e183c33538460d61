/* object_entry.h: the C functions of an object, as LLVM functions that call the runtime's. */
#ifndef TEXO_CODEGEN_OBJECT_ENTRY_H
#define TEXO_CODEGEN_OBJECT_ENTRY_H

#include <llvm-c/Core.h>

#include "codegen/c_signature.h"

/* Adds the functions and the signature of graph number `graph` of the object at `object`, an ImageObject.
 * cpu, gpu: whether it has code for processors, for GPUs. */
void entry_add(Arena *a, LLVMModuleRef m, LLVMBuilderRef b, LLVMValueRef object, uint32_t graph,
               const CSignature *s, bool cpu, bool gpu);

#endif
