/* figures.c: see figures.h. The key is what the device is: its name and capability, how many processors it has, and its driver.
 * Of several such devices all take one entry's. */
#include "driver/cache/figures.h"

#include <string.h>

#include "runtime/private.h"

#define ENTRY_FIGURES "figures"

enum { FIGURES_VERSION = 1 }; /* another where the figures, or what they mean, are */

static const char *
key_of(Arena *a, const texo_rt *rt, size_t *n)
{
	char device[400];
	texo_private_device(rt, device, sizeof device);
	const char *key = arena_text(a, "figures of a GPU, %d: %s", FIGURES_VERSION, device);
	*n = strlen(key);
	return key;
}

bool
figures_put(const Store *s, Arena *a, const texo_rt *rt, const int64_t fact[GPU_FACTS], const char **why)
{
	size_t n;
	const char *key = key_of(a, rt, &n);
	*why = NULL;
	return store_put(s, a, key, n, ENTRY_FIGURES, fact, GPU_FACTS * sizeof *fact, why);
}

bool
figures_take(const Store *s, Arena *a, texo_rt *rt, const char **why)
{
	size_t n, bytes;
	int64_t fact[GPU_FACTS];
	const char *key = key_of(a, rt, &n);
	*why = NULL;
	const void *kept = store_get(s, a, key, n, ENTRY_FIGURES, &bytes, why);
	if (!kept)
		return false;
	if (bytes == sizeof fact)
		memcpy(fact, kept, sizeof fact);
	if (bytes == sizeof fact && texo_private_take_figures(rt, fact, GPU_FACTS) == TEXO_OK)
		return true;
	*why = "what 'texo calibrate' kept is no such device's";
	return false;
}
