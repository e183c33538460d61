/* output_file.h: results that appear whole or not at all.
 *
 * Each file is written aside, in the directory of its target, when it is added; output_commit
 * renames all of them. Whatever ends the process before that (a problem, an unwinding, SIGINT) calls
 * output_abandon, which removes them. Targets that exist and are no regular files (a device, a pipe)
 * are written in place; "-" is standard output. */
#ifndef TEXO_DRIVER_OUTPUT_FILE_H
#define TEXO_DRIVER_OUTPUT_FILE_H

#include "driver/problem.h"

enum { MAX_OUTPUT_FILES = 256 };

/* Writes n bytes; EXIT_IO with the system's words on failure. */
bool output_add(const HostFiles *files, const char *path, const void *bytes, size_t n, Problem *p);
/* A problem when path is the file that was read as source, by whatever name. */
bool output_spares(const char *path, const char *source, Problem *p);
/* The file that is renamed to path when it is committed; NULL where path is written in place. */
const char *output_aside(const char *path);
/* Renames what was added; on failure the rest is removed. */
bool output_commit(const HostFiles *files, Problem *p);
/* Removes what was not committed. Only calls unlink, so that a signal handler may use it. */
void output_abandon(const HostFiles *files);

#endif
