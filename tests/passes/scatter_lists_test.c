/* scatter_lists_test.c: scatters by blocks of threads, whose terms are listed (index/scatter_list.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph_case.h"

static struct {
	int64_t terms, rows, columns;
	Monoid monoid;
	DType type, out;
	bool inout, pairs, guarded;
	int64_t lo, hi; /* of ids */
} sc;

/* g[ids[t], d] op= dy[t, d], or with pairs g[ids[t], ids[t] mod 3, d]; accumulated in `type`. */
static void
build(Case *c)
{
	ExprId t[2] = {case_dim(c, "T", sc.terms), case_dim(c, "D", sc.columns)}, rows = case_dim(c, "V", sc.rows);
	ExprId v[3] = {rows, sc.pairs ? case_int(c, 3) : t[1], t[1]};
	unsigned rank = sc.pairs ? 3 : 2;
	TensorId ids = case_input(c, TENSOR_INPUT, "ids", DT_I32, 1, t);
	case_range(c, ids, sc.lo, sc.hi);
	TensorId dy = case_input(c, TENSOR_INPUT, "dy", sc.type, 2, t);
	TensorId old = sc.inout ? case_input(c, TENSOR_INOUT, "g", sc.out, rank, v) : 0;
	AccessId into = case_access(c, ACCESS_SCATTER);
	ExprId row = ax(c, rank), d = ax(c, rank + 1), at = expr_cast(c->g, DT_I64, read_at(c, ids, 1, row));
	Node n = case_node(rank, read_at(c, dy, 2, row, d));
	case_reduce(&n, sc.monoid, case_int(c, 0), t[0]);
	case_reduce(&n, sc.monoid, case_int(c, 0), t[1]);
	n.scatter = true;
	n.target[0] = at;
	n.target_access[0] = into;
	n.target[1] = sc.pairs ? expr_binary(c->g, OP_IMOD, at, case_int(c, 3)) : d;
	n.target[2] = sc.pairs ? d : 0;
	if (sc.guarded)
		n.guard = expr_binary(c->g, OP_LT, at, case_int(c, 5));
	ExprId before = sc.inout ? sc.pairs ? read_at(c, old, 3, ax(c, 0), ax(c, 1), ax(c, 2)) : read_at(c, old, 2, ax(c, 0), ax(c, 1)) : 0;
	n.init = before && sc.out != sc.type ? expr_cast(c->g, sc.type, before) : before;
	ExprId acc = expr_make(c->g, OP_ACC, sc.type, 0, 0, NULL, 0);
	n.finish = sc.out != sc.type ? expr_cast(c->g, sc.out, acc) : 0;
	case_result(c, "g", case_add(c, &n, "g1", sc.out, v), old);
}

static CaseRun
scatter_by(CaseRun (*try)(CaseFn *), int64_t terms, int64_t rows, Monoid m, DType out, bool inout)
{
	sc.terms = terms;
	sc.rows = rows;
	sc.columns = sc.columns ? sc.columns : 8;
	sc.monoid = m;
	sc.type = DT_F32;
	sc.out = out;
	sc.inout = inout;
	sc.hi = sc.hi ? sc.hi : rows;
	CaseRun r = try(build);
	sc.lo = sc.hi = 0;
	return r;
}

static void
scatter(int64_t terms, int64_t rows, Monoid m, DType out, bool inout)
{
	assert_int_equal(scatter_by(case_try_blocks, terms, rows, m, out, inout).tmpl, TMPL_INDEX);
}

static void
test_lists(void **state)
{
	(void)state;
	scatter(700, 60, MON_SUM, DT_F32, true);
	scatter(700, 60, MON_MAX, DT_F32, true);
	scatter(700, 60, MON_SUM, DT_F32, false);
	scatter(700, 60, MON_SUM, DT_BF16, true);
	scatter(700, 60, MON_SUM, DT_BF16, false);
	scatter(700, 60, MON_MAX, DT_F16, true);
	sc.pairs = true;
	scatter(700, 20, MON_SUM, DT_F32, true);
	scatter(700, 20, MON_SUM, DT_BF16, true);
	sc.pairs = false;
	sc.guarded = true;
	scatter(700, 9, MON_SUM, DT_BF16, true);
	sc.guarded = false;
}

/* Rows that blocks of many threads have. */
static void
test_long_rows(void **state)
{
	(void)state;
	sc.columns = 2056;
	scatter(100, 20, MON_SUM, DT_F32, true);
	sc.hi = 3;
	scatter(400, 5, MON_SUM, DT_BF16, true);
	sc.columns = 0;
}

/* A list is taken several times, or can't hold all that an accumulator in registers needs. */
static void
test_many_terms_to_few(void **state)
{
	(void)state;
	sc.hi = 2;
	scatter(2500, 9, MON_SUM, DT_F32, true);
	sc.hi = 2;
	scatter(2500, 9, MON_SUM, DT_BF16, true);
	sc.hi = 2;
	scatter(2500, 9, MON_SUM, DT_BF16, false);
}

static void
test_terms_outside(void **state)
{
	(void)state;
	sc.hi = 10;
	assert_int_equal(scatter_by(case_try, 700, 9, MON_SUM, DT_F32, true).fault, 1);
	sc.lo = -1;
	assert_int_equal(scatter_by(case_try, 700, 9, MON_SUM, DT_BF16, true).fault, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lists, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_long_rows, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_many_terms_to_few, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_terms_outside, case_setup, case_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
