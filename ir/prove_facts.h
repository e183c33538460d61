/* prove_facts.h: how the prover keeps facts; shared by its files (prove*.c) alone.
 *
 *   prove.c         the stack of facts, goals split into literals, what is answered at a glance
 *   prove_refute.c  facts and a negated goal -> rows -> contradiction; products and case splits
 *   prove_atoms.c   what div, mod, min, max, abs, select and casts say about themselves
 *   prove_bound.c   extremes over a box
 *   prove_system.c, simplex.c   rows of integers */
#ifndef TEXO_IR_PROVE_FACTS_H
#define TEXO_IR_PROVE_FACTS_H

#include "ir/prove.h"
#include "ir/prove_system.h"

typedef enum {
	ENTRY_RANGE, /* lo <= v < hi */
	ENTRY_CMP,   /* a op b, op one of LT LE EQ, operands i64 */
	ENTRY_ANY,   /* cond, which is a disjunction: positive OR, negative AND, or NE */
	ENTRY_BOOL   /* cond, of which nothing is known but that it is true, or false */
} EntryKind;

typedef struct {
	EntryKind kind;
	Op op;
	bool positive;
	bool split; /* ANY: already split by a case above */
	ExprId cond; /* as pushed; CMP: 0 when it was turned */
	ExprId a, b;      /* CMP */
	ExprId v, lo, hi; /* RANGE */
} Entry;

typedef struct {
	ExprId leaf, by;
} Subst;

struct Facts {
	Graph *g;
	Arena *arena;
	VEC(Entry) entry;
	VEC(ExprId) expanded; /* atoms whose own facts are on the stack, or being found */
	VEC(Subst) subst;     /* leaves that facts equate with something, for use inside div and mod */
	System sys;
	unsigned steps;       /* linear questions left to one prove() */
};

/* The facts and those from `seed` on contradict one another; only what hangs together with the seed
 * is looked at. depth bounds questions within questions. */
bool prove_refute(Facts *f, uint32_t seed, unsigned depth);
/* cond holds, as a question within a question. */
bool prove_within(Facts *f, ExprId cond, unsigned depth);
/* Pushes what atom e says about itself. False when there is nothing. */
bool prove_expand_atom(Facts *f, ExprId e, unsigned depth);
/* Pushes cond, or its negation. */
void facts_push_literal(Facts *f, ExprId cond, bool positive);

/* Whether e is or contains `what`; true also when e is too deep to see. depth is 0. */
bool prove_mentions(const Graph *g, ExprId e, ExprId what, unsigned depth);

/* cond without the leaves that have a substitute, canonical. */
ExprId facts_canonical(Facts *f, ExprId e);

enum { PROVE_DEPTH = 3, PROVE_STEPS = 96 };

#endif
