/* archive.c: the ar format as the GNU tools write it: a table of symbols, then the members. No owner and no
 * time is in it. */
#include "driver/archive.h"

#include <string.h>

enum { HEADER = 60, MAGIC = 8 };

static void
put_header(Text *out, const char *name, size_t n)
{
	text_printf(out, "%-16s%-12d%-6d%-6d%-8s%-10zu`\n", name, 0, 0, 0, "644", n);
}

static void
put_padding(Text *out)
{
	if (out->n % 2)
		text_add(out, "\n", 1);
}

static void
put_number(Text *out, uint64_t v)
{
	char byte[4] = {(char)(v >> 24), (char)(v >> 16), (char)(v >> 8), (char)v};
	text_add(out, byte, sizeof byte);
}

void
archive_write(const void *object, size_t n, const char *const *symbol, uint32_t nsymbol, Text *out)
{
	size_t table = 4 + 4 * (size_t)nsymbol;
	for (uint32_t k = 0; k < nsymbol; k++)
		table += strlen(symbol[k]) + 1;
	text_add(out, "!<arch>\n", MAGIC);
	put_header(out, "/", table);
	put_number(out, nsymbol);
	for (uint32_t k = 0; k < nsymbol; k++)
		put_number(out, MAGIC + HEADER + table + table % 2);
	for (uint32_t k = 0; k < nsymbol; k++)
		text_add(out, symbol[k], strlen(symbol[k]) + 1);
	put_padding(out);
	put_header(out, "texo.o/", n);
	text_add(out, object, n);
	put_padding(out);
}
