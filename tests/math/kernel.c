/* kernel.c: see kernel.h. */
#include "tests/math/kernel.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "passes/tile/tile.h"

static ValId
apply(TirKernel *k, Op op, DType arith, DType to, const ValId *in)
{
	ValId a = tir_cast(k, arith, in[0]);
	if (op != OP_NONE && op_info[op].arity == 2)
		a = tir_binary(k, op, a, tir_cast(k, arith, in[1]));
	else if (op != OP_NONE)
		a = tir_unary(k, op, a);
	return tir_cast(k, to, a);
}

void
kernel_map(Rig *r, Op op, DType from, DType arith, DType to, unsigned lanes)
{
	TirKernel *k = r->k;
	static const char *const name[3] = {"x", "y", "z"};
	unsigned nin = op == OP_NONE ? 1 : (unsigned)op_info[op].arity;
	tir_add_scalar(k, name_cstr(r->names, "n"), DT_I64);
	ValId one = tir_int(k, DT_I64, 1), view[3], in[2];
	ValId n = tir_emit(k, OP_SCALAR, tir_scalar(DT_I64), 0, NULL, 0);
	for (unsigned b = 0; b <= nin; b++) {
		tir_add_buffer(k, name_cstr(r->names, name[b < nin ? b : 2]), b < nin ? from : to, b == nin);
		view[b] = tir_view(k, b, 1, &n, &one);
	}
	ValId step = tir_int(k, DT_I64, lanes ? lanes : 1);
	ValId i = tir_for(k, tir_int(k, DT_I64, 0), n, step, NULL, 0);
	ValId mask = 0;
	int64_t flags = 0;
	if (lanes) {
		ValId lane = tir_emit(k, OP_IOTA, tir_vector(DT_I64, lanes), 0, NULL, 0);
		mask = tir_binary(k, OP_LT, tir_binary(k, OP_ADD, i, lane), n);
		flags = TIR_MASKED | TIR_LANES_ALONG(0);
	}
	for (unsigned b = 0; b < nin; b++)
		in[b] = tir_load(k, view[b], &i, mask, flags, lanes);
	tir_store(k, view[nin], apply(k, op, arith, to, in), &i, mask, flags);
	tir_end_for(k, NULL, 0);
}

void
kernel_lower_near(Rig *r)
{
	r->k = tile_expand_near(r->k, &r->arena);
	kernel_lower(r);
}

void
kernel_lower_scaled(Rig *r)
{
	r->k = tile_expand_scaled(r->k, &r->arena);
	kernel_lower(r);
}

void
kernel_lower_pick(Rig *r)
{
	r->k = tile_expand_pick(r->k, &r->arena);
	kernel_lower_near(r);
}

void
kernel_lower_pick_scaled(Rig *r)
{
	r->k = tile_expand_pick_scaled(r->k, &r->arena);
	kernel_lower_scaled(r);
}

void
kernel_lower_narrow(Rig *r)
{
	r->k = tile_narrow_short(r->k, &r->arena);
	kernel_lower(r);
}

void
kernel_lower_narrow_scaled(Rig *r)
{
	r->k = tile_narrow_scaled(r->k, &r->arena);
	kernel_lower(r);
}

void
kernel_lower_narrow_ex2(Rig *r)
{
	r->k = tile_narrow_ex2(r->k, &r->arena);
	kernel_lower(r);
}

void
kernel_lower_ex2(Rig *r)
{
	r->k = tile_expand_ex2(r->k, &r->arena);
	kernel_lower(r);
}

void
kernel_lower(Rig *r)
{
	const char *error = NULL;
	r->k = tile_legalize(tile_expand_math(r->k, &r->arena), &r->arena);
	if (!tir_verify(r->k, &r->arena, &error))
		fail_msg("after lowering: %s", error);
}

void
kernel_mark_low(Rig *r)
{
	for (ValId v = 1; v < r->k->inst.n; v++)
		if (op_info[r->k->inst.at[v].op].flags & F_NARROW)
			r->k->inst.at[v].imm.i |= TIR_NO_MORE_THAN_0;
}

uint64_t
mix_bits(uint64_t n)
{
	n += UINT64_C(0x9e3779b97f4a7c15);
	n = (n ^ n >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	n = (n ^ n >> 27) * UINT64_C(0x94d049bb133111eb);
	return n ^ n >> 31;
}
