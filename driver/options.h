/* options.h: the command line, by the table options.def.
 *
 * Options may stand anywhere, in the style of getopt_long: --name=value, --name value, -o value,
 * -ovalue, flags joined (-qv); "--" ends them, "-" is an operand. The last of several wins, except
 * where an option is repeatable. An option wins over its environment variable. */
#ifndef TEXO_DRIVER_OPTIONS_H
#define TEXO_DRIVER_OPTIONS_H

#include "driver/problem.h"
#include "ir/text.h"

typedef enum {
	CMD_NONE = 0,
#define COMMAND(id, name, operands, needs, most, built, summary) CMD_##id,
#include "driver/options.def"
	CMD_END
} CommandId;

typedef enum {
	OPT_NONE = 0,
#define OPTION(id, name, letter, kind, value, env, commands, default_text, help) OPT_##id,
#include "driver/options.def"
	OPT_END
} OptionId;

typedef struct {
	OptionId id;
	const char *value; /* "" for a flag */
} OptionUse;

typedef struct {
	CommandId command; /* CMD_NONE with --help, --version or --man alone */
	VEC(OptionUse) use; /* in order; environment first */
	VEC(const char *) operand;
} Options;

typedef const char *GetEnvFn(const char *name); /* NULL: not set */

bool options_parse(Arena *a, int argc, char *const *argv, GetEnvFn *env, Options *out, Problem *p);
/* The last value given, or NULL. */
const char *option_value(const Options *o, OptionId id);
bool option_on(const Options *o, OptionId id);
/* Whether item is in the comma-separated value of a LIST option. */
bool option_lists(const Options *o, OptionId id, const char *item);
const char *command_name(CommandId id);
bool command_built(CommandId id);
/* Whether the command has as many operands as it takes; EXIT_USAGE when not. */
bool command_operands(const Options *o, Problem *p);

/* Help for one command, or for all with CMD_NONE. */
void help_print(CommandId id, Text *out);
/* The manual page, for man(1). */
void manual_print(Text *out);

#endif
