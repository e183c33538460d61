/* scan_test.c: usage: scan_test [PATTERN]: the tests of such names
 *
 * Folds of prefixes and suffixes through the SCAN template, against the oracle and, in strict mode to the
 * bit, against NEST. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "graph_case.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

typedef enum { UP_TO, BEFORE, FROM, AFTER, UP_TO_GUARD, BEFORE_GUARD, FROM_GUARD, LATE, SOME, FORM_COUNT } Form;

typedef struct {
	unsigned rank, axis;
	int64_t size[3];
	Monoid monoid;
	DType in, to;  /* DT_NONE: f32, and what the fold gives */
	Form form;
	bool masked, follow, gathered, picks, total;
} Prefix;

static const Prefix *now;
static uint32_t small_parts;

/* The reduced range, or the condition, that ends at axis j. */
static void
set_range(Case *c, Node *n, ExprId j, ExprId extent)
{
	ExprId k = ax(c, n->npar), zero = case_int(c, 0), next = BIN(ADD, j, case_int(c, 1));
	switch (now->form) {
	case UP_TO: case_reduce(n, now->monoid, zero, next); break;
	case BEFORE: case_reduce(n, now->monoid, zero, j); break;
	case FROM: case_reduce(n, now->monoid, j, extent); break;
	case AFTER: case_reduce(n, now->monoid, next, extent); break;
	case LATE: case_reduce(n, now->monoid, case_int(c, 2), next); break;
	case UP_TO_GUARD: n->guard = BIN(LE, k, j); break;
	case BEFORE_GUARD: n->guard = BIN(LT, BIN(ADD, k, case_int(c, 2)), j); break;
	case FROM_GUARD: n->guard = BIN(LE, j, BIN(SUB, k, case_int(c, 1))); break;
	case SOME: n->guard = BIN(AND, BIN(LE, k, j), BIN(NE, BIN(IMOD, k, case_int(c, 3)), case_int(c, 1))); break;
	case FORM_COUNT: break;
	}
	if (n->nred == 0)
		case_reduce(n, now->monoid, zero, extent);
}

/* Where the range may hold nothing. */
static ExprId
may_be_empty(Case *c, ExprId extent)
{
	ExprId j = ax(c, now->axis);
	if (now->form == FROM || now->form == AFTER || now->form == FROM_GUARD)
		return BIN(LE, BIN(SUB, extent, case_int(c, 1)), j);
	return BIN(LT, j, case_int(c, 4));
}

static void
build_prefix(Case *c)
{
	static const char *const names[] = {"A", "B", "C"};
	DType in = now->in ? now->in : DT_F32;
	c->part_terms = small_parts;
	ExprId e[3] = {0}, sub[3] = {0};
	for (unsigned a = 0; a < now->rank; a++) {
		e[a] = case_dim(c, names[a], now->size[a]);
		sub[a] = ax(c, a == now->axis ? now->rank : a);
	}
	TensorId x = case_input(c, TENSOR_INPUT, "x", in, now->rank, e);
	if (dtype_is_int(in))
		case_range(c, x, in == DT_BOOL ? 0 : -3, in == DT_BOOL ? 2 : 4);
	AccessId id = now->gathered ? case_access(c, ACCESS_GATHER) : 0;
	Node n = case_node(now->rank, expr_cast(c->g, in == DT_BOOL ? in : dtype_info[in].arith, expr_read(c->g, x, sub, now->rank, id)));
	set_range(c, &n, ax(c, now->axis), e[now->axis]);
	if (now->picks) { /* a condition that reads only terms of the range */
		ExprId odd = BIN(NE, expr_read(c->g, x, sub, now->rank, 0), expr_int(c->g, in, 1));
		n.guard = n.guard ? BIN(AND, n.guard, odd) : odd;
	}
	DType folds = monoid_info[now->monoid].index ? DT_I64 : dtype_info[in].arith;
	if (now->monoid == MON_ANY || now->monoid == MON_ALL)
		folds = DT_BOOL;
	DType to = now->to ? now->to : folds;
	if (to != folds)
		n.finish = expr_cast(c->g, to, expr_make(c->g, OP_ACC, folds, 0, 0, NULL, 0));
	bool absent = now->monoid == MON_MAX || now->monoid == MON_MIN || monoid_info[now->monoid].index;
	if (absent) { /* what is folded of nothing is never asked for */
		ExprId none = expr_cast(c->g, to, case_int(c, 1)), acc = expr_make(c->g, OP_ACC, folds, 0, 0, NULL, 0);
		n.finish = expr_select(c->g, may_be_empty(c, e[now->axis]), none, expr_cast(c->g, to, acc));
	}
	if (now->masked)
		n.domain = BIN(NE, ax(c, now->axis), case_int(c, 1));
	TensorId y = case_add(c, &n, "y", to, e);
	if (now->masked || now->follow) {
		for (unsigned a = 0; a < now->rank; a++)
			sub[a] = ax(c, a);
		ExprId read = expr_read(c->g, y, sub, now->rank, 0), one = expr_cast(c->g, to, case_int(c, 1));
		Node f = case_node(now->rank, now->masked ? expr_select(c->g, n.domain, read, one) : BIN(ADD, read, one));
		y = case_add(c, &f, "z", to, e);
	}
	if (now->total) { /* of a row of prefixes */
		Node t = case_node(1, read_at(c, y, 2, ax(c, 0), ax(c, 1)));
		case_reduce(&t, MON_SUM, case_int(c, 0), e[1]);
		case_result(c, "t", case_add(c, &t, "t", to, e), 0);
	}
	case_result(c, "r", y, 0);
}

static void
try_prefix(const Prefix *p)
{
	now = p;
	CaseRun r = case_try(build_prefix);
	if (r.tmpl != TMPL_SCAN || r.kernels != 1)
		fail_msg("form %d of axis %u: %u kernels, the first %s: %s", (int)p->form, p->axis, r.kernels,
		         template_info[r.tmpl].text, r.remarks);
}

static void
test_forms(void **state)
{
	(void)state;
	for (int form = 0; form < FORM_COUNT; form++)
		for (unsigned axis = 0; axis < 2; axis++) {
			try_prefix(&(Prefix){2, axis, {7, 37}, .monoid = MON_MAX, .form = (Form)form});
			try_prefix(&(Prefix){2, axis, {35, 19}, .monoid = MON_ARGMIN, .in = DT_I8, .form = (Form)form});
			try_prefix(&(Prefix){2, axis, {7, 37}, .monoid = MON_SUM, .form = (Form)form});
		}
}

static void
test_sizes(void **state)
{
	(void)state;
	static const int64_t sizes[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 64, 97};
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		try_prefix(&(Prefix){1, 0, {sizes[k]}, .monoid = MON_SUM});
		try_prefix(&(Prefix){1, 0, {sizes[k]}, .monoid = MON_MAX, .form = FROM});
		try_prefix(&(Prefix){2, 1, {3, sizes[k]}, .monoid = MON_SUM});
		try_prefix(&(Prefix){2, 0, {sizes[k], 13}, .monoid = MON_SUM});
		try_prefix(&(Prefix){2, 0, {13, sizes[k]}, .monoid = MON_SUM, .form = BEFORE});
		try_prefix(&(Prefix){3, 1, {2, sizes[k], 5}, .monoid = MON_SUM});
	}
}

/* Rows of several vectors of a block, whole and not, from both ends; many rows, of which each is a warp's. */
static void
test_blocks(void **state)
{
	(void)state;
	static const Prefix all[] = {
		{2, 1, {2, 2560}, .monoid = MON_SUM}, {2, 1, {2, 2051}, .monoid = MON_SUM},
		{2, 1, {1, 2308}, .monoid = MON_SUM, .form = FROM}, {1, 0, {4104}, .monoid = MON_SUM, .in = DT_BF16, .to = DT_BF16},
		{2, 1, {2, 4112}, .monoid = MON_ARGMAX, .in = DT_I8}, {1, 0, {1025}, .monoid = MON_ARGMIN, .form = FROM},
		{2, 1, {2, 1030}, .monoid = MON_SUM, .form = SOME}, {1, 0, {1028}, .monoid = MON_PROD, .in = DT_I32, .form = AFTER},
		{1, 0, {1026}, .monoid = MON_MAX, .in = DT_F64, .form = BEFORE}, {2, 1, {2048, 4}, .monoid = MON_SUM},
		{1, 0, {600}, .monoid = MON_SUM, .in = DT_U8, .follow = true},
	};
	for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
		now = &all[k];
		CaseRun r = case_try_blocks(build_prefix);
		assert_int_equal(r.tmpl, TMPL_SCAN);
	}
}

/* Rows that are held, whole vectors and not, from both ends, of each number of threads; with what is folded of them. And, as
 * tasks are worth few terms, rows that are gone through though they would fit. */
static void
many_held(void **state)
{
	(void)state;
	static const Prefix all[] = {
		{2, 1, {2, 2048}, .monoid = MON_SUM}, {2, 1, {2, 2048}, .monoid = MON_SUM, .form = FROM}, {2, 1, {2, 1028}, .monoid = MON_SUM, .form = AFTER},
		{1, 0, {2052}, .monoid = MON_SUM, .form = BEFORE}, {1, 0, {4096}, .monoid = MON_ARGMIN, .in = DT_I8, .form = FROM},
		{1, 0, {8192}, .monoid = MON_SUM, .in = DT_BF16, .to = DT_BF16}, {1, 0, {8200}, .monoid = MON_MAX, .in = DT_I32},
		{1, 0, {1024}, .monoid = MON_SUM, .in = DT_F64}, {1, 0, {1030}, .monoid = MON_SUM, .in = DT_C64}, {1, 0, {3000}, .monoid = MON_SUM, .form = SOME},
		{1, 0, {1536}, .monoid = MON_SUM, .in = DT_U8, .follow = true}, {2, 1, {2, 2048}, .monoid = MON_SUM, .total = true},
		{2, 1, {3, 4100}, .monoid = MON_MAX, .form = FROM, .total = true},
		/* whose own steps do not lie along lanes, beside what follows, whose do */
		{2, 1, {2, 1032}, .monoid = MON_ARGMAX, .form = FROM, .gathered = true, .follow = true},
	};
	for (unsigned through = 0; through < 2; through++)
		for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
			small_parts = through;
			now = &all[k];
			CaseRun r = case_try_blocks(build_prefix);
			assert_int_equal(r.tmpl, TMPL_SCAN);
		}
	small_parts = 0;
}

/* Vectors of a row as tasks, which wait for those before them: within a group and behind several, whole and not, from both
 * ends; what a fold carries beside its value, in one word and in two. */
static void
test_posts(void **state)
{
	(void)state;
	static const Prefix all[] = {
		{1, 0, {2003}, .monoid = MON_SUM}, {1, 0, {3000}, .monoid = MON_SUM}, {1, 0, {2001}, .monoid = MON_SUM, .form = FROM},
		{2, 1, {3, 1001}, .monoid = MON_MAX, .in = DT_F64}, {2, 1, {2, 1025}, .monoid = MON_ARGMAX, .in = DT_I8},
		{1, 0, {1026}, .monoid = MON_SUM, .form = SOME}, {1, 0, {1027}, .monoid = MON_ARGMIN, .form = AFTER},
		{1, 0, {1281}, .monoid = MON_SUM, .in = DT_I64, .form = BEFORE}, {1, 0, {1023}, .monoid = MON_ANY, .in = DT_BOOL},
		{1, 0, {1100}, .monoid = MON_SUM, .in = DT_BF16, .to = DT_BF16}, {1, 0, {993}, .monoid = MON_SUM, .in = DT_C64},
		{1, 0, {993}, .monoid = MON_SUM, .in = DT_U8, .follow = true}, {2, 1, {2, 992}, .monoid = MON_PROD, .in = DT_I32},
	};
	for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
		small_parts = k % 3 == 1 ? 600 : 1;
		now = &all[k];
		CaseRun r = case_try_blocks(build_prefix);
		assert_int_equal(r.tmpl, TMPL_SCAN);
		assert_true(r.posts);
	}
	small_parts = 1; /* vectors of a row that is folded as well are no tasks */
	now = &(Prefix){2, 1, {2, 600}, .monoid = MON_SUM, .total = true};
	assert_false(case_try_blocks(build_prefix).posts);
	small_parts = 0;
}

/* Few columns, whose steps are a block's: turns of two rows of lanes and of sixteen, whole and not, from both ends. */
static void
test_split(void **state)
{
	(void)state;
	static const Prefix all[] = {
		{2, 0, {1, 33}, .monoid = MON_SUM}, {2, 0, {300, 5}, .monoid = MON_SUM, .form = FROM}, {2, 0, {257, 32}, .monoid = MON_PROD, .in = DT_I32},
		{2, 0, {33, 40}, .monoid = MON_SUM, .in = DT_BF16, .to = DT_BF16}, {3, 1, {2, 45, 35}, .monoid = MON_SUM, .in = DT_F64},
		{2, 0, {70, 3}, .monoid = MON_SUM, .in = DT_U64}, {2, 0, {100, 34}, .monoid = MON_SUM, .in = DT_F16, .form = FROM},
		{2, 0, {65, 3}, .monoid = MON_ANY, .in = DT_BOOL},
	};
	for (unsigned parts = 0; parts < 2; parts++)
		for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
			small_parts = parts;
			now = &all[k];
			CaseRun r = case_try_blocks(build_prefix);
			if (r.tmpl != TMPL_SCAN || r.columns != TIR_WARP)
				fail_msg("case %zu: %s of %u columns", k, template_info[r.tmpl].text, r.columns);
		}
	small_parts = 0;
	now = &(Prefix){2, 0, {70, 3}, .monoid = MON_SUM, .gathered = true}; /* what fails says where it first did */
	assert_int_equal(case_try_blocks(build_prefix).columns, 0);
}

static void
test_types(void **state)
{
	(void)state;
	static const DType types[] = {DT_F64, DT_F16, DT_BF16, DT_F8E4M3, DT_F8E5M2, DT_I64, DT_I32, DT_I16, DT_I8, DT_U64, DT_U32, DT_U16, DT_U8};
	for (size_t k = 0; k < sizeof types / sizeof *types; k++)
		for (unsigned axis = 0; axis < 2; axis++) {
			try_prefix(&(Prefix){2, axis, {9, 21}, .monoid = MON_SUM, .in = types[k]});
			try_prefix(&(Prefix){2, axis, {9, 21}, .monoid = MON_MIN, .in = types[k], .form = FROM});
			if (types[k] != DT_U64 && types[k] != DT_U32)
				try_prefix(&(Prefix){2, axis, {9, 21}, .monoid = MON_SUM, .in = types[k], .to = types[k]});
		}
	for (unsigned axis = 0; axis < 2; axis++) {
		try_prefix(&(Prefix){2, axis, {20, 21}, .monoid = MON_ANY, .in = DT_BOOL});
		try_prefix(&(Prefix){2, axis, {20, 21}, .monoid = MON_ALL, .in = DT_BOOL, .form = FROM});
		try_prefix(&(Prefix){2, axis, {5, 21}, .monoid = MON_PROD});
		try_prefix(&(Prefix){2, axis, {19, 21}, .monoid = MON_SUM, .in = DT_C64});
		try_prefix(&(Prefix){2, axis, {19, 21}, .monoid = MON_ARGMAX});
	}
}

/* Elements that are absent, what follows the scan, and accesses that fail. */
static void
test_around(void **state)
{
	(void)state;
	for (unsigned axis = 0; axis < 2; axis++) {
		try_prefix(&(Prefix){2, axis, {20, 21}, .monoid = MON_SUM, .masked = true});
		try_prefix(&(Prefix){2, axis, {20, 21}, .monoid = MON_SUM, .follow = true});
		try_prefix(&(Prefix){2, axis, {20, 21}, .monoid = MON_SUM, .gathered = true});
	}
	for (int form = 0; form < FORM_COUNT; form++)
		for (unsigned axis = 0; axis < 2; axis++)
			try_prefix(&(Prefix){2, axis, {19, 21}, .monoid = MON_SUM, .in = DT_I32, .form = (Form)form, .picks = true});
	try_prefix(&(Prefix){1, 0, {40}, .monoid = MON_SUM, .follow = true});
}

/* --- what is no scan --- */

static enum { WINDOW, MIXED, START, TWO_RANGES, IN_ORDER } unfit;

static void
build_unfit(Case *c)
{
	ExprId e[] = {case_dim(c, "A", 5), case_dim(c, "B", 19)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F32, 2, e);
	ExprId i = ax(c, 0), j = ax(c, 1), k = ax(c, 2), zero = case_int(c, 0), one = case_int(c, 1), next = BIN(ADD, j, one);
	ExprId body = read_at(c, x, 2, i, k);
	if (unfit == MIXED)
		body = BIN(MUL, body, read_at(c, x, 2, i, j));
	Node n = case_node(2, body);
	case_reduce(&n, MON_SUM, unfit == IN_ORDER ? j : zero,
	            unfit == START || unfit == IN_ORDER ? e[1] : next);
	if (unfit == WINDOW)
		n.guard = BIN(LE, BIN(SUB, j, one), k);
	if (unfit == START)
		n.guard = BIN(LE, BIN(SUB, k, one), j);
	if (unfit == TWO_RANGES)
		case_reduce(&n, MON_SUM, zero, case_int(c, 2));
	if (unfit == IN_ORDER)
		c->g->fp = FP_STRICT;
	case_result(c, "y", case_add(c, &n, "y", DT_F32, e), 0);
}

static void
test_refusals(void **state)
{
	(void)state;
	static const char *const why[] = {"scan_window", "scan_mixed", "scan_start", "scan_ranges", "scan_order"};
	for (size_t k = 0; k < sizeof why / sizeof *why; k++) {
		unfit = (unsigned)k;
		CaseRun r = case_try(build_unfit);
		assert_int_not_equal(r.tmpl, TMPL_SCAN);
		char text[64];
		snprintf(text, sizeof text, "remark[%s]: y ", why[k]);
		if (!strstr(r.remarks, text))
			fail_msg("%s, not %s", r.remarks, why[k]);
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_forms, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_sizes, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_blocks, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(many_held, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_posts, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_split, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_types, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_around, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_refusals, case_setup, case_teardown),
	};
	case_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
