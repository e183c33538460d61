/* worker_confine.c: what a worker may do once it has what it needs: read and write the descriptors that it
 * holds, ask for memory that is not executable, and end. Everything else fails with EPERM. */
#define _GNU_SOURCE
#include "driver/worker_confine.h"
#include "driver/sanitized.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static bool
limit(int what, rlim_t n)
{
	struct rlimit r;
	if (getrlimit(what, &r) != 0)
		return false;
	if (r.rlim_max == RLIM_INFINITY || r.rlim_max > n)
		r.rlim_max = n;
	r.rlim_cur = what == RLIMIT_CPU && r.rlim_max > 1 ? r.rlim_max - 1 : r.rlim_max; /* SIGXCPU comes first */
	return setrlimit(what, &r) == 0;
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), RETURN(SECCOMP_RET_ALLOW)
/* Only where the protection (the third argument) is not executable. */
#define ALLOW_DATA(name)                                                                              \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4), LOAD(args[2]),                         \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1), RETURN(SECCOMP_RET_ERRNO | EPERM), \
		RETURN(SECCOMP_RET_ALLOW)

static bool
filter_calls(void)
{
	static const struct sock_filter code[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		ALLOW(read), ALLOW(write), ALLOW(sendto), ALLOW(recvfrom), ALLOW(poll), ALLOW(close),
		ALLOW(brk), ALLOW(munmap), ALLOW(mremap), ALLOW(madvise),
		ALLOW(futex), ALLOW(clock_gettime), ALLOW(getrandom), ALLOW(sched_yield),
		ALLOW(rt_sigprocmask), ALLOW(rt_sigreturn), ALLOW(getpid), ALLOW(gettid), ALLOW(tgkill),
		ALLOW(arch_prctl), /* its own registers: whether it may have tiles says what code to make */
		ALLOW(exit), ALLOW(exit_group), ALLOW(restart_syscall),
		ALLOW_DATA(mmap),
		LOAD(nr),
		ALLOW_DATA(mprotect),
		RETURN(SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog program = {sizeof code / sizeof *code, (struct sock_filter *)(uintptr_t)code};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool
worker_confine(unsigned seconds, size_t bytes)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || !limit(RLIMIT_CORE, 0) || !limit(RLIMIT_CPU, seconds + 1) ||
	    !limit(RLIMIT_FSIZE, 0) || !limit(RLIMIT_NOFILE, 16) || !limit(RLIMIT_NPROC, 0))
		return false;
	return IS_SANITIZED || (limit(RLIMIT_AS, bytes) && filter_calls());
}
