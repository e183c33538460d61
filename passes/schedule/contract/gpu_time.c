/* gpu_time.c: see gpu_time.h. What was measured was so on GPUs with the figures of the table's first row. */
#include "passes/schedule/contract/gpu_time.h"

static ExprId
num(Graph *g, int64_t v)
{
	return expr_int(g, DT_I64, v);
}

static ExprId
ceil_div(Graph *g, ExprId a, ExprId b)
{
	ExprId one = num(g, 1);
	return expr_binary(g, OP_ADD, expr_binary(g, OP_IDIV, expr_binary(g, OP_SUB, a, one), b), one);
}

ExprId
gpu_waves(Graph *g, ExprId tasks, unsigned each)
{
	ExprId at_once = gpu_fact(g, GPU_PROCESSORS);
	if (each != GPU_ALL) {
		at_once = expr_binary(g, OP_IDIV, expr_binary(g, OP_MUL, at_once, num(g, each)), num(g, GPU_ALL));
		at_once = expr_binary(g, OP_MAX, at_once, num(g, 1));
	}
	return ceil_div(g, tasks, at_once);
}

ExprId
gpu_products_step(Graph *g, unsigned rows, unsigned columns)
{
	int64_t operations = INT64_C(2) * rows * columns * GPU_TERMS;
	return expr_binary(g, OP_IDIV, num(g, operations * GPU_CYCLES_10_US / 10000), gpu_fact(g, GPU_PRODUCTS));
}

ExprId
gpu_step(Graph *g, unsigned rows, unsigned columns, unsigned measured)
{
	ExprId other = expr_binary(g, OP_IDIV, num(g, measured * gpu_row_usual()->fact[GPU_CACHE]), gpu_fact(g, GPU_CACHE));
	return expr_binary(g, OP_MAX, gpu_products_step(g, rows, columns), other);
}

ExprId
gpu_arithmetic(Graph *g, ExprId measured)
{
	ExprId all = expr_binary(g, OP_MUL, measured, num(g, gpu_row_usual()->fact[GPU_ARITHMETIC]));
	return expr_binary(g, OP_IDIV, all, gpu_fact(g, GPU_ARITHMETIC));
}

ExprId
gpu_moving(Graph *g, ExprId bytes)
{
	ExprId cycles = expr_binary(g, OP_MUL, bytes, num(g, GPU_CYCLES_10_US / 1000));
	return expr_binary(g, OP_IDIV, cycles, expr_binary(g, OP_MUL, gpu_fact(g, GPU_MEMORY), num(g, 10)));
}

ExprId
gpu_launch(Graph *g)
{
	ExprId cycles = expr_binary(g, OP_MUL, gpu_fact(g, GPU_LAUNCH), num(g, GPU_CYCLES_10_US));
	return expr_binary(g, OP_IDIV, cycles, num(g, 10000));
}
