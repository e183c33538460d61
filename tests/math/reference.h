/* reference.h: what the functions ought to give, and distances from it. Shares nothing with ir/ or
 * passes/ but the names of operations and types. */
#ifndef TEXO_TESTS_MATH_REFERENCE_H
#define TEXO_TESTS_MATH_REFERENCE_H

#include "ir/op.h"

/* op(x, y) by the C library: in f64 (for results of at most f32), or in long double, 11 bits more than
 * f64 has. Either is far more exact than what it is compared with. */
long double reference(Op op, bool wide, double x, double y);
double reference_narrow(Op op, double x, double y);

/* Element i of packed storage of f64, f32, f16 or bf16. */
double number_at(DType t, const void *data, size_t i);

/* |got - want| in units of the last place of want in type t, the exponent unlimited above; infinite
 * where one is NaN, infinite or a zero of a sign and the other can't be taken for it. */
double distance(DType t, double got, long double want);
/* The same for f32 without long double, where want is finite and no zero, and got as well or what want is rounded to;
 * else false. */
bool finite_distance(double got, double want, double *d);
bool is_subnormal(DType t, long double v);

/* Whether got is the number of type t nearest to want (ties to even), signs of zero included. */
bool is_nearest(DType t, double got, long double want);

#endif
