/* cost.c: see cost.h. A kernel moves its bytes at the rate of where they lie and computes at the rate of
 * its instructions, both at once: the longer of the two counts. Bytes lie in the cache where all that a
 * thread touches fits there. */
#include "passes/cost/cost.h"

#include "passes/schedule/op_cost.h"
#include "passes/schedule/scan.h"
#include "passes/schedule/schedule.h"

static const Machine machine[] = {
#define MACHINE(lanes, ...) {lanes, __VA_ARGS__},
#include "passes/cost/machines.def"
};

const Machine *
cost_machine(uint16_t lanes)
{
	const Machine *best = NULL;
	for (unsigned k = 0; k < sizeof machine / sizeof *machine; k++)
		if (machine[k].lanes <= lanes)
			best = &machine[k];
	return best;
}

static double
least(double a, double b)
{
	return a < b ? a : b;
}

/* Nanoseconds of one thread's instructions. */
static double
busy_ns(const Machine *m, Template t, bool vectors, const Work *w)
{
	if (t == TMPL_CONTRACT || t == TMPL_STREAM) /* their terms are multiply-adds of the tile */
		return w->flops / m->gflops;
	return vectors ? w->vector_ns * m->slower : w->scalar_ns;
}

static double
kernel_us(const Machine *m, Template t, bool vectors, const Work *w, unsigned threads)
{
	double busy = busy_ns(m, t, vectors, w), far = w->bytes / m->far;
	double parts = least(threads, 1 + (busy > far ? busy : far) / CALL_NS);
	bool fits = w->bytes <= m->cache * parts;
	double moving = w->bytes / (fits ? m->near * parts : least(m->far * parts, m->most));
	double working = busy / parts;
	return (m->launch_ns + (parts > 1 ? m->split_ns : 0) + (moving > working ? moving : working)) / 1000;
}

double
cost_kernel_us(const Machine *m, const KernelPlan *plan, const Work *w, unsigned threads)
{
	return kernel_us(m, (Template)plan->tmpl, plan->lanes > 1, w, threads);
}

double
cost_alone_us(const Machine *m, const Graph *g, TensorId t, const Work *w, unsigned threads)
{
	const Node *n = tensor_node(g, t);
	bool vectors = !n->recur && !n->scatter;
	return kernel_us(m, contract_is_sum_of_products(g, t) ? TMPL_CONTRACT : TMPL_NONE, vectors, w, threads);
}

void
cost_note_steps(UseTable *uses, const Program *p)
{
	for (uint32_t k = 0; k < p->kernel.n; k++)
		for (unsigned n = 0; p->kernel.at[k].plan.tmpl == TMPL_SCAN && n < p->kernel.at[k].plan.nnode; n++) {
			TensorId t = p->kernel.at[k].plan.node[n];
			const Node node = *tensor_node(p->graph, t);
			Scan scan;
			RemarkId why;
			uses->steps[t] = scan_derive(p->graph, uses->arena, &node, &scan, &why);
		}
}

double
cost_program_us(const Machine *m, const Program *p, const LaunchEnv *env, Arena *scratch, unsigned threads)
{
	UseTable uses;
	double us = 0;
	use_table_init(&uses, p->graph, scratch);
	cost_note_steps(&uses, p);
	for (uint32_t k = 0; k < p->kernel.n; k++) {
		const KernelPlan *plan = &p->kernel.at[k].plan;
		Work w = work_count(env, &uses, plan->node, plan->nnode);
		us += cost_kernel_us(m, plan, &w, p->kernel.at[k].serial ? 1 : threads);
	}
	return us;
}
