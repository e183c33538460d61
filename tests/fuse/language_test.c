/* language_test.c: what the language's own functions derive to, written as users write them: softmax and
 * its kin from std.tex, attention, norms. And a function renamed derives to the same, byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "frontend/frontend.h"
#include "passes/fuse/algebra.h"
#include "tests/fuse/arena_setup.h"

static const char source[] =
	"use \"std\"\n"
	"graph softmax_rows(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = softmax[j](x[i, j]) }\n"
	"graph softmax_narrow(x: bf16[N, M]) -> (y: bf16[N, M]) { y[i, j] = softmax[j](x[i, j]) }\n"
	"graph softmax_both(x: f32[B, N, M]) -> (y: f32[B, N, M]) { y[b, i, j] = softmax[i, j](x[b, i, j]) }\n"
	"graph lse(x: f32[N, M]) -> (y: f32[N]) { y[i] = logsumexp[j](x[i, j]) }\n"
	"graph log_rows(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = log_softmax[j](x[i, j]) }\n"
	"graph spread(x: f32[N, M]) -> (y: f32[N]) { y[i] = variance[j](x[i, j]) }\n"
	"graph layer(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = layernorm[j](x[i, j]) }\n"
	"graph rms(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = rmsnorm[j](x[i, j]) }\n"
	"graph batch(x: f32[N, C, H]) -> (y: f32[N, C, H]) { y[n, c, h] = batchnorm[n, h](x[n, c, h]) }\n"
	"graph loss(z: f32[N, M], c: i64[N]) -> (y: f32[N]) { y[i] = cross_entropy[v](z[i, v], c[i]) }\n"
	"graph attention(q: f32[T, D], k: f32[S, D], v: f32[S, D]) -> (o: f32[T, D]) {\n"
	"  s[i, j] = sum[d](q[i, d] * k[j, d]) / sqrt(D)   where j <= i + S - T\n"
	"  o[i, d] = sum[j](softmax[j](s[i, j]) * v[j, d])\n}\n"
	"graph attention_narrow(q: bf16[T, D], k: bf16[S, D], v: bf16[S, D]) -> (o: bf16[T, D]) {\n"
	"  s[i, j] = sum[d](q[i, d] * k[j, d]) / sqrt(D)\n"
	"  o[i, d] = sum[j](softmax[j](s[i, j]) * v[j, d])\n}\n"
	"graph attention_rounded(q: bf16[T, D], k: bf16[S, D], v: bf16[S, D]) -> (o: bf16[T, D]) {\n"
	"  s[i, j] = sum[d](q[i, d] * k[j, d]) / sqrt(D)\n"
	"  o[i, d] = sum[j](bf16(softmax[j](s[i, j])) * v[j, d])\n}\n"
	"graph norm_matmul(x: f32[N, M], w: f32[M, K]) -> (y: f32[N, K]) { y[i, k] = sum[j](rmsnorm[j](x[i, j]) * w[j, k]) }\n"
	"graph layer_matmul(x: f32[N, M], w: f32[M, K]) -> (y: f32[N, K]) { y[i, k] = sum[j](layernorm[j](x[i, j]) * w[j, k]) }\n"
	"graph entropy(x: f32[N, M]) -> (y: f32[N]) {\n"
	"  m[i] = max[j](x[i, j])\n"
	"  l[i] = sum[j](exp(x[i, j] - m[i]))\n"
	"  y[i] = log(l[i]) - sum[j](exp(x[i, j] - m[i]) * (x[i, j] - m[i])) / l[i]\n}\n"
	"graph gauss(x: f32[N, M]) -> (y: f32[N]) { y[i] = sum[j](exp(-sq(x[i, j] - mean[j](x[i, j])))) }\n"
	"fn zork[j](x) = exp(x - max[j](x)) / sum[j](exp(x - max[j](x)))\n"
	"graph zorks(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = zork[j](x[i, j]) }\n";

typedef struct {
	const char *graph;
	unsigned skip, members, npass, nacc; /* members after the first `skip`; 0: all. nacc of the first pass */
	FoldPolicy last;
	RemarkId late;                       /* of the last member */
} Row;

static const Row rows[] = {
	{"softmax_rows", 0, 0, 1, 3, FOLD_STREAM, REMARK_NONE},
	{"softmax_narrow", 0, 0, 1, 3, FOLD_STREAM, REMARK_NONE},
	{"softmax_both", 0, 0, 1, 3, FOLD_STREAM, REMARK_NONE},
	{"lse", 0, 0, 1, 3, FOLD_STREAM, REMARK_NONE},
	{"log_rows", 0, 0, 1, 3, FOLD_STREAM, REMARK_NONE},
	{"spread", 0, 0, 1, 4, FOLD_MOMENTS, REMARK_NONE},
	{"layer", 0, 0, 1, 4, FOLD_MOMENTS, REMARK_NONE},
	{"rms", 0, 0, 1, 1, FOLD_PLAIN, REMARK_NONE},
	{"batch", 0, 0, 1, 4, FOLD_MOMENTS, REMARK_NONE},
	{"loss", 0, 0, 1, 4, FOLD_STREAM, REMARK_NONE},
	{"attention", 1, 3, 1, 4, FOLD_STREAM, REMARK_NONE},
	{"attention_narrow", 1, 3, 1, 4, FOLD_STREAM, REMARK_NONE}, /* the mode may round: it need not */
	{"attention_rounded", 1, 3, 2, 3, FOLD_PLAIN, REMARK_cascade_rounds}, /* the program does */
	{"norm_matmul", 0, 0, 1, 3, FOLD_HOIST, REMARK_NONE},
	{"layer_matmul", 0, 0, 1, 6, FOLD_MOMENTS, REMARK_NONE},
	{"entropy", 0, 0, 1, 4, FOLD_STREAM, REMARK_NONE}, /* its last is the sum of exponentials */
	{"gauss", 0, 0, 2, 1, FOLD_PLAIN, REMARK_cascade_mixes},
	{"zorks", 0, 0, 1, 3, FOLD_STREAM, REMARK_NONE},
};

static Unit *
compile(void)
{
	Diags diags;
	diags_init(&diags, &arena);
	FileId file = diags_add_file(&diags, "t.tex", source, sizeof source - 1);
	FrontendOptions o = {.fp = FP_RELAXED};
	Unit *u = frontend_compile(&arena, names_new(&arena), &diags, file, &o);
	assert_non_null(u);
	assert_int_equal(u->graph.n, u->ngraph);
	return u;
}

static Graph *
graph_named(const Unit *u, const char *name)
{
	for (uint32_t k = 0; k < u->graph.n; k++)
		if (strcmp(name_text(u->graph.at[k]->names, u->graph.at[k]->name), name) == 0)
			return u->graph.at[k];
	fail_msg("no graph %s", name);
	return NULL;
}

/* The plan as text. */
static const char *
derive(Graph *g, const Row *r, Cascade *c)
{
	TensorId member[MAX_MEMBERS];
	unsigned n = 0, met = 0;
	Refusal why;
	Text t;
	text_init(&t, &arena);
	graph_decide(g);
	for (uint32_t k = 0; k < g->node.n; k++)
		if (g->node.at[k].monoid != MON_NONE && met++ >= r->skip && (r->members == 0 || n < r->members))
			member[n++] = g->node.at[k].out;
	if (!cascade_derive(g, &arena, member, n, NULL, c, &why)) {
		refusal_print(g, &why, &t);
		fail_msg("%s: %s", r->graph, text_get(&t));
	}
	cascade_print(g, c, &t);
	return text_get(&t);
}

static void
test_functions(void **state)
{
	(void)state;
	Unit *u = compile();
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		const Row *r = &rows[k];
		Cascade *c = ARENA_NEW(&arena, Cascade);
		const char *text = derive(graph_named(u, r->graph), r, c);
		const CascadeMember *m = &c->member[c->nmember - 1];
		if (c->npass != r->npass || c->pass[0].nacc != r->nacc || m->policy != r->last || m->late.why != r->late) {
			fprintf(stderr, "%s: %s", r->graph, text);
			fail();
		}
	}
}

static void
test_renamed(void **state)
{
	(void)state;
	Unit *u = compile();
	Cascade *c = ARENA_NEW(&arena, Cascade);
	Row a = {.graph = "softmax_rows"}, b = {.graph = "zorks"};
	assert_string_equal(derive(graph_named(u, a.graph), &a, c), derive(graph_named(u, b.graph), &b, c));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_functions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_renamed, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
