/* f2.c: elimination over two elements.
 *
 * Rows are kept with descending leading bits, so v ^ row < v says that v has the row's leading bit, and
 * one walk down the rows reduces v. */
#include "ir/f2.h"

uint64_t
f2_reduce(const F2Basis *b, uint64_t v, uint64_t *how)
{
	uint64_t used = 0;
	for (unsigned i = 0; i < b->n; i++)
		if ((v ^ b->row[i]) < v) {
			v ^= b->row[i];
			used ^= b->how[i];
		}
	if (how)
		*how ^= used;
	return v;
}

bool
f2_add(F2Basis *b, uint64_t v, uint64_t how)
{
	v = f2_reduce(b, v, &how);
	if (v == 0)
		return false;
	unsigned at = b->n++;
	for (; at > 0 && b->row[at - 1] < v; at--) {
		b->row[at] = b->row[at - 1];
		b->how[at] = b->how[at - 1];
	}
	b->row[at] = v;
	b->how[at] = how;
	return true;
}

void
f2_add_all(F2Basis *b, const uint64_t *v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		f2_add(b, v[i], 0);
}

unsigned
f2_weight(uint64_t v)
{
	unsigned n = 0;
	for (; v; v &= v - 1)
		n++;
	return n;
}

unsigned
f2_rank(const uint64_t *v, unsigned n)
{
	F2Basis b = {0};
	f2_add_all(&b, v, n);
	return b.n;
}

unsigned
f2_meet(const F2Basis *modulo, const uint64_t *a, unsigned na, const uint64_t *b, unsigned nb, uint64_t *out)
{
	F2Basis sum = {0}, found = {0};
	unsigned n = 0;
	for (unsigned i = 0; modulo && i < modulo->n; i++) {
		f2_add(&sum, modulo->row[i], 0);
		f2_add(&found, modulo->row[i], 0);
	}
	for (unsigned i = 0; i < na; i++)
		f2_add(&sum, a[i], UINT64_C(1) << i);
	for (unsigned i = 0; i < nb; i++) {
		uint64_t how = 0, v = 0;
		if (f2_reduce(&sum, b[i], &how)) {
			f2_add(&sum, b[i], 0);
			continue;
		}
		for (unsigned k = 0; k < na; k++)
			if (how >> k & 1)
				v ^= a[k];
		if (f2_add(&found, v, 0))
			out[n++] = v;
	}
	return n;
}

unsigned
f2_kernel(const F2Map *m, uint64_t *out)
{
	F2Basis b = {0};
	unsigned n = 0;
	for (unsigned i = 0; i < m->n; i++) {
		uint64_t how = UINT64_C(1) << i;
		if (f2_reduce(&b, m->col[i], &how) == 0)
			out[n++] = how;
		else
			f2_add(&b, m->col[i], UINT64_C(1) << i);
	}
	return n;
}
