/* inspection.h: what texo inspect found in a file, from a program's text or from compiled code. */
#ifndef TEXO_DRIVER_INSPECTION_H
#define TEXO_DRIVER_INSPECTION_H

#include "driver/session.h"

typedef struct {
	const char *name, *kind, *dtype, *shape; /* input, inout, scalar, result; "[N, 2 * M]" or "" */
} InspectParam;

/* As Dim in ir/tg.h. */
typedef struct {
	const char *name, *param; /* NULL: fixed */
	int axis;                 /* -1: the scalar itself */
	int64_t scale, offset, value;
	int64_t hint;             /* 0 none */
	bool solved;              /* by the axis's extent, with other dims */
} InspectDim;

/* What must hold at launch. */
typedef struct {
	const char *text;
	uint32_t line, column;
} InspectCheck;

typedef struct {
	const char *name, *template_name, *symbol;
	int64_t bytes;            /* of its code; -1 unknown, as in a stripped file */
	int64_t registers, stack; /* of a thread, on a GPU; -1: not machine code of one. stack: bytes, also of spills */
} InspectKernel;

/* The graph as compiled for one processor. */
typedef struct {
	const char *cpu;          /* or GPU; "": not said */
	uint64_t features;        /* by cpu_features.def */
	uint64_t tables;          /* bytes; of all graphs together */
	VEC(InspectKernel) kernel;
} InspectLevel;

typedef struct {
	const char *name, *signature; /* JSON */
	VEC(InspectParam) param;
	VEC(InspectDim) dim;
	VEC(InspectCheck) check;
	VEC(InspectLevel) level;  /* none: a program's text */
} InspectGraph;

/* What a cache entry was compiled from. */
typedef struct {
	const char *name, *value;
} InspectField;

typedef struct {
	const char *path, *kind;
	size_t bytes;
	VEC(InspectField) key;    /* none: no cache entry */
	VEC(InspectGraph) graph;
	VEC(InspectKernel) kernel; /* of a cubin, or a kernel's cache entry, which know no graphs */
} Inspection;

/* What the bytes begin like: "object", "library", "shared library", "program", "artefact", "cubin", "cache entry"; NULL: text. */
const char *inspect_kind(const void *bytes, size_t n);
/* Finds the graphs in compiled code; false with a problem when there are none that can be read. */
bool inspect_code(Session *s, const void *bytes, size_t n, Inspection *out);

/* The key of a cache entry; false with a problem when the entry is damaged. */
bool inspect_key(Session *s, const void *bytes, size_t n, Inspection *out);

/* Whether a cache entry whose key was read is one kernel's: its symbol, and its machine code, or NULL. */
bool inspect_entry_of_kernel(const void *bytes, const Inspection *x, const char **kernel, const void **machine, size_t *n);

/* A function in an ELF file, or in one of an archive's members. */
typedef struct {
	const char *name; /* inside the bytes, ends there or with NUL */
	uint64_t bytes;
	int64_t registers, stack; /* as InspectKernel has them */
} CodeSymbol;
typedef VEC(CodeSymbol) CodeSymbols;
/* Adds the named functions; what is damaged has none. */
void code_symbols(Arena *a, const void *bytes, size_t n, CodeSymbols *out);

#endif
