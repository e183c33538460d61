/* cuda.h: NVIDIA GPUs, through their driver library, which is looked for when a runtime for one is made.
 * No CUDA header or library is needed to build. A runtime holds its device's primary context, or has the
 * host's own, and makes it current around each call of its own, so that the calling thread's stays as it was.
 *
 * Some failures leave a context of no use. The first is kept; every later call fails with it as
 * TEXO_DEVICE_LOST, while all objects can still be destroyed. */
#ifndef TEXO_RUNTIME_CUDA_H
#define TEXO_RUNTIME_CUDA_H

#include "runtime/inside.h"

/* CUlaunchAttribute, of which only numbers are used, and CUlaunchConfig. */
typedef struct {
	int id, pad;
	union {
		int number;
		unsigned char bytes[64];
	} value;
} CudaLaunchAttribute;

typedef struct {
	unsigned grid[3], block[3], shared;
	void *stream;
	CudaLaunchAttribute *attribute;
	unsigned nattribute;
} CudaLaunch;

typedef struct {
	void *library;
#define CUDA_CALL(id, symbol, parameters) int (*id) parameters;
#include "runtime/cuda_driver.def"
} CudaDriver;

typedef struct Cuda {
	CudaDriver driver;
	void *context;
	bool borrowed; /* the context is the host's */
	int device, ordinal, sm, processors; /* sm: compute capability, 90 for 9.0 */
	const GpuRow *row;                   /* of ir/gpus.def, for this device */
	int64_t fact[GPU_FACTS];             /* its figures: the row's, or measured ones */
	char name[96];
	char assembler[192];                 /* the driver's, and the device, as a key may name them; "": not known */
	atomic_int lost;                     /* the result that ended the context, or 0 */
	pthread_mutex_t rows_lock;           /* of those below: cuda_rows.c's */
	void *rows_module, *rows[4];         /* by the binary logarithm of an element's bytes */
	void *boxes_module, *boxes, *thirds; /* cuda_boxes.c's, of the same lock */
} Cuda;

/* --- cuda_driver.c --- */
/* Finds the library, and a device in it. Without them TEXO_NO_DEVICE with what is lacking. context: the
 * host's, or NULL. */
texo_status cuda_open(Cuda *c, int ordinal, void *context);
/* The calling thread's context, NULL where it has none. found: a driver that was found before, or NULL. */
texo_status cuda_current(const CudaDriver *found, void **context);
/* The number of its device. */
texo_status cuda_current_device(int *ordinal);
void cuda_close(Cuda *c);
/* What result of a call means; what: the call in a few words. */
texo_status cuda_result(Cuda *c, int result, const char *what);
/* A module of PTX that a NUL ends, and a function of it; in the context. */
texo_status cuda_load_text(Cuda *c, const char *text, void **module);
/* The machine code that the driver makes of such a text: a link, which has it until cuda_forget_code. */
texo_status cuda_assemble(Cuda *c, const char *text, void **link, void **machine, size_t *bytes);
void cuda_forget_code(Cuda *c, void *link);
texo_status cuda_find_function(Cuda *c, void *module, const char *name, void **function);
/* Makes the context current until cuda_leave, which hands s on unless leaving itself fails. */
texo_status cuda_enter(Cuda *c);
texo_status cuda_leave(Cuda *c, texo_status s);

/* --- cuda_facts.c --- */
/* The row of a device of this name and capability, and its figures where it has so many processors. */
const GpuRow *cuda_row(const char *name, int sm);
void cuda_row_facts(const GpuRow *row, int processors, int64_t fact[GPU_FACTS]);
/* Whether they can be a device's: all above 0, and so small that no product of some overflows. */
bool cuda_facts_possible(const int64_t fact[GPU_FACTS]);

/* --- cuda_memory.c: for programs that have no CUDA of their own, such as the command --- */
texo_status cuda_memory_alloc(Rt *rt, size_t bytes, void **out);
void cuda_memory_free(Rt *rt, void *at);
/* Both return when the bytes are there. */
texo_status cuda_copy_in(Rt *rt, void *to, const void *from, size_t bytes);
texo_status cuda_copy_out(Rt *rt, void *to, const void *from, size_t bytes);
/* Memory that is there for what is put on the stream between the two. */
texo_status cuda_stream_alloc(Rt *rt, size_t bytes, void *stream, void **out);
texo_status cuda_stream_free(Rt *rt, void *at, void *stream);
/* Waits for all that was launched on the stream. */
texo_status cuda_wait(Rt *rt, void *stream);

/* --- cuda_events.c: how long the device takes, for programs that have no CUDA of their own --- */
texo_status cuda_event_new(Rt *rt, void **event);
void cuda_event_free(Rt *rt, void *event);
/* The event is when all that was put on the stream before it has ended. */
texo_status cuda_event_record(Rt *rt, void *event, void *stream);
/* Waits for the second, and tells the microseconds between the two. */
texo_status cuda_event_between(Rt *rt, void *from, void *to, double *us);
/* Bytes of the device's cache. */
texo_status cuda_cache_bytes(Rt *rt, size_t *bytes);
/* Both put work on the stream and don't wait for it. */
texo_status cuda_fill(Rt *rt, void *at, unsigned char byte, size_t bytes, void *stream);
texo_status cuda_copy_inside(Rt *rt, void *to, const void *from, size_t bytes, void *stream);
/* A module of PTX that a NUL ends, and its function of this name. */
texo_status cuda_function_new(Rt *rt, const char *ptx, const char *name, void **module, void **function);
/* Another one of the module. */
texo_status cuda_function_of(Rt *rt, void *module, const char *name, void **function);
void cuda_function_free(Rt *rt, void *module);
/* A grid of one dimension, with parameters as cuLaunchKernel has them. */
texo_status cuda_launch_function(Rt *rt, void *function, unsigned blocks, unsigned threads, void **parameter, void *stream);

/* --- cuda_program.c --- */
/* Makes rt one for this device of "cuda" or "cuda:N"; context as for cuda_open. */
texo_status cuda_attach(Rt *rt, const char *device, void *context);

#endif
