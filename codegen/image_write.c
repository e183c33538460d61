/* image_write.c: the artefact's records, string table and file.
 *
 * A tensor is one of: a parameter (its index in Graph.param), a result (parameters, then results
 * that are no inouts; the node whose tensor a result hands out writes there), or an intermediate in
 * the workspace. A fault plane is a u32 workspace tensor with the extents of its tensor. */
#include "codegen/image_write.h"

#include <string.h>

#include "ir/text.h"

typedef struct {
	Arena *arena;
	const ImageInput *in;
	const char *why;
	ImageHeader header;
	VEC(ImageGraph) graph;
	VEC(ImageParam) param;
	VEC(ImageDim) dim;
	VEC(ImageCheck) check;
	VEC(ImageTensor) tensor;
	VEC(ImageAccess) access;
	VEC(ImageKernel) kernel;
	VEC(ImageBind) bind;
	VEC(ImageMap) map;
	VEC(ImageModule) module;
	Words words;
	Text text, code;
	Names *strings;     /* dedupes text */
	VEC(uint32_t) at;   /* by Name in strings: 1 + offset in text */
} Writer;

/* The graph being written. */
typedef struct {
	Writer *w;
	const Program *program;
	const Graph *g;
	ImageGraph *out;
	ExprWriter expr;
	int32_t *param;  /* by TensorId: index among parameters and results, or -1 */
	int32_t *data;   /* by TensorId: index among the graph's workspace tensors, or -1 */
	int32_t *fault;
	uint32_t tensor0;
	ExprId room;     /* of the kernel at work */
} GraphWriter;

/* The offset of s in the string table. */
static uint32_t
put_text(Writer *w, const char *s)
{
	s = s ? s : "";
	Name n = name_cstr(w->strings, s);
	if (n >= w->at.n)
		vec_grow(w->arena, &w->at, n + 1 - w->at.n);
	if (!w->at.at[n]) {
		w->at.at[n] = (uint32_t)w->text.n + 1;
		text_add(&w->text, s, strlen(s) + 1);
	}
	return w->at.at[n] - 1;
}

static void
refuse(Writer *w, const char *why)
{
	if (!w->why)
		w->why = why;
}

/* --- parameters and results --- */

static void
put_param(GraphWriter *x, Name name, uint32_t kind, const Tensor *t)
{
	Writer *w = x->w;
	ImageParam p = {.kind = kind, .dtype = t->dtype, .rank = t->rank};
	p.name = put_text(w, name_text(x->g->names, name));
	for (unsigned k = 0; k < t->rank; k++)
		p.extent[k] = image_expr_apart(&x->expr, t->extent[k]);
	vec_push(w->arena, &w->param, p);
}

static void
put_params(GraphWriter *x)
{
	const Graph *g = x->g;
	x->out->param0 = x->w->param.n;
	for (uint32_t k = 0; k < g->param.n; k++) {
		const Tensor *t = &g->tensor.at[g->param.at[k]];
		uint32_t kind = t->kind == TENSOR_SCALAR ? IMG_SCALAR : t->kind == TENSOR_INOUT ? IMG_INOUT : IMG_INPUT;
		put_param(x, t->name, kind, t);
	}
	for (uint32_t k = 0; k < g->result.n; k++)
		if (!g->result.at[k].inout)
			put_param(x, g->result.at[k].name, IMG_RESULT, &g->tensor.at[g->result.at[k].tensor]);
	x->out->nparam = x->w->param.n - x->out->param0;
}

/* Gives every result's node the memory of the result, which must be its alone. */
static void
place_results(GraphWriter *x)
{
	const Graph *g = x->g;
	uint32_t next = g->param.n;
	for (uint32_t k = 0; k < g->result.n; k++) {
		const Result *r = &g->result.at[k];
		uint32_t slot = r->inout ? (uint32_t)x->param[r->inout] : next++;
		if (g->tensor.at[r->tensor].kind != TENSOR_NODE || x->param[r->tensor] >= 0)
			refuse(x->w, arena_text(x->w->arena, "result %s of graph %s has no memory of its own",
			                        name_text(g->names, r->name), name_text(g->names, g->name)));
		else
			x->param[r->tensor] = (int32_t)slot;
	}
}

/* --- dims, checks, accesses --- */

static void
put_dims(GraphWriter *x)
{
	Writer *w = x->w;
	x->out->dim0 = w->dim.n;
	for (DimId d = 1; d < x->g->dim.n; d++) {
		const Dim *from = &x->g->dim.at[d];
		ImageDim to = {.param = from->param, .axis = from->axis, .scale = from->scale,
		               .offset = from->offset, .value = from->value, .turn = from->turn};
		if (from->fixed) {
			to.param = -1;
			to.turn = 0;
		}
		to.name = put_text(w, name_text(x->g->names, from->name));
		vec_push(w->arena, &w->dim, to);
	}
	x->out->ndim = w->dim.n - x->out->dim0;
}

static void
put_checks(GraphWriter *x)
{
	Writer *w = x->w;
	x->out->check0 = w->check.n;
	for (uint32_t k = 0; k < x->g->check.n; k++) {
		const Check *c = &x->g->check.at[k];
		ImageCheck to = {image_expr_apart(&x->expr, c->cond), put_text(w, c->text), c->at.line, c->at.col};
		vec_push(w->arena, &w->check, to);
	}
	x->out->ncheck = w->check.n - x->out->check0;
	x->out->access0 = w->access.n;
	for (AccessId k = 1; k < x->g->access.n; k++) {
		const Access *c = &x->g->access.at[k];
		ImageAccess to = {c->kind, put_text(w, c->text), c->at.line, c->at.col};
		vec_push(w->arena, &w->access, to);
	}
	x->out->naccess = w->access.n - x->out->access0;
}

/* --- workspace --- */

static uint32_t
put_workspace(GraphWriter *x, TensorId id, DType dtype)
{
	Writer *w = x->w;
	const Tensor *t = &x->g->tensor.at[id];
	ImageTensor to = {.dtype = dtype, .rank = t->rank};
	for (unsigned k = 0; k < t->rank; k++)
		to.extent[k] = image_expr(&x->expr, t->extent[k]);
	if (x->room && t->rank)
		to.extent[0] = image_product(&x->expr, (ExprId[]){t->extent[0], x->room}, 2);
	vec_push(w->arena, &w->tensor, to);
	return w->tensor.n - 1 - x->tensor0;
}

static uint32_t
workspace_tensor(GraphWriter *x, BufferBind b)
{
	int32_t *slot = b.kind == BIND_FAULT ? &x->fault[b.tensor] : &x->data[b.tensor];
	if (*slot < 0)
		*slot = (int32_t)put_workspace(x, b.tensor,
		                               b.kind == BIND_FAULT ? DT_U32 : x->g->tensor.at[b.tensor].dtype);
	return (uint32_t)*slot;
}

/* --- kernels --- */

static ImageBind
bind_buffer(GraphWriter *x, BufferBind b, DType dtype)
{
	if (b.kind == BIND_SCRATCH || b.kind == BIND_SHARED) {
		if (!b.elements)
			refuse(x->w, "a kernel's scratch has no size");
		if (x->w->in->target == IMG_TARGET_CUDA)
			refuse(x->w, "a kernel for CUDA can't have scratch");
		uint32_t kind = b.kind == BIND_SHARED ? IMG_BIND_SHARED : IMG_BIND_SCRATCH;
		return (ImageBind){kind, b.elements ? image_expr(&x->expr, b.elements) : 0, (uint32_t)dtype, 0};
	}
	if (b.kind == BIND_CLEARED || b.kind == BIND_PASSED) {
		if (!b.elements || x->w->in->target != IMG_TARGET_CUDA)
			refuse(x->w, "memory that tasks share is for kernels of CUDA, and has a size");
		return (ImageBind){b.kind == BIND_CLEARED ? IMG_BIND_CLEARED : IMG_BIND_PASSED, b.elements ? image_expr(&x->expr, b.elements) : 0, (uint32_t)dtype, 0};
	}
	TensorKind kind = x->g->tensor.at[b.tensor].kind;
	if (b.kind == BIND_DATA && x->param[b.tensor] >= 0 && kind != TENSOR_SCALAR) {
		uint32_t p = (uint32_t)x->param[b.tensor];
		x->w->param.at[x->out->param0 + p].unit |= b.unit;
		return (ImageBind){IMG_BIND_PARAM, p, 0, 0};
	}
	if (kind != TENSOR_NODE)
		refuse(x->w, "a kernel's buffer is neither a tensor of the signature nor a node");
	if (b.kind == BIND_WORK)
		return (ImageBind){IMG_BIND_TENSOR, put_workspace(x, b.tensor, dtype), 0, 0};
	return (ImageBind){IMG_BIND_TENSOR, workspace_tensor(x, b), 0, 0};
}

static ImageBind
bind_scalar(GraphWriter *x, ScalarBind b)
{
	const Graph *g = x->g;
	if (b.expr) {
		const Expr *e = expr_get(g, b.expr);
		bool is_param = e->op == OP_READ && g->tensor.at[e->ref].kind == TENSOR_SCALAR;
		if (is_param)
			return (ImageBind){IMG_BIND_SCALAR, (uint32_t)x->param[e->ref], 0, 0};
		return (ImageBind){IMG_BIND_EXPR, image_expr(&x->expr, b.expr), 0, 0};
	}
	if (x->param[b.tensor] >= 0)
		return (ImageBind){IMG_BIND_STRIDE, (uint32_t)x->param[b.tensor], b.axis, 0};
	const Tensor *t = &g->tensor.at[b.tensor];
	uint32_t words = image_product(&x->expr, t->extent + b.axis + 1, t->rank - b.axis - 1u);
	return (ImageBind){IMG_BIND_EXPR, words, 0, 0};
}

/* How buffer b has to lie for the kernel to run; `groups` are of an aligned kernel. */
static uint32_t
asked_of(const Kernel *k, const bool *groups, uint32_t b)
{
	if (!k->aligned)
		return IMG_ANYHOW;
	if (k->plan.flat)
		return IMG_ROW_MAJOR;
	return groups[b] ? IMG_GROUPS : IMG_ANYHOW;
}

static int64_t
map_number(const TirKernel *k, ValId v)
{
	const TirInst *p = tir_inst(k, v);
	return p->op == OP_SCALAR ? -1 - p->imm.i : p->imm.i;
}

/* What COPY v copies boxes of: the view's axes, the last one first, and the box that its part has. */
static ImageMap
map_of(const TirKernel *k, ValId v)
{
	ValId view = tir_arg(k, v, 0);
	const TirInst *w = tir_inst(k, view);
	const TirPart *p = &k->channel.at[TIR_CHANNEL_OF(tir_inst(k, v)->imm.i)].part[TIR_PART_OF(tir_inst(k, v)->imm.i)];
	ImageMap m = {.buffer = (uint32_t)tir_inst(k, tir_arg(k, view, 0))->imm.i, .dtype = p->dtype, .rank = (uint32_t)w->imm.i,
	              .thirds = tir_copies_thirds(k, v)};
	_Static_assert((unsigned)IMAGE_MAP_THIRDS == (unsigned)TIR_THIRDS, "a map has an axis of them");
	for (unsigned a = 0; a < m.rank; a++) {
		m.extent[a] = map_number(k, tir_arg(k, view, m.rank - a));
		m.stride[a] = map_number(k, tir_arg(k, view, 2 * m.rank - a));
		ValId count = tir_box_count(k, v, m.rank - 1 - a), step = tir_box_step(k, v, m.rank - 1 - a);
		int64_t otherwise = a == 0 ? (int64_t)tir_part_along(p) : a > 1 ? 1 : p->turned ? tir_brought_terms(p, tir_blocks(k)) : tir_brought_rows(p, tir_blocks(k));
		m.box[a] = count ? map_number(k, count) : otherwise;
		m.step[a] = step ? map_number(k, step) : 1;
	}
	return m;
}

static void
put_maps(Writer *w, const TirKernel *k, ImageKernel *to)
{
	to->map0 = w->map.n;
	to->nmap = tir_maps(k);
	to->shared = tir_shared_at_launch(k) ? tir_shared_at(k, k->buffer.n) : 0;
	to->resident = to->nmap && (!k->cluster || tir_has_joint(k)) ? k->resident : 0; /* else the code says it */
	for (ValId v = 1; v < k->inst.n; v++)
		if (tir_makes_map(k, v))
			vec_push(w->arena, &w->map, map_of(k, v));
	if (to->nmap > IMAGE_CUDA_MAX_MAPS || to->shared > IMAGE_CUDA_MAX_SHARED)
		refuse(w, "a kernel has more tensor maps, or more shared memory, than there can be");
}

static void
put_kernel(GraphWriter *x, const Kernel *k, uint32_t covers, const char *symbol)
{
	Writer *w = x->w;
	const uint32_t handed = tir_handed_buffers(k->tir);
	const bool *groups = k->aligned ? kernel_groups(k, w->arena) : NULL;
	ImageKernel to = {.nbuffer = k->buffer.n, .nscalar = k->scalar.n, .serial = k->serial, .threads = k->tir->threads, .cluster = k->tir->cluster,
	                  .covers = covers, .when = k->follows ? IMG_AFTER : k->aligned ? IMG_ALIGNED : k->otherwise ? IMG_ELSE : IMG_ALWAYS};
	to.name = put_text(w, name_text(k->tir->names, k->tir->name));
	to.template_name = put_text(w, template_info[k->plan.tmpl].text);
	to.entry = put_text(w, symbol);
	to.ntask = image_expr(&x->expr, k->ntask);
	to.grain = k->grain ? image_expr(&x->expr, k->grain) : image_number(&x->expr, 1);
	to.ahead = k->ahead ? image_expr(&x->expr, k->ahead) : image_number(&x->expr, 0);
	to.pitch = k->pitch ? image_expr(&x->expr, k->pitch) : image_number(&x->expr, 0);
	to.bind0 = w->bind.n;
	if (k->buffer.n != handed * tir_sets(k->tir) || k->scalar.n != tir_launch_scalars(k->tir))
		refuse(w, arena_text(w->arena, "kernel %s has other buffers or scalars than its code",
		                     name_text(k->tir->names, k->tir->name)));
	x->room = k->room;
	for (uint32_t b = 0; b < k->buffer.n; b++) {
		ImageBind bind = bind_buffer(x, k->buffer.at[b], k->tir->buffer.at[b % handed].dtype);
		bind.group = asked_of(k, groups, b % handed);
		vec_push(w->arena, &w->bind, bind);
	}
	for (uint32_t s = 0; s < k->scalar.n; s++)
		vec_push(w->arena, &w->bind, bind_scalar(x, k->scalar.at[s]));
	put_maps(w, k->tir, &to);
	vec_push(w->arena, &w->kernel, to);
}

static int32_t *
no_slots(Writer *w, const Graph *g)
{
	int32_t *slot = ARENA_ARRAY(w->arena, int32_t, g->tensor.n);
	for (TensorId t = 0; t < g->tensor.n; t++)
		slot[t] = -1;
	return slot;
}

static void
put_graph(Writer *w, const Program *p, const char *const *symbol)
{
	const Graph *g = p->graph;
	ImageGraph out = {.tensor0 = w->tensor.n, .kernel0 = w->kernel.n};
	GraphWriter x = {w, p, g, &out, {0}, no_slots(w, g), no_slots(w, g), no_slots(w, g), w->tensor.n, 0};
	for (uint32_t k = 0; k < g->param.n; k++)
		x.param[g->param.at[k]] = (int32_t)k;
	x.expr = image_expr_writer(w->arena, g, &w->words, x.param, &w->header.stack);
	place_results(&x);
	out.name = put_text(w, name_text(g->names, g->name));
	out.signature = put_text(w, signature_json(w->arena, g));
	put_params(&x);
	put_dims(&x);
	put_checks(&x);
	for (uint32_t k = 0; k < p->kernel.n; k++)
		put_kernel(&x, &p->kernel.at[k], program_covers(p, k), symbol[k]);
	out.ntensor = w->tensor.n - out.tensor0;
	out.nkernel = w->kernel.n - out.kernel0;
	out.shared0 = w->words.n;
	out.nshared = x.expr.shared.n;
	for (uint32_t n = 0; n < out.nshared; n++)
		vec_push(w->arena, &w->words, x.expr.shared.at[n]);
	vec_push(w->arena, &w->graph, out);
	if (x.expr.why)
		refuse(w, arena_text(w->arena, "graph %s: %s", name_text(g->names, g->name), x.expr.why));
}

/* --- code --- */

static void
put_code(Writer *w)
{
	static const char zero[8];
	size_t most = w->in->code_size;
	for (uint32_t k = 0; w->in->module && k < w->in->module->n; k++)
		most += w->in->module->at[k].n + sizeof zero;
	text_init(&w->code, w->arena);
	text_room(&w->code, most);
	if (w->in->code_size)
		text_add(&w->code, w->in->code, w->in->code_size);
	for (uint32_t k = 0; w->in->module && k < w->in->module->n; k++) {
		const ImageModuleInput *m = &w->in->module->at[k];
		uint32_t same = 0; /* kernels may share their code */
		while (same < k && w->in->module->at[same].bytes != m->bytes)
			same++;
		if (same == k)
			text_add(&w->code, zero, (8 - w->code.n % 8) % 8);
		uint64_t at = same < k ? w->module.at[same].at : w->code.n;
		vec_push(w->arena, &w->module, ((ImageModule){m->kernel, m->form, at, m->n}));
		if (same == k)
			text_add(&w->code, m->bytes, m->n);
	}
}

/* --- the file --- */

static void
put_section(Text *file, const void *at, uint64_t n, size_t size, uint64_t *where, uint64_t *count)
{
	static const char zero[8];
	*where = file->n;
	*count = n;
	if (n)
		text_add(file, at, n * size);
	if (file->n % 8)
		text_add(file, zero, 8 - file->n % 8);
}

#define PUT(field, v) put_section(&file, (v).at, (v).n, sizeof *(v).at, &h->field.at, &h->field.n)

static void
put_file(Writer *w, const void **bytes, size_t *n)
{
	Text file;
	ImageHeader *h = &w->header;
	text_init(&file, w->arena);
	text_room(&file, sizeof *h + w->code.n);
	text_add(&file, (const char *)h, sizeof *h);
	PUT(graph, w->graph);
	PUT(param, w->param);
	PUT(dim, w->dim);
	PUT(check, w->check);
	PUT(tensor, w->tensor);
	PUT(access, w->access);
	PUT(kernel, w->kernel);
	PUT(bind, w->bind);
	PUT(map, w->map);
	PUT(words, w->words);
	PUT(text, w->text);
	PUT(module, w->module);
	put_section(&file, w->code.at, w->code.n, 1, &h->code.at, &h->code.n);
	memcpy(h->magic, IMAGE_MAGIC, sizeof h->magic);
	h->version = IMAGE_VERSION;
	h->target = w->in->target;
	h->bytes = file.n;
	memcpy(h->needs, w->in->needs, sizeof h->needs);
	memcpy(file.at, h, sizeof *h);
	size_t from = offsetof(ImageHeader, digest) + sizeof h->digest;
	h->digest = image_digest((const uint8_t *)file.at + from, file.n - from);
	memcpy(file.at, h, sizeof *h);
	*bytes = file.at;
	*n = file.n;
}

bool
image_write(Arena *a, const ImageInput *in, const void **bytes, size_t *n, const char **why)
{
	Writer w = {.arena = a, .in = in, .strings = names_new(a)};
	text_init(&w.text, a);
	put_text(&w, "");
	for (uint32_t p = 0; p < in->nprogram; p++)
		put_graph(&w, in->program[p], in->symbol[p]);
	put_code(&w);
	if (w.why) {
		*why = w.why;
		return false;
	}
	put_file(&w, bytes, n);
	return true;
}
