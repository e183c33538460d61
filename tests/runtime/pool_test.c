/* pool_test.c: the pool alone: every job's work is done once, whatever the number of threads, of jobs
 * at the same time and of places; it ends; a child of fork() has a pool that works. Built a second
 * time under the thread sanitizer, which doesn't follow threads into a child. */
#define _GNU_SOURCE /* pthread_getaffinity_np */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/pool.h"

enum { MOST = 8, PIECES = 64 };

/* Pieces that places take as they come; plain memory, so that a race is one. */
typedef struct {
	atomic_uint next;
	uint32_t pieces, rounds;
	uint32_t took[PIECES];
	uint64_t value[PIECES];
	uint32_t entered[MOST];
} Share;

static uint64_t
churn(uint64_t v, uint32_t rounds)
{
	for (uint32_t k = 0; k < rounds; k++)
		v = v * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return v;
}

static void
share(void *arg, uint32_t place)
{
	Share *s = arg;
	s->entered[place]++;
	for (uint32_t n; (n = atomic_fetch_add(&s->next, 1)) < s->pieces;) {
		s->took[n]++;
		s->value[n] = churn(n, s->rounds);
	}
}

static void
run_share(Pool *p, uint32_t places, uint32_t pieces, uint32_t rounds)
{
	Share s = {.pieces = pieces, .rounds = rounds};
	pool_run(p, places, share, &s);
	for (uint32_t n = 0; n < pieces; n++) {
		assert_int_equal(s.took[n], 1);
		assert_true(s.value[n] == churn(n, rounds));
	}
	assert_int_equal(s.entered[0], 1);
	for (uint32_t k = 1; k < MOST; k++)
		assert_true(s.entered[k] <= (k < places && k < p->threads));
}

static void
does_all_work_once(void **state)
{
	(void)state;
	for (uint32_t threads = 1; threads <= MOST; threads++) {
		Pool p;
		pthread_t thread[MOST];
		assert_true(pool_init(&p, thread, threads));
		for (uint32_t k = 0; k < 200; k++)
			run_share(&p, 1 + k % MOST, k % PIECES, k % 3 * 50);
		pool_end(&p);
	}
}

/* A thread that is woken where its waker runs moves elsewhere (there are more of them than processors on
 * some machines): it may still run wherever the process may. */
static void
keeps_its_processors(void **state)
{
	(void)state;
	Pool p;
	pthread_t thread[3];
	cpu_set_t here, there;
	assert_int_equal(sched_getaffinity(0, sizeof here, &here), 0);
	assert_true(pool_init(&p, thread, 4));
	for (int k = 0; k < 20; k++) {
		nanosleep(&(struct timespec){0, 500000}, NULL);
		run_share(&p, 4, PIECES, 500);
	}
	nanosleep(&(struct timespec){0, 20000000}, NULL);
	for (int k = 0; k < 3; k++) {
		assert_int_equal(pthread_getaffinity_np(thread[k], sizeof there, &there), 0);
		assert_true(CPU_EQUAL(&here, &there));
	}
	pool_end(&p);
}

/* Threads that slept, threads that watch, a pool that was started and never used, one never started. */
static void
wakes_and_ends(void **state)
{
	(void)state;
	Pool p;
	pthread_t thread[3];
	assert_true(pool_init(&p, thread, 4));
	for (int k = 0; k < 5; k++) {
		run_share(&p, 4, PIECES, 2000);
		nanosleep(&(struct timespec){0, 2000000}, NULL);
	}
	assert_int_equal(p.started, 3);
	pool_end(&p);
	assert_true(pool_init(&p, thread, 4));
	pool_start(&p);
	pool_end(&p);
	assert_true(pool_init(&p, thread, 4));
	run_share(&p, 1, PIECES, 0);
	assert_int_equal(p.started, 0);
	pool_end(&p);
}

/* --- several threads with a job each --- */

static void *
run_jobs(void *arg)
{
	for (uint32_t k = 0; k < 300; k++) {
		Share s = {.pieces = k % PIECES, .rounds = k % 7 * 20};
		pool_run(arg, 2 + k % 3, share, &s);
		for (uint32_t n = 0; n < s.pieces; n++)
			if (s.took[n] != 1)
				return arg;
	}
	return NULL;
}

static void
takes_jobs_at_once(void **state)
{
	(void)state;
	enum { HOSTS = 4 };
	Pool p;
	pthread_t thread[3], host[HOSTS];
	void *failed;
	assert_true(pool_init(&p, thread, 4));
	for (int k = 0; k < HOSTS; k++)
		assert_int_equal(pthread_create(&host[k], NULL, run_jobs, &p), 0);
	for (int k = 0; k < HOSTS; k++) {
		pthread_join(host[k], &failed);
		assert_null(failed);
	}
	pool_end(&p);
}

/* --- fork --- */

#ifndef NO_FORK
static void
works_in_a_child(void **state)
{
	(void)state;
	Pool p;
	pthread_t thread[3];
	int status;
	assert_true(pool_init(&p, thread, 4));
	run_share(&p, 4, PIECES, 100);
	for (int use = 0; use < 2; use++) {
		pid_t child = fork();
		if (child == 0) {
			alarm(20);
			Share s = {.pieces = PIECES};
			if (use)
				pool_run(&p, 4, share, &s);
			pool_end(&p);
			_exit(use && (s.took[0] != 1 || s.took[PIECES - 1] != 1 || p.started != 3));
		}
		assert_true(child > 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		run_share(&p, 4, PIECES, 100);
	}
	pool_end(&p);
}
#endif

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(does_all_work_once),
		cmocka_unit_test(wakes_and_ends),
		cmocka_unit_test(keeps_its_processors),
		cmocka_unit_test(takes_jobs_at_once),
#ifndef NO_FORK
		cmocka_unit_test(works_in_a_child),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
