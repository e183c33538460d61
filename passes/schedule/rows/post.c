/* post.c: a scan of long rows, whose tasks are vectors of a row (KernelPlan.posts), so that a row has as many
 * blocks as there are.
 *
 * A task folds its vector, posts that, and waits for what the vectors before it in its row have. Vectors are in groups of
 * P - 1, which have P places, no more than a block has threads: the first is for what all groups before have, which the
 * last task of the one before posts, the next ones for the vectors' own folds. A task joins the places of its group before
 * its own, a thread a place. So the folds that are joined, and how, follow from the sizes alone, whichever task is the first to be done; and
 * a row's tasks wait for one another in a chain of groups, not of vectors.
 *
 * A place has a word for each 32 bits that the fold carries, with a bit above them that says that it is there: no word waits
 * for another one. A value of f64 is one word by itself, of which those of NO_VALUE, a NaN that is posted as another one, are turned
 * over: so it is not 0. */
#include "passes/schedule/rows/build.h"

#include "ir/bugs.h"

enum {
	GROUP_PLACES = 128, /* fewer are a longer chain, more are looked for longer */
	WORD_BITS = 32,
	MOST_WORDS = 2 * REDUCTION_MAX_CARRIED
};
static const int64_t NO_VALUE = INT64_C(0x7ff8746578746f21), NAN_VALUE = INT64_C(0x7ff8) << 48;

/* --- words --- */

static DType
type_of(const RowBuild *b, ValId v)
{
	return (DType)tir_inst(b->l->tir, v)->type.dtype;
}

static unsigned
words_of(const RowBuild *b, ValId v)
{
	return dtype_info[type_of(b, v)].bits > WORD_BITS && type_of(b, v) != DT_F64 ? 2 : 1;
}

static ValId
turned_over(RowBuild *b, ValId word)
{
	return tir_binary(b->l->tir, OP_BXOR, word, tir_int(b->l->tir, DT_U64, NO_VALUE));
}

static ValId
word_of_float(RowBuild *b, ValId v)
{
	TirKernel *k = b->l->tir;
	ValId bits = tir_bitcast(k, DT_U64, v), none = tir_binary(k, OP_EQ, bits, tir_int(k, DT_U64, NO_VALUE));
	return turned_over(b, tir_select(k, none, tir_int(k, DT_U64, NAN_VALUE), bits));
}

/* What f carries, as words; how many. */
static unsigned
to_words(RowBuild *b, const Reduction *f, ValId *word)
{
	TirKernel *k = b->l->tir;
	ValId all[REDUCTION_MAX_CARRIED], there = tir_int(k, DT_U64, INT64_C(1) << WORD_BITS);
	unsigned n = 0, carried = reduction_pack(f, all);
	for (unsigned c = 0; c < carried; c++) {
		unsigned words = words_of(b, all[c]);
		if (type_of(b, all[c]) == DT_F64) {
			word[n++] = word_of_float(b, all[c]);
			continue;
		}
		bool bits = type_of(b, all[c]) != DT_BOOL;
		ValId whole = words > 1 ? tir_bitcast(k, DT_U64, all[c]) : bits ? tir_bitcast(k, DT_U32, all[c]) : tir_cast(k, DT_U32, all[c]);
		for (unsigned w = 0; w < words; w++) {
			ValId half = w ? tir_binary(k, OP_SHR, whole, tir_int(k, DT_U64, WORD_BITS)) : tir_cast(k, DT_U32, whole);
			word[n++] = tir_binary(k, OP_BOR, tir_cast(k, DT_U64, half), there);
		}
	}
	return n;
}

/* The other way, of vectors of words; `like` has the types. */
static Reduction
from_words(RowBuild *b, const Reduction *like, const ValId *word)
{
	TirKernel *k = b->l->tir;
	Reduction f = *like;
	ValId all[REDUCTION_MAX_CARRIED];
	unsigned carried = reduction_pack(like, all);
	for (unsigned c = 0; c < carried; c++) {
		DType t = type_of(b, all[c]);
		bool whole = words_of(b, all[c]) > 1;
		if (t == DT_F64) {
			all[c] = tir_bitcast(k, t, turned_over(b, *word++));
			continue;
		}
		ValId low = tir_cast(k, DT_U32, *word++);
		if (whole) {
			ValId high = tir_binary(k, OP_SHL, *word++, tir_int(k, DT_U64, WORD_BITS));
			all[c] = tir_bitcast(k, t, tir_binary(k, OP_BOR, high, tir_cast(k, DT_U64, low)));
		} else {
			all[c] = t == DT_BOOL ? tir_cast(k, t, low) : tir_bitcast(k, t, low);
		}
	}
	reduction_unpack(&f, all);
	return f;
}

/* --- places --- */

/* Those of a group. */
static int64_t
group_places(const RowBuild *b)
{
	return b->kernel->plan.threads < GROUP_PLACES ? b->kernel->plan.threads : GROUP_PLACES;
}

/* The vectors of a row. */
static ExprId
vectors(const RowBuild *b)
{
	for (unsigned k = 0; k < b->r->nloop; k++)
		if (b->r->loop[k].lanes)
			return launch_ceil_div(b->l->g, b->r->loop[k].hi, b->kernel->plan.lanes);
	bug(b->l->g->arena, "rows: a scan without lanes");
}

ExprId
rows_posted_tasks(const RowBuild *b, ExprId rows)
{
	return expr_binary(b->l->g, OP_MUL, rows, vectors(b));
}

/* A row's places: the last vector of its last group may post for one more. */
static ExprId
places(const RowBuild *b)
{
	Graph *g = b->l->g;
	int64_t group = group_places(b);
	ExprId groups = expr_binary(g, OP_IDIV, vectors(b), expr_int(g, DT_I64, group - 1));
	groups = expr_binary(g, OP_ADD, groups, expr_int(g, DT_I64, 1));
	return expr_binary(g, OP_MUL, groups, expr_int(g, DT_I64, group));
}

void
rows_declare_posts(RowBuild *b, ExprId rows, ExprId ntask)
{
	Point *l = b->l;
	Graph *g = l->g;
	ExprId zero = expr_int(g, DT_I64, 0), all = expr_binary(g, OP_MUL, rows, places(b));
	all = expr_select(g, expr_binary(g, OP_LE, expr_int(g, DT_I64, 1), ntask), all, zero);
	point_launch_expr(l, vectors(b));
	point_launch_expr(l, places(b));
	for (unsigned k = 0; k < b->r->nmember; k++) {
		RowMember *m = &b->r->member[k];
		if (!m->scans)
			continue;
		ValId word[MOST_WORDS];
		Reduction f = rows_begin_fold(b, m);
		unsigned n = to_words(b, &f, word), buffer = tir_add_buffer(l->tir, g->tensor.at[m->t].name, DT_U64, true);
		ExprId elements = expr_binary(g, OP_MUL, all, expr_int(g, DT_I64, n));
		l->tir->buffer.at[buffer].posted = true;
		vec_push(g->arena, &l->kernel->buffer, ((BufferBind){.kind = BIND_CLEARED, .tensor = m->t, .elements = elements}));
		const ValId extent[2] = {rows_int(b, n), point_launch_expr(l, all)}, stride[2] = {extent[1], rows_int(b, 1)};
		b->post[k] = tir_view(l->tir, buffer, 2, extent, stride);
	}
}

ValId
rows_enter_vector(RowBuild *b, ValId task)
{
	Point *l = b->l;
	ValId n = point_launch_expr(l, vectors(b));
	b->vector = b->r->nrow ? tir_binary(l->tir, OP_IMOD, task, n) : task;
	return b->row = b->r->nrow ? tir_binary(l->tir, OP_IDIV, task, n) : rows_int(b, 0);
}

ValId
rows_before_lanes(const RowBuild *b)
{
	return b->kernel->plan.posts ? tir_binary(b->l->tir, OP_MUL, b->vector, rows_int(b, b->l->lanes)) : rows_int(b, 0);
}

/* --- a task --- */

static void
post(RowBuild *b, ValId view, const Reduction *f, ValId place, ValId mask)
{
	ValId word[MOST_WORDS];
	unsigned n = to_words(b, f, word);
	for (unsigned w = 0; w < n; w++) {
		const ValId index[2] = {rows_int(b, w), place};
		tir_store(b->l->tir, view, word[w], index, mask, 0);
	}
}

/* Those of a group, from its first on, where mask holds, a lane each; what has none is the unit's. */
static Reduction
take_places(RowBuild *b, ValId view, const Reduction *unit, ValId first, ValId mask)
{
	TirKernel *k = b->l->tir;
	ValId word[MOST_WORDS], had[REDUCTION_MAX_CARRIED], none[REDUCTION_MAX_CARRIED];
	unsigned n = to_words(b, unit, word);
	for (unsigned w = 0; w < n; w++) {
		const ValId index[2] = {rows_int(b, w), first};
		word[w] = tir_load(k, view, index, mask, TIR_LANES_ALONG(1), k->threads);
	}
	Reduction f = from_words(b, unit, word);
	reduction_pack(unit, none);
	n = reduction_pack(&f, had);
	for (unsigned c = 0; c < n; c++)
		had[c] = tir_select(k, mask, had[c], none[c]);
	reduction_unpack(&f, had);
	return f;
}

/* The group's first place, in all threads. One thread waits for it: all of them would keep memory from what they wait for. */
static Reduction
take_first(RowBuild *b, ValId view, const Reduction *unit, ValId group, ValId first, ValId iota)
{
	TirKernel *k = b->l->tir;
	ValId zero = rows_int(b, 0), there = tir_binary(k, OP_AND, tir_binary(k, OP_EQ, iota, zero), tir_binary(k, OP_LT, zero, group));
	Reduction f = take_places(b, view, unit, first, there);
	return reduction_lane(b->l, &f, 0);
}

/* What comes before the at'th vector of a group: its first place, but for the first group, and those of the vectors before. Joins of
 * steps take long: the others are joined while the first place, which they all wait for as well, is waited for. */
static Reduction
join_places(RowBuild *b, ValId view, const Reduction *unit, ValId group, ValId first, ValId at)
{
	Point *l = b->l;
	TirKernel *k = l->tir;
	ValId zero = rows_int(b, 0), one = rows_int(b, 1), iota = tir_emit(k, OP_IOTA, tir_vector(DT_I64, k->threads), 0, NULL, 0);
	ValId from = unit->factor ? one : tir_select(k, tir_binary(k, OP_EQ, group, zero), one, zero);
	ValId there = tir_binary(k, OP_AND, tir_binary(k, OP_LE, from, iota), tir_binary(k, OP_LE, iota, at));
	Reduction f = take_places(b, view, unit, first, there);
	if (!unit->factor) {
		reduction_join_lanes(l, &f, k->threads);
		return f;
	}
	reduction_join_in_order(l, &f, unit, (unsigned)group_places(b));
	Reduction before = take_first(b, view, unit, group, first, iota);
	reduction_merge(l, &f, &before);
	return f;
}

Reduction
rows_before_vector(RowBuild *b, const RowMember *m, const Reduction *unit, const Reduction *own)
{
	Point *l = b->l;
	TirKernel *k = l->tir;
	int64_t most = group_places(b);
	ValId view = b->post[m - b->r->member], all_places = rows_int(b, most), each = rows_int(b, most - 1);
	ValId group = tir_binary(k, OP_IDIV, b->vector, each), at = tir_binary(k, OP_IMOD, b->vector, each);
	ValId first = tir_binary(k, OP_MUL, b->row, point_launch_expr(l, places(b)));
	first = tir_binary(k, OP_ADD, first, tir_binary(k, OP_MUL, group, all_places));
	post(b, view, own, tir_binary(k, OP_ADD, first, tir_binary(k, OP_ADD, at, rows_int(b, 1))), 0);
	Reduction before = join_places(b, view, unit, group, first, at), all = *own;
	reduction_merge(l, &all, BUG(group_posts_own) ? unit : &before);
	post(b, view, &all, tir_binary(k, OP_ADD, first, all_places), tir_binary(k, OP_EQ, at, rows_int(b, most - 2)));
	return before;
}
