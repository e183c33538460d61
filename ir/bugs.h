/* bugs.h: wrong behaviours that can be switched on one at a time, so that a test can show that the
 * tests find them (bugs.def names them, tests/bugs runs them).
 *
 *     ValId ok = BUG(tail_mask) ? wrong : right;
 *
 * BUG(id) is false, and costs nothing, unless the build defines TEXO_BUGS. Such a build is good for
 * tests only: it takes the one that the environment variable TEXO_BUG names. */
#ifndef TEXO_IR_BUGS_H
#define TEXO_IR_BUGS_H

#include <stdbool.h>

typedef enum {
#define INJECTION(id, where, what) BUG_##id,
#include "ir/bugs.def"
} BugId;

/* In either build an id that has no row does not compile. */
#ifdef TEXO_BUGS
#include <stdlib.h>
#include <string.h>

static inline bool
bug_is_on(const char *id)
{
	const char *chosen = getenv("TEXO_BUG");
	return chosen && strcmp(chosen, id) == 0;
}

#define BUG(id) ((void)BUG_##id, bug_is_on(#id))
#else
#define BUG(id) ((void)BUG_##id, false)
#endif

#endif
