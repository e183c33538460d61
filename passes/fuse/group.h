/* group.h: which nodes share a kernel. */
#ifndef TEXO_PASSES_FUSE_GROUP_H
#define TEXO_PASSES_FUSE_GROUP_H

#include "passes/pass_ctx.h"

typedef struct {
	VEC(TensorId) member; /* in the graph's order */
	bool stream;          /* for the STREAM template, and closed: nothing joins it */
	bool siblings;        /* sums that share a factor, with what is made of them; closed too */
} Group;

static inline bool
group_is_closed(const Group *g)
{
	return g->stream || g->siblings;
}

/* An edge between two kernels, and why it is there. */
typedef struct {
	TensorId from, to;
	RemarkId why;
	double together, apart; /* microseconds, where these are why */
	const char *text;       /* what there is to say beyond why; NULL: nothing */
} Unfused;

/* What keeps the edge, after the name of what is not fused. */
const char *unfused_text(Arena *a, const Unfused *u);

/* What there is to say of a node. */
typedef struct {
	TensorId about;
	RemarkId why;
	const char *text;
} GroupNote;

typedef struct {
	double us;            /* that the kernels by rows are predicted to take */
	VEC(GroupNote) note;  /* remarks, when these are the groups that are taken */
	VEC(Unfused) unfused;
	VEC(Group) group;
	uint32_t *of;         /* by TensorId: 1 + its group; 0: a kernel of its own, of another template */
} Groups;

/* A node that looked as if it could be streamed, and is not. */
typedef struct {
	TensorId source; /* the sum of products that it would have been streamed with; 0: it did not look like it */
	RemarkId why;
	const char *text;
} Unstreamed;

/* Adds the groups that are streamed (stream_group.c), before there are others; unstreamed: by TensorId. */
void group_streams(Graph *g, PassCtx *cx, const bool *faulty, const bool *results, Groups *out, Unstreamed *unstreamed);

/* Those that there are if nodes are grouped as they stand; needs FACT_FAULTS. */
Groups stream_groups(Graph *g, PassCtx *cx);
/* By TensorId: the nodes that are streamed if they are grouped as they stand; needs FACT_FAULTS. */
const bool *stream_members(Graph *g, PassCtx *cx);

/* Whether a pointwise node n may be computed where it is read instead (inline_points.c). */
bool point_may_move(const Graph *g, const Node *n);
/* Computes pointwise nodes anew in other groups that read them, and inside of their own, where moving them is what
 * takes longer; how many. Groups are then to be found again (recompute.c). */
uint32_t recompute_points(Graph *g, PassCtx *cx, const Groups *groups, const bool *results, bool inside);

/* Computes pointwise nodes that contractions alone read as these fill their panels, on a processor, where that takes less;
 * how many. Groups are then to be found again; those of which there are none say why (fill_panels.c). */
uint32_t fill_panels(Graph *g, PassCtx *cx, const bool *faulty, const bool *results, Groups *groups);

/* Makes nodes of what factors of contractions on a processor, and pointwise nodes that these read, compute of fewer axes than they
 * have: by TensorId; NULL: there are none. Groups are then to be found again (factor_parts.c). */
const bool *factor_parts(Graph *g, PassCtx *cx, const bool *faulty, const bool *results, const Groups *groups);
/* Pointwise nodes compute theirs themselves again: how many do; contractions do not. */
uint32_t factor_parts_back(Graph *g, const bool *part);

/* Groups the nodes of g that the STREAM and ROWS templates take; results[t]: t is a result. In cx->scratch. */
Groups group_nodes(Graph *g, PassCtx *cx, const bool *faulty, const bool *results);

/* Copies what kernels by rows would read across their lanes, again and again, so that it is in a row
 * (transpose_reads.c). */
void transpose_reads_of_groups(Graph *g, PassCtx *cx, const bool *faulty, const bool *results, Groups *groups);

/* A fact by TensorId with room for tensors that are added, of which it is false. */
bool *group_facts(Arena *scratch, const bool *from, uint32_t n, uint32_t room);
/* The same of what must be in memory: results, and what a node that is not of its group reads. */
bool *group_stored(const Graph *g, Arena *scratch, const Groups *groups, const bool *results, uint32_t room);
/* Sets `of` anew for all tensors that there are now. */
void group_members(const Graph *g, Arena *scratch, Groups *groups);

/* Adds to each group what its phases would compute twice, as a node of its own (share.c). Such a node comes
 * after its readers in the graph, and before them in its group. */
void share_in_groups(Graph *g, PassCtx *cx, const bool *faulty, const bool *results, Groups *groups);

#endif
