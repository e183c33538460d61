/* cuda_maps.c: tensor maps: what the driver makes of a tensor's place, extents and strides, for kernels that copy boxes of
 * it. They are made at each launch and go with its parameters. */
#include "runtime/cuda.h"
#include "runtime/cuda_program.h"

/* CUtensorMapDataType, Swizzle and L2promotion. */
enum { TYPE_F16 = 6, TYPE_BF16 = 9, SWIZZLE_128 = 3, PROMOTE_256 = 3 };
enum { STRIDE_BYTES = 16 };

static const int64_t MOST_EXTENT = INT64_C(1) << 32, MOST_STRIDE = INT64_C(1) << 40; /* stride: in bytes */

static int64_t
number(const texo_kernel *k, int64_t v)
{
	return v < 0 ? (int64_t)k->frame.scalar[-1 - v] : v;
}

/* Where there is one index alone, the stride is of no account. */
static uint64_t
stride_bytes(const texo_kernel *k, const ImageMap *m, uint32_t axis)
{
	if (number(k, m->extent[axis]) == 1)
		return STRIDE_BYTES;
	return (uint64_t)number(k, m->stride[axis]) * (element_of(m->dtype)->bits / 8);
}

static bool
suits(const texo_kernel *k, const ImageMap *m)
{
	if ((uintptr_t)k->frame.buffer[m->buffer] % STRIDE_BYTES || (number(k, m->stride[0]) != 1 && number(k, m->extent[0]) != 1))
		return false;
	for (uint32_t a = 0; a < m->rank; a++) {
		int64_t extent = number(k, m->extent[a]), stride = number(k, m->stride[a]);
		if (extent < 1 || extent > MOST_EXTENT || stride < 0 || stride >= MOST_STRIDE / 8)
			return false;
		if (a && (stride_bytes(k, m, a) == 0 || stride_bytes(k, m, a) % STRIDE_BYTES))
			return false;
	}
	return true;
}

bool
cuda_maps_suit(const texo_kernel *k, const ImageKernel *kernel)
{
	if (kernel->nmap && !k->program->rt->cuda->driver.tensor_map)
		return false;
	for (uint32_t n = 0; n < kernel->nmap; n++)
		if (!suits(k, &k->program->image.map[kernel->map0 + n]))
			return false;
	return true;
}

static texo_status
make(texo_kernel *k, const ImageMap *m, void *to)
{
	Cuda *c = k->program->rt->cuda;
	uint64_t extent[IMAGE_MAP_RANK], stride[IMAGE_MAP_RANK];
	uint32_t step[IMAGE_MAP_RANK];
	for (uint32_t a = 0; a < m->rank; a++) {
		extent[a] = (uint64_t)number(k, m->extent[a]);
		step[a] = 1;
		if (a)
			stride[a - 1] = stride_bytes(k, m, a);
	}
	int type = element_of(m->dtype)->dl.code == kDLBfloat ? TYPE_BF16 : TYPE_F16;
	return cuda_result(c, c->driver.tensor_map(to, type, m->rank, k->frame.buffer[m->buffer], extent, stride, m->box, step, 0,
	                                           SWIZZLE_128, PROMOTE_256, 0), "make a tensor map");
}

texo_status
cuda_maps_make(texo_kernel *k, const ImageKernel *kernel)
{
	texo_status s = TEXO_OK;
	for (uint32_t n = 0; !s && n < kernel->nmap; n++)
		s = make(k, &k->program->image.map[kernel->map0 + n], k->cuda->map + (size_t)n * CUDA_MAP_BYTES);
	return s;
}
