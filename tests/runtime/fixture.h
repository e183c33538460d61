/* fixture.h: a small artefact with all that an artefact can have, made from hand-written tile IR.
 *
 *   graph first(x: f32[N, M], ids: i64[N], table: f32[V], a: f32, k: i32, inout acc: f32[2*N + 1]) -> (y: f32[N, M])
 *     where N mod 2 == 0, k > 0
 *   t[i, j] = x[i, j] * a                 (stored in the workspace)
 *   y[i, j] = t[i, j] + table[ids[i]]     (the gather faults as access 1, "table[ids[i]]", at 7:5)
 *   acc[i] = acc[i] + k + 0.25            (the constant is in read-only data)
 *
 *   graph second(z: i4[3*K - 2, 2], flag: bool) -> (w: i4[K, 2]):  w[i, j] = flag ? z[i, j] : 0
 *
 *   graph turn(x: f32[N, M], code: u32[N]) -> (y: f32[N, M + 1])
 *   y[i, j] = x[i, M - 1 - j]     (through a row of scratch); y[i, M] counts the tasks of the call so far
 *                                 (in scratch too); code[i] is the task's fault word
 *
 *   graph after(x: f32[N, M]) -> (y: f32[N]):  y[i] = sum[a, b](x[a, b]), which one task ahead of the others leaves in
 *                                 memory that all calls share */
#ifndef TEXO_TESTS_RUNTIME_FIXTURE_H
#define TEXO_TESTS_RUNTIME_FIXTURE_H

#include "codegen/codegen.h"
#include "texo_rt.h"

enum { FIRST_ARGS = 7, SECOND_ARGS = 3, TURN_ARGS = 3, AFTER_ARGS = 2, FIXTURE_GRAPHS = 4 };

/* The programs, in a. */
void fixture_programs(Arena *a, Program *out[FIXTURE_GRAPHS]);
/* The artefact, malloced, for "x86-64-v3". */
void *fixture_image(size_t *n);
/* The same without `turn` and `after`, for this processor or GPU. */
void *fixture_image_without_scratch(const char *cpu, size_t *n);
/* The same for a GPU with machine code beside the text, of which a driver for tests needs only the first bytes. */
void *fixture_image_assembled(const char *sm, size_t *n);

/* The same where `t` is stored N * processors of the GPU / 132 rows: what a launch needs is known on the device alone. */
void *fixture_image_measured(const char *sm, size_t *n);

/* The same with tile IR in place of code, for a host that makes it. */
void *fixture_image_late(const char *sm, size_t *n);

/* Arguments of `first` with N = 4, M = 3, V = 5 that are right; change them at will. */
typedef struct {
	float x[12], table[5], acc[9], y[12], a;
	int64_t ids[4];
	int32_t k;
	int64_t shape_x[2], shape_ids[1], shape_table[1], shape_acc[1], shape_y[2];
	DLTensor tensor[5]; /* x ids table acc y */
	texo_arg arg[FIRST_ARGS];
	char workspace[256] __attribute__((aligned(64)));
} First;
void first_init(First *f);

#endif
