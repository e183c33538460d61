/* layout_text.c: layouts as text, printed and read. layout.h shows the form. */
#include "ir/layout.h"

#include <inttypes.h>
#include <string.h>

static const char letters[LAYOUT_RANK] = {'i', 'j', 'k', 'l'};

/* --- printing --- */

static void
print_column(Text *out, uint64_t column)
{
	const char *between = " ";
	if (column == 0)
		text_printf(out, " 0");
	for (unsigned d = 0; d < LAYOUT_RANK; d++)
		for (unsigned bit = 1; bit < 0x10000; bit *= 2)
			if (coord_get(column, d) & bit) {
				text_printf(out, "%s%c%u", between, letters[d], bit);
				between = "^";
			}
}

void
layout_print(const Layout *l, Text *out)
{
	for (unsigned d = 0; d < l->rank; d++)
		text_printf(out, "%s%u", d ? "x" : "", (unsigned)l->shape[d]);
	for (unsigned a = 0; a < AXIS_COUNT; a++) {
		bool named = false;
		for (unsigned i = 0; i < l->nbit[a]; i++) {
			if (!named)
				text_printf(out, " %s", axis_info[a].text);
			named = true;
			print_column(out, l->col[a][i]);
		}
		for (unsigned i = 0; i < l->nrepeat; i++) {
			const LayoutRepeat *r = &l->repeat[i];
			if (r->axis != a)
				continue;
			if (!named)
				text_printf(out, " %s", axis_info[a].text);
			named = true;
			text_printf(out, " %c%u*%u", letters[r->dim], (unsigned)r->stride, (unsigned)r->count);
		}
	}
}

/* --- reading --- */

typedef struct {
	Layout l;
	const char *at, *end;
	const char *error;
	bool named[AXIS_COUNT];
	bool repeats; /* the open axis has had one: no bit may follow */
} Reader;

static bool
fail(Reader *r, const char *what)
{
	if (!r->error)
		r->error = what;
	return false;
}

static void
skip(Reader *r)
{
	for (; r->at < r->end; r->at++) {
		if (*r->at == '#')
			while (r->at < r->end && *r->at != '\n')
				r->at++;
		if (r->at == r->end || (*r->at != ' ' && *r->at != '\t' && *r->at != '\n' && *r->at != '\r'))
			return;
	}
}

static bool
take(Reader *r, char c)
{
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

static bool
read_number(Reader *r, unsigned *v)
{
	const char *first = r->at;
	*v = 0;
	for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
		*v = *v * 10 + (unsigned)(*r->at - '0');
		if (*v > LAYOUT_EXTENT)
			return fail(r, "a number is too large");
	}
	return r->at > first || fail(r, "a number was expected");
}

static bool
read_shape(Reader *r)
{
	skip(r);
	do {
		unsigned n;
		if (!read_number(r, &n))
			return false;
		if (r->l.rank == LAYOUT_RANK)
			return fail(r, "a layout has 1 to 4 dimensions");
		r->l.shape[r->l.rank++] = (uint16_t)n;
	} while (take(r, 'x'));
	return true;
}

static bool
read_axis(Reader *r, unsigned *axis)
{
	for (unsigned a = 0; a < AXIS_COUNT; a++) {
		size_t n = strlen(axis_info[a].text);
		if ((size_t)(r->end - r->at) < n || memcmp(r->at, axis_info[a].text, n) != 0)
			continue;
		r->at += n;
		if (r->named[a])
			return fail(r, "an axis comes twice");
		r->named[a] = true;
		r->repeats = false;
		*axis = a;
		return true;
	}
	return fail(r, "no such axis");
}

/* j8: the dimension and the number. */
static bool
read_step(Reader *r, unsigned *dim, unsigned *step)
{
	for (*dim = 0; *dim < LAYOUT_RANK; ++*dim)
		if (take(r, letters[*dim]))
			return read_number(r, step);
	return fail(r, "a column was expected");
}

static bool
read_repeat(Reader *r, LayoutAxis axis, unsigned dim, unsigned stride)
{
	unsigned count;
	if (!read_number(r, &count))
		return false;
	if (r->l.nrepeat == LAYOUT_REPEATS)
		return fail(r, "a layout has more than 16 repeats");
	r->repeats = true;
	layout_add_repeat(&r->l, axis, dim, count, stride);
	return true;
}

static bool
read_digit(Reader *r, LayoutAxis axis)
{
	uint64_t column = 0;
	unsigned dim, step;
	if (!take(r, '0')) {
		do {
			if (!read_step(r, &dim, &step))
				return false;
			if (column == 0 && take(r, '*'))
				return read_repeat(r, axis, dim, step);
			if (step == 0 || (step & (step - 1)) || (column & coord_along(dim, step)))
				return fail(r, "a column is a sum of different powers of two");
			column ^= coord_along(dim, step);
		} while (take(r, '^'));
	}
	if (r->repeats)
		return fail(r, "bits come before repeats");
	if (r->l.nbit[axis] == LAYOUT_BITS)
		return fail(r, "an axis has more than 20 bits");
	layout_add_bit(&r->l, axis, column);
	return true;
}

static bool
read_all(Reader *r)
{
	unsigned axis = AXIS_COUNT;
	if (!read_shape(r))
		return false;
	for (;;) {
		const char *before = r->at;
		skip(r);
		if (r->at == r->end)
			return layout_verify(&r->l, &r->error);
		if (r->at == before)
			return fail(r, "a blank was expected");
		bool digit = *r->at == '0' || memchr(letters, *r->at, sizeof letters);
		/* `lane` begins like a column along l, and no column's letter is followed by another */
		if (digit && r->end - r->at > 1 && r->at[1] >= 'a' && r->at[1] <= 'z')
			digit = false;
		if (digit && axis == AXIS_COUNT)
			return fail(r, "an axis was expected");
		if (!(digit ? read_digit(r, (LayoutAxis)axis) : read_axis(r, &axis)))
			return false;
	}
}

bool
layout_read(Arena *a, const char *text, size_t n, Layout *l, const char **error)
{
	Reader r = {.at = text, .end = text + n};
	bool ok = read_all(&r);
	*error = NULL;
	if (!ok)
		*error = arena_text(a, "byte %" PRIu64 ": %s", (uint64_t)(r.at - text), r.error);
	*l = r.l;
	return ok;
}
