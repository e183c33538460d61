/* contract_roles_build.h: what the files of the kernels of roles share. contract_roles.c says how they work. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_ROLES_BUILD_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_ROLES_BUILD_H

#include "passes/schedule/contract.h"
#include "passes/schedule/contract_roles.h"

/* A factor: an element of a tensor. */
typedef struct {
	TensorId tensor;
	DType dtype;
	unsigned naxis;
	uint8_t axis[TG_MAX_RANK]; /* of the node, by the tensor's axes */
	bool turned;               /* memory runs along its own axis, not along the terms */
} RolesFactor;

typedef struct {
	RolesFactor row, column;
	unsigned row_axis, column_axis, term_axis;
} RolesProduct;

/* What a block has of the output at a time: one tile that its groups share, or with `turns` each group one of its own. */
typedef struct {
	uint16_t rows, columns, groups, registers, rest, resident;
	bool turns;
	uint8_t side;  /* elements side by side that a lane finishes: it accesses them at once */
	uint16_t step; /* cycles of a processor for TIR_PART_TERMS of the terms, where blocks have all that they need */
} RolesTile;

typedef struct {
	Point l;
	const KernelPlan *plan;
	RolesTile tile;
	RolesProduct of;
	ExprId nrow, ncolumn, nterm;  /* extents */
	ValId rows, columns, steps;   /* of tiles; of terms */
	ValId view[2], staged;
	ValId task, thread, group;
	ValId row0, column0, coord[TG_MAX_AXES]; /* of the tile; the batch axes' */
} Roles;

static inline ValId
roles_int(Roles *r, int64_t v)
{
	return tir_int(r->l.tir, DT_I64, v);
}

static inline ValId
roles_op(Roles *r, Op o, ValId a, ValId b)
{
	return tir_binary(r->l.tir, o, a, b);
}

/* Quotient and remainder of what is below 2^32: of 64 bits they are calls. */
ValId roles_divide(Roles *r, ValId a, ValId b, ValId *rest);

/* --- the tile for the sizes (contract_roles_tile.c) --- */
unsigned roles_tiles(void);
RolesTile roles_tile(unsigned n);
/* The number of the plan's. */
unsigned roles_tile_of(const KernelPlan *p);
/* Over dims: 1 where the output's columns let tile n be used, and it is predicted to take no longer than those behind it
 * that finish elements in the same way, else 0. `only`: 0, or 1 + the only tile that there is. */
ExprId roles_tile_suits(Roles *r, unsigned n, unsigned only);
/* Instructions that finish an element. */
unsigned roles_finish_cost(Roles *r);
/* How many tiles of this kind the output has. */
ExprId roles_tile_count(Roles *r, const RolesTile *t);

/* --- the elements of a tile, of which the group has the sums (contract_roles_finish.c) --- */
void roles_bind_staged(Roles *r);
void roles_finish(Roles *r);
/* Whether several elements side by side of the node's output can be stored at once. */
bool roles_finish_side(const Graph *g, const Node *n, unsigned column_axis);

#endif
