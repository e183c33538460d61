/* next.c: what the next phase of a held row reads comes before the threads wait for one another.
 *
 * When a phase has its terms, threads join them, and what the row's next phase computes waits for that. What it reads
 * beside, as a normalisation's factors, need not: it is on its way meanwhile. A held row's phases are one vector, so a read
 * is of the same lanes in all of them, and what was read stays for those who ask later (point/point.h).
 *
 * Of a cluster's rows, that only as far as there are registers: another block at work waits less than this gains. Where
 * they are short, a thread's number takes none meanwhile.
 *
 * Only what the next phase demands wherever it runs is read: no arm of a select, and nothing under a condition. */
#include "passes/schedule/rows/build.h"
#include "passes/schedule/rows/held.h"
#include "passes/schedule/rows/plan.h"

#include "passes/expr_map.h"

typedef VEC(ExprId) Demanded;

/* The reads that are made whenever e is, without going into lazy operands. */
static void
collect_reads(RowBuild *b, ExprId e, Demanded *out)
{
	Graph *g = b->l->g;
	Demanded stack = {0};
	vec_push(b->l->scratch, &stack, e);
	while (stack.n) {
		ExprId x = stack.at[--stack.n];
		const Expr *p = expr_get(g, x);
		if (p->op == OP_READ && g->tensor.at[p->ref].kind != TENSOR_SCALAR)
			vec_push(b->l->scratch, out, x);
		unsigned n = op_info[p->op].flags & F_LAZY ? 1 : p->narg;
		for (unsigned k = 0; k < n; k++)
			vec_push(b->l->scratch, &stack, expr_arg(g, x, k));
	}
}

/* Whether e is of memory that nothing in the kernel writes, along the lanes, and the same for all that a fold
 * goes through at them. */
static bool
may_come_early(const RowBuild *b, ExprId e, unsigned axis)
{
	const Graph *g = b->l->g;
	const Expr *p = expr_get(g, e);
	if (p->access || b->l->places->faulty[p->ref] || g->tensor.at[p->ref].kind != TENSOR_INPUT || rows_member_of(b->r, p->ref) >= 0)
		return false;
	for (unsigned k = 0; k < p->narg; k++)
		if (!expr_is_index(g, b->l->scratch, expr_arg(g, e, k)))
			return false;
	uint32_t axes = expr_axes(g, b->l->scratch, e), rows = (1u << b->r->nrow) - 1u;
	return axes >> axis & 1 && !(axes & ~(rows | 1u << axis));
}

static bool
is_of_row(const RowBuild *b, unsigned phase, unsigned axis)
{
	return rows_phase_is_held(b->r, b->kernel->plan.held, phase) && b->r->phase[phase].loop[0] == axis && !b->r->phase[phase].late;
}

static bool
folds(const RowBuild *b, unsigned phase)
{
	for (unsigned k = 0; k < b->r->nmember; k++)
		if (b->r->member[k].phase == phase && rows_is_folded(&b->r->member[k]))
			return true;
	return false;
}

static void
read_for(RowBuild *b, unsigned phase, unsigned axis, unsigned *room)
{
	for (unsigned k = 0; k < b->r->nmember; k++) {
		RowMember *m = &b->r->member[k];
		Demanded reads = {0};
		if (m->phase != phase || !expr_is_true(b->l->g, m->node.domain) || !expr_is_true(b->l->g, m->node.guard))
			continue;
		rows_enter(b, m);
		collect_reads(b, m->node.body, &reads);
		for (uint32_t n = 0; n < reads.n; n++) {
			unsigned bits = dtype_info[expr_get(b->l->g, reads.at[n])->dtype].bits;
			if (!may_come_early(b, reads.at[n], axis))
				continue;
			if (bits > *room) {
				b->l->tir->tight = true;
				continue;
			}
			point_value(b->l, reads.at[n], true);
			*room -= bits;
		}
	}
}

void
rows_read_next(RowBuild *b, unsigned phase, unsigned axis, ValId base, ValId end)
{
	unsigned room = held_early_bits(b->l->g, b->l->scratch, b->r, &b->kernel->plan);
	if (!folds(b, phase))
		return;
	b->l->mask = point_block_mask(b->l, base, end);
	for (unsigned f = phase + 1; f < b->r->nphase; f++) {
		if (is_of_row(b, f, axis))
			read_for(b, f, axis, &room);
		if (folds(b, f))
			break;
	}
	b->l->mask = 0;
}
