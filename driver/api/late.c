/* late.c: the code of one kernel of a GPU, made when a prepare or a launch first wants it: out of the cache, or
 * by LLVM, here or in a worker, and by an assembler where there is one; else the driver has one, whose machine code the
 * runtime hands back to be kept. An artefact has a kernel for each range of sizes and alignments, of which a program
 * mostly runs one, and making them all would take as many times as long.
 * A run has an arena of its own, so that whatever ends it ends in a status of that prepare or launch. */
#include "driver/api/objects.h"
#include "driver/api/worker.h"
#include "driver/cache/key.h"

#include <string.h>

enum { CODE_ALIGN = 16 };

/* Kept in the place of machine code that the driver's assembler makes as good only where it loads it. */
static const char none = 0;

typedef struct {
	const LateCode *late;
	LateKernel kernel;
	const char *text; /* with its NUL */
	const void *machine;
	size_t text_bytes, machine_bytes;
	const char *assembler; /* the driver's */
	bool keeps;            /* what it makes is wanted */
	texo_private_code *out;
} Making;

/* --- the cache: an entry for the text, and one for what each assembler makes of it --- */

typedef struct {
	const char *at; /* NULL: nothing is kept */
	size_t n;
} Key;

static Key
key_of(Compilation *x, const Making *m, const char *assembler)
{
	Text key;
	const char *target = m->late->kept ? codegen_target_text(&x->arena, m->late->cpu) : NULL;
	if (!target)
		return (Key){NULL, 0};
	text_init(&key, &x->arena);
	kernel_key_write(&(KernelKey){target, assembler, &m->kernel}, &key);
	return (Key){key.at, key.n};
}

static const void *
kept(Compilation *x, const Key *k, const char *tag, size_t *n)
{
	const char *why = NULL;
	if (!k->at)
		return NULL;
	const void *found = store_get(&x->ctx->store, &x->arena, k->at, k->n, tag, n, &why);
	if (why)
		ctx_log(x->ctx, TEXO_LOG_WARNING, "%s", why);
	return found;
}

static void
keep(Compilation *x, const Key *k, const char *tag, const void *bytes, size_t n)
{
	const char *why = NULL;
	if (k->at && !store_put(&x->ctx->store, &x->arena, k->at, k->n, tag, bytes, n, &why) && why)
		ctx_log(x->ctx, TEXO_LOG_WARNING, "%s", why);
}

/* --- making --- */

static texo_status
generate(Compilation *x, Making *m)
{
	const char *why = "", *bytes;
	if (x->ctx->isolation == TEXO_WORKER) {
		texo_status s = worker_ask(x, m->kernel.serial ? WORKER_SERIAL_KERNEL : WORKER_KERNEL, &bytes, &m->text_bytes);
		m->text = bytes;
		return s || (m->text_bytes && !bytes[m->text_bytes - 1])
		           ? s : texo_private_fail(TEXO_INTERNAL, "%s: the worker's answer makes no sense", m->kernel.symbol);
	}
	switch (codegen_kernel(&x->arena, m->late->cpu, &m->kernel, &m->text, &m->text_bytes, &why)) {
	case CODEGEN_OK:
		return TEXO_OK;
	case CODEGEN_ILLEGAL:
		return texo_private_fail(TEXO_NOT_BUILT, "kernel %s: the target can't run this: %s", m->kernel.symbol, why);
	case CODEGEN_FAILED:
		break;
	}
	return texo_private_fail(TEXO_INTERNAL, "kernel %s: code generation failed: %s", m->kernel.symbol, why);
}

static texo_status
take_text(Compilation *x, Making *m)
{
	Key key = key_of(x, m, "");
	m->text = kept(x, &key, ENTRY_PTX, &m->text_bytes);
	if (m->text && m->text_bytes && !m->text[m->text_bytes - 1]) {
		ctx_log(x->ctx, TEXO_LOG_DETAIL, "the code of kernel %s was in the cache", m->kernel.symbol);
		return TEXO_OK;
	}
	int64_t since = x->ctx->host.clock.now_ns(x->ctx->host.clock.user);
	texo_status s = generate(x, m);
	if (s)
		return s;
	ctx_log(x->ctx, TEXO_LOG_DETAIL, "generated the code of kernel %s in %.3f ms", m->kernel.symbol,
	        (double)(x->ctx->host.clock.now_ns(x->ctx->host.clock.user) - since) / 1e6);
	keep(x, &key, ENTRY_PTX, m->text, m->text_bytes);
	return TEXO_OK;
}

/* The driver assembles what it links for any code to be added, and then leaves out how many registers the groups of a
 * kernel's threads hand to one another. */
static bool
may_be_linked(const char *text)
{
	return !strstr(text, "setmaxnreg");
}

/* Of the driver's assembler that the kernel is for, whether there is machine code that it made. */
static void
find_machine_code(Compilation *x, Making *m)
{
	if (!m->late->kept || !*m->assembler || !may_be_linked(m->text))
		return;
	Key key = key_of(x, m, m->assembler);
	m->machine = kept(x, &key, ENTRY_CUBIN, &m->machine_bytes);
	m->keeps = !m->machine;
	if (m->machine && m->machine_bytes <= sizeof none) {
		m->machine = NULL;
		m->machine_bytes = 0;
	}
	if (m->machine)
		ctx_log(x->ctx, TEXO_LOG_DETAIL, "the machine code of kernel %s was in the cache", m->kernel.symbol);
}

/* A driver that does not take the machine code takes the text. */
static texo_status
take_machine_code(Compilation *x, Making *m)
{
	const LateCode *l = m->late;
	const char *why = "";
	if (!l->assemble) {
		find_machine_code(x, m);
		return TEXO_OK;
	}
	Key key = key_of(x, m, l->assembler);
	m->machine = kept(x, &key, ENTRY_CUBIN, &m->machine_bytes);
	if (m->machine) {
		ctx_log(x->ctx, TEXO_LOG_DETAIL, "the machine code of kernel %s was in the cache", m->kernel.symbol);
		return TEXO_OK;
	}
	int64_t since = x->ctx->host.clock.now_ns(x->ctx->host.clock.user);
	if (!l->assemble(l->user, &x->arena, m->text, l->cpu, &m->machine, &m->machine_bytes, &why))
		return texo_private_fail(TEXO_NO_DEVICE, "kernel %s: %s", m->kernel.symbol, why);
	ctx_log(x->ctx, TEXO_LOG_DETAIL, "assembled kernel %s in %.3f ms", m->kernel.symbol,
	        (double)(x->ctx->host.clock.now_ns(x->ctx->host.clock.user) - since) / 1e6);
	keep(x, &key, ENTRY_CUBIN, m->machine, m->machine_bytes);
	return TEXO_OK;
}

/* Out of the arena, when nothing can unwind any more. */
static texo_status
hand_over(Compilation *x, const Making *m)
{
	size_t machine = (m->machine_bytes + CODE_ALIGN - 1) / CODE_ALIGN * CODE_ALIGN;
	char *memory = ctx_alloc(x->ctx, machine + m->text_bytes);
	if (!memory)
		return texo_private_fail(TEXO_NO_MEMORY, "out of memory");
	if (m->machine_bytes)
		memcpy(memory, m->machine, m->machine_bytes);
	memcpy(memory + machine, m->text, m->text_bytes);
	*m->out = (texo_private_code){.machine = m->machine_bytes ? memory : NULL, .text = memory + machine, .memory = memory,
	                              .assembled = !m->late->assemble, .keeps = m->keeps};
	return TEXO_OK;
}

static texo_status
run(Compilation *x)
{
	Making *m = x->user;
	texo_status s = take_text(x, m);
	if (!s)
		s = take_machine_code(x, m);
	return s ? s : hand_over(x, m);
}

/* One run for a kernel, of which m's other members tell what else it is for. */
static texo_status
run_for(const LateCode *l, const texo_private_kernel *k, Making *m, CompilationFn *body)
{
	m->late = l;
	m->kernel = (LateKernel){.tir = k->tir, .symbol = k->symbol, .n = k->n, .serial = k->serial != 0, .machines = &l->ctx->machines,
	                           .finish = late_finish};
	m->assembler = k->assembler;
	/* what a worker is told */
	Request r = {.target = "", .fuse = "all", .name = k->symbol, .text = k->tir, .n = k->n, .fp = FP_RELAXED};
	Compilation x = {.ctx = l->ctx, .request = &r, .cpu = l->cpu, .gpu = true, .user = m};
	return compilation_run(&x, body, NULL);
}

static texo_status
make(void *user, const texo_private_kernel *kernel, texo_private_code *out)
{
	Making m = {.out = out};
	return run_for(user, kernel, &m, run);
}

static texo_status
keep_machine_code(Compilation *x)
{
	const Making *m = x->user;
	Key key = key_of(x, m, m->assembler);
	keep(x, &key, ENTRY_CUBIN, m->machine ? m->machine : &none, m->machine ? m->machine_bytes : sizeof none);
	return TEXO_OK;
}

/* What can't be kept is assembled again another time. */
static void
keep_assembled(void *user, const texo_private_kernel *kernel, const void *machine, size_t n)
{
	Making m = {.machine = machine, .machine_bytes = n};
	run_for(user, kernel, &m, keep_machine_code);
}

static void
release(void *user, texo_private_code *code)
{
	const LateCode *l = user;
	ctx_release(l->ctx, code->memory);
}

texo_private_maker
late_maker(LateCode *l)
{
	return (texo_private_maker){make, keep_assembled, release, l};
}

/* --- in a worker --- */

texo_status
late_write(Compilation *x, bool serial, Text *out)
{
	const Request *r = x->request;
	LateKernel k = {.tir = r->text, .symbol = r->name, .n = r->n, .serial = serial, .finish = late_finish};
	const char *ptx, *why = "";
	size_t n;
	texo_status s = compilation_source(x); /* for the target */
	if (s)
		return s;
	if (codegen_kernel(&x->arena, x->cpu, &k, &ptx, &n, &why) != CODEGEN_OK)
		return texo_private_fail(TEXO_INTERNAL, "kernel %s: code generation failed: %s", r->name, why);
	text_add(out, ptx, n);
	return TEXO_OK;
}
