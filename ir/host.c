/* host.c: the default host, libc. The one file that calls malloc and free for the compiler. */
#include "ir/host.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void *
libc_alloc(void *user, size_t n)
{
	(void)user;
	return malloc(n ? n : 1);
}

static void *
libc_resize(void *user, void *p, size_t n)
{
	(void)user;
	return realloc(p, n ? n : 1);
}

static void
libc_release(void *user, void *p)
{
	(void)user;
	free(p);
}

static int
libc_open(void *user, const char *path, int flags, unsigned mode)
{
	(void)user;
	return open(path, flags | O_CLOEXEC, (mode_t)mode);
}

static ptrdiff_t
libc_read(void *user, int fd, void *p, size_t n)
{
	(void)user;
	return read(fd, p, n);
}

static ptrdiff_t
libc_write(void *user, int fd, const void *p, size_t n)
{
	(void)user;
	return write(fd, p, n);
}

static int
libc_sync(void *user, int fd)
{
	(void)user;
	return fsync(fd);
}

static int
libc_close(void *user, int fd)
{
	(void)user;
	return close(fd);
}

static int
libc_rename(void *user, const char *from, const char *to)
{
	(void)user;
	return rename(from, to);
}

static int
libc_unlink(void *user, const char *path)
{
	(void)user;
	return unlink(path);
}

static int
libc_stat(void *user, const char *path, int64_t *size, int *regular)
{
	struct stat st;
	(void)user;
	if (stat(path, &st) != 0)
		return -1;
	*size = (int64_t)st.st_size;
	*regular = S_ISREG(st.st_mode) ? 1 : 0;
	return 0;
}

static int64_t
libc_now(void *user)
{
	struct timespec t;
	(void)user;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

const Host *
host_default(void)
{
	static const Host host = {
		.memory = {libc_alloc, libc_resize, libc_release, NULL},
		.files = {libc_open, libc_read, libc_write, libc_sync, libc_close, libc_rename, libc_unlink,
	              libc_stat, NULL},
		.clock = {libc_now, NULL},
	};
	return &host;
}
