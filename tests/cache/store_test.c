/* store_test.c: a folder of entries when all is well and when anything fails: another owner, links, folders and
 * pipes in the place of files, every call of the system with every error, once and from then on, short reads
 * and writes, a limit on the size of files, many threads, writers that are killed at any moment.
 * usage: store_test [KILLS] */
#define _DEFAULT_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver/cache/store.h"

static char root[64], path[128];
static Unwind unwind;
static Arena arena;
static unsigned kills = 600;

static void
remove_tree(const char *folder)
{
	char command[512];
	snprintf(command, sizeof command, "chmod -R u+rwx %s && rm -rf %s", folder, folder);
	assert_int_equal(system(command), 0);
}

static int
setup(void **state)
{
	(void)state;
	strcpy(root, "/tmp/texo-store-XXXXXX");
	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof path, "%s/above/texo", root);
	arena_init(&arena, &host_default()->memory, &unwind);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	remove_tree(root);
	arena_free(&arena);
	return 0;
}

static Store
store(const Host *host)
{
	return (Store){.host = host, .path = path, .limit = STORE_LIMIT};
}

/* What is kept under key number k: its length and bytes follow from k. */
static const char *
payload_of(Arena *a, unsigned k, size_t *n)
{
	*n = 100 + (size_t)k * 7919 % 30000;
	char *p = arena_alloc(a, *n);
	for (size_t i = 0; i < *n; i++)
		p[i] = (char)(i * 31 + k);
	return p;
}

static bool
put(const Store *s, Arena *a, unsigned k, const char **why)
{
	size_t n;
	const char *payload = payload_of(a, k, &n);
	return store_put(s, a, &k, sizeof k, ENTRY_IMAGE, payload, n, why);
}

/* Whether it is there; what is there is right. */
static bool
get(const Store *s, Arena *a, unsigned k, const char **why)
{
	size_t n, got;
	const char *want = payload_of(a, k, &n);
	const void *have = store_get(s, a, &k, sizeof k, ENTRY_IMAGE, &got, why);
	if (have && (got != n || memcmp(have, want, n) != 0))
		fail_msg("key %u has another payload", k);
	return have != NULL;
}

static const char *
file_of(unsigned k)
{
	char name[65];
	store_name(&k, sizeof k, name);
	return arena_text(&arena, "%s/%s", path, name);
}

static StoreList
listing(const Store *s)
{
	const char *why;
	StoreList list;
	assert_true(store_list(s, &arena, &list, &why));
	return list;
}

/* --- all is well --- */

static void
what_is_put_comes_back(void **state)
{
	Store s = store(host_default());
	const char *why;
	struct stat st;
	(void)state;
	assert_false(get(&s, &arena, 1, &why)); /* there is no folder yet */
	assert_null(why);
	assert_int_equal(listing(&s).nentry, 0);
	assert_true(put(&s, &arena, 1, &why));
	assert_true(get(&s, &arena, 1, &why));
	assert_false(get(&s, &arena, 2, &why));
	assert_null(why);
	assert_true(put(&s, &arena, 1, &why)); /* once more is no harm */
	assert_true(put(&s, &arena, 2, &why));
	assert_int_equal(listing(&s).nentry, 2);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(stat(file_of(1), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

/* An entry under a name that another key has: what a collision of digests would be, or somebody's plan. */
static void
the_key_counts_in_full(void **state)
{
	Store s = store(host_default());
	const char *why;
	(void)state;
	assert_true(put(&s, &arena, 1, &why));
	assert_int_equal(rename(file_of(1), file_of(2)), 0);
	assert_false(get(&s, &arena, 2, &why));
	assert_non_null(strstr(why, "another key"));
	assert_true(put(&s, &arena, 2, &why));
	assert_true(get(&s, &arena, 2, &why));
}

static void
age(unsigned k, int64_t seconds)
{
	struct timespec t[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
	assert_int_equal(utimensat(AT_FDCWD, file_of(k), t, 0), 0);
}

static void
the_least_used_goes_first(void **state)
{
	Store s = store(host_default());
	StoreList dropped;
	const char *why, *aside = arena_text(&arena, "%s/aside.0123", path), *foreign = arena_text(&arena, "%s/notes.txt", path);
	(void)state;
	for (unsigned k = 0; k < 5; k++) {
		assert_true(put(&s, &arena, k, &why));
		age(k, 1000 - k);
	}
	assert_true(get(&s, &arena, 0, &why)); /* the oldest is used */
	uint64_t all = listing(&s).bytes;
	struct stat st;
	assert_int_equal(stat(file_of(1), &st), 0);
	assert_true(store_prune(&s, &arena, all - 1, &dropped, &why));
	assert_int_equal(dropped.nentry, 1);
	assert_int_equal(dropped.bytes, st.st_size);
	assert_false(get(&s, &arena, 1, &why));
	assert_true(get(&s, &arena, 0, &why));
	close(open(aside, O_CREAT | O_WRONLY, 0600));
	close(open(foreign, O_CREAT | O_WRONLY, 0600));
	assert_true(store_prune(&s, &arena, all, &dropped, &why)); /* somebody may be writing it */
	assert_int_equal(dropped.file.n, 0);
	struct timespec t[2] = {{.tv_sec = time(NULL) - 7200}, {.tv_sec = time(NULL) - 7200}};
	assert_int_equal(utimensat(AT_FDCWD, aside, t, 0), 0);
	assert_true(store_prune(&s, &arena, all, &dropped, &why));
	assert_int_equal(dropped.file.n, 1);
	assert_int_equal(access(aside, F_OK), -1);
	assert_true(store_prune(&s, &arena, 0, &dropped, &why));
	assert_int_equal(listing(&s).file.n, 0);
	assert_int_equal(access(foreign, F_OK), 0);
}

static void
the_limit_is_kept(void **state)
{
	Store s = store(host_default());
	const char *why;
	(void)state;
	s.limit = 40000;
	for (unsigned k = 0; k < 60; k++)
		put(&s, &arena, k, &why);
	assert_in_range(listing(&s).bytes, 1, s.limit);
	s.limit = 100;
	assert_false(put(&s, &arena, 1, &why));
	assert_non_null(strstr(why, "too large"));
}

/* --- what others do to it --- */

static void
refused(const Host *host, const char *because)
{
	Store s = store(host);
	StoreList list;
	const char *why;
	assert_false(get(&s, &arena, 1, &why));
	assert_non_null(why);
	assert_non_null(strstr(why, because));
	assert_false(put(&s, &arena, 1, &why));
	assert_non_null(strstr(why, because));
	assert_false(store_list(&s, &arena, &list, &why));
	assert_non_null(strstr(why, because));
}

static int
status_of_another(void *user, int fd, HostStatus *out)
{
	int done = host_default()->files.status(user, fd, out);
	out->mine = false;
	return done;
}

static void
others_folders_are_refused(void **state)
{
	Store s = store(host_default());
	Host another = *host_default();
	const char *why, *real = arena_text(&arena, "%s/real", root);
	(void)state;
	another.files.status = status_of_another;
	assert_true(put(&s, &arena, 1, &why));
	refused(&another, "another user's");
	assert_int_equal(chmod(path, 0720), 0);
	refused(host_default(), "others may write");
	assert_int_equal(chmod(path, 0702), 0);
	refused(host_default(), "others may write");
	assert_int_equal(chmod(path, 0700), 0);
	assert_true(get(&s, &arena, 1, &why));
	assert_int_equal(rename(path, real), 0);
	assert_int_equal(symlink(real, path), 0);
	refused(host_default(), "can't be opened");
	unlink(path);
	close(open(path, O_CREAT | O_WRONLY, 0600)); /* a file where the folder should be */
	refused(host_default(), "can't be opened");
}

static void
gone(Store *s, unsigned k, const char *because)
{
	const char *why;
	assert_false(get(s, &arena, k, &why));
	assert_non_null(why);
	if (!strstr(why, because))
		fail_msg("%s", why);
}

static void
what_is_no_entry_is_a_miss(void **state)
{
	Store s = store(host_default());
	const char *why;
	(void)state;
	assert_true(put(&s, &arena, 1, &why));
	const char *file = file_of(1), *moved = arena_text(&arena, "%s/moved", root);
	assert_int_equal(chmod(file, 0666), 0); /* what others may have written */
	gone(&s, 1, "no file of ours");
	assert_int_equal(rename(file, moved), 0);
	assert_int_equal(symlink(moved, file), 0);
	gone(&s, 1, "can't be opened");
	unlink(file);
	assert_int_equal(mkfifo(file, 0600), 0); /* nobody writes to it, and nobody waits */
	gone(&s, 1, "no file of ours");
	assert_true(put(&s, &arena, 1, &why)); /* takes its place */
	assert_true(get(&s, &arena, 1, &why));
	assert_int_equal(truncate(file, (off_t)ENTRY_MOST + 1), 0);
	gone(&s, 1, "no file of ours");
	assert_int_equal(truncate(file, 80), 0);
	gone(&s, 1, "damaged");
	assert_int_equal(truncate(file, 0), 0);
	gone(&s, 1, "no file of ours");
	unlink(file);
	assert_int_equal(mkdir(file, 0700), 0);
	gone(&s, 1, "no file of ours");
	assert_false(put(&s, &arena, 1, &why));
	assert_non_null(why);
	assert_int_equal(listing(&s).file.n, 0); /* nothing is left aside */
}

/* Every bit of a file, and every length of it. */
static void
damage_is_a_miss(void **state)
{
	Store s = store(host_default());
	const char *why;
	unsigned key = 7;
	char bytes[512];
	(void)state;
	assert_true(store_put(&s, &arena, &key, sizeof key, ENTRY_IMAGE, "kept", 4, &why));
	const char *file = file_of(key);
	int fd = open(file, O_RDWR);
	ptrdiff_t n = read(fd, bytes, sizeof bytes);
	assert_in_range(n, 100, sizeof bytes - 1);
	for (ptrdiff_t bit = 0; bit < 8 * n; bit++) {
		char changed = (char)(bytes[bit / 8] ^ 1 << bit % 8);
		size_t got;
		assert_int_equal(pwrite(fd, &changed, 1, bit / 8), 1);
		assert_null(store_get(&s, &arena, &key, sizeof key, ENTRY_IMAGE, &got, &why));
		assert_non_null(why);
		assert_int_equal(pwrite(fd, &bytes[bit / 8], 1, bit / 8), 1);
	}
	for (ptrdiff_t k = n - 1; k >= 0; k--) {
		size_t got;
		assert_int_equal(ftruncate(fd, k), 0);
		assert_null(store_get(&s, &arena, &key, sizeof key, ENTRY_IMAGE, &got, &why));
		assert_non_null(why);
	}
	close(fd);
}

/* --- what the system does --- */

enum { SIGNALS = 50 };

typedef struct {
	long calls, fail_at; /* the call that fails; -1: none */
	bool fail_on, shortly; /* and all after it; reads and writes take one byte at a time */
	int code;
	bool failed;
} Faults;

static bool
fails(void *user)
{
	Faults *f = user;
	long n = f->calls++;
	if (f->fail_at < 0 || (f->fail_on ? n < f->fail_at : n != f->fail_at))
		return false;
	if (f->code == EINTR && n > f->fail_at + SIGNALS) /* a call that is interrupted for ever has no end */
		return false;
	f->failed = true;
	errno = f->code;
	return true;
}

#define REAL (host_default()->files)
static int f_open(void *u, const char *p, int flags, unsigned m) { return fails(u) ? -1 : REAL.open(NULL, p, flags, m); }
static ptrdiff_t f_read(void *u, int fd, void *p, size_t n) { return fails(u) ? -1 : REAL.read(NULL, fd, p, ((Faults *)u)->shortly && n > 7 ? 7 : n); }
static ptrdiff_t f_write(void *u, int fd, const void *p, size_t n) { return fails(u) ? -1 : REAL.write(NULL, fd, p, ((Faults *)u)->shortly && n > 7 ? 7 : n); }
static int f_make(void *u, const char *p, unsigned m) { return fails(u) ? -1 : REAL.make_folder(NULL, p, m); }
static int f_open_at(void *u, int d, const char *p, int flags, unsigned m) { return fails(u) ? -1 : REAL.open_at(NULL, d, p, flags, m); }
static int f_status(void *u, int fd, HostStatus *s) { return fails(u) ? -1 : REAL.status(NULL, fd, s); }
static int f_status_at(void *u, int d, const char *p, HostStatus *s) { return fails(u) ? -1 : REAL.status_at(NULL, d, p, s); }
static int f_touch(void *u, int fd) { return fails(u) ? -1 : REAL.touch(NULL, fd); }
static int f_rename_at(void *u, int d, const char *a, const char *b) { return fails(u) ? -1 : REAL.rename_at(NULL, d, a, b); }
static int f_unlink_at(void *u, int d, const char *a) { return fails(u) ? -1 : REAL.unlink_at(NULL, d, a); }
static ptrdiff_t f_list(void *u, int d, char *names, size_t n) { return fails(u) ? -1 : REAL.list(NULL, d, names, n); }

/* The descriptor is gone whatever close says, as on Linux. */
static int
f_close(void *u, int fd)
{
	REAL.close(NULL, fd);
	return fails(u) ? -1 : 0;
}

static Host
faulty(Faults *f)
{
	Host h = *host_default();
	h.files = (HostFiles){.open = f_open, .read = f_read, .write = f_write, .close = f_close, .make_folder = f_make,
	                      .open_at = f_open_at, .status = f_status, .status_at = f_status_at, .touch = f_touch,
	                      .rename_at = f_rename_at, .unlink_at = f_unlink_at, .list = f_list, .user = f};
	return h;
}

static unsigned
open_files(void)
{
	unsigned n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Puts, gets, lists and prunes; what fails says why, and what is got is right. */
static void
use_all(const Host *host, Arena *a, const Faults *f)
{
	Store s = store(host);
	StoreList list;
	const char *why;
	bool before = f->failed;
	if (!put(&s, a, 1, &why))
		assert_non_null(why);
	if (!get(&s, a, 1, &why) && !f->failed)
		fail_msg("what was put is not there");
	if (!store_list(&s, a, &list, &why))
		assert_non_null(why);
	s.limit = 1; /* every put prunes */
	put(&s, a, 2, &why);
	if (!store_prune(&s, a, 0, &list, &why))
		assert_non_null(why);
	assert_true(f->failed || !before);
}

/* An arena that must not unwind. */
#define NEVER_UNWINDS(a, inside, memory)        \
	arena_init((a), (memory), (inside));        \
	if (setjmp((inside)->env))                  \
	fail_msg("unwound: %s", (inside)->text)

/* Whether there was such a call to fail. */
static bool
inject(long at, bool on, int code, unsigned fds)
{
	Faults f = {.fail_at = at, .fail_on = on, .code = code};
	Host host = faulty(&f);
	Store plain = store(host_default());
	Unwind inside;
	Arena a;
	StoreList list;
	const char *why;
	NEVER_UNWINDS(&a, &inside, &host_default()->memory);
	use_all(&host, &a, &f);
	assert_int_equal(open_files(), fds);
	get(&plain, &a, 1, &why); /* right, or not there */
	get(&plain, &a, 2, &why);
	assert_in_range(listing(&plain).file.n, 0, 4);
	assert_true(store_prune(&plain, &a, 0, &list, &why));
	rmdir(path); /* so that the next one makes it */
	rmdir(arena_text(&a, "%s/above", root));
	arena_free(&a);
	return f.failed;
}

static void
no_error_is_more_than_a_miss(void **state)
{
	static const int code[] = {EIO, ENOSPC, EACCES, EMFILE, EINTR, EROFS, ESTALE, EBUSY, ENOENT};
	unsigned fds = open_files(), injected = 0;
	(void)state;
	for (unsigned c = 0; c < 2 * sizeof code / sizeof *code; c++)
		for (long at = 0; inject(at, c % 2, code[c / 2], fds); at++)
			injected++;
	print_message("%u calls made to fail\n", injected);
	assert_true(injected > 500);
}

static void
interrupted_calls_go_on(void **state)
{
	Faults f = {.fail_at = -1, .shortly = true, .code = EINTR};
	Host host = faulty(&f);
	Store s = store(&host);
	const char *why;
	(void)state;
	assert_true(put(&s, &arena, 3, &why));
	assert_true(get(&s, &arena, 3, &why));
}

/* A file cut short by the system itself: a limit on its size, as on a full disk. */
static void
files_that_cannot_grow(void **state)
{
	Store s = store(host_default());
	const char *why;
	(void)state;
	assert_true(put(&s, &arena, 1, &why));
	pid_t pid = fork();
	if (pid == 0) {
		struct rlimit most = {4096, 4096};
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &most);
		_exit(put(&s, &arena, 3, &why) || !why || get(&s, &arena, 3, &why) || !get(&s, &arena, 1, &why));
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(listing(&s).file.n, 1);
}

/* Memory that ends anywhere is no entry, no more. */
static long left;
static void *
scarce_alloc(void *user, size_t n)
{
	(void)user;
	return left-- > 0 ? malloc(n ? n : 1) : NULL;
}

static void
use_little(long most, unsigned fds)
{
	Host host = *host_default();
	Store s = store(host_default());
	Unwind inside;
	Arena a;
	size_t n;
	unsigned key = 1;
	const char *why;
	host.memory.alloc = scarce_alloc;
	NEVER_UNWINDS(&a, &inside, &host.memory);
	left = most;
	if (!store_put(&s, &a, &key, sizeof key, ENTRY_IMAGE, root, sizeof root, &why))
		assert_non_null(why);
	const void *got = store_get(&s, &a, &key, sizeof key, ENTRY_IMAGE, &n, &why);
	assert_true(!got || (n == sizeof root && memcmp(got, root, n) == 0));
	arena_free(&a);
	assert_int_equal(open_files(), fds);
}

static void
memory_that_ends(void **state)
{
	unsigned fds = open_files();
	(void)state;
	for (long most = 0; most < 20; most++)
		use_little(most, fds);
}

/* --- many at once --- */

enum { KEYS = 8, THREADS = 4, ROUNDS = 150 };

static void
use_once(unsigned what, bool and_prune)
{
	Store s = store(host_default());
	Unwind inside;
	Arena a;
	const char *why;
	StoreList dropped;
	NEVER_UNWINDS(&a, &inside, &host_default()->memory);
	if (what % 2)
		put(&s, &a, what / 2 % KEYS, &why);
	else
		get(&s, &a, what / 2 % KEYS, &why);
	if (and_prune)
		store_prune(&s, &a, 60000, &dropped, &why);
	arena_free(&a);
}

static void *
use_often(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	for (unsigned k = 0; k < ROUNDS; k++)
		use_once((unsigned)rand_r(&seed), k % 50 == 49);
	return NULL;
}

/* How many of the keys are there, each with its own payload. */
static unsigned
count_found(void)
{
	Store s = store(host_default());
	Unwind inside;
	Arena a;
	const char *why;
	unsigned found = 0;
	NEVER_UNWINDS(&a, &inside, &host_default()->memory);
	for (unsigned k = 0; k < KEYS; k++)
		found += get(&s, &a, k, &why);
	arena_free(&a);
	return found;
}

static void
threads_share_a_folder(void **state)
{
	pthread_t t[THREADS];
	Store s = store(host_default());
	(void)state;
	for (uintptr_t k = 0; k < THREADS; k++)
		assert_int_equal(pthread_create(&t[k], NULL, use_often, (void *)(k + 1)), 0);
	for (unsigned k = 0; k < THREADS; k++)
		pthread_join(t[k], NULL);
	assert_int_equal(listing(&s).nentry, listing(&s).file.n); /* nothing is left aside */
}

static void
pause_ns(long ns)
{
	struct timespec t = {.tv_nsec = ns};
	nanosleep(&t, NULL);
}

/* Two writers at a time, each killed at a moment of chance, and replaced. */
static void
writers_may_be_killed(void **state)
{
	Store s = store(host_default());
	StoreList dropped;
	const char *why;
	pid_t pid[2] = {0};
	unsigned seed = 1, found = 0;
	(void)state;
	for (unsigned round = 0; round < kills; round++) {
		unsigned w = round % 2;
		if (pid[w]) {
			kill(pid[w], SIGKILL);
			waitpid(pid[w], NULL, 0);
		}
		pid[w] = fork();
		if (pid[w] == 0)
			for (unsigned k = 1;; k++)
				use_often((void *)(uintptr_t)(round * 1000 + k));
		pause_ns(rand_r(&seed) % 3000000);
		found += count_found();
	}
	for (unsigned w = 0; w < 2; w++) {
		kill(pid[w], SIGKILL);
		waitpid(pid[w], NULL, 0);
	}
	StoreList list = listing(&s);
	assert_true(found > kills);
	assert_in_range(list.file.n - list.nentry, 0, kills + 2);
	assert_true(store_prune(&s, &arena, 0, &dropped, &why));
	assert_int_equal(listing(&s).file.n, 0);
	print_message("%u kills, %u entries read meanwhile, %u files left aside\n", kills, found, list.file.n - list.nentry);
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		kills = (unsigned)strtoul(argv[1], NULL, 10);
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(what_is_put_comes_back), T(the_key_counts_in_full), T(the_least_used_goes_first), T(the_limit_is_kept),
		T(others_folders_are_refused), T(what_is_no_entry_is_a_miss), T(damage_is_a_miss), T(no_error_is_more_than_a_miss),
		T(interrupted_calls_go_on), T(files_that_cannot_grow), T(memory_that_ends), T(threads_share_a_folder),
		T(writers_may_be_killed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
