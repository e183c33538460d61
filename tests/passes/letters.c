/* letters.c: see letters.h. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "letters.h"

ExprId
letters_extent(Case *c, Letters *l, char letter)
{
	ExprId *e = &l->dim[letter - 'a'];
	if (!*e)
		*e = case_dim(c, (char[]){(char)(letter - 'a' + 'A'), 0}, l->size[letter - 'a']);
	return *e;
}

unsigned
letters_extents(Case *c, Letters *l, const char *letters, ExprId *e)
{
	unsigned n = 0;
	for (; letters[n]; n++)
		e[n] = letters_extent(c, l, letters[n]);
	return n;
}

ExprId
letters_index(Case *c, const Letters *l, char letter)
{
	const char *at = strchr(l->out, letter), *term = strchr(l->terms, letter);
	assert_true(at || term);
	return ax(c, at ? (unsigned)(at - l->out) : (unsigned)(strlen(l->out) + (size_t)(term - l->terms)));
}

ExprId
letters_element(Case *c, const Letters *l, TensorId t, const char *letters)
{
	ExprId sub[TG_MAX_RANK];
	unsigned n = 0;
	for (; letters[n]; n++)
		sub[n] = letters_index(c, l, letters[n]);
	return expr_cast(c->g, dtype_info[c->g->tensor.at[t].dtype].arith, expr_read(c->g, t, sub, n, 0));
}

static ExprId
moved_index(Case *c, const Letters *l, char by)
{
	ExprId sum = expr_binary(c->g, OP_ADD, letters_index(c, l, l->terms[0]), letters_index(c, l, by));
	return expr_binary(c->g, OP_SUB, sum, case_int(c, 2));
}

ExprId
letters_moved(Case *c, Letters *l, TensorId t, const char *letters, char by)
{
	ExprId sub[TG_MAX_RANK];
	unsigned n = 0;
	for (; letters[n]; n++)
		sub[n] = letters[n] == l->terms[0] ? moved_index(c, l, by) : letters_index(c, l, letters[n]);
	return expr_cast(c->g, dtype_info[c->g->tensor.at[t].dtype].arith, expr_read(c->g, t, sub, n, 0));
}

ExprId
letters_inside(Case *c, Letters *l, char by)
{
	ExprId at = moved_index(c, l, by), end = letters_extent(c, l, l->terms[0]);
	return expr_binary(c->g, OP_AND, expr_binary(c->g, OP_LE, case_int(c, 0), at), expr_binary(c->g, OP_LT, at, end));
}

const void *
letters_infinite(Case *c, const Letters *l, const char *letters, DType t)
{
	int64_t count = 1;
	for (const char *x = letters; *x; x++)
		count *= l->size[*x - 'a'];
	void *to = arena_alloc(c->arena, (size_t)count * (dtype_info[t].bits / 8));
	for (int64_t i = 0; i < count; i++) {
		uint32_t random = (uint32_t)(i + *letters) * 2654435761u >> 16;
		eval_store(t, to, i, (EvalValue){.re = random % 61 == 0 ? (double)INFINITY : (double)(random % 17) / 4 - 2});
	}
	return to;
}

TensorId
letters_operand(Case *c, Letters *l, const char *letters, const char *name, DType t)
{
	ExprId e[TG_MAX_RANK];
	unsigned n = letters_extents(c, l, letters, e);
	return case_input(c, TENSOR_INPUT, name, t, n, e);
}
