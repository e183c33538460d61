/* factors.h: the streams whose products a GPU's matrix instructions take: one score and at most one wide accumulator, of products of
 * two bf16 or f16 elements of tensors, whose memory runs along the terms or along their own axis. */
#ifndef TEXO_PASSES_SCHEDULE_STREAM_FACTORS_H
#define TEXO_PASSES_SCHEDULE_STREAM_FACTORS_H

#include "passes/schedule/stream/stream.h"

/* An element of a tensor, one of whose subscripts is its own axis, one the terms'; others are of a task. */
typedef struct {
	TensorId tensor;
	DType dtype;
	unsigned rank, own, term;  /* which of its subscripts they are */
	ExprId sub[TG_MAX_RANK];
	bool turned;               /* memory runs along its own axis */
} StreamElement;

enum { OF_QUERY, OF_KEY, OF_VALUE, OF_BESIDE, NOF };

/* What a read has of such an element, if it is one. */
bool stream_take_element(const Graph *g, Arena *scratch, const Stream *s, ExprId read, unsigned own, unsigned term, StreamElement *to);
/* Those of the products of a stream that is one of these. */
bool stream_find_elements(const Graph *g, Arena *scratch, const Stream *s, StreamElement *of);
/* Its wide accumulator; -1: it has none, -2: it has several. */
int stream_wide_acc(const Stream *s);
/* Whether e, if it is known, is in lo .. hi. */
bool stream_may_be_in(const Graph *g, ExprId e, int64_t lo, int64_t hi);
/* Of a weight that who multiplies by it rounds to t: y of the weight f32(t(y)), else the weight. */
ExprId stream_unrounded(const Graph *g, ExprId weight, DType t);

#endif
