/* rank.c: max and min of floats by vectors, without the five operations a term that NaNs and the zeros' signs cost.
 *
 * Of vectors whose comparisons give vectors, by three folds of the terms' bits: the greatest and the least as signed integers, and
 * the greatest as unsigned ones. Floats without a sign are ordered as their bits are, those with one the other way round, below
 * them all. So the greatest float is the greatest signed integer, or, where that has a sign, the least one: of the least
 * magnitude. The least float is the greatest unsigned integer where there is a sign, else the least signed one. A NaN is
 * beyond the infinity of its sign: in the greatest signed, or the greatest unsigned integer. An infinity is where they start.
 *
 * Of those whose comparisons are masks, which compare integers at one port, by the extreme of the terms that are numbers,
 * whether all are, and the signs: the greatest one that is 0 has a sign if all terms have one, the least one if any has. */
#include "passes/schedule/schedule.h"
#include "ir/bugs.h"

#include <math.h>

enum { MASK_LANES = 16 }; /* of vectors whose comparisons are masks */

typedef struct {
	DType i, u; /* the integers of the type's size */
	int64_t sign, infinity; /* bits; of infinity without a sign */
} Bits;

static Bits
bits_of(DType t)
{
	if (t == DT_F64)
		return (Bits){DT_I64, DT_U64, INT64_MIN, 0x7ff0000000000000};
	return (Bits){DT_I32, DT_U32, 0x80000000, 0x7f800000};
}

static bool
is_max(const Reduction *f)
{
	return f->monoid == MON_MAX;
}

/* Which of the two f is. */
static bool
is_of_numbers(const Point *l, const Reduction *f)
{
	return tir_inst(l->tir, f->third)->type.dtype == DT_BOOL;
}

void
reduction_rank(Point *l, Reduction *f)
{
	if ((f->monoid != MON_MAX && f->monoid != MON_MIN) || (f->type != DT_F32 && f->type != DT_F64))
		return;
	Bits b = bits_of(f->type);
	if (l->lanes >= MASK_LANES) {
		f->other = tir_int(l->tir, b.u, is_max(f) ? -1 : 0);
		f->third = tir_int(l->tir, DT_BOOL, 1);
		return;
	}
	int64_t start = is_max(f) ? b.infinity | b.sign : b.infinity;
	f->re = f->other = tir_int(l->tir, b.i, start);
	f->third = tir_int(l->tir, b.u, start);
}

static void
join_bits(Point *l, Reduction *f, ValId greatest, ValId least, ValId unsigned_greatest)
{
	f->re = tir_binary(l->tir, OP_MAX, f->re, greatest);
	f->other = tir_binary(l->tir, OP_MIN, f->other, least);
	f->third = tir_binary(l->tir, OP_MAX, f->third, unsigned_greatest);
}

static void
join_numbers(Point *l, Reduction *f, ValId x, ValId signs, ValId numbers)
{
	ValId beyond = is_max(f) ? tir_binary(l->tir, OP_LT, f->re, x) : tir_binary(l->tir, OP_LT, x, f->re);
	f->re = tir_select(l->tir, beyond, x, f->re);
	f->other = tir_binary(l->tir, is_max(f) ? OP_BAND : OP_BOR, f->other, signs);
	f->third = tir_binary(l->tir, OP_AND, f->third, numbers);
}

void
reduction_rank_term(Point *l, Reduction *f, ValId x)
{
	Bits b = bits_of(f->type);
	ValId bits = tir_bitcast(l->tir, b.u, x);
	if (is_of_numbers(l, f)) {
		join_numbers(l, f, x, bits, tir_unary(l->tir, OP_NOT, tir_unary(l->tir, OP_ISNAN, x)));
		return;
	}
	ValId integer = tir_bitcast(l->tir, b.i, x);
	join_bits(l, f, integer, integer, bits);
}

void
reduction_rank_merge(Point *l, Reduction *f, const Reduction *g)
{
	if (is_of_numbers(l, f))
		join_numbers(l, f, g->re, g->other, g->third);
	else
		join_bits(l, f, g->re, g->other, g->third);
}

static ValId
extreme_of_bits(Point *l, const Reduction *f, const Bits *b, ValId *nan)
{
	TirKernel *k = l->tir;
	*nan = tir_binary(k, OP_LT, tir_int(k, b->i, b->infinity), f->re);
	if (!BUG(negative_nan_lost))
		*nan = tir_binary(k, OP_OR, *nan, tir_binary(k, OP_LT, tir_int(k, b->u, b->infinity | b->sign), f->third));
	ValId negative = tir_binary(k, OP_LT, is_max(f) ? f->re : f->other, tir_int(k, b->i, 0));
	ValId far = is_max(f) ? f->other : tir_bitcast(k, b->i, f->third);
	return tir_bitcast(k, f->type, tir_select(k, negative, far, is_max(f) ? f->re : f->other));
}

static ValId
extreme_of_numbers(Point *l, const Reduction *f, const Bits *b, ValId *nan)
{
	TirKernel *k = l->tir;
	*nan = tir_unary(k, OP_NOT, f->third);
	ValId sign = tir_binary(k, OP_BAND, f->other, tir_int(k, b->u, b->sign));
	ValId is_zero = tir_binary(k, OP_EQ, f->re, tir_float(k, f->type, 0));
	return tir_select(k, is_zero, tir_bitcast(k, f->type, sign), f->re);
}

ValId
reduction_rank_end(Point *l, const Reduction *f)
{
	Bits b = bits_of(f->type);
	ValId nan = 0, v = is_of_numbers(l, f) ? extreme_of_numbers(l, f, &b, &nan) : extreme_of_bits(l, f, &b, &nan);
	return tir_select(l->tir, nan, tir_float(l->tir, f->type, (double)NAN), v);
}
