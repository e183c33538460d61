/* emit.h: one LLVM context with one module, from kernels to an object file and texts. */
#ifndef TEXO_CODEGEN_EMIT_H
#define TEXO_CODEGEN_EMIT_H

#include <llvm-c/Core.h>

#include "codegen/codegen.h"
#include "codegen/target.h"

typedef struct {
	Arena *arena;
	LLVMContextRef ctx;
	LLVMModuleRef module;
	LLVMBuilderRef builder;
	LLVMTargetMachineRef machine;
	CodegenMachines *machines;  /* where it goes */
	Target target;
	int level;
	LLVMMemoryBufferRef buffer; /* these two while they are copied: the arena may unwind then */
	char *text;
	LLVMModuleRef spare;        /* while it is emitted */
	bool gpu;
	bool hands;                 /* a kernel of the module has what PTX 8.0 has not: stores that are counted where they arrive */
	char error[512]; /* the first thing LLVM complained about, or "" */
} Emit;

/* body(user), which may open e, and closes e after it. Should memory run out in body, control comes here
 * first, e is closed, and the caller's unwind goes on. */
CodegenStatus emit_inside(Emit *e, Arena *a, CodegenStatus (*body)(void *user), void *user);
/* In emit_inside, which closes it even when this returns false. */
bool emit_open(Emit *e, Arena *a, const Target *t, int level, CodegenMachines *machines);
/* An empty module in the place of the one there is. */
void emit_new_module(Emit *e);
/* Verifies and optimises the module. */
bool emit_optimise(Emit *e);
/* The module's text; its assembly. The module stays as it is. */
const char *emit_llvm(Emit *e);
bool emit_assembly(Emit *e, const char **text);
/* What spends the module, which can only be disposed of then: its object file; */
bool emit_object(Emit *e, const void **bytes, size_t *n);
/* the assembly with the NUL behind it, for an artefact; */
bool emit_ptx(Emit *e, const void **bytes, size_t *n);
/* the object file, when the code may also need the functions in import, which ends with NULL. */
bool emit_with_imports(Emit *e, const char *const *import, const void **bytes, size_t *n);
/* Keeps the first error. No arena here: unwinding out of LLVM's handler would cross its frames. */
void emit_keep_error(Emit *e, const char *text);

/* --- nvptx_extremes.c --- */
/* Writes max and min of narrow integers as what GPU assemblers get right. After the passes. */
void emit_without_extremes(Emit *e);

/* --- emit_link.c --- */
/* Adds what n bytes of LLVM bitcode define. */
bool emit_add_bitcode(Emit *e, const void *bytes, size_t n);
/* Nothing that the module defines so far can be named from outside. */
void emit_make_internal(Emit *e);
/* Drops what nothing from outside leads to. */
bool emit_drop_unused(Emit *e);
/* The object file of a module with functions for programs to call (codegen/link_imports.def). */
bool emit_linkable(Emit *e, const void **bytes, size_t *n);

#endif
