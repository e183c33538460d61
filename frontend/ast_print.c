/* ast_print.c: --emit=tokens and --emit=ast. Depth is bounded by the parser, so printing recurses. */
#include <string.h>

#include "frontend/lex.h"
#include "frontend/parser.h"

static const char *const kind_text[AST_COUNT] = {
	[AST_NONE] = "NONE",
#define AST(id, kids) [AST_##id] = #id,
#include "frontend/ast.def"
};

static void
print_word(const Ast *t, Text *out, Name word)
{
	const char *s = name_text(t->names, word);
	text_add(out, " ", 1);
	text_json(out, s, strlen(s));
}

static void
print_number(Text *out, const AstNode *n)
{
	text_add(out, " ", 1);
	if (n->is_int)
		text_printf(out, "%lld", (long long)n->num.i);
	else
		text_double(out, n->num.f);
}

/* What a node says beside its children. */
static void
print_fields(const Ast *t, const AstNode *n, Text *out)
{
	if (n->name)
		text_printf(out, " %s", name_text(t->names, n->name));
	if (n->op && n->kind == AST_PARAM)
		text_printf(out, " []");
	else if (n->op)
		text_printf(out, " %s", ast_op_text((AstOp)n->op));
	switch ((AstKind)n->kind) {
	case AST_DERIVED: case AST_USE: case AST_PARAM:
		print_word(t, out, n->num.text);
		break;
	case AST_DEFINE:
		if (n->num.text)
			print_word(t, out, n->num.text);
		break;
	case AST_NUM:
		print_number(out, n);
		break;
	case AST_MESH: case AST_HINT:
		text_printf(out, " %lld", (long long)n->num.i);
		break;
	case AST_NONE: case AST_FILE: case AST_GRAPH: case AST_FN: case AST_CONST: case AST_ATTRS:
	case AST_ATTR: case AST_NAMES: case AST_PARAMS: case AST_DEVICE: case AST_FACTS: case AST_BLOCK:
	case AST_CALLDEF: case AST_RETURN: case AST_NAME: case AST_CALL: case AST_READ: case AST_APPLY:
	case AST_SUBS: case AST_RANGE: case AST_ARGS: case AST_BINARY: case AST_UNARY: case AST_COND:
		break;
	}
	if (n->flag)
		text_printf(out, n->kind == AST_PARAM ? " inout" : n->kind == AST_READ ? " optional"
		                 : n->kind == AST_DEFINE ? " [...]" : " incomplete");
}

static void
print_node(const Ast *t, AstId id, Text *out, int depth)
{
	const AstNode *n = ast_get(t, id);
	text_printf(out, "%*s%s", depth * 2, "", kind_text[n->kind]);
	if (id) {
		print_fields(t, n, out);
		text_printf(out, "  %u:%u-%u:%u", n->at.line, n->at.col, n->at.end_line, n->at.end_col);
	}
	text_printf(out, "\n");
	for (uint32_t k = 0; k < n->nkid; k++)
		print_node(t, ast_kid(t, id, k), out, depth + 1);
}

void
ast_print(const Ast *t, AstId root, Text *out)
{
	print_node(t, root, out, 0);
}

static void
print_token(const Ast *t, const Token *k, Text *out)
{
	text_printf(out, "%u:%u %s", k->at.line, k->at.col, token_text(k->kind));
	if (k->kind == T_ID || k->kind == T_STR)
		print_word(t, out, k->value.name);
	if (k->kind == T_NUM && k->value.number.is_int)
		text_printf(out, " %lld", (long long)k->value.number.value.i);
	else if (k->kind == T_NUM)
		text_add(out, " ", 1), text_double(out, k->value.number.value.f);
	text_add(out, "\n", 1);
}

void
lex_print(Ast *t, FileId file, Text *out)
{
	if (!source_check(t->diags, file))
		return;
	Lex x;
	lex_open(&x, t, file);
	for (;;) {
		Token k = lex_token(&x);
		if (k.kind == T_END)
			break;
		print_token(t, &k, out);
	}
	lex_close(&x);
}
