/* program.c: a random program: dims, inputs, definitions, signature. */
#include "program.h"

#include <stdio.h>
#include <string.h>

#include "generator.h"

const char *const rp_trait_name[RP_TRAIT_COUNT] = {
	"domain", "gather or compound subscript", "dependent reductions", "recurrence", "scatter", "reduction",
	"optional read", "inout", "random numbers", "complex", "axis of size 0", "axis of size 1", "exact integers",
	"std.tex", "narrow types", "range read from data", "range that ends at an index of the result",
};

uint64_t
rp_next(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

unsigned
rp_below(uint64_t *state, unsigned n)
{
	return (unsigned)(((rp_next(state) >> 32) * n) >> 32);
}

static RpTensor *
add_input(Gen *g, DType t)
{
	RpTensor *x = &g->p->tensor[g->p->ntensor];
	memset(x, 0, sizeof *x);
	snprintf(x->name, sizeof x->name, "x%u", g->p->ntensor++);
	x->dtype = t;
	x->input = true;
	x->into = -1;
	x->magnitude = dtype_is_float(t) || t == DT_C64 ? (g->p->exact ? 3 : t == DT_E8M0 ? 4 : 2) : 1e9;
	return x;
}

static DType
input_dtype(Gen *g)
{
	static const DType common[] = {DT_F32, DT_F32, DT_BF16, DT_F16, DT_F64, DT_I32, DT_I64, DT_BOOL};
	DType t = chance(g, 50) ? common[below(g, 8)] : (DType)(1 + below(g, DT_COUNT - 1));
	if (g->p->exact && (t == DT_E8M0 || t == DT_C64))
		t = DT_F32;
	return t;
}

static void
set_axes(Gen *g, RpTensor *x, unsigned rank)
{
	double n = 1;
	for (x->rank = 0; x->rank < rank; x->rank++) {
		x->dim[x->rank] = below(g, g->p->ndim);
		n *= (double)g->p->size[x->dim[x->rank]];
		if (n > 4000)
			break;
	}
	if (dtype_info[x->dtype].bits == 4 && (x->rank == 0 || g->p->size[x->dim[x->rank - 1]] % 2 != 0))
		x->dtype = dtype_is_float(x->dtype) ? DT_F8E5M2 : DT_U8;
	x->scalar = x->rank == 0;
}

static void
make_dims(Gen *g)
{
	static const uint8_t size[] = {0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 8, 9, 13, 16, 17, 31, 33};
	static const uint8_t of_units[] = {8, 16, 24, 24, 32, 32, 40, 64};
	RandomProgram *p = g->p;
	p->ndim = 1 + below(g, 4);
	for (unsigned d = 0; d < p->ndim; d++)
		p->size[d] = p->units ? of_units[below(g, sizeof of_units)] : size[chance(g, 3) ? 0 : 1 + below(g, sizeof size - 1)];
}

static void
make_inputs(Gen *g)
{
	static const DType position[] = {DT_I32, DT_I32, DT_I64, DT_I16, DT_U8, DT_U32, DT_I8};
	RandomProgram *p = g->p;
	for (unsigned d = 0; d < p->ndim; d++) { /* binds the dim */
		RpTensor *x = add_input(g, input_dtype(g));
		x->dim[0] = d;
		x->rank = 1;
		if (dtype_info[x->dtype].bits == 4 && p->size[d] % 2 != 0)
			x->dtype = dtype_is_float(x->dtype) ? DT_F8E5M2 : DT_I8;
	}
	for (unsigned k = 1 + below(g, 3); k > 0; k--)
		set_axes(g, add_input(g, input_dtype(g)), below(g, 5));
	p->stray = chance(g, 20);
	for (unsigned k = p->stray ? 3 : below(g, 3); k > 0; k--) {
		RpTensor *x = add_input(g, position[below(g, sizeof position / sizeof *position)]);
		set_axes(g, x, 1 + below(g, 2));
		x->into = (int)below(g, p->ndim);
	}
}

/* An inout float input overwritten from what it held. */
static void
maybe_inout(Gen *g)
{
	if (!chance(g, 8))
		return;
	for (unsigned k = 0; k < g->p->ntensor; k++) {
		RpTensor *x = &g->p->tensor[k];
		if (!x->input || x->scalar || x->into >= 0 || class_of(x->dtype) != CLS_FLOAT || x->dtype == DT_E8M0)
			continue;
		Scope sc = {0};
		const char *left = "";
		for (unsigned a = 0; a < x->rank; a++)
			left = arena_text(g->a, "%s%s%s", left, a ? ", " : "", new_index(g, &sc, x->dim[a], false));
		x->inout = true;
		g->budget = 2;
		Piece e = gen_expr(g, CLS_FLOAT, &sc, 2);
		if (g->p->exact || e.mag > 50)
			e.text = arena_text(g->a, "max(min(%s, 2), -2)", e.text);
		text_printf(&g->p->text, "  %s[%s] = %s%s\n", x->name, left, e.text, e.absent ? " else 1" : "");
		trait(g, RP_INOUT);
		return;
	}
}

static void
print_tensor(RandomProgram *p, const RpTensor *t, bool *first)
{
	text_printf(&p->text, "%s%s%s: %s", *first ? "" : ", ", t->inout ? "inout " : "", t->name, dtype_info[t->dtype].text);
	for (unsigned a = 0; a < t->rank; a++)
		text_printf(&p->text, "%sN%u", a ? ", " : "[", t->dim[a]);
	text_printf(&p->text, "%s", t->rank ? "]" : "");
	*first = false;
}

static void
note_sizes(Gen *g)
{
	for (unsigned d = 0; d < g->p->ndim; d++) {
		if (g->p->size[d] == 0)
			trait(g, RP_SIZE_0);
		if (g->p->size[d] == 1)
			trait(g, RP_SIZE_1);
	}
	if (g->p->exact)
		trait(g, RP_EXACT);
}

void
rp_generate(RandomProgram *p, Arena *a, uint64_t seed)
{
	memset(p, 0, sizeof *p);
	p->seed = seed;
	Gen g = {.p = p, .a = a, .rng = seed};
	p->units = seed >> 32;
	p->exact = chance(&g, 30) && !p->units;
	make_dims(&g);
	make_inputs(&g);
	text_init(&p->text, a);
	maybe_inout(&g);
	unsigned results = 0;
	for (unsigned n = 0; n < 6 && (results == 0 || chance(&g, 40)); n++) {
		if (!gen_definition(&g))
			break;
		results += p->tensor[p->ntensor - 1].result;
	}
	while (results == 0 && gen_definition(&g))
		results += p->tensor[p->ntensor - 1].result;
	g.rng = ~seed; /* the others' text does not depend on whether there is one */
	if (p->ntensor < RP_MAX_TENSOR && chance(&g, 25))
		gen_scan(&g);
	g.rng = ~seed * 3;
	if (p->ntensor < RP_MAX_TENSOR && !p->exact && chance(&g, 12))
		gen_product(&g);
	g.rng = ~seed * 5;
	if (!p->exact && (chance(&g, 30) || p->units))
		gen_cascade(&g);
	g.rng = ~seed * 13;
	if (chance(&g, 12))
		gen_window(&g);
	g.rng = ~seed * 17;
	if (!p->exact && chance(&g, 12))
		gen_chain(&g);
	note_sizes(&g);
	Text body = p->text;
	bool first = true;
	text_init(&p->text, a);
	text_printf(&p->text, "use \"std\"\ngraph g%llu(", (unsigned long long)p->seed);
	for (unsigned k = 0; k < p->ntensor; k++)
		if (p->tensor[k].input)
			print_tensor(p, &p->tensor[k], &first);
	text_printf(&p->text, ") -> (");
	first = true;
	for (unsigned k = 0; k < p->ntensor; k++)
		if (p->tensor[k].result)
			print_tensor(p, &p->tensor[k], &first);
	text_printf(&p->text, ")%s%s {\n%s}\n", p->fact ? " where " : "", p->fact ? p->fact : "", text_get(&body));
}
