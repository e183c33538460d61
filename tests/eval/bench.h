/* bench.h: small graphs for the oracle's tests: built by hand, bound to data, evaluated. */
#ifndef TEXO_TESTS_EVAL_BENCH_H
#define TEXO_TESTS_EVAL_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/eval.h"

enum { BENCH_MAX_PARAM = 8 };

typedef struct {
	Arena arena;
	Unwind unwind;
	Graph *g;
	const void *data[BENCH_MAX_PARAM];
	const int64_t *shape[BENCH_MAX_PARAM];
	int64_t shapes[BENCH_MAX_PARAM][TG_MAX_RANK];
	EvalOutputs out;
} Bench;

void bench_open(Bench *b, FpMode fp);
void bench_close(Bench *b);
ExprId bench_i64(Bench *b, int64_t v);
ExprId bench_f32(Bench *b, double v);
ExprId bench_add(Bench *b, ExprId x, ExprId y);
ExprId bench_mul(Bench *b, ExprId x, ExprId y);
/* A parameter of fixed shape n0, n1 (rank of them) with its data. */
TensorId bench_input(Bench *b, DType t, const void *data, unsigned rank, int64_t n0, int64_t n1);
/* t[e], t[e0, e1] with an access id. */
ExprId bench_read(Bench *b, TensorId t, unsigned rank, ExprId e0, ExprId e1, AccessId access);
AccessId bench_access(Bench *b, AccessKind kind, const char *text);
/* A node with npar axes of extents n0, n1; further members are set by the caller beforehand. */
TensorId bench_node(Bench *b, Node n, DType t, int64_t n0, int64_t n1);
/* Adds reduced axis npar + nred, 0 <= r < n, and returns its AXIS. */
ExprId bench_reduced(Bench *b, Node *n, int64_t extent);
void bench_result(Bench *b, TensorId t);
/* Evaluates; a bug or an exhausted limit fails the test. */
EvalStatus bench_eval(Bench *b);
const EvalValue *bench_at(const Bench *b, unsigned result, int64_t n);
/* Evaluates: the first result must be these values, without a bound and without a fault. */
void bench_expect_exact(Bench *b, const double *want, int64_t n);
/* Whether evaluation ends in bug(). */
int bench_is_bug(Bench *b);

#endif
