/* parts.h: data as bytes for another process: parts, each its length, its bytes and a NUL. Who reads
 * trusts no length. */
#ifndef TEXO_IR_PARTS_H
#define TEXO_IR_PARTS_H

#include "ir/text.h"

void part_put(Text *t, const void *p, size_t n);
void part_put_text(Text *t, const char *s); /* NULL as "" */
void part_put_number(Text *t, uint64_t v);

typedef struct {
	const char *at;
	size_t left;
	bool bad; /* a part that isn't there or has another size; the rest reads as "" and 0 */
} PartReader;

/* The next part, inside the bytes; a NUL follows it. */
const char *part_get(PartReader *r, size_t *n);
const char *part_get_text(PartReader *r);
uint64_t part_get_number(PartReader *r);
/* A number of parts, which can't be more than there are bytes. */
uint32_t part_get_count(PartReader *r);

#endif
