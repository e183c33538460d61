/* narrow.c: see narrow.h. */
#include "tests/math/narrow.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/math/points.h"
#include "tests/math/reference.h"

enum { BLOCK = 4096, CODES = 65536 };

const NarrowRow narrow_rows[NNARROW] = {{OP_EXP, DT_BF16}, {OP_EXP, DT_F16}, {OP_EXP2, DT_BF16}, {OP_EXP2, DT_F16},
                                             {OP_TANH, DT_BF16}, {OP_TANH, DT_F16}};

const char *
narrow_name(const NarrowRow *row)
{
	static char text[32];
	snprintf(text, sizeof text, "%s to %s", op_info[row->op].text, dtype_info[row->to].text);
	return text;
}

/* Infinite where one alone is NaN or infinite, but next to the threshold, where an error may reach beyond it. */
static double
error_of(DType to, double got, double want)
{
	int ex, digits = to == DT_F16 ? 11 : 8;
	if (isnan(got) || isnan(want))
		return isnan(got) && isnan(want) ? 0 : (double)INFINITY;
	frexp(want, &ex);
	double unit = ldexp(1, (ex < -125 ? -125 : ex) - digits - 4), over = 0x1.ffffffp127;
	if (want >= over || isinf(got))
		return isinf(got) && want >= over - ldexp(1, 128 - digits - 4) ? 0 : want < over + ldexp(1, 128 - digits - 4) ? 0 : (double)INFINITY;
	return fabs(got - want) / unit;
}

static void
open_kernel(Rig *r, const NarrowRow *row, DType from, DType result, NarrowLower *lower)
{
	rig_open(r, "f");
	kernel_map(r, row->op, from, DT_F32, result, 16);
	for (ValId v = 1; v < r->k->inst.n; v++)
		if (tir_inst(r->k, v)->op == row->op)
			r->k->inst.at[v].imm.i = row->to;
	lower(r);
	if (lower != kernel_lower_narrow_ex2)
		rig_load(r, "host", 1);
}

static void
run_kernel(Rig *r, NarrowLower *lower, RigRun *run)
{
	if (lower == kernel_lower_narrow_ex2)
		rig_interpret(r, run);
	else
		rig_launch(r, run);
}

static void
measure(NarrowMeasure *m, const NarrowRow *row, NarrowLower *lower, DType from, uint64_t npoint)
{
	static double x[BLOCK], y[BLOCK], z[BLOCK];
	Rig r;
	int64_t n = BLOCK;
	open_kernel(&r, row, from, DT_F32, lower);
	RigRun run = {.data = {x, z}, .count = {n, n, n}, .scalar = {&n}, .ntask = 1};
	for (uint64_t first = 0; first < npoint; first += BLOCK) {
		points(row->op, from, first, BLOCK, x, y);
		run_kernel(&r, lower, &run);
		for (size_t i = 0; i < BLOCK; i++) {
			double a = number_at(from, x, i), want = (double)reference(row->op, false, a, 0), got = number_at(DT_F32, z, i);
			double e = error_of(row->to, got, want);
			if (row->op == OP_TANH && !isnan(want))
				m->absolute = fmax(m->absolute, fabs(got - want));
			if (e > m->worst) {
				m->worst = e;
				m->at = a;
			}
		}
	}
	rig_close(&r);
}

static int64_t
count_not_nearest(const NarrowRow *row, NarrowLower *lower)
{
	static double x[BLOCK], y[BLOCK], z[BLOCK];
	Rig r;
	int64_t n = BLOCK, count = 0;
	open_kernel(&r, row, row->to, row->to, lower);
	RigRun run = {.data = {x, z}, .count = {n, n, n}, .scalar = {&n}, .ntask = 1};
	for (uint64_t first = 0; first < CODES; first += BLOCK) {
		points(row->op, row->to, first, BLOCK, x, y);
		run_kernel(&r, lower, &run);
		for (size_t i = 0; i < BLOCK; i++)
			count += !is_nearest(row->to, number_at(row->to, z, i), reference(row->op, false, number_at(row->to, x, i), 0));
	}
	rig_close(&r);
	return count;
}

NarrowMeasure
narrow_measure(const NarrowRow *row, NarrowLower *lower, int log2_points)
{
	NarrowMeasure m = {0};
	measure(&m, row, lower, DT_F32, UINT64_C(1) << log2_points);
	measure(&m, row, lower, row->to, CODES);
	m.not_nearest = count_not_nearest(row, lower);
	return m;
}
