/* npy_read.c: see npy.h. */
#include "driver/npy.h"
#include "driver/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	const char *at, *end;
	NpyFile *file;
	Npy *out;
	Problem *problem;
	unsigned seen; /* one bit a key */
} Header;

enum { SEEN_DESCR = 1, SEEN_ORDER = 2, SEEN_SHAPE = 4 };

static bool
bad(Header *h, const char *what)
{
	return problem(h->problem, EXIT_INPUT, "%s is not a .npy file that can be read: %s", h->file->path, what);
}

static void
blanks(Header *h)
{
	while (h->at < h->end && (*h->at == ' ' || *h->at == '\t' || *h->at == '\n' || *h->at == '\r'))
		h->at++;
}

static bool
accept(Header *h, char c)
{
	blanks(h);
	if (h->at >= h->end || *h->at != c)
		return false;
	h->at++;
	return true;
}

static bool
accept_word(Header *h, const char *word)
{
	size_t n = strlen(word);
	blanks(h);
	if ((size_t)(h->end - h->at) < n || memcmp(h->at, word, n) != 0)
		return false;
	h->at += n;
	return true;
}

/* A quoted text of at most cap - 1 bytes, without escapes. */
static bool
quoted(Header *h, char *to, size_t cap)
{
	blanks(h);
	char q = h->at < h->end ? *h->at : 0;
	if (q != '\'' && q != '"')
		return false;
	const char *from = ++h->at;
	while (h->at < h->end && *h->at != q && *h->at != '\\' && *h->at != '\n')
		h->at++;
	if (h->at >= h->end || *h->at != q || (size_t)(h->at - from) >= cap)
		return false;
	memcpy(to, from, (size_t)(h->at - from));
	to[h->at - from] = 0;
	h->at++;
	return true;
}

/* The descr in the one spelling of dtype.def: '=' is '<' here, one byte has no order. */
static bool
take_descr(Header *h)
{
	char d[16];
	Npy *out = h->out;
	blanks(h);
	if (h->at < h->end && *h->at == '[')
		return bad(h, "it holds records (a structured dtype); save one plain array");
	if (!quoted(h, d, sizeof d))
		return bad(h, "its dtype can't be read");
	char order = d[0], kind = d[0] ? d[1] : 0;
	char *end = d;
	long width = kind ? strtol(d + 2, &end, 10) : 0;
	if (!strchr("<>=|", order) || !kind || !strchr("fiubc", kind) || end == d + 2 || *end || width < 1 || width > 16)
		return problem(h->problem, EXIT_INPUT, "%s holds numpy dtype '%s', which texo has no type for",
		               h->file->path, d);
	if (order == '>' && width > 1) {
		problem(h->problem, EXIT_INPUT, "%s is big-endian (dtype '%s')", h->file->path, d);
		return problem_help(h->problem, "save it with x.astype(x.dtype.newbyteorder('<'))");
	}
	out->descr[0] = width == 1 ? '|' : '<';
	out->descr[1] = kind;
	memcpy(out->descr + 2, d + 2, strlen(d + 2) < 5 ? strlen(d + 2) + 1 : 5);
	out->descr[7] = 0;
	out->width = (unsigned)width;
	return true;
}

static bool
take_number(Header *h, int64_t *v)
{
	blanks(h);
	const char *from = h->at;
	uint64_t n = 0;
	while (h->at < h->end && *h->at >= '0' && *h->at <= '9') {
		if (n > (uint64_t)INT64_MAX / 10 - 1)
			return bad(h, "an axis of its shape is too long");
		n = n * 10 + (uint64_t)(*h->at++ - '0');
	}
	if (h->at == from)
		return bad(h, "its shape is not a tuple of lengths");
	if (h->at < h->end && *h->at == 'L')
		h->at++; /* written by Python 2 */
	*v = (int64_t)n;
	return true;
}

static bool
take_shape(Header *h)
{
	Npy *out = h->out;
	if (!accept(h, '('))
		return bad(h, "its shape is not a tuple of lengths");
	while (!accept(h, ')')) {
		if (out->rank == NPY_MAX_RANK)
			return bad(h, "its shape has more than 32 axes");
		if (!take_number(h, &out->shape[out->rank++]))
			return false;
		if (!accept(h, ',')) {
			if (!accept(h, ')'))
				return bad(h, "its shape is not a tuple of lengths");
			break;
		}
	}
	return true;
}

static bool
take_entry(Header *h)
{
	char key[32];
	unsigned bit;
	if (!quoted(h, key, sizeof key) || !accept(h, ':'))
		return bad(h, "its header is not the dictionary it should be");
	if (strcmp(key, "descr") == 0)
		bit = SEEN_DESCR;
	else if (strcmp(key, "fortran_order") == 0)
		bit = SEEN_ORDER;
	else if (strcmp(key, "shape") == 0)
		bit = SEEN_SHAPE;
	else
		return bad(h, "its header has a key that does not belong there");
	if (h->seen & bit)
		return bad(h, "its header has a key twice");
	h->seen |= bit;
	if (bit == SEEN_DESCR)
		return take_descr(h);
	if (bit == SEEN_SHAPE)
		return take_shape(h);
	h->out->fortran = accept_word(h, "True");
	return h->out->fortran || accept_word(h, "False") || bad(h, "fortran_order is neither True nor False");
}

static bool
take_dictionary(Header *h)
{
	if (!accept(h, '{'))
		return bad(h, "its header is not the dictionary it should be");
	while (!accept(h, '}')) {
		if (!take_entry(h))
			return false;
		if (!accept(h, ',')) {
			if (!accept(h, '}'))
				return bad(h, "its header is not the dictionary it should be");
			break;
		}
	}
	blanks(h);
	if (h->at != h->end)
		return bad(h, "something follows the dictionary in its header");
	if (h->seen != (SEEN_DESCR | SEEN_ORDER | SEEN_SHAPE))
		return bad(h, "its header lacks descr, fortran_order or shape");
	return true;
}

/* Products that do not overflow, also where a later axis is 0. */
static bool
take_sizes(Header *h)
{
	Npy *out = h->out;
	int64_t all = out->width, count = 1;
	for (unsigned k = 0; k < out->rank; k++) {
		if (out->shape[k] > 0 && __builtin_mul_overflow(all, out->shape[k], &all))
			return bad(h, "its shape is larger than any memory");
		count *= out->shape[k];
	}
	out->count = count;
	out->bytes = count * out->width;
	if (h->file->left >= 0 && h->file->left != out->bytes)
		return problem(h->problem, EXIT_INPUT,
		               "%s does not hold what its header says: %lld bytes of data expected, %lld present",
		               h->file->path, (long long)out->bytes, (long long)h->file->left);
	return true;
}

static bool
read_header(NpyFile *f, int64_t size, Npy *out, Arena *a, Problem *p)
{
	unsigned char start[12] = {0};
	Header h = {.file = f, .out = out, .problem = p};
	ptrdiff_t k = read_fully(f->files, f->fd, start, 10);
	if (k < 0)
		return problem(p, EXIT_IO, "cannot read %s: %s", f->path, strerror(errno));
	if (k < 10 || memcmp(start, "\x93NUMPY", 6) != 0) {
		bad(&h, "it does not begin as one");
		return problem_help(p, memcmp(start, "PK", 2) == 0 ? "it may be an .npz archive: save each array with numpy.save"
		                                                   : "numpy.save writes such files");
	}
	if (start[6] < 1 || start[6] > 3 || start[7] != 0)
		return bad(&h, "its format version is not 1.0, 2.0 or 3.0");
	size_t before = 10, n = start[8] | (size_t)start[9] << 8;
	if (start[6] > 1) {
		if (read_fully(f->files, f->fd, start + 10, 2) != 2)
			return bad(&h, "it ends within its header");
		before = 12;
		n |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
	}
	if (n > NPY_MAX_HEADER)
		return bad(&h, "its header is longer than 64 KiB");
	char *text = arena_alloc(a, n + 1);
	if (read_fully(f->files, f->fd, text, n) != (ptrdiff_t)n)
		return bad(&h, "it ends within its header");
	f->left = size < 0 ? -1 : size - (int64_t)(before + n);
	h.at = text;
	h.end = text + n;
	return take_dictionary(&h) && take_sizes(&h);
}

bool
npy_open(const HostFiles *files, const char *path, NpyFile *f, Npy *out, Arena *a, Problem *p)
{
	int64_t size;
	*out = (Npy){0};
	*f = (NpyFile){files, path, -1, -1};
	f->fd = open_to_read(files, path, &size, p);
	if (f->fd < 0)
		return false;
	if (read_header(f, size, out, a, p))
		return true;
	npy_close(f);
	return false;
}

void
npy_close(NpyFile *f)
{
	if (f->fd > 0)
		f->files->close(f->files->user, f->fd);
	f->fd = -1;
}

/* Element (i0, i1, …) stands at i0 + n0 * (i1 + n1 * …) in the file. */
static void *
transpose(const Npy *npy, const char *from, Arena *a)
{
	char *to = arena_alloc(a, (size_t)npy->bytes);
	int64_t index[NPY_MAX_RANK] = {0}, stride[NPY_MAX_RANK], at = 0, step = 1;
	for (unsigned k = 0; k < npy->rank; k++) {
		stride[k] = step;
		step *= npy->shape[k];
	}
	for (int64_t i = 0; i < npy->count; i++) {
		memcpy(to + i * npy->width, from + at * npy->width, npy->width);
		for (unsigned k = npy->rank; k-- > 0;) {
			at += stride[k];
			if (++index[k] < npy->shape[k])
				break;
			at -= stride[k] * npy->shape[k];
			index[k] = 0;
		}
	}
	return to;
}

/* What comes through a pipe is believed only as it arrives. */
static char *
read_growing(NpyFile *f, size_t n, Arena *a, ptrdiff_t *got)
{
	size_t cap = n < 1u << 20 ? n : 1u << 20, have = 0;
	char *at = arena_alloc(a, cap);
	for (;;) {
		ptrdiff_t k = read_fully(f->files, f->fd, at + have, cap - have);
		if (k < 0) {
			*got = -1;
			return at;
		}
		have += (size_t)k;
		if (have < cap || cap == n)
			break;
		size_t more = cap > n / 2 ? n : cap * 2;
		char *wider = arena_alloc(a, more);
		memcpy(wider, at, have);
		at = wider;
		cap = more;
	}
	*got = (ptrdiff_t)have;
	return at;
}

bool
npy_read_data(NpyFile *f, Npy *npy, Arena *a, Problem *p)
{
	ptrdiff_t got;
	size_t n = (size_t)npy->bytes;
	char *at, beyond;
	if (f->left >= 0) {
		at = arena_alloc(a, n);
		got = read_fully(f->files, f->fd, at, n);
	} else {
		at = read_growing(f, n, a, &got);
	}
	int why = errno;
	bool longer = got == (ptrdiff_t)n && read_fully(f->files, f->fd, &beyond, 1) == 1;
	npy_close(f);
	if (got < 0)
		return problem(p, EXIT_IO, "cannot read %s: %s", f->path, strerror(why));
	if (got != (ptrdiff_t)n || longer)
		return problem(p, EXIT_INPUT, "%s does not hold what its header says: %lld bytes of data expected, %s%lld present",
		               f->path, (long long)n, longer ? "more than " : "", (long long)got);
	npy->data = npy->fortran && npy->rank > 1 ? transpose(npy, at, a) : at;
	return true;
}

bool
npy_holds(const Npy *npy, DType t)
{
	return strcmp(npy->descr, dtype_info[t].npy) == 0;
}

bool
npy_shape(const Npy *npy, DType t, unsigned *rank, int64_t *shape)
{
	*rank = npy->rank;
	for (unsigned k = 0; k < npy->rank; k++)
		shape[k] = npy->shape[k];
	if (dtype_info[t].bits != 4)
		return true;
	return npy->rank > 0 && !__builtin_mul_overflow(shape[npy->rank - 1], (int64_t)2, &shape[npy->rank - 1]);
}

DType
npy_plain_dtype(const char *descr)
{
	static const DType plain[] = {DT_F64, DT_F32, DT_F16, DT_I64, DT_I32, DT_I16, DT_I8,
	                              DT_U64, DT_U32, DT_U16, DT_U8,  DT_BOOL, DT_C64};
	for (unsigned i = 0; i < sizeof plain / sizeof plain[0]; i++)
		if (strcmp(dtype_info[plain[i]].npy, descr) == 0)
			return plain[i];
	return DT_NONE;
}
