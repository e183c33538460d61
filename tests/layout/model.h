/* model.h: layouts by brute force, for the tests to hold ir/layout against: a table of every place's
 * coordinate, and a machine of lanes, warps and shared memory that runs conversion plans. It shares no
 * code with ir/ but the structs. */
#ifndef TESTS_LAYOUT_MODEL_H
#define TESTS_LAYOUT_MODEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/convert.h"
#include "ir/layout.h"

typedef struct {
	Unwind unwind;
	Arena arena;
} Fixture;

/* A macro: the frame that called setjmp must not be left. */
#define START(x)                                                       \
	do {                                                               \
		*(x) = (Fixture){0};                                           \
		arena_init(&(x)->arena, &host_default()->memory, &(x)->unwind); \
		if (setjmp((x)->unwind.env))                                   \
			fail_msg("%s", (x)->unwind.text);                          \
	} while (0)

uint64_t random_next(uint64_t *state);
unsigned random_below(uint64_t *state, unsigned n);

/* Every place in order, the register the fastest: its coordinate, from the definition alone. */
typedef struct {
	uint32_t size[AXIS_COUNT], n;
	uint64_t *coord; /* from malloc */
} Table;

Table table_of(const Layout *l);
void table_free(Table *t);
Place table_place(const Table *t, uint32_t i);
bool table_equal(const Table *a, const Table *b);
/* Whether the coordinates are exactly those of the shape, each held equally often: by 2^(dependent
 * columns) places. */
bool table_is_tile(const Table *t, const Layout *l);

const char *layout_text(Arena *a, const Layout *l);
/* Fails the test, naming the layouts; b may be NULL. */
void layout_fail(const char *why, const Layout *a, const Layout *b);
Layout layout_of(Arena *a, const char *text);

/* Every layout with these bits on registers, lanes and warps, columns of `width` bits a dimension, and
 * every list of at most `repeats` repeats of registers; the extents are what the coordinates need. Most
 * do not verify. */
typedef void LayoutVisitFn(void *user, const Layout *l);
typedef struct {
	unsigned rank, nreg, nlane, width, repeats, nwarp;
	LayoutVisitFn *visit;
	void *user;
} Family;

void layouts_of_family(const Family *f);

/* A visitor that keeps those that verify; `at` is from malloc. */
typedef struct {
	Layout *at;
	unsigned n, cap;
} LayoutList;

void layout_collect(void *list, const Layout *l);

/* A random layout that verifies, of the shape 2^bits[d] * odd[d]: the axes have nbit, those that the shape
 * does not need hold nothing new, and what is odd repeats in registers. */
Layout layout_random(uint64_t *state, const unsigned *nbit, unsigned rank, const unsigned *bits,
                     const unsigned *odd);

/* Runs the plan on every lane and checks: the result's registers hold what dst says, loads find what was
 * stored and no barrier is missing, and every access goes through the banks as often as predicted. */
void plan_run(const ConvertPlan *p, const Layout *src, const Layout *dst, unsigned bits);
/* Times the banks are gone through for accesses of `bytes` at the addresses of all lanes. */
unsigned count_wavefronts(const uint32_t *address, unsigned nlane, unsigned bytes);

#endif
