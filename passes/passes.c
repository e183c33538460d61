/* passes.c: the pass manager. Pipelines are data; everything that is the same for all passes (skip,
 * stop, fuel, facts, timing, dumps, verification) happens here and nowhere else.
 *
 *     graph --tensor_pipeline--> graph --plan_schedule--> program --tile_pipeline--> program
 *
 * A GPU's program has a kernel for each range of sizes and alignments, of which launches take few; the last pipeline is most of
 * the work. So with PassOptions.late it is left to compile_kernel, once somebody wants a kernel's code.
 *
 * The verifier of a level runs after each pass with verify_each and always at the level's end; what
 * it refuses is our bug. */
#include "passes/pass_ctx.h"
#include "ir/bugs.h"
#include "passes/scratch.h"

#include <string.h>

const PassInfo pass_info[PASS_COUNT] = {
	[PASS_NONE] = {"none", LEVEL_TENSOR, 0, 0, FP_EXACT, ""},
#define PASS(id, level, needs, keeps, fp, summary) \
	[PASS_##id] = {#id, LEVEL_##level, needs, keeps, FP_##fp, summary},
#include "passes/passes.def"
};

const RemarkInfo remark_info[REMARK_COUNT] = {
	[REMARK_NONE] = {"none", ""},
#define REMARK(id, text) [REMARK_##id] = {#id, text},
#include "passes/remarks.def"
};

#define FN_TENSOR(id) {.tensor = pass_##id}
#define FN_PLAN(id) {.plan = plan_##id}
#define FN_TILE(id) {.tile = tile_##id}
static const union {
	TensorPassFn *tensor;
	PlanPassFn *plan;
	TilePassFn *tile;
} pass_run[PASS_COUNT] = {
	[PASS_NONE] = {.tensor = NULL},
#define PASS(id, level, needs, keeps, fp, summary) [PASS_##id] = FN_##level(id),
#include "passes/passes.def"
};

/* A pipeline names passes, in order; a pass may appear more than once. PASS_NONE ends it. */
static const PassId tensor_pipeline[] = {
	PASS_narrow_contract, PASS_narrow_math, PASS_fold, PASS_simplify, PASS_cse, PASS_fold_views, PASS_select_to_domain,
	PASS_pick_term, PASS_fold, PASS_simplify, PASS_cse, PASS_inline_points, PASS_simplify, PASS_dce,
	PASS_whole_products, PASS_narrow_factors, PASS_expand_squares, PASS_epilogue, PASS_terms_last, PASS_lone_elements, PASS_dce, PASS_split_folds, PASS_NONE,
};
static const PassId plan_pipeline[] = {PASS_schedule, PASS_NONE};
static const PassId tile_pipeline[] = {PASS_spread, PASS_approximate, PASS_narrow_divide, PASS_narrow_ex2, PASS_contract, PASS_narrow_scaled,
                                       PASS_narrow_short, PASS_expand_ex2, PASS_expand_pick_scaled, PASS_expand_pick,
                                       PASS_expand_scaled, PASS_expand_near, PASS_expand_math, PASS_divide_often,
                                       PASS_own_casts, PASS_half_casts, PASS_legalize, PASS_cleanup, PASS_roll, PASS_early_loads,
                                       PASS_fit, PASS_NONE};

typedef struct {
	PassCtx cx;
	ScratchPool pool;
	Arena scratch;
	unsigned facts;
	Arena *arena;     /* for what is made */
	FpMode fp;
	Program *program; /* once scheduled */
	bool stopped;
} Manager;

PassId
pass_named(const char *name)
{
	for (int id = 1; id < PASS_COUNT; id++)
		if (strcmp(pass_info[id].name, name) == 0)
			return (PassId)id;
	return PASS_NONE;
}

bool
spend(PassCtx *cx)
{
	if (cx->fuel == 0)
		return false;
	if (cx->fuel > 0)
		cx->fuel--;
	return true;
}

void
remark(PassCtx *cx, RemarkId why, TensorId t)
{
	remark_text(cx, why, t, remark_info[why].text);
}

void
remark_text(PassCtx *cx, RemarkId why, TensorId t, const char *text)
{
	if (!cx->options->remarks)
		return;
	text_printf(cx->log, "remark[%s]: ", remark_info[why].id);
	if (t) {
		const Tensor *p = &cx->graph->tensor.at[t];
		if (p->name)
			text_printf(cx->log, "%s ", name_text(cx->graph->names, p->name));
		text_printf(cx->log, "(%%%u", t);
		if (p->at.line)
			text_printf(cx->log, ", line %u", p->at.line);
		text_printf(cx->log, ") ");
	}
	text_printf(cx->log, "%s\n", text);
}

/* Fuel is kept by the manager across the places of one pass in its pipeline. */
static void
load_fuel(Manager *m, PassId id, int64_t *left)
{
	if (left[id] == INT64_MIN) {
		left[id] = -1;
		for (unsigned k = 0; k < m->cx.options->nfuel; k++)
			if (m->cx.options->fuel[k].pass == id)
				left[id] = m->cx.options->fuel[k].count;
	}
	m->cx.fuel = left[id];
}

static bool
may_run(const Manager *m, PassId id)
{
	const PassInfo *p = &pass_info[id];
	if (m->cx.options->skip[id] && p->level != LEVEL_PLAN)
		return false;
	if (p->needs & FACTS_OF_TARGET & ~m->facts)
		return false;
	switch (m->fp) {
	case FP_STRICT:
		return p->fp == FP_EXACT || BUG(contract_in_strict);
	case FP_RELAXED:
		return p->fp != FP_APPROX;
	case FP_FAST:
		return true;
	}
	return false;
}

static void
establish(Manager *m, unsigned needs)
{
	if ((needs & FACT_FAULTS) && !(m->facts & FACT_FAULTS)) {
		m->cx.faulty = graph_may_fault(m->cx.graph, m->cx.graph->arena);
		m->facts |= FACT_FAULTS;
	}
}

static void
verify_graph(Manager *m, const char *where)
{
	const char *error = NULL;
	if (!graph_verify(m->cx.graph, &m->scratch, &error))
		bug(m->cx.graph->arena, "pass %s: %s", where, error);
	arena_free(&m->scratch);
}

static void
verify_program(Manager *m, const char *where)
{
	for (uint32_t k = 0; k < m->program->kernel.n; k++) {
		const Kernel *kernel = &m->program->kernel.at[k];
		const char *error = NULL;
		if (!kernel->early && !tir_verify(kernel->tir, &m->scratch, &error))
			bug(m->arena, "pass %s: kernel %u: %s", where, k, error);
		arena_free(&m->scratch);
	}
}

/* Every kernel is one rewrite of a tile pass as far as fuel goes. */
static uint32_t
run_tile_pass(Manager *m, PassId id)
{
	uint32_t changed = 0;
	for (uint32_t k = 0; k < m->program->kernel.n; k++) {
		Kernel *kernel = &m->program->kernel.at[k];
		if (kernel->early)
			continue;
		if (!spend(&m->cx))
			break;
		TirKernel *to = pass_run[id].tile(kernel->tir, m->arena);
		changed += to != kernel->tir;
		kernel->tir = to;
	}
	return changed;
}

static void
dump(Manager *m, PassId id, bool changed)
{
	const PassOptions *o = m->cx.options;
	if (!o->dump_all && !o->dump[id])
		return;
	text_printf(m->cx.log, "# after %s%s\n", pass_info[id].name, changed ? "" : " (unchanged)");
	if (!changed)
		return;
	switch (pass_info[id].level) {
	case LEVEL_TENSOR:
		graph_print(m->cx.graph, m->cx.log);
		break;
	case LEVEL_PLAN:
		program_print_plan(m->program, m->cx.log);
		break;
	case LEVEL_TILE:
		program_print_tir(m->program, m->cx.log);
		break;
	}
}

static uint32_t
run_pass(Manager *m, PassId id)
{
	switch (pass_info[id].level) {
	case LEVEL_TENSOR:
		return pass_run[id].tensor(m->cx.graph, &m->cx);
	case LEVEL_PLAN:
		m->program = pass_run[id].plan(m->cx.graph, &m->cx);
		return m->program->kernel.n;
	case LEVEL_TILE:
		return run_tile_pass(m, id);
	}
	return 0;
}

static void
run_timed(Manager *m, PassId id)
{
	const PassOptions *o = m->cx.options;
	const HostClock *clock = o->time && o->host ? &o->host->clock : NULL;
	int64_t start = clock ? clock->now_ns(clock->user) : 0;
	m->cx.pass = id;
	uint32_t n = run_pass(m, id);
	if (clock)
		text_printf(m->cx.log, "time: %-16s %8.3f ms %8u rewrites\n", pass_info[id].name,
		            (double)(clock->now_ns(clock->user) - start) / 1e6, n);
	if (n)
		m->facts &= pass_info[id].keeps | FACTS_OF_TARGET;
	arena_free(&m->scratch);
	dump(m, id, n > 0 || pass_info[id].level == LEVEL_PLAN);
}

static void
verify_level(Manager *m, PassLevel level, const char *where)
{
	if (level == LEVEL_TENSOR)
		verify_graph(m, where);
	else
		verify_program(m, where);
}

static void
run_pipeline(Manager *m, PassLevel level, const PassId *pipeline)
{
	int64_t left[PASS_COUNT];
	const char *last = "(before the first one)";
	for (unsigned k = 0; k < PASS_COUNT; k++)
		left[k] = INT64_MIN;
	for (const PassId *id = pipeline; *id != PASS_NONE && !m->stopped; id++) {
		if (may_run(m, *id)) {
			load_fuel(m, *id, left);
			establish(m, pass_info[*id].needs);
			run_timed(m, *id);
			left[*id] = m->cx.fuel;
			last = pass_info[*id].name;
			if (m->cx.options->verify_each)
				verify_level(m, level, last);
		}
		m->stopped = m->cx.options->stop == *id;
		if (m->stopped)
			text_printf(m->cx.log, "# stopped after %s\n", pass_info[*id].name);
	}
	verify_level(m, level, last);
}

static void
begin(Manager *m, const PassOptions *o, Arena *a, FpMode fp, Text *log)
{
	*m = (Manager){.cx = {.options = o, .log = log, .fuel = -1}, .arena = a, .fp = fp,
	               .facts = (o->has_fma ? FACT_FMA : 0u) | (o->has_scale ? FACT_SCALE : 0u) |
	                        (o->has_fp8 ? FACT_FP8 : 0u) | (o->has_ex2 ? FACT_EX2 : 0u) |
	                        (o->has_halves ? FACT_HALVES : 0u) | (o->has_pick ? FACT_PICK : 0u) |
	                        (o->has_masks ? FACT_MASKS : 0u)};
	scratch_pool_init(&m->pool, a);
	scratch_arena_init(&m->pool, &m->scratch);
	m->cx.scratch = &m->scratch;
}

/* Whether nobody can tell when the passes over tile IR are run. */
static bool
may_be_late(const PassOptions *o)
{
	bool told = o->dump_all || o->stop != PASS_NONE || o->nfuel || o->time || o->verify_each;
	for (int id = 1; id < PASS_COUNT; id++)
		told |= pass_info[id].level == LEVEL_TILE && (o->dump[id] || o->skip[id]);
	return o->late && o->blocks && !told;
}

/* What the tables of a launch say of a kernel's tile IR is in it after spread: how much memory a block shares, and what
 * is accessed in groups. Later passes add neither. Of boxes that are copied (channels) they say more, which later passes
 * may simplify: such kernels stay for them. */
static void
set_early_aside(Manager *m)
{
	for (uint32_t k = 0; k < m->program->kernel.n; k++) {
		Kernel *kernel = &m->program->kernel.at[k];
		if (kernel->tir->channel.n)
			continue;
		kernel->early = kernel->tir;
		kernel->tir = tile_spread(kernel->tir, m->arena);
	}
}

Program *
compile_graph(Graph *g, const PassOptions *o, Text *log)
{
	Manager m;
	begin(&m, o, g->arena, g->fp, log);
	m.cx.graph = g;
	graph_mark_reports(g, &m.scratch);
	arena_free(&m.scratch);
	run_pipeline(&m, LEVEL_TENSOR, tensor_pipeline);
	if (!m.stopped)
		run_pipeline(&m, LEVEL_PLAN, plan_pipeline);
	if (!m.stopped && may_be_late(o))
		set_early_aside(&m);
	if (!m.stopped)
		run_pipeline(&m, LEVEL_TILE, tile_pipeline);
	return m.stopped ? NULL : m.program;
}

const TirKernel *
compile_kernel(const TirKernel *early, FpMode fp, const PassOptions *o, Arena *a)
{
	Manager m;
	Text log;
	Program one = {0};
	text_init(&log, a);
	begin(&m, o, a, fp, &log);
	vec_push(a, &one.kernel, ((Kernel){.tir = (TirKernel *)(uintptr_t)early}));
	m.program = &one;
	run_pipeline(&m, LEVEL_TILE, tile_pipeline);
	return one.kernel.at[0].tir;
}
