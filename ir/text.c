/* text.c: see text.h. */
#include "ir/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
text_init(Text *t, Arena *a)
{
	*t = (Text){.arena = a};
}

void
text_room(Text *t, size_t n)
{
	if (n < t->cap - t->n && t->cap > t->n)
		return;
	size_t cap = t->cap ? t->cap * 2 : 256;
	while (cap - t->n <= n)
		cap *= 2;
	char *p = arena_alloc(t->arena, cap);
	if (t->n)
		memcpy(p, t->at, t->n);
	t->at = p;
	t->cap = cap;
}

void
text_printf(Text *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n <= 0)
		return;
	text_room(t, (size_t)n);
	va_start(ap, fmt);
	vsnprintf(t->at + t->n, (size_t)n + 1, fmt, ap);
	va_end(ap);
	t->n += (size_t)n;
}

void
text_number(Text *t, uint64_t v)
{
	size_t digits = 1;
	for (uint64_t above = v; above >= 10; above /= 10)
		digits++;
	text_room(t, digits);
	t->n += digits;
	char *at = t->at + t->n;
	*at = 0;
	do {
		*--at = (char)('0' + v % 10);
	} while (v /= 10);
}

static bool
comes_back(char *s, size_t size, double v, int digits)
{
	snprintf(s, size, "%.*g", digits, v);
	return strtod(s, NULL) == v;
}

/* The fewest digits that are read back as v. Of what is as near above as below, once some digits come back, so do more: an f32
 * has up to 17, which a search by halves finds in a quarter of the tries. A power of two has nearer neighbours on one side. */
static void
shortest(char *s, size_t size, double v)
{
	enum { MOST = 17 };
	int exponent, few = 0, enough = MOST; /* few digits do not come back, enough do */
	bool alike = fabs(frexp(v, &exponent)) != 0.5;
	while (enough - few > 1) {
		int digits = alike && few > 1 ? (few + enough) / 2 : few + 1;
		if (comes_back(s, size, v, digits))
			enough = digits;
		else
			few = digits;
	}
	snprintf(s, size, "%.*g", enough, v);
}

void
text_double(Text *t, double v)
{
	if (isnan(v)) {
		text_add(t, "nan", 3);
		return;
	}
	if (isinf(v)) {
		text_printf(t, v < 0 ? "-inf" : "inf");
		return;
	}
	char s[320]; /* 24 are enough, which compilers do not see */
	shortest(s, sizeof s, v);
	for (char *p = s; *p; p++) /* a host locale may write a comma */
		if (*p == ',')
			*p = '.';
	text_add(t, s, strlen(s));
}

void
text_json(Text *t, const char *s, size_t n)
{
	text_add(t, "\"", 1);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		if (c == '"' || c == '\\')
			text_printf(t, "\\%c", c);
		else if (c == '\n')
			text_add(t, "\\n", 2);
		else if (c < 0x20 || c == 0x7f)
			text_printf(t, "\\u%04x", c);
		else
			text_add(t, s + i, 1);
	}
	text_add(t, "\"", 1);
}

const char *
text_get(const Text *t)
{
	return t->at ? t->at : "";
}
