/* window.h: a contraction of 16-bit factors, one of which is read by windows, by roles: window.c. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_WINDOW_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_WINDOW_H

#include "passes/schedule/schedule.h"

/* Whether node t is of that kind, wherever its tensors will live. */
bool contract_window_could(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o);
/* Which of its axes the tiles' columns are then; -1: it is not. */
int contract_window_columns(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o);
/* What node n's factors, of 16 bits and each with axes of its own, read by windows: a subscript goes with an axis of the output and
 * one of the terms. It is worth storing: copies bring elements alone, once for each of the terms of that axis. How many; read
 * has room for two. */
unsigned contract_window_reads(const Graph *g, Arena *scratch, const Node *n, const PassOptions *o, ExprId *read);
enum { WINDOW_MOST_PLANS = 8 };
/* How many such kernels compute it, each where its sizes and memory suit; plan then has their parameters. */
unsigned contract_window_take(const Graph *g, Arena *scratch, const Places *places, TensorId t, const PassOptions *o, KernelPlan *plan);
void contract_window_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel, const PassOptions *o);
/* How many tiles there are to choose from. */
unsigned contract_window_tiles(void);

#endif
