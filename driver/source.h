/* source.h: reading files and standard input, and writing, through the host's table. */
#ifndef TEXO_DRIVER_SOURCE_H
#define TEXO_DRIVER_SOURCE_H

#include "driver/problem.h"

/* Reads a whole file into the arena (NUL after the n bytes); "-" is standard input. max bounds the
 * bytes kept; a longer file gives max + 1 bytes, so that the reader's own limit can speak.
 * EXIT_IO with the system's words. */
bool source_read(const HostFiles *files, Arena *a, const char *path, size_t max, const char **text, size_t *n,
                 Problem *p);

/* Reads exactly n bytes unless the file ends first; returns what was read, or -1 with errno. */
ptrdiff_t read_fully(const HostFiles *files, int fd, void *to, size_t n);
/* Writes all of n bytes; false with errno. */
bool write_fully(const HostFiles *files, int fd, const void *bytes, size_t n);
/* Opens for reading; refuses directories. -1 after filling p. *size is -1 for what has no size. */
int open_to_read(const HostFiles *files, const char *path, int64_t *size, Problem *p);

#endif
