/* guard.h: memory that ends at a page nobody may touch. */
#ifndef TEXO_TESTS_CODEGEN_GUARD_H
#define TEXO_TESTS_CODEGEN_GUARD_H

#include <stddef.h>

typedef struct {
	void *map, *data; /* data ends at the page */
	size_t bytes;     /* of map */
} Guard;

/* n zeroed bytes. */
void guard_open(Guard *g, size_t n);
void guard_close(Guard *g);

#endif
