/* dot_test.c: DOT by the matrix unit, and chained by vectors. Everywhere: the instructions that it becomes. Where
 * the processor has the unit and the system grants it: its results against the interpreter's, and against exact
 * sums, and a thread that was not there when it was granted. Elsewhere these are skipped, and say so. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/codegen/rig.h"

typedef struct {
	const char *cpu;
	int64_t shape;
} Unit;

enum { ROWS = 32, COLUMNS = 32, PAIRS = 16, GROUPS = 5, TILES = 3 };

static const char cpu[] = "sapphirerapids", with_vectors[] = "znver4";
static const Unit tiles = {cpu, TIR_DOT(ROWS, COLUMNS, PAIRS)};
static const Unit vectors = {with_vectors, TIR_DOT(14, COLUMNS, 8) | TIR_DOT_CHAINED};
static const Unit tiles_anew = {cpu, TIR_DOT(ROWS, COLUMNS, PAIRS) | TIR_DOT_ANEW};
static const Unit vectors_anew = {with_vectors, TIR_DOT(14, COLUMNS, 8) | TIR_DOT_CHAINED | TIR_DOT_ANEW};
enum { C = TILES * ROWS * COLUMNS, A = TILES * GROUPS * ROWS * PAIRS, B = GROUPS * PAIRS * COLUMNS };

/* Task t: c[t] += a[t] b, over `groups` groups, of the first elements of each matrix. */
static void
build(Rig *r, int64_t shape)
{
	TirKernel *k = r->k;
	static const char *const name[] = {"c", "a", "b"};
	ValId view[3], one = tir_int(k, DT_I64, 1);
	const int64_t extent[3][4] = {{TILES, ROWS, COLUMNS}, {TILES, GROUPS, ROWS, PAIRS}, {GROUPS, PAIRS, COLUMNS}};
	const unsigned rank[3] = {3, 4, 3};
	tir_add_scalar(k, name_cstr(r->names, "groups"), DT_I64);
	for (unsigned n = 0; n < 3; n++) {
		ValId size[4], stride[4];
		int64_t step = 1;
		for (unsigned a = rank[n]; a-- > 0; step *= extent[n][a]) {
			size[a] = tir_int(k, DT_I64, extent[n][a]);
			stride[a] = tir_int(k, DT_I64, step);
		}
		unsigned buffer = tir_add_buffer(k, name_cstr(r->names, name[n]), n ? DT_U32 : DT_F32, n == 0);
		view[n] = tir_view(k, buffer, rank[n], size, stride);
	}
	ValId groups = tir_emit(k, OP_SCALAR, tir_scalar(DT_I64), 0, NULL, 0);
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	ValId hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId task = tir_for(k, lo, hi, one, NULL, 0);
	tir_dot(k, shape, view[0], view[1], view[2], groups, (ValId[]){task, task});
	tir_end_for(k, NULL, 0);
}

/* --- the instructions --- */

static unsigned
count(const char *text, const char *word)
{
	unsigned n = 0;
	for (const char *p = text; (p = strstr(p, word)) != NULL; p++)
		n++;
	return n;
}

typedef struct {
	unsigned rows, columns, dots, loads, stores;
	bool anew;
} Shape;

static void
the_instructions(Rig *r, const void *arg)
{
	const Shape *s = arg;
	build(r, TIR_DOT(s->rows, s->columns, PAIRS) | (s->anew ? TIR_DOT_ANEW : 0));
	Program *p = rig_program(r, TILES);
	for (int level = 0; level <= 3; level++) {
		CodegenOptions o = {.cpu = cpu, .opt_level = level, .want_asm = true};
		if (codegen_cpu(&r->arena, (const Program *const *)&p, 1, &o, &r->out) != CODEGEN_OK)
			fail_msg("%s", r->out.message);
		const char *text = r->out.assembly;
		assert_int_equal(count(text, "\ttdpbf16ps\t"), s->dots);
		assert_int_equal(count(text, "\ttileloadd\t"), s->loads);
		assert_int_equal(count(text, "\ttilestored\t"), s->stores);
		assert_int_equal(count(text, "\ttilezero\t"), s->anew ? s->dots : 0);
		assert_int_equal(count(text, "\tldtilecfg\t"), 1);
		assert_int_equal(count(text, "\ttilerelease"), 1);
	}
}

/* Each tile is loaded where it must be and kept; nothing of it is spilled, at any level. */
static void
instructions(void **state)
{
	(void)state;
	rig_run("k", the_instructions, &(Shape){32, 32, 4, 8, 4, false});
	rig_run("k", the_instructions, &(Shape){32, 32, 4, 4, 4, true});
	rig_run("k", the_instructions, &(Shape){16, 16, 1, 3, 1, false});
	rig_run("k", the_instructions, &(Shape){16, 48, 3, 7, 3, false});
}

/* Two vectors of columns for each row, in one loop of the pairs; the accumulators are loaded and stored once. */
static void
the_vectors(Rig *r, const void *arg)
{
	const Unit *u = arg;
	TirDot d = tir_dot_shape(u->shape);
	build(r, u->shape);
	Program *p = rig_program(r, TILES);
	CodegenOptions o = {.cpu = u->cpu, .opt_level = 2, .want_asm = true};
	if (codegen_cpu(&r->arena, (const Program *const *)&p, 1, &o, &r->out) != CODEGEN_OK)
		fail_msg("%s", r->out.message);
	assert_int_equal(count(r->out.assembly, "\tvdpbf16ps\t"), d.rows * d.columns / 16);
	assert_int_equal(count(r->out.assembly, "tile"), 0);
}

static void
vector_instructions(void **state)
{
	(void)state;
	rig_run("k", the_vectors, &vectors);
	rig_run("k", the_vectors, &vectors_anew);
}

typedef struct {
	const char *cpu;
	int64_t shape;
	const char *message;
} Refusal;

static void
a_refusal(Rig *r, const void *arg)
{
	const Refusal *x = arg;
	build(r, x->shape);
	Program *p = rig_program(r, TILES);
	CodegenOptions o = {.cpu = x->cpu, .no_code = true};
	assert_int_equal(codegen_cpu(&r->arena, (const Program *const *)&p, 1, &o, &r->out), CODEGEN_ILLEGAL);
	if (!strstr(r->out.message, x->message))
		fail_msg("%s", r->out.message);
}

static void
refusals(void **state)
{
	(void)state;
	rig_run("k", a_refusal, &(Refusal){"icelake-server", TIR_DOT(32, 32, 16), "'dot' needs a processor with amx-tile and amx-bf16"});
	rig_run("k", a_refusal, &(Refusal){cpu, TIR_DOT(24, 32, 16), "does not fit into the tiles"});
	rig_run("k", a_refusal, &(Refusal){cpu, TIR_DOT(64, 32, 16), "does not fit into the tiles"});
	rig_run("k", a_refusal, &(Refusal){"icelake-server", vectors.shape, "'dot', chained, needs a processor with avx512bf16"});
	rig_run("k", a_refusal, &(Refusal){with_vectors, tiles.shape, "'dot' needs a processor with amx-tile and amx-bf16"});
	rig_run("k", a_refusal, &(Refusal){with_vectors, TIR_DOT(15, 32, 8) | TIR_DOT_CHAINED, "does not fit into the vectors"});
	rig_run("k", a_refusal, &(Refusal){with_vectors, TIR_DOT(8, 24, 8) | TIR_DOT_CHAINED, "does not fit into the vectors"});
}

/* --- the results --- */

typedef struct {
	const Unit *unit;
	bool extreme;
} Run;

typedef struct {
	float c[C];
	uint32_t a[A], b[B];
} Data;

static uint64_t state_;

static uint32_t
bits(bool extreme)
{
	state_ = state_ * 6364136223846793005u + 1442695040888963407u;
	uint32_t w = (uint32_t)(state_ >> 32);
	return extreme ? w & 0xbfffbfff : (w & 0x80ff80ff) | 0x3e003e00; /* < 2; 2^-3 .. 2^-1 */
}

static void
fill(Data *d, bool extreme)
{
	for (unsigned n = 0; n < C; n++) {
		uint32_t w = bits(extreme);
		memcpy(&d->c[n], &w, sizeof w);
	}
	for (unsigned n = 0; n < A; n++)
		d->a[n] = bits(extreme);
	for (unsigned n = 0; n < B; n++)
		d->b[n] = bits(extreme);
}

static double
half(uint32_t pair, unsigned which)
{
	uint32_t w = which ? pair & 0xffff0000 : pair << 16;
	float v;
	memcpy(&v, &w, sizeof v);
	return (double)v;
}

/* c + a b in double, and the bound of any order of the sum; c itself outside the shape. */
static double
exact(const Data *d, TirDot s, unsigned n, double *bound)
{
	unsigned tile = n / (ROWS * COLUMNS), row = n / COLUMNS % ROWS, column = n % COLUMNS;
	unsigned terms = row < s.rows && column < s.columns ? GROUPS * s.pairs * 2 : 0;
	double sum = terms && s.anew ? 0 : (double)d->c[n], size = fabs(sum);
	for (unsigned k = 0; k < terms; k++) {
		unsigned g = k / 2 / s.pairs, p = k / 2 % s.pairs;
		double t = half(d->a[((tile * GROUPS + g) * ROWS + row) * PAIRS + p], k % 2) *
		           half(d->b[(g * PAIRS + p) * COLUMNS + column], k % 2);
		sum += t;
		size += fabs(t);
	}
	*bound = terms ? size * (terms + 1) * 0x1p-24 : 0;
	return sum;
}

static void
launch(Rig *r, Data *d, int64_t groups)
{
	RigRun run = {.data = {d->c, d->a, d->b}, .count = {C, A, B}, .scalar = {&groups}, .ntask = TILES};
	rig_launch(r, &run);
}

static void
the_results(Rig *r, const void *arg)
{
	const Unit *u = ((const Run *)arg)->unit;
	bool extreme = ((const Run *)arg)->extreme;
	Data *got = malloc(sizeof *got), *want = malloc(sizeof *want), *old = malloc(sizeof *old);
	assert_true(got && want && old);
	build(r, u->shape);
	rig_load(r, u->cpu, TILES);
	for (state_ = 1; state_ < 40; state_++) {
		uint64_t seed = state_;
		int64_t groups = seed % 7 ? GROUPS : 0;
		fill(old, extreme);
		*got = *want = *old;
		launch(r, got, groups);
		RigRun run = {.data = {want->c, want->a, want->b}, .count = {C, A, B}, .scalar = {&groups}, .ntask = TILES};
		rig_interpret(r, &run);
		int64_t at = rig_differ(DT_F32, got->c, want->c, C);
		if (at >= 0)
			fail_msg("element %d is %a, not %a", (int)at, (double)got->c[at], (double)want->c[at]);
		for (unsigned n = 0; n < C && groups && !extreme; n++) {
			double bound, v = exact(old, tir_dot_shape(u->shape), n, &bound);
			if (!(fabs((double)got->c[n] - v) <= bound))
				fail_msg("element %u is %a, exactly %a", n, (double)got->c[n], v);
		}
		state_ = seed;
	}
	free(got);
	free(want);
	free(old);
}

static void
skip_without(const Unit *u)
{
	if (!rig_can_run(u->cpu)) {
		print_message("nothing that multiplies bf16 as %s does is here\n", u->cpu);
		skip();
	}
}

static void
results(void **state)
{
	(void)state;
	skip_without(&tiles);
	rig_run("k", the_results, &(Run){&tiles, false});
	rig_run("k", the_results, &(Run){&tiles_anew, false});
}

/* Subnormals, infinities, NaNs and cancellation: still the interpreter's bits. */
static void
extremes(void **state)
{
	(void)state;
	skip_without(&tiles);
	rig_run("k", the_results, &(Run){&tiles, true});
}

static void
vector_results(void **state)
{
	(void)state;
	skip_without(&vectors);
	rig_run("k", the_results, &(Run){&vectors, false});
	rig_run("k", the_results, &(Run){&vectors, true});
	rig_run("k", the_results, &(Run){&vectors_anew, false});
}

typedef struct {
	Rig *r;
	Data *d;
} Thread;

static void *
work(void *arg)
{
	Thread *t = arg;
	launch(t->r, t->d, GROUPS);
	return NULL;
}

static void
in_a_thread(Rig *r, const void *arg)
{
	(void)arg;
	pthread_t thread;
	Data *here = malloc(sizeof *here), *there = malloc(sizeof *there);
	assert_true(here && there);
	build(r, tiles.shape);
	rig_load(r, tiles.cpu, TILES);
	fill(here, false);
	*there = *here;
	launch(r, here, GROUPS);
	assert_int_equal(pthread_create(&thread, NULL, work, &(Thread){r, there}), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_memory_equal(here->c, there->c, sizeof here->c);
	free(here);
	free(there);
}

static void
threads(void **state)
{
	(void)state;
	skip_without(&tiles);
	rig_run("k", in_a_thread, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions), cmocka_unit_test(refusals), cmocka_unit_test(results),
		cmocka_unit_test(extremes),     cmocka_unit_test(threads),
		cmocka_unit_test(vector_instructions), cmocka_unit_test(vector_results),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
