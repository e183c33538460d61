/* tg_read_expr.c: see tg_read.h. */
#include "ir/tg_read.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/tg_types.h"

enum { MAX_DEPTH = 200 };

void
reader_fail(Reader *r, const char *fmt, ...)
{
	char what[200];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	if (!r->error)
		r->error = arena_text(r->g->arena, "line %u: %s", r->line, what);
	r->at = r->end;
}

bool
reader_more(Reader *r)
{
	for (; r->at < r->end; r->at++) {
		if (*r->at == '#')
			while (r->at < r->end && *r->at != '\n')
				r->at++;
		if (r->at == r->end)
			break;
		if (*r->at == '\n')
			r->line++;
		else if (*r->at != ' ' && *r->at != '\t' && *r->at != '\r' && *r->at != ',')
			return true;
	}
	return false;
}

static bool
is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
	       c == '+' || c == '-';
}

static bool
next_is(Reader *r, char c)
{
	return reader_more(r) && *r->at == c;
}

bool
reader_accept(Reader *r, const char *word)
{
	size_t n = strlen(word);
	if (!reader_more(r) || (size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
		return false;
	if (is_word(word[n - 1]) && r->at + n < r->end && is_word(r->at[n]))
		return false;
	r->at += n;
	return true;
}

void
reader_expect(Reader *r, const char *word)
{
	if (!reader_accept(r, word))
		reader_fail(r, "expected '%s'", word);
}

const char *
reader_word(Reader *r, size_t *n)
{
	reader_more(r);
	const char *s = r->at;
	while (r->at < r->end && is_word(*r->at))
		r->at++;
	*n = (size_t)(r->at - s);
	return s;
}

int64_t
reader_int(Reader *r, int64_t lo, int64_t hi)
{
	size_t n;
	const char *s = reader_word(r, &n);
	char *end;
	errno = 0;
	long long v = n ? strtoll(s, &end, 10) : 0;
	if (n == 0 || end != s + n)
		reader_fail(r, "expected a number");
	else if (errno || v < lo || v > hi)
		reader_fail(r, "a number out of range");
	return r->error ? lo : v;
}

uint32_t
reader_id(Reader *r, char sign, uint32_t most)
{
	if (!next_is(r, sign)) {
		reader_fail(r, "expected '%c' and a number", sign);
		return 0;
	}
	r->at++;
	return (uint32_t)reader_int(r, 0, most);
}

static unsigned
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	c = (char)(c | 32);
	return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

static void
add_utf8(Text *t, unsigned c)
{
	char s[3] = {(char)c};
	size_t n = 1;
	if (c >= 0x800) {
		s[0] = (char)(0xe0 | c >> 12);
		s[1] = (char)(0x80 | (c >> 6 & 63));
		s[2] = (char)(0x80 | (c & 63));
		n = 3;
	} else if (c >= 0x80) {
		s[0] = (char)(0xc0 | c >> 6);
		s[1] = (char)(0x80 | (c & 63));
		n = 2;
	}
	text_add(t, s, n);
}

/* After a backslash. */
static void
read_escape(Reader *r, Text *t)
{
	static const char from[] = "\"\\/nrtbf", to[] = "\"\\/\n\r\t\b\f";
	char c = r->at < r->end ? *r->at++ : 0;
	const char *k = c ? strchr(from, c) : NULL;
	if (k) {
		text_add(t, &to[k - from], 1);
		return;
	}
	unsigned v = 0;
	for (int d = 0; c == 'u' && d < 4; d++) {
		unsigned h = r->at < r->end ? hex_digit(*r->at++) : 16;
		v = h < 16 ? v * 16 + h : 0x10000;
	}
	if (c != 'u' || v == 0 || v > 0xffff)
		reader_fail(r, "an escape that means nothing");
	else
		add_utf8(t, v);
}

const char *
reader_quoted(Reader *r, size_t *n)
{
	Text t;
	text_init(&t, r->g->arena);
	reader_expect(r, "\"");
	while (!r->error && r->at < r->end && *r->at != '"') {
		char c = *r->at++;
		if (c == '\\')
			read_escape(r, &t);
		else if ((unsigned char)c < ' ')
			reader_fail(r, "a control character in quotes");
		else
			text_add(&t, &c, 1);
	}
	if (r->at == r->end)
		reader_fail(r, "no closing quote");
	else
		r->at++;
	*n = t.n;
	return text_get(&t);
}

Name
reader_name(Reader *r)
{
	size_t n;
	const char *s;
	if (next_is(r, '"'))
		s = reader_quoted(r, &n);
	else {
		s = reader_word(r, &n);
		if (n == 0)
			reader_fail(r, "expected a name");
		if (n == 1 && *s == '_')
			return 0;
	}
	return r->error || n == 0 ? 0 : name_of(r->g->names, s, n);
}

DType
reader_dtype(Reader *r)
{
	size_t n;
	const char *s = reader_word(r, &n);
	DType t = dtype_named(s, n);
	if (t == DT_NONE)
		reader_fail(r, "expected a type");
	return t;
}

/* --- expressions --- */

static ExprId read_expr(Reader *r, unsigned depth);

/* A word and its type make a constant. */
static ExprId
read_const(Reader *r, const char *s, size_t n, DType t)
{
	Expr e = {.op = OP_CONST};
	char *end;
	errno = 0;
	if (dtype_is_float(t)) {
		e.imm.f = n == 3 && memcmp(s, "nan", 3) == 0 ? NAN : strtod(s, &end);
		if (n != 3 || memcmp(s, "nan", 3) != 0)
			errno = end == s + n && errno != EINVAL ? 0 : EINVAL;
	} else {
		bool bits = t == DT_U64 && *s != '-';
		e.imm.i = bits ? (int64_t)strtoull(s, &end, 10) : strtoll(s, &end, 10);
		if (end != s + n)
			errno = EINVAL;
	}
	if (errno || t == DT_C64 || t == DT_BOOL || !tg_is_value(t, &e)) {
		reader_fail(r, "not a constant of type %s", dtype_info[t].text);
		return 0;
	}
	return dtype_is_float(t) ? expr_float(r->g, t, e.imm.f) : expr_int(r->g, t, e.imm.i);
}

static ExprId
read_word(Reader *r)
{
	size_t n;
	const char *s = reader_word(r, &n);
	DType t = DT_I64;
	bool typed = n && r->at < r->end && *r->at == ':';
	if (typed) {
		r->at++;
		t = reader_dtype(r);
	}
	if (r->error)
		return 0;
	if (n == 0)
		reader_fail(r, "expected an expression");
	else if (n == 3 && memcmp(s, "acc", n) == 0 && typed)
		return expr_make(r->g, OP_ACC, t, 0, 0, NULL, 0);
	else if (n == 7 && memcmp(s, "touched", n) == 0)
		return expr_make(r->g, OP_TOUCHED, DT_BOOL, 0, 0, NULL, 0);
	else if (!typed && ((n == 4 && memcmp(s, "true", n) == 0) || (n == 5 && memcmp(s, "false", n) == 0)))
		return expr_int(r->g, DT_BOOL, n == 4);
	else
		return read_const(r, s, n, t);
	return 0;
}

static ExprId
read_dim(Reader *r)
{
	Graph *g = r->g;
	r->at++;
	if (r->at < r->end && *r->at >= '0' && *r->at <= '9') {
		DimId d = (DimId)reader_int(r, 1, (int64_t)g->dim.n - 1);
		return r->error ? 0 : expr_dim(g, d);
	}
	Name name = reader_name(r);
	for (DimId d = 1; d < g->dim.n && name; d++)
		if (g->dim.at[d].name == name)
			return expr_dim(g, d);
	reader_fail(r, "no such dim");
	return 0;
}

static ExprId
read_tensor(Reader *r, unsigned depth)
{
	Graph *g = r->g;
	ExprId sub[TG_MAX_RANK];
	unsigned n = 0;
	AccessId access = 0;
	TensorId t = reader_id(r, '%', g->tensor.n - 1);
	if (t == 0)
		reader_fail(r, "no such tensor");
	reader_expect(r, "[");
	while (!r->error && !next_is(r, ']') && n < TG_MAX_RANK)
		sub[n++] = read_expr(r, depth + 1);
	reader_expect(r, "]");
	if (r->at < r->end && *r->at == '!')
		access = reader_id(r, '!', UINT32_MAX);
	return r->error ? 0 : expr_read(g, t, sub, n, access);
}

static Op
read_op(Reader *r)
{
	const char *s = r->at;
	while (r->at < r->end && (unsigned char)*r->at > ' ' && !strchr(":~,()", *r->at))
		r->at++;
	Op op = op_named(s, (size_t)(r->at - s));
	if (op == OP_NONE || !(op_info[op].level & LEVEL_G) || op_info[op].cls != CLASS_MAP) {
		reader_fail(r, "expected an operation");
		return OP_NONE;
	}
	return op;
}

static ExprId
read_operation(Reader *r, unsigned depth)
{
	Graph *g = r->g;
	ExprId arg[TG_MAX_AXES];
	DType type[TG_MAX_AXES], t = DT_NONE;
	unsigned n = 0;
	uint32_t ref = 0;
	bool is_free = false;
	r->at++;
	reader_more(r);
	Op op = read_op(r);
	if (r->at < r->end && *r->at == '~') {
		r->at++;
		ref = reader_dtype(r);
		if (!r->error && !(op_info[op].flags & F_NARROW))
			reader_fail(r, "%s is narrowed", op_info[op].text);
	}
	if (r->at < r->end && *r->at == ':') {
		r->at++;
		t = reader_dtype(r);
		is_free = r->at < r->end && *r->at == '?';
		r->at += is_free;
	}
	for (; !r->error && !next_is(r, ')') && n < TG_MAX_AXES; n++) {
		arg[n] = read_expr(r, depth + 1);
		type[n] = r->error ? DT_NONE : (DType)expr_get(g, arg[n])->dtype;
	}
	reader_expect(r, ")");
	if (r->error)
		return 0;
	if (op_info[op].arity >= 0 && n != (unsigned)op_info[op].arity)
		reader_fail(r, "%s with %u operands", op_info[op].text, n);
	t = t == DT_NONE ? tg_result_type(op, type, n) : t;
	if (t == DT_NONE)
		reader_fail(r, "%s needs a type", op_info[op].text);
	if (is_free && op != OP_CAST)
		reader_fail(r, "%s is free", op_info[op].text);
	return r->error ? 0 : expr_make(g, op, t, is_free ? 1 : ref, 0, arg, n);
}

static ExprId
read_expr(Reader *r, unsigned depth)
{
	if (depth > MAX_DEPTH)
		reader_fail(r, "nested too deep");
	else if (!reader_more(r))
		reader_fail(r, "expected an expression");
	if (r->error)
		return 0;
	uint32_t id;
	switch (*r->at) {
	case '(':
		return read_operation(r, depth);
	case '%':
		return read_tensor(r, depth);
	case '$':
		return read_dim(r);
	case '@':
		id = reader_id(r, '@', UINT32_MAX);
		return r->error ? 0 : expr_axis(r->g, id);
	case '?':
		id = reader_id(r, '?', UINT32_MAX);
		return r->error ? 0 : expr_ivar(r->g, id);
	case '^':
		id = reader_id(r, '^', UINT32_MAX);
		if (!r->error && id >= r->let.n)
			reader_fail(r, "^%u is not named before", id);
		return r->error ? 0 : r->let.at[id];
	}
	return read_word(r);
}

ExprId
reader_expr(Reader *r)
{
	return read_expr(r, 0);
}
