/* fake_cuda.c: see fake_cuda.h. With FAKE_OLD defined it lacks a function, as an old driver would. In a
 * process that only has an environment, FAKE_CUDA_DEVICES is how many devices there are, FAKE_CUDA_MAJOR
 * what they are, and FAKE_CUDA_FAIL=CALL:RESULT makes a call fail. */
#include "tests/runtime/fake_cuda.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { BAD = 1, NO_MEMORY = 2, NO_DEVICE = 101, NO_IMAGE = 200, NO_CONTEXT = 201, BAD_PTX = 218, NOT_FOUND = 500 };
enum { LEAST_STICKY = 700, MAX_ALIVE = 256, NAME = 128 };

typedef struct {
	char *text;
} Module;

typedef struct {
	char name[NAME];
} Function;

static FakeCuda fake = {.devices = 1, .major = 9, .processors = 132};
static uintptr_t memory[MAX_ALIVE];
static size_t memory_bytes[MAX_ALIVE];
static Function function[MAX_ALIVE];
static unsigned nfunction;
static char context;

EXPORT FakeCuda *fake_cuda(void);
FakeCuda *
fake_cuda(void)
{
	return &fake;
}

static void
read_environment(void)
{
	const char *devices = getenv("FAKE_CUDA_DEVICES"), *major = getenv("FAKE_CUDA_MAJOR"), *fail = getenv("FAKE_CUDA_FAIL");
	fake.devices = devices ? atoi(devices) : fake.devices;
	fake.major = major ? atoi(major) : fake.major;
	if (fail) {
		fake.fail_at = atoi(fail);
		fake.fail_with = atoi(strchr(fail, ':') + 1);
	}
}

/* What the call gives before it does anything; *nothing: it is to give no handle. */
static int
begin(const char *name, bool *nothing)
{
	if (fake.calls++ == 0)
		read_environment();
	*nothing = fake.calls == fake.null_at;
	if (fake.calls == fake.fail_at || *nothing)
		fake.failed = name;
	if (fake.calls == fake.fail_at && fake.fail_with >= LEAST_STICKY)
		fake.sticky = fake.fail_with;
	return fake.sticky ? fake.sticky : fake.calls == fake.fail_at ? fake.fail_with : 0;
}

#define BEGIN()                                  \
	bool nothing;                            \
	int result = begin(__func__, &nothing);  \
	if (result || nothing)                   \
		return result

/* For calls that give something back: it is gone whatever they say. */
#define BEGIN_END()                             \
	bool nothing;                           \
	int result = begin(__func__, &nothing)

static int
misused(int result)
{
	fake.misuse++;
	return result;
}

/* --- devices --- */

EXPORT int cuInit(unsigned flags);
int
cuInit(unsigned flags)
{
	BEGIN();
	return flags ? BAD : 0;
}

EXPORT int cuDriverGetVersion(int *version);
int
cuDriverGetVersion(int *version)
{
	BEGIN();
	*version = 13000;
	return 0;
}

EXPORT int cuGetErrorName(int result, const char **text);
int
cuGetErrorName(int result, const char **text)
{
	*text = result == NO_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : result == LEAST_STICKY ? "CUDA_ERROR_ILLEGAL_ADDRESS" : NULL;
	return *text ? 0 : BAD;
}

EXPORT int cuGetErrorString(int result, const char **text);
int
cuGetErrorString(int result, const char **text)
{
	*text = result == NO_MEMORY ? "out of memory" : NULL;
	return *text ? 0 : BAD;
}

EXPORT int cuDeviceGetCount(int *count);
int
cuDeviceGetCount(int *count)
{
	BEGIN();
	*count = fake.devices;
	return 0;
}

EXPORT int cuDeviceGet(int *device, int ordinal);
int
cuDeviceGet(int *device, int ordinal)
{
	BEGIN();
	*device = ordinal + 7; /* a handle, no number */
	return ordinal < fake.devices ? 0 : misused(NO_DEVICE);
}

EXPORT int cuDeviceGetName(char *name, int bytes, int device);
int
cuDeviceGetName(char *name, int bytes, int device)
{
	BEGIN();
	strncpy(name, "Fake", (size_t)bytes);
	return device >= 7 ? 0 : misused(NO_DEVICE);
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);
int
cuDeviceGetAttribute(int *value, int attribute, int device)
{
	BEGIN();
	*value = attribute == 75 ? fake.major : attribute == 76 ? fake.minor : attribute == 16 ? fake.processors : 0;
	return device >= 7 ? 0 : misused(NO_DEVICE);
}

/* --- contexts --- */

EXPORT int cuDevicePrimaryCtxRetain(void **out, int device);
int
cuDevicePrimaryCtxRetain(void **out, int device)
{
	BEGIN();
	*out = &context;
	fake.contexts++;
	return device >= 7 ? 0 : misused(NO_DEVICE);
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device);
int
cuDevicePrimaryCtxRelease_v2(int device)
{
	BEGIN_END();
	if (device < 7 || fake.contexts == 0)
		return misused(NO_CONTEXT);
	if (--fake.contexts == 0)
		fake.sticky = 0; /* the next one is new */
	return result;
}

EXPORT int cuCtxPushCurrent_v2(void *c);
int
cuCtxPushCurrent_v2(void *c)
{
	BEGIN();
	if (c != &context || fake.contexts == 0)
		return misused(NO_CONTEXT);
	fake.pushed++;
	return 0;
}

EXPORT int cuCtxPopCurrent_v2(void **c);
int
cuCtxPopCurrent_v2(void **c)
{
	BEGIN_END();
	if (fake.pushed == 0)
		return misused(NO_CONTEXT);
	fake.pushed--;
	*c = &context;
	return result;
}

EXPORT int cuStreamSynchronize(void *stream);
int
cuStreamSynchronize(void *stream)
{
	BEGIN();
	(void)stream;
	return fake.pushed ? 0 : misused(NO_CONTEXT);
}

/* --- modules: the text must end, be for this GPU, and have the entry --- */

EXPORT int cuModuleLoadDataEx(void **out, const void *image, unsigned n, int *option, void **value);
int
cuModuleLoadDataEx(void **out, const void *image, unsigned n, int *option, void **value)
{
	BEGIN();
	if (!fake.pushed)
		return misused(NO_CONTEXT);
	for (unsigned k = 0; fake.log && k < n; k++)
		if (option[k] == 5)
			strncpy(value[k], fake.log, (size_t)(uintptr_t)value[k + 1]);
	if (fake.log)
		return BAD_PTX;
	Module *m = malloc(sizeof *m);
	m->text = strdup(image);
	if (!strstr(m->text, ".target sm_")) {
		free(m->text);
		free(m);
		return NO_IMAGE;
	}
	fake.modules++;
	*out = m;
	return 0;
}

EXPORT int cuModuleUnload(void *module);
int
cuModuleUnload(void *module)
{
	BEGIN_END();
	Module *m = module;
	if (!m || fake.modules == 0)
		return misused(BAD);
	fake.modules--;
	free(m->text);
	free(m);
	return result;
}

EXPORT int cuModuleGetFunction(void **out, void *module, const char *name);
int
cuModuleGetFunction(void **out, void *module, const char *name)
{
	BEGIN();
	const Module *m = module;
	char entry[NAME + 16] = ".entry ";
	if (!fake.pushed || !m)
		return misused(NO_CONTEXT);
	if (strlen(name) >= NAME)
		return NOT_FOUND;
	strcat(strcat(entry, name), "(");
	if (!strstr(m->text, entry))
		return NOT_FOUND;
	Function *f = &function[nfunction++ % MAX_ALIVE];
	strcpy(f->name, name);
	*out = f;
	return 0;
}

/* --- memory --- */

static int
slot_of(uint64_t at)
{
	for (int k = 0; k < MAX_ALIVE; k++)
		if (memory[k] && at >= memory[k] && at < memory[k] + memory_bytes[k])
			return k;
	return -1;
}

static bool
is_inside(uint64_t at, size_t bytes)
{
	int k = slot_of(at);
	return k >= 0 && bytes <= memory[k] + memory_bytes[k] - at;
}

EXPORT int cuMemAlloc_v2(uint64_t *at, size_t bytes);
int
cuMemAlloc_v2(uint64_t *at, size_t bytes)
{
	BEGIN();
	if (!fake.pushed || !bytes)
		return misused(NO_CONTEXT);
	for (int k = 0; k < MAX_ALIVE; k++) {
		if (memory[k])
			continue;
		void *p = NULL;
		if (posix_memalign(&p, 512, bytes) != 0)
			return NO_MEMORY;
		memset(p, 0xa5, bytes);
		memory[k] = (uintptr_t)p;
		memory_bytes[k] = bytes;
		fake.allocations++;
		*at = memory[k];
		return 0;
	}
	return NO_MEMORY;
}

EXPORT int cuMemFree_v2(uint64_t at);
int
cuMemFree_v2(uint64_t at)
{
	BEGIN_END();
	int k = slot_of(at);
	if (k < 0 || memory[k] != at)
		return misused(BAD);
	free((void *)memory[k]);
	memory[k] = 0;
	fake.allocations--;
	return result;
}

EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes);
int
cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
	BEGIN();
	if (!fake.pushed || !is_inside(to, bytes))
		return misused(BAD);
	memcpy((void *)(uintptr_t)to, from, bytes);
	return 0;
}

EXPORT int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes);
int
cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
	BEGIN();
	if (!fake.pushed || !is_inside(from, bytes))
		return misused(BAD);
	memcpy(to, (void *)(uintptr_t)from, bytes);
	return 0;
}

EXPORT int cuMemsetD8Async(uint64_t at, unsigned char byte, size_t bytes, void *stream);
int
cuMemsetD8Async(uint64_t at, unsigned char byte, size_t bytes, void *stream)
{
	BEGIN();
	(void)stream;
	if (!fake.pushed || !is_inside(at, bytes))
		return misused(BAD);
	memset((void *)(uintptr_t)at, byte, bytes);
	return 0;
}

#ifndef FAKE_OLD
EXPORT int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void *stream, void **parameter, void **extra);
int
cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
               void *stream, void **parameter, void **extra)
{
	BEGIN();
	if (!fake.pushed || !f || !gx || !bx || gy != 1 || gz != 1 || by != 1 || bz != 1 || bx > 256 || shared || extra)
		return misused(BAD);
	fake.launches++;
	fake.stream = stream;
	fake.blocks = gx;
	fake.threads = bx;
	if (fake.run)
		fake.run(fake.user, ((Function *)f)->name, parameter);
	return 0;
}
#endif
