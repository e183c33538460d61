/* contract_halo_test.c: products of a factor that is read by windows whose elements lie in no chunks, by tiles of a GPU's warps
 * (schedule/contract/halo.c), run by the tile interpreter, which finds races and elements that nobody stored, and compared
 * with the oracle. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph_case.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

enum { MOST_SIDES = 2, NOTHING = -1, LEAST_OF_OTHERS = 16 }; /* channels that kernels of roles take, where the interpreter asks for no alignment */

/* SPLIT: tasks go to several blocks. INSIDE: there is no padding, and no condition. INFINITE: some elements of the image and of
 * the weights are. FIRST: images and results have their channels, of a known number, before their sides. COMPUTED: weights are narrowed from what is
 * computed. SEVERAL: two axes of results. BIAS: is added, and read as f32. */
enum { SPLIT = 1, INSIDE = 2, INFINITE = 4, FIRST = 8, COMPUTED = 16, SEVERAL = 32, BIAS = 64 };

/* y[n, p, q, o] = sum[r, s, c](x[n, step p + dilation r - before, ..., c] * w[o, r, s, c]); by groups y[n, p, q, g, o]. */
typedef struct {
	unsigned sides;
	int64_t images, groups, made[MOST_SIDES], taps[MOST_SIDES], step[MOST_SIDES], dilation, before, channels, results; /* groups, channels: 0: none */
	DType in, to;
	unsigned how;
	bool taken;
} Windows;

static const Windows *now;

static int64_t
length_of(unsigned k)
{
	int64_t reach = (now->made[k] - 1) * now->step[k] + (now->taps[k] - 1) * now->dilation + 1;
	return now->how & INSIDE ? reach : now->made[k] * now->step[k];
}

static int64_t
count_of(unsigned n, const int64_t *size)
{
	int64_t all = 1;
	while (n-- > 0)
		all *= size[n];
	return all;
}

/* Whole numbers whose sums are exact, some of them infinite, or no number. */
static const void *
numbers(Case *c, unsigned n, const int64_t *size, uint32_t seed)
{
	int64_t count = count_of(n, size);
	void *x = arena_alloc(c->arena, (size_t)(count + 1) * (dtype_info[now->in].bits / 8));
	for (int64_t i = 0; i < count; i++) {
		double v = (double)((uint32_t)(i + seed) * 2654435761u >> 29) - 3;
		bool odd = now->how & INFINITE && (uint32_t)(i + seed) * 2246822519u >> 25 == 0;
		eval_store(now->in, x, i, (EvalValue){.re = odd ? (i % 3 ? INFINITY : NAN) : v});
	}
	return x;
}

static TensorId
operand(Case *c, const char *name, unsigned n, const int64_t *size, const char *const *dim, uint32_t seed)
{
	ExprId e[TG_MAX_RANK] = {0};
	for (unsigned k = 0; k < n; k++)
		e[k] = dim[k] ? case_dim(c, dim[k], size[k]) : case_int(c, size[k]);
	TensorId t = case_input(c, TENSOR_INPUT, name, now->in, n, e);
	case_given(c, t, numbers(c, n, size, seed));
	return t;
}

static ExprId
read_list(Case *c, TensorId t, unsigned n, const ExprId *sub)
{
	return expr_read(c->g, t, sub, n, 0);
}

/* Which axes of the node are which; -1: there is none. */
typedef struct {
	int image, group, side[MOST_SIDES], result[2], tap[MOST_SIDES], channel, par, red;
} Axes;

static Axes
number_axes(void)
{
	Axes a = {.image = 0, .group = -1, .channel = -1, .result = {-1, -1}};
	bool first = now->how & FIRST;
	int n = 1;
	if (first) {
		a.group = now->groups ? n++ : -1;
		a.result[0] = n++;
	}
	for (unsigned k = 0; k < now->sides; k++)
		a.side[k] = n++;
	if (!first) {
		a.group = now->groups ? n++ : -1;
		a.result[0] = n++;
	}
	if (now->how & SEVERAL)
		a.result[1] = n++;
	a.par = n;
	if (first && now->channels)
		a.channel = n++;
	for (unsigned k = 0; k < now->sides; k++)
		a.tap[k] = n++;
	if (!first && now->channels)
		a.channel = n++;
	a.red = n - a.par;
	return a;
}

typedef struct {
	unsigned n;
	int64_t size[TG_MAX_RANK];
	const char *dim[TG_MAX_RANK];
	ExprId sub[TG_MAX_RANK];
} Operand;

static void
add_axis(Operand *o, int64_t size, const char *dim, ExprId sub)
{
	o->size[o->n] = size;
	o->dim[o->n] = dim;
	o->sub[o->n++] = sub;
}

static void
add_channels(Case *c, Operand *o, const Axes *a, bool image)
{
	if (image && a->group >= 0)
		add_axis(o, now->groups, "G", ax(c, (unsigned)a->group));
	if (a->channel >= 0)
		add_axis(o, now->channels == NOTHING ? 0 : now->channels, image && !(now->how & FIRST) ? "C" : NULL, ax(c, (unsigned)a->channel));
}

static void
build(Case *c)
{
	static const char *const lengths[MOST_SIDES] = {"H", "W"};
	Axes a = number_axes();
	Operand x = {0}, w = {0};
	ExprId at[MOST_SIDES], guard = 0, e[TG_MAX_RANK];
	add_axis(&x, now->images, "N", ax(c, 0));
	if (now->how & FIRST)
		add_channels(c, &x, &a, true);
	for (unsigned k = 0; k < now->sides; k++) {
		ExprId tap = BIN(MUL, case_int(c, now->dilation), ax(c, (unsigned)a.tap[k]));
		at[k] = BIN(SUB, BIN(ADD, BIN(MUL, case_int(c, now->step[k]), ax(c, (unsigned)a.side[k])), tap), case_int(c, now->how & INSIDE ? 0 : now->before));
		add_axis(&x, length_of(k), lengths[k], at[k]);
	}
	if (!(now->how & FIRST))
		add_channels(c, &x, &a, true);
	if (a.group >= 0)
		add_axis(&w, now->groups, NULL, ax(c, (unsigned)a.group));
	add_axis(&w, now->results, "O", ax(c, (unsigned)a.result[0]));
	if (a.result[1] >= 0)
		add_axis(&w, 3, NULL, ax(c, (unsigned)a.result[1]));
	if (now->how & FIRST)
		add_channels(c, &w, &a, false);
	for (unsigned k = 0; k < now->sides; k++)
		add_axis(&w, now->taps[k], NULL, ax(c, (unsigned)a.tap[k]));
	if (!(now->how & FIRST))
		add_channels(c, &w, &a, false);
	TensorId image = operand(c, "x", x.n, x.size, x.dim, 1), weights = operand(c, "w", w.n, w.size, w.dim, 7);
	for (unsigned k = 0; k < now->sides && !(now->how & INSIDE); k++) {
		ExprId in = BIN(AND, BIN(LE, case_int(c, 0), at[k]), BIN(LT, at[k], c->g->tensor.at[image].extent[k + 1 + (now->how & FIRST ? (a.group >= 0) + (a.channel >= 0) : 0)]));
		guard = guard ? BIN(AND, guard, in) : in;
	}
	ExprId weight = expr_cast(c->g, DT_F32, read_list(c, weights, w.n, w.sub));
	if (now->how & COMPUTED)
		weight = expr_cast(c->g, DT_F32, expr_cast(c->g, now->in, BIN(ADD, weight, expr_float(c->g, DT_F32, 1))));
	Node n = case_node((unsigned)a.par, BIN(MUL, expr_cast(c->g, DT_F32, read_list(c, image, x.n, x.sub)), weight));
	for (int k = a.par; k < a.par + a.red; k++) {
		int64_t end = k == a.channel ? 0 : now->taps[k == a.tap[0] ? 0 : 1];
		case_reduce(&n, MON_SUM, case_int(c, 0), k == a.channel ? c->g->tensor.at[image].extent[now->how & FIRST ? 1 + (a.group >= 0) : (int)x.n - 1] : case_int(c, end));
	}
	if (guard)
		n.guard = guard;
	for (int k = 0; k < a.par; k++)
		e[k] = k == a.image ? c->g->tensor.at[image].extent[0] : k == a.group ? c->g->tensor.at[image].extent[now->how & FIRST ? 1 : 1 + now->sides] :
		       k == a.result[0] ? c->g->tensor.at[weights].extent[a.group >= 0] : k == a.result[1] ? case_int(c, 3) : case_int(c, now->made[k - a.side[0]]);
	ExprId acc = expr_make(c->g, OP_ACC, DT_F32, 0, 0, NULL, 0);
	if (now->how & BIAS) {
		TensorId bias = case_input(c, TENSOR_INPUT, "bias", DT_F32, 1, &e[a.result[0]]);
		acc = BIN(MAX, BIN(ADD, acc, read_at(c, bias, 1, ax(c, (unsigned)a.result[0]))), expr_float(c->g, DT_F32, 0));
	}
	n.finish = expr_cast(c->g, now->to, acc);
	case_result(c, "y", case_add(c, &n, "y", now->to, e), 0);
}

static const Windows windows[] = {
	/* sides, images, groups, made, taps, step, dilation, before, channels, results */
	/* a network's first layer: by twos, three channels; ends of boxes in each axis; other numbers of results */
	{2, 1, 0, {16, 8}, {7, 7}, {2, 2}, 1, 3, 3, 64, DT_BF16, DT_BF16, BIAS, true},
	{2, 3, 0, {5, 9}, {7, 7}, {2, 2}, 1, 3, 3, 68, DT_BF16, DT_F32, SPLIT, true},
	{2, 1, 0, {9, 9}, {5, 5}, {2, 2}, 1, 2, 3, 33, DT_F16, DT_F16, SPLIT | BIAS, true},
	/* one by one: pixels are made even */
	{2, 1, 0, {9, 11}, {5, 5}, {1, 1}, 1, 2, 3, 40, DT_BF16, DT_F32, 0, true},
	{2, 2, 0, {8, 8}, {3, 3}, {1, 1}, 1, 1, 17, 24, DT_BF16, DT_BF16, SPLIT, true},
	{2, 1, 0, {8, 8}, {3, 3}, {1, 2}, 1, 1, 9, 16, DT_F16, DT_F32, INSIDE, true},
	{2, 1, 0, {8, 9}, {3, 3}, {3, 3}, 1, 1, 9, 30, DT_BF16, DT_F32, COMPUTED, true},
	/* taps that lie apart */
	{2, 1, 0, {8, 9}, {3, 3}, {2, 2}, 2, 1, 9, 32, DT_BF16, DT_F32, 0, true},
	{2, 1, 0, {8, 9}, {3, 3}, {1, 1}, 3, 2, 10, 32, DT_BF16, DT_F32, INSIDE, true},
	/* several panels of terms; a panel that goes to another task's columns */
	{2, 1, 0, {8, 8}, {3, 3}, {1, 1}, 1, 1, 41, 20, DT_BF16, DT_F32, SPLIT, true},
	{1, 1, 0, {70}, {9}, {1}, 1, 4, 36, 70, DT_BF16, DT_BF16, 0, true},
	/* along one axis, without channels: signals, and rows that begin at odd elements */
	{1, 1, 0, {100}, {80}, {4}, 1, 30, 0, 32, DT_BF16, DT_F32, 0, true},
	{1, 3, 0, {50}, {65}, {1}, 1, 30, 0, 16, DT_F16, DT_F32, SPLIT, true},
	{1, 1, 0, {90}, {101}, {5}, 1, 0, 0, 20, DT_BF16, DT_F32, INSIDE, true},
	{2, 1, 0, {9, 11}, {9, 8}, {1, 1}, 1, 3, 0, 20, DT_BF16, DT_F32, SPLIT, true},
	/* channels first */
	{2, 1, 0, {8, 10}, {5, 5}, {2, 2}, 1, 2, 3, 20, DT_BF16, DT_F32, FIRST | SPLIT, true},
	{2, 1, 0, {8, 10}, {5, 5}, {1, 1}, 1, 2, 3, 20, DT_BF16, DT_BF16, FIRST | BIAS, true},
	/* groups; several axes of results */
	{2, 1, 2, {8, 9}, {3, 3}, {1, 1}, 1, 1, 9, 20, DT_BF16, DT_F32, SPLIT, true},
	{2, 1, 0, {8, 8}, {3, 3}, {2, 2}, 1, 1, 11, 8, DT_BF16, DT_F32, SEVERAL | SPLIT, true},
	/* infinities and no numbers, beside what is absent and what fills runs up */
	{2, 1, 0, {9, 8}, {5, 5}, {2, 2}, 1, 2, 3, 32, DT_BF16, DT_F32, INFINITE, true},
	{2, 1, 0, {9, 8}, {5, 5}, {1, 1}, 1, 2, 3, 17, DT_F16, DT_F32, INFINITE | SPLIT, true},
	{2, 1, 0, {9, 8}, {3, 3}, {1, 1}, 1, 1, 9, 16, DT_BF16, DT_F32, INFINITE | INSIDE, true},
	{1, 1, 0, {90}, {67}, {1}, 1, 5, 0, 20, DT_BF16, DT_F32, INFINITE, true},
	/* few terms, and too few */
	{2, 2, 0, {9, 8}, {5, 5}, {2, 2}, 1, 2, 0, 16, DT_BF16, DT_F32, 0, true},
	{2, 2, 0, {9, 8}, {3, 3}, {1, 2}, 1, 1, 3, 16, DT_BF16, DT_F32, 0, true},
	{2, 2, 0, {9, 8}, {2, 8}, {2, 2}, 1, 1, 0, 16, DT_BF16, DT_F32, 0, true}, /* by a GPU with roles */
	{2, 2, 0, {9, 8}, {2, 8}, {2, 2}, 1, 1, 0, 16, DT_BF16, DT_F32, SPLIT, false},
	/* others': few rows or results; more than there is room for; images of nothing */
	{2, 1, 0, {7, 9}, {5, 5}, {2, 2}, 1, 2, 3, 32, DT_BF16, DT_F32, 0, false},
	{2, 2, 0, {9, 8}, {5, 5}, {2, 2}, 1, 2, 3, 15, DT_BF16, DT_F32, 0, false},
	{1, 1, 0, {80}, {80}, {120}, 1, 0, 0, 16, DT_BF16, DT_F32, INSIDE, false},
	{2, 1, 0, {8, 9}, {5, 5}, {2, 2}, 1, 2, NOTHING, 20, DT_BF16, DT_F32, 0, false},
};

static void
run(const Windows *w, bool roles)
{
	now = w;
	CaseRun r = roles ? case_try_roles(build, w->how & SPLIT, 0) : case_try_warps(build, FP_RELAXED, 0, w->how & SPLIT, 0);
	if (r.halo != w->taken)
		fail_msg("%lld x %lld windows of %lld channels by %lld are taken by %s: %s", (long long)w->taps[0], (long long)w->taps[1],
		         (long long)w->channels, (long long)w->step[0], r.halo ? "warps" : "others", r.remarks);
}

static void
windows_are_right(void **state)
{
	(void)state;
	for (unsigned n = 0; n < sizeof windows / sizeof *windows; n++)
		run(&windows[n], n % 2 && windows[n].channels < LEAST_OF_OTHERS);
}

static void
strict_sums_are_others(void **state)
{
	(void)state;
	now = &windows[0];
	assert_false(case_try_warps(build, FP_STRICT, 0, false, 0).halo);
	assert_true(case_try_warps(build, FP_FAST, 0, false, 0).halo);
	Windows wide = windows[0];
	wide.in = DT_F32;
	now = &wide;
	assert_false(case_try_warps(build, FP_FAST, 0, false, 0).halo);
}

/* --- any windows --- */

static Windows
random_windows(uint64_t *rng)
{
	static const DType in[] = {DT_BF16, DT_F16};
	static const DType to[] = {DT_F32, DT_BF16, DT_F16};
	Windows w = {.sides = 1 + case_below(rng, 2), .images = 1 + case_below(rng, 3), .dilation = 1 + case_below(rng, 4) / 3, .before = case_below(rng, 3),
	             .channels = case_below(rng, 4) ? 1 + case_below(rng, 20) : 0, .results = 16 + case_below(rng, case_below(rng, 3) ? 30 : 70), .in = in[case_below(rng, 2)],
	             .to = to[case_below(rng, 3)], .groups = case_below(rng, 4) ? 0 : 1 + case_below(rng, 2)};
	static const unsigned how[] = {0, SPLIT, INSIDE, FIRST, COMPUTED, SEVERAL, BIAS, INFINITE, FIRST | SPLIT, INFINITE | SPLIT, INSIDE | BIAS};
	w.how = how[case_below(rng, sizeof how / sizeof *how)];
	for (unsigned k = 0; k < w.sides; k++) {
		w.made[k] = w.sides == 1 ? 20 + case_below(rng, 80) : 4 + case_below(rng, 7);
		w.taps[k] = w.sides == 1 ? 1 + case_below(rng, 40) : 1 + case_below(rng, 8);
		w.step[k] = 1 + case_below(rng, 3);
	}
	if (w.groups && !w.channels)
		w.channels = 1;
	return w;
}

static void
many_windows_are_right(void **state)
{
	enum { COUNT = 40 };
	uint64_t rng = 5;
	unsigned taken = 0;
	(void)state;
	for (unsigned n = 0; n < COUNT; n++) {
		Windows w = random_windows(&rng);
		now = &w;
		taken += case_try_warps(build, n % 3 ? FP_RELAXED : FP_FAST, 1, w.how & SPLIT, 0).halo;
	}
	assert_true(taken >= COUNT / 2);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(windows_are_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(strict_sums_are_others, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(many_windows_are_right, case_setup, case_teardown),
	};
	case_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
