/* ast_equal.c: two trees compared without their spans. Depth is bounded by the parser. Both must have
 * been made with the same table of names. */
#include <string.h>

#include "frontend/format.h"

static bool
same_number(const AstNode *x, const AstNode *y)
{
	if (x->is_int != y->is_int)
		return false;
	if (x->wide != y->wide)
		return false;
	return x->is_int ? x->num.i == y->num.i : memcmp(&x->num.f, &y->num.f, sizeof x->num.f) == 0;
}

/* What the node holds in num. */
static bool
same_content(const AstNode *x, const AstNode *y)
{
	switch ((AstKind)x->kind) {
	case AST_NUM:
		return same_number(x, y);
	case AST_DERIVED: case AST_USE: case AST_PARAM: case AST_DEFINE:
		return x->num.text == y->num.text;
	case AST_MESH: case AST_HINT:
		return x->num.i == y->num.i;
	case AST_NONE: case AST_FILE: case AST_GRAPH: case AST_FN: case AST_CONST: case AST_ATTRS:
	case AST_ATTR: case AST_NAMES: case AST_PARAMS: case AST_DEVICE: case AST_FACTS: case AST_BLOCK:
	case AST_CALLDEF: case AST_RETURN: case AST_NAME: case AST_CALL: case AST_READ: case AST_APPLY:
	case AST_SUBS: case AST_RANGE: case AST_ARGS: case AST_BINARY: case AST_UNARY: case AST_COND:
		return true;
	}
	return false;
}

bool
ast_equal(const Ast *a, AstId x, const Ast *b, AstId y)
{
	const AstNode *m = ast_get(a, x), *n = ast_get(b, y);
	if (!x || !y)
		return x == y;
	if (m->kind != n->kind || m->op != n->op || m->flag != n->flag || m->nkid != n->nkid || m->name != n->name
	    || !same_content(m, n))
		return false;
	for (uint32_t k = 0; k < m->nkid; k++)
		if (!ast_equal(a, ast_kid(a, x, k), b, ast_kid(b, y, k)))
			return false;
	return true;
}
