/* test_blocks.h: the tests in a file's comments (INTERFACE.md).
 *
 * A block begins with a comment line "# test: NAME" and takes the comment lines below it that are
 * indented by at least two blanks after the '#' (empty ones are skipped; a literal may go on over
 * several lines until its brackets are closed). A line is one of
 *     NAME = VALUE               an input, scalar or dim, as input_spec.h says
 *     expect NAME = VALUE        a literal or @file.npy
 *     compare interp             (results are always compared with the evaluator; this says so)
 *     error CODE [at LINE:COL]   compiling or launching reports this
 *     kernels <= N               also ==, >=, < and >
 *     graph NAME                 default: the only one, else the last
 *     fp strict|relaxed|fast */
#ifndef TEXO_DRIVER_TEST_BLOCKS_H
#define TEXO_DRIVER_TEST_BLOCKS_H

#include "driver/input_spec.h"
#include "ir/diag.h"

typedef struct {
	const char *name;
	uint32_t line;
	VEC(InputSpec) input;
	VEC(InputSpec) expect;
	DiagCode error;             /* DIAG_NONE: none is expected */
	uint32_t error_line, error_col; /* 0: anywhere */
	char kernels_relation[3];   /* "" when nothing is said */
	int64_t kernels;
	const char *graph;          /* NULL: default */
	bool has_fp;
	FpMode fp;
	const char *broken;         /* why the block can't be run, or NULL */
	uint32_t broken_line;
} TestBlock;

typedef VEC(TestBlock) TestBlocks;

/* Finds and parses every block of text[0..n). Paths in it are relative to base. */
void test_blocks_find(Arena *a, const char *text, size_t n, const char *base, TestBlocks *out);
/* Whether n kernels satisfy the block's relation. */
bool test_kernels_hold(const TestBlock *b, int64_t n);

#endif
