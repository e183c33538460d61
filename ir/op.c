/* op.c: the tables behind op.h. */
#include "ir/op.h"

#include <string.h>

const OpInfo op_info[OP_COUNT] = {
	[OP_NONE] = {"NONE", "none", 0, 0, 0, 0, 0},
#define OP(id, text, arity, cls, level, sig, flags) \
	[OP_##id] = {#id, text, arity, CLASS_##cls, LEVEL_##level, SIG_##sig, flags},
#include "ir/ops.def"
};

const MonoidInfo monoid_info[MON_COUNT] = {
	[MON_NONE] = {"none", UNIT_NONE, true, false},
#define ELEM false
#define INDEX true
#define MONOID(id, text, unit, exact, result) [MON_##id] = {text, UNIT_##unit, exact, result},
#include "ir/monoids.def"
#undef ELEM
#undef INDEX
};

Op
op_named(const char *text, size_t n)
{
	for (int op = 1; op < OP_COUNT; op++)
		if (strlen(op_info[op].text) == n && memcmp(op_info[op].text, text, n) == 0)
			return (Op)op;
	return OP_NONE;
}

Monoid
monoid_named(const char *text, size_t n)
{
	for (int m = 1; m < MON_COUNT; m++)
		if (strlen(monoid_info[m].text) == n && memcmp(monoid_info[m].text, text, n) == 0)
			return (Monoid)m;
	return MON_NONE;
}
