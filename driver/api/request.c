/* request.c: what a caller asks for, checked, copied, and written down in one form: each part with its
 * length in front, the build first, so that two requests are the same exactly when their bytes are. */
#include "driver/api/objects.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_STATICS = 1024, MAX_NAME = 4096, MAX_WORD = 256 };
static const uint32_t known_flags = TEXO_NO_CACHE | TEXO_WERROR | TEXO_NO_FILES | TEXO_VERIFY | TEXO_REMARKS;
static const char build[] = "texo " TEXO_VERSION;

/* --- checks --- */

static texo_status
wrong(const char *what, const char *value, const char *expected)
{
	return texo_private_fail(TEXO_INVALID, "%s is '%.*s'; it can be %s", what, MAX_WORD, value, expected);
}

/* NAME=N with N at least 0. */
static bool
is_static(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	size_t digits = s[n] == '=' ? strspn(s + n + 1, "0123456789") : 0;
	return n > 0 && n <= MAX_WORD && digits > 0 && digits <= 18 && !s[n + 1 + digits];
}

static texo_status
check_statics(const texo_options *o)
{
	if (o->nstatics > MAX_STATICS)
		return texo_private_fail(TEXO_INVALID, "options: nstatics is %zu, more than %d", o->nstatics, MAX_STATICS);
	if (o->nstatics && !o->statics)
		return texo_private_fail(TEXO_INVALID, "options: statics is NULL, and nstatics is %zu", o->nstatics);
	for (size_t k = 0; k < o->nstatics; k++) {
		const char *s = o->statics[k];
		if (!s)
			return texo_private_fail(TEXO_INVALID, "options: statics[%zu] is NULL", k);
		if (!is_static(s))
			return texo_private_fail(TEXO_INVALID, "options: statics[%zu] is '%.*s'; DIM=N is expected", k, MAX_WORD, s);
		for (size_t j = 0; j < k; j++)
			if (statics_differ(o->statics[j], s))
				return texo_private_fail(TEXO_INVALID, "options: statics[%zu] is '%s', and statics[%zu] is '%s'", j, o->statics[j], k, s);
	}
	return TEXO_OK;
}

static texo_status
check_options(const texo_options *o, FpMode *fp)
{
	FuseMode fuse;
	if (!fp_named(o->fp, fp))
		return wrong("options: fp", o->fp, "strict, relaxed or fast");
	if (!fuse_named(o->fuse, &fuse))
		return wrong("options: fuse", o->fuse, "all, elementwise or off");
	if (o->target && strlen(o->target) > MAX_WORD)
		return wrong("options: target", o->target, "cpu, cpu:NAME, cuda or cuda:NAME");
	if (o->flags & ~known_flags)
		return texo_private_fail(TEXO_INVALID, "options: flags has unknown bits: 0x%x", o->flags & ~known_flags);
	return check_statics(o);
}

static texo_status
check_text(const char *name, const char *text, size_t n)
{
	if (!text && n)
		return texo_private_fail(TEXO_INVALID, "src is NULL, and len is %zu", n);
	if (n > MAX_SOURCE)
		return texo_private_fail(TEXO_LIMIT, "len is %zu; a program has at most %d bytes", n, MAX_SOURCE);
	if (strlen(name) > MAX_NAME)
		return texo_private_fail(TEXO_INVALID, "name is longer than %d bytes", MAX_NAME);
	return TEXO_OK;
}

/* --- the key --- */

/* Counts when `at` is NULL, writes otherwise. */
typedef struct {
	char *at;
	size_t n;
} KeyWriter;

static void
put_bytes(KeyWriter *w, const void *p, size_t n)
{
	if (w->at && n)
		memcpy(w->at + w->n, p, n);
	w->n += n;
}

/* The bytes with their length before them and a NUL after; where they are. */
static const char *
put_part(KeyWriter *w, const char *s, size_t n)
{
	uint64_t length = n;
	put_bytes(w, &length, sizeof length);
	const char *at = w->at ? w->at + w->n : NULL;
	put_bytes(w, s, n);
	put_bytes(w, "", 1);
	return at;
}

static void
put_request(KeyWriter *w, const texo_options *o, const char *name, const char *text, Request *r,
            const char **statics)
{
	uint32_t word[3] = {(uint32_t)r->fp, o->flags, (uint32_t)o->nstatics};
	const char *target = o->target, *fuse = o->fuse ? o->fuse : "all";
	put_part(w, build, sizeof build - 1);
	put_bytes(w, word, sizeof word);
	r->target = put_part(w, target, strlen(target));
	r->fuse = put_part(w, fuse, strlen(fuse));
	for (size_t k = 0; k < o->nstatics; k++) {
		const char *at = put_part(w, o->statics[k], strlen(o->statics[k]));
		if (statics)
			statics[k] = at;
	}
	r->name = put_part(w, name, strlen(name));
	r->text = put_part(w, text, r->n);
}

/* Eight bytes a step; the cache compares whole keys, so that it need only spread. */
static uint64_t
hash_of(const char *p, size_t n)
{
	uint64_t h = UINT64_C(0x9e3779b97f4a7c15) ^ n, word;
	for (; n >= sizeof word; p += sizeof word, n -= sizeof word) {
		memcpy(&word, p, sizeof word);
		h = (h ^ word) * UINT64_C(0xff51afd7ed558ccd);
		h ^= h >> 32;
	}
	word = 0;
	memcpy(&word, p, n);
	h = (h ^ word) * UINT64_C(0xc4ceb9fe1a85ec53);
	return h ^ h >> 29;
}

texo_status
request_new(const HostMemory *m, const texo_options *options, const char *target, const char *name,
            const char *text, size_t n, Request **out)
{
	texo_options o = {.struct_size = sizeof o};
	Request r = {.n = n};
	texo_status s = TEXO_OK;
	if (options)
		s = texo_private_take_struct("options", options, sizeof o, sizeof o, &o);
	o.target = o.target ? o.target : target;
	if (!s)
		s = check_options(&o, &r.fp);
	if (!s)
		s = check_text(name, text, n);
	if (s)
		return s;
	KeyWriter w = {NULL, 0};
	put_request(&w, &o, name, text, &r, NULL);
	size_t table = o.nstatics * sizeof(const char *);
	Request *made = m->alloc(m->user, sizeof *made + table + w.n);
	if (!made)
		return texo_private_fail(TEXO_NO_MEMORY, "out of memory");
	const char **statics = (const char **)(made + 1);
	char *key = (char *)(made + 1) + table;
	r.key = key;
	r.key_bytes = w.n;
	r.statics = statics;
	r.nstatics = (uint32_t)o.nstatics;
	r.flags = o.flags;
	w = (KeyWriter){key, 0};
	put_request(&w, &o, name, text, &r, statics);
	r.hash = hash_of(r.key, r.key_bytes);
	*made = r;
	*out = made;
	return TEXO_OK;
}
