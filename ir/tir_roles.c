/* tir_roles.c: runs the roles of a kernel (ir/channel.h): a strand for each group that multiplies and one for the thread,
 * or the warp, that loads, each as far as it can go, in turn.
 *
 * Whatever order they really take, what is wrong is found: a slot is filled between its ACQUIRE and the next one, read
 * between WAIT and RELEASE and while products are settled, so that who does either without the right to it is found at
 * once. Fills are taken and released in turn, so no one is more than a ring ahead. Where groups take turns, a fill is the
 * group's that waits for it, and nobody waits for one before the one before it: what says that a fill is there would be
 * taken for another fill's. Strands that all wait do so for ever.
 * Copies and products are complete as soon as they are begun: nothing may look at what they touch before it may. What a block
 * brings for others too may come to one before it has acquired the fill itself. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ir/bugs.h"
#include "ir/tir_slot.h"
#include "ir/tir_threads.h"

enum { MAX_FLYING = 64 };

typedef struct {
	const TirChannel *c;
	float *part[TIR_MAX_SLOTS][TIR_MAX_PARTS]; /* (row, term) */
	int64_t acquired, filled; /* fills begun; and complete */
	int64_t waited;           /* with turns: fills that are some group's */
	unsigned left[TIR_MAX_SLOTS]; /* how many groups have yet to release what a slot has */
	unsigned copied;          /* parts of the last one that the block has brought, as bits */
	unsigned came[TIR_MAX_SLOTS]; /* how many parts, or shares of some, a slot has of the fill that is not complete */
} Ring;

typedef struct {
	int64_t waited, released; /* fills, by channel */
} Held;

typedef struct {
	const Step *at, *end;
	unsigned from, to;
	bool *active;
	Held *held;
	float *sum[TIR_MAX_BANKS]; /* (row, column) of the group's share */
	float *kept; /* (row, term) */
	struct {
		unsigned channel[2];
		int64_t n[2]; /* -1: none */
		unsigned bank;
		bool kept;
	} flying[MAX_FLYING]; /* what products going on read and add to, the oldest first */
	unsigned nflying, group, block;
	unsigned met; /* the cluster's barrier that it has come to, counted from 1 */
	bool came, waits;
} Strand;

typedef struct Roles {
	Block *x;
	Ring *ring; /* of each block those of its channels */
	Strand *strand;
	Strand *parted; /* of which some threads take a way of their own */
	unsigned groups, shares, nstrand;
	bool turns, joint, warp; /* joint: blocks have parts in common; warp: one loads */
	unsigned now[TIR_MAX_CLUSTER]; /* whose turn it is, of each block */
	unsigned came, met; /* groups that have come to the cluster's next barrier; barriers that all have met */
	unsigned columns[TIR_MAX_BANKS]; /* of an accumulator */
	unsigned rows[TIR_MAX_BANKS];
} Roles;

static int64_t
value(const Roles *r, const Strand *d, uint32_t slot)
{
	return (int64_t)at(r->x, slot)[d->from];
}

static int64_t
imm_of(const Roles *r, const Step *s)
{
	return tir_inst(r->x->k, s->inst)->imm.i;
}

static Ring *
ring_of(const Roles *r, const Strand *d, unsigned channel)
{
	return &r->ring[d->block * r->x->k->channel.n + channel];
}

/* --- the loading role --- */

/* How many parts a fill has, with the shares of each block. */
static unsigned
pieces_of(const Roles *r, const TirChannel *c)
{
	unsigned n = 0;
	for (unsigned p = 0; p < c->nparts; p++)
		n += c->part[p].joint ? tir_blocks(r->x->k) : 1;
	return n;
}

/* Fills become complete in turn. */
static void
complete(const Roles *r, Ring *ring)
{
	unsigned slot = (unsigned)(ring->filled % ring->c->slots);
	if (ring->acquired == ring->filled || ring->came[slot] < pieces_of(r, ring->c))
		return;
	ring->came[slot] = 0;
	ring->filled++;
}

static bool
same_in_all(const Roles *r, const Strand *d, uint32_t slot)
{
	for (unsigned t = d->from; t < d->to; t++)
		if (at(r->x, slot)[t] != at(r->x, slot)[d->from])
			return false;
	return true;
}

/* Waits where a group has not released what the slot had. */
static bool
run_acquire(Roles *r, Strand *d, const Step *s)
{
	unsigned channel = TIR_CHANNEL_OF(imm_of(r, s));
	Ring *ring = ring_of(r, d, channel);
	int64_t n = value(r, d, s->src[0]);
	if (!same_in_all(r, d, s->src[0]))
		return threads_violation(r->x, s, "threads of a warp differ in what they fill");
	if (n != ring->acquired)
		return threads_violation(r->x, s, arena_text(r->x->scratch, "fill %" PRId64 " where %" PRId64 " is next", n, ring->acquired));
	if (ring->acquired > 0 && ring->copied + 1 != 1u << ring->c->nparts)
		return threads_violation(r->x, s, "the fill before lacks a part");
	d->waits = ring->left[n % ring->c->slots] > 0;
	if (d->waits)
		return true;
	ring->left[n % ring->c->slots] = r->shares * (r->joint ? tir_blocks(r->x->k) : 1);
	ring->acquired++;
	ring->copied = 0;
	complete(r, ring);
	return true;
}

float
tir_third(float x, unsigned third)
{
	union { float f; uint32_t bits; } cut;
	for (;; third--, x = (x - cut.f) * (1 << TIR_THIRD_BITS)) {
		cut.f = x;
		cut.bits &= 0xffff0000;
		if (!third)
			return cut.f;
	}
}

/* Whether counts and steps, where the box has some, are what its part takes. */
static bool
box_fits(const Roles *r, const Strand *d, const StepAccess *a, const TirPart *p)
{
	int64_t rows = 1;
	for (unsigned n = 0; n < a->rank && a->axis[0].count; n++) {
		int64_t count = value(r, d, a->axis[n].count), step = value(r, d, a->axis[n].step);
		bool last = n + 1u == a->rank;
		if (count < 1 || step < 1 || step > TIR_MAX_BOX_STEP || count > TIR_MAX_PART_ROWS / step || (last && count * step != p->terms))
			return false;
		rows *= last ? 1 : count;
	}
	return !a->axis[0].count || rows == p->rows;
}

/* How far from the first indices this row and term of the part is. */
static void
box_offsets(const Roles *r, const Strand *d, const StepAccess *a, const TirPart *p, int64_t row, int64_t term, int64_t *to)
{
	for (unsigned n = a->rank; n-- > 0;) {
		bool last = n + 1u == a->rank;
		if (a->axis[n].count) {
			int64_t count = value(r, d, a->axis[n].count);
			to[n] = last ? term : row % count * value(r, d, a->axis[n].step);
			row = last ? row : row / count;
		} else
			to[n] = last ? (p->turned ? row : term) : n + 2u == a->rank ? (p->turned ? term : row) : 0;
	}
}

/* What a ring has of an element, exactly. */
static float
number_of(DType t, uint64_t slot)
{
	return (float)(dtype_info[t].kind == KIND_FLOAT ? slot_decode(t, slot) : slot_decode(DT_F64, slot_cast(DT_F64, t, slot)));
}

/* The element of the view that far from the first indices; 0 outside. */
static bool
box_element(Roles *r, const Strand *d, const Step *s, const int64_t *offset, float *to)
{
	Block *x = r->x;
	const StepAccess *a = &x->program->access.at[s->access];
	const Memory *m = &x->memory[a->buffer];
	int64_t where = 0;
	*to = 0;
	for (unsigned n = 0; n < a->rank; n++) {
		int64_t i = value(r, d, a->axis[n].index) + offset[n], step;
		if (i < 0 || i >= value(r, d, a->axis[n].extent))
			return true;
		if (__builtin_mul_overflow(i, value(r, d, a->axis[n].stride), &step) || __builtin_add_overflow(where, step, &where))
			where = -1;
	}
	if (where < 0 || where >= m->bytes * 8 / dtype_info[a->dtype].bits)
		return threads_violation(x, s, "the box lies outside of the buffer");
	*to = number_of((DType)a->dtype, slot_load((DType)a->dtype, m->data, where));
	if (s->src[1])
		*to = tir_third(*to, (unsigned)value(r, d, s->src[1]));
	return true;
}

/* To one block's slot, what the strand's brings of a part. */
static bool
run_box_for(Roles *r, Strand *d, const Step *s, Ring *ring, int64_t n)
{
	unsigned number = TIR_PART_OF(imm_of(r, s));
	const TirPart *p = &ring->c->part[number];
	float *to = ring->part[n % ring->c->slots][number];
	unsigned rows = tir_brought_rows(p, tir_blocks(r->x->k)), terms = tir_brought_terms(p, tir_blocks(r->x->k));
	unsigned row0 = rows < p->rows ? d->block * rows : 0, term0 = terms < p->terms ? d->block * terms : 0;
	for (unsigned i = 0; i < rows * terms; i++) {
		int64_t offset[TIR_MAX_RANK], row = row0 + i / terms, term = term0 + i % terms;
		box_offsets(r, d, &r->x->program->access.at[s->access], p, row, term, offset);
		if (!box_element(r, d, s, offset, &to[row * p->terms + term]))
			return false;
	}
	ring->came[n % ring->c->slots]++;
	complete(r, ring);
	return true;
}

static bool
run_box(Roles *r, Strand *d, const Step *s)
{
	unsigned channel = TIR_CHANNEL_OF(imm_of(r, s)), number = TIR_PART_OF(imm_of(r, s));
	Ring *ring = ring_of(r, d, channel);
	const TirPart *p = &ring->c->part[number];
	int64_t n = value(r, d, s->src[0]);
	if (n != ring->acquired - 1)
		return threads_violation(r->x, s, "to a slot that is not acquired");
	if (ring->copied >> number & 1)
		return threads_violation(r->x, s, "the part is there already");
	const StepAccess *a = &r->x->program->access.at[s->access];
	bool same = same_in_all(r, d, s->src[0]);
	for (unsigned k = 0; k < a->rank; k++)
		same &= same_in_all(r, d, a->axis[k].index);
	if (!same)
		return threads_violation(r->x, s, "threads of a warp differ in what they fill");
	if (!box_fits(r, d, a, p))
		return threads_violation(r->x, s, "the box is not what its part has");
	if (value(r, d, a->axis[a->rank - 1].index) % (16 / dtype_info[p->dtype].bits))
		return threads_violation(r->x, s, "the box begins within 16 bits");
	if (s->src[1] && (value(r, d, s->src[1]) < 0 || value(r, d, s->src[1]) >= TIR_THIRDS))
		return threads_violation(r->x, s, "an element has no such third");
	ring->copied |= 1u << number;
	if (!p->joint)
		return run_box_for(r, d, s, ring, n);
	for (unsigned b = 0; b < tir_blocks(r->x->k); b++)
		if (!run_box_for(r, d, s, &r->ring[b * r->x->k->channel.n + channel], n))
			return false;
	return true;
}

/* --- the multiplying role --- */

static bool
run_wait(Roles *r, Strand *d, const Step *s)
{
	unsigned channel = TIR_CHANNEL_OF(imm_of(r, s));
	Ring *ring = ring_of(r, d, channel);
	Held *held = &d->held[channel];
	int64_t n = value(r, d, s->src[0]);
	if (r->turns && held->released == held->waited)
		held->released = held->waited = ring->waited;
	if (n != held->waited || (r->turns && (r->now[d->block] != d->group || n != ring->waited)))
		return threads_violation(r->x, s, arena_text(r->x->scratch, "for fill %" PRId64 " where %" PRId64 " is next", n,
		                                             r->turns ? ring->waited : held->waited));
	d->waits = ring->filled <= n;
	held->waited += !d->waits;
	ring->waited += !d->waits;
	return true;
}

static bool
run_turn(Roles *r, Strand *d, const Step *s)
{
	if (imm_of(r, s) == 0) {
		d->waits = r->now[d->block] != d->group;
		return true;
	}
	if (r->now[d->block] != d->group)
		return threads_violation(r->x, s, "of another group's");
	r->now[d->block] = (r->now[d->block] + 1) % r->groups;
	return true;
}

static bool
run_release(Roles *r, Strand *d, const Step *s)
{
	unsigned channel = TIR_CHANNEL_OF(imm_of(r, s));
	int64_t n = value(r, d, s->src[0]);
	if (!value(r, d, s->src[1]))
		return true;
	if (n != d->held[channel].released || n >= d->held[channel].waited)
		return threads_violation(r->x, s, arena_text(r->x->scratch, "of fill %" PRId64 ", which the group does not have", n));
	for (unsigned k = 0; k < d->nflying; k++)
		if ((d->flying[k].channel[0] == channel && d->flying[k].n[0] == n) || (d->flying[k].channel[1] == channel && d->flying[k].n[1] == n))
			return threads_violation(r->x, s, arena_text(r->x->scratch, "of fill %" PRId64 ", which a product reads", n));
	d->held[channel].released++;
	for (unsigned b = 0; b < tir_blocks(r->x->k); b++)
		if (r->joint || b == d->block)
			r->ring[b * r->x->k->channel.n + channel].left[n % r->x->k->channel.at[channel].slots]--;
	return true;
}

/* Towards 0, but for what is beyond all numbers. */
static float
cut_to_f32(double v)
{
	float f = (float)v;
	return fabs(v) < 0x1p128 && fabs((double)f) > fabs(v) ? nextafterf(f, 0) : f;
}

static double
power_of_2(int e)
{
	uint64_t bits = (uint64_t)(1023 + e) << 52;
	double v;
	memcpy(&v, &bits, sizeof v);
	return v;
}

static float
add_one_by_one(float sum, const float *a, const float *b)
{
	for (unsigned t = 0; t < TIR_MMA_TERMS; t++)
		sum += a[t] * b[t];
	return sum;
}

/* What an instruction makes of a sum: its products, which are exact, and the sum are aligned to the largest of them, and what lies
 * below 2 bits more than a significand's is cut off, as are the last bits of what they add up to (passes/schedule/contract/roles.c).
 * Where one is no finite number, or all are 0, they are added one after the other. */
static float
add_products(float sum, const float *a, const float *b)
{
	enum { BITS = 24 + 2 }; /* 17 of so many are no more than 31 */
	double product[TIR_MMA_TERMS], largest = fabs((double)sum);
	bool finite = largest <= FLT_MAX;
	for (unsigned t = 0; t < TIR_MMA_TERMS; t++) {
		product[t] = (double)a[t] * (double)b[t];
		finite &= fabs(product[t]) <= FLT_MAX;
		largest = largest < fabs(product[t]) ? fabs(product[t]) : largest;
	}
	if (!finite || largest == 0)
		return add_one_by_one(sum, a, b);
	int e = ilogb(largest) + 1;
	double scale = power_of_2(BITS - e);
	int32_t units = (int32_t)((double)sum * scale);
	for (unsigned t = 0; t < TIR_MMA_TERMS; t++)
		units += (int32_t)(product[t] * scale);
	return cut_to_f32((double)units * power_of_2(e - BITS));
}

/* Of an accumulator with rows of `wide` sums. */
static void
multiply(float *sum, unsigned wide, const float *a, const float *b, unsigned rows, unsigned columns, unsigned terms, bool more)
{
	for (unsigned i = 0; i < rows; i++)
		for (unsigned j = 0; j < columns; j++) {
			float v = more ? sum[i * wide + j] : 0;
			for (unsigned t = 0; t < terms; t += TIR_MMA_TERMS)
				v = add_products(v, a + i * terms + t, b + j * terms + t);
			sum[i * wide + j] = v;
		}
}

/* Of what is kept, or of a's parts, by one part of b. */
static void
multiply_parts(const Roles *r, Strand *d, TirProduct p, int64_t n, const float *of_b, unsigned right, bool more)
{
	const Ring *first = ring_of(r, d, p.channel);
	const TirPart *b = &ring_of(r, d, p.other)->c->part[p.b];
	unsigned rows = r->rows[p.bank] / p.na, wide = r->columns[p.bank];
	float *sum = d->sum[p.bank] + right;
	for (unsigned i = 0; p.kept && i < rows; i++)
		multiply(sum + (size_t)i * wide, wide, d->kept + (size_t)i * TIR_MAX_KEPT + p.a * TIR_PART_TERMS, of_b, 1, b->rows, b->terms, more);
	for (unsigned k = 0; !p.kept && k < p.na; k++) {
		const float *of_a = first->part[n % first->c->slots][p.a + k] + (size_t)(r->turns ? 0 : d->group) * rows * b->terms;
		multiply(sum + (size_t)k * rows * wide, wide, of_a, of_b, rows, b->rows, b->terms, more);
	}
}

/* Whether the group has fill n of the channel. */
static bool
holds(const Strand *d, unsigned channel, int64_t n)
{
	return n >= d->held[channel].released && n < d->held[channel].waited;
}

static bool
run_product(Roles *r, Strand *d, const Step *s, TirProduct p, int64_t n, int64_t m, bool more)
{
	const Ring *second = ring_of(r, d, p.other);
	if ((!p.kept && !holds(d, p.channel, n)) || !holds(d, p.other, m))
		return threads_violation(r->x, s, arena_text(r->x->scratch, "of fill %" PRId64 ", which the group does not have",
		                                             p.kept || holds(d, p.channel, n) ? m : n));
	if (d->nflying == MAX_FLYING)
		return threads_violation(r->x, s, "too many products go on");
	d->flying[d->nflying].channel[0] = p.channel;
	d->flying[d->nflying].channel[1] = p.other;
	d->flying[d->nflying].n[0] = p.kept ? -1 : n;
	d->flying[d->nflying].n[1] = m;
	d->flying[d->nflying].bank = p.bank;
	d->flying[d->nflying++].kept = p.kept;
	for (unsigned t = 0; t < p.nterms; t++, p.a++, p.b++)
		for (unsigned k = 0; k < p.nb; k++)
			multiply_parts(r, d, p, n, second->part[m % second->c->slots][p.b + k], k * second->c->part[p.b].rows, more || t);
	return true;
}

static bool
run_mma(Roles *r, Strand *d, const Step *s)
{
	int64_t imm = imm_of(r, s), n = value(r, d, s->src[0]);
	if (s->kind == STEP_PRODUCT)
		return run_product(r, d, s, tir_product(imm), n, value(r, d, s->src[1]), value(r, d, s->src[2]) != 0);
	return run_product(r, d, s, tir_mma(imm), n, n, value(r, d, s->src[1]) != 0);
}

static bool
run_keep(Roles *r, Strand *d, const Step *s)
{
	int64_t imm = imm_of(r, s);
	unsigned k = 2 * (unsigned)(imm & 0xffff);
	DType t = (DType)(imm >> 16 & 0xff);
	for (unsigned n = 0; n < d->nflying; n++)
		if (d->flying[n].kept)
			return threads_violation(r->x, s, "of a factor that a product reads");
	for (unsigned th = d->from; th < d->to; th++)
		for (unsigned i = 0; i < 2; i++) {
			uint32_t bits = (uint32_t)at(r->x, s->src[i])[th];
			float v;
			memcpy(&v, &bits, sizeof v);
			unsigned row = tir_piece_row(k + i, th - d->from, TIR_MAX_KEPT), term = tir_piece_column(k + i, th - d->from, TIR_MAX_KEPT);
			d->kept[(size_t)row * TIR_MAX_KEPT + term] = (float)slot_decode(t, slot_encode(t, (double)v));
		}
	return true;
}

static void
run_settle(Roles *r, Strand *d, const Step *s)
{
	unsigned keep = (unsigned)imm_of(r, s);
	if (d->nflying <= keep)
		return;
	memmove(d->flying, d->flying + d->nflying - keep, keep * sizeof *d->flying);
	d->nflying = keep;
}

static bool
run_piece(Roles *r, Strand *d, const Step *s, const bool *active)
{
	unsigned k = (unsigned)imm_of(r, s) & 0xffff, bank = (unsigned)(imm_of(r, s) >> 16);
	for (unsigned n = 0; n < d->nflying; n++)
		if (d->flying[n].bank == bank)
			return threads_violation(r->x, s, "of an accumulator to which products are added");
	for (unsigned t = d->from; t < d->to; t++) {
		if (!active[t])
			continue;
		unsigned row = tir_piece_row(k, t - d->from, r->columns[bank]), column = tir_piece_column(k, t - d->from, r->columns[bank]);
		float *sum = &d->sum[bank][row * r->columns[bank] + column];
		uint32_t bits;
		if (s->kind == STEP_PUT) {
			bits = (uint32_t)at(r->x, s->src[0])[t];
			memcpy(sum, &bits, sizeof bits);
			continue;
		}
		memcpy(&bits, sum, sizeof bits);
		at(r->x, s->dst)[t] = bits;
	}
	return true;
}

bool
roles_piece(Block *x, const Step *s, const bool *active)
{
	return run_piece(x->roles, x->roles->parted, s, active);
}

/* Of the group's share of the fill's rows. */
static bool
run_held(Roles *r, Strand *d, const Step *s)
{
	unsigned channel = TIR_CHANNEL_OF(imm_of(r, s)), first = TIR_HELD_OF(imm_of(r, s)) * TIR_HELD_LANES;
	const Ring *ring = ring_of(r, d, channel);
	const TirPart *p = &ring->c->part[0];
	unsigned columns = ring->c->nparts * p->terms, own = r->turns ? 0 : d->group * (p->rows / r->shares);
	int64_t n = value(r, d, s->src[0]);
	if (!holds(d, channel, n))
		return threads_violation(r->x, s, arena_text(r->x->scratch, "of fill %" PRId64 ", which the group does not have", n));
	for (unsigned t = d->from; t < d->to; t++)
		for (unsigned i = 0; i < TIR_HELD_LANES; i++) {
			unsigned row = own + tir_piece_row(first + i, t - d->from, columns), column = tir_piece_column(first + i, t - d->from, columns);
			float v = ring->part[n % ring->c->slots][column / p->terms][row * p->terms + column % p->terms];
			at(r->x, s->dst + i)[t] = slot_encode((DType)p->dtype, (double)v);
		}
	return true;
}

/* Of each thread its own. */
static bool
run_take(Roles *r, Strand *d, const Step *s)
{
	unsigned channel = TIR_CHANNEL_OF(imm_of(r, s)), number = TIR_PART_OF(imm_of(r, s)), lanes = tir_inst(r->x->k, s->inst)->type.lanes;
	const Ring *ring = ring_of(r, d, channel);
	const TirPart *p = &ring->c->part[number];
	int64_t n = value(r, d, s->src[0]), terms = (int64_t)tir_parts_alike(ring->c, number) * p->terms;
	if (!holds(d, channel, n))
		return threads_violation(r->x, s, arena_text(r->x->scratch, "of fill %" PRId64 ", which the group does not have", n));
	for (unsigned t = d->from; t < d->to; t++) {
		int64_t row = (int64_t)at(r->x, s->src[1])[t], term = (int64_t)at(r->x, s->src[2])[t];
		if (row < 0 || row >= p->rows || term < 0 || term >= terms || term % lanes)
			return threads_violation(r->x, s, arena_text(r->x->scratch, "row %" PRId64 ", term %" PRId64 " of %u by %" PRId64, row, term, p->rows, terms));
		const float *from = ring->part[n % ring->c->slots][number + term / p->terms] + row * p->terms + term % p->terms;
		for (unsigned i = 0; i < lanes; i++)
			at(r->x, s->dst + i)[t] = slot_cast(p->dtype, DT_F64, slot_encode(DT_F64, (double)from[i]));
	}
	return true;
}

/* --- control: what the threads of a strand have in common --- */

static void
set_all(const Roles *r, const Strand *d, uint32_t slot, int64_t v)
{
	for (unsigned t = d->from; t < d->to; t++)
		at(r->x, slot)[t] = (uint64_t)v;
}

static bool
run_branch(Roles *r, Strand *d, const Step *s)
{
	Block *x = r->x;
	const Step *other = x->program->step.at + s->target, *after = x->program->step.at + (other - 1)->target;
	if (same_in_all(r, d, s->src[0])) {
		d->at = value(r, d, s->src[0]) ? s + 1 : other;
		return true;
	}
	d->at = after;
	r->parted = d;
	return threads_run(x, s, after, d->active);
}

static bool
run_loop(Roles *r, Strand *d, const Step *s)
{
	Block *x = r->x;
	int64_t index = s->kind == STEP_FOR ? value(r, d, s->src[0]) : value(r, d, s->dst);
	if (s->kind == STEP_HEAD) {
		if (!same_in_all(r, d, s->src[1]) || !same_in_all(r, d, s->dst))
			return threads_violation(x, s, "threads of a group differ in how often they run it");
		if (index >= value(r, d, s->src[1])) {
			d->at = x->program->step.at + s->target;
			return true;
		}
	} else if (value(r, d, s->src[2]) <= 0)
		return threads_violation(x, s, "the step is not positive");
	threads_move(x, s, d->active);
	if (s->kind == STEP_NEXT) {
		if (__builtin_add_overflow(index, value(r, d, s->src[2]), &index))
			return threads_violation(x, s, "the index overflows");
		d->at = x->program->step.at + s->target;
	}
	if (s->kind != STEP_HEAD)
		set_all(r, d, s->dst, index);
	return true;
}

static bool
all_are_loaded(const Roles *r)
{
	for (unsigned n = 0; n < r->nstrand; n++)
		if (r->strand[n].group == r->groups && r->strand[n].at < r->strand[n].end)
			return false;
	return true;
}

static void
run_barrier(Roles *r, Strand *d, const Step *s)
{
	Block *x = r->x;
	if (imm_of(r, s) == TIR_WARP_BARRIER) {
		x->group_warp_epoch[d->from / TIR_GROUP] = ++x->epoch;
		return;
	}
	if (imm_of(r, s) == TIR_GROUP_BARRIER) {
		x->group_epoch[d->from / TIR_GROUP] = ++x->epoch;
		threads_posts_met(x, d->from / TIR_GROUP);
		return;
	}
	if (!d->came) {
		d->met = r->met + 1;
		r->came++;
	}
	if (r->came == r->groups * tir_blocks(x->k) && all_are_loaded(r)) {
		r->came = 0;
		r->met++;
		x->cluster_epoch = x->roles_epoch = ++x->epoch;
	}
	d->came = d->waits = r->met < d->met;
}

static bool
run_step(Roles *r, Strand *d, const Step *s)
{
	Block *x = r->x;
	switch ((int)s->kind) {
	case STEP_ACQUIRE: return run_acquire(r, d, s);
	case STEP_BOX: return run_box(r, d, s);
	case STEP_WAIT: return run_wait(r, d, s);
	case STEP_RELEASE: return run_release(r, d, s);
	case STEP_MMA: case STEP_PRODUCT: return run_mma(r, d, s);
	case STEP_KEEP: return run_keep(r, d, s);
	case STEP_SHUFFLE: return threads_shuffle(r->x, s, d->active);
	case STEP_STORE_MATRIX: return threads_matrix(r->x, s);
	case STEP_SETTLE: run_settle(r, d, s); return true;
	case STEP_TURN: return run_turn(r, d, s);
	case STEP_PIECE: case STEP_PUT: return run_piece(r, d, s, d->active);
	case STEP_HELD: return run_held(r, d, s);
	case STEP_TAKE: return run_take(r, d, s);
	case STEP_WARP_MMA: threads_warp_mma(r->x, s); return true;
	case STEP_BARRIER: run_barrier(r, d, s); return true;
	case STEP_IF: return run_branch(r, d, s);
	case STEP_FOR: case STEP_HEAD: case STEP_NEXT: return run_loop(r, d, s);
	case STEP_JUMP:
		threads_move(x, s, d->active);
		d->at = x->program->step.at + s->target;
		return true;
	default: return threads_run(x, s, s + 1, d->active);
	}
}

/* As far as it can go. *moved: it went on. */
static bool
run_strand(Roles *r, Strand *d, bool *moved)
{
	r->x->from = d->from;
	r->x->to = d->to;
	while (d->at < d->end) {
		const Step *s = d->at;
		if (r->x->left-- <= 0)
			return threads_violation(r->x, s, "runs too long");
		d->waits = false;
		d->at = s + 1;
		if (!run_step(r, d, s))
			return false;
		if (d->waits) {
			d->at = s;
			return true;
		}
		*moved = true;
	}
	return true;
}

/* --- the whole --- */

static bool
all_is_read(Roles *r, const Step *s)
{
	if (r->x->reached_epoch >= r->x->cluster_epoch && tir_blocks(r->x->k) > 1)
		return threads_violation(r->x, s, "a block may end while another one reaches its memory");
	for (unsigned n = 0; n < r->nstrand; n++) {
		const Strand *d = &r->strand[n];
		if (d->group == r->groups)
			continue;
		if (d->nflying)
			return threads_violation(r->x, s, "a role ends while its products go on");
		const Ring *ring = ring_of(r, d, 0);
		if (r->joint && ring->acquired != r->ring->acquired)
			return threads_violation(r->x, s, "blocks that have parts in common go through different fills");
		for (uint32_t c = 0; c < r->x->k->channel.n; c++)
			if (d->held[c].released != d->held[c].waited || (r->turns ? ring[c].waited : d->held[c].waited) != ring[c].acquired ||
			    ring[c].filled != ring[c].acquired)
				return threads_violation(r->x, s, arena_text(r->x->scratch, "channel %u ends with a fill that not all have released", c));
	}
	return true;
}

/* Of which nothing is known at first. */
static float *
unknown(Arena *a, size_t n)
{
	float *v = ARENA_ARRAY(a, float, n + 1);
	for (size_t i = 0; i < n; i++)
		v[i] = NAN;
	return v;
}

static void
make_ring(Roles *r, unsigned n)
{
	Ring *ring = &r->ring[n];
	ring->c = &r->x->k->channel.at[n % r->x->k->channel.n];
	for (unsigned s = 0; s < ring->c->slots; s++)
		for (unsigned p = 0; p < ring->c->nparts; p++)
			ring->part[s][p] = unknown(r->x->scratch, (size_t)tir_accumulator_rows(&ring->c->part[p], 1) * ring->c->part[p].terms);
}

static void
find_accumulators(Roles *r)
{
	for (unsigned bank = 0; bank < TIR_MAX_BANKS; bank++) {
		unsigned registers;
		r->columns[bank] = tir_bank_columns(r->x->k, bank, &registers);
		r->rows[bank] = r->columns[bank] ? registers / (r->columns[bank] / 2) * TIR_MMA_ROWS : 0;
	}
}

static void
make_strand(Roles *r, unsigned n, const Step *s, const Step *after)
{
	Block *x = r->x;
	Strand *d = &r->strand[n];
	const Step *other = x->program->step.at + s->target;
	d->block = n / (r->groups + 1);
	d->group = n % (r->groups + 1);
	bool loads = d->group == r->groups;
	d->at = loads ? other : s + 1;
	d->end = loads ? after - 1 : other - 1; /* without the jump behind it */
	d->from = n * TIR_GROUP;
	d->to = d->from + (!loads ? (unsigned)TIR_GROUP : r->warp ? (unsigned)TIR_WARP : 1u);
	d->active = ARENA_ARRAY(x->scratch, bool, x->threads);
	for (unsigned t = d->from; t < d->to; t++)
		d->active[t] = true;
	d->held = ARENA_ARRAY(x->scratch, Held, x->k->channel.n);
	for (unsigned bank = 0; bank < TIR_MAX_BANKS; bank++)
		d->sum[bank] = unknown(x->scratch, (size_t)r->rows[bank] * r->columns[bank]);
	d->kept = unknown(x->scratch, (size_t)TIR_MMA_ROWS * TIR_MAX_KEPT);
	x->group_epoch[n] = x->roles_epoch;
}

static bool
run_strands(Roles *r, const Step *s)
{
	for (bool left = true; left;) {
		bool moved = false;
		left = false;
		for (unsigned n = 0; n < r->nstrand; n++) {
			if (!run_strand(r, &r->strand[n], &moved))
				return false;
			left |= r->strand[n].at < r->strand[n].end;
		}
		if (left && !moved)
			return threads_violation(r->x, s, "all roles wait for one another");
	}
	return all_is_read(r, s);
}

bool
roles_run(Block *x, const Step *s, const Step *after)
{
	TirRoles roles = tir_roles(tir_inst(x->k, s->inst)->imm.i);
	Roles r = {.x = x, .groups = roles.groups, .shares = roles.shares, .turns = roles.turns, .joint = tir_has_joint(x->k), .warp = roles.warp};
	r.nstrand = (r.groups + 1) * tir_blocks(x->k);
	r.ring = ARENA_ARRAY(x->scratch, Ring, (size_t)x->k->channel.n * tir_blocks(x->k));
	r.strand = ARENA_ARRAY(x->scratch, Strand, r.nstrand);
	x->group_epoch = ARENA_ARRAY(x->scratch, uint32_t, r.nstrand);
	x->group_warp_epoch = ARENA_ARRAY(x->scratch, uint32_t, r.nstrand);
	x->roles_epoch = x->epoch;
	for (uint32_t c = 0; c < x->k->channel.n * tir_blocks(x->k); c++)
		make_ring(&r, c);
	find_accumulators(&r);
	for (unsigned n = 0; n < r.nstrand; n++)
		make_strand(&r, n, s, after);
	x->roles = &r;
	bool ok = run_strands(&r, s);
	x->roles = NULL;
	return ok;
}
