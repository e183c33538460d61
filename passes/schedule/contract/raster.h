/* raster.h: in which order a GPU's blocks take the tiles of a contraction's output: raster.c. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_RASTER_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_RASTER_H

#include "ir/tg.h"
#include "ir/tir.h"

/* A tile's number among its batch's rows and columns of tiles, and its batch's. */
typedef struct {
	ValId batch, row, column;
} RasterTile;

/* Of a task, where a batch has so many rows and columns of tiles. */
RasterTile raster_tile(TirKernel *k, ValId task, ValId rows, ValId columns);
/* The first row or column of a tile of so many, counted in 32 bits, so that its number has one register. */
ValId raster_first(TirKernel *k, ValId tile, unsigned size);
/* Quotient and remainder of what is below 2^32: of 64 bits they are calls. */
ValId raster_divide(TirKernel *k, ValId a, ValId b, ValId *rest);
/* A launch expression: 1 where e >= least > 0, else 0. */
ExprId raster_reaches(Graph *g, ExprId e, int64_t least);

#endif
