/* model.c: see model.h. */
#include "model.h"

uint64_t
random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

unsigned
random_below(uint64_t *state, unsigned n)
{
	return (unsigned)(random_next(state) % n);
}

/* --- tables --- */

Place
table_place(const Table *t, uint32_t i)
{
	Place p;
	for (unsigned a = 0; a < AXIS_COUNT; a++) {
		p.at[a] = i % t->size[a];
		i /= t->size[a];
	}
	return p;
}

static uint64_t
coordinate(const Layout *l, const Place *p)
{
	unsigned xored[LAYOUT_RANK] = {0}, added[LAYOUT_RANK] = {0};
	for (unsigned a = 0; a < AXIS_COUNT; a++) {
		uint32_t left = p->at[a];
		for (unsigned i = 0; i < l->nbit[a]; i++, left /= 2)
			for (unsigned d = 0; d < LAYOUT_RANK && left % 2; d++)
				xored[d] ^= (unsigned)(l->col[a][i] >> (16 * d)) % 65536;
		for (unsigned i = 0; i < l->nrepeat; i++)
			if (l->repeat[i].axis == a) {
				added[l->repeat[i].dim] += left % l->repeat[i].count * l->repeat[i].stride;
				left /= l->repeat[i].count;
			}
	}
	uint64_t c = 0;
	for (unsigned d = 0; d < LAYOUT_RANK; d++)
		c |= (uint64_t)((xored[d] + added[d]) % 65536) << (16 * d);
	return c;
}

Table
table_of(const Layout *l)
{
	Table t = {.n = 1};
	for (unsigned a = 0; a < AXIS_COUNT; a++) {
		t.size[a] = 1u << l->nbit[a];
		for (unsigned i = 0; i < l->nrepeat; i++)
			if (l->repeat[i].axis == a)
				t.size[a] *= l->repeat[i].count;
		t.n *= t.size[a];
	}
	t.coord = malloc(t.n * sizeof *t.coord);
	assert_non_null(t.coord);
	for (uint32_t i = 0; i < t.n; i++) {
		Place p = table_place(&t, i);
		t.coord[i] = coordinate(l, &p);
	}
	return t;
}

void
table_free(Table *t)
{
	free(t->coord);
}

bool
table_equal(const Table *a, const Table *b)
{
	return memcmp(a->size, b->size, sizeof a->size) == 0 &&
	       memcmp(a->coord, b->coord, a->n * sizeof *a->coord) == 0;
}

bool
table_is_tile(const Table *t, const Layout *l)
{
	uint32_t elements = 1, extent[LAYOUT_RANK], dependent = 1;
	for (unsigned d = 0; d < LAYOUT_RANK; d++)
		elements *= extent[d] = d < l->rank ? l->shape[d] : 1;
	uint32_t *held = calloc(elements, sizeof *held);
	assert_non_null(held);
	bool ok = true;
	for (uint32_t i = 0; ok && i < t->n; i++) {
		uint32_t e = 0;
		for (unsigned d = 0; d < LAYOUT_RANK; d++) {
			uint32_t x = (uint32_t)(t->coord[i] >> (16 * d)) % 65536;
			ok = ok && x < extent[d];
			e = e * extent[d] + x;
		}
		if (ok)
			held[e]++;
	}
	/* the places of no repeat that hold what place 0 holds: 2^(dependent columns) of them */
	uint32_t places = 1;
	for (unsigned a = 0; a < AXIS_COUNT; a++)
		places <<= l->nbit[a];
	for (uint32_t x = 1; x < places; x++) {
		Place p;
		uint32_t left = x;
		for (unsigned a = 0; a < AXIS_COUNT; a++) {
			p.at[a] = left % (1u << l->nbit[a]);
			left >>= l->nbit[a];
		}
		dependent += coordinate(l, &p) == 0;
	}
	for (uint32_t e = 0; ok && e < elements; e++)
		ok = held[e] == dependent;
	free(held);
	return ok;
}

/* --- layouts --- */

const char *
layout_text(Arena *a, const Layout *l)
{
	Text t;
	text_init(&t, a);
	layout_print(l, &t);
	return text_get(&t);
}

void
layout_fail(const char *why, const Layout *a, const Layout *b)
{
	Fixture x;
	START(&x);
	fail_msg("%s: %s%s%s", why, layout_text(&x.arena, a), b ? " and " : "", b ? layout_text(&x.arena, b) : "");
}

Layout
layout_of(Arena *a, const char *text)
{
	Layout l;
	const char *error;
	if (!layout_read(a, text, strlen(text), &l, &error))
		fail_msg("%s: %s", text, error);
	return l;
}

Layout
layout_random(uint64_t *state, const unsigned *nbit, unsigned rank, const unsigned *bits, const unsigned *odd)
{
	unsigned total = 0, n = 0, shape[LAYOUT_RANK], order[F2_MAX];
	uint64_t unit[F2_MAX], column[F2_MAX] = {0};
	for (unsigned a = 0; a < AXIS_COUNT; a++)
		total += nbit[a];
	for (unsigned d = 0; d < rank; d++) {
		shape[d] = 1u << bits[d];
		for (unsigned b = 0; b < bits[d]; b++)
			unit[n++] = coord_along(d, UINT64_C(1) << b);
	}
	assert_true(n <= total);
	for (unsigned i = 0; i < total; i++)
		order[i] = i;
	for (unsigned i = total; i > 1; i--) {
		unsigned k = random_below(state, i), x = order[i - 1];
		order[i - 1] = order[k];
		order[k] = x;
	}
	unsigned mixed = random_below(state, 4);
	for (unsigned i = 0; i < total; i++) {
		column[order[i]] = i < n ? unit[i] : 0;
		for (unsigned k = 0; k < i && k < n; k++) /* triangular, so the span stays */
			if (random_below(state, 8) < mixed)
				column[order[i]] ^= unit[k];
	}
	Layout l = layout_new(rank, shape);
	for (unsigned a = 0, k = 0; a < AXIS_COUNT; a++)
		for (unsigned i = 0; i < nbit[a]; i++)
			layout_add_bit(&l, (LayoutAxis)a, column[k++]);
	for (unsigned d = 0; d < rank; d++)
		assert_true(layout_grow(&l, AXIS_REG, d, odd[d]));
	return l;
}

static void
with_shape(const Family *f, Layout *l)
{
	Table t = table_of(l);
	for (unsigned d = 0; d < f->rank; d++) {
		l->shape[d] = 1;
		for (uint32_t i = 0; i < t.n; i++)
			if (coord_get(t.coord[i], d) >= l->shape[d])
				l->shape[d] = (uint16_t)(coord_get(t.coord[i], d) + 1);
	}
	table_free(&t);
	f->visit(f->user, l);
}

static void
with_repeats(const Family *f, Layout *l, unsigned left)
{
	with_shape(f, l);
	if (left == 0)
		return;
	for (unsigned d = 0; d < f->rank; d++)
		for (unsigned count = 2; count <= 4; count++)
			for (unsigned stride = 1; stride <= 6; stride++) {
				layout_add_repeat(l, AXIS_REG, d, count, stride);
				with_repeats(f, l, left - 1);
				l->nrepeat--;
			}
}

static void
with_columns(const Family *f, Layout *l, unsigned nth)
{
	if (nth == f->nreg + f->nlane + f->nwarp) {
		with_repeats(f, l, f->repeats);
		return;
	}
	LayoutAxis axis = nth < f->nreg ? AXIS_REG : nth < f->nreg + f->nlane ? AXIS_LANE : AXIS_WARP;
	for (unsigned c = 0; c < 1u << (f->width * f->rank); c++) {
		uint64_t column = c % (1u << f->width);
		if (f->rank == 2)
			column |= coord_along(1, c >> f->width);
		layout_add_bit(l, axis, column);
		with_columns(f, l, nth + 1);
		l->nbit[axis]--;
	}
}

void
layouts_of_family(const Family *f)
{
	unsigned none[LAYOUT_RANK] = {1, 1, 1, 1};
	Layout l = layout_new(f->rank, none);
	with_columns(f, &l, 0);
}

void
layout_collect(void *user, const Layout *l)
{
	LayoutList *list = user;
	const char *error;
	if (!layout_verify(l, &error))
		return;
	if (list->n == list->cap) {
		list->cap = list->cap ? 2 * list->cap : 64;
		list->at = realloc(list->at, list->cap * sizeof *list->at);
		assert_non_null(list->at);
	}
	list->at[list->n++] = *l;
}

/* --- the machine --- */

typedef struct {
	uint64_t value;      /* 1 + coordinate; 0: never written */
	uint32_t wrote, read; /* warps that did since the last barrier of the block */
	uint32_t fresh, seen; /* warps that did since their own last barrier */
} Slot;

typedef struct {
	const ConvertPlan *plan;
	unsigned bits, nlane, nwarp;
	uint64_t *reg; /* [warp][lane][nreg] */
	Slot *slot;
} Machine;

static uint64_t *
reg_at(const Machine *m, unsigned warp, unsigned lane, uint32_t r)
{
	assert_true(r < m->plan->nreg);
	return &m->reg[((size_t)warp * m->nlane + lane) * m->plan->nreg + r];
}

static uint32_t
xors(const uint32_t *col, uint32_t x)
{
	uint32_t y = 0;
	for (unsigned i = 0; x; i++, x /= 2)
		if (x % 2)
			y ^= col[i];
	return y;
}

static Slot *
slot_at(const Machine *m, uint32_t offset)
{
	assert_true(offset < m->plan->scratch);
	return &m->slot[offset];
}

static void
store(const Machine *m, unsigned warp, uint32_t offset, uint64_t value)
{
	Slot *s = slot_at(m, offset);
	assert_true(value != 0);
	assert_true((s->read & ~(1u << warp)) == 0);
	assert_true((s->seen >> warp & 1) == 0);
	if ((s->fresh >> warp & 1) || (s->wrote & ~(1u << warp)))
		assert_int_equal(s->value, value); /* several lanes may store one element, not two */
	s->value = value;
	s->wrote |= 1u << warp;
	s->fresh |= 1u << warp;
}

static uint64_t
load(const Machine *m, unsigned warp, uint32_t offset)
{
	Slot *s = slot_at(m, offset);
	assert_true((s->wrote & ~(1u << warp)) == 0);
	assert_true((s->fresh >> warp & 1) == 0);
	s->read |= 1u << warp;
	s->seen |= 1u << warp;
	return s->value;
}

unsigned
count_wavefronts(const uint32_t *address, unsigned nlane, unsigned bytes)
{
	unsigned group = bytes > 8 ? 8 : bytes > 4 ? 16 : 32, total = 0;
	for (unsigned first = 0; first < nlane; first += group) {
		unsigned most = 0;
		for (unsigned bank = 0; bank < 32; bank++) {
			uint32_t word[128];
			unsigned n = 0;
			for (unsigned l = first; l < first + group && l < nlane; l++)
				for (uint32_t w = address[l] / 4; w * 4 < address[l] + bytes; w++) {
					unsigned k = 0;
					while (k < n && word[k] != w)
						k++;
					if (w % 32 == bank && k == n)
						word[n++] = w;
				}
			most = n > most ? n : most;
		}
		total += most;
	}
	return total;
}

static void
check_banks(const Machine *m, const ConvertStep *s, uint32_t entry, unsigned warp, unsigned nlane, unsigned bytes)
{
	uint32_t address[64];
	for (unsigned l = 0; l < nlane; l++) {
		address[l] = (s->at[entry] ^ xors(s->lane, l) ^ xors(s->warp, warp)) * m->bits / 8;
		assert_int_equal(address[l] % bytes, 0);
	}
	assert_int_equal(count_wavefronts(address, nlane, bytes), s->wavefronts);
}

static void
step_vector(const Machine *m, const ConvertStep *s, uint32_t e, unsigned warp)
{
	check_banks(m, s, e, warp, m->nlane, s->width * m->bits / 8);
	for (unsigned l = 0; l < m->nlane; l++) {
		uint32_t offset = s->at[e] ^ xors(s->lane, l) ^ xors(s->warp, warp);
		for (uint32_t i = 0; i < s->width; i++) {
			uint64_t *r = reg_at(m, warp, l, s->reg[e * s->width + i]);
			if (s->kind == STEP_STORE)
				store(m, warp, offset + i, *r);
			else
				*r = load(m, warp, offset + i);
		}
	}
}

/* Row r of matrix x is 16 bytes where lane 8 x + r says. Byte b of it is in lane 4 r + b / 4, byte b % 4
 * of its register; transposed, the 16-bit item at row r, column q is in lane 4 q + r / 2, half r % 2. */
static void
step_matrix(const Machine *m, const ConvertStep *s, uint32_t e, unsigned warp)
{
	unsigned items = 128 / m->bits, per = 32 / m->bits;
	assert_int_equal(m->nlane, 32);
	check_banks(m, s, e, warp, 8 * s->width, 16);
	for (unsigned x = 0; x < s->width; x++)
		for (unsigned r = 0; r < 8; r++) {
			uint32_t row = s->at[e] ^ xors(s->lane, 8 * x + r) ^ xors(s->warp, warp);
			for (unsigned q = 0; q < items; q++) {
				unsigned lane = s->trans ? 4 * q + r / 2 : 4 * r + q / per, part = s->trans ? r % 2 : q % per;
				uint64_t *reg = reg_at(m, warp, lane, s->reg[(e * s->width + x) * per + part]);
				if (s->kind == STEP_STORE_MATRIX)
					store(m, warp, row + q, *reg);
				else
					*reg = load(m, warp, row + q);
			}
		}
}

static void
step_shuffle(const Machine *m, const ConvertStep *s, unsigned warp)
{
	uint64_t *got = malloc(sizeof *got * s->n * m->nlane);
	assert_non_null(got);
	for (uint32_t e = 0; e < s->n; e++)
		for (unsigned l = 0; l < m->nlane; l++) {
			unsigned from = s->kind == STEP_MOVE ? l : s->at[e] ^ xors(s->lane, l);
			assert_true(from < m->nlane);
			got[e * m->nlane + l] = *reg_at(m, warp, from, s->from[e]);
		}
	for (uint32_t e = 0; e < s->n; e++)
		for (unsigned l = 0; l < m->nlane; l++)
			*reg_at(m, warp, l, s->reg[e]) = got[e * m->nlane + l];
	free(got);
}

static void
step_exchange(const Machine *m, const ConvertStep *s, unsigned warp)
{
	for (unsigned l = 0; l < m->nlane; l++) {
		unsigned odd = 0;
		for (uint32_t x = l & s->mask; x; x /= 2)
			odd ^= x % 2;
		for (uint32_t e = 0; odd && e < s->n; e++) {
			uint64_t *a = reg_at(m, warp, l, s->reg[2 * e]), *b = reg_at(m, warp, l, s->reg[2 * e + 1]), v = *a;
			*a = *b;
			*b = v;
		}
	}
}

static void
step_barrier(const Machine *m, const ConvertStep *s)
{
	for (uint32_t i = 0; i < m->plan->scratch; i++) {
		Slot *t = &m->slot[i];
		t->fresh = t->seen = 0;
		if (s->block)
			t->wrote = t->read = 0;
	}
}

static void
step_run(const Machine *m, const ConvertStep *s, unsigned warp)
{
	switch (s->kind) {
	case STEP_MOVE:
	case STEP_SHUFFLE:
		step_shuffle(m, s, warp);
		break;
	case STEP_EXCHANGE:
		step_exchange(m, s, warp);
		break;
	case STEP_STORE:
	case STEP_LOAD:
		for (uint32_t e = 0; e < s->n; e++)
			step_vector(m, s, e, warp);
		break;
	case STEP_STORE_MATRIX:
	case STEP_LOAD_MATRIX:
		for (uint32_t e = 0; e < s->n; e++)
			step_matrix(m, s, e, warp);
		break;
	case STEP_BARRIER:
		if (warp == 0)
			step_barrier(m, s);
		break;
	}
}

static void
fill(const Machine *m, const Layout *src, uint32_t nsrc, unsigned block)
{
	for (unsigned w = 0; w < m->nwarp; w++)
		for (unsigned l = 0; l < m->nlane; l++)
			for (uint32_t r = 0; r < m->plan->nreg; r++) {
				Place p = {{[AXIS_REG] = r, [AXIS_LANE] = l, [AXIS_WARP] = w, [AXIS_BLOCK] = block}};
				*reg_at(m, w, l, r) = r < nsrc ? 1 + coordinate(src, &p) : 0;
			}
}

static void
compare(const Machine *m, const Layout *dst, uint32_t ndst, unsigned block)
{
	for (unsigned w = 0; w < m->nwarp; w++)
		for (unsigned l = 0; l < m->nlane; l++)
			for (uint32_t r = 0; r < ndst; r++) {
				Place p = {{[AXIS_REG] = r, [AXIS_LANE] = l, [AXIS_WARP] = w, [AXIS_BLOCK] = block}};
				assert_int_equal(*reg_at(m, w, l, m->plan->result + r), 1 + coordinate(dst, &p));
			}
}

void
plan_run(const ConvertPlan *p, const Layout *src, const Layout *dst, unsigned bits)
{
	Machine m = {.plan = p, .bits = bits, .nlane = 1u << src->nbit[AXIS_LANE], .nwarp = 1u << src->nbit[AXIS_WARP]};
	Table s = table_of(src), d = table_of(dst);
	m.reg = malloc(sizeof *m.reg * m.nwarp * m.nlane * p->nreg);
	assert_non_null(m.reg);
	assert_int_equal(p->nreg, p->result + d.size[AXIS_REG]);
	assert_true(p->result >= s.size[AXIS_REG]);
	for (unsigned b = 0; b < s.size[AXIS_BLOCK]; b++) {
		m.slot = calloc(p->scratch + 1, sizeof *m.slot);
		assert_non_null(m.slot);
		fill(&m, src, s.size[AXIS_REG], b);
		for (uint32_t i = 0; i < p->step.n; i++)
			for (unsigned w = 0; w < m.nwarp; w++)
				step_run(&m, &p->step.at[i], w);
		compare(&m, dst, d.size[AXIS_REG], b);
		free(m.slot);
	}
	free(m.reg);
	table_free(&s);
	table_free(&d);
}
