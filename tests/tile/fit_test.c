/* fit_test.c: how many blocks tile_fit leaves resident, of kernels whose threads hold so many words at once. */
#include "passes/tile/tile.h"
#include "tests/ir/tir/tir_fixture.h"

enum { BLOCK = 256, MOST = 256 };

static TirKernel *
of_block(Fixture *f, unsigned resident)
{
	TirKernel *k = fixture_kernel(f);
	k->form = TIR_SPREAD;
	k->threads = BLOCK;
	k->group = 1;
	k->resident = (uint16_t)resident;
	tir_add_buffer(k, name_cstr(f->names, "x"), DT_F32, false);
	tir_add_buffer(k, name_cstr(f->names, "y"), DT_F32, true);
	return k;
}

static ValId
thread(TirKernel *k)
{
	return tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0);
}

static ValId
view(TirKernel *k, unsigned buffer)
{
	ValId n = tir_int(k, DT_I64, BLOCK * MOST), one = tir_int(k, DT_I64, 1);
	return tir_view(k, buffer, 1, &n, &one);
}

static ValId
at(TirKernel *k, unsigned n)
{
	return tir_binary(k, OP_ADD, thread(k), tir_int(k, DT_I64, (int64_t)n * BLOCK));
}

static void
load_all(TirKernel *k, unsigned n, ValId *out)
{
	ValId x = view(k, 0), index[MOST];
	for (unsigned i = 0; i < n; i++)
		index[i] = at(k, i);
	for (unsigned i = 0; i < n; i++)
		out[i] = tir_load(k, x, &index[i], 0, 0, 0);
}

static void
store_sum(TirKernel *k, unsigned n, const ValId *v)
{
	ValId sum = v[0], to = at(k, 0);
	for (unsigned i = 1; i < n; i++)
		sum = tir_binary(k, OP_ADD, sum, v[i]);
	tir_store(k, view(k, 1), sum, &to, 0, 0);
}

static unsigned
fitted(Fixture *f, const TirKernel *k)
{
	fixture_verify(f, k);
	TirKernel *to = tile_fit(k, &f->arena);
	assert_true((to == k) == (to->resident == k->resident));
	return to->resident;
}

/* Of n words that are loaded before any is used. */
static unsigned
of_words(Fixture *f, unsigned n, unsigned resident)
{
	ValId v[MOST];
	TirKernel *k = of_block(f, resident);
	load_all(k, n, v);
	store_sum(k, n, v);
	return fitted(f, k);
}

/* 64 registers for each of 4 blocks of 256 threads, 80 of 3, 128 of 2, 255 of one. */
static void
blocks_leave_room(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	assert_int_equal(of_words(f, 32, 4), 4);
	assert_int_equal(of_words(f, 64, 4), 4);
	assert_int_equal(of_words(f, 94, 4), 3);
	assert_int_equal(of_words(f, 120, 4), 2);
	assert_int_equal(of_words(f, 120, 2), 2);
	assert_int_equal(of_words(f, 200, 4), 1);
	assert_int_equal(of_words(f, 200, 0), 0);
}

/* With fewer blocks of 128 threads than 2 a thread has no more registers. */
static void
nothing_for_nothing(void **state)
{
	Fixture *f = *state;
	ValId v[MOST];
	GUARD(f);
	TirKernel *k = of_block(f, 2);
	k->threads = BLOCK / 2;
	load_all(k, MOST, v);
	for (unsigned i = 0; i < MOST; i++)
		v[i] = tir_cast(k, DT_F64, v[i]);
	for (unsigned i = 0; i < MOST; i++)
		v[i] = tir_binary(k, OP_MUL, v[i], v[MOST - 1 - i]);
	for (unsigned i = 0; i < MOST; i++)
		v[i] = tir_cast(k, DT_F32, v[i]);
	store_sum(k, MOST, v);
	assert_int_equal(fitted(f, k), 2);
	k->resident = 4;
	assert_int_equal(fitted(f, k), 2);
}

/* A cast is held from its first use on, what it is made of before; a product from where it stands. */
static void
casts_come_late(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned late = 0; late < 2; late++) {
		ValId v[MOST], w[MOST];
		TirKernel *k = of_block(f, 4);
		load_all(k, 40, v);
		for (unsigned i = 0; i < 40; i++)
			w[i] = late ? tir_cast(k, DT_F64, v[i]) : tir_binary(k, OP_MUL, tir_cast(k, DT_F64, v[i]), tir_cast(k, DT_F64, v[39 - i]));
		ValId sum = w[0], to = at(k, 0);
		for (unsigned i = 1; i < 40; i++)
			sum = tir_binary(k, OP_ADD, sum, w[i]);
		sum = tir_cast(k, DT_F32, sum);
		tir_store(k, view(k, 1), sum, &to, 0, 0);
		assert_int_equal(fitted(f, k), late ? 4 : 3);
	}
}

/* Masks that are loaded have registers, those that are computed have not. */
static void
masks_count_if_loaded(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned loaded = 0; loaded < 2; loaded++) {
		ValId v[MOST], m[MOST], zero, of;
		TirKernel *k = of_block(f, 4);
		unsigned masks = tir_add_buffer(k, name_cstr(f->names, "m"), DT_BOOL, false);
		of = view(k, masks);
		load_all(k, 60, v);
		for (unsigned i = 0; i < 60; i++) {
			ValId index = at(k, i);
			m[i] = loaded ? tir_load(k, of, &index, 0, 0, 0) : tir_binary(k, OP_LT, v[i], v[59 - i]);
		}
		zero = tir_float(k, DT_F32, 0);
		for (unsigned i = 0; i < 60; i++)
			v[i] = tir_emit(k, OP_SELECT, tir_scalar(DT_F32), 0, (ValId[]){m[i], v[i], zero}, 3);
		store_sum(k, 60, v);
		assert_int_equal(fitted(f, k), loaded ? 2 : 4);
	}
}

/* What a loop finds is held to its end, though it is used at its beginning; what it carries, once. */
static void
loops_hold(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned loop = 0; loop < 2; loop++) {
		ValId v[MOST], w[MOST];
		TirKernel *k = of_block(f, 4);
		load_all(k, 60, v);
		ValId carried = v[0], zero = tir_int(k, DT_I64, 0), four = tir_int(k, DT_I64, 4), one = tir_int(k, DT_I64, 1);
		if (loop)
			tir_for(k, zero, four, one, &carried, 1);
		for (unsigned i = 1; i < 60; i++)
			carried = tir_binary(k, OP_MUL, carried, v[i]);
		load_all(k, 40, w);
		for (unsigned i = 0; i < 40; i++)
			carried = tir_binary(k, OP_ADD, carried, w[i]);
		if (loop)
			tir_end_for(k, &carried, 1);
		store_sum(k, 1, &carried);
		assert_int_equal(fitted(f, k), loop ? 3 : 4);
	}
}

/* What accesses alone add to an index takes no register, however long they are apart; what is compared does. */
static void
offsets_are_free(void **state)
{
	enum { N = 30 };
	Fixture *f = *state;
	GUARD(f);
	for (unsigned compared = 0; compared < 2; compared++) {
		ValId v[N], index[N];
		TirKernel *k = of_block(f, 4);
		ValId from = view(k, 0), to = view(k, 1), i = thread(k), end = tir_int(k, DT_I64, BLOCK), sum = tir_float(k, DT_F32, 0);
		for (unsigned n = 0; n < N; n++) {
			index[n] = tir_binary(k, OP_ADD, i, tir_int(k, DT_I64, (int64_t)n * BLOCK));
			v[n] = tir_load(k, from, &index[n], 0, 0, 0);
			sum = tir_binary(k, OP_ADD, compared ? tir_select(k, tir_binary(k, OP_LT, index[n], end), v[n], sum) : v[n], sum);
		}
		for (unsigned n = 0; n < N; n++)
			tir_store(k, to, tir_binary(k, OP_MUL, v[n], sum), &index[n], 0, 0);
		assert_int_equal(fitted(f, k), compared ? 2 : 4);
	}
}

/* Kernels of tasks have no blocks, and a template of matrices counts for itself. */
static void
others_stay(void **state)
{
	Fixture *f = *state;
	ValId v[MOST], arg[16];
	GUARD(f);
	TirKernel *k = of_block(f, 4);
	load_all(k, 200, v);
	store_sum(k, 200, v);
	assert_int_equal(fitted(f, k), 1);
	k->form = TIR_TASKS;
	assert_ptr_equal(tile_fit(k, &f->arena), k);
	k = of_block(f, 4);
	load_all(k, 200, v);
	for (unsigned i = 0; i < 12; i++)
		arg[i] = tir_cast(k, DT_BF16, v[i]);
	for (unsigned i = 12; i < 16; i++)
		arg[i] = v[i];
	tir_emit(k, OP_WARP_MMA, tir_vector(DT_F32, 4), 0, arg, 16);
	store_sum(k, 200, v);
	assert_int_equal(fitted(f, k), 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {TEST(blocks_leave_room), TEST(nothing_for_nothing), TEST(casts_come_late), TEST(masks_count_if_loaded),
	                                   TEST(loops_hold), TEST(offsets_are_free), TEST(others_stay)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
