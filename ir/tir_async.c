/* tir_async.c: runs LOAD_MATRIX, STORE_MATRIX, ASYNC_COPY and ASYNC_WAIT. What is copied is there at once, but of its bytes it is known that
 * they are on their way: whoever touches them before the thread has waited is found, that thread too. When it has, it wrote
 * them, and others may touch them after the next barrier. */
#include <string.h>

#include "ir/tir_slot.h"
#include "ir/tir_threads.h"

/* Where the access's thread has its 16 bytes, in the memory of its block. */
static bool
find_row(Block *x, const Access *c, int64_t *byte)
{
	int64_t element;
	for (unsigned l = TIR_ASYNC_BYTES * 8u / c->bits; l-- > 0;)
		if (!threads_locate(x, c, l, &element))
			return false;
	*byte = element * (c->bits / 8);
	return *byte % TIR_ASYNC_BYTES == 0 ||
	       threads_violation(x, c->s, arena_text(x->scratch, "thread %u is at byte %lld of %s, no multiple of 16", c->thread, (long long)*byte,
	                                             name_text(x->k->names, x->k->buffer.at[c->a->buffer].name)));
}

static int64_t
own_bytes(const Access *c, const Memory *m)
{
	return m->own ? c->block * m->bytes : 0;
}

static void
enter_thread(const Block *x, Access *c, unsigned thread)
{
	c->thread = thread;
	c->block = c->blocks ? thread / x->k->threads : 0;
}

static bool
touch_bytes(Block *x, const Access *c, int64_t byte, unsigned n)
{
	const Memory *m = &x->memory[c->a->buffer];
	for (unsigned k = 0; k < n; k += m->grain)
		if (!threads_touch(x, c, byte + k, &m->shadow[(own_bytes(c, m) + byte + k) / m->grain]))
			return false;
	return true;
}

/* --- matrices --- */

/* Row `row` of matrix n, to those who get its elements, or from those who have them: a word each. */
static bool
hand_row(Block *x, Access *c, unsigned first, unsigned n, unsigned row, int64_t byte)
{
	const Memory *m = &x->memory[c->a->buffer];
	uint8_t *data = m->data + own_bytes(c, m) + byte;
	const TirInst *p = tir_inst(x->k, c->s->inst);
	DType t = (DType)(c->writes ? tir_inst(x->k, tir_arg(x->k, c->s->inst, 1))->type.dtype : p->type.dtype);
	bool turned = p->imm.i != 0;
	unsigned word = 32u / dtype_info[t].bits, bytes = 4 / word;
	for (unsigned column = 0; column < TIR_ASYNC_BYTES / bytes; column++) {
		unsigned along = turned ? row : column, across = turned ? column : row;
		c->thread = first + 4 * across + along / word;
		if (!touch_bytes(x, c, byte + bytes * column, bytes))
			return false;
		uint64_t *own = &at(x, (c->writes ? c->s->src[0] : c->s->dst) + word * n + along % word)[c->thread];
		if (c->writes)
			slot_store(t, data, column, *own);
		else
			*own = slot_load(t, data, column);
	}
	return true;
}

bool
threads_matrix(Block *x, const Step *s)
{
	Access c = threads_access(x, s, &x->program->access.at[s->access], s->kind == STEP_STORE_MATRIX);
	int64_t byte;
	for (unsigned t = x->from; t < x->to; t++) {
		unsigned lane = t % TIR_WARP;
		enter_thread(x, &c, t);
		if (!find_row(x, &c, &byte) || !hand_row(x, &c, t - lane, lane / TIR_MATRIX, lane % TIR_MATRIX, byte))
			return false;
	}
	return true;
}

/* --- copies --- */

static bool
begin_copy(Block *x, Access *to, Access *from, bool there)
{
	const Memory *m = &x->memory[to->a->buffer], *source = &x->memory[from->a->buffer];
	int64_t byte, origin;
	if (!find_row(x, to, &byte) || !touch_bytes(x, to, byte, TIR_ASYNC_BYTES))
		return false;
	byte += own_bytes(to, m);
	if (!there)
		memset(m->data + byte, 0, TIR_ASYNC_BYTES);
	else if (find_row(x, from, &origin) && touch_bytes(x, from, origin, TIR_ASYNC_BYTES))
		memcpy(m->data + byte, source->data + origin, TIR_ASYNC_BYTES);
	else
		return false;
	Coming c = {to->s, m->shadow + byte / m->grain, TIR_ASYNC_BYTES / m->grain, x->groups[to->thread], (uint16_t)to->thread};
	for (unsigned k = 0; k < c.grains; k++)
		c.place[k].coming = true;
	vec_push(x->scratch, &x->coming, c);
	return true;
}

bool
threads_async_copy(Block *x, const Step *s, const bool *active)
{
	const StepAccess *a = &x->program->access.at[s->access];
	Access to = threads_access(x, s, a, true), from = threads_access(x, s, a + 1, false);
	for (unsigned t = x->from; t < x->to; t++) {
		enter_thread(x, &to, t);
		enter_thread(x, &from, t);
		if (active[t] && !begin_copy(x, &to, &from, at(x, s->src[2])[t] != 0))
			return false;
	}
	return true;
}

void
threads_async_wait(Block *x, const Step *s, const bool *active)
{
	uint32_t most = (uint32_t)tir_inst(x->k, s->inst)->imm.i, left = 0;
	for (unsigned t = x->from; t < x->to; t++)
		x->groups[t] += active[t];
	for (uint32_t n = 0; n < x->coming.n; n++) {
		Coming c = x->coming.at[n];
		if (!active[c.thread] || c.group + most >= x->groups[c.thread]) {
			x->coming.at[left++] = c;
			continue;
		}
		for (unsigned k = 0; k < c.grains; k++) {
			c.place[k].coming = false;
			c.place[k].wrote_at = x->epoch;
		}
	}
	x->coming.n = left;
}

bool
threads_async_end(Block *x)
{
	return x->coming.n == 0 || threads_violation(x, x->coming.at[0].s, "is not waited for");
}
