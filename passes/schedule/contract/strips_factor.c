/* strips_factor.c: the factors of strips (strips.c), as each lane has them.
 *
 * A factor is any expression of 16 bits. What it reads of memory, at indices that are known without memory, is read for a
 * whole chunk before anything is computed, so that all reads wait together: where elements lie side by side as many at once
 * as an access takes, where they share one, as weights share the scale of their group, once. The rest is computed from
 * stand-ins for what was read, element after element, as they are multiplied. */
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/contract/strips.h"

#include "ir/bugs.h"

enum { GROUP_BITS = 128 };

/* --- what is read early --- */

/* Whether the subscript is the same for all of STRIPS_MOST_TERMS indices side by side from a multiple of them on. */
static bool
is_same_in_group(const Graph *g, Arena *scratch, ExprId sub, unsigned axis)
{
	if (!(expr_axes(g, scratch, sub) >> axis & 1))
		return true;
	const Expr *p = expr_get(g, sub);
	if (p->op != OP_IDIV)
		return false;
	const Expr *of = expr_get(g, expr_arg(g, sub, 0)), *by = expr_get(g, expr_arg(g, sub, 1));
	return of->op == OP_AXIS && by->op == OP_CONST && by->imm.i > 0 && by->imm.i % STRIPS_MOST_TERMS == 0;
}

static EarlyHow
how_along(void *user, const Graph *g, Arena *scratch, ExprId read)
{
	unsigned axis = *(const unsigned *)user;
	const Expr *p = expr_get(g, read);
	bool same = true;
	for (unsigned k = 0; k + 1u < p->narg; k++)
		same = same && is_same_in_group(g, scratch, expr_arg(g, read, k), axis);
	if (!same || !p->narg)
		return same ? EARLY_ONCE : EARLY_EACH;
	const Expr *last = expr_get(g, expr_arg(g, read, p->narg - 1u));
	if (last->op == OP_AXIS && last->ref == axis)
		return EARLY_GROUP;
	return is_same_in_group(g, scratch, expr_arg(g, read, p->narg - 1u), axis) ? EARLY_ONCE : EARLY_EACH;
}

/* The factor's early reads; how many of them have elements side by side along the axis. */
static unsigned
find_reads(const Graph *g, Arena *scratch, StripFactor *f, unsigned axis)
{
	unsigned along = 0;
	early_reads_find(g, scratch, f->value, how_along, &axis, &f->reads);
	for (unsigned r = 0; r < f->reads.n; r++)
		along += f->reads.at[r].how == EARLY_GROUP;
	return along;
}

bool
strip_factor_find(const Graph *g, Arena *scratch, const Node *n, ExprId value, DType t, unsigned own_axis, bool turns, StripFactor *f)
{
	*f = (StripFactor){.value = value, .dtype = t, .own_axis = own_axis};
	unsigned across = find_reads(g, scratch, f, own_axis), along = find_reads(g, scratch, f, n->npar);
	f->along_terms = !turns || along >= across;
	if (!f->along_terms)
		find_reads(g, scratch, f, own_axis);
	return along || (turns && across);
}

unsigned
strip_factor_terms(const Graph *g, const StripFactor *f)
{
	unsigned most = STRIPS_ROWS;
	for (unsigned r = 0; r < f->reads.n; r++) {
		unsigned fit = (unsigned)GROUP_BITS / dtype_info[expr_get(g, f->reads.at[r].read)->dtype].bits;
		if (f->along_terms && f->reads.at[r].how == EARLY_GROUP && fit > most)
			most = fit < STRIPS_MOST_TERMS ? fit : STRIPS_MOST_TERMS;
	}
	return most;
}

bool
strip_factor_has_nibbles(const Graph *g, const StripFactor *f)
{
	for (unsigned r = 0; r < f->reads.n && f->along_terms; r++)
		if (f->reads.at[r].how == EARLY_GROUP && dtype_info[expr_get(g, f->reads.at[r].read)->dtype].bits == 4)
			return true;
	return false;
}

/* f, or what it widens to f32 from type t. */
static ExprId
before_widening(const Graph *g, ExprId f, DType t)
{
	const Expr *p = expr_get(g, f);
	bool widens = p->op == OP_CAST && p->dtype == DT_F32 && expr_get(g, expr_arg(g, f, 0))->dtype == t;
	return widens ? expr_arg(g, f, 0) : f;
}

void
strip_factor_declare(Strips *s, StripFactor *f)
{
	Graph *g = s->l.g;
	ExprId rounded = before_widening(g, f->value, f->dtype);
	const Expr value = *expr_get(g, rounded);
	if (value.dtype != f->dtype)
		rounded = expr_cast(g, f->dtype, rounded);
	else if (value.op == OP_CAST) /* one that rounds, if it is free */
		rounded = expr_cast(g, f->dtype, expr_arg(g, rounded, 0));
	f->made = early_reads_replace(g, s->l.scratch, rounded, &f->reads);
	point_declare(&s->l, f->made);
}

/* --- places --- */

void
strip_factor_enter(Strips *s, StripFactor *f, ValId first, ExprId count)
{
	ValId all = point_launch_expr(&s->l, count), eight = strips_int(s, STRIPS_ROWS);
	ValId last = strips_op(s, OP_SUB, all, f->along_terms ? strips_int(s, 1) : eight);
	ValId own = strips_op(s, OP_ADD, first, f->along_terms ? (f == &s->side[0] ? s->long_row : s->lane_row) : strips_op(s, OP_MUL, s->lane_row, eight));
	ValId group = strips_op(s, OP_MIN, own, last);
	for (unsigned r = 0; r < f->rows; r++)
		f->own[r] = f->along_terms ? strips_op(s, OP_MIN, strips_op(s, OP_ADD, own, strips_int(s, 8 * r)), last)
		                           : strips_op(s, OP_ADD, group, strips_int(s, r));
}

static void
enter_element(Strips *s, const StripFactor *f, unsigned row, ValId from, unsigned term)
{
	s->l.axis[f->own_axis] = f->own[row];
	s->l.axis[s->term_axis] = strips_op(s, OP_ADD, from, strips_int(s, term));
}

/* --- reads --- */

/* From element (row, term) on, n elements along the group's axis. */
static void
read_along(Strips *s, StripFactor *f, unsigned r, unsigned row, ValId from, unsigned term, unsigned n)
{
	Point *l = &s->l;
	unsigned axis = f->along_terms ? s->term_axis : f->own_axis;
	ValId one[STRIPS_MOST_TERMS], all = 0;
	enter_element(s, f, row, from, term);
	if (s->ring) {
		all = strips_ring_elements(s, f, row, term, n);
		for (unsigned k = 0; k < n; k++)
			one[k] = tir_emit(l->tir, OP_LANE, tir_scalar((DType)expr_get(l->g, f->reads.at[r].read)->dtype), k, &all, 1);
	} else
		all = early_group(l, f->reads.at[r].read, n, axis, one);
	if (f->once && tir_inst(l->tir, all)->op == OP_LOAD)
		l->tir->inst.at[all].imm.i |= TIR_STREAM;
	for (unsigned k = 0; k < n; k++)
		f->raw[r][f->along_terms ? row * s->terms + term + k : (row + k) * s->terms + term] = one[k];
}

void
strip_factor_take(Strips *s, StripFactor *f, ValId from, ValId once[][STRIPS_ROWS][STRIPS_MOST_GROUPS], unsigned group)
{
	for (unsigned r = 0; r < f->reads.n; r++)
		for (unsigned row = 0; row < f->rows; row++) {
			if (f->reads.at[r].how == EARLY_GROUP)
				read_along(s, f, r, row, from, 0, s->terms);
			for (unsigned k = 0; f->reads.at[r].how != EARLY_GROUP && k < s->terms; k++)
				f->raw[r][row * s->terms + k] = once[r][row][group];
		}
}

/* Group n: a row's terms, or a term's rows. */
static void
read_group(Strips *s, StripFactor *f, unsigned r, unsigned n, ValId from)
{
	Point *l = &s->l;
	const EarlyRead *read = &f->reads.at[r];
	unsigned size = f->along_terms ? s->terms : f->rows, fit = (unsigned)GROUP_BITS / dtype_info[expr_get(l->g, read->read)->dtype].bits;
	unsigned step = read->how == EARLY_GROUP ? (fit < size ? fit : size) : 1;
	for (unsigned k = 0; k < size; k += step) {
		unsigned row = f->along_terms ? n : k, term = f->along_terms ? k : n, at = row * s->terms + term;
		if (read->how == EARLY_GROUP) {
			read_along(s, f, r, row, from, term, step);
			continue;
		}
		if (read->how == EARLY_ONCE && k) {
			f->raw[r][at] = f->raw[r][f->along_terms ? row * s->terms : term];
			continue;
		}
		enter_element(s, f, row, from, term);
		f->raw[r][at] = early_value(l, read->read, true);
	}
}

void
strip_factor_read(Strips *s, StripFactor *f, ValId term)
{
	for (unsigned r = 0; r < f->reads.n; r++)
		for (unsigned n = 0; n < (f->along_terms ? f->rows : s->terms); n++)
			read_group(s, f, r, n, term);
}

void
strip_factor_read_word(Strips *s, StripFactor *f, unsigned n, ValId term)
{
	for (unsigned row = 0; row < f->rows; row++)
		read_along(s, f, 0, row, term, 8 * n, 8);
}

ValId
strip_factor_element(Strips *s, StripFactor *f, unsigned row, unsigned term, ValId from, ValId there)
{
	Point *l = &s->l;
	enter_element(s, f, row, from, term);
	for (unsigned r = 0; r < f->reads.n; r++)
		point_place(l, early_stand_in(l->g, &f->reads, r), f->raw[r][row * s->terms + term]);
	ValId v = early_value(l, f->made, true);
	if (!there || BUG(strip_tail_taken))
		return v;
	return tir_select(l->tir, there, v, tir_float(l->tir, f->dtype, 0));
}
