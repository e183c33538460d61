/* pass.h: the pass manager. passes.def has one row a pass; pipelines in passes.c say what runs when.
 * The manager alone dumps, times, counts, verifies, rations (fuel) and honours --stop and --skip. */
#ifndef TEXO_PASSES_PASS_H
#define TEXO_PASSES_PASS_H

#include "ir/kp.h"
#include "ir/tg.h"

typedef enum {
	PASS_NONE = 0,
#define PASS(id, level, needs, keeps, fp, summary) PASS_##id,
#include "passes/passes.def"
} PassId;

enum {
	PASS_COUNT = 1
#define PASS(id, level, needs, keeps, fp, summary) +1
#include "passes/passes.def"
};

typedef enum { LEVEL_TENSOR, LEVEL_PLAN, LEVEL_TILE } PassLevel;
typedef enum { FP_EXACT, FP_REASSOC, FP_APPROX } PassFp; /* a pass above the graph's mode is not run */

typedef struct {
	const char *name;
	PassLevel level;
	unsigned needs, keeps;
	PassFp fp;
	const char *summary;
} PassInfo;
extern const PassInfo pass_info[PASS_COUNT];
PassId pass_named(const char *name);

typedef struct {
	PassId pass;
	int64_t count;
} PassFuel;

typedef enum { FUSE_ALL, FUSE_ELEMENTWISE, FUSE_OFF } FuseMode; /* what may share a kernel */

/* A choice of a tuning file: in a bucket of sizes the unit's kernel has this plan, whatever the model says. */
typedef struct {
	const char *dim;
	int64_t least, most;
} TuneRange;

typedef struct {
	const char *graph;
	uint64_t unit;           /* digest of its nodes */
	const char *kernel;      /* what the file calls it */
	const char *plan;        /* PlanAlternative.text */
	const TuneRange *range;  /* the bucket: all hold */
	uint32_t nrange;
} TuneChoice;

typedef struct {
	bool dump_all, dump[PASS_COUNT], skip[PASS_COUNT];
	PassId stop;             /* stop after this pass; the later levels are not built */
	PassFuel fuel[16];       /* at most this many rewrites of a pass */
	unsigned nfuel;
	bool late;               /* for GPUs: kernels stay before the passes over tile IR where a launch can do without (Kernel.early);
	                          * of no effect where these are dumped, left out, rationed, timed or looked at one by one */
	bool remarks, time;
	bool verify_each;        /* verify after each pass (always at the end of a level) */
	const Host *host;        /* the clock for `time`; may be NULL */
	uint16_t lanes;          /* vector width for MAP in 32-bit elements; 0: scalar */
	bool blocks;             /* threads of a block take a task together: a GPU, also for the cost model */
	uint16_t cluster;        /* blocks that can take a task together; 0: one */
	bool roles;              /* of groups of threads, and channels between them: ir/channel.h */
	uint8_t roles_tile;      /* 0, or 1 + the only tile that their kernels may have (contract/roles_tile.c) */
	bool warp_mma;           /* warps multiply matrices, which are copied to shared memory meanwhile: WARP_MMA, LOAD_MATRIX, ASYNC_COPY */
	uint8_t warps_tile;      /* 0, or 1 + the only tile that they may have (contract/warps.c) */
	uint8_t threads_tile;    /* 0, or 1 + the only tile that a GPU's threads may have (contract/threads_tile.c) */
	FuseMode fuse;
	uint32_t least_tile;     /* the least rows, columns and terms that are worth a tile of a GPU's threads; 0: as many as are */
	uint32_t part_terms;     /* the least terms of a part of a fold; 0: as many as are worth a task */
	bool has_fma;            /* the target has a fused multiply-add: relaxed mode may contract */
	bool has_scale;          /* it has TIR's SCALE */
	bool has_pick;           /* PICK of 8 lanes is one instruction there */
	bool has_masks;          /* comparisons of vectors are masks, of which ANY is one instruction */
	bool has_ex2;            /* it has TIR's EX2, RCP and other units */
	bool has_fp8;            /* its threads convert between f32 and the 8-bit floats themselves */
	bool has_halves;         /* a processor that converts between f32 and f16 itself */
	const TuneChoice *choice; /* of several for a unit and a size the first counts */
	uint32_t nchoice;
	bool alternatives;       /* Program.unit is wanted */
	TirDotUnit dot;          /* what TIR's DOT is by there: tiles of 32 x 32 elements and groups of 16 pairs; or vectors */
} PassOptions;

/* What the graph's mode says about rounding, decided on the graph as the frontend built it, for every
 * device and the oracle alike: call it before graph_eval. compile_graph does it too; twice is once. */
void graph_decide(Graph *g);

/* Runs the tensor pipeline on g, schedules it, builds and lowers its kernels. Dumps, remarks and
 * times are appended to `log` in order. NULL only after --stop (log says where), or when a verifier
 * refuses (that unwinds as a bug). */
Program *compile_graph(Graph *g, const PassOptions *o, Text *log);
/* Kernel.early of such a program, in graphs of this mode, after all passes that it lacks: what compile_graph without `late` has.
 * Everything is in a. */
const TirKernel *compile_kernel(const TirKernel *early, FpMode fp, const PassOptions *o, Arena *a);
/* Text of the plan: kernels, their nodes, tasks; for --emit=plan. And of the kernels' TIR. */
void program_print_plan(const Program *p, Text *out);
void program_print_tir(const Program *p, Text *out);

#endif
