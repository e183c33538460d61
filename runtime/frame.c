/* frame.c: where a launch keeps what it works with. All of it lies in one block, whose size depends on
 * the tables alone, so that a launch never allocates. */
#include "runtime/inside.h"

/* A block that is handed out piece by piece, or with at NULL only measured. */
typedef struct {
	uint8_t *at;
	size_t used;
} Block;

static void *
piece(Block *b, size_t count, size_t size)
{
	void *p = b->at ? b->at + b->used : NULL;
	b->used += (count * size + FRAME_ALIGN - 1) / FRAME_ALIGN * FRAME_ALIGN;
	return p;
}

/* The most buffers (or scalars) a kernel of g has. */
static uint32_t
most(const Image *im, const ImageGraph *g, bool buffers)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < g->nkernel; k++) {
		const ImageKernel *x = &im->kernel[g->kernel0 + k];
		uint32_t have = buffers ? x->nbuffer : x->nscalar;
		if (have > n)
			n = have;
	}
	return n;
}

size_t
frame_place(Frame *f, const Image *im, const ImageGraph *g, uint32_t calls, void *block)
{
	Block b = {block, 0};
	f->nbuffer = most(im, g, true);
	f->arg = piece(&b, g->nparam, sizeof *f->arg);
	f->param = piece(&b, g->nparam, sizeof *f->param);
	f->dim = piece(&b, g->ndim, sizeof *f->dim);
	f->stack = piece(&b, im->stack, sizeof *f->stack);
	f->shared = piece(&b, g->nshared, sizeof *f->shared);
	f->piece = piece(&b, g->ntensor, sizeof *f->piece);
	f->buffer = piece(&b, (size_t)f->nbuffer * calls, sizeof *f->buffer);
	f->scalar = piece(&b, most(im, g, false), sizeof *f->scalar);
	f->place = piece(&b, calls, sizeof *f->place);
	return b.used;
}
