/* guard.c: see guard.h. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "tests/codegen/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

void
guard_open(Guard *g, size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (n + page - 1) / page * page;
	g->bytes = room + page;
	g->map = mmap(NULL, g->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(g->map != MAP_FAILED);
	assert_int_equal(mprotect((char *)g->map + room, page, PROT_NONE), 0);
	g->data = (char *)g->map + room - n;
}

void
guard_close(Guard *g)
{
	munmap(g->map, g->bytes);
}
