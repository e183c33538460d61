/* options_test.c: the command line: forms, refusals and suggestions. */
#include "driver/near.h"
#include "driver/options.h"
#include "tests/driver/arena_fixture.h"

#include <string.h>

static const char *
no_env(const char *name)
{
	(void)name;
	return NULL;
}

static const char *
some_env(const char *name)
{
	if (strcmp(name, "TEXO_DEVICE") == 0)
		return "interp";
	return strcmp(name, "TEXO_FP") == 0 ? "bogus" : NULL;
}

static bool
parse(Options *o, GetEnvFn *env, const char *const *words)
{
	int n = 0;
	while (words[n])
		n++;
	return options_parse(&arena, n, (char *const *)words, env, o, &problem_met);
}

#define PARSE(o, ...) parse((o), no_env, (const char *const[]){"texo", __VA_ARGS__, NULL})

static void
forms(void **state)
{
	(void)state;
	Options o;
	assert_true(PARSE(&o, "run", "a.tex", "x=random", "--fp=strict", "-DN=4", "-D", "M=8", "-qv", "-o", "-", "--out",
	                  "y=-", "--", "--json"));
	assert_int_equal(o.command, CMD_RUN);
	assert_int_equal(o.operand.n, 3);
	assert_string_equal(o.operand.at[2], "--json");
	assert_string_equal(option_value(&o, OPT_FP), "strict");
	assert_string_equal(option_value(&o, OPT_DEFINE), "M=8");
	assert_string_equal(option_value(&o, OPT_OUTPUT), "-");
	assert_string_equal(option_value(&o, OPT_OUT), "y=-");
	assert_true(option_on(&o, OPT_QUIET) && option_on(&o, OPT_VERBOSE));
	assert_false(option_on(&o, OPT_JSON));
	assert_null(option_value(&o, OPT_GRAPH));
}

static void
last_wins_and_lists(void **state)
{
	(void)state;
	Options o;
	assert_true(PARSE(&o, "run", "--fp=strict", "--fp", "fast", "--emit=tir,llvm", "f"));
	assert_string_equal(option_value(&o, OPT_FP), "fast");
	assert_true(option_lists(&o, OPT_EMIT, "tir") && option_lists(&o, OPT_EMIT, "llvm"));
	assert_false(option_lists(&o, OPT_EMIT, "ir"));
}

static void
refuses(const char *wanted, const char *help, const char *const *words)
{
	Options o;
	assert_false(parse(&o, no_env, words));
	assert_int_equal(problem_met.exit, EXIT_USAGE);
	if (!strstr(problem_met.text, wanted))
		fail_msg("'%s' lacks '%s'", problem_met.text, wanted);
	if (help && (!problem_met.help || !strstr(problem_met.help, help)))
		fail_msg("the help '%s' lacks '%s'", problem_met.help, help);
}

#define REFUSES(wanted, help, ...) refuses((wanted), (help), (const char *const[]){"texo", __VA_ARGS__, NULL})

static void
refusals(void **state)
{
	(void)state;
	REFUSES("unknown command 'chekc'", "'check'", "chekc", "f");
	REFUSES("unknown option '--devce'", "'--device'", "run", "--devce=cpu");
	REFUSES("unknown option '-z'", NULL, "run", "-z");
	REFUSES("needs a value", NULL, "run", "-o");
	REFUSES("needs a value", NULL, "run", "--graph");
	REFUSES("needs a value", NULL, "run", "--graph=");
	REFUSES("takes no value", NULL, "run", "--json=1");
	REFUSES("one of strict|relaxed|fast", "'strict'", "run", "--fp=strct");
	REFUSES("--emit is one of", "'llvm'", "run", "--emit=tg,lvm");
	REFUSES("not '-1'", NULL, "run", "--rtol=-1");
	REFUSES("whole number", NULL, "run", "-j0");
	REFUSES("'texo check' has no option --device", NULL, "check", "--device=cpu", "f");
	Options o;
	char *none[] = {"texo", NULL};
	assert_false(options_parse(&arena, 1, none, no_env, &o, &problem_met));
	assert_int_equal(problem_met.exit, EXIT_USAGE);
}

static void
environment(void **state)
{
	(void)state;
	Options o;
	/* TEXO_FP is bad, but targets has no --fp, so it is not read */
	assert_true(parse(&o, some_env, (const char *const[]){"texo", "targets", NULL}));
	assert_false(parse(&o, some_env, (const char *const[]){"texo", "run", "f", NULL}));
	assert_non_null(strstr(problem_met.text, "TEXO_FP is one of"));
	assert_true(parse(&o, some_env, (const char *const[]){"texo", "--help", NULL}));
}

static const char *
device_env(const char *name)
{
	return strcmp(name, "TEXO_DEVICE") == 0 ? "interp" : NULL;
}

static void
option_beats_environment(void **state)
{
	(void)state;
	Options o;
	assert_true(parse(&o, device_env, (const char *const[]){"texo", "run", "f", NULL}));
	assert_string_equal(option_value(&o, OPT_DEVICE), "interp");
	assert_true(parse(&o, device_env, (const char *const[]){"texo", "run", "--device=cpu", "f", NULL}));
	assert_string_equal(option_value(&o, OPT_DEVICE), "cpu");
}

static void
help_names_everything(void **state)
{
	(void)state;
	Text all;
	text_init(&all, &arena);
	for (int c = 0; c < CMD_END; c++)
		help_print((CommandId)c, &all);
	static const char *const words[] = {
#define COMMAND(id, name, operands, needs, most, built, summary) name, built ? summary : name,
#define OPTION(id, name, letter, kind, value, env, commands, default_text, help) "--" name, help,
#include "driver/options.def"
	};
	for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++)
		if (!strstr(text_get(&all), words[i]))
			fail_msg("no help says '%s'", words[i]);
}

static void
nearness(void **state)
{
	(void)state;
	Near near = {.word = "soffmax"};
	near_offer(&near, "layernorm");
	near_offer(&near, "softmax");
	near_offer(&near, "sigmoid");
	assert_int_equal(near.n, 1);
	assert_string_equal(near.best[0], "softmax");
	Near far = {.word = "x"};
	near_offer(&far, "y");
	assert_int_equal(far.n, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ARENA_TEST(forms),       ARENA_TEST(last_wins_and_lists),      ARENA_TEST(refusals),
		ARENA_TEST(environment), ARENA_TEST(option_beats_environment), ARENA_TEST(help_names_everything),
		ARENA_TEST(nearness),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
