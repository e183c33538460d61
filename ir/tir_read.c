/* tir_read.c: reads the text form of tile IR (ir/README.md). Checks the syntax, and of the rules only
 * that ids ascend and operands are earlier ids; whether it is a kernel is tir_verify's to say. Any
 * text gives a kernel or a message; memory is in proportion to the text. */
#include "ir/tir.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/tir_inside.h"

/* How far ids may run ahead of the text: kernels lose instructions. */
enum { ID_SLACK = 65536 };

typedef struct {
	ValId owner;
	uint16_t nth;
} Part;

typedef struct {
	TirKernel *k;
	const char *at, *end;
	uint32_t line;
	uint64_t max_id;
	VEC(Part) part;    /* the open regions but the body */
	VEC(ValId) operand;
	const char *error;
} Reader;

static bool
fail(Reader *r, const char *what)
{
	if (!r->error)
		r->error = arena_text(r->k->arena, "line %" PRIu32 ": %s", r->line, what);
	return false;
}

/* --- tokens --- */

static void
skip(Reader *r)
{
	for (; r->at < r->end; r->at++) {
		if (*r->at == '#')
			while (r->at < r->end && *r->at != '\n')
				r->at++;
		if (r->at == r->end)
			return;
		if (*r->at == '\n')
			r->line++;
		else if (*r->at != ' ' && *r->at != '\t' && *r->at != '\r')
			return;
	}
}

static bool
take(Reader *r, char c)
{
	skip(r);
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

static bool
expect(Reader *r, char c)
{
	char what[] = "'?' was expected";
	what[1] = c;
	return take(r, c) || fail(r, what);
}

static bool
is_word_char(char c)
{
	return c == '_' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
}

static size_t
take_word(Reader *r, const char **word)
{
	skip(r);
	*word = r->at;
	while (r->at < r->end && is_word_char(*r->at))
		r->at++;
	return (size_t)(r->at - *word);
}

static bool
take_this_word(Reader *r, const char *word)
{
	const char *s;
	size_t n = take_word(r, &s);
	if (n == strlen(word) && memcmp(s, word, n) == 0)
		return true;
	r->at = s;
	return false;
}

static bool
read_unsigned(Reader *r, uint64_t max, uint64_t *v)
{
	skip(r);
	const char *first = r->at;
	*v = 0;
	for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
		uint64_t digit = (uint64_t)(*r->at - '0');
		if (digit > max || *v > (max - digit) / 10)
			return fail(r, "a number is too large");
		*v = *v * 10 + digit;
	}
	return r->at > first || fail(r, "a number was expected");
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The character after a backslash, as text_json writes it; -1 when it is none. */
static int
read_escape(Reader *r)
{
	char c = r->at < r->end ? *r->at++ : 0;
	if (c == 'n' || c == '"' || c == '\\')
		return c == 'n' ? '\n' : c;
	if (c != 'u' || r->end - r->at < 4 || r->at[0] != '0' || r->at[1] != '0')
		return -1;
	int high = hex_digit(r->at[2]), low = hex_digit(r->at[3]);
	r->at += 4;
	return high < 0 || low < 0 || high * 16 + low == 0 || high > 7 ? -1 : high * 16 + low;
}

static bool
read_quoted(Reader *r, Name *name)
{
	Text t;
	text_init(&t, r->k->arena);
	while (r->at < r->end && *r->at != '"') {
		char c = *r->at++;
		if (c == 0 || c == '\n')
			return fail(r, "a name ends at its line's end");
		if (c == '\\') {
			int e = read_escape(r);
			if (e < 0)
				return fail(r, "no such escape in a name");
			c = (char)e;
		}
		text_add(&t, &c, 1);
	}
	*name = name_of(r->k->names, text_get(&t), t.n);
	return expect(r, '"');
}

static bool
read_name(Reader *r, Name *name)
{
	const char *s;
	if (take(r, '"'))
		return read_quoted(r, name);
	size_t n = take_word(r, &s);
	*name = name_of(r->k->names, s, n);
	return n > 0 || fail(r, "a name was expected");
}

static bool
read_dtype(Reader *r, DType *t)
{
	const char *s;
	size_t n = take_word(r, &s);
	*t = dtype_named(s, n);
	return *t != DT_NONE || fail(r, "a type was expected");
}

/* f32, f32x16 */
static bool
read_type(Reader *r, TirType *type)
{
	const char *s;
	size_t n = take_word(r, &s), lanes_at = n;
	for (size_t i = 0; i < n; i++)
		if (s[i] == 'x')
			lanes_at = i;
	DType t = dtype_named(s, lanes_at);
	uint32_t lanes = 0;
	for (size_t i = lanes_at + 1; i < n; i++) {
		if (s[i] < '0' || s[i] > '9' || lanes > TIR_MAX_BLOCK_LANES * TIR_MAX_CLUSTER)
			return fail(r, "a type has a wrong number of lanes");
		lanes = lanes * 10 + (uint32_t)(s[i] - '0');
	}
	*type = (TirType){t, lanes};
	return (t != DT_NONE && lanes <= TIR_MAX_BLOCK_LANES * TIR_MAX_CLUSTER && (lanes_at == n) == (lanes == 0)) ||
	       fail(r, "a type was expected");
}

/* --- constants --- */

/* The C library reads numbers in the host's locale. */
static bool
parse_double(const char *s, size_t n, double *v)
{
	char text[160], *end;
	const char *point = localeconv()->decimal_point;
	size_t at = 0, width = strlen(point);
	for (size_t i = 0; i < n; i++) {
		if (at + width + 1 >= sizeof text)
			return false;
		if (s[i] == '.') {
			memcpy(text + at, point, width);
			at += width;
		} else {
			text[at++] = s[i];
		}
	}
	text[at] = 0;
	*v = strtod(text, &end);
	return end == text + at;
}

static bool
read_float(Reader *r, int64_t *imm)
{
	skip(r);
	const char *s = r->at;
	while (r->at < r->end && (is_word_char(*r->at) || *r->at == '-' || *r->at == '+'))
		r->at++;
	size_t n = (size_t)(r->at - s), sign = n && *s == '-';
	double v;
	if (n == 3 && memcmp(s, "nan", 3) == 0)
		v = (double)NAN;
	else if (n == 3 + sign && memcmp(s + sign, "inf", 3) == 0)
		v = sign ? -(double)INFINITY : (double)INFINITY;
	else if (n == sign || s[sign] < '0' || s[sign] > '9' || !parse_double(s, n, &v))
		return fail(r, "a float was expected");
	memcpy(imm, &v, sizeof *imm);
	return true;
}

static bool
read_int(Reader *r, DType t, int64_t *imm)
{
	uint64_t v;
	if (t == DT_BOOL) {
		*imm = take_this_word(r, "true");
		return *imm || take_this_word(r, "false") || fail(r, "true or false was expected");
	}
	bool negative = take(r, '-');
	uint64_t max = t == DT_U64 ? UINT64_MAX : (uint64_t)INT64_MAX + negative;
	if (negative && t == DT_U64)
		return fail(r, "a negative u64");
	if (!read_unsigned(r, max, &v))
		return false;
	*imm = (int64_t)(negative ? 0 - v : v);
	return true;
}

/* --- instructions --- */

static bool
read_id(Reader *r, uint64_t *id)
{
	return expect(r, '%') && read_unsigned(r, UINT32_MAX, id);
}

/* Whether the '%' ahead begins the next instruction rather than an operand. */
static bool
begins_inst(const Reader *r)
{
	const char *s = r->at + 1;
	while (s < r->end && *s >= '0' && *s <= '9')
		s++;
	while (s < r->end && (*s == ' ' || *s == '\t'))
		s++;
	return s < r->end && (*s == ':' || *s == '=');
}

static bool
read_operands(Reader *r, ValId below)
{
	r->operand.n = 0;
	skip(r);
	if (r->at == r->end || *r->at != '%' || begins_inst(r))
		return true;
	do {
		uint64_t id;
		if (!read_id(r, &id))
			return false;
		if (id == 0 || id >= below)
			return fail(r, "an operand does not come before its use");
		vec_push(r->k->arena, &r->operand, (ValId)id);
	} while (take(r, ','));
	return true;
}

static bool
read_op(Reader *r, Op *op)
{
	skip(r);
	const char *s = r->at;
	while (r->at < r->end && *r->at > ' ' && *r->at < 0x7f && *r->at != '~')
		r->at++;
	*op = op_named(s, (size_t)(r->at - s));
	return (*op != OP_NONE && (op_info[*op].level & LEVEL_L)) ||
	       fail(r, "an operation of the tile IR was expected");
}

static bool
read_flags(Reader *r, int64_t *imm)
{
	uint64_t axis;
	if (take_this_word(r, "masked"))
		*imm |= TIR_MASKED;
	if (take_this_word(r, "stream"))
		*imm |= TIR_STREAM;
	if (take_this_word(r, "ahead")) {
		if (!read_unsigned(r, TIR_MAX_RANK - 1, &axis))
			return false;
		*imm |= TIR_AHEAD((int64_t)axis);
	}
	if (take_this_word(r, "by")) {
		if (!read_unsigned(r, TIR_MAX_AHEAD, &axis))
			return false;
		*imm |= TIR_AHEAD_BY((int64_t)axis);
	}
	if (!take_this_word(r, "along"))
		return true;
	if (!read_unsigned(r, TIR_MAX_RANK - 1, &axis))
		return false;
	*imm |= TIR_LANES_ALONG((int64_t)axis);
	return true;
}

static bool
read_shape(Reader *r, int64_t *imm)
{
	uint64_t rows, columns, pairs;
	if (!read_unsigned(r, TIR_MAX_DOT, &rows) || !read_unsigned(r, TIR_MAX_DOT, &columns) ||
	    !read_unsigned(r, TIR_MAX_DOT, &pairs))
		return false;
	*imm = TIR_DOT(rows, columns, pairs) | (take_this_word(r, "chained") ? TIR_DOT_CHAINED : 0);
	*imm |= take_this_word(r, "anew") ? TIR_DOT_ANEW : 0;
	return true;
}

/* `2 by 240 rest 24 turns anew warp`, `0 part 1`, `0 part 0 by 1` */
static bool
read_parts(Reader *r, Op op, int64_t *imm)
{
	uint64_t n[3] = {0}, most = op == OP_ROLES ? UINT16_MAX : UINT8_MAX;
	const char *between[3] = {"", op == OP_ROLES ? "by" : "part", op == OP_ROLES ? "rest" : "by"};
	for (unsigned k = 0; k < (op == OP_COPY || op == OP_TAKE ? 2u : 3u); k++)
		if ((k && !(take_this_word(r, between[k]) || fail(r, "the number of a part was expected"))) ||
		    !read_unsigned(r, most, &n[k]))
			return false;
	*imm = op == OP_ROLES ? TIR_ROLES(n[0], n[1], n[2]) : TIR_MMA(n[0], n[1], n[2]);
	if (op == OP_ROLES && take_this_word(r, "turns"))
		*imm |= TIR_ROLES_TURNS;
	else if (op == OP_ROLES && take_this_word(r, "order"))
		*imm |= TIR_ROLES_ORDER;
	if (op == OP_ROLES && take_this_word(r, "anew"))
		*imm |= TIR_ROLES_ANEW;
	if (op == OP_ROLES && take_this_word(r, "warp"))
		*imm |= TIR_ROLES_WARP;
	return true;
}

/* What stands between the operation and its operands. */
static bool
read_imm(Reader *r, Op op, TirType type, int64_t *imm)
{
	*imm = 0;
	if (op == OP_CONST)
		return dtype_is_float((DType)type.dtype) ? read_float(r, imm)
		                                         : read_int(r, (DType)type.dtype, imm);
	if (op == OP_DOT)
		return read_shape(r, imm);
	if (op == OP_FDIV || op == OP_NEAR_DIV) {
		*imm = take_this_word(r, "middle") ? TIR_MIDDLE : take_this_word(r, "near") ? TIR_NEAR : take_this_word(r, "from_1") ? TIR_FROM_1 : 0;
		return true;
	}
	if (op == OP_FOR) {
		*imm = take_this_word(r, "rolled") ? TIR_ROLLED : 0;
		return true;
	}
	if (op == OP_ROLES || op == OP_COPY || op == OP_TAKE || op == OP_MMA)
		return read_parts(r, op, imm);
	if (op_info[op].flags & F_NARROW) {
		TirType t = {0};
		bool ok = !take(r, '~') || read_type(r, &t);
		*imm = ok ? t.dtype | (take_this_word(r, "low") ? TIR_NO_MORE_THAN_0 : 0) : 0;
		return ok;
	}
	if (op == OP_BUFFER || op == OP_SCALAR || op == OP_BLOCKARG || op == OP_RESULT || op == OP_LANE ||
	    op == OP_SLIDE || op == OP_HALF || op == OP_WEAVE || op == OP_SHUFFLE || op == OP_ACQUIRE || op == OP_TURN || op == OP_WAIT ||
	    op == OP_RELEASE || op == OP_SETTLE || op == OP_PIECE || op == OP_HELD || op == OP_PRODUCT || op == OP_KEEP || op == OP_PUT ||
	    op == OP_LOAD_MATRIX || op == OP_STORE_MATRIX || op == OP_ASYNC_WAIT)
		return read_int(r, DT_I64, imm);
	if (op == OP_IOTA || op == OP_BARRIER || op == OP_THREAD) {
		skip(r);
		return r->at == r->end || (*r->at != '-' && (*r->at < '0' || *r->at > '9')) || read_int(r, DT_I64, imm);
	}
	return true;
}

static bool
open_regions(Reader *r, ValId v)
{
	if (!expect(r, '{'))
		return false;
	tir_add_regions(r->k, v, tir_inst(r->k, v)->op == OP_FOR ? 1 : 2);
	tir_enter(r->k, tir_inst(r->k, v)->region);
	vec_push(r->k->arena, &r->part, ((Part){v, 0}));
	return true;
}

static bool
read_inst(Reader *r)
{
	uint64_t id;
	Op op;
	TirType type = {0};
	int64_t imm;
	if (!read_id(r, &id))
		return false;
	if (id < r->k->inst.n || id > r->max_id)
		return fail(r, id < r->k->inst.n ? "ids must ascend" : "an id is too large");
	if ((take(r, ':') && !read_type(r, &type)) || !expect(r, '=') || !read_op(r, &op) ||
	    !read_imm(r, op, type, &imm) || !read_operands(r, (ValId)id))
		return false;
	if (op == OP_VIEW)
		imm = (r->operand.n - (int64_t)1) / 2;
	if ((op == OP_LOAD || op == OP_STORE) && !read_flags(r, &imm))
		return false;
	vec_grow(r->k->arena, &r->k->inst, id - r->k->inst.n);
	tir_emit(r->k, op, type, imm, r->operand.at, r->operand.n);
	return (op != OP_FOR && op != OP_IF && op != OP_ROLES) || open_regions(r, (ValId)id);
}

/* After a '}' that does not end the body. */
static bool
close_region(Reader *r)
{
	Part *p = &r->part.at[r->part.n - 1];
	const TirInst *owner = tir_inst(r->k, p->owner);
	tir_leave(r->k);
	if (!take_this_word(r, "else")) {
		r->part.n--;
		return true;
	}
	if (p->nth + 1 >= owner->nregion)
		return fail(r, "no else belongs here");
	p->nth++;
	tir_enter(r->k, owner->region + p->nth);
	return expect(r, '{');
}

static bool
read_body(Reader *r)
{
	for (;;) {
		skip(r);
		if (r->at == r->end)
			return fail(r, "the text ends inside the kernel");
		if (*r->at != '}') {
			if (!read_inst(r))
				return false;
			continue;
		}
		r->at++;
		if (!r->part.n)
			return true;
		if (!close_region(r))
			return false;
	}
}

/* Whose threads take a task together. */
static bool
read_form(Reader *r)
{
	uint64_t threads, group, cluster = 0, columns = 0, resident = 0, sets = 0;
	r->k->form = take_this_word(r, "block") ? TIR_BLOCK : take_this_word(r, "threads") ? TIR_SPREAD : TIR_TASKS;
	r->k->halves = r->k->form == TIR_TASKS && take_this_word(r, "halves");
	if (r->k->form == TIR_TASKS)
		return true;
	if (!read_unsigned(r, UINT16_MAX, &threads) || !(take_this_word(r, "by") || fail(r, "'by' was expected")) ||
	    !read_unsigned(r, UINT16_MAX, &group))
		return false;
	r->k->anywhere = take_this_word(r, "anywhere");
	if ((take_this_word(r, "cluster") && !read_unsigned(r, UINT16_MAX, &cluster)) ||
	    (take_this_word(r, "columns") && !read_unsigned(r, UINT16_MAX, &columns)) ||
	    (take_this_word(r, "resident") && !read_unsigned(r, UINT16_MAX, &resident)) ||
	    (take_this_word(r, "sets") && !read_unsigned(r, UINT16_MAX, &sets)))
		return false;
	r->k->cluster = (uint16_t)cluster;
	r->k->columns = (uint16_t)columns;
	r->k->resident = (uint16_t)resident;
	r->k->sets = (uint16_t)sets;
	r->k->threads = (uint16_t)threads;
	r->k->group = (uint16_t)group;
	r->k->tight = r->k->form == TIR_BLOCK && take_this_word(r, "tight");
	r->k->fp8 = r->k->form == TIR_SPREAD && take_this_word(r, "fp8");
	return true;
}

static bool
read_buffer(Reader *r, unsigned number)
{
	uint64_t n = 0;
	r->k->buffer.at[number].posted = take_this_word(r, "posted");
	if (take_this_word(r, "same")) {
		if (!read_unsigned(r, UINT32_MAX - 1, &n))
			return false;
		r->k->buffer.at[number].same = (uint32_t)n + 1;
	}
	if (take_this_word(r, "shared")) {
		if (!read_unsigned(r, UINT32_MAX, &n))
			return false;
		r->k->buffer.at[number].shared = (uint32_t)n;
		r->k->buffer.at[number].wide = take_this_word(r, "wide");
	}
	return true;
}

static bool
read_scalar(Reader *r, unsigned number)
{
	uint64_t n = 0;
	if (take_this_word(r, "times") && !read_unsigned(r, UINT32_MAX, &n))
		return false;
	r->k->scalar.at[number].multiple = (uint32_t)n;
	r->k->scalar.at[number].few = take_this_word(r, "few");
	return true;
}

/* channel 0 slots 4 part bf16 128 by 64 part bf16 256 by 64 turned */
static bool
read_channel(Reader *r)
{
	TirChannel c = {0};
	uint64_t number, slots, rows, terms;
	if (!read_unsigned(r, UINT8_MAX, &number) || !(take_this_word(r, "slots") || fail(r, "'slots' was expected")) ||
	    !read_unsigned(r, TIR_MAX_SLOTS, &slots))
		return false;
	if (number != r->k->channel.n)
		return fail(r, "channels are numbered from 0");
	c.slots = (uint16_t)slots;
	while (take_this_word(r, "part")) {
		TirPart p = {0};
		if (c.nparts == TIR_MAX_PARTS)
			return fail(r, "too many parts");
		if (!read_dtype(r, &p.dtype) || !read_unsigned(r, UINT16_MAX, &rows) ||
		    !(take_this_word(r, "by") || fail(r, "'by' was expected")) || !read_unsigned(r, UINT16_MAX, &terms))
			return false;
		p.rows = (uint16_t)rows;
		p.terms = (uint16_t)terms;
		p.turned = take_this_word(r, "turned");
		p.joint = take_this_word(r, "joint");
		c.part[c.nparts++] = p;
	}
	tir_add_channel(r->k, &c);
	return true;
}

static bool
read_header(Reader *r)
{
	uint64_t number;
	Name name;
	DType t;
	if (!take_this_word(r, "kernel"))
		return fail(r, "'kernel' was expected");
	if (!read_name(r, &r->k->name) || !read_form(r))
		return false;
	for (;;) {
		if (take_this_word(r, "channel")) {
			if (!read_channel(r))
				return false;
			continue;
		}
		bool buffer = take_this_word(r, "buffer");
		if (!buffer && !take_this_word(r, "scalar"))
			return expect(r, '{');
		if (!read_unsigned(r, UINT32_MAX, &number) || !read_name(r, &name) || !expect(r, ':') ||
		    !read_dtype(r, &t))
			return false;
		if (number != (buffer ? r->k->buffer.n : r->k->scalar.n))
			return fail(r, "buffers and scalars are numbered from 0");
		if (buffer && !read_buffer(r, tir_add_buffer(r->k, name, t, take_this_word(r, "written"))))
			return false;
		if (!buffer && !read_scalar(r, tir_add_scalar(r->k, name, t)))
			return false;
	}
}

TirKernel *
tir_read(Arena *a, Names *names, const char *text, size_t n, const char **error)
{
	Reader r = {.k = tir_new(a, names, 0), .at = text, .end = text + n, .line = 1};
	r.max_id = (uint64_t)n + ID_SLACK;
	if (r.max_id > UINT32_MAX - 1)
		r.max_id = UINT32_MAX - 1;
	bool ok = read_header(&r) && read_body(&r);
	skip(&r);
	if (ok && r.at < r.end)
		ok = fail(&r, "text after the kernel");
	if (!ok)
		*error = r.error;
	return ok ? r.k : NULL;
}
