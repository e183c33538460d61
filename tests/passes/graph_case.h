/* graph_case.h: graphs built in C, compiled, run by the tile interpreter and compared with the
 * oracle on random data, in several modes, widths, layouts and splits. */
#ifndef TEXO_TESTS_PASSES_GRAPH_CASE_H
#define TEXO_TESTS_PASSES_GRAPH_CASE_H

#include "interp_program.h"
#include "passes/pass.h"

enum { CASE_MAX_PARAM = 8 };

typedef struct {
	Arena *arena;
	Graph *g;
	int64_t dim[16];             /* values by DimId */
	int64_t lo[CASE_MAX_PARAM], hi[CASE_MAX_PARAM]; /* of random integers, by parameter */
	const void *given[CASE_MAX_PARAM];              /* packed data instead of random data */
	uint64_t seed;
	uint64_t splits;             /* added to a configuration's seed of splits, where it has one */
	bool any_fault;              /* of several faults any may be the first */
	uint32_t part_terms;         /* as PassOptions has them */
	uint16_t cluster;
	int64_t processors;          /* of the GPU; 0: as many as usual */
	bool rows;                   /* kernels run where rows let them (interp_program.h) */
} Case;

typedef void CaseFn(Case *c);

/* A dim N of this value, bound to an axis of the parameter added next. */
ExprId case_dim(Case *c, const char *name, int64_t value);
/* Parameters; integers are random in lo..hi-1 (given after), floats in -2..2. */
TensorId case_input(Case *c, TensorKind kind, const char *name, DType t, unsigned rank, const ExprId *extent);
void case_range(Case *c, TensorId t, int64_t lo, int64_t hi);
void case_given(Case *c, TensorId t, const void *packed);
/* A node with this body over the axes of the extents; more may be set before case_add. */
Node case_node(unsigned npar, ExprId body);
void case_reduce(Node *n, Monoid m, ExprId lo, ExprId hi);
TensorId case_add(Case *c, const Node *n, const char *name, DType t, const ExprId *extent);
void case_result(Case *c, const char *name, TensorId t, TensorId inout);
AccessId case_access(Case *c, AccessKind kind);

ExprId case_int(Case *c, int64_t v);
ExprId ax(Case *c, unsigned k);
ExprId read_at(Case *c, TensorId t, unsigned n, ...);    /* with proved subscripts */
ExprId gather_at(Case *c, AccessId id, TensorId t, unsigned n, ...);

/* What was seen over all configurations of a case, for facts to be tested. */
typedef struct {
	uint32_t nodes, kernels;   /* of the last configuration */
	uint32_t members;          /* nodes of its first kernel */
	bool map, serial;          /* of its first kernel: a MAP kernel; one task at a time */
	Template tmpl;             /* and its template */
	Template ran;              /* that of the kernel that ran first */
	unsigned pairs;            /* and whether its tiles are DOT's */
	bool chained;
	bool roles;                /* and whether it has some */
	bool once;                 /* whether its folds are gone through together */
	bool follows;              /* whether a kernel ran that joins what the one before it has */
	bool posts;                /* whether tasks of a kernel that ran wait for others */
	bool strips;               /* whether the kernel that ran first is one of strips, or of tiles of warps */
	bool warps;
	bool halo;                 /* whether it has what a tile reads by windows in shared memory (contract/halo.c) */
	unsigned threads;          /* of a block of the kernel that ran last */
	unsigned block_columns, unroll; /* of the kernel that ran first, of its plan */
	unsigned tile, group;      /* of the kernel that ran first: rows of a tile of threads, elements read at once; 0: none */
	unsigned columns, cluster; /* of the kernel that ran first: of rows of lanes, and blocks that take a task together */
	unsigned at_once;          /* how many threads a processor has of it, where that is asked for */
	unsigned next;             /* how many copies it has of what the next turn of a loop loads, and those before the loop */
	int64_t tasks;             /* and how many tasks */
	unsigned ahead;            /* how many of its views are fetched some turns before they are read */
	unsigned past;             /* how many loads of its first kernel's are of what is not read again */
	AccessId fault, cut;       /* the same in all */
	bool left_out;             /* the oracle was not asked, so that nothing was compared */
	int64_t compared, mismatches;
	double ratio;              /* the largest distance from the oracle, as a part of what it allows */
	const char *message;       /* the first mismatch */
	const char *remarks;       /* of the last */
	const void *first_result;  /* of the first configuration, packed */
} CaseRun;

/* The oracle's answers so far, in the arena of the graphs that they are about; NULL: none. */
typedef struct Asked Asked;

/* Builds and runs in every configuration. Fails the test when anything differs from the oracle. */
CaseRun case_run(Arena *a, CaseFn *build);
/* The same in configuration k alone, for long runs; the configurations' number is case_configs. */
void case_run_one(Arena *a, CaseFn *build, unsigned k, Asked **asked, CaseRun *out);
extern const unsigned case_configs;
/* cmocka's: an arena for each test, and case_run in it, where an unwinding fails the test. */
int case_setup(void **state);
int case_teardown(void **state);
CaseRun case_try(CaseFn *build);
/* The same of results without an element. */
void case_try_nothing(CaseFn *build);
/* The same in the first configuration alone that multiplies pairs of bf16 in this way. */
CaseRun case_try_dot(CaseFn *build, TirDotUnit unit);
/* The same for blocks of threads, which are interpreted. */
CaseRun case_try_blocks(CaseFn *build);
/* For a GPU with roles (ir/channel.h); split: its tasks go to several blocks. tile: as PassOptions has it. */
CaseRun case_try_roles(CaseFn *build, bool split, unsigned tile);
/* For a GPU whose warps multiply matrices, and that has no roles, in this mode; least and split as below. tile: as
 * PassOptions has it. */
CaseRun case_try_warps(CaseFn *build, FpMode fp, uint32_t least, bool split, unsigned tile);
/* For a GPU without either, in this mode; tiles of threads are for so many rows, columns and terms, 0: for those that are
 * worth it. tile: as PassOptions has it. */
CaseRun case_try_tiles(CaseFn *build, FpMode fp, uint32_t least, bool split, unsigned tile);

/* From main's arguments, [[-]PATTERN]: only tests of such names, or all others. */
void case_choose(int argc, char **argv);
/* A random number, at least 0 and less than n. */
uint32_t case_below(uint64_t *rng, uint32_t n);

#endif
