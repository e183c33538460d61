/* eval_run.h: one evaluation in progress, inside ir/eval*.c only. */
#ifndef TEXO_IR_EVAL_RUN_H
#define TEXO_IR_EVAL_RUN_H

#include "ir/eval_fold.h"

/* A tensor while evaluating: packed data of a parameter, or the values of a node. */
typedef struct {
	unsigned rank;
	int64_t extent[TG_MAX_RANK], count;
	const void *packed;
	Val *at;
} RunTensor;

/* One expression and all it needs, compiled: slots in an order where operands come first. Values
 * stay valid while nothing they depend on has moved: `depth` is 1 + the innermost axis, 0 for
 * none, and a slot is fresh while its stamp is that depth's epoch. A block is what one demand
 * evaluates; what SELECT, AND and OR may leave out is in blocks of its own. */
typedef struct {
	uint8_t op, dtype, from, depth; /* from: the first operand's type */
	uint16_t narg;
	uint32_t arg;  /* in Code.arg */
	uint32_t ref;
	AccessId access;
	uint32_t block[2]; /* of the operands 1 and 2 of lazy ops */
	bool joined;       /* of a step that may be taken together with others (eval_code.c): no result is rounded for certain */
} Instr;

typedef struct {
	uint32_t begin, n; /* in Code.list */
} CodeBlock;

typedef struct {
	VEC(Instr) instr;
	VEC(uint32_t) arg, list;
	VEC(CodeBlock) block; /* [0]: the root's */
	Val *val;
	uint64_t *stamp;
	uint32_t root;
	uint32_t state;     /* 1 + the slot of the state that steps which may be joined are linear in; 0: they are not */
} Code;

/* As which a step's state is read: with its error; or as exact, at its value or at an end of what it may be. */
typedef enum { STATE_AS_IT_IS, STATE_VALUE, STATE_ABOVE, STATE_BELOW, STATE_COUNT } StateAt;

enum { RUN_CONSTANT = 1 }; /* the epoch of depth 0 */

typedef struct {
	uint32_t block, at;
} RunFrame;

typedef struct {
	const Graph *g;
	Arena *arena;
	const EvalInputs *in;
	RunTensor *tensor;    /* by TensorId */
	int64_t *dim;         /* by DimId */
	uint32_t *slot;       /* by ExprId, 1 + the slot while compiling, else 0 */
	VEC(ExprId) stack;
	VEC(RunFrame) frame;
	/* the point */
	int64_t axis[TG_MAX_AXES];
	uint64_t epoch[TG_MAX_AXES + 2], clock;
	unsigned naxis;       /* of the node; finish has depth naxis + 1 */
	Val acc, touched;
	DType acc_type;
	StateAt state;
	/* the launch */
	AccessId fault, cut;  /* what belongs to no element: scatter targets */
	bool *failing;        /* by AccessId */
	int64_t terms, max_values;
	bool too_large;
} Run;

/* --- eval_code.c --- */
/* The code of e, or NULL for 0. Reads of members of `recur` are made anew for every point of the
 * npar parallel axes. */
Code *code_new(Run *r, ExprId e, unsigned npar, RecurId recur);

/* --- eval_expr.c --- */
const Val *code_run(Run *r, Code *c);
/* How many roundings a term of the node's sum may have more than its formula has; 0: no other order (eval_order.c). */
unsigned run_moved_roundings(const Graph *g, const Node *n);
void run_set_axis(Run *r, unsigned k, int64_t v);
void run_finish_point(Run *r, DType type, Val acc, Val touched);

/* --- eval_op.c: one operation, its operands present --- */
void op_apply(const Run *r, const Instr *p, const Val *const *a, Val *v);

/* --- eval_node.c --- */
/* Evaluates every node that a result needs. */
void run_nodes(Run *r);
/* An integer expression of the launch: no axes. */
int64_t run_integer(Run *r, ExprId e);
/* The same; false when arithmetic of i64 wraps on the way. */
bool run_exact(Run *r, ExprId e, int64_t *v);
/* Extents and count of t, from its expressions; too_large when the product exceeds the limit. */
void run_extents(Run *r, TensorId t);

#endif
