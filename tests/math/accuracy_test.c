/* accuracy_test.c: how exact the functions are, measured on compiled code.
 *
 *     accuracy_test TABLE [--points LOG2] [--write]
 *
 * f32 at 2^LOG2 points, f64 at a 64th of that, f16 and bf16 at all inputs (pow: at 2^20 pairs).
 * Fails where an error is beyond its budget (budgets.def), and where TABLE (docs/accuracy.md) does not
 * say what is measured: with fewer points than it was made with, where the measured error is larger;
 * with as many, where it is different. --write makes TABLE. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/math/kernel.h"
#include "tests/math/narrow.h"
#include "tests/math/points.h"
#include "tests/math/reference.h"

enum { BLOCK = 4096, FULL_POINTS = 26, SMALL_TYPE_POINTS = 65536, SMALL_TYPE_PAIRS = 1 << 20, MAX_TEXT = 1 << 14 };

static const double slack = 0.00051; /* the table has three digits */

typedef struct {
	Op op;
	double f32, f64;
	void (*lower)(Rig *r);
	const char *form; /* of the function, for its row's name */
} Budget;

static const Budget budgets[] = {
#define BUDGET(op, f32, f64) {OP_##op, f32, f64, kernel_lower, ""},
#define NEAR(op, f32, f64) {OP_##op, f32, f64, kernel_lower_near, ", relaxed"},
#define PICK(op, f32, f64) {OP_##op, f32, f64, kernel_lower_pick, ", relaxed, AVX2"},
#include "tests/math/budgets.def"
};
enum { NBUDGET = sizeof budgets / sizeof budgets[0] };

typedef struct {
	double worst, at, at2;       /* where results are normal */
	double worst_subnormal;
	int64_t not_nearest, own; /* own: the nearest f32 would have rounded to the nearest number */
} Measure;

typedef struct {
	Measure f32, f64, bf16, f16;
} Row;

static const char *table_path;
static int log2_points = 22;
static bool write_table;

static void
judge_distance(Measure *m, double x, double y, double d, bool subnormal)
{
	if (subnormal) {
		m->worst_subnormal = fmax(m->worst_subnormal, d);
	} else if (d > m->worst) {
		m->worst = d;
		m->at = x;
		m->at2 = y;
	}
}

static void
judge(Measure *m, DType t, double x, double y, double got, long double want)
{
	if (t == DT_F16 || t == DT_BF16) {
		m->not_nearest += !is_nearest(t, got, want);
		m->own += !is_nearest(t, got, want) && !is_nearest(t, got, (long double)(float)want);
		return;
	}
	judge_distance(m, x, y, distance(t, got, want), is_subnormal(t, want));
}

/* The same for f32, most of whose results need no long double. */
static void
judge_f32(Measure *m, double x, double y, double got, double want)
{
	double d;
	if (finite_distance(got, want, &d))
		judge_distance(m, x, y, d, fabs(want) < 0x1p-126);
	else if (!(isnan(got) && isnan(want)) && (got != want || !signbit(got) != !signbit(want))) /* else no distance */
		judge(m, DT_F32, x, y, got, (long double)want);
}

static Measure
measure(const Budget *row, DType t, uint64_t npoint)
{
	static double x[BLOCK], y[BLOCK], z[BLOCK];
	Op op = row->op;
	Measure m = {0};
	Rig r;
	int64_t n = BLOCK;
	rig_open(&r, "f");
	kernel_map(&r, op, t, t == DT_F64 ? DT_F64 : DT_F32, t, t == DT_F64 ? 4 : 8);
	row->lower(&r);
	rig_load(&r, "host", 1);
	RigRun run = {.data = {x, z}, .count = {n, n, n}, .scalar = {&n}, .ntask = 1};
	if (op_info[op].arity == 2) {
		run.data[1] = y;
		run.data[2] = z;
	}
	for (uint64_t first = 0; first < npoint; first += BLOCK) {
		points(op, t, first, BLOCK, x, y);
		rig_launch(&r, &run);
		for (size_t i = 0; i < BLOCK; i++) {
			double a = number_at(t, x, i), b = op_info[op].arity == 2 ? number_at(t, y, i) : 0;
			if (t == DT_F32)
				judge_f32(&m, a, b, number_at(t, z, i), reference_narrow(op, a, b));
			else
				judge(&m, t, a, b, number_at(t, z, i), reference(op, t == DT_F64, a, b));
		}
	}
	rig_close(&r);
	return m;
}

static Row
measure_all(const Budget *b)
{
	uint64_t n = UINT64_C(1) << log2_points, small = b->op == OP_POW ? SMALL_TYPE_PAIRS : SMALL_TYPE_POINTS;
	return (Row){
		.f32 = measure(b, DT_F32, n),
		.f64 = measure(b, DT_F64, n < 64 * BLOCK ? BLOCK : n / 64),
		.bf16 = measure(b, DT_BF16, small),
		.f16 = measure(b, DT_F16, small),
	};
}

/* The row's name. */
static const char *
row_name(const Budget *b)
{
	static char text[32];
	snprintf(text, sizeof text, "%s%s", op_info[b->op].text, b->form);
	return text;
}

static void
print_row(FILE *f, const Budget *b, const Row *m)
{
	Op op = b->op;
	fprintf(f, "| %s | %.3f | %a", row_name(b), m->f32.worst, m->f32.at);
	if (op_info[op].arity == 2)
		fprintf(f, ", %a", m->f32.at2);
	fprintf(f, " | %.3f | %.3f | %a", m->f32.worst_subnormal, m->f64.worst, m->f64.at);
	if (op_info[op].arity == 2)
		fprintf(f, ", %a", m->f64.at2);
	fprintf(f, " | %.3f | %lld | %lld |\n", m->f64.worst_subnormal, (long long)m->bf16.not_nearest,
	        (long long)m->f16.not_nearest);
}

/* The numbers of op's row in the table's text; false when there is no such row. */
static bool
read_row(const char *text, const Budget *b, Row *m)
{
	char head[48];
	snprintf(head, sizeof head, "\n| %s |", row_name(b));
	const char *row = strstr(text, head);
	if (!row)
		return false;
	long long bf16, f16;
	int got = sscanf(row + strlen(head), " %lf | %*[^|] | %lf | %lf | %*[^|] | %lf | %lld | %lld",
	                 &m->f32.worst, &m->f32.worst_subnormal, &m->f64.worst, &m->f64.worst_subnormal,
	                 &bf16, &f16);
	m->bf16.not_nearest = bf16;
	m->f16.not_nearest = f16;
	return got == 6;
}

static void
check_budget(const Budget *b, const char *type, const Measure *m, double budget)
{
	if (!(m->worst <= budget) || !(m->worst_subnormal <= budget + 0.5))
		fail_msg("%s of %s: %.4f ulp at %a (%a), %.4f where subnormal; the budget is %g", row_name(b),
		         type, m->worst, m->at, m->at2, m->worst_subnormal, budget);
}

static void
check_number(const Budget *b, const char *what, double measured, double stated)
{
	bool same = log2_points >= FULL_POINTS ? fabs(measured - stated) <= slack : measured <= stated + slack;
	if (!same)
		fail_msg("%s, %s: measured %.4f, but %s says %.3f; if that is right, write it anew with --write",
		         row_name(b), what, measured, table_path, stated);
}

static void
check_table(const char *text, const Budget *b, const Row *m)
{
	Row stated;
	if (!read_row(text, b, &stated))
		fail_msg("%s has no row for %s", table_path, row_name(b));
	check_number(b, "f32", m->f32.worst, stated.f32.worst);
	check_number(b, "f32, subnormal results", m->f32.worst_subnormal, stated.f32.worst_subnormal);
	check_number(b, "f64", m->f64.worst, stated.f64.worst);
	check_number(b, "f64, subnormal results", m->f64.worst_subnormal, stated.f64.worst_subnormal);
	assert_int_equal(m->bf16.not_nearest, stated.bf16.not_nearest);
	assert_int_equal(m->f16.not_nearest, stated.f16.not_nearest);
}

static void
print_head(FILE *f)
{
	fprintf(f, "# Accuracy of the functions\n\n"
	        "Made by `tests/math/accuracy_test docs/accuracy.md --points %d --write`; the test fails when this\n"
	        "page is out of date. The same expansions run in the interpreter, on the CPU and on the GPU, and\n"
	        "give the same bits, but in relaxed mode for those of f32 that processors with AVX2 have forms of\n"
	        "their own for, AVX-512 included, and for erf of f32, for which GPUs have `ex2.approx` where it\n"
	        "counts little: within 1.5 ulp there (`scripts/gpu-exact.py`). Strict mode has functions of its\n"
	        "own where a row says \"relaxed\", which then stands for relaxed mode, and fast mode on a processor.\n\n"
	        "Errors are the largest found, in units of the last place of the result (0.5: always the nearest\n"
	        "number): of f32 at 2^%d inputs, of f64 at 2^%d; half of them are spread over all bit patterns,\n"
	        "half over 2^-14 <= |x| < 2^10. Where a result is subnormal it is rounded a second time, so those\n"
	        "have a column of their own. f16 and bf16 are computed in f32 and rounded once: the last columns\n"
	        "count the inputs, of all 65,536 (of `pow`: of 2^20 pairs), whose result is not the nearest number\n"
	        "but its neighbour; rounding the exact value to f32 and then again misses the same ones.\n\n"
	        "| function | f32 | at | f32, subnormal | f64 | at | f64, subnormal | bf16, not nearest | f16, not nearest |\n"
	        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n", log2_points, log2_points, log2_points - 6);
}

static char *
read_table(void)
{
	static char text[MAX_TEXT];
	FILE *f = fopen(table_path, "r");
	if (!f)
		fail_msg("%s can't be read", table_path);
	text[fread(text, 1, sizeof text - 1, f)] = 0;
	fclose(f);
	return text;
}

static void
test_accuracy(void **state)
{
	(void)state;
	FILE *out = write_table ? fopen(table_path, "w") : NULL;
	const char *text = write_table ? NULL : read_table();
	if (write_table)
		print_head(out);
	for (size_t i = 0; i < NBUDGET; i++) {
		const Budget *b = &budgets[i];
		Row m = measure_all(b);
		print_row(stdout, b, &m);
		if (write_table)
			print_row(out, b, &m);
		else
			check_table(text, b, &m);
		if (b->lower == kernel_lower && (m.bf16.own || m.f16.own))
			fail_msg("%s: %lld bf16 and %lld f16 results are wrong not only for being rounded twice",
			         row_name(b), (long long)m.bf16.own, (long long)m.f16.own);
		check_budget(b, "f32", &m.f32, b->f32);
		check_budget(b, "f64", &m.f64, b->f64);
	}
	if (out)
		fclose(out);
}

static void
print_narrow_head(FILE *f)
{
	fprintf(f, "\n## Where results end in narrow floats\n\n"
	        "In relaxed mode, and in fast mode on a processor, where every path from a function ends in bf16 or f16 (LANGUAGE.md). Errors are the\n"
	        "largest found before that last rounding, at 2^%d inputs of f32 and at all of the narrow type, in 1/16 ulp of the\n"
	        "narrow type: 1 is what the language allows. The last column counts the inputs, of all 65,536, whose result after\n"
	        "it is not the nearest number. GPUs have `ex2.approx` in place of the polynomial, and `rcp.approx` in place of tanh's\n"
	        "quotient (`scripts/gpu-exact.py`). tanh is also within 2^-21 of itself. A power to a whole number that indices make, as\n"
	        "`g ** (i - j)`, is a power of 2 whose exponent is off by less than 2^-22 of itself: that is 2^-15.5 of the result.\n\n"
	        "| function | 1/16 ulp | at | not nearest |\n| --- | --- | --- | --- |\n", log2_points);
}

static void
check_narrow(const char *text, const NarrowRow *row, const NarrowMeasure *m)
{
	char head[48];
	double worst;
	long long not_nearest;
	snprintf(head, sizeof head, "\n| %s |", narrow_name(row));
	const char *at = strstr(text, head);
	if (!at || sscanf(at + strlen(head), " %lf | %*[^|] | %lld", &worst, &not_nearest) != 2)
		fail_msg("%s has no row for %s", table_path, narrow_name(row));
	bool same = log2_points >= FULL_POINTS ? fabs(m->worst - worst) <= slack : m->worst <= worst + slack;
	if (!same)
		fail_msg("%s: measured %.4f, but %s says %.3f; if that is right, write it anew with --write", narrow_name(row), m->worst,
		         table_path, worst);
	assert_int_equal(m->not_nearest, not_nearest);
}

/* What units give is a GPU's to measure; the page says what is asked for, and by what. */
static const char fast_section[] =
	"\n"
	"## Fast mode on a GPU\n"
	"\n"
	"On a GPU, functions of f32 in fast mode are what its units give, in a few operations and without a branch;\n"
	"so are those of f16 and bf16, which are computed in f32. What the mode allows is held against the units' errors as NVIDIA\n"
	"states them (`passes/tile/approximate.def` has the arguments), and `scripts/gpu-exact.py` asks a GPU for every argument there is. A result\n"
	"below 2^-126 may be 0; subnormal operands, zeros, infinities and NaN give what they give in the other modes. `erf`, powers\n"
	"with an exponent that is no whole number known when compiling, or is beyond -13 and 17, and all of f64 are relaxed mode's. On a processor fast mode's\n"
	"functions are relaxed mode's.\n"
	"\n"
	"| function | a GPU's instruction | what fast mode allows |\n"
	"| --- | --- | --- |\n"
	"| a / b | by a number, a product; 1 by what is known to be at least 1, or near it, `rcp.approx`; by a root, `rsqrt.approx` and a product; others as in relaxed mode | 2 ulp |\n"
	"| sqrt, rsqrt | `sqrt.approx`, `rsqrt.approx` | 2 ulp |\n"
	"| exp, exp2 | `ex2.approx` | 2 + abs(x) ulp |\n"
	"| expm1 | `ex2.approx` | 8 ulp and 2^-21 |\n"
	"| log, log2 | `lg2.approx` | 4 ulp and 2^-21 |\n"
	"| log1p | `lg2.approx` | 8 ulp and 2^-21 |\n"
	"| tanh | `tanh.approx` | 8192 ulp: 11 bits are right |\n"
	"| sin, cos | `sin.approx`, `cos.approx`, of the angle less whole turns; beyond 2^17 as in relaxed mode | 8 ulp and 2^-20 |\n"
	"| a ** n, 1 < n <= 17 | n - 1 products at most | 16 ulp |\n"
	"| a ** -n, n <= 13 | `rcp.approx` and products, which c / a ** n shares for numbers c up to 2 | 16 ulp |\n";

static void
test_narrow(void **state)
{
	(void)state;
	FILE *out = write_table ? fopen(table_path, "a") : NULL;
	const char *text = write_table ? NULL : read_table();
	if (out)
		print_narrow_head(out);
	for (int k = 0; k < NNARROW; k++) {
		const NarrowRow *row = &narrow_rows[k];
		NarrowMeasure m = narrow_measure(row, kernel_lower_narrow, log2_points);
		if (out)
			fprintf(out, "| %s | %.3f | %a | %lld |\n", narrow_name(row), m.worst, m.at, (long long)m.not_nearest);
		else
			check_narrow(text, row, &m);
		if (!(m.worst <= 1))
			fail_msg("%s: %.4f at %a", narrow_name(row), m.worst, m.at);
		if (!(m.absolute < 0x1p-21))
			fail_msg("%s: wrong by %a", narrow_name(row), m.absolute);
	}
	if (out) {
		fputs(fast_section, out);
		fclose(out);
	} else if (!strstr(text, fast_section)) {
		fail_msg("%s does not say of fast mode what it should; --write makes it", table_path);
	}
}

/* Every function that is expanded has a budget; every one of one operand that has a short form, rows of them. That of a power is
 * narrow_test.c's. */
static void
test_complete(void **state)
{
	(void)state;
	for (int op = 1; op < OP_COUNT; op++) {
		bool found = !(op_info[op].flags & F_MATH) || !(op_info[op].level & LEVEL_L);
		for (size_t i = 0; i < NBUDGET; i++)
			found = found || budgets[i].op == (Op)op;
		if (!found)
			fail_msg("budgets.def has no row for %s", op_info[op].id);
		unsigned narrow = 0;
		for (int i = 0; i < NNARROW; i++)
			narrow += narrow_rows[i].op == (Op)op;
		assert_int_equal(narrow, op_info[op].flags & F_NARROW && op_info[op].arity == 1 ? 2 : 0);
	}
}

int
main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--write") == 0)
			write_table = true;
		else if (strcmp(argv[i], "--points") == 0 && i + 1 < argc)
			log2_points = atoi(argv[++i]);
		else
			table_path = argv[i];
	}
	if (!table_path || log2_points < 12 || log2_points > 32) {
		fprintf(stderr, "usage: accuracy_test TABLE [--points 12..32] [--write]\n");
		return 2;
	}
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_complete), cmocka_unit_test(test_accuracy),
	                                   cmocka_unit_test(test_narrow)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
