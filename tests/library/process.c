/* process.c: see process.h. */
#include "tests/library/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

unsigned
process_open_files(void)
{
	unsigned n = 0;
	DIR *d = opendir("/proc/self/fd");
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

void
process_copy_program(const char *from, const char *to)
{
	char bytes[65536];
	FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
	assert_true(in && out);
	for (size_t n; (n = fread(bytes, 1, sizeof bytes, in)) > 0;)
		assert_int_equal(fwrite(bytes, 1, n, out), n);
	fclose(in);
	fclose(out);
	assert_int_equal(chmod(to, 0700), 0);
}
