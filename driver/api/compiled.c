/* compiled.c: from a request to a program that can be launched, with its diagnostics. What outlives the
 * compilation is copied out of its arena; the runtime's program is made last, when nothing can unwind
 * any more. */
#include "driver/api/objects.h"
#include "driver/api/worker.h"

#include <string.h>

static const char *
keep_text(Compiled *c, const char *s)
{
	return s ? arena_copy(&c->keep, s, strlen(s)) : "";
}

/* One diagnostic as a list of its own, as a terminal would show it. */
static const char *
render(Compilation *x, const Diag *g)
{
	Diags one = x->unit.diags;
	one.list.at = ARENA_NEW(&x->arena, Diag);
	one.list.at[0] = *g;
	one.list.n = one.list.cap = 1;
	one.nerror = 0; /* no remark about how many there are */
	return diags_render(&one, &x->arena, false);
}

static uint32_t
severity_of(Severity s)
{
	switch (s) {
	case SEV_ERROR: return TEXO_SEVERITY_ERROR;
	case SEV_WARNING: return TEXO_SEVERITY_WARNING;
	case SEV_REMARK: return TEXO_SEVERITY_REMARK;
	}
	return TEXO_SEVERITY_ERROR;
}

static void
keep_diagnostics(Compilation *x, Compiled *c)
{
	const Diags *d = &x->unit.diags;
	texo_diagnostic *to = ARENA_ARRAY(&c->keep, texo_diagnostic, d->list.n + 1);
	for (uint32_t k = 0; k < d->list.n; k++) {
		const Diag *g = &d->list.at[k];
		to[k] = (texo_diagnostic){
			.struct_size = sizeof *to,
			.severity = severity_of(code_info[g->code].severity),
			.code = code_info[g->code].id, /* static */
			.file = keep_text(c, g->at.file ? d->files.at[g->at.file - 1].path : NULL),
			.line = g->at.line,
			.column = g->at.col,
			.end_line = g->at.end_line,
			.end_column = g->at.end_col,
			.message = keep_text(c, g->message),
			.help = keep_text(c, g->help),
			.rendered = keep_text(c, render(x, g)),
		};
	}
	c->diagnostic = to;
	c->ndiagnostic = d->list.n;
}

/* Whether the text and the standard library are all that was read. */
static bool
is_alone(const Diags *d)
{
	for (uint32_t k = 1; k < d->files.n; k++)
		if (d->files.at[k].text != std_text)
			return false;
	return true;
}

static texo_status
load(Compilation *x, Compiled *c)
{
	const CodegenResult *code = &x->code;
	texo_rt *rt = x->ctx->rt;
	texo_private_maker maker = {0};
	if (x->gpu) {
		c->late = ARENA_NEW(&c->keep, LateCode);
		*c->late = (LateCode){.ctx = x->ctx, .cpu = keep_text(c, x->cpu), .kept = kept_is_used(x->ctx, x->request->flags)};
		maker = late_maker(c->late);
	}
	texo_status s = x->gpu ? ctx_gpu(x->ctx, &rt) : TEXO_OK;
	if (!s)
		s = texo_private_load(rt, code->image, code->image_size, &maker, &c->program);
	c->bytes += 2 * code->image_size; /* the runtime's copy, and about as much mapped and in frames */
	if (x->gpu && (s == TEXO_NO_DEVICE || s == TEXO_BAD_ARTEFACT)) { /* it can still be written down */
		c->unloaded = s;
		c->why = keep_text(c, texo_last_error());
		c->cacheable = false;
		return TEXO_OK;
	}
	if (s == TEXO_BAD_ARTEFACT && strcmp(x->cpu, "host") == 0)
		return texo_private_fail(TEXO_INTERNAL, "this is a bug of texo, please report it: its artefact can't be loaded");
	return s;
}

static texo_status
generate(Compilation *x)
{
	CodegenOptions co = {.cpu = x->cpu, .opt_level = 2, .late = true};
	if (x->ctx->isolation == TEXO_WORKER) {
		const char *image;
		texo_status s = worker_ask(x, x->gpu ? WORKER_TABLES : "image", &image, &x->code.image_size);
		x->code.image = image;
		return s;
	}
	texo_status s = compilation_lower(x, true);
	return s ? s : compilation_code(x, &co);
}

static texo_status
compile(Compilation *x)
{
	Compiled *c = x->user;
	KeptCode kept;
	texo_status s = compilation_source(x);
	if (s)
		return s;
	s = compilation_check(x);
	keep_diagnostics(x, c);
	c->failed = s == TEXO_COMPILE_ERROR;
	c->cacheable = !s && is_alone(&x->unit.diags);
	if (s || x->unit.unit->graph.n == 0)
		return s;
	kept_open(x, &kept);
	s = kept_get(x, &kept) ? load(x, c) : TEXO_BAD_ARTEFACT;
	if (s != TEXO_BAD_ARTEFACT)
		return s;
	s = generate(x);
	if (s)
		return s;
	kept_put(x, &kept);
	return load(x, c);
}

static void
log_end(texo_ctx *ctx, const Compiled *c, int64_t since)
{
	const HostClock *clock = &ctx->host.clock;
	for (uint32_t k = 0; k < c->ndiagnostic; k++)
		if (c->diagnostic[k].severity == TEXO_SEVERITY_WARNING)
			ctx_log(ctx, TEXO_LOG_WARNING, "%s:%u:%u: %s", c->diagnostic[k].file, c->diagnostic[k].line,
			        c->diagnostic[k].column, c->diagnostic[k].message);
	ctx_log(ctx, TEXO_LOG_DETAIL, "compiled %s in %.3f ms", c->request->name,
	        (double)(clock->now_ns(clock->user) - since) / 1e6);
}

static Compiled *
allocate(texo_ctx *ctx, Request *r)
{
	Compiled *c = ctx_alloc(ctx, sizeof *c);
	if (!c)
		return NULL;
	memset(c, 0, sizeof *c);
	atomic_init(&c->refs, 1);
	c->ctx = ctx;
	c->request = r;
	c->bytes = sizeof *c + sizeof *r + r->key_bytes;
	arena_init(&c->keep, &ctx->host.memory, NULL);
	arena_init(&c->forms, &ctx->host.memory, NULL);
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

texo_status
compiled_new(texo_ctx *ctx, Request *r, Compiled **out)
{
	Compiled *c = allocate(ctx, r);
	if (!c)
		return texo_private_fail(TEXO_NO_MEMORY, "out of memory");
	Compilation x = {.ctx = ctx, .request = r, .user = c};
	int64_t since = ctx->host.clock.now_ns(ctx->host.clock.user);
	texo_status s = compilation_run(&x, compile, &c->keep);
	if (s && s != TEXO_COMPILE_ERROR) {
		c->request = NULL; /* stays the caller's */
		compiled_release(c);
		return s;
	}
	c->bytes += c->keep.used;
	log_end(ctx, c, since);
	*out = c;
	return s;
}

void
compiled_release(Compiled *c)
{
	if (atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	texo_ctx *ctx = c->ctx;
	texo_program_destroy(c->program);
	arena_free(&c->keep);
	arena_free(&c->forms);
	pthread_mutex_destroy(&c->lock);
	ctx_release(ctx, c->request);
	ctx_release(ctx, c);
}
