/* tune.h: the parts of texo tune: what is searched, the reference that results are held against, the process that a plan
 * is tried in, and the search. */
#ifndef TEXO_DRIVER_TUNE_H
#define TEXO_DRIVER_TUNE_H

#include "driver/results.h"
#include "driver/roof.h"
#include "driver/run_parts.h"
#include "driver/tune_file.h"
#include "passes/cost/cost.h"

/* --- tune_reference.c: what the results must be, by the evaluator --- */
typedef struct {
	EvalOutputs want;
	int64_t **sample;    /* by result: which elements want has; NULL: all of them */
	uint32_t nsample;    /* 0: of every result all */
	const char *text;    /* "evaluator", or of how many elements */
} TuneReference;

/* Evaluates the graph on the bound inputs; where that would take too long, some elements of each result, which `again`, the
 * same graph anew, is changed for. A failed check or access is a diagnostic. */
bool tune_reference_make(Session *s, const Binding *b, Graph *again, Diags *diags, TuneReference *out);
/* Whether the results lie within the evaluator's bounds; *why: which does not. */
bool tune_reference_agrees(const TuneReference *r, Arena *a, const Results *got, const char **why);

/* --- tune_child.c: a plan in a process of its own --- */
enum { TUNE_TEXT = 1000 };
typedef enum { TUNE_COMPILED, TUNE_CHECKED, TUNE_DONE, TUNE_FAILED } TuneStep;

/* What the process says when it has come so far. */
typedef struct {
	TuneStep step;
	double us;
	ExitCode exit;       /* TUNE_FAILED: what it would be, and why */
	RunDevice device;    /* of the machine */
	Roof roof;
	char text[TUNE_TEXT], help[TUNE_TEXT];
} TuneMessage;

typedef struct {
	Session *s;
	const Graph *graph;          /* unchanged: a process has its own */
	Graph *to_compile;
	Binding *binding;
	Diags *diags;
	const TuneReference *reference;
	const TuneChoice *choice;
	uint32_t nchoice;
	double best_us;              /* 0: none yet. What takes many times as long is not timed on */
	double first_s[TUNE_FAILED]; /* how long each step took without choices, in seconds; 0: not known */
} TuneTrial;

/* What is done in the process; it says by tune_tell how far it is. False: why is the session's problem. */
typedef bool TuneBody(Session *s, void *arg, int to);
void tune_tell(int to, const TuneMessage *m);
bool tune_try(Session *s, void *trial, int to);
/* Runs the body in a process, which is ended when a step takes longer than limit_s allows (0: no limit) or *stop is set.
 * False: it was stopped. */
bool tune_process(Session *s, TuneBody *body, void *arg, const double limit_s[TUNE_FAILED], double took_s[TUNE_FAILED],
                  TuneMessage *out);
/* How often the user has asked to stop, since tune_listen. */
void tune_listen(void);
bool tune_stopped(void);

/* --- tune_search.c --- */
typedef struct {
	const char *kernel, *plan;   /* the kernel as the file calls it */
	uint64_t unit;
	uint32_t group;
	bool tried;
	double us;                   /* with the best of what was found before */
	const char *failed;
} TuneCandidate;

typedef struct {
	uint32_t first, n;           /* its candidates */
	const char *model;           /* the plan that the cost model takes at these sizes */
	uint32_t best;               /* 1 + candidate; 0: the model's */
} TuneGroup;

typedef struct {
	Session *s;
	SourceUnit unit;
	Graph *graph;
	Binding binding;
	Work work;
	RunDevice device;
	Roof roof;
	TuneEntry entry;             /* as it will be written */
	TuneReference reference;
	VEC(TuneGroup) group;
	VEC(TuneCandidate) candidate;
	uint32_t ntried, nfailed, nnow; /* nnow: of those, in this search */
	double last_us;                 /* 0: it failed, or nothing was tried */
	double budget_s, start_s, search_s; /* search_s: when the first candidate began */
	double default_us, best_us;
	double first_s[TUNE_FAILED];
	bool out_of_time, confirmed;
} Tune;

/* Every alternative at these sizes of every kernel that has some, in an order by the seed. */
bool tune_list(Tune *t, Graph *again, uint64_t seed);
/* Tries them; what was found is in the groups. */
bool tune_search(Tune *t);
double tune_now(const Session *s);
/* The choices that are best so far, with this candidate's for its own group (NULL: as they are). */
uint32_t tune_best(const Tune *t, const TuneCandidate *with, TuneChoice *out);

/* --- tune_progress.c: what is said meanwhile, and at the end --- */
void tune_announce(const Tune *t, const char *path);
void tune_progress(const Tune *t, bool last);
void tune_print(const Tune *t, const char *path);
void tune_print_json(const Tune *t, const char *path);

#endif
