/* job.h: what LLVM is asked for, as data. Who has a job does it here (module_make, object_make), or has it done
 * in another process (job_elsewhere), where codegen_serve does the same with what it was sent. Both give the
 * same bytes: kernels travel as tile IR's text, which reads back as it was. */
#ifndef TEXO_CODEGEN_JOB_H
#define TEXO_CODEGEN_JOB_H

#include "codegen/c_signature.h"
#include "codegen/codegen.h"
#include "codegen/emit.h"
#include "codegen/object_file.h"
#include "ir/parts.h"

typedef struct {
	const TirKernel *tir;
	const char *symbol;
	bool serial;
} JobKernel;

typedef VEC(JobKernel) JobKernels;

/* One module of kernels for a processor or GPU. */
typedef struct {
	const char *cpu; /* as CodegenOptions has it */
	int level;       /* of LLVM, the same */
	JobKernels kernel;
	bool want_llvm, want_asm;
	bool want_code;  /* an object file; for a GPU its text, with the NUL */
} ModuleJob;

/* The kernels of an object for one processor, and an artefact's tables for them, without code. */
typedef struct {
	const char *cpu;
	ObjectBitcode tables;
	JobKernels kernel;
} JobLevel;

/* An object for programs to link. Its module is for OBJECT_CPU, and kernels say what more they use. */
#define OBJECT_CPU "x86-64"
typedef struct {
	int opt_level;             /* as ObjectInput has it */
	VEC(JobLevel) level;       /* those with most features first */
	VEC(ObjectBitcode) gpu;    /* artefacts with code, best first */
	VEC(ObjectBitcode) launch; /* as ObjectInput has it, without the end */
	const CSignature *signature;
	uint32_t nsignature;
} ObjectJob;

typedef struct {
	const char *llvm, *assembly;
	const void *code;
	size_t n;
} JobMade;

/* In emit_inside, with e open for the job's processor, an object's for x86-64; false: e->error says why. Everything in out
 * is in e->arena. */
bool module_make(Emit *e, const ModuleJob *j, JobMade *out);
bool object_make(Emit *e, const ObjectJob *j, JobMade *out);

/* --- job_elsewhere.c --- */

/* What became of a job elsewhere; message: why it FAILED, or NULL when the one who asked knows. */
CodegenStatus module_elsewhere(Arena *a, const Elsewhere *to, const ModuleJob *j, JobMade *out, const char **message);
CodegenStatus object_elsewhere(Arena *a, const Elsewhere *to, const ObjectJob *j, JobMade *out, const char **message);

/* --- job_bytes.c --- */

typedef enum { JOB_MODULE = 1, JOB_OBJECT } JobKind;
void module_write(const ModuleJob *j, Text *out);
void object_write(const ObjectJob *j, Text *out);
/* Behind the kind; false for what was not written by these, with why for tile IR that isn't any. Everything in out is in a or among the
 * bytes. */
bool module_read(Arena *a, PartReader *r, ModuleJob *out, const char **why);
bool object_read(Arena *a, PartReader *r, ObjectJob *out, const char **why);

#endif
