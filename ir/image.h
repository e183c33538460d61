/* image.h: the layout of an artefact, the flat file that codegen writes and the runtime loads. It
 * includes nothing of ours but a table, so that the runtime needs nothing else.
 *
 * A file is one ImageHeader and, at the byte offsets it names, arrays of the records below, a
 * string table and the code. Everything is little-endian, 8-byte aligned, and checked by the reader
 * before use: the file is hostile until proven otherwise.
 *
 * Launch expressions are postfix programs over i64 (bool as 0/1), words with the
 * operations of image_ops.def. */
#ifndef TEXO_IR_IMAGE_H
#define TEXO_IR_IMAGE_H

#include <stdint.h>

#define IMAGE_MAGIC "TEXOIMG1"
enum { IMAGE_VERSION = 5, IMAGE_MAX_RANK = 8 };

enum { /* a word: the operation in the low 8 bits, an operand above */
#define IMAGE_OP(id, pops, what) IMG_##id,
#include "ir/image_ops.def"
	IMG_OP_COUNT
};

typedef struct {
	char magic[8];
	uint32_t version, target; /* IMG_TARGET_* */
	uint64_t bytes;           /* of the whole file */
	uint64_t digest;          /* FNV-1a 64 of everything after this field: accidents, not attacks */
	uint64_t needs[2];        /* the processor features the code uses: bits by cpu_features.def */
	uint32_t stack, pad;      /* values on the stack of the deepest launch expression */
	/* each: byte offset from the start of the file, number of records (bytes for text and code) */
	struct { uint64_t at, n; } graph, param, dim, check, tensor, access, kernel, bind, words, text, code;
} ImageHeader;

/* For CUDA `code` is PTX text with a NUL behind it; needs[0] is the compute capability it is for (90 for
 * 9.0), needs[1] whether it runs on that one alone (1) or on later ones too (0). */
enum { IMG_TARGET_CPU = 1, IMG_TARGET_CUDA = 2 };

/* The digest of n bytes. */
static inline uint64_t
image_digest(const uint8_t *p, uint64_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	for (uint64_t i = 0; i < n; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h;
}

typedef struct { /* one per entry point */
	uint32_t name;                    /* offset into text, as every name below */
	uint32_t signature;               /* text: the graph's signature as JSON */
	uint32_t param0, nparam;          /* parameters, then results that are not inouts */
	uint32_t dim0, ndim;
	uint32_t check0, ncheck;
	uint32_t tensor0, ntensor;        /* intermediates and fault planes, in the workspace */
	uint32_t access0, naccess;        /* access id a (1-based) is access0 + a - 1 */
	uint32_t kernel0, nkernel;        /* in launch order */
} ImageGraph;

enum { IMG_INPUT, IMG_INOUT, IMG_SCALAR, IMG_RESULT };

typedef struct {
	uint32_t name, kind, dtype, rank; /* dtype: DType's numbering, fixed from here on */
	uint32_t extent[IMAGE_MAX_RANK];  /* first word of its launch expression */
	uint32_t unit, pad;               /* 1: kernels take its last stride for 1, so that a launch with another hands them a copy */
} ImageParam;

typedef struct {
	uint32_t name;
	int32_t param, axis;              /* as Dim in ir/tg.h; axis -1: the scalar itself; param -1: fixed */
	uint32_t turn;
	int64_t scale, offset, value;
} ImageDim;

typedef struct {
	uint32_t cond, text, line, col;
} ImageCheck;

typedef struct { /* a piece of the workspace */
	uint32_t dtype, rank;             /* a fault plane is u32 */
	uint32_t extent[IMAGE_MAX_RANK];
} ImageTensor;

typedef struct {
	uint32_t kind, text, line, col;   /* AccessKind */
} ImageAccess;

typedef struct {
	uint32_t name, template_name;
	uint32_t bind0, nbuffer, nscalar; /* nbuffer buffer binds, then nscalar scalar binds */
	uint32_t ntask, serial;           /* serial: all tasks in one call */
	uint32_t grain;                   /* launch expression: tasks that are worth a call of their own */
	uint64_t entry;                   /* offset of the function's symbol name in text */
} ImageKernel;

enum {
	IMG_BIND_PARAM,   /* buffer: the data of parameter or result `a` */
	IMG_BIND_TENSOR,  /* buffer: workspace tensor `a` */
	IMG_BIND_SCRATCH, /* buffer: memory of the running call, `a` (launch expression) elements of dtype `b` */
	IMG_BIND_EXPR,    /* scalar i64: launch expression at word `a` */
	IMG_BIND_SCALAR,  /* scalar: parameter `a` by value, in its dtype */
	IMG_BIND_STRIDE   /* scalar i64: stride in elements of axis `b` of parameter or result `a` */
};

typedef struct {
	uint32_t kind, a, b, pad;
} ImageBind;

/* Every CPU kernel has this type. buffer[k] and scalar[k] are the kernel's buffers and, 8 bytes
 * each, its scalars (narrow ones in the low bytes). A call runs the tasks task_lo .. task_hi - 1;
 * calls of one launch have the same arguments but for scratch and status. status[0] receives the first failed access,
 * status[1] the first cut; both are left alone otherwise. */
typedef void ImageCpuKernel(void *const *buffer, const uint64_t *scalar, int64_t task_lo, int64_t task_hi,
                            uint32_t *status);

/* A CUDA kernel is an entry whose parameters are 8 bytes each: nbuffer pointers, nscalar scalars as above,
 * the number of tasks, and a pointer to its two status words of 64 bits, which the launch sets to all
 * ones: they become the least of (task << 16 | access) that was met, for the first failed access and
 * the first cut. It runs in blocks of IMAGE_CUDA_BLOCK threads or fewer, of one dimension, as many
 * as one likes, and a serial one in one thread. It has no scratch. */
enum { IMAGE_CUDA_BLOCK = 256, IMAGE_CUDA_MAX_ARGUMENTS = 512 };

/* --- ahead-of-time objects: what an object file holds beside its functions --- */

typedef struct {
	const void *tables;     /* an artefact without code: the graphs as they are for this processor */
	ImageCpuKernel **entry; /* by ImageKernel */
} ImageLevel;

typedef struct {
	uint32_t version, nlevel;
	const ImageLevel *level; /* the processors it has code for, best first */
} ImageObject;

#endif
