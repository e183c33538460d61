/* target_nvptx.c: GPUs. LLVM is left the choice of the PTX version: the oldest that has the processor, so
 * that the text is understood by every driver that knows the processor (what LLVM does not know of: emit.c). */
#include "codegen/target.h"

#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <string.h>
#include <threads.h>

#include "codegen/codegen.h"
#include "ir/text.h"

static const struct {
	const char *name;
	uint32_t sm;
	uint16_t cluster, threads;
	bool roles, doubles, only;
} row[] = {
#define SM(name, sm, cluster, threads, roles, doubles, only) {name, sm, cluster, threads, roles, doubles, only},
#include "codegen/sms.def"
};

enum { ROWS = sizeof row / sizeof *row };

bool
target_sm_named(const char *sm, Target *t)
{
	for (unsigned i = 0; i < ROWS; i++)
		if (strcmp(sm, row[i].name) == 0) {
			*t = (Target){.tune = row[i].name, .arch = ARCH_NVPTX, .sm = row[i].sm, .cluster = row[i].cluster, .sm_threads = row[i].threads,
			              .roles = row[i].roles, .doubles = row[i].doubles, .sm_only = row[i].only};
			return true;
		}
	return false;
}

const char *
target_sm_names(Arena *a)
{
	Text out;
	text_init(&out, a);
	for (unsigned i = 0; i < ROWS; i++)
		text_printf(&out, "%s%s", i ? ", " : "", row[i].name);
	return text_get(&out);
}

static void
init_llvm(void)
{
	LLVMInitializeNVPTXTargetInfo();
	LLVMInitializeNVPTXTarget();
	LLVMInitializeNVPTXTargetMC();
	LLVMInitializeNVPTXAsmPrinter();
}

LLVMTargetMachineRef
target_machine_nvptx(const Target *t, int level, const char **why)
{
	static once_flag once = ONCE_FLAG_INIT;
	call_once(&once, init_llvm);
	LLVMTargetRef nvptx;
	char *message = NULL;
	if (LLVMGetTargetFromTriple("nvptx64-nvidia-cuda", &nvptx, &message)) {
		*why = "LLVM was built without its NVPTX target";
		LLVMDisposeMessage(message);
		return NULL;
	}
	LLVMTargetMachineRef tm = LLVMCreateTargetMachine(nvptx, "nvptx64-nvidia-cuda", t->tune, "",
	                                                  (LLVMCodeGenOptLevel)(level > 0 ? level : 1), LLVMRelocPIC,
	                                                  LLVMCodeModelDefault);
	if (!tm)
		*why = "LLVM has no machine for this target";
	return tm;
}

const char *
codegen_sm_for(uint32_t sm)
{
	for (unsigned i = 0; i < ROWS; i++)
		if (row[i].only ? sm == row[i].sm : sm >= row[i].sm)
			return row[i].name;
	return NULL;
}

bool
codegen_sm_before(const char *a, const char *b)
{
	Target x, y;
	if (!target_sm_named(a, &x) || !target_sm_named(b, &y))
		return false;
	return x.sm_only != y.sm_only ? x.sm_only : x.sm > y.sm;
}

bool
codegen_is_sm(const char *cpu)
{
	Target t;
	return cpu && target_sm_named(cpu, &t);
}
