/* fake_cuda.h: a driver library for tests, in the place of NVIDIA's. It keeps device memory on the host,
 * counts what is alive, fails where it is told to, and hands launches to the test. */
#ifndef TEXO_TESTS_RUNTIME_FAKE_CUDA_H
#define TEXO_TESTS_RUNTIME_FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
	int devices, major, minor, processors;
	int fail_at, fail_with;    /* call fail_at (from 1) gives fail_with; those that are never back give it ever after */
	int null_at;               /* call null_at succeeds and gives nothing */
	const char *log;           /* of a module that is refused */
	int calls;                 /* so far, but those that only tell an error's text */
	int sticky;                /* what every call gives */
	const char *failed;        /* the call that was made fail, or that gave nothing */
	int contexts, pushed, modules, allocations; /* alive */
	int misuse;                /* calls with what is not alive, or without a context */
	int launches;
	void *stream;              /* of the last launch */
	unsigned blocks, threads;
	void (*run)(void *user, const char *name, void *const *parameter);
	void *user;
} FakeCuda;

typedef FakeCuda *FakeCudaFn(void); /* exported as fake_cuda */

#endif
