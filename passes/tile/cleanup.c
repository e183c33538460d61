/* cleanup: carry nothing twice, move invariants out of loops, compute constants, share equal values, drop unused ones.
 *
 * in     any kernel
 * out    the same effects in the same order, from fewer instructions; ids anew
 * fp     exact: constants are computed by the interpreter's own operations (ir/tir_lanes.h)
 * tests  tests/tile/cleanup_test.c; random kernels before and after
 *
 * Only operations without effects that are defined for every input are moved, so computing one that a
 * loop without iterations would not have computed changes nothing. Nothing leaves the branch of an IF:
 * branches may be there to be avoided. */
#include "passes/tile/cleanup.h"
#include "passes/tile/tile.h"

/* A load that waits for what another task posts, whether or not the word is wanted. */
static bool
is_wait(const TirKernel *k, ValId v)
{
	return tir_inst(k, v)->op == OP_LOAD && k->buffer.at[tir_inst(k, tir_arg(k, tir_arg(k, v, 0), 0))->imm.i].posted;
}

/* Values that an effect needs. Operands have smaller ids, so one walk down suffices. */
static bool *
find_live(const TirKernel *k, Arena *a, bool *all)
{
	bool *live = ARENA_ARRAY(a, bool, k->inst.n);
	*all = true;
	for (ValId v = k->inst.n; v-- > 1;) {
		const TirInst *p = tir_inst(k, v);
		live[v] = live[v] || (op_info[p->op].flags & F_EFFECT) || p->op == OP_BLOCKARG ||
		          p->op == OP_RESULT || is_wait(k, v);
		*all = *all && live[v];
		for (unsigned n = 0; live[v] && n < p->narg; n++)
			live[tir_arg(k, v, n)] = true;
	}
	return live;
}

static ValId
copy(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	(void)user;
	return tir_copy_inst(to, from, v, arg);
}

/* Takes the dead out of the lists; the copy that follows gives the rest new ids. */
const TirKernel *
cleanup_drop_dead(const TirKernel *k, Arena *a)
{
	bool all;
	const bool *live = find_live(k, a, &all);
	if (all)
		return k;
	TirKernel *less = cleanup_copy_lists(k, a);
	for (uint32_t r = 0; r < k->region.n; r++) {
		ValId *list = ARENA_ARRAY(a, ValId, k->region.at[r].inst.n);
		uint32_t kept = 0;
		for (uint32_t n = 0; n < k->region.at[r].inst.n; n++)
			if (live[k->region.at[r].inst.at[n]])
				list[kept++] = k->region.at[r].inst.at[n];
		less->region.at[r].inst.at = list;
		less->region.at[r].inst.n = kept;
		less->region.at[r].inst.cap = k->region.at[r].inst.n;
	}
	return tir_rewrite(less, a, copy, NULL);
}

TirKernel *
tile_cleanup(const TirKernel *k, Arena *a)
{
	const TirKernel *carried = cleanup_carried(k, a), *hoisted = cleanup_hoist(carried, a);
	const TirKernel *to = cleanup_drop_dead(cleanup_share(hoisted, a, hoisted != k), a);
	return (TirKernel *)(uintptr_t)to;
}
