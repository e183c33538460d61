/* prove_system.h: polynomial inequalities over integer unknowns, for the prover alone.
 *
 * A row says: sum of coef * mono + c >= 0 (== 0 with eq), monos being products of canonical atoms
 * (ir/index.h), each standing for an integer. Rows are stacked: a nested question starts its own at
 * `base`. A row that does not fit (overflow, too many terms) is left out, which is sound. */
#ifndef TEXO_IR_PROVE_SYSTEM_H
#define TEXO_IR_PROVE_SYSTEM_H

#include "ir/index.h"

typedef struct {
	uint32_t at, n; /* terms in System.term, by ascending mono */
	int64_t c;
	bool eq, dead;
} Row;

typedef struct {
	uint32_t epoch, value;
} StampedSlot;

typedef struct {
	Graph *g;
	Arena *arena;
	VEC(IndexTerm) term;
	VEC(Row) row;
	uint32_t base;
	bool absurd; /* a row says 0 >= 1 */
	VEC(StampedSlot) slot; /* by ExprId: a set or map that is cleared by a new epoch */
	uint32_t epoch;
	VEC(int64_t) tableau;
	VEC(uint32_t) ids;
	VEC(bool) eq;
} System;

typedef struct {
	uint32_t row, term, base;
	bool absurd;
} SystemMark;

enum { SYSTEM_MAX_ROWS = 220, SYSTEM_MAX_TERMS = 48, SYSTEM_MAX_DEGREE = 6 };

SystemMark system_enter(System *s); /* a new, empty region */
void system_leave(System *s, SystemMark m);

typedef enum { ROW_LEFT_OUT, ROW_SAID, ROW_NEW } RowAdded;

/* Adds sum (+ c) of n terms (any order, repeats allowed; mono 0 counts into c), made tight over the
 * integers. ROW_SAID when it says nothing new. */
RowAdded system_add(System *s, const IndexTerm *t, unsigned n, int64_t c, bool eq);
/* row * mono and row * row as new rows, the latter only if all its monos of two atoms or more are
 * wanted; what makes that sound is the caller's affair. */
RowAdded system_add_scaled(System *s, uint32_t row, ExprId mono);
RowAdded system_add_product(System *s, uint32_t a, uint32_t b, bool (*wanted)(System *s, ExprId mono));
/* Solves equations for atoms and puts the solution into all rows; adds the equations that follow from
 * two opposite rows. */
void system_solve(System *s);
/* The rows of this region have no solution over the rationals. */
bool system_infeasible(System *s);

/* A map from expression to number, emptied by system_clear_slots. */
void system_clear_slots(System *s);
bool system_slot(System *s, ExprId e, uint32_t *value);
void system_set_slot(System *s, ExprId e, uint32_t value);

#endif
