/* format.c: the one layout of a file. Every logical line on one line where it fits, else broken; two
 * blanks of indentation in a block; `=` aligned in runs of one-line definitions that differ little in
 * width, comments behind them likewise; at most one empty line between two lines, none at the edges of
 * a block. Comments keep their text and their place; a line with comments inside keeps its breaks.
 *
 * Only blanks, line ends and `;` change, so the meaning can't; still the result is read back and the
 * trees are compared. */
#include <string.h>

#include "frontend/frontend.h"
#include "frontend/format.h"
#include "frontend/parser.h"

enum { SPREAD = 10, /* of the widths that are aligned */ FAR = 80 /* columns: comments are aligned up to there */ };

uint32_t
format_flat(const Format *l, uint32_t i, uint32_t j)
{
	if (i >= j)
		return 0;
	const Piece *first = &l->piece.at[i];
	return l->piece.at[j - 1].end - (first->end - first->width);
}

static void
put_text(Format *l, const char *s, size_t n, uint32_t width)
{
	text_add(&l->out, s, n);
	l->column += width;
}

void
format_blanks(Format *l, uint32_t n)
{
	text_printf(&l->out, "%*s", (int)n, "");
	l->column += n;
}

void
format_newline(Format *l, uint32_t indent)
{
	text_add(&l->out, "\n", 1);
	l->column = 0;
	format_blanks(l, indent);
}

void
format_put(Format *l, uint32_t i, uint32_t j)
{
	for (uint32_t k = i; k < j; k++) {
		const Piece *p = &l->piece.at[k];
		if (k > i && p->space)
			format_blanks(l, 1);
		put_text(l, l->text + p->at.begin, p->at.end - p->at.begin, p->width);
	}
}

static void
put_comment(Format *l, const Comment *c)
{
	put_text(l, l->text + c->begin, c->end - c->begin, c->width);
}

/* --- what is aligned --- */

/* The columns the line takes on one line; 0 when it takes more than one. */
static uint32_t
one_line(const Format *l, const Line *line)
{
	uint32_t width = line->indent + line->pad + format_flat(l, line->first, line->first + line->n);
	return line->n && !line->pinned && line->kind != LINE_HEAD && width <= FORMAT_WIDTH ? width : 0;
}

static bool
is_adjacent(const Line *line)
{
	return !line->blank_before && line->ncomment == 0;
}

static bool
can_align(const Format *l, const Line *line)
{
	return line->kind == LINE_DEFINE && line->equals && one_line(l, line);
}

/* Up to the blank before the `=`. */
static uint32_t
left_width(const Format *l, const Line *line)
{
	return format_flat(l, line->first, line->equals);
}

/* Lines k .. end-1, all of a kind: aligned when their left sides differ little and all still fit. */
static void
align_equals(Format *l, uint32_t k, uint32_t end)
{
	uint32_t least = UINT32_MAX, most = 0, widest = 0;
	for (uint32_t i = k; i < end; i++) {
		uint32_t left = left_width(l, &l->line.at[i]);
		least = left < least ? left : least;
		most = left > most ? left : most;
	}
	for (uint32_t i = k; i < end; i++) {
		uint32_t width = one_line(l, &l->line.at[i]) + most - left_width(l, &l->line.at[i]);
		widest = width > widest ? width : widest;
	}
	if (most - least > SPREAD || widest > FORMAT_WIDTH)
		return;
	for (uint32_t i = k; i < end; i++)
		l->line.at[i].pad = most - left_width(l, &l->line.at[i]);
}

static void
align_definitions(Format *l)
{
	for (uint32_t k = 0, end; k < l->line.n; k = end) {
		end = k + 1;
		if (!can_align(l, &l->line.at[k]))
			continue;
		int word = l->piece.at[l->line.at[k].first].kind;
		bool item = word == T_FN || word == T_CONST;
		while (end < l->line.n && can_align(l, &l->line.at[end]) && is_adjacent(&l->line.at[end])
		       && (!item || l->piece.at[l->line.at[end].first].kind == word))
			end++;
		align_equals(l, k, end);
	}
}

static bool
has_short_trail(const Format *l, const Line *line)
{
	uint32_t width = one_line(l, line);
	return line->trail && width && width <= FAR;
}

static void
align_comments(Format *l)
{
	for (uint32_t k = 0, end; k < l->line.n; k = end) {
		uint32_t most = one_line(l, &l->line.at[k]);
		l->line.at[k].gap = 2;
		end = k + 1;
		if (!has_short_trail(l, &l->line.at[k]))
			continue;
		for (; end < l->line.n && has_short_trail(l, &l->line.at[end]) && is_adjacent(&l->line.at[end]); end++)
			if (one_line(l, &l->line.at[end]) > most)
				most = one_line(l, &l->line.at[end]);
		for (uint32_t i = k; i < end; i++)
			l->line.at[i].gap = most - one_line(l, &l->line.at[i]) + 2;
	}
}

/* --- lines --- */

/* A line with comments inside: its line ends stay, what goes on is indented by the open brackets. */
static void
put_pinned(Format *l, const Line *line)
{
	uint32_t depth = 0;
	for (uint32_t i = line->first; i < line->first + line->n; i++) {
		const Piece *p = &l->piece.at[i];
		depth -= p->match && p->match < i;
		uint32_t indent = p->kind == '{' ? line->indent : line->indent + FORMAT_INDENT * (depth + 1);
		for (uint32_t c = p->comment; c < p->comment + p->ncomment; c++) {
			if (l->comment.at[c].own_line)
				format_newline(l, indent);
			else
				format_blanks(l, 2);
			put_comment(l, &l->comment.at[c]);
		}
		if (i > line->first && p->first)
			format_newline(l, indent);
		else if (i > line->first)
			format_blanks(l, p->space);
		format_put(l, i, i + 1);
		depth += p->match > i;
	}
}

static void
put_line(Format *l, const Line *line)
{
	l->column = 0;
	format_blanks(l, line->indent);
	if (line->pinned) {
		put_pinned(l, line);
	} else if (line->pad) {
		format_put(l, line->first, line->equals);
		format_blanks(l, line->pad + 1);
		format_put(l, line->equals, line->first + line->n);
	} else {
		format_broken(l, line);
	}
	if (line->trail) {
		format_blanks(l, line->gap);
		put_comment(l, &l->comment.at[line->trail - 1]);
	}
	text_add(&l->out, "\n", 1);
}

static void
put_lines(Format *l)
{
	for (uint32_t k = 0; k < l->line.n; k++) {
		const Line *line = &l->line.at[k];
		for (uint32_t c = line->comment; c < line->comment + line->ncomment; c++) {
			if (l->comment.at[c].blank_before)
				text_add(&l->out, "\n", 1);
			format_blanks(l, line->kind == LINE_CLOSE ? FORMAT_INDENT : line->indent);
			put_comment(l, &l->comment.at[c]);
			text_add(&l->out, "\n", 1);
		}
		if (line->n == 0)
			break;
		if (line->blank_before)
			text_add(&l->out, "\n", 1);
		put_line(l, line);
	}
}

static void
check_meaning(Ast *before, AstId root, const char *text, size_t n)
{
	Diags d;
	diags_init(&d, before->arena);
	Ast *after = ast_new(before->arena, before->names, &d);
	AstId again = parse_file(after, diags_add_file(&d, "the layout", text, n));
	if (d.nerror || !ast_equal(before, root, after, again))
		bug(before->arena, "layout: the text laid out reads otherwise");
}

const char *
frontend_layout(Arena *a, Names *names, Diags *diags, FileId file, size_t *n)
{
	const SourceFile *f = &diags->files.at[file - 1];
	Ast *ast = ast_new(a, names, diags);
	AstId root = parse_file(ast, file);
	if (diags->nerror)
		return NULL;
	Format l = {.arena = a, .text = f->text, .n = f->n};
	text_init(&l.out, a);
	format_lines(&l, ast, file);
	format_spaces(&l);
	align_definitions(&l);
	align_comments(&l);
	put_lines(&l);
	*n = l.out.n;
	if (l.out.n > MAX_SOURCE) {
		Span at = {file, 1, 1, 1, 1, 0, 0};
		diag_add(diags, DIAG_E0901, at, "laid out, the file would have more than the 1 MiB (1048576 bytes) that is read")
			->help = "split it and join the parts with `use`";
		return NULL;
	}
	check_meaning(ast, root, text_get(&l.out), l.out.n);
	return text_get(&l.out);
}
