/* texo_rt.h: load and launch compiled graphs. Needs neither a compiler nor CUDA at link time.
 *
 * Every function returns a texo_status unless it says otherwise; texo_last_error() has the text of
 * the calling thread's last failure. create and load give ownership to the caller, get borrows.
 * Nothing here prints, exits, aborts, or installs a handler. */
#ifndef TEXO_RT_H
#define TEXO_RT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define TEXO_API
#else
#define TEXO_API __attribute__((visibility("default")))
#endif

typedef enum texo_status {
	TEXO_OK = 0,
	TEXO_INVALID = 1,        /* an argument is wrong; the text names it */
	TEXO_COMPILE_ERROR = 2,  /* the program is wrong; see the module's diagnostics */
	TEXO_CHECK_FAILED = 3,   /* a launch check or a fact of the program does not hold */
	TEXO_FAULT = 4,          /* a gather or scatter went outside; see texo_kernel_status */
	TEXO_NO_MEMORY = 5,
	TEXO_NO_DEVICE = 6,      /* device, driver or tool missing */
	TEXO_DEVICE_LOST = 7,
	TEXO_BAD_ARTEFACT = 8,   /* not an artefact, damaged, or for another machine */
	TEXO_NOT_FOUND = 9,
	TEXO_NOT_BUILT = 10,     /* legal, and not built yet */
	TEXO_LIMIT = 11,
	TEXO_IO = 12,
	TEXO_INTERNAL = 13       /* our bug */
} texo_status;

/* DLPack 1.x tensor layout (dmlc/dlpack), declared here so that no other header is needed. */
#ifndef DLPACK_DLPACK_H_
typedef enum { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3 } DLDeviceType;
typedef struct { DLDeviceType device_type; int32_t device_id; } DLDevice;
typedef enum {
	kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLOpaqueHandle = 3, kDLBfloat = 4, kDLComplex = 5, kDLBool = 6,
	kDLFloat8_e4m3fn = 10, kDLFloat8_e5m2 = 12, kDLFloat8_e8m0fnu = 14, kDLFloat4_e2m1fn = 17
} DLDataTypeCode;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
typedef struct {
	void *data;
	DLDevice device;
	int32_t ndim;
	DLDataType dtype;
	int64_t *shape;
	int64_t *strides; /* in elements; NULL: row-major contiguous */
	uint64_t byte_offset;
} DLTensor;
#endif

typedef struct texo_rt texo_rt;
typedef struct texo_program texo_program;
typedef struct texo_kernel texo_kernel;

typedef struct texo_rt_options {
	uint32_t struct_size;
	uint32_t threads;                          /* 0: one per processor */
	const char *device;                        /* "cpu" (default) or "cuda", "cuda:N" */
	void *(*alloc)(void *user, size_t n);      /* NULL: malloc */
	void *(*resize)(void *user, void *p, size_t n);
	void (*release)(void *user, void *p);
	void *user;
} texo_rt_options;

/* An argument: a tensor, or (tensor NULL) a scalar of the parameter's dtype at `scalar`. */
typedef struct texo_arg {
	const DLTensor *tensor;
	const void *scalar;
} texo_arg;

typedef struct texo_fault {
	uint32_t struct_size;
	uint32_t failed;     /* 1: an access failed, outputs are unspecified */
	uint32_t cut;        /* 1: a range read from data was cut */
	uint32_t line, col;
	const char *access;  /* as written; borrowed from the program; "" when neither */
} texo_fault;

/* options may be NULL. A runtime may be used from any thread. */
TEXO_API texo_status texo_rt_create(const texo_rt_options *options, texo_rt **out);
/* NULL is fine. Programs keep what they need alive. */
TEXO_API void texo_rt_destroy(texo_rt *rt);
/* Loads an artefact (n bytes, copied). Loading is running code: do it only with artefacts you trust. */
TEXO_API texo_status texo_rt_load(texo_rt *rt, const void *artefact, size_t n, texo_program **out);
TEXO_API void texo_program_destroy(texo_program *p);
/* graph NULL: the only one, else the last. Borrowed from p. */
TEXO_API texo_status texo_program_get_kernel(const texo_program *p, const char *graph, texo_kernel **out);

/* Arguments are inputs (with inouts) in source order, then results. */
TEXO_API texo_status texo_kernel_prepare(texo_kernel *k, const texo_arg *args, size_t n);
/* Bytes of workspace a launch with these arguments needs (results may have NULL data). */
TEXO_API texo_status texo_kernel_workspace(texo_kernel *k, const texo_arg *args, size_t n, size_t *bytes);
/* Runs the graph; workspace is 64-byte aligned, may be NULL when 0 bytes are needed. Never allocates.
 * On the CPU it returns when done, with TEXO_FAULT when an access failed; stream must be NULL. */
TEXO_API texo_status texo_kernel_launch(texo_kernel *k, const texo_arg *args, size_t n, void *workspace,
                                        void *stream);
TEXO_API texo_status texo_kernel_status(texo_kernel *k, texo_fault *out);
/* The signature as JSON: params, results, dtypes, extents. Borrowed. */
TEXO_API texo_status texo_kernel_get_signature(const texo_kernel *k, const char **json);

TEXO_API const char *texo_last_error(void);
TEXO_API const char *texo_status_name(texo_status s);

#ifdef __cplusplus
}
#endif

#endif
