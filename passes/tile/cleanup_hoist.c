/* cleanup_hoist.c: loop invariants, see cleanup.h. Loops are taken innermost first (they have the
 * larger ids), so an instruction can leave several loops. */
#include "passes/tile/cleanup.h"

typedef VEC(ValId) Values;

bool
cleanup_is_pure(Op op)
{
	const OpInfo *p = &op_info[op];
	if (op == OP_CONST || op == OP_IOTA || op == OP_VIEW || op == OP_BUFFER || op == OP_SCALAR ||
	    op == OP_TASK_LO || op == OP_TASK_HI || op == OP_TASK_STEP || op == OP_THREAD || op == OP_RANK)
		return true;
	return p->cls == CLASS_MAP && !(p->flags & F_EFFECT);
}

TirKernel *
cleanup_copy_lists(const TirKernel *k, Arena *a)
{
	TirKernel *to = arena_copy(a, k, sizeof *k);
	to->arena = a;
	to->region.at = arena_copy(a, k->region.at, k->region.n * sizeof *k->region.at);
	to->region.cap = k->region.n;
	return to;
}

static uint32_t *
find_homes(const TirKernel *k, Arena *a)
{
	uint32_t *home = ARENA_ARRAY(a, uint32_t, k->inst.n);
	for (uint32_t r = 0; r < k->region.n; r++)
		for (uint32_t n = 0; n < k->region.at[r].inst.n; n++)
			home[k->region.at[r].inst.at[n]] = r;
	return home;
}

static bool
is_invariant(const TirKernel *k, const uint32_t *home, ValId v, uint32_t region)
{
	if (!cleanup_is_pure((Op)tir_inst(k, v)->op) || (tir_inst(k, v)->op == OP_THREAD && tir_inst(k, v)->imm.i))
		return false;
	for (unsigned n = 0; n < tir_inst(k, v)->narg; n++)
		if (home[tir_arg(k, v, n)] == region)
			return false;
	return true;
}

/* Splits the loop's body into what moves and what stays. */
static void
split_body(TirKernel *k, uint32_t *home, ValId loop, Values *moved)
{
	uint32_t body = tir_inst(k, loop)->region;
	Values stay = {0};
	for (uint32_t n = 0; n < k->region.at[body].inst.n; n++) {
		ValId v = k->region.at[body].inst.at[n];
		bool moves = is_invariant(k, home, v, body);
		if (moves) {
			home[v] = home[loop];
			vec_push(k->arena, moved, v);
		} else {
			vec_push(k->arena, &stay, v);
		}
	}
	k->region.at[body].inst.at = stay.at;
	k->region.at[body].inst.n = stay.n;
	k->region.at[body].inst.cap = stay.cap;
}

static void
insert_before(TirKernel *k, uint32_t region, ValId loop, const Values *moved)
{
	Values list = {0};
	for (uint32_t n = 0; n < k->region.at[region].inst.n; n++) {
		ValId v = k->region.at[region].inst.at[n];
		for (uint32_t m = 0; v == loop && m < moved->n; m++)
			vec_push(k->arena, &list, moved->at[m]);
		vec_push(k->arena, &list, v);
	}
	k->region.at[region].inst.at = list.at;
	k->region.at[region].inst.n = list.n;
	k->region.at[region].inst.cap = list.cap;
}

const TirKernel *
cleanup_hoist(const TirKernel *k, Arena *a)
{
	TirKernel *to = cleanup_copy_lists(k, a);
	uint32_t *home = find_homes(k, a);
	bool any = false;
	for (ValId v = k->inst.n; v-- > 1;) {
		Values moved = {0};
		if (tir_inst(k, v)->op != OP_FOR)
			continue;
		split_body(to, home, v, &moved);
		if (moved.n)
			insert_before(to, home[v], v, &moved);
		any = any || moved.n;
	}
	return any ? to : k;
}
