/* tune_child.c: a plan in a process of its own: compiled, launched once, checked, timed. What ends that process, or keeps it
 * busy, does not end the search.
 *
 * It is a copy of this one, so the inputs and what the evaluator made of them are there already; nothing here has started a
 * thread or a GPU's context before. Signals of the terminal reach this process alone; the other's group, its worker with it,
 * is killed. */
#define _GNU_SOURCE /* sigaction's flags under -std=c11 */
#include "driver/cpu_launch.h"
#include "driver/isolation.h"
#include "driver/output_file.h"
#include "driver/timing.h"
#include "driver/tune.h"
#include "runtime/cuda.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const double TIMES_BEST = 4; /* what takes so many times as long as the best is not timed any more */

/* --- being asked to stop --- */

static volatile sig_atomic_t stops;

/* The second time is the end. */
static void
asked_to_stop(int sig)
{
	(void)sig;
	if (stops++ == 0)
		return;
	output_abandon(&host_default()->files);
	_exit(EXIT_INTERRUPTED);
}

void
tune_listen(void)
{
	struct sigaction stop = {.sa_handler = asked_to_stop}; /* what waits is interrupted */
	sigaction(SIGINT, &stop, NULL);
}

bool
tune_stopped(void)
{
	return stops > 0;
}

/* --- in the process --- */

void
tune_tell(int to, const TuneMessage *m)
{
	if (write(to, m, sizeof *m) != (ssize_t)sizeof *m)
		_exit(EXIT_IO);
}

static void
say_step(int to, TuneStep step, double us)
{
	TuneMessage m = {.step = step, .us = us};
	tune_tell(to, &m);
}

typedef struct {
	TuneTrial *t;
	Results *results;
	int to;
	const char *why; /* a result that is wrong; NULL: none is */
	Timing time;
} Launching;

static void
copy_inouts(const TuneTrial *t, void **saved, bool back)
{
	const Graph *g = t->graph;
	for (uint32_t k = 0; k < t->binding->nparam; k++) {
		const BoundParam *p = &t->binding->param[k];
		if (g->tensor.at[g->param.at[k]].kind != TENSOR_INOUT)
			continue;
		if (!saved[k])
			saved[k] = arena_alloc(&t->s->data, (size_t)p->bytes + 1);
		memcpy(back ? p->data : saved[k], back ? saved[k] : p->data, (size_t)p->bytes);
	}
}

/* Inouts have their first values again. */
static texo_status
begin_again(const TuneTrial *t, CpuLaunch *l, void **saved)
{
	texo_status st = TEXO_OK;
	copy_inouts(t, saved, true);
	for (uint32_t k = 0; l->device && !st && k < l->ntensor; k++)
		if (l->memory[k].in && l->memory[k].out)
			st = cuda_copy_in(l->rt, l->tensor[k].data, l->memory[k].host, l->memory[k].bytes);
	return st;
}

static double
now_us(const Session *s)
{
	return (double)s->host->clock.now_ns(s->host->clock.user) * 1e-3;
}

/* A launch that is timed as it goes, to see whether more are worth it. */
static texo_status
launch_again(Launching *x, CpuLaunch *l, void **saved, double *us)
{
	texo_status st = begin_again(x->t, l, saved);
	double start = now_us(x->t->s);
	if (!st)
		st = cpu_launch(l);
	*us = now_us(x->t->s) - start;
	return st ? st : begin_again(x->t, l, saved);
}

static bool
launch_and_time(Session *s, CpuLaunch *l, void *user)
{
	Launching *x = user;
	const TuneTrial *t = x->t;
	void **saved = ARENA_ARRAY(&s->arena, void *, t->binding->nparam + 1);
	double us = 0;
	copy_inouts(t, saved, false);
	texo_status st = cpu_prepare(s, l);
	if (st == TEXO_OK) {
		say_step(x->to, TUNE_COMPILED, 0);
		st = cpu_launch(l);
	}
	if (st == TEXO_OK && l->device)
		st = device_move_out(l);
	if (st == TEXO_OK && !tune_reference_agrees(t->reference, &s->arena, x->results, &x->why))
		return true;
	if (st == TEXO_OK)
		st = launch_again(x, l, saved, &us);
	if (st == TEXO_OK)
		say_step(x->to, TUNE_CHECKED, us);
	x->time = (Timing){.median = us};
	if (st == TEXO_OK && (t->best_us == 0 || us < TIMES_BEST * t->best_us + 1000))
		st = l->device ? timing_take_cuda(s, l, t->binding, &x->time) : timing_take(s, l, t->binding, &x->time);
	return cpu_outcome(s, l, st, t->graph, t->diags, x->results);
}

bool
tune_try(Session *s, void *trial, int to)
{
	TuneTrial *t = trial;
	Results results = {0};
	Launching x = {.t = t, .results = &results, .to = to};
	PassOptions po;
	CodegenResult code;
	if (!compile_pass_options(s, &po))
		return false;
	po.late = true;
	po.choice = t->choice;
	po.nchoice = t->nchoice;
	Program *p = compile_program(s, t->to_compile, &po);
	CodegenOptions co = {.cpu = compile_cpu_name(s), .opt_level = 2, .late = true};
	const LaunchCode launched = {&code, NULL};
	if (!compile_code(s, p, &co, &code) || !cpu_loaded(s, t->binding, &launched, &results, launch_and_time, &x))
		return false;
	if (results.failed)
		return problem(&s->problem, EXIT_INPUT, "the graph fails on these inputs");
	if (x.why)
		return problem(&s->problem, EXIT_DIFFERS, "%s", x.why);
	say_step(to, TUNE_DONE, x.time.median);
	return true;
}

/* Nothing that it would print is wanted; why it fails is said in a message. */
static void
be_child(Session *s, TuneBody *body, void *arg, int to)
{
	int nowhere = open("/dev/null", O_RDWR);
	setpgid(0, 0);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || nowhere < 0 || dup2(nowhere, 1) < 0 || dup2(nowhere, 2) < 0)
		_exit(EXIT_IO);
	if (!body(s, arg, to)) {
		TuneMessage m = {.step = TUNE_FAILED, .exit = s->problem.exit};
		snprintf(m.text, sizeof m.text, "%s", s->problem.text);
		snprintf(m.help, sizeof m.help, "%s", s->problem.help ? s->problem.help : "");
		tune_tell(to, &m);
	}
	_exit(EXIT_OK);
}

/* --- beside it --- */

static double
seconds(const Session *s)
{
	return now_us(s) * 1e-6;
}

typedef enum { HEARD_ALL, HEARD_END, HEARD_LATE, HEARD_STOP } Heard; /* a message; none, since the process ended, is late, or all stops */

static Heard
next_message(Session *s, int from, double limit, TuneMessage *out)
{
	double until = limit > 0 ? seconds(s) + limit : 0;
	size_t n = 0;
	while (n < sizeof *out) {
		struct pollfd p = {.fd = from, .events = POLLIN};
		double left = limit > 0 ? until - seconds(s) : 1;
		if (tune_stopped())
			return HEARD_STOP;
		if (left <= 0)
			return HEARD_LATE;
		if (poll(&p, 1, left < 1 ? (int)(left * 1000) + 1 : 1000) <= 0)
			continue;
		ssize_t got = read(from, (char *)out + n, sizeof *out - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return HEARD_END;
		n += (size_t)got;
	}
	return HEARD_ALL;
}

static void
set_failed(TuneMessage *out, const char *text)
{
	*out = (TuneMessage){.step = TUNE_FAILED, .exit = EXIT_BUG};
	snprintf(out->text, sizeof out->text, "%s", text);
}

/* Every message until the last. */
static Heard
listen_to(Session *s, int from, const double *limit_s, double *took_s, TuneMessage *out)
{
	for (TuneStep step = TUNE_COMPILED;; step = (TuneStep)(out->step + 1)) {
		double start = seconds(s), limit = limit_s ? limit_s[step] : 0;
		Heard is = next_message(s, from, limit, out);
		if (is == HEARD_LATE)
			set_failed(out, arena_text(&s->arena, "no end within %.1f s", limit));
		if (is != HEARD_ALL || out->step == TUNE_FAILED)
			return is;
		if (took_s)
			took_s[out->step] = seconds(s) - start;
		if (out->step == TUNE_DONE)
			return is;
	}
}

bool
tune_process(Session *s, TuneBody *body, void *arg, const double limit_s[TUNE_FAILED], double took_s[TUNE_FAILED], TuneMessage *out)
{
	int ends[2], status = 0;
	if (pipe(ends) != 0) {
		set_failed(out, arena_text(&s->arena, "no pipe: %s", strerror(errno)));
		return true;
	}
	pid_t child = fork();
	if (child == 0) {
		close(ends[0]);
		be_child(s, body, arg, ends[1]);
	}
	close(ends[1]);
	if (child < 0) {
		close(ends[0]);
		set_failed(out, arena_text(&s->arena, "no process: %s", strerror(errno)));
		return true;
	}
	setpgid(child, child); /* whoever comes first */
	Heard is = listen_to(s, ends[0], limit_s, took_s, out);
	kill(-child, SIGKILL); /* with its worker; it has said all */
	close(ends[0]);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (is == HEARD_END)
		set_failed(out, WIFSIGNALED(status) ? arena_text(&s->arena, "the process was ended by signal %d", WTERMSIG(status))
		                                    : "the process ended without an answer");
	return is != HEARD_STOP;
}
