/* lower_dot.c: DOT by the matrix unit of x86-64, AMX.
 *
 * kernel_legal has seen to it that the accumulators and a column and a row of factors fit into the
 * eight tile registers, each 16 rows of 64 bytes, and that rows are contiguous. So tiles have fixed
 * numbers, the same configuration serves the whole kernel, and nothing is ever spilled: no value of
 * LLVM's lives in a tile, and generated code calls nothing in between. */
#include "codegen/lower.h"

enum { TILE_ROWS = 16, TILE_BYTES = 64, TILES = 8 };

/* --- the configuration --- */

static Val
config(Lower *l)
{
	static const char name[] = "texo.tiles";
	Val g = LLVMGetNamedGlobal(l->module, name);
	if (g)
		return g;
	LLVMTypeRef i8 = LLVMInt8TypeInContext(l->ctx);
	uint8_t bytes[64] = {1}; /* palette; from 16 on the bytes of a row, from 48 on the rows */
	Val at[64];
	for (unsigned t = 0; t < TILES; t++) {
		bytes[16 + 2 * t] = TILE_BYTES;
		bytes[48 + t] = TILE_ROWS;
	}
	for (unsigned n = 0; n < 64; n++)
		at[n] = LLVMConstInt(i8, bytes[n], 0);
	g = LLVMAddGlobal(l->module, LLVMArrayType2(i8, 64), name);
	LLVMSetInitializer(g, LLVMConstArray2(i8, at, 64));
	LLVMSetGlobalConstant(g, 1);
	LLVMSetLinkage(g, LLVMPrivateLinkage);
	LLVMSetAlignment(g, 64);
	return g;
}

static bool
has_dot(const TirKernel *k)
{
	for (ValId v = 1; v < k->inst.n; v++)
		if (k->inst.at[v].op == OP_DOT)
			return true;
	return false;
}

void
lower_tiles_begin(Lower *l)
{
	if (!has_dot(l->k))
		return;
	Val c = config(l);
	lower_call(l, "llvm.x86.ldtilecfg", NULL, 0, &c, 1);
}

void
lower_tiles_end(Lower *l)
{
	if (has_dot(l->k))
		lower_call(l, "llvm.x86.tilerelease", NULL, 0, NULL, 0);
}

/* --- one DOT --- */

typedef struct {
	Val at;           /* the first element */
	Val group, row;   /* bytes from one group, and from one row, to the next */
} Matrix;

static Val
mul(Lower *l, Val a, uint64_t b)
{
	return LLVMBuildMul(l->b, a, LLVMConstInt(lower_i64(l), b, 0), "");
}

static Val
byte_at(Lower *l, Val p, Val bytes)
{
	return LLVMBuildGEP2(l->b, LLVMInt8TypeInContext(l->ctx), p, &bytes, 1, "");
}

/* Operand n of v, its leading indices from operand `at` on. */
static Matrix
matrix(Lower *l, ValId v, unsigned n, unsigned inner, unsigned *at)
{
	ValId view = lower_arg_id(l, v, n);
	unsigned rank = (unsigned)lower_inst(l, view)->imm.i;
	Val offset = LLVMConstInt(lower_i64(l), 0, 0);
	for (unsigned a = 0; a + inner < rank; a++)
		offset = LLVMBuildAdd(l->b, offset,
		                      LLVMBuildMul(l->b, lower_arg(l, v, (*at)++), lower_arg(l, view, 1 + rank + a), ""),
		                      "");
	Val base = l->buffer[lower_inst(l, lower_arg_id(l, view, 0))->imm.i];
	Matrix m = {.at = byte_at(l, base, mul(l, offset, 4)), .row = mul(l, lower_arg(l, view, 2 * rank - 1), 4)};
	if (inner == 3)
		m.group = mul(l, lower_arg(l, view, 2 * rank - 2), 4);
	return m;
}

static Val
tile_number(Lower *l, unsigned n)
{
	return LLVMConstInt(LLVMInt8TypeInContext(l->ctx), n, 0);
}

/* Tile `number` from, or to, the place (i, j) of p, in tiles. */
static void
move_tile(Lower *l, const char *move, unsigned number, Val p, Val row, unsigned i, unsigned j)
{
	Val down = byte_at(l, p, mul(l, row, (uint64_t)i * TILE_ROWS));
	Val at = byte_at(l, down, LLVMConstInt(lower_i64(l), (uint64_t)j * TILE_BYTES, 0));
	lower_call(l, move, NULL, 0, (Val[]){tile_number(l, number), at, row}, 3);
}

typedef struct {
	unsigned rows, columns; /* in tiles */
	Matrix c, a, b;
} Dot;

static void
move_accumulators(Lower *l, const Dot *d, const char *move)
{
	for (unsigned i = 0; i < d->rows; i++)
		for (unsigned j = 0; j < d->columns; j++)
			move_tile(l, move, i * d->columns + j, d->c.at, d->c.row, i, j);
}

/* One group, whose parts of a and b begin at these places. */
static void
add_group(Lower *l, const Dot *d, Val a, Val b)
{
	unsigned first = d->rows * d->columns, second = first + d->rows;
	for (unsigned j = 0; j < d->columns; j++)
		move_tile(l, "llvm.x86.tileloadd64", second + j, b, d->b.row, 0, j);
	for (unsigned i = 0; i < d->rows; i++) {
		move_tile(l, "llvm.x86.tileloadd64", first + i, a, d->a.row, i, 0);
		for (unsigned j = 0; j < d->columns; j++)
			lower_call(l, "llvm.x86.tdpbf16ps", NULL, 0,
			           (Val[]){tile_number(l, i * d->columns + j), tile_number(l, first + i),
			                   tile_number(l, second + j)}, 3);
	}
}

static void
add_groups(Lower *l, const Dot *d, Val n)
{
	LLVMBasicBlockRef before = LLVMGetInsertBlock(l->b);
	LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
	LLVMBasicBlockRef exit = LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
	LLVMTypeRef ptr = LLVMPointerTypeInContext(l->ctx, 0);
	Val zero = LLVMConstInt(lower_i64(l), 0, 0), one = LLVMConstInt(lower_i64(l), 1, 0);
	LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntSGT, n, zero, ""), body, exit);
	LLVMPositionBuilderAtEnd(l->b, body);
	Val left = LLVMBuildPhi(l->b, lower_i64(l), "");
	Val a = LLVMBuildPhi(l->b, ptr, ""), b = LLVMBuildPhi(l->b, ptr, "");
	add_group(l, d, a, b);
	Val next[3] = {LLVMBuildSub(l->b, left, one, ""), byte_at(l, a, d->a.group), byte_at(l, b, d->b.group)};
	LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntSGT, next[0], zero, ""), body, exit);
	const Val first[3] = {n, d->a.at, d->b.at}, phi[3] = {left, a, b};
	for (unsigned k = 0; k < 3; k++)
		LLVMAddIncoming(phi[k], (Val[]){first[k], next[k]}, (LLVMBasicBlockRef[]){before, body}, 2);
	LLVMPositionBuilderAtEnd(l->b, exit);
}

void
lower_dot(Lower *l, ValId v)
{
	TirDot shape = tir_dot_shape(lower_inst(l, v)->imm.i);
	Dot d = {.rows = shape.rows / TILE_ROWS, .columns = shape.columns / TILE_ROWS};
	unsigned at = 4;
	d.c = matrix(l, v, 0, 2, &at);
	d.a = matrix(l, v, 1, 3, &at);
	d.b = matrix(l, v, 2, 3, &at);
	move_accumulators(l, &d, "llvm.x86.tileloadd64");
	add_groups(l, &d, lower_arg(l, v, 3));
	move_accumulators(l, &d, "llvm.x86.tilestored64");
}
