/* diag_render.c: diagnostics as text and as JSON.
 *
 * A report shows the marked lines of the primary span and of the notes, in file order, primary file
 * first. Columns count code points; the drawing expands tabs and escapes what a terminal must not
 * get, so marks are placed in drawn cells. A long line is clipped around its mark. Nothing here
 * looks further than a window around a span, so that reports cost the same in files of any size. */
#include "ir/diag.h"

#include <string.h>

#include "ir/text.h"

enum { TAB = 4, BEFORE = 60, AFTER = 100, MAX_GUTTER = 10 };

/* One source character. */
typedef struct {
	uint32_t code; /* the byte itself when not valid */
	uint32_t n;    /* bytes */
	bool valid;
} Rune;

static Rune
rune_at(const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s;
	static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t len = p[0] < 0x80 ? 1 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc0 ? 2 : 0;
	Rune bad = {p[0], 1, false};
	if (len == 0 || len > n || p[0] > 0xf4)
		return bad;
	uint32_t code = len == 1 ? p[0] : p[0] & (0x7fu >> len);
	for (uint32_t k = 1; k < len; k++) {
		if ((p[k] & 0xc0) != 0x80)
			return bad;
		code = code << 6 | (p[k] & 0x3f);
	}
	if (code < least[len] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return bad;
	return (Rune){code, len, true};
}

/* Control characters, and the marks that reorder text or have no width. */
static bool
is_hidden(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f)
	       || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

/* Appends one character as it is drawn; returns how many cells it takes. */
static uint32_t
draw_rune(Text *t, const char *s, Rune r, uint32_t cell)
{
	size_t before = t->n;
	if (r.valid && r.code == '\t') {
		uint32_t w = TAB - cell % TAB;
		text_add(t, "    ", w);
		return w;
	}
	if (r.valid && !is_hidden(r.code)) {
		text_add(t, s, r.n);
		return 1;
	}
	if (r.code < 0x100)
		text_printf(t, "\\x%02x", r.code);
	else
		text_printf(t, "\\u{%x}", r.code);
	return (uint32_t)(t->n - before);
}

/* Text of ours that may hold pieces of the user's: a line break starts a new line with `indent`, or
 * is escaped when indent is NULL. */
static void
draw_text(Text *t, const char *s, const char *indent)
{
	size_t n = strlen(s);
	for (size_t i = 0; i < n;) {
		Rune r = rune_at(s + i, n - i);
		if (r.code == '\n' && indent)
			text_printf(t, "\n%s", indent);
		else
			draw_rune(t, s + i, r, 0);
		i += r.n;
	}
}

static const char *
paint(bool colour, Severity s)
{
	if (!colour)
		return "";
	switch (s) {
	case SEV_ERROR:
		return "\033[1;31m";
	case SEV_WARNING:
		return "\033[1;33m";
	case SEV_REMARK:
		return "\033[1;36m";
	}
	return "";
}

const char *
severity_text(Severity s)
{
	switch (s) {
	case SEV_ERROR:
		return "error";
	case SEV_WARNING:
		return "warning";
	case SEV_REMARK:
		return "remark";
	}
	return "";
}

typedef struct {
	const Diags *diags;
	Text *out;
	const char *ink, *dim, *bold, *plain; /* colours, empty when off */
	int gutter;                           /* digits of the largest line number shown */
} Report;

typedef struct {
	Span at;
	const char *label;
	bool primary;
} Mark;

/* Where the line holding byte `at` begins, or BEFORE characters or so before it if that is less. */
static size_t
window_begin(const SourceFile *f, size_t at, bool *clipped)
{
	size_t i = at;
	uint32_t runes = 0;
	while (i > 0 && f->text[i - 1] != '\n' && runes < BEFORE) {
		i--;
		if (((unsigned char)f->text[i] & 0xc0) != 0x80)
			runes++;
	}
	while (i < at && ((unsigned char)f->text[i] & 0xc0) == 0x80)
		i++;
	*clipped = i > 0 && f->text[i - 1] != '\n';
	return i;
}

static void
blank_gutter(Report *r)
{
	text_printf(r->out, "%s%*s |%s", r->dim, r->gutter, "", r->plain);
}

/* The cells [from, to) that a mark takes in the drawn line. */
typedef struct {
	uint32_t from, to;
} Cells;

/* Draws the part of the line around a mark. */
static Cells
draw_line(Text *out, const SourceFile *f, Span at)
{
	size_t begin = at.begin < f->n ? at.begin : f->n;
	size_t end = at.end < f->n ? at.end : f->n;
	bool clipped;
	size_t i = window_begin(f, begin, &clipped);
	uint32_t cell = 0, from = 0, to = 0, runes = 0;
	if (clipped) {
		text_printf(out, "...");
		cell = 3;
	}
	for (; i < f->n && f->text[i] != '\n'; runes++) {
		if (i <= begin)
			from = cell;
		if (i > begin && runes > AFTER + BEFORE) {
			text_printf(out, "...");
			break;
		}
		Rune c = rune_at(f->text + i, f->n - i);
		if (!(c.code == '\r' && i + 1 < f->n && f->text[i + 1] == '\n'))
			cell += draw_rune(out, f->text + i, c, cell);
		i += c.n;
		if (i <= end)
			to = cell;
	}
	if (begin >= i)
		from = cell;
	if (to <= from)
		to = from + 1;
	return (Cells){from, to};
}

/* The line under a mark, unless `above` showed the same piece of it, and the mark. */
static void
draw_mark(Report *r, const Mark *m, const Mark *above)
{
	const SourceFile *f = &r->diags->files.at[m->at.file - 1];
	bool clipped;
	Text line;
	text_init(&line, r->out->arena);
	Cells c = draw_line(&line, f, m->at);
	if (!above || above->at.file != m->at.file || above->at.line != m->at.line
	    || window_begin(f, above->at.begin, &clipped) != window_begin(f, m->at.begin, &clipped))
		text_printf(r->out, "%s%*u |%s %s\n", r->dim, r->gutter, m->at.line, r->plain, text_get(&line));
	blank_gutter(r);
	text_printf(r->out, " %*s%s", (int)c.from, "", m->primary ? r->ink : r->dim);
	for (uint32_t k = c.from; k < c.to; k++)
		text_add(r->out, m->primary ? "^" : "-", 1);
	if (m->label && *m->label) {
		text_printf(r->out, " ");
		draw_text(r->out, m->label, NULL);
	}
	text_printf(r->out, "%s\n", r->plain);
}

/* Primary file first, then by line. */
static bool
comes_before(const Mark *a, const Mark *b, FileId primary)
{
	if ((a->at.file == primary) != (b->at.file == primary))
		return a->at.file == primary;
	if (a->at.file != b->at.file)
		return a->at.file < b->at.file;
	return a->at.begin < b->at.begin;
}

static uint32_t
sorted_marks(const Diag *g, Mark *mark)
{
	uint32_t n = 0;
	if (g->at.file)
		mark[n++] = (Mark){g->at, g->label, true};
	for (uint32_t k = 0; k < g->notes.n; k++)
		if (g->notes.at[k].at.file)
			mark[n++] = (Mark){g->notes.at[k].at, g->notes.at[k].label, false};
	for (uint32_t k = 1; k < n; k++)
		for (uint32_t j = k; j > 0 && comes_before(&mark[j], &mark[j - 1], g->at.file); j--) {
			Mark swap = mark[j];
			mark[j] = mark[j - 1];
			mark[j - 1] = swap;
		}
	return n;
}

static void
draw_place(Report *r, const char *arrow, Span at)
{
	text_printf(r->out, "%s%*s%s%s ", r->dim, r->gutter, "", arrow, r->plain);
	draw_text(r->out, r->diags->files.at[at.file - 1].path, NULL);
	text_printf(r->out, ":%u:%u\n", at.line, at.col);
}

static void
draw_tail(Report *r, const char *word, const char *text)
{
	char indent[MAX_GUTTER + 16];
	size_t w = (size_t)r->gutter + 5 + strlen(word);
	if (w >= sizeof indent)
		w = sizeof indent - 1;
	memset(indent, ' ', w);
	indent[w] = 0;
	text_printf(r->out, "%s%*s =%s %s%s:%s ", r->dim, r->gutter, "", r->plain, r->bold, word, r->plain);
	draw_text(r->out, text, indent);
	text_printf(r->out, "\n");
}

static void
draw_diag(Report *r, const Diag *g, Arena *scratch)
{
	const CodeInfo *info = &code_info[g->code];
	Mark *mark = ARENA_ARRAY(scratch, Mark, g->notes.n + 1);
	uint32_t n = sorted_marks(g, mark), widest = 1;
	for (uint32_t k = 0; k < n; k++)
		if (mark[k].at.line > widest)
			widest = mark[k].at.line;
	r->gutter = 2;
	for (uint32_t v = widest; v >= 10; v /= 10)
		r->gutter++;
	text_printf(r->out, "%s%s[%s]%s%s: ", r->ink, severity_text(info->severity), info->id, r->plain,
	            r->bold);
	draw_text(r->out, g->message, NULL);
	text_printf(r->out, "%s\n", r->plain);
	FileId file = 0;
	for (uint32_t k = 0; k < n; k++) {
		if (mark[k].at.file != file) {
			if (k > 0)
				blank_gutter(r), text_printf(r->out, "\n");
			draw_place(r, k > 0 ? ":::" : "-->", k > 0 ? mark[k].at : g->at);
			blank_gutter(r), text_printf(r->out, "\n");
			file = mark[k].at.file;
		}
		draw_mark(r, &mark[k], k > 0 ? &mark[k - 1] : NULL);
	}
	if (n > 0)
		blank_gutter(r), text_printf(r->out, "\n");
	for (uint32_t k = 0; k < g->notes.n; k++)
		if (!g->notes.at[k].at.file)
			draw_tail(r, "note", g->notes.at[k].label);
	if (g->help && *g->help)
		draw_tail(r, "help", g->help);
	draw_tail(r, "note", arena_text(scratch, "texo explain %s", info->id));
}

const char *
diags_render(const Diags *d, Arena *out, bool colour)
{
	Text t;
	text_init(&t, out);
	Report r = {.diags = d, .out = &t};
	r.dim = colour ? "\033[34m" : "";
	r.bold = colour ? "\033[1m" : "";
	r.plain = colour ? "\033[0m" : "";
	for (uint32_t k = 0; k < d->list.n; k++) {
		const Diag *g = &d->list.at[k];
		r.ink = paint(colour, code_info[g->code].severity);
		draw_diag(&r, g, out);
	}
	if (d->nerror > 1 && diags_full(d))
		text_printf(&t, "stopped after %u errors\n", d->nerror);
	return text_get(&t);
}

/* A JSON string that is valid UTF-8 whatever the bytes are. */
static void
json_text(Text *t, const char *s)
{
	Text clean;
	text_init(&clean, t->arena);
	size_t n = strlen(s);
	for (size_t i = 0; i < n;) {
		Rune r = rune_at(s + i, n - i);
		if (r.valid)
			text_add(&clean, s + i, r.n);
		else
			text_printf(&clean, "\\x%02x", r.code);
		i += r.n;
	}
	text_json(t, text_get(&clean), clean.n);
}

static void
json_span(const Diags *d, Text *t, Span at)
{
	text_printf(t, "\"file\":");
	json_text(t, at.file ? d->files.at[at.file - 1].path : "");
	text_printf(t, ",\"line\":%u,\"column\":%u,\"end_line\":%u,\"end_column\":%u,\"begin\":%u,\"end\":%u",
	            at.line, at.col, at.end_line, at.end_col, at.begin, at.end);
}

const char *
diags_json(const Diags *d, Arena *out)
{
	Text t;
	text_init(&t, out);
	text_printf(&t, "{\"diagnostics\":[");
	for (uint32_t k = 0; k < d->list.n; k++) {
		const Diag *g = &d->list.at[k];
		const CodeInfo *info = &code_info[g->code];
		text_printf(&t, "%s{\"code\":\"%s\",\"severity\":\"%s\",", k ? "," : "", info->id,
		            severity_text(info->severity));
		json_span(d, &t, g->at);
		text_printf(&t, ",\"message\":");
		json_text(&t, g->message);
		text_printf(&t, ",\"label\":");
		json_text(&t, g->label ? g->label : "");
		text_printf(&t, ",\"help\":");
		json_text(&t, g->help ? g->help : "");
		text_printf(&t, ",\"notes\":[");
		for (uint32_t j = 0; j < g->notes.n; j++) {
			text_printf(&t, "%s{", j ? "," : "");
			json_span(d, &t, g->notes.at[j].at);
			text_printf(&t, ",\"message\":");
			json_text(&t, g->notes.at[j].label);
			text_printf(&t, "}");
		}
		text_printf(&t, "]}");
	}
	text_printf(&t, "]}\n");
	return text_get(&t);
}
