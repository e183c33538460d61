/* ops_test.c: every operation on every type it is defined on, as scalars and in vectors, against the
 * interpreter to the bit (NaNs being equal). One kernel holds all operations of a type. Arguments:
 * processors to generate for; one that this machine can't run is said and passed over. For a GPU the
 * scalar kernels are assembled by the ptxas that TEXO_PTXAS names; without one that is skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/tir_lanes.h"
#include "ir/tir_slot.h"
#include "tests/codegen/rig.h"
#include "tests/codegen/values.h"

enum { COUNT = 2048 };

typedef struct {
	DType t;
	unsigned lanes;
} Case;

static const unsigned widths[] = {0, 4, 8, 16};
static const char *cpu, *ptxas;
static int nchecked;

/* --- building --- */

typedef struct {
	Rig *r;
	unsigned lanes, nout;
	ValId i, one, n;
} Build;

static ValId
view_of(Build *b, DType t, bool written)
{
	TirKernel *k = b->r->k;
	unsigned buffer = tir_add_buffer(k, name_cstr(b->r->names, arena_text(&b->r->arena, "b%u", k->buffer.n)), t,
	                                 written);
	return tir_view(k, buffer, 1, &b->n, &b->one);
}

/* The elements of this turn of a new input. */
static ValId
input(Build *b, DType t)
{
	ValId view = view_of(b, t, false);
	return tir_load(b->r->k, view, &b->i, 0, b->lanes ? TIR_LANES_ALONG(0) : 0, b->lanes);
}

static void
output(Build *b, ValId v)
{
	ValId view = view_of(b, (DType)tir_inst(b->r->k, v)->type.dtype, true);
	tir_store(b->r->k, view, v, &b->i, 0, b->lanes ? TIR_LANES_ALONG(0) : 0);
	b->nout++;
}

static Build
open_loop(Rig *r, unsigned lanes)
{
	TirKernel *k = r->k;
	Build b = {.r = r, .lanes = lanes};
	ValId step = tir_int(k, DT_I64, lanes ? lanes : 1), lo, hi;
	b.one = tir_int(k, DT_I64, 1);
	b.n = tir_int(k, DT_I64, COUNT);
	lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	b.i = tir_for(k, tir_binary(k, OP_MUL, lo, step), tir_binary(k, OP_MUL, hi, step), step, NULL, 0);
	return b;
}

/* --- running --- */

static void *
new_data(DType t)
{
	return calloc(1, rig_bytes(t, COUNT));
}

static void
compare_outputs(Rig *r, const RigRun *got, const RigRun *want)
{
	for (uint32_t b = 0; b < r->k->buffer.n; b++) {
		DType t = r->k->buffer.at[b].dtype;
		int64_t at = rig_differ(t, got->data[b], want->data[b], COUNT);
		if (at >= 0) {
			Text text;
			text_init(&text, &r->arena);
			tir_print(r->k, &text);
			fail_msg("%s: buffer %u (%s), element %lld differs in\n%s", cpu, b, dtype_info[t].text,
			         (long long)at, text_get(&text));
		}
		nchecked += r->k->buffer.at[b].written;
	}
}

/* Runs the kernel both ways on edge values. */
static void
check_kernel(Rig *r, unsigned lanes)
{
	RigRun got = {0}, want = {0};
	unsigned round = 0;
	if (codegen_is_sm(cpu)) {
		rig_assemble(r, cpu, ptxas, COUNT);
		nchecked++;
		return;
	}
	got.ntask = want.ntask = COUNT / (lanes ? lanes : 1);
	rig_load(r, cpu, got.ntask);
	for (uint32_t b = 0; b < r->k->buffer.n; b++) {
		DType t = r->k->buffer.at[b].dtype;
		got.count[b] = want.count[b] = COUNT;
		got.data[b] = new_data(t);
		want.data[b] = new_data(t);
		if (r->k->buffer.at[b].written)
			continue;
		fill_values(t, got.data[b], COUNT, round, 11);
		fill_values(t, want.data[b], COUNT, round++, 11);
	}
	rig_launch(r, &got);
	rig_interpret(r, &want);
	compare_outputs(r, &got, &want);
	for (uint32_t b = 0; b < r->k->buffer.n; b++) {
		free(got.data[b]);
		free(want.data[b]);
	}
}

/* --- arithmetic --- */

static void
all_operations(Rig *r, const void *arg)
{
	const Case *c = arg;
	DType t = c->t;
	unsigned lanes = c->lanes;
	const TargetOffer offer = codegen_target_offer(cpu);
	Build b = open_loop(r, lanes);
	ValId x[3] = {input(&b, t), input(&b, t), input(&b, t)};
	for (int op = 1; op < OP_COUNT; op++) {
		if (!lane_function((Op)op, t) || (op_info[op].flags & F_MATH) || (op == OP_SCALE && !offer.scale) || (op_info[op].flags & F_UNIT))
			continue;
		TirType type = tir_inst(r->k, x[0])->type;
		ValId y = x[1];
		if (op == OP_SCALE) /* not by an infinite power */
			x[1] = tir_binary(r->k, OP_MAX, tir_float(r->k, t, -5000.5), tir_binary(r->k, OP_MIN, y, tir_float(r->k, t, 5000)));
		if (op_info[op].sig == SIG_CMP || op == OP_ISNAN)
			type.dtype = DT_BOOL;
		output(&b, tir_emit(r->k, (Op)op, type, 0, x, (unsigned)op_info[op].arity));
		x[1] = y;
	}
	tir_end_for(r->k, NULL, 0);
	if (b.nout)
		check_kernel(r, lanes);
}

/* Every type but c64, in every width from widths[first] on. */
static void
each_case(RigBody *body, const char *name, unsigned first, unsigned end)
{
	for (int t = 1; t < DT_C64; t++)
		for (unsigned w = first; w < (codegen_is_sm(cpu) ? 1 : end); w++)
			rig_run(name, body, &(Case){(DType)t, widths[w]});
}

static void
operations(void **state)
{
	(void)state;
	each_case(all_operations, "ops", 0, 4);
}

/* Integers by numbers that the kernel names, for powers of two have no division. */
static void
all_divisors(Rig *r, const void *arg)
{
	const Case *c = arg;
	Build b = open_loop(r, c->lanes);
	ValId x = input(&b, c->t);
	const int64_t by[] = {1, 2, 3, 64, -1, -4, (int64_t)(UINT64_C(1) << (dtype_info[c->t].bits - 1))};
	for (unsigned n = 0; n < sizeof by / sizeof *by; n++) {
		ValId divisor = tir_int(r->k, c->t, slot_wrap(c->t, by[n]));
		output(&b, tir_binary(r->k, OP_IDIV, x, divisor));
		output(&b, tir_binary(r->k, OP_IMOD, x, divisor));
	}
	tir_end_for(r->k, NULL, 0);
	check_kernel(r, c->lanes);
}

static void
divisors(void **state)
{
	(void)state;
	for (int t = 1; t < DT_C64; t++)
		if (dtype_is_int((DType)t) && lane_function(OP_IDIV, (DType)t))
			rig_run("divisors", all_divisors, &(Case){(DType)t, 0});
}

/* --- casts, bitcasts, select --- */

static bool
is_native(DType t)
{
	return t == DT_F32 || t == DT_F64 || dtype_is_int(t) || t == DT_BOOL;
}

static void
all_casts(Rig *r, const void *arg)
{
	const Case *c = arg;
	DType from = c->t;
	unsigned lanes = c->lanes;
	Build b = open_loop(r, lanes);
	ValId x = input(&b, from);
	for (int to = 1; to < DT_COUNT; to++)
		if (is_native(from) && is_native((DType)to) && from != (DType)to)
			output(&b, tir_cast(r->k, (DType)to, x));
	for (int to = 1; to < DT_C64; to++)
		if (dtype_info[from].bits == dtype_info[to].bits && from != DT_BOOL && (DType)to != DT_BOOL &&
		    from != (DType)to)
			output(&b, tir_bitcast(r->k, (DType)to, x));
	ValId cond = input(&b, DT_BOOL), other = input(&b, from);
	output(&b, tir_select(r->k, cond, x, other));
	output(&b, tir_select(r->k, cond, other, x));
	tir_end_for(r->k, NULL, 0);
	check_kernel(r, lanes);
}

static void
casts(void **state)
{
	(void)state;
	each_case(all_casts, "casts", 0, 4);
}

/* --- vectors --- */

static void
all_lane_operations(Rig *r, const void *arg)
{
	const Case *c = arg;
	DType t = c->t;
	Build b = open_loop(r, c->lanes);
	ValId x = input(&b, t);
	if (t == DT_I32 || t == DT_I64 || t == DT_U32 || t == DT_U64) {
		ValId iota = tir_emit(r->k, OP_IOTA, tir_vector(t, b.lanes), 0, NULL, 0);
		output(&b, tir_binary(r->k, OP_ADD, x, iota));
	}
	ValId last = tir_emit(r->k, OP_LANE, tir_scalar(t), b.lanes - 1, &x, 1);
	output(&b, tir_emit(r->k, OP_SPLAT, tir_vector(t, b.lanes), 0, &last, 1));
	for (unsigned by = 1; by < b.lanes; by = by * 2 + 1) /* lanes over the seam of two vectors */
		output(&b, tir_emit(r->k, OP_SLIDE, tir_vector(t, b.lanes), by,
		                    (ValId[]){tir_emit(r->k, OP_SPLAT, tir_vector(t, b.lanes), 0, &last, 1), x}, 2));
	for (unsigned m = 2; m < b.lanes; m *= 2) /* in segments */
		if (b.lanes % m == 0)
			output(&b, tir_emit(r->k, OP_SLIDE, tir_vector(t, b.lanes), TIR_SLIDE(m / 2, m),
			                    (ValId[]){x, tir_emit(r->k, OP_SPLAT, tir_vector(t, b.lanes), 0, &last, 1)}, 2));
	for (unsigned bit = 0; 2u << bit < b.lanes; bit++) { /* woven otherwise than halved */
		ValId half[2];
		for (unsigned side = 0; side < 2; side++)
			half[side] = tir_emit(r->k, OP_HALF, tir_vector(t, b.lanes / 2), 2 * bit + side, &x, 1);
		output(&b, tir_emit(r->k, OP_WEAVE, tir_vector(t, b.lanes), bit ? 0 : 2, half, 2));
	}
	for (unsigned bit = 0; 2u << bit < b.lanes; bit++) /* the lanes without a bit, beside those with it */
		for (unsigned side = 0; side < 2; side++) {
			ValId part = tir_emit(r->k, OP_HALF, tir_vector(t, b.lanes / 2), 2 * bit + side, &x, 1), lane[16];
			for (unsigned n = 0; n < b.lanes; n++)
				lane[n] = tir_emit(r->k, OP_LANE, tir_scalar(t), n % (b.lanes / 2), &part, 1);
			output(&b, tir_emit(r->k, OP_JOIN, tir_vector(t, b.lanes), 0, lane, b.lanes));
		}
	if (t == DT_U32 || t == DT_I64) /* whether one lane is as another, and whether one is not */
		for (int op = OP_EQ; op <= OP_LE; op += OP_LE - OP_EQ) {
			ValId same = tir_binary(r->k, (Op)op, x, tir_emit(r->k, OP_SPLAT, tir_vector(t, b.lanes), 0, &last, 1));
			ValId any = tir_emit(r->k, OP_ANY, tir_scalar(DT_BOOL), 0, &same, 1);
			output(&b, tir_emit(r->k, OP_SPLAT, tir_vector(DT_BOOL, b.lanes), 0, &any, 1));
			any = tir_unary(r->k, OP_NOT, same);
			any = tir_emit(r->k, OP_ANY, tir_scalar(DT_BOOL), 0, &any, 1);
			output(&b, tir_emit(r->k, OP_SPLAT, tir_vector(DT_BOOL, b.lanes), 0, &any, 1));
		}
	if (dtype_info[t].bits == 32) /* the lanes that others say, and the first of them as a scalar */
		for (unsigned n = 2; n <= 16; n *= 2) {
			ValId lane[16], number = tir_bitcast(r->k, DT_U32, x), first;
			for (unsigned k = 0; k < n; k++)
				lane[k] = tir_emit(r->k, OP_LANE, tir_scalar(t), k % b.lanes, &x, 1);
			ValId table = tir_emit(r->k, OP_JOIN, tir_vector(t, n), 0, lane, n);
			output(&b, tir_emit(r->k, OP_PICK, tir_vector(t, b.lanes), 0, (ValId[]){table, number}, 2));
			first = tir_emit(r->k, OP_LANE, tir_scalar(DT_U32), 0, &number, 1);
			first = tir_emit(r->k, OP_PICK, tir_scalar(t), 0, (ValId[]){table, first}, 2);
			output(&b, tir_emit(r->k, OP_SPLAT, tir_vector(t, b.lanes), 0, &first, 1));
		}
	if (b.lanes >= 4) { /* lane 1 of the upper half */
		ValId half = tir_emit(r->k, OP_LANE, tir_vector(t, b.lanes / 2), b.lanes / 2, &x, 1);
		ValId second = tir_emit(r->k, OP_LANE, tir_scalar(t), 1, &half, 1);
		output(&b, tir_emit(r->k, OP_SPLAT, tir_vector(t, b.lanes), 0, &second, 1));
	}
	tir_end_for(r->k, NULL, 0);
	check_kernel(r, b.lanes);
}

static void
lane_operations(void **state)
{
	(void)state;
	each_case(all_lane_operations, "lanes", 1, 4);
}

/* --- constants --- */

static void
float_constants(Build *b, DType t)
{
	static const double value[] = {0.0, -0.0, 1.0, -1.5, 6.0, 0.5, 1e-7, 448.0, 57344.0, 65504.0, 1e-40};
	for (unsigned v = 0; v < sizeof value / sizeof *value && b->nout < 50; v++) {
		ValId c = tir_float(b->r->k, t, value[v]);
		output(b, b->lanes ? tir_emit(b->r->k, OP_SPLAT, tir_vector(t, b->lanes), 0, &c, 1) : c);
	}
	if (b->lanes) { /* a vector constant, and what only a decoder can make */
		TirInst c = *tir_inst(b->r->k, tir_float(b->r->k, t, -2.0));
		output(b, tir_emit(b->r->k, OP_CONST, tir_vector(t, b->lanes), c.imm.i, NULL, 0));
	}
}

static void
all_constants(Rig *r, const void *arg)
{
	const Case *c = arg;
	Build b = open_loop(r, c->lanes);
	output(&b, input(&b, DT_BOOL)); /* so that there is an input */
	if (dtype_is_float(c->t))
		float_constants(&b, c->t);
	for (int v = -9; v < 9 && !dtype_is_float(c->t); v++) {
		TirType type = {(uint8_t)c->t, (uint16_t)c->lanes};
		output(&b, tir_emit(r->k, OP_CONST, type, tir_inst(r->k, tir_int(r->k, c->t, v))->imm.i, NULL, 0));
	}
	tir_end_for(r->k, NULL, 0);
	check_kernel(r, b.lanes);
}

static void
constants(void **state)
{
	(void)state;
	each_case(all_constants, "constants", 0, 2);
}

int
main(int argc, char **argv)
{
	int failed = 0;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations),
		cmocka_unit_test(divisors),
		cmocka_unit_test(casts),
		cmocka_unit_test(lane_operations),
		cmocka_unit_test(constants),
	};
	for (int a = 1; a < argc; a++) {
		cpu = argv[a];
		ptxas = getenv("TEXO_PTXAS");
		if (codegen_is_sm(cpu) && (!ptxas || !*ptxas)) {
			printf("skipped: there is no ptxas\n");
			return 77;
		}
		if (!codegen_is_sm(cpu) && !rig_can_run(cpu)) {
			printf("%s: not here\n", cpu);
			continue;
		}
		failed += cmocka_run_group_tests_name(cpu, tests, NULL, NULL);
	}
	printf("%d results compared\n", nchecked);
	return failed != 0 || nchecked == 0;
}
