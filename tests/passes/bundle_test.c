/* bundle_test.c: kernels that do not depend on one another are one on a GPU; run by the tile interpreter, compared
 * with the oracle, in sizes that it takes and in others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph_case.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

enum { MOST = 4 };

/* y_k[i] = x_k[i] * s[0] + 1, of sizes of their own; what is different in one of them. */
static struct {
	unsigned n;
	int64_t size[MOST];
	DType dtype[MOST];
	bool in_place;  /* over x_k */
	bool next;      /* y_k is of x_k+1, over x_k */
	bool other;     /* the last adds 2 */
	bool gather;    /* all are read at what data says, the last outside of it */
} now;

static const uint8_t present[] = {0, 1, 2, 3, 6, 1, 0, 7}, absent[] = {0, 1, 2, 3, 9, 1, 0, 7};

static TensorId
parameter(Case *c, TensorKind kind, char letter, unsigned k, DType t, int64_t size, ExprId *extent)
{
	char name[] = {letter, (char)('0' + k), 0}, dim[] = {(char)(letter - 'a' + 'A'), (char)('0' + k), 0};
	*extent = case_dim(c, dim, size);
	return case_input(c, kind, name, t, 1, extent);
}

static void
build_maps(Case *c)
{
	TensorId x[MOST], y, ids[MOST] = {0};
	ExprId extent[MOST], one;
	c->g->fp = FP_RELAXED;
	for (unsigned k = 0; k < now.n; k++)
		x[k] = parameter(c, now.in_place ? TENSOR_INOUT : TENSOR_INPUT, 'x', k, now.dtype[k], now.size[k], &extent[k]);
	TensorId s = parameter(c, TENSOR_INPUT, 's', 0, DT_F32, 1, &one);
	for (unsigned k = 0; now.gather && k < now.n; k++) {
		ids[k] = parameter(c, TENSOR_INPUT, 'i', k, DT_U8, 8, &extent[k]);
		case_given(c, ids[k], k + 1 < now.n ? present : absent);
	}
	AccessId access = now.gather ? case_access(c, ACCESS_GATHER) : 0;
	for (unsigned k = 0; k < now.n; k++) {
		bool last = k + 1 == now.n;
		ExprId at = ax(c, 0), v = now.gather ? gather_at(c, access, x[k], 1, expr_cast(c->g, DT_I64, read_at(c, ids[k], 1, at)))
		                                     : read_at(c, x[now.next ? (k + 1) % now.n : k], 1, at);
		v = BIN(MUL, expr_cast(c->g, DT_F32, v), read_at(c, s, 1, case_int(c, 0)));
		Node n = case_node(1, expr_cast(c->g, now.dtype[k], BIN(ADD, v, expr_float(c->g, DT_F32, now.other && last ? 2 : 1))));
		y = case_add(c, &n, (char[]){'y', (char)('0' + k), 0}, now.dtype[k], &extent[k]);
		case_result(c, (char[]){'y', (char)('0' + k), 0}, y, now.in_place ? x[k] : 0);
	}
}

static CaseRun
try_maps(unsigned members)
{
	CaseRun r = case_try_blocks(build_maps);
	assert_int_equal(r.tmpl, members > 1 ? TMPL_BUNDLE : TMPL_MAP);
	assert_int_equal(r.members, members);
	return r;
}

/* n maps of f32, of 40 elements. */
static void
begin(unsigned n)
{
	memset(&now, 0, sizeof now);
	now.n = n;
	for (unsigned k = 0; k < MOST; k++) {
		now.dtype[k] = DT_F32;
		now.size[k] = 40;
	}
}

/* Three of different sizes: of one element, of a vector and a part, of none. */
static void
maps_are_one(void **state)
{
	(void)state;
	begin(3);
	now.size[0] = 4, now.size[1] = 4096 + 1000;
	assert_int_equal(try_maps(3).ran, TMPL_BUNDLE);
	now.size[0] = 0;
	assert_int_equal(try_maps(3).ran, TMPL_BUNDLE);
	now.size[0] = 4100, now.size[1] = 0, now.size[2] = 8196;
	assert_int_equal(try_maps(3).ran, TMPL_BUNDLE);
	now.in_place = true;
	assert_int_equal(try_maps(3).ran, TMPL_BUNDLE);
	now.n = 4;
	now.size[3] = 12;
	assert_int_equal(try_maps(4).ran, TMPL_BUNDLE);
}

/* One of them has rows that groups of elements do not divide. */
static void
members_run_where_one_is_not_aligned(void **state)
{
	(void)state;
	begin(3);
	now.size[0] = 4, now.size[1] = 4096 + 1001;
	assert_int_equal(try_maps(3).ran, TMPL_MAP);
	now.size[1] = 9000, now.size[2] = 5;
	now.in_place = true;
	assert_int_equal(try_maps(3).ran, TMPL_MAP);
}

/* Of another type, or with another constant. */
static void
other_code_is_apart(void **state)
{
	(void)state;
	begin(3);
	now.size[0] = 8, now.size[1] = 80, now.size[2] = 160;
	now.dtype[1] = now.dtype[2] = DT_F64;
	try_maps(1);
	now.dtype[0] = now.dtype[1] = DT_BF16, now.dtype[2] = DT_F32;
	try_maps(2);
	now.dtype[2] = DT_BF16;
	try_maps(3);
	now.other = true;
	try_maps(2);
}

/* What is written over waits for those who read it. */
static void
what_depends_is_apart(void **state)
{
	(void)state;
	begin(4);
	now.in_place = true;
	try_maps(4);
	now.next = true;
	try_maps(1);
}

static void
faults_are_reported(void **state)
{
	(void)state;
	begin(2);
	now.size[0] = 4096 + 8, now.size[1] = 8;
	now.gather = true;
	CaseRun r = try_maps(2);
	assert_int_equal(r.ran, TMPL_BUNDLE);
	assert_true(r.fault != 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(maps_are_one, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(members_run_where_one_is_not_aligned, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(other_code_is_apart, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(what_depends_is_apart, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(faults_are_reported, case_setup, case_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
