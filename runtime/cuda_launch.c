/* cuda_launch.c: launches on a GPU: a graph's kernels one after another on the caller's stream. Nothing
 * is allocated and nothing waited for; what the kernels met is fetched when someone asks. */
#include "runtime/cuda.h"
#include "runtime/cuda_program.h"

enum { WARP = 32, BLOCKS_A_PROCESSOR = 64 };

static const int64_t MAX_TASKS = INT64_C(1) << 47; /* a status word has 48 bits for the task, and all ones */

typedef struct {
	unsigned blocks, threads;
} Grid;

/* A thread a task, in blocks as large as keep all processors busy, until there are enough of them for
 * each thread to take several. */
static Grid
grid_for(const Cuda *c, const ImageKernel *kernel, int64_t ntask)
{
	Grid g = {1, 1};
	if (kernel->serial)
		return g;
	int64_t processors = c->processors > 0 ? c->processors : 1;
	g.threads = IMAGE_CUDA_BLOCK;
	while (g.threads > WARP && ntask < processors * g.threads)
		g.threads /= 2;
	int64_t blocks = (ntask - 1) / g.threads + 1, most = processors * BLOCKS_A_PROCESSOR;
	g.blocks = (unsigned)(blocks < most ? blocks : most);
	return g;
}

static texo_status
launch_kernel(texo_kernel *k, uint32_t n, uint8_t *workspace, void *stream)
{
	const ImageKernel *kernel = &k->program->image.kernel[k->graph->kernel0 + n];
	Cuda *c = k->program->rt->cuda;
	Frame *f = &k->frame;
	CudaKernel *x = k->cuda;
	ExprEnv env = {k->program->image.words, f->dim, f->param, f->stack};
	int64_t ntask = expr_value(&env, kernel->ntask);
	uint64_t words = x->words + n * sizeof(CudaWords);
	uint32_t count = 0;
	if (ntask <= 0)
		return TEXO_OK;
	if (ntask >= MAX_TASKS)
		return rt_fail(TEXO_LIMIT, "a kernel has %lld tasks; %lld are possible", (long long)ntask, (long long)MAX_TASKS);
	frame_arguments(k, kernel, workspace, 1);
	for (uint32_t b = 0; b < kernel->nbuffer; b++)
		x->parameter[count++] = &f->buffer[b];
	for (uint32_t s = 0; s < kernel->nscalar; s++)
		x->parameter[count++] = &f->scalar[s];
	x->parameter[count++] = &ntask;
	x->parameter[count] = &words;
	Grid g = grid_for(c, kernel, ntask);
	return cuda_result(c, c->driver.launch(x->function[n], g.blocks, 1, 1, g.threads, 1, 1, 0, stream, x->parameter, NULL),
	                   "launch a kernel");
}

/* Copying to rows and back is not built: kernels take the last axis of these to be in a row. */
static texo_status
check_rows(const texo_kernel *k)
{
	const ImageParam *param = k->program->image.param + k->graph->param0;
	for (uint32_t p = 0; p < k->graph->nparam; p++)
		if (param[p].kind != IMG_SCALAR && aside_needed(&k->frame.arg[p], &param[p]))
			return rt_fail(TEXO_NOT_BUILT, "argument %s: a last axis with another stride than 1 is not built yet for CUDA",
			               k->program->image.text + param[p].name);
	return TEXO_OK;
}

texo_status
cuda_run(texo_kernel *k, void *workspace, void *stream)
{
	Cuda *c = k->program->rt->cuda;
	CudaKernel *x = k->cuda;
	texo_status s = check_rows(k);
	if (s || k->graph->nkernel == 0 || (s = cuda_enter(c)))
		return s;
	size_t bytes = k->graph->nkernel * sizeof(CudaWords);
	s = cuda_result(c, c->driver.fill_bytes(x->words, 0xff, bytes, stream), "clear a kernel's status");
	x->launched = x->launched || !s;
	for (uint32_t n = 0; !s && n < k->graph->nkernel; n++)
		s = launch_kernel(k, n, workspace, stream);
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
	for (uint32_t n = 0; !s && n < k->graph->nkernel; n++)
		for (int w = 0; w < 2; w++)
			if (!k->frame.status[w] && x->met[n].word[w] != UINT64_MAX)
				k->frame.status[w] = (uint32_t)(x->met[n].word[w] & 0xffff);
	return s;
}
