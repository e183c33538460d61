/* tir_inside.h: what the tir*.c files share and nobody else includes: regions while building, and
 * the walk over a kernel in text order, which keeps its own stack as regions may nest deeply. */
#ifndef TEXO_IR_TIR_INSIDE_H
#define TEXO_IR_TIR_INSIDE_H

#include <stdarg.h>

#include "ir/tir.h"

/* Gives v n empty regions. */
void tir_add_regions(TirKernel *k, ValId v, unsigned n);
void tir_enter(TirKernel *k, uint32_t region);
void tir_leave(TirKernel *k);

/* How many values FOR or IF v leaves for RESULT, and the k-th one: the carried initial value of a
 * FOR, the value yielded by `then` of an IF. Needs the regions to be well formed. */
unsigned tir_nresult(const TirKernel *k, ValId v);
ValId tir_result_model(const TirKernel *k, ValId v, unsigned n);

/* Of a rule that is broken at v, or with 0 in the whole kernel: "kernel K: %7 fadd: " and the words. */
const char *tir_broken(const TirKernel *k, Arena *a, ValId v, const char *fmt, va_list ap);
/* What tir_verify leaves to it: roles and channels (tir_verify_roles.c). */
bool tir_verify_roles(const TirKernel *k, Arena *scratch, const char **error);
/* And how elements that blocks hand to each other are reached (tir_handed.c). */
bool tir_verify_handed(const TirKernel *k, Arena *scratch, const char **error);

typedef enum {
	WALK_INST,  /* value: an instruction; its regions follow */
	WALK_OPEN,  /* value: the owner, nth: which of its regions begins */
	WALK_CLOSE, /* the same region ends */
	WALK_END
} WalkEvent;

typedef struct {
	uint32_t region, next; /* next: position in the region's list */
	ValId owner;           /* 0: the body */
	uint16_t nth;
} WalkFrame;

typedef struct {
	const TirKernel *k;
	Arena *scratch;
	VEC(WalkFrame) frame;
	ValId pending;      /* an instruction whose regions are being walked */
	uint16_t pending_nth;
	ValId value;        /* of the last event */
	uint16_t nth;
	uint32_t region;    /* OPEN and CLOSE: the region's index */
} Walk;

void walk_init(Walk *w, const TirKernel *k, Arena *scratch);
/* Opens or closes a region, or ends. */
WalkEvent walk_step(Walk *w);

/* Here, as most steps are one instruction further in a list. */
static inline WalkEvent
walk_next(Walk *w)
{
	WalkFrame *f = w->frame.n ? &w->frame.at[w->frame.n - 1] : NULL;
	const TirRegion *r = f ? &w->k->region.at[f->region] : NULL;
	if (w->pending || !f || f->next == r->inst.n)
		return walk_step(w);
	w->value = r->inst.at[f->next++];
	w->region = f->region;
	if (w->k->inst.at[w->value].nregion) {
		w->pending = w->value;
		w->pending_nth = 0;
	}
	return WALK_INST;
}

#endif
