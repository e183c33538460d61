/* aside.c: arguments of which kernels take the last stride for 1 (ImageParam.unit), but which are
 * launched with another. The kernels get a row-major copy in the workspace instead: it is filled before
 * the first of them where the argument is read, and copied back after the last where it is written. So
 * kernels have one form of their code, and results can't depend on strides.
 *
 * A copy goes by tiles over the last axis and the one along which the argument's elements lie nearest
 * to one another, so that each line of memory on either side is used while it is in the cache. */
#include <string.h>

#include "runtime/inside.h"
#include "ir/bugs.h"

enum { TILE = 32, ROW_TILE = 2048, TILES_A_CALL = 16, CALLS_A_PLACE = 4 };

typedef struct {
	uint8_t *strided, *row; /* element 0 on either side */
	bool out;               /* from the row-major side */
	uint32_t rank, near;    /* near: the second axis of tiles; rank: none */
	size_t bytes;           /* of an element */
	const Arg *arg;
	int64_t width;          /* of a tile along the last axis */
	int64_t size, ntile;    /* tiles of a call; of all */
	atomic_int_fast64_t next;
} Move;

bool
aside_needed(const Arg *a, const ImageParam *p)
{
	return p->unit && a->count > 0 && a->extent[p->rank - 1] > 1 && a->stride[p->rank - 1] != 1;
}

static uint64_t
distance(int64_t stride)
{
	return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

/* The axis whose steps are the shortest, if they are shorter than the last one's. */
static uint32_t
nearest_axis(const Arg *a, uint32_t rank)
{
	uint32_t best = rank - 1;
	for (uint32_t k = 0; k + 1 < rank; k++)
		if (a->extent[k] > 1 && a->stride[k] && distance(a->stride[k]) < distance(a->stride[best]))
			best = k;
	return best == rank - 1 ? rank : best;
}

static int64_t
tiles_along(int64_t extent, int64_t width)
{
	return extent / width + (extent % width != 0);
}

/* --- tiles --- */

typedef struct {
	const uint8_t *from;
	uint8_t *to;
	int64_t n[2], from_step[2], to_step[2]; /* steps in bytes; along the last axis, then the near one */
} Tile;

/* Loops over the first axis outside, the second inside. */
static inline void
copy_plane(uint8_t *to, const int64_t *to_step, const uint8_t *from, const int64_t *from_step, const int64_t *n,
           size_t bytes)
{
	for (int64_t i = 0; i < n[0]; i++)
		for (int64_t k = 0; k < n[1]; k++)
			memcpy(to + i * to_step[0] + k * to_step[1], from + i * from_step[0] + k * from_step[1], bytes);
}

/* Through a buffer, so that either side goes along its lines: a line comes and leaves once, even where
 * those of a tile fall on the same place of the cache. */
static inline void
turn_plane(const Tile *t, bool out, size_t bytes)
{
	uint8_t buffer[TILE * TILE * 8];
	int64_t b = (int64_t)bytes, first[2] = {TILE * b, b}, n[2] = {t->n[out], t->n[!out]};
	int64_t from[2] = {t->from_step[out], t->from_step[!out]}, to[2] = {t->to_step[!out], t->to_step[out]};
	copy_plane(buffer, first, t->from, from, n, bytes);
	copy_plane(t->to, to, buffer, (int64_t[]){b, TILE * b}, (int64_t[]){n[1], n[0]}, bytes);
}

static inline void
copy_elements(const Tile *t, bool out, size_t bytes)
{
	if (t->n[1] > 1)
		turn_plane(t, out, bytes);
	else
		copy_plane(t->to, (int64_t[]){0, t->to_step[0]}, t->from, (int64_t[]){0, t->from_step[0]},
		           (int64_t[]){1, t->n[0]}, bytes);
}

static void
copy_tile(const Tile *t, bool out, size_t bytes)
{
	switch (bytes) { /* a copy of a size that the compiler knows is a move */
	case 1: copy_elements(t, out, 1); return;
	case 2: copy_elements(t, out, 2); return;
	case 4: copy_elements(t, out, 4); return;
	default: copy_elements(t, out, 8); return;
	}
}

static int64_t
smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Copies tile `number`: row-major over the axes, with tiles for elements of those two. */
static void
move_tile(const Move *m, int64_t number)
{
	const Arg *a = m->arg;
	int64_t bytes = (int64_t)m->bytes, strided = 0, row = 0;
	uint32_t last = m->rank - 1;
	Tile t = {.n = {1, 1}};
	for (uint32_t k = m->rank; k-- > 0;) {
		int64_t width = k == last ? m->width : k == m->near ? TILE : 1;
		int64_t count = tiles_along(a->extent[k], width), at = number % count * width;
		number /= count;
		strided += at * a->stride[k] * bytes;
		row += at * a->row[k] * bytes;
		if (k != last && k != m->near)
			continue;
		unsigned side = k == last ? 0 : 1;
		t.n[side] = smaller(width, a->extent[k] - at);
		t.from_step[side] = (m->out ? a->row[k] : a->stride[k]) * bytes;
		t.to_step[side] = (m->out ? a->stride[k] : a->row[k]) * bytes;
	}
	t.from = m->out ? m->row + row : m->strided + strided;
	t.to = m->out ? m->strided + strided : m->row + row;
	copy_tile(&t, m->out, m->bytes);
}

static void
move_tiles(void *arg, uint32_t place)
{
	Move *m = arg;
	(void)place;
	for (int64_t at; (at = atomic_fetch_add_explicit(&m->next, m->size, memory_order_relaxed)) < m->ntile;)
		for (int64_t n = at; n < smaller(at + m->size, m->ntile); n++)
			move_tile(m, n);
}

/* --- launches --- */

static void
copy_argument(Rt *rt, const Arg *a, const ImageParam *p, uint8_t *workspace, bool out)
{
	Move m = {.strided = a->data, .row = workspace + a->aside, .out = out, .rank = p->rank, .arg = a};
	m.bytes = element_of(p->dtype)->bits / 8;
	m.near = nearest_axis(a, p->rank);
	m.width = m.near < p->rank ? TILE : ROW_TILE;
	m.ntile = 1;
	for (uint32_t k = 0; k < p->rank; k++)
		m.ntile *= tiles_along(a->extent[k], k + 1 == p->rank ? m.width : k == m.near ? TILE : 1);
	int64_t places = smaller(m.ntile / TILES_A_CALL + 1, rt->calls);
	m.size = m.ntile / (places * CALLS_A_PLACE) + 1;
	run_places(rt, (uint32_t)places, move_tiles, &m);
}

void
aside_copy(texo_kernel *k, uint8_t *workspace, bool out)
{
	const ImageParam *param = k->program->image.param + k->graph->param0;
	for (uint32_t p = 0; p < k->graph->nparam; p++) {
		const Arg *a = &k->frame.arg[p];
		bool wanted = out ? param[p].kind != IMG_INPUT : param[p].kind != IMG_RESULT;
		if (param[p].kind != IMG_SCALAR && aside_needed(a, &param[p]) && wanted && !BUG(aside_not_copied))
			copy_argument(k->program->rt, a, &param[p], workspace, out);
	}
}
