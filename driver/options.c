/* options.c: see options.h. Values are checked here against the table, so that the commands read
 * only legal ones; what a value names in the program (a pass, a graph, a dim) is checked there. */
#include "driver/options.h"

#include "driver/near.h"
#include "driver/options_table.h"
#include "runtime/pool.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const CommandRow command_table[CMD_END] = {
#define COMMAND(id, name, operands, needs, most, built, summary) \
	[CMD_##id] = {name, operands, needs, most, built, summary},
#include "driver/options.def"
};

#define ON(id) (1u << CMD_##id)
const OptionRow option_table[OPT_END] = {
#define OPTION(id, name, letter, kind, value, env, commands, default_text, help) \
	[OPT_##id] = {name, letter, VALUE_##kind, value, env, commands, default_text, help},
#include "driver/options.def"
};

enum { MOST_COUNT = 1 << 20 };

typedef struct {
	Arena *arena;
	Options *out;
	Problem *problem;
	int argc, at;
	char *const *argv;
} Parse;

const char *
command_name(CommandId id)
{
	return id == CMD_NONE ? "" : command_table[id].name;
}

bool
command_built(CommandId id)
{
	return command_table[id].built;
}

bool
command_operands(const Options *o, Problem *p)
{
	const CommandRow *c = &command_table[o->command];
	if (*c->needs && o->operand.n == 0)
		return problem(p, EXIT_USAGE, "texo %s needs %s", c->name, c->needs);
	if (o->operand.n <= c->most)
		return true;
	const char *more = o->operand.at[c->most];
	problem(p, EXIT_USAGE, "texo %s takes %s, not '%s'", c->name, c->most ? "one operand" : "no operand", more);
	if (strchr(more, '=') && option_table[OPT_DEFINE].commands >> o->command & 1)
		problem_help(p, "-D %s makes a dim static", more);
	return false;
}

static CommandId
command_named(const char *name)
{
	for (int c = 1; c < CMD_END; c++)
		if (strcmp(command_table[c].name, name) == 0)
			return (CommandId)c;
	return CMD_NONE;
}

static bool
unknown_command(Parse *s, const char *name)
{
	Near near = {.word = name};
	for (int c = 1; c < CMD_END; c++)
		near_offer(&near, command_table[c].name);
	problem(s->problem, EXIT_USAGE, "unknown command '%s'", name);
	const char *mend = near_text(&near, s->arena);
	return problem_help(s->problem, "%s", mend ? mend : "texo --help lists the commands");
}

/* Whether value[0..n) is one of the choices "a|b|c". */
static bool
is_choice(const char *choices, const char *value, size_t n)
{
	for (const char *c = choices; *c;) {
		size_t k = strcspn(c, "|");
		if (k == n && memcmp(c, value, n) == 0)
			return true;
		c += k + (c[k] == '|');
	}
	return false;
}

static bool
bad_choice(Parse *s, const OptionRow *row, const char *origin, const char *value)
{
	Near near = {.word = value};
	for (const char *c = row->value; *c;) {
		size_t k = strcspn(c, "|");
		near_offer(&near, arena_copy(s->arena, c, k));
		c += k + (c[k] == '|');
	}
	problem(s->problem, EXIT_USAGE, "%s is one of %s, not '%s'", origin, row->value, value);
	const char *mend = near_text(&near, s->arena);
	return mend ? problem_help(s->problem, "%s", mend) : false;
}

static bool
is_count(const char *value, long long most)
{
	char *end;
	errno = 0;
	long long v = strtoll(value, &end, 10);
	return errno == 0 && end != value && *end == 0 && v >= 1 && v <= most;
}

static bool
is_real(const char *value)
{
	char *end;
	double v = strtod(value, &end);
	return end != value && *end == 0 && isfinite(v) && v >= 0;
}

/* Checks the value's form; origin is "--fp" or "TEXO_FP". */
static bool
check_value(Parse *s, const OptionRow *row, const char *origin, const char *value)
{
	int most;
	switch (row->kind) {
	case VALUE_FLAG:
		return true;
	case VALUE_TEXT:
		if (*value)
			return true;
		return problem(s->problem, EXIT_USAGE, "%s needs a value: %s", origin, row->value);
	case VALUE_CHOICE:
		if (is_choice(row->value, value, strlen(value)))
			return true;
		return bad_choice(s, row, origin, value);
	case VALUE_LIST:
		for (const char *v = value;; v++) {
			size_t k = strcspn(v, ",");
			if (!is_choice(row->value, v, k))
				return bad_choice(s, row, origin, arena_copy(s->arena, v, k));
			v += k;
			if (!*v)
				return true;
		}
	case VALUE_REAL:
		if (is_real(value))
			return true;
		return problem(s->problem, EXIT_USAGE, "%s needs a number that is not negative, not '%s'", origin, value);
	case VALUE_COUNT:
	case VALUE_THREADS:
		most = row->kind == VALUE_THREADS ? POOL_MAX_THREADS : MOST_COUNT;
		if (is_count(value, most))
			return true;
		return problem(s->problem, EXIT_USAGE, "%s needs a whole number from 1 to %d, not '%s'", origin, most, value);
	}
	return false;
}

static bool
add_use(Parse *s, OptionId id, const char *origin, const char *value)
{
	if (!check_value(s, &option_table[id], origin, value))
		return false;
	OptionUse use = {id, value};
	vec_push(s->arena, &s->out->use, use);
	return true;
}

static bool
unknown_option(Parse *s, const char *name)
{
	Near near = {.word = name};
	for (int o = 1; o < OPT_END; o++)
		near_offer(&near, arena_text(s->arena, "--%s", option_table[o].name));
	problem(s->problem, EXIT_USAGE, "unknown option '%s'", name);
	const char *mend = near_text(&near, s->arena);
	return problem_help(s->problem, "%s", mend ? mend : "texo --help lists the options");
}

/* --name, --name=value, --name value */
static bool
parse_long(Parse *s, const char *arg)
{
	size_t n = strcspn(arg, "=");
	const char *name = arena_copy(s->arena, arg, n);
	OptionId id = OPT_NONE;
	for (int o = 1; o < OPT_END; o++)
		if (strcmp(option_table[o].name, name + 2) == 0)
			id = (OptionId)o;
	if (id == OPT_NONE)
		return unknown_option(s, name);
	if (option_table[id].kind == VALUE_FLAG) {
		if (arg[n])
			return problem(s->problem, EXIT_USAGE, "%s takes no value", name);
		return add_use(s, id, name, "");
	}
	if (arg[n])
		return add_use(s, id, name, arg + n + 1);
	if (s->at >= s->argc)
		return problem(s->problem, EXIT_USAGE, "%s needs a value: %s", name, option_table[id].value);
	return add_use(s, id, name, s->argv[s->at++]);
}

/* -q, -qv, -o value, -ovalue */
static bool
parse_short(Parse *s, const char *arg)
{
	for (const char *c = arg + 1; *c; c++) {
		OptionId id = OPT_NONE;
		for (int o = 1; o < OPT_END; o++)
			if (option_table[o].letter == *c)
				id = (OptionId)o;
		const char *name = arena_text(s->arena, "-%c", *c);
		if (id == OPT_NONE)
			return unknown_option(s, name);
		if (option_table[id].kind == VALUE_FLAG) {
			if (!add_use(s, id, name, ""))
				return false;
			continue;
		}
		if (c[1])
			return add_use(s, id, name, c + 1);
		if (s->at >= s->argc)
			return problem(s->problem, EXIT_USAGE, "%s needs a value: %s", name, option_table[id].value);
		return add_use(s, id, name, s->argv[s->at++]);
	}
	return true;
}

static bool
parse_words(Parse *s)
{
	bool ended = false;
	while (s->at < s->argc) {
		const char *arg = s->argv[s->at++];
		if (!ended && strcmp(arg, "--") == 0) {
			ended = true;
		} else if (!ended && arg[0] == '-' && arg[1] == '-') {
			if (!parse_long(s, arg))
				return false;
		} else if (!ended && arg[0] == '-' && arg[1]) {
			if (!parse_short(s, arg))
				return false;
		} else if (s->out->command == CMD_NONE) {
			s->out->command = command_named(arg);
			if (s->out->command == CMD_NONE)
				return unknown_command(s, arg);
		} else {
			vec_push(s->arena, &s->out->operand, arg);
		}
	}
	return true;
}

/* Whether a text about the command is all that is asked for. */
static bool
wants_text(const Options *o)
{
	return option_on(o, OPT_HELP) || option_on(o, OPT_VERSION) || option_on(o, OPT_MAN);
}

/* Options the command does not know; where a text is asked for they pass. */
static bool
check_command(Parse *s)
{
	if (s->out->command == CMD_NONE || wants_text(s->out) || !command_built(s->out->command))
		return true;
	for (uint32_t i = 0; i < s->out->use.n; i++) {
		const OptionRow *row = &option_table[s->out->use.at[i].id];
		if (!(row->commands & 1u << s->out->command))
			return problem(s->problem, EXIT_USAGE, "'texo %s' has no option --%s",
			               command_name(s->out->command), row->name);
	}
	return true;
}

/* Variables go first, so that an option, being later, wins; those of other commands are not read. */
static bool
parse_environment(Parse *s, GetEnvFn *env)
{
	Options given = *s->out;
	memset(&s->out->use, 0, sizeof s->out->use);
	for (int o = 1; o < OPT_END; o++) {
		const OptionRow *row = &option_table[o];
		const char *value = *row->env && row->commands & 1u << given.command ? env(row->env) : NULL;
		if (value && *value && !add_use(s, (OptionId)o, row->env, value))
			return false;
	}
	for (uint32_t i = 0; i < given.use.n; i++)
		vec_push(s->arena, &s->out->use, given.use.at[i]);
	return true;
}

bool
options_parse(Arena *a, int argc, char *const *argv, GetEnvFn *env, Options *out, Problem *p)
{
	Parse s = {a, out, p, argc, 1, argv};
	memset(out, 0, sizeof *out);
	if (!parse_words(&s) || !check_command(&s))
		return false;
	if (out->command == CMD_NONE && !wants_text(out)) {
		problem(p, EXIT_USAGE, "a command is missing");
		return problem_help(p, "texo --help lists the commands");
	}
	return out->command == CMD_NONE || parse_environment(&s, env);
}

const char *
option_value(const Options *o, OptionId id)
{
	for (uint32_t i = o->use.n; i-- > 0;)
		if (o->use.at[i].id == id)
			return o->use.at[i].value;
	return NULL;
}

bool
option_on(const Options *o, OptionId id)
{
	return option_value(o, id) != NULL;
}

bool
option_lists(const Options *o, OptionId id, const char *item)
{
	const char *v = option_value(o, id);
	while (v && *v) {
		size_t k = strcspn(v, ",");
		if (k == strlen(item) && memcmp(v, item, k) == 0)
			return true;
		v += k + (v[k] == ',');
	}
	return false;
}
