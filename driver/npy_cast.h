/* npy_cast.h: --cast, a .npy file of another type of the same kind. */
#ifndef TEXO_DRIVER_NPY_CAST_H
#define TEXO_DRIVER_NPY_CAST_H

#include "driver/npy.h"

/* A float file for any float type (rounded as a cast rounds), an integer file for any integer type
 * (values must fit). */
bool npy_can_cast(const Npy *npy, DType t);
/* to has room for npy->count packed elements of t. EXIT_INPUT naming a value that does not fit. */
bool npy_cast(const Npy *npy, DType t, void *to, const char *path, Problem *p);

#endif
