/* alternatives.c: see alternatives.h. */
#include "passes/schedule/alternatives.h"

#include <string.h>

static const char apart_text[] = "each on its own";

/* A task is worth a call; so many tasks more, or fewer. */
static const struct {
	const char *text;
	int64_t times, over;
} grains[] = {{"grain*4", 4, 1}, {"grain/4", 1, 4}};

enum { GRAINS = sizeof grains / sizeof *grains };

/* --- digests --- */

typedef struct {
	const Graph *g;
	uint64_t *of; /* by ExprId, once visited */
	uint64_t h;
} Digest;

static uint64_t
mix(uint64_t h, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h;
}

static uint64_t
mix_number(uint64_t h, uint64_t v)
{
	return mix(h, &v, sizeof v);
}

static uint64_t
mix_name(const Graph *g, uint64_t h, Name name)
{
	const char *text = name ? name_text(g->names, name) : "";
	return mix(h, text, strlen(text) + 1);
}

/* What a kernel sees of a tensor that it reads; not its name, unless the program's user gives it. */
static uint64_t
mix_tensor(const Digest *d, uint64_t h, TensorId t)
{
	const Tensor *x = &d->g->tensor.at[t];
	h = mix_number(mix_number(h, x->dtype), x->rank);
	return x->kind == TENSOR_NODE ? h : mix_name(d->g, mix_number(h, x->kind), x->name);
}

static void
visit(void *user, ExprId e)
{
	Digest *d = user;
	const Expr *p = expr_get(d->g, e);
	uint64_t h = mix_number(mix_number(mix_number(UINT64_C(0xcbf29ce484222325), p->op), p->dtype), p->narg);
	if (p->op == OP_READ)
		h = mix_tensor(d, h, p->ref);
	else if (p->op == OP_DIM)
		h = mix_name(d->g, h, d->g->dim.at[p->ref].name);
	else if (p->op == OP_CONST)
		h = mix_number(h, (uint64_t)p->imm.i);
	else
		h = mix_number(h, p->ref);
	h = mix_number(h, p->access != 0);
	for (unsigned k = 0; k < p->narg; k++)
		h = mix_number(h, d->of[expr_arg(d->g, e, k)]);
	d->of[e] = h;
}

static uint64_t
add_expr(Digest *d, Arena *scratch, uint64_t h, ExprId e)
{
	if (!e)
		return mix_number(h, 0);
	expr_walk(d->g, scratch, e, visit, d);
	return mix_number(h, d->of[e]);
}

static uint64_t
add_node(Digest *d, Arena *scratch, uint64_t h, const Node *n)
{
	const Tensor *out = &d->g->tensor.at[n->out];
	h = mix_number(mix_number(mix_number(h, n->npar), n->nred), n->monoid);
	h = mix_number(mix_number(h, out->dtype), out->rank);
	for (unsigned a = 0; a < out->rank; a++)
		h = add_expr(d, scratch, h, out->extent[a]);
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++)
		h = add_expr(d, scratch, add_expr(d, scratch, add_expr(d, scratch, h, n->axis[a].lo), n->axis[a].hi), n->axis[a].clamp);
	const ExprId all[] = {n->domain, n->guard, n->body, n->finish, n->init};
	for (unsigned k = 0; k < sizeof all / sizeof *all; k++)
		h = add_expr(d, scratch, h, all[k]);
	for (unsigned a = 0; n->scatter && a < out->rank; a++)
		h = add_expr(d, scratch, h, n->target[a]);
	return mix_number(mix_number(h, n->scatter), n->recur ? d->g->recur.at[n->recur].nseq : 0);
}

uint64_t
unit_digest(const Graph *g, Arena *scratch, const TensorId *node, uint32_t n)
{
	Digest d = {.g = g, .of = ARENA_ARRAY(scratch, uint64_t, g->expr.n)};
	uint64_t h = mix_number(UINT64_C(0xcbf29ce484222325), g->fp);
	for (uint32_t k = 0; k < n; k++)
		h = add_node(&d, scratch, h, tensor_node(g, node[k]));
	return h ? h : 1;
}

/* --- plans --- */

/* Blocks of a product that are half or twice as long, one extent at a time. */
unsigned
plan_variants(const KernelPlan *plan, KernelPlan variant[PLAN_VARIANTS])
{
	unsigned n = 0, width = plan->pairs ? 2u * plan->pairs : 1;
	if (plan->tmpl != TMPL_CONTRACT)
		return 0;
	for (unsigned k = 0; k < PLAN_VARIANTS; k++) {
		KernelPlan *v = &variant[n];
		bool twice = k % 2;
		*v = *plan;
		if (k / 2 == 0)
			v->block_terms = twice ? 2 * v->block_terms : v->block_terms / 2 / width * width;
		else if (k / 2 == 1)
			v->block_columns = twice ? 2 * v->block_columns : v->block_columns / v->tile_columns / 2 * v->tile_columns;
		else
			v->block_tasks = (uint16_t)(twice ? 2 * v->block_tasks : v->block_tasks / 2);
		v->block_rows = (uint32_t)v->tile_rows * v->block_tasks;
		n += v->block_terms && v->block_columns && v->block_tasks;
	}
	return n;
}

const char *
plan_text(Arena *a, const KernelPlan *plan)
{
	static const char nodes[] = " nodes=";
	KernelPlan p = *plan;
	Text t;
	p.nnode = 0;
	text_init(&t, a);
	kp_print(&p, &t);
	return arena_copy(a, t.at, t.n - (sizeof nodes - 1));
}

static bool
is_about(const TuneChoice *c, const Graph *g, uint64_t unit)
{
	return c->unit == unit && strcmp(c->graph, name_text(g->names, g->name)) == 0;
}

bool
plan_is_chosen(const PassOptions *o, const Graph *g, Arena *scratch, uint64_t unit, const KernelPlan *plan)
{
	const char *text = plan_text(scratch, plan);
	for (uint32_t k = 0; k < o->nchoice; k++)
		if (is_about(&o->choice[k], g, unit) && strcmp(o->choice[k].plan, text) == 0)
			return true;
	return false;
}

void
alternative_set_aside(Program *p)
{
	Kernel *k = &p->kernel.at[p->kernel.n - 1];
	k->could = k->ntask;
	k->ntask = expr_int(p->graph, DT_I64, 0);
	k->alternative = true;
}

/* --- choices --- */

typedef struct {
	Program *p;
	Graph *g;
	Arena *scratch;
	uint32_t first, end; /* its kernels */
	bool apart;
} Unit;

/* Whether the sizes are in the bucket; 0: it names a dim that there is not. */
static ExprId
bucket_holds(Graph *g, const TuneChoice *c)
{
	ExprId all = expr_int(g, DT_BOOL, 1);
	for (uint32_t k = 0; k < c->nrange; k++) {
		DimId d = 1;
		while (d < g->dim.n && strcmp(name_text(g->names, g->dim.at[d].name), c->range[k].dim) != 0)
			d++;
		if (d == g->dim.n)
			return 0;
		ExprId dim = expr_dim(g, d);
		all = expr_binary(g, OP_AND, all, expr_binary(g, OP_LE, expr_int(g, DT_I64, c->range[k].least), dim));
		all = expr_binary(g, OP_AND, all, expr_binary(g, OP_LE, dim, expr_int(g, DT_I64, c->range[k].most)));
	}
	return all;
}

/* The kernel becomes the one that runs where cond holds. */
static void
prefer(Unit *u, uint32_t kernel, ExprId cond)
{
	ExprId zero = expr_int(u->g, DT_I64, 0);
	for (uint32_t k = u->first; k < u->end && k < kernel; k++)
		u->p->kernel.at[k].ntask = expr_select(u->g, cond, zero, u->p->kernel.at[k].ntask);
	if (kernel == u->end)
		return;
	Kernel *k = &u->p->kernel.at[kernel];
	if (k->could)
		k->ntask = expr_select(u->g, cond, k->could, k->ntask);
	k->tuned = true;
}

static ExprId
grain_times(Graph *g, ExprId grain, unsigned n)
{
	ExprId one = expr_int(g, DT_I64, 1), x = grain ? grain : one;
	x = expr_binary(g, OP_MUL, x, expr_int(g, DT_I64, grains[n].times));
	return expr_binary(g, OP_MAX, one, expr_binary(g, OP_IDIV, x, expr_int(g, DT_I64, grains[n].over)));
}

static const char *
grain_text(Arena *a, const Kernel *k, unsigned n)
{
	return arena_text(a, "%s %s", plan_text(a, &k->plan), grains[n].text);
}

static bool
has_grains(const PassCtx *cx, const Unit *u)
{
	return !cx->options->blocks && !u->p->kernel.at[u->first].serial;
}

static TuneOutcome
take(const PassCtx *cx, Unit *u, const TuneChoice *c)
{
	ExprId cond = bucket_holds(u->g, c);
	Kernel *first = &u->p->kernel.at[u->first];
	if (!cond)
		return TUNE_NO_DIM;
	for (uint32_t k = u->first; k < u->end; k++)
		if (strcmp(plan_text(u->scratch, &u->p->kernel.at[k].plan), c->plan) == 0) {
			prefer(u, k, cond);
			return TUNE_TAKEN;
		}
	if (u->apart && strcmp(apart_text, c->plan) == 0) {
		prefer(u, u->end, cond);
		return TUNE_TAKEN;
	}
	for (unsigned n = 0; n < GRAINS && has_grains(cx, u); n++)
		if (strcmp(grain_text(u->scratch, first, n), c->plan) == 0) {
			ExprId own = first->grain ? first->grain : expr_int(u->g, DT_I64, 1);
			first->grain = expr_select(u->g, cond, grain_times(u->g, first->grain, n), own);
			first->tuned = true;
			return TUNE_TAKEN;
		}
	return TUNE_NO_PLAN;
}

/* --- what there is --- */

static void
offer(PlanUnit *to, Graph *g, const char *text, ExprId model, ExprId could, bool threads)
{
	for (uint32_t k = 0; k < to->at.n; k++)
		if (strcmp(to->at.at[k].text, text) == 0)
			return;
	vec_push(g->arena, &to->at, ((PlanAlternative){text, model, could, threads}));
}

static void
list_alternatives(const PassCtx *cx, const Unit *u, uint64_t digest)
{
	Graph *g = u->g;
	Arena *a = g->arena;
	const Kernel *first = &u->p->kernel.at[u->first];
	KernelPlan other[PLAN_VARIANTS];
	ExprId zero = expr_int(g, DT_I64, 0);
	PlanUnit to = {.digest = digest, .node = first->plan.node[first->plan.nnode - 1u]};
	for (uint32_t k = u->first; k < u->end; k++) {
		const Kernel *x = &u->p->kernel.at[k];
		if (!x->follows)
			offer(&to, g, plan_text(a, &x->plan), x->ntask, x->could ? x->could : x->ntask, false);
	}
	if (u->apart)
		offer(&to, g, apart_text, expr_int(g, DT_I64, 1), expr_int(g, DT_I64, 1), false);
	unsigned n = cx->options->blocks ? 0 : plan_variants(&first->plan, other);
	for (unsigned k = 0; k < n; k++)
		offer(&to, g, plan_text(a, &other[k]), zero, first->ntask, false);
	for (unsigned k = 0; k < GRAINS && has_grains(cx, u); k++)
		offer(&to, g, grain_text(a, first, k), zero, first->ntask, true);
	vec_push(a, &u->p->unit, to);
}

void
unit_choose(Program *p, PassCtx *cx, Arena *scratch, uint32_t first, bool apart)
{
	const PassOptions *o = cx->options;
	const KernelPlan *plan = &p->kernel.at[first].plan;
	Unit u = {p, p->graph, scratch, first, p->kernel.n, apart};
	if (!o->nchoice && !o->alternatives)
		return;
	uint64_t digest = unit_digest(p->graph, scratch, plan->node, plan->nnode);
	if (o->alternatives)
		list_alternatives(cx, &u, digest);
	for (uint32_t k = o->nchoice; k-- > 0;) /* the first is asked first */
		if (is_about(&o->choice[k], p->graph, digest)) {
			TuneOutcome is = take(cx, &u, &o->choice[k]);
			p->tuned[k] = p->tuned[k] < is ? (uint8_t)is : p->tuned[k];
		}
}
