/* pass_ctx.h: what a pass is given beside the graph, and how it talks to the manager. */
#ifndef TEXO_PASSES_PASS_CTX_H
#define TEXO_PASSES_PASS_CTX_H

#include "passes/pass.h"

/* Facts about a graph that the manager keeps for the passes that need them. */
enum {
	FACT_FAULTS = 1, /* PassCtx.faulty is graph_may_fault of the graph as it stands */
	FACT_FMA = 2,    /* the target has a fused multiply-add */
	FACT_SCALE = 4,  /* the target has TIR's SCALE */
	FACT_FP8 = 8,    /* its threads convert between f32 and the 8-bit floats */
	FACT_EX2 = 16,   /* the target has TIR's EX2, RCP and other units */
	FACT_HALVES = 32, /* it converts between f32 and f16 */
	FACT_PICK = 64,  /* PICK of 8 lanes is one instruction there */
	FACT_MASKS = 128, /* comparisons are masks there */
	FACTS_OF_TARGET = FACT_FMA | FACT_SCALE | FACT_FP8 | FACT_EX2 | FACT_HALVES | FACT_PICK | FACT_MASKS
};

typedef enum {
	REMARK_NONE = 0,
#define REMARK(id, text) REMARK_##id,
#include "passes/remarks.def"
} RemarkId;

enum {
	REMARK_COUNT = 1
#define REMARK(id, text) +1
#include "passes/remarks.def"
};

typedef struct {
	const char *id, *text;
} RemarkInfo;
extern const RemarkInfo remark_info[REMARK_COUNT];

typedef struct PassCtx {
	const PassOptions *options;
	Arena *scratch;      /* emptied by the manager after the pass; results go into Graph.arena */
	const bool *faulty;  /* by TensorId; with FACT_FAULTS */
	Graph *graph;
	Text *log;
	PassId pass;
	int64_t fuel;        /* rewrites left to this pass; < 0: no limit */
} PassCtx;

typedef uint32_t TensorPassFn(Graph *g, PassCtx *cx);
typedef Program *PlanPassFn(Graph *g, PassCtx *cx);
typedef TirKernel *TilePassFn(const TirKernel *k, Arena *a);

/* Sets Node.reports; once, before the first pass. */
void graph_mark_reports(Graph *g, Arena *scratch);

/* The body of a sum of products of a narrow float, widened, and of what may then be rounded to it, which it says; 0: of anything
 * else (narrow_contract.c). */
ExprId narrowed_contraction(Graph *g, Arena *scratch, const Node *n);

/* Asks for leave to do one rewrite; false: out of fuel, change nothing more. */
bool spend(PassCtx *cx);
/* Says why, about t (0: the graph), when remarks were asked for. */
void remark(PassCtx *cx, RemarkId why, TensorId t);
/* The same in words of the case. */
void remark_text(PassCtx *cx, RemarkId why, TensorId t, const char *text);

#define FN_TENSOR(id) TensorPassFn pass_##id;
#define FN_PLAN(id) PlanPassFn plan_##id;
#define FN_TILE(id) TilePassFn tile_##id;
#define PASS(id, level, needs, keeps, fp, summary) FN_##level(id)
#include "passes/passes.def"
#undef FN_TENSOR
#undef FN_PLAN
#undef FN_TILE

#endif
