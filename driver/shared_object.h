/* shared_object.h: a shared library made of an object file by the system's compiler driver, cc. */
#ifndef TEXO_DRIVER_SHARED_OBJECT_H
#define TEXO_DRIVER_SHARED_OBJECT_H

#include "driver/problem.h"

/* Links the n bytes of object and libm into the file at path, which exists and is replaced; it needs libtexo-rt too
 * where with_runtime says so. EXIT_DEVICE when there is no cc. */
bool shared_object_link(const HostFiles *files, const void *object, size_t n, bool with_runtime, const char *path,
                        Problem *p);

#endif
