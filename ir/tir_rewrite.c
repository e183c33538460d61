/* tir_rewrite.c: copies a kernel, each instruction but structure through a callback, which may append
 * anything, loops and branches included. Types of carried values, results and block arguments follow
 * the operands as rewritten, so a callback may also change types. */
#include "ir/tir.h"

#include "ir/tir_inside.h"

typedef struct {
	const TirKernel *from;
	TirKernel *to;
	TirEmitFn *emit;
	void *user;
	ValId *map;          /* by ValId of from */
	VEC(ValId) operand;  /* of the instruction at hand, mapped */
} Rewrite;

ValId
tir_copy_inst(TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	const TirInst *p = tir_inst(from, v);
	return tir_emit(to, (Op)p->op, p->type, p->imm.i, arg, p->narg);
}

static void
map_operands(Rewrite *r, ValId v)
{
	const TirInst *p = tir_inst(r->from, v);
	r->operand.n = 0;
	vec_grow(r->to->arena, &r->operand, p->narg);
	for (uint32_t n = 0; n < p->narg; n++) {
		ValId old = tir_arg(r->from, v, n);
		r->operand.at[n] = r->map[old];
		if (!r->map[old])
			bug(r->to->arena, "tir_rewrite: %%%u was dropped, but %%%u takes it", old, v);
	}
}

/* The type of a block argument or a result: of the carried value as rewritten. */
static TirType
carried_type(const Rewrite *r, ValId v, ValId owner)
{
	const TirInst *p = tir_inst(r->from, v);
	if (p->op == OP_BLOCKARG && p->imm.i == 0)
		return p->type;
	unsigned n = (unsigned)(p->op == OP_BLOCKARG ? p->imm.i - 1 : p->imm.i);
	return tir_inst(r->to, r->map[tir_result_model(r->from, owner, n)])->type;
}

static ValId
rewrite_inst(Rewrite *r, ValId v, ValId around)
{
	const TirInst *p = tir_inst(r->from, v);
	map_operands(r, v);
	if (p->op == OP_FOR || p->op == OP_IF || p->op == OP_ROLES) {
		ValId to = tir_copy_inst(r->to, r->from, v, r->operand.at);
		tir_add_regions(r->to, to, p->nregion);
		return to;
	}
	if (p->op == OP_YIELD)
		return tir_copy_inst(r->to, r->from, v, r->operand.at);
	if (p->op == OP_BLOCKARG || p->op == OP_RESULT)
		return tir_emit(r->to, (Op)p->op,
		                carried_type(r, v, p->op == OP_RESULT ? tir_arg(r->from, v, 0) : around),
		                p->imm.i, r->operand.at, p->narg);
	uint32_t depth = r->to->open.n;
	ValId to = r->emit(r->user, r->to, r->from, v, r->operand.at);
	if (r->to->open.n != depth)
		bug(r->to->arena, "tir_rewrite: the callback left a region open at %%%u", v);
	return to;
}

static void
enter(Rewrite *r, uint32_t region, uint32_t old)
{
	vec_room(r->to->arena, &r->to->region.at[region].inst, r->from->region.at[old].inst.n);
	tir_enter(r->to, region);
}

TirKernel *
tir_rewrite(const TirKernel *from, Arena *a, TirEmitFn *emit, void *user)
{
	Rewrite r = {.from = from, .emit = emit, .user = user};
	r.to = tir_new(a, from->names, from->name);
	r.to->form = from->form;
	r.to->threads = from->threads;
	r.to->cluster = from->cluster;
	r.to->resident = from->resident;
	r.to->group = from->group;
	r.to->anywhere = from->anywhere;
	r.to->columns = from->columns;
	r.to->sets = from->sets;
	r.to->tight = from->tight;
	r.to->fp8 = from->fp8;
	r.to->halves = from->halves;
	r.map = ARENA_ARRAY(a, ValId, from->inst.n);
	/* Most passes leave about as much as there was: nothing is copied as tables grow, and nothing left lying behind. */
	vec_room(a, &r.to->inst, from->inst.n);
	vec_room(a, &r.to->arg, from->arg.n);
	vec_room(a, &r.to->region, from->region.n);
	for (uint32_t i = 0; i < from->buffer.n; i++)
		vec_push(a, &r.to->buffer, from->buffer.at[i]);
	for (uint32_t i = 0; i < from->scalar.n; i++)
		vec_push(a, &r.to->scalar, from->scalar.at[i]);
	for (uint32_t i = 0; i < from->channel.n; i++)
		vec_push(a, &r.to->channel, from->channel.at[i]);
	Walk w;
	walk_init(&w, from, a);
	vec_room(a, &r.to->region.at[0].inst, from->region.at[0].inst.n);
	for (WalkEvent e; (e = walk_next(&w)) != WALK_END;) {
		if (e == WALK_OPEN)
			enter(&r, tir_inst(r.to, r.map[w.value])->region + w.nth, w.region);
		else if (e == WALK_CLOSE)
			tir_leave(r.to);
		else
			r.map[w.value] = rewrite_inst(&r, w.value, w.frame.at[w.frame.n - 1].owner);
	}
	return r.to;
}
