/* expr_map.h: all expressions of a graph, visited and rewritten; shared by the tensor passes. */
#ifndef TEXO_PASSES_EXPR_MAP_H
#define TEXO_PASSES_EXPR_MAP_H

#include "ir/tg.h"

/* Calls f for each expression that the node, or the graph, refers to; f may replace it. */
typedef void RootFn(void *user, Graph *g, ExprId *root);
void node_each_root(Graph *g, Node *n, RootFn *f, void *user);
void graph_each_root(Graph *g, RootFn *f, void *user);

/* Rewrites every expression of the graph, each once, operands first: step gets an expression whose
 * operands are rewritten already and returns it or what stands for it everywhere. */
typedef ExprId ExprStepFn(void *user, Graph *g, ExprId e);
void graph_map(Graph *g, Arena *scratch, ExprStepFn *step, void *user);
/* The same for one expression. */
ExprId expr_map(Graph *g, Arena *scratch, ExprId e, ExprStepFn *step, void *user);
/* e with `to` wherever `from` is. */
ExprId expr_replace(Graph *g, Arena *scratch, ExprId e, ExprId from, ExprId to);

/* Whether `part` is e, or in it. */
bool expr_contains(const Graph *g, Arena *scratch, ExprId e, ExprId part);

/* Calls visit for each expression that node n evaluates, operands first; one that several roots
 * share may come again. */
void node_walk(const Graph *g, Arena *scratch, const Node *n, void (*visit)(void *user, ExprId e), void *user);
/* The reads of t among them. */
void node_each_read(const Graph *g, Arena *scratch, const Node *n, TensorId t, void (*visit)(void *user, ExprId e), void *user);
bool node_reads(const Graph *g, Arena *scratch, const Node *n, TensorId t);
/* Whether evaluating e can meet a fault; faulty as of graph_may_fault. */
bool expr_can_fault(const Graph *g, Arena *scratch, const bool *faulty, ExprId e);
/* The axes k < 32 that e mentions, as bits. */
uint32_t expr_axes(const Graph *g, Arena *scratch, ExprId e);
/* Whether e has a value, without a fault, wherever each of its axes a is in 0..extent[a], 0 where that is not known: every
 * subscript of what it reads is an axis that runs along the tensor's own extent. */
bool expr_is_whole(const Graph *g, Arena *scratch, const bool *faulty, ExprId e, const ExprId *extent);
/* Made of indices, dims, constants and i64 arithmetic alone: its size is bounded by the launch. */
bool expr_is_index(const Graph *g, Arena *scratch, ExprId e);
/* The same, of neither indices nor what stands for another value (IVAR): a launch knows it. */
bool expr_is_of_launch(const Graph *g, Arena *scratch, ExprId e);
/* A power of two, at most `most`, that divides e whatever its indices and dims are, by its form alone. */
unsigned expr_multiple(const Graph *g, ExprId e, unsigned most);

#endif
