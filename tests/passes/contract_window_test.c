/* contract_window_test.c: products of 16-bit factors one of which is read by windows, by roles, run by the tile interpreter and
 * compared with the oracle: strides, dilations, padding on either side, groups, one to three axes of an image, in every tile
 * and box; and what is absent beside factors that are no numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph_case.h"
#include "passes/schedule/contract/window.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

enum { AXES = 3 }; /* of an image */

/* y[g, n, p.., o] = sum[r.., c](x[g, n, p*step + r*apart - before.., c] * w[g, r.., c, o]), absent outside of x. */
typedef struct {
	int64_t groups, images, in[AXES], out[AXES], taps[AXES], terms, columns;
	int64_t step, apart, before;
	unsigned naxis;
	DType type, to;
	bool turned;   /* w[g, r.., c, o]; else w[g, o, r.., c] */
	bool whole;    /* all terms are there, and nothing is asked */
	bool finished; /* max(y * scale[o] + bias[o], 0) */
	bool reversed; /* windows run backwards */
	const uint16_t *weights; /* NULL: random */
} Convolution;

static const Convolution *now;

static ExprId
dim(Case *c, char first, unsigned k, int64_t value)
{
	return case_dim(c, (char[]){first, (char)('0' + k), 0}, value);
}

static ExprId
both(Case *c, ExprId a, ExprId b)
{
	return a ? BIN(AND, a, b) : b;
}

/* The axes of the node: group, image, those of the result, column; then the taps and the last term. */
static unsigned
axis_of(char what, unsigned k)
{
	bool grouped = now->groups > 0;
	unsigned p = grouped ? 2 : 1;
	switch (what) {
	case 'g': return 0;
	case 'n': return grouped;
	case 'p': return p + k;
	case 'o': return p + now->naxis;
	case 'r': return p + now->naxis + 1 + k;
	default: return p + now->naxis + 1 + now->naxis;
	}
}

typedef struct {
	ExprId group, image, in[AXES], out[AXES], taps[AXES], term, column;
} Extents;

static ExprId
element(Case *c, TensorId t, const ExprId *sub, unsigned n)
{
	return expr_cast(c->g, DT_F32, expr_read(c->g, t, sub, n, 0));
}

static ExprId
read_image(Case *c, TensorId x, const Extents *e, ExprId *guard)
{
	ExprId sub[TG_MAX_RANK];
	unsigned n = 0;
	if (now->groups)
		sub[n++] = ax(c, axis_of('g', 0));
	sub[n++] = ax(c, axis_of('n', 0));
	for (unsigned k = 0; k < now->naxis; k++) {
		ExprId tap = BIN(MUL, case_int(c, now->apart), ax(c, axis_of('r', k))), at = BIN(MUL, case_int(c, now->step), ax(c, axis_of('p', k)));
		at = BIN(SUB, now->reversed ? BIN(SUB, at, tap) : BIN(ADD, at, tap), case_int(c, now->before));
		sub[n++] = at;
		if (!now->whole)
			*guard = both(c, *guard, BIN(AND, BIN(LE, case_int(c, 0), at), BIN(LT, at, e->in[k])));
	}
	sub[n++] = ax(c, axis_of('c', 0));
	return element(c, x, sub, n);
}

static ExprId
read_weights(Case *c, TensorId w)
{
	ExprId sub[TG_MAX_RANK];
	unsigned n = 0;
	if (now->groups)
		sub[n++] = ax(c, axis_of('g', 0));
	if (!now->turned)
		sub[n++] = ax(c, axis_of('o', 0));
	for (unsigned k = 0; k < now->naxis; k++)
		sub[n++] = ax(c, axis_of('r', k));
	sub[n++] = ax(c, axis_of('c', 0));
	if (now->turned)
		sub[n++] = ax(c, axis_of('o', 0));
	return element(c, w, sub, n);
}

static void
image(Case *c, Extents *e, TensorId *x)
{
	ExprId of[TG_MAX_RANK];
	unsigned n = 0;
	if (now->groups)
		of[n++] = e->group = dim(c, 'G', 0, now->groups);
	of[n++] = e->image = dim(c, 'N', 0, now->images);
	for (unsigned k = 0; k < now->naxis; k++)
		of[n++] = e->in[k] = dim(c, 'H', k, now->in[k]);
	of[n++] = e->term = dim(c, 'C', 0, now->terms);
	*x = case_input(c, TENSOR_INPUT, "x", now->type, n, of);
}

static void
weights(Case *c, Extents *e, TensorId *w)
{
	ExprId of[TG_MAX_RANK];
	unsigned n = 0;
	e->column = dim(c, 'O', 0, now->columns);
	if (now->groups)
		of[n++] = e->group;
	if (!now->turned)
		of[n++] = e->column;
	for (unsigned k = 0; k < now->naxis; k++)
		of[n++] = e->taps[k] = dim(c, 'R', k, now->taps[k]);
	of[n++] = e->term;
	if (now->turned)
		of[n++] = e->column;
	*w = case_input(c, TENSOR_INPUT, "w", now->type, n, of);
	if (now->weights)
		case_given(c, *w, now->weights);
}

static void
build(Case *c)
{
	Extents e = {0};
	TensorId x, w;
	ExprId out[TG_MAX_RANK], guard = 0;
	unsigned rank = 0;
	image(c, &e, &x);
	weights(c, &e, &w);
	if (now->groups)
		out[rank++] = e.group;
	out[rank++] = e.image;
	for (unsigned k = 0; k < now->naxis; k++)
		out[rank++] = case_int(c, now->out[k]);
	out[rank++] = e.column;
	ExprId product = BIN(MUL, read_image(c, x, &e, &guard), read_weights(c, w)), acc = expr_make(c->g, OP_ACC, DT_F32, 0, 0, NULL, 0);
	Node n = case_node(rank, product);
	n.guard = guard;
	for (unsigned k = 0; k < now->naxis; k++)
		case_reduce(&n, MON_SUM, case_int(c, 0), e.taps[k]);
	case_reduce(&n, MON_SUM, case_int(c, 0), e.term);
	if (now->finished) {
		ExprId column = ax(c, axis_of('o', 0));
		TensorId scale = case_input(c, TENSOR_INPUT, "scale", DT_F32, 1, &e.column), bias = case_input(c, TENSOR_INPUT, "bias", DT_F32, 1, &e.column);
		acc = BIN(ADD, BIN(MUL, acc, expr_read(c->g, scale, &column, 1, 0)), expr_read(c->g, bias, &column, 1, 0));
		acc = BIN(MAX, acc, expr_float(c->g, DT_F32, 0));
	}
	n.finish = expr_cast(c->g, now->to, acc);
	case_result(c, "y", case_add(c, &n, "y", now->to, out), 0);
}

#define IMAGE(h, w, p, q, r, s) .naxis = 2, .in = {h, w}, .out = {p, q}, .taps = {r, s}

static const Convolution convolutions[] = {
	{.images = 1, IMAGE(8, 8, 8, 8, 3, 3), .terms = 16, .columns = 64, .step = 1, .apart = 1, .before = 1, .type = DT_BF16, .to = DT_F32, .turned = true},
	{.images = 3, IMAGE(7, 7, 7, 7, 3, 3), .terms = 72, .columns = 68, .step = 1, .apart = 1, .before = 1, .type = DT_BF16, .to = DT_BF16, .turned = true, .finished = true},
	{.images = 4, IMAGE(9, 11, 5, 6, 3, 3), .terms = 24, .columns = 64, .step = 2, .apart = 1, .before = 1, .type = DT_F16, .to = DT_F32},
	{.images = 2, IMAGE(8, 9, 8, 9, 3, 2), .terms = 16, .columns = 64, .step = 1, .apart = 2, .before = 2, .type = DT_BF16, .to = DT_F32},
	{.images = 4, IMAGE(6, 5, 6, 5, 1, 1), .terms = 80, .columns = 130, .step = 1, .apart = 1, .type = DT_BF16, .to = DT_F32, .turned = true, .whole = true},
	{.groups = 2, .images = 5, .naxis = 1, .in = {20}, .out = {20}, .taps = {4}, .terms = 16, .columns = 64, .step = 1, .apart = 1, .type = DT_BF16, .to = DT_F32, .turned = true, .reversed = true},
	{.images = 2, .naxis = 3, .in = {3, 4, 8}, .out = {3, 4, 8}, .taps = {2, 3, 1}, .terms = 16, .columns = 66, .step = 1, .apart = 1, .before = 1, .type = DT_BF16, .to = DT_F32, .turned = true},
};

static CaseRun
run(const Convolution *what, bool split, unsigned tile)
{
	now = what;
	CaseRun r = case_try_roles(build, split, tile);
	if (!r.roles)
		fail_msg("tile %u has no roles: %s", tile, r.remarks);
	return r;
}

static void
convolutions_are_right(void **state)
{
	(void)state;
	for (unsigned n = 0; n < sizeof convolutions / sizeof *convolutions; n++)
		run(&convolutions[n], n % 2, 0);
}

static void
every_tile_is_right(void **state)
{
	(void)state;
	for (unsigned tile = 1; tile <= contract_window_tiles(); tile++)
		run(&convolutions[tile % 4], tile % 2, tile);
}

/* Weights of which every other column has an infinity or a NaN at one tap. */
static void
absent_terms_take_no_part(void **state)
{
	enum { TAPS = 9, TERMS = 16, COLUMNS = 64, INFINITE = 0x7f80, ONE = 0x3f80, NOTHING = 0x7fc0 };
	static uint16_t w[TAPS * TERMS * COLUMNS];
	(void)state;
	for (unsigned n = 0; n < TAPS * TERMS * COLUMNS; n++)
		w[n] = (uint16_t)(ONE + n % 7 * 16);
	for (unsigned o = 0; o < COLUMNS; o += 2)
		w[(o / 2 % TAPS * TERMS + o % TERMS) * COLUMNS + o] = o % 4 ? INFINITE : NOTHING;
	Convolution odd = convolutions[0];
	odd.images = 2;
	odd.weights = w;
	run(&odd, false, 0);
	odd.reversed = true;
	odd.before = -1;
	run(&odd, false, 0);
}

/* What else is asked of a term, or strict, or wider factors: other kernels. */
static void
build_asking_more(Case *c)
{
	build(c);
	Node *n = &c->g->node.at[c->g->node.n - 1];
	n->guard = BIN(AND, n->guard, BIN(LE, ax(c, axis_of('r', 0)), ax(c, axis_of('p', 0))));
}

static void
build_strict(Case *c)
{
	c->g->fp = FP_STRICT;
	build(c);
}

static void
others_have_none(void **state)
{
	(void)state;
	Convolution wide = convolutions[0];
	now = &convolutions[0];
	assert_false(case_try_roles(build_asking_more, false, 0).roles);
	assert_false(case_try_roles(build_strict, false, 0).roles);
	wide.type = DT_F32;
	now = &wide;
	assert_false(case_try_roles(build, false, 0).roles);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(convolutions_are_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(every_tile_is_right, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(absent_terms_take_no_part, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(others_have_none, case_setup, case_teardown),
	};
	case_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
