/* entry.h: the bytes of a cache entry: a head, parts, and a digest of all that comes before it.
 *
 * Part 0 is the key in full (key.h); the others are what was kept under it. An entry is taken for what
 * somebody else may have written: nothing of it is used before the digest, every length and the key are
 * what they should be. */
#ifndef TEXO_DRIVER_CACHE_ENTRY_H
#define TEXO_DRIVER_CACHE_ENTRY_H

#include "driver/cache/blake2b.h"
#include "ir/arena.h"

#define ENTRY_MAGIC "TEXOKEPT"
enum { ENTRY_VERSION = 1, ENTRY_TAG = 8, ENTRY_ALIGN = 16, ENTRY_MOST = 256 << 20, ENTRY_LEAST = 64 };

typedef struct {
	char magic[8];
	uint32_t version, nparts;
	uint64_t bytes; /* of the whole entry, the digest too */
	uint64_t pad;
} EntryHead;

typedef struct {
	char tag[ENTRY_TAG]; /* ends in NULs, or fills the field */
	uint64_t bytes;      /* which follow, then NULs up to a multiple of ENTRY_ALIGN */
} EntryPart;

#define ENTRY_KEY "key"
#define ENTRY_IMAGE "image" /* an artefact, as texo_rt_load takes it */
#define ENTRY_PTX "ptx"     /* the code of a kernel, with its NUL */
#define ENTRY_CUBIN "cubin" /* the same, assembled */

/* An entry with one payload, in the arena. */
const void *entry_make(Arena *a, const void *key, size_t key_bytes, const char *tag, const void *payload, size_t bytes,
                       size_t *n);
/* Whether these are the bytes of an entry; aligned to ENTRY_ALIGN. */
bool entry_is_whole(const void *bytes, size_t n);
/* The part of this tag of an entry that is whole, or NULL; aligned to ENTRY_ALIGN. */
const void *entry_part(const void *entry, const char *tag, size_t *bytes);

#endif
