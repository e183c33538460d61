/* cost.c: see cost.h. A kernel moves its bytes at the rate of where they lie and computes at the rate of
 * its instructions, both at once: the longer of the two counts. Bytes lie in the cache where all that a
 * thread touches fits there. */
#include "passes/cost/cost.h"

#include "ir/gpu_rows.h"
#include "passes/cost/predict.h"
#include "passes/schedule/op_cost.h"
#include "passes/schedule/rows/prefixes.h"
#include "passes/schedule/schedule.h"

#include <math.h>

static const Machine machine[] = {
#define MACHINE(gpu, lanes, ...) {gpu, lanes, __VA_ARGS__},
#include "passes/cost/machines.def"
};

const Machine *
cost_machine(bool gpu, uint16_t lanes)
{
	const Machine *best = NULL;
	for (unsigned k = 0; k < sizeof machine / sizeof *machine; k++)
		if (machine[k].gpu == gpu && machine[k].lanes <= lanes)
			best = &machine[k];
	return best;
}

const char *const cost_bound_text[COST_BOUNDS] = {
	[COST_START] = "starting", [COST_MEMORY] = "memory", [COST_CACHE] = "the cache", [COST_ARITHMETIC] = "arithmetic",
	[COST_PRODUCTS] = "tensor cores", [COST_ROUNDED] = "tensor cores (tf32)"};

/* What lies beside the figures is of no device. */
Machine
cost_gpu(const int64_t *fact)
{
	Machine m = *cost_machine(true, 0);
	m.threads = (unsigned)fact[GPU_PROCESSORS];
	m.products = (double)fact[GPU_PRODUCTS];
	m.gflops = (double)fact[GPU_ARITHMETIC];
	m.near = (double)fact[GPU_CACHE] / 1000;
	m.most = (double)fact[GPU_MEMORY];
	m.far = m.most / m.threads;
	m.launch_ns = (double)fact[GPU_LAUNCH];
	return m;
}

static double
least(double a, double b)
{
	return a < b ? a : b;
}

/* Of multiply-adds, in GFLOP/s. */
static double
rate(const Machine *m, const KernelShape *shape)
{
	return shape->rounded ? m->products / 2 : shape->products ? m->products : m->gflops;
}

/* Nanoseconds of one thread's instructions. */
static double
busy_ns(const Machine *m, const KernelShape *shape, const Work *w)
{
	if (shape->tmpl == TMPL_CONTRACT || shape->tmpl == TMPL_STREAM) /* their terms are multiply-adds of the tile */
		return (w->steps - w->panel_flops) / rate(m, shape) + w->panel_ns * m->slower;
	return shape->vectors ? w->vector_ns * m->slower : w->scalar_ns;
}

static double
parts_us(const Machine *m, const KernelShape *shape, const Work *w, double busy, double parts, CostBound *bound)
{
	bool fits = w->bytes <= m->cache * parts;
	double moving = (w->bytes + w->again) / (fits ? m->near * parts : least(m->far * parts, m->most));
	if (shape->kept > m->cache) /* written and read again for each task, far away */
		moving += 2 * shape->kept * shape->tasks / least(m->far * parts, m->most);
	double working = busy / parts, start = m->launch_ns + (parts > 1 ? m->split_ns : 0);
	*bound = working >= moving ? (shape->rounded ? COST_ROUNDED : shape->products ? COST_PRODUCTS : COST_ARITHMETIC) : fits ? COST_CACHE : COST_MEMORY;
	if (start > moving && start > working)
		*bound = COST_START;
	return (start + (moving > working ? moving : working)) / 1000;
}

/* Work is split where that is faster. */
static double
shape_bound(const Machine *m, const KernelShape *shape, const Work *w, unsigned threads, CostBound *bound)
{
	CostBound split;
	double busy = busy_ns(m, shape, w), far = w->bytes / m->far;
	double most = least(m->gpu ? m->threads : threads, shape->tasks > 1 ? shape->tasks : 1);
	double parts = least(most, 1 + (busy > far ? busy : far) / m->part_ns);
	double one = parts_us(m, shape, w, busy, 1, bound), all = parts_us(m, shape, w, busy, parts, &split);
	*bound = all < one ? split : *bound;
	return least(one, all);
}

double
cost_shape_us(const Machine *m, const KernelShape *shape, const Work *w, unsigned threads)
{
	CostBound bound;
	return shape_bound(m, shape, w, threads, &bound);
}

double
cost_kernel_bound(const Machine *m, const KernelPlan *plan, const Work *w, unsigned threads, CostBound *bound)
{
	KernelShape shape = {.tmpl = (Template)plan->tmpl, .vectors = m->gpu || plan->lanes > 1, .tasks = INFINITY,
	                     .products = m->gpu && plan->threads && (!plan->lanes || plan->pairs), .rounded = m->gpu && contract_rounds(plan)};
	return shape_bound(m, &shape, w, threads, bound);
}

double
cost_alone_us(const Machine *m, const Graph *g, TensorId t, const Work *w, unsigned threads)
{
	const Node *n = tensor_node(g, t);
	KernelShape shape = {.tmpl = contract_is_sum_of_products(g, t) ? TMPL_CONTRACT : TMPL_NONE,
	                     .vectors = m->gpu || (!n->recur && !n->scatter), .tasks = INFINITY};
	return cost_shape_us(m, &shape, w, threads);
}

static void
note_scans(UseTable *uses, Graph *g, const KernelPlan *plan)
{
	for (unsigned n = 0; n < plan->nnode; n++) {
		const Node node = *tensor_node(g, plan->node[n]);
		Scan scan;
		RemarkId why;
		uses->steps[plan->node[n]] = scan_derive(g, uses->arena, &node, &scan, &why);
	}
}

void
cost_note_plans(UseTable *uses, const Program *p)
{
	const bool *faulty = NULL;
	for (uint32_t k = 0; k < p->kernel.n; k++) {
		const KernelPlan *plan = &p->kernel.at[k].plan;
		if (plan->tmpl == TMPL_SCAN)
			note_scans(uses, p->graph, plan);
		if (plan->tmpl != TMPL_CONTRACT || plan->threads)
			continue;
		faulty = faulty ? faulty : graph_may_fault(p->graph, uses->arena);
		uses->panels[plan->node[0]] = contract_panels(p->graph, uses->arena, faulty, plan->node[0], plan);
	}
}

void
cost_note_panels_of(UseTable *uses, Graph *g, const bool *faulty, TensorId t, const PassOptions *o)
{
	KernelPlan plan = {0};
	RemarkId why;
	bool takes = contract_is_sum_of_products(g, t) && contract_takes(g, uses->arena, faulty, t, o, &plan, &why);
	uses->panels[t] = takes ? contract_panels(g, uses->arena, faulty, t, &plan) : NULL;
}

void
cost_note_panels(UseTable *uses, Graph *g, const bool *faulty, const PassOptions *o)
{
	for (uint32_t i = 0; i < g->node.n; i++)
		cost_note_panels_of(uses, g, faulty, g->node.at[i].out, o);
}

double
cost_program_us(const Machine *m, const Program *p, const LaunchEnv *env, Arena *scratch, unsigned threads)
{
	UseTable uses;
	Predict x = {m, p, env, &uses, graph_may_fault(p->graph, scratch), scratch, threads};
	double us = 0;
	use_table_init(&uses, p->graph, scratch);
	cost_note_plans(&uses, p);
	for (uint32_t k = 0; k < p->kernel.n; k++)
		if (!kernel_is_spare(&p->kernel.at[k]))
			us += predict_unit(&x, k).us;
	return us;
}
