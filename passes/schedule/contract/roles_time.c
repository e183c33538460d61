/* roles_time.c: how long a kernel of roles is predicted to take, and at which rate: what its tile was chosen by (roles_tile.c),
 * for those who show it. */
#include "passes/schedule/contract/gpu_time.h"
#include "passes/schedule/contract/roles_build.h"

/* What the plan's kernel computes, of which nothing but the sizes is asked; false: it is no kernel of roles of these. */
static bool
begin(Roles *r, Graph *g, Arena *scratch, const bool *faulty, const KernelPlan *plan, Members *m)
{
	if (plan->sums)
		return roles_begin_siblings(r, g, scratch, faulty, plan->node, plan->nnode, m);
	*r = (Roles){0};
	if (!roles_find_elements(g, scratch, faulty, plan->node[0], &r->of))
		return false;
	r->l.g = g;
	r->l.scratch = scratch;
	r->l.node = tensor_node(g, plan->node[0]);
	roles_find_sizes(r);
	return true;
}

bool
contract_roles_time(Graph *g, Arena *scratch, const bool *faulty, const KernelPlan *plan, RolesTime *to)
{
	Roles *r = ARENA_NEW(scratch, Roles);
	Members m;
	if (plan->tmpl != TMPL_CONTRACT || !plan->threads || plan->lanes || plan->pairs || plan->joins || !begin(r, g, scratch, faulty, plan, &m))
		return false;
	RolesTile t = roles_tile(roles_tile_of(plan));
	*to = (RolesTime){.cycles = roles_cycles(r, &t), .steps = roles_steps(r, &t),
	                  .step = roles_step(r, &t, false), .products = gpu_products_step(g, t.rows, roles_tile_products(&t))};
	return true;
}
