/* fit: lets a thread have the registers that its body needs.
 *
 * in     a kernel of form SPREAD; another, or one of matrices, whose registers its template counts, is left as it is
 * out    the same, with so few resident blocks asked for that what a thread holds fits into its share; where that is so
 *        already, the same kernel
 * fp     exact
 * tests  tests/tile/fit_test.c
 *
 * How many blocks are resident is a schedule's choice, by the elements that a thread has; what is computed of them is known
 * only here, when functions and casts are written out. Where it does not fit, values go to memory and come again all the
 * time; fewer threads at once cost less.
 *
 * A value is held from where it stands to its last use, one that a loop finds from outside to the loop's end; what is made
 * of one value alone, such as a cast, stands where it is first used; a constant that accesses add to an index is theirs; an
 * index that a loop finds from outside, and has another use for, has a product with each stride beside it. A quotient of 64
 * bits is code of its own, with DIVISION words beside it. Masks have predicates, but those that are loaded are too many. The
 * assembler finds a better order still, by which SPARED words more than the share fit. It finds none where values have 64
 * bits: they lie in pairs, and what is computed with them is as wide, for which a quarter more is counted. */
#include "passes/tile/tile.h"

#include "ir/channel.h"

enum {
	SPARED = 20, DIVISION = 40,
	QUARTERS = 4, WIDE_QUARTERS = 5, /* of a word; of one of a wide value */
	MOST_REGISTERS = 255, STEP_REGISTERS = 8,
	PARTS = 4 /* of a multiprocessor */
};

typedef struct {
	const TirKernel *k;
	Arena *arena;
	uint32_t *at, *first, *last; /* by value: its place, and those of its first and last use; 0: none */
	uint32_t *home;        /* by value: its region */
	uint32_t *begin, *end; /* by region: its places */
	ValId *owner;          /* by region: the loop or condition whose it is */
	bool *same;            /* by value: whether it is one integer for all threads */
	bool *wanted;          /* by value: whether anything but an access takes it for an index */
} Held;

/* Whether v is an integer that does not depend on the thread: those have registers of their own. */
static bool
is_same(const Held *h, ValId v)
{
	const TirInst *p = tir_inst(h->k, v);
	if (p->op == OP_LOAD || p->op == OP_RESULT || p->op == OP_THREAD || p->op == OP_SHUFFLE || p->op == OP_IOTA)
		return false;
	if (p->op == OP_BLOCKARG)
		return p->imm.i == 0; /* a loop's index */
	bool same = p->type.lanes == 0 && !dtype_is_float((DType)p->type.dtype);
	for (unsigned n = 0; same && n < p->narg; n++)
		same = h->same[tir_arg(h->k, v, n)];
	return same;
}

static uint32_t
number(Held *h, uint32_t region, uint32_t place)
{
	const TirRegion *r = &h->k->region.at[region];
	h->begin[region] = place;
	for (uint32_t n = 0; n < r->inst.n; n++) {
		ValId v = r->inst.at[n];
		const TirInst *p = tir_inst(h->k, v);
		h->at[v] = ++place;
		h->home[v] = region;
		h->same[v] = is_same(h, v);
		for (unsigned c = 0; c < p->nregion; c++) {
			h->owner[p->region + c] = v;
			place = number(h, p->region + c, place);
		}
	}
	return h->end[region] = ++place;
}

static void
note_wanted(Held *h)
{
	for (ValId v = 1; v < h->k->inst.n; v++) {
		const TirInst *p = tir_inst(h->k, v);
		bool access = p->op == OP_LOAD || p->op == OP_STORE || p->op == OP_ASYNC_COPY;
		unsigned value = p->op == OP_STORE ? 1 : p->op == OP_ASYNC_COPY ? 2 : p->narg; /* which operand is no index */
		for (unsigned n = 0; n < p->narg; n++)
			if (!access || n == value)
				h->wanted[tir_arg(h->k, v, n)] = true;
	}
}

/* Whether v is an index and a constant beside it, which accesses have in themselves, and for nothing else. */
static bool
is_offset(const Held *h, ValId v)
{
	const TirInst *p = tir_inst(h->k, v);
	return p->op == OP_ADD && p->type.dtype == DT_I64 && !p->type.lanes && !h->wanted[v] &&
	       (tir_inst(h->k, tir_arg(h->k, v, 0))->op == OP_CONST || tir_inst(h->k, tir_arg(h->k, v, 1))->op == OP_CONST);
}

/* v is used at `place`, in this region. */
static void
note_use(Held *h, ValId v, uint32_t region, uint32_t place)
{
	const TirInst *p = tir_inst(h->k, v);
	uint32_t first = place;
	for (; region != h->home[v]; region = h->home[h->owner[region]]) {
		first = h->at[h->owner[region]];
		if (tir_inst(h->k, h->owner[region])->op == OP_FOR)
			place = h->end[region];
	}
	h->first[v] = h->first[v] && h->first[v] < first ? h->first[v] : first;
	h->last[v] = place > h->last[v] ? place : h->last[v];
	if (p->op == OP_SPLAT || p->op == OP_VIEW || is_offset(h, v)) /* these are their operands */
		for (unsigned n = 0; n < p->narg; n++)
			note_use(h, tir_arg(h->k, v, n), h->home[v], place);
}

/* Whether v is a quotient or rest of 64 bits, other than by a constant: code of its own, with registers of its own. */
static bool
divides(const Held *h, ValId v)
{
	const TirInst *p = tir_inst(h->k, v);
	if ((p->op != OP_IDIV && p->op != OP_IMOD) || dtype_info[p->type.dtype].bits < 64 || h->same[v])
		return false;
	return tir_inst(h->k, tir_arg(h->k, v, 1))->op != OP_CONST;
}

/* Whether v is made of one value alone, and of what is the same for all threads: so it can be where it is first used. */
static bool
is_late(const Held *h, ValId v)
{
	unsigned others = 0;
	const TirInst *p = tir_inst(h->k, v);
	for (unsigned n = 0; n < p->narg; n++)
		others += tir_inst(h->k, tir_arg(h->k, v, n))->op != OP_CONST && !h->same[tir_arg(h->k, v, n)];
	return others == 1 && !divides(h, v) && op_info[p->op].cls == CLASS_MAP && !(op_info[p->op].flags & F_EFFECT);
}

/* From the last to the first, so that a value's uses come before it. */
static void
walk(Held *h, uint32_t region)
{
	const TirRegion *r = &h->k->region.at[region];
	for (uint32_t n = r->inst.n; n-- > 0;) {
		ValId v = r->inst.at[n];
		const TirInst *p = tir_inst(h->k, v);
		for (unsigned c = 0; c < p->nregion; c++)
			walk(h, p->region + c);
		if (h->first[v] && is_late(h, v))
			h->at[v] = h->first[v];
		for (unsigned a = 0; a < p->narg; a++)
			note_use(h, tir_arg(h->k, v, a), region, h->at[v]);
	}
}

/* Masks that are computed have predicates, and what is easily made anew has no register. */
static unsigned
quarters_of(const Held *h, ValId v)
{
	const TirInst *p = tir_inst(h->k, v);
	unsigned bits = dtype_info[p->type.dtype].bits, lanes = p->type.lanes ? p->type.lanes : 1;
	if (p->type.dtype == DT_NONE || (p->type.dtype == DT_BOOL && p->op != OP_LOAD) || h->same[v] || p->op == OP_CONST || p->op == OP_VIEW ||
	    p->op == OP_SPLAT || p->op == OP_IOTA || p->op == OP_THREAD || is_offset(h, v))
		return 0;
	if (bits > 32)
		return WIDE_QUARTERS * lanes * (bits / 32);
	return QUARTERS * (p->op == OP_LOAD ? (bits * lanes + 31) / 32 : lanes); /* loaded elements lie side by side */
}

/* The outermost loop around v that finds `index` from outside; 0: none. */
static ValId
loop_around(const Held *h, ValId v, ValId index)
{
	ValId loop = 0;
	for (uint32_t region = h->home[v]; region != h->home[index] && region; region = h->home[h->owner[region]])
		if (tir_inst(h->k, h->owner[region])->op == OP_FOR)
			loop = h->owner[region];
	return loop;
}

/* Of pairs of values: a table of mask + 1 places, more than there are pairs. */
static bool
is_new(uint64_t *met, uint32_t mask, ValId a, ValId b)
{
	uint64_t key = (uint64_t)a << 32 | b;
	uint32_t i = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
	while (met[i] && met[i] != key)
		i = (i + 1) & mask;
	bool found = met[i] != 0;
	met[i] = key;
	return !found;
}

/* Whether an access has the product of an index and its stride, other than in place of the index. */
static bool
is_multiplied(const Held *h, ValId index, ValId stride)
{
	return !h->same[index] && h->wanted[index] && tir_inst(h->k, index)->op != OP_CONST && tir_inst(h->k, stride)->op != OP_CONST;
}

/* An index that a loop finds from outside, times its stride, is computed in front of the loop and held through it. */
static void
note_products(const Held *h, int64_t *change)
{
	const TirKernel *k = h->k;
	uint32_t room = 16;
	while (room < 2 * k->arg.n)
		room *= 2;
	uint64_t *met = ARENA_ARRAY(h->arena, uint64_t, room);
	for (ValId v = 1; v < k->inst.n; v++) {
		const TirInst *p = tir_inst(k, v);
		if ((p->op != OP_LOAD && p->op != OP_STORE) || !h->at[v])
			continue;
		const TirInst *view = tir_inst(k, tir_arg(k, v, 0));
		unsigned rank = (unsigned)view->imm.i, first = p->op == OP_STORE ? 2 : 1;
		for (unsigned n = 0; n < rank && first + n < p->narg; n++) {
			ValId index = tir_arg(k, v, first + n), stride = tir_arg(k, tir_arg(k, v, 0), 1 + rank + n), loop;
			if (!is_multiplied(h, index, stride) || !(loop = loop_around(h, v, index)) || !is_new(met, room - 1, index, stride))
				continue;
			change[h->at[loop]] += 2 * WIDE_QUARTERS;
			change[h->end[tir_inst(k, loop)->region]] -= 2 * WIDE_QUARTERS;
		}
	}
}

/* The words that a thread holds at the widest point. */
static unsigned
words_held(const TirKernel *k, Arena *a)
{
	Held h = {.k = k, .arena = a};
	h.at = ARENA_ARRAY(a, uint32_t, k->inst.n);
	h.first = ARENA_ARRAY(a, uint32_t, k->inst.n);
	h.last = ARENA_ARRAY(a, uint32_t, k->inst.n);
	h.home = ARENA_ARRAY(a, uint32_t, k->inst.n);
	h.owner = ARENA_ARRAY(a, ValId, k->region.n);
	h.same = ARENA_ARRAY(a, bool, k->inst.n);
	h.wanted = ARENA_ARRAY(a, bool, k->inst.n);
	h.begin = ARENA_ARRAY(a, uint32_t, k->region.n);
	h.end = ARENA_ARRAY(a, uint32_t, k->region.n);
	note_wanted(&h);
	uint32_t places = number(&h, 0, 0) + 1;
	walk(&h, 0);
	int64_t *change = ARENA_ARRAY(a, int64_t, places), now = 0, most = 0;
	for (ValId v = 1; v < k->inst.n; v++)
		if (h.last[v]) {
			unsigned aside = divides(&h, v) ? QUARTERS * DIVISION : 0;
			change[h.at[v]] += quarters_of(&h, v) + aside;
			change[h.at[v] + 1] -= aside;
			change[h.last[v]] -= quarters_of(&h, v);
		}
	note_products(&h, change);
	for (uint32_t n = 0; n < places; n++) {
		now += change[n];
		most = now > most ? now : most;
	}
	return (unsigned)(most / QUARTERS);
}

/* The registers of a thread where so many blocks are resident: each part of a multiprocessor has its warps. */
static unsigned
share(unsigned threads, unsigned resident)
{
	unsigned warps = (threads / TIR_WARP * resident + PARTS - 1) / PARTS;
	unsigned n = TIR_BLOCK_REGISTERS / PARTS / (warps * TIR_WARP) / STEP_REGISTERS * STEP_REGISTERS;
	return n < MOST_REGISTERS ? n : MOST_REGISTERS;
}

/* Whether the kernel is of matrices, whose template says what they take. */
static bool
counts_registers(const TirKernel *k)
{
	bool any = k->channel.n;
	for (ValId v = 1; !any && v < k->inst.n; v++)
		any = tir_inst(k, v)->op == OP_WARP_MMA;
	return any;
}

TirKernel *
tile_fit(const TirKernel *k, Arena *a)
{
	uint16_t resident = k->resident;
	if (k->form != TIR_SPREAD || resident < 2 || counts_registers(k))
		return (TirKernel *)(uintptr_t)k;
	unsigned words = words_held(k, a);
	while (resident > 1 && words > share(k->threads, resident) + SPARED)
		resident--;
	while (resident < k->resident && share(k->threads, resident + 1u) == share(k->threads, resident))
		resident++; /* nothing is gained */
	if (resident == k->resident)
		return (TirKernel *)(uintptr_t)k;
	TirKernel *to = arena_copy(a, k, sizeof *k);
	to->resident = resident;
	return to;
}
