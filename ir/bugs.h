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

/* The one that is on, or "". */
static inline const char *
bug_chosen(void)
{
	const char *chosen = getenv("TEXO_BUG");
	return chosen ? chosen : "";
}

/* Asked in the innermost loops, so the name is looked up once a file: 1 + the bug chosen, or -1 for none. */
static inline bool
bug_is_on(BugId id)
{
	static const char *const name[] = {
#define INJECTION(id, where, what) #id,
#include "ir/bugs.def"
	};
	static _Atomic int chosen;
	if (chosen == 0) {
		const char *text = bug_chosen();
		int found = -1;
		for (int k = 0; k < (int)(sizeof name / sizeof *name); k++)
			if (strcmp(text, name[k]) == 0)
				found = k + 1;
		chosen = found;
	}
	return chosen == (int)id + 1;
}

#define BUG(id) bug_is_on(BUG_##id)
#else
static inline const char *
bug_chosen(void)
{
	return "";
}

#define BUG(id) ((void)BUG_##id, false)
#endif

#endif
