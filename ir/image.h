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
#include <string.h>

#define IMAGE_MAGIC "TEXOIMG1"
enum { IMAGE_VERSION = 22, IMAGE_MAX_RANK = 8, IMAGE_MAP_RANK = 5, IMAGE_MAP_THIRDS = 3 };

enum { /* a word: the operation in the low 8 bits, an operand above */
#define IMAGE_OP(id, pops, what) IMG_##id,
#include "ir/image_ops.def"
	IMG_OP_COUNT
};

typedef struct {
	char magic[8];
	uint32_t version, target; /* IMG_TARGET_* */
	uint64_t bytes;           /* of the whole file */
	uint64_t digest;          /* image_digest of everything after this field: accidents, not attacks */
	uint64_t needs[2];        /* the processor features the code uses: bits by cpu_features.def */
	uint32_t stack, pad;      /* values on the stack of the deepest launch expression */
	/* each: byte offset from the start of the file, number of records (bytes for text and code) */
	struct { uint64_t at, n; } graph, param, dim, check, tensor, access, kernel, bind, map, words, text, module, code;
} ImageHeader;

/* For CUDA `code` is the modules one after another; needs[0] is the compute capability they are for (90
 * for 9.0), needs[1] whether that alone can run them (1) or later ones too (0). */
enum { IMG_TARGET_CPU = 1, IMG_TARGET_CUDA = 2 };

/* From this compute capability on a kernel itself waits for those that were launched before it, and a launch may have its blocks
 * begin where theirs end (programmatic dependent launch). */
enum { IMAGE_CUDA_WAITS = 90 };

/* A step of FNV-1a, by 8 bytes, whose highest bits reach the others by the shift. Words that differ, or digests before them,
 * give others: so one that was changed is seen whatever follows. */
static inline uint64_t
image_digest_word(uint64_t h, uint64_t word)
{
	h = (h ^ word) * UINT64_C(0x100000001b3);
	return h ^ h >> 32;
}

/* The digest of n bytes: all words of 8, the last filled up with zeros, after their number. Bytes one by one took a tenth of
 * the time of a GPU's compilation before LLVM. */
static inline uint64_t
image_digest(const uint8_t *p, uint64_t n)
{
	uint64_t h = image_digest_word(UINT64_C(0xcbf29ce484222325), n), word = 0;
	for (; n >= sizeof word; p += sizeof word, n -= sizeof word) {
		memcpy(&word, p, sizeof word);
		h = image_digest_word(h, word);
	}
	word = 0;
	if (n)
		memcpy(&word, p, n);
	return image_digest_word(h, word);
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
	uint32_t shared0, nshared;        /* words, each the first one of an expression whose value others share: of later ones of these,
	                                   * and of what tensors, kernels and binds have, but not of parameters and checks */
} ImageGraph;

/* When a kernel of CUDA runs, if it has tasks. Of kernels with IMG_ALIGNED and the one with IMG_ELSE behind them
 * the first that can runs, and no other; with it, after it, the one with IMG_AFTER right behind it, whose buffers suit as well. */
enum {
	IMG_ALWAYS,
	IMG_ALIGNED, /* where each buffer lies as its ImageBind.group asks */
	IMG_ELSE,
	IMG_AFTER    /* where the kernel before it runs; its memory for tasks (IMG_BIND_PASSED) is that one's, as that one left it */
};

enum {
	IMG_ANYHOW,
	IMG_GROUPS,    /* several elements are accessed at once: the start, the strides of its tensor but the last, and the bytes
	                * of a row (the last extent) are multiples of 16 bytes */
	IMG_ROW_MAJOR, /* as if its tensor had one axis: the start is a multiple of 16 bytes, and the tensor is row-major */
	IMG_GROUP_KINDS
};

enum { IMG_INPUT, IMG_INOUT, IMG_SCALAR, IMG_RESULT };

typedef struct {
	uint32_t name, kind, dtype, rank; /* dtype: DType's numbering, fixed from here on */
	uint32_t extent[IMAGE_MAX_RANK];  /* first word of its launch expression */
	uint32_t unit, pad;               /* 1: kernels take its last stride for 1, so that a launch with another hands them a copy */
} ImageParam;

typedef struct {
	uint32_t name;
	int32_t param, axis;              /* as Dim in ir/tg.h; axis -1: the scalar itself; param -1: fixed, or with axis GPU_FACT_AXIS - n
	                                   * figure n of the GPU (ir/gpu_rows.h), value where there is none */
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
	uint32_t ahead;                   /* launch expression: the first tasks, finished before others begin; each is worth a call */
	uint32_t threads;                 /* CUDA: those of a block, which take a task together; 0: one a task */
	uint32_t when;                    /* CUDA: IMG_ALWAYS, … */
	uint32_t cluster;                 /* CUDA: blocks that take a task together; 0: one */
	uint32_t map0, nmap;              /* CUDA: tensor maps */
	uint32_t shared, resident;        /* CUDA: bytes of shared memory that a launch asks for; with maps, where blocks, or
	                                   * clusters, go from task to task themselves: how many blocks each processor has */
	uint32_t covers;                  /* CUDA: where it runs, so many of the kernels behind it do not, since it does what they do */
	uint32_t pitch;                   /* CUDA, with maps: launch expression. Where a factor has rows that begin at no multiples of so many
	                                   * bytes, a launch makes a copy in rows that do, if memory has its last axis side by side.
	                                   * 0: it makes none, and what maps can't have is another kernel's */
	uint64_t entry;                   /* offset of the function's symbol name in text; CUDA: kernels with one entry are one code */
} ImageKernel;

/* For CUDA: what a kernel copies boxes of, for the driver to make a CUtensorMap of: the innermost axis first, whose stride is
 * 1; swizzled by the bytes of the box along it, 128 or 64, with zeros outside. Of elements of 8 or 4 bits the driver's map has one for as
 * many as fill 16 bits; all numbers here are the elements'. A number below 0 is the kernel's scalar -1 - number. */
typedef struct {
	uint32_t buffer, dtype, rank;
	uint32_t thirds;                  /* 1: the buffer's elements are f32, and the map is of a copy, whose last axis more is which of their
	                                   * thirds (ir/channel.h) */
	int64_t extent[IMAGE_MAP_RANK], stride[IMAGE_MAP_RANK]; /* elements */
	int64_t box[IMAGE_MAP_RANK], step[IMAGE_MAP_RANK];      /* indices of a box, and how far apart they are */
} ImageMap;

/* For CUDA: a kernel as a module of its own, so that a driver is given only those that run; where kernels are one code,
 * their modules are the same bytes. A kernel has one in each form or in some, the forms that need less work of the driver first. */
enum {
	IMG_CUBIN, /* machine code: for its compute capability and later ones of the same major number */
	IMG_PTX,   /* text with a NUL behind it */
	IMG_TIR    /* the same, of the tile IR (ir/tir.h), perhaps before its passes: for a runtime whose host makes code of it */
};

typedef struct {
	uint32_t kernel, form; /* which kernel of the file; IMG_CUBIN, … */
	uint64_t at, n;        /* bytes, counted from where code begins */
} ImageModule;

enum {
	IMG_BIND_PARAM,   /* buffer: the data of parameter or result `a` */
	IMG_BIND_TENSOR,  /* buffer: workspace tensor `a` */
	IMG_BIND_SCRATCH, /* buffer: memory of the running call, `a` (launch expression) elements of dtype `b` */
	IMG_BIND_SHARED,  /* buffer: the same where no tasks are ahead, else one memory for all calls */
	IMG_BIND_CLEARED, /* buffer, CUDA: `a` (launch expression) elements of dtype `b`, which are 0 when the kernel begins */
	IMG_BIND_PASSED,  /* buffer, CUDA: the same, with anything in them at first */
	IMG_BIND_EXPR,    /* scalar i64: launch expression at word `a` */
	IMG_BIND_SCALAR,  /* scalar: parameter `a` by value, in its dtype */
	IMG_BIND_STRIDE   /* scalar i64: stride in elements of axis `b` of parameter or result `a` */
};

typedef struct {
	uint32_t kind, a, b;
	uint32_t group;                   /* of a buffer of a kernel with IMG_ALIGNED: IMG_GROUPS and the like */
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
 * the first cut. It runs in blocks of one dimension, as many as one likes: where its record says so, of exactly
 * so many threads, which take tasks together; else of IMAGE_CUDA_BLOCK threads or fewer; and a serial one
 * in one thread. It has no scratch but what is cleared for it. A kernel's tensor maps, of 128 bytes each, are its last parameters;
 * with any, it waits itself until the launches before it on the stream have ended. */
enum { IMAGE_CUDA_BLOCK = 256, IMAGE_CUDA_MAX_THREADS = 1024, IMAGE_CUDA_MAX_CLUSTER = 8, IMAGE_CUDA_MAX_ARGUMENTS = 512, IMAGE_CUDA_MAX_MAPS = 8,
       IMAGE_CUDA_MAX_RESIDENT = 32, IMAGE_CUDA_MAX_SHARED = 232448 };

/* --- ahead-of-time objects: what an object file holds beside its functions --- */

typedef struct {
	const void *tables;     /* an artefact without code: the graphs as they are for this processor */
	ImageCpuKernel **entry; /* by ImageKernel */
} ImageLevel;

/* An artefact for a GPU. */
typedef struct {
	const void *image;
	uint64_t bytes;
} ImageGpu;

typedef struct {
	uint32_t version, nlevel;
	const ImageLevel *level; /* the processors it has code for, best first */
	uint64_t ngpu;
	const ImageGpu *gpu;     /* the GPUs it has code for, best first */
	void **loaded;           /* where the runtime keeps what it has loaded of that; NULL at first */
} ImageObject;

#endif
