/* generator.h: the generator's state, shared by its files. */
#ifndef TEXO_TESTS_RANDOM_GENERATOR_H
#define TEXO_TESTS_RANDOM_GENERATOR_H

#include "program.h"

typedef enum { CLS_FLOAT, CLS_INT, CLS_BOOL, CLS_COMPLEX } Cls;

/* An index in scope: its name and the dim it runs over. */
typedef struct {
	char name[12];
	unsigned dim;
} Index;

enum { MAX_INDEX = 12 };

typedef struct {
	Index at[MAX_INDEX];
	unsigned n;
} Scope;

/* An expression's text, the size of its values, whether it may be absent, whether it is a reduction's value. */
typedef struct {
	const char *text;
	double mag;
	bool absent, reduced;
} Piece;

typedef struct {
	RandomProgram *p;
	Arena *a;
	uint64_t rng;
	unsigned nindex;    /* names given out */
	unsigned budget;    /* reductions left in this definition */
} Gen;

unsigned below(Gen *g, unsigned n);
bool chance(Gen *g, unsigned percent);
void trait(Gen *g, RpTrait t);
Cls class_of(DType t);
/* An expression of the class over the indices in scope. */
Piece gen_expr(Gen *g, Cls c, const Scope *sc, unsigned depth);
/* A positive function of a that a short exponential is enough for, where it is rounded to a narrow float. */
Piece gen_gated(Gen *g, Piece a);
Piece gen_cond(Gen *g, const Scope *sc, unsigned depth);
/* One whole read of t; its text and whether it may be absent. */
Piece gen_read(Gen *g, const RpTensor *t, const Scope *sc, bool plain_only);
const char *new_index(Gen *g, Scope *sc, unsigned dim, bool may_shadow);
/* Adds 1 to 3 definitions; false if there is no room. */
bool gen_definition(Gen *g);
/* Adds a result that is a fold of prefixes or suffixes. */
void gen_scan(Gen *g);
/* The next tensor, which is there once p->ntensor counts it. */
RpTensor *gen_tensor(Gen *g, const char *stem, DType t);
/* One factor of a product: any expression of the scope's last indices, its own and that of the terms. */
Piece gen_factor(Gen *g, const Scope *sc);
/* Adds a result that is a sum of products, each factor with an index of its own. */
void gen_product(Gen *g);
/* Adds results that are folds of what such sums make, relative to earlier folds of it. */
void gen_cascade(Gen *g);
/* Adds a result whose terms are read at sums of its indices and the terms'. */
void gen_window(Gen *g);
/* Adds results that are folds of folds, of what data says is there. */
void gen_chain(Gen *g);

#endif
