/* rig.h: takes a tile IR kernel through the whole way: a program made around it, codegen, artefact,
 * texo_rt_load, launch; and the same through tir_interpret.
 *
 * The graph of a kernel: buffer k is a parameter named as the buffer, of shape [dim nk], an inout if
 * it is written; scalar k is a scalar parameter. */
#ifndef TEXO_TESTS_CODEGEN_RIG_H
#define TEXO_TESTS_CODEGEN_RIG_H

#include "codegen/codegen.h"
#include "texo_rt.h"

enum { RIG_MAX = 64 };

typedef struct {
	Arena arena;
	Unwind unwind;
	Names *names;
	Graph *graph;
	TirKernel *k;
	CodegenResult out;
	texo_rt *rt;
	texo_program *program;
	texo_kernel *kernel;
} Rig;

typedef struct {
	void *data[RIG_MAX];        /* by buffer: packed storage */
	int64_t count[RIG_MAX];     /* elements */
	const void *scalar[RIG_MAX];
	int64_t ntask;
	uint32_t fault, cut;        /* out */
} RigRun;

/* An empty kernel; unwinding fails the test, which must be in the same function. */
void rig_init(Rig *r, const char *name);
#define rig_open(r, name)                                          \
	do {                                                       \
		rig_init(r, name);                                 \
		if (setjmp((r)->unwind.env))                       \
			fail_msg("unwound: %s", (r)->unwind.text); \
	} while (0)
void rig_close(Rig *r);
/* Runs body on an empty kernel, then frees everything. Unwinding fails the test. */
typedef void RigBody(Rig *r, const void *arg);
void rig_run(const char *name, RigBody *body, const void *arg);
/* The program around r->k, with ntask tasks. */
Program *rig_program(Rig *r, int64_t ntask);
/* Whether this machine runs code for a processor of this name. */
bool rig_can_run(const char *cpu);
/* Compiles and loads; both must succeed. */
void rig_load(Rig *r, const char *cpu, int64_t ntask);
/* Compiles for this GPU: its PTX, the rig's. */
const char *rig_ptx(Rig *r, const char *sm, int64_t ntask);
/* How often `text` has the word. */
unsigned rig_count(const char *text, const char *word);
/* The same, and has the assembler at `ptxas` take it without a warning, and of roles without spills. */
void rig_assemble(Rig *r, const char *sm, const char *ptxas, int64_t ntask);
/* Launches with these buffers; fault and cut are access ids. */
void rig_launch(Rig *r, RigRun *run);
void rig_interpret(Rig *r, RigRun *run);
/* Bytes of count packed elements. */
size_t rig_bytes(DType t, int64_t count);
/* The first element in which a and b differ, NaNs being equal; -1: none. */
int64_t rig_differ(DType t, const void *a, const void *b, int64_t count);
/* A contiguous DLTensor of these elements. */
DLTensor rig_tensor(DType t, void *data, int32_t rank, int64_t *shape);

#endif
