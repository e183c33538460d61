/* object.h: looks into the object files LLVM wrote. */
#ifndef TEXO_CODEGEN_OBJECT_H
#define TEXO_CODEGEN_OBJECT_H

#include <stddef.h>

/* The name of a symbol that the object neither defines nor may import, or NULL. It may import what
 * ir/image_imports.def has, and the names in import, which ends with NULL.
 * The object is LLVM's own and well-formed; the name points into it. */
const char *object_undefined(const void *object, size_t n, const char *const *import);

#endif
