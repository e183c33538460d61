/* tir_banks.c: what a thread of a kernel of roles (channel.h) has in registers of its own name: accumulators and kept factors,
 * as large as the products of the kernel make them. */
#include "ir/tir.h"

static TirRoles
roles_of(const TirKernel *k)
{
	for (ValId v = 1; v < k->inst.n; v++)
		if (tir_inst(k, v)->op == OP_ROLES)
			return tir_roles(tir_inst(k, v)->imm.i);
	return (TirRoles){.shares = 1};
}

/* The product of an instruction; false: it is none. */
static bool
product_of(const TirInst *p, TirProduct *out)
{
	if (p->op != OP_MMA && p->op != OP_PRODUCT)
		return false;
	*out = p->op == OP_MMA ? tir_mma(p->imm.i) : tir_product(p->imm.i);
	return out->channel < 64 && out->other < 64;
}

unsigned
tir_bank_columns(const TirKernel *k, unsigned bank, unsigned *registers)
{
	unsigned shares = roles_of(k).shares, columns = 0, rows = TIR_MMA_ROWS;
	TirProduct x;
	for (ValId v = 1; v < k->inst.n; v++) {
		if (!product_of(tir_inst(k, v), &x) || x.bank != bank || x.channel >= k->channel.n || x.other >= k->channel.n ||
		    x.b >= k->channel.at[x.other].nparts || (!x.kept && x.a >= k->channel.at[x.channel].nparts))
			continue;
		columns = x.nb * k->channel.at[x.other].part[x.b].rows;
		rows = x.kept ? (unsigned)TIR_MMA_ROWS : x.na * tir_accumulator_rows(&k->channel.at[x.channel].part[x.a], shares);
	}
	if (registers)
		*registers = columns ? rows / TIR_MMA_ROWS * (columns / 2) : 0;
	return columns;
}

unsigned
tir_kept_terms(const TirKernel *k)
{
	unsigned most = 0;
	TirProduct x;
	for (ValId v = 1; v < k->inst.n; v++)
		if (product_of(tir_inst(k, v), &x) && x.kept && (x.a + x.nterms) * TIR_PART_TERMS > most)
			most = (x.a + x.nterms) * TIR_PART_TERMS;
	return most;
}

bool
tir_is_held(const TirKernel *k, unsigned channel)
{
	for (ValId v = 1; v < k->inst.n; v++)
		if ((tir_inst(k, v)->op == OP_HELD || tir_inst(k, v)->op == OP_TAKE) && TIR_CHANNEL_OF(tir_inst(k, v)->imm.i) == channel)
			return true;
	return false;
}
