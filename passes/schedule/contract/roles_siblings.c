/* roles_siblings.c: sums of products that share a factor, in one kernel of roles (roles.c).
 *
 *     out_s[batch, row, column] = finish_s( sum[terms]( common * other_s ) ),  s = 1, 2 (, 3)
 *
 * A slot of the ring has a piece of the common factor and one of each other factor, whose tiles lie one after another, so
 * that one instruction multiplies by all where they give columns. A group has the sums of all in one accumulator, and
 * finishes an element of each together, with the pointwise nodes that read them (members.h): what is only read there is
 * never in memory. Where an other factor gives rows, the products of each go one after another.
 *
 * All sums have the same axes, extents and terms, and each would be a kernel of roles by itself: those kernels are there
 * too, for sizes and memory that this one does not suit, and where it is predicted to take longer than they do. */
#include "passes/schedule/contract/roles_build.h"

#include <string.h>

static bool
same_factor(const BoxFactor *a, const BoxFactor *b)
{
	return a->tensor == b->tensor && a->naxis == b->naxis && memcmp(a->axis, b->axis, a->naxis) == 0;
}

/* Whether the two are sums for the same elements, over the same terms. */
static bool
same_space(const Graph *g, TensorId a, TensorId b)
{
	const Tensor *x = &g->tensor.at[a], *y = &g->tensor.at[b];
	const Node *n = tensor_node(g, a), *m = tensor_node(g, b);
	for (unsigned k = 0; x->rank == y->rank && k < x->rank; k++)
		if (x->extent[k] != y->extent[k])
			return false;
	return x->rank == y->rank && n->npar == m->npar && n->axis[n->npar].hi == m->axis[m->npar].hi;
}

bool
roles_find_siblings(const Graph *g, Arena *scratch, const bool *faulty, const TensorId *sum, unsigned n, RolesProduct *r, RemarkId *why)
{
	RolesProduct x[MEMBERS_MOST_SUMS];
	bool by_row = true, by_column = true, turned = true;
	*why = n > MEMBERS_MOST_SUMS ? REMARK_siblings_many : REMARK_siblings_units;
	if (n < 2 || n > MEMBERS_MOST_SUMS || !roles_find_elements(g, scratch, faulty, sum[0], r) || r->thirds)
		return false;
	for (unsigned k = 1; k < n; k++) {
		*why = REMARK_siblings_units;
		if (!roles_find_elements(g, scratch, faulty, sum[k], &x[k]) || x[k].thirds)
			return false;
		*why = REMARK_siblings_shape;
		if (!same_space(g, sum[0], sum[k]) || x[k].row_axis != r->row_axis || x[k].column_axis != r->column_axis ||
		    x[k].row.dtype != r->row.dtype)
			return false;
		by_row &= same_factor(&x[k].row, &r->row);
		by_column &= same_factor(&x[k].column, &r->column);
	}
	r->beside = n - 1;
	r->columns = by_row;
	for (unsigned k = 1; k < n; k++) {
		r->own[k - 1] = by_row ? x[k].column : x[k].row;
		turned &= r->own[k - 1].turned == (by_row ? r->column.turned : r->row.turned);
	}
	return turned && (by_row || by_column);
}

bool
contract_siblings_could(const Graph *g, Arena *scratch, const bool *faulty, const TensorId *sum, unsigned n, const PassOptions *o,
                        RemarkId *why)
{
	RolesProduct p;
	*why = REMARK_siblings_units;
	for (unsigned k = 0; k < n; k++)
		if (!roles_possible(g, scratch, faulty, sum[k], o))
			return false;
	return roles_find_siblings(g, scratch, faulty, sum, n, &p, why);
}

bool
roles_begin_siblings(Roles *r, Graph *g, Arena *scratch, const bool *faulty, const TensorId *node, unsigned n, Members *m)
{
	TensorId sum[MEMBERS_MOST_SUMS];
	RemarkId why;
	*r = (Roles){.members = m};
	if (!members_find(g, scratch, node, n, m) || members_sums(m, sum) < 2 ||
	    !roles_find_siblings(g, scratch, faulty, sum, m->nsum, &r->of, &why))
		return false;
	r->l.g = g;
	r->l.scratch = scratch;
	r->l.node = tensor_node(g, sum[0]);
	roles_find_sizes(r);
	return true;
}

bool
contract_siblings_cycles(Graph *g, Arena *scratch, const bool *faulty, const TensorId *node, unsigned n, const PassOptions *o,
                         ExprId *together, ExprId *apart)
{
	Roles *r = ARENA_NEW(scratch, Roles);
	Members m;
	if (!roles_begin_siblings(r, g, scratch, faulty, node, n, &m))
		return false;
	unsigned side = members_side_possible(g, &m, r->of.column_axis) ? MOST_SIDE : 1;
	*together = roles_least_cycles(r, m.nsum, side);
	if (*together)
		*apart = roles_apart_cycles(r, side);
	return *together && !(o->roles_tile && roles_tile(o->roles_tile - 1u).sums != m.nsum);
}

/* Whether a result lies where a factor does. */
static bool
overwrites(const Graph *g, const Places *places, const Roles *r)
{
	for (unsigned k = 0; k < r->members->n; k++)
		for (unsigned p = 0; r->members->result[k] >= 0 && p < 2 + r->of.beside; p++) {
			unsigned own;
			if (places_memory(g, places, r->members->node[k]) == places_memory(g, places, roles_part(r, p, &own)->tensor))
				return true;
		}
	return false;
}

unsigned
contract_siblings_take(Graph *g, Arena *scratch, const Places *places, const TensorId *node, unsigned n, const PassOptions *o,
                       KernelPlan *plan)
{
	Roles *r = ARENA_NEW(scratch, Roles);
	Members m;
	unsigned count = 0;
	if (!roles_begin_siblings(r, g, scratch, places->faulty, node, n, &m) || overwrites(g, places, r))
		return 0;
	bool sides = members_side_possible(g, &m, r->of.column_axis);
	for (unsigned k = 0; k < roles_tiles(); k++) {
		RolesTile tile = roles_tile(k);
		if (tile.sums == m.nsum && (!o->roles_tile || o->roles_tile == k + 1) && (tile.side == 1 || sides) && roles_tile_fits(r, &tile))
			plan[count++] = roles_plan(&tile, node, n);
	}
	return count;
}
