/* raster.c: tiles go in groups of GROUP_ROWS rows of tiles, row by row in a column, column by column in a group,
 * so that those at work at the same time share factors in the cache. */
#include "passes/schedule/contract/raster.h"

enum { GROUP_ROWS = 8 };

ValId
raster_first(TirKernel *k, ValId tile, unsigned size)
{
	return tir_cast(k, DT_I64, tir_binary(k, OP_MUL, tir_cast(k, DT_U32, tile), tir_int(k, DT_U32, size)));
}

ValId
raster_divide(TirKernel *k, ValId a, ValId b, ValId *rest)
{
	ValId x = tir_cast(k, DT_U32, a), y = tir_cast(k, DT_U32, b);
	*rest = tir_cast(k, DT_I64, tir_binary(k, OP_IMOD, x, y));
	return tir_cast(k, DT_I64, tir_binary(k, OP_IDIV, x, y));
}

RasterTile
raster_tile(TirKernel *k, ValId task, ValId rows, ValId columns)
{
	ValId rest, inside, row, size = tir_int(k, DT_I64, GROUP_ROWS);
	RasterTile tile = {.batch = raster_divide(k, task, tir_binary(k, OP_MUL, rows, columns), &rest)};
	ValId first = tir_binary(k, OP_MUL, raster_divide(k, rest, tir_binary(k, OP_MUL, size, columns), &inside), size);
	tile.column = raster_divide(k, inside, tir_binary(k, OP_MIN, tir_binary(k, OP_SUB, rows, first), size), &row);
	tile.row = tir_binary(k, OP_ADD, first, row);
	return tile;
}

ExprId
raster_reaches(Graph *g, ExprId e, int64_t least)
{
	return expr_binary(g, OP_MIN, expr_binary(g, OP_IDIV, e, expr_int(g, DT_I64, least)), expr_int(g, DT_I64, 1));
}
