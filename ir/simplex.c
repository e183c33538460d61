/* simplex.c: see simplex.h. The method is that of Dutertre and de Moura: a row is a slack variable
 * that must not be negative, written over the others, which are at 0. A violated row is mended by
 * exchanging it with a variable that can move it up; when there is none, the row itself is the proof
 * (Farkas). Free variables go first, and their rows are never looked at again. Ties go to the smallest
 * number (Bland), so it ends.
 *
 * Only signs matter, so rows are kept as integers up to a positive factor, divided by their gcd. */
#include "ir/simplex.h"

enum { GONE = 0, FREE = 1, SLACK = 2 /* SLACK + number of the row it came from */ };

static uint64_t
gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t t = a % b;
		a = b;
		b = t;
	}
	return a;
}

static uint64_t
magnitude(int64_t v)
{
	return v < 0 ? -(uint64_t)v : (uint64_t)v;
}

static int64_t *
row_at(const Simplex *s, unsigned r)
{
	return s->at + (size_t)r * (s->cols + 1);
}

/* Numbers stay below 2^62 in size, so that the product of two and a sum of two fit 128 bits. */
static bool
fits(__int128 v)
{
	return v < (__int128)1 << 62 && v > -((__int128)1 << 62);
}

static void
reduce(const Simplex *s, int64_t *row)
{
	uint64_t d = 0;
	for (unsigned k = 0; k <= s->cols && d != 1; k++)
		if (row[k])
			d = gcd(magnitude(row[k]), d);
	if (d > 1)
		for (unsigned k = 0; k <= s->cols; k++)
			row[k] /= (int64_t)d;
}

/* row := |a| * row + sign * c * (the pivot row solved for the variable), see pivot. */
static bool
eliminate(const Simplex *s, int64_t *row, const int64_t *by, unsigned j)
{
	int64_t a = by[j], c = row[j];
	uint64_t d = gcd(magnitude(a), magnitude(c));
	__int128 up = (__int128)(magnitude(a) / d), across = (__int128)(c / (int64_t)d) * (a < 0 ? -1 : 1);
	for (unsigned k = 0; k <= s->cols; k++) {
		if (!by[k] && (up == 1 || !row[k])) /* as it was; most are 0 */
			continue;
		__int128 v = k == j ? across : up * row[k] - across * by[k];
		if (!fits(v))
			return false;
		row[k] = (int64_t)v;
	}
	reduce(s, row);
	return true;
}

/* Exchanges the slack of row r with the variable of column j: from s = a*y + rest follows
 * |a|*y = sign(a)*(s - rest), which goes into every other row. */
static bool
pivot(Simplex *s, unsigned r, unsigned j)
{
	int64_t *by = row_at(s, r);
	for (unsigned i = 0; i < s->rows; i++)
		if (i != r && s->row_id[i] != GONE && row_at(s, i)[j] && !eliminate(s, row_at(s, i), by, j))
			return false;
	int sign = by[j] < 0 ? -1 : 1;
	for (unsigned k = 0; k <= s->cols; k++)
		by[k] = k == j ? sign : -sign * by[k];
	uint32_t leaving = s->row_id[r];
	s->row_id[r] = s->col_id[j] == FREE ? GONE : s->col_id[j];
	s->col_id[j] = leaving;
	return true;
}

/* The free variable with the smallest coefficient in row r, or cols. */
static unsigned
free_column(const Simplex *s, unsigned r)
{
	unsigned best = s->cols;
	const int64_t *row = row_at(s, r);
	for (unsigned k = 0; k < s->cols; k++)
		if (s->col_id[k] == FREE && row[k] &&
		    (best == s->cols || magnitude(row[k]) < magnitude(row[best])))
			best = k;
	return best;
}

static unsigned
slack_column(const Simplex *s, unsigned r)
{
	unsigned best = s->cols;
	const int64_t *row = row_at(s, r);
	for (unsigned k = 0; k < s->cols; k++)
		if (s->col_id[k] >= SLACK && row[k] > 0 &&
		    (best == s->cols || s->col_id[k] < s->col_id[best]))
			best = k;
	return best;
}

static unsigned
violated_row(const Simplex *s)
{
	unsigned best = s->rows;
	for (unsigned i = 0; i < s->rows; i++)
		if (s->row_id[i] != GONE && row_at(s, i)[s->cols] < 0 &&
		    (best == s->rows || s->row_id[i] < s->row_id[best]))
			best = i;
	return best;
}

/* Solves the equations for free variables; their slack, being 0, disappears. */
static bool
solve_equations(Simplex *s, bool *contradiction)
{
	for (unsigned r = 0; r < s->rows; r++) {
		if (!s->eq[r])
			continue;
		unsigned j = free_column(s, r);
		if (j == s->cols) {
			if (row_at(s, r)[s->cols] != 0)
				return *contradiction = true;
			s->row_id[r] = GONE;
			continue;
		}
		if (!pivot(s, r, j))
			return false;
		s->col_id[j] = GONE;
		for (unsigned i = 0; i < s->rows; i++)
			row_at(s, i)[j] = 0;
	}
	return true;
}

bool
simplex_infeasible(Simplex *s)
{
	enum { MAX_STEPS = 400 };
	bool contradiction = false;
	for (unsigned r = 0; r < s->rows; r++)
		s->row_id[r] = SLACK + r;
	for (unsigned k = 0; k < s->cols; k++)
		s->col_id[k] = FREE;
	for (size_t k = 0; k < (size_t)s->rows * (s->cols + 1); k++)
		if (!fits(s->at[k]))
			return false;
	if (!solve_equations(s, &contradiction) || contradiction)
		return contradiction;
	for (unsigned step = 0; step < MAX_STEPS; step++) {
		unsigned r = violated_row(s);
		if (r == s->rows)
			return false;
		unsigned j = free_column(s, r);
		if (j == s->cols)
			j = slack_column(s, r);
		if (j == s->cols)
			return true;
		if (!pivot(s, r, j))
			return false;
	}
	return false;
}
