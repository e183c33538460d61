/* cuda.h: NVIDIA GPUs, through their driver library, which is looked for when a runtime for one is made.
 * No CUDA header or library is needed to build. A runtime holds its device's primary context, and makes
 * it current around each call of its own, so that the calling thread's stays as it was.
 *
 * Some failures leave a context of no use. The first is kept; every later call fails with it as
 * TEXO_DEVICE_LOST, while all objects can still be destroyed. */
#ifndef TEXO_RUNTIME_CUDA_H
#define TEXO_RUNTIME_CUDA_H

#include "runtime/inside.h"

typedef struct {
	void *library;
#define CUDA_CALL(id, symbol, parameters) int (*id) parameters;
#include "runtime/cuda_driver.def"
} CudaDriver;

typedef struct Cuda {
	CudaDriver driver;
	void *context;
	int device, ordinal, sm, processors; /* sm: compute capability, 90 for 9.0 */
	char name[96];
	atomic_int lost;                     /* the result that ended the context, or 0 */
} Cuda;

/* --- cuda_driver.c --- */
/* Finds the library, and a device in it. Without them TEXO_NO_DEVICE with what is lacking. */
texo_status cuda_open(Cuda *c, int ordinal);
void cuda_close(Cuda *c);
/* What result of a call means; what: the call in a few words. */
texo_status cuda_result(Cuda *c, int result, const char *what);
/* Makes the context current until cuda_leave, which hands s on unless leaving itself fails. */
texo_status cuda_enter(Cuda *c);
texo_status cuda_leave(Cuda *c, texo_status s);

/* --- cuda_memory.c: for programs that have no CUDA of their own, such as the command --- */
texo_status cuda_memory_alloc(Rt *rt, size_t bytes, void **out);
void cuda_memory_free(Rt *rt, void *at);
/* Both return when the bytes are there. */
texo_status cuda_copy_in(Rt *rt, void *to, const void *from, size_t bytes);
texo_status cuda_copy_out(Rt *rt, void *to, const void *from, size_t bytes);
/* Waits for all that was launched on the stream. */
texo_status cuda_wait(Rt *rt, void *stream);

/* --- cuda_program.c --- */
/* Makes rt one for this device of "cuda" or "cuda:N". */
texo_status cuda_attach(Rt *rt, const char *device);

#endif
