/* bitcode.h: the parts of the runtime that a launch of compiled code needs, as LLVM bitcode, for objects
 * that need no library. Made by the build. */
#ifndef TEXO_RUNTIME_ALONE_BITCODE_H
#define TEXO_RUNTIME_ALONE_BITCODE_H

#include <stddef.h>

typedef struct {
	const void *bytes;
	size_t n;
} RuntimeBitcode;

/* Ends with one of 0 bytes. */
extern const RuntimeBitcode runtime_bitcode[];
/* A shared library that is empty and has libtexo-rt's name: what is linked with it needs libtexo-rt when it is loaded. */
extern const RuntimeBitcode runtime_needed;

#endif
