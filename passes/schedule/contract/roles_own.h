/* roles_own.h: what a lane has of a panel of sums that is staged, for those who finish it (roles_finish.c, roles_mend.c). */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_ROLES_OWN_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_ROLES_OWN_H

#include "passes/schedule/contract/roles_build.h"

enum { WARP_ROWS = 16, MOST_AHEAD = 128 };

typedef struct {
	ValId lane;
	ValId first;        /* the first row of the lane's in what is staged, */
	ValId right;        /* and column */
	ValId row0, column; /* the same of the output */
	unsigned down, end; /* rows from one of the lane's to its next; below which all of them are */
	ValId row_end, column_end; /* of the output, or of a tile that ends before */
	Side side;
	unsigned rows;      /* that are finished together */
	/* What is read of a panel before it is staged, tensor by tensor: of one that goes by rows the first `window` of the lane's,
	 * else once. */
	unsigned nahead, window;
	ValId ahead[MOST_AHEAD];
	ValId whole;        /* bool: the output has all of the lane's in the panel */
	bool anew;          /* where that leaves no registers: each panel finds the lane's place in it anew */
} Own;

/* Folds again those of the panel's sums that may not be what they are; holds, of each warp one: there are none. */
void roles_mend(Roles *r, const Own *own, ValId holds);

#endif
