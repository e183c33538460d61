/* gpu_facts.c: see gpu_facts.h. */
#include "ir/gpu_facts.h"

const GpuFactInfo gpu_fact_info[GPU_FACTS] = {
#define FACT(id, text, unit, what) {text, unit, what},
#include "ir/gpus.def"
};

static const GpuRow row[] = {
#define GPU(name, sm, ...) {name, sm, {__VA_ARGS__}},
#include "ir/gpus.def"
};

const GpuRow *
gpu_row_usual(void)
{
	return &row[0];
}

ExprId
gpu_fact(Graph *g, GpuFact f)
{
	DimId d = 1;
	while (d < g->dim.n && gpu_fact_of(&g->dim.at[d]) != (int)f)
		d++;
	if (d == g->dim.n) {
		Name name = name_cstr(g->names, arena_text(g->arena, "gpu.%s", gpu_fact_info[f].text));
		Dim dim = {.name = name, .param = -1, .axis = GPU_FACT_AXIS - (int32_t)f, .fixed = true, .value = row[0].fact[f]};
		vec_push(g->arena, &g->dim, dim);
	}
	return expr_dim(g, d);
}
