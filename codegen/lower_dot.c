/* lower_dot.c: DOT by the matrix unit of x86-64, AMX; chained, by vectors of pairs, AVX512_BF16.
 *
 * kernel_legal has seen to it that the accumulators and a column and a row of factors fit into the
 * eight tile registers, each 16 rows of 64 bytes, and that rows are contiguous. So tiles have fixed
 * numbers, the same configuration serves the whole kernel, and nothing is ever spilled: no value of
 * LLVM's lives in a tile, and generated code calls nothing in between.
 *
 * Vectors are LLVM's; kernel_legal has seen to it that as many as live at once fit into the registers. One
 * VDPBF16PS is the two fused multiply-adds of a pair, the high halves' first, and flushes as DOT does. */
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
has_tiles(const TirKernel *k)
{
	for (ValId v = 1; v < k->inst.n; v++)
		if (k->inst.at[v].op == OP_DOT && !tir_dot_shape(k->inst.at[v].imm.i).chained)
			return true;
	return false;
}

void
lower_tiles_begin(Lower *l)
{
	if (!has_tiles(l->k))
		return;
	Val c = config(l);
	lower_call(l, "llvm.x86.ldtilecfg", NULL, 0, &c, 1);
}

void
lower_tiles_end(Lower *l)
{
	if (has_tiles(l->k))
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
	unsigned rows, columns, pairs; /* tiles: of 16 rows, of 16 columns; vectors: one row, 16 columns */
	bool anew;
	Matrix c, a, b;
} Dot;

/* --- by tiles --- */

static void
move_accumulators(Lower *l, const Dot *d, const char *move)
{
	for (unsigned i = 0; i < d->rows; i++)
		for (unsigned j = 0; j < d->columns; j++)
			move_tile(l, move, i * d->columns + j, d->c.at, d->c.row, i, j);
}

static void
start_accumulators(Lower *l, const Dot *d)
{
	if (!d->anew)
		move_accumulators(l, d, "llvm.x86.tileloadd64");
	for (unsigned n = 0; d->anew && n < d->rows * d->columns; n++)
		lower_call(l, "llvm.x86.tilezero", NULL, 0, (Val[]){tile_number(l, n)}, 1);
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

/* --- by vectors --- */

enum { MAX_VECTORS = 32, VECTOR_BYTES = 64, VECTOR_LANES = 16, PAIR_BYTES = 4 };

static LLVMTypeRef
vector_of(LLVMTypeRef element, unsigned lanes)
{
	return LLVMVectorType(element, lanes);
}

/* Vector j of row i of c. */
static Val
row_vector(Lower *l, const Dot *d, unsigned n)
{
	Val row = byte_at(l, d->c.at, mul(l, d->c.row, n / d->columns));
	return byte_at(l, row, LLVMConstInt(lower_i64(l), (uint64_t)(n % d->columns) * VECTOR_BYTES, 0));
}

static Val
load(Lower *l, LLVMTypeRef type, Val p)
{
	Val v = LLVMBuildLoad2(l->b, type, p, "");
	LLVMSetAlignment(v, PAIR_BYTES);
	return v;
}

/* One pair of all rows and columns, a's at `a`, b's at `b`. */
static void
add_pair(Lower *l, const Dot *d, Val a, Val b, Val *acc)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx), halves = vector_of(LLVMBFloatTypeInContext(l->ctx), 2 * VECTOR_LANES);
	Val column[MAX_VECTORS], none = LLVMGetUndef(vector_of(i32, VECTOR_LANES));
	Val every = LLVMConstNull(vector_of(i32, VECTOR_LANES)), zero = LLVMConstInt(i32, 0, 0);
	for (unsigned j = 0; j < d->columns; j++)
		column[j] = load(l, halves, byte_at(l, b, LLVMConstInt(lower_i64(l), (uint64_t)j * VECTOR_BYTES, 0)));
	for (unsigned i = 0; i < d->rows; i++) {
		Val one = load(l, i32, byte_at(l, a, mul(l, d->a.row, i)));
		one = LLVMBuildShuffleVector(l->b, LLVMBuildInsertElement(l->b, none, one, zero, ""), none, every, "");
		one = LLVMBuildBitCast(l->b, one, halves, "");
		for (unsigned j = 0; j < d->columns; j++) {
			Val *c = &acc[i * d->columns + j];
			*c = lower_call(l, "llvm.x86.avx512bf16.dpbf16ps.512", NULL, 0, (Val[]){*c, column[j], one}, 3);
		}
	}
}

typedef struct {
	LLVMBasicBlockRef head, body, exit;
	Val left, a, b, acc[MAX_VECTORS]; /* of the body */
	Val phi[MAX_VECTORS + 3];         /* of the head */
	unsigned n;
} Loop;

static LLVMBasicBlockRef
block(Lower *l)
{
	return LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
}

/* A loop of `count` turns, which carries two addresses and the accumulators; acc are then those of the body. */
static void
open_loop(Lower *l, const Dot *d, Loop *x, Val count, Val a, Val b, Val *acc)
{
	LLVMBasicBlockRef before = LLVMGetInsertBlock(l->b);
	unsigned n = d->rows * d->columns;
	Val first[MAX_VECTORS + 3] = {count, a, b};
	for (unsigned k = 0; k < n; k++)
		first[3 + k] = acc[k];
	*x = (Loop){.head = block(l), .body = block(l), .exit = block(l), .n = 3 + n};
	LLVMBuildBr(l->b, x->head);
	LLVMPositionBuilderAtEnd(l->b, x->head);
	for (unsigned k = 0; k < x->n; k++) {
		x->phi[k] = LLVMBuildPhi(l->b, LLVMTypeOf(first[k]), "");
		LLVMAddIncoming(x->phi[k], &first[k], &before, 1);
	}
	x->left = x->phi[0];
	x->a = x->phi[1];
	x->b = x->phi[2];
	LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntSGT, x->left, LLVMConstInt(lower_i64(l), 0, 0), ""), x->body, x->exit);
	LLVMPositionBuilderAtEnd(l->b, x->body);
	for (unsigned k = 0; k < n; k++)
		acc[k] = x->phi[3 + k];
}

/* Its end: the addresses go on by so many bytes; acc are those behind it. */
static void
close_loop(Lower *l, Loop *x, Val a, Val b, Val *acc)
{
	LLVMBasicBlockRef last = LLVMGetInsertBlock(l->b);
	Val one = LLVMConstInt(lower_i64(l), 1, 0);
	Val next[MAX_VECTORS + 3] = {LLVMBuildSub(l->b, x->left, one, ""), byte_at(l, x->a, a), byte_at(l, x->b, b)};
	for (unsigned k = 3; k < x->n; k++)
		next[k] = acc[k - 3];
	LLVMBuildBr(l->b, x->head);
	for (unsigned k = 0; k < x->n; k++)
		LLVMAddIncoming(x->phi[k], &next[k], &last, 1);
	LLVMPositionBuilderAtEnd(l->b, x->exit);
	for (unsigned k = 3; k < x->n; k++)
		acc[k - 3] = x->phi[k];
}

static void
add_chained(Lower *l, const Dot *d, Val groups)
{
	LLVMTypeRef f32s = vector_of(LLVMFloatTypeInContext(l->ctx), VECTOR_LANES);
	unsigned n = d->rows * d->columns;
	Val acc[MAX_VECTORS];
	Loop group, pair;
	for (unsigned k = 0; k < n; k++)
		acc[k] = d->anew ? LLVMConstNull(f32s) : load(l, f32s, row_vector(l, d, k));
	open_loop(l, d, &group, groups, d->a.at, d->b.at, acc);
	if (d->pairs == 1) {
		add_pair(l, d, group.a, group.b, acc);
	} else {
		open_loop(l, d, &pair, LLVMConstInt(lower_i64(l), d->pairs, 0), group.a, group.b, acc);
		add_pair(l, d, pair.a, pair.b, acc);
		close_loop(l, &pair, LLVMConstInt(lower_i64(l), PAIR_BYTES, 0), d->b.row, acc);
	}
	close_loop(l, &group, d->a.group, d->b.group, acc);
	for (unsigned k = 0; k < n; k++)
		LLVMSetAlignment(LLVMBuildStore(l->b, acc[k], row_vector(l, d, k)), PAIR_BYTES);
}

/* --- either --- */

void
lower_dot(Lower *l, ValId v)
{
	TirDot shape = tir_dot_shape(lower_inst(l, v)->imm.i);
	Dot d = {.rows = shape.chained ? shape.rows : shape.rows / TILE_ROWS,
	         .columns = shape.columns / TILE_ROWS, .pairs = shape.pairs, .anew = shape.anew};
	unsigned at = 4;
	d.c = matrix(l, v, 0, 2, &at);
	d.a = matrix(l, v, 1, 3, &at);
	d.b = matrix(l, v, 2, 3, &at);
	if (shape.chained) {
		add_chained(l, &d, lower_arg(l, v, 3));
		return;
	}
	start_accumulators(l, &d);
	add_groups(l, &d, lower_arg(l, v, 3));
	move_accumulators(l, &d, "llvm.x86.tilestored64");
}
