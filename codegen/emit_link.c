/* emit_link.c: other bitcode in the module, for objects that programs link. */
#include <llvm-c/BitReader.h>
#include <llvm-c/Linker.h>
#include <stdio.h>

#include "codegen/emit.h"
#include "codegen/object.h"

bool
emit_add_bitcode(Emit *e, const void *bytes, size_t n)
{
	LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRange(bytes, n, "launch", 0);
	LLVMModuleRef m = NULL;
	LLVMBool bad = LLVMParseBitcodeInContext2(e->ctx, buffer, &m);
	LLVMDisposeMemoryBuffer(buffer);
	if (bad) {
		emit_keep_error(e, "LLVM can't read the runtime's bitcode");
		return false;
	}
	LLVMSetTarget(m, LLVMGetTarget(e->module));
	LLVMSetDataLayout(m, LLVMGetDataLayoutStr(e->module));
	if (LLVMLinkModules2(e->module, m))
		emit_keep_error(e, "LLVM can't link the runtime's bitcode");
	return !e->error[0];
}

static void
make_internal(LLVMValueRef v)
{
	if (LLVMIsDeclaration(v))
		return;
	LLVMSetVisibility(v, LLVMDefaultVisibility);
	LLVMSetLinkage(v, LLVMInternalLinkage);
}

void
emit_make_internal(Emit *e)
{
	for (LLVMValueRef f = LLVMGetFirstFunction(e->module); f; f = LLVMGetNextFunction(f))
		make_internal(f);
	for (LLVMValueRef g = LLVMGetFirstGlobal(e->module); g; g = LLVMGetNextGlobal(g))
		make_internal(g);
}

bool
emit_linkable(Emit *e, const void **bytes, size_t *n)
{
	static const char *const import[] = {
#define IMPORT(id, summary) #id,
#include "codegen/link_imports.def"
		NULL
	};
	return emit_with_imports(e, import, bytes, n);
}
