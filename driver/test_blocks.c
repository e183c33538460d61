/* test_blocks.c: see test_blocks.h. */
#include "driver/test_blocks.h"
#include "driver/near.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	Arena *arena;
	const char *at, *end;
	const char *base;
	uint32_t line;
	TestBlock *block;
} Find;

/* The statements of a block; the parser of one gets what follows its word. */
typedef bool StatementFn(Find *s, const char *rest);

static const char *
skip_blanks(const char *s)
{
	return s + strspn(s, " \t\r\n");
}

static bool
broken(Find *s, uint32_t line, const char *why)
{
	if (!s->block->broken) {
		s->block->broken = why;
		s->block->broken_line = line;
	}
	return false;
}

static bool
broken_problem(Find *s, const Problem *p)
{
	if (!p->help)
		return broken(s, s->line, p->text);
	return broken(s, s->line, arena_text(s->arena, "%s; %s", p->text, p->help));
}

static bool
take_expect(Find *s, const char *rest)
{
	const char *name, *value;
	Problem p = {.arena = s->arena};
	InputSpec spec;
	if (!input_split(s->arena, rest, &name, &value))
		return broken(s, s->line, "'expect NAME = VALUE' is meant");
	if (!input_spec_parse(s->arena, name, value, s->base, &spec, &p))
		return broken_problem(s, &p);
	if (spec.kind != INPUT_LITERAL && spec.kind != INPUT_FILE)
		return broken(s, s->line, "what is expected is a literal or @file.npy");
	vec_push(s->arena, &s->block->expect, spec);
	return true;
}

static bool
take_compare(Find *s, const char *rest)
{
	return strcmp(rest, "interp") == 0 || broken(s, s->line, "'compare interp' is meant");
}

static bool
take_error(Find *s, const char *rest)
{
	char code[16];
	int after = 0;
	unsigned line = 0, col = 0;
	if (sscanf(rest, "%15s%n", code, &after) != 1)
		return broken(s, s->line, "'error CODE at LINE:COLUMN' is meant");
	s->block->error = code_named(code);
	if (s->block->error == DIAG_NONE)
		return broken(s, s->line, arena_text(s->arena, "there is no error code %s", code));
	rest = skip_blanks(rest + after);
	after = 0;
	if (*rest && (sscanf(rest, "at %u:%u%n", &line, &col, &after) != 2 || *skip_blanks(rest + after)))
		return broken(s, s->line, "'error CODE at LINE:COLUMN' is meant");
	s->block->error_line = line;
	s->block->error_col = col;
	return true;
}

static bool
take_kernels(Find *s, const char *rest)
{
	static const char *const relation[] = {"<=", ">=", "==", "<", ">"};
	for (unsigned i = 0; i < sizeof relation / sizeof relation[0]; i++) {
		size_t n = strlen(relation[i]);
		char *end;
		if (strncmp(rest, relation[i], n) != 0)
			continue;
		s->block->kernels = strtoll(rest + n, &end, 10);
		if (end == rest + n || *end)
			break;
		memcpy(s->block->kernels_relation, relation[i], n);
		return true;
	}
	return broken(s, s->line, "'kernels <= N' is meant");
}

static bool
take_graph(Find *s, const char *rest)
{
	s->block->graph = rest;
	return *rest || broken(s, s->line, "'graph NAME' is meant");
}

static bool
take_fp(Find *s, const char *rest)
{
	static const char *const mode[] = {"strict", "relaxed", "fast"};
	for (unsigned i = 0; i < 3; i++)
		if (strcmp(rest, mode[i]) == 0) {
			s->block->has_fp = true;
			s->block->fp = (FpMode)i;
			return true;
		}
	return broken(s, s->line, "'fp strict', 'fp relaxed' or 'fp fast' is meant");
}

static const struct {
	const char *word;
	StatementFn *take;
} statements[] = {
	{"expect", take_expect},   {"compare", take_compare}, {"error", take_error},
	{"kernels", take_kernels}, {"graph", take_graph},     {"fp", take_fp},
};

enum { NSTATEMENT = sizeof statements / sizeof statements[0] };

static void
take_statement(Find *s, const char *text)
{
	const char *name, *value;
	Problem p = {.arena = s->arena};
	if (input_split(s->arena, text, &name, &value)) {
		InputSpec spec;
		if (input_spec_parse(s->arena, name, value, s->base, &spec, &p))
			vec_push(s->arena, &s->block->input, spec);
		else
			broken_problem(s, &p);
		return;
	}
	size_t n = strcspn(text, " \t");
	Near near = {.word = arena_copy(s->arena, text, n)};
	for (unsigned i = 0; i < NSTATEMENT; i++) {
		if (strcmp(near.word, statements[i].word) == 0) {
			statements[i].take(s, skip_blanks(text + n));
			return;
		}
		near_offer(&near, statements[i].word);
	}
	const char *mend = near_text(&near, s->arena);
	broken(s, s->line, arena_text(s->arena, "'%s' is no line of a test block%s%s", text, mend ? "; " : "", mend ? mend : ""));
}

/* The next line's text without its end and trailing blanks; NULL at the end of the file. */
static const char *
next_line(Find *s)
{
	if (s->at >= s->end)
		return NULL;
	const char *from = s->at, *nl = memchr(from, '\n', (size_t)(s->end - from));
	const char *to = nl ? nl : s->end;
	s->at = nl ? nl + 1 : s->end;
	s->line++;
	while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r'))
		to--;
	return arena_copy(s->arena, from, (size_t)(to - from));
}

/* What follows '#' in a comment line, or NULL. */
static const char *
comment_text(const char *line)
{
	line += strspn(line, " \t");
	return *line == '#' ? line + 1 : NULL;
}

static const char *
test_name(const char *comment)
{
	const char *s = comment + strspn(comment, " \t");
	return strncmp(s, "test:", 5) == 0 ? skip_blanks(s + 5) : NULL;
}

/* How many brackets text leaves open. */
static int
open_brackets(const char *text)
{
	int n = 0;
	for (; *text; text++)
		n += (*text == '[' || *text == '(') - (*text == ']' || *text == ')');
	return n;
}

/* Joins the lines of one statement; the first line's text is given. */
static const char *
whole_statement(Find *s, const char *text)
{
	int depth = open_brackets(text);
	while (depth > 0) {
		Find before = *s;
		const char *line = next_line(s), *more = line ? comment_text(line) : NULL;
		if (!more || test_name(more)) {
			*s = before;
			break;
		}
		depth += open_brackets(more);
		text = arena_text(s->arena, "%s %s", text, skip_blanks(more));
	}
	return text;
}

/* The lines below the block's head, up to the first that does not belong to it. */
static void
take_block(Find *s)
{
	for (;;) {
		Find before = *s;
		const char *line = next_line(s), *comment = line ? comment_text(line) : NULL;
		if (comment && !*skip_blanks(comment))
			continue;
		if (!comment || test_name(comment) || strspn(comment, " \t") < 2) {
			*s = before;
			return;
		}
		uint32_t first = s->line;
		const char *statement = whole_statement(s, skip_blanks(comment));
		uint32_t last = s->line;
		s->line = first;
		take_statement(s, statement);
		s->line = last;
	}
}

void
test_blocks_find(Arena *a, const char *text, size_t n, const char *base, TestBlocks *out)
{
	Find s = {.arena = a, .at = text, .end = text + n, .base = base};
	const char *line;
	memset(out, 0, sizeof *out);
	while ((line = next_line(&s))) {
		const char *comment = comment_text(line), *name = comment ? test_name(comment) : NULL;
		if (!name)
			continue;
		TestBlock block = {.name = *name ? name : "unnamed", .line = s.line};
		s.block = &block;
		take_block(&s);
		vec_push(a, out, block);
	}
}

bool
test_kernels_hold(const TestBlock *b, int64_t n)
{
	char first = b->kernels_relation[0];
	bool equal = b->kernels_relation[1] == '=';
	if (!first)
		return true;
	return (equal && n == b->kernels) || (first == '<' && n < b->kernels) || (first == '>' && n > b->kernels);
}
