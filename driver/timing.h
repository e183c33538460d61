/* timing.h: how long launches take. */
#ifndef TEXO_DRIVER_TIMING_H
#define TEXO_DRIVER_TIMING_H

#include "driver/cpu_launch.h"

typedef struct {
	double median, min, max; /* microseconds */
	uint32_t n;
} Timing;

/* Times launches one by one until there were twenty of them and half a second has passed, or three and two
 * seconds, or ten seconds; before them some that don't count. Inouts have their first values again before each. What a launch that
 * fails returns is the status. */
texo_status timing_take(Session *s, CpuLaunch *l, const Binding *b, Timing *out);

/* --- timing_cuda.c --- */
/* The same on a GPU, as its own clock has it. Before each launch a fill of memory clears the cache, and gives the
 * launch the time to be there when the one before has ended. */
texo_status timing_take_cuda(Session *s, CpuLaunch *l, const Binding *b, Timing *out);
/* --- timing.c --- */
/* Whether that many launches in that many microseconds are enough to warm up; to be timed. */
bool timing_is_warm(uint32_t n, double us);
bool timing_is_enough(uint32_t n, double us);
enum { TIMING_MOST = 1 << 16 };
void timing_summarise(double *us, uint32_t n, Timing *out);

#endif
