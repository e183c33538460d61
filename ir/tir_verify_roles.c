/* tir_verify_roles.c: the rules of ir/channel.h, of a kernel that is well formed otherwise: which operations a role may
 * have, what a channel holds, and that the registers of all roles are those that the block has. */
#include "ir/tir_inside.h"

typedef struct {
	const TirKernel *k;
	Arena *scratch;
	const char *error;
	TirRoles roles;
	unsigned role; /* 1 + the region of ROLES that is open; 0: none */
	ValId owner;   /* ROLES */
	/* What the whole kernel says of its registers, found once, at ROLES: all that asks stands in its regions. */
	unsigned columns[TIR_MAX_BANKS], registers[TIR_MAX_BANKS], kept;
} Check;

static bool __attribute__((format(printf, 3, 4)))
fail(Check *x, ValId v, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	x->error = tir_broken(x->k, x->scratch, v, fmt, ap);
	va_end(ap);
	return false;
}

#define NEED(cond, ...)                         \
	do {                                    \
		if (!(cond))                    \
			return fail(x, v, __VA_ARGS__); \
	} while (0)

/* --- the header --- */

static bool
is_multiplied(const TirPart *p)
{
	return p->dtype == DT_BF16 || p->dtype == DT_F16;
}

/* Where it is common, blocks bring whole rows of the swizzle's pattern, of 8. */
static bool
part_fits(const TirKernel *k, const TirPart *p)
{
	unsigned divided = p->turned ? p->terms : p->rows;
	unsigned bits = dtype_info[p->dtype].bits;
	return bits >= 4 && bits <= 16 && p->dtype != DT_BOOL && (!p->turned || is_multiplied(p)) && p->terms == TIR_PART_TERMS * 16 / bits && p->rows && p->rows % 8 == 0 &&
	       p->rows <= TIR_MAX_PART_ROWS && (!p->turned || p->rows % tir_part_along(p) == 0) &&
	       (!p->joint || (k->cluster && divided % (8 * k->cluster) == 0));
}

static bool
check_channels(Check *x)
{
	for (uint32_t i = 0; i < x->k->channel.n; i++) {
		const TirChannel *c = &x->k->channel.at[i];
		if (!c->slots || c->slots > TIR_MAX_SLOTS)
			return fail(x, 0, "channel %u has %u slots", i, c->slots);
		if (!c->nparts || c->nparts > TIR_MAX_PARTS)
			return fail(x, 0, "channel %u has %u parts", i, c->nparts);
		if (tir_is_joint(c) != tir_has_joint(x->k))
			return fail(x, 0, "channel %u has nothing in common where another has", i);
		for (unsigned n = 0; n < c->nparts; n++)
			if (!part_fits(x->k, &c->part[n]))
				return fail(x, 0, "part %u of channel %u is none that copies bring", n, i);
	}
	return true;
}

/* --- operations --- */

static const TirInst *
operand(const Check *x, ValId v, unsigned n)
{
	return tir_inst(x->k, tir_arg(x->k, v, n));
}

static bool
is_number(const TirInst *p)
{
	return p->type.dtype == DT_I64 && p->type.lanes == 0 && p->op != OP_VIEW;
}

static bool
is_condition(const TirInst *p)
{
	return p->type.dtype == DT_BOOL && p->type.lanes == 0 && p->op != OP_VIEW;
}

static bool
is_float(const TirInst *p)
{
	return p->type.dtype == DT_F32 && p->type.lanes == 0 && p->op != OP_VIEW;
}

/* A thread has at first the same share of a block's registers as any other, in units of 8. What the roles have is that
 * in all: with more they would wait for ever. */
static bool
check_roles(Check *x, ValId v, const WalkFrame *f)
{
	const TirKernel *k = x->k;
	TirRoles r = tir_roles(tir_inst(k, v)->imm.i);
	unsigned least = 24, most = 240;
	NEED(!f->owner && f->next == k->region.at[f->region].inst.n, "does not end the kernel's body");
	NEED(k->form == TIR_SPREAD && k->channel.n, "without channels");
	NEED(r.groups && k->threads == (r.groups + 1) * TIR_GROUP, "%u groups and one that loads are not %u threads", r.groups, k->threads);
	NEED(r.registers % 8 == 0 && r.rest % 8 == 0 && r.registers >= least && r.registers <= most && r.rest >= least && r.rest <= most,
	     "%u and %u registers can't be asked for", r.registers, r.rest);
	unsigned share = TIR_BLOCK_REGISTERS / (k->threads * (k->resident ? k->resident : 1u)) / 8 * 8;
	NEED(r.groups * r.registers + r.rest <= (r.groups + 1) * share, "there are %u registers for each thread", share);
	NEED(!r.turns || (r.groups == 2 && (!k->cluster || tir_has_joint(k)) && !r.order), "%u groups take no turns", r.groups);
	NEED(!r.order || (r.groups > 1 && r.groups <= TIR_MAX_ORDER && !k->cluster), "%u groups have no order", r.groups);
	x->roles = r;
	x->owner = v;
	x->kept = tir_kept_terms(k);
	for (unsigned bank = 0; bank < TIR_MAX_BANKS; bank++)
		x->columns[bank] = tir_bank_columns(k, bank, &x->registers[bank]);
	return true;
}

static bool
is_at_launch(const TirInst *p)
{
	return p->op == OP_CONST || p->op == OP_SCALAR;
}

/* Counts and steps, as far as they are constants. */
static bool
check_box(Check *x, ValId v, unsigned rank)
{
	int64_t imm = tir_inst(x->k, v)->imm.i;
	const TirPart *part = &x->k->channel.at[TIR_CHANNEL_OF(imm)].part[TIR_PART_OF(imm)];
	NEED(!part->turned, "a box with counts, of a part that is turned");
	NEED(!part->joint, "a box with counts, of a part that is joint");
	for (unsigned a = 0; a < rank; a++) {
		const TirInst *count = operand(x, v, 2 + rank + a), *step = operand(x, v, 2 + 2 * rank + a);
		NEED(is_at_launch(count) && is_at_launch(step), "axis %u of the box is not known at launch", a);
		NEED(count->op != OP_CONST || (count->imm.i >= 1 && count->imm.i <= TIR_MAX_PART_ROWS), "axis %u of the box has no such count", a);
		NEED(step->op != OP_CONST || (step->imm.i >= 1 && step->imm.i <= TIR_MAX_BOX_STEP), "axis %u of the box has no such step", a);
		if (a + 1 == rank)
			NEED(count->op == OP_CONST && count->imm.i == part->terms && step->op == OP_CONST && step->imm.i == 1,
			     "the last axis of the box is not the terms");
	}
	return true;
}

static bool
check_copy(Check *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v);
	NEED(p->narg >= 2 && operand(x, v, 0)->op == OP_VIEW, "operand 0 is no view");
	ValId view = tir_arg(x->k, v, 0);
	const TirInst *w = tir_inst(x->k, view);
	unsigned rank = (unsigned)w->imm.i;
	NEED(rank >= 2 && rank <= 5, "a view of rank %u", rank);
	bool thirds = tir_copies_thirds(x->k, v);
	NEED(p->narg == 2 + rank || p->narg == 2 + 3 * rank || thirds, "rank %u takes %u operands, %u or %u, not %u", rank, 2 + rank, 3 + rank, 2 + 3 * rank, p->narg);
	for (unsigned n = 1; n < p->narg; n++)
		NEED(is_number(operand(x, v, n)), "operand %u is no i64 scalar", n);
	for (unsigned n = 1; n <= 2 * rank; n++)
		NEED(is_at_launch(operand(x, view, n)), "the view's operand %u is not known at launch", n);
	const TirInst *last = operand(x, view, 2 * rank);
	NEED(last->op == OP_CONST && last->imm.i == 1, "the view's last stride is not 1");
	const TirBuffer *b = &x->k->buffer.at[operand(x, view, 0)->imm.i];
	NEED(!b->written && !b->shared && !b->same, "of a buffer that is written");
	DType part = x->k->channel.at[TIR_CHANNEL_OF(p->imm.i)].part[TIR_PART_OF(p->imm.i)].dtype;
	NEED(thirds ? b->dtype == DT_F32 && part == DT_BF16 : b->dtype == part, "the part is of another type");
	NEED(!thirds || rank < 5, "a view of rank %u, of thirds", rank);
	return p->narg != 2 + 3 * rank || check_box(x, v, rank);
}

/* The registers of accumulators and of what is kept. */
static unsigned
own_registers(const Check *x)
{
	unsigned all = x->kept / 4;
	for (unsigned bank = 0; bank < TIR_MAX_BANKS; bank++)
		all += x->registers[bank];
	return all;
}

static unsigned
bank_registers(const Check *x, int64_t bank)
{
	return bank >= 0 && bank < TIR_MAX_BANKS ? x->registers[bank] : 0;
}

/* Whether a channel has so many parts from this one on, of one shape. */
static bool
has_parts(const TirChannel *c, unsigned from, unsigned n)
{
	for (unsigned k = from; k < from + n; k++)
		if (k >= c->nparts || c->part[k].rows != c->part[from].rows || c->part[k].turned != c->part[from].turned ||
		    c->part[k].dtype != c->part[from].dtype)
			return false;
	return true;
}

/* Whether an instruction that reads TIR_MMA_ROWS of a first factor's rows reads no further than its slot. */
static bool
reads_in_slot(const TirChannel *c, unsigned part)
{
	unsigned behind = 0;
	for (unsigned k = part + 1; k < c->nparts; k++)
		behind += tir_part_bytes(&c->part[k]);
	return behind >= (TIR_MMA_ROWS - c->part[part].rows) * TIR_PART_TERMS * (dtype_info[c->part[part].dtype].bits / 8u);
}

static bool
check_product(Check *x, ValId v)
{
	bool plain = tir_inst(x->k, v)->op == OP_MMA;
	int64_t imm = tir_inst(x->k, v)->imm.i;
	TirProduct p = plain ? tir_mma(imm) : tir_product(imm);
	NEED(p.channel < x->k->channel.n && p.other < x->k->channel.n && p.bank < TIR_MAX_BANKS, "there are %u channels", x->k->channel.n);
	const TirChannel *c = &x->k->channel.at[p.channel], *other = &x->k->channel.at[p.other];
	NEED(p.kept || p.a < c->nparts, "there are %u parts", c->nparts);
	NEED(p.b < other->nparts, "there are %u parts", other->nparts);
	const TirPart *b = &other->part[p.b];
	NEED(is_multiplied(b), "of what is not multiplied");
	NEED(p.kept || c->part[p.a].dtype == b->dtype, "of two types");
	NEED((p.kept ? p.na == 1 : has_parts(c, p.a, p.na)) && has_parts(other, p.b, p.nb), "of parts that are no factor together");
	NEED(p.nterms == 1 || (p.na == 1 && p.nb == 1 && (p.kept || has_parts(c, p.a, p.nterms)) && has_parts(other, p.b, p.nterms)),
	     "of parts that have no terms together");
	NEED(p.nb * b->rows <= TIR_MAX_PART_ROWS, "of %u columns", p.nb * b->rows);
	NEED(!p.kept || (p.a + p.nterms) * TIR_PART_TERMS <= TIR_MAX_KEPT, "so many terms are not kept");
	unsigned rows = p.kept ? (unsigned)TIR_MMA_ROWS * x->roles.shares : c->part[p.a].rows;
	if (rows < TIR_MMA_ROWS) {
		NEED(x->roles.shares == 1 && p.na == 1 && p.nterms == 1 && reads_in_slot(c, p.a), "%u rows are not shared by %u groups", rows, x->roles.shares);
		rows = TIR_MMA_ROWS;
	}
	NEED(rows % (TIR_MMA_ROWS * x->roles.shares) == 0, "%u rows are not shared by %u groups", rows, x->roles.shares);
	for (unsigned n = 0; n < (plain ? 1u : 2u); n++)
		NEED(is_number(operand(x, v, n)), "operand %u is no i64 scalar", n);
	NEED(is_condition(operand(x, v, plain ? 1 : 2)), "takes a condition");
	unsigned columns = x->columns[p.bank], registers = p.na * rows / (TIR_MMA_ROWS * x->roles.shares) * (p.nb * b->rows / 2);
	NEED(columns == p.nb * b->rows && bank_registers(x, p.bank) == registers, "another product has the accumulator");
	NEED(own_registers(x) + 24 <= x->roles.registers, "accumulators of %u registers", own_registers(x));
	return true;
}

/* Of a fill whose parts lie side by side. */
static bool
check_held(Check *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v);
	const TirChannel *c = &x->k->channel.at[TIR_CHANNEL_OF(p->imm.i)];
	unsigned share = c->part[0].rows / x->roles.shares, all = share / TIR_MMA_ROWS * (c->nparts * TIR_PART_TERMS / 2);
	NEED(is_multiplied(&c->part[0]), "of parts that are not multiplied");
	NEED(has_parts(c, 0, c->nparts) && !c->part[0].turned, "of parts that do not lie side by side");
	NEED(share * x->roles.shares == c->part[0].rows && share % TIR_MMA_ROWS == 0, "%u rows are not shared by %u groups", c->part[0].rows,
	     x->roles.shares);
	NEED((TIR_HELD_OF(p->imm.i) + 1) * TIR_HELD_LANES <= all, "a thread has %u", all);
	NEED(p->type.dtype == c->part[0].dtype && p->type.lanes == TIR_HELD_LANES, "is no vector of %u of the channel's type", TIR_HELD_LANES);
	return true;
}

static bool
check_take(Check *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v);
	const TirChannel *c = &x->k->channel.at[TIR_CHANNEL_OF(p->imm.i)];
	NEED(TIR_PART_OF(p->imm.i) < c->nparts, "there are %u parts", c->nparts);
	const TirPart *part = &c->part[TIR_PART_OF(p->imm.i)];
	unsigned bits = p->type.lanes * dtype_info[part->dtype].bits;
	NEED(!part->turned, "of a part that is turned");
	NEED(p->type.dtype == part->dtype && (bits == 32 || bits == 64 || bits == 128), "is no vector of 4, 8 or 16 bytes of the part's type");
	NEED(is_number(operand(x, v, 1)) && is_number(operand(x, v, 2)), "takes a row and a term");
	return true;
}

/* Those of one role alone: 1 the multiplying one, 2 the loading one. */
static unsigned
role_of(Op op)
{
	switch ((int)op) {
	case OP_TURN: case OP_WAIT: case OP_RELEASE: case OP_MMA: case OP_PRODUCT: case OP_KEEP: case OP_PUT: case OP_SETTLE: case OP_PIECE: case OP_HELD: case OP_TAKE: return 1;
	case OP_ACQUIRE: case OP_COPY: return 2;
	default: return 0;
	}
}

/* For what a task posts. */
static bool
is_wait(const Check *x, ValId v)
{
	return tir_inst(x->k, v)->op == OP_LOAD && x->k->buffer.at[tir_inst(x->k, tir_arg(x->k, tir_arg(x->k, v, 0), 0))->imm.i].posted;
}

static bool
check_inst(Check *x, ValId v, const WalkFrame *f)
{
	const TirInst *p = tir_inst(x->k, v);
	unsigned role = role_of((Op)p->op);
	if (p->op == OP_ROLES)
		return check_roles(x, v, f);
	NEED(p->op != OP_STORE_MATRIX || !x->k->channel.n || x->role == 1, "is met by other threads than those of its role");
	if (p->op == OP_BARRIER || p->op == OP_SHUFFLE || p->op == OP_WARP_MMA) {
		bool all = p->imm.i == 1 && !tir_has_joint(x->k);
		bool group = p->op == OP_BARRIER && (p->imm.i == TIR_GROUP_BARRIER || (x->role && (all || p->imm.i == TIR_WARP_BARRIER)));
		bool warp = p->op == OP_SHUFFLE && x->roles.warp;
		NEED(p->op != OP_BARRIER ? x->role < 2 || warp : group ? x->role == 1 : x->role == 0, "is met by other threads than those of its role");
	}
	NEED(x->role != 2 || (p->op != OP_STORE && !is_wait(x, v)), "in the loading role");
	NEED(x->role || !x->k->channel.n || (p->op != OP_LOAD && p->op != OP_STORE && p->op != OP_FETCH), "reaches memory before the roles");
	if (!role)
		return true;
	NEED(x->role == role, "stands in another role");
	if (p->op == OP_SETTLE) {
		NEED(p->imm.i >= 0 && p->imm.i < TIR_MAX_SLOTS, "there are fewer at a time");
		return true;
	}
	if (p->op == OP_TURN) {
		NEED((x->roles.turns || x->roles.order) && (p->imm.i == 0 || p->imm.i == 1), "there is no such turn");
		return true;
	}
	if (p->op == OP_PIECE || p->op == OP_PUT) {
		unsigned most = bank_registers(x, p->imm.i >> 16);
		NEED((p->imm.i & 0xffff) < most, "a thread has %u", most);
		NEED(p->op == OP_PIECE || is_float(operand(x, v, 0)), "is given no f32 scalar");
		return true;
	}
	if (p->op == OP_KEEP) {
		DType t = (DType)(p->imm.i >> 16);
		NEED((t == DT_BF16 || t == DT_F16) && 4 * (p->imm.i & 0xffff) < x->kept, "%u terms are kept", x->kept);
		NEED(is_float(operand(x, v, 0)) && is_float(operand(x, v, 1)), "is given no f32 scalars");
		return true;
	}
	if (p->op == OP_MMA || p->op == OP_PRODUCT)
		return check_product(x, v);
	NEED(p->imm.i >= 0 && TIR_CHANNEL_OF(p->imm.i) < x->k->channel.n, "there are %u channels", x->k->channel.n);
	if (p->op == OP_COPY)
		NEED(TIR_PART_OF(p->imm.i) < x->k->channel.at[TIR_CHANNEL_OF(p->imm.i)].nparts, "there are %u parts",
		     x->k->channel.at[TIR_CHANNEL_OF(p->imm.i)].nparts);
	if (p->op == OP_COPY)
		return check_copy(x, v);
	NEED(is_number(operand(x, v, 0)), "operand 0 is no i64 scalar");
	if (p->op == OP_HELD || p->op == OP_TAKE)
		return p->op == OP_HELD ? check_held(x, v) : check_take(x, v);
	NEED(p->op != OP_RELEASE || is_condition(operand(x, v, 1)), "operand 1 is no bool scalar");
	return true;
}

bool
tir_verify_roles(const TirKernel *k, Arena *scratch, const char **error)
{
	Check own = {.k = k, .scratch = scratch}, *x = &own;
	bool ok = check_channels(x);
	Walk w;
	walk_init(&w, k, scratch);
	for (WalkEvent e; ok && (e = walk_next(&w)) != WALK_END;)
		if (e == WALK_INST)
			ok = check_inst(x, w.value, &w.frame.at[w.frame.n - 1]);
		else if (w.value == x->owner)
			x->role = e == WALK_OPEN ? 1u + w.nth : 0;
	if (ok && k->channel.n && !x->owner)
		ok = fail(x, 0, "has channels, but no roles");
	if (!ok)
		*error = x->error;
	return ok;
}
