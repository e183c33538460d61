/* tir_print.c: the text form of tile IR; ir/README.md describes it, tir_read.c reads it back. Prints
 * what verifies exactly; of anything else as much as can be seen without trusting it. */
#include "ir/tir.h"

#include <inttypes.h>
#include <string.h>

#include "ir/tir_inside.h"

static bool
is_plain(const char *s)
{
	if (!*s || (*s >= '0' && *s <= '9'))
		return false;
	for (; *s; s++)
		if (!(*s == '_' || *s == '.' || (*s >= '0' && *s <= '9') || (*s >= 'a' && *s <= 'z') ||
		      (*s >= 'A' && *s <= 'Z')))
			return false;
	return true;
}

static void
print_name(const TirKernel *k, Text *out, Name name)
{
	const char *s = name_text(k->names, name);
	if (is_plain(s))
		text_printf(out, "%s", s);
	else
		text_json(out, s, strlen(s));
}

static void
print_header(const TirKernel *k, Text *out)
{
	text_printf(out, "kernel ");
	print_name(k, out, k->name);
	if (k->form != TIR_TASKS)
		text_printf(out, " %s %u by %u", k->form == TIR_BLOCK ? "block" : "threads", k->threads, k->group);
	if (k->anywhere)
		text_printf(out, " anywhere");
	if (k->cluster)
		text_printf(out, " cluster %u", k->cluster);
	if (k->columns)
		text_printf(out, " columns %u", k->columns);
	if (k->resident)
		text_printf(out, " resident %u", k->resident);
	if (k->sets)
		text_printf(out, " sets %u", k->sets);
	if (k->tight)
		text_printf(out, " tight");
	if (k->fp8)
		text_printf(out, " fp8");
	if (k->halves)
		text_printf(out, " halves");
	for (uint32_t i = 0; i < k->buffer.n; i++) {
		const TirBuffer *b = &k->buffer.at[i];
		text_printf(out, "\nbuffer %" PRIu32 " ", i);
		print_name(k, out, b->name);
		text_printf(out, " : %s%s", dtype_info[b->dtype].text, b->written ? " written" : "");
		if (b->posted)
			text_printf(out, " posted");
		if (b->same)
			text_printf(out, " same %" PRIu32, b->same - 1);
		if (b->shared)
			text_printf(out, " shared %" PRIu32 "%s", b->shared, b->wide ? " wide" : "");
	}
	for (uint32_t i = 0; i < k->scalar.n; i++) {
		text_printf(out, "\nscalar %" PRIu32 " ", i);
		print_name(k, out, k->scalar.at[i].name);
		text_printf(out, " : %s", dtype_info[k->scalar.at[i].dtype].text);
		if (k->scalar.at[i].multiple)
			text_printf(out, " times %" PRIu32, k->scalar.at[i].multiple);
		if (k->scalar.at[i].few)
			text_printf(out, " few");
	}
	for (uint32_t i = 0; i < k->channel.n; i++) {
		const TirChannel *c = &k->channel.at[i];
		text_printf(out, "\nchannel %" PRIu32 " slots %u", i, c->slots);
		for (unsigned n = 0; n < c->nparts && n < TIR_MAX_PARTS; n++)
			text_printf(out, " part %s %u by %u%s%s", dtype_info[c->part[n].dtype].text, c->part[n].rows, c->part[n].terms,
			            c->part[n].turned ? " turned" : "", c->part[n].joint ? " joint" : "");
	}
	text_printf(out, "\n{\n");
}

static void
print_type(Text *out, TirType t)
{
	if (t.dtype == DT_NONE)
		return;
	text_word(out, ":");
	text_word(out, dtype_info[t.dtype].text);
	if (t.lanes) {
		text_word(out, "x");
		text_number(out, t.lanes);
	}
}

static void
print_signed(Text *out, int64_t n)
{
	if (n < 0)
		text_word(out, "-");
	text_number(out, n < 0 ? -(uint64_t)n : (uint64_t)n);
}

static void
print_const(Text *out, const TirInst *p)
{
	text_word(out, " ");
	if (dtype_is_float((DType)p->type.dtype))
		text_double(out, p->imm.f);
	else if (p->type.dtype == DT_BOOL)
		text_word(out, p->imm.i ? "true" : "false");
	else if (p->type.dtype == DT_U64)
		text_number(out, (uint64_t)p->imm.i);
	else
		print_signed(out, p->imm.i);
}

/* What imm says, in front of the operands (a number) or after them (the flags of an access). */
static void
print_imm(Text *out, const TirInst *p)
{
	switch ((Op)p->op) {
	case OP_CONST:
		print_const(out, p);
		return;
	case OP_EXP: case OP_EXP2: case OP_TANH: case OP_POW:
		if (TIR_NARROW(p->imm.i))
			text_printf(out, "~%s", dtype_info[TIR_NARROW(p->imm.i)].text);
		if (p->imm.i & TIR_NO_MORE_THAN_0)
			text_word(out, " low");
		return;
	case OP_FDIV: case OP_NEAR_DIV:
		if (p->imm.i == TIR_MIDDLE)
			text_word(out, " middle");
		if (p->imm.i == TIR_FROM_1)
			text_word(out, " from_1");
		if (p->imm.i == TIR_NEAR)
			text_word(out, " near");
		return;
	case OP_FOR:
		if (p->imm.i == TIR_ROLLED)
			text_word(out, " rolled");
		return;
	case OP_IOTA: case OP_BARRIER: case OP_THREAD:
		if (p->imm.i) {
			text_word(out, " ");
			print_signed(out, p->imm.i);
		}
		return;
	case OP_ROLES: {
		TirRoles r = tir_roles(p->imm.i);
		text_printf(out, " %u by %u rest %u%s%s%s", r.groups, r.registers, r.rest, r.turns ? " turns" : r.order ? " order" : "", r.anew ? " anew" : "",
		            r.warp ? " warp" : "");
		return;
	}
	case OP_COPY: case OP_TAKE:
		text_printf(out, " %u part %u", TIR_CHANNEL_OF(p->imm.i), TIR_PART_OF(p->imm.i));
		return;
	case OP_MMA:
		text_printf(out, " %u part %u by %u", TIR_CHANNEL_OF(p->imm.i), TIR_PART_OF(p->imm.i), TIR_SECOND_PART_OF(p->imm.i));
		return;
	case OP_DOT: {
		TirDot d = tir_dot_shape(p->imm.i);
		text_printf(out, " %u %u %u%s%s", d.rows, d.columns, d.pairs, d.chained ? " chained" : "", d.anew ? " anew" : "");
		return;
	}
	case OP_BUFFER: case OP_SCALAR: case OP_BLOCKARG: case OP_RESULT: case OP_LANE: case OP_SLIDE:
	case OP_HALF: case OP_WEAVE: case OP_SHUFFLE: case OP_ACQUIRE: case OP_TURN: case OP_WAIT: case OP_RELEASE: case OP_SETTLE: case OP_PIECE: case OP_HELD:
	case OP_PRODUCT: case OP_KEEP: case OP_PUT: case OP_LOAD_MATRIX: case OP_STORE_MATRIX: case OP_ASYNC_WAIT:
		text_word(out, " ");
		print_signed(out, p->imm.i);
		return;
	case OP_NONE: case OP_IVAR: case OP_AXIS: case OP_DIM: case OP_ACC: case OP_TOUCHED: case OP_READ:
	case OP_ADD: case OP_SUB: case OP_MUL: case OP_IDIV: case OP_IMOD:
	case OP_NEG: case OP_ABS: case OP_SIGN: case OP_MIN: case OP_MAX: case OP_FLOOR: case OP_CEIL:
	case OP_ROUND: case OP_TRUNC: case OP_SQRT: case OP_RSQRT:
	case OP_EXPM1: case OP_LOG: case OP_LOG2: case OP_LOG1P: case OP_ERF: case OP_SIN:
	case OP_COS: case OP_EQ: case OP_NE: case OP_LT: case OP_LE: case OP_AND: case OP_OR: case OP_NOT:
	case OP_ISNAN: case OP_SELECT: case OP_CAST: case OP_CPLX: case OP_RE: case OP_IM: case OP_CONJ:
	case OP_ROOT: case OP_RAND: case OP_RANDN: case OP_FMA: case OP_SCALE: case OP_EX2: case OP_RCP:
	case OP_LG2: case OP_NEAR_SQRT: case OP_NEAR_RSQRT: case OP_NEAR_TANH: case OP_NEAR_SIN: case OP_NEAR_COS: case OP_FLUSH_MUL:
	case OP_BITCAST: case OP_SHL: case OP_SHR:
	case OP_BAND: case OP_BOR: case OP_BXOR: case OP_TASK_LO: case OP_TASK_HI: case OP_TASK_STEP:
	case OP_SPLAT: case OP_VIEW: case OP_LOAD: case OP_STORE: case OP_FAULT: case OP_IF:
	case OP_FETCH: case OP_YIELD: case OP_JOIN: case OP_PICK: case OP_ANY: case OP_RANK: case OP_WARP_MMA: case OP_ASYNC_COPY:
		return;
	}
}

static void
print_flags(Text *out, const TirInst *p)
{
	if (p->op != OP_LOAD && p->op != OP_STORE)
		return;
	if (p->imm.i & TIR_MASKED)
		text_word(out, " masked");
	if (p->imm.i & TIR_STREAM)
		text_word(out, " stream");
	if (TIR_AHEAD_AXIS(p->imm.i) >= 0)
		text_printf(out, " ahead %d", TIR_AHEAD_AXIS(p->imm.i));
	if (TIR_AHEAD_COUNT(p->imm.i) > 1)
		text_printf(out, " by %lld", (long long)TIR_AHEAD_COUNT(p->imm.i));
	if (TIR_LANE_AXIS(p->imm.i) >= 0)
		text_printf(out, " along %d", TIR_LANE_AXIS(p->imm.i));
}

static void
indent(Text *out, uint32_t depth)
{
	for (uint32_t i = 0; i < depth; i++)
		text_add(out, "  ", 2);
}

static void
print_value(Text *out, ValId v)
{
	text_word(out, "%");
	text_number(out, v);
}

static void
print_inst(const TirKernel *k, Text *out, ValId v)
{
	const TirInst *p = tir_inst(k, v);
	print_value(out, v);
	print_type(out, p->type);
	text_word(out, " = ");
	text_word(out, op_info[p->op].text);
	print_imm(out, p);
	for (uint32_t n = 0; n < p->narg; n++) {
		if (n)
			text_word(out, ",");
		text_word(out, " ");
		print_value(out, tir_arg(k, v, n));
	}
	print_flags(out, p);
}

void
tir_print(const TirKernel *k, Text *out)
{
	print_header(k, out);
	Walk w;
	walk_init(&w, k, out->arena);
	for (WalkEvent e; (e = walk_next(&w)) != WALK_END;) {
		uint32_t depth = w.frame.n;
		switch (e) {
		case WALK_INST:
			indent(out, depth);
			print_inst(k, out, w.value);
			text_word(out, tir_inst(k, w.value)->nregion ? " " : "\n");
			break;
		case WALK_OPEN:
			text_word(out, "{\n");
			break;
		case WALK_CLOSE:
			indent(out, depth);
			text_word(out, w.nth + 1 < tir_inst(k, w.value)->nregion ? "} else " : "}\n");
			break;
		case WALK_END:
			break;
		}
	}
	text_printf(out, "}\n");
}
