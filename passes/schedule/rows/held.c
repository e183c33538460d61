/* held.c: how much the lanes of a held row take of a thread's registers.
 *
 * What several phases read is there from the first of them to the last. What a later one reads beside comes early
 * (next.c), in a cluster only up to so many registers that three blocks of half the threads of a multiprocessor fit. */
#include "passes/schedule/rows/held.h"

#include <limits.h>

#include "passes/expr_map.h"

enum {
	LEAST_REGISTERS = 64, /* of a thread that loads its lanes of a row, whatever it holds of them */
	EARLY_REGISTERS = 80, /* up to which what a cluster's rows read beside comes early */
	OWN_REGISTERS = 32    /* of a thread that holds lanes: addresses, masks, the fold, what is on its way */
};

uint32_t
held_lane_axes(const Rows *r)
{
	uint32_t lanes = r->lanes_by_row ? 1u << (r->nrow - 1) : 0;
	for (unsigned k = 0; k < r->nloop; k++)
		lanes |= r->loop[k].lanes ? 1u << (r->nrow + k) : 0;
	return lanes;
}

typedef struct {
	const Graph *g;
	Arena *scratch;
	const Rows *rows;
	uint32_t lanes;   /* the region's axes along them */
	unsigned member;  /* that is walked */
	uint32_t *phases; /* by tensor: in which it is read along the lanes */
} Held;

static void
note_held(void *user, ExprId e)
{
	Held *h = user;
	const Expr *p = expr_get(h->g, e);
	ExprId along = p->narg && !h->rows->lanes_by_row ? expr_arg(h->g, e, p->narg - 1u) : e; /* of columns, any subscript */
	if (p->op == OP_READ && p->narg && (expr_axes(h->g, h->scratch, along) & h->lanes))
		h->phases[p->ref] |= UINT32_C(1) << h->rows->member[h->member].phase;
}

unsigned
held_words_of(const Graph *g, TensorId t)
{
	unsigned bits = dtype_info[g->tensor.at[t].dtype].bits;
	return bits > 32 ? bits / 32 : 1;
}

/* How many members fold by lane in the phase with the most of them. */
static unsigned
folds_at_once(const Rows *r)
{
	unsigned most = 0;
	for (unsigned f = 0; f < r->nphase; f++) {
		unsigned n = 0;
		for (unsigned m = 0; r->phase[f].lanes && m < r->nmember; m++)
			n += r->member[m].phase == f && rows_is_folded(&r->member[m]);
		most = n > most ? n : most;
	}
	return most;
}

typedef struct {
	const Graph *g;
	Arena *scratch;
	uint32_t lanes; /* axes along them */
	unsigned words;
} Computed;

/* Indices are the same number for all lanes, and one more for each; a row's number is the same. */
static void
note_computed(void *user, ExprId e)
{
	Computed *c = user;
	unsigned bits = dtype_info[expr_get(c->g, e)->dtype].bits;
	if (bits > 32 * c->words && (expr_axes(c->g, c->scratch, e) & c->lanes) && !expr_is_index(c->g, c->scratch, e))
		c->words = bits / 32;
}

/* The words of the widest value that is computed for each lane. */
unsigned
held_computed_words(const Graph *g, Arena *scratch, const Rows *r, uint32_t lanes)
{
	Computed c = {g, scratch, lanes, 1};
	for (unsigned m = 0; m < r->nmember; m++)
		node_walk(g, scratch, &r->member[m].node, note_computed, &c);
	return c.words;
}

/* By tensor, the phases that read it along the lanes; of one that is computed along them, that too. */
uint32_t *
held_phases(const Graph *g, Arena *scratch, const Rows *r, uint32_t lanes)
{
	Held h = {g, scratch, r, lanes, 0, ARENA_ARRAY(scratch, uint32_t, g->tensor.n)};
	for (h.member = 0; h.member < r->nmember; h.member++)
		node_walk(g, scratch, &r->member[h.member].node, note_held, &h);
	for (unsigned m = 0; m < r->nmember; m++)
		h.phases[r->member[m].t] |= h.phases[r->member[m].t] ? UINT32_C(1) << r->member[m].phase : 0;
	return h.phases;
}

/* The words that a lane of a held row has at once: what several phases read, or a later one than that which
 * computes it; terms of all folds of a phase but one; as what a lane computes
 * has as many registers as what it holds, twice what is computed at once where that is more. */
unsigned
held_words(const Graph *g, Arena *scratch, const Rows *r, uint32_t lanes, unsigned computed)
{
	const uint32_t *phases = held_phases(g, scratch, r, lanes);
	unsigned words = 0, folds = folds_at_once(r);
	for (TensorId t = 0; t < g->tensor.n; t++)
		if (phases[t] & (phases[t] - 1))
			words += held_words_of(g, t);
	words += folds > 1 ? folds - 1 : 0;
	return words > 2 * computed ? words : 2 * computed;
}

/* The bits of what several phases read, or a later one than that which computes it. */
static unsigned
held_bits(const Graph *g, const uint32_t *phases)
{
	unsigned bits = 0;
	for (TensorId t = 0; t < g->tensor.n; t++)
		bits += phases[t] & (phases[t] - 1) ? 32 * held_words_of(g, t) : 0;
	return bits;
}

/* How many bits beside those that a lane holds may come before they are needed: any, where these take too many registers. */
static unsigned
early_room(unsigned each, unsigned held)
{
	unsigned all = 32 * (EARLY_REGISTERS - OWN_REGISTERS) / each;
	return held < all ? all - held : UINT_MAX;
}

unsigned
held_early_bits(const Graph *g, Arena *scratch, const Rows *r, const KernelPlan *p)
{
	unsigned threads = p->threads * p->cluster;
	return threads ? early_room(p->lanes / threads, held_bits(g, held_phases(g, scratch, r, held_lane_axes(r)))) : UINT_MAX;
}

/* The registers of a thread that has so many lanes of a row that a cluster holds: what is held, the terms of all folds of a
 * phase but one, what a phase reads besides as it lies in memory, and what they are computed with. */
unsigned
held_registers(const Graph *g, Arena *scratch, const Rows *r, uint32_t lanes, unsigned each)
{
	const uint32_t *phases = held_phases(g, scratch, r, lanes);
	unsigned held = held_bits(g, phases), most = 0;
	for (unsigned f = 1; f < r->nphase; f++) {
		unsigned bits = 0;
		for (TensorId t = 0; t < g->tensor.n; t++)
			bits += phases[t] == UINT32_C(1) << f ? dtype_info[g->tensor.at[t].dtype].bits : 0;
		most = bits > most ? bits : most;
	}
	unsigned room = early_room(each, held), folds = folds_at_once(r), terms = folds > 1 ? folds - 1 : 0;
	unsigned n = OWN_REGISTERS + each * (held + (most < room ? most : room)) / 32 + each * terms;
	return n > LEAST_REGISTERS ? (n + 7) / 8 * 8 : LEAST_REGISTERS;
}
