/* emit.c: the passes and the back end. LLVM reports some errors only as diagnostics and then returns
 * success, so every step also looks at what the handler saw. Emission changes a module. */
#include "codegen/emit.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <string.h>

#include "codegen/machines.h"
#include "codegen/object.h"

/* Half the time of O1 with the same kernels (LLVM.md 5.2): the vector code is already there. None of
 * these turns a loop into a library call. Instruction selection combines instructions again: before it,
 * that takes a fifteenth of a processor's compilation and leaves inner loops as they were. So does sharing
 * of equal values before invariants leave the loops: tile IR has done it. */
static const char for_processors[] =
	"function(simplifycfg,loop-mssa(licm),early-cse,dce)";
static const char for_gpus[] =
	"function(early-cse<memssa>,instcombine<max-iterations=1;no-verify-fixpoint>,simplifycfg,"
	"loop-mssa(licm),early-cse,dce)";

/* No arena here: unwinding out of LLVM's handler would cross its frames. */
void
emit_keep_error(Emit *e, const char *text)
{
	if (!e->error[0])
		snprintf(e->error, sizeof e->error, "%s", text && *text ? text : "LLVM failed without a word");
}

static void
see_diagnostic(LLVMDiagnosticInfoRef d, void *user)
{
	Emit *e = user;
	if (LLVMGetDiagInfoSeverity(d) != LLVMDSError)
		return;
	char *text = LLVMGetDiagInfoDescription(d);
	emit_keep_error(e, text);
	LLVMDisposeMessage(text);
}

static bool
fail(Emit *e, char *message)
{
	emit_keep_error(e, message);
	LLVMDisposeMessage(message);
	return false;
}

bool
emit_open(Emit *e, Arena *a, const Target *t, int level, CodegenMachines *machines)
{
	*e = (Emit){.arena = a, .gpu = t->arch == ARCH_NVPTX, .machines = machines, .target = *t, .level = level};
	const char *why = NULL;
	e->machine = machines_take(machines, t, level);
	if (!e->machine)
		e->machine = target_machine(t, level, a, &why);
	if (!e->machine) {
		emit_keep_error(e, why);
		return false;
	}
	e->ctx = LLVMContextCreate();
	LLVMContextSetDiagnosticHandler(e->ctx, see_diagnostic, e);
	e->builder = LLVMCreateBuilderInContext(e->ctx);
	emit_new_module(e);
	return true;
}

void
emit_new_module(Emit *e)
{
	if (e->module)
		LLVMDisposeModule(e->module);
	e->hands = false;
	e->module = LLVMModuleCreateWithNameInContext("texo", e->ctx);
	LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(e->machine);
	LLVMSetModuleDataLayout(e->module, layout);
	LLVMDisposeTargetData(layout);
	char *triple = LLVMGetTargetMachineTriple(e->machine);
	LLVMSetTarget(e->module, triple);
	LLVMDisposeMessage(triple);
}

static void
emit_close(Emit *e)
{
	if (e->buffer)
		LLVMDisposeMemoryBuffer(e->buffer);
	if (e->text)
		LLVMDisposeMessage(e->text);
	if (e->builder)
		LLVMDisposeBuilder(e->builder);
	if (e->spare)
		LLVMDisposeModule(e->spare);
	if (e->module)
		LLVMDisposeModule(e->module);
	if (e->ctx)
		LLVMContextDispose(e->ctx);
	if (e->machine)
		machines_give(e->error[0] ? NULL : e->machines, &e->target, e->level, e->machine);
}

CodegenStatus
emit_inside(Emit *e, Arena *a, CodegenStatus (*body)(void *user), void *user)
{
	Unwind *const outer = a->unwind, *const here = ARENA_NEW(a, Unwind);
	if (setjmp(here->env)) {
		emit_close(e);
		a->unwind = outer;
		arena_unwind(a, here->why, "%s", here->text);
	}
	a->unwind = here;
	CodegenStatus status = body(user);
	a->unwind = outer;
	emit_close(e);
	return status;
}

static bool
run_passes(Emit *e, const char *passes)
{
	LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
	LLVMErrorRef err = LLVMRunPasses(e->module, passes, e->machine, o);
	LLVMDisposePassBuilderOptions(o);
	if (err) {
		char *text = LLVMGetErrorMessage(err);
		emit_keep_error(e, text);
		LLVMDisposeErrorMessage(text);
	}
	return !e->error[0];
}

bool
emit_drop_unused(Emit *e)
{
	return run_passes(e, "globaldce");
}

bool
emit_optimise(Emit *e)
{
	char *message = NULL;
	if (LLVMVerifyModule(e->module, LLVMReturnStatusAction, &message))
		return fail(e, message);
	LLVMDisposeMessage(message);
	if (!run_passes(e, e->gpu ? for_gpus : for_processors))
		return false;
	if (e->gpu)
		emit_without_extremes(e);
	return true;
}

const char *
emit_llvm(Emit *e)
{
	e->text = LLVMPrintModuleToString(e->module);
	const char *copy = arena_text(e->arena, "%s", e->text);
	LLVMDisposeMessage(e->text);
	e->text = NULL;
	return copy;
}

static bool
emit_file(Emit *e, LLVMModuleRef m, LLVMCodeGenFileType type, const void **bytes, size_t *n)
{
	char *message = NULL;
	if (LLVMTargetMachineEmitToMemoryBuffer(e->machine, m, type, &message, &e->buffer))
		return fail(e, message);
	*n = LLVMGetBufferSize(e->buffer);
	*bytes = arena_copy(e->arena, LLVMGetBufferStart(e->buffer), *n);
	LLVMDisposeMemoryBuffer(e->buffer);
	e->buffer = NULL;
	return !e->error[0];
}

/* LLVM does not read assembly that is written in place, and gives sm_90a's text the first version that has the processor. */
static void
raise_version(void *text)
{
	static const char first[] = ".version 8.0\n";
	char *at = strstr(text, first);
	if (at)
		at[sizeof first - 3] = '1';
}

static bool
emit_text(Emit *e, LLVMModuleRef m, const void **bytes, size_t *n)
{
	if (!emit_file(e, m, LLVMAssemblyFile, bytes, n))
		return false;
	if (e->hands)
		raise_version((void *)(uintptr_t)*bytes); /* arena_copy adds a NUL */
	return true;
}

bool
emit_assembly(Emit *e, const char **text)
{
	const void *bytes;
	size_t n;
	e->spare = LLVMCloneModule(e->module);
	bool done = emit_text(e, e->spare, &bytes, &n);
	LLVMDisposeModule(e->spare);
	e->spare = NULL;
	if (!done)
		return false;
	*text = bytes; /* arena_copy adds a NUL */
	return true;
}

bool
emit_ptx(Emit *e, const void **bytes, size_t *n)
{
	if (!emit_text(e, e->module, bytes, n))
		return false;
	*n += 1;
	return true;
}

bool
emit_with_imports(Emit *e, const char *const *import, const void **bytes, size_t *n)
{
	if (!emit_file(e, e->module, LLVMObjectFile, bytes, n))
		return false;
	const char *symbol = object_undefined(*bytes, *n, import);
	if (symbol)
		snprintf(e->error, sizeof e->error, "the generated code calls '%s', which it must not", symbol);
	return !e->error[0];
}

bool
emit_object(Emit *e, const void **bytes, size_t *n)
{
	static const char *const none[] = {NULL};
	return emit_with_imports(e, none, bytes, n);
}
