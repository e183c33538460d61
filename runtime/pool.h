/* pool.h: the threads that a runtime launches on. Several host threads may run jobs at the same time;
 * the pool's own threads then share themselves out among the jobs, oldest first.
 *
 * The threads start with the first job of two places or more. They block every signal. Between jobs
 * they watch for the next one for some tens of microseconds, then sleep; where there are more of them
 * than processors they sleep at once. One that is woken on the processor where the last job was opened
 * moves to another.
 *
 * After fork(), while no job was running, the child has a pool without threads, which starts its own
 * with the next job. */
#ifndef TEXO_RUNTIME_POOL_H
#define TEXO_RUNTIME_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { POOL_MAX_THREADS = 1024 };

/* Takes the share of place `place` of the work of arg. */
typedef void PoolBody(void *arg, uint32_t place);

typedef struct PoolJob PoolJob;

typedef struct {
	pthread_mutex_t lock;  /* guards what is not atomic */
	pthread_cond_t wake;   /* a job was opened, or the pool ends */
	pthread_cond_t done;   /* the last thread left a job */
	pthread_t *thread;     /* room for threads - 1; the owner's */
	uint32_t threads;      /* that may take part in a job, with the one that runs it */
	uint32_t started, watching, sleeping;
	int64_t watch_ns;
	bool stop;
	int opener;            /* the processor that the last job was opened on */
	PoolJob *job;          /* the open ones, oldest first */
	atomic_uint open;      /* places in open jobs that no thread has taken */
	atomic_uint waiting;   /* threads asleep until their job is done */
	atomic_int pid;        /* of the process that the threads are in; 0 while a child starts anew */
} Pool;

/* The processors that this process may use. */
uint32_t pool_processors(void);
/* thread: room for threads - 1, kept until pool_end. False when the system has no lock to give. */
bool pool_init(Pool *p, pthread_t *thread, uint32_t threads);
/* Starts what threads are missing; where the system gives fewer, fewer take part. */
void pool_start(Pool *p);
/* Runs body(arg, 0) here and, as threads come free while it runs, body(arg, k) for k = 1 .. n - 1, each
 * once or not at all, on others. Returns when all that began have returned. So body(arg, 0) must not
 * return while there is work that no other place has taken. */
void pool_run(Pool *p, uint32_t n, PoolBody *body, void *arg);
/* Lets other threads have the processor. */
void pool_yield(void);
/* Ends and joins the threads; no job may be running. */
void pool_end(Pool *p);

#endif
