/* host.c: the default host, libc. The one file that calls malloc and free for the compiler. */
#define _GNU_SOURCE /* getdents64, madvise */
#include "ir/host.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LARGE_PAGE = 2 << 20 };

/* Blocks that large are filled from their start on: by large pages, where the system has them for the asking. A compile would
 * come by thousands of small ones, each of which takes longer than to fill it. */
static void *
libc_alloc(void *user, size_t n)
{
	(void)user;
	if (n < LARGE_PAGE || n > SIZE_MAX - LARGE_PAGE)
		return malloc(n ? n : 1);
	size_t whole = (n + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
	void *p = aligned_alloc(LARGE_PAGE, whole);
	if (p)
		madvise(p, whole, MADV_HUGEPAGE);
	return p;
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

static int
libc_make_folder(void *user, const char *path, unsigned mode)
{
	(void)user;
	return mkdir(path, (mode_t)mode);
}

static int
libc_open_at(void *user, int folder, const char *name, int flags, unsigned mode)
{
	(void)user;
	return openat(folder, name, flags | O_CLOEXEC, (mode_t)mode);
}

static void
put_status(const struct stat *st, HostStatus *out)
{
	*out = (HostStatus){
		.bytes = (int64_t)st->st_size,
		.changed_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
		.regular = S_ISREG(st->st_mode),
		.folder = S_ISDIR(st->st_mode),
		.mine = st->st_uid == geteuid(),
		.mode = st->st_mode & 0777,
	};
}

static int
libc_status(void *user, int fd, HostStatus *out)
{
	struct stat st;
	(void)user;
	if (fstat(fd, &st) != 0)
		return -1;
	put_status(&st, out);
	return 0;
}

static int
libc_status_at(void *user, int folder, const char *name, HostStatus *out)
{
	struct stat st;
	(void)user;
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return -1;
	put_status(&st, out);
	return 0;
}

static int
libc_touch(void *user, int fd)
{
	(void)user;
	return futimens(fd, NULL);
}

static int
libc_rename_at(void *user, int folder, const char *from, const char *to)
{
	(void)user;
	return renameat(folder, from, folder, to);
}

static int
libc_unlink_at(void *user, int folder, const char *name)
{
	(void)user;
	return unlinkat(folder, name, 0);
}

/* A record takes more room than its name, so that the names of as many records fit. */
static ptrdiff_t
libc_list(void *user, int folder, char *names, size_t n)
{
	_Alignas(struct dirent64) char record[4096];
	size_t used = 0;
	(void)user;
	ptrdiff_t got = getdents64(folder, record, n < sizeof record ? n : sizeof record);
	for (ptrdiff_t at = 0; at < got;) {
		const struct dirent64 *d = (const struct dirent64 *)(record + at);
		size_t k = strlen(d->d_name) + 1;
		memcpy(names + used, d->d_name, k);
		used += k;
		at += d->d_reclen;
	}
	return got < 0 ? -1 : (ptrdiff_t)used;
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
		.files = {libc_open, libc_read, libc_write, libc_sync, libc_close, libc_rename, libc_unlink, libc_stat,
	              libc_make_folder, libc_open_at, libc_status, libc_status_at, libc_touch, libc_rename_at,
	              libc_unlink_at, libc_list, NULL},
		.clock = {libc_now, NULL},
	};
	return &host;
}
