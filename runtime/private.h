/* private.h: what libtexo needs of libtexo-rt beyond the public header: one last error a thread for
 * both, and one way to read versioned structs. Exported, under a symbol version that says that only
 * libraries of the same release may use it. */
#ifndef TEXO_RUNTIME_PRIVATE_H
#define TEXO_RUNTIME_PRIVATE_H

#include "include/texo_rt.h"

/* Keeps the text for texo_last_error and returns s. */
TEXO_API texo_status texo_private_fail(texo_status s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Copies a caller's struct, which begins with its struct_size, to one of ours of `size` bytes: what an
 * older caller lacks is zero; what a newer one has beyond it must be. `least` is the size in the first
 * release. TEXO_INVALID with a text about `what`. */
TEXO_API texo_status texo_private_take_struct(const char *what, const void *from, size_t least, size_t size, void *to);

#endif
