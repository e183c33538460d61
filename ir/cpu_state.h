/* cpu_state.h: register state that Linux gives a process only when it asks. Without the tile data of
 * AMX the first instruction that touches a tile ends the process, so code for it is neither made for
 * this machine nor run before this was asked. It holds for all threads and children; asking again
 * costs a system call. No C library is needed: the runtime also lives inside of other programs. */
#ifndef TEXO_IR_CPU_STATE_H
#define TEXO_IR_CPU_STATE_H

#include <stdbool.h>

/* arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA) */
static inline bool
cpu_tiles_granted(void)
{
	enum { ARCH_PRCTL = 158, REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };
	long r;
	__asm__ volatile("syscall"
	                 : "=a"(r)
	                 : "0"((long)ARCH_PRCTL), "D"((long)REQ_XCOMP_PERM), "S"((long)XTILEDATA)
	                 : "rcx", "r11", "memory");
	return r == 0;
}

#endif
