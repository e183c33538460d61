/* npy_write.c: headers of .npy files, version 1.0, data aligned to 64 bytes as NumPy writes them. */
#include "driver/npy.h"
#include "ir/text.h"

bool
npy_header(Arena *a, DType t, unsigned rank, const int64_t *shape, const char **header, size_t *n, Problem *p)
{
	bool packed = dtype_info[t].bits == 4;
	if (packed && (rank == 0 || shape[rank - 1] % 2 != 0))
		return problem(p, EXIT_INPUT, "%s travels two to a byte in .npy files: the last axis must be even",
		               dtype_info[t].text);
	Text dict, out;
	text_init(&dict, a);
	text_printf(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", dtype_info[t].npy);
	for (unsigned k = 0; k < rank; k++)
		text_printf(&dict, "%s%lld", k ? ", " : "",
		            (long long)(packed && k == rank - 1 ? shape[k] / 2 : shape[k]));
	text_printf(&dict, "%s), }", rank == 1 ? "," : "");
	while ((10 + dict.n + 1) % 64 != 0)
		text_add(&dict, " ", 1);
	text_add(&dict, "\n", 1);
	text_init(&out, a);
	text_add(&out, "\x93NUMPY\x01\x00", 8);
	char size[2] = {(char)(dict.n & 0xff), (char)(dict.n >> 8)};
	text_add(&out, size, 2);
	text_add(&out, dict.at, dict.n);
	*header = out.at;
	*n = out.n;
	return true;
}
