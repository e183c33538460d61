/* refused.h: what tests of libtexo and its runtime ask of a refusal: the status, and a text that has the words. */
#ifndef TEXO_TESTS_RUNTIME_REFUSED_H
#define TEXO_TESTS_RUNTIME_REFUSED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "texo_rt.h"

#define REFUSED(call, status, words)                                           \
	do {                                                                   \
		assert_int_equal((call), (status));                            \
		if (!strstr(texo_last_error(), (words)))                       \
			fail_msg("no '%s' in: %s", words, texo_last_error());  \
	} while (0)

#endif
