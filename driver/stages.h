/* stages.h: the way from a text to code, for the command and the library alike: which stage follows
 * which, and what the text of an option means to them. Knows neither the command's options nor the
 * library's objects; whatever goes wrong is an answer for the caller to put into words. */
#ifndef TEXO_DRIVER_STAGES_H
#define TEXO_DRIVER_STAGES_H

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "passes/pass.h"

enum { MAX_SOURCE = 2 * 1024 * 1024 }; /* bytes; the parser refuses half of it, with a diagnostic */

typedef struct {
	const char *path, *text;
	size_t n;
	Names *names;
	Diags diags;
	FileId file;
	Unit *unit;  /* NULL until unit_check */
	bool failed; /* errors, or warnings that count as such */
} SourceUnit;

/* A text of n bytes with a NUL after them, which must outlive the unit. */
void unit_begin(Arena *a, const char *path, const char *text, size_t n, SourceUnit *out);
/* Parses and checks it; with werror a warning fails it too. */
void unit_check(Arena *a, SourceUnit *u, const FrontendOptions *o, bool werror);

/* "strict", "relaxed" (also NULL) or "fast"; false for any other word. */
bool fp_named(const char *text, FpMode *out);
/* "all" (also NULL), "elementwise" or "off". */
bool fuse_named(const char *text, FuseMode *out);

/* Whether "N=4" and "M=5" give one dim two lengths. */
bool statics_differ(const char *a, const char *b);

typedef enum { TARGET_CPU, TARGET_NO_SUCH_CPU, TARGET_CUDA, TARGET_NO_SUCH_GPU, TARGET_NONE } TargetKind;
/* What a --target means; *cpu is the processor ("host" for NULL and "cpu") or GPU. */
TargetKind target_parse(Arena *a, const char *target, const char **cpu);

/* Default pass options for a processor that target_parse gave. */
void pass_options_for(const char *cpu, const Host *host, PassOptions *out);
/* All graphs of a unit without errors, in source order; what passes say goes to log. */
const Program **programs_of(Arena *a, const Unit *u, const PassOptions *o, Text *log);
/* The passes that a late kernel lacks: FinishFn of codegen/codegen.h. */
const TirKernel *late_finish(const char *cpu, FpMode fp, const TirKernel *early, Arena *a);

/* The graph as Graphviz text: tensors as boxes, reads as arrows. */
void dot_print(const Graph *g, Text *out);

#endif
