/* fragment_test.c: every row of fragments.def and what describes operands in shared memory, against the definitions that the PTX ISA
 * and Intel's manual give, and the conversions between them that templates rely on. */
#include "model.h"

#include "ir/channel.h"
#include "ir/fragment.h"

/* --- NVIDIA: the element that register r (counted in elements) of a thread holds --- */

typedef struct {
	unsigned row, col;
} RowCol;

typedef RowCol HolderFn(unsigned r, unsigned lane, unsigned warp);

/* wgmma D: d[i] of the 32-bit accumulators: row = 16 * warp + lane / 4 + 8 * (i / 2 % 2), column = 8 * (i / 4) + 2 * (lane % 4) + i % 2 */
static RowCol
wgmma_d(unsigned r, unsigned lane, unsigned warp)
{
	return (RowCol){16 * warp + lane / 4 + 8 * (r / 2 % 2), 8 * (r / 4) + 2 * (lane % 4) + r % 2};
}

/* A with items of 16 bits: a0..a7; groupID = lane >> 2; row = groupID for a0 a1 a4 a5, else groupID + 8;
 * column = 2 * (lane % 4) + (i & 1), + 8 for a4 and later */
static RowCol
mma_a16(unsigned r, unsigned lane, unsigned warp)
{
	unsigned low = (r < 2) || (r >= 4 && r < 6);
	return (RowCol){16 * warp + (lane >> 2) + (low ? 0 : 8), (lane % 4) * 2 + (r & 1) + (r >= 4 ? 8 : 0)};
}

/* A with items of 8 bits: a0..a15; row = groupID for a0-a3 and a8-a11, else + 8;
 * column = 4 * (lane % 4) + (i & 3), + 16 for a8 and later */
static RowCol
mma_a8(unsigned r, unsigned lane, unsigned warp)
{
	unsigned low = r < 4 || (r >= 8 && r < 12);
	return (RowCol){16 * warp + (lane >> 2) + (low ? 0 : 8), (lane % 4) * 4 + (r & 3) + (r >= 8 ? 16 : 0)};
}

/* tf32 A: row = groupID for a0 and a2, else + 8; column = lane % 4, + 4 for a2 and a3 */
static RowCol
mma_a32(unsigned r, unsigned lane, unsigned warp)
{
	return (RowCol){16 * warp + (lane >> 2) + (r == 0 || r == 2 ? 0 : 8), lane % 4 + (r < 2 ? 0 : 4)};
}

/* B 16 bits: row = 2 * (lane % 4) + (i & 1), + 8 for b2 and b3; column = groupID */
static RowCol
mma_b16(unsigned r, unsigned lane, unsigned warp)
{
	(void)warp;
	return (RowCol){(lane % 4) * 2 + (r & 1) + (r < 2 ? 0 : 8), lane >> 2};
}

static RowCol
mma_b8(unsigned r, unsigned lane, unsigned warp)
{
	(void)warp;
	return (RowCol){(lane % 4) * 4 + (r & 3) + (r < 4 ? 0 : 16), lane >> 2};
}

static RowCol
mma_b32(unsigned r, unsigned lane, unsigned warp)
{
	(void)warp;
	return (RowCol){lane % 4 + 4 * r, lane >> 2};
}

/* C: row = groupID for c0 c1, else + 8; column = 2 * (lane % 4) + (i & 1) */
static RowCol
mma_c(unsigned r, unsigned lane, unsigned warp)
{
	(void)warp;
	return (RowCol){(lane >> 2) + (r < 2 ? 0 : 8), (lane % 4) * 2 + (r & 1)};
}

/* ldmatrix: thread 4 r + c / 2 holds elements c and c + 1 of row r */
static RowCol
matrix(unsigned r, unsigned lane, unsigned warp)
{
	(void)warp;
	return (RowCol){lane / 4, 2 * (lane % 4) + r};
}

static RowCol
matrix_trans(unsigned r, unsigned lane, unsigned warp)
{
	(void)warp;
	return (RowCol){2 * (lane % 4) + r, lane / 4};
}

/* Vectors: the row unrolled, the lanes along it. */
static RowCol
vector(unsigned r, unsigned lane, unsigned warp)
{
	(void)warp;
	return (RowCol){r, lane};
}

static void
check_holder(Arena *a, Fragment f, HolderFn *holder, unsigned nlane, unsigned nwarp)
{
	Layout l = fragment_atom(a, f);
	assert_int_equal(layout_size(&l, AXIS_LANE), nlane);
	assert_int_equal(layout_size(&l, AXIS_WARP), nwarp);
	assert_int_equal(layout_size(&l, AXIS_REG) * nlane * nwarp, l.shape[0] * l.shape[1]);
	for (unsigned w = 0; w < nwarp; w++)
		for (unsigned t = 0; t < nlane; t++)
			for (unsigned r = 0; r < layout_size(&l, AXIS_REG); r++) {
				Place p = {{[AXIS_REG] = r, [AXIS_LANE] = t, [AXIS_WARP] = w}};
				RowCol e = holder(r, t, w);
				assert_int_equal(layout_at(&l, &p), coord_along(0, e.row) | coord_along(1, e.col));
			}
}

/* --- Intel: the tile as 16 rows of 64 bytes, the operations as the manual's pseudocode has them --- */

static void
amx_product(const unsigned *A, const unsigned *B, unsigned per, unsigned *C)
{
	for (unsigned m = 0; m < 16; m++)
		for (unsigned k = 0; k < 16; k++)
			for (unsigned n = 0; n < 16; n++)
				for (unsigned i = 0; i < per; i++)
					C[m * 16 + n] += A[(m * 16 + k) * per + i] * B[(k * 16 + n) * per + i];
}

/* Puts matrices of random numbers where the layouts say, multiplies, and reads the product back. */
static void
check_amx(Arena *arena, Fragment fa, Fragment fb, unsigned per)
{
	unsigned K = 16 * per, A[16 * 64], B[16 * 64], C[256] = {0}, a[16][64], b[64][16];
	Layout la = fragment_atom(arena, fa), lb = fragment_atom(arena, fb), lc = fragment_atom(arena, FRAGMENT_AMX_C);
	uint64_t seed = per;
	Place p;
	for (unsigned k = 0; k < K; k++)
		for (unsigned x = 0; x < 16; x++) {
			a[x][k] = random_below(&seed, 100);
			b[k][x] = random_below(&seed, 100);
			assert_true(layout_find(&la, coord_along(0, x) | coord_along(1, k), &p));
			A[p.at[AXIS_OFFSET]] = a[x][k];
			assert_true(layout_find(&lb, coord_along(0, k) | coord_along(1, x), &p));
			B[p.at[AXIS_OFFSET]] = b[k][x];
		}
	amx_product(A, B, per, C);
	for (unsigned i = 0; i < 16; i++)
		for (unsigned j = 0; j < 16; j++) {
			unsigned sum = 0;
			for (unsigned k = 0; k < K; k++)
				sum += a[i][k] * b[k][j];
			assert_true(layout_find(&lc, coord_along(0, i) | coord_along(1, j), &p));
			assert_int_equal(C[p.at[AXIS_OFFSET]], sum);
		}
}

static void
check_fragment(Arena *a, Fragment f)
{
	switch (f) {
	case FRAGMENT_WGMMA_D: check_holder(a, f, wgmma_d, 32, 4); return;
	case FRAGMENT_WGMMA_A16: check_holder(a, f, mma_a16, 32, 4); return;
	case FRAGMENT_WGMMA_A8: check_holder(a, f, mma_a8, 32, 4); return;
	case FRAGMENT_WGMMA_A32: check_holder(a, f, mma_a32, 32, 4); return;
	case FRAGMENT_MMA_A16: check_holder(a, f, mma_a16, 32, 1); return;
	case FRAGMENT_MMA_B16: check_holder(a, f, mma_b16, 32, 1); return;
	case FRAGMENT_MMA_A8: check_holder(a, f, mma_a8, 32, 1); return;
	case FRAGMENT_MMA_B8: check_holder(a, f, mma_b8, 32, 1); return;
	case FRAGMENT_MMA_A32: check_holder(a, f, mma_a32, 32, 1); return;
	case FRAGMENT_MMA_B32: check_holder(a, f, mma_b32, 32, 1); return;
	case FRAGMENT_MMA_C: check_holder(a, f, mma_c, 32, 1); return;
	case FRAGMENT_MATRIX16: check_holder(a, f, matrix, 32, 1); return;
	case FRAGMENT_MATRIX16_T: check_holder(a, f, matrix_trans, 32, 1); return;
	case FRAGMENT_AMX_A16: check_amx(a, f, FRAGMENT_AMX_B16, 2); return;
	case FRAGMENT_AMX_B16: check_amx(a, FRAGMENT_AMX_A16, f, 2); return;
	case FRAGMENT_AMX_A8: check_amx(a, f, FRAGMENT_AMX_B8, 4); return;
	case FRAGMENT_AMX_B8: check_amx(a, FRAGMENT_AMX_A8, f, 4); return;
	case FRAGMENT_AMX_C: check_amx(a, FRAGMENT_AMX_A16, FRAGMENT_AMX_B16, 2); return;
	case FRAGMENT_AVX512_F32: check_holder(a, f, vector, 16, 1); return;
	case FRAGMENT_AVX2_F32: check_holder(a, f, vector, 8, 1); return;
	case FRAGMENT_NEON_F32: check_holder(a, f, vector, 4, 1); return;
	}
}

static void
fragments(void **state)
{
	Fixture x;
	(void)state;
	START(&x);
	for (unsigned f = 0; f < FRAGMENT_COUNT; f++) {
		const FragmentInfo *info = &fragment_info[f];
		check_fragment(&x.arena, (Fragment)f);
		Layout atom = fragment_atom(&x.arena, (Fragment)f);
		assert_string_equal(layout_text(&x.arena, &atom), info->atom);
	}
	arena_free(&x.arena);
}

static Layout
tile_of(Arena *a, Fragment f, unsigned rows, unsigned columns)
{
	Layout l;
	const unsigned shape[] = {rows, columns}, order[] = {1, 0};
	assert_true(fragment_layout(a, f, shape, order, &l));
	return l;
}

/* The accumulator of every n that wgmma has is the ISA's formula with more registers. */
static void
accumulators(void **state)
{
	Fixture x;
	(void)state;
	START(&x);
	for (unsigned n = 8; n <= 256; n += 8) {
		Layout l = tile_of(&x.arena, FRAGMENT_WGMMA_D, 64, n);
		Table t = table_of(&l);
		assert_true(table_is_tile(&t, &l) && t.size[AXIS_REG] == n / 2);
		for (uint32_t i = 0; i < t.n; i++) {
			Place p = table_place(&t, i);
			RowCol e = wgmma_d(p.at[AXIS_REG], p.at[AXIS_LANE], p.at[AXIS_WARP]);
			assert_int_equal(t.coord[i], coord_along(0, e.row) | coord_along(1, e.col));
		}
		table_free(&t);
	}
	Layout odd = tile_of(&x.arena, FRAGMENT_WGMMA_D, 64, 176), cpu;
	assert_string_equal(layout_text(&x.arena, &odd), "64x176 reg j1 i8 j8 j16*11 lane j2 j4 i1 i2 i4 warp i16 i32");
	const unsigned shape[] = {14, 32}, order[] = {1, 0}, bad[] = {14, 40};
	assert_true(fragment_layout(&x.arena, FRAGMENT_AVX512_F32, shape, order, &cpu));
	assert_string_equal(layout_text(&x.arena, &cpu), "14x32 reg j16 i1 i2*7 lane j1 j2 j4 j8");
	assert_false(fragment_layout(&x.arena, FRAGMENT_AVX512_F32, bad, order, &cpu));
	arena_free(&x.arena);
}

/* --- shared memory --- */

/* Where an element is that has this address before the swizzle: in a slot, which begins at a multiple of 1024 bytes. */
static unsigned
swizzled(unsigned address, unsigned span)
{
	return address ^ (address >> 7 & (span / 16 - 1)) << 4;
}

/* A part of a slot as copies write it: a box after the other, each of rows of `span` bytes, and as wgmma reads it by the
 * descriptor, TIR_MMA_TERMS at a time, as the canonical layouts of the PTX ISA have it. */
static void
check_part(const TirPart *p)
{
	unsigned along = tir_part_along(p), span = 2 * along, down = p->turned ? p->terms : p->rows, right = p->turned ? p->rows : p->terms;
	uint64_t d = swizzled_descriptor(down, span, p->turned);
	unsigned leading = (d >> 16 & 0x3fff) * 16, stride = (d >> 32 & 0x3fff) * 16;
	assert_int_equal(d >> 62, span == 128 ? 1 : 2);
	assert_int_equal(down * right * 2, tir_part_bytes(p));
	assert_int_equal(tir_part_bytes(p) % 1024, 0);
	for (unsigned row = 0; row < p->rows; row++)
		for (unsigned term = 0; term < p->terms; term++) {
			unsigned i = p->turned ? term : row, j = p->turned ? row : term;
			unsigned written = swizzled(j / along * down * span + i * span + j % along * 2, span);
			unsigned first = term / TIR_MMA_TERMS * TIR_MMA_TERMS, k = term - first, read;
			if (p->turned)
				read = first * span + row / along * leading + row % along * 2 + k / 8 * stride + k % 8 * span;
			else
				read = first * 2 + row / 8 * stride + row % 8 * span + k * 2;
			assert_int_equal(swizzled(read, span), written);
		}
}

/* All that there are; those that are turned have as many rows side by side as divide them. */
static void
parts(void **state)
{
	(void)state;
	for (unsigned rows = 8; rows <= TIR_MAX_PART_ROWS; rows += 8)
		check_part(&(TirPart){.dtype = DT_BF16, .rows = (uint16_t)rows, .terms = TIR_PART_TERMS});
	for (unsigned rows = 32; rows <= TIR_MAX_PART_ROWS; rows += 32) {
		const TirPart p = {.dtype = DT_F16, .rows = (uint16_t)rows, .terms = TIR_PART_TERMS, .turned = true};
		assert_int_equal(tir_part_along(&p), rows % 64 ? 32 : 64);
		check_part(&p);
	}
}

/* --- conversions --- */

static const ConvertPlan *
converted_by(Arena *a, const Layout *src, const Layout *dst, const ConvertMeans *means)
{
	const char *error;
	const ConvertPlan *p = layout_convert(a, src, dst, means, &error);
	if (!p)
		fail_msg("%s", error);
	plan_run(p, src, dst, means->bits);
	return p;
}

static const ConvertPlan *
converted(Arena *a, const Layout *src, const Layout *dst, unsigned bits)
{
	const ConvertMeans gpu = {bits, true, true, true, 65536};
	return converted_by(a, src, dst, &gpu);
}

static unsigned
count_steps(const ConvertPlan *p, ConvertStepKind kind, bool conflicts)
{
	unsigned n = 0;
	for (uint32_t i = 0; i < p->step.n; i++) {
		n += p->step.at[i].kind == kind ? p->step.at[i].n : 0;
		assert_true(conflicts || p->step.at[i].wavefronts == p->step.at[i].groups);
	}
	return n;
}

/* P = f(Q K^T) is used as A of P V at once: for 16 bits the accumulator is the operand. */
static void
accumulator_to_operand(void **state)
{
	static const unsigned n[] = {16, 32, 80, 128, 176, 256};
	Fixture x;
	(void)state;
	START(&x);
	for (unsigned i = 0; i < sizeof n / sizeof n[0]; i++) {
		Layout d = tile_of(&x.arena, FRAGMENT_WGMMA_D, 64, n[i]), a = tile_of(&x.arena, FRAGMENT_WGMMA_A16, 64, n[i]);
		assert_int_equal(converted(&x.arena, &d, &a, 16)->cls, CONVERT_RENAME);
		assert_true(layout_equal(&d, &a));
	}
	arena_free(&x.arena);
}

/* An epilogue: accumulators leave by stmatrix and come back as 16 bytes a lane of a row, no conflict. */
static void
epilogue(void **state)
{
	Fixture x;
	(void)state;
	START(&x);
	Layout d = tile_of(&x.arena, FRAGMENT_WGMMA_D, 64, 64);
	Layout rows = layout_of(&x.arena, "64x64 reg j1 j2 j4 i16 i32 lane j8 j16 j32 i1 i2 warp i4 i8");
	const ConvertPlan *p = converted(&x.arena, &d, &rows, 16);
	assert_int_equal(p->cls, CONVERT_MATRIX);
	assert_int_equal(count_steps(p, STEP_STORE_MATRIX, false), 4);
	assert_int_equal(count_steps(p, STEP_LOAD, false), 4);
	Layout columns = layout_of(&x.arena, "64x64 reg i1 i2 i4 j16 j32 lane i8 i16 i32 j1 j2 warp j4 j8");
	p = converted(&x.arena, &d, &columns, 16);
	assert_int_equal(p->cls, CONVERT_MATRIX);
	assert_true(p->step.at[0].kind == STEP_STORE_MATRIX && p->step.at[0].trans);
	assert_int_equal(count_steps(p, STEP_LOAD, false), 4);
	const ConvertMeans no_store = {16, true, false, true, 65536};
	p = converted_by(&x.arena, &rows, &d, &no_store);
	assert_int_equal(count_steps(p, STEP_STORE, false), 4);
	assert_int_equal(count_steps(p, STEP_LOAD_MATRIX, false), 4);
	p = converted(&x.arena, &d, &rows, 32);
	assert_true(p->cls >= CONVERT_MATRIX);
	arena_free(&x.arena);
}

/* A 16 x 16 transpose in vector registers: one permutation a vector between exchanges. */
static void
transpose_in_vectors(void **state)
{
	Fixture x;
	const ConvertMeans cpu = {.bits = 32, .shuffle = true, .scratch_bytes = 4096};
	(void)state;
	START(&x);
	Layout rows = tile_of(&x.arena, FRAGMENT_AVX512_F32, 16, 16);
	Layout columns = layout_of(&x.arena, "16x16 reg j1 j2 j4 j8 lane i1 i2 i4 i8");
	const ConvertPlan *p = converted_by(&x.arena, &rows, &columns, &cpu);
	assert_int_equal(p->cls, CONVERT_SHUFFLE);
	assert_int_equal(count_steps(p, STEP_SHUFFLE, false), 16);
	assert_int_equal(count_steps(p, STEP_EXCHANGE, false), 2 * 4 * 8);
	arena_free(&x.arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fragments),
		cmocka_unit_test(accumulators),
		cmocka_unit_test(parts),
		cmocka_unit_test(accumulator_to_operand),
		cmocka_unit_test(epilogue),
		cmocka_unit_test(transpose_in_vectors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
