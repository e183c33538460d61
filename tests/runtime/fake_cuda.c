/* fake_cuda.c: see fake_cuda.h. With FAKE_OLD defined it lacks a function, as an old driver would, with FAKE_11
 * what CUDA 12 has brought. In a process that only has an environment, FAKE_CUDA_DEVICES is how many devices there are, FAKE_CUDA_MAJOR
 * what they are, FAKE_CUDA_NAME their name, FAKE_CUDA_PROCESSORS how many each has, FAKE_CUDA_CUBINS=1 that they take machine code (=only: and nothing else), and
 * FAKE_CUDA_FAIL=CALL:RESULT makes a call fail. FAKE_CUDA_DUMP is a folder for the texts of modules, by
 * their first entry. */
#define _GNU_SOURCE /* memfd_create */
#include "tests/runtime/fake_cuda.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { BAD = 1, NO_MEMORY = 2, NO_DEVICE = 101, NO_IMAGE = 200, NO_CONTEXT = 201, BAD_PTX = 218, NOT_FOUND = 500 };
enum { LEAST_STICKY = 700, MAX_ALIVE = 1024, NAME = 128 };
enum { PIECE = 2 << 20, LARGE = 32 * PIECE };

typedef struct {
	char *text; /* NULL: machine code, which has whatever is asked for */
	bool linked; /* it is what the assembler made */
	const char *before; /* fake.text as it was */
} Module;

typedef struct {
	char name[NAME];
	unsigned cluster; /* blocks of each, which a launch has whole ones of */
	unsigned shared;  /* bytes that a launch may ask for */
	bool linked;
} Function;

static FakeCuda fake = {.devices = 1, .major = 9, .processors = 132, .version = 13000};
static uintptr_t memory[MAX_ALIVE];
static size_t memory_bytes[MAX_ALIVE];
static int memory_byte[MAX_ALIVE]; /* what all of a large one is; -1: nothing alike */
static Function function[MAX_ALIVE];
static unsigned nfunction;
static char context;
static void *pushed[16];

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
	const char *cubins = getenv("FAKE_CUDA_CUBINS"), *processors = getenv("FAKE_CUDA_PROCESSORS"), *name = getenv("FAKE_CUDA_NAME");
	fake.cubins = !cubins ? fake.cubins : strcmp(cubins, "only") == 0 ? 2 : 1;
	fake.devices = devices ? atoi(devices) : fake.devices;
	fake.major = major ? atoi(major) : fake.major;
	fake.processors = processors ? atoi(processors) : fake.processors;
	fake.name = name ? name : fake.name;
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
	if (fake.capturing && !strstr("cuCtxPushCurrent_v2 cuCtxPopCurrent_v2 cuCtxGetCurrent cuMemsetD8Async cuLaunchKernel cuMemAllocAsync cuMemFreeAsync "
	                                "cuStreamIsCapturing", name))
		fake.misuse++;
	bool fails = fake.calls == fake.fail_at || (fake.fail_on && fake.fail_at && fake.calls > fake.fail_at);
	if (fake.calls == fake.fail_at || *nothing)
		fake.failed = name;
	if (fails && fake.fail_with >= LEAST_STICKY)
		fake.sticky = fake.fail_with;
	return fake.sticky ? fake.sticky : fails ? fake.fail_with : 0;
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
	*version = fake.version;
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
	strncpy(name, fake.name ? fake.name : "Fake", (size_t)bytes);
	return device >= 7 ? 0 : misused(NO_DEVICE);
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);
int
cuDeviceGetAttribute(int *value, int attribute, int device)
{
	BEGIN();
	*value = attribute == 75 ? fake.major : attribute == 76 ? fake.minor : attribute == 16 ? fake.processors : attribute == 38 ? 1 << 20 : 0;
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
	bool known = c && c == fake.host_context ? true : c == &context && fake.contexts > 0;
	if (!known || fake.pushed == sizeof pushed / sizeof *pushed)
		return misused(NO_CONTEXT);
	pushed[fake.pushed++] = c;
	return 0;
}

EXPORT int cuCtxPopCurrent_v2(void **c);
int
cuCtxPopCurrent_v2(void **c)
{
	BEGIN_END();
	if (fake.pushed == 0)
		return misused(NO_CONTEXT);
	*c = pushed[--fake.pushed];
	return result;
}

EXPORT int cuCtxGetDevice(int *device);
int
cuCtxGetDevice(int *device)
{
	BEGIN();
	if (!fake.pushed && !fake.current)
		return misused(NO_CONTEXT);
	*device = !fake.pushed ? 7 + fake.host_device : pushed[fake.pushed - 1] == &context ? 7 : 7 + fake.host_device;
	return 0;
}

EXPORT int cuCtxGetCurrent(void **c);
int
cuCtxGetCurrent(void **c)
{
	BEGIN();
	*c = fake.pushed ? pushed[fake.pushed - 1] : fake.current ? fake.host_context : NULL;
	return 0;
}

EXPORT int cuStreamSynchronize(void *stream);
int
cuStreamSynchronize(void *stream)
{
	BEGIN();
	(void)stream;
	return fake.pushed ? 0 : misused(NO_CONTEXT);
}

EXPORT int cuStreamIsCapturing(void *stream, int *status);
int
cuStreamIsCapturing(void *stream, int *status)
{
	BEGIN();
	(void)stream;
	*status = fake.capturing;
	return fake.pushed ? 0 : misused(NO_CONTEXT);
}

/* --- modules: the text must end, be for this GPU, and have the entry --- */

static void
dump(const char *ptx)
{
	const char *folder = getenv("FAKE_CUDA_DUMP"), *entry = strstr(ptx, ".entry ");
	char path[512];
	if (!folder || !entry)
		return;
	entry += strlen(".entry ");
	snprintf(path, sizeof path, "%s/%.*s.ptx", folder, (int)strcspn(entry, "("), entry);
	FILE *f = fopen(path, "w");
	if (!f)
		return;
	fputs(ptx, f);
	fclose(f);
}

/* Machine code that the driver's assembler made: the text, with what it was made for. */
#define ASSEMBLED "\177ELFfake"
typedef struct {
	char magic[8];
	int version, major;
	char text[];
} Assembled;

EXPORT int cuLinkCreate_v2(unsigned n, int *option, void **value, void **link);
int
cuLinkCreate_v2(unsigned n, int *option, void **value, void **link)
{
	BEGIN();
	(void)n, (void)option, (void)value;
	if (!fake.pushed)
		return misused(NO_CONTEXT);
	*link = calloc(1, sizeof(Assembled *));
	fake.links++;
	return 0;
}

EXPORT int cuLinkAddData_v2(void *link, int type, void *data, size_t bytes, const char *name, unsigned n, int *option, void **value);
int
cuLinkAddData_v2(void *link, int type, void *data, size_t bytes, const char *name, unsigned n, int *option, void **value)
{
	enum { PTX = 1 };
	Assembled **to = link;
	const char *text = data;
	BEGIN();
	(void)n, (void)option, (void)value;
	if (!fake.pushed || !to || *to || type != PTX || !name || text[bytes - 1])
		return misused(BAD);
	if (fake.log || !strstr(text, ".target sm_"))
		return BAD_PTX;
	*to = malloc(sizeof **to + bytes);
	memcpy((*to)->magic, ASSEMBLED, sizeof (*to)->magic);
	(*to)->version = fake.version;
	(*to)->major = fake.major;
	memcpy((*to)->text, text, bytes);
	return 0;
}

EXPORT int cuLinkComplete(void *link, void **image, size_t *bytes);
int
cuLinkComplete(void *link, void **image, size_t *bytes)
{
	BEGIN();
	Assembled **from = link;
	if (!fake.pushed || !from || !*from)
		return misused(BAD);
	*image = *from;
	*bytes = sizeof **from + strlen((*from)->text) + 1;
	fake.assembled++;
	return 0;
}

EXPORT int cuLinkDestroy(void *link);
int
cuLinkDestroy(void *link)
{
	BEGIN_END();
	Assembled **l = link;
	if (!l || fake.links == 0)
		return misused(BAD);
	free(*l);
	free(l);
	fake.links--;
	return result;
}

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
	bool is_cubin = memcmp(image, "\177ELF", 4) == 0;
	const Assembled *own = image;
	if (memcmp(image, ASSEMBLED, sizeof own->magic) == 0) {
		if (own->version > fake.version || own->major != fake.major)
			return NO_IMAGE;
		image = own->text;
	} else if (is_cubin ? !fake.cubins : fake.cubins == 2 || !strstr(image, ".target sm_"))
		return NO_IMAGE;
	Module *m = malloc(sizeof *m);
	m->text = is_cubin && image != own->text ? NULL : strdup(image);
	m->linked = image == own->text;
	if (m->text)
		dump(m->text);
	m->before = fake.text;
	fake.text = m->text;
	fake.modules++;
	fake.loads++;
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
	if (fake.text == m->text)
		fake.text = m->before;
	free(m->text);
	free(m);
	return result;
}

/* Of the function whose text begins at `entry`. */
static unsigned
cluster_of(const char *entry)
{
	static const char word[] = ".reqnctapercluster ";
	const char *body = entry ? strchr(entry, '{') : NULL, *at = body ? strstr(entry, word) : NULL;
	return at && at < body ? (unsigned)strtoul(at + strlen(word), NULL, 10) : 1;
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
	if (m->text && !strstr(m->text, entry))
		return NOT_FOUND;
	Function *f = &function[nfunction++ % MAX_ALIVE];
	strcpy(f->name, name);
	f->shared = 0;
	f->linked = m->linked;
	f->cluster = cluster_of(m->text ? strstr(m->text, entry) : NULL);
	*out = f;
	return 0;
}

EXPORT int cuFuncGetAttribute(int *value, int attribute, void *f);
int
cuFuncGetAttribute(int *value, int attribute, void *f)
{
	BEGIN();
	enum { THREADS = 0, LOCAL = 3, REGISTERS = 4 };
	if (!fake.pushed || !f || (attribute != THREADS && attribute != LOCAL && attribute != REGISTERS))
		return misused(BAD);
	bool linked = ((const Function *)f)->linked;
	*value = attribute == THREADS ? 1024 : attribute == LOCAL ? (linked ? fake.linked_local : 0) : 32 + (linked ? fake.linked_more : 0);
	return 0;
}

EXPORT int cuFuncSetAttribute(void *f, int attribute, int value);
int
cuFuncSetAttribute(void *f, int attribute, int value)
{
	enum { MAX_DYNAMIC_SHARED = 8, MOST = 232448 };
	BEGIN();
	if (!fake.pushed || !f || attribute != MAX_DYNAMIC_SHARED || value < 0 || value > MOST)
		return misused(BAD);
	((Function *)f)->shared = (unsigned)value;
	return 0;
}

#ifndef FAKE_11
EXPORT int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *at, const uint64_t *extent, const uint64_t *stride,
                                  const uint32_t *box, const uint32_t *step, int interleave, int swizzle, int promotion, int fill);
int
cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *at, const uint64_t *extent, const uint64_t *stride,
                       const uint32_t *box, const uint32_t *step, int interleave, int swizzle, int promotion, int fill)
{
	enum { ALIGN = 64, BYTES = 128, SWIZZLE_64 = 2, SWIZZLE_128 = 3 };
	if ((uintptr_t)map % ALIGN || (uintptr_t)at % 16 || rank < 2 || rank > 5 || interleave || promotion < 0 || fill ||
	    swizzle != (*box == 64 ? SWIZZLE_128 : *box == 32 ? SWIZZLE_64 : -1))
		return misused(BAD);
	fake.map = (FakeMap){.type = type, .rank = rank, .at = (uintptr_t)at};
	for (unsigned n = 0; n < rank; n++) {
		if (!extent[n] || extent[n] > (uint64_t)1 << 32 || !box[n] || box[n] > 256 || step[n] < 1 || step[n] > 8 || (!n && step[n] != 1) ||
		    (n && (!stride[n - 1] || stride[n - 1] % 16 || stride[n - 1] >> 40)))
			return misused(BAD);
		fake.map.extent[n] = extent[n];
		fake.map.stride[n] = n ? stride[n - 1] : 0;
		fake.map.box[n] = box[n];
	}
	memset(map, 0x5a, BYTES);
	fake.maps++;
	return 0;
}
#endif

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

static void *
reserve(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static bool
is_whole(int k, uint64_t at, size_t bytes)
{
	return k >= 0 && memory[k] == at && memory_bytes[k] == bytes;
}

static void
changed(uint64_t at)
{
	int k = slot_of(at);
	if (k >= 0)
		memory_byte[k] = -1;
}

/* memset; but large memories, of which benches have GiBs, are one piece many times until they are written. */
static void
fill(uint64_t at, unsigned char byte, size_t bytes)
{
	int k = slot_of(at), fd = -1;
	char *to = (char *)(uintptr_t)at;
	bool large = bytes >= LARGE && is_whole(k, at, bytes);
	changed(at);
	if (large)
		fd = memfd_create("fake_cuda", 0);
	size_t done = 0;
	void *piece = fd >= 0 && ftruncate(fd, PIECE) == 0 ? mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	if (piece != MAP_FAILED) {
		memset(piece, byte, PIECE);
		munmap(piece, PIECE);
		for (size_t n; done < bytes; done += n) {
			n = bytes - done < PIECE ? bytes - done : PIECE;
			if (mmap(to + done, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
				break;
		}
	}
	if (fd >= 0)
		close(fd);
	if (large)
		memory_byte[k] = byte;
	if (done < bytes)
		memset(to + done, byte, bytes - done);
}

static int
allocate(uint64_t *at, size_t bytes)
{
	if (!fake.pushed || !bytes)
		return misused(NO_CONTEXT);
	for (int k = 0; k < MAX_ALIVE; k++) {
		if (memory[k])
			continue;
		void *p = bytes < LARGE ? NULL : reserve(bytes);
		if (bytes < LARGE && posix_memalign(&p, 512, bytes) != 0)
			p = NULL;
		if (!p)
			return NO_MEMORY;
		memory[k] = (uintptr_t)p;
		memory_bytes[k] = bytes;
		fill(memory[k], 0xa5, bytes);
		fake.allocations++;
		*at = memory[k];
		return 0;
	}
	return NO_MEMORY;
}

static int
release(uint64_t at, int result)
{
	int k = slot_of(at);
	if (k < 0 || memory[k] != at)
		return misused(BAD);
	if (memory_bytes[k] < LARGE)
		free((void *)memory[k]);
	else
		munmap((void *)memory[k], memory_bytes[k]);
	memory[k] = 0;
	fake.allocations--;
	return result;
}

EXPORT int cuMemAlloc_v2(uint64_t *at, size_t bytes);
int
cuMemAlloc_v2(uint64_t *at, size_t bytes)
{
	BEGIN();
	return allocate(at, bytes);
}

EXPORT int cuMemFree_v2(uint64_t at);
int
cuMemFree_v2(uint64_t at)
{
	BEGIN_END();
	return release(at, result);
}

EXPORT int cuMemAllocAsync(uint64_t *at, size_t bytes, void *stream);
int
cuMemAllocAsync(uint64_t *at, size_t bytes, void *stream)
{
	BEGIN();
	fake.stream = stream;
	return allocate(at, bytes);
}

EXPORT int cuMemFreeAsync(uint64_t at, void *stream);
int
cuMemFreeAsync(uint64_t at, void *stream)
{
	BEGIN_END();
	fake.stream = stream;
	return release(at, result);
}

EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes);
int
cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
	BEGIN();
	if (!fake.pushed || !is_inside(to, bytes))
		return misused(BAD);
	changed(to);
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
	fill(at, byte, bytes);
	fake.cleared = (uintptr_t)at;
	return 0;
}

EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream);
int
cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
	BEGIN();
	(void)stream;
	if (!fake.pushed || !is_inside(to, bytes) || !is_inside(from, bytes))
		return misused(BAD);
	int source = slot_of(from);
	if (is_whole(source, from, bytes) && bytes >= LARGE && memory_byte[source] >= 0) {
		fill(to, (unsigned char)memory_byte[source], bytes);
		return 0;
	}
	changed(to);
	memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
	return 0;
}

/* --- events: of each the number of the call that recorded it, a microsecond a call --- */

EXPORT int cuEventCreate(void **event, unsigned flags);
int
cuEventCreate(void **event, unsigned flags)
{
	BEGIN();
	if (!fake.pushed || flags)
		return misused(NO_CONTEXT);
	*event = calloc(1, sizeof(int));
	fake.events++;
	return 0;
}

EXPORT int cuEventDestroy_v2(void *event);
int
cuEventDestroy_v2(void *event)
{
	BEGIN_END();
	if (!event || fake.events == 0)
		return misused(BAD);
	free(event);
	fake.events--;
	return result;
}

EXPORT int cuEventRecord(void *event, void *stream);
int
cuEventRecord(void *event, void *stream)
{
	BEGIN();
	(void)stream;
	if (!fake.pushed || !event)
		return misused(NO_CONTEXT);
	*(int *)event = fake.calls;
	return 0;
}

EXPORT int cuEventSynchronize(void *event);
int
cuEventSynchronize(void *event)
{
	BEGIN();
	return fake.pushed && event && *(int *)event ? 0 : misused(NO_CONTEXT);
}

EXPORT int cuEventElapsedTime(float *ms, void *from, void *to);
int
cuEventElapsedTime(float *ms, void *from, void *to)
{
	BEGIN();
	if (!fake.pushed || !*(int *)from || !*(int *)to)
		return misused(NO_CONTEXT);
	*ms = (float)(*(int *)to - *(int *)from) * 1e-3f;
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
	if (!fake.pushed || !f || !gx || !bx || gy != 1 || gz != 1 || by != 1 || bz != 1 || bx > 1024 || shared > ((Function *)f)->shared || extra ||
	    gx % ((Function *)f)->cluster)
		return misused(BAD);
	fake.launches++;
	fake.stream = stream;
	fake.blocks = gx;
	fake.threads = bx;
	fake.shared = shared;
	if (fake.fault) { /* the status words are cleared just before, and lie in the memory that is */
		fill(fake.cleared, 0, sizeof(uint64_t));
		*(unsigned char *)fake.cleared = 1;
		fake.fault = 0;
	}
	if (fake.run)
		fake.run(fake.user, ((Function *)f)->name, parameter);
	return 0;
}

#ifndef FAKE_11
typedef struct {
	unsigned grid[3], block[3], shared;
	void *stream;
	struct {
		int id, pad, value[16];
	} *attribute;
	unsigned nattribute;
} Config;

EXPORT int cuLaunchKernelEx(const Config *how, void *f, void **parameter, void **extra);
int
cuLaunchKernelEx(const Config *how, void *f, void **parameter, void **extra)
{
	enum { STREAM_SERIALIZATION = 6 };
	if (how->nattribute != 1 || how->attribute->id != STREAM_SERIALIZATION || how->attribute->value[0] != 1)
		return misused(BAD);
	fake.early++;
	return cuLaunchKernel(f, how->grid[0], how->grid[1], how->grid[2], how->block[0], how->block[1], how->block[2], how->shared,
	                      how->stream, parameter, extra);
}
#endif
#endif
