/* codegen.h: from lowered programs to an artefact (ir/image.h) for one target, through LLVM: a processor,
 * or a GPU, for which the code is PTX text. */
#ifndef TEXO_CODEGEN_CODEGEN_H
#define TEXO_CODEGEN_CODEGEN_H

#include <pthread.h>

#include "ir/kp.h"

/* What compilations leave for later ones of the same processor: LLVM's tables of it. Any number of threads may use one,
 * and hold as many of its machines. The fields are codegen's (machines.c). */
enum { CODEGEN_MACHINES = 8 };
typedef struct {
	void *machine;
	const char *tune; /* static */
	uint64_t features;
	uint32_t sm;
	int arch, level;
} CodegenMachine;
typedef struct {
	pthread_mutex_t lock;
	CodegenMachine idle[CODEGEN_MACHINES]; /* the one given back last is last */
	unsigned n;
} CodegenMachines;
void codegen_machines_init(CodegenMachines *m);
void codegen_machines_free(CodegenMachines *m);

/* Makes machine code of a GPU's text, which a NUL ends: *bytes in a, or *why there is none. */
typedef bool Assemble(void *user, Arena *a, const char *ptx, const char *sm, const void **bytes, size_t *n,
                      const char **why);

/* A job for LLVM in another process (codegen/job.h); the answer is codegen_serve's. */
typedef struct {
	const char *what;     /* its one kernel's symbol; NULL: it has several */
	uint32_t kernels;     /* how many */
	const void *bytes;
	size_t n;
} CodegenJob;
/* The answer's bytes in a; false when there is none, and user knows why. */
typedef bool ElsewhereFn(void *user, Arena *a, const CodegenJob *job, const char **answer, size_t *n);
typedef struct {
	ElsewhereFn *ask;
	void *user;
} Elsewhere;

typedef struct {
	const char *cpu;      /* "host", or "x86-64", "x86-64-v3", "x86-64-v4", an LLVM name such as sapphirerapids; a GPU: "sm_90a" */
	bool want_llvm, want_asm;
	bool no_code;         /* stop after want_llvm and want_asm */
	bool late;            /* for GPUs: the artefact has the kernels' tile IR in place of code: see codegen_kernel. Only then may
	                       * passes be to come (Kernel.early) */
	int opt_level;        /* LLVM code generation level 0..3; default 2; a processor's 2 and 3 are its 1 */
	Assemble *assemble;   /* for GPUs; NULL: the artefact has the text alone, for the driver to assemble */
	void *user;           /* its */
	CodegenMachines *machines; /* NULL: none are kept */
	const Elsewhere *elsewhere; /* NULL: LLVM runs in this process */
} CodegenOptions;

typedef enum { CODEGEN_OK, CODEGEN_ILLEGAL, CODEGEN_FAILED } CodegenStatus;

typedef struct {
	const void *image;    /* the artefact's bytes, in the arena */
	size_t image_size;
	const char *llvm, *assembly; /* texts asked for, all kernels in one */
	const char *message;  /* ILLEGAL: which operation of which kernel the target lacks; FAILED: LLVM's words, or: */
	bool unassembled;     /* FAILED: they are the assembler's */
	bool unanswered;      /* FAILED: there are none, elsewhere knows */
} CodegenResult;

/* One artefact with an entry point per program. Everything in `out` is in a. */
CodegenStatus codegen_cpu(Arena *a, const Program *const *program, uint32_t nprogram,
                          const CodegenOptions *o, CodegenResult *out);

/* Kernel.early, of graphs of that mode, after its passes for GPU `cpu`; in a. */
typedef const TirKernel *FinishFn(const char *cpu, FpMode fp, const TirKernel *early, Arena *a);

/* A kernel of an artefact that was made `late`: what stands there for its code, and its record. */
typedef struct {
	const char *tir, *symbol;
	size_t n;             /* of tir, without the NUL */
	bool serial;
	CodegenMachines *machines; /* NULL: none are kept */
	FinishFn *finish;     /* NULL: no passes are to come */
} LateKernel;
/* Its code as text for GPU `cpu`, the same that the artefact would have; *n counts the NUL. Everything is in a. */
CodegenStatus codegen_kernel(Arena *a, const char *cpu, const LateKernel *k, const char **ptx, size_t *n, const char **why);

/* Does a CodegenJob's bytes in this process and appends the answer; false for what is no job. Everything is in a. */
bool codegen_serve(Arena *a, const void *job, size_t n, CodegenMachines *machines, Text *answer);

/* What the target offers to the passes. */
typedef struct {
	uint16_t lanes; /* of 32 bits in a vector */
	bool blocks;    /* of threads, which take a task together */
	uint16_t cluster; /* blocks that can; 0: one */
	bool roles;     /* of groups of threads, and channels between them (ir/channel.h) */
	bool warp_mma;  /* TIR's WARP_MMA, LOAD_MATRIX and ASYNC_COPY */
	bool fma;       /* fused multiply-add */
	bool scale;     /* TIR's SCALE */
	bool masks;     /* comparisons of vectors are masks, of which ANY is one instruction */
	bool pick;      /* PICK of a vector of 8 is an instruction */
	bool ex2;       /* TIR's EX2, RCP and other units */
	bool fp8;       /* threads convert between f32 and the 8-bit floats */
	bool halves;    /* it converts between f32 and f16 */
	TirDotUnit dot; /* what TIR's DOT is by */
} TargetOffer;
TargetOffer codegen_target_offer(const char *cpu);
/* Space-separated feature words of this machine for `texo doctor` and `texo targets`; LLVM's version. */
const char *codegen_host_summary(Arena *a);
/* What CodegenOptions.cpu means here, in words: LLVM's version, the processor and its instruction sets. Equal
 * programs, options and words give equal artefacts. NULL: there is no such processor. */
const char *codegen_target_text(Arena *a, const char *cpu);
/* The processors that CodegenOptions.cpu can name beside "host", comma-separated; and the GPUs. */
const char *codegen_cpu_names(Arena *a);
const char *codegen_sm_names(Arena *a);
/* The name of the first, and best, of those that run on a GPU of compute capability sm; NULL: none does. */
const char *codegen_sm_for(uint32_t sm);
/* Whether a GPU of this name goes before the other: its code runs on fewer, or it is later. */
bool codegen_sm_before(const char *a, const char *b);
/* Whether such a CodegenOptions.cpu is a GPU. */
bool codegen_is_sm(const char *cpu);

#endif
