/* target.h: what is known about the processor that code is generated for. Instruction sets of x86-64 come
 * from ir/cpu_features.def alone: LLVM is given the baseline and exactly those, so that an artefact
 * needs what its header says and nothing else. GPUs are rows of sms.def. */
#ifndef TEXO_CODEGEN_TARGET_H
#define TEXO_CODEGEN_TARGET_H

#include <llvm-c/TargetMachine.h>

#include "ir/arena.h"

enum {
#define FEATURE(id, text, leaf, sub, reg, bit, state) FEATURE_##id,
#include "ir/cpu_features.def"
	FEATURE_COUNT
};

typedef enum { ARCH_X86, ARCH_NVPTX } Arch;

typedef struct {
	const char *tune;  /* LLVM's name for the scheduling model, or of the GPU */
	uint64_t features; /* bit FEATURE_x; ARCH_X86 */
	Arch arch;
	uint32_t sm;       /* ARCH_NVPTX: compute capability, 90 for 9.0 */
	uint16_t cluster;  /* blocks of a cluster; 0: it has none */
	uint16_t sm_threads; /* that a multiprocessor holds at once */
	bool roles;        /* it has what the roles of ir/channel.h are made of */
	bool doubles;      /* it has units enough for f64 */
	bool sm_only;      /* its code runs on no later one */
} Target;

static inline bool
target_has(const Target *t, unsigned feature)
{
	return t->features >> feature & 1;
}

/* "host" or a row of cpus.def or sms.def; false for any other name. */
bool target_named(const char *cpu, Target *t);
/* The names of processors that target_named takes, comma-separated. */
const char *target_names(Arena *a);
/* LLVM's feature string: +x for what t has and -x for the rest of the table. */
const char *target_feature_string(const Target *t, Arena *a);
/* The names of the features in `set`, space-separated. */
const char *target_feature_words(uint64_t set, Arena *a);
/* Lanes of 32 bits in a vector register; 0 where a lane is a thread. */
uint16_t target_lanes(const Target *t);
/* Level 0..3. NULL with LLVM's words in *why. The caller disposes of it. */
LLVMTargetMachineRef target_machine(const Target *t, int level, Arena *a, const char **why);


/* --- target_nvptx.c --- */
/* Whether its threads convert between f32 and the 8-bit floats. */
static inline bool
target_converts_fp8(const Target *t)
{
	return t->arch == ARCH_NVPTX && t->sm >= 89;
}
/* A row of sms.def; their names, comma-separated. */
bool target_sm_named(const char *sm, Target *t);
const char *target_sm_names(Arena *a);
LLVMTargetMachineRef target_machine_nvptx(const Target *t, int level, const char **why);

#endif
