/* sample.c: an expression's values on points (x, y), as reals in double, and the rank of such a table.
 *
 * Every leaf gets a pseudo-random number by its id and its side's point, the same in every run; one
 * whose values can't be negative a positive one. A condition of one side is a leaf too, true on about
 * half of the points. Casts round nothing here: they are opaque to factor,
 * which leaves them inside a side. The second try takes positive numbers only, for roots and logs. */
#include "passes/fuse/algebra.h"

#include <math.h>

#include "passes/fuse/interval.h"

enum { POINTS = 9, CASES = 48, TRIES = 2 }; /* CASES: points where conditions tell cases apart */

typedef struct {
	const Graph *g;
	VEC(ExprId) order; /* operands first */
	Arena *scratch;
	SideFn *side;
	void *user;
	bool positive;
	unsigned points;
	double *at;        /* by place in order */
	uint32_t *arg;     /* places of operands, three for each */
	Side *sides;       /* of leaves and conditions; BOTH: evaluated */
	bool *leaf;
	Side met;
} Sample;

static void
list(void *user, ExprId e)
{
	Sample *s = user;
	vec_push(s->scratch, &s->order, e);
}

static uint64_t
scramble(uint64_t z)
{
	z += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static bool
is_leaf(const Expr *p)
{
	return p->narg == 0 || p->op == OP_READ || p->op == OP_RAND || p->op == OP_RANDN;
}

static void
gather_side(void *user, ExprId e)
{
	Sample *s = user;
	if (is_leaf(expr_get(s->g, e)))
		s->met |= s->side(s->user, s->g, e);
}

static bool
is_condition(const Expr *p)
{
	return p->op == OP_EQ || p->op == OP_NE || p->op == OP_LT || p->op == OP_LE || p->op == OP_ISNAN;
}

/* True where x, or y, is one of about half of the points; without a side always. */
static double
condition_value(Side side, uint64_t h, unsigned x, unsigned y)
{
	return side == SIDE_NONE || (scramble(h ^ (side & SIDE_Y ? y : x)) & 1);
}

static double
leaf_value(const Sample *s, ExprId e, Side side, unsigned x, unsigned y)
{
	const Expr *p = expr_get(s->g, e);
	if (p->op == OP_CONST)
		return dtype_is_float((DType)p->dtype) ? p->imm.f : (double)p->imm.i;
	uint64_t h = scramble(e);
	if (p->dtype == DT_BOOL)
		return condition_value(side, h, x, y);
	if (side & SIDE_X)
		h = scramble(h ^ (x + 1));
	if (side & SIDE_Y)
		h = scramble(h ^ (y + 1) << 8);
	double u = (double)(h >> 11) * 0x1p-53;
	Interval i = interval_of(s->g, e);
	if (s->positive || i.lo >= 0)
		return 0.25 + 1.5 * u;
	return i.hi <= 0 ? -0.25 - 1.5 * u : 3 * u - 1.5;
}

static double
whole(double a, double b, bool quotient)
{
	return b == 0 ? 0 : quotient ? floor(a / b) : a - b * floor(a / b);
}

/* One operation on reals; NaN for what has no real value here. */
static double
apply(Op op, const double *a)
{
	switch (op) {
	case OP_ADD: return a[0] + a[1];
	case OP_SUB: return a[0] - a[1];
	case OP_MUL: return a[0] * a[1];
	case OP_FDIV: return a[0] / a[1];
	case OP_IDIV: return whole(a[0], a[1], true);
	case OP_IMOD: return whole(a[0], a[1], false);
	case OP_POW: return pow(a[0], a[1]);
	case OP_NEG: return -a[0];
	case OP_ABS: return fabs(a[0]);
	case OP_SIGN: return a[0] > 0 ? 1 : a[0] < 0 ? -1 : a[0];
	case OP_MIN: return fmin(a[0], a[1]);
	case OP_MAX: return fmax(a[0], a[1]);
	case OP_FLOOR: return floor(a[0]);
	case OP_CEIL: return ceil(a[0]);
	case OP_ROUND: return nearbyint(a[0]);
	case OP_TRUNC: return trunc(a[0]);
	case OP_SQRT: return sqrt(a[0]);
	case OP_RSQRT: return 1 / sqrt(a[0]);
	case OP_EXP: return exp(a[0]);
	case OP_EXP2: return exp2(a[0]);
	case OP_EXPM1: return expm1(a[0]);
	case OP_LOG: return log(a[0]);
	case OP_LOG2: return log2(a[0]);
	case OP_LOG1P: return log1p(a[0]);
	case OP_TANH: return tanh(a[0]);
	case OP_ERF: return erf(a[0]);
	case OP_SIN: return sin(a[0]);
	case OP_COS: return cos(a[0]);
	case OP_EQ: return a[0] == a[1];
	case OP_NE: return a[0] != a[1];
	case OP_LT: return a[0] < a[1];
	case OP_LE: return a[0] <= a[1];
	case OP_AND: return a[0] != 0 && a[1] != 0;
	case OP_OR: return a[0] != 0 || a[1] != 0;
	case OP_NOT: return a[0] == 0;
	case OP_ISNAN: return isnan(a[0]) != 0;
	case OP_SELECT: return a[0] != 0 ? a[1] : a[2];
	case OP_CAST: return a[0];
	case OP_NONE: case OP_CONST: case OP_IVAR: case OP_AXIS: case OP_DIM: case OP_ACC: case OP_TOUCHED: case OP_READ:
	case OP_CPLX: case OP_RE: case OP_IM: case OP_CONJ: case OP_ROOT: case OP_RAND: case OP_RANDN: case OP_FMA: case OP_SCALE: case OP_EX2: case OP_RCP:
	case OP_LG2: case OP_NEAR_DIV: case OP_NEAR_SQRT: case OP_NEAR_RSQRT: case OP_NEAR_TANH: case OP_NEAR_SIN: case OP_NEAR_COS: case OP_FLUSH_MUL:
	case OP_BITCAST: case OP_SHL: case OP_SHR: case OP_BAND: case OP_BOR: case OP_BXOR: case OP_BUFFER: case OP_SCALAR:
	case OP_TASK_LO: case OP_TASK_HI: case OP_BLOCKARG: case OP_IOTA: case OP_SPLAT: case OP_LANE: case OP_SLIDE: case OP_JOIN: case OP_HALF: case OP_WEAVE: case OP_PICK: case OP_ANY:
	case OP_THREAD: case OP_RANK: case OP_SHUFFLE: case OP_WARP_MMA: case OP_LOAD_MATRIX: case OP_STORE_MATRIX: case OP_ASYNC_COPY: case OP_ASYNC_WAIT: case OP_BARRIER: case OP_VIEW: case OP_FETCH:
	case OP_LOAD: case OP_STORE: case OP_DOT: case OP_FAULT: case OP_TASK_STEP: case OP_ACQUIRE: case OP_COPY: case OP_WAIT: case OP_RELEASE:
	case OP_MMA: case OP_PRODUCT: case OP_KEEP: case OP_PUT: case OP_SETTLE: case OP_TURN: case OP_PIECE: case OP_HELD: case OP_TAKE: case OP_ROLES: case OP_FOR: case OP_IF: case OP_YIELD: case OP_RESULT:
		break;
	}
	return NAN;
}

static uint32_t
place_of(const Sample *s, ExprId e)
{
	uint32_t k = 0;
	while (s->order.at[k] != e)
		k++;
	return k;
}

/* expr_walk lists an expression after its operands, not in the order of ids. */
static void
prepare(Sample *s, ExprId e)
{
	expr_walk(s->g, s->scratch, e, list, s);
	s->at = ARENA_ARRAY(s->scratch, double, s->order.n);
	s->arg = ARENA_ARRAY(s->scratch, uint32_t, 3 * s->order.n);
	s->sides = ARENA_ARRAY(s->scratch, Side, s->order.n);
	s->leaf = ARENA_ARRAY(s->scratch, bool, s->order.n);
	s->points = POINTS;
	for (uint32_t k = 0; k < s->order.n; k++) {
		const Expr *p = expr_get(s->g, s->order.at[k]);
		s->leaf[k] = is_leaf(p);
		if (p->op == OP_SELECT)
			s->points = CASES;
		if (s->leaf[k] || is_condition(p)) {
			s->met = SIDE_NONE;
			expr_walk(s->g, s->scratch, s->order.at[k], gather_side, s);
			s->sides[k] = s->met;
			s->leaf[k] |= s->met != SIDE_BOTH;
		}
		for (unsigned a = 0; !s->leaf[k] && a < p->narg && a < 3; a++)
			s->arg[3 * k + a] = place_of(s, expr_arg(s->g, s->order.at[k], a));
	}
}

static double
value_at(Sample *s, unsigned x, unsigned y)
{
	for (uint32_t k = 0; k < s->order.n; k++) {
		ExprId e = s->order.at[k];
		const Expr *p = expr_get(s->g, e);
		double a[3] = {0};
		for (unsigned j = 0; !s->leaf[k] && j < p->narg && j < 3; j++)
			a[j] = s->at[s->arg[3 * k + j]];
		s->at[k] = s->leaf[k] ? leaf_value(s, e, s->sides[k], x, y) : apply((Op)p->op, a);
	}
	return s->at[s->order.n - 1];
}

static double
largest_from(double (*m)[CASES], unsigned n, unsigned r, unsigned *row, unsigned *col)
{
	double most = 0;
	for (unsigned i = r; i < n; i++)
		for (unsigned j = r; j < n; j++)
			if (fabs(m[i][j]) > most) {
				most = fabs(m[i][j]);
				*row = i;
				*col = j;
			}
	return most;
}

/* Elimination with the largest element left as pivot; what is left below 1e-11 of the first is 0. */
static unsigned
rank_of(double (*m)[CASES], unsigned n)
{
	double first = 0;
	for (unsigned r = 0; r < n; r++) {
		unsigned row = r, col = r;
		double most = largest_from(m, n, r, &row, &col);
		if (r == 0)
			first = most;
		if (most <= 1e-11 * first)
			return r;
		for (unsigned j = 0; j < n; j++) {
			double t = m[r][j];
			m[r][j] = m[row][j];
			m[row][j] = t;
		}
		for (unsigned i = 0; i < n; i++) {
			double t = m[i][r];
			m[i][r] = m[i][col];
			m[i][col] = t;
		}
		for (unsigned i = r + 1; i < n; i++) {
			double q = m[i][r] / m[r][r];
			for (unsigned j = r; j < n; j++)
				m[i][j] -= q * m[r][j];
		}
	}
	return n;
}

unsigned
sampled_rank(const Graph *g, Arena *scratch, ExprId e, SideFn *side, void *user)
{
	Sample s = {.g = g, .scratch = scratch, .side = side, .user = user};
	prepare(&s, e);
	for (int try = 0; try < TRIES; try++) {
		double m[CASES][CASES];
		bool real = true;
		s.positive = try > 0;
		for (unsigned x = 0; x < s.points; x++)
			for (unsigned y = 0; y < s.points; y++) {
				m[x][y] = value_at(&s, x, y);
				real &= isfinite(m[x][y]) != 0;
			}
		if (real)
			return rank_of(m, s.points);
	}
	return s.points;
}
