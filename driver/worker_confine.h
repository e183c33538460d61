/* worker_confine.h: the walls around a worker. */
#ifndef TEXO_DRIVER_WORKER_CONFINE_H
#define TEXO_DRIVER_WORKER_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

/* Limits this process for good: seconds of processor, bytes of address space, no files, processes or
 * executable memory, and only the system calls that computing needs. False when the system can't. */
bool worker_confine(unsigned seconds, size_t bytes);

#endif
