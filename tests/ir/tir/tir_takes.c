/* tir_takes.c: builds what tir_takes.h says. */
#include "tir_takes.h"

typedef struct {
	TirKernel *k;
	const Takes *of;
	ValId from, to, across; /* views of x and z; tiles along the terms */
	ValId zero, one, thread;
} Build;

static ValId
number(TirKernel *k, int64_t v)
{
	return tir_int(k, DT_I64, v);
}

static ValId
leaf(TirKernel *k, Op op)
{
	return tir_emit(k, op, tir_scalar(DT_I64), 0, NULL, 0);
}

static void
open_tasks(Build *b, ValId *task, ValId *fill)
{
	*fill = b->zero;
	*task = tir_for(b->k, leaf(b->k, OP_TASK_LO), leaf(b->k, OP_TASK_HI), leaf(b->k, OP_TASK_STEP), fill, 1);
}

static void
close_tasks(Build *b, ValId fill)
{
	fill = tir_binary(b->k, OP_ADD, fill, b->one);
	tir_end_for(b->k, &fill, 1);
}

/* For two groups those of 16 bytes as terms of the first part, with which the other ones' go on. */
static ValId
take(Build *b, unsigned part, ValId fill, ValId row, ValId term)
{
	TirKernel *k = b->k;
	unsigned bits = dtype_info[b->of->t].bits, lanes = 8 * b->of->bytes / bits;
	switch (b->of->wrong) {
	case TAKES_ROW_BEYOND: row = tir_binary(k, OP_ADD, row, b->one); break;
	case TAKES_ROW_BEFORE: row = tir_binary(k, OP_SUB, row, b->one); break;
	case TAKES_TERM_BEYOND: term = tir_binary(k, OP_ADD, term, number(k, lanes)); break;
	case TAKES_BETWEEN: term = tir_binary(k, OP_ADD, term, b->one); break;
	case TAKES_OF_NO_ROW: row = tir_binary(k, OP_LT, row, b->one); break;
	case TAKES_IN_I32: term = tir_cast(k, DT_I32, term); break;
	default: break;
	}
	if (b->of->bytes == 16 && b->of->groups == 2 && b->of->wrong == TAKES_RIGHT && !b->of->place) {
		term = tir_binary(k, OP_ADD, term, number(k, part * takes_terms(b->of->t)));
		part = 0;
	}
	return tir_emit(k, OP_TAKE, tir_vector(b->of->t, lanes), TIR_COPY(0, part), (ValId[]){fill, row, term}, 3);
}

/* Thread t's are t, t + threads, …, of vectors that are numbered down the rows. */
static void
take_part(Build *b, unsigned part, ValId task, ValId fill)
{
	TirKernel *k = b->k;
	unsigned lanes = 8 * b->of->bytes / dtype_info[b->of->t].bits, threads = b->of->groups * TIR_GROUP;
	unsigned all = TAKES_ROWS * takes_terms(b->of->t) / lanes;
	for (unsigned first = 0; first < all; first += threads) {
		ValId v = tir_binary(k, OP_ADD, b->thread, number(k, first)), rows = number(k, TAKES_ROWS);
		ValId row = tir_binary(k, OP_IMOD, v, rows), term = tir_binary(k, OP_MUL, tir_binary(k, OP_IDIV, v, rows), number(k, lanes));
		ValId below = tir_binary(k, OP_ADD, row, number(k, part * TAKES_ROWS));
		tir_store(k, b->to, take(b, part, fill, row, term), (ValId[]){task, below, term}, 0, TIR_LANES_ALONG(2));
	}
}

static void
take_tile(Build *b, ValId task, ValId fill)
{
	TirKernel *k = b->k;
	const TakesPlace *p = b->of->place;
	if (b->of->wrong == TAKES_A_PRODUCT) {
		tir_emit(k, OP_MMA, (TirType){0}, TIR_MMA(0, 0, 1), (ValId[]){fill, tir_binary(k, OP_LT, b->zero, b->zero)}, 2);
		tir_emit(k, OP_SETTLE, (TirType){0}, 0, NULL, 0);
		return;
	}
	if (b->of->wrong == TAKES_WHAT_IS_HELD) {
		tir_emit(k, OP_HELD, tir_vector(b->of->t, TIR_HELD_LANES), TIR_HELD(0, 0), &fill, 1);
		return;
	}
	if (b->of->wrong == TAKES_BY_SOME)
		tir_if(k, tir_binary(k, OP_LT, b->thread, number(k, 64)));
	for (unsigned part = 0; !p && part < TAKES_PARTS; part++)
		take_part(b, part, task, fill);
	if (p)
		tir_store(k, b->to, take(b, p->part, fill, number(k, p->row), number(k, p->term)), (ValId[]){task, b->zero, b->zero}, 0, TIR_LANES_ALONG(2));
	if (b->of->wrong == TAKES_BY_SOME) {
		tir_else(k, NULL, 0);
		tir_end_if(k, NULL, 0);
	}
}

static void
take_all(Build *b)
{
	TirKernel *k = b->k;
	ValId task, fill, truth[2];
	open_tasks(b, &task, &fill);
	truth[0] = fill;
	truth[1] = tir_binary(k, OP_LT, b->zero, b->one);
	if (b->of->wrong == TAKES_BEFORE_WAIT)
		take_tile(b, task, fill);
	tir_emit(k, OP_WAIT, (TirType){0}, 0, &fill, 1);
	if (b->of->wrong == TAKES_AFTER_RELEASE)
		tir_emit(k, OP_RELEASE, (TirType){0}, 0, truth, 2);
	if (b->of->wrong != TAKES_BEFORE_WAIT)
		take_tile(b, task, fill);
	if (b->of->wrong != TAKES_AFTER_RELEASE)
		tir_emit(k, OP_RELEASE, (TirType){0}, 0, truth, 2);
	close_tasks(b, fill);
}

static void
load_all(Build *b)
{
	TirKernel *k = b->k;
	ValId task, fill;
	open_tasks(b, &task, &fill);
	ValId row = tir_binary(k, OP_MUL, tir_binary(k, OP_IDIV, task, b->across), number(k, TAKES_PARTS * TAKES_ROWS));
	ValId term = tir_binary(k, OP_MUL, tir_binary(k, OP_IMOD, task, b->across), number(k, takes_terms(b->of->t)));
	term = tir_binary(k, OP_SUB, term, number(k, b->of->wrong == TAKES_COPIES_FROM_1 ? -1 : b->of->before));
	tir_emit(k, OP_ACQUIRE, (TirType){0}, 0, &fill, 1);
	for (unsigned part = 0; part < TAKES_PARTS; part++)
		tir_copy(k, TIR_COPY(0, part), b->from, fill, (ValId[]){tir_binary(k, OP_ADD, row, number(k, part * TAKES_ROWS)), term});
	if (b->of->wrong == TAKES_WHILE_LOADING)
		take(b, 0, fill, b->zero, b->zero);
	close_tasks(b, fill);
}

void
takes_build(TirKernel *k, Names *names, const Takes *x)
{
	static const char *const scalar[TAKES_SCALARS] = {"rows", "terms", "across", "tiles"};
	unsigned terms = takes_terms(x->t);
	TirPart part = {.dtype = x->t, .rows = TAKES_ROWS, .terms = (uint16_t)terms};
	ValId s[TAKES_SCALARS];
	Build b = {.k = k, .of = x};
	k->form = TIR_SPREAD;
	k->threads = (x->groups + 1) * TIR_GROUP;
	k->resident = 1;
	k->group = (uint16_t)(8 * x->bytes / dtype_info[x->t].bits);
	tir_add_buffer(k, name_cstr(names, "x"), x->t, false);
	tir_add_buffer(k, name_cstr(names, "z"), x->t, true);
	for (unsigned n = 0; n < TAKES_SCALARS; n++)
		s[n] = tir_emit(k, OP_SCALAR, tir_scalar(DT_I64), tir_add_scalar(k, name_cstr(names, scalar[n]), DT_I64), NULL, 0);
	tir_add_channel(k, &(TirChannel){.slots = (uint16_t)x->slots, .nparts = TAKES_PARTS, .part = {part, part}});
	b.zero = number(k, 0);
	b.one = number(k, 1);
	b.across = s[2];
	ValId row = number(k, terms), tile = number(k, (int64_t)TAKES_PARTS * TAKES_ROWS * terms);
	b.from = tir_view(k, 0, 2, (ValId[]){s[0], s[1]}, (ValId[]){s[1], b.one});
	b.to = tir_view(k, 1, 3, (ValId[]){s[3], number(k, TAKES_PARTS * TAKES_ROWS), row}, (ValId[]){tile, row, b.one});
	b.thread = leaf(k, OP_THREAD);
	tir_open_roles(k, TIR_ROLES(x->groups, 240, 24));
	take_all(&b);
	tir_other_role(k);
	load_all(&b);
	tir_end_roles(k);
}
