/* cuda_driver.c: the driver library, its device and its errors. The library stays in the process once it
 * was there: it has threads of its own. */
#define _GNU_SOURCE /* RTLD_NODELETE, dladdr, realpath */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/cuda.h"

enum { ATTRIBUTE_PROCESSORS = 16, ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76 };
enum { MAX_THREADS = 0 }; /* of a function */

/* --- errors --- */

static const struct {
	int number;
	texo_status status;
	bool lost;
} known[] = {
#define CUDA_ERROR(number, status, lost) {number, TEXO_##status, lost},
#include "runtime/cuda_errors.def"
};

static const char *
error_name(const Cuda *c, int result)
{
	const char *text = NULL;
	return c->driver.error_name && c->driver.error_name(result, &text) == 0 && text ? text : "an unknown error";
}

texo_status
cuda_result(Cuda *c, int result, const char *what)
{
	const char *text = NULL;
	texo_status s = TEXO_INTERNAL;
	if (result == 0)
		return TEXO_OK;
	for (unsigned n = 0; n < sizeof known / sizeof *known; n++)
		if (known[n].number == result) {
			int none = 0;
			s = known[n].status;
			if (known[n].lost)
				atomic_compare_exchange_strong(&c->lost, &none, result);
		}
	if (!c->driver.error_text || c->driver.error_text(result, &text) != 0 || !text)
		text = "no text";
	return rt_fail(s, "CUDA can't %s: %s (%d): %s", what, error_name(c, result), result, text);
}

/* --- the library --- */

static texo_status
load_library(CudaDriver *d)
{
	static const char file[] = "libcuda.so.1";
	static const struct {
		size_t at;
		const char *symbol;
		bool maybe;
	} call[] = {
#define CUDA_CALL(id, symbol, parameters) {offsetof(CudaDriver, id), symbol, false},
#define CUDA_CALL_MAYBE(id, symbol, parameters) {offsetof(CudaDriver, id), symbol, true},
#include "runtime/cuda_driver.def"
	};
	d->library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!d->library) {
		const char *why = dlerror();
		return rt_fail(TEXO_NO_DEVICE, "there is no NVIDIA driver: %s", why ? why : file);
	}
	for (unsigned n = 0; n < sizeof call / sizeof *call; n++) {
		void *f = dlsym(d->library, call[n].symbol);
		if (!f && !call[n].maybe)
			return rt_fail(TEXO_NO_DEVICE, "the NVIDIA driver is too old: %s has no %s", file, call[n].symbol);
		memcpy((char *)d + call[n].at, &f, sizeof f); /* ISO C has no cast from object to function */
	}
	return TEXO_OK;
}

static texo_status
find_device(Cuda *c, int ordinal)
{
	int count = 0, major = 0, minor = 0;
	texo_status s = cuda_result(c, c->driver.init(0), "start");
	if (!s)
		s = cuda_result(c, c->driver.device_count(&count), "count devices");
	if (!s && count <= ordinal)
		return count > 0 ? rt_fail(TEXO_NO_DEVICE, "there is no device cuda:%d; there are %d", ordinal, count)
		                 : rt_fail(TEXO_NO_DEVICE, "the NVIDIA driver has no device");
	if (!s)
		s = cuda_result(c, c->driver.device_get(&c->device, ordinal), "find the device");
	if (!s)
		s = cuda_result(c, c->driver.device_name(c->name, sizeof c->name - 1, c->device), "tell the device's name");
	if (!s)
		s = cuda_result(c, c->driver.device_attribute(&major, ATTRIBUTE_MAJOR, c->device), "tell the device's kind");
	if (!s)
		s = cuda_result(c, c->driver.device_attribute(&minor, ATTRIBUTE_MINOR, c->device), "tell the device's kind");
	if (!s)
		s = cuda_result(c, c->driver.device_attribute(&c->processors, ATTRIBUTE_PROCESSORS, c->device),
		                "count the device's processors");
	c->sm = major * 10 + minor;
	c->ordinal = ordinal;
	c->row = cuda_row(c->name, c->sm);
	cuda_row_facts(c->row, c->processors, c->fact);
	return s;
}

/* The version that a driver tells is CUDA's, which many drivers have; its library is another file in each, mostly of
 * another name. */
static texo_status
name_assembler(Cuda *c)
{
	int version = 0;
	Dl_info where;
	struct stat st;
	void *f;
	texo_status s = cuda_result(c, c->driver.version(&version), "tell its version");
	memcpy(&f, &c->driver.init, sizeof f);
	if (s || !dladdr(f, &where) || !where.dli_fname)
		return s;
	char *path = realpath(where.dli_fname, NULL);
	if (path && stat(path, &st) == 0)
		snprintf(c->assembler, sizeof c->assembler, "CUDA %d, %.64s, %lld bytes, %lld.%09ld, for %d.%d", version, strrchr(path, '/') + 1,
		         (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, c->sm / 10, c->sm % 10);
	free(path);
	return s;
}

static texo_status
hold_context(Cuda *c)
{
	texo_status s = cuda_result(c, c->driver.context_retain(&c->context, c->device), "hold the device's context");
	return s || c->context ? s : rt_fail(TEXO_INTERNAL, "CUDA gives no context");
}

/* The host's context, if it is one of the device. */
static texo_status
borrow_context(Cuda *c, void *context)
{
	int device = -1;
	c->context = context;
	c->borrowed = true;
	texo_status s = cuda_enter(c);
	if (s)
		return s;
	s = cuda_leave(c, cuda_result(c, c->driver.context_device(&device), "tell the context's device"));
	if (!s && device != c->device)
		s = rt_fail(TEXO_INVALID, "options: context is not one of the device cuda:%d", c->ordinal);
	return s;
}

texo_status
cuda_open(Cuda *c, int ordinal, void *context)
{
	texo_status s = load_library(&c->driver);
	if (!s)
		s = find_device(c, ordinal);
	if (!s)
		s = name_assembler(c);
	if (!s)
		s = context ? borrow_context(c, context) : hold_context(c);
	if (s)
		cuda_close(c);
	return s;
}

void
cuda_close(Cuda *c)
{
	void *left, **own[] = {&c->rows_module, &c->boxes_module};
	for (unsigned n = 0; n < sizeof own / sizeof *own; n++) {
		if (!*own[n])
			continue;
		bool entered = c->driver.context_push(c->context) == 0;
		c->driver.module_unload(*own[n]);
		if (entered)
			c->driver.context_pop(&left);
		*own[n] = NULL;
	}
	if (c->context && !c->borrowed)
		c->driver.context_release(c->device);
	if (c->driver.library)
		dlclose(c->driver.library);
	c->context = c->driver.library = NULL;
}

/* Devices are handles, which tell no number. */
static texo_status
number_of(Cuda *c, int device, int *ordinal)
{
	int count = 0, found = -1;
	texo_status s = cuda_result(c, c->driver.device_count(&count), "count devices");
	for (*ordinal = 0; !s && *ordinal < count; ++*ordinal) {
		s = cuda_result(c, c->driver.device_get(&found, *ordinal), "find the device");
		if (!s && found == device)
			return TEXO_OK;
	}
	return s ? s : rt_fail(TEXO_NO_DEVICE, "CUDA has no device for the thread's context");
}

texo_status
cuda_current(const CudaDriver *found, void **context)
{
	Cuda c = {.driver = found ? *found : (CudaDriver){0}};
	*context = NULL;
	texo_status s = found ? TEXO_OK : load_library(&c.driver);
	if (!s && !found)
		s = cuda_result(&c, c.driver.init(0), "start");
	if (!s)
		s = cuda_result(&c, c.driver.context_current(context), "tell the thread's context");
	if (!found)
		cuda_close(&c);
	return s;
}

texo_status
cuda_current_device(int *ordinal)
{
	Cuda c = {0};
	int device = -1;
	texo_status s = load_library(&c.driver);
	if (!s)
		s = cuda_result(&c, c.driver.context_device(&device), "tell the context's device");
	if (!s)
		s = number_of(&c, device, ordinal);
	cuda_close(&c);
	return s;
}

/* --- modules --- */

enum { ERROR_LOG = 5, ERROR_LOG_BYTES = 6, PTX = 1, LOG_BYTES = 300 };

/* What the driver's assembler says is part of what went wrong. */
static texo_status
say_log(texo_status s, char log[LOG_BYTES])
{
	char said[200];
	log[LOG_BYTES - 1] = 0;
	if (!log[0])
		return s;
	memcpy(said, texo_last_error(), sizeof said - 1);
	said[sizeof said - 1] = 0;
	return rt_fail(s, "%s: %s", said, log);
}

texo_status
cuda_load_text(Cuda *c, const char *text, void **module)
{
	char log[LOG_BYTES] = "";
	int option[] = {ERROR_LOG, ERROR_LOG_BYTES};
	void *value[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
	int result = c->driver.module_load(module, text, 2, option, value);
	if (result == 0)
		return *module ? TEXO_OK : rt_fail(TEXO_INTERNAL, "CUDA gives no module");
	*module = NULL;
	return say_log(cuda_result(c, result, "load a kernel"), log);
}

texo_status
cuda_assemble(Cuda *c, const char *text, void **link, void **machine, size_t *bytes)
{
	const CudaDriver *d = &c->driver;
	void *data = (void *)(uintptr_t)text;
	*link = *machine = NULL;
	*bytes = 0;
	texo_status s = cuda_result(c, d->link_new(0, NULL, NULL, link), "begin to assemble a kernel");
	if (!s)
		s = *link ? cuda_result(c, d->link_add(*link, PTX, data, strlen(text) + 1, "kernel", 0, NULL, NULL), "assemble a kernel")
		          : rt_fail(TEXO_INTERNAL, "CUDA gives no link");
	if (!s)
		s = cuda_result(c, d->link_complete(*link, machine, bytes), "assemble a kernel");
	if (!s && (!*machine || !*bytes))
		s = rt_fail(TEXO_INTERNAL, "CUDA gives no machine code");
	if (s)
		cuda_forget_code(c, *link);
	return s;
}

void
cuda_forget_code(Cuda *c, void *link)
{
	if (link)
		c->driver.link_free(link);
}

texo_status
cuda_find_function(Cuda *c, void *module, const char *name, void **function)
{
	int threads = 0;
	texo_status s = cuda_result(c, c->driver.module_function(function, module, name), "find a function of the program");
	if (!s && !*function)
		s = rt_fail(TEXO_INTERNAL, "CUDA gives no function");
	if (!s) /* has it loaded now: a driver may put that off until a launch, where it isn't legal in a capture */
		s = cuda_result(c, c->driver.function_attribute(&threads, MAX_THREADS, *function), "load a function");
	*function = s ? NULL : *function;
	return s;
}

/* --- the context --- */

texo_status
cuda_enter(Cuda *c)
{
	int lost = atomic_load(&c->lost);
	if (lost)
		return rt_fail(TEXO_DEVICE_LOST, "an earlier failure, %s (%d), has ended the device's context", error_name(c, lost),
		               lost);
	return cuda_result(c, c->driver.context_push(c->context), "use the device's context");
}

texo_status
cuda_leave(Cuda *c, texo_status s)
{
	void *left = NULL;
	int result = c->driver.context_pop(&left);
	return s ? s : cuda_result(c, result, "leave the device's context");
}
