/* tir_handed.c: what blocks of a cluster hand to each other (BARRIER of ir/tir.h with TIR_HANDED): which buffers such elements lie
 * in, how they may be reached, and what the interpreter of threads finds of them.
 *
 * A wait parts no threads of a block: all that it shows is the elements that it waits for. So an element is stored once for each
 * wait, else what counts them would be wrong; it is read by who has waited; and it is stored again only where all blocks are
 * known to have read the one before, and to have waited for it: each of their threads met a barrier of its block after it did, behind
 * which the blocks handed over what has been waited for since. None that comes is left when the kernel ends, since the block's
 * memory is another one's then. */
#include <stdarg.h>

#include "ir/tir_inside.h"
#include "ir/tir_threads.h"

bool *
tir_waited_for(const TirKernel *k, Arena *a)
{
	bool *waited = ARENA_ARRAY(a, bool, k->buffer.n + 1);
	for (ValId v = 1; v < k->inst.n; v++)
		if (tir_inst(k, v)->op == OP_BARRIER && TIR_HANDED_BUFFER(tir_inst(k, v)->imm.i) >= 0)
			waited[TIR_HANDED_BUFFER(tir_inst(k, v)->imm.i)] = true;
	return waited;
}

bool
tir_hands(const TirKernel *k)
{
	for (ValId v = 1; v < k->inst.n; v++)
		if (tir_inst(k, v)->op == OP_BARRIER && TIR_HANDED_BUFFER(tir_inst(k, v)->imm.i) >= 0)
			return true;
	return false;
}

/* --- the rules --- */

static const char *__attribute__((format(printf, 4, 5)))
broken(const TirKernel *k, Arena *a, ValId v, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	const char *error = tir_broken(k, a, v, fmt, ap);
	va_end(ap);
	return error;
}

static const char *
check_reach(const TirKernel *k, Arena *a, ValId v)
{
	const TirInst *p = tir_inst(k, v);
	bool stores = p->op == OP_STORE;
	if (!stores && p->op != OP_LOAD)
		return broken(k, a, v, "reaches elements that blocks hand to each other");
	if (p->type.lanes || tir_inst(k, tir_arg(k, v, 1))->type.lanes)
		return broken(k, a, v, "is of no single element that blocks hand to each other");
	if ((tir_inst(k, tir_arg(k, v, stores ? 2 : 1))->op == OP_RANK) == stores)
		return broken(k, a, v, stores ? "hands an element to the own block alone" : "is handed to another block");
	return NULL;
}

bool
tir_verify_handed(const TirKernel *k, Arena *scratch, const char **error)
{
	const bool *waited = tir_waited_for(k, scratch);
	const char *why = NULL;
	for (ValId v = 1; v < k->inst.n && !why; v++)
		for (unsigned n = 0; n < tir_inst(k, v)->narg && !why; n++) {
			const TirInst *view = tir_inst(k, tir_arg(k, v, n));
			if (view->op == OP_VIEW && waited[tir_inst(k, tir_arg(k, tir_arg(k, v, n), 0))->imm.i])
				why = check_reach(k, scratch, v);
		}
	if (why)
		*error = why;
	return !why;
}

/* --- what happens --- */

void
threads_handed_begin(Block *x)
{
	const bool *waited = tir_waited_for(x->k, x->scratch);
	x->handed = ARENA_ARRAY(x->scratch, Handed, x->k->buffer.n + 1);
	for (uint32_t b = 0; b < x->k->buffer.n; b++)
		x->handed[b].waited = waited[b];
}

bool
threads_touch_handed(Block *x, const Access *c, int64_t byte, Shadow *h)
{
	Handed *w = &x->handed[c->a->buffer];
	bool comes = h->filled && h->wrote_at >= w->waited_at;
	if (!c->writes && !h->filled)
		return threads_race(x, c, byte, "nobody wrote");
	if (comes)
		return threads_race(x, c, byte, arena_text(x->scratch, "thread %u handed over, and nobody has waited for", h->writer));
	if (!c->writes) {
		w->read_at = x->epoch;
		return true;
	}
	if (w->read_at >= c->since || w->waited_at >= c->since)
		return threads_race(x, c, byte, "another block may still wait for or read");
	if (!w->stored++)
		w->behind = x->block_epoch;
	h->wrote_at = x->epoch;
	h->writer = (uint16_t)c->thread;
	h->filled = true;
	return true;
}

bool
threads_wait_handed(Block *x, const Step *s, uint32_t buffer)
{
	const TirBuffer *b = &x->k->buffer.at[buffer];
	Handed *w = &x->handed[buffer];
	size_t bytes = dtype_info[b->dtype].bits / 8u;
	for (unsigned at = 0; at < tir_blocks(x->k); at++)
		for (unsigned n = 0; n < b->shared; n++) {
			unsigned from = n / (b->shared / tir_blocks(x->k));
			const Shadow *h = &x->memory[buffer].shadow[((size_t)at * b->shared + n) * bytes / x->memory[buffer].grain];
			if (!h->filled || h->wrote_at < w->waited_at || h->writer / x->k->threads != from)
				return threads_violation(x, s, arena_text(x->scratch, "an element of block %u has not come to block %u", from, at));
		}
	w->waited_at = ++x->epoch;
	w->stored = 0;
	if (w->behind > x->handed_epoch)
		x->handed_epoch = w->behind;
	return true;
}

bool
threads_handed_end(Block *x)
{
	for (uint32_t b = 0; b < x->k->buffer.n; b++)
		if (x->handed[b].stored) {
			x->error = arena_text(x->scratch, "kernel %s: ends before elements of %s have come", name_text(x->k->names, x->k->name),
			                      name_text(x->k->names, x->k->buffer.at[b].name));
			return false;
		}
	return true;
}
