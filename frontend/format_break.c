/* format_break.c: a logical line that is too long. It is broken where it binds least, then each part
 * that is still too long in the same way: after commas and before operators, aligned with what they
 * belong to; `where` and `else` of a statement and `->` and `where` of a head on lines of their own.
 *
 * Every place chosen is one where the newline rule sees no end: inside brackets, before an infix
 * operator, `where`, `else`, `->` or `{`, and behind what wants an operand. */
#include "frontend/format.h"
#include "frontend/parser.h"

enum { DEEP = 60 /* columns: further right nothing is aligned */ };

typedef enum {
	BIND_COMMA, BIND_WHERE, BIND_COND, BIND_QQ, BIND_OR, BIND_AND, BIND_COMPARE, BIND_ADD, BIND_MUL, BIND_NONE
} Bind;

static void place(Format *l, uint32_t i, uint32_t j, uint32_t tail, uint32_t indent);

static Bind
bind_of(const Piece *p)
{
	if (p->unary)
		return BIND_NONE;
	switch (p->kind) {
	case ',':
		return BIND_COMMA;
	case T_WHERE:
		return BIND_WHERE;
	case '?':
		return BIND_COND;
	case ':':
		return p->cond ? BIND_COND : BIND_NONE;
	case T_QQ:
		return BIND_QQ;
	case T_OROR:
		return BIND_OR;
	case T_ANDAND:
		return BIND_AND;
	case T_EQ: case T_NE: case T_LE: case T_GE: case '<': case '>':
		return BIND_COMPARE;
	case '+': case '-':
		return BIND_ADD;
	case '*': case '/': case T_DIV: case T_MOD: case T_POW:
		return BIND_MUL;
	default:
		return BIND_NONE;
	}
}

/* The piece behind i, and behind the whole of a bracket. */
static uint32_t
next(const Format *l, uint32_t i)
{
	return l->piece.at[i].match > i ? l->piece.at[i].match + 1 : i + 1;
}

static Bind
weakest(const Format *l, uint32_t i, uint32_t j)
{
	Bind least = BIND_NONE;
	for (uint32_t k = i; k < j; k = next(l, k)) {
		Bind b = bind_of(&l->piece.at[k]);
		if (b < least)
			least = b;
	}
	return least;
}

/* Where the first part of i .. j-1 that is bound by b ends. */
static uint32_t
part_end(const Format *l, uint32_t i, uint32_t j, Bind b)
{
	for (uint32_t k = next(l, i); k < j; k = next(l, k)) {
		if (b == BIND_COMMA && l->piece.at[k - 1].kind == ',')
			return k;
		if (b != BIND_COMMA && bind_of(&l->piece.at[k]) == b)
			return k;
	}
	return j;
}

static bool
fits(const Format *l, uint32_t column, uint32_t i, uint32_t j, uint32_t tail)
{
	return column + format_flat(l, i, j) + tail <= FORMAT_WIDTH;
}

/* A part that may begin with the operator that binds it, or end with its comma. */
static void
place_part(Format *l, uint32_t i, uint32_t j, uint32_t tail, uint32_t indent)
{
	if (bind_of(&l->piece.at[i]) != BIND_NONE || l->piece.at[i].kind == T_ELSE || l->piece.at[i].kind == T_ARROW) {
		format_put(l, i, i + 1);
		i++;
		if (i < j)
			format_blanks(l, l->piece.at[i].space);
	}
	bool comma = l->piece.at[j - 1].kind == ',';
	place(l, i, j - comma, tail + comma, indent);
	format_put(l, j - comma, j);
}

/* As many parts on a line as fit. A factor that fits on no line goes on where it is. */
static void
fill(Format *l, uint32_t i, uint32_t j, Bind b, uint32_t tail, uint32_t indent)
{
	uint32_t base = l->column, end = part_end(l, i, j, b);
	place_part(l, i, end, end == j ? tail : 0, indent);
	while (end < j) {
		uint32_t from = end, space = l->piece.at[from].space;
		end = part_end(l, from, j, b);
		uint32_t after = end == j ? tail : 0;
		if (fits(l, l->column + space, from, end, after) || (b == BIND_MUL && !fits(l, base, from, end, after)))
			format_blanks(l, space);
		else
			format_newline(l, base);
		place_part(l, from, end, after, indent);
	}
}

/* `c ? a` with `: b` below it, aligned; where that is too wide each part on a line of its own. */
static void
place_cond(Format *l, uint32_t i, uint32_t j, uint32_t tail, uint32_t indent)
{
	uint32_t mark = part_end(l, i, j, BIND_COND), colon = part_end(l, mark, j, BIND_COND);
	uint32_t base = l->column;
	bool beside = l->piece.at[mark].kind == '?' && fits(l, l->column, i, colon, 0);
	if (beside) {
		base += format_flat(l, i, mark) + l->piece.at[mark].space;
		format_put(l, i, colon);
	} else {
		place(l, i, mark, 0, indent);
		colon = mark;
	}
	while (colon < j) {
		uint32_t end = part_end(l, colon, j, BIND_COND);
		if (beside && end < j && l->piece.at[end].kind == '?') /* `: c ? a` stays together */
			end = part_end(l, end, j, BIND_COND);
		format_newline(l, base);
		place_part(l, colon, end, end == j ? tail : 0, indent);
		colon = end;
	}
}

/* No operator stands outside brackets here: what is inside them is broken. */
static void
place_brackets(Format *l, uint32_t i, uint32_t j, uint32_t tail, uint32_t indent)
{
	for (uint32_t k = i; k < j;) {
		uint32_t close = l->piece.at[k].match;
		if (k > i)
			format_blanks(l, l->piece.at[k].space);
		format_put(l, k, k + 1);
		k++;
		if (close < k)
			continue;
		uint32_t after = close + 1; /* what must follow on the line of the closing bracket */
		while (after < j && l->piece.at[after].match <= after)
			after++;
		uint32_t rest = format_flat(l, close, after) + (after == j ? tail : 1);
		if (l->column > DEEP && !fits(l, l->column, k, close, rest))
			format_newline(l, indent + 2 * FORMAT_INDENT);
		if (k < close)
			place(l, k, close, rest, indent);
		format_put(l, close, close + 1);
		k = close + 1;
	}
}

/* Pieces i .. j-1 from the present column on; `tail` columns must follow on the last line. `indent`
 * is that of the logical line. */
static void
place(Format *l, uint32_t i, uint32_t j, uint32_t tail, uint32_t indent)
{
	Bind b = weakest(l, i, j);
	if (fits(l, l->column, i, j, tail))
		format_put(l, i, j);
	else if (b == BIND_NONE)
		place_brackets(l, i, j, tail, indent);
	else if (b == BIND_COND)
		place_cond(l, i, j, tail, indent);
	else
		fill(l, i, j, b, tail, indent);
}

/* --- whole lines --- */

static bool
assigns(int kind)
{
	return kind == '=' || kind == T_ADDEQ || kind == T_MAXEQ || kind == T_MINEQ;
}

/* The first piece from i on, outside brackets, that `is` holds for; j if none. */
static uint32_t
find(const Format *l, uint32_t i, uint32_t j, bool (*is)(int kind))
{
	while (i < j && !is(l->piece.at[i].kind))
		i = next(l, i);
	return i < j ? i : j;
}

static bool
ends_value(int kind)
{
	return kind == T_WHERE || kind == T_ELSE;
}

static bool
is_arrow(int kind)
{
	return kind == T_ARROW || kind == T_WHERE || kind == '{';
}

static bool
is_where(int kind)
{
	return kind == T_WHERE || kind == '{';
}

/* `where c else v` on one line, or on two. */
static void
break_domain(Format *l, uint32_t i, uint32_t j, uint32_t indent)
{
	bool whole = fits(l, indent + FORMAT_INDENT, i, j, 0);
	while (i < j) {
		uint32_t end = whole ? j : find(l, i + 1, j, ends_value);
		format_newline(l, indent + FORMAT_INDENT);
		if (whole)
			format_put(l, i, end);
		else
			place_part(l, i, end, 0, indent);
		i = end;
	}
}

static void
break_statement(Format *l, const Line *line)
{
	uint32_t i = line->first, j = i + line->n, indent = line->indent;
	uint32_t assign = find(l, i, j, assigns), end = find(l, i, j, ends_value);
	if (assign < end) {
		place(l, i, assign, 2, indent);
		format_blanks(l, 1);
		format_put(l, assign, assign + 1);
		if (l->column > DEEP)
			format_newline(l, indent + 2 * FORMAT_INDENT);
		else
			format_blanks(l, 1);
		i = assign + 1;
	} else if (l->piece.at[i].kind == T_RETURN) {
		format_put(l, i, i + 1);
		format_blanks(l, 1);
		i++;
	}
	place(l, i, end, 0, indent);
	break_domain(l, end, j, indent);
}

/* The head of a graph or function: its facts on a line of their own, and then the brace. */
static void
break_head(Format *l, const Line *line)
{
	uint32_t i = line->first, j = i + line->n, brace = j - 1, indent = line->indent;
	uint32_t arrow = find(l, i, j, is_arrow), facts = find(l, i, j, is_where);
	place(l, i, arrow, 0, indent);
	if (arrow < facts) {
		if (l->column == format_flat(l, i, arrow) && fits(l, l->column + 1, arrow, facts, 0))
			format_blanks(l, 1);
		else
			format_newline(l, indent + FORMAT_INDENT);
		place_part(l, arrow, facts, 0, indent);
	}
	if (facts < brace) {
		format_newline(l, indent + FORMAT_INDENT);
		place_part(l, facts, brace, 0, indent);
	}
	format_newline(l, indent);
	format_put(l, brace, j);
}

void
format_broken(Format *l, const Line *line)
{
	uint32_t j = line->first + line->n;
	bool facts = line->kind == LINE_HEAD && find(l, line->first, j, ends_value) < j;
	if (!facts && fits(l, line->indent, line->first, j, 0))
		format_put(l, line->first, j);
	else if (line->kind == LINE_HEAD)
		break_head(l, line);
	else
		break_statement(l, line);
}
