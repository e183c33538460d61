/* shared_object.c: see shared_object.h. The object reaches the linker as a file without a name, so that
 * nothing is left behind whatever happens, and so does what stands for libtexo-rt. */
#define _GNU_SOURCE /* memfd_create */
#include "driver/shared_object.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/output_file.h"
#include "driver/source.h"
#include "runtime/alone/bitcode.h"

extern char **environ;

/* Runs cc with its words on standard error; false with a problem. */
static bool
run_cc(char *const *argv, Problem *p)
{
	pid_t child;
	int status, bad = posix_spawnp(&child, argv[0], NULL, NULL, argv, environ);
	if (bad) {
		problem(p, EXIT_DEVICE, "cannot run %s: %s", argv[0], strerror(bad));
		return problem_help(p, "--emit=so needs a C compiler as `cc`; --emit=obj and --emit=lib need none");
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return problem(p, EXIT_DEVICE, "cannot wait for %s: %s", argv[0], strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	return problem(p, EXIT_DEVICE, "%s could not link the library", argv[0]);
}

/* A file without a name; -1 with a problem. */
static int
hold(const HostFiles *files, const void *bytes, size_t n, Problem *p)
{
	int fd = memfd_create("object", 0);
	if (fd >= 0 && write_fully(files, fd, bytes, n))
		return fd;
	problem(p, EXIT_IO, "no room for the object: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

bool
shared_object_link(const HostFiles *files, const void *object, size_t n, bool with_runtime, const char *path,
                   Problem *p)
{
	int fd = hold(files, object, n, p);
	int needed = fd < 0 ? -1 : hold(files, runtime_needed.bytes, runtime_needed.n, p);
	char *input = arena_text(p->arena, "/proc/self/fd/%d", fd), *output = arena_text(p->arena, "%s", path);
	char *runtime = with_runtime ? arena_text(p->arena, "/proc/self/fd/%d", needed) : NULL;
	char *argv[] = {"cc", "-shared", "-nostartfiles", "-Wl,--build-id=none", "-Wl,-z,noexecstack", "-o", output,
	                input, "-lm", "-Wl,--no-as-needed", runtime, NULL};
	bool ok = needed >= 0 && run_cc(argv, p);
	if (fd >= 0)
		close(fd);
	if (needed >= 0)
		close(needed);
	return ok;
}
