/* rand.c: rand and randn, to the bit as LANGUAGE.md has them: Philox-4x32-10 with the seed as
 * key and the indices as counter, then a uniform, or Box-Muller on a pair of uniforms. The angle
 * 2 pi v of Box-Muller is a root of unity of order 2^24, taken exactly. */
#include "passes/schedule/point/point.h"

static ValId
u32(Point *l, uint32_t v)
{
	return tir_int(l->tir, DT_U32, v);
}

static ValId
low_word(Point *l, ValId v)
{
	return tir_cast(l->tir, DT_U32, v);
}

static ValId
high_word(Point *l, ValId v)
{
	return low_word(l, tir_binary(l->tir, OP_SHR, v, tir_int(l->tir, DT_U64, 32)));
}

/* One Philox round on counter c with key k. */
static void
philox_round(Point *l, ValId c[4], const ValId k[2])
{
	static const uint32_t factor[2] = {0xD2511F53u, 0xCD9E8D57u};
	ValId high[2], low[2];
	for (unsigned h = 0; h < 2; h++) {
		ValId p = tir_binary(l->tir, OP_MUL, tir_cast(l->tir, DT_U64, c[2 * h]),
		                     tir_int(l->tir, DT_U64, factor[h]));
		high[h] = high_word(l, p);
		low[h] = low_word(l, p);
	}
	ValId c1 = c[1], c3 = c[3];
	c[0] = tir_binary(l->tir, OP_BXOR, tir_binary(l->tir, OP_BXOR, high[1], c1), k[0]);
	c[1] = low[1];
	c[2] = tir_binary(l->tir, OP_BXOR, tir_binary(l->tir, OP_BXOR, high[0], c3), k[1]);
	c[3] = low[0];
}

static void
philox(Point *l, ValId c[4], ValId seed)
{
	static const uint32_t bump[2] = {0x9E3779B9u, 0xBB67AE85u};
	ValId k[2] = {low_word(l, seed), high_word(l, seed)};
	for (unsigned round = 0; round < 10; round++) {
		philox_round(l, c, k);
		for (unsigned h = 0; h < 2; h++)
			k[h] = tir_binary(l->tir, OP_ADD, k[h], u32(l, bump[h]));
	}
}

/* Word n of c, or word n + bit where the lane has that bit. */
static ValId
bits_of(Point *l, const ValId c[4], ValId lane, unsigned bit, unsigned n)
{
	ValId second = tir_binary(l->tir, OP_NE, tir_binary(l->tir, OP_BAND, lane, u32(l, bit)), u32(l, 0));
	return tir_select(l->tir, second, c[n + bit], c[n]);
}

static ValId
uniform(Point *l, ValId bits)
{
	return tir_binary(l->tir, OP_MUL, tir_cast(l->tir, DT_F32, bits), tir_float(l->tir, DT_F32, 0x1p-24));
}

static ValId
box_muller(Point *l, ValId bits_u, ValId bits_v, ValId lane)
{
	TirKernel *k = l->tir;
	ValId rest = tir_binary(k, OP_SUB, tir_float(k, DT_F32, 1), uniform(l, bits_u));
	ValId radius = tir_unary(k, OP_SQRT, tir_binary(k, OP_MUL, tir_float(k, DT_F32, -2),
	                                                tir_unary(k, OP_LOG, rest)));
	PointVal turn = point_root(l, tir_cast(k, DT_I64, bits_v), tir_int(k, DT_I64, 1 << 24));
	ValId odd = tir_binary(k, OP_NE, tir_binary(k, OP_BAND, lane, u32(l, 1)), u32(l, 0));
	return tir_binary(k, OP_MUL, radius, tir_select(k, odd, turn.im, turn.re));
}

/* arg: the seed, then one to four indices. */
ValId
point_rand(Point *l, Op op, const ValId *arg, unsigned narg)
{
	TirKernel *k = l->tir;
	ValId c[4], top[4], last = arg[narg - 1];
	ValId lane = low_word(l, tir_binary(k, OP_IMOD, last, tir_int(k, DT_I64, 4)));
	c[0] = low_word(l, tir_binary(k, OP_IDIV, last, tir_int(k, DT_I64, 4)));
	for (unsigned n = 1; n < 4; n++)
		c[n] = n + 1 < narg ? low_word(l, arg[n]) : u32(l, 0);
	philox(l, c, arg[0]);
	for (unsigned n = 0; n < 4; n++)
		top[n] = tir_binary(k, OP_SHR, c[n], u32(l, 8));
	if (op == OP_RANDN)
		return box_muller(l, bits_of(l, top, lane, 2, 0), bits_of(l, top, lane, 2, 1), lane);
	ValId pair[2] = {bits_of(l, top, lane, 1, 0), bits_of(l, top, lane, 1, 2)};
	ValId upper = tir_binary(k, OP_NE, tir_binary(k, OP_BAND, lane, u32(l, 2)), u32(l, 0));
	return uniform(l, tir_select(k, upper, pair[1], pair[0]));
}
