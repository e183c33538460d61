/* roll: what a thread computes in the same way for each of its groups of lanes is there once, in a loop over the groups.
 *
 * in     a kernel of form SPREAD that was cleaned up; another is left as it is
 * out    the same: stores to a view, one behind another with nothing but computing between, that the same computation ends in for each
 *        are one store in a loop, which computes and hands on from turn to turn what is each turn's own: what was loaded, above
 *        all; ids anew
 * fp     exact: the same operations on the same values
 * tests  tests/tile/roll_test.c; random kernels before and after
 *
 * A thread has several groups of lanes so that their loads are on their way together; the loads stay before the loop. The time
 * that an assembler takes grows with the code, and computing is most of it. What is handed on costs an operation a register and turn, so
 * what little is computed of much is left as it is.
 *
 * Values that stand in the same place of the turns' computations are a row. Where all are one value it is what the turns have in
 * common. Where they are the same operation on rows, and nothing else wants them, they are computed inside. Else they are handed on. */
#include "passes/tile/cleanup.h"
#include "passes/tile/tile.h"

#include <string.h>

#include "ir/tir_inside.h"

enum {
	MOST_TURNS = 16,
	MOST_TRIES = 8,      /* at rows none of whose values is wanted outside */
	LEAST_SAVED = 96,    /* operations */
	LEAST_OF_WORD = 8,   /* operations for each register that is handed on, or operation that is done more often */
	ASIDE = 12,          /* operations that one with a slow way counts for */
	MOST_WORDS = 40,     /* that all turns have of their own: of more an assembler kept some in memory, without need */
	BLOCK_REGISTERS = 1 << 16 /* of a multiprocessor; half of a thread's share is theirs */
};

typedef struct {
	uint32_t next;  /* 1 + the next row with the same first value */
	bool inside;
	ValId made;     /* in the loop */
} Row;

typedef struct {
	const TirKernel *k;
	TirKernel *to;
	Arena *arena;
	uint32_t *home;     /* by ValId: its region */
	uint32_t *users;    /* by ValId: how often it is an operand */
	uint32_t *met;      /* by ValId: how often it is one of what is inside */
	bool *within;       /* by ValId: it is one of them */
	bool *barred;       /* by ValId: it is wanted outside */
	uint32_t *first;    /* by ValId: 1 + a row that begins with it */
	uint32_t region;
	unsigned turns, each; /* each: stores of a view in a turn */
	VEC(ValId) store;     /* of the views, one after another */
	VEC(Row) row;
	VEC(ValId) value;     /* turns of them a row */
} Roll;

/* --- which stores --- */

static bool
computes(Op op)
{
	return cleanup_is_pure(op) && op_info[op].cls == CLASS_MAP;
}

/* How many of the stores before that one are to the view of the last of them. */
static unsigned
run_before(const Roll *r, uint32_t end)
{
	unsigned n = 0;
	while (n < end && tir_arg(r->k, r->store.at[end - 1 - n], 0) == tir_arg(r->k, r->store.at[end - 1], 0))
		n++;
	return n;
}

/* Takes the last stores of the region between which there is computing alone, as many of each view. How many; 0: too few. */
static unsigned
find_stores(Roll *r)
{
	const TirRegion *x = &r->k->region.at[r->region];
	uint32_t end = x->inst.n, begin, first;
	r->store.n = 0;
	while (end > 0 && tir_inst(r->k, x->inst.at[end - 1])->op != OP_STORE)
		end--;
	for (begin = end; begin > 0; begin--) {
		Op op = (Op)tir_inst(r->k, x->inst.at[begin - 1])->op;
		if (op != OP_STORE && !cleanup_is_pure(op))
			break;
	}
	for (; begin < end; begin++)
		if (tir_inst(r->k, x->inst.at[begin])->op == OP_STORE)
			vec_push(r->arena, &r->store, x->inst.at[begin]);
	unsigned each = run_before(r, r->store.n);
	for (first = r->store.n; first > 0 && run_before(r, first) == each; first -= each)
		;
	r->store.n -= first;
	memmove(r->store.at, r->store.at + first, r->store.n * sizeof *r->store.at);
	return each > 1 ? each : 0;
}

/* Whether the memory of no view of the stores is that of another. */
static bool
are_apart(const Roll *r, unsigned n)
{
	for (uint32_t i = 0; i < r->store.n; i += n)
		for (uint32_t j = 0; j < i; j += n) {
			int64_t a = tir_inst(r->k, tir_arg(r->k, tir_arg(r->k, r->store.at[i], 0), 0))->imm.i;
			int64_t b = tir_inst(r->k, tir_arg(r->k, tir_arg(r->k, r->store.at[j], 0), 0))->imm.i;
			if (a == b)
				return false;
		}
	return true;
}

/* --- rows --- */

static bool
same_kind(const TirInst *a, const TirInst *b)
{
	return a->op == b->op && a->imm.i == b->imm.i && a->type.dtype == b->type.dtype && a->type.lanes == b->type.lanes && a->narg == b->narg;
}

/* What takes apart what was loaded may have left the region for an outer one, where it would be more to hand on. */
static bool
takes_apart(Op op)
{
	return op == OP_LANE || op == OP_SPLAT || op == OP_BITCAST || op == OP_CAST || op == OP_SHL || op == OP_BAND;
}

static bool
may_be_inside(const Roll *r, const ValId *value)
{
	const TirInst *p = tir_inst(r->k, value[0]);
	if (!computes((Op)p->op) || p->narg == 0)
		return false;
	for (unsigned t = 0; t < r->turns; t++)
		if (!same_kind(p, tir_inst(r->k, value[t])) || r->barred[value[t]] || (r->home[value[t]] != r->region && !takes_apart((Op)p->op)))
			return false;
	return true;
}

/* 1 + the row of these values; 0: there is none. */
static uint32_t
find_row(const Roll *r, const ValId *value)
{
	uint32_t n = r->first[value[0]];
	while (n && memcmp(&r->value.at[(n - 1) * r->turns], value, r->turns * sizeof *value) != 0)
		n = r->row.at[n - 1].next;
	return n;
}

static bool
are_one(const Roll *r, const ValId *value)
{
	for (unsigned t = 1; t < r->turns; t++)
		if (value[t] != value[0])
			return false;
	return true;
}

static void
add_row(Roll *r, const ValId *value)
{
	if (are_one(r, value) || find_row(r, value))
		return;
	vec_push(r->arena, &r->row, ((Row){.next = r->first[value[0]], .inside = may_be_inside(r, value)}));
	r->first[value[0]] = r->row.n;
	for (unsigned t = 0; t < r->turns; t++)
		vec_push(r->arena, &r->value, value[t]);
}

/* The n-th operands of what is the same operation. */
static void
operands(const Roll *r, const ValId *of, unsigned n, ValId *value)
{
	for (unsigned t = 0; t < r->turns; t++)
		value[t] = tir_arg(r->k, of[t], n);
}

/* The i-th store of a turn, of each turn. */
static void
stores_of(const Roll *r, uint32_t i, ValId *value)
{
	for (unsigned t = 0; t < r->turns; t++)
		value[t] = r->store.at[i / r->each * r->each * r->turns + t * r->each + i % r->each];
}

static bool
find_rows(Roll *r)
{
	ValId of[MOST_TURNS], value[MOST_TURNS];
	for (uint32_t i = 0; i < r->store.n / r->turns; i++) {
		stores_of(r, i, of);
		for (unsigned t = 0; t < r->turns; t++)
			if (!same_kind(tir_inst(r->k, of[0]), tir_inst(r->k, of[t])))
				return false;
		for (unsigned n = 0; n < tir_inst(r->k, of[0])->narg; n++) {
			operands(r, of, n, value);
			add_row(r, value);
		}
	}
	for (uint32_t i = 0; i < r->row.n; i++) {
		memcpy(of, &r->value.at[i * r->turns], r->turns * sizeof *of);
		for (unsigned n = 0; r->row.at[i].inside && n < tir_inst(r->k, of[0])->narg; n++) {
			operands(r, of, n, value);
			add_row(r, value);
		}
	}
	return true;
}

static void
count_operands(Roll *r, ValId v)
{
	for (unsigned n = 0; n < tir_inst(r->k, v)->narg; n++)
		r->met[tir_arg(r->k, v, n)]++;
}

/* Bars what is wanted outside. Whether there is any. Operands have smaller ids. */
static bool
bar_wanted(Roll *r)
{
	bool any = false;
	memset(r->met, 0, r->k->inst.n * sizeof *r->met);
	memset(r->within, 0, r->k->inst.n * sizeof *r->within);
	for (uint32_t i = 0; i < r->store.n; i++)
		count_operands(r, r->store.at[i]);
	for (uint32_t i = 0; i < r->value.n; i++)
		r->within[r->value.at[i]] |= r->row.at[i / r->turns].inside;
	for (ValId v = r->k->inst.n; v-- > 1;) {
		if (!r->within[v])
			continue;
		if (r->home[v] != r->region || r->met[v] == r->users[v])
			count_operands(r, v);
		else
			any = r->barred[v] = true;
	}
	return any;
}

/* --- whether it is worth it --- */

static unsigned
work_of(const TirInst *p)
{
	if (p->op == OP_LANE || p->op == OP_BITCAST || p->op == OP_SPLAT || p->op == OP_JOIN)
		return 0;
	return op_info[p->op].flags & F_ASIDE && !p->imm.i ? ASIDE : 1;
}

static unsigned
words_of(TirType t)
{
	unsigned bits = dtype_info[t.dtype].bits * (t.lanes ? t.lanes : 1);
	return (bits + 31) / 32;
}

/* Operations that are saved; 0 where there are too many others instead. */
static unsigned
saved(const Roll *r)
{
	unsigned work = 0, words = 0, anew = 0; /* anew: what an outer loop would compute less often */
	for (uint32_t i = 0; i < r->row.n; i++) {
		const TirInst *p = tir_inst(r->k, r->value.at[i * r->turns]);
		bool inside = r->row.at[i].inside;
		if (inside && r->home[r->value.at[i * r->turns]] != r->region)
			anew += work_of(p);
		else if (inside)
			work += work_of(p);
		else
			words += words_of(p->type);
	}
	unsigned share = r->k->resident ? BLOCK_REGISTERS / ((unsigned)r->k->resident * r->k->threads) / 2 : MOST_WORDS;
	if (words * r->turns > (share < MOST_WORDS ? share : MOST_WORDS) || work < LEAST_OF_WORD * (words * (r->turns - 1) + anew))
		return 0;
	return work * (r->turns - 1);
}

static void
forget_rows(Roll *r)
{
	for (uint32_t n = 0; n < r->row.n; n++)
		r->first[r->value.at[n * r->turns]] = 0;
	r->row.n = r->value.n = 0;
}

/* What so many turns save. */
static unsigned
try_turns(Roll *r, unsigned turns, unsigned stores)
{
	forget_rows(r);
	r->turns = turns;
	r->each = stores / turns;
	memset(r->barred, 0, r->k->inst.n * sizeof *r->barred);
	for (unsigned n = 0; n < MOST_TRIES; n++) {
		if (!find_rows(r))
			return 0;
		if (!bar_wanted(r))
			return saved(r);
		forget_rows(r);
	}
	return 0;
}

/* As many turns as save most. */
static bool
choose_turns(Roll *r)
{
	unsigned stores = find_stores(r), best = 0, most = LEAST_SAVED - 1;
	if (!stores || !are_apart(r, stores))
		return false;
	for (unsigned turns = 2; turns <= stores && turns <= MOST_TURNS; turns++) {
		unsigned n = stores % turns == 0 ? try_turns(r, turns, stores) : 0;
		if (n > most) {
			most = n;
			best = turns;
		}
	}
	return best && try_turns(r, best, stores);
}

/* --- the loop --- */

/* What stands for the values in a turn. */
static ValId
of_turn(const Roll *r, const ValId *value)
{
	return are_one(r, value) ? value[0] : r->row.at[find_row(r, value) - 1].made;
}

/* The operation of a turn that these are in all turns. */
static ValId
copy_turn(Roll *r, const ValId *of)
{
	const TirInst p = *tir_inst(r->k, of[0]);
	ValId *arg = ARENA_ARRAY(r->arena, ValId, p.narg + 1u), value[MOST_TURNS];
	for (unsigned n = 0; n < p.narg; n++) {
		operands(r, of, n, value);
		arg[n] = of_turn(r, value);
	}
	return tir_emit(r->to, (Op)p.op, p.type, p.imm.i, arg, p.narg);
}

/* Operands have smaller ids. */
static void
compute_turn(Roll *r)
{
	ValId of[MOST_TURNS];
	for (ValId v = 1; v < r->k->inst.n; v++)
		for (uint32_t n = r->first[v]; n; n = r->row.at[n - 1].next)
			if (r->row.at[n - 1].inside) {
				memcpy(of, &r->value.at[(n - 1) * r->turns], r->turns * sizeof *of);
				r->row.at[n - 1].made = copy_turn(r, of);
			}
}

/* The loop over the turns: each hands on what the later ones have. */
static void
build_loop(Roll *r)
{
	VEC(ValId) carried = {0}, next = {0};
	ValId of[MOST_TURNS];
	unsigned handed = r->turns - 1;
	for (uint32_t n = 0; n < r->row.n; n++)
		for (unsigned t = 0; !r->row.at[n].inside && t < handed; t++)
			vec_push(r->arena, &carried, r->value.at[n * r->turns + t]);
	ValId lo = tir_int(r->to, DT_I64, 0), hi = tir_int(r->to, DT_I64, r->turns), step = tir_int(r->to, DT_I64, 1);
	ValId loop = tir_for(r->to, lo, hi, step, carried.at, carried.n) - 1;
	r->to->inst.at[loop].imm.i = TIR_ROLLED;
	uint32_t at = 0;
	for (uint32_t n = 0; n < r->row.n; n++) {
		if (r->row.at[n].inside)
			continue;
		r->row.at[n].made = carried.at[at];
		for (unsigned t = 1; t < handed; t++)
			vec_push(r->arena, &next, carried.at[at + t]);
		vec_push(r->arena, &next, r->value.at[n * r->turns + handed]);
		at += handed;
	}
	compute_turn(r);
	for (uint32_t i = 0; i < r->store.n / r->turns; i++) {
		stores_of(r, i, of);
		copy_turn(r, of);
	}
	tir_end_for(r->to, next.at, next.n);
}

/* The loop where the last store was, instead of all. */
static void
put_loop(Roll *r)
{
	TirKernel *to = r->to;
	uint32_t list = to->region.n, stores = 0;
	VEC(ValId) out = {0};
	vec_grow(to->arena, &to->region, 1);
	tir_enter(to, list);
	build_loop(r);
	tir_leave(to);
	const TirRegion old = r->k->region.at[r->region], made = to->region.at[list];
	for (uint32_t n = 0; n < old.inst.n; n++) {
		if (stores == r->store.n || old.inst.at[n] != r->store.at[stores]) {
			vec_push(r->arena, &out, old.inst.at[n]);
			continue;
		}
		for (uint32_t i = 0; stores == r->store.n - 1 && i < made.inst.n; i++)
			vec_push(r->arena, &out, made.inst.at[i]);
		stores++;
	}
	to->region.at[r->region].inst.at = out.at;
	to->region.at[r->region].inst.n = to->region.at[r->region].inst.cap = out.n;
}

static void
begin(Roll *r)
{
	const TirKernel *k = r->k;
	uint32_t count = k->inst.n;
	r->home = ARENA_ARRAY(r->arena, uint32_t, count);
	r->users = ARENA_ARRAY(r->arena, uint32_t, count);
	r->met = ARENA_ARRAY(r->arena, uint32_t, count);
	r->within = ARENA_ARRAY(r->arena, bool, count);
	r->barred = ARENA_ARRAY(r->arena, bool, count);
	r->first = ARENA_ARRAY(r->arena, uint32_t, count);
	for (uint32_t n = 0; n < k->region.n; n++)
		for (uint32_t i = 0; i < k->region.at[n].inst.n; i++) {
			ValId v = k->region.at[n].inst.at[i];
			r->home[v] = n;
			for (unsigned a = 0; a < tir_inst(k, v)->narg; a++)
				r->users[tir_arg(k, v, a)]++;
		}
}

/* A kernel whose instructions may be added to. */
static TirKernel *
copy_to_add(const TirKernel *k, Arena *a)
{
	TirKernel *to = cleanup_copy_lists(k, a);
	to->inst.cap = to->inst.n;
	to->arg.cap = to->arg.n;
	to->open.n = to->open.cap = 0;
	to->open.at = NULL;
	tir_enter(to, 0);
	return to;
}

/* How many stores the region has. */
static unsigned
count_stores(const TirKernel *k, uint32_t region)
{
	unsigned n = 0;
	for (uint32_t i = 0; i < k->region.at[region].inst.n; i++)
		n += tir_inst(k, k->region.at[region].inst.at[i])->op == OP_STORE;
	return n;
}

static ValId
copy(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	(void)user;
	return tir_copy_inst(to, from, v, arg);
}

TirKernel *
tile_roll(const TirKernel *k, Arena *a)
{
	Roll r = {.k = k, .arena = a};
	for (uint32_t n = 0; k->form == TIR_SPREAD && !k->channel.n && !tir_posts(k) && n < k->region.n; n++) {
		if (count_stores(k, n) < 2)
			continue;
		if (!r.home)
			begin(&r);
		r.region = n;
		if (!choose_turns(&r))
			continue;
		if (!r.to)
			r.to = copy_to_add(k, a);
		put_loop(&r);
	}
	/* anew first: what stands nowhere any more wants nothing */
	const TirKernel *out = r.to ? cleanup_drop_dead(tir_rewrite(r.to, a, copy, NULL), a) : k;
	return (TirKernel *)(uintptr_t)out;
}
