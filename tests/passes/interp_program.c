#include "interp_program.h"
#include "ir/gpu_facts.h"

#include <string.h>

enum { CANARY = 64, POISON = 0xa5, KERNEL_FORMS = 32 };

typedef struct {
	uint8_t *data;      /* with CANARY bytes on both sides */
	int64_t bytes;
	int64_t extent[TG_MAX_RANK], stride[TG_MAX_RANK]; /* in elements */
	unsigned rank;
	DType dtype;
} Memory;

typedef struct {
	const Program *p;
	const Graph *g;
	Arena *a;
	const EvalInputs *in;
	const int64_t *dim;
	InterpOptions o;
	Memory **home;      /* by TensorId: data */
	Memory **plane;     /* by TensorId: fault plane */
	VEC(Memory *) all;
	Arena scratch;      /* of a kernel's call: so the next one finds its pages in the caches */
	InterpRun *out;
	uint64_t seed;
	Memory *passed;     /* of the kernel that ran last, its first BIND_PASSED */
	bool follows;       /* the kernel at work: what it is passed is that */
	bool called;        /* the kernel at work, before */
	int64_t ahead;      /* its tasks that are finished before others begin */
} Interp;

/* --- launch expressions --- */

static int64_t
floor_div(int64_t a, int64_t b)
{
	if (b == 0)
		return -1;
	return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

static const void *
parameter(const Interp *r, TensorId t)
{
	for (uint32_t k = 0; k < r->g->param.n; k++)
		if (r->g->param.at[k] == t)
			return r->in->data[k];
	bug(r->a, "%%%u is no parameter", t);
}

static int64_t
launch_value(const Interp *r, ExprId e)
{
	const Expr *p = expr_get(r->g, e);
	if (p->op == OP_CONST)
		return p->imm.i;
	if (p->op == OP_DIM)
		return dim_is_users(r->g, p->ref) ? r->dim[p->ref] : r->g->dim.at[p->ref].value;
	if (p->op == OP_READ)
		return eval_load((DType)p->dtype, parameter(r, p->ref), 0).i;
	if (p->op == OP_CAST)
		return launch_value(r, expr_arg(r->g, e, 0));
	int64_t a = launch_value(r, expr_arg(r->g, e, 0));
	int64_t b = p->narg > 1 ? launch_value(r, expr_arg(r->g, e, 1)) : 0;
	if (p->op == OP_ADD)
		return a + b;
	if (p->op == OP_SUB)
		return a - b;
	if (p->op == OP_MUL)
		return a * b;
	if (p->op == OP_IDIV)
		return floor_div(a, b);
	if (p->op == OP_IMOD)
		return b ? a - floor_div(a, b) * b : a;
	if (p->op == OP_MIN)
		return a < b ? a : b;
	if (p->op == OP_MAX)
		return a > b ? a : b;
	if (p->op == OP_EQ || p->op == OP_LE)
		return p->op == OP_EQ ? a == b : a <= b;
	if (p->op == OP_AND)
		return a && b;
	if (p->op == OP_SELECT)
		return a ? b : launch_value(r, expr_arg(r->g, e, 2));
	bug(r->a, "launch expression with %s", op_info[p->op].text);
}

/* --- memory --- */

/* Poisoned memory for n elements, between canaries. */
static void
memory_take(Interp *r, Memory *m, DType dtype, int64_t n)
{
	m->dtype = dtype;
	if (!dtype_bytes(dtype, n, &m->bytes))
		bug(r->a, "too large");
	uint8_t *raw = arena_alloc(r->a, (size_t)m->bytes + 2 * CANARY);
	memset(raw, POISON, (size_t)m->bytes + 2 * CANARY);
	m->data = raw + CANARY;
	vec_push(r->a, &r->all, m);
}

static Memory *
memory_new(Interp *r, TensorId t, DType dtype, unsigned inner)
{
	Memory *m = ARENA_NEW(r->a, Memory);
	const Tensor *tensor = &r->g->tensor.at[t];
	int64_t n = inner;
	m->rank = tensor->rank;
	for (unsigned a = m->rank; a-- > 0;) {
		m->extent[a] = launch_value(r, tensor->extent[a]);
		m->stride[a] = n;
		n *= m->extent[a];
	}
	memory_take(r, m, dtype, n);
	return m;
}

static int64_t
count_of(const Memory *m)
{
	int64_t n = 1;
	for (unsigned a = 0; a < m->rank; a++)
		n *= m->extent[a];
	return n;
}

/* Between packed row-major storage and m. 4-bit memory is always row-major. */
static void
transfer(Memory *m, uint8_t *packed, bool in)
{
	int64_t size = dtype_info[m->dtype].bits / 8, n = count_of(m);
	if (size == 0) {
		int64_t bytes = (n + 1) / 2;
		memcpy(in ? m->data : packed, in ? packed : m->data, (size_t)bytes);
		return;
	}
	for (int64_t k = 0; k < n; k++) {
		int64_t rest = k, at = 0;
		for (unsigned a = m->rank; a-- > 0; rest /= m->extent[a])
			at += rest % m->extent[a] * m->stride[a];
		memcpy(in ? m->data + at * size : packed + k * size, in ? packed + k * size : m->data + at * size,
		       (size_t)size);
	}
}

/* Whether a kernel takes the last stride of t's buffer for 1: a launch would hand it a copy. */
static bool
takes_unit(const Interp *r, TensorId t)
{
	for (uint32_t k = 0; k < r->p->kernel.n; k++)
		for (uint32_t b = 0; b < r->p->kernel.at[k].buffer.n; b++) {
			const BufferBind *x = &r->p->kernel.at[k].buffer.at[b];
			if (x->kind == BIND_DATA && x->unit && x->tensor == t)
				return true;
		}
	return false;
}

static unsigned
outer_stride(const Interp *r, TensorId t)
{
	return r->o.stride && !takes_unit(r, t) && dtype_info[r->g->tensor.at[t].dtype].bits >= 8 ? r->o.stride : 1;
}

static void
place_tensors(Interp *r)
{
	const Graph *g = r->g;
	r->home = ARENA_ARRAY(r->a, Memory *, g->tensor.n);
	r->plane = ARENA_ARRAY(r->a, Memory *, g->tensor.n);
	for (uint32_t k = 0; k < g->param.n; k++) {
		TensorId t = g->param.at[k];
		if (g->tensor.at[t].kind == TENSOR_SCALAR)
			continue;
		unsigned inner = outer_stride(r, t);
		for (uint32_t n = 0; n < g->result.n; n++) /* an inout's memory is its result's too */
			inner = g->result.at[n].inout == t && takes_unit(r, g->result.at[n].tensor) ? 1 : inner;
		r->home[t] = memory_new(r, t, g->tensor.at[t].dtype, inner);
		transfer(r->home[t], (uint8_t *)r->in->data[k], true);
	}
	for (uint32_t k = 0; k < g->result.n; k++) {
		const Result *x = &g->result.at[k];
		if (g->tensor.at[x->tensor].kind != TENSOR_NODE || r->home[x->tensor])
			bug(r->a, "result %u has no node of its own", k);
		r->home[x->tensor] = x->inout ? r->home[x->inout]
		                              : memory_new(r, x->tensor, g->tensor.at[x->tensor].dtype,
		                                           outer_stride(r, x->tensor));
	}
}

static Memory *
bound_memory(Interp *r, const BufferBind *b, DType dtype)
{
	if (b->kind == BIND_SCRATCH || b->kind == BIND_SHARED || b->kind == BIND_CLEARED || b->kind == BIND_PASSED) {
		if (b->kind == BIND_PASSED && r->follows)
			return r->passed;
		Memory *m = ARENA_NEW(r->a, Memory);
		int64_t n = launch_value(r, b->elements);
		memory_take(r, m, dtype, n > 0 ? n : 0);
		if (b->kind == BIND_CLEARED)
			memset(m->data, 0, (size_t)m->bytes);
		if (b->kind == BIND_PASSED)
			r->passed = m;
		return m;
	}
	if (b->kind == BIND_WORK)
		return memory_new(r, b->tensor, dtype, 1);
	Memory **at = b->kind == BIND_DATA ? &r->home[b->tensor] : &r->plane[b->tensor];
	if (!*at)
		*at = memory_new(r, b->tensor, b->kind == BIND_DATA ? r->g->tensor.at[b->tensor].dtype : DT_U32, 1);
	return *at;
}

static bool
canaries_live(const Interp *r)
{
	for (uint32_t k = 0; k < r->all.n; k++)
		for (int i = 0; i < CANARY; i++)
			if (r->all.at[k]->data[-1 - i] != POISON || r->all.at[k]->data[r->all.at[k]->bytes + i] != POISON)
				return false;
	return true;
}

/* --- kernels --- */

static uint64_t
next_random(Interp *r)
{
	r->seed += 0x9e3779b97f4a7c15u;
	uint64_t z = (r->seed ^ (r->seed >> 30)) * 0xbf58476d1ce4e5b9u;
	return z ^ (z >> 27);
}

static const void *
scalar_value(Interp *r, const ScalarBind *b)
{
	if (b->expr && expr_get(r->g, b->expr)->op == OP_READ)
		return parameter(r, expr_get(r->g, b->expr)->ref);
	int64_t *v = ARENA_NEW(r->a, int64_t);
	if (b->expr)
		*v = launch_value(r, b->expr);
	else
		*v = r->home[b->tensor]->stride[b->axis];
	return v;
}

/* The scratch of a call: its own, or what an earlier one left, but never some of each. What the tasks ahead
 * left is there for all. */
static void
give_scratch(Interp *r, const Kernel *k, TirRun *run)
{
	bool afresh = !r->called || next_random(r) & 1, shared = r->called && r->ahead > 0;
	for (uint32_t b = 0; b < k->buffer.n; b++)
		if (afresh && (k->buffer.at[b].kind == BIND_SCRATCH || (k->buffer.at[b].kind == BIND_SHARED && !shared))) {
			memset(run->buffer[b].data, POISON, (size_t)run->buffer[b].bytes);
			memset(run->buffer[b].data, 0, run->buffer[b].bytes < 64 ? (size_t)run->buffer[b].bytes : 64);
		}
	r->called = true;
}

/* From lo on, every step-th one. */
static bool
run_every(Interp *r, const Kernel *k, TirRun *run, int64_t lo, int64_t hi, unsigned step)
{
	give_scratch(r, k, run);
	run->task_step = step;
	run->task_lo = lo;
	run->task_hi = hi;
	run->fault = run->cut = 0;
	run->max_steps = 1 << 26;
	const char *error = NULL;
	bool ok = tir_interpret(k->tir, &r->scratch, run, &error);
	if (!ok)
		r->out->error = arena_text(r->a, "%s: %s", name_text(r->g->names, k->tir->name), error);
	arena_free(&r->scratch);
	run->verified = true;
	if (!ok)
		return false;
	if (!r->out->fault)
		r->out->fault = run->fault;
	if (!r->out->cut)
		r->out->cut = run->cut;
	return true;
}

/* As one block would, or as several, whose turns begin with the first task. */
static bool
run_tasks(Interp *r, const Kernel *k, TirRun *run, int64_t lo, int64_t hi)
{
	unsigned blocks = r->o.blocks && k->tir->channel.n && !k->tir->cluster && !tir_posts(k->tir) ? r->o.blocks : 1;
	for (unsigned n = 0; n < blocks; n++)
		if (!run_every(r, k, run, lo + n, hi, blocks))
			return false;
	return true;
}

/* Splits lo..hi somewhere, and runs the halves in any order, or in theirs where tasks wait. */
static bool
run_split(Interp *r, const Kernel *k, TirRun *run, int64_t lo, int64_t hi, unsigned depth)
{
	if (hi - lo < 2 || depth == 0 || k->serial || !r->o.split)
		return run_tasks(r, k, run, lo, hi);
	int64_t mid = lo + (int64_t)(next_random(r) % (uint64_t)(hi - lo + 1));
	bool swap = (next_random(r) & 1) && !tir_posts(k->tir);
	return run_split(r, k, run, swap ? mid : lo, swap ? hi : mid, depth - 1) &&
	       run_split(r, k, run, swap ? lo : mid, swap ? mid : hi, depth - 1);
}

/* Set after set, in any order. */
static bool
run_sets(Interp *r, const Kernel *k, TirRun *run, int64_t ntask)
{
	const TirKernel *t = k->tir;
	const TirRun all = *run;
	const uint32_t handed = tir_handed_buffers(t);
	uint32_t first = r->o.split ? (uint32_t)(next_random(r) % t->sets) : 0;
	for (uint32_t n = 0; n < t->sets; n++) {
		uint32_t set = (first + n) % t->sets;
		const void *const *begin = all.scalar + t->scalar.n * t->sets;
		int64_t lo = set ? *(const int64_t *)begin[set - 1] : 0;
		int64_t hi = set + 1 < t->sets ? *(const int64_t *)begin[set] : ntask;
		TirMemory *buffer = ARENA_ARRAY(r->a, TirMemory, t->buffer.n);
		for (uint32_t b = 0; b < handed; b++)
			buffer[b] = all.buffer[set * handed + b];
		run->buffer = buffer;
		run->scalar = all.scalar + set * t->scalar.n;
		if (lo > hi)
			bug(r->a, "set %u begins after the next one", set);
		if (!run_split(r, k, run, 0, hi - lo, 4))
			return false;
	}
	return true;
}

static bool
run_kernel(Interp *r, const Kernel *k)
{
	TirMemory *buffer = ARENA_ARRAY(r->a, TirMemory, k->tir->buffer.n * tir_sets(k->tir));
	const void **scalar = ARENA_ARRAY(r->a, const void *, k->scalar.n);
	r->called = false;
	const uint32_t handed = tir_handed_buffers(k->tir);
	if ((k->tir->form != TIR_SPREAD && k->buffer.n != handed * tir_sets(k->tir)) || k->scalar.n != tir_launch_scalars(k->tir))
		bug(r->a, "a kernel's binds are not its arguments");
	for (uint32_t b = 0; b < k->buffer.n; b++) {
		const Memory *m = bound_memory(r, &k->buffer.at[b], k->tir->buffer.at[b % handed].dtype);
		buffer[b] = (TirMemory){m->data, m->bytes};
	}
	for (uint32_t s = 0; s < k->scalar.n; s++)
		scalar[s] = scalar_value(r, &k->scalar.at[s]);
	TirRun run = {.buffer = buffer, .scalar = scalar};
	r->out->posts |= tir_posts(k->tir);
	r->out->threads = k->tir->threads;
	int64_t ntask = launch_value(r, k->ntask);
	if (k->tir->sets)
		return run_sets(r, k, &run, ntask);
	r->ahead = k->ahead ? launch_value(r, k->ahead) : 0;
	if (r->ahead == 0 || next_random(r) & 1) /* a single call has them all */
		return run_split(r, k, &run, 0, ntask, r->ahead ? 0 : 4);
	return run_split(r, k, &run, 0, r->ahead, 4) && run_split(r, k, &run, r->ahead, ntask, 4);
}

/* Whether these sizes leave it a place for what it hands on. */
static bool
has_room(Interp *r, const Kernel *k)
{
	return !k->room || launch_value(r, k->room) != 0;
}

static bool
extent_of(void *user, ExprId extent, int64_t *out)
{
	*out = launch_value(user, extent);
	return true;
}

/* Whether a launch of these sizes may take kernel k. */
static bool
may_run(Interp *r, uint32_t k)
{
	const Kernel *kernel = &r->p->kernel.at[k];
	return !kernel->follows && launch_value(r, kernel->ntask) > 0 && (!r->o.rows || kernel_takes_rows(kernel, r->g, extent_of, r, r->a));
}

/* Of kernel k and those that do the same, up to `next`, one that takes these sizes: the first, or any. `next`: none, or those
 * that do the same one by one. */
static uint32_t
choose_form(Interp *r, uint32_t k, uint32_t *next)
{
	uint32_t takes[KERNEL_FORMS], n = 0;
	*next = k;
	do {
		if (may_run(r, *next) && n + 1 < KERNEL_FORMS)
			takes[n++] = *next;
		++*next;
	} while (*next < r->p->kernel.n && r->p->kernel.at[*next].alternative);
	if (n && r->o.split % 5 == 1 && program_covers(r->p, takes[0]) && has_room(r, &r->p->kernel.at[*next]))
		takes[n++] = *next;
	return n == 0 ? *next : takes[r->o.split % 5 == 1 ? next_random(r) % n : 0];
}

bool
interp_is_tiles(const Kernel *k)
{
	return k->plan.tmpl == TMPL_CONTRACT && k->plan.threads && k->tir->channel.n == 0;
}

InterpRun
interp_program(const Program *p, Arena *a, const EvalInputs *in, const int64_t *dim, const InterpOptions *o)
{
	InterpRun out = {0};
	Interp r = {.p = p, .g = p->graph, .a = a, .in = in, .dim = dim, .o = *o, .out = &out, .seed = o->split};
	arena_init(&r.scratch, a->memory, a->unwind);
	place_tensors(&r);
	for (uint32_t k = 0, next, covered = 0; k < p->kernel.n; k = next) {
		uint32_t chosen = k < covered ? UINT32_MAX : choose_form(&r, k, &next);
		if (chosen == UINT32_MAX) {
			next = k + 1;
			continue;
		}
		covered = chosen < next && program_covers(p, chosen) ? chosen + 1 + program_covers(p, chosen) : 0;
		if (chosen < next && !out.ran) {
			out.ran = &p->kernel.at[chosen];
			out.tasks = launch_value(&r, out.ran->ntask);
		}
		if (chosen < next)
			out.last = &p->kernel.at[chosen];
		out.tiles += chosen < next && interp_is_tiles(&p->kernel.at[chosen]);
		out.roles += chosen < next && p->kernel.at[chosen].tir->channel.n > 0;
		if (chosen < next && !has_room(&r, &p->kernel.at[chosen]) && launch_value(&r, p->kernel.at[chosen].ntask) > 0)
			out.error = "a kernel runs that has no place in the workspace";
		if (out.error || (chosen < next && !run_kernel(&r, &p->kernel.at[chosen])))
			return out;
		if (chosen + 1 < next && p->kernel.at[chosen + 1].follows) {
			r.follows = out.follows = true;
			if (!run_kernel(&r, &p->kernel.at[chosen + 1]))
				return out;
			r.follows = false;
		}
	}
	if (!canaries_live(&r))
		out.error = "something outside a tensor was overwritten";
	out.result = ARENA_ARRAY(a, const void *, r.g->result.n);
	for (uint32_t k = 0; k < r.g->result.n; k++) {
		Memory *m = r.home[r.g->result.at[k].tensor];
		uint8_t *packed = arena_alloc(a, (size_t)m->bytes + 1);
		transfer(m, packed, false);
		out.result[k] = packed;
	}
	return out;
}
