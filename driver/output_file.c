/* output_file.c: see output_file.h. The list of pending files is the process's one changing global:
 * a signal handler has no other way to find what to remove. An entry is complete before the count
 * says it is there, and the count drops before an entry is reused. */
#include "driver/output_file.h"
#include "driver/source.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PATH = 4096 };

static struct {
	char aside[MAX_PATH + 32];
	char target[MAX_PATH];
} pending[MAX_OUTPUT_FILES];
static volatile sig_atomic_t npending;

/* Writes to a target that can't be renamed onto. */
static bool
write_in_place(const HostFiles *files, const char *path, const void *bytes, size_t n, Problem *p)
{
	bool is_stdout = strcmp(path, "-") == 0;
	const char *name = is_stdout ? "standard output" : path;
	int fd = is_stdout ? 1 : files->open(files->user, path, O_WRONLY, 0);
	if (fd < 0)
		return problem(p, EXIT_IO, "cannot write %s: %s", name, strerror(errno));
	bool ok = write_fully(files, fd, bytes, n);
	int why = errno;
	if (!is_stdout && files->close(files->user, fd) != 0 && ok) {
		ok = false;
		why = errno;
	}
	return ok || problem(p, EXIT_IO, "cannot write %s: %s", name, strerror(why));
}

/* A file that takes another's place keeps its permissions, as far as the system lets it. */
static void
keep_mode(int fd, const char *target)
{
	struct stat st;
	if (stat(target, &st) == 0 && fchmod(fd, st.st_mode & 0777) != 0)
		return;
}

static bool
write_aside(const HostFiles *files, const char *aside, const char *target, const void *bytes, size_t n)
{
	int fd = files->open(files->user, aside, O_WRONLY | O_CREAT | O_EXCL, 0666);
	if (fd < 0)
		return false;
	keep_mode(fd, target);
	bool ok = write_fully(files, fd, bytes, n) && files->sync(files->user, fd) == 0;
	int why = errno;
	if (files->close(files->user, fd) != 0 && ok) {
		ok = false;
		why = errno;
	}
	errno = why;
	return ok;
}

bool
output_spares(const char *path, const char *source, Problem *p)
{
	struct stat a, b;
	if (strcmp(path, "-") == 0 || stat(path, &a) != 0 || stat(source, &b) != 0 || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
		return true;
	return problem(p, EXIT_USAGE, "writing to %s would destroy the program", path);
}

bool
output_add(const HostFiles *files, const char *path, const void *bytes, size_t n, Problem *p)
{
	int64_t size;
	int regular = 0, at = npending;
	bool exists = strcmp(path, "-") == 0 || files->stat(files->user, path, &size, &regular) == 0;
	if (exists && !regular)
		return write_in_place(files, path, bytes, n, p);
	if (at == MAX_OUTPUT_FILES)
		return problem(p, EXIT_INPUT, "more than %d output files", MAX_OUTPUT_FILES);
	if (strlen(path) >= MAX_PATH)
		return problem(p, EXIT_IO, "cannot write %s: %s", path, strerror(ENAMETOOLONG));
	for (int i = 0; i < at; i++)
		if (strcmp(pending[i].target, path) == 0)
			return problem(p, EXIT_USAGE, "two results are written to %s", path);
	strcpy(pending[at].target, path);
	const char *slash = strrchr(path, '/'); /* a short name: the target's may be as long as names can be */
	snprintf(pending[at].aside, sizeof pending[at].aside, "%.*s.texo-%ld-%d.part", slash ? (int)(slash + 1 - path) : 0, path,
	         (long)getpid(), at);
	npending = at + 1;
	if (write_aside(files, pending[at].aside, path, bytes, n))
		return true;
	problem(p, EXIT_IO, "cannot write %s: %s", path, strerror(errno));
	files->unlink(files->user, pending[at].aside);
	npending = at;
	return false;
}

const char *
output_aside(const char *path)
{
	for (int i = npending; i-- > 0;)
		if (strcmp(pending[i].target, path) == 0)
			return pending[i].aside;
	return NULL;
}

bool
output_commit(const HostFiles *files, Problem *p)
{
	while (npending > 0) {
		int at = npending - 1;
		if (files->rename(files->user, pending[at].aside, pending[at].target) != 0) {
			problem(p, EXIT_IO, "cannot write %s: %s", pending[at].target, strerror(errno));
			output_abandon(files);
			return false;
		}
		npending = at;
	}
	return true;
}

void
output_abandon(const HostFiles *files)
{
	for (int i = npending; i-- > 0;)
		files->unlink(files->user, pending[i].aside);
	npending = 0;
}
