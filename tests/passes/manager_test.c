/* manager_test.c: the pass manager's flags, plans as text, and scratch memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "passes/pass_ctx.h"
#include "passes/scratch.h"

static Unwind unwind;
static Arena arena;
static Graph *graph;
static Text text;

/* z[i] = log(x[i]), s = sum[i](z[i]), in a graph of two kernels. */
static int
setup(void **state)
{
	(void)state;
	arena_init(&arena, &host_default()->memory, &unwind);
	if (setjmp(unwind.env))
		return -1;
	Graph *g = graph = graph_new(&arena, names_new(&arena));
	Span at = {.file = 1, .line = 3};
	g->name = name_cstr(g->names, "g");
	vec_push(&arena, &g->dim, ((Dim){.name = name_cstr(g->names, "N"), .axis = 0, .scale = 1}));
	ExprId n = expr_dim(g, 1), i = expr_axis(g, 0);
	TensorId x = tensor_new(g, TENSOR_INPUT, name_cstr(g->names, "x"), at, DT_F32, 1, &n);
	vec_push(&arena, &g->param, x);
	Node map = {.npar = 1, .body = expr_unary(g, OP_LOG, expr_read(g, x, &i, 1, 0))};
	TensorId z = node_add(g, &map, name_cstr(g->names, "z"), at, DT_F32, &n);
	Node sum = {.nred = 1, .monoid = MON_SUM, .body = expr_read(g, z, &i, 1, 0)};
	sum.axis[0].lo = expr_int(g, DT_I64, 0);
	sum.axis[0].hi = expr_int(g, DT_I64, 10); /* too short for parts */
	TensorId s = node_add(g, &sum, name_cstr(g->names, "s"), at, DT_F32, NULL);
	vec_push(&arena, &g->result, ((Result){.name = name_cstr(g->names, "z"), .tensor = z}));
	vec_push(&arena, &g->result, ((Result){.name = name_cstr(g->names, "s"), .tensor = s}));
	text_init(&text, &arena);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

static Program *
compile(const PassOptions *o)
{
	if (setjmp(unwind.env))
		fail_msg("%s", unwind.text);
	return compile_graph(graph, o, &text);
}

static bool
says(const char *words)
{
	return strstr(text_get(&text), words) != NULL;
}

static unsigned
count_op(const Program *p, Op op)
{
	unsigned n = 0;
	for (uint32_t k = 0; k < p->kernel.n; k++)
		for (ValId v = 1; v < p->kernel.at[k].tir->inst.n; v++)
			n += tir_inst(p->kernel.at[k].tir, v)->op == op;
	return n;
}

static void
test_names(void **state)
{
	(void)state;
	assert_int_equal(pass_named("none such"), PASS_NONE);
	for (int id = 1; id < PASS_COUNT; id++) {
		assert_int_equal(pass_named(pass_info[id].name), id);
		assert_true(strlen(pass_info[id].summary) > 10);
	}
	for (int id = 1; id < REMARK_COUNT; id++)
		assert_true(strlen(remark_info[id].text) > 10);
}

static void
test_quiet(void **state)
{
	(void)state;
	Program *p = compile(&(PassOptions){.lanes = 8});
	assert_int_equal(p->kernel.n, 2);
	assert_int_equal(p->kernel.at[0].plan.tmpl, TMPL_MAP);
	assert_int_equal(p->kernel.at[1].plan.tmpl, TMPL_FULLRED);
	assert_string_equal(text_get(&text), "");
	assert_int_equal(count_op(p, OP_LOG), 0);
}

/* Vector loads along an axis whose stride is known to be 1, and others. */
static void
count_rows(const TirKernel *k, unsigned *contiguous, unsigned *strided)
{
	*contiguous = *strided = 0;
	for (ValId v = 1; v < k->inst.n; v++) {
		const TirInst *p = tir_inst(k, v);
		if (p->op != OP_LOAD || TIR_LANE_AXIS(p->imm.i) < 0)
			continue;
		ValId view = tir_arg(k, v, 0);
		unsigned rank = (unsigned)tir_inst(k, view)->imm.i;
		const TirInst *stride = tir_inst(k, tir_arg(k, view, 1 + rank + (unsigned)TIR_LANE_AXIS(p->imm.i)));
		*(stride->op == OP_CONST && stride->imm.i == 1 ? contiguous : strided) += 1;
	}
}

/* Vectors of MAP are in a row, as its binds ask for. */
static void
test_rows(void **state)
{
	(void)state;
	unsigned contiguous, strided;
	const Kernel *k = &compile(&(PassOptions){.lanes = 8})->kernel.at[0];
	count_rows(k->tir, &contiguous, &strided);
	assert_true(contiguous > 0);
	assert_int_equal(strided, 0); /* one form of the code, whose buffers say what it takes for granted */
	for (uint32_t b = 0; b < k->buffer.n; b++)
		assert_true(k->buffer.at[b].unit);
}

/* FMAs of z[i] = x[i] * x[i] + x[i] */
static unsigned
fused(ExprId x, FpMode fp, bool has_fma)
{
	graph->node.at[0].body = expr_binary(graph, OP_ADD, expr_binary(graph, OP_MUL, x, x), x);
	graph->fp = fp;
	return count_op(compile(&(PassOptions){.lanes = 8, .has_fma = has_fma}), OP_FMA);
}

static void
test_contract_only_where_allowed(void **state)
{
	(void)state;
	ExprId x = expr_arg(graph, graph->node.at[0].body, 0);
	assert_int_equal(fused(x, FP_STRICT, true), 0);
	assert_int_equal(fused(x, FP_RELAXED, false), 0);
	assert_true(fused(x, FP_RELAXED, true) > 0);
}

/* SCALEs of z[i] = exp(x[i]) */
static unsigned
scaled(ExprId x, FpMode fp, bool has_scale)
{
	graph->node.at[0].body = expr_unary(graph, OP_EXP, x);
	graph->fp = fp;
	return count_op(compile(&(PassOptions){.lanes = 8, .has_scale = has_scale}), OP_SCALE);
}

static void
test_scale_only_where_it_is(void **state)
{
	(void)state;
	ExprId x = expr_arg(graph, graph->node.at[0].body, 0);
	assert_int_equal(scaled(x, FP_STRICT, true), 0);
	assert_int_equal(scaled(x, FP_RELAXED, false), 0);
	assert_true(scaled(x, FP_RELAXED, true) > 0);
}

/* PICKs of z[i] = erf(exp(x[i])), of which each polynomial's coefficients want one a term. */
static unsigned
picked(ExprId x, FpMode fp, bool has_pick)
{
	graph->node.at[0].body = expr_unary(graph, OP_ERF, expr_unary(graph, OP_EXP, x));
	graph->fp = fp;
	return count_op(compile(&(PassOptions){.lanes = 8, .has_pick = has_pick}), OP_PICK);
}

static void
test_pick_only_where_it_is(void **state)
{
	(void)state;
	ExprId x = expr_arg(graph, graph->node.at[0].body, 0);
	assert_int_equal(picked(x, FP_STRICT, true), 0);
	assert_int_equal(picked(x, FP_RELAXED, false), 0);
	assert_true(picked(x, FP_RELAXED, true) > 0);
}

/* EX2s of z[i] = f32(bf16(op(x[i]))); of a tanh each has an RCP beside it. */
static unsigned
narrowed(Op op, ExprId x, FpMode fp, bool has_ex2)
{
	ExprId e = expr_cast(graph, DT_BF16, expr_unary(graph, op, x));
	graph->node.at[0].body = expr_cast(graph, DT_F32, e);
	graph->fp = fp;
	const Program *p = compile(&(PassOptions){.lanes = 8, .has_ex2 = has_ex2});
	assert_int_equal(count_op(p, OP_RCP), op == OP_TANH ? count_op(p, OP_EX2) : 0);
	return count_op(p, OP_EX2);
}

static void
test_ex2_only_where_it_is(void **state)
{
	(void)state;
	ExprId x = expr_arg(graph, graph->node.at[0].body, 0);
	for (unsigned two = 0; two < 2; two++) {
		Op op = two ? OP_TANH : OP_EXP;
		assert_int_equal(narrowed(op, x, FP_STRICT, true), 0);
		assert_int_equal(narrowed(op, x, FP_RELAXED, false), 0);
		assert_true(narrowed(op, x, FP_RELAXED, true) > 0);
	}
	graph->node.at[0].body = expr_unary(graph, OP_EXP, x);
	assert_int_equal(count_op(compile(&(PassOptions){.lanes = 8, .has_ex2 = true}), OP_EX2), 0);
}

static void
test_plan_text(void **state)
{
	(void)state;
	program_print_plan(compile(&(PassOptions){.lanes = 8}), &text);
	assert_string_equal(text_get(&text),
		"graph g: 2 kernels\n"
		"k0 map lanes=8 unroll=1 nodes=%2 # z tasks=(div (+ N 4095) 4096) buffers=2 scalars=4\n"
		"k1 fullred lanes=8 unroll=1 nodes=%3 # s tasks=1 buffers=2 scalars=2\n");
}

static void
test_dump(void **state)
{
	(void)state;
	PassOptions o = {.lanes = 8};
	o.dump[PASS_schedule] = o.dump[PASS_expand_math] = true;
	compile(&o);
	assert_true(says("# after schedule\ngraph g: 2 kernels\n"));
	assert_true(says("# after expand_math\n"));
	assert_false(says("# after legalize"));
	assert_true(says("kernel g_k0_z"));
}

static void
test_stop(void **state)
{
	(void)state;
	PassOptions o = {.stop = PASS_schedule, .dump_all = true};
	assert_null(compile(&o));
	assert_true(says("# stopped after schedule\n"));
	assert_false(says("# after expand_math"));
}

static void
test_skip(void **state)
{
	(void)state;
	PassOptions o = {.verify_each = true};
	o.skip[PASS_expand_math] = true;
	assert_int_equal(count_op(compile(&o), OP_LOG), 1);
}

static void
test_skip_spares_the_schedule(void **state)
{
	(void)state;
	PassOptions o = {0};
	o.skip[PASS_schedule] = true;
	assert_int_equal(compile(&o)->kernel.n, 2);
}

static void
test_fuel(void **state)
{
	(void)state;
	PassOptions o = {.fuel = {{PASS_expand_math, 0}}, .nfuel = 1};
	assert_int_equal(count_op(compile(&o), OP_LOG), 1);
}

static void
test_fuel_enough(void **state)
{
	(void)state;
	PassOptions o = {.fuel = {{PASS_expand_math, 1}}, .nfuel = 1};
	assert_int_equal(count_op(compile(&o), OP_LOG), 0);
}

static void
test_remarks(void **state)
{
	(void)state;
	compile(&(PassOptions){.lanes = 8, .remarks = true});
	assert_string_equal(text_get(&text),
		"remark[rows_differ]: s (%3, line 3) is not fused: it needs more than one row of what it reads\n");
}

static int64_t
tick(void *user)
{
	return *(int64_t *)user += 1500000;
}

static void
test_time(void **state)
{
	(void)state;
	int64_t now = 0;
	Host host = *host_default();
	host.clock = (HostClock){tick, &now};
	compile(&(PassOptions){.time = true, .host = &host});
	assert_true(says("time: schedule            1.500 ms        2 rewrites\n"));
}

static const char *
tir_text(const TirKernel *k)
{
	Text out;
	text_init(&out, &arena);
	tir_print(k, &out);
	return text_get(&out);
}

static bool
has_log(const TirKernel *k)
{
	bool found = false;
	for (ValId v = 1; v < k->inst.n; v++)
		found |= tir_inst(k, v)->op == OP_LOG;
	return found;
}

/* No pass over tile IR has been run for a late program's kernels but what tables need to know; once run, they give the same. */
static void
test_late(void **state)
{
	(void)state;
	static const FpMode modes[] = {FP_STRICT, FP_RELAXED, FP_FAST};
	for (unsigned m = 0; m < sizeof modes / sizeof *modes; m++) {
		PassOptions o = {.blocks = true, .has_fma = true, .has_ex2 = true};
		graph->fp = modes[m];
		const Program *whole = compile(&o);
		o.late = true;
		const Program *late = compile(&o);
		assert_int_equal(late->kernel.n, whole->kernel.n);
		assert_true(has_log(late->kernel.at[0].early));
		assert_true(has_log(late->kernel.at[0].tir));
		for (uint32_t k = 0; k < whole->kernel.n; k++) {
			assert_null(whole->kernel.at[k].early);
			assert_int_not_equal(late->kernel.at[k].tir->form, TIR_BLOCK);
			assert_string_equal(tir_text(compile_kernel(late->kernel.at[k].early, graph->fp, &o, &arena)),
			                    tir_text(whole->kernel.at[k].tir));
		}
	}
	assert_string_equal(text_get(&text), "");
}

/* What is asked about passes over tile IR is answered by the compilation; a processor's kernels all run. */
static void
test_late_only_where_nobody_looks(void **state)
{
	(void)state;
	PassOptions o[6];
	for (unsigned n = 0; n < 6; n++)
		o[n] = (PassOptions){.blocks = n != 0, .late = true};
	o[1].dump_all = true;
	o[2].skip[PASS_fit] = true;
	o[3].verify_each = true;
	o[4].fuel[o[4].nfuel++] = (PassFuel){PASS_cleanup, 1};
	o[5].dump[PASS_cleanup] = true;
	for (unsigned n = 0; n < 6; n++)
		assert_null(compile(&o[n])->kernel.at[0].early);
}

static void
test_refusal(void **state)
{
	(void)state;
	graph->tensor.at[2].dtype = DT_F64; /* the body is f32 */
	if (setjmp(unwind.env)) {
		assert_int_equal(unwind.why, UNWIND_BUG);
		assert_non_null(strstr(unwind.text, "pass "));
		assert_non_null(strstr(unwind.text, "%2"));
		return;
	}
	compile_graph(graph, &(PassOptions){0}, &text);
	fail_msg("a broken graph was compiled");
}

static void
test_kernel_plans(void **state)
{
	(void)state;
	static const struct { const char *text, *error; } rows[] = {
		{"nest lanes=0 unroll=1 nodes=%7", NULL},
		{"map lanes=16 unroll=4 nodes=%7,%8,%4294967295", NULL},
		{"contract lanes=16 unroll=1 tile=14x32 block=224x768x768 tasks=4 nodes=%7", NULL},
		{"contract lanes=16 unroll=1 tile=32x32 block=512x512x512 tasks=4 pairs=16 nodes=%7", NULL},
		{"contract lanes=16 unroll=1 tile=14x32 block=336x1024x1024 tasks=4 pairs=8 chained nodes=%7", NULL},
		{"contract lanes=0 unroll=1 tile=128x192 block=128x192x64 tasks=1 turns threads=384 group=4 resident=1 nodes=%7", NULL},
		{"contract lanes=0 unroll=1 tile=128x64 block=128x64x256 tasks=1 pairs=8 halo threads=256 group=4 resident=2 nodes=%7", NULL},
		{"rowred lanes=4096 unroll=1 threads=128 group=4 held nodes=%7", NULL},
		{"rowred lanes=131072 unroll=1 threads=512 group=8 cluster=8 resident=1 held nodes=%7", NULL},
		{"colred lanes=32 unroll=1 threads=32 group=1 short nodes=%7", NULL},
		{"colred lanes=131072 unroll=1 threads=512 group=8 cluster=8 columns=64 resident=2 held nodes=%7", NULL},
		{"scan lanes=4096 unroll=1 threads=256 group=4 resident=5 posts=16384 nodes=%7", NULL},
		{"scan lanes=4096 unroll=1 threads=256 group=4 posts= nodes=%7", "expected threads=N group=N before the nodes"},
		{"map lanes=4096 unroll=1 threads=256 group=8 nodes=%7,%8", NULL},
		{"map lanes=4096 unroll=1 threads=256 group=8 cluster= nodes=%7,%8", "expected threads=N group=N before the nodes"},
		{"map lanes=4096 unroll=1 threads=256 nodes=%7", "expected threads=N group=N before the nodes"},
		{"contract lanes=16 unroll=1 tile=14x32 nodes=%7", 
		 "expected tile=RxC block=RxCxT tasks=N after the unrolling"},
		{"nets lanes=0 unroll=1 nodes=%7", "a plan starts with the name of a template"},
		{"nest unroll=1 nodes=%7", "expected lanes=N after the template"},
		{"nest lanes=262145 unroll=1 nodes=%7", "expected lanes=N after the template"},
		{"nest lanes=4 nodes=%7", "expected unroll=N after the lanes"},
		{"nest lanes=4 unroll=1", "expected nodes=%N,%N… after the unrolling, 64 at most"},
		{"nest lanes=4 unroll=1 nodes=7", "expected nodes=%N,%N… after the unrolling, 64 at most"},
		{"nest lanes=4 unroll=1 nodes=%7 ", "something follows the nodes"},
	};
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		KernelPlan plan;
		const char *error = NULL;
		Text out;
		text_init(&out, &arena);
		bool ok = kp_read(&plan, rows[k].text, strlen(rows[k].text), &error);
		assert_int_equal(ok, rows[k].error == NULL);
		if (!ok) {
			assert_string_equal(error, rows[k].error);
			continue;
		}
		kp_print(&plan, &out);
		assert_string_equal(text_get(&out), rows[k].text);
	}
}

static void
use_scratch(void)
{
	ScratchPool pool;
	Arena scratch;
	size_t used = 0;
	scratch_pool_init(&pool, &arena);
	scratch_arena_init(&pool, &scratch);
	for (int round = 0; round < 10; round++) {
		for (int k = 0; k < 100; k++)
			memset(arena_alloc(&scratch, 4000), 0x5a, 4000);
		const char *zeroed = arena_alloc(&scratch, 64);
		for (int k = 0; k < 64; k++)
			assert_int_equal(zeroed[k], 0);
		arena_free(&scratch);
		if (round == 0)
			used = arena.used;
		assert_int_equal(arena.used, used); /* later rounds take nothing new */
	}
}

static void
test_scratch(void **state)
{
	(void)state;
	if (setjmp(unwind.env))
		fail_msg("%s", unwind.text);
	use_scratch();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_quiet, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_contract_only_where_allowed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scale_only_where_it_is, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pick_only_where_it_is, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ex2_only_where_it_is, setup, teardown),
		cmocka_unit_test_setup_teardown(test_plan_text, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dump, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stop, setup, teardown),
		cmocka_unit_test_setup_teardown(test_skip, setup, teardown),
		cmocka_unit_test_setup_teardown(test_skip_spares_the_schedule, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fuel, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fuel_enough, setup, teardown),
		cmocka_unit_test_setup_teardown(test_remarks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_only_where_nobody_looks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refusal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kernel_plans, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scratch, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
