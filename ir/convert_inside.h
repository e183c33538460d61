/* convert_inside.h: what the files of conversion share. */
#ifndef TEXO_IR_CONVERT_INSIDE_H
#define TEXO_IR_CONVERT_INSIDE_H

#include "ir/convert.h"
#include "ir/layout_split.h"

/* Quarter-cycles of one of an SM's four schedulers: an instruction on registers; one on the memory pipe,
 * which all four share, and each time it goes through the banks; waiting for what was stored. */
enum { COST_REGISTER = 1, COST_ISSUE = 4, COST_PIPE = 4, COST_WARP_BARRIER = 120, COST_BLOCK_BARRIER = 200 };

/* One side: its register bits (with their weights), its lanes and warps. */
typedef struct {
	const Layout *layout;
	Split split;
	unsigned nlane, nwarp;
	const uint64_t *lane, *warp;
} Side;

typedef struct {
	Arena *arena;
	const ConvertMeans *means;
	Side src, dst;
	bool one_warp;    /* each warp's elements stay in it */
	bool own_scratch; /* and no other warp has them: warps need not wait for one another */
	uint32_t result;
} Conversion;

Side convert_side(const Layout *canonical); /* without its split */
ConvertStep *plan_add(Arena *a, ConvertPlan *p, ConvertStepKind kind, uint32_t n, uint32_t width);
/* Steps of the class into an empty plan; false when it does not apply. */
bool convert_by_rename(const Conversion *c, ConvertPlan *p);
bool convert_by_shuffle(const Conversion *c, ConvertPlan *p);
bool convert_by_memory(const Conversion *c, ConvertPlan *p);
/* Any two layouts of one shape, element by element through a row-major scratch of the whole tile. */
void convert_by_element(const Conversion *c, ConvertPlan *p);

/* --- a side's way to and from memory, convert_move.c --- */

enum { WARP_BITS = 5, PASS_SHIFT = 32, VECTOR_BITS = 128, COMMON = 2 * LAYOUT_BITS };

typedef enum { MOVE_VECTOR, MOVE_MATRIX, MOVE_TRANSPOSED } MoveKind;

/* How one side reaches the scratch. */
typedef struct {
	MoveKind kind;
	unsigned width;              /* VECTOR: log2 of the elements */
	unsigned npack;              /* matrices: log2 of the elements in 32 bits */
	uint64_t pack[4];
	unsigned nphase;
	uint64_t phase[WARP_BITS];   /* what the lanes of one access reach */
	unsigned nrest;
	uint64_t rest[COMMON];       /* the side's other registers, without what passes count */
} Move;

typedef struct {
	unsigned nvec, nbank, nseg, npass, n; /* n: all without the passes, and what extends them */
	uint64_t vec[4], pass[COMMON], basis[F2_MAX], seg[F2_MAX];
	unsigned nfree; /* seg[]: all that is free of conflicts, the segments first */
	F2Basis place;  /* how: the offset; the passes above PASS_SHIFT */
	Move src, dst;
} Scratch;

/* Chooses how a side reaches memory whose offsets begin with t->vec, by matrices if it may. */
void move_choose(const Conversion *c, const Scratch *t, const Side *s, bool matrix, Move *m);
/* Fits it to t->place and lists the other registers; false when its rows do not start whole. */
bool move_fit(const Scratch *t, const Side *s, Move *m);
/* The step for one pass and one value of the mixed digits. */
ConvertStep *move_add(const Conversion *c, const Scratch *t, bool load, uint64_t pass, uint32_t digits,
                      ConvertPlan *p);
/* The step for registers of the result that hold what another of the same lane holds. */
void move_duplicates(const Conversion *c, ConvertPlan *p);

static inline unsigned
log2_of(unsigned v)
{
	unsigned n = 0;
	for (; v > 1; v /= 2)
		n++;
	return n;
}

/* How many values the mixed digits have, and what value v adds to the register's number. */
uint32_t split_digits(const Split *s);
uint32_t split_register(const Split *s, uint64_t bits, uint32_t v);

#endif
