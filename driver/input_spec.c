/* input_spec.c: see input_spec.h. */
#include "driver/input_spec.h"
#include "driver/near.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *word;
	InputKind kind;
	bool seeded;
} generators[] = {
	{"random", INPUT_RANDOM, true}, {"normal", INPUT_NORMAL, true}, {"zeros", INPUT_ZEROS, false},
	{"ones", INPUT_ONES, false},    {"iota", INPUT_IOTA, false},
};

enum { NGENERATOR = sizeof generators / sizeof generators[0] };

static const char *
skip_blanks(const char *s)
{
	return s + strspn(s, " \t\r\n");
}

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t
word_length(const char *s)
{
	size_t n = 0;
	if (is_letter(*s))
		while (is_letter(s[n]) || (s[n] >= '0' && s[n] <= '9'))
			n++;
	return n;
}

bool
input_split(Arena *a, const char *text, const char **name, const char **value)
{
	const char *s = skip_blanks(text);
	size_t n = word_length(s);
	const char *eq = skip_blanks(s + n);
	if (n == 0 || *eq != '=' || eq[1] == '=')
		return false;
	*name = arena_copy(a, s, n);
	*value = skip_blanks(eq + 1);
	return true;
}

/* dtype or dtype[n, m] */
static bool
parse_type(const char *s, InputSpec *out, const char *value, Problem *p)
{
	size_t n = word_length(s);
	out->dtype = dtype_named(s, n);
	if (out->dtype == DT_NONE)
		return problem(p, EXIT_INPUT, "'%s' in '%s=%s' is no element type", s, out->name, value);
	s = skip_blanks(s + n);
	if (!*s)
		return true;
	if (*s++ != '[')
		return problem(p, EXIT_INPUT, "a shape such as f32[4, 8] is expected in '%s=%s'", out->name, value);
	out->has_shape = true;
	for (s = skip_blanks(s); *s != ']'; s = skip_blanks(s)) {
		char *end;
		errno = 0;
		long long v = strtoll(s, &end, 10);
		if (end == s || errno || v < 0 || out->rank == TG_MAX_RANK)
			return problem(p, EXIT_INPUT, "the shape in '%s=%s' is not a list of at most 8 lengths", out->name, value);
		out->shape[out->rank++] = v;
		s = skip_blanks(end);
		if (*s == ',')
			s++;
		else if (*s != ']')
			return problem(p, EXIT_INPUT, "the shape in '%s=%s' is not a list of at most 8 lengths", out->name, value);
	}
	return !*skip_blanks(s + 1) || problem(p, EXIT_INPUT, "something follows the shape in '%s=%s'", out->name, value);
}

static bool
parse_generator(InputSpec *out, unsigned which, const char *rest, const char *value, Problem *p)
{
	out->kind = generators[which].kind;
	if (*rest == ':') {
		char *end;
		errno = 0;
		if (!generators[which].seeded)
			return problem(p, EXIT_INPUT, "%s takes no seed: '%s=%s'", generators[which].word, out->name, value);
		out->seed = strtoull(rest + 1, &end, 10);
		if (end == rest + 1 || errno || rest[1] == '-')
			return problem(p, EXIT_INPUT, "the seed in '%s=%s' is not a whole number", out->name, value);
		rest = end;
	}
	const char *type = skip_blanks(rest);
	if (!*type)
		return true;
	if (type == rest)
		return problem(p, EXIT_INPUT, "'%s=%s' is not understood", out->name, value);
	return parse_type(type, out, value, p);
}

static bool
parse_literal(Arena *a, InputSpec *out, const char *value, Problem *p)
{
	size_t used, n = strlen(value);
	const char *error;
	out->kind = INPUT_LITERAL;
	if (!literal_parse(a, value, n, &used, &out->literal, &error))
		return problem(p, EXIT_INPUT, "'%s=%s': %s (at character %zu)", out->name, value, error, used + 1);
	const char *type = skip_blanks(value + used);
	return !*type || parse_type(type, out, value, p);
}

bool
input_spec_parse(Arena *a, const char *name, const char *value, const char *base, InputSpec *out, Problem *p)
{
	memset(out, 0, sizeof *out);
	out->name = name;
	if (*value == '@') {
		const char *path = value + 1;
		if (!*path)
			return problem(p, EXIT_INPUT, "'%s=@' lacks the file's name", name);
		out->kind = INPUT_FILE;
		out->path = base && *path != '/' && strcmp(path, "-") ? arena_text(a, "%s/%s", base, path) : path;
		return true;
	}
	size_t n = word_length(value);
	Near near = {.word = arena_copy(a, value, n)};
	for (unsigned k = 0; k < NGENERATOR; k++) {
		if (strlen(generators[k].word) == n && memcmp(generators[k].word, value, n) == 0)
			return parse_generator(out, k, value + n, value, p);
		near_offer(&near, generators[k].word);
	}
	if (parse_literal(a, out, value, p))
		return true;
	size_t length = strlen(value);
	if (length > 4 && strcmp(value + length - 4, ".npy") == 0)
		return problem_help(p, "%s=@%s reads the file", name, value);
	if (dtype_named(value, n) != DT_NONE)
		return problem_help(p, "%s=random %s says how it is made", name, value);
	const char *mend = n ? near_text(&near, a) : NULL;
	return mend ? problem_help(p, "%s", mend) : false;
}
