/* private.h: what libtexo needs of libtexo-rt beyond the public header: one last error a thread for
 * both, and one way to read versioned structs. Exported, under a symbol version that says that only
 * libraries of the same release may use it. */
#ifndef TEXO_RUNTIME_PRIVATE_H
#define TEXO_RUNTIME_PRIVATE_H

#include <stddef.h>

#include "include/texo_rt.h"

/* Keeps the text for texo_last_error and returns s. */
TEXO_API texo_status texo_private_fail(texo_status s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Copies a caller's struct, which begins with its struct_size, to one of ours of `size` bytes: what an
 * older caller lacks is zero; what a newer one has beyond it must be. `least` is the size in the first
 * release. TEXO_INVALID with a text about `what`. */
TEXO_API texo_status texo_private_take_struct(const char *what, const void *from, size_t least, size_t size, void *to);

/* Code of one kernel, as it was made for an artefact's GPU. */
typedef struct {
	const void *machine; /* machine code, or NULL */
	const char *text;    /* PTX, or NULL */
	void *memory;        /* where they lie: the maker's */
	int assembled;       /* the machine code is what this device's assembler (below) made of the text */
	int keeps;           /* keep takes it: there is none of the kernel */
} texo_private_code;

/* What is to be made. assembler: the driver's, by what makes it and the device another one, for a key; "" where it is
 * not known. */
typedef struct {
	const char *symbol, *tir; /* tir has n bytes */
	size_t n;
	int serial;
	const char *assembler;
} texo_private_kernel;

/* Who makes the code of kernels that an artefact has as tile IR (IMG_TIR in ir/image.h), when a prepare or a launch
 * first wants it. make is called in the thread of that call, for one kernel never twice at the same time, for kernels of
 * several graphs at any time; its status is that of the call. What it made is given back to release, after keep. */
typedef struct {
	texo_status (*make)(void *user, const texo_private_kernel *kernel, texo_private_code *out);
	void (*keep)(void *user, const texo_private_kernel *kernel, const void *machine, size_t n); /* NULL: none is as good */
	void (*release)(void *user, texo_private_code *code);
	void *user;
} texo_private_maker;

/* texo_rt_load for an artefact that has such kernels; maker is copied. */
TEXO_API texo_status texo_private_load(texo_rt *rt, const void *artefact, size_t n, const texo_private_maker *maker,
                                       texo_program **out);

/* What kind of device the runtime's is, as a key may name it: also its driver. "" for a processor. */
TEXO_API void texo_private_device(const texo_rt *rt, char *text, size_t n);

/* Has the runtime's choices go by these n figures of its GPU (ir/gpu_rows.h); before its first kernel is asked for. TEXO_INVALID,
 * and the built-in ones stay, where they can be no such device's. */
TEXO_API texo_status texo_private_take_figures(texo_rt *rt, const int64_t *fact, size_t n);

#endif
