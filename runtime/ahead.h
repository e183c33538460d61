/* ahead.h: a call of a graph that was compiled ahead of time, for ahead.c, which makes calls on the
 * processor, and ahead_cuda.c, which makes those on GPUs. */
#ifndef TEXO_RUNTIME_AHEAD_H
#define TEXO_RUNTIME_AHEAD_H

#include "runtime/inside.h"

typedef struct {
	texo_program program;
	texo_kernel kernel;
	texo_arg *arg;    /* by parameter */
	DLTensor *tensor;
	int64_t *shape;   /* IMAGE_MAX_RANK for each parameter */
} Call;

/* Lays a call with these tables, and all it works with, out in room, and returns the bytes they take; with
 * room NULL only that. */
size_t ahead_open(const void *tables, uint32_t graph, Rt *rt, uint8_t *room);
/* Fills the arguments from words and dims, or from tensors. */
texo_status ahead_take_words(Call *c, const uint64_t *word, const int64_t *dim);
texo_status ahead_take_tensors(Call *c, const DLTensor *const *args, size_t n);

#endif
