/* object_file.h: from lowered programs to a relocatable object of C functions and its header. */
#ifndef TEXO_CODEGEN_OBJECT_FILE_H
#define TEXO_CODEGEN_OBJECT_FILE_H

#include "codegen/codegen.h"

/* The graphs of an object as they are for one processor. */
typedef struct {
	const char *cpu;               /* a row of cpus.def */
	const Program *const *program; /* the same graphs in the same order at every level */
} ObjectLevel;

typedef struct {
	const void *bytes;
	size_t n;
} ObjectBitcode;

/* What was generated for one GPU beside the artefact: the text of all kernels, and its code, where they are wanted. */
typedef struct {
	const char *name, *ptx;
	const void *cubin;
	size_t cubin_bytes;
} ObjectGpu;

typedef struct {
	const ObjectLevel *level;      /* a call takes the best one that the processor can run */
	uint32_t nlevel, nprogram;
	const ObjectLevel *gpu;        /* the same on a GPU; their cpu is a row of sms.def */
	uint32_t ngpu;
	Assemble *assemble;            /* NULL: kernels for GPUs are text alone */
	void *user;                    /* its */
	bool want_ptx, want_cubin;     /* ObjectGpu.ptx; ObjectGpu.cubin, with assemble */
	/* What a launch needs, ending with one of 0 bytes; NULL: the object calls libtexo-rt for it. */
	const ObjectBitcode *launch;
	int opt_level;                 /* LLVM code generation level 0..3 */
	const Elsewhere *elsewhere;    /* NULL: LLVM runs in this process */
} ObjectInput;

typedef struct {
	const void *object;
	size_t size;
	const char *header, *manifest;
	const ObjectGpu *gpu;          /* in->ngpu, best first */
	/* The functions and data that programs may name. */
	const char *const *symbol;
	uint32_t nsymbol;
	const char *message;           /* when it failed */
	bool unassembled;              /* FAILED: it is the assembler's */
	bool unanswered;               /* FAILED: there is none, elsewhere knows */
} ObjectResult;

/* Everything in out is in a. The same input gives the same bytes. CODEGEN_ILLEGAL also where a graph's
 * name can't be a C function's. */
CodegenStatus codegen_object(Arena *a, const ObjectInput *in, ObjectResult *out);
/* The processors that an object for plain "cpu" has code for, best first; ends with NULL. */
const char *const *codegen_object_cpus(void);

#endif
