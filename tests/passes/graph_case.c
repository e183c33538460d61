#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "graph_case.h"
#include "ir/gpu_facts.h"

/* --- building --- */

ExprId
case_dim(Case *c, const char *name, int64_t value)
{
	Dim d = {.name = name_cstr(c->g->names, name), .fixed = true, .value = value};
	vec_push(c->arena, &c->g->dim, d);
	assert_true(c->g->dim.n <= sizeof c->dim / sizeof *c->dim);
	c->dim[c->g->dim.n - 1] = value;
	return expr_dim(c->g, c->g->dim.n - 1);
}

TensorId
case_input(Case *c, TensorKind kind, const char *name, DType t, unsigned rank, const ExprId *extent)
{
	TensorId id = tensor_new(c->g, kind, name_cstr(c->g->names, name), (Span){0}, t, rank, extent);
	vec_push(c->arena, &c->g->param, id);
	c->lo[c->g->param.n - 1] = -5;
	c->hi[c->g->param.n - 1] = 6;
	return id;
}

static uint32_t
param_of(const Case *c, TensorId t)
{
	for (uint32_t k = 0; k < c->g->param.n; k++)
		if (c->g->param.at[k] == t)
			return k;
	fail_msg("%%%u is no parameter", t);
	return 0;
}

void
case_range(Case *c, TensorId t, int64_t lo, int64_t hi)
{
	c->lo[param_of(c, t)] = lo;
	c->hi[param_of(c, t)] = hi;
}

void
case_given(Case *c, TensorId t, const void *packed)
{
	c->given[param_of(c, t)] = packed;
}

Node
case_node(unsigned npar, ExprId body)
{
	return (Node){.npar = (uint8_t)npar, .body = body};
}

void
case_reduce(Node *n, Monoid m, ExprId lo, ExprId hi)
{
	n->monoid = m;
	n->axis[n->npar + n->nred].lo = lo;
	n->axis[n->npar + n->nred].hi = hi;
	n->nred++;
}

TensorId
case_add(Case *c, const Node *n, const char *name, DType t, const ExprId *extent)
{
	return node_add(c->g, n, name_cstr(c->g->names, name), (Span){0}, t, extent);
}

void
case_result(Case *c, const char *name, TensorId t, TensorId inout)
{
	Result r = {.name = name_cstr(c->g->names, name), .tensor = t, .inout = inout};
	vec_push(c->arena, &c->g->result, r);
}

AccessId
case_access(Case *c, AccessKind kind)
{
	Access a = {.kind = kind, .text = "x[i]"};
	vec_push(c->arena, &c->g->access, a);
	return c->g->access.n - 1;
}

ExprId
case_int(Case *c, int64_t v)
{
	return expr_int(c->g, DT_I64, v);
}

ExprId
ax(Case *c, unsigned k)
{
	return expr_axis(c->g, k);
}

static ExprId
read_list(Case *c, AccessId id, TensorId t, unsigned n, va_list ap)
{
	ExprId sub[TG_MAX_RANK];
	for (unsigned k = 0; k < n; k++)
		sub[k] = va_arg(ap, ExprId);
	return expr_read(c->g, t, sub, n, id);
}

ExprId
read_at(Case *c, TensorId t, unsigned n, ...)
{
	va_list ap;
	va_start(ap, n);
	ExprId e = read_list(c, 0, t, n, ap);
	va_end(ap);
	return e;
}

ExprId
gather_at(Case *c, AccessId id, TensorId t, unsigned n, ...)
{
	va_list ap;
	va_start(ap, n);
	ExprId e = read_list(c, id, t, n, ap);
	va_end(ap);
	return e;
}

/* --- data --- */

static uint64_t
next_random(Case *c)
{
	c->seed += 0x9e3779b97f4a7c15u;
	uint64_t z = (c->seed ^ (c->seed >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static double
random_real(Case *c)
{
	return (double)(int64_t)(next_random(c) >> 11) * 0x1p-51 - 2;
}

static EvalValue
random_value(Case *c, uint32_t k, DType t)
{
	EvalValue v = {.re = random_real(c), .im = random_real(c)};
	if (t == DT_BOOL)
		v.i = (int64_t)(next_random(c) & 1);
	else
		v.i = c->lo[k] + (int64_t)(next_random(c) % (uint64_t)(c->hi[k] - c->lo[k]));
	return v;
}

static int64_t
extent_value(const Case *c, ExprId e)
{
	const Expr *p = expr_get(c->g, e);
	if (p->op == OP_CONST)
		return p->imm.i;
	if (p->op != OP_DIM)
		fail_msg("parameters take dims and constants here");
	return c->dim[p->ref];
}

static int64_t
param_count(const Case *c, const Tensor *t)
{
	int64_t count = 1;
	for (unsigned a = 0; a < t->rank; a++)
		count *= extent_value(c, t->extent[a]);
	return count;
}

static EvalInputs
make_inputs(Case *c)
{
	uint32_t n = c->g->param.n;
	const void **data = ARENA_ARRAY(c->arena, const void *, n);
	const int64_t **shape = ARENA_ARRAY(c->arena, const int64_t *, n);
	for (uint32_t k = 0; k < n; k++) {
		const Tensor *t = &c->g->tensor.at[c->g->param.at[k]];
		int64_t *s = ARENA_ARRAY(c->arena, int64_t, TG_MAX_RANK), count = param_count(c, t), bytes;
		for (unsigned a = 0; a < t->rank; a++)
			s[a] = extent_value(c, t->extent[a]);
		dtype_bytes(t->dtype, count, &bytes);
		uint8_t *packed = arena_alloc(c->arena, (size_t)bytes + 1);
		for (int64_t i = 0; i < count; i++)
			eval_store(t->dtype, packed, i, random_value(c, k, t->dtype));
		if (c->given[k] && bytes)
			memcpy(packed, c->given[k], (size_t)bytes);
		data[k] = packed;
		shape[k] = s;
	}
	return (EvalInputs){data, shape};
}

/* --- what the oracle says --- */

struct Asked {
	const char *graph;
	EvalInputs in;
	EvalOutputs said;
	bool left_out; /* nothing was */
	Asked *next;
};

static Asked *known; /* in the arena of the test that runs */

static bool
same_inputs(const Case *c, const EvalInputs *x, const EvalInputs *y)
{
	for (uint32_t k = 0; k < c->g->param.n; k++) {
		const Tensor *t = &c->g->tensor.at[c->g->param.at[k]];
		int64_t bytes;
		dtype_bytes(t->dtype, param_count(c, t), &bytes);
		if (memcmp(x->data[k], y->data[k], (size_t)bytes) != 0)
			return false;
	}
	return true;
}

/* Most of a case's time is the oracle's, which sees no schedule: of the same graph it is asked once. Of CASE_ASKED_EVERY graphs
 * that case_try and its like build it is asked of the first alone, and NULL is what it said of the others: a run under the
 * sanitizers is to show what they see of passes, interpreter and oracle; the other builds compare the results of all. */
static const EvalOutputs *
ask_oracle(const Case *c, const EvalInputs *in, Asked **asked)
{
	static unsigned graphs;
	Text t;
	text_init(&t, c->arena);
	graph_print(c->g, &t);
	for (const Asked *x = *asked; x; x = x->next)
		if (strcmp(x->graph, text_get(&t)) == 0 && same_inputs(c, &x->in, in))
			return x->left_out ? NULL : &x->said;
	Asked *new = ARENA_NEW(c->arena, Asked);
	*new = (Asked){.graph = text_get(&t), .in = *in, .left_out = asked == &known && graphs++ % CASE_ASKED_EVERY != 0, .next = *asked};
	if (!new->left_out)
		assert_int_equal(graph_eval(c->g, c->arena, in, 0, &new->said), EVAL_OK);
	*asked = new;
	return new->left_out ? NULL : &new->said;
}

/* --- running --- */

typedef struct {
	FpMode fp;
	uint16_t lanes;
	InterpOptions interp;
	bool has_fma;
	TirDotUnit dot;
	bool blocks;
	uint32_t least_tile;
} Config;

enum { BLOCKS = 7 };

static const Config configs[] = {
	{FP_STRICT, 0, {1, 0, false, 0}, false, TIR_NO_DOT, false, 0},  {FP_STRICT, 8, {1, 0, false, 0}, false, TIR_NO_DOT, false, 0},
	{FP_STRICT, 8, {1, 11, false, 0}, false, TIR_NO_DOT, false, 0}, {FP_STRICT, 4, {2, 5, false, 0}, true, TIR_NO_DOT, false, 0},
	{FP_RELAXED, 0, {3, 7, false, 0}, false, TIR_NO_DOT, false, 0}, {FP_RELAXED, 16, {1, 3, false, 0}, true, TIR_NO_DOT, false, 0},
	{FP_FAST, 8, {1, 9, false, 0}, true, TIR_NO_DOT, false, 0},     [BLOCKS] = {FP_RELAXED, 32, {1, 3, false, 0}, true, TIR_NO_DOT, true, 0},
	{FP_RELAXED, 16, {2, 3, false, 0}, true, TIR_DOT_TILES, false, 0},
	{FP_RELAXED, 16, {3, 4, false, 0}, true, TIR_DOT_VECTORS, false, 0},
};

static void
compare(const Case *c, const EvalOutputs *want, const InterpRun *got, CaseRun *out)
{
	for (uint32_t k = 0; k < c->g->result.n; k++) {
		EvalCompare cmp;
		eval_compare(&want->result[k], got->result[k], &cmp);
		out->compared += cmp.count;
		out->mismatches += cmp.mismatches;
		out->ratio = fmax(out->ratio, cmp.worst_ratio);
		if (cmp.mismatches && !out->message)
			out->message = arena_text(c->arena, "result %u element %lld: got %.9g, want %.9g +- %.3g", k,
			                          (long long)cmp.worst, cmp.worst_got, cmp.worst_want, cmp.worst_bound);
	}
}

/* The same bits in strict mode, whatever the widths, strides and splits. */
static void
compare_bits(const Case *c, const EvalOutputs *want, const InterpRun *got, CaseRun *out)
{
	int64_t bytes;
	dtype_bytes(want->result[0].dtype, want->result[0].count, &bytes);
	for (int64_t k = 0; k < want->result[0].count; k++)
		if (want->result[0].at[k].skip)
			return;
	if (c->g->fp == FP_STRICT && memcmp(out->first_result, got->result[0], (size_t)bytes) != 0) {
		out->mismatches++;
		out->message = out->message ? out->message : "two schedules differ in strict mode";
	}
}

/* Whether some decision was within the oracle's bounds, so that it may fall either way. */
static bool
is_undecided(const Case *c, const EvalOutputs *want)
{
	for (uint32_t k = 0; k < c->g->result.n; k++)
		for (int64_t i = 0; i < want->result[k].count; i++) {
			const EvalValue *v = &want->result[k].at[i];
			if (v->ambiguous || isinf(v->err) || isinf(v->ierr))
				return true;
		}
	return false;
}

/* After a fault values are unspecified, and so are cuts that depend on them. */
static void
compare_status(const Case *c, const EvalOutputs *want, const InterpRun *got, CaseRun *out)
{
	bool same = (got->fault != 0) == (want->fault != 0) && (got->fault || (got->cut != 0) == (want->cut != 0));
	if (same || is_undecided(c, want))
		return;
	out->mismatches++;
	out->message = arena_text(c->arena, "fault %u and cut %u, want %u and %u", got->fault, got->cut, want->fault,
	                          want->cut);
}

static void
compare_run(const Case *c, const EvalOutputs *want, const InterpRun *got, CaseRun *out)
{
	if (c->any_fault) {
		compare_status(c, want, got, out);
	} else {
		assert_int_equal(got->fault, want->fault);
		assert_int_equal(got->cut, want->cut);
	}
	if (!got->fault && !want->fault) {
		compare(c, want, got, out);
		compare_bits(c, want, got, out);
	}
}

static bool
is_compared(const CaseRun *r)
{
	return r->compared > 0 || r->left_out;
}

static unsigned
loads_past(const TirKernel *k)
{
	unsigned n = 0;
	for (uint32_t v = 1; v < k->inst.n; v++)
		n += k->inst.at[v].op == OP_LOAD && (k->inst.at[v].imm.i & TIR_STREAM);
	return n;
}

static unsigned
copies_begun(const TirKernel *k)
{
	unsigned n = 0;
	for (ValId v = 1; v < k->inst.n; v++)
		n += k->inst.at[v].op == OP_ASYNC_COPY;
	return n;
}

static unsigned
fetched_views(const TirKernel *k)
{
	uint64_t seen = 0;
	unsigned n = 0;
	for (ValId v = 1; v < k->inst.n; v++) {
		const TirInst *p = tir_inst(k, v);
		if (p->op != OP_LOAD || TIR_AHEAD_COUNT(p->imm.i) < 2)
			continue;
		uint64_t bit = UINT64_C(1) << tir_inst(k, tir_arg(k, tir_arg(k, v, 0), 0))->imm.i % 64; /* the buffer's */
		n += !(seen & bit);
		seen |= bit;
	}
	return n;
}

/* What a GPU multiplies matrices by, and the only tile that it may have; the only one of its threads. */
typedef struct {
	bool roles, warps;
	unsigned tile, threads;
} Matrices;

static void
run_config(Arena *a, CaseFn *build, const Config *f, Matrices by, Asked **asked, CaseRun *out)
{
	Case c = {.arena = a, .g = graph_new(a, names_new(a)), .seed = 42};
	Text log;
	c.g->fp = f->fp;
	c.g->name = name_cstr(c.g->names, "t");
	build(&c);
	EvalInputs in = make_inputs(&c);
	graph_decide(c.g);
	const EvalOutputs *want = ask_oracle(&c, &in, asked);
	text_init(&log, a);
	PassOptions o = {.lanes = f->lanes, .has_fma = f->has_fma, .dot = f->dot, .blocks = f->blocks, .roles = by.roles,
	                 .warp_mma = by.roles || by.warps, .roles_tile = (uint8_t)(by.roles ? by.tile : 0),
	                 .warps_tile = (uint8_t)(by.roles ? 0 : by.tile), .threads_tile = (uint8_t)by.threads, .remarks = true, .verify_each = true, .part_terms = c.part_terms, .cluster = c.cluster,
	                 .least_tile = f->least_tile};
	Program *p = compile_graph(c.g, &o, &log);
	for (DimId d = 0; c.processors && d < p->graph->dim.n; d++)
		if (gpu_fact_of(&p->graph->dim.at[d]) == GPU_PROCESSORS)
			p->graph->dim.at[d].value = c.processors;
	InterpOptions io = f->interp;
	io.split += io.split ? c.splits : 0;
	io.rows |= c.rows;
	InterpRun got = interp_program(p, a, &in, c.dim, &io);
	if (got.error) {
		Text tir;
		text_init(&tir, a);
		program_print_tir(p, &tir);
		fail_msg("%s\n%s", got.error, text_get(&tir));
	}
	out->fault = got.fault;
	out->cut = got.cut;
	out->once = p->kernel.at[0].plan.once > 0;
	out->posts = got.posts;
	out->follows = got.follows;
	out->threads = got.threads;
	out->block_columns = got.ran ? got.ran->plan.block_columns : 0;
	out->unroll = got.ran ? got.ran->plan.unroll : 0;
	out->columns = got.ran ? got.ran->plan.columns : 0;
	out->cluster = got.ran ? got.ran->plan.cluster : 0;
	out->at_once = got.ran ? got.ran->plan.resident * got.ran->plan.threads : 0;
	out->next = got.ran ? copies_begun(got.ran->tir) : 0;
	out->tasks = got.tasks;
	out->nodes = c.g->node.n;
	out->kernels = p->kernel.n;
	out->members = p->kernel.at[0].plan.nnode;
	out->remarks = text_get(&log);
	out->tmpl = (Template)p->kernel.at[0].plan.tmpl;
	out->ran = got.ran ? (Template)got.ran->plan.tmpl : TMPL_NONE;
	out->pairs = p->kernel.at[0].plan.pairs;
	out->chained = p->kernel.at[0].plan.chained;
	bool tiles = got.ran && interp_is_tiles(got.ran);
	out->tile = tiles ? got.ran->plan.tile_rows : 0;
	out->group = tiles ? got.ran->plan.group : 0;
	out->strips = got.ran && got.ran->plan.tmpl == TMPL_CONTRACT && got.ran->plan.threads && got.ran->plan.pairs && got.ran->plan.lanes;
	out->warps = tiles && got.ran->plan.pairs && !got.ran->plan.lanes && !got.ran->plan.halo;
	out->halo = tiles && got.ran->plan.halo;
	out->ahead = fetched_views(p->kernel.at[0].tir);
	out->past = loads_past(p->kernel.at[0].tir);
	for (uint32_t k = 0; k < p->kernel.n; k++)
		out->roles |= p->kernel.at[k].tir->channel.n > 0;
	out->map = p->kernel.at[0].plan.tmpl == TMPL_MAP;
	out->serial = p->kernel.at[0].serial;
	out->left_out = !want;
	if (!out->first_result && !got.fault)
		out->first_result = got.result[0];
	if (want)
		compare_run(&c, want, &got, out);
}

const unsigned case_configs = sizeof configs / sizeof *configs;

void
case_run_one(Arena *a, CaseFn *build, unsigned k, Asked **asked, CaseRun *out)
{
	run_config(a, build, &configs[k], (Matrices){0}, asked, out);
	if (out->mismatches)
		fail_msg("configuration %u: %s", k, out->message);
}

static CaseRun
run_all(Arena *a, CaseFn *build, Asked **asked)
{
	CaseRun out = {0};
	for (unsigned k = 0; k < case_configs; k++)
		case_run_one(a, build, k, asked, &out);
	return out;
}

CaseRun
case_run(Arena *a, CaseFn *build)
{
	Asked *asked = NULL;
	CaseRun out = run_all(a, build, &asked);
	assert_true(is_compared(&out) || out.fault);
	return out;
}

/* --- one test, one arena --- */

static Unwind unwind;
static Arena arena;

int
case_setup(void **state)
{
	(void)state;
	known = NULL;
	arena_init(&arena, &host_default()->memory, &unwind);
	return 0;
}

int
case_teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

CaseRun
case_try(CaseFn *build)
{
	if (setjmp(unwind.env))
		fail_msg("%s", unwind.text);
	CaseRun out = run_all(&arena, build, &known);
	assert_true(is_compared(&out) || out.fault);
	return out;
}

void
case_try_nothing(CaseFn *build)
{
	if (setjmp(unwind.env))
		fail_msg("%s", unwind.text);
	CaseRun out = run_all(&arena, build, &known);
	assert_true(out.compared == 0 && !out.fault);
}

static unsigned
first_with(TirDotUnit unit)
{
	unsigned k = 0;
	while (configs[k].dot != unit)
		k++;
	return k;
}

static CaseRun
try_one(CaseFn *build, unsigned k)
{
	CaseRun out = {0};
	if (setjmp(unwind.env))
		fail_msg("%s", unwind.text);
	case_run_one(&arena, build, k, &known, &out);
	assert_true(is_compared(&out) || out.fault);
	return out;
}

CaseRun
case_try_dot(CaseFn *build, TirDotUnit unit)
{
	return try_one(build, first_with(unit));
}

CaseRun
case_try_blocks(CaseFn *build)
{
	return try_one(build, BLOCKS);
}

CaseRun
case_try_roles(CaseFn *build, bool split, unsigned tile)
{
	static const Config one = {FP_RELAXED, 32, {.stride = 1}, true, TIR_NO_DOT, true, 0};
	static const Config several = {FP_RELAXED, 32, {.stride = 1, .split = 2}, true, TIR_NO_DOT, true, 0};
	CaseRun out = {0};
	if (setjmp(unwind.env))
		fail_msg("%s", unwind.text);
	run_config(&arena, build, split ? &several : &one, (Matrices){true, true, tile, 0}, &known, &out);
	if (out.mismatches)
		fail_msg("with roles: %s", out.message);
	assert_true(is_compared(&out));
	return out;
}

CaseRun
case_try_warps(CaseFn *build, FpMode fp, uint32_t least, bool split, unsigned tile)
{
	const Config one = {fp, 32, {.stride = 1, .split = split ? 2 : 0}, true, TIR_NO_DOT, true, least};
	CaseRun out = {0};
	if (setjmp(unwind.env))
		fail_msg("%s", unwind.text);
	run_config(&arena, build, &one, (Matrices){false, true, tile, 0}, &known, &out);
	if (out.mismatches)
		fail_msg("with tiles of warps: %s", out.message);
	assert_true(is_compared(&out));
	return out;
}

CaseRun
case_try_tiles(CaseFn *build, FpMode fp, uint32_t least, bool split, unsigned tile)
{
	const Config one = {fp, 32, {.stride = 1, .split = split ? 2 : 0}, true, TIR_NO_DOT, true, least};
	CaseRun out = {0};
	if (setjmp(unwind.env))
		fail_msg("%s", unwind.text);
	run_config(&arena, build, &one, (Matrices){.threads = tile}, &known, &out);
	if (out.mismatches)
		fail_msg("with tiles of threads: %s", out.message);
	assert_true(is_compared(&out));
	return out;
}

void
case_choose(int argc, char **argv)
{
	if (argc > 1 && *argv[1] == '-')
		cmocka_set_skip_filter(argv[1] + 1);
	else if (argc > 1)
		cmocka_set_test_filter(argv[1]);
}

uint32_t
case_below(uint64_t *rng, uint32_t n)
{
	*rng = *rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*rng >> 33) % n;
}
