/* spread_next.c: what the next turn of a loop loads comes while threads of this one wait for each other (spread.c).
 *
 * in     a kernel of threads that was just spread
 * out    the same; in a loop whose threads join what they have, loads of 16 bytes whose places follow from the loop's index, of
 *        memory that nobody writes to, are copied into shared memory a turn before, each by the thread that loads it; it
 *        copies the next one when it has loaded this one
 * fp     exact
 * tests  tests/tile/spread_next_test.c; random kernels before and after
 *
 * Registers can't have what is on its way, since it is what they are full of; and a prefetch leaves the way from the second
 * cache, of which a turn is a part that counts. A thread waits for its own copies alone, which needs no barrier, and reads what
 * it copied itself. A copy that is begun behind the load from the same place comes after it. Before the loop those of its first turn
 * are begun; those of a turn that does not come bring zeros, and read nothing. */
#include "passes/tile/spread.h"

#include <string.h>

#include "ir/bugs.h"
#include "ir/tir_inside.h"
#include "passes/tile/cleanup.h"

enum {
	MOST_LOADS = 32,                 /* of a turn */
	SHARED_ROOM = 96 << 10,          /* bytes of a multiprocessor, for all its blocks, on any GPU, */
	CLUSTER_ROOM = 200 << 10,        /* and of one that has clusters */
	SM_THREADS = 2048,
	BEFORE = 1 << 30                 /* of a thread that looks its number up anew, before the loop */
};

typedef VEC(ValId) Values;

typedef struct {
	TirKernel *k;
	Arena *arena;
	uint32_t *home; /* by ValId of what there was at first: its region */
	bool *turns;    /* of the loop at work: it follows from the index alone, and what is outside */
	bool *other;    /* it is no operation on these */
	bool *wanted;   /* some place follows from it */
	ValId *made;    /* what it is in another turn; 0: not made */
	ValId loop, load[MOST_LOADS];
	unsigned nload;
	ValId view[MOST_LOADS];    /* of what is copied for the load */
	unsigned turn[MOST_LOADS]; /* how many loads of its type come before it there */
	uint32_t count;            /* how many values there were at first */
	bool tight;                /* a thread looks its number up in each turn */
	bool before;               /* what is made is before the loop */
} Next;

static const TirRegion *
body_of(const Next *x)
{
	return &x->k->region.at[tir_inst(x->k, x->loop)->region];
}

/* --- which loads --- */

/* Whether buffer b is read alone, by whatever name. */
static bool
is_read_alone(const TirKernel *k, unsigned b)
{
	const TirBuffer *p = &k->buffer.at[b];
	bool alone = !p->written && !p->shared && !p->same && !p->posted;
	for (uint32_t n = 0; n < k->buffer.n; n++)
		alone = alone && k->buffer.at[n].same != b + 1;
	return alone;
}

/* Of a load that has one: of all its lanes, or 0. */
static ValId
mask_of(const TirKernel *k, ValId load)
{
	ValId mask = tir_arg(k, load, tir_inst(k, load)->narg - 1u);
	return tir_inst(k, mask)->op == OP_SPLAT ? tir_arg(k, mask, 0) : 0;
}

static bool
may_come_before(const Next *x, ValId v)
{
	const TirKernel *k = x->k;
	const TirInst *p = tir_inst(k, v), *view = p->op == OP_LOAD ? tir_inst(k, tir_arg(k, v, 0)) : NULL;
	unsigned rank = view ? (unsigned)view->imm.i : 0;
	bool follows = false;
	if (!view || rank == 0 || TIR_LANE_AXIS(p->imm.i) != (int)rank - 1 || p->type.lanes * dtype_info[p->type.dtype].bits != 8 * TIR_ASYNC_BYTES)
		return false;
	const TirInst *stride = tir_inst(k, tir_arg(k, tir_arg(k, v, 0), 2 * rank));
	if (stride->op != OP_CONST || stride->imm.i != 1 || !is_read_alone(k, (unsigned)tir_inst(k, tir_arg(k, tir_arg(k, v, 0), 0))->imm.i))
		return false;
	if (p->imm.i & TIR_MASKED && !mask_of(k, v))
		return false;
	for (unsigned n = 0; n < p->narg; n++) {
		ValId a = tir_arg(k, v, n);
		if (x->other[a] || (n == 0 && x->turns[a]))
			return false;
		follows |= x->turns[a];
	}
	return follows;
}

/* Those of the loop's body. */
static bool
find_loads(Next *x)
{
	const TirRegion *r = body_of(x);
	uint32_t body = tir_inst(x->k, x->loop)->region;
	x->nload = 0;
	for (uint32_t n = 0; n < r->inst.n; n++) {
		ValId v = r->inst.at[n];
		const TirInst *p = tir_inst(x->k, v);
		bool index = p->op == OP_BLOCKARG && p->imm.i == 0;
		x->other[v] = !index && p->op != OP_SPLAT && !cleanup_is_pure((Op)p->op);
		x->turns[v] = index;
		for (unsigned a = 0; a < p->narg; a++) {
			ValId from = tir_arg(x->k, v, a);
			x->other[v] |= x->home[from] == body && x->other[from];
			x->turns[v] |= x->home[from] == body && x->turns[from];
		}
		if (may_come_before(x, v) && x->nload < MOST_LOADS)
			x->load[x->nload++] = v;
	}
	return x->nload > 0;
}

static bool
have_room(const Next *x)
{
	const TirKernel *k = x->k;
	unsigned blocks = k->resident ? k->resident : SM_THREADS / k->threads;
	uint32_t own = tir_shared_at(k, k->buffer.n) + (uint32_t)k->threads * TIR_ASYNC_BYTES * x->nload;
	return own * (blocks ? blocks : 1) <= (uint32_t)(k->cluster ? CLUSTER_ROOM : SHARED_ROOM);
}

/* --- their copies --- */

/* What is emitted from now on goes to a list of its own. */
static uint32_t
begin_list(Next *x)
{
	uint32_t region = x->k->region.n;
	vec_grow(x->k->arena, &x->k->region, 1);
	tir_enter(x->k, region);
	return region;
}

static Values
end_list(Next *x, uint32_t region)
{
	Values list = {0};
	tir_leave(x->k);
	for (uint32_t n = 0; n < x->k->region.at[region].inst.n; n++)
		vec_push(x->arena, &list, x->k->region.at[region].inst.at[n]);
	return list;
}

static void
append(Next *x, Values *to, const Values *more)
{
	for (uint32_t n = 0; n < more->n; n++)
		vec_push(x->arena, to, more->at[n]);
}

/* What load n's place follows from, in the turn with this index, but for what was made of it for loads before. */
static void
make_place(Next *x, unsigned n, ValId index)
{
	uint32_t count = body_of(x)->inst.n;
	for (unsigned a = 0; a < tir_inst(x->k, x->load[n])->narg; a++)
		x->wanted[tir_arg(x->k, x->load[n], a)] = true;
	for (uint32_t i = count; i-- > 0;) {
		ValId v = body_of(x)->inst.at[i];
		for (unsigned a = 0; x->wanted[v] && a < tir_inst(x->k, v)->narg; a++)
			x->wanted[tir_arg(x->k, v, a)] = true;
	}
	for (uint32_t i = 0; i < count; i++) {
		ValId v = body_of(x)->inst.at[i], arg[1 + 2 * TIR_MAX_RANK]; /* a view has the most */
		TirInst p = *tir_inst(x->k, v);
		if (!x->wanted[v] || x->made[v])
			continue;
		for (unsigned a = 0; a < p.narg; a++) {
			ValId from = tir_arg(x->k, v, a);
			arg[a] = x->home[from] == x->home[v] ? x->made[from] : from;
		}
		int64_t imm = p.op == OP_THREAD && p.imm.i && x->before ? BEFORE : p.imm.i;
		x->made[v] = p.op == OP_BLOCKARG ? index : tir_emit(x->k, (Op)p.op, p.type, imm, arg, p.narg);
	}
	memset(x->wanted, 0, x->count * sizeof *x->wanted);
}

/* What an operand of a load is in the turn that was made. */
static ValId
made(const Next *x, ValId v)
{
	return x->home[v] == tir_inst(x->k, x->loop)->region ? x->made[v] : v;
}

/* Where the thread's elements for load n are: those of all loads of a type one behind the other. */
static ValId
place_of(Next *x, unsigned n)
{
	unsigned lanes = tir_inst(x->k, x->load[n])->type.lanes;
	ValId thread = tir_emit(x->k, OP_THREAD, tir_scalar(DT_I64), !x->tight ? 0 : x->before ? BEFORE : 1, NULL, 0);
	ValId own = tir_binary(x->k, OP_MUL, thread, tir_int(x->k, DT_I64, lanes));
	return tir_binary(x->k, OP_ADD, own, tir_int(x->k, DT_I64, (int64_t)x->turn[n] * x->k->threads * lanes));
}

/* Begins to copy what load n of the turn brings, if there is such a turn. */
static void
copy_for(Next *x, unsigned n, ValId there)
{
	ValId v = x->load[n], index[TIR_MAX_RANK], view = tir_arg(x->k, v, 0);
	unsigned rank = (unsigned)tir_inst(x->k, view)->imm.i;
	for (unsigned a = 0; a < rank; a++)
		index[a] = made(x, tir_arg(x->k, v, 1 + a));
	if (tir_inst(x->k, v)->imm.i & TIR_MASKED)
		there = tir_binary(x->k, OP_AND, there, made(x, mask_of(x->k, v)));
	ValId at = place_of(x, n);
	tir_async_copy(x->k, x->view[n], &at, made(x, view), index, there);
}

/* The load is of what was copied. */
static void
load_copied(Next *x, unsigned n, ValId at)
{
	TirKernel *k = x->k;
	ValId v = x->load[n];
	uint32_t first = k->arg.n;
	vec_push(k->arena, &k->arg, x->view[n]);
	vec_push(k->arena, &k->arg, at);
	k->inst.at[v].arg = first;
	k->inst.at[v].narg = 2;
	k->inst.at[v].imm.i = TIR_LANES_ALONG(0);
}

/* The memory that the copies go to: a buffer for each type. */
static void
make_views(Next *x)
{
	TirKernel *k = x->k;
	unsigned before[DT_COUNT] = {0};
	ValId view[DT_COUNT] = {0}, one = tir_int(k, DT_I64, 1);
	for (unsigned n = 0; n < x->nload; n++)
		x->turn[n] = before[tir_inst(k, x->load[n])->type.dtype]++;
	for (unsigned n = 0; n < x->nload; n++) {
		TirType t = tir_inst(k, x->load[n])->type;
		if (!view[t.dtype]) {
			unsigned elements = before[t.dtype] * k->threads * t.lanes, buffer = tir_add_buffer(k, name_cstr(k->names, "next"), (DType)t.dtype, true);
			k->buffer.at[buffer].shared = elements;
			ValId extent = tir_int(k, DT_I64, elements);
			view[t.dtype] = tir_view(k, buffer, 1, &extent, &one);
		}
		x->view[n] = view[t.dtype];
	}
}

/* That, and the copies of the first turn. */
static Values
first_copies(Next *x)
{
	TirKernel *k = x->k;
	uint32_t list = begin_list(x);
	ValId lo = tir_arg(k, x->loop, 0), some = tir_binary(k, OP_LT, lo, tir_arg(k, x->loop, 1));
	make_views(x);
	x->before = true;
	for (unsigned n = 0; n < x->nload; n++) {
		make_place(x, n, lo);
		copy_for(x, n, some);
	}
	x->before = false;
	memset(x->made, 0, x->count * sizeof *x->made);
	return end_list(x, list);
}

/* The loop's body: it waits for what was copied, and each load, which is of that now, is followed by the copy of the next one. */
static Values
next_copies(Next *x)
{
	TirKernel *k = x->k;
	Values out = {0};
	const TirRegion old = *body_of(x);
	unsigned n = 0;
	uint32_t i = 0, list = begin_list(x);
	ValId next = tir_binary(k, OP_ADD, old.inst.at[0], tir_arg(k, x->loop, 2)), more = tir_binary(k, OP_LT, next, tir_arg(k, x->loop, 1));
	if (!BUG(next_unawaited))
		tir_async_wait(k, 0);
	Values some = end_list(x, list);
	for (; tir_inst(k, old.inst.at[i])->op == OP_BLOCKARG; i++)
		vec_push(x->arena, &out, old.inst.at[i]);
	append(x, &out, &some);
	for (; i < old.inst.n; i++) {
		if (n == x->nload || old.inst.at[i] != x->load[n]) {
			vec_push(x->arena, &out, old.inst.at[i]);
			continue;
		}
		list = begin_list(x);
		ValId at = place_of(x, n);
		some = end_list(x, list);
		append(x, &out, &some);
		vec_push(x->arena, &out, old.inst.at[i]);
		list = begin_list(x);
		make_place(x, n, next);
		copy_for(x, n, more);
		some = end_list(x, list);
		append(x, &out, &some);
		load_copied(x, n++, at);
	}
	return out;
}

static void
put_list(Next *x, uint32_t region, const Values *list)
{
	TirRegion *r = &x->k->region.at[region];
	r->inst.at = list->at;
	r->inst.n = r->inst.cap = list->n;
}

/* The loop at work, with these before it; behind it nothing is on its way. */
static void
put_around(Next *x, const Values *before)
{
	Values out = {0};
	uint32_t around = x->home[x->loop], list = begin_list(x);
	tir_async_wait(x->k, 0);
	Values after = end_list(x, list);
	const TirRegion old = x->k->region.at[around];
	for (uint32_t n = 0; n < old.inst.n; n++) {
		if (old.inst.at[n] == x->loop)
			append(x, &out, before);
		vec_push(x->arena, &out, old.inst.at[n]);
		if (old.inst.at[n] == x->loop)
			append(x, &out, &after);
	}
	put_list(x, around, &out);
}

static bool
bring_next(Next *x)
{
	TirKernel *k = x->k;
	uint32_t count = x->count = k->inst.n;
	x->home = ARENA_ARRAY(x->arena, uint32_t, count);
	x->turns = ARENA_ARRAY(x->arena, bool, count);
	x->other = ARENA_ARRAY(x->arena, bool, count);
	x->wanted = ARENA_ARRAY(x->arena, bool, count);
	x->made = ARENA_ARRAY(x->arena, ValId, count);
	for (uint32_t r = 0; r < k->region.n; r++)
		for (uint32_t n = 0; n < k->region.at[r].inst.n; n++)
			x->home[k->region.at[r].inst.at[n]] = r;
	if (!find_loads(x) || !have_room(x))
		return false;
	Values before = first_copies(x), body = next_copies(x);
	put_list(x, tir_inst(k, x->loop)->region, &body);
	put_around(x, &before);
	return true;
}

/* Whether the loop's turns are the same block's. */
static bool
goes_on(const TirKernel *k, ValId loop)
{
	return tir_inst(k, tir_arg(k, loop, 0))->op != OP_TASK_LO || tir_inst(k, tir_arg(k, loop, 2))->op == OP_TASK_STEP;
}

static bool
joins(const TirKernel *k, ValId loop)
{
	const TirRegion *r = &k->region.at[tir_inst(k, loop)->region];
	for (uint32_t n = 0; n < r->inst.n; n++)
		if (tir_inst(k, r->inst.at[n])->op == OP_BARRIER || tir_inst(k, r->inst.at[n])->op == OP_SHUFFLE)
			return true;
	return false;
}

static ValId
copy(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	(void)user;
	return tir_copy_inst(to, from, v, arg);
}

TirKernel *
spread_bring_next(TirKernel *k, bool tight, Arena *a)
{
	bool any = false;
	uint32_t count = k->inst.n;
	for (ValId v = 1; v < count && !tir_posts(k); v++) {
		Next x = {.k = k, .arena = a, .loop = v, .tight = tight};
		if (tir_inst(k, v)->op == OP_FOR && goes_on(k, v) && joins(k, v))
			any |= bring_next(&x);
	}
	return any ? tir_rewrite(k, a, copy, NULL) : k;
}
