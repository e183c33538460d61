/* element_text.h: elements and tensors as people read them. */
#ifndef TEXO_DRIVER_ELEMENT_TEXT_H
#define TEXO_DRIVER_ELEMENT_TEXT_H

#include "ir/dtype.h"
#include "ir/text.h"

/* Element n: the shortest decimal that gives the same element back, inf, nan, true, (re, im). In
 * JSON, what has no number there is a string, and a pair a list. */
void element_print(DType t, const void *packed, int64_t n, bool json, Text *out);
/* Nested lists, at most `most` values an axis (0: all), then "...". */
void tensor_print(DType t, unsigned rank, const int64_t *shape, const void *packed, int64_t most, bool json,
                  Text *out);
/* "[2, 0, 5]" for a row-major position. */
void position_print(unsigned rank, const int64_t *shape, int64_t n, Text *out);

#endif
