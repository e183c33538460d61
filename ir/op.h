/* op.h: operations and monoids, expanded from ops.def and monoids.def. */
#ifndef TEXO_IR_OP_H
#define TEXO_IR_OP_H

#include "ir/dtype.h"

typedef enum {
	OP_NONE = 0,
#define OP(id, text, arity, cls, level, sig, flags) OP_##id,
#include "ir/ops.def"
} Op;

enum { /* kept out of Op, so that -Wswitch stays useful */
	OP_COUNT = 1
#define OP(id, text, arity, cls, level, sig, flags) +1
#include "ir/ops.def"
};

typedef enum { CLASS_LEAF, CLASS_MAP, CLASS_MEM, CLASS_CTRL } OpClass;
typedef enum { LEVEL_G = 1, LEVEL_L = 2, LEVEL_GL = 3 } OpLevel;
typedef enum {
	SIG_SAME, SIG_FLOAT, SIG_INT, SIG_ORDERED, SIG_CMP, SIG_LOGIC, SIG_SELECT, SIG_BITS, SIG_FREE
} OpSig;
enum { F_COMM = 1, F_ASSOC = 2, F_LAZY = 4, F_CHEAP = 8, F_MATH = 16, F_EFFECT = 32, F_NARROW = 64, F_TURNS = 128, F_ASIDE = 256, F_UNIT = 512 };

typedef struct {
	const char *id;   /* "ADD" */
	const char *text; /* "+" */
	int8_t arity;     /* -1: variable */
	uint8_t cls, level, sig;
	uint16_t flags;
} OpInfo;

extern const OpInfo op_info[OP_COUNT];
Op op_named(const char *text, size_t n); /* OP_NONE when there is none */

typedef enum {
	MON_NONE = 0,
#define MONOID(id, text, unit, exact, result) MON_##id,
#include "ir/monoids.def"
} Monoid;

enum {
	MON_COUNT = 1
#define MONOID(id, text, unit, exact, result) +1
#include "ir/monoids.def"
};

typedef enum { UNIT_NONE, UNIT_ZERO, UNIT_ONE, UNIT_FALSE, UNIT_TRUE } MonoidUnit;

typedef struct {
	const char *text;
	MonoidUnit unit;
	bool exact;
	bool index; /* the result is a position, i64 */
} MonoidInfo;

extern const MonoidInfo monoid_info[MON_COUNT];
Monoid monoid_named(const char *text, size_t n);

#endif
