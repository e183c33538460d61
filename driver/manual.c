/* manual.c: texo --man: the manual page, in the macros of man(7), from the rows of options.def. */
#include "driver/options_table.h"

#include <string.h>

/* Words as roff takes them for words: no escape, no hyphen where a minus is meant, no request. */
static void
put(Text *out, const char *s)
{
	bool first = true;
	for (; *s; s++) {
		if (first && (*s == '.' || *s == '\''))
			text_printf(out, "\\&");
		if (*s == '\\')
			text_printf(out, "\\e");
		else if (*s == '-')
			text_printf(out, "\\-");
		else if (*s == '|')
			text_printf(out, "|\\:"); /* a line may end here */
		else
			text_add(out, s, 1);
		first = *s == '\n';
	}
}

static void
put_commands(Text *out)
{
	text_printf(out, ".SH COMMANDS\n");
	for (int c = 1; c < CMD_END; c++) {
		const CommandRow *row = &command_table[c];
		if (!row->built)
			continue;
		text_printf(out, ".TP\n\\fBtexo %s\\fR %s", row->name, *row->operands ? "\\fI" : "");
		put(out, row->operands);
		text_printf(out, "\\fR\n");
		put(out, row->summary);
		text_printf(out, "\n");
	}
}

static void
put_option(Text *out, const OptionRow *row)
{
	text_printf(out, ".TP\n");
	if (row->letter)
		text_printf(out, "\\fB\\-%c\\fR, ", row->letter);
	text_printf(out, "\\fB\\-\\-");
	put(out, row->name);
	text_printf(out, "\\fR");
	if (row->kind != VALUE_FLAG) {
		text_printf(out, "=\\fI");
		put(out, row->value);
		text_printf(out, "\\fR");
	}
	text_printf(out, "\n");
	put(out, row->help);
	if (*row->default_text) {
		text_printf(out, " (default: ");
		put(out, row->default_text);
		text_printf(out, ")");
	}
	text_printf(out, ".\n");
	if (row->commands == 0xffffffffu)
		return;
	text_printf(out, "Of:");
	for (int c = 1; c < CMD_END; c++)
		if (command_table[c].built && row->commands >> c & 1)
			text_printf(out, " %s", command_table[c].name);
	text_printf(out, ".\n");
}

static void
put_environment(Text *out)
{
	text_printf(out, ".SH ENVIRONMENT\nAn option on the command line wins over its variable.\n");
	for (int o = 1; o < OPT_END; o++)
		if (*option_table[o].env) {
			text_printf(out, ".TP\n.B %s\n\\fB\\-\\-", option_table[o].env);
			put(out, option_table[o].name);
			text_printf(out, "\\fR\n");
		}
	text_printf(out, ".TP\n.B XDG_CACHE_HOME\nwhere the folder of compiled code is made, if it is an absolute path\n"
	                 ".TP\n.B NO_COLOR\nreports are not coloured\n");
}

void
manual_print(Text *out)
{
	text_printf(out, ".TH TEXO 1 \"\" \"texo %s\"\n.SH NAME\ntexo \\- compile tensor expressions to fused kernels\n"
	                 ".SH SYNOPSIS\n.B texo\n.I COMMAND\n[options] [operands]\n"
	                 ".SH DESCRIPTION\nReads graphs of tensor expressions, written in index notation in .tex files, "
	                 "and checks, compiles and runs them.\n", TEXO_VERSION);
	put_commands(out);
	text_printf(out, ".SH OPTIONS\n");
	for (int o = 1; o < OPT_END; o++)
		put_option(out, &option_table[o]);
	text_printf(out, ".SH INPUTS\n.nf\n");
	put(out, help_input_forms);
	text_printf(out, ".fi\n.SH EXIT STATUS\n");
	put(out, help_exit_codes);
	put_environment(out);
	text_printf(out, ".SH FILES\n.TP\n.I ~/.cache/texo\ncompiled code; texo cache looks after it\n");
}
