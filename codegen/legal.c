/* legal.c: our own legality check, before LLVM, from the rows of legal.def. */
#include "codegen/legal.h"
#include "ir/image.h"

#define BIT(t) (UINT32_C(1) << DT_##t)

enum {
	SET_NOTHING = 0,
	SET_BOOL = BIT(BOOL),
	SET_FLOAT = BIT(F32) | BIT(F64),
	SET_UINT = BIT(U8) | BIT(U16) | BIT(U32) | BIT(U64),
	SET_INT = SET_UINT | BIT(I8) | BIT(I16) | BIT(I32) | BIT(I64),
	SET_INDEX = BIT(I64),
	SET_DOT = BIT(F32) | BIT(U32) | BIT(I64),
	SET_ARITH = SET_FLOAT | SET_INT,
	SET_COMPARED = SET_ARITH | SET_BOOL,
	SET_CASTABLE = SET_ARITH | SET_BOOL | BIT(I4) | BIT(U4),
	SET_STORED = SET_CASTABLE | BIT(F16) | BIT(BF16) | BIT(F8E4M3) | BIT(F8E5M2) | BIT(F4E2M1) | BIT(E8M0)
};

enum { NEEDS_NONE = -1, NEEDS_GPU = -2, NEEDS_FMA = FEATURE_FMA, NEEDS_AVX512VL = FEATURE_AVX512VL };
enum { GPU_NO, GPU_YES };

typedef struct {
	bool listed, gpu;
	int8_t needs;
	uint32_t operands, result;
} LegalRow;

static const LegalRow legal_row[OP_COUNT] = {
#define LEGAL(id, operands, result, needs, gpu) [OP_##id] = {true, GPU_##gpu, NEEDS_##needs, SET_##operands, SET_##result},
#include "codegen/legal.def"
};

static bool
in_set(uint32_t set, uint8_t dtype)
{
	return dtype == DT_NONE || set >> dtype & 1;
}

/* Whether rows of the view are contiguous. */
static bool
has_rows(const TirKernel *k, ValId view)
{
	const TirInst *last = tir_inst(k, tir_arg(k, view, tir_inst(k, view)->narg - 1));
	return last->op == OP_CONST && last->imm.i == 1;
}

/* Accumulators, a row of factors and an element of the other, in vectors of 64 bytes. */
static const char *
chained_refusal(TirDot d, const Target *t)
{
	if (!target_has(t, FEATURE_AVX512F) || !target_has(t, FEATURE_AVX512BF16))
		return "'dot', chained, needs a processor with avx512bf16";
	if (d.columns % 16 || d.columns / 16 * (d.rows + 1) + 1 > 32)
		return "'dot' of this shape does not fit into the vectors";
	return NULL;
}

/* Accumulators, and the factors of one group, in tiles of 16 rows of 64 bytes. */
static const char *
tiles_refusal(TirDot d, const Target *t)
{
	unsigned rows = d.rows / 16, columns = d.columns / 16;
	if (!target_has(t, FEATURE_AMX_TILE) || !target_has(t, FEATURE_AMX_BF16))
		return "'dot' needs a processor with amx-tile and amx-bf16";
	if (d.rows % 16 || d.columns % 16 || d.pairs != 16 || rows * columns + rows + columns > 8)
		return "'dot' of this shape does not fit into the tiles";
	return NULL;
}

static const char *
dot_refusal(const TirKernel *k, ValId v, const Target *t)
{
	TirDot d = tir_dot_shape(tir_inst(k, v)->imm.i);
	const char *why = d.chained ? chained_refusal(d, t) : tiles_refusal(d, t);
	if (why)
		return why;
	for (unsigned n = 0; n < 3; n++)
		if (!has_rows(k, tir_arg(k, v, n)))
			return "'dot' takes matrices whose rows are contiguous";
	return NULL;
}

/* Operations that a GPU has on vectors: of what is accessed at once, which loops may carry. */
static bool
on_gpu_vectors(Op op)
{
	return op == OP_LOAD || op == OP_JOIN || op == OP_BITCAST || op == OP_BLOCKARG || op == OP_RESULT || op == OP_SPLAT || op == OP_WARP_MMA || op == OP_LOAD_MATRIX || op == OP_HELD || op == OP_TAKE;
}

/* Whether x rounds f32 to f16, bf16 or an 8-bit float, or widens f16 or f8e4m3 to it. */
static bool
is_own_cast(const TirKernel *k, const TirInst *x, const Target *t)
{
	uint8_t from = k->inst.at[k->arg.at[x->arg]].type.dtype, to = x->type.dtype;
	bool fp8 = target_converts_fp8(t) && ((from == DT_F32 && (to == DT_F8E4M3 || to == DT_F8E5M2)) ||
	                                      (from == DT_F8E4M3 && to == DT_F32));
	return fp8 || (from == DT_F32 && (to == DT_F16 || to == DT_BF16)) || (from == DT_F16 && to == DT_F32);
}

/* Whether x converts between f32 and f16. */
static bool
is_half_cast(const TirKernel *k, const TirInst *x)
{
	uint8_t from = k->inst.at[k->arg.at[x->arg]].type.dtype, to = x->type.dtype;
	return (from == DT_F32 && to == DT_F16) || (from == DT_F16 && to == DT_F32);
}

static const char *
refusal(const TirKernel *k, ValId v, const Target *t, Arena *a)
{
	const TirInst *x = tir_inst(k, v);
	const LegalRow *row = &legal_row[x->op];
	const char *op = op_info[x->op].text;
	if (!row->listed)
		return arena_text(a, "'%s' on %s must be expanded before code generation", op,
		                  dtype_info[x->type.dtype].text);
	if (t->arch == ARCH_NVPTX && (!row->gpu || (x->type.lanes && !on_gpu_vectors((Op)x->op))))
		return arena_text(a, "'%s' on vectors can't be asked of a GPU", op);
	if (x->op == OP_RANK && !t->cluster)
		return arena_text(a, "'%s' can't be asked of a GPU without clusters", op);
	if ((x->op == OP_ROLES || x->op == OP_STORE_MATRIX) && !t->roles)
		return arena_text(a, "'%s' can't be asked of %s", op, t->tune);
	if (t->arch == ARCH_X86 && row->needs == NEEDS_GPU)
		return arena_text(a, "'%s' can't be asked of a processor", op);
	if (t->arch == ARCH_X86 && row->needs >= 0 && !target_has(t, (unsigned)row->needs))
		return arena_text(a, "'%s' needs a processor with %s", op,
		                  target_feature_words(UINT64_C(1) << row->needs, a));
	if (t->arch == ARCH_NVPTX && x->op == OP_CAST && is_own_cast(k, x, t))
		return NULL;
	if (t->arch == ARCH_X86 && x->op == OP_CAST && target_has(t, FEATURE_F16C) && is_half_cast(k, x))
		return NULL;
	if (!in_set(row->result, x->type.dtype))
		return arena_text(a, "'%s' can't give %s here", op, dtype_info[x->type.dtype].text);
	for (uint32_t n = 0; n < x->narg; n++) {
		uint8_t d = k->inst.at[k->arg.at[x->arg + n]].type.dtype;
		if (!in_set(row->operands, d))
			return arena_text(a, "'%s' doesn't take %s here", op, dtype_info[d].text);
	}
	return x->op == OP_DOT ? dot_refusal(k, v, t) : NULL;
}

/* What it is handed. */
static bool
arguments_legal(const TirKernel *k, const Target *t, Arena *a, const char **why)
{
	if (t->arch == ARCH_NVPTX && k->buffer.n + k->scalar.n > IMAGE_CUDA_MAX_ARGUMENTS) {
		*why = arena_text(a, "kernel %s takes %u buffers and scalars; on a GPU %d are possible",
		                  name_text(k->names, k->name), k->buffer.n + k->scalar.n, IMAGE_CUDA_MAX_ARGUMENTS);
		return false;
	}
	for (uint32_t b = 0; b < k->buffer.n; b++)
		if (!in_set(SET_STORED, (uint8_t)k->buffer.at[b].dtype)) {
			*why = arena_text(a, "kernel %s: no buffer of %s can be accessed",
			                  name_text(k->names, k->name), dtype_info[k->buffer.at[b].dtype].text);
			return false;
		}
	return true;
}

bool
kernel_legal(const TirKernel *k, const Target *t, Arena *a, const char **why)
{
	for (ValId v = 1; v < k->inst.n; v++) {
		const char *r = refusal(k, v, t, a);
		if (r) {
			*why = arena_text(a, "kernel %s, %%%u: %s", name_text(k->names, k->name), v, r);
			return false;
		}
	}
	return arguments_legal(k, t, a, why);
}

CodegenStatus
programs_legal(const Program *const *program, uint32_t n, const Target *t, Arena *a, const char **why)
{
	for (uint32_t p = 0; p < n; p++)
		for (uint32_t k = 0; k < program[p]->kernel.n; k++) {
			const Kernel *kernel = &program[p]->kernel.at[k];
			if (!kernel->early && !tir_verify(kernel->tir, a, why))
				return CODEGEN_FAILED;
			if (!(kernel->early ? arguments_legal : kernel_legal)(kernel->tir, t, a, why))
				return CODEGEN_ILLEGAL;
		}
	return CODEGEN_OK;
}
