/* equal_kernels.c: a program may do the same to many tensors, as a step of an optimiser does. Kernels whose tile IR
 * is equal but for the names of the kernel, its buffers and scalars are one piece of code: LLVM makes it once, and so
 * does the assembler. What a launch hands over is in the artefact's tables, which each kernel has of its own. */
#include "codegen/equal_kernels.h"

#include <string.h>

#include "ir/image.h"

static const char *const mode[] = {[FP_STRICT] = "strict\n", [FP_RELAXED] = "relaxed\n", [FP_FAST] = "fast\n"};

enum { MODES = sizeof mode / sizeof *mode };

static void
print_plain(Arena *a, const TirKernel *k, const char *first, Text *out)
{
	TirKernel plain = *k;
	plain.name = 0;
	plain.buffer.at = arena_copy(a, k->buffer.at, k->buffer.n * sizeof *k->buffer.at);
	plain.scalar.at = arena_copy(a, k->scalar.at, k->scalar.n * sizeof *k->scalar.at);
	for (uint32_t b = 0; b < plain.buffer.n; b++)
		plain.buffer.at[b].name = 0;
	for (uint32_t s = 0; s < plain.scalar.n; s++)
		plain.scalar.at[s].name = 0;
	out->arena = a;
	out->n = 0;
	text_word(out, first);
	tir_print(&plain, out);
}

PlainKernel *
kernel_plain(Arena *a, PlainKernels *have, const Kernel *k, FpMode fp, const char *symbol)
{
	Text *t = &have->printed;
	print_plain(a, k->early ? k->early : k->tir, k->early ? mode[fp] : "", t);
	uint64_t digest = image_digest((const uint8_t *)t->at, t->n);
	for (uint32_t i = 0; i < have->n; i++) {
		PlainKernel *o = have->at[i];
		if (o->digest == digest && o->n == t->n && o->serial == k->serial && memcmp(o->tir, t->at, t->n) == 0)
			return o;
	}
	PlainKernel *x = ARENA_NEW(a, PlainKernel);
	*x = (PlainKernel){.tir = arena_copy(a, t->at, t->n), .n = t->n, .digest = digest, .serial = k->serial, .symbol = symbol};
	vec_push(a, have, x);
	return x;
}

TirKernel *
kernel_plain_read(Arena *a, const char *tir, size_t n, bool *early, FpMode *fp, const char **why)
{
	size_t line = 0;
	for (unsigned m = 0; m < MODES; m++)
		if (n >= strlen(mode[m]) && memcmp(tir, mode[m], strlen(mode[m])) == 0) {
			line = strlen(mode[m]);
			*fp = (FpMode)m;
		}
	*early = line > 0;
	return tir_read(a, names_new(a), tir + line, n - line, why);
}
