/* object.h: looks into the object files LLVM wrote. */
#ifndef TEXO_CODEGEN_OBJECT_H
#define TEXO_CODEGEN_OBJECT_H

#include <stddef.h>

/* The name of a symbol the object doesn't define, or NULL. The object is LLVM's own and well-formed;
 * the name points into it. */
const char *object_undefined(const void *object, size_t n);

#endif
