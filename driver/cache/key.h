/* key.h: what determines compiled code, written down: the key of a cache entry.
 *
 * A key is fields, each "name length", a newline, its bytes, a newline. The texts are in it byte for byte,
 * since an artefact holds the lines and columns of what may fail. Plans (ir/kp.h) follow from program,
 * options, target, build and the choices of a tuning file, and so need no field. */
#ifndef TEXO_DRIVER_CACHE_KEY_H
#define TEXO_DRIVER_CACHE_KEY_H

#include "codegen/codegen.h"
#include "ir/diag.h"
#include "ir/text.h"
#include "passes/pass.h"

typedef struct {
	const char *target;    /* codegen_target_text */
	const char *graph;     /* the only one that is in the artefact; "": all of the file's */
	FpMode fp;
	FuseMode fuse;
	const char *const *statics; /* "N=4096" */
	uint32_t nstatics;
	const char *tuned;     /* the choices of a tuning file, as a text; NULL: none */
	const Diags *files;    /* which a check has read: the program and what it uses */
} CacheKey;

void key_write(const CacheKey *k, Text *out);

/* What determines the code of one kernel: an artefact for a GPU has tile IR in place of code (codegen_kernel). */
typedef struct {
	const char *target;    /* codegen_target_text */
	const char *assembler; /* its version; "": the code is text */
	const LateKernel *kernel;
} KernelKey;

void kernel_key_write(const KernelKey *k, Text *out);

/* The fields of a key, one after another. */
typedef struct {
	const char *at;
	size_t left;
	const char *name, *value; /* not ended by NULs */
	size_t name_bytes, value_bytes;
} KeyReader;

void key_open(KeyReader *r, const void *key, size_t n);
/* The next field; false when there is none, or the rest is no key. */
bool key_next(KeyReader *r);

/* A digest of the sources that this texo was built from, and of what they were built with. */
extern const char build_id[];

#endif
