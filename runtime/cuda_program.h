/* cuda_program.h: what a graph has on a GPU, for cuda_program.c, which makes it, and cuda_launch.c. */
#ifndef TEXO_RUNTIME_CUDA_PROGRAM_H
#define TEXO_RUNTIME_CUDA_PROGRAM_H

#include "runtime/inside.h"

typedef struct {
	uint64_t word[2]; /* as ir/image.h tells: the first failed access, the first cut */
} CudaWords;

typedef struct CudaKernel {
	void **function;  /* by kernel */
	CudaWords *met;   /* by kernel: where `words` are copied to */
	void **parameter; /* of the kernel that is launched */
	uint64_t words;   /* on the device, by kernel */
	bool launched;
} CudaKernel;

/* cuda_launch.c: as Device has them */
texo_status cuda_run(texo_kernel *k, void *workspace, void *stream);
texo_status cuda_fetch(texo_kernel *k);

#endif
