/* image_write.h: from programs and their code to an artefact (ir/image.h). The same input gives the
 * same bytes. */
#ifndef TEXO_CODEGEN_IMAGE_WRITE_H
#define TEXO_CODEGEN_IMAGE_WRITE_H

#include "ir/image.h"
#include "ir/kp.h"
#include "ir/text.h"

/* A kernel's module for CUDA: ImageModule. */
typedef struct {
	uint32_t kernel, form;
	const void *bytes;
	size_t n;
} ImageModuleInput;

typedef VEC(ImageModuleInput) ImageModules;

typedef struct {
	const Program *const *program;
	uint32_t nprogram;
	const char *const *const *symbol; /* [program][kernel] */
	uint32_t target;                  /* IMG_TARGET_* */
	uint64_t needs[2];
	const void *code;                 /* for the processor; or modules for CUDA */
	size_t code_size;
	const ImageModules *module;       /* NULL: none */
} ImageInput;

/* False with a message when something can't be expressed. Bytes are in a. */
bool image_write(Arena *a, const ImageInput *in, const void **bytes, size_t *n, const char **why);

/* --- the parts, image_expr.c and signature.c --- */

typedef VEC(uint32_t) Words;

typedef struct {
	Arena *arena;
	const Graph *graph;
	Words *words;
	uint32_t *at, *apart;  /* by ExprId: 1 + first word, 0 when not written yet; apart: of those that share nothing */
	uint32_t *uses, *size; /* by ExprId: in how many places of other expressions it stands; operations, up to a limit */
	uint32_t *slot;        /* by ExprId: 1 + its number among those that are shared, 0 when it is not one yet */
	Words shared;          /* their first words */
	bool shares;           /* what is written now may share */
	const int32_t *param;  /* by TensorId: index into Graph.param, -1 */
	uint32_t depth, *deepest; /* values on the stack now; the most in any expression */
	const char *why;       /* set when an expression can't be a launch expression */
} ExprWriter;

/* For the expressions of g; deepest: of all graphs. */
ExprWriter image_expr_writer(Arena *a, const Graph *g, Words *words, const int32_t *param, uint32_t *deepest);
/* The first word of e as a postfix program; 0 with why set if it can't be one. */
uint32_t image_expr(ExprWriter *w, ExprId e);
/* The same of one that is evaluated before the graph's shared expressions are. */
uint32_t image_expr_apart(ExprWriter *w, ExprId e);
/* The first word of the number v. */
uint32_t image_number(ExprWriter *w, int64_t v);
/* The first word of the product of e[0..n) (1 for n = 0). */
uint32_t image_product(ExprWriter *w, const ExprId *e, unsigned n);

/* The graph's signature as JSON. */
const char *signature_json(Arena *a, const Graph *g);
/* The tensor's shape as the source would have it: "[N, 2 * M]"; nothing for rank 0. */
void signature_shape(const Graph *g, const Tensor *t, Text *out);

#endif
