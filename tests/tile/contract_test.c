/* contract_test.c: where tile_contract fires, where it must not, and what comes out. */
#include <math.h>

#include "passes/tile/tile.h"
#include "tests/ir/tir/tir_fixture.h"

enum { N = 64 };

/* a, b, c: loads of f32 at one place; returns what is stored. */
typedef ValId BuildFn(TirKernel *k, ValId a, ValId b, ValId c);

static TirKernel *
build(Fixture *f, BuildFn *body)
{
	TirKernel *k = fixture_kernel(f);
	const char *const name[4] = {"a", "b", "c", "z"};
	ValId view[4], n = tir_int(k, DT_I64, N), one = tir_int(k, DT_I64, 1);
	for (unsigned i = 0; i < 4; i++) {
		tir_add_buffer(k, name_cstr(f->names, name[i]), DT_F32, i == 3);
		view[i] = tir_view(k, i, 1, &n, &one);
	}
	ValId i = tir_for(k, tir_int(k, DT_I64, 0), n, one, NULL, 0);
	ValId a = tir_load(k, view[0], &i, 0, 0, 0), b = tir_load(k, view[1], &i, 0, 0, 0);
	ValId c = tir_load(k, view[2], &i, 0, 0, 0);
	tir_store(k, view[3], body(k, a, b, c), &i, 0, 0);
	tir_end_for(k, NULL, 0);
	return k;
}

static unsigned
count(const TirKernel *k, Op op)
{
	unsigned n = 0;
	for (ValId v = 1; v < k->inst.n; v++)
		n += tir_inst(k, v)->op == op;
	return n;
}

/* Contracts, expects nfma of them, and runs it over values whose products are inexact. */
static void
contracted(Fixture *f, BuildFn *body, unsigned nfma, float x[4][N])
{
	TirKernel *before = build(f, body), *k = tile_contract(before, &f->arena);
	assert_int_equal(count(k, OP_FMA), nfma);
	assert_int_equal(k == before, nfma == 0);
	fixture_verify(f, k);
	TirMemory memory[4];
	for (unsigned i = 0; i < 4; i++) {
		memory[i] = (TirMemory){x[i], sizeof x[i]};
		for (unsigned j = 0; j < N; j++)
			x[i][j] = (float)((i * N + j + 1) * 2654435761u >> 8) * 0x1p-23f - 1;
	}
	TirRun run = {.buffer = memory, .task_hi = 1};
	const char *error = "";
	if (!tir_interpret(k, &f->arena, &run, &error))
		fail_msg("%s", error);
}

static ValId
product_first(TirKernel *k, ValId a, ValId b, ValId c)
{
	return tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, a, b), c);
}

static ValId
minus_rest(TirKernel *k, ValId a, ValId b, ValId c)
{
	return tir_binary(k, OP_SUB, tir_binary(k, OP_MUL, a, b), c);
}

static ValId
minus_product(TirKernel *k, ValId a, ValId b, ValId c)
{
	return tir_binary(k, OP_SUB, c, tir_binary(k, OP_MUL, a, b));
}

static ValId
two_products(TirKernel *k, ValId a, ValId b, ValId c)
{
	return tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, a, b), tir_binary(k, OP_MUL, b, c));
}

static void
test_fires(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	static float x[4][N];
	unsigned rounded_apart = 0;
	contracted(f, product_first, 1, x);
	for (unsigned j = 0; j < N; j++) {
		volatile float product = x[0][j] * x[1][j];
		rounded_apart += product + x[2][j] != x[3][j];
		assert_true(x[3][j] == fmaf(x[0][j], x[1][j], x[2][j]));
	}
	assert_true(rounded_apart > 0); /* else these inputs show nothing */
	contracted(f, minus_rest, 1, x);
	for (unsigned j = 0; j < N; j++)
		assert_true(x[3][j] == fmaf(x[0][j], x[1][j], -x[2][j]));
	contracted(f, minus_product, 1, x);
	for (unsigned j = 0; j < N; j++)
		assert_true(x[3][j] == fmaf(-x[0][j], x[1][j], x[2][j]));
	contracted(f, two_products, 1, x);
	for (unsigned j = 0; j < N; j++) {
		volatile float product = x[0][j] * x[1][j];
		assert_true(x[3][j] == fmaf(x[1][j], x[2][j], product));
	}
}

static ValId
used_twice(TirKernel *k, ValId a, ValId b, ValId c)
{
	ValId p = tir_binary(k, OP_MUL, a, b);
	return tir_binary(k, OP_MAX, p, tir_binary(k, OP_ADD, p, c));
}

static ValId
doubled(TirKernel *k, ValId a, ValId b, ValId c)
{
	ValId p = tir_binary(k, OP_MUL, a, b);
	(void)c;
	return tir_binary(k, OP_ADD, p, p);
}

static ValId
integers(TirKernel *k, ValId a, ValId b, ValId c)
{
	ValId i = tir_bitcast(k, DT_U32, a), j = tir_bitcast(k, DT_U32, b), l = tir_bitcast(k, DT_U32, c);
	return tir_bitcast(k, DT_F32, tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, i, j), l));
}

static void
test_keeps_off(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	static float x[4][N];
	contracted(f, used_twice, 0, x);
	contracted(f, doubled, 0, x);
	contracted(f, integers, 0, x);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_fires), TEST(test_keeps_off)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
