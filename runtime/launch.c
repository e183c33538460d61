/* launch.c: runs a graph's kernels, one after another, each on as many threads as it has work for. The
 * floating-point environment is the default one while they run (nearest even, subnormals kept),
 * whatever the caller or the host's threads have set, so that results have the same bits. */
#include <string.h>
#include <xmmintrin.h>

#include "runtime/inside.h"
#include "ir/bugs.h"

enum { MXCSR_DEFAULT = 0x1f80 };

static int64_t
larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* --- calls --- */

/* A kernel's tasks, cut into calls that places take as they come free. */
typedef struct {
	ImageCpuKernel *entry;
	const Frame *frame;
	int64_t ntask, grain, ahead; /* ahead: the tasks that are finished before any other begins */
	uint32_t places;
	atomic_int_fast64_t next;    /* the first task that no call has */
	atomic_int_fast64_t done;    /* of those ahead */
} KernelRun;

/* A call takes its place's share of so many parts of what is left, so that calls get shorter, and all threads
 * end together; but not less than a grain or the least share. */
enum { PARTS = 4, LEAST_SHARE = 32 };

/* As many places as calls of a grain can keep busy. */
static KernelRun
split_tasks(texo_kernel *k, uint32_t n)
{
	const ImageKernel *kernel = &k->program->image.kernel[k->graph->kernel0 + n];
	Frame *f = &k->frame;
	ExprEnv env = frame_env(k);
	KernelRun x = {.entry = k->entry[n], .frame = f, .ntask = expr_value(&env, kernel->ntask), .places = 1};
	x.grain = x.ntask; /* one call, if there is nobody to share with */
	uint32_t places = k->program->rt->calls;
	int64_t ahead = expr_value(&env, kernel->ahead), tasks = x.ntask - ahead;
	int64_t grain = larger(expr_value(&env, kernel->grain), 1), most = tasks / grain;
	if (kernel->serial || most < 2 || places < 2)
		return x;
	x.places = most < places ? (uint32_t)most : places;
	x.grain = larger(grain, tasks / ((int64_t)x.places * LEAST_SHARE));
	x.ahead = ahead;
	return x;
}

/* The tasks of the next call; false when none are left. A rest that is no grain goes with the call before it. */
static bool
take_call(KernelRun *x, int64_t *lo, int64_t *hi)
{
	int64_t at = atomic_load_explicit(&x->next, memory_order_relaxed), n;
	do {
		int64_t left = (at < x->ahead ? x->ahead : x->ntask) - at, grain = at < x->ahead ? 1 : x->grain;
		if (left <= 0 || (left < grain && BUG(tasks_left_over)))
			return false;
		n = larger(left / ((int64_t)x->places * PARTS), grain);
		if (left - n < grain && !BUG(tasks_left_over))
			n = left;
	} while (!atomic_compare_exchange_weak_explicit(&x->next, &at, at + n, memory_order_relaxed, memory_order_relaxed));
	*lo = at;
	*hi = at + n;
	return true;
}

/* Waits for the tasks ahead. Each that is not done is in a call that some thread runs. */
static void
wait_for_ahead(KernelRun *x)
{
	enum { LOOKS = 4000 }; /* before other threads get the processor */
	for (unsigned k = 0; atomic_load_explicit(&x->done, memory_order_acquire) < x->ahead; k++)
		if (k < LOOKS)
			_mm_pause();
		else
			pool_yield();
}

/* Runs calls until none is left. Each has its own words; a place takes calls in ascending order, so
 * the first that it keeps is its earliest. */
static void
run_calls(void *arg, uint32_t place)
{
	KernelRun *x = arg;
	PlaceStatus *c = &x->frame->place[place];
	void *const *buffer = x->frame->buffer + (size_t)place * x->frame->nbuffer;
	unsigned csr = _mm_getcsr();
	_mm_setcsr(MXCSR_DEFAULT);
	for (int64_t lo, hi; take_call(x, &lo, &hi);) {
		uint32_t status[2] = {0, 0};
		if (lo >= x->ahead && !BUG(tasks_ahead_not_awaited))
			wait_for_ahead(x);
		x->entry(buffer, x->frame->scalar, lo, hi, status);
		if (hi <= x->ahead)
			atomic_fetch_add_explicit(&x->done, hi - lo, memory_order_release);
		for (int s = 0; s < 2; s++)
			if (status[s] && (!c->status[s] || BUG(fault_of_last_call))) {
				c->status[s] = status[s];
				c->at[s] = lo;
			}
	}
	_mm_setcsr(csr);
}

/* Joins the words of a kernel's calls to those of the kernels before: the first in task order counts,
 * whichever thread met it. */
static void
join_status(Frame *f, uint32_t places)
{
	for (int s = 0; s < 2; s++) {
		const PlaceStatus *first = NULL;
		for (uint32_t p = 0; p < places; p++)
			if (f->place[p].status[s] && (!first || f->place[p].at[s] < first->at[s]))
				first = &f->place[p];
		if (first && !f->status[s])
			f->status[s] = first->status[s];
	}
}

void
run_places(Rt *rt, uint32_t n, PoolBody *body, void *arg)
{
	if (n == 1)
		body(arg, 0);
	else if (rt->parallel_for)
		rt->parallel_for(rt->parallel_user, n, body, arg);
	else
		pool_run(&rt->pool, n, body, arg);
}

static void
run_kernel(texo_kernel *k, uint32_t n, uint8_t *workspace)
{
	KernelRun x = split_tasks(k, n);
	if (x.ntask <= 0)
		return;
	frame_arguments(k, &k->program->image.kernel[k->graph->kernel0 + n], workspace, x.places);
	memset(k->frame.place, 0, x.places * sizeof *k->frame.place);
	run_places(k->program->rt, x.places, run_calls, &x);
	join_status(&k->frame, x.places);
}

/* --- launches --- */

static const ImageAccess *
access_of(const texo_kernel *k, uint32_t id)
{
	return id && id <= k->graph->naccess ? &k->program->image.access[k->graph->access0 + id - 1] : NULL;
}

static texo_status
finish(texo_kernel *k)
{
	const char *text = k->program->image.text;
	if (!k->frame.status[0])
		return TEXO_OK;
	const ImageAccess *a = access_of(k, k->frame.status[0]);
	if (!a)
		return rt_fail(TEXO_FAULT, "an access went outside");
	return rt_fail(TEXO_FAULT, "%u:%u: the access %s went outside", a->line, a->col, text + a->text);
}

static texo_status
check_workspace(const texo_kernel *k, const void *workspace)
{
	const Frame *f = &k->frame;
	uintptr_t lo = (uintptr_t)workspace, hi = lo + (uintptr_t)f->workspace;
	if (f->workspace == 0)
		return TEXO_OK;
	if (!workspace)
		return rt_fail(TEXO_INVALID, "the workspace is NULL, and %llu bytes are needed",
		               (unsigned long long)f->workspace);
	if (lo % 64 || hi < lo)
		return rt_fail(TEXO_INVALID, "the workspace is not aligned to 64 bytes");
	const ImageParam *param = k->program->image.param + k->graph->param0;
	for (uint32_t p = 0; p < k->graph->nparam; p++)
		if (param[p].kind != IMG_SCALAR && f->arg[p].lo < hi && lo < f->arg[p].hi)
			return rt_fail(TEXO_INVALID, "argument %s shares memory with the workspace",
			               k->program->image.text + param[p].name);
	return TEXO_OK;
}

/* Whether nothing that the caller sees is computed: results without elements, and no access that could fail. There may
 * be more rows than a life has time for, each of nothing. */
static bool
writes_nothing(const texo_kernel *k)
{
	const ImageParam *param = k->program->image.param + k->graph->param0;
	for (uint32_t p = 0; p < k->graph->nparam; p++)
		if ((param[p].kind == IMG_INOUT || param[p].kind == IMG_RESULT) && k->frame.arg[p].count > 0)
			return false;
	return k->graph->naccess == 0;
}

texo_status
frame_run(texo_kernel *k, void *workspace)
{
	texo_status s = check_workspace(k, workspace);
	if (s)
		return s;
	k->frame.status[0] = k->frame.status[1] = 0;
	if (writes_nothing(k))
		return TEXO_OK;
	aside_copy(k, workspace, false);
	for (uint32_t n = 0; n < k->graph->nkernel; n++)
		run_kernel(k, n, workspace);
	aside_copy(k, workspace, true);
	return finish(k);
}

texo_status
texo_kernel_launch(texo_kernel *k, const texo_arg *args, size_t n, void *workspace, void *stream)
{
	if (!k)
		return rt_fail(TEXO_INVALID, "k is NULL");
	if (!k->program)
		return kernel_gone();
	const Device *device = k->program->rt->device;
	if (stream && !device)
		return rt_fail(TEXO_INVALID, "the stream must be NULL on the CPU");
	pthread_mutex_lock(&k->lock);
	texo_status s = frame_fill(k, args, n, true);
	if (!s && device)
		s = check_workspace(k, workspace);
	if (!s)
		s = device ? device->run(k, workspace, stream) : frame_run(k, workspace);
	pthread_mutex_unlock(&k->lock);
	return s;
}

texo_status
texo_kernel_prepare(texo_kernel *k, const texo_arg *args, size_t n)
{
	if (!k)
		return rt_fail(TEXO_INVALID, "k is NULL");
	if (!k->program)
		return kernel_gone();
	Rt *rt = k->program->rt;
	uint32_t places = 1;
	pthread_mutex_lock(&k->lock);
	texo_status s = frame_fill(k, args, n, false);
	if (!s && rt->device)
		s = rt->device->prepare(k);
	for (uint32_t i = 0; !s && !rt->device && i < k->graph->nkernel; i++) {
		KernelRun x = split_tasks(k, i);
		places = x.places > places ? x.places : places;
	}
	pthread_mutex_unlock(&k->lock);
	if (places > 1 && !rt->parallel_for)
		pool_start(&rt->pool);
	return s;
}

texo_status
texo_kernel_workspace(texo_kernel *k, const texo_arg *args, size_t n, size_t *bytes)
{
	if (!bytes)
		return rt_fail(TEXO_INVALID, "bytes is NULL");
	*bytes = 0;
	if (!k)
		return rt_fail(TEXO_INVALID, "k is NULL");
	if (!k->program)
		return kernel_gone();
	pthread_mutex_lock(&k->lock);
	texo_status s = frame_fill(k, args, n, false);
	if (!s)
		*bytes = (size_t)k->frame.workspace;
	pthread_mutex_unlock(&k->lock);
	return s;
}

texo_status
texo_kernel_status(texo_kernel *k, texo_fault *out)
{
	if (!k || !out)
		return rt_fail(TEXO_INVALID, "%s is NULL", k ? "out" : "k");
	if (out->struct_size < sizeof *out)
		return rt_fail(TEXO_INVALID, "out: struct_size is %u, %zu is expected", out->struct_size, sizeof *out);
	if (!k->program)
		return kernel_gone();
	const Device *device = k->program->rt->device;
	pthread_mutex_lock(&k->lock);
	texo_status s = device ? device->fetch(k) : TEXO_OK;
	const uint32_t *status = k->frame.status;
	const ImageAccess *a = access_of(k, status[0] ? status[0] : status[1]);
	if (!s)
		*out = (texo_fault){out->struct_size, status[0] != 0, status[1] != 0, a ? a->line : 0, a ? a->col : 0,
		                    a ? k->program->image.text + a->text : ""};
	pthread_mutex_unlock(&k->lock);
	return s;
}
