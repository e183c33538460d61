/* bundle.c: kernels that do the same to several tensors, as a step of an optimiser does, in one launch (PERFORMANCE.md T11).
 *
 * in     a program's kernels in launch order
 * out    where several follow one another that have the same code, and of which none writes what another one accesses, a
 *        kernel before them with a set of buffers and scalars for each (TirKernel.sets). A launch runs it where all of them
 *        have their form for aligned memory, or nothing to do; else those behind it, which it covers
 * takes  what has one form for aligned memory and any size, of blocks whose tasks do without one another. Rows have a form
 *        for each length and stay apart
 * fp     exact: each task does what it did
 * tests  tests/passes/bundle_test.c */
#include <string.h>

#include "ir/bugs.h"
#include "passes/schedule/schedule.h"

enum { BUNDLE_WORDS = 500 }; /* of buffers and scalars: a launch has 4 KiB for them */

/* Kernels that do the same: [first, end) of the program; the forms that a bundle would run, and that takes any size. */
typedef struct {
	uint32_t first, end, aligned, any; /* aligned: the same as any where there is no other */
} Unit;

typedef struct {
	Program *p;
	Graph *g;
	VEC(Kernel) out;
	VEC(Unit) member;
	uint32_t nodes;
} Bundle;

static const Kernel *
form(const Bundle *b, const Unit *u)
{
	return &b->p->kernel.at[u->aligned];
}

/* What is accessed through a bind: a parameter where a tensor lives in its buffer. */
static TensorId
memory_of(const Graph *g, TensorId t)
{
	for (uint32_t r = 0; r < g->result.n; r++)
		if (g->result.at[r].tensor == t && g->result.at[r].inout)
			return g->result.at[r].inout;
	return t;
}

/* Whether one kernel writes what the other one accesses. */
static bool
depend(const Graph *g, const Kernel *a, const Kernel *b)
{
	for (uint32_t i = 0; i < a->buffer.n; i++)
		for (uint32_t j = 0; j < b->buffer.n; j++) {
			const BufferBind *x = &a->buffer.at[i], *y = &b->buffer.at[j];
			if (x->kind == y->kind && (a->tir->buffer.at[i].written || b->tir->buffer.at[j].written) &&
			    memory_of(g, x->tensor) == memory_of(g, y->tensor))
				return !BUG(bundle_waits_for_nothing);
		}
	return false;
}

static bool
can_be_member(const Kernel *k)
{
	if (k->tir->form != TIR_BLOCK || k->tir->cluster || k->tir->columns || k->tir->channel.n || k->serial || k->ahead || k->pitch || k->covered ||
	    k->plan.posts || tir_posts(k->tir))
		return false;
	for (uint32_t b = 0; b < k->tir->buffer.n; b++)
		if (k->tir->buffer.at[b].shared || (k->buffer.at[b].kind != BIND_DATA && k->buffer.at[b].kind != BIND_FAULT))
			return false;
	return true;
}

/* The kernels from `first` on that do the same; whether a bundle takes them. */
static bool
unit_at(const Program *p, uint32_t first, Unit *u)
{
	unsigned aligned = 0, any = 0;
	*u = (Unit){.first = first, .end = first + 1};
	while (u->end < p->kernel.n && kernel_is_spare(&p->kernel.at[u->end]))
		u->end++;
	for (uint32_t k = first; k < u->end; k++) {
		const Kernel *kernel = &p->kernel.at[k];
		if (!can_be_member(kernel))
			return false;
		if (kernel->plan.short_axis)
			continue;
		if (aligned && kernel->aligned && p->kernel.at[u->aligned].plan.flat)
			continue; /* the flat form is the bundle's; where tensors are not row-major, members run on their own */
		*(kernel->aligned ? &u->aligned : &u->any) = k;
		aligned += kernel->aligned;
		any += !kernel->aligned;
	}
	if (!aligned)
		u->aligned = u->any;
	return aligned <= 1 && any == 1;
}

/* Whether two kernels differ in names alone. */
static bool
same_code(const TirKernel *a, const TirKernel *b)
{
	if (a->threads != b->threads || a->group != b->group || a->resident != b->resident || a->inst.n != b->inst.n ||
	    a->arg.n != b->arg.n || a->region.n != b->region.n || a->buffer.n != b->buffer.n || a->scalar.n != b->scalar.n)
		return false;
	for (uint32_t k = 0; k < a->buffer.n; k++) {
		const TirBuffer *x = &a->buffer.at[k], *y = &b->buffer.at[k];
		if (x->dtype != y->dtype || x->written != y->written || x->same != y->same)
			return false;
	}
	for (uint32_t k = 0; k < a->scalar.n; k++)
		if (a->scalar.at[k].dtype != b->scalar.at[k].dtype || a->scalar.at[k].multiple != b->scalar.at[k].multiple ||
		    a->scalar.at[k].few != b->scalar.at[k].few)
			return false;
	for (ValId v = 1; v < a->inst.n; v++) {
		const TirInst *x = tir_inst(a, v), *y = tir_inst(b, v);
		if (x->op != y->op || x->type.dtype != y->type.dtype || x->type.lanes != y->type.lanes || x->nregion != y->nregion ||
		    x->narg != y->narg || x->arg != y->arg || x->region != y->region || x->imm.i != y->imm.i)
			return false;
	}
	for (uint32_t k = 0; k < a->region.n; k++)
		if (a->region.at[k].inst.n != b->region.at[k].inst.n ||
		    memcmp(a->region.at[k].inst.at, b->region.at[k].inst.at, a->region.at[k].inst.n * sizeof(ValId)) != 0)
			return false;
	return memcmp(a->arg.at, b->arg.at, a->arg.n * sizeof(ValId)) == 0;
}

static bool
joins(const Bundle *b, const Unit *u)
{
	if (b->member.n == 0)
		return true;
	const Kernel *k = form(b, u);
	uint32_t words = (k->buffer.n + k->scalar.n + 1) * (b->member.n + 1);
	if (words > BUNDLE_WORDS || b->member.n == TIR_MAX_SETS || b->nodes + k->plan.nnode > KP_MAX_NODES ||
	    !same_code(form(b, &b->member.at[0])->tir, k->tir))
		return false;
	for (uint32_t m = 0; m < b->member.n; m++)
		if (depend(b->g, form(b, &b->member.at[m]), k))
			return false;
	return true;
}

static Kernel
make_kernel(Bundle *b, Arena *scratch)
{
	Graph *g = b->g;
	Arena *a = g->arena;
	const Kernel *first = form(b, &b->member.at[0]);
	Kernel to = {.plan = first->plan, .aligned = first->aligned};
	TirKernel *tir = arena_copy(a, first->tir, sizeof *tir);
	tir->name = name_cstr(g->names, arena_text(scratch, "%s_and_%u", name_text(g->names, first->tir->name), b->member.n - 1));
	tir->sets = (uint16_t)b->member.n;
	to.tir = tir;
	to.plan.tmpl = TMPL_BUNDLE;
	to.plan.nnode = 0;
	ExprId zero = expr_int(g, DT_I64, 0), one = expr_int(g, DT_I64, 1), all = zero, suits = 0;
	ExprId begin[TIR_MAX_SETS];
	for (uint32_t m = 0; m < b->member.n; m++) {
		const Unit *u = &b->member.at[m];
		const Kernel *from = form(b, u);
		begin[m] = BUG(bundle_tasks_of_others) ? zero : all;
		all = expr_binary(g, OP_ADD, all, from->ntask);
		/* it has tasks, or the form for any size has none */
		ExprId tasks = expr_binary(g, OP_MAX, from->ntask, expr_binary(g, OP_SUB, one, b->p->kernel.at[u->any].ntask));
		suits = expr_and(g, suits, expr_binary(g, OP_LE, one, tasks));
		for (uint32_t n = 0; n < from->buffer.n; n++)
			vec_push(a, &to.buffer, from->buffer.at[n]);
		for (uint32_t n = 0; n < from->scalar.n; n++)
			vec_push(a, &to.scalar, from->scalar.at[n]);
		for (unsigned n = 0; n < from->plan.nnode; n++)
			to.plan.node[to.plan.nnode++] = from->plan.node[n];
	}
	for (uint32_t m = 1; m < b->member.n; m++)
		vec_push(a, &to.scalar, ((ScalarBind){.expr = begin[m]}));
	to.ntask = expr_select(g, suits, all, zero);
	return to;
}

/* --- in the program --- */

static void
put_unit(Bundle *b, const Unit *u, bool covered)
{
	for (uint32_t k = u->first; k < u->end; k++) {
		Kernel kernel = b->p->kernel.at[k];
		if (covered && kernel.plan.short_axis)
			continue;
		kernel.covered = kernel.covered || covered;
		kernel.alternative = kernel.alternative && !(covered && kernel.aligned);
		vec_push(b->g->arena, &b->out, kernel);
	}
}

/* The bundle, if there is more than one member, and the members, if they are not always run by it. */
static void
close_bundle(Bundle *b, Arena *scratch)
{
	bool together = b->member.n > 1;
	if (together)
		vec_push(b->g->arena, &b->out, make_kernel(b, scratch));
	bool always = together && !b->out.at[b->out.n - 1].aligned;
	for (uint32_t m = 0; m < b->member.n && !always; m++)
		put_unit(b, &b->member.at[m], together);
	b->member.n = b->nodes = 0;
}

void
bundle_kernels(Program *p, Arena *scratch)
{
	Bundle b = {.p = p, .g = p->graph};
	Unit u;
	for (uint32_t k = 0; k < p->kernel.n; k = u.end) {
		bool takes = unit_at(p, k, &u);
		if (!takes || !joins(&b, &u))
			close_bundle(&b, scratch);
		if (takes) {
			b.nodes += form(&b, &u)->plan.nnode;
			vec_push(scratch, &b.member, u);
		} else {
			put_unit(&b, &u, false);
		}
	}
	close_bundle(&b, scratch);
	p->kernel.at = b.out.at;
	p->kernel.n = b.out.n;
	p->kernel.cap = b.out.cap;
}
