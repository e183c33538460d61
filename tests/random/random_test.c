/* random_test.c: usage: random_test [--seed S] [--count N] [--cpu | --cuda] [--show] [--first]
 *
 * Random programs through the whole compiler, three ways: the oracle on the graph, as it was written and as the passes left it, the tile
 * interpreter on the lowered kernels, and (--cpu) machine code. Every element must lie within the
 * oracle's bound, integers and exact programs to the bit, interpreter and machine code agree to the
 * bit. Outputs start as two different poisons in two runs; in the second one of every other program the
 * elements of a tensor are apart from one another; memory ends at, or begins after, a page
 * that can't be touched; inputs must stay as they were. An access that leaves its tensor is reported by
 * all or by none, and what is reported is an access that the oracle saw fail; likewise cut ranges. --cuda is the same on a GPU, exit status 77 without one.
 *
 * Seeds from 2^32 on have sizes that a GPU's matrix units take; of 40 with --blocks one at least must run them in roles.
 *
 * Prints what the programs contained and fails when they contained less than they should, when
 * anything disagreed, or when a program did not compile. A failure prints its seed and program; with
 * --first nothing is run after the first ones. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "inputs.h"
#include "interp_program.h"
#include "passes/pass.h"
#include "runtime/cuda.h"
#include "texo_rt.h"

enum { BATCH = 16 };

typedef struct {
	RandomProgram rp;
	Graph *g;
	const Graph *plain;    /* before the passes, but for what its mode says about rounding */
	Program *program;
	const void *data[RP_MAX_TENSOR];
	const int64_t *shape[RP_MAX_TENSOR];
	int64_t dim[RP_MAX_DIM + 1];
	EvalInputs in;
	EvalOutputs want;
	EvalStatus status;
	const void **interp;   /* packed results of the tile interpreter */
} Job;

typedef struct {
	uint64_t seed, count;
	bool cpu, show, first;
	unsigned failed, compiled, checks, faults, cuts, kernels, slow;
	uint64_t elements, ambiguous, unbounded;
	unsigned tmpl[TMPL_COUNT], templated; /* programs with a kernel of the template; of any but NEST */
	unsigned narrowed;                    /* with a narrowed function */
	unsigned tiled, roles;                /* that ran a contraction by tiles of a GPU's threads; a kernel of roles */
	unsigned trait[RP_TRAIT_COUNT], rank[RP_MAX_RANK + 1], dtype[DT_COUNT];
	Fence fence;
	texo_rt *rt;
	PassOptions passes;
	const char *cuda;      /* the GPU's code; NULL: the processor */
} Run;

static void
fail(Run *r, const Job *j, const char *what)
{
	if (r->failed++ < 10)
		printf("FAILED seed %llu: %s\n%s\n", (unsigned long long)j->rp.seed, what, text_get(&j->rp.text));
}

/* Every other program is compiled as texo fmt lays it out, which is stable. */
static FileId
source_of(Run *r, Job *j, Arena *a, Names *names, Diags *d)
{
	size_t n, again;
	FileId id = diags_add_file(d, "random.tex", text_get(&j->rp.text), j->rp.text.n);
	const char *text = j->rp.seed % 2 ? frontend_layout(a, names, d, id, &n) : NULL;
	if (!text)
		return id;
	FileId laid = diags_add_file(d, "layout.tex", text, n);
	const char *twice = frontend_layout(a, names, d, laid, &again);
	if (!twice || again != n || memcmp(text, twice, n) != 0)
		fail(r, j, "its layout is not stable");
	return laid;
}

static Graph *
check(Run *r, Job *j, Arena *a, bool report)
{
	Diags d;
	diags_init(&d, a);
	Names *names = names_new(a);
	FileId id = source_of(r, j, a, names, &d);
	FpMode fp = j->rp.seed % 3 == 0 ? FP_STRICT : j->rp.seed % 5 == 1 ? FP_FAST : FP_RELAXED;
	FrontendOptions o = {.fp = fp, .host = host_default()};
	Unit *u = frontend_compile(a, names, &d, id, &o);
	if (d.nerror == 0 && u->graph.n == 1)
		return u->graph.at[0];
	if (report)
		fail(r, j, diags_render(&d, a, false));
	return NULL;
}

static const RpTensor *
tensor_named(const RandomProgram *p, const char *name)
{
	for (unsigned k = 0; k < p->ntensor; k++)
		if (strcmp(p->tensor[k].name, name) == 0)
			return &p->tensor[k];
	return NULL;
}

static void
make_data(Job *j, Arena *a)
{
	uint64_t rng = j->rp.seed * 77 + 5;
	for (uint32_t k = 0; k < j->g->param.n; k++) {
		const RpTensor *t = tensor_named(&j->rp, name_text(j->g->names, j->g->tensor.at[j->g->param.at[k]].name));
		int64_t *shape = ARENA_ARRAY(a, int64_t, RP_MAX_RANK + 1);
		for (unsigned x = 0; x < t->rank; x++)
			shape[x] = j->rp.size[t->dim[x]];
		j->shape[k] = shape;
		j->data[k] = rp_fill(&j->rp, t, a, &rng);
	}
	for (uint32_t d = 1; d < j->g->dim.n; d++)
		j->dim[d] = j->rp.size[name_text(j->g->names, j->g->dim.at[d].name)[1] - '0'];
	j->in.data = j->data;
	j->in.shape = j->shape;
}

/* Values equal to the bit, NaNs being one value. */
static bool
same_bits(DType t, const void *a, const void *b, int64_t n)
{
	EvalValue x = eval_load(t, a, n), y = eval_load(t, b, n);
	if (!dtype_is_float(t) && t != DT_C64)
		return x.i == y.i;
	bool re = (isnan(x.re) && isnan(y.re)) || (x.re == y.re && signbit(x.re) == signbit(y.re));
	return re && ((isnan(x.im) && isnan(y.im)) || (x.im == y.im && signbit(x.im) == signbit(y.im)));
}

static bool
exactly(const EvalTensor *w, const void *got)
{
	for (int64_t n = 0; dtype_is_float(w->dtype) && n < w->count; n++) {
		EvalValue v = eval_load(w->dtype, got, n);
		if (!w->at[n].skip && !w->at[n].ambiguous && !isnan(v.re) && v.re != w->at[n].re)
			return false;
	}
	return true;
}

/* One result against an evaluation of the graph. */
static void
compare(Run *r, Job *j, const EvalOutputs *want, uint32_t k, const void *got, const char *who, Arena *a)
{
	const EvalTensor *w = &want->result[k];
	EvalCompare c;
	if (want->fault)
		return;
	eval_compare(w, got, &c);
	r->elements += (uint64_t)c.count;
	r->ambiguous += (uint64_t)c.ambiguous;
	for (int64_t n = 0; n < w->count; n++)
		r->unbounded += isinf(w->at[n].err) != 0;
	const char *name = name_text(j->g->names, j->g->result.at[k].name);
	if (c.mismatches)
		fail(r, j, arena_text(a, "%s: %s[%lld]: got %.9g, the oracle has %.9g with bound %.3g (%lld elements differ)", who, name,
		                      (long long)c.worst, c.worst_got, c.worst_want, c.worst_bound, (long long)c.mismatches));
	else if (j->rp.exact && !exactly(w, got))
		fail(r, j, arena_text(a, "%s: %s: integers are not exact", who, name));
}

/* Of several failed accesses any may be the one reported. */
static bool
may_report(const Job *j, AccessId fault)
{
	return (fault != 0) == (j->want.fault != 0) && (!fault || j->want.failing[fault]);
}

/* The same for an access by its place in the source. */
static bool
may_report_at(const Job *j, const texo_fault *f)
{
	bool found = !f->failed;
	for (AccessId a = 1; a < j->g->access.n; a++) {
		const Access *x = &j->g->access.at[a];
		found |= j->want.failing[a] && x->at.line == f->line && x->at.col == f->col && strcmp(x->text, f->access) == 0;
	}
	return found && (f->failed != 0) == (j->want.fault != 0);
}

/* Oracle, passes, tile interpreter. False when the program is not to be run further. */
static bool
prepare(Run *r, Job *j, Arena *a, uint64_t seed)
{
	memset(j, 0, sizeof *j);
	rp_generate(&j->rp, a, seed);
	if (r->show)
		printf("# seed %llu\n%s\n", (unsigned long long)seed, text_get(&j->rp.text));
	if (!(j->g = check(r, j, a, true)))
		return false;
	r->compiled++;
	Graph *plain = check(r, j, a, false);
	graph_decide(plain);
	j->plain = plain;
	make_data(j, a);
	Text log;
	text_init(&log, a);
	r->passes.part_terms = j->rp.seed % 4 ? 1 + (uint32_t)j->rp.seed % 9 : 0; /* parts of what is small as well */
	r->passes.least_tile = 1; /* tiles of what is small as well */
	j->program = compile_graph(j->g, &r->passes, &log);
	j->status = graph_eval(j->g, a, &j->in, 4000000, &j->want);
	if (j->status == EVAL_CHECK_FAILED)
		r->checks++;
	if (j->status == EVAL_BAD_INPUT)
		fail(r, j, j->want.message);
	if (j->status != EVAL_OK)
		return j->status == EVAL_CHECK_FAILED;
	r->faults += j->want.fault != 0;
	r->cuts += j->want.cut != 0;
	r->kernels += j->program->kernel.n;
	/* kernels of roles store groups of columns, and are a launch's only where rows are such */
	InterpOptions io = {.stride = 1 + seed % 2, .split = seed % 5 ? seed : 0, .rows = r->passes.roles};
	InterpRun got = interp_program(j->program, a, &j->in, j->dim, &io);
	if (got.error) {
		bool slow = strstr(got.error, "runs too long") != NULL;
		r->slow += slow;
		if (!slow)
			fail(r, j, got.error);
		return false;
	}
	if (!may_report(j, got.fault))
		fail(r, j, arena_text(a, "interpreter: fault %u, the oracle has %u", got.fault, j->want.fault));
	if ((got.cut != 0) != (j->want.cut != 0))
		fail(r, j, arena_text(a, "interpreter: cut %u, the oracle has %u", got.cut, j->want.cut));
	r->tiled += got.tiles > 0;
	r->roles += got.roles > 0;
	j->interp = got.result;
	for (uint32_t k = 0; k < j->g->result.n; k++)
		compare(r, j, &j->want, k, got.result[k], "interpreter", a);
	EvalOutputs before;
	if (graph_eval(j->plain, a, &j->in, 4000000, &before) == EVAL_OK)
		for (uint32_t k = 0; k < j->g->result.n; k++)
			compare(r, j, &before, k, got.result[k], "against the graph before the passes", a);
	return true;
}

/* --- machine code --- */

static DLDataType
dl_type(DType t)
{
	DLDataType d = {kDLFloat, dtype_info[t].bits, 1};
	switch (t) {
	case DT_BF16: d.code = kDLBfloat; break;
	case DT_F8E4M3: d.code = kDLFloat8_e4m3fn; break;
	case DT_F8E5M2: d.code = kDLFloat8_e5m2; break;
	case DT_F4E2M1: d.code = kDLFloat4_e2m1fn; break;
	case DT_E8M0: d.code = kDLFloat8_e8m0fnu; break;
	case DT_BOOL: d.code = kDLBool; break;
	case DT_C64: d.code = kDLComplex; break;
	default:
		if (dtype_is_int(t))
			d.code = dtype_info[t].kind == KIND_INT ? kDLInt : kDLUInt;
	}
	return d;
}

typedef struct {
	DLTensor tensor[RP_MAX_TENSOR];
	texo_arg arg[RP_MAX_TENSOR];
	size_t bytes[RP_MAX_TENSOR], size[RP_MAX_TENSOR]; /* of all; of an element, or 0 */
	int64_t count[RP_MAX_TENSOR], stride[RP_MAX_TENSOR][RP_MAX_RANK];
	unsigned n, gap;              /* gap: from one element to the next, in elements */
	int of_result[RP_MAX_TENSOR]; /* by Graph.result: which argument */
} Args;

static void
set_strides(DLTensor *t, int64_t *stride, unsigned gap)
{
	int64_t n = gap;
	for (unsigned a = (unsigned)t->ndim; a-- > 0;) {
		stride[a] = n;
		n *= t->shape[a] > 0 ? t->shape[a] : 1;
	}
	t->strides = gap > 1 ? stride : NULL;
}

static void
place(Run *r, Args *args, DType t, unsigned rank, int64_t *shape, int64_t count, const void *data, unsigned round)
{
	int64_t bytes = 0;
	unsigned k = args->n++, size = dtype_info[t].bits / 8, gap = size ? args->gap : 1;
	dtype_bytes(t, count ? (count - 1) * gap + 1 : 0, &bytes);
	size_t align = t == DT_C64 ? 4 : size ? size : 1;
	uint8_t *at = fence_place(&r->fence, k, (size_t)bytes, align, round == 0, round ? 0x5a : 0xa5);
	if (data && bytes && gap == 1)
		memcpy(at, data, (size_t)bytes);
	for (int64_t n = 0; data && gap > 1 && n < count; n++)
		memcpy(at + n * gap * size, (const uint8_t *)data + n * size, size);
	args->bytes[k] = (size_t)bytes;
	args->count[k] = count;
	args->size[k] = size;
	args->tensor[k] = (DLTensor){.data = at, .device = {kDLCPU, 0}, .ndim = (int32_t)rank, .dtype = dl_type(t), .shape = shape};
	set_strides(&args->tensor[k], args->stride[k], gap);
	args->arg[k].tensor = &args->tensor[k];
}

/* The elements of an argument in a row. */
static const void *
packed(const Args *args, unsigned k, Arena *a)
{
	const uint8_t *at = args->tensor[k].data;
	if (!args->tensor[k].strides)
		return at;
	size_t size = args->size[k];
	uint8_t *row = arena_alloc(a, (size_t)args->count[k] * size + 1);
	for (int64_t n = 0; n < args->count[k]; n++)
		memcpy(row + (size_t)n * size, at + (size_t)n * args->gap * size, size);
	return row;
}

static void
make_args(Run *r, Job *j, Args *args, Arena *a, unsigned round)
{
	const Graph *g = j->g;
	memset(args, 0, sizeof *args);
	args->gap = round && j->rp.seed % 2 ? 2 : 1;
	for (uint32_t k = 0; k < g->param.n; k++) {
		const Tensor *t = &g->tensor.at[g->param.at[k]];
		const RpTensor *x = tensor_named(&j->rp, name_text(g->names, t->name));
		if (t->kind == TENSOR_SCALAR)
			args->arg[args->n++].scalar = j->data[k];
		else
			place(r, args, t->dtype, t->rank, (int64_t *)j->shape[k], rp_count(&j->rp, x), j->data[k], round);
		for (uint32_t q = 0; q < g->result.n; q++)
			if (g->result.at[q].inout == g->param.at[k])
				args->of_result[q] = (int)k;
	}
	for (uint32_t q = 0; q < g->result.n; q++) {
		if (g->result.at[q].inout)
			continue;
		const RpTensor *x = tensor_named(&j->rp, name_text(g->names, g->result.at[q].name));
		int64_t *shape = ARENA_ARRAY(a, int64_t, RP_MAX_RANK + 1);
		for (unsigned d = 0; d < x->rank; d++)
			shape[d] = j->rp.size[x->dim[d]];
		args->of_result[q] = (int)args->n;
		place(r, args, x->dtype, x->rank, shape, rp_count(&j->rp, x), NULL, round);
	}
}

static void
check_memory(Run *r, Job *j, const Args *args, Arena *a)
{
	const Graph *g = j->g;
	for (unsigned k = 0; k < args->n; k++) {
		if (!args->arg[k].tensor)
			continue;
		if (!fence_intact(&r->fence, k, args->tensor[k].data, args->bytes[k]))
			fail(r, j, "machine code wrote outside a tensor");
		if (k < g->param.n && g->tensor.at[g->param.at[k]].kind == TENSOR_INPUT && args->bytes[k] &&
		    memcmp(packed(args, k, a), j->data[k], args->tensor[k].strides ? (size_t)args->count[k] * args->size[k] : args->bytes[k]) != 0)
			fail(r, j, "machine code changed an input");
	}
}

/* --- arguments on a GPU: memory of the host is where they come from and go back to --- */

typedef struct {
	void *host[RP_MAX_TENSOR];
} Moved;

static texo_status
move_in(Run *r, Args *args, Moved *m)
{
	texo_status st = TEXO_OK;
	for (unsigned k = 0; st == TEXO_OK && k < args->n; k++) {
		DLTensor *t = &args->tensor[k];
		void *at;
		if (!args->arg[k].tensor)
			continue;
		st = cuda_memory_alloc(r->rt, args->bytes[k], &at);
		if (st != TEXO_OK)
			break;
		m->host[k] = t->data;
		t->data = at;
		t->device.device_type = kDLCUDA;
		st = cuda_copy_in(r->rt, at, m->host[k], args->bytes[k]);
	}
	return st;
}

static texo_status
move_out(Run *r, Args *args, const Moved *m, texo_status st)
{
	for (unsigned k = 0; k < args->n; k++) {
		void *at = args->tensor[k].data;
		if (!m->host[k])
			continue;
		texo_status copied = cuda_copy_out(r->rt, m->host[k], at, args->bytes[k]);
		st = st == TEXO_OK ? copied : st;
		cuda_memory_free(r->rt, at);
		args->tensor[k].data = m->host[k];
	}
	return st;
}

/* As on the processor: TEXO_FAULT when an access failed. */
static texo_status
launch_cuda(Run *r, Args *args, texo_kernel *kernel, texo_fault *fault)
{
	Moved m = {{0}};
	size_t need = 0;
	void *work = NULL;
	texo_status st = move_in(r, args, &m);
	if (st == TEXO_OK)
		st = texo_kernel_workspace(kernel, args->arg, args->n, &need);
	if (st == TEXO_OK && need)
		st = cuda_memory_alloc(r->rt, need, &work);
	if (st == TEXO_OK)
		st = texo_kernel_launch(kernel, args->arg, args->n, work, NULL);
	if (st == TEXO_OK)
		st = cuda_wait(r->rt, NULL);
	if (st == TEXO_OK)
		st = texo_kernel_status(kernel, fault);
	cuda_memory_free(r->rt, work);
	st = move_out(r, args, &m, st);
	return st == TEXO_OK && fault->failed ? TEXO_FAULT : st;
}

static texo_status
launch_cpu(Args *args, texo_kernel *kernel, texo_fault *fault, unsigned round)
{
	size_t need = 0;
	void *work = NULL;
	texo_status st = texo_kernel_workspace(kernel, args->arg, args->n, &need);
	if (st == TEXO_OK && need) {
		work = aligned_alloc(64, (need + 63) / 64 * 64);
		memset(work, round ? 0x5a : 0xa5, need);
	}
	if (st == TEXO_OK)
		st = texo_kernel_launch(kernel, args->arg, args->n, work, NULL);
	if (st == TEXO_OK || st == TEXO_FAULT)
		texo_kernel_status(kernel, fault);
	free(work);
	return st;
}

static bool
has_unit(const TirKernel *k)
{
	for (ValId v = 1; v < k->inst.n; v++)
		if (op_info[tir_inst(k, v)->op].flags & F_UNIT)
			return true;
	return false;
}

/* A relaxed sum has an order of each form that a kernel has for other sizes and alignments; units give what they give. */
static bool
may_differ(const Program *p)
{
	for (uint32_t k = 0; k < p->kernel.n; k++)
		if (p->kernel.at[k].alternative || has_unit(p->kernel.at[k].tir))
			return true;
	return false;
}

static void
launch(Run *r, Job *j, texo_program *program, Arena *a, unsigned round)
{
	Args args;
	texo_kernel *kernel;
	texo_fault fault = {.struct_size = sizeof fault};
	make_args(r, j, &args, a, round);
	texo_status st = texo_program_get_kernel(program, name_text(j->g->names, j->g->name), &kernel);
	if (st == TEXO_OK)
		st = r->cuda ? launch_cuda(r, &args, kernel, &fault) : launch_cpu(&args, kernel, &fault, round);
	texo_status want = j->status == EVAL_CHECK_FAILED ? TEXO_CHECK_FAILED : j->want.fault ? TEXO_FAULT : TEXO_OK;
	if (st != want) {
		fail(r, j, arena_text(a, "machine code: status %s, expected %s: %s", texo_status_name(st), texo_status_name(want),
		                      texo_last_error()));
		return;
	}
	if (want != TEXO_CHECK_FAILED && (!may_report_at(j, &fault) || (fault.cut != 0) != (j->want.cut != 0)))
		fail(r, j, arena_text(a, "machine code: fault at %u:%u, cut %u; the oracle: fault %u, cut %u", fault.line, fault.col,
		                      fault.cut, j->want.fault, j->want.cut));
	check_memory(r, j, &args, a);
	for (uint32_t k = 0; want == TEXO_OK && k < j->g->result.n; k++) {
		const void *got = packed(&args, (unsigned)args.of_result[k], a);
		compare(r, j, &j->want, k, got, "machine code", a);
		const EvalTensor *w = &j->want.result[k];
		for (int64_t n = 0; n < w->count && !may_differ(j->program); n++)
			if (!w->at[n].skip && !same_bits(w->dtype, got, j->interp[k], n)) {
				fail(r, j, arena_text(a, "machine code and interpreter differ in %s[%lld]: %.9g and %.9g",
				                      name_text(j->g->names, j->g->result.at[k].name), (long long)n,
				                      eval_load(w->dtype, got, n).re, eval_load(w->dtype, j->interp[k], n).re));
				break;
			}
	}
}

static void
run_code(Run *r, Job *job, const unsigned *ready, unsigned n, Arena *a)
{
	const Program *p[BATCH];
	/* mostly the fast instruction selector, which is most of the time; every fourth batch as the product */
	CodegenOptions o = {.cpu = r->cuda ? r->cuda : "host", .opt_level = job->rp.seed / BATCH % 4 ? 0 : 2};
	CodegenResult out = {0};
	texo_program *program;
	for (unsigned k = 0; k < n; k++)
		p[k] = job[ready[k]].program;
	if (n == 0)
		return;
	if (codegen_cpu(a, p, n, &o, &out) != CODEGEN_OK) {
		fail(r, &job[ready[0]], arena_text(a, "code generation, of one of %u programs: %s", n, out.message));
		return;
	}
	if (texo_rt_load(r->rt, out.image, out.image_size, &program) != TEXO_OK) {
		fail(r, &job[ready[0]], texo_last_error());
		return;
	}
	for (unsigned k = 0; k < n; k++)
		for (unsigned round = 0; round < 2; round++)
			launch(r, &job[ready[k]], program, a, round);
	texo_program_destroy(program);
}

static void
count_traits(Run *r, const RandomProgram *p)
{
	for (unsigned t = 0; t < RP_TRAIT_COUNT; t++)
		r->trait[t] += p->traits >> t & 1;
	r->rank[p->rank]++;
	for (unsigned k = 0; k < p->ntensor; k++)
		r->dtype[p->tensor[k].dtype]++;
}

static void
count_templates(Run *r, const Program *p)
{
	bool has[TMPL_COUNT] = {false}, any = false;
	for (uint32_t k = 0; k < p->kernel.n; k++)
		has[p->kernel.at[k].plan.tmpl] = true;
	for (int t = 1; t < TMPL_COUNT; t++) {
		r->tmpl[t] += has[t];
		any |= has[t] && t != TMPL_NEST;
	}
	r->templated += any;
}

static void
count_narrowed(Run *r, const Graph *g)
{
	bool has = false;
	for (ExprId e = 1; e < g->expr.n && !has; e++)
		has = expr_narrow_type(g, e) != DT_NONE;
	r->narrowed += has;
}

/* One batch in an arena of its own. */
static void
batch(Run *r, uint64_t first, unsigned n)
{
	static Job job[BATCH];
	Unwind u = {0};
	Arena a;
	unsigned ready[BATCH], nready = 0;
	volatile unsigned at = 0;
	arena_init(&a, &host_default()->memory, &u);
	a.limit = (size_t)n << 30;
	if (setjmp(u.env)) {
		fail(r, &job[at], u.text);
		arena_free(&a);
		return;
	}
	for (at = 0; at < n; at++) {
		if (prepare(r, &job[at], &a, first + at))
			ready[nready++] = at;
		count_traits(r, &job[at].rp);
		if (job[at].program)
			count_templates(r, job[at].program);
		if (job[at].program)
			count_narrowed(r, job[at].g);
	}
	at = 0;
	if (r->cpu)
		run_code(r, job, ready, nready, &a);
	arena_free(&a);
}

/* How many programs each template must have had, in a thousand; every template has a row. */
static const struct {
	Template tmpl;
	unsigned permille;
} template_least[] = {
	{TMPL_NEST, 100}, {TMPL_MAP, 100}, {TMPL_ROWRED, 100}, {TMPL_COLRED, 20}, {TMPL_FULLRED, 20}, {TMPL_SCAN, 50},
	{TMPL_INDEX, 30}, {TMPL_CONTRACT, 30}, {TMPL_STREAM, 50}, {TMPL_PAIRWISE, 0}, {TMPL_BUNDLE, 0},
};
enum { TEMPLATED_PERCENT = 50, TILED_PERMILLE = 4 }; /* programs with a kernel that is no NEST; with --blocks, with tiles of threads */

static bool
enough_templates(const Run *r)
{
	bool ok = r->count < 500 || r->templated * 100ull >= r->count * TEMPLATED_PERCENT;
	if (!ok)
		printf("FAILED: only %u programs have a kernel that is no nest\n", r->templated);
	printf("  programs by template:");
	for (int t = 1; t < TMPL_COUNT; t++)
		printf(" %s %u", template_info[t].text, r->tmpl[t]);
	printf("; %u with any but nest\n", r->templated);
	for (int t = 1; t < TMPL_COUNT; t++) {
		size_t row = 0, rows = sizeof template_least / sizeof *template_least;
		while (row < rows && (int)template_least[row].tmpl != t)
			row++;
		if (row < rows && (r->count < 500 || r->tmpl[t] * 1000ull >= r->count * template_least[row].permille))
			continue;
		printf("FAILED: %s %s\n", row < rows ? "too few programs with the template" : "template_least has no row of", template_info[t].text);
		ok = false;
	}
	return ok;
}

static bool
enough(const Run *r)
{
	static const struct { RpTrait a, b; unsigned percent; } plan[] = {
		{RP_DOMAIN, RP_DOMAIN, 25}, {RP_GATHER, RP_GATHER, 20}, {RP_DEPENDENT, RP_DEPENDENT, 15}, {RP_RECURRENCE, RP_SCATTER, 10},
		{RP_DATA_RANGE, RP_DATA_RANGE, 3}, {RP_SCAN, RP_SCAN, 20}, {RP_SIZE_0, RP_SIZE_0, 1}, {RP_SIZE_1, RP_SIZE_1, 10}, {RP_EXACT, RP_EXACT, 20},
	};
	bool ok = true;
	for (unsigned t = 0; t < RP_TRAIT_COUNT; t++)
		printf("  %-32s %6.1f %%\n", rp_trait_name[t], 100.0 * r->trait[t] / (double)r->count);
	printf("  rank of the results 0 to 6:");
	for (unsigned k = 0; k <= RP_MAX_RANK; k++)
		printf(" %u", r->rank[k]);
	printf("\n  tensors by dtype:");
	for (int t = 1; t < DT_COUNT; t++)
		printf(" %s %u", dtype_info[t].text, r->dtype[t]);
	printf("\n");
	for (size_t k = 0; k < sizeof plan / sizeof *plan; k++) {
		unsigned n = plan[k].a == plan[k].b ? r->trait[plan[k].a] : r->trait[plan[k].a] + r->trait[plan[k].b];
		if (r->count >= 500 && n * 100ull < r->count * plan[k].percent) {
			printf("FAILED: too few programs with %s\n", rp_trait_name[plan[k].a]);
			ok = false;
		}
	}
	if (r->count >= 500 && (r->faults * 100ull < r->count * 2 || r->cuts * 1000ull < r->count * 3)) {
		printf("FAILED: too few launches with a failed access or a cut range\n");
		ok = false;
	}
	printf("  programs with a narrowed function: %u\n", r->narrowed);
	if (r->count >= 500 && r->narrowed * 100ull < r->count * 3) {
		printf("FAILED: too few programs with a narrowed function\n");
		ok = false;
	}
	for (int t = 1; t < DT_COUNT; t++)
		if (r->count >= 500 && r->dtype[t] == 0) {
			printf("FAILED: no tensor of %s\n", dtype_info[t].text);
			ok = false;
		}
	return ok;
}

int
main(int argc, char **argv)
{
	static Run r = {.seed = 1, .count = 500};
	texo_rt_options o = {.struct_size = sizeof o};
	bool cuda = false, blocks = false;
	for (int k = 1; k < argc; k++) {
		if (strcmp(argv[k], "--cpu") == 0)
			r.cpu = true;
		else if (strcmp(argv[k], "--cuda") == 0)
			r.cpu = cuda = true;
		else if (strcmp(argv[k], "--blocks") == 0)
			blocks = true;
		else if (strcmp(argv[k], "--show") == 0)
			r.show = true;
		else if (strcmp(argv[k], "--first") == 0)
			r.first = true;
		else if (strcmp(argv[k], "--seed") == 0 && k + 1 < argc)
			r.seed = strtoull(argv[++k], NULL, 10);
		else if (strcmp(argv[k], "--count") == 0 && k + 1 < argc)
			r.count = strtoull(argv[++k], NULL, 10);
	}
	fence_open(&r.fence);
	o.device = cuda ? "cuda" : "cpu";
	if (texo_rt_create(&o, &r.rt) != TEXO_OK) {
		printf("skipped: %s\n", texo_last_error());
		return 77;
	}
	r.cuda = cuda ? codegen_sm_for((uint32_t)r.rt->cuda->sm) : NULL;
	if (cuda && !r.cuda) {
		printf("skipped: the GPU is too old\n");
		return 77;
	}
	TargetOffer offer = codegen_target_offer(r.cuda ? r.cuda : blocks ? "sm_90a" : "host");
	r.passes.lanes = offer.lanes;
	r.passes.blocks = offer.blocks;
	r.passes.cluster = offer.cluster;
	r.passes.warp_mma = offer.warp_mma;
	r.passes.roles = blocks && offer.roles; /* --cuda: not tried with code that is not optimised */
	r.passes.has_fma = offer.fma;
	r.passes.has_scale = offer.scale;
	r.passes.has_pick = offer.pick;
	r.passes.has_masks = offer.masks;
	r.passes.has_ex2 = offer.ex2;
	r.passes.has_fp8 = offer.fp8;
	r.passes.has_halves = offer.halves;
	r.passes.dot = offer.dot;
	r.passes.verify_each = true;
	printf("seeds %llu to %llu\n", (unsigned long long)r.seed, (unsigned long long)(r.seed + r.count - 1));
	uint64_t most = r.passes.blocks ? BATCH / 2 : BATCH; /* for a GPU a program has many forms of its kernels */
	for (uint64_t done = 0; done < r.count && !(r.first && r.failed); done += most)
		batch(&r, r.seed + done, (unsigned)(r.count - done < most ? r.count - done : most));
	bool ok = enough(&r);
	ok = (cuda || blocks || enough_templates(&r)) && ok;
	if (blocks)
		printf("  programs that ran a product by tiles of threads: %u; a kernel of roles: %u\n", r.tiled, r.roles);
	if (blocks && r.seed >> 32 && r.roles * 40ull < r.count) {
		printf("FAILED: too few programs ran a kernel of roles\n");
		ok = false;
	}
	if (blocks && r.count >= 500 && r.tiled * 1000ull < r.count * TILED_PERMILLE) {
		printf("FAILED: too few programs ran a product by tiles of threads\n");
		ok = false;
	}
	printf("%u programs compiled to %u kernels, %llu elements compared (%llu ambiguous, %llu without a bound), %u launches refused by "
	       "checks, %u with a failed access, %u with a cut range\n",
	       r.compiled, r.kernels, (unsigned long long)r.elements, (unsigned long long)r.ambiguous,
	       (unsigned long long)r.unbounded, r.checks, r.faults, r.cuts);
	if (r.slow * 1000ull > (r.count > 1000 ? r.count : 1000)) { /* one of a short run is none too many */
		printf("FAILED: %u programs were too long for the interpreter\n", r.slow);
		ok = false;
	}
	printf("%llu passed, %u failed, %u skipped\n", (unsigned long long)(r.count - r.failed - r.slow), r.failed, r.slow);
	texo_rt_destroy(r.rt);
	return ok && r.failed == 0 ? 0 : 1;
}
