/* context.c: what compilations share. Counted: the caller's hold, and one for each module. */
#include "driver/api/objects.h"
#include "driver/api/worker.h"
#include "driver/cache/figures.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PATH = 4096, MAX_SECONDS = 3600 };
#define DEFAULT_CACHE ((size_t)64 << 20)
#define DEFAULT_COMPILE ((size_t)2048 << 20)

uint32_t
texo_api_version(void)
{
	return TEXO_API_VERSION;
}

const char *
texo_version(void)
{
	return TEXO_VERSION;
}

static texo_status
check_options(const texo_ctx_options *o)
{
	if (!o->alloc != !o->resize || !o->alloc != !o->release)
		return texo_private_fail(TEXO_INVALID, "options: alloc, resize and release must be given together");
	if (o->isolation != TEXO_IN_PROCESS && o->isolation != TEXO_WORKER)
		return texo_private_fail(TEXO_INVALID, "options: isolation is %u, which is no way to isolate", o->isolation);
	if (o->reserved)
		return texo_private_fail(TEXO_INVALID, "options: reserved is not 0");
	if (o->worker && strlen(o->worker) >= MAX_PATH)
		return texo_private_fail(TEXO_INVALID, "options: worker is longer than %d bytes", MAX_PATH);
	if (o->device && strncmp(o->device, "cuda", 4) != 0 && strcmp(o->device, "cpu") != 0)
		return texo_private_fail(TEXO_INVALID, "options: there is no device '%.200s'; there are cpu, cuda and cuda:N", o->device);
	if (o->device && strlen(o->device) >= MAX_PATH)
		return texo_private_fail(TEXO_INVALID, "options: device is longer than %d bytes", MAX_PATH);
	if (o->context && !(o->device && strncmp(o->device, "cuda", 4) == 0))
		return texo_private_fail(TEXO_INVALID, "options: context is given, and device is not cuda");
	if (o->cache && (!*o->cache || strlen(o->cache) >= MAX_PATH))
		return texo_private_fail(TEXO_INVALID, "options: cache is %s", *o->cache ? "longer than a path can be" : "empty");
	if (o->worker_seconds >= MAX_SECONDS)
		return texo_private_fail(TEXO_INVALID, "options: worker_seconds is %u; it is less than %d", o->worker_seconds, MAX_SECONDS);
	return TEXO_OK;
}

static void
fill(texo_ctx *ctx, const texo_ctx_options *o)
{
	ctx->host = *host_default();
	if (o->alloc)
		ctx->host.memory = (HostMemory){o->alloc, o->resize, o->release, o->user};
	ctx->log = o->log;
	ctx->log_user = o->log_user;
	ctx->compile_bytes = o->compile_bytes ? o->compile_bytes : DEFAULT_COMPILE;
	ctx->isolation = o->isolation;
	ctx->worker_seconds = o->worker_seconds ? o->worker_seconds : WORKER_SECONDS;
	ctx->worker_mib = WORKER_MIB;
	ctx->cache.limit = o->cache_bytes == TEXO_CACHE_OFF ? 0 : o->cache_bytes ? o->cache_bytes : DEFAULT_CACHE;
	atomic_init(&ctx->refs, 1);
}

static texo_rt_options
runtime_options(const texo_ctx *ctx, const char *device)
{
	const HostMemory *m = &ctx->host.memory;
	texo_rt_options o = {.struct_size = sizeof o, .device = device, .alloc = m->alloc, .resize = m->resize,
	                     .release = m->release, .user = m->user};
	return o;
}

/* What texo calibrate measured of the device, where there is a cache that has it. */
static void
take_figures(texo_ctx *ctx)
{
	Arena a;
	Unwind u;
	const char *why;
	arena_init(&a, &ctx->host.memory, &u);
	if (ctx->store.path && setjmp(u.env) == 0)
		figures_take(&ctx->store, &a, ctx->gpu, &why);
	arena_free(&a);
}

texo_status
ctx_gpu(texo_ctx *ctx, texo_rt **out)
{
	texo_rt_options o = runtime_options(ctx, ctx->device ? ctx->device : "cuda");
	texo_status s = TEXO_OK;
	o.context = ctx->context;
	pthread_mutex_lock(&ctx->gpu_lock);
	if (!ctx->gpu) {
		s = texo_rt_create(&o, &ctx->gpu);
		if (!s)
			take_figures(ctx);
	}
	*out = ctx->gpu;
	pthread_mutex_unlock(&ctx->gpu_lock);
	return s;
}

/* The context without its runtimes, with the texts behind it. */
static texo_ctx *
allocate(const texo_ctx_options *o)
{
	texo_ctx made;
	char worker[MAX_PATH];
	memset(&made, 0, sizeof made);
	fill(&made, o);
	if (o->worker)
		memcpy(worker, o->worker, strlen(o->worker) + 1);
	else
		worker_default_path(worker, sizeof worker);
	bool gpu = o->device && strcmp(o->device, "cpu") != 0;
	size_t n = strlen(worker) + 1, device = gpu ? strlen(o->device) + 1 : 0, path = o->cache ? strlen(o->cache) + 1 : 0;
	texo_ctx *ctx = ctx_alloc(&made, sizeof *ctx + n + device + path);
	if (!ctx)
		return NULL;
	memcpy(ctx, &made, sizeof made);
	ctx->worker = memcpy(ctx + 1, worker, n);
	if (gpu)
		ctx->device = memcpy((char *)(ctx + 1) + n, o->device, device);
	ctx->context = o->context;
	ctx->store = (Store){.host = &ctx->host, .limit = o->cache_limit ? o->cache_limit : STORE_LIMIT};
	if (path)
		ctx->store.path = memcpy((char *)(ctx + 1) + n + device, o->cache, path);
	pthread_mutex_init(&ctx->cache.lock, NULL); /* can't fail with default attributes on Linux */
	pthread_mutex_init(&ctx->gpu_lock, NULL);
	codegen_machines_init(&ctx->machines);
	return ctx;
}

static texo_status
make(const texo_ctx_options *o, texo_ctx **out)
{
	texo_rt *gpu;
	texo_ctx *ctx = allocate(o);
	if (!ctx)
		return texo_private_fail(TEXO_NO_MEMORY, "out of memory");
	texo_rt_options ro = runtime_options(ctx, "cpu");
	ro.threads = o->threads;
	ro.parallel_for = o->parallel_for;
	ro.parallel_user = o->parallel_user;
	texo_status s = texo_rt_create(&ro, &ctx->rt);
	if (!s && ctx->device)
		s = ctx_gpu(ctx, &gpu);
	if (s)
		texo_ctx_destroy(ctx);
	else
		*out = ctx;
	return s;
}

texo_status
texo_ctx_create(const texo_ctx_options *options, texo_ctx **out)
{
	texo_ctx_options o = {.struct_size = sizeof o};
	if (!out)
		return texo_private_fail(TEXO_INVALID, "out is NULL");
	*out = NULL;
	texo_status s = TEXO_OK;
	if (options)
		s = texo_private_take_struct("options", options, offsetof(texo_ctx_options, parallel_for), sizeof o, &o);
	if (!s)
		s = check_options(&o);
	return s ? s : make(&o, out);
}

void
ctx_hold(texo_ctx *ctx)
{
	atomic_fetch_add(&ctx->refs, 1);
}

void
texo_ctx_destroy(texo_ctx *ctx)
{
	if (!ctx || atomic_fetch_sub(&ctx->refs, 1) != 1)
		return;
	cache_clear(&ctx->cache);
	pthread_mutex_destroy(&ctx->cache.lock);
	pthread_mutex_destroy(&ctx->gpu_lock);
	codegen_machines_free(&ctx->machines);
	texo_rt_destroy(ctx->gpu);
	texo_rt_destroy(ctx->rt);
	ctx_release(ctx, ctx);
}

void
ctx_log(const texo_ctx *ctx, texo_log_level level, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	if (!ctx->log)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	ctx->log(ctx->log_user, level, text);
}
