/* diag.c: the code table and the list of diagnostics; diag_render.c prints it. */
#include "ir/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const CodeInfo code_info[] = {
	[DIAG_NONE] = {"", SEV_ERROR, "", ""},
#define CODE(id, severity, title, text) [DIAG_##id] = {#id, severity, title, text},
#include "ir/codes.def"
};

const unsigned code_count = sizeof code_info / sizeof code_info[0];

enum { MAX_ERRORS = 20, MAX_WARNINGS = 100 };

DiagCode
code_named(const char *id)
{
	for (unsigned c = 1; c < code_count; c++) {
		const char *a = code_info[c].id, *b = id;
		/* ids are one capital letter and digits, so this is the whole of case folding */
		while (*a && (*a == *b || (*a >= 'A' && *a <= 'Z' && *a + ('a' - 'A') == *b)))
			a++, b++;
		if (!*a && !*b)
			return (DiagCode)c;
	}
	return DIAG_NONE;
}

void
diags_init(Diags *d, Arena *a)
{
	*d = (Diags){.arena = a, .max_errors = MAX_ERRORS};
}

FileId
diags_add_file(Diags *d, const char *path, const char *text, size_t n)
{
	SourceFile f = {arena_copy(d->arena, path, strlen(path)), text, n};
	vec_push(d->arena, &d->files, f);
	return d->files.n;
}

bool
diags_full(const Diags *d)
{
	return d->nerror >= d->max_errors;
}

/* Whether one more of this severity is kept. */
static bool
has_room(const Diags *d, Severity s)
{
	switch (s) {
	case SEV_ERROR:
		return !diags_full(d);
	case SEV_WARNING:
	case SEV_REMARK:
		return d->list.n - d->nerror < MAX_WARNINGS;
	}
	return false;
}

static const char *
format(Arena *a, const char *fmt, va_list ap)
{
	va_list again;
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	char *s = arena_alloc(a, (size_t)(n < 0 ? 0 : n) + 1);
	if (n > 0)
		vsnprintf(s, (size_t)n + 1, fmt, again);
	va_end(again);
	return s;
}

/* What is inlined twice is found wrong twice. */
static bool
is_known(const Diags *d, const Diag *g)
{
	for (uint32_t k = 0; k < d->list.n; k++) {
		const Diag *old = &d->list.at[k];
		if (old->code == g->code && old->at.file == g->at.file && old->at.begin == g->at.begin
		    && old->at.end == g->at.end && strcmp(old->message, g->message) == 0 && g->at.file)
			return true;
	}
	return false;
}

static bool
is_within(Span inner, Span outer)
{
	return inner.file == outer.file && inner.begin >= outer.begin && inner.end <= outer.end;
}

/* What is wrong inside a function is wrong with a call: the outermost, which is where the program speaks of it. */
static void
note_call(Diags *d, Diag *g)
{
	const DiagCall *c = d->call;
	while (c && c->up)
		c = c->up;
	if (c && g->at.file && !is_within(g->at, c->at))
		diag_note(d, g, c->at, "in this call");
}

Diag *
diag_add(Diags *d, DiagCode code, Span at, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	const char *message = format(d->arena, fmt, ap);
	va_end(ap);
	Diag g = {.code = code, .at = at, .message = message};
	Severity s = code_info[code].severity;
	if (!has_room(d, s) || is_known(d, &g)) {
		Diag *dropped = ARENA_NEW(d->arena, Diag);
		*dropped = g;
		return dropped;
	}
	note_call(d, &g);
	vec_push(d->arena, &d->list, g);
	d->nerror += s == SEV_ERROR;
	d->nwarning += s == SEV_WARNING;
	return &d->list.at[d->list.n - 1];
}

void
diag_note(Diags *d, Diag *g, Span at, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	DiagNote note = {at, format(d->arena, fmt, ap)};
	va_end(ap);
	vec_push(d->arena, &g->notes, note);
}

Span
span_join(Span a, Span b)
{
	if (!a.file)
		return b;
	if (!b.file || b.file != a.file)
		return a;
	Span s = a;
	if (b.begin < s.begin)
		s.begin = b.begin, s.line = b.line, s.col = b.col;
	if (b.end > s.end)
		s.end = b.end, s.end_line = b.end_line, s.end_col = b.end_col;
	return s;
}
