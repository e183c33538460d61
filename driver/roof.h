/* roof.h: what this machine can do with the same number of threads, measured here and now: the bytes
 * that a triad moves and the operations of a loop of multiply-adds. */
#ifndef TEXO_DRIVER_ROOF_H
#define TEXO_DRIVER_ROOF_H

#include "driver/session.h"
#include "ir/gpu_rows.h"
#include "texo_rt.h"

typedef struct {
	double gbps;   /* a[i] = b[i] + s * c[i] over memory, three arrays of f64 counted once each */
	double tflops; /* f32 multiply-adds, each two operations, on registers */
} Roof;

bool roof_measure(Session *s, uint32_t threads, Roof *out);
/* --- roof_cuda.c --- */
/* The same of a GPU: a copy, its bytes counted read and written. */
texo_status roof_measure_cuda(texo_rt *rt, Roof *out);
/* --- figures_cuda.c --- */
/* What is known of a GPU where one plan of several is chosen (ir/gpus.def), in a few seconds. */
texo_status figures_measure_cuda(texo_rt *rt, int64_t fact[GPU_FACTS]);
/* --- roof.c --- */

/* --- roof_x86.c --- */
void roof_triad(double *a, const double *b, const double *c, double s, size_t n);
/* Multiply-adds in the widest registers there are; returns how many operations that was, and in *sink
 * something that depends on all of them. */
double roof_multiply_add(size_t rounds, float *sink);

#endif
