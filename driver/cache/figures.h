/* figures.h: what `texo calibrate` measured of a GPU (ir/gpus.def), as an entry of the cache for each kind of device. */
#ifndef TEXO_DRIVER_CACHE_FIGURES_H
#define TEXO_DRIVER_CACHE_FIGURES_H

#include "driver/cache/store.h"
#include "ir/gpu_rows.h"
#include "texo_rt.h"

bool figures_put(const Store *s, Arena *a, const texo_rt *rt, const int64_t fact[GPU_FACTS], const char **why);
/* Hands the runtime the figures that are kept for its device. False: there are none, and *why is NULL, or what is there is of
 * no use, and the built-in ones stay. */
bool figures_take(const Store *s, Arena *a, texo_rt *rt, const char **why);

#endif
