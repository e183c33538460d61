/* cuda_maps.c: tensor maps: what the driver makes of a tensor's place, extents and strides, for kernels that copy boxes of
 * it. They are made at each launch and go with its parameters. Where rows begin at places that a map or the kernel can't
 * have, the map is of a copy (map_rows.c). */
#include "runtime/cuda.h"
#include "runtime/cuda_program.h"

/* CUtensorMapDataType, Swizzle and L2promotion: how much comes into the cache with what is read: a line. With two, memory gives 4.15
 * TB/s of what it gives 4.5 of otherwise (an H200, boxes of 64 by 64 elements, each read once), and nothing is gained where
 * the cache has what is read. */
enum { TYPE_U16 = 1, SWIZZLE_64 = 2, SWIZZLE_128 = 3, PROMOTE_128 = 2 };
enum { WIDE_BOX = 64 }; /* elements along the last axis: 128 bytes */

static const ImageMap *
map_of(const texo_kernel *k, const ImageKernel *kernel, uint32_t n)
{
	return &k->program->image.map[kernel->map0 + n];
}

bool
cuda_maps_suit(texo_kernel *k, const ImageKernel *kernel, int64_t pitch, bool *copies)
{
	MapRows r;
	*copies = false;
	if (kernel->nmap && !k->program->rt->cuda->driver.tensor_map)
		return false;
	for (uint32_t n = 0; n < kernel->nmap; n++) {
		const ImageMap *m = map_of(k, kernel, n);
		const void *at = k->frame.buffer[m->buffer];
		if (!map_rows(k, m, pitch, &r) || !map_is_possible(&r, at))
			return false;
		*copies = *copies || map_is_of_copy(&r, at);
	}
	return true;
}

/* at: where the rows of r are, or with `copied` their copy. */
static texo_status
make(texo_kernel *k, const MapRows *r, bool copied, void *at, void *to)
{
	Cuda *c = k->program->rt->cuda;
	uint64_t extent[IMAGE_MAP_RANK], stride[IMAGE_MAP_RANK], dense = (uint64_t)r->pitch;
	uint32_t box[IMAGE_MAP_RANK], step[IMAGE_MAP_RANK];
	for (uint32_t a = 0; a < r->rank; a++) {
		extent[a] = (uint64_t)r->extent[a];
		step[a] = (uint32_t)r->step[a];
		box[a] = (uint32_t)(r->box[a] * r->step[a]); /* as the driver counts it */
		if (a) {
			stride[a - 1] = copied ? dense : (uint64_t)r->stride[a];
			dense *= extent[a];
		}
	}
	uint32_t rank = r->rank;
	if (r->thirds) {
		extent[rank] = IMAGE_MAP_THIRDS;
		box[rank] = step[rank] = 1;
		stride[rank++ - 1] = dense;
	}
	int swizzle = box[0] < WIDE_BOX ? SWIZZLE_64 : SWIZZLE_128;
	return cuda_result(c, c->driver.tensor_map(to, TYPE_U16, rank, at, extent, stride, box, step, 0, swizzle, PROMOTE_128, 0),
	                   "make a tensor map");
}

/* Where the copies begin. */
static uint8_t *
first_copy(const texo_kernel *k, const ImageKernel *kernel, int64_t pitch, uint8_t *workspace)
{
	int64_t bytes;
	if (!map_rows_bytes(k, kernel, pitch, &bytes) || !bytes)
		return NULL;
	uint8_t *at = workspace + (k->frame.workspace - (uint64_t)bytes);
	return at + (MAP_LINE - (uintptr_t)at % MAP_LINE) % MAP_LINE;
}

texo_status
cuda_maps_make(texo_kernel *k, const ImageKernel *kernel, int64_t pitch, uint8_t *workspace, void *stream)
{
	MapRows rows[IMAGE_CUDA_MAX_MAPS];
	CudaBoxes boxes[IMAGE_CUDA_MAX_MAPS];
	uint32_t copies = 0;
	uint8_t *copy = kernel->nmap ? first_copy(k, kernel, pitch, workspace) : NULL;
	texo_status s = TEXO_OK;
	for (uint32_t n = 0; !s && n < kernel->nmap; n++) {
		const ImageMap *m = map_of(k, kernel, n);
		uint8_t *at = k->frame.buffer[m->buffer];
		map_rows(k, m, pitch, &rows[n]);
		bool copied = map_is_of_copy(&rows[n], at);
		if (copied) {
			boxes[copies++] = (CudaBoxes){&rows[n], at, copy};
			at = copy;
			copy += rows[n].room;
		}
		s = make(k, &rows[n], copied, at, k->cuda->map + (size_t)n * CUDA_MAP_BYTES);
	}
	return s || !copies ? s : cuda_boxes_copy(k, boxes, copies, stream);
}
