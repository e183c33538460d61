/* host.h: everything texo takes from its surroundings, as tables of functions, so that tests can
 * make any of it fail and a host program can supply its own. host_default() is libc's. */
#ifndef TEXO_IR_HOST_H
#define TEXO_IR_HOST_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
	void *(*alloc)(void *user, size_t n);           /* NULL when out of memory */
	void *(*resize)(void *user, void *p, size_t n); /* NULL leaves p valid */
	void (*release)(void *user, void *p);           /* p may be NULL */
	void *user;
} HostMemory;

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
