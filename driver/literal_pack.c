/* literal_pack.c: a literal's items as packed elements, each checked to be a value of the type. */
#include "driver/literal.h"
#include "ir/eval.h"

/* The integer as it is stored, if it is a value of the type. */
static bool
fits(const LiteralItem *v, DType t, int64_t *i)
{
	unsigned bits = dtype_info[t].bits;
	if (dtype_info[t].kind == KIND_UINT) {
		*i = (int64_t)v->u;
		return !v->negative && (bits == 64 || v->u >> bits == 0);
	}
	uint64_t most = UINT64_C(1) << (bits - 1);
	*i = v->negative ? (int64_t)(0 - v->u) : (int64_t)v->u;
	return v->negative ? v->u <= most : v->u < most;
}

static const char *
pack_item(const LiteralItem *v, DType t, EvalValue *out)
{
	*out = (EvalValue){.re = v->re, .im = v->im};
	switch (dtype_info[t].kind) {
	case KIND_BOOL:
		out->i = (int64_t)v->u;
		if (v->kind == LITERAL_BOOL || (v->kind == LITERAL_INT && v->u <= 1))
			return NULL;
		return "is no bool";
	case KIND_INT:
	case KIND_UINT:
		if (v->kind == LITERAL_INT && fits(v, t, &out->i))
			return NULL;
		return "is no value of an integer of this type";
	case KIND_FLOAT:
		return v->kind == LITERAL_COMPLEX ? "is complex, the tensor is not" : NULL;
	case KIND_COMPLEX:
		return NULL;
	}
	return NULL;
}

bool
literal_pack(Arena *a, const Literal *lit, DType t, void *packed, const char **error)
{
	for (uint32_t n = 0; n < lit->item.n; n++) {
		EvalValue v;
		const char *why = pack_item(&lit->item.at[n], t, &v);
		if (why) {
			*error = arena_text(a, "element %u of the literal (%g) %s (%s)", n, lit->item.at[n].re, why,
			                    dtype_info[t].text);
			return false;
		}
		eval_store(t, packed, (int64_t)n, v);
	}
	return true;
}
