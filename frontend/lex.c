/* lex.c: the newline rule, the open brackets, and what is skipped after an error.
 *
 * A line end becomes an NL token where the last token can end a statement, no ( or [ is open, and
 * the next token does not continue the line above. `}` and the end of the file end a statement too.
 * Where a bracket is open or an operand is missing a line end is blank, with one exception that no
 * valid text has: a line that starts an item, a `return`, or holds a `=` of its own is a new
 * statement, so the one above was never finished; the NL given there makes the parser say so, and
 * brackets count from zero again. */
#include <string.h>

#include "frontend/lex.h"
#include "frontend/parser.h"

int lex_yylex(ParseValue *v, Span *at, void *scanner);

static bool
can_end(int kind)
{
	return kind == T_ID || kind == T_NUM || kind == T_STR || kind == ')' || kind == ']' || kind == '}';
}

static bool
is_infix(int kind)
{
	switch (kind) {
	case '+': case '-': case '*': case '/': case '<': case '>': case '?': case ':': case '~':
	case T_DIV: case T_MOD: case T_POW: case T_EQ: case T_NE: case T_LE: case T_GE: case T_ANDAND:
	case T_OROR: case T_QQ:
		return true;
	default:
		return false;
	}
}

/* Whether a line that starts with it continues the one above. */
static bool
continues(int kind)
{
	return is_infix(kind) || kind == T_WHERE || kind == T_ELSE || kind == T_ARROW || kind == '{';
}

/* A word that starts an item, with a name, a path or nothing behind it on its line. */
static bool
starts_item(const Lex *x, const Token *t)
{
	int k = t->kind;
	if (k != T_GRAPH && k != T_FN && k != T_CONST && k != T_USE && k != T_MESH)
		return false;
	size_t i = t->at.end;
	while (i < x->n && (x->text[i] == ' ' || x->text[i] == '\t'))
		i++;
	return i == x->n || !strchr("=[:,)].+-*/<>!?&|({", x->text[i]);
}

bool
lex_after_target(const Lex *x)
{
	return !x->line_end && (x->prev.kind == T_ID || x->prev.kind == ']');
}

/* An `=` outside brackets on this line: no valid text has one where a bracket is open above. */
static bool
looks_like_statement(const Lex *x, size_t at)
{
	int depth = 0;
	const char *s = x->text;
	for (size_t i = at; i < x->n && s[i] != '\n' && s[i] != '#' && s[i] != ';'; i++) {
		if (strchr("([{", s[i]))
			depth++;
		else if (strchr(")]}", s[i]) && --depth < 0)
			return false;
		else if (s[i] == '=' && i + 1 < x->n && s[i + 1] == '=')
			i++;
		else if (s[i] == '=' && depth == 0 && i > at && !strchr("<>!", s[i - 1]))
			return true;
	}
	return false;
}

static Token
raw(Lex *x)
{
	Token t = {.kind = T_END};
	if (!x->stopped)
		t.kind = lex_yylex(&t.value, &t.at, x->scanner);
	if (x->stopped)
		t.kind = T_END;
	t.first = x->line_end || x->prev.kind == T_END;
	x->line_end = false;
	if (t.kind == T_END) /* the file ends behind its last token */
		t.at = (Span){x->file, x->line, x->col, x->line, x->col, x->at, x->at};
	return t;
}

static Token *
peek(Lex *x)
{
	if (!x->has_ahead) {
		x->ahead = raw(x);
		x->has_ahead = true;
	}
	return &x->ahead;
}

static Span
span_after(Span s)
{
	return (Span){s.file, s.end_line, s.end_col, s.end_line, s.end_col, s.end, s.end};
}

static Token
made(int kind, Span at)
{
	return (Token){.kind = kind, .at = at};
}

/* --- brackets --- */

static bool
in_parens(const Lex *x)
{
	return x->open.n > 0 && x->open.at[x->open.n - 1].open != '{';
}

static void
drop_parens(Lex *x)
{
	while (in_parens(x))
		x->open.n--;
}

static void
open_bracket(Lex *x, char c, Span at)
{
	if (x->open.n >= MAX_NESTING) {
		lex_stop(x, DIAG_E0903, at, "more than 128 brackets are open here",
		         "give the inner parts names of their own");
		return;
	}
	vec_push(x->arena, &x->open, ((Bracket){c, at}));
	x->braces += c == '{';
	if (c == '{' && x->braces == 1)
		x->has_return = x->block_broken = false;
}

/* Closes the innermost bracket of this kind in the same block, and what is open inside it. */
static void
close_bracket(Lex *x, char open)
{
	uint32_t k = x->open.n;
	while (k > 0 && x->open.at[k - 1].open != open && (open == '{' || x->open.at[k - 1].open != '{'))
		k--;
	if (k == 0 || x->open.at[k - 1].open != open)
		return;
	x->open.n = k - 1;
	x->braces -= open == '{';
}

static void
track(Lex *x, const Token *t)
{
	switch (t->kind) {
	case '(': case '[': case '{':
		open_bracket(x, (char)t->kind, t->at);
		break;
	case T_QOPEN:
		open_bracket(x, '[', t->at);
		break;
	case ')':
		close_bracket(x, '(');
		break;
	case ']':
		close_bracket(x, '[');
		break;
	case '}':
		close_bracket(x, '{');
		break;
	case T_FN: case T_GRAPH:
		x->in_fn = x->braces == 0 ? t->kind == T_FN : x->in_fn;
		break;
	case T_RETURN:
		x->has_return = true;
		break;
	default:
		break;
	}
}

/* --- handing out --- */

static Token
hand_out(Lex *x, Token t)
{
	x->inner = x->open.n ? x->open.at[x->open.n - 1] : (Bracket){0};
	x->inner_braces = x->braces;
	if (t.kind == T_NL)
		drop_parens(x);
	track(x, &t);
	x->prev = t;
	return t;
}

static Token
take(Lex *x)
{
	Token t = *peek(x);
	x->has_ahead = false;
	return t;
}

/* Ends the block that an item or the end of the file shows to be unfinished. */
static Token
end_block(Lex *x, Span at)
{
	Bracket brace = {0};
	for (uint32_t k = 0; k < x->open.n; k++)
		if (x->open.at[k].open == '{')
			brace = x->open.at[k];
	if (!x->stopped) {
		Diag *g = diag_add(x->diags, DIAG_E0102, at, "the block is never closed: `}` is missing here");
		diag_note(x->diags, g, brace.at, "opened here");
	}
	x->block_broken = true;
	x->open.n = 0;
	x->braces = 0;
	Token number = made(T_NUM, at);
	number.value.number.is_int = true;
	x->npending = 0;
	x->fn_gap |= x->in_fn && !x->has_return;
	x->pending[x->npending++] = made(T_NL, at);
	x->pending[x->npending++] = made('}', at);
	if (x->in_fn && !x->has_return) {
		x->pending[x->npending++] = made(T_NL, at);
		x->pending[x->npending++] = number;
		return hand_out(x, made(T_RETURN, at));
	}
	return hand_out(x, x->pending[--x->npending]);
}

/* A function's block that ends without return gets one, so that what follows it is read well. */
static Token
end_without_return(Lex *x, Span at)
{
	if (!x->block_broken)
		diag_add(x->diags, DIAG_E0111, at, "a function's block ends in `return` and an expression")
			->help = "end the block with `return expr`";
	x->block_broken = true;
	Token number = made(T_NUM, at);
	number.value.number.is_int = true;
	x->fn_gap = true;
	x->pending[x->npending++] = made(T_NL, at);
	x->pending[x->npending++] = number;
	return hand_out(x, made(T_RETURN, at));
}

/* Whether an expression must follow. */
static bool
wants_operand(int kind)
{
	return (is_infix(kind) && kind != ':') || kind == '=' || kind == T_ADDEQ || kind == T_MAXEQ
	       || kind == T_MINEQ || kind == T_WHERE || kind == T_ELSE || kind == T_RETURN;
}

/* Whether the statement ends before the next token. */
static bool
ends_statement(const Lex *x, const Token *t)
{
	if (x->prev.kind == T_NL || x->prev.kind == T_END || x->prev.kind == '{')
		return false;
	if (t->kind == T_END || t->kind == '}' || t->kind == ';')
		return true;
	if (!t->first)
		return false;
	if (starts_item(x, t))
		return true;
	if (in_parens(x) || wants_operand(x->prev.kind))
		return t->kind == T_RETURN || looks_like_statement(x, t->at.begin);
	return (can_end(x->prev.kind) || x->prev.kind == T_PARSE_YYerror) && !continues(t->kind);
}

/* Whether recovery is over before this token. Between items it takes a line that starts one. */
static bool
ends_skip(const Lex *x, const Token *t)
{
	if (t->kind == T_END || (t->first && starts_item(x, t)))
		return true;
	if (x->braces > x->skip_braces)
		return false;
	if (x->skip_braces == 0)
		return t->first && t->kind == '@';
	return t->kind == '}' || t->kind == ';' || (t->first && ends_statement(x, t));
}

/* The NL before the next token; a `;` is its own. */
static Token
end_statement(Lex *x)
{
	Span at = span_after(x->prev.at);
	if (peek(x)->kind == ';')
		at = take(x).at;
	return hand_out(x, made(T_NL, at));
}

/* Recovery: everything up to the end of the statement is dropped. */
static void
skip(Lex *x)
{
	Token last = x->prev;
	while (!ends_skip(x, peek(x))) {
		Token dropped = take(x);
		track(x, &dropped);
		x->prev = dropped;
	}
	x->skipping = false;
	if (x->skip_braces == 0)
		x->open.n = x->braces = 0;
	if (last.kind == T_NL) /* the parser has it already */
		x->prev = last;
}

Token
lex_token(Lex *x)
{
	if (x->npending)
		return hand_out(x, x->pending[--x->npending]);
	if (x->skipping) {
		bool had = x->prev.kind == T_NL;
		skip(x);
		if (!had)
			return end_statement(x);
	}
	Token *t = peek(x);
	while (t->kind == ';' && !ends_statement(x, t)) {
		take(x);
		t = peek(x);
	}
	Span after = x->prev.kind == T_END ? t->at : span_after(x->prev.at);
	if (x->stopped)
		return hand_out(x, made(T_END, after));
	if (ends_statement(x, t))
		return end_statement(x);
	if (x->braces > 0 && (t->kind == T_END || (t->first && starts_item(x, t))))
		return end_block(x, after);
	if (t->kind == '}' && x->braces == 1 && x->in_fn && !x->has_return)
		return end_without_return(x, t->at);
	Token out = take(x);
	if (out.kind == T_END)
		out.at = after;
	return hand_out(x, out);
}

/* Whether the parser can go on with it after a statement's end. */
static bool
starts_statement(int kind)
{
	return kind == T_ID || kind == '(' || kind == T_RETURN || kind == '}' || kind == T_END;
}

void
lex_recover(Lex *x)
{
	x->block_broken = true;
	if (diags_full(x->diags))
		x->stopped = true;
	x->has_return = false; /* the parser goes back to the start of a statement */
	if (x->prev.kind == T_END || (x->prev.kind == T_NL && x->braces > 0 && starts_statement(peek(x)->kind)))
		return;
	x->npending = 0;
	x->skipping = true;
	x->skip_braces = x->inner_braces;
}

void
lex_stop(Lex *x, DiagCode code, Span at, const char *message, const char *help)
{
	if (!x->stopped)
		diag_add(x->diags, code, at, "%s", message)->help = help;
	x->stopped = true;
}

/* --- for lexer.l --- */

Span
lex_advance(Lex *x, const char *s, size_t n)
{
	Span at = {x->file, x->line, x->col, 0, 0, x->at, x->at + (uint32_t)n};
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\n') {
			x->line++;
			x->col = 1;
		} else if (((unsigned char)s[i] & 0xc0) != 0x80) {
			x->col++;
		}
	}
	x->at += (uint32_t)n;
	at.end_line = x->line;
	at.end_col = x->col;
	return at;
}

void
lex_unread(Lex *x, Span *at)
{
	x->at--;
	x->col--;
	at->end--;
	at->end_col--;
}

bool
lex_fits(Lex *x, Span at)
{
	if (at.end - at.begin <= MAX_TOKEN)
		return true;
	lex_stop(x, DIAG_E0902, at, "a word, number or string of more than 4096 bytes", NULL);
	return false;
}

int
lex_word(Lex *x, ParseValue *v, const char *s, size_t n)
{
	v->name = name_of(x->names, s, n);
	return T_ID;
}

int
lex_number(Lex *x, ParseValue *v, Span at, const char *s, size_t n)
{
	switch (number_read(s, n, &v->number)) {
	case NUMBER_OK:
		break;
	case NUMBER_TOO_LARGE:
		diag_add(x->diags, DIAG_E0905, at, "the number is too large for f64")->help =
			"the largest f64 is about 1.8e308; `inf` is infinity";
		break;
	case NUMBER_WIDE_HEX:
		diag_add(x->diags, DIAG_E0905, at, "the number does not fit in 64 bits with a sign")->help =
			"the largest is 0x7fffffffffffffff; higher bit patterns are negative numbers";
		break;
	}
	return T_NUM;
}

int
lex_string(Lex *x, ParseValue *v, Span at, const char *s, size_t n)
{
	(void)at;
	v->name = name_of(x->names, s + 1, n - 2);
	return T_STR;
}
