/** \file texo_rt.h
 * Load and launch compiled graphs. Needs neither a compiler nor CUDA at link time.
 *
 * Every function returns a #texo_status unless it says otherwise, and texo_last_error() has the text of
 * the calling thread's last failure; it names the argument that is wrong. `create` and `load` give
 * ownership to the caller, who ends it with the `destroy` of that kind; `get` lends: what it returns lives
 * as long as what it came from. A kernel whose program or module was destroyed is refused as long as the runtime
 * or context lives that it was made with; a module or program goes on when the caller has given that up. Tensors
 * say nothing of memory that can't be written (DLPack has that flag beside them): a result's must be writable.
 * Destroying NULL is fine. On failure a result that is a pointer is NULL.
 * Nothing here prints, exits, aborts, or installs a handler, and all of it may be called from any thread,
 * except that nothing may use an object while another thread destroys it. */
#ifndef TEXO_RT_H
#define TEXO_RT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What the libraries export. */
#if defined(_WIN32)
#define TEXO_API
#else
#define TEXO_API __attribute__((visibility("default")))
#endif

/** TEXO_INIT(texo_rt_options): a value of a struct that begins with struct_size, zero but for that. A struct
 * from a later header is taken as long as the fields that the library doesn't know are zero. */
#ifdef __cplusplus
extern "C++" {
/** Behind #TEXO_INIT in C++. */
template <class T> static inline T texo_init() { T t = T(); t.struct_size = sizeof(T); return t; }
}
#define TEXO_INIT(type) (texo_init<type>())
#else
#define TEXO_INIT(type) ((type){.struct_size = sizeof(type)})
#endif

/** How a call ended; texo_status_name() has the names, texo_last_error() the details. The numbers stay. */
typedef enum texo_status {
	TEXO_OK = 0,             /**< done */
	TEXO_INVALID = 1,        /**< an argument is wrong; the text names it */
	TEXO_COMPILE_ERROR = 2,  /**< the program is wrong; see the module's diagnostics */
	TEXO_CHECK_FAILED = 3,   /**< a launch check or a fact of the program does not hold */
	TEXO_FAULT = 4,          /**< a gather or scatter went outside; see texo_kernel_status() */
	TEXO_NO_MEMORY = 5,      /**< the allocator, or the system, had no more */
	TEXO_NO_DEVICE = 6,      /**< device, driver or tool missing */
	TEXO_DEVICE_LOST = 7,    /**< an earlier fault has ended the device's context */
	TEXO_BAD_ARTEFACT = 8,   /**< not an artefact, damaged, or for another machine */
	TEXO_NOT_FOUND = 9,      /**< there is nothing of that name */
	TEXO_NOT_BUILT = 10,     /**< legal, and not built yet */
	TEXO_LIMIT = 11,         /**< a limit of texo, which the text names, was reached */
	TEXO_IO = 12,            /**< a file; the text has the system's words */
	TEXO_INTERNAL = 13       /**< our bug */
} texo_status;

/* DLPack 1.x tensor layout (dmlc/dlpack), declared here so that no other header is needed. */
#if !defined(DLPACK_DLPACK_H_) && !defined(TEXO_DLPACK)
#define TEXO_DLPACK /**< the DLPack types are declared */
/** Where a tensor's memory is. */
typedef enum {
	kDLCPU = 1,     /**< the processor's */
	kDLCUDA = 2,    /**< a CUDA device's */
	kDLCUDAHost = 3 /**< the processor's, pinned by CUDA */
} DLDeviceType;
/** A device: its kind and number. */
typedef struct {
	DLDeviceType device_type; /**< kind */
	int32_t device_id;        /**< number, 0 for the processor */
} DLDevice;
/** Kinds of element; DLDataType::bits tells their width. */
typedef enum {
	kDLInt = 0,                /**< signed integer */
	kDLUInt = 1,               /**< unsigned integer */
	kDLFloat = 2,              /**< IEEE floating point */
	kDLOpaqueHandle = 3,       /**< not taken */
	kDLBfloat = 4,             /**< bf16 */
	kDLComplex = 5,            /**< complex, two floats */
	kDLBool = 6,               /**< a byte */
	kDLFloat8_e4m3fn = 10,     /**< f8e4m3 */
	kDLFloat8_e5m2 = 12,       /**< f8e5m2 */
	kDLFloat8_e8m0fnu = 14,    /**< e8m0, a scale */
	kDLFloat4_e2m1fn = 17      /**< f4e2m1, two to a byte */
} DLDataTypeCode;
/** The type of an element. */
typedef struct {
	uint8_t code;   /**< a #DLDataTypeCode */
	uint8_t bits;   /**< of one element */
	uint16_t lanes; /**< 1 */
} DLDataType;
/** A view of a tensor; nothing in it is owned. */
typedef struct {
	void *data;           /**< base address */
	DLDevice device;      /**< where it is */
	int32_t ndim;         /**< number of axes */
	DLDataType dtype;     /**< of the elements */
	int64_t *shape;       /**< extents, by axis */
	int64_t *strides;     /**< in elements; NULL: row-major contiguous */
	uint64_t byte_offset; /**< of element 0 from data */
} DLTensor;
#endif

/** Threads, memory and device of programs. */
typedef struct texo_rt texo_rt;
/** A loaded artefact. */
typedef struct texo_program texo_program;
/** One graph of a program. */
typedef struct texo_kernel texo_kernel;

/** How texo_rt_create() makes a runtime. Zero is the default of every field; begin with
 * TEXO_INIT(texo_rt_options). */
typedef struct texo_rt_options {
	uint32_t struct_size; /**< sizeof(texo_rt_options) */
	uint32_t threads;     /**< 0: one per processor that the process may use; at most 1024 */
	const char *device;   /**< "cpu" (default) or "cuda", "cuda:N" */
	/** The allocator: alloc, resize and release as malloc, realloc and free, aligned to 16 bytes, safe to call
	 * from any thread. All three, or none (then it is the C library's). */
	void *(*alloc)(void *user, size_t n);
	void *(*resize)(void *user, void *p, size_t n); /**< see alloc */
	void (*release)(void *user, void *p);           /**< see alloc */
	void *user;                                     /**< handed to the three */
	/** NULL: the runtime starts threads of its own, when a launch first has work for two. Else it starts
	 * none and calls this, from the launching thread, with n <= threads: it runs body(arg, k) for each
	 * k < n once, on any threads, at the same time or not, and returns when all have returned. */
	void (*parallel_for)(void *parallel_user, uint32_t n, void (*body)(void *arg, uint32_t k), void *arg);
	void *parallel_user; /**< handed to parallel_for */
	/** With a "cuda" device: a CUcontext of it, which must outlive the runtime; NULL: the device's primary one, which
	 * is also the one of the CUDA runtime library. */
	void *context;
} texo_rt_options;

/** What texo_rt_get_device() tells. */
typedef struct texo_device {
	uint32_t struct_size; /**< sizeof(texo_device), set by the caller: TEXO_INIT(texo_device) */
	DLDevice device;      /**< where tensors of launches have to be */
	uint32_t capability;  /**< compute capability, 90 for 9.0; 0 for the processor */
	uint32_t processors;  /**< of the device; for the processor the threads of a launch */
	const char *name;     /**< of the device, lent by the runtime; "" for the processor */
} texo_device;

/** An argument: a tensor, or (tensor NULL) a scalar of the parameter's dtype. */
typedef struct texo_arg {
	const DLTensor *tensor; /**< a view, read during the call */
	const void *scalar;     /**< where the scalar is */
} texo_arg;

/** What texo_kernel_status() tells. */
typedef struct texo_fault {
	uint32_t struct_size; /**< sizeof(texo_fault), set by the caller: TEXO_INIT(texo_fault) */
	uint32_t failed;      /**< 1: an access failed, outputs are unspecified */
	uint32_t cut;         /**< 1: a range read from data was cut */
	uint32_t line;        /**< of the access in the source, from 1 */
	uint32_t col;         /**< of the access in the source, from 1 */
	const char *access;   /**< as written; lent by the program; "" when neither */
} texo_fault;

/** Makes a runtime. A child of fork() may go on using it when no function of it was running at the fork.
 * \param options NULL for the defaults
 * \param out     the runtime; the caller destroys it
 * \return #TEXO_OK, #TEXO_INVALID, #TEXO_NO_DEVICE with what is lacking, #TEXO_NO_MEMORY */
TEXO_API texo_status texo_rt_create(const texo_rt_options *options, texo_rt **out);
/** Gives the caller's hold up. Programs keep what they need alive; with the last of them the threads have
 * ended. */
TEXO_API void texo_rt_destroy(texo_rt *rt);
/** What the runtime's programs run on.
 * \param rt  the runtime
 * \param out filled; its struct_size must be set
 * \return #TEXO_OK, #TEXO_INVALID */
TEXO_API texo_status texo_rt_get_device(const texo_rt *rt, texo_device *out);
/** Loads an artefact. Loading is running code: do it only with artefacts you trust.
 * \param rt       the runtime
 * \param artefact its bytes, copied
 * \param n        how many
 * \param out      the program; the caller destroys it
 * \return #TEXO_OK, #TEXO_INVALID, #TEXO_BAD_ARTEFACT, #TEXO_NO_MEMORY, or #TEXO_NO_DEVICE when the system
 *         does not let generated code run */
TEXO_API texo_status texo_rt_load(texo_rt *rt, const void *artefact, size_t n, texo_program **out);
/** Frees a program with its kernels, none of which may be running. */
TEXO_API void texo_program_destroy(texo_program *p);
/** A graph of the program.
 * \param p     the program
 * \param graph its name; NULL: the only one, else the last
 * \param out   the kernel, lent by the program
 * \return #TEXO_OK, #TEXO_INVALID, #TEXO_NOT_FOUND */
TEXO_API texo_status texo_program_get_kernel(const texo_program *p, const char *graph, texo_kernel **out);

/** Does what is done once: a launch with such arguments starts no thread after it. On a CUDA device the code of the
 * kernels that run with such arguments is generated, where libtexo has compiled them in this process, and given to the
 * driver, which assembles what is no machine code yet; a launch does that for what was not prepared. A launch that was
 * prepared, with the same sizes, strides and alignment of data (NULL: to 16 bytes), may be captured into a CUDA graph.
 * \param k    the kernel
 * \param args inputs (with inouts) in source order, then results
 * \param n    how many
 * \return as texo_kernel_workspace(), what a device's driver can say, and where code is generated as
 *         texo_compile_string() */
TEXO_API texo_status texo_kernel_prepare(texo_kernel *k, const texo_arg *args, size_t n);
/** Bytes of workspace that a launch with these arguments needs: a multiple of 64, or 0. Tensors whose last axis is
 * not in a row may need room for a copy, and so may factors of products on a GPU whose rows begin at odd places.
 * \param k     the kernel
 * \param args  as for texo_kernel_launch(); their data may be NULL
 * \param n     how many
 * \param bytes the result
 * \return #TEXO_OK; #TEXO_INVALID with the argument's name; #TEXO_CHECK_FAILED; #TEXO_LIMIT */
TEXO_API texo_status texo_kernel_workspace(texo_kernel *k, const texo_arg *args, size_t n, size_t *bytes);
/** Runs the graph, with the same results on any number of threads. Never allocates, but for code that was not
 * prepared; where such code is needed and the stream is being captured, it is #TEXO_INVALID, and nothing was put on
 * the stream. On the CPU it returns
 * when done; on a CUDA device once the work is on the stream, and only texo_kernel_status() tells of accesses
 * that failed. Launches of one kernel from several threads take turns; of those that a device has at the
 * same time, which one texo_kernel_status() tells of is open.
 * \param k         the kernel
 * \param args      inputs (with inouts) in source order, then results, which share no memory with the others
 * \param n         how many
 * \param workspace aligned to 64 bytes; NULL when none is needed
 * \param stream    NULL on the CPU; a CUstream or cudaStream_t, of which NULL is the default one
 * \return as texo_kernel_prepare(), and #TEXO_FAULT when an access failed, #TEXO_DEVICE_LOST */
TEXO_API texo_status texo_kernel_launch(texo_kernel *k, const texo_arg *args, size_t n, void *workspace,
                                        void *stream);
/** What happened in the kernel's last launch. On a CUDA device call it once the stream has been waited for.
 * \param k   the kernel
 * \param out filled; its struct_size must be set
 * \return #TEXO_OK, #TEXO_INVALID, #TEXO_DEVICE_LOST */
TEXO_API texo_status texo_kernel_status(texo_kernel *k, texo_fault *out);
/** The signature as JSON: params, results, dtypes, extents.
 * \param k    the kernel
 * \param json the text, lent by the program
 * \return #TEXO_OK, #TEXO_INVALID */
TEXO_API texo_status texo_kernel_get_signature(const texo_kernel *k, const char **json);

/** Gives all functions in objects of `texo build` (but those of `--threads=1`) in this process this runtime: its
 * threads, or its parallel_for. Call it before the first of them, also of those that tell sizes; without it
 * the first makes a runtime with every processor. The runtime is kept to the end of the process. Any thread.
 * \param rt the runtime; the caller's own hold on it stays
 * \return #TEXO_OK, or #TEXO_INVALID when there is one already */
TEXO_API texo_status texo_rt_share(texo_rt *rt);

/* --- for generated code ---
 *
 * What the functions in objects of `texo build` call; their headers declare what a program calls. A word
 * is the address of a tensor, or a scalar in the low bytes; room is memory that texo_object_room says
 * the size of, aligned to 16 bytes, on the caller's stack. */

/** The tables of an object file of `texo build`; only its own functions hand it on. */
typedef struct texo_object texo_object;
/** For generated code: bytes of room that a call of a graph needs. */
TEXO_API size_t texo_object_room(const texo_object *object, uint32_t graph);
/** For generated code: runs a graph; a #texo_status. Words by parameter and result, dims in the order of the
 * signature. */
TEXO_API int texo_object_call(const texo_object *object, uint32_t graph, const uint64_t *word,
                              const int64_t *dim, void *workspace, void *room);
/** For generated code: the same for tensors, scalars as tensors of rank 0; what workspace it needs it takes
 * from malloc. */
TEXO_API int texo_object_call_dl(const texo_object *object, uint32_t graph, const DLTensor *const *args, size_t n,
                                 void *stream, void *room);
/** For generated code: puts a graph on a stream of the GPU whose context is the calling thread's, or without one
 * of the first; a #texo_status. */
TEXO_API int texo_object_call_cuda(const texo_object *object, uint32_t graph, const uint64_t *word, const int64_t *dim,
                                   void *workspace, void *stream, void *room);
/** For generated code: the same for tensors, of a GPU or the processor; what workspace it needs on a GPU comes
 * from the stream's pool. */
TEXO_API int texo_object_call_any(const texo_object *object, uint32_t graph, const DLTensor *const *args, size_t n,
                                  void *stream, void *room);
/** For generated code: what the graph's last launch on that GPU met; a #texo_status. */
TEXO_API int texo_object_status_cuda(const texo_object *object, uint32_t graph);
/** For generated code: bytes of workspace, on the processor and on GPUs; SIZE_MAX where the sizes are wrong. */
TEXO_API size_t texo_object_workspace(const texo_object *object, uint32_t graph, const uint64_t *word,
                                      const int64_t *dim, void *room);

/** The text of the calling thread's last failure, until its next; "" when there was none. */
TEXO_API const char *texo_last_error(void);
/** A status as its name without TEXO_, such as "INVALID". */
TEXO_API const char *texo_status_name(texo_status s);

#ifdef __cplusplus
}
#endif

#endif
