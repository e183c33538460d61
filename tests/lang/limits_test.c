/* limits_test.c: every limit of the parser, met fast, on a small stack, in bounded memory. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parsed.h"

enum { STACK = 256 * 1024, MEMORY = 192 << 20 };

#define HEAD "graph f(x: f32[N]) -> (y: f32[N]) {\n y = "
#define TAIL "\n}\n"

typedef struct {
	const char *open, *core, *close;
	uint32_t n;      /* times open and close are repeated */
	const char *want; /* the one code, or "" */
} Bomb;

static const Bomb bombs[] = {
	{"(", "x", ")", 100000, "E0903"},     {"x[", "x", "]", 100000, "E0903"},
	{"f(", "x", ")", 100000, "E0903"},    {"s[i](", "x", ")", 100000, "E0903"},
	{"(", "x", ")", 127, ""},             {"-", "x", "", 100000, "E0904"},
	{"!", "x", "", 1000000, "E0904"},     {"a ? b : ", "x", "", 100000, "E0904"},
	{"a ? ", "x", " : b", 100000, "E0904"}, {"a ** ", "x", "", 100000, "E0904"},
	{"x + ", "x", "", 100000, "E0904"},   {"x + ", "x", "", 900, ""},
	{"a ?? ", "x", "", 100000, "E0904"},  {"-", "x", "", 900, ""},
	{"a ? b : ", "x", "", 900, ""},       {"", "1e999999999", "", 1, "E0905"},
	{"1", "0", "", 10000, "E0902"},       {"1", "0", "", 4000, "E0905"},
	{"a", "a", "", 4095, ""},             {"a", "a", "", 4096, "E0902"},
	{"a", "a", "", 1000000, "E0902"},     {"\t", "x", "", 1000000, ""},
	{"{", "x", "}", 1000000, "E0100"},    {"$", "x", "", 1000000, "E0101"},
	{"z = 1; ", "w = 2", "", 140000, "E0103"},
};

static char *
build(const Bomb *b, size_t *n)
{
	size_t open = strlen(b->open), close = strlen(b->close);
	char *text = malloc(strlen(HEAD TAIL) + b->n * (open + close) + strlen(b->core) + 1), *p = text;
	p = memcpy(p, HEAD, strlen(HEAD)), p += strlen(HEAD);
	for (uint32_t k = 0; k < b->n; k++)
		memcpy(p, b->open, open), p += open;
	memcpy(p, b->core, strlen(b->core)), p += strlen(b->core);
	for (uint32_t k = 0; k < b->n; k++)
		memcpy(p, b->close, close), p += close;
	memcpy(p, TAIL, strlen(TAIL)), p += strlen(TAIL);
	*n = (size_t)(p - text);
	return text;
}

typedef struct {
	Parsed p;
	const char *text;
	size_t n;
	double seconds; /* of processor time */
} Job;

static void *
parse_job(void *arg)
{
	Job *j = arg;
	struct timespec t;
	parsed_make(&j->p, PARSE_TREE, j->text, j->n);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	j->seconds = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
	return NULL;
}

/* Parses on a thread of its own with a small stack, and checks the first error's code. */
static void
expect_code(const char *text, size_t n, const char *want, const char *what)
{
	Job j = {.text = text, .n = n};
	pthread_attr_t attr;
	pthread_t thread;
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstacksize(&attr, STACK), 0);
	assert_int_equal(pthread_create(&thread, &attr, parse_job, &j), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	const char *got = j.p.diags.list.n ? code_info[j.p.diags.list.at[0].code].id : "";
	if (strcmp(got, want) != 0)
		fail_msg("%s: got %s, not %s", what, got, want);
	if (j.p.arena.used > MEMORY)
		fail_msg("%s: %zu bytes", what, j.p.arena.used);
	if (j.seconds > 5) /* a second as people build it; the sanitizers take their share */
		fail_msg("%s: %.1f s", what, j.seconds);
	const char *report = diags_render(&j.p.diags, &j.p.arena, false);
	if (strlen(report) > 20 * 1200)
		fail_msg("%s: a report of %zu bytes", what, strlen(report));
	parsed_free(&j.p);
}

static void
repeated(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof bombs / sizeof bombs[0]; k++) {
		size_t n;
		char *text = build(&bombs[k], &n);
		char what[80];
		snprintf(what, sizeof what, "%u times %s", (unsigned)bombs[k].n, bombs[k].open);
		if (n <= 1 << 20)
			expect_code(text, n, bombs[k].want, what);
		else
			expect_code(text, n, "E0901", what);
		free(text);
	}
}

static void
source_size(void **state)
{
	(void)state;
	size_t n = (1 << 20) + 1;
	char *text = malloc(64 << 20);
	memset(text, '#', 64 << 20);
	expect_code(text, n, "E0901", "1 MiB and a byte");
	expect_code(text, n - 1, "", "1 MiB of comment");
	expect_code(text, 64 << 20, "E0901", "a line of 64 MiB");
	memset(text, ';', n);
	expect_code(text, n - 1, "", "1 MiB of ;");
	memset(text, '\n', n);
	expect_code(text, n - 1, "", "1 MiB of line ends");
	memset(text, '@', n);
	expect_code(text, n - 1, "E0100", "1 MiB of @");
	memset(text, '"', n);
	expect_code(text, n - 1, "E0113", "1 MiB of quotes");
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repeated),
		cmocka_unit_test(source_size),
	};
	return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
