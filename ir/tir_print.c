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
	for (uint32_t i = 0; i < k->buffer.n; i++) {
		const TirBuffer *b = &k->buffer.at[i];
		text_printf(out, "\nbuffer %" PRIu32 " ", i);
		print_name(k, out, b->name);
		text_printf(out, " : %s%s", dtype_info[b->dtype].text, b->written ? " written" : "");
	}
	for (uint32_t i = 0; i < k->scalar.n; i++) {
		text_printf(out, "\nscalar %" PRIu32 " ", i);
		print_name(k, out, k->scalar.at[i].name);
		text_printf(out, " : %s", dtype_info[k->scalar.at[i].dtype].text);
	}
	text_printf(out, "\n{\n");
}

static void
print_type(Text *out, TirType t)
{
	if (t.dtype == DT_NONE)
		return;
	text_printf(out, ":%s", dtype_info[t.dtype].text);
	if (t.lanes)
		text_printf(out, "x%u", t.lanes);
}

static void
print_const(Text *out, const TirInst *p)
{
	text_printf(out, " ");
	if (dtype_is_float((DType)p->type.dtype))
		text_double(out, p->imm.f);
	else if (p->type.dtype == DT_BOOL)
		text_printf(out, p->imm.i ? "true" : "false");
	else if (p->type.dtype == DT_U64)
		text_printf(out, "%" PRIu64, (uint64_t)p->imm.i);
	else
		text_printf(out, "%" PRId64, p->imm.i);
}

/* What imm says, in front of the operands (a number) or after them (the flags of an access). */
static void
print_imm(Text *out, const TirInst *p)
{
	switch ((Op)p->op) {
	case OP_CONST:
		print_const(out, p);
		return;
	case OP_DOT: {
		TirDot d = tir_dot_shape(p->imm.i);
		text_printf(out, " %u %u %u", d.rows, d.columns, d.pairs);
		return;
	}
	case OP_BUFFER: case OP_SCALAR: case OP_BLOCKARG: case OP_RESULT: case OP_LANE: case OP_SLIDE:
		text_printf(out, " %" PRId64, p->imm.i);
		return;
	case OP_NONE: case OP_IVAR: case OP_AXIS: case OP_DIM: case OP_ACC: case OP_TOUCHED: case OP_READ:
	case OP_ADD: case OP_SUB: case OP_MUL: case OP_FDIV: case OP_IDIV: case OP_IMOD: case OP_POW:
	case OP_NEG: case OP_ABS: case OP_SIGN: case OP_MIN: case OP_MAX: case OP_FLOOR: case OP_CEIL:
	case OP_ROUND: case OP_TRUNC: case OP_SQRT: case OP_RSQRT: case OP_EXP: case OP_EXP2:
	case OP_EXPM1: case OP_LOG: case OP_LOG2: case OP_LOG1P: case OP_TANH: case OP_ERF: case OP_SIN:
	case OP_COS: case OP_EQ: case OP_NE: case OP_LT: case OP_LE: case OP_AND: case OP_OR: case OP_NOT:
	case OP_ISNAN: case OP_SELECT: case OP_CAST: case OP_CPLX: case OP_RE: case OP_IM: case OP_CONJ:
	case OP_ROOT: case OP_RAND: case OP_RANDN: case OP_FMA: case OP_BITCAST: case OP_SHL: case OP_SHR:
	case OP_BAND: case OP_BOR: case OP_BXOR: case OP_TASK_LO: case OP_TASK_HI: case OP_IOTA:
	case OP_SPLAT: case OP_VIEW: case OP_LOAD: case OP_STORE: case OP_FAULT: case OP_FOR: case OP_IF:
	case OP_YIELD:
		return;
	}
}

static void
print_flags(Text *out, const TirInst *p)
{
	if (p->op != OP_LOAD && p->op != OP_STORE)
		return;
	if (p->imm.i & TIR_MASKED)
		text_printf(out, " masked");
	if (p->imm.i & TIR_STREAM)
		text_printf(out, " stream");
	if (TIR_AHEAD_AXIS(p->imm.i) >= 0)
		text_printf(out, " ahead %d", TIR_AHEAD_AXIS(p->imm.i));
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
print_inst(const TirKernel *k, Text *out, ValId v)
{
	const TirInst *p = tir_inst(k, v);
	text_printf(out, "%%%" PRIu32, v);
	print_type(out, p->type);
	text_printf(out, " = %s", op_info[p->op].text);
	print_imm(out, p);
	for (uint32_t n = 0; n < p->narg; n++)
		text_printf(out, "%s%%%" PRIu32, n ? ", " : " ", tir_arg(k, v, n));
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
			text_printf(out, tir_inst(k, w.value)->nregion ? " " : "\n");
			break;
		case WALK_OPEN:
			text_printf(out, "{\n");
			break;
		case WALK_CLOSE:
			indent(out, depth);
			text_printf(out, w.nth + 1 < tir_inst(k, w.value)->nregion ? "} else " : "}\n");
			break;
		case WALK_END:
			break;
		}
	}
	text_printf(out, "}\n");
}
