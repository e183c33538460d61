/* group.h: which nodes share a kernel. */
#ifndef TEXO_PASSES_FUSE_GROUP_H
#define TEXO_PASSES_FUSE_GROUP_H

#include "passes/pass_ctx.h"

typedef struct {
	VEC(TensorId) member; /* in the graph's order */
	bool stream;          /* for the STREAM template, and closed: nothing joins it */
} Group;

/* An edge between two kernels, and why it is there. */
typedef struct {
	TensorId from, to;
	RemarkId why;
} Unfused;

typedef struct {
	VEC(Unfused) unfused;
	VEC(Group) group;
	uint32_t *of;         /* by TensorId: 1 + its group; 0: a kernel of its own, of another template */
} Groups;

/* Adds the groups that are streamed (stream_group.c), before there are others; alone[t]: why t, which looked
 * like it, is in none. */
void group_streams(Graph *g, PassCtx *cx, const bool *faulty, const bool *results, Groups *out, RemarkId *alone);

/* Groups the nodes of g that the STREAM and ROWS templates take; results[t]: t is a result. In cx->scratch. */
Groups group_nodes(Graph *g, PassCtx *cx, const bool *faulty, const bool *results);

/* Adds to each group what its phases would compute twice, as a node of its own (share.c). Such a node comes
 * after its readers in the graph, and before them in its group. */
void share_in_groups(Graph *g, PassCtx *cx, const bool *faulty, const bool *results, Groups *groups);

#endif
