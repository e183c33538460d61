/* lower.h: what the templates share: a kernel's arguments, and TG expressions as TIR values at one
 * point, or at one vector of points along an axis.
 *
 * Demand. Every operation of TIR is total, so both arms of a SELECT and both sides of && and || are
 * evaluated. What must not happen where a value is not demanded is an access outside a tensor, and
 * a fault. So a READ is *strict* when whatever evaluates its root evaluates it too (no arm of a
 * SELECT and no right side of && or || on the way); a strict READ with no access id is in bounds by
 * the graph's invariant and is loaded as it is. Every other READ is loaded under a test of its own
 * bounds. Fault words flow with the values that demanded them: a SELECT passes on the word of its
 * condition, else that of the arm taken. So each expression is lowered once, however many paths
 * lead to it.
 *
 * A value without a possible fault carries no word and costs nothing. */
#ifndef TEXO_PASSES_SCHEDULE_LOWER_H
#define TEXO_PASSES_SCHEDULE_LOWER_H

#include "ir/kp.h"

enum { LOWER_MAX_RANK = TG_MAX_RANK + 1 }; /* c64 views have an axis more */

typedef struct {
	ValId re, im;    /* im: c64 only */
	ValId fail, cut; /* u32: the failed and the cut access, 0 for none; id 0: can't be any */
} LowVal;

/* Where the tensors of a graph live, and what follows from it. By TensorId. */
typedef struct {
	const bool *faulty;     /* graph_may_fault */
	const bool *read;       /* a node reads it, so a fault must travel in a plane */
	const uint32_t *result; /* 1 + index of the result that it is, or 0 */
	bool cuts;              /* the graph has ranges that may be cut */
} Places;

/* A tensor as a kernel sees it. With contiguous, views know that the last axis has stride 1. */
typedef struct {
	TensorId tensor;
	ValId extent[TG_MAX_RANK], stride[TG_MAX_RANK]; /* as bound, in elements */
	ValId data, fault; /* views; 0: not bound */
	ValId dense;       /* data with a last stride of 1, when that is not known of `data` itself */
} TensorArg;

typedef enum { AT_VECTOR, AT_BASE, AT_COUNT } LowerAt; /* AT_BASE: scalars, the lane axis at lane 0 */

typedef struct {
	LowVal val;
	bool done;
} LowSlot;

typedef struct {
	ExprId from;
	uint32_t number;
} LowNumber;

typedef struct {
	uint32_t number;
	LowerAt at;
} LowUndo;

typedef struct {
	ExprId e;
	LowerAt at;
} LowJob;

typedef struct Lower {
	Graph *g;
	Arena *scratch;
	const Places *places;
	Kernel *kernel;
	TirKernel *tir;
	bool dense;              /* use TensorArg.dense: tested by the template */
	unsigned lanes;          /* 0: points */
	unsigned lane_axis;      /* with lanes: this parallel axis varies by lane */
	ValId mask;              /* with lanes: the lanes that exist; 0: all */
	/* the node whose expressions are lowered, and its point */
	const Node *node;
	ValId axis[TG_MAX_AXES];
	LowVal acc;              /* ACC, in the type acc_type */
	DType acc_type;
	ValId touched;
	/* arguments */
	VEC(TensorArg) arg;
	VEC(struct { ExprId e; LowVal val; }) scalar;
	/* numbering of the kernel's expressions and what is known of them */
	LowNumber *map;
	uint32_t nmap, nnumber;
	VEC(uint8_t) varies;     /* by number: VARY_* along the lane axis */
	VEC(uint32_t) strict;    /* by number: the root that demands it */
	uint32_t root;
	VEC(LowSlot) slot[AT_COUNT];
	VEC(LowUndo) undo;
	VEC(LowJob) stack;
} Lower;

/* --- arguments (kernel_args.c): all before the first expression, in the kernel's body --- */
void lower_begin(Lower *l, Graph *g, Arena *scratch, const Places *places, Kernel *kernel);
/* Numbers the expressions under e and binds what they read. */
void lower_declare(Lower *l, ExprId e);
/* A node's output: its data and, where one is needed, its fault plane, both written. Before any
 * expression that reads it. */
void lower_declare_output(Lower *l, TensorId t);
/* The output and all expressions of a node. */
void lower_declare_node(Lower *l, TensorId t);
TensorArg *lower_tensor(Lower *l, TensorId t);
/* An integer expression over dims as a scalar; constants as they are. */
ValId lower_launch_expr(Lower *l, ExprId e);
/* A plane private to the kernel, with t's extents: a view of it. */
ValId lower_plane(Lower *l, TensorId t, DType dtype);

/* --- values (lower_expr.c) --- */
/* Takes t's node as the one whose AXIS, ACC and TOUCHED are meant from here on. */
void lower_enter_node(Lower *l, TensorId t);
/* e at the current point. always: whoever runs this code demands e. */
LowVal lower_value(Lower *l, ExprId e, bool always);
/* Values made after a mark are forgotten by the release, at the end of a TIR region. */
uint32_t lower_mark(const Lower *l);
void lower_release(Lower *l, uint32_t mark);

ValId lower_word(Lower *l, ValId first, ValId then);   /* the first nonzero of two fault words */
void lower_join(Lower *l, LowVal *v, LowVal from);     /* v also demanded `from` */
ValId lower_pack(Lower *l, LowVal v);                  /* TIR's FAULT word; 0 when none is possible */
/* Stores v as element p of t (p: one scalar an axis; lane_axis along lanes), under the mask, and
 * its fault word where that must go. */
void lower_store(Lower *l, TensorId t, LowVal v, const ValId *p);
LowVal lower_load(Lower *l, ValId view, DType dtype, const ValId *p, unsigned rank, ValId mask, int64_t flags,
                  unsigned lanes);
void lower_put(Lower *l, ValId view, DType dtype, LowVal v, const ValId *p, unsigned rank, ValId mask,
               int64_t flags);
LowVal lower_zero(Lower *l, DType dtype);

/* --- pieces of expressions (lower_complex.c, lower_rand.c) --- */
LowVal lower_complex(Lower *l, Op op, LowVal a, LowVal b);
LowVal lower_root(Lower *l, ValId a, ValId n);
ValId lower_rand(Lower *l, Op op, const ValId *arg, unsigned narg);

#endif
