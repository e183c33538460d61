/* map_rows.c: what a kernel on a GPU copies boxes of (ImageMap), with these arguments; and of what has rows that begin where
 * the kernel wants none (ImageKernel.pitch), the copy that the kernel gets instead: rows one after another, each beginning
 * with a line of the cache, in memory that lies behind the kernel's scratch. What kernels have the thirds of is always a copy, of
 * all rows' first thirds, then the second ones, then the last. What memory a launch needs for that follows from
 * extents and strides alone: there is some for rows that may begin at an odd place because something lies between them. */
#include "ir/bugs.h"
#include "runtime/inside.h"

enum { BYTES = 2, WHOLE_BYTES = 4 }; /* of an element of a map, which is several of a tensor's where those have fewer; of what has thirds */
enum { MOST_BOX = 256, MOST_STEP = 8 };

/* A map may have twice as many; but a copy's place along it is a number of 32 bits with a sign, and what kernels compute of it is one
 * too (passes/schedule/stream/roles.c). stride: in bytes */
static const int64_t MOST_EXTENT = INT64_C(1) << 31, MOST_STRIDE = INT64_C(1) << 40;
static const int64_t MOST_PIECES = INT64_C(1) << 31;

static int64_t
number(const texo_kernel *k, int64_t v)
{
	return v < 0 ? (int64_t)k->frame.scalar[-1 - v] : v;
}

/* Where there is one index alone, the stride is of no account. Of elements of 8 or 4 bits, those that fill one of the map's lie side
 * by side, and neither a row ends nor another begins within one. */
static bool
take_axis(const texo_kernel *k, const ImageMap *m, uint32_t a, MapRows *to)
{
	int64_t extent = number(k, m->extent[a]), stride = number(k, m->stride[a]), bytes = m->thirds ? WHOLE_BYTES : BYTES;
	int64_t bits = m->thirds ? 16 : element_of(m->dtype)->bits, each = 16 / (bits < 8 && BUG(map_of_bytes) ? 8 : bits);
	int64_t of_extent = a ? 1 : each, of_stride = a ? each : 1;
	if (extent < 1 || extent > MOST_EXTENT || stride < 0 || stride >= MOST_STRIDE / 8 || extent % of_extent)
		return false;
	if (extent > 1 && (a ? stride % of_stride != 0 : stride != 1))
		return false;
	extent /= of_extent;
	stride /= of_stride;
	to->box[a] = number(k, m->box[a]) / of_extent;
	to->step[a] = number(k, m->step[a]);
	if (to->step[a] < 1 || to->step[a] > MOST_STEP || to->box[a] < 1 || to->box[a] > MOST_BOX / to->step[a])
		return false;
	to->extent[a] = extent;
	to->stride[a] = extent > 1 ? stride * bytes : a ? MAP_LEAST_PITCH : bytes;
	return to->stride[a] > 0;
}

/* Whether all rows do, at multiples of so many bytes from the first. */
static bool
begins_at(const MapRows *r, int64_t pitch)
{
	for (uint32_t a = 1; a < r->rank; a++)
		if (r->stride[a] % pitch)
			return false;
	return true;
}

/* Whether there is something between rows, as in a slice of columns: the first may begin anywhere then. */
static bool
lie_apart(const MapRows *r)
{
	return r->rank > 1 && r->extent[1] > 1 && r->stride[1] > r->extent[0] * BYTES;
}

/* The bytes of the copy, which has at most as many pieces as a launch can number. */
static bool
find_copy(MapRows *r)
{
	int64_t row = r->extent[0] * BYTES, rows = 1, pieces;
	for (uint32_t a = 1; a < r->rank; a++)
		if (!checked_mul(rows, r->extent[a], &rows))
			return false;
	r->pieces = (row - 1) / MAP_PIECE + 1;
	r->pitch = ((row - 1) / MAP_LINE + 1) * MAP_LINE;
	return checked_mul(rows, r->pieces, &pieces) && pieces < MOST_PIECES && checked_mul(rows, r->pitch, &r->each) &&
	       checked_mul(r->each, r->thirds ? IMAGE_MAP_THIRDS : 1, &r->room);
}

bool
map_rows(const texo_kernel *k, const ImageMap *m, int64_t pitch, MapRows *to)
{
	*to = (MapRows){.rank = m->rank, .thirds = m->thirds};
	for (uint32_t a = 0; a < m->rank; a++)
		if (!take_axis(k, m, a, to))
			return false;
	to->direct = !to->thirds && begins_at(to, MAP_LEAST_PITCH);
	to->wanted = to->direct && (pitch <= 0 || begins_at(to, pitch));
	if ((to->thirds || (pitch > 0 && (!to->wanted || lie_apart(to)))) && !find_copy(to))
		to->room = 0;
	return to->direct || to->room;
}

bool
map_rows_bytes(const texo_kernel *k, const ImageKernel *kernel, int64_t pitch, int64_t *bytes)
{
	MapRows r;
	*bytes = 0;
	for (uint32_t n = 0; n < kernel->nmap; n++)
		if (map_rows(k, &k->program->image.map[kernel->map0 + n], pitch, &r) && !checked_add(*bytes, r.room, bytes))
			return false;
	return !*bytes || checked_add(*bytes, MAP_LINE, bytes);
}
