/* explain_code.c: the long text of a diagnostic's code, from its row in codes.def. */
#include "driver/explain_code.h"
#include "driver/near.h"

#include <string.h>

bool
looks_like_code(const char *word)
{
	size_t n = strlen(word);
	return n >= 2 && n <= 6 && strchr("EWRewr", word[0]) && strspn(word + 1, "0123456789") == n - 1;
}

/* Paragraphs are filled to 80 columns; indented lines, which are programs, stay as they are. */
static void
print_wrapped(const char *text, Text *out)
{
	unsigned col = 0;
	bool verbatim = *text == ' ';
	for (const char *c = text; *c; c++) {
		if (*c == '\n') {
			verbatim = c[1] == ' ';
			col = 0;
		} else if (*c == ' ' && !verbatim && col + 1 + strcspn(c + 1, " \n") > 80) {
			text_add(out, "\n", 1);
			col = 0;
			continue;
		} else {
			col++;
		}
		text_add(out, c, 1);
	}
}

ExitCode
explain_code(Session *s, const char *word)
{
	DiagCode code = code_named(word);
	if (code == DIAG_NONE) {
		Near near = {.word = word};
		for (unsigned c = 1; c < code_count; c++)
			near_offer(&near, code_info[c].id);
		problem(&s->problem, EXIT_USAGE, "there is no code '%s'", word);
		const char *mend = near_text(&near, &s->arena);
		if (mend)
			problem_help(&s->problem, "%s", mend);
		return session_fail(s);
	}
	const CodeInfo *info = &code_info[code];
	Text *out = &s->out;
	if (option_on(s->options, OPT_JSON)) {
		text_printf(out, "{\"code\":\"%s\",\"severity\":\"%s\",\"title\":", info->id, severity_text(info->severity));
		text_json(out, info->title, strlen(info->title));
		text_printf(out, ",\"text\":");
		text_json(out, info->text, strlen(info->text));
		text_printf(out, "}\n");
	} else {
		text_printf(out, "%s (%s): %s\n\n", info->id, severity_text(info->severity), info->title);
		print_wrapped(info->text, out);
		text_printf(out, "\n");
	}
	return EXIT_OK;
}
