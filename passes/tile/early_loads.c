/* early_loads: what an iteration of a loop loads comes before what it computes.
 *
 * in     a kernel of form SPREAD; another, or one whose tasks wait for others, is left as it is
 * out    the same: in a loop's body that only loads and computes, loads stand first with what their addresses take,
 *        as many as a thread has registers for, then what is computed from them, then the next ones; what is loaded once is
 *        not loaded again; ids anew
 * fp     exact: nothing but the order of loads and of operations without effects changes
 * tests  tests/tile/early_loads_test.c; random kernels before and after
 *
 * A thread waits for memory when it uses what it loaded, so loads that stand side by side are waited for together.
 * The assembler would find them, but for masks: it does not move a load over the use of another, masked one. Nor does
 * anybody behind see that two masked loads are the same one, as where the steps of an unrolled loop read the same element. */
#include "passes/tile/cleanup.h"
#include "passes/tile/tile.h"

#include <string.h>

enum {
	MOST_WORDS = 128,       /* of 32 bits that loads side by side may fill: half a thread's registers */
	BLOCK_REGISTERS = 1 << 16 /* of a multiprocessor */
};

typedef struct {
	const TirKernel *k;
	Arena *arena;
	bool *wanted; /* by ValId: a load needs it */
	ValId *equal; /* by ValId, of a load: one of its region before it, with the same result; 0: none */
	ValId *made;  /* by ValId: what it is in the new kernel */
	VEC(ValId) waiting, out, met; /* met: the region's loads of which there is one each */
} Early;

/* How many words of registers a thread has for what it loads. */
static unsigned
room_for_words(const TirKernel *k)
{
	unsigned each = k->resident ? BLOCK_REGISTERS / ((unsigned)k->resident * k->threads) / 2 : MOST_WORDS;
	return each < MOST_WORDS ? each : MOST_WORDS;
}

static unsigned
words_of(const TirInst *p)
{
	unsigned bits = dtype_info[p->type.dtype].bits * (p->type.lanes ? p->type.lanes : 1);
	return (bits + 31) / 32;
}

/* How many loads the region has; 0 where it has anything but these and what is pure. */
static unsigned
count_loads(const TirKernel *k, uint32_t region)
{
	const TirRegion *r = &k->region.at[region];
	unsigned loads = 0;
	for (uint32_t n = 0; n < r->inst.n; n++) {
		Op op = (Op)tir_inst(k, r->inst.at[n])->op;
		if (op == OP_LOAD)
			loads++;
		else if (op != OP_BLOCKARG && op != OP_YIELD && op != OP_LANE && op != OP_JOIN && !cleanup_is_pure(op))
			return 0;
	}
	return loads;
}

/* Those that wait and that v needs, then v. */
static void
place_with_operands(Early *e, ValId v)
{
	uint32_t kept = 0;
	for (unsigned n = 0; n < tir_inst(e->k, v)->narg; n++)
		e->wanted[tir_arg(e->k, v, n)] = true;
	for (uint32_t n = e->waiting.n; n-- > 0;) {
		ValId w = e->waiting.at[n];
		for (unsigned i = 0; e->wanted[w] && i < tir_inst(e->k, w)->narg; i++)
			e->wanted[tir_arg(e->k, w, i)] = true;
	}
	for (uint32_t n = 0; n < e->waiting.n; n++) {
		ValId w = e->waiting.at[n];
		if (e->wanted[w])
			vec_push(e->arena, &e->out, w);
		else
			e->waiting.at[kept++] = w;
	}
	e->waiting.n = kept;
	vec_push(e->arena, &e->out, v);
}

static void
place_all(Early *e)
{
	for (uint32_t n = 0; n < e->waiting.n; n++)
		vec_push(e->arena, &e->out, e->waiting.at[n]);
	e->waiting.n = 0;
}

/* The load of those met that has the operands of v, and its type; 0: there is none, and v is met. */
static ValId
find_equal(Early *e, ValId v)
{
	const TirInst *p = tir_inst(e->k, v);
	for (uint32_t n = 0; n < e->met.n; n++) {
		const TirInst *q = tir_inst(e->k, e->met.at[n]);
		if (q->imm.i == p->imm.i && q->type.dtype == p->type.dtype && q->type.lanes == p->type.lanes && q->narg == p->narg &&
		    memcmp(&e->k->arg.at[q->arg], &e->k->arg.at[p->arg], p->narg * sizeof(ValId)) == 0)
			return e->met.at[n];
	}
	vec_push(e->arena, &e->met, v);
	return 0;
}

static void
order_region(Early *e, TirKernel *to, uint32_t region)
{
	const TirRegion *r = &e->k->region.at[region];
	unsigned room = room_for_words(e->k), words = 0;
	e->out.n = e->met.n = 0;
	for (uint32_t n = 0; n < r->inst.n; n++) {
		ValId v = r->inst.at[n];
		const TirInst *p = tir_inst(e->k, v);
		if (p->op != OP_LOAD || (e->equal[v] = find_equal(e, v))) {
			if (p->op == OP_BLOCKARG)
				vec_push(e->arena, &e->out, v);
			else
				vec_push(e->arena, &e->waiting, v);
			continue;
		}
		if (words + words_of(p) > room) {
			place_all(e);
			words = 0;
		}
		words += words_of(p);
		place_with_operands(e, v);
	}
	place_all(e);
	to->region.at[region].inst.at = arena_copy(e->arena, e->out.at, e->out.n * sizeof *e->out.at);
	to->region.at[region].inst.cap = e->out.n;
}

static ValId
copy(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	Early *e = user;
	return e->made[v] = e->equal[v] ? e->made[e->equal[v]] : tir_copy_inst(to, from, v, arg);
}

TirKernel *
tile_early_loads(const TirKernel *k, Arena *a)
{
	TirKernel *to = NULL;
	Early e = {.k = k, .arena = a};
	for (ValId v = 1; k->form == TIR_SPREAD && !tir_posts(k) && v < k->inst.n; v++) {
		if (tir_inst(k, v)->op != OP_FOR || count_loads(k, tir_inst(k, v)->region) < 2)
			continue;
		if (!to) {
			to = cleanup_copy_lists(k, a);
			e.wanted = ARENA_ARRAY(a, bool, k->inst.n);
			e.equal = ARENA_ARRAY(a, ValId, k->inst.n);
			e.made = ARENA_ARRAY(a, ValId, k->inst.n);
		}
		order_region(&e, to, tir_inst(k, v)->region);
	}
	return to ? tir_rewrite(to, a, copy, &e) : (TirKernel *)(uintptr_t)k;
}
