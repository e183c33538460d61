/* scatter_list.c: what a block does about a scatter's terms, most of which go elsewhere: its threads ask some terms each
 * at once, and those that may be the task's make a list in shared memory. What the list has is taken when it may not
 * hold what comes next.
 *
 * Where nothing stands in the way, the list is put in order of the elements that terms go to, and of those that go to
 * one, in their own, and each element's terms are taken as a run, with the accumulator in registers. So an element
 * is read and written once a list; and an accumulator of another type than the output's needs no plane, if one list
 * holds all of the task's terms. Such a list is made in any order: neighbouring threads ask neighbouring terms,
 * and each thread's stay together. Else it has the terms' own.
 *
 * TOGETHER terms are taken at a time: what they read, and the elements that runs among them begin with, is asked for
 * before anything of it is waited for, since a block has no others to do meanwhile. */
#include "passes/schedule/index/scatter.h"
#include "passes/schedule/schedule.h"

#include "ir/bugs.h"

enum {
	ASKED = 8,    /* terms that a thread asks at once, */
	SPARE = 2,    /* and for so many more of each a list has room */
	TOGETHER = 3, /* of a list */
	NO_KEY = -1,
	FAR = 1 << 30
};

TermList
scatter_list_size(unsigned threads)
{
	return (TermList){.asked = threads * ASKED, .room = threads * (ASKED + SPARE)};
}

/* Whether the end of an element is no more than a rounding to the output's type. */
static bool
only_rounds(const Graph *g, const Node *n)
{
	const Expr *p = expr_get(g, n->finish);
	return !n->finish || (p->op == OP_CAST && expr_get(g, expr_arg(g, n->finish, 0))->op == OP_ACC);
}

/* An element's number has 32 bits: with groups a launch has seen to it, else the kernel must be able to do without. */
bool
scatter_has_runs(const Scatter *s)
{
	const Node *n = s->l->node;
	const Graph *g = s->l->g;
	return s->list.asked && (!s->direct || s->l->tir->group > 1) && !s->touched && !s->words && s->type != DT_C64 && !point_tensor(s->l, s->t)->fault &&
	       only_rounds(g, n) && expr_is_true(g, n->guard) && expr_is_true(g, n->domain);
}

static ValId
shared_view(Scatter *s, const char *name, unsigned elements)
{
	TirKernel *k = s->l->tir;
	unsigned buffer = tir_add_buffer(k, name_cstr(k->names, name), DT_I32, true);
	ValId extent = scatter_int(s, elements), one = scatter_int(s, 1);
	k->buffer.at[buffer].shared = elements;
	return tir_view(k, buffer, 1, &extent, &one);
}

void
scatter_open_list(Scatter *s)
{
	TermList *list = &s->list;
	list->term = shared_view(s, "term", list->room);
	if (!s->runs)
		return;
	list->key = shared_view(s, "key", list->room);
	list->by_key = shared_view(s, "by_key", list->room + TOGETHER);
	list->key_of = shared_view(s, "key_of", list->room + TOGETHER);
}

/* --- a list --- */

/* The number of the element that a term goes to, among those of the aimed axes. */
static ValId
key_of_target(Scatter *s)
{
	TirKernel *k = s->l->tir;
	const TensorArg *arg = point_tensor(s->l, s->t);
	ValId key = scatter_int(s, 0);
	for (unsigned a = 0; a < s->l->node->npar; a++)
		if (s->task->axes.own[a] == INDEX_AIMED)
			key = tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, key, arg->extent[a]), s->to[a]);
	return tir_cast(k, DT_I32, key);
}

/* The terms that a vector of a block asks, from `base` on, as numbers from `origin` on. */
static ValId
numbers_from(Scatter *s, ValId iota, ValId base, ValId origin)
{
	TirKernel *k = s->l->tir;
	return tir_binary(k, OP_ADD, iota, tir_cast(k, DT_I32, tir_binary(k, OP_SUB, base, origin)));
}

/* Puts the terms of [from, hi) that may be wanted, of the next so many, into the list after the n that it has, in their
 * order; how many it then has. */
static ValId
list_in_order(Scatter *s, unsigned axis, ValId from, ValId hi, ValId origin, ValId n)
{
	Point *l = s->l;
	TirKernel *k = l->tir;
	unsigned asked = s->list.asked;
	point_set_lanes(l, asked, axis);
	ValId iota = tir_emit(k, OP_IOTA, tir_vector(DT_I32, asked), 0, NULL, 0);
	ValId left = tir_binary(k, OP_MIN, tir_binary(k, OP_SUB, hi, from), scatter_int(s, asked));
	l->axis[axis] = from;
	l->mask = tir_binary(k, OP_LT, iota, tir_cast(k, DT_I32, left));
	ValId wanted = scatter_may_take(s);
	wanted = wanted ? tir_binary(k, OP_AND, point_widen(l, wanted), l->mask) : l->mask;
	Reduction count = reduction_of(l, MON_SUM, DT_I32), unit = count, carry = count;
	count.re = tir_cast(k, DT_I32, wanted);
	carry.re = n;
	reduction_prefix_block(l, &count, &unit, &carry, false);
	ValId at = tir_cast(k, DT_I64, tir_binary(k, OP_SUB, count.re, tir_int(k, DT_I32, 1)));
	tir_store(k, s->list.term, numbers_from(s, iota, from, origin), &at, wanted, 0);
	return carry.re;
}

typedef struct {
	ValId term[ASKED], key[ASKED], wanted[ASKED]; /* of each vector of terms; wanted: of i32 */
	ValId count, word;                            /* of each thread: how many, and what its subscripts met */
} Asked;

/* Where the vector of terms from `base` on goes. */
static void
ask_terms(Scatter *s, unsigned axis, ValId base, ValId hi, ValId origin, unsigned n, Asked *to)
{
	Point *l = s->l;
	TirKernel *k = l->tir;
	uint32_t mark = point_mark(l);
	PointVal words = {0};
	ValId iota = tir_emit(k, OP_IOTA, tir_vector(DT_I32, l->lanes), 0, NULL, 0), none = tir_int(k, DT_U32, 0);
	ValId left = tir_binary(k, OP_MIN, tir_binary(k, OP_SUB, hi, base), scatter_int(s, l->lanes));
	l->axis[axis] = base;
	l->mask = tir_binary(k, OP_LT, iota, tir_cast(k, DT_I32, left));
	ValId wanted = scatter_aim(s, &words), word = point_pack(l, words);
	wanted = wanted ? tir_binary(k, OP_AND, point_widen(l, wanted), l->mask) : l->mask;
	to->term[n] = numbers_from(s, iota, base, origin);
	to->key[n] = point_widen(l, key_of_target(s));
	to->wanted[n] = wanted;
	wanted = tir_cast(k, DT_I32, wanted);
	to->count = to->count ? tir_binary(k, OP_ADD, to->count, wanted) : wanted;
	if (word)
		to->word = point_word(l, to->word, tir_select(k, l->mask, word, none));
	point_release(l, mark);
}

/* The same in any order, with the terms' elements. */
static ValId
list_with_keys(Scatter *s, unsigned axis, ValId from, ValId hi, ValId origin, ValId n)
{
	Point *l = s->l;
	TirKernel *k = l->tir;
	unsigned threads = k->threads;
	Asked asked = {0};
	point_set_lanes(l, threads, axis);
	for (unsigned a = 0; a < ASKED; a++)
		ask_terms(s, axis, a ? tir_binary(k, OP_ADD, from, scatter_int(s, (int64_t)a * threads)) : from, hi, origin, a, &asked);
	l->mask = 0;
	if (asked.word)
		tir_fault(k, asked.word);
	Reduction count = reduction_of(l, MON_SUM, DT_I32), unit = count, carry = count;
	count.re = asked.count;
	carry.re = n;
	reduction_prefix_block(l, &count, &unit, &carry, false);
	ValId at = tir_binary(k, OP_SUB, count.re, asked.count);
	for (unsigned a = 0; a < ASKED; a++) {
		ValId place = tir_cast(k, DT_I64, at);
		tir_store(k, s->list.term, asked.term[a], &place, asked.wanted[a], 0);
		tir_store(k, s->list.key, asked.key[a], &place, asked.wanted[a], 0);
		at = tir_binary(k, OP_ADD, at, tir_cast(k, DT_I32, asked.wanted[a]));
	}
	return carry.re;
}

static ValId
list_terms(Scatter *s, unsigned axis, ValId from, ValId hi, ValId origin, ValId n)
{
	Point *l = s->l;
	unsigned lanes = l->lanes;
	uint32_t axes = l->lane_axes, mark = point_mark(l);
	n = (s->runs ? list_with_keys : list_in_order)(s, axis, from, hi, origin, n);
	l->mask = 0;
	l->axis[axis] = 0;
	point_release(l, mark);
	point_set_lane_axes(l, lanes, axes);
	return n;
}

/* Whether a list of n terms may not hold what is asked next. */
static ValId
is_full(const Scatter *s, ValId n)
{
	return tir_binary(s->l->tir, OP_LT, tir_int(s->l->tir, DT_I32, s->list.room - s->list.asked), n);
}

static void
take_one_by_one(Scatter *s, unsigned axis, ValId origin, ValId n)
{
	Point *l = s->l;
	TirKernel *k = l->tir;
	uint32_t mark = point_mark(l);
	ValId end = tir_cast(k, DT_I64, n), at = tir_for(k, scatter_int(s, 0), end, scatter_int(s, 1), NULL, 0);
	if (BUG(scatter_reversed))
		at = tir_binary(k, OP_SUB, end, tir_binary(k, OP_ADD, at, scatter_int(s, 1)));
	ValId term = tir_load(k, s->list.term, &at, 0, 0, 0);
	l->axis[axis] = tir_binary(k, OP_ADD, origin, tir_cast(k, DT_I64, term));
	scatter_term(s);
	point_release(l, mark);
	tir_end_for(k, NULL, 0);
}

void
scatter_take_lists(Scatter *s, unsigned axis, ValId lo, ValId hi)
{
	TirKernel *k = s->l->tir;
	ValId held[2] = {tir_int(k, DT_I32, 0), lo}; /* terms, and where they count from */
	ValId from = tir_for(k, lo, hi, scatter_int(s, s->list.asked), held, 2), origin = held[1];
	ValId next = tir_binary(k, OP_ADD, from, scatter_int(s, s->list.asked));
	ValId n = list_terms(s, axis, from, hi, origin, held[0]);
	ValId full = tir_binary(k, OP_OR, is_full(s, n), tir_binary(k, OP_LE, hi, next));
	full = tir_binary(k, OP_OR, full, tir_binary(k, OP_LE, scatter_int(s, FAR), tir_binary(k, OP_SUB, next, origin)));
	tir_if(k, full);
	(s->runs ? scatter_take_runs : take_one_by_one)(s, axis, origin, n);
	ValId empty[2] = {tir_int(k, DT_I32, 0), next}, kept[2] = {n, origin};
	tir_else(k, empty, 2);
	tir_end_if(k, kept, 2);
	tir_end_for(k, kept, 2);
}

ValId
scatter_list_all(Scatter *s, unsigned axis, ValId lo, ValId hi, ValId *fits)
{
	TirKernel *k = s->l->tir;
	ValId near = tir_binary(k, OP_LT, tir_binary(k, OP_SUB, hi, lo), scatter_int(s, FAR)), elements = scatter_int(s, 1);
	for (unsigned a = 0; a < s->l->node->npar; a++)
		if (s->task->axes.own[a] == INDEX_AIMED)
			elements = tir_binary(k, OP_MUL, elements, point_tensor(s->l, s->t)->extent[a]);
	near = tir_binary(k, OP_AND, near, tir_binary(k, OP_LE, elements, scatter_int(s, INT32_MAX)));
	ValId held[2] = {tir_int(k, DT_I32, 0), near};
	ValId from = tir_for(k, lo, hi, scatter_int(s, s->list.asked), held, 2);
	ValId going = tir_binary(k, OP_AND, held[1], tir_unary(k, OP_NOT, is_full(s, held[0])));
	tir_if(k, going);
	ValId n = list_terms(s, axis, from, hi, lo, held[0]), before = held[0];
	tir_else(k, &n, 1);
	tir_end_if(k, &before, 1);
	ValId kept[2] = {before, going};
	tir_end_for(k, kept, 2);
	*fits = BUG(list_of_some) ? tir_int(k, DT_BOOL, 1) : kept[1];
	return kept[0];
}

/* --- runs --- */

/* Puts the list in order: a term comes after those of lower elements, and after earlier ones of its own. Behind it are
 * the first terms of all, of no element. */
static void
order_list(Scatter *s, ValId n)
{
	TirKernel *k = s->l->tir;
	unsigned lanes = k->threads;
	ValId zero = scatter_int(s, 0), one = scatter_int(s, 1), none = tir_int(k, DT_I32, 0);
	ValId base = tir_for(k, zero, n, scatter_int(s, lanes), NULL, 0);
	ValId iota = tir_emit(k, OP_IOTA, tir_vector(DT_I64, lanes), 0, NULL, 0), at = tir_binary(k, OP_ADD, base, iota);
	ValId there = tir_binary(k, OP_LT, at, n);
	ValId key = tir_load(k, s->list.key, &base, there, TIR_LANES_ALONG(0), lanes);
	ValId term = tir_load(k, s->list.term, &base, there, TIR_LANES_ALONG(0), lanes);
	ValId rank = tir_emit(k, OP_SPLAT, tir_vector(DT_I32, lanes), 0, &none, 1);
	ValId other = tir_for(k, zero, n, one, &rank, 1);
	ValId its_key = tir_load(k, s->list.key, &other, 0, 0, 0), its_term = tir_load(k, s->list.term, &other, 0, 0, 0);
	ValId earlier = BUG(scatter_reversed) ? tir_binary(k, OP_LT, term, its_term) : tir_binary(k, OP_LT, its_term, term);
	ValId before = tir_binary(k, OP_OR, tir_binary(k, OP_LT, its_key, key),
	                          tir_binary(k, OP_AND, tir_binary(k, OP_EQ, its_key, key), earlier));
	rank = tir_binary(k, OP_ADD, rank, tir_cast(k, DT_I32, before));
	tir_end_for(k, &rank, 1);
	ValId place = tir_cast(k, DT_I64, rank);
	tir_store(k, s->list.by_key, term, &place, there, 0);
	tir_store(k, s->list.key_of, key, &place, there, 0);
	tir_end_for(k, NULL, 0);
	for (unsigned j = 0; j < TOGETHER; j++) {
		ValId end = j ? tir_binary(k, OP_ADD, n, scatter_int(s, j)) : n;
		tir_store(k, s->list.key_of, tir_int(k, DT_I32, NO_KEY), &end, 0, 0);
		tir_store(k, s->list.by_key, none, &end, 0, 0);
	}
}

/* Where terms of this key go. */
static void
aim(Scatter *s, ValId key)
{
	TirKernel *k = s->l->tir;
	const TensorArg *arg = point_tensor(s->l, s->t);
	unsigned aimed = 0;
	ValId rest = tir_cast(k, DT_I64, key);
	for (unsigned a = 0; a < s->l->node->npar; a++)
		aimed += s->task->axes.own[a] == INDEX_AIMED;
	for (unsigned a = s->l->node->npar; a-- > 0;) {
		if (s->task->axes.own[a] != INDEX_AIMED) {
			s->to[a] = s->l->axis[s->task->axes.own[a]];
			continue;
		}
		bool first = --aimed == 0;
		s->to[a] = first ? rest : tir_binary(k, OP_IMOD, rest, arg->extent[a]);
		if (!first)
			rest = tir_binary(k, OP_IDIV, rest, arg->extent[a]);
	}
	unsigned lane = (unsigned)s->task->axes.lane;
	s->l->axis[s->task->axes.own[lane]] = s->to[lane] = s->task->begin;
}

/* The accumulator of the element, from the output. */
static ValId
load_element(Scatter *s)
{
	Point *l = s->l;
	ValId v = tir_load(l->tir, point_tensor(l, s->t)->data, s->to, l->mask, TIR_LANES_ALONG(s->task->axes.lane), l->lanes);
	return tir_cast(l->tir, s->type, v);
}

/* What the term at the point brings; in the strict mode a product's factors. */
typedef struct {
	PointVal a, b;
} Body;

static Body
read_body(Scatter *s, const Reduction *f)
{
	Point *l = s->l;
	ExprId body = l->node->body;
	if (!f->fma)
		return (Body){.a = point_value(l, body, true)};
	return (Body){point_value(l, expr_arg(l->g, body, 0), true), point_value(l, expr_arg(l->g, body, 1), true)};
}

static ValId
fold_body(Scatter *s, Reduction f, ValId acc, const Body *body)
{
	Point *l = s->l;
	f.re = acc;
	f.wants_touched = false;
	reduction_widen(l, &f);
	if (f.fma)
		f.re = tir_fma(l->tir, point_widen(l, body->a.re), point_widen(l, body->b.re), f.re);
	else
		reduction_value(l, &f, body->a, 0);
	return point_widen(l, f.re);
}

static void
store_element(Scatter *s, ValId acc)
{
	Point *l = s->l;
	ValId v = element_finish(l, (PointVal){.re = acc}, 0, true).re;
	tir_store(l->tir, point_tensor(l, s->t)->data, point_widen(l, v), s->to, l->mask, TIR_LANES_ALONG(s->task->axes.lane));
}

/* So many terms of the list, from `at` on. */
typedef struct {
	ValId key[TOGETHER + 1], there[TOGETHER]; /* with the key that comes after them */
	ValId begins[TOGETHER];                   /* a run */
	ValId start[TOGETHER];                    /* what its element has, if it does */
	Body body[TOGETHER];
} Some;

/* Asks for all that they read. What is not there reads what the first term of all does, in no lane. */
static void
read_some(Scatter *s, unsigned axis, ValId origin, ValId at, ValId key_before, const Reduction *f, Some *x)
{
	Point *l = s->l;
	TirKernel *k = l->tir;
	ValId place[TOGETHER + 1] = {at}, mask = point_block_mask(l, s->task->begin, s->task->end);
	for (unsigned j = 1; j <= TOGETHER; j++)
		place[j] = tir_binary(k, OP_ADD, at, scatter_int(s, j));
	for (unsigned j = 0; j <= TOGETHER; j++)
		x->key[j] = tir_load(k, s->list.key_of, &place[j], 0, 0, 0);
	for (unsigned j = 0; j < TOGETHER; j++) {
		uint32_t mark = point_mark(l);
		x->there[j] = tir_binary(k, OP_NE, x->key[j], tir_int(k, DT_I32, NO_KEY));
		x->begins[j] = tir_binary(k, OP_AND, x->there[j], tir_binary(k, OP_NE, x->key[j], j ? x->key[j - 1] : key_before));
		ValId term = tir_load(k, s->list.by_key, &place[j], 0, 0, 0);
		l->axis[axis] = tir_binary(k, OP_ADD, origin, tir_cast(k, DT_I64, term));
		aim(s, x->key[j]);
		l->mask = tir_binary(k, OP_AND, mask, point_widen(l, x->there[j]));
		x->body[j] = read_body(s, f);
		l->mask = tir_binary(k, OP_AND, mask, point_widen(l, x->begins[j]));
		x->start[j] = load_element(s);
		point_release(l, mark);
	}
}

/* Folds them into what the run that they begin in has so far, and stores the elements whose runs end. */
static ValId
fold_some(Scatter *s, const Reduction *f, const Some *x, ValId acc)
{
	Point *l = s->l;
	TirKernel *k = l->tir;
	ValId mask = point_block_mask(l, s->task->begin, s->task->end);
	for (unsigned j = 0; j < TOGETHER; j++) {
		uint32_t mark = point_mark(l);
		acc = fold_body(s, *f, tir_select(k, x->begins[j], x->start[j], acc), &x->body[j]);
		ValId ends = tir_binary(k, OP_AND, x->there[j], tir_binary(k, OP_NE, x->key[j], x->key[j + 1]));
		aim(s, x->key[j]);
		l->mask = tir_binary(k, OP_AND, mask, point_widen(l, ends));
		store_element(s, acc);
		point_release(l, mark);
	}
	l->mask = 0;
	return acc;
}

void
scatter_take_runs(Scatter *s, unsigned axis, ValId origin, ValId n)
{
	Point *l = s->l;
	TirKernel *k = l->tir;
	Reduction f = reduction_begin(l);
	n = tir_cast(k, DT_I64, n);
	order_list(s, n);
	uint32_t mark = point_mark(l);
	ValId unit = tir_int(k, DT_I32, 0), carried[2] = {tir_int(k, DT_I32, NO_KEY), point_widen(l, tir_cast(k, s->type, unit))};
	ValId at = tir_for(k, scatter_int(s, 0), n, scatter_int(s, TOGETHER), carried, 2);
	Some some;
	read_some(s, axis, origin, at, carried[0], &f, &some);
	carried[1] = fold_some(s, &f, &some, carried[1]);
	carried[0] = some.key[TOGETHER - 1];
	point_release(l, mark);
	tir_end_for(k, carried, 2);
	l->axis[axis] = 0;
}
