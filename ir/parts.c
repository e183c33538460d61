/* parts.c: see parts.h. */
#include "ir/parts.h"

#include <string.h>

void
part_put(Text *t, const void *p, size_t n)
{
	uint64_t length = n;
	text_add(t, (const char *)&length, sizeof length);
	if (n)
		text_add(t, p, n);
	text_add(t, "", 1);
}

void
part_put_text(Text *t, const char *s)
{
	part_put(t, s, s ? strlen(s) : 0);
}

void
part_put_number(Text *t, uint64_t v)
{
	part_put(t, &v, sizeof v);
}

const char *
part_get(PartReader *r, size_t *n)
{
	uint64_t length = 0;
	*n = 0;
	if (r->left < sizeof length + 1)
		r->bad = true;
	else
		memcpy(&length, r->at, sizeof length);
	if (!r->bad && (length > r->left - sizeof length - 1 || r->at[sizeof length + length] != 0))
		r->bad = true;
	if (r->bad)
		return "";
	const char *part = r->at + sizeof length;
	r->at = part + length + 1;
	r->left -= sizeof length + (size_t)length + 1;
	*n = (size_t)length;
	return part;
}

const char *
part_get_text(PartReader *r)
{
	size_t n;
	return part_get(r, &n);
}

uint64_t
part_get_number(PartReader *r)
{
	uint64_t v = 0;
	size_t n;
	const char *part = part_get(r, &n);
	if (n == sizeof v)
		memcpy(&v, part, sizeof v);
	else
		r->bad = true;
	return v;
}

uint32_t
part_get_count(PartReader *r)
{
	uint64_t n = part_get_number(r);
	if (n > r->left || n > UINT32_MAX)
		r->bad = true;
	return r->bad ? 0 : (uint32_t)n;
}
