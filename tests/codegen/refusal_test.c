/* refusal_test.c: what code generation refuses, with its words; memory running out in it; the texts it
 * gives; that the same kernel gives the same bytes, and that no kernel calls anything outside. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/object.h"
#include "ir/image.h"
#include "tests/codegen/rig.h"

typedef struct {
	const char *cpu, *body; /* of a kernel with f32 x, f32 y written and f16 h */
	CodegenStatus status;
	const char *message;
} Refusal;

static const char head[] =
	"kernel k\nbuffer 0 x : f32\nbuffer 1 y : f32 written\nbuffer 2 h : f16\n";

static const Refusal refusals[] = {
	{"host", "%1:f32 = const 1 %2:f32 = exp %1", CODEGEN_ILLEGAL,
	 "kernel k, %2: 'exp' on f32 must be expanded before code generation"},
	{"host", "%1:f64 = const 1 %2:f64 = pow %1, %1", CODEGEN_ILLEGAL,
	 "kernel k, %2: 'pow' on f64 must be expanded before code generation"},
	{"host", "%1:f32 = const 1 %2:f32 = rsqrt %1", CODEGEN_ILLEGAL,
	 "kernel k, %2: 'rsqrt' on f32 must be expanded before code generation"},
	{"x86-64", "%1:f32 = const 1 %2:f32 = fma %1, %1, %1", CODEGEN_OK, NULL},
	{"x86-64-v2", "%1:f64x4 = const 1 %2:f64x4 = fma %1, %1, %1", CODEGEN_OK, NULL},
	{"x86-64-v3", "%1:f32 = const 1 %2:f32 = fma %1, %1, %1", CODEGEN_OK, NULL},
	{"x86-64-v2", "%1:f16 = const 1 %2:f32 = cast %1", CODEGEN_ILLEGAL, "kernel k, %2: 'cast' doesn't take f16 here"},
	{"x86-64-v3", "%1:f16 = const 1 %2:f32 = cast %1", CODEGEN_OK, NULL},
	{"host", "%1:f32 = const 1 %2:bf16 = cast %1", CODEGEN_ILLEGAL, "kernel k, %2: 'cast' can't give bf16 here"},
	{"host", "%1:i4 = const 1 %2:f8e4m3 = cast %1", CODEGEN_ILLEGAL, "kernel k, %2: 'cast' can't give f8e4m3 here"},
	{"host", "%1:i4 = const 1 %2:f32 = cast %1", CODEGEN_OK, NULL},
	{"host", "%1:f32 = const 1 %2:i32 = const 1 %3:f32 = + %1, %2", CODEGEN_FAILED,
	 "kernel k: %3 +: operand 1 has another type"},
	{"sm_90a", "%1:f32 = const 1 %2:f32 = fma %1, %1, %1", CODEGEN_OK, NULL},
	{"sm_80", "%1:f32 = const 1 %2:f32 = exp %1", CODEGEN_ILLEGAL,
	 "kernel k, %2: 'exp' on f32 must be expanded before code generation"},
	{"sm_80", "%1:f32 = const 1 %2:f8e4m3 = cast %1", CODEGEN_ILLEGAL, "kernel k, %2: 'cast' can't give f8e4m3 here"},
	{"sm_90a", "%1:f32 = const 1 %2:f8e4m3 = cast %1", CODEGEN_OK, NULL},
	{"sm_90a", "%1:f8e5m2 = const 1 %2:f32 = cast %1", CODEGEN_ILLEGAL, "kernel k, %2: 'cast' doesn't take f8e5m2 here"},
	{"sm_80", "%1:f32x4 = const 1", CODEGEN_ILLEGAL, "kernel k, %1: 'const' on vectors can't be asked of a GPU"},
	{"sm_90a", "%1:i32x4 = iota", CODEGEN_ILLEGAL, "kernel k, %1: 'iota' on vectors can't be asked of a GPU"},
	{"pentium", "%1:f32 = const 1", CODEGEN_FAILED,
	 "no processor 'pentium'; there are host, x86-64, x86-64-v2, x86-64-v3, x86-64-v4, haswell, "
	 "skylake-avx512, icelake-server, sapphirerapids, znver3, znver4, znver5"},
};

static void
read_kernel(Rig *r, const char *body)
{
	const char *error = NULL;
	const char *text = arena_text(&r->arena, "%s{ %s }\n", head, body);
	r->k = tir_read(&r->arena, r->names, text, strlen(text), &error);
	if (!r->k)
		fail_msg("%s", error);
}

static CodegenStatus
generate(Rig *r, const CodegenOptions *o)
{
	Program *p = rig_program(r, 1);
	return codegen_cpu(&r->arena, (const Program *const *)&p, 1, o, &r->out);
}

static void
a_refusal(Rig *r, const void *arg)
{
	const Refusal *x = arg;
	read_kernel(r, x->body);
	CodegenStatus s = generate(r, &(CodegenOptions){.cpu = x->cpu, .opt_level = 2});
	if (x->message && !r->out.message)
		fail_msg("%s: taken", x->body);
	if (x->message)
		assert_string_equal(r->out.message, x->message);
	assert_int_equal(s, x->status);
	assert_int_equal(r->out.image != NULL, s == CODEGEN_OK);
}

static void
refuses(void **state)
{
	(void)state;
	for (unsigned n = 0; n < sizeof refusals / sizeof *refusals; n++)
		rig_run("k", a_refusal, &refusals[n]);
}

/* --- a kernel with a bit of everything --- */

static const char busy[] =
	"%1:i64 = task_lo %2:i64 = task_hi %3:i64 = const 1 %4:i64 = const 0 %5:f32 = const 0.5\n"
	"%6 = buffer 0 %7:f32 = view %6, %2, %3 %8 = buffer 1 %9:f32 = view %8, %2, %3\n"
	"%10 = for %1, %2, %3 { %11:i64 = blockarg 0 %12:f32 = load %7, %11 %13:f32 = floor %12\n"
	"  %14:bool = < %5, %13 %15 = if %14 { %16:f32 = sqrt %12 %17 = yield %16 } else { %18 = yield %5 }\n"
	"  %19:f32 = result 0 %15 %20 = store %9, %19, %11 %21 = yield }";

static void
the_texts(Rig *r, const void *arg)
{
	(void)arg;
	read_kernel(r, busy);
	CodegenOptions o = {.cpu = "x86-64-v3", .want_llvm = true, .want_asm = true, .no_code = true};
	assert_int_equal(generate(r, &o), CODEGEN_OK);
	assert_null(r->out.image);
	assert_non_null(strstr(r->out.llvm, "define void @k.0.0(ptr"));
	assert_non_null(strstr(r->out.llvm, "nounwind"));
	assert_null(strstr(r->out.llvm, " fast "));
	assert_null(strstr(r->out.llvm, "inbounds"));
	assert_non_null(strstr(r->out.assembly, "vsqrtss"));
	assert_null(strstr(r->out.assembly, "call"));
	o.want_llvm = o.want_asm = o.no_code = false;
	assert_int_equal(generate(r, &o), CODEGEN_OK);
	assert_true(r->out.image && !r->out.llvm && !r->out.assembly);
}

static void
texts(void **state)
{
	(void)state;
	rig_run("k", the_texts, NULL);
}

/* On a GPU: an entry without calls, exact arithmetic, and an artefact that has the text in it. */
static void
the_ptx(Rig *r, const void *arg)
{
	(void)arg;
	read_kernel(r, busy);
	CodegenOptions o = {.cpu = "sm_90a", .want_asm = true, .opt_level = 2};
	assert_int_equal(generate(r, &o), CODEGEN_OK);
	const char *ptx = r->out.assembly;
	assert_non_null(strstr(ptx, ".target sm_90a\n"));
	assert_non_null(strstr(ptx, ".visible .entry k_0_0("));
	assert_non_null(strstr(ptx, "rsqrt.approx.ftz.f64"));
	assert_null(strstr(ptx, "call"));
	const ImageHeader *h = r->out.image;
	assert_int_equal(h->target, IMG_TARGET_CUDA);
	assert_int_equal(h->needs[0], 90);
	assert_int_equal(h->needs[1], 1);
	const ImageModule *m = (const ImageModule *)(const void *)((const char *)r->out.image + h->module.at);
	assert_int_equal(h->module.n, 1);
	assert_int_equal(m->form, IMG_PTX);
	assert_int_equal(m->n, strlen(ptx) + 1);
	assert_memory_equal((const char *)r->out.image + h->code.at + m->at, ptx, m->n);
	o.cpu = "sm_80";
	assert_int_equal(generate(r, &o), CODEGEN_OK);
	h = r->out.image;
	assert_int_equal(h->needs[0], 80);
	assert_int_equal(h->needs[1], 0);
}

static void
ptx(void **state)
{
	(void)state;
	rig_run("k", the_ptx, NULL);
}

/* Scratch is a processor's: memory private to each running call. */
static void
the_scratch(Rig *r, const void *arg)
{
	(void)arg;
	read_kernel(r, busy);
	r->k->buffer.at[0].written = true;
	Program *p = rig_program(r, 1);
	vec_push(&r->arena, &p->kernel.at[0].buffer,
	         ((BufferBind){.kind = BIND_SCRATCH, .elements = expr_int(p->graph, DT_I64, 4)}));
	tir_add_buffer(r->k, name_cstr(r->names, "s"), DT_F32, true);
	CodegenOptions o = {.cpu = "sm_90a"};
	assert_int_equal(codegen_cpu(&r->arena, (const Program *const *)&p, 1, &o, &r->out), CODEGEN_FAILED);
	assert_string_equal(r->out.message, "a kernel for CUDA can't have scratch");
	o.cpu = "host";
	assert_int_equal(codegen_cpu(&r->arena, (const Program *const *)&p, 1, &o, &r->out), CODEGEN_OK);
}

static void
scratch(void **state)
{
	(void)state;
	rig_run("k", the_scratch, NULL);
}

/* More arguments than PTX has room for. */
static void
the_many(Rig *r, const void *arg)
{
	(void)arg;
	read_kernel(r, busy);
	for (unsigned n = 0; n < IMAGE_CUDA_MAX_ARGUMENTS; n++)
		tir_add_scalar(r->k, name_cstr(r->names, "s"), DT_I64);
	assert_int_equal(generate(r, &(CodegenOptions){.cpu = "sm_80"}), CODEGEN_ILLEGAL);
	assert_string_equal(r->out.message, "kernel k takes 515 buffers and scalars; on a GPU 512 are possible");
}

static void
many(void **state)
{
	(void)state;
	rig_run("k", the_many, NULL);
}

/* A loop that sets memory and one that copies it stay loops: nothing outside may be called. */
static void
the_idioms(Rig *r, const void *arg)
{
	const char *cpu = arg;
	read_kernel(r, "%1:i64 = task_lo %2:i64 = task_hi %3:i64 = const 1 %4:f32 = const 0\n"
	               "%5 = buffer 0 %6:f32 = view %5, %2, %3 %7 = buffer 1 %8:f32 = view %7, %2, %3\n"
	               "%9 = for %1, %2, %3 { %10:i64 = blockarg 0 %11 = store %8, %4, %10 %12 = yield }\n"
	               "%13 = for %1, %2, %3 { %14:i64 = blockarg 0 %15:f32 = load %6, %14 %16 = store %8, %15, %14\n"
	               "  %17 = yield }");
	if (generate(r, &(CodegenOptions){.cpu = cpu, .opt_level = 3}) != CODEGEN_OK)
		fail_msg("%s", r->out.message);
}

static void
idioms(void **state)
{
	(void)state;
	rig_run("k", the_idioms, "x86-64");
	rig_run("k", the_idioms, "x86-64-v4");
}

/* --- memory --- */

typedef struct {
	long left, live;
} Memory;

static void *
take(void *user, size_t n)
{
	Memory *m = user;
	if (m->left-- <= 0)
		return NULL;
	m->live++;
	return malloc(n);
}

static void *
retake(void *user, void *p, size_t n)
{
	(void)user;
	return realloc(p, n);
}

static void
give(void *user, void *p)
{
	Memory *m = user;
	m->live -= p != NULL;
	free(p);
}

/* Generates with a fresh arena that gets no memory after n blocks. */
static bool
generates_with(long n, Memory *m)
{
	Rig *r = calloc(1, sizeof *r);
	assert_non_null(r);
	*m = (Memory){n, 0};
	const HostMemory memory = {take, retake, give, m};
	volatile bool done = false;
	arena_init(&r->arena, &memory, &r->unwind);
	if (setjmp(r->unwind.env) == 0) {
		r->names = names_new(&r->arena);
		read_kernel(r, busy);
		assert_int_equal(generate(r, &(CodegenOptions){.cpu = "x86-64-v3", .want_llvm = true, .opt_level = 2}),
		                 CODEGEN_OK);
		done = true;
	} else {
		assert_int_equal(r->unwind.why, UNWIND_NO_MEMORY);
	}
	assert_ptr_equal(r->arena.unwind, &r->unwind);
	arena_free(&r->arena);
	assert_int_equal(m->live, 0);
	free(r);
	return done;
}

static void
memory_may_run_out(void **state)
{
	(void)state;
	Memory m;
	long n = 0;
	while (!generates_with(n, &m))
		n++;
	assert_true(n > 2);
}

/* --- the limit, from the inside of code generation: an arena with a limit at every size --- */

static bool
generates_within(size_t limit)
{
	Rig *r = calloc(1, sizeof *r);
	assert_non_null(r);
	volatile bool done = false;
	arena_init(&r->arena, &host_default()->memory, &r->unwind);
	if (setjmp(r->unwind.env) == 0) {
		r->names = names_new(&r->arena);
		read_kernel(r, busy);
		Program *p = rig_program(r, 1);
		r->arena.limit = r->arena.used + limit;
		CodegenOptions o = {.cpu = "x86-64-v3", .want_llvm = true};
		assert_int_equal(codegen_cpu(&r->arena, (const Program *const *)&p, 1, &o, &r->out), CODEGEN_OK);
		done = true;
	} else {
		assert_int_equal(r->unwind.why, UNWIND_LIMIT);
	}
	assert_ptr_equal(r->arena.unwind, &r->unwind);
	arena_free(&r->arena);
	free(r);
	return done;
}

static void
any_allocation_may_fail(void **state)
{
	(void)state;
	size_t limit = 0, steps = 0;
	for (; limit < 20000 && !generates_within(limit); limit += 997) /* what one kernel itself takes */
		steps++;
	assert_true(steps > 5);
	for (; !generates_within(limit); limit = limit * 3 / 2) /* the files */
		steps++;
}

/* --- symbols --- */

typedef struct {
	Elf64_Ehdr file;
	Elf64_Shdr section[3];
	Elf64_Sym symbol[3];
	char names[20];
} TinyObject;

static void
undefined_symbols_are_found(void **state)
{
	(void)state;
	static const char *const import[] = {"memcpy", NULL};
	TinyObject o = {.file = {.e_shoff = offsetof(TinyObject, section), .e_shnum = 3}, .names = "\0mine\0memset\0fmaf"};
	o.section[1] = (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_offset = offsetof(TinyObject, symbol),
	                            .sh_size = sizeof o.symbol, .sh_link = 2};
	o.section[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = offsetof(TinyObject, names)};
	o.symbol[1] = (Elf64_Sym){.st_name = 1, .st_shndx = 1};
	o.symbol[2] = (Elf64_Sym){.st_name = 6, .st_shndx = 1};
	assert_null(object_undefined(&o, sizeof o, import));
	o.symbol[2].st_shndx = SHN_UNDEF;
	assert_string_equal(object_undefined(&o, sizeof o, import), "memset");
	assert_null(object_undefined(&o, sizeof o, (const char *const[]){"memcpy", "memset", NULL}));
	o.symbol[2].st_name = 13;
	assert_null(object_undefined(&o, sizeof o, import)); /* ir/image_imports.def has it */
}

/* --- features --- */

static void
features(void **state)
{
	(void)state;
	TargetOffer o = codegen_target_offer("x86-64");
	assert_true(o.lanes == 4 && !o.fma && !o.dot && !o.blocks);
	o = codegen_target_offer("x86-64-v3");
	assert_true(o.lanes == 8 && o.fma && !o.dot && !o.blocks);
	o = codegen_target_offer("sapphirerapids");
	assert_true(o.lanes == 16 && o.fma && o.dot == TIR_DOT_TILES && !o.blocks);
	o = codegen_target_offer("znver4");
	assert_true(o.lanes == 16 && o.fma && o.dot == TIR_DOT_VECTORS && !o.blocks);
	o = codegen_target_offer("icelake-server");
	assert_true(o.lanes == 16 && o.fma && !o.dot && !o.blocks);
	o = codegen_target_offer("sm_80");
	assert_true(o.lanes > 0 && o.fma && !o.dot && o.blocks);
}

static void
the_summary(Rig *r, const void *arg)
{
	(void)arg;
	assert_non_null(strstr(codegen_host_summary(&r->arena), "LLVM 22."));
}

static void
summary(void **state)
{
	(void)state;
	rig_run("k", the_summary, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses),
		cmocka_unit_test(texts),
		cmocka_unit_test(ptx),
		cmocka_unit_test(scratch),
		cmocka_unit_test(many),
		cmocka_unit_test(idioms),
		cmocka_unit_test(memory_may_run_out),
		cmocka_unit_test(any_allocation_may_fail),
		cmocka_unit_test(undefined_symbols_are_found),
		cmocka_unit_test(features),
		cmocka_unit_test(summary),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
