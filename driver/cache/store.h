/* store.h: a folder of cache entries, one file each, which any number of threads and processes use at the
 * same time without a lock.
 *
 * A file's name is a digest of its key. It is written aside and renamed, so that a reader has all of one
 * entry or none; a writer that is killed leaves one file aside, which pruning collects. Nothing is synced:
 * what a crash of the machine tears is no entry, by its digest, and the next compilation writes it anew.
 * The folder must be this user's and writable by nobody else, or it is not used at all.
 *
 * Whatever fails, compilation can go on. Each function says in *why what is worth telling, else NULL. */
#ifndef TEXO_DRIVER_CACHE_STORE_H
#define TEXO_DRIVER_CACHE_STORE_H

#include "driver/cache/entry.h"

#define STORE_LIMIT ((uint64_t)1 << 30) /* bytes of a folder, where nothing else is said */

typedef struct {
	const Host *host;
	const char *path;
	uint64_t limit; /* bytes; the entries that were not used for longest are dropped from time to time */
} Store;

typedef struct {
	char name[65]; /* as digits of a digest, or of a file aside */
	bool aside;
	int64_t bytes, changed_ns; /* an entry's change is its last use */
} StoreFile;

typedef struct {
	VEC(StoreFile) file;
	uint64_t bytes;  /* of entries */
	uint32_t nentry;
} StoreList;

/* The name of a key's file. */
void store_name(const void *key, size_t n, char name[65]);
/* The payload under the key, in the arena, or NULL. */
const void *store_get(const Store *s, Arena *a, const void *key, size_t n, const char *tag, size_t *bytes,
                      const char **why);
bool store_put(const Store *s, Arena *a, const void *key, size_t n, const char *tag, const void *payload,
               size_t bytes, const char **why);
/* The files that are ours; others are not spoken of and never touched. A folder that isn't there is empty. */
bool store_list(const Store *s, Arena *a, StoreList *out, const char **why);
/* Drops the entries that were not used for longest until the rest has at most `limit` bytes, and files aside that
 * nobody writes any more; with limit 0 those that somebody does, too. What was dropped is in *out. */
bool store_prune(const Store *s, Arena *a, uint64_t limit, StoreList *out, const char **why);

#endif
