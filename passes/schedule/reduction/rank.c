/* rank.c: max and min of floats by vectors, on ranks. A float's rank is an integer that is
 * ordered as floats are, -0 below +0, which makes a term of max one integer operation instead of the
 * five that a NaN and the zeros' signs cost. NaNs rank beyond the infinity of their sign; so beside
 * the extreme the fold keeps the one of the other end, and a NaN was met if either is beyond. */
#include "passes/schedule/schedule.h"
#include "ir/bugs.h"

#include <math.h>

typedef struct {
	DType i, u; /* the integers of the type's size */
	uint64_t magnitude; /* all bits but the sign */
	int64_t infinity;   /* its rank; the other's is the complement */
} Rank;

static Rank
rank_of(DType t)
{
	if (t == DT_F64)
		return (Rank){DT_I64, DT_U64, INT64_MAX, 0x7ff0000000000000};
	return (Rank){DT_I32, DT_U32, INT32_MAX, 0x7f800000};
}

/* The bits of a float to its rank, and back: the magnitude's bits are turned where the sign is set. */
static ValId
turn(Point *l, const Rank *r, ValId v)
{
	ValId bits = tir_bitcast(l->tir, r->u, v), zero = tir_int(l->tir, r->i, 0);
	ValId turned = tir_binary(l->tir, OP_BXOR, bits, tir_int(l->tir, r->u, (int64_t)r->magnitude));
	return tir_select(l->tir, tir_binary(l->tir, OP_LT, tir_bitcast(l->tir, r->i, v), zero), turned, bits);
}

void
reduction_rank(Point *l, Reduction *f)
{
	if ((f->monoid != MON_MAX && f->monoid != MON_MIN) || (f->type != DT_F32 && f->type != DT_F64))
		return;
	Rank r = rank_of(f->type);
	bool max = f->monoid == MON_MAX;
	f->re = tir_int(l->tir, r.i, max ? ~r.infinity : r.infinity);
	f->other = tir_int(l->tir, r.i, max ? r.infinity : ~r.infinity);
}

static void
join(Point *l, Reduction *f, ValId extreme, ValId other)
{
	bool max = f->monoid == MON_MAX;
	f->re = tir_binary(l->tir, max ? OP_MAX : OP_MIN, f->re, extreme);
	f->other = tir_binary(l->tir, max ? OP_MIN : OP_MAX, f->other, other);
}

void
reduction_rank_term(Point *l, Reduction *f, ValId x)
{
	Rank r = rank_of(f->type);
	ValId rank = tir_bitcast(l->tir, r.i, turn(l, &r, x));
	join(l, f, rank, rank);
}

void
reduction_rank_merge(Point *l, Reduction *f, const Reduction *g)
{
	join(l, f, g->re, g->other);
}

ValId
reduction_rank_end(Point *l, const Reduction *f)
{
	Rank r = rank_of(f->type);
	bool max = f->monoid == MON_MAX;
	ValId high = max ? f->re : f->other, low = max ? f->other : f->re;
	ValId nan = tir_binary(l->tir, OP_LT, tir_int(l->tir, r.i, r.infinity), high);
	if (!BUG(negative_nan_lost))
		nan = tir_binary(l->tir, OP_OR, nan, tir_binary(l->tir, OP_LT, low, tir_int(l->tir, r.i, ~r.infinity)));
	ValId v = tir_bitcast(l->tir, f->type, turn(l, &r, f->re));
	return tir_select(l->tir, nan, tir_float(l->tir, f->type, (double)NAN), v);
}
