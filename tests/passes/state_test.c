/* state_test.c: what has an order: scatters, recurrences, inouts, and where results live. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "graph_case.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)
#define UN(op, a) expr_unary(c->g, OP_##op, a)

/* --- scatter --- */

static struct {
	Monoid monoid;
	DType type, out;
	bool inout, finish, guarded, body_gathers;
	int64_t lo, hi; /* of ids */
} sc;

/* g[ids[t], d] op= dy[t, d], into 6 rows. */
static void
build_scatter(Case *c)
{
	ExprId t[2] = {case_dim(c, "T", 23), case_dim(c, "D", 3)}, v[2] = {case_dim(c, "V", 6), t[1]};
	TensorId ids = case_input(c, TENSOR_INPUT, "ids", DT_I32, 1, t);
	case_range(c, ids, sc.lo, sc.hi);
	TensorId dy = case_input(c, TENSOR_INPUT, "dy", sc.type, 2, t);
	TensorId old = sc.inout ? case_input(c, TENSOR_INOUT, "g", sc.out, 2, v) : 0;
	AccessId into = case_access(c, ACCESS_SCATTER), from = case_access(c, ACCESS_GATHER);
	ExprId row = ax(c, 2), d = ax(c, 3);
	ExprId at = expr_cast(c->g, DT_I64, read_at(c, ids, 1, row));
	Node n = case_node(2, read_at(c, dy, 2, row, d));
	if (sc.body_gathers)
		n.body = gather_at(c, from, dy, 2, BIN(MUL, at, case_int(c, 4)), d);
	case_reduce(&n, sc.monoid, case_int(c, 0), t[0]);
	case_reduce(&n, sc.monoid, case_int(c, 0), t[1]);
	n.scatter = true;
	n.target[0] = at;
	n.target_access[0] = into;
	n.target[1] = d;
	if (sc.guarded)
		n.guard = BIN(LT, at, case_int(c, 5));
	if (sc.inout)
		n.init = expr_cast(c->g, sc.type, read_at(c, old, 2, ax(c, 0), ax(c, 1)));
	ExprId acc = expr_make(c->g, OP_ACC, sc.type, 0, 0, NULL, 0);
	ExprId touched = expr_make(c->g, OP_TOUCHED, DT_BOOL, 0, 0, NULL, 0);
	ExprId none = dtype_is_float(sc.type) ? expr_float(c->g, sc.type, -9) : expr_int(c->g, sc.type, -9);
	if (sc.finish)
		n.finish = expr_cast(c->g, sc.out, expr_select(c->g, touched, acc, none));
	case_result(c, "g", case_add(c, &n, "g1", sc.out, v), old);
}

static CaseRun
scatter(Monoid m, DType type, DType out, bool inout, bool finish, bool guarded, int64_t lo, int64_t hi)
{
	sc.monoid = m;
	sc.type = type;
	sc.out = out;
	sc.inout = inout;
	sc.finish = finish;
	sc.guarded = guarded;
	sc.lo = lo;
	sc.hi = hi;
	return case_try(build_scatter);
}

static void
test_scatter(void **state)
{
	(void)state;
	sc.body_gathers = false;
	scatter(MON_SUM, DT_F32, DT_F32, false, false, false, 0, 6);
	scatter(MON_SUM, DT_F32, DT_F32, true, false, false, 0, 6);
	scatter(MON_SUM, DT_F32, DT_BF16, true, true, false, 0, 6);
	scatter(MON_SUM, DT_I32, DT_I4, false, true, true, 0, 6);
	scatter(MON_MAX, DT_F32, DT_F32, false, true, false, 1, 4);
	scatter(MON_MIN, DT_I64, DT_I64, false, true, true, 1, 6);
	assert_int_equal(scatter(MON_SUM, DT_F32, DT_F32, false, false, true, 0, 9).fault, 0);
	assert_int_equal(scatter(MON_SUM, DT_F32, DT_F32, false, false, false, 0, 9).fault, 1);
	assert_int_equal(scatter(MON_SUM, DT_F32, DT_F32, true, false, false, -1, 5).fault, 1);
	sc.body_gathers = true;
	assert_int_equal(scatter(MON_SUM, DT_F32, DT_F32, true, false, false, 0, 6).fault, 0);
	assert_int_equal(scatter(MON_SUM, DT_F32, DT_F16, false, true, true, -1, 6).fault, 1);
	sc.body_gathers = false;
}

static void
build_complex_scatter(Case *c)
{
	ExprId t[1] = {case_dim(c, "T", 9)}, v[1] = {case_int(c, 4)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_C64, 1, t);
	Node n = case_node(1, read_at(c, x, 1, ax(c, 1)));
	case_reduce(&n, MON_SUM, case_int(c, 0), t[0]);
	n.scatter = true;
	n.target[0] = BIN(IMOD, ax(c, 1), case_int(c, 3));
	ExprId acc = expr_make(c->g, OP_ACC, DT_C64, 0, 0, NULL, 0);
	n.finish = expr_make(c->g, OP_CONJ, DT_C64, 0, 0, &acc, 1);
	case_result(c, "z", case_add(c, &n, "z", DT_C64, v), 0);
}

static void
test_complex_scatter(void **state)
{
	(void)state;
	case_try(build_complex_scatter);
}

/* --- recurrences --- */

static int8_t scan_dir;
static bool scan_faults, scan_across;
static unsigned scan_axis;

static ExprId
step_of(Case *c, TensorId x, ExprId t, ExprId d)
{
	return scan_axis ? read_at(c, x, 2, d, t) : read_at(c, x, 2, t, d);
}

/* h[t, d] = a[t, d] * (h?[t -+ 1, d] ?? 0) + b[t, d], or h[d, t]; across: of the next d. */
static void
build_scan(Case *c)
{
	ExprId size[2] = {case_dim(c, "T", 13), case_dim(c, "D", 21)}, e[2] = {size[scan_axis], size[!scan_axis]};
	TensorId a = case_input(c, TENSOR_INPUT, "a", DT_F32, 2, e);
	TensorId b = case_input(c, TENSOR_INPUT, "b", DT_F32, 2, e);
	AccessId id = case_access(c, ACCESS_GATHER);
	TensorId h = c->g->tensor.n; /* the next one */
	Node dummy = case_node(2, case_int(c, 0));
	assert_int_equal(case_add(c, &dummy, "h", DT_F32, e), h);
	ExprId t = ax(c, scan_axis), d = ax(c, !scan_axis), from = BIN(ADD, t, case_int(c, -scan_dir));
	ExprId inside = BIN(AND, BIN(LE, case_int(c, 0), from), BIN(LT, from, size[0]));
	ExprId row = scan_across ? BIN(IMOD, BIN(ADD, d, case_int(c, 1)), size[1]) : d;
	ExprId before = expr_select(c->g, inside, step_of(c, h, from, row), expr_float(c->g, DT_F32, 0));
	ExprId bias = step_of(c, b, t, d);
	if (scan_faults)
		bias = gather_at(c, id, b, 2, BIN(ADD, ax(c, 0), case_int(c, 1)), ax(c, 1));
	ExprId body = BIN(ADD, BIN(MUL, step_of(c, a, t, d), before), bias);
	Recur r = {.nseq = 1, .dir = {scan_dir}};
	vec_push(c->arena, &r.member, h);
	vec_push(c->arena, &c->g->recur, r);
	Node *n = tensor_node(c->g, h);
	n->body = body;
	n->recur = c->g->recur.n - 1;
	n->seq[0] = (uint8_t)scan_axis;
	/* only the element where the scan ends is handed out, beside all of them doubled */
	Node twice = case_node(2, BIN(ADD, read_at(c, h, 2, ax(c, 0), ax(c, 1)), read_at(c, h, 2, ax(c, 0), ax(c, 1))));
	case_result(c, "z", case_add(c, &twice, "z", DT_F32, e), 0);
	case_result(c, "h", h, 0);
}

static void
test_scan(void **state)
{
	(void)state;
	for (scan_axis = 0; scan_axis < 2; scan_axis++)
		for (scan_dir = -1; scan_dir < 2; scan_dir += 2) {
			assert_int_equal(case_try(build_scan).tmpl, TMPL_SCAN);
			scan_across = true;
			CaseRun r = case_try(build_scan);
			assert_int_equal(r.tmpl, TMPL_NEST);
			assert_non_null(strstr(r.remarks, "remark[recurs_across]: h "));
			scan_across = false;
			scan_faults = true;
			assert_int_equal(case_try(build_scan).fault, 1);
			scan_faults = false;
		}
}

static int32_t lattice[7 * 6 * 3];

/* Two members, two sequential axes: d[i, j] = min(d[i-1, j] , d[i, j-1]) + e[i, j], e reads d[i-1, j-1]. */
static void
build_lattice(Case *c)
{
	ExprId e[3] = {case_dim(c, "N", 7), case_dim(c, "M", 6), case_dim(c, "B", 3)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_I32, 3, e);
	case_given(c, x, lattice);
	Recur r = {.nseq = 2, .dir = {1, -1}};
	Node dummy = case_node(3, case_int(c, 0));
	TensorId p = case_add(c, &dummy, "p", DT_I32, e), d = case_add(c, &dummy, "d", DT_I32, e);
	ExprId i = ax(c, 0), j = ax(c, 1), b = ax(c, 2), one = case_int(c, 1);
	ExprId up = BIN(SUB, i, one), right = BIN(ADD, j, one), zero = expr_int(c->g, DT_I32, 0);
	ExprId has_up = BIN(LE, case_int(c, 0), up), has_right = BIN(LT, right, e[1]);
	ExprId corner = expr_select(c->g, BIN(AND, has_up, has_right), read_at(c, d, 3, up, right, b), zero);
	ExprId cell = BIN(ADD, read_at(c, x, 3, i, j, b), corner);
	ExprId above = expr_select(c->g, has_up, read_at(c, d, 3, up, j, b), zero);
	ExprId beside = expr_select(c->g, has_right, read_at(c, d, 3, i, right, b), zero);
	ExprId best = BIN(ADD, BIN(MIN, above, beside), read_at(c, p, 3, i, j, b));
	vec_push(c->arena, &r.member, p);
	vec_push(c->arena, &r.member, d);
	vec_push(c->arena, &c->g->recur, r);
	TensorId member[2] = {p, d};
	for (int m = 0; m < 2; m++) {
		Node *n = tensor_node(c->g, member[m]);
		n->body = m ? best : cell;
		n->recur = 1;
		n->seq[0] = 0;
		n->seq[1] = 1;
	}
	case_result(c, "d", d, 0);
}

static void
test_lattice(void **state)
{
	(void)state;
	int32_t d[8][7][3] = {0};
	for (int k = 0; k < 7 * 6 * 3; k++)
		lattice[k] = k * 37 % 11 - 5;
	CaseRun r = case_try(build_lattice);
	const int32_t *got = r.first_result;
	for (int i = 0; i < 7; i++)
		for (int j = 5; j >= 0; j--)
			for (int b = 0; b < 3; b++) {
				int above = d[i][j][b], beside = d[i + 1][j + 1][b], corner = d[i][j + 1][b];
				d[i + 1][j][b] = (above < beside ? above : beside) + lattice[(i * 6 + j) * 3 + b] + corner;
				assert_int_equal(got[(i * 6 + j) * 3 + b], d[i + 1][j][b]);
			}
	assert_int_equal(r.kernels, 1);
	assert_int_equal(r.tmpl, TMPL_NEST);
	assert_non_null(strstr(r.remarks, "remark[recurs_single]"));
}

/* --- inouts and results --- */

static enum { DECAY, REVERSE, SWAP, MOMENTUM, CHAIN, SELF, STEP, LATE, NEAR_BY } inout_kind;

static void
build_inout(Case *c)
{
	ExprId e[1] = {case_dim(c, "N", 29)}, i = ax(c, 0);
	TensorId x = case_input(c, TENSOR_INOUT, "x", DT_F32, 1, e);
	TensorId y = case_input(c, TENSOR_INOUT, "y", DT_F32, 1, e);
	ExprId back = BIN(SUB, BIN(SUB, e[0], case_int(c, 1)), i);
	Node n = case_node(1, BIN(MUL, read_at(c, x, 1, i), expr_float(c->g, DT_F32, 0.5)));
	switch (inout_kind) {
	case DECAY:
		case_result(c, "x", case_add(c, &n, "x", DT_F32, e), x);
		break;
	case REVERSE:
		n.body = read_at(c, x, 1, back);
		case_result(c, "x", case_add(c, &n, "x", DT_F32, e), x);
		break;
	case SWAP:
		case_result(c, "x", y, x);
		case_result(c, "y", x, y);
		break;
	case MOMENTUM: {
		n.body = BIN(ADD, n.body, read_at(c, y, 1, i));
		TensorId m = case_add(c, &n, "m", DT_F32, e);
		Node w = case_node(1, BIN(SUB, read_at(c, y, 1, i), read_at(c, x, 1, back)));
		case_result(c, "y", case_add(c, &w, "w", DT_F32, e), y);
		case_result(c, "x", m, x);
		break;
	}
	case CHAIN: { /* a result used twice, and one that another node reads */
		TensorId m = case_add(c, &n, "m", DT_F32, e);
		Node w = case_node(1, BIN(ADD, read_at(c, m, 1, back), read_at(c, m, 1, i)));
		TensorId t = case_add(c, &w, "w", DT_F32, e);
		case_result(c, "x", m, x);
		case_result(c, "a", t, 0);
		case_result(c, "b", t, 0);
		case_result(c, "c", y, 0);
		break;
	}
	case SELF:
		case_result(c, "x", x, x);
		break;
	case STEP: case LATE: case NEAR_BY: { /* both new values of the same old ones, in one kernel */
		n.body = BIN(ADD, UN(SQRT, UN(ABS, read_at(c, x, 1, i))), read_at(c, y, 1, i));
		TensorId m = case_add(c, &n, "m", DT_F32, e);
		ExprId at = inout_kind == NEAR_BY ? BIN(MIN, BIN(ADD, i, case_int(c, 1)), BIN(SUB, e[0], case_int(c, 1))) : i;
		ExprId old = inout_kind == STEP ? read_at(c, y, 1, i) : read_at(c, x, 1, at);
		Node w = case_node(1, BIN(SUB, old, read_at(c, m, 1, i)));
		case_result(c, "y", case_add(c, &w, "w", DT_F32, e), y);
		case_result(c, "x", m, x);
		break;
	}
	}
}

static CaseRun
inout(int kind)
{
	inout_kind = kind;
	return case_try(build_inout);
}

static void
test_inout(void **state)
{
	(void)state;
	assert_int_equal(inout(DECAY).kernels, 1);
	assert_int_equal(inout(REVERSE).kernels, 2);
	assert_non_null(strstr(inout(REVERSE).remarks, "remark[inout_copied]: x "));
	assert_int_equal(inout(SWAP).kernels, 3);
	assert_int_equal(inout(MOMENTUM).kernels, 2); /* m is computed before w overwrites y, but w reads x elsewhere */
	assert_int_equal(inout(CHAIN).kernels, 3); /* the last one copies */
	assert_non_null(strstr(inout(CHAIN).remarks, "remark[result_copied]: w "));
	assert_int_equal(inout(SELF).kernels, 1);
	assert_int_equal(inout(STEP).kernels, 1);
	assert_int_equal(inout(LATE).kernels, 2);    /* w reads x after m has written it */
	assert_int_equal(inout(NEAR_BY).kernels, 2); /* and beside the point */
}

/* --- domains --- */

/* t[i, j] only where j <= i, read there alone; the rest is zero, whatever it would fault on. */
static void
build_domain(Case *c)
{
	ExprId e[2] = {case_dim(c, "N", 11), case_dim(c, "M", 11)}, i = ax(c, 0), j = ax(c, 1);
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F32, 1, e);
	AccessId id = case_access(c, ACCESS_GATHER);
	Node t = case_node(2, gather_at(c, id, x, 1, BIN(SUB, i, j)));
	t.domain = BIN(LE, j, i);
	TensorId tri = case_add(c, &t, "t", DT_F32, e);
	Node s = case_node(1, read_at(c, tri, 2, i, j));
	case_reduce(&s, MON_SUM, case_int(c, 0), e[1]);
	s.guard = BIN(LE, j, i);
	case_result(c, "s", case_add(c, &s, "s", DT_F32, e), 0);
}

static void
test_domain(void **state)
{
	(void)state;
	assert_int_equal(case_try(build_domain).fault, 0);
}

/* A domain on the result itself: what is outside is stored as 0, and does not fault. */
static void
build_outside(Case *c)
{
	ExprId e[2] = {case_dim(c, "N", 5), case_dim(c, "M", 40)}, i = ax(c, 0), j = ax(c, 1);
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F32, 1, e);
	AccessId id = case_access(c, ACCESS_GATHER);
	Node t = case_node(2, gather_at(c, id, x, 1, BIN(SUB, i, j)));
	t.domain = BIN(LE, j, i);
	case_result(c, "t", case_add(c, &t, "t", DT_F32, e), 0);
}

static void
test_outside(void **state)
{
	(void)state;
	CaseRun r = case_try(build_outside);
	const float *t = r.first_result;
	assert_int_equal(r.fault, 0);
	for (int i = 0; i < 5; i++)
		for (int j = i + 1; j < 40; j++)
			assert_true(t[i * 40 + j] == 0);
}

/* --- empty and rank 0 --- */

static int64_t empty_n, empty_m;

static void
build_empty(Case *c)
{
	ExprId e[2] = {case_dim(c, "N", empty_n), case_dim(c, "M", empty_m)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F32, 2, e);
	Node n = case_node(1, read_at(c, x, 2, ax(c, 0), ax(c, 1)));
	case_reduce(&n, MON_SUM, case_int(c, 0), e[1]);
	case_result(c, "rows", case_add(c, &n, "rows", DT_F32, e), 0);
	Node all = case_node(0, read_at(c, x, 2, ax(c, 0), ax(c, 1)));
	case_reduce(&all, MON_SUM, case_int(c, 0), e[0]);
	case_reduce(&all, MON_SUM, case_int(c, 0), e[1]);
	case_result(c, "all", case_add(c, &all, "all", DT_F32, NULL), 0);
	Node same = case_node(2, read_at(c, x, 2, ax(c, 0), ax(c, 1)));
	case_result(c, "same", case_add(c, &same, "same", DT_F32, e), 0);
}

static void
test_empty(void **state)
{
	(void)state;
	for (empty_n = 0; empty_n < 3; empty_n++)
		for (empty_m = 0; empty_m < 3; empty_m++)
			case_try(build_empty);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_scatter, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_complex_scatter, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_scan, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_lattice, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_inout, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_domain, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_outside, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_empty, case_setup, case_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
