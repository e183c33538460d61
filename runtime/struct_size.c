/* struct_size.c: structs of callers who were built with another release's header. */
#include <string.h>

#include "runtime/inside.h"
#include "runtime/private.h"

enum { MOST = 4096 }; /* no struct of ours will be larger: a size beyond it was never set */

texo_status
texo_private_take_struct(const char *what, const void *from, size_t least, size_t size, void *to)
{
	uint32_t n;
	memcpy(&n, from, sizeof n);
	if (n < least || n > MOST)
		return rt_fail(TEXO_INVALID, "%s: struct_size is %u, %zu is expected", what, n, size);
	for (size_t k = size; k < n; k++)
		if (((const unsigned char *)from)[k])
			return rt_fail(TEXO_INVALID, "%s: struct_size is %u, and a field that this library doesn't know is set",
			               what, n);
	memset(to, 0, size);
	memcpy(to, from, n < size ? n : size);
	return TEXO_OK;
}
