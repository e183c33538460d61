/* fake_cuda.h: a driver library for tests, in the place of NVIDIA's. It keeps device memory on the host,
 * counts what is alive, fails where it is told to, and hands launches to the test. */
#ifndef TEXO_TESTS_RUNTIME_FAKE_CUDA_H
#define TEXO_TESTS_RUNTIME_FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

/* What cuTensorMapEncodeTiled was asked for. */
typedef struct {
	int type;
	unsigned rank;
	uintptr_t at;
	uint64_t extent[5], stride[5]; /* stride: bytes, of the second axis on */
	uint32_t box[5];
} FakeMap;

typedef struct {
	int devices, major, minor, processors;
	const char *name;          /* NULL: "Fake" */
	int fail_at, fail_with;    /* call fail_at (from 1) gives fail_with; those that are never back give it ever after */
	int fail_on;               /* and so do all calls after it */
	int null_at;               /* call null_at succeeds and gives nothing */
	const char *log;           /* of a module that is refused */
	int cubins;                /* 1: machine code is taken too; 2: it alone */
	int linked_more, linked_local; /* registers, and bytes of memory, that a kernel takes if it is linked, beyond 32 and 0 */
	int version;               /* CUDA's, of which the driver is and its assembler's machine code */
	int capturing;             /* calls that a captured stream doesn't take are misuse */
	int calls;                 /* so far, but those that only tell an error's text */
	int sticky;                /* what every call gives */
	const char *failed;        /* the call that was made fail, or that gave nothing */
	void *host_context;        /* one that the host has made, of device host_device */
	int host_device;
	int current;               /* whether that is the calling thread's */
	int contexts, pushed, modules, allocations, events, links; /* alive */
	int misuse;                /* calls with what is not alive, or without a context */
	int fault;                 /* the next launch meets its first access, in task 0 */
	int launches, loads, assembled; /* loads: modules, so far; assembled: those that were linked */
	const char *text;          /* of the module that was loaded last, while it is alive, also as its assembler's machine code; NULL: of others */
	int copies;                /* the test's: launches of the runtime's own */
	uintptr_t cleared;         /* the memory that was filled last */
	void *stream;              /* of the last launch */
	unsigned blocks, threads, shared; /* of the last launch */
	int early;                 /* launches that may begin before those before them have ended */
	int maps;                  /* tensor maps made so far; the last one: */
	FakeMap map;
	void (*run)(void *user, const char *name, void *const *parameter);
	void *user;
} FakeCuda;

typedef FakeCuda *FakeCudaFn(void); /* exported as fake_cuda */

#endif
