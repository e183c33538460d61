/* loops.c: see loops.h. The loop around what stands in a region is that of the region's owner, or the owner. Owners have the
 * larger ids of two, one of which is in the other's region. */
#include "passes/tile/loops.h"

Loops
loops_find(const TirKernel *k, Arena *a)
{
	Loops l = {ARENA_ARRAY(a, ValId, k->inst.n), ARENA_ARRAY(a, ValId, k->inst.n)};
	ValId *of_region = ARENA_ARRAY(a, ValId, k->region.n);
	for (ValId v = 1; v < k->inst.n; v++)
		for (unsigned n = 0; n < tir_inst(k, v)->nregion; n++)
			of_region[tir_inst(k, v)->region + n] = v;
	for (uint32_t r = 0; r < k->region.n; r++)
		for (uint32_t n = 0; n < k->region.at[r].inst.n; n++)
			l.owner[k->region.at[r].inst.at[n]] = of_region[r];
	for (ValId v = 1; v < k->inst.n; v++) {
		ValId o = l.owner[v];
		while (o && tir_inst(k, o)->op != OP_FOR)
			o = l.owner[o];
		l.loop[v] = o;
	}
	return l;
}
