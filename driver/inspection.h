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
} InspectKernel;

/* The graph as compiled for one processor. */
typedef struct {
	const char *cpu;          /* "": not said */
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

typedef struct {
	const char *path, *kind;
	size_t bytes;
	VEC(InspectGraph) graph;
} Inspection;

/* What the bytes begin like: "object", "library", "shared library", "program", "artefact"; NULL: text. */
const char *inspect_kind(const void *bytes, size_t n);
/* Finds the graphs in compiled code; false with a problem when there are none that can be read. */
bool inspect_code(Session *s, const void *bytes, size_t n, Inspection *out);

/* A function in an ELF file, or in one of an archive's members. */
typedef struct {
	const char *name; /* inside the bytes, ends there or with NUL */
	uint64_t bytes;
} CodeSymbol;
typedef VEC(CodeSymbol) CodeSymbols;
/* Adds the named functions; what is damaged has none. */
void code_symbols(Arena *a, const void *bytes, size_t n, CodeSymbols *out);

#endif
