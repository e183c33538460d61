/* recurrence_test.c: usage: recurrence_test [PATTERN]: the tests of such names
 *
 * Linear recurrences as scans (passes/schedule/rows/linear.h), by blocks of threads, against the oracle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "graph_case.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

/* of the step, with h for the element before and s for its row's start:
 * a h + b; b - h a; h + k (b - h), b[0] at first; h / a + b; a h + b or b - h by a choice; a (a (h + b)); and what is no scan:
 * max(a h, b); b or a h + b by a choice, where 0 times an infinity would not be 0 */
typedef enum { SUM, DIFFERENCE, AVERAGE, QUOTIENT, CHOICE, NESTED, FORM_COUNT, BENT = FORM_COUNT, RESET } Form;

typedef struct {
	unsigned rank, axis;
	int64_t size[3];
	Form form;
	int dir;       /* 0: up */
	DType type;    /* DT_NONE: f32 */
	DType in;      /* of what is read; DT_NONE: as it is */
	bool starts;   /* from a value of the row, not from 0 */
	bool follow;   /* an element is made of each beside */
	const void *a; /* given factors and terms, of floats */
	const void *b;
} Step;

static const Step *now;
static uint32_t small_parts;
static FpMode mode;

/* The element before in time; at the first step what the row starts with. */
static ExprId
before(Case *c, TensorId h, TensorId start, ExprId is_first)
{
	DType t = now->type ? now->type : DT_F32;
	ExprId sub[3], row[3];
	unsigned n = 0;
	for (unsigned a = 0; a < now->rank; a++) {
		sub[a] = ax(c, a);
		if (a != now->axis)
			row[n++] = sub[a];
	}
	sub[now->axis] = BIN(SUB, ax(c, now->axis), case_int(c, now->dir < 0 ? -1 : 1));
	ExprId zero = dtype_is_float(t) ? expr_float(c->g, t, 0) : expr_int(c->g, t, 0);
	ExprId first = start ? expr_cast(c->g, t, expr_read(c->g, start, row, n, 0)) : zero;
	return expr_select(c->g, is_first, first, expr_read(c->g, h, sub, now->rank, 0));
}

static ExprId
step(Case *c, ExprId h, ExprId a, ExprId b, ExprId is_first)
{
	switch (now->form) {
	case SUM: return BIN(ADD, BIN(MUL, a, h), b);
	case DIFFERENCE: return BIN(SUB, b, BIN(MUL, h, a));
	case AVERAGE: return expr_select(c->g, is_first, b, BIN(ADD, h, BIN(MUL, a, BIN(SUB, b, h))));
	case QUOTIENT: return BIN(ADD, BIN(FDIV, h, BIN(ADD, BIN(MUL, a, a), expr_float(c->g, DT_F32, 0.5))), b);
	case CHOICE: return expr_select(c->g, BIN(LT, b, a), BIN(ADD, BIN(MUL, a, h), b), BIN(SUB, b, h));
	case NESTED: return BIN(MUL, a, BIN(MUL, a, BIN(ADD, h, b)));
	case BENT: return BIN(MAX, BIN(MUL, a, h), b);
	case RESET: return expr_select(c->g, BIN(LT, b, a), b, BIN(ADD, BIN(MUL, a, h), b));
	}
	return 0;
}

static void
build_recurrence(Case *c)
{
	static const char *const names[] = {"A", "B", "C"};
	DType t = now->type ? now->type : DT_F32, in = now->in ? now->in : t;
	c->part_terms = small_parts;
	c->g->fp = mode;
	ExprId e[3] = {0}, row[3] = {0}, sub[3] = {0};
	unsigned n = 0;
	for (unsigned a = 0; a < now->rank; a++) {
		e[a] = case_dim(c, names[a], now->size[a]);
		sub[a] = ax(c, a);
		if (a != now->axis)
			row[n++] = e[a];
	}
	TensorId a = case_input(c, TENSOR_INPUT, "a", in, now->rank, e), b = case_input(c, TENSOR_INPUT, "b", in, now->rank, e);
	if (dtype_is_int(in)) {
		case_range(c, a, -9, 10);
		case_range(c, b, -9, 10);
	}
	if (now->a) {
		case_given(c, a, now->a);
		case_given(c, b, now->b);
	}
	TensorId start = now->starts && n ? case_input(c, TENSOR_INPUT, "s", in, n, row) : 0, h = c->g->tensor.n;
	Node none = case_node(now->rank, case_int(c, 0));
	assert_int_equal(case_add(c, &none, "h", t, e), h);
	ExprId first = now->dir < 0 ? BIN(SUB, e[now->axis], case_int(c, 1)) : case_int(c, 0), is_first = BIN(EQ, ax(c, now->axis), first);
	ExprId va = expr_cast(c->g, t, expr_read(c->g, a, sub, now->rank, 0)), vb = expr_cast(c->g, t, expr_read(c->g, b, sub, now->rank, 0));
	ExprId body = step(c, before(c, h, start, is_first), va, vb, is_first);
	Recur r = {.nseq = 1, .dir = {now->dir < 0 ? -1 : 1}};
	vec_push(c->arena, &r.member, h);
	vec_push(c->arena, &c->g->recur, r);
	Node *node = tensor_node(c->g, h);
	node->body = body;
	node->recur = c->g->recur.n - 1;
	node->seq[0] = (uint8_t)now->axis;
	if (now->follow) {
		Node f = case_node(now->rank, BIN(ADD, expr_read(c->g, h, sub, now->rank, 0), va));
		case_result(c, "f", case_add(c, &f, "f", t, e), 0);
	}
	case_result(c, "h", h, 0);
}

static CaseRun
try_step(const Step *s)
{
	now = s;
	CaseRun r = case_try_blocks(build_recurrence);
	if (r.tmpl != TMPL_SCAN || strstr(r.remarks, "runs its steps"))
		fail_msg("form %d of axis %u: %s: %s", (int)s->form, s->axis, template_info[r.tmpl].text, r.remarks);
	return r;
}

static void
test_forms(void **state)
{
	(void)state;
	for (int form = 0; form < FORM_COUNT; form++)
		for (int dir = -1; dir < 2; dir += 2) {
			try_step(&(Step){2, 1, {3, 70}, .form = (Form)form, .dir = dir});
			try_step(&(Step){1, 0, {160}, .form = (Form)form, .dir = dir, .in = DT_BF16});
			try_step(&(Step){2, 0, {21, 40}, .form = (Form)form, .dir = dir, .starts = true});
		}
}

/* Each form of block: rows that are held and not, with vectors that are whole and not, of which lanes are side by side or not. */
static void
test_rows(void **state)
{
	(void)state;
	static const Step all[] = {
		{1, 0, {1}, .form = SUM}, {1, 0, {17}, .dir = -1}, {2, 1, {2, 512}, .form = SUM}, {2, 1, {2, 1000}, .starts = true}, {1, 0, {1024}, .dir = -1},
		{2, 1, {2, 2048}, .dir = -1, .starts = true}, {1, 0, {4000}, .follow = true}, {1, 0, {2051}, .form = SUM}, {2, 1, {300, 16}, .form = SUM},
		{3, 1, {2, 33, 5}, .starts = true}, {2, 1, {2, 1040}, .form = AVERAGE}, {3, 2, {2, 2, 530}, .dir = -1},
		{2, 1, {3, 1021}, .dir = -1, .follow = true}, {2, 1, {3, 1023}, .starts = true, .in = DT_F16}, {2, 1, {2, 516}, .dir = -1, .in = DT_I8},
		{2, 1, {3, 525}, .type = DT_I64, .dir = -1, .follow = true}, {2, 1, {2, 1030}, .type = DT_U32},
	};
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		try_step(&all[k]);
}

/* Vectors of a row as tasks, which wait for those before them: within a group and behind several. */
static void
test_posts(void **state)
{
	(void)state;
	static const Step all[] = {
		{1, 0, {2000}, .form = SUM}, {1, 0, {3001}, .dir = -1}, {2, 1, {2, 1040}, .dir = -1, .starts = true}, {1, 0, {2048}, .form = AVERAGE},
		{1, 0, {1600}, .type = DT_U32}, {1, 0, {1601}, .type = DT_I64, .form = NESTED},
	};
	for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
		small_parts = k % 3 == 1 ? 600 : 1;
		CaseRun r = try_step(&all[k]);
		assert_true(r.posts);
		bool more = all[k].type == DT_I64 || all[k].form == AVERAGE; /* registers for a step, and reads */
		if (r.at_once != (more ? 768 : 1024))
			fail_msg("case %zu: %u threads of a processor", k, r.at_once);
	}
	small_parts = 0;
}

/* Few columns, whose steps are a block's: turns of two rows of lanes and of sixteen, whole and not. */
static void
test_split(void **state)
{
	(void)state;
	static const Step all[] = {
		{2, 0, {1, 33}, .form = SUM}, {2, 0, {16, 1}, .dir = -1}, {2, 0, {33, 32}, .form = AVERAGE}, {2, 0, {100, 7}, .starts = true},
		{2, 0, {257, 40}, .dir = -1, .starts = true}, {2, 0, {300, 5}, .form = QUOTIENT}, {3, 1, {2, 45, 35}, .dir = -1, .in = DT_BF16},
		{2, 0, {65, 34}, .type = DT_U32, .form = CHOICE}, {2, 0, {70, 3}, .type = DT_I64, .starts = true},
	};
	for (unsigned parts = 0; parts < 2; parts++)
		for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
			small_parts = parts;
			CaseRun r = try_step(&all[k]);
			if (r.columns != TIR_WARP)
				fail_msg("case %zu is not of rows of lanes", k);
		}
	small_parts = 0;
}

/* Integers wrap: equal to the bit, in every mode. */
static void
test_integers(void **state)
{
	(void)state;
	static const DType types[] = {DT_I32, DT_U32, DT_I64, DT_U64};
	for (unsigned strict = 0; strict < 2; strict++)
		for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
			mode = strict ? FP_STRICT : FP_RELAXED;
			try_step(&(Step){2, 1, {2, 600}, .type = types[k], .starts = true});
			try_step(&(Step){2, 0, {65, 33}, .type = types[k], .form = NESTED, .dir = -1});
			try_step(&(Step){1, 0, {129}, .type = types[k], .form = CHOICE});
		}
	mode = FP_RELAXED;
}

enum { MANY = 4096 };

/* Where products of factors leave the range of any float and come back, and where they meet a 0 on the way. */
static void
test_range(void **state)
{
	(void)state;
	static const float growth[][2] = {{2, 0.5f}, {1e30f, 1e-30f}, {1.05f, 0}, {0.5f, 2}, {1e-38f, 1e38f}, {-3, 1}};
	static float a[MANY], b[MANY];
	for (size_t k = 0; k < sizeof growth / sizeof *growth; k++)
		for (unsigned parts = 0; parts < 2; parts++) {
			small_parts = parts;
			for (int i = 0; i < MANY; i++) {
				a[i] = growth[k][i % MANY >= 3 * MANY / 4];
				b[i] = i == 3 * MANY / 4 ? 1 : 0;
			}
			try_step(&(Step){1, 0, {MANY}, .a = a, .b = b});
			try_step(&(Step){2, 0, {MANY, 1}, .a = a, .b = b});
			b[0] = 1; /* and what grows beyond all range, or falls below */
			try_step(&(Step){1, 0, {MANY}, .a = a, .b = b});
			try_step(&(Step){2, 0, {MANY, 1}, .a = a, .b = b});
		}
	small_parts = 0;
}

/* Rows without steps, and steps without rows. */
static void
test_nothing(void **state)
{
	(void)state;
	static const Step all[] = {{1, 0, {0}, .form = SUM}, {2, 1, {3, 0}, .dir = -1}, {2, 1, {0, 70}, .form = AVERAGE}, {2, 0, {0, 5}, .form = SUM}};
	for (unsigned parts = 0; parts < 2; parts++)
		for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
			small_parts = parts;
			now = &all[k];
			case_try_nothing(build_recurrence);
		}
	small_parts = 0;
}

/* --- what stays a chain of steps --- */

static void
test_refusals(void **state)
{
	(void)state;
	static const struct {
		Step step;
		FpMode mode;
		const char *why;
	} all[] = {
		{{1, 0, {40}, .form = SUM}, FP_STRICT, "recurs_rounded"},
		{{2, 1, {3, 40}, .type = DT_F64}, FP_RELAXED, "recurs_rounded"},
		{{2, 1, {3, 40}, .form = BENT}, FP_RELAXED, "recurs_bent"},
		{{1, 0, {40}, .form = RESET}, FP_RELAXED, "recurs_bent"},
	};
	for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
		char text[64];
		now = &all[k].step;
		mode = all[k].mode;
		CaseRun r = case_try_blocks(build_recurrence);
		snprintf(text, sizeof text, "remark[%s]: h ", all[k].why);
		if (!strstr(r.remarks, text))
			fail_msg("%s, not %s", r.remarks, all[k].why);
	}
	mode = FP_RELAXED;
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_forms, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_rows, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_posts, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_split, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_integers, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_range, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_nothing, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_refusals, case_setup, case_teardown),
	};
	mode = FP_RELAXED;
	case_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
