/* stray.c: what the language has no use for: characters and malformed tokens, and files that are
 * not texts of ours at all. Where a habit of another language shows what was meant, the report
 * says it and the parser goes on with that. */
#include <string.h>

#include "frontend/lex.h"
#include "frontend/parser.h"

typedef struct {
	const char *text;
	int kind; /* what the parser goes on with; T_PARSE_YYerror: recover */
	const char *help;
} Habit;

static const Habit habits[] = {
	{"%", T_MOD, "the remainder is written `mod`; a comment starts with `#`"},
	{"^", T_POW, "the power is written `**`"},
	{"&", T_ANDAND, "logical and is written `&&`"},
	{"|", T_OROR, "logical or is written `||`"},
	{"//", T_DIV, "a comment starts with `#`; floor division is written `div`"},
	{"/*", T_PARSE_YYerror, "a comment starts with `#` and ends with the line"},
	{".", T_PARSE_YYerror, "a number has digits on both sides of its point, as in `0.5`; a range is `lo..hi`"},
	{"\\", T_PARSE_YYerror, "a statement goes on over a line end inside brackets or before an operator"},
	{"'", T_PARSE_YYerror, "paths are written in double quotes"},
	{"\xc3\x97", '*', "multiplication is written `*`"},
	{"\xc2\xb7", '*', "multiplication is written `*`"},
	{"\xe2\x8b\x85", '*', "multiplication is written `*`"},
	{"\xc3\xb7", '/', "division is written `/`"},
	{"\xe2\x88\x92", '-', "minus is written `-`"},
	{"\xe2\x80\x93", '-', "minus is written `-`"},
	{"\xe2\x89\xa4", T_LE, "write `<=`"},
	{"\xe2\x89\xa5", T_GE, "write `>=`"},
	{"\xe2\x89\xa0", T_NE, "write `!=`"},
	{"\xe2\x86\x92", T_ARROW, "write `->`"},
	{"\xe2\x80\xa6", T_DOTDOT, "a range is written `lo..hi`"},
	{"\xe2\x88\x9e", T_PARSE_YYerror, "infinity is written `inf`"},
	{"\xcf\x80", T_PARSE_YYerror, "the constant is written `pi`"},
	{"\xce\xa3", T_PARSE_YYerror, "a sum over i is written `sum[i](...)`"},
	{"\xe2\x88\x91", T_PARSE_YYerror, "a sum over i is written `sum[i](...)`"},
};

static const Habit *
habit_of(const char *s, size_t n)
{
	for (size_t k = 0; k < sizeof habits / sizeof habits[0]; k++)
		if (strlen(habits[k].text) == n && memcmp(habits[k].text, s, n) == 0)
			return &habits[k];
	return NULL;
}

static int
malformed_number(Lex *x, Span at, const char *s, size_t n)
{
	Diag *g = diag_add(x->diags, DIAG_E0105, at, "`%.*s` is neither a number nor a name",
	                   n > 60 ? 60 : (int)n, s);
	g->help = "a name starts with a letter or `_`; multiplication needs its `*`";
	return T_PARSE_YYerror;
}

int
lex_stray(Lex *x, Span at, const char *s, size_t n)
{
	unsigned char c = (unsigned char)s[0];
	if (x->skipping) /* one report a statement */
		return T_PARSE_YYerror;
	if (c >= '0' && c <= '9')
		return malformed_number(x, at, s, n);
	if (c == '"') {
		diag_add(x->diags, DIAG_E0106, at, "the string does not end on its line")->help =
			"close it with `\"`";
		return T_PARSE_YYerror;
	}
	const Habit *h = habit_of(s, n);
	int shown = n > 60 ? 60 : (int)n;
	Diag *g = c >= 0x80
		? diag_add(x->diags, DIAG_E0109, at, "`%.*s` can't be used outside a comment", shown, s)
		: diag_add(x->diags, DIAG_E0101, at, "unexpected character `%.*s`", shown, s);
	if (h)
		g->help = h->help;
	else if (c >= 0x80)
		g->help = "names are made of the letters a-z and A-Z, digits and `_`";
	return h ? h->kind : T_PARSE_YYerror;
}

/* --- whole files --- */

/* Bytes of the character at s when it is valid UTF-8, else 0. */
static size_t
utf8_length(const unsigned char *s, size_t n)
{
	size_t len = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
	if (len == 0 || len > n)
		return 0;
	for (size_t k = 1; k < len; k++)
		if ((s[k] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90)
	    || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

static bool
check_bytes(Diags *diags, FileId file, const SourceFile *f)
{
	uint32_t line = 1, col = 1;
	for (size_t i = 0; i < f->n;) {
		size_t len = utf8_length((const unsigned char *)f->text + i, f->n - i);
		Span at = {file, line, col, line, col + 1, (uint32_t)i, (uint32_t)i + 1};
		if (f->text[i] == 0) {
			diag_add(diags, DIAG_E0108, at, "the file holds a NUL byte: it is not a text");
			return false;
		}
		if (len == 0) {
			diag_add(diags, DIAG_E0108, at, "the byte 0x%02x is not valid UTF-8 here",
			         (unsigned char)f->text[i])->help = "save the file as UTF-8";
			return false;
		}
		col = f->text[i] == '\n' ? 1 : col + 1;
		line += f->text[i] == '\n';
		i += len;
	}
	return true;
}

/* LaTeX has the same file extension. Its documents start with a command, or with % comments and
 * then a command; no text of ours starts with either. */
static bool
check_latex(Diags *diags, FileId file, const SourceFile *f)
{
	size_t i = 0, from = 0;
	uint32_t line = 1;
	while (i < f->n && (strchr(" \t\r\n", f->text[i]) || f->text[i] == '%')) {
		if (f->text[i] == '%')
			while (i < f->n && f->text[i] != '\n')
				i++;
		if (i < f->n && f->text[i] == '\n') {
			line++;
			from = i + 1;
		}
		i += i < f->n;
	}
	if (i + 1 >= f->n || f->text[i] != '\\' || !strchr("abcdefghijklmnopqrstuvwxyz", f->text[i + 1] | 0x20))
		return true;
	size_t end = i + 1;
	while (end < f->n && end < i + 40 && (f->text[end] | 0x20) >= 'a' && (f->text[end] | 0x20) <= 'z')
		end++;
	uint32_t col = (uint32_t)(i - from) + 1, wide = (uint32_t)(end - i);
	Span at = {file, line, col, line, col + wide, (uint32_t)i, (uint32_t)end};
	diag_add(diags, DIAG_E0110, at, "this looks like a LaTeX document, not a tensor expression")->help =
		"texo reads .tex files of its own language; `texo explain E0110` shows one";
	return false;
}

bool
source_check(Diags *diags, FileId file)
{
	const SourceFile *f = &diags->files.at[file - 1];
	if (f->n > MAX_SOURCE) {
		Span at = {file, 1, 1, 1, 1, 0, 0};
		diag_add(diags, DIAG_E0901, at, "the file has more than the 1 MiB (1048576 bytes) that is read")
			->help = "split it and join the parts with `use`";
		return false;
	}
	return check_bytes(diags, file, f) && check_latex(diags, file, f);
}
