/* partition.h: things in a line into regions, so that what the regions cost together is least. It knows neither
 * nodes nor kernels: what a region costs, and whether there can be one, it is told (group.c). */
#ifndef TEXO_PASSES_FUSE_PARTITION_H
#define TEXO_PASSES_FUSE_PARTITION_H

#include "ir/arena.h"

enum {
	PARTITION_MAX = 64,   /* items that are divided by the best of all divisions into intervals; more, greedily */
	PARTITION_REGION = 24 /* items of a region at most */
};

/* Two items of which one is computed from the other, or both from the same. */
typedef struct {
	uint32_t a, b; /* a < b */
} PartitionLink;

/* What a region of item[0..n), ascending, costs; INFINITY: there is none. It is always the same for the same
 * items. What costs as much as `enough` or more need not be known: any answer that is not less will do. */
typedef double PartitionCost(void *user, const uint32_t *item, uint32_t n, double enough);

typedef struct {
	uint32_t n;                /* items, in an order in which each comes after all that it is computed from */
	const PartitionLink *link; /* by ascending b, then a */
	uint32_t nlink;
	PartitionCost *cost;
	void *user;
} PartitionItems;

/* The best division into intervals, by dynamic programming: region[k] is the number of item k's. At most
 * PARTITION_MAX items. */
void partition_intervals(const PartitionItems *p, Arena *scratch, uint32_t *region);
/* From single items, joins the two linked regions whose joining gains most, until none gains. An item, with what is
 * joined to it, may join all that it is linked with after it at once. */
void partition_by_gain(const PartitionItems *p, Arena *scratch, uint32_t *region);
/* One sweep of moves over a division: each region with each that it is linked with, then each item to
 * another region or to one of its own, where that costs less. */
void partition_refine(const PartitionItems *p, Arena *scratch, uint32_t *region);
/* Intervals or by gain, by the number of items, then refined. */
void partition(const PartitionItems *p, Arena *scratch, uint32_t *region);
/* What the regions cost together. */
double partition_cost(const PartitionItems *p, Arena *scratch, const uint32_t *region);

#endif
