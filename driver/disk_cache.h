/* disk_cache.h: the command's use of the cache (cache/store.h): where it is, whether this command line may use
 * it, and code out of it or into it. */
#ifndef TEXO_DRIVER_DISK_CACHE_H
#define TEXO_DRIVER_DISK_CACHE_H

#include "driver/cache/store.h"
#include "driver/compile.h"
#include "texo_rt.h"

/* --cache-dir (TEXO_CACHE), else $XDG_CACHE_HOME/texo, else $HOME/.cache/texo; false: there is no such place. */
bool disk_cache_place(Session *s, Store *out);

typedef struct {
	Store store;
	bool used;        /* false: the rest is nothing */
	const char *key;
	size_t key_bytes;
} DiskCache;

/* For code of one graph of the unit, which was checked. Not used with --no-cache, and where an option asks for
 * what only a compilation says or does (dumps, remarks, times, fuel, ...). */
void disk_cache_open(Session *s, const SourceUnit *u, const Graph *g, const PassOptions *o, DiskCache *out);
bool disk_cache_get(Session *s, const DiskCache *c, CodegenResult *code);
void disk_cache_put(Session *s, const DiskCache *c, const CodegenResult *code);

/* Has choices on the runtime's device go by what texo calibrate measured of it, if it has. */
void disk_cache_figures(Session *s, texo_rt *rt);

#endif
