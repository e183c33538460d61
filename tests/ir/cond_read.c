/* cond_read.c: see cond_read.h. Precedence climbing over a token at a time. */
#include "cond_read.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct {
	Graph *g;
	const char *at;
	bool bad;
} Reader;

typedef struct {
	const char *text;
	unsigned level;
	Op op;
	bool swap;
} Infix;

static const Infix infix[] = {
	{"||", 1, OP_OR, false}, {"&&", 2, OP_AND, false}, {"==", 3, OP_EQ, false}, {"!=", 3, OP_NE, false},
	{"<=", 3, OP_LE, false}, {">=", 3, OP_LE, true}, {"<", 3, OP_LT, false}, {">", 3, OP_LT, true},
	{"+", 4, OP_ADD, false}, {"-", 4, OP_SUB, false}, {"*", 5, OP_MUL, false}, {"div", 5, OP_IDIV, false},
	{"mod", 5, OP_IMOD, false},
};

static void
blanks(Reader *r)
{
	while (*r->at == ' ')
		r->at++;
}

static bool
accept(Reader *r, const char *s)
{
	blanks(r);
	if (strncmp(r->at, s, strlen(s)) != 0)
		return false;
	r->at += strlen(s);
	return true;
}

static void
expect(Reader *r, const char *s)
{
	if (!accept(r, s) && !r->bad) {
		fprintf(stderr, "expected '%s' at '%s'\n", s, r->at);
		r->bad = true;
	}
}

static ExprId read_level(Reader *r, unsigned level);

static ExprId
read_dim(Reader *r, const char *name, size_t n)
{
	Name want = name_of(r->g->names, name, n);
	for (uint32_t d = 1; d < r->g->dim.n; d++)
		if (r->g->dim.at[d].name == want)
			return expr_dim(r->g, d);
	Dim d = {.name = want};
	vec_push(r->g->arena, &r->g->dim, d);
	return expr_dim(r->g, r->g->dim.n - 1);
}

static ExprId
read_call(Reader *r, Op op)
{
	ExprId a = read_level(r, 1), b = 0, c = 0;
	if (op != OP_ABS) {
		expect(r, ",");
		b = read_level(r, 1);
	}
	if (op == OP_SELECT) {
		expect(r, ",");
		c = read_level(r, 1);
	}
	expect(r, ")");
	if (r->bad)
		return expr_int(r->g, DT_I64, 0);
	return c ? expr_select(r->g, a, b, c) : b ? expr_binary(r->g, op, a, b) : expr_unary(r->g, op, a);
}

static ExprId
read_tensor(Reader *r, bool second)
{
	Graph *g = r->g;
	while (g->tensor.n < 3) {
		ExprId extent = expr_int(g, DT_I64, 1000);
		tensor_new(g, TENSOR_INPUT, 0, (Span){0}, DT_I64, 1, &extent);
	}
	ExprId sub = read_level(r, 1);
	expect(r, "]");
	return expr_read(g, second ? 2 : 1, &sub, 1, 0);
}

static ExprId
read_name(Reader *r)
{
	const char *name = r->at;
	while (isalnum((unsigned char)*r->at))
		r->at++;
	size_t n = (size_t)(r->at - name);
	if (n == 4 && memcmp(name, "true", n) == 0)
		return expr_int(r->g, DT_BOOL, 1);
	if (n == 5 && memcmp(name, "false", n) == 0)
		return expr_int(r->g, DT_BOOL, 0);
	if (*r->at == '(') {
		r->at++;
		return read_call(r, name[1] == 'i' ? OP_MIN : name[1] == 'a' ? OP_MAX : name[1] == 'b' ? OP_ABS : OP_SELECT);
	}
	if (*r->at == '[') {
		r->at++;
		return read_tensor(r, *name == 'u');
	}
	if (isupper((unsigned char)*name))
		return read_dim(r, name, n);
	return expr_ivar(r->g, (uint32_t)(*name - 'a') + (n > 1 ? 32u * (uint32_t)name[1] : 0));
}

static ExprId
read_primary(Reader *r)
{
	blanks(r);
	if (accept(r, "(")) {
		ExprId e = read_level(r, 1);
		expect(r, ")");
		return e;
	}
	if (accept(r, "!"))
		return expr_unary(r->g, OP_NOT, read_primary(r));
	if (accept(r, "-"))
		return expr_unary(r->g, OP_NEG, read_primary(r));
	if (isdigit((unsigned char)*r->at)) {
		int64_t v = 0;
		for (; isdigit((unsigned char)*r->at); r->at++)
			v = v * 10 + (*r->at - '0');
		return expr_int(r->g, DT_I64, v);
	}
	if (isalpha((unsigned char)*r->at))
		return read_name(r);
	expect(r, "an operand");
	return expr_int(r->g, DT_I64, 0);
}

static ExprId
read_level(Reader *r, unsigned level)
{
	ExprId a = read_primary(r);
	for (bool more = true; more && !r->bad;) {
		more = false;
		for (size_t k = 0; k < sizeof infix / sizeof *infix && !more; k++) {
			const char *back = r->at;
			if (infix[k].level < level || !accept(r, infix[k].text)) {
				r->at = back;
				continue;
			}
			ExprId b = read_level(r, infix[k].level + 1);
			a = infix[k].swap ? expr_binary(r->g, infix[k].op, b, a) : expr_binary(r->g, infix[k].op, a, b);
			more = true;
		}
	}
	return a;
}

ExprId
cond_read(Graph *g, const char *text)
{
	Reader r = {g, text, false};
	ExprId e = read_level(&r, 1);
	blanks(&r);
	if (*r.at && !r.bad)
		fprintf(stderr, "'%s' is left over\n", r.at);
	return r.bad || *r.at ? 0 : e;
}

bool
facts_read(Graph *g, Facts *f, const char *text)
{
	Reader r = {g, text, false};
	for (blanks(&r); *r.at && !r.bad; blanks(&r)) {
		ExprId e = read_level(&r, 1);
		if (accept(&r, "in ")) {
			ExprId lo = read_level(&r, 1);
			expect(&r, "..");
			facts_push_range(f, e, lo, read_level(&r, 1));
		} else
			facts_push(f, e);
		blanks(&r);
		if (*r.at)
			expect(&r, ";");
	}
	return !r.bad;
}
