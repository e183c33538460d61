/* module.c: compiling, and what a module tells. */
#include "driver/api/objects.h"
#include "driver/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { MAX_PATH_SHOWN = 200 };

static texo_status
compiled_get(texo_ctx *ctx, Request *r, Compiled **out)
{
	*out = cache_find(&ctx->cache, r);
	if (*out) {
		ctx_log(ctx, TEXO_LOG_DETAIL, "%s was in the memory cache", r->name);
		ctx_release(ctx, r);
		return TEXO_OK;
	}
	texo_status s = compiled_new(ctx, r, out);
	if (!*out)
		ctx_release(ctx, r);
	else
		*out = cache_add(&ctx->cache, *out);
	return s;
}

static texo_status
compile(texo_ctx *ctx, const char *src, size_t len, const char *name, const texo_options *options, texo_module **out)
{
	Request *r = NULL;
	Compiled *c = NULL;
	texo_status s = request_new(&ctx->host.memory, options, ctx->device ? "cuda" : "cpu", name, src, len, &r);
	if (s)
		return s;
	texo_module *m = ctx_alloc(ctx, sizeof *m);
	if (!m) {
		ctx_release(ctx, r);
		return texo_private_fail(TEXO_NO_MEMORY, "out of memory");
	}
	s = compiled_get(ctx, r, &c);
	if (!c) {
		ctx_release(ctx, m);
		return s;
	}
	*m = (texo_module){ctx, c};
	ctx_hold(ctx);
	*out = m;
	return s;
}

texo_status
texo_compile_string(texo_ctx *ctx, const char *src, size_t len, const char *name, const texo_options *options,
                    texo_module **out)
{
	if (!out)
		return texo_private_fail(TEXO_INVALID, "out is NULL");
	*out = NULL;
	if (!ctx)
		return texo_private_fail(TEXO_INVALID, "ctx is NULL");
	return compile(ctx, src, len, name ? name : "<string>", options, out);
}

/* --- files --- */

typedef struct {
	const char *path;
	const texo_options *options;
	texo_module **out;
} FileRequest;

static texo_status
unreadable(const FileRequest *f)
{
	return texo_private_fail(TEXO_IO, "path: cannot read %.*s: %s", MAX_PATH_SHOWN, f->path, strerror(errno));
}

/* The memory comes first, since running out of it leaves no chance to close the file. One byte more
 * than a program may have is read, so that the length of what is too long is seen. */
static texo_status
compile_read(Compilation *x)
{
	FileRequest *f = x->user;
	const HostFiles *files = &x->ctx->host.files;
	int64_t size;
	int regular;
	if (files->stat(files->user, f->path, &size, &regular) != 0)
		return unreadable(f);
	size_t cap = regular && size < MAX_SOURCE ? (size_t)size + 1 : (size_t)MAX_SOURCE + 1;
	char *text = arena_alloc(&x->arena, cap);
	int fd = files->open(files->user, f->path, O_RDONLY, 0);
	if (fd < 0)
		return unreadable(f);
	ptrdiff_t n = read_fully(files, fd, text, cap);
	int code = errno;
	files->close(files->user, fd);
	errno = code;
	if (n < 0)
		return unreadable(f);
	return compile(x->ctx, text, (size_t)n, f->path, f->options, f->out);
}

texo_status
texo_compile_file(texo_ctx *ctx, const char *path, const texo_options *options, texo_module **out)
{
	if (!out)
		return texo_private_fail(TEXO_INVALID, "out is NULL");
	*out = NULL;
	if (!ctx || !path)
		return texo_private_fail(TEXO_INVALID, "%s is NULL", ctx ? "path" : "ctx");
	FileRequest f = {path, options, out};
	Compilation x = {.ctx = ctx, .user = &f};
	return compilation_run(&x, compile_read, NULL);
}

/* --- what a module tells --- */

void
texo_module_destroy(texo_module *module)
{
	if (!module)
		return;
	texo_ctx *ctx = module->ctx;
	compiled_release(module->compiled);
	ctx_release(ctx, module);
	texo_ctx_destroy(ctx);
}

size_t
texo_module_diagnostic_count(const texo_module *module)
{
	return module ? module->compiled->ndiagnostic : 0;
}

texo_status
texo_module_get_diagnostic(const texo_module *module, size_t i, texo_diagnostic *out)
{
	texo_diagnostic given;
	if (!module || !out)
		return texo_private_fail(TEXO_INVALID, "%s is NULL", module ? "out" : "module");
	texo_status s = texo_private_take_struct("out", out, sizeof *out, sizeof given, &given);
	if (s)
		return s;
	const Compiled *c = module->compiled;
	if (i >= c->ndiagnostic)
		return texo_private_fail(TEXO_INVALID, "i is %zu, and there are %u diagnostics", i, c->ndiagnostic);
	uint32_t size = out->struct_size;
	*out = c->diagnostic[i];
	out->struct_size = size;
	return TEXO_OK;
}

texo_status
texo_module_emit(const texo_module *module, const char *kind, const void **bytes, size_t *n)
{
	const Form *form = NULL;
	if (bytes)
		*bytes = NULL;
	if (n)
		*n = 0;
	if (!module || !kind || !bytes || !n)
		return texo_private_fail(TEXO_INVALID, "%s is NULL", !module ? "module" : !kind ? "kind" : !bytes ? "bytes" : "n");
	texo_status s = form_make(module->compiled, kind, &form);
	if (s)
		return s;
	*bytes = form->bytes;
	*n = form->n;
	return TEXO_OK;
}

texo_status
texo_module_get_kernel(const texo_module *module, const char *graph, texo_kernel **out)
{
	if (out)
		*out = NULL;
	if (!module || !out)
		return texo_private_fail(TEXO_INVALID, "%s is NULL", module ? "out" : "module");
	const Compiled *c = module->compiled;
	if (c->failed)
		return texo_private_fail(TEXO_COMPILE_ERROR, "%s has errors, and no kernels", c->request->name);
	if (c->unloaded)
		return texo_private_fail(c->unloaded, "%s", c->why);
	if (!c->program)
		return texo_private_fail(TEXO_NOT_FOUND, "%s has no graph", c->request->name);
	return texo_program_get_kernel(c->program, graph, out);
}
