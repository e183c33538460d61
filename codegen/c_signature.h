/* c_signature.h: the C functions that stand for graphs compiled ahead of time, and the header that
 * declares them. */
#ifndef TEXO_CODEGEN_C_SIGNATURE_H
#define TEXO_CODEGEN_C_SIGNATURE_H

#include "ir/kp.h"

typedef enum {
	CARG_DATA,     /* an array */
	CARG_VALUE,    /* a scalar of the program */
	CARG_DIM,      /* int64_t */
	CARG_WORKSPACE,
	CARG_STREAM
} CArgKind;

typedef struct {
	CArgKind kind;
	const char *name; /* legal in C and C++, and no other argument's */
	DType dtype;
	bool is_const;    /* DATA: only read */
	bool is_word;     /* it goes to word `slot` of the call, else (a DIM) to dim `slot` */
	uint32_t slot;
} CArg;

/* What the C functions of a graph take. Dims stand in the order in which the signature first mentions
 * them, without those that -D fixes. `call` has none that a scalar gives. `sizes` has all, behind the integer
 * scalars that the workspace depends on and that give no dim. */
typedef struct {
	const Graph *graph;
	const char *name, *json; /* json: signature_json's */
	VEC(CArg) call, sizes;
	CArg stream; /* behind `call` on a GPU */
	uint32_t nword, ndim; /* parameters and results; dims, the fixed ones too */
} CSignature;

/* The endings of the names of a graph's functions and data; NULL ends them. */
typedef struct {
	const char *ending;
	bool cpu, gpu; /* which kind of code it is there for */
} CEnding;
const CEnding *c_endings(void);
/* Of graph p, which every level has as program[level][p]. False, with why, when no C function can have
 * its name. */
bool c_signature(Arena *a, const Program *const *const *program, uint32_t nlevel, uint32_t p, CSignature *out,
                 const char **why);
/* Checks that the functions of these graphs have different names. */
bool c_names_differ(Arena *a, const CSignature *s, uint32_t n, const char **why);
/* The header's text; levels: what the code was made for, as the header's comment says it. cpu, gpu: whether
 * there is code for processors, for GPUs. */
const char *c_header(Arena *a, const CSignature *s, uint32_t n, const char *levels, bool cpu, bool gpu);

#endif
