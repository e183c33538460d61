/* tg.h: the tensor graph. Every node is
 *
 *     out[p] = finish( (+)_{r in ranges, guard(p,r)} body(p, r) )
 *
 * with p the node's parallel axes (one per axis of `out`), r its reduced axes, (+) a monoid.
 * Without a monoid there is no r and out[p] = body(p).
 *
 * Bodies, guards, ranges, subscripts and extents are hash-consed scalar expressions in one pool:
 * equal expressions have equal ids, operands have smaller ids. Inside a node AXIS k is its k-th
 * axis, parallel axes first. Extents and launch checks use DIM, CONST, integer arithmetic and reads
 * of rank-0 inputs only.
 *
 * Evaluation is by demand. SELECT evaluates the arm taken; AND and OR evaluate the right side only
 * where the left leaves it open; a term is evaluated only where the guard holds. A plain READ is in
 * bounds wherever it is evaluated: proved, guarded, or guaranteed by a launch check. A READ with an
 * access id (a gather) is checked as it runs: outside, its value is 0 and the value that demanded
 * it carries the fault; a result element with a fault is reported. Presence (LANGUAGE.md, Domains)
 * is gone: it has become guards, selects and each node's `domain`.
 *
 * A free cast, of f32 to a narrower float, is one that the mode made and not the program: who reads it finds
 * the value rounded, or as it was (LANGUAGE.md, relaxed). It is read by casts back to f32 alone.
 *
 * A narrowed function (F_NARROW, of f32) is one all of whose paths end in a narrow float: it is within 1/16 of a
 * unit in the last place of the type that its mark names, bf16 or f16, with f32's exponents (LANGUAGE.md, relaxed). A
 * narrowed TANH is also within 2^-21 of itself.
 *
 * Recurrences: a Recur names the nodes that read one another and their sequential axes, outermost
 * first. Steps run in order; within a step the members run in the order of `member`. Only members
 * of one Recur may read nodes with larger ids. */
#ifndef TEXO_IR_TG_H
#define TEXO_IR_TG_H

#include "ir/arena.h"
#include "ir/diag.h"
#include "ir/names.h"
#include "ir/op.h"
#include "ir/text.h"

enum { TG_MAX_RANK = 8, TG_MAX_AXES = 24, TG_MAX_SEQ = 8 };
#define TG_EXPANDED_LEAST 0.125 /* Node.expanded */

typedef uint32_t ExprId;   /* 0: none */
typedef uint32_t TensorId; /* 0: none; inputs in source order first, then nodes in topological order */
typedef uint32_t DimId;    /* 0: none */
typedef uint32_t AccessId; /* 0: proved or guaranteed; else an entry of Graph.access */
typedef uint32_t RecurId;  /* 0: none */

typedef struct {
	uint8_t op;    /* Op */
	uint8_t dtype; /* DType of the value */
	uint16_t narg;
	uint32_t arg;  /* first operand in Graph.arg */
	uint32_t ref;  /* AXIS, IVAR: number; DIM: DimId; READ: TensorId; CAST: 1 if it is free;
	                * F_NARROW: the DType that its result is as exact as, 0 for its own */
	uint32_t access; /* READ: AccessId */
	union {        /* CONST: by the dtype's kind */
		int64_t i; /* signed, unsigned (as bits) and bool */
		double f;  /* floats of every width: exactly the value of that type */
	} imm;
} Expr;

typedef enum {
	TENSOR_NONE = 0,
	TENSOR_INPUT,
	TENSOR_INOUT,  /* as an input: its value before the graph ran */
	TENSOR_SCALAR, /* a scalar parameter, rank 0, passed by value */
	TENSOR_NODE
} TensorKind;

typedef struct {
	TensorKind kind;
	Name name; /* 0 for what the compiler introduced */
	Span at;
	DType dtype;
	uint8_t rank;
	ExprId extent[TG_MAX_RANK]; /* i64; element (p) lies in 0 <= p[a] < extent[a] */
	uint32_t node;              /* TENSOR_NODE: index into Graph.node */
} Tensor;

typedef struct {
	Name name; /* as the user wrote it; 0 if none */
	/* Parallel: 0 <= axis < extent of the tensor; lo and hi are unused. Reduced: lo <= axis < hi,
	 * which may use the parallel axes, earlier reduced axes and reads; empty if hi <= lo. */
	ExprId lo, hi;
	/* Reduced, read from data: the range is further cut to 0 <= axis < clamp, and a launch whose
	 * cut removed anything reports `cut` (a notice, not a failure). 0: no cut. */
	ExprId clamp;
	AccessId cut;
} Axis;

typedef struct {
	TensorId out;
	uint8_t npar, nred;
	Axis axis[TG_MAX_AXES];
	Monoid monoid;  /* MON_NONE: pointwise, nred == 0 */
	ExprId domain;  /* bool over p; 0 = everywhere. Where false the value is never asked for */
	ExprId guard;   /* bool over p and r; 0 = all. Terms where false are absent */
	ExprId body;    /* over p and r */
	ExprId finish;  /* over p, ACC, TOUCHED; 0 = ACC */
	/* Of a sum without a domain or a guard, another way to it, or 0: a + b - c * d, where a and b are elements over p, c and d over p
	 * and r. The fold is a + b less the sum of c * d wherever that is not below TG_EXPANDED_LEAST of a + b, to as many bits as the
	 * mode asks for. Who takes the other way folds what is below, or no number, as the body says (passes/fuse/expand_squares.c). */
	ExprId expanded;
	/* Over dims, or 0: only where it is not 0 does a launch ask for the elements. Of nodes that are read in `expanded` alone, all
	 * those of one the same. */
	ExprId when;
	/* Scatter: r are the indices of the statement, and the term r goes to the element `target`
	 * (over r); body, guard and target then use r only, numbered npar..npar+nred-1, in ascending
	 * order of r. The fold starts from `init` (over p; 0 = the monoid's unit, or absent). */
	bool scatter;
	ExprId target[TG_MAX_RANK];
	AccessId target_access[TG_MAX_RANK]; /* 0: proved */
	ExprId init;
	/* Set when compilation begins, for a scatter that can fault and that the results read: the launch
	 * reports a term that reaches no element, even if passes find that no element is needed. */
	bool reports;
	bool parts;            /* of a fold: computed at once by tasks apart, so what reads them is another kernel */
	ExprId factor;         /* of no node of a graph, but of what plans make of a linear recurrence: what each step first
	                        * multiplies the fold so far by (passes/schedule/rows/linear.h) */
	RecurId recur;
	uint8_t seq[TG_MAX_SEQ]; /* with recur: which parallel axis is the k-th sequential one */
} Node;

typedef struct {
	uint8_t nseq;
	int8_t dir[TG_MAX_SEQ]; /* +1 ascending, -1 descending */
	VEC(TensorId) member;   /* in the order of one step */
} Recur;

typedef enum { ACCESS_GATHER, ACCESS_SCATTER, ACCESS_CUT } AccessKind;

typedef struct {
	AccessKind kind;
	Span at;
	const char *text; /* as written: "table[ids[t], d]" */
} Access;

/* How the value of a dim is found at launch: from axis `axis` of parameter `param` (an index into
 * Graph.param) as (extent - offset) / scale, from a scalar parameter (axis -1), or fixed. With a turn it
 * is the one that makes the axis's extent, an expression linear in it that reads but dims of lower turns
 * beside it (x: f32[B * T]), what the argument has. */
typedef struct {
	Name name;
	Span at;
	int32_t param, axis;
	int64_t scale, offset; /* extent == scale * dim + offset */
	uint32_t turn;         /* 0, or: solved, after the dims of lower turns; scale and offset are 0 */
	bool fixed;
	int64_t value; /* fixed by -D */
	int64_t hint;  /* M ~ 4096; 0 none */
} Dim;

/* cond must hold at launch, else the launch fails naming `text`. */
typedef struct {
	ExprId cond;
	Span at;
	DiagCode code;
	const char *text; /* "H mod G == 0", "q[b, k*4 + 3] is within axis 1 of q" */
} Check;

typedef struct {
	Name name;
	Span at;
	TensorId tensor;  /* what to hand out */
	TensorId inout;   /* the parameter it overwrites, or 0 */
} Result;

typedef enum { FP_STRICT, FP_RELAXED, FP_FAST } FpMode;

typedef struct Graph {
	Arena *arena;
	Names *names;
	Name name;
	Span at;
	FpMode fp;
	VEC(Expr) expr;        /* [0] unused */
	VEC(ExprId) arg;
	VEC(Tensor) tensor;    /* [0] unused */
	VEC(Node) node;
	VEC(Node) whole;       /* folds that are done in parts, as they were before: by their tensors */
	VEC(Recur) recur;      /* [0] unused */
	VEC(Dim) dim;          /* [0] unused */
	VEC(Access) access;    /* [0] unused */
	VEC(Check) check;
	VEC(TensorId) param;   /* the signature's parameters, in source order */
	VEC(Result) result;    /* inouts that are written, then results, in source order */
	uint32_t *cons;        /* the hash table of expr */
	uint32_t ncons;
	struct ExprMemos *memos; /* memory of walks, kept from one to the next (tg_walk.c) */
	uint32_t max_expr;     /* limit; unwinds with UNWIND_LIMIT beyond it; 0 = default */
	VEC(ExprId) norm;      /* index_norm of each expression asked for so far; 0 = not yet */
} Graph;

Graph *graph_new(Arena *a, Names *names);

/* --- expressions: hash-consed constructors; no simplification happens here --- */
ExprId expr_make(Graph *g, Op op, DType dtype, uint32_t ref, AccessId access, const ExprId *arg,
                 unsigned narg);
ExprId expr_int(Graph *g, DType dtype, int64_t v);   /* wraps to the type; integers and bool */
ExprId expr_float(Graph *g, DType dtype, double v);  /* v must be a value of the type */
ExprId expr_unary(Graph *g, Op op, ExprId a);        /* result type by the op's signature */
ExprId expr_binary(Graph *g, Op op, ExprId a, ExprId b);
ExprId expr_select(Graph *g, ExprId c, ExprId a, ExprId b);
ExprId expr_cast(Graph *g, DType to, ExprId a);      /* a itself when it has that type */
ExprId expr_cast_free(Graph *g, DType to, ExprId a); /* see above */
ExprId expr_narrowed(Graph *g, ExprId e, DType t);  /* the function e (F_NARROW) with this mark */
ExprId expr_axis(Graph *g, unsigned k);
ExprId expr_ivar(Graph *g, uint32_t id);
ExprId expr_dim(Graph *g, DimId d);
ExprId expr_read(Graph *g, TensorId t, const ExprId *sub, unsigned nsub, AccessId access);
ExprId expr_and(Graph *g, ExprId a, ExprId b);       /* 0 stands for true on either side */

static inline const Expr *
expr_get(const Graph *g, ExprId e)
{
	return &g->expr.at[e];
}

static inline ExprId
expr_arg(const Graph *g, ExprId e, unsigned k)
{
	return g->arg.at[g->expr.at[e].arg + k];
}

static inline bool
expr_is_free_cast(const Graph *g, ExprId e)
{
	return expr_get(g, e)->op == OP_CAST && expr_get(g, e)->ref != 0;
}

/* The mark of a narrowed function, or DT_NONE. */
static inline DType
expr_narrow_type(const Graph *g, ExprId e)
{
	return op_info[expr_get(g, e)->op].flags & F_NARROW ? (DType)expr_get(g, e)->ref : DT_NONE;
}

/* Rewrites leaves: leaf(user, e) returns the replacement for an AXIS, IVAR, DIM, READ, ACC or
 * TOUCHED expression whose operands are already rewritten, or the expression itself. Shared parts
 * are visited once per call. */
typedef ExprId ExprLeafFn(void *user, Graph *g, ExprId e);
ExprId expr_rewrite(Graph *g, ExprId e, ExprLeafFn *leaf, void *user);
/* Calls visit once for every distinct expression under e, operands first. */
void expr_walk(const Graph *g, Arena *scratch, ExprId e, void (*visit)(void *user, ExprId e), void *user);
/* Whether e reads tensor t or one with a larger id. */
bool expr_reads_from(const Graph *g, ExprId e, TensorId t);
/* AXIS k -> sub[k], for k < nsub. */
ExprId expr_subst_axes(Graph *g, ExprId e, const ExprId *sub, unsigned nsub);
/* e, over the axes of what is read, where that is read: AXIS k -> subscript k. */
ExprId expr_at_read(Graph *g, ExprId e, ExprId read);

/* The expression with every i64 part in canonical form (a sum of products in a fixed order, constants
 * folded), so that equal polynomials have equal ids; div and mod by a constant are simplified where
 * exact over the integers. Wraparound is ignored: for subscripts, extents and ranges, whose size the
 * launch bounds, not for i64 data. */
ExprId index_norm(Graph *g, ExprId e);
/* e = sum of coef[k] * AXIS k + rest, rest free of axes? naxis entries are written. */
bool index_affine(Graph *g, ExprId e, unsigned naxis, int64_t *coef, ExprId *rest);

/* --- tensors and nodes --- */
TensorId tensor_new(Graph *g, TensorKind kind, Name name, Span at, DType dtype, unsigned rank,
                    const ExprId *extent);
/* Adds a tensor of kind TENSOR_NODE with this node; node->out is set. dtype is the type of finish
 * or, without one, of the monoid's result or the body. */
TensorId node_add(Graph *g, const Node *node, Name name, Span at, DType dtype, const ExprId *extent);

static inline Node *
tensor_node(const Graph *g, TensorId t)
{
	return g->tensor.at[t].kind == TENSOR_NODE ? &g->node.at[g->tensor.at[t].node] : NULL;
}

/* The fold of this tensor as it was before it was done in parts; NULL: it was not, or is kept no more. */
static inline const Node *
whole_node(const Graph *g, TensorId t)
{
	for (uint32_t k = 0; k < g->whole.n; k++)
		if (g->whole.at[k].out == t)
			return &g->whole.at[k];
	return NULL;
}

/* Whether an element of t can carry a fault: out[t] != 0. One entry per tensor, in scratch. */
bool *graph_may_fault(const Graph *g, Arena *scratch);

/* --- text form (ir/README.md describes it) --- */
void graph_print(const Graph *g, Text *out);
/* NULL with a message when the text is not a graph; graph_read(graph_print(g)) prints the same. */
Graph *graph_read(Arena *a, Names *names, const char *text, size_t n, const char **error);
/* True, or false with which rule is broken and where; checks every invariant stated above. */
bool graph_verify(const Graph *g, Arena *scratch, const char **error);

#endif
