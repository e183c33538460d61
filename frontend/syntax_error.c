/* syntax_error.c: what the parser expected, in the user's terms, and the mend where one is obvious.
 *
 * The parser hands over the exact set of tokens that could follow (look-ahead correction makes it
 * exact). Sets that mean "an expression starts here" and "an operator goes on" are named as such. */
#include <string.h>

#include "frontend/lex.h"
#include "frontend/parser.h"

enum { MOST_NAMED = 4, MOST_SHOWN = 40 };

typedef struct {
	const char *const *at;
	int n;
} Expected;

static bool
has(Expected e, const char *text)
{
	for (int k = 0; k < e.n; k++)
		if (strcmp(e.at[k], text) == 0)
			return true;
	return false;
}

static bool
listed(const char *text, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(text, *list) == 0)
			return true;
	return false;
}

static const char *const operand_starts[] = {"name", "number", "'('", "'-'", "'!'", NULL};
static const char *const operators[] = {
	"'+'", "'-'", "'*'", "'/'", "'<'", "'>'", "'?'", "div", "mod", "**", "==", "!=", "<=", ">=", "&&",
	"||", "??", "'['", "'('", "?[", "where", "else", "'~'", NULL,
};
static const char *const assigns[] = {"+=", "max=", "min=", NULL};
static const char *const plain_words[] = {"name", "number", "string", NULL};

static bool
wants_expr(Expected e)
{
	return has(e, "number") && has(e, "'!'");
}

static bool
wants_operator(Expected e)
{
	return has(e, "'*'") && has(e, "mod");
}

/* "`)`", "a name", "the end of the line" */
static const char *
spelled(Arena *a, const char *text)
{
	if (strcmp(text, "end of line") == 0)
		return "the end of the line";
	if (strcmp(text, "end of file") == 0)
		return "the end of the file";
	if (listed(text, plain_words))
		return arena_text(a, "a %s", text);
	if (text[0] == '\'')
		return arena_text(a, "`%c`", text[1]);
	return arena_text(a, "`%s`", text);
}

static const char *
found(const Lex *x)
{
	const Token *t = &x->prev;
	if (t->kind == T_END)
		return "the end of the file";
	if (t->kind == T_NL && t->at.begin == t->at.end)
		return t->at.end >= x->n ? "the end of the file" : "the end of the line";
	uint32_t n = t->at.end - t->at.begin;
	return arena_text(x->arena, "`%.*s`", n > MOST_SHOWN ? MOST_SHOWN : (int)n, x->text + t->at.begin);
}

/* "an operator, `,` or `)`" */
static const char *
wanted(Arena *a, Expected e)
{
	const char *part[MOST_NAMED + 1];
	int n = 0;
	bool expr = wants_expr(e), op = !expr && wants_operator(e);
	for (int k = 0; k < e.n && n < MOST_NAMED; k++) {
		if ((expr && listed(e.at[k], operand_starts)) || (op && listed(e.at[k], operators))
		    || (has(e, "'='") && listed(e.at[k], assigns)))
			continue;
		part[n++] = spelled(a, e.at[k]);
	}
	if (expr)
		part[n++] = "an expression";
	else if (op)
		part[n++] = "an operator";
	Text t;
	text_init(&t, a);
	for (int k = n - 1; k >= 0; k--)
		text_printf(&t, "%s%s", part[k], k == 0 ? "" : k == 1 ? " or " : ", ");
	return text_get(&t);
}

static bool
is_comparison(int kind)
{
	return kind == T_EQ || kind == T_NE || kind == '<' || kind == '>' || kind == T_LE || kind == T_GE;
}

/* Words of the grammar, met where a name is wanted. */
static bool
is_word(int kind)
{
	switch (kind) {
	case T_GRAPH: case T_FN: case T_CONST: case T_USE: case T_MESH: case T_WHERE: case T_ELSE:
	case T_IN: case T_INOUT: case T_RETURN: case T_DIV: case T_MOD:
		return true;
	default:
		return false;
	}
}

static char
closer_of(char open)
{
	return open == '(' ? ')' : open == '[' ? ']' : '}';
}

/* A bracket is open, its closer would fit, and the text shows that it won't come. */
static bool
report_unclosed(const Lex *x, Expected e)
{
	const Token *t = &x->prev;
	if (!x->inner.open || x->inner.open == '{')
		return false;
	char want[4] = {'\'', closer_of(x->inner.open), '\'', 0};
	bool ends = t->kind == T_NL || t->kind == T_END || t->kind == '{' || t->kind == '}' || t->kind == ')'
	            || t->kind == ']' || t->kind == T_ARROW || t->kind == '=' || t->first;
	if (!ends || !has(e, want))
		return false;
	Diag *g = diag_add(x->diags, DIAG_E0102, t->at, "`%c` is missing before %s", want[1], found(x));
	diag_note(x->diags, g, x->inner.at, "opened here");
	return true;
}

static bool
report_unopened(const Lex *x)
{
	const Token *t = &x->prev;
	char open = t->kind == ')' ? '(' : t->kind == ']' ? '[' : t->kind == '}' ? '{' : 0;
	if (!open || x->inner.open == open)
		return false;
	if (x->inner.open && open != '{' && x->inner.open != '{') {
		Diag *g = diag_add(x->diags, DIAG_E0102, t->at, "`%c` does not close the `%c` that is open here",
		                   t->kind, x->inner.open);
		diag_note(x->diags, g, x->inner.at, "opened here");
		return true;
	}
	diag_add(x->diags, DIAG_E0102, t->at, "`%c` closes nothing: no `%c` is open here", t->kind, open);
	return true;
}

static bool
report_operator(const Lex *x, Expected e)
{
	const Token *t = &x->prev;
	if (t->kind == '=' && wants_operator(e) && has(e, "==")) {
		diag_add(x->diags, DIAG_E0103, t->at, "`=` defines; it can't be used inside an expression")->help =
			"write `==` to compare";
		return true;
	}
	if (is_comparison(t->kind) && wants_operator(e)) {
		diag_add(x->diags, DIAG_E0104, t->at, "comparisons can't be chained")->help =
			"write `a < b && b < c`";
		return true;
	}
	return false;
}

static bool
report_word(const Lex *x, Expected e)
{
	const Token *t = &x->prev;
	if (t->kind == T_RETURN && x->inner.open == '{' && !x->in_fn) {
		diag_add(x->diags, DIAG_E0111, t->at, "a graph has no `return`: its results are defined by name")
			->help = "write `NAME = ...` for each result named after `->`";
		return true;
	}
	if (!is_word(t->kind) || !has(e, "name"))
		return false;
	diag_add(x->diags, DIAG_E0107, t->at, "%s is a word of the language and can't be a name", found(x));
	return true;
}

static bool
report_outside(const Lex *x, Expected e)
{
	const Token *t = &x->prev;
	if (x->inner_braces > 0 || !has(e, "graph") || !has(e, "fn") || t->kind == '}' || t->kind == ')' || t->kind == ']')
		return false;
	Diag *g = diag_add(x->diags, DIAG_E0113, t->at, "%s is outside any graph or function", found(x));
	g->help = "a file is made of `graph`, `fn`, `const`, `use` and `mesh`; definitions stand in a graph's { }";
	return true;
}

void
syntax_error(Parse *p, const char *const *expected, int n)
{
	const Lex *x = &p->lex;
	Expected e = {expected, n};
	const Diag *last = x->diags->list.n ? &x->diags->list.at[x->diags->list.n - 1] : NULL;
	if (last && last->at.file == x->file && last->at.begin == x->prev.at.begin
	    && last->at.end == x->prev.at.end)
		return; /* the lexer has said it */
	if (report_outside(x, e) || report_word(x, e) || report_unclosed(x, e) || report_unopened(x)
	    || report_operator(x, e))
		return;
	Diag *g = diag_add(x->diags, DIAG_E0100, x->prev.at, "expected %s, found %s", wanted(p->arena, e),
	                   found(x));
	if (has(e, "max=") && x->prev.kind != T_NL)
		g->help = "a statement is a definition, `NAME[i, j] = expression`";
	else if (x->prev.kind == T_ID && x->inner.open && x->inner.open != '{' && has(e, "','"))
		g->help = "put `,` or an operator between the two";
}
