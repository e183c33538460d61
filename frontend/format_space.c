/* format_space.c: where blanks go between the tokens of a line. Binary operators have blanks around
 * them, but for the products of a subscript (`x[2*i + r]`) and the whole of a range's bound
 * (`j in 0..N-1`), where they have none; unless a `div` or `mod` stands beside them, whose blanks
 * would then say the wrong thing about what binds tighter. */
#include "frontend/format.h"
#include "frontend/parser.h"

typedef enum { IN_EXPR, IN_SUBSCRIPT, IN_BOUND } Where;

typedef struct {
	uint32_t open;     /* the bracket; 0: none */
	Where base, where; /* after the bracket and its commas; here */
	uint32_t group;    /* of the product or bound being read; 0: none yet */
	uint32_t conds;    /* `?` that wait for their `:` */
} Level;

typedef struct {
	Format *l;
	Level level[MAX_NESTING + 2];
	unsigned depth;
} Spacer;

static bool
ends_operand(int kind)
{
	return kind == T_ID || kind == T_NUM || kind == T_STR || kind == ')' || kind == ']';
}

static bool
is_bracket(int kind)
{
	return kind == '(' || kind == '[' || kind == '{' || kind == T_QOPEN;
}

/* Whether it can stand without blanks. */
static bool
may_be_tight(Where w, int kind)
{
	bool sign = kind == '*' || kind == '/' || kind == T_POW;
	return w == IN_SUBSCRIPT ? sign : w == IN_BOUND && (sign || kind == '+' || kind == '-');
}

/* Whether it makes the group it stands in need its blanks. */
static bool
needs_blanks(Where w, int kind)
{
	return kind == T_DIV || kind == T_MOD || (w == IN_BOUND && !may_be_tight(w, kind));
}

static bool
is_operator(int kind)
{
	switch (kind) {
	case '+': case '-': case '*': case '/': case '<': case '>': case '?':
	case T_DIV: case T_MOD: case T_POW: case T_EQ: case T_NE: case T_LE: case T_GE: case T_ANDAND: case T_OROR:
	case T_QQ:
		return true;
	default:
		return false;
	}
}

/* Puts the operator into the group of its level. */
static void
join_group(Spacer *s, Piece *p)
{
	Level *v = &s->level[s->depth];
	if (v->where == IN_EXPR || p->unary)
		return;
	bool tight = may_be_tight(v->where, p->kind), blanks = needs_blanks(v->where, p->kind);
	if (!tight && !blanks) {
		v->group = 0;
		return;
	}
	if (!v->group) {
		vec_grow(s->l->arena, &s->l->mixed, 1);
		v->group = s->l->mixed.n - 1;
	}
	s->l->mixed.at[v->group] |= blanks;
	p->group = tight ? v->group : 0;
}

/* What changes the meaning of the place: brackets, `in`, `..`, `where`, `,`. */
static void
enter(Spacer *s, uint32_t i)
{
	Piece *p = &s->l->piece.at[i];
	Level *v = &s->level[s->depth];
	if (is_bracket(p->kind)) {
		bool subscript = p->kind == '[' || p->kind == T_QOPEN || v->where != IN_EXPR;
		Where w = subscript ? IN_SUBSCRIPT : IN_EXPR;
		s->level[++s->depth] = (Level){.open = i, .base = w, .where = w};
	} else if (p->kind == ')' || p->kind == ']' || p->kind == '}') {
		p->match = v->open;
		s->l->piece.at[v->open].match = i;
		s->depth--;
	} else if (p->kind == ',' || (v->open && (p->kind == T_IN || p->kind == T_DOTDOT || p->kind == T_WHERE))) {
		v->where = p->kind == ',' ? v->base : p->kind == T_WHERE ? IN_EXPR : IN_BOUND;
		v->group = 0;
	}
}

static void
classify(Spacer *s, Piece *p, const Piece *before)
{
	Level *v = &s->level[s->depth];
	p->unary = (p->kind == '-' && !ends_operand(before->kind)) || p->kind == '!';
	if (p->unary) /* `a - -b` */
		s->l->mixed.at[before->group] = true;
	if (p->kind == '?')
		v->conds++;
	p->cond = p->kind == ':' && v->conds > 0;
	v->conds -= p->cond;
	if (p->cond)
		v->group = 0;
	else if (is_operator(p->kind))
		join_group(s, p);
}

/* Whether an operator stands without blanks. */
static bool
is_tight(const Format *l, const Piece *p)
{
	return p->group && !l->mixed.at[p->group];
}

static bool
wants_space(const Format *l, const Piece *before, const Piece *p)
{
	int a = before->kind, b = p->kind;
	if (a == '(' || a == '[' || a == T_QOPEN || b == ')' || b == ']' || b == ',' || b == T_QOPEN || b == '[')
		return false;
	if (a == T_DOTDOT || b == T_DOTDOT || before->unary || a == '@' || (b == ':' && !p->cond))
		return false;
	if (b == '(')
		return (a != T_ID && a != ']') ? !is_tight(l, before) : false;
	return !is_tight(l, before) && !is_tight(l, p);
}

static void
measure(Format *l, const Line *line)
{
	uint32_t at = 0;
	for (uint32_t i = line->first; i < line->first + line->n; i++) {
		Piece *p = &l->piece.at[i];
		p->space = i > line->first && wants_space(l, p - 1, p);
		at += p->space + p->width;
		p->end = at;
	}
}

void
format_spaces(Format *l)
{
	Spacer s = {.l = l};
	vec_grow(l->arena, &l->mixed, 1);
	for (uint32_t i = 1; i < l->piece.n; i++) {
		Piece *p = &l->piece.at[i];
		classify(&s, p, p - 1);
		enter(&s, i);
	}
	for (uint32_t k = 0; k < l->line.n; k++)
		measure(l, &l->line.at[k]);
}
