/* bench.c: see bench.h. */
#include "bench.h"

#include <string.h>

void
bench_open(Bench *b, FpMode fp)
{
	memset(b, 0, sizeof *b);
	arena_init(&b->arena, &host_default()->memory, &b->unwind);
	if (setjmp(b->unwind.env))
		fail_msg("unwound: %s", b->unwind.text);
	b->g = graph_new(&b->arena, names_new(&b->arena));
	b->g->fp = fp;
}

void
bench_close(Bench *b)
{
	arena_free(&b->arena);
}

ExprId
bench_i64(Bench *b, int64_t v)
{
	return expr_int(b->g, DT_I64, v);
}

ExprId
bench_f32(Bench *b, double v)
{
	return expr_float(b->g, DT_F32, v);
}

TensorId
bench_input(Bench *b, DType t, const void *data, unsigned rank, int64_t n0, int64_t n1)
{
	ExprId extent[2] = {bench_i64(b, n0), bench_i64(b, n1)};
	char name[2] = {(char)('a' + b->g->param.n), 0};
	TensorKind kind = rank ? TENSOR_INPUT : TENSOR_SCALAR;
	TensorId id = tensor_new(b->g, kind, name_cstr(b->g->names, name), (Span){0}, t, rank, extent);
	uint32_t k = b->g->param.n;
	vec_push(&b->arena, &b->g->param, id);
	b->shapes[k][0] = n0;
	b->shapes[k][1] = n1;
	b->shape[k] = b->shapes[k];
	b->data[k] = data;
	return id;
}

ExprId
bench_read(Bench *b, TensorId t, unsigned rank, ExprId e0, ExprId e1, AccessId access)
{
	ExprId sub[2] = {e0, e1};
	return expr_read(b->g, t, sub, rank, access);
}

AccessId
bench_access(Bench *b, AccessKind kind, const char *text)
{
	if (b->g->access.n == 0)
		vec_grow(&b->arena, &b->g->access, 1);
	Access a = {.kind = kind, .text = text};
	vec_push(&b->arena, &b->g->access, a);
	return b->g->access.n - 1;
}

TensorId
bench_node(Bench *b, Node n, DType t, int64_t n0, int64_t n1)
{
	ExprId extent[2] = {bench_i64(b, n0), bench_i64(b, n1)};
	return node_add(b->g, &n, 0, (Span){0}, t, extent);
}

ExprId
bench_reduced(Bench *b, Node *n, int64_t extent)
{
	unsigned k = (unsigned)n->npar + n->nred++;
	n->axis[k].lo = bench_i64(b, 0);
	n->axis[k].hi = bench_i64(b, extent);
	return expr_axis(b->g, k);
}

void
bench_result(Bench *b, TensorId t)
{
	Result r = {.tensor = t};
	vec_push(&b->arena, &b->g->result, r);
}

static EvalStatus
evaluate(Bench *b)
{
	EvalInputs in = {b->data, b->shape};
	return graph_eval(b->g, &b->arena, &in, 0, &b->out);
}

EvalStatus
bench_eval(Bench *b)
{
	if (setjmp(b->unwind.env))
		fail_msg("unwound: %s", b->unwind.text);
	return evaluate(b);
}

int
bench_is_bug(Bench *b)
{
	if (setjmp(b->unwind.env))
		return b->unwind.why == UNWIND_BUG;
	evaluate(b);
	return 0;
}

const EvalValue *
bench_at(const Bench *b, unsigned result, int64_t n)
{
	assert_true(n < b->out.result[result].count);
	return &b->out.result[result].at[n];
}

ExprId
bench_add(Bench *b, ExprId x, ExprId y)
{
	return expr_binary(b->g, OP_ADD, x, y);
}

ExprId
bench_mul(Bench *b, ExprId x, ExprId y)
{
	return expr_binary(b->g, OP_MUL, x, y);
}

void
bench_expect_exact(Bench *b, const double *want, int64_t n)
{
	assert_int_equal(bench_eval(b), EVAL_OK);
	assert_int_equal(b->out.result[0].count, n);
	for (int64_t k = 0; k < n; k++) {
		const EvalValue *v = bench_at(b, 0, k);
		bool is_float = dtype_is_float(b->out.result[0].dtype);
		if ((is_float ? v->re : (double)v->i) != want[k] || v->err != 0 || v->fault)
			fail_msg("element %d: %g or %d +- %g", (int)k, v->re, (int)v->i, v->err);
	}
	assert_int_equal(b->out.fault, 0);
}
