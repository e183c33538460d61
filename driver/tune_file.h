/* tune_file.h: F.tune, which plans were found best, as JSON that people read and commit.
 *
 *   {"texo-tune": 1, "entries": [
 *     {"graph": "product", "target": "cuda:sm_90a",          what it is about,
 *      "bucket": {"M": [1281, 1536]},                        and for which sizes: from, to
 *      "choices": [{"kernel": "c@0123456789abcdef", "plan": "contract ..."}],
 *      "measured": {"dims": {"M": 1536}, "default_us": 50, "tuned_us": 45, "threads": 0, "checked": "evaluator"},
 *      "machine": "...", "build": "...",                     where, and by which texo
 *      "tried": [{"kernel": "...", "plan": "...", "us": 47} or "failed" for "us"]}]}
 *
 * A kernel is named by a definition that it computes and by a digest of what its definitions say (passes/schedule/
 * alternatives.h), which alone counts. What a file has of other graphs and targets is left as it is. */
#ifndef TEXO_DRIVER_TUNE_FILE_H
#define TEXO_DRIVER_TUNE_FILE_H

#include "driver/session.h"
#include "passes/pass.h"

typedef struct {
	const char *kernel, *plan;
	uint64_t unit;      /* the digest in kernel */
	double us;          /* of what was tried */
	const char *failed; /* or why it has no time; else NULL */
} TunePlan;

typedef struct {
	const char *name;
	int64_t value;
} TuneDim;

typedef struct {
	const char *graph, *target, *machine, *build, *checked;
	VEC(TuneRange) range;
	VEC(TuneDim) dim;
	VEC(TunePlan) choice, tried;
	double default_us, tuned_us;
	int64_t threads; /* 0: of a GPU */
} TuneEntry;

typedef struct {
	VEC(TuneEntry) entry;
} TuneFile;

/* False with a problem that says where. Keys that it does not know are said. */
bool tune_file_read(Session *s, const char *path, TuneFile *out);
void tune_file_print(const TuneFile *f, Text *out);
/* The entry about the same graph, target and bucket, or NULL. */
TuneEntry *tune_file_entry(TuneFile *f, const TuneEntry *like);

/* "cuda:sm_90a", "cpu:haswell": what a name that compile_cpu_name gave is called there. */
const char *tune_target(Arena *a, const char *cpu);
/* Reads --tune, if it is given, and puts what it has for this processor or GPU into the options. */
bool tune_take(Session *s, const char *cpu, PassOptions *o);
/* Whether all choices about the graph found their place; and says which did not. */
bool tune_taken(const Program *p, const PassOptions *o);
void tune_report(Session *s, const Program *p, const PassOptions *o);
/* The choices as a text, for a cache's key; "": none. */
const char *tune_key(Arena *a, const PassOptions *o);
/* "M in 1281..1536, N in 1..4" */
const char *tune_bucket_text(Arena *a, const TuneRange *range, uint32_t n);

#endif
