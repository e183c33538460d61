/* tir_walk.c: visits the instructions of a kernel in text order. After an instruction come its
 * regions, each between OPEN and CLOSE. Terminates where each region has one owner, which
 * tir_verify establishes before it walks. */
#include "ir/tir_inside.h"

void
walk_init(Walk *w, const TirKernel *k, Arena *scratch)
{
	*w = (Walk){.k = k, .scratch = scratch};
	WalkFrame body = {0};
	vec_push(scratch, &w->frame, body);
}

static WalkEvent
open_region(Walk *w)
{
	uint32_t region = w->k->inst.at[w->pending].region + w->pending_nth;
	WalkFrame f = {region, 0, w->pending, w->pending_nth};
	vec_push(w->scratch, &w->frame, f);
	w->value = w->pending;
	w->nth = w->pending_nth;
	w->region = region;
	w->pending = 0;
	return WALK_OPEN;
}

static WalkEvent
close_region(Walk *w)
{
	WalkFrame f = w->frame.at[--w->frame.n];
	if (!f.owner)
		return WALK_END;
	w->value = f.owner;
	w->nth = f.nth;
	w->region = f.region;
	if (f.nth + 1u < w->k->inst.at[f.owner].nregion) {
		w->pending = f.owner;
		w->pending_nth = (uint16_t)(f.nth + 1);
	}
	return WALK_CLOSE;
}

WalkEvent
walk_step(Walk *w)
{
	if (w->pending)
		return open_region(w);
	return w->frame.n ? close_region(w) : WALK_END;
}
