/* host.h: everything texo takes from its surroundings, as tables of functions, so that tests can
 * make any of it fail and a host program can supply its own. host_default() is libc's. */
#ifndef TEXO_IR_HOST_H
#define TEXO_IR_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
	void *(*alloc)(void *user, size_t n);           /* NULL when out of memory */
	void *(*resize)(void *user, void *p, size_t n); /* NULL leaves p valid */
	void (*release)(void *user, void *p);           /* p may be NULL */
	void *user;
} HostMemory;

typedef struct {
	int64_t bytes, changed_ns; /* size, time of the last change */
	bool regular, folder;
	bool mine;                 /* its owner is who this process acts for */
	unsigned mode;             /* permissions: 0777 */
} HostStatus;

/* Files as descriptors; results and errno as the POSIX calls of the same name. */
typedef struct {
	int (*open)(void *user, const char *path, int flags, unsigned mode);
	ptrdiff_t (*read)(void *user, int fd, void *p, size_t n);
	ptrdiff_t (*write)(void *user, int fd, const void *p, size_t n);
	int (*sync)(void *user, int fd);
	int (*close)(void *user, int fd);
	int (*rename)(void *user, const char *from, const char *to);
	int (*unlink)(void *user, const char *path);
	/* size in bytes and whether it is a regular file; -1 with errno on failure */
	int (*stat)(void *user, const char *path, int64_t *size, int *regular);
	/* names in a folder that is open: mkdir, openat, fstat, fstatat of no link, futimens, renameat, unlinkat */
	int (*make_folder)(void *user, const char *path, unsigned mode);
	int (*open_at)(void *user, int folder, const char *name, int flags, unsigned mode);
	int (*status)(void *user, int fd, HostStatus *out);
	int (*status_at)(void *user, int folder, const char *name, HostStatus *out);
	int (*touch)(void *user, int fd);
	int (*rename_at)(void *user, int folder, const char *from, const char *to);
	int (*unlink_at)(void *user, int folder, const char *name);
	/* the next names, each with a NUL behind it: bytes written to names, 0 at the end; n is at least 1024 */
	ptrdiff_t (*list)(void *user, int folder, char *names, size_t n);
	void *user;
} HostFiles;

typedef struct {
	int64_t (*now_ns)(void *user); /* monotonic */
	void *user;
} HostClock;

typedef struct Host {
	HostMemory memory;
	HostFiles files;
	HostClock clock;
} Host;

const Host *host_default(void);

#endif
