/* partition.c: see partition.h.
 *
 * Intervals are best of all when the items are a chain, or when what lies between two of a region belongs
 * into it; the sweep afterwards finds what lies apart. Costs are compared, ties go to the first found, and
 * nothing depends on addresses: the same items have the same regions everywhere. */
#include "passes/fuse/partition.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

typedef struct {
	const PartitionItems *p;
	uint32_t *region; /* by item */
	double *cost;     /* by region, whose numbers are below that of items; of an empty one 0 */
	uint32_t *buffer; /* room for the items of a region */
	uint32_t *first, *later; /* later[first[a] .. first[a + 1]): the items that a is linked with after it */
} Division;

/* What less than that is a gain of: costs are sums of rounded numbers. */
static bool
gains(double less, double than)
{
	return less < than * (1 - 1e-9);
}

static Division
division(const PartitionItems *p, Arena *scratch, uint32_t *region)
{
	Division d = {.p = p, .region = region};
	d.cost = ARENA_ARRAY(scratch, double, p->n + 1u);
	d.buffer = ARENA_ARRAY(scratch, uint32_t, p->n + 1u);
	d.first = ARENA_ARRAY(scratch, uint32_t, p->n + 2u);
	d.later = ARENA_ARRAY(scratch, uint32_t, p->nlink + 1u);
	for (uint32_t l = 0; l < p->nlink; l++)
		d.first[p->link[l].a + 2]++;
	for (uint32_t k = 2; k < p->n + 2; k++)
		d.first[k] += d.first[k - 1];
	for (uint32_t l = 0; l < p->nlink; l++)
		d.later[d.first[p->link[l].a + 1]++] = p->link[l].b;
	return d;
}

static uint32_t
place_of(const uint32_t *item, uint32_t n, uint32_t what)
{
	uint32_t k = 0;
	while (k < n && item[k] != what)
		k++;
	return k;
}

/* Whether the items hang together by links among themselves. */
static bool
is_connected(const Division *d, const uint32_t *item, uint32_t n)
{
	uint32_t of[PARTITION_REGION], parts = n;
	for (uint32_t k = 0; k < n; k++)
		of[k] = k;
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t l = d->first[item[k]]; l < d->first[item[k] + 1]; l++) {
			uint32_t other = place_of(item, n, d->later[l]);
			if (other == n || of[k] == of[other])
				continue;
			uint32_t from = of[other], to = of[k];
			for (uint32_t j = 0; j < n; j++)
				of[j] = of[j] == from ? to : of[j];
			parts--;
		}
	return parts == 1;
}

static double
region_cost(const Division *d, const uint32_t *item, uint32_t n, double enough)
{
	if (n > PARTITION_REGION || (n > 1 && (enough <= 0 || !is_connected(d, item, n))))
		return INFINITY;
	return n ? d->p->cost(d->p->user, item, n, enough) : 0;
}

/* --- intervals --- */

void
partition_intervals(const PartitionItems *p, Arena *scratch, uint32_t *region)
{
	Division d = division(p, scratch, region);
	double *best = ARENA_ARRAY(scratch, double, p->n + 1u);
	uint32_t *from = ARENA_ARRAY(scratch, uint32_t, p->n + 1u), *item = ARENA_ARRAY(scratch, uint32_t, p->n + 1u);
	for (uint32_t k = 0; k < p->n; k++)
		item[k] = k;
	for (uint32_t end = 1; end <= p->n; end++) {
		best[end] = INFINITY;
		/* the longest first: when it is best, the shorter ones are seen not to be by a glance */
		for (uint32_t start = end > PARTITION_REGION ? end - PARTITION_REGION : 0; start < end; start++) {
			double all = best[start] + region_cost(&d, item + start, end - start, best[end] - best[start]);
			if (best[end] == INFINITY || gains(all, best[end])) {
				best[end] = all;
				from[end] = start;
			}
		}
	}
	for (uint32_t end = p->n, start; end > 0; end = start) {
		start = from[end];
		for (uint32_t k = start; k < end; k++)
			region[k] = start;
	}
}

/* --- regions that change --- */

static uint32_t
items_of(const Division *d, uint32_t region, uint32_t *item)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < d->p->n; k++)
		if (d->region[k] == region)
			item[n++] = k;
	return n;
}

static double
cost_of(const Division *d, uint32_t region, double enough)
{
	uint32_t n = items_of(d, region, d->buffer);
	return region_cost(d, d->buffer, n, enough);
}

static Division
divide(const PartitionItems *p, Arena *scratch, uint32_t *region)
{
	Division d = division(p, scratch, region);
	for (uint32_t r = 0; r < p->n; r++)
		d.cost[r] = cost_of(&d, r, INFINITY);
	return d;
}

/* What joining the regions would cost: their items in one. */
static double
joined_cost(const Division *d, const uint32_t *joined, uint32_t njoined, double enough)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < d->p->n; k++)
		for (uint32_t j = 0; j < njoined; j++)
			if (d->region[k] == joined[j])
				d->buffer[n++] = k;
	return region_cost(d, d->buffer, n, enough);
}

static void
join(Division *d, const uint32_t *joined, uint32_t njoined, double cost)
{
	for (uint32_t j = 1; j < njoined; j++) {
		for (uint32_t k = 0; k < d->p->n; k++)
			if (d->region[k] == joined[j])
				d->region[k] = joined[0];
		d->cost[joined[j]] = 0;
	}
	d->cost[joined[0]] = cost;
}

/* --- by gain --- */

/* Of an item with all that it is linked with after it, or with one of these. */
typedef struct {
	double gain, cost;     /* cost: of what is joined; gain < 0: to be counted anew */
	uint32_t item, from, to; /* with later[from..to) */
} Offer;

/* The regions that the offer would join, once each. */
static uint32_t
offer_regions(const Division *d, const Offer *o, uint32_t *joined)
{
	uint32_t n = 0;
	joined[n++] = d->region[o->item];
	for (uint32_t l = o->from; l < o->to && n <= PARTITION_REGION; l++)
		if (place_of(joined, n, d->region[d->later[l]]) == n)
			joined[n++] = d->region[d->later[l]];
	return n;
}

static void
count_gain(const Division *d, Offer *o)
{
	uint32_t joined[PARTITION_REGION + 1], n = offer_regions(d, o, joined);
	double apart = 0;
	for (uint32_t j = 0; j < n; j++)
		apart += d->cost[joined[j]];
	o->gain = 0;
	if (n < 2)
		return;
	o->cost = joined_cost(d, joined, n, apart);
	if (gains(o->cost, apart))
		o->gain = apart - o->cost;
}

static uint32_t
make_offers(const Division *d, Offer *offer)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < d->p->n; k++) {
		uint32_t from = d->first[k], to = d->first[k + 1];
		if (to - from > 1)
			offer[n++] = (Offer){.gain = -1, .item = k, .from = from, .to = to};
		for (uint32_t l = from; l < to; l++)
			offer[n++] = (Offer){.gain = -1, .item = k, .from = l, .to = l + 1};
	}
	return n;
}

void
partition_by_gain(const PartitionItems *p, Arena *scratch, uint32_t *region)
{
	for (uint32_t k = 0; k < p->n; k++)
		region[k] = k;
	Division d = divide(p, scratch, region);
	Offer *offer = ARENA_ARRAY(scratch, Offer, p->nlink + p->n + 1u);
	uint32_t n = make_offers(&d, offer);
	for (;;) {
		uint32_t best = 0, joined[PARTITION_REGION + 1], other[PARTITION_REGION + 1];
		for (uint32_t k = 0; k < n; k++) {
			if (offer[k].gain < 0)
				count_gain(&d, &offer[k]);
			if (offer[k].gain > offer[best].gain)
				best = k;
		}
		if (n == 0 || offer[best].gain <= 0)
			return;
		join(&d, joined, offer_regions(&d, &offer[best], joined), offer[best].cost);
		for (uint32_t k = 0; k < n; k++) {
			uint32_t m = offer_regions(&d, &offer[k], other);
			if (place_of(other, m, joined[0]) < m)
				offer[k].gain = -1;
		}
	}
}

/* --- one sweep --- */

static bool
try_to_join(Division *d, uint32_t a, uint32_t b)
{
	uint32_t joined[2] = {d->region[a], d->region[b]};
	if (joined[0] == joined[1])
		return false;
	double apart = d->cost[joined[0]] + d->cost[joined[1]], together = joined_cost(d, joined, 2, apart);
	if (!gains(together, apart))
		return false;
	join(d, joined, 2, together);
	return true;
}

static void
try_to_move(Division *d, uint32_t item, uint32_t to)
{
	uint32_t from = d->region[item];
	double before = d->cost[from] + d->cost[to];
	if (from == to)
		return;
	d->region[item] = to;
	double there = cost_of(d, to, before), here = there < before ? cost_of(d, from, before - there) : INFINITY;
	if (gains(there + here, before)) {
		d->cost[to] = there;
		d->cost[from] = here;
	} else {
		d->region[item] = from;
	}
}

/* A number that no region has; that of items: none. */
static uint32_t
empty_region(const Division *d)
{
	uint32_t r = 0;
	while (r < d->p->n && d->cost[r] > 0)
		r++;
	return r;
}

void
partition_refine(const PartitionItems *p, Arena *scratch, uint32_t *region)
{
	Division d = divide(p, scratch, region);
	for (uint32_t l = 0; l < p->nlink; l++) {
		try_to_move(&d, p->link[l].a, region[p->link[l].b]);
		try_to_move(&d, p->link[l].b, region[p->link[l].a]);
	}
	for (uint32_t k = 0; k < p->n; k++) {
		uint32_t r = empty_region(&d);
		if (r < p->n)
			try_to_move(&d, k, r);
	}
	for (bool more = true; more;) {
		more = false;
		for (uint32_t l = 0; l < p->nlink; l++)
			more = try_to_join(&d, p->link[l].a, p->link[l].b) || more;
	}
}

void
partition(const PartitionItems *p, Arena *scratch, uint32_t *region)
{
	if (p->n <= PARTITION_MAX)
		partition_intervals(p, scratch, region);
	else
		partition_by_gain(p, scratch, region);
	partition_refine(p, scratch, region);
}

double
partition_cost(const PartitionItems *p, Arena *scratch, const uint32_t *region)
{
	uint32_t *copy = ARENA_ARRAY(scratch, uint32_t, p->n + 1u);
	double all = 0;
	memcpy(copy, region, p->n * sizeof *copy);
	Division d = divide(p, scratch, copy);
	for (uint32_t r = 0; r < p->n; r++)
		all += d.cost[r];
	return all;
}
