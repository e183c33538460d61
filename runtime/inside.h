/* inside.h: the runtime's own structures. An artefact's records are used in place, in one copy of the
 * file, after image_open has checked every count, index, offset and launch expression in it; what
 * reads them later checks nothing again.
 *
 * Each kernel (one per graph) owns a Frame with all the memory a launch needs, so that a launch never
 * allocates; a lock lets one launch at a time use it. */
#ifndef TEXO_RUNTIME_INSIDE_H
#define TEXO_RUNTIME_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "include/texo_rt.h"
#include "ir/gpu_rows.h"
#include "ir/image.h"
#include "runtime/pool.h"
#include "runtime/private.h"

/* --- error.c: keeps the text for texo_last_error and returns s --- */
texo_status rt_fail(texo_status s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* --- element.c: dtypes, numbered as in ir/dtype.def --- */
typedef struct {
	const char *text;
	unsigned bits, align; /* align in bytes */
	DLDataType dl;
	bool is_int, is_signed; /* is_int: bool too */
} Element;
enum {
	ELEMENT_COUNT = 1
#define DTYPE(id, text, kind, bits, arith, npy) +1
#include "ir/dtype.def"
};
const Element *element_of(uint32_t dtype); /* NULL for no dtype */
/* The integer at p, extended by its sign; bool as 0 or 1. */
int64_t element_int(const Element *e, const void *p);
/* The bytes of count elements in a row; false on overflow. */
bool element_bytes(const Element *e, int64_t count, int64_t *bytes);

/* --- checked arithmetic: false on overflow --- */
static inline bool
checked_add(int64_t a, int64_t b, int64_t *r)
{
	if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b)
		return false;
	*r = a + b;
	return true;
}
static inline bool
checked_mul(int64_t a, int64_t b, int64_t *r)
{
	if (a > 0 && (b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a))
		return false;
	if (a < 0 && (b > 0 ? a < INT64_MIN / b : b != 0 && a < INT64_MAX / b))
		return false;
	*r = a * b;
	return true;
}

/* --- image.c --- */
typedef struct {
	void *bytes; /* the copy; owned */
	const ImageHeader *header;
	const ImageGraph *graph;
	const ImageParam *param;
	const ImageDim *dim;
	const ImageCheck *check;
	const ImageTensor *tensor;
	const ImageAccess *access;
	const ImageKernel *kernel;
	const ImageBind *bind;
	const ImageMap *map;
	const uint32_t *words;
	const char *text;
	const ImageModule *module;
	const uint8_t *code;
	uint32_t stack; /* the deepest launch expression */
} Image;
/* Checks n bytes at im->bytes (8-byte aligned) and fills the rest; whatever processor they are for. */
texo_status image_read(Image *im, size_t n);
/* And whether this processor can run it. */
texo_status image_open(Image *im, size_t n);
/* The same for some GPU. */
texo_status image_open_cuda(Image *im, size_t n);

/* --- expr.c --- */
/* Of an expression of ImageGraph.shared0. */
typedef struct {
	int64_t value;
	bool exact; /* no arithmetic of i64 wrapped on the way */
} SharedValue;
typedef struct {
	const uint32_t *words;
	const int64_t *dim;
	const int64_t *param; /* the values of integer scalar parameters, by parameter */
	int64_t *stack;       /* Image.stack values */
	const SharedValue *shared; /* by number; known when the workspace is laid out */
} ExprEnv;
int64_t expr_value(const ExprEnv *env, uint32_t first);
/* The same; false when arithmetic of i64 wrapped on the way. */
bool expr_exact(const ExprEnv *env, uint32_t first, int64_t *value);
/* How expr_check judges an expression's operands. */
typedef struct {
	const ImageParam *param; /* of the graph */
	uint32_t nparam, ndim, nshared;
} ExprScope;
/* Whether the words at first are an expression that expr_value can evaluate; raises *stack to its depth. */
bool expr_check(const uint32_t *words, uint64_t n, uint32_t first, const ExprScope *s, uint32_t *stack);

/* --- cpu_x86.c: the name of a needed feature this processor lacks, or NULL --- */
const char *cpu_lacks(uint64_t needs);

/* --- load_elf.c --- */
typedef struct {
	uint8_t *at; /* one mapping: text pages, then read-only pages */
	size_t bytes, text_bytes;
	const uint8_t *object; /* the ELF file, for code_symbol */
	size_t object_bytes;
	const uint64_t *section_at; /* offset in the mapping by section, owned; UINT64_MAX: not mapped */
} Code;
typedef struct texo_rt Rt;
texo_status code_load(Rt *rt, const uint8_t *object, size_t n, Code *c);
void code_unload(Rt *rt, Code *c);
/* The function of this name, or NULL. */
ImageCpuKernel *code_symbol(const Code *c, const char *name);

/* --- objects --- */
/* What is different where programs run on another device; launches on the processor have none. */
typedef struct {
	DLDeviceType type;
	texo_status (*load)(struct texo_program *p, size_t n); /* n bytes at p->image.bytes */
	texo_status (*make_kernel)(texo_kernel *k);
	void (*free_kernel)(texo_kernel *k);
	texo_status (*prepare)(texo_kernel *k); /* of a filled frame: all that a launch would do once */
	texo_status (*run)(texo_kernel *k, void *workspace, void *stream); /* the same */
	texo_status (*fetch)(texo_kernel *k); /* frame.status of the last launch */
	void (*detach)(Rt *rt);
} Device;

enum { RETIRED = 64 };
struct texo_rt {
	atomic_uint refs;
	void *(*alloc)(void *user, size_t n);
	void (*release)(void *user, void *p);
	void *user;
	uint32_t calls; /* of one kernel at the same time, at most */
	void (*parallel_for)(void *user, uint32_t n, void (*body)(void *arg, uint32_t k), void *arg);
	void *parallel_user;
	Pool pool;      /* without threads where there is a parallel_for */
	atomic_uint retiring;
	_Atomic(void *) retired[RETIRED];
	const Device *device; /* NULL: the processor */
	struct Cuda *cuda;    /* runtime/cuda.h */
	int32_t ordinal;      /* of the device */
	const int64_t *fact;  /* the device's figures (ir/gpu_rows.h); NULL: it has none */
	bool usual_room;      /* launches have as much workspace as they need where there are none */
};
void *rt_alloc(Rt *rt, size_t count, size_t size); /* zeroed; NULL when out of memory */
void rt_release(Rt *rt, void *p);

/* --- shared.c: the runtime of code that was compiled ahead of time; lives as long as the process --- */
Rt *rt_shared(void);

/* An argument as a launch sees it. */
typedef struct {
	uint8_t *data;  /* element 0 */
	int64_t extent[IMAGE_MAX_RANK], stride[IMAGE_MAX_RANK];
	int64_t count;
	bool strided;     /* the strides were given */
	bool spanned;     /* the two below are known */
	uint64_t before, span; /* bytes from the first element to element 0, and of all */
	uintptr_t lo, hi; /* the bytes it may touch; equal when none */
	uint64_t word;    /* a scalar's bytes, as kernels get it */
	/* where aside_needed: its copy's offset in the workspace, and the strides of that */
	uint64_t aside;
	int64_t row[IMAGE_MAX_RANK];
} Arg;

/* What the calls that one thread ran met: their words, and the first task of the call that met each. */
typedef struct {
	uint32_t status[2];
	int64_t at[2];
	uint8_t pad[40]; /* a line of the cache each */
} PlaceStatus;

/* What extents, strides and integer scalars alone decide is kept for the next launch, which mostly has the same:
 * `solved` says that dims, checks and the workspace are those of `arg` and `param`. */
typedef struct {
	bool solved;
	uint64_t turn;    /* how often they were solved */
	uint32_t asides;  /* arguments that have a copy */
	const ImageKernel *bound; /* the kernel whose scalars are there, or NULL */
	Arg *arg;
	int64_t *param;   /* by parameter: an integer scalar's value */
	int64_t *dim;
	int64_t *stack;
	SharedValue *shared; /* of the dims and params that are there */
	uint64_t *piece;  /* by workspace tensor: its offset */
	uint64_t scratch; /* where the scratch of call 0 begins */
	uint64_t workspace;
	void **buffer;    /* nbuffer for each call; the kernel with the most has nbuffer */
	uint32_t nbuffer;
	uint64_t *scalar;
	PlaceStatus *place; /* one for each thread that may take part */
	uint32_t status[2];
} Frame;

struct texo_kernel {
	struct texo_program *program;
	const ImageGraph *graph;
	ImageCpuKernel **entry; /* by kernel */
	Frame frame;
	void *block;            /* where the frame's arrays lie; owned */
	struct CudaKernel *cuda; /* runtime/cuda_program.h */
	pthread_mutex_t lock;
	bool lock_made;
};

struct texo_program {
	Rt *rt;
	Image image;
	Code code;
	texo_private_maker maker;   /* make NULL: none */
	struct texo_kernel *kernel; /* one per graph */
};

/* The value of a fixed dim. */
static inline int64_t
dim_fixed(const ImageDim *d, const int64_t *fact)
{
	return fact && d->axis <= GPU_FACT_AXIS ? fact[GPU_FACT_AXIS - d->axis] : d->value;
}

/* The launch expressions' of a kernel's frame. */
static inline ExprEnv
frame_env(const texo_kernel *k)
{
	const Frame *f = &k->frame;
	return (ExprEnv){k->program->image.words, f->dim, f->param, f->stack, f->shared};
}

/* --- frame.c --- */
enum { FRAME_ALIGN = 16 };
/* Places the arrays of f in a block and returns the bytes they take; with block NULL only that. Each of
 * `calls` calls of a kernel at the same time has buffers of its own. */
size_t frame_place(Frame *f, const Image *im, const ImageGraph *g, uint32_t calls, void *block);

/* --- workspace.c: where the pieces of the workspace lie --- */
/* Row-major strides and the number of elements; false when it overflows. */
bool row_major(const int64_t *extent, uint32_t rank, int64_t *stride, int64_t *count);
/* Fills frame.piece, scratch and workspace; the dims are known. */
texo_status frame_lay_out(texo_kernel *k);
/* The buffers and scalars of a kernel, into the frame; the buffers once for each of `calls` calls. */
void frame_arguments(texo_kernel *k, const ImageKernel *kernel, uint8_t *workspace, uint32_t calls);
/* The kernel's scalars alone. */
void frame_scalars(texo_kernel *k, const ImageKernel *kernel);
/* The bytes of the bind that are 0 when its kernel begins. */
uint64_t frame_cleared(texo_kernel *k, const ImageBind *b);

/* --- map_rows.c: what boxes are copied of, the innermost axis first --- */
enum { MAP_LEAST_PITCH = 16, MAP_LINE = 128, MAP_PIECE = 16 }; /* bytes; a piece is what a thread copies */
typedef struct {
	uint32_t rank;
	int64_t extent[IMAGE_MAP_RANK], stride[IMAGE_MAP_RANK]; /* strides in bytes */
	int64_t box[IMAGE_MAP_RANK], step[IMAGE_MAP_RANK];      /* indices of a box, and how far apart they are */
	bool direct, wanted;   /* a map can be of the rows themselves, where the first begins at a multiple of 16; and is to be */
	bool thirds;           /* the copy is of the elements' thirds (ir/channel.h) */
	int64_t room;          /* bytes of a copy that the kernel may get of it; 0: none */
	int64_t pitch, pieces; /* bytes from one of its rows to the next; pieces of a row */
	int64_t each;          /* bytes of all rows, once */
} MapRows;
/* False where there can be no map. The kernel's scalars are the frame's. */
bool map_rows(const texo_kernel *k, const ImageMap *m, int64_t pitch, MapRows *to);
/* Of rows that begin at `at`: whether the map is of a copy; and whether there can be one. */
static inline bool
map_is_of_copy(const MapRows *r, const void *at)
{
	return r->room && (!r->wanted || (uintptr_t)at % MAP_LEAST_PITCH);
}
static inline bool
map_is_possible(const MapRows *r, const void *at)
{
	return map_is_of_copy(r, at) || (r->direct && (uintptr_t)at % MAP_LEAST_PITCH == 0);
}
/* The bytes of room for all copies, and as many more as they need to begin with a line. */
bool map_rows_bytes(const texo_kernel *k, const ImageKernel *kernel, int64_t pitch, int64_t *bytes);

/* --- retired.c: the kernels of destroyed programs --- */
/* Takes over memory from rt_alloc (may be NULL). */
void rt_retire(Rt *rt, void *kernels);
void rt_release_retired(Rt *rt);
/* What a call with such a kernel returns; one has program NULL, and nothing else of it may be read. */
texo_status kernel_gone(void);

/* --- arg.c --- */
/* Fills the frame from the arguments: shapes, dims, checks, workspace. With `data` also their memory:
 * null, alignment, overlap. */
texo_status frame_fill(texo_kernel *k, const texo_arg *args, size_t n, bool data);

/* --- aside.c --- */
/* Whether kernels get a copy of this tensor; its shape and strides are known. */
bool aside_needed(const Arg *a, const ImageParam *p);
/* Fills the copies of what is read; with `out`, copies what is written back. */
void aside_copy(texo_kernel *k, uint8_t *workspace, bool out);

/* --- launch.c: runs the kernels of a filled frame --- */
/* body(arg, 0 .. n - 1), on other threads where there are any (see pool_run). */
void run_places(Rt *rt, uint32_t n, PoolBody *body, void *arg);
texo_status frame_run(texo_kernel *k, void *workspace);

#endif
