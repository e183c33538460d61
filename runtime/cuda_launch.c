/* cuda_launch.c: launches on a GPU: a graph's kernels one after another on the caller's stream. Nothing
 * is allocated and nothing waited for; what the kernels met is fetched when someone asks. After a
 * prepare for such sizes all is calls of the driver that a stream which is being captured takes; what was
 * not prepared is loaded first, before anything is on the stream. */
#include "runtime/cuda.h"
#include "runtime/cuda_program.h"

enum { WARP = 32, BLOCKS_A_PROCESSOR = 64, GROUP_BYTES = 16 };

static const int64_t MAX_TASKS = INT64_C(1) << 47; /* a status word has 48 bits for the task, and all ones */

typedef struct {
	unsigned blocks, threads;
} Grid;

enum { MOST_BLOCKS = 1 << 30 };

/* As many blocks as are resident where they go from task to task; a block a task, or a cluster, where its threads take them
 * together; else a thread a task, in blocks as large as keep all processors busy, until there are enough of them for each
 * thread to take several. */
static Grid
grid_for(const Cuda *c, const ImageKernel *kernel, int64_t ntask)
{
	Grid g = {1, 1};
	if (kernel->serial)
		return g;
	unsigned each = kernel->cluster ? kernel->cluster : 1;
	if (kernel->resident) {
		int64_t blocks = (c->processors > 0 ? c->processors : 1) * (int64_t)kernel->resident, most = blocks > each ? blocks / each : 1;
		return (Grid){(unsigned)(ntask < most ? ntask : most) * each, kernel->threads};
	}
	if (kernel->threads) {
		return (Grid){(unsigned)(ntask < MOST_BLOCKS / each ? ntask : MOST_BLOCKS / each) * each, kernel->threads};
	}
	int64_t processors = c->processors > 0 ? c->processors : 1;
	g.threads = IMAGE_CUDA_BLOCK;
	while (g.threads > WARP && ntask < processors * g.threads)
		g.threads /= 2;
	int64_t blocks = (ntask - 1) / g.threads + 1, most = processors * BLOCKS_A_PROCESSOR;
	g.blocks = (unsigned)(blocks < most ? blocks : most);
	return g;
}

/* --- alignment --- */

static bool
in_groups(int64_t elements, uint32_t dtype)
{
	return (uint64_t)elements % (2 * GROUP_BYTES) * element_of(dtype)->bits % (8 * GROUP_BYTES) == 0; /* of 4 bits: 32 */
}

static bool
is_row_major(const Arg *a, uint32_t rank)
{
	int64_t step = 1;
	for (uint32_t axis = rank; axis-- > 0; step *= a->extent[axis])
		if (a->extent[axis] > 1 && a->stride[axis] != step)
			return false;
	return true;
}

/* Whether what the kernel has bound, which lies at `at`, lies as it asks. */
static bool
is_aligned(const texo_kernel *k, const ImageBind *bind, const void *at, const ExprEnv *env)
{
	const Image *im = &k->program->image;
	if (!bind->group)
		return true;
	if ((uintptr_t)at % GROUP_BYTES)
		return false;
	if (bind->kind != IMG_BIND_PARAM && bind->kind != IMG_BIND_TENSOR)
		return true; /* no tensor's: one row, in the workspace */
	if (bind->group == IMG_ROW_MAJOR)
		return bind->kind == IMG_BIND_TENSOR || is_row_major(&k->frame.arg[bind->a], im->param[k->graph->param0 + bind->a].rank);
	if (bind->kind == IMG_BIND_TENSOR) {
		const ImageTensor *t = &im->tensor[k->graph->tensor0 + bind->a];
		return !t->rank || in_groups(expr_value(env, t->extent[t->rank - 1]), t->dtype);
	}
	const ImageParam *p = &im->param[k->graph->param0 + bind->a];
	const Arg *a = &k->frame.arg[bind->a];
	for (uint32_t axis = 0; axis + 1 < p->rank; axis++)
		if (a->extent[axis] > 1 && !in_groups(a->stride[axis], p->dtype))
			return false;
	return !p->rank || in_groups(a->extent[p->rank - 1], p->dtype);
}

static bool
runs_aligned(const texo_kernel *k, const ImageKernel *kernel, const ExprEnv *env)
{
	for (uint32_t b = 0; b < kernel->nbuffer; b++)
		if (!is_aligned(k, &k->program->image.bind[kernel->bind0 + b], k->frame.buffer[b], env))
			return false;
	return true;
}

/* --- which kernels run --- */

static void
fill(texo_kernel *k, uint32_t n, uint8_t *workspace)
{
	if (k->cuda->filled != n)
		frame_arguments(k, &k->program->image.kernel[k->graph->kernel0 + n], workspace, 1);
	k->cuda->filled = n;
}

/* How many tasks each kernel has; mostly the launch before had the same sizes. */
static void
count_tasks(texo_kernel *k, const ExprEnv *env)
{
	CudaKernel *x = k->cuda;
	if (x->turn == k->frame.turn)
		return;
	for (uint32_t n = 0; n < k->graph->nkernel; n++) {
		const ImageKernel *kernel = &k->program->image.kernel[k->graph->kernel0 + n];
		x->ntask[n] = expr_value(env, kernel->ntask);
		x->pitch[n] = kernel->nmap && x->ntask[n] > 0 ? expr_value(env, kernel->pitch) : 0;
	}
	x->turn = k->frame.turn;
}

/* Whether the kernel's buffers, and those of the one that runs after it, lie as they ask; *copies as for cuda_maps_suit. */
static bool
suits(texo_kernel *k, uint32_t n, const ExprEnv *env, uint8_t *workspace, bool *copies)
{
	const ImageKernel *kernel = &k->program->image.kernel[k->graph->kernel0 + n];
	fill(k, n, workspace);
	if (!runs_aligned(k, kernel, env) || !cuda_maps_suit(k, kernel, k->cuda->pitch[n], copies))
		return false;
	if (n + 1 == k->graph->nkernel || kernel[1].when != IMG_AFTER)
		return true;
	fill(k, n + 1, workspace);
	return runs_aligned(k, kernel + 1, env);
}

/* Whether kernel n is none of those that do the same as the ones before it. */
static bool
begins(const ImageKernel *kernel, uint32_t n)
{
	return kernel->when == IMG_ALWAYS || (kernel->when == IMG_ALIGNED && (n == 0 || (kernel[-1].when != IMG_ALIGNED && kernel[-1].when != IMG_AFTER)));
}

/* Which kernels run with these arguments: of those that do the same, the first that can, and then none that it covers. */
static texo_status
choose(texo_kernel *k, uint8_t *workspace)
{
	const Image *im = &k->program->image;
	const ImageKernel *kernel = &im->kernel[k->graph->kernel0];
	CudaKernel *x = k->cuda;
	ExprEnv env = frame_env(k);
	bool ran = false, copies;
	uint32_t covered = 0; /* before which none runs */
	count_tasks(k, &env);
	x->copies = false;
	x->filled = UINT32_MAX;
	for (uint32_t n = 0; n < k->graph->nkernel; n++, kernel++) {
		if (kernel->when == IMG_AFTER) {
			x->run[n] = x->run[n - 1] ? x->ntask[n] : 0;
			continue;
		}
		if (begins(kernel, n))
			ran = false;
		x->run[n] = ran || n < covered || x->ntask[n] < 0 ? 0 : x->ntask[n];
		if (x->run[n] >= MAX_TASKS)
			return rt_fail(TEXO_LIMIT, "a kernel has %lld tasks; %lld are possible", (long long)x->run[n],
			               (long long)MAX_TASKS);
		if (x->run[n] && kernel->when == IMG_ALIGNED) {
			if (!suits(k, n, &env, workspace, &copies))
				x->run[n] = 0;
			x->copies = x->copies || (x->run[n] && copies);
		}
		ran = ran || x->run[n] > 0;
		if (x->run[n] > 0 && kernel->covers)
			covered = n + 1 + kernel->covers;
	}
	return TEXO_OK;
}

/* --- launches --- */

/* What the kernel's tasks post to one another; its buffers are there. */
static texo_status
clear_posts(texo_kernel *k, const ImageKernel *kernel, void *stream)
{
	Cuda *c = k->program->rt->cuda;
	texo_status s = TEXO_OK;
	for (uint32_t b = 0; !s && b < kernel->nbuffer; b++) {
		uint64_t bytes = frame_cleared(k, &k->program->image.bind[kernel->bind0 + b]);
		if (bytes)
			s = cuda_result(c, c->driver.fill_bytes((uint64_t)(uintptr_t)k->frame.buffer[b], 0, bytes, stream), "clear what tasks post");
	}
	return s;
}

static int
put(const texo_kernel *k, const ImageKernel *kernel, void *function, Grid g, void *stream, void **parameter)
{
	enum { STREAM_SERIALIZATION = 6 };
	const Cuda *c = k->program->rt->cuda;
	CudaLaunchAttribute early = {.id = STREAM_SERIALIZATION, .value.number = 1};
	const CudaLaunch how = {{g.blocks, 1, 1}, {g.threads, 1, 1}, kernel->shared, stream, &early, 1};
	if (k->program->image.header->needs[0] >= IMAGE_CUDA_WAITS && c->driver.launch_how)
		return c->driver.launch_how(&how, function, parameter, NULL);
	return c->driver.launch(function, g.blocks, 1, 1, g.threads, 1, 1, kernel->shared, stream, parameter, NULL);
}

static texo_status
launch_kernel(texo_kernel *k, uint32_t n, uint8_t *workspace, void *stream)
{
	const ImageKernel *kernel = &k->program->image.kernel[k->graph->kernel0 + n];
	Cuda *c = k->program->rt->cuda;
	Frame *f = &k->frame;
	CudaKernel *x = k->cuda;
	int64_t ntask = x->run[n];
	uint64_t words = x->words + n * sizeof(CudaWords);
	uint32_t count = 0;
	fill(k, n, workspace);
	for (uint32_t b = 0; b < kernel->nbuffer; b++)
		x->parameter[count++] = &f->buffer[b];
	for (uint32_t a = 0; a < kernel->nscalar; a++)
		x->parameter[count++] = &f->scalar[a];
	x->parameter[count++] = &ntask;
	x->parameter[count++] = &words;
	for (uint32_t m = 0; m < kernel->nmap; m++)
		x->parameter[count++] = x->map + (size_t)m * CUDA_MAP_BYTES;
	texo_status s = cuda_maps_make(k, kernel, x->pitch[n], workspace, stream);
	if (!s)
		s = clear_posts(k, kernel, stream);
	Grid g = grid_for(c, kernel, ntask);
	void *function = x->code[n].function;
	if (s)
		return s;
	return cuda_result(c, put(k, kernel, function, g, stream, x->parameter), "launch a kernel");
}

/* The code of all kernels that run with these arguments; in the context. */
static texo_status
load_kernels(texo_kernel *k, uint8_t *workspace)
{
	texo_status s = cuda_rows_load(k);
	if (!s)
		s = choose(k, workspace);
	if (!s && k->cuda->copies)
		s = cuda_boxes_load(k);
	for (uint32_t n = 0; !s && n < k->graph->nkernel; n++)
		if (k->cuda->run[n] > 0)
			s = cuda_load_kernel(k, n);
	return s;
}

/* Its status words, which only kernels with accesses that may fail write. */
static texo_status
clear_status(texo_kernel *k, void *stream)
{
	Cuda *c = k->program->rt->cuda;
	size_t bytes = k->graph->nkernel * sizeof(CudaWords);
	return k->graph->naccess == 0 ? TEXO_OK
	                              : cuda_result(c, c->driver.fill_bytes(k->cuda->words, 0xff, bytes, stream), "clear a kernel's status");
}

texo_status
cuda_prepare(texo_kernel *k)
{
	Cuda *c = k->program->rt->cuda;
	if (k->graph->nkernel == 0)
		return TEXO_OK;
	texo_status s = cuda_enter(c);
	if (s)
		return s;
	k->cuda->launching = false;
	return cuda_leave(c, load_kernels(k, NULL));
}

texo_status
cuda_run(texo_kernel *k, void *workspace, void *stream)
{
	Cuda *c = k->program->rt->cuda;
	CudaKernel *x = k->cuda;
	if (k->graph->nkernel == 0)
		return TEXO_OK;
	texo_status s = cuda_enter(c);
	if (s)
		return s;
	x->launching = true;
	x->stream = stream;
	s = load_kernels(k, workspace);
	if (!s)
		s = clear_status(k, stream);
	x->launched = x->launched || !s;
	if (!s)
		s = cuda_rows_copy(k, workspace, false, stream);
	for (uint32_t n = 0; !s && n < k->graph->nkernel; n++)
		if (x->run[n] > 0)
			s = launch_kernel(k, n, workspace, stream);
	if (!s)
		s = cuda_rows_copy(k, workspace, true, stream);
	return cuda_leave(c, s);
}

/* The first kernel that met something counts, whichever task of it was the first. */
texo_status
cuda_fetch(texo_kernel *k)
{
	Cuda *c = k->program->rt->cuda;
	CudaKernel *x = k->cuda;
	k->frame.status[0] = k->frame.status[1] = 0;
	if (!x->launched)
		return TEXO_OK;
	texo_status s = cuda_enter(c);
	if (s)
		return s;
	s = cuda_result(c, c->driver.copy_out(x->met, x->words, k->graph->nkernel * sizeof *x->met), "copy a kernel's status");
	s = cuda_leave(c, s);
	for (uint32_t n = 0; !s && k->graph->naccess && n < k->graph->nkernel; n++)
		for (int w = 0; w < 2; w++)
			if (!k->frame.status[w] && x->met[n].word[w] != UINT64_MAX)
				k->frame.status[w] = (uint32_t)(x->met[n].word[w] & 0xffff);
	return s;
}
