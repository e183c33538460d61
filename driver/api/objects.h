/* objects.h: libtexo's own structures.
 *
 * A context is shared by its modules, by count. A module is a caller's handle on a Compiled, which is
 * shared by the modules that the memory cache gave it to, and by the cache, by count. A Request holds
 * what was asked for; its bytes are the cache's key. All memory comes from the context's allocator. */
#ifndef TEXO_DRIVER_API_OBJECTS_H
#define TEXO_DRIVER_API_OBJECTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "codegen/object_file.h"
#include "driver/cache/store.h"
#include "driver/stages.h"
#include "include/texo.h"
#include "runtime/private.h"

/* --- request.c --- */

typedef struct {
	uint64_t hash;    /* of the key */
	size_t key_bytes; /* what determines the result, in one form, behind this struct */
	const char *key;
	/* the parts, pointing into it */
	const char *target, *fuse, *name, *text; /* target NULL: the default */
	size_t n;         /* of text, which a NUL follows */
	const char *const *statics;
	uint32_t nstatics, flags;
	FpMode fp;
} Request;

/* Checks what the caller gave and copies it; target: where the caller names none. *out is released with the memory's release. */
texo_status request_new(const HostMemory *m, const texo_options *options, const char *target, const char *name,
                        const char *text, size_t n, Request **out);
static inline bool
request_equal(const Request *a, const Request *b)
{
	return a->hash == b->hash && a->key_bytes == b->key_bytes && memcmp(a->key, b->key, a->key_bytes) == 0;
}

/* --- compiled.c --- */

typedef struct Form Form;
struct Form {
	Form *next;
	const char *kind;
	const void *bytes;
	size_t n;
};

typedef struct Compiled Compiled;
typedef struct LateCode LateCode;
struct Compiled {
	atomic_uint refs;
	texo_ctx *ctx;    /* borrowed: whoever refers to it keeps the context */
	Request *request; /* owned */
	Arena keep;       /* the diagnostics */
	const texo_diagnostic *diagnostic;
	uint32_t ndiagnostic;
	LateCode *late;        /* in keep: of program, for a GPU */
	texo_program *program; /* NULL: the program is in error, or has no graph, or: */
	texo_status unloaded;  /* why it can't run here, with the words of it */
	const char *why;
	bool failed;           /* in error */
	bool cacheable;        /* the request says it all: no file was read */
	size_t bytes;          /* for the cache's account */
	pthread_mutex_t lock;  /* of the two below */
	Arena forms;
	Form *form;
	Compiled *next, *newer, *older; /* the cache's */
};

/* Compiles the request, which it takes over unless it fails. TEXO_COMPILE_ERROR gives a Compiled too. */
texo_status compiled_new(texo_ctx *ctx, Request *r, Compiled **out);
void compiled_release(Compiled *c);

/* --- compilation.c --- */

typedef struct Compilation Compilation;
typedef texo_status CompilationFn(Compilation *);

/* One run of the stages, for a module or for a form of it. */
struct Compilation {
	texo_ctx *ctx;
	const Request *request;
	Arena arena;
	Unwind unwind;
	SourceUnit unit;
	const char *cpu;
	bool gpu;                /* cpu is one */
	const Program **program; /* by graph */
	CodegenResult code;
	void *user;              /* the body's */
};

/* Runs body with an arena of its own, C's locale and the default floating-point environment. An
 * unwinding ends it with a status; `owned` (may be NULL) unwinds to the same place. */
texo_status compilation_run(Compilation *c, CompilationFn *body, Arena *owned);
/* The steps, each once and in this order. */
texo_status compilation_source(Compilation *c);
texo_status compilation_check(Compilation *c);   /* TEXO_COMPILE_ERROR when the unit has failed */
texo_status compilation_lower(Compilation *c, bool late); /* late: for code that is made late alone */
texo_status compilation_code(Compilation *c, const CodegenOptions *o);

/* All of it for what is built ahead of time, at every level that the target has. */
texo_status compilation_object(Compilation *c, ObjectResult *out);

/* --- late.c --- */

/* How the code of kernels for a GPU is made that an artefact lacks. */
struct LateCode {
	texo_ctx *ctx;          /* its memory, limit, isolation, log and folder */
	const char *cpu;        /* the GPU */
	bool kept;              /* the folder is read and written */
	Assemble *assemble;     /* NULL: the GPU's driver assembles */
	void *user;             /* its */
	const char *assembler;  /* which it is, for the cache's key */
};

/* For texo_private_load. l must outlive the program. */
texo_private_maker late_maker(LateCode *l);
/* In a worker: WORKER_KERNEL. */
texo_status late_write(Compilation *x, bool serial, Text *out);

/* --- kept.c --- */

/* Whether code of such a request is kept in the context's folder. */
bool kept_is_used(const texo_ctx *ctx, uint32_t flags);

typedef struct {
	const char *key; /* NULL: this compilation neither takes nor keeps anything */
	size_t key_bytes;
} KeptCode;

/* The place of a compilation that was checked in the context's folder; its artefact from there; or to there. */
void kept_open(Compilation *x, KeptCode *out);
bool kept_get(Compilation *x, const KeptCode *k);
void kept_put(Compilation *x, const KeptCode *k);

/* --- form.c --- */

texo_status form_make(Compiled *c, const char *kind, const Form **out);
/* Runs the stages that the form needs, in this process, and appends it. */
texo_status form_write(Compilation *x, const char *kind, Text *out);

/* --- worker_ask.c --- */

/* The form of a compilation that was checked, from a worker; the bytes are in its arena. */
texo_status worker_ask(Compilation *x, const char *kind, const char **bytes, size_t *n);
/* codegen_serve's answer; the bytes are in a. Each of the job's kernels may take worker_seconds. */
texo_status worker_ask_job(texo_ctx *ctx, Arena *a, const char *name, const CodegenJob *job, const char **bytes, size_t *n);

/* --- memory_cache.c --- */

enum { CACHE_BUCKETS = 256 };
typedef struct {
	pthread_mutex_t lock;
	Compiled *bucket[CACHE_BUCKETS];
	Compiled *newest, *oldest; /* by last use */
	size_t bytes, limit;       /* limit 0: the cache is off */
} MemoryCache;

/* Both return with a reference for the caller. cache_add returns what the cache holds for the request:
 * c, or what another thread was faster with, and then c is released. */
Compiled *cache_find(MemoryCache *cache, const Request *r);
Compiled *cache_add(MemoryCache *cache, Compiled *c);
void cache_clear(MemoryCache *cache);

/* --- context.c --- */

struct texo_ctx {
	atomic_uint refs;
	Host host;
	texo_rt *rt;             /* of the processor */
	const char *device;      /* of kernels for CUDA; NULL: "cuda" */
	void *context;
	pthread_mutex_t gpu_lock;
	texo_rt *gpu;            /* behind the lock: NULL until it was found */
	void (*log)(void *log_user, texo_log_level level, const char *text);
	void *log_user;
	size_t compile_bytes;
	uint32_t isolation, worker_seconds, worker_mib;
	const char *worker; /* path of the command; owned, behind the struct, as device is */
	struct Worker *held; /* one for all requests, which one thread makes; NULL: each has its own */
	MemoryCache cache;
	CodegenMachines machines;
	Store store; /* path NULL: none; owned, behind the struct */
};

struct texo_module {
	texo_ctx *ctx;
	Compiled *compiled;
};

void ctx_hold(texo_ctx *ctx);
/* The runtime of kernels for CUDA, lent; TEXO_NO_DEVICE where there is none. */
texo_status ctx_gpu(texo_ctx *ctx, texo_rt **out);
static inline void *
ctx_alloc(const texo_ctx *ctx, size_t n)
{
	return ctx->host.memory.alloc(ctx->host.memory.user, n);
}
static inline void
ctx_release(const texo_ctx *ctx, void *p)
{
	if (p)
		ctx->host.memory.release(ctx->host.memory.user, p);
}
void ctx_log(const texo_ctx *ctx, texo_log_level level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
