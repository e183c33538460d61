/* cuda_fixture.c: see cuda_fixture.h. */
#include "tests/runtime/cuda_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *image, *portable, *host_image, *rows_image, *assembled;
size_t image_size, portable_size, host_size, assembled_size;
texo_rt *host_rt;

/* --- what the fake runs --- */

typedef struct {
	Image image;
	Code code;
} HostCode;

static HostCode host;

static uint32_t
least(uint64_t *word, uint32_t status)
{
	if (status && status < *word)
		*word = status; /* task 0 */
	return status;
}

/* The runtime's own copies, from their parameters alone. */
static void
copy_rows(size_t bytes, void *const *parameter)
{
	uint64_t to, from, count, axis[IMAGE_MAX_RANK][3];
	memcpy(&to, parameter[0], 8);
	memcpy(&from, parameter[1], 8);
	memcpy(&count, parameter[2], 8);
	memcpy(axis, parameter[3], sizeof axis);
	for (uint64_t t = 0; t < count; t++) {
		uint64_t n = t, a = to, b = from;
		for (int k = 0; k < IMAGE_MAX_RANK; k++) {
			a += n % axis[k][0] * axis[k][1];
			b += n % axis[k][0] * axis[k][2];
			n /= axis[k][0];
		}
		memcpy((void *)(uintptr_t)a, (const void *)(uintptr_t)b, bytes);
	}
	fake->copies++;
}

/* "first_0_1": kernel 1 of graph first. */
static void
run_on_host(void *user, const char *name, void *const *parameter)
{
	const HostCode *h = user;
	const Image *im = &h->image;
	uint32_t status[2] = {0, 0};
	size_t n = strcspn(name, "_");
	if (strncmp(name, "texo_rows_", 10) == 0) {
		copy_rows(strtoul(name + 10, NULL, 10), parameter);
		return;
	}
	for (uint64_t g = 0; g < im->header->graph.n; g++) {
		const char *graph = im->text + im->graph[g].name;
		if (strlen(graph) != n || memcmp(graph, name, n) != 0)
			continue;
		const ImageKernel *k = &im->kernel[im->graph[g].kernel0 + strtoul(strrchr(name, '_') + 1, NULL, 10)];
		void *buffer[16];
		uint64_t scalar[16], words;
		int64_t ntask;
		for (uint32_t b = 0; b < k->nbuffer; b++)
			memcpy(&buffer[b], *parameter++, 8);
		for (uint32_t s = 0; s < k->nscalar; s++)
			memcpy(&scalar[s], *parameter++, 8);
		memcpy(&ntask, *parameter++, 8);
		memcpy(&words, *parameter, 8);
		code_symbol(&h->code, im->text + k->entry)(buffer, scalar, 0, ntask, status);
		least((uint64_t *)(uintptr_t)words, status[0]);
		least((uint64_t *)(uintptr_t)words + 1, status[1]);
		return;
	}
	fail_msg("the driver was asked for %s", name);
}

void
fake_reset(void)
{
	fake_clear();
	fake->run = run_on_host;
	fake->user = &host;
}

/* --- a launch of `first` from beginning to end --- */


static size_t
bytes_of(const DLTensor *t)
{
	size_t n = t->dtype.bits / 8u;
	for (int32_t k = 0; k < t->ndim; k++)
		n *= (size_t)t->shape[k];
	return n;
}

texo_status
whole_start(Whole *w, const texo_rt_options *o)
{
	texo_status s = texo_rt_create(o, &w->rt);
	if (!s)
		s = texo_rt_load(w->rt, w->image ? w->image : image, w->image == assembled ? assembled_size : image_size, &w->program);
	return s ? s : texo_program_get_kernel(w->program, "first", &w->kernel);
}

texo_status
whole_move_in(Whole *w)
{
	texo_status s = TEXO_OK;
	size_t bytes = 0;
	for (int t = 0; !s && t < TENSORS; t++) {
		DLTensor *x = &w->f.tensor[t];
		s = cuda_memory_alloc(w->rt, bytes_of(x), &w->memory[t]);
		if (!s)
			s = cuda_copy_in(w->rt, w->memory[t], x->data, bytes_of(x));
		x->device = (DLDevice){kDLCUDA, 0};
		x->data = w->memory[t];
	}
	if (!s)
		s = texo_kernel_prepare(w->kernel, w->f.arg, FIRST_ARGS);
	if (!s)
		s = texo_kernel_workspace(w->kernel, w->f.arg, FIRST_ARGS, &bytes);
	return s ? s : cuda_memory_alloc(w->rt, bytes, &w->workspace);
}

texo_status
whole_run(Whole *w)
{
	texo_status s = texo_kernel_launch(w->kernel, w->f.arg, FIRST_ARGS, w->workspace, w->stream);
	if (!s)
		s = cuda_wait(w->rt, w->stream);
	w->fault = (texo_fault){.struct_size = sizeof w->fault};
	if (!s)
		s = texo_kernel_status(w->kernel, &w->fault);
	if (!s)
		s = cuda_copy_out(w->rt, w->f.acc, w->memory[3], sizeof w->f.acc);
	return s ? s : cuda_copy_out(w->rt, w->f.y, w->memory[4], sizeof w->f.y);
}

void
whole_end(Whole *w)
{
	for (int t = 0; w->rt && t < TENSORS; t++)
		cuda_memory_free(w->rt, w->memory[t]);
	if (w->rt)
		cuda_memory_free(w->rt, w->workspace);
	texo_program_destroy(w->program);
	texo_rt_destroy(w->rt);
}

texo_status
whole_launch(Whole *w, const texo_rt_options *o)
{
	texo_status s = whole_start(w, o);
	if (!s)
		s = whole_move_in(w);
	return s ? s : whole_run(w);
}

texo_rt_options
cuda_options(void)
{
	texo_rt_options o = TEXO_INIT(texo_rt_options);
	o.device = "cuda";
	return o;
}

void
results_are_right(const Whole *w)
{
	First want;
	texo_program *p;
	texo_kernel *k;
	first_init(&want);
	assert_int_equal(texo_rt_load(host_rt, host_image, host_size, &p), TEXO_OK);
	assert_int_equal(texo_program_get_kernel(p, "first", &k), TEXO_OK);
	assert_int_equal(texo_kernel_launch(k, want.arg, FIRST_ARGS, want.workspace, NULL), TEXO_OK);
	assert_memory_equal(w->f.y, want.y, sizeof want.y);
	assert_memory_equal(w->f.acc, want.acc, sizeof want.acc);
	texo_program_destroy(p);
}

void
image_seal(void *copy)
{
	ImageHeader *h = copy;
	size_t from = offsetof(ImageHeader, digest) + sizeof h->digest;
	h->digest = image_digest((const uint8_t *)copy + from, h->bytes - from);
}

/* An artefact whose kernels take the rows of x, acc and y to be contiguous. */
void *
image_of_rows(void)
{
	char *copy = malloc(image_size);
	assert_non_null(copy);
	memcpy(copy, image, image_size);
	ImageHeader *h = (ImageHeader *)(void *)copy;
	ImageParam *p = (ImageParam *)(void *)(copy + h->param.at);
	p[0].unit = p[5].unit = p[6].unit = 1;
	image_seal(copy);
	return copy;
}

/* --- rows that lie otherwise --- */

/* x and y lie column by column, acc backwards. */
void
strided_init(Whole *w, int64_t *columns, int64_t *backwards)
{
	float x[12];
	first_init(&w->f);
	memcpy(x, w->f.x, sizeof x);
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 3; j++)
			w->f.x[i + 4 * j] = x[i * 3 + j];
	float acc[9];
	memcpy(acc, w->f.acc, sizeof acc);
	for (int i = 0; i < 9; i++)
		w->f.acc[8 - i] = acc[i];
	columns[0] = 1, columns[1] = 4;
	*backwards = -1;
	w->f.tensor[0].strides = w->f.tensor[4].strides = columns;
	w->f.tensor[3].strides = backwards;
	w->f.tensor[3].byte_offset = 8 * sizeof(float);
}

void
strided_results(Whole *w)
{
	float y[12], acc[9];
	memcpy(y, w->f.y, sizeof y);
	memcpy(acc, w->f.acc, sizeof acc);
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 3; j++)
			w->f.y[i * 3 + j] = y[i + 4 * j];
	for (int i = 0; i < 9; i++)
		w->f.acc[8 - i] = acc[i];
	results_are_right(w);
}

/* --- the beginning of all tests --- */

int
set_up(void **state)
{
	(void)state;
	fake_reset();
	return 0;
}

int
open_fake(void)
{
	if (!fake_find())
		return 1;
	image = fixture_image_without_scratch("sm_90a", &image_size);
	portable = fixture_image_without_scratch("sm_80", &portable_size);
	host_image = fixture_image_without_scratch("x86-64-v3", &host_size);
	assembled = fixture_image_assembled("sm_90a", &assembled_size);
	rows_image = image_of_rows();
	host.image.bytes = host_image;
	return texo_rt_create(NULL, &host_rt) || image_read(&host.image, host_size) ||
	       code_load(host_rt, host.image.code, (size_t)host.image.header->code.n, &host.code);
}
