/* tir_interp.h: the interpreter's own program: the structured kernel flattened into steps with jumps.
 * Every value has its slots (ir/tir_slot.h) in one array, a vector one slot a lane; constants, scalar
 * arguments and the task range are put there once, before the first step. */
#ifndef TEXO_IR_TIR_INTERP_H
#define TEXO_IR_TIR_INTERP_H

#include "ir/tir.h"
#include "ir/tir_lanes.h"

typedef enum {
	STEP_LANES,   /* fn on src[0..3) */
	STEP_CAST,    /* src[0] from dtype `from` */
	STEP_BITCAST,
	STEP_REGROUP, /* BITCAST to other lanes */
	STEP_SELECT,
	STEP_SPLAT,
	STEP_COPY,    /* lanes slots from src[0]: LANE, with src at the lane */
	STEP_WEAVE,   /* of src[0] and src[1], by the number src[2] of WEAVE */
	STEP_HALF,    /* of src[0], by the number src[2] of HALF */
	STEP_ANY,     /* of the src[2] lanes from src[0] on */
	STEP_PICK,    /* of the src[2] lanes from src[0] on, by the numbers in src[1] */
	STEP_LOAD,    /* access */
	STEP_STORE,
	STEP_SHUFFLE,
	STEP_BARRIER,
	STEP_WARP_MMA, /* from: the factors' dtype; src[0]: slots of all operands, side by side */
	STEP_LOAD_MATRIX, /* access */
	STEP_STORE_MATRIX, /* access; src[0] the value */
	STEP_ASYNC_COPY,  /* access: to, then from; src[2] the condition */
	STEP_ASYNC_WAIT,
	STEP_DOT,     /* access: c, then a, then b; src[0] n */
	STEP_ACQUIRE, /* of channels: src[0] the fill, target the instruction's number */
	STEP_BOX,     /* COPY: access, and src[0] the fill */
	STEP_WAIT,
	STEP_RELEASE,
	STEP_MMA,
	STEP_PRODUCT,
	STEP_KEEP,
	STEP_PUT,
	STEP_SETTLE,
	STEP_TURN,
	STEP_PIECE,
	STEP_HELD,
	STEP_TAKE,
	STEP_ROLES,   /* the multiplying role follows; the other one from `target` */
	STEP_FAULT,
	STEP_FOR,     /* src lo, hi, step; dst the index; moves of the initial values */
	STEP_HEAD,    /* leaves the loop to `target`, or moves the carried values in */
	STEP_NEXT,    /* moves what was yielded, advances, to `target`, the head */
	STEP_IF,      /* src[0] false: to `target` */
	STEP_JUMP,    /* moves what was yielded, to `target` */
	STEP_END
} StepKind;

/* One axis of an access, by slots. */
typedef struct {
	uint32_t extent, stride, index;
	uint32_t count, step;  /* of a box; 0: its part says */
	uint8_t each_lane; /* the index has a slot a lane */
	uint8_t along;     /* lane l adds l, or its column */
} StepAxis;

typedef struct {
	uint32_t buffer, value, mask; /* value: where to or from; mask 0: none */
	uint8_t rank, dtype;
	StepAxis axis[TIR_MAX_RANK];
} StepAccess;

typedef struct {
	uint32_t dst, src, lanes;
} StepMove;

typedef struct {
	uint8_t kind;  /* StepKind */
	uint8_t dtype, from;
	uint32_t lanes; /* slots to write, at least 1 */
	ValId inst;    /* for messages */
	uint32_t dst, src[3];
	uint32_t target;
	uint32_t move, nmove; /* in StepProgram.move */
	uint32_t access;      /* in StepProgram.access */
	LaneFn *fn;
} Step;

typedef struct {
	VEC(Step) step;
	VEC(StepMove) move;
	VEC(StepAccess) access;
	VEC(uint32_t) thread, rank; /* slots that have the thread's number; its block's */
	uint64_t *slot;  /* filled with what does not change */
	uint32_t nslot;  /* slot 0 is not used */
} StepProgram;

/* Of a kernel that verifies. */
void interp_decode(const TirKernel *k, Arena *scratch, const TirRun *run, StepProgram *out);
/* BITCAST to other lanes, of slots that lie so far apart. */
void step_regroup(const Step *s, const uint64_t *src, uint64_t *dst, size_t pitch);
/* Runs one of form TIR_SPREAD (tir_threads.c). */
bool interp_threads(const TirKernel *k, Arena *scratch, TirRun *run, const StepProgram *program, const char **error);

#endif
