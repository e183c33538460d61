/* binding.h: from name=value to the data, shapes and dims of a graph's parameters. */
#ifndef TEXO_DRIVER_BINDING_H
#define TEXO_DRIVER_BINDING_H

#include "driver/input_spec.h"
#include "ir/launch_expr.h"
#include "driver/sizes.h"
#include "ir/diag.h"

typedef struct {
	const InputSpec *spec; /* random:0 where nothing was said */
	DType dtype;
	unsigned rank;
	int64_t shape[TG_MAX_RANK];
	int64_t count;
	void *data;            /* packed; a scalar's one element */
	int64_t bytes;
} BoundParam;

typedef struct {
	const Graph *graph;
	LaunchEnv env;       /* every dim is known after binding */
	SizesChosen chosen;
	BoundParam *param;   /* one per Graph.param */
	uint32_t nparam;
} Binding;

typedef struct {
	const HostFiles *files;
	Diags *diags;        /* of the program: what the signature contradicts is said at its place there */
	Arena *arena;        /* for what is small */
	Arena *data;         /* for the tensors */
	bool cast;           /* convert .npy files between float types, and between integer types */
	bool hints;          /* choose sizes by hint */
	bool shapes_only;    /* no data: dims and shapes suffice */
	const char **subject; /* what a message of memory names, set to a tensor meanwhile; may be NULL */
} BindOptions;

/* Binds spec[0..nspec) to the graph's parameters and dims; marks what was used. EXIT_USAGE for an
 * unknown name, EXIT_INPUT for what does not fit, EXIT_IO for files. */
bool bind_inputs(const Graph *g, InputSpec *spec, uint32_t nspec, const BindOptions *o, Binding *out, Problem *p);
/* "M = 8, N = 4", the sizes that were chosen; NULL when none was. */
const char *binding_chosen_text(const Binding *b, Arena *a);
/* ", M = 8, N = 4", all dims; with mark, those that were chosen are said to be. {"M":8,"N":4}. */
const char *binding_dims_text(const Binding *b, Arena *a, bool mark);
void binding_dims_json(const Binding *b, Text *out);

/* The product of the extents; false when it or the bytes overflow. */
bool shape_count(DType t, unsigned rank, const int64_t *shape, int64_t *count, int64_t *bytes);
/* n bytes for a tensor; *subject names it if there is no memory. */
void *tensor_memory(Arena *data, const char **subject, Arena *a, const char *name, unsigned rank, const int64_t *shape, int64_t n);
/* "[4, 8]" */
const char *shape_text(Arena *a, unsigned rank, const int64_t *shape);

#endif
