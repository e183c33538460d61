/* pass_check.c: see pass_check.h. */
#include "pass_check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/eval.h"

enum { ROUNDS = 12 };

static const char body_graph[] =
	"graph t %s\n"
	"dim N param 0 axis 0 scale 1 offset 0 hint 7\n"
	"dim M param 1 axis 1 scale 1 offset 0 hint 5\n"
	"access 1 gather \"x[i]\"\n"
	"input %%1 x : f32[$N]\n"
	"input %%2 y : f32[$N, $M]\n"
	"input %%3 i : i32[$N]\n"
	"input %%4 b : bool[$N]\n"
	"input %%5 d : f64[$N]\n"
	"input %%6 h : f16[$N]\n"
	"input %%7 l : i64[$N]\n"
	"input %%8 u : u32[$N]\n"
	"input %%9 z : c64[$N]\n"
	"tensor %%10 r : %s[$N]\n"
	"node %%10 none\n"
	"  par i\n"
	"  body %s\n"
	"result r %%10\n";

static Graph *
read_graph(Arena *a, const char *text)
{
	const char *error = NULL;
	Graph *g = graph_read(a, names_new(a), text, strlen(text), &error);
	if (!g || !graph_verify(g, a, &error))
		fail_msg("%s in\n%s", error, text);
	return g;
}

static const char *
printed(Arena *a, const Graph *g)
{
	Text t;
	text_init(&t, a);
	graph_print(g, &t);
	return text_get(&t);
}

static uint32_t
next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static EvalValue
random_value(DType t, uint64_t *state)
{
	static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 0.5};
	EvalValue v = {.i = (int64_t)(next(state) % 9) - 2};
	uint32_t k = next(state) % 24;
	v.re = k < 8 ? special[k] : ((double)(next(state) % 4001) - 2000) / 64;
	v.im = (double)(next(state) % 9) - 4;
	if (t == DT_C64 && !isfinite(v.re))
		v.re = 2;
	if (dtype_info[t].kind == KIND_UINT || t == DT_BOOL)
		v.i = t == DT_BOOL ? next(state) % 2 : next(state) % 7;
	return v;
}

/* The extents inputs have are dims, or sums and products of dims and numbers. */
static int64_t
extent_value(const Graph *g, ExprId e)
{
	const Expr *p = expr_get(g, e);
	if (p->op == OP_CONST)
		return p->imm.i;
	if (p->op == OP_DIM)
		return g->dim.at[p->ref].hint;
	int64_t a = extent_value(g, expr_arg(g, e, 0)), b = extent_value(g, expr_arg(g, e, 1));
	return p->op == OP_MUL ? a * b : p->op == OP_ADD ? a + b : a - b;
}

static EvalInputs
make_inputs(Arena *a, const Graph *g, uint64_t *state)
{
	const void **data = ARENA_ARRAY(a, const void *, g->param.n + 1);
	const int64_t **shape = ARENA_ARRAY(a, const int64_t *, g->param.n + 1);
	for (uint32_t k = 0; k < g->param.n; k++) {
		const Tensor *t = &g->tensor.at[g->param.at[k]];
		int64_t *extent = ARENA_ARRAY(a, int64_t, TG_MAX_RANK), count = 1;
		for (unsigned x = 0; x < t->rank; x++)
			count *= extent[x] = extent_value(g, t->extent[x]);
		void *packed = arena_alloc(a, (size_t)count * 8 + 8);
		for (int64_t n = 0; n < count; n++)
			eval_store(t->dtype, packed, n, random_value(t->dtype, state));
		data[k] = packed;
		shape[k] = extent;
	}
	return (EvalInputs){data, shape};
}

static bool
same_bits(double x, double y)
{
	return (isnan(x) && isnan(y)) || (x == y && signbit(x) == signbit(y));
}

static bool
same_value(DType t, const EvalValue *a, const EvalValue *b)
{
	if (t == DT_C64)
		return same_bits(a->re, b->re) && same_bits(a->im, b->im);
	return dtype_is_float(t) ? same_bits(a->re, b->re) : a->i == b->i;
}

/* What is rounded elsewhere on the way is as good within both bounds. */
static bool
is_near(const EvalValue *a, const EvalValue *b)
{
	return same_bits(a->re, b->re) || fabs(a->re - b->re) <= a->err + b->err;
}

static void
compare(const EvalOutputs *x, const EvalOutputs *y, uint32_t nresult, bool exactly, const char *before, const char *after)
{
	if (x->fault != y->fault || x->cut != y->cut)
		fail_msg("fault %u became %u, cut %u became %u\n%s\n%s", x->fault, y->fault, x->cut, y->cut, before, after);
	for (uint32_t k = 0; k < nresult; k++) {
		const EvalTensor *s = &x->result[k], *t = &y->result[k];
		assert_int_equal(s->count, t->count);
		for (int64_t n = 0; n < s->count; n++) {
			const EvalValue *a = &s->at[n], *b = &t->at[n];
			bool same = a->fault == b->fault && a->skip == b->skip;
			if (!a->fault && !a->skip)
				same = same && (exactly || !dtype_is_float(s->dtype) ? same_value(s->dtype, a, b) : is_near(a, b));
			if (!same)
				fail_msg("element %d of result %u: %g (%lld, fault %u) became %g (%lld, fault %u)\n%s\n%s", (int)n,
				         k, a->re, (long long)a->i, a->fault, b->re, (long long)b->i, b->fault, before, after);
		}
	}
}

PassResult
pass_check(Arena *a, TensorPassFn *pass, const char *text, int64_t fuel, PassKeeps keeps)
{
	Graph *before = read_graph(a, text), *g = read_graph(a, text);
	PassOptions o = {.remarks = true, .part_terms = 2, .lanes = 8};
	PassResult r = {0};
	Text log;
	const char *error = NULL;
	text_init(&log, a);
	for (int run = 0; run < 2; run++) {
		PassCtx cx = {.options = &o, .scratch = a, .graph = g, .log = &log, .fuel = fuel};
		cx.faulty = graph_may_fault(g, a);
		uint32_t done = pass(g, &cx);
		if (!graph_verify(g, a, &error))
			fail_msg("%s after the pass\n%s", error, printed(a, g));
		if (run == 0) {
			r.done = done;
			r.after = printed(a, g);
			r.log = arena_text(a, "%s", text_get(&log));
		} else if (strcmp(printed(a, g), r.after) != 0)
			r.again = printed(a, g);
	}
	uint64_t state = 99;
	Graph *after = read_graph(a, r.after);
	for (int round = 0; round < ROUNDS && keeps; round++) {
		EvalInputs in = make_inputs(a, before, &state);
		EvalOutputs x, y;
		assert_int_equal(graph_eval(before, a, &in, 0, &x), EVAL_OK);
		assert_int_equal(graph_eval(after, a, &in, 0, &y), EVAL_OK);
		compare(&x, &y, before->result.n, keeps == PASS_KEEPS_BITS, text, r.after);
	}
	return r;
}

const char *
body_after(Arena *a, TensorPassFn *pass, FpMode fp, const char *t, const char *body)
{
	static const char *const mode[] = {"strict", "relaxed", "fast"};
	PassResult r = pass_check(a, pass, arena_text(a, body_graph, mode[fp], t, body), -1, PASS_KEEPS_BITS);
	const char *from = strstr(r.after, "  body "), *to = from ? strchr(from, '\n') : NULL;
	assert_non_null(to);
	return arena_text(a, "%.*s", (int)(to - from) - 7, from + 7);
}
