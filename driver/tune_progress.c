/* tune_progress.c: what texo tune says: before, what it will search; meanwhile one line; at the end the best five. */
#include "driver/tune.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BEST = 5 };

static const char *
per_second(Arena *a, double v, const char *unit)
{
	bool large = v >= 1e12;
	return arena_text(a, "%.3g %s%s", v * (large ? 1e-12 : 1e-9), large ? "T" : "G", unit);
}

/* " (3.9 TB/s, 81 % of roof)" of a time. */
static const char *
rate_text(const Tune *t, double us)
{
	double bytes = t->work.bytes / us * 1e6, flops = t->work.flops / us * 1e6;
	double of_bytes = bytes / (t->roof.gbps * 1e9), of_flops = flops / (t->roof.tflops * 1e12);
	Arena *a = &t->s->arena;
	if (!(us > 0) || !(t->roof.gbps > 0))
		return "";
	if (of_flops > 1) /* by units for matrices, of which the roof knows nothing */
		return arena_text(a, " (%s)", per_second(a, flops, "FLOP/s"));
	if (of_flops > of_bytes)
		return arena_text(a, " (%s, %.0f %% of roof)", per_second(a, flops, "FLOP/s"), 100 * of_flops);
	return arena_text(a, " (%s, %.0f %% of roof)", per_second(a, bytes, "B/s"), 100 * of_bytes);
}

void
tune_announce(const Tune *t, const char *path)
{
	Session *s = t->s;
	say_note(s, "graph %s, target %s%s, %s", t->entry.graph, t->entry.target, binding_dims_text(&t->binding, &s->arena, false), t->entry.machine);
	say_note(s, "%u plan%s of %u kernel%s, at most %.0f s, for %s; the result goes to %s", t->candidate.n, t->candidate.n == 1 ? "" : "s",
	         t->group.n, t->group.n == 1 ? "" : "s", t->budget_s, tune_bucket_text(&s->arena, t->entry.range.at, t->entry.range.n), path);
	for (uint32_t k = 0; k < t->group.n; k++)
		say_detail(s, "%s: the model takes %s", t->candidate.at[t->group.at[k].first].kernel, t->group.at[k].model);
	if (t->ntried)
		say_note(s, "%u of them were tried before", t->ntried);
}

/* Seconds that are left: what the rest would take, within the budget. */
static unsigned
time_left(const Tune *t)
{
	double now = tune_now(t->s), each = t->nnow ? (now - t->search_s) / t->nnow : 0;
	double rest = each * (t->candidate.n - t->ntried), budget = t->start_s + t->budget_s - now;
	rest = t->nnow == 0 || rest > budget ? budget : rest;
	return rest > 0 ? (unsigned)rest : 0;
}

/* One line of a terminal, written over and over; elsewhere, with -v, a line for each plan. */
void
tune_progress(const Tune *t, bool last)
{
	Session *s = t->s;
	const char *term = getenv("TERM");
	bool live = isatty(2) && !option_on(s->options, OPT_QUIET) && !(term && strcmp(term, "dumb") == 0);
	const char *before = t->last_us > 0 ? arena_text(&s->arena, "  last %.2f", t->last_us) : "";
	unsigned left = time_left(t);
	const char *text = arena_text(&s->arena, "[%3u/%u] best %.2f us%s%s  failed %u  eta %u:%02u", t->ntried, t->candidate.n, t->best_us,
	                              rate_text(t, t->best_us), before, t->nfailed, left / 60, left % 60);
	if (!live)
		say_detail(s, "%s", text);
	else
		say_text(s, arena_text(&s->arena, "\r%s\x1b[K%s", text, last ? "\n" : ""));
}

/* --- at the end --- */

static uint32_t
best_five(const Tune *t, const TuneCandidate *best[BEST])
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < t->candidate.n; k++) {
		const TuneCandidate *c = &t->candidate.at[k];
		uint32_t at = n;
		if (!c->tried || c->failed)
			continue;
		while (at > 0 && best[at - 1]->us > c->us)
			at--;
		if (at == BEST)
			continue;
		n += n < BEST;
		for (uint32_t i = n - 1; i > at; i--)
			best[i] = best[i - 1];
		best[at] = c;
	}
	return n;
}

/* Why the search ended before all was tried, or "". */
static const char *
why_ended(const Tune *t)
{
	return t->ntried == t->candidate.n ? "" : t->out_of_time ? "; the budget is spent" : "; stopped";
}

void
tune_print(const Tune *t, const char *path)
{
	Text *out = &t->s->out;
	const TuneCandidate *best[BEST];
	uint32_t n = best_five(t, best);
	const char *file = t->s->options->operand.at[0];
	text_printf(out, "%u of %u plans tried, %u failed%s; checked by the %s\n", t->ntried, t->candidate.n, t->nfailed, why_ended(t),
	            t->reference.text);
	text_printf(out, "%10.2f us  the model's plans%s\n", t->default_us, rate_text(t, t->default_us));
	for (uint32_t k = 0; k < n; k++)
		text_printf(out, "%10.2f us  %.*s: %s\n", best[k]->us, (int)strcspn(best[k]->kernel, "@"), best[k]->kernel, best[k]->plan);
	if (t->entry.choice.n == 0) {
		text_printf(out, "no plan that was tried is better by two in a hundred: %s says so for %s\n", path,
		            tune_bucket_text(out->arena, t->entry.range.at, t->entry.range.n));
		return;
	}
	text_printf(out, "%.3f times as fast%s%s, for %s\n", t->default_us / t->best_us, rate_text(t, t->best_us),
	            t->confirmed ? "" : ", timed once", tune_bucket_text(out->arena, t->entry.range.at, t->entry.range.n));
	text_printf(out, "texo run %s --tune=%s\n", file, path);
}

void
tune_print_json(const Tune *t, const char *path)
{
	Text *out = &t->s->out;
	text_printf(out, "{\"graph\":");
	text_json(out, t->entry.graph, strlen(t->entry.graph));
	text_printf(out, ",\"target\":");
	text_json(out, t->entry.target, strlen(t->entry.target));
	text_printf(out, ",\"dims\":");
	binding_dims_json(&t->binding, out);
	text_printf(out, ",\"candidates\":%u,\"tried\":%u,\"failed\":%u,\"default_us\":%.3f,\"tuned_us\":%.3f,\"confirmed\":%s,\"file\":",
	            t->candidate.n, t->ntried, t->nfailed, t->default_us, t->best_us, t->confirmed ? "true" : "false");
	text_json(out, path, strlen(path));
	text_printf(out, ",\"choices\":[");
	for (uint32_t k = 0; k < t->entry.choice.n; k++) {
		text_printf(out, "%s{\"kernel\":", k ? "," : "");
		text_json(out, t->entry.choice.at[k].kernel, strlen(t->entry.choice.at[k].kernel));
		text_printf(out, ",\"plan\":");
		text_json(out, t->entry.choice.at[k].plan, strlen(t->entry.choice.at[k].plan));
		text_printf(out, "}");
	}
	text_printf(out, "]}\n");
}
