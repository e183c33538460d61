/* cost_test.c: the cost model says what it is made of: bytes at the rate of where they lie, operations
 * at theirs and once where code has them once, starts, and threads where they pay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "frontend/frontend.h"
#include "passes/cost/cost.h"
#include "passes/pass.h"

static Arena arena;

typedef struct {
	LaunchEnv env;
	Graph *g;
	Program *p;
	uint16_t lanes;
} Compiled;

static FpMode mode = FP_RELAXED;

static Graph *
read_graph(const char *text)
{
	Diags d;
	diags_init(&d, &arena);
	FileId id = diags_add_file(&d, "cost", text, strlen(text));
	FrontendOptions o = {.fp = mode, .host = host_default()};
	Unit *u = frontend_compile(&arena, names_new(&arena), &d, id, &o);
	if (d.nerror || u->graph.n != 1)
		fail_msg("%s", diags_render(&d, &arena, false));
	return u->graph.at[0];
}

/* Every dim has this size. */
static void
set_dims(Compiled *c, int64_t size)
{
	launch_env_init(&c->env, c->g, &arena);
	for (DimId d = 1; d < c->g->dim.n; d++) {
		c->env.dim[d] = size;
		c->env.dim_known[d] = true;
	}
}

static Compiled
compile(const char *text, uint16_t lanes)
{
	Compiled c = {.g = read_graph(text), .lanes = lanes};
	PassOptions o = {.lanes = lanes, .has_fma = true};
	Text log;
	text_init(&log, &arena);
	c.p = compile_graph(c.g, &o, &log);
	return c;
}

static double
predict(Compiled *c, int64_t size, unsigned threads)
{
	set_dims(c, size);
	double us = cost_program_us(cost_machine(false, c->lanes), c->p, &c->env, &arena, threads);
	assert_true(us == cost_program_us(cost_machine(false, c->lanes), c->p, &c->env, &arena, threads));
	return us;
}

static double
one(const char *text, int64_t size)
{
	Compiled c = compile(text, 16);
	return predict(&c, size, 1);
}

/* Each definition as a kernel of its own. */
static double
apart(const char *text, int64_t size)
{
	Compiled c = {.g = read_graph(text)};
	UseTable uses;
	double us = 0;
	set_dims(&c, size);
	use_table_init(&uses, c.g, &arena);
	for (uint32_t k = 0; k < c.g->node.n; k++) {
		TensorId t = c.g->node.at[k].out;
		Work w = work_count(&c.env, &uses, &t, 1);
		us += cost_alone_us(cost_machine(false, 16), c.g, t, &w, 1);
	}
	return us;
}

static bool
about(double got, double want)
{
	return got > 0.98 * want && got < 1.02 * want;
}

static const char copy_text[] = "graph g(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] * 2 }";
static const char softmax_text[] = "use \"std\"\ngraph g(x: f32[N, N]) -> (y: f32[N, N]) { y[i, j] = softmax[j](x[i, j]) }";

static void
bytes_at_their_rate(void **state)
{
	const Machine *m = cost_machine(false, 16);
	(void)state;
	assert_true(about(one(copy_text, 1 << 26), 8.0 * (1 << 26) / m->far / 1000));
	assert_true(about(one(copy_text, 1 << 16), (8.0 * (1 << 16) / m->near + m->launch_ns) / 1000));
	assert_true(about(one(copy_text, 1), m->launch_ns / 1000));
}

static void
products_at_theirs(void **state)
{
	const Machine *m = cost_machine(false, 16);
	(void)state;
	double us = one("graph g(x: f32[N, N], w: f32[N, N]) -> (y: f32[N, N]) { y[i, j] = sum[k](x[i, k] * w[k, j]) }", 512);
	assert_true(about(us, 2 * 512.0 * 512 * 512 / m->gflops / 1000));
}

static void
wider_is_faster(void **state)
{
	double before = 0;
	(void)state;
	for (uint16_t lanes = 2; lanes <= 16; lanes = (uint16_t)(2 * lanes)) {
		Compiled c = compile(softmax_text, lanes);
		double us = predict(&c, 256, 1);
		assert_int_equal(cost_machine(false, lanes)->lanes, lanes);
		assert_true(before == 0 || us < before);
		before = us;
	}
	assert_ptr_equal(cost_machine(false, 64), cost_machine(false, 16));
	assert_null(cost_machine(false, 0));
}

static void
threads_where_they_pay(void **state)
{
	Compiled c = compile(softmax_text, 16);
	(void)state;
	assert_true(predict(&c, 2048, 8) < predict(&c, 2048, 2));
	assert_true(predict(&c, 2048, 2) < predict(&c, 2048, 1));
	assert_true(predict(&c, 4, 8) < predict(&c, 4, 1) * 30); /* a start of threads, not more */
}

/* What does not vary within a row is computed once a row, and what two results share once. */
static void
once_where_code_has_it_once(void **state)
{
	(void)state;
	double row = one("graph g(x: f32[N, N], s: f32[N]) -> (y: f32[N, N]) { y[i, j] = x[i, j] * exp(s[i]) }", 256);
	double all = one("graph g(x: f32[N, N], s: f32[N]) -> (y: f32[N, N]) { y[i, j] = x[i, j] * exp(s[j]) }", 256);
	double plain = one("graph g(x: f32[N, N], s: f32[N]) -> (y: f32[N, N]) { y[i, j] = x[i, j] * s[i] }", 256);
	assert_true(row < 1.1 * plain && all > 2 * row);
	double two = one("graph g(x: f32[N]) -> (y: f32[N], z: f32[N]) {\n y[i] = exp(x[i])\n z[i] = exp(x[i]) * 2\n}", 4096);
	double single = one("graph g(x: f32[N]) -> (y: f32[N]) { y[i] = exp(x[i]) }", 4096);
	assert_true(two < 1.5 * single);
}

/* Values that are folded side by side share what does not differ between them. */
static void
once_side_by_side(void **state)
{
	(void)state;
	double three = one("graph g(x: f32[N, 3], a: f32[N]) -> (y: f32[N, 3])\n"
	                   "{ y[i, c] = sum[j](exp(a[i] - a[j]) * max(x[j, c], a[i])) }", 1024);
	double single = one("graph g(x: f32[N], a: f32[N]) -> (y: f32[N])\n"
	                    "{ y[i] = sum[j](exp(a[i] - a[j]) * max(x[j], a[i])) }", 1024);
	assert_true(three > single && three < 1.7 * single);
}

/* A power that is a few products costs them, which it is in strict mode no more than it is with another exponent. */
static void
powers_as_products(void **state)
{
	static const char *const text[] = {"graph g(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] ** 7 }",
	                                   "graph g(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] ** 2.5 }",
	                                   "graph g(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] ** 0.5 }",
	                                   "graph g(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] ** -21 }"};
	(void)state;
	double seventh = one(text[0], 4096), other = one(text[1], 4096), root = one(text[2], 4096), negative = one(text[3], 4096);
	assert_true(seventh < 0.8 * other && root < seventh && negative > 2 * seventh);
	mode = FP_STRICT;
	assert_true(about(one(text[0], 4096), other));
	mode = FP_RELAXED;
}

/* A scan takes one term a step, where its definition has half a row of them. */
static void
scans_by_steps(void **state)
{
	(void)state;
	double scan = one("graph g(x: f32[N, N]) -> (y: f32[N, N]) { y[i, j] = sum[k where k <= j](x[i, k]) }", 512);
	double sum = one("graph g(x: f32[N, N]) -> (y: f32[N]) { y[i] = sum[k](x[i, k]) }", 512);
	assert_true(scan < 8 * sum);
}

/* What fills a contraction's panels is computed for each block of the other side, not for each product. */
static void
factors_by_panel(void **state)
{
	(void)state;
	static const char *const text[] = {
		"graph g(x: f32[N, N], w: f32[N, N]) -> (y: f32[N, N]) { y[i, j] = sum[k](x[i, k] * w[k, j]) }",
		"graph g(x: f32[N, N], w: f32[N, N]) -> (y: f32[N, N]) { y[i, j] = sum[k](exp(x[i, k]) * w[k, j]) }",
		"graph g(x: f32[N, N], w: f32[N, N]) -> (y: f32[N, N]) { y[i, j] = sum[k](x[i, k] * exp(w[k, j])) }"};
	double exp_ns = one("graph g(x: f32[N]) -> (y: f32[N]) { y[i] = exp(x[i]) }", 1 << 14) * 1000 / (1 << 14);
	for (int64_t n = 512; n <= 8192; n *= 16) {
		double plain = one(text[0], n), row = one(text[1], n) - plain, column = one(text[2], n) - plain;
		double once = exp_ns * (double)(n * n) / 1000, blocks = n > 4096 ? (double)n / 4096 : 1;
		assert_true(row > 0.8 * blocks * once && row < 1.2 * blocks * once);
		assert_true(column > 0.8 * once && column < 1.2 * once);
	}
}

static void
together_is_not_slower(void **state)
{
	static const int64_t size[] = {1, 16, 256, 2048};
	(void)state;
	for (unsigned k = 0; k < sizeof size / sizeof *size; k++)
		assert_true(one(softmax_text, size[k]) < apart(softmax_text, size[k]));
}

int
main(void)
{
	Unwind u = {0};
	arena_init(&arena, &host_default()->memory, &u);
	if (setjmp(u.env))
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_at_their_rate), cmocka_unit_test(products_at_theirs), cmocka_unit_test(wider_is_faster),
		cmocka_unit_test(threads_where_they_pay), cmocka_unit_test(once_where_code_has_it_once),
		cmocka_unit_test(once_side_by_side), cmocka_unit_test(powers_as_products),
		cmocka_unit_test(scans_by_steps), cmocka_unit_test(factors_by_panel), cmocka_unit_test(together_is_not_slower),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	arena_free(&arena);
	return failed;
}
