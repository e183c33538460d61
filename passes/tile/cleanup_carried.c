/* cleanup_carried.c: what loops carry that is always the same as something else, see cleanup.h.
 *
 * Carried values that begin alike are taken for the same until a turn is seen to part them; what is left when no turn
 * does is the same, as each next one is made in the same way from the same. Values are numbered by how they are
 * made, under what is taken so far. */
#include "passes/tile/cleanup.h"

#include "ir/bugs.h"
#include "ir/tir_inside.h"

enum { MOST_ROUNDS = 12 };

typedef struct {
	const TirKernel *k;
	Arena *arena;
	ValId *same;      /* by value: the first that is made in the same way */
	ValId *table;     /* hash -> value, 0: free */
	uint32_t mask;
	uint32_t *first;  /* by FOR: its carried values in `taken` */
	VEC(uint32_t) taken; /* the first carried value of the loop that each is taken for */
	bool begun;       /* `taken` says something of all loops */
} Carried;

static ValId
init_of(const TirKernel *k, ValId loop, uint32_t n)
{
	return tir_arg(k, loop, 3 + n);
}

static ValId
yielded(const TirKernel *k, ValId owner, unsigned nth, uint32_t n)
{
	const TirRegion *r = &k->region.at[tir_inst(k, owner)->region + nth];
	return tir_arg(k, r->inst.at[r->inst.n - 1], n);
}

static ValId
carried_in(const TirKernel *k, ValId loop, uint32_t n)
{
	return k->region.at[tir_inst(k, loop)->region].inst.at[1 + n];
}

/* --- numbers --- */

typedef struct {
	const TirInst *p;
	int64_t imm;
	ValId arg[3];
	unsigned narg;
} Made;

/* How v is made; false: as nothing else is. */
static bool
how_made(const Carried *c, ValId v, Made *m)
{
	const TirKernel *k = c->k;
	const TirInst *p = tir_inst(k, v);
	*m = (Made){.p = p, .imm = p->imm.i, .narg = p->narg};
	if (p->op == OP_RESULT) {
		ValId owner = tir_arg(k, v, 0);
		bool loop = tir_inst(k, owner)->op == OP_FOR;
		m->imm = loop ? c->taken.at[c->first[owner] + (uint32_t)p->imm.i] : 0;
		m->narg = loop ? 1 : 3;
		m->arg[0] = owner;
		for (unsigned n = 0; n < 2 && !loop; n++)
			m->arg[1 + n] = c->same[yielded(k, owner, n, (uint32_t)p->imm.i)];
		return true;
	}
	for (unsigned n = 0; n < p->narg && n < 3; n++)
		m->arg[n] = c->same[tir_arg(k, v, n)];
	return p->narg <= 3 && cleanup_is_pure((Op)p->op);
}

static bool
made_alike(const Carried *c, ValId v, const Made *m)
{
	Made other;
	how_made(c, v, &other);
	bool alike = other.p->op == m->p->op && other.p->type.dtype == m->p->type.dtype && other.p->type.lanes == m->p->type.lanes &&
	             other.imm == m->imm && other.narg == m->narg;
	for (unsigned n = 0; alike && n < m->narg; n++)
		alike = other.arg[n] == m->arg[n];
	return alike;
}

static void
number(Carried *c, ValId v)
{
	Made m;
	c->same[v] = v;
	if (!how_made(c, v, &m))
		return;
	uint64_t h = ((uint64_t)m.p->op << 32 | m.p->type.dtype) ^ (uint64_t)m.imm * UINT64_C(0x9e3779b97f4a7c15);
	for (unsigned n = 0; n < m.narg; n++)
		h = ((h ^ m.arg[n]) * UINT64_C(0xff51afd7ed558ccd)) ^ h >> 29;
	uint32_t at = (uint32_t)(h ^ h >> 32) & c->mask;
	while (c->table[at] && !made_alike(c, c->table[at], &m))
		at = (at + 1) & c->mask;
	if (!c->table[at])
		c->table[at] = v;
	c->same[v] = c->table[at];
}

/* What begins alike may be the same. */
static void
begin_loop(Carried *c, ValId loop)
{
	uint32_t n = tir_nresult(c->k, loop);
	c->first[loop] = c->taken.n;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = 0;
		while (c->same[init_of(c->k, loop, j)] != c->same[init_of(c->k, loop, i)])
			j++;
		vec_push(c->arena, &c->taken, j);
	}
}

static void
number_all(Carried *c)
{
	Walk w;
	for (uint32_t n = 0; n <= c->mask; n++)
		c->table[n] = 0;
	walk_init(&w, c->k, c->arena);
	for (WalkEvent e; (e = walk_next(&w)) != WALK_END;) {
		const TirInst *p = tir_inst(c->k, w.value);
		if (e != WALK_INST)
			continue;
		if (p->op == OP_FOR && !c->begun)
			begin_loop(c, w.value);
		ValId owner = w.frame.at[w.frame.n - 1].owner;
		if (p->op == OP_BLOCKARG && p->imm.i)
			c->same[w.value] = carried_in(c->k, owner, c->taken.at[c->first[owner] + (uint32_t)p->imm.i - 1]);
		else
			number(c, w.value);
	}
	c->begun = true;
}

/* Whether carried values i and j of the loop, taken for the same, still are after a turn. */
static bool
stay_same(const Carried *c, ValId loop, uint32_t i, uint32_t j)
{
	return c->same[init_of(c->k, loop, i)] == c->same[init_of(c->k, loop, j)] &&
	       (BUG(carried_by_start) || c->same[yielded(c->k, loop, 0, i)] == c->same[yielded(c->k, loop, 0, j)]);
}

static bool
part_loop(Carried *c, ValId loop)
{
	uint32_t n = tir_nresult(c->k, loop), *taken = &c->taken.at[c->first[loop]];
	uint32_t *next = ARENA_ARRAY(c->arena, uint32_t, n);
	bool parted = false;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = 0;
		while (taken[j] != taken[i] || !stay_same(c, loop, i, j))
			j++;
		next[i] = j;
		parted |= j != taken[i];
	}
	for (uint32_t i = 0; i < n; i++)
		taken[i] = next[i];
	return parted;
}

/* --- replacing --- */

/* What stands for a carried value, or for a loop's or branch's result. */
static ValId
replaced(const Carried *c, ValId v, ValId owner)
{
	const TirKernel *k = c->k;
	const TirInst *p = tir_inst(k, v);
	if (p->op == OP_RESULT)
		owner = tir_arg(k, v, 0);
	else if (p->op != OP_BLOCKARG || p->imm.i == 0)
		return v;
	if (tir_inst(k, owner)->op == OP_FOR) {
		uint32_t n = (uint32_t)p->imm.i - (p->op == OP_BLOCKARG);
		if (c->same[yielded(k, owner, 0, n)] == c->same[carried_in(k, owner, n)])
			return init_of(k, owner, n);
	}
	return c->same[v];
}

static const TirKernel *
replace_all(Carried *c)
{
	TirKernel *to = cleanup_copy_lists(c->k, c->arena);
	ValId *with = ARENA_ARRAY(c->arena, ValId, c->k->inst.n);
	bool any = false;
	Walk w;
	to->arg.at = arena_copy(c->arena, c->k->arg.at, c->k->arg.n * sizeof *c->k->arg.at);
	to->arg.cap = c->k->arg.n;
	walk_init(&w, c->k, c->arena);
	for (WalkEvent e; (e = walk_next(&w)) != WALK_END;) {
		if (e != WALK_INST)
			continue;
		ValId v = w.value, r = replaced(c, v, w.frame.at[w.frame.n - 1].owner);
		with[v] = r == v ? v : with[r];
	}
	for (ValId v = 1; v < c->k->inst.n; v++)
		for (uint32_t n = 0; n < tir_inst(c->k, v)->narg; n++) {
			ValId *arg = &to->arg.at[tir_inst(c->k, v)->arg + n];
			any |= with[*arg] != *arg;
			*arg = with[*arg];
		}
	return any ? to : c->k;
}

const TirKernel *
cleanup_carried(const TirKernel *k, Arena *a)
{
	Carried c = {.k = k, .arena = a, .mask = 63};
	bool parted = true;
	while (c.mask < 2 * k->inst.n)
		c.mask = 2 * c.mask + 1;
	c.table = ARENA_ARRAY(a, ValId, c.mask + 1);
	c.same = ARENA_ARRAY(a, ValId, k->inst.n);
	c.first = ARENA_ARRAY(a, uint32_t, k->inst.n);
	for (unsigned round = 0; parted && round < MOST_ROUNDS; round++) {
		number_all(&c);
		parted = false;
		for (ValId v = 1; v < k->inst.n; v++)
			if (tir_inst(k, v)->op == OP_FOR)
				parted |= part_loop(&c, v);
	}
	return parted || !c.taken.n ? k : replace_all(&c);
}
