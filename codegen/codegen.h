/* codegen.h: from lowered programs to an artefact (ir/image.h) for one target, through LLVM: a processor,
 * or a GPU, for which the code is PTX text. */
#ifndef TEXO_CODEGEN_CODEGEN_H
#define TEXO_CODEGEN_CODEGEN_H

#include "ir/kp.h"

typedef struct {
	const char *cpu;      /* "host", or "x86-64", "x86-64-v3", "x86-64-v4", an LLVM name such as sapphirerapids; a GPU: "sm_90a" */
	bool want_llvm, want_asm;
	bool no_code;         /* stop after want_llvm and want_asm */
	int opt_level;        /* LLVM code generation level 0..3; default 2 */
} CodegenOptions;

typedef enum { CODEGEN_OK, CODEGEN_ILLEGAL, CODEGEN_FAILED } CodegenStatus;

typedef struct {
	const void *image;    /* the artefact's bytes, in the arena */
	size_t image_size;
	const char *llvm, *assembly; /* texts asked for */
	const char *message;  /* ILLEGAL: which operation of which kernel the target lacks; FAILED: LLVM's words */
} CodegenResult;

/* One artefact with an entry point per program. Everything in `out` is in a. */
CodegenStatus codegen_cpu(Arena *a, const Program *const *program, uint32_t nprogram,
                          const CodegenOptions *o, CodegenResult *out);
/* What the target offers to the passes: vector lanes of 32 bits, fused multiply-add, DOT. */
void codegen_cpu_features(const char *cpu, uint16_t *lanes, bool *has_fma, bool *has_dot);
/* Space-separated feature words of this machine for `texo doctor` and `texo targets`; LLVM's version. */
const char *codegen_host_summary(Arena *a);
/* The processors that CodegenOptions.cpu can name beside "host", comma-separated; and the GPUs. */
const char *codegen_cpu_names(Arena *a);
const char *codegen_sm_names(Arena *a);
/* The name of the first, and best, of those that run on a GPU of compute capability sm; NULL: none does. */
const char *codegen_sm_for(uint32_t sm);
/* Whether such a CodegenOptions.cpu is a GPU. */
bool codegen_is_sm(const char *cpu);

#endif
