/* job_bytes.c: jobs as parts (ir/parts.h), and back. Who reads checks what LLVM would stumble over: the tile IR's
 * syntax here, its rules in serve.c. */
#include "codegen/job.h"

/* --- written --- */

static void
put_kernels(const JobKernels *k, Text *out)
{
	part_put_number(out, k->n);
	for (uint32_t n = 0; n < k->n; n++) {
		Text tir;
		text_init(&tir, out->arena);
		tir_print(k->at[n].tir, &tir);
		part_put_text(out, k->at[n].symbol);
		part_put_number(out, k->at[n].serial);
		part_put(out, text_get(&tir), tir.n);
	}
}

void
module_write(const ModuleJob *j, Text *out)
{
	part_put_number(out, JOB_MODULE);
	part_put_text(out, j->cpu);
	part_put_number(out, (uint64_t)j->level);
	part_put_number(out, j->want_llvm);
	part_put_number(out, j->want_asm);
	part_put_number(out, j->want_code);
	put_kernels(&j->kernel, out);
}

static void
put_args(const CArg *a, uint32_t n, Text *out)
{
	part_put_number(out, n);
	for (uint32_t k = 0; k < n; k++) {
		part_put_number(out, a[k].kind);
		part_put_number(out, a[k].dtype);
		part_put_number(out, a[k].is_word);
		part_put_number(out, a[k].slot);
	}
}

static void
put_signature(const CSignature *s, Text *out)
{
	part_put_text(out, s->name);
	part_put_text(out, s->json);
	part_put_number(out, s->nword);
	part_put_number(out, s->ndim);
	put_args(s->call.at, s->call.n, out);
	put_args(s->sizes.at, s->sizes.n, out);
	put_args(&s->stream, 1, out);
}

static void
put_bytes(const ObjectBitcode *b, uint32_t n, Text *out)
{
	part_put_number(out, n);
	for (uint32_t k = 0; k < n; k++)
		part_put(out, b[k].bytes, b[k].n);
}

void
object_write(const ObjectJob *j, Text *out)
{
	part_put_number(out, JOB_OBJECT);
	part_put_number(out, (uint64_t)j->opt_level);
	part_put_number(out, j->level.n);
	for (uint32_t n = 0; n < j->level.n; n++) {
		part_put_text(out, j->level.at[n].cpu);
		part_put(out, j->level.at[n].tables.bytes, j->level.at[n].tables.n);
		put_kernels(&j->level.at[n].kernel, out);
	}
	put_bytes(j->gpu.at, j->gpu.n, out);
	put_bytes(j->launch.at, j->launch.n, out);
	part_put_number(out, j->nsignature);
	for (uint32_t n = 0; n < j->nsignature; n++)
		put_signature(&j->signature[n], out);
}

/* --- read --- */

static bool
get_kernels(Arena *a, PartReader *r, JobKernels *out, const char **why)
{
	Names *names = names_new(a);
	for (uint32_t n = part_get_count(r); n > 0; n--) {
		JobKernel k;
		size_t size;
		k.symbol = part_get_text(r);
		k.serial = part_get_number(r) != 0;
		const char *tir = part_get(r, &size);
		k.tir = r->bad ? NULL : tir_read(a, names, tir, size, why);
		if (!k.tir)
			return false;
		vec_push(a, out, k);
	}
	return !r->bad;
}

/* LLVM has these levels. */
static int
get_level(PartReader *r)
{
	uint64_t level = part_get_number(r);
	r->bad |= level > 3;
	return (int)level;
}

bool
module_read(Arena *a, PartReader *r, ModuleJob *out, const char **why)
{
	*out = (ModuleJob){.cpu = part_get_text(r)};
	out->level = get_level(r);
	out->want_llvm = part_get_number(r) != 0;
	out->want_asm = part_get_number(r) != 0;
	out->want_code = part_get_number(r) != 0;
	return get_kernels(a, r, &out->kernel, why) && r->left == 0;
}

static CArg
get_arg(PartReader *r)
{
	CArg a = {.kind = CARG_DIM};
	uint64_t kind = part_get_number(r), dtype = part_get_number(r);
	a.is_word = part_get_number(r) != 0;
	a.slot = (uint32_t)part_get_number(r);
	r->bad |= kind > CARG_STREAM || dtype >= DT_COUNT;
	if (!r->bad) {
		a.kind = (CArgKind)kind;
		a.dtype = (DType)dtype;
	}
	return a;
}

static void
get_signature(Arena *a, PartReader *r, CSignature *s)
{
	*s = (CSignature){.name = part_get_text(r)};
	s->json = part_get_text(r);
	s->nword = (uint32_t)part_get_number(r);
	s->ndim = (uint32_t)part_get_number(r);
	for (uint32_t n = part_get_count(r); n > 0; n--)
		vec_push(a, &s->call, get_arg(r));
	for (uint32_t n = part_get_count(r); n > 0; n--)
		vec_push(a, &s->sizes, get_arg(r));
	r->bad |= part_get_count(r) != 1 || s->call.n == 0;
	s->stream = get_arg(r);
}

static ObjectBitcode
get_bytes(PartReader *r)
{
	ObjectBitcode b;
	b.bytes = part_get(r, &b.n);
	return b;
}

bool
object_read(Arena *a, PartReader *r, ObjectJob *out, const char **why)
{
	*out = (ObjectJob){.opt_level = get_level(r)};
	for (uint32_t n = part_get_count(r); n > 0; n--) {
		JobLevel level = {.cpu = part_get_text(r)};
		level.tables = get_bytes(r);
		if (!get_kernels(a, r, &level.kernel, why))
			return false;
		vec_push(a, &out->level, level);
	}
	for (uint32_t n = part_get_count(r); n > 0; n--)
		vec_push(a, &out->gpu, get_bytes(r));
	for (uint32_t n = part_get_count(r); n > 0; n--)
		vec_push(a, &out->launch, get_bytes(r));
	out->nsignature = part_get_count(r);
	CSignature *s = ARENA_ARRAY(a, CSignature, out->nsignature + 1);
	for (uint32_t n = 0; n < out->nsignature; n++)
		get_signature(a, r, &s[n]);
	out->signature = s;
	return !r->bad && r->left == 0;
}
