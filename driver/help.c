/* help.c: the help texts, from the rows of options.def. */
#include "driver/options_table.h"

#include <string.h>

const char help_exit_codes[] =
	"Exit codes: 0 fine, 1 the input is wrong, 2 usage, 3 file I/O or out of memory, 4 device or tool\n"
	"missing or failing, 5 results differ or a test failed, 70 a bug of texo, 77 what would be 4 with\n"
	"--skip-if-missing, 130 interrupted.\n";

const char help_input_forms[] =
	"Inputs are name=value:\n"
	"  x=@x.npy            a file (x=@- reads stdin)\n"
	"  x=random, random:42 uniform in [-1, 1), or inside the extents an integer input subscripts;\n"
	"                      the default\n"
	"  x=normal:7          normal with mean 0 and deviation 1\n"
	"  x=zeros, ones, iota 0; 1; 0, 1, 2, ...\n"
	"  x=[[1, 2], [3, 4]]  a literal\n"
	"  alpha=0.5           a scalar\n"
	"  M=4096              a dim; one that nothing gives is chosen small, and said\n";

static void
option_print(const OptionRow *row, Text *out)
{
	if (row->letter)
		text_printf(out, "  -%c, --%s", row->letter, row->name);
	else
		text_printf(out, "      --%s", row->name);
	if (row->kind != VALUE_FLAG)
		text_printf(out, "=%s", row->value);
	text_printf(out, "\n            %s", row->help);
	if (*row->default_text)
		text_printf(out, " (default: %s)", row->default_text);
	if (*row->env)
		text_printf(out, " [%s]", row->env);
	text_printf(out, "\n");
}

static void
all_print(Text *out)
{
	text_printf(out, "texo compiles tensor expression graphs (.tex) to fused kernels.\n\n"
	                 "usage: texo COMMAND [options] [operands]\n\ncommands:\n");
	for (int c = 1; c < CMD_END; c++)
		if (command_table[c].built)
			text_printf(out, "  %-11s %s\n", command_table[c].name, command_table[c].summary);
	text_printf(out, "\nnot built yet:");
	for (int c = 1; c < CMD_END; c++)
		if (!command_table[c].built)
			text_printf(out, " %s", command_table[c].name);
	text_printf(out, "\n\noptions of every command:\n");
	for (int o = 1; o < OPT_END; o++)
		if (option_table[o].commands == 0xffffffffu)
			option_print(&option_table[o], out);
	text_printf(out, "\n'texo COMMAND --help' has the options of a command.\n\n%s", help_exit_codes);
}

void
help_print(CommandId id, Text *out)
{
	if (id == CMD_NONE) {
		all_print(out);
		return;
	}
	const CommandRow *c = &command_table[id];
	text_printf(out, "texo %s: %s\n\n", c->name, c->summary);
	if (!c->built) {
		text_printf(out, "This command is not built yet.\n");
		return;
	}
	text_printf(out, "usage: texo %s %s%s[options]\n\noptions:\n", c->name, c->operands, *c->operands ? " " : "");
	for (int o = 1; o < OPT_END; o++)
		if (option_table[o].commands & 1u << id)
			option_print(&option_table[o], out);
	if (id == CMD_RUN || id == CMD_EXPLAIN)
		text_printf(out, "\n%s", help_input_forms);
	text_printf(out, "\n%s", help_exit_codes);
}
