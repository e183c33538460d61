/* problem.c: see problem.h. */
#include "driver/problem.h"

#include <stdarg.h>
#include <stdio.h>

static const char *
format(Arena *a, const char *fmt, va_list ap)
{
	va_list again;
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	char *s = arena_alloc(a, (size_t)(n < 0 ? 0 : n) + 1);
	if (n > 0)
		vsnprintf(s, (size_t)n + 1, fmt, ap);
	return s;
}

bool
problem(Problem *p, ExitCode e, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	p->exit = e;
	p->help = NULL;
	p->diags = NULL;
	p->text = format(p->arena, fmt, ap);
	va_end(ap);
	return false;
}

bool
problem_help(Problem *p, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	p->help = format(p->arena, fmt, ap);
	va_end(ap);
	return false;
}
