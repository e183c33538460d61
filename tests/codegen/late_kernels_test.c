/* late_kernels_test.c: kernels that were written down as tile IR before its passes, read back, and made code of
 * (codegen_kernel) are, byte for byte, those of an artefact with all code in it. So the text has all that passes and code
 * generation look at. And a launch is told the same by both artefacts.
 *
 *     late_kernels_test FILE...           code and tables
 *     late_kernels_test tables FILE... */
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
	bool tables; /* alone */
	unsigned files, kernels, early, bad;
} Test;

static const void *
section(const void *image, uint64_t at)
{
	return (const char *)image + at;
}

static bool
compile_once(Test *t, const char *path, const char *text, size_t n, const char *sm, bool late, CodegenResult *out)
{
	Text log;
	SourceUnit u;
	PassOptions po;
	FrontendOptions fo = {.fp = FP_RELAXED, .host = host_default()};
	CodegenOptions co = {.cpu = sm, .opt_level = 2, .late = late || t->tables};
	unit_begin(&t->arena, path, text, n, &u);
	unit_check(&t->arena, &u, &fo, false);
	if (u.failed)
		return false;
	text_init(&log, &t->arena);
	pass_options_for(sm, host_default(), &po);
	po.late = late;
	const Program **program = programs_of(&t->arena, u.unit, &po, &log);
	for (uint32_t g = 0; g < u.unit->graph.n; g++)
		for (uint32_t k = 0; k < program[g]->kernel.n; k++)
			t->early += program[g]->kernel.at[k].early != NULL;
	return codegen_cpu(&t->arena, program, u.unit->graph.n, &co, out) == CODEGEN_OK;
}

static bool
compile(Test *t, const char *path, const char *sm, CodegenResult *whole, CodegenResult *late)
{
	const char *text;
	size_t n;
	Problem problem = {.arena = &t->arena};
	return source_read(&host_default()->files, &t->arena, path, MAX_SOURCE, &text, &n, &problem) &&
	       compile_once(t, path, text, n, sm, false, whole) && compile_once(t, path, text, n, sm, true, late);
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
		                   .n = (size_t)lm[n].n - 1, .serial = k->serial != 0, .finish = late_finish};
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

/* What a launch is told of a kernel, and of its buffers and scalars. */
static bool
same_tables(const ImageHeader *w, const ImageHeader *l)
{
	const ImageKernel *wk = section(w, w->kernel.at), *lk = section(l, l->kernel.at);
	bool same = w->kernel.n == l->kernel.n && w->bind.n == l->bind.n && w->map.n == l->map.n && w->words.n == l->words.n &&
	            memcmp(section(w, w->bind.at), section(l, l->bind.at), w->bind.n * sizeof(ImageBind)) == 0 &&
	            memcmp(section(w, w->map.at), section(l, l->map.at), w->map.n * sizeof(ImageMap)) == 0 &&
	            memcmp(section(w, w->words.at), section(l, l->words.at), w->words.n * sizeof(uint32_t)) == 0;
	for (uint64_t k = 0; same && k < w->kernel.n; k++) {
		ImageKernel x = lk[k];
		same = strcmp(section(w, w->text.at + wk[k].name), section(l, l->text.at + x.name)) == 0 &&
		       strcmp(section(w, w->text.at + wk[k].template_name), section(l, l->text.at + x.template_name)) == 0;
		x.name = wk[k].name;
		x.template_name = wk[k].template_name;
		x.entry = wk[k].entry;
		same = same && memcmp(&x, &wk[k], sizeof x) == 0;
	}
	return same;
}

static void
compare_tables(Test *t, const char *path, const CodegenResult *whole, const CodegenResult *late)
{
	if (same_tables(whole->image, late->image))
		return;
	printf("%s: the tables of late kernels are others\n", path);
	t->bad++;
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
		compare_tables(t, path, &whole, &late);
		if (!t->tables)
			compare(t, path, sm, &whole, &late);
		if (t->files++ == 0 && !t->tables)
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
	t.tables = argc > 1 && strcmp(argv[1], "tables") == 0;
	for (int k = 1 + t.tables; k < argc; k++)
		one_file(&t, argv[k], (k - t.tables) % 2 ? "sm_90a" : "sm_80");
	printf("%u files, %u kernels before their passes; code of %u kernels compared; %u bad\n", t.files, t.early, t.kernels, t.bad);
	return t.bad || !t.early || !(t.tables || t.kernels);
}
