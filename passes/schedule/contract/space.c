/* space.c: how the index spaces of a contraction are cut, and the memory of its stages.
 *
 * What follows from sizes alone (how many pieces, blocks, tasks) is launch expressions, so that
 * scratch memory and tasks are known before the kernel runs; the kernel gets them as scalars.
 *
 * Blocks are balanced: block b of n has the pieces from b * pieces div n to (b + 1) * pieces div n. */
#include "passes/schedule/contract/contract.h"

/* Packed columns that are kept from task to task: this many elements at most, 16 MB of f32. */
enum { KEPT_ELEMENTS = 4 << 20, LEAST_COLUMN_PIECES = 4, NEAR_COLUMN_PIECES = 8 };
/* So many elements, 256 MB of f32, are packed ahead at most; of so few rows one task has all. */
enum { AHEAD_ELEMENTS = 64 << 20, NEAR_ROW_PIECES = 6 };

static ExprId
number(Graph *g, int64_t v)
{
	return expr_int(g, DT_I64, v);
}

ExprId
launch_ceil_div(Graph *g, ExprId a, int64_t b)
{
	return expr_binary(g, OP_IDIV, expr_binary(g, OP_ADD, a, number(g, b - 1)), number(g, b));
}

static ExprId
product(Graph *g, const ExprId *e, unsigned n)
{
	ExprId p = number(g, 1);
	for (unsigned k = 0; k < n; k++)
		p = k ? expr_binary(g, OP_MUL, p, e[k]) : e[k];
	return p;
}

/* --- spaces --- */

/* Indices that are cut into pieces, and into how many. */
static void
count_inner(Graph *g, const Space *s, ExprId *inner, ExprId *per)
{
	*inner = s->flat || s->naxis == 0 ? contract_space_size(g, s) : s->count[s->naxis - 1];
	*per = launch_ceil_div(g, *inner, s->width);
}

ExprId
contract_space_size(Graph *g, const Space *s)
{
	return product(g, s->count, s->naxis);
}

static void
count_pieces(Graph *g, Space *s)
{
	ExprId inner, per;
	count_inner(g, s, &inner, &per);
	s->npiece = s->flat || s->naxis < 2 ? per : expr_binary(g, OP_MUL, product(g, s->count, s->naxis - 1), per);
}

static bool
is_zero(const Graph *g, ExprId e)
{
	return expr_get(g, e)->op == OP_CONST && expr_get(g, e)->imm.i == 0;
}

static void
add_axis(Contract *c, Space *s, unsigned a)
{
	Graph *g = c->l.g;
	const Node *n = c->l.node;
	ExprId count;
	if (a < n->npar) {
		count = g->tensor.at[n->out].extent[a];
	} else {
		const ExprId lo = n->axis[a].lo, hi = n->axis[a].hi;
		count = is_zero(g, lo) ? hi : expr_binary(g, OP_SUB, hi, lo);
		count = expr_binary(g, OP_MAX, count, number(g, 0));
	}
	s->axis[s->naxis] = (uint8_t)a;
	s->count[s->naxis++] = count;
}

static void
count_spaces(Contract *c)
{
	Graph *g = c->l.g;
	const Node *n = c->l.node;
	const Factors *f = &c->factors;
	c->batch = (Space){.width = 1, .flat = true};
	c->rows = (Space){.width = c->plan->tile_rows, .flat = f->rows_along_terms};
	c->columns = (Space){.width = c->plan->tile_columns};
	c->terms = (Space){.width = contract_term_width(c->plan)};
	for (unsigned a = 0; a < n->npar; a++) {
		bool row = f->row_axes >> a & 1, column = f->column_axes >> a & 1;
		add_axis(c, row == column ? &c->batch : row ? &c->rows : &c->columns, a);
	}
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++)
		add_axis(c, &c->terms, a);
	count_pieces(g, &c->batch);
	count_pieces(g, &c->rows);
	count_pieces(g, &c->columns);
	count_pieces(g, &c->terms);
}

static void
bind_space(Contract *c, Space *s)
{
	ExprId inner, per;
	count_inner(c->l.g, s, &inner, &per);
	for (unsigned k = 0; k < s->naxis; k++)
		s->extent[k] = point_launch_expr(&c->l, s->count[k]);
	s->inner = point_launch_expr(&c->l, inner);
	s->per = point_launch_expr(&c->l, per);
	s->pieces = point_launch_expr(&c->l, s->npiece);
}

void
contract_bind_spaces(Contract *c)
{
	const Node *n = c->l.node;
	for (unsigned k = 0; k < c->terms.naxis; k++) {
		ExprId lo = n->axis[c->terms.axis[k]].lo;
		c->terms.from[k] = is_zero(c->l.g, lo) ? 0 : point_launch_expr(&c->l, lo);
	}
	bind_space(c, &c->batch);
	bind_space(c, &c->rows);
	bind_space(c, &c->columns);
	bind_space(c, &c->terms);
}

/* Sets axes[0..n) of a space from the number of a point among them. */
static void
decode(Point *l, const Space *s, unsigned n, ValId i)
{
	for (unsigned k = n; k-- > 0;) {
		ValId at = k ? tir_binary(l->tir, OP_IMOD, i, s->extent[k]) : i;
		if (k)
			i = tir_binary(l->tir, OP_IDIV, i, s->extent[k]);
		l->axis[s->axis[k]] = s->from[k] ? tir_binary(l->tir, OP_ADD, s->from[k], at) : at;
	}
}

ValId
space_enter(Point *l, const Space *s, ValId piece)
{
	if (!s->flat && s->naxis > 1) {
		decode(l, s, s->naxis - 1, tir_binary(l->tir, OP_IDIV, piece, s->per));
		piece = tir_binary(l->tir, OP_IMOD, piece, s->per);
	}
	return tir_binary(l->tir, OP_MUL, piece, tir_int(l->tir, DT_I64, s->width));
}

void
space_at(Point *l, const Space *s, ValId i)
{
	if (s->flat) {
		decode(l, s, s->naxis, i);
		return;
	}
	unsigned k = s->naxis - 1;
	l->axis[s->axis[k]] = s->from[k] ? tir_binary(l->tir, OP_ADD, s->from[k], i) : i;
}

/* --- blocks --- */

/* a div b + 1: at most so many pieces has one of b blocks of a. */
static ExprId
share(Graph *g, ExprId a, ExprId b)
{
	return expr_binary(g, OP_ADD, expr_binary(g, OP_IDIV, a, b), number(g, 1));
}

/* 1 where a >= b, else 0 */
static ExprId
reaches(Graph *g, ExprId a, int64_t b)
{
	return expr_binary(g, OP_MIN, expr_binary(g, OP_IDIV, a, number(g, b)), number(g, 1));
}

static ExprId
complement(Graph *g, ExprId e)
{
	return expr_binary(g, OP_SUB, number(g, 1), e);
}

/* 1 where all columns are packed ahead, for all tasks: there are several with the same ones, and room. Of several
 * batches, a thread packs what it needs and has it near; of none there is nothing to pack. */
static ExprId
packs_ahead(Contract *c, ExprId several)
{
	Graph *g = c->l.g;
	const KernelPlan *p = c->plan;
	int64_t room = AHEAD_ELEMENTS / (int64_t)(contract_term_width(p) * p->tile_columns);
	ExprId pieces = expr_binary(g, OP_MUL, c->columns.npiece, c->terms.npiece);
	ExprId ahead = expr_binary(g, OP_MUL, several, complement(g, reaches(g, pieces, room + 1)));
	ExprId batches = c->batch.npiece;
	ExprId one = expr_binary(g, OP_SUB, reaches(g, batches, 1), reaches(g, batches, 2));
	return c->batch.naxis ? expr_binary(g, OP_MUL, ahead, one) : ahead;
}

/* The formulas are kept short: each launch evaluates them. */
static void
count_blocks(Contract *c)
{
	Graph *g = c->l.g;
	const KernelPlan *p = c->plan;
	ExprId rows = c->rows.npiece, columns = c->columns.npiece, terms = c->terms.npiece, one = number(g, 1);
	c->row_pieces = expr_binary(g, OP_MIN, rows, number(g, p->block_tasks));
	/* a piece of rows is a task, unless there are so few that it pays to pack columns near by for all of them */
	ExprId apart = expr_binary(g, OP_MAX, reaches(g, rows, NEAR_ROW_PIECES + 1),
	                           complement(g, reaches(g, columns, NEAR_COLUMN_PIECES + 1)));
	c->nrow_task = expr_binary(g, OP_MAX, expr_binary(g, OP_MUL, rows, apart), expr_binary(g, OP_MIN, rows, one));
	ExprId several = reaches(g, c->nrow_task, 2);
	c->ahead = packs_ahead(c, several);
	c->nterm_block = expr_binary(g, OP_MAX, launch_ceil_div(g, terms, p->block_terms / contract_term_width(p)), one);
	c->term_pieces = share(g, terms, c->nterm_block);
	/* no more columns than can be kept, if that are not too few */
	int64_t kept = KEPT_ELEMENTS / (int64_t)(contract_term_width(p) * p->tile_columns);
	ExprId few = launch_ceil_div(g, columns, p->block_columns / p->tile_columns);
	if (p->pairs && !p->chained) /* of one block, tasks would be so few that calls end with single pieces of rows */
		few = expr_binary(g, OP_MAX, few, expr_binary(g, OP_ADD, one, reaches(g, columns, p->block_columns / p->tile_columns / 2 + 1)));
	ExprId deep = expr_binary(g, OP_MUL, launch_ceil_div(g, expr_binary(g, OP_MUL, columns, terms), kept),
	                          complement(g, c->ahead));
	/* where one task has all rows, columns are packed for it alone, so only as many as stay in a near cache */
	ExprId near = expr_binary(g, OP_MUL, launch_ceil_div(g, columns, NEAR_COLUMN_PIECES), complement(g, several));
	deep = expr_binary(g, OP_MAX, deep, near);
	c->ncolumn_block = expr_binary(g, OP_MIN, expr_binary(g, OP_MAX, few, deep),
	                               launch_ceil_div(g, columns, LEAST_COLUMN_PIECES));
	c->column_pieces = share(g, columns, expr_binary(g, OP_MAX, c->ncolumn_block, one));
	c->kept_pieces = expr_binary(g, OP_MAX, c->column_pieces, expr_binary(g, OP_MUL, c->ahead, columns));
	ExprId size = expr_binary(g, OP_ADD, expr_binary(g, OP_MUL, c->column_pieces, terms), one);
	ExprId fits = expr_binary(g, OP_MIN, expr_binary(g, OP_IDIV, number(g, 2 * kept), size), one);
	ExprId more = expr_binary(g, OP_SUB, c->nterm_block, one);
	fits = expr_binary(g, OP_MAX, expr_binary(g, OP_MUL, fits, several), c->ahead);
	c->nslot = expr_binary(g, OP_ADD, expr_binary(g, OP_MUL, fits, more), one);
	ExprId strips = launch_ceil_div(g, columns, CONTRACT_AHEAD_PIECES);
	c->nahead = expr_binary(g, OP_MUL, c->ahead, expr_binary(g, OP_MUL, strips, c->nterm_block));
	c->ntask = expr_binary(g, OP_MUL, expr_binary(g, OP_MUL, c->batch.npiece, c->ncolumn_block), c->nrow_task);
}

void
contract_count(Contract *c)
{
	count_spaces(c);
	count_blocks(c);
}

void
contract_bind_blocks(Contract *c)
{
	/* so that every region sees them */
	const ExprId all[] = {c->nrow_task, c->ncolumn_block, c->nterm_block, c->row_pieces, c->column_pieces,
	                      c->term_pieces, c->nslot, c->ahead, c->nahead, c->kept_pieces};
	for (unsigned k = 0; k < sizeof all / sizeof *all; k++)
		point_launch_expr(&c->l, all[k]);
	c->shares = tir_binary(c->l.tir, OP_LT, contract_int(c, 0), point_launch_expr(&c->l, c->ahead));
}

/* --- scratch memory --- */

static ValId
scratch_view(Contract *c, BindKind kind, DType dtype, unsigned rank, const ExprId *extent, const ValId *stride)
{
	Point *l = &c->l;
	ValId size[TIR_MAX_RANK];
	BufferBind bind = {.kind = kind, .elements = product(l->g, extent, rank)};
	unsigned k = tir_add_buffer(l->tir, 0, dtype, true);
	vec_push(l->g->arena, &l->kernel->buffer, bind);
	for (unsigned a = 0; a < rank; a++)
		size[a] = point_launch_expr(l, extent[a]);
	return tir_view(l->tir, k, rank, size, stride);
}

/* Row-major strides; the innermost two may change places. */
static void
strides(Contract *c, unsigned rank, const ExprId *extent, bool swap, ValId *stride)
{
	Point *l = &c->l;
	ValId step = contract_int(c, 1);
	for (unsigned k = rank; k-- > 0;) {
		unsigned a = swap && k + 2 >= rank ? 2 * rank - 3 - k : k;
		const Expr *e = expr_get(l->g, extent[a]);
		const TirInst *s = tir_inst(l->tir, step);
		stride[a] = step;
		if (e->op == OP_CONST && s->op == OP_CONST)
			step = contract_int(c, s->imm.i * e->imm.i);
		else
			step = tir_binary(l->tir, OP_MUL, step, point_launch_expr(l, extent[a]));
	}
}

/* (piece, group, row, pair), (slot, piece, group, pair, column), and the least of each piece */
static void
bind_pairs(Contract *c)
{
	Graph *g = c->l.g;
	const KernelPlan *p = c->plan;
	ExprId rows = number(g, p->tile_rows), columns = number(g, p->tile_columns), pairs = number(g, p->pairs);
	ValId stride[TIR_MAX_RANK];
	ExprId a[4] = {c->row_pieces, c->term_pieces, rows, pairs};
	strides(c, 4, a, false, stride);
	c->row_pairs = scratch_view(c, BIND_SCRATCH, DT_U32, 4, a, stride);
	strides(c, 1, a, false, stride);
	c->row_least = scratch_view(c, BIND_SCRATCH, DT_U32, 1, a, stride);
	ExprId b[5] = {c->nslot, c->kept_pieces, c->term_pieces, pairs, columns};
	strides(c, 5, b, false, stride);
	c->column_pairs = scratch_view(c, BIND_SHARED, DT_U32, 5, b, stride);
	strides(c, 2, b, false, stride);
	c->column_least = scratch_view(c, BIND_SHARED, DT_U32, 2, b, stride);
}

/* (piece, piece of terms, row, term) */
static void
bind_rows(Contract *c)
{
	Graph *g = c->l.g;
	ValId stride[TIR_MAX_RANK];
	ExprId a[4] = {c->row_pieces, c->term_pieces, number(g, c->plan->tile_rows), number(g, c->plan->lanes)};
	strides(c, 4, a, !c->factors.rows_along_terms, stride);
	c->packed_rows = scratch_view(c, BIND_SCRATCH, c->fold.type, 4, a, stride);
}

static void
bind_columns(Contract *c)
{
	Graph *g = c->l.g;
	const KernelPlan *p = c->plan;
	ExprId columns = number(g, p->tile_columns), lanes = number(g, p->lanes);
	ValId stride[TIR_MAX_RANK];
	/* (block of terms that is kept, piece, piece of terms, term, column) */
	ExprId b[5] = {c->nslot, c->kept_pieces, c->term_pieces, lanes, columns};
	strides(c, 5, b, false, stride);
	c->packed_columns = scratch_view(c, BIND_SHARED, c->fold.type, 5, b, stride);
	ExprId s[2] = {lanes, lanes};
	strides(c, 2, s, false, stride);
	if (c->factors.columns_along_terms)
		c->square = scratch_view(c, BIND_SCRATCH, c->fold.type, 2, s, stride);
}

void
contract_bind_scratch(Contract *c)
{
	Graph *g = c->l.g;
	const KernelPlan *p = c->plan;
	ExprId one = number(g, 1), rows = number(g, p->tile_rows), columns = number(g, p->tile_columns);
	ValId stride[TIR_MAX_RANK];
	if (p->pairs)
		bind_pairs(c);
	else
		bind_columns(c);
	if (!p->pairs || contract_reads_columns(c))
		bind_rows(c);
	/* (tile, row, column) */
	ExprId t[3] = {expr_binary(g, OP_MUL, c->row_pieces, c->column_pieces), rows, columns};
	strides(c, 3, t, false, stride);
	c->tiles = scratch_view(c, BIND_SCRATCH, c->fold.type, 3, t, stride);
	ExprId w[1] = {one};
	stride[0] = contract_int(c, 1);
	c->word = scratch_view(c, BIND_SCRATCH, DT_I64, 1, w, stride);
}
