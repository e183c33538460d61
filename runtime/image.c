/* image.c: opens an artefact. Everything in the file is taken to be hostile: first the header and its
 * sections, then every record that a graph can reach. Ranges are checked in 64 bits, so that no sum
 * of two 32-bit numbers wraps. */
#include <string.h>

#include "runtime/inside.h"

static texo_status
bad(const char *what)
{
	return rt_fail(TEXO_BAD_ARTEFACT, "not a usable artefact: %s", what);
}

/* --- sections --- */

static bool
section(const Image *im, uint64_t at, uint64_t n, size_t size, const void **out)
{
	uint64_t bytes = im->header->bytes;
	if (at % 8 || at < sizeof(ImageHeader) || at > bytes || n > (bytes - at) / size || n > UINT32_MAX)
		return false;
	*out = (const uint8_t *)im->bytes + at;
	return true;
}

#define SECTION(f, field) section(im, h->f.at, h->f.n, sizeof *im->field, (const void **)&im->field)

static bool
open_sections(Image *im)
{
	const ImageHeader *h = im->header;
	return SECTION(graph, graph) && SECTION(param, param) && SECTION(dim, dim) && SECTION(check, check) &&
	       SECTION(tensor, tensor) && SECTION(access, access) && SECTION(kernel, kernel) &&
	       SECTION(bind, bind) && SECTION(map, map) && SECTION(words, words) && SECTION(text, text) && SECTION(module, module) &&
	       SECTION(code, code) &&
	       h->text.n > 0 && im->text[h->text.n - 1] == 0;
}

static texo_status
open_header(Image *im, size_t n)
{
	const ImageHeader *h = im->bytes;
	if (n < sizeof *h || memcmp(h->magic, IMAGE_MAGIC, sizeof h->magic) != 0)
		return bad("it doesn't begin as one");
	if (h->version != IMAGE_VERSION)
		return rt_fail(TEXO_BAD_ARTEFACT, "the artefact has format %u; this runtime reads format %d",
		               h->version, IMAGE_VERSION);
	if (h->target != IMG_TARGET_CPU && h->target != IMG_TARGET_CUDA)
		return bad("it is for an unknown kind of device");
	if (h->bytes != n)
		return bad("its length is not what it says");
	size_t from = offsetof(ImageHeader, digest) + sizeof h->digest;
	if (h->digest != image_digest((const uint8_t *)im->bytes + from, n - from))
		return bad("it is damaged");
	im->header = h;
	return open_sections(im) ? TEXO_OK : bad("a section lies outside");
}

/* --- one graph --- */

typedef struct {
	Image *im;
	const ImageGraph *g;
	ExprScope scope;
} GraphCheck;

static bool
range_ok(uint32_t first, uint32_t n, uint64_t total)
{
	return (uint64_t)first + n <= total;
}

static bool
text_ok(const GraphCheck *c, uint64_t at)
{
	return at < c->im->header->text.n;
}

static bool
expr_ok(const GraphCheck *c, uint32_t first)
{
	return expr_check(c->im->words, c->im->header->words.n, first, &c->scope, &c->im->stack);
}

static bool
shape_ok(const GraphCheck *c, uint32_t dtype, uint32_t rank, const uint32_t *extent)
{
	if (!element_of(dtype) || rank > IMAGE_MAX_RANK)
		return false;
	for (uint32_t k = 0; k < rank; k++)
		if (!expr_ok(c, extent[k]))
			return false;
	return true;
}

static bool
params_ok(const GraphCheck *c)
{
	for (uint32_t k = 0; k < c->g->nparam; k++) {
		const ImageParam *p = &c->scope.param[k];
		if (!text_ok(c, p->name) || p->kind > IMG_RESULT || (p->kind == IMG_SCALAR && p->rank) ||
		    p->unit > (p->rank > 0) ||
		    !shape_ok(c, p->dtype, p->rank, p->extent))
			return false;
	}
	return true;
}

/* Whether the dim's source is an axis of a tensor, an integer scalar, or a fixed value. */
static bool
dim_ok(const GraphCheck *c, const ImageDim *d)
{
	if (!text_ok(c, d->name))
		return false;
	if (d->param < 0)
		return d->param == -1 && d->turn == 0 && d->axis > GPU_FACT_AXIS - GPU_FACTS;
	if ((uint32_t)d->param >= c->g->nparam || (d->scale == 0) != (d->turn != 0) || d->turn > c->g->ndim ||
	    (d->turn && d->axis < 0))
		return false;
	const ImageParam *p = &c->scope.param[d->param];
	if (d->axis == -1)
		return p->kind == IMG_SCALAR && element_of(p->dtype)->is_int;
	return p->kind != IMG_SCALAR && d->axis >= 0 && (uint32_t)d->axis < p->rank;
}

static bool
checks_ok(const GraphCheck *c)
{
	const ImageCheck *check = c->im->check + c->g->check0;
	for (uint32_t k = 0; k < c->g->ncheck; k++)
		if (!expr_ok(c, check[k].cond) || !text_ok(c, check[k].text))
			return false;
	return true;
}

/* Each shares those before it alone; then what is left may share them all. */
static bool
shared_ok(GraphCheck *c)
{
	if (!range_ok(c->g->shared0, c->g->nshared, c->im->header->words.n))
		return false;
	for (; c->scope.nshared < c->g->nshared; c->scope.nshared++)
		if (!expr_ok(c, c->im->words[c->g->shared0 + c->scope.nshared]))
			return false;
	return true;
}

static bool
lists_ok(const GraphCheck *c)
{
	const Image *im = c->im;
	const ImageGraph *g = c->g;
	for (uint32_t k = 0; k < g->ndim; k++)
		if (!dim_ok(c, &im->dim[g->dim0 + k]))
			return false;
	for (uint32_t k = 0; k < g->ntensor; k++) {
		const ImageTensor *t = &im->tensor[g->tensor0 + k];
		if (!shape_ok(c, t->dtype, t->rank, t->extent))
			return false;
	}
	for (uint32_t k = 0; k < g->naccess; k++)
		if (!text_ok(c, im->access[g->access0 + k].text))
			return false;
	return true;
}

static bool
is_tensor_param(const GraphCheck *c, uint32_t k)
{
	return k < c->g->nparam && c->scope.param[k].kind != IMG_SCALAR;
}

static bool
bind_ok(const GraphCheck *c, const ImageBind *b, bool buffer)
{
	if (b->group >= IMG_GROUP_KINDS)
		return false;
	switch (b->kind) {
	case IMG_BIND_PARAM:
		return buffer && is_tensor_param(c, b->a);
	case IMG_BIND_TENSOR:
		return buffer && b->a < c->g->ntensor;
	case IMG_BIND_SCRATCH:
	case IMG_BIND_SHARED:
		return buffer && c->im->header->target == IMG_TARGET_CPU && expr_ok(c, b->a) && element_of(b->b);
	case IMG_BIND_CLEARED:
	case IMG_BIND_PASSED:
		return buffer && c->im->header->target == IMG_TARGET_CUDA && expr_ok(c, b->a) && element_of(b->b);
	case IMG_BIND_EXPR:
		return !buffer && expr_ok(c, b->a);
	case IMG_BIND_SCALAR:
		return !buffer && b->a < c->g->nparam && !is_tensor_param(c, b->a);
	case IMG_BIND_STRIDE:
		return !buffer && is_tensor_param(c, b->a) && b->b < c->scope.param[b->a].rank;
	default:
		return false;
	}
}

static bool
map_ok(const ImageKernel *k, const ImageMap *m)
{
	if (m->buffer >= k->nbuffer || m->rank < 2 || m->rank > IMAGE_MAP_RANK || !element_of(m->dtype) ||
	    element_of(m->dtype)->bits < 4 || element_of(m->dtype)->bits > 16 || m->thirds > 1 || m->rank + m->thirds > IMAGE_MAP_RANK)
		return false;
	if (m->thirds && element_of(m->dtype)->dl.code != kDLBfloat)
		return false;
	for (uint32_t a = 0; a < m->rank; a++) {
		const int64_t number[] = {m->extent[a], m->stride[a], m->box[a], m->step[a]};
		for (unsigned n = 0; n < sizeof number / sizeof *number; n++)
			if (-1 - number[n] >= (int64_t)k->nscalar)
				return false;
	}
	return true;
}

static bool
maps_ok(const GraphCheck *c, const ImageKernel *k)
{
	if (!range_ok(k->map0, k->nmap, c->im->header->map.n) || k->nmap > IMAGE_CUDA_MAX_MAPS || k->shared > IMAGE_CUDA_MAX_SHARED)
		return false;
	if (k->resident > IMAGE_CUDA_MAX_RESIDENT || (k->nmap && !k->cluster && k->resident == 0))
		return false;
	for (uint32_t n = 0; n < k->nmap; n++)
		if (!map_ok(k, &c->im->map[k->map0 + n]))
			return false;
	return true;
}

static bool
kernel_ok(const GraphCheck *c, const ImageKernel *k)
{
	uint64_t n = (uint64_t)k->nbuffer + k->nscalar;
	if (!text_ok(c, k->name) || !text_ok(c, k->template_name) || !text_ok(c, k->entry) ||
	    !expr_ok(c, k->ntask) || !expr_ok(c, k->grain) || !expr_ok(c, k->ahead) || !expr_ok(c, k->pitch) || k->bind0 + n > c->im->header->bind.n)
		return false;
	if (c->im->header->target == IMG_TARGET_CUDA && n > IMAGE_CUDA_MAX_ARGUMENTS)
		return false;
	if (k->when > IMG_AFTER || k->threads > IMAGE_CUDA_MAX_THREADS || k->cluster > IMAGE_CUDA_MAX_CLUSTER)
		return false;
	if (!maps_ok(c, k))
		return false;
	for (uint64_t b = 0; b < n; b++)
		if (!bind_ok(c, &c->im->bind[k->bind0 + b], b < k->nbuffer))
			return false;
	return true;
}

static bool
graph_ok(Image *im, const ImageGraph *g)
{
	const ImageHeader *h = im->header;
	if (!range_ok(g->param0, g->nparam, h->param.n) || !range_ok(g->dim0, g->ndim, h->dim.n) ||
	    !range_ok(g->check0, g->ncheck, h->check.n) || !range_ok(g->tensor0, g->ntensor, h->tensor.n) ||
	    !range_ok(g->access0, g->naccess, h->access.n) || !range_ok(g->kernel0, g->nkernel, h->kernel.n))
		return false;
	GraphCheck c = {im, g, {im->param + g->param0, g->nparam, g->ndim, 0}};
	if (!text_ok(&c, g->name) || !text_ok(&c, g->signature) || !params_ok(&c) || !checks_ok(&c) || !shared_ok(&c) || !lists_ok(&c))
		return false;
	for (uint32_t k = 0; k < g->nkernel; k++)
		if (!kernel_ok(&c, &im->kernel[g->kernel0 + k]) || (k == 0 && im->kernel[g->kernel0].when == IMG_AFTER) || im->kernel[g->kernel0 + k].covers >= g->nkernel - k)
			return false;
	return true;
}

/* --- modules --- */

static bool
modules_ok(const Image *im)
{
	const ImageHeader *h = im->header;
	for (uint64_t k = 0; k < h->module.n; k++) {
		const ImageModule *m = &im->module[k];
		if (m->kernel >= h->kernel.n || m->form > IMG_TIR || m->at > h->code.n || m->n > h->code.n - m->at || m->n == 0 ||
		    (m->form != IMG_CUBIN && im->code[m->at + m->n - 1] != 0))
			return false;
	}
	return true;
}

texo_status
image_read(Image *im, size_t n)
{
	texo_status s = open_header(im, n);
	if (s)
		return s;
	if (im->header->graph.n == 0)
		return bad("it has no graph");
	im->stack = 1;
	for (uint64_t k = 0; k < im->header->graph.n; k++)
		if (!graph_ok(im, &im->graph[k]))
			return bad("a record of its tables is out of range");
	if (im->stack > im->header->stack)
		return bad("a launch expression is deeper than it says");
	return modules_ok(im) ? TEXO_OK : bad("a module is no code for a GPU");
}

texo_status
image_open(Image *im, size_t n)
{
	texo_status s = image_read(im, n);
	if (s)
		return s;
	if (im->header->target != IMG_TARGET_CPU)
		return bad("it is for another kind of device");
	const uint64_t *needs = im->header->needs;
	const char *feature = needs[1] ? "a processor feature that this runtime doesn't know" : cpu_lacks(needs[0]);
	if (feature)
		return rt_fail(TEXO_BAD_ARTEFACT, "the artefact needs %s, which this processor lacks", feature);
	return TEXO_OK;
}

texo_status
image_open_cuda(Image *im, size_t n)
{
	texo_status s = image_read(im, n);
	if (s)
		return s;
	const ImageHeader *h = im->header;
	if (h->target != IMG_TARGET_CUDA)
		return bad("it is for another kind of device");
	return h->needs[0] > 1000 || h->needs[1] > 1 ? bad("it is for no GPU") : TEXO_OK;
}
