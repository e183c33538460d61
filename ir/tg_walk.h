/* tg_walk.h: what tg.c and tg_walk.c share. */
#ifndef TEXO_IR_TG_WALK_H
#define TEXO_IR_TG_WALK_H

#include "ir/tg.h"

typedef struct ExprMemo ExprMemo;

/* The memos that are not in use; one is taken for each walk, so that walks may nest. */
typedef struct ExprMemos {
	ExprMemo *free;
} ExprMemos;

ExprId expr_intern(Graph *g, Expr e, const ExprId *arg);

#endif
