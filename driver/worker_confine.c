/* worker_confine.c: what a worker may do once it has what it needs: read and write the descriptors that it
 * holds, ask for memory that is not executable, and end. Everything else fails with EPERM. Of another program, an assembler, we
 * don't know what it needs: it has the limits, and only what it can't need is taken from it. */
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

#define PROGRAM_FILE ((rlim_t)256 << 20) /* bytes */

static bool
limit_both(int what, rlim_t now, rlim_t most)
{
	struct rlimit r;
	if (getrlimit(what, &r) != 0)
		return false;
	if (r.rlim_max == RLIM_INFINITY || r.rlim_max > most)
		r.rlim_max = most;
	r.rlim_cur = now < r.rlim_max ? now : r.rlim_max;
	return setrlimit(what, &r) == 0;
}

static bool
limit(int what, rlim_t n)
{
	return limit_both(what, n, n);
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), RETURN(SECCOMP_RET_ALLOW)
/* Only where the protection (the third argument) is not executable. */
#define ALLOW_DATA(name)                                                                              \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4), LOAD(args[2]),                         \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1), RETURN(SECCOMP_RET_ERRNO | EPERM), \
		RETURN(SECCOMP_RET_ALLOW)

#define REFUSE(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), RETURN(SECCOMP_RET_ERRNO | EPERM)
enum { X32_CALLS = 0x40000000 }; /* the same by other numbers */
#define BEGIN                                                                \
	LOAD(arch), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0), \
		RETURN(SECCOMP_RET_KILL_PROCESS), LOAD(nr)

static bool
filter(const struct sock_filter *code, size_t n)
{
	struct sock_fprog program = {(unsigned short)n, (struct sock_filter *)(uintptr_t)code};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static bool
filter_worker(void)
{
	static const struct sock_filter code[] = {
		BEGIN,
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
	return filter(code, sizeof code / sizeof *code);
}

static bool
filter_program(void)
{
	static const struct sock_filter code[] = {
		BEGIN,
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_CALLS, 0, 1), RETURN(SECCOMP_RET_ERRNO | EPERM),
		REFUSE(socket), REFUSE(socketpair), REFUSE(ptrace), REFUSE(process_vm_readv), REFUSE(process_vm_writev),
		REFUSE(bpf), REFUSE(mount), REFUSE(unshare), REFUSE(setns), REFUSE(keyctl), REFUSE(io_uring_setup),
		RETURN(SECCOMP_RET_ALLOW),
	};
	return filter(code, sizeof code / sizeof *code);
}

bool
worker_confine(unsigned seconds, unsigned life, size_t bytes)
{
	/* SIGXCPU comes before the end that life brings */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || !limit(RLIMIT_CORE, 0) || !limit_both(RLIMIT_CPU, seconds, life) ||
	    !limit(RLIMIT_FSIZE, 0) || !limit(RLIMIT_NOFILE, 16) || !limit(RLIMIT_NPROC, 0))
		return false;
	return IS_SANITIZED || (limit(RLIMIT_AS, bytes) && filter_worker());
}

bool
program_confine(unsigned seconds, size_t bytes)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && limit(RLIMIT_CORE, 0) && limit_both(RLIMIT_CPU, seconds, seconds + 1) &&
	       limit(RLIMIT_FSIZE, PROGRAM_FILE) && limit(RLIMIT_AS, bytes) && filter_program();
}
