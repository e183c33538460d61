/* letters.c: see letters.h. */
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

TensorId
letters_operand(Case *c, Letters *l, const char *letters, const char *name, DType t)
{
	ExprId e[TG_MAX_RANK];
	unsigned n = letters_extents(c, l, letters, e);
	return case_input(c, TENSOR_INPUT, name, t, n, e);
}
