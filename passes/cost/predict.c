/* predict.c: see predict.h. What a launch runs of a unit is the runtime's rule (runtime/cuda_launch.c). Kernels of roles take
 * what their tile was chosen by, or what memory takes for their bytes; others what cost.c says. */
#include "passes/cost/predict.h"

#include "passes/schedule/contract/roles.h"

static const double CYCLES_A_US = 1400; /* gpu_time.h's */

static bool
value_of(const Predict *x, ExprId e, double *out)
{
	int64_t v;
	bool known = launch_value(x->env, e, &v);
	*out = known ? (double)v : 0;
	return known;
}

/* Where a step is not much longer than what the multipliers need, they are what is waited for. */
static CostBound
bound_of_steps(double step, double products)
{
	return products * 4 >= step * 3 ? COST_PRODUCTS : COST_CACHE;
}

static bool
predict_roles(const Predict *x, const KernelPlan *plan, const Work *w, Predicted *to)
{
	RolesTime t;
	double cycles, steps, step, products;
	if (!x->machine->gpu || !contract_roles_time(x->program->graph, x->scratch, x->faulty, plan, &t) ||
	    !value_of(x, t.cycles, &cycles) || !value_of(x, t.steps, &steps) || !value_of(x, t.step, &step) ||
	    !value_of(x, t.products, &products))
		return false;
	double us = cycles / CYCLES_A_US, memory = w->bytes / x->machine->most / 1000;
	to->bound = steps * step * 2 >= cycles ? bound_of_steps(step, products) : COST_START;
	if (memory > us) {
		us = memory;
		to->bound = COST_MEMORY;
	}
	to->us = us + x->machine->launch_ns / 1000;
	return true;
}

static Predicted
predict_kernel(const Predict *x, uint32_t k)
{
	const Kernel *kernel = &x->program->kernel.at[k];
	Predicted to = {.kernel = k};
	Work w = work_count(x->env, x->uses, kernel->plan.node, kernel->plan.nnode);
	if (!predict_roles(x, &kernel->plan, &w, &to))
		to.us = cost_kernel_bound(x->machine, &kernel->plan, &w, kernel->serial ? 1 : x->threads, &to.bound);
	return to;
}

static bool
extent_of(void *user, ExprId extent, int64_t *out)
{
	const Predict *x = user;
	return launch_value(x->env, extent, out);
}

/* Arguments lie as they do mostly: at a beginning of memory's own, without gaps. */
static bool
has_tasks(const Predict *x, const Kernel *k)
{
	double n;
	return (!value_of(x, k->ntask, &n) || n > 0) && kernel_takes_rows(k, x->program->graph, extent_of, (void *)x, x->scratch);
}

Predicted
predict_unit(const Predict *x, uint32_t k)
{
	const Program *p = x->program;
	Predicted all = {.kernel = k};
	double longest = -1;
	uint32_t end = k + 1, from = k, n = 0;
	bool ran = false;
	while (end < p->kernel.n && kernel_is_spare(&p->kernel.at[end]))
		end++;
	if (end == k + 1)
		return predict_kernel(x, k);
	for (uint32_t at = k; at < end; at++) {
		const Kernel *kernel = &p->kernel.at[at];
		if (!kernel->otherwise && (!kernel->aligned || at == k || !p->kernel.at[at - 1].aligned))
			ran = false;
		if (kernel->follows || ran || at < from || !has_tasks(x, kernel))
			continue;
		Predicted one = predict_kernel(x, at);
		all.kernel = n++ ? all.kernel : at;
		all.us += one.us;
		if (one.us > longest) {
			longest = one.us;
			all.bound = one.bound;
		}
		ran = true;
		from = at + 1 + program_covers(p, at);
	}
	all.more = n > 1 ? n - 1 : 0;
	return n ? all : predict_kernel(x, k);
}
