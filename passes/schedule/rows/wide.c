/* wide.c: folds along columns whose rows lie in memory one after the other, on a processor: COLRED kernels that
 * are one phase with one loop (rows.h).
 *
 * The vectors side by side whose folds registers hold are a few hundred bytes of a row, and the next row is far away:
 * so short pieces get half of what memory gives. So a call takes all columns that are its own together, at most
 * WIDE_COLUMNS, and goes through TURNS rows of them at a time, vectors by vectors; what is folded so far is kept in memory
 * of the call's own. An element has the terms, and their order, that it has without.
 *
 * Long pieces of rows are seen by the processor, for short ones the next rows are fetched. Of few rows, or columns no more
 * than registers have folds for, a group of vectors goes down all rows at once. */
#include "passes/schedule/rows/build.h"

#include "passes/expr_map.h"

enum {
	WIDE_COLUMNS = 8192, /* whose folds a second cache holds: a multiple of all vectors side by side */
	SEEN_COLUMNS = 2048,
	TURNS = 8,
	FEW_ROWS = 2 * TURNS
};

static bool
is_wide(const RowBuild *b)
{
	const Rows *r = b->r;
	const RowPhase *p = &r->phase[0];
	if (r->tmpl != TMPL_COLRED || !r->lanes_by_row || b->copies < POINT_MAX_COPIES || b->kernel->plan.threads || r->scans || r->nphase != 1 || p->nloop != 1 ||
	    p->nown || p->dir < 0)
		return false;
	for (unsigned k = 0; k < r->nmember; k++) {
		const RowMember *m = &r->member[k];
		const Axis *a = &m->node.axis[m->node.npar];
		if (m->is_row || m->side || m->node.nred != 1 || a->clamp || a->cut || !expr_is_index(b->l->g, b->l->scratch, a->lo) ||
		    !expr_is_index(b->l->g, b->l->scratch, a->hi))
			return false;
	}
	return true;
}

/* Memory for a value of each column at work. */
static ValId
columns_of(RowBuild *b, TensorId t, DType type)
{
	Point *l = b->l;
	ValId extent = rows_int(b, WIDE_COLUMNS), one = rows_int(b, 1);
	unsigned buffer = tir_add_buffer(l->tir, l->g->tensor.at[t].name, type, true);
	vec_push(l->g->arena, &b->kernel->buffer,
	         ((BufferBind){.kind = BIND_SCRATCH, .tensor = t, .elements = expr_int(l->g, DT_I64, WIDE_COLUMNS)}));
	return tir_view(l->tir, buffer, 1, &extent, &one);
}

void
rows_declare_wide(RowBuild *b)
{
	ValId carried[REDUCTION_MAX_CARRIED];
	unsigned all = 0;
	if (!is_wide(b))
		return;
	b->ncopy = 1;
	rows_begin_folds(b, 0);
	for (unsigned k = 0; k < b->r->nmember; k++)
		all += reduction_pack(&b->fold[k][0], carried);
	if (all > ROWS_MAX_WIDE)
		return;
	for (unsigned k = 0; k < b->r->nmember; k++) {
		unsigned n = reduction_pack(&b->fold[k][0], carried);
		for (unsigned v = 0; v < n; v++)
			b->wide[b->nwide++] = columns_of(b, b->r->member[k].t, (DType)tir_inst(b->l->tir, carried[v])->type.dtype);
	}
}

/* Column `base` of all copies' folds: from memory, or to it. */
static void
move_folds(RowBuild *b, ValId first, ValId base, bool load)
{
	TirKernel *t = b->l->tir;
	unsigned view = 0;
	for (unsigned k = 0; k < b->r->nmember; k++) {
		unsigned n = 0;
		for (unsigned c = 0; c < b->copies; c++) {
			ValId value[REDUCTION_MAX_CARRIED];
			ValId at = tir_binary(t, OP_ADD, tir_binary(t, OP_SUB, base, first), rows_int(b, (int64_t)(c * b->l->lanes)));
			n = reduction_pack(&b->fold[k][c], value);
			for (unsigned v = 0; v < n; v++)
				if (load)
					value[v] = tir_load(t, b->wide[view + v], &at, 0, TIR_LANES_ALONG(0), b->l->lanes);
				else
					tir_store(t, b->wide[view + v], value[v], &at, 0, TIR_LANES_ALONG(0));
			reduction_unpack(&b->fold[k][c], value);
		}
		view += n;
	}
}

typedef struct {
	ValId first, end;  /* columns, whole groups of vectors */
	ValId lo, hi;      /* rows */
	ValId turns;
} Piece;

static ValId
open_columns(RowBuild *b, const Piece *p)
{
	b->base = tir_for(b->l->tir, p->first, p->end, rows_int(b, (int64_t)(b->copies * b->l->lanes)), NULL, 0);
	return b->base;
}

static void
run_turns(RowBuild *b, const Piece *p)
{
	TirKernel *t = b->l->tir;
	ValId row = tir_for(t, p->lo, p->hi, p->turns, NULL, 0), end = tir_binary(t, OP_MIN, tir_binary(t, OP_ADD, row, p->turns), p->hi);
	ValId base = open_columns(b, p);
	uint32_t mark = point_mark(b->l);
	move_folds(b, p->first, base, true);
	const ValId range[4] = {row, end, p->lo, p->hi};
	rows_fold_turns(b, 0, range);
	move_folds(b, p->first, base, false);
	point_release(b->l, mark);
	tir_end_for(t, NULL, 0);
	tir_end_for(t, NULL, 0);
}

static void
run_piece(RowBuild *b, const Piece *p)
{
	TirKernel *t = b->l->tir;
	ValId columns = tir_binary(t, OP_SUB, p->end, p->first);
	b->ncopy = b->copies;
	b->rows_ahead = tir_select(t, tir_binary(t, OP_LE, columns, rows_int(b, SEEN_COLUMNS)), p->turns, rows_int(b, 0));
	ValId base = open_columns(b, p);
	rows_begin_folds(b, 0);
	move_folds(b, p->first, base, false);
	tir_end_for(t, NULL, 0);
	run_turns(b, p);
	base = open_columns(b, p);
	uint32_t mark = point_mark(b->l);
	move_folds(b, p->first, base, true);
	rows_finish_folds(b, 0, p->lo, p->hi);
	point_release(b->l, mark);
	tir_end_for(t, NULL, 0);
	b->rows_ahead = 0;
}

/* One row after the other, of a group of vectors. */
static void
run_down(RowBuild *b, const Piece *p)
{
	open_columns(b, p);
	uint32_t mark = point_mark(b->l);
	rows_run_phases(b, b->copies);
	point_release(b->l, mark);
	tir_end_for(b->l->tir, NULL, 0);
}

void
rows_run_wide(RowBuild *b, ValId begin, ValId end)
{
	TirKernel *t = b->l->tir;
	ValId size = rows_int(b, WIDE_COLUMNS), group = rows_int(b, (int64_t)(b->copies * b->l->lanes));
	Piece p = {.turns = rows_int(b, TURNS)};
	b->ncopy = b->copies;
	b->base = begin;
	rows_loop_ends(b, 0, &p.lo, &p.hi);
	ValId few = tir_binary(t, OP_LE, tir_binary(t, OP_SUB, p.hi, p.lo), rows_int(b, FEW_ROWS));
	uint32_t mark = point_mark(b->l);
	tir_if(t, tir_binary(t, OP_OR, few, tir_binary(t, OP_LE, tir_binary(t, OP_SUB, end, begin), group)));
	p.first = begin;
	p.end = end;
	run_down(b, &p);
	point_release(b->l, mark);
	tir_else(t, NULL, 0);
	p.first = tir_for(t, begin, end, size, NULL, 0);
	p.end = tir_binary(t, OP_MIN, tir_binary(t, OP_ADD, p.first, size), end);
	run_piece(b, &p);
	point_release(b->l, mark);
	tir_end_for(t, NULL, 0);
	tir_end_if(t, NULL, 0);
}
