/* npy.h: .npy files, as far as texo's dtypes need them.
 *
 * A reader trusts nothing: format versions 1 to 3, a header of at most 64 KiB with exactly the three
 * keys, a shape whose product does not overflow and is exactly what follows. Little-endian simple
 * types only. Column-major (Fortran) data is transposed as it is read. What the system refuses is
 * EXIT_IO, what the file says wrongly EXIT_INPUT. */
#ifndef TEXO_DRIVER_NPY_H
#define TEXO_DRIVER_NPY_H

#include "driver/problem.h"
#include "ir/dtype.h"

enum { NPY_MAX_RANK = 32, NPY_MAX_HEADER = 64 * 1024 };

typedef struct {
	char descr[8];   /* normalised: "<f4", "|u1" */
	unsigned width;  /* bytes an element */
	bool fortran;
	unsigned rank;
	int64_t shape[NPY_MAX_RANK];
	int64_t count;   /* product of the shape */
	int64_t bytes;   /* count * width */
	const void *data; /* row-major; NULL after npy_open alone */
} Npy;

typedef struct {
	const HostFiles *files;
	const char *path;
	int fd;
	int64_t left; /* bytes after the header, -1 when the file's size is unknown */
} NpyFile;

/* Opens and checks the header: descr, shape, and that the file is as long as they say. */
bool npy_open(const HostFiles *files, const char *path, NpyFile *f, Npy *out, Arena *a, Problem *p);
/* Reads the data into a and closes. */
bool npy_read_data(NpyFile *f, Npy *npy, Arena *a, Problem *p);
void npy_close(NpyFile *f);

/* The header of a version 1.0 file for packed row-major data of this dtype; *n its length. 4-bit
 * types halve the last axis: false (EXIT_INPUT) when it is odd or there is none. */
bool npy_header(Arena *a, DType t, unsigned rank, const int64_t *shape, const char **header, size_t *n,
                Problem *p);

/* Whether a file with this descr holds dtype t as it is. */
bool npy_holds(const Npy *npy, DType t);
/* The shape in elements of t: as in the file, with a doubled last axis for 4-bit types. */
bool npy_shape(const Npy *npy, DType t, unsigned *rank, int64_t *shape);
/* The dtype whose elements the descr plainly means ("<f4" f32), or DT_NONE. */
DType npy_plain_dtype(const char *descr);

#endif
