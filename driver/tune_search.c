/* tune_search.c: which plans there are, and which is best: one kernel after another, each of its plans with the best of the
 * kernels before (coordinate descent). What wins is timed again beside the model's plans, so that a lucky time wins
 * nothing. */
#include "driver/cpu_launch.h"
#include "driver/tune.h"

#include <inttypes.h>
#include <string.h>

static const double WORTH = 0.98; /* a plan must take less than this part of the time of the best before it */
static const double LEAST_LIMIT_S = 2, TIMES_FIRST = 8, COMPILE_LIMIT_S = 10;

double
tune_now(const Session *s)
{
	return (double)s->host->clock.now_ns(s->host->clock.user) * 1e-9;
}

/* --- candidates --- */

static uint64_t
next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

static bool
is_positive(const LaunchEnv *env, ExprId e)
{
	int64_t v;
	return launch_value(env, e, &v) && v > 0;
}

static void
shuffle(TuneCandidate *at, uint32_t n, uint64_t *state)
{
	for (uint32_t k = n; k > 1; k--) {
		uint32_t other = (uint32_t)(next_random(state) % k);
		TuneCandidate c = at[k - 1];
		at[k - 1] = at[other];
		at[other] = c;
	}
}

static bool
is_listed(const Tune *t, uint64_t unit)
{
	for (uint32_t k = 0; k < t->candidate.n; k++)
		if (t->candidate.at[k].unit == unit)
			return true;
	return false;
}

static void
list_unit(Tune *t, const Graph *g, const PlanUnit *u, const LaunchEnv *env, uint64_t *state)
{
	Arena *a = &t->s->arena;
	Name name = g->tensor.at[u->node].name;
	const char *kernel = arena_text(a, "%s@%016" PRIx64, name ? name_text(g->names, name) : "", u->digest);
	TuneGroup group = {.first = t->candidate.n};
	bool one = t->device == DEVICE_CPU && cpu_threads(t->s) == 1;
	for (uint32_t k = 0; k < u->at.n && !group.model; k++)
		if (is_positive(env, u->at.at[k].model))
			group.model = u->at.at[k].text;
	for (uint32_t k = 0; k < u->at.n && group.model; k++) {
		const PlanAlternative *p = &u->at.at[k];
		if (strcmp(p->text, group.model) == 0 || (one && p->threads) || !is_positive(env, p->could))
			continue;
		TuneCandidate c = {.kernel = kernel, .plan = p->text, .unit = u->digest, .group = t->group.n};
		vec_push(a, &t->candidate, c);
	}
	group.n = t->candidate.n - group.first;
	if (group.n == 0)
		return;
	shuffle(&t->candidate.at[group.first], group.n, state);
	vec_push(a, &t->group, group);
}

bool
tune_list(Tune *t, Graph *again, uint64_t seed)
{
	PassOptions po;
	uint64_t state = seed;
	if (!compile_pass_options(t->s, &po))
		return false;
	po.alternatives = true;
	const Program *p = compile_program(t->s, again, &po);
	LaunchEnv env = t->binding.env;
	env.graph = p->graph;
	for (uint32_t k = 0; k < p->unit.n; k++)
		if (!is_listed(t, p->unit.at[k].digest))
			list_unit(t, p->graph, &p->unit.at[k], &env, &state);
	return true;
}

/* --- trying --- */

uint32_t
tune_best(const Tune *t, const TuneCandidate *with, TuneChoice *out)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < t->group.n; k++) {
		uint32_t best = t->group.at[k].best;
		const TuneCandidate *c = with && with->group == k ? with : best ? &t->candidate.at[best - 1] : NULL;
		if (c)
			out[n++] = (TuneChoice){t->entry.graph, c->unit, c->kernel, c->plan, t->entry.range.at, t->entry.range.n};
	}
	return n;
}

static bool
try_choices(Tune *t, const TuneChoice *choice, uint32_t n, bool first, TuneMessage *out)
{
	TuneTrial trial = {.s = t->s, .graph = t->graph, .to_compile = t->graph, .binding = &t->binding, .diags = &t->unit.diags,
	                   .reference = &t->reference, .choice = choice, .nchoice = n, .best_us = t->best_us};
	double limit[TUNE_FAILED] = {0};
	for (unsigned k = 0; k < TUNE_FAILED && !first; k++)
		limit[k] = (k == TUNE_COMPILED ? COMPILE_LIMIT_S : LEAST_LIMIT_S) + TIMES_FIRST * t->first_s[k];
	return tune_process(t->s, tune_try, &trial, limit, first ? t->first_s : NULL, out);
}

/* False: all stops. */
static bool
try_candidate(Tune *t, uint32_t n)
{
	TuneChoice *choice = ARENA_ARRAY(&t->s->arena, TuneChoice, t->group.n + 1);
	TuneCandidate *c = &t->candidate.at[n];
	TuneMessage m;
	if (!try_choices(t, choice, tune_best(t, c, choice), false, &m))
		return false;
	c->tried = true;
	c->us = m.us;
	c->failed = m.step == TUNE_DONE ? NULL : arena_text(&t->s->arena, "%s", m.text);
	t->ntried++;
	t->nnow++;
	t->nfailed += c->failed != NULL;
	t->last_us = c->failed ? 0 : c->us;
	return true;
}

static void
take_better(Tune *t, uint32_t n)
{
	const TuneCandidate *c = &t->candidate.at[n];
	if (c->failed || c->us >= WORTH * t->best_us)
		return;
	t->best_us = c->us;
	t->group.at[c->group].best = n + 1;
}

/* Whether there is time for another, and for timing what is best again. */
static bool
has_time(Tune *t)
{
	double now = tune_now(t->s), each = t->nnow ? (now - t->search_s) / t->nnow : 0;
	bool found = t->best_us < t->default_us;
	t->out_of_time = now - t->start_s + (found ? 2 * each : 0) >= t->budget_s;
	return !t->out_of_time;
}

/* What is best, and the model's plans, once more. */
static void
confirm(Tune *t)
{
	TuneChoice *choice = ARENA_ARRAY(&t->s->arena, TuneChoice, t->group.n + 1);
	TuneMessage plain, best;
	uint32_t n = tune_best(t, NULL, choice);
	if (n == 0 || !try_choices(t, NULL, 0, false, &plain) || !try_choices(t, choice, n, false, &best))
		return;
	t->confirmed = true;
	bool better = plain.step == TUNE_DONE && best.step == TUNE_DONE && best.us < WORTH * plain.us;
	if (plain.step == TUNE_DONE)
		t->default_us = plain.us;
	t->best_us = better ? best.us : t->default_us;
	for (uint32_t k = 0; k < t->group.n && !better; k++)
		t->group.at[k].best = 0;
}

bool
tune_search(Tune *t)
{
	TuneMessage m;
	if (!try_choices(t, NULL, 0, true, &m))
		return problem(&t->s->problem, EXIT_INTERRUPTED, "stopped before anything was timed");
	if (m.step != TUNE_DONE) {
		problem(&t->s->problem, m.exit, "the model's own plans fail: %s", m.text);
		return *m.help ? problem_help(&t->s->problem, "%s", arena_text(&t->s->arena, "%s", m.help)) : false;
	}
	t->default_us = t->best_us = m.us;
	t->search_s = tune_now(t->s);
	for (uint32_t n = 0; n < t->candidate.n; n++) {
		if (!t->candidate.at[n].tried) {
			tune_progress(t, false);
			if (tune_stopped() || !has_time(t) || !try_candidate(t, n))
				break;
		}
		take_better(t, n);
	}
	confirm(t);
	tune_progress(t, true);
	return true;
}
