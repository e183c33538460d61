/* roles_beside.c: what scores take of a tensor of rows and elements, as of a bias (roles.c).
 *
 * in     finish of a score reads T[.., row, .., element], of bf16 or f16, whose other subscripts are a task's
 * out    a channel beside those of the factors brings the rows of a task by the elements of a tile, as it brings keys; a group
 *        reads its own rows of a fill into the registers in which it has the scores, while the product that makes these goes
 *        on, and finish takes them from there
 *
 * A thread that loaded each element by itself would wait for memory with every tile, and has no register to load them early. What
 * lies beyond the tensor comes as 0: such elements are absent, or their rows nobody's, whatever is in their place.
 *
 * Blocks of the same rows of the tensor, and of other keys, are at work at the same time (roles_tasks.c): the second level's
 * cache then has what the first of them read.
 *
 * There are as many slots as shared memory has room for behind all else, two at most; where there is none, elements are loaded
 * one by one. Copies want rows that begin at multiples of 16 bytes, of this tensor too: a launch with others takes the next
 * kernel, whose plan is the same without the channel. Of several such tensors one is brought, the first. */
#include "passes/schedule/stream/roles.h"

#include "ir/bugs.h"
#include "ir/image.h"
#include "passes/expr_map.h"

enum { SLOTS = 2, SLOT_WORDS = 2 * 8 /* bytes that say who has a slot */, OF_A_BLOCK = 1024 /* that a processor keeps for each */ };

typedef struct {
	const Graph *g;
	Arena *scratch;
	const Stream *s;
	StreamElement *to;
	ExprId found;
} Find;

static void
note_read(void *user, ExprId e)
{
	Find *f = user;
	StreamElement own;
	if (f->found || !stream_take_element(f->g, f->scratch, f->s, e, f->s->lane, f->s->stream, &own) || own.turned)
		return;
	*f->to = own;
	f->found = e;
}

ExprId
sr_find_beside(const Graph *g, Arena *scratch, const Stream *s, StreamElement *to)
{
	Find f = {.g = g, .scratch = scratch, .s = s, .to = to};
	if (s->score[0].node.finish)
		expr_walk(g, scratch, s->score[0].node.finish, note_read, &f);
	return f.found;
}

/* Where a tile is folded: who makes a row anew (exact.c) reads the tensor itself. */
static void
name_beside(StreamRoles *x, Stream *s, ExprId read)
{
	Point *l = &x->s.b.l;
	ExprId *finish = &s->score[0].quick.finish;
	x->beside = expr_make(l->g, OP_IVAR, x->of[OF_BESIDE].dtype, STREAM_BESIDE, 0, NULL, 0);
	*finish = expr_replace(l->g, l->scratch, *finish, read, x->beside);
	point_declare(l, *finish);
}

void
sr_add_beside(StreamRoles *x, Stream *s, ExprId read)
{
	TirKernel *k = x->s.b.l.tir;
	uint32_t used = tir_shared_at(k, k->buffer.n), room = (IMAGE_CUDA_MAX_SHARED + OF_A_BLOCK) / x->s.b.plan->resident - OF_A_BLOCK;
	TirChannel c = {.nparts = (uint16_t)(x->elements / TIR_PART_TERMS)};
	for (unsigned n = 0; n < c.nparts; n++)
		c.part[n] = (TirPart){.dtype = x->of[OF_BESIDE].dtype, .rows = (uint16_t)x->rows, .terms = TIR_PART_TERMS};
	while (c.slots < SLOTS && used + (c.slots + 1u) * (tir_slot_bytes(&c) + SLOT_WORDS) <= room)
		c.slots++;
	if (!c.slots)
		return;
	x->beside_channel = tir_add_channel(k, &c);
	sr_bind_view(x, OF_BESIDE);
	name_beside(x, s, read);
}

void
sr_load_beside(StreamRoles *x, ValId fill)
{
	sr_acquire(x, x->beside_channel, fill);
	for (unsigned n = 0; n * TIR_PART_TERMS < x->elements; n++) {
		ValId first = sr_op(x, OP_ADD, x->s.b.first, sr_int(x, BUG(stream_beside_apart) ? 0 : n * TIR_PART_TERMS));
		sr_copy_part(x, x->beside_channel, n, OF_BESIDE, x->s.b.row0, first, fill);
	}
}

void
sr_take_beside(StreamRoles *x, ValId fill)
{
	TirKernel *k = x->s.b.l.tir;
	TirType t = tir_vector(x->of[OF_BESIDE].dtype, TIR_HELD_LANES);
	tir_emit(k, OP_WAIT, (TirType){0}, x->beside_channel, &fill, 1);
	for (unsigned n = 0; n * TIR_HELD_LANES < x->elements / 2; n++)
		x->of_beside[n] = tir_emit(k, OP_HELD, t, TIR_HELD(x->beside_channel, n), &fill, 1);
	tir_emit(k, OP_RELEASE, (TirType){0}, x->beside_channel, (ValId[]){fill, tir_int(k, DT_BOOL, 1)}, 2);
}

void
sr_place_beside(StreamRoles *x, unsigned k)
{
	Point *l = &x->s.b.l;
	ValId of = x->of_beside[k / TIR_HELD_LANES];
	point_place(l, x->beside, tir_emit(l->tir, OP_LANE, tir_scalar(x->of[OF_BESIDE].dtype), k % TIR_HELD_LANES, &of, 1));
}
