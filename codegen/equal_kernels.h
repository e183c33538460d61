/* equal_kernels.h: kernels of an artefact that are the same code. */
#ifndef TEXO_CODEGEN_EQUAL_KERNELS_H
#define TEXO_CODEGEN_EQUAL_KERNELS_H

#include "ir/kp.h"
#include "ir/text.h"

typedef struct {
	const char *tir;    /* its text without names; a NUL ends it. Of Kernel.early, behind a line that tells the mode */
	size_t n;           /* without the NUL */
	uint64_t digest;
	bool serial;
	const char *symbol; /* of its code */
	void *made;         /* the caller's: what was made of it; NULL at first */
} PlainKernel;

typedef struct {
	PlainKernel **at;
	uint32_t n, cap;
	Text printed; /* the text at hand: its room is used again */
} PlainKernels;

/* The kernel of `have` that is the same but for names, or a new one behind these, whose code has this symbol. */
PlainKernel *kernel_plain(Arena *a, PlainKernels *have, const Kernel *k, FpMode fp, const char *symbol);
/* Reads a PlainKernel's text back. *early: passes are to come, in graphs of mode *fp. NULL: it is none, for the reason *why. */
TirKernel *kernel_plain_read(Arena *a, const char *tir, size_t n, bool *early, FpMode *fp, const char **why);

#endif
