/* ast.c: the empty tree, and how operators are spelled. */
#include "frontend/ast.h"

Ast *
ast_new(Arena *a, Names *names, Diags *diags)
{
	Ast *t = ARENA_NEW(a, Ast);
	t->arena = a;
	t->names = names;
	t->diags = diags;
	vec_grow(a, &t->node, 1);
	return t;
}

const char *
ast_op_text(AstOp op)
{
	static const char *const text[] = {
		[AB_NONE] = "", [AB_ADD] = "+", [AB_SUB] = "-", [AB_MUL] = "*", [AB_FDIV] = "/",
		[AB_IDIV] = "div", [AB_IMOD] = "mod", [AB_POW] = "**", [AB_EQ] = "==", [AB_NE] = "!=",
		[AB_LT] = "<", [AB_GT] = ">", [AB_LE] = "<=", [AB_GE] = ">=", [AB_AND] = "&&",
		[AB_OR] = "||", [AB_COALESCE] = "??", [AB_NEG] = "-", [AB_NOT] = "!", [AB_SET] = "=",
		[AB_ADDSET] = "+=", [AB_MAXSET] = "max=", [AB_MINSET] = "min=",
	};
	return text[op];
}
