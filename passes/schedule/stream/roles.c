/* roles.c: the STREAM template for a GPU with wgmma: one score and at most one wide accumulator, of products of two
 * bf16 or f16 factors, by a block whose groups fold while one thread loads, or a warp (ir/channel.h).
 *
 * A task is 64 rows of each group, of which there are two or, where columns are few and rows many, three; where rows are so few that
 * two would leave one without any, as those of a model that is asked for its next token, it is one, and a processor has two such
 * blocks: one begins while the other ends (an H200, 64 sequences of 8192 elements, 32 heads on 8, us: 515 for 520; of one such
 * sequence, in parts, 17.1 for 19.5; of eight 69.5 for 73.0). Their queries stay in shared memory; keys and values come through a ring each, a tile of elements at a time, the last ones first. A group multiplies
 * queries by keys, folds the scores, which it has in registers, into the state of its rows (slots.h), and keeps the weights there
 * for the product with the values, which adds to columns that stay in registers as well. That product goes on while the group
 * folds the next tile, whose scores were asked for just before it (FlashAttention-3, Shah et al. 2024); and while one group
 * folds, another one's do.
 *
 * Scores that are divided by what a launch knows are multiplied by its reciprocal, which moves a factor of the rows and takes a
 * rounding more, of u S where S is the sum of the magnitudes; of a second divisor, as before a soft cap, another one. Of n >=
 * LEAST_TERMS terms, contract/roles.c's bound for the instructions leaves n/2 - 5/2 (n/16 + 1) of the n u S that a sum may be
 * off by: 3 u S. Powers of what a score is off its extreme by (powers.c), where they are taken of sums, of whatever scale, take one
 * rounding more of the score, and two of the extreme.
 *
 * Of more terms than queries can stay for, where there are no columns, queries come piece by piece as keys do
 * (roles_pieces.c); groups then take no turns.
 *
 * Where elements are beyond the end, or absent for a row, their weight is 0; what a copy takes beyond a tensor is 0. Tiles
 * whose elements all rows have need no mask. The copies want rows that begin at multiples of 16 bytes; a launch takes
 * another kernel for any others, and for more columns, or terms with columns, than a tile has. */
#include "passes/schedule/stream/roles.h"

#include "ir/bugs.h"
#include "passes/schedule/contract/raster.h"

enum { QUERIES, KEYS, VALUES, SCORES = 0, COLUMNS = 1, SLOTS = 2, REGISTERS = 240, REST = 24, LEAST_TERMS = 16 };
enum { RESIDENT_TERMS = 256, MOST_TERMS = 1 << 20, MORE_REGISTERS = 232, MORE_REST = 40 }; /* the one that loads: of pieces or parts, that computes_to_load, or asks ahead */
enum { ASKED_COLUMNS = 256 }; /* whether anchors moved is asked of so many */
enum { LATE_ELEMENTS = 4 }; /* of a row, whose powers wait: what a thread has of the terms of one instruction */
enum { AHEAD_COLUMNS = 128 }; /* of more, or of three groups, what the next task has is not asked ahead: there are no registers for it */
enum { THREE_REGISTERS = 160, THREE_REST = 32 }; /* of three groups */
enum { ONE_REGISTERS = 216, ONE_REST = 40, ONE_RESIDENT = 2 }; /* of one group, of which a processor has two blocks */

/* Tiles in the order in which they are asked for. Without columns: of more terms than queries can stay for. */
static const struct {
	uint16_t terms, columns, elements, groups;
	bool long_sums;
} tile[STREAM_ROLES_TILES] = {
	{64, 64, 128, 1, false}, /* where no task has more rows than a group */
	{128, 128, 64, 1, false},
	{SR_PARTS_TERMS, SR_PARTS_COLUMNS, 64, 1, false},
	{64, 64, 128, 3, false}, /* where rows fill tasks of three */
	{64, 64, 128, 2, false},
	{128, 128, 128, 2, false},
	{SR_PARTS_TERMS, SR_PARTS_COLUMNS, 64, 2, false},
	{RESIDENT_TERMS, 256, 64, 2, false},
	{TIR_PART_TERMS, 0, 192, 2, true}, /* where the whole sums are long (long_terms.c) */
	{TIR_PART_TERMS, 0, 192, 2, false},
};

/* --- whether --- */

static bool
is_pieces(unsigned k)
{
	return tile[k].columns == 0;
}

static int64_t
least_terms(const Stream *s)
{
	return s->score[0].divisor || s->score[0].scale ? LEAST_TERMS : 1;
}

/* Whether the score is its sum, or that times or over what a launch knows. */
static bool
is_scaled_sum(const Graph *g, Arena *scratch, const StreamScore *s)
{
	const Expr *p = expr_get(g, s->node.finish);
	if (!s->node.finish || p->op == OP_ACC)
		return true;
	bool first = expr_get(g, expr_arg(g, s->node.finish, 0))->op == OP_ACC;
	return (p->op == OP_FDIV || p->op == OP_MUL) && first && !expr_axes(g, scratch, expr_arg(g, s->node.finish, 1));
}

/* Parts are of few rows. A thread of three groups has registers for elements that begin at a place that all rows know, without
 * a condition, and scores that little is done to. */
static bool
may_be_of_three(const Graph *g, Arena *scratch, const Stream *s)
{
	return !stream_is_parts(g, s) && expr_get(g, s->lo)->op == OP_CONST && !s->rest && is_scaled_sum(g, scratch, &s->score[0]);
}

unsigned
stream_roles_take(const Graph *g, Arena *scratch, const Stream *s, const bool *stored, const PassOptions *o, KernelPlan *plan)
{
	StreamElement of[NOF];
	unsigned n = 0;
	if (!o->roles || !o->blocks || g->fp == FP_STRICT || !stream_find_elements(g, scratch, s, of))
		return 0;
	ExprId terms = s->score[0].node.axis[s->score[0].node.npar].hi, columns = s->wide < 0 ? 0 : s->c.extent[s->wide];
	bool beside = sr_find_beside(g, scratch, s, &of[OF_BESIDE]) != 0;
	for (unsigned k = 0; k < STREAM_ROLES_TILES; k++) {
		int64_t least = is_pieces(k) ? RESIDENT_TERMS + 1 : least_terms(s), most = is_pieces(k) ? MOST_TERMS : tile[k].terms;
		if (!stream_may_be_in(g, terms, least, most) || (columns && !stream_may_be_in(g, columns, 1, tile[k].columns)))
			continue;
		if (tile[k].columns > SR_PARTS_COLUMNS && stream_is_parts(g, s))
			continue;
		if (tile[k].groups > SR_GROUPS && !may_be_of_three(g, scratch, s))
			continue;
		if (is_pieces(k) && (columns || (tile[k].long_sums && !stream_long_sums_gain(g, s))))
			continue;
		uint16_t rows = (uint16_t)(tile[k].groups * TIR_MMA_ROWS);
		plan[n++] = (KernelPlan){.tmpl = TMPL_STREAM, .unroll = 1, .threads = (uint16_t)((tile[k].groups + 1) * TIR_GROUP),
		                         .group = stored && columns && slots_side_by_side(g, s, stored) ? SLOTS_SIDE : 1,
		                         .resident = tile[k].groups == 1 ? ONE_RESIDENT : 1, .long_sums = tile[k].long_sums, .tile_rows = rows, .tile_columns = tile[k].terms, .block_rows = rows,
		                         .block_columns = tile[k].columns, .block_terms = tile[k].elements, .block_tasks = 1};
		if (beside && !is_pieces(k)) {
			plan[n] = plan[n - 1];
			plan[n++ - 1].beside = true;
		}
		if (!tile[k].long_sums && tile[k].groups == SR_GROUPS && expr_get(g, terms)->op == OP_CONST && (!columns || expr_get(g, columns)->op == OP_CONST))
			break;
	}
	return n;
}

/* --- factors --- */

/* The tensor's axes in the order of the view: those of a task, then the two of a box, the last one last. */
static void
axes_in_order(const StreamElement *e, unsigned *order)
{
	unsigned n = 0, other = e->turned ? e->term : e->own;
	for (unsigned a = 0; a + 1 < e->rank; a++)
		if (a != other)
			order[n++] = a;
	order[n++] = other;
	order[n] = e->rank - 1;
}

/* Terms of scores as far as they are read: what a copy takes beyond is 0. */
void
sr_bind_view(StreamRoles *x, unsigned which)
{
	Point *l = &x->s.b.l;
	const StreamElement *e = &x->of[which];
	unsigned order[TG_MAX_RANK];
	ValId extent[TG_MAX_RANK], stride[TG_MAX_RANK];
	axes_in_order(e, order);
	for (unsigned n = 0; n < e->rank; n++) {
		bool terms = order[n] == e->term && which <= OF_KEY;
		extent[n] = terms ? point_launch_expr(l, x->s.b.terms[0]) : point_launch_expr(l, l->g->tensor.at[e->tensor].extent[order[n]]);
		stride[n] = point_tensor(l, e->tensor)->stride[order[n]];
	}
	ValId buffer = tir_arg(l->tir, point_tensor(l, e->tensor)->data, 0);
	x->view[which] = tir_view(l->tir, (unsigned)tir_inst(l->tir, buffer)->imm.i, e->rank, extent, stride);
}

void
sr_copy_part(StreamRoles *x, unsigned channel, unsigned part, unsigned which, ValId own0, ValId term, ValId fill)
{
	Point *l = &x->s.b.l;
	const StreamElement *e = &x->of[which];
	unsigned order[TG_MAX_RANK];
	ValId at[TG_MAX_RANK];
	uint32_t mark = point_mark(l);
	if (which != OF_QUERY)
		stream_at_group(&x->s.b);
	axes_in_order(e, order);
	for (unsigned n = 0; n < e->rank; n++)
		at[n] = order[n] == e->own ? own0 : order[n] == e->term ? term : point_value(l, e->sub[order[n]], true).re;
	tir_copy(l->tir, TIR_COPY(channel, part), x->view[which], fill, at);
	point_release(l, mark);
}

void
sr_acquire(StreamRoles *x, unsigned channel, ValId fill)
{
	tir_emit(x->s.b.l.tir, OP_ACQUIRE, (TirType){0}, channel, &fill, 1);
}

static void
wait(StreamRoles *x, unsigned channel, ValId fill)
{
	tir_emit(x->s.b.l.tir, OP_WAIT, (TirType){0}, channel, &fill, 1);
}

static void
release(StreamRoles *x, unsigned channel, ValId fill)
{
	TirKernel *k = x->s.b.l.tir;
	tir_emit(k, OP_RELEASE, (TirType){0}, channel, (ValId[]){fill, tir_int(k, DT_BOOL, 1)}, 2);
}

static void
settle(StreamRoles *x, unsigned most)
{
	tir_emit(x->s.b.l.tir, OP_SETTLE, (TirType){0}, most, NULL, 0);
}

static void
add_channels(StreamRoles *x)
{
	TirKernel *k = x->s.b.l.tir;
	DType t = x->of[OF_QUERY].dtype;
	if (x->pieces) {
		sr_add_piece_channel(x);
		return;
	}
	TirChannel c[3] = {{.slots = 1}, {.slots = SLOTS}, {.slots = SLOTS}};
	for (unsigned n = 0; n < x->terms; n += TIR_PART_TERMS) {
		c[QUERIES].part[c[QUERIES].nparts++] = (TirPart){.dtype = t, .rows = x->rows, .terms = TIR_PART_TERMS, .turned = x->of[OF_QUERY].turned};
		c[KEYS].part[c[KEYS].nparts++] = (TirPart){.dtype = t, .rows = (uint16_t)x->elements, .terms = TIR_PART_TERMS, .turned = x->of[OF_KEY].turned};
	}
	for (unsigned n = 0; n < x->elements && x->columns; n += TIR_PART_TERMS)
		c[VALUES].part[c[VALUES].nparts++] = (TirPart){.dtype = t, .rows = (uint16_t)x->columns, .terms = TIR_PART_TERMS, .turned = x->of[OF_VALUE].turned};
	for (unsigned n = 0; n < (x->columns ? 3u : 2u); n++)
		tir_add_channel(k, &c[n]);
}

/* --- the role that loads --- */

static void
load_queries(StreamRoles *x, ValId fill)
{
	sr_acquire(x, QUERIES, fill);
	for (unsigned n = 0; n * TIR_PART_TERMS < x->terms; n++)
		sr_copy_part(x, QUERIES, n, OF_QUERY, x->s.b.row0, sr_int(x, n * TIR_PART_TERMS), fill);
}

/* The keys of a tile, and its values. */
static void
load_tile(StreamRoles *x, ValId fill)
{
	ValId first = x->s.b.first;
	sr_acquire(x, KEYS, fill);
	for (unsigned n = 0; n * TIR_PART_TERMS < x->terms; n++)
		sr_copy_part(x, KEYS, n, OF_KEY, first, sr_int(x, n * TIR_PART_TERMS), fill);
	if (x->beside)
		sr_load_beside(x, fill);
	if (x->columns)
		sr_acquire(x, VALUES, fill);
	for (unsigned n = 0; x->columns && n * TIR_PART_TERMS < x->elements; n++)
		sr_copy_part(x, VALUES, n, OF_VALUE, sr_int(x, 0), sr_op(x, OP_ADD, first, sr_int(x, n * TIR_PART_TERMS)), fill);
}

/* The tile at b.first, from this fill on, which becomes the one behind it. */
static void
load_at(StreamRoles *x, ValId *fill)
{
	if (x->pieces) {
		sr_load_pieces(x, fill);
		return;
	}
	load_tile(x, *fill);
	*fill = sr_op(x, OP_ADD, *fill, sr_int(x, 1));
}

/* The task's tiles from one on to another, counted in elements from the last one back. */
static void
load_tiles(StreamRoles *x, ValId last, ValId from, ValId to, ValId *fill)
{
	TirKernel *k = x->s.b.l.tir;
	ValId back = tir_for(k, from, to, sr_int(x, x->elements), fill, 1);
	uint32_t mark = point_mark(&x->s.b.l);
	x->s.b.first = sr_op(x, OP_SUB, last, back);
	load_at(x, fill);
	point_release(&x->s.b.l, mark);
	tir_end_for(k, fill, 1);
}

/* What is asked of the next task waits until slots are full: others would lack a tile meanwhile. */
static void
load(StreamRoles *x)
{
	StreamBuild *b = &x->s.b;
	ValId fill[2]; /* of tiles; of queries, where they stay */
	unsigned nfill = x->pieces ? 1 : 2;
	uint32_t mark = point_mark(&b->l);
	sr_open_tasks(x, fill, nfill, false);
	if (!x->pieces)
		load_queries(x, fill[1]);
	ValId last = sr_last_tile(x), from = sr_int(x, 0), to = sr_op(x, OP_SUB, b->end, b->begin), full = sr_int(x, SLOTS * x->elements);
	if (x->ahead) {
		load_tiles(x, last, from, sr_op(x, OP_MIN, to, full), fill);
		sr_find_next(x);
		from = full;
	}
	load_tiles(x, last, from, to, fill);
	if (!x->pieces)
		fill[1] = sr_op(x, OP_ADD, fill[1], sr_int(x, 1));
	point_release(&b->l, mark);
	sr_close_tasks(x, fill, nfill);
}

/* --- a tile --- */

/* The piece of a row, of the two that a thread has, and an element or column, of a quarter of all. */
static unsigned
piece_of(unsigned row, unsigned i)
{
	return 4 * (i / 2) + 2 * row + i % 2;
}

static ValId
piece(StreamRoles *x, unsigned bank, unsigned k)
{
	return tir_emit(x->s.b.l.tir, OP_PIECE, tir_scalar(DT_F32), TIR_PIECE(k, bank), NULL, 0);
}

static ValId
sum_of(StreamSlots *s, unsigned score, unsigned row, unsigned element)
{
	StreamRoles *x = (StreamRoles *)(void *)s;
	(void)score;
	if (x->beside)
		sr_place_beside(x, piece_of(row, element));
	return piece(x, SCORES, piece_of(row, element));
}

static void
multiply_keys(StreamRoles *x, ValId queries, ValId keys)
{
	TirKernel *k = x->s.b.l.tir;
	int64_t imm = TIR_PRODUCT(QUERIES, 0, KEYS, 0, SCORES) | TIR_PRODUCT_TERMS(x->terms / TIR_PART_TERMS);
	tir_emit(k, OP_PRODUCT, (TirType){0}, imm, (ValId[]){queries, keys, tir_int(k, DT_BOOL, 0)}, 3);
}

static void
multiply_values(StreamRoles *x, ValId values)
{
	TirKernel *k = x->s.b.l.tir;
	int64_t imm = TIR_PRODUCT_KEPT(0, VALUES, 0, COLUMNS) | TIR_PRODUCT_TERMS(x->elements / TIR_PART_TERMS);
	tir_emit(k, OP_PRODUCT, (TirType){0}, imm, (ValId[]){values, values, tir_int(k, DT_BOOL, 1)}, 3);
}

enum { FOLDED = MAX_ACCS * STREAM_MAX_VECTORS + SLOTS_MAX + STREAM_MAX_VECTORS };

/* All that a tile changes but for the columns: the state, weights, and what columns are multiplied by. */
static unsigned
pack_folded(StreamRoles *x, ValId *v, bool back)
{
	StreamBuild *b = &x->s.b;
	unsigned n = slots_carry(&x->s, v, back), slots = b->vectors * x->s.nelement;
	for (unsigned i = 0; x->columns && i < slots + b->vectors; i++) {
		ValId *at = i < slots ? &x->s.weight[x->acc][i] : &x->s.factor[x->acc][i - slots];
		if (!*at)
			continue;
		if (back)
			*at = v[n];
		else
			v[n] = *at;
		n++;
	}
	return n;
}

static void
fold_as(StreamRoles *x, bool exact)
{
	uint32_t mark = point_mark(&x->s.b.l);
	x->s.exact = exact;
	slots_enter(&x->s, sr_op(x, OP_ADD, x->s.b.first, x->right));
	slots_fold(&x->s, sum_of);
	point_release(&x->s.b.l, mark);
}

/* The tile that is not the task's last one; begin and end: of the elements that all rows have; 0: not known. */
static void
fold_tile(StreamRoles *x, ValId begin, ValId end)
{
	StreamBuild *b = &x->s.b;
	TirKernel *k = b->l.tir;
	ValId v[FOLDED], before[FOLDED];
	if (!begin || !b->s->ragged) {
		fold_as(x, begin != 0);
		return;
	}
	slots_carry(&x->s, before, false);
	ValId after = sr_op(x, OP_ADD, b->first, sr_int(x, x->elements));
	tir_if(k, sr_op(x, OP_AND, sr_op(x, OP_LE, begin, b->first), sr_op(x, OP_LE, after, end)));
	fold_as(x, true);
	unsigned n = pack_folded(x, v, false);
	tir_else(k, v, n);
	slots_carry(&x->s, before, true);
	fold_as(x, false);
	pack_folded(x, v, false);
	tir_end_if(k, v, n);
	pack_folded(x, v, true);
}

/* Those of a row's elements from one on to another. */
static void
keep_weights(StreamRoles *x, unsigned from, unsigned to)
{
	StreamBuild *b = &x->s.b;
	const ValId *weight = x->s.weight[x->acc];
	for (unsigned row = 0; row < b->vectors; row++)
		for (unsigned e = from; e < to; e += 2)
			tir_emit(b->l.tir, OP_KEEP, (TirType){0}, TIR_KEEP(piece_of(row, e) / 2, x->of[OF_VALUE].dtype), weight + row * x->s.nelement + e, 2);
}

static void
keep_early(StreamRoles *x)
{
	keep_weights(x, 0, x->s.nelement - x->s.nlate);
}

static void
keep_late(StreamRoles *x)
{
	slots_late(&x->s);
	keep_weights(x, x->s.nelement - x->s.nlate, x->s.nelement);
}

static void
multiply_columns(StreamRoles *x)
{
	StreamBuild *b = &x->s.b;
	TirKernel *k = b->l.tir;
	for (unsigned row = 0; row < b->vectors; row++)
		for (unsigned c = 0; x->s.factor[x->acc][row] && c < x->columns / 4; c++) {
			ValId v = sr_op(x, OP_MUL, piece(x, COLUMNS, piece_of(row, c)), x->s.factor[x->acc][row]);
			tir_emit(k, OP_PUT, (TirType){0}, TIR_PIECE(piece_of(row, c), COLUMNS), &v, 1);
		}
}

/* Columns to the anchors as they are now; before the first product they are nothing. Where they are many, it is asked whether any of
 * the thread's anchors moved: on an H200, of 256 columns 5 to 8 % gain, with 4096 and 16384 elements; of 128 nothing, of 64 less. */
static void
move_columns(StreamRoles *x)
{
	TirKernel *k = x->s.b.l.tir;
	const ValId *factor = x->s.factor[x->acc];
	if (x->columns < ASKED_COLUMNS || !factor[0] || !factor[1]) {
		multiply_columns(x);
		return;
	}
	ValId one = tir_float(k, DT_F32, 1);
	tir_if(k, sr_op(x, OP_OR, sr_op(x, OP_NE, factor[0], one), sr_op(x, OP_NE, factor[1], one)));
	multiply_columns(x);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

/* Whose turn it is asks for products; so that one group folds while the other's go on. */
static void
turn(StreamRoles *x, bool gives)
{
	if (x->rows > TIR_MMA_ROWS)
		tir_emit(x->s.b.l.tir, OP_TURN, (TirType){0}, gives, NULL, 0);
}

/* Those are the oldest products; so many may go on. */
static void
take_scores(StreamRoles *x, ValId fill, unsigned others)
{
	if (x->beside)
		sr_take_beside(x, fill);
	settle(x, others);
	release(x, KEYS, fill);
}

static void
ask_columns(StreamRoles *x, ValId fill)
{
	wait(x, VALUES, fill);
	multiply_values(x, fill);
}

static void
take_columns(StreamRoles *x, ValId fill)
{
	settle(x, 0);
	release(x, VALUES, fill);
}

/* --- the groups that fold --- */

static void
start(StreamRoles *x)
{
	StreamBuild *b = &x->s.b;
	ValId zero = tir_float(b->l.tir, DT_F32, 0);
	for (unsigned k = 0; k < b->s->pass->nacc; k++)
		for (unsigned row = 0; row < b->vectors; row++)
			b->run[k][row] = stream_unit(b, k);
	for (unsigned k = 0; k < x->columns / 2; k++)
		tir_emit(b->l.tir, OP_PUT, (TirType){0}, TIR_PIECE(k, COLUMNS), &zero, 1);
}

enum { CARRIED = MAX_ACCS * STREAM_MAX_VECTORS + SLOTS_MAX + 1 + SR_MOST_OF_TASK };

/* What tiles go on with: the fill, behind the state. */
static unsigned
carry(StreamRoles *x, ValId *carried, ValId *fill, bool back)
{
	unsigned n = slots_carry(&x->s, carried, back);
	if (back)
		*fill = carried[n];
	else
		carried[n] = *fill;
	return n + 1;
}

/* Those, and what the next task is. */
static unsigned
carry_next(StreamRoles *x, ValId *carried, ValId *fill, bool back)
{
	unsigned n = carry(x, carried, fill, back);
	for (unsigned k = 0; k < x->nnext; k++, n++) {
		if (back)
			x->next[k] = carried[n];
		else
			carried[n] = x->next[k];
	}
	return n;
}

/* The same, and the weights that wait. */
static unsigned
carry_late(StreamRoles *x, ValId *carried, ValId *fill, bool back)
{
	unsigned n = carry(x, carried, fill, back);
	for (unsigned row = 0; row < x->s.b.vectors; row++)
		for (unsigned e = x->s.nelement - x->s.nlate; e < x->s.nelement; e++, n++) {
			ValId *weight = &x->s.weight[x->acc][row * x->s.nelement + e];
			if (back)
				*weight = carried[n];
			else
				carried[n] = *weight;
		}
	return n;
}

/* The scores of fill `next`, and the columns of the one before it. */
static void
ask_tile(StreamRoles *x, ValId queries, ValId fill, ValId next)
{
	wait(x, KEYS, next);
	turn(x, false);
	multiply_keys(x, queries, next);
	if (x->columns) {
		keep_late(x);
		ask_columns(x, fill);
	}
	turn(x, true);
	take_scores(x, next, x->columns ? 1 : 0);
}

/* From the tile behind the last one on, each with the columns of the one before it on their way. */
static void
fold_others(StreamRoles *x, ValId queries, ValId *fill, ValId last)
{
	StreamBuild *b = &x->s.b;
	TirKernel *k = b->l.tir;
	ValId carried[CARRIED], begin, end;
	unsigned n = carry_late(x, carried, fill, false);
	sr_core(x, &begin, &end);
	ValId back = tir_for(k, sr_int(x, x->elements), sr_op(x, OP_SUB, b->end, b->begin), sr_int(x, x->elements), carried, n);
	uint32_t mark = point_mark(&b->l);
	carry_late(x, carried, fill, true);
	ValId next = sr_op(x, OP_ADD, *fill, sr_int(x, 1));
	b->first = sr_op(x, OP_SUB, last, back);
	if (x->pieces) {
		sr_multiply_pieces(x, fill);
		next = *fill;
	} else
		ask_tile(x, queries, *fill, next);
	fold_tile(x, begin, end);
	if (x->columns) {
		take_columns(x, *fill);
		keep_early(x);
		move_columns(x);
	}
	carry_late(x, carried, &next, false);
	point_release(&b->l, mark);
	tir_end_for(k, carried, n);
	carry_late(x, carried, fill, true);
}

static void
fold_tiles(StreamRoles *x, ValId queries, ValId *fill)
{
	StreamBuild *b = &x->s.b;
	TirKernel *k = b->l.tir;
	ValId before[CARRIED], carried[CARRIED], last = sr_last_tile(x);
	carry(x, before, fill, false);
	tir_if(k, sr_op(x, OP_LT, b->begin, b->end));
	uint32_t mark = point_mark(&b->l);
	b->first = last;
	if (x->pieces)
		sr_multiply_pieces(x, fill);
	else {
		wait(x, KEYS, *fill);
		multiply_keys(x, queries, *fill);
		take_scores(x, *fill, 0);
	}
	fold_as(x, BUG(stream_edge_unmasked));
	if (x->columns)
		keep_early(x);
	fold_others(x, queries, fill, last);
	if (!x->pieces)
		release(x, QUERIES, queries);
	if (x->columns) {
		keep_late(x);
		ask_columns(x, *fill);
	}
	sr_find_next(x);
	if (x->columns)
		take_columns(x, *fill);
	if (!x->pieces)
		*fill = sr_op(x, OP_ADD, *fill, sr_int(x, 1));
	unsigned n = carry_next(x, carried, fill, false);
	point_release(&b->l, mark);
	tir_else(k, carried, n);
	if (!x->pieces)
		release(x, QUERIES, queries);
	sr_find_next(x);
	carry(x, before, fill, true);
	carry_next(x, before, fill, false);
	tir_end_if(k, before, n);
	carry_next(x, before, fill, true);
}

static ValId
column_sum(StreamQuads *q, unsigned nth, unsigned column)
{
	return tir_emit(q->s->b.l.tir, OP_PIECE, tir_scalar(DT_F32), TIR_PIECE(piece_of(nth, column), COLUMNS), NULL, 0);
}

static void
finish(StreamRoles *x)
{
	x->quads.lane = x->lane;
	x->quads.warp_row = sr_op(x, OP_ADD, sr_op(x, OP_MUL, x->group, sr_int(x, TIR_MMA_ROWS)), sr_op(x, OP_MUL, x->warp, sr_int(x, 16)));
	x->quads.row_last = x->row_last;
	quads_finish(&x->quads);
}

static void
bind_quads(StreamRoles *x)
{
	x->quads = (StreamQuads){.s = &x->s, .rows = x->rows, .columns = x->columns, .acc = x->acc, .side = x->s.b.plan->group,
	                         .barrier = TIR_GROUP_BARRIER, .sum = column_sum};
	quads_bind_shared(&x->quads);
}

static void
fold(StreamRoles *x)
{
	StreamBuild *b = &x->s.b;
	ValId fill[2]; /* as load's */
	unsigned nfill = x->pieces ? 1 : 2;
	uint32_t mark = point_mark(&b->l);
	slots_scales(&x->s);
	sr_open_tasks(x, fill, nfill, true);
	sr_place_once(x);
	start(x);
	if (!x->pieces)
		wait(x, QUERIES, fill[1]);
	fold_tiles(x, x->pieces ? 0 : fill[1], fill);
	if (!x->pieces)
		fill[1] = sr_op(x, OP_ADD, fill[1], sr_int(x, 1));
	slots_lower(&x->s);
	slots_join(&x->s);
	stream_find_some(b);
	finish(x);
	point_release(&b->l, mark);
	sr_close_tasks(x, fill, nfill);
}

/* --- the kernel --- */

static void
place_thread(StreamRoles *x)
{
	TirKernel *k = x->s.b.l.tir;
	x->thread = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0);
	x->group = raster_divide(k, x->thread, sr_int(x, TIR_GROUP), &x->in_group);
	x->warp = raster_divide(k, x->in_group, sr_int(x, TIR_WARP), &x->lane);
	raster_divide(k, x->lane, sr_int(x, 4), &x->right);
	x->right = sr_op(x, OP_MUL, x->right, sr_int(x, 2));
}

/* Whether the role that loads has a quotient to compute for a task, as of heads that share others' keys: for which REST registers are
 * too few beside the place and end of a range. */
static bool
computes_to_load(const StreamRoles *x)
{
	bool computed = false;
	for (unsigned which = OF_KEY; which <= (x->columns ? OF_VALUE : OF_KEY); which++)
		for (unsigned n = 0; n < x->of[which].rank; n++)
			computed |= expr_get(x->s.b.l.g, x->of[which].sub[n])->op == OP_IDIV;
	return computed;
}

static uint64_t
roles_of(const StreamRoles *x)
{
	if (x->rows > SR_ROWS)
		return TIR_ROLES(x->rows / TIR_MMA_ROWS, THREE_REGISTERS, THREE_REST);
	if (x->rows < SR_ROWS)
		return TIR_ROLES(1, ONE_REGISTERS, ONE_REST);
	if (x->pieces || x->ahead || stream_is_parts(x->s.b.l.g, x->s.b.s) || computes_to_load(x))
		return TIR_ROLES(SR_GROUPS, MORE_REGISTERS, MORE_REST);
	return TIR_ROLES(SR_GROUPS, REGISTERS, REST);
}

void
stream_roles_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel)
{
	StreamRoles *x = ARENA_NEW(scratch, StreamRoles);
	StreamBuild *b = &x->s.b;
	TirKernel *k = kernel->tir;
	const KernelPlan *p = &kernel->plan;
	Stream *s = stream_begin(b, g, scratch, places, kernel);
	if (!stream_find_elements(g, scratch, b->s, x->of))
		bug(g->arena, "%%%u is no stream for roles", p->node[0]);
	b->vectors = 2;
	b->l.short_axes = 1u << b->s->lane | 1u << b->s->stream; /* as copies count them */
	b->from_zero = true;
	x->rows = p->tile_rows;
	x->terms = p->tile_columns;
	x->columns = b->s->wide < 0 ? 0 : p->block_columns;
	x->elements = p->block_terms;
	x->pieces = p->block_columns == 0;
	x->acc = x->columns ? (unsigned)stream_wide_acc(b->s) : 0;
	x->s.nelement = x->elements / 4;
	for (unsigned e = 0; e < x->s.nelement; e++)
		x->s.offset[e] = 8 * (e / 2) + e % 2;
	x->s.reciprocal = true;
	x->s.least = x->pieces ? RESIDENT_TERMS + 1 : least_terms(b->s);
	x->s.most = x->pieces ? MOST_TERMS : x->terms;
	x->s.across = 3;
	x->asks = slots_ask_all(b);
	x->ahead = x->asks && x->columns <= AHEAD_COLUMNS && x->rows <= SR_ROWS;
	if (x->columns)
		s->acc[x->acc].weight = stream_unrounded(g, s->acc[x->acc].weight, s->factors);
	b->beyond = x->columns && !stream_ends_with_tile(g, s, g->tensor.at[x->of[OF_VALUE].tensor].extent[x->of[OF_VALUE].term], x->elements);
	slots_begin(&x->s, s);
	if (x->columns)
		slots_delay(&x->s, LATE_ELEMENTS);
	stream_bind_sizes(b);
	ExprId beside = sr_find_beside(g, scratch, s, &x->of[OF_BESIDE]);
	sr_name_apart(x, s);
	sr_bind_tasks(x);
	stream_bind_launch(b);
	sr_count_tasks(x, kernel);
	add_channels(x);
	for (unsigned n = 0; n < (x->columns ? 3u : 2u); n++)
		sr_bind_view(x, n);
	place_thread(x);
	point_say_same_memory(&b->l);
	bind_quads(x);
	if (p->beside)
		sr_add_beside(x, s, beside);
	sr_name_once(x, s);
	uint64_t roles = roles_of(x) | TIR_ROLES_ANEW | (x->asks ? TIR_ROLES_WARP : 0);
	tir_open_roles(k, x->pieces || x->rows == TIR_MMA_ROWS ? roles : roles | TIR_ROLES_ORDER);
	fold(x);
	tir_other_role(k);
	load(x);
	tir_end_roles(k);
}
