/* pool.c: see pool.h. All changes of the list of jobs and of who is where are made under the lock, so
 * that no wake-up is lost; the atomics only let threads watch without it. A job lives on the stack of
 * the thread that runs it: nobody touches it after leaving it, and its owner returns only when it is
 * off the list and everybody has left.
 *
 * The one race without the lock is between the last to leave a job and its owner going to sleep.
 * The first decrements `running`, then reads `waiting`; the second increments `waiting`, then reads
 * `running`; in the one order of these four at least one sees the other. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "runtime/pool.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xmmintrin.h>

enum { WATCH_NS = 40 * 1000, LOOKS = 32 /* between two readings of the clock */ };

struct PoolJob {
	PoolBody *body;
	void *arg;
	uint32_t places, taken; /* taken: with the owner's */
	atomic_uint running;    /* other threads in it */
	PoolJob *next;
};

uint32_t
pool_processors(void)
{
	cpu_set_t set;
	long n;
	if (sched_getaffinity(0, sizeof set, &set) == 0)
		n = CPU_COUNT(&set);
	else
		n = sysconf(_SC_NPROCESSORS_ONLN); /* more processors than the set has bits */
	return n < 1 ? 1 : n > POOL_MAX_THREADS ? POOL_MAX_THREADS : (uint32_t)n;
}

/* --- watching --- */

static int64_t
now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Waits until *v is zero, or is not; false when that took longer than ns. */
static bool
watch(atomic_uint *v, bool zero, int64_t ns)
{
	if ((atomic_load(v) == 0) == zero)
		return true;
	if (ns == 0)
		return false;
	for (int64_t end = now_ns() + ns; now_ns() < end;)
		for (int k = 0; k < LOOKS; k++) {
			_mm_pause();
			if ((atomic_load(v) == 0) == zero)
				return true;
		}
	return false;
}

/* --- the pool's threads --- */

/* Takes a place in the oldest job that has one; NULL when none has. Under the lock. */
static PoolJob *
take_place(Pool *p, uint32_t *place)
{
	for (PoolJob *j = p->job; j; j = j->next)
		if (j->taken < j->places) {
			*place = j->taken++;
			atomic_fetch_add(&j->running, 1);
			atomic_fetch_sub(&p->open, 1);
			return j;
		}
	return NULL;
}

/* A thread that is woken where the waker runs, though another processor is idle, takes turns with it and
 * helps nobody. Linux does that on small machines: it looks for an idle processor only while its average
 * load of them is low, and moves the thread some hundreds of microseconds later. */
static void
leave_processor(int here)
{
	cpu_set_t all, others;
	if (here < 0 || sched_getcpu() != here || sched_getaffinity(0, sizeof all, &all) != 0)
		return;
	others = all;
	CPU_CLR((size_t)here, &others);
	if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0)
		sched_setaffinity(0, sizeof all, &all);
}

/* The next job with a place for this thread; NULL when the pool ends. Who was woken and came too late for
 * the job watches again before it sleeps: where jobs are shorter than a wake, it would else be late for
 * each of them, and each would pay for waking it. */
static PoolJob *
next_job(Pool *p, uint32_t *place)
{
	PoolJob *j;
	bool watched = false;
	pthread_mutex_lock(&p->lock);
	while (!(j = take_place(p, place)) && !p->stop) {
		if (watched) {
			p->sleeping++;
			pthread_cond_wait(&p->wake, &p->lock);
			p->sleeping--;
			watched = false;
			if (!p->stop) {
				int opener = p->opener;
				pthread_mutex_unlock(&p->lock);
				leave_processor(opener);
				pthread_mutex_lock(&p->lock);
			}
			continue;
		}
		p->watching++;
		pthread_mutex_unlock(&p->lock);
		watched = !watch(&p->open, false, p->watch_ns);
		pthread_mutex_lock(&p->lock);
		p->watching--;
	}
	pthread_mutex_unlock(&p->lock);
	return j;
}

static void
leave(Pool *p, PoolJob *j)
{
	if (atomic_fetch_sub(&j->running, 1) != 1 || atomic_load(&p->waiting) == 0)
		return;
	pthread_mutex_lock(&p->lock);
	pthread_cond_broadcast(&p->done);
	pthread_mutex_unlock(&p->lock);
}

static void *
work(void *arg)
{
	Pool *p = arg;
	uint32_t place;
	for (PoolJob *j; (j = next_job(p, &place)) != NULL; leave(p, j))
		j->body(j->arg, place);
	return NULL;
}

/* Under the lock. A host's signal handlers are not to run on threads that it doesn't know. */
static void
start_threads(Pool *p)
{
	sigset_t all, old;
	if (p->started + 1 >= p->threads)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (p->started + 1 < p->threads && pthread_create(&p->thread[p->started], NULL, work, p) == 0)
		p->started++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* --- the thread that runs a job --- */

static bool
make_locks(Pool *p)
{
	return pthread_mutex_init(&p->lock, NULL) == 0 && pthread_cond_init(&p->wake, NULL) == 0 &&
	       pthread_cond_init(&p->done, NULL) == 0;
}

/* In a child of fork() the threads are gone, and the lock is as one of them may have left it. */
static void
own_pool(Pool *p)
{
	int here = (int)getpid(), seen;
	while ((seen = atomic_load(&p->pid)) != here) {
		if (seen == 0 || !atomic_compare_exchange_strong(&p->pid, &seen, 0)) {
			sched_yield();
			continue;
		}
		make_locks(p);
		p->started = p->watching = p->sleeping = 0;
		p->job = NULL;
		atomic_store(&p->open, 0);
		atomic_store(&p->waiting, 0);
		atomic_store(&p->pid, here);
	}
}

static void
open_job(Pool *p, PoolJob *job)
{
	pthread_mutex_lock(&p->lock);
	start_threads(p);
	if (job->places > p->started + 1)
		job->places = p->started + 1;
	PoolJob **end = &p->job;
	while (*end)
		end = &(*end)->next;
	*end = job;
	p->opener = sched_getcpu();
	uint32_t want = job->places - 1;
	atomic_fetch_add(&p->open, want);
	want = want > p->watching ? want - p->watching : 0;
	uint32_t sleeping = p->sleeping;
	pthread_mutex_unlock(&p->lock);
	if (want > 1 && want >= sleeping)
		pthread_cond_broadcast(&p->wake);
	else
		for (; want > 0 && sleeping > 0; want--, sleeping--)
			pthread_cond_signal(&p->wake);
}

/* Takes the job off the list, so that nobody enters any more, and waits for those inside. */
static void
close_job(Pool *p, PoolJob *job)
{
	pthread_mutex_lock(&p->lock);
	PoolJob **at = &p->job;
	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	atomic_fetch_sub(&p->open, job->places - job->taken);
	pthread_mutex_unlock(&p->lock);
	if (watch(&job->running, true, p->watch_ns))
		return;
	pthread_mutex_lock(&p->lock);
	atomic_fetch_add(&p->waiting, 1);
	while (atomic_load(&job->running) > 0)
		pthread_cond_wait(&p->done, &p->lock);
	atomic_fetch_sub(&p->waiting, 1);
	pthread_mutex_unlock(&p->lock);
}

void
pool_yield(void)
{
	sched_yield();
}

void
pool_run(Pool *p, uint32_t n, PoolBody *body, void *arg)
{
	PoolJob job = {.body = body, .arg = arg, .places = n < p->threads ? n : p->threads, .taken = 1};
	if (job.places < 2) {
		body(arg, 0);
		return;
	}
	own_pool(p);
	open_job(p, &job);
	body(arg, 0);
	close_job(p, &job);
}

/* --- begin and end --- */

bool
pool_init(Pool *p, pthread_t *thread, uint32_t threads)
{
	memset(p, 0, sizeof *p);
	p->thread = thread;
	p->threads = threads;
	p->watch_ns = threads <= pool_processors() ? WATCH_NS : 0;
	atomic_init(&p->pid, (int)getpid());
	return make_locks(p);
}

void
pool_start(Pool *p)
{
	own_pool(p);
	pthread_mutex_lock(&p->lock);
	start_threads(p);
	pthread_mutex_unlock(&p->lock);
}

void
pool_end(Pool *p)
{
	if (atomic_load(&p->pid) != (int)getpid())
		return; /* a child that never ran a job: the threads are its parent's */
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	uint32_t n = p->started;
	pthread_mutex_unlock(&p->lock);
	pthread_cond_broadcast(&p->wake);
	for (uint32_t k = 0; k < n; k++)
		pthread_join(p->thread[k], NULL);
	pthread_cond_destroy(&p->wake);
	pthread_cond_destroy(&p->done);
	pthread_mutex_destroy(&p->lock);
}
