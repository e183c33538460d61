/* workspace.c: the workspace of a launch, and what a kernel's calls get of it.
 *
 * First the tensors and fault planes, then copies of arguments (aside.c), then the scratch, of kernels that may run with these
 * sizes: of those that do the same one is the first that asks for nothing. Kernels run one after another, so they share the scratch: it is as large as the kernel that needs most, with the copies of what it copies boxes of (map_rows.c), which end where the workspace does. A kernel's scratch is one block that its calls share,
 * if it has tasks ahead, and one for each call that may run at the same time, with its binds one after another in
 * each. Everything begins at a multiple of 64 bytes, as the workspace does. */
#include <string.h>

#include "runtime/inside.h"
#include "ir/bugs.h"

bool
row_major(const int64_t *extent, uint32_t rank, int64_t *stride, int64_t *count)
{
	int64_t span = 1; /* of the inner axes, an empty one counting 1 */
	*count = 1;
	for (uint32_t k = rank; k-- > 0;) {
		stride[k] = span;
		if (!checked_mul(span, extent[k] > 0 ? extent[k] : 1, &span))
			return false;
		*count = extent[k] > 0 ? *count : 0;
	}
	*count = *count ? span : 0;
	return true;
}

/* The graph's shared expressions, of the dims as they are. */
static void
share(texo_kernel *k)
{
	const Image *im = &k->program->image;
	ExprEnv env = frame_env(k);
	for (uint32_t n = 0; n < k->graph->nshared; n++) {
		SharedValue *to = &k->frame.shared[n];
		to->exact = expr_exact(&env, im->words[k->graph->shared0 + n], &to->value);
	}
}

/* The bytes of count elements, up to the next multiple of 64. */
static bool
piece_bytes(const Element *e, int64_t count, int64_t *bytes)
{
	if (!element_bytes(e, count, bytes) || !checked_add(*bytes, 63, bytes))
		return false;
	*bytes -= *bytes % 64;
	return true;
}

/* Whether the bind is scratch that all calls share: where there are tasks ahead. */
static bool
is_shared(const ExprEnv *env, const ImageKernel *kernel, const ImageBind *b)
{
	return b->kind == IMG_BIND_SHARED && expr_value(env, kernel->ahead) > 0;
}

static bool
is_scratch(const ImageBind *b)
{
	return b->kind == IMG_BIND_SCRATCH || b->kind == IMG_BIND_SHARED || b->kind == IMG_BIND_CLEARED || b->kind == IMG_BIND_PASSED;
}

/* The bytes of a scratch bind, or of anything else 0. */
static bool
scratch_bytes(const ExprEnv *env, const ImageBind *b, int64_t *bytes)
{
	*bytes = 0;
	if (!is_scratch(b))
		return true;
	int64_t count;
	if (!expr_exact(env, b->a, &count))
		return false;
	return count <= 0 || piece_bytes(element_of(b->b), count, bytes);
}

/* The bytes of the kernel's scratch for so many calls at the same time. */
static bool
kernel_bytes(const ExprEnv *env, const ImageKernel *kernel, const ImageBind *bind, uint32_t calls, int64_t *bytes)
{
	*bytes = 0;
	for (uint32_t n = 0; n < kernel->nbuffer; n++) {
		int64_t more;
		if (!scratch_bytes(env, &bind[n], &more) ||
		    !checked_mul(more, is_shared(env, kernel, &bind[n]) ? 1 : calls, &more) || !checked_add(*bytes, more, bytes))
			return false;
	}
	return true;
}

/* The bytes of the copies that its maps are of. */
static bool
copies_bytes(texo_kernel *k, const ImageKernel *kernel, const ExprEnv *env, int64_t *bytes)
{
	*bytes = 0;
	if (!kernel->nmap || expr_value(env, kernel->ntask) <= 0)
		return true;
	frame_scalars(k, kernel);
	return map_rows_bytes(k, kernel, expr_value(env, kernel->pitch), bytes);
}

static bool
lay_out_asides(texo_kernel *k, int64_t *end)
{
	const ImageParam *param = k->program->image.param + k->graph->param0;
	int64_t count, bytes;
	k->frame.asides = 0;
	for (uint32_t p = 0; p < k->graph->nparam; p++) {
		Arg *a = &k->frame.arg[p];
		if (param[p].kind == IMG_SCALAR || !aside_needed(a, &param[p]))
			continue;
		k->frame.asides++;
		a->aside = (uint64_t)*end;
		if (!row_major(a->extent, param[p].rank, a->row, &count) ||
		    !piece_bytes(element_of(param[p].dtype), count, &bytes) || !checked_add(*end, bytes, end))
			return false;
	}
	return true;
}

/* Whether kernel n, with the one that follows it, asks for no alignment: it runs if it has tasks. Then none of those behind it does that
 * do the same. */
static bool
asks_nothing(const texo_kernel *k, uint32_t n)
{
	const Image *im = &k->program->image;
	const ImageKernel *kernel = &im->kernel[k->graph->kernel0 + n];
	const bool follows = n + 1 < k->graph->nkernel && kernel[1].when == IMG_AFTER;
	bool groups = false;
	for (uint32_t f = 0; f <= follows; f++)
		for (uint32_t b = 0; b < kernel[f].nbuffer; b++)
			groups |= im->bind[kernel[f].bind0 + b].group != 0;
	return kernel->when == IMG_ALIGNED && !kernel->nmap && !groups;
}

/* Whether kernel n may run with these sizes; before: whether the one before it may; *ran: one does that does the same as those behind it. */
static bool
may_run(const texo_kernel *k, const ExprEnv *env, uint32_t n, bool before, bool *ran)
{
	const ImageKernel *kernel = &k->program->image.kernel[k->graph->kernel0 + n];
	if (kernel->when == IMG_AFTER)
		return before;
	if (kernel->when == IMG_ALWAYS || (kernel->when == IMG_ALIGNED && (n == 0 || (kernel[-1].when != IMG_ALIGNED && kernel[-1].when != IMG_AFTER))))
		*ran = false;
	if (*ran || (kernel->when != IMG_ALWAYS && expr_value(env, kernel->ntask) <= 0))
		return false;
	*ran = asks_nothing(k, n);
	return true;
}

enum { NO_PIECE = 1, A_PIECE = 0 };

/* Which tensors kernels that may run have in the workspace, as their pieces. */
static void
find_pieces(texo_kernel *k, const ExprEnv *env)
{
	const Image *im = &k->program->image;
	bool ran = false, runs = false;
	for (uint32_t n = 0; n < k->graph->ntensor; n++)
		k->frame.piece[n] = NO_PIECE;
	for (uint32_t n = 0; n < k->graph->nkernel; n++) {
		const ImageKernel *kernel = &im->kernel[k->graph->kernel0 + n];
		runs = may_run(k, env, n, runs, &ran);
		for (uint32_t b = 0; runs && b < kernel->nbuffer; b++)
			if (im->bind[kernel->bind0 + b].kind == IMG_BIND_TENSOR)
				k->frame.piece[im->bind[kernel->bind0 + b].a] = A_PIECE;
	}
}

static bool
lay_out(texo_kernel *k, int64_t *end)
{
	const Image *im = &k->program->image;
	const ImageGraph *g = k->graph;
	ExprEnv env = frame_env(k);
	int64_t extent[IMAGE_MAX_RANK], stride[IMAGE_MAX_RANK], count, bytes, most = 0;
	*end = 0;
	find_pieces(k, &env);
	for (uint32_t n = 0; n < g->ntensor; n++) {
		const ImageTensor *t = &im->tensor[g->tensor0 + n];
		bool none = k->frame.piece[n] == NO_PIECE;
		k->frame.piece[n] = BUG(workspace_overlaps) ? 0 : (uint64_t)*end;
		if (none)
			continue;
		for (uint32_t a = 0; a < t->rank; a++)
			if (!expr_exact(&env, t->extent[a], &extent[a]))
				return false;
		if (!row_major(extent, t->rank, stride, &count) || !piece_bytes(element_of(t->dtype), count, &bytes) ||
		    !checked_add(*end, bytes, end))
			return false;
	}
	if (!lay_out_asides(k, end))
		return false;
	k->frame.scratch = (uint64_t)*end;
	bool ran = false, runs = false;
	for (uint32_t n = 0; n < g->nkernel; n++) {
		const ImageKernel *kernel = &im->kernel[g->kernel0 + n];
		uint32_t calls = kernel->serial ? 1 : k->program->rt->calls;
		int64_t copies;
		runs = may_run(k, &env, n, runs, &ran);
		if (!runs)
			continue;
		if (!copies_bytes(k, kernel, &env, &copies) || !kernel_bytes(&env, kernel, im->bind + kernel->bind0, calls, &bytes) ||
		    !checked_add(bytes, copies, &bytes))
			return false;
		most = bytes > most ? bytes : most;
	}
	return checked_add(*end, most, end);
}

static texo_status
lay_out_pieces(texo_kernel *k)
{
	int64_t end;
	share(k);
	if (!lay_out(k, &end))
		return rt_fail(TEXO_LIMIT, "graph %s needs more workspace than there are addresses",
		               k->program->image.text + k->graph->name);
	k->frame.workspace = (uint64_t)end;
	return TEXO_OK;
}

/* Whether there is a figure of the GPU among the dims. */
static bool
take_facts(texo_kernel *k, const int64_t *fact)
{
	bool any = false;
	for (uint32_t n = 0; n < k->graph->ndim; n++) {
		const ImageDim *d = &k->program->image.dim[k->graph->dim0 + n];
		if (d->param < 0)
			k->frame.dim[n] = dim_fixed(d, fact);
		any = any || (d->param < 0 && d->axis <= GPU_FACT_AXIS);
	}
	return any;
}

/* With the usual room a launch chooses as its GPU wants where it does not need more for that. */
texo_status
frame_lay_out(texo_kernel *k)
{
	const Rt *rt = k->program->rt;
	texo_status s = lay_out_pieces(k);
	uint64_t own = k->frame.workspace;
	if (s || !rt->usual_room || !take_facts(k, NULL))
		return s;
	s = lay_out_pieces(k);
	if (s || own > k->frame.workspace)
		return s;
	take_facts(k, rt->fact);
	return lay_out_pieces(k);
}

/* --- a kernel's arguments --- */

enum { SCRATCH_CLEARED = 64 }; /* bytes that are 0 for the first call: no bind takes less memory */

static bool
is_aside(const texo_kernel *k, uint32_t p)
{
	return k->frame.asides && aside_needed(&k->frame.arg[p], &k->program->image.param[k->graph->param0 + p]);
}

/* Scratch at *at, which is moved behind it. */
static void *
bind_scratch(const ExprEnv *env, const ImageBind *b, uint8_t *workspace, uint64_t *at)
{
	int64_t bytes;
	void *p = workspace ? workspace + *at : NULL;
	if (!scratch_bytes(env, b, &bytes))
		return p;
	*at += (uint64_t)bytes;
	bool of_calls = b->kind == IMG_BIND_SCRATCH || b->kind == IMG_BIND_SHARED; /* of a GPU's tasks it is not the host's */
	if (bytes && p && of_calls && !BUG(scratch_not_cleared))
		memset(p, 0, SCRATCH_CLEARED);
	return p;
}

/* The buffers of a call whose own scratch begins at *scratch, which is moved behind it; what it shares with the call
 * before it, whose buffers are `other`, is there already. */
static void
bind_buffers(texo_kernel *k, const ImageKernel *kernel, const ExprEnv *env, void **buffer, void *const *other,
             uint8_t *workspace, uint64_t *scratch)
{
	const Frame *f = &k->frame;
	const ImageBind *b = k->program->image.bind + kernel->bind0;
	for (uint32_t n = 0; n < kernel->nbuffer; n++, b++) {
		if (b->kind == IMG_BIND_PARAM)
			buffer[n] = is_aside(k, b->a) ? workspace + f->arg[b->a].aside : f->arg[b->a].data;
		else if (b->kind == IMG_BIND_TENSOR)
			buffer[n] = workspace ? workspace + f->piece[b->a] : NULL;
		else if (other && is_shared(env, kernel, b))
			buffer[n] = other[n];
		else
			buffer[n] = bind_scratch(env, b, workspace, scratch);
	}
}

/* Those of the kernel that was bound last are there already, but for the caller's own. */
static void
bind_scalars(texo_kernel *k, const ImageKernel *kernel, const ExprEnv *env)
{
	Frame *f = &k->frame;
	const ImageBind *b = k->program->image.bind + kernel->bind0 + kernel->nbuffer;
	bool there = f->bound == kernel;
	f->bound = kernel;
	for (uint32_t n = 0; n < kernel->nscalar; n++, b++) {
		if (b->kind == IMG_BIND_SCALAR)
			f->scalar[n] = f->arg[b->a].word;
		else if (!there && b->kind == IMG_BIND_EXPR)
			f->scalar[n] = (uint64_t)expr_value(env, b->a);
		else if (!there) {
			const int64_t *stride = is_aside(k, b->a) ? f->arg[b->a].row : f->arg[b->a].stride;
			f->scalar[n] = (uint64_t)stride[BUG(stride_of_first_axis) ? 0 : b->b];
		}
	}
}

void
frame_scalars(texo_kernel *k, const ImageKernel *kernel)
{
	ExprEnv env = frame_env(k);
	bind_scalars(k, kernel, &env);
}

uint64_t
frame_cleared(texo_kernel *k, const ImageBind *b)
{
	ExprEnv env = frame_env(k);
	int64_t bytes;
	return b->kind == IMG_BIND_CLEARED && scratch_bytes(&env, b, &bytes) ? (uint64_t)bytes : 0;
}

void
frame_arguments(texo_kernel *k, const ImageKernel *kernel, uint8_t *workspace, uint32_t calls)
{
	Frame *f = &k->frame;
	ExprEnv env = frame_env(k);
	uint64_t scratch = f->scratch;
	void **other = NULL;
	for (uint32_t c = 0; c < calls; c++) {
		void **buffer = f->buffer + (size_t)c * f->nbuffer;
		if (BUG(scratch_shared))
			scratch = f->scratch;
		bind_buffers(k, kernel, &env, buffer, other, workspace, &scratch);
		other = buffer;
	}
	bind_scalars(k, kernel, &env);
}
