/* shared_object.c: see shared_object.h. The object reaches the linker as a file without a name, so that
 * nothing is left behind whatever happens. */
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

bool
shared_object_link(const HostFiles *files, const void *object, size_t n, bool with_libm, const char *path,
                   Problem *p)
{
	int fd = memfd_create("object", 0);
	if (fd < 0 || !write_fully(files, fd, object, n)) {
		problem(p, EXIT_IO, "no room for the object: %s", strerror(errno));
		if (fd >= 0)
			close(fd);
		return false;
	}
	char *input = arena_text(p->arena, "/proc/self/fd/%d", fd), *output = arena_text(p->arena, "%s", path);
	char *argv[] = {"cc", "-shared", "-nostartfiles", "-Wl,--build-id=none", "-Wl,-z,noexecstack", "-o", output,
	                input, with_libm ? "-lm" : NULL, NULL};
	bool ok = run_cc(argv, p);
	close(fd);
	return ok;
}
