/* tir.h: the tile IR, shared by CPU and GPU. SSA in structured regions; a value is an instruction's
 * id; operands have smaller ids.
 *
 * Types: a dtype and a tile shape of rank 0 (a scalar) or 1 (a vector of lanes, in registers).
 * Matrix tiles, layouts, spaces and channels join here as templates need them. There is no c64:
 * a template splits it into two f32.
 *
 * Arithmetic is exact to the bit: every operation is defined for every input (op rows in ops.def,
 * casts as in LANGUAGE.md), both operands of && and || are evaluated, nothing is contracted or
 * reordered by later stages. So interpreter, CPU and GPU agree to the bit on the same TIR.
 *
 * Operands of the structural operations:
 *   BUFFER   imm = k: the kernel's k-th buffer. Type: none.
 *   SCALAR   imm = k: the kernel's k-th scalar argument (i64, or the dtype of a scalar parameter)
 *   TASK_LO, TASK_HI   i64: the half-open range of tasks this call runs
 *   VIEW     buffer, extent[0..rank), stride[0..rank) (i64, strides in elements); imm = rank.
 *            Type: the buffer's dtype, but it is no value: only LOAD and STORE take it.
 *   LOAD     view, index[0..rank), [mask bool]; imm = LoadFlags. Where the mask is false nothing is
 *            read and the value is 0. Type of the view's dtype. Each index is i64, scalar or a
 *            vector of the result's lanes. With TIR_LANES_ALONG(a), result lane l reads index[a] + l.
 *   STORE    view, value, index[0..rank), [mask]; imm as LOAD. 4-bit stores keep the other nibble.
 *   DOT      adds a product of matrices to one in memory. Views c (f32), a and b (u32: two bf16 each, the
 *            low half first), n (i64), then the leading indices (i64) of c, a and b, in this order: all
 *            but the last two of c (row, column), the last three of a (group, row, pair) and of b
 *            (group, pair, column). imm = TIR_DOT(rows, columns, pairs), the extents from the leading
 *            indices on. For each group 0 .. n-1 in turn, c += the sum of a's low halves by b's plus
 *            the sum of a's high halves by b's: each of the two is one fma a pair, from +0. Subnormal
 *            operands count as 0 and subnormal results become 0. c lies in a buffer of its own.
 *   FAULT    id (u32, scalar or vector): low 16 bits a failed AccessId, high 16 bits a cut one, each 0
 *            for none. The launch keeps the first nonzero of each. Fault planes hold the same words.
 *   FOR      lo, hi, step (i64; step > 0), init…; region[0] has BLOCKARGs: the index, then the carried values,
 *            and ends in YIELD of the carried values. RESULT k is the k-th carried value at the end.
 *   IF       cond (scalar bool); region[0] then, region[1] else, both ending in YIELD of equal types.
 *   BLOCKARG imm = k; RESULT: operand FOR or IF, imm = k
 *   IOTA     vector 0, 1, …        SPLAT scalar -> vector       LANE vector -> its lane imm or, of a
 *            vector type, its lanes imm, imm + 1, … (fewer than all)
 *   SLIDE    a, b, vectors of one type of n lanes: lanes imm .. imm + n - 1 of a followed by b; 0 < imm < n
 *   CONST    imm as in TG; a vector type means splat */
#ifndef TEXO_IR_TIR_H
#define TEXO_IR_TIR_H

#include "ir/arena.h"
#include "ir/names.h"
#include "ir/op.h"
#include "ir/text.h"

typedef uint32_t ValId; /* 0: none */

enum { TIR_MAX_RANK = 9, TIR_MAX_LANES = 256 };

typedef struct {
	uint8_t dtype; /* DType; DT_NONE for what has no value */
	uint16_t lanes; /* 0: scalar; else a vector */
} TirType;

enum {
	TIR_MASKED = 1, /* the last operand of LOAD or STORE is a mask */
	TIR_STREAM = 2  /* STORE of a vector along an axis: nothing reads it soon, so a large view may go past
	                 * the caches */
};
/* LOAD of a vector along an axis: the one with the next index along axis a follows soon */
#define TIR_AHEAD(a) (((a) + 1) << 4)
#define TIR_AHEAD_AXIS(imm) ((int)((imm) >> 4 & 15) - 1) /* -1: not known to */
#define TIR_LANES_ALONG(a) (((a) + 1) << 8)
#define TIR_DOT(rows, columns, pairs) ((int64_t)(rows) | (int64_t)(columns) << 16 | (int64_t)(pairs) << 32)
enum { TIR_MAX_DOT = 64 }; /* rows, columns and pairs, each */
typedef struct {
	unsigned rows, columns, pairs;
} TirDot;
static inline TirDot
tir_dot_shape(int64_t imm)
{
	return (TirDot){imm & 0xffff, imm >> 16 & 0xffff, imm >> 32 & 0xffff};
}
#define TIR_LANE_AXIS(imm) ((int)((imm) >> 8) - 1) /* -1: none */

typedef struct {
	VEC(ValId) inst; /* in order; BLOCKARGs first, YIELD last (kernel bodies have neither) */
} TirRegion;

typedef struct {
	uint8_t op; /* Op */
	TirType type;
	uint16_t nregion;
	uint32_t narg, arg;  /* operands: TirKernel.arg[arg .. arg+narg) */
	uint32_t region;     /* first region: TirKernel.region[region] */
	union {
		int64_t i;
		double f;
	} imm;
} TirInst;

typedef struct {
	Name name;
	DType dtype;
	bool written;
} TirBuffer;

typedef struct {
	Name name;
	DType dtype; /* i64 or a scalar parameter's dtype */
} TirScalar;

typedef struct TirKernel {
	Arena *arena;
	Names *names;
	Name name;
	VEC(TirBuffer) buffer;
	VEC(TirScalar) scalar;
	VEC(TirInst) inst;   /* [0] unused */
	VEC(ValId) arg;
	VEC(TirRegion) region; /* [0] is the body */
	VEC(uint32_t) open;    /* while building: the stack of open regions, the body first */
} TirKernel;

/* --- building --- */
TirKernel *tir_new(Arena *a, Names *names, Name name);
static inline TirType
tir_scalar(DType t)
{
	return (TirType){(uint8_t)t, 0};
}
static inline TirType
tir_vector(DType t, unsigned lanes)
{
	return (TirType){(uint8_t)t, (uint16_t)lanes};
}
unsigned tir_add_buffer(TirKernel *k, Name name, DType t, bool written);
unsigned tir_add_scalar(TirKernel *k, Name name, DType t);
/* Appends to the open region. Scalar operands next to vector ones are splatted by these helpers. */
ValId tir_emit(TirKernel *k, Op op, TirType type, int64_t imm, const ValId *arg, unsigned narg);
ValId tir_int(TirKernel *k, DType t, int64_t v);
ValId tir_float(TirKernel *k, DType t, double v);
ValId tir_unary(TirKernel *k, Op op, ValId a);
ValId tir_binary(TirKernel *k, Op op, ValId a, ValId b);
ValId tir_select(TirKernel *k, ValId c, ValId a, ValId b);
ValId tir_cast(TirKernel *k, DType to, ValId a);
ValId tir_bitcast(TirKernel *k, DType to, ValId a);
ValId tir_fma(TirKernel *k, ValId a, ValId b, ValId c);
ValId tir_view(TirKernel *k, unsigned buffer, unsigned rank, const ValId *extent, const ValId *stride);
ValId tir_load(TirKernel *k, ValId view, const ValId *index, ValId mask, int64_t flags, unsigned lanes);
void tir_store(TirKernel *k, ValId view, ValId value, const ValId *index, ValId mask, int64_t flags);
void tir_fault(TirKernel *k, ValId id);
/* index: the leading indices of c, then a's, then b's. */
void tir_dot(TirKernel *k, int64_t shape, ValId c, ValId a, ValId b, ValId n, const ValId *index);
/* a as vectors of another width: all its bits as lanes of `to`. */
ValId tir_recast(TirKernel *k, DType to, ValId a);
/* Opens a loop: returns the index; carried[0..n) are replaced by their values inside. */
ValId tir_for(TirKernel *k, ValId lo, ValId hi, ValId step, ValId *carried, unsigned n);
/* Closes it with the next values, which are replaced by the values after the loop. */
void tir_end_for(TirKernel *k, ValId *carried, unsigned n);
void tir_if(TirKernel *k, ValId cond);
void tir_else(TirKernel *k, const ValId *value, unsigned n); /* ends `then` with its values */
void tir_end_if(TirKernel *k, ValId *value, unsigned n);     /* ends `else`; replaced by the results */

static inline const TirInst *
tir_inst(const TirKernel *k, ValId v)
{
	return &k->inst.at[v];
}
static inline ValId
tir_arg(const TirKernel *k, ValId v, unsigned n)
{
	return k->arg.at[k->inst.at[v].arg + n];
}

/* --- rewriting: copies a kernel, each instruction through emit(), which appends what replaces it to
 * `to` and returns the value, given its operands already mapped; tir_copy_inst is the identity.
 * Structure (FOR, IF, YIELD, BLOCKARG, RESULT) is copied by tir_rewrite itself. --- */
typedef ValId TirEmitFn(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg);
ValId tir_copy_inst(TirKernel *to, const TirKernel *from, ValId v, const ValId *arg);
TirKernel *tir_rewrite(const TirKernel *from, Arena *a, TirEmitFn *emit, void *user);

/* --- text, rules, meaning --- */
void tir_print(const TirKernel *k, Text *out);
/* Checks the syntax only, for any text; NULL with a message that names the line. */
TirKernel *tir_read(Arena *a, Names *names, const char *text, size_t n, const char **error);
bool tir_verify(const TirKernel *k, Arena *scratch, const char **error);

typedef struct {
	void *data;      /* packed storage of the buffer's dtype */
	int64_t bytes;   /* an access outside is reported */
} TirMemory;

typedef struct {
	const TirMemory *buffer;
	const void *const *scalar; /* each points to one value of the scalar's dtype */
	int64_t task_lo, task_hi;
	uint32_t fault, cut;       /* out: the accesses recorded first, or 0 */
	int64_t max_steps;         /* 0: 2^40 */
} TirRun;

/* Verifies and runs. False with a message when the kernel does what it must not: reads or writes
 * outside a buffer or a view, or runs too long. */
bool tir_interpret(const TirKernel *k, Arena *scratch, TirRun *run, const char **error);

#endif
