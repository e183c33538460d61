/* algebra.h: which reductions that depend on one another can be folded in one pass over their index,
 * and what is folded then. Knows no operator's name; README.md has the mathematics.
 *
 * A cascade is a group of reductions over one streamed index, where a later one reads the results y of
 * earlier ones. With F(x, y) = sum of G(x) * H(y) its state can be kept at any value of y and moved to
 * another, so that states of two sets of elements have a merge: one function for the loop over tiles,
 * for lanes, for threads. */
#ifndef TEXO_PASSES_FUSE_ALGEBRA_H
#define TEXO_PASSES_FUSE_ALGEBRA_H

#include "passes/pass_ctx.h"

/* Why not: a row of remarks.def, and the operator in the way where there is one. */
typedef struct {
	RemarkId why;    /* REMARK_NONE: not refused */
	ExprId at;       /* the expression, in the axes of the cascade; 0: none */
	TensorId member; /* whose; 0: of an expression alone */
	Name axis[TG_MAX_AXES]; /* what the program calls the axes; 0: nothing known */
} Refusal;

/* "o: "tanh" in tanh(s[i, j] - max[j]) mixes the stream with an earlier result"; one line without its end. */
void refusal_print(const Graph *g, const Refusal *r, Text *out);

/* --- one expression --- */

typedef enum { SIDE_NONE = 0, SIDE_X = 1, SIDE_Y = 2, SIDE_BOTH = 3 } Side;

/* What a leaf varies with: READ, AXIS, IVAR, RAND... A READ has the sides of its subscripts too. */
typedef Side SideFn(void *user, const Graph *g, ExprId leaf);

enum { MAX_TERMS = 4 };

typedef struct {
	unsigned n;
	ExprId g[MAX_TERMS], h[MAX_TERMS]; /* of the type of e */
	unsigned rank; /* of e on sampled points; always n */
} Terms;

/* e as a sum of G(x) * H(y) with as few terms as there can be, at most MAX_TERMS. The graph must not be
 * strict. */
bool factor(Graph *g, Arena *scratch, ExprId e, SideFn *side, void *user, Terms *out, Refusal *why);
/* The numeric rank of e(x, y) on 9 x 9 sampled points, or more where it has selects. */
unsigned sampled_rank(const Graph *g, Arena *scratch, ExprId e, SideFn *side, void *user);

/* --- a group of reductions --- */

typedef enum {
	FOLD_PLAIN,   /* reads no earlier result of its pass */
	FOLD_HOIST,   /* sum of G; H is applied once at the end */
	FOLD_STREAM,  /* kept at an anchor that moves; one accumulator a term */
	FOLD_MOMENTS  /* kept at an anchor that moves; a change of basis moves it */
} FoldPolicy;

enum { MAX_MEMBERS = 12, MAX_ACCS = 24, MAX_ANCHORS = 8, MAX_BETAS = 8 };

/* The state of a pass as expressions: its k-th accumulator is the IVAR `base + k`, of the accumulator's
 * type; anchors likewise. Any base that leaves room may be given; these are what stored expressions use. */
enum { STATE_A = 1u << 20, STATE_B = 2u << 20, ANCHOR_OLD = 3u << 20, ANCHOR_NEW = 4u << 20 };

/* acc = (+) term over the stream, kept at the anchors. */
typedef struct {
	Monoid monoid;
	DType dtype;
	ExprId term;      /* of one element: over the cascade's axes and ANCHOR_NEW; elements outside the guard have none */
	ExprId rebase;    /* the accumulator moved from ANCHOR_OLD to ANCHOR_NEW: over STATE_A and both; 0: it stays */
	uint32_t anchors; /* bits: those that term uses */
	uint32_t axes;    /* bits: the parallel axes of the cascade that it varies with */
	unsigned stage;   /* 0: no anchor; else one more than those its anchors are made of */
	bool narrowed;    /* each member that it is of lets factors of its terms be rounded (narrow_contract.c) */
} CascadeAcc;

/* A value that terms are kept at, made of accumulators with smaller numbers. */
typedef struct {
	DType dtype;
	ExprId value;   /* over STATE_A */
	uint32_t axes;
	unsigned stage; /* of the accumulators it is made of, the largest */
} CascadeAnchor;

typedef struct {
	TensorId tensor;
	unsigned pass;
	FoldPolicy policy;
	unsigned rank;       /* terms G * H; 1 for FOLD_PLAIN */
	Refusal late;        /* why it is not in the pass of what it reads; REMARK_NONE: it is, or reads none */
	uint8_t axis[TG_MAX_AXES]; /* its parallel axes as axes of the cascade */
	ExprId value;        /* the element of the tensor, over STATE_A of its pass (and reads of earlier passes' members) */
	ExprId terms_g[MAX_TERMS], terms_h[MAX_TERMS]; /* what factor found; for explain */
	unsigned nterms;
} CascadeMember;

typedef struct {
	unsigned nacc, nanchor;
	CascadeAcc acc[MAX_ACCS];
	CascadeAnchor anchor[MAX_ANCHORS];
	int seen;     /* which accumulator says whether there was any element (bool, any; or i64, their number); -1: none does */
	bool counted; /* seen is the number */
	bool ordered; /* strict: terms in ascending order, no merge */
} CascadePass;

typedef struct {
	unsigned npar, nred;        /* the cascade's own axes, parallel ones first */
	ExprId extent[TG_MAX_AXES]; /* of the parallel ones */
	Axis axis[TG_MAX_AXES];     /* lo and hi of the reduced ones, in the cascade's axes */
	Name name[TG_MAX_AXES];     /* of the axes, as the first member has them that has */
	ExprId guard;               /* in the cascade's axes; 0: none */
	unsigned nmember, npass;
	CascadeMember member[MAX_MEMBERS];
	CascadePass pass[MAX_MEMBERS];
} Cascade;

typedef struct {
	unsigned max_accs;     /* accumulators of one pass; 0: MAX_ACCS */
	bool move_narrowed;    /* the rounding of one operand of a contraction to the type of the other may
	                        * happen before a factor of y is applied */
} CascadeOptions;

/* The plan for these reduction nodes, given so that each comes after those it reads, be it through
 * pointwise nodes, which are inlined. Axes are matched by what reads what. False with a reason when they
 * don't stream together at all; a member that needs the finished results of others is in a later pass,
 * with the reason in `late`. Expressions are made in g; `out` holds nothing else. */
bool cascade_derive(Graph *g, Arena *scratch, const TensorId *members, unsigned n, const CascadeOptions *o, Cascade *out,
                    Refusal *why);

/* Functions of states, as expressions. What each writes has nacc entries. With `nonempty` both states are
 * known to hold an element, which leaves the selects out. */
void cascade_init(Graph *g, const CascadePass *p, ExprId *out); /* of no element */
void cascade_lift(Graph *g, Arena *scratch, const CascadePass *p, ExprId *out); /* of one element */
void cascade_merge(Graph *g, Arena *scratch, const CascadePass *p, uint32_t a, uint32_t b, bool nonempty, ExprId *out);
/* State a and one element: merge(a, lift), with the element taken at the new anchor at once. */
void cascade_step(Graph *g, Arena *scratch, const CascadePass *p, uint32_t a, bool nonempty, ExprId *out);
/* The placeholder of an accumulator. */
ExprId cascade_state(Graph *g, const CascadePass *p, uint32_t base, unsigned k);
/* An expression over STATE_A with the state at base. */
ExprId cascade_at(Graph *g, Arena *scratch, const CascadePass *p, ExprId e, uint32_t base);

/* The derivation: members, terms, policies, accumulators, anchors, refusals by operator. */
void cascade_print(const Graph *g, const Cascade *c, Text *out);
/* The same for people, by tensor called as in `title`; lines begin with `margin`. And as the members of a JSON object. */
void cascade_explain(const Graph *g, const Cascade *c, const char *const *title, const char *margin, Text *out);
void cascade_json(const Graph *g, const Cascade *c, const char *const *title, Text *out);

#endif
