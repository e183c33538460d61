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
#ifndef TEXO_PASSES_SCHEDULE_POINT_POINT_H
#define TEXO_PASSES_SCHEDULE_POINT_POINT_H

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
	const bool *stored;     /* it must be in memory: a result, or read by another kernel */
	const uint32_t *result; /* 1 + index of the result that it is, or 0 */
	const bool *streams;    /* a result that nothing reads from memory, but for its own kernel */
	bool cuts;              /* the graph has ranges that may be cut */
} Places;

/* The tensor in whose memory t lives (kernel_args.c). */
TensorId places_memory(const Graph *g, const Places *places, TensorId t);

enum { POINT_MAX_COPIES = 8 };

/* Where reads of a tensor find it. */
typedef enum {
	IN_MEMORY, /* in `data` */
	IN_VALUE,  /* its element at the current point is value[copy] */
	IN_PANEL   /* in `panel`, memory of the call's own, indexed by some of the tensor's axes */
} Where;

/* A tensor as a kernel sees it. */
typedef struct {
	TensorId tensor;
	Where where;
	ValId extent[TG_MAX_RANK], stride[TG_MAX_RANK]; /* as bound, in elements; a local one has no stride */
	ValId data, fault; /* views; 0: not bound */
	PointVal value[POINT_MAX_COPIES];
	ValId panel;       /* memory of the call's own; a stored tensor may have it beside its place */
	bool steps;                              /* IN_VALUE is only what is read at the point itself */
	uint8_t point_axis[TG_MAX_RANK];         /* the axes of that point */
	uint8_t npanel, panel_axis[TG_MAX_RANK]; /* the tensor's axes that index the panel */
	bool streams;      /* stored past the caches if it is large */
	bool panel_lanes;  /* the panel has a last axis more, of a vector for each copy */
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

/* A read along an axis whose elements are found in a view, from that of the axis' value `from` on; view 0: no longer. */
typedef struct {
	ExprId e;
	ValId view, from;
	unsigned axis;
} PointListed;

/* Values that are out of sight while those of another point are made. */
typedef struct {
	uint32_t n;
	PointUndo *undo;
	PointVal *val;
} PointHidden;

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
	ExprId flat;             /* not 0: tensors have so many elements, in one row, and are 1 along the other axes */
	bool unit;               /* last strides of parameters and results are 1: their binds say so */
	unsigned lanes;          /* 0: points */
	uint32_t lane_axes;      /* with lanes: the axes that vary by lane when they are open, as bits */
	uint32_t row_axes;       /* of rows of columns: the axes along the rows, whose values are vectors */
	unsigned ahead;          /* 1 + an axis whose values to come will be read; 0: none */
	unsigned ahead_by;       /* 1: the next one when this one's loops are through; more: so many turns from now */
	ValId ahead_rows;        /* with ahead, not 0: so many values further on, as the kernel runs */
	unsigned copy;           /* which of several points, or vectors, lowered side by side is meant */
	bool one;                /* with lanes: what is evaluated is the same in all of them, so a scalar */
	ValId mask;              /* with lanes: the lanes that exist; 0: all */
	/* the node whose expressions are lowered, and its point */
	const Node *node;
	ValId axis[TG_MAX_AXES];
	ExprId run[TG_MAX_AXES];   /* an axis that takes no values outside 0 .. run - 1; 0: not known */
	uint32_t short_axes;       /* those that take none outside 0 .. 2^31 - 1, as the template knows */
	PointVal acc;              /* ACC, in the type acc_type */
	DType acc_type;
	ValId touched;
	/* arguments */
	VEC(TensorArg) arg;
	VEC(struct { ExprId e; PointVal val; }) scalar;
	VEC(struct { ExprId e; ValId val; }) placed; /* IVARs, which stand for values of the template's own */
	VEC(PointListed) listed;
	VEC(ExprId) low;           /* of these that are no more than 0, or NaN, as the template knows */
	/* numbering of the kernel's expressions and what is known of them */
	PointNumber *map;
	uint32_t nmap, nnumber;
	VEC(ExprId) numbered;    /* by number - 1 */
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
/* All expressions of a node. */
void point_declare_exprs(Point *l, const Node *n);
/* The output and all expressions of a node. */
void point_declare_node(Point *l, TensorId t);
/* A tensor of the kernel's own: its extents, and no memory. Before any expression that reads it. */
void point_declare_local(Point *l, TensorId t);
/* Gives a local tensor memory of the call's own, indexed by these of its axes and, if lanes are not along
 * one of them, by the lane of `vectors` vectors side by side as well (0: none). */
void point_bind_panel(Point *l, TensorId t, const uint8_t *axis, unsigned naxis, unsigned vectors);
TensorArg *point_tensor(Point *l, TensorId t);
/* As the kernel sees it. */
ExprId point_extent(const Point *l, TensorId t, unsigned axis);
/* An integer expression over dims as a scalar; constants as they are. */
ValId point_launch_expr(Point *l, ExprId e);
/* A plane private to the kernel, with t's extents: a view of it. */
ValId point_plane(Point *l, TensorId t, DType dtype);

/* --- values (expr.c) --- */
/* Takes t's node as the one whose AXIS, ACC and TOUCHED are meant from here on. */
void point_enter_node(Point *l, TensorId t);
/* From here on vectors of `lanes` run along this axis (0 lanes: points). Vectors made before must have
 * been released. */
void point_set_lanes(Point *l, unsigned lanes, unsigned axis);
/* The same along all of these axes, as bits. */
void point_set_lane_axes(Point *l, unsigned lanes, uint32_t axes);
/* The IVAR e stands for v from here on, which varies by lane. What was made of it must have been released. */
void point_place(Point *l, ExprId e, ValId v);
/* From here on the read finds its elements there. */
void point_list(Point *l, PointListed read);
/* e at the current point. always: whoever runs this code demands e. */
PointVal point_value(Point *l, ExprId e, bool always);
/* Values made after a mark are forgotten by the release, at the end of a TIR region. */
uint32_t point_mark(const Point *l);
void point_release(Point *l, uint32_t mark);
/* The same of those alone that depend on this axis, which is about to take another value. */
void point_release_axis(Point *l, uint32_t mark, unsigned axis);
/* No value is known from here on, until those that were are back and those made since are forgotten. */
PointHidden point_hide(Point *l);
void point_show(Point *l, const PointHidden *hidden);

/* What each lane adds to the value of the axis along the lanes. */
ValId point_lanes(Point *l, DType t);
/* The axis along the lanes, when there is one. */
int point_lane_axis(const Point *l);

ValId point_word(Point *l, ValId first, ValId then);   /* the first nonzero of two fault words */
void point_join(Point *l, PointVal *v, PointVal from);     /* v also demanded `from` */
ValId point_pack(Point *l, PointVal v);                  /* TIR's FAULT word; 0 when none is possible */
/* Stores v as element p of t (p: one scalar an axis; axis `along` of t runs along the lanes, none if
 * it is negative), under the mask, and its fault word where that must go. */
void point_store(Point *l, TensorId t, PointVal v, const ValId *p, int along);
/* The same into the tensor's panel. */
void point_put_panel(Point *l, TensorId t, PointVal v, const ValId *p, int along);
PointVal point_load(Point *l, ValId view, DType dtype, const ValId *p, unsigned rank, ValId mask, int64_t flags,
                  unsigned lanes);
void point_put(Point *l, ValId view, DType dtype, PointVal v, const ValId *p, unsigned rank, ValId mask,
               int64_t flags);
PointVal point_zero(Point *l, DType dtype);
/* A scalar in all of the point's lanes; vectors, and 0, as they are. */
ValId point_widen(Point *l, ValId v);
/* Of a block's vector from base on: the lanes before end. Where groups are asked for, both are multiples of one. */
ValId point_block_mask(Point *l, ValId base, ValId end);
/* For a block: says which buffers may be one, an inout and the result that is written over it. */
void point_say_same_memory(Point *l);

/* --- pieces of expressions (complex.c, rand.c) --- */
PointVal point_complex(Point *l, Op op, PointVal a, PointVal b);
PointVal point_root(Point *l, ValId a, ValId n);
ValId point_rand(Point *l, Op op, const ValId *arg, unsigned narg);

#endif
