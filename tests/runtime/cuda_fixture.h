/* cuda_fixture.h: the runtime on a GPU that is none: fake_cuda.c stands in for the driver, and runs what is
 * launched with the same graphs' code for the processor. */
#ifndef TEXO_TESTS_RUNTIME_CUDA_FIXTURE_H
#define TEXO_TESTS_RUNTIME_CUDA_FIXTURE_H

#include "runtime/cuda.h"
#include "tests/runtime/fake_driver.h"
#include "tests/runtime/fixture.h"
#include "tests/runtime/refused.h"

extern void *image, *portable, *host_image; /* for sm_90a, sm_80, this processor */
extern void *rows_image, *assembled;        /* the first, with rows that must be contiguous; with machine code */
extern size_t image_size, portable_size, host_size, assembled_size;
extern texo_rt *host_rt;

/* Finds the driver for tests and makes all of these; 0 when they are there. */
int open_fake(void);
/* The driver as it is at first: a test's setup. */
int set_up(void **state);
void fake_reset(void);

/* --- a launch of `first` from beginning to end --- */

enum { TENSORS = 5 };

typedef struct {
	texo_rt *rt;
	texo_program *program;
	texo_kernel *kernel;
	First f;
	const void *image; /* NULL: the first */
	void *memory[TENSORS], *workspace, *stream;
	texo_fault fault;
} Whole;

texo_rt_options cuda_options(void);
texo_status whole_start(Whole *w, const texo_rt_options *o);
/* Prepares, too. */
texo_status whole_move_in(Whole *w);
texo_status whole_run(Whole *w);
/* The three. */
texo_status whole_launch(Whole *w, const texo_rt_options *o);
void whole_end(Whole *w);
void results_are_right(const Whole *w);

/* x and y lie column by column, acc backwards; and what is looked at as if they did not. */
void strided_init(Whole *w, int64_t *columns, int64_t *backwards);
void strided_results(Whole *w);

/* An artefact whose kernels take the rows of x, acc and y to be contiguous. */
void *image_of_rows(void);
/* Makes a changed copy of the first whole again. */
void image_seal(void *copy);

#endif
