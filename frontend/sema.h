/* sema.h: the checker's own data. Sema turns an AST into tensor graphs: it resolves names, gives every
 * index its range, inlines functions, types expressions, tracks where values are absent, proves or
 * checks accesses, and adds a node for each definition and each reduction.
 *
 * An index is an ivar while sema works: a fresh number for each binding, so that hygiene and capture
 * are no concern. A node's expressions are rewritten from ivars to axes when the node is made.
 *
 * Presence: a Val carries the conjuncts under which it is present (LANGUAGE.md, Domains). Its
 * expression is evaluated only where all of them hold. */
#ifndef TEXO_FRONTEND_SEMA_H
#define TEXO_FRONTEND_SEMA_H

#include "frontend/ast.h"
#include "frontend/exact.h"
#include "frontend/frontend.h"
#include "ir/prove.h"

enum { MAX_INLINE_DEPTH = 64, MAX_GROUP = 8 };

/* A set of conjuncts, boolean expressions over ivars; each may rely on those before it. */
typedef struct {
	uint32_t n;
	const ExprId *at;
} Dom;

typedef enum { LIT_NONE, LIT_INT, LIT_FLOAT } Literal;

typedef struct Choice Choice;

typedef struct {
	ExprId e;      /* 0 with a literal, and after an error */
	Literal lit;   /* an exact number that has not met a type */
	Whole i;
	bool whole;    /* LIT_FLOAT: an integer that has no room in i */
	double f;      /* LIT_FLOAT: the nearest */
	const Exact *exact; /* LIT_FLOAT: the number; NULL where f is all that is known of it */
	const Choice *choice; /* e is one of two exact numbers, and has a type in case none is met; else NULL */
	Dom dom;
} Val;

/* c ? arm[0] : arm[1] of exact numbers, or such choices. */
struct Choice {
	ExprId c;
	Val arm[2];
};

typedef uint32_t IvarId;

typedef struct {
	Name name;
	Span at;
	ExprId lo, hi;    /* half-open range; 0 while not known */
	ExprId clamp;     /* for a range read from data: the axis it is cut to; 0 none */
	AccessId cut;
	bool in_range;    /* its range reads data or an outer index: a fact, not a box */
} Ivar;

/* --- environments: what names mean at a place, innermost first --- */
typedef enum { BIND_INDEX, BIND_VALUE, BIND_UNBOUND, BIND_PARAM, BIND_LOCAL } BindWhat;

typedef struct Env Env;
typedef struct Scope Scope;

/* One of the caller's indices of a call and what it follows in the body: `count` indices of the
 * formal's group, from `part` on. */
typedef struct {
	Name caller, formal;
	uint32_t part, count;
} Follow;

/* An argument of a function: an expression in the caller's environment, whose bracketed indices
 * follow whatever the body binds their formals to. Or a local definition of a function. */
typedef struct {
	AstId expr;       /* a DEFINE for a local definition */
	AstId where;      /* the call's condition on the argument, or 0 */
	Env *env;
	uint32_t nfollow;
	const Follow *follow;
} Closure;

struct Env {
	Env *up;
	Scope *scope;     /* the graph instance names fall back to; NULL inside functions */
	Name name;        /* 0: a frame without a name (function entry) */
	BindWhat what;
	ExprId value;     /* VALUE: an index of a local definition, at a compound subscript */
	uint32_t n;       /* INDEX: the group */
	IvarId ivar[MAX_GROUP];
	uint32_t ngroup;  /* a formal's group size even where unbound */
	AstId range_lo, range_hi; /* given by the call for every binder of this formal */
	Env *range_env;
	Closure *closure; /* PARAM, LOCAL */
	uint32_t file;    /* function entry: whose items are seen (index into Sema.module) */
	uint32_t depth;   /* of inlining */
};

/* --- graph instances --- */
typedef enum { ENT_NONE, ENT_DIM, ENT_SCALAR, ENT_TENSOR, ENT_DEF } EntityKind;

typedef struct Def Def;

typedef struct {
	EntityKind kind;
	Name name;
	Span at;
	ExprId dim;       /* DIM: its value; SCALAR: its value */
	TensorId tensor;  /* TENSOR, SCALAR */
	Def *def;         /* DEF; also the definition of an inout */
	bool inout, used;
} Entity;

struct Def {
	Entity *entity;
	AstId stmt;       /* DEFINE; 0: bound to a tensor by a graph call */
	Scope *scope;
	DType dtype;      /* declared, or DT_NONE */
	int32_t result;   /* index into Scope.result, or -1 */
	bool failed, done;
	uint32_t rank;
	IvarId ivar[TG_MAX_RANK];
	ExprId extent[TG_MAX_RANK];
	bool ranged;      /* ivar and extent are known */
	TensorId tensor;
	Dom dom;          /* over AXIS k of the definition */
	Val literal;      /* lit != LIT_NONE: the definition is this number everywhere */
	bool recurrent;
	uint32_t order;   /* position in the source */
};

typedef struct {
	Name name;
	Span at;
	AstId param;
	DType dtype;
	uint32_t rank;
	bool inout;
	ExprId extent[TG_MAX_RANK];
	Entity *entity;
} ResultDecl;

struct Scope {
	AstId graph;
	uint32_t module;
	struct { Name name; Entity *entity; } *slot;
	uint32_t nslot, nentity;
	VEC(Def *) def;
	VEC(ResultDecl) result;
	Env *env;
	uint32_t depth;
};

/* --- obligations: accesses that were not proved at once --- */
typedef struct {
	Span at;
	Name tensor;
	unsigned axis;
	ExprId sub, extent;
	Dom path;         /* branch conditions in force at the access, inside its frame */
	const char *text; /* as written */
} Obligation;

/* A frame is a definition or a reduction being elaborated. */
typedef struct Frame {
	struct Frame *up;
	Dom path;         /* conditions in force inside this frame */
	Dom branch;       /* those of them that are of branches: every conjunct met counts where they hold */
	VEC(IvarId) ivar; /* bound by this frame */
	VEC(Obligation) duty;
	Def *def;
	uint32_t inner;   /* the facts from this mark on are its own */
	bool leans;       /* something was proved here from the range of an outer index */
} Frame;

typedef struct {
	FileId file;
	AstId ast;
	const char *path;
	VEC(uint32_t) uses; /* modules, in order */
	bool is_std, active, loaded;
} Module;

typedef struct {
	Name name;
	AstId ast;
	uint32_t module;
	bool active;      /* being evaluated: const cycles, recursion */
	bool known;
	Val value;        /* consts */
} Item;

typedef struct {
	uint32_t hash;
	TensorId tensor;
} NodeSlot;

/* What had been said when elaboration gave up. */
typedef struct {
	bool is;
	uint32_t ndiag, nerror, nwarning;
} Spent;

typedef struct Sema {
	Arena *arena;
	Names *names;
	Diags *diags;
	Ast *ast;
	const FrontendOptions *options;
	VEC(Name) static_dim; /* dims that options alone give */
	VEC(Module) module;
	VEC(Item) item;         /* fns, consts, graphs, meshes of every module */
	VEC(uint32_t) item_of;  /* by Name: 1 + first item of that name; chained by next */
	VEC(uint32_t) item_next;
	/* the graph being built */
	Graph *g;
	Facts *facts;
	uint32_t base;          /* mark of facts: those of the graph lie below it */
	VEC(Ivar) ivar;         /* [0] unused */
	Frame *frame;
	NodeSlot *node_slot;    /* nodes by content, for one value per expression */
	uint32_t nnode_slot, nnode_used;
	VEC(uint8_t) nonempty;  /* by TensorId: 1 = the node says that a range with conditions is not empty */
	VEC(Def *) group;       /* members of the recurrence being elaborated */
	uint32_t depth;
	uint64_t steps;
	Span call_at;           /* the last call of a function that stands in a graph */
	Spent spent;            /* a limit was met in the graph being built */
} Sema;

/* --- sema_module.c --- */
uint32_t sema_load(Sema *s, FileId file, const char *path, bool is_std);
Item *item_find(Sema *s, uint32_t module, Name name);
/* Of a name that is no function in the module, where the standard library has one: how to have that; else NULL. */
const char *item_std_hint(Sema *s, uint32_t module, Name name);

/* --- sema_env.c --- */
Env *env_index(Sema *s, Env *up, Name name, const IvarId *ivar, uint32_t n);
Env *env_find(Env *env, Name name);
Entity *scope_find(const Scope *sc, Name name);
Entity *scope_add(Sema *s, Scope *sc, EntityKind kind, Name name, Span at);
IvarId ivar_new(Sema *s, Name name, Span at);
const char *near_name(Sema *s, Env *env, Name name); /* the name that is meant; NULL */
/* "did you mean `exp`?", of the functions that the module sees, with an index in brackets or without; NULL */
const char *near_function(Sema *s, uint32_t module, Name name, bool has_brackets);
/* The closest of what is offered, the first of several; best is NULL while none is close. */
typedef struct {
	const char *want, *best;
	unsigned score;
} NearName;
NearName near_begin(const char *want);
void near_offer_name(NearName *n, const char *text);

/* --- sema_dom.c --- */
extern const Dom dom_none;
Dom dom_add(Sema *s, Dom d, ExprId cond);      /* splits &&, pushes ! inwards, drops the provable */
Dom dom_append(Sema *s, Dom d, ExprId cond);   /* as it stands, unless already there */
Dom dom_join(Sema *s, Dom a, Dom b);           /* and discharges what became provable */
Dom dom_imply(Sema *s, ExprId cond, bool negate, Dom d); /* c -> K for each conjunct */
ExprId dom_expr(Sema *s, Dom d);               /* conjunction; 0 when empty */
Dom dom_subst_axes(Sema *s, Dom d, const ExprId *sub, unsigned n);
Dom dom_to_axes(Sema *s, Dom d, const IvarId *ivar, unsigned n);
Dom dom_settle(Sema *s, Dom d);                /* drops what the facts prove; nonempty over dims: a check */
ExprId cond_not(Sema *s, ExprId c);
bool expr_has_ivar(Sema *s, ExprId e, const IvarId *ivar, unsigned n);
bool expr_has_read(Sema *s, ExprId e);         /* of anything but a scalar parameter */
bool expr_has_real(Sema *s, ExprId e);         /* a float or complex part: launch checks are of integers */
/* The ivars free in e, ascending, added to the set. */
typedef VEC(IvarId) IvarSet;
void expr_ivars(Sema *s, ExprId e, IvarSet *set);
bool ivar_set_has(const IvarSet *set, IvarId v);
ExprId expr_ivars_to_axes(Sema *s, ExprId e, const IvarId *ivar, const ExprId *to, unsigned n);

/* --- sema_frame.c --- */
void frame_push(Sema *s, Frame *f, Def *def);
void frame_pop(Sema *s);
void frame_bind(Sema *s, IvarId v);            /* the index joins the frame, its range the facts */
typedef struct {
	Dom path, branch;
	uint32_t facts, duty;
} PathMark;
PathMark path_mark(const Sema *s);
void path_push(Sema *s, ExprId cond);          /* of a branch, which the conjuncts met inside have as their condition */
void path_push_dom(Sema *s, Dom d);            /* conjuncts of the term itself */
void path_reset(Sema *s, PathMark mark);
/* Accesses met since mark are evaluated only where dom holds. */
void duties_limit(Sema *s, PathMark mark, Dom dom);
/* The conditions in force in the innermost frame and those around it. */
Dom outer_path(Sema *s);
/* Settles the frame's obligations, with dom known to hold. True if conditions from outside the frame
 * were needed: the node must then be limited to them. */
bool frame_settle(Sema *s, Dom dom);
/* prove, for what an expression relies on: notes in the frame that it was needed. */
bool frame_prove(Sema *s, ExprId cond);
/* frame_prove, for a conjunct that its term need not carry: from what is known where it would be absorbed. */
bool conjunct_holds(Sema *s, ExprId cond);

/* --- sema_number.c --- */
Val number_node(Sema *s, const AstNode *n);
double number_to_narrow(const Val *v);
bool is_number(const Val *v);                  /* has not met a type; a choice of such counts */
/* c ? arm[0] : arm[1] of numbers. */
Val number_choice(Sema *s, ExprId c, const Val arm[2], Dom d, Span at);
Val fold_numbers(Sema *s, Op op, const Val *a, const Val *b, Dom d, Span at);
/* f of a number, or of each that is chosen among. */
Val number_map(Sema *s, const Val *v, Val (*f)(Sema *, const Val *, Op), Op op, Span at);
Val number_sign(Sema *s, const Val *v, Op op); /* OP_NEG, OP_ABS, OP_SIGN */

/* --- sema_type.c --- */
extern const Val val_error;
bool val_bad(const Val *v);
Val val_expr(ExprId e, Dom dom);
DType val_dtype(const Sema *s, const Val *v);  /* DT_NONE for a literal */
ExprId val_as(Sema *s, const Val *v, DType t, Span at); /* converts arithmetically (promotion, cast) */
ExprId literal_as(Sema *s, const Val *v, DType t, Span at);
ExprId choice_as(Sema *s, const Choice *c, DType t, Span at); /* each number takes the type */
DType literal_type(const Val *v);
DType common_type(Sema *s, const Val *a, const Val *b); /* of an arithmetic operation */
Val val_typed(Sema *s, Val v);                 /* a literal becomes i32, or f32 */
/* As a definition of type t stores it: within a kind; anything else is an error that names the cast. */
ExprId val_store(Sema *s, const Val *v, DType t, Span at);
ExprId tidy_index(Sema *s, ExprId e);          /* i64 without reads of data: canonical */
Val elab_binary(Sema *s, AstId id, Env *env);
Val elab_unary(Sema *s, AstId id, Env *env);
Val elab_arith(Sema *s, Op op, Val a, Val b, Span at);

/* --- sema_expr.c --- */
Val elab(Sema *s, AstId id, Env *env);
/* Counts depth (until s->depth--) and work against the limits. False, with a report, where that is too much. */
bool elab_enter(Sema *s);
ExprId elab_cond(Sema *s, AstId id, Env *env, Dom *dom); /* a bool; 0 after an error */
ExprId elab_index(Sema *s, AstId id, Env *env, Dom *dom, const char *what); /* an i64 */
const char *source_text(Sema *s, Span at);

/* --- sema_call.c --- */
Val elab_call(Sema *s, AstId id, Env *env);
bool is_builtin_call(Sema *s, Name name);
void near_calls(NearName *n); /* offers them all */

/* --- sema_apply.c --- */
Val elab_apply(Sema *s, AstId id, Env *env);
Val elab_param(Sema *s, const Env *bind, Env *env, Span at);
Val elab_local_read(Sema *s, const Env *bind, AstId id, Env *env);
typedef struct {
	AstId result;  /* the expression the body gives */
	Env *env;      /* of the body */
	Item *fn;
	Span at;       /* the call */
} Inlined;
/* The environment in which a function's body is read for this call (APPLY or CALL). */
bool inline_function(Sema *s, AstId call, Item *fn, Env *env, bool quiet, Inlined *out);
Val elab_body(Sema *s, const Inlined *in);
Env *closure_env(Sema *s, const Closure *c, Env *body);

/* --- sema_access.c --- */
Val elab_read(Sema *s, AstId id, Env *env);
/* The tensor a name stands for, through parameters of functions: an entity, or NULL with an error. */
Entity *resolve_tensor(Sema *s, Name name, Span at, Env *env, bool quiet);
bool entity_shape(Sema *s, const Entity *e, unsigned *rank, const ExprId **extent);
/* Notes that 0 <= sub < extent must hold where the access is evaluated. */
void must_be_within(Sema *s, ExprId sub, ExprId extent, Span at, Name tensor, unsigned axis);
AccessId access_new(Sema *s, AccessKind kind, Span at);
void add_check(Sema *s, ExprId cond, Span at, DiagCode code, const char *text);

/* --- sema_range.c --- */
typedef struct {
	ExprId extent; /* 0: of a tensor that is in error, or not one */
	Span at;
	bool optional;
	const Entity *tensor; /* with an extent: whose axis it is */
	unsigned axis;
	AstId read;    /* with extent 0: the READ, and where its name is looked up */
	Env *env;
} AxisUse;
typedef struct {
	VEC(AxisUse) alone; /* the index is the whole subscript */
	VEC(AxisUse) other; /* axes that the same expression reads by other subscripts than one number */
} AxisUses;
/* The axes that the expression reads, by the index alone and by others. */
void range_scan(Sema *s, AstId id, Env *env, IvarId v, AxisUses *uses);
/* Gives v the range 0..extent from those uses; false with an error that names it, or the tensor that
 * was to give the range. */
bool range_infer(Sema *s, IvarId v, const AxisUses *uses);
/* Checks that all plain uses have the extent the first has, now or at launch. */
void extents_agree(Sema *s, const AxisUses *uses, Name index);

/* --- sema_reduce.c --- */
Val elab_reduce(Sema *s, AstId id, Env *env);
bool is_reduction(Sema *s, Name name);
void near_reductions(NearName *n); /* offers them all */

/* --- sema_hoist.c --- */
/* e, or 0 if it is not known to be no less. */
ExprId at_least_zero(Sema *s, ExprId e);
/* A node over the free indices of its parts, shared with an equal one; returns the read of it. */
typedef struct {
	Monoid monoid;
	ExprId body;
	DType dtype;
	const IvarId *bound;
	unsigned nbound;
	Dom guard;
	Dom outward;   /* its own conditions without a bound index: what it reads may rely on them */
	Dom path;      /* the conditions around it; may be cut to what its axes can say */
	bool need_all; /* path must hold: an access was proved with it */
	bool leans;    /* outer indices must have a value: something was proved from their ranges */
	Name name;
	Span at;
} Reduction;
ExprId hoist(Sema *s, const Reduction *r);

/* --- sema_def.c --- */
void def_ranges(Sema *s, Def *d);
void def_elab(Sema *s, Def *d);
/* The right side of a definition with its where and else, inside the current frame; *present says
 * under which conditions what the frame met is evaluated. */
Val elab_rhs(Sema *s, AstId stmt, Env *env, DType store);
void group_elab(Sema *s, Def **member, uint32_t n);
TensorId node_shared(Sema *s, const Node *n, Name name, Span at, DType dtype, const ExprId *extent);

/* --- sema_scatter.c --- */
void scatter_elab(Sema *s, Def *d);
void scatter_indices(Sema *s, Def *d, AstId lhs, Env *env, IvarSet *out, Env **inner);

/* --- sema_recur.c --- */
bool recur_build(Sema *s, Def **member, uint32_t n, uint32_t first_node);

/* --- sema_graph.c --- */
Graph *sema_graph(Sema *s, AstId id, uint32_t module);
DType ast_dtype(Sema *s, AstId param);
/* The names in a dim's expression that nothing binds yet: their number, and the last one. */
unsigned dim_unbound(Sema *s, Scope *sc, AstId id, AstId *name);
Entity *static_dim(Sema *s, Scope *sc, Name name, Span at); /* given by an option alone; else NULL */
Entity *declare(Sema *s, Scope *sc, EntityKind kind, Name name, Span at);
bool add_results(Sema *s, Scope *sc, AstId results);
void add_facts(Sema *s, Scope *sc, AstId facts);
/* That no extent of a result is below 0: a launch check where it isn't proved, a fact from here on. */
void result_extents(Sema *s, Scope *sc);

/* --- sema_block.c --- */
bool scope_definitions(Sema *s, Scope *sc);
bool call_graph(Sema *s, Scope *sc, AstId stmt);

/* --- sema_finish.c --- */
/* Drops what no result needs, numbers tensors in topological order, recurrences together. */
void graph_finish(Sema *s);

#endif
