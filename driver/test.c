/* test.c: texo test F...: the test blocks of every file (test_blocks.h). Every block is compiled and
 * run in a session of its own, since passes rewrite the graph and a limit met by one block must not
 * end the others. Results are always compared with the evaluator within its derived bounds. */
#include "driver/compare.h"
#include "driver/isolation.h"
#include "driver/run_parts.h"
#include "driver/test_blocks.h"
#include "texo_rt.h"

#include <string.h>

typedef struct {
	const SourceUnit *source; /* read by the outer session */
	TestBlock *block; /* NULL: the file has none and is only compiled */
	RunDevice device;
	const char *cuda, *gpu; /* as Session has them; and: */
	Isolation *isolation;
	uint32_t line;
	const char *why;  /* the failure in a few words, in the outer arena; NULL: passed */
	Arena *outer;
} TestRun;

typedef struct {
	Session *s;
	TestRun *test;
	SourceUnit unit;
	Graph *graph;
	Binding binding;
	EvalOutputs oracle;
	Results results;
	int64_t nkernel;
	ExitCode exit; /* of a test that failed; what is missing here is no fault of the program's */
} OneTest;

static bool
fail_test(OneTest *t, const char *why)
{
	if (!t->test->why)
		t->test->why = arena_text(t->test->outer, "%s", why);
	return false;
}

static bool
fail_problem(OneTest *t)
{
	const Problem *p = &t->s->problem;
	if (p->exit == EXIT_DEVICE)
		t->exit = EXIT_DEVICE;
	return fail_test(t, p->help ? arena_text(&t->s->arena, "%s; %s", p->text, p->help) : p->text);
}

/* Whether the expected diagnostic is among those from `first` on. */
static bool
has_error(const OneTest *t, uint32_t first)
{
	const TestBlock *b = t->test->block;
	const Diags *d = &t->unit.diags;
	for (uint32_t i = first; i < d->list.n; i++) {
		const Diag *g = &d->list.at[i];
		if (g->code == b->error && (!b->error_line || (g->at.line == b->error_line && g->at.col == b->error_col)))
			return true;
	}
	return false;
}

static bool
missing_error(OneTest *t)
{
	const TestBlock *b = t->test->block;
	session_diags(t->s, &t->unit.diags);
	return fail_test(t, arena_text(&t->s->arena, b->error_line ? "%s at %u:%u was expected and not reported"
	                                                           : "%s was expected and not reported",
	                               code_info[b->error].id, b->error_line, b->error_col));
}

static bool
bind_block(OneTest *t)
{
	Session *s = t->s;
	TestBlock *b = t->test->block;
	BindOptions bo = {.files = &s->host->files, .diags = &t->unit.diags, .arena = &s->arena, .data = &s->data, .subject = &s->subject};
	return bind_inputs(t->graph, b->input.at, b->input.n, &bo, &t->binding, &s->problem);
}

/* Kernels are counted on every device. */
static bool
run_block(OneTest *t, DiagCode *failed)
{
	Session *s = t->s;
	CodegenResult code;
	PassOptions po;
	CodegenOptions co = {.cpu = compile_cpu_name(s), .opt_level = 2, .late = true};
	const LaunchCode launched = {&code, NULL};
	if (!run_oracle(s, &t->binding, &t->unit.diags, &t->oracle, failed))
		return false;
	if (!*failed && !results_of_oracle(s, &t->binding, &t->oracle, &t->results))
		return false;
	if (t->test->device == DEVICE_INTERP && !t->test->block->kernels_relation[0])
		return true;
	if (!compile_pass_options(s, &po))
		return false;
	po.late = true;
	Program *p = compile_program(s, t->graph, &po);
	if (!p)
		return problem(&s->problem, EXIT_USAGE, "--stop leaves nothing to run");
	t->nkernel = program_kernels(p);
	if (t->test->device == DEVICE_INTERP)
		return true;
	DiagCode by_oracle = *failed;
	if (!compile_code(s, p, &co, &code) || !run_cpu(s, &t->binding, &launched, &t->unit.diags, &t->results))
		return false;
	*failed = t->results.failed;
	if (by_oracle != *failed)
		return problem(&s->problem, EXIT_DIFFERS, "the evaluator reports %s, the device %s",
		               by_oracle ? code_info[by_oracle].id : "nothing", *failed ? code_info[*failed].id : "nothing");
	return true;
}

static ResultTensor *
result_named(OneTest *t, const char *name, uint32_t *index)
{
	for (uint32_t i = 0; i < t->results.n; i++)
		if (strcmp(t->results.at[i].name, name) == 0) {
			*index = i;
			return &t->results.at[i];
		}
	fail_test(t, arena_text(&t->s->arena, "the graph has no result '%s'", name));
	return NULL;
}

static bool
check_expectation(OneTest *t, const InputSpec *e)
{
	Comparison c;
	uint32_t i;
	ResultTensor *r = result_named(t, e->name, &i);
	if (!r)
		return false;
	bool ok = e->kind == INPUT_FILE ? compare_file(t->s, r, e->path, 0, 0, &c)
	                                : compare_literal(t->s, &t->oracle.result[i], r, &e->literal, &c);
	if (!ok)
		return fail_problem(t);
	return !c.differs || fail_test(t, c.text);
}

static bool
check_results(OneTest *t)
{
	const TestBlock *b = t->test->block;
	for (uint32_t i = 0; i < t->results.n; i++) {
		Comparison c = compare_oracle(&t->s->arena, &t->results.at[i], &t->oracle.result[i]);
		if (c.differs)
			return fail_test(t, c.text);
	}
	for (uint32_t i = 0; i < b->expect.n; i++)
		if (!check_expectation(t, &b->expect.at[i]))
			return false;
	if (t->test->device != DEVICE_CUDA && !test_kernels_hold(b, t->nkernel)) /* fusion is not built there */
		return fail_test(t, arena_text(&t->s->arena, "%lld kernels, but 'kernels %s %lld' is asked for",
		                               (long long)t->nkernel, b->kernels_relation, (long long)b->kernels));
	return true;
}

static bool
launch_block(OneTest *t)
{
	TestBlock *b = t->test->block;
	DiagCode failed;
	uint32_t before = t->unit.diags.list.n;
	t->graph = compile_pick(t->s, &t->unit, b->graph);
	if (!t->graph || !bind_block(t) || !run_block(t, &failed))
		return (b->error && has_error(t, before)) || fail_problem(t);
	if (b->error)
		return has_error(t, before) || missing_error(t);
	if (failed) {
		session_diags(t->s, &t->unit.diags);
		return fail_test(t, arena_text(&t->s->arena, "the launch fails with %s", code_info[failed].id));
	}
	return check_results(t);
}

static ExitCode
test_body(Session *s, void *arg)
{
	OneTest t = {.s = s, .test = arg, .exit = EXIT_DIFFERS};
	TestBlock *b = t.test->block;
	s->device = t.test->cuda;
	s->gpu = t.test->gpu;
	s->isolation = t.test->isolation;
	compile_begin(s, t.test->source->path, t.test->source->text, t.test->source->n, &t.unit);
	compile_unit(s, &t.unit, b && b->has_fp ? &b->fp : NULL);
	if (b && b->error && has_error(&t, 0))
		return EXIT_OK;
	if (b && b->error && t.unit.failed) {
		missing_error(&t);
	} else if (t.unit.failed) {
		session_diags(s, &t.unit.diags);
		fail_test(&t, "the file does not compile");
	} else if (b) {
		launch_block(&t);
	}
	return t.test->why ? t.exit : EXIT_OK;
}

typedef struct {
	Session *s;
	RunDevice device;
	uint32_t passed, failed;
	ExitCode worst; /* the largest */
	Text json;
} TestAll;

static void
report(TestAll *all, const TestRun *t, const char *name)
{
	Text *json = &all->json;
	*(t->why ? &all->failed : &all->passed) += 1;
	if (t->why)
		say_error(all->s, "%s:%u: test '%s' failed: %s", t->source->path, t->line, name, t->why);
	else
		say_detail(all->s, "%s:%u: test '%s' passed", t->source->path, t->line, name);
	text_printf(json, "%s{\"file\":", json->n ? "," : "");
	text_json(json, t->source->path, strlen(t->source->path));
	text_printf(json, ",\"line\":%u,\"name\":", t->line);
	text_json(json, name, strlen(name));
	text_printf(json, ",\"passed\":%s,\"message\":", t->why ? "false" : "true");
	text_json(json, t->why ? t->why : "", t->why ? strlen(t->why) : 0);
	text_printf(json, "}");
}

static void
ends_with(TestAll *all, ExitCode code)
{
	all->worst = code > all->worst ? code : all->worst;
}

/* A file without blocks counts only when it does not compile. */
static void
run_one(TestAll *all, const SourceUnit *source, TestBlock *b)
{
	Session *s = all->s;
	TestRun t = {.source = source, .block = b, .device = all->device, .cuda = s->device, .gpu = s->gpu,
	             .isolation = s->isolation, .line = b ? b->line : 1, .outer = &s->arena};
	if (b && b->broken) {
		t.line = b->broken_line;
		t.why = b->broken;
		ends_with(all, EXIT_DIFFERS);
	} else {
		const char *why = NULL;
		ExitCode code = session_run(s->host, s->options, s->arena.limit, test_body, &t, &why);
		if (why && !t.why)
			t.why = why;
		ends_with(all, code == EXIT_INPUT ? EXIT_DIFFERS : code); /* a limit that the block met */
	}
	if (b || t.why)
		report(all, &t, b ? b->name : "compiles");
}

static bool
test_file(TestAll *all, const char *path)
{
	Session *s = all->s;
	SourceUnit u;
	TestBlocks blocks;
	const char *slash = strrchr(path, '/');
	const char *base = slash ? arena_copy(&s->arena, path, slash == path ? 1 : (size_t)(slash - path)) : NULL;
	if (!compile_open(s, path, &u))
		return false;
	test_blocks_find(&s->arena, u.text, u.n, base, &blocks);
	for (uint32_t i = 0; i < blocks.n; i++)
		run_one(all, &u, &blocks.at[i]);
	if (blocks.n == 0)
		run_one(all, &u, NULL);
	isolation_end(s->isolation);
	return true;
}

ExitCode
command_test(Session *s, void *arg)
{
	TestAll all = {.s = s};
	(void)arg;
	text_init(&all.json, &s->arena);
	if (!device_parse(s, &all.device))
		return session_fail(s);
	texo_rt_options held_options = {.struct_size = sizeof held_options, .device = s->device};
	texo_rt *held = NULL; /* so that a device's context is made once, not for every block */
	if (s->device && texo_rt_create(&held_options, &held) != TEXO_OK) {
		problem(&s->problem, EXIT_DEVICE, "--device=%s: %s", s->device, texo_last_error());
		return session_fail(s);
	}
	for (uint32_t i = 0; i < s->options->operand.n; i++)
		if (!test_file(&all, s->options->operand.at[i]))
			ends_with(&all, session_fail(s));
	texo_rt_destroy(held);
	s->subject = NULL;
	if (option_on(s->options, OPT_JSON))
		text_printf(&s->out, "{\"tests\":[%s],\"passed\":%u,\"failed\":%u}\n", text_get(&all.json), all.passed, all.failed);
	else
		text_printf(&s->out, "%u passed, %u failed\n", all.passed, all.failed);
	return all.worst;
}
