/* false_worker.c: a worker that misbehaves. Tests start it under a name that says how: it answers with
 * garbage, with half of a message, with too much, hangs, computes for ever, ends, or crashes; before or after reading. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/api/worker.h"
#include "driver/worker_confine.h"
#include "ir/image.h"

static void
read_some(void)
{
	char bytes[4096];
	if (read(0, bytes, sizeof bytes) < 0)
		_exit(9);
}

static void
say(const void *p, size_t n)
{
	if (write(0, p, n) < 0)
		_exit(9);
}

/* A head that promises n bytes, and says that they are what p begins with. */
static void
promise(uint64_t n, const void *p, size_t known)
{
	char head[MESSAGE_HEAD] = "TEXOWRK";
	uint64_t digest = image_digest(p, known);
	memcpy(head + 8, &n, sizeof n);
	memcpy(head + 16, &digest, sizeof digest);
	say(head, sizeof head);
}

/* As one that has limited itself. */
static void
burn(void)
{
	volatile unsigned n = 0;
	if (!worker_confine(1, 2, (size_t)WORKER_MIB << 20))
		_exit(9);
	while (n < 2)
		n ^= 1;
}

int
main(int argc, char **argv)
{
	static const char far[9] = "\377\377\377\377\377\377\377\377";
	char how[256], flood[4096] = {0};
	ssize_t n = readlink("/proc/self/exe", how, sizeof how - 1);
	(void)argc;
	(void)argv;
	how[n > 0 ? n : 0] = 0;
	const char *act = strrchr(how, '/') ? strrchr(how, '/') + 1 : "";
	if (strcmp(act, "deaf") != 0)
		read_some();
	if (strcmp(act, "garbage") == 0)
		for (int k = 0; k < 16; k++)
			say("what is this? ", 14);
	if (strcmp(act, "flood") == 0)
		for (;;)
			say(flood, sizeof flood);
	if (strcmp(act, "huge") == 0)
		promise(UINT64_MAX, flood, 0);
	if (strcmp(act, "half") == 0)
		promise(1000, flood, 1000), say(flood, 10);
	if (strcmp(act, "parts") == 0) /* one part that is longer than all */
		promise(9, far, 9), say(far, 9);
	if (strcmp(act, "hang") == 0 || strcmp(act, "deaf") == 0 || strcmp(act, "parts") == 0)
		pause();
	if (strcmp(act, "burn") == 0)
		burn();
	if (strcmp(act, "full") == 0)
		fprintf(stderr, "LLVM ERROR: out of memory\nAllocation failed\n");
	if (strcmp(act, "crash") == 0)
		fprintf(stderr, "LLVM ERROR: \033[2Jtired\n");
	if (strcmp(act, "crash") == 0 || strcmp(act, "full") == 0)
		abort();
	return 0;
}
