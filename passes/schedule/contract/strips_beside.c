/* strips_beside.c: what a lane's rows take of memory beside weights that come through a ring (strips_ring.c), and groups of
 * terms have in common: scales, and zero points.
 *
 *     sum[k](x[m, k] * (q[n, k] - z[n, k div 32]) * s[n, k div 32])
 *
 * A warp reads them of 8 rows at a time, each from a line of its own: as many lines as a processor looks up in one cycle each. Of
 * 32 terms of two bits and a half that bounds all else. So where the groups of a row lie one behind another, and a launch finds
 * them aligned (ir/image.h), a warp reads those of its whole share of a fill at once: then an axis counts groups in the place of
 * `k div 32`, along which the reads are vectors. A row's groups are a multiple of a vector's there, so it has none beyond the end. */
#include "passes/schedule/contract/strips.h"

#include "ir/bugs.h"

enum { ACCESS_BITS = 128 };

static const EarlyReads *
reads_of(const StripScales *scales, const StripFactor *f, unsigned which)
{
	return which ? &f->reads : &scales->reads;
}

/* Whether the read's last subscript is the number of the term's group, and no other has the term; *apart: none has. */
static bool
goes_by_group(const Graph *g, Arena *scratch, ExprId read, unsigned axis, unsigned group, bool *apart)
{
	const Expr *p = expr_get(g, read);
	*apart = !(expr_axes(g, scratch, read) >> axis & 1);
	if (*apart || !p->narg)
		return false;
	for (unsigned k = 0; k + 1u < p->narg; k++)
		if (expr_axes(g, scratch, expr_arg(g, read, k)) >> axis & 1)
			return false;
	const Expr *last = expr_get(g, expr_arg(g, read, p->narg - 1u));
	if (last->op != OP_IDIV)
		return false;
	const Expr *of = expr_get(g, expr_arg(g, expr_arg(g, read, p->narg - 1u), 0)), *by = expr_get(g, expr_arg(g, expr_arg(g, read, p->narg - 1u), 1));
	return of->op == OP_AXIS && of->ref == axis && by->op == OP_CONST && by->imm.i == group;
}

bool
strip_beside_goes_by_groups(const Graph *g, Arena *scratch, const StripProduct *p, unsigned term_axis, unsigned groups)
{
	unsigned found = 0;
	for (unsigned which = 0; which < 2; which++)
		for (unsigned r = 0; r < reads_of(&p->scales, &p->side[0], which)->n; r++) {
			const EarlyRead *read = &reads_of(&p->scales, &p->side[0], which)->at[r];
			bool apart = true, goes = read->how != EARLY_GROUP && goes_by_group(g, scratch, read->read, term_axis, p->scales.group, &apart);
			if ((!goes && !apart) || (goes && groups * dtype_info[expr_get(g, read->read)->dtype].bits > ACCESS_BITS))
				return false;
			found += goes;
		}
	return found > 0;
}

void
strip_beside_declare(Strips *s, unsigned groups)
{
	Graph *g = s->l.g;
	s->beside = (StripBeside){.groups = groups, .axis = s->term_axis + 1};
	for (unsigned which = 0; which < 2 && groups > 1; which++)
		for (unsigned r = 0; r < reads_of(&s->scales, &s->side[0], which)->n; r++) {
			const EarlyRead *read = &reads_of(&s->scales, &s->side[0], which)->at[r];
			bool apart;
			if (read->how == EARLY_GROUP || !goes_by_group(g, s->l.scratch, read->read, s->term_axis, s->scales.group, &apart))
				continue;
			unsigned last = expr_get(g, read->read)->narg - 1u;
			s->beside.of[which][r] = expr_replace(g, s->l.scratch, read->read, expr_arg(g, read->read, last), expr_axis(g, s->beside.axis));
			point_declare(&s->l, s->beside.of[which][r]);
		}
}

void
strip_beside_read(Strips *s, ValId term, ValId from, StripBesideValues to)
{
	Point *l = &s->l;
	for (unsigned which = 0; which < 2; which++)
		for (unsigned r = 0; r < reads_of(&s->scales, &s->side[0], which)->n; r++)
			for (unsigned row = 0; row < s->side[0].rows; row++) {
				const EarlyRead *read = &reads_of(&s->scales, &s->side[0], which)->at[r];
				ValId *at = to[which][r][row];
				if (read->how == EARLY_GROUP)
					continue;
				l->axis[s->side[0].own_axis] = s->side[0].own[row];
				l->axis[s->term_axis] = which ? from : term;
				if (!s->beside.of[which][r]) {
					at[0] = early_value(l, read->read, true);
					for (unsigned n = 1; n < s->beside.groups; n++)
						at[n] = at[0];
					continue;
				}
				l->axis[s->beside.axis] = strips_op(s, OP_IDIV, term, strips_int(s, s->scales.group));
				early_group(l, s->beside.of[which][r], s->beside.groups, s->beside.axis, at);
			}
}
