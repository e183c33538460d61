/* kept.c: compiled code that outlives the process: a context's folder, by key. A program that uses files may
 * be kept too, since their texts are in the key. */
#include "driver/api/objects.h"
#include "driver/cache/key.h"

#include <string.h>

static const uint32_t asks_for_work = TEXO_NO_CACHE | TEXO_VERIFY | TEXO_REMARKS;

bool
kept_is_used(const texo_ctx *ctx, uint32_t flags)
{
	return ctx->store.path && !(flags & asks_for_work);
}

void
kept_open(Compilation *x, KeptCode *out)
{
	const Request *r = x->request;
	Text key;
	*out = (KeptCode){0};
	if (!kept_is_used(x->ctx, r->flags))
		return;
	CacheKey k = {.target = codegen_target_text(&x->arena, x->cpu), .graph = "", .fp = r->fp,
	              .statics = r->statics, .nstatics = r->nstatics, .files = &x->unit.diags};
	if (!k.target)
		return;
	fuse_named(r->fuse, &k.fuse);
	text_init(&key, &x->arena);
	key_write(&k, &key);
	*out = (KeptCode){key.at, key.n};
}

bool
kept_get(Compilation *x, const KeptCode *k)
{
	const char *why = NULL;
	if (!k->key)
		return false;
	x->code.image = store_get(&x->ctx->store, &x->arena, k->key, k->key_bytes, ENTRY_IMAGE, &x->code.image_size, &why);
	if (why)
		ctx_log(x->ctx, TEXO_LOG_WARNING, "%s", why);
	if (x->code.image)
		ctx_log(x->ctx, TEXO_LOG_DETAIL, "the code of %s was in the cache", x->request->name);
	return x->code.image != NULL;
}

void
kept_put(Compilation *x, const KeptCode *k)
{
	const char *why = NULL;
	const CodegenResult *code = &x->code;
	if (k->key && !store_put(&x->ctx->store, &x->arena, k->key, k->key_bytes, ENTRY_IMAGE, code->image, code->image_size, &why) && why)
		ctx_log(x->ctx, TEXO_LOG_WARNING, "%s", why);
}
