/* literal.c: see literal.h. Nesting is bounded by TG_MAX_RANK, so the descent is too. */
#include "driver/literal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	Arena *arena;
	const char *start, *at, *end;
	Literal *out;
	int rank;              /* -1 until the first item or empty list is met */
	bool known[TG_MAX_RANK]; /* shape[k] has been set */
	const char *error;
} Parse;

static bool
wrong(Parse *s, const char *what)
{
	s->error = what;
	return false;
}

static void
blanks(Parse *s)
{
	while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
		s->at++;
}

static bool
accept(Parse *s, char c)
{
	blanks(s);
	if (s->at >= s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

static bool
is_word_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool
accept_word(Parse *s, const char *word)
{
	size_t n = strlen(word);
	if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
		return false;
	if (s->at + n < s->end && is_word_char(s->at[n]))
		return false;
	s->at += n;
	return true;
}

/* Half a unit in the last decimal place of digits[0..n), which has a point or an exponent. */
static double
half_unit(const char *digits, size_t n)
{
	long places = 0, exponent = 0;
	bool after_point = false;
	for (size_t i = 0; i < n; i++) {
		if (digits[i] == 'e' || digits[i] == 'E') {
			exponent = strtol(digits + i + 1, NULL, 10); /* saturates */
			break;
		}
		if (digits[i] == '.')
			after_point = true;
		else if (after_point)
			places++;
	}
	if (exponent < -5000 || exponent > 5000)
		return 0;
	return 0.5 * pow(10.0, (double)(exponent - places));
}

static bool
take_digits(Parse *s, LiteralItem *v, bool negative)
{
	const char *from = s->at;
	bool real = false, any = false;
	for (; s->at < s->end; s->at++) {
		char c = *s->at;
		bool sign_of_exponent = (c == '+' || c == '-') && s->at > from && (s->at[-1] == 'e' || s->at[-1] == 'E');
		if (c >= '0' && c <= '9')
			any = true;
		else if (c == '.' || ((c == 'e' || c == 'E') && any) || sign_of_exponent)
			real = true;
		else
			break;
	}
	size_t n = (size_t)(s->at - from);
	char *text = arena_copy(s->arena, from, n), *end;
	if (!any)
		return s->at = from, wrong(s, "a number, true, false, inf, nan, a pair (re, im) or a list is expected");
	v->re = strtod(text, &end);
	if (*end || (s->at < s->end && is_word_char(*s->at)))
		return wrong(s, "this is not a number");
	v->kind = LITERAL_REAL;
	v->half = real ? half_unit(text, n) : 0;
	errno = 0;
	uint64_t u = strtoull(text, &end, 10);
	if (!real && errno == 0 && !*end) {
		v->kind = LITERAL_INT;
		v->u = u;
		v->negative = negative && u != 0;
	}
	if (negative)
		v->re = -v->re;
	return true;
}

static bool
take_number(Parse *s, LiteralItem *v)
{
	blanks(s);
	bool negative = s->at < s->end && *s->at == '-';
	if (s->at < s->end && (*s->at == '-' || *s->at == '+'))
		s->at++;
	*v = (LiteralItem){.kind = LITERAL_REAL};
	if (accept_word(s, "inf"))
		v->re = negative ? -INFINITY : INFINITY;
	else if (accept_word(s, "nan"))
		v->re = NAN;
	else
		return take_digits(s, v, negative);
	return true;
}

static bool
take_item(Parse *s, LiteralItem *v)
{
	blanks(s);
	bool is_true = accept_word(s, "true");
	if (is_true || accept_word(s, "false")) {
		*v = (LiteralItem){.kind = LITERAL_BOOL, .u = is_true, .re = is_true};
		return true;
	}
	if (!accept(s, '('))
		return take_number(s, v);
	LiteralItem im;
	if (!take_number(s, v))
		return false;
	if (!accept(s, ','))
		return wrong(s, "a complex number is a pair (re, im)");
	if (!take_number(s, &im))
		return false;
	if (!accept(s, ')'))
		return wrong(s, "a complex number is a pair (re, im)");
	v->kind = LITERAL_COMPLEX;
	v->im = im.re;
	v->ihalf = im.half;
	return true;
}

static bool
set_rank(Parse *s, unsigned rank)
{
	if (s->rank < 0)
		s->rank = (int)rank;
	return (unsigned)s->rank == rank || wrong(s, "the lists are not nested equally deep");
}

static bool
take_value(Parse *s, unsigned depth)
{
	LiteralItem v;
	if (!accept(s, '[')) {
		if (!set_rank(s, depth) || !take_item(s, &v))
			return false;
		vec_push(s->arena, &s->out->item, v);
		return true;
	}
	if (depth == TG_MAX_RANK)
		return wrong(s, "the lists are nested deeper than a tensor's 8 axes");
	int64_t n = 0;
	while (!accept(s, ']')) {
		if (!take_value(s, depth + 1))
			return false;
		n++;
		if (!accept(s, ',')) {
			if (!accept(s, ']'))
				return wrong(s, "a ',' or ']' is expected");
			break;
		}
	}
	if (n == 0 && !set_rank(s, depth + 1))
		return false;
	if (s->known[depth] && s->out->shape[depth] != n)
		return wrong(s, "the lists of one axis differ in length");
	s->known[depth] = true;
	s->out->shape[depth] = n;
	return true;
}

bool
literal_parse(Arena *a, const char *text, size_t n, size_t *used, Literal *out, const char **error)
{
	Parse s = {.arena = a, .start = text, .at = text, .end = text + n, .out = out, .rank = -1};
	memset(out, 0, sizeof *out);
	bool ok = take_value(&s, 0);
	out->rank = s.rank < 0 ? 0 : (unsigned)s.rank;
	*used = (size_t)(s.at - text);
	*error = s.error;
	return ok;
}
