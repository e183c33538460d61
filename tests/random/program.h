/* program.h: random programs as text, built from the result backwards, with the sizes and the ranges
 * of inputs that make them legal. The same seed gives the same program everywhere. */
#ifndef TEXO_TESTS_RANDOM_PROGRAM_H
#define TEXO_TESTS_RANDOM_PROGRAM_H

#include "ir/dtype.h"
#include "ir/text.h"

enum { RP_MAX_DIM = 6, RP_MAX_RANK = 6, RP_MAX_TENSOR = 32 };

/* What a program contains; each is one bit, counted over a run and held against the plan. */
typedef enum {
	RP_DOMAIN, RP_GATHER, RP_DEPENDENT, RP_RECURRENCE, RP_SCATTER, RP_REDUCTION, RP_OPTIONAL, RP_INOUT,
	RP_RANDOM_NUMBERS, RP_COMPLEX, RP_SIZE_0, RP_SIZE_1, RP_EXACT, RP_STD, RP_NARROW,
	RP_DATA_RANGE, RP_SCAN, RP_TRAIT_COUNT
} RpTrait;
extern const char *const rp_trait_name[RP_TRAIT_COUNT];

typedef struct {
	char name[12];
	bool input, inout, scalar, result;
	DType dtype;
	unsigned rank;
	unsigned dim[RP_MAX_RANK];
	int into;          /* integers: a position in this dim, or -1 */
	bool absent;       /* an intermediate with holes */
	double magnitude;  /* of its values, as far as known */
} RpTensor;

typedef struct {
	uint64_t seed;
	unsigned ndim;
	int64_t size[RP_MAX_DIM];
	unsigned ntensor;
	RpTensor tensor[RP_MAX_TENSOR];
	uint32_t traits;
	unsigned rank;     /* of the highest result */
	bool exact;        /* every float value is an integer small enough to be exact everywhere */
	bool stray;        /* some gathers leave their tensor */
	bool units;        /* sizes, types and cascades that a GPU's matrix units take: of seeds from 2^32 on */
	const char *fact;  /* what the graph demands of its dims; NULL: nothing */
	Text text;
} RandomProgram;

/* Fills p; memory from a. */
void rp_generate(RandomProgram *p, Arena *a, uint64_t seed);

/* splitmix64 (Steele, Lea, Flood 2014) */
uint64_t rp_next(uint64_t *state);
unsigned rp_below(uint64_t *state, unsigned n);

#endif
