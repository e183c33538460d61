/* options_table.h: the rows of options.def as data, for what reads and what describes the command line. */
#ifndef TEXO_DRIVER_OPTIONS_TABLE_H
#define TEXO_DRIVER_OPTIONS_TABLE_H

#include "driver/options.h"

typedef struct {
	const char *name, *operands, *needs;
	uint32_t most;
	bool built;
	const char *summary;
} CommandRow;

typedef enum { VALUE_FLAG, VALUE_TEXT, VALUE_CHOICE, VALUE_LIST, VALUE_REAL, VALUE_COUNT, VALUE_THREADS } ValueKind;

typedef struct {
	const char *name;
	char letter;
	ValueKind kind;
	const char *value, *env;
	unsigned commands;
	const char *default_text, *help;
} OptionRow;

extern const CommandRow command_table[CMD_END];
extern const OptionRow option_table[OPT_END];

/* Texts of help and manual: lines. */
extern const char help_exit_codes[], help_input_forms[];

#endif
