/* format_test.c: texts and what they are laid out to. Every result must also stay as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "frontend/frontend.h"

static Unwind unwind;
static Arena arena;

static const char *
lay(const char *text)
{
	Diags d;
	size_t n;
	diags_init(&d, &arena);
	return frontend_layout(&arena, names_new(&arena), &d, diags_add_file(&d, "t.tex", text, strlen(text)), &n);
}

static void
expect(const char *text, const char *want)
{
	arena_init(&arena, &host_default()->memory, &unwind);
	if (setjmp(unwind.env))
		fail_msg("%s", unwind.text);
	const char *out = lay(text);
	if (!want)
		assert_null(out);
	if (want) {
		assert_non_null(out);
		assert_string_equal(out, want);
		assert_string_equal(lay(out), want);
	}
	arena_free(&arena);
}

static void
blanks(void **state)
{
	(void)state;
	expect("", "");
	expect("\n\n  \n", "");
	expect("\xef\xbb\xbf" "const A=1\r\n", "const A = 1\n");
	expect("const A=- 1*( 2+x )**-3 div 4 mod(5)\n", "const A = -1 * (2 + x) ** -3 div 4 mod (5)\n");
	expect("const A = a<b&&!c||d==e ? f:g ?? h", "const A = a < b && !c || d == e ? f : g ?? h\n");
	expect("const A = a - -b + !c", "const A = a - -b + !c\n");
	expect("use   \"std\" ; const A=1;;const B=2", "use \"std\"\nconst A = 1\nconst B = 2\n");
	expect("mesh g [ 4 ]", "mesh g[4]\n");
	expect("const M = max ( a , b ) >= 1", "const M = max(a, b) >= 1\n");
}

static void
subscripts(void **state)
{
	(void)state;
	expect("const A = x [ 2 * i + r , j div P , ( i + a ) mod N ]", "const A = x[2*i + r, j div P, (i + a) mod N]\n");
	expect("const A = x ?[ i - 1 , 2*i mod 3 ]", "const A = x?[i - 1, 2 * i mod 3]\n");
	expect("const A = x[k * ( C div G ) + c, 2 * - i]", "const A = x[k*(C div G) + c, 2 * -i]\n");
	expect("const A = sum [ j in 0 .. N - 1 where 2*j < N ] ( 2*x[ j ] )",
	       "const A = sum[j in 0..N-1 where 2 * j < N](2 * x[j])\n");
	expect("const A = sum[j in - 1 .. N div 2 + 1, k in a[i] .. a[i+1]*2](x)",
	       "const A = sum[j in -1..N div 2 + 1, k in a[i]..a[i + 1]*2](x)\n");
}

static void
items(void **state)
{
	(void)state;
	expect("@ fp ( strict ) graph g ( x : f32 [ N , 2 * M ] , inout y : i4 ) -> ( ) { }",
	       "@fp(strict)\ngraph g(x: f32[N, 2*M], inout y: i4) -> () {\n}\n");
	expect("graph g(x: f32[@g, N]) -> (y: f32) where N>=1,M~4096 { y=x[0,0] }",
	       "graph g(x: f32[@g, N]) -> (y: f32)\n  where N >= 1, M ~ 4096\n{\n  y = x[0, 0]\n}\n");
	expect("graph b=grad(f,x)", "graph b = grad(f, x)\n");
	expect("fn f [ j ] ( x ){ m=mean[j](x) ; return x-m }", "fn f[j](x) {\n  m = mean[j](x)\n  return x - m\n}\n");
	expect("graph g() -> () {\n\n\n  (a,b)=h ( x )\n\n\n  t:bf16 [i]=1 where i<2 else 0\n  u : f32 = 1\n  a[b[t] in 0..V]+=1\n"
	       "  m[i] max=1\n\n}",
	       "graph g() -> () {\n  (a, b) = h(x)\n\n  t: bf16[i] = 1 where i < 2 else 0\n  u: f32     = 1\n"
	       "  a[b[t] in 0..V] += 1\n  m[i] max= 1\n}\n");
}

static void
alignment(void **state)
{
	(void)state;
	expect("fn f(x)=1\nfn gg(x)   =2\nconst A=3\nconst BB=4\n\nconst C=5\n",
	       "fn f(x)  = 1\nfn gg(x) = 2\nconst A  = 3\nconst BB = 4\n\nconst C = 5\n");
	expect("const A=3\n# between\nconst BBB=4\n", "const A = 3\n# between\nconst BBB = 4\n");
	expect("const A=3\nconst ABCDEFGHIJKL=4\n", "const A = 3\nconst ABCDEFGHIJKL = 4\n");
	expect("const A=3 # a\nconst BB=4#bb\nconst C=5\n", "const A  = 3  # a\nconst BB = 4  #bb\nconst C  = 5\n");
	expect("const A=3  # a\nconst B=44 # b\n", "const A = 3   # a\nconst B = 44  # b\n");
}

static void
comments(void **state)
{
	(void)state;
	expect("#  a  \n\n\n# b\nuse \"std\" # c\n# d", "#  a\n\n# b\nuse \"std\"  # c\n# d\n");
	expect("graph g() -> () { # head\n# first\n\n  y = 1; # one\n # last\n} # end\n",
	       "graph g() -> () {  # head\n  # first\n\n  y = 1  # one\n  # last\n}  # end\n");
	expect("graph g(x: f32[N],   # the input\n     w: f32[N]   # the weight\n  ) -> (y: f32)\n{ y = 1 }",
	       "graph g(x: f32[N],  # the input\n    w: f32[N]  # the weight\n  ) -> (y: f32)\n{\n  y = 1\n}\n");
	expect("const A = a # first\n+ f(b,\n# own\n c)\n", "const A = a  # first\n  + f(b,\n    # own\n    c)\n");
}

static void
long_lines(void **state)
{
	(void)state;
#define A30 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B30 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	expect("const X = " A30 " + " B30 " * 2 - " A30 " + " B30 " + c",
	       "const X = " A30 " + " B30 " * 2\n          - " A30 " + " B30 " + c\n");
	expect("const X = p < q ? " A30 " + " B30 " : r < s ? " B30 " : " A30,
	       "const X = p < q ? " A30 " + " B30 "\n                : r < s ? " B30 "\n                : " A30 "\n");
	expect("const X = 2 * f(" A30 ", " B30 ", " A30 ", d) / 3",
	       "const X = 2 * f(" A30 ", " B30 ",\n                " A30 ", d) / 3\n");
	expect("graph g() -> () {\n  y[i] = " A30 " + " B30 " where " A30 " < " B30 " else 0\n}",
	       "graph g() -> () {\n  y[i] = " A30 " + " B30 "\n    where " A30 " < " B30 " else 0\n}\n");
	expect("graph g(" A30 ": f32[N], " B30 ": f32[N]) -> (" A30 ": f32) { }",
	       "graph g(" A30 ": f32[N], " B30 ": f32[N])\n  -> (" A30 ": f32)\n{\n}\n");
	expect("graph g(" A30 ": f32[N], " B30 ": f32[N], " A30 "2: f32) -> () { }",
	       "graph g(" A30 ": f32[N], " B30 ": f32[N],\n        " A30 "2: f32)\n  -> ()\n{\n}\n");
}

static void
errors_are_left_alone(void **state)
{
	(void)state;
	expect("const A = ", NULL);
	expect("graph g() -> () {", NULL);
	expect("const A = 1 $ 2", NULL);
	expect("\\documentclass{article}", NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blanks),   cmocka_unit_test(subscripts), cmocka_unit_test(items),
		cmocka_unit_test(alignment), cmocka_unit_test(comments),  cmocka_unit_test(long_lines),
		cmocka_unit_test(errors_are_left_alone),
	};
	return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
