/* late_kernels_test.c: code of kernels that were written down as tile IR and read back (codegen_kernel) is, byte for
 * byte, that of an artefact with all code in it. So the text has all that code generation looks at.
 *
 *     late_kernels_test FILE... */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "codegen/codegen.h"
#include "driver/source.h"
#include "driver/stages.h"
#include "ir/image.h"

typedef struct {
	Arena arena;
	Unwind unwind;
	unsigned files, kernels, bad;
} Test;

static const void *
section(const void *image, uint64_t at)
{
	return (const char *)image + at;
}

static bool
compile(Test *t, const char *path, const char *sm, CodegenResult *whole, CodegenResult *late)
{
	const char *text;
	size_t n;
	Problem problem = {.arena = &t->arena};
	Text log;
	SourceUnit u;
	PassOptions po;
	FrontendOptions fo = {.fp = FP_RELAXED, .host = host_default()};
	CodegenOptions co = {.cpu = sm, .opt_level = 2};
	if (!source_read(&host_default()->files, &t->arena, path, MAX_SOURCE, &text, &n, &problem))
		return false;
	unit_begin(&t->arena, path, text, n, &u);
	unit_check(&t->arena, &u, &fo, false);
	if (u.failed)
		return false;
	text_init(&log, &t->arena);
	pass_options_for(sm, host_default(), &po);
	const Program **program = programs_of(&t->arena, u.unit, &po, &log);
	if (codegen_cpu(&t->arena, program, u.unit->graph.n, &co, whole) != CODEGEN_OK)
		return false;
	co.late = true;
	return codegen_cpu(&t->arena, program, u.unit->graph.n, &co, late) == CODEGEN_OK;
}

/* What was compiled for a processor meanwhile changes nothing. */
static void
compare_again(Test *t, const char *path, const char *sm, const CodegenResult *before)
{
	CodegenResult host, late, after;
	bool same = compile(t, path, "x86-64", &host, &late) && compile(t, path, sm, &after, &late) &&
	            after.image_size == before->image_size && memcmp(after.image, before->image, after.image_size) == 0;
	t->bad += !same;
	if (!same)
		printf("%s: after a compilation for a processor the code for %s is another\n", path, sm);
}

static void
compare(Test *t, const char *path, const char *sm, const CodegenResult *whole, const CodegenResult *late)
{
	const ImageHeader *w = whole->image, *l = late->image;
	const ImageModule *wm = section(w, w->module.at), *lm = section(l, l->module.at);
	const ImageKernel *kernel = section(l, l->kernel.at);
	t->bad += w->module.n != l->module.n || l->module.n != l->kernel.n;
	for (uint64_t n = 0; n < l->module.n && n < w->module.n; n++) {
		const ImageKernel *k = &kernel[lm[n].kernel];
		LateKernel from = {.tir = section(l, l->code.at + lm[n].at), .symbol = section(l, l->text.at + k->entry),
		                   .n = (size_t)lm[n].n - 1, .serial = k->serial != 0};
		const char *ptx = "", *why = "the code is another";
		size_t bytes = 0;
		bool same = lm[n].form == IMG_TIR && codegen_kernel(&t->arena, sm, &from, &ptx, &bytes, &why) == CODEGEN_OK &&
		            bytes == wm[n].n && memcmp(ptx, section(w, w->code.at + wm[n].at), bytes) == 0;
		t->kernels++;
		t->bad += !same;
		if (!same)
			printf("%s: kernel %s: %s\n", path, from.symbol, why);
	}
}

/* Apart, so that no local lives across the longjmp. */
static void
one_file(Test *t, const char *path, const char *sm)
{
	CodegenResult whole, late;
	arena_init(&t->arena, &host_default()->memory, &t->unwind);
	if (setjmp(t->unwind.env)) {
		printf("%s: %s\n", path, t->unwind.text);
		t->bad++;
	} else if (compile(t, path, sm, &whole, &late)) {
		compare(t, path, sm, &whole, &late);
		if (t->files++ == 0)
			compare_again(t, path, sm, &whole);
	} else {
		printf("%s can't be compiled for %s\n", path, sm);
		t->bad++;
	}
	arena_free(&t->arena);
}

int
main(int argc, char **argv)
{
	static Test t;
	for (int k = 1; k < argc; k++)
		one_file(&t, argv[k], k % 2 ? "sm_90a" : "sm_80");
	printf("%u kernels, %u of them with other code\n", t.kernels, t.bad);
	return t.bad || !t.kernels;
}
