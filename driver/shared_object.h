/* shared_object.h: a shared library made of an object file by the system's compiler driver, cc. */
#ifndef TEXO_DRIVER_SHARED_OBJECT_H
#define TEXO_DRIVER_SHARED_OBJECT_H

#include "driver/problem.h"

/* Links the n bytes of object, and libm where with_libm says so, into the file at path, which exists and is
 * replaced. EXIT_DEVICE when there is no cc. */
bool shared_object_link(const HostFiles *files, const void *object, size_t n, bool with_libm, const char *path,
                        Problem *p);

#endif
