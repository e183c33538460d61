/* kp.h: the kernel plan. A KernelPlan is plain data: which template runs which nodes with which
 * parameters. A Program is a graph with its kernels in launch order: what codegen turns into an
 * artefact. */
#ifndef TEXO_IR_KP_H
#define TEXO_IR_KP_H

#include "ir/tg.h"
#include "ir/tir.h"

typedef enum {
	TMPL_NONE = 0,
#define TEMPLATE(id, text, summary) TMPL_##id,
#include "ir/templates.def"
} Template;

enum {
	TMPL_COUNT = 1
#define TEMPLATE(id, text, summary) +1
#include "ir/templates.def"
};

typedef struct {
	const char *text, *summary;
} TemplateInfo;
extern const TemplateInfo template_info[TMPL_COUNT];

enum { KP_MAX_NODES = 64 };

typedef struct {
	uint8_t tmpl;           /* Template */
	uint8_t reserved;
	uint16_t lanes;         /* vector width along the innermost parallel axis; 0: scalar */
	uint16_t unroll;
	uint16_t nnode;
	TensorId node[KP_MAX_NODES]; /* the region, in topological (or step) order */
} KernelPlan;

/* One line: "nest lanes=0 unroll=1 nodes=%7,%8"; and back. */
void kp_print(const KernelPlan *kp, Text *out);
bool kp_read(KernelPlan *kp, const char *text, size_t n, const char **error);

typedef enum { BIND_DATA, BIND_FAULT } BindKind;

/* What a kernel's buffer is: the elements of a tensor, or its fault plane (u32 an element as
 * TIR's FAULT takes it, row-major), for an intermediate whose values may carry a fault. */
typedef struct {
	BindKind kind;
	TensorId tensor;
} BufferBind;

/* What a kernel's scalar is: an expression over dims and scalar parameters (extents, a parameter
 * itself), or the stride in elements of an axis of a tensor. */
typedef struct {
	ExprId expr;            /* 0: a stride */
	TensorId tensor;
	uint8_t axis;
} ScalarBind;

typedef struct {
	KernelPlan plan;
	TirKernel *tir;
	VEC(BufferBind) buffer; /* one per tir->buffer */
	VEC(ScalarBind) scalar; /* one per tir->scalar */
	ExprId ntask;           /* over dims: tasks 0 .. ntask-1, in any order and split anywhere */
	bool serial;            /* tasks must run as one call */
} Kernel;

typedef struct Program {
	Graph *graph;
	VEC(Kernel) kernel;     /* launch order */
} Program;

#endif
