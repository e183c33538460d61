/* input_spec.h: what stands on the right of name=value, on the command line and in test blocks. */
#ifndef TEXO_DRIVER_INPUT_SPEC_H
#define TEXO_DRIVER_INPUT_SPEC_H

#include "driver/literal.h"
#include "driver/problem.h"

typedef enum {
	INPUT_RANDOM, /* the default */
	INPUT_NORMAL,
	INPUT_ZEROS,
	INPUT_ONES,
	INPUT_IOTA,
	INPUT_FILE,
	INPUT_LITERAL
} InputKind;

typedef struct {
	const char *name;
	InputKind kind;
	uint64_t seed;
	const char *path;   /* FILE */
	Literal literal;    /* LITERAL: also scalars and dims */
	DType dtype;        /* written after it, or DT_NONE */
	bool has_shape;     /* written after it */
	unsigned rank;
	int64_t shape[TG_MAX_RANK];
	bool used;
} InputSpec;

/* value: @path, random[:seed], normal[:seed], zeros, ones, iota, each but the first optionally
 * followed by dtype[n, m]; or a literal. Relative paths are put behind base (NULL: as they are). */
bool input_spec_parse(Arena *a, const char *name, const char *value, const char *base, InputSpec *out,
                      Problem *p);
/* Splits "name=value" or "name = value"; false when there is no name before the '='. */
bool input_split(Arena *a, const char *text, const char **name, const char **value);

#endif
