/* f2.h: linear algebra over the field of two elements, on vectors of at most 64 bits.
 *
 * A vector is a u64, addition is xor. An F2Map sends bit k of its input to col[k]. An F2Basis is a list
 * of independent vectors kept reduced, and remembers of each which of the vectors given made it. */
#ifndef TEXO_IR_F2_H
#define TEXO_IR_F2_H

#include <stdbool.h>
#include <stdint.h>

enum { F2_MAX = 64 };

typedef struct {
	unsigned n; /* input bits */
	uint64_t col[F2_MAX];
} F2Map;

typedef struct {
	unsigned n;
	uint64_t row[F2_MAX]; /* leading bits descend, and stand in no other row's place */
	uint64_t how[F2_MAX];
} F2Basis;

/* v less what the basis can make of it: 0 when v is in its span. What was used is xored onto *how,
 * which may be NULL. */
uint64_t f2_reduce(const F2Basis *b, uint64_t v, uint64_t *how);
/* Adds v, which the caller knows as `how`; false, and nothing changes, when v is in the span. */
bool f2_add(F2Basis *b, uint64_t v, uint64_t how);
/* Adds those that are not in the span, of which nothing is known. */
void f2_add_all(F2Basis *b, const uint64_t *v, unsigned n);
static inline bool
f2_has(const F2Basis *b, uint64_t v)
{
	return f2_reduce(b, v, 0) == 0;
}

unsigned f2_weight(uint64_t v); /* bits that are set */
unsigned f2_rank(const uint64_t *v, unsigned n);
/* A basis of what span(a) and span(b) share, both taken modulo the span of `modulo` (NULL: of nothing).
 * The vectors are sums of a's. Returns how many; out has room for na. */
unsigned f2_meet(const F2Basis *modulo, const uint64_t *a, unsigned na, const uint64_t *b, unsigned nb,
                 uint64_t *out);

/* A basis of the inputs that m sends to 0; out has room for m->n. */
unsigned f2_kernel(const F2Map *m, uint64_t *out);

#endif
