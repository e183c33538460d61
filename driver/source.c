/* source.c: see source.h. */
#include "driver/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

ptrdiff_t
read_fully(const HostFiles *files, int fd, void *to, size_t n)
{
	size_t got = 0;
	while (got < n) {
		ptrdiff_t k = files->read(files->user, fd, (char *)to + got, n - got);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -1;
		if (k == 0)
			break;
		got += (size_t)k;
	}
	return (ptrdiff_t)got;
}

bool
write_fully(const HostFiles *files, int fd, const void *bytes, size_t n)
{
	const char *at = bytes;
	while (n > 0) {
		ptrdiff_t k = files->write(files->user, fd, at, n > 1u << 30 ? 1u << 30 : n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return false;
		if (k == 0) {
			errno = ENOSPC;
			return false;
		}
		at += k;
		n -= (size_t)k;
	}
	return true;
}

int
open_to_read(const HostFiles *files, const char *path, int64_t *size, Problem *p)
{
	int regular = 0;
	if (strcmp(path, "-") == 0) {
		*size = -1;
		return 0;
	}
	int fd = files->open(files->user, path, O_RDONLY, 0);
	if (fd < 0) {
		problem(p, EXIT_IO, "cannot read %s: %s", path, strerror(errno));
		return -1;
	}
	if (files->stat(files->user, path, size, &regular) != 0 || !regular)
		*size = -1;
	char none;
	if (*size < 0 && files->read(files->user, fd, &none, 0) < 0 && errno == EISDIR) {
		files->close(files->user, fd);
		problem(p, EXIT_IO, "cannot read %s: it is a directory", path);
		return -1;
	}
	return fd;
}

bool
source_read(const HostFiles *files, Arena *a, const char *path, size_t max, const char **text, size_t *n,
            Problem *p)
{
	int64_t size;
	int fd = open_to_read(files, path, &size, p);
	if (fd < 0)
		return false;
	size_t cap = size >= 0 && (uint64_t)size < max ? (size_t)size + 1 : 64 * 1024, have = 0;
	char *at = arena_alloc(a, cap + 1);
	ptrdiff_t k;
	while ((k = read_fully(files, fd, at + have, cap - have)) > 0) {
		have += (size_t)k;
		if (have < cap || have > max)
			break;
		size_t more = cap * 2 > max + 1 ? max + 1 : cap * 2;
		char *wider = arena_alloc(a, more + 1);
		memcpy(wider, at, have);
		at = wider;
		cap = more;
	}
	if (k < 0)
		problem(p, EXIT_IO, "cannot read %s: %s", path, strerror(errno));
	if (fd != 0)
		files->close(files->user, fd);
	*text = at;
	*n = have;
	at[have] = 0;
	return k >= 0;
}
