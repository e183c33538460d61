/* key.c: see key.h. The standard library's text is part of the build. */
#include "driver/cache/key.h"

#include <string.h>

#include "frontend/frontend.h"
#include "ir/bugs.h"

static void
put(Text *out, const char *name, const char *value, size_t n)
{
	text_printf(out, "%s %zu\n", name, n);
	text_add(out, value, n);
	text_add(out, "\n", 1);
}

static void
put_text(Text *out, const char *name, const char *value)
{
	put(out, name, value, strlen(value));
}

static const char *
fp_text(FpMode fp)
{
	switch (fp) {
	case FP_STRICT: return "strict";
	case FP_RELAXED: return "relaxed";
	case FP_FAST: return "fast";
	}
	return "";
}

static const char *
fuse_text(FuseMode fuse)
{
	switch (fuse) {
	case FUSE_ALL: return "all";
	case FUSE_ELEMENTWISE: return "elementwise";
	case FUSE_OFF: return "off";
	}
	return "";
}

static void
put_maker(Text *out, const char *target)
{
	put_text(out, "build", build_id);
	if (*bug_chosen())
		put_text(out, "bug", bug_chosen());
	put_text(out, "target", target);
}

void
kernel_key_write(const KernelKey *k, Text *out)
{
	put_maker(out, k->target);
	if (*k->assembler)
		put_text(out, "assembler", k->assembler);
	put_text(out, "kernel", k->kernel->symbol);
	put_text(out, "serial", k->kernel->serial ? "yes" : "no");
	if (!BUG(kernel_key_is_name))
		put(out, "tir", k->kernel->tir, k->kernel->n);
}

void
key_write(const CacheKey *k, Text *out)
{
	put_maker(out, k->target);
	if (!BUG(key_lacks_options)) {
		put_text(out, "fp", fp_text(k->fp));
		put_text(out, "fuse", fuse_text(k->fuse));
		for (uint32_t i = 0; i < k->nstatics; i++)
			put_text(out, "static", k->statics[i]);
		if (k->tuned && *k->tuned)
			put_text(out, "tuned", k->tuned);
	}
	put_text(out, "graph", k->graph);
	for (uint32_t i = 0; i < k->files->files.n; i++) {
		const SourceFile *f = &k->files->files.at[i];
		if (f->text != std_text)
			put(out, "file", f->text, f->n);
	}
}

void
key_open(KeyReader *r, const void *key, size_t n)
{
	*r = (KeyReader){.at = key, .left = n};
}

/* The length's digits, up to the newline; false for anything else. */
static bool
read_length(KeyReader *r)
{
	size_t v = 0, digits = 0;
	while (r->left && *r->at >= '0' && *r->at <= '9' && digits++ < 9) {
		v = v * 10 + (size_t)(*r->at - '0');
		r->at++;
		r->left--;
	}
	if (!digits || !r->left || *r->at != '\n' || v >= r->left - 1)
		return false;
	r->value = r->at + 1;
	r->value_bytes = v;
	r->at += v + 1;
	r->left -= v + 1;
	return *r->at == '\n';
}

bool
key_next(KeyReader *r)
{
	const char *space = memchr(r->at, ' ', r->left);
	if (!space)
		return false;
	r->name = r->at;
	r->name_bytes = (size_t)(space - r->at);
	r->left -= r->name_bytes + 1;
	r->at = space + 1;
	if (!read_length(r))
		return false;
	r->at++;
	r->left--;
	return true;
}
