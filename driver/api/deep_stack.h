/* deep_stack.h: a stack that the compiler's recursion fits in, whatever thread a host program calls from. */
#ifndef TEXO_DRIVER_API_DEEP_STACK_H
#define TEXO_DRIVER_API_DEEP_STACK_H

#include "include/texo_rt.h"

/* Runs body(arg) here when enough of the stack is left, else on a thread of its own, and waits for it. What
 * texo_last_error says after it is said in the calling thread. */
texo_status on_deep_stack(texo_status (*body)(void *arg), void *arg);

#endif
