/* cuda_program.h: what a graph has on a GPU, for cuda_program.c, which makes it, and cuda_launch.c. */
#ifndef TEXO_RUNTIME_CUDA_PROGRAM_H
#define TEXO_RUNTIME_CUDA_PROGRAM_H

#include "runtime/inside.h"

typedef struct {
	uint64_t word[2]; /* as ir/image.h tells: the first failed access, the first cut */
} CudaWords;

/* By kernel: the driver's module and its function, NULL until the kernel is to run. */
typedef struct {
	void *module, *function;
} CudaCode;

typedef struct CudaKernel {
	CudaCode *code;   /* by kernel */
	CudaWords *met;   /* by kernel: where `words` are copied to */
	int64_t *ntask;   /* by kernel: its tasks, by the sizes alone; */
	int64_t *pitch;   /* and what rows of maps are to begin at multiples of */
	uint64_t turn;    /* the frame's, of which they are */
	int64_t *run;     /* by kernel: how many tasks of it run with these arguments, 0: none */
	bool copies;      /* some that run have maps of copies */
	uint32_t filled;  /* the kernel whose buffers the frame has; UINT32_MAX: none of this launch */
	void **parameter; /* of the kernel that is launched */
	unsigned char *map; /* CUDA_MAP_ALIGN-aligned in map_memory: those of the kernel that is launched */
	void *map_memory;
	uint64_t words;   /* on the device, by kernel */
	bool launched;
	bool launching;   /* a launch on this stream, and no prepare, is going on */
	void *stream;
} CudaKernel;

/* cuda_code.c: kernel n of the graph, whose code may have to be made, and assembled by the driver; in the context. */
texo_status cuda_load_kernel(texo_kernel *k, uint32_t n);
/* Refuses to load for a launch on a stream that is being captured, where that isn't legal. In the context. */
texo_status cuda_may_load(texo_kernel *k);
/* cuda_keep.c: gives the maker the machine code of what it made and the driver loaded as `module`, in blocks of so many
 * threads, if it is as good; in the context. */
void cuda_keep_code(const texo_program *p, const texo_private_kernel *kernel, const texo_private_code *made, unsigned threads,
                    void *module);
/* Whatever of it was loaded, also in a lost context. */
void cuda_unload_kernels(texo_kernel *k);

/* cuda_maps.c: whether the driver can make the kernel's tensor maps of the frame's arguments, or of copies of them;
 * makes them, in x->map, where what is copied is put on the stream. The kernel is the one whose arguments the frame has. */
enum { CUDA_MAP_BYTES = 128, CUDA_MAP_ALIGN = 64 };
bool cuda_maps_suit(texo_kernel *k, const ImageKernel *kernel, int64_t pitch, bool *copies);
texo_status cuda_maps_make(texo_kernel *k, const ImageKernel *kernel, int64_t pitch, uint8_t *workspace, void *stream);

/* cuda_boxes.c: copies of what maps are made of, as map_rows.c has them. Both in the context; the first before, and when
 * nothing is left to load it does nothing. */
typedef struct {
	const MapRows *rows;
	uint8_t *from, *to;
} CudaBoxes;
texo_status cuda_boxes_load(texo_kernel *k);
texo_status cuda_boxes_copy(texo_kernel *k, const CudaBoxes *boxes, uint32_t n, void *stream);

/* cuda_rows.c: copies of arguments, as aside.c has them. Both in the context; the first before, and when
 * nothing is left to load it does nothing. */
texo_status cuda_rows_load(texo_kernel *k);
texo_status cuda_rows_copy(texo_kernel *k, uint8_t *workspace, bool out, void *stream);

/* cuda_launch.c: as Device has them */
texo_status cuda_prepare(texo_kernel *k);
texo_status cuda_run(texo_kernel *k, void *workspace, void *stream);
texo_status cuda_fetch(texo_kernel *k);

#endif
