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

#endif
