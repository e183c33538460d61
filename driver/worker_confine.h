/* worker_confine.h: the walls around a worker, and around another program that makes code. */
#ifndef TEXO_DRIVER_WORKER_CONFINE_H
#define TEXO_DRIVER_WORKER_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

/* Limits this process for good: seconds of processor (which who started it may set anew, up to `life`), bytes of address
 * space, no files, processes or executable memory, and only the system calls that computing needs. False when the
 * system can't. */
bool worker_confine(unsigned seconds, unsigned life, size_t bytes);
/* Limits the program that this process becomes: seconds, address space, the size of a file; it has no network, and ends with
 * who started it. System calls alone, for between vfork and exec. */
bool program_confine(unsigned seconds, size_t bytes);

#endif
