/* dot_product.c: DOT, its legality as the kernel runs, and the vectors in its place (dot_product.h). */
#include "passes/schedule/point/dot_product.h"

#include "ir/bugs.h"

enum { MOST_ACCUMULATORS = 16, MAX_VECTORS = 8 };

static ValId
number(TirKernel *k, int64_t v)
{
	return tir_int(k, DT_I64, v);
}

/* --- by vectors --- */

static ValId
add(TirKernel *k, ValId a, unsigned b)
{
	return tir_binary(k, OP_ADD, a, number(k, b));
}

/* Vector v of row r. */
static unsigned
sum_at(TirKernel *k, const DotProduct *p, ValId row, unsigned r, unsigned v, ValId *at)
{
	unsigned n = p->c.n;
	for (unsigned i = 0; i < n; i++)
		at[i] = p->c.at[i];
	at[n] = add(k, row, r);
	at[n + 1] = number(k, v * p->lanes);
	return n + 1;
}

static ValId
load_pairs(TirKernel *k, const DotMatrix *m, ValId group, ValId i, ValId j, unsigned lanes)
{
	ValId at[DOT_MAX_AT + 3];
	for (unsigned n = 0; n < m->n; n++)
		at[n] = m->at[n];
	at[m->n] = group;
	at[m->n + 1] = i;
	at[m->n + 2] = j;
	return tir_load(k, m->view, at, 0, lanes ? TIR_LANES_ALONG(m->n + 2) : 0, lanes);
}

/* The terms of a pair, as f32. */
static void
split_pair(TirKernel *k, ValId pair, ValId *term)
{
	term[0] = tir_bitcast(k, DT_F32, tir_binary(k, OP_SHL, pair, tir_int(k, DT_U32, 16)));
	term[1] = tir_bitcast(k, DT_F32, tir_binary(k, OP_BAND, pair, tir_int(k, DT_U32, 0xffff0000)));
}

static void
add_pair(TirKernel *k, const DotProduct *p, ValId row, unsigned rows, ValId group, ValId pair, ValId *acc)
{
	unsigned vectors = p->columns / p->lanes;
	ValId column[MAX_VECTORS][2], x[2];
	for (unsigned v = 0; v < vectors; v++)
		split_pair(k, load_pairs(k, &p->b, group, pair, number(k, v * p->lanes), p->lanes), column[v]);
	for (unsigned r = 0; r < rows; r++) {
		split_pair(k, load_pairs(k, &p->a, group, add(k, row, r), pair, 0), x);
		for (unsigned n = 0; n < 2 * vectors; n++) {
			ValId *to = &acc[r * vectors + n / 2];
			ValId term = tir_binary(k, OP_MUL, x[n % 2], column[n / 2][n % 2]);
			if (!BUG(dot_half_pairs) || n % 2 == 0)
				*to = tir_binary(k, OP_ADD, *to, term);
		}
	}
}

/* As many rows at a time as registers hold, a divisor of them all. */
static unsigned
rows_at_once(const DotProduct *p)
{
	unsigned n = MOST_ACCUMULATORS / (p->columns / p->lanes);
	while (p->rows % n)
		n--;
	return n;
}

static void
add_by_vectors(TirKernel *k, const DotProduct *p)
{
	ValId acc[MOST_ACCUMULATORS], at[DOT_MAX_AT + 2], zero = number(k, 0), one = number(k, 1);
	unsigned vectors = p->columns / p->lanes, rows = rows_at_once(p), n = rows * vectors, along;
	ValId row = tir_for(k, zero, number(k, p->rows), number(k, rows), NULL, 0);
	for (unsigned i = 0; i < n; i++) {
		along = sum_at(k, p, row, i / vectors, i % vectors, at);
		acc[i] = tir_load(k, p->c.view, at, 0, TIR_LANES_ALONG(along), p->lanes);
	}
	ValId group = tir_for(k, zero, p->groups, one, acc, n);
	ValId pair = tir_for(k, zero, number(k, p->pairs), one, acc, n);
	add_pair(k, p, row, rows, group, pair, acc);
	tir_end_for(k, acc, n);
	tir_end_for(k, acc, n);
	for (unsigned i = 0; i < n; i++) {
		along = sum_at(k, p, row, i / vectors, i % vectors, at);
		tir_store(k, p->c.view, acc[i], at, 0, TIR_LANES_ALONG(along));
	}
	tir_end_for(k, NULL, 0);
}

static void
clear(TirKernel *k, const DotProduct *p)
{
	ValId at[DOT_MAX_AT + 2], none = tir_float(k, DT_F32, 0);
	none = tir_emit(k, OP_SPLAT, tir_vector(DT_F32, p->lanes), 0, &none, 1);
	ValId row = tir_for(k, number(k, 0), number(k, p->rows), number(k, 1), NULL, 0);
	for (unsigned v = 0; v < p->columns / p->lanes; v++) {
		unsigned along = sum_at(k, p, row, 0, v, at);
		tir_store(k, p->c.view, none, at, 0, TIR_LANES_ALONG(along));
	}
	tir_end_for(k, NULL, 0);
}

/* --- least magnitudes --- */

/* Twice the magnitude of the lesser of two bf16, as the high half of a u32, less 1: so that 0, which
 * does not count, is the most. */
ValId
dot_lesser(TirKernel *k, ValId pairs)
{
	ValId one = tir_int(k, DT_U32, 1), signs = tir_int(k, DT_U32, 0xfffe0000);
	ValId low = tir_binary(k, OP_SHL, pairs, tir_int(k, DT_U32, 17));
	ValId high = tir_binary(k, OP_BAND, tir_binary(k, OP_SHL, pairs, one), signs);
	return tir_binary(k, OP_MIN, tir_binary(k, OP_SUB, low, one), tir_binary(k, OP_SUB, high, one));
}

ValId
dot_across(TirKernel *k, Op op, ValId v)
{
	TirType t = tir_inst(k, v)->type;
	for (unsigned lanes = t.lanes / 2; lanes; lanes /= 2) {
		TirType half = {t.dtype, (uint16_t)(lanes > 1 ? lanes : 0)};
		ValId low = tir_emit(k, OP_LANE, half, 0, &v, 1), high = tir_emit(k, OP_LANE, half, lanes, &v, 1);
		v = tir_binary(k, op, low, high);
	}
	return v;
}

ValId
dot_is_exact(TirKernel *k, ValId least_a, ValId least_b)
{
	/* the least sum of two exponent fields: their last bits are 2^(field - 127 - 7) */
	enum { EXPONENT_AT = 24, LEAST_SUM = 2 * (127 + 7) - 126 };
	if (BUG(dot_flushes))
		return tir_int(k, DT_BOOL, 1);
	ValId down = tir_int(k, DT_U32, EXPONENT_AT), one = tir_int(k, DT_U32, 1);
	ValId a = tir_binary(k, OP_SHR, least_a, down), b = tir_binary(k, OP_SHR, least_b, down);
	ValId sum = tir_int(k, DT_U32, LEAST_SUM);
	ValId normal = tir_binary(k, OP_LE, one, tir_binary(k, OP_MIN, a, b));
	return tir_binary(k, OP_AND, normal, tir_binary(k, OP_LE, sum, tir_binary(k, OP_ADD, a, b)));
}

/* --- the product --- */

static void
emit(TirKernel *k, const DotProduct *p, bool anew)
{
	int64_t shape = TIR_DOT(p->rows, p->columns, p->pairs) | (p->chained ? TIR_DOT_CHAINED : 0) | (anew ? TIR_DOT_ANEW : 0);
	const DotMatrix *m[3] = {&p->c, &p->a, &p->b};
	ValId at[3 * DOT_MAX_AT];
	unsigned n = 0;
	for (unsigned i = 0; i < 3; i++)
		for (unsigned j = 0; j < m[i]->n; j++)
			at[n++] = m[i]->at[j];
	tir_dot(k, shape, p->c.view, p->a.view, p->b.view, p->groups, at);
}

/* Whether it is known here. */
static bool
is_known(const TirKernel *k, ValId anew)
{
	return !anew || tir_inst(k, anew)->op == OP_CONST;
}

static bool
is_anew(const TirKernel *k, ValId anew)
{
	return anew && tir_inst(k, anew)->imm.i;
}

void
dot_emit(TirKernel *k, const DotProduct *p)
{
	if (is_known(k, p->anew)) {
		emit(k, p, is_anew(k, p->anew));
		return;
	}
	tir_if(k, p->anew);
	emit(k, p, true);
	tir_else(k, NULL, 0);
	emit(k, p, false);
	tir_end_if(k, NULL, 0);
}

static void
clear_anew(TirKernel *k, const DotProduct *p)
{
	bool asks = !is_known(k, p->anew);
	if (!asks && !is_anew(k, p->anew))
		return;
	if (asks)
		tir_if(k, p->anew);
	clear(k, p);
	if (!asks)
		return;
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

void
dot_product(TirKernel *k, const DotProduct *p)
{
	tir_if(k, dot_is_exact(k, p->least_a, p->least_b));
	dot_emit(k, p);
	tir_else(k, NULL, 0);
	clear_anew(k, p);
	add_by_vectors(k, p);
	tir_end_if(k, NULL, 0);
}
