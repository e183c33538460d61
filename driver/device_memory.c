/* device_memory.c: see cpu_launch.h. A tensor's data pointer is the device's from the moment that memory
 * for it is there. */
#include "driver/cpu_launch.h"
#include "runtime/cuda.h"

texo_status
device_move_in(CpuLaunch *l)
{
	texo_status st = TEXO_OK;
	for (uint32_t k = 0; st == TEXO_OK && k < l->ntensor; k++) {
		DeviceMemory *m = &l->memory[k];
		void *at;
		st = cuda_memory_alloc(l->rt, m->bytes, &at);
		if (st != TEXO_OK)
			break;
		m->host = l->tensor[k].data;
		l->tensor[k].data = at;
		if (m->in)
			st = cuda_copy_in(l->rt, at, m->host, m->bytes);
	}
	if (st == TEXO_OK && l->bytes)
		st = cuda_memory_alloc(l->rt, l->bytes, &l->workspace);
	return st;
}

texo_status
device_move_out(CpuLaunch *l)
{
	texo_status st = TEXO_OK;
	for (uint32_t k = 0; st == TEXO_OK && k < l->ntensor; k++)
		if (l->memory[k].out)
			st = cuda_copy_out(l->rt, l->memory[k].host, l->tensor[k].data, l->memory[k].bytes);
	return st;
}

void
device_free(CpuLaunch *l)
{
	for (uint32_t k = 0; k < l->ntensor; k++)
		if (l->memory[k].host)
			cuda_memory_free(l->rt, l->tensor[k].data);
	cuda_memory_free(l->rt, l->workspace);
}
