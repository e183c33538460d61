/* completion.c: texo completion SHELL: what a shell needs to complete the command line, from the rows of
 * options.def. Each shell's printer writes a script to be read by that shell; an option's choices and the
 * operands' are offered as they stand in the table, and file names where a file is wanted. */
#include "driver/options_table.h"
#include "driver/session.h"

#include <string.h>

typedef void PrintFn(Text *out);

static bool
takes_file(const CommandRow *c)
{
	return strstr(c->operands, "FILE") != NULL;
}

/* Operands that are choices: "path|info". */
static bool
takes_choice(const CommandRow *c)
{
	return !takes_file(c) && strchr(c->operands, '|');
}

static bool
has_choices(const OptionRow *o)
{
	return o->kind == VALUE_CHOICE || o->kind == VALUE_LIST;
}

static bool
is_general(const OptionRow *o)
{
	return o->commands == 0xffffffffu;
}

/* "a|b|c" with blanks between. */
static void
put_choices(Text *out, const char *choices)
{
	for (const char *c = choices; *c; c++)
		text_add(out, *c == '|' ? " " : c, 1);
}

/* s, with a backslash before each of `special`; quotes end a string of the shell, and so are written out. */
static void
put_quoted(Text *out, const char *s, const char *special)
{
	for (; *s; s++) {
		if (*s == '\'') {
			text_printf(out, "'\\''");
			continue;
		}
		if (strchr(special, *s))
			text_add(out, "\\", 1);
		text_add(out, s, 1);
	}
}

/* --- bash --- */

static void
bash_options(Text *out, int command)
{
	for (int o = 1; o < OPT_END; o++)
		if (command == CMD_NONE ? is_general(&option_table[o]) : option_table[o].commands >> command & 1)
			text_printf(out, " --%s%s", option_table[o].name, option_table[o].kind == VALUE_FLAG ? "" : "=");
}

static void
bash_values(Text *out)
{
	for (int o = 1; o < OPT_END; o++) {
		const OptionRow *row = &option_table[o];
		if (row->kind == VALUE_FLAG)
			continue;
		text_printf(out, "    --%s", row->name);
		if (row->letter)
			text_printf(out, " | -%c", row->letter);
		if (has_choices(row)) {
			text_printf(out, ") COMPREPLY=($(compgen -W '");
			put_choices(out, row->value);
			text_printf(out, "' -- \"$cur\")); return ;;\n");
		} else {
			text_printf(out, ") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n");
		}
	}
}

/* Bash takes "=" for a word of its own. */
static void
print_bash(Text *out)
{
	text_printf(out, "# bash completion of texo: source <(texo completion bash)\n"
	                 "_texo() {\n"
	                 "  local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]} command='' options='' words='' i\n"
	                 "  COMPREPLY=()\n"
	                 "  if [[ $cur == = ]]; then cur=''\n"
	                 "  elif [[ $option == = ]]; then option=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
	                 "  case $option in\n");
	bash_values(out);
	text_printf(out, "  esac\n"
	                 "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
	                 "    if [[ ${COMP_WORDS[i]} == [a-z]* ]]; then command=${COMP_WORDS[i]}; break; fi\n"
	                 "  done\n"
	                 "  case $command in\n    '') words='");
	for (int c = 1; c < CMD_END; c++)
		if (command_table[c].built)
			text_printf(out, " %s", command_table[c].name);
	text_printf(out, "' options='");
	bash_options(out, CMD_NONE);
	text_printf(out, "' ;;\n");
	for (int c = 1; c < CMD_END; c++) {
		const CommandRow *row = &command_table[c];
		if (!row->built)
			continue;
		text_printf(out, "    %s) words='", row->name);
		if (takes_choice(row))
			put_choices(out, row->operands);
		text_printf(out, "' options='");
		bash_options(out, c);
		text_printf(out, "' ;;\n");
	}
	text_printf(out, "  esac\n"
	                 "  if [[ $cur == -* ]]; then\n"
	                 "    COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
	                 "    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace\n"
	                 "  elif [[ $words ]]; then COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
	                 "  else COMPREPLY=($(compgen -d -- \"$cur\") $(compgen -f -X '!*.tex' -- \"$cur\")); fi\n"
	                 "} 2>/dev/null\n"
	                 "complete -o filenames -F _texo texo\n");
}

/* --- zsh --- */

static void
zsh_option(Text *out, const OptionRow *row)
{
	const char *const special = "[]:\\";
	for (int form = row->letter ? 0 : 1; form < 2; form++) {
		if (form == 0)
			text_printf(out, "    '*-%c%s[", row->letter, row->kind == VALUE_FLAG ? "" : "+");
		else
			text_printf(out, "    '*--%s%s[", row->name, row->kind == VALUE_FLAG ? "" : "=");
		put_quoted(out, row->help, special);
		text_printf(out, "]");
		if (has_choices(row)) {
			text_printf(out, ":value:(");
			put_choices(out, row->value);
			text_printf(out, ")");
		} else if (row->kind != VALUE_FLAG) {
			text_printf(out, ":value:_files");
		}
		text_printf(out, "'\n");
	}
}

static void
print_zsh(Text *out)
{
	text_printf(out, "#compdef texo\n# zsh completion of texo: texo completion zsh >${fpath[1]}/_texo\n"
	                 "local -a commands options\nlocal command=${words[(r)[a-z]*]}\n"
	                 "[[ $command == texo ]] && command=${${words[2,-1]}[(r)[a-z]*]}\n"
	                 "commands=(\n");
	for (int c = 1; c < CMD_END; c++)
		if (command_table[c].built) {
			text_printf(out, "    '%s:", command_table[c].name);
			put_quoted(out, command_table[c].summary, ":\\");
			text_printf(out, "'\n");
		}
	text_printf(out, ")\ncase $command in\n");
	for (int c = 1; c < CMD_END; c++) {
		const CommandRow *row = &command_table[c];
		if (!row->built)
			continue;
		text_printf(out, "  %s) options=(\n", row->name);
		for (int o = 1; o < OPT_END; o++)
			if (option_table[o].commands >> c & 1)
				zsh_option(out, &option_table[o]);
		text_printf(out, takes_choice(row) ? "    '*:operand:(" : takes_file(row) ? "    '*:file:_files -g \"*.tex\"'\n" : "");
		if (takes_choice(row)) {
			put_choices(out, row->operands);
			text_printf(out, ")'\n");
		}
		text_printf(out, "  ) ;;\n");
	}
	text_printf(out, "esac\n"
	                 "_arguments -s '1: :{_describe command commands}' $options\n");
}

/* --- fish --- */

static void
fish_option(Text *out, const OptionRow *row)
{
	text_printf(out, "complete -c texo -l %s", row->name);
	if (row->letter)
		text_printf(out, " -s %c", row->letter);
	if (!is_general(row)) {
		text_printf(out, " -n '__fish_seen_subcommand_from");
		for (int c = 1; c < CMD_END; c++)
			if (command_table[c].built && row->commands >> c & 1)
				text_printf(out, " %s", command_table[c].name);
		text_printf(out, "'");
	}
	if (has_choices(row)) {
		text_printf(out, " -x -a '");
		put_choices(out, row->value);
		text_printf(out, "'");
	} else if (row->kind != VALUE_FLAG) {
		text_printf(out, " -r");
	}
	text_printf(out, " -d '");
	for (const char *s = row->help; *s; s++)
		text_printf(out, *s == '\'' || *s == '\\' ? "\\%c" : "%c", *s);
	text_printf(out, "'\n");
}

static void
print_fish(Text *out)
{
	text_printf(out, "# fish completion of texo: texo completion fish >~/.config/fish/completions/texo.fish\n"
	                 "complete -c texo -f\n");
	for (int c = 1; c < CMD_END; c++) {
		const CommandRow *row = &command_table[c];
		if (!row->built)
			continue;
		text_printf(out, "complete -c texo -n __fish_use_subcommand -a %s -d '", row->name);
		for (const char *s = row->summary; *s; s++)
			text_printf(out, *s == '\'' || *s == '\\' ? "\\%c" : "%c", *s);
		text_printf(out, "'\n");
		if (!takes_file(row) && !takes_choice(row))
			continue;
		text_printf(out, "complete -c texo -n '__fish_seen_subcommand_from %s' %s", row->name, takes_file(row) ? "-F" : "-a '");
		if (takes_choice(row)) {
			put_choices(out, row->operands);
			text_printf(out, "'");
		}
		text_printf(out, "\n");
	}
	for (int o = 1; o < OPT_END; o++)
		fish_option(out, &option_table[o]);
}

static const struct {
	const char *name;
	PrintFn *print;
} shell_table[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

ExitCode
command_completion(Session *s, void *arg)
{
	const char *shell = s->options->operand.at[0];
	(void)arg;
	for (unsigned k = 0; k < sizeof shell_table / sizeof *shell_table; k++)
		if (strcmp(shell, shell_table[k].name) == 0) {
			shell_table[k].print(&s->out);
			return EXIT_OK;
		}
	problem(&s->problem, EXIT_USAGE, "no completion is known for '%s'", shell);
	problem_help(&s->problem, "the shells are %s", command_table[CMD_COMPLETION].operands);
	return session_fail(s);
}
