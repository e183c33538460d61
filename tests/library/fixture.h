/* fixture.h: what the tests of libtexo share: a context with an allocator that counts, can be told to
 * fail, and knows what is alive; and a launch of a graph over two matrices. */
#ifndef TEXO_TESTS_LIBRARY_FIXTURE_H
#define TEXO_TESTS_LIBRARY_FIXTURE_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "texo.h"

/* y = softmax(x) over the rows, with a name of its own for the operator. */
extern const char softmax_text[];

typedef struct {
	atomic_long live;  /* allocations not released */
	atomic_long calls; /* allocations asked for */
	long fail_at;      /* this call fails; -1: none */
	bool fail_on;      /* and all after it */
	atomic_bool failed;
} Allocator;

texo_ctx_options fixture_options(Allocator *a);
texo_module *fixture_compile(texo_ctx *ctx, const char *text);
/* Launches the last graph on x[rows][cols] and returns its status; y has the same shape. */
texo_status fixture_launch(const texo_module *m, const float *x, float *y, int64_t rows, int64_t cols);
/* Fails unless y is the softmax of x in each row. */
void fixture_check_softmax(const float *x, const float *y, int64_t rows, int64_t cols);
/* Values that are not all alike. */
void fixture_fill(float *x, int64_t n);

#endif
