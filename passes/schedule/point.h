/* point.h: what the templates share: a kernel's arguments, and TG expressions as TIR values at one
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
#ifndef TEXO_PASSES_SCHEDULE_POINT_H
#define TEXO_PASSES_SCHEDULE_POINT_H

#include "ir/kp.h"

enum { POINT_MAX_RANK = TG_MAX_RANK + 1 }; /* c64 views have an axis more */

typedef struct {
	ValId re, im;    /* im: c64 only */
	ValId fail, cut; /* u32: the failed and the cut access, 0 for none; id 0: can't be any */
} PointVal;

/* Where the tensors of a graph live, and what follows from it. By TensorId. */
typedef struct {
	const bool *faulty;     /* graph_may_fault */
	const bool *read;       /* a node reads it, so a fault must travel in a plane */
	const uint32_t *result; /* 1 + index of the result that it is, or 0 */
	bool cuts;              /* the graph has ranges that may be cut */
} Places;

/* A tensor as a kernel sees it. */
typedef struct {
	TensorId tensor;
	ValId extent[TG_MAX_RANK], stride[TG_MAX_RANK]; /* as bound, in elements */
	ValId data, fault; /* views; 0: not bound */
	ValId dense;       /* data with a last stride of 1, when that is not known of `data` itself */
} TensorArg;

typedef enum { AT_VECTOR, AT_BASE, AT_COUNT } PointAt; /* AT_BASE: scalars, the lane axis at lane 0 */

typedef struct {
	PointVal val;
	bool done;
} PointSlot;

typedef struct {
	ExprId from;
	uint32_t number;
} PointNumber;

typedef struct {
	uint32_t number;
	PointAt at;
} PointUndo;

typedef struct {
	ExprId e;
	PointAt at;
} PointJob;

typedef struct Point {
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
	PointVal acc;              /* ACC, in the type acc_type */
	DType acc_type;
	ValId touched;
	/* arguments */
	VEC(TensorArg) arg;
	VEC(struct { ExprId e; PointVal val; }) scalar;
	/* numbering of the kernel's expressions and what is known of them */
	PointNumber *map;
	uint32_t nmap, nnumber;
	VEC(uint8_t) varies;     /* by number: VARY_* along the lane axis */
	VEC(uint32_t) strict;    /* by number: the root that demands it */
	uint32_t root;
	VEC(PointSlot) slot[AT_COUNT];
	VEC(PointUndo) undo;
	VEC(PointJob) stack;
} Point;

/* --- arguments (kernel_args.c): all before the first expression, in the kernel's body --- */
void point_begin(Point *l, Graph *g, Arena *scratch, const Places *places, Kernel *kernel);
/* Numbers the expressions under e and binds what they read. */
void point_declare(Point *l, ExprId e);
/* A node's output: its data and, where one is needed, its fault plane, both written. Before any
 * expression that reads it. */
void point_declare_output(Point *l, TensorId t);
/* The output and all expressions of a node. */
void point_declare_node(Point *l, TensorId t);
TensorArg *point_tensor(Point *l, TensorId t);
/* An integer expression over dims as a scalar; constants as they are. */
ValId point_launch_expr(Point *l, ExprId e);
/* A plane private to the kernel, with t's extents: a view of it. */
ValId point_plane(Point *l, TensorId t, DType dtype);

/* --- values (point_expr.c) --- */
/* Takes t's node as the one whose AXIS, ACC and TOUCHED are meant from here on. */
void point_enter_node(Point *l, TensorId t);
/* e at the current point. always: whoever runs this code demands e. */
PointVal point_value(Point *l, ExprId e, bool always);
/* Values made after a mark are forgotten by the release, at the end of a TIR region. */
uint32_t point_mark(const Point *l);
void point_release(Point *l, uint32_t mark);

ValId point_word(Point *l, ValId first, ValId then);   /* the first nonzero of two fault words */
void point_join(Point *l, PointVal *v, PointVal from);     /* v also demanded `from` */
ValId point_pack(Point *l, PointVal v);                  /* TIR's FAULT word; 0 when none is possible */
/* Stores v as element p of t (p: one scalar an axis; lane_axis along lanes), under the mask, and
 * its fault word where that must go. */
void point_store(Point *l, TensorId t, PointVal v, const ValId *p);
PointVal point_load(Point *l, ValId view, DType dtype, const ValId *p, unsigned rank, ValId mask, int64_t flags,
                  unsigned lanes);
void point_put(Point *l, ValId view, DType dtype, PointVal v, const ValId *p, unsigned rank, ValId mask,
               int64_t flags);
PointVal point_zero(Point *l, DType dtype);

/* --- pieces of expressions (point_complex.c, point_rand.c) --- */
PointVal point_complex(Point *l, Op op, PointVal a, PointVal b);
PointVal point_root(Point *l, ValId a, ValId n);
ValId point_rand(Point *l, Op op, const ValId *arg, unsigned narg);

#endif
