/* parse_test.c: precedence, the shape of the tree, and spans. */
#include <string.h>

#include "parsed.h"

static void
show(const Parsed *p, AstId id, Text *out)
{
	const Ast *t = p->ast;
	const AstNode *n = ast_get(t, id);
	if (n->kind == AST_NUM)
		text_printf(out, "%d", (int)n->num.i);
	else if (n->kind == AST_NAME)
		text_printf(out, "%s", name_text(t->names, n->name));
	else if (n->kind == AST_RANGE)
		text_printf(out, "(in ");
	else if (n->kind == AST_COND)
		text_printf(out, "(? ");
	else if (n->kind == AST_CALL || n->kind == AST_READ || n->kind == AST_APPLY)
		text_printf(out, "(%s%s ", name_text(t->names, n->name), n->flag ? "?" : "");
	else if (n->kind == AST_SUBS || n->kind == AST_ARGS)
		text_printf(out, n->kind == AST_SUBS ? "[" : "{");
	else if (n->kind == AST_NONE)
		text_printf(out, "_");
	else
		text_printf(out, "(%s ", ast_op_text((AstOp)n->op));
	for (uint32_t k = 0; k < n->nkid; k++) {
		text_printf(out, k ? " " : "");
		show(p, ast_kid(t, id, k), out);
	}
	if (n->kind == AST_SUBS || n->kind == AST_ARGS)
		text_printf(out, n->kind == AST_SUBS ? "]" : "}");
	else if (n->nkid)
		text_printf(out, ")");
}

static void
expect_expr(const char *expr, const char *want)
{
	char text[512] = "const A = ";
	strcat(text, expr);
	Parsed p;
	parsed_make(&p, PARSE_TREE, text, strlen(text));
	assert_string_equal(parsed_diags(&p), "");
	Text got;
	text_init(&got, &p.arena);
	show(&p, ast_kid(p.ast, ast_kid(p.ast, p.root, 0), 0), &got);
	assert_string_equal(text_get(&got), want);
	parsed_free(&p);
}

static void
precedence(void **state)
{
	(void)state;
	expect_expr("a + b * c ** d", "(+ a (* b (** c d)))");
	expect_expr("a ** b ** c", "(** a (** b c))");
	expect_expr("-a ** b", "(- (** a b))");
	expect_expr("a ** -b", "(** a (- b))");
	expect_expr("-a * b", "(* (- a) b)");
	expect_expr("!a && b", "(&& (! a) b)");
	expect_expr("!-a", "(! (- a))");
	expect_expr("a - b - c", "(- (- a b) c)");
	expect_expr("a / b div c mod d * e", "(* (mod (div (/ a b) c) d) e)");
	expect_expr("a + b < c - d", "(< (+ a b) (- c d))");
	expect_expr("a < b && c == d || e != f", "(|| (&& (< a b) (== c d)) (!= e f))");
	expect_expr("a || b && c", "(|| a (&& b c))");
	expect_expr("a ?? b || c", "(?? a (|| b c))");
	expect_expr("a ?? b ?? c", "(?? (?? a b) c)");
	expect_expr("a ?? b ? c : d", "(? (?? a b) c d)");
	expect_expr("a ? b ?? c : d ?? e", "(? a (?? b c) (?? d e))");
	expect_expr("a ? b : c ? d : e", "(? a b (? c d e))");
	expect_expr("a ? b ? c : d : e", "(? a (? b c d) e)");
	expect_expr("(a + b) * c", "(* (+ a b) c)");
	expect_expr("a == b ? c : d", "(? (== a b) c d)");
}

static void
primaries(void **state)
{
	(void)state;
	expect_expr("f(a, 2)", "(f {a 2})");
	expect_expr("f()", "(f {})");
	expect_expr("x[i, j + 1]", "(x [i (+ j 1)] _)");
	expect_expr("x?[i]", "(x? [i] _)");
	expect_expr("x ?[i]", "(x? [i] _)");
	expect_expr("sum[j](x)", "(sum [j] _ {x})");
	expect_expr("sum[j in 0..n, k where j < k](x, y)", "(sum [(in j 0 n) k] (< j k) {x y})");
	/* `in` and `where` in a plain subscript are kept: the grammar can't tell */
	expect_expr("x[j in 0..n where j]", "(x [(in j 0 n)] j)");
	expect_expr("x[j in a + 1..b ? c : d]", "(x [(in j (+ a 1) (? b c d))] _)");
}

static void
shape_of(const char *text, const char *want)
{
	Parsed p;
	parsed_make(&p, PARSE_TREE, text, strlen(text));
	assert_string_equal(parsed_diags(&p), "");
	Text got;
	text_init(&got, &p.arena);
	ast_print(p.ast, p.root, &got);
	assert_string_equal(text_get(&got), want);
	parsed_free(&p);
}

static void
spans(void **state)
{
	(void)state;
	shape_of("\nconst  A =\n  -( b )", "FILE  2:1-3:9\n  CONST A  2:1-3:9\n    UNARY -  3:3-3:9\n      NAME b  3:6-3:7\n");
	shape_of("graph f(inout x: f32[N, @g], a: i32) -> (y: f32[N]) where N ~ 8 {\n"
	         "  y: f32[i in 0..N] = x?[i] where i < a else 0\n  (p, q) = h(x)\n  z += 1\n}",
	         "FILE  1:1-5:2\n"
	         "  GRAPH f  1:1-5:2\n"
	         "    ATTRS  1:1-1:1\n"
	         "    PARAMS  1:8-1:37\n"
	         "      PARAM x [] \"f32\" inout  1:9-1:28\n"
	         "        NAME N  1:22-1:23\n"
	         "        DEVICE g  1:25-1:27\n"
	         "      PARAM a \"i32\"  1:30-1:36\n"
	         "    PARAMS  1:41-1:52\n"
	         "      PARAM y [] \"f32\"  1:42-1:51\n"
	         "        NAME N  1:49-1:50\n"
	         "    FACTS  1:53-1:64\n"
	         "      HINT N 8  1:59-1:64\n"
	         "    BLOCK  1:65-5:2\n"
	         "      DEFINE y = \"f32\" [...]  2:3-2:47\n"
	         "        SUBS  2:10-2:19\n"
	         "          RANGE  2:10-2:19\n"
	         "            NAME i  2:10-2:11\n"
	         "            NUM 0  2:15-2:16\n"
	         "            NAME N  2:18-2:19\n"
	         "        READ x optional  2:23-2:28\n"
	         "          SUBS  2:26-2:27\n"
	         "            NAME i  2:26-2:27\n"
	         "          NONE\n"
	         "        BINARY <  2:35-2:40\n"
	         "          NAME i  2:35-2:36\n"
	         "          NAME a  2:39-2:40\n"
	         "        NUM 0  2:46-2:47\n"
	         "      CALLDEF h  3:3-3:16\n"
	         "        NAMES  3:3-3:9\n"
	         "          NAME p  3:4-3:5\n"
	         "          NAME q  3:7-3:8\n"
	         "        ARGS  3:14-3:15\n"
	         "          NAME x  3:14-3:15\n"
	         "      DEFINE z +=  4:3-4:9\n"
	         "        SUBS  4:3-4:4\n"
	         "        NUM 1  4:8-4:9\n"
	         "        NONE\n"
	         "        NONE\n");
	shape_of("@fp(strict)\n@a\ngraph g = grad(f, x)\nuse \"a/b.tex\"\nmesh m[4]\n",
	         "FILE  1:1-5:10\n"
	         "  DERIVED g \"grad\"  1:1-3:21\n"
	         "    ATTRS  1:1-2:3\n"
	         "      ATTR fp  1:1-1:12\n"
	         "        NAME strict  1:5-1:11\n"
	         "      ATTR a  2:1-2:3\n"
	         "    ARGS  3:16-3:20\n"
	         "      NAME f  3:16-3:17\n"
	         "      NAME x  3:19-3:20\n"
	         "  USE \"a/b.tex\"  4:1-4:14\n"
	         "  MESH m 4  5:1-5:10\n");
	shape_of("fn n[i, j](x, y) {\n  m = x; return m\n}",
	         "FILE  1:1-3:2\n"
	         "  FN n  1:1-3:2\n"
	         "    NAMES  1:5-1:11\n"
	         "      NAME i  1:6-1:7\n"
	         "      NAME j  1:9-1:10\n"
	         "    NAMES  1:11-1:17\n"
	         "      NAME x  1:12-1:13\n"
	         "      NAME y  1:15-1:16\n"
	         "    BLOCK  1:18-3:2\n"
	         "      DEFINE m =  2:3-2:8\n"
	         "        SUBS  2:3-2:4\n"
	         "        NAME x  2:7-2:8\n"
	         "        NONE\n"
	         "        NONE\n"
	         "      RETURN  2:10-2:18\n"
	         "        NAME m  2:17-2:18\n");
}

/* Columns count code points, byte offsets bytes. */
static void
columns_count_characters(void **state)
{
	(void)state;
	const char *text = "# \xc3\xa9\xe2\x82\xac\nconst A = $";
	Parsed p;
	parsed_make(&p, PARSE_TREE, text, strlen(text));
	assert_string_equal(parsed_diags(&p), "E0101@2:11");
	assert_int_equal(p.diags.list.at[0].at.begin, strlen(text) - 1);
	parsed_free(&p);
	text = "use \"\xc3\xa9\" $";
	parsed_make(&p, PARSE_TREE, text, strlen(text));
	assert_string_equal(parsed_diags(&p), "E0101@1:9");
	assert_int_equal(p.diags.list.at[0].at.begin, 9);
	parsed_free(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(precedence),
		cmocka_unit_test(primaries),
		cmocka_unit_test(spans),
		cmocka_unit_test(columns_count_characters),
	};
	return cmocka_run_group_tests_name("parse", tests, NULL, NULL);
}
