/* blake2b.h: BLAKE2b with a digest of 256 bits and no key (RFC 7693). */
#ifndef TEXO_DRIVER_CACHE_BLAKE2B_H
#define TEXO_DRIVER_CACHE_BLAKE2B_H

#include <stddef.h>
#include <stdint.h>

enum { BLAKE2B_BYTES = 32 };

void blake2b(const void *bytes, size_t n, uint8_t digest[BLAKE2B_BYTES]);

#endif
